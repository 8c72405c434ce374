//! How good a forecast was.
//!
//! Definitions are those of the literature: WAPE and bias over sums, MASE against the seasonal naive step of the history, pinball loss
//! of a quantile, CRPS as the mean of pinball losses over evenly spaced quantiles, Kupiec's likelihood ratio for coverage.

use plimsoll_stats::normal_cdf;

/// The loss of saying `forecast` for the quantile `level` of what turned out to be `actual`.
pub fn pinball(level: f64, actual: f64, forecast: f64) -> f64 {
    let short = actual - forecast;
    (level * short).max((level - 1.0) * short)
}

/// Whether a bound was kept. What differs in the last digits, which logarithms and back cost, is the same.
pub fn within(actual: f64, bound: f64) -> bool {
    actual <= bound + 1e-9 * bound.abs()
}

/// Sum of absolute errors over the sum of what came; none where nothing came.
pub fn wape(pairs: &[(f64, f64)]) -> Option<f64> {
    ratio(pairs.iter().map(|(actual, forecast)| (actual - forecast).abs()).sum(), sum(pairs))
}

/// How much too high forecasts were, over the sum of what came; none where nothing came.
pub fn bias(pairs: &[(f64, f64)]) -> Option<f64> {
    ratio(pairs.iter().map(|(actual, forecast)| forecast - actual).sum(), sum(pairs))
}

fn sum(pairs: &[(f64, f64)]) -> f64 {
    pairs.iter().map(|(actual, _)| actual.abs()).sum()
}

/// None where so little came that the ratio is no number.
fn ratio(a: f64, b: f64) -> Option<f64> {
    Some(a / b).filter(|ratio| b > 0.0 && ratio.is_finite())
}

/// The mean absolute error over `scale`, that of [`naive_scale`]. Below one it is less than repeating the last season is off by; where there
/// is no season, than the last value is off by a step later, however far the forecast looks.
pub fn mase(pairs: &[(f64, f64)], scale: Option<f64>) -> Option<f64> {
    let errors: f64 = pairs.iter().map(|(actual, forecast)| (actual - forecast).abs()).sum();
    ratio(errors, pairs.len() as f64).and_then(|mean| ratio(mean, scale?))
}

/// The mean absolute step from a value to the one a season later, as far as both are known; none where that is zero or unknown.
pub fn naive_scale(values: &[f64], season: usize) -> Option<f64> {
    let later = values.iter().skip(season);
    let steps: Vec<f64> = values
        .iter()
        .zip(later)
        .map(|(a, b)| (b - a).abs())
        .filter(|step| !step.is_nan())
        .collect();
    ratio(steps.iter().sum(), steps.len() as f64).filter(|scale| *scale > 0.0)
}

/// Twice the mean of the pinball losses of evenly spaced quantiles, each with its level.
pub fn crps(actual: f64, quantiles: &[(f64, f64)]) -> Option<f64> {
    let losses: f64 =
        quantiles.iter().map(|(level, forecast)| pinball(*level, actual, *forecast)).sum();
    ratio(2.0 * losses, quantiles.len() as f64)
}

/// How likely a share of `missed` of `n` is, or one further off, where `expected` should be: Kupiec's likelihood ratio.
///
/// It takes misses for independent of each other. Those of neighbouring steps are not, so that `n` should be no more than steps that
/// stand for themselves.
pub fn coverage_p_value(missed: f64, n: f64, expected: f64) -> Option<f64> {
    if n <= 0.0 || !(0.0..=1.0).contains(&expected) {
        return None;
    }
    let log = |p: f64, times: f64| if times > 0.0 { times * libm::log(p.max(1e-300)) } else { 0.0 };
    let likelihood = |p: f64| log(p, missed) + log(1.0 - p, n - missed);
    let statistic = (-2.0 * (likelihood(expected) - likelihood(missed / n))).max(0.0);
    // The square of a standard normal has this tail.
    Some(2.0 * normal_cdf(-statistic.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three steps worked by hand: 10, 20 and 30 came, 12, 18 and 33 were said.
    /// Errors 2, 2, 3 over 60; too high by 2 - 2 + 3 = 3.
    #[test]
    fn three_steps_by_hand() {
        let pairs = [(10.0, 12.0), (20.0, 18.0), (30.0, 33.0)];
        assert!((wape(&pairs).unwrap() - 7.0 / 60.0).abs() < 1e-15);
        assert!((bias(&pairs).unwrap() - 3.0 / 60.0).abs() < 1e-15);
        // The history 1, 4, 2, 8 steps by 1 and 4 in a season of two: 2.5 on average; errors are 7/3.
        let scale = naive_scale(&[1.0, 4.0, 2.0, 8.0], 2);
        assert_eq!(scale, Some(2.5));
        assert!((mase(&pairs, scale).unwrap() - 7.0 / 3.0 / 2.5).abs() < 1e-15);
        // What is missing steps nowhere, and what never moves has no scale.
        assert_eq!(naive_scale(&[1.0, f64::NAN, 2.0, 8.0], 2), Some(1.0));
        assert_eq!(naive_scale(&[3.0; 4], 1), None);
        assert_eq!(mase(&pairs, None), None);
        assert_eq!(wape(&[(0.0, 1.0)]), None);
        assert_eq!(wape(&[(1e-300, 1e15)]), None);
    }

    /// At 0.95, one too low costs 0.95 and one too high 0.05.
    #[test]
    fn pinball_by_hand() {
        assert!((pinball(0.95, 11.0, 10.0) - 0.95).abs() < 1e-15);
        assert!((pinball(0.95, 9.0, 10.0) - 0.05).abs() < 1e-15);
        assert_eq!(pinball(0.5, 10.0, 10.0), 0.0);
        assert!((pinball(0.5, 14.0, 10.0) - 2.0).abs() < 1e-15);
    }

    #[test]
    fn the_last_digits_do_not_count() {
        assert!(within(0.1 + 0.2, 0.3) && within(0.0, 0.0) && within(1.0, 2.0));
        assert!(!within(0.301, 0.3) && !within(1e-3, 0.0));
    }

    /// Quantiles 0.25, 0.5, 0.75 at 1, 2, 3 and 2 came: losses 0.25, 0, 0.25; twice their mean is 1/3.
    /// For a forecast that is one point the CRPS is the absolute error.
    #[test]
    fn crps_by_hand() {
        let spread = [(0.25, 1.0), (0.5, 2.0), (0.75, 3.0)];
        assert!((crps(2.0, &spread).unwrap() - 1.0 / 3.0).abs() < 1e-15);
        let levels: Vec<f64> = (0..1000).map(|i| (f64::from(i) + 0.5) / 1000.0).collect();
        let point: Vec<(f64, f64)> = levels.iter().map(|level| (*level, 7.0)).collect();
        assert!((crps(10.0, &point).unwrap() - 3.0).abs() < 1e-9);
        // A uniform from 0 to 1, and 0.5 came: E|X - y| - E|X - X'| / 2 = 1/4 - 1/6.
        let uniform: Vec<(f64, f64)> = levels.iter().map(|level| (*level, *level)).collect();
        assert!((crps(0.5, &uniform).unwrap() - 1.0 / 12.0).abs() < 1e-6);
        assert_eq!(crps(1.0, &[]), None);
    }

    /// Kupiec's ratio worked by hand for 8 of 100 at 5 %:
    /// -2 [92 ln 0.95 + 8 ln 0.05 - 92 ln 0.92 - 8 ln 0.08] = 1.6160, whose tail is 0.2037.
    #[test]
    fn coverage_by_hand() {
        let p = coverage_p_value(8.0, 100.0, 0.05).unwrap();
        assert!((p - 0.2037).abs() < 2e-4, "{p}");
        assert!((coverage_p_value(5.0, 100.0, 0.05).unwrap() - 1.0).abs() < 1e-9);
        assert!(coverage_p_value(30.0, 100.0, 0.05).unwrap() < 1e-9);
        // None of 20 at 5 %: -2 * 20 ln 0.95 = 2.0517.
        assert!((coverage_p_value(0.0, 20.0, 0.05).unwrap() - 0.1520).abs() < 2e-4);
        assert_eq!(coverage_p_value(0.0, 0.0, 0.05), None);
    }
}
