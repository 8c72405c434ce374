//! A fleet against the demand of an hour, of several, or of a trace, drawn several times.

mod conclude;
mod promised;
mod result;
mod tally;
mod watched;

use plimsoll_perf::Work;
use plimsoll_sim::{
    Arrival, Attempt, Budget, ClassSpec, Ended, FleetEnded, FleetSpec, Good, Incident, Judged,
    Loop, PoolSpec, ProviderSpec, Replica, RouteSpec, Stretch as EngineStretch, Target, ToolSpec,
    drive, run_fleet,
};
use plimsoll_stats::{Process, Seed, Spacing, in_order};
use plimsoll_workload::{Class, Shift, Task, Trace};

use self::conclude::conclude;
pub use self::promised::{BrokenPromise, broken_promises, too_short};
pub use self::result::{
    AttemptCounts, Binding, CacheHits, ClassResult, Distribution, Ends, GoodputWindow, High,
    Missed, PoolResult, ProviderResult, RegionResult, ReplicaSpread, ScalingResult, Simulation,
    ToolResult, Utilisation, Verdict, Window,
};
use self::watched::{Known, RunResult, Watched};
use crate::arrivals::{Plan, SimulatedClass, Spell, Surge, Tasks, TraceTasks, longest_pauses, ps};
use crate::demand::StudyError;
use crate::smear::Spread;

/// Requests of a class that one run draws at most: minutes of computing.
const REQUESTS_MOST: f64 = 2e8;

/// What is left at the end is worked off for at least two hours, in picoseconds.
const WORKED_OFF: u64 = 7_200_000_000_000_000;

/// A pool.
#[derive(Clone, Debug)]
pub struct SimulatedPool {
    /// Its name.
    pub name: String,
    /// Devices of a replica.
    pub devices: u64,
    /// What its steps make a device do.
    pub work: Work,
    /// Bytes a second that a device reads, and operations a second, on paper.
    pub bandwidth: f64,
    /// The same of operations.
    pub peak: f64,
    /// How gaps between tokens vary around what the steps explain.
    pub spread: Spread,
    /// Its engines, and how its replicas live.
    pub life: PoolSpec,
}

/// What comes.
#[derive(Clone, Debug)]
pub enum Source {
    /// What classes ask for, at the rates of hours, one after the other.
    Classes(Vec<Spell>),
    /// What a trace asked for: the class of each of its own.
    Trace(Trace, Vec<u16>),
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimulateInput {
    /// Who asks.
    pub classes: Vec<SimulatedClass>,
    /// Engines of one's own.
    pub pools: Vec<SimulatedPool>,
    /// Hosted models, by name.
    pub providers: Vec<(String, ProviderSpec)>,
    /// Tools, by name.
    pub tools: Vec<(String, ToolSpec)>,
    /// Regions.
    pub regions: Vec<String>,
    /// The ways from region to region.
    pub ways: Vec<Vec<Option<u64>>>,
    /// What goes wrong, from the beginning of the warm-up on.
    pub incidents: Vec<Incident>,
    /// When more comes, from the beginning of the warm-up on.
    pub surges: Vec<Surge>,
    /// Whether things fail by chance.
    pub chance: bool,
    /// What comes.
    pub source: Source,
    /// What changes all of what classes ask for.
    pub lever: Shift,
    /// How long requests come, after the warm-up.
    pub seconds: f64,
    /// How long requests come before they count.
    pub warm_up: f64,
    /// For how many seconds what is left at the end is worked off; where it is not said, three times as long as requests came, and two hours at least.
    pub work_off: Option<f64>,
    /// Tasks under way at once beyond which a run is hopeless, and stopped as overloaded; where it is not said, it goes on.
    pub hopeless: Option<u64>,
    /// Independent runs.
    pub runs: u32,
    /// The level of intervals.
    pub level: f64,
    /// Makes it repeatable.
    pub seed: Seed,
    /// Threads to use; the result does not depend on it.
    pub threads: usize,
    /// Events of a run at most.
    pub moves: u64,
    /// Windows of the timeline in seconds, where one is wanted.
    pub window: Option<f64>,
}

impl SimulateInput {
    /// One engine whose requests are already known: they belong to a class that only has a name.
    pub fn known(name: &str, pool: SimulatedPool, seconds: f64, seed: Seed) -> Self {
        let process = Process::Flow { spacing: Spacing::Poisson, burst: None };
        let (task, hours) = (Task::steps(Vec::new()), Vec::new());
        let route =
            RouteSpec { to: Target::Pool(0), share: 1.0, fallback: Vec::new(), shift: None };
        let class = SimulatedClass {
            class: Class { name: name.to_owned(), process, task, hours },
            sent: ClassSpec {
                region: 0,
                routes: vec![route],
                retries: None,
                deadline: None,
                leaves: None,
                judged: Judged::Answer,
                good: Good::default(),
            },
            targets: Vec::new(),
            call_seconds: 0.0,
            rank: 0,
            finds_prefixes: false,
            max_model_len: u64::MAX,
            states_limit: false,
        };
        Self {
            classes: vec![class],
            pools: vec![pool],
            providers: Vec::new(),
            tools: Vec::new(),
            regions: vec!["everywhere".to_owned()],
            ways: vec![vec![Some(0)]],
            incidents: Vec::new(),
            surges: Vec::new(),
            chance: false,
            source: Source::Classes(Vec::new()),
            lever: Shift::NONE,
            seconds,
            warm_up: 0.0,
            work_off: None,
            hopeless: None,
            runs: 1,
            level: 0.95,
            seed,
            threads: 1,
            moves: u64::MAX,
            window: None,
        }
    }

    /// The fleet, as a run has it.
    fn fleet(&self) -> FleetSpec {
        FleetSpec {
            classes: self.classes.iter().map(|c| c.sent.clone()).collect(),
            pools: self.pools.iter().map(|pool| pool.life.clone()).collect(),
            providers: self.providers.iter().map(|(_, spec)| spec.clone()).collect(),
            tools: self.tools.iter().map(|(_, spec)| spec.clone()).collect(),
            ways: self.ways.clone(),
            incidents: self.incidents.clone(),
            chance: self.chance,
            spent: false,
        }
    }

    fn plan(&self) -> Plan<'_> {
        let spells: &[Spell] = match &self.source {
            Source::Classes(spells) => spells,
            Source::Trace(..) => &[],
        };
        Plan { spells, surges: &self.surges, lever: self.lever, ring: None }
    }
}

/// What somebody wants to see of a run beside its numbers, as it happens.
pub trait Record {
    /// An attempt is over, in the run with this number.
    fn attempt(&mut self, _target: &str, _class: &str, _run: u32, _attempt: &Attempt<'_>) {}
    /// A replica took steps in the first run.
    fn stretch(&mut self, _pool: &str, _replica: usize, _stretch: &EngineStretch) {}
}

/// Simulates a fleet. `go_on` is asked now and then from every thread; once it says no, runs end early and say so.
pub fn simulate(
    input: &SimulateInput,
    record: Option<&mut dyn Record>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Simulation, StudyError> {
    let (from, until) = (ps(input.warm_up), ps(input.warm_up + input.seconds));
    // A backlog is worked off, and tasks that take long are seen to their end, within reason.
    let longest = match input.work_off {
        Some(seconds) => until.saturating_add(ps(seconds)),
        None => {
            let pauses = ps(2.0 * longest_pauses(&input.classes, input.seed));
            until.saturating_mul(4).max(until.saturating_add(WORKED_OFF.max(pauses)))
        }
    };
    let budget = Budget { moves: input.moves, until: longest };
    let plan = input.plan();
    for (i, own) in input.classes.iter().enumerate() {
        let requests = plan.expected(own, i) * own.class.task.mean_requests();
        if requests > REQUESTS_MOST {
            return Err(StudyError::TooMany {
                class: own.class.name.clone(),
                requests,
                most: REQUESTS_MOST,
            });
        }
    }
    let fleet = input.fleet();
    let one = |run: u32, record: Option<&mut dyn Record>| -> Result<RunResult, StudyError> {
        let seed = input.seed.run(u64::from(run));
        let mut watched = Watched::new(input, run, (from, until), record);
        let ended: FleetEnded = match &input.source {
            Source::Classes(_) => {
                let tasks = Tasks::new(&input.classes, &plan, seed)
                    .map_err(|(class, source)| StudyError::Arrivals { class, source })?;
                run_fleet(&fleet, tasks, seed, budget, (from, until), &mut watched, &mut |_| {
                    go_on()
                })
            }
            Source::Trace(trace, classes) => {
                let tasks = TraceTasks::new(trace, classes, &input.classes);
                run_fleet(&fleet, tasks, seed, budget, (from, until), &mut watched, &mut |_| {
                    go_on()
                })
            }
        };
        Ok(watched.ended(&ended))
    };
    let runs: Result<Vec<RunResult>, StudyError> = match record {
        // What is written down is written in order.
        Some(record) => (0..input.runs).map(|run| one(run, Some(&mut *record))).collect(),
        None => in_order(input.threads, input.runs, |run| one(run, None)).into_iter().collect(),
    };
    Ok(conclude(input, &runs?, from))
}

/// One replica that serves requests which are already known, in one run: the input's only pool and class.
pub fn simulate_known(
    input: &SimulateInput,
    clients: Loop,
    arrivals: Vec<Arrival>,
    record: Option<&mut dyn Record>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Simulation {
    let until = ps(input.seconds);
    let budget = Budget { moves: input.moves, until: u64::MAX };
    let pool = &input.pools[0];
    // All of them count, whenever they come.
    let mut known = Known(Watched::new(input, 0, (0, until), record));
    known.0.counts_all(arrivals.len() as u64);
    let mut engine = Replica::new(pool.life.limits, &pool.life.model);
    let queue = pool.life.queue;
    let ended: Ended =
        drive(&mut engine, clients, arrivals, queue, budget, &mut known, &mut |_| go_on());
    let ended = FleetEnded {
        stopped: ended.stopped,
        now: ended.now,
        complete: ended.complete,
        unfinished: ended.unfinished,
        attempts: ended.offered,
        attempts_unfinished: ended.unfinished,
        steps: engine.steps(),
        pools: vec![Default::default()],
    };
    conclude(input, &[known.0.ended(&ended)], 0)
}
