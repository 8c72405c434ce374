//! What the number of a query is: a sum that grows with demand, or a level that is the same however many replicas share it.

use plimsoll_fleet::metrics::{self, Metric, MetricKind, Signal};
use promql_parser::label::MatchOp;
use promql_parser::parser::Expr;

use super::query::{
    ADD, AND, COUNT, DIV, MIDDLE, MUL, SUB, SUM, bare, children, compares, literal, name_of,
    of_sets, selectors,
};

/// A number that does not add up over replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Seconds of a call.
    Latency,
    /// A part of a whole.
    Share,
    /// One thing by another of its kind.
    Ratio,
    /// Already divided by the replicas.
    PerReplica,
}

impl Level {
    /// In a sentence.
    pub fn says(self) -> &'static str {
        match self {
            Self::Latency => "a latency",
            Self::Share => "a share of a whole",
            Self::Ratio => "a ratio",
            Self::PerReplica => "already a figure per replica",
        }
    }
}

/// The level that an expression is; none where it is a sum, or nobody knows.
pub fn level(expr: &Expr) -> Option<Level> {
    match expr {
        Expr::VectorSelector(own) => name_of(own).and_then(level_of_name),
        Expr::MatrixSelector(own) => name_of(&own.vs).and_then(level_of_name),
        Expr::Paren(own) => level(&own.expr),
        Expr::Unary(own) => level(&own.expr),
        Expr::Subquery(own) => level(&own.expr),
        Expr::Aggregate(own) => {
            let inner = level(&own.expr);
            let op = own.op.id();
            if op == SUM {
                // The sum of shares, by replicas, is their mean: that is how it should be.
                inner.filter(|level| *level == Level::Latency)
            } else if COUNT.contains(&op) {
                None
            } else if MIDDLE.contains(&op) {
                let engine = selectors(&own.expr).into_iter().filter_map(name_of).any(of_engine);
                inner.or(engine.then_some(Level::PerReplica))
            } else {
                inner
            }
        }
        Expr::Call(own) => match own.func.name {
            "histogram_quantile" | "histogram_avg" | "histogram_fraction" => {
                let fraction = own.func.name == "histogram_fraction";
                Some(if fraction { Level::Share } else { Level::Latency })
            }
            name if is_rate(name) => None,
            "count_over_time" | "absent" | "absent_over_time" | "time" | "timestamp" => None,
            _ => own.args.args.iter().find_map(|part| level(part)),
        },
        Expr::Binary(own) => {
            let op = own.op.id();
            let (left, right) = (&own.lhs, &own.rhs);
            if op == DIV && literal(right).is_none() && literal(left).is_none() {
                return divided(left, right).or(level(left));
            }
            if op == MUL && literal(left).is_none() && literal(right).is_none() {
                return None;
            }
            if compares(op) || (of_sets(op) && op == AND) {
                return level(left);
            }
            level(left).or(level(right))
        }
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => None,
    }
}

fn divided(left: &Expr, right: &Expr) -> Option<Level> {
    match (unit(left), unit(right)) {
        (Unit::Seconds, Unit::Calls) => Some(Level::Latency),
        (Unit::Unknown, _) | (_, Unit::Unknown) => None,
        (_, Unit::Pods) => Some(Level::PerReplica),
        (Unit::Tokens, Unit::Calls) => Some(Level::Ratio),
        (left, right) => (left == right).then_some(Level::Ratio),
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Tokens,
    Calls,
    Share,
    Pods,
    Unknown,
}

fn unit(expr: &Expr) -> Unit {
    match expr {
        Expr::VectorSelector(own) => name_of(own).map_or(Unit::Unknown, unit_of_name),
        Expr::MatrixSelector(own) => name_of(&own.vs).map_or(Unit::Unknown, unit_of_name),
        Expr::Aggregate(own) if COUNT.contains(&own.op.id()) => Unit::Pods,
        Expr::Aggregate(own) => unit(&own.expr),
        Expr::Paren(own) => unit(&own.expr),
        Expr::Unary(own) => unit(&own.expr),
        Expr::Subquery(own) => unit(&own.expr),
        Expr::Call(own) if own.func.name == "histogram_quantile" => Unit::Unknown,
        Expr::Call(own) => {
            let mut parts = own.args.args.iter().map(|part| unit(part));
            parts.find(|unit| *unit != Unit::Unknown).unwrap_or(Unit::Unknown)
        }
        Expr::Binary(own) => match (own.op.id(), literal(&own.lhs), literal(&own.rhs)) {
            (MUL | DIV, None, Some(_)) => unit(&own.lhs),
            (MUL, Some(_), None) => unit(&own.rhs),
            (MUL | DIV, ..) => Unit::Unknown,
            _ => unit(&own.lhs),
        },
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => Unit::Unknown,
    }
}

fn unit_of_name(name: &str) -> Unit {
    if name == "up" || name.starts_with("kube_") {
        return Unit::Pods;
    }
    if metrics::known(name).first().is_some_and(|own| own.kind == MetricKind::Share) {
        return Unit::Share;
    }
    let known = metrics::known(name);
    let histogram = known.is_empty() || known[0].kind == MetricKind::Histogram;
    if histogram && (name.ends_with("_count") || name.ends_with("_bucket")) {
        return Unit::Calls;
    }
    if name.contains("tokens") {
        Unit::Tokens
    } else if ["seconds", "latency", "duration"].iter().any(|word| name.contains(word)) {
        Unit::Seconds
    } else if name.contains("request") || name.contains("_reqs") {
        Unit::Calls
    } else {
        Unit::Unknown
    }
}

/// The level of a metric by its name: what is known of it, else what it is called.
pub fn level_of_name(name: &str) -> Option<Level> {
    if let Some(own) = metrics::known(name).first() {
        let share = own.kind == MetricKind::Share || own.signal == Signal::Saturation;
        return share.then_some(Level::Share);
    }
    if gpu_duty(name) {
        return Some(Level::Share);
    }
    if ["_total", "_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end)) {
        return None;
    }
    let words: Vec<&str> = name.split(['_', ':', '.', '-']).collect();
    let has = |all: &[&str]| all.iter().any(|word| words.contains(word));
    if has(&["ttft", "tpot", "itl", "latency", "seconds", "p50", "p90", "p95", "p99"]) {
        Some(Level::Latency)
    } else if has(&["ratio", "utilization", "utilisation", "perc", "percent", "saturation"]) {
        Some(Level::Share)
    } else {
        None
    }
}

fn of_engine(name: &str) -> bool {
    metrics::known(name).iter().any(|own| {
        !own.reporter.is_gateway() && matches!(own.kind, MetricKind::Gauge | MetricKind::Counter)
    })
}

fn is_rate(name: &str) -> bool {
    matches!(name, "rate" | "irate" | "increase" | "deriv" | "delta" | "idelta")
}

/// The metrics of engines and gateways that an expression asks for.
pub fn signals(expr: &Expr) -> Vec<&'static Metric> {
    let names = selectors(expr).into_iter().filter_map(name_of);
    names.filter_map(|name| metrics::known(name).first().copied()).collect()
}

/// Whether the number is calls in a second.
pub fn is_request_rate(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(own) => is_request_rate(&own.expr),
        Expr::Subquery(own) => is_request_rate(&own.expr),
        Expr::Aggregate(own) => !COUNT.contains(&own.op.id()) && is_request_rate(&own.expr),
        Expr::Call(own) if is_rate(own.func.name) => selectors(expr)
            .into_iter()
            .filter_map(name_of)
            .any(|name| !name.ends_with("_bucket") && unit_of_name(name) == Unit::Calls),
        Expr::Call(own) => own.args.args.iter().any(|part| is_request_rate(part)),
        Expr::Binary(own) => match (own.op.id(), literal(&own.rhs)) {
            (ADD | SUB, _) => is_request_rate(&own.lhs) && is_request_rate(&own.rhs),
            (MUL | DIV, Some(_)) => is_request_rate(&own.lhs),
            (MUL, None) => literal(&own.lhs).is_some() && is_request_rate(&own.rhs),
            (DIV, None) => false,
            _ => is_request_rate(&own.lhs),
        },
        Expr::VectorSelector(own) => name_of(own).is_some_and(names_request_rate),
        Expr::MatrixSelector(own) => name_of(&own.vs).is_some_and(names_request_rate),
        Expr::Unary(_) | Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => {
            false
        }
    }
}

/// Whether a name says that it is calls in a second.
pub fn names_request_rate(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.contains("requests_per_second")
        || ["rps", "qps"].iter().any(|word| lower.split(['_', ':', '-']).any(|own| own == *word))
}

/// Whether a name is one of a device that is busy, or of memory that engines take at their start.
pub fn gpu_duty(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["dev_gpu_util", "dev_fb_used", "dev_mem_copy_util", "duty_cycle", "gpu_utilization"]
        .iter()
        .any(|word| lower.contains(word))
}

/// Whether it divides by a rate that is nought where nobody calls, and nothing guards it.
pub fn divides_by_nothing(expr: &Expr) -> bool {
    let Expr::Binary(own) = expr else {
        return children(expr).into_iter().any(divides_by_nothing);
    };
    let op = own.op.id();
    // A comparison drops what is not a number, and `and` is how a division is guarded.
    if compares(op) || op == AND {
        return false;
    }
    if op == DIV && has_rate(&own.rhs) && !guarded(&own.rhs) {
        return true;
    }
    children(expr).into_iter().any(divides_by_nothing)
}

fn has_rate(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(own) if is_rate(own.func.name))
        || children(expr).into_iter().any(has_rate)
}

fn guarded(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Call(own) => matches!(own.func.name, "clamp_min" | "clamp"),
        Expr::Binary(own) => {
            let more = own.op.id() == ADD
                && [&own.lhs, &own.rhs].iter().any(|part| literal(part).is_some_and(|n| n > 0.0));
            compares(own.op.id()) || more
        }
        _ => false,
    }
}

/// A bucket that is asked for, and its metric.
pub struct Edge<'a> {
    /// As it was written.
    pub le: &'a str,
    /// The metric.
    pub metric: &'static Metric,
    /// The edges that it has, in seconds.
    pub edges: &'static [f64],
}

/// The buckets that an expression selects by their edge, of metrics whose edges are known.
pub fn edges(expr: &Expr) -> Vec<Edge<'_>> {
    let mut found = Vec::new();
    for selector in selectors(expr) {
        let Some(metric) = name_of(selector).and_then(|name| metrics::known(name).first().copied())
        else {
            continue;
        };
        let Some(edges) = metrics::buckets(metric.reporter, metric.signal) else { continue };
        for own in &selector.matchers.matchers {
            if own.name == "le" && own.op == MatchOp::Equal && own.value != "+Inf" {
                found.push(Edge { le: &own.value, metric, edges });
            }
        }
    }
    found
}

/// The histogram that a quantile is taken of, where its edges are known, and what the quantile is compared with in the query.
pub fn quantiles(expr: &Expr) -> Vec<(&'static Metric, &'static [f64], Option<f64>)> {
    let of = |expr: &Expr| {
        let Expr::Call(own) = bare(expr) else { return None };
        let metric = (own.func.name == "histogram_quantile").then(|| signals(expr)).into_iter();
        let metric = metric.flatten().next()?;
        Some((metric, metrics::buckets(metric.reporter, metric.signal)?))
    };
    if let Some((metric, edges)) = of(expr) {
        return vec![(metric, edges, None)];
    }
    if let Expr::Binary(own) = bare(expr)
        && compares(own.op.id())
        && let Some((metric, edges)) = of(&own.lhs)
    {
        return vec![(metric, edges, literal(&own.rhs))];
    }
    if let Expr::Binary(own) = bare(expr)
        && of_sets(own.op.id())
    {
        let mut all = quantiles(&own.lhs);
        all.extend(quantiles(&own.rhs));
        return all;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::query::Query;
    use super::*;

    fn check(query: &str, expect: Option<Level>) {
        assert_eq!(level(Query::read(query).expect(query).expr()), expect, "{query}");
    }

    #[test]
    fn levels_and_sums() {
        let latency = Some(Level::Latency);
        check("histogram_quantile(0.95, sum by (le) (rate(x_seconds_bucket[1m])))", latency);
        check("sum(rate(x_seconds_sum[5m])) / sum(rate(x_seconds_count[5m]))", latency);
        check("avg(model_ttft_seconds)", latency);
        check("job:ttft:p95", latency);
        check("max(vllm:kv_cache_usage_perc)", Some(Level::Share));
        check("vllm:kv_cache_usage_perc", Some(Level::Share));
        check("sum(vllm:kv_cache_usage_perc)", None);
        check("avg(vllm:num_requests_waiting)", Some(Level::PerReplica));
        check("sum(vllm:num_requests_waiting) / count(up)", Some(Level::PerReplica));
        check(
            "sum(rate(vllm:prefix_cache_hits_total[5m])) / sum(rate(vllm:prompt_tokens_total[5m]))",
            None,
        );
        check("sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)", None);
        check("sum(rate(vllm:prompt_tokens_total[2m]))", None);
        check("sum(rate(dynamo_frontend_input_sequence_tokens_sum[2m]))", None);
        check("max(plimsoll_desired_replicas)", None);
        check("max(histogram_quantile(0.9, sum by (le) (rate(a_bucket[1m])))) * 1000", latency);
    }

    #[test]
    fn divisions_by_nothing() {
        let bad = |query: &str| divides_by_nothing(Query::read(query).expect(query).expr());
        assert!(bad("sum(rate(a_sum[5m])) / sum(rate(a_count[5m]))"));
        assert!(!bad("sum(rate(a_sum[5m])) / clamp_min(sum(rate(a_count[5m])), 1)"));
        assert!(!bad("sum(rate(a_sum[5m])) / (sum(rate(a_count[5m])) > 0)"));
        assert!(!bad("sum(a) / 3"));
        assert!(!bad(
            "sum(rate(a_sum[5m])) / sum(rate(a_count[5m])) and sum(rate(a_count[5m])) > 0"
        ));
    }

    #[test]
    fn request_rates() {
        let rate = |query: &str| is_request_rate(Query::read(query).expect(query).expr());
        assert!(rate("sum(rate(http_requests_total[1m]))"));
        assert!(rate("sum(rate(vllm:request_success_total[1m])) * 60"));
        assert!(rate("sum(rate(tgi_request_count[1m]))"));
        assert!(!rate("sum(rate(vllm:prompt_tokens_total[1m]))"));
        assert!(!rate("sum(rate(a_seconds_sum[1m])) / sum(rate(a_seconds_count[1m]))"));
        assert!(!rate("sum(vllm:num_requests_waiting)"));
    }
}
