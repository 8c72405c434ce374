//! What reconciling teaches: which levels to ask for, so that what is published covers what it says.

use std::collections::BTreeMap;

use plimsoll_workload::{Quantiles, Quantity};

/// How fast a level follows a miss.
const GAIN: f64 = 0.05;
/// No level is moved beyond these.
const LOWEST: f64 = 0.5;
const HIGHEST: f64 = 0.9995;

/// Levels that have moved, by class and quantity (adaptive conformal inference, Gibbs and Candès 2021).
///
/// A published 95th percentile that was missed too often is taken at a higher level the next time, one that never was at a lower.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    levels: BTreeMap<(Option<String>, Quantity), [f64; 6]>,
}

impl Memory {
    /// The levels at which the published ones are taken.
    pub fn levels(&self, class: Option<&str>, quantity: Quantity) -> [f64; 6] {
        let known = self.levels.get(&(class.map(str::to_owned), quantity));
        known.copied().unwrap_or(Quantiles::LEVELS)
    }

    /// Takes levels for given, as far as they are levels: rising, and each within reach.
    pub fn set(&mut self, class: Option<&str>, quantity: Quantity, levels: [f64; 6]) {
        let mut least = LOWEST;
        let levels = levels.map(|level| {
            let level = if level.is_nan() { least } else { level };
            least = level.clamp(least, HIGHEST);
            least
        });
        self.levels.insert((class.map(str::to_owned), quantity), levels);
    }

    /// Moves the levels of a series by what was missed: `missed` are the shares of steps above each published quantile. A plan of many
    /// steps moves them as far as a day of hours would, not further: its misses come together.
    pub fn learn(
        &mut self,
        class: Option<&str>,
        quantity: Quantity,
        missed: [f64; 6],
        steps: usize,
    ) {
        let weight = steps.min(24) as f64;
        let mut levels = self.levels(class, quantity);
        // The median is not moved: it is where the model is, and a bias is the model's to mend.
        for ((level, said), missed) in levels.iter_mut().zip(Quantiles::LEVELS).zip(missed).skip(1)
        {
            let alpha = 1.0 - said;
            let moved = (1.0 - *level) + GAIN * alpha * weight * (alpha - missed);
            *level = 1.0 - moved.clamp(1.0 - HIGHEST, 1.0 - LOWEST);
        }
        self.set(class, quantity, levels);
    }

    /// All that has moved.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, Quantity, [f64; 6])> + '_ {
        self.levels.iter().map(|((class, quantity), levels)| (class.as_deref(), *quantity, *levels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 0.95 with 20 % of 24 hours missed: 0.05 + 0.05 * 0.05 * 24 * (0.05 - 0.2) = 0.041.
    #[test]
    fn misses_raise_the_level() {
        let mut memory = Memory::default();
        let missed = [0.5, 0.2, 0.2, 0.2, 0.2, 0.2];
        memory.learn(None, Quantity::Requests, missed, 24);
        let levels = memory.levels(None, Quantity::Requests);
        assert!((levels[3] - 0.959).abs() < 1e-12, "{levels:?}");
        assert_eq!(levels[0], 0.5);
        assert_eq!(memory.levels(Some("chat"), Quantity::Requests), Quantiles::LEVELS);
        // Never missed: lower, and still in order.
        for _ in 0..1000 {
            memory.learn(None, Quantity::Requests, [0.5, 0.0, 0.0, 0.0, 0.0, 0.0], 24);
        }
        let levels = memory.levels(None, Quantity::Requests);
        assert!(levels.windows(2).all(|pair| pair[0] <= pair[1]), "{levels:?}");
        assert!(levels[3] < 0.95);
    }

    #[test]
    fn what_is_no_level_is_not_taken() {
        let mut memory = Memory::default();
        memory.set(None, Quantity::Requests, [f64::NAN, 2.0, -1.0, 0.95, 0.1, 0.99]);
        let levels = memory.levels(None, Quantity::Requests);
        assert!(levels.windows(2).all(|pair| pair[0] <= pair[1]), "{levels:?}");
        assert!(levels.iter().all(|level| (LOWEST..=HIGHEST).contains(level)));
    }
}
