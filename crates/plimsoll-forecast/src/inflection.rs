//! A warning before a load line is crossed: long enough ahead that a replica can be started, and with the share of such warnings
//! that came to nothing.

use std::ops::Range;

use plimsoll_stats::quantile;
use plimsoll_workload::{History, Quantity};

use crate::actuals::Actuals;
use crate::fan::Actual;
use crate::rolling::{Bands, Rolling, Track, quantiles};

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The quantity.
    pub quantity: Quantity,
    /// The most of it that may be carried, in its unit.
    pub most: f64,
    /// How long it takes until a replica that is asked for serves, nine times in ten.
    pub startup_s: f64,
}

/// Whether a line is about to be crossed.
#[derive(Clone, Debug, PartialEq)]
pub struct Inflection {
    /// What is watched.
    pub line: Line,
    /// The length of a step; values are means over it.
    pub step_s: u32,
    /// The quantile that is held against the line.
    pub level: f64,
    /// The value of the last step.
    pub now: f64,
    /// The first lead time, from the startup on, at which the quantile reaches the line, in seconds; none where it does not, or the last value
    /// is above already.
    pub crosses_in_s: Option<u64>,
    /// The most that the quantile reaches within the time looked ahead.
    pub most_ahead: f64,
    /// How far ahead was looked, in seconds.
    pub ahead_s: u64,
    /// The line that warnings were tried against: the line itself, or one that the history has crossed.
    pub tried_at: Option<f64>,
    /// How warnings did.
    pub record: AlarmRecord,
}

/// How warnings did, had they been given all along.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AlarmRecord {
    /// Moments at which a warning could have been given.
    pub origins: usize,
    /// Times the line was crossed from below.
    pub crossings: usize,
    /// Of which so many had been warned of, at least the startup ahead.
    pub caught: usize,
    /// Warnings; those that follow each other are one.
    pub alarms: usize,
    /// Of which so many came to nothing.
    pub false_alarms: usize,
    /// How far ahead a crossing was warned of, the median, in seconds.
    pub ahead_median_s: Option<f64>,
    /// How long was watched, in seconds.
    pub watched_s: u64,
}

impl AlarmRecord {
    /// How much of what was to be seen was seen, against what was seen for nothing: 1 where all of it was and nothing else.
    fn worth(&self) -> f64 {
        let of = (self.crossings + self.caught + self.false_alarms) as f64;
        if of > 0.0 { 2.0 * self.caught as f64 / of } else { 0.0 }
    }
}

/// Values are means over this at least, in seconds: a minute is mostly chance.
const STEP_LEAST_S: u32 = 300;
/// Looked ahead at least, in seconds, and beyond the startup.
const AHEAD_S: f64 = 1800.0;
const BEYOND_STARTUP_S: f64 = 900.0;
/// History that is looked at, in steps.
const STEPS_MOST: usize = 2016;
const STEPS_LEAST: usize = 18;
/// Quantiles that may be held against a line.
const LEVELS: [f64; 4] = [0.8, 0.85, 0.9, 0.95];
/// Crossings that a record needs.
const CROSSINGS_LEAST: usize = 3;
/// Where the line was not crossed so often, this quantile of the history is tried instead.
const TRIED_AT: f64 = 0.95;
/// Steps that a slope is taken from, and what is left of it step by step.
const SLOPE_STEPS: usize = 6;
const SLOPE_FADES: f64 = 0.95;

/// Watches a line. `None` where the history is too short, too coarse, or does not tell the quantity.
pub fn inflection(history: &History, line: Line) -> Option<Inflection> {
    let own = history.step_s.max(1);
    let factor = STEP_LEAST_S.div_ceil(own).max(1);
    let step_s = own * factor;
    let ahead_s = AHEAD_S.max(line.startup_s + BEYOND_STARTUP_S);
    if f64::from(step_s) > ahead_s / 2.0 {
        return None;
    }
    let values = until_now(history, line.quantity, factor as usize)?;
    let steps = values.len();
    if steps < STEPS_LEAST {
        return None;
    }
    let horizon = (ahead_s / f64::from(step_s)).ceil() as usize;
    let first = ((line.startup_s / f64::from(step_s)).ceil() as usize).clamp(1, horizon - 1);
    let mean = values.iter().filter(|v| !v.is_nan()).sum::<f64>() / steps as f64;
    let actual = Actual::new(values, (mean * 0.02).max(1e-9));
    let rolling = Rolling::every(steps, horizon, step_s, 1);
    let track = &slopes(&actual.logs, &rolling);
    let bands = Bands::of(track, &actual.logs, &rolling, &LEVELS);
    let said = |level: usize, i: usize, lead: usize| {
        let offset = bands.past(i, rolling.bucket_of(lead))[level];
        actual.value(track.at(&rolling, rolling.scored + i, lead) + offset)
    };
    let watch = Watch { rolling: &rolling, values: &actual.values, first };
    // The quantile whose warnings did best in the first half: seen in time, and not for nothing. How it did is said of the second.
    let origins = rolling.origins.len() - rolling.scored;
    let best = |line: f64| {
        let of = |level: usize, origins: Range<usize>| {
            watch.record(line, origins, &|i, lead| said(level, i, lead))
        };
        let each = (0..LEVELS.len()).map(|level| (level, of(level, 0..origins / 2)));
        let best =
            each.reduce(|best, own| if own.1.worth() >= best.1.worth() { own } else { best });
        best.map(|(level, _)| (level, of(level, origins / 2..origins)))
    };
    let mut tried_at = Some(line.most);
    let (mut level, mut record) = best(line.most)?;
    if record.crossings < CROSSINGS_LEAST {
        let known: Vec<f64> = actual.values.iter().copied().filter(|v| !v.is_nan()).collect();
        tried_at = quantile(&known, TRIED_AT).filter(|tried| *tried > 0.0);
        (level, record) =
            tried_at.and_then(best).unwrap_or((LEVELS.len() - 1, AlarmRecord::default()));
    }
    let upper = ahead(track, &actual, &rolling, LEVELS[level]);
    let now = actual.values.iter().rev().copied().find(|v| !v.is_nan()).unwrap_or(0.0);
    let crosses = (first..horizon).find(|lead| now < line.most && upper[*lead] >= line.most);
    Some(Inflection {
        line,
        step_s,
        level: LEVELS[level],
        now,
        crosses_in_s: crosses.map(|lead| (lead as u64 + 1) * u64::from(step_s)),
        most_ahead: upper[first..].iter().copied().fold(0.0, f64::max),
        ahead_s: horizon as u64 * u64::from(step_s),
        tried_at,
        record,
    })
}

/// Means of all classes together over so many steps, counted back from the last, so that what came last counts.
fn until_now(history: &History, quantity: Quantity, factor: usize) -> Option<Vec<f64>> {
    let actuals = Actuals::of(history, history.step_s, None);
    let values = actuals.series(None, quantity)?;
    let mut means: Vec<f64> = values
        .rchunks_exact(factor)
        .take(STEPS_MOST)
        .map(|chunk| {
            let known: Vec<f64> = chunk.iter().copied().filter(|value| !value.is_nan()).collect();
            known.iter().sum::<f64>() / known.len() as f64
        })
        .collect();
    means.reverse();
    Some(means)
}

/// Forecasts that go on from the last steps as these went, ever less so: what is about to happen shows in the slope before it shows in the
/// level, and models that do best over days are the last to see it.
fn slopes(logs: &[f64], rolling: &Rolling) -> Track {
    let steps = |known: usize, out: &mut Vec<f64>| {
        let recent = logs[..known].iter().rev().take(SLOPE_STEPS).enumerate();
        let known: Vec<(f64, f64)> =
            recent.filter(|(_, z)| !z.is_nan()).map(|(back, z)| (-(back as f64), *z)).collect();
        let n = known.len().max(1) as f64;
        let (x, z) = known.iter().fold((0.0, 0.0), |(x, z), own| (x + own.0 / n, z + own.1 / n));
        let (cov, var) = known.iter().fold((0.0, 0.0), |(c, v), own| {
            (c + (own.0 - x) * (own.1 - z), v + (own.0 - x) * (own.0 - x))
        });
        let slope = if var > 0.0 { cov / var } else { 0.0 };
        let (mut at, mut left) = (z - slope * x, 1.0);
        for _ in 0..rolling.horizon {
            left *= SLOPE_FADES;
            at += slope * left;
            out.push(at);
        }
    };
    let mut track = Track { past: Vec::new(), ahead: Vec::new() };
    rolling.origins.iter().for_each(|origin| steps(*origin, &mut track.past));
    steps(rolling.steps, &mut track.ahead);
    track
}

/// The quantile of every lead from now on.
fn ahead(track: &Track, actual: &Actual, rolling: &Rolling, level: f64) -> Vec<f64> {
    let offset = |bucket: usize| {
        let residuals = |from: usize| track.residuals(rolling, &actual.logs, bucket, from);
        let sorted = residuals(rolling.teaches_from(rolling.steps));
        let recent = residuals(rolling.recent_from(rolling.steps));
        let mut out = [0.0];
        quantiles(&sorted, &recent, rolling.independent(bucket, rolling.steps), &[level], &mut out);
        out[0]
    };
    let offsets: Vec<f64> = (0..rolling.ends.len()).map(offset).collect();
    let leads = track.ahead.iter().enumerate();
    leads.map(|(lead, log)| actual.value(log + offsets[rolling.bucket_of(lead)])).collect()
}

struct Watch<'a> {
    rolling: &'a Rolling,
    values: &'a [f64],
    /// The first lead that a warning is about.
    first: usize,
}

impl Watch<'_> {
    /// How warnings would have done against a line.
    fn record(
        &self,
        line: f64,
        among: Range<usize>,
        said: &dyn Fn(usize, usize) -> f64,
    ) -> AlarmRecord {
        let rolling = self.rolling;
        let skipped = among.start;
        let origins = &rolling.origins[rolling.scored + among.start..rolling.scored + among.end];
        let above = |step: usize| self.values.get(step).is_some_and(|value| *value >= line);
        let (Some(watched_from), Some(last)) = (origins.first().copied(), origins.last()) else {
            return AlarmRecord::default();
        };
        let watched_until = (last + rolling.horizon).min(rolling.steps);
        let lately = |step: usize| (step.saturating_sub(rolling.horizon)..step).any(above);
        // What was above a moment ago has not crossed again.
        let crossings: Vec<usize> = (watched_from.max(1)..watched_until)
            .filter(|step| above(*step) && !lately(*step))
            .collect();
        // Who is above already, or was a moment ago, has nothing to be warned of.
        let warned: Vec<bool> = origins
            .iter()
            .enumerate()
            .map(|(i, origin)| {
                let mut leads = self.first..rolling.horizon;
                !lately(*origin) && leads.any(|lead| said(skipped + i, lead) >= line)
            })
            .collect();
        let mut record = AlarmRecord {
            origins: origins.len(),
            crossings: crossings.len(),
            watched_s: 0,
            ..AlarmRecord::default()
        };
        let mut i = 0;
        while i < origins.len() {
            if !warned[i] {
                i += 1;
                continue;
            }
            let from = i;
            while i < origins.len() && warned[i] {
                i += 1;
            }
            let until = origins[i - 1] + rolling.horizon;
            // What is not over yet is not judged.
            if until > rolling.steps && !(origins[from]..rolling.steps).any(above) {
                continue;
            }
            record.alarms += 1;
            let came = (origins[from]..until.min(rolling.steps)).any(above);
            record.false_alarms += usize::from(!came);
        }
        let mut ahead = Vec::new();
        for crossing in crossings {
            let earliest = crossing.saturating_sub(rolling.horizon - 1);
            let latest = crossing.saturating_sub(self.first);
            let early = origins
                .iter()
                .zip(&warned)
                .find(|(origin, warned)| **warned && (earliest..=latest).contains(*origin));
            if let Some((origin, _)) = early {
                record.caught += 1;
                ahead.push((crossing - origin + 1) as f64);
            }
        }
        let step_s = self.step_s();
        record.ahead_median_s = quantile(&ahead, 0.5).map(|steps| steps * step_s);
        record.watched_s = ((watched_until - watched_from) as f64 * step_s) as u64;
        record
    }

    fn step_s(&self) -> f64 {
        f64::from(self.rolling.step_s)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_workload::{ClassHistory, StepCount};

    use super::*;

    fn minutes(counts: impl Iterator<Item = f64>) -> History {
        let step = |n: f64| StepCount { requests: n, attempts: n, ..StepCount::default() };
        let steps = counts.map(step).collect();
        let classes = vec![ClassHistory { name: "chat".to_owned(), steps }];
        History { start_s: 0, step_s: 60, absolute: true, classes }
    }

    fn line(most: f64) -> Line {
        Line { quantity: Quantity::Requests, most, startup_s: 300.0 }
    }

    /// Six hours at 10/s, then a ramp of 1 % a minute for half an hour: at 13.5/s now, some 18/s in half an hour.
    #[test]
    fn a_ramp_is_seen_before_it_arrives() {
        let ramp = |minute: usize| {
            let wobble = 1.0 + 0.01 * (minute as f64 * 0.7).sin();
            600.0 * wobble * 1.01f64.powf(minute.saturating_sub(360) as f64)
        };
        let seen = inflection(&minutes((0..390).map(ramp)), line(15.5)).unwrap();
        assert!(seen.now < 15.5, "{seen:?}");
        assert!(seen.crosses_in_s.is_some_and(|s| (600..=1800).contains(&s)), "{seen:?}");
        let far = inflection(&minutes((0..390).map(ramp)), line(60.0)).unwrap();
        assert_eq!(far.crosses_in_s, None, "{far:?}");
        // What never moves crosses nothing.
        let flat = inflection(&minutes((0..390).map(|_| 600.0)), line(15.5)).unwrap();
        assert_eq!(flat.crosses_in_s, None, "{flat:?}");
    }

    /// A wave of three hours that crosses its line each time: it is warned of, and warnings come true.
    #[test]
    fn warnings_are_scored() {
        let wave = |minute: usize| {
            let turn = minute as f64 / 180.0 * std::f64::consts::TAU;
            600.0 * (1.0 + 0.5 * turn.sin())
        };
        let seen = inflection(&minutes((0..2880).map(wave)), line(13.0)).unwrap();
        let record = seen.record;
        assert_eq!(seen.tried_at, Some(13.0));
        assert!(record.crossings >= 4, "{record:?}");
        assert!(record.caught * 10 >= record.crossings * 7, "{record:?}");
        assert!(record.false_alarms * 4 <= record.alarms, "{record:?}");
        assert!(record.ahead_median_s.is_some_and(|s| (300.0..=1800.0).contains(&s)), "{record:?}");
        assert!(record.watched_s > 43_200, "{record:?}");
        // A line that was never reached is tried at one that was.
        let high = inflection(&minutes((0..2880).map(wave)), line(100.0)).unwrap();
        assert!(high.tried_at.is_some_and(|at| at < 15.1), "{high:?}");
        assert!(high.record.crossings >= 3);
    }

    #[test]
    fn too_little_or_too_coarse_says_nothing() {
        assert_eq!(inflection(&minutes((0..40).map(|_| 5.0)), line(1.0)), None);
        let mut hours = minutes((0..400).map(|_| 5.0));
        hours.step_s = 3600;
        assert_eq!(inflection(&hours, line(1.0)), None);
        let tokens = Line { quantity: Quantity::OutputTokens, ..line(1.0) };
        assert_eq!(inflection(&minutes((0..400).map(|_| 5.0)), tokens), None);
    }
}
