//! What a PromQL query gives: how many series, of what kind, from which metrics.

use plimsoll_fleet::promql::{self, AggregateOp, Expr, QueryError, Sign};

use super::spread::{self, Series};

/// A query that was read.
#[derive(Clone, Debug)]
pub struct Query {
    expr: Expr,
}

impl Query {
    /// Reads a query.
    pub fn read(text: &str) -> Result<Self, QueryError> {
        promql::read(text).map(|expr| Self { expr })
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
        let mut all = metrics(&self.expr);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The metrics that an expression names, in the order they are written.
pub fn metrics(expr: &Expr) -> Vec<&str> {
    expr.selectors().into_iter().filter_map(|selector| selector.metric()).collect()
}

/// What an expression is without brackets around it.
pub fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(inner) => bare(inner),
        _ => expr,
    }
}

/// A number that is written out.
pub fn literal(expr: &Expr) -> Option<f64> {
    match bare(expr) {
        Expr::Number(value) => Some(*value),
        Expr::Unary(Sign::Minus, inner) => literal(inner).map(|value| -value),
        Expr::Unary(Sign::Plus, inner) => literal(inner),
        _ => None,
    }
}

/// Whether an aggregation counts series instead of looking at their values.
pub fn counts(op: AggregateOp) -> bool {
    matches!(op, AggregateOp::Count | AggregateOp::Group | AggregateOp::CountValues)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_query_says_where() {
        let at = |text: &str| Query::read(text).expect_err(text).at;
        assert_eq!(at("sum(rate(a[5m])"), 3);
        assert_eq!(at("sum(a))"), 6);
        assert_eq!(at(r#"sum(a{b="c})"#), 8);
        assert_eq!(at("sum(a) +"), 8);
        assert_eq!(at(""), 0);
        assert_eq!(at(&"(".repeat(100_000)), 64);
        assert!(Query::read(&vec!["a"; 300].join(" + ")).is_err());
    }
}
