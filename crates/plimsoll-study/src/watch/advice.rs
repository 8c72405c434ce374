//! What is advised, and what it rests on.

use serde::Serialize;

/// What is advised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The plan.
    pub plan: String,
    /// When it was said, in seconds from 1970.
    pub at_s: f64,
    /// Each pool.
    pub pools: Vec<PoolAdvice>,
}

/// What is advised for a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolAdvice {
    /// The pool.
    pub pool: String,
    /// Replicas that report; none where that is not known.
    pub replicas: Option<u32>,
    /// Replicas that it should have; none as long as nothing was ever seen of it.
    pub desired_replicas: Option<u32>,
    /// Why as many.
    pub why: String,
    /// What each signal asks for.
    pub asks: Vec<Ask>,
    /// Seconds since what this rests on was seen; none where nothing was.
    pub age_s: Option<f64>,
    /// Whether that is so old that it is only the last good answer.
    pub stale: bool,
    /// Resource by resource.
    pub resources: Vec<ResourceNow>,
    /// The fullest replicas first.
    pub each: Vec<ReplicaNow>,
    /// Whether the load line is about to be crossed.
    pub inflection: Option<InflectionNow>,
    /// What the plan took for granted, and what is.
    pub drift: Vec<Drift>,
    /// What the plan expects at this hour.
    pub forecast: Vec<ForecastNow>,
    /// What could not be seen.
    pub trouble: Vec<String>,
}

/// What a signal asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ask {
    /// The signal, `calendar`, `ahead` or `held`.
    pub signal: &'static str,
    /// Replicas.
    pub replicas: u32,
    /// With the numbers compared.
    pub why: String,
}

/// A resource of a pool, now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceNow {
    /// `fresh_tokens`, `output_tokens`, `requests`, `in_flight` or `kv`.
    pub resource: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What is asked for.
    pub now: f64,
    /// What the replicas that report have of it at their load line, with the mix of the plan; of a cache, where nobody is let in any more.
    pub line: Option<f64>,
    /// What is left of the line, as a share of it; below zero beyond the line.
    pub headroom_ratio: Option<f64>,
}

/// How near a replica is to its load line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplicaNow {
    /// As it is called.
    pub replica: String,
    /// The resource that it has least of.
    pub resource: &'static str,
    /// How much of it is asked for.
    pub now: f64,
    /// Its load line.
    pub line: f64,
    /// What is left of the line, as a share of it.
    pub headroom_ratio: f64,
}

/// A warning that the load line is about to be crossed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InflectionNow {
    /// In how many seconds; none where it is not.
    pub crosses_in_s: Option<u64>,
    /// The load line, in fresh prompt tokens a second.
    pub line: f64,
    /// The most within the time looked ahead.
    pub most_ahead: f64,
    /// How far ahead was looked.
    pub ahead_s: u64,
    /// Of warnings that would have been given over the history, so many.
    pub alarms: usize,
    /// Of which so many came to nothing.
    pub false_alarms: usize,
}

/// Something that the plan took for granted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// `prompt_length`, `output_length`, `cache_hit` or `mix`.
    pub assumption: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// In the plan.
    pub planned: f64,
    /// Now.
    pub now: f64,
    /// Whether they are so far apart that the plan should be made again.
    pub beyond: bool,
}

/// What the plan expects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForecastNow {
    /// `requests`, `fresh_tokens` or `output_tokens`.
    pub resource: &'static str,
    /// The median, a second.
    pub p50: f64,
    /// At the quantile that was planned for, a second.
    pub planned: f64,
    /// Which.
    pub quantile: f64,
}
