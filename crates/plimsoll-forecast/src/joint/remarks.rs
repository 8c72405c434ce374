//! What should be known of a history before its forecast is trusted.

use plimsoll_stats::quantile;

use super::{Class, Component, DAY_S, Outlier, Setting};
use crate::gaps::Gap;

/// A step is an outlier beyond so many median absolute deviations.
const OUTLIER_DEVIATIONS: f64 = 8.0;
/// A level that has moved by less is no shift, on the logarithm.
const SHIFT_LEAST: f64 = 0.26;
/// With less history than this, intervals are wider.
const SHORT_S: u64 = 14 * 86_400;

impl Setting<'_> {
    /// What the level of the last steps, as many as are looked ahead, is times that of as many before; none where that is nothing unusual.
    pub(super) fn shifted(&self, rate: &Component) -> Option<f64> {
        let steps =
            self.rolling.horizon.max(self.grid.day.unwrap_or(24)).min(self.rolling.steps / 4);
        if steps < 12 {
            return None;
        }
        let season = rate.season.longest(self.rolling.steps, 2).unwrap_or(1);
        let logs = &rate.actual.logs;
        let n = logs.len();
        // The same times, so that a season is no shift.
        let steps = if steps >= season { steps / season * season } else { season };
        let middle = |from: usize, to: usize| {
            let known: Vec<f64> =
                logs.get(from..to)?.iter().copied().filter(|z| !z.is_nan()).collect();
            quantile(&known, 0.5)
        };
        let of = |back: usize| middle(n.checked_sub(back * steps)?, n - (back - 1) * steps);
        let moved = of(1)? - of(2)?;
        // How much such stretches differ otherwise.
        let others: Vec<f64> =
            (2..n / steps).filter_map(|i| Some((of(i)? - of(i + 1)?).abs())).collect();
        let usual = quantile(&others, 0.5).unwrap_or(0.0);
        (moved.abs() > SHIFT_LEAST.max(4.0 * usual)).then(|| libm::exp(moved))
    }

    /// Steps that are far from what their class does.
    pub(super) fn outliers(&self, class: &str, rate: &Component) -> Vec<Outlier> {
        let logs = &rate.actual.logs;
        let n = logs.len();
        let around = |i: usize| -> Option<f64> {
            let near: Vec<f64> = match rate.season.day {
                Some(day) => (i % day..n).step_by(day).map(|j| logs[j]).collect(),
                None => logs[i.saturating_sub(12)..(i + 13).min(n)].to_vec(),
            };
            let known: Vec<f64> = near.into_iter().filter(|z| !z.is_nan()).collect();
            quantile(&known, 0.5)
        };
        let off: Vec<(usize, f64)> = (0..n)
            .filter(|i| !logs[*i].is_nan())
            .filter_map(|i| Some((i, logs[i] - around(i)?)))
            .collect();
        let sizes: Vec<f64> = off.iter().map(|(_, off)| off.abs()).collect();
        let Some(deviation) = quantile(&sizes, 0.5) else { return Vec::new() };
        let limit = (OUTLIER_DEVIATIONS * deviation).max(std::f64::consts::LN_2);
        let far = off.into_iter().filter(|(_, off)| *off > limit);
        far.map(|(i, off)| Outlier {
            class: class.to_owned(),
            at_s: self.history.at_s(i),
            value: rate.actual.values[i] * self.past(class, i)[0],
            times: libm::exp(off),
        })
        .collect()
    }

    pub(super) fn warnings(&self, classes: &[Class], found: &[Gap]) -> Vec<String> {
        let mut warnings = Vec::new();
        let step_s = u64::from(self.history.step_s);
        let span_s = self.rolling.steps as u64 * step_s;
        let long = span(span_s);
        if span_s < SHORT_S {
            warnings.push(format!(
                "{long} of history are less than two weeks: intervals are widened for it, and no weekly season can be told"
            ));
        } else if self.grid.day.is_some() && self.grid.week.is_none() {
            warnings.push(format!(
                "{long} of history are less than three weeks: no weekly season can be told"
            ));
        }
        let ends = &self.rolling.ends;
        let mut thin = Vec::new();
        for (bucket, end) in ends.iter().enumerate() {
            if self.rolling.independent(bucket, self.rolling.steps) < 4.0 {
                thin.push(*end as u64 * step_s);
            }
        }
        if let (Some(_), Some(last)) = (thin.first(), ends.last()) {
            let judged = ends.len() - thin.len();
            let from = judged.checked_sub(1).map_or(0, |i| ends[i] as u64 * step_s);
            warnings.push(format!(
                "lead times from {} to {} have seen less than three of their own length: their intervals are widened up to three times, and rest on little",
                span(from),
                span(*last as u64 * step_s)
            ));
        }
        if !found.is_empty() {
            let lost: u64 = found.iter().map(|gap| gap.lasts_s).sum();
            warnings.push(format!(
                "in {} stretches, {} in all, no class has a row: taken for gaps in the counting, not for zeros",
                found.len(),
                span(lost)
            ));
        }
        for class in classes {
            if let Some(times) = class.shifted {
                warnings.push(format!(
                    "the level of {} is {times:.1} times what it was before, since not long ago: how forecasts did before says little of how they will do now; an event of the scenario can say what happened",
                    class.name
                ));
            }
        }
        let borrowed: Vec<&str> =
            classes.iter().filter(|class| class.borrowed).map(|c| c.name.as_str()).collect();
        if !borrowed.is_empty() {
            let share: f64 = {
                let own = |class: &plimsoll_workload::ClassHistory| -> f64 {
                    class.steps.iter().map(|step| step.requests).sum()
                };
                let total: f64 = self.history.classes.iter().map(own).sum();
                let theirs =
                    self.history.classes.iter().filter(|c| borrowed.contains(&c.name.as_str()));
                theirs.map(own).sum::<f64>() / total.max(1e-9)
            };
            let names = if borrowed.len() > 4 {
                format!("{} and {} more", borrowed[..4].join(", "), borrowed.len() - 4)
            } else {
                borrowed.join(", ")
            };
            warnings.push(format!(
                "lengths of {names} are not known ({:.0}% of requests): they are taken for as long as the others",
                share * 100.0
            ));
        }
        warnings
    }
}

/// A time as people say it.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{:.0} h", seconds as f64 / 3600.0),
        _ => format!("{:.1} days", seconds as f64 / f64::from(DAY_S)),
    }
}
