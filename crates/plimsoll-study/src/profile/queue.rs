//! The wait before one server that prefills in order of arrival.
//!
//! The next wait is the last one, plus what that request took, less the time until the next came (Lindley 1952). It is a lower bound for a
//! fleet of the same capacity that is split into replicas.

use plimsoll_stats::{Seed, Stream};

use super::levels::quantiles;
use super::result::{Keyed, PrefillQueue, QueueCapacities, QueueWait, QueueWaits};

const UTILISATIONS: [(f64, &str); 5] =
    [(0.3, "0.3"), (0.5, "0.5"), (0.7, "0.7"), (0.8, "0.8"), (0.9, "0.9")];
const WAITS: [(f64, &str); 3] = [(0.5, "0.5"), (1.0, "1.0"), (5.0, "5.0")];
/// More rows are not played through.
pub(super) const ROWS_MAX: usize = 2_000_000;
const ROWS_MIN: usize = 100;
/// Runs with independent arrivals.
const RUNS: usize = 40;
/// Requests of a run at most.
const RUN_ROWS: usize = 20_000;

/// Arrivals in nanoseconds and their prompts, in order of time; at most [`ROWS_MAX`].
pub(super) fn prefill_queue(rows: &[(i64, u32)], span_s: f64, seed: Seed) -> PrefillQueue {
    let n = rows.len();
    if n < ROWS_MIN {
        return refused(&format!("fewer than {ROWS_MIN} requests"));
    }
    let tokens: f64 = rows.iter().map(|(_, prompt)| f64::from(*prompt)).sum();
    if tokens <= 0.0 || span_s <= 0.0 {
        return refused("no prompt tokens, or no time");
    }
    let mean = tokens / span_s;
    // Prompts over the mean demand: the seconds a prompt takes on a server of utilisation one.
    let trace = Run {
        work: rows.iter().map(|(_, prompt)| f64::from(*prompt) / mean).collect(),
        gaps: rows.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e9).collect(),
    };
    let gap = span_s / (n - 1) as f64;
    let drawn = n.min(RUN_ROWS);
    let mut stream = seed.stream("prefill queue");
    let mut chance = |work: &dyn Fn(&mut Stream) -> f64| -> Vec<Run> {
        let mut run = || {
            let work = (0..drawn).map(|_| work(&mut stream)).collect();
            let gaps = (1..drawn).map(|_| gap * stream.exponential()).collect();
            Run { work, gaps }
        };
        (0..RUNS).map(|_| run()).collect()
    };
    let same = chance(&|stream| trace.work[stream.index(n)]);
    let fixed = chance(&|_| tokens / n as f64 / mean);
    let trace = [trace];

    let waits = UTILISATIONS.map(|(load, key)| {
        let waits = QueueWaits {
            trace: waits(&trace, load),
            poisson_same_lengths: waits(&same, load),
            poisson_mean_length: waits(&fixed, load),
        };
        (key.to_owned(), waits)
    });
    let capacities = WAITS.map(|(most, key)| {
        let capacities = QueueCapacities {
            trace: capacity(&trace, most, 1e-9),
            poisson_same_lengths: capacity(&same, most, 1e-4),
            poisson_mean_length: capacity(&fixed, most, 1e-4),
        };
        (key.to_owned(), capacities)
    });
    PrefillQueue {
        mean_prompt_tokens_per_s: Some(mean),
        wait_s_by_utilisation: Keyed(waits.into()),
        capacity_over_mean_for_p99_wait_le_s: Keyed(capacities.into()),
        reason: None,
    }
}

/// No queue, and why.
pub(super) fn refused(reason: &str) -> PrefillQueue {
    PrefillQueue {
        mean_prompt_tokens_per_s: None,
        wait_s_by_utilisation: Keyed(Vec::new()),
        capacity_over_mean_for_p99_wait_le_s: Keyed(Vec::new()),
        reason: Some(reason.to_owned()),
    }
}

/// Requests one after the other, from an idle server on.
struct Run {
    /// Seconds on a server of utilisation one.
    work: Vec<f64>,
    /// Seconds until the next.
    gaps: Vec<f64>,
}

impl Run {
    fn each_wait(&self, load: f64, mut take: impl FnMut(f64)) {
        let mut wait = 0.0f64;
        take(wait);
        for (work, gap) in self.work.iter().zip(&self.gaps) {
            wait = (wait + work * load - gap).max(0.0);
            take(wait);
        }
    }
}

fn waits(runs: &[Run], load: f64) -> QueueWait {
    let mut all = Vec::with_capacity(runs.iter().map(|run| run.work.len()).sum());
    runs.iter().for_each(|run| run.each_wait(load, |wait| all.push(wait)));
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let [p50, p95, p99, max] = quantiles(&mut all, [0.5, 0.95, 0.99, 1.0]);
    QueueWait { mean, p50, p95, p99, max }
}

/// The smallest server, over the mean demand, whose 99th percentile of the wait is not above this: halved until it is known so well.
fn capacity(runs: &[Run], most: f64, precision: f64) -> f64 {
    let enough = |capacity: f64| p99_is_within(runs, 1.0 / capacity, most);
    let mut high = 1.0;
    while !enough(high) && high < 1e9 {
        high *= 2.0;
    }
    let mut low = high / 2.0;
    while enough(low) && low > 1e-9 {
        high = low;
        low /= 2.0;
    }
    while high - low > precision * high {
        let middle = f64::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// Whether the 99th percentile of the wait is not above a limit, without sorting waits: it lies between two neighbours in their order,
/// and how many are within the limit says on which side of it those are.
fn p99_is_within(runs: &[Run], load: f64, most: f64) -> bool {
    let (mut within, mut n) = (0usize, 0usize);
    let (mut below, mut above) = (0.0f64, f64::INFINITY);
    for run in runs {
        run.each_wait(load, |wait| {
            n += 1;
            if wait <= most {
                within += 1;
                below = below.max(wait);
            } else {
                above = above.min(wait);
            }
        });
    }
    let rank = 0.99 * n.saturating_sub(1) as f64;
    let low = rank.floor() as usize;
    match within {
        _ if within >= low + 2 || within == n => true,
        _ if within <= low => false,
        _ => below + rank.fract() * (above - below) <= most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M/M/1 at load 0.5: a request waits with probability 0.5, for load / (1 - load) times its mean service time of 0.5 s; so 0.5 s on average, and the
    /// 99th percentile is ln(0.5 / 0.01) / (1/0.5 - 1) = 3.912 s.
    #[test]
    fn one_server_by_the_textbook() {
        let mut stream = Seed::new(3).stream("one server");
        let run = Run {
            work: (0..400_000).map(|_| stream.exponential()).collect(),
            gaps: (1..400_000).map(|_| stream.exponential()).collect(),
        };
        let found = waits(&[run], 0.5);
        assert!((found.mean / 0.5 - 1.0).abs() < 0.03, "{found:?}");
        assert!((found.p99 / 3.912 - 1.0).abs() < 0.05, "{found:?}");
    }

    /// The size that was looked for has the wait that was asked for.
    #[test]
    fn a_server_of_the_right_size() {
        let mut stream = Seed::new(4).stream("one server");
        let run = Run {
            work: (0..5000).map(|_| stream.exponential()).collect(),
            gaps: (1..5000).map(|_| stream.exponential()).collect(),
        };
        let runs = [run];
        for most in [0.5, 1.0, 5.0] {
            let found = capacity(&runs, most, 1e-12);
            assert!((waits(&runs, 1.0 / found).p99 / most - 1.0).abs() < 1e-6, "{most}: {found}");
        }
    }
}
