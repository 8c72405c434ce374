//! The answer: READY, NOT READY or TOO CLOSE TO CALL, for today's fleet and for the planned one.

use plimsoll_load::LoadVerdict;
use serde::Serialize;

use super::ReviewVerdict;
use crate::cost::Cost;
use crate::headroom::RowVerdict;
use crate::plan::{Plan, Reach};

/// Whether a fleet may meet the demand. It rests on sampling error alone: step times are taken for right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It keeps every promise.
    Ready,
    /// It does not.
    NotReady,
    /// Simulation does not tell.
    TooClose,
    /// Nothing was concluded.
    Unknown,
}

impl Decision {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::NotReady => "NOT READY",
            Self::TooClose => "TOO CLOSE TO CALL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// What a plan and its cost come to.
pub(super) fn verdict(plan: Option<&Plan>, cost: Option<&Cost>) -> ReviewVerdict {
    let unknown = |says: String| ReviewVerdict {
        today: Decision::Unknown,
        plan: Decision::Unknown,
        over_caps: Vec::new(),
        because: vec![says.clone()],
        says,
    };
    let Some(plan) = plan else {
        return unknown(
            "Nothing in the scenario serves this demand. Give it a `[[pool]]` or a `[[provider]]`."
                .to_owned(),
        );
    };
    if plan.obstacles_of("time").next().is_some() {
        return unknown(
            "Stopped at the time limit: the results are incomplete. Raise it with `--time-limit`."
                .to_owned(),
        );
    }
    let fleet = &plan.table.fleet;
    let of = |reach: &Reach, verdict: LoadVerdict| match (reach.beyond, reach.covers, verdict) {
        (false, None, _) => Decision::Unknown,
        (_, _, LoadVerdict::Carried) => Decision::Ready,
        (_, _, LoadVerdict::Fails) => Decision::NotReady,
        (_, _, LoadVerdict::TooClose) => Decision::TooClose,
    };
    let today = of(&fleet.today, fleet.verdict_today);
    let planned = match plan.feasible {
        true => of(&fleet.planned, fleet.verdict_planned),
        false => Decision::NotReady,
    };
    let over = plan.table.shared.iter().filter(|row| row.verdict == RowVerdict::OverCap);
    let mut over_caps: Vec<String> = over.map(|row| row.name.clone()).collect();
    if cost.and_then(|cost| cost.budget.as_ref()).is_some_and(|budget| budget.verdict == "over") {
        over_caps.push("budget.per_success".to_owned());
    }
    let mut because = Vec::new();
    if today != Decision::Ready {
        because.push(format!(
            "today's fleet is {}: it carries {}",
            today.word(),
            covers(&fleet.today)
        ));
    }
    if planned != Decision::Ready {
        because.push(format!("the planned fleet is {}", planned.word()));
    }
    because.extend(plan.infeasible_because.iter().map(|obstacle| obstacle.what.clone()));
    because.extend(over_caps.iter().map(|cap| format!("over the cap `{cap}`")));
    ReviewVerdict { says: says(plan, today), today, plan: planned, over_caps, because }
}

/// What a fleet carries, in words: `33% of the launch`.
fn covers(reach: &Reach) -> String {
    match (reach.beyond, reach.covers) {
        (true, _) => "more than ten times the demand".to_owned(),
        (false, Some(covers)) => format!("{:.0}% of the demand", covers * 100.0),
        (false, None) => "an unknown share of the demand".to_owned(),
    }
}

/// Today's fleet in a sentence or two.
fn says(plan: &Plan, today: Decision) -> String {
    let what = if plan.table.has_event { "launch" } else { "busiest hour" };
    let reach = &plan.table.fleet.today;
    let mut says = match (reach.beyond, reach.covers) {
        (true, _) => format!("Today's fleet carries more than ten times the {what}."),
        (false, Some(covers)) if covers > 0.0 => {
            format!("Today's fleet carries {:.0}% of the {what}.", covers * 100.0)
        }
        (false, Some(_)) => "Today's fleet keeps its promises at no load.".to_owned(),
        (false, None) => format!("What today's fleet carries of the {what} is not known."),
    };
    if let Some(first) = plan.table.runs_out_first.as_ref().filter(|_| today != Decision::Ready) {
        let cause = first.cause.map_or(String::new(), |cause| cause.word().replace('_', " "));
        says.push_str(&match &first.of {
            Some(of) => format!(" `{of}` runs out first: {cause}."),
            None => format!(" The cause is {cause}."),
        });
    }
    let at_risk: Vec<String> = plan
        .table
        .pools
        .iter()
        .filter(|block| block.rows.iter().any(|row| row.verdict_today == RowVerdict::MemoryRisk))
        .map(|block| format!("`{}`", block.pool))
        .collect();
    if !at_risk.is_empty() {
        says.push_str(&format!(" MEMORY RISK in {}.", at_risk.join(", ")));
    }
    says
}

/// Three digits.
pub(super) fn digits(x: f64) -> String {
    match x {
        _ if x.abs() >= 1000.0 => {
            let scale = 10f64.powi(x.abs().log10().floor() as i32 - 2);
            plimsoll_units::grouped(((x / scale).round() * scale).round().max(0.0) as u64)
        }
        _ if x.abs() >= 100.0 => format!("{x:.0}"),
        _ if x.abs() >= 10.0 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// Whole, in groups of three.
pub(super) fn grouped(x: f64) -> String {
    plimsoll_units::grouped(x.round().max(0.0) as u64)
}
