//! What a plan says.

use serde::{Deserialize, Serialize};

use super::alternatives::Alternative;
use super::follow::ScalingPlan;
use super::line::PoolLine;
use super::money::BudgetPlan;
use super::place::Fleet;
use super::reserve::Replicas;
use super::size::{Floor, Proof};
use super::table::LaunchTable;
use crate::headroom::Loss;
use crate::limits::PoolLimits;
use plimsoll_load::Span;

/// How many, of what, where, with which reserve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Whether it can be had, and keeps every promise.
    pub feasible: bool,
    /// Why not, and what would have to give.
    pub infeasible_because: Vec<Obstacle>,
    /// The hour that it is sized for.
    pub sized_for: String,
    /// Each pool.
    pub pools: Vec<PlannedPool>,
    /// Where they are, and what that costs; none where there is no such fleet.
    pub fleet: Option<Fleet>,
    /// The launch table.
    pub table: LaunchTable,
    /// One replica of each pool at its load line.
    pub lines: Vec<PoolLine>,
    /// What each pool lets in.
    pub limits: Vec<PoolLimits>,
    /// How pools follow their demand.
    pub scaling: ScalingPlan,
    /// What it costs, when a cap trips, and what must be ordered.
    pub budget: BudgetPlan,
    /// What else would do, what it would cost, and why it was not chosen.
    pub alternatives: Vec<Alternative>,
    /// Promises that nobody can keep: the fleet that is shown keeps ones a quarter above what can be.
    pub floors: Vec<Floor>,
    /// What becomes of it when something is lost at the peak.
    pub losses: Vec<Loss>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Plan {
    /// What stands in its way, of a kind.
    pub fn obstacles_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Obstacle> {
        self.infeasible_because.iter().filter(move |obstacle| obstacle.kind == kind)
    }
}

/// What stands in the way of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Obstacle {
    /// `slo`, `replicas`, `quota`, `nodes`, `fleet`, `demand`, `loss`, `lead_time` or `time`.
    pub kind: &'static str,
    /// What it is, with the numbers compared.
    pub what: String,
    /// What would make room.
    pub relax: String,
}

/// A pool of the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedPool {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Its device.
    pub accelerator: String,
    /// Its engine.
    pub engine: String,
    /// The format of its weights.
    pub weights: String,
    /// How a replica is split over devices.
    pub parallelism: Parallelism,
    /// Replicas, line by line.
    pub replicas: Replicas,
    /// Between what those that carry the planned demand lie.
    pub interval: Option<Span>,
    /// The same were steps slower or faster by what such predictions were off, half of the time.
    pub if_steps_differ: Option<Span>,
    /// Devices of all replicas.
    pub devices: u64,
    /// Nodes of all replicas.
    pub nodes: u64,
    /// What was seen with those that carry the planned demand, and with one fewer.
    pub proof: Option<Proof>,
    /// The lines of the reserve, each with its reason.
    pub reserve: Vec<ReserveLine>,
    /// Times the planned demand that one replica carries by itself.
    pub one_replica_carries: Option<f64>,
    /// Times the planned demand that all planned replicas carry.
    pub carries: Option<f64>,
    /// What runs out where there is one replica fewer.
    pub binds: Option<String>,
    /// The promise that is broken first then.
    pub first_signal: Option<String>,
    /// Whether one replica has so little to do that a fixed limit is enough.
    pub tiny: bool,
}

/// How a replica is split over devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallelism {
    /// Matrices.
    pub tensor: u64,
    /// Layers.
    pub pipeline: u64,
    /// Experts.
    pub expert: u64,
    /// Copies of the attention.
    pub data: u64,
    /// Contexts.
    pub context: u64,
    /// Devices of a replica.
    pub devices: u64,
}

/// A line of the reserve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReserveLine {
    /// As in `replicas`.
    pub name: &'static str,
    /// How many.
    pub replicas: u32,
    /// Why.
    pub why: String,
    /// What it costs in a month of 730 hours, where prices are known.
    pub usd_per_month: Option<f64>,
}
