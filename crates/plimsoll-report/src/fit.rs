//! The memory budget, drawn to scale.

use std::fmt::Write as _;

use plimsoll_study::{BudgetLine, Fit, ObservedLine};
use plimsoll_units::{Bytes, grouped};
use serde_json::{Value, json};

use crate::text::{Heading, aligned};

/// One pool's budget as a document; several as a list of them.
pub fn fit_json(fits: &[Fit]) -> Value {
    let mut document = json!({ "schema": "plimsoll/fit/v1" });
    let Value::Object(map) = &mut document else { return document };
    match fits {
        [one] => {
            if let Ok(Value::Object(body)) = serde_json::to_value(one) {
                map.extend(body);
            }
        }
        several => {
            map.insert("fits".to_owned(), json!(several.iter().all(|fit| fit.fits)));
            map.insert("pools".to_owned(), serde_json::to_value(several).unwrap_or_default());
        }
    }
    document
}

/// The budget of each pool.
pub fn fit_text(fits: &[Fit], heading: Heading) -> String {
    fits.iter().map(|fit| pool_text(fit, heading)).collect::<Vec<_>>().join("\n")
}

/// Letters of the bar, in the order of the lines.
const MARKS: [(&str, char); 14] = [
    ("vocabulary", 'v'),
    ("layers", 'w'),
    ("experts", 'x'),
    ("draft layers", 'd'),
    ("vision tower", 'i'),
    ("adapters", 'l'),
    ("activation", 'a'),
    ("libraries", 'n'),
    ("collectives", 'c'),
    ("graphs", 'g'),
    ("margin", 'm'),
    ("kv cache", 'K'),
    ("fragmentation", 'f'),
    ("left to others", '.'),
];

fn pool_text(fit: &Fit, heading: Heading) -> String {
    let mut out = heading.apply(&fit.name);
    let verdict = if fit.fits { "fits" } else { "DOES NOT FIT" };
    let device = Bytes::new(fit.device_bytes);
    let _ = writeln!(out, ": {verdict} on {} x {device}, each holding", plural(fit.devices));
    let _ = writeln!(out, "\n  [{}]\n", bar(fit, 64));
    let rows: Vec<Vec<String>> = fit
        .budget
        .iter()
        .map(|line| {
            let mark =
                MARKS.iter().find(|(name, _)| *name == line.name).map_or('!', |(_, mark)| *mark);
            let share = line.bytes as f64 / fit.device_bytes.max(1) as f64 * 100.0;
            vec![
                format!("  {mark}  {}", line.name),
                signed(line.bytes),
                format!("{share:.1}%"),
                says(line).to_owned(),
            ]
        })
        .collect();
    out.push_str(&aligned(&["     part", "per device", "share", ""], &rows, &[1, 2]));
    let _ = writeln!(out);
    if fit.fits {
        let _ = writeln!(
            out,
            "  KV for {} tokens a replica; the engine prints {}",
            grouped(fit.kv_tokens),
            grouped(fit.printed_kv_tokens)
        );
        let _ = writeln!(
            out,
            "  {:.1} sequences of the longest context, {} tokens; one more GiB holds {} tokens",
            fit.max_concurrency_at_max_len,
            grouped(fit.max_model_len_tokens),
            grouped(fit.tokens_per_gib)
        );
    } else if fit.missing_bytes > 0 {
        let _ = writeln!(
            out,
            "  {} are missing before the first token of context",
            Bytes::new(fit.missing_bytes)
        );
    } else {
        let _ = writeln!(
            out,
            "  KV for {} tokens, but one context may have {}",
            grouped(fit.kv_tokens),
            grouped(fit.max_model_len_tokens)
        );
    }
    let _ = writeln!(
        out,
        "  with max_num_seqs {}, max_num_batched_tokens {}, memory fraction {:.3}",
        grouped(fit.max_num_seqs),
        grouped(fit.max_num_batched_tokens),
        fit.memory_fraction
    );
    for context in &fit.contexts {
        let _ = writeln!(
            out,
            "  `{}`: {} at once at its median context of {} tokens, {} at p95 ({}), {} at the longest drawn ({})",
            context.class,
            grouped(context.concurrency_p50),
            grouped(context.context_p50_tokens),
            grouped(context.concurrency_p95),
            grouped(context.context_p95_tokens),
            grouped(context.concurrency_max),
            grouped(context.context_max_tokens)
        );
    }
    for context in fit.contexts.iter().filter(|c| c.context_max_tokens > fit.max_model_len_tokens) {
        let _ = writeln!(
            out,
            "  contexts of `{}` reach {} tokens; the engine refuses those over {}",
            context.class,
            grouped(context.context_max_tokens),
            grouped(fit.max_model_len_tokens)
        );
    }
    if !fit.observed.is_empty() {
        let show = |line: &ObservedLine, n: Option<u64>| match (n, line.unit) {
            (Some(n), Some("tokens")) => grouped(n),
            (Some(n), _) => Bytes::new(n).to_string(),
            (None, _) => "-".to_owned(),
        };
        let rows: Vec<Vec<String>> = fit
            .observed
            .iter()
            .filter(|line| line.refusal.is_none())
            .map(|line| {
                let error = line.error_pct.map_or_else(|| "-".to_owned(), |e| format!("{e:+.1}%"));
                vec![
                    format!("  {}", line.name),
                    show(line, line.observed),
                    show(line, line.predicted),
                    error,
                ]
            })
            .collect();
        let _ = writeln!(out);
        out.push_str(&aligned(
            &["  the engine says", "observed", "predicted", "off"],
            &rows,
            &[1, 2, 3],
        ));
        for refusal in fit.observed.iter().filter_map(|line| line.refusal.as_ref()) {
            let _ = writeln!(out, "  refused: {refusal}");
        }
    }
    for change in &fit.would_fit {
        let _ = writeln!(
            out,
            "  `{}` would fit, with KV for {} tokens",
            change.change,
            grouped(change.kv_tokens)
        );
    }
    out
}

fn plural(devices: u64) -> String {
    if devices == 1 { "1 device".to_owned() } else { format!("{} devices", grouped(devices)) }
}

fn signed(bytes: i64) -> String {
    let size = Bytes::new(bytes.unsigned_abs());
    if bytes < 0 { format!("-{size}") } else { size.to_string() }
}

fn says(line: &BudgetLine) -> &'static str {
    match line.provenance {
        plimsoll_study::Provenance::Modeled => "modelled",
        _ => "exact",
    }
}

/// The parts to scale; what is at least a five-hundredth of the device gets a mark.
fn bar(fit: &Fit, width: usize) -> String {
    let total: f64 = fit.budget.iter().map(|l| l.bytes.max(0) as f64).sum();
    let mut out = String::new();
    let visible = |l: &&BudgetLine| l.bytes as f64 * 500.0 >= total.max(1.0);
    for line in fit.budget.iter().filter(visible) {
        let mark = MARKS.iter().find(|(name, _)| *name == line.name).map_or('!', |(_, mark)| *mark);
        let share = (line.bytes as f64 / total.max(1.0) * width as f64).round().max(1.0) as usize;
        out.extend(std::iter::repeat_n(mark, share));
    }
    out
}

/// The same pool in several shapes.
pub fn compare_text(rows: &[(String, Fit)]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|(name, fit)| {
            vec![
                name.clone(),
                if fit.fits { "yes" } else { "NO" }.to_owned(),
                fit.devices.to_string(),
                Bytes::new(fit.weights_bytes).to_string(),
                Bytes::new(fit.available_kv_bytes).to_string(),
                grouped(fit.kv_tokens),
                format!("{:.1}", fit.max_concurrency_at_max_len),
            ]
        })
        .collect();
    aligned(
        &["", "fits", "devices", "weights", "KV", "KV tokens", "at full context"],
        &rows,
        &[2, 3, 4, 5, 6],
    )
}
