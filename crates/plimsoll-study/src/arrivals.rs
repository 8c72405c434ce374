//! The requests of an hour, one after the other, as an engine gets them.
//!
//! Nothing is kept but what is still to come of tasks that have begun, so a long hour takes no more room than a short one. The hour is closed to a ring, as in
//! the demand study: what a task asks for after its end comes at its beginning.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_perf::RequestPath;
use plimsoll_sim::{Arrival, Content, Segment, Wanted};
use plimsoll_stats::{ArrivalError, Arrivals, Process, RateCurve, Seed, Spacing, Stream};
use plimsoll_workload::{Class, Growth, Request, Shift, Task};

/// A class as it reaches one engine.
#[derive(Clone, Debug)]
pub struct SimulatedClass {
    /// What it asks for.
    pub class: Class,
    /// The share of its tasks that this engine gets.
    pub share: f64,
    /// Lower is served first.
    pub rank: u32,
    /// Clients go away after so many seconds.
    pub deadline: Option<f64>,
    /// What makes a request good.
    pub slo: Thresholds,
    /// Whether the cache is looked into for what its prompts have in common; otherwise its hits are as it says.
    pub finds_prefixes: bool,
    /// Whether the hits that it states can be: not where no prefix is cached.
    pub hits: bool,
    /// Longest accepted context: outputs end there.
    pub max_model_len: u64,
    /// Whether its clients say how many tokens they want at most: the most of 4,096 tasks, which is what engines that reserve room go by.
    pub states_limit: bool,
}

impl SimulatedClass {
    fn shift(&self, hour: usize, events: bool) -> Shift {
        self.class.hours.get(hour).filter(|_| events).map_or(Shift::NONE, |h| h.shift)
    }

    /// Its tasks a second in an hour, as the engine gets them.
    pub(crate) fn rate(&self, hour: usize, events: bool) -> f64 {
        let rate = self.class.hours.get(hour).map_or(0.0, |h| h.rate);
        rate * self.shift(hour, events).rate * self.share
    }

    /// One whose requests are already known: it only has a name.
    pub fn known(name: &str) -> Self {
        let process = Process::Flow { spacing: Spacing::Poisson, burst: None };
        let task = Task::steps(Vec::new());
        Self {
            class: Class { name: name.to_owned(), process, task, hours: Vec::new() },
            share: 1.0,
            rank: 0,
            deadline: None,
            slo: Thresholds::default(),
            finds_prefixes: false,
            hits: true,
            max_model_len: u64::MAX,
            states_limit: false,
        }
    }
}

/// A request is good where it meets all that are given, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thresholds {
    /// Its first token.
    pub ttft: Option<f64>,
    /// Its mean gap between tokens.
    pub tpot: Option<f64>,
    /// Its last token.
    pub e2e: Option<f64>,
    /// Its largest gap between tokens.
    pub gap: Option<f64>,
}

/// The requests of one class, in the order they come.
struct ClassRequests<'a> {
    class: &'a SimulatedClass,
    index: u16,
    shift: Shift,
    starts: std::iter::Peekable<Arrivals>,
    lengths: Stream,
    ring: f64,
    /// Requests of tasks that have begun, by when they come.
    pending: BinaryHeap<Reverse<Pending>>,
    tasks: u64,
    /// The most tokens that its clients want.
    limit: Option<u64>,
}

/// A request to come.
#[derive(Clone, Debug)]
struct Pending {
    ps: u64,
    order: u64,
    wanted: Wanted,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        (self.ps, self.order) == (other.ps, other.order)
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.ps, self.order).cmp(&(other.ps, other.order))
    }
}

/// Requests of all classes, in the order they come, from the same seed always the same.
pub(crate) struct Requests<'a> {
    classes: Vec<ClassRequests<'a>>,
    /// The next of each class.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    ready: Vec<Option<Pending>>,
    path: Path,
    last: u64,
}

/// The way in front of an engine: a request takes its time to pass, and servers have work with every token that is sent back. A request that comes while they are
/// behind waits until they are not.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    request: u64,
    /// Picoseconds of one server that a token takes, and how many servers there are.
    token: u64,
    servers: u64,
    /// What they were behind, and when.
    behind: Rc<Cell<(u64, u64)>>,
}

impl Path {
    pub(crate) fn new(path: &RequestPath) -> Self {
        Self {
            request: ps(path.request_seconds),
            token: ps(path.token_seconds),
            servers: (path.servers as u64).max(1),
            behind: Rc::default(),
        }
    }

    fn behind_at(&self, at: u64) -> u64 {
        let (behind, when) = self.behind.get();
        behind.saturating_sub(at.saturating_sub(when))
    }

    /// Tokens are sent back between two instants.
    pub(crate) fn sends(&self, tokens: u64, from: u64, until: u64) {
        let work = self.token.saturating_mul(tokens) / self.servers;
        let behind = self.behind_at(from).saturating_add(work);
        self.behind.set((behind.saturating_sub(until.saturating_sub(from)), until));
    }

    /// When a request that is sent now has passed.
    fn pass(&self, sent: u64) -> u64 {
        sent.saturating_add(self.behind_at(sent)).saturating_add(self.request)
    }
}

/// Whole picoseconds.
pub(crate) fn ps(seconds: f64) -> u64 {
    (seconds * 1e12).round().max(0.0) as u64
}

impl<'a> Requests<'a> {
    /// The requests of `seconds` at the rate of an hour.
    pub(crate) fn new(
        classes: &'a [SimulatedClass],
        hour: usize,
        events: bool,
        seconds: f64,
        seed: Seed,
        path: Path,
    ) -> Result<Self, (String, ArrivalError)> {
        let mut streams = Vec::new();
        for (index, own) in (0u16..).zip(classes) {
            let (shift, rate) = (own.shift(hour, events), own.rate(hour, events));
            if rate <= 0.0 {
                continue;
            }
            let name = &own.class.name;
            let failed = |error| (name.clone(), error);
            let starts = || -> Result<Arrivals, ArrivalError> {
                let stream = seed.stream(&format!("arrivals/{name}"));
                Arrivals::new(&own.class.process, RateCurve::constant(rate, seconds)?, stream)
            };
            let mut stream = ClassRequests {
                class: own,
                index,
                shift,
                starts: starts().map_err(failed)?.peekable(),
                lengths: seed.stream(&format!("lengths/{name}")),
                ring: seconds,
                pending: BinaryHeap::new(),
                tasks: 0,
                limit: own.states_limit.then(|| longest_output(own, &shift, seed)),
            };
            stream.begin(starts().map_err(failed)?, seed);
            streams.push(stream);
        }
        let mut requests = Self {
            ready: vec![None; streams.len()],
            classes: streams,
            next: BinaryHeap::new(),
            path,
            last: 0,
        };
        for i in 0..requests.classes.len() {
            requests.refill(i);
        }
        Ok(requests)
    }

    fn refill(&mut self, i: usize) {
        self.ready[i] = self.classes[i].next();
        if let Some(pending) = &self.ready[i] {
            self.next.push(Reverse((pending.ps, i)));
        }
    }
}

impl Iterator for Requests<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let Reverse((sent, i)) = self.next.pop()?;
        let Pending { wanted, .. } = self.ready[i].take()?;
        let gives_up = self.classes[i].class.deadline.map(|d| sent.saturating_add(ps(d)));
        self.refill(i);
        // Servers pass requests on in the order they came.
        self.last = self.last.max(self.path.pass(sent));
        Some(Arrival { at: self.last, sent, wanted, gives_up })
    }
}

impl ClassRequests<'_> {
    /// What tasks ask for after the end comes at the beginning: drawn once beforehand.
    fn begin(&mut self, starts: Arrivals, seed: Seed) {
        if self.class.class.task.is_one_request() {
            return;
        }
        let mut lengths = seed.stream(&format!("lengths/{}", self.class.class.name));
        for (task, at) in (0..).zip(starts) {
            self.draw(task, at, &mut lengths, true);
        }
    }

    /// Draws the task that starts at `at`, and keeps what comes before the end of the ring, or after it.
    fn draw(&mut self, task: u64, at: f64, lengths: &mut Stream, after: bool) {
        let (class, index, ring) = (self.class, self.index, self.ring);
        let (growth, limit) = (class.class.task.growth(), self.limit);
        let mut said: Vec<Segment> = Vec::new();
        let pending = &mut self.pending;
        class.class.task.draw(&self.shift, lengths, |request| {
            let output = output_of(&request).min(limit.unwrap_or(u64::MAX));
            let mut wanted = wanted(class, (index, task), growth, &request, output, &mut said);
            wanted.limit = limit;
            let t = at + request.offset;
            if (t >= ring) == after {
                let order = task << 24 | u64::from(request.turn) << 8;
                let t = ps(t % ring);
                // Several outputs for one prompt are as many sequences.
                for sample in 0..u64::from(request.samples.max(1)) {
                    pending.push(Reverse(Pending {
                        ps: t,
                        order: order + sample.min(255),
                        wanted: wanted.clone(),
                    }));
                }
            }
        });
    }

    fn next(&mut self) -> Option<Pending> {
        loop {
            let start = self.starts.peek().map(|at| ps(*at));
            if let Some(Reverse(first)) = self.pending.peek()
                && start.is_none_or(|start| first.ps <= start)
            {
                return self.pending.pop().map(|Reverse(pending)| pending);
            }
            let at = self.starts.next()?;
            let task = self.tasks;
            self.tasks += 1;
            let mut lengths = self.lengths.clone();
            self.draw(task, at, &mut lengths, false);
            self.lengths = lengths;
        }
    }
}

/// Tokens of one output of a request.
fn output_of(request: &Request) -> u64 {
    (request.output.get() / u64::from(request.samples.max(1))).max(1)
}

/// The longest output of some thousand tasks.
fn longest_output(own: &SimulatedClass, shift: &Shift, seed: Seed) -> u64 {
    let mut lengths = seed.stream(&format!("limit/{}", own.class.name));
    let mut longest = 1;
    for _ in 0..4096 {
        own.class.task.draw(shift, &mut lengths, |r| longest = longest.max(output_of(&r)));
    }
    longest
}

/// What a request of a task wants, and what it leaves for the next of its task to find.
fn wanted(
    own: &SimulatedClass,
    (class, task): (u16, u64),
    growth: Growth,
    request: &Request,
    output: u64,
    said: &mut Vec<Segment>,
) -> Wanted {
    let samples = u64::from(request.samples.max(1));
    let known: u64 = said.iter().map(|s| s.tokens).sum();
    let finds = own.finds_prefixes;
    // An engine stops where the context ends; a prompt that is too long stays so, and is refused.
    let room = own.max_model_len.saturating_sub(request.prompt.get().max(known + 1));
    let output = output.min(room.max(1));
    // Lengths are rounded one by one; a prompt has a token beside what was said before.
    let prompt = if finds { request.prompt.get().max(known + 1) } else { request.prompt.get() };
    let mut wanted = Wanted::new(prompt, output);
    (wanted.class, wanted.rank) = (class, own.rank);
    if !finds {
        wanted.cached = if own.hits { request.cached.get() } else { 0 };
        return wanted;
    }
    // Classes, tasks and turns have each their own names.
    let name =
        u64::from(class) << 47 | (task & 0x3fff_ffff) << 16 | u64::from(request.turn & 0xffff);
    let mut shared = said.clone();
    let fresh = prompt - known;
    if samples > 1 {
        shared.push(Segment { id: name, tokens: fresh });
        wanted.content = Some(Arc::new(Content { shared, own: None }));
    } else {
        wanted.content = Some(Arc::new(Content { shared, own: Some(name) }));
    }
    match growth {
        Growth::Nothing => {}
        Growth::Prompts => said.push(Segment { id: name, tokens: fresh }),
        Growth::PromptsAndOutputs => {
            said.push(Segment { id: name, tokens: fresh + if samples > 1 { 0 } else { output } })
        }
    }
    wanted
}
