//! The capacity review: for now its demand side, what the fleet of today may carry, and the memory and the best times of its pools.

use serde::Serialize;

use crate::demand::Demand;
use crate::fit::Fit;
use crate::headroom::Headroom;
use crate::pool_performance::PoolPerformance;

/// Everything a launch review decides on. Each field says what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Review {
    /// The study's name.
    pub name: String,
    /// The day that stands for today.
    pub as_of: String,
    /// The start of the horizon.
    pub start: String,
    /// Makes it repeatable.
    pub seed: u64,
    /// Events with a range stand at this quantile of it.
    pub demand_quantile: f64,
    /// What is asked of the fleet.
    pub demand: Demand,
    /// The memory budget of each pool.
    pub memory: Vec<Fit>,
    /// Context tokens that the replicas of today hold, pool by pool.
    pub resident_kv_tokens_now: Vec<u64>,
    /// What a replica of each pool can do at best.
    pub performance: Vec<PoolPerformance>,
    /// What the fleet of today may carry, and what is left of that; none where nothing serves.
    pub headroom: Option<Headroom>,
    /// The wall-clock beginning of the busiest hours, local to the study.
    pub baseline_from: String,
    /// The same with events.
    pub launch_from: Option<String>,
    /// What the reader should know before trusting a number.
    pub notes: Vec<String>,
    /// What it rests on.
    pub assumptions: Vec<Assumption>,
}

/// One thing that was taken to be so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assumption {
    /// Where it is set, such as `class.chat.cache_hit`.
    pub name: String,
    /// As it would be written; none where it is not known.
    pub value: Option<String>,
    /// Who says so.
    pub provenance: Provenance,
    /// The file and line, the reason of a default, or the catalogue entry.
    pub source: String,
    /// When it held, where that is known.
    pub date: Option<String>,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Seen to happen.
    Observed,
    /// Fitted to the user's own measurements.
    Calibrated,
    /// Computed or assumed by us.
    Modeled,
    /// Given by the user.
    Supplied,
}
