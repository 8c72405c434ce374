//! The same engine at a cost that does not grow with its batch.
//!
//! Sequences that decode advance in step, so their number and the sum of their contexts are all a step needs to know of them. Each is done at a
//! value of a counter of steps that is known when it joins; each takes a new block when the counter has a certain residue. A stretch of
//! steps in which nothing joins, ends or runs out is leapt over in closed form: within an affine piece of the step time it is an arithmetic series,
//! exact in whole picoseconds. The plain engine is the oracle: both must give the same events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_perf::{StepLoad, StepModel};

use crate::plain::{Limits, TooLong};
use crate::serve::{Arrivals, Served, Wanted};

/// Steps of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// All of them.
    pub total: u64,
    /// Those that were leapt over.
    pub leapt: u64,
}

/// A step that has been decided on.
#[derive(Clone, Debug)]
struct Planned {
    load: StepLoad,
    /// Prompts it reads, and how many tokens of each; only the last may be in part.
    chunks: Vec<(usize, u64)>,
}

/// A prompt that has been read in part. There is never more than one: it has taken all that was left of a step's budget.
#[derive(Clone, Copy, Debug)]
struct Partial {
    id: usize,
    computed: u64,
    blocks: u64,
}

struct Engine<'a> {
    limits: Limits,
    wanted: &'a [Wanted],
    waiting: VecDeque<usize>,
    partial: Option<Partial>,
    /// Sequences that decode, and what they will see together in the next step.
    decodes: u64,
    context: u64,
    /// Steps so far.
    counter: u64,
    /// Decoding sequences by the residue of the counter at which they take a block.
    residues: Vec<u64>,
    /// When each decoding sequence is done, by the counter.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    free: u64,
    /// Done, but with their places and blocks until they are released.
    leaving: (u64, u64),
}

/// Serves the requests as [`crate::serve`] does, or gives up with `None` where a sequence would have to be thrown out or a budget does not hold
/// every decoding sequence: then only the plain engine knows. `gap` hears of the gaps between tokens, each with how many sequences it was for.
pub fn serve_fast(
    limits: Limits,
    asynchronous: bool,
    model: &StepModel,
    arrivals: &Arrivals,
    wanted: &[Wanted],
    gap: &mut dyn FnMut(u64, u64),
) -> Result<Option<(Vec<Served>, Steps)>, TooLong> {
    let block = limits.block_tokens;
    let mut engine = Engine {
        limits,
        wanted,
        waiting: VecDeque::new(),
        partial: None,
        decodes: 0,
        context: 0,
        counter: 0,
        residues: vec![0; usize::try_from(block).unwrap_or(1)],
        ends: BinaryHeap::new(),
        free: limits.blocks,
        leaving: (0, 0),
    };
    let mut served = vec![Served::default(); wanted.len()];
    let mut steps = Steps::default();
    let (mut next, mut now, mut in_flight) = (0, 0u64, 0usize);
    let mut ahead: Option<Planned> = None;
    loop {
        while next < wanted.len() {
            let Some(arrived) = arrivals.due(next, now, in_flight) else { break };
            engine.admit(next)?;
            served[next].arrived = arrived;
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        // When a request comes that could be let in; a closed loop sends none while all clients wait.
        let comes = match arrivals {
            Arrivals::Open(at) if next < wanted.len() => at[next],
            _ => u64::MAX,
        };
        // An asynchronous engine has already decided on the next step; both can leap where it only decodes.
        let decided = ahead.as_ref().map(|p| p.chunks.is_empty());
        let pure = if asynchronous { decided == Some(true) } else { true };
        if pure
            && let Some((k, time)) =
                engine.leap(model, asynchronous, comes.saturating_sub(now), gap)
        {
            (steps.total, steps.leapt) = (steps.total + k, steps.leapt + k);
            now = now.saturating_add(time);
            if asynchronous {
                ahead = Some(Planned { load: engine.pure_load(), chunks: Vec::new() });
            }
            continue;
        }
        let planned = match ahead.take() {
            Some(planned) => planned,
            None => match engine.schedule() {
                Some(Some(planned)) => planned,
                Some(None) => match arrivals {
                    Arrivals::Open(at) if next < wanted.len() => {
                        now = now.max(at[next]);
                        continue;
                    }
                    _ => return Ok(Some((served, steps))),
                },
                None => return Ok(None),
            },
        };
        steps.total += 1;
        let decodes = planned.load.decodes;
        let (first, done) = engine.advance(&planned);
        if asynchronous {
            match engine.schedule() {
                Some(planned) => ahead = planned,
                None => return Ok(None),
            }
        }
        let time = model.step(&planned.load);
        now = now.saturating_add(time);
        engine.release();
        if decodes > 0 {
            gap(time, decodes);
        }
        for id in first {
            served[id].first = now;
        }
        in_flight -= done.len();
        for id in done {
            served[id].done = now;
        }
    }
}

impl Engine<'_> {
    fn admit(&mut self, id: usize) -> Result<(), TooLong> {
        let Wanted { prompt, output, .. } = self.wanted[id];
        assert!(prompt > 0 && output > 0, "request {id} reads and writes a token");
        let tokens = prompt + output;
        let (need, blocks) = ((tokens - 1).div_ceil(self.limits.block_tokens), self.limits.blocks);
        if need > blocks {
            return Err(TooLong { tokens, need, blocks });
        }
        self.waiting.push_back(id);
        Ok(())
    }

    fn pure_load(&self) -> StepLoad {
        StepLoad { decodes: self.decodes, context: self.context, ..StepLoad::default() }
    }

    /// Blocks that decoding sequences take at a value of the counter.
    fn crossings(&self, counter: u64) -> u64 {
        self.residues[(counter % self.limits.block_tokens) as usize]
    }

    /// Decides on the next step: nothing where there is nothing to do; `None` where this engine does not know.
    fn schedule(&mut self) -> Option<Option<Planned>> {
        let mut budget = self.limits.max_num_batched_tokens;
        if self.decodes >= budget && self.decodes > 0 {
            return None;
        }
        let crossing = self.crossings(self.counter);
        if crossing > self.free {
            return None;
        }
        let block = self.limits.block_tokens;
        let mut planned = Planned { load: self.pure_load(), chunks: Vec::new() };
        self.free -= crossing;
        budget -= self.decodes;
        if let Some(partial) = &mut self.partial {
            let tokens = (self.wanted[partial.id].prompt - partial.computed).min(budget);
            let need = (partial.computed + tokens).div_ceil(block) - partial.blocks;
            if need > self.free {
                return None;
            }
            self.free -= need;
            partial.blocks += need;
            planned.load.add_chunk(tokens, partial.computed);
            planned.chunks.push((partial.id, tokens));
            budget -= tokens;
        }
        let mut running = self.decodes + u64::from(self.partial.is_some()) + self.leaving.0;
        while budget > 0 && running < self.limits.max_num_seqs as u64 {
            let Some(&id) = self.waiting.front() else { break };
            let Wanted { prompt, cached, .. } = self.wanted[id];
            let computed = cached.min(prompt - 1);
            let tokens = (prompt - computed).min(budget);
            let need = (computed + tokens).div_ceil(block);
            if need > self.free {
                break;
            }
            self.waiting.pop_front();
            self.free -= need;
            planned.load.add_chunk(tokens, computed);
            planned.chunks.push((id, tokens));
            (budget, running) = (budget - tokens, running + 1);
            // Only one that took all of the budget is in part; others are whole and leave this place when the step is on its way.
            if computed + tokens < prompt {
                self.partial = Some(Partial { id, computed, blocks: need });
            }
        }
        let idle = planned.load.decodes == 0 && planned.chunks.is_empty();
        Some((!idle).then_some(planned))
    }

    /// A step is on its way: who gets a first token, and who is done.
    fn advance(&mut self, planned: &Planned) -> (Vec<usize>, Vec<usize>) {
        let block = self.limits.block_tokens;
        self.context += self.decodes;
        self.counter += 1;
        let (mut first, mut done) = (Vec::new(), Vec::new());
        while let Some(Reverse((end, id))) = self.ends.peek().copied()
            && end == self.counter
        {
            self.ends.pop();
            let Wanted { prompt, output, .. } = self.wanted[id];
            let computed = prompt + output - 1;
            self.decodes -= 1;
            self.context -= computed + 1;
            let residue = self.residue(computed);
            self.residues[residue] -= 1;
            self.leave(computed.div_ceil(block));
            done.push(id);
        }
        for (id, tokens) in &planned.chunks {
            let Wanted { prompt, output, .. } = self.wanted[*id];
            if let Some(partial) = &mut self.partial
                && partial.id == *id
            {
                partial.computed += tokens;
                if partial.computed < prompt {
                    continue;
                }
                self.partial = None;
            }
            first.push(*id);
            if output == 1 {
                self.leave(prompt.div_ceil(block));
                done.push(*id);
                continue;
            }
            self.decodes += 1;
            self.context += prompt + 1;
            let residue = self.residue(prompt);
            self.residues[residue] += 1;
            self.ends.push(Reverse((self.counter + output - 1, *id)));
        }
        (first, done)
    }

    /// The counter's residue at which a sequence with so many tokens computed, as of now, takes a block: when they fill blocks to the end.
    fn residue(&self, computed: u64) -> usize {
        let block = self.limits.block_tokens;
        ((self.counter % block + block - computed % block) % block) as usize
    }

    fn leave(&mut self, blocks: u64) {
        self.leaving = (self.leaving.0 + 1, self.leaving.1 + blocks);
    }

    fn release(&mut self) {
        self.free += self.leaving.1;
        self.leaving = (0, 0);
    }

    /// Whether the first that waits could be let in.
    fn could_admit(&self) -> bool {
        let Some(&id) = self.waiting.front() else { return false };
        let running = self.decodes + self.leaving.0;
        let room = self.limits.max_num_batched_tokens.saturating_sub(self.decodes);
        let Wanted { prompt, cached, .. } = self.wanted[id];
        let computed = cached.min(prompt - 1);
        let need = (computed + (prompt - computed).min(room)).div_ceil(self.limits.block_tokens);
        room > 0 && running < self.limits.max_num_seqs as u64 && need <= self.free
    }

    /// Leaps over as many pure decode steps as nothing can happen in, and says how many and how long; `until` is the time until a request comes.
    /// An asynchronous engine has the blocks of the first of them already, and takes those of the one after the last.
    fn leap(
        &mut self,
        model: &StepModel,
        asynchronous: bool,
        until: u64,
        gap: &mut dyn FnMut(u64, u64),
    ) -> Option<(u64, u64)> {
        let Reverse((end, _)) = *self.ends.peek()?;
        if self.partial.is_some()
            || self.decodes >= self.limits.max_num_batched_tokens
            || self.could_admit()
        {
            return None;
        }
        let (count, context) = (self.decodes, self.context);
        let piece = model.decode_piece(count, context);
        // Not the step in which one is done, nor one beyond the piece.
        let mut most =
            (end - 1 - self.counter).min((piece.until.saturating_sub(context)) / count + 1);
        if most == 0 || context > piece.until {
            return None;
        }
        // All begin before a request comes: the last one's beginning is the sum of the others.
        let sum = |n: u64| {
            let (n, slope) = (u128::from(n), u128::from(piece.slope));
            let seen = n * u128::from(context) + u128::from(count) * (n * n.saturating_sub(1) / 2);
            n * u128::from(piece.base) + slope * seen
        };
        if sum(most - 1) >= u128::from(until) {
            let (mut low, mut high) = (1, most);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if sum(middle - 1) < u128::from(until) { low = middle } else { high = middle }
            }
            most = low;
        }
        let (steps, taken) = self.within_blocks(most, u64::from(asynchronous))?;
        self.free -= taken;
        for i in 0..steps {
            gap(piece.at(context + i * count), count);
        }
        self.context += steps * count;
        self.counter += steps;
        Some((steps, u64::try_from(sum(steps)).unwrap_or(u64::MAX)))
    }

    /// How many of `most` steps there are blocks for, and how many blocks they take: those of the steps from `skipped` on.
    fn within_blocks(&self, most: u64, skipped: u64) -> Option<(u64, u64)> {
        let block = self.limits.block_tokens;
        let first = self.counter + skipped;
        // Whole rounds of the residues take a block for every sequence.
        let rounds = (most / block).min(self.free / self.decodes);
        let (mut steps, mut taken) = (rounds * block, rounds * self.decodes);
        while steps < most && taken + self.crossings(first + steps) <= self.free {
            taken += self.crossings(first + steps);
            steps += 1;
        }
        (steps > 0).then_some((steps, taken))
    }
}
