//! A call of a model: sent, served or not, and sent again.

use std::sync::Arc;

use crate::fleet::bucket::Bucket;
use crate::fleet::report::{Attempt, FleetWatch};
use crate::fleet::site::ORPHAN;
use crate::fleet::spec::{HandOver, Target};
use crate::fleet::task::{AttemptEnd, TaskEnd};
use crate::fleet::{Rank, Run, What};
use crate::request::{End, Outcome, Output, Wanted, tokens_u32};

/// A call that a client waits for.
#[derive(Debug)]
pub(super) struct CallState {
    pub(super) task: u32,
    pub(super) class: u16,
    pub(super) wanted: Wanted,
    /// Where it goes, if not where its class does.
    pub(super) fixed: Option<Target>,
    /// When this attempt of it was sent, and when it reaches where it was sent to.
    pub(super) sent: u64,
    pub(super) came: u64,
    /// Attempts of its client.
    pub(super) attempts: u32,
    /// Its class's route, and how many of the places to fall back to it has been to.
    pub(super) route: u16,
    pub(super) fallen: u16,
    /// Whether it was sent elsewhere because something is wrong.
    pub(super) shifted: bool,
    /// What waits for it is about the attempt with this stamp.
    pub(super) stamp: u32,
    pub(super) target: Target,
    /// The region it is sent to, and the way there.
    pub(super) region: usize,
    pub(super) way: u64,
    pub(super) place: Place,
    /// What came of its prompt, where others generate.
    pub(super) read: Option<Box<Outcome>>,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// With its client.
    Client,
    /// On the way.
    Way,
    /// Waiting for a replica to be there.
    Held,
    /// Passing the servers in front of a replica.
    Front(u32),
    /// In a replica's engine, by its serial.
    Engine(u32, u64),
    /// With a provider: since when, until its first token, between tokens, what was reserved, and whether it fails when that token was to come.
    Provider { at: u64, ttft: u64, tpot: u64, reserved: u64, fails: bool },
    /// Its keys and values are handed over.
    Link,
}

/// A provider and its limits.
#[derive(Debug)]
pub(super) struct ProviderState {
    pub(super) calls: Option<Bucket>,
    pub(super) tokens: Option<Bucket>,
    pub(super) prompt: Option<Bucket>,
    pub(super) output: Option<Bucket>,
    pub(super) inside: u64,
    /// Outages that last.
    pub(super) out: u32,
}

/// What a provider's limits are asked for.
struct Claim {
    prompt: u64,
    output: u64,
}

/// Retries that a class can save up, in thousandths.
const SAVED_MOST: u64 = 10_000;

impl<W: FleetWatch> Run<'_, '_, W> {
    /// Does something with a call, unless it has moved on since.
    pub(super) fn if_current(&mut self, call: u32, stamp: u32, does: impl FnOnce(&mut Self, u32)) {
        if self.calls.get(call).is_some_and(|own| own.stamp == stamp) {
            does(self, call);
        }
    }

    /// A task makes a call.
    pub(super) fn make_call(
        &mut self,
        task: u32,
        class: u16,
        wanted: Wanted,
        fixed: Option<Target>,
    ) -> u32 {
        let own = &self.spec.classes[class as usize];
        if let Some(budget) = own.retries.and_then(|r| r.budget) {
            let allowed = &mut self.allowed[class as usize];
            *allowed = (*allowed + (budget * 1000.0) as u64).min(SAVED_MOST);
        }
        self.calls.insert(CallState {
            task,
            class,
            wanted,
            fixed,
            sent: self.now,
            came: self.now,
            attempts: 0,
            route: 0,
            fallen: 0,
            shifted: false,
            stamp: 0,
            target: Target::Pool(0),
            region: 0,
            way: 0,
            place: Place::Client,
            read: None,
        })
    }

    /// A client sends a call, for the first time or again.
    pub(super) fn send(&mut self, call: u32) {
        let Some(own) = self.calls.get(call) else { return };
        let (class, fixed, task) = (own.class as usize, own.fixed, own.task);
        let routes = &self.spec.classes[class].routes;
        let mut route = 0;
        if fixed.is_none() && routes.len() > 1 {
            let mut left = self.chance.routes.uniform();
            while route + 1 < routes.len() && left >= routes[route].share {
                left -= routes[route].share;
                route += 1;
            }
        }
        let mut target = fixed.unwrap_or(routes[route].to);
        if self.wrong > 0
            && fixed.is_none()
            && let Some((to, share)) = routes[route].shift
            && self.chance.routes.uniform() < share
        {
            target = to;
        }
        let shifted = fixed.is_none() && target != routes[route].to;
        let (now, stamp) = (self.now, self.stamp());
        let timeout = self.spec.classes[class].retries.and_then(|r| r.timeout);
        let Some(own) = self.calls.get_mut(call) else { return };
        (own.route, own.fallen, own.stamp) = (route as u16, 0, stamp);
        own.shifted = shifted;
        own.attempts += 1;
        let Some(owner) = self.tasks.get_mut(task) else { return };
        let until = timeout.map_or(u64::MAX, |t| now.saturating_add(t));
        let until = until.min(owner.deadline).min(owner.leaves);
        if until < u64::MAX {
            self.at(until, Rank::Client, What::Patience(call, stamp));
        }
        self.send_to(call, target);
    }

    /// Sends a call somewhere.
    pub(super) fn send_to(&mut self, call: u32, target: Target) {
        let Some(own) = self.calls.get(call) else { return };
        let from = self.spec.classes[own.class as usize].region;
        let there = match target {
            Target::Provider(_) => Some((from, 0)),
            Target::Pool(pool) => self.nearest(pool, from),
        };
        self.attempts += 1;
        let now = self.now;
        let Some(own) = self.calls.get_mut(call) else { return };
        (own.target, own.place, own.sent, own.way) = (target, Place::Way, now, 0);
        if let Some(owner) = self.tasks.get_mut(own.task) {
            owner.attempts += 1;
            if let Target::Pool(pool) = target {
                owner.pool = Some(pool as u16);
            }
        }
        match there {
            Some((region, way)) => self.sets_out(call, region, way),
            None => self.attempt_fails(call, AttemptEnd::NobodyThere, None),
        }
    }

    /// A call is on its way to a region.
    fn sets_out(&mut self, call: u32, region: usize, way: u64) {
        let at = self.now.saturating_add(way);
        let Some(own) = self.calls.get_mut(call) else { return };
        (own.region, own.way, own.came, own.place) = (region, way, at, Place::Way);
        let stamp = own.stamp;
        if way > 0 {
            self.at(at, Rank::Client, What::Reach(call, stamp));
        } else {
            self.reach(call);
        }
    }

    /// A call is where it was sent.
    pub(super) fn reach(&mut self, call: u32) {
        let Some(own) = self.calls.get(call) else { return };
        match own.target {
            Target::Pool(pool) => self.reach_pool(call, pool),
            Target::Provider(provider) => self.reach_provider(call, provider),
        }
    }

    fn reach_pool(&mut self, call: u32, pool: usize) {
        if let Some(site) = self.pick(pool, call) {
            self.came(call, pool);
            self.enter(call, site);
            return;
        }
        let Some(own) = self.calls.get(call) else { return };
        // Whoever was there when it was sent may be gone: to those who are elsewhere.
        let from = self.spec.classes[own.class as usize].region;
        if !self.pools[pool].ready.is_empty()
            && let Some((region, way)) = self.nearest(pool, from)
            && region != own.region
        {
            self.sets_out(call, region, way);
        } else if self.holds(pool) && !self.goes_elsewhere(call, pool) {
            self.came(call, pool);
            let Some(own) = self.calls.get_mut(call) else { return };
            own.place = Place::Held;
            let state = &mut self.pools[pool];
            state.held.push_back((call, own.stamp));
            state.holding += 1;
        } else {
            self.attempt_fails(call, AttemptEnd::NobodyThere, None);
        }
    }

    /// Whether a call falls back rather than waits for a pool that has nobody yet: somebody may serve it at once. Where a pool starts its first replica only when
    /// somebody asks for it, somebody has to ask.
    fn goes_elsewhere(&self, call: u32, pool: usize) -> bool {
        let Some(own) = self.calls.get(call).filter(|own| own.fixed.is_none()) else {
            return false;
        };
        let route = &self.spec.classes[own.class as usize].routes[own.route as usize];
        let scaling = self.spec.pools[pool].scaling.as_ref();
        let from_nothing = scaling.is_some_and(|own| own.scaling.activation.is_some());
        own.read.is_none() && !from_nothing && route.fallback.len() > own.fallen as usize
    }

    /// A call has come to a pool; one that was held there did so before.
    fn came(&mut self, call: u32, pool: usize) {
        let Some(own) = self.calls.get(call) else { return };
        if own.read.is_none() && own.place != Place::Held {
            let hits = self.spec.pools[pool].caches;
            let known = own.wanted.content.is_none() && hits;
            let cached = if known { own.wanted.cached } else { 0 };
            self.pools[pool].fresh += own.wanted.prompt.saturating_sub(cached);
        }
    }

    /// A call passes the servers in front of a replica.
    pub(super) fn enter(&mut self, call: u32, site: u32) {
        let now = self.now;
        let Some(own) = self.calls.get_mut(call) else { return };
        own.place = Place::Front(site);
        let (stamp, prompt) = (own.stamp, own.wanted.prompt);
        let there = &mut self.sites[site as usize];
        let at = there.front.pass(now);
        there.outstanding += 1;
        there.inbox.push_back((at, call, stamp));
        there.inbox_tokens += prompt;
        self.disturb(site, at);
    }

    /// What the engine of a pool is asked for by a call: all of it, or only its prompt, or only its output.
    pub(super) fn asked_of(&self, call: u32, pool: usize) -> Option<Wanted> {
        let own = self.calls.get(call)?;
        let mut wanted = own.wanted.clone();
        if own.read.is_some() {
            wanted.content = None;
            wanted.cached = wanted.prompt - 1;
            return Some(wanted);
        }
        if self.spec.pools[pool].hands_over.is_some() {
            wanted.output = Output::one();
        }
        if !self.spec.pools[pool].caches {
            wanted.cached = 0;
        }
        self.rename(&mut wanted, pool);
        Some(wanted)
    }

    /// What was cached before a pool forgot it is known by other names, which nobody asks for any more.
    pub(super) fn rename(&self, wanted: &mut Wanted, pool: usize) {
        let forgotten = self.pools[pool].forgotten;
        if forgotten > 0
            && let Some(content) = &mut wanted.content
        {
            let renamed =
                |id: u64| (id ^ forgotten.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & (u64::MAX >> 1);
            let content = Arc::make_mut(content);
            content.shared.iter_mut().for_each(|segment| segment.id = renamed(segment.id));
            content.own = content.own.map(renamed);
        }
    }

    /// A replica is done with a request, in one way or another.
    pub(super) fn served(&mut self, site: u32, outcome: &Outcome, lost: bool) {
        let there = &mut self.sites[site as usize];
        let (pool, region) = (there.pool as usize, there.region);
        let call = there.take(outcome.serial);
        let Some(own) = self.calls.get(call) else {
            if call == ORPHAN {
                let at = there.orphans.iter().position(|(serial, ..)| *serial == outcome.serial);
                let (_, sent, way) =
                    at.map_or((0, outcome.arrived, 0), |at| there.orphans.remove(at));
                let attempt = Attempt {
                    class: outcome.class,
                    target: Target::Pool(pool),
                    replica: Some(site as usize),
                    region: Some(region),
                    sent,
                    way,
                    end: AttemptEnd::GivenUp,
                    retry_after: None,
                    outcome: Some(outcome),
                };
                self.attempts_over += 1;
                self.watch.attempt(&attempt);
            }
            return;
        };
        let (sent, way, class) = (own.sent, own.way, own.class);
        self.sites[site as usize].outstanding -= 1;
        let end = match outcome.end {
            _ if lost => AttemptEnd::Lost,
            End::Completed => AttemptEnd::Answered,
            End::Rejected => AttemptEnd::Refused,
            End::TooLong => AttemptEnd::TooLong,
            End::TimedOut => AttemptEnd::GivenUp,
        };
        self.attempts_over += 1;
        self.watch.attempt(&Attempt {
            class,
            target: Target::Pool(pool),
            replica: Some(site as usize),
            region: Some(region),
            sent,
            way,
            end,
            retry_after: None,
            outcome: Some(outcome),
        });
        match end {
            AttemptEnd::Answered => match self.spec.pools[pool].hands_over {
                Some(over) => self.hand_over(call, pool, over, outcome),
                None => self.answered(call, outcome),
            },
            // Who has seen a token has to ask again; before that somebody else can take over.
            _ => self.attempt_failed(call, end, None, outcome.first.is_none()),
        }
    }

    /// The keys and values of a prompt go to where its output is generated, over a link that others use too.
    fn hand_over(&mut self, call: u32, pool: usize, over: HandOver, outcome: &Outcome) {
        let time = over.time(outcome.prompt);
        let state = &mut self.pools[pool];
        state.link_free = state.link_free.max(self.now).saturating_add(time);
        let at = state.link_free;
        let Some(own) = self.calls.get_mut(call) else { return };
        (own.target, own.place) = (Target::Pool(over.to), Place::Link);
        own.read = Some(Box::new(*outcome));
        let (stamp, task) = (own.stamp, own.task);
        if let Some(task) = self.tasks.get_mut(task) {
            task.handing_over += at - self.now;
        }
        self.attempts += 1;
        self.at(at, Rank::Client, What::HandedOver(call, stamp));
    }

    /// Its keys and values are where they are needed.
    pub(super) fn handed_over(&mut self, call: u32) {
        let Some(own) = self.calls.get_mut(call) else { return };
        (own.place, own.came) = (Place::Way, self.now);
        self.reach(call);
    }

    /// A client has its answer.
    fn answered(&mut self, call: u32, outcome: &Outcome) {
        let Some(mut own) = self.calls.remove(call) else { return };
        // What was read elsewhere is part of it.
        let mut outcome = *outcome;
        if let Some(read) = own.read.take() {
            outcome.arrived = read.arrived;
            outcome.scheduled = read.scheduled;
            outcome.cached = read.cached;
            outcome.read = outcome.read.saturating_add(read.read);
        }
        if let Target::Pool(pool) = own.target {
            self.saw_first_token(pool, &own, &outcome);
        }
        self.call_answered(call, &own, &outcome);
    }

    /// An attempt comes to nothing before anybody served it.
    pub(super) fn attempt_fails(&mut self, call: u32, end: AttemptEnd, retry_after: Option<u64>) {
        self.report_attempt(call, end, retry_after);
        self.attempt_failed(call, end, retry_after, true);
    }

    fn report_attempt(&mut self, call: u32, end: AttemptEnd, retry_after: Option<u64>) {
        let Some(own) = self.calls.get(call) else { return };
        let replica = match own.place {
            Place::Front(site) => Some(site as usize),
            _ => None,
        };
        self.attempts_over += 1;
        self.watch.attempt(&Attempt {
            class: own.class,
            target: own.target,
            replica,
            region: replica.map(|site| self.sites[site].region),
            sent: own.sent,
            way: own.way,
            end,
            retry_after,
            outcome: None,
        });
    }

    /// An attempt has come to nothing: the next place to fall back to, another attempt, or the end of its task.
    fn attempt_failed(
        &mut self,
        call: u32,
        end: AttemptEnd,
        retry_after: Option<u64>,
        falls: bool,
    ) {
        let Some(own) = self.calls.get_mut(call) else { return };
        (own.place, own.read) = (Place::Client, None);
        let route = &self.spec.classes[own.class as usize].routes[own.route as usize];
        if falls && own.fixed.is_none() {
            // Whoever was sent elsewhere because something is wrong can go to its own place yet.
            let shifted = std::mem::take(&mut own.shifted);
            let next = match shifted {
                true => Some(route.to),
                false => route.fallback.get(own.fallen as usize).copied(),
            };
            if let Some(next) = next {
                own.fallen += u16::from(!shifted);
                self.send_to(call, next);
                return;
            }
        }
        let why = match end {
            AttemptEnd::TooLong => TaskEnd::TooLong,
            AttemptEnd::Lost => TaskEnd::Lost,
            AttemptEnd::GivenUp => TaskEnd::TimedOut,
            _ => TaskEnd::Refused,
        };
        let task = own.task;
        if end == AttemptEnd::TooLong || !self.tries_again(call, retry_after) {
            self.task_fails(task, why);
        }
    }

    /// Whether a client sends a call again, after a pause.
    fn tries_again(&mut self, call: u32, retry_after: Option<u64>) -> bool {
        let Some(own) = self.calls.get(call) else { return false };
        let (class, attempts, task) = (own.class as usize, own.attempts, own.task);
        let Some(pause) = self.pause(class, attempts) else { return false };
        let at = self.now.saturating_add(pause.max(retry_after.unwrap_or(0)));
        let stamp = self.stamp();
        let Some(own) = self.calls.get_mut(call) else { return false };
        own.stamp = stamp;
        let Some(owner) = self.tasks.get(task) else { return false };
        let until = owner.deadline.min(owner.leaves);
        // Nobody comes again after it is of no more use.
        if until <= at {
            self.at(until, Rank::Client, What::Patience(call, stamp));
        } else {
            self.spend(class);
            self.at(at, Rank::Client, What::Again(call, stamp));
        }
        true
    }

    /// How long a client of a class waits after so many attempts; none where it does not try again.
    pub(super) fn pause(&mut self, class: usize, attempts: u32) -> Option<u64> {
        let retries = self.spec.classes[class].retries?;
        if attempts >= retries.attempts || retries.budget.is_some() && self.allowed[class] < 1000 {
            return None;
        }
        let doubled = retries.backoff.saturating_mul(1 << attempts.saturating_sub(1).min(40));
        let pause = doubled.min(retries.backoff_max) as f64;
        let random = self.chance.retries.uniform();
        Some((pause * (1.0 - retries.jitter + retries.jitter * random)) as u64)
    }

    /// A retry is taken from a class's budget.
    pub(super) fn spend(&mut self, class: usize) {
        if self.spec.classes[class].retries.is_some_and(|r| r.budget.is_some()) {
            self.allowed[class] = self.allowed[class].saturating_sub(1000);
        }
    }

    /// A client has waited long enough: for this attempt, or altogether.
    pub(super) fn out_of_patience(&mut self, call: u32) {
        let Some(own) = self.calls.get(call) else { return };
        let task = own.task;
        let Some(owner) = self.tasks.get(task) else { return };
        if owner.leaves <= self.now {
            self.task_fails(task, TaskEnd::Left);
        } else if owner.deadline <= self.now {
            self.task_fails(task, TaskEnd::TooLate);
        } else {
            self.let_go(call);
            self.attempt_failed(call, AttemptEnd::GivenUp, None, false);
        }
    }

    /// A client lets go of a call, wherever it is.
    pub(super) fn let_go(&mut self, call: u32) {
        let Some(own) = self.calls.get(call) else { return };
        match own.place {
            Place::Client => return,
            Place::Engine(site, serial) => {
                let there = &mut self.sites[site as usize];
                let offset = (serial - there.oldest) as usize;
                there.inside[offset] = ORPHAN;
                there.outstanding -= 1;
                there.leaving.push(serial);
                there.orphans.push((serial, own.sent, own.way));
                self.disturb(site, self.now);
            }
            Place::Front(site) => {
                self.sites[site as usize].outstanding -= 1;
                self.report_attempt(call, AttemptEnd::GivenUp, None);
            }
            Place::Provider { .. } => self.leave_provider(call),
            Place::Held => {
                if let Target::Pool(pool) = own.target {
                    self.pools[pool].holding -= 1;
                }
                self.report_attempt(call, AttemptEnd::GivenUp, None);
            }
            Place::Way | Place::Link => self.report_attempt(call, AttemptEnd::GivenUp, None),
        }
        let stamp = self.stamp();
        if let Some(own) = self.calls.get_mut(call) {
            (own.stamp, own.place, own.read) = (stamp, Place::Client, None);
        }
    }

    fn claim(&self, call: u32, provider: usize) -> Option<Claim> {
        let (own, spec) = (self.calls.get(call)?, &self.spec.providers[provider]);
        let cached = if spec.counts_cached { 0 } else { own.wanted.cached.min(own.wanted.prompt) };
        let output = match own.wanted.limit {
            Some(limit) if spec.reserves => limit,
            _ => own.wanted.output.tokens(),
        };
        Some(Claim { prompt: own.wanted.prompt - cached, output })
    }

    fn reach_provider(&mut self, call: u32, provider: usize) {
        let Some(claim) = self.claim(call, provider) else { return };
        let (now, spec) = (self.now, &self.spec.providers[provider]);
        let state = &mut self.providers[provider];
        if state.out > 0 {
            self.attempt_fails(call, AttemptEnd::NobodyThere, None);
            return;
        }
        if spec.at_once.is_some_and(|most| state.inside >= most) {
            self.attempt_fails(call, AttemptEnd::Refused, None);
            return;
        }
        // Whoever does not reserve is only held to what was used before.
        let output = if spec.reserves { claim.output } else { 0 };
        let mut asked = [
            (&mut state.calls, 1),
            (&mut state.tokens, claim.prompt.saturating_add(output)),
            (&mut state.prompt, claim.prompt),
            (&mut state.output, output),
        ];
        let mut wait = 0;
        for (bucket, amount) in &asked {
            match bucket.as_ref().map(|bucket| bucket.wait(now, *amount)) {
                None => {}
                Some(Some(more)) => wait = wait.max(more),
                Some(None) => {
                    self.attempt_fails(call, AttemptEnd::TooLong, None);
                    return;
                }
            }
        }
        if wait > 0 {
            self.attempt_fails(call, AttemptEnd::Refused, Some(wait));
            return;
        }
        for (bucket, amount) in &mut asked {
            if let Some(bucket) = bucket {
                bucket.take(now, *amount);
            }
        }
        state.inside += 1;
        let ps = |seconds: f64| (seconds * 1e12).round().max(0.0) as u64;
        let stream = &mut self.chance.providers;
        let (ttft, tpot) = (ps(spec.ttft.sample(stream)), ps(spec.tpot.sample(stream)));
        let fails = spec.failure > 0.0 && stream.uniform() < spec.failure;
        let Some(own) = self.calls.get_mut(call) else { return };
        let tokens = if fails { 1 } else { own.wanted.output.tokens() };
        own.place = Place::Provider { at: now, ttft, tpot, reserved: output, fails };
        let stamp = own.stamp;
        let at = now.saturating_add(ttft).saturating_add(tpot.saturating_mul(tokens - 1));
        self.at(at, Rank::Client, What::Answer(call, stamp));
    }

    /// What a provider has made of a call by now.
    fn provider_outcome(&self, call: u32) -> Option<(usize, Outcome, u64, bool)> {
        let own = self.calls.get(call)?;
        let Target::Provider(provider) = own.target else { return None };
        let Place::Provider { at, ttft, tpot, reserved, fails } = own.place else { return None };
        let first = at.saturating_add(ttft);
        let got = match self.now.checked_sub(first) {
            Some(since) if !fails => {
                let after = since.checked_div(tpot).unwrap_or(u64::MAX);
                after.saturating_add(1).min(own.wanted.output.tokens())
            }
            _ => 0,
        };
        let all = got == own.wanted.output.tokens();
        let cached = own.wanted.cached.min(own.wanted.prompt);
        let outcome = Outcome {
            serial: u64::from(call),
            class: own.class,
            end: if all { End::Completed } else { End::TimedOut },
            arrived: at,
            scheduled: Some(at),
            first: (got > 0).then_some(first),
            done: self.now,
            prompt: own.wanted.prompt,
            output: got,
            cached,
            read: tokens_u32(own.wanted.prompt - cached),
            preemptions: 0,
            largest_gap: if got > 1 { tpot } else { 0 },
        };
        Some((provider, outcome, reserved, fails))
    }

    /// A provider is done with a call: what was reserved and not used is given back.
    fn settle(&mut self, provider: usize, outcome: &Outcome, reserved: u64) {
        let (now, state) = (self.now, &mut self.providers[provider]);
        state.inside -= 1;
        for bucket in [&mut state.tokens, &mut state.output].into_iter().flatten() {
            match reserved.checked_sub(outcome.output) {
                Some(unused) => bucket.give_back(unused),
                None => bucket.take(now, outcome.output - reserved),
            }
        }
    }

    pub(super) fn provider_answers(&mut self, call: u32) {
        let Some((provider, outcome, reserved, fails)) = self.provider_outcome(call) else {
            return;
        };
        // Another provider was to answer now, before it was out.
        let fails_at = match self.calls.get(call).map(|own| own.place) {
            Some(Place::Provider { at, ttft, .. }) if fails => at.saturating_add(ttft),
            _ => 0,
        };
        if self.now < fails_at || !fails && outcome.end != End::Completed {
            return;
        }
        self.settle(provider, &outcome, reserved);
        let end = if fails { AttemptEnd::Lost } else { AttemptEnd::Answered };
        self.report_provider(call, end, &outcome);
        if fails {
            self.attempt_failed(call, end, None, true);
        } else {
            self.answered(call, &outcome);
        }
    }

    /// A provider answers nobody from here on: what it was about to answer is lost.
    pub(super) fn provider_is_out(&mut self, provider: usize) {
        self.providers[provider].out += 1;
        let there = |own: &CallState| {
            own.target == Target::Provider(provider) && matches!(own.place, Place::Provider { .. })
        };
        let lost: Vec<(u32, u32)> = (0u32..)
            .zip(&self.calls.places)
            .filter_map(|(call, own)| {
                own.as_ref().filter(|own| there(own)).map(|own| (call, own.stamp))
            })
            .collect();
        for (call, stamp) in lost {
            self.if_current(call, stamp, |run, call| {
                let Some((_, outcome, reserved, _)) = run.provider_outcome(call) else { return };
                run.settle(provider, &outcome, reserved);
                run.report_provider(call, AttemptEnd::Lost, &outcome);
                run.attempt_failed(call, AttemptEnd::Lost, None, outcome.first.is_none());
            });
        }
    }

    fn leave_provider(&mut self, call: u32) {
        let Some((provider, outcome, reserved, _)) = self.provider_outcome(call) else { return };
        self.settle(provider, &outcome, reserved);
        self.report_provider(call, AttemptEnd::GivenUp, &outcome);
    }

    fn report_provider(&mut self, call: u32, end: AttemptEnd, outcome: &Outcome) {
        let Some(own) = self.calls.get(call) else { return };
        self.attempts_over += 1;
        self.watch.attempt(&Attempt {
            class: own.class,
            target: own.target,
            replica: None,
            region: None,
            sent: own.sent,
            way: own.way,
            end,
            retry_after: None,
            outcome: Some(outcome),
        });
    }
}
