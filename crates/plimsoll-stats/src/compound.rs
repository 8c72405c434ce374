//! How much independent arrivals bring: Poisson counts, and sums of chance sizes over them.

use statrs::distribution::{DiscreteCDF as _, Poisson};
use statrs::function::gamma::{checked_gamma_lr, checked_gamma_ur};

use crate::normal::normal_quantile;

/// The smallest whole number that a Poisson count does not exceed with probability `p`.
///
/// # Panics
/// When the mean is no number from zero on, or `p` is not within `[0, 1)`.
pub fn poisson_quantile(mean: f64, p: f64) -> f64 {
    assert!(mean >= 0.0 && mean.is_finite(), "a mean is not below zero: {mean}");
    assert!((0.0..1.0).contains(&p), "a probability is below one: {p}");
    let Ok(poisson) = Poisson::new(mean) else { return 0.0 };
    // The expansion is off by few; from there step by step.
    let z = normal_quantile(p).max(-40.0);
    let near = (mean + z * mean.sqrt() + (z * z - 1.0) / 6.0).max(0.0).floor();
    // Of so many, one more or less is nothing, and probabilities are too coarse to tell it.
    if mean > EXPANSION_MEAN {
        return near;
    }
    let mut k = near as u64;
    while poisson.cdf(k) < p {
        k += 1;
    }
    while k > 0 && poisson.cdf(k - 1) >= p {
        k -= 1;
    }
    k as f64
}

/// The probability that a Poisson count of this mean is at most `count`, and that it is at least `count`. Between whole numbers both are interpolated by the incomplete
/// gamma function, so a count in units of clumps need not be whole.
///
/// # Panics
/// When the mean or the count is no number from zero on.
pub fn poisson_tails(count: f64, mean: f64) -> (f64, f64) {
    assert!(mean >= 0.0 && mean.is_finite(), "a mean is not below zero: {mean}");
    assert!(count >= 0.0 && count.is_finite(), "a count is not below zero: {count}");
    if mean <= 0.0 {
        return (1.0, if count > 0.0 { 0.0 } else { 1.0 });
    }
    let at_most = checked_gamma_ur(count + 1.0, mean).unwrap_or(f64::NAN);
    let at_least = match count > 0.0 {
        true => checked_gamma_lr(count, mean).unwrap_or(f64::NAN),
        false => 1.0,
    };
    (at_most, at_least)
}

/// Above this mean the expansion alone says a quantile, to a part in 10^8.
const EXPANSION_MEAN: f64 = 1e8;

/// A quantile and how far it may be off, over its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The quantile.
    pub value: f64,
    /// How far it may be off.
    pub relative_error: f64,
}

/// Above this mean the probability of no arrival at all is no number any more.
const RECURSION_MEAN: f64 = 600.0;
/// Points of the grid.
const GRID: usize = 4096;
/// Passes over the grid that find its end: the first only has to be wide enough.
const COARSE: usize = 512;

/// The quantile of the sum of a Poisson number of sizes, each drawn from `sizes`: pairs of a size and its weight.
///
/// Up to a mean count of 600 it is Panjer's recursion on a grid (Klugman, Panjer and Willmot, *Loss Models*, section 9.6). A size between two points is
/// split over both such that the mean is kept, which adds at most a quarter of a squared step to a size's variance; the error stated is one step. Where sizes are whole and
/// their sum fits the grid, the step is one and nothing is split. Beyond that mean it is the expansion of Cornish and Fisher with four cumulants, and the error stated is
/// its last term: sums of so many are nearly normal.
///
/// # Panics
/// When `p` is not within `[0, 1)`, or a size is below zero.
pub fn compound_poisson_quantile(mean: f64, sizes: &[(f64, f64)], p: f64) -> Estimate {
    assert!((0.0..1.0).contains(&p), "a probability is below one: {p}");
    let weight: f64 = sizes.iter().map(|(_, w)| w).sum();
    let nothing = Estimate { value: 0.0, relative_error: 0.0 };
    if !(weight > 0.0 && mean > 0.0) {
        return nothing;
    }
    assert!(sizes.iter().all(|(x, w)| *x >= 0.0 && *w >= 0.0), "sizes are not below zero");
    let moment = |n: i32| sizes.iter().map(|(x, w)| w * x.powi(n)).sum::<f64>() / weight;
    let moments = [moment(1), moment(2), moment(3), moment(4)];
    if moments[0] <= 0.0 {
        return nothing;
    }
    let most = sizes.iter().filter(|(_, w)| *w > 0.0).map(|(x, _)| *x).fold(0.0, f64::max);
    let least = sizes.iter().filter(|(_, w)| *w > 0.0).map(|(x, _)| *x).fold(most, f64::min);
    if most <= least {
        return Estimate { value: poisson_quantile(mean, p) * most, relative_error: 0.0 };
    }
    if mean > RECURSION_MEAN {
        return cornish_fisher(mean, moments, p);
    }
    // Wide enough for a first look: Cantelli's bound holds for any distribution, and a sum seldom is that far out.
    let sd = (mean * moments[1]).sqrt();
    let far = mean * moments[0] + sd * (p / (1.0 - p)).sqrt();
    let look = |end: f64, points: usize| {
        let whole = sizes.iter().all(|(x, _)| x.fract() == 0.0);
        let step = if whole && end <= points as f64 { 1.0 } else { end / points as f64 };
        (on_grid(mean, sizes, weight, p, step, points), step)
    };
    let (rough, coarse_step) = look(far, COARSE);
    let end = rough.unwrap_or(far) + 2.0 * coarse_step;
    let (found, step) = look(end, GRID);
    let value = found.unwrap_or(far);
    let exact = step <= 1.0 && sizes.iter().all(|(x, _)| x.fract() == 0.0);
    let error = if exact || value <= 0.0 { 0.0 } else { (step / value).min(1.0) };
    Estimate { value, relative_error: error }
}

/// Panjer's recursion until the probability is reached; none where it is not on the grid.
fn on_grid(
    mean: f64,
    sizes: &[(f64, f64)],
    weight: f64,
    p: f64,
    step: f64,
    points: usize,
) -> Option<f64> {
    let mut size = vec![0.0; points + 2];
    for (x, w) in sizes {
        let (at, share) = (x / step, w / weight);
        let low = at.floor();
        if low as usize > points {
            continue;
        }
        size[low as usize] += share * (1.0 - (at - low));
        size[low as usize + 1] += share * (at - low);
    }
    // A size of nothing is as good as none.
    let mean = mean * (1.0 - size[0]);
    let kept = 1.0 - size[0];
    // A log of few rows has few sizes: points that none falls on are not visited.
    let weighted: Vec<(usize, f64)> = (1..size.len())
        .filter(|j| size[*j] > 0.0)
        .map(|j| (j, j as f64 * size[j] / kept))
        .collect();
    let mut reached = 0;
    let mut sum = vec![0.0; points + 1];
    sum[0] = libm::exp(-mean);
    let mut passed = sum[0];
    if passed >= p {
        return Some(0.0);
    }
    for k in 1..=points {
        while weighted.get(reached).is_some_and(|(j, _)| *j <= k) {
            reached += 1;
        }
        let products = weighted[..reached].iter().map(|(j, share)| share * sum[k - j]);
        let mass = mean / k as f64 * products.sum::<f64>();
        sum[k] = mass;
        if passed + mass >= p {
            // What lies on a point stands for half a step on both sides, unless sizes are on the points themselves.
            let part = (p - passed) / mass - 0.5;
            let whole = step == 1.0 && sizes.iter().all(|(x, _)| x.fract() == 0.0);
            return Some(if whole { k as f64 } else { step * (k as f64 + part) });
        }
        passed += mass;
    }
    None
}

fn cornish_fisher(mean: f64, moments: [f64; 4], p: f64) -> Estimate {
    let [m1, m2, m3, m4] = moments;
    let sd = (mean * m2).sqrt();
    let skew = mean * m3 / sd.powi(3);
    let excess = mean * m4 / sd.powi(4);
    let z = normal_quantile(p);
    let second = (z * z - 1.0) * skew / 6.0;
    let third =
        (z.powi(3) - 3.0 * z) * excess / 24.0 - (2.0 * z.powi(3) - 5.0 * z) * skew * skew / 36.0;
    let value = (mean * m1 + sd * (z + second + third)).max(0.0);
    let error = if value > 0.0 { (sd * third.abs() / value).min(1.0) } else { 0.0 };
    Estimate { value, relative_error: error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile::quantile;
    use crate::seed::Seed;

    /// `scipy.stats.poisson.ppf`.
    #[test]
    fn poisson_counts() {
        for (mean, p, expect) in [
            (0.0, 0.99, 0.0),
            (0.01, 0.99, 0.0),
            (0.02, 0.99, 1.0),
            (2.991_841_492, 0.99, 8.0),
            (29.964_980_54, 0.99, 43.0),
            (29.964_980_54, 0.996_108_949, 45.0),
            (179.0, 0.99, 211.0),
            (1e4, 0.999, 10_310.0),
            (3.6e6, 0.99, 3_604_415.0),
            (5.0, 0.0, 0.0),
        ] {
            assert_eq!(poisson_quantile(mean, p), expect, "{mean} {p}");
        }
    }

    /// Sums drawn 400,000 times.
    fn drawn(mean: f64, sizes: &[(f64, f64)], p: f64) -> f64 {
        let mut stream = Seed::new(9).stream("sums");
        let weight: f64 = sizes.iter().map(|(_, w)| w).sum();
        let sums: Vec<f64> = (0..400_000)
            .map(|_| {
                let (mut left, mut sum) = (mean, 0.0);
                loop {
                    left -= stream.exponential();
                    if left < 0.0 {
                        return sum;
                    }
                    let mut at = stream.uniform() * weight;
                    let found = sizes.iter().find(|(_, w)| {
                        at -= w;
                        at < 0.0
                    });
                    sum += found.map_or(0.0, |(x, _)| *x);
                }
            })
            .collect();
        quantile(&sums, p).unwrap()
    }

    #[test]
    fn sums_of_chance_sizes() {
        let sizes = [(3.0, 5.0), (700.0, 3.0), (7437.0, 1.0), (90_000.0, 0.05)];
        for mean in [0.05, 3.0, 30.0] {
            for p in [0.5, 0.95, 0.99] {
                let found = compound_poisson_quantile(mean, &sizes, p);
                let expect = drawn(mean, &sizes, p);
                // Single sizes make steps, where a draw falls on one side or the other.
                let off = (found.value - expect).abs() / expect.max(1.0);
                assert!(
                    off < 0.02 || (expect < 800.0 && off < 0.2),
                    "{mean} {p}: {found:?} {expect}"
                );
                assert!(found.relative_error < 0.05, "{found:?}");
            }
        }
    }

    /// Sizes of one are the count itself, and so are sizes on a grid: P(N1 + 2 N2 <= 3) with means 0.5 and 0.5 is
    /// e^-1 (1 + 0.5 + 0.625 + 0.2708333) = 0.88138.
    #[test]
    fn whole_sizes_are_exact() {
        let ones = compound_poisson_quantile(29.96, &[(1.0, 4.0)], 0.99);
        assert_eq!(ones, Estimate { value: 43.0, relative_error: 0.0 });
        let sizes = [(1.0, 1.0), (2.0, 1.0)];
        let quantile = |p| compound_poisson_quantile(1.0, &sizes, p);
        assert_eq!(quantile(0.8813), Estimate { value: 3.0, relative_error: 0.0 });
        assert_eq!(quantile(0.8814).value, 4.0);
        assert_eq!(quantile(0.3).value, 0.0);
        // Sizes of nothing change nothing.
        let diluted = compound_poisson_quantile(2.0, &[(0.0, 2.0), (1.0, 1.0), (2.0, 1.0)], 0.8812);
        assert_eq!(diluted.value, 3.0);
    }

    /// Where both ways can be gone they agree.
    #[test]
    fn expansion_and_recursion_meet() {
        let sizes: Vec<(f64, f64)> =
            (0..400).map(|i| ((f64::from(i) / 40.0).exp().floor(), 1.0)).collect();
        let below = compound_poisson_quantile(600.0, &sizes, 0.99);
        let above = compound_poisson_quantile(600.1, &sizes, 0.99);
        assert!((above.value / below.value - 1.0).abs() < 1e-3, "{below:?} {above:?}");
        assert!(above.relative_error < 2e-3, "{above:?}");
    }

    #[test]
    fn nothing_comes_of_nothing() {
        let nothing = Estimate { value: 0.0, relative_error: 0.0 };
        assert_eq!(compound_poisson_quantile(0.0, &[(5.0, 1.0)], 0.99), nothing);
        assert_eq!(compound_poisson_quantile(3.0, &[(0.0, 1.0)], 0.99), nothing);
        assert_eq!(compound_poisson_quantile(3.0, &[], 0.99), nothing);
        assert_eq!(compound_poisson_quantile(0.001, &[(5.0, 1.0), (6.0, 1.0)], 0.99), nothing);
    }

    /// A table of the Poisson distribution at means 0.5, 4 and 10; and a million at its mean, by the normal distribution with Edgeworth's first term: 0.5 +- 2/3 phi(0)/1000
    /// about, with nothing lost to underflow.
    #[test]
    fn tails_of_a_poisson_count() {
        for (count, mean, at_most) in
            [(0.0, 0.5, 0.606_530_660), (2.0, 4.0, 0.238_103_306), (15.0, 10.0, 0.951_259_597)]
        {
            assert!((poisson_tails(count, mean).0 - at_most).abs() < 1e-8, "{count} {mean}");
            assert!((poisson_tails(count + 1.0, mean).1 - (1.0 - at_most)).abs() < 1e-8);
        }
        let (at_most, at_least) = poisson_tails(1e6, 1e6);
        assert!((at_most - 0.500_266).abs() < 2e-6, "{at_most}");
        assert!((at_least - 0.500_133).abs() < 2e-6, "{at_least}");
        // Four standard deviations either way.
        assert!((poisson_tails(996_000.0, 1e6).0 - 3.2e-5).abs() < 1e-6);
        assert!((poisson_tails(1_004_000.0, 1e6).1 - 3.2e-5).abs() < 1e-6);
        assert_eq!(poisson_tails(0.0, 3.0).1, 1.0);
        assert_eq!(poisson_tails(0.0, 0.0), (1.0, 1.0));
        assert_eq!(poisson_tails(2.0, 0.0), (1.0, 0.0));
    }
}
