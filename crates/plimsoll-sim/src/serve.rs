//! A plain engine driven by a step-time model.

use plimsoll_perf::{Host, StepModel};

use crate::plain::{Ask, Given, Limits, PlainEngine, Step, TooLong};

/// A request that is served, in whole picoseconds from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// When it came.
    pub arrived: u64,
    /// When its first token appeared.
    pub first: u64,
    /// When its last token appeared.
    pub done: u64,
}

/// How requests come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At these instants, in order.
    Open(Vec<u64>),
    /// So many clients, each sends its next when the last is answered.
    Closed(usize),
}

impl Arrivals {
    /// When the next request came, where it is there by now.
    pub(crate) fn due(&self, next: usize, now: u64, in_flight: usize) -> Option<u64> {
        match self {
            Self::Open(at) => Some(at[next]).filter(|at| *at <= now),
            Self::Closed(clients) => (in_flight < *clients).then_some(now),
        }
    }
}

/// A request to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Prompt tokens, cached ones included; at least one.
    pub prompt: u64,
    /// Tokens to generate; at least one.
    pub output: u64,
    /// Prompt tokens that need not be computed.
    pub cached: u64,
}

/// What decided when a token appeared after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// The device, with a step of decodes alone.
    Decodes,
    /// The device, with a step that carried prompts.
    Prompts,
    /// The host, which was launching the next step.
    Launch,
    /// The device, but the token before was handed out late: the gap is short by as much.
    AfterLaunch,
}

/// Serves the requests one step at a time, in the order given; `gap` hears of every token after a request's first, with the time since the one before
/// and what decided it.
///
/// An asynchronous engine launches a step before it waits for the one before it: a request that comes in the meantime waits for the next, one that is
/// done keeps its place for as long, and tokens are handed out when the host has launched what follows ([`Host`]).
pub fn serve(
    limits: Limits,
    asynchronous: bool,
    model: &StepModel,
    arrivals: &Arrivals,
    wanted: &[Wanted],
    gap: &mut dyn FnMut(usize, u64, Pace),
) -> Result<Vec<Served>, TooLong> {
    let mut engine = PlainEngine::new(limits);
    let mut served = vec![Served::default(); wanted.len()];
    let mut last = vec![0u64; wanted.len()];
    let (mut next, mut in_flight) = (0, 0usize);
    let mut host = Host { free: 0u64, done: 0u64 };
    // The step whose tokens nobody has seen yet, and whether the one before it was handed out late.
    let mut under_way: Option<UnderWay> = None;
    let mut late = false;
    loop {
        // Those that have come by now.
        while next < wanted.len() {
            let Some(arrived) = arrivals.due(next, host.free, in_flight) else { break };
            let Wanted { prompt, output, cached } = wanted[next];
            engine.arrive(Ask { id: next, prompt, output, cached })?;
            served[next].arrived = arrived;
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        let step = engine.schedule();
        let prompts = step.as_ref().is_some_and(|step| step.load.prefill > 0);
        let end = step.as_ref().map_or(0, |step| match asynchronous {
            true => host.launch(model.device(&step.load), model.launch(&step.load)),
            false => host.hand_out(host.free.saturating_add(model.step(&step.load))),
        });
        let launched = |engine: &mut PlainEngine, step: Option<Step>| {
            step.map(|step| UnderWay { given: engine.advance(&step), end, prompts })
        };
        let seen = match under_way.take() {
            // With one step under way the next is launched at once.
            None if asynchronous && step.is_some() => {
                under_way = launched(&mut engine, step);
                continue;
            }
            None => match (launched(&mut engine, step), arrivals) {
                (Some(seen), _) => {
                    engine.release();
                    seen
                }
                (None, Arrivals::Open(at)) if next < wanted.len() => {
                    host.free = host.free.max(at[next]);
                    continue;
                }
                (None, _) => return Ok(served),
            },
            Some(seen) => {
                engine.release();
                under_way = launched(&mut engine, step);
                seen
            }
        };
        let was_late = std::mem::replace(&mut late, host.holds_up(seen.end));
        let now = host.hand_out(seen.end);
        let pace = match (late, was_late, seen.prompts) {
            (true, _, _) => Pace::Launch,
            (_, true, _) => Pace::AfterLaunch,
            (_, _, true) => Pace::Prompts,
            _ => Pace::Decodes,
        };
        for id in seen.given.tokens {
            if last[id] > 0 {
                gap(id, now - last[id], pace);
            }
            last[id] = now;
        }
        for id in seen.given.first {
            served[id].first = now;
        }
        for id in seen.given.done {
            served[id].done = now;
            in_flight -= 1;
        }
    }
}

/// A step that was launched.
struct UnderWay {
    given: Given,
    /// When the device is done with it.
    end: u64,
    /// Whether it carries prompts.
    prompts: bool,
}
