//! The launch table: what is asked of each pool and of what pools share, and what today's and the planned fleet carry of it.
//!
//! One block a pool. `f*` is the load line of the pool by itself, as a multiple of the launch's own mix; `covers` is `f*`, and `carries` is covers x the demand that is shown.
//! Prompt and output tokens are what the pool could do of each, were all the engine time that keeps promises spent on it: `f*` / the share of that phase in busy engine time at
//! `f*`. The row of the cause reads `f*` itself.

use plimsoll_load::{
    Cause, Effort, Level, LoadLine, LoadVerdict, PoolResult, Resource, SimulateInput, Simulation,
    StudyError,
};
use plimsoll_sim::Mishap;
use serde::Serialize;

use super::PlanInput;
use super::money::{BudgetPlan, Hosted, ProviderUse};
use super::place::Fleet;
use super::result::Obstacle;
use super::size::Question;
use super::sizes::{Asked, LOOKED_AT, PoolSize};
use crate::context::Context;
use crate::headroom::{Loss, Lost, RowVerdict, losses, runs_out};

/// Calls of a run that says what hosted models are asked for.
const CALLS_SHOWN: f64 = 8_000.0;
/// The share of KV capacity that may be in use before requests are preempted for each other.
const KV_CEILING: f64 = 0.85;

/// The launch table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaunchTable {
    /// Whether the demand is an event's; otherwise it is that of the busiest hour.
    pub has_event: bool,
    /// All pools and providers as they are: what decides.
    pub fleet: FleetLine,
    /// A block for each pool.
    pub pools: Vec<PoolBlock>,
    /// What belongs to no pool: limits of providers, quotas, budgets.
    pub shared: Vec<SharedRow>,
    /// What today's fleet runs out of first.
    pub runs_out_first: Option<RunsOutFirst>,
}

/// What a fleet carries of the whole mix, fallbacks and providers as they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetLine {
    /// Today's fleet.
    pub today: Reach,
    /// Whether it carries the launch.
    pub verdict_today: LoadVerdict,
    /// The planned fleet.
    pub planned: Reach,
    /// Whether it carries the launch, also with each loss that the plan must survive.
    pub verdict_planned: LoadVerdict,
    /// The planned fleet with the loss that leaves least, of those that the plan must survive.
    pub planned_with_loss: Option<Reach>,
    /// That loss.
    pub loss: Option<String>,
}

/// What is carried of a demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Reach {
    /// In the unit of the demand; none where that is not known, or lies beyond ten times the demand.
    pub carries: Option<f64>,
    /// The same as a multiple of the demand.
    pub covers: Option<f64>,
    /// Whether it lies beyond what was tried.
    pub beyond: bool,
    /// The most that was tried, where it lies beyond that: ten times the demand, or twice where more decides nothing.
    pub at_least: Option<f64>,
}

impl Reach {
    fn of(covers: Covers, demand: Option<f64>) -> Self {
        match covers {
            Covers::Beyond(times) => {
                Self { beyond: true, at_least: Some(times), ..Self::default() }
            }
            Covers::Unknown => Self::default(),
            Covers::Times(times) => {
                Self { carries: demand.map(|d| d * times), covers: Some(times), ..Self::default() }
            }
        }
    }
}

/// Times a demand that is carried.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Covers {
    Times(f64),
    /// More than this.
    Beyond(f64),
    Unknown,
}

/// Loads beyond this multiple of the demand are not told apart.
const BEYOND: f64 = 10.0;

impl Covers {
    fn of(line: &LoadLine) -> Self {
        match (line.beyond, line.holds) {
            _ if line.unfinished => Self::Unknown,
            // Whole tenths: the grid's own numbers say nothing.
            (true, holds) => {
                Self::Beyond((holds.unwrap_or(BEYOND) * 10.0).floor().min(10.0 * BEYOND) / 10.0)
            }
            (false, holds) => Self::Times(holds.unwrap_or(0.0)),
        }
    }

    /// A limit against what is asked of it.
    fn limit(limit: f64, demand: f64) -> Self {
        match demand > 0.0 {
            true if limit / demand > BEYOND => Self::Beyond(BEYOND),
            true => Self::Times(limit / demand),
            false => Self::Beyond(BEYOND),
        }
    }

    /// The same where only a share of the time is spent on it.
    fn over(self, share: Option<f64>) -> Self {
        match (self, share) {
            (_, None) | (Self::Unknown, _) => Self::Unknown,
            (Self::Times(times), Some(share)) if times <= BEYOND * share => {
                Self::Times(times / share)
            }
            (Self::Times(0.0), _) => Self::Times(0.0),
            (Self::Times(_), Some(_)) => Self::Beyond(BEYOND),
            (Self::Beyond(times), Some(share)) => {
                Self::Beyond((times / share.max(times / BEYOND)).min(BEYOND))
            }
        }
    }

    fn verdict(self) -> RowVerdict {
        match self {
            Self::Unknown => RowVerdict::Unknown,
            Self::Beyond(_) => RowVerdict::Ok,
            Self::Times(times) if times <= 0.0 => RowVerdict::Shortfall,
            Self::Times(times) => RowVerdict::of(1.0 - 1.0 / times),
        }
    }
}

/// What is asked of a pool, and what it carries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolBlock {
    /// The pool.
    pub pool: String,
    /// Replicas of today.
    pub replicas_now: u32,
    /// Planned replicas.
    pub replicas_planned: u32,
    /// Devices of a replica.
    pub devices_per_replica: u64,
    /// Whether nothing comes to it.
    pub idle: bool,
    /// Whether it gives way first, of all of today's fleet.
    pub runs_out_first: bool,
    /// What binds at the first load that today's replicas do not carry.
    pub cause: Option<Cause>,
    /// The promise that is broken first there.
    pub first_signal: Option<String>,
    /// The loss of the column `planned_with_loss`.
    pub loss: Option<String>,
    /// Resources.
    pub rows: Vec<TableRow>,
}

/// A resource of a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableRow {
    /// `requests`, `fresh_prompt_tokens`, `output_tokens`, `active_kv_tokens`, `sequences`, or the cause that is none of them: `host`, `queue`, `link`, `too_long`, `tool`, `provider`.
    pub resource: &'static str,
    /// Of what the numbers are.
    pub unit: &'static str,
    /// `modeled`, or `observed` where it was measured.
    pub provenance: &'static str,
    /// Who measured it, and when.
    pub source: Option<String>,
    /// The 95th percentile over windows of the busiest hour without events; the mean where most windows are empty.
    pub baseline: Option<f64>,
    /// The same with events.
    pub launch: Option<f64>,
    /// Today's replicas.
    pub today: Reach,
    /// The planned ones.
    pub planned: Reach,
    /// The planned ones without what the plan must survive the loss of.
    pub planned_with_loss: Option<Reach>,
    /// Of today's replicas.
    pub verdict_today: RowVerdict,
    /// Of the planned ones.
    pub verdict_planned: RowVerdict,
    /// Whether it is what binds today.
    pub is_cause: bool,
    /// When today's replicas have too little of it first.
    pub runs_out_at: Option<String>,
}

impl TableRow {
    /// The demand that is planned for.
    pub fn demand(&self) -> Option<f64> {
        self.launch.or(self.baseline)
    }
}

/// A limit that no pool has by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedRow {
    /// `budget.monthly`, `provider.NAME.rpm`, a quota.
    pub name: String,
    /// Of what the numbers are.
    pub unit: String,
    /// The most that the plan asks for; none where a price is missing.
    pub planned: Option<f64>,
    /// How much there may be.
    pub limit: f64,
    /// limit / planned.
    pub reach: Reach,
    /// Whether that is enough.
    pub verdict: RowVerdict,
    /// When it is first exceeded.
    pub trips_at: Option<String>,
}

/// What today's fleet runs out of first, when, and how it shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunsOutFirst {
    /// The pool or provider; none where no single one binds.
    pub of: Option<String>,
    /// What binds at the first load that fails.
    pub cause: Option<Cause>,
    /// The promise that is broken first: what to watch.
    pub first_signal: Option<String>,
    /// Times the demand that today's fleet carries.
    pub covers: Option<f64>,
    /// The first hour whose demand is above that.
    pub at: Option<String>,
    /// The same, counted in hours from the start of the horizon.
    #[serde(skip)]
    pub hour: Option<usize>,
}

/// What replicas of a pool were measured to carry, in place of what is computed.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredLine {
    /// The pool, by its place.
    pub pool: usize,
    /// The resource, as [`TableRow`] calls it.
    pub resource: &'static str,
    /// How much of it all of these replicas carry.
    pub carries: f64,
    /// How many replicas it was measured on.
    pub replicas: u32,
    /// Who measured it, and when.
    pub source: String,
}

impl MeasuredLine {
    /// What so many replicas cover of a demand.
    fn covers(&self, replicas: u32, demand: f64) -> Covers {
        let each = self.carries / f64::from(self.replicas.max(1));
        Covers::limit(each * f64::from(replicas), demand)
    }
}

/// The demand of a measured resource that is there however many replicas there are.
fn demand_of(input: &PlanInput<'_>, line: &MeasuredLine) -> Option<f64> {
    let name = &input.fleet.pools[line.pool].name;
    let resource = match line.resource {
        "requests" => Resource::Requests,
        "fresh_prompt_tokens" => Resource::FreshPromptTokens,
        "output_tokens" => Resource::OutputTokens,
        _ => return None,
    };
    let mut rows = input.demand.pools.iter();
    let row = rows.find(|row| row.pool == *name && row.resource == resource)?;
    Some(level(row.launch.as_ref().unwrap_or(&row.baseline)))
}

/// Sizes pools by what they were measured to carry, where that takes more replicas than what is computed.
pub(crate) fn measured(
    input: &PlanInput<'_>,
    sizes: &mut [PoolSize],
    (obstacles, notes): (&mut Vec<Obstacle>, &mut Vec<String>),
) {
    for line in &input.lines {
        let Some(size) = sizes.get_mut(line.pool) else { continue };
        let Some(demand) = demand_of(input, line) else { continue };
        let need = demand * f64::from(line.replicas) / line.carries.max(f64::MIN_POSITIVE);
        if need > f64::from(LOOKED_AT) {
            obstacles.push(Obstacle {
                kind: "replicas",
                what: format!(
                    "pool `{}` needs {need:.0} replicas by its measured line of {} ({}), and no pool is planned with more than {LOOKED_AT}",
                    input.fleet.pools[line.pool].name,
                    line.resource.replace('_', " "),
                    line.source
                ),
                relax: "check `carries` and `replicas` of that `[[line]]`".to_owned(),
            });
            continue;
        }
        let need = (need - 1e-9).ceil().max(0.0) as u32;
        let more = need.saturating_sub(size.replicas.carry());
        if more > 0 {
            size.own.planned += more;
            size.replicas.steady += more;
            size.replicas = size.replicas.summed();
            notes.push(format!(
                "pool `{}` is sized by its measured line of {} ({}): {need} replicas, {more} more than simulated",
                input.fleet.pools[line.pool].name,
                line.resource.replace('_', " "),
                line.source
            ));
        }
    }
}

/// KV tokens of running requests, as a 95th percentile over windows of all replicas that carry the demand.
fn kv_demand(size: &PoolSize, pool: usize, name: &str) -> Option<f64> {
    let seen = size.own.seen.as_ref()?;
    let share = window_p95(seen, name, |u| u.kv_mean)?;
    Some(share * kv_tokens(&seen.pools[pool]) * f64::from(seen.pools[pool].replicas as u32))
}

/// Builds the table. `losses` says what became of the planned fleet with each loss; those count where `claimed`.
pub(crate) fn table(
    input: &PlanInput<'_>,
    asked: &Asked,
    (planned, sizes): (&SimulateInput, &[PoolSize]),
    budget: &BudgetPlan,
    (survived, claimed): (&[Loss], bool),
    context: Context<'_>,
) -> Result<LaunchTable, StudyError> {
    let question = asked.at_quantile(context);
    let now = input.today();
    let of_today = Question { fleet: &now, targets: &input.targets, ..question };
    let of_plan = Question { fleet: planned, ..question };
    let today = of_today.load().line()?;
    let planned_line = of_plan.load().line()?;
    let mut fleet_line = FleetLine {
        today: Reach::of(Covers::of(&today), None),
        verdict_today: today.verdict(),
        planned: Reach::of(Covers::of(&planned_line), None),
        verdict_planned: with_losses(planned_line.verdict(), survived, claimed),
        planned_with_loss: None,
        loss: None,
    };
    let lost = if claimed { (input.lost)(planned) } else { Vec::new() };
    let mut pools = Vec::new();
    for (pool, size) in sizes.iter().enumerate() {
        let about = |line: &LoadLine| line.holds.filter(|_| line.pools.contains(&pool));
        // Half of a pair is fed by another without limit: what it carries far beyond the demand takes many calls to see, and is not asked where the other half gives way.
        let name = Some(&planned.pools[pool].name);
        let half = planned.pools.iter().enumerate().any(|(i, other)| {
            other.life.hands_over.is_some_and(|over| over.to == pool || i == pool)
        }) && today.of.as_ref() != name
            && planned_line.of.as_ref() != name;
        let line = |question: &Question<'_>, of: &LoadLine| {
            let (effort, about) =
                if half { (HALF, Some(HALF.most_load)) } else { (Effort::USUAL, about(of)) };
            question.load().with(effort).pool_line(pool, about)
        };
        let (today_line, planned_line) = (line(&of_today, &today)?, line(&of_plan, &planned_line)?);
        let lines = PoolLines {
            lost: with_loss(
                &of_plan,
                pool,
                (if half { HALF } else { WITH_LOSS }, planned_line.holds),
                &lost,
            )?,
            today: today_line,
            planned: planned_line,
        };
        let block = block(input, asked, pool, (size, planned), &today, &lines);
        if let Some((name, line)) = lines.lost.as_ref().filter(|_| !block.idle) {
            less(&mut fleet_line, name, line);
        }
        pools.push(block);
    }
    // Who is without a region goes elsewhere: that is of the whole fleet.
    for lost in lost.iter().filter(|lost| of_pool(lost).is_none()) {
        let load = of_plan.load_without(&lost.what).with(WITH_LOSS);
        less(&mut fleet_line, &lost.name, &load.line()?);
    }
    // With a loss a fleet carries no more than without.
    if let (Some(lost), Some(whole)) = (&mut fleet_line.planned_with_loss, planned_line.holds)
        && !planned_line.beyond
        && lost.covers.is_none_or(|covers| covers > whole)
    {
        *lost = Reach::of(Covers::of(&planned_line), None);
    }
    let mut runs_out_first = first(input, asked, &today);
    least_measured(&mut fleet_line, &mut pools, &mut runs_out_first);
    Ok(LaunchTable {
        has_event: asked.events,
        fleet: fleet_line,
        pools,
        shared: shared(budget),
        runs_out_first,
    })
}

/// A fleet carries the smaller of its load line and of the least that was measured. Memory is a risk, and decides nothing: the fewer the replicas, the more of it is in use.
fn least_measured(
    fleet: &mut FleetLine,
    pools: &mut [PoolBlock],
    first: &mut Option<RunsOutFirst>,
) {
    let times =
        |reach: &Reach| if reach.beyond { f64::INFINITY } else { reach.covers.unwrap_or(0.0) };
    let mut decides: Option<usize> = None;
    for (i, block) in pools.iter().enumerate() {
        let measured =
            |row: &&TableRow| row.provenance == "observed" && row.resource != "active_kv_tokens";
        for row in block.rows.iter().filter(measured) {
            if times(&row.planned) < times(&fleet.planned) {
                fleet.planned = Reach { carries: None, ..row.planned };
                (fleet.planned_with_loss, fleet.loss) = (None, None);
                if times(&row.planned) < 1.0 {
                    fleet.verdict_planned = LoadVerdict::Fails;
                }
            }
            if times(&row.today) >= times(&fleet.today) {
                continue;
            }
            fleet.today = Reach { carries: None, ..row.today };
            if times(&row.today) < 1.0 {
                fleet.verdict_today = LoadVerdict::Fails;
            }
            decides = Some(i);
            *first = Some(RunsOutFirst {
                of: Some(block.pool.clone()),
                cause: match row.resource {
                    "fresh_prompt_tokens" => Some(Cause::Prefill),
                    "output_tokens" => Some(Cause::Decode),
                    _ => block.cause,
                },
                first_signal: None,
                covers: row.today.covers,
                at: row.runs_out_at.clone(),
                hour: None,
            });
        }
    }
    if let Some(decides) = decides {
        for (i, block) in pools.iter_mut().enumerate() {
            block.runs_out_first = i == decides;
        }
    }
}

/// Whether a fleet carries its demand as it is, and with each loss that it must survive.
fn with_losses(whole: LoadVerdict, survived: &[Loss], claimed: bool) -> LoadVerdict {
    let losses = survived.iter().filter(|loss| claimed && loss.kept_before);
    losses.fold(whole, |verdict, loss| match (verdict, loss.verdict) {
        (LoadVerdict::Fails, _) | (_, LoadVerdict::Fails) => LoadVerdict::Fails,
        (LoadVerdict::TooClose, _) | (_, LoadVerdict::TooClose) => LoadVerdict::TooClose,
        _ => LoadVerdict::Carried,
    })
}

/// Load lines of a pool by itself.
struct PoolLines {
    today: LoadLine,
    planned: LoadLine,
    /// With the loss that leaves least of it.
    lost: Option<(String, LoadLine)>,
}

/// Load lines with a loss are shown, and the verdict asks whether the demand is carried: nothing else need be sure.
const WITH_LOSS: Effort = Effort { sure: false, ..Effort::USUAL };

/// Load lines of the half of a pair that decides nothing: whether it carries twice the demand, and if not, about how much.
const HALF: Effort = Effort { calls: 100_000, most_load: 2.0, ..Effort::SCENARIO };

/// The pool that a loss is of; none where it is of all that is there.
fn of_pool(lost: &Lost) -> Option<usize> {
    lost.what.iter().find_map(|what| match what {
        Mishap::Replicas(pool, _) | Mishap::Nodes(pool, _) | Mishap::Zones(pool, _) => Some(*pool),
        _ => None,
    })
}

fn low(line: &LoadLine) -> f64 {
    if line.beyond { f64::INFINITY } else { line.holds.unwrap_or(0.0) }
}

/// Keeps the loss that leaves least.
fn less(fleet: &mut FleetLine, name: &str, line: &LoadLine) {
    let before = fleet.planned_with_loss.map_or(f64::INFINITY, |reach| {
        if reach.beyond { f64::INFINITY } else { reach.covers.unwrap_or(0.0) }
    });
    if fleet.planned_with_loss.is_none() || low(line) < before {
        fleet.planned_with_loss = Some(Reach::of(Covers::of(line), None));
        fleet.loss = Some(name.to_owned());
    }
}

/// The load line of a pool without what it loses, of the losses that are of it. The search begins at what it carries without a loss.
fn with_loss(
    question: &Question<'_>,
    pool: usize,
    (effort, about): (Effort, Option<f64>),
    lost: &[Lost],
) -> Result<Option<(String, LoadLine)>, StudyError> {
    let mut least: Option<(String, LoadLine)> = None;
    for lost in lost.iter().filter(|lost| of_pool(lost) == Some(pool)) {
        let line = question.load_without(&lost.what).with(effort).pool_line(pool, about)?;
        if least.as_ref().is_none_or(|(_, other)| low(&line) < low(other)) {
            least = Some((lost.name.clone(), line));
        }
    }
    Ok(least)
}

/// Shares of a pool's busy engine time at its load line: prompts, and the rest.
fn prefill_share(line: &LoadLine, pool: &str) -> Option<f64> {
    let at = line.holds.or(line.fails)?;
    let tried = line.tried.iter().find(|tried| (tried.load / at - 1.0).abs() < 1e-9)?;
    tried.phases.iter().find(|phase| phase.pool == pool).map(|phase| phase.prefill)
}

/// The 95th percentile over windows; the mean where most windows are empty.
fn level(level: &Level) -> f64 {
    if level.p95_per_s >= level.mean_per_s { level.p95_per_s } else { level.mean_per_s }
}

fn block(
    input: &PlanInput<'_>,
    asked: &Asked,
    pool: usize,
    (size, planned): (&PoolSize, &SimulateInput),
    fleet_today: &LoadLine,
    lines: &PoolLines,
) -> PoolBlock {
    let name = planned.pools[pool].name.clone();
    let facts = &input.pools[pool];
    let mine = |resource: Resource| {
        let mut rows = input.demand.pools.iter();
        rows.find(|row| row.pool == name && row.resource == resource)
    };
    let demand = |resource: Resource| -> (Option<f64>, Option<f64>) {
        mine(resource).map_or((None, None), |row| {
            (Some(level(&row.baseline)), row.launch.as_ref().map(level))
        })
    };
    let idle = mine(Resource::Requests).is_none_or(|row| {
        row.baseline.mean_per_s.max(row.launch.map_or(0.0, |l| l.mean_per_s)) <= 0.0
    });
    let cause = lines.today.cause;
    let mut block = PoolBlock {
        runs_out_first: fleet_today.of.as_ref() == Some(&name)
            && fleet_today.verdict() != LoadVerdict::Carried,
        pool: name.clone(),
        replicas_now: facts.now,
        replicas_planned: size.replicas.total,
        devices_per_replica: facts.parallelism.devices,
        idle,
        cause,
        first_signal: lines.today.signal.clone(),
        loss: lines.lost.as_ref().map(|(name, _)| name.clone()),
        rows: Vec::new(),
    };
    if idle {
        return block;
    }
    // Where no replicas are planned, today's say how time is shared.
    let prefill =
        prefill_share(&lines.planned, &name).or_else(|| prefill_share(&lines.today, &name));
    let columns: [Option<&LoadLine>; 3] =
        [Some(&lines.today), Some(&lines.planned), lines.lost.as_ref().map(|(_, line)| line)];
    let computed = |share: Option<f64>, own: &[Cause]| -> [Option<Covers>; 3] {
        columns.map(|line| {
            let line = line?;
            let binds = line.cause.is_some_and(|cause| own.contains(&cause));
            let all = Covers::of(line);
            Some(if binds { all } else { all.over(share) })
        })
    };
    let at = Covers::of(&lines.today);
    let out = |resource: &str| match at {
        Covers::Times(times) if times < 1.0 => {
            runs_out(input.classes, (asked.hour, asked.events), resource, times)
                .map(|hour| (input.label)(hour))
        }
        _ => None,
    };
    let mut add = |resource: &'static str,
                   unit: &'static str,
                   (baseline, launch): (Option<f64>, Option<f64>),
                   [today, planned, lost]: [Option<Covers>; 3],
                   is_cause: bool| {
        let demand = launch.or(baseline);
        let (today, planned) =
            (today.unwrap_or(Covers::Unknown), planned.unwrap_or(Covers::Unknown));
        block.rows.push(TableRow {
            resource,
            unit,
            provenance: "modeled",
            source: None,
            baseline,
            launch,
            today: Reach::of(today, demand),
            planned: Reach::of(planned, demand),
            planned_with_loss: lost.map(|lost| Reach::of(lost, demand)),
            verdict_today: today.verdict(),
            verdict_planned: planned.verdict(),
            is_cause,
            runs_out_at: match today.verdict() {
                RowVerdict::Shortfall if resource != "active_kv_tokens" => out(resource),
                _ => None,
            },
        });
    };
    add("requests", "1/s", demand(Resource::Requests), computed(Some(1.0), &[]), false);
    if let Some(share) = mine(Resource::FreshPromptTokens).map(|_| prefill) {
        let share = if mine(Resource::OutputTokens).is_none() { Some(1.0) } else { share };
        let own = computed(share, &[Cause::Prefill]);
        add(
            "fresh_prompt_tokens",
            "tokens/s",
            demand(Resource::FreshPromptTokens),
            own,
            cause == Some(Cause::Prefill),
        );
    }
    if let Some(share) = mine(Resource::OutputTokens).map(|_| prefill.map(|share| 1.0 - share)) {
        let share = if mine(Resource::FreshPromptTokens).is_none() { Some(1.0) } else { share };
        let own = computed(share, &[Cause::Decode]);
        add(
            "output_tokens",
            "tokens/s",
            demand(Resource::OutputTokens),
            own,
            cause == Some(Cause::Decode),
        );
    }
    let replicas = [facts.now, size.replicas.total];
    let held = |each: f64, peak: Option<f64>, own: Cause| -> [Option<Covers>; 3] {
        let limit =
            |n: u32| peak.map_or(Covers::Unknown, |p| Covers::limit(each * f64::from(n), p));
        let mut all = [Some(limit(replicas[0])), Some(limit(replicas[1])), None];
        for (covers, line) in all.iter_mut().zip(columns) {
            // The cause carries no more than the load line.
            if let Some(line) = line.filter(|line| line.cause == Some(own)) {
                *covers = Some(Covers::of(line));
            }
        }
        all
    };
    let seen = size.own.seen.as_ref().map(|seen| (seen, &seen.pools[pool]));
    let carrying = seen.map_or(1.0, |(_, result)| result.replicas as f64);
    let peak = |of: fn(&plimsoll_load::Utilisation) -> f64| {
        seen.and_then(|(seen, _)| window_p95(seen, &name, of)).map(|each| each * carrying)
    };
    let kv = seen.map(|(_, result)| kv_tokens(result));
    let kv_demand = kv_demand(size, pool, &name);
    let kv_line = KV_CEILING * kv.unwrap_or(0.0);
    let shown = |demand: Option<f64>| match asked.events {
        true => (None, demand),
        false => (demand, None),
    };
    let own = held(kv_line, kv_demand, Cause::Kv);
    add("active_kv_tokens", "tokens", shown(kv_demand), own, cause == Some(Cause::Kv));
    let seats = planned.pools[pool].life.limits.max_num_seqs as f64;
    let sequences = peak(|u| u.sequences_mean);
    let own = held(seats, sequences, Cause::Sequences);
    add("sequences", "running", shown(sequences), own, cause == Some(Cause::Sequences));
    // A cause that is none of these has a row of its own.
    let other = cause.filter(|cause| {
        !matches!(cause, Cause::Prefill | Cause::Decode | Cause::Kv | Cause::Sequences)
    });
    if let Some(other) = other {
        add(other.word(), "1/s", demand(Resource::Requests), computed(Some(1.0), &[]), true);
    }
    for line in input.lines.iter().filter(|line| line.pool == pool) {
        let Some(row) = block.rows.iter_mut().find(|row| row.resource == line.resource) else {
            continue;
        };
        let Some(demand) = row.demand() else { continue };
        let [today, planned] = replicas.map(|n| line.covers(n, demand));
        (row.today, row.planned) =
            (Reach::of(today, Some(demand)), Reach::of(planned, Some(demand)));
        (row.verdict_today, row.verdict_planned) = (today.verdict(), planned.verdict());
        (row.planned_with_loss, row.provenance) = (None, "observed");
        row.source = Some(line.source.clone());
    }
    for row in &mut block.rows {
        for (reach, verdict) in
            [(row.today, &mut row.verdict_today), (row.planned, &mut row.verdict_planned)]
        {
            if row.resource == "active_kv_tokens" && reach.covers.is_some_and(|c| c < 1.0) {
                *verdict = RowVerdict::MemoryRisk;
            }
        }
    }
    block
}

/// The 95th percentile over windows of a share or a count of one replica.
fn window_p95(
    seen: &Simulation,
    pool: &str,
    of: fn(&plimsoll_load::Utilisation) -> f64,
) -> Option<f64> {
    let windows = seen.timeline.as_ref()?.iter().filter(|window| window.pool == pool);
    let values: Vec<f64> = windows.map(|window| of(&window.utilisation)).collect();
    plimsoll_stats::quantile(&values, 0.95)
}

/// Tokens that the cache of a replica holds.
fn kv_tokens(pool: &PoolResult) -> f64 {
    pool.kv_blocks as f64 * pool.kv_block_tokens as f64
}

/// What today's fleet runs out of first.
fn first(input: &PlanInput<'_>, asked: &Asked, today: &LoadLine) -> Option<RunsOutFirst> {
    let short = today.holds.filter(|load| *load < 1.0).or(today.holds.is_none().then_some(0.0));
    let hour = short
        .filter(|_| !today.beyond && !today.unfinished)
        .and_then(|factor| runs_out(input.classes, (asked.hour, asked.events), "requests", factor));
    today.cause.map(|cause| RunsOutFirst {
        of: today.of.clone(),
        cause: Some(cause),
        first_signal: today.signal.clone(),
        covers: today.holds.filter(|_| !today.beyond),
        at: hour.map(|hour| (input.label)(hour)),
        hour,
    })
}

/// Caps: whatever is planned, they are the same.
fn shared(budget: &BudgetPlan) -> Vec<SharedRow> {
    let row = |cap: &super::money::Cap| {
        let covers = cap.peak.map_or(Covers::Unknown, |peak| Covers::limit(cap.limit, peak));
        let is_money = cap.name.starts_with("budget.");
        SharedRow {
            name: cap.name.clone(),
            unit: cap.unit.to_owned(),
            planned: cap.peak,
            limit: cap.limit,
            reach: Reach::of(covers, cap.peak),
            verdict: match (covers, cap.peak) {
                (_, Some(0.0)) => RowVerdict::Idle,
                (Covers::Times(times), _) if times < 1.0 && is_money => RowVerdict::OverCap,
                _ => covers.verdict(),
            },
            trips_at: cap.trips_at.clone(),
        }
    };
    budget.caps.iter().map(row).collect()
}

/// The planned fleet at the peak, where it is placed.
pub(crate) struct AtPeak {
    /// The promise that it breaks with nothing lost, and what binds.
    pub(crate) breaks: Option<(String, Option<Cause>)>,
    /// What becomes of it when something is lost.
    pub(crate) losses: Vec<Loss>,
    /// What hosted models are asked for, and serve.
    pub(crate) hosted: Hosted,
}

pub(crate) fn at_peak(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
    fleet: Option<&Fleet>,
    context: Context<'_>,
) -> Result<AtPeak, StudyError> {
    let planned = placed(input, asked, sizes, fleet);
    let question = Question { fleet: &planned, ..asked.at_quantile(context) };
    let (whole, losses) = losses(&question, &(input.lost)(&planned))?;
    let hosted = match planned.providers.is_empty() {
        true => Hosted { asked: Vec::new(), served: Vec::new() },
        false => {
            let free = without_limits(&planned);
            let free = Question { fleet: &free, ..question };
            let none = vec![ProviderUse::default(); planned.providers.len()];
            let of = |question: &Question<'_>| -> Result<Vec<ProviderUse>, StudyError> {
                let seen = question.load().shown_hosted(1.0, CALLS_SHOWN)?;
                Ok(seen.as_ref().map_or_else(|| none.clone(), used))
            };
            Hosted { asked: of(&free)?, served: of(&question)? }
        }
    };
    // What does not keep its promises, as far as is known, is no plan.
    let breaks = whole.signal.filter(|_| !whole.keeps).map(|signal| (signal, whole.cause));
    Ok(AtPeak { breaks, hosted, losses })
}

/// What hosted models did a second.
fn used(seen: &Simulation) -> Vec<ProviderUse> {
    let seconds = seen.seconds * f64::from(seen.runs);
    let each = seen.providers.iter().map(|own| ProviderUse {
        calls: own.attempts.sent as f64 / seconds,
        prompt: own.prompt_tokens as f64 / seconds,
        cached: own.cached_tokens as f64 / seconds,
        output: own.output_tokens as f64 / seconds,
        at_once: own.at_once_mean,
    });
    each.collect()
}

/// The fleet, were its hosted models to refuse no request: what is refused comes again, or does not, and says nothing of what was wanted.
fn without_limits(fleet: &SimulateInput) -> SimulateInput {
    let mut fleet = fleet.clone();
    for (_, provider) in &mut fleet.providers {
        (provider.calls, provider.tokens, provider.prompt) = (None, None, None);
        (provider.output, provider.at_once) = (None, None);
    }
    fleet
}

/// The planned fleet with all of its replicas, where the programme put them.
pub(crate) fn placed(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
    fleet: Option<&Fleet>,
) -> SimulateInput {
    let mut planned = asked.fleet.clone();
    for (pool, size) in planned.pools.iter_mut().zip(sizes) {
        pool.life.replicas = size.replicas.total;
        let there = fleet.into_iter().flat_map(|fleet| &fleet.placements);
        let mut regions: Vec<usize> = Vec::new();
        for placed in there.filter(|placed| placed.pool == pool.name) {
            let at = input.fleet.regions.iter().position(|region| *region == placed.region);
            let count = usize::try_from(placed.replicas).unwrap_or(0);
            regions.extend(at.into_iter().flat_map(|at| std::iter::repeat_n(at, count)));
        }
        let mut apart = regions.clone();
        apart.dedup();
        if apart.len() > 1 {
            pool.life.regions = regions;
        } else if let [only] = apart[..] {
            pool.life.regions = vec![only];
        }
    }
    planned
}
