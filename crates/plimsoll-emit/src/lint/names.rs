//! Rules about the metrics that are named: whether a version has them, and what their buckets are.

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::{self, Metric, MetricKind, Reporter};
use plimsoll_fleet::promql::Expr;

use super::manifest::Trigger;
use super::measure::{self, Level};
use super::query::Query;
use super::{Found, shown};
use crate::yaml::{At, Node};

/// A number that something is scaled on.
pub(super) struct Measured<'a> {
    pub(super) node: &'a Node,
    pub(super) query: Option<&'a Query>,
    /// The one metric that it is, where it is no query.
    pub(super) name: Option<&'a str>,
}

impl Measured<'_> {
    pub(super) fn level(&self) -> Option<Level> {
        match (self.query, self.name) {
            (Some(query), _) => measure::level(query.expr()),
            (None, Some(name)) => measure::level_of_name(name),
            (None, None) => None,
        }
    }

    pub(super) fn metrics(&self) -> Vec<&'static Metric> {
        match (self.query, self.name) {
            (Some(query), _) => measure::signals(query.expr()),
            (None, Some(name)) => metrics::known(name).first().copied().into_iter().collect(),
            (None, None) => Vec::new(),
        }
    }

    pub(super) fn names(&self) -> Vec<&str> {
        match self.query {
            Some(query) => query.metrics(),
            None => self.name.into_iter().collect(),
        }
    }
}

/// L9.
pub(super) fn versions(
    measured: &Measured<'_>,
    prefix: Option<&str>,
    version: &dyn Fn(Reporter) -> Option<Version>,
    found: &mut Found<'_>,
) {
    let node = measured.node;
    let short = |name: &str| {
        let own = prefix.and_then(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        own.to_owned()
    };
    for name in measured.names() {
        let known = metrics::known(name);
        let Some(reporter) = metrics::reporter_of(name) else { continue };
        let Some(first) = known.first() else {
            let total = format!("{name}_total");
            let counter = metrics::known(&total).iter().any(|own| own.kind == MetricKind::Counter);
            let near = metrics::metrics()
                .iter()
                .filter(|own| own.reporter == reporter)
                .find(|own| name.len() < 80 && strsim::damerau_levenshtein(own.name, name) <= 2);
            if counter {
                let edit = found.source.rename(node, &short(name), &short(&total));
                found
                    .error(9, node.at, format!("`{name}` is scraped as `{total}`"))
                    .fix(short(&total))
                    .edit(edit);
            } else if let Some(near) = near {
                let message = format!("no metric `{name}` of {reporter} is known");
                let _ = found.warning(9, node.at, message).fix(short(near.name));
            }
            continue;
        };
        let version = version(reporter);
        let gone = match version {
            Some(version) if known.iter().any(|own| own.is_in(version)) => continue,
            Some(version) => match (first.since, first.until) {
                (_, Some(until)) if until.parse().is_ok_and(|until: Version| until <= version) => {
                    format!("{reporter} {version} has no `{name}`: it was removed in {until}")
                }
                (Some(since), _) => {
                    format!("{reporter} {version} has no `{name}`: it came with {since}")
                }
                _ => continue,
            },
            None => match first.until {
                Some(until) => format!("`{name}` was removed from {reporter} in {until}"),
                None => continue,
            },
        };
        let instead = first.instead.filter(|instead| {
            metrics::known(instead).first().is_some_and(|own| {
                own.kind == first.kind && version.is_none_or(|version| own.is_in(version))
            })
        });
        let newer = instead.map(|instead| renamed(name, first.name, instead));
        let edit =
            newer.as_ref().and_then(|newer| found.source.rename(node, &short(name), &short(newer)));
        let advice = match version {
            Some(_) => found.error(9, node.at, gone),
            None => found.warning(9, node.at, gone),
        };
        match newer {
            Some(newer) => advice.fix(short(&newer)).edit(edit),
            None => advice.edit(None),
        }
    }
}

/// A newer name with the end and the first `_` that the old one was written with.
fn renamed(name: &str, old: &str, instead: &str) -> String {
    let end = name.get(old.len()..).unwrap_or("");
    let colon = name.contains(':');
    let instead = if colon { instead.to_owned() } else { instead.replacen(':', "_", 1) };
    format!("{instead}{end}")
}

/// L18, for buckets.
pub(super) fn edges(expr: &Expr, at: At, found: &mut Found<'_>) {
    for edge in measure::edges(expr) {
        let Ok(number) = edge.le.parse::<f64>() else { continue };
        let named = |value: f64| format!("{value:?}");
        if edge.edges.contains(&number) {
            if edge.le != named(number) {
                let message = format!(
                    "the bucket of {} s is called `le=\"{}\"`, not `le=\"{}\"`",
                    shown(number),
                    named(number),
                    edge.le
                );
                let _ = found.warning(18, at, message).fix(format!("le=\"{}\"", named(number)));
            }
            continue;
        }
        let (below, above) = around(edge.edges, number);
        let message = format!(
            "`{}` has no bucket `le=\"{}\"`: the next ones are {}",
            edge.metric.name,
            edge.le,
            [below, above].into_iter().flatten().map(shown).collect::<Vec<_>>().join(" s and ")
                + " s"
        );
        let fix = above.or(below).map(|edge| format!("le=\"{}\"", named(edge)));
        let _ = found.error(18, at, message).fix(fix.unwrap_or_default());
    }
}

fn around(edges: &[f64], number: f64) -> (Option<f64>, Option<f64>) {
    let below = edges.iter().copied().rfind(|edge| *edge < number);
    (below, edges.iter().copied().find(|edge| *edge > number))
}

/// L18, for the target of a quantile.
pub(super) fn between(trigger: &Trigger<'_>, query: &Query, at: At, found: &mut Found<'_>) {
    let Some(target) = trigger.target() else { return };
    for (metric, edges, bound) in measure::quantiles(query.expr()) {
        quantile(metric, edges, bound.unwrap_or(target), at, found);
    }
}

pub(super) fn quantile(metric: &Metric, edges: &[f64], bound: f64, at: At, found: &mut Found<'_>) {
    if edges.contains(&bound) || bound <= 0.0 {
        return;
    }
    if let (Some(below), Some(above)) = around(edges, bound) {
        let message = format!(
            "{} s lies between the buckets of {} s and {} s of `{}`: the quantile is a guess there",
            shown(bound),
            shown(below),
            shown(above),
            metric.name
        );
        let _ = found.note(18, at, message).fix(shown(above));
    }
}
