//! How many replicas a pool has, and what decides that.

use std::collections::VecDeque;

use crate::autoscale::{Controller, Metric, TargetKind, Why};
use crate::drive::Engine as _;
use crate::fleet::attempt::CallState;
use crate::fleet::lifecycle::kv_in_use;
use crate::fleet::report::{FleetWatch, PoolEnded};
use crate::fleet::spec::{PoolSpec, ScalingSpec, Signal};
use crate::fleet::{Rank, Run, What};
use crate::request::Outcome;

/// Signals that are rates or percentiles are those of the last minute, in picoseconds.
const WINDOW: u64 = 60_000_000_000_000;

/// A pool as it stands.
pub(super) struct PoolState {
    /// Replicas that it should have.
    pub(super) asked: u32,
    pub(super) ready: Vec<u32>,
    pub(super) starting: u32,
    pub(super) draining: u32,
    /// Replicas whose devices are being repaired.
    pub(super) repairing: u32,
    /// Places that are taken, and the first that may be free: all before it are taken.
    pub(super) slots: Vec<bool>,
    pub(super) slot_free: usize,
    /// Calls that wait for a replica to be there.
    pub(super) held: VecDeque<(u32, u32)>,
    /// How many of these have not gone.
    pub(super) holding: u64,
    /// Whose turn it is.
    pub(super) turn: u32,
    pub(super) link_free: u64,
    /// How often its replicas have forgotten what they had cached.
    pub(super) forgotten: u64,
    pub(super) to_upgrade: VecDeque<u32>,
    /// Prompt tokens that came, all along.
    pub(super) fresh: u64,
    pub(super) controller: Option<Controller>,
    /// Whether its autoscaler can give it a replica when it has none.
    pub(super) wanted_ever: bool,
    signal: Option<Signal>,
    /// What was read, and not yet seen.
    readings: VecDeque<(u64, Option<f64>)>,
    /// What is needed to read rates and percentiles.
    fresh_then: VecDeque<(u64, u64)>,
    firsts: VecDeque<(u64, u64)>,
    tasks: VecDeque<(u64, bool)>,
    /// Replicas that the signal asks for, and since when it asks for more than there should be.
    wanted: Option<u32>,
    asks_since: Option<u64>,
    rose: Option<bool>,
    /// Until when it is accounted for.
    accounted: u64,
    pub(super) ended: PoolEnded,
}

impl PoolState {
    pub(super) fn new(spec: &PoolSpec) -> Self {
        Self {
            asked: spec.replicas,
            ready: Vec::new(),
            starting: 0,
            draining: 0,
            repairing: 0,
            slots: Vec::new(),
            slot_free: 0,
            held: VecDeque::new(),
            holding: 0,
            turn: 0,
            link_free: 0,
            forgotten: 0,
            to_upgrade: VecDeque::new(),
            fresh: 0,
            controller: spec.scaling.as_ref().map(|s| Controller::new(s.scaling.clone())),
            wanted_ever: spec
                .scaling
                .as_ref()
                .is_some_and(|s| spec.replicas > 0 || s.scaling.activation.is_some()),
            signal: spec.scaling.as_ref().map(|s| s.signal),
            readings: VecDeque::new(),
            fresh_then: VecDeque::new(),
            firsts: VecDeque::new(),
            tasks: VecDeque::new(),
            wanted: None,
            asks_since: None,
            rose: None,
            accounted: 0,
            ended: PoolEnded { least: u32::MAX, ..PoolEnded::default() },
        }
    }

    fn forget(&mut self, now: u64) {
        let old = now.saturating_sub(WINDOW);
        while self.firsts.front().is_some_and(|(at, _)| *at < old) {
            self.firsts.pop_front();
        }
        while self.tasks.front().is_some_and(|(at, _)| *at < old) {
            self.tasks.pop_front();
        }
        // One that is older stays, to know what there was then.
        while self.fresh_then.get(1).is_some_and(|(at, _)| *at <= old) {
            self.fresh_then.pop_front();
        }
    }

    /// A task that this pool served is over.
    pub(super) fn saw_task(&mut self, now: u64, good: bool) {
        if self.signal == Some(Signal::NotGood) {
            self.tasks.push_back((now, good));
        }
    }
}

impl<W: FleetWatch> Run<'_, '_, W> {
    /// A client of a pool saw its first token.
    pub(super) fn saw_first_token(&mut self, pool: usize, call: &CallState, outcome: &Outcome) {
        let state = &mut self.pools[pool];
        if state.signal == Some(Signal::TtftP90)
            && let Some(first) = outcome.first
        {
            state.firsts.push_back((self.now, first.saturating_sub(call.sent)));
        }
    }

    pub(super) fn open_scaling(&mut self, pool: usize) {
        let Some(scaling) = &self.spec.pools[pool].scaling else { return };
        let (period, delay) = (scaling.period.max(1), scaling.delay);
        let own = pool as u16;
        // What is decided on at the first instant was read before: nothing.
        self.at(period.saturating_sub(delay % period), Rank::Change, What::Scrape(own));
        self.at(period, Rank::Decision, What::Decide(own));
        if let Some(activation) = scaling.scaling.activation {
            self.at(activation.polling, Rank::Decision, What::Poll(own));
        }
    }

    /// Calls that wait for a pool, on the way, in lines and for a replica.
    fn waiting(&self, pool: usize) -> u64 {
        let state = &self.pools[pool];
        let lines = state.ready.iter().map(|site| self.sites[*site as usize].waiting().0);
        lines.sum::<u64>() + state.holding
    }

    /// Reads a pool's signal.
    fn read(&mut self, pool: usize, signal: Signal) -> Option<f64> {
        let now = self.now;
        let seconds = |ps: u64| ps as f64 / 1e12;
        match signal {
            Signal::QueueDepth => Some(self.waiting(pool) as f64),
            Signal::QueueAge => {
                let state = &self.pools[pool];
                let lines = state.ready.iter().map(|site| &self.sites[*site as usize]);
                let engines = lines.filter_map(|site| site.engine.first_waiting());
                let held = state.held.iter().filter_map(|(call, stamp)| {
                    self.calls.get(*call).filter(|own| own.stamp == *stamp).map(|own| own.came)
                });
                let first = engines.chain(held).min();
                Some(seconds(first.map_or(0, |first| now.saturating_sub(first))))
            }
            Signal::InFlight => {
                let state = &self.pools[pool];
                let sites = state.ready.iter().map(|site| self.sites[*site as usize].outstanding);
                Some((sites.sum::<u64>() + state.holding) as f64)
            }
            Signal::FreshTokens => {
                let state = &mut self.pools[pool];
                state.fresh_then.push_back((now, state.fresh));
                state.forget(now);
                let (then, before) = state.fresh_then.front().copied().unwrap_or((0, 0));
                let (then, before) = if now <= WINDOW { (0, 0) } else { (then, before) };
                (now > then).then(|| (state.fresh - before) as f64 / seconds(now - then))
            }
            Signal::TtftP90 => {
                let state = &mut self.pools[pool];
                state.forget(now);
                let mut firsts: Vec<u64> = state.firsts.iter().map(|(_, ttft)| *ttft).collect();
                let at = (firsts.len() * 9).div_ceil(10).checked_sub(1)?;
                let (_, p90, _) = firsts.select_nth_unstable(at);
                Some(seconds(*p90))
            }
            Signal::NotGood => {
                let state = &mut self.pools[pool];
                state.forget(now);
                let bad = state.tasks.iter().filter(|(_, good)| !good).count();
                (!state.tasks.is_empty()).then(|| bad as f64 / state.tasks.len() as f64)
            }
            Signal::Kv => {
                let ready = self.pools[pool].ready.clone();
                ready.iter().for_each(|site| self.catch_up(*site));
                let spec = &self.spec.pools[pool];
                let each = ready.iter().map(|site| kv_in_use(&self.sites[*site as usize], spec));
                (!ready.is_empty()).then(|| each.sum::<f64>() / ready.len() as f64)
            }
        }
    }

    /// An autoscaler's signal is read.
    pub(super) fn scrape(&mut self, pool: u16) {
        let own = pool as usize;
        let Some(scaling) = &self.spec.pools[own].scaling else { return };
        let value = self.read(own, scaling.signal);
        self.pools[own].readings.push_back((self.now, value));
        self.account(own);
        let state = &mut self.pools[own];
        // What the signal asks for right now, were it acted on at once.
        let wanted = value.map(|value| asks(scaling, value, state.ready.len() as u32));
        state.wanted = wanted;
        let more = wanted.is_some_and(|wanted| wanted > state.asked);
        if !more {
            state.asks_since = None;
        } else if state.asks_since.is_none() {
            state.asks_since = Some(self.now);
        }
        if self.pools[own].starting > 0 && self.counts() {
            let waiting = self.waiting(own);
            let most = &mut self.pools[own].ended.queue_while_starting;
            *most = (*most).max(waiting);
        }
        self.at(self.now.saturating_add(scaling.period.max(1)), Rank::Change, What::Scrape(pool));
    }

    /// What the autoscaler sees now.
    fn seen(&mut self, pool: usize, scaling: &ScalingSpec) -> Vec<Metric> {
        let now = self.now;
        let state = &mut self.pools[pool];
        let visible = |(at, _): &(u64, Option<f64>)| at.saturating_add(scaling.delay) <= now;
        while state.readings.len() > 1 && state.readings.get(1).is_some_and(visible) {
            state.readings.pop_front();
        }
        let value = state.readings.front().filter(|reading| visible(reading)).and_then(|r| r.1);
        let metric = Metric {
            value,
            target: scaling.target,
            kind: scaling.kind,
            activation: scaling.activation,
        };
        let floor = scaling.floors.iter().rev().find(|(from, _)| *from <= now).map(|(_, n)| *n);
        std::iter::once(metric).chain(floor.map(Metric::floor)).collect()
    }

    /// An autoscaler decides.
    pub(super) fn decide(&mut self, pool: u16) {
        let own = pool as usize;
        let Some(scaling) = &self.spec.pools[own].scaling else { return };
        let metrics = self.seen(own, scaling);
        let state = &mut self.pools[own];
        let (asked, ready) = (state.asked, state.ready.len() as u32);
        if let Some(controller) = &mut state.controller {
            let decision = controller.decide(self.now, asked, ready, &metrics);
            let limited = decision.why == Why::Max;
            self.asks_for(own, decision.replicas, limited);
        }
        self.at(self.now.saturating_add(scaling.period.max(1)), Rank::Decision, What::Decide(pool));
    }

    /// KEDA looks whether a pool is needed at all.
    pub(super) fn poll(&mut self, pool: u16) {
        let own = pool as usize;
        let Some(scaling) = &self.spec.pools[own].scaling else { return };
        let Some(activation) = scaling.scaling.activation else { return };
        let metrics = self.seen(own, scaling);
        let state = &mut self.pools[own];
        let asked = state.asked;
        if let Some(controller) = &mut state.controller {
            let decision = controller.poll(self.now, asked, &metrics);
            self.asks_for(own, decision.replicas, false);
        }
        self.at(
            self.now.saturating_add(activation.polling.max(1)),
            Rank::Decision,
            What::Poll(pool),
        );
    }

    fn asks_for(&mut self, pool: usize, replicas: u32, limited: bool) {
        self.account(pool);
        let (now, counts) = (self.now, self.counts());
        let state = &mut self.pools[pool];
        let before = std::mem::replace(&mut state.asked, replicas);
        if counts {
            state.ended.at_most += u32::from(limited);
        }
        if before == replicas {
            return;
        }
        let rises = replicas > before;
        let flips = state.rose.replace(rises).is_some_and(|rose| rose != rises);
        if rises {
            let lag = state.asks_since.take().map(|since| now - since);
            if counts {
                state.ended.ups += 1;
                state.ended.lags.extend(lag);
            }
        } else if counts {
            state.ended.downs += 1;
        }
        state.ended.flips += u32::from(flips && counts);
        self.reconcile(pool);
    }

    /// Whether what happens now counts.
    pub(super) fn counts(&self) -> bool {
        (self.counted.0..self.counted.1).contains(&self.now)
    }

    /// A pool's account until now.
    pub(super) fn account(&mut self, pool: usize) {
        let (from, until) = self.counted;
        let now = self.now.min(until);
        let state = &mut self.pools[pool];
        let since = state.accounted.max(from);
        state.accounted = self.now;
        let Some(time) = now.checked_sub(since).filter(|time| *time > 0) else { return };
        let (time, ready) = (u128::from(time), state.ready.len() as u32);
        let live = ready + state.starting;
        let ended = &mut state.ended;
        ended.ready_ps += time * u128::from(ready);
        ended.replica_ps += time * u128::from(live + state.draining);
        ended.least = ended.least.min(live);
        ended.most = ended.most.max(live);
        if let Some(wanted) = state.wanted {
            let (short, over) = (wanted.saturating_sub(ready), ready.saturating_sub(wanted));
            ended.short_ps += time * u128::from(short);
            ended.over_ps += time * u128::from(over);
            ended.short_most = ended.short_most.max(short);
            ended.over_most = ended.over_most.max(over);
        }
    }

    pub(super) fn tell_replicas(&mut self, pool: usize) {
        let state = &self.pools[pool];
        let (ready, starting, draining) =
            (state.ready.len() as u32, state.starting, state.draining);
        self.watch.replicas(pool, self.now, ready, starting, draining);
    }
}

/// Replicas that a signal asks for at a value, within what there may be.
fn asks(scaling: &ScalingSpec, value: f64, ready: u32) -> u32 {
    let ratio = value / scaling.target;
    let wanted = match scaling.kind {
        TargetKind::AverageValue => ratio.ceil(),
        TargetKind::Value => (ratio * f64::from(ready)).ceil(),
    };
    (wanted.max(0.0) as u32).clamp(scaling.scaling.min, scaling.scaling.max)
}
