//! What is asked of an engine, and what came of it.

use std::sync::Arc;

/// A request to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Prompt tokens, cached ones included; at least one.
    pub prompt: u64,
    /// How many tokens it will generate, which no engine knows before.
    pub output: Output,
    /// Prompt tokens that are taken to be cached, where its content is not known.
    pub cached: u64,
    /// The most tokens its client lets it generate: what an engine may know.
    pub limit: Option<u64>,
    /// Lower is served first; equals in the order they come.
    pub rank: u32,
    /// What it is counted with.
    pub class: u16,
    /// What its prompt consists of, as far as others share it.
    pub content: Option<Arc<Content>>,
}

impl Wanted {
    /// A prompt that shares nothing with another.
    pub fn new(prompt: u64, output: u64) -> Self {
        assert!(prompt > 0 && output > 0, "a request reads and writes a token");
        Self {
            prompt,
            output: Output(output),
            cached: 0,
            limit: None,
            rank: 0,
            class: 0,
            content: None,
        }
    }
}

impl Wanted {
    /// Prompt tokens that are cached because somebody said so.
    pub(crate) fn supplied(&self) -> u64 {
        if self.content.is_none() { self.cached } else { 0 }
    }
}

/// The true length of an output. Only the engine's clockwork can read it: what decides who runs is handed a [`Seen`], which has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output(u64);

impl Output {
    /// A single token: what whoever only reads prompts gives.
    pub(crate) fn one() -> Self {
        Self(1)
    }

    pub(crate) fn tokens(self) -> u64 {
        self.0
    }
}

/// What a prompt consists of, from its beginning: two prompts share what they have in common from their first token on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Parts that others may have, too; whatever of the prompt comes after them is its own.
    pub shared: Vec<Segment>,
    /// What its own rest and its output are called, where a later prompt contains them.
    pub own: Option<u64>,
}

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The same for the same text. Below 2^63: the rest is for those without a name.
    pub id: u64,
    /// Its length. The same text is always as long.
    pub tokens: u64,
}

/// The name of what nobody else has.
pub(crate) fn nameless(serial: u64) -> u64 {
    (1 << 63) | serial
}

/// Tokens of one step, small enough for an outcome.
pub(crate) fn tokens_u32(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// What a policy sees of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How many came before it.
    pub serial: u64,
    /// Lower is served first.
    pub rank: u32,
    /// Its prompt.
    pub prompt: u64,
    /// The most tokens it may generate.
    pub limit: Option<u64>,
    /// Tokens generated so far.
    pub generated: u64,
    /// Tokens whose keys and values are there.
    pub computed: u64,
    /// Blocks it holds.
    pub blocks: u64,
}

impl Seen {
    /// Whether it has all but its newest token computed.
    pub fn generates(&self) -> bool {
        self.generated > 0 && self.prompt + self.generated - self.computed == 1
    }
}

/// What came of a request; instants in whole picoseconds from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How many came before it.
    pub serial: u64,
    /// What it is counted with.
    pub class: u16,
    /// How it ended.
    pub end: End,
    /// When it came.
    pub arrived: u64,
    /// When the first step that had work of it began.
    pub scheduled: Option<u64>,
    /// When its first token appeared.
    pub first: Option<u64>,
    /// When its last token appeared, or it was let go.
    pub done: u64,
    /// Prompt tokens.
    pub prompt: u64,
    /// Tokens that it got.
    pub output: u64,
    /// Prompt tokens that were not computed when it was first let in.
    pub cached: u64,
    /// Tokens that were read for it, those that were read again because it was thrown out included: with its output, what it cost.
    pub read: u32,
    /// How often it was thrown out to make room; 255 where that was more often.
    pub preemptions: u8,
    /// The longest time between two of its tokens.
    pub largest_gap: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It got all of its tokens.
    Completed,
    /// The queue was full.
    Rejected,
    /// It can never run: its context is longer than the cache.
    TooLong,
    /// Its client went away.
    TimedOut,
}
