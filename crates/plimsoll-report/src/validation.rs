//! Predictions held against measurements.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_study::{GroupError, MemoryValidation, PerformanceValidation};
use plimsoll_units::{Bytes, grouped};
use serde_json::{Value, json};

use crate::text::aligned;

/// The validation as a JSON document.
pub fn validation_json(validation: &MemoryValidation) -> Value {
    let mut document = json!({ "schema": "plimsoll/validate/v1" });
    if let (Value::Object(document), Ok(Value::Object(body))) =
        (&mut document, serde_json::to_value(validation))
    {
        document.extend(body);
    }
    document
}

/// The performance validation as a JSON document.
pub fn performance_json(validation: &PerformanceValidation) -> Value {
    let mut document = json!({ "schema": "plimsoll/validate/v1" });
    if let (Value::Object(document), Ok(Value::Object(body))) =
        (&mut document, serde_json::to_value(validation))
    {
        document.extend(body);
    }
    document
}

/// The error table by group.
pub fn performance_text(validation: &PerformanceValidation) -> String {
    let mut out = group_table(&validation.groups);
    let (summary, ranking) = (&validation.summary, &validation.ranking);
    let share = 100.0 * ranking.right as f64 / ranking.pairs.max(1) as f64;
    let _ = writeln!(
        out,
        "\n`dense`, `moe`, `attention-dp`: gaps between tokens (TPOT, or ITL where only that was published) in a closed loop.\n\
         {} cases: {} numbers scored, {} shown only, {} scored ones of which nothing could be said (each counts as 100%)\n\
         of two accelerators more than 20% apart, the faster one is named in {} of {} pairs ({share:.1}%)\n\
         {} constants",
        summary.cases,
        summary.scored,
        summary.not_scored,
        summary.skipped,
        ranking.right,
        ranking.pairs,
        validation.constants
    );
    if validation.in_sample {
        let _ = writeln!(
            out,
            "\nThe constants were fitted to published measurements, so the errors above flatter. Each model and device predicted by a fit that had not seen it:"
        );
        let rows: Vec<Vec<String>> = validation
            .not_seen
            .iter()
            .map(|b| {
                vec![
                    b.name.clone(),
                    b.n.to_string(),
                    format!("{:.1}%", b.median_abs_pct),
                    format!("{:.1}%", b.p90_abs_pct),
                ]
            })
            .collect();
        out += &aligned(&["not seen", "n", "median error", "p90 error"], &rows, &[1, 2, 3]);
        out.push('\n');
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in validation.cases.iter().filter_map(|case| case.skipped.as_deref()) {
        *reasons.entry(reason).or_default() += 1;
    }
    for (reason, n) in reasons {
        let _ = writeln!(out, "not predicted, {n} cases: {reason}");
    }
    out
}

/// Groups and their errors.
pub fn group_table(groups: &[GroupError]) -> String {
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|g| {
            vec![
                g.name.clone(),
                g.n.to_string(),
                format!("{:.1}%", g.median_abs_pct),
                format!("{:.1}%", g.p90_abs_pct),
                format!("{:+.1}%", g.bias_pct),
            ]
        })
        .collect();
    aligned(&["group", "n", "median error", "p90 error", "bias"], &rows, &[1, 2, 3, 4])
}

/// The error table, scored cases first.
pub fn validation_text(validation: &MemoryValidation) -> String {
    let mut cases: Vec<_> = validation.cases.iter().collect();
    cases.sort_by_key(|case| !case.scored);
    let rows: Vec<Vec<String>> = cases
        .iter()
        .map(|case| {
            let show = |x: Option<f64>| match (x, case.unit) {
                (None, _) => "-".to_owned(),
                (Some(x), "tokens") => format!("{} tok", grouped(x as u64)),
                (Some(x), _) => Bytes::new(x as u64).to_string(),
            };
            let error = match (&case.skipped, case.error_pct, case.started) {
                (Some(_), _, _) => "skipped".to_owned(),
                (None, _, false) => {
                    if case.fits == Some(false) { "refused, right" } else { "refused, WRONG" }
                        .to_owned()
                }
                (None, Some(e), true) => format!("{e:+.1}%"),
                (None, None, true) => "-".to_owned(),
            };
            let scored = if case.scored { "yes" } else { "" };
            vec![
                case.id.clone(),
                scored.to_owned(),
                show(case.measured),
                show(case.predicted),
                error,
            ]
        })
        .collect();
    let mut out = aligned(&["case", "scored", "measured", "predicted", "error"], &rows, &[2, 3, 4]);
    let summary = &validation.summary;
    let percent = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.1}%"));
    let _ = writeln!(
        out,
        "\n{} scored: median error {}, p90 {}, worst {}; {} of {} refusals foreseen",
        summary.scored,
        percent(summary.median_abs_pct),
        percent(summary.p90_abs_pct),
        percent(summary.max_abs_pct),
        summary.refusals_right,
        summary.refusals
    );
    if !summary.misses.is_empty() {
        let _ = writeln!(out, "over 15%: {}", summary.misses.join(", "));
    }
    for case in validation.cases.iter().filter(|c| c.skipped.is_some()) {
        let _ =
            writeln!(out, "skipped {}: {}", case.id, case.skipped.as_deref().unwrap_or_default());
    }
    out
}
