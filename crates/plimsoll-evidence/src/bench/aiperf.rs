//! AIPerf and its parent genai-perf: the same metrics, as JSON or as CSV tables.
//!
//! Their `inter_token_latency` is a request's mean gap, which is our TPOT; gaps between chunks are
//! `inter_chunk_latency`.

use plimsoll_study::{BenchPoint, Latency, Load};
use serde_json::Value;

use super::row::{CLIENTS, COUNT, RATE, Row, SECONDS, Zero};
use super::{Read, Tool};

pub(super) const AIPERF: Tool = Tool {
    name: "aiperf",
    // The child measures how long it ran; the parent does not.
    knows: |value| {
        is_profile(value)
            && ["aiperf_version", "benchmark_duration"].iter().any(|k| value.get(k).is_some())
    },
    within: None,
    read: Read::Point(read),
};

pub(super) const GENAI_PERF: Tool =
    Tool { name: "genai-perf", knows: is_profile, within: None, read: Read::Point(read) };

fn is_profile(value: &Value) -> bool {
    ["request_latency", "request_throughput"].iter().any(|k| value[k].is_object())
        && value.get("load_summary").is_none()
}

fn read(row: &mut Row<'_>) -> Option<BenchPoint> {
    let completed = match row.get("request_count") {
        Some(_) => Some(row.completed("request_count/avg")?),
        None => None,
    };
    let e2e = latency(row, "e2e", "request_latency", Zero::Wrong);
    let requests_per_s = row.number("request_throughput/avg", &RATE);
    let stated = load(row);
    let in_flight_mean =
        if stated.is_none() { row.inferred_load(&e2e, requests_per_s) } else { None };
    let Some(load) = stated.or(in_flight_mean.map(Load::Concurrency)) else {
        let both = "a file without its load must hold `request_latency` and `request_throughput`";
        row.wrong("input_config", format!("is missing or states no load: {both}"));
        return None;
    };
    let mut point = row.point(load);
    (point.completed, point.in_flight_mean) = (completed, in_flight_mean);
    (point.e2e, point.requests_per_s) = (e2e, requests_per_s);
    point.failed = row.whole("error_request_count/avg", &COUNT).or_else(|| {
        let errors = row.list("error_summary")?;
        Some(errors.iter().filter_map(|e| e.get("count")?.as_u64()).fold(0, u64::saturating_add))
    });
    point.duration_s = row.number("benchmark_duration/avg", &SECONDS);
    point.prompt = row.length("input_sequence_length/avg", 1.0);
    point.output = row.length("output_sequence_length/avg", 1.0);
    let one = point.output.is_some_and(|output| output.mean <= 1.0);
    let gap = if one { Zero::Unusable } else { Zero::Wrong };
    point.ttft = latency(row, "ttft", "time_to_first_token", Zero::Wrong);
    point.tpot = latency(row, "tpot", "inter_token_latency", gap);
    point.itl = latency(row, "itl", "inter_chunk_latency", Zero::Unusable);
    point.output_tokens_per_s = row.number("output_token_throughput/avg", &RATE);
    if row.get("was_cancelled").and_then(Value::as_bool) == Some(true) {
        row.flag("cancelled", false, "was_cancelled", "the run was stopped before its end".into());
    }
    for (name, path) in [
        ("model", "input_config/models/items/0/name"),
        ("model", "input_config/endpoint/model_names/0"),
        ("model", "input_config/model_names/0"),
        ("model", "input_config/model/0"),
        ("endpoint", "input_config/endpoint/type"),
        ("aiperf_version", "aiperf_version"),
    ] {
        row.say(&mut point.says, name, path);
    }
    Some(point)
}

fn latency(row: &mut Row<'_>, name: &'static str, metric: &str, zero: Zero) -> Latency {
    let unit = format!("{metric}/unit");
    let per_second = match row.text(&unit) {
        Some("ms") | None => 1e3,
        Some("s" | "sec" | "seconds") => 1.0,
        Some("us") => 1e6,
        Some("ns") => 1e9,
        Some(other) => {
            row.wrong(&unit, format!("is `{other}`, which is no unit of time that is known"));
            return Latency::default();
        }
    };
    let paths = ["avg", "p50", "p99"].map(|statistic| format!("{metric}/{statistic}"));
    row.latency(name, [&paths[0], &paths[1], &paths[2]], per_second, zero)
}

/// Where the configuration states a load: by phases, by `loadgen`, by perf_analyzer's stimulus, or flat.
fn load(row: &mut Row<'_>) -> Option<Load> {
    let phases = row.list("input_config/phases").map_or(&[] as &[Value], Vec::as_slice);
    let counts = |phase: &&Value| phase["exclude_from_results"] != Value::Bool(true);
    let phase = phases.iter().rposition(|phase| counts(&phase));
    let phase = phase.map(|i| format!("input_config/phases/{i}"));
    let others = ["input_config/loadgen", "input_config/perf_analyzer/stimulus", "input_config"];
    for place in phase.iter().map(String::as_str).chain(others) {
        for key in ["request_rate", "rate"] {
            if let Some(rate) = row.number(&format!("{place}/{key}"), &RATE) {
                return Some(Load::Rate(rate));
            }
        }
        if let Some(clients) = row.number(&format!("{place}/concurrency"), &CLIENTS) {
            return Some(Load::Concurrency(clients));
        }
    }
    None
}
