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
    let rate = |class: &Class, hour: usize| {
        let shift = class.hours[hour].changed(true);
        (class.hours[hour].rate * shift.rate, shift)
    };
    let classes = planned.iter().map(|class| ExpectedClass {
        name: class.name.clone(),
        requests_per_s: levels(&class.name, &|c, h| rate(c, h).0 * c.task.mean_requests()),
        fresh_tokens_per_s: levels(&class.name, &|c, h| {
            let (rate, shift) = rate(c, h);
            rate * c.task.expected(&shift).0
        }),
        output_tokens_per_s: levels(&class.name, &|c, h| {
            let (rate, shift) = rate(c, h);
            rate * c.task.expected(&shift).1
        }),
    });
    Expected { quantile, from, start, step_s: 3600, classes: classes.collect() }
}

/// Six digits say all that is known.
fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
