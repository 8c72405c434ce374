//! One task across its attempts.

use plimsoll_ledger::{Row, TaskRows};
use plimsoll_units::grouped;
use serde_json::{Map, Value, json};

use crate::text::{Heading, aligned};

/// A task as JSON.
pub fn task_json(task: &TaskRows, id: &str, ledger: &str, version: &str) -> Value {
    let attempts: Vec<Value> = task.rows.iter().map(|row| Value::Object(row.fields())).collect();
    let outcomes: Vec<Value> =
        task.outcomes.iter().map(|row| Value::Object(row.fields())).collect();
    let totals: Map<String, Value> =
        task.totals().into_iter().map(|(name, total)| (name.to_owned(), json!(total))).collect();
    json!({
        "schema": "plimsoll/trace/v1", "version": version, "ledger": ledger,
        "task": id, "found_by": task.found_by,
        "success": task.success(),
        "span_s": task.span().map(|(_, seconds)| seconds),
        "totals": totals, "attempts": attempts, "outcomes": outcomes,
    })
}

/// Columns of the time line.
const LINE_WIDTH: usize = 60;

/// A task as text: every attempt with its tokens, stages and end, then the same along time.
pub fn task_text(task: &TaskRows, id: &str, heading: Heading) -> String {
    let mut out = heading.apply(&format!(
        "{} {id}: {} attempts of {} requests",
        task.found_by.trim_end_matches("_id"),
        task.rows.len(),
        requests(task)
    ));
    out.push('\n');
    out += &format!("outcome: {}\n\n", outcome(task));
    let start = task.span().map(|(first, _)| first);
    let rows: Vec<Vec<String>> = task.rows.iter().map(|row| attempt(row, start)).collect();
    let header = [
        "at", "request", "try", "route", "model", "prompt", "cached", "output", "queue", "prefill",
        "decode", "tools", "ttft", "e2e", "ended", "cost",
    ];
    out += &aligned(&header, &rows, &[0, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15]);
    out.push('\n');
    if let Some((_, seconds)) = task.span().filter(|(_, seconds)| *seconds > 0.0) {
        out += &format!(
            "over {seconds:.3} s: q queue, p prefill, d decode, t tools, = served, stages unknown\n"
        );
        let name =
            |row: &Row| format!("{}#{}", short(row.request_id.as_ref()), row.attempt.unwrap_or(1));
        let width = task.rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
        for row in &task.rows {
            let bar = bar(row, start.unwrap_or(0), seconds);
            out += &format!("  {:width$}  {bar}\n", name(row));
        }
        out.push('\n');
    }
    let totals: Vec<String> = task
        .totals()
        .into_iter()
        .filter_map(|(name, total)| {
            let sum = total.sum?;
            let sum = match name {
                "cost_usd" => format!("${sum:.6}"),
                name if name.ends_with("_tokens") => grouped(sum as u64),
                _ => format!("{sum:.3} s"),
            };
            let of = if total.known == task.rows.len() {
                String::new()
            } else {
                format!(" (of {} of {} attempts)", total.known, task.rows.len())
            };
            let name = name.trim_end_matches("_s").trim_end_matches("_usd").replace('_', " ");
            Some(format!("{name} {sum}{of}"))
        })
        .collect();
    out += &format!("in all: {}\n", totals.join(" · "));
    for row in task.rows.iter().filter(|row| row.error.is_some() || row.limit_dimension.is_some()) {
        let why = [row.error.as_deref(), row.limit_dimension.as_deref()];
        let why: Vec<&str> = why.into_iter().flatten().collect();
        out += &format!(
            "  {}#{}: {}\n",
            short(row.request_id.as_ref()),
            row.attempt.unwrap_or(1),
            why.join(", ")
        );
    }
    out
}

fn requests(task: &TaskRows) -> usize {
    let mut names: Vec<_> = task.rows.iter().map(|row| (&row.source, &row.request_id)).collect();
    names.sort();
    names.dedup();
    names.len()
}

fn outcome(task: &TaskRows) -> String {
    let verdict = match task.success() {
        Some(true) => "success",
        Some(false) => "failure",
        None => return "not known yet".to_owned(),
    };
    let Some(last) = task.outcomes.last() else { return format!("{verdict}, as the log says") };
    let at = last
        .fields()
        .get("ts")
        .and_then(Value::as_str)
        .map_or(String::new(), |ts| format!(" at {ts}"));
    let label = last.label.as_ref().map_or(String::new(), |label| format!(" by {label}"));
    let value = last.value.map_or(String::new(), |value| format!(", worth {value}"));
    format!("{verdict}{label}{at}{value}")
}

fn short(text: Option<&String>) -> String {
    const MOST: usize = 20;
    let text = text.map_or("?", String::as_str);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn attempt(row: &Row, start: Option<i64>) -> Vec<String> {
    let unknown = || "?".to_owned();
    let tokens = |n: Option<u32>| n.map_or_else(unknown, |n| grouped(u64::from(n)));
    let seconds = |s: Option<f64>| s.map_or_else(unknown, |s| format!("{s:.3}"));
    let at = match (row.ts_arrival, start) {
        (Some(at), Some(start)) => format!("+{:.3}", (at - start) as f64 / 1e9),
        _ => unknown(),
    };
    let versioned = |name: &Option<String>, version: &Option<String>| match (name, version) {
        (Some(name), Some(version)) if name != version => format!("{name} ({version})"),
        (Some(name), _) | (None, Some(name)) => name.clone(),
        (None, None) => unknown(),
    };
    let ended = match (&row.status, row.http_status, &row.finish_reason) {
        (Some(status), Some(code), _) if status != "ok" => format!("{status} {code}"),
        (Some(status), _, Some(reason)) => format!("{status}, {reason}"),
        (Some(status), _, None) => status.clone(),
        (None, _, Some(reason)) => reason.clone(),
        (None, _, None) => unknown(),
    };
    vec![
        at,
        short(row.request_id.as_ref()),
        row.attempt.unwrap_or(1).to_string(),
        versioned(&row.route, &row.route_version),
        versioned(&row.model, &row.model_version),
        tokens(row.prompt_tokens),
        tokens(row.cache_read_tokens),
        tokens(row.output_tokens),
        seconds(row.queue_s),
        seconds(row.prefill_s),
        seconds(row.decode_s),
        seconds(row.tool_s),
        seconds(row.ttft_s),
        seconds(row.e2e_s),
        ended,
        row.cost_usd.map_or_else(unknown, |cost| format!("${cost:.6}")),
    ]
}

/// An attempt along the time of its task.
fn bar(row: &Row, start: i64, seconds: f64) -> String {
    let Some(at) = row.ts_arrival else { return "?".to_owned() };
    let place = |s: f64| (s / seconds * LINE_WIDTH as f64).round() as usize;
    let begins = (at - start) as f64 / 1e9;
    let mut bar = " ".repeat(place(begins));
    let mut now = begins;
    let mut stage = |length: Option<f64>, mark: char, bar: &mut String| {
        let Some(length) = length else { return };
        now += length;
        let end = place(now).min(LINE_WIDTH);
        while bar.chars().count() < end {
            bar.push(mark);
        }
    };
    stage(row.queue_s, 'q', &mut bar);
    stage(row.prefill_s, 'p', &mut bar);
    stage(row.decode_s, 'd', &mut bar);
    stage(row.tool_s, 't', &mut bar);
    let known: f64 = [row.queue_s, row.prefill_s, row.decode_s, row.tool_s].iter().flatten().sum();
    stage(row.e2e_s.map(|e2e| (e2e - known).max(0.0)), '=', &mut bar);
    if row.status.as_deref().is_some_and(|status| status != "ok") {
        bar.push('x');
    } else if bar.trim().is_empty() {
        bar.push('|');
    }
    bar
}
