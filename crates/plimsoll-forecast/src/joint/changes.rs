//! What is known of the future, and of what it already was in the past.

use plimsoll_workload::{Quantity, ThreePoint};

use super::Setting;

/// Strata of what is not known of a change.
pub(super) const STRATA: usize = 9;

impl Setting<'_> {
    /// What events of the past have multiplied a step of a class by.
    pub(super) fn past(&self, class: &str, step: usize) -> [f64; 4] {
        let at = self.history.at_s(step);
        let mut factors = [1.0; 4];
        for change in self.input.changes.iter().filter(|change| change.holds(class, at)) {
            let own = [change.rate, change.prompt, change.output, change.cache_hit];
            factors.iter_mut().zip(own).for_each(|(f, own)| *f *= own.likely.max(1e-6));
        }
        factors
    }

    pub(super) fn at_s(&self, lead: usize) -> i64 {
        self.history.at_s(self.rolling.steps + lead)
    }

    /// Changes that hold for a class at a time.
    pub(super) fn holding(&self, class: &str, at: i64) -> Vec<usize> {
        let own = self.input.changes.iter().enumerate();
        own.filter(|(_, change)| change.holds(class, at)).map(|(i, _)| i).collect()
    }

    /// What changes do to a quantity, on the logarithm, stratum by stratum from the mildest to the worst. All multipliers of a change go wrong
    /// together. What has begun within the history is known from it, and is what it was likely to be.
    pub(super) fn strata(&self, holding: &[usize], quantity: Quantity, cached: f64) -> Vec<f64> {
        if holding.is_empty() {
            return vec![0.0];
        }
        let end = self.history.end_s();
        let at = |stratum: usize| {
            let level = (stratum as f64 + 0.5) / STRATA as f64;
            let mut factors = [1.0; 4];
            for i in holding {
                let change = &self.input.changes[*i];
                let of = |three: ThreePoint, level: f64| {
                    if change.from_s < end { three.likely } else { three.quantile(level) }
                };
                let own = [
                    of(change.rate, level),
                    of(change.prompt, level),
                    of(change.output, level),
                    of(change.cache_hit, 1.0 - level),
                ];
                factors.iter_mut().zip(own).for_each(|(f, own)| *f *= own);
            }
            let [rate, prompt, output, hit] = factors;
            let factor = match quantity {
                Quantity::Requests => rate,
                Quantity::PromptTokens => rate * prompt,
                // A hit rate that falls leaves more of the prompt fresh.
                Quantity::FreshTokens => {
                    let fresh = |share: f64| (1.0 - share.clamp(0.0, 1.0)).max(1e-3);
                    rate * prompt * fresh(cached * hit) / fresh(cached)
                }
                Quantity::OutputTokens => rate * output,
                Quantity::CachedShare => hit,
                // What is held is mostly prompt.
                Quantity::ResidentTokens => rate * prompt,
            };
            libm::log(factor.max(1e-9))
        };
        (0..STRATA).map(at).collect()
    }

    /// Changes that hold in some step ahead: the first such step, and the one after the last.
    pub(super) fn applied(&self, start_s: i64) -> Vec<(String, usize, usize)> {
        let step = i64::from(self.history.step_s);
        let end_s = self.at_s(self.rolling.horizon);
        let changes = self.input.changes.iter().filter_map(|change| {
            let until = change.until_s.unwrap_or(end_s).min(end_s);
            let from = change.from_s.max(start_s);
            let steps = |at: i64| usize::try_from((at - start_s + step - 1) / step).unwrap_or(0);
            (from < until).then(|| (change.name.clone(), steps(from), steps(until)))
        });
        changes.collect()
    }
}
