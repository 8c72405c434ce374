//! The capacity review: what a launch is decided on, from what every other study says.
//!
//! Nothing is simulated or sized here but the service curve that is drawn: it takes what `plan`, `stress`, `cost` and `fit` found, puts it into one order, and says in sentences what the
//! numbers mean.

mod ahead;
mod questions;
mod signals;
mod verdict;

use plimsoll_workload::Class;
use serde::Serialize;

use self::ahead::ahead;
use self::questions::questions;
use self::signals::signals;
pub use self::verdict::Decision;
use self::verdict::verdict;

use crate::context::Context;
use crate::cost::Cost;
use crate::curve::{CurvePoint, shape};
use crate::fit::Fit;
use crate::plan::table::placed;
use crate::plan::{Plan, built, carried};
use crate::pool_performance::PoolPerformance;
use crate::stress::{StressInput, StressResult, tried};
use plimsoll_load::{Demand, Load, LoadQuestion, Memo, StudyError};

pub use self::ahead::{Ahead, AheadBand, AheadResource};

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
    /// The wall-clock beginning of the busiest hours, local to the study.
    pub baseline_from: String,
    /// The same with events.
    pub launch_from: Option<String>,
    /// The answer.
    pub verdict: ReviewVerdict,
    /// What is asked of the fleet.
    pub demand: Demand,
    /// How many of what, with the launch table, the reserve, limits, thresholds and money; none where nothing serves.
    pub plan: Option<Plan>,
    /// Hard times, ways in which plans fail, what moves the answer, proposed changes.
    pub stress: Option<StressResult>,
    /// What a period costs, and a success.
    pub cost: Option<Cost>,
    /// Classes whose success costs more than it is worth.
    pub dear_classes: Vec<DearClass>,
    /// The service curve of the fleet of today and of the planned one, at the busiest hour.
    pub curves: Vec<FleetCurve>,
    /// The memory budget of each pool.
    pub memory: Vec<Fit>,
    /// Context tokens that the replicas of today hold, pool by pool.
    pub resident_kv_tokens_now: Vec<u64>,
    /// What a replica of each pool can do at best.
    pub performance: Vec<PoolPerformance>,
    /// The demand hour by hour, against the load line.
    pub ahead: Ahead,
    /// What to watch, first things first.
    pub signals: Vec<Watch>,
    /// What a reviewer asks.
    pub questions: Vec<Answered>,
    /// How it was made, and how wrong that was.
    pub method: Method,
    /// What the reader should know before trusting a number.
    pub notes: Vec<String>,
    /// What it rests on.
    pub assumptions: Vec<Assumption>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReviewVerdict {
    /// Today's fleet.
    pub today: Decision,
    /// The planned fleet, with what the plan must survive the loss of.
    pub plan: Decision,
    /// Caps on money that the plan exceeds, by name.
    pub over_caps: Vec<String>,
    /// Why not all of it is READY and within caps.
    pub because: Vec<String>,
    /// Today's fleet in a sentence.
    pub says: String,
}

/// A class whose success costs more than it is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DearClass {
    /// The class.
    pub class: String,
    /// What one success costs.
    pub usd_per_success: f64,
    /// What it is worth.
    pub value_usd: f64,
}

/// The service curve of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetCurve {
    /// `today` or `planned`.
    pub fleet: &'static str,
    /// Replicas of each pool.
    pub replicas: Vec<OfPool>,
    /// The hour that it is of.
    pub at: String,
    /// Points, from little load to much; loads are multiples of that hour's demand.
    pub points: Vec<CurvePoint>,
    /// The last of these up to which more load gives more good tasks.
    pub knee_load: Option<f64>,
    /// The load line: that of the launch table's `mix`.
    pub line_load: Option<f64>,
    /// The most tokens a second that it gives at any price: not to be planned with.
    pub peak_output_tokens_per_s: Option<f64>,
}

/// A number of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfPool {
    /// The pool.
    pub pool: String,
    /// How many.
    pub replicas: u32,
}

/// Something to watch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Watch {
    /// What: `queue_wait`, `allocation_failures`, `ttft`, `itl` or what an autoscaler follows.
    pub signal: String,
    /// The pool; none for all of the fleet.
    pub of: Option<String>,
    /// Where to act; none where only its direction matters.
    pub threshold: Option<f64>,
    /// Of the threshold.
    pub unit: &'static str,
    /// What an engine or gateway calls it.
    pub metric: Option<String>,
    /// What it means.
    pub means: String,
    /// What to do.
    pub action: String,
}

/// A question of a reviewer, answered with numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answered {
    /// The question.
    pub question: &'static str,
    /// The answer; where a number is not known, what is missing.
    pub answer: String,
    /// Whether it is known.
    pub known: bool,
}

/// How a review was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// In sentences.
    pub says: Vec<String>,
    /// How far predictions of this model were off from what was measured, pool by pool.
    pub validation: Vec<Validated>,
}

/// How far predictions were off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validated {
    /// The pool.
    pub pool: String,
    /// What was predicted.
    pub what: &'static str,
    /// Who says so.
    pub provenance: Provenance,
    /// Half of the predictions were closer, in percent.
    pub median_abs_pct: f64,
    /// Nine in ten were closer.
    pub p90_abs_pct: f64,
    /// Predictions that were held against a measurement.
    pub cases: u64,
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
    /// Days from then to `as_of`.
    pub age_days: Option<i64>,
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

/// What several studies say of one fleet, found once.
pub struct Whole {
    /// The plan.
    pub plan: Plan,
    /// Hard times.
    pub stress: StressResult,
    /// The service curves.
    pub curves: Vec<FleetCurve>,
}

/// Loads that a curve of a review shows, in multiples of its line: enough for its shape.
const SHOWN: [f64; 7] = [0.3, 0.6, 0.85, 1.0, 1.15, 1.4, 2.0];

/// Finds a fleet that carries the demand, and asks of it what a plan, hard times and a service curve ask. `go_on` is asked now and then; once it says no, what was learnt is said.
/// `at` hears how much of it is done, in thousandths.
pub fn whole(
    mut input: StressInput<'_>,
    at: &(dyn Fn(u32) + Sync),
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Whole, StudyError> {
    let memo = Memo::default();
    let context = Context { memo: &memo, go_on };
    let carried = carried(&mut input.plan, context)?;
    at(300);
    let stress = tried(&input, &carried, context)?;
    at(650);
    let asked = carried.asked.clone();
    let planned = placed(&input.plan, &asked, &carried.sized, carried.fleet.as_ref());
    let plan = built(&input.plan, carried, context)?;
    at(900);
    let now = input.plan.today();
    let fleets = [("today", now, &input.plan.targets), ("planned", planned, &asked.targets)];
    let mut curves = Vec::new();
    for (fleet, own, targets) in fleets {
        if own.pools.iter().all(|pool| pool.life.replicas == 0) && own.providers.is_empty() {
            continue;
        }
        let question = LoadQuestion {
            fleet: &own,
            targets,
            hour: asked.hour,
            events: asked.events,
            lost: &[],
        };
        curves.push(fleet_curve(fleet, &question, (input.plan.label)(asked.hour), &memo, go_on)?);
    }
    at(1000);
    Ok(Whole { plan, stress, curves })
}

fn fleet_curve(
    fleet: &'static str,
    question: &LoadQuestion<'_>,
    at: String,
    memo: &Memo,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<FleetCurve, StudyError> {
    let replicas = question
        .fleet
        .pools
        .iter()
        .map(|pool| OfPool { pool: pool.name.clone(), replicas: pool.life.replicas });
    let line = Load::of(question, memo, go_on).line()?;
    let line_load = line.holds.filter(|_| !line.beyond);
    // The demand itself is a load that everybody looks for.
    let around = line_load.unwrap_or(1.0);
    let mut loads: Vec<f64> = SHOWN.iter().map(|share| share * around).collect();
    if loads.iter().all(|load| (load - 1.0).abs() > 0.05) && (0.1..=4.0).contains(&(1.0 / around)) {
        loads.push(1.0);
    }
    loads.sort_by(f64::total_cmp);
    let (points, knee_load) = shape(question, &line, &loads, memo, go_on)?;
    let peak = points.iter().map(|point| point.output_tokens_per_s).reduce(f64::max);
    Ok(FleetCurve {
        fleet,
        replicas: replicas.collect(),
        at,
        points,
        knee_load,
        line_load,
        peak_output_tokens_per_s: peak,
    })
}

/// What a review is put together from.
pub struct ReviewParts {
    /// The study's name.
    pub name: String,
    /// The day that stands for today.
    pub as_of: String,
    /// The start of the horizon.
    pub start: String,
    /// Makes it repeatable.
    pub seed: u64,
    /// The quantile that is planned for.
    pub demand_quantile: f64,
    /// When the busiest hour without events begins.
    pub baseline_from: String,
    /// The same with events.
    pub launch_from: Option<String>,
    /// When the forecast is held against what came.
    pub reconcile_on: String,
    /// What is asked.
    pub demand: Demand,
    /// What was found, where anything serves.
    pub whole: Option<Whole>,
    /// What it costs.
    pub cost: Option<Cost>,
    /// What a success of a class is worth, in dollars: the class, its feature, and that.
    pub values: Vec<(String, Option<String>, f64)>,
    /// The memory budget of each pool.
    pub memory: Vec<Fit>,
    /// Replicas of today, pool by pool, as `memory` has them.
    pub replicas_now: Vec<u64>,
    /// What a replica of each pool can do at best.
    pub performance: Vec<PoolPerformance>,
    /// `scenario` or `ledger`.
    pub from: &'static str,
    /// Every class hour by hour, at each level of what is not known, the median first.
    pub levels: Vec<(f64, Vec<Class>)>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What it rests on.
    pub assumptions: Vec<Assumption>,
}

/// Puts a review together.
pub fn review(parts: ReviewParts) -> Review {
    let (plan, stress, curves) = match parts.whole {
        Some(whole) => (Some(whole.plan), Some(whole.stress), whole.curves),
        None => (None, None, Vec::new()),
    };
    let resident = parts.memory.iter().zip(&parts.replicas_now);
    let mut review = Review {
        ahead: ahead(parts.from, parts.start.clone(), &parts.levels, &parts.demand, plan.as_ref()),
        verdict: verdict(plan.as_ref(), parts.cost.as_ref()),
        signals: signals(plan.as_ref()),
        method: method(&parts.performance, parts.from, &parts.demand),
        resident_kv_tokens_now: resident.map(|(fit, n)| fit.kv_tokens.saturating_mul(*n)).collect(),
        name: parts.name,
        as_of: parts.as_of,
        start: parts.start,
        seed: parts.seed,
        demand_quantile: parts.demand_quantile,
        baseline_from: parts.baseline_from,
        launch_from: parts.launch_from,
        demand: parts.demand,
        plan,
        stress,
        dear_classes: dear_classes(&parts.values, parts.cost.as_ref()),
        cost: parts.cost,
        curves,
        memory: parts.memory,
        performance: parts.performance,
        questions: Vec::new(),
        notes: parts.notes,
        assumptions: parts.assumptions,
    };
    review.questions = questions(&review, &parts.reconcile_on);
    review
}

/// Classes whose success costs more than it is worth. Costs are split by feature: a class that shares one with another has no cost of its own.
fn dear_classes(values: &[(String, Option<String>, f64)], cost: Option<&Cost>) -> Vec<DearClass> {
    let Some(rows) = cost.and_then(|cost| cost.by.get("feature")) else { return Vec::new() };
    let dear = values.iter().filter_map(|(class, feature, value_usd)| {
        let feature = feature.as_ref()?;
        let shared = values.iter().filter(|(_, other, _)| other.as_ref() == Some(feature)).count();
        let row =
            rows.iter().find(|row| row.value.as_ref() == Some(feature)).filter(|_| shared == 1)?;
        let usd_per_success = row.cost_per_success_usd.filter(|usd| usd > value_usd)?;
        Some(DearClass { class: class.clone(), usd_per_success, value_usd: *value_usd })
    });
    dear.collect()
}

/// How it was made.
fn method(performance: &[PoolPerformance], from: &str, demand: &Demand) -> Method {
    let demand = match from {
        "ledger" => format!(
            "Demand is a forecast of the ledger, counted over {} s windows.",
            demand.window_s
        ),
        _ => format!(
            "Demand is what the scenario states, drawn and counted over {} s windows.",
            demand.window_s
        ),
    };
    let says = vec![
        demand,
        "Memory is computed from the model's shapes, byte by byte, as the engine's version budgets it.".to_owned(),
        "Step times are a bounded model of compute, memory bandwidth, collectives and host work; no step is faster than physics.".to_owned(),
        "Fleets are simulated event by event on the hours that decide (the busiest without events, the busiest with them, the steepest rise, losses at the peak); other hours are read from the service curve.".to_owned(),
        "The load line is the largest load, in multiples of the busiest hour as it comes, at which every promise is kept, as at every smaller one that was tried; loads are tried in steps of 4%, each until chance could have said otherwise one time in twenty, or the budget of calls is spent. Step times are taken for right.".to_owned(),
    ];
    let validation = performance.iter().flat_map(|own| {
        let bands = [
            ("time to the first token", &own.ttft_band),
            ("gap between tokens", &own.itl_band),
            ("peak throughput", &own.peak_band),
        ];
        bands.map(|(what, band)| Validated {
            pool: own.name.clone(),
            what,
            provenance: band.provenance,
            median_abs_pct: band.median_abs_pct,
            p90_abs_pct: band.p90_abs_pct,
            cases: band.n,
        })
    });
    Method { says, validation: validation.collect() }
}
