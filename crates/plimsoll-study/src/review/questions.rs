//! What a reviewer asks, answered with numbers.

use super::verdict::{digits, grouped};
use super::{Answered, Assumption, Provenance, Review};
use crate::plan::Reach;
use crate::stress::Stressed;
use plimsoll_load::Resource;

/// All of them, in the order of a meeting.
pub(super) fn questions(review: &Review, reconcile_on: &str) -> Vec<Answered> {
    let all: [(&'static str, Option<String>, &str); 12] = [
        (
            "Can you forecast p95 prompt and output tokens?",
            forecast(review),
            "nothing comes within the horizon",
        ),
        (
            "What if the cache hit rate drops to zero?",
            cold(review),
            "nothing is said to be cached, so nothing can be lost",
        ),
        (
            "How much retry and fallback headroom is there?",
            retries(review),
            "nothing that serves was simulated",
        ),
        ("Which resource runs out first?", first(review), "no line is near enough to be found"),
        ("What distributions and bursts are supported?", Some(distributions(review)), ""),
        (
            "What memory is reserved for weights, KV, buffers and margin?",
            memory(review),
            "there are no devices of one's own",
        ),
        (
            "Which goodput operating point meets p95/p99?",
            operating_point(review),
            "no load that was tried keeps every promise",
        ),
        (
            "How much reserve covers failure, rollout and burst?",
            reserve(review),
            "there are no replicas of one's own to keep in reserve",
        ),
        (
            "How long until new capacity is ready?",
            ready(review),
            "there are no replicas of one's own to start",
        ),
        (
            "Which costs are fixed, variable, shared, external?",
            costs(review),
            "no price of what serves is known",
        ),
        (
            "Which assumptions change the plan most?",
            assumptions(review),
            "nothing in the scenario has a range",
        ),
        (
            "When is the forecast next reconciled?",
            Some(format!(
                "On {reconcile_on}: ingest the log and run `plimsoll reconcile`; {} of {} assumptions are typed or defaults and have not been seen to happen.",
                unseen(&review.assumptions),
                review.assumptions.len()
            )),
            "",
        ),
    ];
    all.into_iter()
        .map(|(question, answer, missing)| Answered {
            question,
            known: answer.is_some(),
            answer: answer.unwrap_or_else(|| format!("Not known: {missing}.")),
        })
        .collect()
}

fn unseen(all: &[Assumption]) -> usize {
    let seen =
        |a: &&Assumption| matches!(a.provenance, Provenance::Observed | Provenance::Calibrated);
    all.len() - all.iter().filter(seen).count()
}

fn forecast(review: &Review) -> Option<String> {
    let of = |resource: Resource| {
        let row =
            review.demand.rows.iter().find(|r| r.class.is_none() && r.resource == resource)?;
        Some(row.launch.unwrap_or(row.baseline))
    };
    let (fresh, output) = (of(Resource::FreshPromptTokens)?, of(Resource::OutputTokens)?);
    let span = |level: &plimsoll_load::Level| {
        level.p95_interval.map_or(String::new(), |i| {
            format!(" ({} to {} at {:.0}%)", digits(i.low), digits(i.high), i.level * 100.0)
        })
    };
    let from = match review.ahead.from {
        "ledger" => "a forecast of the ledger",
        _ => "what the scenario states, which nobody has seen to happen",
    };
    Some(format!(
        "In the busiest hour, p95 over {} s windows: {} fresh prompt tokens/s{} and {} output tokens/s{}, at the {:.0}th percentile of {from}.",
        review.demand.window_s,
        digits(fresh.p95_per_s),
        span(&fresh),
        digits(output.p95_per_s),
        span(&output),
        review.demand_quantile * 100.0
    ))
}

fn stressed<'a>(review: &'a Review, has: &str) -> Option<&'a Stressed> {
    let all = review.stress.as_ref()?.scenarios.iter();
    all.filter(|own| own.not_applicable.is_none()).find(|own| own.name.contains(has))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "an unknown share".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

fn times(load: Option<f64>) -> String {
    load.map_or_else(|| "none".to_owned(), |load| format!("{load:.2} times"))
}

fn cold(review: &Review) -> Option<String> {
    let own = stressed(review, "cache")?;
    Some(format!(
        "{} of tasks are good with the fleet of today and {} with the planned one, which carry {} and {} that demand.",
        percent(own.attainment.now),
        percent(own.attainment.planned),
        times(own.carries.now),
        times(own.carries.planned)
    ))
}

fn retries(review: &Review) -> Option<String> {
    let own = stressed(review, "retry")?;
    let plan = review.plan.as_ref()?;
    let planned = &plan.table.fleet.planned;
    let cliff = match (planned.beyond, planned.covers) {
        (false, Some(covers)) => {
            format!("the planned fleet carries {covers:.2} times the planned demand")
        }
        _ => "no load that was tried breaks the planned fleet".to_owned(),
    };
    Some(format!(
        "When calls come a second time (`{}`), {} of tasks are good today and {} planned, and the planned fleet carries {} that; {cliff}.",
        own.name,
        percent(own.attainment.now),
        percent(own.attainment.planned),
        times(own.carries.planned)
    ))
}

fn first(review: &Review) -> Option<String> {
    let first = review.plan.as_ref()?.table.runs_out_first.as_ref()?;
    let cause = first.cause?.word().replace('_', " ");
    let of = first.of.as_ref().map_or(String::new(), |of| format!(" of `{of}`"));
    let carries = first.covers.map_or(String::new(), |covers| {
        format!("; today's fleet carries {:.0}% of the demand", covers * 100.0)
    });
    let when = first.at.as_ref().map_or(String::new(), |at| format!(", too little from {at} on"));
    let signal = first
        .first_signal
        .as_ref()
        .map_or(String::new(), |signal| format!("; the first signal is {signal}"));
    Some(format!("{}{of}{carries}{when}{signal}.", capital(&cause)))
}

fn capital(text: &str) -> String {
    let mut all = text.chars();
    all.next().map_or(String::new(), |first| first.to_uppercase().chain(all).collect())
}

fn distributions(review: &Review) -> String {
    let peaks = review.demand.rows.iter().filter(|row| row.resource == Resource::Requests);
    let each: Vec<String> = peaks
        .filter_map(|row| {
            let level = row.launch.unwrap_or(row.baseline);
            let class = row.class.as_deref()?;
            (level.mean_per_s > 0.0).then(|| {
                format!(
                    "{class} peaks at {:.2} times its mean",
                    level.peak_per_s / level.mean_per_s
                )
            })
        })
        .collect();
    let seen = match each.is_empty() {
        true => String::new(),
        false => format!(
            " Here, in the fullest {} s window of the busiest hour: {}.",
            review.demand.window_s,
            each.join("; ")
        ),
    };
    format!(
        "Joint prompt and output lengths (empirical pairs, lognormal, Pareto tails), Poisson, Gamma and Weibull arrivals, bursts that switch on and off, rates by the hour, conversations that grow, agents that fan out, batch dumps.{seen}"
    )
}

fn memory(review: &Review) -> Option<String> {
    let each: Vec<String> = review
        .memory
        .iter()
        .map(|fit| {
            let gib = |bytes: i64| bytes as f64 / (1u64 << 30) as f64;
            let lines: Vec<String> = fit
                .budget
                .iter()
                .filter(|line| line.bytes != 0)
                .map(|line| format!("{} {:.1}", line.name.replace('_', " "), gib(line.bytes)))
                .collect();
            format!(
                "{}: {} GiB of a device's {:.1}; a replica holds {} tokens of context",
                fit.name,
                lines.join(", "),
                gib(i64::try_from(fit.device_bytes).unwrap_or(i64::MAX)),
                plimsoll_units::grouped(fit.kv_tokens)
            )
        })
        .collect();
    (!each.is_empty()).then(|| format!("{}.", each.join(". ")))
}

fn operating_point(review: &Review) -> Option<String> {
    let plan = review.plan.as_ref()?;
    let fleet = &plan.table.fleet;
    let says = |name: &str, reach: &Reach| {
        Some(format!("{name} up to {:.0}% of the demand", reach.covers? * 100.0))
    };
    let both = [says("today's fleet", &fleet.today), says("the planned one", &fleet.planned)];
    let both: Vec<String> = both.into_iter().flatten().collect();
    if both.is_empty() {
        return None;
    }
    let peak = review.curves.iter().find(|own| own.fleet == "planned");
    let knee = peak.and_then(|own| {
        let load = own.knee_load?;
        let point = own.points.iter().find(|p| p.load.to_bits() == load.to_bits())?;
        Some(format!(
            "; good tasks stop growing at {} tasks/s offered",
            digits(point.offered_per_s)
        ))
    });
    Some(format!(
        "Every promise, tails included, is kept by {}{}.",
        both.join(" and "),
        knee.unwrap_or_default()
    ))
}

fn reserve(review: &Review) -> Option<String> {
    let plan = review.plan.as_ref()?;
    let each: Vec<String> = plan
        .pools
        .iter()
        .map(|pool| {
            let kept = pool.reserve.iter().filter(|l| l.name != "steady" && l.replicas > 0);
            let lines: Vec<String> = kept
                .map(|line| format!("{} {}", line.name.replace('_', " "), line.replicas))
                .collect();
            let lines = if lines.is_empty() { "none".to_owned() } else { lines.join(", ") };
            format!(
                "{}: {} replicas beyond the median demand's {} ({lines})",
                pool.name,
                pool.replicas.total - pool.replicas.steady,
                pool.replicas.steady
            )
        })
        .collect();
    (!each.is_empty()).then(|| format!("{}.", each.join("; ")))
}

fn ready(review: &Review) -> Option<String> {
    let plan = review.plan.as_ref()?;
    let each: Vec<String> = plan
        .budget
        .startup
        .iter()
        .map(|own| {
            format!(
                "{}: a replica starts within {:.0} s nine times in ten, {:.0} s with all that can be kept",
                own.pool, own.startup_p90_s, own.startup_kept_p90_s
            )
        })
        .collect();
    let orders = plan.budget.orders.iter().map(|order| {
        format!(
            "{} more {} in {} must be ordered by {}{}",
            order.devices,
            order.accelerator,
            order.region,
            order.order_by,
            if order.too_late { ", which has passed" } else { "" }
        )
    });
    let all: Vec<String> = each.into_iter().chain(orders).collect();
    (!all.is_empty()).then(|| format!("{}.", all.join("; ")))
}

fn costs(review: &Review) -> Option<String> {
    let cost = review.cost.as_ref()?;
    let total = cost.total_usd;
    if total <= 0.0 {
        return None;
    }
    let of = |wanted: &[&str]| -> f64 {
        cost.lines.iter().filter(|l| wanted.contains(&l.kind)).map(|line| line.usd).sum()
    };
    let external: f64 = cost.lines.iter().filter(|l| l.device_hours.is_none()).map(|l| l.usd).sum();
    let success = cost
        .cost_per_success
        .usd
        .map_or_else(String::new, |usd| format!("; one success costs ${usd:.4}"));
    Some(format!(
        "Of ${} in {} hours: used ${} (varies with demand), idle ${} and reserve ${} (fixed by the fleet), failed ${}, shared by everybody ${}; ${} of all that is external (hosted tokens, tools, whatever has no device-hours){success}.",
        grouped(total),
        cost.period.hours,
        grouped(of(&["allocated"])),
        grouped(of(&["idle"])),
        grouped(of(&["reserve"])),
        grouped(of(&["failed"])),
        grouped(of(&["unallocated"])),
        grouped(external)
    ))
}

fn assumptions(review: &Review) -> Option<String> {
    let tornado = &review.stress.as_ref()?.tornado;
    let each: Vec<String> = tornado
        .bars
        .iter()
        .filter(|bar| {
            bar.swing_replicas != 0 || bar.swing_usd_per_month.is_some_and(|u| u.abs() >= 1.0)
        })
        .take(3)
        .map(|bar| {
            let money = bar
                .swing_usd_per_month
                .map_or(String::new(), |usd| format!(", ${} a month", grouped(usd.abs())));
            format!(
                "{} ({} to {}: {} replicas{money})",
                bar.name, bar.better, bar.worse, bar.swing_replicas
            )
        })
        .collect();
    (!each.is_empty()).then(|| format!("{}.", each.join("; ")))
}
