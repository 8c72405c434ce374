//! What to assume the next time.

use std::fmt::Write as _;

use plimsoll_units::PerSecond;

use super::assumptions::Values;
use super::result::{NextClass, NextLevels, NextValues};
use super::series::missed;
use super::service::{find, success_rate};
use super::{Overlap, ratio};
use crate::names::class_name;
use crate::profile::{duration, length, short};

/// A mean that has moved by more is not the distribution that was assumed.
const MOVED: f64 = 0.10;
/// With more requests for each task than this, rates of both are told apart.
const SEVERAL: f64 = 1.05;
const WEEK_S: f64 = 7.0 * 86_400.0;
/// Weeks are whole where no more of them is too much, too little or missing.
const SLACK: f64 = 0.02;
/// What all classes together are called, in a ledger and a forecast. It is no class of a scenario.
const ALL: &str = "all";

pub(super) fn next(overlap: &Overlap<'_>, values: &[Values<'_>]) -> NextValues {
    let classes: Vec<NextClass> = values.iter().map(|own| next_class(overlap, own)).collect();
    NextValues { toml: toml(overlap, values, &classes), classes, levels: levels(overlap) }
}

fn next_class(overlap: &Overlap<'_>, own: &Values<'_>) -> NextClass {
    let after = overlap.input.after;
    // Where all together are one class, what is known of all is known of it.
    let service = find(after, own.name).or_else(|| find(after, own.key));
    let tasks = service.filter(|service| service.tasks > 0.0);
    let tasks = tasks.and_then(|service| ratio(service.tasks, service.requests));
    NextClass {
        class: own.name.map(str::to_owned),
        rate: own.rate.actual,
        tasks_rate: own.rate.actual.zip(tasks).map(|(rate, tasks)| rate * tasks),
        prompt_mean: own.prompt.actual,
        prompt_assumed: own.prompt.assumed,
        output_mean: own.output.actual,
        output_assumed: own.output.assumed,
        cache_hit: own.cached.actual,
        attempts: service.and_then(super::service::attempts_per_request),
        success_rate: service.and_then(success_rate),
    }
}

/// The keys of `[[class]]` that were measured. Lengths of a scenario are distributions, and a mean is none: they are said beside.
fn toml(overlap: &Overlap<'_>, values: &[Values<'_>], classes: &[NextClass]) -> String {
    let mut out = String::new();
    let mut names: Vec<String> = Vec::new();
    for (own, class) in values.iter().zip(classes) {
        if !out.is_empty() {
            out.push('\n');
        }
        let keys = keys(overlap, own, class);
        let Some(name) = own.name.filter(|name| *name != ALL) else {
            out.push_str("# all classes together\n");
            for line in keys.lines() {
                let mark = if line.starts_with('#') { "" } else { "# " };
                let _ = writeln!(out, "{mark}{line}");
            }
            continue;
        };
        let name = class_name(name, &names);
        let _ = writeln!(out, "[[class]]\nname = \"{name}\"");
        out.push_str(&keys);
        names.push(name);
    }
    out
}

fn keys(overlap: &Overlap<'_>, own: &Values<'_>, class: &NextClass) -> String {
    let mut out = String::new();
    match class.rate.and_then(PerSecond::new) {
        Some(came) if came.get() > 0.0 => rate(&mut out, overlap, own, class, came),
        Some(_) => out.push_str("# rate: no request came.\n"),
        None => out.push_str("# rate: not known.\n"),
    }
    let shares = [("cache_hit", class.cache_hit), ("success_rate", class.success_rate)];
    for (key, share) in shares {
        if let Some(share) = share {
            let _ = writeln!(out, "{key} = {}", fraction(share));
        }
    }
    mean(&mut out, "prompt", class.prompt_mean, class.prompt_assumed);
    mean(&mut out, "output", class.output_mean, class.output_assumed);
    out
}

/// The rate of a scenario is the average of a week. What was seen of another time says by how much to correct it.
fn rate(
    out: &mut String,
    overlap: &Overlap<'_>,
    own: &Values<'_>,
    class: &NextClass,
    came: PerSecond,
) {
    let tasks = several(class, came);
    if whole_weeks(overlap) {
        let _ = writeln!(out, "rate = \"{came}\"");
        if let Some((each, tasks)) = tasks {
            let _ = writeln!(
                out,
                "# That counts requests, {each} for each task: with `stages`, `agent` or `sessions` write `rate = \"{tasks}\"`.",
            );
        }
        return;
    }
    let seen = overlap.steps - overlap.missing();
    let seen = duration(seen as f64 * f64::from(overlap.step_s));
    let forecast = match own.rate.assumed.and_then(|assumed| ratio(came.get(), assumed)) {
        Some(times) if short(times) == "1" => ", as was forecast for them: keep yours".to_owned(),
        Some(times) => {
            let times = if times < 0.1 { format!("{times:.1e}") } else { short(times) };
            format!(", {times} times what was forecast for them: multiply yours by {times}")
        }
        None => "; nothing was forecast".to_owned(),
    };
    let _ = writeln!(out, "# rate: {came} over the {seen} that were seen{forecast}.");
    if let Some((each, tasks)) = tasks {
        let _ = writeln!(
            out,
            "# That counts requests, {each} for each task: with `stages`, `agent` or `sessions` a rate counts tasks, of which {tasks} came.",
        );
    }
}

/// Whether the steps are whole weeks, of which next to nothing is missing.
fn whole_weeks(overlap: &Overlap<'_>) -> bool {
    let weeks = overlap.steps as f64 * f64::from(overlap.step_s) / WEEK_S;
    let whole = weeks.round().max(1.0);
    let missing = overlap.missing() as f64 / overlap.steps as f64;
    (weeks / whole - 1.0).abs() <= SLACK && missing <= SLACK
}

/// Where tasks have several requests, how many each has, and the rate of tasks: that of a scenario may be of either.
fn several(class: &NextClass, rate: PerSecond) -> Option<(String, PerSecond)> {
    let tasks = class.tasks_rate.and_then(PerSecond::new).filter(|tasks| tasks.get() > 0.0)?;
    let each = rate.get() / tasks.get();
    (each > SEVERAL).then(|| (short(each), tasks))
}

fn mean(out: &mut String, key: &str, came: Option<f64>, assumed: Option<f64>) {
    let Some(came) = came else { return };
    let tokens = length(came);
    let Some((assumed, times)) = assumed.and_then(|assumed| Some((assumed, ratio(came, assumed)?)))
    else {
        let _ = writeln!(out, "# {key}: {tokens} tokens on average; nothing was assumed.");
        return;
    };
    let moved = times - 1.0;
    let advice = if moved.abs() > MOVED {
        "; measure it again with `plimsoll profile --to-scenario`"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "# {key}: {tokens} tokens on average, where {} were assumed ({:+.0} %){advice}.",
        length(assumed),
        100.0 * moved + 0.0
    );
}

/// Three digits after the point, without zeros at the end.
fn fraction(share: f64) -> String {
    let text = format!("{:.3}", share.clamp(0.0, 1.0));
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

fn levels(overlap: &Overlap<'_>) -> Vec<NextLevels> {
    let mut memory = overlap.input.memory.clone();
    for (class, quantity) in overlap.published() {
        let paired = overlap.paired(class, quantity);
        let steps = paired.at.len();
        if steps > 0 {
            let shares = missed(&paired).map(|missed| missed / steps as f64);
            memory.learn(class, quantity, shares, steps);
        }
    }
    memory
        .iter()
        .map(|(class, quantity, levels)| NextLevels {
            class: class.map(str::to_owned),
            resource: quantity.name(),
            levels,
        })
        .collect()
}
