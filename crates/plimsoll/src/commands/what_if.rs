//! What becomes of the answer when levers move: `curve --what-if`, and the sliders of the page.

use std::io::Write;
use std::path::Path;

use plimsoll_report::{what_if_json, what_if_text};
use plimsoll_scenario::{Diagnostic, Loaded};
use plimsoll_study::{WhatIfBase, WhatIfLevers};

use super::plan::Gathered;
use super::pool::usage;
use super::simulate::Stop;
use super::{either, planned, stress, tell};
use crate::args::{CurveArgs, Global, PlanHorizon};
use crate::failure::Failure;
use crate::heading;

pub(super) fn answer(
    args: &CurveArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let levers = levers(&args.what_if)?;
    let loaded = planned(&args.file, global)?;
    let stop = Stop::new(args.time_limit.get(), global);
    let base = base(&loaded, &args.file, global, &|| stop.go_on())?;
    let mut result = base
        .simulated(&levers, &|| stop.go_on())
        .map_err(|error| stress::failed(&loaded, &error))?;
    result.notes.extend(stop.notes());
    tell(global, err, &format!("simulated in {:.2} s", stop.seconds()));
    Ok(either(
        global,
        || what_if_json(&result, crate::VERSION),
        || what_if_text(&result, heading()),
    ))
}

/// What all what-ifs of a scenario have in common.
pub(super) fn base(
    loaded: &Loaded,
    file: &Path,
    global: &Global,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<WhatIfBase, Failure> {
    let scenario = &loaded.scenario;
    if scenario.pool.is_empty() && scenario.provider.is_empty() {
        let message = "nothing in it serves this demand, so there is no line to move";
        return Err(Failure::one(
            Diagnostic::about("nothing-serves", loaded.source.name(), message)
                .help("give it a `[[pool]]` or a `[[provider]]`"),
        ));
    }
    let gathered = Gathered::new(loaded, file, global)?;
    gathered.ask(loaded, PlanHorizon::Deciding, global, |input, notes| {
        WhatIfBase::new(&input, notes, go_on).map_err(|error| stress::failed(loaded, &error))
    })
}

/// Levers by their names, each within its bounds.
fn levers(moved: &[(String, f64)]) -> Result<WhatIfLevers, Failure> {
    let mut levers = WhatIfLevers::NONE;
    for (name, value) in moved {
        let (low, high) = match name.as_str() {
            "cache_hit" => (0.0, 1.0),
            "startup" => (0.0, 20.0),
            "lost" => (0.0, 64.0),
            _ => (0.05, 20.0),
        };
        if name == "lost" && value.fract() != 0.0 {
            return Err(usage(
                format!("`lost` cannot be moved to {value}"),
                "replicas are lost one by one: give a whole number".to_owned(),
            ));
        }
        if !(low..=high).contains(value) {
            return Err(usage(
                format!("`{name}` cannot be moved to {value}"),
                format!("it goes from {low} to {high}"),
            ));
        }
        match name.as_str() {
            "demand" => levers.demand = *value,
            "prompt" => levers.prompt = *value,
            "output" => levers.output = *value,
            "cache_hit" => levers.cache_hit = *value,
            "replicas" => levers.replicas = *value,
            "startup" => levers.startup = *value,
            "lost" => levers.lost = *value as u32,
            _ => {
                return Err(usage(
                    format!("there is no lever `{name}`"),
                    "levers are demand, prompt, output, cache_hit, replicas, startup and lost"
                        .to_owned(),
                ));
            }
        }
    }
    Ok(levers)
}
