//! How many series a query may give: which labels can differ in its result.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::label::MatchOp;
use promql_parser::parser::token::{
    T_BOTTOMK, T_COUNT_VALUES, T_LAND, T_LIMIT_RATIO, T_LIMITK, T_LOR, T_LUNLESS, T_TOPK,
};
use promql_parser::parser::{
    AggregateExpr, BinaryExpr, Expr, LabelModifier, VectorMatchCardinality, VectorSelector,
};

use super::query::literal;

/// How many series a query may give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Series {
    /// One, or none.
    One,
    /// Several, and what they differ in.
    Several(String),
    /// Prometheus refuses it as soon as one side of an operator has two series for a match.
    Refused(String),
}

/// How many series an expression may give.
pub(super) fn series(expr: &Expr) -> Series {
    let mut clash = None;
    let spread = spread(expr, &mut clash);
    match (clash, spread.differs()) {
        (Some(clash), _) => Series::Refused(clash),
        (None, Some(differs)) => Series::Several(differs),
        (None, None) => Series::One,
    }
}

/// Stands for labels of a single series that nobody knows; no label has this name.
const UNKNOWN: &str = "\0";

/// Which labels may tell the series of a result apart.
#[derive(Clone, Debug, Default)]
struct Spread {
    /// A number without labels.
    scalar: bool,
    /// Labels that nobody has named may differ.
    any: bool,
    /// Labels that differ.
    varying: BTreeSet<String>,
    /// Labels that are the same everywhere.
    fixed: BTreeMap<String, String>,
}

impl Spread {
    fn differs(&self) -> Option<String> {
        if self.any {
            return Some("nothing sums its series".to_owned());
        }
        let names: Vec<String> = self.varying.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("one for each {}", names.join(", ")))
    }

    fn without(mut self, names: &[String]) -> Self {
        for name in names {
            self.varying.remove(name);
            self.fixed.remove(name);
            // What is taken away can no longer differ, even where other labels do.
            if self.any {
                self.fixed.insert(name.clone(), String::new());
            }
        }
        self
    }

    fn only(self, names: &[String]) -> Self {
        let differ = |name: &&String| {
            self.varying.contains(*name) || (self.any && !self.fixed.contains_key(*name))
        };
        let varying = names.iter().filter(differ).cloned().collect();
        let fixed = self.fixed.into_iter().filter(|(name, _)| names.contains(name)).collect();
        Self { scalar: false, any: false, varying, fixed }
    }

    /// What both have, where all labels must be the same.
    fn both(self, other: Self) -> Self {
        let mut fixed = self.fixed;
        fixed.extend(other.fixed);
        let varying = match (self.any, other.any) {
            (true, true) => BTreeSet::new(),
            (true, false) => other.varying,
            (false, true) => self.varying,
            (false, false) => self.varying.intersection(&other.varying).cloned().collect(),
        };
        let varying = varying.into_iter().filter(|name| !fixed.contains_key(name)).collect();
        Self { scalar: false, any: self.any && other.any, varying, fixed }
    }

    /// Whether two series could have the same of the labels that are matched on.
    fn doubles(&self, on: &LabelModifier) -> bool {
        match on {
            LabelModifier::Include(on) => {
                self.any || self.varying.iter().any(|name| !on.labels.contains(name))
            }
            LabelModifier::Exclude(off) => off.labels.iter().any(|name| {
                self.varying.contains(name) || (self.any && !self.fixed.contains_key(name))
            }),
        }
    }
}

fn spread(expr: &Expr, clash: &mut Option<String>) -> Spread {
    match expr {
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => {
            Spread { scalar: true, ..Spread::default() }
        }
        Expr::VectorSelector(own) => selected(own),
        Expr::MatrixSelector(own) => selected(&own.vs),
        Expr::Unary(own) => spread(&own.expr, clash),
        Expr::Paren(own) => spread(&own.expr, clash),
        Expr::Subquery(own) => spread(&own.expr, clash),
        Expr::Aggregate(own) => aggregated(own, clash),
        Expr::Binary(own) => operated(own, clash),
        Expr::Call(own) => {
            let parts: Vec<Spread> = own.args.args.iter().map(|part| spread(part, clash)).collect();
            let vector = parts.into_iter().find(|part| !part.scalar);
            let label = |at: usize| match own.args.args.get(at).map(|part| &**part) {
                Some(Expr::StringLiteral(text)) => Some(text.val.clone()),
                _ => None,
            };
            match own.func.name {
                "scalar" | "time" | "pi" => Spread { scalar: true, ..Spread::default() },
                "vector" => Spread::default(),
                // It has the labels that were asked for by equality.
                "absent" | "absent_over_time" => {
                    let fixed = vector.map(|own| own.fixed).unwrap_or_default();
                    Spread { fixed, ..Spread::default() }
                }
                "histogram_quantile" => vector.unwrap_or_default().without(&["le".to_owned()]),
                "label_replace" | "label_join" => {
                    let mut own = vector.unwrap_or_default();
                    if let Some(name) = label(1) {
                        own.fixed.remove(&name);
                        if own.any || !own.varying.is_empty() {
                            own.varying.insert(name);
                        } else {
                            own.fixed.insert(name, String::new());
                        }
                    }
                    own
                }
                _ => vector.unwrap_or_default(),
            }
        }
        Expr::Extension(_) => Spread { any: true, ..Spread::default() },
    }
}

fn selected(selector: &VectorSelector) -> Spread {
    let equal = selector.matchers.matchers.iter().filter(|own| own.op == MatchOp::Equal);
    let mut fixed: BTreeMap<String, String> =
        equal.map(|own| (own.name.clone(), own.value.clone())).collect();
    if !selector.matchers.or_matchers.is_empty() {
        fixed.clear();
    }
    fixed.remove("__name__");
    Spread { any: true, fixed, ..Spread::default() }
}

fn aggregated(own: &AggregateExpr, clash: &mut Option<String>) -> Spread {
    let inner = spread(&own.expr, clash);
    let op = own.op.id();
    let grouped = |inner: Spread| match &own.modifier {
        None => Spread::default(),
        Some(LabelModifier::Include(by)) => inner.only(&by.labels),
        Some(LabelModifier::Exclude(off)) => inner.without(&off.labels),
    };
    if op == T_LIMIT_RATIO {
        return inner;
    }
    if [T_TOPK, T_BOTTOMK, T_LIMITK].contains(&op) {
        let one = own.param.as_deref().and_then(literal).is_some_and(|k| k <= 1.0);
        if !one {
            return inner;
        }
        // The one that is left keeps its labels, which nobody knows.
        let mut left = grouped(inner);
        left.fixed.insert(UNKNOWN.to_owned(), String::new());
        return left;
    }
    let mut result = grouped(inner);
    if op == T_COUNT_VALUES {
        let name = match own.param.as_deref() {
            Some(Expr::StringLiteral(text)) => text.val.clone(),
            _ => "value".to_owned(),
        };
        result.varying.insert(name);
    }
    result
}

fn operated(own: &BinaryExpr, clash: &mut Option<String>) -> Spread {
    let left = spread(&own.lhs, clash);
    let right = spread(&own.rhs, clash);
    match (left.scalar, right.scalar) {
        (_, true) => return left,
        (true, false) => return right,
        (false, false) => {}
    }
    let op = own.op.id();
    let matching = own.modifier.as_ref().and_then(|modifier| modifier.matching.as_ref());
    if op == T_LAND || op == T_LUNLESS {
        return left;
    }
    if op == T_LOR {
        return either(left, right, matching);
    }
    let card = own.modifier.as_ref().map(|modifier| &modifier.card);
    let mut refuse = |side: &str, spread: &Spread| {
        if matching.is_some_and(|on| spread.doubles(on)) {
            let several = spread.differs().unwrap_or_default();
            clash.get_or_insert(format!(
                "its {side} side may have several series for one match ({several})"
            ));
        }
    };
    match card {
        Some(VectorMatchCardinality::ManyToOne(_)) => {
            refuse("right", &right);
            left
        }
        Some(VectorMatchCardinality::OneToMany(_)) => {
            refuse("left", &left);
            right
        }
        _ => {
            refuse("left", &left);
            refuse("right", &right);
            match matching {
                Some(LabelModifier::Include(on)) => left.both(right).only(&on.labels),
                Some(LabelModifier::Exclude(off)) => {
                    left.without(&off.labels).both(right.without(&off.labels))
                }
                None => left.both(right),
            }
        }
    }
}

/// What `or` gives: one series only where both sides have the same labels, so that the second is left out.
fn either(left: Spread, right: Spread, matching: Option<&LabelModifier>) -> Spread {
    let single = |own: &Spread| own.differs().is_none();
    let seen = |own: &Spread| -> BTreeMap<String, String> {
        let mut fixed = own.fixed.clone();
        match matching {
            Some(LabelModifier::Include(on)) => fixed.retain(|name, _| on.labels.contains(name)),
            Some(LabelModifier::Exclude(off)) => {
                fixed.retain(|name, _| !off.labels.contains(name));
            }
            None => {}
        }
        fixed
    };
    if single(&left) && single(&right) {
        let (own, other) = (seen(&left), seen(&right));
        if own == other && !own.contains_key(UNKNOWN) {
            return left;
        }
        let mut both = left;
        both.varying.insert("the side of `or`".to_owned());
        return both;
    }
    let mut both = left;
    both.any |= right.any;
    both.varying.extend(right.varying);
    let fixed = std::mem::take(&mut both.fixed);
    both.fixed =
        fixed.into_iter().filter(|(name, value)| right.fixed.get(name) == Some(value)).collect();
    both
}

#[cfg(test)]
mod tests {
    use super::super::query::Query;
    use super::*;

    fn check(query: &str, expect: &str) {
        let found = match Query::read(query).expect(query).series() {
            Series::One => "one",
            Series::Several(_) => "several",
            Series::Refused(_) => "refused",
        };
        assert_eq!(found, expect, "{query}");
    }

    #[test]
    fn how_many_series() {
        check("up", "several");
        check(r#"up{job="a", instance="b"}"#, "several");
        check("sum(up)", "one");
        check("avg(up)", "one");
        check("max(up)", "one");
        check("count(up)", "one");
        check("sum by (pod) (up)", "several");
        check("sum without (pod) (up)", "several");
        check(r#"sum by (model_name) (up{model_name="a"})"#, "one");
        check("histogram_quantile(0.9, sum by (le) (rate(a_bucket[5m])))", "one");
        check("histogram_quantile(0.9, sum by (le, pod) (rate(a_bucket[5m])))", "several");
        check("histogram_quantile(0.9, rate(a_bucket[5m]))", "several");
        check("sum(a) / sum(b)", "one");
        check("a / b", "several");
        check("sum(a) / on() group_left b", "refused");
        check("sum(a) / on() group_left sum(b)", "one");
        check("a / on(pod) group_left sum by (pod) (b)", "several");
        check("sum(a) > on() b", "refused");
        check("scalar(a)", "one");
        check("vector(1)", "one");
        check("absent(a)", "one");
        check("topk(1, a)", "one");
        check("topk(3, a)", "several");
        check("topk(3, sum(a))", "one");
        check("max_over_time(sum(a)[5m:])", "one");
        check("max_over_time(a[5m])", "several");
        check("sum(a) > 3", "one");
        check("a > 3", "several");
        check("3 < bool sum(a)", "one");
        check("sum(a) or vector(0)", "one");
        check(r#"sum by (m) (a{m="x"}) or vector(0)"#, "several");
        check(r#"sum by (m) (a{m="x"}) or on() vector(0)"#, "one");
        check("sum(a) or b", "several");
        check("topk(1, a) or topk(1, b)", "several");
        check("topk(1, a) or on() vector(0)", "one");
        check("sum(a) and b", "one");
        check("a unless sum(b)", "several");
        check(r#"label_replace(sum(a), "x", "y", "", "")"#, "one");
        check(r#"label_replace(a, "x", "y", "", "")"#, "several");
        check(r#"count_values("v", a)"#, "several");
        check("42", "one");
        check("-(sum(rate(a[5m])) + sum(b))", "one");
        check("quantile_over_time(0.9, sum(a)[5m:1m])", "one");
        check("clamp_min(sum(a), 1)", "one");
    }
}
