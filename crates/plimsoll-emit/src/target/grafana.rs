//! A dashboard: what was forecast against what comes, and how far from the load line it is.

use serde_json::{Value, json};

use super::pool::{DIGITS, Emission, Pool, WINDOW, promql_text};
use crate::manifest::rounded_down;
use plimsoll_fleet::metrics::Signal;

/// The version of a dashboard's shape.
const SCHEMA: u32 = 39;
/// Columns of a row.
const COLUMNS: usize = 24;
/// Panels side by side.
const ACROSS: usize = 3;
/// Lines that a panel is high.
const HIGH: usize = 8;

/// A panel: what it shows, in what unit, and by which questions.
struct Panel {
    title: String,
    unit: &'static str,
    why: String,
    asked: Vec<(String, String)>,
}

pub(super) fn emit(own: &mut Emission<'_>) {
    let mut panels: Vec<Value> = Vec::new();
    let mut top = 0;
    for pool in own.pools.clone() {
        if pool.queries.is_none() {
            own.note_unknown_engine(&pool);
            continue;
        }
        panels.push(json!({
            "id": panels.len() + 1,
            "type": "row",
            "title": pool.pool.name,
            "collapsed": false,
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": top},
            "panels": [],
        }));
        top += 1;
        let of_pool = of_pool(own, &pool);
        for (at, panel) in of_pool.iter().enumerate() {
            let width = COLUMNS / ACROSS;
            let place = json!({
                "h": HIGH, "w": width, "x": at % ACROSS * width, "y": top + at / ACROSS * HIGH,
            });
            panels.push(drawn(panel, panels.len() + 1, &place));
        }
        top += of_pool.len().div_ceil(ACROSS) * HIGH;
    }
    if panels.is_empty() {
        return;
    }
    let plan = own.plan;
    let dashboard = json!({
        "uid": uid(&plan.id, &plan.name),
        "title": format!("Plimsoll: {}", plan.name),
        "description": own.header().join(" "),
        "tags": ["plimsoll"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": true,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": [{
            "name": "datasource",
            "label": "Prometheus",
            "type": "datasource",
            "query": "prometheus",
            "current": {},
            "hide": 0,
        }]},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    });
    own.raw_file("grafana-plimsoll.json".to_owned(), format!("{dashboard:#}\n"));
    own.note("forecasts and recommended replicas are those that `plimsoll watch` exports: their lines are empty where it does not run");
}

/// Names the dashboard: 40 characters at most, the same for the same plan.
fn uid(id: &str, name: &str) -> String {
    let plain = |text: &str| -> String {
        let c = text.chars().map(|c| c.to_ascii_lowercase());
        c.map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    };
    format!("plimsoll-{}-{}", plain(id), plain(name)).chars().take(40).collect()
}

fn of_pool(own: &Emission<'_>, pool: &Pool<'_>) -> Vec<Panel> {
    let Some(queries) = &pool.queries else { return Vec::new() };
    let name = promql_text(&pool.pool.name);
    let quantile = own.plan.forecast.quantile;
    let mut out = Vec::new();
    let mut add =
        |title: &str, unit: &'static str, why: String, asked: Vec<(Option<String>, &str)>| {
            let asked: Vec<(String, String)> = asked
                .into_iter()
                .filter_map(|(query, legend)| Some((query?, legend.to_owned())))
                .collect();
            if !asked.is_empty() {
                out.push(Panel { title: title.to_owned(), unit, why, asked });
            }
        };
    let resources = [
        ("Fresh prompt tokens/s", "fresh_tokens", &queries.fresh_tokens),
        ("Output tokens/s", "output_tokens", &queries.output_tokens),
        ("Calls/s", "requests", &queries.requests),
    ];
    for (title, resource, query) in resources {
        // Calls are no tokens: `plimsoll watch` reports them under a name of their own.
        let expected = if resource == "requests" { "requests" } else { "tokens" };
        // A forecast of what is not counted has nothing to be held against.
        let forecast = |at: &str| {
            query.as_ref().map(|_| {
                format!(
                    "max(plimsoll_forecast_{expected}{{pool={name},resource=\"{resource}\",quantile=\"{at}\"}})"
                )
            })
        };
        let why = format!(
            "what comes against the forecast: its median and the {quantile} quantile that was planned for"
        );
        add(
            title,
            "short",
            why,
            vec![
                (query.clone(), "actual"),
                (forecast("0.5"), "forecast, median"),
                (forecast(&quantile.to_string()), "forecast, planned for"),
            ],
        );
    }
    let line = |value: Option<f64>, query: &Option<String>| {
        let value = rounded_down(value.filter(|value| *value > 0.0)?, DIGITS);
        let (query, replicas) = (query.as_ref()?, queries.replicas.as_ref()?);
        Some(format!("({query}) / ({value} * {replicas})"))
    };
    let at_line = pool.line;
    add(
        "Share of the load line",
        "percentunit",
        "1 is at the load line: beyond it the plan does not vouch for its promises".to_owned(),
        vec![
            (
                line(at_line.and_then(|own| own.fresh_tokens_per_s), &queries.fresh_tokens),
                "fresh tokens",
            ),
            (
                line(at_line.and_then(|own| own.output_tokens_per_s), &queries.output_tokens),
                "output tokens",
            ),
            (line(at_line.and_then(|own| own.in_flight), &queries.in_flight), "in flight"),
        ],
    );
    add(
        "Calls in flight and in line",
        "short",
        "those that run or wait, and of them those that wait".to_owned(),
        vec![(queries.in_flight.clone(), "in flight"), (queries.waiting.clone(), "waiting")],
    );
    let ceiling = pool.limits.and_then(|limits| limits.kv_ceiling.value);
    add(
        "Cache in use",
        "percentunit",
        "the fullest replica, and the share above which nobody should be let in".to_owned(),
        vec![
            (queries.kv_share.clone(), "fullest replica"),
            (ceiling.map(|value| format!("vector({})", rounded_down(value, DIGITS))), "ceiling"),
        ],
    );
    let engine = pool.engine.as_ref();
    let quantiles =
        |signal: Signal, at: f64| engine.and_then(|own| own.quantile(signal, at, WINDOW));
    let promised = |seconds: Option<f64>| {
        seconds.map(|value| format!("vector({})", rounded_down(value, DIGITS)))
    };
    add(
        "Time to first token",
        "s",
        "quantiles are as exact as the buckets of the engine's histogram".to_owned(),
        vec![
            (quantiles(Signal::Ttft, 0.5), "p50"),
            (quantiles(Signal::Ttft, 0.9), "p90"),
            (quantiles(Signal::Ttft, 0.99), "p99"),
            (promised(at_line.and_then(|own| own.ttft_s)), "promised"),
        ],
    );
    let gaps = if engine.is_some_and(|own| own.metric(Signal::Itl).is_some()) {
        Signal::Itl
    } else {
        Signal::Tpot
    };
    add(
        "Time between tokens",
        "s",
        "quantiles are as exact as the buckets of the engine's histogram".to_owned(),
        vec![
            (quantiles(gaps, 0.5), "p50"),
            (quantiles(gaps, 0.9), "p90"),
            (quantiles(gaps, 0.99), "p99"),
            (promised(at_line.and_then(|own| own.tpot_s)), "promised"),
        ],
    );
    let planned = pool.pool.replicas.total;
    add(
        "Replicas",
        "short",
        "those that report, those that are recommended now, and those of the plan".to_owned(),
        vec![
            (queries.replicas.clone(), "reporting"),
            (Some(format!("max(plimsoll_desired_replicas{{pool={name}}})")), "recommended"),
            (Some(format!("vector({planned})")), "planned"),
        ],
    );
    out
}

fn drawn(panel: &Panel, id: usize, place: &Value) -> Value {
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    let asked: Vec<Value> = panel
        .asked
        .iter()
        .zip('A'..='Z')
        .map(|((query, legend), letter)| {
            json!({
                "refId": letter.to_string(),
                "datasource": source,
                "expr": query,
                "legendFormat": legend,
            })
        })
        .collect();
    json!({
        "id": id,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.why,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": asked,
    })
}
