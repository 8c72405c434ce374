//! What has changed since another plan, and why: every number of both, and the assumptions that differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::number;

/// A number that is another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changed {
    /// Where it is, such as `pools.chat.replicas.steady`.
    pub path: String,
    /// What it was; none where it was not there.
    pub was: Value,
    /// What it is; none where it is no longer there.
    pub is: Value,
    /// What it is of: `plan` or `assumption`.
    pub kind: &'static str,
    /// Assumptions that differ and concern it; all of them where none does by its name.
    pub because: Vec<String>,
}

/// Paths that are told apart: what a plan decides. Hour by hour there would be too many to read.
const TOLD: [&str; 9] =
    ["feasible", "pools", "resources", "cliff", "fleet", "losses", "budget", "limits", "scaling"];
/// Reasons that are told of a number.
const FEW: usize = 4;
/// Too many of a kind to be told one by one.
const NOT_TOLD: [&str; 6] = ["why", "by_hour", "proof", "check", "notes", "says"];

/// What has changed from one document to another.
pub fn changes(was: &Value, is: &Value) -> Vec<Changed> {
    let assumptions = |document: &Value| -> BTreeMap<String, (Value, String)> {
        let all =
            document.get("assumptions").and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter()
            .filter_map(|own| {
                let source = own.get("source")?.as_str().unwrap_or_default().to_owned();
                Some((own.get("name")?.as_str()?.to_owned(), (own.get("value")?.clone(), source)))
            })
            .collect()
    };
    let (before, after) = (assumptions(was), assumptions(is));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let mut assumed = Vec::new();
    for name in names {
        let (own, other) = (before.get(name), after.get(name));
        if own.map(|o| &o.0) != other.map(|o| &o.0) {
            assumed.push(Changed {
                path: name.clone(),
                was: own.map_or(Value::Null, |o| o.0.clone()),
                is: other.map_or(Value::Null, |o| o.0.clone()),
                kind: "assumption",
                because: Vec::new(),
            });
        }
    }
    for key in ["as_of", "seed", "version"] {
        if was.get(key) != is.get(key) {
            assumed.push(Changed {
                path: key.to_owned(),
                was: was.get(key).cloned().unwrap_or(Value::Null),
                is: is.get(key).cloned().unwrap_or(Value::Null),
                kind: "assumption",
                because: Vec::new(),
            });
        }
    }
    let (mut one, mut other) = (BTreeMap::new(), BTreeMap::new());
    for key in TOLD {
        flat(key, was.get(key).unwrap_or(&Value::Null), &mut one);
        flat(key, is.get(key).unwrap_or(&Value::Null), &mut other);
    }
    let mut paths: Vec<&String> = one.keys().chain(other.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut all = assumed.clone();
    for path in paths {
        let (was, is) = (one.get(path), other.get(path));
        let printed = |value: Option<&Value>| value.map(shown);
        if same(was, is) || printed(was) == printed(is) {
            continue;
        }
        all.push(Changed {
            path: path.clone(),
            was: was.cloned().unwrap_or(Value::Null),
            is: is.cloned().unwrap_or(Value::Null),
            kind: "plan",
            because: because(path, &assumed),
        });
    }
    all
}

/// What is not worth telling apart: less than a millionth.
fn same(was: Option<&Value>, is: Option<&Value>) -> bool {
    match (was.and_then(Value::as_f64), is.and_then(Value::as_f64)) {
        (Some(was), Some(is)) => (was - is).abs() <= 1e-6 * was.abs().max(is.abs()),
        _ => was == is,
    }
}

/// Assumptions of the same pool or class, or else all of them.
fn because(path: &str, assumed: &[Changed]) -> Vec<String> {
    let said = |own: &Changed| format!("{}: {} -> {}", own.path, shown(&own.was), shown(&own.is));
    let parts: Vec<&str> = path.split('.').collect();
    let named = parts.get(1).copied().unwrap_or_default();
    let close = assumed.iter().filter(|own| {
        let general = own.path.starts_with("study.")
            || own.path.starts_with("event")
            || own.path.starts_with("class")
            || !own.path.contains('.');
        general || own.path.split('.').any(|part| part == named)
    });
    let close: Vec<String> = close.map(said).collect();
    if close.is_empty() { assumed.iter().map(said).collect() } else { close }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), number),
        other => other.to_string(),
    }
}

/// Every leaf by its path; members of lists by what they are called.
fn flat(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter().filter(|(key, _)| !NOT_TOLD.contains(&key.as_str()))
            {
                flat(&format!("{path}.{key}"), value, into);
            }
        }
        Value::Array(members) => {
            for (i, value) in members.iter().enumerate() {
                let name = ["name", "pool", "class", "tenant", "kind"]
                    .iter()
                    .find_map(|key| value.get(key)?.as_str());
                let name = name.map_or_else(|| i.to_string(), |name| name.replace('.', "_"));
                flat(&format!("{path}.{name}"), value, into);
            }
        }
        // Words are told by the numbers that they are about.
        Value::Number(_) | Value::Bool(_) => {
            into.insert(path.to_owned(), value.clone());
        }
        Value::Null | Value::String(_) => {}
    }
}

/// What has changed, for people.
pub fn against_text(changed: &[Changed]) -> String {
    let mut out = String::new();
    if changed.is_empty() {
        out.push_str("Nothing has changed since the other plan.\n");
        return out;
    }
    let (assumed, planned): (Vec<&Changed>, Vec<&Changed>) =
        changed.iter().partition(|own| own.kind == "assumption");
    let _ = writeln!(
        out,
        "since the other plan: {} assumptions and {} numbers have changed",
        assumed.len(),
        planned.len()
    );
    for own in &assumed {
        let _ = writeln!(out, "  assumed  {}: {} -> {}", own.path, shown(&own.was), shown(&own.is));
    }
    let mut last: Option<&[String]> = None;
    for own in &planned {
        let _ = writeln!(out, "  {}: {} -> {}", own.path, shown(&own.was), shown(&own.is));
        if last != Some(&own.because) && !own.because.is_empty() {
            let more = own.because.len().saturating_sub(FEW);
            let few = own.because.iter().take(FEW).cloned().collect::<Vec<_>>().join("; ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(out, "    may be due to {few}{more}");
        }
        last = Some(&own.because);
    }
    if assumed.is_empty() {
        out.push_str("  No assumption differs: the model itself is another version, or the demand of the ledger has moved.\n");
    }
    out
}
