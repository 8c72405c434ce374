//! One engine, one step at a time, as vLLM's V1 scheduler decides it, or as a policy says that differs from it.
//!
//! It has no clock: whoever drives it says when a request comes and how long a step took. A simulation asks the step-time model; a calibration
//! hands in the times a real engine was seen to take, and learns what each step carried. It is written to be read, not to be fast: the engine
//! that leaps over stretches of steps must give the same events.

use std::collections::VecDeque;

use plimsoll_perf::StepLoad;

use crate::blocks::{BlockPool, Table, block_names};
use crate::limits::{Limits, TooLong};
use crate::policy::{Policy, Room, Vllm};
use crate::request::{Seen, Wanted};

/// A request in the engine.
#[derive(Clone, Debug)]
struct Sequence {
    id: u64,
    /// Its place in the line, among those of its rank.
    place: u64,
    wanted: Wanted,
    /// Tokens whose keys and values are there.
    computed: u64,
    /// Tokens generated so far.
    generated: u64,
    table: Table,
}

impl Sequence {
    /// Tokens it has: its prompt, and what it has generated. After a preemption all of them are a prompt again.
    fn tokens(&self) -> u64 {
        self.wanted.prompt + self.generated
    }

    fn is_done(&self) -> bool {
        self.generated >= self.wanted.output.tokens()
    }

    /// A sequence that has all but its newest token generates; any other reads a prompt, or its own past again.
    fn decodes(&self) -> bool {
        self.generated > 0 && self.tokens() - self.computed == 1
    }

    fn seen(&self, limits: &Limits) -> Seen {
        Seen {
            serial: self.id,
            rank: self.wanted.rank,
            prompt: self.wanted.prompt,
            limit: self.wanted.limit,
            generated: self.generated,
            computed: self.computed,
            blocks: self.table.blocks(&limits.kv),
        }
    }
}

/// What a step carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its work.
    pub load: StepLoad,
    /// Sequences thrown out to make room, in order. Where nothing else is left to do there is no step; [`PlainEngine::thrown_out`] has them too.
    pub preempted: Vec<u64>,
    /// Requests that were let in, and how many of their tokens were cached.
    pub admitted: Vec<(u64, u64)>,
    /// What kept the first in line from being let in.
    pub held: Option<Held>,
    /// Whose tokens are computed, and how many.
    pub scheduled: Vec<(u64, u64)>,
}

/// What keeps the first in line waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The running batch is as large as it may be.
    Sequences,
    /// The step's tokens are all given.
    Budget,
    /// There are too few free blocks.
    Kv,
}

/// What a step gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Requests that got tokens, and how many.
    pub tokens: Vec<(u64, u64)>,
    /// Requests whose first token it was.
    pub first: Vec<u64>,
    /// Requests that are done.
    pub done: Vec<u64>,
    /// Requests of which tokens were read, and how many.
    pub read: Vec<(u64, u64)>,
    /// Prompt tokens of those whose prompt was finished.
    pub prompt: u64,
}

/// The engine.
#[derive(Clone, Debug)]
pub struct PlainEngine<P = Vllm> {
    limits: Limits,
    policy: P,
    /// In the order they are to be let in.
    waiting: VecDeque<Sequence>,
    /// In the order they were let in.
    running: Vec<Sequence>,
    pool: BlockPool,
    /// Steps in which sequences generated.
    decode_steps: u64,
    thrown_out: Vec<u64>,
}

impl PlainEngine {
    /// An empty one that decides as vLLM does.
    pub fn new(limits: Limits) -> Self {
        Self::with_policy(limits, Vllm)
    }
}

impl<P: Policy> PlainEngine<P> {
    /// An empty one that decides in its own way.
    pub fn with_policy(limits: Limits, policy: P) -> Self {
        let pool = BlockPool::new(limits.kv, limits.prefix_cache);
        Self {
            limits,
            policy,
            waiting: VecDeque::new(),
            running: Vec::new(),
            pool,
            decode_steps: 0,
            thrown_out: Vec::new(),
        }
    }

    /// A request joins the queue; whoever sent it will know it by its number, which is higher than any before.
    pub fn arrive(&mut self, id: u64, wanted: Wanted) -> Result<(), TooLong> {
        self.limits.fits(wanted.prompt, wanted.output.tokens())?;
        let (computed, generated, table) = (0, 0, Table::default());
        self.wait(Sequence { id, place: id, wanted, computed, generated, table });
        Ok(())
    }

    fn wait(&mut self, sequence: Sequence) {
        let key = |s: &Sequence| (s.wanted.rank, s.place);
        let place = self.waiting.partition_point(|s| key(s) <= key(&sequence));
        self.waiting.insert(place, sequence);
    }

    /// Its client has gone: a request leaves, wherever it is; true where it was there.
    pub fn cancel(&mut self, id: u64) -> bool {
        if let Some(at) = self.waiting.iter().position(|s| s.id == id) {
            self.waiting.remove(at);
            return true;
        }
        let Some(at) = self.running.iter().position(|s| s.id == id && !s.is_done()) else {
            return false;
        };
        let mut gone = self.running.remove(at);
        self.close(&mut gone);
        self.policy.left(self.running.len());
        true
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The first in line.
    pub fn first_waiting(&self) -> Option<u64> {
        self.waiting.front().map(|s| s.id)
    }

    /// Tokens of those that wait.
    pub fn waiting_tokens(&self) -> u64 {
        self.waiting.iter().map(Sequence::tokens).sum()
    }

    /// Prompt tokens that would be found in the cache now.
    pub fn finds(&self, wanted: &Wanted) -> u64 {
        if !self.limits.prefix_cache {
            return 0;
        }
        let size = self.limits.kv.block_tokens;
        let content = wanted.content.as_deref();
        let names = block_names(content, u64::MAX, (wanted.prompt - 1) / size, size);
        self.pool.look_up(&names).0 * size
    }

    /// Sequences that run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Blocks in use.
    pub fn blocks_used(&self) -> u64 {
        self.limits.kv.blocks - self.pool.free()
    }

    /// Sequences thrown out since this was last asked, in order.
    pub fn thrown_out(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.thrown_out)
    }

    /// Decides what the next step carries; none where there is nothing to do.
    pub fn schedule(&mut self) -> Option<Step> {
        let mut thrown_out = Vec::new();
        loop {
            let mut step = self.decide();
            let again = step.scheduled.is_empty() && !step.preempted.is_empty();
            thrown_out.append(&mut step.preempted);
            // Whoever had to go kept others from being looked at: an empty step is over at once, and the next is theirs.
            if !again {
                step.preempted = thrown_out;
                return (!step.scheduled.is_empty()).then_some(step);
            }
        }
    }

    fn decide(&mut self) -> Step {
        let mut step = Step::default();
        let mut budget = self.limits.max_num_batched_tokens;
        if P::PROMPTS_ALONE {
            // A prompt that has been read in part goes on, and others join it; only without any do sequences generate.
            self.go_on(&mut step, &mut budget, |s| !s.decodes());
            self.let_in(&mut step, &mut budget);
            if step.scheduled.is_empty() {
                self.go_on(&mut step, &mut budget, Sequence::decodes);
            }
        } else {
            self.go_on(&mut step, &mut budget, |_| true);
            self.let_in(&mut step, &mut budget);
        }
        // Whoever was thrown out again may have been the longest.
        if !step.preempted.is_empty() {
            let decodes = self.running.iter().filter(|s| s.decodes());
            let in_it = |s: &&Sequence| step.scheduled.iter().any(|(id, _)| *id == s.id);
            step.load.longest = decodes.filter(in_it).map(|s| s.computed + 1).max().unwrap_or(0);
        }
        self.policy.stepped(step.load.decodes > 0);
        step
    }

    /// Those that run, in the order they started.
    fn go_on(&mut self, step: &mut Step, budget: &mut u64, which: impl Fn(&Sequence) -> bool) {
        let mut at = 0;
        while at < self.running.len() && *budget > 0 {
            let own = &self.running[at];
            // One that is done waits to be released.
            if own.is_done() || !which(own) {
                at += 1;
                continue;
            }
            let wanted = if own.decodes() {
                self.limits.decode_tokens().min(*budget)
            } else {
                self.policy.part(own.tokens() - own.computed, *budget, &self.limits)
            };
            if wanted == 0 {
                at += 1;
                continue;
            }
            match self.make_room(at, wanted, step, budget) {
                Some(now_at) => {
                    self.take(now_at, wanted, step);
                    *budget -= wanted;
                    at = now_at + 1;
                }
                // It was thrown out itself; whoever runs behind it waits for the next step.
                None => break,
            }
        }
    }

    /// Those that wait, in their order, unless somebody was just thrown out.
    fn let_in(&mut self, step: &mut Step, budget: &mut u64) {
        if !step.preempted.is_empty() {
            step.held = (!self.waiting.is_empty()).then_some(Held::Kv);
            return;
        }
        while let Some(next) = self.waiting.front() {
            if *budget == 0 {
                step.held = Some(Held::Budget);
                return;
            }
            if self.running.len() >= self.limits.max_num_seqs {
                step.held = Some(Held::Sequences);
                return;
            }
            let (kv, tokens) = (self.limits.kv, next.tokens());
            // A whole prompt may be cached, yet its last token is computed to get the next.
            let names = self.names(next, tokens - 1);
            let (hit, in_line) = self.pool.look_up(&names);
            let computed = (hit * kv.block_tokens).max(next.wanted.supplied().min(tokens - 1));
            let wanted = self.policy.part(tokens - computed, *budget, &self.limits);
            if wanted == 0 {
                step.held = Some(Held::Budget);
                return;
            }
            let end = if P::WHOLE_ROOM { tokens } else { computed + wanted };
            let rooms = kv.rooms(computed, end);
            let need = kv.held(rooms) - hit * kv.full + in_line;
            let whole = self.limits.need_most(tokens) - hit * kv.full + in_line;
            let asked = if self.limits.whole_prompts { whole.max(need) } else { need };
            let room = Room { free: self.pool.free(), cached: computed, limits: &self.limits };
            let shown = if self.policy.looks() { self.running.as_slice() } else { &[] };
            let running: Vec<Seen> = shown.iter().map(|s| s.seen(&self.limits)).collect();
            if asked > room.free || !self.policy.admits(&next.seen(&self.limits), &running, &room) {
                step.held = Some(Held::Kv);
                return;
            }
            let Some(mut own) = self.waiting.pop_front() else { return };
            own.computed = computed;
            own.table = self.pool.open(&names, hit);
            let grown = self.pool.grow(&mut own.table, computed, end);
            assert!(grown, "there was room");
            step.admitted.push((own.id, computed));
            self.running.push(own);
            self.take(self.running.len() - 1, wanted, step);
            *budget -= wanted;
        }
    }

    /// Names of the full blocks of so many of a sequence's tokens.
    fn names(&self, own: &Sequence, tokens: u64) -> Vec<u64> {
        if !self.limits.prefix_cache {
            return Vec::new();
        }
        let size = self.limits.kv.block_tokens;
        block_names(own.wanted.content.as_deref(), own.id, tokens / size, size)
    }

    /// Sees to the blocks of `more` tokens of a running sequence, throwing out others until there are enough; where it is then. None where it had to go
    /// itself.
    fn make_room(
        &mut self,
        mut at: usize,
        more: u64,
        step: &mut Step,
        budget: &mut u64,
    ) -> Option<usize> {
        loop {
            let own = &mut self.running[at];
            let (computed, end) = (own.computed, own.computed + more);
            if self.pool.grow(&mut own.table, computed, end) {
                return Some(at);
            }
            // One that is done waits for its release, and is not thrown out: it is never the one that asks.
            let able: Vec<usize> =
                (0..self.running.len()).filter(|i| !self.running[*i].is_done()).collect();
            let seen: Vec<Seen> =
                able.iter().map(|i| self.running[*i].seen(&self.limits)).collect();
            let victim = able[self.policy.victim(&seen)];
            let gone = self.running.remove(victim);
            step.preempted.push(gone.id);
            self.thrown_out.push(gone.id);
            // What it was to do in this step is not done.
            if let Some(i) = step.scheduled.iter().position(|(id, _)| *id == gone.id) {
                let (_, tokens) = step.scheduled.remove(i);
                *budget += tokens;
                self.untake(&gone, tokens, step);
            }
            self.throw_out(gone);
            let left: Vec<Seen> = self.running.iter().map(|s| s.seen(&self.limits)).collect();
            self.policy.thrown_out(&left);
            match victim.cmp(&at) {
                std::cmp::Ordering::Equal => return None,
                std::cmp::Ordering::Less => at -= 1,
                std::cmp::Ordering::Greater => {}
            }
        }
    }

    fn throw_out(&mut self, mut gone: Sequence) {
        if !P::OUTPUT_KEPT {
            gone.computed = gone.computed.min(gone.wanted.prompt);
        }
        self.close(&mut gone);
        gone.computed = 0;
        if P::TO_THE_END {
            gone.place = self.waiting.back().map_or(gone.place, |last| last.place.max(gone.place));
        }
        self.wait(gone);
    }

    /// A sequence gives up its blocks; what it has written can be found in them.
    fn close(&mut self, gone: &mut Sequence) {
        let names = self.names(gone, gone.computed);
        let mut table = std::mem::take(&mut gone.table);
        self.pool.name(&mut table, &names);
        self.pool.close(table, gone.computed / self.limits.kv.block_tokens);
    }

    fn take(&mut self, at: usize, tokens: u64, step: &mut Step) {
        let own = &self.running[at];
        if own.decodes() {
            step.load.add_decode(own.computed + 1);
            step.load.drafts += tokens - 1;
        } else {
            step.load.add_chunk(tokens, own.computed);
        }
        step.scheduled.push((own.id, tokens));
        if !own.decodes() {
            // A prompt's content is known when the step is decided on, so that the next in line finds it.
            let names = self.names(own, own.computed + tokens);
            self.pool.name(&mut self.running[at].table, &names);
        }
    }

    fn untake(&self, own: &Sequence, tokens: u64, step: &mut Step) {
        let load = &mut step.load;
        if own.decodes() {
            load.decodes -= 1;
            load.context -= own.computed + 1;
            load.drafts -= tokens - 1;
        } else {
            load.prefill -= tokens;
            load.pairs_doubled -= tokens * (2 * own.computed + tokens);
            load.prompts -= 1;
        }
    }

    /// The step is over: tokens appear, and those that are done leave.
    pub fn finish(&mut self, step: &Step) -> Given {
        let given = self.advance(step);
        self.release();
        given
    }

    /// The step is on its way, and its outcome taken as given, so that the next can be scheduled while it runs: lengths are known, the tokens
    /// themselves need not be. Those that are done stay, with their blocks, until they are released.
    pub fn advance(&mut self, step: &Step) -> Given {
        let mut given = Given::default();
        let mut from = 0;
        for (id, tokens) in &step.scheduled {
            // In the order of those that run; its client may have gone since.
            let Some(at) = self.running[from..].iter().position(|own| own.id == *id) else {
                continue;
            };
            from += at + 1;
            let own = &mut self.running[from - 1];
            let mut got = 1;
            if own.decodes() {
                got = self.limits.yielded(self.decode_steps).min(*tokens);
                got = got.min(own.wanted.output.tokens() - own.generated);
                own.computed += got;
            } else {
                own.computed += tokens;
                given.read.push((own.id, *tokens));
                if own.computed < own.tokens() {
                    continue;
                }
            }
            if own.generated == 0 {
                given.first.push(own.id);
                given.prompt += own.wanted.prompt;
            }
            own.generated += got;
            given.tokens.push((own.id, got));
            if own.is_done() {
                given.done.push(own.id);
            }
        }
        self.decode_steps += u64::from(step.load.decodes > 0);
        given
    }

    /// The tokens of a step have been handed out: those that are done leave.
    pub fn release(&mut self) {
        // In the order they were let in.
        while let Some(at) = self.running.iter().position(Sequence::is_done) {
            let mut gone = self.running.remove(at);
            self.close(&mut gone);
            self.policy.left(self.running.len());
        }
    }
}
