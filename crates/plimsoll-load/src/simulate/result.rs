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
    /// The worst of the pools, and of providers and tools, where tasks are turned away or wait longer and longer; of a pool, that of the middle run, of two the worse. None where every run was stopped.
    pub verdict: Option<Verdict>,
    /// Whether every run came to its end.
    pub complete: bool,
    /// How long requests came that count.
    pub seconds: f64,
    /// How long they came before.
    pub warm_up_s: f64,
    /// Independent runs, all counted together below.
    pub runs: u32,
    /// Each class.
    pub classes: Vec<ClassResult>,
    /// Each pool.
    pub pools: Vec<PoolResult>,
    /// Each region.
    pub regions: Vec<RegionResult>,
    /// Each provider.
    pub providers: Vec<ProviderResult>,
    /// Each tool.
    pub tools: Vec<ToolResult>,
    /// Each pool whose replicas follow the demand.
    pub autoscaling: Vec<ScalingResult>,
    /// What keeps tasks waiting, or turns them away, most.
    pub binding: Binding,
    /// Steps of all engines.
    pub steps: u64,
    /// Those of them that were leapt over.
    pub steps_leapt: u64,
    /// How sure the most asked-for numbers are, by name.
    pub intervals: BTreeMap<String, Span>,
    /// Windows of the first run, where asked for.
    pub timeline: Option<Vec<Window>>,
    /// What came of the tasks that began in each, over all runs, where asked for.
    pub goodput_timeline: Option<Vec<GoodputWindow>>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A class, counted by task; the turns of a conversation are counted one by one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassResult {
    /// Its name.
    pub name: String,
    /// The pool or provider that most of it goes to.
    pub pool: String,
    /// Tasks that came.
    pub offered: u64,
    /// Those that were not turned away.
    pub admitted: u64,
    /// Those that were answered completely.
    pub completed: u64,
    /// Those that met every threshold of their own, from their first attempt on.
    pub good: u64,
    /// Those that were turned away every time they were tried, or can never be served.
    pub rejected: u64,
    /// Those of them whose context is longer than a cache, or a limit.
    pub too_long: u64,
    /// Those that took too long: the last attempt, or altogether.
    pub timed_out: u64,
    /// Those that were lost with what served them.
    pub lost: u64,
    /// Those whose users went away.
    pub left: u64,
    /// Those of them who had by then not been given what they were promised.
    pub left_overdue: u64,
    /// Those that a tool failed.
    pub tool_failed: u64,
    /// Those that a run left unfinished when it was stopped.
    pub unfinished: u64,
    /// Good ones among those that came and whose users did not leave before anything was due; none where no threshold says what is good.
    pub attainment: Option<f64>,
    /// Tasks completed a second while it counted, whenever they came.
    pub completed_per_s: f64,
    /// Good ones a second.
    pub goodput_per_s: f64,
    /// Answered tasks that missed a threshold of their own, by which.
    pub missed: Missed,
    /// Calls of models that finished tasks made.
    pub calls: u64,
    /// Attempts at these beyond the first: clients came again, or somebody else took over.
    pub extra_attempts: u64,
    /// All attempts that were sent, and how they ended.
    pub attempts: AttemptCounts,
    /// Prompt tokens that were read for attempts that came to nothing.
    pub wasted_prefill_tokens: u64,
    /// Tokens that were generated for them.
    pub wasted_output_tokens: u64,
    /// Prompt tokens of calls that were answered, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that were cached.
    pub cached_tokens: u64,
    /// Generated tokens.
    pub output_tokens: u64,
    /// Time to the first token.
    pub ttft_ms: Option<Distribution>,
    /// Gaps between tokens handed out together or alone, from the end of the warm-up on, also those of requests that came before it.
    pub itl_ms: Option<Distribution>,
    /// A task's mean gap.
    pub tpot_ms: Option<Distribution>,
    /// Time to the last token.
    pub e2e_ms: Option<Distribution>,
    /// Time in the lines of engines.
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

/// Answered tasks that missed a threshold, by which; one may miss several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// The first token.
    pub ttft: u64,
    /// The mean gap between tokens.
    pub tpot: u64,
    /// The last token.
    pub e2e: u64,
    /// The largest gap between tokens.
    pub gap: u64,
}

/// Attempts, and how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AttemptCounts {
    /// All that are over.
    pub sent: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Those that were turned away.
    pub refused: u64,
    /// Those that found nobody to serve them.
    pub nobody_there: u64,
    /// Those that were lost with what served them.
    pub lost: u64,
    /// Those that clients gave up.
    pub given_up: u64,
    /// Those that can never be served.
    pub too_long: u64,
}

impl AttemptCounts {
    pub(super) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.refused += other.refused;
        self.nobody_there += other.nobody_there;
        self.lost += other.lost;
        self.given_up += other.given_up;
        self.too_long += other.too_long;
    }
}

/// A region.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionResult {
    /// Its name.
    pub name: String,
    /// Tasks of its users.
    pub offered: u64,
    /// Good ones among them.
    pub good: u64,
    /// Attempts that its replicas answered.
    pub answered: u64,
    /// Those of them for users elsewhere.
    pub answered_for_others: u64,
}

/// A provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProviderResult {
    /// Its name.
    pub name: String,
    /// Attempts there; refused ones met a limit (429).
    pub attempts: AttemptCounts,
    /// Prompt tokens of what it served.
    pub prompt_tokens: u64,
    /// Of these, cached ones.
    pub cached_tokens: u64,
    /// Tokens that it generated.
    pub output_tokens: u64,
    /// Calls that it worked on at once, on average.
    pub at_once_mean: f64,
    /// The share of its limits that was used on average, by name.
    pub limits_used: BTreeMap<&'static str, f64>,
    /// Time to the first token.
    pub ttft_ms: Option<Distribution>,
    /// What refused clients were told to wait.
    pub retry_after_ms: Option<Distribution>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolResult {
    /// Its name.
    pub name: String,
    /// Calls that are over.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Whether it keeps up, by its line.
    pub verdict: Option<Verdict>,
    /// The share of calls that had to wait.
    pub waited: f64,
    /// Calls at once, on average.
    pub at_once_mean: f64,
    /// The share of what it handles at once that was used; none where there is no bound.
    pub utilisation: Option<f64>,
    /// How long calls waited.
    pub wait_ms: Option<Distribution>,
    /// How long they took.
    pub latency_ms: Option<Distribution>,
}

/// How a pool's replicas followed the demand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingResult {
    /// The pool.
    pub pool: String,
    /// Hours of replicas, ready or not, a run.
    pub replica_hours: f64,
    /// Replicas that were ready, on average.
    pub replicas_mean: f64,
    /// The fewest that were ready or on their way.
    pub replicas_min: u32,
    /// The most.
    pub replicas_max: u32,
    /// Decisions for more replicas, of all runs.
    pub ups: u64,
    /// Decisions for fewer.
    pub downs: u64,
    /// Changes of direction a day.
    pub flips_per_day: f64,
    /// Decisions that wanted more than there may be.
    pub decisions_at_most: u64,
    /// From when the signal first asked for more to the decision.
    pub decision_lag_s: Option<Distribution>,
    /// From the decision to ready.
    pub time_to_ready_s: Option<Distribution>,
    /// The most requests that waited while replicas were on their way.
    pub queue_while_starting_max: u64,
    /// Hours of replicas that the signal asked for and that were not ready, a run.
    pub short_replica_hours: f64,
    /// The most at once.
    pub short_max: u32,
    /// Hours of replicas that were ready and not asked for, a run.
    pub over_replica_hours: f64,
    /// The most at once.
    pub over_max: u32,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolResult {
    /// Its name.
    pub name: String,
    /// Replicas at the beginning.
    pub replicas: u64,
    /// Devices of one.
    pub devices_per_replica: u64,
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
    /// Attempts that were sent to it.
    pub attempts: AttemptCounts,
    /// Replicas that failed, of all runs.
    pub failed: u64,
    /// Replicas whose devices were taken away.
    pub reclaimed: u64,
    /// Replicas that were replaced.
    pub upgraded: u64,
    /// How its replicas differ: an average hides the hot one. None where there were too many to look at each.
    pub replica_spread: Option<ReplicaSpread>,
    /// What keeps its requests waiting.
    pub binding: Binding,
}

/// How replicas differ, over all of them and all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReplicaSpread {
    /// Busy share of the least and the most busy.
    #[serde(flatten)]
    pub busy: Ends,
    /// The largest share of its blocks that each used.
    pub kv: High,
    /// The longest line of each.
    pub queue: High,
    /// The 90th percentile of first tokens of each.
    pub ttft_p90_ms: High,
}

/// The high end of what replicas showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct High {
    /// Nine in ten are below.
    pub p90: f64,
    /// The most.
    pub max: f64,
}

/// The least and the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ends {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// Shares of the time and of what there is, of a replica, while requests came.
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
    /// `kv`, `sequences`, `token_budget`, `provider` or `tool`, or none where nobody waits.
    pub resource: Option<&'static str>,
    /// The pool, provider or tool.
    pub pool: Option<String>,
    /// Of the time, it kept somebody waiting; of a provider's or tool's calls, those that it turned away or let wait.
    pub share_of_time: f64,
    /// When it first did, in seconds from the end of the warm-up, in the first run that shows it.
    pub first_at_s: Option<f64>,
    /// Of the time, each kept somebody waiting.
    pub shares: BTreeMap<&'static str, f64>,
}

/// What came of the tasks of all classes that began in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GoodputWindow {
    /// When it begins, in seconds from the end of the warm-up.
    pub from_s: f64,
    /// Tasks that began, a second.
    pub offered_per_s: f64,
    /// Good ones of these, a second.
    pub goodput_per_s: f64,
    /// Their share; none where nobody came.
    pub good: Option<f64>,
    /// Attempts that were sent in it, a second, as far as they are over.
    pub attempts_per_s: f64,
}

/// A window of the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// The pool.
    pub pool: String,
    /// When it begins, in seconds from the end of the warm-up.
    pub from_s: f64,
    /// Replicas that served, on average.
    pub replicas_mean: f64,
    /// Shares and averages of one of them.
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
