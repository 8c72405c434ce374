//! Totals of windows, summed up.

use serde::Serialize;

use super::result::WindowLevels;

/// Values by window. Ratios are null where the mean is zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Levels {
    /// How many windows.
    pub n_windows: u64,
    /// Those at zero.
    pub n_empty: u64,
    /// Their levels.
    #[serde(flatten)]
    pub levels: WindowLevels,
}

impl Levels {
    /// Of no window.
    pub(super) fn none() -> Self {
        let none = summed(Vec::new());
        Self { n_windows: 0, n_empty: 0, levels: none }
    }
}

/// Levels of windows; none without windows.
pub(super) fn levels(values: &[f64]) -> Option<Levels> {
    let n_empty = values.iter().filter(|value| **value <= 0.0).count() as u64;
    let n_windows = values.len() as u64;
    (n_windows > 0).then(|| Levels { n_windows, n_empty, levels: summed(values.to_vec()) })
}

/// The same without the counts; zeros without windows.
pub(super) fn summed(mut values: Vec<f64>) -> WindowLevels {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let [p50, p95, p99, max] = quantiles(&mut values, [0.5, 0.95, 0.99, 1.0]);
    let over = |value: f64| (mean > 0.0).then(|| value / mean);
    WindowLevels {
        mean,
        std: variance.sqrt(),
        p50,
        p95,
        p99,
        max,
        peak_to_mean: over(max),
        p99_to_mean: over(p99),
        p95_to_mean: over(p95),
        cv: over(variance.sqrt()),
        index_of_dispersion: over(variance),
    }
}

/// Quantiles as [`plimsoll_stats::quantile`] has them, without sorting everything; zeros without values.
pub(super) fn quantiles<const N: usize>(values: &mut [f64], at: [f64; N]) -> [f64; N] {
    at.map(|p| {
        let Some(last) = values.len().checked_sub(1) else { return 0.0 };
        let rank = p.clamp(0.0, 1.0) * last as f64;
        let (_, low, above) = values.select_nth_unstable_by(rank.floor() as usize, f64::total_cmp);
        let low = *low;
        let next = above.iter().copied().reduce(f64::min).unwrap_or(low);
        low + rank.fract() * (next - low)
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::quantile;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Selecting gives what sorting gives.
        #[test]
        fn selecting_is_sorting(values in prop::collection::vec(0.0f64..50.0, 1..80)) {
            let at = [0.0, 0.01, 0.5, 0.95, 0.99, 1.0];
            let found = quantiles(&mut values.clone(), at);
            for (p, found) in at.into_iter().zip(found) {
                prop_assert_eq!(Some(found), quantile(&values, p));
            }
        }
    }
}
