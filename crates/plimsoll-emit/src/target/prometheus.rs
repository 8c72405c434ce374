//! Recording rules and alerts: whether the fleet is above its load line, what was forecast was missed, promises are kept, and signals are there.

use plimsoll_fleet::metrics::{Signal, buckets};
use plimsoll_study::PoolLine;

use super::pool::{DIGITS, Emission, Pool, SHARE_WINDOW, WINDOW, promql_text, whole_up};
use crate::manifest::{Item, list, map, map_of, quoted, rounded_down, text};

/// What demand does is looked at in so many parts of a step of the forecast.
const PARTS_OF_A_STEP: u32 = 4;
/// Decisions that are missed before a signal is taken for lost.
const MISSED: f64 = 4.0;

pub(super) fn emit(own: &mut Emission<'_>) {
    for pool in own.pools.clone() {
        let Some(group) = group(own, &pool) else { continue };
        let mut metadata = own.metadata(&format!("plimsoll-{}", pool.name), Some(&pool));
        if own.settings.rule_labels.is_empty() {
            own.note("a Prometheus reads a PrometheusRule only where its labels are those it selects by: `--rule-label release=kube-prometheus-stack` sets one");
        } else {
            let labels = &own.settings.rule_labels;
            let labels = labels.iter().map(|(name, value)| (name.clone(), quoted(value)));
            metadata = metadata.with("labels", map_of(labels.collect()));
        }
        let document = map([
            ("apiVersion", text("monitoring.coreos.com/v1")),
            ("kind", text("PrometheusRule")),
            ("metadata", metadata),
            ("spec", map([("groups", list(vec![group]))])),
        ]);
        own.file(format!("prometheus-{}.yaml", pool.name), &[document]);
    }
}

/// The same for a Prometheus that reads files.
pub(super) fn emit_plain(own: &mut Emission<'_>) {
    let mut groups = Vec::new();
    for pool in own.pools.clone() {
        groups.extend(group(own, &pool));
    }
    if !groups.is_empty() {
        own.file("prometheus-rules.yaml".to_owned(), &[map([("groups", list(groups))])]);
    }
}

/// A recording rule of a pool.
fn record(pool: &Pool<'_>, name: &str, resource: Option<&str>, expr: &str) -> Item {
    let mut labels = vec![("pool".to_owned(), quoted(&pool.pool.name))];
    labels.extend(resource.map(|own| ("resource".to_owned(), text(own))));
    map([("record", text(name)), ("expr", text(expr)), ("labels", map_of(labels))])
}

struct Alert<'a> {
    name: &'a str,
    expr: String,
    lasts: String,
    severity: &'a str,
    summary: &'a str,
    description: String,
    why: String,
}

fn alert(own: &Emission<'_>, pool: &Pool<'_>, alert: Alert<'_>) -> Item {
    map([
        ("alert", text(alert.name)),
        ("expr", text(alert.expr)),
        ("for", text(alert.lasts)),
        (
            "labels",
            map([
                ("severity", text(alert.severity)),
                ("pool", quoted(template_text(&pool.pool.name))),
            ]),
        ),
        (
            "annotations",
            map([
                ("summary", text(format!("{}: {}", template_text(&pool.pool.name), alert.summary))),
                ("description", text(alert.description)),
                ("plimsoll_plan", quoted(template_text(&own.plan.id))),
            ]),
        ),
    ])
    .because(alert.why)
}

/// A text that stands for itself in the templates of alerts.
fn template_text(text: &str) -> String {
    text.replace("{{", "{{`{{`}}")
}

fn group(own: &mut Emission<'_>, pool: &Pool<'_>) -> Option<Item> {
    let (Some(queries), Some(engine)) = (pool.queries.clone(), pool.engine.clone()) else {
        own.note_unknown_engine(pool);
        return None;
    };
    let interval = whole_up(pool.policy.map_or(15.0, |policy| policy.sync_period_s)).max(1);
    let mut rules = Vec::new();
    let recorded = [
        ("plimsoll:fresh_tokens:rate2m", &queries.fresh_tokens),
        ("plimsoll:output_tokens:rate2m", &queries.output_tokens),
        ("plimsoll:requests:rate2m", &queries.requests),
        ("plimsoll:in_flight:sum", &queries.in_flight),
        ("plimsoll:waiting:sum", &queries.waiting),
        ("plimsoll:kv_share:max", &queries.kv_share),
        ("plimsoll:replicas:count", &queries.replicas),
    ];
    for (name, query) in recorded {
        match query {
            Some(query) => rules.push(record(pool, name, None, query)),
            None => own.note(format!(
                "`{}`: `{name}` is left out, because `{}` does not report it",
                pool.pool.name, pool.pool.engine
            )),
        }
    }
    let of_pool = format!("{{pool={}}}", promql_text(&pool.pool.name));
    if let (Some(line), Some(_)) = (pool.line, &queries.replicas) {
        rules.extend(load_line(own, pool, line, &of_pool));
    }
    if queries.fresh_tokens.is_some() {
        rules.push(forecast_miss(own, pool, &of_pool));
    }
    if let Some(ttft) = pool.line.and_then(|line| line.ttft_s) {
        let kept = Kept {
            signal: Signal::Ttft,
            seconds: ttft,
            record: "plimsoll:ttft_good:ratio_rate5m",
            alert: "PlimsollTtftMissed",
            what: "to the first token",
            from: "promised to the first token",
        };
        rules.extend(promise(own, pool, &engine, &kept));
    }
    if let Some(age) = pool.limits.and_then(|limits| limits.queue_age.value) {
        let kept = Kept {
            signal: Signal::QueueTime,
            seconds: age,
            record: "plimsoll:queue_age_good:ratio_rate5m",
            alert: "PlimsollQueueTooOld",
            what: "in line",
            from: "that a call may wait",
        };
        rules.extend(promise(own, pool, &engine, &kept));
    }
    if let Some(preemptions) = &queries.preemptions {
        rules.push(alert(own, pool, Alert {
            name: "PlimsollKvOvercommit",
            expr: format!("{preemptions} > 0"),
            lasts: "10m".to_owned(),
            severity: "ticket",
            summary: "sequences lose their cache and are computed again",
            description: "The plan has none lose their cache. Hold sequences at once and the longest context of the engine against the plan's limits; fewer sequences at once are faster than taking turns.".to_owned(),
            why: "sequences/s that lost their blocks: none is planned, so any that go on are too many".to_owned(),
        }));
    }
    if let Some(running) = engine.metric(Signal::Running) {
        let lasts = whole_up(MISSED * pool.policy.map_or(15.0, |policy| policy.sync_period_s));
        rules.push(alert(own, pool, Alert {
            name: "PlimsollSignalLost",
            expr: format!("absent({})", engine.of(running, "")),
            lasts: format!("{lasts}s"),
            severity: "page",
            summary: "no replica reports",
            description: "Autoscalers stand on this signal. Look whether pods are there, whether they are scraped, and whether the engine's version still has this metric (plimsoll doctor).".to_owned(),
            why: format!("{MISSED} decisions of {interval} s without a word"),
        }));
    }
    Some(map([
        ("name", quoted(format!("plimsoll.{}", pool.name))),
        ("interval", text(format!("{interval}s"))),
        ("rules", list(rules)),
    ]))
}

fn load_line(own: &Emission<'_>, pool: &Pool<'_>, line: &PoolLine, of_pool: &str) -> Vec<Item> {
    let resources = [
        (
            "fresh_tokens",
            "plimsoll:fresh_tokens:rate2m",
            line.fresh_tokens_per_s,
            "fresh prompt tokens/s",
        ),
        (
            "output_tokens",
            "plimsoll:output_tokens:rate2m",
            line.output_tokens_per_s,
            "output tokens/s",
        ),
        ("in_flight", "plimsoll:in_flight:sum", line.in_flight, "calls in flight"),
    ];
    let queries = pool.queries.as_ref();
    let mut rules = Vec::new();
    for (resource, series, value, unit) in resources {
        let known = match resource {
            "fresh_tokens" => queries.is_some_and(|own| own.fresh_tokens.is_some()),
            "output_tokens" => queries.is_some_and(|own| own.output_tokens.is_some()),
            _ => queries.is_some_and(|own| own.in_flight.is_some()),
        };
        let Some(value) = value.filter(|value| known && *value > 0.0) else { continue };
        let value = rounded_down(value, DIGITS);
        let expr = format!("{series}{of_pool} / ({value} * plimsoll:replicas:count{of_pool})");
        rules.push(record(pool, "plimsoll:load_line:ratio", Some(resource), &expr).because(
            format!("{unit} of a replica at its load line, rounded down; 1 is at the line"),
        ));
    }
    if rules.is_empty() {
        return rules;
    }
    rules.push(alert(own, pool, Alert {
        name: "PlimsollAboveLoadLine",
        expr: format!("max by (pool) (plimsoll:load_line:ratio{of_pool}) > 1"),
        lasts: WINDOW.to_owned(),
        severity: "page",
        summary: "more load than replicas carry within their promises",
        description: "{{ $value | humanizePercentage }} of the load line. Look whether replicas are missing (plimsoll:replicas:count against the plan), then whether demand is above its forecast, then whether calls are longer than planned.".to_owned(),
        why: "beyond the load line the plan does not vouch for its promises".to_owned(),
    }));
    rules
}

fn forecast_miss(own: &Emission<'_>, pool: &Pool<'_>, of_pool: &str) -> Item {
    let forecast = &own.plan.forecast;
    let quantile = forecast.quantile;
    let lasts = forecast.step_s / PARTS_OF_A_STEP;
    let name = promql_text(&pool.pool.name);
    alert(own, pool, Alert {
        name: "PlimsollForecastMiss",
        expr: format!(
            "plimsoll:fresh_tokens:rate2m{of_pool} > on (pool) max by (pool) (plimsoll_forecast_tokens{{pool={name},resource=\"fresh_tokens\",quantile=\"{quantile}\"}})"
        ),
        lasts: format!("{}s", lasts.max(60)),
        severity: "ticket",
        summary: "more comes than was planned for",
        description: "{{ $value | humanize }} fresh prompt tokens/s. Replicas follow as long as there are any: plan again from what was measured (plimsoll plan), and raise quotas before they bind.".to_owned(),
        why: format!(
            "the demand that was planned for, its {quantile} quantile, as `plimsoll watch` exports it; lasts 1/{PARTS_OF_A_STEP} of a step of {} s; silent where nobody watches",
            forecast.step_s
        ),
    })
}

/// A promise in seconds that a histogram can be held against.
struct Kept<'a> {
    signal: Signal,
    seconds: f64,
    record: &'a str,
    alert: &'a str,
    what: &'a str,
    from: &'a str,
}

/// A promise on an edge of the engine's buckets, where those are known; otherwise as a quantile, which lies within a bucket.
fn promise(
    own: &mut Emission<'_>,
    pool: &Pool<'_>,
    engine: &plimsoll_live::Selector,
    kept: &Kept<'_>,
) -> Vec<Item> {
    let Kept { signal, seconds, what, from, .. } = *kept;
    let share = own.plan.attainment;
    let edges = buckets(engine.reporter, signal);
    let edge = edges.and_then(|edges| edges.iter().copied().find(|edge| *edge >= seconds));
    let of_pool = format!("{{pool={}}}", promql_text(&pool.pool.name));
    let seconds_text = rounded_down(seconds, DIGITS);
    let description = format!(
        "The plan promises {share} of calls to take {seconds_text} s or less {what}. Look at PlimsollAboveLoadLine first; where load is below its line, look at longer prompts, a colder cache or a slow replica."
    );
    let summary = format!("too many calls take more than {seconds_text} s {what}");
    let one = |expr: String, why: String| Alert {
        name: kept.alert,
        expr,
        lasts: SHARE_WINDOW.to_owned(),
        severity: "page",
        summary: "",
        description: description.clone(),
        why,
    };
    if let Some(edge) = edge
        && let Some(query) = engine.share_within(signal, edge, SHARE_WINDOW)
    {
        let looser = if edge > seconds {
            own.note(format!(
                "`{}`: the histogram of {} has no edge at the {seconds_text} s {from}; {edge} s is the next, and the alert is as much looser",
                pool.pool.name, pool.pool.engine
            ));
            format!("the next edge of its histogram above the {seconds_text} s {from}: looser")
        } else {
            format!("the {seconds_text} s {from}, an edge of its histogram")
        };
        let rule = record(pool, kept.record, None, &query)
            .because(format!("share of calls that take {edge} s or less {what}; {looser}"));
        let raised = Alert {
            summary: &summary,
            ..one(
                format!("{}{of_pool} < {share}", kept.record),
                format!("the share of calls that must be good is {share}"),
            )
        };
        return vec![rule, alert(own, pool, raised)];
    }
    match engine.quantile(signal, share, SHARE_WINDOW) {
        Some(query) => {
            let raised = Alert {
                summary: &summary,
                ..one(
                    format!("{query} > {seconds_text}"),
                    format!(
                        "the {seconds_text} s {from}, rounded down, at the share of calls that must be good, {share}; a quantile is as exact as the bucket that it lies in"
                    ),
                )
            };
            vec![alert(own, pool, raised)]
        }
        None => {
            own.note(format!(
                "`{}`: {} is left out, because `{}` does not count seconds {what}",
                pool.pool.name, kept.alert, pool.pool.engine
            ));
            Vec::new()
        }
    }
}
