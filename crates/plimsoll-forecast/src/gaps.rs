//! Steps in which nobody was counting.

use plimsoll_stats::quantile;
use plimsoll_workload::{ClassHistory, History, StepCount};

/// A stretch without any row where there should have been some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it begins, on the clock of the history.
    pub from_s: i64,
    /// How long it lasts.
    pub lasts_s: u64,
}

/// With so many requests to be expected, none is no chance.
const EXPECTED_LEAST: f64 = 10.0;
/// A step is known if so much of it is.
const COVERED_LEAST: f64 = 0.5;
const DAY_S: i64 = 86_400;
const WEEK_S: i64 = 7 * DAY_S;

/// Which steps are missing: stretches in which all classes are at zero at once, while many requests were to be expected of them. What is
/// always idle at this time, or on this day, is idle now. `expected` says what is to be expected at a moment, where somebody knows it better
/// than the history itself.
pub(crate) fn missing(
    history: &History,
    expected: Option<&dyn Fn(i64) -> Option<f64>>,
) -> Vec<bool> {
    let n = history.len();
    let total = |i: usize| -> f64 {
        history.classes.iter().filter_map(|class| class.steps.get(i)).map(|s| s.attempts).sum()
    };
    let totals: Vec<f64> = (0..n).map(total).collect();
    let usual = Usual { history, totals: &totals, overall: quantile(&totals, 0.5).unwrap_or(0.0) };
    let expect = |i: usize| {
        let known = expected.and_then(|expected| expected(history.at_s(i)));
        known.unwrap_or_else(|| usual.at(i))
    };
    let mut gone = vec![false; n];
    let mut from = 0;
    while from < n {
        if totals[from] > 0.0 {
            from += 1;
            continue;
        }
        let until = (from..n).find(|i| totals[*i] > 0.0).unwrap_or(n);
        let expects: Vec<f64> = (from..until).map(expect).collect();
        if expects.iter().sum::<f64>() >= EXPECTED_LEAST {
            // Where nothing was to be expected at either end, nothing is known to be missing.
            let first = expects.iter().position(|e| *e > 0.0).unwrap_or(0);
            let last = expects.iter().rposition(|e| *e > 0.0).unwrap_or(expects.len() - 1);
            gone[from + first..=from + last].fill(true);
        }
        from = until;
    }
    gone
}

/// What a step has on other days.
struct Usual<'a> {
    history: &'a History,
    totals: &'a [f64],
    /// The median of all steps.
    overall: f64,
}

impl Usual<'_> {
    /// The median of the same time of the same day in other weeks; with fewer than two of those, of the same time of other days that are
    /// working days, or not, as this one is; with none of those, of all steps.
    fn at(&self, step: usize) -> f64 {
        let step_s = i64::from(self.history.step_s);
        let others = |period_s: i64, like: &dyn Fn(usize) -> bool| -> Vec<f64> {
            if period_s % step_s != 0 {
                return Vec::new();
            }
            let period = usize::try_from(period_s / step_s).unwrap_or(usize::MAX);
            let same = (step % period..self.totals.len()).step_by(period);
            same.filter(|i| *i != step && like(*i)).map(|i| self.totals[i]).collect()
        };
        let weeks = others(WEEK_S, &|_| true);
        if weeks.len() >= 2 {
            return quantile(&weeks, 0.5).unwrap_or(0.0);
        }
        let own = self.is_weekend(step);
        let days = others(DAY_S, &|i| self.is_weekend(i) == own);
        match quantile(&days, 0.5) {
            Some(median) => median,
            // A single weekend or working day is like nothing else that is known.
            None if i64::try_from(self.totals.len()).unwrap_or(i64::MAX).saturating_mul(step_s)
                >= 2 * DAY_S =>
            {
                0.0
            }
            None => self.overall,
        }
    }

    /// Whether a step is of a Saturday or a Sunday, UTC; none where nobody knows the day.
    fn is_weekend(&self, step: usize) -> Option<bool> {
        // The first day of 1970 was a Thursday.
        let day = self.history.at_s(step).div_euclid(DAY_S) + 4;
        self.history.absolute.then(|| matches!(day.rem_euclid(7), 0 | 6))
    }
}

/// The gaps of missing steps.
pub(crate) fn gaps(history: &History, missing: &[bool]) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for (i, _) in missing.iter().enumerate().filter(|(_, gone)| **gone) {
        let at = history.at_s(i);
        match gaps.last_mut() {
            Some(gap) if gap.from_s + gap.lasts_s.cast_signed() == at => {
                gap.lasts_s += u64::from(history.step_s);
            }
            _ => gaps.push(Gap { from_s: at, lasts_s: u64::from(history.step_s) }),
        }
    }
    gaps
}

/// The same in steps so many times as long, and how much of each is known. What is missing of a step is taken to be like the rest of it;
/// a step that is not known by half is not known. Steps begin at multiples of their length where the clock is that of the world; what does
/// not fill one at either end is left out.
pub(crate) fn coarser(history: &History, factor: usize, missing: &[bool]) -> (History, Vec<bool>) {
    let factor = factor.max(1);
    let step = i64::from(history.step_s);
    let long = step.saturating_mul(i64::try_from(factor).unwrap_or(i64::MAX));
    let skip = if history.absolute {
        ((long - history.start_s.rem_euclid(long)) % long / step) as usize
    } else {
        0
    };
    let count = history.len().saturating_sub(skip) / factor;
    let range = |i: usize| skip + i * factor..skip + (i + 1) * factor;
    let covered: Vec<f64> = (0..count)
        .map(|i| range(i).filter(|j| !missing[*j]).count() as f64 / factor as f64)
        .collect();
    let classes = history.classes.iter().map(|class| {
        let steps = (0..count).map(|i| {
            let mut sum = StepCount::default();
            range(i).filter_map(|j| class.steps.get(j)).for_each(|step| sum.merge(step));
            if covered[i] > 0.0 && covered[i] < 1.0 {
                let times = 1.0 / covered[i];
                sum.requests *= times;
                sum.attempts *= times;
                sum.limited *= times;
                sum.failed *= times;
            }
            sum
        });
        ClassHistory { name: class.name.clone(), steps: steps.collect() }
    });
    let history = History {
        start_s: history.at_s(skip),
        step_s: u32::try_from(long).unwrap_or(u32::MAX),
        absolute: history.absolute,
        classes: classes.collect(),
    };
    (history, covered.into_iter().map(|covered| covered < COVERED_LEAST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(step_s: u32, start_s: i64, counts: &[f64]) -> History {
        let step = |n: &f64| StepCount { requests: *n, attempts: *n, ..StepCount::default() };
        let steps = counts.iter().map(step).collect();
        let classes = vec![ClassHistory { name: "chat".to_owned(), steps }];
        History { start_s, step_s, absolute: true, classes }
    }

    fn none(history: &History) -> bool {
        missing(history, None).iter().all(|gone| !gone)
    }

    /// A quiet hour among busy ones is a gap; every night's is not; one of few requests is chance.
    #[test]
    fn silence_among_noise_is_a_gap() {
        let busy = history(3600, 0, &[50.0, 60.0, 0.0, 0.0, 55.0]);
        let gone = missing(&busy, None);
        assert_eq!(gone, [false, false, true, true, false]);
        assert_eq!(gaps(&busy, &gone), [Gap { from_s: 7200, lasts_s: 7200 }]);
        assert!(none(&history(3600, 0, &[2.0, 0.0, 3.0])));
        let office: Vec<f64> =
            (0..96).map(|hour| if hour % 24 < 8 { 0.0 } else { 100.0 }).collect();
        // From a Monday on.
        let monday = 4 * 86_400;
        assert!(none(&history(3600, monday, &office)));
        let mut broken = office.clone();
        broken[34] = 0.0;
        let gone = missing(&history(3600, monday, &broken), None);
        assert!(gone[34] && gone.iter().filter(|gone| **gone).count() == 1);
    }

    /// An outage from noon to noon is missing by day; the night within it is, too, and the nights around it are not.
    #[test]
    fn an_outage_is_one_gap() {
        let monday = 4 * 86_400;
        let mut days: Vec<f64> =
            (0..120).map(|hour| if hour % 24 < 6 { 0.0 } else { 100.0 }).collect();
        days[36..62].fill(0.0);
        let gone = missing(&history(3600, monday, &days), None);
        let expect: Vec<bool> = (0..120).map(|hour| (36..62).contains(&hour)).collect();
        assert_eq!(gone, expect);
    }

    /// Nobody works at weekends: not in the first week, nor in the sixth. A Wednesday without anybody is another matter.
    #[test]
    fn weekends_are_no_gaps() {
        let monday = 4 * 86_400;
        for weeks in [1, 2, 6] {
            let mut hours: Vec<f64> =
                (0..weeks * 168).map(|hour| if hour % 168 < 120 { 50.0 } else { 0.0 }).collect();
            assert!(none(&history(3600, monday, &hours)), "{weeks} weeks");
            hours[48..72].fill(0.0);
            let gone = missing(&history(3600, monday, &hours), None);
            let lost: Vec<usize> = (0..gone.len()).filter(|i| gone[*i]).collect();
            assert_eq!(lost, (48..72).collect::<Vec<_>>(), "{weeks} weeks");
        }
    }

    /// Who knows what was to be expected knows what is missing.
    #[test]
    fn a_short_stretch_is_held_against_what_was_expected() {
        let night = history(3600, 0, &[0.0, 0.0, 80.0, 0.0]);
        let knows = |at: i64| Some(if at < 7200 { 0.0 } else { 60.0 });
        assert_eq!(missing(&night, Some(&knows)), [false, false, false, true]);
    }

    /// 10 of 4 of 6 windows stand for 15; with 2 of 6 nothing is known.
    #[test]
    fn a_gap_within_a_step_is_filled_by_its_rest() {
        let fine = history(600, 0, &[4.0, 0.0, 0.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0]);
        let gone: Vec<bool> = fine.classes[0].steps.iter().map(|s| s.attempts <= 0.0).collect();
        let (hours, gone) = coarser(&fine, 6, &gone);
        assert_eq!((hours.step_s, hours.len()), (3600, 2));
        assert!((hours.classes[0].steps[0].requests - 15.0).abs() < 1e-12);
        assert_eq!(gone, [false, true]);
        // From half past on, the first half hour is left out.
        let late = history(600, 1800, &[1.0; 10]);
        let (hours, _) = coarser(&late, 6, &[false; 10]);
        assert_eq!((hours.start_s, hours.len()), (3600, 1));
        assert!((hours.classes[0].steps[0].requests - 6.0).abs() < 1e-12);
    }
}
