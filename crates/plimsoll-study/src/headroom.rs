//! The launch table: what is asked of a fleet, what it may carry, and what is left between them; and what becomes of it when something is lost.

use plimsoll_sim::{Incident, Mishap};
use plimsoll_stats::in_order;
use plimsoll_workload::{Class, Shift};
use serde::Serialize;

use crate::arrivals::{Spell, longest_pauses, ps};
use crate::curve::{Curve, CurveBinding, CurveInput, Judged, curve, hopeless, judge};
use crate::demand::{Demand, Level, Resource, StudyError};
use crate::simulate::{Record, SimulateInput, Simulation, Source, Verdict, simulate};

/// Below this share of headroom a resource is tight.
const TIGHT: f64 = 0.15;
/// How long a loss at peak is looked at, in seconds.
const LOSS_SECONDS: f64 = 600.0;
/// Calls that are looked at for a loss, over all runs.
const LOSS_CALLS: f64 = 20_000.0;

/// What the table is made of.
pub struct HeadroomInput<'a> {
    /// The fleet of today in the busiest hour without events.
    pub baseline: CurveInput,
    /// The same in the busiest hour that an event changes, where there is one.
    pub launch: Option<CurveInput>,
    /// What is asked.
    pub demand: &'a Demand,
    /// What is asked in every hour.
    pub classes: &'a [Class],
    /// What may be lost.
    pub lost: &'a [Lost],
    /// What an hour of the horizon is called.
    pub label: &'a dyn Fn(usize) -> String,
}

/// What is left between what is asked and what the fleet of today may carry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headroom {
    /// Resource by resource; `mix` decides.
    pub rows: Vec<HeadroomRow>,
    /// The resource with the least headroom.
    pub first_to_run_out: Option<&'static str>,
    /// What binds where the whole mix is too much.
    pub binding: CurveBinding,
    /// What becomes of it when something is lost at the peak.
    pub losses: Vec<Loss>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A resource of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadroomRow {
    /// `requests`, `fresh_prompt_tokens`, `output_tokens`, `resident_kv_tokens` or `mix`.
    pub resource: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The 95th percentile over windows of the busiest hour without events; of resident tokens the mean.
    pub baseline: f64,
    /// The same with events.
    pub launch: Option<f64>,
    /// The most of it that keeps every promise when only its own lever moves, the rest as in the baseline; none where no load keeps them, or none that was tried is too
    /// much.
    pub load_line: Option<f64>,
    /// Whether no load that was tried is too much.
    pub beyond: bool,
    /// (Load line - demand) / load line, at the launch where there is one.
    pub headroom: Option<f64>,
    /// What that means.
    pub verdict: RowVerdict,
    /// The first hour in which more is asked for, on average, than the line.
    pub runs_out_at: Option<String>,
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowVerdict {
    /// There is room.
    Ok,
    /// There is little room.
    Tight,
    /// There is too little.
    Shortfall,
}

impl RowVerdict {
    fn of(headroom: f64) -> Self {
        match headroom {
            room if room < 0.0 => Self::Shortfall,
            room if room < TIGHT => Self::Tight,
            _ => Self::Ok,
        }
    }
}

/// Something that may be lost at the peak.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// As a person calls it: `a replica of chat`.
    pub name: String,
    /// What goes wrong.
    pub what: Vec<Mishap>,
}

/// What becomes of a fleet that has lost something at the peak.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// What it has lost.
    pub name: String,
    /// The share of good tasks of the class that has least of what it was promised, before.
    pub attainment_before: Option<f64>,
    /// The same after it was lost, until the end.
    pub attainment_after: Option<f64>,
    /// Whether the fleet still keeps up.
    pub verdict: Option<Verdict>,
    /// Whether every promise is kept before.
    pub kept_before: bool,
    /// Whether every promise is kept without it.
    pub meets: bool,
    /// What is broken first.
    pub fails_by: Option<String>,
}

struct Nothing;

impl Record for Nothing {}

/// Makes the table. `go_on` is asked now and then; once it says no, what was learnt is said.
pub fn headroom(
    input: &HeadroomInput<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Headroom, StudyError> {
    let baseline = curve(&CurveInput { by_resource: true, ..input.baseline.clone() }, go_on)?;
    let launch = input.launch.as_ref().map(|own| curve(own, go_on)).transpose()?;
    let mut notes = baseline.notes.clone();
    notes.extend(launch.iter().flat_map(|curve| curve.notes.iter().cloned()));
    notes.dedup();
    let mut rows: Vec<HeadroomRow> = baseline
        .load_lines
        .iter()
        .filter(|line| line.resource != "mix")
        .map(|line| {
            let own = level(input.demand, line.resource);
            let resident = || launch.as_ref().map(|curve| curve.resident_kv_tokens);
            let (base, peak) = own.unwrap_or_else(|| (line.demand, resident()));
            let at = line.factor.map(|factor| base * factor);
            let beyond = line.factor.is_none() && line.holds_at_demand;
            row(line.resource, line.unit, base, peak, at, beyond, || {
                let first = input.demand.baseline_hour.index;
                let hour = runs_out(input.classes, first, line.resource, line.factor?)?;
                Some((input.label)(hour))
            })
        })
        .collect();
    rows.push(mix_row(input, &baseline, launch.as_ref()));
    let least = rows.iter().filter_map(|row| Some((row.headroom?, row.resource)));
    let least = least.filter(|(_, resource)| *resource != "mix");
    let first = least.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, resource)| resource);
    let binding = launch.as_ref().unwrap_or(&baseline).binding.clone();
    let peak = input.launch.as_ref().unwrap_or(&input.baseline);
    let losses = match input.lost.is_empty() {
        true => Vec::new(),
        false => losses(peak, input.lost, go_on)?.2,
    };
    Ok(Headroom { rows, first_to_run_out: first, binding, losses, notes })
}

fn row(
    resource: &'static str,
    unit: &'static str,
    baseline: f64,
    launch: Option<f64>,
    load_line: Option<f64>,
    beyond: bool,
    runs_out_at: impl FnOnce() -> Option<String>,
) -> HeadroomRow {
    let load_line = load_line.filter(|line| *line > 0.0);
    let headroom = load_line.map(|line| (line - launch.unwrap_or(baseline)) / line);
    // Without a line, whatever is asked for is too much.
    let verdict = match (beyond, load_line) {
        (true, _) => RowVerdict::Ok,
        (false, None) => RowVerdict::Shortfall,
        (false, Some(_)) => RowVerdict::of(headroom.unwrap_or(f64::NEG_INFINITY)),
    };
    let runs_out_at = if verdict == RowVerdict::Shortfall { runs_out_at() } else { None };
    HeadroomRow {
        resource,
        unit,
        baseline,
        launch,
        load_line,
        beyond,
        headroom,
        verdict,
        runs_out_at,
    }
}

/// All of it together: at the launch's own mix, where there is a launch.
fn mix_row(input: &HeadroomInput<'_>, baseline: &Curve, launch: Option<&Curve>) -> HeadroomRow {
    let (requests, peak) = level(input.demand, "requests").unwrap_or((0.0, None));
    let own = launch.unwrap_or(baseline);
    let at = peak.unwrap_or(requests);
    let line = own.load_line.as_ref();
    let beyond = line.is_some_and(|line| line.fails_at_load.is_none());
    let load_line = line.filter(|_| !beyond).map(|line| line.load * at);
    let unit = "requests/s of the mix";
    row("mix", unit, requests, peak, load_line, beyond, || None)
}

/// The levels of a resource: 95th percentile without events, and with.
pub(crate) fn level(demand: &Demand, resource: &str) -> Option<(f64, Option<f64>)> {
    let resource = match resource {
        "requests" => Resource::Requests,
        "fresh_prompt_tokens" => Resource::FreshPromptTokens,
        "output_tokens" => Resource::OutputTokens,
        _ => return None,
    };
    let mut rows = demand.rows.iter().filter(|row| row.resource == resource);
    let row = rows.find(|row| row.class.is_none())?;
    // Where most windows are empty the mean says more.
    let of = |level: &Level| {
        if level.p95_per_s > 0.0 { level.p95_per_s } else { level.mean_per_s }
    };
    Some((of(&row.baseline), row.launch.as_ref().map(of)))
}

/// The first hour whose mean is further above that of the baseline's busiest than the line is.
pub(crate) fn runs_out(
    classes: &[Class],
    baseline_hour: usize,
    resource: &str,
    factor: f64,
) -> Option<usize> {
    let of_task = |class: &Class, shift: &Shift| match resource {
        "requests" => Some(class.task.mean_requests()),
        "fresh_prompt_tokens" => Some(class.task.expected(shift).0),
        "output_tokens" => Some(class.task.expected(shift).1),
        _ => None,
    };
    let of = |hour: usize, events: bool| -> Option<f64> {
        let each = classes.iter().map(|class| {
            let Some(own) = class.hours.get(hour) else { return Some(0.0) };
            let shift = own.changed(events);
            Some(own.rate * shift.rate * of_task(class, &shift)?)
        });
        each.sum()
    };
    let line = of(baseline_hour, false)? * factor;
    let hours = classes.iter().map(|c| c.hours.len()).max().unwrap_or(0);
    let over = |hour: &usize| of(*hour, true).is_some_and(|asked| asked > line);
    (0..hours).find(over)
}

/// What becomes of a fleet at the peak, and of the same without what it has lost, which does not come back while it is looked at.
pub(crate) fn losses(
    peak: &CurveInput,
    lost: &[Lost],
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Judged, Simulation, Vec<Loss>), StudyError> {
    let mut fleet = at_peak(peak, LOSS_CALLS, 60.0);
    // The first has lost nothing. They are looked at side by side.
    let threads = std::mem::replace(&mut fleet.threads, 1);
    let all = u32::try_from(lost.len() + 1).unwrap_or(u32::MAX);
    let judged = in_order(threads, all, |i| {
        let mut without = fleet.clone();
        let (at, lasts) = (ps(fleet.warm_up), Some(ps(1e6)));
        let what = (i as usize).checked_sub(1).map_or(&[][..], |i| &lost[i].what);
        without.incidents =
            what.iter().map(|what| Incident { at, lasts, what: what.clone() }).collect();
        let result = simulate::<Nothing>(&without, None, go_on)?;
        Ok((judge(&result, peak), result))
    });
    let judged: Result<Vec<_>, StudyError> = judged.into_iter().collect();
    let mut judged = judged?.into_iter();
    let Some((whole, seen)) = judged.next() else { return Err(StudyError::Empty) };
    let each = lost.iter().zip(judged).map(|(lost, (judged, result))| Loss {
        name: lost.name.clone(),
        attainment_before: whole.attainment,
        attainment_after: judged.attainment,
        verdict: result.verdict,
        kept_before: whole.may_meet(),
        meets: judged.may_meet(),
        fails_by: judged.fails_by,
    });
    let each = each.collect();
    Ok((whole, seen, each))
}

/// A fleet at the peak as it is looked at for so many calls over all runs, and so many seconds at least: nothing goes wrong by itself, and no replica comes or goes.
pub(crate) fn at_peak(peak: &CurveInput, calls: f64, least: f64) -> SimulateInput {
    let mut fleet = peak.fleet.clone();
    fleet.chance = false;
    fleet.incidents.clear();
    fleet.surges.clear();
    fleet.window = None;
    fleet.pools.iter_mut().for_each(|pool| pool.life.scaling = None);
    fleet.warm_up = 60.0;
    fleet.work_off = Some(LOSS_SECONDS.max(2.0 * longest_pauses(&fleet.classes, fleet.seed)));
    fleet.hopeless = Some(hopeless(&fleet));
    let rate: f64 = fleet
        .classes
        .iter()
        .map(|c| c.rate(peak.hour, peak.events) * c.class.task.mean_requests().max(1.0))
        .sum();
    let each = calls / f64::from(fleet.runs) / rate.max(1e-9);
    fleet.seconds = each.clamp(least, LOSS_SECONDS);
    let until = fleet.warm_up + fleet.seconds;
    fleet.source = Source::Classes(vec![Spell { until, hour: peak.hour, events: peak.events }]);
    fleet
}
