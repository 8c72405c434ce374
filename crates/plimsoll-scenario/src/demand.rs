//! From what the file says to the demand that a study takes.

use std::ops::Range;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use plimsoll_stats::{Burst, Process, Spacing};
use plimsoll_workload::{
    Call, Class, Hour, Lengths, Outlook, Pair, Quantity, Shift, Step, Task, Tool, Variant,
};

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
        self.label_before(index, 0)
    }

    /// The same, so many hours before.
    pub fn label_before(&self, index: usize, hours: i64) -> String {
        let after = i64::try_from(index).unwrap_or(0).saturating_sub(hours);
        let at = self.start + SignedDuration::from_hours(after);
        let zone = zone(self.utc_offset_minutes);
        let offset = if self.utc_offset_minutes == 0 { " UTC".to_owned() } else { String::new() };
        format!("{}{offset}", at.to_zoned(zone).strftime("%a %Y-%m-%d %H:%M"))
    }
}

fn zone(minutes: i32) -> TimeZone {
    jiff::tz::Offset::from_seconds(minutes * 60).map_or(TimeZone::UTC, TimeZone::fixed)
}

/// When the horizon of a scenario begins, `today` standing for today, and how many hours it has.
pub fn horizon(scenario: &Scenario, today: Date) -> Result<(Timestamp, usize), Diagnostic> {
    let study = &scenario.study;
    let start = match study.start {
        Some(start) => start.timestamp(),
        // Days are read within centuries of today, so tomorrow exists.
        None => today
            .tomorrow()
            .and_then(|day| day.to_zoned(zone(study.utc_offset.minutes())))
            .map_err(|e| Diagnostic::about("bad-date", "as_of", format!("has no tomorrow: {e}")))?
            .timestamp(),
    };
    Ok((start, (study.horizon.get() / 3600.0).ceil().max(1.0) as usize))
}

/// The demand of a scenario at a quantile of what is not known, `today` standing for today; or why it cannot be. Classes that an outlook knows have its rates and
/// lengths instead of typed ones.
pub fn lower_demand(
    scenario: &Scenario,
    outlook: Option<&Outlook>,
    today: Date,
    level: f64,
) -> Result<Demand, Diagnostic> {
    let (_, hours) = horizon(scenario, today)?;
    lower_over(scenario, outlook, today, level, hours)
}

/// The demand of a scenario for at least so many hours after the last of its events begins, whatever its horizon is.
pub(crate) fn lower_beyond(
    scenario: &Scenario,
    today: Date,
    level: f64,
    beyond: usize,
) -> Result<Demand, Diagnostic> {
    let (start, hours) = horizon(scenario, today)?;
    let begins = |event: &sections::Event| {
        // What begins after the horizon is no part of the study.
        let at = (event.from.seconds_after(start) / 3600.0).floor();
        (at >= 0.0 && at < hours as f64).then_some(at as usize)
    };
    let last = scenario.event.iter().filter_map(begins).max().unwrap_or(0);
    lower_over(scenario, None, today, level, hours.max(last + beyond))
}

fn lower_over(
    scenario: &Scenario,
    outlook: Option<&Outlook>,
    today: Date,
    level: f64,
    hours: usize,
) -> Result<Demand, Diagnostic> {
    let study = &scenario.study;
    let minutes = study.utc_offset.minutes();
    let (start, _) = horizon(scenario, today)?;
    let mut notes = Vec::new();
    let events: Vec<Active<'_>> =
        scenario.event.iter().map(|e| Active::of(e, start, hours, level)).collect();
    for event in events.iter().filter(|e| e.hours.is_empty()) {
        notes.push(format!("event `{}` lies outside the horizon and changes nothing", event.name));
    }
    let mut retried = Vec::new();
    let mut classes = Vec::with_capacity(scenario.class.len());
    for class in &scenario.class {
        let name = class.name.as_str();
        let (process, task) = (process(class), task(class, scenario));
        let foreseen = outlook.and_then(|outlook| Foreseen::of(outlook, name, &task, level));
        if foreseen.is_none() && class.rate.is_none() {
            notes.push(match &study.ledger {
                Some(ledger) => format!(
                    "class `{name}` is left out: it has no rate, and nothing in `{ledger}` tells how much of it comes"
                ),
                None => format!("class `{name}` has no rate of its own and is left out"),
            });
            continue;
        }
        if let (Some(_), None) = (outlook, &foreseen) {
            notes.push(format!(
                "nothing in the ledger is of class `{name}`: its rate is the one that is typed"
            ));
        }
        if let Some(uncached) = foreseen.as_ref().and_then(|own| own.uncached) {
            notes.push(format!(
                "the ledger says that {:.0}% of the prompts of class `{name}` are cached, and the class has no `cache_hit`: all of them count as fresh",
                uncached * 100.0
            ));
        }
        if class.retries.is_some() {
            retried.push(name);
        }
        let mut shifts = vec![Shift::NONE; hours];
        for event in events.iter().filter(|e| e.concerns(name)) {
            for hour in event.hours.clone() {
                // What is not known of a forecast and of an event seldom goes wrong at once.
                let own =
                    foreseen.as_ref().map_or(event.shift, |own| own.event(event, start, hour));
                shifts[hour] = shifts[hour].and(own);
            }
        }
        let hours: Vec<Hour> = shifts
            .into_iter()
            .enumerate()
            .map(|(i, shift)| match (&foreseen, class.rate) {
                (Some(own), _) => {
                    let (rate, drift) = own.hour(start, i);
                    Hour { rate, drift, shift }
                }
                (None, rate) => {
                    let rate = rate.map_or(0.0, |rate| rate.get());
                    Hour::new(rate * time_of_week(class, start, minutes, i), shift)
                }
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
        classes.push(Class { name: name.to_owned(), process, task, hours });
    }
    if !retried.is_empty() {
        let names = retried.join(", ");
        notes.push(format!("demand counts first attempts; the retries of {names} come on top"));
    }
    Ok(Demand { classes, start, notes, utc_offset_minutes: minutes })
}

/// What an outlook says of a class, against what the class says of its tasks.
struct Foreseen<'a> {
    outlook: &'a Outlook,
    class: Option<&'a str>,
    level: f64,
    /// Requests, prompt tokens and output tokens of a task, and the share of its prompts that is cached.
    requests: f64,
    prompt: f64,
    output: f64,
    hit: f64,
    /// The cached share that the outlook knows and the class cannot take.
    uncached: Option<f64>,
}

impl<'a> Foreseen<'a> {
    fn of(outlook: &'a Outlook, class: &'a str, task: &Task, level: f64) -> Option<Self> {
        let class = Some(class);
        outlook.series(class, Quantity::Requests)?;
        let (prompt, output) = task.expected(&Shift { cache_hit: 0.0, ..Shift::NONE });
        let fresh = task.expected(&Shift::NONE).0;
        let hit = if prompt > 0.0 { 1.0 - fresh / prompt } else { 0.0 };
        let cached = outlook.series(class, Quantity::CachedShare);
        let share = cached.and_then(|shares| Some(shares.first()?.0[0]));
        let uncached = share.filter(|share| hit <= 0.0 && *share > 0.005);
        let requests = task.mean_requests().max(1e-9);
        Some(Self { outlook, class, level, requests, prompt, output, hit, uncached })
    }

    /// The mean of a quantity over an hour, at a level.
    fn mean(&self, quantity: Quantity, from: i64, level: f64) -> Option<f64> {
        let series = self.outlook.series(self.class, quantity)?;
        let step = i64::from(self.outlook.step_s);
        let first = usize::try_from((from - self.outlook.start_s).div_euclid(step)).ok()?;
        let count = usize::try_from((3600 / step).max(1)).unwrap_or(1);
        let own = series.get(first..(first + count).min(series.len()))?;
        let sum: f64 = own.iter().map(|quantiles| quantiles.at(level)).sum();
        (!own.is_empty()).then(|| sum / own.len() as f64)
    }

    /// What an event does to an hour, on top of the quantile that the hour has already: together they are at the quantile that is planned for,
    /// and not each of them. One that began within the history is known from it.
    fn event(&self, event: &Active<'_>, start: Timestamp, hour: usize) -> Shift {
        if event.from_s < self.outlook.start_s {
            return event.likely;
        }
        let at = start.as_second() + 3600 * i64::try_from(hour).unwrap_or(0);
        let known = |level: f64| self.mean(Quantity::Requests, at, level).unwrap_or(0.0);
        let (middle, high) = (known(0.5), known(self.level));
        // How far each is from its middle, on the logarithm: independent ones add up as squares do.
        let mut so_far = if middle > 0.0 { (high / middle).ln().max(0.0) } else { 0.0 };
        let mut more = |likely: f64, at_level: f64| {
            if likely <= 0.0 || at_level <= 0.0 {
                return at_level;
            }
            let own = (at_level / likely).ln();
            let both = so_far.hypot(own);
            let added = both - so_far;
            so_far = both;
            likely * (added * own.signum()).exp()
        };
        Shift {
            rate: more(event.likely.rate, event.shift.rate),
            prompt: more(event.likely.prompt, event.shift.prompt),
            output: more(event.likely.output, event.shift.output),
            cache_hit: more(event.likely.cache_hit, event.shift.cache_hit),
        }
    }

    /// Tasks a second in an hour of the horizon, and how its lengths differ from the class's.
    fn hour(&self, start: Timestamp, hour: usize) -> (f64, Shift) {
        let from = start.as_second() + 3600 * i64::try_from(hour).unwrap_or(0);
        let planned = |quantity: Quantity| self.mean(quantity, from, self.level);
        let requests = planned(Quantity::Requests).unwrap_or(0.0);
        let each = |quantity: Quantity| {
            let tokens = planned(quantity).filter(|_| requests > 0.0)?;
            Some(tokens / requests * self.requests)
        };
        let against = |own: Option<f64>, typed: f64| {
            own.filter(|own| *own > 0.0 && typed > 0.0).map_or(1.0, |own| own / typed)
        };
        let prompt = each(Quantity::PromptTokens);
        let hit = prompt.zip(each(Quantity::FreshTokens)).map(|(all, fresh)| 1.0 - fresh / all);
        let drift = Shift {
            rate: 1.0,
            prompt: against(prompt, self.prompt),
            output: against(each(Quantity::OutputTokens), self.output),
            // None at all is said, too.
            cache_hit: hit.filter(|_| self.hit > 0.0).map_or(1.0, |own| (own / self.hit).max(0.0)),
        };
        (requests / self.requests, drift)
    }
}

/// How far a class has varied around what was expected of it, as multiples of that: what is fallen short of and what is exceeded one time in twenty. None where it is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observed {
    pub(crate) rate: Option<(f64, f64)>,
    pub(crate) prompt: Option<(f64, f64)>,
    pub(crate) output: Option<(f64, f64)>,
    /// Less first, though less is worse.
    pub(crate) hit: Option<(f64, f64)>,
}

impl crate::Loaded {
    /// How far a class of the ledger varies in an hour of the horizon.
    pub(crate) fn observed(&self, class: &str, start: Timestamp, hour: usize) -> Option<Observed> {
        let outlook = &self.outlook.as_ref()?.outlook;
        let from = start.as_second() + 3600 * i64::try_from(hour).ok()?;
        let step = i64::from(outlook.step_s);
        let first = usize::try_from((from - outlook.start_s).div_euclid(step)).ok()?;
        let at = |quantity: Quantity, level: f64| {
            let series = outlook.series(Some(class), quantity)?;
            series.get(first).map(|quantiles| quantiles.at(level)).filter(|value| *value > 0.0)
        };
        // Tokens of a request vary less than tokens and requests by themselves, which come and go together.
        let spread = |of: &dyn Fn(f64) -> Option<f64>| {
            let (low, middle, high) = (of(0.05)?, of(0.5)?, of(0.95)?);
            (low < high).then(|| (low / middle, high / middle))
        };
        let own = |quantity: Quantity| spread(&|level| at(quantity, level));
        let each = |quantity: Quantity| {
            let (low, high) = own(quantity)?;
            let (less, more) = own(Quantity::Requests)?;
            Some(((low / less).min(1.0), (high / more).max(1.0))).filter(|(a, b)| a < b)
        };
        Some(Observed {
            rate: own(Quantity::Requests),
            prompt: each(Quantity::PromptTokens),
            output: each(Quantity::OutputTokens),
            hit: own(Quantity::CachedShare),
        })
    }
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
    /// What is likely of it, without what is not known.
    likely: Shift,
    from_s: i64,
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
            likely: Shift {
                rate: event.rate.likely(),
                prompt: event.prompt.likely(),
                output: event.output.likely(),
                cache_hit: event.cache_hit.likely(),
            },
            from_s: event.from.timestamp().as_second(),
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
