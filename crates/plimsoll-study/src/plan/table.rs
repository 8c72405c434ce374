//! The launch table: what is asked of each resource, and to what it may be loaded, with the fleet of today and with the planned one.

use plimsoll_load::{
    Cause, LoadLine, LoadVerdict, PoolResult, SimulateInput, Simulation, StudyError,
};
use serde::Serialize;

use super::PlanInput;
use super::money::{BudgetPlan, Hosted, ProviderUse};
use super::place::Fleet;
use super::size::Question;
use super::sizes::{Asked, PoolSize};
use crate::context::Context;
use crate::headroom::{Loss, RowVerdict, level, losses, runs_out};

/// Calls of a run that says what hosted models are asked for.
const CALLS_SHOWN: f64 = 8_000.0;

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
    /// The same for the planned one.
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
    /// What binds at the load line of today: `prefill`, `decode`, `kv`, `sequences`, `host`, `queue`, `link`, `provider`, `too_long`, `tool`.
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

/// The share of KV capacity that may be in use before requests are preempted for each other.
const KV_CEILING: f64 = 0.85;

pub(crate) fn table(
    input: &PlanInput<'_>,
    asked: &Asked,
    (planned, sizes): (&SimulateInput, &[PoolSize]),
    budget: &BudgetPlan,
    context: Context<'_>,
) -> Result<Table, StudyError> {
    let question = asked.at_quantile(context);
    let now = input.today();
    let of_today = Question { fleet: &now, targets: &input.targets, ..question };
    let today = of_today.load().line()?;
    let planned_line = Question { fleet: planned, ..question }.load().line()?;
    let mut rows = Vec::new();
    let runs_out_at = |name: &str, line: &LoadLine| {
        let factor = line.holds.filter(|_| !line.beyond)?;
        let hour = runs_out(input.classes, (asked.hour, asked.events), name, factor)?;
        Some((hour, (input.label)(hour)))
    };
    let both = |demand: Option<f64>| {
        let at = |line: &LoadLine| {
            line.holds.filter(|_| !line.beyond).zip(demand).map(|(load, d)| load * d)
        };
        (at(&today), at(&planned_line))
    };
    // Where there are no replicas of one's own, caps say what runs out.
    let kinds =
        [("requests", "1/s"), ("fresh_prompt_tokens", "tokens/s"), ("output_tokens", "tokens/s")];
    for (name, unit) in kinds.into_iter().filter(|_| !sizes.is_empty()) {
        let (base, launch) = level(input.demand, name).unwrap_or((0.0, None));
        rows.push(row(
            name,
            unit,
            (Some(base), launch),
            both(launch.or(Some(base))),
            (today.beyond, planned_line.beyond),
            runs_out_at(name, &today),
        ));
    }
    rows.extend(measured(input, sizes));
    rows.extend(caps(budget, input.launch_hour.is_some()));
    let (base, launch) = level(input.demand, "requests").unwrap_or((0.0, None));
    rows.push(row(
        "mix",
        "requests/s of the mix",
        (Some(base), launch),
        both(launch.or(Some(base))),
        (today.beyond, planned_line.beyond),
        None,
    ));
    Ok(Table {
        first: first(&rows, &today),
        rows,
        cliff: planned_line.holds.filter(|_| !planned_line.beyond),
    })
}

/// What is too little first; where nothing is, what there is least of. Of the rows that the mix decides, the one of its cause.
fn first(rows: &[ResourceRow], today: &LoadLine) -> Option<FirstToRunOut> {
    let of_cause = match today.cause {
        Some(Cause::Prefill) => "fresh_prompt_tokens",
        Some(Cause::Decode) => "output_tokens",
        _ => "requests",
    };
    let of_mix = ["requests", "fresh_prompt_tokens", "output_tokens"];
    let own = rows.iter().filter(|row| {
        row.name != "mix" && (!of_mix.contains(&row.name.as_str()) || row.name == of_cause)
    });
    let least = own.filter_map(|row| match (row.headroom_pct, row.verdict) {
        (Some(room), _) => Some((room, row)),
        (None, RowVerdict::Shortfall) => Some((f64::NEG_INFINITY, row)),
        (None, _) => None,
    });
    let (_, row) = least.min_by(|a, b| {
        let at = |row: &ResourceRow| match row.verdict {
            RowVerdict::Shortfall => row.runs_out_hour.unwrap_or(usize::MAX - 1),
            _ => usize::MAX,
        };
        at(a.1).cmp(&at(b.1)).then(a.0.total_cmp(&b.0))
    })?;
    Some(FirstToRunOut {
        resource: row.name.clone(),
        headroom_pct: row.headroom_pct,
        at: row.runs_out_at.clone(),
        binds: today.cause.map(|cause| cause.word().to_owned()),
        of: today.of.clone(),
        first_signal: today.signal.clone(),
    })
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
            Hosted {
                asked: used(&free.load().shown_together(1.0, CALLS_SHOWN)?),
                served: used(&question.load().shown_together(1.0, CALLS_SHOWN)?),
            }
        }
    };
    let fails = whole.verdict == LoadVerdict::Fails;
    let breaks = whole.signal.filter(|_| fails).map(|signal| (signal, whole.cause));
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
        verdict_planned: Some(verdict(planned, beyond_planned)),
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
    let kinds: [(&str, &str, Used); 4] = [
        ("resident_kv_tokens", "tokens, mean", |p| p.utilisation.kv_mean * kv_tokens(p)),
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
                "resident_kv_tokens" => KV_CEILING * kv_tokens(pool),
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

/// Tokens that the cache of a replica holds.
fn kv_tokens(pool: &PoolResult) -> f64 {
    pool.kv_blocks as f64 * pool.kv_block_tokens as f64
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
