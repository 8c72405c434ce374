//! A fleet against its plan, now.

use std::fmt::Write as _;

use plimsoll_study::{Advice, Drift, PoolAdvice, ResourceNow};
use plimsoll_units::grouped;

use crate::text::{Heading, aligned};

/// Replicas that are named on a screen.
const EACH_SHOWN: usize = 5;

/// The screen of `watch`. `title` names the plan, `clock` the moment.
pub fn watch_text(advice: &Advice, title: &str, clock: &str, heading: Heading) -> String {
    let mut out = heading.apply(title);
    let _ = writeln!(out, "\nplan {} · {clock} · advice only", advice.plan);
    for pool in &advice.pools {
        out.push('\n');
        one(&mut out, pool, heading);
    }
    out
}

/// One line a pool, for those who read a log and no screen.
pub fn watch_line(pool: &PoolAdvice) -> String {
    let tightest = tightest(pool).map_or_else(String::new, |row| {
        format!("; {} headroom {}", named(row.resource), percent(row.headroom_ratio))
    });
    format!("{}: {}{tightest}", pool.pool, advised(pool))
}

fn tightest(pool: &PoolAdvice) -> Option<&ResourceNow> {
    let known = pool.resources.iter().filter(|row| row.headroom_ratio.is_some());
    known.min_by(|a, b| {
        let of = |row: &ResourceNow| row.headroom_ratio.unwrap_or(f64::INFINITY);
        of(a).total_cmp(&of(b))
    })
}

fn advised(pool: &PoolAdvice) -> String {
    let replicas = pool.replicas.map_or_else(|| "? replicas".to_owned(), replicas_text);
    let Some(desired) = pool.desired_replicas else {
        return format!("{replicas}, {}", pool.why);
    };
    let advised = if pool.replicas == Some(desired) {
        "as advised".to_owned()
    } else {
        format!("{desired} advised")
    };
    let age = match pool.age_s {
        Some(age) if pool.stale => format!(" (LAST GOOD ANSWER, {})", seconds(age)),
        _ => String::new(),
    };
    format!("{replicas}, {advised}{age}: {}", pool.why)
}

fn replicas_text(count: u32) -> String {
    if count == 1 { "1 replica".to_owned() } else { format!("{count} replicas") }
}

fn one(out: &mut String, pool: &PoolAdvice, heading: Heading) {
    let _ = writeln!(out, "{}  {}", heading.apply(&pool.pool), advised(pool));
    let rows: Vec<Vec<String>> = pool
        .resources
        .iter()
        .map(|row| {
            let expected = pool.forecast.iter().find(|own| own.resource == row.resource);
            vec![
                format!("{}, {}", named(row.resource), row.unit),
                amount(row.now),
                row.line.map_or_else(|| "-".to_owned(), amount),
                percent(row.headroom_ratio),
                expected.map_or_else(String::new, |own| {
                    format!("{} to {}", amount(own.p50), amount(own.planned))
                }),
                verdict(row).to_owned(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let quantile = pool.forecast.first().map_or(0.0, |own| own.quantile * 100.0);
        let expects = match pool.forecast.is_empty() {
            true => String::new(),
            false => format!("plan: p50 to p{quantile:.0}"),
        };
        let head = ["", "now", "load line", "headroom", &expects, ""];
        out.push_str(&aligned(&head, &rows, &[1, 2, 3, 4]));
    }
    if let Some(found) = &pool.inflection
        && let Some(crosses) = found.crosses_in_s
    {
        let _ = writeln!(
            out,
            "WARNING: the load line may be reached in {} ({} of {} fresh prompt tokens/s); of {} such warnings in this history {} came to nothing",
            seconds(crosses as f64),
            amount(found.most_ahead),
            amount(found.line),
            found.alarms,
            found.false_alarms
        );
    }
    for drift in pool.drift.iter().filter(|drift| drift.beyond) {
        let _ = writeln!(out, "DRIFT: {}; plan again with what is", drifted(drift));
    }
    if !pool.each.is_empty() {
        let each = pool.each.iter().take(EACH_SHOWN).map(|own| {
            let headroom = percent(Some(own.headroom_ratio));
            format!("{} {} {headroom}", own.replica, named(own.resource))
        });
        let each: Vec<String> = each.collect();
        let more = pool.each.len().saturating_sub(EACH_SHOWN);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let _ = writeln!(out, "fullest: {}{more}", each.join(", "));
    }
    for trouble in &pool.trouble {
        let _ = writeln!(out, "not seen: {trouble}");
    }
}

fn drifted(drift: &Drift) -> String {
    let name = match drift.assumption {
        "prompt_length" => "prompts",
        "output_length" => "outputs",
        "cache_hit" => "the share of cached prompt tokens",
        "mix" => "the share of calls that come here",
        other => other,
    };
    if drift.unit.starts_with("share") {
        let share = |value: f64| format!("{:.0}%", value * 100.0);
        return format!("{name}: {}, planned {}", share(drift.now), share(drift.planned));
    }
    let (now, planned) = (amount(drift.now), amount(drift.planned));
    format!("{name}: {now} {}, planned {planned}", drift.unit)
}

fn named(resource: &str) -> &str {
    match resource {
        "fresh_tokens" => "fresh prompt",
        "output_tokens" => "output",
        "in_flight" => "in flight",
        "kv" => "KV",
        other => other,
    }
}

/// Under 15% is tight, as in every table of ours.
fn verdict(row: &ResourceNow) -> &'static str {
    match row.headroom_ratio {
        None => "",
        // Another mix has more of one and less of the other: what is computed, what runs and what is held say whether it fits.
        Some(own) if own < 0.0 && matches!(row.resource, "output_tokens" | "requests") => {
            "above the mix of the plan"
        }
        Some(own) if own < 0.0 => "BEYOND THE LINE",
        Some(own) if own < 0.15 => "tight",
        Some(_) => "ok",
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:+.0}%", share * 100.0))
}

fn amount(value: f64) -> String {
    if value.abs() >= 100.0 {
        grouped(value.round().max(0.0) as u64)
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn seconds(value: f64) -> String {
    if value < 120.0 { format!("{value:.0} s") } else { format!("{:.0} min", value / 60.0) }
}
