//! One replica: its engine, the servers in front of it, and who is on the way there.

use std::collections::VecDeque;

use plimsoll_perf::RequestPath;

use crate::drive::{Gauges, Pace, Stretch, Watch};
use crate::fleet::kind::AnyEngine;
use crate::fleet::report::FleetWatch;
use crate::request::Outcome;

/// What a replica does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is being started.
    Starting,
    /// It serves.
    Ready,
    /// It finishes what it has.
    Draining,
    /// It is no more.
    Gone,
}

/// What its engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// Nothing.
    Idle,
    /// It is between two steps, right now.
    Standing,
    /// It takes a step.
    Busy,
    /// It only generates, from the first instant until the second, where nobody disturbs it.
    Quiet(u64, u64),
}

/// A call that is gone from its replica's books.
pub(super) const NOBODY: u32 = u32::MAX;
/// A call whose client is gone.
pub(super) const ORPHAN: u32 = u32::MAX - 1;

/// One replica.
pub(super) struct Site<'a> {
    pub(super) pool: u16,
    /// Its place in the pool, which another takes when it is gone.
    pub(super) slot: u32,
    pub(super) region: usize,
    pub(super) stage: Stage,
    /// What waits for it is about the replica with this stamp.
    pub(super) stamp: u32,
    pub(super) engine: AnyEngine<'a>,
    pub(super) clock: Clock,
    /// When it is next looked at, and the stamp of that.
    pub(super) wake: u64,
    pub(super) wake_stamp: u32,
    /// Calls on their way through the servers in front: when they have passed, and which.
    pub(super) inbox: VecDeque<(u64, u32, u32)>,
    /// Prompt tokens of these.
    pub(super) inbox_tokens: u64,
    /// Requests in the engine whose clients have gone.
    pub(super) leaving: Vec<u64>,
    /// These, and others that the engine is about to be done with: when they were sent, and the way there.
    pub(super) orphans: Vec<(u64, u64, u64)>,
    /// Calls by the engine's serial, from the oldest that is still there.
    pub(super) inside: VecDeque<u32>,
    pub(super) oldest: u64,
    pub(super) serial: u64,
    /// Calls whose clients wait for it.
    pub(super) outstanding: u64,
    /// What the router last saw.
    pub(super) seen_outstanding: u64,
    pub(super) seen_kv: u64,
    /// What its last step brought to an end.
    pub(super) outcomes: Vec<Outcome>,
    pub(super) front: Front,
    /// When its start began.
    pub(super) began: u64,
    /// Whether it is being replaced, or replaces one that was.
    pub(super) upgrade: bool,
}

impl<'a> Site<'a> {
    /// Its engine, and whom that tells what happens.
    pub(super) fn telling<'t, W>(
        &'t mut self,
        replica: usize,
        watch: &'t mut W,
    ) -> (&'t mut AnyEngine<'a>, Tell<'t, W>) {
        let pool = self.pool as usize;
        let (outcomes, front) = (&mut self.outcomes, &mut self.front);
        (&mut self.engine, Tell { pool, replica, outcomes, front, watch })
    }

    /// Calls that wait, on the way or in line, and their tokens.
    pub(super) fn waiting(&self) -> (u64, u64) {
        let Gauges { waiting, waiting_tokens, .. } = crate::drive::Engine::gauges(&self.engine);
        (waiting + self.inbox.len() as u64, waiting_tokens + self.inbox_tokens)
    }

    /// The call with a serial, which is no longer in the books then.
    pub(super) fn take(&mut self, serial: u64) -> u32 {
        let Some(place) = serial
            .checked_sub(self.oldest)
            .and_then(|offset| self.inside.get_mut(usize::try_from(offset).ok()?))
        else {
            return NOBODY;
        };
        let call = std::mem::replace(place, NOBODY);
        while self.inside.front() == Some(&NOBODY) {
            self.inside.pop_front();
            self.oldest += 1;
        }
        call
    }
}

/// The servers in front of an engine: a call takes its time to pass, and they have work with every token that is sent back. Whoever comes while they are behind
/// waits until they are not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    call: u64,
    token: u64,
    servers: u64,
    behind: u64,
    when: u64,
    last: u64,
}

impl Front {
    pub(super) fn new(path: &RequestPath) -> Self {
        let ps = |seconds: f64| (seconds * 1e12).round().max(0.0) as u64;
        Self {
            call: ps(path.request_seconds),
            token: ps(path.token_seconds),
            servers: (path.servers as u64).max(1),
            behind: 0,
            when: 0,
            last: 0,
        }
    }

    fn behind_at(&self, at: u64) -> u64 {
        self.behind.saturating_sub(at.saturating_sub(self.when))
    }

    fn sends(&mut self, tokens: u64, from: u64, until: u64) {
        let work = self.token.saturating_mul(tokens) / self.servers;
        let behind = self.behind_at(from).saturating_add(work);
        (self.behind, self.when) = (behind.saturating_sub(until.saturating_sub(from)), until);
    }

    /// When a call that comes now has passed: in the order they came.
    pub(super) fn pass(&mut self, now: u64) -> u64 {
        let passed = now.saturating_add(self.behind_at(now)).saturating_add(self.call);
        self.last = self.last.max(passed);
        self.last
    }
}

/// Tells the fleet's onlooker what an engine tells, and keeps what is over.
pub(super) struct Tell<'t, W> {
    pub(super) pool: usize,
    pub(super) replica: usize,
    pub(super) outcomes: &'t mut Vec<Outcome>,
    pub(super) front: &'t mut Front,
    pub(super) watch: &'t mut W,
}

impl<W: FleetWatch> Watch for Tell<'_, W> {
    fn hears_gaps(&self) -> bool {
        self.watch.hears_gaps()
    }

    fn gap(&mut self, class: u16, ps: u64, pace: Pace, count: u64) {
        self.watch.gap(self.pool, class, ps, pace, count);
    }

    fn stretch(&mut self, stretch: &Stretch) {
        self.front.sends(stretch.tokens, stretch.from, stretch.from.saturating_add(stretch.took));
        self.watch.stretch(self.pool, self.replica, stretch);
    }

    fn over(&mut self, outcome: &Outcome) {
        self.outcomes.push(*outcome);
    }
}
