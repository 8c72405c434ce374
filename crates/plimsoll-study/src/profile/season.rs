//! Whether hours of the day and days of the week differ.

use plimsoll_stats::{Seed, explained_by_place, means_by_place, periodicity};

use super::result::{Season, SeasonVerdict};

/// A period and where in it the first value lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub length: usize,
    pub phase: usize,
    /// Whether the phase is the clock's.
    pub known: bool,
}

/// With fewer whole periods nothing is tested.
const PERIODS: usize = 3;
/// How often periods are turned.
const TURNS: usize = 999;
/// What chance does less often than this is shown.
const LEVEL: f64 = 0.05;

/// Means by place from place zero on; zero where nothing was seen.
pub(super) fn means(values: &[Option<f64>], length: usize, phase: usize) -> Vec<f64> {
    means_by_place(values, length, phase).into_iter().map(|mean| mean.unwrap_or(0.0)).collect()
}

pub(super) fn eta2(values: &[Option<f64>], length: usize, phase: usize) -> Option<f64> {
    explained_by_place(values, length, phase)
}

/// Means of whole runs of so many values, where the first value has the place `phase` in its run.
pub(super) fn means_of_runs(
    values: &[Option<f64>],
    length: usize,
    phase: usize,
) -> Vec<Option<f64>> {
    let skipped = (length - phase) % length;
    let whole = values.get(skipped..).unwrap_or_default().chunks_exact(length);
    whole
        .map(|run| {
            let (sum, n) = run.iter().flatten().fold((0.0, 0.0), |(s, n), x| (s + x, n + 1.0));
            (n > 0.0).then(|| sum / n)
        })
        .collect()
}

/// Tests whether values come round.
pub(super) fn test(values: &[Option<f64>], period: Period, seed: Seed, name: &str) -> Season {
    let periods = values.len() / period.length;
    let phase = if period.known { period.phase } else { 0 };
    let none = Season {
        periods: periods as u64,
        eta2: None,
        p_value: None,
        permutations: 0,
        verdict: SeasonVerdict::NotEnoughHistory,
        mean_requests: None,
        by_the_clock: period.known,
        peak_to_trough: None,
    };
    if periods < PERIODS {
        return none;
    }
    let mut stream = seed.stream(name);
    let Some(found) = periodicity(values, period.length, TURNS, &mut stream) else {
        return Season { verdict: SeasonVerdict::NotShown, ..none };
    };
    let shown = found.p_value <= LEVEL;
    let means = means(&values[..periods * period.length], period.length, phase);
    let most = means.iter().copied().fold(0.0, f64::max);
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    Season {
        eta2: Some(found.explained),
        p_value: Some(found.p_value),
        permutations: found.permutations as u64,
        verdict: if shown { SeasonVerdict::Shown } else { SeasonVerdict::NotShown },
        mean_requests: Some(means),
        peak_to_trough: (least > 0.0).then(|| most / least),
        ..none
    }
}
