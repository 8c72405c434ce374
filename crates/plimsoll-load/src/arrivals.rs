//! The tasks of an hour, or of several, one after the other, as a fleet gets them.
//!
//! Nothing is kept but the task that comes next of each class, so a long time takes no more room than a short one. A short time is closed to a ring, as in the demand
//! study: what tasks that began at its end still ask for afterwards is asked for at its beginning, by others like them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use plimsoll_sim as sim;
use plimsoll_sim::{Content, Segment, TaskStep, TaskSteps, Wanted};
use plimsoll_stats::{ArrivalError, Arrivals, RateCurve, Seed, Stream};
use plimsoll_workload::{Class, Drawn, Growth, Request, Shift, Trace};

/// A class as it reaches a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedClass {
    /// What it asks for.
    pub class: Class,
    /// How it is sent, judged and tried again.
    pub sent: sim::ClassSpec,
    /// Where calls go that do not go where their class does, by the numbers of their routes; none where that is not simulated.
    pub targets: Vec<Option<sim::Target>>,
    /// How many seconds a call takes, about: by how much tasks that have begun before are further on. None where nothing is known.
    pub call_seconds: f64,
    /// Lower is served first.
    pub rank: u32,
    /// Whether caches are looked into for what its prompts have in common; otherwise its hits are as it says.
    pub finds_prefixes: bool,
    /// Longest accepted context: outputs end there.
    pub max_model_len: u64,
    /// Whether its clients say how many tokens they want at most: the longest of 8,192 outputs, which is what engines and providers that reserve go by.
    pub states_limit: bool,
}

impl SimulatedClass {
    /// What changes it in an hour, where events count.
    fn shift(&self, hour: usize, events: bool) -> Shift {
        self.class.hours.get(hour).map_or(Shift::NONE, |h| h.changed(events))
    }

    /// Its tasks a second in an hour.
    pub fn rate(&self, hour: usize, events: bool) -> f64 {
        let rate = self.class.hours.get(hour).map_or(0.0, |h| h.rate);
        rate * self.shift(hour, events).rate
    }
}

/// A time in which one rate holds for each class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spell {
    /// Until when, in seconds.
    pub until: f64,
    /// The hour of the horizon whose rates and lengths hold.
    pub hour: usize,
    /// Whether events count.
    pub events: bool,
}

/// A time in which more comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Surge {
    /// From when, in seconds.
    pub from: f64,
    /// Until when.
    pub until: f64,
    /// How many times as much.
    pub load: f64,
    /// Of which classes.
    pub classes: Vec<usize>,
}

/// Longer than this, what tasks ask for after the end is not asked for at the beginning.
const RING_MOST: f64 = 6.0 * 3600.0;

/// A task that took longer than so many rings to come to its next call is not followed further back.
const RINGS_MOST: u64 = 1000;

/// Whole picoseconds.
pub fn ps(seconds: f64) -> u64 {
    (seconds * 1e12).round().max(0.0) as u64
}

/// The tasks of one class, in the order they come.
struct ClassTasks<'a> {
    class: &'a SimulatedClass,
    index: u16,
    /// What changes it, until when.
    shifts: Vec<(f64, Shift)>,
    starts: Arrivals,
    lengths: Stream,
    /// Tasks that are half done when time begins, by when they go on.
    begun: VecDeque<sim::Task>,
    waiting: Option<sim::Task>,
    tasks: u64,
    /// The most tokens that its clients want.
    limit: Option<u64>,
}

/// Tasks of all classes, in the order they come, from the same seed always the same.
pub struct Tasks<'a> {
    classes: Vec<ClassTasks<'a>>,
    /// The next of each class.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    ready: Vec<Option<sim::Task>>,
}

/// What the tasks of a run are made of.
pub struct Plan<'a> {
    pub spells: &'a [Spell],
    pub surges: &'a [Surge],
    /// What changes all of it.
    pub lever: Shift,
    /// The time that is closed to a ring, from the beginning on, in seconds; all of it where it is not said. A run that may end early draws less for a shorter one.
    pub ring: Option<f64>,
}

/// The pieces of a curve up to a time.
fn cut(mut curve: Vec<(f64, f64)>, end: f64) -> Vec<(f64, f64)> {
    let beyond = curve.iter().position(|(until, _)| *until >= end);
    if let Some(last) = beyond {
        curve.truncate(last + 1);
        curve[last].0 = end;
    }
    curve
}

impl Plan<'_> {
    fn end(&self) -> f64 {
        self.spells.last().map_or(0.0, |spell| spell.until)
    }

    /// The rate of a class over time.
    fn curve(&self, own: &SimulatedClass, index: usize) -> Vec<(f64, f64)> {
        let surges = || self.surges.iter().filter(|s| s.classes.contains(&index));
        let mut edges: Vec<f64> = self.spells.iter().map(|s| s.until).collect();
        edges.extend(surges().flat_map(|s| [s.from, s.until]));
        edges.retain(|edge| *edge > 0.0 && *edge <= self.end());
        edges.sort_by(f64::total_cmp);
        edges.dedup();
        let mut from = 0.0;
        edges
            .into_iter()
            .filter_map(|until| {
                let middle = (from + until) / 2.0;
                from = until;
                let spell = self.spells.iter().find(|s| middle < s.until)?;
                let more: f64 = surges()
                    .filter(|s| (s.from..s.until).contains(&middle))
                    .map(|s| s.load)
                    .product();
                let rate = own.rate(spell.hour, spell.events) * self.lever.rate * more;
                Some((until, rate))
            })
            .collect()
    }

    /// Tasks of a class that come on average.
    pub fn expected(&self, own: &SimulatedClass, index: usize) -> f64 {
        let mut from = 0.0;
        let tasks = self.curve(own, index).into_iter().map(|(until, rate)| {
            let tasks = (until - from) * rate;
            from = until;
            tasks
        });
        tasks.sum()
    }
}

impl<'a> Tasks<'a> {
    pub fn new(
        classes: &'a [SimulatedClass],
        plan: &Plan<'_>,
        seed: Seed,
    ) -> Result<Self, (String, ArrivalError)> {
        let mut streams = Vec::new();
        for (index, own) in (0u16..).zip(classes) {
            let curve = plan.curve(own, index as usize);
            if curve.iter().all(|(_, rate)| *rate <= 0.0) {
                continue;
            }
            let name = &own.class.name;
            let failed = |error| (name.clone(), error);
            let starts = |curve: Vec<(f64, f64)>| -> Result<Arrivals, ArrivalError> {
                let stream = seed.stream(&format!("arrivals/{name}"));
                Arrivals::new(&own.class.process, RateCurve::steps(curve)?, stream)
            };
            let shift = |s: &Spell| own.shift(s.hour, s.events).and(plan.lever);
            let shifts: Vec<(f64, Shift)> =
                plan.spells.iter().map(|s| (s.until, shift(s))).collect();
            let limit = own.states_limit.then(|| longest_output(own, &shifts, seed));
            let mut stream = ClassTasks {
                class: own,
                index,
                shifts,
                starts: starts(curve.clone()).map_err(failed)?,
                lengths: seed.stream(&format!("lengths/{name}")),
                begun: VecDeque::new(),
                waiting: None,
                tasks: 0,
                limit,
            };
            let ring = plan.ring.unwrap_or(f64::INFINITY).min(plan.end());
            if ring > 0.0 && ring <= RING_MOST {
                stream.begin(starts(cut(curve, ring)).map_err(failed)?, ring, seed);
            }
            streams.push(stream);
        }
        let mut tasks = Self {
            ready: streams.iter().map(|_| None).collect(),
            classes: streams,
            next: BinaryHeap::new(),
        };
        for i in 0..tasks.classes.len() {
            tasks.refill(i);
        }
        Ok(tasks)
    }

    fn refill(&mut self, i: usize) {
        self.ready[i] = self.classes[i].next();
        if let Some(task) = &self.ready[i] {
            self.next.push(Reverse((task.at, i)));
        }
    }
}

impl Iterator for Tasks<'_> {
    type Item = sim::Task;

    fn next(&mut self) -> Option<sim::Task> {
        let Reverse((_, i)) = self.next.pop()?;
        let task = self.ready[i].take();
        self.refill(i);
        task
    }
}

impl ClassTasks<'_> {
    /// What tasks ask for after the end comes at the beginning: drawn once beforehand.
    fn begin(&mut self, starts: Arrivals, ring: f64, seed: Seed) {
        if self.class.class.task.is_one_request() {
            return;
        }
        let mut lengths = seed.stream(&format!("lengths/{}", self.class.class.name));
        let mut begun = Vec::new();
        for (task, at) in (0..).zip(starts) {
            // One that began so many rings ago is by now where it would be after as long: it has all the rest to do.
            let mut parts: Vec<(f64, VecDeque<TaskStep>)> = Vec::new();
            let (mut rings, mut calls) = (0, 0.0);
            self.draw(task, at, &mut lengths, |offset, step| {
                let t = at + offset + calls * self.class.call_seconds;
                if let TaskStep::Calls(_) = step {
                    calls += 1.0;
                    let now = (t / ring) as u64;
                    for _ in rings..now.min(rings + RINGS_MOST) {
                        parts.push((t % ring, VecDeque::new()));
                    }
                    rings = rings.max(now);
                }
                parts.iter_mut().for_each(|(_, steps)| steps.push_back(step.clone()));
            });
            for (at, steps) in parts {
                let (class, session) = (self.index, self.session(task));
                let steps = TaskSteps::Many(steps);
                begun.push(sim::Task { at: ps(at), class, session, whole: false, steps });
            }
        }
        begun.sort_by_key(|task| task.at);
        self.begun = begun.into();
    }

    fn session(&self, task: u64) -> u64 {
        u64::from(self.index) << 48 | task
    }

    /// Draws the task that starts at `at`, step by step: with how many seconds pass before it, were everybody answered at once.
    fn draw(&self, task: u64, at: f64, lengths: &mut Stream, mut each: impl FnMut(f64, TaskStep)) {
        let class = self.class;
        let shift = self.shifts.iter().find(|(until, _)| at < *until).or(self.shifts.last());
        let shift = shift.map_or(Shift::NONE, |(_, shift)| *shift);
        let growth = class.class.task.growth();
        let mut said: Vec<Segment> = Vec::new();
        let mut offset = 0.0;
        // Calls that are made at once, and when.
        let mut calls: Vec<sim::Call> = Vec::new();
        let mut grown: Option<Segment> = None;
        class.class.task.draw_steps(&shift, lengths, |drawn| match drawn {
            Drawn::Request { request, route, at_once } => {
                if !at_once {
                    if !calls.is_empty() {
                        each(offset, TaskStep::Calls(std::mem::take(&mut calls)));
                    }
                    said.extend(grown.take());
                    offset = request.offset;
                }
                let output = output_of(&request).min(self.limit.unwrap_or(u64::MAX));
                let (mut wanted, next) =
                    wanted(class, (self.index, task), growth, &request, output, &said);
                wanted.limit = self.limit;
                // Of calls that are made at once, the last is what the next goes on from.
                grown = next;
                let route = route.and_then(|r| class.targets.get(r as usize).copied().flatten());
                // Several outputs for one prompt are as many sequences.
                for _ in 0..request.samples.max(1) {
                    calls.push(sim::Call { wanted: wanted.clone(), route });
                }
            }
            Drawn::Wait(seconds) => {
                if !calls.is_empty() {
                    each(offset, TaskStep::Calls(std::mem::take(&mut calls)));
                }
                each(offset, TaskStep::Wait(ps(seconds)));
                offset += seconds;
            }
            Drawn::Tool(tool, seconds) => {
                if !calls.is_empty() {
                    each(offset, TaskStep::Calls(std::mem::take(&mut calls)));
                }
                each(offset, TaskStep::Tool(tool));
                offset += seconds;
            }
        });
        if !calls.is_empty() {
            each(offset, TaskStep::Calls(calls));
        }
    }

    /// A task that is one call.
    fn draw_one(&self, task: u64, at: f64, lengths: &mut Stream) -> Option<TaskSteps> {
        let class = self.class;
        let shift = self.shifts.iter().find(|(until, _)| at < *until).or(self.shifts.last());
        let shift = shift.map_or(Shift::NONE, |(_, shift)| *shift);
        let mut steps = None;
        class.class.task.draw_steps(&shift, lengths, |drawn| {
            let Drawn::Request { request, route, .. } = drawn else { return };
            let output = output_of(&request).min(self.limit.unwrap_or(u64::MAX));
            let own = (self.index, task);
            let (mut wanted, _) = wanted(class, own, Growth::Nothing, &request, output, &[]);
            wanted.limit = self.limit;
            let route = route.and_then(|r| class.targets.get(r as usize).copied().flatten());
            steps = Some(if request.samples > 1 || route.is_some() {
                let call = sim::Call { wanted, route };
                let calls = vec![call; request.samples.max(1) as usize];
                TaskSteps::Many(VecDeque::from([TaskStep::Calls(calls)]))
            } else {
                TaskSteps::One(wanted)
            });
        });
        steps
    }

    fn next(&mut self) -> Option<sim::Task> {
        if self.waiting.is_none() {
            self.waiting = self.next_start();
        }
        let begun = self.begun.front().map(|task| task.at);
        match (&self.waiting, begun) {
            (Some(own), Some(begun)) if begun <= own.at => self.begun.pop_front(),
            (None, Some(_)) => self.begun.pop_front(),
            _ => self.waiting.take(),
        }
    }

    fn next_start(&mut self) -> Option<sim::Task> {
        let at = self.starts.next()?;
        let task = self.tasks;
        self.tasks += 1;
        let mut lengths = self.lengths.clone();
        let steps = if self.class.class.task.is_one_request() {
            self.draw_one(task, at, &mut lengths)?
        } else {
            let mut steps = VecDeque::new();
            self.draw(task, at, &mut lengths, |_, step| steps.push_back(step));
            TaskSteps::Many(steps)
        };
        self.lengths = lengths;
        let (class, session) = (self.index, self.session(task));
        Some(sim::Task { at: ps(at), class, session, whole: true, steps })
    }
}

/// When some hundred tasks of a class make their last call, in seconds, were everybody answered at once.
fn pauses(own: &SimulatedClass, seed: Seed) -> Vec<f64> {
    let mut lengths = seed.stream(&format!("pauses/{}", own.class.name));
    let one = |_| {
        let mut last = 0.0f64;
        own.class.task.draw(&Shift::NONE, &mut lengths, |r| last = last.max(r.offset));
        last
    };
    (0..256).map(one).collect()
}

/// How long tasks of a class pause between their calls, together, on average; turns are counted one by one.
pub fn mean_pauses(own: &SimulatedClass, seed: Seed) -> f64 {
    if own.class.task.is_one_request() || own.sent.judged == sim::Judged::EachTurn {
        return 0.0;
    }
    let all = pauses(own, seed);
    all.iter().sum::<f64>() / all.len() as f64
}

/// How long it is from the beginning of a task to its last call on average, were everybody answered at once; of conversations, too.
pub(crate) fn mean_offset(own: &SimulatedClass, seed: Seed) -> f64 {
    let all = pauses(own, seed);
    all.iter().sum::<f64>() / all.len() as f64
}

/// The longest that any of some hundred tasks of each class pauses; nobody waits for the next turn of a conversation.
pub fn longest_pauses(classes: &[SimulatedClass], seed: Seed) -> f64 {
    let several = |own: &&SimulatedClass| {
        !own.class.task.is_one_request() && own.sent.judged != sim::Judged::EachTurn
    };
    let each = classes.iter().filter(several).flat_map(|own| pauses(own, seed));
    each.fold(0.0, f64::max)
}

/// Tokens of one output of a request.
fn output_of(request: &Request) -> u64 {
    (request.output.get() / u64::from(request.samples.max(1))).max(1)
}

/// Requests that a limit on outputs is read from.
const LIMIT_REQUESTS: u32 = 8192;

/// The longest output of some thousand requests: a task of many calls shows many.
fn longest_output(own: &SimulatedClass, shifts: &[(f64, Shift)], seed: Seed) -> u64 {
    let mut lengths = seed.stream(&format!("limit/{}", own.class.name));
    let longest_of = |shift: &Shift| {
        let (mut longest, mut seen) = (1, 0);
        while seen < LIMIT_REQUESTS {
            seen += 1;
            own.class.task.draw(shift, &mut lengths, |r| {
                longest = longest.max(output_of(&r));
                seen += 1;
            });
        }
        longest
    };
    // Hours that differ only in their rate have the same lengths.
    let mut kinds: Vec<Shift> = Vec::new();
    for (_, shift) in shifts {
        let shift = Shift { rate: 1.0, ..*shift };
        if !kinds.contains(&shift) {
            kinds.push(shift);
        }
    }
    kinds.iter().map(longest_of).max().unwrap_or(1)
}

/// What a request of a task wants, and what it leaves for the next of its task to find.
fn wanted(
    own: &SimulatedClass,
    (class, task): (u16, u64),
    growth: Growth,
    request: &Request,
    output: u64,
    said: &[Segment],
) -> (Wanted, Option<Segment>) {
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
        wanted.cached = request.cached.get();
        return (wanted, None);
    }
    // Classes, tasks and turns have each their own names.
    let name =
        u64::from(class) << 47 | (task & 0x3fff_ffff) << 16 | u64::from(request.turn & 0xffff);
    let mut shared = said.to_vec();
    let fresh = prompt - known;
    let own = if samples > 1 {
        shared.push(Segment { id: name, tokens: fresh });
        None
    } else {
        Some(name)
    };
    wanted.content = Some(Arc::new(Content { shared, own }));
    let grown = match growth {
        Growth::Nothing => None,
        Growth::Prompts => Some(fresh),
        Growth::PromptsAndOutputs => Some(fresh + if samples > 1 { 0 } else { output }),
    };
    (wanted, grown.map(|tokens| Segment { id: name, tokens }))
}

/// The requests of a trace, each as a task of a class.
pub struct TraceTasks<'a> {
    trace: &'a Trace,
    /// The class of each of the trace's own.
    classes: &'a [u16],
    of: &'a [SimulatedClass],
    at: usize,
}

impl<'a> TraceTasks<'a> {
    pub fn new(trace: &'a Trace, classes: &'a [u16], of: &'a [SimulatedClass]) -> Self {
        Self { trace, classes, of, at: 0 }
    }
}

impl Iterator for TraceTasks<'_> {
    type Item = sim::Task;

    fn next(&mut self) -> Option<sim::Task> {
        let request = self.trace.requests().get(self.at)?;
        self.at += 1;
        let class = self.classes.get(request.class as usize).copied().unwrap_or(0);
        let own = &self.of[class as usize];
        let prompt = request.prompt.get().max(1);
        let room = own.max_model_len.saturating_sub(prompt);
        let output = request.output.get().clamp(1, room.max(1));
        let mut wanted = Wanted::new(prompt, output);
        (wanted.class, wanted.rank) = (class, own.rank);
        wanted.limit = own.states_limit.then_some(output);
        if request.content.is_empty() {
            wanted.cached = request.cached.map_or(0, |c| c.get()).min(prompt - 1);
        } else {
            let size = self.trace.block_tokens();
            let mut left = prompt;
            let shared = request
                .content
                .iter()
                .map_while(|id| {
                    // Only whole blocks are the same for others.
                    left = left.checked_sub(size)?;
                    Some(Segment { id: *id, tokens: size })
                })
                .collect();
            wanted.content = Some(Arc::new(Content { shared, own: None }));
        }
        let session = request.session.unwrap_or(self.at as u64);
        Some(sim::Task {
            at: ps(request.at),
            class,
            session,
            whole: true,
            steps: TaskSteps::One(wanted),
        })
    }
}
