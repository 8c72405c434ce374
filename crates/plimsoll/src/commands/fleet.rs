//! The fleet of a scenario, ready to be simulated.

use std::path::Path;

use plimsoll_perf::{Constant, constants, context_bytes};
use plimsoll_scenario::sections::{Pool, Role};
use plimsoll_scenario::{
    Demand, Diagnostic, Loaded, SimulatedFleet, SimulatedSpan, SimulatedTimes, is_reached, offers,
    simulated_fleet, simulated_pool,
};
use plimsoll_stats::Seed;
use plimsoll_study::{Bands, Fit, SimulateInput, SimulatedPool, Source, Spell};
use plimsoll_workload::Shift;

use super::fit;
use super::performance::times;
use super::pool::usage;
use crate::args::Global;
use crate::failure::Failure;

/// Events of one run at most: days of a busy fleet.
pub(super) const MOVES: u64 = 40_000_000_000;

/// Pools of a scenario, with their places in it, and what the reader should know of them.
pub(super) type Pools = (Vec<(usize, SimulatedPool)>, Vec<String>);

/// The pools that are simulated: those that somebody can come to, or one by its name.
pub(super) fn pools(
    loaded: &Loaded,
    file: &Path,
    only: Option<&str>,
    global: &Global,
) -> Result<Pools, Failure> {
    let none = loaded.scenario.pool.is_empty();
    let budgets = if none { Vec::new() } else { fit::pools(loaded, global)? };
    let rows = constants(&loaded.catalog);
    let scenario = &loaded.scenario;
    let (mut pools, mut notes) = (Vec::new(), Vec::new());
    let about = |code: &'static str, message: String, help: String| {
        Failure::one(Diagnostic::about(code, loaded.source.name(), message).help(help))
    };
    if let Some(name) = only
        && !scenario.pool.iter().any(|p| p.name.as_str() == name)
    {
        let known: Vec<&str> = scenario.pool.iter().map(|p| p.name.as_str()).collect();
        return Err(usage(
            format!("the scenario has no pool `{name}`"),
            format!("its pools are: {}", known.join(", ")),
        ));
    }
    // A prefill pool is nothing without the pool that generates.
    let partner = only.and_then(|name| {
        let own = scenario.pool.iter().find(|p| p.name.as_str() == name)?;
        own.disaggregation.as_ref().map(|d| d.decode.as_str())
    });
    for (i, (pool, budget)) in scenario.pool.iter().zip(&budgets).enumerate() {
        let name = pool.name.as_str();
        if only.is_some_and(|asked| asked != name && partner != Some(name)) {
            continue;
        }
        if !is_reached(scenario, pool) {
            notes.push(format!("pool `{name}` serves no class and is not simulated"));
            continue;
        }
        if only == Some(name) && pool.role == Role::Decode {
            return Err(usage(
                format!("pool `{name}` only generates: nobody comes to it by itself"),
                "name the pool that reads its prompts".to_owned(),
            ));
        }
        if !budget.fits {
            return Err(about(
                "does-not-fit",
                format!("pool `{name}` does not fit its devices, so nothing can run on it"),
                "`plimsoll fit` says what would make it fit".to_owned(),
            ));
        }
        let (simulated, _, own_notes) = simulated(loaded, file, pool, budget, &rows)?;
        pools.push((i, simulated));
        notes.extend(own_notes);
    }
    if pools.is_empty() && scenario.provider.is_empty() {
        return Err(about(
            "nothing-to-simulate",
            "no pool or provider of the scenario serves a class".to_owned(),
            match notes.is_empty() {
                true => "add a `[[pool]]`, or a `[[route]]` to one".to_owned(),
                false => notes.join("; "),
            },
        ));
    }
    Ok((pools, notes))
}

/// A pool that fits its devices, as it is simulated, how far off its step times may be, and what the reader should know of it.
pub(super) fn simulated(
    loaded: &Loaded,
    file: &Path,
    pool: &Pool,
    budget: &Fit,
    rows: &[Constant],
) -> Result<(SimulatedPool, Bands, Vec<String>), Failure> {
    let name = pool.name.as_str();
    let own = times(loaded, file, pool, budget, rows)?;
    let mut notes: Vec<String> =
        own.notes.iter().map(|note| format!("pool `{name}`: {note}")).collect();
    let engine = own.input.engine;
    let times = SimulatedTimes {
        steps: own.steps,
        rates: own.rates,
        spread: own.spread,
        context: context_bytes(own.input.model, own.input.kv_element_bytes),
    };
    let instance = pool.instance.as_ref().and_then(|i| loaded.catalog.instance(i.as_str()).ok());
    let node_devices = instance.map(|instance| instance.count).or_else(|| rented_in(loaded, pool));
    let (simulated, said) =
        simulated_pool(&loaded.scenario, pool, engine, budget, node_devices, times);
    notes.extend(said);
    Ok((simulated, own.bands, notes))
}

/// Devices of the node that a pool would be rented in, where its scenario leaves that open: the cheapest in its first region.
fn rented_in(loaded: &Loaded, pool: &Pool) -> Option<u32> {
    let named = pool.regions.first().map(|own| own.as_str());
    let mut regions = loaded.scenario.region.iter();
    let region = regions.find(|own| named.is_none_or(|named| own.name.as_str() == named));
    let all = offers(&loaded.scenario, &loaded.catalog, pool.accelerator.as_str(), None, region);
    all.iter().find(|offer| offer.mode == pool.price_mode).map(|offer| offer.devices)
}

/// The hour at which a class mix is looked at.
pub(super) fn one_hour(hour: usize, events: bool, warm_up: f64, seconds: f64) -> SimulatedSpan {
    let until = warm_up + seconds;
    SimulatedSpan { spells: vec![Spell { until, hour, events }], warm_up, seconds }
}

/// What a simulation of a scenario takes, with its fleet as it is today; and what the reader should know.
pub(super) fn input(
    loaded: &Loaded,
    demand: &Demand,
    (pools, mut notes): Pools,
    with_providers: bool,
    span: &SimulatedSpan,
    global: &Global,
) -> (SimulateInput, Vec<String>) {
    let study = &loaded.scenario.study;
    let SimulatedFleet {
        classes,
        pools,
        providers,
        tools,
        regions,
        ways,
        incidents,
        surges,
        notes: own,
    } = simulated_fleet(&loaded.scenario, &loaded.catalog, demand, pools, with_providers, span);
    notes.extend(own);
    let input = SimulateInput {
        classes,
        pools,
        providers,
        tools,
        regions,
        ways,
        incidents,
        surges,
        chance: true,
        source: Source::Classes(span.spells.clone()),
        lever: Shift::NONE,
        seconds: span.seconds,
        warm_up: span.warm_up,
        work_off: None,
        hopeless: None,
        runs: study.runs.get_u32(),
        level: study.confidence.get(),
        seed: seed(loaded, global),
        threads: threads(global),
        moves: MOVES,
        window: None,
    };
    (input, notes)
}

/// The one that is asked for, or the scenario's.
pub(super) fn seed(loaded: &Loaded, global: &Global) -> Seed {
    Seed::new(global.seed.unwrap_or(loaded.scenario.study.seed.get()))
}

pub(super) fn threads(global: &Global) -> usize {
    global.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        usize::from,
    )
}
