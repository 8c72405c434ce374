//! The demand that a plan was made for, hour by hour, so that it can be held against what came.

use plimsoll_workload::Class;
use serde::Serialize;

/// What a plan expects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// The quantile that is planned for.
    pub quantile: f64,
    /// `scenario`, or `ledger` where a forecast of one said what comes.
    pub from: &'static str,
    /// The beginning of the first hour.
    pub start: String,
    /// Seconds of a step.
    pub step_s: u32,
    /// Each class.
    pub classes: Vec<ExpectedClass>,
}

/// What a class is expected to ask for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedClass {
    /// Its name.
    pub name: String,
    /// Calls of models a second.
    pub requests_per_s: Levels,
    /// Prompt tokens that are not cached, a second.
    pub fresh_tokens_per_s: Levels,
    /// Output tokens a second.
    pub output_tokens_per_s: Levels,
}

/// Hour by hour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Levels {
    /// The median.
    pub p50: Vec<f64>,
    /// At the quantile that is planned for.
    pub planned: Vec<f64>,
}

/// What is expected of classes, at the median and at the quantile that is planned for.
pub fn expected(
    planned: &[Class],
    median: &[Class],
    quantile: f64,
    from: &'static str,
    start: String,
) -> Expected {
    let levels = |name: &str, of: &dyn Fn(&Class, usize) -> f64| {
        let own = |classes: &[Class]| -> Vec<f64> {
            let class = classes.iter().find(|class| class.name == name);
            class.map_or_else(Vec::new, |class| {
                (0..class.hours.len()).map(|hour| digits(of(class, hour))).collect()
            })
        };
        Levels { p50: own(median), planned: own(planned) }
    };
    let classes = planned.iter().map(|class| ExpectedClass {
        name: class.name.clone(),
        requests_per_s: levels(&class.name, &|c, h| per_s(c, h)[0]),
        fresh_tokens_per_s: levels(&class.name, &|c, h| per_s(c, h)[1]),
        output_tokens_per_s: levels(&class.name, &|c, h| per_s(c, h)[2]),
    });
    Expected { quantile, from, start, step_s: 3600, classes: classes.collect() }
}

/// Calls, fresh prompt tokens and output tokens a second of a class in an hour, events included.
pub(crate) fn per_s(class: &Class, hour: usize) -> [f64; 3] {
    let Some(own) = class.hours.get(hour) else { return [0.0; 3] };
    let shift = own.changed(true);
    let rate = own.rate * shift.rate;
    let (fresh, output) = class.task.expected(&shift);
    [rate * class.task.mean_requests(), rate * fresh, rate * output]
}

/// Six digits say all that is known.
pub(crate) fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
