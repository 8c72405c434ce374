//! Hard times: a screen, and a document.

use std::fmt::Write as _;

use plimsoll_study::{
    Breaks, Guard, LoadVerdict, Moved, PressureChange, StressResult, Stressed, StressedResource,
    TornadoBar, TornadoEnd,
};
use plimsoll_units::grouped;
use serde_json::{Value, json};

use crate::text::{Heading, aligned};

/// What was tried.
pub struct StressDocument<'a> {
    /// The study's name.
    pub name: &'a str,
    /// The scenario.
    pub file: &'a str,
    /// The day that stands for today.
    pub as_of: &'a str,
    /// Makes it repeatable.
    pub seed: u64,
    /// The share of tasks that must be good.
    pub attainment: f64,
    /// The quantile of the demand.
    pub quantile: f64,
    /// What came of it.
    pub result: &'a StressResult,
    /// Whether the resources of each are shown.
    pub resources: bool,
}

/// Hard times as a JSON document.
pub fn stress_json(document: &StressDocument<'_>, version: &str) -> Value {
    let mut value = json!({
        "schema": "plimsoll/stress/v1",
        "version": version,
        "name": document.name,
        "file": document.file,
        "as_of": document.as_of,
        "seed": document.seed,
        "attainment": document.attainment,
        "demand_quantile": document.quantile,
    });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(document.result))
    {
        value.extend(body);
    }
    value
}

/// The screen.
pub fn stress_text(document: &StressDocument<'_>, heading: Heading) -> String {
    let result = document.result;
    let mut out = heading.apply(document.name);
    let percent = |share: f64| (share * 1e4).round() / 1e2;
    let _ = writeln!(
        out,
        "\nas of {} · compared with {} · demand at its p{} · {}% good · seed {}",
        document.as_of,
        result.at,
        percent(document.quantile),
        percent(document.attainment),
        document.seed
    );
    for pool in &result.pools {
        let _ =
            writeln!(out, "{}: {} replicas today, {} planned", pool.name, pool.now, pool.planned);
    }
    scenarios(&mut out, document, heading);
    shapes(&mut out, result, heading);
    tornado(&mut out, result, heading);
    changes(&mut out, result, heading);
    if !result.notes.is_empty() {
        out.push('\n');
        for note in &result.notes {
            let _ = writeln!(out, "note: {note}");
        }
    }
    out
}

/// A number of times that is known to about a tenth: `1.4x`.
pub(crate) fn about_times(times: f64) -> String {
    let decimals = if times < 0.995 { 2 } else { 1 };
    format!("{times:.decimals$}x")
}

pub(crate) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

pub(crate) fn dollars(value: Option<f64>) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |usd| match usd.abs() {
            none if none < 5e-5 => "$0".to_owned(),
            small if small < 10.0 => format!("${usd:.4}"),
            _ => format!("${}", grouped(usd.round().max(0.0) as u64)),
        },
    )
}

fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => grouped(value.round().max(0.0) as u64),
        middle if middle >= 10.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

pub(crate) fn breaks(own: Option<&Breaks>) -> String {
    let Some(own) = own else { return "-".to_owned() };
    let Some(signal) = own.signal.as_deref() else {
        return "nothing that was tried".to_owned();
    };
    let what = match (&own.resource, &own.of) {
        (Some(resource), Some(of)) => format!("{signal}, {} of {of}", resource.replace('_', " ")),
        (Some(resource), None) => format!("{signal}, {}", resource.replace('_', " ")),
        (None, Some(of)) => format!("{signal} at {of}"),
        (None, None) => signal.to_owned(),
    };
    if own.broken { what } else { format!("next: {what}") }
}

fn scenarios(out: &mut String, document: &StressDocument<'_>, heading: Heading) {
    let result = document.result;
    let _ = writeln!(out, "\n{}", heading.apply("stress scenarios"));
    let held = |verdict: Option<LoadVerdict>, text: String| match verdict {
        Some(LoadVerdict::Fails) => format!("{text} BREAKS"),
        Some(LoadVerdict::TooClose) => format!("{text} TOO CLOSE"),
        _ => text,
    };
    let carries = |times: Option<f64>| times.map_or("-".to_owned(), about_times);
    let rows: Vec<Vec<String>> = result
        .scenarios
        .iter()
        .filter(|own| own.not_applicable.is_none())
        .map(|own| {
            let attainment = &own.attainment;
            vec![
                own.name.clone(),
                held(attainment.verdict_now, share(attainment.now)),
                carries(own.carries.now),
                held(attainment.verdict_planned, share(attainment.planned)),
                carries(own.carries.planned),
                dollars(own.cost.planned_usd_per_hour),
                dollars(own.cost.planned_usd_per_success),
                breaks(own.first_to_break.planned.as_ref()),
                own.owner.clone().unwrap_or_else(|| "nobody".to_owned()),
            ]
        })
        .collect();
    let header = [
        "stress",
        "good today",
        "carries",
        "good planned",
        "carries",
        "$/h planned",
        "$/success",
        "first to break, planned",
        "owner",
    ];
    out.push_str(&aligned(&header, &rows, &[1, 2, 3, 4, 5, 6]));
    out.push_str("`good` is of the class that has least of what it was promised; `carries` is how many times that demand a fleet carries with\nevery promise kept, to about a tenth.\n");
    for own in &result.scenarios {
        if let Some(why) = &own.not_applicable {
            let _ = writeln!(out, "{} does not apply: {why}.", own.name);
        }
    }
    let why = result.scenarios.iter().find_map(|own| own.cost.why.as_ref());
    if let Some(why) = why {
        let _ = writeln!(out, "Where a cost is missing: {why}.");
    }
    for own in result.scenarios.iter().filter(|own| own.not_applicable.is_none()) {
        if own.relieved.is_empty() && own.worsened.is_empty() && !document.resources {
            continue;
        }
        let _ = writeln!(out, "\n{}: {}", heading.apply(&own.name), own.about);
        moved(out, "worsened", &own.worsened);
        moved(out, "relieved", &own.relieved);
        if document.resources {
            resources(out, own);
        }
    }
    if !document.resources {
        out.push_str("\n`--resources` shows the resource table of each.\n");
    }
}

fn moved(out: &mut String, what: &str, all: &[Moved]) {
    if !all.is_empty() {
        let _ = writeln!(out, "  {what}: {}", most_moved(all));
    }
}

/// Things that have moved, the most first, and how many more there are.
pub(crate) fn most_moved(all: &[Moved]) -> String {
    const SHOWN: usize = 4;
    let ratio = |own: &Moved| (own.to.max(1e-9) / own.from.max(1e-9)).ln().abs();
    let mut sorted: Vec<&Moved> = all.iter().collect();
    sorted.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    let said: Vec<String> = sorted
        .iter()
        .take(SHOWN)
        .map(|own| {
            let name = own.resource.replace('_', " ");
            let of = own.of.as_deref().map_or(String::new(), |of| format!(" of {of}"));
            match own.unit.as_str() {
                "share used" => {
                    format!("{name}{of} {:.0}% -> {:.0}%", own.from * 100.0, own.to * 100.0)
                }
                unit => format!("{name}{of} {} -> {} {unit}", number(own.from), number(own.to)),
            }
        })
        .collect();
    let more = all.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", said.join(", "))
}

fn resources(out: &mut String, own: &Stressed) {
    let rows: Vec<Vec<String>> = own
        .resources
        .iter()
        .map(|row: &StressedResource| {
            let name = row.name.replace('_', " ");
            vec![
                row.of.as_ref().map_or(name.clone(), |of| format!("{name} of {of}")),
                row.demand.map_or("-".to_owned(), number),
                row.reference.map_or("-".to_owned(), number),
                row.unit.to_owned(),
                share(row.used_now),
                share(row.used_planned),
                share(row.reference_used_planned),
            ]
        })
        .collect();
    let header =
        ["  resource", "asked", "at the peak", "unit", "used today", "used planned", "at the peak"];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|mut row| {
            row[0] = format!("  {}", row[0]);
            row
        })
        .collect();
    out.push_str(&aligned(&header, &rows, &[1, 2, 4, 5, 6]));
}

fn shapes(out: &mut String, result: &StressResult, heading: Heading) {
    let _ = writeln!(out, "\n{}", heading.apply("ways in which plans fail"));
    let said = |pass: Option<bool>| match pass {
        Some(true) => "pass",
        Some(false) => "FAIL",
        None => "-",
    };
    let rows: Vec<Vec<String>> = result
        .failure_shapes
        .iter()
        .map(|shape| {
            vec![
                shape.name.to_owned(),
                said(shape.pass_now).to_owned(),
                said(shape.pass).to_owned(),
            ]
        })
        .collect();
    out.push_str(&aligned(&["shape", "today", "planned"], &rows, &[]));
    for shape in &result.failure_shapes {
        let _ = writeln!(out, "  {}: {}", shape.name, shape.evidence);
    }
}

pub(crate) fn end(end: &TornadoEnd) -> String {
    let attainment = end.attainment.map_or(String::new(), |a| format!(", {:.1}% good", a * 100.0));
    let money = end
        .usd_per_month
        .map_or(String::new(), |usd| format!(", ${}/month", grouped(usd.round() as u64)));
    format!("{} replicas{money}{attainment}", end.replicas)
}

fn tornado(out: &mut String, result: &StressResult, heading: Heading) {
    let own = &result.tornado;
    let _ = writeln!(out, "\n{}", heading.apply("what moves the answer"));
    let ends = [("best", &own.best), ("base", &own.base), ("worst", &own.worst)];
    for (name, own) in ends {
        if let Some(own) = own {
            let _ = writeln!(out, "{name:>5}: {}", end(own));
        }
    }
    let widest = own.bars.iter().map(|bar| bar.swing_replicas.unsigned_abs()).max().unwrap_or(0);
    let rows: Vec<Vec<String>> = own
        .bars
        .iter()
        .map(|bar: &TornadoBar| {
            let width = (bar.swing_replicas.unsigned_abs() * BAR).checked_div(widest).unwrap_or(0);
            vec![
                bar.name.clone(),
                format!("{} to {}", bar.better, bar.worse),
                format!("{} to {}", bar.at_better.replicas, bar.at_worse.replicas),
                dollars(bar.swing_usd_per_month),
                format!(
                    "{} to {}",
                    share(bar.at_better.attainment),
                    share(bar.at_worse.attainment)
                ),
                "#".repeat(usize::try_from(width).unwrap_or(0)),
            ]
        })
        .collect();
    let header =
        ["assumption", "range", "replicas", "$/month apart", "good on the planned fleet", ""];
    out.push_str(&aligned(&header, &rows, &[3]));
    let _ = writeln!(
        out,
        "Each moves alone, the rest as it is likely; `best` and `worst` move all of them at once, which no day does. Replicas are\nof all pools, reserve included, from short looks on common seeds."
    );
    let assumed = own.bars.iter().filter(|bar| bar.source.starts_with("assumed")).count();
    if assumed > 0 {
        let _ = writeln!(
            out,
            "{assumed} of these ranges are assumed: nobody has said or measured them."
        );
    }
    if own.measure_next.is_empty() {
        out.push_str("No assumption by itself would change how many replicas are planned.\n");
    } else {
        out.push_str("Measure next, what is worth most first:\n");
        for (i, what) in own.measure_next.iter().take(MEASURED).enumerate() {
            let _ = writeln!(out, "  {}. {what}", i + 1);
        }
    }
}

/// The widest bar, and how many things to measure are told.
const BAR: u64 = 30;
const MEASURED: usize = 3;

fn changes(out: &mut String, result: &StressResult, heading: Heading) {
    if result.changes.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{}",
        heading.apply("proposed changes, before and after on the same tasks")
    );
    for own in &result.changes {
        change(out, own, heading);
    }
}

fn change(out: &mut String, own: &PressureChange, heading: Heading) {
    let owner = own.owner.as_deref().unwrap_or("nobody is named");
    let _ = writeln!(out, "{} (owner: {owner})", heading.apply(&own.name));
    if let Some(why) = &own.not_applicable {
        let _ = writeln!(out, "  cannot be tried: {why}");
        return;
    }
    if let (Some(before), Some(after)) = (&own.before, &own.after) {
        let total = |side: &plimsoll_study::ChangeSide| -> u32 { side.replicas.iter().sum() };
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
        let _ = writeln!(
            out,
            "  carried by {} replicas -> {}, {}/h -> {}/h; good {} -> {}; ttft p95 {} -> {}; tpot p95 {} -> {}",
            total(before),
            total(after),
            dollars(before.usd_per_hour),
            dollars(after.usd_per_hour),
            share(before.attainment),
            share(after.attainment),
            ms(before.ttft_p95_ms),
            ms(after.ttft_p95_ms),
            ms(before.tpot_p95_ms),
            ms(after.tpot_p95_ms),
        );
    }
    moved(out, "relieves", &own.relieved);
    moved(out, "creates", &own.created);
    match (own.saving_per_success_pct, &own.why) {
        (Some(saving), _) => {
            let _ = writeln!(out, "  saves {saving:.1}% of what one success costs");
        }
        (None, Some(why)) => {
            let _ = writeln!(out, "  {why}");
        }
        (None, None) => {}
    }
    if let Some(tasks) = own.tasks_to_tell {
        let _ = writeln!(
            out,
            "  {} tasks a side tell a fall of success by one point, four times in five",
            grouped(tasks)
        );
    }
    guard(out, "guardrail", own.guardrail.as_ref(), ("holds", "BROKEN"));
    guard(out, "rollback", own.rollback.as_ref(), ("would FIRE at once", "would not fire"));
}

fn guard(out: &mut String, what: &str, own: Option<&Guard>, words: (&str, &str)) {
    let _ = writeln!(out, "  {what}{}", guarded(own, words));
}

/// A condition, whose it is, and whether it holds.
pub(crate) fn guarded(own: Option<&Guard>, (yes, no): (&str, &str)) -> String {
    let Some(own) = own else { return ": none is stated".to_owned() };
    let holds = match own.holds {
        Some(true) => yes,
        Some(false) => no,
        None => "cannot be told here",
    };
    let by = if own.stated { "" } else { ", proposed" };
    format!("{by}: `{}`: {holds} ({})", own.expression, own.evidence)
}
