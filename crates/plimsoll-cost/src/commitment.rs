//! How much to commit to, under a demand that is not known: a newsvendor's question.

/// What may come, as quantiles of demand: (share, demand), in any unit that is paid by the hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertain(Vec<(f64, f64)>);

/// How much to commit to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Commitment {
    /// As much as is asked for more often than reserved prices are of on-demand ones.
    pub quantity: f64,
    /// That ratio: the share of hours that ask for more.
    pub exceeded: f64,
    /// What an hour is expected to cost with it.
    pub usd: f64,
    /// What it would cost without any.
    pub none_usd: f64,
    /// What it would cost, were all that is ever asked for committed to.
    pub all_usd: f64,
    /// Whether the quantile that decides is outside of those that are known, so that the outermost stands for it.
    pub beyond: bool,
}

impl Uncertain {
    /// Quantiles of demand; straight lines between them, flat beyond the outermost. None without any, or where a share is not from 0 to 1 or a
    /// demand not a number from zero on. Quantiles that cross are put in order: a higher one is at least the lower.
    pub fn new(quantiles: &[(f64, f64)]) -> Option<Self> {
        let sound = |(share, demand): &(f64, f64)| {
            (0.0..=1.0).contains(share) && demand.is_finite() && *demand >= 0.0
        };
        if quantiles.is_empty() || !quantiles.iter().all(sound) {
            return None;
        }
        let mut points = quantiles.to_vec();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut most: f64 = 0.0;
        for point in &mut points {
            most = most.max(point.1);
            point.1 = most;
        }
        Some(Self(points))
    }

    /// Demands that were seen, each as likely as the others.
    pub fn of_samples(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        // A step for each: a demand holds from its share on to the next.
        let steps = sorted.iter().enumerate();
        let points: Vec<(f64, f64)> = steps
            .flat_map(|(i, demand)| [(i as f64 / n, *demand), ((i + 1) as f64 / n, *demand)])
            .collect();
        Self::new(&points)
    }

    /// The demand that a share of hours does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut before = self.0[0];
        for point in &self.0 {
            if share < point.0 {
                let along = (share - before.0) / (point.0 - before.0);
                return before.1 + along.clamp(0.0, 1.0) * (point.1 - before.1);
            }
            before = *point;
        }
        before.1
    }

    /// How much more than `kept` is asked for, on average.
    pub fn excess(&self, kept: f64) -> f64 {
        let last = self.0[self.0.len() - 1];
        let first = self.0[0];
        let ends = first.0 * (first.1 - kept).max(0.0) + (1.0 - last.0) * (last.1 - kept).max(0.0);
        let between = self.0.windows(2).map(|pair| {
            let (width, low, high) = (pair[1].0 - pair[0].0, pair[0].1 - kept, pair[1].1 - kept);
            match (low >= 0.0, high > 0.0) {
                (true, _) => width * (low + high) / 2.0,
                // A triangle above what is kept.
                (false, true) => width * high / (high - low) * high / 2.0,
                (false, false) => 0.0,
            }
        });
        ends + between.sum::<f64>()
    }

    /// What an hour is expected to cost where `kept` is committed to.
    pub fn cost(&self, kept: f64, reserved: f64, on_demand: f64) -> f64 {
        kept * reserved + self.excess(kept) * on_demand
    }

    /// The commitment that costs least: P(demand > K) = reserved / on-demand. None of it where the commitment is no cheaper.
    pub fn commitment(&self, reserved: f64, on_demand: f64) -> Commitment {
        let exceeded = match on_demand > 0.0 {
            true => (reserved / on_demand).clamp(0.0, 1.0),
            false => 1.0,
        };
        let share = 1.0 - exceeded;
        let quantity = if exceeded < 1.0 { self.quantile(share) } else { 0.0 };
        let (first, last) = (self.0[0].0, self.0[self.0.len() - 1].0);
        Commitment {
            quantity,
            exceeded,
            usd: self.cost(quantity, reserved, on_demand),
            none_usd: self.cost(0.0, reserved, on_demand),
            all_usd: self.cost(self.quantile(1.0), reserved, on_demand),
            beyond: exceeded < 1.0 && !(first..=last).contains(&share),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Demand is anything from 0 to 100 devices. At $1 reserved against $4, a quarter of hours may exceed: 75 devices. These cost $75, and
    /// what exceeds them is 25/2 devices in a quarter of hours, $12.50.
    #[test]
    fn by_hand() {
        let demand = Uncertain::new(&[(0.0, 0.0), (1.0, 100.0)]).unwrap();
        let got = demand.commitment(1.0, 4.0);
        assert_eq!((got.quantity, got.exceeded), (75.0, 0.25));
        assert!((got.usd - 87.5).abs() < 1e-9);
        assert_eq!((got.none_usd, got.all_usd), (200.0, 100.0));
        assert!(!got.beyond);
    }

    /// Days ask for 10, nights for 4, as often: half price and dearer ones commit to the night's, cheaper ones to the day's.
    #[test]
    fn two_levels() {
        let demand = Uncertain::of_samples(&[10.0, 4.0]).unwrap();
        for (reserved, quantity) in [(0.49, 10.0), (0.51, 4.0), (1.0, 0.0), (1.5, 0.0), (0.0, 10.0)]
        {
            assert_eq!(demand.commitment(reserved, 1.0).quantity, quantity, "at {reserved}");
        }
        assert_eq!(demand.commitment(0.0, 0.0).quantity, 0.0);
        assert_eq!(demand.cost(4.0, 0.5, 1.0), 5.0);
    }

    #[test]
    fn outside_of_what_is_known() {
        let demand = Uncertain::new(&[(0.9, 30.0), (0.5, 20.0), (0.5, 20.0)]).unwrap();
        assert!(demand.commitment(0.05, 1.0).beyond);
        assert_eq!(demand.commitment(0.05, 1.0).quantity, 30.0);
        assert_eq!(demand.quantile(0.1), 20.0);
        for bad in [&[][..], &[(1.1, 1.0)], &[(0.5, f64::NAN)], &[(0.5, -1.0)]] {
            assert_eq!(Uncertain::new(bad), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(500)) })]
        /// No other quantity costs less.
        #[test]
        fn nothing_is_cheaper(
            samples in prop::collection::vec(0.0..100.0f64, 1..30),
            (reserved, on_demand, other) in (0.0..5.0f64, 0.01..5.0f64, 0.0..120.0f64),
        ) {
            let demand = Uncertain::of_samples(&samples).unwrap();
            let best = demand.commitment(reserved, on_demand);
            prop_assert!(best.usd <= demand.cost(other, reserved, on_demand) + 1e-9);
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            prop_assert!((best.none_usd - mean * on_demand).abs() < 1e-6);
        }
    }
}
