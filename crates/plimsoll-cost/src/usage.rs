//! What was used, counted so that money can be split by it.

use std::collections::BTreeMap;

use plimsoll_units::UsdPerToken;

/// A column that costs are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Who pays.
    Tenant,
    /// What is sold.
    Product,
    /// What it was asked for.
    Feature,
    /// The service tier.
    Tier,
    /// The model that was asked for.
    Model,
    /// The route or deployment that took it.
    Route,
    /// The prompt template and its version.
    PromptVersion,
    /// The data set it was taken from.
    Dataset,
    /// The tools it used.
    ToolPath,
}

impl Dimension {
    /// All of them, in the order that tables have.
    pub const ALL: [Self; 9] = [
        Self::Tenant,
        Self::Product,
        Self::Feature,
        Self::Tier,
        Self::Model,
        Self::Route,
        Self::PromptVersion,
        Self::Dataset,
        Self::ToolPath,
    ];

    /// As the ledger calls its column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Product => "product",
            Self::Feature => "feature",
            Self::Tier => "tier",
            Self::Model => "model",
            Self::Route => "route",
            Self::PromptVersion => "prompt_version",
            Self::Dataset => "dataset",
            Self::ToolPath => "tool_path",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Answered.
    Ok,
    /// Refused for a limit of rate (429).
    Limited,
    /// Failed otherwise.
    Failed,
    /// Given up by the client.
    Cancelled,
    /// The log does not say.
    Unknown,
}

/// What serves requests, and how that is paid.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// A pool or a provider, as the scenario calls it; or a model of the log that only the catalogue knows.
    pub name: String,
    /// How it is paid.
    pub pricing: Pricing,
}

/// How a place is paid.
#[derive(Clone, Debug, PartialEq)]
pub enum Pricing {
    /// Devices are rented or owned: an hour costs the same whoever uses it.
    Devices(Work),
    /// Tokens are paid for.
    Tokens(TokenTable),
    /// Nobody knows a price. What the log itself says a row cost is all there is.
    Unpriced,
}

/// What a request takes of a device, as a sum of what it asked for; in seconds of one replica with a usual batch (docs/model.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// For each fresh prompt token.
    pub fresh_s: f64,
    /// For each pair of a fresh prompt token and a token before it.
    pub fresh_context_s: f64,
    /// For each output token: its share of a step, whatever its context.
    pub output_s: f64,
    /// For each pair of an output token and a token of its context: its share of what reading KV takes.
    pub output_context_s: f64,
    /// What a second of one replica costs, in dollars; only for weighing tasks against each other.
    pub usd_per_s: f64,
}

/// What the tokens of a hosted model cost.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenTable {
    /// A prompt token that was not cached.
    pub input: UsdPerToken,
    /// One that was read from a cache; as `input` where none is published.
    pub cached_input: UsdPerToken,
    /// One that was written to a cache; as `input` where none is published.
    pub cache_write: UsdPerToken,
    /// A generated token.
    pub output: UsdPerToken,
    /// Prices of the whole request where its prompt has more tokens than this.
    pub above: Vec<(u64, TokenTable)>,
    /// The same in a batch queue, for rows whose tier is `batch`.
    pub batch: Option<Box<TokenTable>>,
}

/// Hours that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The beginning of the first hour, in seconds from 1970; none where rows have no date.
    pub start_s: Option<i64>,
    /// How many.
    pub hours: u32,
}

/// What a sum is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The value of the dimension, as a place in [`Table::values`].
    pub value: u32,
    /// Who served it, as a place in [`Usage::places`]; none where no place matches.
    pub place: Option<u32>,
    /// The hour, counted from the start of the period.
    pub hour: u32,
    /// How attempts ended.
    pub end: End,
    /// Whether they were not the first attempts.
    pub retry: bool,
}

/// What attempts used, weighted where a log is a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Attempts.
    pub requests: f64,
    /// Prompt tokens that were computed.
    pub fresh: f64,
    /// Pairs of a fresh token and a token before it.
    pub fresh_context: f64,
    /// Prompt tokens that were read from a cache.
    pub cached: f64,
    /// Output tokens.
    pub output: f64,
    /// Pairs of an output token and a token of its context.
    pub output_context: f64,
    /// Seconds of prefill that were measured, and of which attempts.
    pub prefill_s: f64,
    /// Seconds of decode that were measured.
    pub decode_s: f64,
    /// Attempts with both times.
    pub timed: f64,
    /// What tokens cost by the table of the place, in dollars.
    pub token_usd: f64,
    /// Attempts that the table could not price: their tokens are not known.
    pub token_unpriced: f64,
    /// What the log itself says attempts cost, in dollars.
    pub logged_usd: f64,
    /// Attempts of which it says it.
    pub logged: f64,
    /// Attempts whose prompt or output is not known.
    pub blank: f64,
    /// Attempts whose cached tokens are not known: all of their prompt counts as fresh.
    pub cached_unknown: f64,
}

impl Sums {
    /// Adds what others used.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.fresh += other.fresh;
        self.fresh_context += other.fresh_context;
        self.cached += other.cached;
        self.output += other.output;
        self.output_context += other.output_context;
        self.prefill_s += other.prefill_s;
        self.decode_s += other.decode_s;
        self.timed += other.timed;
        self.token_usd += other.token_usd;
        self.token_unpriced += other.token_unpriced;
        self.logged_usd += other.logged_usd;
        self.logged += other.logged;
        self.blank += other.blank;
        self.cached_unknown += other.cached_unknown;
    }

    /// Seconds of a replica that this takes.
    pub fn work_s(&self, work: &Work) -> f64 {
        self.prefill_work_s(work) + self.decode_work_s(work)
    }

    /// Of these, reading prompts.
    pub fn prefill_work_s(&self, work: &Work) -> f64 {
        self.fresh * work.fresh_s + self.fresh_context * work.fresh_context_s
    }

    /// Of these, writing answers.
    pub fn decode_work_s(&self, work: &Work) -> f64 {
        self.output * work.output_s + self.output_context * work.output_context_s
    }
}

/// Usage by the values of one dimension.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Values; none for rows that have none. What was folded together for want of room is `other`.
    pub values: Vec<Option<String>>,
    /// Sums.
    pub cells: BTreeMap<Key, Sums>,
    /// How the tasks of each value went, in the order of `values`; a task counts for the value of its first row.
    pub tasks: Vec<Tasks>,
}

/// How tasks went, and what they cost; weighed by [`Work::usd_per_s`] and token prices, idle time left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tasks {
    /// Tasks; a request that names none is one by itself.
    pub tasks: u64,
    /// Attempts of them.
    pub attempts: u64,
    /// Tasks that succeeded.
    pub succeeded: u64,
    /// Tasks that are known to have failed.
    pub failed: u64,
    /// What they cost, summed over tasks.
    pub usd: f64,
    /// Its squares.
    pub usd_squared: f64,
    /// What those that succeeded cost.
    pub usd_succeeded: f64,
}

impl Tasks {
    /// Tasks whose outcome nobody has said.
    pub const fn unresolved(&self) -> u64 {
        self.tasks.saturating_sub(self.succeeded).saturating_sub(self.failed)
    }
}

/// What was used in a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Hours that are counted.
    pub period: Period,
    /// Who serves.
    pub places: Vec<Place>,
    /// The same usage by each dimension that rows have.
    pub by: BTreeMap<Dimension, Table>,
    /// The same not told apart: one value, which is none.
    pub all: Table,
    /// How tasks went.
    pub tasks: Tasks,
    /// Tasks that somebody judged and no row names.
    pub outcomes_unknown: u64,
    /// Rows that are served by a cache of whole answers: they cost nothing.
    pub response_cached: u64,
    /// Rows without a date, counted in the first hour.
    pub undated: u64,
    /// What the reader should know.
    pub notes: Vec<String>,
}
