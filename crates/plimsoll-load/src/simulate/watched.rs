//! One run of a fleet, as it is watched.

use plimsoll_perf::Batch;
use plimsoll_sim::{
    Attempt, AttemptEnd, End, FleetEnded, FleetWatch, Outcome, Pace, PoolEnded, Steps, Stretch,
    Target, TaskEnd, TaskOutcome, ToolUse, Watch,
};
use plimsoll_stats::Sketch;

use super::result::{AttemptCounts, Verdict};
use super::tally::{BATCHES, Flow, Tally};
use super::{Record, SimulateInput};

/// Whether more than a hundredth of the calls to somewhere are turned away, lost or given up; not counted are so many whose clients leave by themselves, and those
/// that are longer than anything takes.
fn loses(attempts: &AttemptCounts, leaving: u64) -> bool {
    let given_up = attempts.given_up.saturating_sub(leaving);
    let lost = attempts.refused + attempts.nobody_there + attempts.lost + given_up;
    lost * 100 > attempts.sent
}

/// Replicas of a run that are looked at one by one; a fleet that starts more of them is too restless to look at each.
const REPLICAS_MOST: usize = 4096;

/// What one run gave.
pub(super) struct RunResult {
    pub(super) tallies: Vec<Tally>,
    pub(super) flows: Vec<Flow>,
    pub(super) replicas: Vec<ReplicaTally>,
    /// Whether there were more than are looked at.
    pub(super) replicas_beyond: bool,
    pub(super) providers: Vec<ProviderTally>,
    pub(super) tools: Vec<ToolTally>,
    pub(super) regions: Vec<RegionTally>,
    pub(super) windows: Option<(u64, Vec<Vec<Flow>>)>,
    pub(super) began: Option<(u64, Vec<Began>)>,
    pub(super) verdicts: Option<Vec<Verdict>>,
    /// Whether providers and tools keep up, where there are any.
    pub(super) provider_verdict: Option<Verdict>,
    pub(super) tool_verdicts: Option<Vec<Verdict>>,
    pub(super) steps: Steps,
    pub(super) complete: bool,
    pub(super) pools: Vec<PoolEnded>,
}

/// What came of tasks that began in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Began {
    pub(super) offered: u64,
    pub(super) good: u64,
    pub(super) attempts: u64,
}

/// What is counted of a replica.
#[derive(Clone, Debug)]
pub(super) struct ReplicaTally {
    pub(super) pool: usize,
    pub(super) busy: u64,
    pub(super) blocks_max: u64,
    pub(super) waiting_max: u64,
    pub(super) ttft: Sketch,
}

/// What is counted of a provider.
#[derive(Clone, Debug)]
pub(super) struct ProviderTally {
    pub(super) attempts: AttemptCounts,
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
    /// Picoseconds of calls.
    pub(super) busy: u128,
    pub(super) ttft: Sketch,
    pub(super) retry_after: Sketch,
}

/// What is counted of a tool.
#[derive(Clone, Debug)]
pub(super) struct ToolTally {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) waited: u64,
    pub(super) waits: Sketch,
    pub(super) took: Sketch,
    /// Picoseconds of calls.
    pub(super) busy: u128,
}

/// What is counted of a region.
#[derive(Clone, Debug, Default)]
pub(super) struct RegionTally {
    /// Tasks of its users, and how many were good.
    pub(super) offered: u64,
    pub(super) good: u64,
    /// Attempts that it answered, and those of them for users elsewhere.
    pub(super) answered: u64,
    pub(super) for_others: u64,
}

/// One run, as it is watched.
pub(super) struct Watched<'a, 'r> {
    input: &'a SimulateInput,
    run: u32,
    from: u64,
    until: u64,
    /// Whatever begins before this counts.
    counted: u64,
    tallies: Vec<Tally>,
    flows: Vec<Flow>,
    /// Picoseconds of requests that waited in the second and the last quarter, of each pool.
    quarters: Vec<[u128; 2]>,
    /// The same of calls that waited for each tool.
    tool_quarters: Vec<[u128; 2]>,
    replicas: Vec<ReplicaTally>,
    replicas_beyond: bool,
    providers: Vec<ProviderTally>,
    tools: Vec<ToolTally>,
    regions: Vec<RegionTally>,
    windows: Option<(u64, Vec<Vec<Flow>>)>,
    began: Option<(u64, Vec<Began>)>,
    /// Replicas of each pool that work, and since when.
    working: Vec<(u64, u32)>,
    /// Tasks under way, and whether they were ever too many.
    under_way: u64,
    hopeless: bool,
    /// Whether the steps whose gaps are told now count.
    counts: bool,
    record: Option<&'r mut (dyn Record + 'r)>,
}

fn sketch() -> Sketch {
    // A microsecond is all that anybody asks for.
    Sketch::new(1e-6)
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

impl<'a, 'r> Watched<'a, 'r> {
    pub(super) fn new(
        input: &'a SimulateInput,
        run: u32,
        (from, until): (u64, u64),
        record: Option<&'r mut (dyn Record + 'r)>,
    ) -> Self {
        let windows = input.window.filter(|_| run == 0).map(|window| {
            let window = crate::arrivals::ps(window).max(1);
            let count = (until - from).div_ceil(window).min(100_000) as usize;
            (window, input.pools.iter().map(|_| vec![Flow::default(); count]).collect())
        });
        let began = input.window.map(|window| {
            let window = crate::arrivals::ps(window).max(1);
            let count = (until - from).div_ceil(window).min(100_000) as usize;
            (window, vec![Began::default(); count])
        });
        let provider = ProviderTally {
            attempts: AttemptCounts::default(),
            prompt: 0,
            cached: 0,
            output: 0,
            busy: 0,
            ttft: sketch(),
            retry_after: sketch(),
        };
        let tool =
            ToolTally { calls: 0, failed: 0, waited: 0, waits: sketch(), took: sketch(), busy: 0 };
        Self {
            input,
            run,
            from,
            until,
            counted: until,
            tallies: input.classes.iter().map(|_| Tally::new()).collect(),
            flows: input.pools.iter().map(|_| Flow::default()).collect(),
            quarters: vec![[0; 2]; input.pools.len()],
            tool_quarters: vec![[0; 2]; input.tools.len()],
            replicas: Vec::new(),
            replicas_beyond: false,
            providers: vec![provider; input.providers.len()],
            tools: vec![tool; input.tools.len()],
            regions: vec![RegionTally::default(); input.regions.len()],
            windows,
            began,
            working: vec![(0, 0); input.pools.len()],
            under_way: 0,
            hopeless: false,
            counts: false,
            record,
        }
    }

    /// So many requests come to the only pool, and all count.
    pub(super) fn counts_all(&mut self, offered: u64) {
        self.counted = u64::MAX;
        if let Some(tally) = self.tallies.first_mut() {
            tally.offered = offered;
        }
        if let Some(region) = self.regions.first_mut() {
            region.offered = offered;
        }
    }

    /// Whether others read the prompts of a pool.
    fn is_handed(&self, pool: usize) -> bool {
        let hands = |own: &super::SimulatedPool| own.life.hands_over.map(|over| over.to);
        self.input.pools.iter().any(|own| hands(own) == Some(pool))
    }

    fn is_counted(&self, at: u64) -> bool {
        (self.from..self.counted).contains(&at)
    }

    /// The window that an instant is in.
    fn window(&mut self, at: u64) -> Option<&mut Began> {
        let (window, all) = self.began.as_mut()?;
        let i = at.checked_sub(self.from)? / *window;
        all.get_mut(usize::try_from(i).ok()?)
    }

    /// The second and the last quarter.
    fn quarter(&self, which: u64) -> (u64, u64) {
        let quarter = (self.until - self.from) / 4;
        (self.from + which * quarter, self.from + (which + 1) * quarter)
    }

    /// A pool had so many replicas until now.
    fn had(&mut self, pool: usize, now: u64) {
        let (since, working) = self.working[pool];
        let (since, now) = (since.max(self.from), now.min(self.counted));
        if since >= now {
            return;
        }
        let working = u128::from(working);
        self.flows[pool].span += u128::from(now - since) * working;
        if let Some((window, flows)) = &mut self.windows {
            let mut at = since;
            while at < now {
                let i = (at - self.from) / *window;
                let next = (self.from + (i + 1) * *window).min(now);
                match flows[pool].get_mut(i as usize) {
                    Some(flow) => flow.span += u128::from(next - at) * working,
                    None => return,
                }
                at = next;
            }
        }
    }

    pub(super) fn ended(mut self, ended: &FleetEnded) -> RunResult {
        let whole = !ended.stopped && self.counted < u64::MAX;
        let end = if whole { self.counted } else { self.counted.min(ended.now.max(self.from)) };
        for pool in 0..self.flows.len() {
            self.had(pool, end);
        }
        let verdicts = (!ended.stopped || self.hopeless).then(|| {
            if self.hopeless {
                return vec![Verdict::Overloaded; self.flows.len()];
            }
            (0..self.flows.len()).map(|pool| self.verdict(pool, ended.complete)).collect()
        });
        let provider_verdict = (!ended.stopped).then(|| self.provider_verdict()).flatten();
        let tool_verdicts = (!ended.stopped).then(|| self.tool_verdicts());
        RunResult {
            tallies: self.tallies,
            flows: self.flows,
            replicas: self.replicas,
            replicas_beyond: self.replicas_beyond,
            providers: self.providers,
            tools: self.tools,
            regions: self.regions,
            windows: self.windows,
            began: self.began,
            verdicts,
            provider_verdict,
            tool_verdicts,
            steps: ended.steps,
            complete: ended.complete,
            pools: ended.pools.clone(),
        }
    }

    /// A pool whose backlog cannot be worked off, that turns more than a hundredth of its calls away or loses them, or whose line grows by more than half from the
    /// second quarter to the last, is overloaded; one in whose last quarter on average a request waits for each replica has a backlog. Quarters that see different bursts or
    /// dumps are not compared: what one of these leaves behind is worked off, or it is not.
    fn verdict(&self, pool: usize, complete: bool) -> Verdict {
        let replicas =
            (self.flows[pool].span as f64 / (self.until - self.from).max(1) as f64).max(1.0);
        let line = self.line(self.quarters[pool], replicas);
        let flow = &self.flows[pool];
        // Whoever is left with a line at the end had too much of it.
        let unfinished = !complete && line != Verdict::Stable;
        if unfinished || loses(&flow.attempts, flow.leaving) {
            return Verdict::Overloaded;
        }
        line
    }

    /// Providers have no line that anybody sees: they turn clients away.
    fn provider_verdict(&self) -> Option<Verdict> {
        // Whoever only helps out is not what tasks depend on.
        let depends = |i: usize| {
            let mut routes = self.input.classes.iter().flat_map(|class| &class.sent.routes);
            routes.any(|route| route.to == Target::Provider(i))
        };
        let used = self.providers.iter().enumerate();
        let used = used.filter(|(i, own)| own.attempts.sent > 0 && depends(*i));
        let verdicts = used.map(|(_, own)| {
            let loses = loses(&own.attempts, own.attempts.given_up);
            if loses { Verdict::Overloaded } else { Verdict::Stable }
        });
        verdicts.max()
    }

    /// A tool is judged by its line as a pool is, for each call that it handles at once.
    fn tool_verdicts(&self) -> Vec<Verdict> {
        let tools = self.input.tools.iter().zip(&self.tool_quarters);
        tools
            .map(|((_, tool), quarters)| {
                self.line(*quarters, tool.at_once.map_or(1.0, |most| most.max(1) as f64))
            })
            .collect()
    }

    /// What a line says in which so much was waited in the second and the last quarter, for each that serves.
    fn line(&self, quarters: [u128; 2], serving: f64) -> Verdict {
        let quarter = ((self.until - self.from) / 4).max(1) as f64 * serving;
        let [second, last] = quarters.map(|waiting| waiting as f64 / quarter);
        if last > 1.5 * second + 2.0 && self.quarters_are_alike() {
            Verdict::Overloaded
        } else if last >= 1.0 {
            Verdict::Backlogged
        } else {
            Verdict::Stable
        }
    }

    /// Whether a quarter sees so many bursts and dumps that another sees as many.
    fn quarters_are_alike(&self) -> bool {
        let quarter = (self.until - self.from) as f64 / 4e12;
        let classes = self.input.classes.iter().map(|own| own.class.process.episode_seconds());
        classes.flatten().all(|episode| quarter >= EPISODES_OF_A_QUARTER * episode)
    }

    /// The parts of a time that lie in the second and the last quarter.
    fn in_quarters(&self, from: u64, until: u64) -> [u128; 2] {
        [1, 3].map(|which| {
            let (begin, end) = self.quarter(which);
            u128::from(until.min(end).saturating_sub(from.max(begin)))
        })
    }
}

/// Bursts or dumps of a quarter by which it may be compared with another.
const EPISODES_OF_A_QUARTER: f64 = 5.0;

impl FleetWatch for Watched<'_, '_> {
    fn goes_on(&mut self) -> bool {
        self.hopeless |= self.input.hopeless.is_some_and(|most| self.under_way > most);
        !self.hopeless
    }

    fn offered(&mut self, class: u16, at: u64) {
        self.under_way += 1;
        if self.is_counted(at) {
            self.tallies[class as usize].offered += 1;
            if let Some(window) = self.window(at) {
                window.offered += 1;
            }
            let region = self.input.classes[class as usize].sent.region;
            if let Some(region) = self.regions.get_mut(region) {
                region.offered += 1;
            }
        }
    }

    fn task(&mut self, o: &TaskOutcome) {
        self.under_way = self.under_way.saturating_sub(1);
        if o.end == TaskEnd::Completed && self.is_counted(o.ended) {
            self.tallies[o.class as usize].done_in_time += 1;
        }
        if !self.is_counted(o.began) {
            return;
        }
        let share = u128::from(o.began - self.from) * BATCHES as u128;
        let batch = share / u128::from((self.until - self.from).max(1));
        self.tallies[o.class as usize].over(
            o,
            usize::try_from(batch).unwrap_or(BATCHES),
            &self.input.classes[o.class as usize].sent.good,
        );
        if let Some(window) = self.window(o.began) {
            window.good += u64::from(o.good);
        }
        let region = self.input.classes[o.class as usize].sent.region;
        if let Some(region) = self.regions.get_mut(region) {
            region.good += u64::from(o.good);
        }
    }

    fn attempt(&mut self, a: &Attempt<'_>) {
        if let Some(record) = &mut self.record {
            let target = match a.target {
                Target::Pool(pool) => &self.input.pools[pool].name,
                Target::Provider(provider) => &self.input.providers[provider].0,
            };
            record.attempt(target, &self.input.classes[a.class as usize].class.name, self.run, a);
        }
        if !self.is_counted(a.sent) {
            return;
        }
        // Whoever read a prompt for somebody else to answer has done half of an attempt.
        let half = match a.target {
            Target::Pool(pool) => {
                a.end == AttemptEnd::Answered && self.input.pools[pool].life.hands_over.is_some()
            }
            Target::Provider(_) => false,
        };
        if let Some(window) = self.window(a.sent).filter(|_| !half) {
            window.attempts += 1;
        }
        let leaves = self.input.classes[a.class as usize].sent.leaves.is_some();
        let tally = &mut self.tallies[a.class as usize];
        if !half {
            tally.attempts.count(a.end);
        }
        let ttft = a
            .outcome
            .and_then(|o| o.first)
            .map(|first| seconds(first.saturating_add(a.way).saturating_sub(a.sent)));
        if let Some(o) = a.outcome.filter(|_| a.end != AttemptEnd::Answered) {
            tally.wasted_read += u64::from(o.read);
            tally.wasted_output += o.output;
        }
        match a.target {
            Target::Provider(provider) => {
                let own = &mut self.providers[provider];
                own.attempts.count(a.end);
                if let Some(o) = a.outcome {
                    own.prompt += o.prompt;
                    own.cached += o.cached;
                    own.output += o.output;
                    own.busy += u128::from(o.done.saturating_sub(o.arrived));
                }
                if let Some(ttft) = ttft {
                    own.ttft.record(ttft, 1);
                }
                if let Some(wait) = a.retry_after {
                    own.retry_after.record(seconds(wait), 1);
                }
            }
            Target::Pool(pool) => {
                let is_handed = self.is_handed(pool);
                let flow = &mut self.flows[pool];
                flow.attempts.count(a.end);
                flow.leaving += u64::from(leaves && a.end == AttemptEnd::GivenUp);
                // What was read elsewhere and handed over was not found in a cache.
                if let Some(o) = a.outcome.filter(|o| o.scheduled.is_some() && !is_handed) {
                    flow.prompt += o.prompt;
                    flow.cached += o.cached;
                }
                let replica = a.replica.filter(|i| *i < self.replicas.len());
                if let (Some(replica), Some(ttft)) = (replica, ttft) {
                    self.replicas[replica].ttft.record(ttft, 1);
                }
                if let Some(region) = a.region.and_then(|r| self.regions.get_mut(r))
                    && a.end == AttemptEnd::Answered
                    && !half
                {
                    region.answered += 1;
                    let from = self.input.classes[a.class as usize].sent.region;
                    region.for_others += u64::from(a.region != Some(from));
                }
            }
        }
    }

    fn tool(&mut self, tool: usize, used: &ToolUse) {
        if used.waited > 0 {
            let parts = self.in_quarters(used.at, used.at.saturating_add(used.waited));
            self.tool_quarters[tool].iter_mut().zip(parts).for_each(|(own, part)| *own += part);
        }
        // Whenever it was made, what a call takes is taken while it counts, or not.
        let accepted = used.at.saturating_add(used.waited);
        let (from, until) =
            (accepted.max(self.from), accepted.saturating_add(used.took).min(self.counted));
        self.tools[tool].busy += u128::from(until.saturating_sub(from));
        if !self.is_counted(used.at) {
            return;
        }
        let own = &mut self.tools[tool];
        own.calls += 1;
        own.failed += u64::from(used.failed);
        own.waited += u64::from(used.waited > 0);
        own.waits.record(seconds(used.waited), 1);
        // Whoever gave up in line was never served.
        if used.took > 0 || !used.given_up {
            own.took.record(seconds(used.took), 1);
        }
    }

    fn gap(&mut self, _pool: usize, class: u16, ps: u64, pace: Pace, count: u64) {
        if let Some(tally) = self.tallies.get_mut(class as usize).filter(|_| self.counts) {
            tally.gaps[pace as usize].record(ps as f64 / 1e12, count);
        }
    }

    fn stretch(&mut self, pool: usize, replica: usize, s: &Stretch) {
        let (from, until) = (self.from, self.counted);
        self.counts = s.from >= from;
        let batch = Batch {
            prefill: s.prefill as f64,
            pairs: s.pairs_doubled as f64 / 2.0,
            prompts: s.prefill.min(s.tokens.saturating_sub(s.decodes)) as f64,
            decodes: s.decodes as f64,
            context: s.context as f64,
            uneven: 0.0,
        };
        let traffic = self.input.pools[pool].work.traffic(s.steps as f64, &batch);
        self.flows[pool].add(s, traffic, from, until);
        let end = s.from.saturating_add(s.took);
        if s.gauges.waiting > 0 {
            let parts = self.in_quarters(s.from, end);
            for (own, part) in self.quarters[pool].iter_mut().zip(parts) {
                *own += part * u128::from(s.gauges.waiting);
            }
        }
        self.replicas_beyond |= replica >= REPLICAS_MOST;
        if s.from >= from && end <= until && replica < REPLICAS_MOST {
            while self.replicas.len() <= replica {
                self.replicas.push(ReplicaTally {
                    pool: usize::MAX,
                    busy: 0,
                    blocks_max: 0,
                    waiting_max: 0,
                    ttft: sketch(),
                });
            }
            let own = &mut self.replicas[replica];
            own.pool = pool;
            own.busy += s.took;
            own.blocks_max = own.blocks_max.max(s.gauges.blocks);
            own.waiting_max = own.waiting_max.max(s.gauges.waiting);
        }
        if let Some((window, flows)) = &mut self.windows {
            let end = end.min(until);
            let mut at = s.from.max(from);
            while at < end {
                let i = (at - from) / *window;
                let next = from + (i + 1) * *window;
                if let Some(flow) = flows[pool].get_mut(i as usize) {
                    flow.add(s, traffic, at, next.min(end));
                }
                at = next;
            }
        }
        if self.run == 0
            && let Some(record) = &mut self.record
        {
            record.stretch(&self.input.pools[pool].name, replica, s);
        }
    }

    fn replicas(&mut self, pool: usize, at: u64, ready: u32, _starting: u32, draining: u32) {
        self.had(pool, at);
        // One that is being emptied works.
        self.working[pool] = (at, ready + draining);
    }
}

/// One engine whose requests are known: each is a task.
pub(super) struct Known<'a, 'r>(pub(super) Watched<'a, 'r>);

impl Watch for Known<'_, '_> {
    fn gap(&mut self, class: u16, ps: u64, pace: Pace, count: u64) {
        self.0.gap(0, class, ps, pace, count);
    }

    fn stretch(&mut self, stretch: &Stretch) {
        self.0.working[0].1 = 1;
        self.0.stretch(0, 0, stretch);
    }

    fn over(&mut self, o: &Outcome) {
        let (end, attempt) = match o.end {
            End::Completed => (TaskEnd::Completed, AttemptEnd::Answered),
            End::Rejected => (TaskEnd::Refused, AttemptEnd::Refused),
            End::TooLong => (TaskEnd::TooLong, AttemptEnd::TooLong),
            End::TimedOut => (TaskEnd::TimedOut, AttemptEnd::GivenUp),
        };
        self.0.attempt(&Attempt {
            class: o.class,
            target: Target::Pool(0),
            replica: Some(0),
            region: Some(0),
            sent: o.arrived,
            way: 0,
            end: attempt,
            retry_after: None,
            outcome: Some(o),
        });
        self.0.task(&TaskOutcome {
            class: o.class,
            end,
            began: o.arrived,
            ended: o.done,
            ttft: o.first.map(|first| first - o.arrived),
            tpot: o.first.filter(|_| o.output > 1).map(|first| (o.done - first) / (o.output - 1)),
            largest_gap: o.largest_gap,
            waited: o.scheduled.map_or(0, |at| at - o.arrived),
            handing_over: 0,
            calls: 1,
            attempts: 1,
            prompt: o.prompt,
            cached: o.cached,
            output: o.output,
            good: end == TaskEnd::Completed,
            overdue: false,
        });
    }
}

impl AttemptCounts {
    pub(super) fn count(&mut self, end: AttemptEnd) {
        let own = match end {
            AttemptEnd::Answered => &mut self.answered,
            AttemptEnd::Refused => &mut self.refused,
            AttemptEnd::NobodyThere => &mut self.nobody_there,
            AttemptEnd::Lost => &mut self.lost,
            AttemptEnd::GivenUp => &mut self.given_up,
            AttemptEnd::TooLong => &mut self.too_long,
        };
        *own += 1;
        self.sent += 1;
    }
}
