//! How many series a query may give: which labels can differ in its result.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_fleet::promql::{
    Aggregate, AggregateOp, Binary, BinaryOp, Expr, Group, Labels, MatchOp, Selector, ValueType,
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
    fn doubles(&self, matching: &Labels) -> bool {
        match matching {
            Labels::Only(on) => self.any || self.varying.iter().any(|name| !on.contains(name)),
            Labels::Except(off) => off.iter().any(|name| {
                self.varying.contains(name) || (self.any && !self.fixed.contains_key(name))
            }),
        }
    }
}

fn spread(expr: &Expr, clash: &mut Option<String>) -> Spread {
    match expr {
        Expr::Number(_) | Expr::Text(_) => Spread { scalar: true, ..Spread::default() },
        Expr::Selector(selector) | Expr::Range(selector, _) => selected(selector),
        Expr::Unary(_, inner) | Expr::Paren(inner) => spread(inner, clash),
        Expr::Subquery(subquery) => spread(&subquery.expr, clash),
        Expr::Aggregate(aggregate) => aggregated(aggregate, clash),
        Expr::Binary(binary) => operated(binary, clash),
        Expr::Call(call) => {
            let parts: Vec<Spread> = call.args.iter().map(|part| spread(part, clash)).collect();
            let vector = parts.into_iter().find(|part| !part.scalar);
            let label = |at: usize| match call.args.get(at) {
                Some(Expr::Text(text)) => Some(text.clone()),
                _ => None,
            };
            match call.function.name {
                _ if call.function.returns == ValueType::Scalar => {
                    Spread { scalar: true, ..Spread::default() }
                }
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
    }
}

fn selected(selector: &Selector) -> Spread {
    let equal = selector.matchers.iter().filter(|matcher| matcher.op == MatchOp::Equal);
    let mut fixed: BTreeMap<String, String> =
        equal.map(|matcher| (matcher.label.clone(), matcher.value.clone())).collect();
    fixed.remove("__name__");
    Spread { any: true, fixed, ..Spread::default() }
}

fn aggregated(aggregate: &Aggregate, clash: &mut Option<String>) -> Spread {
    let inner = spread(&aggregate.expr, clash);
    let grouped = |inner: Spread| match &aggregate.grouping {
        None => Spread::default(),
        Some(Labels::Only(by)) => inner.only(by),
        Some(Labels::Except(off)) => inner.without(off),
    };
    match aggregate.op {
        AggregateOp::LimitRatio => inner,
        AggregateOp::Topk | AggregateOp::Bottomk | AggregateOp::Limitk => {
            if !aggregate.param.as_ref().and_then(literal).is_some_and(|k| k <= 1.0) {
                return inner;
            }
            // The one that is left keeps its labels, which are unknown.
            let mut left = grouped(inner);
            left.fixed.insert(UNKNOWN.to_owned(), String::new());
            left
        }
        AggregateOp::CountValues => {
            let mut result = grouped(inner);
            result.varying.insert(match &aggregate.param {
                Some(Expr::Text(label)) => label.clone(),
                _ => "value".to_owned(),
            });
            result
        }
        _ => grouped(inner),
    }
}

fn operated(binary: &Binary, clash: &mut Option<String>) -> Spread {
    let left = spread(&binary.left, clash);
    let right = spread(&binary.right, clash);
    match (left.scalar, right.scalar) {
        (_, true) => return left,
        (true, false) => return right,
        (false, false) => {}
    }
    let matching = binary.matching.as_ref();
    match binary.op {
        BinaryOp::And | BinaryOp::Unless => return left,
        BinaryOp::Or => return either(left, right, matching),
        _ => {}
    }
    let mut refuse = |side: &str, spread: &Spread| {
        if matching.is_some_and(|labels| spread.doubles(labels)) {
            let several = spread.differs().unwrap_or_default();
            clash.get_or_insert(format!(
                "its {side} side may have several series for one match ({several})"
            ));
        }
    };
    match binary.group {
        Some(Group::Left(_)) => {
            refuse("right", &right);
            left
        }
        Some(Group::Right(_)) => {
            refuse("left", &left);
            right
        }
        None => {
            refuse("left", &left);
            refuse("right", &right);
            match matching {
                Some(Labels::Only(on)) => left.both(right).only(on),
                Some(Labels::Except(off)) => left.without(off).both(right.without(off)),
                None => left.both(right),
            }
        }
    }
}

/// What `or` gives: one series only where both sides have the same labels, so that the second is left out.
fn either(left: Spread, right: Spread, matching: Option<&Labels>) -> Spread {
    let single = |own: &Spread| own.differs().is_none();
    let seen = |own: &Spread| -> BTreeMap<String, String> {
        let mut fixed = own.fixed.clone();
        match matching {
            Some(Labels::Only(on)) => fixed.retain(|name, _| on.contains(name)),
            Some(Labels::Except(off)) => fixed.retain(|name, _| !off.contains(name)),
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
