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

/// The interval of a ratio of sums, such as good requests of all requests, over independent runs that differ in both: Student's t on what each run's part is off
/// the ratio of all of them (Cochran, Sampling Techniques, 3rd edition 1977, section 6.4). `None` for fewer than two runs, or where nothing came.
pub fn ratio_interval(runs: &[(f64, f64)], level: f64) -> Option<Interval> {
    let n = runs.len();
    let (part, whole) = runs.iter().fold((0.0, 0.0), |(p, w), run| (p + run.0, w + run.1));
    if n < 2 || whole <= 0.0 {
        return None;
    }
    let ratio = part / whole;
    let squares: f64 = runs.iter().map(|(part, whole)| (part - ratio * whole).powi(2)).sum();
    let mean = whole / n as f64;
    let t = StudentsT::new(0.0, 1.0, (n - 1) as f64).ok()?.inverse_cdf(0.5 + level / 2.0);
    let half = t * (squares / (n - 1) as f64 / n as f64).sqrt() / mean;
    Some(Interval { low: ratio - half, high: ratio + half, level, n })
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

/// The percentile bootstrap of a statistic of a series whose neighbours are alike: resamples are put together from stretches of `block`
/// that follow on each other, the last of them cut so that a resample is as long as the series. Stretches that reach the end go on at the
/// beginning, so that every sample is drawn as often (circular blocks, Politis and Romano 1992). `None` without samples, resamples or a
/// block; a block longer than the series is as long as it. What stands for itself are blocks, and `n` is how many whole ones there are.
pub fn block_bootstrap<T: Copy>(
    samples: &[T],
    block: usize,
    statistic: impl Fn(&[T]) -> f64,
    level: f64,
    resamples: usize,
    stream: &mut Stream,
) -> Option<Interval> {
    if samples.is_empty() || resamples == 0 || block == 0 {
        return None;
    }
    let n = samples.len();
    let block = block.min(n);
    let mut draw: Vec<T> = Vec::with_capacity(n);
    let mut values: Vec<f64> = (0..resamples)
        .map(|_| {
            draw.clear();
            while draw.len() < n {
                let from = stream.index(n);
                let length = block.min(n - draw.len());
                let until = (from + length).min(n);
                draw.extend_from_slice(&samples[from..until]);
                draw.extend_from_slice(&samples[..length - (until - from)]);
            }
            statistic(&draw)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    let (low, high) = (quantile_of_sorted(&values, tail), quantile_of_sorted(&values, 1.0 - tail));
    Some(Interval { low, high, level, n: n / block })
}

/// The interval of a share, `successes` of `n` (Wilson's score, sound near 0 and 1).
pub fn share_interval(successes: usize, n: usize, level: f64) -> Option<Interval> {
    share_interval_of(successes as f64 / n as f64, n as f64, level)
}

/// The same of a share that was seen over `n` independent observations, neither of which need be whole: blocks of a series stand for
/// themselves, and a share of its steps is no number of blocks. `None` where `n` is not above zero or the share not from 0 to 1; the `n`
/// of the interval is rounded down.
pub fn share_interval_of(share: f64, n: f64, level: f64) -> Option<Interval> {
    if !(n > 0.0 && n.is_finite() && (0.0..=1.0).contains(&share)) {
        return None;
    }
    let z = normal_quantile(0.5 + level / 2.0);
    let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let (low, high) = ((centre - half).max(0.0), (centre + half).min(1.0));
    Some(Interval { low, high, level, n: n as usize })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn check(got: Option<Interval>, low: f64, high: f64) {
        let got = got.expect("an interval");
        assert!((got.low - low).abs() < 1e-4 && (got.high - high).abs() < 1e-4, "{got:?}");
    }

    /// Good of all: 90 of 100, 40 of 50, 100 of 100. 230 of 250 are 0.92; off by -2, -6 and 8, whose squares are 104: sqrt(104 / 2 / 3) = 4.163332, of a mean of
    /// 83.333333 is 0.0499600, and t(0.975, 2) = 4.302653. Of equal wholes it is the interval of the mean.
    #[test]
    fn ratios_of_runs_that_differ() {
        let half = 0.049_960_0 * 4.302_653;
        let runs = [(90.0, 100.0), (40.0, 50.0), (100.0, 100.0)];
        check(ratio_interval(&runs, 0.95), 0.92 - half, 0.92 + half);
        let shares = [0.9, 0.8, 1.0];
        let equal: Vec<(f64, f64)> = shares.iter().map(|share| (share * 40.0, 40.0)).collect();
        let mean = mean_interval(&shares, 0.95).unwrap();
        check(ratio_interval(&equal, 0.95), mean.low, mean.high);
        assert_eq!(ratio_interval(&runs[..1], 0.95), None);
        assert_eq!(ratio_interval(&[(0.0, 0.0), (0.0, 0.0)], 0.95), None);
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
        assert_eq!(share_interval(0, 0, 0.95), None);
        assert_eq!(share_interval(2, 1, 0.95), None);
    }

    /// One of 72 steps in four blocks: z^2 = 3.841459, p = 1/72. The centre is (p + z^2 / 8) / (1 + z^2 / 4) = 0.252030, and half the
    /// width z / 1.960365 x sqrt(p (1 - p) / 4 + z^2 / 64) = 0.251836. At none of them it is 0 to z^2 / (4 + z^2).
    #[test]
    fn a_share_of_blocks() {
        check(share_interval_of(1.0 / 72.0, 4.0, 0.95), 0.000_194, 0.503_866);
        check(share_interval_of(0.0, 4.0, 0.95), 0.0, 3.841_459 / 7.841_459);
        check(share_interval_of(0.0, 2.5, 0.95), 0.0, 3.841_459 / 6.341_459);
        assert_eq!(share_interval_of(0.8, 10.0, 0.95), share_interval(8, 10, 0.95));
        assert_eq!(share_interval_of(0.5, 2.5, 0.95).map(|own| own.n), Some(2));
        for (share, n) in [(0.5, 0.0), (0.5, f64::NAN), (1.1, 4.0), (-0.1, 4.0), (f64::NAN, 4.0)] {
            assert_eq!(share_interval_of(share, n, 0.95), None, "{share} of {n}");
        }
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

    /// Runs of ten alike: a bootstrap that takes them one by one is too sure of their mean by about the root of ten, and one of blocks of
    /// ten is not far off. The mean of the 40 runs has a standard error of 5.766281 / sqrt(40).
    #[test]
    fn blocks_keep_runs_together() {
        let samples: Vec<f64> = (0..400).map(|i| f64::from(i / 10 * 7 % 20)).collect();
        let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len() as f64;
        let width = |block| {
            let stream = &mut Seed::new(3).stream("blocks");
            let got = block_bootstrap(&samples, block, mean, 0.95, 4000, stream).unwrap();
            assert_eq!(got.n, 400 / block);
            assert!(got.low < 9.5 && 9.5 < got.high, "{got:?}");
            got.high - got.low
        };
        let alone = 2.0 * 1.959_964 * 5.766_281 / 400f64.sqrt();
        let together = 2.0 * 1.959_964 * 5.766_281 / 40f64.sqrt();
        assert!((width(1) / alone - 1.0).abs() < 0.08, "{} {alone}", width(1));
        // A block that straddles two runs averages them, and the next run is correlated by -12.25 / 33.25 with a run. Over where it
        // begins, shares u and 1 - u of two runs have a variance of 2/3, and a covariance of 1/3 of that correlation.
        let straddling = together * (2.0f64 / 3.0 - 12.25 / 33.25 / 3.0).sqrt();
        assert!((width(10) / straddling - 1.0).abs() < 0.15, "{} {straddling}", width(10));
    }

    /// One block as long as the series is the series, begun anywhere; and a resample is never longer than it.
    #[test]
    fn a_block_of_everything_changes_nothing() {
        let seven = [1, 2, 3, 4, 5, 6, 7];
        let sum = |xs: &[i32]| f64::from(xs.iter().sum::<i32>());
        let stream = &mut Seed::new(1).stream("blocks");
        let got = block_bootstrap(&seven, 100, sum, 0.9, 50, stream).unwrap();
        assert_eq!((got.low, got.high, got.n), (28.0, 28.0, 1));
        let long = |xs: &[i32]| xs.len() as f64;
        let got = block_bootstrap(&seven, 3, long, 0.9, 50, stream).unwrap();
        assert_eq!((got.low, got.high, got.n), (7.0, 7.0, 2));
        assert_eq!(block_bootstrap(&seven, 0, sum, 0.9, 50, stream), None);
        assert_eq!(block_bootstrap(&seven[..0], 3, sum, 0.9, 50, stream), None);
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
