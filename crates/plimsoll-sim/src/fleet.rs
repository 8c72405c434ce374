//! A fleet: tasks are brought to the engines, providers and tools that serve them.
//!
//! Events happen in the order of their instants; an engine has a clock of its own and is asked to move only when somebody comes to it, leaves it or waits for what it
//! is about to finish. While it merely generates it is left alone: nobody looks at it, and nothing of it moves until somebody does. So a fleet costs what its engines
//! cost one by one.

mod attempt;
mod bucket;
mod kind;
mod lifecycle;
mod progress;
mod report;
mod route;
mod scale;
mod site;
mod spec;
mod task;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_stats::{Seed, Stream};

use self::attempt::{CallState, ProviderState};
use self::bucket::Bucket;
pub use self::kind::{AnyEngine, EngineKind};
use self::progress::{TaskState, ToolState};
pub use self::report::{Attempt, FleetEnded, FleetWatch, PoolEnded, ToolUse};
use self::scale::PoolState;
use self::site::Site;
pub use self::spec::{
    ClassSpec, Domain, FleetSpec, Good, HandOver, Incident, Judged, Mishap, Phase, PoolSpec,
    ProviderSpec, RetrySpec, RouteSpec, Routing, ScalingSpec, Signal, Spot, StartupSpec, Target,
    ToolSpec,
};
pub use self::task::{AttemptEnd, Call, Steps, Task, TaskEnd, TaskOutcome, TaskStep};
use crate::drive::Budget;
use crate::fast;

/// When an event happens: by instant, then rank, then insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: u64,
    rank: Rank,
    order: u64,
    what: What,
}

/// Order within one instant: what is decided is so with what was read by then; whoever leaves or comes does so before an engine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Change,
    Decision,
    Client,
    Engine,
}

/// What happens. Numbers are places in lists; what has a stamp is no more where that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// An engine has finished a step, or somebody has come to it.
    Engine(u32, u32),
    /// A call reaches where it was sent.
    Reach(u32, u32),
    /// A client has waited long enough.
    Patience(u32, u32),
    /// A call is made again.
    Again(u32, u32),
    /// A provider has answered.
    Answer(u32, u32),
    /// Keys and values have been handed over.
    HandedOver(u32, u32),
    /// A task goes on.
    GoOn(u32, u32),
    /// A tool is done with a task's call.
    ToolDone(u16, u32, u32),
    /// A tool accepts another call.
    ToolAccepts(u16),
    /// A replica is ready.
    Ready(u32, u32),
    /// A replica is no longer new.
    Seasoned(u32, u32),
    /// A replica that is taken away is out of time.
    Drained(u32, u32),
    /// A replica's devices are taken away.
    Reclaimed(u32, u32),
    /// What had failed can be started again: so many replicas of a pool.
    Repaired(u16, u32),
    /// A domain of a pool fails.
    Fails(u16, u32),
    /// An incident begins.
    Begins(u32),
    /// An incident is over.
    Over(u32),
    /// A router looks at its replicas.
    Look(u16),
    /// An autoscaler's signals are read.
    Scrape(u16),
    /// An autoscaler decides.
    Decide(u16),
    /// KEDA looks whether a pool is needed at all.
    Poll(u16),
}

/// A list whose places are used again.
#[derive(Debug)]
struct Slab<T> {
    places: Vec<Option<T>>,
    spare: Vec<u32>,
}

impl<T> Slab<T> {
    fn new() -> Self {
        Self { places: Vec::new(), spare: Vec::new() }
    }

    fn insert(&mut self, one: T) -> u32 {
        match self.spare.pop() {
            Some(at) => {
                self.places[at as usize] = Some(one);
                at
            }
            None => {
                self.places.push(Some(one));
                (self.places.len() - 1) as u32
            }
        }
    }

    fn remove(&mut self, at: u32) -> Option<T> {
        let one = self.places[at as usize].take();
        if one.is_some() {
            self.spare.push(at);
        }
        one
    }

    fn get(&self, at: u32) -> Option<&T> {
        self.places.get(at as usize).and_then(Option::as_ref)
    }

    fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.places.get_mut(at as usize).and_then(Option::as_mut)
    }

    fn len(&self) -> usize {
        self.places.len() - self.spare.len()
    }
}

/// Chance, each kind from a stream of its own.
struct Chance {
    routes: Stream,
    retries: Stream,
    failures: Stream,
    startups: Stream,
    providers: Stream,
    tools: Stream,
    leaving: Stream,
}

/// A run of a fleet.
struct Run<'s, 'a, W> {
    spec: &'a FleetSpec,
    watch: &'s mut W,
    now: u64,
    events: BinaryHeap<Reverse<Event>>,
    order: u64,
    stamps: u32,
    tasks: Slab<TaskState>,
    calls: Slab<CallState>,
    pools: Vec<PoolState>,
    sites: Vec<Site<'a>>,
    providers: Vec<ProviderState>,
    tools: Vec<ToolState>,
    /// Retries that each class has saved up, in thousandths of one.
    allowed: Vec<u64>,
    chance: Chance,
    /// Incidents that last.
    wrong: u32,
    /// Incidents by which each region is lost.
    lost_regions: Vec<u32>,
    /// What counts, from when until when.
    counted: (u64, u64),
    moves: u64,
    steps: fast::Steps,
    /// Attempts that were sent, and those that are over.
    attempts: u64,
    attempts_over: u64,
}

/// Lets tasks come until none is left and all are seen to, the budget is spent or `go_on`, which is asked now and then and told the time, says no. What happens within
/// `counted` is what the fleet's own accounts are about.
pub fn run_fleet<W: FleetWatch>(
    spec: &FleetSpec,
    tasks: impl IntoIterator<Item = Task>,
    seed: Seed,
    budget: Budget,
    counted: (u64, u64),
    watch: &mut W,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> FleetEnded {
    let mut run = Run::new(spec, seed, counted, watch);
    let mut tasks = tasks.into_iter().peekable();
    let mut stopped = false;
    loop {
        let event = run.events.peek().map(|Reverse(event)| (event.at, event.rank));
        let comes = tasks.peek().map(|task| (task.at, Rank::Client));
        // Whoever comes at an instant finds what has changed by then, and is there before engines go on.
        let (at, _) = match (comes, event) {
            (Some(comes), Some(event)) => comes.min(event),
            (Some(comes), None) => comes,
            // Without tasks nothing that is left to happen matters, but that engines let go of whoever has gone.
            (None, Some(event)) if run.tasks.len() > 0 || run.attempts > run.attempts_over => event,
            (None, _) => break,
        };
        run.moves += 1;
        if run.moves > budget.moves
            || run.moves.is_multiple_of(1024) && !(go_on(run.now) && run.watch.goes_on())
        {
            stopped = true;
            break;
        }
        if at > budget.until {
            break;
        }
        run.now = run.now.max(at);
        if comes.is_some_and(|comes| event.is_none_or(|event| comes <= event)) {
            if let Some(task) = tasks.next() {
                run.begin(task);
            }
        } else if let Some(Reverse(event)) = run.events.pop() {
            run.happens(event.what);
        }
    }
    let complete = !stopped && tasks.peek().is_none();
    run.end(stopped, complete)
}

impl<'s, 'a, W: FleetWatch> Run<'s, 'a, W> {
    fn new(spec: &'a FleetSpec, seed: Seed, counted: (u64, u64), watch: &'s mut W) -> Self {
        let stream = |name: &str| seed.stream(&format!("fleet/{name}"));
        let bucket = |limit: Option<u64>| {
            let mut bucket = limit.map(Bucket::new);
            if spec.spent {
                bucket.iter_mut().for_each(|bucket| bucket.take_all());
            }
            bucket
        };
        let providers = spec.providers.iter().map(|p| ProviderState {
            calls: bucket(p.calls),
            tokens: bucket(p.tokens),
            prompt: bucket(p.prompt),
            output: bucket(p.output),
            inside: 0,
            out: 0,
        });
        let regions =
            spec.pools.iter().flat_map(|pool| &pool.regions).max().map_or(1, |most| most + 1);
        let mut run = Self {
            spec,
            watch,
            now: 0,
            events: BinaryHeap::new(),
            order: 0,
            stamps: 0,
            tasks: Slab::new(),
            calls: Slab::new(),
            pools: spec.pools.iter().map(PoolState::new).collect(),
            sites: Vec::new(),
            providers: providers.collect(),
            tools: spec.tools.iter().map(|_| ToolState::default()).collect(),
            allowed: vec![0; spec.classes.len()],
            chance: Chance {
                routes: stream("routes"),
                retries: stream("retries"),
                failures: stream("failures"),
                startups: stream("startups"),
                providers: stream("providers"),
                tools: stream("tools"),
                leaving: stream("leaving"),
            },
            wrong: 0,
            lost_regions: vec![0; regions],
            counted,
            moves: 0,
            steps: fast::Steps::default(),
            attempts: 0,
            attempts_over: 0,
        };
        run.open();
        run
    }

    fn at(&mut self, at: u64, rank: Rank, what: What) {
        let order = self.order;
        self.order += 1;
        self.events.push(Reverse(Event { at: at.max(self.now), rank, order, what }));
    }

    fn stamp(&mut self) -> u32 {
        self.stamps = self.stamps.wrapping_add(1);
        self.stamps
    }

    fn happens(&mut self, what: What) {
        match what {
            What::Engine(site, stamp) => self.engine_goes_on(site, stamp),
            What::Reach(call, stamp) => self.if_current(call, stamp, Self::reach),
            What::Patience(call, stamp) => self.if_current(call, stamp, Self::out_of_patience),
            What::Again(call, stamp) => self.if_current(call, stamp, Self::send),
            What::Answer(call, stamp) => self.if_current(call, stamp, Self::provider_answers),
            What::HandedOver(call, stamp) => self.if_current(call, stamp, Self::handed_over),
            What::GoOn(task, stamp) => self.task_goes_on(task, stamp),
            What::ToolDone(tool, task, stamp) => self.tool_done(tool, task, stamp),
            What::ToolAccepts(tool) => self.tool_accepts(tool),
            What::Ready(site, stamp) => self.ready(site, stamp),
            What::Seasoned(site, stamp) => self.seasoned(site, stamp),
            What::Drained(site, stamp) => self.out_of_time(site, stamp),
            What::Reclaimed(site, stamp) => self.reclaimed(site, stamp),
            What::Repaired(pool, replicas) => self.repaired(pool, replicas),
            What::Fails(pool, domain) => self.domain_fails(pool, domain),
            What::Begins(incident) => self.incident_begins(incident),
            What::Over(incident) => self.incident_over(incident),
            What::Look(pool) => self.look(pool),
            What::Scrape(pool) => self.scrape(pool),
            What::Decide(pool) => self.decide(pool),
            What::Poll(pool) => self.poll(pool),
        }
    }
}
