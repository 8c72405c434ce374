//! What is asked of a fleet, when that is too much, and what becomes of it when something is lost.

use plimsoll_load::{LoadOutcome, LoadVerdict, StudyError};
use plimsoll_sim::Mishap;
use plimsoll_workload::{Class, Shift};
use serde::Serialize;

use crate::plan::size::{Question, worst};

/// Below this share of headroom a resource is tight.
const TIGHT: f64 = 0.15;

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
    /// More KV cache is needed than may be in use before requests are preempted for each other.
    MemoryRisk,
    /// It costs more than it may.
    OverCap,
    /// Nothing is asked of it.
    Idle,
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
            Self::MemoryRisk => "MEMORY RISK",
            Self::OverCap => "OVER CAP",
            Self::Idle => "idle",
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
    /// Whether every promise is kept without it, and whether that is sure.
    pub verdict: LoadVerdict,
    /// Whether every promise is kept before.
    pub kept_before: bool,
    /// Whether every promise is kept without it, as far as is known.
    pub meets: bool,
    /// What is broken first.
    pub fails_by: Option<String>,
}

/// The first hour whose mean is above the line, which is so many times the mean of an hour.
pub(crate) fn runs_out(
    classes: &[Class],
    (hour, events): (usize, bool),
    resource: &str,
    factor: f64,
) -> Option<usize> {
    let of_task = |class: &Class, shift: &Shift| match resource {
        "requests" => Some(class.task.mean_requests()),
        "fresh_prompt_tokens" => Some(class.task.expected(shift).0),
        "output_tokens" => Some(class.task.expected(shift).1),
        _ => Some(class.task.mean_requests()),
    };
    let of = |hour: usize, events: bool| -> Option<f64> {
        let each = classes.iter().map(|class| {
            let Some(own) = class.hours.get(hour) else { return Some(0.0) };
            let shift = own.changed(events);
            Some(own.rate * shift.rate * of_task(class, &shift)?)
        });
        each.sum()
    };
    let line = of(hour, events)? * factor;
    let hours = classes.iter().map(|c| c.hours.len()).max().unwrap_or(0);
    let over = |hour: &usize| of(*hour, true).is_some_and(|asked| asked > line);
    (0..hours).find(over)
}

/// What becomes of a fleet at the peak, and of the same without what it has lost, all along.
pub(crate) fn losses(
    question: &Question<'_>,
    lost: &[Lost],
) -> Result<(LoadOutcome, Vec<Loss>), StudyError> {
    // The line tries the demand, and is asked for anyway.
    let whole = match question.load().line()?.demand {
        Some(whole) => whole,
        None => question.load().at(1.0)?,
    };
    let mut losses = Vec::new();
    for lost in lost {
        let after = question.load_without(&lost.what).at(1.0)?;
        losses.push(Loss {
            name: lost.name.clone(),
            attainment_before: worst(&whole).0,
            attainment_after: worst(&after).0,
            verdict: after.verdict,
            kept_before: whole.keeps,
            meets: after.keeps,
            fails_by: after.signal,
        });
    }
    Ok((whole, losses))
}
