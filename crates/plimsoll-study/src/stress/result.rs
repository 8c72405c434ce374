//! What came of hard times.

use serde::Serialize;

use plimsoll_load::{LoadVerdict, Span};

/// What a fleet does in hard times, what moves the answer, and what changes relieve and create.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StressResult {
    /// The busiest hour, which everything is compared with.
    pub at: String,
    /// Replicas of each pool, of today and planned.
    pub pools: Vec<OfFleets<u32>>,
    /// Hard times, one after the other.
    pub scenarios: Vec<Stressed>,
    /// Ways in which plans fail, by name.
    pub failure_shapes: Vec<FailureShape>,
    /// What moves the answer.
    pub tornado: Tornado,
    /// Proposed changes: the pressure register.
    pub changes: Vec<PressureChange>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A number of the fleet of today and of the planned one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfFleets<T> {
    /// Of what.
    pub name: String,
    /// With the replicas of today.
    pub now: T,
    /// With the planned ones.
    pub planned: T,
}

/// What came of a hard time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stressed {
    /// What it is called.
    pub name: String,
    /// What happens.
    pub about: String,
    /// Why it cannot happen here; nothing is known then.
    pub not_applicable: Option<String>,
    /// What is asked of each resource, and how much of it that takes.
    pub resources: Vec<StressedResource>,
    /// How many tasks are good.
    pub attainment: StressedAttainment,
    /// Times this demand that each fleet carries with every promise kept, known to 12% where the demand is not the reference; none where not even the least that was tried.
    pub carries: OfFleets<Option<f64>>,
    /// What breaks first, or would.
    pub first_to_break: OfFleets<Option<Breaks>>,
    /// What it costs.
    pub cost: StressedCost,
    /// What has more room than in the reference, with the planned fleet.
    pub relieved: Vec<Moved>,
    /// What has less.
    pub worsened: Vec<Moved>,
    /// Who looks after it.
    pub owner: Option<String>,
}

/// What a hard time asks of a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StressedResource {
    /// `requests`, `fresh_prompt_tokens`, `output_tokens`, `kv`, `sequences`, `memory_bandwidth`, `compute`, `host`, `queue`, or a provider's limit.
    pub name: String,
    /// The pool or provider; none for all of the fleet.
    pub of: Option<String>,
    /// Of what `demand` is.
    pub unit: &'static str,
    /// What is asked for on average, attempts that come again included; none where it is only seen.
    pub demand: Option<f64>,
    /// The same in the reference.
    pub reference: Option<f64>,
    /// The share that is used with the replicas of today; of demand, its share of what they carry with every promise kept. None where nothing bounds it, or nothing is left to use.
    pub used_now: Option<f64>,
    /// The same with the planned ones.
    pub used_planned: Option<f64>,
    /// The same in the reference.
    pub reference_used_now: Option<f64>,
    /// The same with the planned ones.
    pub reference_used_planned: Option<f64>,
}

/// How many tasks are good: of the class that has least of what it was promised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StressedAttainment {
    /// With the replicas of today; none where nothing says what is good.
    pub now: Option<f64>,
    /// With the planned ones.
    pub planned: Option<f64>,
    /// Between what that is.
    pub now_interval: Option<Span>,
    /// Between what that is.
    pub planned_interval: Option<Span>,
    /// What the class was promised, with the planned ones.
    pub target: Option<f64>,
    /// The class, with the planned ones.
    pub class: Option<String>,
    /// Whether every promise is kept, with the replicas of today; none where nothing was tried.
    pub verdict_now: Option<LoadVerdict>,
    /// The same with the planned ones.
    pub verdict_planned: Option<LoadVerdict>,
}

/// What breaks first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breaks {
    /// What binds: `prefill`, `decode`, `kv`, `sequences`, `host`, `queue`, `link`, `provider`, `too_long`, `tool`.
    pub resource: Option<String>,
    /// Where.
    pub of: Option<String>,
    /// The promise that is broken, or would be next.
    pub signal: Option<String>,
    /// Whether it is broken in this hard time; otherwise it is what gives way when more comes.
    pub broken: bool,
}

/// What a hard time costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StressedCost {
    /// Nodes, hosted tokens and tools with the replicas of today; none where a price is not known.
    pub now_usd_per_hour: Option<f64>,
    /// The same with the planned ones.
    pub planned_usd_per_hour: Option<f64>,
    /// Of these, hosted tokens and tools, with the planned ones.
    pub variable_usd_per_hour: Option<f64>,
    /// For one success, with the replicas of today.
    pub now_usd_per_success: Option<f64>,
    /// The same with the planned ones.
    pub planned_usd_per_success: Option<f64>,
    /// Why a number is missing.
    pub why: Option<String>,
}

/// A resource that has more room or less.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// The resource.
    pub resource: String,
    /// Of which pool or provider; none for all of the fleet.
    pub of: Option<String>,
    /// What it is of: `share used`, or a unit.
    pub unit: String,
    /// Before.
    pub from: f64,
    /// After.
    pub to: f64,
}

/// A way in which plans fail.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailureShape {
    /// By its name.
    pub name: &'static str,
    /// Whether the planned fleet does not fail this way; none where it cannot.
    pub pass: Option<bool>,
    /// The same of the fleet of today.
    pub pass_now: Option<bool>,
    /// The number behind it, in a sentence.
    pub evidence: String,
}

/// What moves the answer: each assumption over its own range, the others as they are likely to be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tornado {
    /// With everything as it is likely to be.
    pub base: Option<TornadoEnd>,
    /// With every assumption at its better end.
    pub best: Option<TornadoEnd>,
    /// With every assumption at its worse end: no day is as bad.
    pub worst: Option<TornadoEnd>,
    /// Assumptions, the one that moves most first.
    pub bars: Vec<TornadoBar>,
    /// What to measure, the one whose knowledge is worth most first.
    pub measure_next: Vec<String>,
    /// How ends were weighed.
    pub basis: &'static str,
}

/// What one end of a range would need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TornadoEnd {
    /// Replicas of all pools, reserve included, about.
    pub replicas: u32,
    /// Pool by pool.
    pub by_pool: Vec<u32>,
    /// What they cost in a month of 730 hours, kept all the time, with hosted tokens and tools; none where a price is not known.
    pub usd_per_month: Option<f64>,
    /// Of these, hosted tokens and tools, at today's prices.
    pub variable_usd_per_month: Option<f64>,
    /// Good tasks with the planned replicas, of the class that has least.
    pub attainment: Option<f64>,
}

/// An assumption that moves the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TornadoBar {
    /// The assumption.
    pub name: String,
    /// The value at the better end, as it is written.
    pub better: String,
    /// As it is likely.
    pub likely: String,
    /// At the worse end.
    pub worse: String,
    /// Where the range comes from.
    pub source: String,
    /// What the better end would need.
    pub at_better: TornadoEnd,
    /// What the worse end would need.
    pub at_worse: TornadoEnd,
    /// Replicas between the two.
    pub swing_replicas: i64,
    /// Dollars a month between the two.
    pub swing_usd_per_month: Option<f64>,
    /// Attainment between the two.
    pub swing_attainment: Option<f64>,
    /// Whether one end would have another number of replicas planned.
    pub changes_decision: bool,
    /// What knowing it would be worth in a month at least: the price of the replicas by which either end differs from what is likely, each as often as `basis` says.
    pub worth_usd_per_month: Option<f64>,
    /// How to know it better.
    pub measure: String,
}

/// A proposed change, before and after on the same tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PressureChange {
    /// What it is called.
    pub name: String,
    /// Why it cannot be tried; nothing else is known then.
    pub not_applicable: Option<String>,
    /// Who answers for it.
    pub owner: Option<String>,
    /// As it is.
    pub before: Option<ChangeSide>,
    /// As it would be.
    pub after: Option<ChangeSide>,
    /// What has more room, with the planned replicas.
    pub relieved: Vec<Moved>,
    /// What has less.
    pub created: Vec<Moved>,
    /// What one success costs less, in percent; none where it is not known how the change affects success.
    pub saving_per_success_pct: Option<f64>,
    /// Why there is no such claim.
    pub why: Option<String>,
    /// What must stay true.
    pub guardrail: Option<Guard>,
    /// When it is taken back.
    pub rollback: Option<Guard>,
    /// Tasks of each side that it takes to see success fall by one point, four times in five; none where success is not known.
    pub tasks_to_tell: Option<u64>,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeSide {
    /// Replicas that carry the demand, about, pool by pool.
    pub replicas: Vec<u32>,
    /// Good tasks with the planned replicas.
    pub attainment: Option<f64>,
    /// The first token, 95 in 100, of the class that waits longest.
    pub ttft_p95_ms: Option<f64>,
    /// Mean gaps between tokens, 95 in 100, of the slowest class.
    pub tpot_p95_ms: Option<f64>,
    /// Replicas that carry the demand, hosted tokens and tools.
    pub usd_per_hour: Option<f64>,
    /// For one success; none where it is not known.
    pub usd_per_success: Option<f64>,
}

/// A condition that is watched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guard {
    /// As it is written, or proposed.
    pub expression: String,
    /// Whether somebody wrote it; otherwise it is proposed here.
    pub stated: bool,
    /// Of a guardrail: whether it holds after the change; of a rollback: whether it would fire at once. None where a simulation cannot tell.
    pub holds: Option<bool>,
    /// The numbers compared, or why it cannot be told.
    pub evidence: String,
}
