//! What queueing theory says of an engine: as a single server it is a textbook queue, and whatever it is, its books close.

use crate::support;
use plimsoll_perf::{StepLoad, StepModel};
use plimsoll_sim::{
    Arrival, Budget, End, Ended, Engine, Gauges, Kv, Limits, Loop, Outcome, Pace, PlainReplica,
    Queue, Replica, Speculation, Stretch, Vllm, Wanted, Watch, drive,
};
use plimsoll_stats::{Seed, Stream, mean_interval};
use proptest::prelude::*;

/// One sequence at a time, a step for any prompt, room for any context in a few large blocks: a single server, first come, first served.
fn single_server() -> Limits {
    Limits::new(1, support::BUDGET, Kv::new(8, support::BUDGET))
}

/// What requests ask of the single server.
#[derive(Clone, Copy, Debug)]
enum Service {
    /// A prompt of this length and one token: one step, always as long (M/D/1).
    Constant { prompt: u64 },
    /// One of two prompts, the second with this chance, and one token (M/G/1).
    TwoPrompts { short: u64, long: u64, chance: f64 },
    /// A prompt of one token and an output that goes on with the same chance after every token. Steps being nearly alike, its time is nearly exponential
    /// (M/M/1).
    Geometric { mean: f64 },
}

impl Service {
    fn draw(self, stream: &mut Stream) -> (u64, u64) {
        match self {
            Self::Constant { prompt } => (prompt, 1),
            Self::TwoPrompts { short, long, chance } => {
                (if stream.uniform() < chance { long } else { short }, 1)
            }
            Self::Geometric { mean } => {
                let tokens = libm::log(stream.uniform_positive()) / libm::log(1.0 - 1.0 / mean);
                (1, tokens as u64 + 1)
            }
        }
    }

    /// The mean of the service time and of its square, in seconds, from the times of steps: not nearly, but exactly those of what is drawn.
    fn moments(self, model: &StepModel) -> (f64, f64) {
        let step = |load: &dyn Fn(&mut StepLoad)| {
            let mut carried = StepLoad::default();
            load(&mut carried);
            model.step(&carried) as f64 / 1e12
        };
        let reads = |prompt: u64| step(&|load| load.add_chunk(prompt, 0));
        let of = |cases: &[(f64, f64)]| {
            let mean = cases.iter().map(|(p, time)| p * time).sum();
            (mean, cases.iter().map(|(p, time)| p * time * time).sum())
        };
        match self {
            Self::Constant { prompt } => of(&[(1.0, reads(prompt))]),
            Self::TwoPrompts { short, long, chance } => {
                of(&[(1.0 - chance, reads(short)), (chance, reads(long))])
            }
            Self::Geometric { mean } => {
                let (mut time, mut chance, mut cases) = (reads(1), 1.0 / mean, Vec::new());
                // Until what is left out is nothing beside the rest.
                for tokens in 1..=(60.0 * mean) as u64 {
                    cases.push((chance, time));
                    chance *= 1.0 - 1.0 / mean;
                    time += step(&|load| load.add_decode(1 + tokens));
                }
                of(&cases)
            }
        }
    }
}

/// Waiting times as they come, without those of the beginning, when nobody had come yet.
struct Waits {
    skipped: u64,
    sum: u64,
    count: u64,
}

impl Watch for Waits {
    fn over(&mut self, outcome: &Outcome) {
        if outcome.serial >= self.skipped {
            self.sum += outcome.scheduled.expect("it was served") - outcome.arrived;
            self.count += 1;
        }
    }
}

const RUNS: u64 = 30;

/// The mean wait of independent runs at this utilisation is what Pollaczek and Khinchine say it is, λ E[S²] / 2 (1 - ρ), within an interval of 99.9% that
/// is no wider than 6% to either side.
fn check<E: Engine>(
    engine: impl Fn() -> E,
    model: &StepModel,
    service: Service,
    utilisation: f64,
    requests: u64,
) {
    let (mean, square) = service.moments(model);
    let rate = utilisation / mean;
    let expected = rate * square / (2.0 * (1.0 - utilisation));
    let waits: Vec<f64> = (0..RUNS)
        .map(|run| {
            let seed = Seed::new(11).run(run);
            let (mut gaps, mut lengths) = (seed.stream("arrivals"), seed.stream("lengths"));
            let mut at = 0.0;
            let arrivals = (0..requests).map(|_| {
                at += gaps.exponential() / rate;
                let (prompt, output) = service.draw(&mut lengths);
                let wanted = Wanted::new(prompt, output);
                Arrival::new((at * 1e12) as u64, wanted)
            });
            let mut waits = Waits { skipped: requests / 20, sum: 0, count: 0 };
            let ended = run_day(&mut engine(), Loop::Open, arrivals, Queue::default(), &mut waits);
            assert!(ended.complete && waits.count == requests - requests / 20);
            waits.sum as f64 / waits.count as f64 / 1e12
        })
        .collect();
    let interval = mean_interval(&waits, 0.999).expect("runs");
    let said = format!("{service:?} at {utilisation}: {interval:?}, expected {expected}");
    assert!(interval.low <= expected && expected <= interval.high, "{said}");
    assert!((interval.high - interval.low) / 2.0 < 0.06 * expected, "too wide: {said}");
}

fn run_day(
    engine: &mut impl Engine,
    clients: Loop,
    arrivals: impl IntoIterator<Item = Arrival>,
    queue: Queue,
    watch: &mut impl Watch,
) -> Ended {
    drive(engine, clients, arrivals, queue, Budget::NONE, watch, &mut |_| true)
}

/// Utilisations, and how many requests a run needs there to be sure of its mean.
const LOADS: [(f64, u64); 3] = [(0.3, 12_000), (0.6, 20_000), (0.8, 45_000)];

#[test]
fn constant_service_is_m_d_1() {
    let model = support::model();
    for (utilisation, requests) in LOADS {
        let service = Service::Constant { prompt: 2000 };
        let plain = || PlainReplica::new(single_server(), Vllm, &model);
        check(plain, &model, service, utilisation, requests);
        check(|| Replica::new(single_server(), &model), &model, service, utilisation, requests);
    }
}

#[test]
fn two_prompts_are_m_g_1() {
    let model = support::model();
    for (utilisation, requests) in LOADS {
        let service = Service::TwoPrompts { short: 200, long: 8000, chance: 0.2 };
        let plain = || PlainReplica::new(single_server(), Vllm, &model);
        check(plain, &model, service, utilisation, requests);
        check(|| Replica::new(single_server(), &model), &model, service, utilisation, requests);
    }
}

/// The plain engine takes each step by itself and has outputs of a few tokens, whose time is less nearly exponential; what is expected is of what is drawn.
#[test]
fn geometric_outputs_are_m_m_1() {
    let model = support::model();
    for (utilisation, requests) in LOADS {
        let service = Service::Geometric { mean: 100.0 };
        // An exponential time has twice the square of its mean.
        let (mean, square) = service.moments(&model);
        assert!((square / (2.0 * mean * mean) - 1.0).abs() < 0.01, "{mean} {square}");
        check(|| Replica::new(single_server(), &model), &model, service, utilisation, requests);
        let plain = || PlainReplica::new(single_server(), Vllm, &model);
        check(plain, &model, Service::Geometric { mean: 5.0 }, utilisation, requests);
    }
}

/// A day of any kind.
#[derive(Clone, Debug)]
struct Day {
    limits: Limits,
    clients: Loop,
    queue: Queue,
    /// Each with the output it wants, which nobody can ask of it.
    arrivals: Vec<(Arrival, u64)>,
}

/// Days from starved to roomy; with clients that go away and a line that may be full only where that is said.
fn days(leaves: bool) -> impl Strategy<Value = Day> {
    let one = (
        (1u64..120, 1u64..60, 0u64..40),
        prop_oneof![0u64..40_000_000_000, Just(0)],
        prop::option::of(0u64..300_000_000_000),
        0u32..3,
    );
    let limits = (
        (1usize..12, 8u64..200, 10u64..400, prop::sample::select(vec![1u64, 4, 16])),
        (any::<bool>(), any::<bool>(), any::<bool>()),
        prop::option::of((1u64..5, 1000u64..4000)),
    );
    let rest = (prop::option::of(1usize..12), prop::option::of(0u64..10));
    (prop::collection::vec(one, 1..40), limits, rest).prop_map(move |(drawn, limits, rest)| {
        let ((sequences, budget, blocks, block), (asynchronous, whole_prompts, cached), guesses) =
            limits;
        let mut limits = Limits::new(sequences, budget, Kv::new(blocks, block));
        (limits.asynchronous, limits.whole_prompts) = (asynchronous, whole_prompts);
        limits.prefix_cache = cached;
        limits.speculation = guesses.map(|(drafts, accepted)| Speculation {
            drafts,
            accept_thousandths: accepted.min(1000 * (1 + drafts)),
        });
        let (clients, most) = rest;
        let mut at = 0;
        let arrivals =
            drawn.into_iter().map(|((prompt, output, cached), after, patience, rank)| {
                at += after;
                let wanted = Wanted { cached, rank, ..Wanted::new(prompt, output) };
                let gives_up = patience.filter(|_| leaves).map(|patience| at + patience);
                (Arrival { at, sent: at, wanted, gives_up }, output)
            });
        Day {
            limits,
            clients: clients.map_or(Loop::Open, Loop::Closed),
            queue: Queue { requests: most.filter(|_| leaves), tokens: None },
            arrivals: arrivals.collect(),
        }
    })
}

/// Everything that is told.
#[derive(Default)]
struct Told {
    stretches: Vec<Stretch>,
    outcomes: Vec<Outcome>,
    /// Gaps between tokens: how many, and how long together.
    gaps: u64,
    gaps_ps: u64,
}

impl Watch for Told {
    fn gap(&mut self, _: u16, ps: u64, _: Pace, count: u64) {
        self.gaps += count;
        self.gaps_ps += ps * count;
    }

    fn stretch(&mut self, stretch: &Stretch) {
        self.stretches.push(*stretch);
    }

    fn over(&mut self, outcome: &Outcome) {
        self.outcomes.push(*outcome);
    }
}

impl Told {
    fn of(day: &Day, model: &StepModel) -> Result<Self, TestCaseError> {
        let mut told = Self::default();
        let mut replica = Replica::new(day.limits, model);
        let arrivals = day.arrivals.iter().map(|(arrival, _)| arrival.clone());
        let ended = run_day(&mut replica, day.clients, arrivals, day.queue, &mut told);
        prop_assert!(ended.complete && ended.unfinished == 0, "{ended:?}");
        prop_assert_eq!(ended.offered, day.arrivals.len() as u64);
        let idle = Gauges { seats: day.limits.max_num_seqs as u64, ..Gauges::default() };
        prop_assert_eq!(replica.gauges(), idle, "nobody is left, nor a block in use");
        told.outcomes.sort_by_key(|outcome| outcome.serial);
        Ok(told)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(2_000)) })]

    /// Little's law without a limit: the integral over time of how many are in the system, as the engine counts them, is the sum of the times they are there,
    /// to the picosecond. Who comes within a stretch of steps is there for the rest of it, whose client goes away within one is not.
    #[test]
    fn number_in_system_is_rate_times_time(day in days(true)) {
        let model = support::model();
        let told = Told::of(&day, &model)?;
        let counted: u64 =
            told.stretches.iter().map(|s| (s.gauges.running + s.gauges.waiting) * s.took).sum();
        // Who is turned away is never there.
        let there = told.outcomes.iter().filter(|outcome| outcome.done > outcome.arrived);
        let rest = |instant: u64| {
            let at = told.stretches.partition_point(|s| s.from + s.took <= instant);
            let stretch = told.stretches.get(at).filter(|s| s.from < instant);
            stretch.map_or(0, |s| s.from + s.took - instant)
        };
        let (came_within, went_within) =
            there.fold((0, 0), |(came, went), o| (came + rest(o.arrived), went + rest(o.done)));
        let sojourns: u64 = told.outcomes.iter().map(|o| o.done - o.arrived).sum();
        prop_assert_eq!(counted + came_within, sojourns + went_within);
    }

    /// Everybody who comes is told of exactly once, and whoever is completed got what it wanted, in order: it comes, is looked at, gets its first token and
    /// its last. Gaps between tokens fill the time between the first and the last.
    #[test]
    fn nobody_is_lost(day in days(true)) {
        let model = support::model();
        let told = Told::of(&day, &model)?;
        prop_assert!(told.outcomes.iter().map(|o| o.serial).eq(0..day.arrivals.len() as u64));
        let mut gaps_ps = 0;
        for (outcome, (arrival, output)) in told.outcomes.iter().zip(&day.arrivals) {
            prop_assert_eq!(outcome.prompt, arrival.wanted.prompt);
            if day.clients == Loop::Open {
                prop_assert_eq!(outcome.arrived, arrival.at);
            }
            let (arrived, done) = (outcome.arrived, outcome.done);
            let scheduled = outcome.scheduled.unwrap_or(done);
            let first = outcome.first.unwrap_or(done);
            prop_assert!(arrived <= scheduled && scheduled <= first && first <= done, "{outcome:?}");
            prop_assert_eq!(outcome.first.is_some(), outcome.output > 0);
            match outcome.end {
                End::Completed => {
                    prop_assert_eq!(outcome.output, *output);
                    prop_assert!(outcome.scheduled.is_some_and(|at| at < first), "{:?}", outcome);
                    gaps_ps += done - first;
                }
                End::TimedOut => prop_assert!(outcome.output < *output && arrival.gives_up <= Some(done)),
                End::Rejected | End::TooLong => prop_assert_eq!((outcome.output, done), (0, arrived)),
            }
        }
        if told.outcomes.iter().all(|outcome| outcome.end != End::TimedOut) {
            prop_assert_eq!(told.gaps_ps, gaps_ps);
        }
        if day.limits.speculation.is_none() {
            let after_the_first: u64 =
                told.outcomes.iter().map(|o| o.output.saturating_sub(1)).sum();
            prop_assert_eq!(told.gaps, after_the_first);
        }
    }

    /// Work is conserved: a step reads prompts and generates tokens, and as many of either as were asked for; more are read only where somebody was thrown out.
    #[test]
    fn no_work_is_lost(day in days(false)) {
        let mut day = day;
        day.limits.speculation = None;
        let model = support::model();
        let told = Told::of(&day, &model)?;
        let served = || told.outcomes.iter().filter(|outcome| outcome.end == End::Completed);
        let prompts: u64 = served().map(|outcome| outcome.prompt - outcome.cached).sum();
        let outputs: u64 = served().map(|outcome| outcome.output).sum();
        let read: u64 = told.stretches.iter().map(|s| s.prefill).sum();
        let generated: u64 = told.stretches.iter().map(|s| s.decodes).sum();
        let thrown_out: u64 = served().map(|outcome| u64::from(outcome.preemptions)).sum();
        // Whoever is thrown out where nothing else is left to do has no step to be told with.
        prop_assert!(told.stretches.iter().map(|s| s.preempted).sum::<u64>() <= thrown_out);
        if thrown_out == 0 {
            // The last step of a prompt gives the first token.
            prop_assert_eq!((read, generated), (prompts, outputs - served().count() as u64));
        } else {
            prop_assert!(read + generated >= prompts + outputs - served().count() as u64);
        }
        let steps: u64 = told.stretches.iter().map(|s| s.steps).sum();
        prop_assert!(read + generated <= steps * day.limits.max_num_batched_tokens);
    }

    /// Never idle with work waiting: a stretch of steps begins where the one before it ended, or else nobody was there in between.
    #[test]
    fn never_idle_with_work_waiting(day in days(true)) {
        let model = support::model();
        let told = Told::of(&day, &model)?;
        let ends = std::iter::once(0).chain(told.stretches.iter().map(|s| s.from + s.took));
        let begins = told.stretches.iter().map(|s| s.from).chain(std::iter::once(u64::MAX));
        for (end, begin) in ends.zip(begins) {
            prop_assert!(end <= begin, "two steps at once");
            let there = |o: &&Outcome| end < begin && o.arrived < begin && o.done > end.max(o.arrived);
            prop_assert_eq!(told.outcomes.iter().find(there), None, "idle from {} to {}", end, begin);
        }
    }
}
