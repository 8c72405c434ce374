//! What came of a forecast: a screen, pictures, and a document; and how forecasts did over the weeks.

use std::fmt::Write as _;

use plimsoll_forecast::{Actuals, Memory};
use plimsoll_study::{
    AssumptionCheck, BeforeAfter, ReconciledSeries, Reconciliation, ShareEstimate,
};
use plimsoll_workload::Quantity;
use serde_json::{Value, json};

use crate::chart::Chart;
use crate::forecast::{ForecastFile, LevelsFile, Moment, level, moment, number, span, words};
use crate::profile::item;
use crate::simulate::percent;
use crate::text::{Heading, aligned};

/// The name and version of the document.
pub const RECONCILE_SCHEMA: &str = "plimsoll/reconcile/v1";

/// What a reconciliation is of.
#[derive(Clone, Debug)]
pub struct ReconcileDocument<'a> {
    /// The version of the program.
    pub version: &'a str,
    /// The day it is made.
    pub as_of: String,
    /// The forecast, and its file.
    pub plan: &'a ForecastFile,
    /// Where it was read from.
    pub plan_file: String,
    /// What was held against it.
    pub source: String,
    /// How it came out.
    pub result: &'a Reconciliation,
    /// What should be known besides.
    pub notes: &'a [String],
}

/// The reconciliation as a JSON document.
pub fn reconcile_json(document: &ReconcileDocument<'_>) -> Value {
    let (plan, result) = (document.plan, document.result);
    let at = |seconds: i64| moment(seconds, result.absolute);
    let mut value = json!({
        "schema": RECONCILE_SCHEMA, "version": document.version, "as_of": document.as_of,
        "plan": { "id": plan.id, "as_of": plan.as_of, "version": plan.version, "file": document.plan_file,
                  "scenario": plan.scenario, "source": plan.source },
        "source": document.source, "from": at(result.from_s), "until": at(result.until_s),
        "warnings": document.notes,
    });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(result))
    {
        value.extend(body);
    }
    let levels = LevelsFile::new(&learnt(result), &plan.id);
    if let Some(next) = value.get_mut("next").and_then(Value::as_object_mut) {
        next.insert("conformal".to_owned(), json!(levels));
    }
    value
}

/// What the next forecast is to know.
pub fn learnt(result: &Reconciliation) -> Memory {
    let mut memory = Memory::default();
    for row in &result.next.levels {
        if let Some(quantity) = Quantity::of_name(row.resource) {
            memory.set(row.class.as_deref(), quantity, row.levels);
        }
    }
    memory
}

/// The first screen.
pub fn reconcile_text(document: &ReconcileDocument<'_>, heading: Heading) -> String {
    let (plan, result) = (document.plan, document.result);
    let at = |seconds: i64| moment(seconds, result.absolute);
    let mut out = heading.apply(&format!("{} against {}", document.plan_file, document.source));
    let _ = writeln!(
        out,
        "\n{} to {} · {} steps of {}{} · forecast {} as of {} · sized for p{}\n",
        at(result.from_s),
        at(result.until_s),
        result.steps,
        span(u64::from(result.step_s)),
        match result.missing {
            0 => String::new(),
            n => format!(", {n} of them missing"),
        },
        plan.id,
        plan.as_of,
        level(result.sizing)
    );
    result.verdict.iter().for_each(|sentence| out.push_str(&item(sentence)));
    let _ = writeln!(out, "\n{}", heading.apply("Forecast against what came"));
    out.push_str(&resources(&result.resources));
    let _ = writeln!(
        out,
        "\n{}",
        heading.apply(&format!("Above p{}, which was sized for", level(result.sizing)))
    );
    out.push_str(&shortfall(result));
    if !result.mix.classes.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("Mix of requests"));
        let share = |own: Option<f64>| own.map_or("-".to_owned(), percent);
        let rows: Vec<Vec<String>> = result
            .mix
            .classes
            .iter()
            .map(|row| {
                let points = row.difference.map(|d| format!("{:+.1} points", d * 100.0));
                let difference = points.unwrap_or_else(|| "-".to_owned());
                vec![row.class.clone(), share(row.forecast), share(row.actual), difference]
            })
            .collect();
        out.push_str(&aligned(&["class", "forecast", "came", "difference"], &rows, &[1, 2, 3]));
    }
    let served = service(result);
    if !served.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("Service, in the history and since"));
        out.push_str(&served);
    }
    if let Some(cost) = &result.cost_change {
        let _ = writeln!(
            out,
            "\ncost per success: ${:.6} to ${:.6}, {:+.1}%: cost per processed attempt {:+.1}%, processed attempts per task {:+.1}%, success rate {:+.1}% (logarithms add up: {:+.4} {:+.4} {:+.4} = {:+.4})",
            cost.before_usd,
            cost.after_usd,
            cost.percent,
            cost.cost_per_attempt.percent,
            cost.attempts_per_task.percent,
            cost.success_rate.percent,
            cost.cost_per_attempt.log_change,
            cost.attempts_per_task.log_change,
            cost.success_rate.log_change,
            cost.log_change
        );
    }
    if !result.assumptions.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("Assumptions, the one that moves most first"));
        out.push_str(&assumptions(&result.assumptions));
    }
    let _ = writeln!(out, "\n{}", heading.apply("To assume next, ready to paste"));
    out.push_str(&result.next.toml);
    if !document.notes.is_empty() {
        out.push_str("\nTo know before trusting a number:\n");
        document.notes.iter().for_each(|note| out.push_str(&item(note)));
    }
    out
}

fn resources(all: &[ReconciledSeries]) -> String {
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
    let value = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|own| {
            let covered = |at: f64| {
                let found = own.coverage.iter().find(|c| (c.level - at).abs() < 1e-9);
                found.and_then(|c| c.share).map_or("-".to_owned(), percent)
            };
            vec![
                own.class.clone().unwrap_or_else(|| "all".to_owned()),
                words(own.resource),
                value(own.forecast_mean),
                value(own.actual_mean),
                maybe(own.wape),
                own.bias.map_or("-".to_owned(), |b| format!("{b:+.3}")),
                covered(0.5),
                covered(0.9),
                covered(0.95),
                covered(0.99),
                own.sized.p_value.map_or("-".to_owned(), |p| format!("{p:.2}")),
                own.unit.to_owned(),
            ]
        })
        .collect();
    let header = [
        "class", "resource", "forecast", "came", "WAPE", "bias", "<=p50", "<=p90", "<=p95",
        "<=p99", "chance", "unit",
    ];
    aligned(&header, &rows, &[2, 3, 4, 5, 6, 7, 8, 9, 10])
}

fn shortfall(result: &Reconciliation) -> String {
    let share = |own: &Option<ShareEstimate>| {
        own.as_ref().map_or("-".to_owned(), |own| {
            let interval = own.low.zip(own.high).map_or(String::new(), |(low, high)| {
                format!(" ({} to {})", percent(low), percent(high))
            });
            format!("{}{interval}", percent(own.value))
        })
    };
    let rows: Vec<Vec<String>> = result
        .shortfall
        .iter()
        .map(|own| {
            vec![
                own.class.clone().unwrap_or_else(|| "all".to_owned()),
                words(own.resource),
                share(&own.frequency),
                percent(own.planned),
                share(&own.volume),
                if own.longest_steps == 0 { "-".to_owned() } else { span(own.longest_s) },
                own.tail.map_or("-".to_owned(), number),
                own.over_share.map_or("-".to_owned(), |s| format!("{:+.1}%", s * 100.0)),
                own.over_usd.map_or("-".to_owned(), |usd| format!("${usd:.2}")),
            ]
        })
        .collect();
    let header = [
        "class",
        "resource",
        "steps above",
        "planned",
        "volume above",
        "longest",
        "mean above",
        "room over demand",
        "in money",
    ];
    aligned(&header, &rows, &[2, 3, 4, 5, 6, 7, 8])
}

fn service(result: &Reconciliation) -> String {
    let rows = service_rows(result);
    if rows.is_empty() {
        return String::new();
    }
    aligned(&["class", "", "before", "since", "change"], &rows, &[2, 3, 4])
}

/// How requests were served before and since, line by line.
pub(crate) fn service_rows(result: &Reconciliation) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for own in &result.service {
        let class = own.class.clone().unwrap_or_else(|| "all".to_owned());
        type Shown = fn(f64) -> String;
        let seconds: Shown = |s| format!("{:.0} ms", s * 1000.0);
        let money: Shown = |usd| format!("${usd:.6}");
        let plain: Shown = |x| format!("{x:.3}");
        let lines: [(&str, &BeforeAfter, Shown); 11] = [
            ("attempts per request", &own.retries, plain),
            ("refused", &own.limited_share, percent),
            ("failed", &own.failed_share, percent),
            ("TTFT p95", &own.ttft_p95_s, seconds),
            ("TTFT p99", &own.ttft_p99_s, seconds),
            ("ITL p95", &own.itl_p95_s, seconds),
            ("ITL p99", &own.itl_p99_s, seconds),
            ("good", &own.goodput_share, percent),
            ("success", &own.success_rate, percent),
            ("cost per processed attempt", &own.cost_per_attempt_usd, money),
            ("cost per success", &own.cost_per_success_usd, money),
        ];
        for (name, line, shown) in lines {
            if line.before.is_none() && line.after.is_none() {
                continue;
            }
            let show = |value: Option<f64>| value.map_or("-".to_owned(), shown);
            let change =
                line.change.map_or("-".to_owned(), |c| format!("{:+.1}%", (c - 1.0) * 100.0));
            rows.push(vec![
                class.clone(),
                name.to_owned(),
                show(line.before),
                show(line.after),
                change,
            ]);
        }
    }
    rows
}

fn assumptions(all: &[AssumptionCheck]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|own| {
            vec![
                own.name.clone(),
                number(own.assumed),
                number(own.actual),
                own.unit.to_owned(),
                own.ratio.map_or("-".to_owned(), |r| format!("{r:.2}")),
                own.moves.map_or("-".to_owned(), |m| format!("{m:+.1}%")),
                span(u64::try_from(own.age_s).unwrap_or(0)),
            ]
        })
        .collect();
    let header = ["assumption", "assumed", "came", "unit", "times", "moves the tokens by", "age"];
    aligned(&header, &rows, &[1, 2, 4, 5, 6])
}

/// A picture for each resource of all classes, band against what came: its file and its text.
pub fn reconcile_pictures(
    plan: &ForecastFile,
    actual: &Actuals,
    result: &Reconciliation,
) -> Vec<(String, String)> {
    let fans = crate::html::reconcile_fans(plan, actual, result);
    let picture = |(resource, mut fan): (&str, Chart)| {
        fan.title = format!("{}: forecast {} against what came", fan.title, plan.id);
        (format!("reconcile-{resource}.svg"), fan.picture())
    };
    fans.map(picture).collect()
}

/// A reconciliation of the past, as its document tells it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct PastReconciliation {
    /// The file.
    pub file: String,
    /// The forecast.
    pub plan: String,
    /// When it was made.
    pub as_of: String,
    /// What it was about.
    pub from: Value,
    /// Until when.
    pub until: Value,
    /// For each resource of all classes: its name, WAPE, bias, coverage at the sizing quantile, and the share of steps above it.
    pub resources: Vec<PastResource>,
    /// The assumption that moved most, and by how many percent.
    pub most_wrong: Option<(String, f64)>,
}

/// How a resource did.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct PastResource {
    /// Which.
    pub resource: String,
    /// Sum of absolute errors over the sum of what came.
    pub wape: Option<f64>,
    /// How much too high.
    pub bias: Option<f64>,
    /// The share at or below what was sized for.
    pub covered: Option<f64>,
    /// Volume above it.
    pub volume: Option<f64>,
}

/// A reconciliation out of its document; or what is wrong with it. None where it is another kind of document.
pub fn past_reconciliation(file: &str, text: &str) -> Result<Option<PastReconciliation>, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    if value.get("schema").and_then(Value::as_str) != Some(RECONCILE_SCHEMA) {
        return Ok(None);
    }
    let text_at =
        |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or("?").to_owned();
    let list =
        |path: &str| value.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let of_all = |row: &&Value| row.get("class").is_none_or(Value::is_null);
    let shortfalls = list("/shortfall");
    let resources = list("/resources");
    let resources = resources.iter().filter(of_all).map(|row| {
        let name = row.get("resource").and_then(Value::as_str).unwrap_or("?").to_owned();
        let real = |key: &str| row.get(key).and_then(Value::as_f64);
        let above = shortfalls.iter().filter(of_all);
        let above =
            above.into_iter().find(|s| s.get("resource").and_then(Value::as_str) == Some(&name));
        PastResource {
            wape: real("wape"),
            bias: real("bias"),
            covered: row.pointer("/sized/share").and_then(Value::as_f64),
            volume: above.and_then(|s| s.pointer("/volume/value")).and_then(Value::as_f64),
            resource: name,
        }
    });
    let first = list("/assumptions").into_iter().next();
    let most_wrong = first.and_then(|own| {
        let name = own.get("name")?.as_str()?.to_owned();
        Some((name, own.get("moves")?.as_f64()?))
    });
    Ok(Some(PastReconciliation {
        file: file.to_owned(),
        plan: text_at("/plan/id"),
        as_of: text_at("/plan/as_of"),
        from: value.get("from").cloned().unwrap_or(Value::Null),
        until: value.get("until").cloned().unwrap_or(Value::Null),
        resources: resources.collect(),
        most_wrong,
    }))
}

/// Accuracy over the weeks, the oldest first.
pub fn accuracy_text(all: &[PastReconciliation], heading: Heading) -> String {
    let mut names: Vec<&str> =
        all.iter().flat_map(|own| own.resources.iter().map(|r| r.resource.as_str())).collect();
    let mut seen: Vec<&str> = Vec::new();
    names.retain(|name| {
        let new = !seen.contains(name);
        if new {
            seen.push(name);
        }
        new
    });
    let forecasts = if all.len() == 1 { "forecast" } else { "forecasts" };
    let mut out = heading.apply(&format!("{} {forecasts} against what came", all.len()));
    out.push('\n');
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
    for name in names {
        let _ = writeln!(out, "\n{}", heading.apply(&words(name)));
        let rows: Vec<Vec<String>> = all
            .iter()
            .filter_map(|own| {
                let of = own.resources.iter().find(|r| r.resource == name)?;
                let bar = of.wape.map_or(String::new(), |wape| {
                    "#".repeat((wape * 40.0).round().clamp(0.0, 40.0) as usize)
                });
                Some(vec![
                    shown(&own.from),
                    shown(&own.until),
                    own.plan.clone(),
                    maybe(of.wape),
                    of.bias.map_or("-".to_owned(), |b| format!("{b:+.3}")),
                    of.covered.map_or("-".to_owned(), percent),
                    of.volume.map_or("-".to_owned(), percent),
                    own.most_wrong
                        .as_ref()
                        .map_or("-".to_owned(), |(what, by)| format!("{what} {by:+.1}%")),
                    bar,
                ])
            })
            .collect();
        let header = [
            "from",
            "until",
            "forecast",
            "WAPE",
            "bias",
            "covered",
            "volume above",
            "most wrong",
            "WAPE, 40 to 1",
        ];
        out.push_str(&aligned(&header, &rows, &[3, 4, 5, 6]));
    }
    out
}

fn shown(moment: &Value) -> String {
    serde_json::from_value::<Moment>(moment.clone()).map_or("?".to_owned(), |at| at.short())
}
