//! What an engine was started with.

/// What an engine was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest running batch.
    pub max_num_seqs: usize,
    /// Token budget of a step.
    pub max_num_batched_tokens: u64,
    /// Longest accepted context.
    pub max_model_len: u64,
    /// Its cache.
    pub kv: Kv,
    /// Whether blocks that nobody uses any more are found again by their content.
    pub prefix_cache: bool,
    /// Whether a step is scheduled while the one before it runs: a request that comes in the meantime waits for the next, and one that is done
    /// keeps its place for as long.
    pub asynchronous: bool,
    /// Whether whoever is let in must find room for all of its tokens, not only for those of the step, as vLLM asks since 0.19.
    pub whole_prompts: bool,
    /// Several tokens guessed a step.
    pub speculation: Option<Speculation>,
}

impl Limits {
    /// One token a step, nothing found by its content, steps scheduled one after the other, room asked for step by step.
    pub fn new(max_num_seqs: usize, max_num_batched_tokens: u64, kv: Kv) -> Self {
        Self {
            max_num_seqs,
            max_num_batched_tokens,
            max_model_len: u64::MAX,
            kv,
            prefix_cache: false,
            asynchronous: false,
            whole_prompts: false,
            speculation: None,
        }
    }

    /// Tokens that a sequence which generates takes of a step's budget.
    pub(crate) fn decode_tokens(&self) -> u64 {
        1 + self.speculation.map_or(0, |s| s.drafts)
    }

    /// Tokens that a sequence gets from the decode step with this number, counted from the first. Which of its guesses hold is drawn for no
    /// sequence: all get the average, whole, in the same steps.
    pub(crate) fn yielded(&self, step: u64) -> u64 {
        match self.speculation {
            None => 1,
            Some(s) => {
                let until = |n: u64| u128::from(n) * u128::from(s.accept_thousandths) / 1000;
                let tokens = until(step + 1) - until(step);
                u64::try_from(tokens).unwrap_or(u64::MAX).clamp(1, 1 + s.drafts)
            }
        }
    }

    /// Blocks that a sequence needs at most on its way to so many tokens.
    pub(crate) fn need_most(&self, tokens: u64) -> u64 {
        self.kv.need_most(tokens, self.max_num_batched_tokens)
    }

    /// Whether a request can run at all, alone.
    pub(crate) fn fits(&self, prompt: u64, output: u64) -> Result<(), TooLong> {
        let tokens = prompt.saturating_add(output);
        // The last token is never read again, so it needs no room; guesses do.
        let most = tokens - 1 + self.decode_tokens() - 1;
        let need = self.need_most(most);
        if need > self.kv.blocks || tokens > self.max_model_len {
            return Err(TooLong { tokens, need, blocks: self.kv.blocks });
        }
        Ok(())
    }
}

/// A cache in blocks, as groups of layers share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kv {
    /// Blocks there are.
    pub blocks: u64,
    /// Tokens in a block; at least one.
    pub block_tokens: u64,
    /// Groups of layers that keep every token; at least one where prefixes are cached.
    pub full: u64,
    /// Groups that keep a window.
    pub sliding: u64,
    /// The window, in tokens; at least one where there are such groups.
    pub window: u64,
    /// Blocks of state that a sequence has, however long it is.
    pub state: u64,
}

impl Kv {
    /// All layers alike.
    pub fn new(blocks: u64, block_tokens: u64) -> Self {
        Self { blocks, block_tokens, full: 1, sliding: 0, window: 1, state: 0 }
    }

    /// The rooms of a sequence that a step takes from `computed` tokens to `end`.
    pub(crate) fn rooms(&self, computed: u64, end: u64) -> Rooms {
        let filled = end.div_ceil(self.block_tokens);
        Rooms { filled, skipped: self.skipped(computed).min(filled) }
    }

    /// Stretches that no token after so many sees through the window.
    fn skipped(&self, computed: u64) -> u64 {
        match self.sliding {
            0 => 0,
            _ => (computed + 1).saturating_sub(self.window) / self.block_tokens,
        }
    }

    /// Blocks of these rooms.
    pub(crate) fn held(&self, rooms: Rooms) -> u64 {
        if rooms.filled == 0 {
            return 0;
        }
        self.full * rooms.filled + self.windowed(rooms)
    }

    /// Of these, blocks of windows and states.
    pub(crate) fn windowed(&self, rooms: Rooms) -> u64 {
        self.sliding * (rooms.filled - rooms.skipped) + self.state
    }

    /// Blocks that a sequence needs at most on its way to so many tokens: a window holds a step's tokens too, and need not begin at a block.
    fn need_most(&self, tokens: u64, budget: u64) -> u64 {
        let filled = tokens.div_ceil(self.block_tokens);
        let seen = (self.window - 1).saturating_add(budget).min(tokens);
        let kept = (seen.div_ceil(self.block_tokens) + 1).min(filled);
        (self.full.saturating_mul(filled))
            .saturating_add(self.sliding.saturating_mul(kept))
            .saturating_add(self.state)
    }
}

/// What a sequence holds, in stretches of a block's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rooms {
    /// Stretches it has tokens or room for.
    pub(crate) filled: u64,
    /// Of these, the first ones that groups with a window have given back.
    pub(crate) skipped: u64,
}

/// Several tokens guessed a step, and how many of them hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Tokens guessed a step.
    pub drafts: u64,
    /// Tokens that a step yields on average, the certain one included, in thousandths.
    pub accept_thousandths: u64,
}

/// A request that can never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a context of {tokens} tokens is longer than accepted, or than the cache: it needs {need} blocks, there are {blocks}"
)]
pub struct TooLong {
    /// Its context.
    pub tokens: u64,
    /// Blocks it needs.
    pub need: u64,
    /// Blocks there are.
    pub blocks: u64,
}
