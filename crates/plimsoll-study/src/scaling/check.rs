//! A policy against a fleet that stays as it is, and one that knows what comes, on the same demand.

use std::ops::Add;

use plimsoll_sim::{
    Behaviour, Change, ScalePolicy, Scaling, ScalingSpec, Select, Signal, StartupSpec, TargetKind,
};
use plimsoll_stats::in_order;
use serde::Serialize;

use super::rest::{RestOfHorizon, RestWay, rest};
use super::{ScalingPolicy, ScalingSignal};
use crate::limits::shown;
use plimsoll_load::StudyError;
use plimsoll_load::{SimulateInput, Simulation, Source, simulate};
use plimsoll_load::{Spell, ps};

/// Seconds between two decisions of who knows what comes; its replicas are there that much earlier.
const ORACLE_PERIOD_S: f64 = 5.0;
/// Tasks of a window that may miss by the target, fewer than which chance decides.
const MISSES_FEWEST: f64 = 5.0;

/// A stretch of so many seconds says little of a day.
const STRETCH_SHORT_S: f64 = 6.0 * 3600.0;

/// What is checked.
#[derive(Clone, Debug)]
pub struct ScalingCheckInput {
    /// The fleet and a stretch of its demand. How many replicas its pools have, and what decides that, is set here; everything else is as it says, starts included.
    pub fleet: SimulateInput,
    /// Each pool of the fleet, in its order; one that is missing stays as it is.
    pub pools: Vec<PoolCheck>,
    /// The share of tasks that must be good, of each class of the fleet.
    pub targets: Vec<f64>,
    /// The windows in which promises are kept or not, in seconds.
    pub window_s: f64,
}

/// A pool that is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolCheck {
    /// How it follows its demand; where there is none, it stays at its plan.
    pub policy: Option<ScalingPolicy>,
    /// Replicas of the plan.
    pub planned_replicas: u32,
    /// Replicas that each hour of the horizon needs, by the service curve; beyond its end, those of the plan.
    pub need_by_hour: Vec<u32>,
    /// What a replica costs in an hour.
    pub price_usd_per_replica_hour: Option<f64>,
}

impl PoolCheck {
    /// Replicas that an hour needs.
    pub(super) fn need(&self, hour: usize) -> u32 {
        self.need_by_hour.get(hour).copied().unwrap_or(self.planned_replicas)
    }

    /// Replicas of an hour by the calendar alone.
    pub(super) fn by_calendar(&self, hour: usize) -> u32 {
        let Some(policy) = &self.policy else { return self.planned_replicas };
        policy.floor(hour).max(policy.min_replicas).min(policy.max_replicas)
    }

    /// Replicas of an hour by the calendar and the demand, which is steered to below the load line.
    pub(super) fn by_policy(&self, hour: usize) -> u32 {
        let Some(policy) = &self.policy else { return self.planned_replicas };
        let wanted = (f64::from(self.need(hour)) / policy.demand_share.clamp(0.01, 1.0)).ceil();
        self.by_calendar(hour).max((wanted as u32).min(policy.max_replicas))
    }
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It was simulated.
    Simulation,
    /// It follows from the replicas that the service curve says each hour needs.
    ServiceCurve,
}

/// A way of having replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WayKind {
    /// The plan's, all the time.
    Static,
    /// As the policy has it.
    Policy,
    /// As many as each hour needs, ready when it begins.
    Oracle,
}

/// What became of a stretch in three ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingCheck {
    /// Makes it repeatable.
    pub seed: u64,
    /// Seconds of the stretch that count.
    pub seconds: f64,
    /// Independent runs of each way, on the same demand.
    pub runs: u32,
    /// Seconds of the windows in which promises are kept or not.
    pub window_s: f64,
    /// The signal that each pool followed.
    pub signals: Vec<SimulatedSignal>,
    /// The plan's replicas all the time.
    pub static_plan: ScalingWay,
    /// As the policy has it.
    pub policy: ScalingWay,
    /// As many as needed, ready when needed.
    pub oracle: ScalingWay,
    /// How much worse than who knows what comes, in the stretch and in the rest of the horizon.
    pub regret: Vec<Regret>,
    /// The hours that were not simulated.
    pub rest: Option<RestOfHorizon>,
    /// Pools that need more replicas in the stretch than their policy may ever have.
    pub ceilings: Vec<CeilingShort>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// The signal that a pool followed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedSignal {
    /// The pool.
    pub pool: String,
    /// The signal; none where it stayed at its plan.
    pub signal: Option<ScalingSignal>,
}

/// What became of a stretch in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingWay {
    /// Which.
    pub way: WayKind,
    /// Hours of replicas, ready or not, of a run.
    pub replica_hours: f64,
    /// Their price; none where a pool has none.
    pub cost_usd: Option<f64>,
    /// The class furthest below its target, or least above.
    pub worst_class: Option<String>,
    /// Its good tasks among those that came.
    pub attainment: Option<f64>,
    /// Their share that was asked for.
    pub attainment_target: Option<f64>,
    /// Minutes in which fewer tasks were good than all targets together ask for.
    pub slo_minutes_missed: f64,
    /// Minutes in which tasks came.
    pub slo_minutes: f64,
    /// Changes of direction a day, of all pools.
    pub flips_per_day: f64,
    /// Whether every run came to its end.
    pub complete: bool,
    /// Each pool.
    pub pools: Vec<PoolWay>,
    /// Window by window.
    pub series: Vec<WayPoint>,
}

/// What one window was like: of all pools together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WayPoint {
    /// When it begins, in seconds from the end of the warm-up.
    pub from_s: f64,
    /// Tasks that began, a second.
    pub offered_per_s: f64,
    /// The share of these that were good; none where nobody came.
    pub good: Option<f64>,
    /// Replicas that served, on average, in the first run.
    pub replicas: f64,
    /// Calls that waited for an engine, on average, in the first run.
    pub waiting: f64,
}

/// A pool in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolWay {
    /// The pool.
    pub pool: String,
    /// Hours of replicas, ready or not, of a run.
    pub replica_hours: f64,
    /// Their price.
    pub cost_usd: Option<f64>,
    /// Replicas that were ready, on average.
    pub replicas_mean: f64,
    /// The fewest that were ready or on their way.
    pub replicas_min: u32,
    /// The most.
    pub replicas_max: u32,
    /// Changes of direction a day.
    pub flips_per_day: f64,
    /// Decisions that wanted more than there may be, of all runs.
    pub decisions_at_most: u64,
    /// The most calls that waited while replicas were on their way.
    pub queue_while_starting_max: u64,
}

/// How much worse than who knows what comes; less than zero where it is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Regret {
    /// Where it comes from.
    pub from: Basis,
    /// Of which way.
    pub of: WayKind,
    /// Hours of replicas more.
    pub replica_hours: f64,
    /// Money more; none where a pool has no price.
    pub cost_usd: Option<f64>,
    /// Minutes more in which promises were not kept.
    pub slo_minutes: f64,
}

/// A pool that needs more replicas than it may ever have: no controller helps it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CeilingShort {
    /// The pool.
    pub pool: String,
    /// Most replicas.
    pub max_replicas: u32,
    /// The most that an hour needs.
    pub needed_replicas: u32,
    /// Replicas that are missing then.
    pub ceiling_short_replicas: u32,
    /// The first hour of the horizon that needs more than there may be.
    pub first_hour: usize,
    /// What that means.
    pub why: String,
}

/// Whether a pool needs more replicas in some hours than it may ever have; none where it does not.
pub fn ceiling_short(
    pool: &str,
    need_by_hour: &[u32],
    hours: &[usize],
    max_replicas: u32,
) -> Option<CeilingShort> {
    let needs = hours.iter().filter_map(|hour| Some((*hour, *need_by_hour.get(*hour)?)));
    let (first_hour, _) = needs.clone().find(|(_, need)| *need > max_replicas)?;
    let needed_replicas = needs.map(|(_, need)| need).max()?;
    let ceiling_short_replicas = needed_replicas - max_replicas;
    let why = format!(
        "hour {first_hour} is the first to need more than {max_replicas} replicas, and {needed_replicas} are needed at the most: whatever the policy does, {ceiling_short_replicas} are missing"
    );
    Some(CeilingShort {
        pool: pool.to_owned(),
        max_replicas,
        needed_replicas,
        ceiling_short_replicas,
        first_hour,
        why,
    })
}

/// The stretch around the steepest rise of what hours need, so many seconds before it and after it: where a policy is put to the test. The first of several that are as steep; none where
/// nothing rises.
pub fn ramp_spells(
    need_by_hour: &[u32],
    before_s: f64,
    after_s: f64,
    events: bool,
) -> Option<[Spell; 2]> {
    let rises = need_by_hour.windows(2).map(|w| w[1].saturating_sub(w[0])).enumerate();
    let steepest = rises.filter(|(_, rise)| *rise > 0).reduce(|a, b| if b.1 > a.1 { b } else { a });
    let (hour, _) = steepest?;
    let before = Spell { until: before_s, hour, events };
    Some([before, Spell { until: before_s + after_s, hour: hour + 1, events }])
}

/// The times of a stretch, and the hours of the horizon that they are.
pub(super) struct Stretch {
    /// From when until when, in seconds from the beginning of the warm-up, and the hour.
    parts: Vec<(f64, f64, usize)>,
    warm_up: f64,
}

impl Stretch {
    fn of(fleet: &SimulateInput) -> Self {
        let end = fleet.warm_up + fleet.seconds;
        let mut parts = Vec::new();
        match &fleet.source {
            Source::Classes(spells) => {
                let mut from = 0.0;
                for spell in spells {
                    let until = spell.until.min(end);
                    if until > from {
                        parts.push((from, until, spell.hour));
                        from = until;
                    }
                }
            }
            // A trace begins with the first hour.
            Source::Trace(..) => {
                let hours = (end / 3600.0).ceil().clamp(0.0, 1e6) as usize;
                parts.extend(
                    (0..hours)
                        .map(|hour| (hour as f64 * 3600.0, (hour as f64 + 1.0) * 3600.0, hour)),
                );
            }
        }
        Self { parts, warm_up: fleet.warm_up }
    }

    fn first_hour(&self) -> Option<usize> {
        self.parts.first().map(|part| part.2)
    }

    fn hours(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.2).collect()
    }

    /// Seconds of an hour that count.
    pub(super) fn seconds_of(&self, hour: usize) -> f64 {
        let own = self.parts.iter().filter(|part| part.2 == hour);
        own.map(|(from, until, _)| (until - from.max(self.warm_up)).max(0.0)).fold(0.0, f64::add)
    }

    /// What replicas are asked not to go below, from when on: that of each part, from so many seconds before it begins.
    fn floors(&self, lead: f64, of: impl Fn(usize) -> u32) -> Vec<(u64, u32)> {
        let begins = |from: f64| (from - lead).max(0.0);
        let mut edges: Vec<f64> =
            self.parts.iter().flat_map(|(from, until, _)| [begins(*from), *until]).collect();
        edges.sort_by(f64::total_cmp);
        edges.dedup();
        let mut floors: Vec<(u64, u32)> = Vec::new();
        for at in edges {
            let now =
                self.parts.iter().filter(|(from, until, _)| begins(*from) <= at && at < *until);
            // What comes after the end is not known here.
            let Some(floor) = now.map(|part| of(part.2)).max() else { continue };
            if floors.last().is_none_or(|(_, last)| *last != floor) {
                floors.push((ps(at), floor));
            }
        }
        floors
    }
}

/// Simulates a stretch three ways on the same demand. `go_on` is asked now and then; once it says no, runs end early and say so.
///
/// A stretch may be minutes around a ramp: what is left of its hours, and all others, are told by the service curve. How long it takes is three times `runs` simulations of the
/// stretch; ways are spread over threads where there are fewer runs than threads.
pub fn check_scaling(
    input: &ScalingCheckInput,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<ScalingCheck, StudyError> {
    let stretch = Stretch::of(&input.fleet);
    let mut notes = Vec::new();
    let signals = signals(input, &mut notes);
    let ways = [WayKind::Static, WayKind::Policy, WayKind::Oracle];
    let threads = input.fleet.threads.max(1);
    // Runs of a way are spread over threads where there are enough of them; otherwise ways are.
    let (outer, inner) =
        if input.fleet.runs as usize >= threads { (1, threads) } else { (threads, 1) };
    let all = in_order(outer, ways.len() as u32, |i| {
        let way = ways[i as usize];
        let mut fleet = fleet(input, way, &stretch, &signals);
        fleet.threads = inner;
        simulate(&fleet, None, go_on).map(|result| conclude(input, way, &result))
    });
    let mut all = all.into_iter();
    let mut next = || all.next().unwrap_or(Err(StudyError::Empty));
    let (static_plan, policy, oracle) = (next()?, next()?, next()?);
    let rest = rest(&input.pools, &stretch);
    let named = input.fleet.pools.iter().zip(&input.pools);
    let ceilings = named.filter_map(|(pool, own)| {
        let max = own.policy.as_ref()?.max_replicas;
        ceiling_short(&pool.name, &own.need_by_hour, &stretch.hours(), max)
    });
    let ceilings: Vec<CeilingShort> = ceilings.collect();
    let mut regret = vec![regret(&static_plan, &oracle), regret(&policy, &oracle)];
    if let Some(rest) = &rest {
        regret.push(rest_regret(WayKind::Static, &rest.static_plan, &rest.oracle));
        regret.push(rest_regret(WayKind::Policy, &rest.policy, &rest.oracle));
    }
    noted(input, &static_plan, &oracle, &mut notes);
    beyond_plan(input, &stretch, &mut notes);
    if policy.flips_per_day > 0.0 && input.fleet.seconds < STRETCH_SHORT_S {
        notes.push(format!("changes of direction a day are those of {} s, as if every hour were like them: an upper end where the stretch is a ramp", shown(input.fleet.seconds)));
    }
    Ok(ScalingCheck {
        seed: input.fleet.seed.get(),
        seconds: input.fleet.seconds,
        runs: input.fleet.runs,
        window_s: input.window_s,
        signals,
        static_plan,
        policy,
        oracle,
        regret,
        rest,
        ceilings,
        notes,
    })
}

/// The signal that each pool follows: the one that leads, unless it cannot be simulated as it is meant.
fn signals(input: &ScalingCheckInput, notes: &mut Vec<String>) -> Vec<SimulatedSignal> {
    let finds = input.fleet.classes.iter().any(|class| class.finds_prefixes);
    let each = input.fleet.pools.iter().enumerate().map(|(i, pool)| {
        let policy = input.pools.get(i).and_then(|own| own.policy.as_ref());
        let mut signal = policy.and_then(|policy| policy.leading);
        // A gateway does not know what an engine has cached: the simulated one counts whole prompts where hits are looked for.
        let in_flight = policy.and_then(|policy| policy.threshold(ScalingSignal::InFlight));
        if finds && signal == Some(ScalingSignal::FreshTokens) && in_flight.is_some() {
            signal = Some(ScalingSignal::InFlight);
            notes.push(format!("pool `{}` follows calls in flight: which tokens are fresh is not known before an engine has looked into its cache", pool.name));
        }
        if policy.is_some() && signal.is_none() {
            notes.push(format!("pool `{}` stays at its plan: no signal of its policy has a threshold", pool.name));
        }
        SimulatedSignal { pool: pool.name.clone(), signal }
    });
    let all: Vec<SimulatedSignal> = each.collect();
    if all.iter().any(|own| own.signal.is_some()) {
        notes.push("a simulated pool follows one signal and its calendar; an autoscaler follows whichever of its signals asks for most".to_owned());
    }
    all
}

/// The fleet as one way has it.
fn fleet(
    input: &ScalingCheckInput,
    way: WayKind,
    stretch: &Stretch,
    signals: &[SimulatedSignal],
) -> SimulateInput {
    let mut fleet = input.fleet.clone();
    fleet.window = Some(input.window_s.max(1e-3));
    // A run that was given up would show no windows after that.
    fleet.hopeless = None;
    let first = stretch.first_hour();
    for (i, pool) in fleet.pools.iter_mut().enumerate() {
        let Some(own) = input.pools.get(i) else { continue };
        let life = &mut pool.life;
        (life.replicas, life.scaling) = (own.planned_replicas, None);
        match way {
            WayKind::Static => {}
            WayKind::Policy => {
                let signal = signals.get(i).and_then(|own| own.signal);
                let Some((policy, signal)) = own.policy.as_ref().zip(signal) else { continue };
                let floors = stretch.floors(policy.floors_lead_s, |hour| policy.floor(hour));
                life.scaling = policy.spec(signal, floors);
                if life.scaling.is_some() {
                    let begins = first.map_or(own.planned_replicas, |hour| own.by_policy(hour));
                    life.replicas = begins.max(policy.min_replicas).max(1);
                }
            }
            WayKind::Oracle => {
                life.replicas = first.map_or(own.planned_replicas, |hour| own.need(hour)).max(1);
                life.startup = StartupSpec { phases: Vec::new(), beyond: None };
                life.model_when_new = None;
                let floors = stretch.floors(ORACLE_PERIOD_S, |hour| own.need(hour));
                let most = floors.iter().map(|(_, n)| *n).max().unwrap_or(0).max(life.replicas);
                life.scaling = Some(foresight(most, floors));
            }
        }
    }
    fleet
}

/// Somebody who looks at nothing but floors, and may do anything at once.
fn foresight(max: u32, floors: Vec<(u64, u32)>) -> ScalingSpec {
    let free = Behaviour {
        tolerance: 0.0,
        stabilization: 0,
        policies: vec![ScalePolicy { change: Change::Replicas(u32::MAX), period: 1 }],
        select: Select::Max,
    };
    ScalingSpec {
        scaling: Scaling { min: 0, max, up: free.clone(), down: free, activation: None },
        // One replica where anybody waits: nobody is left without.
        signal: Signal::QueueDepth,
        target: 1e9,
        kind: TargetKind::AverageValue,
        activation: 0.0,
        period: ps(ORACLE_PERIOD_S),
        delay: 0,
        floors,
    }
}

/// From what was simulated to what is said.
fn conclude(input: &ScalingCheckInput, way: WayKind, result: &Simulation) -> ScalingWay {
    let hours = result.seconds / 3600.0;
    let pools: Vec<PoolWay> = result
        .pools
        .iter()
        .enumerate()
        .map(|(i, pool)| {
            let scaled = result.autoscaling.iter().find(|own| own.pool == pool.name);
            let replicas = u32::try_from(pool.replicas).unwrap_or(u32::MAX);
            let replica_hours = scaled.map_or(pool.replicas as f64 * hours, |s| s.replica_hours);
            let price = input.pools.get(i).and_then(|own| own.price_usd_per_replica_hour);
            PoolWay {
                pool: pool.name.clone(),
                replica_hours,
                cost_usd: price.map(|price| price * replica_hours),
                replicas_mean: scaled.map_or(pool.replicas as f64, |s| s.replicas_mean),
                replicas_min: scaled.map_or(replicas, |s| s.replicas_min),
                replicas_max: scaled.map_or(replicas, |s| s.replicas_max),
                flips_per_day: scaled.map_or(0.0, |s| s.flips_per_day),
                decisions_at_most: scaled.map_or(0, |s| s.decisions_at_most),
                queue_while_starting_max: scaled.map_or(0, |s| s.queue_while_starting_max),
            }
        })
        .collect();
    let judged = result.classes.iter().zip(&input.targets);
    let judged = judged.filter_map(|(class, target)| Some((class, class.attainment?, *target)));
    let worst = judged.max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
    let (slo_minutes_missed, slo_minutes) = minutes(input, result);
    ScalingWay {
        way,
        replica_hours: pools.iter().map(|pool| pool.replica_hours).fold(0.0, f64::add),
        cost_usd: pools.iter().map(|pool| pool.cost_usd).sum(),
        worst_class: worst.map(|(class, ..)| class.name.clone()),
        attainment: worst.map(|(_, attainment, _)| attainment),
        attainment_target: worst.map(|(.., target)| target),
        slo_minutes_missed,
        slo_minutes,
        flips_per_day: pools.iter().map(|pool| pool.flips_per_day).fold(0.0, f64::add),
        complete: result.complete,
        pools,
        series: series(result),
    }
}

/// Window by window, all pools together.
fn series(result: &Simulation) -> Vec<WayPoint> {
    let began = result.goodput_timeline.iter().flatten();
    let at = |from: f64| {
        let windows = result.timeline.iter().flatten();
        windows.filter(move |window| (window.from_s - from).abs() < 1e-6)
    };
    began
        .map(|window| WayPoint {
            from_s: window.from_s,
            offered_per_s: window.offered_per_s,
            good: window.good,
            replicas: at(window.from_s).map(|own| own.replicas_mean).fold(0.0, f64::add),
            waiting: at(window.from_s)
                .map(|own| own.utilisation.waiting_mean * own.replicas_mean)
                .fold(0.0, f64::add),
        })
        .collect()
}

/// The share of all tasks that is good where every class is at its target, those apart whose users leave before anything is due; none where nobody came.
fn target(input: &ScalingCheckInput, result: &Simulation) -> Option<f64> {
    let (mut good, mut offered) = (0.0, 0.0);
    for (class, target) in result.classes.iter().zip(&input.targets) {
        let early = class.left.saturating_sub(class.left_overdue);
        good += target * class.offered.saturating_sub(early) as f64;
        offered += class.offered as f64;
    }
    (offered > 0.0).then(|| good / offered)
}

/// Minutes of windows in which fewer tasks were good than that, and of all in which tasks came.
fn minutes(input: &ScalingCheckInput, result: &Simulation) -> (f64, f64) {
    let (Some(target), Some(windows)) = (target(input, result), &result.goodput_timeline) else {
        return (0.0, 0.0);
    };
    let (mut missed, mut all) = (0.0, 0.0);
    for window in windows {
        let Some(good) = window.good else { continue };
        let took = (result.seconds - window.from_s).clamp(0.0, input.window_s) / 60.0;
        all += took;
        // Sums of shares are not exact to the last digit.
        if good < target - 1e-9 {
            missed += took;
        }
    }
    (missed, all)
}

fn regret(way: &ScalingWay, oracle: &ScalingWay) -> Regret {
    Regret {
        from: Basis::Simulation,
        of: way.way,
        replica_hours: way.replica_hours - oracle.replica_hours,
        cost_usd: way.cost_usd.zip(oracle.cost_usd).map(|(own, least)| own - least),
        slo_minutes: way.slo_minutes_missed - oracle.slo_minutes_missed,
    }
}

fn rest_regret(of: WayKind, way: &RestWay, oracle: &RestWay) -> Regret {
    Regret {
        from: Basis::ServiceCurve,
        of,
        replica_hours: way.replica_hours - oracle.replica_hours,
        cost_usd: way.cost_usd.zip(oracle.cost_usd).map(|(own, least)| own - least),
        slo_minutes: way.slo_minutes_missed - oracle.slo_minutes_missed,
    }
}

fn noted(
    input: &ScalingCheckInput,
    static_plan: &ScalingWay,
    oracle: &ScalingWay,
    notes: &mut Vec<String>,
) {
    let rate = |class: usize| {
        let own = &input.fleet.classes[class];
        match &input.fleet.source {
            Source::Classes(spells) => {
                let each = spells.iter().map(|spell| own.rate(spell.hour, spell.events));
                each.fold(0.0, f64::max)
            }
            Source::Trace(trace, _) => trace.requests().len() as f64 / input.fleet.seconds.max(1.0),
        }
    };
    let rates = || (0..input.fleet.classes.len()).map(rate);
    let tasks = rates().sum::<f64>() * input.window_s * f64::from(input.fleet.runs);
    let most = input.targets.iter().copied().fold(0.0, f64::max);
    if tasks * (1.0 - most) < MISSES_FEWEST {
        let (window, tasks, most) = (shown(input.window_s), shown(tasks), shown(100.0 * most));
        notes.push(format!("a window of {window} s has about {tasks} tasks in all runs: one that is not good may be all it takes to miss {most}%"));
    }
    if oracle.slo_minutes_missed > 0.0 {
        notes.push("even with as many replicas as the service curve asks for, promises are not kept in every minute: it looks at whole hours".to_owned());
    }
    if oracle.replica_hours > static_plan.replica_hours {
        notes.push("the plan has fewer replicas than the service curve asks for in this stretch, so it is cheaper than who knows what comes".to_owned());
    }
}

/// A policy that steers to below the load line may want more than a plan that has its reserve in other replicas.
fn beyond_plan(input: &ScalingCheckInput, stretch: &Stretch, notes: &mut Vec<String>) {
    for (pool, own) in input.fleet.pools.iter().zip(&input.pools) {
        let Some(policy) = &own.policy else { continue };
        let most = stretch.parts.iter().map(|part| own.by_policy(part.2)).max().unwrap_or(0);
        if most > own.planned_replicas {
            notes.push(format!(
                "pool `{}` is steered to {}% of its load line, which takes {most} replicas at the most; the plan has {}, its reserve included",
                pool.name,
                shown(100.0 * policy.demand_share),
                own.planned_replicas
            ));
        }
    }
}

impl ScalingPolicy {
    /// The policy with what its check says of it.
    pub fn checked(mut self, check: &ScalingCheck) -> Self {
        let own = check.policy.pools.iter().find(|pool| pool.pool == self.pool);
        self.expected_flips_per_day = own.map(|pool| pool.flips_per_day);
        self
    }
}
