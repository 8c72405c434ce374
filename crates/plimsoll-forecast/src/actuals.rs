//! What came, in the quantities of an outlook.

use plimsoll_workload::{ClassHistory, History, Known, Outlook, Quantity, StepCount};

use crate::gaps::{coarser, missing};

/// What came of a quantity, step by step.
#[derive(Clone, Debug, PartialEq)]
pub struct Actuals {
    /// When the first step begins, on the clock of the history.
    pub start_s: i64,
    /// How long a step is.
    pub step_s: u32,
    /// How many steps there are.
    pub steps: usize,
    /// All classes together first, then each; a quantity of which nothing is known is not there. Steps of which nothing is known are not a
    /// number.
    pub series: Vec<ActualSeries>,
}

/// A quantity of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ActualSeries {
    /// The class; none for all of them together.
    pub class: Option<String>,
    /// What is counted.
    pub quantity: Quantity,
    /// Step by step, in the unit of the quantity.
    pub values: Vec<f64>,
}

impl Actuals {
    /// What came in steps of `step_s`, a whole number of those of the history. Gaps are not a number, and not zero: stretches without any row in
    /// which there should have been some by `expected`, where it reaches, or by what other days have.
    pub fn of(history: &History, step_s: u32, expected: Option<&Outlook>) -> Self {
        let median = |at_s: i64| {
            let outlook = expected?;
            let series = outlook.series(None, Quantity::Requests)?;
            let step = (at_s - outlook.start_s).div_euclid(i64::from(outlook.step_s.max(1)));
            let quantiles = series.get(usize::try_from(step).ok()?)?;
            Some(quantiles.0[0] * f64::from(history.step_s))
        };
        let gone = missing(history, Some(&median));
        let factor = (step_s / history.step_s.max(1)).max(1) as usize;
        let (history, gone) = coarser(history, factor, &gone);
        let overall = Lengths::of_all(&history);
        let by_class: Vec<Vec<(Quantity, Vec<f64>)>> = history
            .classes
            .iter()
            .map(|class| quantities(class, &gone, f64::from(history.step_s), &overall))
            .collect();
        let mut series = Vec::new();
        for quantity in Quantity::ALL {
            let values = match quantity {
                Quantity::CachedShare => {
                    let prompt = sum(&by_class, Quantity::PromptTokens);
                    let fresh = sum(&by_class, Quantity::FreshTokens);
                    let known = by_class.iter().flatten().any(|(q, _)| *q == quantity);
                    let share = |(prompt, fresh): (f64, f64)| {
                        if prompt > 0.0 { 1.0 - fresh / prompt } else { f64::NAN }
                    };
                    let both = prompt.zip(fresh).filter(|_| known);
                    both.map(|(prompt, fresh)| prompt.into_iter().zip(fresh).map(share).collect())
                }
                _ => sum(&by_class, quantity),
            };
            series.extend(values.map(|values| ActualSeries { class: None, quantity, values }));
        }
        for (class, own) in history.classes.iter().zip(by_class) {
            series.extend(own.into_iter().map(|(quantity, values)| ActualSeries {
                class: Some(class.name.clone()),
                quantity,
                values,
            }));
        }
        Self { start_s: history.start_s, step_s: history.step_s, steps: history.len(), series }
    }

    /// The series of a quantity: of a class, or of all of them.
    pub fn series(&self, class: Option<&str>, quantity: Quantity) -> Option<&[f64]> {
        let own = |s: &&ActualSeries| s.class.as_deref() == class && s.quantity == quantity;
        self.series.iter().find(own).map(|series| series.values.as_slice())
    }
}

fn sum(by_class: &[Vec<(Quantity, Vec<f64>)>], quantity: Quantity) -> Option<Vec<f64>> {
    let own = by_class.iter().flatten().filter(|(of, _)| *of == quantity);
    own.map(|(_, values)| values).fold(None, |sum: Option<Vec<f64>>, values| match sum {
        None => Some(values.clone()),
        Some(sum) => Some(sum.iter().zip(values).map(|(a, b)| a + b).collect()),
    })
}

/// Mean lengths of all classes, step by step: what a class that knows none of its own is taken for.
pub(crate) struct Lengths {
    pub(crate) prompt: Vec<f64>,
    pub(crate) output: Vec<f64>,
}

impl Lengths {
    pub(crate) fn of_all(history: &History) -> Self {
        let mean = |pick: fn(&StepCount) -> Known| {
            let of = |i: usize| {
                let mut known = Known::default();
                history.classes.iter().for_each(|class| known.merge(pick(&class.steps[i])));
                known.mean().unwrap_or(f64::NAN)
            };
            (0..history.len()).map(of).collect()
        };
        Self { prompt: mean(|step| step.prompt_tokens), output: mean(|step| step.output_tokens) }
    }
}

fn quantities(
    class: &ClassHistory,
    gone: &[bool],
    step_s: f64,
    overall: &Lengths,
) -> Vec<(Quantity, Vec<f64>)> {
    let told = |values: &[f64]| values.iter().any(|value| !value.is_nan());
    let mean = |pick: fn(&StepCount) -> Known| -> Vec<f64> {
        class.steps.iter().map(|step| pick(step).mean().unwrap_or(f64::NAN)).collect()
    };
    let or = |own: Vec<f64>, others: &[f64]| if told(&own) { own } else { others.to_vec() };
    let rate: Vec<f64> = class
        .steps
        .iter()
        .zip(gone)
        .map(|(step, gone)| if *gone { f64::NAN } else { step.requests / step_s })
        .collect();
    let prompt = or(mean(|step| step.prompt_tokens), &overall.prompt);
    let output = or(mean(|step| step.output_tokens), &overall.output);
    let cached = mean(|step| step.cached_tokens);
    let held = mean(|step| step.kv_token_s);
    let times = |rate: &[f64], mean: &[f64]| -> Vec<f64> {
        let product = |(rate, mean): (&f64, &f64)| if *rate <= 0.0 { 0.0 } else { rate * mean };
        rate.iter().zip(mean).map(product).collect()
    };
    let mut all = vec![(Quantity::Requests, rate.clone())];
    if told(&prompt) {
        let tokens = times(&rate, &prompt);
        let fresh = if told(&cached) {
            let rest: Vec<f64> = cached.iter().map(|share| 1.0 - share.min(1.0)).collect();
            times(&tokens, &rest)
        } else {
            tokens.clone()
        };
        all.extend([(Quantity::PromptTokens, tokens), (Quantity::FreshTokens, fresh)]);
    }
    if told(&output) {
        all.push((Quantity::OutputTokens, times(&rate, &output)));
    }
    if told(&cached) {
        all.push((Quantity::CachedShare, cached));
    }
    if told(&held) {
        all.push((Quantity::ResidentTokens, times(&rate, &held)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes over two hours: 3600 and 7200 requests of 100 tokens, a quarter cached, and 1800 of unknown length.
    #[test]
    fn two_classes_by_hand() {
        let step = |n: f64, prompt: f64, cached: f64| StepCount {
            requests: n,
            attempts: n,
            prompt_tokens: Known { sum: prompt, of: if prompt > 0.0 { n } else { 0.0 } },
            cached_tokens: Known { sum: cached, of: prompt },
            ..StepCount::default()
        };
        let known = vec![step(3600.0, 360_000.0, 90_000.0), step(7200.0, 720_000.0, 0.0)];
        let unknown = vec![step(1800.0, 0.0, 0.0), step(0.0, 0.0, 0.0)];
        let class = |name: &str, steps| ClassHistory { name: name.to_owned(), steps };
        let classes = vec![class("a", known), class("b", unknown)];
        let history = History { start_s: 0, step_s: 3600, absolute: true, classes };
        let actuals = Actuals::of(&history, 3600, None);
        let is = |class, quantity, expect: [f64; 2]| {
            let own = actuals.series(class, quantity).unwrap();
            for (own, expect) in own.iter().zip(expect) {
                assert!((own - expect).abs() < 1e-9, "{quantity:?}: {own} is not {expect}");
            }
        };
        is(None, Quantity::Requests, [1.5, 2.0]);
        is(Some("a"), Quantity::PromptTokens, [100.0, 200.0]);
        // Taken for as long as the others.
        is(Some("b"), Quantity::PromptTokens, [50.0, 0.0]);
        is(None, Quantity::PromptTokens, [150.0, 200.0]);
        is(Some("a"), Quantity::FreshTokens, [75.0, 200.0]);
        is(None, Quantity::CachedShare, [25.0 / 150.0, 0.0]);
        assert_eq!(actuals.series(None, Quantity::OutputTokens), None);
    }
}
