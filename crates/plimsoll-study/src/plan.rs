//! The plan: how many replicas of what, with which reserve, where, behind which limits.
//!
//! A pool is sized for the busiest hour at the quantile of the demand that is asked for: the fewest replicas that carry it ([`plimsoll_load::Load::least`], `size`). What other
//! hours need is read from the rule through what was sized (`staffing`). Beside what carries the demand there is a reserve, line by line (`reserve`).

mod admit;
mod alternatives;
pub(crate) mod expected;
mod file;
mod follow;
pub(crate) mod hours;
mod line;
pub(crate) mod money;
mod place;
mod reserve;
pub(crate) mod result;
pub(crate) mod size;
pub(crate) mod sizes;
mod staffing;
pub(crate) mod table;

use plimsoll_sim::HandOver;
use plimsoll_workload::Class;

use self::admit::admit;
pub use self::alternatives::{Alternative, Candidate};
use self::alternatives::{Tried, shapes, tried, weighed};
pub use self::expected::{Expected, ExpectedClass, Levels as ExpectedLevels, expected};
pub use self::file::{
    FileBehaviour, FileClassLimits, FileFlags, FileFleet, FileFloor, FileForecast,
    FileForecastClass, FileLevels, FileLimit, FileLimits, FileNodes, FilePlacement, FilePolicy,
    FilePool, FileResource, FileScaling, FileTenantLimits, FileThreshold, PlanFile,
};
use self::follow::follow;
pub use self::follow::{Autoscaler, PoolWindows, ScalingPlan, WindowCost};
use self::hours::{Hours, hours};
use self::line::pool_lines;
pub use self::line::{LineClass, PoolLine};
use self::money::budget;
pub use self::money::{BudgetPlan, Cap, Caps, HourCost, Order, StartupPrice, TokenPrices};
use self::place::{Choice, Found, place};
pub use self::place::{Fleet, Nodes, PlaceFacts, Placement, PriceFacts};
pub(crate) use self::reserve::failure;
pub use self::reserve::{Replicas, ReserveAsked, Spread as Placed, UnitOfLoss};
pub use self::result::{Obstacle, Parallelism, Plan, PlannedPool, ReserveLine};
pub use self::size::{Floor, Proof};
use self::sizes::{Asked, PoolSize, sizes};
use self::staffing::Staffing;
use self::table::{AtPeak, at_peak, measured, placed, table};
pub use self::table::{
    FleetLine, LaunchTable, MeasuredLine, PoolBlock, Reach, RunsOutFirst, SharedRow, TableRow,
};
use crate::context::Context;
use crate::headroom::{Loss, Lost};
use plimsoll_load::{
    Cause, ClassTarget, Demand, Memo, SimulateInput, SimulatedClass, Span, StudyError,
};

/// What a plan is made from.
pub struct PlanInput<'a> {
    /// The fleet of today, and its demand at the quantile that is planned for.
    pub fleet: SimulateInput,
    /// What each class is held to.
    pub targets: Vec<ClassTarget>,
    /// The same classes at the median of what is not known.
    pub median: Vec<SimulatedClass>,
    /// The quantile that is planned for.
    pub demand_quantile: f64,
    /// The demand of the busiest hours, counted.
    pub demand: &'a Demand,
    /// Every class, hour by hour.
    pub classes: &'a [Class],
    /// The same for at least a month after the last event begins, at the quantile that is planned for and at the median; none where that is not known.
    pub month: Option<[Vec<Class>; 2]>,
    /// The busiest hour without events.
    pub baseline_hour: usize,
    /// The busiest hour that events change.
    pub launch_hour: Option<usize>,
    /// What is known of each pool of the fleet, in its order.
    pub pools: Vec<PoolFacts>,
    /// Where devices may be had.
    pub places: Vec<PlaceFacts>,
    /// Other ways to run pools.
    pub candidates: Vec<Candidate>,
    /// How each pool would hand over, were its prompts read elsewhere; none where that is not known.
    pub apart: Vec<Option<HandOver>>,
    /// What pools were measured to carry.
    pub lines: Vec<MeasuredLine>,
    /// The tier of each class.
    pub tiers: Vec<String>,
    /// Whose each class is, and what for.
    pub labels: Vec<ClassLabels>,
    /// The autoscaler that is there, or would be.
    pub autoscaler: Autoscaler,
    /// Whether every hour is simulated, and not only those that decide.
    pub every_hour: bool,
    /// What is kept in reserve.
    pub reserve: ReserveAsked,
    /// The same where one replica has so little to do that only what somebody wrote down counts.
    pub reserve_if_tiny: ReserveAsked,
    /// The most of a pool that may be where it can be taken away.
    pub spot_share_most: f64,
    /// What may be spent.
    pub caps: Caps,
    /// What the tokens of each provider cost, where that is known.
    pub token_prices: Vec<Option<TokenPrices>>,
    /// What may be lost at the peak.
    pub lost: &'a (dyn Fn(&SimulateInput) -> Vec<Lost> + Sync),
    /// Hours from today until the horizon begins.
    pub hours_until_start: f64,
    /// What an hour of the horizon is called.
    pub label: &'a (dyn Fn(usize) -> String + Sync),
    /// What the time is called that lies so many hours before an hour of the horizon.
    pub before: &'a (dyn Fn(usize, f64) -> String + Sync),
}

/// The part of a plan's input that threads share.
#[derive(Clone, Copy)]
struct Facts<'a> {
    pools: &'a [PoolFacts],
    baseline_hour: usize,
    reserve: &'a ReserveAsked,
    reserve_if_tiny: &'a ReserveAsked,
}

impl PlanInput<'_> {
    /// The fleet of today: as it is written, whatever is chosen.
    pub(crate) fn today(&self) -> SimulateInput {
        let mut fleet = self.fleet.clone();
        for (pool, facts) in fleet.pools.iter_mut().zip(&self.pools) {
            pool.life.replicas = facts.now;
        }
        fleet
    }

    /// The hour that is planned for, and whether events count.
    pub(crate) fn busiest(&self) -> (usize, bool) {
        self.launch_hour.map_or((self.baseline_hour, false), |hour| (hour, true))
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            pools: &self.pools,
            baseline_hour: self.baseline_hour,
            reserve: &self.reserve,
            reserve_if_tiny: &self.reserve_if_tiny,
        }
    }
}

/// Whose a class is, and what for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassLabels {
    /// Whose.
    pub tenant: Option<String>,
    /// What for.
    pub feature: Option<String>,
}

/// What is known of a pool beside how it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolFacts {
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
    /// Replicas of today.
    pub now: u32,
    /// The fewest that a plan may use.
    pub fewest: u32,
    /// The most.
    pub most: u32,
    /// How long a start takes, nine times in ten.
    pub startup_p90_s: f64,
    /// The same with everything kept that can be.
    pub startup_cached_p90_s: f64,
    /// Where its replicas are.
    pub placed: Placed,
    /// The regions that it may be in, by their places.
    pub regions: Vec<usize>,
    /// Devices of a node.
    pub node_devices: u32,
    /// The longest context that its model takes.
    pub model_context_tokens: Option<u64>,
    /// By how much step times were off, half of the time, in percent.
    pub band_pct: Option<f64>,
    /// The modes that it may be paid in.
    pub price_modes: Vec<String>,
    /// Whether its devices are paid for whether they are used or not.
    pub owned: bool,
    /// The price of a node, in dollars an hour.
    pub node_usd_per_hour: Option<f64>,
    /// The price of a replica's devices, in dollars an hour.
    pub replica_usd_per_hour: Option<f64>,
}

/// Hours of a month.
pub(crate) const MONTH: f64 = 730.0;
/// One replica that carries so many times the demand has little to do.
const TINY: f64 = 3.0;

/// A fleet that carries the demand, with its reserve, where it is placed, and what it costs: what a plan is built on.
pub(crate) struct Carried {
    /// What is asked of the fleet that was chosen.
    pub(crate) asked: Asked,
    /// Every pool and what it needs.
    pub(crate) sized: Vec<PoolSize>,
    /// The fleet that the programme found.
    pub(crate) fleet: Option<Fleet>,
    /// What the planned fleet does at the peak.
    pub(crate) peak: AtPeak,
    /// Replicas of each hour.
    pub(crate) by_hour: Vec<Hours>,
    /// What it costs.
    pub(crate) budget: BudgetPlan,
    /// What stands in the way.
    pub(crate) obstacles: Vec<Obstacle>,
    /// Promises that nobody can keep.
    pub(crate) floors: Vec<Floor>,
    /// Whether a loss at the peak must be survived.
    claimed: bool,
    /// Other ways to run pools, and those that were tried.
    alternatives: Vec<Alternative>,
    notes: Vec<String>,
}

/// Finds a fleet that carries the demand. What is chosen for a pool replaces what is written of it.
pub(crate) fn carried(
    input: &mut PlanInput<'_>,
    context: Context<'_>,
) -> Result<Carried, StudyError> {
    let go_on = context.go_on;
    let (mut obstacles, mut notes) = (Vec::new(), Vec::new());
    let mut asked = Asked::new(input);
    let floors = asked.let_go(context)?;
    obstacles.extend(floors.iter().map(slo_obstacle));
    let mut sized = sizes(input, &asked, &mut obstacles, context)?;
    measured(input, &mut sized, (&mut obstacles, &mut notes));
    let others = tried(input, &asked, &sized, context)?;
    let written: Vec<Choice> =
        sized.iter().enumerate().map(|(i, size)| written_choice(input, i, size)).collect();
    let mut found = place(input, &asked, &sized, &written);
    let (raw, others): (Vec<Tried>, Vec<Option<Choice>>) = others.into_iter().unzip();
    let as_written: Vec<(PoolFacts, u32)> =
        input.pools.iter().cloned().zip(sized.iter().map(|size| size.replicas.carry())).collect();
    let mut kinds: Vec<Option<usize>> = vec![None; sized.len()];
    let others: Vec<Choice> = others.into_iter().flatten().collect();
    if !others.is_empty() {
        let choices: Vec<Choice> = written.into_iter().chain(others).collect();
        let better = place(input, &asked, &sized, &choices);
        if cheaper(&better, &found) {
            let chosen = &better.chosen;
            kinds = choose(input, &mut asked, &mut sized, (&choices, chosen), context)?;
            // What was chosen has been proven since, and may be one more or less. A pool is of one kind.
            let proven: Vec<Choice> = chosen
                .iter()
                .zip(&sized)
                .map(|(choice, size)| Choice {
                    carry: size.own.planned,
                    ..choices[*choice].clone()
                })
                .collect();
            found = place(input, &asked, &sized, &proven);
        }
    }
    let input = &*input;
    let alternatives = weighed(input, &sized, &as_written, &kinds, raw);
    obstacles.extend(found.obstacles);
    notes.extend(found.notes);
    // Where regions round up, or one may be lost, there are more than pools need by themselves.
    for (size, total) in sized.iter_mut().zip(&found.totals) {
        let Some(total) = total.and_then(|total| u32::try_from(total).ok()) else { continue };
        let apart = size.replicas.total - size.replicas.failure;
        if total >= apart {
            size.replicas.failure = total - apart;
            size.replicas = size.replicas.summed();
        }
    }
    obstacles.extend(over_quota(input, found.fleet.as_ref()));
    let mut peak = at_peak(input, &asked, &sized, found.fleet.as_ref(), context)?;
    let claimed = input.reserve.lost != UnitOfLoss::Nothing && !sized.iter().all(|size| size.tiny);
    // What a loss breaks gets more, as long as there is a fleet for it.
    for _ in 0..MORE_FOR_LOSS {
        let broken: Vec<&Loss> =
            peak.losses.iter().filter(|loss| claimed && loss.kept_before && !loss.meets).collect();
        if broken.is_empty() || found.fleet.is_none() || !go_on() {
            break;
        }
        let mut more = sized_more(input, &sized, &broken);
        if more.is_empty() {
            more = (0..sized.len()).collect();
        }
        for pool in more {
            sized[pool].replicas.failure += 1;
            sized[pool].replicas = sized[pool].replicas.summed();
        }
        let kinds: Vec<Choice> =
            sized.iter().enumerate().map(|(i, size)| written_choice(input, i, size)).collect();
        let again = place(input, &asked, &sized, &kinds);
        if again.fleet.is_none() {
            obstacles.extend(again.obstacles);
            break;
        }
        found.fleet = again.fleet;
        peak = at_peak(input, &asked, &sized, found.fleet.as_ref(), context)?;
    }
    let hours_of = |asked: &Asked| -> Vec<Hours> {
        sized.iter().enumerate().map(|(i, size)| hours(input, asked, i, size)).collect()
    };
    let by_hour = hours_of(&asked);
    // A month goes on after the horizon, with the events that are in force.
    let month = input.month.as_ref().map(|[planned, median]| asked.over(planned, median));
    let paid = month.map_or_else(|| by_hour.clone(), |month| hours_of(&month));
    let budget = budget(input, &sized, (&by_hour, &paid), (found.fleet.as_ref(), &peak.hosted));
    for order in budget.orders.iter().filter(|order| order.too_late) {
        obstacles.push(Obstacle {
            kind: "lead_time",
            what: format!(
                "{} more {} in `{}` are needed from {} on, and had to be ordered by {}",
                order.devices, order.accelerator, order.region, order.needed_at, order.order_by
            ),
            relax: "move the launch, shift load elsewhere until they are there, or find devices that come sooner".to_owned(),
        });
    }
    Ok(Carried {
        asked,
        sized,
        fleet: found.fleet,
        peak,
        by_hour,
        budget,
        obstacles,
        floors,
        claimed,
        alternatives,
        notes,
    })
}

/// Makes a plan. `go_on` is asked now and then; once it says no, what was learnt is said.
pub fn plan(
    mut input: PlanInput<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Plan, StudyError> {
    let memo = Memo::default();
    let context = Context { memo: &memo, go_on };
    let carried = carried(&mut input, context)?;
    built(&input, carried, context)
}

/// The plan on a fleet that was found.
pub(crate) fn built(
    input: &PlanInput<'_>,
    carried: Carried,
    context: Context<'_>,
) -> Result<Plan, StudyError> {
    let go_on = context.go_on;
    let Carried {
        asked,
        mut sized,
        fleet,
        peak,
        by_hour,
        budget,
        mut obstacles,
        floors,
        claimed,
        mut alternatives,
        mut notes,
    } = carried;
    let planned_fleet = placed(input, &asked, &sized, fleet.as_ref());
    let survived = (peak.losses.as_slice(), claimed);
    let table = table(input, &asked, (&planned_fleet, &sized), &budget, survived, context)?;
    // What no number of replicas keeps is an obstacle of its pool.
    let apart = sized.iter().all(|size| !size.own.no_number);
    if let Some((by, cause)) = peak.breaks.as_ref().filter(|_| apart) {
        let binds = cause
            .map_or(String::new(), |cause| format!(": {} binds", cause.word().replace('_', " ")));
        obstacles.push(Obstacle {
            kind: "slo",
            what: match sized.is_empty() {
                true => format!("hosted models and tools break {by} at the peak{binds}"),
                false => format!("all together, where it is placed, the fleet breaks {by}, although each pool by itself does not{binds}"),
            },
            relax: match cause {
                Some(Cause::Link) => "give `disaggregation` a faster `link`, or read prompts and generate in one pool",
                _ => "look at providers, regions and fallbacks with `plimsoll curve`",
            }
            .to_owned(),
        });
    }
    for loss in peak.losses.iter().filter(|loss| claimed && loss.kept_before && !loss.meets) {
        obstacles.push(Obstacle {
            kind: "loss",
            what: format!("losing {} at the peak breaks {}", loss.name, loss.fails_by.as_deref().unwrap_or("a promise")),
            relax: "give its classes retries or a fallback, or ask to survive less (`study.reliability`)".to_owned(),
        });
    }
    let limits = admit(input, &asked, &mut sized, context)?;
    let scaling = follow(input, &asked, &sized, &by_hour, &limits, go_on)?;
    let lines = pool_lines(input, &asked, &sized);
    alternatives.extend(shapes(input, &asked, &sized, context)?);
    if !go_on() {
        // What was not finished stands in nobody's way.
        obstacles.clear();
        obstacles.push(Obstacle {
            kind: "time",
            what: "the time was up before everything was looked at: no number here is finished"
                .to_owned(),
            relax: "give a longer `--time-limit`".to_owned(),
        });
    }
    let pools = sized.iter().enumerate().map(|(i, size)| planned(input, i, size)).collect();
    notes.dedup();
    Ok(Plan {
        feasible: obstacles.is_empty(),
        infeasible_because: obstacles,
        sized_for: (input.label)(asked.hour),
        pools,
        fleet,
        table,
        losses: peak.losses,
        lines,
        limits,
        scaling,
        budget,
        alternatives,
        floors,
        notes,
    })
}

/// Quotas that nodes of several kinds exceed together, which the programme does not see.
fn over_quota(input: &PlanInput<'_>, fleet: Option<&Fleet>) -> Vec<Obstacle> {
    let mut found: Vec<Obstacle> = Vec::new();
    for place in &input.places {
        let (Some(quota), region) = (place.quota_devices, &input.fleet.regions[place.region])
        else {
            continue;
        };
        let rented = fleet.into_iter().flat_map(|fleet| &fleet.nodes);
        let rented = rented.filter(|n| n.accelerator == place.accelerator && n.region == *region);
        let devices: u64 = rented.map(|n| n.nodes * n.devices_per_node).sum();
        let what = format!(
            "nodes of several kinds or modes take {devices} {} in `{region}` together, and the quota is {quota}",
            place.accelerator
        );
        if devices > quota && !found.iter().any(|other| other.what == what) {
            let relax =
                format!("`quota = {devices}` for {} in region `{region}`", place.accelerator);
            found.push(Obstacle { kind: "quota", what, relax });
        }
    }
    found
}

/// Tries to make room for what a loss breaks.
const MORE_FOR_LOSS: u32 = 3;

/// The pools that losses are of, by their names.
fn sized_more(input: &PlanInput<'_>, sized: &[PoolSize], broken: &[&Loss]) -> Vec<usize> {
    let named = |pool: &usize| {
        let name = format!(" of {}", input.fleet.pools[*pool].name);
        broken.iter().any(|loss| loss.name.ends_with(&name))
    };
    (0..sized.len()).filter(named).collect()
}

/// A pool as it is written, or was chosen.
fn written_choice(input: &PlanInput<'_>, pool: usize, size: &PoolSize) -> Choice {
    let facts = &input.pools[pool];
    Choice {
        pool,
        alternative: None,
        accelerator: facts.accelerator.clone(),
        devices: facts.parallelism.devices,
        carry: size.own.planned,
    }
}

/// Whether a fleet costs less than another by more than rounding, or is one where that is none.
fn cheaper(one: &Found, other: &Found) -> bool {
    let usd = |found: &Found| found.fleet.as_ref().map(|fleet| fleet.usd_per_hour);
    match (usd(one), usd(other)) {
        (Some(_), None) => true,
        (Some(Some(one)), Some(Some(other))) => one < other * 0.999,
        _ => false,
    }
}

/// Puts what the programme chose in the place of what is written, and sizes it as closely as that was. Says which candidate each pool runs as.
fn choose(
    input: &mut PlanInput<'_>,
    asked: &mut Asked,
    sized: &mut [PoolSize],
    (choices, chosen): (&[Choice], &[usize]),
    context: Context<'_>,
) -> Result<Vec<Option<usize>>, StudyError> {
    let mut kinds = vec![None; chosen.len()];
    for (pool, choice) in chosen.iter().enumerate() {
        let Some(own) = choices.get(*choice).and_then(|choice| choice.alternative) else {
            continue;
        };
        let candidate = &input.candidates[own];
        let Some(simulated) = &candidate.simulated else { continue };
        asked.run_as(pool, simulated);
        let question = asked.at_quantile(context);
        let range = (candidate.facts.fewest.max(1), sizes::LOOKED_AT);
        let hint = Some(choices[*choice].carry);
        let size = question.size(pool, range, hint, input.demand.window_s)?;
        // The lines that follow the demand are as large a part of it as before.
        let before = sized[pool].replicas;
        let each = f64::from(size.planned) / f64::from(before.carry().max(1));
        let part = |n: u32| f64::from(n) * each;
        let steady = (part(before.steady).round() as u32).clamp(1, size.planned.max(1));
        let warm = sized[pool].warm.times(part(1));
        let replicas = Replicas {
            steady,
            forecast: size.planned.saturating_sub(steady),
            cold_cache: part(before.cold_cache).ceil() as u32,
            warm: if before.warm == 0 { 0 } else { warm.replicas(candidate.facts.startup_p90_s) },
            failure: reserve::failure(size.planned, input.reserve.lost, candidate.facts.placed)
                .unwrap_or(before.failure),
            ..before
        };
        sized[pool] = PoolSize {
            replicas: replicas.summed(),
            own: size,
            warm,
            baseline: sized[pool].baseline.map(|(n, one)| (part(n).ceil() as u32, one)),
            tiny: sized[pool].tiny,
            line: None,
        };
        kinds[pool] = Some(own);
        input.pools[pool] = candidate.facts.clone();
    }
    Ok(kinds)
}

fn planned(input: &PlanInput<'_>, pool: usize, size: &PoolSize) -> PlannedPool {
    let (facts, own) = (&input.pools[pool], &size.own);
    let kept = if size.tiny { &input.reserve_if_tiny } else { &input.reserve };
    let staffing = Staffing::new(size.replicas.carry().max(1), own.one);
    PlannedPool {
        name: input.fleet.pools[pool].name.clone(),
        model: facts.model.clone(),
        accelerator: facts.accelerator.clone(),
        engine: facts.engine.clone(),
        weights: facts.weights.clone(),
        parallelism: facts.parallelism,
        replicas: size.replicas,
        interval: own.seen.as_ref().map(|seen| Span {
            low: f64::from(own.between.0),
            high: f64::from(own.between.1),
            level: input.fleet.level,
            n: seen.runs as usize,
        }),
        if_steps_differ: facts.band_pct.filter(|_| own.seen.is_some()).map(|pct| {
            // Steps that take longer are load that is higher, about.
            let slower = 1.0 + pct / 100.0;
            Span {
                low: f64::from(staffing.need(1.0 / slower)),
                high: f64::from(staffing.need(slower)),
                level: 0.5,
                n: own.seen.as_ref().map_or(0, |seen| seen.runs as usize),
            }
        }),
        devices: u64::from(size.replicas.total) * facts.parallelism.devices,
        nodes: nodes(size.replicas.total, facts),
        proof: own.proof.clone(),
        reserve: lines(size, facts, kept),
        one_replica_carries: own.one,
        carries: own.seen.as_ref().map(|_| staffing.carries(size.replicas.total)),
        binds: own.binds.map(|cause| cause.word().to_owned()),
        first_signal: own.breaks_by.clone(),
        tiny: size.tiny,
    }
}

fn slo_obstacle(floor: &Floor) -> Obstacle {
    let ms = |ms: Option<f64>| ms.map_or("?".to_owned(), |ms| format!("{ms:.0} ms"));
    let share = floor.failing.unwrap_or(0.0);
    if floor.promise == "errors" {
        return Obstacle {
            kind: "slo",
            what: format!(
                "{:.1}% of the tasks of class `{}` fail where nobody else is served{}; {:.1}% may",
                share * 100.0,
                floor.class,
                floor.failing_by.map_or(String::new(), |by| format!(", most of them {by}")),
                (1.0 - floor.percentile) * 100.0
            ),
            relax: "serve longer contexts, mend what fails, or promise less (`slo = { attainment = … }`)".to_owned(),
        };
    }
    Obstacle {
        kind: "slo",
        what: format!(
            "{} of class `{}` is promised within {}, and takes {} where nobody else is served, at the {}th percentile",
            floor.promise,
            floor.class,
            ms(floor.promised_ms),
            ms(floor.floor_ms),
            floor.percentile * 100.0
        ),
        relax: format!(
            "promise no less than {}, or serve it from a faster pool",
            ms(floor.floor_ms)
        ),
    }
}

/// Nodes of so many replicas: a group does not straddle.
pub(crate) fn nodes(replicas: u32, facts: &PoolFacts) -> u64 {
    let (devices, node) = (facts.parallelism.devices.max(1), u64::from(facts.node_devices.max(1)));
    match node / devices {
        0 => u64::from(replicas) * devices.div_ceil(node),
        each => u64::from(replicas).div_ceil(each),
    }
}

fn lines(size: &PoolSize, facts: &PoolFacts, asked: &ReserveAsked) -> Vec<ReserveLine> {
    let (replicas, warm) = (&size.replicas, &size.warm);
    let usd = |n: u32| facts.replica_usd_per_hour.map(|usd| usd * f64::from(n) * MONTH);
    let line = |name: &'static str, n: u32, why: String| ReserveLine {
        name,
        replicas: n,
        why,
        usd_per_month: usd(n),
    };
    let some = |n: u32, one: &str, many: &str| match n {
        1 => format!("one {one}"),
        n => format!("{n} {many}"),
    };
    let group =
        some(u32::try_from(facts.parallelism.devices).unwrap_or(u32::MAX), "device", "devices");
    let each = some(facts.placed.per_node, "replica", "replicas");
    let lost = match asked.lost {
        UnitOfLoss::Nothing => "nothing is to be survived".to_owned(),
        UnitOfLoss::Replicas(n) => format!(
            "losing {} at the peak leaves what carries it; a replica is {group} that {} as one",
            some(n, "replica", "replicas"),
            if facts.parallelism.devices == 1 { "fails" } else { "fail" }
        ),
        UnitOfLoss::Nodes(n) => {
            format!("losing {} of {each} leaves what carries it", some(n, "node", "nodes"))
        }
        UnitOfLoss::Zones(n) => format!(
            "losing {n} of {} zones leaves what carries it",
            facts.placed.zones * facts.placed.regions
        ),
        UnitOfLoss::Region if facts.placed.regions == 1 => {
            "whoever falls back on it comes when another region is lost".to_owned()
        }
        UnitOfLoss::Region => {
            format!("losing one of {} regions leaves what carries it", facts.placed.regions)
        }
    };
    let warm_why = match warm.hour {
        Some(_) => format!(
            "demand grows by {:.2} replicas an hour at its steepest, and a start takes {:.0} s, nine times in ten",
            warm.ramp, facts.startup_p90_s
        ),
        None => {
            "the demand does not grow within the horizon but by events, which are known".to_owned()
        }
    };
    vec![
        line("steady", replicas.steady, "the median demand of the busiest hour".to_owned()),
        line(
            "forecast",
            replicas.forecast,
            "the demand at the quantile planned for, above its median".to_owned(),
        ),
        line(
            "cold_cache",
            replicas.cold_cache,
            format!("{:.0}% of what is cached is computed again", asked.cold_cache * 100.0),
        ),
        line("warm", replicas.warm, warm_why),
        line("failure", replicas.failure, lost),
        line(
            "rollout",
            replicas.rollout,
            "an upgrade takes as many out of service at once".to_owned(),
        ),
        line("canary", replicas.canary, "a new version is tried on as many".to_owned()),
        line(
            "maintenance",
            replicas.maintenance,
            format!("{} of {each} out of service", some(asked.maintenance_nodes, "node", "nodes")),
        ),
    ]
}
