//! A fleet against what we did not invent: one engine driven alone, queueing theory, and days worked by hand.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use plimsoll_perf::{StepLoad, StepModel};
use plimsoll_sim::{
    Activation, Arrival, Attempt, AttemptEnd, Behaviour, Budget, Call, Change, ClassSpec, Content,
    End, FleetEnded, FleetSpec, FleetWatch, HandOver, Incident, Judged, Kv, Limits, Loop, Mishap,
    Outcome, Phase, PoolSpec, ProviderSpec, Queue, Replica, RetrySpec, RouteSpec, Routing,
    ScalePolicy, Scaling, ScalingSpec, Segment, Select, Signal, Spot, Target, TargetKind, Task,
    TaskEnd, TaskOutcome, TaskStep, TaskSteps, ToolSpec, ToolUse, Wanted, Watch, drive, run_fleet,
};
use plimsoll_stats::{Dist, Interval, Seed, Stream, mean_interval, quantile};
use proptest::prelude::*;

use crate::fleets::{SECOND, class, fleet, pool};
use crate::support::{BUDGET, model};

const MS: u64 = SECOND / 1000;

/// An attempt, and what it was told to wait.
#[derive(Clone, Copy, Debug)]
struct Tried {
    target: Target,
    replica: Option<usize>,
    sent: u64,
    end: AttemptEnd,
    retry_after: Option<u64>,
    outcome: Option<Outcome>,
}

/// Everything that is told of a fleet's day.
#[derive(Debug, Default)]
struct Told {
    tasks: Vec<TaskOutcome>,
    tried: Vec<Tried>,
    tools: Vec<ToolUse>,
    /// Of the first pool: when, how many serve, how many others there are.
    replicas: Vec<(u64, u32, u32)>,
}

impl FleetWatch for Told {
    fn task(&mut self, outcome: &TaskOutcome) {
        self.tasks.push(*outcome);
    }

    fn attempt(&mut self, attempt: &Attempt<'_>) {
        let Attempt { target, replica, sent, end, retry_after, .. } = *attempt;
        let outcome = attempt.outcome.copied();
        self.tried.push(Tried { target, replica, sent, end, retry_after, outcome });
    }

    fn tool(&mut self, _: usize, used: &ToolUse) {
        self.tools.push(*used);
    }

    fn replicas(&mut self, pool: usize, at: u64, ready: u32, starting: u32, draining: u32) {
        let others = starting + draining;
        if pool == 0 {
            self.replicas.push((at, ready, others));
        }
    }
}

impl Told {
    /// How tasks ended, and when they began and ended, in the order in which they are over.
    fn rows(&self) -> Vec<(TaskEnd, u64, u64)> {
        self.tasks.iter().map(|task| (task.end, task.began, task.ended)).collect()
    }

    /// Where attempts went, how they ended and when they were sent.
    fn attempts(&self) -> Vec<(Target, AttemptEnd, u64)> {
        self.tried.iter().map(|tried| (tried.target, tried.end, tried.sent)).collect()
    }

    /// The replicas that serve as time goes on, each number once.
    fn ready(&self) -> Vec<(u64, u32)> {
        let mut ready: Vec<(u64, u32)> = Vec::new();
        for (at, count, _) in &self.replicas {
            // What was at an instant is what was last told of it.
            while ready.pop_if(|(then, _)| then == at).is_some() {}
            if ready.last().is_none_or(|(_, before)| before != count) {
                ready.push((*at, *count));
            }
        }
        ready
    }
}

/// A day, from its first task to its last answer.
fn day(spec: &FleetSpec, tasks: impl IntoIterator<Item = Task>) -> (Told, FleetEnded) {
    day_of(spec, tasks, Seed::new(7))
}

fn day_of(
    spec: &FleetSpec,
    tasks: impl IntoIterator<Item = Task>,
    seed: Seed,
) -> (Told, FleetEnded) {
    let mut told = Told::default();
    let budget = Budget { moves: 50_000_000, until: u64::MAX };
    let ended = run_fleet(spec, tasks, seed, budget, (0, u64::MAX), &mut told, &mut |_| true);
    assert!(ended.complete, "it ends: {ended:?}");
    assert_eq!(ended.attempts_unfinished, 0);
    (told, ended)
}

/// A task of one call.
fn ask(at: u64, prompt: u64, output: u64) -> Task {
    task(at, 0, TaskSteps::One(Wanted::new(prompt, output)))
}

fn task(at: u64, class: u16, mut steps: TaskSteps) -> Task {
    if let TaskSteps::One(wanted) = &mut steps {
        wanted.class = class;
    }
    Task { at, class, session: 0, whole: true, steps }
}

fn steps(steps: impl IntoIterator<Item = TaskStep>) -> TaskSteps {
    TaskSteps::Many(steps.into_iter().collect())
}

/// A step of one call.
fn call(prompt: u64, output: u64) -> TaskStep {
    TaskStep::Calls(vec![Call { wanted: Wanted::new(prompt, output), route: None }])
}

/// One sequence at a time, a step for any prompt, room for any context: a single server, first come, first served.
fn single_server() -> Limits {
    Limits::new(1, BUDGET, Kv::new(8, BUDGET))
}

fn one_at_a_time(model: &StepModel, replicas: u32) -> PoolSpec {
    pool(model, single_server(), replicas, Routing::RoundRobin)
}

/// How long a step takes that reads a prompt.
fn reads(model: &StepModel, prompt: u64) -> u64 {
    reads_after(model, prompt, 0)
}

fn reads_after(model: &StepModel, prompt: u64, cached: u64) -> u64 {
    let mut load = StepLoad::default();
    load.add_chunk(prompt, cached);
    model.step(&load)
}

/// When the tokens of a request that is alone appear, from when it comes.
fn tokens(model: &StepModel, prompt: u64, output: u64) -> Vec<u64> {
    let mut at = reads(model, prompt);
    let mut all = vec![at];
    for token in 1..output {
        let mut load = StepLoad::default();
        load.add_decode(prompt + token);
        at += model.step(&load);
        all.push(at);
    }
    all
}

fn constant(seconds: f64) -> Dist {
    Dist::constant(seconds).expect("a time")
}

/// No limits; the first token after half a second, the others every tenth.
fn provider() -> ProviderSpec {
    ProviderSpec {
        calls: None,
        tokens: None,
        prompt: None,
        output: None,
        at_once: None,
        counts_cached: true,
        reserves: true,
        ttft: constant(0.5),
        tpot: constant(0.1),
        failure: 0.0,
    }
}

/// A class whose calls go to a provider, or to the first of several.
fn class_to(to: &[Target]) -> ClassSpec {
    let route = RouteSpec { to: to[0], share: 1.0, fallback: to[1..].to_vec(), shift: None };
    ClassSpec { routes: vec![route], ..class(0) }
}

const RETRIES: RetrySpec = RetrySpec {
    attempts: 2,
    backoff: 100 * MS,
    backoff_max: u64::MAX,
    jitter: 0.0,
    budget: None,
    timeout: None,
};

use TaskEnd::{Completed, Left, Lost, Refused, TimedOut, TooLate, TooLong, ToolFailed};

mod alone {
    //! A fleet of one replica is that replica.

    use super::*;

    #[derive(Default)]
    struct Kept(Vec<Outcome>);

    impl Watch for Kept {
        fn over(&mut self, outcome: &Outcome) {
            self.0.push(*outcome);
        }
    }

    #[derive(Clone, Debug)]
    struct Day {
        limits: Limits,
        queue: Queue,
        arrivals: Vec<Arrival>,
        patience: Option<u64>,
    }

    /// Small days on starved and roomy engines; some clients come at the same instant.
    fn days() -> impl Strategy<Value = Day> {
        let one = (
            (1u64..120, 1u64..40, 0u64..60, prop_oneof![0..300 * MS, Just(0)]),
            (0u32..3, 0u64..3, 0usize..4),
        );
        let limits = (
            (1usize..10, 16u64..300, 30u64..300, prop::sample::select(vec![1u64, 4, 16])),
            (any::<bool>(), any::<bool>(), any::<bool>()),
        );
        let queue = (prop::option::of(0u64..8), prop::option::of(0u64..400));
        let patience = prop::option::of(1..2 * SECOND);
        (prop::collection::vec(one, 1..40), limits, queue, patience).prop_map(
            |(requests, limits, (most, tokens), patience)| {
                let ((seqs, budget, blocks, block), (asynchronous, cache, whole)) = limits;
                let limits = Limits {
                    asynchronous,
                    prefix_cache: cache,
                    whole_prompts: whole,
                    ..Limits::new(seqs, budget, Kv::new(blocks, block))
                };
                let mut at = 0;
                let mut arrivals = Vec::new();
                for (i, ((prompt, output, cached, after), (rank, family, segments))) in
                    (0u64..).zip(requests)
                {
                    at += after;
                    let mut wanted = Wanted { rank, cached, ..Wanted::new(prompt, output) };
                    if segments > 0 {
                        let shared: Vec<Segment> = (0..segments as u64)
                            .map(|s| Segment {
                                id: family * 10 + s,
                                tokens: 7 + 9 * family + 5 * s,
                            })
                            .collect();
                        wanted.prompt += shared.iter().map(|s| s.tokens).sum::<u64>();
                        wanted.content = Some(Arc::new(Content { shared, own: Some(1000 + i) }));
                    }
                    let gives_up = patience.map(|patience| at + patience);
                    arrivals.push(Arrival { at, sent: at, wanted, gives_up });
                }
                Day { limits, queue: Queue { requests: most, tokens }, arrivals, patience }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(3_000)) })]

        /// The same outcomes at the same picosecond as [`drive`] gives, but for what an engine never saw: whoever is turned away learns of it when it is decided,
        /// between two steps, whereas `drive`, in which nobody acts on it, says that it was so when it came; and of whoever left before it was let in a fleet
        /// tells no outcome. An outcome is what the engine made of a request: whoever left while its last step ran is served in both.
        #[test]
        fn one_replica_is_driven(day in days()) {
            let model = model();
            let mut kept = Kept::default();
            let mut engine = Replica::new(day.limits, &model);
            let arrivals = day.arrivals.iter().cloned();
            let ended = drive(&mut engine, Loop::Open, arrivals, day.queue, Budget::NONE, &mut kept, &mut |_| true);
            prop_assert!(ended.complete);
            let pool = PoolSpec { queue: day.queue, ..pool(&model, day.limits, 1, Routing::LeastOutstanding) };
            let spec = fleet(pool, vec![ClassSpec { deadline: day.patience, ..class(0) }]);
            let tasks = day.arrivals.iter().map(|a| task(a.at, 0, TaskSteps::One(a.wanted.clone())));
            let (told, _) = super::day(&spec, tasks);

            let seen = |o: &Outcome| o.scheduled.is_some() || o.end == End::TimedOut && o.done > o.arrived;
            // Serials differ where somebody left before it was let in; instants and lengths tell requests apart all the same.
            let key = |o: &Outcome| Outcome { serial: 0, ..*o };
            let by = |o: &Outcome| (o.arrived, o.scheduled, o.prompt, o.output, o.done, o.largest_gap, o.read, o.cached);
            let served = |o: &&Outcome| o.scheduled.is_some();
            let mut driven: Vec<Outcome> = kept.0.iter().filter(served).map(key).collect();
            let outcomes = || told.tried.iter().filter_map(|tried| tried.outcome);
            let mut fleet: Vec<Outcome> = outcomes().filter(|o| o.scheduled.is_some()).map(|o| key(&o)).collect();
            driven.sort_by_key(by);
            fleet.sort_by_key(by);
            prop_assert_eq!(fleet, driven);
            // And the same are turned away.
            let away = |end: End| kept.0.iter().filter(|o| o.end == end).map(|o| (o.arrived, o.prompt)).collect::<Vec<_>>();
            let fleet_away = |end: End| outcomes().filter(|o| o.end == end).map(|o| (o.arrived, o.prompt)).collect::<Vec<_>>();
            prop_assert_eq!(fleet_away(End::Rejected), away(End::Rejected));
            prop_assert_eq!(fleet_away(End::TooLong), away(End::TooLong));
            let left = kept.0.iter().filter(|o| o.scheduled.is_none() && seen(o)).count();
            let fleet_left = told.tried.iter().filter(|t| t.end == AttemptEnd::GivenUp && t.outcome.is_none_or(|o| o.scheduled.is_none()));
            prop_assert_eq!(fleet_left.count(), left);
        }
    }
}

mod queues {
    //! What queueing theory says of a fleet.

    use super::*;

    const RUNS: u64 = 30;

    /// The interval of 99.9% of the mean over independent runs.
    fn runs(one: impl Fn(Seed) -> f64) -> Interval {
        let all: Vec<f64> = (0..RUNS).map(|run| one(Seed::new(11).run(run))).collect();
        mean_interval(&all, 0.999).expect("runs")
    }

    fn check(what: &str, interval: Interval, expected: f64) {
        let said = format!("{what}: {interval:?}, expected {expected}");
        assert!(interval.low <= expected && expected <= interval.high, "{said}");
        assert!((interval.high - interval.low) / 2.0 < 0.08 * expected, "too wide: {said}");
    }

    /// The mean without the first twentieth, when nobody had come yet.
    fn settled(waits: &[u64]) -> f64 {
        let kept = &waits[waits.len() / 20..];
        kept.iter().sum::<u64>() as f64 / kept.len() as f64 / 1e12
    }

    /// The mean wait of M/M/k in service times: Erlang's C over k (1 - ρ).
    fn erlang_wait(k: u64, utilisation: f64) -> f64 {
        let load = utilisation * k as f64;
        // Erlang's B, server by server.
        let blocked = (1..=k).fold(1.0, |b, n| load * b / (n as f64 + load * b));
        let waits = blocked / (1.0 - utilisation * (1.0 - blocked));
        waits / (k as f64 * (1.0 - utilisation))
    }

    /// A textbook's table: Erlang's C at 2 servers and a load of 1 is a third, at 1 server the utilisation.
    #[test]
    fn erlang_c_is_what_books_say() {
        assert!((erlang_wait(2, 0.5) - 1.0 / 3.0).abs() < 1e-12);
        assert!((erlang_wait(1, 0.8) - 4.0).abs() < 1e-12);
    }

    fn poisson(seed: Seed, rate: f64, count: usize) -> impl Iterator<Item = u64> {
        let mut gaps = seed.stream("arrivals");
        let mut at = 0.0;
        (0..count).map(move |_| {
            at += gaps.exponential() / rate;
            (at * 1e12) as u64
        })
    }

    /// A tool that serves so many at once for exponential times is M/M/k.
    #[test]
    fn a_tool_is_m_m_k() {
        let model = model();
        for (k, utilisation, count) in
            [(1, 0.6, 20_000), (2, 0.5, 20_000), (4, 0.8, 40_000), (16, 0.9, 120_000)]
        {
            let mut spec = fleet(one_at_a_time(&model, 0), vec![class(0)]);
            spec.tools = vec![ToolSpec {
                latency: Dist::exponential(1.0).expect("a time"),
                at_once: Some(k),
                between: None,
                failure: 0.0,
            }];
            let waits = runs(|seed| {
                let tasks = poisson(seed, utilisation * k as f64, count)
                    .map(|at| task(at, 0, steps([TaskStep::Tool(0)])));
                let (mut told, _) = day_of(&spec, tasks, seed);
                told.tools.sort_by_key(|used| used.at);
                settled(&told.tools.iter().map(|used| used.waited).collect::<Vec<_>>())
            });
            check(&format!("M/M/{k} at {utilisation}"), waits, erlang_wait(k, utilisation));
        }
    }

    /// Waits of requests that come at a rate to replicas which serve one at a time, in service times.
    fn waits(
        model: &StepModel,
        replicas: u32,
        routing: Routing,
        rate: f64,
        count: usize,
        wants: impl Fn(&mut Stream) -> Wanted,
    ) -> Interval {
        let spec = fleet(pool(model, single_server(), replicas, routing), vec![class(0)]);
        runs(|seed| {
            let mut lengths = seed.stream("lengths");
            let tasks = poisson(seed, rate, count)
                .map(|at| task(at, 0, TaskSteps::One(wants(&mut lengths))));
            let (told, _) = day_of(&spec, tasks, seed);
            settled(&told.tasks.iter().map(|task| task.waited).collect::<Vec<_>>())
        })
    }

    /// Sent at random, each of k replicas sees Poisson arrivals of its own: Pollaczek and Khinchine, λ E[S²] / 2 (1 - ρ), k times.
    #[test]
    fn at_random_it_is_m_g_1_each() {
        let model = model();
        let (short, long, chance) = (200, 8000, 0.2);
        let times = [short, long].map(|prompt| reads(&model, prompt) as f64 / 1e12);
        let mean = (1.0 - chance) * times[0] + chance * times[1];
        let square = (1.0 - chance) * times[0] * times[0] + chance * times[1] * times[1];
        for (replicas, utilisation, count) in [(1, 0.6, 20_000), (4, 0.6, 40_000)] {
            let rate = utilisation / mean;
            let expected = rate * square / (2.0 * (1.0 - utilisation));
            let all = rate * f64::from(replicas);
            let waits = waits(&model, replicas, Routing::Random, all, count, |lengths| {
                Wanted::new(if lengths.uniform() < chance { long } else { short }, 1)
            });
            check(&format!("{replicas} M/G/1 at {utilisation}"), waits, expected);
        }
    }

    /// The shortest of k lines is better than a line at random, which is M/M/1, and no better than one line for all, which is M/M/k. Outputs that go on with
    /// the same chance after every token make service times that are nearly exponential.
    #[test]
    fn the_shortest_line_is_between_one_for_all_and_one_at_random() {
        let model = model();
        let (replicas, utilisation, tokens_mean) = (4u32, 0.8, 100.0);
        // The mean of what is drawn, from the times of steps.
        let (mut mean, mut chance) = (0.0, 1.0 / tokens_mean);
        for time in tokens(&model, 1, 6000) {
            mean += chance * time as f64 / 1e12;
            chance *= 1.0 - 1.0 / tokens_mean;
        }
        let rate = utilisation / mean * f64::from(replicas);
        let drawn = |lengths: &mut Stream| {
            let more = libm::log(lengths.uniform_positive()) / libm::log(1.0 - 1.0 / tokens_mean);
            Wanted::new(1, more as u64 + 1)
        };
        let of = |routing| waits(&model, replicas, routing, rate, 20_000, drawn);
        let (random, shortest) = (of(Routing::Random), of(Routing::LeastOutstanding));
        let one_line = erlang_wait(replicas.into(), utilisation) * mean;
        let each = utilisation / (1.0 - utilisation) * mean;
        let said = format!("{one_line} < {shortest:?} < {random:?}, {each}");
        assert!(one_line < shortest.low && shortest.high < random.low, "{said}");
        // Geometric times vary a little less than exponential ones, by a token in a hundred.
        assert!(random.low < each && each < random.high * 1.02, "{said}");
    }
}

mod routers {
    //! What it matters where a call is sent.

    use super::*;

    /// Conversations whose contexts grow turn by turn, on replicas with room for all of them: the part of prompts that was cached.
    fn hit_rate(routing: Routing, replicas: u32) -> f64 {
        let model = model();
        let limits = Limits { prefix_cache: true, ..Limits::new(64, BUDGET, Kv::new(20_000, 16)) };
        let spec = fleet(
            pool(&model, limits, replicas, routing),
            vec![ClassSpec { judged: Judged::EachTurn, ..class(0) }],
        );
        let conversations = (0..60u64).map(|session| {
            let mut said = vec![Segment { id: 1 << 40, tokens: 64 }];
            let mut turns = VecDeque::new();
            for turn in 0..8 {
                let (own, output) = (100 + session % 7, 50 + turn * 3);
                let name = 1 + session * 100 + turn;
                let mut wanted = Wanted::new(own, output);
                wanted.prompt += said.iter().map(|s| s.tokens).sum::<u64>();
                let content = Content { shared: said.clone(), own: Some(name) };
                wanted.content = Some(Arc::new(content));
                said.push(Segment { id: name, tokens: own + output });
                turns.push_back(TaskStep::Calls(vec![Call { wanted, route: None }]));
                turns.push_back(TaskStep::Wait(3 * SECOND + session * 17 * MS));
            }
            let steps = TaskSteps::Many(turns);
            Task { at: session * 130 * MS, class: 0, session, whole: true, steps }
        });
        let (told, _) = day(&spec, conversations);
        assert_eq!(told.tasks.len(), 480);
        let sum = |of: fn(&TaskOutcome) -> u64| told.tasks.iter().map(of).sum::<u64>() as f64;
        sum(|task| task.cached) / sum(|task| task.prompt)
    }

    /// Spread over more replicas a conversation meets strangers, unless somebody knows where it was.
    #[test]
    fn conversations_are_found_again() {
        let affinity = Routing::PrefixAffinity { slack: 16 };
        let alone = hit_rate(Routing::RoundRobin, 1);
        let [spread, found, kept] =
            [Routing::RoundRobin, affinity, Routing::Session].map(|r| hit_rate(r, 8));
        let said = format!("{alone:.3} alone, {spread:.3} spread, {found:.3} and {kept:.3} kept");
        assert!(alone > 0.7 && spread < alone - 0.3, "{said}");
        // But for the common beginning, which each replica reads once.
        assert!(found > alone - 0.03 && kept > alone - 0.03, "{said}");
    }

    /// The 95th percentile of first tokens, in seconds, of short requests among a few long ones.
    fn ttft_p95(routing: Routing, staleness: u64) -> f64 {
        let model = model();
        let pool = pool(&model, Limits::new(8, 2048, Kv::new(4_000, 16)), 8, routing);
        let spec = fleet(PoolSpec { staleness, ..pool }, vec![class(0)]);
        let mut draw = Seed::new(3).stream("day");
        let mut at = 0.0;
        let tasks = (0..6_000).map(|_| {
            at += draw.exponential() / 30.0;
            let long = draw.uniform() < 0.1;
            let output = if long { 1500.0 } else { 100.0 } * (0.5 + draw.uniform());
            ask((at * 1e12) as u64, if long { 4000 } else { 300 }, output as u64)
        });
        let (told, _) = day(&spec, tasks);
        let firsts: Vec<f64> =
            told.tasks.iter().map(|task| task.ttft.expect("a token") as f64 / 1e12).collect();
        quantile(&firsts, 0.95).expect("firsts")
    }

    #[test]
    fn the_least_busy_is_the_best_place() {
        let least = ttft_p95(Routing::LeastOutstanding, 0);
        let random = ttft_p95(Routing::Random, 0);
        let in_turn = ttft_p95(Routing::RoundRobin, 0);
        let said = format!("{least:.3} least, {in_turn:.3} in turn, {random:.3} at random");
        assert!(least < 0.8 * in_turn && least < 0.8 * random, "{said}");
    }

    /// Whoever looks only now and then sends everybody to the replica that was the least busy then.
    #[test]
    fn a_stale_view_herds() {
        let fresh = ttft_p95(Routing::LeastOutstanding, 0);
        let [some, stale] =
            [SECOND, 5 * SECOND].map(|age| ttft_p95(Routing::LeastOutstanding, age));
        let said = format!("{fresh:.3} fresh, {some:.3} after 1 s, {stale:.3} after 5 s");
        assert!(fresh < some && some < stale && 2.0 * fresh < stale, "{said}");
    }

    /// Everybody has the same prefix: without bounds the replica that has it gets them all; with a slack, no more than that above the others.
    #[test]
    fn slack_spreads_what_is_common() {
        let model = model();
        let limits = Limits { prefix_cache: true, ..Limits::new(64, BUDGET, Kv::new(20_000, 16)) };
        for (slack, least, most) in [(u64::MAX, 200, 200), (4, 20, 35)] {
            let routing = Routing::PrefixAffinity { slack };
            let spec = fleet(pool(&model, limits, 8, routing), vec![class(0)]);
            let shared = vec![Segment { id: 1, tokens: 2000 }];
            let content = Some(Arc::new(Content { shared, own: None }));
            let tasks = (0..200).map(|i| {
                let wanted = Wanted { content: content.clone(), ..Wanted::new(2100, 2000) };
                task(SECOND * u64::from(i > 0) + i * MS, 0, TaskSteps::One(wanted))
            });
            let (told, _) = day(&spec, tasks);
            let mut by_replica = BTreeMap::new();
            for tried in &told.tried {
                *by_replica.entry(tried.replica).or_insert(0) += 1;
            }
            let hottest = by_replica.values().copied().max().expect("replicas");
            assert!((least..=most).contains(&hottest), "{by_replica:?} with a slack of {slack}");
        }
    }
}

mod clients {
    //! What clients do, worked by hand. A prompt of 100 tokens takes a step of time S.

    use super::*;

    const POOL: Target = Target::Pool(0);
    const PROVIDER: Target = Target::Provider(0);

    /// A replica that serves one at a time is asked four times at once: what bounds its line turns away, when it comes to the next step. Whoever finds a seat does not
    /// count as waiting for it.
    #[test]
    fn a_line_is_bounded() {
        let model = model();
        let s = reads(&model, 100);
        let check = |queue: Queue, expected: &[(TaskEnd, u64, u64)]| {
            let spec = fleet(PoolSpec { queue, ..one_at_a_time(&model, 1) }, vec![class(0)]);
            let (told, _) = day(&spec, (0..4).map(|at| ask(at, 100, 1)));
            assert_eq!(told.rows(), expected, "{queue:?}");
        };
        check(
            Queue { requests: Some(1), tokens: None },
            &[(Completed, 0, s), (Refused, 3, s), (Completed, 1, 2 * s), (Completed, 2, 3 * s)],
        );
        check(
            Queue { requests: Some(0), tokens: None },
            &[(Completed, 0, s), (Refused, 2, s), (Refused, 3, s), (Completed, 1, 2 * s)],
        );
        // A hundred tokens may wait, and then nobody else; a hundred and one let one more in.
        check(
            Queue { requests: None, tokens: Some(100) },
            &[(Completed, 0, s), (Refused, 2, s), (Refused, 3, s), (Completed, 1, 2 * s)],
        );
        check(
            Queue { requests: None, tokens: Some(101) },
            &[(Completed, 0, s), (Refused, 3, s), (Completed, 1, 2 * s), (Completed, 2, 3 * s)],
        );
    }

    /// The second in line is too late in the middle of its step. Its engine is done with that all the same, and it is charged.
    #[test]
    fn a_deadline_passes() {
        let model = model();
        let s = reads(&model, 100);
        let classes = vec![ClassSpec { deadline: Some(s + s / 2), ..class(0) }];
        let spec = fleet(one_at_a_time(&model, 1), classes);
        let (told, _) = day(&spec, [ask(0, 100, 1), ask(0, 100, 1), ask(s, 100, 1)]);
        // The third is served from 2 S on, and has until 2.5 S.
        assert_eq!(
            told.rows(),
            [(Completed, 0, s), (TooLate, 0, s + s / 2), (TooLate, s, 2 * s + s / 2)]
        );
        let charged: Vec<_> = told
            .tried
            .iter()
            .map(|t| (t.end, t.outcome.map(|o| (o.end, o.read, o.output, o.done))))
            .collect();
        let served = |at: u64| Some((End::Completed, 100, 1, at));
        assert_eq!(
            charged,
            [
                (AttemptEnd::Answered, served(s)),
                (AttemptEnd::GivenUp, served(2 * s)),
                (AttemptEnd::GivenUp, served(3 * s)),
            ]
        );
    }

    /// A deadline that passes elsewhere than in an engine: at a tool, while time passes, on the way back.
    #[test]
    fn a_deadline_passes_anywhere() {
        let model = model();
        let mut spec =
            fleet(one_at_a_time(&model, 1), vec![ClassSpec { deadline: Some(SECOND), ..class(0) }]);
        spec.ways = vec![vec![Some(SECOND * 3 / 5)]];
        spec.tools = vec![tool(2.0)];
        let (told, _) = day(
            &spec,
            [
                task(0, 0, steps([TaskStep::Tool(0)])),
                task(0, 0, steps([TaskStep::Wait(2 * SECOND)])),
                ask(0, 100, 1),
            ],
        );
        let late = (TooLate, 0, SECOND);
        assert_eq!(told.rows(), [late, late, late]);
        // It was answered, but nobody saw that.
        assert_eq!(told.tasks[2].ttft, None);
    }

    /// Somebody else is served for a long time. An attempt takes a millisecond until its client has had enough; pauses are 10, 20 and, where 30 is the most, 30.
    #[test]
    fn attempts_time_out_and_pauses_double() {
        let model = model();
        let retries = RetrySpec {
            attempts: 4,
            backoff: 10 * MS,
            backoff_max: 30 * MS,
            timeout: Some(MS),
            ..RETRIES
        };
        let classes = vec![class(0), ClassSpec { retries: Some(retries), ..class(0) }];
        let spec = fleet(one_at_a_time(&model, 1), classes);
        let busy = ask(0, 100, 100);
        let (told, _) = day(&spec, [busy, task(5, 1, TaskSteps::One(Wanted::new(100, 1)))]);
        let given_up = |sent| (POOL, AttemptEnd::GivenUp, 5 + sent * MS);
        let attempts = told.attempts();
        assert_eq!(attempts[..4], [given_up(0), given_up(11), given_up(32), given_up(63)]);
        assert_eq!(told.rows()[0], (TimedOut, 5, 5 + 64 * MS));
        assert_eq!((told.tasks[0].calls, told.tasks[0].attempts), (1, 4));
    }

    /// Half a retry is saved up by each first attempt, and a whole one is spent.
    #[test]
    fn retries_have_a_budget() {
        let model = model();
        let retries = RetrySpec { budget: Some(0.5), ..RETRIES };
        let classes = vec![ClassSpec { retries: Some(retries), ..class_to(&[PROVIDER]) }];
        let mut spec = fleet(one_at_a_time(&model, 1), classes);
        spec.providers = vec![provider()];
        let what = Mishap::ProviderOutage(0);
        spec.incidents = vec![Incident { at: 0, lasts: None, what }];
        let (told, _) = day(&spec, (1..=4).map(|i| ask(i * SECOND, 100, 1)));
        let attempts: Vec<u32> = told.tasks.iter().map(|task| task.attempts).collect();
        assert_eq!(attempts, [1, 2, 1, 2]);
        let ended = told.rows();
        assert_eq!(ended[0], (Refused, SECOND, SECOND));
        assert_eq!(ended[1], (Refused, 2 * SECOND, 2 * SECOND + 100 * MS));
    }

    /// A user leaves a picosecond before the fourth token: the engine learns of it when that is there. What was read and written is charged.
    #[test]
    fn a_user_leaves() {
        let model = model();
        let tokens = tokens(&model, 100, 50);
        let leaves = tokens[3] - 1;
        let classes =
            vec![ClassSpec { leaves: Some((1.0, constant(leaves as f64 / 1e12))), ..class(0) }];
        let spec = fleet(one_at_a_time(&model, 1), classes);
        let (told, _) = day(&spec, [ask(0, 100, 50)]);
        assert_eq!(told.rows(), [(Left, 0, leaves)]);
        let outcome = told.tried[0].outcome.expect("an outcome");
        assert_eq!(told.tried[0].end, AttemptEnd::GivenUp);
        assert_eq!((outcome.end, outcome.read, outcome.output), (End::TimedOut, 100, 4));
        assert_eq!((outcome.first, outcome.done), (Some(tokens[0]), tokens[3]));
    }

    /// A pool whose line is full, one that has nobody, a provider: one after the other, at the same instant.
    #[test]
    fn who_is_turned_away_falls_back() {
        let model = model();
        let s = reads(&model, 100);
        let queue = Queue { requests: Some(0), tokens: None };
        let chain = [POOL, Target::Pool(1), PROVIDER];
        let mut spec =
            fleet(PoolSpec { queue, ..one_at_a_time(&model, 1) }, vec![class_to(&chain)]);
        spec.pools.push(one_at_a_time(&model, 0));
        spec.providers = vec![provider()];
        let (told, _) = day(&spec, [ask(0, 100, 1), ask(1, 100, 1), ask(2, 100, 3)]);
        assert_eq!(
            told.rows(),
            [(Completed, 0, s), (Completed, 1, 2 * s), (Completed, 2, s + 700 * MS)]
        );
        let expected = [
            (POOL, AttemptEnd::Answered, 0),
            (POOL, AttemptEnd::Refused, 2),
            (Target::Pool(1), AttemptEnd::NobodyThere, s),
            (POOL, AttemptEnd::Answered, 1),
            (PROVIDER, AttemptEnd::Answered, s),
        ];
        assert_eq!(told.attempts(), expected);
        let last = told.tasks[2];
        assert_eq!((last.calls, last.attempts, last.ttft), (1, 3, Some(s - 2 + 500 * MS)));
    }

    /// A replica fails. Who has not seen a token is served elsewhere at once; who has must ask again, and does where it may.
    #[test]
    fn who_is_lost_falls_back_until_it_sees_a_token() {
        let model = model();
        let tokens = tokens(&model, 100, 3);
        let check = |fails: u64,
                     retries: Option<RetrySpec>,
                     expected: (TaskEnd, u64),
                     tries: &[(Target, AttemptEnd, u64)]| {
            let classes = vec![ClassSpec { retries, ..class_to(&[POOL, PROVIDER]) }];
            let mut spec = fleet(one_at_a_time(&model, 1), classes);
            spec.providers = vec![provider()];
            let what = Mishap::Replicas(0, 1);
            spec.incidents = vec![Incident { at: fails, lasts: None, what }];
            let (told, _) = day(&spec, [ask(0, 100, 3)]);
            assert_eq!(told.rows(), [(expected.0, 0, expected.1)], "fails at {fails}");
            assert_eq!(told.attempts(), tries, "fails at {fails}");
        };
        let (before, after) = (tokens[0] - 1, tokens[0] + 1);
        let lost = (POOL, AttemptEnd::Lost, 0);
        let elsewhere = |at| (PROVIDER, AttemptEnd::Answered, at);
        check(before, None, (Completed, before + 700 * MS), &[lost, elsewhere(before)]);
        check(after, None, (Lost, after), &[lost]);
        // It comes again after its pause, finds nobody, and falls back from there.
        let again = after + 100 * MS;
        let nobody = (POOL, AttemptEnd::NobodyThere, again);
        let (retries, ended) = (Some(RETRIES), (Completed, again + 700 * MS));
        check(after, retries, ended, &[lost, nobody, elsewhere(again)]);
    }

    /// While something is wrong elsewhere, all of a route goes where it is shifted to.
    #[test]
    fn routes_shift_while_something_is_wrong() {
        let model = model();
        let mut own = class(0);
        own.routes[0].shift = Some((PROVIDER, 1.0));
        let mut spec = fleet(one_at_a_time(&model, 1), vec![own]);
        spec.providers = vec![provider()];
        let what = Mishap::Elsewhere;
        spec.incidents = vec![Incident { at: SECOND, lasts: Some(SECOND), what }];
        let (told, _) = day(&spec, [0, 1500 * MS, 2500 * MS].map(|at| ask(at, 100, 1)));
        let targets: Vec<Target> = told.tried.iter().map(|tried| tried.target).collect();
        assert_eq!(targets, [POOL, PROVIDER, POOL]);
    }

    /// What cannot be is so at once, and nobody tries again.
    #[test]
    fn what_is_too_long_is_not_tried_again() {
        let model = model();
        let classes = vec![ClassSpec { retries: Some(RETRIES), ..class(0) }];
        let spec = fleet(one_at_a_time(&model, 1), classes);
        let (told, _) = day(&spec, [ask(3, 8 * BUDGET, 2)]);
        assert_eq!(told.rows(), [(TooLong, 3, 3)]);
        assert_eq!(told.attempts(), [(POOL, AttemptEnd::TooLong, 3)]);
    }

    /// Stages are judged by the first token of the last, from the beginning; turns each by itself; an agent by its first call. Prompts of 100, 2000 and 100 tokens, and
    /// a second between them.
    #[test]
    fn tasks_are_judged() {
        let model = model();
        let (short, long) = (reads(&model, 100), reads(&model, 2000));
        let check = |judged: Judged, expected: &[(u64, u64, u64)]| {
            let spec = fleet(one_at_a_time(&model, 1), vec![ClassSpec { judged, ..class(0) }]);
            let wait = || TaskStep::Wait(SECOND);
            let all = [call(100, 1), wait(), call(2000, 1), wait(), call(100, 1)];
            let (told, _) = day(&spec, [task(0, 0, steps(all))]);
            let rows: Vec<_> = told
                .tasks
                .iter()
                .map(|task| (task.began, task.ttft.expect("a token"), task.ended))
                .collect();
            assert_eq!(rows, expected, "{judged:?}");
        };
        let end = 2 * SECOND + 2 * short + long;
        check(Judged::Answer, &[(0, end, end)]);
        check(Judged::FirstCall, &[(0, short, end)]);
        let (second, third) = (SECOND + short, 2 * SECOND + short + long);
        check(
            Judged::EachTurn,
            &[(0, short, short), (second, long, second + long), (third, short, end)],
        );
    }

    /// Calls that are made at once are over with the last of them; an answer shows its first token when all have theirs.
    #[test]
    fn calls_at_once() {
        let model = model();
        let (short, long) = (reads(&model, 100), reads(&model, 2000));
        let both = [100, 2000].map(|prompt| Call { wanted: Wanted::new(prompt, 1), route: None });
        let at_once = TaskStep::Calls(both.to_vec());
        let none = TaskStep::Calls(Vec::new());
        let spec = fleet(one_at_a_time(&model, 1), vec![class(0)]);
        let (told, _) = day(&spec, [task(0, 0, steps([at_once, none, call(100, 1)]))]);
        let end = 2 * short + long;
        assert_eq!(told.rows(), [(Completed, 0, end)]);
        let told = told.tasks[0];
        assert_eq!((told.calls, told.attempts, told.ttft), (3, 3, Some(end)));
        assert_eq!((told.prompt, told.output, told.waited), (2200, 3, short));
    }

    fn tool(latency: f64) -> ToolSpec {
        ToolSpec { latency: constant(latency), at_once: None, between: None, failure: 0.0 }
    }

    /// A tool that always fails after two seconds is called again after 100 ms and after 200 ms, and then no more; the next tool begins to count anew.
    #[test]
    fn tools_are_called_again() {
        let model = model();
        let retries = RetrySpec { attempts: 3, ..RETRIES };
        let classes = vec![ClassSpec { retries: Some(retries), ..class(0) }];
        let mut spec = fleet(one_at_a_time(&model, 0), classes);
        spec.tools = vec![ToolSpec { failure: 1.0, ..tool(2.0) }];
        let (told, _) = day(&spec, [task(0, 0, steps([TaskStep::Tool(0)]))]);
        let at: Vec<u64> = told.tools.iter().map(|used| used.at / MS).collect();
        assert_eq!(at, [0, 2100, 4300]);
        assert_eq!((told.tasks[0].end, told.tasks[0].ended / MS), (ToolFailed, 6300));
    }

    /// A tool with one place takes two seconds, and nobody waits longer than one and a half: who is inside then keeps its place to the end, so the second waits
    /// in vain and the third, who comes at two, finds it free.
    #[test]
    fn who_gives_up_on_a_tool_is_told() {
        let model = model();
        let classes = vec![ClassSpec { deadline: Some(1500 * MS), ..class(0) }];
        let mut spec = fleet(one_at_a_time(&model, 0), classes);
        spec.tools = vec![ToolSpec { at_once: Some(1), ..tool(2.0) }];
        let calls = [0, 400, 2000].map(|at| task(at * MS, 0, steps([TaskStep::Tool(0)])));
        let (told, _) = day(&spec, calls);
        let used = |at: u64, waited: u64, took: u64| ToolUse {
            class: 0,
            at: at * MS,
            waited: waited * MS,
            took: took * MS,
            failed: false,
            given_up: true,
        };
        assert_eq!(told.tools, [used(0, 0, 2000), used(400, 1500, 0), used(2000, 0, 2000)]);
        assert!(told.tasks.iter().all(|task| task.end == TooLate), "{:?}", told.tasks);
    }

    /// Calls of a tool at instants, and how long each waited, took and whether it failed, in the order in which they are over. Tasks end with them.
    #[test]
    fn tools() {
        let model = model();
        let check = |what: &str,
                     tool: ToolSpec,
                     outage: Option<(u64, u64)>,
                     calls: &[u64],
                     expected: &[(u64, u64, u64, bool)]| {
            let mut spec = fleet(one_at_a_time(&model, 0), vec![class(0)]);
            spec.tools = vec![tool];
            let incident = outage.map(|(at, lasts)| Incident {
                at: at * MS,
                lasts: Some(lasts * MS),
                what: Mishap::ToolOutage(0),
            });
            spec.incidents = incident.into_iter().collect();
            let tasks = calls.iter().map(|at| task(at * MS, 0, steps([TaskStep::Tool(0)])));
            let (told, _) = day(&spec, tasks);
            let used: Vec<_> = told
                .tools
                .iter()
                .map(|used| (used.at / MS, used.waited / MS, used.took / MS, used.failed))
                .collect();
            assert_eq!(used, expected, "{what}");
            for (task, used) in told.tasks.iter().zip(&told.tools) {
                let end = if used.failed { ToolFailed } else { Completed };
                assert_eq!(
                    (task.end, task.ended),
                    (end, used.at + used.waited + used.took),
                    "{what}"
                );
            }
        };
        let two = tool(2.0);
        let ok = |at, waited| (at, waited, 2000, false);
        check("free", two.clone(), None, &[0, 0], &[ok(0, 0), ok(0, 0)]);
        let one = ToolSpec { at_once: Some(1), ..two.clone() };
        check(
            "one",
            one.clone(),
            None,
            &[0, 500, 1000],
            &[ok(0, 0), ok(500, 1500), ok(1000, 3000)],
        );
        let rate = ToolSpec { between: Some(SECOND), ..two.clone() };
        check(
            "rate",
            rate,
            None,
            &[0, 0, 0, 5000],
            &[ok(0, 0), ok(0, 1000), ok(0, 2000), ok(5000, 0)],
        );
        let fails = ToolSpec { failure: 1.0, ..two };
        check("fails", fails, None, &[7], &[(7, 0, 2000, true)]);
        // It is out from 1 to 3 seconds: who waits fails then, who comes does at once, who was inside when it would have been answered.
        check(
            "out",
            one,
            Some((1000, 2000)),
            &[0, 500, 1500, 3000],
            &[(500, 500, 0, true), (1500, 0, 0, true), (0, 0, 2000, true), ok(3000, 0)],
        );
    }

    /// A provider's limits: what calls of 100 prompt tokens meet at instants, in seconds, with what they were told to wait, in the order in which they are over.
    #[test]
    fn a_provider_has_limits() {
        use AttemptEnd::{Answered, TooLong as Never};
        let model = model();
        type Row = (u64, AttemptEnd, Option<u64>);
        let refused = AttemptEnd::Refused;
        let check =
            |what: &str, provider: ProviderSpec, calls: &[(u64, u64, u64)], expected: &[Row]| {
                let mut spec = fleet(one_at_a_time(&model, 1), vec![class_to(&[PROVIDER])]);
                spec.providers = vec![provider];
                let tasks = calls.iter().map(|(at, output, limit)| {
                    let wanted = Wanted { limit: Some(*limit), ..Wanted::new(100, *output) };
                    task(at * SECOND, 0, TaskSteps::One(wanted))
                });
                let (told, _) = day(&spec, tasks);
                let rows: Vec<Row> =
                    told.tried.iter().map(|t| (t.sent / SECOND, t.end, t.retry_after)).collect();
                assert_eq!(rows, expected, "{what}");
            };
        // Ten tokens a second: 500 are reserved, 100 are left, 400 take forty seconds. Ten of 400 were used: of 600 there are 490 after the first, and 510 after two
        // seconds, which the third takes.
        let tokens = ProviderSpec { tokens: Some(600), ..provider() };
        check(
            "reserves",
            tokens.clone(),
            &[(0, 10, 400), (0, 10, 400), (2, 10, 400), (2, 10, 400), (3, 10, 501)],
            &[
                (0, refused, Some(40 * SECOND)),
                (0, Answered, None),
                (2, refused, Some(49 * SECOND)),
                (3, Never, None),
                (2, Answered, None),
            ],
        );
        // Without reserving, outputs count when they are there: three prompts pass at once, and then 300 of 600 are left, less 3 times 50.
        let after = ProviderSpec { reserves: false, ..tokens };
        check(
            "settles",
            after,
            &[(0, 50, 400), (0, 50, 400), (0, 50, 400), (7, 50, 400), (7, 50, 400), (7, 50, 400)],
            &[
                (0, Answered, None),
                (0, Answered, None),
                (0, Answered, None),
                (7, refused, Some(8 * SECOND)),
                (7, Answered, None),
                (7, Answered, None),
            ],
        );
        let calls = ProviderSpec { calls: Some(2), ..provider() };
        check(
            "calls",
            calls,
            &[(0, 1, 1), (0, 1, 1), (0, 1, 1), (30, 1, 1)],
            &[
                (0, refused, Some(30 * SECOND)),
                (0, Answered, None),
                (0, Answered, None),
                (30, Answered, None),
            ],
        );
        let output = ProviderSpec { output: Some(600), ..provider() };
        check(
            "outputs",
            output,
            &[(0, 1, 600), (0, 1, 6), (1, 1, 599), (1, 1, 601)],
            &[
                (0, refused, Some(6 * SECOND / 10)),
                (0, Answered, None),
                (1, Never, None),
                (1, Answered, None),
            ],
        );
        let one = ProviderSpec { at_once: Some(1), ..provider() };
        check(
            "one",
            one,
            &[(0, 1, 1), (0, 1, 1), (1, 1, 1)],
            &[(0, refused, None), (0, Answered, None), (1, Answered, None)],
        );
        let fails = ProviderSpec { failure: 1.0, ..provider() };
        check("fails", fails, &[(0, 5, 5)], &[(0, AttemptEnd::Lost, None)]);
    }

    /// Who is told to wait comes again after as long, not after its own pause.
    #[test]
    fn who_is_told_to_wait_does() {
        let model = model();
        let classes = vec![ClassSpec { retries: Some(RETRIES), ..class_to(&[PROVIDER]) }];
        let mut spec = fleet(one_at_a_time(&model, 1), classes);
        spec.providers = vec![ProviderSpec { calls: Some(1), ..provider() }];
        let (told, _) = day(&spec, [ask(0, 100, 1), ask(0, 100, 1)]);
        let minute = 60 * SECOND;
        assert_eq!(told.rows(), [(Completed, 0, 500 * MS), (Completed, 0, minute + 500 * MS)]);
    }

    /// A provider is out from one second on: whoever it was answering is cut off, and falls back where it has not seen a token.
    #[test]
    fn a_provider_is_out() {
        let model = model();
        let s = reads(&model, 100);
        let mut spec = fleet(one_at_a_time(&model, 1), vec![class_to(&[PROVIDER, POOL])]);
        spec.providers = vec![provider()];
        let what = Mishap::ProviderOutage(0);
        spec.incidents = vec![Incident { at: SECOND, lasts: Some(SECOND), what }];
        let asks = [
            ask(0, 100, 9),
            ask(600 * MS, 100, 1),
            ask(1500 * MS, 100, 1),
            ask(2 * SECOND, 100, 1),
        ];
        let (told, _) = day(&spec, asks);
        assert_eq!(
            told.rows(),
            [
                (Lost, 0, SECOND),
                (Completed, 600 * MS, SECOND + s),
                (Completed, 1500 * MS, 1500 * MS + s),
                (Completed, 2 * SECOND, 2500 * MS),
            ]
        );
        let outcome = told.tried[0].outcome.expect("an outcome");
        assert_eq!((outcome.end, outcome.read, outcome.output), (End::TimedOut, 100, 6));
    }
}

mod places {
    //! Regions, links, and what happens to replicas, worked by hand. A prompt of 100 tokens takes a step of time S.

    use super::*;

    /// Two prompts are read in one step and handed over at a millisecond a token, one after the other. Whoever generates reads the last token of each.
    #[test]
    fn two_calls_queue_on_a_link() {
        let model = model();
        let mut both = StepLoad::default();
        both.add_chunk(100, 0);
        both.add_chunk(100, 0);
        let (read, first) = (model.step(&both), reads_after(&model, 1, 99));
        let limits = Limits::new(2, BUDGET, Kv::new(8, BUDGET));
        let reading = pool(&model, limits, 1, Routing::RoundRobin);
        let hands_over = Some(HandOver { to: 1, per_token: MS, window: None, per_call: 0 });
        let mut spec = fleet(PoolSpec { hands_over, ..reading }, vec![class(0)]);
        spec.pools.push(one_at_a_time(&model, 1));
        let (told, ended) = day(&spec, [ask(0, 100, 1), ask(0, 100, 1)]);
        let (one, two) = (read + 100 * MS + first, read + 200 * MS + first);
        assert_eq!(told.rows(), [(Completed, 0, one), (Completed, 0, two)]);
        assert_eq!((ended.attempts, told.tasks[0].attempts), (4, 1));
        // Each place tells its own part.
        let parts: Vec<_> = told
            .tried
            .iter()
            .filter_map(|t| t.outcome)
            .map(|o| (o.arrived, o.read, o.output))
            .collect();
        assert_eq!(
            parts,
            [(0, 100, 1), (0, 100, 1), (read + 100 * MS, 1, 1), (read + 200 * MS, 1, 1)]
        );
    }

    /// Of a window only its last tokens are handed over; a state is, however long the prompt.
    #[test]
    fn windows_and_states_are_handed_over() {
        let model = model();
        let over = HandOver { to: 1, per_token: MS, window: Some((40, 2 * MS)), per_call: 5 * MS };
        let reading = PoolSpec { hands_over: Some(over), ..one_at_a_time(&model, 1) };
        let mut spec = fleet(reading, vec![class(0)]);
        spec.pools.push(one_at_a_time(&model, 1));
        for (prompt, link) in [(100, 185 * MS), (10, 35 * MS)] {
            let (told, _) = day(&spec, [ask(0, prompt, 1)]);
            let end = reads(&model, prompt) + link + reads_after(&model, 1, prompt - 1);
            assert_eq!(told.rows(), [(Completed, 0, end)]);
        }
    }

    /// A user who leaves while its keys and values are handed over has made two attempts, of which one was answered.
    #[test]
    fn a_user_leaves_on_the_link() {
        let model = model();
        let s = reads(&model, 100);
        let hands_over = Some(HandOver { to: 1, per_token: MS, window: None, per_call: 0 });
        let classes = vec![ClassSpec { deadline: Some(s + MS), ..class(0) }];
        let mut spec = fleet(PoolSpec { hands_over, ..one_at_a_time(&model, 1) }, classes);
        spec.pools.push(one_at_a_time(&model, 1));
        let (told, ended) = day(&spec, [ask(0, 100, 1)]);
        assert_eq!(told.rows(), [(TooLate, 0, s + MS)]);
        let expected =
            [(Target::Pool(0), AttemptEnd::Answered, 0), (Target::Pool(1), AttemptEnd::GivenUp, 0)];
        assert_eq!((told.attempts(), ended.attempts), (expected.to_vec(), 2));
    }

    /// Users in one place, replicas in two others, a tenth and a fifth of a second away. The nearer is lost after a second, for ten.
    #[test]
    fn the_nearest_region_that_has_somebody() {
        let model = model();
        let s = reads(&model, 100);
        let pool = PoolSpec { regions: vec![0, 1], ..one_at_a_time(&model, 2) };
        let mut spec = fleet(pool, vec![ClassSpec { region: 2, ..class(0) }]);
        let (near, far) = (100 * MS, 200 * MS);
        spec.ways = vec![vec![], vec![], vec![Some(near), Some(far), Some(0)]];
        spec.incidents =
            vec![Incident { at: SECOND, lasts: Some(10 * SECOND), what: Mishap::Region(0) }];
        let at = [0, 950 * MS, 2 * SECOND, 12 * SECOND];
        let (told, _) = day(&spec, at.map(|at| ask(at, 100, 1)));
        let expected = [
            // There and back.
            at[0] + 2 * near + s,
            // It was on its way when the region was lost, and goes on to the other from there.
            at[1] + near + 2 * far + s,
            at[2] + 2 * far + s,
            at[3] + 2 * near + s,
        ];
        let mut ended: Vec<u64> = told.tasks.iter().map(|task| task.ended).collect();
        ended.sort_unstable();
        assert_eq!(ended, expected);
        assert_eq!(told.tasks[0].ttft, Some(2 * near + s));
        assert!(told.tasks.iter().all(|task| task.attempts == 1));
    }

    /// No way leads there.
    #[test]
    fn a_region_out_of_reach() {
        let model = model();
        let mut spec = fleet(one_at_a_time(&model, 1), vec![class(0)]);
        spec.ways = vec![vec![None]];
        let (told, _) = day(&spec, [ask(3, 100, 1)]);
        assert_eq!(told.rows(), [(Refused, 3, 3)]);
        assert_eq!(told.attempts(), [(Target::Pool(0), AttemptEnd::NobodyThere, 3)]);
    }

    /// A phase of constant time, the share of starts at which it is done, and its time then.
    /// Twelve replicas in two regions with three zones, or nodes of three, each: what is lost of them is all in one region. Everybody has one call.
    #[test]
    fn what_is_lost_is_in_one_region() {
        let model = model();
        let pool = PoolSpec {
            regions: vec![0, 1],
            zones: 3,
            per_node: 3,
            ..pool(&model, single_server(), 12, Routing::RoundRobin)
        };
        let mut spec = fleet(pool, vec![class(0), ClassSpec { region: 1, ..class(0) }]);
        spec.ways = vec![vec![Some(0), Some(MS)], vec![Some(MS), Some(0)]];
        let mut check = |what: Mishap, expected: &[usize]| {
            spec.incidents = vec![Incident { at: 1, lasts: Some(SECOND), what }];
            let calls = (0..12).map(|i| task(0, i % 2, TaskSteps::One(Wanted::new(100, 1))));
            let (told, ended) = day(&spec, calls);
            let lost = told.tried.iter().filter(|t| t.end == AttemptEnd::Lost);
            let mut lost: Vec<usize> = lost.filter_map(|t| t.replica).collect();
            lost.sort_unstable();
            assert_eq!(lost, expected);
            assert_eq!(ended.pools[0].failed as usize, expected.len());
        };
        check(Mishap::Zones(0, 1), &[0, 6]);
        check(Mishap::Zones(0, 2), &[0, 1, 6, 7]);
        check(Mishap::Nodes(0, 1), &[0, 2, 4]);
    }

    fn phase(seconds: f64, done: f64, when_done: Option<f64>) -> Phase {
        Phase { seconds: constant(seconds), done, seconds_when_done: when_done.map(constant) }
    }

    /// A replica fails after a second and is repaired after five. It starts in 2 seconds, half of one and none, what would take 3 and 4 being done, and waits one for its
    /// devices. Whoever comes while it is repaired finds nobody; while it starts, somebody who waits for it.
    #[test]
    fn a_replica_fails_and_starts_again() {
        let model = model();
        let s = reads(&model, 100);
        let mut pool = one_at_a_time(&model, 1);
        let phases = [phase(2.0, 0.0, None), phase(3.0, 1.0, Some(0.5)), phase(4.0, 1.0, None)];
        pool.startup.phases = phases.to_vec();
        pool.startup.beyond = Some((0, SECOND));
        let mut spec = fleet(pool, vec![class(0)]);
        let what = Mishap::Replicas(0, 1);
        spec.incidents = vec![Incident { at: SECOND, lasts: Some(5 * SECOND), what }];
        let (told, ended) = day(&spec, [3, 7].map(|at| ask(at * SECOND, 100, 1)));
        let ready = 9 * SECOND + 500 * MS;
        assert_eq!(
            told.rows(),
            [(Refused, 3 * SECOND, 3 * SECOND), (Completed, 7 * SECOND, ready + s)]
        );
        let replicas = [(0, 1, 0), (SECOND, 0, 0), (6 * SECOND, 0, 1), (ready, 1, 0)];
        assert_eq!(told.replicas, replicas);
        let pool = &ended.pools[0];
        assert_eq!((pool.failed, pool.starts.as_slice()), (1, [3500 * MS].as_slice()));
        assert_eq!((pool.least, pool.most), (0, 1));
        let paid = u128::from(SECOND) + u128::from(ended.now - 6 * SECOND);
        assert_eq!(pool.replica_ps, paid);
        assert_eq!(pool.ready_ps, paid - u128::from(3500 * MS));
    }

    /// Whoever is served when its replica fails is lost, and so is whoever waits there; what was read and written is charged.
    #[test]
    fn what_a_replica_had_is_lost() {
        let model = model();
        let tokens = tokens(&model, 100, 50);
        let mut spec = fleet(one_at_a_time(&model, 1), vec![class(0)]);
        let (at, what) = (tokens[9] + 1, Mishap::Replicas(0, 1));
        spec.incidents = vec![Incident { at, lasts: None, what }];
        let (told, _) = day(&spec, [ask(0, 100, 50), ask(1, 100, 50)]);
        assert_eq!(told.rows(), [(Lost, 0, at), (Lost, 1, at)]);
        let charged: Vec<_> = told
            .tried
            .iter()
            .map(|t| t.outcome.map(|o| (o.read, o.output, o.first, o.done)))
            .collect();
        // The eleventh token was being computed.
        assert_eq!(charged, [Some((100, 11, Some(tokens[0]), at)), Some((0, 0, None, at))]);
    }

    /// A replica is reclaimed after a second, with notice: another is started at once. What it has it finishes, where there is time.
    #[test]
    fn a_replica_is_reclaimed() {
        let model = model();
        let s = reads(&model, 100);
        let long = *tokens(&model, 100, 1000).last().expect("a token");
        assert!((3 * SECOND..9 * SECOND).contains(&long), "{long}");
        let check = |notice: u64, expected: (TaskEnd, u64), gone: u64| {
            let mut pool = one_at_a_time(&model, 1);
            pool.spot = Some(Spot { reclaimed_every: 1e9, notice });
            pool.startup.phases = vec![phase(1.0, 0.0, None)];
            let mut spec = fleet(pool, vec![class(0)]);
            let what = Mishap::Reclaim(0, 1);
            spec.incidents = vec![Incident { at: SECOND, lasts: None, what }];
            let (told, ended) = day(&spec, [ask(0, 100, 1000), ask(10 * SECOND, 100, 1)]);
            let last = (Completed, 10 * SECOND, 10 * SECOND + s);
            assert_eq!(told.rows(), [(expected.0, 0, expected.1), last]);
            let replicas =
                [(0, 1, 0), (SECOND, 0, 1), (SECOND, 0, 2), (2 * SECOND, 1, 1), (gone, 1, 0)];
            assert_eq!(told.replicas, replicas);
            assert_eq!(ended.pools[0].reclaimed, 1);
        };
        check(10 * SECOND, (Completed, long), long);
        check(2 * SECOND, (Lost, 3 * SECOND), 3 * SECOND);
    }

    /// Five replicas that start in a second are replaced two at a time: never fewer than three serve, and it takes three rounds.
    #[test]
    fn an_upgrade_rolls() {
        let model = model();
        let mut pool = one_at_a_time(&model, 5);
        pool.startup.phases = vec![phase(1.0, 0.0, None)];
        let mut spec = fleet(pool, vec![class(0)]);
        let what = Mishap::Upgrade(0, 2);
        spec.incidents = vec![Incident { at: SECOND, lasts: None, what }];
        let (told, ended) = day(&spec, [ask(0, 100, 1), ask(10 * SECOND, 100, 1)]);
        let ready = [(0, 5), (1, 3), (3, 4), (4, 5)].map(|(at, n)| (at * SECOND, n));
        assert_eq!(told.ready(), ready);
        assert!(
            told.replicas
                .iter()
                .skip(5)
                .all(|(_, ready, others)| *ready >= 3 && ready + others <= 5)
        );
        assert_eq!((ended.pools[0].upgraded, ended.pools[0].starts.len()), (5, 5));
    }

    /// Adds and removes at once, but for waiting before removing.
    fn scaling(min: u32, max: u32, stabilization: u64) -> ScalingSpec {
        let behaviour = |stabilization| Behaviour {
            tolerance: 0.1,
            stabilization,
            policies: vec![ScalePolicy { change: Change::Replicas(10), period: 15 * SECOND }],
            select: Select::Max,
        };
        ScalingSpec {
            scaling: Scaling {
                min,
                max,
                up: behaviour(0),
                down: behaviour(stabilization),
                activation: None,
            },
            signal: Signal::InFlight,
            target: 2.0,
            kind: TargetKind::AverageValue,
            activation: 0.0,
            period: 15 * SECOND,
            delay: 0,
            floors: Vec::new(),
        }
    }

    fn scaled(model: &StepModel, replicas: u32, scaling: ScalingSpec) -> FleetSpec {
        let limits = Limits::new(64, BUDGET, Kv::new(64, BUDGET));
        let mut pool = pool(model, limits, replicas, Routing::LeastOutstanding);
        pool.startup.phases = vec![phase(10.0, 0.0, None)];
        fleet(PoolSpec { scaling: Some(scaling), ..pool }, vec![class(0)])
    }

    /// Eight long calls come at 20 seconds. At 30 four replicas are asked for, two calls each; three of them are ready at 40, after the calls were sent. The calls are over
    /// in their time, and at the first decision after a minute without a higher wish there is one again.
    #[test]
    fn replicas_follow_the_load() {
        let model = model();
        let spec = scaled(&model, 1, scaling(1, 6, 60 * SECOND));
        let tasks = (0..8).map(|_| ask(20 * SECOND, 100, 6000));
        let (told, ended) = day(&spec, tasks.chain([ask(200 * SECOND, 100, 1)]));
        let over = told.tasks[7].ended;
        let last_wish = over / (15 * SECOND) * 15 * SECOND;
        assert!(over > 40 * SECOND && last_wish < 100 * SECOND, "{over}");
        assert_eq!(told.ready(), [(0, 1), (40 * SECOND, 4), (last_wish + 60 * SECOND, 1)]);
        let pool = &ended.pools[0];
        assert_eq!((pool.ups, pool.downs, pool.flips), (1, 1, 1));
        // It was asked for at the same instant at which it was first seen.
        assert_eq!(
            (pool.lags.as_slice(), pool.starts.as_slice()),
            ([0].as_slice(), [10 * SECOND; 3].as_slice())
        );
    }

    /// What is seen is a delay old: the same a period later.
    #[test]
    fn a_delay_delays() {
        let model = model();
        let spec =
            scaled(&model, 1, ScalingSpec { delay: 15 * SECOND, ..scaling(1, 6, 60 * SECOND) });
        let (told, ended) = day(&spec, (0..8).map(|_| ask(20 * SECOND, 100, 8000)));
        assert_eq!(told.ready(), [(0, 1), (55 * SECOND, 4)]);
        assert_eq!(ended.pools[0].lags, [15 * SECOND]);
    }

    /// Three by the calendar, from 100 seconds on: at the first decision after that.
    #[test]
    fn floors_hold() {
        let model = model();
        let floors = vec![(100 * SECOND, 3), (200 * SECOND, 0)];
        let spec = scaled(&model, 1, ScalingSpec { floors, ..scaling(1, 6, 60 * SECOND) });
        let (told, _) = day(&spec, [ask(400 * SECOND, 100, 1)]);
        let ready = [(0, 1), (115, 3), (255, 1)].map(|(at, n)| (at * SECOND, n));
        assert_eq!(told.ready(), ready);
    }

    /// When fewer are asked for, the one that goes finishes what it has.
    #[test]
    fn who_is_scaled_in_drains() {
        let model = model();
        let long = *tokens(&model, 100, 3000).last().expect("a token");
        let check = |drain: u64, last: TaskEnd| {
            let mut spec = scaled(&model, 2, ScalingSpec { target: 10.0, ..scaling(1, 6, 0) });
            spec.pools[0].drain = drain;
            let (told, ended) =
                day(&spec, [ask(14 * SECOND, 100, 3000), ask(14 * SECOND, 100, 3000)]);
            assert_eq!(told.ready(), [(0, 2), (15 * SECOND, 1)]);
            let ends = [14 * SECOND + long, 15 * SECOND + drain];
            let ended_at = if last == Completed { ends[0] } else { ends[1] };
            let rows = told.rows();
            assert!(rows.contains(&(last, 14 * SECOND, ended_at)), "{rows:?}");
            assert!(rows.contains(&(Completed, 14 * SECOND, ends[0])), "{rows:?}");
            assert_eq!(ended.pools[0].downs, 1);
        };
        assert!(long > 5 * SECOND);
        check(60 * SECOND, Completed);
        check(SECOND, Lost);
    }

    /// Three replicas are being replaced, one at a time, when one is asked for at 15 seconds. The start that is under way is given up, and so is one that serves; the
    /// last is replaced, as was to be.
    #[test]
    fn scaling_in_during_an_upgrade() {
        let model = model();
        let mut spec = scaled(&model, 3, scaling(1, 3, 0));
        let what = Mishap::Upgrade(0, 1);
        spec.incidents = vec![Incident { at: 12 * SECOND, lasts: None, what }];
        let (told, ended) = day(&spec, [ask(100 * SECOND, 100, 1)]);
        let ready = [(0, 3), (12, 2), (15, 0), (25, 1)].map(|(at, n)| (at * SECOND, n));
        assert_eq!(told.ready(), ready);
        assert_eq!((ended.pools[0].starts.len(), ended.pools[0].upgraded), (1, 1));
    }

    /// One of two is being repaired when one is asked for: the one that serves stays, and the other need not come back.
    #[test]
    fn scaling_in_during_a_repair() {
        let model = model();
        let mut spec = scaled(&model, 2, scaling(1, 3, 0));
        let what = Mishap::Replicas(0, 1);
        spec.incidents = vec![Incident { at: 12 * SECOND, lasts: Some(20 * SECOND), what }];
        let (told, ended) = day(&spec, [ask(100 * SECOND, 100, 1)]);
        assert_eq!(told.ready(), [(0, 2), (12 * SECOND, 1)]);
        assert_eq!((ended.pools[0].starts.len(), ended.pools[0].downs), (0, 1));
    }

    /// A zone fails: whoever was there goes to the other, not to a neighbour that fails with it.
    #[test]
    fn what_fails_together_does_not_take_over() {
        let model = model();
        let s = reads(&model, 100);
        let least = pool(&model, single_server(), 4, Routing::LeastOutstanding);
        let pool = PoolSpec { zones: 2, ..least };
        let mut spec = fleet(pool, vec![class_to(&[Target::Pool(0); 2])]);
        let (at, what) = (s / 2, Mishap::Zones(0, 1));
        spec.incidents = vec![Incident { at, lasts: None, what }];
        let (told, _) = day(&spec, (0..2).map(|i| ask(i, 100, 1)));
        // The first and the third replica are in the zone; the second is served by the second, and the first then by the fourth.
        let tried: Vec<_> = told.tried.iter().map(|t| (t.replica, t.end)).collect();
        let expected = [
            (Some(0), AttemptEnd::Lost),
            (Some(1), AttemptEnd::Answered),
            (Some(3), AttemptEnd::Answered),
        ];
        assert_eq!(tried, expected);
    }

    /// A pool that has nobody: calls wait until KEDA looks, sees what was read, and the first replica is there. Whoever leaves in the meantime no longer counts.
    #[test]
    fn from_none_and_back() {
        let model = model();
        let s = reads(&model, 100);
        let activation =
            Some(Activation { polling: 30 * SECOND, cooldown: 60 * SECOND, cooldown_initial: 0 });
        let mut own = scaling(0, 6, 0);
        own.scaling.activation = activation;
        let mut spec = scaled(&model, 0, own);
        spec.classes.push(ClassSpec { deadline: Some(SECOND), ..class(0) });
        let mut both = StepLoad::default();
        both.add_chunk(100, 0);
        both.add_chunk(100, 0);
        let (told, _) = day(
            &spec,
            [
                task(2 * SECOND, 1, TaskSteps::One(Wanted::new(100, 1))),
                ask(35 * SECOND, 100, 1),
                ask(36 * SECOND, 100, 1),
                ask(500 * SECOND, 100, 1),
            ],
        );
        let done = 70 * SECOND + model.step(&both);
        assert_eq!(
            told.rows(),
            [
                (TooLate, 2 * SECOND, 3 * SECOND),
                (Completed, 35 * SECOND, done),
                (Completed, 36 * SECOND, done),
                (Completed, 500 * SECOND, 520 * SECOND + s),
            ]
        );
        // It was active at 60 only, what was read by 120 being nothing: more than a minute after 60 it goes.
        let ready = [(60, 0), (70, 1), (150, 0), (520, 1)].map(|(at, n)| (at * SECOND, n));
        assert_eq!(told.ready(), ready);
    }

    /// Without a line one call is held all the same where nothing runs, or nobody would start anything; the second is turned away.
    #[test]
    fn somebody_wakes_a_pool_without_a_line() {
        let model = model();
        let mut own = scaling(0, 6, 0);
        own.scaling.activation =
            Some(Activation { polling: 30 * SECOND, cooldown: 60 * SECOND, cooldown_initial: 0 });
        let mut spec = scaled(&model, 0, own);
        spec.pools[0].queue.requests = Some(0);
        let (told, _) = day(&spec, [ask(35 * SECOND, 100, 1), ask(36 * SECOND, 100, 1)]);
        assert_eq!(told.attempts()[0], (Target::Pool(0), AttemptEnd::NobodyThere, 36 * SECOND));
        assert_eq!(told.ready()[..2], [(60 * SECOND, 0), (70 * SECOND, 1)]);
    }

    /// Places are filled from the first on, also when replicas come and go, and a hundred thousand of them take no time.
    #[test]
    fn the_first_free_place_is_taken() {
        let model = model();
        let routing = Routing::Session;
        let mut spec = fleet(
            PoolSpec { repair: SECOND, ..pool(&model, single_server(), 100_000, routing) },
            vec![class(0)],
        );
        let loss = |at: u64, count: u32| Incident {
            at: at * SECOND,
            lasts: Some(SECOND),
            what: Mishap::Nodes(0, count),
        };
        // Whoever comes back is in the first places again, where the second loss finds them.
        spec.incidents = vec![loss(1, 3), loss(5, 3)];
        let (told, ended) = day(&spec, [ask(0, 100, 1), ask(9 * SECOND, 100, 1)]);
        assert_eq!(ended.pools[0].failed, 6);
        let ready = told.ready();
        let expected = [(0, 100_000), (1, 99_997), (2, 100_000), (5, 99_997), (6, 100_000)];
        assert_eq!(ready, expected.map(|(at, n)| (at * SECOND, n)));
    }
}
