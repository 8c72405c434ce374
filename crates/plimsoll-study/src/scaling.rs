//! How a pool should follow its demand, and what that is worth: a policy for an autoscaler, and its check against a fleet that stays as it is and one that knows what comes.
//!
//! Demand is looked at first: it says how many replicas are needed whatever there are now. What only shows when it is too late, or cannot go beyond one, is a guard.

mod check;
mod rest;
#[cfg(test)]
mod tests;

use plimsoll_sim::{
    Activation, Behaviour, Change, ScalePolicy, Scaling, ScalingSpec, Select, Signal, TargetKind,
};
use serde::Serialize;

pub use self::check::{
    Basis, CeilingShort, PoolCheck, PoolWay, Regret, ScalingCheck, ScalingCheckInput, ScalingWay,
    SimulatedSignal, WayKind, WayPoint, ceiling_short, check_scaling, ramp_spells,
};
pub use self::rest::{RestOfHorizon, RestWay};
use crate::limits::shown;
use plimsoll_load::ps;

/// The longest window over which an autoscaler waits, in seconds: Kubernetes accepts no more.
const STABILISATION_MOST_S: f64 = 3600.0;
/// The longest period of a policy, in seconds: the same.
const PERIOD_MOST_S: f64 = 1800.0;
/// Hours after which demand is no longer compared with itself.
const LAGS_MOST: usize = 48;

/// What a policy is derived from.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingInput {
    /// The pool.
    pub pool: String,
    /// Fresh prompt tokens a second of a replica at its load line.
    pub fresh_tokens_per_s: Option<f64>,
    /// Calls that run or wait at a replica at its load line, on average.
    pub in_flight: Option<f64>,
    /// Calls that may wait for a replica.
    pub queue_requests: Option<f64>,
    /// Seconds to the first token that the class was promised which is promised least.
    pub ttft_budget_s: Option<f64>,
    /// The share of a cache above which nobody is let in.
    pub kv_ceiling_share: Option<f64>,
    /// How far below its bound each signal asks for more.
    pub shares: ThresholdShares,
    /// Fewest replicas.
    pub min_replicas: u32,
    /// Most replicas.
    pub max_replicas: u32,
    /// Replicas by the calendar.
    pub floors: Vec<FloorWindow>,
    /// Seconds that nine starts in ten take at most.
    pub startup_p90_s: Option<f64>,
    /// Seconds that a replica has to finish what it has begun.
    pub drain_s: Option<f64>,
    /// What comes, hour by hour.
    pub classes: Vec<ClassHours>,
    /// Seconds that demand takes to go from one hour's rate to the next: an hour where it drifts, none where it steps, as it does from spell to spell of a simulation.
    pub ramp_s: f64,
    /// Seconds between two decisions.
    pub sync_period_s: f64,
    /// How many seconds old what is decided on is.
    pub scrape_delay_s: f64,
    /// How far a signal may be from its threshold at most for nothing to be done.
    pub tolerance_most: f64,
}

/// How far below its bound a signal asks for more: shares of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdShares {
    /// Of the load line.
    pub demand: f64,
    /// Of the longest queue.
    pub queue: f64,
    /// Of the time promised to the first token.
    pub ttft: f64,
}

/// Hours in which there are not fewer replicas than so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FloorWindow {
    /// The first hour of the horizon.
    pub from_hour: usize,
    /// The hour that it no longer holds in.
    pub until_hour: usize,
    /// Replicas.
    pub replicas: u32,
}

/// What a class asks of a pool, hour by hour.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassHours {
    /// The class.
    pub name: String,
    /// Calls a second in each hour.
    pub calls_per_s: Vec<f64>,
    /// Fresh prompt tokens of a call, on average.
    pub fresh_tokens: Option<f64>,
    /// Seconds that a call is in flight at the load line, on average.
    pub in_flight_s: Option<f64>,
}

/// How a pool should follow its demand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingPolicy {
    /// The pool.
    pub pool: String,
    /// What is looked at, in order: demand, then what shows that there was too much of it. The one that wants most replicas is followed.
    pub thresholds: Vec<ScalingThreshold>,
    /// The signal of demand that asks for the most replicas in the busiest hour.
    pub leading: Option<ScalingSignal>,
    /// The share of the load line that replicas are steered to.
    pub demand_share: f64,
    /// Fewest replicas.
    pub min_replicas: u32,
    /// Most replicas.
    pub max_replicas: u32,
    /// Replicas by the calendar.
    pub floors: Vec<FloorWindow>,
    /// How many seconds before its hours a floor begins, so that its replicas are ready by then.
    pub floors_lead_s: f64,
    /// How replicas are added.
    pub up: ScalingBehaviour,
    /// How they are removed.
    pub down: ScalingBehaviour,
    /// How far from its threshold a signal may be for nothing to be done, as a share.
    pub tolerance_share: f64,
    /// Why so far.
    pub tolerance_why: String,
    /// Seconds between two decisions.
    pub sync_period_s: f64,
    /// How many seconds old what is decided on is.
    pub scrape_delay_s: f64,
    /// Seconds over which demand stays within one replica's worth of itself; none where it always does, or nothing is known of it.
    pub demand_holds_s: Option<f64>,
    /// How alike demand is to itself an hour later: one is the same, zero is chance.
    pub autocorrelation_1h: Option<f64>,
    /// Changes of direction a day, as simulated; none before it was.
    pub expected_flips_per_day: Option<f64>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// What an autoscaler looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalingSignal {
    /// Fresh prompt tokens that come, a second.
    FreshTokens,
    /// Calls that run or wait.
    InFlight,
    /// Calls that wait.
    QueueDepth,
    /// Seconds to the first token, of nine calls in ten.
    TtftP90,
    /// The share of caches in use.
    Kv,
}

impl ScalingSignal {
    /// As the simulator has it.
    pub fn simulated(self) -> Signal {
        match self {
            Self::FreshTokens => Signal::FreshTokens,
            Self::InFlight => Signal::InFlight,
            Self::QueueDepth => Signal::QueueDepth,
            Self::TtftP90 => Signal::TtftP90,
            Self::Kv => Signal::Kv,
        }
    }
}

/// What a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalRole {
    /// It says how many replicas are needed.
    Demand,
    /// It says that there are too few, once there are.
    Guard,
}

/// What a threshold is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdKind {
    /// A sum over the pool, divided by its replicas.
    AverageValue,
    /// The value itself.
    Value,
}

/// A signal and where it asks for more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingThreshold {
    /// What is looked at.
    pub signal: ScalingSignal,
    /// What for.
    pub role: SignalRole,
    /// What the threshold is compared with.
    pub kind: ThresholdKind,
    /// The threshold; none where it cannot be said.
    pub value: Option<f64>,
    /// Of what it is.
    pub unit: &'static str,
    /// Where it comes from, with the numbers; or what is missing.
    pub why: String,
}

/// How replicas are added, or removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingBehaviour {
    /// So many.
    pub replicas: u32,
    /// Within so many seconds.
    pub period_s: f64,
    /// Seconds that a recommendation holds back more daring ones.
    pub stabilisation_s: f64,
    /// Why.
    pub why: String,
}

/// Derives how a pool should follow its demand.
pub fn scaling_policy(input: &ScalingInput) -> ScalingPolicy {
    let demand = demand_in_replicas(input);
    let mut notes = Vec::new();
    let startup = known(input.startup_p90_s);
    if startup.is_none() {
        notes.push("how long a start takes is not known: replicas may be added again before the last ones are ready".to_owned());
    }
    let thresholds = thresholds(input);
    if thresholds.iter().all(|t| t.role == SignalRole::Guard || t.value.is_none()) {
        notes.push(
            "no signal of demand has a threshold: what is left shows only when it is too late"
                .to_owned(),
        );
    }
    let max = input.max_replicas.max(input.min_replicas).max(1);
    let (tolerance_share, tolerance_why) = tolerance(input, max);
    let holds = holds_s(&demand);
    ScalingPolicy {
        pool: input.pool.clone(),
        leading: leading(input, &thresholds),
        thresholds,
        demand_share: known(Some(input.shares.demand)).unwrap_or(1.0),
        min_replicas: input.min_replicas,
        max_replicas: max,
        floors: input.floors.clone(),
        floors_lead_s: startup.unwrap_or(0.0),
        up: up(input, &demand, startup),
        down: down(input, &demand, startup, holds),
        tolerance_share,
        tolerance_why,
        sync_period_s: known(Some(input.sync_period_s)).unwrap_or(1.0),
        scrape_delay_s: known(Some(input.scrape_delay_s)).unwrap_or(0.0),
        demand_holds_s: holds,
        autocorrelation_1h: autocorrelation(&demand),
        expected_flips_per_day: None,
        notes,
    }
}

fn known(quantity: Option<f64>) -> Option<f64> {
    quantity.filter(|n| n.is_finite() && *n > 0.0)
}

fn thresholds(input: &ScalingInput) -> Vec<ScalingThreshold> {
    use {ScalingSignal as S, SignalRole as R, ThresholdKind as K};
    let one = |signal, role, kind, unit, bound: Option<f64>, share: f64, words: [&str; 3]| {
        let [of, missing, remark] = words;
        let (value, why) = match (known(bound), known(Some(share))) {
            (Some(bound), Some(share)) => {
                let value = bound * share;
                let share = shown(100.0 * share);
                (Some(value), format!("{share}% of {} {unit}, {of}{remark}", shown(bound)))
            }
            _ => (None, format!("{missing} is not known")),
        };
        ScalingThreshold { signal, role, kind, value, unit, why }
    };
    vec![
        one(
            S::FreshTokens,
            R::Demand,
            K::AverageValue,
            "fresh prompt tokens/s/replica",
            input.fresh_tokens_per_s,
            input.shares.demand,
            [
                "the load line of a replica",
                "how many fresh tokens a replica carries at its load line",
                "; it is what comes and not what is served, so it goes on rising where the pool is full",
            ],
        ),
        one(
            S::InFlight,
            R::Demand,
            K::AverageValue,
            "calls/replica",
            input.in_flight,
            input.shares.demand,
            [
                "what is in flight at the load line of a replica",
                "how many calls are in flight at the load line of a replica",
                "; those that wait are counted, so it has no upper end",
            ],
        ),
        one(
            S::QueueDepth,
            R::Guard,
            K::AverageValue,
            "waiting calls/replica",
            input.queue_requests,
            input.shares.queue,
            [
                "which may wait before anybody is turned away",
                "how many calls may wait",
                "; it asks for as many replicas as would share the line, so the policy bounds what it gets",
            ],
        ),
        one(
            S::TtftP90,
            R::Guard,
            K::Value,
            "s",
            input.ttft_budget_s,
            input.shares.ttft,
            [
                "as promised to the first token",
                "what was promised to the first token",
                "; a latency is no sum, so it is compared as it is",
            ],
        ),
        one(
            S::Kv,
            R::Guard,
            K::Value,
            "share of the cache",
            input.kv_ceiling_share,
            1.0,
            [
                "above which nobody is let in",
                "how full a cache may be",
                "; it cannot exceed one, so it never asks for many, and where prompts are long it says little",
            ],
        ),
    ]
}

/// What comes in each hour, in replicas that it takes at their load line: the most that any signal says. Empty where nothing is known.
fn demand_in_replicas(input: &ScalingInput) -> Vec<f64> {
    let fresh = by_signal(input, ScalingSignal::FreshTokens);
    let in_flight = by_signal(input, ScalingSignal::InFlight);
    match (fresh, in_flight) {
        (Some(a), Some(b)) => a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect(),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

/// The same by one signal; none where a class does not tell.
fn by_signal(input: &ScalingInput, signal: ScalingSignal) -> Option<Vec<f64>> {
    let line = match signal {
        ScalingSignal::FreshTokens => known(input.fresh_tokens_per_s)?,
        ScalingSignal::InFlight => known(input.in_flight)?,
        _ => return None,
    };
    let hours = input.classes.iter().map(|class| class.calls_per_s.len()).max()?;
    let mut all = vec![0.0; hours];
    for class in &input.classes {
        let each = match signal {
            ScalingSignal::FreshTokens => class.fresh_tokens,
            _ => class.in_flight_s,
        };
        let each = each.filter(|n| n.is_finite() && *n >= 0.0)?;
        for (sum, calls) in all.iter_mut().zip(&class.calls_per_s) {
            *sum += calls.max(0.0) * each / line;
        }
    }
    all.iter().all(|n| n.is_finite()).then_some(all)
}

/// The signal of demand that asks for the most replicas in the busiest hour; where hours do not tell, the first that has a threshold.
fn leading(input: &ScalingInput, thresholds: &[ScalingThreshold]) -> Option<ScalingSignal> {
    let demand = |t: &&ScalingThreshold| t.role == SignalRole::Demand && t.value.is_some();
    let most = |signal: ScalingSignal| {
        let hours = by_signal(input, signal).unwrap_or_default();
        hours.into_iter().fold(0.0, f64::max)
    };
    let mut best: Option<(ScalingSignal, f64)> = None;
    for threshold in thresholds.iter().filter(demand) {
        let most = most(threshold.signal);
        if best.is_none_or(|(_, before)| most > before) {
            best = Some((threshold.signal, most));
        }
    }
    let guard = || thresholds.iter().find(|t| t.value.is_some()).map(|t| t.signal);
    best.map(|(signal, _)| signal).or_else(guard)
}

/// One replica more or fewer is never within it: a tenth of forty replicas would be four that nobody adds.
fn tolerance(input: &ScalingInput, max: u32) -> (f64, String) {
    let most = input.tolerance_most.clamp(0.0, 1.0);
    let most = if most.is_finite() { most } else { 0.0 };
    let one = (1000.0 / (f64::from(max) + 1.0)).floor() / 1000.0;
    if one < most {
        let why = format!("less than one replica of {max}, so that the last one is added too");
        (one, why)
    } else {
        (most, format!("as given; less than one replica of {max}"))
    }
}

/// The floor of an hour.
fn floor_of(floors: &[FloorWindow], hour: usize) -> u32 {
    let holds = |f: &&FloorWindow| (f.from_hour..f.until_hour).contains(&hour);
    floors.iter().filter(holds).map(|f| f.replicas).max().unwrap_or(0)
}

/// As many as the steepest rise needs while a replica starts, and no more before those are ready: a signal does not see who is on the way.
fn up(input: &ScalingInput, demand: &[f64], startup: Option<f64>) -> ScalingBehaviour {
    let sync = known(Some(input.sync_period_s)).unwrap_or(1.0);
    let period_s = startup.unwrap_or(0.0).max(sync).min(PERIOD_MOST_S);
    let steepest = demand.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
    let part = match known(Some(input.ramp_s)) {
        Some(ramp) => (startup.unwrap_or(0.0) / ramp).min(1.0),
        None => 1.0,
    };
    let share = known(Some(input.shares.demand)).unwrap_or(1.0);
    let rise = (steepest * part / share).ceil();
    // Floors are asked for in the same way as everything else, and bounded in the same way.
    let edges = input.floors.iter().flat_map(|f| [f.from_hour, f.until_hour]);
    let steps = edges.map(|hour| {
        let own = |hour: usize| floor_of(&input.floors, hour).max(input.min_replicas);
        let before = hour.checked_sub(1).map_or(input.min_replicas, own);
        own(hour).saturating_sub(before)
    });
    let floor_step = steps.max().unwrap_or(0);
    let replicas = (rise as u32).max(floor_step).max(1).min(input.max_replicas.max(1));
    let mut why = match startup {
        Some(startup) => format!(
            "nine starts in ten take {} s or less, so no more are added before the last ones are ready",
            shown(startup)
        ),
        None => "how long a start takes is not known, so a decision's own period is the only pause"
            .to_owned(),
    };
    why += &format!(
        "; the steepest rise is {} replicas from one hour to the next, {} of them while one starts",
        shown(steepest),
        shown(steepest * part)
    );
    if f64::from(floor_step) > rise {
        why += &format!("; the calendar steps by {floor_step} at once");
    }
    why += "; a rise is followed at once";
    if startup.is_some_and(|s| s > PERIOD_MOST_S) {
        why += "; Kubernetes has no period above 1,800 s";
    }
    ScalingBehaviour { replicas, period_s, stabilisation_s: 0.0, why }
}

/// One at a time, and only when demand has been lower for as long as it usually stays within one replica of itself.
fn down(
    input: &ScalingInput,
    demand: &[f64],
    startup: Option<f64>,
    holds: Option<f64>,
) -> ScalingBehaviour {
    let startup = startup.unwrap_or(0.0);
    let sync = known(Some(input.sync_period_s)).unwrap_or(1.0);
    let drain = known(input.drain_s).unwrap_or(0.0);
    let period_s = startup.max(drain).max(sync).min(PERIOD_MOST_S);
    let window = holds.unwrap_or(STABILISATION_MOST_S);
    let stabilisation_s = window.max(startup).min(STABILISATION_MOST_S).ceil();
    let mut why = match (holds, demand.is_empty()) {
        (Some(holds), _) => format!("demand stays within one replica's worth of itself for {} s (root mean square of its change), so a shorter dip is chance", shown(holds)),
        (None, true) => "how demand moves is not known, so it is waited for as long as Kubernetes does at most".to_owned(),
        (None, false) => "demand never moves by a replica's worth, so nothing is lost by waiting as long as Kubernetes does at most".to_owned(),
    };
    if holds.is_some_and(|holds| holds < startup) {
        why +=
            &format!("; not shorter than the {} s until a replica would be back", shown(startup));
    }
    why += &format!(
        "; one at a time, each {} s, in which it finishes what it has and another could start",
        shown(period_s)
    );
    ScalingBehaviour { replicas: 1, period_s, stabilisation_s, why }
}

/// The root mean square of how far demand moves within so many hours; none where there are not so many.
fn moves(demand: &[f64], lag: usize) -> Option<f64> {
    let pairs = demand.len().checked_sub(lag).filter(|n| *n > 0)?;
    let squares = (0..pairs).map(|i| (demand[i + lag] - demand[i]) * (demand[i + lag] - demand[i]));
    Some((squares.sum::<f64>() / pairs as f64).sqrt())
}

/// Seconds over which demand moves by one replica's worth, from how far it moves over each number of hours, on straight lines between them; none where it never does.
///
/// Half the mean square of its change over a lag is its variance less its autocovariance there, so this is where its autocorrelation falls to one less half a squared replica
/// over its variance.
fn holds_s(demand: &[f64]) -> Option<f64> {
    let mut before = 0.0;
    for lag in 1..=LAGS_MOST.min(demand.len().saturating_sub(1)) {
        let moved = moves(demand, lag)?;
        if moved >= 1.0 {
            let part = (1.0 - before) / (moved - before);
            return Some((lag as f64 - 1.0 + part) * 3600.0);
        }
        before = moved;
    }
    None
}

/// How alike demand is to itself an hour later.
fn autocorrelation(demand: &[f64]) -> Option<f64> {
    if demand.len() < 3 {
        return None;
    }
    let mean = demand.iter().sum::<f64>() / demand.len() as f64;
    let variance: f64 = demand.iter().map(|d| (d - mean) * (d - mean)).sum();
    let covariance: f64 = demand.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    (variance > 0.0).then(|| covariance / variance)
}

impl ScalingPolicy {
    /// The threshold of a signal.
    pub fn threshold(&self, signal: ScalingSignal) -> Option<f64> {
        self.thresholds.iter().find(|t| t.signal == signal).and_then(|t| t.value)
    }

    /// The floor of an hour of the horizon; zero where no window holds.
    pub fn floor(&self, hour: usize) -> u32 {
        floor_of(&self.floors, hour)
    }

    /// The policy as the simulator follows it, by one of its signals, with floors from instants on in picoseconds; none where the signal has no threshold.
    pub fn spec(&self, signal: ScalingSignal, floors: Vec<(u64, u32)>) -> Option<ScalingSpec> {
        let threshold = self.thresholds.iter().find(|t| t.signal == signal)?;
        let target = threshold.value?.max(1e-3);
        let behaviour = |own: &ScalingBehaviour| Behaviour {
            tolerance: self.tolerance_share,
            stabilization: ps(own.stabilisation_s),
            policies: vec![ScalePolicy {
                change: Change::Replicas(own.replicas.max(1)),
                period: ps(own.period_s).max(1),
            }],
            select: Select::Max,
        };
        let sync = ps(self.sync_period_s).max(1);
        // Nobody comes back from no replicas without somebody who looks at demand itself.
        let activation = (self.min_replicas == 0).then(|| Activation {
            polling: sync,
            cooldown: ps(self.down.stabilisation_s),
            cooldown_initial: 0,
        });
        Some(ScalingSpec {
            scaling: Scaling {
                min: self.min_replicas,
                max: self.max_replicas.max(self.min_replicas).max(1),
                up: behaviour(&self.up),
                down: behaviour(&self.down),
                activation,
            },
            signal: signal.simulated(),
            target,
            kind: match threshold.kind {
                ThresholdKind::AverageValue => TargetKind::AverageValue,
                ThresholdKind::Value => TargetKind::Value,
            },
            activation: 0.0,
            period: sync,
            delay: ps(self.scrape_delay_s),
            floors,
        })
    }
}
