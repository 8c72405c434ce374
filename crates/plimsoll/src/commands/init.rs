//! A place to start from.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use plimsoll_emit::found::{FoundFile, found};
use plimsoll_scenario::Diagnostic;
use plimsoll_stats::{Arrivals, Dist, Process, RateCurve, Seed, Spacing};
use plimsoll_workload::{Call, Lengths, Shift, Step, Task};
use serde_json::json;

use crate::args::Global;
use crate::commands::{either, tell};
use crate::failure::Failure;
use crate::files;

const SCENARIO: &str = include_str!("starter.toml");

/// Writes `scenario.toml` and `requests.csv`; from what runs already, only the scenario.
pub(super) fn init(
    directory: &Path,
    force: bool,
    from: &[PathBuf],
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let scenario = directory.join("scenario.toml");
    if !from.is_empty() {
        return init_from(directory, &scenario, force, from, global, err);
    }
    files::directory(directory)?;
    let requests = directory.join("requests.csv");
    for path in [&scenario, &requests] {
        free(path, force)?;
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

/// Whether a file may be written.
fn free(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force {
        let diagnostic =
            Diagnostic::about("file-exists", path.display().to_string(), "is already there")
                .help("choose another directory, or overwrite it with `--force`");
        return Err(Failure::one(diagnostic));
    }
    Ok(())
}

/// Files of configuration are no longer than this; of a log, its beginning says how the engine was started.
const BYTES_MOST: usize = 32 << 20;

/// A scenario from what runs already, with what it does not say as questions.
fn init_from(
    directory: &Path,
    scenario: &Path,
    force: bool,
    from: &[PathBuf],
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    free(scenario, force)?;
    let mut read = Vec::new();
    for path in from {
        let mut text = files::read_text(path)?;
        if text.len() > BYTES_MOST {
            let cut = (0..=BYTES_MOST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(cut);
        }
        read.push(FoundFile { name: path.display().to_string(), text });
    }
    let found = found(&read, global.as_of.unwrap_or_else(super::clock)).map_err(|error| {
        let names: Vec<String> = from.iter().map(|path| path.display().to_string()).collect();
        let diagnostic = Diagnostic::about("nothing-found", names.join(", "), error.to_string());
        Failure::one(diagnostic.help("give Kubernetes manifests, command lines or logs of engines, or a LiteLLM or Envoy AI Gateway configuration"))
    })?;
    files::directory(directory)?;
    files::write_whole(scenario, &found.scenario)?;
    let name = scenario.display().to_string();
    if !global.json {
        for warning in &found.warnings {
            tell(global, err, &format!("warning: {warning}"));
        }
        for passed in &found.passed_over {
            tell(global, err, &format!("passed over: {passed}"));
        }
        tell(
            global,
            err,
            &format!("next: answer the lines that begin with `# ?`, then plimsoll check {name}"),
        );
    }
    let json = || {
        let values: Vec<_> = found
            .values
            .iter()
            .map(|own| json!({ "key": own.key, "value": own.value, "origin": own.origin }))
            .collect();
        let questions: Vec<_> = found
            .questions
            .iter()
            .map(|own| json!({ "key": own.key, "question": own.question, "example": own.example, "needed": own.needed }))
            .collect();
        json!({ "schema": "plimsoll/init/v1", "files": [name], "values": values, "questions": questions, "passed_over": found.passed_over, "warnings": found.warnings })
    };
    let text = || {
        let mut out = format!("{name}\n\nfound\n");
        let width =
            found.values.iter().map(|own| own.key.len() + own.value.len() + 3).max().unwrap_or(0);
        for own in &found.values {
            let said = format!("{} = {}", own.key, own.value);
            let _ = writeln!(out, "  {said:width$}  {}", own.origin);
        }
        let _ = writeln!(out, "\nquestions");
        for own in &found.questions {
            let needed = if own.needed { "" } else { " (a default stands in)" };
            let _ = writeln!(out, "  {}: {}{needed}", own.key, own.question);
        }
        out
    };
    Ok(either(global, json, text))
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
