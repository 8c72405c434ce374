//! One engine, one step at a time, as vLLM's V1 scheduler decides it.
//!
//! It has no clock: whoever drives it says when a request comes and how long a step took. A simulation asks the step-time model; a calibration
//! hands in the times a real engine was seen to take, and learns what each step carried. It is written to be read, not to be fast: the engine
//! that leaps over stretches of steps must give the same events.

use std::collections::VecDeque;

use plimsoll_perf::StepLoad;

/// What an engine was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest running batch.
    pub max_num_seqs: usize,
    /// Token budget of a step.
    pub max_num_batched_tokens: u64,
    /// KV blocks.
    pub blocks: u64,
    /// Tokens in a block; at least one.
    pub block_tokens: u64,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Whoever sent it will know it by this.
    pub id: usize,
    /// Prompt tokens, cached ones included; at least one.
    pub prompt: u64,
    /// Tokens to generate, at least one.
    pub output: u64,
    /// Prompt tokens that need not be computed; at least one always is.
    pub cached: u64,
}

/// A request in the engine.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    ask: Ask,
    /// Tokens whose keys and values are there.
    computed: u64,
    /// Tokens generated so far.
    generated: u64,
    /// Blocks it holds.
    blocks: u64,
}

impl Sequence {
    /// Tokens it has: its prompt, and what it has generated. After a preemption all of them are a prompt again.
    fn tokens(&self) -> u64 {
        self.ask.prompt + self.generated
    }

    fn is_done(&self) -> bool {
        self.generated >= self.ask.output
    }
}

/// What a step carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its work.
    pub load: StepLoad,
    /// Sequences thrown out to make room, in order.
    pub preempted: Vec<usize>,
    /// Whose tokens are computed, and how many.
    scheduled: Vec<(usize, u64)>,
}

/// What a step gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Requests that got a token.
    pub tokens: Vec<usize>,
    /// Requests whose first token it was.
    pub first: Vec<usize>,
    /// Requests that are done.
    pub done: Vec<usize>,
    /// Prompt tokens of those whose prompt was finished.
    pub prompt: u64,
}

/// A request that can never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a context of {tokens} tokens needs {need} blocks; there are {blocks}")]
pub struct TooLong {
    /// Its context.
    pub tokens: u64,
    /// Blocks it needs.
    pub need: u64,
    /// Blocks there are.
    pub blocks: u64,
}

/// The engine.
#[derive(Clone, Debug)]
pub struct PlainEngine {
    limits: Limits,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    free: u64,
}

impl PlainEngine {
    /// An empty one.
    pub fn new(limits: Limits) -> Self {
        Self { limits, waiting: VecDeque::new(), running: Vec::new(), free: limits.blocks }
    }

    /// A request joins the queue.
    pub fn arrive(&mut self, ask: Ask) -> Result<(), TooLong> {
        assert!(ask.prompt > 0 && ask.output > 0, "a request reads and writes a token: {ask:?}");
        let tokens = ask.prompt + ask.output;
        // The last token is never read again, so it needs no room.
        let need = (tokens - 1).div_ceil(self.limits.block_tokens);
        if need > self.limits.blocks {
            return Err(TooLong { tokens, need, blocks: self.limits.blocks });
        }
        self.waiting.push_back(Sequence { ask, computed: 0, generated: 0, blocks: 0 });
        Ok(())
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sequences that run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Blocks in use.
    pub fn blocks_used(&self) -> u64 {
        self.limits.blocks - self.free
    }

    /// Decides what the next step carries; none where there is nothing to do.
    pub fn schedule(&mut self) -> Option<Step> {
        let mut budget = self.limits.max_num_batched_tokens;
        let mut step = Step::default();
        // Those that run come first, in the order they started.
        let mut at = 0;
        while at < self.running.len() && budget > 0 {
            if self.running[at].is_done() {
                // It waits to be released.
                at += 1;
                continue;
            }
            let wanted = (self.running[at].tokens() - self.running[at].computed).min(budget);
            if !self.make_room(at, wanted, &mut step) {
                // It was thrown out itself; nobody runs behind it any more.
                break;
            }
            self.take(at, wanted, &mut step);
            budget -= wanted;
            at += 1;
        }
        // Those that wait come next, in the order they came, unless somebody was just thrown out.
        while step.preempted.is_empty()
            && budget > 0
            && self.running.len() < self.limits.max_num_seqs
        {
            let Some(mut next) = self.waiting.front().copied() else { break };
            // A whole prompt may be cached, yet its last token is computed to get the next.
            next.computed = next.ask.cached.min(next.tokens() - 1);
            let wanted = (next.tokens() - next.computed).min(budget);
            let need = (next.computed + wanted).div_ceil(self.limits.block_tokens);
            if need > self.free {
                break;
            }
            self.waiting.pop_front();
            self.free -= need;
            next.blocks = need;
            self.running.push(next);
            self.take(self.running.len() - 1, wanted, &mut step);
            budget -= wanted;
        }
        (!step.scheduled.is_empty()).then_some(step)
    }

    /// Sees to the blocks of `more` tokens of a running sequence, throwing out the youngest until there are enough. False where it had to go itself.
    fn make_room(&mut self, at: usize, more: u64, step: &mut Step) -> bool {
        loop {
            let own = &self.running[at];
            let need = (own.computed + more).div_ceil(self.limits.block_tokens) - own.blocks;
            if need <= self.free {
                self.running[at].blocks += need;
                self.free -= need;
                return true;
            }
            // One that is done waits for its release, and is not thrown out: it is never the one that asks.
            let youngest = self.running.iter().rposition(|s| !s.is_done()).unwrap_or(at);
            let mut victim = self.running.remove(youngest);
            self.free += victim.blocks;
            (victim.blocks, victim.computed) = (0, 0);
            step.preempted.push(victim.ask.id);
            // It may already have been given tokens of this step: not before those older than it, so no.
            self.waiting.push_front(victim);
            if youngest == at {
                return false;
            }
        }
    }

    fn take(&mut self, at: usize, tokens: u64, step: &mut Step) {
        let own = &self.running[at];
        // A sequence that has all but its newest token generates; any other reads a prompt, or its own past again.
        if own.generated > 0 && own.tokens() - own.computed == 1 {
            step.load.add_decode(own.computed + 1);
        } else {
            step.load.add_chunk(tokens, own.computed);
        }
        step.scheduled.push((own.ask.id, tokens));
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
        let mut scheduled = step.scheduled.iter();
        let mut next = scheduled.next();
        for own in &mut self.running {
            // Scheduled ones are in the order of the running ones.
            let Some((id, tokens)) = next else { break };
            if own.ask.id != *id {
                continue;
            }
            next = scheduled.next();
            own.computed += tokens;
            if own.computed < own.tokens() {
                continue;
            }
            if own.generated == 0 {
                given.first.push(own.ask.id);
                given.prompt += own.ask.prompt;
            }
            own.generated += 1;
            given.tokens.push(own.ask.id);
            if own.is_done() {
                given.done.push(own.ask.id);
            }
        }
        given
    }

    /// The tokens of a step have been handed out: those that are done leave.
    pub fn release(&mut self) {
        let free = &mut self.free;
        self.running.retain(|own| {
            if own.is_done() {
                *free += own.blocks;
            }
            !own.is_done()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(id: usize, prompt: u64, output: u64) -> Ask {
        Ask { id, prompt, output, cached: 0 }
    }

    /// Runs until nothing is left; one line a step: prompt tokens, decodes, context, tokens given.
    fn run(engine: &mut PlainEngine) -> Vec<(u64, u64, u64, Vec<usize>)> {
        let mut lines = Vec::new();
        while let Some(step) = engine.schedule() {
            let given = engine.finish(&step);
            lines.push((step.load.prefill, step.load.decodes, step.load.context, given.tokens));
            assert!(lines.len() < 1000, "it does not end");
        }
        lines
    }

    /// Worked by hand: a budget of 10 tokens, prompts of 4 and 12, two and three tokens out.
    ///
    /// Step 1 reads 4 + 6 tokens and gives the first its first; step 2 decodes it (5 seen) and reads the other 6; step 3 and 4 decode the second.
    #[test]
    fn a_day_worked_by_hand() {
        let limits =
            Limits { max_num_seqs: 4, max_num_batched_tokens: 10, blocks: 100, block_tokens: 4 };
        let mut engine = PlainEngine::new(limits);
        engine.arrive(ask(1, 4, 2)).unwrap();
        engine.arrive(ask(2, 12, 3)).unwrap();
        let expected = vec![
            (10, 0, 0, vec![1]),
            (6, 1, 5, vec![1, 2]),
            (0, 1, 13, vec![2]),
            (0, 1, 14, vec![2]),
        ];
        assert_eq!(run(&mut engine), expected);
        assert_eq!((engine.blocks_used(), engine.running(), engine.waiting()), (0, 0, 0));
    }

    /// Five blocks of two: both prompts of four fit, then the second is thrown out when the first grows, and reads all of its past again.
    #[test]
    fn the_youngest_makes_room() {
        let limits =
            Limits { max_num_seqs: 4, max_num_batched_tokens: 64, blocks: 5, block_tokens: 2 };
        let mut engine = PlainEngine::new(limits);
        engine.arrive(ask(1, 4, 4)).unwrap();
        engine.arrive(ask(2, 4, 4)).unwrap();
        let lines = run(&mut engine);
        let expected = vec![
            (8, 0, 0, vec![1, 2]),
            // Six blocks are wanted; the second goes.
            (0, 1, 5, vec![1]),
            (0, 1, 6, vec![1]),
            (0, 1, 7, vec![1]),
            // Prompt and one token: five.
            (5, 0, 0, vec![2]),
            (0, 1, 6, vec![2]),
            (0, 1, 7, vec![2]),
        ];
        assert_eq!(lines, expected);
        assert_eq!(engine.blocks_used(), 0);
    }

    #[test]
    fn what_can_never_run_is_refused() {
        let limits =
            Limits { max_num_seqs: 4, max_num_batched_tokens: 64, blocks: 5, block_tokens: 2 };
        let error = PlainEngine::new(limits).arrive(ask(1, 10, 2)).unwrap_err();
        assert_eq!(error.to_string(), "a context of 12 tokens needs 6 blocks; there are 5");
    }
}
