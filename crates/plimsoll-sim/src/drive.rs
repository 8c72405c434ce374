//! Requests brought to an engine, and taken from it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::limits::TooLong;
use crate::plain::Held;
use crate::request::{End, Outcome, Wanted};

/// An engine with a clock.
pub trait Engine {
    /// A request comes; `serial` is higher than any before.
    fn arrive(&mut self, at: u64, serial: u64, wanted: Wanted) -> Result<(), TooLong>;

    /// The client of a request has gone; true where it was still there. What it got is told to `watch`.
    fn cancel(&mut self, now: u64, serial: u64, watch: &mut impl Watch) -> bool;

    /// One step, or a stretch of steps that all begin before `until`; none where there is nothing to do.
    fn go(&mut self, now: u64, until: u64, watch: &mut impl Watch) -> Option<Moved>;

    /// How long it only generates where nobody comes or goes: when the tokens of that stretch would all be handed out. None where its next step has to be
    /// taken by itself. Nothing has moved then; [`Engine::go`] moves it, if only as far as somebody lets it.
    fn quiet(&mut self, now: u64) -> Option<u64>;

    /// One step; none where there is nothing to do.
    fn step(&mut self, now: u64, watch: &mut impl Watch) -> Option<Moved>;

    /// Everything in it is lost: all that was there is told to `watch`, and it must not be used any more.
    fn lose(&mut self, now: u64, watch: &mut impl Watch);

    /// How it stands.
    fn gauges(&self) -> Gauges;

    /// Whether a request has had its first token.
    fn has_begun(&self, serial: u64) -> bool;

    /// When the first in line came.
    fn first_waiting(&self) -> Option<u64>;

    /// Prompt tokens that it would find in its cache now.
    fn finds(&self, wanted: &Wanted) -> u64;
}

/// How far an engine came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// When its last step ended.
    pub now: u64,
    /// Requests that were completed.
    pub completed: usize,
}

/// How an engine stands between two steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sequences that run.
    pub running: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// Tokens of those that wait.
    pub waiting_tokens: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Sequences that could run beside them.
    pub seats: u64,
}

/// A step, or a stretch of steps that only generate: from when the tokens before it were handed out until its own were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// When it began.
    pub from: u64,
    /// How long it took.
    pub took: u64,
    /// Steps.
    pub steps: u64,
    /// Prompt tokens it read.
    pub prefill: u64,
    /// Twice the pairs of a prompt token and a token it sees.
    pub pairs_doubled: u64,
    /// Sequences that generated, over all steps.
    pub decodes: u64,
    /// Contexts that they saw, over all steps.
    pub context: u64,
    /// Tokens that it gave, first ones and guessed ones included.
    pub tokens: u64,
    /// How it stood when it began.
    pub gauges: Gauges,
    /// What kept the first in line waiting.
    pub held: Option<Held>,
    /// Requests thrown out for it.
    pub preempted: u64,
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

impl Pace {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Decodes, Self::Prompts, Self::Launch, Self::AfterLaunch];

    /// Of a step with prompts or without, handed out late or after one that was.
    pub fn of(late: bool, was_late: bool, prompts: bool) -> Self {
        match (late, was_late, prompts) {
            (true, _, _) => Self::Launch,
            (_, true, _) => Self::AfterLaunch,
            (_, _, true) => Self::Prompts,
            _ => Self::Decodes,
        }
    }
}

/// Somebody who looks on. Everything is told in the same order, whichever engine tells it.
pub trait Watch {
    /// Whether gaps are listened to: where they are not, they are not worked out.
    fn hears_gaps(&self) -> bool {
        true
    }
    /// So many sequences of a class got their next tokens this long after the ones before, and what decided that.
    fn gap(&mut self, _class: u16, _ps: u64, _pace: Pace, _count: u64) {}
    /// Steps were taken.
    fn stretch(&mut self, _stretch: &Stretch) {}
    /// A request is over.
    fn over(&mut self, _outcome: &Outcome) {}
}

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// At their own instants.
    Open,
    /// So many clients, each sends its next when the last is answered; instants are not looked at.
    Closed(usize),
}

/// A request on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it comes, not before the one before it.
    pub at: u64,
    /// When its client sent it, where that was earlier: its times count from here.
    pub sent: u64,
    /// What it wants.
    pub wanted: Wanted,
    /// When its client goes away.
    pub gives_up: Option<u64>,
}

/// Bounds of the waiting line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Requests that may wait; whoever only waits for the next step to begin, because there is a seat, does not count.
    pub requests: Option<u64>,
    /// Tokens that may wait before somebody else does.
    pub tokens: Option<u64>,
}

impl Queue {
    /// Whether nobody else may wait.
    pub(crate) fn is_full(&self, gauges: &Gauges) -> bool {
        let Gauges { waiting, seats, waiting_tokens, .. } = *gauges;
        self.requests.is_some_and(|most| waiting >= most.saturating_add(seats))
            || self.tokens.is_some_and(|most| waiting >= seats && waiting_tokens >= most)
    }
}

/// When to stop although there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps and stretches.
    pub moves: u64,
    /// The last instant at which something may begin.
    pub until: u64,
}

impl Arrival {
    /// Sent and there at the same time, by somebody who waits as long as it takes.
    pub fn new(at: u64, wanted: Wanted) -> Self {
        Self { at, sent: at, wanted, gives_up: None }
    }
}

impl Budget {
    /// To the end, however long it takes.
    pub const NONE: Self = Self { moves: u64::MAX, until: u64::MAX };
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether somebody stopped it, or its moves were spent.
    pub stopped: bool,
    /// The last instant.
    pub now: u64,
    /// Requests that came.
    pub offered: u64,
    /// Requests that are still there.
    pub unfinished: u64,
    /// Whether all requests came and were seen to.
    pub complete: bool,
}

/// Lets requests come and an engine work until none is left, the budget is spent or `go_on`, which is asked now and then and told the time, says no.
pub fn drive<E: Engine>(
    engine: &mut E,
    clients: Loop,
    arrivals: impl IntoIterator<Item = Arrival>,
    queue: Queue,
    budget: Budget,
    watch: &mut impl Watch,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Ended {
    let mut arrivals = arrivals.into_iter().peekable();
    let mut leaving: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let (mut now, mut serial, mut inside, mut moves) = (0u64, 0u64, 0u64, 0u64);
    loop {
        // Clients that have gone by now, then requests that have come.
        while let Some(Reverse((at, who))) = leaving.peek().copied()
            && at <= now
        {
            leaving.pop();
            inside -= u64::from(engine.cancel(now, who, watch));
        }
        let mut comes = u64::MAX;
        while let Some(next) = arrivals.peek() {
            let due = match clients {
                Loop::Open => next.at <= now,
                Loop::Closed(clients) => inside < clients as u64,
            };
            if !due {
                comes = if clients == Loop::Open { next.at } else { u64::MAX };
                break;
            }
            let Some(next) = arrivals.next() else { break };
            let at = if clients == Loop::Open { next.sent } else { now };
            let Wanted { class, prompt, .. } = next.wanted;
            let full = queue.is_full(&engine.gauges());
            let end = if next.gives_up.is_some_and(|gone| gone <= now) {
                Some(End::TimedOut)
            } else if full {
                Some(End::Rejected)
            } else {
                engine.arrive(at, serial, next.wanted).err().map(|_| End::TooLong)
            };
            match end {
                Some(end) => watch.over(&Outcome {
                    serial,
                    class,
                    end,
                    arrived: at,
                    scheduled: None,
                    first: None,
                    // Who is turned away is so at once; who gave up on the way is missed when it comes.
                    done: if end == End::TimedOut { now.max(at) } else { at },
                    prompt,
                    output: 0,
                    cached: 0,
                    read: 0,
                    preemptions: 0,
                    largest_gap: 0,
                }),
                None => {
                    inside += 1;
                    leaving.extend(next.gives_up.map(|at| Reverse((at, serial))));
                }
            }
            serial += 1;
        }
        moves += 1;
        let stopped = moves > budget.moves || moves % 256 == 0 && !go_on(now);
        if stopped || now >= budget.until {
            return Ended { stopped, now, offered: serial, unfinished: inside, complete: false };
        }
        let goes = leaving.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        match engine.go(now, comes.min(goes).min(budget.until), watch) {
            Some(moved) => {
                now = moved.now;
                inside -= moved.completed as u64;
            }
            // Nothing to do: until somebody comes, or one that can never be let in is given up.
            None if comes < u64::MAX => now = now.max(comes),
            None if inside > 0 && goes < u64::MAX => now = now.max(goes),
            None => {
                return Ended {
                    stopped: false,
                    now,
                    offered: serial,
                    unfinished: inside,
                    complete: inside == 0 && arrivals.peek().is_none(),
                };
            }
        }
    }
}
