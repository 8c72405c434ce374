//! Values in order of time: how they follow each other, and whether they come round.

use crate::seed::Stream;

/// How values that are `lag` apart vary together, from -1 to 1: the sum of products of their distances from the mean, over the sum of all squares.
/// None where there are no such values, or all are equal.
pub fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    if lag >= values.len() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    let products: f64 =
        values.iter().zip(&values[lag..]).map(|(x, later)| (x - mean) * (later - mean)).sum();
    (squares > 0.0).then(|| products / squares)
}

/// The share of the variance that the place within a period explains (eta squared, the correlation ratio): between places over all.
///
/// The first value has the place `phase`; values that are missing count nowhere. None where all are equal.
pub fn explained_by_place(values: &[Option<f64>], length: usize, phase: usize) -> Option<f64> {
    let means = means_by_place(values, length, phase);
    let (sum, n) = known(values).fold((0.0, 0.0), |(sum, n), (_, x)| (sum + x, n + 1.0));
    let mean = sum / n;
    let all: f64 = known(values).map(|(_, x)| (x - mean) * (x - mean)).sum();
    let place = |i: usize| means[(i + phase) % length].unwrap_or(mean);
    let between: f64 = known(values).map(|(i, _)| (place(i) - mean) * (place(i) - mean)).sum();
    (all > 0.0).then(|| between / all)
}

/// The mean at each place of a period, from place zero on; none where nothing was seen.
///
/// # Panics
/// When the period has no length.
pub fn means_by_place(values: &[Option<f64>], length: usize, phase: usize) -> Vec<Option<f64>> {
    assert!(length > 0, "a period has a length");
    let mut sums = vec![(0.0, 0.0); length];
    for (i, x) in known(values) {
        let sum = &mut sums[(i + phase) % length];
        *sum = (sum.0 + x, sum.1 + 1.0);
    }
    sums.into_iter().map(|(sum, n)| (n > 0.0).then(|| sum / n)).collect()
}

fn known(values: &[Option<f64>]) -> impl Iterator<Item = (usize, f64)> + '_ {
    values.iter().enumerate().filter_map(|(i, x)| Some((i, (*x)?)))
}

/// Adds sums and counts place by place.
fn add(all: &mut [(f64, f64)], own: &[(f64, f64)]) {
    for (all, own) in all.iter_mut().zip(own) {
        *all = (all.0 + own.0, all.1 + own.1);
    }
}

/// Whether values come round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periodicity {
    /// Whole periods that were looked at.
    pub periods: usize,
    /// The share of the variance that the place within a period explains.
    pub explained: f64,
    /// How often as much or more is explained when each period is turned by its own chance offset.
    pub p_value: f64,
    /// How often they were turned.
    pub permutations: usize,
}

/// Tests whether values come round with a period.
///
/// Were there no such period, each could as well have begun at another place: turning each by its own offset keeps how values follow
/// each other within it, and so how far means of places scatter by chance. Shuffling single values would not, and
/// would find a period in any slow drift. What does not fill a period is left out at the end. None with fewer than two periods,
/// or where all are equal.
///
/// With `n` periods of `length` there are `length^(n-1)` different turns, and no p-value is below one over that, or below
/// `1 / (permutations + 1)`.
pub fn periodicity(
    values: &[Option<f64>],
    length: usize,
    permutations: usize,
    stream: &mut Stream,
) -> Option<Periodicity> {
    let periods = values.len().checked_div(length)?;
    if periods < 2 {
        return None;
    }
    let values = &values[..periods * length];
    let explained = explained_by_place(values, length, 0)?;
    let (sum, n) = known(values).fold((0.0, 0.0), |(sum, n), (_, x)| (sum + x, n + 1.0));
    // Turning changes neither the mean nor the variance of all, only what comes together at a place.
    let apart: Vec<(f64, f64)> =
        values.iter().map(|x| x.map_or((0.0, 0.0), |x| (x - sum / n, 1.0))).collect();
    let mut places = vec![(0.0, 0.0); length];
    let mut between = |turns: &[usize]| -> f64 {
        places.fill((0.0, 0.0));
        for (period, turn) in apart.chunks(length).zip(turns) {
            let (first, rest) = places.split_at_mut(length - turn);
            add(first, &period[*turn..]);
            add(rest, &period[..*turn]);
        }
        places.iter().filter(|(_, n)| *n > 0.0).map(|(sum, n)| sum * sum / n).sum()
    };
    let mut turns = vec![0; periods];
    let seen = between(&turns);
    let mut as_much = 1usize;
    for _ in 0..permutations {
        for turn in &mut turns {
            *turn = (*turn + stream.index(length)) % length;
        }
        // Turned into itself it explains the same but for the order of sums.
        as_much += usize::from(between(&turns) >= seen * (1.0 - 1e-12));
    }
    let p_value = as_much as f64 / (permutations + 1) as f64;
    Some(Periodicity { periods, explained, p_value, permutations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    /// Worked by hand: 1, 2, 3, 4 have mean 2.5 and squares 5; products at lag 1 are 0.75 - 0.25 + 0.75, at lag 2 -0.75 - 0.75.
    #[test]
    fn four_values_by_hand() {
        let four = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(autocorrelation(&four, 0), Some(1.0));
        assert!((autocorrelation(&four, 1).unwrap() - 0.25).abs() < 1e-15);
        assert!((autocorrelation(&four, 2).unwrap() + 0.3).abs() < 1e-15);
        assert_eq!(autocorrelation(&four, 4), None);
        assert_eq!(autocorrelation(&[3.0, 3.0], 1), None);
    }

    /// Two places with means 2 and 5 around 3.5: between 4 * 2.25 = 9, within 4 * 1 = 4, so 9 of 13.
    #[test]
    fn variance_by_place() {
        let values = [1.0, 4.0, 3.0, 6.0].map(Some);
        let share = explained_by_place(&values, 2, 0).unwrap();
        assert!((share - 9.0 / 13.0).abs() < 1e-15);
        assert_eq!(means_by_place(&values, 2, 1), [Some(5.0), Some(2.0)]);
        assert_eq!(explained_by_place(&[Some(1.0); 4], 2, 0), None);
        // What is missing counts nowhere.
        let gaps = [Some(1.0), Some(4.0), None, None, Some(3.0), Some(6.0)];
        assert_eq!(explained_by_place(&gaps, 2, 0), explained_by_place(&values, 2, 0));
    }

    #[test]
    fn a_day_is_found_and_drift_is_not() {
        let mut stream = Seed::new(4).stream("series");
        let mut noise = || stream.uniform() - 0.5;
        let day = |hour: usize| (hour as f64 / 24.0 * std::f64::consts::TAU).sin();
        let seasonal: Vec<_> = (0..7 * 24).map(|hour| Some(10.0 + day(hour) + noise())).collect();
        let test = |values: &[Option<f64>]| {
            periodicity(values, 24, 999, &mut Seed::new(5).stream("turns"))
        };
        let found = test(&seasonal).unwrap();
        assert_eq!((found.periods, found.p_value), (7, 0.001));
        // A walk at random wanders as far as a day does, and is no day. Over many of them one in twenty is below 5 %.
        let mut below = 0;
        for _ in 0..200 {
            let mut at = 0.0;
            let walk: Vec<_> = (0..7 * 24)
                .map(|_| {
                    at = 0.98 * at + noise();
                    Some(at)
                })
                .collect();
            let quick = periodicity(&walk, 24, 99, &mut Seed::new(6).stream("turns")).unwrap();
            below += usize::from(quick.p_value <= 0.05);
        }
        assert!(below <= 24, "{below} of 200");
        assert_eq!(test(&seasonal[..47]), None);
    }
}
