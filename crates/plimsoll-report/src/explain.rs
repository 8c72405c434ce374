//! The effective scenario, each value with its origin.

use plimsoll_scenario::{Entry, Origin};
use serde_json::{Value, json};

use crate::text::{Heading, table};

/// Every value with its origin, each table once, in the order of the file's sections.
pub fn explain_text(entries: &[Entry], heading: Heading) -> String {
    let mut groups: Vec<(&str, Vec<Vec<String>>)> = Vec::new();
    for entry in entries {
        let (group, key) = entry.path.rsplit_once('.').unwrap_or(("scenario", &entry.path));
        let value = if entry.value.is_empty() { "-".to_owned() } else { shorten(&entry.value) };
        let row = vec![format!("  {key}"), value, origin(&entry.origin)];
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    let shown: Vec<String> = groups
        .iter()
        .map(|(name, rows)| {
            // The header row is empty: the table's own name stands in its place.
            format!("{}{}", heading.apply(&format!("[{name}]")), table(&["", "", ""], rows))
        })
        .collect();
    shown.join("\n")
}

/// Long lists are for the file, not for a column.
fn shorten(value: &str) -> String {
    let mut chars = value.chars();
    let head: String = chars.by_ref().take(60).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

fn origin(origin: &Origin) -> String {
    match origin {
        Origin::File { file, line } => format!("{file}:{line}"),
        Origin::CommandLine { option } => format!("command line: {option}"),
        Origin::Default { why } => format!("default: {why}"),
        Origin::Profile { name, as_of } => format!("profile `{name}` of {as_of}"),
        Origin::Catalog { entry, as_of } => format!("catalogue: {entry}, {as_of}"),
        Origin::Absent { meaning } => format!("not given: {meaning}"),
    }
}

/// The same as a JSON document.
pub fn explain_json(file: &str, entries: &[Entry]) -> Value {
    let values: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let value = if entry.value.is_empty() { Value::Null } else { json!(entry.value) };
            let origin = match &entry.origin {
                Origin::File { file, line } => {
                    json!({ "kind": "file", "file": file, "line": line })
                }
                Origin::CommandLine { option } => {
                    json!({ "kind": "command_line", "option": option })
                }
                Origin::Default { why } => json!({ "kind": "default", "why": why }),
                Origin::Profile { name, as_of } => {
                    json!({ "kind": "profile", "name": name, "date": as_of })
                }
                Origin::Catalog { entry, as_of } => {
                    json!({ "kind": "catalog", "entry": entry, "date": as_of })
                }
                Origin::Absent { meaning } => json!({ "kind": "absent", "meaning": meaning }),
            };
            json!({ "path": entry.path, "value": value, "origin": origin })
        })
        .collect();
    json!({ "schema": "plimsoll/explain/v1", "file": file, "values": values })
}
