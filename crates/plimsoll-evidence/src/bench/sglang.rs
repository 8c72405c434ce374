//! `sglang.bench_serving`: JSON lines as Python writes them, so a rate may be the bare word `Infinity`.

use plimsoll_study::BenchPoint;

use super::row::{CLIENTS, RATE, Row};
use super::{Read, Tool, vllm};

pub(super) const TOOL: Tool = Tool {
    name: "sglang bench_serving",
    knows: |value| {
        let marks =
            ["total_output_tokens_retokenized", "median_e2e_latency_ms", "random_range_ratio"];
        value.get("total_input_tokens").is_some() && marks.iter().any(|k| value.get(k).is_some())
    },
    within: None,
    read: Read::Point(read),
};

fn read(row: &mut Row<'_>) -> Option<BenchPoint> {
    // The script descends from vLLM's, with its own word for the whole latency.
    let mut point = vllm::serving(row, "e2e_latency")?;
    point.in_flight_mean = row.number("concurrency", &CLIENTS);
    point.accepted_per_step = row.number("accept_length", &RATE);
    // Lengths of the random data set are written even where another one was used.
    if !row.text("dataset_name").is_some_and(|name| name.starts_with("random")) {
        point.says.retain(|(key, _)| !key.starts_with("random_"));
    }
    let server =
        ["model_path", "tp_size", "dp_size", "disable_radix_cache", "speculative_algorithm"];
    for key in server {
        row.say(&mut point.says, key, &format!("server_info/{key}"));
    }
    Some(point)
}
