//! `review`: all of it, in one document.

use std::io::Write;
use std::path::Path;

use plimsoll_report::{review_html, review_json, review_markdown, review_text};
use plimsoll_scenario::{Demand, Loaded};
use plimsoll_study::{Assumption, Cost, Decision, Fit, Review, ReviewParts, Whole, review, whole};
use plimsoll_workload::Class;

use super::plan::Gathered;
use super::simulate::Stop;
use super::{
    assumption, cost, counted, either, fit, fleet, paged, performance, planned, stress, tell, today,
};
use crate::args::{GatedFleet, Global, PlanHorizon, ReviewArgs};
use crate::failure::Failure;
use crate::{columns, heading};

/// Levels of the fan, the median first.
const LEVELS: [f64; 4] = [0.5, 0.8, 0.95, 0.99];
/// Hours after which a forecast is held against what came, where its horizon is longer.
const RECONCILE_HOURS: usize = 168;

/// The review, and whether it passes: behind a gate, only a fleet that is READY within its caps does.
pub(super) fn answer(
    args: &ReviewArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<(String, bool), Failure> {
    let loaded = planned(&args.file, global)?;
    let stop = Stop::new(args.time_limit.get(), global);
    let mut review =
        made(&loaded, &args.file, global, &|done| report(global, done), &|| stop.go_on())?;
    review.notes.extend(stop.notes());
    paged(args.html.as_deref(), || review_html(&review, crate::VERSION), global, err)?;
    paged(args.markdown.as_deref(), || review_markdown(&review, crate::VERSION), global, err)?;
    let document = || review_json(&review, crate::VERSION);
    paged(args.out.as_deref(), || format!("{:#}\n", document()), global, err)?;
    // Scripts want the document and nothing else.
    if !global.json {
        tell(global, err, &format!("reviewed in {:.2} s", stop.seconds()));
    }
    let verdict = &review.verdict;
    let gated = args.gate.map(|fleet| match fleet {
        GatedFleet::Today => verdict.today,
        GatedFleet::Plan => verdict.plan,
    });
    let passes =
        gated.is_none_or(|decision| decision == Decision::Ready && verdict.over_caps.is_empty());
    let text = either(global, document, || review_text(&review, heading(), columns()));
    Ok((text, passes))
}

/// Whoever waits hears how much of it is done.
pub(super) fn report(global: &Global, thousandths: u32) {
    if let Some(typed) = &global.typed {
        typed.work.at(thousandths);
    }
}

/// Makes a review. `at` hears how much of it is done, in thousandths.
pub(super) fn made(
    loaded: &Loaded,
    file: &Path,
    global: &Global,
    at: &(dyn Fn(u32) + Sync),
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Review, Failure> {
    let (study, day) = (&loaded.scenario.study, today(global, loaded));
    let lowered = loaded.demand(day).map_err(Failure::one)?;
    let mut notes = lowered.notes.clone();
    let (mut memory, mut best, mut replicas_now) = (Vec::new(), Vec::new(), Vec::new());
    if !loaded.scenario.pool.is_empty() {
        memory = fit::pools(loaded, global)?;
        best = performance::pools(loaded, file, &memory, global)?;
        replicas_now = loaded.scenario.pool.iter().map(|pool| pool.replicas.now()).collect();
    }
    let gathered = match serves(loaded, &memory) {
        true => Some(Gathered::new(loaded, file, global)?),
        false => None,
    };
    let routing = gathered.as_ref().map_or(Vec::new(), |own| own.routing(loaded, global));
    let demand = counted(loaded, &lowered, routing, study.runs.get_u32(), global)?;
    at(50);
    let (found, spent) = match &gathered {
        Some(gathered) => {
            let (found, said) = whole_of(loaded, file, gathered, global, &demand, at, go_on)?;
            notes.extend(said);
            (Some(found), priced(loaded, file, global, &mut notes))
        }
        None => (None, None),
    };
    notes.dedup();
    let assumptions: Vec<Assumption> =
        loaded.entries.iter().filter_map(|entry| assumption(entry, day)).collect();
    Ok(review(ReviewParts {
        name: study.name.clone(),
        as_of: day.to_string(),
        start: lowered.start.to_string(),
        seed: fleet::seed(loaded, global).get(),
        demand_quantile: study.demand_quantile.get(),
        baseline_from: lowered.hour_label(demand.baseline_hour.index),
        launch_from: demand.launch_hour.map(|hour| lowered.hour_label(hour.index)),
        reconcile_on: reconcile_on(&lowered),
        levels: levels(loaded, day)?,
        from: if loaded.outlook.is_some() { "ledger" } else { "scenario" },
        demand,
        whole: found,
        cost: spent,
        values: values(loaded),
        memory,
        replicas_now,
        performance: best,
        notes,
        assumptions,
    }))
}

/// Whether anything serves, and fits where it is.
fn serves(loaded: &Loaded, memory: &[Fit]) -> bool {
    let scenario = &loaded.scenario;
    !(scenario.pool.is_empty() && scenario.provider.is_empty()) && memory.iter().all(|fit| fit.fits)
}

fn whole_of(
    loaded: &Loaded,
    file: &Path,
    gathered: &Gathered,
    global: &Global,
    demand: &plimsoll_study::Demand,
    at: &(dyn Fn(u32) + Sync),
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Whole, Vec<String>), Failure> {
    gathered.ask_of(loaded, PlanHorizon::Deciding, global, demand, |input, notes| {
        let asked = stress::asked(loaded, file, gathered, input)?;
        let found = whole(asked, &|done| at(50 + done * 9 / 10), go_on);
        Ok((found.map_err(|e| stress::failed(loaded, &e))?, notes))
    })
}

/// What it costs; where that cannot be said, why.
fn priced(loaded: &Loaded, file: &Path, global: &Global, notes: &mut Vec<String>) -> Option<Cost> {
    match cost::of_loaded(loaded, file, global) {
        Ok(cost) => Some(cost),
        Err(failure) => {
            let why = failure.diagnostics().into_iter().map(|d| d.message);
            notes.extend(why.map(|why| format!("what it costs cannot be said: {why}")));
            None
        }
    }
}

/// What a success of each class is worth, where that is said.
fn values(loaded: &Loaded) -> Vec<(String, Option<String>, f64)> {
    let classes = loaded.scenario.class.iter();
    let each = classes.filter_map(|class| {
        let usd = class.value?.get_micros() as f64 / 1e6;
        Some((class.name.as_str().to_owned(), class.feature.clone(), usd))
    });
    each.collect()
}

/// Every class, hour by hour, at each level of what is not known.
fn levels(loaded: &Loaded, day: jiff::civil::Date) -> Result<Vec<(f64, Vec<Class>)>, Failure> {
    let of = |level: f64| Ok((level, loaded.demand_at(day, level).map_err(Failure::one)?.classes));
    LEVELS.into_iter().map(of).collect()
}

/// When the horizon is over, or a week after its start.
fn reconcile_on(demand: &Demand) -> String {
    let hours = demand.classes.iter().map(|class| class.hours.len()).max().unwrap_or(0);
    demand.hour_label(hours.min(RECONCILE_HOURS))
}
