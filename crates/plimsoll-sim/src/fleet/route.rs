//! Which replica a call goes to, and what an engine does when somebody comes.

use crate::drive::Engine as _;
use crate::fleet::attempt::Place;
use crate::fleet::report::FleetWatch;
use crate::fleet::site::{Clock, ORPHAN, Stage};
use crate::fleet::spec::Routing;
use crate::fleet::task::AttemptEnd;
use crate::fleet::{Rank, Run, What};
use crate::request::{End, Outcome};

impl<W: FleetWatch> Run<'_, '_, W> {
    /// The nearest region in which a pool has somebody, and the way there; the nearest of all where it has nobody. None where no way leads to any.
    pub(super) fn nearest(&self, pool: usize, from: usize) -> Option<(usize, u64)> {
        let regions = &self.spec.pools[pool].regions;
        let ways = self.spec.ways.get(from);
        // Where nothing is said of a way it takes no time.
        let way = |to: usize| ways.and_then(|ways| ways.get(to)).copied().unwrap_or(Some(0));
        if let [only] = regions[..] {
            return way(only).map(|way| (only, way));
        }
        let state = &self.pools[pool];
        let ready = |region: usize| {
            state.ready.iter().any(|site| self.sites[*site as usize].region == region)
        };
        let reached = regions.iter().filter_map(|region| way(*region).map(|way| (way, *region)));
        let nearest = reached.clone().filter(|(_, region)| ready(*region)).min();
        nearest.or_else(|| reached.min()).map(|(way, region)| (region, way))
    }

    /// The replica that a call goes to.
    pub(super) fn pick(&mut self, pool: usize, call: u32) -> Option<u32> {
        let spec = &self.spec.pools[pool];
        if spec.routing == Routing::LeastKv && spec.staleness == 0 {
            for i in 0..self.pools[pool].ready.len() {
                self.catch_up(self.pools[pool].ready[i]);
            }
        }
        let own = self.calls.get(call)?;
        let own_region = own.region;
        let state = &self.pools[pool];
        let (ready, count) = (&state.ready, state.ready.len());
        if count == 0 {
            return None;
        }
        let one_region = spec.regions.len() < 2;
        let sites = &self.sites;
        let near = |site: u32| one_region || sites[site as usize].region == own_region;
        // In turn from the one after the last that was picked, so that ties go round.
        let turn = state.turn as usize % count;
        let in_turn = (turn..count).chain(0..turn).filter(|i| near(ready[*i]));
        let live = spec.staleness == 0;
        let outstanding = |i: usize| {
            let site = &sites[ready[i] as usize];
            if live { site.outstanding } else { site.seen_outstanding }
        };
        let chosen = match spec.routing {
            Routing::RoundRobin => in_turn.clone().next()?,
            Routing::Random => {
                let near = in_turn.clone().count();
                let which = self.chance.routes.index(near);
                in_turn.clone().nth(which)?
            }
            Routing::LeastOutstanding => in_turn.clone().min_by_key(|i| outstanding(*i))?,
            Routing::LeastKv => in_turn.clone().min_by_key(|i| {
                let site = &sites[ready[*i] as usize];
                let blocks = if live { site.engine.gauges().blocks } else { site.seen_kv };
                (blocks, outstanding(*i))
            })?,
            Routing::PrefixAffinity { slack } => {
                let least = in_turn.clone().map(outstanding).min()?;
                let mut wanted = own.wanted.clone();
                self.rename(&mut wanted, pool);
                in_turn.clone().min_by_key(|i| {
                    let ahead = outstanding(*i) - least;
                    let finds = sites[ready[*i] as usize].engine.finds(&wanted);
                    let finds = if ahead > slack { 0 } else { finds };
                    (std::cmp::Reverse(finds), ahead)
                })?
            }
            Routing::Session => {
                let session = self.tasks.get(own.task).map_or(0, |task| task.session);
                // The highest of a hash of both: when a replica comes or goes, only its share moves.
                in_turn
                    .clone()
                    .max_by_key(|i| mixed(session, u64::from(sites[ready[*i] as usize].slot)))?
            }
        };
        let site = ready[chosen];
        self.pools[pool].turn = chosen as u32 + 1;
        Some(site)
    }

    /// Whether a pool that has nobody will have somebody.
    pub(super) fn comes_soon(&self, pool: usize) -> bool {
        self.pools[pool].starting > 0 || self.pools[pool].wanted_ever
    }

    /// Whether callers of a pool that has nobody are told to wait. An autoscaler would not know of those who are not: one of them always is.
    pub(super) fn holds(&self, pool: usize) -> bool {
        let (state, most) = (&self.pools[pool], self.spec.pools[pool].queue.requests);
        let room = most.is_none_or(|most| state.holding < most.max(1));
        room && (state.starting > 0 || state.wanted_ever)
    }

    /// A router looks at its replicas.
    pub(super) fn look(&mut self, pool: u16) {
        for i in 0..self.pools[pool as usize].ready.len() {
            let site = self.pools[pool as usize].ready[i];
            self.catch_up(site);
            let there = &mut self.sites[site as usize];
            there.seen_outstanding = there.outstanding;
            there.seen_kv = there.engine.gauges().blocks;
        }
        let again = self.now.saturating_add(self.spec.pools[pool as usize].staleness);
        self.at(again, Rank::Change, What::Look(pool));
    }

    /// Somebody comes to an engine, or leaves it, at an instant.
    pub(super) fn disturb(&mut self, site: u32, at: u64) {
        let there = &self.sites[site as usize];
        let waits = match there.clock {
            Clock::Idle | Clock::Quiet(..) => at < there.wake,
            Clock::Standing | Clock::Busy => false,
        };
        if waits {
            self.wake(site, at);
        }
    }

    fn wake(&mut self, site: u32, at: u64) {
        let (at, stamp) = (at.max(self.now), self.stamp());
        let there = &mut self.sites[site as usize];
        (there.wake, there.wake_stamp) = (at, stamp);
        self.at(at, Rank::Engine, What::Engine(site, stamp));
    }

    /// Lets an engine that only generates do so until now.
    pub(super) fn catch_up(&mut self, site: u32) {
        let (now, replica) = (self.now, site as usize);
        let there = &mut self.sites[replica];
        let Clock::Quiet(since, end) = there.clock else { return };
        let (engine, mut tell) = there.telling(replica, &mut *self.watch);
        // As far as it was looked at, or only until somebody came.
        let until = if now >= end { u64::MAX } else { now };
        let moved = engine.go(since, until, &mut tell);
        there.clock = Clock::Busy;
        let until = moved.map_or(now, |moved| moved.now);
        self.wake(site, until);
    }

    /// An engine has finished a step, or somebody has come.
    pub(super) fn engine_goes_on(&mut self, site: u32, stamp: u32) {
        let (now, replica) = (self.now, site as usize);
        if self.sites[replica].wake_stamp != stamp {
            return;
        }
        if matches!(self.sites[replica].clock, Clock::Quiet(..)) {
            self.catch_up(site);
            if self.sites[replica].wake > now {
                return;
            }
        }
        self.sites[replica].clock = Clock::Standing;
        self.settle_outcomes(site, false);
        self.let_leave(site);
        self.let_in(site);
        let there = &mut self.sites[replica];
        if there.stage == Stage::Gone {
            return;
        }
        if let Some(end) = there.engine.quiet(now) {
            there.clock = Clock::Quiet(now, end);
            let comes = there.inbox.front().map_or(u64::MAX, |(at, ..)| *at);
            self.wake(site, end.min(comes));
            return;
        }
        let (engine, mut tell) = there.telling(replica, &mut *self.watch);
        match engine.step(now, &mut tell) {
            Some(moved) => {
                there.clock = Clock::Busy;
                self.wake(site, moved.now);
            }
            None => {
                there.clock = Clock::Idle;
                there.wake = u64::MAX;
                match there.inbox.front() {
                    Some(&(at, ..)) => self.wake(site, at),
                    None => self.empty(site),
                }
            }
        }
    }

    /// What an engine has brought to an end is told.
    pub(super) fn settle_outcomes(&mut self, site: u32, lost: bool) {
        if self.sites[site as usize].outcomes.is_empty() {
            return;
        }
        let mut outcomes = std::mem::take(&mut self.sites[site as usize].outcomes);
        for outcome in &outcomes {
            self.served(site, outcome, lost);
        }
        outcomes.clear();
        let kept = &mut self.sites[site as usize].outcomes;
        // Whoever was turned away in the meantime is told, too.
        if kept.is_empty() {
            *kept = outcomes;
        }
    }

    /// Requests whose clients have gone leave the engine.
    fn let_leave(&mut self, site: u32) {
        let (now, replica) = (self.now, site as usize);
        let mut leaving = std::mem::take(&mut self.sites[replica].leaving);
        // In the order in which they went.
        for serial in leaving.drain(..) {
            let there = &mut self.sites[replica];
            let (engine, mut tell) = there.telling(replica, &mut *self.watch);
            engine.cancel(now, serial, &mut tell);
        }
        self.sites[replica].leaving = leaving;
        self.settle_outcomes(site, false);
    }

    /// Calls that have passed the servers in front reach the engine.
    fn let_in(&mut self, site: u32) {
        let (now, replica) = (self.now, site as usize);
        while let Some(&(at, call, stamp)) = self.sites[replica].inbox.front()
            && at <= now
        {
            self.sites[replica].inbox.pop_front();
            let current = self.calls.get(call).filter(|own| own.stamp == stamp);
            let prompt = current.map_or(0, |own| own.wanted.prompt);
            let Some(came) = current.map(|own| own.came) else {
                self.forget_tokens(replica);
                continue;
            };
            let there = &self.sites[replica];
            let pool = there.pool as usize;
            let full = self.spec.pools[pool].queue.is_full(&there.engine.gauges());
            let Some(wanted) = self.asked_of(call, pool) else { continue };
            let class = wanted.class;
            let there = &mut self.sites[replica];
            there.inbox_tokens = there.inbox_tokens.saturating_sub(prompt);
            let serial = there.serial;
            there.serial += 1;
            if there.inside.is_empty() {
                there.oldest = serial;
            }
            there.inside.push_back(call);
            let end = if full {
                Some(End::Rejected)
            } else {
                there.engine.arrive(came, serial, wanted).err().map(|_| End::TooLong)
            };
            match end {
                None => {
                    if let Some(own) = self.calls.get_mut(call) {
                        own.place = Place::Engine(site, serial);
                    }
                }
                Some(end) => {
                    let outcome = Outcome {
                        serial,
                        class,
                        end,
                        arrived: came,
                        scheduled: None,
                        first: None,
                        done: now,
                        prompt,
                        output: 0,
                        cached: 0,
                        read: 0,
                        preemptions: 0,
                        largest_gap: 0,
                    };
                    self.served(site, &outcome, false);
                }
            }
        }
    }

    /// Tokens on the way are counted again after somebody has left it.
    fn forget_tokens(&mut self, replica: usize) {
        let tokens = self.sites[replica].inbox.iter().filter_map(|(_, call, stamp)| {
            let own = self.calls.get(*call).filter(|own| own.stamp == *stamp)?;
            Some(own.wanted.prompt)
        });
        let tokens = tokens.sum();
        self.sites[replica].inbox_tokens = tokens;
    }

    /// Everything in a replica is lost.
    pub(super) fn crash(&mut self, site: u32) {
        self.catch_up(site);
        let (now, replica) = (self.now, site as usize);
        let there = &mut self.sites[replica];
        there.clock = Clock::Standing;
        there.leaving.clear();
        let (engine, mut tell) = there.telling(replica, &mut *self.watch);
        engine.lose(now, &mut tell);
        for outcome in &mut there.outcomes {
            outcome.done = outcome.done.min(now);
            outcome.first = outcome.first.filter(|first| *first <= now);
            outcome.end = End::TimedOut;
        }
        let on_the_way: Vec<(u64, u32, u32)> = there.inbox.drain(..).collect();
        there.inbox_tokens = 0;
        self.settle_outcomes(site, true);
        for (_, call, stamp) in on_the_way {
            let current = self.calls.get(call).is_some_and(|own| own.stamp == stamp);
            if current {
                self.sites[replica].outstanding -= 1;
                self.attempt_fails(call, AttemptEnd::Lost, None);
            }
        }
        let there = &self.sites[replica];
        assert!(there.inside.iter().all(|call| *call != ORPHAN), "everybody was told");
        assert_eq!(there.outstanding, 0, "nobody waits for what is gone");
    }
}

/// Two numbers, well mixed.
fn mixed(a: u64, b: u64) -> u64 {
    let x = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
