//! What a simulation says.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::demand::Span;

/// Whether the fleet keeps up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Hardly anybody waits.
    Stable,
    /// A line stands, and does not grow.
    Backlogged,
    /// The line grows, or clients go away unserved.
    Overloaded,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// Makes it repeatable.
    pub seed: u64,
    /// The worst of the pools; of a pool, that of the middle run, of two the worse. None where every run was stopped.
    pub verdict: Option<Verdict>,
    /// Whether every run came to its end.
    pub complete: bool,
    /// How long requests came that count.
    pub seconds: f64,
    /// How long they came before.
    pub warm_up_s: f64,
    /// Independent runs, all counted together below.
    pub runs: u32,
    /// By pool and class.
    pub classes: Vec<ClassResult>,
    /// Each pool.
    pub pools: Vec<PoolResult>,
    /// What keeps requests waiting longest of all pools.
    pub binding: Binding,
    /// Steps of all engines.
    pub steps: u64,
    /// Those of them that were leapt over.
    pub steps_leapt: u64,
    /// How sure the most asked-for numbers are, by name.
    pub intervals: BTreeMap<String, Span>,
    /// Windows of the first run, where asked for.
    pub timeline: Option<Vec<Window>>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A class at a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassResult {
    /// Its name.
    pub name: String,
    /// The pool.
    pub pool: String,
    /// Requests that came.
    pub offered: u64,
    /// Those that were let into the queue.
    pub admitted: u64,
    /// Those that got all of their tokens.
    pub completed: u64,
    /// Those that met every threshold of their own.
    pub good: u64,
    /// Those that found the queue full, or can never run.
    pub rejected: u64,
    /// Those of them whose context is longer than the cache.
    pub too_long: u64,
    /// Those whose clients went away.
    pub timed_out: u64,
    /// Those that a run left unfinished when it was stopped.
    pub unfinished: u64,
    /// Good ones among those that came; none where no threshold says what is good.
    pub attainment: Option<f64>,
    /// Prompt tokens of those that ran, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that were cached.
    pub cached_tokens: u64,
    /// Generated tokens.
    pub output_tokens: u64,
    /// Time to the first token.
    pub ttft_ms: Option<Distribution>,
    /// Gaps between tokens handed out together or alone, from the end of the warm-up on, also those of requests that came before it.
    pub itl_ms: Option<Distribution>,
    /// A request's mean gap.
    pub tpot_ms: Option<Distribution>,
    /// Time to the last token.
    pub e2e_ms: Option<Distribution>,
    /// Time until the first step that has work of it.
    pub queue_ms: Option<Distribution>,
}

/// A distribution, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Its mean.
    pub mean: f64,
    /// Its median.
    pub p50: f64,
    /// Nine in ten are below.
    pub p90: f64,
    /// 95 in 100.
    pub p95: f64,
    /// 99 in 100.
    pub p99: f64,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolResult {
    /// Its name.
    pub name: String,
    /// Replicas of today; one is simulated.
    pub replicas: u64,
    /// Whether it keeps up, in the middle run of those that were not stopped.
    pub verdict: Option<Verdict>,
    /// Runs by verdict: stable, backlogged, overloaded.
    pub verdicts: [u32; 3],
    /// Shares of the time and of what there is.
    pub utilisation: Utilisation,
    /// KV blocks that there are.
    pub kv_blocks: u64,
    /// Tokens in one.
    pub kv_block_tokens: u64,
    /// Requests thrown out to make room, each time counted.
    pub preemptions: u64,
    /// What the prefix cache saved.
    pub cache_hits: CacheHits,
    /// Prompt tokens computed, reading again included.
    pub prefill_tokens: u64,
    /// Tokens generated.
    pub output_tokens: u64,
    /// Busy share of the least and the most busy replica.
    pub replica_spread: Ends,
    /// What keeps its requests waiting.
    pub binding: Binding,
}

/// The least and the most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ends {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// Shares of the time and of what there is, while requests came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Utilisation {
    /// Of the time, steps ran.
    pub busy: f64,
    /// Of the KV blocks, on average.
    pub kv_mean: f64,
    /// Of the KV blocks, at most.
    pub kv_max: f64,
    /// Sequences that ran, on average.
    pub sequences_mean: f64,
    /// At most.
    pub sequences_max: u64,
    /// Requests that waited, on average.
    pub waiting_mean: f64,
    /// At most.
    pub waiting_max: u64,
    /// Of a device's memory bandwidth.
    pub bandwidth: f64,
    /// Of a device's arithmetic.
    pub compute: f64,
    /// Of the servers in front of the engine.
    pub path: f64,
}

/// What a prefix cache saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CacheHits {
    /// Prompt tokens of requests that ran.
    pub prompt_tokens: u64,
    /// Those of them that were cached.
    pub cached_tokens: u64,
    /// Their share.
    pub share: Option<f64>,
}

/// What keeps requests waiting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Binding {
    /// `kv`, `sequences`, `token_budget`, or none where nobody waits.
    pub resource: Option<&'static str>,
    /// The pool.
    pub pool: Option<String>,
    /// Of the time, it kept somebody waiting.
    pub share_of_time: f64,
    /// When it first did, in seconds from the end of the warm-up, in the first run that shows it.
    pub first_at_s: Option<f64>,
    /// Of the time, each kept somebody waiting.
    pub shares: BTreeMap<&'static str, f64>,
}

/// A window of the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// The pool.
    pub pool: String,
    /// When it begins, in seconds from the end of the warm-up.
    pub from_s: f64,
    /// Shares and averages in it.
    #[serde(flatten)]
    pub utilisation: Utilisation,
    /// Prompt tokens computed a second.
    pub prefill_tokens_per_s: f64,
    /// Tokens generated a second.
    pub output_tokens_per_s: f64,
    /// Requests thrown out.
    pub preemptions: u64,
    /// What kept somebody waiting longest in it.
    pub held: Option<&'static str>,
}
