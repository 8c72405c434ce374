//! From what the file says to the demand that a study takes.

use std::ops::Range;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use plimsoll_stats::{Burst, Process, Spacing};
use plimsoll_workload::{Call, Class, Hour, Lengths, Pair, Shift, Step, Task, Tool, Variant};

use crate::diagnostic::Diagnostic;
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
    /// The local hour of the day at which an hour of the horizon begins.
    pub fn local_hour(&self, index: usize) -> u8 {
        let at = self.start + SignedDuration::from_hours(i64::try_from(index).unwrap_or(0));
        u8::try_from(at.to_zoned(zone(self.utc_offset_minutes)).hour()).unwrap_or(0)
    }

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

/// The demand of a scenario, `today` standing for today; or why it cannot be.
pub fn lower_demand(scenario: &Scenario, today: Date) -> Result<Demand, Diagnostic> {
    let study = &scenario.study;
    let minutes = study.utc_offset.minutes();
    let start = match study.start {
        Some(start) => start.timestamp(),
        // Days are read within centuries of today, so tomorrow exists.
        None => today
            .tomorrow()
            .and_then(|day| day.to_zoned(zone(minutes)))
            .map_err(|e| Diagnostic::about("bad-date", "as_of", format!("has no tomorrow: {e}")))?
            .timestamp(),
    };
    let hours = (study.horizon.get() / 3600.0).ceil().max(1.0) as usize;
    let mut notes = Vec::new();
    if let Some(ledger) = &study.ledger {
        notes.push(format!(
            "this version reads no ledger: `{ledger}` is left aside, and typed rates are used"
        ));
    }
    let level = study.demand_quantile.get();
    let events: Vec<Active<'_>> =
        scenario.event.iter().map(|e| Active::of(e, start, hours, level)).collect();
    for event in events.iter().filter(|e| e.hours.is_empty()) {
        notes.push(format!("event `{}` lies outside the horizon and changes nothing", event.name));
    }
    let mut retried = Vec::new();
    let mut classes = Vec::with_capacity(scenario.class.len());
    for class in &scenario.class {
        let name = class.name.as_str();
        let Some(rate) = class.rate else {
            notes.push(format!("class `{name}` has no rate of its own and is left out"));
            continue;
        };
        if class.retries.is_some() {
            retried.push(name);
        }
        let mut shifts = vec![Shift::NONE; hours];
        for event in events.iter().filter(|e| e.concerns(name)) {
            shifts[event.hours.clone()]
                .iter_mut()
                .for_each(|shift| *shift = shift.and(event.shift));
        }
        let hours: Vec<Hour> = shifts
            .into_iter()
            .enumerate()
            .map(|(i, shift)| Hour {
                rate: rate.get() * time_of_week(class, start, minutes, i),
                shift,
            })
            .collect();
        let extreme = |hour: &&Hour| {
            let shift = hour.shift;
            hour.rate * shift.rate > RATE_MAX
                || shift.prompt.max(shift.output).max(shift.rate) > SHIFT_MAX
        };
        if let Some(hour) = hours.iter().find(extreme) {
            let message = format!(
                "its events multiply class `{name}` to {:.3e} tasks/s, prompts by {:.3e} and outputs by {:.3e}",
                hour.rate * hour.shift.rate,
                hour.shift.prompt,
                hour.shift.output
            );
            return Err(Diagnostic::about("out-of-range", "the scenario", message)
                .help("lower the multipliers of its events: together at most 10^6, to at most 10^9 tasks/s"));
        }
        let (process, task) = (process(class), task(class, scenario));
        classes.push(Class { name: name.to_owned(), process, task, hours });
    }
    if !retried.is_empty() {
        let names = retried.join(", ");
        notes.push(format!("demand counts first attempts; the retries of {names} come on top"));
    }
    Ok(Demand { classes, start, notes, utc_offset_minutes: minutes })
}

/// Beyond these nothing is a plan any more, and sums would lose their digits.
const RATE_MAX: f64 = 1e9;
const SHIFT_MAX: f64 = 1e6;

/// An event over the hours it touches, at the quantile planned for. A hit rate goes wrong downwards.
struct Active<'a> {
    name: &'a str,
    classes: Vec<&'a str>,
    hours: Range<usize>,
    shift: Shift,
}

impl<'a> Active<'a> {
    fn of(event: &'a sections::Event, start: Timestamp, hours: usize, level: f64) -> Self {
        let hour = |seconds: f64| (seconds / 3600.0).clamp(0.0, hours as f64);
        let first = hour(event.from.seconds_after(start)).floor() as usize;
        let last = event.to.map_or(hours, |to| hour(to.seconds_after(start)).ceil() as usize);
        Self {
            name: event.name.as_str(),
            classes: event.class.iter().map(|c| c.as_str()).collect(),
            hours: first..last.max(first),
            shift: Shift {
                rate: event.rate.quantile(level),
                prompt: event.prompt.quantile(level),
                output: event.output.quantile(level),
                cache_hit: event.cache_hit.quantile(1.0 - level),
            },
        }
    }

    fn concerns(&self, class: &str) -> bool {
        self.classes.is_empty() || self.classes.contains(&class)
    }
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
    let spacing = match (class.arrivals, class.every) {
        (sections::Spacing::Poisson, _) => Spacing::Poisson,
        (sections::Spacing::Gamma, _) => Spacing::Gamma { cv },
        (sections::Spacing::Weibull, _) => Spacing::Weibull { cv },
        (sections::Spacing::Dumps, every) => {
            let every = every.expect("the class's check asks dumps for `every`");
            return Process::Dumps { every: every.get() };
        }
    };
    let burst = class.burst.as_ref().map(|b| {
        Burst::new(b.times.get(), b.lasts.get(), b.every.get())
            .expect("the burst's check has tried it")
    });
    Process::Flow { spacing, burst }
}

fn task(class: &sections::Class, scenario: &Scenario) -> Task {
    let variants = class.variants.iter().map(|v| Variant {
        share: v.share.get(),
        prompt: v.prompt.get(),
        output: v.output.get(),
        route: v.route.as_ref().and_then(|to| route_number(scenario, to.as_str())),
    });
    plain_task(class, scenario).variants(variants.collect())
}

/// The number of a pool or provider, as calls that go elsewhere than their class know it: pools in order, then providers.
pub(crate) fn route_number(scenario: &Scenario, name: &str) -> Option<u16> {
    let pools = scenario.pool.iter().map(|p| p.name.as_str());
    let providers = scenario.provider.iter().map(|p| p.name.as_str());
    let at = pools.chain(providers).position(|own| own == name)?;
    u16::try_from(at).ok()
}

/// The number of a tool.
fn tool_number<'a>(scenario: &'a Scenario, name: &str) -> Option<(u16, &'a sections::Tool)> {
    let at = scenario.tool.iter().position(|tool| tool.name.as_str() == name)?;
    Some((u16::try_from(at).ok()?, &scenario.tool[at]))
}

fn plain_task(class: &sections::Class, scenario: &Scenario) -> Task {
    let call =
        |lengths: Lengths, hit: f64| Call::new(lengths, hit).samples(class.samples.get_u32());
    let own = || own_lengths(class).expect("the class's check asks for lengths");
    let class_hit = class.cache_hit.get();
    if !class.stages.is_empty() {
        let steps = class.stages.iter().map(|stage| {
            let share = stage.share.get();
            if let Some(latency) = &stage.latency {
                return Step::Wait(latency.dist().clone(), share);
            }
            let tool = stage.tool.as_ref().and_then(|tool| tool_number(scenario, tool.as_str()));
            if let Some((number, tool)) = tool {
                return Step::Tool(number, tool.latency.dist().clone(), share);
            }
            let lengths = match (&stage.prompt, &stage.output) {
                (Some(prompt), Some(output)) => {
                    Lengths::independent(prompt.dist().clone(), output.dist().clone())
                }
                _ => own(),
            };
            let hit = stage.cache_hit.map_or(class_hit, |h| h.get());
            let route = stage.route.as_ref().and_then(|to| route_number(scenario, to.as_str()));
            Step::Call(call(lengths, hit).sometimes(share).to(route))
        });
        return Task::steps(steps.collect());
    }
    let call = call(own(), class_hit);
    if let Some(agent) = &class.agent {
        let (calls, growth, gap) = (&agent.calls, &agent.growth, &agent.gap);
        let tools = agent.tools.iter().filter_map(|tool| {
            let (number, tool) = tool_number(scenario, tool.as_str())?;
            Some(Tool { number, latency: tool.latency.dist().clone() })
        });
        return Task::agent(call, calls.dist().clone(), growth.dist().clone(), gap.dist().clone())
            .fan_out(agent.fan_out.get_u32())
            .with_tools(tools.collect());
    }
    if let Some(sessions) = &class.sessions {
        return Task::session(call, sessions.turns.dist().clone(), sessions.think.dist().clone());
    }
    Task::steps(vec![Step::Call(call)])
}

fn own_lengths(class: &sections::Class) -> Option<Lengths> {
    if !class.pairs.is_empty() {
        let pairs = class.pairs.iter().map(|p| Pair {
            prompt: p.prompt,
            cached: p.cached,
            output: p.output,
        });
        let weights = class.pairs.iter().map(|p| p.weight.get()).collect();
        return Some(
            Lengths::pairs(pairs.collect(), weights)
                .expect("the class's check has looked at the weights"),
        );
    }
    let (prompt, output) = (class.prompt.as_ref()?, class.output.as_ref()?);
    Some(Lengths::independent(prompt.dist().clone(), output.dist().clone()))
}
