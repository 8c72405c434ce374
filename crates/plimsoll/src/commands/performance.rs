//! The best that pools of a scenario can do.

use std::path::Path;

use plimsoll_evidence::calibration;
use plimsoll_perf::{constants, dtype};
use plimsoll_scenario::sections::Role;
use plimsoll_scenario::{Diagnostic, Loaded, lower_demand, pool_fit, serves};
use plimsoll_stats::Seed;
use plimsoll_study::{
    Fit, FitInput, Phase, PoolPerformance, PoolPerformanceInput, pool_performance, pool_steps,
    served_lengths,
};

use super::today;
use crate::args::Global;
use crate::failure::Failure;
use crate::files;

/// One for each pool that serves anything.
pub(super) fn pools(
    loaded: &Loaded,
    scenario: &Path,
    budgets: &[Fit],
    global: &Global,
) -> Result<Vec<PoolPerformance>, Failure> {
    let demand = lower_demand(&loaded.scenario, today(global, loaded)).map_err(Failure::one)?;
    let seed = Seed::new(global.seed.unwrap_or(loaded.scenario.study.seed.get()));
    let rows = constants(&loaded.catalog);
    let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    let directory = scenario.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for (pool, budget) in loaded.scenario.pool.iter().zip(budgets) {
        let failed = |message: String, help: String| {
            let message = format!("pool `{}`: {message}", pool.name.as_str());
            let file = loaded.source.name();
            Failure::one(Diagnostic::about("no-step-time", file, message).help(help))
        };
        let input = pool_fit(loaded, pool).map_err(|(message, help)| failed(message, help))?;
        let served: Vec<_> = demand
            .classes
            .iter()
            .filter(|class| serves(&loaded.scenario, pool, &class.name))
            .collect();
        let Some(lengths) = served_lengths(&served, seed).filter(|_| budget.fits) else { continue };
        let steps = pool_steps(&input, budget, 1, &rows).map_err(|message| {
            failed(
                message,
                "give a catalogue entry with `peak_bf16` for it, by `--catalog`".to_owned(),
            )
        })?;
        let mut rates = steps.rates(&values);
        let (mut band, mut region) = (steps.band(&loaded.catalog), None);
        if let Some(file) = &pool.calibration {
            let path = directory.join(file);
            let own = calibration(&files::read_text(&path)?).map_err(|error| {
                let name = path.display().to_string();
                Failure::one(Diagnostic::about("bad-calibration", name, error.to_string()))
            })?;
            let named = pool.model.as_ref().and_then(|m| loaded.catalog.model(m.as_str()).ok());
            let model = named.map(|m| m.name.as_str());
            if let Some((what, made, used)) = differs(&own, &input, model, pool.engine.as_str()) {
                return Err(failed(
                    format!("its calibration is of {what} `{made}`, the pool has `{used}`"),
                    "calibrate the pool as it is, or leave `calibration` out".to_owned(),
                ));
            }
            own.apply(&mut rates);
            (band, region) = (own.band, Some(own.region));
        }
        found.push(pool_performance(&PoolPerformanceInput {
            steps: &steps,
            phase: match pool.role {
                Role::Both => Phase::Both,
                Role::Prefill => Phase::Prefill,
                Role::Decode => Phase::Decode,
            },
            rates,
            budget,
            lengths,
            reserves_output: input.engine.name == "tensorrt-llm",
            handover: pool.disaggregation.as_ref().map(|d| d.link.get()),
            band,
            region,
        }));
    }
    Ok(found)
}

/// What a calibration is of and a pool is not.
fn differs(
    own: &plimsoll_evidence::CalibrationFile,
    input: &FitInput<'_>,
    model: Option<&str>,
    engine: &str,
) -> Option<(&'static str, String, String)> {
    let bare = |text: &str| text.split('@').next().unwrap_or(text).to_lowercase();
    let pairs = [
        // A pool that brings its own `config.json` has no name to compare.
        ("the model", own.model.clone(), model.unwrap_or(&own.model).to_owned()),
        ("the accelerator", own.accelerator.clone(), input.accelerator.name.clone()),
        ("the engine", bare(&own.engine), bare(engine)),
        ("weights in", own.weights.clone(), dtype(input.format).to_owned()),
        (
            "a tensor-parallel group of",
            own.tensor_parallel.to_string(),
            input.placement.tensor.to_string(),
        ),
    ];
    pairs.into_iter().find(|(_, made, used)| made != used)
}
