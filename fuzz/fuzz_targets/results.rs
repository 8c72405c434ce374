//! What holds for the results of any tool: a reason for every refusal, and no number that could overflow.

use plimsoll_evidence::results;
use plimsoll_study::{Latency, Load};

pub fn answers(text: &str) {
    let read = match results("fuzz", text) {
        Ok(read) => read,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= 51, "refused without a reason");
            for error in errors {
                assert!(!error.to_string().is_empty());
                let _ = error.help();
            }
            return;
        }
    };
    assert!(!read.points.is_empty() || !read.runs.is_empty(), "accepted without a point");
    for point in &read.points {
        let latencies = [point.ttft, point.tpot, point.itl, point.e2e];
        let of = |l: Latency| [l.mean, l.p50, l.p99];
        let load = match point.load {
            Load::Concurrency(x) | Load::Rate(x) | Load::StaticBatch(x) => Some(x),
            Load::AllAtOnce => None,
        };
        let numbers = latencies.into_iter().flat_map(of).chain([
            load,
            point.prompt.map(|l| l.mean),
            point.output.map(|l| l.mean),
            point.output_tokens_per_s,
            point.requests_per_s,
            point.in_flight_mean,
            point.duration_s,
        ]);
        for number in numbers.flatten() {
            assert!(number > 0.0 && number <= 1e15 && (1.0 / number).is_finite(), "{number}");
        }
    }
    for run in &read.runs {
        assert!(!run.requests.is_empty() && !run.steps.is_empty());
        assert!(
            run.requests.iter().all(|r| r.ttft > 0.0 && r.e2e >= r.ttft && r.cached <= r.prompt)
        );
    }
    for flag in &read.flags {
        assert!(!flag.message.is_empty());
    }
}
