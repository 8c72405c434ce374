//! How the pools of a plan follow their demand, and what that is worth.

use serde::Serialize;

use super::PlanInput;
use super::admit::call_of;
use super::hours::Hours;
use super::money::{advised, saves};
use super::sizes::{Asked, PoolSize};
use crate::limits::PoolLimits;
use crate::scaling::{
    CeilingShort, ClassHours, FloorWindow, PoolCheck, ScalingCheck, ScalingCheckInput,
    ScalingInput, ScalingPolicy, ThresholdShares, ceiling_short, check_scaling, ramp_spells,
    scaling_policy,
};
use plimsoll_load::Source;
use plimsoll_load::Spell;
use plimsoll_load::StudyError;
use plimsoll_load::pools_serving;

/// How far below its bound each signal asks for more: demand early, because replicas take time; the others when something is wrong already.
const SHARES: ThresholdShares = ThresholdShares { demand: 0.9, queue: 0.5, ttft: 0.8 };
/// Seconds that are simulated before the steepest rise, beyond a start, at most so many in all; and after it.
const BEFORE_S: f64 = 120.0;
const BEFORE_MOST_S: f64 = 1800.0;
const AFTER_S: f64 = 240.0;
/// Runs of each way.
const RUNS: u32 = 1;
/// The windows in which promises are kept or not, in seconds.
const WINDOW_S: f64 = 60.0;

/// The autoscaler that is there, or Kubernetes' own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Autoscaler {
    /// Seconds between two decisions.
    pub sync_period_s: f64,
    /// How old what it sees is.
    pub scrape_delay_s: f64,
    /// How far a signal may be from its threshold for nothing to be done.
    pub tolerance: f64,
}

/// How pools follow their demand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingPlan {
    /// Whether it is worth having an autoscaler.
    pub advised: bool,
    /// Why, or why not.
    pub why: String,
    /// Each pool's.
    pub policies: Vec<ScalingPolicy>,
    /// What the windows of each pool cost.
    pub windows: Vec<PoolWindows>,
    /// Pools that need more replicas than they may ever have: no controller helps them.
    pub ceilings: Vec<CeilingShort>,
    /// The same against a fleet that stays as it is, and one that knows what comes; none where nothing moves.
    pub check: Option<ScalingCheck>,
}

/// The floors of a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolWindows {
    /// The pool.
    pub pool: String,
    /// Few windows, each with its floor.
    pub windows: Vec<WindowCost>,
    /// Hours of replicas above what each hour needs: the price of few windows.
    pub replica_hours_over: u64,
}

/// A window and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowCost {
    /// From when.
    pub from: String,
    /// Its hours.
    pub hours: usize,
    /// Replicas at least.
    pub floor: u32,
    /// What they cost.
    pub usd: Option<f64>,
}

/// Derives how pools follow their demand, and checks it on the hours that decide, or on all.
pub(crate) fn follow(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
    hours: &[Hours],
    limits: &[PoolLimits],
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<ScalingPlan, StudyError> {
    let none = |why: String| ScalingPlan {
        advised: false,
        why,
        policies: Vec::new(),
        windows: Vec::new(),
        ceilings: Vec::new(),
        check: None,
    };
    if sizes.is_empty() {
        return Ok(none("no device of one's own serves anything".to_owned()));
    }
    if sizes.iter().all(|size| size.tiny) {
        return Ok(none("one replica has little to do in the busiest hour: a fixed limit is enough, and an autoscaler has nothing to move".to_owned()));
    }
    let (mut policies, mut windows, mut checks) = (Vec::new(), Vec::new(), Vec::new());
    let mut ceilings = Vec::new();
    for (pool, (size, own)) in sizes.iter().zip(hours).enumerate() {
        let facts = &input.pools[pool];
        let name = &input.fleet.pools[pool].name;
        let reserve = size.replicas.reserve();
        let most = facts.most.min(size.replicas.total.max(facts.now)).max(1);
        let need: Vec<u32> = own.planned.iter().map(|n| (n + reserve).min(most)).collect();
        let all: Vec<usize> = (0..own.planned.len()).collect();
        ceilings.extend(ceiling_short(name, &own.planned, &all, most));
        let price = facts.replica_usd_per_hour;
        let floors = &own.floors;
        windows.push(PoolWindows {
            pool: name.clone(),
            windows: floors
                .windows
                .iter()
                .map(|window| WindowCost {
                    from: (input.label)(window.from),
                    hours: window.hours,
                    floor: window.floor,
                    usd: price.map(|usd| usd * window.hours as f64 * f64::from(window.floor)),
                })
                .collect(),
            replica_hours_over: floors.waste,
        });
        let seen = size.at_line().map(|seen| (seen, &seen.pools[pool]));
        let per_s = seen.map(|(seen, result)| {
            let time = seen.seconds * f64::from(seen.runs) * result.replicas.max(1) as f64;
            result.prefill_tokens as f64 / time
        });
        let in_flight =
            seen.map(|(_, r)| r.utilisation.sequences_mean + r.utilisation.waiting_mean);
        let limits = limits.iter().find(|limits| limits.pool == *name);
        let classes =
            asked.fleet.classes.iter().filter(|c| pools_serving(c, &asked.fleet).contains(&pool));
        let budget = classes.clone().filter_map(|c| c.sent.good.ttft).min();
        let policy = scaling_policy(&ScalingInput {
            pool: name.clone(),
            fresh_tokens_per_s: per_s,
            in_flight,
            queue_requests: limits.and_then(|limits| limits.queue_requests.value),
            ttft_budget_s: budget.map(|ps| ps as f64 / 1e12),
            kv_ceiling_share: limits.and_then(|limits| limits.kv_ceiling.value),
            shares: SHARES,
            min_replicas: need.iter().copied().min().unwrap_or(0).max(facts.fewest),
            max_replicas: most,
            floors: floors
                .windows
                .iter()
                .map(|window| FloorWindow {
                    from_hour: window.from,
                    until_hour: window.from + window.hours,
                    replicas: window.floor,
                })
                .collect(),
            startup_p90_s: Some(facts.startup_p90_s),
            drain_s: Some(asked.fleet.pools[pool].life.drain as f64 / 1e12),
            classes: classes
                .map(|class| ClassHours {
                    name: class.class.name.clone(),
                    calls_per_s: (0..class.class.hours.len())
                        .map(|hour| call_of(class, hour, true).per_s)
                        .collect(),
                    fresh_tokens: Some(call_of(class, asked.hour, asked.events).fresh),
                    in_flight_s: None,
                })
                .collect(),
            // The hours of a simulation step from one to the next, as events do.
            ramp_s: 0.0,
            sync_period_s: input.autoscaler.sync_period_s,
            scrape_delay_s: input.autoscaler.scrape_delay_s,
            tolerance_most: input.autoscaler.tolerance,
        });
        let moves = !size.tiny
            && facts.fewest < facts.most
            && need.iter().any(|n| *n < size.replicas.total);
        checks.push(PoolCheck {
            policy: moves.then(|| policy.clone()),
            planned_replicas: size.replicas.total,
            need_by_hour: own.planned.clone(),
            price_usd_per_replica_hour: price,
        });
        policies.push(policy);
    }
    if checks.iter().all(|check| check.policy.is_none()) {
        let mut plan = none(
            "the demand needs as many replicas in every hour: there is nothing to follow"
                .to_owned(),
        );
        (plan.policies, plan.windows, plan.ceilings) = (policies, windows, ceilings);
        return Ok(plan);
    }
    let check = checked(input, asked, sizes, hours, checks, go_on)?;
    for policy in &mut policies {
        let own =
            check.iter().flat_map(|check| &check.policy.pools).find(|own| own.pool == policy.pool);
        policy.expected_flips_per_day = own.map(|own| own.flips_per_day);
    }
    let (share, advised) = (saves(sizes, hours), advised(sizes, hours));
    let why = match advised {
        true => format!(
            "floors by the calendar save {:.0}% of the replica hours that a fleet of the peak's size takes",
            share * 100.0
        ),
        false => format!(
            "floors by the calendar save only {:.0}% of the replica hours: a fixed number is simpler",
            share * 100.0
        ),
    };
    Ok(ScalingPlan { advised, why, policies, windows, ceilings, check })
}

/// Simulates the steepest rise, or the whole horizon.
fn checked(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
    hours: &[Hours],
    pools: Vec<PoolCheck>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Option<ScalingCheck>, StudyError> {
    let count = hours.iter().map(|own| own.planned.len()).max().unwrap_or(0);
    // All pools together: the one that rises most decides where to look.
    let sum: Vec<u32> = (0..count)
        .map(|hour| hours.iter().map(|own| own.planned.get(hour).copied().unwrap_or(0)).sum())
        .collect();
    let startup = input.pools.iter().map(|facts| facts.startup_p90_s).fold(0.0, f64::max);
    let mut fleet = asked.fleet.clone();
    fleet.threads = input.fleet.threads;
    fleet.runs = RUNS;
    fleet.chance = false;
    fleet.incidents.clear();
    fleet.surges.clear();
    fleet.window = None;
    fleet.warm_up = 60.0;
    if input.every_hour {
        let spell = |hour: usize| Spell { until: (hour + 1) as f64 * 3600.0, hour, events: true };
        fleet.source = Source::Classes((0..count).map(spell).collect());
        fleet.seconds = count as f64 * 3600.0 - fleet.warm_up;
        fleet.runs = 1;
    } else {
        // What a floor asks for has to start before it is needed.
        let before = (BEFORE_S + startup).min(BEFORE_MOST_S);
        let Some(spells) = ramp_spells(&sum, fleet.warm_up + before, AFTER_S, true) else {
            return Ok(None);
        };
        fleet.seconds = before + AFTER_S;
        fleet.source = Source::Classes(spells.to_vec());
    }
    for (pool, size) in fleet.pools.iter_mut().zip(sizes) {
        pool.life.replicas = size.replicas.total;
        // Whether devices are there when they are asked for is told by orders.
        pool.life.startup.beyond = None;
    }
    let targets = asked.targets.iter().map(|target| target.attainment).collect();
    check_scaling(&ScalingCheckInput { fleet, pools, targets, window_s: WINDOW_S }, go_on).map(Some)
}
