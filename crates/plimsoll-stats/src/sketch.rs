//! Quantiles of a stream too long to keep.

use hdrhistogram::Histogram;

/// A mergeable, weighted quantile sketch over non-negative numbers.
///
/// Its buckets grow with the value (HdrHistogram, three digits): a quantile is within
/// [`Sketch::RELATIVE_ERROR`] of one of the recorded values at that rank, or within one `resolution`,
/// whichever is larger. Merging loses nothing.
#[derive(Clone, Debug)]
pub struct Sketch {
    resolution: f64,
    counts: Histogram<u64>,
    /// Exact, beside the buckets.
    sum: f64,
    max: f64,
}

impl Sketch {
    /// The stated error of a quantile.
    pub const RELATIVE_ERROR: f64 = 1e-3;

    /// `resolution` is the smallest difference that matters, such as 1e-6 for microseconds.
    ///
    /// # Panics
    /// When it is not above zero.
    pub fn new(resolution: f64) -> Self {
        assert!(resolution > 0.0 && resolution.is_finite(), "a resolution is above zero");
        // It grows to the largest value there is, so that a small one stays small.
        let mut counts = Histogram::new_with_bounds(1, 1 << 20, 3)
            .expect("1 to 2^20 in 3 digits is a valid range");
        counts.auto(true);
        Self { resolution, counts, sum: 0.0, max: 0.0 }
    }

    /// Counts `value` `weight` times. Negative and undefined numbers count as zero.
    pub fn record(&mut self, value: f64, weight: u64) {
        let value = value.max(0.0);
        let ticks = (value / self.resolution).round().min((1u64 << 61) as f64) as u64;
        // Below 2^61 there is nothing that it could not hold.
        let recorded = self.counts.record_n(ticks, weight);
        debug_assert!(recorded.is_ok(), "{ticks} fits");
        self.sum += value * weight as f64;
        if weight > 0 {
            self.max = self.max.max(value);
        }
    }

    /// Adds what another sketch of the same resolution has counted.
    ///
    /// # Panics
    /// When the resolutions differ.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.resolution.to_bits(), other.resolution.to_bits(), "one resolution");
        self.counts.add(&other.counts).expect("equal bounds");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Values that were counted, each within the stated error, and how often.
    pub fn counts(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.counts.iter_recorded().map(|step| {
            let ticks = self.counts.median_equivalent(step.value_iterated_to());
            ((ticks as f64 * self.resolution).min(self.max), step.count_at_value())
        })
    }

    /// Total weight.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The exact mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum / self.count() as f64)
    }

    /// The value at this rank, within the stated error.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        (self.count() > 0).then(|| {
            let ticks = self.counts.value_at_quantile(p.clamp(0.0, 1.0));
            (self.counts.median_equivalent(ticks) as f64 * self.resolution).min(self.max)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn weights_and_merges_count() {
        let (mut a, mut b) = (Sketch::new(1e-6), Sketch::new(1e-6));
        a.record(0.010, 3);
        b.record(0.100, 1);
        a.merge(&b);
        assert_eq!(a.count(), 4);
        assert!((a.quantile(0.5).unwrap() - 0.010).abs() <= 1e-5);
        assert!((a.quantile(1.0).unwrap() - 0.100).abs() <= 1e-4);
        assert!((a.mean().unwrap() - 0.0325).abs() < 1e-12);
        assert_eq!(Sketch::new(1.0).quantile(0.5), None);
    }

    proptest! {
        /// The stated error holds against the exact order statistic.
        #[test]
        fn error_is_as_stated(values in prop::collection::vec(1e-3f64..1e6, 1..300), p in 0.0f64..1.0) {
            let mut sketch = Sketch::new(1e-6);
            values.iter().for_each(|x| sketch.record(*x, 1));
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = ((p * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
            let exact = sorted[rank - 1];
            let got = sketch.quantile(p).unwrap();
            prop_assert!((got - exact).abs() <= Sketch::RELATIVE_ERROR * exact + 1e-6, "{got} {exact}");
        }

        /// In parts or at once, in any order: the same sketch.
        #[test]
        fn merging_loses_nothing(values in prop::collection::vec(0.0f64..1e3, 1..100), cut in 0usize..100) {
            let cut = cut.min(values.len());
            let of = |part: &[f64]| {
                let mut s = Sketch::new(1e-6);
                part.iter().for_each(|x| s.record(*x, 2));
                s
            };
            let whole = of(&values);
            let mut merged = of(&values[cut..]);
            merged.merge(&of(&values[..cut]));
            for p in [0.0, 0.1, 0.5, 0.95, 1.0] {
                prop_assert_eq!(whole.quantile(p), merged.quantile(p));
            }
        }
    }
}
