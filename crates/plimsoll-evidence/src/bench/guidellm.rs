//! GuideLLM reports, from v0.2 to `metadata.version` 2: one point a benchmark.
//!
//! Request latency is in seconds, the others in milliseconds. Its `inter_token_latency_ms` is a request's mean gap,
//! which is our TPOT; its `time_per_output_token_ms` divides by all tokens, the first included, and is another quantity.

use plimsoll_study::{BenchPoint, Load};
use serde_json::Value;

use super::row::{CLIENTS, COUNT, MS, RATE, Row, SECONDS, Zero};
use super::{Read, Tool};

pub(super) const TOOL: Tool = Tool {
    name: "guidellm",
    knows: |value| {
        let list = value.get("benchmarks").and_then(Value::as_array);
        list.is_some_and(|list| list.first().is_none_or(|first| first.get("metrics").is_some()))
    },
    within: Some("benchmarks"),
    read: Read::Point(read),
};

fn read(row: &mut Row<'_>) -> Option<BenchPoint> {
    let totals = row.first(&["metrics/request_totals", "request_totals"]);
    let totals = totals.unwrap_or("metrics/request_totals");
    let completed = row.completed(&format!("{totals}/successful"));
    let load = load(row);
    let mut point = row.point(load?);
    point.completed = Some(completed?);
    point.failed = row.whole(&format!("{totals}/errored"), &COUNT);
    point.duration_s = row.number("duration", &SECONDS);
    let path = |metric: &str| format!("metrics/{metric}/successful");
    point.prompt = row.length(&format!("{}/mean", path("prompt_token_count")), 1.0);
    point.output = row.length(&format!("{}/mean", path("output_token_count")), 1.0);
    let mut latency = |name: &'static str, metric: &str, per_second: f64, zero: Zero| {
        let paths = ["mean", "median", "percentiles/p99"].map(|s| format!("{}/{s}", path(metric)));
        row.latency(name, [&paths[0], &paths[1], &paths[2]], per_second, zero)
    };
    let one = point.output.is_some_and(|output| output.mean <= 1.0);
    let gap = if one { Zero::Unusable } else { Zero::Wrong };
    point.ttft = latency("ttft", "time_to_first_token_ms", MS, Zero::Wrong);
    point.tpot = latency("tpot", "inter_token_latency_ms", MS, gap);
    point.e2e = latency("e2e", "request_latency", 1.0, Zero::Wrong);
    let mean = |metric: &str| format!("{}/mean", path(metric));
    point.output_tokens_per_s = row.number(&mean("output_tokens_per_second"), &RATE);
    point.requests_per_s = row.number(&mean("requests_per_second"), &RATE);
    point.in_flight_mean = row.number(&mean("request_concurrency"), &CLIENTS);
    let mut says = Vec::new();
    for (name, path) in [
        ("model", "config/backend/model"),
        ("model", "worker/backend_model"),
        ("prompt_tokens", "config/spec/data/0/prompt_tokens"),
        ("output_tokens", "config/spec/data/0/output_tokens"),
        ("prefix_tokens", "config/spec/data/0/prefix_buckets/0/prefix_tokens"),
        ("guidellm_version", "metadata/guidellm_version"),
    ] {
        row.say(&mut says, name, path);
    }
    // Before v2 the data set was written as `prompt_tokens=256,output_tokens=128`.
    for part in row.text("request_loader/data").unwrap_or_default().split(',') {
        let known = ["prompt_tokens", "output_tokens"];
        if let Some((key, value)) = part.split_once('=').filter(|(key, _)| known.contains(key)) {
            says.push((key.to_owned(), value.to_owned()));
        }
    }
    point.says = says;
    Some(point)
}

fn load(row: &mut Row<'_>) -> Option<Load> {
    let strategy = row.first(&["config/strategy", "args/strategy", "scheduler/strategy"]);
    let strategy = strategy.unwrap_or("config/strategy");
    let (kind, streams, rate) =
        (format!("{strategy}/type_"), format!("{strategy}/streams"), format!("{strategy}/rate"));
    match row.text(&kind) {
        Some("synchronous") => Some(Load::Concurrency(1.0)),
        Some("concurrent") => row.need(&streams, &CLIENTS).map(Load::Concurrency),
        Some("throughput") => Some(Load::AllAtOnce),
        Some("constant" | "poisson" | "async") => row.need(&rate, &RATE).map(Load::Rate),
        Some(other) => {
            row.wrong(&kind, format!("is `{other}`, a strategy that is not known"));
            None
        }
        None => {
            row.wrong(&kind, "is missing, so the load is not known");
            None
        }
    }
}
