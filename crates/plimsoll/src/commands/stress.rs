//! `stress`: what breaks first, what moves the answer, what changes relieve and create.

use std::io::Write;
use std::path::Path;

use plimsoll_report::{StressDocument, stress_html, stress_json, stress_text};
use plimsoll_scenario::sections::{Change, Scenario};
use plimsoll_scenario::{
    Diagnostic, Effect, Loaded, condition, proposed_classes, stresses, uncertain,
};
use plimsoll_study::{
    Condition, LoadVerdict, PlanInput, PoolFacts, Proposed, SimulatedClass, StressInput, stress,
};
use plimsoll_workload::Shift;

use super::plan::Gathered;
use super::plan::candidates::proposed;
use super::simulate::Stop;
use super::{either, fleet, paged, planned, tell, today};
use crate::args::{Global, PlanHorizon, StressArgs};
use crate::failure::Failure;
use crate::heading;

/// What came of it, and whether the planned fleet fails in none of the ways that are tried.
pub(super) fn answer(
    args: &StressArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<(String, bool), Failure> {
    let loaded = planned(&args.file, global)?;
    let stop = Stop::new(args.time_limit.get(), global);
    let gathered = Gathered::new(&loaded, &args.file, global)?;
    let mut result = gathered.ask(&loaded, PlanHorizon::Deciding, global, |input, notes| {
        let asked = asked(&loaded, &args.file, &gathered, input)?;
        let mut result = stress(asked, &|| stop.go_on()).map_err(|e| failed(&loaded, &e))?;
        result.notes.extend(notes);
        Ok(result)
    })?;
    result.notes.extend(stop.notes());
    tell(global, err, &format!("tried everything in {:.2} s", stop.seconds()));
    let name = args.file.display().to_string();
    let as_of = today(global, &loaded).to_string();
    let document = StressDocument {
        name: &loaded.scenario.study.name,
        file: &name,
        as_of: &as_of,
        seed: fleet::seed(&loaded, global).get(),
        attainment: loaded.scenario.study.attainment.get(),
        quantile: loaded.scenario.study.demand_quantile.get(),
        result: &result,
        resources: args.resources,
    };
    paged(args.html.as_deref(), || stress_html(&document, crate::VERSION), global, err)?;
    // What is too close to call, or was not finished, does not hold.
    let passes = result
        .scenarios
        .iter()
        .filter(|own| own.not_applicable.is_none())
        .all(|own| own.attainment.verdict_planned == Some(LoadVerdict::Carried));
    let text = either(
        global,
        || stress_json(&document, crate::VERSION),
        || stress_text(&document, heading(), crate::VERSION),
    );
    Ok((text, passes))
}

pub(super) fn failed(loaded: &Loaded, error: &dyn std::fmt::Display) -> Failure {
    no_answer(loaded.source.name(), error)
}

pub(super) fn no_answer(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::one(Diagnostic::about("no-stress", name.to_owned(), error.to_string()))
}

/// All that is tried, and on what.
pub(super) fn asked<'a>(
    loaded: &Loaded,
    file: &Path,
    gathered: &Gathered,
    input: PlanInput<'a>,
) -> Result<StressInput<'a>, Failure> {
    let scenario = &loaded.scenario;
    let classes = input.fleet.classes.clone();
    let (hour, events) = match input.launch_hour {
        Some(hour) => (hour, true),
        None => (input.baseline_hour, false),
    };
    let pools: Vec<(String, PoolFacts)> = input
        .fleet
        .pools
        .iter()
        .zip(&input.pools)
        .map(|(pool, facts)| (pool.name.clone(), facts.clone()))
        .collect();
    let all = scenario.change.iter();
    let changes: Result<Vec<Proposed>, Failure> =
        all.map(|change| proposal(loaded, file, change, &input)).collect();
    let own = |class: &SimulatedClass| {
        scenario.class.iter().find(|own| own.name.as_str() == class.class.name)
    };
    Ok(StressInput {
        stresses: stresses(scenario, &classes),
        uncertain: uncertain(loaded, &classes, (gathered.demand.start, hour, events), &pools),
        changes: changes?,
        success: classes.iter().map(|c| own(c)?.success_rate.map(|share| share.get())).collect(),
        tool_usd: input.fleet.tools.iter().map(|(name, _)| tool_usd(scenario, name)).collect(),
        hits_from: classes
            .iter()
            .map(|class| {
                let hit = own(class)?.cache_hit.get();
                let seen = loaded.outlook.is_some();
                (hit > 0.0).then(|| match seen {
                    true => "as the ledger has it".to_owned(),
                    false => format!("{:.0}% as typed, and nobody measured it", hit * 100.0),
                })
            })
            .collect(),
        plan: input,
    })
}

/// What a call of a tool costs, in dollars.
fn tool_usd(scenario: &Scenario, name: &str) -> f64 {
    let tool = scenario.tool.iter().find(|tool| tool.name.as_str() == name);
    tool.and_then(|tool| tool.price).map_or(0.0, |price| price.get_picos() as f64 / 1e12)
}

/// A proposed change, ready to be tried.
fn proposal(
    loaded: &Loaded,
    file: &Path,
    change: &Change,
    input: &PlanInput<'_>,
) -> Result<Proposed, Failure> {
    let classes = proposed_classes(&loaded.scenario, change, &input.fleet.classes);
    let named = change.pool.as_ref().map(|pool| pool.as_str());
    let runs_otherwise =
        change.model.is_some() || change.weights.is_some() || change.max_num_seqs.is_some();
    let pool = match named {
        Some(name) if runs_otherwise => {
            let written = loaded.scenario.pool.iter().find(|pool| pool.name.as_str() == name);
            let at = input.fleet.pools.iter().position(|pool| pool.name == name);
            Some(match (written, at) {
                (Some(written), Some(at)) => {
                    let mut pool = written.clone();
                    if change.model.is_some() {
                        (pool.model, pool.hf_config) = (change.model.clone(), None);
                    }
                    pool.weights = change.weights.or(pool.weights);
                    pool.max_num_seqs = change.max_num_seqs.or(pool.max_num_seqs);
                    let known = (&input.pools[at], &input.fleet.pools[at]);
                    proposed(loaded, file, at, known, pool)?
                }
                _ => Err(format!("pool `{name}` serves no class")),
            })
        }
        _ => None,
    };
    let success = match change.success_rate {
        Effect::Known(times) => Some(times),
        Effect::Unknown => None,
    };
    Ok(Proposed {
        name: change.name.as_str().to_owned(),
        owner: change.owner.clone(),
        classes,
        shift: Shift { prompt: change.prompt.get(), output: change.output.get(), ..Shift::NONE },
        cache_hit: change.cache_hit.map(|share| share.get()),
        pool,
        success,
        guardrail: change.guardrail.as_ref().map(|text| {
            // A guardrail is for people; what of it is a condition is held against numbers.
            let read = condition(text);
            (text.clone(), read.unwrap_or_else(|_| Condition::Beyond("it".to_owned())))
        }),
        rollback: change
            .rollback
            .as_ref()
            .map(|own| (own.as_str().to_owned(), own.condition().clone())),
    })
}
