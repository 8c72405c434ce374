//! MLPerf LoadGen: `mlperf_log_summary.txt`. Nanoseconds.

use plimsoll_study::{BenchPoint, Length, Load};
use serde_json::Value;

use super::row::{RATE, Row, TOKENS, Zero};
use super::{Read, Tool};

/// How a summary begins.
pub(super) const HEADING: &str = "MLPerf Results Summary";

pub(super) const TOOL: Tool = Tool {
    name: "mlperf loadgen",
    knows: |value| value.get("sut name").is_some() || value.get("result is").is_some(),
    within: None,
    read: Read::Point(read),
};

fn read(row: &mut Row<'_>) -> Option<BenchPoint> {
    let load = load(row);
    let mut point = row.point(load?);
    match row.get("result is").and_then(Value::as_str) {
        Some("VALID") => {}
        Some(other) => {
            let message = format!("LoadGen calls the result {other}: its conditions were not met");
            row.flag("invalid-result", true, "result is", message);
        }
        None => row.wrong("result is", "is missing: the summary is cut"),
    }
    let first = |row: &mut Row<'_>, paths: &[&str]| {
        row.first(paths).and_then(|path| row.number(path, &RATE))
    };
    point.output_tokens_per_s = first(row, &["completed tokens per second", "tokens per second"]);
    point.requests_per_s = first(row, &["completed samples per second", "samples per second"]);
    if point.output_tokens_per_s.is_none() && row.errors.is_empty() {
        row.wrong("tokens per second", "is missing: this was no benchmark of a language model");
    }
    if let Some((tokens, samples)) = point.output_tokens_per_s.zip(point.requests_per_s) {
        let mean = tokens / samples;
        point.output = (mean <= TOKENS.most).then_some(Length { mean, counted: true });
    }
    let mut latency = |name: &'static str, mean: [&str; 2], percentile: &str| {
        let mean = row.first(&mean).unwrap_or(mean[0]);
        let [p50, p99] = ["50.00", "99.00"].map(|p| format!("{p} percentile {percentile} (ns)"));
        row.latency(name, [mean, &p50, &p99], 1e9, Zero::Wrong)
    };
    point.e2e = latency("e2e", ["mean latency (ns)"; 2], "latency");
    point.ttft = latency("ttft", ["mean first token latency (ns)"; 2], "first token latency");
    let means = ["mean time per output token (ns)", "mean time to output token (ns)"];
    point.tpot = latency("tpot", means, "time to output token");
    for (name, path) in [("sut", "sut name"), ("scenario", "scenario")] {
        row.say(&mut point.says, name, path);
    }
    Some(point)
}

fn load(row: &mut Row<'_>) -> Option<Load> {
    match row.text("scenario").map(|name| name.replace(' ', "")).as_deref() {
        Some("Offline") => Some(Load::AllAtOnce),
        Some("SingleStream") => Some(Load::Concurrency(1.0)),
        Some("Server" | "Interactive") => {
            let path = row.first(&["target_qps", "scheduled samples per second"]);
            row.need(path.unwrap_or("target_qps"), &RATE).map(Load::Rate)
        }
        Some(other) => {
            row.wrong("scenario", format!("is `{other}`, whose load is not known"));
            None
        }
        None => {
            row.wrong("scenario", "is missing");
            None
        }
    }
}
