//! What the steps of a logged run carried.
//!
//! A step log says when tokens appeared, not how many prompt tokens each step read. The engine's own rules say that: the plain engine is driven
//! with the log's admissions and the log's times, and what it gives is compared with what the log saw, step by step.

use plimsoll_perf::{Host, Rates, StepLoad, Term, Work, device, launch, step};
use plimsoll_sim::{Limits, Pace, PlainEngine, Wanted};

use crate::engine_runs::run_limits;
use crate::measured::EngineRun;

/// A stretch of steps between two instants at which the log and the replay agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Which step of the log it begins with.
    pub index: usize,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The same by output.
    pub gaps: Vec<f64>,
    /// What its steps carried.
    pub loads: Vec<StepLoad>,
    /// Whether it is one step of decodes alone, with another of the same before it.
    pub decode_only: bool,
    /// Whether the engine was idle before it: its time holds the way of a request into the engine.
    pub from_idle: bool,
    /// Whether nothing was left to do after it.
    pub to_idle: bool,
    /// Of its time, what passed before the engine said that a request had come, in seconds; zero where it did not say.
    pub noticed: f64,
}

impl Stretch {
    fn add(&mut self, seconds: f64, load: StepLoad) {
        self.seconds += seconds;
        self.gaps.push(seconds);
        self.loads.push(load);
    }

    /// Whether several requests ended the idleness: sending them takes a client as long as a step, so when the first output should come is not known.
    pub fn hurried(&self) -> bool {
        let prompts = |i: usize| self.loads.get(i).map_or(0, |load| load.prompts);
        self.from_idle && (prompts(0) > 1 || prompts(1) > 1)
    }

    /// When a client should see its outputs, in seconds from its beginning, and what decides each.
    ///
    /// After idleness it begins with an arrival; otherwise where the tokens of a decode step were handed out while its own first step ran.
    pub fn outputs(&self, work: &Work, rates: &Rates, asynchronous: bool) -> Vec<(f64, Pace)> {
        let way = if self.from_idle { rates.get(Term::PathSeconds) } else { 0.0 };
        let mut outputs = Vec::with_capacity(self.loads.len());
        if !asynchronous {
            let mut now = way;
            outputs.extend(self.loads.iter().map(|load| {
                now += step(work, rates, &load.batch()).total();
                (now, Pace::of(false, false, load.prefill > 0))
            }));
            return outputs;
        }
        let mut host = Host { free: way, done: 0.0 };
        let mut under_way: Option<(f64, &StepLoad)> = None;
        let mut late = false;
        let mut hand_out = |host: &mut Host<f64>, (end, load): (f64, &StepLoad)| {
            let was_late = std::mem::replace(&mut late, host.holds_up(end));
            (host.hand_out(end), Pace::of(late, was_late, load.prefill > 0))
        };
        // What follows is a decode step like the last.
        let follows = self.loads.last().filter(|_| !self.to_idle);
        for load in self.loads.iter().chain(follows) {
            let batch = load.batch();
            let device = device(work, rates, &batch).total();
            let end = match under_way {
                // It was launched while the one before it ran.
                None if !self.from_idle && outputs.is_empty() => {
                    host.done = device;
                    device
                }
                _ => host.launch(device, launch(work, rates, &batch)),
            };
            if let Some(seen) = under_way.replace((end, load)) {
                outputs.push(hand_out(&mut host, seen));
            }
        }
        if self.to_idle {
            outputs.extend(under_way.map(|seen| hand_out(&mut host, seen)));
        }
        outputs
    }
}

/// A run taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Its stretches, in order.
    pub stretches: Vec<Stretch>,
    /// Steps that the log holds.
    pub steps: usize,
    /// Steps in which replay and log gave different numbers of tokens; they are in no stretch.
    pub lost: usize,
}

/// Takes a run apart.
pub fn replay(run: &EngineRun) -> Replay {
    // What was cached is taken from the log, not found again.
    let limits = Limits { prefix_cache: false, ..run_limits(&run.setup, false) };
    let mut order: Vec<usize> = (0..run.requests.len()).collect();
    order.sort_by(|a, b| run.requests[*a].at.total_cmp(&run.requests[*b].at));
    let mut engine = PlainEngine::new(limits);
    let mut replay = Replay { stretches: Vec::new(), steps: 0, lost: 0 };
    // Requests handed to the engine, and those it has answered.
    let (mut admitted, mut done) = (0usize, 0usize);
    let mut open: Option<Stretch> = None;
    let (mut last, mut idle, mut before_decode) = (0.0, true, false);
    // When tokens last appeared; messages of arrivals do not count.
    let mut spoke = 0.0;
    for (index, seen) in run.steps.iter().enumerate() {
        if seen.running == 0 && seen.generated == 0 {
            // Nothing ran: a message of an arrival, not a step.
            (last, idle, before_decode) = (seen.at, true, false);
            open = None;
            continue;
        }
        replay.steps += 1;
        // The next step is scheduled while this one runs, so the last output's count of running sequences is this step's.
        let known = match index.checked_sub(1).map(|i| run.steps[i]) {
            Some(previous) if !idle => done + previous.running as usize,
            _ => done + 1,
        };
        let admit = |engine: &mut PlainEngine, admitted: &mut usize| {
            let Some(&next) = order.get(*admitted) else { return false };
            let r = &run.requests[next];
            let wanted =
                Wanted { cached: r.cached, ..Wanted::new(r.prompt.max(1), r.output.max(1)) };
            *admitted += 1;
            engine.arrive(*admitted as u64, wanted).is_ok()
        };
        while admitted < known && admit(&mut engine, &mut admitted) {}
        // After idleness nobody says how many were let in: as many as the prompts that were finished.
        let mut trial = engine.clone();
        let mut step = trial.schedule();
        let mut given = step.as_ref().map(|s| trial.finish(s)).unwrap_or_default();
        while idle && given.prompt < seen.prompt && admit(&mut engine, &mut admitted) {
            trial = engine.clone();
            step = trial.schedule();
            given = step.as_ref().map(|s| trial.finish(s)).unwrap_or_default();
        }
        if seen.generated == 0 && seen.prompt == 0 && !given.tokens.is_empty() {
            // The engine says that a request came in, not that a step is over.
            replay.steps -= 1;
            continue;
        }
        engine = trial;
        let first = done;
        done += given.done.len();
        // Idleness ends when a request comes, which the log of steps need not say.
        let came = order.get(first).map_or(0.0, |next| run.requests[*next].at);
        let began = if idle { came.max(spoke) } else { last };
        let (seconds, noticed) =
            (seen.at - began, if idle { (last - began).max(0.0) } else { 0.0 });
        let nothing_left = engine.running() == 0 && engine.waiting() == 0;
        let agrees = given.tokens.len() as u64 == seen.generated && given.prompt == seen.prompt;
        match step {
            Some(step) if agrees && seconds > 0.0 => {
                let decode = step.load.prefill == 0;
                if decode {
                    // A mixed stretch ends where steps are pure again; the client saw its last outputs late, so the first pure step belongs to it.
                    match open.take() {
                        Some(mut mixed) => {
                            mixed.add(seconds, step.load);
                            mixed.to_idle = nothing_left;
                            replay.stretches.push(mixed);
                        }
                        None if !idle => replay.stretches.push(Stretch {
                            index,
                            seconds,
                            gaps: vec![seconds],
                            loads: vec![step.load],
                            decode_only: before_decode,
                            from_idle: false,
                            to_idle: nothing_left,
                            noticed: 0.0,
                        }),
                        None => {}
                    }
                } else {
                    // The host launches this step before it hands out the last one's tokens, so that one was seen late, too.
                    let follows = |s: &Stretch| s.index + s.loads.len() == index;
                    let mut mixed = open
                        .take()
                        .or_else(|| replay.stretches.pop_if(|last| follows(last)))
                        .unwrap_or(Stretch {
                            index,
                            seconds: 0.0,
                            gaps: Vec::new(),
                            loads: Vec::new(),
                            decode_only: false,
                            from_idle: idle,
                            to_idle: false,
                            noticed,
                        });
                    mixed.decode_only = false;
                    mixed.add(seconds, step.load);
                    mixed.to_idle = nothing_left;
                    open = Some(mixed);
                }
                before_decode = decode;
            }
            _ => {
                replay.lost += 1;
                open = None;
                before_decode = false;
            }
        }
        (last, spoke) = (seen.at, seen.at);
        idle = nothing_left;
    }
    replay.stretches.extend(open);
    replay
}

/// Joins decode steps whose ends were seen late with the ones after them, which then seem short: a client that is held up reads two
/// outputs at once, and only their sum is true. Short is less than 0.85 of the median of the nearest nine.
pub fn joined(stretches: &[Stretch]) -> Vec<Stretch> {
    let pure: Vec<&Stretch> = stretches.iter().filter(|s| s.decode_only).collect();
    let mut joined: Vec<Stretch> = Vec::new();
    for (i, stretch) in pure.iter().enumerate() {
        let near = &pure[i.saturating_sub(4)..pure.len().min(i + 5)];
        let mut times: Vec<f64> = near.iter().map(|s| s.seconds).collect();
        times.sort_by(f64::total_cmp);
        let usual = times[times.len() / 2];
        let follows = |last: &Stretch| last.index + last.loads.len() == stretch.index;
        match joined.last_mut() {
            Some(last) if stretch.seconds < 0.85 * usual && follows(last) => {
                last.seconds += stretch.seconds;
                last.gaps.extend(&stretch.gaps);
                last.loads.extend(&stretch.loads);
                last.to_idle = stretch.to_idle;
            }
            _ => joined.push((*stretch).clone()),
        }
    }
    joined
}
