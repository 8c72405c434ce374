//! What classes are promised, and how runs count it.

use plimsoll_sim::{Good, TaskEnd, TaskOutcome};

use crate::arrivals::{SimulatedClass, ps};
use crate::simulate::ClassResult;

/// What a class is held to.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTarget {
    /// The share of its tasks that must be good.
    pub attainment: f64,
    /// Tails of the population that must hold.
    pub tails: Vec<Tail>,
}

/// A percentile that must not be above a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// As the scenario calls it.
    pub key: &'static str,
    /// Of what.
    pub metric: TailMetric,
    /// Which.
    pub percentile: Percentile,
    /// The bound, in milliseconds.
    pub most_ms: f64,
}

/// What a tail is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailMetric {
    /// First tokens.
    Ttft,
    /// Gaps between tokens.
    Itl,
    /// Mean gaps.
    Tpot,
    /// Last tokens.
    E2e,
}

/// Percentiles that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percentile {
    /// The median.
    P50,
    /// 95 in 100.
    P95,
    /// 99 in 100.
    P99,
}

impl Percentile {
    /// Between 0 and 1.
    pub fn share(self) -> f64 {
        match self {
            Self::P50 => 0.5,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
        }
    }
}

impl Tail {
    /// Its value in a result.
    pub fn value(&self, class: &ClassResult) -> Option<f64> {
        let of = match self.metric {
            TailMetric::Ttft => class.ttft_ms,
            TailMetric::Itl => class.itl_ms,
            TailMetric::Tpot => class.tpot_ms,
            TailMetric::E2e => class.e2e_ms,
        }?;
        Some(match self.percentile {
            Percentile::P50 => of.p50,
            Percentile::P95 => of.p95,
            Percentile::P99 => of.p99,
        })
    }
}

/// A promise of one class, as runs count it: of what it is about, at most a share may miss it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Promise {
    /// The class, by its place in the fleet.
    pub(crate) class: usize,
    /// `attainment`, or the tail's key.
    pub(crate) key: &'static str,
    /// The share that may miss it.
    pub(crate) allowed: f64,
    /// What is looked at.
    pub(crate) of: Measure,
    /// Whether the class has thresholds. One without is promised answers: what was seen decides, however few came.
    pub(crate) thresholds: bool,
}

/// What a promise is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Tasks, or turns where turns are judged: whether they are good.
    Good,
    /// First tokens that came later.
    Ttft(u64),
    /// Mean gaps that were longer.
    Tpot(u64),
    /// Last tokens that came later.
    E2e(u64),
    /// Gaps between tokens that were longer.
    Gap(u64),
}

impl Measure {
    /// What a task missed that missed this; none where its thresholds say it.
    pub(crate) fn miss(self) -> Option<Miss> {
        match self {
            Self::Good => None,
            Self::Ttft(_) => Some(Miss::Ttft),
            Self::Tpot(_) => Some(Miss::Tpot),
            Self::E2e(_) => Some(Miss::E2e),
            Self::Gap(_) => Some(Miss::Gap),
        }
    }
}

/// A promise of all is held to this share of misses: no number of tasks shows that none is ever missed.
const ALLOWED_LEAST: f64 = 1e-4;

/// What a class is promised. One without thresholds is promised answers.
pub(crate) fn promises(class: usize, good: &Good, target: &ClassTarget) -> Vec<Promise> {
    let allowed = (1.0 - target.attainment).max(ALLOWED_LEAST);
    let thresholds = *good != Good::default();
    let own = Promise { class, key: "attainment", allowed, of: Measure::Good, thresholds };
    let tails = target.tails.iter().map(|tail| {
        let bound = ps(tail.most_ms / 1e3);
        Promise {
            class,
            key: tail.key,
            allowed: 1.0 - tail.percentile.share(),
            of: match tail.metric {
                TailMetric::Ttft => Measure::Ttft(bound),
                TailMetric::Tpot => Measure::Tpot(bound),
                TailMetric::E2e => Measure::E2e(bound),
                TailMetric::Itl => Measure::Gap(bound),
            },
            thresholds: true,
        }
    });
    std::iter::once(own).chain(tails).collect()
}

impl Promise {
    /// Whether an outcome counts, and whether it missed. Users who left before anything was due say nothing.
    pub(crate) fn missed(&self, outcome: &TaskOutcome) -> Option<bool> {
        let over = |value: Option<u64>, bound: u64| value.map(|value| value > bound);
        match self.of {
            Measure::Good => {
                let left = outcome.end == TaskEnd::Left && !outcome.overdue;
                (!left).then_some(!outcome.good)
            }
            Measure::Ttft(bound) => over(outcome.ttft, bound),
            Measure::Tpot(bound) => over(outcome.tpot.filter(|_| completed(outcome)), bound),
            Measure::E2e(bound) => {
                over(Some(outcome.ended - outcome.began).filter(|_| completed(outcome)), bound)
            }
            Measure::Gap(_) => None,
        }
    }
}

fn completed(outcome: &TaskOutcome) -> bool {
    outcome.end == TaskEnd::Completed
}

/// What a task missed first, in the order in which its user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Miss {
    /// It failed.
    Errors,
    /// Its first token.
    Ttft,
    /// Its mean gap between tokens.
    Tpot,
    /// Its last token.
    E2e,
    /// Its largest gap between tokens.
    Gap,
}

impl Miss {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::Errors, Self::Ttft, Self::Tpot, Self::E2e, Self::Gap];

    /// As documents say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Errors => "errors",
            Self::Ttft => "ttft",
            Self::Tpot => "tpot",
            Self::E2e => "e2e",
            Self::Gap => "gap",
        }
    }

    /// Of a task that is not good.
    pub(crate) fn first(outcome: &TaskOutcome, good: &Good) -> Self {
        let over = |value: Option<u64>, bound: Option<u64>| {
            value.zip(bound).is_some_and(|(value, bound)| value > bound)
        };
        if !completed(outcome) {
            Self::Errors
        } else if over(outcome.ttft, good.ttft) {
            Self::Ttft
        } else if over(outcome.tpot, good.tpot) {
            Self::Tpot
        } else if over(Some(outcome.ended - outcome.began), good.e2e) {
            Self::E2e
        } else {
            Self::Gap
        }
    }
}

/// Whether a class's turns are counted one by one.
pub(crate) fn counts_turns(class: &SimulatedClass) -> bool {
    class.sent.judged == plimsoll_sim::Judged::EachTurn
}
