//! From what the file says to the demand that a study takes.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use plimsoll_stats::{Burst, Process, Spacing};
use plimsoll_workload::{Call, Class, Hour, Lengths, Shift, Step, Task, Variant};

use crate::sections::{self, Scenario};

/// Demand over the hours of a horizon.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Classes with their rate hour by hour.
    pub classes: Vec<Class>,
    /// The first hour.
    pub start: Timestamp,
    /// What the reader should know.
    pub notes: Vec<String>,
    utc_offset_minutes: i32,
}

impl Demand {
    /// The local wall-clock time at which an hour of the horizon begins, as `Tue 2026-11-17 10:00`.
    pub fn hour_label(&self, index: usize) -> String {
        let at = self.start + SignedDuration::from_hours(i64::try_from(index).unwrap_or(0));
        let zone = zone(self.utc_offset_minutes);
        let offset = if self.utc_offset_minutes == 0 { " UTC".to_owned() } else { String::new() };
        format!("{}{offset}", at.to_zoned(zone).strftime("%a %Y-%m-%d %H:%M"))
    }
}

fn zone(minutes: i32) -> TimeZone {
    jiff::tz::Offset::from_seconds(minutes * 60).map_or(TimeZone::UTC, TimeZone::fixed)
}

/// The demand of a scenario, `today` standing for today.
pub fn lower_demand(scenario: &Scenario, today: Date) -> Demand {
    let study = &scenario.study;
    let minutes = study.utc_offset.minutes();
    let start = match study.start {
        Some(start) => start.timestamp(),
        None => today
            .tomorrow()
            .ok()
            .and_then(|day| day.to_zoned(zone(minutes)).ok())
            .map_or(Timestamp::UNIX_EPOCH, |z| z.timestamp()),
    };
    let hours = (study.horizon.get() / 3600.0).ceil().max(1.0) as usize;
    let level = study.demand_quantile.get();
    let mut notes = Vec::new();
    for event in &scenario.event {
        if !(0..hours).any(|h| active(event, start, h)) {
            let name = event.name.as_str();
            notes.push(format!("event `{name}` lies outside the horizon and changes nothing"));
        }
    }
    let mut retried = Vec::new();
    let classes = scenario
        .class
        .iter()
        .filter_map(|class| {
            let Some(rate) = class.rate else {
                notes.push(format!("class `{}` has no rate of its own: this version reads no ledger, so it is left out", class.name.as_str()));
                return None;
            };
            if class.retries.is_some() {
                retried.push(class.name.as_str());
            }
            let hours = (0..hours)
                .map(|index| Hour {
                    rate: rate.get() * time_of_week(class, start, minutes, index),
                    shift: shift_of(scenario, class, start, index, level),
                })
                .collect();
            Some(Class { name: class.name.as_str().to_owned(), process: process(class), task: task(class), hours })
        })
        .collect();
    if !retried.is_empty() {
        notes.push(format!(
            "demand counts first attempts; the retries of {} come on top",
            retried.join(", ")
        ));
    }
    Demand { classes, start, notes, utc_offset_minutes: minutes }
}

fn active(event: &sections::Event, start: Timestamp, hour: usize) -> bool {
    let begin = hour as f64 * 3600.0;
    let from = event.from.seconds_after(start);
    let to = event.to.map_or(f64::INFINITY, |to| to.seconds_after(start));
    from < begin + 3600.0 && to > begin
}

/// What the events of an hour do to a class, each at the quantile planned for. All at once: events are taken to
/// go wrong together, which errs to the safe side. A hit rate goes wrong downwards.
fn shift_of(
    scenario: &Scenario,
    class: &sections::Class,
    start: Timestamp,
    hour: usize,
    level: f64,
) -> Shift {
    let concerns = |event: &&sections::Event| {
        (event.class.is_empty() || event.class.iter().any(|c| c.as_str() == class.name.as_str()))
            && active(event, start, hour)
    };
    scenario.event.iter().filter(concerns).fold(Shift::NONE, |shift, event| {
        shift.and(Shift {
            rate: event.rate.quantile(level),
            prompt: event.prompt.quantile(level),
            output: event.output.quantile(level),
            cache_hit: event.cache_hit.quantile(1.0 - level),
        })
    })
}

/// The rate of an hour against the week's average.
fn time_of_week(class: &sections::Class, start: Timestamp, minutes: i32, hour: usize) -> f64 {
    let at = start + SignedDuration::from_hours(i64::try_from(hour).unwrap_or(0));
    let local = at.to_zoned(zone(minutes));
    let of_day = class.by_hour.as_ref().map_or(1.0, |hours| {
        hours.normalised()[usize::try_from(local.hour()).unwrap_or(0).min(23)]
    });
    let weekend = class.weekend.get();
    let average = (5.0 + 2.0 * weekend) / 7.0;
    let of_week = match local.weekday() {
        Weekday::Saturday | Weekday::Sunday => weekend,
        _ => 1.0,
    };
    of_day * of_week / average
}

fn process(class: &sections::Class) -> Process {
    let cv = class.cv.map_or(1.0, crate::Plain::get);
    let spacing = match class.arrivals {
        sections::Spacing::Poisson => Spacing::Poisson,
        sections::Spacing::Gamma => Spacing::Gamma { cv },
        sections::Spacing::Weibull => Spacing::Weibull { cv },
        sections::Spacing::Dumps => {
            return Process::Dumps { every: class.every.map_or(900.0, |every| every.get()) };
        }
    };
    // The check of the table has tried the same numbers.
    let burst = class
        .burst
        .as_ref()
        .and_then(|b| Burst::new(b.times.get(), b.lasts.get(), b.every.get()).ok());
    Process::Flow { spacing, burst }
}

fn task(class: &sections::Class) -> Task {
    let own = own_lengths(class);
    let call = |lengths: Lengths, hit: f64| {
        let variants = class.variants.iter().map(|v| Variant {
            share: v.share.get(),
            prompt: v.prompt.get(),
            output: v.output.get(),
        });
        Call::new(lengths, hit).samples(class.samples.get_u32()).variants(variants.collect())
    };
    let class_hit = class.cache_hit.get();
    if !class.stages.is_empty() {
        let steps = class.stages.iter().filter_map(|stage| {
            if let Some(latency) = &stage.latency {
                return Some(Step::Wait(latency.dist().clone()));
            }
            if stage.tool.is_some() {
                return None;
            }
            let lengths = match (&stage.prompt, &stage.output) {
                (Some(prompt), Some(output)) => {
                    Lengths::independent(prompt.dist().clone(), output.dist().clone())
                }
                _ => own.clone()?,
            };
            let hit = stage.cache_hit.map_or(class_hit, |h| h.get());
            Some(Step::Call(call(lengths, hit).sometimes(stage.share.get())))
        });
        return Task::steps(steps.collect());
    }
    let Some(lengths) = own else { return Task::steps(Vec::new()) };
    let call = call(lengths, class_hit);
    if let Some(agent) = &class.agent {
        return Task::agent(
            call,
            agent.calls.dist().clone(),
            agent.growth.dist().clone(),
            agent.gap.dist().clone(),
        );
    }
    if let Some(sessions) = &class.sessions {
        return Task::session(call, sessions.turns.dist().clone(), sessions.think.dist().clone());
    }
    Task::steps(vec![Step::Call(call)])
}

fn own_lengths(class: &sections::Class) -> Option<Lengths> {
    if !class.pairs.is_empty() {
        let pairs = class.pairs.iter().map(|p| (p.prompt, p.output)).collect();
        let weights = class.pairs.iter().map(|p| p.weight.get()).collect();
        return Lengths::pairs(pairs, weights).ok();
    }
    let (prompt, output) = (class.prompt.as_ref()?, class.output.as_ref()?);
    Some(Lengths::independent(prompt.dist().clone(), output.dist().clone()))
}
