//! What is counted while an engine runs.

use std::collections::BTreeMap;

use plimsoll_perf::Traffic;
use plimsoll_sim::{Good, Held, Pace, Stretch, TaskEnd, TaskOutcome};
use plimsoll_stats::Sketch;

use super::SimulatedPool;
use super::result::{AttemptCounts, Binding, Distribution, Utilisation};
use crate::arrivals::ps;
use crate::smear::{Gaps, Spread};

pub(super) const RESOURCES: [&str; 3] = ["kv", "sequences", "token_budget"];

pub(super) fn resource(held: Held) -> usize {
    match held {
        Held::Kv => 0,
        Held::Sequences => 1,
        Held::Budget => 2,
    }
}

/// What is counted while time passes.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub(super) span: u128,
    pub(super) busy: u128,
    /// Picoseconds times blocks, sequences, requests.
    pub(super) blocks: u128,
    pub(super) running: u128,
    pub(super) waiting: u128,
    pub(super) blocks_max: u64,
    pub(super) running_max: u64,
    pub(super) waiting_max: u64,
    pub(super) held: [u128; 3],
    pub(super) first_held: [Option<u64>; 3],
    pub(super) steps: f64,
    pub(super) prefill: u64,
    pub(super) decodes: u64,
    pub(super) tokens: u64,
    /// What one device read and computed.
    pub(super) traffic: Traffic,
    pub(super) preempted: u64,
    pub(super) attempts: AttemptCounts,
    /// Attempts that were given up by clients of classes whose users leave by themselves.
    pub(super) leaving: u64,
    /// Prompt tokens of what ran, and cached ones.
    pub(super) prompt: u64,
    pub(super) cached: u64,
}

impl Flow {
    /// Counts the part of a stretch that lies between two instants.
    pub(super) fn add(&mut self, s: &Stretch, traffic: Traffic, from: u64, until: u64) {
        let end = s.from.saturating_add(s.took);
        let (begin, end) = (s.from.max(from), end.min(until));
        if begin >= end {
            return;
        }
        let part = end - begin;
        let share = part as f64 / s.took.max(1) as f64;
        let whole = |n: u64| if part == s.took { n } else { (n as f64 * share).round() as u64 };
        self.busy += u128::from(part);
        self.blocks += u128::from(part) * u128::from(s.gauges.blocks);
        self.running += u128::from(part) * u128::from(s.gauges.running);
        self.waiting += u128::from(part) * u128::from(s.gauges.waiting);
        self.blocks_max = self.blocks_max.max(s.gauges.blocks);
        self.running_max = self.running_max.max(s.gauges.running);
        self.waiting_max = self.waiting_max.max(s.gauges.waiting);
        if let Some(held) = s.held {
            let i = resource(held);
            self.held[i] += u128::from(part);
            self.first_held[i].get_or_insert(begin);
        }
        self.steps += s.steps as f64 * share;
        self.prefill += whole(s.prefill);
        self.decodes += whole(s.decodes);
        self.tokens += whole(s.tokens);
        self.traffic.bytes += traffic.bytes * share;
        self.traffic.flops += traffic.flops * share;
        // A preemption is an instant.
        if s.from >= from {
            self.preempted += s.preempted;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.span += other.span;
        self.busy += other.busy;
        self.blocks += other.blocks;
        self.running += other.running;
        self.waiting += other.waiting;
        self.blocks_max = self.blocks_max.max(other.blocks_max);
        self.running_max = self.running_max.max(other.running_max);
        self.waiting_max = self.waiting_max.max(other.waiting_max);
        for i in 0..3 {
            self.held[i] += other.held[i];
            // The first run's that has any.
            self.first_held[i] = self.first_held[i].or(other.first_held[i]);
        }
        self.steps += other.steps;
        self.prefill += other.prefill;
        self.decodes += other.decodes;
        self.tokens += other.tokens;
        self.traffic.bytes += other.traffic.bytes;
        self.traffic.flops += other.traffic.flops;
        self.preempted += other.preempted;
        self.attempts.merge(&other.attempts);
        self.leaving += other.leaving;
        self.prompt += other.prompt;
        self.cached += other.cached;
    }

    pub(super) fn utilisation(&self, pool: &SimulatedPool) -> Utilisation {
        let span = self.span.max(1) as f64;
        let seconds = span / 1e12;
        let blocks = pool.life.limits.kv.blocks.max(1) as f64;
        Utilisation {
            // A step that a failure cut short is counted whole.
            busy: (self.busy as f64 / span).min(1.0),
            kv_mean: self.blocks as f64 / span / blocks,
            kv_max: self.blocks_max as f64 / blocks,
            sequences_mean: self.running as f64 / span,
            sequences_max: self.running_max,
            waiting_mean: self.waiting as f64 / span,
            waiting_max: self.waiting_max,
            bandwidth: self.traffic.bytes / (pool.bandwidth * seconds),
            compute: self.traffic.flops / (pool.peak * seconds),
            path: pool.life.path.utilisation(self.tokens as f64 / seconds),
        }
    }

    pub(super) fn binding(&self, pool: &str, warm_up: u64) -> Binding {
        let span = self.span.max(1) as f64;
        let shares: BTreeMap<&'static str, f64> =
            RESOURCES.iter().zip(self.held).map(|(r, held)| (*r, held as f64 / span)).collect();
        let Some(most) = (0..3).rev().max_by_key(|i| self.held[*i]).filter(|i| self.held[*i] > 0)
        else {
            return Binding { shares, ..Binding::default() };
        };
        Binding {
            resource: Some(RESOURCES[most]),
            pool: Some(pool.to_owned()),
            share_of_time: self.held[most] as f64 / span,
            first_at_s: self.first_held[most].map(|at| at.saturating_sub(warm_up) as f64 / 1e12),
            shares,
        }
    }
}

/// What is counted of a class.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) offered: u64,
    pub(super) completed: u64,
    pub(super) good: u64,
    /// Answered tasks that missed each threshold: first token, mean gap, last token, largest gap.
    pub(super) missed: [u64; 4],
    /// Tasks that were completed while it counted, whenever they came.
    pub(super) done_in_time: u64,
    pub(super) rejected: u64,
    pub(super) too_long: u64,
    pub(super) timed_out: u64,
    pub(super) lost: u64,
    pub(super) left: u64,
    /// Those of them who had waited too long by then.
    pub(super) left_overdue: u64,
    pub(super) tool_failed: u64,
    pub(super) attempts: AttemptCounts,
    /// Calls of models, and attempts of them, of tasks that are over.
    pub(super) calls: u64,
    pub(super) tries: u64,
    /// Tokens that were read and generated for attempts that came to nothing.
    pub(super) wasted_read: u64,
    pub(super) wasted_output: u64,
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
    pub(super) sketches: [Sketch; 4],
    /// Gaps between tokens, by what decided them.
    pub(super) gaps: [Sketch; 4],
    /// Times to the first token and to the last, in batches by arrival: their sum and number.
    pub(super) batches: [[(f64, u64); BATCHES]; 2],
}

/// Batches of a run, whose means are nearly independent.
pub(super) const BATCHES: usize = 16;

pub(super) const METRICS: [&str; 4] = ["ttft", "tpot", "e2e", "queue"];
pub(super) const TTFT: usize = 0;
pub(super) const TPOT: usize = 1;
pub(super) const E2E: usize = 2;
pub(super) const QUEUE: usize = 3;

impl Tally {
    pub(super) fn new() -> Self {
        // A microsecond is all that anybody asks for.
        let sketches = std::array::from_fn(|_| Sketch::new(1e-6));
        let gaps = sketches.clone();
        Self {
            offered: 0,
            completed: 0,
            good: 0,
            missed: [0; 4],
            done_in_time: 0,
            rejected: 0,
            too_long: 0,
            timed_out: 0,
            lost: 0,
            left: 0,
            left_overdue: 0,
            tool_failed: 0,
            attempts: AttemptCounts::default(),
            calls: 0,
            tries: 0,
            wasted_read: 0,
            wasted_output: 0,
            prompt: 0,
            cached: 0,
            output: 0,
            sketches,
            gaps,
            batches: [[(0.0, 0); BATCHES]; 2],
        }
    }

    /// Tasks that came and whose users did not leave before anything was due.
    pub(super) fn waited_for(&self) -> u64 {
        self.offered - (self.left - self.left_overdue)
    }

    /// Good tasks among these.
    pub(super) fn attainment(&self) -> Option<f64> {
        let waited = self.waited_for();
        (waited > 0).then(|| self.good as f64 / waited as f64)
    }

    /// Tasks that are over, in one way or another.
    pub(super) fn over_in_all(&self) -> u64 {
        let refused = self.rejected + self.timed_out;
        self.completed + refused + self.lost + self.left + self.tool_failed
    }

    /// A task is over that began in this batch.
    pub(super) fn over(&mut self, o: &TaskOutcome, batch: usize, good: &Good) {
        let seconds = |ps: u64| ps as f64 / 1e12;
        match o.end {
            TaskEnd::Completed => self.completed += 1,
            TaskEnd::Refused => self.rejected += 1,
            TaskEnd::TooLong => {
                self.rejected += 1;
                self.too_long += 1;
            }
            TaskEnd::TimedOut | TaskEnd::TooLate => self.timed_out += 1,
            TaskEnd::Lost => self.lost += 1,
            TaskEnd::Left => {
                self.left += 1;
                self.left_overdue += u64::from(o.overdue);
            }
            TaskEnd::ToolFailed => self.tool_failed += 1,
        }
        self.calls += u64::from(o.calls);
        self.tries += u64::from(o.attempts);
        self.prompt += o.prompt;
        self.cached += o.cached;
        self.output += o.output;
        self.good += u64::from(o.good);
        if o.end == TaskEnd::Completed {
            let values = [o.ttft, o.tpot, Some(o.ended - o.began), Some(o.largest_gap)];
            let bounds = [good.ttft, good.tpot, good.e2e, good.gap];
            for (missed, (value, bound)) in
                self.missed.iter_mut().zip(values.into_iter().zip(bounds))
            {
                *missed += u64::from(value.zip(bound).is_some_and(|(value, bound)| value > bound));
            }
        }
        let Some(ttft) = o.ttft.map(seconds) else { return };
        self.sketches[TTFT].record(ttft, 1);
        self.sketches[QUEUE].record(seconds(o.waited), 1);
        if o.end != TaskEnd::Completed {
            return;
        }
        let e2e = seconds(o.ended - o.began);
        self.sketches[E2E].record(e2e, 1);
        if let Some(tpot) = o.tpot {
            self.sketches[TPOT].record(seconds(tpot), 1);
        }
        for (batches, seconds) in self.batches.iter_mut().zip([ttft, e2e]) {
            let (sum, n) = &mut batches[batch.min(BATCHES - 1)];
            (*sum, *n) = (*sum + seconds, *n + 1);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.completed += other.completed;
        self.good += other.good;
        self.done_in_time += other.done_in_time;
        for (own, other) in self.missed.iter_mut().zip(other.missed) {
            *own += other;
        }
        self.rejected += other.rejected;
        self.too_long += other.too_long;
        self.timed_out += other.timed_out;
        self.lost += other.lost;
        self.left += other.left;
        self.left_overdue += other.left_overdue;
        self.tool_failed += other.tool_failed;
        self.attempts.merge(&other.attempts);
        self.calls += other.calls;
        self.tries += other.tries;
        self.wasted_read += other.wasted_read;
        self.wasted_output += other.wasted_output;
        self.prompt += other.prompt;
        self.cached += other.cached;
        self.output += other.output;
        let own = self.sketches.iter_mut().chain(&mut self.gaps);
        for (own, other) in own.zip(other.sketches.iter().chain(&other.gaps)) {
            own.merge(other);
        }
    }

    /// Gaps between tokens, spread out as a calibration saw them; in seconds.
    pub(super) fn gaps(&self, spread: &Spread) -> Option<Distribution> {
        let mut gaps = Gaps::default();
        for (pace, sketch) in Pace::ALL.into_iter().zip(&self.gaps) {
            sketch.counts().for_each(|(seconds, n)| gaps.add(ps(seconds), pace, n));
        }
        let (sum, n) = self.gaps.iter().fold((0.0, 0), |(sum, n), sketch| {
            (sum + sketch.mean().unwrap_or(0.0) * sketch.count() as f64, n + sketch.count())
        });
        let [p50, p90, p95, p99] = gaps.quantiles(spread, [0.5, 0.9, 0.95, 0.99])?;
        Some(Distribution { mean: sum / n as f64, p50, p90, p95, p99 }.times(1e3))
    }
}

impl Distribution {
    pub(super) fn times(self, factor: f64) -> Self {
        let Self { mean, p50, p90, p95, p99 } = self;
        let [mean, p50, p90, p95, p99] = [mean, p50, p90, p95, p99].map(|x| x * factor);
        Self { mean, p50, p90, p95, p99 }
    }
}

pub(super) fn distribution(sketch: &Sketch) -> Option<Distribution> {
    let at = |p: f64| sketch.quantile(p);
    let (p50, p90, p95, p99) = (at(0.5)?, at(0.9)?, at(0.95)?, at(0.99)?);
    Some(Distribution { mean: sketch.mean()?, p50, p90, p95, p99 }.times(1e3))
}
