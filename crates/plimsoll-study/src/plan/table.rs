//! The launch table: what is asked of each resource, and to what it may be loaded, with the fleet of today and with the planned one.

use plimsoll_sim::ProviderSpec;
use plimsoll_stats::in_order;
use plimsoll_workload::Shift;
use serde::Serialize;

use super::PlanInput;
use super::money::{BudgetPlan, Hosted, ProviderUse};
use super::place::Fleet;
use super::size::Question;
use super::sizes::{Asked, PoolSize};
use super::staffing::Staffing;
use crate::headroom::{Loss, RowVerdict, level, losses, runs_out};
use crate::sweep::{Alone, CurveInput, LEVERS, Sweep, binds, judge, resident};
use plimsoll_load::StudyError;
use plimsoll_load::{PoolResult, SimulateInput, Simulation};

/// Runs of each load, and calls of all of them: the table looks at many.
const RUNS: u32 = 1;
const CALLS: f64 = 1_500.0;
/// A line is known to this share of its load.
const EDGE: f64 = 0.12;
/// Runs of each loss.
const RUNS_OF_LOSS: u32 = 2;

/// A resource of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceRow {
    /// `requests`, `fresh_prompt_tokens`, `output_tokens`, `resident_kv_tokens`, `sequences`, `memory_bandwidth`, `host`, a provider's limit, a quota, a budget, or `mix`.
    pub name: String,
    /// Of what the numbers are.
    pub unit: String,
    /// The 95th percentile over windows of the busiest hour without events; means where no window counts it.
    pub baseline_p95: Option<f64>,
    /// The same with events.
    pub launch_p95: Option<f64>,
    /// To what it may be loaded with the replicas of today.
    pub load_line_now: Option<f64>,
    /// The same with the planned ones.
    pub load_line_planned: Option<f64>,
    /// (Load line of today - demand) / load line, in percent.
    pub headroom_pct: Option<f64>,
    /// The same of the planned one.
    pub headroom_planned_pct: Option<f64>,
    /// What that means for the fleet of today.
    pub verdict: RowVerdict,
    /// The same for the planned one; none where more replicas do not move the line.
    pub verdict_planned: Option<RowVerdict>,
    /// When the fleet of today has too little.
    pub runs_out_at: Option<String>,
    /// The same, counted in hours from the start of the horizon.
    #[serde(skip)]
    pub runs_out_hour: Option<usize>,
}

/// What runs out first, when, and how it shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstToRunOut {
    /// The resource with the least headroom today.
    pub resource: String,
    /// Its headroom, in percent.
    pub headroom_pct: Option<f64>,
    /// The first hour in which there is too little of it.
    pub at: Option<String>,
    /// What binds in engines then: `kv`, `sequences`, `token_budget`, `memory_bandwidth`, `compute`, `host`, `provider`, `tool`.
    pub binds: Option<String>,
    /// Where.
    pub of: Option<String>,
    /// The promise that is broken first: what to watch.
    pub first_signal: Option<String>,
}

/// The table, and what runs out first.
pub(crate) struct Table {
    pub(crate) rows: Vec<ResourceRow>,
    pub(crate) first: Option<FirstToRunOut>,
    /// Times the planned demand that the planned fleet carries.
    pub(crate) cliff: Option<f64>,
}

/// A line that was looked for: of one pool, with one lever.
struct Line {
    /// The most that keeps every promise, in multiples of the demand.
    holds: Option<f64>,
    /// The next that does not.
    fails: Option<f64>,
    /// What binds there, and the first promise that is broken.
    binds: Option<String>,
    signal: Option<String>,
    /// Tokens that the demand itself keeps resident.
    resident: f64,
}

impl Line {
    /// Where nobody comes, nothing is too much.
    fn nobody() -> Self {
        Self { holds: Some(f64::INFINITY), fails: None, binds: None, signal: None, resident: 0.0 }
    }
}

/// What is looked at: the fleet of today or the planned one, a pool, and a lever; the last of these is all of the launch together.
struct Look {
    planned: bool,
    pool: usize,
    lever: usize,
}

/// The lever of requests is the rate, as that of the whole mix of the launch.
const RATE: usize = LEVERS.len();
const MIX: usize = LEVERS.len() + 1;

pub(crate) fn table(
    input: &PlanInput<'_>,
    (of_today, asked): (&Asked, &Asked),
    sizes: &[PoolSize],
    budget: &BudgetPlan,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Table, StudyError> {
    let mut looks: Vec<Look> = Vec::new();
    for planned in [false, true] {
        for pool in 0..sizes.len() {
            let levers = if input.launch_hour.is_some() { 0..=MIX } else { 0..=RATE };
            looks.extend(levers.map(|lever| Look { planned, pool, lever }));
        }
    }
    let question = asked.at_quantile(go_on);
    let before = Question { hour: input.baseline_hour, events: false, ..question };
    let now: Vec<u32> = input.pools.iter().map(|facts| facts.now).collect();
    let total: Vec<u32> = sizes.iter().map(|size| size.replicas.total).collect();
    let all = u32::try_from(looks.len()).unwrap_or(u32::MAX);
    // Each is a few short runs: side by side they use every thread.
    let lines = in_order(input.fleet.threads, all, |i| {
        let look = &looks[i as usize];
        let n = if look.planned { total[look.pool] } else { now[look.pool] };
        let size = &sizes[look.pool];
        let own = if look.planned { question } else { of_today.at_quantile(go_on) };
        let (question, before) = (own, Question { fleet: own.fleet, ..before });
        let (question, sized) = match (look.lever, size.baseline) {
            (MIX, _) | (_, None) => (&question, (size.replicas.carry(), size.own.one)),
            (_, Some(baseline)) => (&before, baseline),
        };
        let guess = Staffing::new(sized.0.max(1), sized.1).carries(n);
        let Some(alone) = &size.own.alone else { return Ok(Line::nobody()) };
        line(question, look.pool, n, look.lever, (guess, alone))
    });
    let lines: Vec<Line> = lines.into_iter().collect::<Result<_, _>>()?;
    let of = |planned: bool, lever: usize| {
        looks
            .iter()
            .zip(&lines)
            .filter(move |(look, _)| look.planned == planned && look.lever == lever)
            .map(|(look, line)| (look.pool, line))
    };
    // A fleet carries what the first of its pools to give way carries.
    let edge = |planned: bool, lever: usize| -> Edge {
        let weakest = of(planned, lever).min_by(|a, b| {
            let at = |line: &Line| line.holds.unwrap_or(0.0);
            at(a.1).total_cmp(&at(b.1))
        });
        let first = of(planned, lever).filter(|(_, line)| line.fails.is_some());
        let first = first.min_by(|a, b| {
            let at = |line: &Line| line.holds.unwrap_or(0.0);
            at(a.1).total_cmp(&at(b.1))
        });
        match (first, weakest) {
            (Some((pool, line)), _) => Edge {
                factor: line.holds,
                beyond: false,
                pool: Some(pool),
                binds: line.binds.clone(),
                signal: line.signal.clone(),
            },
            (None, weakest) => Edge {
                factor: weakest.and_then(|(_, line)| line.holds),
                beyond: weakest.is_some(),
                pool: None,
                binds: None,
                signal: None,
            },
        }
    };
    let names = [LEVERS[0].resource, LEVERS[1].resource, LEVERS[2].resource, "requests"];
    let units = [LEVERS[0].unit, LEVERS[1].unit, LEVERS[2].unit, "1/s"];
    let mut rows = Vec::new();
    // Where there are no replicas of one's own there is no lever to move: caps say what runs out.
    let levers = if sizes.is_empty() { &[][..] } else { &[RATE, 0, 1, 2][..] };
    for &lever in levers {
        let (name, unit) = (names[lever], units[lever]);
        let resident: f64 = of(true, lever).map(|(_, line)| line.resident).sum();
        let launched =
            sizes.iter().filter_map(|size| size.own.seen.as_ref()).map(resident_of).sum();
        let peak = input.launch_hour.map(|_| launched);
        let (base, launch) = level(input.demand, name).unwrap_or((resident, peak));
        let (today, planned) = (edge(false, lever), edge(true, lever));
        let out = today
            .factor
            .filter(|_| !today.beyond)
            .and_then(|factor| runs_out(input.classes, input.baseline_hour, name, factor));
        let at = |edge: &Edge| edge.factor.filter(|_| !edge.beyond).map(|factor| factor * base);
        rows.push(row(
            name,
            unit,
            (Some(base), launch),
            (at(&today), at(&planned)),
            (today.beyond, planned.beyond),
            out.map(|hour| (hour, (input.label)(hour))),
        ));
    }
    rows.extend(measured(input, sizes));
    rows.extend(caps(budget, input.launch_hour.is_some()));
    let lever = if input.launch_hour.is_some() { MIX } else { RATE };
    let (today, planned) = match sizes.is_empty() {
        // Hosted models are all of the fleet, today and planned.
        true => {
            let line = hosted_line(&question)?;
            (line.clone(), line)
        }
        false => (edge(false, lever), edge(true, lever)),
    };
    let (base, launch) = level(input.demand, "requests").unwrap_or((0.0, None));
    let asked_for = launch.unwrap_or(base);
    let at = |edge: &Edge| edge.factor.filter(|_| !edge.beyond).map(|factor| factor * asked_for);
    rows.push(row(
        "mix",
        "requests/s of the mix",
        (Some(base), launch),
        (at(&today), at(&planned)),
        (today.beyond, planned.beyond),
        None,
    ));
    // What is too little first; where nothing is, what there is least of.
    let least = rows.iter().filter(|row| row.name != "mix");
    let least = least.filter_map(|row| Some((row.headroom_pct?, row)));
    let least = least.min_by(|a, b| {
        let at = |row: &ResourceRow| match row.verdict {
            RowVerdict::Shortfall => row.runs_out_hour.unwrap_or(usize::MAX - 1),
            _ => usize::MAX,
        };
        at(a.1).cmp(&at(b.1)).then(a.0.total_cmp(&b.0))
    });
    let first = least.map(|(_, row)| FirstToRunOut {
        resource: row.name.clone(),
        headroom_pct: row.headroom_pct,
        at: row.runs_out_at.clone(),
        binds: today.binds.clone(),
        of: today.pool.map(|pool| input.fleet.pools[pool].name.clone()),
        first_signal: today.signal.clone(),
    });
    Ok(Table { rows, first, cliff: planned.factor.filter(|_| !planned.beyond) })
}

/// The planned fleet at the peak, where it is placed.
pub(crate) struct AtPeak {
    /// The promise that it breaks with nothing lost.
    pub(crate) breaks: Option<String>,
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
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<AtPeak, StudyError> {
    let mut planned = placed(input, asked, sizes, fleet);
    (planned.runs, planned.threads) = (RUNS_OF_LOSS, input.fleet.threads);
    let peak = CurveInput {
        fleet: planned,
        targets: asked.targets.clone(),
        hour: asked.hour,
        events: asked.events,
        points: 0,
        calls: CALLS,
        longer: 0,
        by_resource: false,
    };
    let (whole, seen, losses) = losses(&peak, &(input.lost)(&peak.fleet), go_on)?;
    let asked = match seen.providers.is_empty() {
        true => Vec::new(),
        false => used(&unlimited(&peak, go_on)?),
    };
    Ok(AtPeak {
        breaks: if whole.may_meet() { None } else { whole.fails_by.clone() },
        hosted: Hosted { asked, served: used(&seen) },
        losses,
    })
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

/// The fleet at the peak, were its hosted models to refuse no request: what is refused comes again, or does not, and says nothing of what was wanted.
fn unlimited(
    peak: &CurveInput,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Simulation, StudyError> {
    let mut peak = peak.clone();
    for (_, provider) in &mut peak.fleet.providers {
        *provider = ProviderSpec {
            calls: None,
            tokens: None,
            prompt: None,
            output: None,
            at_once: None,
            ..provider.clone()
        };
    }
    Ok(losses(&peak, &[], go_on)?.1)
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

/// Where a fleet gives way.
#[derive(Clone)]
struct Edge {
    factor: Option<f64>,
    beyond: bool,
    pool: Option<usize>,
    binds: Option<String>,
    signal: Option<String>,
}

/// How much of the mix hosted models carry, where there are no replicas of one's own.
fn hosted_line(question: &Question<'_>) -> Result<Edge, StudyError> {
    let input = CurveInput {
        fleet: question.fleet.clone(),
        targets: question.targets.to_vec(),
        hour: question.hour,
        events: question.events,
        points: 0,
        calls: CALLS,
        longer: 0,
        by_resource: false,
    };
    let mut sweep = Sweep::new(&input, question.go_on);
    if sweep.rate <= 0.0 {
        return Ok(Edge { factor: None, beyond: true, pool: None, binds: None, signal: None });
    }
    let line = match sweep.settle()? {
        Some(_) => sweep.no_load_line()?,
        None => sweep.load_line()?,
    };
    Ok(Edge {
        factor: line.holds,
        beyond: line.fails.is_none(),
        pool: None,
        binds: line.binds,
        signal: line.signal,
    })
}

fn resident_of(simulation: &Simulation) -> f64 {
    resident(simulation)
}

/// The line of a pool with so many replicas, the others being in nobody's way.
fn line(
    question: &Question<'_>,
    pool: usize,
    n: u32,
    lever: usize,
    (guess, alone): (f64, &Alone),
) -> Result<Line, StudyError> {
    let mut input = question.of_pool(pool, &vec![None; question.fleet.pools.len()]);
    input.fleet.threads = 1;
    let mut sweep = Sweep::new(&input, question.go_on);
    let mut replicas: Vec<u32> = input.fleet.pools.iter().map(|p| p.life.replicas).collect();
    replicas[pool] = n;
    sweep.set_replicas(&replicas);
    let mut line = Line { holds: None, ..Line::nobody() };
    if sweep.rate <= 0.0 {
        return Ok(Line::nobody());
    }
    if n == 0 {
        (line.fails, line.signal) = (Some(0.0), Some("errors".to_owned()));
        return Ok(line);
    }
    sweep.settle_as(alone);
    sweep.base.runs = RUNS;
    if lever == 2 {
        line.resident = own_resident(&sweep.run(Shift::NONE, CALLS)?, pool);
    }
    let shift = |factor: f64| match LEVERS.get(lever) {
        Some(lever) => (lever.shift)(factor),
        None => Shift { rate: factor, ..Shift::NONE },
    };
    // Requests that are twice as long mostly break a promise by themselves, however few there are.
    let most = if LEVERS.get(lever).is_some() { 2.0 } else { 20.0 };
    let mut broke: Option<(f64, Simulation, Option<String>)> = None;
    let edge = sweep.edge(
        |factor| {
            sweep.begin_busy();
            let result = sweep.run(shift(factor), CALLS)?;
            let judged = judge(&result, &input);
            let meets = judged.about_meets();
            if !meets && broke.as_ref().is_none_or(|(at, ..)| factor < *at) {
                broke = Some((factor, result, judged.fails_by));
            }
            Ok(meets)
        },
        (guess.clamp(0.05, most), 1.3),
        EDGE,
    )?;
    (line.holds, line.fails) = edge;
    if let Some((_, result, signal)) = broke {
        (line.binds, line.signal) = (binds(&result, signal.as_deref()).0, signal);
    }
    Ok(line)
}

/// Tokens that one pool held.
fn own_resident(result: &Simulation, pool: usize) -> f64 {
    let own = &result.pools[pool];
    let tokens = own.kv_blocks as f64 * own.kv_block_tokens as f64;
    own.utilisation.kv_mean * tokens * own.replicas as f64
}

fn row(
    name: &str,
    unit: &str,
    (baseline, launch): (Option<f64>, Option<f64>),
    (now, planned): (Option<f64>, Option<f64>),
    (beyond_now, beyond_planned): (bool, bool),
    out: Option<(usize, String)>,
) -> ResourceRow {
    let demand = launch.or(baseline);
    let room = |line: Option<f64>| {
        let line = line.filter(|line| *line > 0.0)?;
        Some((line - demand?) / line)
    };
    // Without a line, whatever is asked for is too much.
    let verdict = |line: Option<f64>, beyond: bool| match (beyond, room(line)) {
        (true, _) => RowVerdict::Ok,
        (false, None) => RowVerdict::Shortfall,
        (false, room) => verdict(room),
    };
    let of_today = verdict(now, beyond_now);
    ResourceRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        baseline_p95: baseline,
        launch_p95: launch,
        load_line_now: now,
        load_line_planned: planned,
        headroom_pct: percent(room(now)),
        headroom_planned_pct: percent(room(planned)),
        verdict: of_today,
        verdict_planned: (name == "mix").then(|| verdict(planned, beyond_planned)),
        runs_out_hour: out.as_ref().map(|(hour, _)| *hour),
        runs_out_at: out.filter(|_| of_today == RowVerdict::Shortfall).map(|(_, at)| at),
    }
}

fn percent(headroom: Option<f64>) -> Option<f64> {
    headroom.map(|share| share * 100.0)
}

fn verdict(headroom: Option<f64>) -> RowVerdict {
    headroom.map_or(RowVerdict::Unknown, RowVerdict::of)
}

/// What the runs that sized the pools showed of their engines, for all replicas together, and of what there is.
fn measured(input: &PlanInput<'_>, sizes: &[PoolSize]) -> Vec<ResourceRow> {
    let mut rows = Vec::new();
    let seen: Vec<(usize, &Simulation)> = sizes
        .iter()
        .enumerate()
        .filter_map(|(i, size)| Some((i, size.own.seen.as_ref()?)))
        .collect();
    if seen.len() < sizes.len() || seen.is_empty() {
        return rows;
    }
    type Used = fn(&PoolResult) -> f64;
    let kinds: [(&str, &str, Used); 3] = [
        ("sequences", "running, mean", |p| p.utilisation.sequences_mean),
        ("memory_bandwidth", "replicas' worth, mean", |p| p.utilisation.bandwidth),
        ("host", "replicas' worth, mean", |p| p.utilisation.path),
    ];
    let launches = input.launch_hour.is_some();
    for (name, unit, used) in kinds {
        let (mut launch, mut now, mut planned) = (0.0, 0.0, 0.0);
        for (i, simulation) in &seen {
            let pool = &simulation.pools[*i];
            let each = match name {
                "sequences" => input.fleet.pools[*i].life.limits.max_num_seqs as f64,
                _ => 1.0,
            };
            launch += used(pool) * pool.replicas as f64;
            now += each * f64::from(input.pools[*i].now);
            planned += each * f64::from(sizes[*i].replicas.total);
        }
        let room = |line: f64| (line > 0.0).then(|| (line - launch) / line);
        rows.push(ResourceRow {
            name: name.to_owned(),
            unit: unit.to_owned(),
            baseline_p95: (!launches).then_some(launch),
            launch_p95: launches.then_some(launch),
            load_line_now: Some(now).filter(|line| *line > 0.0),
            load_line_planned: Some(planned).filter(|line| *line > 0.0),
            headroom_pct: percent(room(now)),
            headroom_planned_pct: percent(room(planned)),
            verdict: verdict(room(now)),
            verdict_planned: Some(verdict(room(planned))),
            runs_out_at: None,
            runs_out_hour: None,
        });
    }
    rows
}

/// Caps as rows: whatever is planned, they are the same.
fn caps(budget: &BudgetPlan, launches: bool) -> impl Iterator<Item = ResourceRow> + '_ {
    budget.caps.iter().map(move |cap| {
        let room = cap.peak.filter(|_| cap.limit > 0.0).map(|peak| (cap.limit - peak) / cap.limit);
        ResourceRow {
            name: cap.name.clone(),
            unit: cap.unit.to_owned(),
            baseline_p95: cap.peak.filter(|_| !launches),
            launch_p95: cap.peak.filter(|_| launches),
            load_line_now: Some(cap.limit),
            load_line_planned: Some(cap.limit),
            headroom_pct: percent(room),
            headroom_planned_pct: percent(room),
            verdict: verdict(room),
            verdict_planned: Some(verdict(room)),
            runs_out_at: cap.trips_at.clone(),
            runs_out_hour: cap.trips_hour,
        }
    })
}
