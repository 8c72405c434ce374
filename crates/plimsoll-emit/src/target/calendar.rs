//! Floors of a policy as calendars: hours of a horizon become crons, or windows of days.
//!
//! A floor begins as many minutes earlier as replicas take to start, rounded up. Within a week a calendar goes by the day of the week and
//! therefore repeats; beyond, it goes by the date.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use plimsoll_study::FilePolicy;

use super::EmitError;
use super::pool::{Emission, Pool, whole_up};

/// Hours of a week.
const WEEK_HOURS: usize = 168;
/// Minutes of a day.
const DAY: usize = 24 * 60;
/// Minutes of a week.
const WEEK: usize = 7 * DAY;

/// A floor by the clock: from when, until when, and how many replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cron {
    pub(super) start: String,
    pub(super) end: String,
    pub(super) replicas: u32,
    pub(super) why: String,
}

/// A floor over a part of some days, which does not go past midnight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DayWindow {
    /// From 0, Monday.
    pub(super) days: Vec<usize>,
    /// In minutes of the day.
    pub(super) start: usize,
    /// In minutes of the day; a whole day ends at 1,440.
    pub(super) end: usize,
    pub(super) replicas: u32,
}

/// A floor above the fewest replicas, as it is on a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    /// With its lead.
    start: DateTime,
    /// Without it: the hour that it is for.
    hour: DateTime,
    end: DateTime,
    /// Minutes from start to end, as time passes.
    minutes: usize,
    replicas: u32,
}

/// The floors of a policy as pairs of crons. A pair is active from its start until its end, be it days later, as KEDA reads it.
pub(super) fn crons(
    own: &mut Emission<'_>,
    pool: &Pool<'_>,
    policy: &FilePolicy,
) -> Result<Vec<Cron>, EmitError> {
    let windows = windows(own, policy)?;
    let horizon = horizon(policy);
    if windows.is_empty() {
        return Ok(Vec::new());
    }
    let zone = &own.settings.timezone;
    let lead = whole_up(policy.floors_lead_s / 60.0);
    if horizon > WEEK_HOURS {
        own.note(format!(
            "`{}`: its floors are for {horizon} hours, more than a week, so their crons name dates: emit again from a newer plan before they are over",
            pool.pool.name
        ));
        let dated =
            |at: DateTime| format!("{} {} {} {} *", at.minute(), at.hour(), at.day(), at.month());
        return Ok(windows
            .iter()
            .map(|own| Cron {
                start: dated(own.start),
                end: dated(own.end),
                replicas: own.replicas,
                why: why(std::slice::from_ref(own), lead, zone),
            })
            .collect());
    }
    own.note(format!(
        "`{}`: its floors are for {horizon} hours from {} and their crons repeat each week: emit again from a newer plan where a week is not like the next",
        pool.pool.name, own.plan.forecast.start
    ));
    let mut out = Vec::new();
    for group in alike(&windows) {
        let first = &group[0];
        let said = why(&group, lead, zone);
        let weekly = |at: DateTime, days: &str| format!("{} {} * * {days}", at.minute(), at.hour());
        if first.minutes >= WEEK {
            // The end of a whole week is its start, which would never be active: two halves are.
            let middle = first.start.saturating_add(jiff::Span::new().hours(84));
            for (from, to) in [(first.start, middle), (middle, first.start)] {
                out.push(Cron {
                    start: weekly(from, &cron_days(&[day(from)])),
                    end: weekly(to, &cron_days(&[day(to)])),
                    replicas: first.replicas,
                    why: format!("{said}; half of a whole week"),
                });
            }
            continue;
        }
        let starts: Vec<usize> = group.iter().map(|own| day(own.start)).collect();
        let ends: Vec<usize> = group.iter().map(|own| day(own.end)).collect();
        out.push(Cron {
            start: weekly(first.start, &cron_days(&starts)),
            end: weekly(first.end, &cron_days(&ends)),
            replicas: first.replicas,
            why: said,
        });
    }
    Ok(out)
}

/// The floors of a policy as parts of days of a week, none of which overlap; of two weeks, the larger floor counts.
pub(super) fn day_windows(
    own: &mut Emission<'_>,
    pool: &Pool<'_>,
    policy: &FilePolicy,
) -> Result<Vec<DayWindow>, EmitError> {
    let windows = windows(own, policy)?;
    if windows.is_empty() {
        return Ok(Vec::new());
    }
    own.note(format!(
        "`{}`: its floors are for {} hours from {} and their windows repeat each week: emit again from a newer plan where a week is not like the next",
        pool.pool.name,
        horizon(policy),
        own.plan.forecast.start
    ));
    let mut floor = vec![0_u32; WEEK];
    for window in &windows {
        let start = day(window.start) * DAY + minute(window.start);
        for at in 0..window.minutes.min(WEEK) {
            let at = &mut floor[(start + at) % WEEK];
            *at = window.replicas.max(*at);
        }
    }
    let mut out: Vec<DayWindow> = Vec::new();
    for (today, minutes) in floor.chunks(DAY).enumerate() {
        let mut at = 0;
        while at < DAY {
            let replicas = minutes[at];
            let end = (at..DAY).find(|next| minutes[*next] != replicas).unwrap_or(DAY);
            let same =
                |own: &&mut DayWindow| (own.start, own.end, own.replicas) == (at, end, replicas);
            match out.iter_mut().find(same) {
                _ if replicas == 0 => {}
                Some(window) => window.days.push(today),
                None => {
                    out.push(DayWindow { days: vec![today], start: at, end, replicas });
                }
            }
            at = end;
        }
    }
    Ok(out)
}

fn horizon(policy: &FilePolicy) -> usize {
    policy.floors.iter().map(|floor| floor.until_hour).max().unwrap_or(0)
}

/// The floors above the fewest replicas; those that meet and are equal are one.
fn windows(own: &Emission<'_>, policy: &FilePolicy) -> Result<Vec<Window>, EmitError> {
    let name = &own.settings.timezone;
    // UTC is always known; other zones where the system, or the build, has their rules.
    let zone = match name.as_str() {
        "UTC" | "Etc/UTC" => TimeZone::UTC,
        _ => TimeZone::get(name).map_err(|_| EmitError::Timezone { name: name.clone() })?,
    };
    let text = &own.plan.forecast.start;
    let begin: Timestamp = text.parse().map_err(|_| EmitError::Start { start: text.clone() })?;
    let mut spans: Vec<(usize, usize, u32)> = Vec::new();
    for floor in &policy.floors {
        // Nobody can ask for no replicas, and the fewest are there anyway.
        if floor.replicas <= policy.min_replicas || floor.from_hour >= floor.until_hour {
            continue;
        }
        match spans.last_mut() {
            Some((_, until, replicas))
                if *until == floor.from_hour && *replicas == floor.replicas =>
            {
                *until = floor.until_hour;
            }
            _ => spans.push((floor.from_hour, floor.until_hour, floor.replicas)),
        }
    }
    // The end of a week meets its beginning.
    if horizon(policy) == WEEK_HOURS
        && let (Some(first), Some(last)) = (spans.first().copied(), spans.last().copied())
        && spans.len() > 1
        && (first.0, last.1, first.2) == (0, WEEK_HOURS, last.2)
    {
        spans.remove(0);
        if let Some(last) = spans.last_mut() {
            last.1 += first.1;
        }
    }
    let lead = whole_up(policy.floors_lead_s / 60.0);
    let at = |minutes: i64| {
        begin
            .checked_add(jiff::Span::new().minutes(minutes))
            .map(|at| zone.to_datetime(at))
            .map_err(|_| EmitError::Start { start: text.clone() })
    };
    spans
        .into_iter()
        .map(|(from, until, replicas)| {
            let minutes_of = |hour: usize| i64::try_from(hour).unwrap_or(i64::MAX / 60) * 60;
            let lead = i64::try_from(lead).unwrap_or(0);
            let minutes = minutes_of(until) - minutes_of(from) + lead;
            Ok(Window {
                start: at(minutes_of(from) - lead)?,
                hour: at(minutes_of(from))?,
                end: at(minutes_of(until))?,
                minutes: usize::try_from(minutes).unwrap_or(0),
                replicas,
            })
        })
        .collect()
}

/// Windows of less than a day that only differ in their day stand in one pair of crons.
fn alike(windows: &[Window]) -> Vec<Vec<Window>> {
    let mut out: Vec<Vec<Window>> = Vec::new();
    for window in windows {
        let same = |group: &&mut Vec<Window>| {
            let first = &group[0];
            first.replicas == window.replicas
                && first.minutes.max(window.minutes) < DAY
                && minute(first.start) != minute(first.end)
                && minute(first.start) == minute(window.start)
                && minute(first.end) == minute(window.end)
        };
        match out.iter_mut().find(same) {
            Some(group) => group.push(window.clone()),
            None => out.push(vec![window.clone()]),
        }
    }
    out
}

fn minute(at: DateTime) -> usize {
    usize::from(at.hour().unsigned_abs()) * 60 + usize::from(at.minute().unsigned_abs())
}

/// From 0, Monday.
fn day(at: DateTime) -> usize {
    usize::from(at.weekday().to_monday_zero_offset().unsigned_abs())
}

/// Days of a week as a cron has them, where Sunday is 0.
fn cron_days(days: &[usize]) -> String {
    let mut numbers: Vec<usize> = days.iter().map(|day| (day + 1) % 7).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let runs = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match (numbers.first(), numbers.last()) {
        (Some(0), Some(6)) if numbers.len() == 7 => "*".to_owned(),
        (Some(first), Some(last)) if runs && numbers.len() > 2 => format!("{first}-{last}"),
        _ => numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
    }
}

/// Three letters of a day.
pub(super) fn day_name(day: usize) -> &'static str {
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].get(day).copied().unwrap_or("Mon")
}

fn said(at: DateTime) -> String {
    let day = day_name(day(at));
    format!("{day} {} {:02}:{:02}", at.date(), at.hour(), at.minute())
}

fn why(group: &[Window], lead: u64, zone: &str) -> String {
    let span = |own: &Window| {
        let end = if own.hour.date() == own.end.date() {
            format!("{:02}:{:02}", own.end.hour(), own.end.minute())
        } else {
            said(own.end)
        };
        format!("{} to {end}", said(own.hour))
    };
    let spans: Vec<String> = group.iter().map(span).collect();
    let replicas = group.first().map_or(0, |own| own.replicas);
    format!(
        "{replicas} replicas as planned for {} {zone}; begins {lead} min earlier, rounded up, for them to start",
        spans.join(", ")
    )
}

#[cfg(test)]
mod tests;
