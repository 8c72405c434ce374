//! One replica of each pool against its share of the demand, drawn several times.

mod result;
mod tally;

use std::collections::BTreeMap;

use plimsoll_perf::{Batch, RequestPath, StepModel, Traffic, Work};
use plimsoll_sim::{
    Arrival, Budget, Ended, Limits, Loop, Outcome, Pace, PlainReplica, Queue, Replica, Sglang,
    Steps, Stretch, TensorRt, Watch, drive,
};
use plimsoll_stats::{Seed, mean_interval};

pub use self::result::{
    Binding, CacheHits, ClassResult, Distribution, Ends, PoolResult, Simulation, Utilisation,
    Verdict, Window,
};
use self::tally::{BATCHES, E2E, Flow, METRICS, QUEUE, TPOT, TTFT, Tally, distribution};
use crate::arrivals::{Path, Requests, SimulatedClass, Thresholds, ps};
use crate::demand::{Span, StudyError, in_order};
use crate::smear::Spread;

/// Requests of a class that one run draws at most: minutes of computing.
const REQUESTS_MOST: f64 = 2e8;

/// Which engine's decisions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    /// vLLM's.
    Vllm,
    /// SGLang's.
    Sglang,
    /// TensorRT-LLM's.
    TensorRt,
}

/// A pool, of which one replica is simulated.
#[derive(Clone, Debug)]
pub struct SimulatedPool {
    /// Its name.
    pub name: String,
    /// Replicas of today: the simulated one gets its share of the demand.
    pub replicas: u64,
    /// Its classes.
    pub classes: Vec<SimulatedClass>,
    /// What its engine was started with.
    pub limits: Limits,
    /// Whose decisions it makes.
    pub decides: Decides,
    /// Its step times.
    pub model: StepModel,
    /// What its steps make a device do.
    pub work: Work,
    /// Bytes a second that a device reads, and operations a second, on paper.
    pub bandwidth: f64,
    /// The same of operations.
    pub peak: f64,
    /// The servers in front of the engine.
    pub path: RequestPath,
    /// Bounds of its waiting line.
    pub queue: Queue,
    /// How gaps between tokens vary around what the steps explain.
    pub spread: Spread,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimulateInput {
    /// One replica of each.
    pub pools: Vec<SimulatedPool>,
    /// The hour of the horizon whose rates hold.
    pub hour: usize,
    /// Whether events count.
    pub events: bool,
    /// How long requests come, after the warm-up.
    pub seconds: f64,
    /// How long requests come before they count.
    pub warm_up: f64,
    /// Independent runs.
    pub runs: u32,
    /// The level of intervals.
    pub level: f64,
    /// Makes it repeatable.
    pub seed: Seed,
    /// Threads to use; the result does not depend on it.
    pub threads: usize,
    /// Steps and stretches of a run at most.
    pub moves: u64,
    /// Windows of the timeline in seconds, where one is wanted.
    pub window: Option<f64>,
}

/// What somebody wants to see of a run beside its numbers, as it happens.
pub trait Record {
    /// A request is over, in the run with this number.
    fn outcome(&mut self, _pool: &str, _run: u32, _outcome: &Outcome) {}
    /// Steps were taken in the first run.
    fn stretch(&mut self, _pool: &str, _stretch: &Stretch) {}
}

/// One run of one pool, as it is watched.
struct Run<'a, R> {
    pool: &'a SimulatedPool,
    run: u32,
    from: u64,
    until: u64,
    /// Requests that come before this count, and so does what happens before it.
    counted: u64,
    /// The servers in front.
    path: Path,
    steps: u64,
    tallies: Vec<Tally>,
    flow: Flow,
    /// The second and the last quarter of the time in which requests come.
    quarters: [Flow; 2],
    windows: Option<(u64, Vec<Flow>)>,
    /// Whether the steps whose gaps are told now count.
    counts: bool,
    record: Option<&'a mut R>,
}

impl<'a, R: Record> Run<'a, R> {
    fn new(
        pool: &'a SimulatedPool,
        run: u32,
        (from, until, counted): (u64, u64, u64),
        path: Path,
        window: Option<u64>,
        record: Option<&'a mut R>,
    ) -> Self {
        let windows = window.map(|window| {
            let count = (until - from).div_ceil(window.max(1)).min(100_000);
            (window.max(1), vec![Flow::default(); count as usize])
        });
        Self {
            pool,
            run,
            from,
            until,
            counted,
            path,
            steps: 0,
            tallies: pool.classes.iter().map(|_| Tally::new()).collect(),
            flow: Flow::default(),
            quarters: Default::default(),
            windows,
            counts: false,
            record,
        }
    }

    /// The second and the last quarter.
    fn quarter(&self, which: u64) -> (u64, u64) {
        let quarter = (self.until - self.from) / 4;
        (self.from + which * quarter, self.from + (which + 1) * quarter)
    }
}

impl<R: Record> Watch for Run<'_, R> {
    fn gap(&mut self, class: u16, ps: u64, pace: Pace, count: u64) {
        if let Some(tally) = self.tallies.get_mut(class as usize).filter(|_| self.counts) {
            tally.gaps[pace as usize].record(ps as f64 / 1e12, count);
        }
    }

    fn stretch(&mut self, s: &Stretch) {
        let (from, until) = (self.from, self.counted);
        self.steps += s.steps;
        self.path.sends(s.tokens, s.from, s.from.saturating_add(s.took));
        self.counts = s.from >= from;
        let batch = Batch {
            prefill: s.prefill as f64,
            pairs: s.pairs_doubled as f64 / 2.0,
            prompts: s.prefill.min(s.tokens.saturating_sub(s.decodes)) as f64,
            decodes: s.decodes as f64,
            context: s.context as f64,
            uneven: 0.0,
        };
        let traffic = self.pool.work.traffic(s.steps as f64, &batch);
        self.flow.add(s, traffic, from, until);
        for (i, which) in [1, 3].into_iter().enumerate() {
            let (from, until) = self.quarter(which);
            self.quarters[i].add(s, Traffic::default(), from, until);
        }
        if let Some((window, flows)) = &mut self.windows {
            let end = s.from.saturating_add(s.took).min(until);
            let mut at = s.from.max(from);
            while at < end {
                let i = (at - from) / *window;
                let next = from + (i + 1) * *window;
                if let Some(flow) = flows.get_mut(i as usize) {
                    flow.add(s, traffic, at, next.min(end));
                }
                at = next;
            }
        }
        if self.run == 0
            && let Some(record) = &mut self.record
        {
            record.stretch(&self.pool.name, s);
        }
    }

    fn over(&mut self, o: &Outcome) {
        if let Some(record) = &mut self.record {
            record.outcome(&self.pool.name, self.run, o);
        }
        if !(self.from..self.counted).contains(&o.arrived) {
            return;
        }
        let class = o.class as usize;
        if let (Some(tally), Some(own)) =
            (self.tallies.get_mut(class), self.pool.classes.get(class))
        {
            let share = u128::from(o.arrived - self.from) * BATCHES as u128;
            let batch = share / u128::from((self.until - self.from).max(1));
            tally.over(o, usize::try_from(batch).unwrap_or(BATCHES), &own.slo);
        }
    }
}

/// What one run of one pool gave.
struct RunResult {
    tallies: Vec<Tally>,
    flow: Flow,
    windows: Option<(u64, Vec<Flow>)>,
    verdict: Option<Verdict>,
    steps: Steps,
    ended: Ended,
}

/// Requests that come, and are counted as offered where they come while it counts.
struct Counted<'a, I> {
    arrivals: I,
    offered: &'a mut [u64],
    from: u64,
    until: u64,
}

impl<I: Iterator<Item = Arrival>> Iterator for Counted<'_, I> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let next = self.arrivals.next()?;
        if (self.from..self.until).contains(&next.sent)
            && let Some(offered) = self.offered.get_mut(next.wanted.class as usize)
        {
            *offered += 1;
        }
        Some(next)
    }
}

fn serve<R: Record>(
    mut run: Run<'_, R>,
    clients: Loop,
    arrivals: impl Iterator<Item = Arrival>,
    budget: Budget,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> RunResult {
    let pool = run.pool;
    let mut offered = vec![0; run.tallies.len()];
    let (from, until) = (run.from, run.counted);
    let arrivals = Counted { arrivals, offered: &mut offered, from, until };
    let (ended, steps) = match pool.decides {
        Decides::Vllm => {
            let mut engine = Replica::new(pool.limits, &pool.model);
            let ended = drive(&mut engine, clients, arrivals, pool.queue, budget, &mut run, go_on);
            (ended, engine.steps())
        }
        Decides::Sglang => {
            let mut engine = PlainReplica::new(pool.limits, Sglang::default(), &pool.model);
            let ended = drive(&mut engine, clients, arrivals, pool.queue, budget, &mut run, go_on);
            (ended, Steps { total: run.steps, leapt: 0 })
        }
        Decides::TensorRt => {
            let mut engine = PlainReplica::new(pool.limits, TensorRt::NoEvict, &pool.model);
            let ended = drive(&mut engine, clients, arrivals, pool.queue, budget, &mut run, go_on);
            (ended, Steps { total: run.steps, leapt: 0 })
        }
    };
    for (tally, offered) in run.tallies.iter_mut().zip(offered) {
        tally.offered = offered;
    }
    // A run that was stopped, or whose requests are all known, ends where it ends.
    let whole = !ended.stopped && run.counted < u64::MAX;
    let end = if whole { run.counted } else { run.counted.min(ended.now.max(run.from)) };
    run.flow.span = end - run.from;
    let verdict = verdict(&run, &ended);
    let Run { tallies, flow, windows, .. } = run;
    RunResult { tallies, flow, windows, verdict, steps, ended }
}

/// A run whose backlog cannot be worked off, whose clients go away or are turned away, or whose line grows by more than half from the second quarter to the last,
/// is overloaded; one in whose last quarter on average a request waits has a backlog. Of one that was stopped nothing is known.
fn verdict<R>(run: &Run<'_, R>, ended: &Ended) -> Option<Verdict> {
    if ended.stopped {
        return None;
    }
    let lost: u64 = run.tallies.iter().map(|t| t.rejected + t.timed_out).sum();
    let offered: u64 = run.tallies.iter().map(|t| t.offered).sum();
    let quarter = ((run.until - run.from) / 4).max(1) as f64;
    let [second, last] = [0, 1].map(|i| run.quarters[i].waiting as f64 / quarter);
    Some(if !ended.complete || lost * 100 > offered || last > 1.5 * second + 2.0 {
        Verdict::Overloaded
    } else if last >= 1.0 {
        Verdict::Backlogged
    } else {
        Verdict::Stable
    })
}

/// Simulates one replica of each pool. `go_on` is asked now and then from every thread; once it says no, runs end early and say so.
pub fn simulate<R: Record + Send>(
    input: &SimulateInput,
    record: Option<&mut R>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Simulation, StudyError> {
    let (from, until) = (ps(input.warm_up), ps(input.warm_up + input.seconds));
    // A backlog is worked off, within reason.
    let budget = Budget { moves: input.moves, until: until.saturating_mul(4) };
    let total = input.warm_up + input.seconds;
    for (pool, own) in input.pools.iter().flat_map(|p| p.classes.iter().map(move |c| (p, c))) {
        let requests = own.rate(input.hour, input.events) * own.class.task.mean_requests() * total;
        if requests > REQUESTS_MOST {
            return Err(StudyError::TooMany {
                pool: pool.name.clone(),
                class: own.class.name.clone(),
                requests,
                most: REQUESTS_MOST,
            });
        }
    }
    let mut results = Vec::new();
    let mut record = record;
    for pool in &input.pools {
        let one = |run: u32, record: Option<&mut R>| -> Result<RunResult, StudyError> {
            let path = Path::new(&pool.path);
            let seed = input.seed.run(u64::from(run));
            let (hour, events) = (input.hour, input.events);
            let arrivals = Requests::new(&pool.classes, hour, events, total, seed, path.clone())
                .map_err(|(class, source)| StudyError::Arrivals { class, source })?;
            let window = input.window.filter(|_| run == 0).map(ps);
            let times = (from, until, until);
            let watched = Run::new(pool, run, times, path, window, record);
            Ok(serve(watched, Loop::Open, arrivals, budget, &mut |_| go_on()))
        };
        let runs: Result<Vec<RunResult>, StudyError> = match &mut record {
            // What is written down is written in order.
            Some(record) => (0..input.runs).map(|run| one(run, Some(&mut **record))).collect(),
            None => in_order(input.threads, input.runs, |run| one(run, None)).into_iter().collect(),
        };
        results.push((pool, runs?));
    }
    Ok(conclude(input, &results, from))
}

/// One pool that serves requests which are already known, in one run.
pub fn simulate_known<R: Record>(
    input: &SimulateInput,
    clients: Loop,
    arrivals: Vec<Arrival>,
    record: Option<&mut R>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Simulation {
    let until = ps(input.seconds);
    let budget = Budget { moves: input.moves, until: u64::MAX };
    let window = input.window.map(ps);
    let pool = &input.pools[0];
    // All of them count, whenever they come.
    let path = Path::new(&RequestPath { token_seconds: 0.0, ..pool.path });
    let watched = Run::new(pool, 0, (0, until, u64::MAX), path, window, record);
    let result = serve(watched, clients, arrivals.into_iter(), budget, &mut |_| go_on());
    conclude(input, &[(pool, vec![result])], 0)
}

fn conclude(
    input: &SimulateInput,
    results: &[(&SimulatedPool, Vec<RunResult>)],
    from: u64,
) -> Simulation {
    let mut classes = Vec::new();
    let mut pools: Vec<PoolResult> = Vec::new();
    let mut intervals = BTreeMap::new();
    let mut timeline = input.window.map(|_| Vec::new());
    let (mut steps, mut steps_leapt, mut complete) = (0, 0, true);
    for (pool, runs) in results {
        let mut flow = Flow::default();
        for run in runs {
            flow.merge(&run.flow);
            steps += run.steps.total;
            steps_leapt += run.steps.leapt;
            complete &= run.ended.complete;
        }
        for (i, own) in pool.classes.iter().enumerate() {
            let mut tally = Tally::new();
            runs.iter().for_each(|run| tally.merge(&run.tallies[i]));
            sure(&mut intervals, input, pool, own, i, runs);
            classes.push(class_result(pool, own, &tally));
        }
        let mut verdicts: Vec<Verdict> = runs.iter().filter_map(|run| run.verdict).collect();
        verdicts.sort_unstable();
        let count = |v: Verdict| verdicts.iter().filter(|own| **own == v).count() as u32;
        let busy: Vec<f64> =
            runs.iter().map(|r| r.flow.busy as f64 / r.flow.span.max(1) as f64).collect();
        let mean_busy = busy.iter().sum::<f64>() / busy.len().max(1) as f64;
        let own = classes.iter().filter(|c: &&ClassResult| c.pool == pool.name);
        let (prompt_tokens, cached_tokens) =
            own.fold((0, 0), |(p, c), own| (p + own.prompt_tokens, c + own.cached_tokens));
        pools.push(PoolResult {
            name: pool.name.clone(),
            replicas: pool.replicas,
            verdict: verdicts.get(verdicts.len() / 2).copied(),
            verdicts: [Verdict::Stable, Verdict::Backlogged, Verdict::Overloaded].map(count),
            utilisation: flow.utilisation(pool),
            kv_blocks: pool.limits.kv.blocks,
            kv_block_tokens: pool.limits.kv.block_tokens,
            preemptions: flow.preempted,
            cache_hits: CacheHits {
                prompt_tokens,
                cached_tokens,
                share: (prompt_tokens > 0).then(|| cached_tokens as f64 / prompt_tokens as f64),
            },
            prefill_tokens: flow.prefill,
            output_tokens: flow.tokens,
            replica_spread: Ends { low: mean_busy, high: mean_busy },
            binding: flow.binding(&pool.name, from),
        });
        if let (Some(timeline), Some((window, flows))) =
            (&mut timeline, runs.first().and_then(|run| run.windows.as_ref()))
        {
            timeline.extend(windows(pool, *window, flows));
        }
    }
    let worst =
        pools.iter().max_by(|a, b| a.binding.share_of_time.total_cmp(&b.binding.share_of_time));
    Simulation {
        seed: input.seed.get(),
        verdict: pools.iter().filter_map(|p| p.verdict).max(),
        complete,
        seconds: input.seconds,
        warm_up_s: input.warm_up,
        runs: input.runs,
        binding: worst.map(|p| p.binding.clone()).unwrap_or_default(),
        classes,
        pools,
        steps,
        steps_leapt,
        intervals,
        timeline,
        notes: Vec::new(),
    }
}

/// How sure a class's numbers are: from independent runs, or from batches of the only one.
fn sure(
    intervals: &mut BTreeMap<String, Span>,
    input: &SimulateInput,
    pool: &SimulatedPool,
    own: &SimulatedClass,
    i: usize,
    runs: &[RunResult],
) {
    let mut add = |metric: String, interval: Option<plimsoll_stats::Interval>| {
        if let Some(interval) = interval {
            let name = format!("{}.{}.{metric}", pool.name, own.class.name);
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
            [ttft, tpot, e2e, queue, tally.gaps(&pool.spread)]
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
    let shares: Vec<f64> = runs
        .iter()
        .map(|run| &run.tallies[i])
        .filter(|t| t.offered > 0)
        .map(|t| t.good as f64 / t.offered as f64)
        .collect();
    if own.slo != Thresholds::default() {
        add("attainment".to_owned(), mean_interval(&shares, input.level));
    }
}

fn class_result(pool: &SimulatedPool, own: &SimulatedClass, tally: &Tally) -> ClassResult {
    let over = tally.completed + tally.rejected + tally.timed_out;
    let [ttft, tpot, e2e, queue] = &tally.sketches;
    ClassResult {
        name: own.class.name.clone(),
        pool: pool.name.clone(),
        offered: tally.offered,
        admitted: tally.offered - tally.rejected,
        completed: tally.completed,
        good: tally.good,
        rejected: tally.rejected,
        too_long: tally.too_long,
        timed_out: tally.timed_out,
        unfinished: tally.offered.saturating_sub(over),
        attainment: (tally.offered > 0 && own.slo != Thresholds::default())
            .then(|| tally.good as f64 / tally.offered as f64),
        prompt_tokens: tally.prompt,
        cached_tokens: tally.cached,
        output_tokens: tally.output,
        ttft_ms: distribution(ttft),
        itl_ms: tally.gaps(&pool.spread),
        tpot_ms: distribution(tpot),
        e2e_ms: distribution(e2e),
        queue_ms: distribution(queue),
    }
}

fn windows<'a>(
    pool: &'a SimulatedPool,
    window: u64,
    flows: &'a [Flow],
) -> impl Iterator<Item = Window> + 'a {
    flows.iter().enumerate().map(move |(i, flow)| {
        let flow = Flow { span: window, ..flow.clone() };
        let seconds = window as f64 / 1e12;
        Window {
            pool: pool.name.clone(),
            from_s: i as f64 * seconds,
            utilisation: flow.utilisation(pool),
            prefill_tokens_per_s: flow.prefill as f64 / seconds,
            output_tokens_per_s: flow.tokens as f64 / seconds,
            preemptions: flow.preempted,
            held: flow.binding(&pool.name, 0).resource,
        }
    })
}
