//! A plain engine driven by a step-time model.

use plimsoll_perf::StepModel;

use crate::plain::{Ask, Limits, PlainEngine, TooLong};

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

/// Serves the requests one step at a time, in the order given.
pub fn serve(
    limits: Limits,
    model: &StepModel,
    arrivals: &Arrivals,
    asks: &[(u64, u64)],
) -> Result<Vec<Served>, TooLong> {
    let mut engine = PlainEngine::new(limits);
    let mut served = vec![Served::default(); asks.len()];
    let mut next = 0;
    let (mut now, mut in_flight) = (0, 0);
    loop {
        let due = |next: usize, in_flight: usize, now: u64| match arrivals {
            Arrivals::Open(at) => (at[next] <= now).then(|| at[next]),
            Arrivals::Closed(clients) => (in_flight < *clients).then_some(now),
        };
        while next < asks.len() {
            let Some(arrived) = due(next, in_flight, now) else { break };
            let (prompt, output) = asks[next];
            engine.arrive(Ask { id: next, prompt, output, cached: 0 })?;
            served[next].arrived = arrived;
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        let Some(step) = engine.schedule() else {
            match arrivals {
                Arrivals::Open(at) if next < asks.len() => now = now.max(at[next]),
                _ => return Ok(served),
            }
            continue;
        };
        now += model.step(&step.load);
        let given = engine.finish(&step);
        for id in given.first {
            served[id].first = now;
        }
        for id in given.done {
            served[id].done = now;
            in_flight -= 1;
        }
    }
}
