//! The best that pools of a scenario can do.

use std::path::Path;

use plimsoll_evidence::{CalibrationFile, calibration};
use plimsoll_fleet::Catalog;
use plimsoll_perf::{Constant, Rates, constants, dtype};
use plimsoll_scenario::sections::{Pool, Role};
use plimsoll_scenario::{Diagnostic, Loaded, pool_fit, serves};
use plimsoll_stats::Seed;
use plimsoll_study::{
    Bands, Fit, FitInput, Phase, PoolPerformance, PoolPerformanceInput, PoolSteps, Provenance,
    Region, Spread, pool_performance, pool_steps, served_lengths,
};

use super::today;
use crate::args::Global;
use crate::failure::Failure;
use crate::files;

/// A pool's step times: the built-in ones, or those of its calibration.
pub(super) struct PoolTimes<'a> {
    pub(super) input: FitInput<'a>,
    pub(super) steps: PoolSteps,
    pub(super) rates: Rates,
    pub(super) bands: Bands,
    pub(super) region: Option<Region>,
    /// How gaps spread around their prediction, where a calibration saw it.
    pub(super) spread: Spread,
    pub(super) notes: Vec<String>,
}

/// The step times of a pool of a scenario.
pub(super) fn times<'a>(
    loaded: &'a Loaded,
    scenario: &Path,
    pool: &Pool,
    budget: &Fit,
    rows: &[Constant],
) -> Result<PoolTimes<'a>, Failure> {
    let failed = |message: String, help: String| {
        let message = format!("pool `{}`: {message}", pool.name.as_str());
        let file = loaded.source.name();
        Failure::one(Diagnostic::about("no-step-time", file, message).help(help))
    };
    let input = pool_fit(loaded, pool).map_err(|(message, help)| failed(message, help))?;
    let steps = pool_steps(&input, budget, pool.data_parallel.get(), rows).map_err(|message| {
        failed(message, "give a catalogue entry with `peak_bf16` for it, by `--catalog`".to_owned())
    })?;
    let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    let mut rates = steps.rates(&values);
    let catalog = &loaded.catalog;
    let mut bands = Bands {
        itl: steps.band(catalog),
        ttft: steps.band_of(catalog, "prefill"),
        peak: steps.band_of(catalog, "throughput"),
    };
    let (mut region, mut spread, mut notes) = (None, Spread::default(), Vec::new());
    if let Some(file) = &pool.calibration {
        let path = scenario.parent().unwrap_or(Path::new("")).join(file);
        let own = calibration(&files::read_text(&path)?).map_err(|error| {
            let name = path.display().to_string();
            Failure::one(Diagnostic::about("bad-calibration", name, error.to_string()))
        })?;
        let named = pool.model.as_ref().and_then(|m| catalog.model(m.as_str()).ok());
        let model = named.map(|m| m.name.as_str());
        if let Some((what, made, used)) = differs(&own, &input, model, catalog) {
            return Err(failed(
                format!("its calibration is of {what} `{made}`, the pool has `{used}`"),
                "calibrate the pool as it is, or leave `calibration` out".to_owned(),
            ));
        }
        if !own.engine.eq_ignore_ascii_case(pool.engine.as_str()) {
            notes.push(format!(
                "its calibration is of {}, the pool runs {}",
                own.engine,
                pool.engine.as_str()
            ));
        }
        own.apply(&mut rates);
        match (own.itl_band, own.ttft_band) {
            (None, None) => notes.push(
                "its calibration rests on one run or point: nothing was left to test it on, and the errors are the built-in ones".to_owned(),
            ),
            (itl, ttft) => {
                bands.itl = itl.unwrap_or(bands.itl);
                bands.ttft = ttft.unwrap_or(bands.ttft);
            }
        }
        // A peak is made of both kinds of step.
        let worse = bands.itl.p90_abs_pct.max(bands.ttft.p90_abs_pct);
        if bands.peak.p90_abs_pct < worse || bands.itl.provenance == Provenance::Calibrated {
            bands.peak =
                if bands.itl.p90_abs_pct >= worse { &bands.itl } else { &bands.ttft }.clone();
        }
        (region, spread) = (Some(own.region), own.spread);
    }
    Ok(PoolTimes { input, steps, rates, bands, region, spread, notes })
}

/// One for each pool that serves anything.
pub(super) fn pools(
    loaded: &Loaded,
    scenario: &Path,
    budgets: &[Fit],
    global: &Global,
) -> Result<Vec<PoolPerformance>, Failure> {
    let demand = loaded.demand(today(global, loaded)).map_err(Failure::one)?;
    let seed = Seed::new(global.seed.unwrap_or(loaded.scenario.study.seed.get()));
    let rows = constants(&loaded.catalog);
    let mut found = Vec::new();
    for (pool, budget) in loaded.scenario.pool.iter().zip(budgets) {
        let served: Vec<_> = demand
            .classes
            .iter()
            .filter(|class| serves(&loaded.scenario, pool, &class.name))
            .collect();
        let Some(lengths) = served_lengths(&served, seed).filter(|_| budget.fits) else { continue };
        let PoolTimes { input, steps, rates, bands, region, mut notes, .. } =
            times(loaded, scenario, pool, budget, &rows)?;
        if pool.speculation.is_some() {
            notes.push("speculative decoding is not in its step times".to_owned());
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
            attention_replicas: pool.data_parallel.get(),
            bands,
            region,
            notes,
        }));
    }
    Ok(found)
}

/// What a calibration is of and a pool is not. Versions may differ, but not in whether steps are scheduled while others run.
fn differs(
    own: &CalibrationFile,
    input: &FitInput<'_>,
    model: Option<&str>,
    catalog: &Catalog,
) -> Option<(&'static str, String, String)> {
    let made_with = catalog.engine(&own.engine).ok();
    let scheduling = |asynchronous: Option<bool>| match asynchronous {
        Some(false) => "between steps".to_owned(),
        _ => "during steps".to_owned(),
    };
    let pairs = [
        // A pool that brings its own `config.json` has no name to compare.
        ("the model", own.model.clone(), model.unwrap_or(&own.model).to_owned()),
        ("the accelerator", own.accelerator.clone(), input.accelerator.name.clone()),
        (
            "the engine",
            made_with.map_or_else(|| own.engine.clone(), |e| e.name.clone()),
            input.engine.name.clone(),
        ),
        (
            "an engine that schedules",
            scheduling(made_with.and_then(|e| e.async_scheduling)),
            scheduling(input.engine.async_scheduling),
        ),
        ("weights in", own.weights.clone(), dtype(input.format).to_owned()),
        (
            "cached numbers of bytes",
            own.kv_element_bytes.to_string(),
            input.kv_element_bytes.to_string(),
        ),
        ("tensor_parallel", own.tensor_parallel.to_string(), input.placement.tensor.to_string()),
        (
            "pipeline_parallel",
            own.pipeline_parallel.to_string(),
            input.placement.pipeline.to_string(),
        ),
        ("expert_parallel", own.expert_parallel.to_string(), input.placement.expert.to_string()),
    ];
    pairs.into_iter().find(|(_, made, used)| made != used)
}
