//! `docs/reference/scenario.md`, written from the declarations.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::read::{Presence, Shape, TableSpec, Value};
use crate::schema::sentence;
use crate::sections::Scenario;

/// The reference of every table and key, as Markdown.
pub fn scenario_reference() -> String {
    let mut out = String::from(
        "# The scenario file\n\n\
         Generated from the declarations in `crates/plimsoll-scenario/src/sections` by `PLIMSOLL_UPDATE=1 cargo test -p plimsoll references`; the test fails\n\
         when it is stale. `plimsoll schema` prints the same as a JSON Schema, `plimsoll explain FILE` the value\n\
         and origin of every key of a file.\n\n\
         A scenario is TOML. Quantities carry their unit: `\"400ms\"`, `\"40 req/s\"`, `\"80GiB\"`, `\"$2.50/h\"`,\n\
         `\"$0.15/Mtok\"`, `\"55%\"`. A distribution is a single value or a table: `{ p50 = 900, p95 = 4200 }`,\n\
         `{ mean = 900, cv = 1.2 }`, `{ min = 100, max = 200 }`, `{ values = [1, 2], weights = [3, 1] }` or\n\
         `{ mixture = [{ … }, { … }], weights = [9, 1] }`, each with an optional `min` and `max`.\n",
    );
    let mut written = BTreeSet::new();
    if let Shape::Table(spec) = Scenario::shape() {
        table(&spec(), &mut out, &mut written);
    }
    out.push_str("\n## Profiles\n\n| profile | describes | source | date |\n|---|---|---|---|\n");
    for p in crate::profiles::profiles() {
        let _ = writeln!(out, "| `{}` | {} | {} | {} |", p.name, p.title, p.source, p.as_of);
    }
    out
}

fn table(spec: &TableSpec, out: &mut String, written: &mut BTreeSet<&'static str>) {
    if !written.insert(spec.name) {
        return;
    }
    let _ = write!(out, "\n## `{}`\n\n{}\n\n", spec.name, sentence(spec.doc));
    out.push_str("| key | value | without it | meaning |\n|---|---|---|---|\n");
    for key in &spec.keys {
        let absent = match key.presence {
            Presence::Required => "**required**".to_owned(),
            Presence::Default { toml, why } => format!("`{}`: {why}", toml.replace('\'', "\"")),
            Presence::Optional { absent } => absent.to_owned(),
        };
        let cells = [format!("`{}`", key.name), describe(&key.shape), absent, sentence(key.doc)];
        let _ = writeln!(out, "| {} |", cells.map(|c| c.replace('|', "\\|")).join(" | "));
    }
    for key in &spec.keys {
        inner_tables(&key.shape, out, written);
    }
}

fn inner_tables(shape: &Shape, out: &mut String, written: &mut BTreeSet<&'static str>) {
    match shape {
        Shape::Table(spec) => {
            let spec = spec();
            // Distributions and ranges are explained once, at the top.
            if !["tokens", "durations", "counts", "range"].contains(&spec.name) {
                table(&spec, out, written);
            }
        }
        Shape::List(inner) | Shape::Map(inner) => inner_tables(inner, out, written),
        Shape::Either(shapes) => shapes.iter().for_each(|s| inner_tables(s, out, written)),
        _ => {}
    }
}

fn describe(shape: &Shape) -> String {
    match shape {
        Shape::Quantity { noun, examples, .. } => format!("{noun}: {examples}"),
        Shape::Integer { min, max } if *max > 1 << 60 => format!("a whole number from {min}"),
        Shape::Integer { min, max } => format!("a whole number, {min} to {max}"),
        Shape::Number => "a number".to_owned(),
        Shape::Boolean => "`true` or `false`".to_owned(),
        Shape::Text { noun } => match *noun {
            "text" => "text".to_owned(),
            "name" => "a name".to_owned(),
            noun => format!("text: {noun}"),
        },
        Shape::Choice(words) => {
            words.iter().map(|w| format!("`\"{w}\"`")).collect::<Vec<_>>().join(", ")
        }
        Shape::Moment => "a date, or a date and time".to_owned(),
        Shape::List(inner) => format!("a list of {}", describe(inner)),
        Shape::Map(inner) => format!("a table of {}", describe(inner)),
        Shape::Table(spec) => match spec().name {
            "tokens" | "durations" | "counts" => "a distribution".to_owned(),
            "range" => "`{ low = …, likely = …, high = … }`".to_owned(),
            name => format!("table `{name}`"),
        },
        Shape::Either(shapes) => shapes.iter().map(describe).collect::<Vec<_>>().join("; or "),
        Shape::Any => "anything".to_owned(),
    }
}
