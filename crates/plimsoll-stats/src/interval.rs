//! How sure an estimate is.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::normal::normal_quantile;
use crate::quantile::quantile_of_sorted;
use crate::seed::Stream;

/// A confidence interval, its level, and the number of observations it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Such as 0.95.
    pub level: f64,
    /// Independent observations behind it.
    pub n: usize,
}

/// The interval of the mean of independent observations (Student's t); `None` for fewer than two.
pub fn mean_interval(samples: &[f64], level: f64) -> Option<Interval> {
    let n = samples.len();
    if n < 2 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / n as f64;
    let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1) as f64;
    let t = StudentsT::new(0.0, 1.0, (n - 1) as f64).ok()?.inverse_cdf(0.5 + level / 2.0);
    let half = t * (variance / n as f64).sqrt();
    Some(Interval { low: mean - half, high: mean + half, level, n })
}

/// The interval of the mean of a correlated series: its `batches` equal, consecutive batches have means
/// that are nearly independent. What does not fill a batch is left out at the front, where a
/// simulation warms up. `None` for fewer than two batches or an empty one.
pub fn batch_means(series: &[f64], batches: usize, level: f64) -> Option<Interval> {
    let size = series.len().checked_div(batches)?;
    if size == 0 {
        return None;
    }
    let tail = &series[series.len() - size * batches..];
    let means: Vec<f64> =
        tail.chunks(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    mean_interval(&means, level)
}

/// The percentile bootstrap of any statistic: the middle `level` of its values over resamples drawn
/// with replacement. `None` without samples or resamples.
pub fn bootstrap(
    samples: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    level: f64,
    resamples: usize,
    stream: &mut Stream,
) -> Option<Interval> {
    if samples.is_empty() || resamples == 0 {
        return None;
    }
    let mut draw = vec![0.0; samples.len()];
    let mut values: Vec<f64> = (0..resamples)
        .map(|_| {
            draw.iter_mut().for_each(|x| *x = samples[stream.index(samples.len())]);
            statistic(&draw)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    let (low, high) = (quantile_of_sorted(&values, tail), quantile_of_sorted(&values, 1.0 - tail));
    Some(Interval { low, high, level, n: samples.len() })
}

/// The interval of a share, `successes` of `n` (Wilson's score, sound near 0 and 1).
pub fn share_interval(successes: usize, n: usize, level: f64) -> Option<Interval> {
    if n == 0 || successes > n {
        return None;
    }
    let z = normal_quantile(0.5 + level / 2.0);
    let (total, p) = (n as f64, successes as f64 / n as f64);
    let centre = (p + z * z / (2.0 * total)) / (1.0 + z * z / total);
    let half =
        z / (1.0 + z * z / total) * (p * (1.0 - p) / total + z * z / (4.0 * total * total)).sqrt();
    Some(Interval { low: (centre - half).max(0.0), high: (centre + half).min(1.0), level, n })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn check(got: Option<Interval>, low: f64, high: f64) {
        let got = got.expect("an interval");
        assert!((got.low - low).abs() < 1e-4 && (got.high - high).abs() < 1e-4, "{got:?}");
    }

    /// t(0.975, 9) = 2.262157; 1..10 has mean 5.5 and standard deviation 3.027650.
    #[test]
    fn the_mean_of_ten() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let half = 2.262_157 * 3.027_650 / 10f64.sqrt();
        check(mean_interval(&ten, 0.95), 5.5 - half, 5.5 + half);
        assert_eq!(mean_interval(&ten[..1], 0.95), None);
    }

    /// Batches (2,3) (4,5) (6,7), the first value left out: means 2.5, 4.5, 6.5; t(0.975, 2) = 4.302653.
    #[test]
    fn batches_leave_the_front_out() {
        let half = 4.302_653 * 2.0 / 3f64.sqrt();
        check(batch_means(&[100.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 3, 0.95), 4.5 - half, 4.5 + half);
        assert_eq!(batch_means(&[1.0], 0, 0.95), None);
        assert_eq!(batch_means(&[1.0], 2, 0.95), None);
    }

    /// Wilson's interval for 8 of 10 (Agresti and Coull 1998, and every calculator): 0.4902 to 0.9433.
    #[test]
    fn eight_of_ten() {
        check(share_interval(8, 10, 0.95), 0.4902, 0.9433);
        check(share_interval(0, 10, 0.95), 0.0, 0.2775);
        assert_eq!(share_interval(1, 0, 0.95), None);
    }

    /// The bootstrap of a mean agrees with the normal interval 0 +- 1.96 sd/sqrt(n).
    #[test]
    fn bootstrap_of_a_mean() {
        let samples: Vec<f64> = (0..400).map(|i| f64::from(i % 20)).collect();
        let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len() as f64;
        let got =
            bootstrap(&samples, mean, 0.95, 4000, &mut Seed::new(3).stream("bootstrap")).unwrap();
        // sd of 0..19 is 5.766281.
        let half = 1.959_964 * 5.766_281 / 20.0;
        assert!(
            (got.low - (9.5 - half)).abs() < 0.05 && (got.high - (9.5 + half)).abs() < 0.05,
            "{got:?}"
        );
    }

    /// An interval at 90% holds the truth about nine times in ten: 2,000 experiments of 12 exponentials
    /// undercover a little (skewness), never below 84%.
    #[test]
    fn intervals_cover() {
        let mut stream = Seed::new(5).stream("coverage");
        let covered = (0..2000)
            .filter(|_| {
                let samples: Vec<f64> = (0..12).map(|_| stream.exponential()).collect();
                mean_interval(&samples, 0.90).is_some_and(|i| i.low <= 1.0 && 1.0 <= i.high)
            })
            .count();
        assert!((1680..=1840).contains(&covered), "{covered} of 2000");
    }
}
