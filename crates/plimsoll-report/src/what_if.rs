//! What becomes of the answer when levers move.

use std::fmt::Write as _;

use plimsoll_study::{WhatIf, WhatIfBasis};
use serde_json::{Value, json};

use crate::chart::{Chart, Draw, Ink};
use crate::curve::{rate, times};
use crate::text::{Heading, aligned};

/// The answer as a JSON document.
pub fn what_if_json(result: &WhatIf, version: &str) -> Value {
    let mut document = json!({ "schema": "plimsoll/what-if/v1", "version": version });
    if let (Value::Object(document), Ok(Value::Object(body))) =
        (&mut document, serde_json::to_value(result))
    {
        document.extend(body);
    }
    document
}

/// The answer as a person reads it in 80 columns.
pub fn what_if_text(result: &WhatIf, heading: Heading) -> String {
    let basis = basis(result);
    let mut out = heading.apply(&format!("What if, {basis}"));
    let levers = &result.levers;
    let _ = writeln!(
        out,
        "\ndemand x{} · prompt x{} · output x{} · cache hits x{} · replicas x{} · startup x{} · lost {}\n\n{}\n",
        levers.demand,
        levers.prompt,
        levers.output,
        levers.cache_hit,
        levers.replicas,
        levers.startup,
        levers.lost,
        result.says
    );
    let unknown = || "unknown".to_owned();
    let rows: Vec<Vec<String>> = result
        .rows
        .iter()
        .map(|row| {
            vec![
                format!("{}, {}", row.name.replace('_', " "), row.unit),
                row.demand.map_or_else(unknown, rate),
                row.load_line.map_or_else(unknown, rate),
                row.headroom_pct.map_or_else(unknown, |pct| format!("{pct:+.0}%")),
                row.verdict.map_or_else(unknown, |verdict| verdict.word().to_owned()),
            ]
        })
        .collect();
    let header = ["resource", "demand p95", "load line", "headroom", "verdict"];
    out.push_str(&aligned(&header, &rows, &[1, 2, 3]));
    let rows: Vec<Vec<String>> = result
        .pools
        .iter()
        .map(|pool| {
            vec![
                pool.name.clone(),
                pool.replicas.to_string(),
                pool.needed.map_or_else(unknown, |n| n.to_string()),
                format!("{:.0} s", pool.startup_p90_s),
                pool.usd_per_hour.map_or_else(unknown, |usd| format!("${usd:.2}")),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let header = ["pool", "replicas", "needed, about", "startup p90", "an hour"];
        out.push('\n');
        out.push_str(&aligned(&header, &rows, &[1, 2, 3, 4]));
    }
    let cost = &result.cost;
    let usd = |usd: Option<f64>| usd.map_or_else(unknown, |usd| format!("${usd:.4}"));
    let _ = writeln!(out, "\nA good task at the peak costs {}.", usd(cost.usd_per_good_task));
    for note in &result.notes {
        let _ = writeln!(out, "Note: {note}.");
    }
    out
}

fn basis(result: &WhatIf) -> &'static str {
    match result.basis {
        WhatIfBasis::Approximate => "approximate",
        WhatIfBasis::Simulated => "simulated",
    }
}

/// Good tasks for what is asked, with the demand and the load line.
pub fn what_if_chart(result: &WhatIf) -> Chart {
    let of = |value: fn(&plimsoll_study::WhatIfPoint) -> f64| -> Vec<(f64, f64)> {
        result.curve.iter().map(|point| (point.load, value(point))).collect()
    };
    let mut draw = Draw::new("load, times this demand", "good tasks/s")
        .broken("all good", Ink::Muted, &of(|point| point.offered_per_s))
        .points_line("good tasks/s", Ink::Today, &of(|point| point.goodput_per_s))
        .upright(1.0, "demand", Ink::Demand);
    if let Some(at) = result.line.load {
        draw = draw.upright(at, "load line", Ink::Line);
    }
    let line = result.line.load.map_or_else(
        || "no load line was found".to_owned(),
        |at| format!("load line at {} times this demand", times(at)),
    );
    draw.done(
        "curve",
        &format!("Good tasks for what is asked ({})", basis(result)),
        format!("{line}."),
    )
}
