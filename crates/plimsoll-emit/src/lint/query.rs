//! What a PromQL query gives: how many series, of what kind, from which metrics.

use promql_parser::label::MatchOp;
use promql_parser::parser::token::{
    T_ADD, T_AVG, T_COUNT, T_COUNT_VALUES, T_DIV, T_EQLC, T_GROUP, T_GTE, T_GTR, T_LAND, T_LOR,
    T_LSS, T_LTE, T_LUNLESS, T_MAX, T_MIN, T_MUL, T_NEQ, T_QUANTILE, T_SUB, T_SUM,
};
use promql_parser::parser::{Expr, VectorSelector, parse};

use super::spread::{self, Series};

/// Operators and brackets at most: the parser and what walks over its tree go as deep as there are.
const OPERATORS_MOST: usize = 400;

/// A query that was read.
#[derive(Clone, Debug)]
pub struct Query {
    expr: Expr,
}

/// A query that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryError {
    /// What is wrong.
    pub message: String,
    /// Where, in characters from the start of the query, if that can be told.
    pub at: Option<usize>,
}

impl Query {
    /// Reads a query.
    pub fn read(text: &str) -> Result<Self, QueryError> {
        let refuse = |message: &str, at| Err(QueryError { message: message.to_owned(), at });
        if text.trim().is_empty() {
            return refuse("the query is empty", None);
        }
        if text.chars().filter(|c| "([{+-*/%^<>,=~!".contains(*c)).count() > OPERATORS_MOST
            || text.split_whitespace().count() > OPERATORS_MOST
        {
            return refuse("the query is too long to be looked at", None);
        }
        if let Some((at, message)) = unbalanced(text) {
            return Err(QueryError { message, at: Some(at) });
        }
        parse(text)
            .map(|expr| Self { expr })
            .map_err(|message| QueryError { message: message.trim().to_owned(), at: None })
    }

    /// Its tree.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// How many series it may give.
    pub fn series(&self) -> Series {
        spread::series(&self.expr)
    }

    /// The names of its metrics, each once.
    pub fn metrics(&self) -> Vec<&str> {
        let mut all: Vec<&str> = selectors(&self.expr).into_iter().filter_map(name_of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A bracket or quote that is not closed, or closes nothing.
fn unbalanced(text: &str) -> Option<(usize, String)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut chars = text.chars().enumerate();
    while let Some((at, c)) = chars.next() {
        match c {
            '(' | '[' | '{' => open.push((at, c)),
            ')' | ']' | '}' => {
                let wanted = match c {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                if open.pop().is_none_or(|(_, last)| last != wanted) {
                    return Some((at, format!("`{c}` closes nothing")));
                }
            }
            '"' | '\'' | '`' => {
                let mut closed = false;
                while let Some((_, next)) = chars.next() {
                    if next == '\\' && c != '`' {
                        chars.next();
                    } else if next == c {
                        closed = true;
                        break;
                    }
                }
                if !closed {
                    return Some((at, "the quote is not closed".to_owned()));
                }
            }
            '#' => while chars.next().is_some_and(|(_, next)| next != '\n') {},
            _ => {}
        }
    }
    open.first().map(|(at, c)| (*at, format!("`{c}` is not closed")))
}

/// The parts of an expression.
pub fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Aggregate(own) => own.param.iter().map(|part| &**part).chain([&*own.expr]).collect(),
        Expr::Unary(own) => vec![&own.expr],
        Expr::Binary(own) => vec![&own.lhs, &own.rhs],
        Expr::Paren(own) => vec![&own.expr],
        Expr::Subquery(own) => vec![&own.expr],
        Expr::Call(own) => own.args.args.iter().map(|part| &**part).collect(),
        Expr::NumberLiteral(_)
        | Expr::StringLiteral(_)
        | Expr::VectorSelector(_)
        | Expr::MatrixSelector(_)
        | Expr::Extension(_) => Vec::new(),
    }
}

/// The selectors of an expression.
pub fn selectors(expr: &Expr) -> Vec<&VectorSelector> {
    match expr {
        Expr::VectorSelector(own) => vec![own],
        Expr::MatrixSelector(own) => vec![&own.vs],
        _ => children(expr).into_iter().flat_map(selectors).collect(),
    }
}

/// The metric that a selector names.
pub fn name_of(selector: &VectorSelector) -> Option<&str> {
    selector.name.as_deref().or_else(|| {
        let mut all = selector.matchers.matchers.iter();
        all.find(|own| own.name == "__name__" && own.op == MatchOp::Equal)
            .map(|own| own.value.as_str())
    })
}

/// What an expression is without brackets around it.
pub fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(own) => bare(&own.expr),
        _ => expr,
    }
}

/// A number that is written out.
pub fn literal(expr: &Expr) -> Option<f64> {
    match bare(expr) {
        Expr::NumberLiteral(own) => Some(own.val),
        Expr::Unary(own) => literal(&own.expr).map(|value| -value),
        _ => None,
    }
}

/// Whether an operator compares.
pub fn compares(op: u16) -> bool {
    [T_EQLC, T_NEQ, T_LSS, T_LTE, T_GTR, T_GTE].contains(&op)
}

/// Whether an operator is for sets.
pub fn of_sets(op: u16) -> bool {
    [T_LAND, T_LOR, T_LUNLESS].contains(&op)
}

pub(super) const ADD: u16 = T_ADD;
pub(super) const SUB: u16 = T_SUB;
pub(super) const MUL: u16 = T_MUL;
pub(super) const DIV: u16 = T_DIV;
pub(super) const AND: u16 = T_LAND;
pub(super) const SUM: u16 = T_SUM;
pub(super) const COUNT: [u16; 3] = [T_COUNT, T_GROUP, T_COUNT_VALUES];
pub(super) const MIDDLE: [u16; 4] = [T_AVG, T_MAX, T_MIN, T_QUANTILE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_query_says_where() {
        let at = |text: &str| Query::read(text).expect_err(text).at;
        assert_eq!(at("sum(rate(a[5m])"), Some(3));
        assert_eq!(at("sum(a))"), Some(6));
        assert_eq!(at(r#"sum(a{b="c})"#), Some(8));
        assert_eq!(at("sum(a) +"), None);
        assert_eq!(at(""), None);
        assert_eq!(at(&"(".repeat(100_000)), None);
        assert!(Query::read(&vec!["a"; 300].join(" + ")).is_err());
    }
}
