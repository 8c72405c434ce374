//! The pressure register: proposed changes, before and after on the same tasks.

use std::collections::BTreeMap;

use plimsoll_workload::Shift;

use super::hard::{Field, PLANNED, Peak, Side, Trial, moved};
use super::result::{ChangeSide, Guard, PressureChange, StressedResource};
use super::trigger::Condition;
use super::{Stress, side_by_side};
use crate::plan::PoolFacts;
use plimsoll_load::StudyError;
use plimsoll_load::pools_serving;
use plimsoll_load::{ClassResult, Distribution, SimulateInput, SimulatedPool, Simulation};

/// Something that somebody proposes.
#[derive(Clone, Debug)]
pub struct Proposed {
    /// What it is called.
    pub name: String,
    /// Who answers for it.
    pub owner: Option<String>,
    /// The classes that it changes, by their places: whoever comes to the pool, where that changes.
    pub classes: Vec<usize>,
    /// What becomes of their lengths.
    pub shift: Shift,
    /// Their new hit rate.
    pub cache_hit: Option<f64>,
    /// The pool that runs another way, or why it cannot.
    pub pool: Option<Result<ProposedPool, String>>,
    /// Multiplies the success of the classes; none where nobody knows.
    pub success: Option<f64>,
    /// What must stay true, and what of that can be held against numbers.
    pub guardrail: Option<(String, Condition)>,
    /// When it is taken back.
    pub rollback: Option<(String, Condition)>,
}

/// A pool that runs another way.
#[derive(Clone, Debug)]
pub struct ProposedPool {
    /// Which, by its place.
    pub pool: usize,
    /// As it would be simulated.
    pub simulated: SimulatedPool,
    /// What is known of it.
    pub facts: PoolFacts,
}

/// A fall of success that has to be seen, and how often by chance and surely it is: one point, one time in twenty, four in five.
const FALL: f64 = 0.01;
const Z_ALPHA: f64 = 1.645;
const Z_POWER: f64 = 0.842;

pub(super) fn changes(field: &Field<'_>, base: &Trial) -> Result<Vec<PressureChange>, StudyError> {
    let Some(sides) = &base.sides else { return Ok(Vec::new()) };
    let all = &field.input.changes;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let threads = field.input.plan.fleet.threads;
    let pools = field.input.plan.pools.len();
    let written = &field.carried.asked.fleet;
    let before = side_by_side(threads, pools, |pool| needs(field, written, pool))?;
    side_by_side(threads, all.len(), |i| change(field, &all[i], &sides[PLANNED], &before))
}

fn change(
    field: &Field<'_>,
    own: &Proposed,
    before: &Side,
    before_needs: &[u32],
) -> Result<PressureChange, StudyError> {
    let mut result = PressureChange {
        name: own.name.clone(),
        not_applicable: None,
        owner: own.owner.clone(),
        before: None,
        after: None,
        relieved: Vec::new(),
        created: Vec::new(),
        saving_per_success_pct: None,
        why: None,
        guardrail: None,
        rollback: None,
        tasks_to_tell: None,
    };
    if let Some(Err(why)) = &own.pool {
        result.not_applicable = Some(why.clone());
        return Ok(result);
    }
    let reference = field.subject(&Stress::none("change", ""));
    let [_, peak] = reference.peaks;
    let mut changed = peak.clone();
    apply(own, &mut changed.fleet);
    let (attainment, seen) = field.about(&changed)?;
    let mut fleet = field.carried.asked.fleet.clone();
    apply(own, &mut fleet);
    let facts = |pool: usize| match &own.pool {
        Some(Ok(proposed)) if proposed.pool == pool => &proposed.facts,
        _ => &field.input.plan.pools[pool],
    };
    let touched = |pool: usize| {
        let by_pool = matches!(&own.pool, Some(Ok(proposed)) if proposed.pool == pool);
        by_pool
            || own
                .classes
                .iter()
                .any(|at| pools_serving(&fleet.classes[*at], &fleet).contains(&pool))
    };
    let after_needs: Result<Vec<u32>, StudyError> = (0..fleet.pools.len())
        .map(|pool| match touched(pool) {
            true => needs(field, &fleet, pool),
            false => Ok(before_needs[pool]),
        })
        .collect();
    let after_needs = after_needs?;
    let times = |at: usize| if own.classes.contains(&at) { own.success } else { Some(1.0) };
    let usd = |needs: &[u32], seen: &Simulation, after: bool| -> Option<f64> {
        let each = needs.iter().enumerate().map(|(pool, n)| {
            let own = if after { facts(pool) } else { &field.input.plan.pools[pool] };
            Some(f64::from(*n) * own.replica_usd_per_hour?)
        });
        Some(each.sum::<Option<f64>>()? + field.variable_usd(seen)?)
    };
    let origin = &reference.origin;
    let per_success =
        |usd: Option<f64>, seen: &Simulation, times: &dyn Fn(usize) -> Option<f64>| {
            let good = field.successes(seen, origin, times)?;
            usd.filter(|_| good > 0.0).map(|usd| usd / good)
        };
    let usd_before = usd(before_needs, &before.seen, false);
    let usd_after = usd(&after_needs, &seen, true);
    let cost_before = per_success(usd_before, &before.seen, &|_| Some(1.0));
    let cost_after = per_success(usd_after, &seen, &times);
    result.saving_per_success_pct =
        cost_before.zip(cost_after).map(|(before, after)| (1.0 - after / before) * 100.0);
    if result.saving_per_success_pct.is_none() {
        result.why = match own.success {
            None => Some(
                "nobody has measured what it does to success, so no saving per success is claimed"
                    .to_owned(),
            ),
            Some(_) => field.why_no_success(),
        };
    }
    let metrics = metrics(field, own, &changed, &seen, cost_after);
    let holds = |(text, condition): &(String, Condition)| {
        let (holds, evidence) = match condition.holds(&metrics) {
            Ok((holds, evidence)) => (Some(holds), evidence),
            Err(_) if own.success.is_none() && text.contains("success") => {
                (None, "nobody has measured what it does to success".to_owned())
            }
            Err(why) => (None, why),
        };
        Guard { expression: text.clone(), stated: true, holds, evidence }
    };
    result.guardrail = own.guardrail.as_ref().map(holds);
    result.rollback = Some(match &own.rollback {
        Some(stated) => holds(stated),
        None => proposed_rollback(own, &changed, &metrics),
    });
    result.tasks_to_tell = tasks_to_tell(field, own);
    (result.relieved, result.created) = moved(&pressures(before, &seen, &peak.fleet));
    let side = |needs: &[u32], seen: &Simulation, attainment, usd, per_success| ChangeSide {
        replicas: needs.to_vec(),
        attainment,
        ttft_p95_ms: slowest(seen, |class| class.ttft_ms),
        tpot_p95_ms: slowest(seen, |class| class.tpot_ms),
        usd_per_hour: usd,
        usd_per_success: per_success,
    };
    result.before =
        Some(side(before_needs, &before.seen, before.attainment(), usd_before, cost_before));
    result.after = Some(side(&after_needs, &seen, attainment, usd_after, cost_after));
    Ok(result)
}

fn slowest(seen: &Simulation, of: impl Fn(&ClassResult) -> Option<Distribution>) -> Option<f64> {
    seen.classes.iter().filter_map(of).map(|d| d.p95).reduce(f64::max)
}

/// Changes a fleet; its replicas stay.
fn apply(own: &Proposed, fleet: &mut SimulateInput) {
    for at in &own.classes {
        let class = &mut fleet.classes[*at];
        if let Some(hit) = own.cache_hit {
            class.class.task = class.class.task.clone().with_cache_hit(hit);
            // It is stated now, and not looked for.
            class.finds_prefixes = false;
        }
        class.class.hours.iter_mut().for_each(|hour| hour.drift = hour.drift.and(own.shift));
    }
    if let Some(Ok(proposed)) = &own.pool {
        let before = &fleet.pools[proposed.pool].life;
        let (replicas, regions) = (before.replicas, before.regions.clone());
        let hands_over = before.hands_over;
        let pool = &mut fleet.pools[proposed.pool];
        *pool = proposed.simulated.clone();
        (pool.life.replicas, pool.life.regions, pool.life.hands_over) =
            (replicas, regions, hands_over);
    }
}

/// Replicas of a pool that carry the demand, about.
fn needs(field: &Field<'_>, fleet: &SimulateInput, pool: usize) -> Result<u32, StudyError> {
    let mut fleet = fleet.clone();
    fleet.threads = 1;
    field.needs(&fleet, pool, field.carried.sized[pool].replicas.carry())
}

/// What is used of each resource, before and after.
fn pressures(before: &Side, after: &Simulation, fleet: &SimulateInput) -> Vec<StressedResource> {
    let mut rows = Vec::new();
    let mut row = |name: &str, of: Option<&str>, unit, (from, to): (f64, f64), share: bool| {
        rows.push(StressedResource {
            name: name.to_owned(),
            of: of.map(str::to_owned),
            unit,
            demand: (!share).then_some(to),
            reference: (!share).then_some(from),
            used_now: None,
            used_planned: share.then_some(to),
            reference_used_now: None,
            reference_used_planned: share.then_some(from),
        });
    };
    for (i, pool) in fleet.pools.iter().enumerate() {
        let (a, b) = (&before.seen.pools[i].utilisation, &after.pools[i].utilisation);
        let name = Some(pool.name.as_str());
        row("busy", name, "share used", (a.busy, b.busy), true);
        row("kv", name, "share used", (a.kv_mean, b.kv_mean), true);
        row("memory_bandwidth", name, "share used", (a.bandwidth, b.bandwidth), true);
        row("compute", name, "share used", (a.compute, b.compute), true);
        row("host", name, "share used", (a.path, b.path), true);
        row("queue", name, "waiting, per replica", (a.waiting_mean, b.waiting_mean), false);
        let per_s = |seen: &Simulation, tokens: u64| {
            tokens as f64 / (seen.seconds * f64::from(seen.runs)).max(1e-9)
        };
        let (x, y) = (&before.seen.pools[i], &after.pools[i]);
        let prefill = (per_s(&before.seen, x.prefill_tokens), per_s(after, y.prefill_tokens));
        row("prefill_tokens", name, "tok/s", prefill, false);
        let output = (per_s(&before.seen, x.output_tokens), per_s(after, y.output_tokens));
        row("output_tokens", name, "tok/s", output, false);
    }
    for (a, b) in before.seen.classes.iter().zip(&after.classes) {
        let name = Some(a.name.as_str());
        let p95 = |d: Option<Distribution>| d.map(|d| d.p95);
        for (metric, from, to) in [
            ("ttft_p95", p95(a.ttft_ms), p95(b.ttft_ms)),
            ("tpot_p95", p95(a.tpot_ms), p95(b.tpot_ms)),
            ("e2e_p95", p95(a.e2e_ms), p95(b.e2e_ms)),
        ] {
            if let Some(pair) = from.zip(to) {
                row(metric, name, "ms", pair, false);
            }
        }
    }
    rows
}

/// A name as monitors write them.
fn metric_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// What a simulation shows, by the names that conditions call it.
fn metrics(
    field: &Field<'_>,
    own: &Proposed,
    peak: &Peak,
    seen: &Simulation,
    per_success: Option<f64>,
) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for (at, class) in seen.classes.iter().enumerate() {
        let name = metric_name(&peak.fleet.classes[at].class.name);
        let mut put = |what: &str, value: Option<f64>| {
            if let Some(value) = value {
                found.insert(format!("{name}_{what}"), value);
            }
        };
        put("attainment", class.attainment);
        let failed = (class.offered - class.completed - class.left) as f64;
        put("error_rate", Some(failed / class.offered.max(1) as f64));
        let success = field.input.success.get(at).copied().flatten();
        let times = if own.classes.contains(&at) { own.success } else { Some(1.0) };
        put("success_rate", success.zip(times).map(|(share, times)| (share * times).min(1.0)));
        for (what, of) in [
            ("ttft", class.ttft_ms),
            ("tpot", class.tpot_ms),
            ("itl", class.itl_ms),
            ("e2e", class.e2e_ms),
        ] {
            for (percentile, value) in
                [("p50", of.map(|d| d.p50)), ("p95", of.map(|d| d.p95)), ("p99", of.map(|d| d.p99))]
            {
                put(&format!("{what}_{percentile}_ms"), value);
                put(&format!("{what}_{percentile}_seconds"), value.map(|ms| ms / 1e3));
            }
        }
    }
    for pool in &seen.pools {
        let name = metric_name(&pool.name);
        found.insert(format!("{name}_kv_usage"), pool.utilisation.kv_mean);
        found.insert(format!("{name}_queue"), pool.utilisation.waiting_mean);
        found.insert(format!("{name}_busy"), pool.utilisation.busy);
    }
    if let Some(usd) = per_success {
        found.insert("cost_per_success_usd".to_owned(), usd);
    }
    found
}

/// Where nobody says when a change is taken back: when a class that it changes gets less than it was promised.
fn proposed_rollback(own: &Proposed, peak: &Peak, metrics: &BTreeMap<String, f64>) -> Guard {
    let classes = &own.classes;
    let each = classes.iter().map(|at| {
        let name = metric_name(&peak.fleet.classes[*at].class.name);
        format!("{name}_attainment < {}", peak.targets[*at].attainment)
    });
    let expression = each.collect::<Vec<_>>().join(" or ");
    let fires = classes.iter().any(|at| {
        let name = metric_name(&peak.fleet.classes[*at].class.name);
        metrics
            .get(&format!("{name}_attainment"))
            .is_some_and(|seen| *seen < peak.targets[*at].attainment)
    });
    Guard {
        expression,
        stated: false,
        holds: Some(fires),
        evidence: "nobody stated one: this is what the classes were promised".to_owned(),
    }
}

/// Tasks of each side that it takes to tell whether success has fallen by one point.
fn tasks_to_tell(field: &Field<'_>, own: &Proposed) -> Option<u64> {
    let classes =
        own.classes.iter().filter_map(|at| field.input.success.get(*at).copied().flatten());
    // The class that is nearest to one in two takes most.
    let n = classes.map(|share| 2.0 * share * (1.0 - share) * ((Z_ALPHA + Z_POWER) / FALL).powi(2));
    n.reduce(f64::max).map(|n| n.ceil() as u64)
}
