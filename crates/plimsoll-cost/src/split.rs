//! Whole micro-dollars over shares, to the last one.

use plimsoll_units::Usd;

/// The largest weight becomes this many parts: a float has fewer digits, and the product with any amount fits 128 bits.
const PARTS: f64 = (1u64 << 62) as f64;

/// Splits an amount by weights, by largest remainder: the parts sum to it exactly, and none is a micro-dollar or more from its quota. Where
/// remainders are equal, the earlier part has the micro-dollar. A credit is split as a charge is, and negated.
///
/// None where no weight is above zero, which leaves the amount unallocated; a weight that is no number above zero has no part.
pub fn split(total: Usd, weights: &[f64]) -> Option<Vec<Usd>> {
    let sound = |w: f64| if w.is_finite() && w > 0.0 { w } else { 0.0 };
    let most = weights.iter().fold(0.0, |most, w| f64::max(most, sound(*w)));
    if most <= 0.0 {
        return None;
    }
    let parts: Vec<u128> = weights.iter().map(|w| (sound(*w) / most * PARTS) as u128).collect();
    let whole: u128 = parts.iter().sum();
    let amount = u128::from(total.get_micros().unsigned_abs());
    let mut shares: Vec<u128> = parts.iter().map(|part| amount * part / whole).collect();
    let missing = amount - shares.iter().sum::<u128>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(amount * parts[*i] % whole), *i));
    // Fewer than there are parts are missing: each lost less than one.
    for i in order.into_iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        shares[i] += 1;
    }
    let sign = total.get_micros().signum();
    Some(shares.into_iter().map(|n| micros(n, sign)).collect())
}

fn micros(n: u128, sign: i64) -> Usd {
    // The smallest amount has no opposite: it is negated as it is made.
    match i64::try_from(n) {
        Ok(n) => Usd::micros(sign * n),
        Err(_) => Usd::micros(i64::MIN),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(total: i64, weights: &[f64], expect: Option<&[i64]>) {
        let got = split(Usd::micros(total), weights);
        let got = got.map(|parts| parts.into_iter().map(Usd::get_micros).collect::<Vec<_>>());
        assert_eq!(got.as_deref(), expect);
    }

    #[test]
    fn by_hand() {
        check(100, &[1.0, 1.0, 1.0], Some(&[34, 33, 33]));
        check(100, &[1.0, 2.0, 3.0], Some(&[17, 33, 50]));
        check(-100, &[1.0, 1.0, 1.0], Some(&[-34, -33, -33]));
        check(1, &[0.0, 1e-300], Some(&[0, 1]));
        check(7, &[f64::NAN, -2.0, f64::INFINITY, 1.0], Some(&[0, 0, 0, 7]));
        check(0, &[1.0, 2.0], Some(&[0, 0]));
        check(7, &[0.0, 0.0], None);
        check(7, &[], None);
        check(i64::MAX, &[1.0], Some(&[i64::MAX]));
        check(i64::MIN, &[1.0], Some(&[i64::MIN]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(1_000)) })]
        /// Parts sum to the amount, have its sign, and are less than a micro-dollar from their quota, whatever the weights.
        #[test]
        fn nothing_is_lost(
            total in any::<i64>(),
            weights in prop::collection::vec(prop_oneof![Just(0.0), 1e-12..1e12f64], 1..40),
        ) {
            let sum: f64 = weights.iter().sum();
            match split(Usd::micros(total), &weights) {
                None => prop_assert!(sum <= 0.0),
                Some(parts) => {
                    prop_assert_eq!(parts.iter().copied().sum::<Usd>(), Usd::micros(total));
                    for (part, weight) in parts.iter().zip(&weights) {
                        let (part, quota) = (part.get_micros() as f64, total as f64 * weight / sum);
                        prop_assert!(part * total.signum() as f64 >= 0.0);
                        // A float of 19 digits has its own error.
                        prop_assert!((part - quota).abs() <= 1.0 + total.unsigned_abs() as f64 * 1e-13);
                    }
                }
            }
        }
    }
}
