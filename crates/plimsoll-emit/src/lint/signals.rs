//! Rules about what is asked of Prometheus, and what the answer is held against.

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::{self, Metric, MetricKind, Reporter, Signal};
use plimsoll_fleet::promql::{BinaryOp, Expr, QueryError, ValueType};

use super::known::{Files, Known};
use super::manifest::{MetricType, RuleQuery, Scaler, Trigger};
use super::measure::{self, Level};
use super::names::{Measured, between, edges, quantile, versions};
use super::query::{Query, bare};
use super::spread::Series;
use super::{Found, shown};
use crate::yaml::{At, Node};

/// Calls in line for a replica below which a target is small.
const QUEUE_SMALL: f64 = 10.0;
/// Sequences that vLLM runs at once at most where it is not told, on the largest devices.
const SEQUENCES_DEFAULT: f64 = 1024.0;
/// How far from its target a metric may be for nothing to be done, where nothing is said.
const TOLERANCE: f64 = 0.1;

/// What is scaled on.
pub(super) fn check(own: &Scaler<'_>, files: &Files<'_>, found: &mut Found<'_>) {
    let known = files.of_scaler(own);
    for trigger in &own.triggers {
        if let Some(node) = trigger.query {
            let text = node.text().unwrap_or("");
            match Query::read(text) {
                Ok(query) => {
                    let measured = Measured { node, query: Some(&query), name: None };
                    series(trigger, &query, node, found);
                    of_trigger(own, trigger, &measured, &known, found);
                    versions(&measured, None, &|reporter| version(&known, files, reporter), found);
                    edges(query.expr(), node.at, found);
                    between(trigger, &query, node.at, found);
                    if measure::divides_by_nothing(query.expr()) {
                        let _ = found
                            .warning(
                                19,
                                node.at,
                                "it divides by a rate that is 0 when nobody calls".to_owned(),
                            )
                            .fix("… / clamp_min(…, 1), or `… and … > 0`");
                    }
                }
                Err(error) => broken(node, &error, found),
            }
        } else if let Some(node) = trigger.metric {
            let text = node.text().unwrap_or("");
            // AIBrix leaves out what the engine's names begin with.
            let engine = known.engine.unwrap_or(Reporter::Vllm);
            let full = format!("{}{text}", engine.prefix());
            let bare = own.kind == "PodAutoscaler" && metrics::reporter_of(text).is_none();
            let prefix = bare.then(|| engine.prefix());
            let name = if bare { full.as_str() } else { text };
            let measured = Measured { node, query: None, name: Some(name) };
            of_trigger(own, trigger, &measured, &known, found);
            versions(&measured, prefix, &|reporter| version(&known, files, reporter), found);
        }
        if matches!(trigger.kind, "cpu" | "memory") && known.llm {
            busy(trigger.node.at, trigger.kind, found);
        }
    }
    let metric = own.spec.find("predictor.scaleMetric");
    if let Some(node) = metric.filter(|node| matches!(node.text(), Some("rps" | "qps"))) {
        calls(node.at, found);
    }
    let noted = own.node.find("metadata.annotations");
    let noted = noted.and_then(|own| own.get("autoscaling.knative.dev/metric"));
    if let Some(node) = noted.filter(|node| node.text() == Some("rps")) {
        calls(node.at, found);
    }
}

/// Recording rules and alerts.
pub(super) fn check_rules(rules: &[RuleQuery<'_>], files: &Files<'_>, found: &mut Found<'_>) {
    for rule in rules {
        let node = rule.expr;
        match Query::read(node.text().unwrap_or("")) {
            Ok(query) => {
                let measured = Measured { node, query: Some(&query), name: None };
                versions(&measured, None, &|reporter| files.version_of(reporter), found);
                edges(query.expr(), node.at, found);
                for (metric, edges, bound) in measure::quantiles(query.expr()) {
                    if let Some(bound) = bound {
                        quantile(metric, edges, bound, node.at, found);
                    }
                }
            }
            Err(error) => broken(node, &error, found),
        }
    }
}

fn version(known: &Known<'_>, files: &Files<'_>, reporter: Reporter) -> Option<Version> {
    known.version.filter(|_| known.engine == Some(reporter)).or_else(|| files.version_of(reporter))
}

/// L23.
fn broken(node: &Node, error: &QueryError, found: &mut Found<'_>) {
    let message =
        format!("this PromQL cannot be read: {}, at character {}", error.message, error.at + 1);
    let _ = found.error(23, node.at, message);
}

/// L2.
fn series(trigger: &Trigger<'_>, query: &Query, node: &Node, found: &mut Found<'_>) {
    if query.expr().value_type() == ValueType::Scalar {
        // Prometheus answers with a bare number then, and KEDA looks for series.
        let message = "the query gives a number that is no series, which KEDA cannot read";
        let fix = format!("vector({})", node.text().unwrap_or("").trim());
        let _ = found.error(2, node.at, message.to_owned()).fix(fix);
        return;
    }
    let message = match query.series() {
        Series::One => return,
        Series::Several(differs) => {
            format!("the query may give several series ({differs}), and KEDA takes only one")
        }
        Series::Refused(clash) => format!("Prometheus may refuse the query: {clash}"),
    };
    let mut edit = None;
    let mut fix = "sum(…)".to_owned();
    if let Expr::Selector(_) = bare(query.expr()) {
        let kind = measure::signals(query.expr()).first().map(|metric| metric.kind);
        let function = match (kind, trigger.metric_type) {
            (Some(MetricKind::Share), _) => Some("max"),
            (Some(MetricKind::Gauge), MetricType::AverageValue) => Some("sum"),
            _ => None,
        };
        if let Some(function) = function {
            fix = format!("{function}({})", node.text().unwrap_or("").trim());
            edit = found.source.wrap(node, function);
        }
    }
    found.error(2, node.at, message).fix(fix).edit(edit);
}

/// L1, L6, L7, L15, L16 and L17.
fn of_trigger(
    own: &Scaler<'_>,
    trigger: &Trigger<'_>,
    measured: &Measured<'_>,
    known: &Known<'_>,
    found: &mut Found<'_>,
) {
    let at = measured.node.at;
    // A formula replaces what triggers are compared with by themselves.
    let formula = own.spec.find("advanced.scalingModifiers.formula").is_some();
    if trigger.metric_type == MetricType::AverageValue
        && !formula
        && let Some(level) = measured.level()
    {
        averaged(own, trigger, level, at, found);
    }
    if let Some(target) = trigger.target().filter(|_| !formula) {
        bounded(own, trigger, measured, known, target, found);
        queue(own, trigger, measured, target, found);
        planned(trigger, measured, known, target, found);
    }
    let rate = match (measured.query, measured.name) {
        (Some(query), _) => measure::is_request_rate(query.expr()),
        (None, Some(name)) => measure::names_request_rate(name),
        (None, None) => false,
    };
    if rate {
        calls(at, found);
    }
    if let Some(name) = measured.names().into_iter().find(|name| measure::gpu_duty(name)) {
        busy(at, name, found);
    }
    let resource = trigger.kind == "Resource" || trigger.kind == "ContainerResource";
    if resource && known.llm {
        busy(at, measured.name.unwrap_or("a resource"), found);
    }
}

/// L1.
fn averaged(own: &Scaler<'_>, trigger: &Trigger<'_>, level: Level, at: At, found: &mut Found<'_>) {
    let replicas = own.max.and_then(Node::number).filter(|max| *max >= 2.0).unwrap_or(10.0);
    let example = trigger.target().filter(|target| *target > 0.0).map(|target| {
        let value = 0.9 * target;
        format!(
            ": {} replicas at {} ask for ceil({} / {}) = 1",
            shown(replicas),
            shown(value),
            shown(value),
            shown(target)
        )
    });
    let message = format!(
        "this is {}, and AverageValue divides it by the replicas{}",
        level.says(),
        example.unwrap_or_default()
    );
    let (fix, edit) = match own.kind {
        "ScaledObject" => {
            let edit = match trigger.node.get("metricType") {
                Some(value) => found.source.replace(value, "Value"),
                None => super::edits::entry(trigger.node, "metadata")
                    .and_then(|(key, _)| found.source.insert_before(key, "metricType: Value")),
            };
            ("metricType: Value".to_owned(), edit)
        }
        "HorizontalPodAutoscaler" => {
            let target = trigger.target.and_then(Node::text).unwrap_or("…");
            (format!("target: {{type: Value, value: \"{target}\"}}"), None)
        }
        _ => ("a ScaledObject of your own with `metricType: Value`".to_owned(), None),
    };
    found.error(1, at, message).fix(fix).edit(edit);
}

/// L6.
fn bounded(
    own: &Scaler<'_>,
    trigger: &Trigger<'_>,
    measured: &Measured<'_>,
    known: &Known<'_>,
    target: f64,
    found: &mut Found<'_>,
) {
    let metrics = measured.metrics();
    let scaled = measured.query.is_some_and(|query| has_factor(query.expr()));
    let all = |test: &dyn Fn(&Metric) -> bool| {
        !metrics.is_empty()
            && metrics.len() == measured.names().len()
            && metrics.iter().all(|own| test(own))
    };
    let (bound, what) = if scaled || target <= 0.0 {
        return;
    } else if all(&|own| own.kind == MetricKind::Share) {
        (1.0, "a share of the cache is 1 at most".to_owned())
    } else if all(&|own| own.signal == Signal::Running) && trigger.metric_type != MetricType::Value
    {
        let told = known.max_num_seqs;
        let planned = known.pool.and_then(|pool| pool.line).map(|line| line.max_num_seqs);
        match (told, planned, known.engine) {
            (Some(most), ..) => (most, format!("a replica runs {} sequences at most", shown(most))),
            (None, Some(most), _) => {
                let most = most.to_string().parse().unwrap_or(f64::INFINITY);
                (most, format!("the plan's replicas run {} sequences at most", shown(most)))
            }
            (None, None, Some(Reporter::Vllm)) => (
                SEQUENCES_DEFAULT,
                "vLLM runs 1024 sequences or fewer where it is not told".to_owned(),
            ),
            _ => return,
        }
    } else {
        return;
    };
    let at = trigger.target.unwrap_or(measured.node).at;
    let lower = 0.8 * bound;
    let fix = format!("\"{}\"", shown(if bound > 10.0 { lower.floor() } else { lower }));
    if target >= bound {
        let message = format!("{what}, so {} is never exceeded", shown(target));
        let _ = found.error(6, at, message).fix(fix);
        return;
    }
    let tolerance = own.behavior.and_then(|own| own.find("scaleUp.tolerance")?.number());
    let tolerance = tolerance.unwrap_or(TOLERANCE);
    if bound / target <= 1.0 + tolerance && own.kind != "PodAutoscaler" {
        let message = format!(
            "{what}, which is {}% above {}: nothing is done within {}%",
            shown((bound / target - 1.0) * 100.0),
            shown(target),
            shown(tolerance * 100.0)
        );
        let _ = found.note(6, at, message).fix(fix);
    }
}

/// Whether a query multiplies or divides, so that bounds of metrics are not its own.
fn has_factor(expr: &Expr) -> bool {
    let factor = matches!(expr, Expr::Binary(binary)
        if matches!(binary.op, BinaryOp::Mul | BinaryOp::Div | BinaryOp::Add));
    factor || expr.children().into_iter().any(has_factor)
}

/// L7.
fn queue(
    own: &Scaler<'_>,
    trigger: &Trigger<'_>,
    measured: &Measured<'_>,
    target: f64,
    found: &mut Found<'_>,
) {
    let metrics = measured.metrics();
    let waiting = !metrics.is_empty()
        && metrics.iter().all(|own| matches!(own.signal, Signal::Waiting | Signal::WaitingForRoom));
    let policies = own.behavior.and_then(|own| own.find("scaleUp.policies"));
    let policies = policies.map(Node::items).unwrap_or_default();
    let capped = !policies.is_empty()
        && policies.iter().all(|own| {
            let percent = own.get("type").and_then(Node::text) == Some("Percent");
            !percent || own.get("value").and_then(Node::number).is_some_and(|value| value < 100.0)
        });
    if !waiting || capped || target <= 0.0 || target >= QUEUE_SMALL {
        return;
    }
    if own.kind == "PodAutoscaler" || trigger.metric_type == MetricType::Value {
        return;
    }
    let line = 50.0 * target;
    let message = format!(
        "{} calls in line ask for {} / {} = 50 replicas, and nothing bounds the step",
        shown(line),
        shown(line),
        shown(target)
    );
    let _ = found
        .warning(7, trigger.target.unwrap_or(measured.node).at, message)
        .fix("behavior:\n  scaleUp:\n    policies: [{type: Pods, value: 2, periodSeconds: 180}]");
}

/// L17, for thresholds.
fn planned(
    trigger: &Trigger<'_>,
    measured: &Measured<'_>,
    known: &Known<'_>,
    target: f64,
    found: &mut Found<'_>,
) {
    let Some(pool) = known.pool else { return };
    let Some(policy) = pool.policy else { return };
    let metrics = measured.metrics();
    let is =
        |all: &[Signal]| !metrics.is_empty() && metrics.iter().all(|own| all.contains(&own.signal));
    let signal = if is(&[Signal::Waiting, Signal::WaitingForRoom]) {
        "queue_depth"
    } else if is(&[Signal::Running, Signal::Waiting, Signal::InFlight]) {
        "in_flight"
    } else if is(&[Signal::FreshTokens]) {
        "fresh_tokens"
    } else if is(&[Signal::KvShare]) {
        "kv"
    } else if is(&[Signal::Ttft]) && measured.level() == Some(Level::Latency) {
        "ttft_p90"
    } else {
        return;
    };
    let Some(own) = policy.thresholds.iter().find(|own| own.signal == signal) else { return };
    let Some(value) = own.value else { return };
    // The plan's number may have been rounded on its way.
    if target > value * 1.005 {
        let message = format!(
            "{} is above the plan's {} {} for pool `{}`",
            shown(target),
            shown(value),
            own.unit,
            pool.pool.name
        );
        let at = trigger.target.unwrap_or(measured.node).at;
        let _ = found.warning(17, at, message).fix(format!("\"{}\"", shown(value)));
    }
}

/// L15.
fn calls(at: At, found: &mut Found<'_>) {
    let _ = found
        .warning(15, at, "it scales on calls in a second, whatever a call asks for".to_owned())
        .fix("fresh prompt tokens in a second, or calls in flight: sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)");
}

/// L16.
fn busy(at: At, what: &str, found: &mut Found<'_>) {
    let _ = found
        .warning(16, at, format!("`{what}` does not say how much an engine could still take"))
        .fix("calls in flight: sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)");
}
