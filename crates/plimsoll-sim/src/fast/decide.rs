//! Who goes on, who is let in, who has to go.

use super::{Place, Replica};
use crate::limits::Rooms;
use crate::plain::Held;
use crate::request::nameless;

impl Replica<'_> {
    /// Decides on the next step; false where there is nothing to do.
    pub(super) fn schedule(&mut self, now: u64) -> bool {
        self.plan.clear();
        loop {
            let mut budget = self.limits.max_num_batched_tokens;
            let thrown_out = self.plan.preempted;
            if !self.go_on(&mut budget) {
                self.walk(&mut budget);
            }
            if self.plan.preempted > thrown_out {
                self.plan.held = (self.waiting_count > 0).then_some(Held::Kv);
            } else {
                self.let_in(&mut budget);
            }
            if self.plan.in_step || !self.plan.alone.is_empty() {
                for (index, cached) in &self.plan.admitted {
                    let own = &mut self.slots[*index as usize];
                    if own.scheduled.is_none() {
                        (own.scheduled, own.cached) = (Some(now), *cached);
                    }
                }
                return true;
            }
            // Whoever had to go kept others from being looked at: an empty step is over at once, and the next is theirs.
            if self.plan.preempted == thrown_out {
                return false;
            }
        }
    }

    /// Those that run, all at once, where all of them find what they need; false, and nothing done, where that is not sure.
    pub(super) fn go_on(&mut self, budget: &mut u64) -> bool {
        let (kv, guesses) = (self.limits.kv, self.limits.speculation.is_some());
        let tokens = self.decodes * self.limits.decode_tokens();
        if !self.behind.is_empty()
            || guesses && kv.sliding > 0 && self.decodes > 0
            || tokens > *budget
        {
            return false;
        }
        let (takes, mut gives) =
            if guesses { (self.taken_with_guesses(), 0) } else { self.exchanged(self.count) };
        let left = *budget - tokens;
        let mut needs = takes;
        let reading = self.reading.filter(|_| left > 0).map(|index| {
            let own = &self.slots[index as usize];
            let tokens = (own.wanted.prompt + own.generated - own.computed).min(left);
            let rooms = kv.rooms(own.computed, own.computed + tokens);
            let kept = Rooms { filled: own.rooms.filled, skipped: rooms.skipped };
            (
                index,
                tokens,
                rooms,
                kv.held(own.rooms) - kv.held(kept),
                kv.held(rooms) - kv.held(kept),
            )
        });
        needs += reading.map_or(0, |(.., more)| more);
        if needs > self.pool.free() {
            return false;
        }
        if self.decodes > 0 {
            for (index, stamp) in self.fresh.drain(..) {
                let own = &self.slots[index as usize];
                // It may have gone since.
                if kv.sliding > 0 && own.place == Place::InStep && own.stamp == stamp {
                    let skipped = kv.rooms(own.computed, own.computed + 1).skipped;
                    gives += kv.held(own.rooms) - kv.held(Rooms { skipped, ..own.rooms });
                }
            }
            self.plan.in_step = true;
            self.plan.load.decodes = self.decodes;
            self.plan.load.context = self.context;
            self.plan.load.longest = self.longest();
            self.plan.load.drafts = tokens - self.decodes;
            self.roomed = self.count;
            *budget -= tokens;
        }
        gives += reading.map_or(0, |(.., less, _)| less);
        self.pool.give(gives);
        self.pool.take(needs);
        // What it reads is named only now: taking may have evicted the same content.
        if let Some((index, tokens, rooms, ..)) = reading {
            self.slots[index as usize].rooms = rooms;
            self.read(index, tokens);
            *budget -= tokens;
        }
        true
    }

    /// Those that run, one by one and in order, as far as they find what they need; whoever is last by rank and arrival is thrown out for it.
    pub(super) fn walk(&mut self, budget: &mut u64) {
        let kv = self.limits.kv;
        let decode_tokens = self.limits.decode_tokens();
        self.tidy_order();
        let mut all: Vec<Walker> = self
            .order
            .iter()
            .map(|(index, _)| *index)
            .filter(|index| self.slots[*index as usize].place != Place::Leaving)
            .map(|index| {
                let own = &self.slots[index as usize];
                let (computed, rooms) = (self.computed(own), self.rooms(own));
                let key = (own.wanted.rank, own.serial);
                Walker { index, key, computed, rooms, taken: None, runs: true }
            })
            .collect();
        let mut at = 0;
        'each: while at < all.len() && *budget > 0 {
            if !all[at].runs {
                at += 1;
                continue;
            }
            let Walker { index, computed, .. } = all[at];
            let own = &self.slots[index as usize];
            let wanted = match own.place {
                Place::Reading => own.wanted.prompt + own.generated - computed,
                _ => decode_tokens,
            };
            let wanted = wanted.min(*budget);
            let rooms = kv.rooms(computed, computed + wanted);
            let before = all[at].rooms;
            let kept = Rooms { skipped: rooms.skipped.min(before.filled), ..before };
            self.pool.give(kv.held(before) - kv.held(kept));
            all[at].rooms = kept;
            // Room that was asked for and not used, for guesses, stays.
            let rooms = Rooms { filled: rooms.filled.max(kept.filled), ..rooms };
            let need = kv.held(rooms) - kv.held(kept);
            while need > self.pool.free() {
                let last = (0..all.len()).filter(|i| all[*i].runs).max_by_key(|i| all[*i].key);
                let victim = last.unwrap_or(at);
                all[victim].runs = false;
                if let Some(tokens) = all[victim].taken.take() {
                    *budget += tokens;
                }
                self.plan.preempted += 1;
                self.throw_out(all[victim].index, all[victim].rooms);
                if victim == at {
                    break 'each;
                }
            }
            self.pool.take(need);
            (all[at].rooms, all[at].taken) = (rooms, Some(wanted));
            *budget -= wanted;
            at += 1;
        }
        for Walker { index, computed, rooms, taken, runs, .. } in all {
            if !runs {
                continue;
            }
            let place = self.slots[index as usize].place;
            let whole = taken == Some(decode_tokens);
            if place == Place::InStep && !whole {
                self.part(index, Place::Behind);
                self.parted.push(index);
                self.behind.push(index);
            }
            let own = &mut self.slots[index as usize];
            if own.place != Place::InStep {
                own.rooms = rooms;
            }
            let Some(tokens) = taken else { continue };
            match own.place {
                Place::Reading => self.read(index, tokens),
                _ => {
                    self.plan.load.add_decode(computed + 1);
                    self.plan.load.drafts += tokens - 1;
                    if own.place == Place::InStep {
                        self.plan.in_step = true;
                    } else {
                        self.plan.alone.push((index, tokens));
                    }
                }
            }
        }
        self.fresh.clear();
        if self.plan.in_step {
            self.roomed = self.count;
        }
    }

    /// A part of a prompt is read in this step; its content is known from here on.
    pub(super) fn read(&mut self, index: u32, tokens: u64) {
        let block = self.limits.kv.block_tokens;
        let own = &mut self.slots[index as usize];
        self.plan.alone.push((index, tokens));
        // All of its past but the newest token was found: it generates.
        if own.generated > 0 && own.computed + 1 == own.wanted.prompt + own.generated {
            self.plan.load.add_decode(own.computed + 1);
            return;
        }
        self.plan.load.add_chunk(tokens, own.computed);
        own.full = (own.computed + tokens) / block;
        self.pool.name(&mut own.hold, own.full);
    }

    /// A sequence makes room for others, and waits to read all of its past again.
    pub(super) fn throw_out(&mut self, index: u32, rooms: Rooms) {
        if self.slots[index as usize].place == Place::InStep {
            self.part(index, Place::Behind);
            self.parted.push(index);
        }
        self.behind.retain(|b| *b != index);
        if self.reading == Some(index) {
            self.reading = None;
        }
        let own = &mut self.slots[index as usize];
        if Self::own_name(own).is_none() {
            let name = nameless(own.serial);
            self.pool.remember(&mut own.hold, own.wanted.content.as_deref(), name);
        }
        own.preemptions = own.preemptions.saturating_add(1);
        own.rooms = rooms;
        self.close(index);
        self.slots[index as usize].computed = 0;
        self.wait(index);
    }

    /// What the first in line would take, or what keeps it waiting.
    pub(super) fn admission(&self, index: u32, budget: u64) -> Result<Admission, Held> {
        if budget == 0 {
            return Err(Held::Budget);
        }
        if self.running >= self.limits.max_num_seqs as u64 {
            return Err(Held::Sequences);
        }
        let (kv, own) = (self.limits.kv, &self.slots[index as usize]);
        let tokens = own.wanted.prompt + own.generated;
        let content = own.wanted.content.as_deref();
        let hit = self.pool.look_up(content, Self::own_name(own), (tokens - 1) / kv.block_tokens);
        let computed = (hit.stretches * kv.block_tokens).max(own.wanted.supplied().min(tokens - 1));
        let wanted = (tokens - computed).min(budget);
        let rooms = kv.rooms(computed, computed + wanted);
        let take = kv.held(rooms) - hit.stretches * kv.full;
        let mut asked = take + hit.in_line;
        if self.limits.whole_prompts {
            let whole = self.limits.need_most(tokens) - hit.stretches * kv.full + hit.in_line;
            asked = asked.max(whole);
        }
        if asked > self.pool.free() {
            return Err(Held::Kv);
        }
        Ok(Admission { computed, wanted, rooms, hit: hit.stretches, take })
    }

    /// Those that wait, in their order.
    pub(super) fn let_in(&mut self, budget: &mut u64) {
        while let Some(index) = self.next() {
            let admission = match self.admission(index, *budget) {
                Ok(admission) => admission,
                Err(held) => {
                    self.plan.held = Some(held);
                    return;
                }
            };
            self.waiting.pop();
            self.waiting_count -= 1;
            let own = &self.slots[index as usize];
            self.waiting_tokens -= own.wanted.prompt + own.generated;
            self.running += 1;
            let Admission { computed, wanted, rooms, hit, take } = admission;
            let own = &mut self.slots[index as usize];
            let name = Self::own_name(own);
            self.pool.open(&mut own.hold, own.wanted.content.as_deref(), name, hit);
            self.pool.take(take);
            (own.place, own.computed, own.rooms) = (Place::Reading, computed, rooms);
            own.turn = self.turns;
            self.order.push((index, self.turns));
            self.turns += 1;
            self.plan.admitted.push((index, computed));
            if computed + wanted < own.wanted.prompt + own.generated {
                self.reading = Some(index);
            }
            self.read(index, wanted);
            *budget -= wanted;
        }
        // Those that have gone are forgotten now and then.
        if self.order.len() as u64 > 2 * self.running + 64 {
            self.tidy_order();
        }
    }
}

/// What somebody who is let in takes.
pub(super) struct Admission {
    computed: u64,
    wanted: u64,
    rooms: Rooms,
    /// Leading stretches that are there.
    hit: u64,
    /// Blocks beside those.
    take: u64,
}

/// A sequence that is looked at by itself.
struct Walker {
    index: u32,
    /// The last by this is thrown out.
    key: (u32, u64),
    computed: u64,
    rooms: Rooms,
    /// Tokens of this step that it was given.
    taken: Option<u64>,
    runs: bool,
}
