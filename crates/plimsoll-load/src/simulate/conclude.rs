//! From what was counted to what is said.

use std::collections::BTreeMap;

use plimsoll_sim::{Good, Target};
use plimsoll_stats::{Sketch, mean_interval, quantile, ratio_interval};

use super::result::{
    AttemptCounts, Binding, CacheHits, ClassResult, Distribution, Ends, GoodputWindow, High,
    Missed, PoolResult, ProviderResult, RegionResult, ReplicaSpread, ScalingResult, Simulation,
    ToolResult, Verdict, Window,
};
use super::tally::{BATCHES, E2E, Flow, METRICS, QUEUE, TPOT, TTFT, Tally, distribution};
use super::watched::{ReplicaTally, RunResult};
use super::{SimulateInput, SimulatedPool};
use crate::demand::Span;
use crate::smear::Spread;

/// Picoseconds of an hour.
const HOUR: f64 = 3.6e15;

pub(super) fn conclude(input: &SimulateInput, runs: &[RunResult], from: u64) -> Simulation {
    let mut intervals = BTreeMap::new();
    let mut classes = Vec::new();
    for i in 0..input.classes.len() {
        let mut tally = Tally::new();
        runs.iter().for_each(|run| tally.merge(&run.tallies[i]));
        sure(&mut intervals, input, i, runs);
        classes.push(class_result(input, i, &tally));
    }
    let pools: Vec<PoolResult> =
        (0..input.pools.len()).map(|i| pool_result(input, i, runs, from)).collect();
    let providers: Vec<ProviderResult> =
        (0..input.providers.len()).map(|i| provider_result(input, i, runs)).collect();
    let tools: Vec<ToolResult> =
        (0..input.tools.len()).map(|i| tool_result(input, i, runs)).collect();
    let regions = input.regions.iter().enumerate().map(|(i, name)| {
        let mut region = RegionResult {
            name: name.clone(),
            offered: 0,
            good: 0,
            answered: 0,
            answered_for_others: 0,
        };
        for own in runs.iter().map(|run| &run.regions[i]) {
            region.offered += own.offered;
            region.good += own.good;
            region.answered += own.answered;
            region.answered_for_others += own.for_others;
        }
        region
    });
    let timeline = input.window.map(|_| {
        let windows = runs.first().and_then(|run| run.windows.as_ref());
        windows.map_or_else(Vec::new, |(window, flows)| {
            let each = input.pools.iter().zip(flows);
            each.flat_map(|(pool, flows)| timeline(pool, *window, flows)).collect()
        })
    });
    let binding = binding(&pools, &providers, &tools);
    let elsewhere = middle(runs.iter().filter_map(|run| run.provider_verdict).collect());
    let elsewhere = tools.iter().filter_map(|tool| tool.verdict).chain(elsewhere).max();
    // Whoever is to blame, a fleet that fails more than a hundredth of a class does not carry it.
    let fails = |c: &ClassResult| (c.rejected + c.timed_out + c.lost) * 100 > c.offered;
    let known = runs.iter().any(|run| run.verdicts.is_some());
    let unserved = (known && classes.iter().any(fails)).then_some(Verdict::Overloaded);
    Simulation {
        seed: input.seed.get(),
        verdict: pools.iter().filter_map(|p| p.verdict).chain(elsewhere).chain(unserved).max(),
        complete: runs.iter().all(|run| run.complete),
        seconds: input.seconds,
        warm_up_s: input.warm_up,
        runs: input.runs,
        classes,
        regions: regions.collect(),
        autoscaling: (0..input.pools.len())
            .filter_map(|i| scaling_result(input, i, runs))
            .collect(),
        pools,
        providers,
        tools,
        binding,
        steps: runs.iter().map(|run| run.steps.total).sum(),
        steps_leapt: runs.iter().map(|run| run.steps.leapt).sum(),
        intervals,
        timeline,
        goodput_timeline: goodput_timeline(input, runs),
        notes: Vec::new(),
    }
}

/// The verdict of the middle run, of two the worse.
fn middle(mut verdicts: Vec<Verdict>) -> Option<Verdict> {
    verdicts.sort_unstable();
    verdicts.get(verdicts.len() / 2).copied()
}

/// Whatever keeps most waiting: a pool's own, a provider that turns calls away, a tool that lets them wait.
fn binding(pools: &[PoolResult], providers: &[ProviderResult], tools: &[ToolResult]) -> Binding {
    let named = |resource: &'static str, name: &str, share: f64| Binding {
        resource: (share > 0.0).then_some(resource),
        pool: (share > 0.0).then(|| name.to_owned()),
        share_of_time: share,
        first_at_s: None,
        shares: BTreeMap::new(),
    };
    // Of all attempts: one that only helps out is not what tasks depend on.
    let sent = |attempts: &AttemptCounts| attempts.sent;
    let own: u64 = pools.iter().map(|p| sent(&p.attempts)).sum();
    let all: u64 = own + providers.iter().map(|p| sent(&p.attempts)).sum::<u64>();
    let providers = providers.iter().map(|p| {
        let share = p.attempts.refused as f64 / all.max(1) as f64;
        named("provider", &p.name, share)
    });
    let tools = tools.iter().map(|t| named("tool", &t.name, t.waited));
    let pools = pools.iter().map(|p| p.binding.clone());
    let all = pools.chain(providers).chain(tools);
    all.reduce(|most, other| if other.share_of_time > most.share_of_time { other } else { most })
        .unwrap_or_default()
}

/// Where most of a class goes.
fn main_target(input: &SimulateInput, class: usize) -> (Option<&SimulatedPool>, String) {
    let routes = &input.classes[class].sent.routes;
    let most = routes.iter().reduce(|a, b| if b.share > a.share { b } else { a });
    match most.map(|route| route.to) {
        Some(Target::Pool(pool)) => {
            let pool = &input.pools[pool];
            (Some(pool), pool.name.clone())
        }
        Some(Target::Provider(provider)) => (None, input.providers[provider].0.clone()),
        None => (None, String::new()),
    }
}

/// How sure a class's numbers are: from independent runs, or from batches of the only one.
fn sure(
    intervals: &mut BTreeMap<String, Span>,
    input: &SimulateInput,
    i: usize,
    runs: &[RunResult],
) {
    let own = &input.classes[i];
    let (pool, target) = main_target(input, i);
    let spread = pool.map(|pool| pool.spread.clone()).unwrap_or_default();
    let mut add = |metric: String, interval: Option<plimsoll_stats::Interval>| {
        if let Some(interval) = interval {
            let name = format!("{target}.{}.{metric}", own.class.name);
            intervals.insert(name, Span::from(interval));
        }
    };
    if let [only] = runs {
        let tally = &only.tallies[i];
        for (batches, metric) in tally.batches.iter().zip(["ttft_mean_ms", "e2e_mean_ms"]) {
            let full = batches.iter().filter(|(_, n)| *n > 0);
            let means: Vec<f64> = full.map(|(sum, n)| sum / *n as f64 * 1e3).collect();
            // A batch without requests says that there are too few of them.
            let enough = means.len() == BATCHES;
            add(metric.to_owned(), mean_interval(&means, input.level).filter(|_| enough));
        }
        return;
    }
    let all: Vec<[Option<Distribution>; 5]> = runs
        .iter()
        .map(|run| {
            let tally = &run.tallies[i];
            let [ttft, tpot, e2e, queue] =
                [TTFT, TPOT, E2E, QUEUE].map(|m| distribution(&tally.sketches[m]));
            [ttft, tpot, e2e, queue, tally.gaps(&spread)]
        })
        .collect();
    for (m, metric) in METRICS.into_iter().chain(["itl"]).enumerate() {
        let own: Vec<Distribution> = all.iter().filter_map(|run| run[m]).collect();
        for (what, values) in [
            ("mean", own.iter().map(|d| d.mean).collect::<Vec<f64>>()),
            ("p50", own.iter().map(|d| d.p50).collect()),
            ("p95", own.iter().map(|d| d.p95).collect()),
        ] {
            add(format!("{metric}_{what}_ms"), mean_interval(&values, input.level));
        }
    }
    // Runs differ in how many come, most of all where load comes in bursts.
    let of_all = runs.iter().map(|run| {
        let tally = &run.tallies[i];
        (tally.good as f64, tally.waited_for() as f64)
    });
    if own.sent.good != Good::default() {
        let interval = ratio_interval(&of_all.collect::<Vec<_>>(), input.level);
        add("attainment".to_owned(), interval);
    }
    let good = runs.iter().map(|run| run.tallies[i].good as f64 / input.seconds);
    add("goodput_per_s".to_owned(), mean_interval(&good.collect::<Vec<f64>>(), input.level));
}

fn class_result(input: &SimulateInput, i: usize, tally: &Tally) -> ClassResult {
    let own = &input.classes[i];
    let (pool, target) = main_target(input, i);
    let spread: Spread = pool.map(|pool| pool.spread.clone()).unwrap_or_default();
    let [ttft, tpot, e2e, queue] = &tally.sketches;
    ClassResult {
        name: own.class.name.clone(),
        pool: target,
        offered: tally.offered,
        admitted: tally.offered - tally.rejected,
        completed: tally.completed,
        good: tally.good,
        rejected: tally.rejected,
        too_long: tally.too_long,
        timed_out: tally.timed_out,
        lost: tally.lost,
        left: tally.left,
        left_overdue: tally.left_overdue,
        tool_failed: tally.tool_failed,
        unfinished: tally.offered.saturating_sub(tally.over_in_all()),
        attainment: tally.attainment().filter(|_| own.sent.good != Good::default()),
        completed_per_s: tally.done_in_time as f64 / (input.seconds * f64::from(input.runs)),
        goodput_per_s: tally.good as f64 / (input.seconds * f64::from(input.runs)),
        calls: tally.calls,
        missed: {
            let [ttft, tpot, e2e, gap] = tally.missed;
            Missed { ttft, tpot, e2e, gap }
        },
        extra_attempts: tally.tries.saturating_sub(tally.calls),
        attempts: tally.attempts,
        wasted_prefill_tokens: tally.wasted_read,
        wasted_output_tokens: tally.wasted_output,
        prompt_tokens: tally.prompt,
        cached_tokens: tally.cached,
        output_tokens: tally.output,
        ttft_ms: distribution(ttft),
        itl_ms: tally.gaps(&spread),
        tpot_ms: distribution(tpot),
        e2e_ms: distribution(e2e),
        queue_ms: distribution(queue),
    }
}

fn pool_result(input: &SimulateInput, i: usize, runs: &[RunResult], from: u64) -> PoolResult {
    let pool = &input.pools[i];
    let mut flow = Flow::default();
    runs.iter().for_each(|run| flow.merge(&run.flows[i]));
    let verdicts: Vec<Verdict> =
        runs.iter().filter_map(|run| run.verdicts.as_ref()).map(|all| all[i]).collect();
    let count = |v: Verdict| verdicts.iter().filter(|own| **own == v).count() as u32;
    let (prompt_tokens, cached_tokens) = (flow.prompt, flow.cached);
    let sum = |of: fn(&plimsoll_sim::PoolEnded) -> u32| {
        runs.iter().map(|run| u64::from(of(&run.pools[i]))).sum::<u64>()
    };
    PoolResult {
        name: pool.name.clone(),
        replicas: u64::from(pool.life.replicas),
        devices_per_replica: pool.devices,
        verdicts: [Verdict::Stable, Verdict::Backlogged, Verdict::Overloaded].map(count),
        verdict: middle(verdicts),
        utilisation: flow.utilisation(pool),
        kv_blocks: pool.life.limits.kv.blocks,
        kv_block_tokens: pool.life.limits.kv.block_tokens,
        preemptions: flow.preempted,
        cache_hits: CacheHits {
            prompt_tokens,
            cached_tokens,
            share: (prompt_tokens > 0).then(|| cached_tokens as f64 / prompt_tokens as f64),
        },
        prefill_tokens: flow.prefill,
        output_tokens: flow.tokens,
        attempts: flow.attempts,
        failed: sum(|ended| ended.failed),
        reclaimed: sum(|ended| ended.reclaimed),
        upgraded: sum(|ended| ended.upgraded),
        replica_spread: replica_spread(input, i, runs),
        binding: flow.binding(&pool.name, from),
    }
}

fn replica_spread(input: &SimulateInput, i: usize, runs: &[RunResult]) -> Option<ReplicaSpread> {
    if runs.iter().any(|run| run.replicas_beyond) {
        return None;
    }
    let pool = &input.pools[i];
    let all: Vec<&ReplicaTally> =
        runs.iter().flat_map(|run| &run.replicas).filter(|r| r.pool == i).collect();
    let high = |values: Vec<f64>| High {
        p90: quantile(&values, 0.9).unwrap_or(0.0),
        max: values.iter().copied().fold(0.0, f64::max),
    };
    let span = input.seconds.max(f64::MIN_POSITIVE) * 1e12;
    // One that did nothing while it counted is there all the same, where it always was.
    let fixed = pool.life.scaling.is_none();
    let idle = fixed && all.len() < runs.len() * pool.life.replicas as usize;
    let busy = || all.iter().map(|r| r.busy as f64 / span);
    let blocks = pool.life.limits.kv.blocks.max(1) as f64;
    Some(ReplicaSpread {
        busy: Ends {
            low: if idle { 0.0 } else { busy().reduce(f64::min).unwrap_or(0.0) },
            high: busy().fold(0.0, f64::max),
        },
        kv: high(all.iter().map(|r| r.blocks_max as f64 / blocks).collect()),
        queue: high(all.iter().map(|r| r.waiting_max as f64).collect()),
        ttft_p90_ms: high(
            all.iter().filter_map(|r| r.ttft.quantile(0.9)).map(|s| s * 1e3).collect(),
        ),
    })
}

fn provider_result(input: &SimulateInput, i: usize, runs: &[RunResult]) -> ProviderResult {
    let (name, spec) = &input.providers[i];
    let mut attempts = AttemptCounts::default();
    let (mut prompt, mut cached, mut output, mut busy) = (0, 0, 0, 0u128);
    let (mut ttft, mut retry_after) = (Sketch::new(1e-6), Sketch::new(1e-6));
    for own in runs.iter().map(|run| &run.providers[i]) {
        attempts.merge(&own.attempts);
        prompt += own.prompt;
        cached += own.cached;
        output += own.output;
        busy += own.busy;
        ttft.merge(&own.ttft);
        retry_after.merge(&own.retry_after);
    }
    let minutes = input.seconds * f64::from(input.runs) / 60.0;
    let counted = prompt - if spec.counts_cached { 0 } else { cached };
    let served = attempts.sent - attempts.refused - attempts.nobody_there - attempts.too_long;
    let limits_used = [
        ("rpm", spec.calls, served),
        ("tpm", spec.tokens, counted + output),
        ("itpm", spec.prompt, counted),
        ("otpm", spec.output, output),
    ]
    .into_iter()
    .filter_map(|(limit, most, used)| Some((limit, used as f64 / minutes / most? as f64)));
    let at_once_mean = busy as f64 / 1e12 / (input.seconds * f64::from(input.runs));
    let at_once = spec.at_once.map(|most| ("concurrency", at_once_mean / most as f64));
    ProviderResult {
        name: name.clone(),
        attempts,
        prompt_tokens: prompt,
        cached_tokens: cached,
        output_tokens: output,
        at_once_mean,
        limits_used: limits_used.chain(at_once).collect(),
        ttft_ms: distribution(&ttft),
        retry_after_ms: distribution(&retry_after),
    }
}

fn tool_result(input: &SimulateInput, i: usize, runs: &[RunResult]) -> ToolResult {
    let (name, spec) = &input.tools[i];
    let (mut calls, mut failed, mut waited, mut busy) = (0, 0, 0, 0u128);
    let (mut waits, mut took) = (Sketch::new(1e-6), Sketch::new(1e-6));
    for own in runs.iter().map(|run| &run.tools[i]) {
        calls += own.calls;
        failed += own.failed;
        waited += own.waited;
        busy += own.busy;
        waits.merge(&own.waits);
        took.merge(&own.took);
    }
    let at_once_mean = busy as f64 / 1e12 / (input.seconds * f64::from(input.runs));
    ToolResult {
        name: name.clone(),
        calls,
        failed,
        waited: waited as f64 / calls.max(1) as f64,
        at_once_mean,
        verdict: middle(
            runs.iter().filter_map(|run| run.tool_verdicts.as_ref()).map(|all| all[i]).collect(),
        ),
        utilisation: spec.at_once.map(|most| at_once_mean / most as f64),
        wait_ms: distribution(&waits),
        latency_ms: distribution(&took),
    }
}

fn scaling_result(input: &SimulateInput, i: usize, runs: &[RunResult]) -> Option<ScalingResult> {
    let pool = &input.pools[i];
    pool.life.scaling.as_ref()?;
    let all = || runs.iter().map(|run| &run.pools[i]);
    let count = runs.len().max(1) as f64;
    let hours = |of: fn(&plimsoll_sim::PoolEnded) -> u128| {
        all().map(|ended| of(ended) as f64).sum::<f64>() / HOUR / count
    };
    let times = |of: fn(&plimsoll_sim::PoolEnded) -> &Vec<u64>| {
        let mut sketch = Sketch::new(1e-3);
        all().flat_map(of).for_each(|ps| sketch.record(*ps as f64 / 1e12, 1));
        // In seconds.
        distribution(&sketch).map(|d| d.times(1e-3))
    };
    let sum =
        |of: fn(&plimsoll_sim::PoolEnded) -> u32| all().map(|e| u64::from(of(e))).sum::<u64>();
    let span = input.seconds / 3600.0;
    Some(ScalingResult {
        pool: pool.name.clone(),
        replica_hours: hours(|e| e.replica_ps),
        replicas_mean: hours(|e| e.ready_ps) / span,
        replicas_min: all().map(|e| e.least).min().unwrap_or(0),
        replicas_max: all().map(|e| e.most).max().unwrap_or(0),
        ups: sum(|e| e.ups),
        downs: sum(|e| e.downs),
        flips_per_day: sum(|e| e.flips) as f64 / count / (span / 24.0),
        decisions_at_most: sum(|e| e.at_most),
        decision_lag_s: times(|e| &e.lags),
        time_to_ready_s: times(|e| &e.starts),
        queue_while_starting_max: all().map(|e| e.queue_while_starting).max().unwrap_or(0),
        short_replica_hours: hours(|e| e.short_ps),
        short_max: all().map(|e| e.short_most).max().unwrap_or(0),
        over_replica_hours: hours(|e| e.over_ps),
        over_max: all().map(|e| e.over_most).max().unwrap_or(0),
    })
}

fn goodput_timeline(input: &SimulateInput, runs: &[RunResult]) -> Option<Vec<GoodputWindow>> {
    input.window?;
    let (window, first) = runs.first()?.began.as_ref()?;
    let seconds = *window as f64 / 1e12;
    let per_second = |n: u64| n as f64 / (seconds * runs.len() as f64);
    let of = |i: usize| {
        let all = || runs.iter().filter_map(|run| run.began.as_ref()?.1.get(i));
        let (offered, good) = (all().map(|b| b.offered).sum(), all().map(|b| b.good).sum());
        GoodputWindow {
            from_s: i as f64 * seconds,
            offered_per_s: per_second(offered),
            goodput_per_s: per_second(good),
            good: (offered > 0).then(|| good as f64 / offered as f64),
            attempts_per_s: per_second(all().map(|b| b.attempts).sum()),
        }
    };
    Some((0..first.len()).map(of).collect())
}

fn timeline<'a>(
    pool: &'a SimulatedPool,
    window: u64,
    flows: &'a [Flow],
) -> impl Iterator<Item = Window> + 'a {
    flows.iter().enumerate().map(move |(i, flow)| {
        let seconds = window as f64 / 1e12;
        Window {
            pool: pool.name.clone(),
            from_s: i as f64 * seconds,
            replicas_mean: flow.span as f64 / window as f64,
            utilisation: flow.utilisation(pool),
            prefill_tokens_per_s: flow.prefill as f64 / seconds,
            output_tokens_per_s: flow.tokens as f64 / seconds,
            preemptions: flow.preempted,
            held: flow.binding(&pool.name, 0).resource,
        }
    })
}
