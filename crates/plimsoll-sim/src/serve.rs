//! A plain engine driven by a step-time model.

use plimsoll_perf::StepModel;

use crate::plain::{Ask, Limits, PlainEngine, Step, TooLong};

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

/// Serves the requests one step at a time, in the order given; `gap` hears of every token after a request's first, with the time since the one before.
///
/// An asynchronous engine schedules a step when the one before it is launched: a request that comes in the meantime waits for the next, and one that is
/// done keeps its place for as long.
pub fn serve(
    limits: Limits,
    asynchronous: bool,
    model: &StepModel,
    arrivals: &Arrivals,
    wanted: &[Wanted],
    gap: &mut dyn FnMut(usize, u64),
) -> Result<Vec<Served>, TooLong> {
    let mut engine = PlainEngine::new(limits);
    let mut served = vec![Served::default(); wanted.len()];
    let mut last = vec![0u64; wanted.len()];
    let (mut next, mut now, mut in_flight) = (0, 0u64, 0usize);
    let mut ahead: Option<Step> = None;
    loop {
        // Those that have come by now.
        while next < wanted.len() {
            let Some(arrived) = arrivals.due(next, now, in_flight) else { break };
            let Wanted { prompt, output, cached } = wanted[next];
            engine.arrive(Ask { id: next, prompt, output, cached })?;
            served[next].arrived = arrived;
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        let Some(step) = ahead.take().or_else(|| engine.schedule()) else {
            match arrivals {
                Arrivals::Open(at) if next < wanted.len() => now = now.max(at[next]),
                _ => return Ok(served),
            }
            continue;
        };
        let given = engine.advance(&step);
        if asynchronous {
            ahead = engine.schedule();
        }
        now = now.saturating_add(model.step(&step.load));
        engine.release();
        for id in given.tokens {
            if last[id] > 0 {
                gap(id, now - last[id]);
            }
            last[id] = now;
        }
        for id in given.first {
            served[id].first = now;
        }
        for id in given.done {
            served[id].done = now;
            in_flight -= 1;
        }
    }
}
