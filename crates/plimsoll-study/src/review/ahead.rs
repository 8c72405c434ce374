//! The demand hour by hour against the load line: the forecast's fan.

use plimsoll_workload::{Class, Shift};
use serde::Serialize;

use crate::plan::expected::{digits, per_s};
use crate::plan::{Plan, Reach};
use plimsoll_load::{Demand, Resource};

/// What comes, hour by hour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ahead {
    /// `scenario`, or `ledger` where a forecast of one says what comes.
    pub from: &'static str,
    /// The beginning of the first hour.
    pub start: String,
    /// Seconds of a step.
    pub step_s: u32,
    /// Hours from the start that events change, from the first to the one after the last.
    pub events: Vec<(usize, usize)>,
    /// Requests, fresh prompt and output tokens.
    pub resources: Vec<AheadResource>,
}

/// A resource, hour by hour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AheadResource {
    /// `requests`, `fresh_prompt_tokens` or `output_tokens`.
    pub name: &'static str,
    /// Of a second.
    pub unit: &'static str,
    /// Means of each hour, level by level, the median first.
    pub bands: Vec<AheadBand>,
    /// The load line of today's fleet: what it carries of the launch table's mix, as an hour's mean.
    pub load_line_now: Option<f64>,
    /// The same of the planned fleet.
    pub load_line_planned: Option<f64>,
}

/// What is exceeded with one minus the level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AheadBand {
    /// Such as 0.95.
    pub level: f64,
    /// Hour by hour.
    pub per_s: Vec<f64>,
}

/// The demand of classes hour by hour, at each level of what is not known, against what fleets carry.
pub(super) fn ahead(
    from: &'static str,
    start: String,
    levels: &[(f64, Vec<Class>)],
    demand: &Demand,
    plan: Option<&Plan>,
) -> Ahead {
    let median = levels.first().map_or(&[][..], |(_, classes)| classes);
    let hours = median.iter().map(|class| class.hours.len()).max().unwrap_or(0);
    let changed = |hour: usize| {
        median.iter().any(|c| c.hours.get(hour).is_some_and(|own| own.shift != Shift::NONE))
    };
    let mut events: Vec<(usize, usize)> = Vec::new();
    for hour in (0..hours).filter(|hour| changed(*hour)) {
        match events.last_mut() {
            Some((_, end)) if *end == hour => *end = hour + 1,
            _ => events.push((hour, hour + 1)),
        }
    }
    let kinds = [
        ("requests", "requests/s", Resource::Requests),
        ("fresh_prompt_tokens", "tokens/s", Resource::FreshPromptTokens),
        ("output_tokens", "tokens/s", Resource::OutputTokens),
    ];
    let resources = kinds.into_iter().enumerate().map(|(kind, (name, unit, resource))| {
        let bands = levels.iter().map(|(level, classes)| AheadBand {
            level: *level,
            per_s: (0..hours)
                .map(|hour| digits(classes.iter().map(|class| per_s(class, hour)[kind]).sum()))
                .collect(),
        });
        let mean = mean(demand, resource);
        let line = |reach: Option<Reach>| Some(digits(reach?.covers? * mean?));
        let fleet = plan.map(|plan| &plan.table.fleet);
        AheadResource {
            name,
            unit,
            bands: bands.collect(),
            load_line_now: line(fleet.map(|fleet| fleet.today)),
            load_line_planned: line(fleet.map(|fleet| fleet.planned)),
        }
    });
    Ahead { from, start, step_s: 3600, events, resources: resources.collect() }
}

/// The mean of the hour that is planned for.
fn mean(demand: &Demand, resource: Resource) -> Option<f64> {
    let all = demand.rows.iter().find(|row| row.class.is_none() && row.resource == resource)?;
    Some(all.launch.unwrap_or(all.baseline).mean_per_s)
}
