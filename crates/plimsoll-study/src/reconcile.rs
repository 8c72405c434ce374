//! What was forecast and planned against what came.
//!
//! Steps of the outlook are held against steps that came, as far as both are there; a step of which nothing is known counts for nothing,
//! and never as zero. Until a plan says what was provided, capacity is what was sized for: the sizing quantile of every step.

mod assumptions;
mod next;
mod result;
mod series;
mod service;
mod shortfall;
#[cfg(test)]
mod tests;
mod verdict;

use plimsoll_forecast::{Actuals, Memory};
use plimsoll_stats::Seed;
use plimsoll_workload::{Outlook, Quantiles, Quantity};

pub use result::{
    AssumptionCheck, BeforeAfter, ClassMix, CostChange, CostTerm, LevelCoverage, MixRow, NextClass,
    NextLevels, NextValues, ReconciledSeries, Reconciliation, ServiceChange, ShareEstimate,
    Shortfall, WorstStep,
};

/// What a reconciliation needs.
#[derive(Clone, Debug)]
pub struct ReconcileInput<'a> {
    /// What was published.
    pub outlook: &'a Outlook,
    /// What came, in steps as long and on the same clock; it may begin before the outlook or after.
    pub actual: &'a Actuals,
    /// The quantile that was sized for, such as 0.95.
    pub sizing: f64,
    /// How requests were served when the forecast was made: all first, then classes. Empty where nobody knows.
    pub before: &'a [Service],
    /// The same over the steps that came.
    pub after: &'a [Service],
    /// What earlier reconciliations have learnt.
    pub memory: &'a Memory,
    /// The level of intervals, such as 0.95.
    pub confidence: f64,
    /// For resampling.
    pub seed: Seed,
}

/// How the requests of a class were served.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The class; none for all of them together.
    pub class: Option<String>,
    /// First attempts.
    pub requests: f64,
    /// All attempts.
    pub attempts: f64,
    /// Attempts that a limit refused. They cost nothing, and nothing of them is processed.
    pub limited: f64,
    /// Attempts that failed.
    pub failed: f64,
    /// Attempts that were answered.
    pub answered: f64,
    /// Seconds to the first token that one in twenty exceeds.
    pub ttft_p95_s: Option<f64>,
    /// The same, of one in a hundred.
    pub ttft_p99_s: Option<f64>,
    /// Seconds between tokens that one in twenty exceeds.
    pub itl_p95_s: Option<f64>,
    /// The same, of one in a hundred.
    pub itl_p99_s: Option<f64>,
    /// Attempts that got what they were promised; none where nothing was.
    pub good: Option<f64>,
    /// Attempts that were judged.
    pub judged: f64,
    /// What attempts cost, as far as it is known.
    pub cost_usd: Option<f64>,
    /// Attempts whose cost is known; refused ones may be among them.
    pub costed: f64,
    /// Tasks, counted as requests are: scaled up where a log is a sample.
    pub tasks: f64,
    /// Those whose outcome is known.
    pub resolved: f64,
    /// Those that succeeded.
    pub succeeded: f64,
    /// When it begins, on the clock of the outlook.
    pub from_s: Option<i64>,
    /// When it ends.
    pub until_s: Option<i64>,
}

/// Why nothing can be reconciled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReconcileError {
    /// Steps differ.
    #[error("the forecast has steps of {forecast_s} s, and what came has steps of {actual_s} s")]
    Step {
        /// The length of a step of the outlook.
        forecast_s: u32,
        /// The length of a step that came.
        actual_s: u32,
    },
    /// Steps begin at different times.
    #[error("steps of {step_s} s that came begin {by_s} s after those of the forecast")]
    Shifted {
        /// The length of a step.
        step_s: u32,
        /// By how much, less than a step.
        by_s: i64,
    },
    /// One ends before the other begins.
    #[error(
        "the forecast is of {forecast_from_s} s to {forecast_until_s} s, and what came is of {actual_from_s} s to {actual_until_s} s: no step is in both"
    )]
    NoOverlap {
        /// When the outlook begins.
        forecast_from_s: i64,
        /// When it ends.
        forecast_until_s: i64,
        /// When what came begins.
        actual_from_s: i64,
        /// When it ends.
        actual_until_s: i64,
    },
    /// Nobody sizes for less than the median, and nobody can for certainty.
    #[error("a sizing quantile of {level} is not from 0.5 to below 1")]
    Sizing {
        /// What was asked for.
        level: f64,
    },
    /// An interval that holds nothing, or everything.
    #[error("a confidence of {level} is not between 0 and 1")]
    Confidence {
        /// What was asked for.
        level: f64,
    },
}

/// Holds a forecast against what came.
pub fn reconcile(input: &ReconcileInput<'_>) -> Result<Reconciliation, ReconcileError> {
    let overlap = Overlap::of(input)?;
    let subjects = overlap.subjects();
    let resources = series::resources(&overlap);
    let mix = series::mix(&overlap, &subjects);
    let shortfall = shortfall::shortfalls(&overlap);
    let service = service::changes(input.before, input.after);
    let cost_change = service::cost_change(input.before, input.after);
    let values = assumptions::values(&overlap, &subjects);
    let assumptions = assumptions::checks(&overlap, &values, mix.distance);
    let next = next::next(&overlap, &values);
    let span = |services: &[Service]| {
        services.first().map_or((None, None), |first| (first.from_s, first.until_s))
    };
    let ((before_from_s, before_until_s), (after_from_s, after_until_s)) =
        (span(input.before), span(input.after));
    let mut reconciliation = Reconciliation {
        steps: overlap.steps,
        step_s: overlap.step_s,
        missing: overlap.missing(),
        from_s: overlap.at_s(0),
        until_s: overlap.at_s(overlap.steps),
        absolute: input.outlook.absolute,
        sizing: input.sizing,
        confidence: input.confidence,
        seed: input.seed.get(),
        resources,
        mix,
        shortfall,
        before_from_s,
        before_until_s,
        after_from_s,
        after_until_s,
        service,
        cost_change,
        assumptions,
        next,
        verdict: Vec::new(),
    };
    reconciliation.verdict = verdict::verdict(&reconciliation);
    Ok(reconciliation)
}

/// The steps that are in both.
struct Overlap<'a> {
    input: &'a ReconcileInput<'a>,
    step_s: u32,
    /// How many.
    steps: usize,
    /// Where the first of them stands in the outlook.
    in_outlook: usize,
    /// And in what came.
    in_actual: usize,
    /// Steps of which anything is known.
    known: Vec<bool>,
}

/// Steps of a series of which both sides are known, in order.
struct Paired {
    /// Where a step stands in the overlap.
    at: Vec<usize>,
    /// What came.
    actual: Vec<f64>,
    /// What was said.
    said: Vec<Quantiles>,
}

/// A class as each side calls it.
struct Subject<'a> {
    /// What it is called; none where nobody knows, and for several together.
    name: Option<&'a str>,
    /// In the outlook and in what came; none for all classes together. An outlook of one class does not say its name.
    key: Option<&'a str>,
}

impl<'a> Overlap<'a> {
    fn of(input: &'a ReconcileInput<'a>) -> Result<Self, ReconcileError> {
        let (outlook, actual) = (input.outlook, input.actual);
        if !(0.5..1.0).contains(&input.sizing) {
            return Err(ReconcileError::Sizing { level: input.sizing });
        }
        if !(input.confidence > 0.0 && input.confidence < 1.0) {
            return Err(ReconcileError::Confidence { level: input.confidence });
        }
        if outlook.step_s != actual.step_s || outlook.step_s == 0 {
            let (forecast_s, actual_s) = (outlook.step_s, actual.step_s);
            return Err(ReconcileError::Step { forecast_s, actual_s });
        }
        let step_s = i64::from(outlook.step_s);
        let after = actual.start_s.saturating_sub(outlook.start_s);
        let series = outlook.classes.iter().flat_map(|class| &class.series);
        let published = series.map(|(_, steps)| steps.len()).max().unwrap_or(0);
        let (in_outlook, in_actual) =
            (steps_of(after, step_s), steps_of(after.saturating_neg(), step_s));
        let steps =
            published.saturating_sub(in_outlook).min(actual.steps.saturating_sub(in_actual));
        if steps == 0 {
            let end = |start: i64, steps: usize| {
                start
                    .saturating_add(step_s.saturating_mul(i64::try_from(steps).unwrap_or(i64::MAX)))
            };
            return Err(ReconcileError::NoOverlap {
                forecast_from_s: outlook.start_s,
                forecast_until_s: end(outlook.start_s, published),
                actual_from_s: actual.start_s,
                actual_until_s: end(actual.start_s, actual.steps),
            });
        }
        let by_s = after.rem_euclid(step_s);
        if by_s != 0 {
            return Err(ReconcileError::Shifted { step_s: outlook.step_s, by_s });
        }
        let known = |i: usize| {
            let mut values = actual.series.iter().filter_map(|series| series.values.get(i));
            values.any(|value| value.is_finite())
        };
        let known = (in_actual..in_actual + steps).map(known).collect();
        Ok(Self { input, step_s: outlook.step_s, steps, in_outlook, in_actual, known })
    }

    fn at_s(&self, step: usize) -> i64 {
        self.input.outlook.at_s(self.in_outlook + step)
    }

    fn missing(&self) -> usize {
        self.known.iter().filter(|known| !**known).count()
    }

    /// The classes, those of the outlook first; where it has none, all together are one.
    fn subjects(&self) -> Vec<Subject<'a>> {
        let (outlook, actual) = (self.input.outlook, self.input.actual);
        let came = actual.series.iter().filter_map(|series| series.class.as_deref());
        let mut names: Vec<&str> =
            outlook.classes.iter().filter_map(|class| class.class.as_deref()).collect();
        let nameless = names.is_empty();
        for name in came {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.as_slice() {
            [only] if nameless => vec![Subject { name: Some(only), key: None }],
            _ if nameless => vec![Subject { name: None, key: None }],
            _ => names.iter().map(|name| Subject { name: Some(name), key: Some(name) }).collect(),
        }
    }

    /// Classes and quantities of the outlook, in its order.
    fn published(&self) -> impl Iterator<Item = (Option<&'a str>, Quantity)> + use<'a> {
        let classes = self.input.outlook.classes.iter();
        classes.flat_map(|own| own.series.iter().map(|(of, _)| (own.class.as_deref(), *of)))
    }

    /// What was said, step by step; none where it is not known.
    fn said(&self, class: Option<&str>, quantity: Quantity) -> Vec<Option<Quantiles>> {
        let series = self.input.outlook.series(class, quantity).unwrap_or_default();
        let known = |said: &&Quantiles| said.0.iter().all(|value| value.is_finite());
        let at = |step| series.get(self.in_outlook + step).filter(known).copied();
        (0..self.steps).map(at).collect()
    }

    /// What came, step by step; none where it is not known. A class of which there is no series at all had no request.
    fn came(&self, class: Option<&str>, quantity: Quantity) -> Vec<Option<f64>> {
        let actual = self.input.actual;
        if let Some(values) = actual.series(class, quantity) {
            let known = |value: &f64| value.is_finite();
            let at = |step| values.get(self.in_actual + step).copied().filter(known);
            return (0..self.steps).map(at).collect();
        }
        let silent = class.is_some()
            && quantity != Quantity::CachedShare
            && actual.series.iter().all(|series| series.class.as_deref() != class);
        self.known.iter().map(|known| (silent && *known).then_some(0.0)).collect()
    }

    /// Both sides of a series.
    fn paired(&self, class: Option<&str>, quantity: Quantity) -> Paired {
        let mut paired = Paired { at: Vec::new(), actual: Vec::new(), said: Vec::new() };
        let (came, said) = (self.came(class, quantity), self.said(class, quantity));
        for (step, both) in came.into_iter().zip(said).enumerate() {
            if let (Some(actual), Some(said)) = both {
                paired.at.push(step);
                paired.actual.push(actual);
                paired.said.push(said);
            }
        }
        paired
    }

    /// What was sized for in a step. Where the quantile is a published one, it is that to the last bit.
    fn bound(&self, said: &Quantiles) -> f64 {
        let published = Quantiles::LEVELS.iter().zip(said.0);
        let own = published.into_iter().find(|(level, _)| **level == self.input.sizing);
        own.map_or_else(|| said.at(self.input.sizing), |(_, value)| value)
    }
}

/// Whole steps in a time, rounded up; none in one that is gone.
fn steps_of(time_s: i64, step_s: i64) -> usize {
    let time_s = time_s.max(0);
    usize::try_from(time_s / step_s + i64::from(time_s % step_s > 0)).unwrap_or(usize::MAX)
}

/// A quotient; none where it is no number, or not finite.
fn ratio(a: f64, b: f64) -> Option<f64> {
    let ratio = a / b;
    (b > 0.0 && ratio.is_finite()).then_some(ratio)
}
