//! What an ingest has done.

use plimsoll_ledger::{Ingested, Reason};
use serde_json::{Value, json};

use crate::text::{Heading, aligned};

/// An ingest as JSON.
pub fn ingest_json(done: &Ingested, ledger: &str, version: &str) -> Value {
    let mut value = json!({ "schema": "plimsoll/ingest/v1", "version": version, "ledger": ledger });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(done))
    {
        value.extend(body);
    }
    value
}

/// Files that are listed; beyond, they are only counted.
const FILES_SHOWN: usize = 40;
/// Reasons that are listed for a file.
const REASONS_SHOWN: usize = 5;

/// An ingest as text.
pub fn ingest_text(done: &Ingested, ledger: &str, heading: Heading) -> String {
    let count = plimsoll_units::grouped;
    let mut out = String::new();
    let lines = lines(done);
    let rows: Vec<Vec<String>> = lines
        .iter()
        .take(FILES_SHOWN)
        .map(|line| {
            let mut cells = vec![line.name.clone(), line.format.clone()];
            cells.extend(line.counts.iter().map(|n| count(*n)));
            cells
        })
        .collect();
    let header = ["file", "format", "read", "added", "rejected", "duplicates", "passed over"];
    out += &aligned(&header, &rows, &[2, 3, 4, 5, 6]);
    if lines.len() > FILES_SHOWN {
        out += &format!("… and {} more files\n", lines.len() - FILES_SHOWN);
    }
    out.push('\n');
    out += &heading.apply(&format!(
        "{}: {} rows read, {} added ({} requests, {} outcomes, {} windows of series), {} rejected, {} duplicates, {} passed over",
        ledger,
        count(done.rows_in),
        count(done.rows_added),
        count(done.requests_added),
        count(done.outcomes_added),
        count(done.series_added),
        count(done.rejected),
        count(done.duplicates),
        count(done.passed_over),
    ));
    out += &format!("\n{} requests are in the ledger now.\n", count(done.requests_in_ledger));
    let rejected = done.files.iter().filter(|f| !f.reasons.is_empty());
    for file in rejected.take(FILES_SHOWN) {
        for reason in file.reasons.iter().take(REASONS_SHOWN) {
            out += &format!("  rejected: {}\n", why(&file.file, reason));
        }
        if file.reasons.len() > REASONS_SHOWN {
            let more = file.reasons.len() - REASONS_SHOWN;
            out += &format!("  … and {more} more reasons in {}\n", file.file);
        }
    }
    for file in &done.files {
        for (what, rows) in &file.passed_over {
            out += &format!("  passed over: {}: {} {what}\n", file.file, count(*rows));
        }
    }
    for warning in done.warnings.iter().take(FILES_SHOWN) {
        out += &format!("  note: {warning}\n");
    }
    if done.warnings.len() > FILES_SHOWN {
        out += &format!(
            "  … and {} more notes (`--json` has them all)\n",
            done.warnings.len() - FILES_SHOWN
        );
    }
    if done.rejected > 0 {
        out += &format!(
            "Every rejected row is in {ledger}/rejects.parquet, with its line and its reason.\n"
        );
    }
    out
}

/// A line of the table: a file, or an archive with all that is in it.
struct Line {
    name: String,
    format: String,
    counts: [u64; 5],
}

fn lines(done: &Ingested) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut members: Vec<u64> = Vec::new();
    for file in &done.files {
        let passed: u64 = file.passed_over.values().sum();
        let counts = [file.rows_in, file.rows_added, file.rejected, file.duplicates, passed];
        let member = file.file.split_once(':').filter(|(_, rest)| !rest.starts_with("//"));
        let archive = member.map_or(file.file.as_str(), |(archive, _)| archive);
        let same = lines.last_mut().filter(|line| line.name == archive && archive != file.file);
        if let (Some(line), Some(files)) = (same, members.last_mut()) {
            line.counts.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
            *files += 1;
            if line.format != file.format {
                "several".clone_into(&mut line.format);
            }
        } else {
            lines.push(Line { name: archive.to_owned(), format: file.format.clone(), counts });
            members.push(1);
        }
    }
    for (line, files) in lines.iter_mut().zip(members) {
        if files > 1 {
            line.name = format!("{} ({} files)", line.name, plimsoll_units::grouped(files));
        }
    }
    lines
}

fn why(file: &str, reason: &Reason) -> String {
    let field = reason.field.as_ref().map_or(String::new(), |field| format!("`{field}` "));
    let first = format!("{file}:{}: {field}{}", reason.line, reason.reason);
    match reason.rows {
        1 => first,
        n => format!("{first}, and {} more like it", n - 1),
    }
}
