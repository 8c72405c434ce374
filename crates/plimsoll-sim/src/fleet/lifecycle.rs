//! Replicas that start, serve, fail, are taken away and replaced.

use crate::drive::Engine as _;
use crate::fast::Steps;
use crate::fleet::kind::AnyEngine;
use crate::fleet::report::{FleetEnded, FleetWatch};
use crate::fleet::site::{Clock, Front, Site, Stage};
use crate::fleet::spec::{Domain, Mishap, PoolSpec};
use crate::fleet::task::AttemptEnd;
use crate::fleet::{Rank, Run, What};

/// Picoseconds, of seconds.
fn ps(seconds: f64) -> u64 {
    (seconds * 1e12).round().max(0.0) as u64
}

impl PoolSpec {
    /// The domain of a replica's place. Nothing that fails together is in two regions: places are numbered within each, and the first domain of each region
    /// comes before the second of any.
    fn domain_of(&self, slot: u32, domain: Domain) -> u32 {
        let regions = self.regions.len() as u32;
        let (within, region) = (slot / regions, slot % regions);
        let own = match domain {
            Domain::Group(size) => within / size.max(1),
            Domain::Spread(places) => within % places.max(1),
        };
        own * regions + region
    }

    /// The domains that so many replicas fill.
    fn domains(&self, replicas: u32) -> u32 {
        let regions = self.regions.len() as u32;
        let own = match self.domain {
            Domain::Group(size) => replicas.div_ceil(regions).div_ceil(size.max(1)).max(1),
            Domain::Spread(places) => places.max(1),
        };
        own * regions
    }
}

impl<'a, W: FleetWatch> Run<'_, 'a, W> {
    /// The fleet as it is when nobody has come yet.
    pub(super) fn open(&mut self) {
        let spec = self.spec;
        for (pool, own) in spec.pools.iter().enumerate() {
            for _ in 0..own.replicas {
                let site = self.place(pool, false);
                self.serves(site);
            }
            if own.staleness > 0 {
                self.at(0, Rank::Change, What::Look(pool as u16));
            }
            self.open_scaling(pool);
            if spec.chance {
                let most = own.scaling.as_ref().map_or(0, |s| s.scaling.max).max(own.replicas);
                for domain in 0..own.domains(most) {
                    self.fails_some_time(pool as u16, domain);
                }
            }
        }
        for (i, incident) in (0u32..).zip(&spec.incidents) {
            self.at(incident.at, Rank::Change, What::Begins(i));
        }
    }

    fn fails_some_time(&mut self, pool: u16, domain: u32) {
        let mean = self.spec.pools[pool as usize].between_failures;
        let after = ps(mean * self.chance.failures.exponential());
        self.at(self.now.saturating_add(after), Rank::Change, What::Fails(pool, domain));
    }

    /// A new replica, not yet of any use.
    fn place(&mut self, pool: usize, upgrade: bool) -> u32 {
        let spec = &self.spec.pools[pool];
        let stamp = self.stamp();
        let state = &mut self.pools[pool];
        // The first place that is free, in a region that is there.
        let lost = &self.lost_regions;
        let there = |slot: &usize| lost[spec.regions[slot % spec.regions.len()]] == 0;
        let free = |slot: &usize| state.slots.get(*slot).is_none_or(|taken| !taken);
        let none = spec.regions.iter().all(|region| lost[*region] > 0);
        let first = (state.slot_free..).find(&free).unwrap_or(0);
        let slot = (first..).find(|slot| free(slot) && (none || there(slot))).unwrap_or(0);
        // One in a region that is lost stays free.
        state.slot_free = if slot == first { first + 1 } else { first };
        if state.slots.len() <= slot {
            state.slots.resize(slot + 1, false);
        }
        state.slots[slot] = true;
        let new = spec.model_when_new.as_ref().filter(|_| self.now > 0);
        let model = new.unwrap_or(&spec.model);
        self.sites.push(Site {
            pool: pool as u16,
            slot: slot as u32,
            region: spec.regions[slot % spec.regions.len()],
            stage: Stage::Starting,
            stamp,
            engine: AnyEngine::new(spec.engine, spec.limits, model),
            clock: Clock::Idle,
            wake: u64::MAX,
            wake_stamp: 0,
            inbox: Default::default(),
            inbox_tokens: 0,
            leaving: Vec::new(),
            orphans: Vec::new(),
            inside: Default::default(),
            oldest: 0,
            serial: 0,
            outstanding: 0,
            seen_outstanding: 0,
            seen_kv: 0,
            outcomes: Vec::new(),
            front: Front::new(&spec.path),
            began: self.now,
            upgrade,
        });
        (self.sites.len() - 1) as u32
    }

    /// Starts a replica.
    pub(super) fn start(&mut self, pool: usize, upgrade: bool) {
        self.account(pool);
        let site = self.place(pool, upgrade);
        let startup = &self.spec.pools[pool].startup;
        let stream = &mut self.chance.startups;
        let mut time = 0;
        for phase in &startup.phases {
            let done = stream.uniform() < phase.done;
            let seconds = phase.seconds.sample(stream);
            time += match (&phase.seconds_when_done, done) {
                (_, false) => ps(seconds),
                (Some(shorter), true) => ps(shorter.sample(stream)),
                (None, true) => 0,
            };
        }
        let state = &mut self.pools[pool];
        state.starting += 1;
        let live = state.starting + state.ready.len() as u32;
        if let Some((available, more)) = startup.beyond
            && live > available
        {
            time += more;
        }
        let stamp = self.sites[site as usize].stamp;
        self.at(self.now.saturating_add(time), Rank::Change, What::Ready(site, stamp));
        self.tell_replicas(pool);
    }

    /// A replica is ready.
    pub(super) fn ready(&mut self, site: u32, stamp: u32) {
        let there = &self.sites[site as usize];
        if there.stamp != stamp || there.stage != Stage::Starting {
            return;
        }
        let (pool, began, upgrade) = (there.pool as usize, there.began, there.upgrade);
        self.account(pool);
        self.pools[pool].starting -= 1;
        if self.counts() {
            self.pools[pool].ended.starts.push(self.now - began);
        }
        let spec = &self.spec.pools[pool];
        if spec.model_when_new.is_some() {
            let at = self.now.saturating_add(spec.new_for);
            self.at(at, Rank::Change, What::Seasoned(site, stamp));
        }
        self.serves(site);
        if upgrade {
            self.sites[site as usize].upgrade = false;
            self.pools[pool].ended.upgraded += u32::from(self.counts());
            self.upgrade_next(pool);
        }
    }

    /// From here on a replica is sent calls.
    fn serves(&mut self, site: u32) {
        let (pool, stamp) = {
            let there = &mut self.sites[site as usize];
            there.stage = Stage::Ready;
            (there.pool as usize, there.stamp)
        };
        self.pools[pool].ready.push(site);
        if let Some(spot) = self.spec.pools[pool].spot.filter(|_| self.spec.chance) {
            let after = ps(spot.reclaimed_every * self.chance.failures.exponential());
            let at = self.now.saturating_add(after);
            self.at(at, Rank::Change, What::Reclaimed(site, stamp));
        }
        self.tell_replicas(pool);
        self.let_off(pool, Self::reach);
    }

    /// A replica is no longer new.
    pub(super) fn seasoned(&mut self, site: u32, stamp: u32) {
        if self.sites[site as usize].stamp != stamp
            || self.sites[site as usize].stage == Stage::Gone
        {
            return;
        }
        self.catch_up(site);
        let model = &self.spec.pools[self.sites[site as usize].pool as usize].model;
        self.sites[site as usize].engine.set_model(model);
    }

    /// A replica is taken away: it finishes what it has, within a time.
    pub(super) fn drain(&mut self, site: u32, time: u64) {
        let pool = self.sites[site as usize].pool as usize;
        self.account(pool);
        match self.sites[site as usize].stage {
            Stage::Starting => {
                self.pools[pool].starting -= 1;
                let upgrade = std::mem::take(&mut self.sites[site as usize].upgrade);
                self.gone(site);
                if upgrade {
                    self.upgrade_next(pool);
                }
            }
            Stage::Ready => {
                self.pools[pool].ready.retain(|other| *other != site);
                self.pools[pool].draining += 1;
                let there = &mut self.sites[site as usize];
                there.stage = Stage::Draining;
                let stamp = there.stamp;
                self.at(self.now.saturating_add(time), Rank::Change, What::Drained(site, stamp));
                self.tell_replicas(pool);
                self.empty(site);
            }
            Stage::Draining | Stage::Gone => {}
        }
    }

    /// A replica that is being emptied may be empty.
    pub(super) fn empty(&mut self, site: u32) {
        let there = &self.sites[site as usize];
        let idle = there.clock == Clock::Idle && there.inbox.is_empty();
        if there.stage == Stage::Draining && idle && there.outstanding == 0 {
            let pool = there.pool as usize;
            self.account(pool);
            self.pools[pool].draining -= 1;
            self.gone(site);
        }
    }

    /// A replica that is taken away is out of time.
    pub(super) fn out_of_time(&mut self, site: u32, stamp: u32) {
        let there = &self.sites[site as usize];
        if there.stamp != stamp || there.stage != Stage::Draining {
            return;
        }
        let pool = there.pool as usize;
        self.account(pool);
        self.pools[pool].draining -= 1;
        self.sites[site as usize].stage = Stage::Gone;
        self.crash(site);
        self.gone(site);
    }

    /// A replica is no more.
    fn gone(&mut self, site: u32) {
        let there = &mut self.sites[site as usize];
        let (pool, upgrade) = (there.pool as usize, there.upgrade);
        let Steps { total, leapt } = there.engine.steps();
        self.steps.total += total;
        self.steps.leapt += leapt;
        let spec = &self.spec.pools[pool];
        there.stage = Stage::Gone;
        (there.clock, there.wake_stamp) = (Clock::Idle, 0);
        // What it had takes no more room.
        there.engine = AnyEngine::new(spec.engine, spec.limits, &spec.model);
        let slot = there.slot as usize;
        let state = &mut self.pools[pool];
        state.slots[slot] = false;
        state.slot_free = state.slot_free.min(slot);
        self.tell_replicas(pool);
        // Fewer may be asked for since.
        if upgrade && self.there(pool) + self.pools[pool].repairing < self.pools[pool].asked {
            self.start(pool, true);
        } else if upgrade {
            self.upgrade_next(pool);
        }
    }

    /// Replicas fail together; their devices can be used again after a time.
    fn fail(&mut self, those: &[u32], repair: u64) {
        // None of them takes over from another.
        let fallen: Vec<(u32, bool)> = those
            .iter()
            .filter_map(|site| self.falls(*site, repair).map(|upgrade| (*site, upgrade)))
            .collect();
        for (site, upgrade) in fallen {
            let pool = self.sites[site as usize].pool as usize;
            self.crash(site);
            self.gone(site);
            if upgrade {
                self.upgrade_next(pool);
            }
            self.nobody_comes(pool);
        }
    }

    /// A replica no longer counts; whether it was being replaced, unless it was gone before.
    fn falls(&mut self, site: u32, repair: u64) -> Option<bool> {
        let (pool, stage) = {
            let there = &self.sites[site as usize];
            (there.pool as usize, there.stage)
        };
        self.account(pool);
        match stage {
            Stage::Gone => return None,
            Stage::Starting => self.pools[pool].starting -= 1,
            Stage::Ready => self.pools[pool].ready.retain(|other| *other != site),
            Stage::Draining => self.pools[pool].draining -= 1,
        }
        let upgrade = std::mem::take(&mut self.sites[site as usize].upgrade);
        self.sites[site as usize].stage = Stage::Gone;
        self.pools[pool].ended.failed += u32::from(self.counts());
        // One that was on its way out is not replaced.
        if stage != Stage::Draining || upgrade {
            self.pools[pool].repairing += 1;
            let at = self.now.saturating_add(repair);
            self.at(at, Rank::Change, What::Repaired(pool as u16, 1));
        }
        Some(upgrade)
    }

    /// Whoever waits for a replica of a pool that will have none is told.
    fn nobody_comes(&mut self, pool: usize) {
        if !self.pools[pool].ready.is_empty() || self.comes_soon(pool) {
            return;
        }
        self.let_off(pool, |run, call| run.attempt_fails(call, AttemptEnd::NobodyThere, None));
    }

    /// Those who wait for a replica of a pool wait no more; some of them may again.
    fn let_off(&mut self, pool: usize, does: impl Fn(&mut Self, u32)) {
        for (call, stamp) in std::mem::take(&mut self.pools[pool].held) {
            self.if_current(call, stamp, |run, call| {
                run.pools[pool].holding -= 1;
                does(run, call);
            });
        }
    }

    pub(super) fn repaired(&mut self, pool: u16, replicas: u32) {
        let pool = pool as usize;
        self.account(pool);
        self.pools[pool].repairing -= replicas;
        self.reconcile(pool);
    }

    /// A domain fails, and will again.
    pub(super) fn domain_fails(&mut self, pool: u16, domain: u32) {
        let spec = &self.spec.pools[pool as usize];
        self.fail_those(spec.repair, |site| {
            site.pool == pool && spec.domain_of(site.slot, spec.domain) == domain
        });
        self.fails_some_time(pool, domain);
    }

    fn fail_those(&mut self, repair: u64, which: impl Fn(&Site<'a>) -> bool) {
        let those: Vec<u32> = (0u32..)
            .zip(&self.sites)
            .filter(|(_, site)| site.stage != Stage::Gone && which(site))
            .map(|(i, _)| i)
            .collect();
        self.fail(&those, repair);
    }

    /// A replica's devices are taken away, after notice.
    pub(super) fn reclaimed(&mut self, site: u32, stamp: u32) {
        let there = &self.sites[site as usize];
        if there.stamp != stamp || there.stage != Stage::Ready {
            return;
        }
        let pool = there.pool as usize;
        let notice = self.spec.pools[pool].spot.map_or(0, |spot| spot.notice);
        self.reclaim(site, notice);
    }

    fn reclaim(&mut self, site: u32, notice: u64) {
        let pool = self.sites[site as usize].pool as usize;
        self.pools[pool].ended.reclaimed += u32::from(self.counts());
        self.drain(site, notice);
        self.reconcile(pool);
    }

    /// The next replicas of a pool are replaced.
    fn upgrade_next(&mut self, pool: usize) {
        while let Some(site) = self.pools[pool].to_upgrade.pop_front() {
            if self.sites[site as usize].stage == Stage::Ready {
                self.sites[site as usize].upgrade = true;
                self.drain(site, self.spec.pools[pool].drain);
                return;
            }
        }
    }

    /// The first replicas of a pool that serve, by their places.
    fn first_ready(&self, pool: usize) -> Vec<u32> {
        let mut ready = self.pools[pool].ready.clone();
        ready.sort_by_key(|site| self.sites[*site as usize].slot);
        ready
    }

    pub(super) fn incident_begins(&mut self, which: u32) {
        let incident = &self.spec.incidents[which as usize];
        let repair = |pool: usize| incident.lasts.unwrap_or(self.spec.pools[pool].repair);
        let mut lasts = incident.lasts.unwrap_or(u64::MAX / 2);
        match &incident.what {
            Mishap::Replicas(pool, count) => {
                let mut those = self.first_ready(*pool);
                those.truncate(*count as usize);
                lasts = repair(*pool);
                self.fail(&those, lasts);
            }
            Mishap::Nodes(pool, count) | Mishap::Zones(pool, count) => {
                let (p, spec) = (*pool as u16, &self.spec.pools[*pool]);
                let domain = match incident.what {
                    Mishap::Nodes(..) => Domain::Group(spec.per_node),
                    _ => Domain::Spread(spec.zones),
                };
                lasts = repair(*pool);
                self.fail_those(lasts, |site| {
                    site.pool == p && spec.domain_of(site.slot, domain) < *count
                });
            }
            Mishap::Region(region) => {
                let pools = self.spec.pools.iter().map(|p| p.repair);
                lasts = incident.lasts.unwrap_or_else(|| pools.max().unwrap_or(0));
                if let Some(lost) = self.lost_regions.get_mut(*region) {
                    *lost += 1;
                }
                // It is there again before its replicas are.
                self.wrong += 1;
                self.at(self.now.saturating_add(lasts), Rank::Change, What::Over(which));
                self.fail_those(lasts, |site| site.region == *region);
                return;
            }
            Mishap::Reclaim(pool, count) => {
                let notice = self.spec.pools[*pool].spot.map_or(0, |spot| spot.notice);
                for site in self.first_ready(*pool).into_iter().take(*count as usize) {
                    self.reclaim(site, notice);
                }
                // Others come in their place at once: it is over when it begins.
                lasts = incident.lasts.unwrap_or(notice);
            }
            Mishap::Upgrade(pool, at_once) => {
                self.pools[*pool].to_upgrade = self.first_ready(*pool).into();
                for _ in 0..*at_once {
                    self.upgrade_next(*pool);
                }
                return;
            }
            Mishap::CacheLoss(pool) => {
                self.pools[*pool].forgotten += 1;
                return;
            }
            Mishap::ProviderOutage(provider) => self.provider_is_out(*provider),
            Mishap::ToolOutage(tool) => self.tool_is_out(*tool),
            Mishap::Elsewhere => {}
        }
        self.wrong += 1;
        self.at(self.now.saturating_add(lasts), Rank::Change, What::Over(which));
    }

    pub(super) fn incident_over(&mut self, which: u32) {
        self.wrong -= 1;
        match &self.spec.incidents[which as usize].what {
            Mishap::ProviderOutage(provider) => self.providers[*provider].out -= 1,
            Mishap::ToolOutage(tool) => self.tools[*tool].out -= 1,
            Mishap::Region(region) => {
                if let Some(lost) = self.lost_regions.get_mut(*region) {
                    *lost -= 1;
                }
                (0..self.pools.len()).for_each(|pool| self.reconcile(pool));
            }
            _ => {}
        }
    }

    /// Replicas of a pool that serve, are on their way or being replaced.
    fn there(&self, pool: usize) -> u32 {
        let state = &self.pools[pool];
        let replaced =
            |s: &&Site<'_>| s.pool as usize == pool && s.upgrade && s.stage == Stage::Draining;
        let upgrading =
            if state.draining > 0 { self.sites.iter().filter(replaced).count() as u32 } else { 0 };
        state.starting + state.ready.len() as u32 + upgrading
    }

    /// As many replicas as there should be.
    pub(super) fn reconcile(&mut self, pool: usize) {
        loop {
            let (there, state) = (self.there(pool), &self.pools[pool]);
            // Those that are being repaired come back by themselves, where they are still asked for.
            if there + state.repairing < state.asked {
                let regions = &self.spec.pools[pool].regions;
                if regions.iter().all(|region| self.lost_regions[*region] > 0) {
                    return;
                }
                self.start(pool, false);
            } else if there > state.asked {
                // The newest first: one that is not yet there, if there is one.
                let own = |s: &Site<'_>, stage: Stage| s.pool as usize == pool && s.stage == stage;
                let newest = |stage: Stage| self.sites.iter().rposition(|s| own(s, stage));
                let starting = newest(Stage::Starting);
                let Some(site) = starting.or_else(|| newest(Stage::Ready)) else {
                    return;
                };
                let drain = self.spec.pools[pool].drain;
                self.drain(site as u32, drain);
            } else {
                return;
            }
        }
    }

    /// The run is over.
    pub(super) fn end(mut self, stopped: bool, complete: bool) -> FleetEnded {
        // What was quiet until the end has happened.
        for site in 0..self.sites.len() {
            if self.sites[site].stage != Stage::Gone {
                self.catch_up(site as u32);
            }
            let Steps { total, leapt } = self.sites[site].engine.steps();
            self.steps.total += total;
            self.steps.leapt += leapt;
        }
        for pool in 0..self.pools.len() {
            self.account(pool);
            let (there, ended) = (self.there(pool), &mut self.pools[pool].ended);
            // Where nothing counted.
            if ended.least > ended.most {
                (ended.least, ended.most) = (there, there);
            }
        }
        let complete = complete && self.tasks.len() == 0;
        if complete {
            let waits = self.sites.iter().map(|site| site.outstanding).sum::<u64>()
                + self.providers.iter().map(|provider| provider.inside).sum::<u64>()
                + self.pools.iter().map(|pool| pool.holding).sum::<u64>();
            assert_eq!((waits, self.calls.len()), (0, 0), "nobody waits for anything");
        }
        FleetEnded {
            stopped,
            now: self.now,
            complete,
            unfinished: self.tasks.len() as u64,
            attempts: self.attempts,
            attempts_unfinished: self.attempts - self.attempts_over,
            steps: self.steps,
            pools: self.pools.into_iter().map(|pool| pool.ended).collect(),
        }
    }
}

/// The part of a cache that is in use.
pub(super) fn kv_in_use(site: &Site<'_>, spec: &PoolSpec) -> f64 {
    site.engine.gauges().blocks as f64 / spec.limits.kv.blocks.max(1) as f64
}
