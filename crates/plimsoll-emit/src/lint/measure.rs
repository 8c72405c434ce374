//! What the number of a query is: a sum that grows with demand, or a level that is the same however many replicas share it.

use plimsoll_fleet::metrics::{self, Metric, MetricKind, Signal};
use plimsoll_fleet::promql::{AggregateOp, BinaryOp, Expr, MatchOp};

use super::query::{bare, counts, literal, metrics as names};

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
        Expr::Selector(selector) | Expr::Range(selector, _) => {
            selector.metric().and_then(level_of_name)
        }
        Expr::Paren(inner) | Expr::Unary(_, inner) => level(inner),
        Expr::Subquery(subquery) => level(&subquery.expr),
        Expr::Aggregate(aggregate) => {
            let inner = level(&aggregate.expr);
            match aggregate.op {
                // The sum of shares, by replicas, is their mean: that is how it should be.
                AggregateOp::Sum => inner.filter(|level| *level == Level::Latency),
                op if counts(op) => None,
                AggregateOp::Avg | AggregateOp::Max | AggregateOp::Min | AggregateOp::Quantile => {
                    let engine = names(&aggregate.expr).into_iter().any(of_engine);
                    inner.or(engine.then_some(Level::PerReplica))
                }
                _ => inner,
            }
        }
        Expr::Call(call) => match call.function.name {
            "histogram_fraction" => Some(Level::Share),
            "histogram_quantile" | "histogram_avg" => Some(Level::Latency),
            name if is_rate(name) => None,
            "count_over_time" | "absent" | "absent_over_time" | "time" | "timestamp" => None,
            _ => call.args.iter().find_map(level),
        },
        Expr::Binary(binary) => {
            let (left, right) = (&binary.left, &binary.right);
            let literals = literal(left).is_some() || literal(right).is_some();
            match binary.op {
                BinaryOp::Div if !literals => divided(left, right).or(level(left)),
                BinaryOp::Mul if !literals => None,
                op if op.compares() || op == BinaryOp::And => level(left),
                _ => level(left).or(level(right)),
            }
        }
        Expr::Number(_) | Expr::Text(_) => None,
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
        Expr::Selector(selector) | Expr::Range(selector, _) => {
            selector.metric().map_or(Unit::Unknown, unit_of_name)
        }
        Expr::Aggregate(aggregate) if counts(aggregate.op) => Unit::Pods,
        Expr::Aggregate(aggregate) => unit(&aggregate.expr),
        Expr::Paren(inner) | Expr::Unary(_, inner) => unit(inner),
        Expr::Subquery(subquery) => unit(&subquery.expr),
        Expr::Call(call) if call.function.name == "histogram_quantile" => Unit::Unknown,
        Expr::Call(call) => {
            let mut parts = call.args.iter().map(unit);
            parts.find(|unit| *unit != Unit::Unknown).unwrap_or(Unit::Unknown)
        }
        Expr::Binary(binary) => match (binary.op, literal(&binary.left), literal(&binary.right)) {
            (BinaryOp::Mul | BinaryOp::Div, None, Some(_)) => unit(&binary.left),
            (BinaryOp::Mul, Some(_), None) => unit(&binary.right),
            (BinaryOp::Mul | BinaryOp::Div, ..) => Unit::Unknown,
            _ => unit(&binary.left),
        },
        Expr::Number(_) | Expr::Text(_) => Unit::Unknown,
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
    let known = names(expr).into_iter().filter_map(|name| metrics::known(name).first().copied());
    known.collect()
}

/// Whether the number is calls in a second.
pub fn is_request_rate(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_request_rate(inner),
        Expr::Subquery(subquery) => is_request_rate(&subquery.expr),
        Expr::Aggregate(aggregate) => !counts(aggregate.op) && is_request_rate(&aggregate.expr),
        Expr::Call(call) if is_rate(call.function.name) => names(expr)
            .into_iter()
            .any(|name| !name.ends_with("_bucket") && unit_of_name(name) == Unit::Calls),
        Expr::Call(call) => call.args.iter().any(is_request_rate),
        Expr::Binary(binary) => {
            let (left, right) = (&binary.left, &binary.right);
            match (binary.op, literal(right)) {
                (BinaryOp::Add | BinaryOp::Sub, _) => {
                    is_request_rate(left) && is_request_rate(right)
                }
                (BinaryOp::Mul | BinaryOp::Div, Some(_)) => is_request_rate(left),
                (BinaryOp::Mul, None) => literal(left).is_some() && is_request_rate(right),
                (BinaryOp::Div, None) => false,
                _ => is_request_rate(left),
            }
        }
        Expr::Selector(selector) | Expr::Range(selector, _) => {
            selector.metric().is_some_and(names_request_rate)
        }
        Expr::Unary(..) | Expr::Number(_) | Expr::Text(_) => false,
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
    if let Expr::Binary(binary) = expr {
        // A comparison drops what is not a number, and `and` is how a division is guarded.
        if binary.op.compares() || binary.op == BinaryOp::And {
            return false;
        }
        if binary.op == BinaryOp::Div && has_rate(&binary.right) && !guarded(&binary.right) {
            return true;
        }
    }
    expr.children().into_iter().any(divides_by_nothing)
}

fn has_rate(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if is_rate(call.function.name))
        || expr.children().into_iter().any(has_rate)
}

fn guarded(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Call(call) => matches!(call.function.name, "clamp_min" | "clamp"),
        Expr::Binary(binary) => {
            let sides = [&binary.left, &binary.right];
            let more = binary.op == BinaryOp::Add
                && sides.iter().any(|side| literal(side).is_some_and(|n| n > 0.0));
            binary.op.compares() || more
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
    for selector in expr.selectors() {
        let metric = selector.metric();
        let Some(metric) = metric.and_then(|name| metrics::known(name).first().copied()) else {
            continue;
        };
        let Some(edges) = metrics::buckets(metric.reporter, metric.signal) else { continue };
        for matcher in &selector.matchers {
            if matcher.label == "le" && matcher.op == MatchOp::Equal && matcher.value != "+Inf" {
                found.push(Edge { le: &matcher.value, metric, edges });
            }
        }
    }
    found
}

/// The histogram that a quantile is taken of, where its edges are known, and what the quantile is compared with in the query.
pub fn quantiles(expr: &Expr) -> Vec<(&'static Metric, &'static [f64], Option<f64>)> {
    let of = |expr: &Expr| {
        let Expr::Call(call) = bare(expr) else { return None };
        let quantile = call.function.name == "histogram_quantile";
        let metric = quantile.then(|| signals(expr)).into_iter();
        let metric = metric.flatten().next()?;
        Some((metric, metrics::buckets(metric.reporter, metric.signal)?))
    };
    if let Some((metric, edges)) = of(expr) {
        return vec![(metric, edges, None)];
    }
    if let Expr::Binary(binary) = bare(expr) {
        if binary.op.compares()
            && let Some((metric, edges)) = of(&binary.left)
        {
            return vec![(metric, edges, literal(&binary.right))];
        }
        if binary.op.is_for_sets() {
            let mut all = quantiles(&binary.left);
            all.extend(quantiles(&binary.right));
            return all;
        }
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
