//! The answer in one sentence.

use super::ReviewVerdict;
use crate::headroom::RowVerdict;
use crate::plan::Plan;

/// What a plan comes to.
pub(super) fn verdict(plan: Option<&Plan>) -> ReviewVerdict {
    let Some(plan) = plan else {
        return ReviewVerdict {
            today_holds: None,
            plan_exists: None,
            says: "nothing in the scenario serves this demand: give it a pool or a provider, and this page says how much it may carry".to_owned(),
        };
    };
    if plan.infeasible_because.iter().any(|own| own.kind == "time") {
        return ReviewVerdict {
            today_holds: None,
            plan_exists: Some(false),
            says: "The time was up before everything was looked at: no number here is finished, and nothing follows from it.".to_owned(),
        };
    }
    let holds = today_holds(plan);
    let at = &plan.sized_for;
    let mut says = match holds {
        Some(true) => format!("The fleet of today carries {at}{}", room(plan)),
        Some(false) => format!("The fleet of today does not carry {at}{}", short(plan)),
        None => format!("What the fleet of today carries at {at} is not known"),
    };
    says.push_str(&match (plan.feasible, holds) {
        (true, _) => format!("; planned: {}", planned(plan)),
        (false, _) => {
            let first = plan.infeasible_because.first();
            let why = first.map_or(String::new(), |own| format!(" ({})", own.what));
            format!("; no fleet that can be had keeps every promise{why}")
        }
    });
    says.push('.');
    ReviewVerdict { today_holds: holds, plan_exists: Some(plan.feasible), says }
}

/// Whether the fleet of today keeps every promise in the busiest hour: what the whole mix says, or whatever else there is.
pub(super) fn today_holds(plan: &Plan) -> Option<bool> {
    let mix = plan.resources.iter().find(|row| row.name == "mix");
    match mix {
        Some(mix) => Some(mix.verdict != RowVerdict::Shortfall),
        None if plan.resources.is_empty() => None,
        None => Some(plan.resources.iter().all(|row| row.verdict != RowVerdict::Shortfall)),
    }
}

/// What is left.
fn room(plan: &Plan) -> String {
    let mix = plan.resources.iter().find(|row| row.name == "mix");
    match mix.and_then(|mix| mix.headroom_pct) {
        Some(pct) if pct < 15.0 => format!(" with {pct:.0}% to spare, which is tight"),
        Some(pct) => format!(" with {pct:.0}% to spare"),
        None => " with every promise kept".to_owned(),
    }
}

/// What is missing, and when.
fn short(plan: &Plan) -> String {
    let mix = plan.resources.iter().find(|row| row.name == "mix");
    let asked = mix.and_then(|mix| mix.launch_p95.or(mix.baseline_p95));
    let line = mix.and_then(|mix| mix.load_line_now);
    let mut says = match (line, asked) {
        (Some(line), Some(asked)) => {
            format!(
                ": it may be loaded to {} of the {} requests/s that come",
                digits(line),
                digits(asked)
            )
        }
        _ => String::new(),
    };
    if let Some(first) = &plan.first_to_run_out {
        let when = first.at.as_ref().map_or(String::new(), |at| format!(" on {at}"));
        says.push_str(&format!("; {} run out first{when}", first.resource.replace('_', " ")));
    }
    says
}

/// What is planned.
fn planned(plan: &Plan) -> String {
    let replicas: Vec<String> = plan
        .pools
        .iter()
        .map(|pool| format!("{} of {} (now {})", pool.replicas.total, pool.name, pool.replicas.now))
        .collect();
    let devices: u64 = plan.pools.iter().map(|pool| pool.devices).sum();
    let money = plan
        .budget
        .usd_per_month
        .map_or(String::new(), |usd| format!(", about ${} a month", grouped(usd)));
    match replicas.as_slice() {
        [] => format!("no device of one's own{money}"),
        all => format!("{}, {devices} devices with all of the reserve{money}", all.join(" and ")),
    }
}

/// Three digits.
pub(super) fn digits(x: f64) -> String {
    match x {
        _ if x.abs() >= 1000.0 => {
            let scale = 10f64.powi(x.abs().log10().floor() as i32 - 2);
            grouped((x / scale).round() * scale)
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
