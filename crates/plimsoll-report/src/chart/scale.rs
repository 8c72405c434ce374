//! Axes: where a value lies, which ticks there are, and how numbers are written.

use super::draw::Axis;
use crate::forecast::number;

/// What an axis spans; where a value lies on it is between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale<'a> {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) axis: &'a Axis,
}

/// A tick: where, what is written, and whether there is room for it on a phone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
    pub(super) narrow: bool,
}

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
/// Steps that clocks and calendars are read in.
const CLOCK: [f64; 15] = [
    60.0,
    300.0,
    900.0,
    1800.0,
    HOUR,
    2.0 * HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    7.0 * DAY,
    14.0 * DAY,
    28.0 * DAY,
    91.0 * DAY,
];

impl<'a> Scale<'a> {
    /// A scale over values; `ticks` ends it at ticks, about so many.
    pub(super) fn over(
        axis: &'a Axis,
        values: impl Iterator<Item = f64>,
        ticks: Option<f64>,
    ) -> Self {
        let usable = |value: &f64| value.is_finite() && (!axis.log || *value > 0.0);
        let (mut low, mut high) = values
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            (low, high) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if axis.from_zero {
            low = low.min(0.0);
        }
        if high - low <= f64::EPSILON * high.abs() {
            let room = if low == 0.0 { 1.0 } else { 0.1 * low.abs() };
            high += room;
            low = if axis.from_zero || axis.log || low == 0.0 { low } else { low - room };
        }
        let shares = axis.percent && high <= 1.0;
        if let (Some(about), false) = (ticks, axis.log || axis.time) {
            let step = step((high - low) / about);
            (low, high) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        }
        Self { low, high: if shares { high.min(1.0) } else { high }, axis }
    }

    /// Where a value lies; below 0 or above 1 where it is beyond.
    pub(super) fn at(&self, value: f64) -> f64 {
        if self.axis.log {
            let floor = self.low * 1e-3;
            (value.max(floor) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// About so many ticks.
    pub(super) fn ticks(&self, about: f64) -> Vec<Tick> {
        let (at, first): (Vec<f64>, usize) = if self.axis.log {
            (self.log_ticks(), 0)
        } else {
            let span = self.high - self.low;
            let step = match self.axis.time {
                true => CLOCK.into_iter().find(|s| *s * about >= span).unwrap_or(364.0 * DAY),
                false => step(span / about),
            };
            let from = (self.low / step - 1e-9).ceil();
            let until = (self.high / step + 1e-9).floor();
            let all: Vec<f64> = (0..=(until - from).clamp(0.0, 50.0) as u32)
                .map(|i| (from + f64::from(i)) * step)
                .collect();
            // A phone shows every second one, midnights among them.
            let first =
                all.iter().position(|at| at.rem_euclid(DAY) == 0.0).filter(|_| self.axis.time);
            (all, first.unwrap_or(0) % 2)
        };
        let labels = if self.axis.time { clock(&at) } else { written(&at, self.axis) };
        let ticks = at.into_iter().zip(labels).enumerate();
        ticks.map(|(i, (at, label))| Tick { at, label, narrow: i % 2 == first }).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match decades {
            few if few <= 1.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            some if some <= 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let (from, until) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        // Of many decades, every second or third is written.
        let each = (decades / 6.0).ceil().max(1.0) as usize;
        let all = (from..=until)
            .step_by(each)
            .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
        all.filter(|at| (self.low * 0.999..=self.high * 1.001).contains(at)).collect()
    }
}

/// The least round step that is no smaller.
fn step(least: f64) -> f64 {
    let decade = 10f64.powi(least.max(1e-12).log10().floor() as i32);
    let round = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|r| r * decade >= least * 0.999);
    round.unwrap_or(10.0) * decade
}

/// Numbers of an axis in as few digits as tell them apart, all in one unit but where it grows by factors.
fn written(at: &[f64], axis: &Axis) -> Vec<String> {
    let most = at.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let write = |value: &f64| {
        let (unit, sign) = match if axis.log { *value } else { most } {
            _ if axis.percent => (0.01, "%"),
            most if most >= 1e9 => (1e9, "G"),
            most if most >= 1e6 => (1e6, "M"),
            most if most >= 1e4 => (1e3, "k"),
            _ => (1.0, ""),
        };
        let value = value / unit;
        let exact = |digits: &usize| {
            let factor = 10f64.powi(i32::try_from(*digits).unwrap_or(0));
            ((value * factor).round() / factor - value).abs() <= 1e-6 * value.abs()
        };
        let digits = (0..9).find(exact).unwrap_or(9);
        match value == 0.0 {
            true => format!("0{}", if axis.percent { "%" } else { "" }),
            false => format!("{value:.digits$}{sign}"),
        }
    };
    at.iter().map(write).collect()
}

/// Times of the day, with the date at midnight and where none would stand.
fn clock(at: &[f64]) -> Vec<String> {
    let midnight = |at: f64| at.rem_euclid(DAY) == 0.0;
    let dated = at.iter().any(|at| midnight(*at));
    let tick = |(i, at): (usize, &f64)| {
        let pattern = match (midnight(*at), i == 0 && !dated) {
            (true, _) => "%b %-d",
            (false, true) => "%b %-d, %H:%M",
            (false, false) => "%H:%M",
        };
        moment(*at, pattern)
    };
    at.iter().enumerate().map(tick).collect()
}

/// Seconds since 1970 as a calendar has them.
pub(crate) fn moment(seconds: f64, pattern: &str) -> String {
    let at = jiff::Timestamp::from_second(seconds.round() as i64);
    at.map_or(String::new(), |at| {
        at.to_zoned(jiff::tz::TimeZone::UTC).strftime(pattern).to_string()
    })
}

/// A value as it is read off a chart.
pub(super) fn figure(value: f64, axis: &Axis) -> String {
    match value {
        share if axis.percent => format!("{:.2}%", 100.0 * share),
        below if below < 0.0 => format!("-{}", number(-below)),
        value => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(axis: &Axis, values: [f64; 2], about: f64, expect: &[&str]) {
        let scale = Scale::over(axis, values.into_iter(), None);
        let ticks = scale.ticks(about);
        let labels: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, expect, "{values:?}");
        assert!(ticks.iter().all(|tick| (-1e-6..=1.0 + 1e-6).contains(&scale.at(tick.at))));
    }

    #[test]
    fn ticks_are_round_and_written_in_few_digits() {
        let plain = Axis::default();
        check(&plain, [0.0, 9.7], 5.0, &["0", "2", "4", "6", "8"]);
        check(&plain, [0.31, 1.2], 5.0, &["0.4", "0.6", "0.8", "1", "1.2"]);
        check(&plain, [0.0, 1.3e6], 4.0, &["0", "0.5M", "1M"]);
        check(&plain, [f64::NAN, 0.0], 2.0, &["0", "0.5", "1"]);
        check(
            &Axis { percent: true, ..Axis::default() },
            [0.985, 1.0],
            4.0,
            &["98.5%", "99%", "99.5%", "100%"],
        );
        check(
            &Axis { log: true, ..Axis::default() },
            [3.0, 40_000.0],
            5.0,
            &["10", "100", "1000", "10k"],
        );
        check(
            &Axis { log: true, ..Axis::default() },
            [90.0, 1200.0],
            5.0,
            &["100", "200", "500", "1000"],
        );
    }

    #[test]
    fn moments_have_their_dates_at_midnight() {
        let time = Axis { time: true, ..Axis::default() };
        // 2026-11-16 00:00 UTC.
        let start = 1_794_787_200.0;
        check(&time, [start, start + DAY], 5.0, &["Nov 16", "06:00", "12:00", "18:00", "Nov 17"]);
        check(
            &time,
            [start + 9.0 * HOUR, start + 12.0 * HOUR],
            4.0,
            &["Nov 16, 09:00", "10:00", "11:00", "12:00"],
        );
        assert_eq!(moment(start, "%Y-%m-%d %H:%M"), "2026-11-16 00:00");
    }
}
