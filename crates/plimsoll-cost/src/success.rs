//! What one success costs.

use plimsoll_stats::{Interval, student_quantile};
use plimsoll_units::Usd;

use crate::usage::Tasks;

/// What one success costs, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct PerSuccess {
    /// All that was paid over tasks that are known to have succeeded, in dollars; none where that cannot be said.
    pub usd: Option<f64>,
    /// Its interval, from how tasks differ.
    pub interval: Option<Interval>,
    /// From all unresolved tasks having succeeded to none of them.
    pub bounds: Option<(f64, f64)>,
    /// Its factors.
    pub factors: Option<Factors>,
    /// Without idle time, reserve and whatever is paid anyway.
    pub marginal_usd: Option<f64>,
    /// Why there is no number, or what is wrong with it.
    pub why: Option<String>,
}

/// Cost an attempt, times attempts a task, over the share of tasks that succeed: exactly the cost of a success.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// What an attempt costs.
    pub cost_per_attempt_usd: f64,
    /// Attempts of a task.
    pub attempts_per_task: f64,
    /// The share of tasks that are known to have succeeded.
    pub success_rate: f64,
}

/// What one success costs, given all that was paid and how much of that is marginal.
///
/// The interval is the delta method's, of the ratio of what tasks cost to how many succeeded (docs/cost.md). Moments of [`Tasks`] leave idle
/// time out; what is paid besides is taken to grow with them, so the relative width is the same.
pub fn per_success(total: Usd, marginal: Usd, tasks: &Tasks, level: f64) -> PerSuccess {
    let none = |why: String| PerSuccess {
        usd: None,
        interval: None,
        bounds: None,
        factors: None,
        marginal_usd: None,
        why: Some(why),
    };
    let (all, succeeded, unresolved) = (tasks.tasks, tasks.succeeded, tasks.unresolved());
    if all == 0 {
        return none("no task is known".to_owned());
    }
    if unresolved == all {
        return none(format!(
            "nobody has said of any of {all} tasks whether it succeeded: add outcomes to the ledger, or `success_rate` to the classes of a scenario"
        ));
    }
    let dollars = |usd: Usd| usd.get_micros() as f64 / 1e6;
    let most = succeeded + unresolved;
    if succeeded == 0 {
        let mut known = none(format!("none of {all} tasks is known to have succeeded"));
        if unresolved > 0 {
            let least = dollars(total) / most as f64;
            known.why = Some(format!(
                "none of {all} tasks is known to have succeeded; were all {unresolved} that nobody judged successes, one would cost ${least:.6}"
            ));
        }
        return known;
    }
    let usd = dollars(total) / succeeded as f64;
    let why = (unresolved > 0).then(|| {
        format!("nobody judged {unresolved} of {all} tasks, which count as no successes here; the low bound counts them as successes")
    });
    PerSuccess {
        usd: Some(usd),
        interval: interval(usd, tasks, level),
        bounds: (unresolved > 0).then(|| (dollars(total) / most as f64, usd)),
        factors: (tasks.attempts > 0).then(|| Factors {
            cost_per_attempt_usd: dollars(total) / tasks.attempts as f64,
            attempts_per_task: tasks.attempts as f64 / all as f64,
            success_rate: succeeded as f64 / all as f64,
        }),
        marginal_usd: Some(dollars(marginal) / succeeded as f64),
        why,
    }
}

fn interval(usd: f64, tasks: &Tasks, level: f64) -> Option<Interval> {
    let (n, succeeded) = (tasks.tasks as f64, tasks.succeeded as f64);
    if tasks.tasks < 2 || tasks.usd <= 0.0 {
        return None;
    }
    let (cost, share) = (tasks.usd / n, succeeded / n);
    let ratio = cost / share;
    let freedom = n - 1.0;
    let var_cost = (tasks.usd_squared - tasks.usd * cost) / freedom;
    let var_success = (succeeded - succeeded * share) / freedom;
    let both = (tasks.usd_succeeded - tasks.usd * share) / freedom;
    // Rounding may leave a little less than nothing.
    let spread = (var_cost - 2.0 * ratio * both + ratio * ratio * var_success).max(0.0);
    let relative = (spread / n).sqrt() / share / ratio;
    let half = student_quantile(0.5 + level / 2.0, freedom) * relative * usd;
    let n = usize::try_from(tasks.tasks).unwrap_or(usize::MAX);
    Some(Interval { low: (usd - half).max(0.0), high: usd + half, level, n })
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::Seed;
    use proptest::prelude::*;

    use super::*;

    /// Tasks of a cost and an outcome: succeeded, failed, or nobody says.
    fn tasks(each: &[(f64, Option<bool>)]) -> Tasks {
        let mut tasks = Tasks::default();
        for (usd, outcome) in each {
            tasks.tasks += 1;
            tasks.attempts += 2;
            tasks.usd += usd;
            tasks.usd_squared += usd * usd;
            match outcome {
                Some(true) => {
                    tasks.succeeded += 1;
                    tasks.usd_succeeded += usd;
                }
                Some(false) => tasks.failed += 1,
                None => {}
            }
        }
        tasks
    }

    /// Four tasks, $8, two successes, one not judged: $4 each, or $2.67 were it one.
    #[test]
    fn by_hand() {
        let four = tasks(&[(1.0, Some(true)), (1.0, Some(true)), (1.0, Some(false)), (1.0, None)]);
        let got = per_success(Usd::micros(8_000_000), Usd::micros(2_000_000), &four, 0.95);
        assert_eq!(got.usd, Some(4.0));
        assert_eq!(got.marginal_usd, Some(1.0));
        let (low, high) = got.bounds.unwrap();
        assert!((low - 8.0 / 3.0).abs() < 1e-12 && high == 4.0);
        let factors = got.factors.unwrap();
        assert_eq!(
            (factors.cost_per_attempt_usd, factors.attempts_per_task, factors.success_rate),
            (1.0, 2.0, 0.5)
        );
        assert!(got.why.unwrap().contains("1 of 4 tasks"));
    }

    #[test]
    fn no_number_without_a_success() {
        for (each, why) in [
            (&[][..], "no task"),
            (&[(1.0, None), (1.0, None)][..], "nobody has said of any of 2"),
            (&[(1.0, Some(false))][..], "none of 1 tasks"),
            (&[(1.0, Some(false)), (1.0, None)][..], "were all 1 that nobody judged"),
        ] {
            let got = per_success(Usd::micros(1), Usd::ZERO, &tasks(each), 0.95);
            assert_eq!((got.usd, got.interval), (None, None));
            assert!(got.why.as_deref().unwrap().contains(why), "{:?}", got.why);
        }
    }

    /// Tasks whose cost is drawn from one to three dollars and of which 60% succeed, whatever they cost: one success costs 2 / 0.6, and
    /// nineteen intervals in twenty say so.
    #[test]
    fn the_interval_covers_the_truth() {
        let mut stream = Seed::new(7).stream("tasks");
        let covered = (0..1000)
            .filter(|_| {
                let draw =
                    (0..200).map(|_| (1.0 + 2.0 * stream.uniform(), Some(stream.uniform() < 0.6)));
                let tasks = tasks(&draw.collect::<Vec<_>>());
                let total = Usd::micros((tasks.usd * 1e6) as i64);
                let interval = per_success(total, total, &tasks, 0.95).interval.unwrap();
                (interval.low..interval.high).contains(&(2.0 / 0.6))
            })
            .count();
        // Binomial: 950 +- 3 * 6.9.
        assert!((929..=971).contains(&covered), "{covered}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(500)) })]
        /// The logarithms of the factors sum to that of the cost, and the number is inside its interval and bounds.
        #[test]
        fn factors_are_exact(micros in 1i64..1_000_000_000_000, each in prop::collection::vec((0.01..10.0f64, prop::option::of(any::<bool>())), 2..60)) {
            let got = per_success(Usd::micros(micros), Usd::micros(micros / 2), &tasks(&each), 0.9);
            if let (Some(usd), Some(f)) = (got.usd, got.factors) {
                let sum = f.cost_per_attempt_usd.ln() + f.attempts_per_task.ln() - f.success_rate.ln();
                prop_assert!((sum - usd.ln()).abs() < 1e-9);
                let i = got.interval.unwrap();
                prop_assert!(i.low <= usd && usd <= i.high);
                if let Some((low, high)) = got.bounds {
                    prop_assert!(low < high && high == usd);
                }
            } else {
                prop_assert!(got.why.is_some());
            }
        }
    }
}
