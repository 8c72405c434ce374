//! What is asked of a fleet, when that is too much, and what becomes of it when something is lost.

use plimsoll_sim::{Incident, Mishap};
use plimsoll_stats::in_order;
use plimsoll_workload::{Class, Shift};
use serde::Serialize;

use crate::sweep::{CurveInput, Judged, hopeless, judge};
use plimsoll_load::{Demand, Level, Resource, StudyError};
use plimsoll_load::{SimulateInput, Simulation, Source, Verdict, simulate};
use plimsoll_load::{Spell, longest_pauses, ps};

/// Below this share of headroom a resource is tight.
const TIGHT: f64 = 0.15;
/// How long a loss at peak is looked at, in seconds.
const LOSS_SECONDS: f64 = 600.0;
/// Calls that are looked at for a loss, over all runs.
const LOSS_CALLS: f64 = 20_000.0;

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
    /// The demand or the limit is not known.
    Unknown,
}

impl RowVerdict {
    /// As tables say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Tight => "tight",
            Self::Shortfall => "SHORTFALL",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn of(headroom: f64) -> Self {
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
    let mut fleet = at_peak(peak, LOSS_CALLS, (60.0, 60.0));
    // The first has lost nothing. They are looked at side by side.
    let threads = std::mem::replace(&mut fleet.threads, 1);
    let all = u32::try_from(lost.len() + 1).unwrap_or(u32::MAX);
    let judged = in_order(threads, all, |i| {
        let mut without = fleet.clone();
        let (at, lasts) = (ps(fleet.warm_up), Some(ps(1e6)));
        let what = (i as usize).checked_sub(1).map_or(&[][..], |i| &lost[i].what);
        without.incidents =
            what.iter().map(|what| Incident { at, lasts, what: what.clone() }).collect();
        let result = simulate(&without, None, go_on)?;
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

/// A fleet at the peak as it is looked at for so many calls over all runs, so many seconds of warm-up, and so many that count at least: nothing goes wrong by itself, and no
/// replica comes or goes.
pub(crate) fn at_peak(
    peak: &CurveInput,
    calls: f64,
    (warm_up, least): (f64, f64),
) -> SimulateInput {
    let mut fleet = peak.fleet.clone();
    fleet.chance = false;
    fleet.incidents.clear();
    fleet.surges.clear();
    fleet.window = None;
    fleet.pools.iter_mut().for_each(|pool| pool.life.scaling = None);
    fleet.warm_up = warm_up;
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
