//! What was paid, who used it, and what one success costs: a screen, a document, and a FOCUS table.

mod focus;

use std::fmt::Write as _;

use plimsoll_study::{Cost, CostPerSuccess, ValueCost};
use serde_json::{Value, json};

pub use self::focus::{FOCUS_COLUMNS, FocusHead, focus_csv};
use crate::text::{Heading, aligned};

/// What a cost study is of.
pub struct CostDocument<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The ledger or the scenario.
    pub source: &'a str,
    /// The day that stands for today.
    pub as_of: &'a str,
    /// Makes it repeatable.
    pub seed: u64,
    /// The dimension that the screen shows; the first that there is where none is asked for.
    pub by: Option<&'a str>,
    /// The study.
    pub cost: &'a Cost,
}

/// As a JSON document.
pub fn cost_json(document: &CostDocument<'_>, version: &str) -> Value {
    let mut value = json!({
        "schema": "plimsoll/cost/v1",
        "version": version,
        "name": document.name,
        "source": document.source,
        "as_of": document.as_of,
        "seed": document.seed,
    });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(document.cost))
    {
        value.extend(body);
    }
    value
}

/// Values of a dimension on a screen at most; the document has all of them.
const ROWS: usize = 12;

/// The screen.
pub fn cost_text(document: &CostDocument<'_>, heading: Heading) -> String {
    let cost = document.cost;
    let mut out = heading.apply(document.name);
    let when = match (&cost.period.start, &cost.period.end) {
        (Some(start), Some(end)) => format!("{start} to {end}"),
        _ => "no dates".to_owned(),
    };
    let _ = writeln!(
        out,
        "\n{when} · {} hours · as of {} · seed {}\n",
        cost.period.hours, document.as_of, document.seed
    );
    let closes = match cost.closes {
        true => "the books close: nothing is missing".to_owned(),
        false => {
            format!("THE BOOKS DO NOT CLOSE: {} micro-dollars are missing", cost.residual_microusd)
        }
    };
    let _ = writeln!(out, "{} in all; {closes}.", heading.apply(&dollars(cost.total_usd)));
    lines(&mut out, cost);
    success(&mut out, &cost.cost_per_success, heading);
    if let Some(budget) = &cost.budget {
        let _ = writeln!(out, "{}: {}.", budget.verdict.to_uppercase(), budget.says);
    }
    units(&mut out, cost, heading);
    by(&mut out, document, heading);
    bill(&mut out, cost, heading);
    choices(&mut out, cost, heading);
    for lint in &cost.price_lints {
        let _ = writeln!(out, "Price {}: {}.", lint.code, lint.message);
    }
    for note in &cost.notes {
        let _ = writeln!(out, "Note: {note}.");
    }
    out
}

fn lines(out: &mut String, cost: &Cost) {
    let mut prices: Vec<String> = Vec::new();
    let rows: Vec<Vec<String>> = cost
        .lines
        .iter()
        .map(|line| {
            let price = line.price.as_ref().map(|price| {
                let unit = price.usd_per_unit.zip(price.unit);
                let unit = unit.map_or(String::new(), |(usd, unit)| format!("${usd:.4}/{unit}, "));
                let as_of = price.as_of.as_ref().map_or(String::new(), |day| format!(", {day}"));
                let region = price.region.as_ref().map_or(String::new(), |at| format!(", {at}"));
                format!("{unit}{}{region}{as_of}", price.source)
            });
            // Many lines have one price: it is told once.
            let note = match (line.kind, price) {
                ("unallocated", _) => line.why.clone(),
                (_, Some(price)) => {
                    let at = prices.iter().position(|known| *known == price);
                    let at = at.unwrap_or_else(|| {
                        prices.push(price);
                        prices.len() - 1
                    });
                    format!("[{}]", at + 1)
                }
                (_, None) => String::new(),
            };
            vec![
                line.name.clone(),
                line.kind.to_owned(),
                dollars(line.usd),
                line.device_hours.map_or(String::new(), |hours| format!("{hours:.1}")),
                note,
            ]
        })
        .collect();
    out.push('\n');
    out.push_str(&aligned(&["line", "kind", "cost", "device-hours", "price"], &rows, &[2, 3]));
    for (i, price) in prices.iter().enumerate() {
        let _ = writeln!(out, "[{}] {price}", i + 1);
    }
}

fn success(out: &mut String, per: &CostPerSuccess, heading: Heading) {
    let _ = write!(out, "\n{}: ", heading.apply("one success"));
    match per.usd {
        Some(usd) => {
            let least = if per.at_least { "at least " } else { "" };
            let _ = write!(out, "{least}{}", dollars(usd));
            if let Some(span) = per.interval {
                let _ = write!(
                    out,
                    " ({} to {} at {:.0}%, {} tasks)",
                    dollars(span.low),
                    dollars(span.high),
                    span.level * 100.0,
                    span.n
                );
            }
            if let Some(usd) = per.marginal_usd {
                let _ = write!(
                    out,
                    "; {} without idle time, reserve and what is paid anyway",
                    dollars(usd)
                );
            }
            out.push('\n');
        }
        None => out.push_str("unknown\n"),
    }
    if let Some(f) = per.factors {
        let _ = writeln!(
            out,
            "  = {} an attempt x {:.3} attempts a task / {:.2}% succeed",
            dollars(f.cost_per_attempt_usd),
            f.attempts_per_task,
            f.success_rate * 100.0
        );
    }
    if let Some(bounds) = per.bounds {
        let _ = writeln!(
            out,
            "  from {} to {}, as {} unresolved tasks may turn out",
            dollars(bounds.low_usd),
            dollars(bounds.high_usd),
            per.unresolved
        );
    }
    if let Some(why) = &per.why {
        let _ = writeln!(out, "  {why}");
    }
}

fn units(out: &mut String, cost: &Cost, heading: Heading) {
    let unit = &cost.unit;
    let own = [
        ("a request, everything included", unit.request_usd),
        ("a million fresh prompt tokens", unit.fresh_usd_per_mtok),
        ("a million cached prompt tokens", unit.cached_usd_per_mtok),
        ("a million output tokens", unit.output_usd_per_mtok),
        ("attempts that were not the first", Some(cost.wasted.retries_usd)),
        ("attempts that failed", Some(cost.wasted.failed_usd)),
        ("attempts whose user left", Some(cost.wasted.cancelled_usd)),
        ("attempts that a limit refused", Some(cost.wasted.limited_usd)),
    ];
    let rows: Vec<Vec<String>> = own
        .iter()
        .map(|(what, usd)| vec![(*what).to_owned(), usd.map_or("-".to_owned(), dollars)])
        .collect();
    let _ = writeln!(
        out,
        "\n{}",
        heading.apply("what one of anything costs, and what comes to nothing")
    );
    out.push_str(&aligned(&["", "cost"], &rows, &[1]));
    if cost.uncharged_attempts > 0.0 {
        let _ = writeln!(
            out,
            "Nothing was charged for {:.0} attempts: they are in none of these.",
            cost.uncharged_attempts
        );
    }
}

fn by(out: &mut String, document: &CostDocument<'_>, heading: Heading) {
    let cost = document.cost;
    let asked = document.by.and_then(|by| cost.by.get_key_value(by));
    let usual = ["tenant", "feature", "model", "route"];
    let first = || usual.iter().find_map(|by| cost.by.get_key_value(by));
    let Some((name, values)) = asked.or_else(first) else { return };
    let _ = writeln!(out, "\n{} ({})", heading.apply(&format!("by {name}")), cost.method);
    let row = |value: &ValueCost| {
        let used = value.prefill_usd
            + value.cached_usd
            + value.decode_usd
            + value.kv_usd
            + value.other_usd;
        let failed = value.failed_usd + value.cancelled_usd + value.limited_usd;
        vec![
            value.value.clone().unwrap_or_else(|| "(none)".to_owned()),
            dollars(value.usd),
            dollars(used),
            dollars(failed),
            dollars(value.headroom_usd),
            dollars(value.shared_usd),
            dollars(value.by_request_count_usd),
            value.cost_per_success_usd.map_or("-".to_owned(), dollars),
        ]
    };
    let rows: Vec<Vec<String>> = values.iter().take(ROWS).map(row).collect();
    out.push_str(&aligned(
        &[name, "pays", "used", "failed", "headroom", "shared", "by requests", "one success"],
        &rows,
        &[1, 2, 3, 4, 5, 6, 7],
    ));
    if values.len() > ROWS {
        let _ = writeln!(out, "and {} more: `--json` has all of them", values.len() - ROWS);
    }
    if let Some(share) = cost.misplaced_by_request_count.get(name) {
        let _ = writeln!(
            out,
            "Counting requests would charge {:.0}% of it to somebody else.",
            share * 100.0
        );
    }
}

fn bill(out: &mut String, cost: &Cost, heading: Heading) {
    let Some(bill) = &cost.bill else { return };
    let _ = writeln!(out, "\n{} ({}, {})", heading.apply("the bill"), bill.format, bill.currency);
    let usd = |micros: i64| dollars(micros as f64 / 1e6);
    let _ = writeln!(
        out,
        "prices say {}, invoiced {}: {} apart",
        usd(bill.modelled_microusd),
        usd(bill.invoiced_microusd),
        usd(bill.gap_microusd)
    );
    let rows: Vec<Vec<String>> = bill
        .gap
        .iter()
        .map(|gap| {
            vec![
                format!("  {}", gap.line),
                gap.kind.replace('_', " "),
                usd(gap.microusd),
                gap.says.clone(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        out.push_str(&aligned(&["  line", "differs by", "cost", ""], &rows, &[2]));
    }
    for note in &bill.notes {
        let _ = writeln!(out, "Note: {note}.");
    }
    if bill.rejected_lines > 0 {
        let _ = writeln!(
            out,
            "Note: {} lines of the bill could not be read, and are in no sum.",
            bill.rejected_lines
        );
    }
}

fn choices(out: &mut String, cost: &Cost, heading: Heading) {
    if cost.build_or_buy.is_empty() && cost.commitment.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", heading.apply("what could be paid instead"));
    for own in &cost.build_or_buy {
        let _ = writeln!(
            out,
            "  {}: {} a month built, {} bought. {}.",
            own.pool,
            dollars(own.own_usd_per_month),
            dollars(own.bought_usd_per_month),
            own.says
        );
    }
    for own in &cost.commitment {
        let _ = writeln!(out, "  {}.", own.says);
    }
    out.push('\n');
}

/// Dollars: cents where there are many of them, enough digits where there are few.
pub(crate) fn dollars(usd: f64) -> String {
    let sign = if usd < 0.0 { "-" } else { "" };
    let size = usd.abs();
    match size {
        0.0 => "$0".to_owned(),
        s if s >= 1.0 => {
            let cents = (s * 100.0).round() as u64;
            format!("{sign}${}.{:02}", plimsoll_units::grouped(cents / 100), cents % 100)
        }
        s if s >= 0.01 => format!("{sign}${s:.4}"),
        s => format!("{sign}${s:.6}"),
    }
}
