//! What was measured of a serving engine, whatever tool wrote it down.
//!
//! A number that a file does not hold is `None`, never zero. Times are seconds, lengths are tokens of one request.

use serde::Serialize;

/// Where a point or a run was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Origin {
    /// The file as the user named it.
    pub file: String,
    /// The line, benchmark or stage within it, counted from one.
    pub row: usize,
    /// The tool that wrote it, such as `vllm bench serve`.
    pub tool: &'static str,
}

/// How requests were offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// A closed loop: so many clients, each sends its next request when the last is answered.
    Concurrency(f64),
    /// An open loop: so many requests a second.
    Rate(f64),
    /// All requests at once: the engine's largest batch decides.
    AllAtOnce,
    /// One batch of this size from beginning to end, nothing joins.
    StaticBatch(f64),
}

/// Tokens of a request, over all requests of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Mean tokens.
    pub mean: f64,
    /// Whether they were counted, or only asked for.
    pub counted: bool,
}

/// A latency's statistics, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

impl Latency {
    /// The mean, or the median where there is no mean.
    pub fn centre(&self) -> Option<f64> {
        self.mean.or(self.p50)
    }
}

/// One point of a benchmark: a load and what was seen under it.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchPoint {
    /// Where it was read.
    pub origin: Origin,
    /// How requests were offered.
    pub load: Load,
    /// Prompt tokens of a request.
    pub prompt: Option<Length>,
    /// Output tokens of a request.
    pub output: Option<Length>,
    /// Requests that were answered.
    pub completed: Option<u64>,
    /// Requests that were not.
    pub failed: Option<u64>,
    /// How long the load was offered, in seconds.
    pub duration_s: Option<f64>,
    /// Time to the first token.
    pub ttft: Latency,
    /// A request's mean gap between tokens.
    pub tpot: Latency,
    /// Gaps between tokens.
    pub itl: Latency,
    /// From sending to the last token.
    pub e2e: Latency,
    /// Generated tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Answered requests per second.
    pub requests_per_s: Option<f64>,
    /// Requests in flight, measured.
    pub in_flight_mean: Option<f64>,
    /// Share of prompt tokens that came from a prefix cache, where the file says so.
    pub cached_share: Option<f64>,
    /// Tokens accepted per step, where the file speaks of speculative decoding.
    pub accepted_per_step: Option<f64>,
    /// What the file says of the setup, such as `model`, `gpu`, `backend`, `replicas`: hints, not inputs.
    pub says: Vec<(String, String)>,
}

/// One run of an engine, step by step (`plimsoll-engine-run/1`).
#[derive(Clone, Debug, PartialEq)]
pub struct EngineRun {
    /// Where it was read.
    pub origin: Origin,
    /// Its name, such as `closed-512-128-c16`.
    pub run: String,
    /// What the engine was started with.
    pub setup: RunSetup,
    /// Whether clients waited for answers: their number, where they did.
    pub clients: Option<u64>,
    /// Seconds to the first token, and between tokens on average, within which a request is good; where the run is judged by that.
    pub promise: Option<(f64, f64)>,
    /// Gaps between tokens of all requests at the 50th, 95th and 99th percentile, in seconds, where the log gives these instead of each.
    pub gaps: Option<[f64; 3]>,
    /// The requests, in the order they were sent.
    pub requests: Vec<RunRequest>,
    /// The steps as a client saw them.
    pub steps: Vec<RunStep>,
}

/// What an engine was started with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSetup {
    /// The model's name.
    pub model: String,
    /// The accelerator's name.
    pub accelerator: String,
    /// The engine's name.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// How weights are stored, such as `bf16`.
    pub weights: String,
    /// How cached numbers are stored.
    pub kv_dtype: String,
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// Largest running batch.
    pub max_num_seqs: u64,
    /// Token budget of a step.
    pub max_num_batched_tokens: u64,
    /// Context tokens that fit.
    pub kv_tokens: u64,
    /// Tokens in a block.
    pub block_size: u64,
    /// Whether prefixes were cached.
    pub prefix_caching: bool,
}

/// One request of a run. Times in seconds from the run's beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// When it was sent.
    pub at: f64,
    /// Prompt tokens, cached ones included.
    pub prompt: u64,
    /// Generated tokens.
    pub output: u64,
    /// Prompt tokens that the prefix cache held.
    pub cached: u64,
    /// What its prompt begins with, where others begin alike.
    pub prefix: Option<SharedPrefix>,
    /// What kind of request it is, where a run mixes several.
    pub kind: Option<String>,
    /// Time to its first token.
    pub ttft: f64,
    /// Time to its last token.
    pub e2e: f64,
    /// Gaps between its tokens, in seconds.
    pub itl: Vec<f64>,
}

/// What prompts have in common from their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPrefix {
    /// The same for those that begin alike.
    pub group: u64,
    /// How long it is.
    pub tokens: u64,
}

/// One engine output as the client saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunStep {
    /// When, in seconds from the run's beginning.
    pub at: f64,
    /// Sequences running.
    pub running: u64,
    /// Requests waiting.
    pub waiting: u64,
    /// Share of KV blocks in use.
    pub kv: f64,
    /// Tokens generated.
    pub generated: u64,
    /// Prompt tokens of the prompts whose prefill finished in it.
    pub prompt: u64,
    /// Preemptions.
    pub preempted: u64,
}

/// Something about a point that cannot be true or should be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flag {
    /// A stable word for it, such as `below-the-memory-floor`.
    pub code: &'static str,
    /// Whether the point is left out because of it.
    pub rejects: bool,
    /// Where.
    pub origin: Origin,
    /// Which field it speaks of.
    pub field: String,
    /// What is wrong, with the numbers, and what to do.
    pub message: String,
}
