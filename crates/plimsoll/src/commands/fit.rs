//! `fit`: what a pool's device memory is spent on.

use std::path::Path;

use plimsoll_evidence::engine_log;
use plimsoll_fleet::{Accelerator, Catalog};
use plimsoll_report::{compare_text, fit_json, fit_text};
use plimsoll_scenario::{Diagnostic, Loaded, pool_fit, serves};
use plimsoll_stats::Seed;
use plimsoll_study::{Fit, ObservedLine, Provenance, class_context, fit};

use super::pool::{help, no_budget, own_model, pool_input};
use super::{catalog_of, either, planned, today};
use crate::args::{Compare, FitArgs, Global};
use crate::failure::Failure;
use crate::heading;

/// The budget, and whether everything fits.
pub(super) fn answer(args: &FitArgs, global: &Global) -> Result<(String, bool), Failure> {
    let fits = match &args.file {
        Some(file) => {
            let loaded = planned(file, global)?;
            pools(&loaded, global)?
        }
        None => match args.compare {
            None => {
                let mut fit = one(args, &catalog_of(global)?, None, None)?;
                if let Some(path) = &args.engine_log {
                    fit.observed = observed(path, &fit)?;
                    // What the engine itself printed needs no model's word for it.
                    for line in &mut fit.budget {
                        if fit.observed.iter().any(|seen| seen.name == line.name) {
                            line.provenance = Provenance::Observed;
                        }
                    }
                }
                vec![fit]
            }
            Some(compare) => return Ok((compared(args, compare, global)?, true)),
        },
    };
    let text = either(global, || fit_json(&fits), || fit_text(&fits, heading()));
    Ok((text, fits.iter().all(|fit| fit.fits)))
}

/// What an engine's log says, line by line beside the prediction.
fn observed(path: &Path, fit: &Fit) -> Result<Vec<ObservedLine>, Failure> {
    let about = |code, message: String| {
        Failure::one(Diagnostic::about(code, path.display().to_string(), message))
    };
    let bytes = std::fs::read(path)
        .map_err(|e| about("unreadable-file", format!("cannot be read: {e}")))?;
    let log = engine_log(&String::from_utf8_lossy(&bytes));
    if log.is_empty() {
        return Err(about("bad-evidence", "no line of it speaks of an engine's memory".to_owned()));
    }
    let line = |name: &'static str| {
        fit.budget.iter().find(|l| l.name == name).map_or(0, |l| l.bytes.max(0)).cast_unsigned()
    };
    let amounts = [
        ("weights", log.weights, fit.weights_bytes),
        ("activation", log.activation, line("activation")),
        ("libraries", log.libraries, line("libraries") + line("collectives")),
        ("graphs", log.graphs, line("graphs")),
        ("kv cache", log.kv, fit.available_kv_bytes),
    ];
    let mut lines: Vec<ObservedLine> = amounts
        .into_iter()
        .filter_map(|(name, seen, predicted)| {
            Some(ObservedLine::new(name, "bytes", seen?.get(), predicted))
        })
        .collect();
    lines.extend(
        log.kv_tokens
            .map(|t| ObservedLine::new("kv tokens", "tokens", t.get(), fit.printed_kv_tokens)),
    );
    lines.extend(log.refusals.into_iter().map(ObservedLine::refusal));
    Ok(lines)
}

/// Every pool of a scenario, with the contexts of the classes it serves.
pub(super) fn pools(loaded: &Loaded, global: &Global) -> Result<Vec<Fit>, Failure> {
    let demand = loaded.demand(today(global, loaded)).map_err(Failure::one)?;
    let seed = Seed::new(global.seed.unwrap_or(loaded.scenario.study.seed.get()));
    let file = loaded.source.name();
    if loaded.scenario.pool.is_empty() {
        let diagnostic =
            Diagnostic::about("missing-key", file, "no `[[pool]]` says what serves the demand")
                .help("add a `[[pool]]` with `model` and `accelerator`");
        return Err(Failure::one(diagnostic));
    }
    let mut fits = Vec::new();
    for pool in &loaded.scenario.pool {
        let failed = |(error, help): (String, String)| {
            let message = format!("pool `{}`: {error}", pool.name.as_str());
            Failure::one(Diagnostic::about("no-budget", file, message).help(help))
        };
        let mut input = pool_fit(loaded, pool).map_err(failed)?;
        let served =
            demand.classes.iter().filter(|class| serves(&loaded.scenario, pool, &class.name));
        input.contexts = served.filter_map(|class| class_context(class, seed)).collect();
        fits.push(fit(&input).map_err(|e| failed((e.to_string(), help(&e, input.model))))?);
    }
    Ok(fits)
}

/// The model and device of the command line, or another device or group size in their place.
fn one(
    args: &FitArgs,
    catalog: &Catalog,
    device: Option<&Accelerator>,
    tensor: Option<u64>,
) -> Result<Fit, Failure> {
    let own = own_model(&args.pool)?;
    let input = pool_input(&args.pool, catalog, own.as_ref(), device, tensor)?;
    fit(&input).map_err(|e| no_budget(&e, input.model))
}

fn compared(args: &FitArgs, compare: Compare, global: &Global) -> Result<String, Failure> {
    let catalog = catalog_of(global)?;
    let mut rows: Vec<(String, Fit)> = Vec::new();
    match compare {
        Compare::Tp => {
            let name = args.pool.accelerator.clone().unwrap_or_default();
            let devices =
                catalog.accelerator(&name).ok().and_then(|a| a.interconnect.devices).unwrap_or(1);
            let sizes = std::iter::successors(Some(1u64), |n| Some(n * 2))
                .take_while(|n| *n <= u64::from(devices).min(64));
            for tensor in sizes {
                // A group that does not divide the heads is no candidate.
                if let Ok(fit) = one(args, &catalog, None, Some(tensor)) {
                    rows.push((format!("tensor_parallel = {tensor}"), fit));
                }
            }
        }
        Compare::Accelerators => {
            for device in &catalog.accelerators {
                if let Ok(fit) = one(args, &catalog, Some(device), None) {
                    rows.push((device.name.clone(), fit));
                }
            }
        }
    }
    if rows.is_empty() {
        // The first candidate's own complaint says why.
        one(args, &catalog, None, None)?;
    }
    Ok(either(
        global,
        || {
            fit_json(
                &rows
                    .iter()
                    .map(|(name, fit)| Fit { name: name.clone(), ..fit.clone() })
                    .collect::<Vec<_>>(),
            )
        },
        || compare_text(&rows),
    ))
}
