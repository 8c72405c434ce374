//! The same engine at a cost that does not grow with its batch.
//!
//! Sequences that generate advance in step, so their number and the sum of their contexts are all a step needs to know of them. Each is done at a
//! value of a common count of tokens that is known when it joins; each takes a new block when that count has a certain residue, and gives one back when
//! it has another once it is longer than a window. A stretch of steps in which nothing joins, ends or runs out is leapt over in closed form: within an
//! affine piece of the step time it is an arithmetic series, exact in whole picoseconds. Where blocks run out, a step's tokens do not go round or
//! several tokens are guessed with windows, sequences are looked at one by one, as the plain engine does always. That one is the oracle: both must give the same events.

mod decide;
mod leap;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_perf::{Host, StepLoad, StepModel};

use crate::drive::{Engine, Gauges, Moved, Pace, Stretch, Watch};
use crate::limits::{Limits, Rooms, TooLong};
use crate::plain::Held;
use crate::request::{End, Outcome, Wanted, nameless, tokens_u32};
use crate::segments::{Hold, SegmentPool};

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere: the slot can be used again.
    Gone,
    Waiting,
    /// It reads its prompt, or its past.
    Reading,
    /// It generates, in step with others.
    InStep,
    /// It generates, but was passed over: it is looked at by itself until it is back in step.
    Behind,
    /// It has all of its tokens, and its blocks until they have been handed out.
    Leaving,
}

/// A request in the engine.
#[derive(Clone, Debug)]
struct Slot {
    serial: u64,
    wanted: Wanted,
    place: Place,
    arrived: u64,
    scheduled: Option<u64>,
    first: Option<u64>,
    /// When it got its last token before it came in step, or at all where it is not.
    last: u64,
    /// The longest time between two of its tokens until then.
    gap: u64,
    cached: u64,
    read: u32,
    preemptions: u8,
    /// Which of all that were let in it is: sequences run in this order.
    turn: u64,
    /// Tokens it has generated and tokens whose keys and values are there, as of `joined` where it is in step.
    generated: u64,
    computed: u64,
    /// The common count of tokens when it came in step; where it leaves from there, the tokens of its last step.
    joined: u64,
    /// What it holds; where it is in step, as of when it came.
    rooms: Rooms,
    /// Leading stretches that are full, or will be when the step that was decided on is over.
    full: u64,
    /// Which of all that came in step it is.
    stamp: u64,
    hold: Hold,
}

/// What comes at values of the common count: (count, slot, stamp). Some may be no more.
type Coming = BinaryHeap<Reverse<(u64, u32, u64)>>;

/// Those that wait, by rank and serial: (rank, serial, slot). Some may have gone.
#[derive(Debug, Default)]
struct Line {
    /// Most come in their order, however many wait.
    in_order: VecDeque<(u32, u64, u32)>,
    others: BinaryHeap<Reverse<(u32, u64, u32)>>,
}

impl Line {
    fn push(&mut self, one: (u32, u64, u32)) {
        if self.in_order.back().is_none_or(|last| *last < one) {
            self.in_order.push_back(one);
        } else {
            self.others.push(Reverse(one));
        }
    }

    fn first(&self) -> Option<(u32, u64, u32)> {
        match (self.in_order.front(), self.others.peek()) {
            (Some(one), Some(Reverse(other))) => Some(*one.min(other)),
            (one, other) => one.or(other.map(|Reverse(other)| other)).copied(),
        }
    }

    fn pop(&mut self) {
        if self.in_order.front().copied() == self.first() {
            self.in_order.pop_front();
        } else {
            self.others.pop();
        }
    }
}

/// A step that has been decided on.
#[derive(Debug, Default)]
struct Planned {
    load: StepLoad,
    /// Whether those in step generate.
    in_step: bool,
    /// Sequences that are looked at by themselves, and how many tokens of each are computed.
    alone: Vec<(u32, u64)>,
    /// Of these, whoever was let in for this step, and how many tokens of it were cached.
    admitted: Vec<(u32, u64)>,
    held: Option<Held>,
    preempted: u64,
}

impl Planned {
    /// Nothing; the room of lists is used again.
    fn clear(&mut self) {
        let Self { mut alone, mut admitted, .. } = std::mem::take(self);
        alone.clear();
        admitted.clear();
        (self.alone, self.admitted) = (alone, admitted);
    }
}

/// A step that was launched.
#[derive(Debug, Default)]
struct UnderWay {
    is: bool,
    /// When the device is done with it.
    end: u64,
    load: StepLoad,
    held: Option<Held>,
    preempted: u64,
    /// Sequences in step that it gives tokens to, by class, and how many tokens.
    classes: Vec<u64>,
    yielded: u64,
    /// Tokens that it gives, all together.
    tokens: u64,
    /// Others that it gives tokens to: (slot, serial, tokens).
    alone: Vec<(u32, u64, u64)>,
}

/// One engine on its devices.
pub struct Replica<'a> {
    limits: Limits,
    model: &'a StepModel,
    slots: Vec<Slot>,
    spare: Vec<u32>,
    /// Slots by serial, from the oldest that is still there.
    by_serial: VecDeque<u32>,
    oldest: u64,
    waiting: Line,
    waiting_count: u64,
    waiting_tokens: u64,
    /// Whoever was let in, in order; some may have gone.
    order: Vec<(u32, u64)>,
    turns: u64,
    running: u64,
    reading: Option<u32>,
    behind: Vec<u32>,
    leaving: Vec<u32>,
    /// Sequences in step, and what they will see together in the next step.
    decodes: u64,
    context: u64,
    by_class: Vec<u64>,
    /// Tokens that a sequence which was in step all along would have got, and one.
    count: u64,
    /// The value of `count` at which those in step were last given room.
    roomed: u64,
    decode_steps: u64,
    /// Sequences in step by the residue of the count at which they take blocks, and at which they give some back.
    takes: Vec<u64>,
    gives: Vec<u64>,
    /// Those who have come in step since, and may have more to give back at first, or to take; only with windows or guesses.
    fresh: Vec<(u32, u64)>,
    stamps: u64,
    /// The count at which each is done, and at which each has left a block behind its window: (count, slot, stamp).
    ends: Coming,
    windows: Coming,
    pool: SegmentPool,
    /// The step that is decided on.
    plan: Planned,
    /// The step whose tokens nobody has seen yet.
    under_way: UnderWay,
    /// Gaps of those in step that none after them exceeds, and when they ended: the first after an instant is the largest since.
    peaks: Vec<(u64, u64)>,
    /// Sequences that are no longer in step since then.
    parted: Vec<u32>,
    /// By context, less the common count: the longest of those in step, first; some may have gone: (context, slot, stamp).
    lengths: BinaryHeap<(i64, u32, u64)>,
    host: Host<u64>,
    /// Whether the last tokens were handed out late, and when they were.
    late: bool,
    since: u64,
    /// How it stood then, where nothing was under way.
    stood: Option<Gauges>,
    /// Steps, and those of them that were leapt over.
    steps: Steps,
    /// A stretch that was looked at.
    quiet: Option<leap::Leap>,
}

/// Steps of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// All of them.
    pub total: u64,
    /// Those that were leapt over.
    pub leapt: u64,
}

impl<'a> Replica<'a> {
    /// An idle one.
    pub fn new(limits: Limits, model: &'a StepModel) -> Self {
        let block = usize::try_from(limits.kv.block_tokens).unwrap_or(1);
        Self {
            limits,
            model,
            slots: Vec::new(),
            spare: Vec::new(),
            by_serial: VecDeque::new(),
            oldest: 0,
            waiting: Line::default(),
            waiting_count: 0,
            waiting_tokens: 0,
            order: Vec::new(),
            turns: 0,
            running: 0,
            reading: None,
            behind: Vec::new(),
            leaving: Vec::new(),
            decodes: 0,
            context: 0,
            by_class: Vec::new(),
            count: 1,
            roomed: 0,
            decode_steps: 0,
            takes: vec![0; block],
            gives: vec![0; block],
            fresh: Vec::new(),
            stamps: 0,
            ends: BinaryHeap::new(),
            windows: BinaryHeap::new(),
            pool: SegmentPool::new(limits.kv, limits.prefix_cache),
            plan: Planned::default(),
            under_way: UnderWay::default(),
            peaks: Vec::new(),
            parted: Vec::new(),
            lengths: BinaryHeap::new(),
            host: Host { free: 0, done: 0 },
            late: false,
            since: 0,
            stood: None,
            steps: Steps::default(),
            quiet: None,
        }
    }

    /// Steps so far.
    pub fn steps(&self) -> Steps {
        self.steps
    }

    /// The time is now.
    fn stand(&mut self, now: u64) {
        self.host.free = self.host.free.max(now);
        if !self.limits.asynchronous {
            self.since = now;
        }
    }

    /// From here on its steps take other times.
    pub fn set_model(&mut self, model: &'a StepModel) {
        self.quiet = None;
        self.model = model;
    }

    fn slot(&mut self, slot: Slot) -> u32 {
        match self.spare.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Tokens that a sequence has computed by now.
    fn computed(&self, own: &Slot) -> u64 {
        own.computed + if own.place == Place::InStep { self.count - own.joined } else { 0 }
    }

    fn generated(&self, own: &Slot) -> u64 {
        own.generated + if own.place == Place::InStep { self.count - own.joined } else { 0 }
    }

    /// What a sequence holds.
    fn rooms(&self, own: &Slot) -> Rooms {
        if own.place == Place::InStep && self.roomed >= own.joined {
            let computed = own.computed + (self.roomed - own.joined);
            self.limits.kv.rooms(computed, computed + self.limits.decode_tokens())
        } else {
            own.rooms
        }
    }

    /// What a request's own tokens are called, as far as anybody can look for them.
    fn own_name(own: &Slot) -> Option<u64> {
        let named = own.wanted.content.as_ref().and_then(|c| c.own);
        named.or((own.preemptions > 0).then(|| nameless(own.serial)))
    }

    fn wait(&mut self, index: u32) {
        let own = &mut self.slots[index as usize];
        own.place = Place::Waiting;
        self.waiting.push((own.wanted.rank, own.serial, index));
        self.waiting_count += 1;
        self.waiting_tokens += own.wanted.prompt + own.generated;
    }

    /// The first in line.
    fn next(&mut self) -> Option<u32> {
        while let Some((_, serial, index)) = self.waiting.first() {
            let own = &self.slots[index as usize];
            if own.serial == serial && own.place == Place::Waiting {
                return Some(index);
            }
            self.waiting.pop();
        }
        None
    }

    /// Forgets whoever runs no more.
    fn tidy_order(&mut self) {
        let slots = &self.slots;
        let runs = |own: &Slot| !matches!(own.place, Place::Gone | Place::Waiting);
        self.order.retain(|(index, turn)| {
            let own = &slots[*index as usize];
            own.turn == *turn && runs(own)
        });
    }

    /// The residue of the count at which a sequence with so many tokens computed at `count` fills its blocks to the end.
    fn residue(&self, computed: u64, count: u64) -> usize {
        let block = self.limits.kv.block_tokens;
        ((count % block + block - computed % block) % block) as usize
    }

    /// The residue at which it leaves a block behind its window.
    fn window_residue(&self, taking: usize) -> usize {
        let (block, window) = (self.limits.kv.block_tokens, self.limits.kv.window);
        ((taking as u64 + (window - 1) % block) % block) as usize
    }

    /// The count at which a sequence with so many tokens computed at `count` first leaves a block behind its window by generating.
    fn passes(&self, computed: u64, count: u64) -> u64 {
        let kv = self.limits.kv;
        count + (kv.window + kv.block_tokens - 1).max(computed + 1) - computed
    }

    /// A sequence comes in step, with all but its newest token computed.
    fn join(&mut self, index: u32) {
        let (count, stamp) = (self.count, self.stamps);
        self.stamps += 1;
        let own = &mut self.slots[index as usize];
        (own.place, own.joined, own.stamp) = (Place::InStep, count, stamp);
        let (computed, class) = (own.computed, own.wanted.class);
        let left = own.wanted.output.tokens() - own.generated;
        self.decodes += 1;
        self.context += computed + 1;
        self.in_class(class, 1);
        self.ends.push(Reverse((count + left, index, stamp)));
        self.lengths.push((computed.cast_signed() + 1 - count.cast_signed(), index, stamp));
        let residue = self.residue(computed, count);
        self.takes[residue] += 1;
        if self.limits.kv.sliding > 0 || self.limits.speculation.is_some() {
            self.fresh.push((index, stamp));
        }
        if self.limits.kv.sliding > 0 {
            self.windows.push(Reverse((self.passes(computed, count), index, stamp)));
        }
    }

    fn in_class(&mut self, class: u16, more: i64) {
        let class = class as usize;
        if class >= self.by_class.len() {
            self.by_class.resize(class + 1, 0);
        }
        self.by_class[class] = self.by_class[class].wrapping_add_signed(more);
    }

    /// A sequence is no longer in step: what it is in numbers of its own is written down.
    fn part(&mut self, index: u32, place: Place) {
        let own = &self.slots[index as usize];
        let (computed, generated, rooms) =
            (self.computed(own), self.generated(own), self.rooms(own));
        let (class, taking) = (own.wanted.class, self.residue(own.computed, own.joined));
        let gives =
            self.limits.kv.sliding > 0 && self.count >= self.passes(own.computed, own.joined);
        self.decodes -= 1;
        self.context -= computed + 1;
        self.in_class(class, -1);
        self.takes[taking] -= 1;
        if gives {
            let giving = self.window_residue(taking);
            self.gives[giving] -= 1;
        }
        let own = &mut self.slots[index as usize];
        (own.place, own.computed, own.generated, own.rooms) = (place, computed, generated, rooms);
    }

    /// The first of what comes, without what is no more.
    fn first(slots: &[Slot], coming: &mut Coming) -> Option<(u64, u32)> {
        while let Some(Reverse((count, index, stamp))) = coming.peek().copied() {
            let own = &slots[index as usize];
            if own.place == Place::InStep && own.stamp == stamp {
                return Some((count, index));
            }
            coming.pop();
        }
        None
    }

    /// The longest context of those in step.
    fn longest(&mut self) -> u64 {
        while let Some((context, index, stamp)) = self.lengths.peek().copied() {
            let own = &self.slots[index as usize];
            if own.place == Place::InStep && own.stamp == stamp {
                return context.saturating_add_unsigned(self.count).unsigned_abs();
            }
            self.lengths.pop();
        }
        0
    }

    /// Whoever has left a block behind its window by now gives one back at its residue from here on.
    fn pass_windows(&mut self) {
        while let Some((count, index)) = Self::first(&self.slots, &mut self.windows)
            && count <= self.count
        {
            self.windows.pop();
            let own = &self.slots[index as usize];
            let giving = self.window_residue(self.residue(own.computed, own.joined));
            self.gives[giving] += 1;
        }
    }

    /// Blocks that those in step take, and give back, to generate at a value of the count.
    fn exchanged(&self, count: u64) -> (u64, u64) {
        let (kv, residue) = (self.limits.kv, (count % self.limits.kv.block_tokens) as usize);
        (self.takes[residue] * (kv.full + kv.sliding), self.gives[residue] * kv.sliding)
    }

    /// Blocks that those in step take to generate and to guess, without windows: every value of the count by which the end of their guesses has moved on is
    /// somebody's residue. Whoever has just come in step had no room for guesses.
    fn taken_with_guesses(&self) -> u64 {
        let (kv, guesses) = (self.limits.kv, self.limits.decode_tokens());
        let passed = self.roomed + guesses..self.count + guesses;
        let residues = || passed.clone().map(|count| (count % kv.block_tokens) as usize);
        let mut takes: u64 = residues().map(|residue| self.takes[residue] * kv.full).sum();
        for (index, stamp) in &self.fresh {
            let own = &self.slots[*index as usize];
            // It may have gone since.
            if own.place == Place::InStep && own.stamp == *stamp {
                let taking = self.residue(own.computed, own.joined);
                let rooms = kv.rooms(own.computed, own.computed + guesses);
                takes += kv.held(rooms) - kv.held(own.rooms);
                takes -= residues().filter(|residue| *residue == taking).count() as u64 * kv.full;
            }
        }
        takes
    }

    /// A sequence that is not in step gives up its blocks; what it has written can be found in them.
    fn close(&mut self, index: u32) {
        let own = &mut self.slots[index as usize];
        let whole = (own.computed / self.limits.kv.block_tokens).max(own.full);
        own.full = 0;
        self.pool.name(&mut own.hold, whole);
        self.pool.close(&mut own.hold, own.rooms, whole);
        self.running -= 1;
    }

    /// The step that was decided on is on its way, and the device will be done with it at `end`.
    fn advance(&mut self, end: u64) {
        let yielded = self.limits.yielded(self.decode_steps);
        self.decode_steps += u64::from(self.plan.load.decodes > 0);
        let on_its_way = &mut self.under_way;
        (on_its_way.is, on_its_way.end) = (true, end);
        (on_its_way.load, on_its_way.held) = (self.plan.load, self.plan.held);
        (on_its_way.preempted, on_its_way.yielded) = (self.plan.preempted, yielded);
        on_its_way.alone.clear();
        on_its_way.tokens = 0;
        on_its_way.classes.clear();
        if self.plan.in_step {
            on_its_way.classes.extend_from_slice(&self.by_class);
            on_its_way.tokens = self.decodes * yielded;
            self.count += yielded;
            self.context += self.decodes * yielded;
        }
        self.pass_windows();
        while let Some((count, index)) = Self::first(&self.slots, &mut self.ends)
            && count <= self.count
        {
            self.ends.pop();
            self.part(index, Place::Leaving);
            let own = &mut self.slots[index as usize];
            // The last step's guesses may have gone further.
            let beyond = own.generated - own.wanted.output.tokens();
            self.under_way.tokens -= beyond;
            own.joined = yielded - beyond;
            own.generated = own.wanted.output.tokens();
            own.computed = own.wanted.prompt + own.generated - 1;
            self.leaving.push(index);
        }
        for at in 0..self.plan.alone.len() {
            let (index, tokens) = self.plan.alone[at];
            let own = &mut self.slots[index as usize];
            let got = match own.place {
                Place::Reading => {
                    // With all but its newest token there it generates already.
                    let generates =
                        own.generated > 0 && own.wanted.prompt + own.generated - own.computed == 1;
                    let read = if generates { 0 } else { tokens_u32(tokens) };
                    own.read = own.read.saturating_add(read);
                    own.computed += tokens;
                    let left = own.wanted.prompt + own.generated - own.computed;
                    // Whoever has read its past but for the newest token generates from here on.
                    if left > 1 || left == 1 && own.generated == 0 {
                        continue;
                    }
                    if self.reading == Some(index) {
                        self.reading = None;
                    }
                    if left == 1 {
                        own.place = Place::Behind;
                        self.behind.push(index);
                        continue;
                    }
                    1
                }
                Place::Behind => {
                    let left = own.wanted.output.tokens() - own.generated;
                    let got = yielded.min(tokens).min(left);
                    own.computed += got;
                    self.behind.retain(|b| *b != index);
                    got
                }
                // Its client has gone since.
                _ => continue,
            };
            own.generated += got;
            self.under_way.alone.push((index, own.serial, got));
            self.under_way.tokens += got;
            if own.generated >= own.wanted.output.tokens() {
                own.place = Place::Leaving;
                self.leaving.push(index);
            } else {
                self.join(index);
            }
        }
    }

    /// Hands out the tokens of the step under way.
    fn hand_out(&mut self, at: u64, pace: Pace, gauges: Gauges, watch: &mut impl Watch) {
        let seen = &mut self.under_way;
        seen.is = false;
        watch.stretch(&Stretch {
            from: self.since,
            took: at - self.since,
            steps: 1,
            prefill: seen.load.prefill,
            pairs_doubled: seen.load.pairs_doubled,
            decodes: seen.load.decodes,
            context: seen.load.context,
            tokens: seen.tokens,
            gauges: self.stood.take().unwrap_or(gauges),
            held: seen.held,
            preempted: seen.preempted,
        });
        let gap = at - self.since;
        let mut any = false;
        for (class, n) in (0u16..).zip(&seen.classes).filter(|(_, n)| **n > 0) {
            watch.gap(class, gap, pace, *n);
            any = true;
        }
        if any {
            peak(&mut self.peaks, at, gap);
        } else {
            self.peaks.clear();
        }
        for (index, serial, _) in &seen.alone {
            let own = &mut self.slots[*index as usize];
            // Its client may have gone since.
            if own.serial != *serial || own.place == Place::Gone {
                continue;
            }
            match own.first {
                None => own.first = Some(at),
                Some(_) => {
                    own.gap = own.gap.max(at - own.last);
                    watch.gap(own.wanted.class, at - own.last, pace, 1);
                }
            }
            own.last = at;
        }
        self.leave_step(at);
        self.since = at;
        self.steps.total += 1;
    }

    /// Whoever is no longer in step got its last token with the others at `at`.
    fn leave_step(&mut self, at: u64) {
        for index in self.parted.drain(..) {
            let own = &mut self.slots[index as usize];
            own.gap = own.gap.max(largest(&self.peaks, own.last));
            own.last = at;
        }
    }

    /// Tokens of the step under way that a sequence has been given and its client has not seen.
    fn unseen(&self, index: u32) -> u64 {
        let (own, seen) = (&self.slots[index as usize], &self.under_way);
        if !seen.is {
            return 0;
        }
        let alone = seen.alone.iter().find(|(at, serial, _)| (*at, *serial) == (index, own.serial));
        match alone {
            Some((.., got)) => *got,
            None if own.place == Place::InStep && !seen.classes.is_empty() => seen.yielded,
            None if own.place == Place::Leaving => own.joined,
            None => 0,
        }
    }

    /// The tokens of a step have been handed out: those that are done leave.
    fn release(&mut self, end: u64, watch: &mut impl Watch) -> usize {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.sort_unstable_by_key(|index| self.slots[*index as usize].turn);
        for index in &leaving {
            self.close(*index);
            self.over(*index, End::Completed, end, true, watch);
        }
        let completed = leaving.len();
        leaving.clear();
        self.leaving = leaving;
        completed
    }

    /// A request is over; whether it was in step until now.
    fn over(&mut self, index: u32, how: End, now: u64, in_step: bool, watch: &mut impl Watch) {
        let own = &mut self.slots[index as usize];
        let since = if in_step { largest(&self.peaks, own.last) } else { 0 };
        own.place = Place::Gone;
        watch.over(&Outcome {
            serial: own.serial,
            class: own.wanted.class,
            end: how,
            arrived: own.arrived,
            scheduled: own.scheduled,
            first: own.first,
            done: now,
            prompt: own.wanted.prompt,
            output: own.generated,
            cached: own.cached,
            read: own.read,
            preemptions: own.preemptions,
            largest_gap: own.gap.max(since),
        });
        let offset = (own.serial - self.oldest) as usize;
        self.by_serial[offset] = NOBODY;
        self.spare.push(index);
        while self.by_serial.front() == Some(&NOBODY) {
            self.by_serial.pop_front();
            self.oldest += 1;
        }
    }
}

/// A gap that ended at `at`.
fn peak(peaks: &mut Vec<(u64, u64)>, at: u64, gap: u64) {
    while peaks.pop_if(|(_, smaller)| *smaller <= gap).is_some() {}
    peaks.push((at, gap));
}

/// The largest gap that ended after an instant.
fn largest(peaks: &[(u64, u64)], after: u64) -> u64 {
    peaks.get(peaks.partition_point(|(at, _)| *at <= after)).map_or(0, |(_, gap)| *gap)
}

/// No slot.
const NOBODY: u32 = u32::MAX;

impl Engine for Replica<'_> {
    fn arrive(&mut self, at: u64, serial: u64, wanted: Wanted) -> Result<(), TooLong> {
        self.limits.fits(wanted.prompt, wanted.output.tokens())?;
        let index = self.slot(Slot {
            serial,
            wanted,
            place: Place::Waiting,
            arrived: at,
            scheduled: None,
            first: None,
            last: 0,
            gap: 0,
            cached: 0,
            read: 0,
            preemptions: 0,
            turn: u64::MAX,
            generated: 0,
            computed: 0,
            joined: 0,
            rooms: Rooms::default(),
            full: 0,
            stamp: u64::MAX,
            hold: Hold::default(),
        });
        if self.by_serial.is_empty() {
            self.oldest = serial;
        }
        // Those in between were refused.
        let offset = (serial - self.oldest) as usize;
        self.by_serial.resize(offset, NOBODY);
        self.by_serial.push_back(index);
        self.wait(index);
        Ok(())
    }

    fn cancel(&mut self, now: u64, serial: u64, watch: &mut impl Watch) -> bool {
        let Some(offset) = serial.checked_sub(self.oldest) else { return false };
        let Some(&index) = self.by_serial.get(offset as usize).filter(|i| **i != NOBODY) else {
            return false;
        };
        let unseen = self.unseen(index);
        // Whoever has just come in step has not seen a token there.
        let alone = self.under_way.is && self.under_way.alone.iter().any(|(at, ..)| *at == index);
        let in_step = self.slots[index as usize].place == Place::InStep && !alone;
        match self.slots[index as usize].place {
            Place::Gone | Place::Leaving => return false,
            Place::Waiting => {
                let own = &self.slots[index as usize];
                self.waiting_count -= 1;
                self.waiting_tokens -= own.wanted.prompt + own.generated;
            }
            Place::InStep => {
                let class = self.slots[index as usize].wanted.class as usize;
                if self.under_way.is
                    && !alone
                    && let Some(n) = self.under_way.classes.get_mut(class)
                {
                    *n -= 1;
                }
                self.part(index, Place::Behind);
                self.close(index);
            }
            Place::Reading | Place::Behind => {
                self.behind.retain(|b| *b != index);
                if self.reading == Some(index) {
                    self.reading = None;
                }
                self.close(index);
            }
        }
        self.slots[index as usize].generated -= unseen;
        self.under_way.tokens -= unseen;
        self.over(index, End::TimedOut, now, in_step, watch);
        true
    }

    fn go(&mut self, now: u64, until: u64, watch: &mut impl Watch) -> Option<Moved> {
        self.stand(now);
        // What was looked at before is done where nobody cuts it short.
        let leap = match self.quiet.take() {
            Some(leap) if leap.handed_out <= until => Some(leap),
            _ => self.plan_leap(now, until),
        };
        match leap {
            Some(leap) => Some(Moved { now: self.leap(leap, watch), completed: 0 }),
            None => self.step(now, watch),
        }
    }

    fn quiet(&mut self, now: u64) -> Option<u64> {
        self.stand(now);
        self.quiet = self.plan_leap(now, u64::MAX);
        self.quiet.as_ref().map(|leap| leap.handed_out)
    }

    fn has_begun(&self, serial: u64) -> bool {
        let offset = serial.checked_sub(self.oldest).and_then(|n| usize::try_from(n).ok());
        let index = offset.and_then(|n| self.by_serial.get(n)).filter(|index| **index != NOBODY);
        index.is_some_and(|index| self.slots[*index as usize].first.is_some())
    }

    fn first_waiting(&self) -> Option<u64> {
        let waits = |(_, serial, index): (u32, u64, u32)| {
            let own = &self.slots[index as usize];
            (own.serial == serial && own.place == Place::Waiting).then_some(own.arrived)
        };
        // Whoever is first may have gone: the next then, which is close enough for somebody who looks on.
        self.waiting
            .first()
            .and_then(waits)
            .or_else(|| self.waiting.in_order.iter().copied().find_map(waits))
    }

    fn finds(&self, wanted: &Wanted) -> u64 {
        let block = self.limits.kv.block_tokens;
        let most = (wanted.prompt - 1) / block;
        let hit = self.pool.look_up(wanted.content.as_deref(), None, most);
        hit.stretches * block
    }

    fn step(&mut self, now: u64, watch: &mut impl Watch) -> Option<Moved> {
        self.stand(now);
        self.quiet = None;
        let planned = self.schedule(now);
        let gauges = self.gauges();
        let prompts = self.under_way.load.prefill > 0;
        if !self.limits.asynchronous {
            if !planned {
                return None;
            }
            self.leave_step(now);
            let end = now.saturating_add(self.model.step(&self.plan.load));
            self.advance(end);
            let pace = Pace::of(false, false, self.plan.load.prefill > 0);
            self.hand_out(end, pace, gauges, watch);
            return Some(Moved { now: end, completed: self.release(end, watch) });
        }
        let load = &self.plan.load;
        let end = if planned {
            self.host.launch(self.model.device(load), self.model.launch(load))
        } else {
            0
        };
        if !self.under_way.is {
            // With nothing under way the next is launched at once.
            if !planned {
                return None;
            }
            (self.since, self.stood) = (now, Some(gauges));
            self.advance(end);
            return Some(Moved { now: self.host.free, completed: 0 });
        }
        let seen = self.under_way.end;
        let was_late = std::mem::replace(&mut self.late, self.host.holds_up(seen));
        let at = self.host.hand_out(seen);
        self.hand_out(at, Pace::of(self.late, was_late, prompts), gauges, watch);
        let completed = self.release(at, watch);
        if planned {
            self.advance(end);
        }
        Some(Moved { now: at, completed })
    }

    fn lose(&mut self, now: u64, watch: &mut impl Watch) {
        let all: Vec<u32> =
            self.by_serial.iter().copied().filter(|index| *index != NOBODY).collect();
        for index in all {
            let unseen = self.unseen(index);
            let alone =
                self.under_way.is && self.under_way.alone.iter().any(|(at, ..)| *at == index);
            let own = &mut self.slots[index as usize];
            if own.place == Place::InStep {
                own.generated += self.count - own.joined;
            }
            own.generated -= unseen;
            let in_step = matches!(own.place, Place::InStep | Place::Leaving) && !alone;
            self.over(index, End::TimedOut, now, in_step, watch);
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            running: self.running,
            waiting: self.waiting_count,
            waiting_tokens: self.waiting_tokens,
            blocks: self.limits.kv.blocks - self.pool.free(),
            seats: (self.limits.max_num_seqs as u64).saturating_sub(self.running),
        }
    }
}
