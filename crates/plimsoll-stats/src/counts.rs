//! Whole numbers and how often each was seen.

use std::collections::BTreeMap;

/// Values of a page; a page exists once one of them was counted.
const PAGE: usize = 256;
/// Values below this many pages are found by their place, larger ones in a tree.
const PAGES: u64 = 1 << 14;

/// How often each whole number was seen, where each sighting has a weight.
///
/// Nothing is rounded and nothing is sampled: quantiles are those of all values. Weights that are whole numbers are summed
/// without error, up to 2^53, so that neither the order nor the division of the values matters.
/// Values below four million cost a table look-up each, and memory as far as they are used; larger ones cost a search.
#[derive(Clone, Debug)]
pub struct Counts {
    pages: Vec<Option<Box<[f64; PAGE]>>>,
    far: BTreeMap<u64, f64>,
    total: f64,
}

impl Counts {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { pages: Vec::new(), far: BTreeMap::new(), total: 0.0 }
    }

    /// Counts a value. A weight that is not above zero counts nothing.
    #[inline]
    pub fn add(&mut self, value: u64, weight: f64) {
        if weight > 0.0 && weight.is_finite() {
            self.total += weight;
            let page = value / PAGE as u64;
            match self.pages.get_mut(page as usize) {
                Some(Some(page)) => page[value as usize % PAGE] += weight,
                _ => self.open(page, value, weight),
            }
        }
    }

    /// Counts the first value of a page, or one that lies on none.
    #[cold]
    fn open(&mut self, page: u64, value: u64, weight: f64) {
        if page >= PAGES {
            *self.far.entry(value).or_insert(0.0) += weight;
            return;
        }
        let page = page as usize;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let values = self.pages[page].get_or_insert_with(|| Box::new([0.0; PAGE]));
        values[value as usize % PAGE] += weight;
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Self) {
        for (value, weight) in other.iter() {
            self.add(value, weight);
        }
    }

    /// Values that were seen and their weights, in order of the values.
    pub fn iter(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let near = self.pages.iter().enumerate().flat_map(|(page, values)| {
            let values = values.iter().flat_map(|values| values.iter().enumerate());
            values.map(move |(i, weight)| ((page * PAGE + i) as u64, *weight))
        });
        let far = self.far.iter().map(|(value, weight)| (*value, *weight));
        near.filter(|(_, weight)| *weight > 0.0).chain(far)
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.total <= 0.0
    }

    /// All weights together.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The weight of zeros.
    pub fn zeros(&self) -> f64 {
        self.iter().next().filter(|(value, _)| *value == 0).map_or(0.0, |(_, weight)| weight)
    }

    /// The weight of values above this one.
    pub fn above(&self, limit: f64) -> f64 {
        self.iter().filter(|(value, _)| *value as f64 > limit).map(|(_, weight)| weight).sum()
    }

    /// Values times their weights.
    pub fn sum(&self) -> f64 {
        self.iter().map(|(value, weight)| value as f64 * weight).sum()
    }

    /// The mean.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum() / self.total)
    }

    /// The standard deviation of the whole population: divided by n, not by n - 1.
    pub fn std(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares = self.iter().map(|(value, weight)| weight * (value as f64 - mean).powi(2));
        Some((squares.sum::<f64>() / self.total).sqrt())
    }

    /// The standard deviation over the mean; none where the mean is zero.
    pub fn cv(&self) -> Option<f64> {
        self.mean().filter(|mean| *mean > 0.0).and_then(|mean| Some(self.std()? / mean))
    }

    /// The smallest.
    pub fn min(&self) -> Option<u64> {
        self.iter().next().map(|(value, _)| value)
    }

    /// The largest.
    pub fn max(&self) -> Option<u64> {
        self.iter().last().map(|(value, _)| value)
    }

    /// The mean as a unit of the sum sees it: sum of squares over sum. Whoever picks a token at random picks a request of
    /// this length. None where all are zero.
    pub fn size_biased_mean(&self) -> Option<f64> {
        let sum = self.sum();
        let squares = self.iter().map(|(value, weight)| weight * (value as f64).powi(2));
        (sum > 0.0).then(|| squares.sum::<f64>() / sum)
    }

    /// The quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan).
    ///
    /// A weight of three is three equal values. Where weights are not whole, the value at rank `r` is the first that more than
    /// `r` of the weight has passed with, and the line is drawn from one rank to the next as before.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let last = self.max()? as f64;
        let rank = p.clamp(0.0, 1.0) * (self.total - 1.0).max(0.0);
        let (below, part) = (rank.floor(), rank.fract());
        // Parts of weights do not add up to the last bit.
        let slack = if self.total.fract() == 0.0 { 0.0 } else { 1e-9 * self.total };
        let (mut passed, mut low) = (0.0, None);
        for (value, weight) in self.iter() {
            passed += weight;
            if low.is_none() && passed > below + slack {
                low = Some(value as f64);
                if part == 0.0 {
                    return low;
                }
            }
            if passed > below + 1.0 + slack {
                let low = low.unwrap_or(value as f64);
                return Some(low + part * (value as f64 - low));
            }
        }
        let low = low.unwrap_or(last);
        Some(low + part * (last - low))
    }

    /// The share of the sum that the largest of them hold, where `share` says how large a part of all that is, rounded up to whole
    /// weights. None where all are zero.
    pub fn top_share(&self, share: f64) -> Option<f64> {
        let sum = self.sum();
        if sum <= 0.0 {
            return None;
        }
        // 0.05 * 100 is 5.000000000000001: what is a hair above a whole number is that number.
        let exact = share * self.total;
        let near = exact.round();
        let whole = if (exact - near).abs() < 1e-9 * near.max(1.0) { near } else { exact.ceil() };
        let mut left = whole.min(self.total);
        let values: Vec<(u64, f64)> = self.iter().collect();
        let mut held = 0.0;
        for (value, weight) in values.into_iter().rev() {
            let taken = weight.min(left);
            held += value as f64 * taken;
            left -= taken;
            if left <= 0.0 {
                break;
            }
        }
        Some(held / sum)
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantile::quantile;

    fn counts(values: &[(u64, f64)]) -> Counts {
        let mut counts = Counts::new();
        values.iter().for_each(|(value, weight)| counts.add(*value, *weight));
        counts
    }

    /// Worked by hand: 0, 2, 2, 4, 12 have sum 20, mean 4, squares 168, variance 168/5 - 16 = 17.6.
    #[test]
    fn five_values_by_hand() {
        let five = counts(&[(12, 1.0), (2, 2.0), (0, 1.0), (4, 1.0)]);
        assert_eq!((five.total(), five.sum(), five.mean()), (5.0, 20.0, Some(4.0)));
        assert_eq!((five.min(), five.max(), five.zeros()), (Some(0), Some(12), 1.0));
        assert!((five.std().unwrap() - 17.6f64.sqrt()).abs() < 1e-12);
        assert!((five.cv().unwrap() - 17.6f64.sqrt() / 4.0).abs() < 1e-12);
        assert_eq!(five.size_biased_mean(), Some(168.0 / 20.0));
        assert_eq!(five.quantile(0.5), Some(2.0));
        assert_eq!(five.quantile(0.9), Some(4.0 + 0.6 * 8.0));
        // One of five is the largest; 21 % of five are two of them.
        assert_eq!(five.top_share(0.2), Some(12.0 / 20.0));
        assert_eq!(five.top_share(0.21), Some(16.0 / 20.0));
        assert_eq!(five.top_share(1.0), Some(1.0));
        assert_eq!(five.above(2.0), 2.0);
    }

    #[test]
    fn nothing_and_what_counts_nothing() {
        let none = counts(&[(7, 0.0), (8, -1.0), (9, f64::NAN)]);
        assert!(none.is_empty());
        assert_eq!((none.mean(), none.quantile(0.5), none.top_share(0.1)), (None, None, None));
        assert_eq!(counts(&[(0, 3.0)]).size_biased_mean(), None);
        assert_eq!(counts(&[(0, 3.0)]).cv(), None);
    }

    /// Half a value on either side of another weighs as much as it.
    #[test]
    fn parts_of_values() {
        let parts = counts(&[(1, 0.5), (2, 1.0), (3, 0.5)]);
        assert_eq!(parts.mean(), Some(2.0));
        assert_eq!((parts.quantile(0.0), parts.quantile(1.0)), (Some(1.0), Some(2.0)));
        // A tenth logged and weighed tenfold is as good as all of it.
        let tenth = counts(&[(5, 10.0), (50, 10.0)]);
        let all =
            counts(&[(5, 1.0); 10].iter().chain(&[(50, 1.0); 10]).copied().collect::<Vec<_>>());
        for p in [0.0, 0.3, 0.5, 0.77, 1.0] {
            assert_eq!(tenth.quantile(p), all.quantile(p), "{p}");
        }
    }

    proptest! {
        /// What is counted is what was seen: quantiles are those of the values themselves, near and far, merged or not.
        #[test]
        fn as_good_as_the_values(
            values in prop::collection::vec(prop_oneof![0u64..40, 0u64..70_000, 4_194_000u64..4_195_000, any::<u32>().prop_map(u64::from)], 1..120),
            cut in 0usize..120,
        ) {
            let ones: Vec<(u64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
            let cut = cut.min(ones.len());
            let mut merged = counts(&ones[cut..]);
            merged.merge(&counts(&ones[..cut]));
            let plain: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            for p in [0.0, 0.1, 0.5, 0.95, 0.999, 1.0] {
                let expect = quantile(&plain, p).unwrap();
                let found = merged.quantile(p).unwrap();
                prop_assert!((found - expect).abs() <= 1e-9 * expect.max(1.0), "{} {} {}", p, found, expect);
            }
            prop_assert_eq!(merged.sum(), plain.iter().sum::<f64>());
            prop_assert_eq!(merged.iter().collect::<Vec<_>>(), counts(&ones).iter().collect::<Vec<_>>());
        }
    }
}
