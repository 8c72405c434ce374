//! A trace, cut and scaled as asked, for a simulation.

use std::path::Path;

use plimsoll_ledger::{Format, Ledger, TraceError, read_trace, trace_of_ledger, trace_of_run};
use plimsoll_scenario::{Diagnostic, Loaded};
use plimsoll_stats::Seed;
use plimsoll_study::SimulateInput;
use plimsoll_workload::{Sharing, Trace, TraceFault};

use super::calibrate::read_runs;
use super::pool::usage;
use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::files;

/// The shortest trace that is replayed, in seconds.
const SHORTEST: f64 = 1.0;

/// A trace to be replayed, and what the reader should know of it.
pub(super) struct Replayed {
    pub(super) trace: Trace,
    pub(super) notes: Vec<String>,
    class: Option<String>,
}

/// Reads a trace, and changes it as asked.
pub(super) fn trace(args: &SimulateArgs, file: &Path, seed: Seed) -> Result<Replayed, Failure> {
    let (name, own) = (file.display().to_string(), &args.trace_args);
    let bad = |message: String, help: &str| {
        Failure::one(Diagnostic::about("bad-trace", name.clone(), message).help(help.to_owned()))
    };
    let wrong =
        |fault: TraceFault| usage(fault.to_string(), "see `plimsoll simulate --help`".to_owned());
    let mut notes = Vec::new();
    let mut trace = match &own.replay_run {
        Some(wanted) => {
            let runs = read_runs(&name, &files::read_text(file)?)?;
            let Some(run) = runs.iter().find(|run| run.run == *wanted) else {
                let names: Vec<&str> = runs.iter().map(|run| run.run.as_str()).collect();
                return Err(usage(
                    format!("`{name}` holds no run `{wanted}`"),
                    format!("its runs are: {}", names.join(", ")),
                ));
            };
            trace_of_run(run).map_err(wrong)?
        }
        None => {
            let read = if Ledger::is_at(file) {
                Ledger::open(file).map_err(TraceError::from).and_then(|own| trace_of_ledger(&own))
            } else {
                let opened = std::fs::File::open(file)
                    .map_err(|e| bad(format!("it cannot be read: {e}"), "check the path"))?;
                read_trace(opened, &name, Format::Auto)
            };
            let (trace, rejects) = read.map_err(|e| {
                let (text, help) = (e.to_string(), e.help().unwrap_or("check the file".to_owned()));
                // Its runs are replayed here, not served by an engine of their own.
                let help = match help.contains("--run NAME") {
                    true => "add `--replay-run NAME` to replay one of its runs".to_owned(),
                    false => help,
                };
                bad(text.strip_prefix(&format!("{name}: ")).unwrap_or(&text).to_owned(), &help)
            })?;
            // How many there are it says itself.
            notes.extend(rejects.reasons().into_iter().map(|(first, n)| match n {
                1 => format!("trace: rejected {first}"),
                n => format!("trace: rejected {first}, and {} more like it", n - 1),
            }));
            trace
        }
    };
    if own.spread_ticks {
        match trace.spread_ticks(seed) {
            Some((spread, _)) => trace = spread,
            None => notes.push("the trace has no tick to spread".to_owned()),
        }
    }
    if own.from.is_some() || own.to.is_some() {
        let from = own.from.map_or(0.0, |t| t.get());
        let to = own.to.map_or(f64::INFINITY, |t| t.get());
        trace = trace.window(from, to).map_err(wrong)?;
    }
    if let Some(scale) = own.scale {
        let sharing = if own.same_prompts { Sharing::Same } else { Sharing::Own };
        trace = trace.scale(scale.get(), sharing, seed).map_err(wrong)?;
    }
    if let Some(squeeze) = own.squeeze {
        trace = trace.squeeze(squeeze.get()).map_err(wrong)?;
    }
    if trace.is_empty() {
        return Err(bad(
            "no request of it is left to replay".to_owned(),
            "give a longer window with `--from` and `--to`, or a larger `--scale`",
        ));
    }
    if trace.span() < SHORTEST {
        return Err(bad(
            format!(
                "its {} requests come within {:.3} s, too little to say anything of a second",
                trace.len(),
                trace.span()
            ),
            "give a longer window, or less of `--squeeze`",
        ));
    }
    notes.extend(trace.notes().iter().map(|note| format!("trace: {note}")));
    Ok(Replayed { trace, notes, class: own.class.clone() })
}

impl Replayed {
    /// What the reader should know of so many runs of it.
    pub(super) fn said(&self, runs: u32) -> Vec<String> {
        let mut notes = self.notes.clone();
        let requests = self.trace.requests();
        notes.push(if requests.iter().any(|r| !r.content.is_empty()) {
            "cache hits are those of the trace's own blocks, where a pool caches prefixes"
                .to_owned()
        } else if requests.iter().any(|r| r.cached.is_some()) {
            "cache hits are those that the trace states".to_owned()
        } else {
            "the trace says nothing of prefixes: no prompt is taken to be cached".to_owned()
        });
        if runs > 1 {
            notes.push(format!(
                "the requests of all {runs} runs are the same: intervals over them say only what chance does to the fleet"
            ));
        }
        notes
    }

    /// The class of the scenario for each class of the trace.
    pub(super) fn classes(
        &self,
        input: &SimulateInput,
        loaded: &Loaded,
    ) -> Result<Vec<u16>, Failure> {
        let known: Vec<&str> = input.classes.iter().map(|c| c.class.name.as_str()).collect();
        let at = |name: &str| known.iter().position(|own| *own == name);
        let fallback = match (&self.class, &known[..]) {
            (Some(name), _) => Some(at(name).ok_or_else(|| {
                usage(
                    format!("no simulated class is called `{name}`"),
                    format!("classes are: {}", known.join(", ")),
                )
            })?),
            (None, [_]) => Some(0),
            (None, _) => None,
        };
        let of = |name: &String| -> Result<u16, Failure> {
            let class = at(name).or(fallback).ok_or_else(|| {
                let message = format!(
                    "the trace has requests of class `{name}`, and `{}` has none of that name",
                    loaded.source.name()
                );
                usage(
                    message,
                    format!("say which they are: `--class {}`", known.join("` or `--class ")),
                )
            })?;
            Ok(u16::try_from(class).unwrap_or(0))
        };
        self.trace.classes().iter().map(of).collect()
    }
}
