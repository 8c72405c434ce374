//! The whole of it in a few sentences.

use super::result::{
    AssumptionCheck, CostChange, ReconciledSeries, Reconciliation, ShareEstimate, Shortfall,
};
use crate::profile::{duration, percent, short};

/// What chance does as rarely is no chance.
const SIGNIFICANT: f64 = 0.05;
/// Percent that are not worth a word.
const WORTH: f64 = 1.0;

pub(super) fn verdict(of: &Reconciliation) -> Vec<String> {
    if of.missing == of.steps {
        let (steps, step) = (of.steps, duration(f64::from(of.step_s)));
        return vec![
            format!("Nothing is known of any of the {steps} steps of {step}, so that nothing can be said of the forecast."),
            "What is not known is not zero: look for the rows of that time before trusting any of it.".to_owned(),
        ];
    }
    let mut all = Vec::new();
    all.extend(held(of));
    all.extend(short_of(of));
    all.extend(of.assumptions.first().and_then(most_wrong));
    all.extend(over(&of.shortfall));
    all.extend(of.cost_change.as_ref().and_then(cost));
    all
}

/// A resource in a sentence.
fn words(resource: &str) -> &str {
    match resource {
        "prompt_tokens" => "prompt tokens",
        "fresh_tokens" => "fresh tokens",
        "output_tokens" => "output tokens",
        "cached_share" => "the cached share",
        "resident_kv_tokens" => "tokens in KV memory",
        other => other,
    }
}

/// Whether the forecast of all classes together covered what it promised, by the resource that did worst.
fn held(of: &Reconciliation) -> Option<String> {
    let share = |series: &&ReconciledSeries| series.sized.share.unwrap_or(1.0);
    let demand = of.resources.iter().filter(|series| {
        series.class.is_none() && series.resource != "cached_share" && series.steps > 0
    });
    let worst = demand.min_by(|a, b| share(a).total_cmp(&share(b)))?;
    let (level, share) = (worst.sized.level, worst.sized.share?);
    let p = worst.sized.p_value?;
    let opening = match (p < SIGNIFICANT, share < level) {
        (true, true) => "did not hold",
        (true, false) => "was wider than it says",
        (false, _) => "held",
    };
    let several = of.resources.iter().any(|series| series.class.is_some());
    let together = if several { " for all classes together" } else { "" };
    let missing = match of.missing {
        0 => String::new(),
        1 => ", and 1 more is missing".to_owned(),
        more => format!(", and {more} more are missing"),
    };
    Some(format!(
        "The forecast {opening}{together}: p{} of {}, which did worst, covered {} of {} steps, where {} was promised ({}, were steps independent{missing}).",
        short(100.0 * level),
        words(worst.resource),
        percent(share),
        worst.steps,
        percent(level),
        chance(p),
    ))
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p below 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// The biggest shortfall: of all classes together, and of one where there is none.
fn short_of(of: &Reconciliation) -> Option<String> {
    let known = |own: &&Shortfall| own.frequency.is_some();
    if !of.shortfall.iter().any(|own| known(&own)) {
        return None;
    }
    let volume = |own: &Shortfall| own.volume.map_or(0.0, |volume| volume.value);
    // The first of those that are alike.
    let biggest = |together: bool| {
        let mut own = of.shortfall.iter().filter(|own| own.class.is_none() == together);
        let first = own.find(|own| own.longest_steps > 0)?;
        Some(own.fold(first, |most, own| if volume(own) > volume(most) { own } else { most }))
    };
    let Some(most) = biggest(true).or_else(|| biggest(false)) else {
        return Some("No step asked for more than was sized for.".to_owned());
    };
    let ShareEstimate { value, low, high } = most.frequency?;
    let between = low
        .zip(high)
        .map_or_else(String::new, |(low, high)| format!("{} to {}; ", percent(low), percent(high)));
    let class = most.class.as_ref().map_or_else(String::new, |class| format!(" of {class}"));
    let missing = most.volume.map_or_else(String::new, |volume| {
        format!(", by {} of what was asked for", percent(volume.value))
    });
    Some(format!(
        "Demand for {}{class} exceeded what was sized for in {} of steps ({between}{} was planned){missing}; it did for {} at the longest.",
        words(most.resource),
        percent(value),
        percent(most.planned),
        duration(most.longest_s as f64),
    ))
}

fn most_wrong(check: &AssumptionCheck) -> Option<String> {
    let moves = check.moves?;
    if moves.abs() < WORTH {
        return Some(format!(
            "No assumption moves the tokens to be processed by as much as {} %.",
            short(WORTH)
        ));
    }
    let told = match check.unit {
        "share of requests" => {
            format!("{} of requests were of another class than assumed", percent(check.actual))
        }
        "share" => {
            format!("{} was assumed, and {} came", percent(check.assumed), percent(check.actual))
        }
        unit => format!(
            "{} {unit} were assumed, and {} came",
            short(check.assumed),
            short(check.actual)
        ),
    };
    Some(format!(
        "The most wrong assumption is the {}: {told}; put right, it alone moves the tokens to be processed by {}.",
        check.name,
        signed(moves),
    ))
}

fn over(shortfall: &[Shortfall]) -> Option<String> {
    let of = |resource: &str| {
        shortfall.iter().find(|own| own.class.is_none() && own.resource == resource)
    };
    let told = |resource: &str| {
        let own = of(resource)?;
        let share = own.over_share?;
        let side = if share < 0.0 { "below" } else { "above" };
        let cost = own.over_usd.map_or_else(String::new, |usd| {
            let usd = usd.abs();
            let text = if usd < 100.0 { format!("{usd:.2}") } else { short(usd) };
            format!(" (roughly ${text} of what the period cost)")
        });
        let what = words(resource);
        Some(format!("{} {side} the {what} that came{cost}", percent(share.abs())))
    };
    let tokens = ["fresh_tokens", "output_tokens"];
    let priced = |resource: &str| of(resource).is_some_and(|own| own.over_usd.is_some());
    let views = if tokens.into_iter().all(priced) {
        "; these are two views of the same cost, not a sum"
    } else {
        ""
    };
    let all: Vec<String> = tokens.into_iter().filter_map(told).collect();
    let all = if all.is_empty() { told("requests").into_iter().collect() } else { all };
    (!all.is_empty()).then(|| format!("What was sized for lies {}{views}.", all.join(", and ")))
}

fn cost(change: &CostChange) -> Option<String> {
    let side = if change.percent < 0.0 { "less" } else { "more" };
    (change.percent.abs() >= WORTH).then(|| {
        format!(
            "A success costs {} % {side} than before: cost per attempt makes {}, attempts per task {} and the success rate {}.",
            short(change.percent.abs()),
            signed(change.cost_per_attempt.percent),
            signed(change.attempts_per_task.percent),
            signed(change.success_rate.percent),
        )
    })
}

/// With its sign, in percent.
fn signed(percent: f64) -> String {
    let size = short(percent.abs());
    let sign = if percent < 0.0 && size != "0" { "-" } else { "+" };
    format!("{sign}{size} %")
}
