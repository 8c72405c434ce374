//! Hard times: a screen, and a document.

use plimsoll_study::{Breaks, Guard, Moved, StressResult, TornadoEnd};
use plimsoll_units::grouped;
use serde_json::{Value, json};

use crate::page::{Section, terminal};
use crate::review::{register_blocks, stress_blocks, tornado_blocks};
use crate::text::{Heading, plain_percent};

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
pub fn stress_text(document: &StressDocument<'_>, heading: Heading, version: &str) -> String {
    let mut out = heading.apply(document.name);
    out.push('\n');
    out.push_str(&terminal(&sections(document, "", version), heading));
    if !document.resources {
        out.push_str("\n`--resources` shows the resource table of each.\n");
    }
    out
}

/// What was tried, what moves the answer, and what is proposed.
pub(crate) fn sections(document: &StressDocument<'_>, before: &str, version: &str) -> Vec<Section> {
    let result = document.result;
    let mut stress = Section::new("stress", "Stress scenarios");
    stress.text(format!(
        "{before}As of {} · compared with {} · demand at its p{} · {}% good · seed {} · plimsoll {version}.",
        document.as_of,
        result.at,
        plain_percent(document.quantile),
        plain_percent(document.attainment),
        document.seed
    ));
    let pools = result.pools.iter().map(|pool| {
        format!("{}: {} replicas today, {} planned.", pool.name, pool.now, pool.planned)
    });
    stress.list(pools.collect());
    stress_blocks(&mut stress, result, document.resources);
    let mut tornado = Section::new("tornado", "What moves the answer");
    tornado_blocks(&mut tornado, result);
    let mut all = vec![stress, tornado];
    if !result.changes.is_empty() {
        let mut register = Section::new("register", "Pressure register");
        register_blocks(&mut register, &result.changes);
        all.push(register);
    }
    all
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

pub(crate) fn number(value: f64) -> String {
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

pub(crate) fn end(end: &TornadoEnd) -> String {
    let attainment = end.attainment.map_or(String::new(), |a| format!(", {:.1}% good", a * 100.0));
    let money = end
        .usd_per_month
        .map_or(String::new(), |usd| format!(", ${}/month", grouped(usd.round() as u64)));
    format!("{} replicas{money}{attainment}", end.replicas)
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
