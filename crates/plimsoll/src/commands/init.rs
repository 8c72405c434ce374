//! A place to start from.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use plimsoll_scenario::Diagnostic;
use plimsoll_stats::{Arrivals, Dist, Process, RateCurve, Seed, Spacing};
use plimsoll_workload::{Call, Lengths, Shift, Step, Task};
use serde_json::json;

use crate::args::Global;
use crate::commands::either;
use crate::failure::Failure;
use crate::files;

const SCENARIO: &str = include_str!("starter.toml");

/// Writes `scenario.toml` and `requests.csv`.
pub(super) fn init(
    directory: &Path,
    force: bool,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    files::directory(directory)?;
    let scenario = directory.join("scenario.toml");
    let requests = directory.join("requests.csv");
    for path in [&scenario, &requests] {
        if path.exists() && !force {
            let diagnostic =
                Diagnostic::about("file-exists", path.display().to_string(), "is already there")
                    .help("choose another directory, or overwrite it with `--force`");
            return Err(Failure::one(diagnostic));
        }
    }
    files::write_whole(&scenario, SCENARIO)?;
    files::write_whole(&requests, &sample_log(global.seed.unwrap_or(7)))?;
    if !global.quiet && !global.json {
        // Talk; nothing is lost when nobody listens.
        let _ = writeln!(err, "next: plimsoll review {}", scenario.display());
    }
    let written = [scenario.display().to_string(), requests.display().to_string()];
    Ok(either(
        global,
        || json!({ "schema": "plimsoll/init/v1", "files": written }),
        || written.iter().map(|file| format!("{file}\n")).collect(),
    ))
}

/// Ten minutes of a small support bot, one row an attempt. Unknown is empty, never zero.
fn sample_log(seed: u64) -> String {
    let seed = Seed::new(seed);
    let mut out = String::from(
        "ts_arrival,request_id,task_id,attempt,route,tenant,model,prompt_tokens,cache_read_tokens,output_tokens,ttft_s,e2e_s,status,finish_reason\n",
    );
    // The parameters are fixed, so none of these can fail; an empty log would show in the tests.
    let Some((task, arrivals)) = sample_workload(seed) else { return out };
    let start: Timestamp = Timestamp::from_second(1_794_823_200).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut lengths = seed.stream("init/lengths");
    let mut outcomes = seed.stream("init/outcomes");
    for (i, at) in arrivals.enumerate() {
        task.draw(&Shift::NONE, &mut lengths, |request| {
            let ts = start + SignedDuration::from_millis((at * 1000.0) as i64);
            let tenant = ["acme", "globex", "initech"][outcomes.index(3)];
            let failed = outcomes.uniform() < 0.02;
            let ttft =
                0.08 + request.fresh().get() as f64 / 20_000.0 + 0.05 * outcomes.exponential();
            let e2e = ttft + request.output.get() as f64 * (0.010 + 0.002 * outcomes.uniform());
            let (prompt, cached) = (request.prompt.get(), request.cached.get());
            let _ = write!(out, "{ts},r{i:05},t{i:05},1,support,{tenant},llama-3.1-8b,{prompt},");
            let _ = if failed {
                writeln!(out, ",,,,timeout,")
            } else {
                writeln!(out, "{cached},{},{ttft:.4},{e2e:.4},ok,stop", request.output.get())
            };
        });
    }
    out
}

fn sample_workload(seed: Seed) -> Option<(Task, Arrivals)> {
    let prompt = Dist::by_quantiles(&[(0.5, 800.0), (0.95, 3200.0)]).ok()?;
    let output = Dist::by_quantiles(&[(0.5, 200.0), (0.95, 600.0)]).ok()?;
    let task = Task::steps(vec![Step::Call(Call::new(Lengths::independent(prompt, output), 0.3))]);
    let process = Process::Flow { spacing: Spacing::Gamma { cv: 1.5 }, burst: None };
    let curve = RateCurve::constant(0.5, 600.0).ok()?;
    let arrivals = Arrivals::new(&process, curve, seed.stream("init/arrivals")).ok()?;
    Some((task, arrivals))
}
