//! Measured runs of an engine, simulated from their setup and their requests alone.

use std::sync::Arc;

use plimsoll_perf::{Rates, StepModel, Term};
use plimsoll_sim::{
    Arrival, Budget, Content, End, Kv, Limits, Loop, Outcome, Pace, Queue, Replica, Segment,
    Wanted, Watch, drive,
};
use plimsoll_stats::{quantile, share_interval};
use serde::Serialize;

use crate::measured::{EngineRun, RunRequest, RunSetup};
use crate::pool::PoolSteps;
use plimsoll_load::{Gaps, Span, Spread};

/// One run, as it was and as it comes out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunOutcome {
    /// Its file.
    pub file: String,
    /// Its name.
    pub run: String,
    /// Whether on average at least one request waited over the last quarter of the arrivals.
    pub beyond_knee: bool,
    /// What is compared.
    pub metrics: Vec<MetricOutcome>,
    /// Shares of good requests, kind by kind, where the run says what is good.
    pub good: Vec<GoodOutcome>,
    /// Why it was not simulated.
    pub skipped: Option<String>,
}

/// One number of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricOutcome {
    /// Which.
    pub name: &'static str,
    /// Such as `tokens/s` or `ms`.
    pub unit: &'static str,
    /// As measured.
    pub measured: f64,
    /// As simulated.
    pub predicted: f64,
    /// Simulated against measured; none where something came out of nothing.
    pub error_pct: Option<f64>,
    /// Whether it counts in the summary.
    pub scored: bool,
}

/// The share of good requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GoodOutcome {
    /// The kind, or the run.
    pub kind: String,
    /// As measured, and within what it lies.
    pub measured: f64,
    /// The same.
    pub interval: Span,
    /// As simulated.
    pub predicted: f64,
    /// Whether that is within the interval.
    pub inside: bool,
}

/// All runs together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EngineSummary {
    /// Numbers that count: throughput, mean ITL, ITL p50 and p95, TTFT p50 and p95.
    pub n: usize,
    /// Median of their absolute errors.
    pub median_abs_pct: Option<f64>,
    /// 90th percentile of their absolute errors.
    pub p90_abs_pct: Option<f64>,
}

/// Requests of a run in seconds: what is compared.
struct Seen {
    /// Generated tokens per second, from the first arrival to the last token.
    throughput: f64,
    ttft: Vec<f64>,
    e2e: Vec<f64>,
    gaps_mean: f64,
    /// Gaps at the 50th, 95th and 99th percentile; none where the log does not hold them.
    gaps: Option<[f64; 3]>,
    /// Prompt tokens that the prefix cache held.
    cached: u64,
    preemptions: u64,
    /// Of each request, by its place in the run: seconds to its first token, and between tokens on average.
    each: Vec<(f64, f64)>,
}

/// Seconds between tokens on average.
fn tpot(ttft: f64, e2e: f64, output: u64) -> f64 {
    (e2e - ttft) / output.saturating_sub(1).max(1) as f64
}

/// How sure a measured share is.
const LEVEL: f64 = 0.95;

/// Shares of good requests, kind by kind.
fn good(run: &EngineRun, said: &Seen) -> Vec<GoodOutcome> {
    let Some((ttft_most, tpot_most)) = run.promise else { return Vec::new() };
    let is_good = |(ttft, tpot): (f64, f64)| ttft <= ttft_most && tpot <= tpot_most;
    let kind_of = |request: &RunRequest| request.kind.clone().unwrap_or_else(|| run.run.clone());
    let mut kinds: Vec<String> = run.requests.iter().map(kind_of).collect();
    kinds.sort();
    kinds.dedup();
    let of = |kind: String| {
        let all = run.requests.iter().zip(&said.each);
        let own: Vec<(bool, bool)> = all
            .filter(|(request, _)| kind_of(request) == kind)
            .map(|(own, said)| {
                let seen = (own.ttft, tpot(own.ttft, own.e2e, own.output));
                (is_good(seen), is_good(*said))
            })
            .collect();
        let (seen, told) = (own.iter().filter(|o| o.0).count(), own.iter().filter(|o| o.1).count());
        let share = |n: usize| n as f64 / own.len() as f64;
        let between = share_interval(seen, own.len(), LEVEL)?;
        let interval = Span { low: between.low, high: between.high, level: LEVEL, n: own.len() };
        let predicted = share(told);
        let inside = (between.low..=between.high).contains(&predicted);
        Some(GoodOutcome { kind, measured: share(seen), interval, predicted, inside })
    };
    kinds.into_iter().filter_map(of).collect()
}

/// The percentiles of gaps that are compared.
const GAPS_AT: [f64; 3] = [0.5, 0.95, 0.99];

/// Simulates a run; percentiles of gaps are spread out as a calibration saw them.
pub fn simulate_run(
    run: &EngineRun,
    pool: &PoolSteps,
    rates: &Rates,
    spread: &Spread,
) -> RunOutcome {
    let nothing = |why: String| RunOutcome {
        file: run.origin.file.clone(),
        run: run.run.clone(),
        beyond_knee: false,
        metrics: Vec::new(),
        good: Vec::new(),
        skipped: Some(why),
    };
    if run.setup.engine != "vllm" {
        return nothing(format!(
            "only vLLM's decisions are simulated from logs, not {}'s",
            run.setup.engine
        ));
    }
    let seen = measured(run);
    match simulated(run, pool, rates, spread) {
        Ok(said) => RunOutcome {
            file: run.origin.file.clone(),
            run: run.run.clone(),
            beyond_knee: beyond_knee(run),
            metrics: compared(&seen, &said),
            good: good(run, &said),
            skipped: None,
        },
        Err(error) => nothing(error),
    }
}

/// The scored numbers of all runs.
pub fn engine_summary(runs: &[RunOutcome]) -> EngineSummary {
    let scored = runs.iter().flat_map(|r| &r.metrics).filter(|m| m.scored);
    let errors: Vec<f64> = scored.filter_map(|m| m.error_pct).map(f64::abs).collect();
    EngineSummary {
        n: errors.len(),
        median_abs_pct: quantile(&errors, 0.5),
        p90_abs_pct: quantile(&errors, 0.9),
    }
}

fn measured(run: &EngineRun) -> Seen {
    let first = run.requests.iter().map(|r| r.at).fold(f64::INFINITY, f64::min);
    let last = run.requests.iter().map(|r| r.at + r.e2e).fold(0.0, f64::max);
    let tokens: u64 = run.requests.iter().map(|r| r.output).sum();
    let (decode, gaps): (f64, u64) = run
        .requests
        .iter()
        .fold((0.0, 0), |(s, n), r| (s + r.e2e - r.ttft, n + r.output.saturating_sub(1)));
    let all: Vec<f64> = run.requests.iter().flat_map(|r| r.itl.iter().copied()).collect();
    Seen {
        throughput: tokens as f64 / (last - first).max(f64::MIN_POSITIVE),
        ttft: run.requests.iter().map(|r| r.ttft).collect(),
        e2e: run.requests.iter().map(|r| r.e2e).collect(),
        gaps_mean: decode / gaps.max(1) as f64,
        gaps: match all.is_empty() {
            true => run.gaps,
            false => Some(GAPS_AT.map(|p| quantile(&all, p).unwrap_or(0.0))),
        },
        cached: run.requests.iter().map(|r| r.cached).sum(),
        preemptions: run.steps.iter().map(|s| s.preempted).sum(),
        each: Vec::new(),
    }
}

/// The limits of an engine as its log states them.
pub(crate) fn run_limits(setup: &RunSetup, asynchronous: bool) -> Limits {
    let block_tokens = setup.block_size.max(1);
    let vllm = setup.engine == "vllm";
    // vLLM keeps one block for nobody (`v1/core/block_pool.py`).
    let blocks = (setup.kv_tokens / block_tokens).saturating_sub(u64::from(vllm));
    let max_num_seqs = usize::try_from(setup.max_num_seqs).unwrap_or(usize::MAX);
    let kv = Kv::new(blocks, block_tokens);
    Limits {
        prefix_cache: setup.prefix_caching,
        asynchronous,
        whole_prompts: vllm && asks_for_whole_prompts(&setup.version),
        ..Limits::new(max_num_seqs, setup.max_num_batched_tokens, kv)
    }
}

/// Whether this version of vLLM lets a prompt in only where all of it finds room: since 0.19 (`scheduler_reserve_full_isl`).
pub fn asks_for_whole_prompts(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= (0, 19),
        // Of an unknown version the newest is meant.
        _ => true,
    }
}

/// Outcomes and gaps as they come.
#[derive(Default)]
struct Told {
    outcomes: Vec<Outcome>,
    gaps: Gaps,
}

impl Watch for Told {
    fn gap(&mut self, _class: u16, ps: u64, pace: Pace, count: u64) {
        self.gaps.add(ps, pace, count);
    }

    fn over(&mut self, outcome: &Outcome) {
        self.outcomes.push(*outcome);
    }
}

/// A measured run as it can be served again.
pub struct KnownRun {
    /// What its engine was started with.
    pub limits: Limits,
    /// Its step times.
    pub model: StepModel,
    /// How its requests came.
    pub clients: Loop,
    /// Its requests, in the order they came.
    pub arrivals: Vec<Arrival>,
    /// What a request takes before the engine hears of it, in seconds.
    pub way: f64,
}

/// Places of requests, in the order they were sent.
fn in_order_sent(run: &EngineRun) -> Vec<usize> {
    let mut order: Vec<usize> = (0..run.requests.len()).collect();
    order.sort_by(|a, b| run.requests[*a].at.total_cmp(&run.requests[*b].at));
    order
}

/// A run from its setup and its requests alone.
pub fn known_run(run: &EngineRun, pool: &PoolSteps, rates: &Rates) -> KnownRun {
    let setup = &run.setup;
    let order = in_order_sent(run);
    let way = rates.get(Term::PathSeconds);
    let arrivals = order.iter().map(|i| {
        let r = &run.requests[*i];
        let mut wanted = Wanted::new(r.prompt.max(1), r.output.max(1));
        wanted.content = r.prefix.map(|prefix| {
            let shared = vec![Segment { id: prefix.group, tokens: prefix.tokens }];
            Arc::new(Content { shared, own: None })
        });
        let (at, sent) = (((r.at + way) * 1e12) as u64, (r.at * 1e12) as u64);
        Arrival { at, sent, wanted, gives_up: None }
    });
    let mut work = pool.work.clone();
    work.graph_tokens = work.graph_tokens.map(|_| (2.0 * setup.max_num_seqs as f64).min(512.0));
    KnownRun {
        limits: run_limits(setup, pool.asynchronous()),
        model: StepModel::new(&work, rates, setup.max_num_batched_tokens),
        clients: match run.clients {
            Some(clients) => Loop::Closed(usize::try_from(clients).unwrap_or(usize::MAX)),
            None => Loop::Open,
        },
        arrivals: arrivals.collect(),
        way,
    }
}

fn simulated(
    run: &EngineRun,
    pool: &PoolSteps,
    rates: &Rates,
    spread: &Spread,
) -> Result<Seen, String> {
    let KnownRun { limits, model, clients, arrivals, way } = known_run(run, pool, rates);
    let order = in_order_sent(run);
    let mut told = Told::default();
    let mut replica = Replica::new(limits, &model);
    let (queue, budget) = (Queue::default(), Budget::NONE);
    drive(&mut replica, clients, arrivals, queue, budget, &mut told, &mut |_| true);
    let Told { outcomes, gaps } = told;
    if let Some(refused) = outcomes.iter().find(|o| o.end != End::Completed) {
        return Err(format!(
            "its request {} of {} prompt tokens does not fit its KV cache of {} tokens",
            refused.serial, refused.prompt, run.setup.kv_tokens
        ));
    }
    let seconds = |ps: u64| ps as f64 / 1e12;
    // Clients of a closed loop are not held up by the way in: they wait for answers all the same.
    let way = if clients == Loop::Open { 0.0 } else { way };
    let mut each = vec![(f64::INFINITY, f64::INFINITY); run.requests.len()];
    for o in &outcomes {
        let (Some(first), Ok(serial)) = (o.first, usize::try_from(o.serial)) else { continue };
        let (ttft, e2e) = (way + seconds(first - o.arrived), way + seconds(o.done - o.arrived));
        if let Some(at) = order.get(serial) {
            each[*at] = (ttft, tpot(ttft, e2e, o.output));
        }
    }
    let first = outcomes.iter().map(|o| o.arrived).min().unwrap_or(0);
    let last = outcomes.iter().map(|o| o.done).max().unwrap_or(0);
    let tokens: u64 = outcomes.iter().map(|o| o.output).sum();
    Ok(Seen {
        throughput: tokens as f64 / seconds(last - first).max(f64::MIN_POSITIVE),
        ttft: outcomes.iter().filter_map(|o| Some(way + seconds(o.first? - o.arrived))).collect(),
        e2e: outcomes.iter().map(|o| way + seconds(o.done - o.arrived)).collect(),
        gaps_mean: gaps.mean().unwrap_or(0.0),
        gaps: gaps.quantiles(spread, GAPS_AT),
        cached: outcomes.iter().map(|o| o.cached).sum(),
        preemptions: outcomes.iter().map(|o| u64::from(o.preemptions)).sum(),
        each,
    })
}

fn compared(seen: &Seen, said: &Seen) -> Vec<MetricOutcome> {
    let mut metrics = Vec::new();
    let mut add = |name, unit, measured: Option<f64>, predicted: Option<f64>, scored| {
        if let (Some(measured), Some(predicted)) = (measured, predicted) {
            let error_pct = match measured {
                0.0 => (predicted == 0.0).then_some(0.0),
                measured => Some((predicted / measured - 1.0) * 100.0),
            };
            metrics.push(MetricOutcome { name, unit, measured, predicted, error_pct, scored });
        }
    };
    add("throughput", "tokens/s", Some(seen.throughput), Some(said.throughput), true);
    add("itl_mean", "ms", Some(seen.gaps_mean * 1e3), Some(said.gaps_mean * 1e3), true);
    let at = |values: &[f64], p: f64| quantile(values, p).map(|s| s * 1e3);
    for (i, (name, scored)) in
        [("itl_p50", true), ("itl_p95", true), ("itl_p99", false)].into_iter().enumerate()
    {
        let of = |gaps: &Option<[f64; 3]>| gaps.map(|gaps| gaps[i] * 1e3);
        add(name, "ms", of(&seen.gaps), of(&said.gaps), scored);
    }
    for (name, p, scored) in
        [("ttft_p50", 0.5, true), ("ttft_p95", 0.95, true), ("ttft_p99", 0.99, false)]
    {
        add(name, "ms", at(&seen.ttft, p), at(&said.ttft, p), scored);
    }
    for (name, p) in [("e2e_p50", 0.5), ("e2e_p95", 0.95)] {
        add(name, "ms", at(&seen.e2e, p), at(&said.e2e, p), false);
    }
    for (name, unit, measured, predicted) in [
        ("cached_tokens", "tokens", seen.cached, said.cached),
        ("preemptions", "preemptions", seen.preemptions, said.preemptions),
    ] {
        add(name, unit, Some(measured as f64), Some(predicted as f64), false);
    }
    metrics
}

/// Whether on average at least one request waits over the last quarter of the arrivals.
fn beyond_knee(run: &EngineRun) -> bool {
    let mut at: Vec<f64> = run.requests.iter().map(|r| r.at).collect();
    at.sort_by(f64::total_cmp);
    let (Some(from), Some(until)) = (at.get(at.len() * 3 / 4), at.last()) else { return false };
    let late: Vec<f64> = run
        .steps
        .iter()
        .filter(|s| (*from..=*until).contains(&s.at))
        .map(|s| s.waiting as f64)
        .collect();
    !late.is_empty() && late.iter().sum::<f64>() / late.len() as f64 >= 1.0
}
