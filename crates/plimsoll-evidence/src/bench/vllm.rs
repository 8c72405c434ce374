//! `vllm bench serve`, and `benchmark_serving.py` before it: JSON, a list, or JSON lines.

use plimsoll_stats::quantile;
use plimsoll_study::{BenchPoint, Latency, Load};
use serde_json::Value;

use super::row::{Bound, CLIENTS, COUNT, MS, RATE, Row, SECONDS, Zero};
use super::{Read, Tool};

pub(super) const TOOL: Tool = Tool {
    name: "vllm bench serve",
    knows: |value| {
        value.get("total_input_tokens").is_some()
            && ["model_id", "tokenizer_id", "endpoint_type"].iter().any(|k| value.get(k).is_some())
    },
    within: None,
    read: Read::Point(read),
};

fn read(row: &mut Row<'_>) -> Option<BenchPoint> {
    let mut point = serving(row, "e2el")?;
    point.accepted_per_step = row.number("spec_decode_acceptance_length", &RATE);
    fill(row, &mut point);
    // What the user said with `--metadata` stands beside the results.
    row.say(&mut point.says, "model", "model_id");
    Some(point)
}

/// A point in the fields that vLLM's script and its descendants share.
pub(super) fn serving(row: &mut Row<'_>, e2e: &str) -> Option<BenchPoint> {
    let completed = row.completed("completed");
    let load = load(row);
    let (completed, load) = (completed?, load?);
    let mut point = row.point(load);
    point.completed = Some(completed);
    point.failed = row.whole("failed", &COUNT).or_else(|| {
        // Before there was a count of failures, the requests asked for told it.
        row.whole("num_prompts", &COUNT)?.checked_sub(completed)
    });
    point.duration_s = row.number("duration", &SECONDS);
    point.prompt = row.length("total_input_tokens", completed as f64);
    point.output = row.length("total_output_tokens", completed as f64);
    let mut latency = |name: &'static str, word: &str, zero: Zero| {
        let paths = ["mean", "median", "p99"].map(|stat| format!("{stat}_{word}_ms"));
        row.latency(name, [&paths[0], &paths[1], &paths[2]], MS, zero)
    };
    // Requests of one token have no second one to wait for.
    let one = point.output.is_some_and(|output| output.mean <= 1.0);
    point.ttft = latency("ttft", "ttft", Zero::Wrong);
    point.tpot = latency("tpot", "tpot", if one { Zero::Unusable } else { Zero::Wrong });
    point.itl = latency("itl", "itl", Zero::Unusable);
    point.e2e = latency("e2e", e2e, Zero::Wrong);
    point.output_tokens_per_s = row.number("output_throughput", &RATE);
    point.requests_per_s = row.number("request_throughput", &RATE);
    if row.get("ramp_up_strategy").is_some() {
        let message = "the rate rose during the run: no single load was measured".to_owned();
        row.flag("ramp-up", true, "ramp_up_strategy", message);
    }
    point.says = row.says(is_result);
    if matches!(load, Load::Rate(_)) {
        row.say(&mut point.says, "max_concurrency", "max_concurrency");
    }
    Some(point)
}

/// A finite rate is an open loop, capped or not; else the cap is the number of clients.
fn load(row: &mut Row<'_>) -> Option<Load> {
    let cap = row.number("max_concurrency", &CLIENTS);
    let rate = row.number_or_infinity("request_rate", &RATE)?;
    Some(match cap {
        _ if rate.is_finite() => Load::Rate(rate),
        Some(clients) => Load::Concurrency(clients),
        None => Load::AllAtOnce,
    })
}

/// Whether a key is a result or a load, and no word about the setup.
fn is_result(key: &str) -> bool {
    const KEYS: [&str; 14] = [
        "date",
        "duration",
        "completed",
        "failed",
        "num_prompts",
        "request_rate",
        "burstiness",
        "max_concurrency",
        "concurrency",
        "accept_length",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
        "rtfx",
        "model_id",
    ];
    KEYS.contains(&key)
        || ["_ms", "_throughput"].iter().any(|end| key.ends_with(end))
        || ["total_", "request_goodput"].iter().any(|start| key.starts_with(start))
}

/// Statistics that the file leaves out, from its requests; those it holds are its own.
fn fill(row: &mut Row<'_>, point: &mut BenchPoint) {
    let whole = |latency: &Latency| latency.mean.is_some() && latency.p99.is_some();
    let completed = point.completed.and_then(|n| usize::try_from(n).ok());
    let lists = ["output_lens", "ttfts", "itls"].map(|key| row.list(key));
    let [Some(lengths), Some(ttfts), Some(itls)] = lists else { return };
    let cut = [lengths, ttfts, itls].iter().any(|list| Some(list.len()) != completed);
    if cut || [&point.ttft, &point.tpot, &point.e2e].iter().all(|l| whole(l)) {
        return;
    }
    let gap = Bound { zero: true, most: SECONDS.most };
    let [mut ttft, mut tpot, mut e2e] = [const { Vec::new() }; 3];
    for (i, ((length, first), gaps)) in lengths.iter().zip(ttfts).zip(itls).enumerate() {
        let length = row.check(&format!("output_lens/{i}"), length, &COUNT);
        let first = row.check(&format!("ttfts/{i}"), first, &SECONDS);
        let gaps = gaps.as_array().map_or(&[] as &[Value], Vec::as_slice);
        let path = format!("itls/{i}");
        let decode: Option<f64> = gaps.iter().map(|g| row.check(&path, g, &gap)).sum();
        let (Some(length), Some(first), Some(decode)) = (length, first, decode) else { return };
        ttft.push(first);
        e2e.push(first + decode);
        if length > 1.0 && decode > 0.0 {
            tpot.push(decode / (length - 1.0));
        }
    }
    for (latency, values) in
        [(&mut point.ttft, ttft), (&mut point.tpot, tpot), (&mut point.e2e, e2e)]
    {
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        latency.mean = latency.mean.or(mean);
        latency.p50 = latency.p50.or_else(|| quantile(&values, 0.5));
        latency.p99 = latency.p99.or_else(|| quantile(&values, 0.99));
    }
}
