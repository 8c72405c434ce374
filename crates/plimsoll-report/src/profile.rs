//! What a log says of a demand: a screen and a document.

mod class;
mod series;
mod words;

use std::fmt::Write as _;

use plimsoll_study::Profile;
use serde_json::{Value, json};

pub(crate) use words::{item, many};

use crate::text::Heading;

/// What was profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileHead<'a> {
    /// The ledger or the trace, as the user named it.
    pub source: &'a str,
    /// What it is written in, where it is no ledger.
    pub format: Option<&'a str>,
    /// What tells classes apart, such as `route`.
    pub classes_by: Option<&'a str>,
    /// The first arrival, as people write a moment.
    pub from: Option<&'a str>,
    /// The last one.
    pub to: Option<&'a str>,
    /// For what was drawn by chance.
    pub seed: u64,
}

/// The profile as a JSON document.
pub fn profile_json(profile: &Profile, head: &ProfileHead<'_>, version: &str) -> Value {
    let mut value = json!({
        "schema": "plimsoll/profile/v1", "version": version, "source": head.source, "format": head.format,
        "classes_by": head.classes_by, "from": head.from, "to": head.to, "seed": head.seed,
    });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(profile))
    {
        value.extend(body);
    }
    value
}

/// The profile in words and bars: all rows first, then what other classes have of their own, then what follows.
pub fn profile_text(profile: &Profile, head: &ProfileHead<'_>, heading: Heading) -> String {
    let mut out = heading.apply(head.source);
    let mut facts: Vec<String> = Vec::new();
    facts.extend(head.format.map(str::to_owned));
    match (head.from, head.to) {
        (Some(from), Some(to)) => facts.push(format!("{from} to {to}")),
        (Some(one), None) | (None, Some(one)) => facts.push(one.to_owned()),
        (None, None) => facts.push("no dates".to_owned()),
    }
    facts.extend(head.classes_by.map(|by| format!("classes by {by}")));
    facts.push(format!("seed {}", head.seed));
    let _ = writeln!(out, "\n{}", facts.join(" · "));
    if profile.classes.is_empty() && profile.series.is_none() {
        out.push_str("\nno rows\n");
    }
    for (i, class) in profile.classes.iter().enumerate() {
        out.push('\n');
        out.push_str(&if i == 0 {
            class::full(class, heading)
        } else {
            class::short(class, heading)
        });
    }
    if let Some(own) = &profile.series {
        out.push('\n');
        out.push_str(&series::text(own, heading));
    }
    if !profile.findings.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("What averages do not say:"));
        profile.findings.iter().for_each(|f| out.push_str(&words::item(&f.sentence)));
    }
    if !profile.warnings.is_empty() {
        out.push_str("\nTo know before trusting a number:\n");
        profile.warnings.iter().for_each(|warning| out.push_str(&words::item(warning)));
    }
    out
}

#[cfg(test)]
mod tests;
