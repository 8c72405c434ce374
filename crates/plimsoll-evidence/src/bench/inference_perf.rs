//! inference-perf: `*_lifecycle_metrics.json` as clients saw it, `*_prometheus_metrics.json` as the server did. Seconds.
//!
//! The client's own time per output token counts empty chunks of the stream and is about half of the truth; it is not
//! taken. The server's percentiles are edges of its histograms' buckets, and are not taken either.

use plimsoll_study::{BenchPoint, Latency, Length, Load};

use super::row::{Bound, CLIENTS, COUNT, RATE, Row, SECONDS, Zero};
use super::{Read, Tool};

pub(super) const TOOL: Tool = Tool {
    name: "inference-perf",
    knows: |value| value.get("load_summary").is_some() && value.get("successes").is_some(),
    within: None,
    read: Read::Point(read),
};

fn read(row: &mut Row<'_>) -> Option<BenchPoint> {
    let completed = row.completed("successes/count")?;
    let server = row.get("successes/latency").is_none();
    let (latencies, rate) = if server {
        ("successes", "successes/rate")
    } else {
        ("successes/latency", "successes/throughput/requests_per_sec")
    };
    let requests_per_s = row.number(rate, &RATE);
    let mut latency = |name: &'static str, metric: &str| {
        let paths = ["mean", "median", "p99"].map(|stat| format!("{latencies}/{metric}/{stat}"));
        let read = row.latency(name, [&paths[0], &paths[1], &paths[2]], 1.0, Zero::Wrong);
        if server { Latency { mean: read.mean, ..Latency::default() } } else { read }
    };
    let (e2e, ttft) = (latency("e2e", "request_latency"), latency("ttft", "time_to_first_token"));
    let tpot = if server { latency("tpot", "time_per_output_token") } else { Latency::default() };
    let stated = load(row);
    let in_flight_mean =
        if stated.is_none() { row.inferred_load(&e2e, requests_per_s) } else { None };
    let Some(load) = stated.or(in_flight_mean.map(Load::Concurrency)) else {
        row.wrong("load_summary/requested_rate", "is missing, so the load is not known");
        return None;
    };
    let mut point = row.point(load);
    (point.completed, point.in_flight_mean) = (Some(completed), in_flight_mean);
    point.failed = row.whole("failures/count", &COUNT);
    point.duration_s = row.number("load_summary/send_duration", &SECONDS);
    (point.e2e, point.ttft, point.tpot, point.requests_per_s) = (e2e, ttft, tpot, requests_per_s);
    if server {
        point.prompt = length_by_rate(row, "prompt_len", requests_per_s);
        point.output = length_by_rate(row, "output_len", requests_per_s);
        point.output_tokens_per_s = row.number("successes/output_len/rate", &RATE);
        let percent = Bound { zero: true, most: 100.0 };
        let cached = row.number("successes/prefix_cache_hit_percent/mean", &percent);
        point.cached_share = cached.map(|percent| percent / 100.0);
        let message =
            "percentiles are edges of the server's histogram buckets: only means are taken";
        row.flag("histogram-percentiles", false, latencies, message.to_owned());
    } else {
        point.prompt = row.length("successes/prompt_len/mean", 1.0);
        point.output = row.length("successes/output_len/mean", 1.0);
        point.output_tokens_per_s = row.number("successes/throughput/output_tokens_per_sec", &RATE);
        recompute(row, &mut point);
    }
    Some(point)
}

fn load(row: &mut Row<'_>) -> Option<Load> {
    let clients = row.number("load_summary/concurrency", &CLIENTS).map(Load::Concurrency);
    clients.or_else(|| {
        let rate = row.first(&["load_summary/requested_rate", "load_summary/achieved_rate"])?;
        row.number(rate, &RATE).map(Load::Rate)
    })
}

/// TPOT from what is counted right.
fn recompute(row: &mut Row<'_>, point: &mut BenchPoint) {
    let field = "successes/latency/time_per_output_token/mean";
    let own = row.number(field, &Bound { zero: true, most: SECONDS.most });
    let (Some(e2e), Some(ttft), Some(output)) = (point.e2e.mean, point.ttft.mean, point.output)
    else {
        return;
    };
    if output.mean < 2.0 || e2e <= ttft {
        let message =
            "the tool counts empty chunks as tokens, and outputs are too short to do without";
        return row.flag("unusable-metric", false, field, message.to_owned());
    }
    let tpot = (e2e - ttft) / (output.mean - 1.0);
    point.tpot.mean = Some(tpot);
    let own =
        own.map_or_else(String::new, |own| format!(", where the file says {:.2} ms", own * 1e3));
    let message = format!(
        "the tool counts empty chunks as tokens; (mean latency - mean TTFT) / (mean output - 1) = {:.2} ms \
         is taken{own}",
        tpot * 1e3
    );
    row.flag("tpot-recomputed", false, field, message);
}

/// Lengths by tokens/s over requests/s, which cover one window; the server's means were seen to be far off.
fn length_by_rate(row: &mut Row<'_>, metric: &str, requests_per_s: Option<f64>) -> Option<Length> {
    let field = format!("successes/{metric}/mean");
    let own = row.number(&field, &COUNT);
    let length = row.length(&format!("successes/{metric}/rate"), requests_per_s?)?;
    if let Some(own) = own.filter(|own| (own / length.mean - 1.0).abs() > 0.1) {
        let message = format!(
            "says {own}; tokens/s over requests/s make {:.1}, which is taken: the two do not go together",
            length.mean
        );
        row.flag("lengths-from-rates", false, &field, message);
    }
    Some(length)
}
