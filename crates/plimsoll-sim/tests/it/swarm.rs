//! Random fleets by seed, with everything at once. Whatever they are and whatever happens to them, their books close.

use crate::support;
use plimsoll_testkit::sized;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plimsoll_perf::{RequestPath, StepModel};
use plimsoll_sim::{
    Activation, Attempt, AttemptEnd, Behaviour, Budget, Call, Change, ClassSpec, Content, Domain,
    EngineKind, FleetEnded, FleetSpec, FleetWatch, Good, HandOver, Incident, Judged, Kv, Limits,
    Mishap, Pace, Phase, PoolSpec, ProviderSpec, Queue, RetrySpec, RouteSpec, Routing, ScalePolicy,
    Scaling, ScalingSpec, Segment, Select, Signal, Speculation, Spot, StartupSpec, Stretch, Target,
    TargetKind, Task, TaskEnd, TaskOutcome, TaskStep, TaskSteps, ToolSpec, ToolUse, Wanted,
    run_fleet,
};
use plimsoll_stats::{Dist, Seed, Stream};

const SECOND: u64 = 1_000_000_000_000;

/// All seeds from zero on, as many as `PLIMSOLL_SEEDS` says; or the one that `PLIMSOLL_SEED` names.
#[test]
fn random_fleets() {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse().expect("a number"));
    let model = support::model();
    if let Some(seed) = number("PLIMSOLL_SEED") {
        check(seed, &model);
        return;
    }
    let mut seen = Seen::default();
    let seeds = number("PLIMSOLL_SEEDS").unwrap_or(sized(200, 2_000));
    for seed in 0..seeds {
        match catch_unwind(AssertUnwindSafe(|| check(seed, &model))) {
            Ok(more) => seen.add(&more),
            Err(_) => panic!(
                "replay it with: PLIMSOLL_SEED={seed} cargo nextest run -p plimsoll-sim random_fleets"
            ),
        }
    }
    // What never happens is not tested.
    let tasks = [
        TaskEnd::Completed,
        TaskEnd::Refused,
        TaskEnd::Lost,
        TaskEnd::TimedOut,
        TaskEnd::TooLate,
        TaskEnd::Left,
        TaskEnd::TooLong,
        TaskEnd::ToolFailed,
    ];
    let rare = |n: Option<&u64>| n.is_none_or(|n| *n < seeds / 20);
    assert!(!tasks.iter().any(|end| rare(seen.tasks.get(end))), "{seen:?}");
    assert!(!AttemptEnd::ALL.iter().any(|end| rare(seen.attempts.get(end))), "{seen:?}");
    let replicas = [seen.failed, seen.reclaimed, seen.upgraded, seen.ups, seen.downs];
    assert!(replicas.iter().all(|n| *n >= seeds as u32 / 20), "{seen:?}");
}

/// How often things happened.
#[derive(Debug, Default)]
struct Seen {
    tasks: BTreeMap<TaskEnd, u64>,
    attempts: BTreeMap<AttemptEnd, u64>,
    failed: u32,
    reclaimed: u32,
    upgraded: u32,
    ups: u32,
    downs: u32,
}

impl Seen {
    fn add(&mut self, more: &Self) {
        for (end, n) in &more.tasks {
            *self.tasks.entry(*end).or_default() += n;
        }
        for (end, n) in &more.attempts {
            *self.attempts.entry(*end).or_default() += n;
        }
        self.failed += more.failed;
        self.reclaimed += more.reclaimed;
        self.upgraded += more.upgraded;
        self.ups += more.ups;
        self.downs += more.downs;
    }
}

/// One fleet and its day, twice: what holds of any, and that everything told is the same again.
fn check(seed: u64, model: &StepModel) -> Seen {
    let seed = Seed::new(seed);
    let spec = Draw(seed.stream("fleet")).fleet(model);
    let tasks = Draw(seed.stream("tasks")).tasks(&spec);
    let run = || {
        let mut told = Told::new(&spec);
        let ended = run_fleet(
            &spec,
            tasks.clone(),
            seed,
            Budget { moves: 1_000_000, until: 100_000 * SECOND },
            (SECOND, 20 * SECOND),
            &mut told,
            &mut |_| true,
        );
        (ended, told)
    };
    let (ended, mut told) = run();
    told.books_close(&ended);
    told.hash(&ended);
    let (ended, mut again) = run();
    again.hash(&ended);
    assert_eq!(told.hash, again.hash, "the same seed tells the same");
    let mut seen = told.seen;
    for pool in &ended.pools {
        seen.failed += pool.failed;
        seen.reclaimed += pool.reclaimed;
        seen.upgraded += pool.upgraded;
        seen.ups += pool.ups;
        seen.downs += pool.downs;
    }
    seen
}

/// What is told of a replica: what its attempts read and got, what its steps did, and how it was last seen.
#[derive(Default)]
struct Books {
    read: u64,
    output: u64,
    prefill: u64,
    tokens: u64,
    until: u64,
    /// Whether somebody did not stay to the end, or it did not itself.
    cut: bool,
}

/// What is told of a fleet, held against what must always be so.
struct Told<'s> {
    spec: &'s FleetSpec,
    hash: u64,
    offered: BTreeMap<u16, u64>,
    over: BTreeMap<u16, u64>,
    attempts: u64,
    attempts_of_tasks: u64,
    handed_over: u64,
    books: BTreeMap<(usize, usize), Books>,
    seen: Seen,
}

impl<'s> Told<'s> {
    fn new(spec: &'s FleetSpec) -> Self {
        Self {
            spec,
            hash: 0xcbf2_9ce4_8422_2325,
            offered: BTreeMap::new(),
            over: BTreeMap::new(),
            attempts: 0,
            attempts_of_tasks: 0,
            handed_over: 0,
            books: BTreeMap::new(),
            seen: Seen::default(),
        }
    }

    fn hash(&mut self, told: &dyn Debug) {
        for byte in format!("{told:?}").bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Most replicas that a pool may ask for.
    fn most(&self, pool: usize) -> u32 {
        let own = &self.spec.pools[pool];
        own.scaling.as_ref().map_or(0, |s| s.scaling.max).max(own.replicas)
    }

    fn books_close(&self, ended: &FleetEnded) {
        assert!(ended.complete && !ended.stopped && ended.unfinished == 0, "it ends: {ended:?}");
        assert_eq!(self.offered, self.over, "everybody is told of once");
        // Whoever reads a prompt for others to generate makes one attempt of two.
        assert_eq!(ended.attempts_unfinished, 0);
        assert_eq!(ended.attempts, self.attempts);
        assert_eq!(ended.attempts, self.attempts_of_tasks + self.handed_over);
        for ((pool, replica), books) in &self.books {
            let limits = &self.spec.pools[*pool].limits;
            let said = format!("replica {replica} of pool {pool}");
            // Work is conserved, whatever fails: each token that a step gave is in what somebody got.
            assert_eq!(books.output, books.tokens, "tokens of {said}");
            // So is each that it read, but for those of a step under way that was lost with its engine.
            let lost = books.read - books.prefill;
            let under_way =
                if limits.asynchronous && books.cut { limits.max_num_batched_tokens } else { 0 };
            assert!(lost <= under_way, "{lost} tokens read of {said}");
        }
        for (pool, own) in ended.pools.iter().enumerate() {
            assert!(own.ready_ps <= own.replica_ps && own.least <= own.most, "{own:?}");
            assert!(own.most <= self.most(pool), "{own:?}");
        }
    }
}

impl FleetWatch for Told<'_> {
    fn offered(&mut self, class: u16, at: u64) {
        self.hash(&(class, at));
        *self.offered.entry(class).or_default() += 1;
    }

    fn task(&mut self, outcome: &TaskOutcome) {
        self.hash(outcome);
        *self.over.entry(outcome.class).or_default() += 1;
        *self.seen.tasks.entry(outcome.end).or_default() += 1;
        self.attempts_of_tasks += u64::from(outcome.attempts);
        let class = &self.spec.classes[outcome.class as usize];
        assert!(outcome.began <= outcome.ended && outcome.attempts >= outcome.calls, "{outcome:?}");
        assert!(outcome.ttft.is_none_or(|ttft| ttft <= outcome.ended - outcome.began));
        let late = class.deadline.is_some_and(|most| outcome.ended - outcome.began > most);
        assert!(!late, "nobody waits longer than it is of use: {outcome:?}");
        assert!(!outcome.good || outcome.end == TaskEnd::Completed);
    }

    fn attempt(&mut self, attempt: &Attempt<'_>) {
        self.hash(attempt);
        self.attempts += 1;
        *self.seen.attempts.entry(attempt.end).or_default() += 1;
        let served = attempt.end == AttemptEnd::Answered;
        let Some(outcome) = attempt.outcome else {
            assert!(!served, "{attempt:?}");
            return;
        };
        assert!(attempt.sent + attempt.way <= outcome.arrived, "{attempt:?}");
        let scheduled = outcome.scheduled.unwrap_or(outcome.done);
        let first = outcome.first.unwrap_or(outcome.done);
        let in_order = outcome.arrived <= scheduled && scheduled <= first && first <= outcome.done;
        assert!(in_order, "{attempt:?}");
        assert!(outcome.first.is_none() || outcome.output > 0, "{attempt:?}");
        assert!(!served || outcome.first.is_some(), "{attempt:?}");
        let Target::Pool(pool) = attempt.target else { return };
        if served && self.spec.pools[pool].hands_over.is_some() {
            self.handed_over += 1;
        }
        let books = self.books.entry((pool, attempt.replica.expect("a replica"))).or_default();
        books.read += u64::from(outcome.read);
        books.output += outcome.output;
        books.cut |= matches!(attempt.end, AttemptEnd::Lost | AttemptEnd::GivenUp);
    }

    fn tool(&mut self, tool: usize, used: &ToolUse) {
        self.hash(&(tool, used));
    }

    fn gap(&mut self, pool: usize, class: u16, ps: u64, pace: Pace, count: u64) {
        self.hash(&(pool, class, ps, pace, count));
    }

    fn stretch(&mut self, pool: usize, replica: usize, stretch: &Stretch) {
        self.hash(&(pool, replica, stretch));
        let (limits, gauges) = (&self.spec.pools[pool].limits, stretch.gauges);
        assert!(gauges.running <= limits.max_num_seqs as u64, "{stretch:?}");
        assert!(gauges.blocks <= limits.kv.blocks, "{stretch:?}");
        let books = self.books.entry((pool, replica)).or_default();
        assert!(books.until <= stretch.from, "two steps at once: {stretch:?}");
        books.until = stretch.from + stretch.took;
        books.prefill += stretch.prefill;
        books.tokens += stretch.tokens;
    }

    fn replicas(&mut self, pool: usize, at: u64, ready: u32, starting: u32, draining: u32) {
        let others = starting + draining;
        self.hash(&(pool, at, ready, others));
        assert!(ready <= self.most(pool), "{ready} are ready");
    }
}

/// Chance draws it.
struct Draw(Stream);

impl Draw {
    fn of(&mut self, n: u64) -> u64 {
        self.0.index(n as usize) as u64
    }

    /// Between, both included.
    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.of(high - low + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.of(n) == 0
    }

    fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.0.index(all.len())].clone()
    }

    fn maybe<T>(&mut self, one_in: u64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(one_in).then(|| draw(self))
    }

    /// Up to so long, sometimes none.
    fn time(&mut self, most: u64) -> u64 {
        if self.one_in(4) { 0 } else { self.of(most) }
    }

    fn seconds(&mut self, most: f64) -> Dist {
        let mean = most * (0.01 + self.0.uniform());
        match self.of(3) {
            0 => Dist::constant(0.0),
            1 => Dist::constant(mean),
            _ => Dist::exponential(mean),
        }
        .expect("a distribution")
    }

    fn fleet(&mut self, model: &StepModel) -> FleetSpec {
        let regions = self.within(1, 3) as usize;
        let count = self.within(1, 4) as usize;
        let scaled = self.one_in(2);
        let mut pools: Vec<PoolSpec> =
            (0..count).map(|_| self.pool(model, regions, scaled)).collect();
        // Some that read for another that comes after them.
        for (pool, own) in pools.iter_mut().enumerate().take(count - 1) {
            own.hands_over = self.maybe(4, |d| HandOver {
                to: d.within(pool as u64 + 1, count as u64 - 1) as usize,
                per_token: d.time(SECOND / 1000),
                window: d.maybe(2, |d| (d.of(500), d.time(SECOND / 1000))),
                per_call: d.time(SECOND / 100),
            });
        }
        let providers: Vec<_> = (0..self.of(3)).map(|_| self.provider()).collect();
        let tools: Vec<_> = (0..self.of(3)).map(|_| self.tool()).collect();
        let targets: Vec<Target> = (0..count)
            .map(Target::Pool)
            .chain((0..providers.len()).map(Target::Provider))
            .collect();
        let ways = (0..regions)
            .map(|from| {
                (0..regions)
                    .map(|to| (from == to || !self.one_in(8)).then(|| self.time(SECOND / 10)))
                    .collect()
            })
            .collect();
        let classes =
            (0..self.within(1, 3)).map(|_| self.class(regions, &targets, scaled)).collect();
        let incidents = (0..self.of(7))
            .map(|_| Incident {
                at: self.of(20 * SECOND),
                lasts: self.maybe(2, |d| d.time(5 * SECOND)),
                what: self.mishap(count, regions, providers.len(), tools.len()),
            })
            .collect();
        let chance = self.one_in(2);
        FleetSpec { classes, pools, providers, tools, ways, incidents, chance, spent: false }
    }

    fn mishap(&mut self, pools: usize, regions: usize, providers: usize, tools: usize) -> Mishap {
        let (pool, n) = (self.0.index(pools), self.within(1, 3) as u32);
        match self.of(10) {
            0 => Mishap::Replicas(pool, n),
            1 => Mishap::Nodes(pool, n),
            2 => Mishap::Zones(pool, n),
            3 => Mishap::Region(self.0.index(regions)),
            4 => Mishap::Reclaim(pool, n),
            5 | 6 => Mishap::Upgrade(pool, n),
            7 => Mishap::CacheLoss(pool),
            8 if providers > 0 => Mishap::ProviderOutage(self.0.index(providers)),
            9 if tools > 0 => Mishap::ToolOutage(self.0.index(tools)),
            _ => Mishap::Elsewhere,
        }
    }

    fn limits(&mut self) -> Limits {
        let kv = Kv::new(self.within(12, 120), self.one(&[1, 4, 16]));
        Limits {
            asynchronous: self.one_in(2),
            prefix_cache: self.one_in(2),
            whole_prompts: self.one_in(2),
            speculation: self
                .maybe(4, |d| Speculation { drafts: 2, accept_thousandths: d.within(1000, 3000) }),
            ..Limits::new(self.within(1, 8) as usize, self.within(16, 256), kv)
        }
    }

    fn pool(&mut self, model: &StepModel, regions: usize, scaled: bool) -> PoolSpec {
        let scaling = if scaled { self.maybe(2, Self::scaling) } else { None };
        let from_none = scaling.as_ref().is_some_and(|s| s.scaling.activation.is_some());
        PoolSpec {
            caches: true,
            limits: self.limits(),
            engine: self.one(&[
                EngineKind::Vllm,
                EngineKind::Vllm,
                EngineKind::Sglang,
                EngineKind::TensorRt,
            ]),
            model: model.clone(),
            model_when_new: self.one_in(4).then(|| model.clone()),
            new_for: self.time(3 * SECOND),
            path: RequestPath {
                request_seconds: self.0.uniform() * 0.01,
                token_seconds: self.0.uniform() * 0.001,
                servers: 1.0,
            },
            queue: Queue {
                requests: self.maybe(3, |d| d.of(5)),
                tokens: self.maybe(3, |d| d.of(300)),
            },
            routing: self.one(&[
                Routing::RoundRobin,
                Routing::Random,
                Routing::LeastOutstanding,
                Routing::LeastKv,
                Routing::PrefixAffinity { slack: 2 },
                Routing::Session,
            ]),
            staleness: self.maybe(3, |d| d.within(1, 1000) * SECOND / 1000).unwrap_or(0),
            replicas: self.within(u64::from(!from_none), 4) as u32,
            regions: (0..self.within(1, 3)).map(|_| self.0.index(regions)).collect(),
            domain: if self.one_in(2) { Domain::Group(2) } else { Domain::Spread(2) },
            per_node: 2,
            zones: 2,
            between_failures: self.0.uniform() * 40.0 + 1.0,
            repair: self.time(5 * SECOND),
            startup: StartupSpec {
                phases: (0..self.of(3))
                    .map(|_| Phase {
                        seconds: self.seconds(2.0),
                        done: self.0.uniform(),
                        seconds_when_done: self.maybe(2, |d| d.seconds(0.5)),
                    })
                    .collect(),
                beyond: self.maybe(3, |d| (d.of(3) as u32, d.time(3 * SECOND))),
            },
            drain: self.time(SECOND),
            spot: self.maybe(4, |d| Spot {
                reclaimed_every: d.0.uniform() * 20.0 + 0.5,
                notice: d.time(SECOND),
            }),
            scaling,
            hands_over: None,
        }
    }

    fn scaling(&mut self) -> ScalingSpec {
        let behaviour = |d: &mut Self| Behaviour {
            tolerance: 0.1,
            stabilization: d.time(5 * SECOND),
            policies: vec![ScalePolicy { change: Change::Replicas(2), period: SECOND }],
            select: Select::Max,
        };
        let activation = self.maybe(2, |d| Activation {
            polling: d.within(1, 2000) * SECOND / 1000,
            cooldown: d.time(4 * SECOND),
            cooldown_initial: d.time(4 * SECOND),
        });
        let min = self.within(u64::from(activation.is_none()), 2) as u32;
        ScalingSpec {
            scaling: Scaling {
                min,
                max: min.max(1) + self.of(4) as u32,
                up: behaviour(self),
                down: behaviour(self),
                activation,
            },
            signal: self.one(&[
                Signal::QueueDepth,
                Signal::QueueAge,
                Signal::InFlight,
                Signal::FreshTokens,
                Signal::TtftP90,
                Signal::NotGood,
                Signal::Kv,
            ]),
            target: 0.2 + self.0.uniform() * 3.0,
            kind: if self.one_in(2) { TargetKind::AverageValue } else { TargetKind::Value },
            activation: 0.0,
            period: self.within(1, 1500) * SECOND / 1000,
            delay: self.time(2 * SECOND),
            floors: (0..self.of(3)).map(|i| (i * 5 * SECOND, self.of(4) as u32)).collect(),
        }
    }

    fn provider(&mut self) -> ProviderSpec {
        ProviderSpec {
            calls: self.maybe(3, |d| d.within(1, 100)),
            tokens: self.maybe(3, |d| d.within(100, 5000)),
            prompt: self.maybe(3, |d| d.within(100, 5000)),
            output: self.maybe(3, |d| d.within(10, 2000)),
            at_once: self.maybe(3, |d| d.of(4)),
            counts_cached: self.one_in(2),
            reserves: self.one_in(2),
            ttft: self.seconds(0.5),
            tpot: self.seconds(0.05),
            failure: if self.one_in(2) { 0.2 } else { 0.0 },
        }
    }

    fn tool(&mut self) -> ToolSpec {
        ToolSpec {
            latency: self.seconds(1.0),
            at_once: self.maybe(2, |d| d.within(1, 3)),
            between: self.maybe(3, |d| d.of(SECOND)),
            failure: if self.one_in(3) { 0.2 } else { 0.0 },
        }
    }

    fn class(&mut self, regions: usize, targets: &[Target], scaled: bool) -> ClassSpec {
        let count = self.within(1, 2);
        ClassSpec {
            region: self.0.index(regions),
            routes: (0..count)
                .map(|_| RouteSpec {
                    to: self.one(targets),
                    share: 1.0 / count as f64,
                    fallback: (0..self.of(3)).map(|_| self.one(targets)).collect(),
                    shift: self.maybe(3, |d| (d.one(targets), d.0.uniform())),
                })
                .collect(),
            retries: self.maybe(2, |d| RetrySpec {
                attempts: d.within(1, 4) as u32,
                backoff: d.time(SECOND),
                backoff_max: 2 * SECOND,
                jitter: d.0.uniform(),
                budget: d.maybe(2, |d| d.0.uniform()),
                timeout: d.maybe(2, |d| d.of(2 * SECOND)),
            }),
            // A pool that has nobody may never have: whoever waits for it must go some time.
            deadline: (scaled || self.one_in(2)).then(|| self.within(1, 20_000) * SECOND / 1000),
            leaves: self.maybe(3, |d| (d.0.uniform(), d.seconds(2.0))),
            judged: self.one(&[Judged::Answer, Judged::EachTurn, Judged::FirstCall]),
            good: Good {
                ttft: self.maybe(2, |d| d.of(SECOND)),
                tpot: self.maybe(2, |d| d.of(SECOND / 10)),
                e2e: self.maybe(2, |d| d.of(5 * SECOND)),
                gap: self.maybe(2, |d| d.of(SECOND / 10)),
            },
        }
    }

    fn tasks(&mut self, spec: &FleetSpec) -> Vec<Task> {
        let mut at = 0;
        let mean = self.of(SECOND / 2);
        (0..self.within(5, 60))
            .map(|session| {
                at += (mean as f64 * self.0.exponential()) as u64;
                let class = self.0.index(spec.classes.len()) as u16;
                Task {
                    at,
                    class,
                    session: session / 2,
                    whole: true,
                    steps: self.steps(session, class, spec),
                }
            })
            .collect()
    }

    fn steps(&mut self, session: u64, class: u16, spec: &FleetSpec) -> TaskSteps {
        // What has been said so far.
        let mut said = vec![Segment { id: u64::from(class), tokens: 32 }];
        if self.one_in(2) {
            return TaskSteps::One(self.wanted(class, &mut said, session * 100));
        }
        let mut steps = VecDeque::new();
        for step in 0..self.of(6) {
            steps.push_back(match self.of(5) {
                0 => TaskStep::Wait(self.time(3 * SECOND)),
                1 if !spec.tools.is_empty() => {
                    TaskStep::Tool(self.0.index(spec.tools.len()) as u16)
                }
                _ => TaskStep::Calls(
                    (0..self.of(4))
                        .map(|call| Call {
                            wanted: self.wanted(
                                class,
                                &mut said,
                                1000 + session * 100 + step * 10 + call,
                            ),
                            route: self.maybe(6, |d| Target::Pool(d.0.index(spec.pools.len()))),
                        })
                        .collect(),
                ),
            });
        }
        TaskSteps::Many(steps)
    }

    fn wanted(&mut self, class: u16, said: &mut Vec<Segment>, name: u64) -> Wanted {
        let (own, output) = (self.within(1, 150), self.within(1, 60));
        let mut wanted = Wanted::new(own, output);
        wanted.class = class;
        wanted.rank = self.of(2) as u32;
        wanted.cached = self.of(60);
        wanted.limit = self.maybe(2, |d| output + d.of(50));
        if self.one_in(2) {
            wanted.prompt = own + said.iter().map(|s| s.tokens).sum::<u64>();
            wanted.content = Some(Arc::new(Content { shared: said.clone(), own: Some(name) }));
            said.push(Segment { id: name, tokens: own + output });
        }
        wanted
    }
}
