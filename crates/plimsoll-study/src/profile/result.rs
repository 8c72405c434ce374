//! A profile as it leaves the house.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::series::SeriesProfile;

/// What a log says of a demand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// All rows first; then each class, where there are two or more. Empty where the log holds rates and no requests.
    pub classes: Vec<ClassProfile>,
    /// Rates by client and window, where the log holds those and no requests.
    pub series: Option<SeriesProfile>,
    /// What a reader must know of the log before taking its figures for the users'.
    pub warnings: Vec<String>,
    /// What about this demand breaks a plan that is made from averages.
    pub findings: Vec<Finding>,
}

/// Something about a demand that averages do not say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The class; `all` for all rows.
    pub class: String,
    /// What it is about.
    pub about: About,
    /// How many times more, or what share, than a plan from averages takes for granted.
    pub factor: Option<f64>,
    /// The window it was counted over.
    pub window_s: Option<u64>,
    /// The whole sentence, with its numbers.
    pub sentence: String,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// More in a window than independent arrivals of that rate bring.
    Bursts,
    /// The wait before a prefill that is loaded to a part.
    Queue,
    /// Requests, prompt and output tokens do not peak alike.
    Peaks,
    /// Long requests hold most of the tokens.
    Lengths,
    /// Context that is resident while decoding.
    Context,
    /// The clock of the log.
    Tick,
    /// Few clients make the load.
    Clients,
    /// Prompts that share their beginning.
    Reuse,
    /// Requests that failed, were refused or came again.
    Failures,
    /// Time without requests.
    Silences,
    /// Hours and days.
    Seasonality,
    /// Contexts without a bound.
    Budget,
}

/// One class, or all rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassProfile {
    /// What it is called; `all` for all rows.
    pub name: String,
    /// Rows of the log.
    pub rows: u64,
    /// Requests they stand for: more than the rows where only a sample was logged.
    pub requests: f64,
    /// From the first arrival of the whole log to its last.
    pub span_s: Option<f64>,
    /// Requests that have a time, over the span.
    pub mean_rps_rows_over_span: Option<f64>,
    /// Their prompt tokens over the span.
    pub prompt_tokens_per_s: Option<f64>,
    /// Their output tokens over the span.
    pub output_tokens_per_s: Option<f64>,
    /// Demand over the span, in at most sixty stretches; null with fewer than two seconds.
    pub shape: Option<DemandShape>,
    /// Demand by windows of so many seconds from the first arrival of the log; null with fewer than two complete ones.
    pub windows: Keyed<Option<Windows>>,
    /// Prompt lengths, cached tokens included.
    pub prompt: Option<Lengths>,
    /// Output lengths.
    pub output: Option<Lengths>,
    /// Both together, of rows that say both.
    pub total: Option<Lengths>,
    /// Rows with a prompt of no token.
    pub zero_prompt_rows: f64,
    /// Rows with an output of no token.
    pub zero_output_rows: f64,
    /// Reasoning tokens in a hundred output tokens, over a hundred; of rows that say it.
    pub reasoning_share_of_output: Option<f64>,
    /// Time between arrivals.
    pub inter_arrival: Option<InterArrival>,
    /// Families of distributions that were fitted to it.
    pub inter_arrival_fit: Option<Fits>,
    /// The same for prompts.
    pub prompt_fit: Option<Fits>,
    /// The same for outputs.
    pub output_fit: Option<Fits>,
    /// How windows follow each other; null where fewer than 31 are complete.
    pub autocorrelation: Keyed<Option<Autocorrelations>>,
    /// Whether long prompts have long outputs.
    pub correlation_prompt_output: Option<Correlation>,
    /// The mean context of a sequence that is decoding.
    pub kv_resident_context: Option<ResidentContext>,
    /// Tokens in memory over time.
    pub resident_kv_tokens: ResidentTokens,
    /// What independent arrivals would bring; null where the windows are.
    pub poisson_comparison: Keyed<Option<PoissonComparison>>,
    /// What prompts share; of all rows only.
    pub prefix_reuse: Option<PrefixReuse>,
    /// Episodes of windows that independent arrivals would hardly bring.
    pub bursts: Option<Bursts>,
    /// The tick of the log's clock, where it has one.
    pub tick: Option<ClockTick>,
    /// Time without requests that is not like the time around it; of all rows only.
    pub silences: Option<Silences>,
    /// Whether hours of the day and days of the week differ.
    pub seasonality: Option<Seasonality>,
    /// How requests ended, and which came again.
    pub failures: Failures,
    /// Who asks.
    pub clients: Option<Clients>,
    /// Lengths that nothing bounds.
    pub budget: Option<Budget>,
    /// The wait before one server that prefills.
    pub prefill_queue: PrefillQueue,
    /// Prompts and outputs together, in bins.
    pub joint: Vec<JointBin>,
    /// How much the log knows.
    pub known: Known,
}

/// Demand over the span in stretches alike; what does not fill one is left out at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemandShape {
    /// How long a stretch is: whole seconds.
    pub stretch_s: u64,
    /// Requests a second of each stretch.
    pub requests_per_s: Vec<f64>,
    /// Prompt tokens, cached ones included; null where no row says them.
    pub prompt_tokens_per_s: Option<Vec<f64>>,
    /// Output tokens, booked at the arrival; null where no row says them.
    pub output_tokens_per_s: Option<Vec<f64>>,
}

/// An object whose keys are numbers or names, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyed<T>(pub Vec<(String, T)>);

impl<T> Keyed<T> {
    /// What has this key.
    pub fn get(&self, key: &str) -> Option<&T> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// Keys and what they have.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl<T: Serialize> Serialize for Keyed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// Demand by windows that are complete: the one that holds the last arrival is left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Windows {
    /// How many.
    pub n_windows: u64,
    /// Those without a request.
    pub n_empty: u64,
    /// Requests.
    pub requests: WindowLevels,
    /// Prompt tokens, cached ones included; null where no row says them.
    pub prompt_tokens: Option<WindowLevels>,
    /// Prompt tokens that were not cached; null where a row does not say it.
    pub fresh_tokens: Option<WindowLevels>,
    /// Output tokens, booked at the arrival; null where no row says them.
    pub output_tokens: Option<WindowLevels>,
    /// Prompt and output tokens; null where one of them is.
    pub total_tokens: Option<WindowLevels>,
}

/// Totals of windows. Ratios are null where the mean is zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowLevels {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the population.
    pub std: f64,
    /// Half have less.
    pub p50: f64,
    /// One in twenty has more.
    pub p95: f64,
    /// One in a hundred has more.
    pub p99: f64,
    /// The fullest.
    pub max: f64,
    /// The fullest over the mean.
    pub peak_to_mean: Option<f64>,
    /// The 99th percentile over the mean.
    pub p99_to_mean: Option<f64>,
    /// The 95th percentile over the mean.
    pub p95_to_mean: Option<f64>,
    /// Standard deviation over mean.
    pub cv: Option<f64>,
    /// Variance over mean.
    pub index_of_dispersion: Option<f64>,
}

/// Lengths in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// Requests, by their weights.
    pub n: f64,
    /// Those of no token.
    pub zeros: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the population.
    pub std: f64,
    /// Standard deviation over mean.
    pub cv: Option<f64>,
    /// The shortest.
    pub min: f64,
    /// Half are shorter.
    pub p50: f64,
    /// One in ten is longer.
    pub p90: f64,
    /// One in twenty is longer.
    pub p95: f64,
    /// One in a hundred is longer.
    pub p99: f64,
    /// One in a thousand is longer.
    #[serde(rename = "p99.9")]
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
    /// All tokens.
    pub sum: f64,
    /// Mean over median.
    pub mean_over_median: Option<f64>,
    /// The length of the request that a token is in: sum of squares over sum.
    pub size_biased_mean: Option<f64>,
    /// Tokens of the longest hundredth, over all tokens.
    pub top1pct_share_of_tokens: Option<f64>,
    /// Of the longest twentieth.
    pub top5pct_share_of_tokens: Option<f64>,
    /// Of the longest tenth.
    pub top10pct_share_of_tokens: Option<f64>,
}

/// Time between arrivals, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InterArrival {
    /// One fewer than there are rows.
    pub n: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the population.
    pub std: f64,
    /// Standard deviation over mean; null where all come at once.
    pub cv: Option<f64>,
    /// Half are shorter.
    pub p50: f64,
    /// One in twenty is longer.
    pub p95: f64,
    /// One in a hundred is longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// Those of no time.
    pub zeros: u64,
    /// Whether percentiles are exact. The other figures always are.
    pub exact: bool,
    /// How far percentiles may be off, over their value.
    pub relative_error: f64,
}

/// Families of distributions, fitted by maximum likelihood to what is above zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fits {
    /// Values above zero.
    pub n_positive: f64,
    /// Null where it cannot be fitted, as below.
    pub lognormal: Option<LognormalFit>,
    /// Gamma.
    pub gamma: Option<ShapeFit>,
    /// Weibull.
    pub weibull: Option<ShapeFit>,
    /// Pareto of type I.
    pub pareto: Option<ParetoFit>,
    /// Exponential.
    pub exponential: Option<ExponentialFit>,
    /// The one nearest by Kolmogorov and Smirnov.
    pub best_by_ks: String,
    /// Distances above this are rejected at 5 %: 1.36 over the root of n.
    pub ks_rejected_above: f64,
    /// Whether the nearest is rejected, and so ranks but does not describe.
    pub best_is_rejected: bool,
    /// How far the values behind it may be off, over their value; zero where they are exact.
    pub relative_error: f64,
}

/// A lognormal distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LognormalFit {
    /// Mean of the logarithm.
    pub mu: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// Largest distance of the distribution functions.
    pub ks: f64,
}

/// A distribution with shape and scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShapeFit {
    /// Shape.
    pub shape: f64,
    /// Scale.
    pub scale: f64,
    /// Largest distance of the distribution functions.
    pub ks: f64,
}

/// A Pareto distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ParetoFit {
    /// The smallest value.
    pub xm: f64,
    /// Tail index.
    pub alpha: f64,
    /// Largest distance of the distribution functions.
    pub ks: f64,
}

/// An exponential distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ExponentialFit {
    /// Mean.
    pub mean: f64,
    /// Largest distance of the distribution functions.
    pub ks: f64,
}

/// How windows follow each other; keys are lags in windows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Autocorrelations {
    /// Of requests.
    pub requests: Keyed<Option<f64>>,
    /// Of prompt tokens.
    pub prompt_tokens: Option<Keyed<Option<f64>>>,
    /// Of output tokens.
    pub output_tokens: Option<Keyed<Option<f64>>>,
}

/// Whether long prompts have long outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correlation {
    /// Of the lengths, over all rows that say both; null where one of them never varies, as below.
    pub pearson: Option<f64>,
    /// Of their ranks.
    pub spearman: Option<f64>,
    /// Of their logarithms, where both are above zero.
    pub pearson_log: Option<f64>,
    /// Rows behind ranks and logarithms.
    pub rows: u64,
    /// Whether those are all rows, and not a sample.
    pub exact: bool,
}

/// The mean context of a sequence that is decoding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResidentContext {
    /// Mean prompt and half the mean output: what an average says.
    pub naive_mean_prompt_plus_half_mean_output: f64,
    /// Each request counted as long as it decodes.
    pub output_weighted_mean: Option<f64>,
    /// The second over the first.
    pub ratio: Option<f64>,
}

/// Tokens in memory over time, where every sequence holds its prompt from its arrival, and its output as it grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResidentTokens {
    /// From the time each request took.
    pub measured: Option<ResidentLevels>,
    /// From a model of how long it takes.
    pub modelled: Option<ResidentLevels>,
    /// Why one of them is null.
    pub reason: Option<String>,
}

/// Averages of windows of ten seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResidentLevels {
    /// The length of a window.
    pub window_s: u64,
    /// How many are complete.
    pub n_windows: u64,
    /// Mean.
    pub mean: f64,
    /// One window in twenty has more.
    pub p95: f64,
    /// One in a hundred has more.
    pub p99: f64,
    /// The fullest.
    pub max: f64,
    /// Rows behind it, over all rows.
    pub share_of_rows: f64,
    /// What the times are from, where they are modelled.
    pub basis: Option<String>,
}

/// What independent arrivals at the same mean would bring.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoissonComparison {
    /// Requests.
    pub requests: PoissonRequests,
    /// Prompt tokens.
    pub prompt_tokens: Option<PoissonTokens>,
    /// Output tokens.
    pub output_tokens: Option<PoissonTokens>,
}

/// Requests of a window against those of independent arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PoissonRequests {
    /// As logged.
    pub actual_p99: f64,
    /// At the same mean.
    pub poisson_p99: f64,
    /// As logged.
    pub actual_max: f64,
    /// What one window in so many as there are exceeds.
    pub poisson_expected_max_quantile: f64,
}

/// Tokens of a window against those of independent arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PoissonTokens {
    /// Mean of the windows.
    pub mean: f64,
    /// As logged.
    pub actual_p99: f64,
    /// As logged.
    pub actual_max: f64,
    /// Independent arrivals, each of the mean length.
    pub poisson_fixed_mean_length_p99: f64,
    /// Independent arrivals of the logged lengths.
    pub compound_poisson_empirical_length_p99: f64,
    /// How far the last may be off, over its value.
    pub compound_relative_error: f64,
    /// As logged over independent arrivals of the mean length.
    pub actual_over_poisson_fixed: Option<f64>,
    /// As logged over independent arrivals of the logged lengths.
    pub actual_over_compound: Option<f64>,
    /// Windows that hold more than the first would in one of a hundred.
    pub share_of_windows_above_poisson_fixed_p99: f64,
    /// Windows that hold more than the second would in one of a hundred.
    pub share_of_windows_above_compound_p99: f64,
}

/// What prompts share with earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrefixReuse {
    /// Tokens of a block.
    pub block_tokens: u64,
    /// Blocks of all prompts.
    pub total_blocks: u64,
    /// Different ones.
    pub unique_blocks: u64,
    /// Tokens of all prompts.
    pub total_prompt_tokens: u64,
    /// With a cache that forgets nothing.
    pub infinite: ReuseLevels,
    /// With a cache of so many blocks that forgets what was used least recently.
    pub lru: Keyed<ReuseLevels>,
    /// Within sessions, where blocks of different sessions cannot be compared.
    pub sessions: Option<SessionReuse>,
}

/// Hits, over all accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReuseLevels {
    /// Blocks that are resident when they are asked for.
    pub stream_block_hit_rate: f64,
    /// Those of them that follow on each other from a prompt's beginning.
    pub prefix_block_hit_rate: f64,
    /// Their tokens.
    pub prefix_token_hit_rate: f64,
    /// Prompts all of whose blocks were resident.
    pub requests_fully_cached: u64,
}

/// What sessions share within themselves, with a cache that forgets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SessionReuse {
    /// How many.
    pub sessions: u64,
    /// The share of prompt tokens found, session by session.
    pub session_token_hit_rate: SessionRates,
    /// Prompt tokens that were not found.
    pub uncached_prompt_tokens: u64,
    /// Prompt tokens for each output token, where outputs are known.
    pub prompt_to_output_ratio_raw: Option<f64>,
    /// The same of those that were not found.
    pub prompt_to_output_ratio_uncached: Option<f64>,
}

/// A share by sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SessionRates {
    /// Mean of the sessions.
    pub mean: f64,
    /// One session in twenty has less.
    pub p5: f64,
    /// Half have less.
    pub p50: f64,
}

/// Episodes of windows whose prompt tokens exceed what independent arrivals of the logged lengths bring in one window of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// The length of a window.
    pub window_s: u64,
    /// Prompt tokens above which a window is in a burst.
    pub above_tokens: f64,
    /// How many episodes.
    pub count: u64,
    /// Half are shorter; null without episodes, as below.
    pub length_s_p50: Option<f64>,
    /// One in twenty is longer.
    pub length_s_p95: Option<f64>,
    /// The longest.
    pub length_s_max: Option<f64>,
    /// Of all complete windows.
    pub share_of_time: f64,
    /// Of their prompt tokens.
    pub share_of_tokens: f64,
}

/// A clock that jumps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockTick {
    /// From one jump to the next.
    pub seconds: f64,
    /// Different stamps.
    pub stamps: u64,
    /// Rows that were looked at: the first of the log.
    pub rows: u64,
}

/// Time without requests that is improbable at the rate around it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Silences {
    /// How many spells.
    pub count: u64,
    /// All together.
    pub total_s: f64,
    /// Over the span.
    pub share_of_time: f64,
    /// Those in which two or more fell silent at once.
    pub collection_gaps: u64,
    /// The longest, in order of time.
    pub longest: Vec<Silence>,
}

/// A spell without requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Silence {
    /// From the first arrival of the log to the last request before it.
    pub start_s: f64,
    /// How long.
    pub length_s: f64,
    /// Requests that were to be expected at the rate of the ten minutes on both sides.
    pub expected_requests: f64,
    /// Classes or clients, whichever are more, that were there before and after.
    pub fell_silent: u64,
    /// What it may be.
    pub kind: SilenceKind,
}

/// What a silence may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SilenceKind {
    /// Two or more that were there before and after fell silent at once: nobody was counting.
    #[serde(rename = "collection gap")]
    CollectionGap,
    /// One, or nobody knows how many.
    #[serde(rename = "cannot tell")]
    CannotTell,
}

/// Whether hours and days differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seasonality {
    /// By hour of the day.
    pub hour_of_day: Season,
    /// By day of the week.
    pub day_of_week: Season,
}

/// Whether the parts of a period differ more than they would if it began anywhere.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Season {
    /// Whole periods that were seen.
    pub periods: u64,
    /// The share of the variance that the part of the period explains; null without enough history, as below.
    pub eta2: Option<f64>,
    /// How often as much or more is explained when each period is turned by a chance offset.
    pub p_value: Option<f64>,
    /// Turned periods behind that.
    pub permutations: u64,
    /// What is to be made of it.
    pub verdict: SeasonVerdict,
    /// Mean requests of each part, from the hour or day of the first arrival where the clock is unknown, and from midnight or Monday where it is known.
    pub mean_requests: Option<Vec<f64>>,
    /// Whether the parts are named by the clock.
    pub by_the_clock: bool,
    /// The fullest part over the emptiest.
    pub peak_to_trough: Option<f64>,
}

/// What is to be made of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SeasonVerdict {
    /// Fewer than three whole periods.
    #[serde(rename = "not enough history")]
    NotEnoughHistory,
    /// Chance does as much in more than one case of twenty.
    #[serde(rename = "not shown")]
    NotShown,
    /// Chance seldom does as much.
    #[serde(rename = "shown")]
    Shown,
}

/// How requests ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failures {
    /// Shares of all requests.
    pub share_by_end: EndShares,
    /// Refused for a limit of rate (429), over those whose end is known; null where none is.
    pub limited_share: Option<f64>,
    /// Refused, failed or cancelled, over those whose end is known.
    pub failed_share: Option<f64>,
    /// Tasks that were tried again.
    pub retried_tasks: f64,
    /// Over all tasks; null without tasks, and where no row numbers its attempt.
    pub retried_share: Option<f64>,
    /// Tasks by how many attempts they took; empty where no row numbers its attempt.
    pub tasks_by_attempts: Keyed<f64>,
    /// Rows with an output of no token.
    pub zero_outputs: f64,
}

/// Shares of all requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EndShares {
    /// Answered.
    pub ok: f64,
    /// Refused for a limit of rate.
    pub limited: f64,
    /// Failed otherwise.
    pub failed: f64,
    /// Given up by the client.
    pub cancelled: f64,
    /// The log does not say.
    pub unknown: f64,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clients {
    /// How many there are.
    pub count: u64,
    /// How many, from the largest on, make half of the tokens.
    pub half_of_tokens_from: u64,
    /// The same for requests.
    pub half_of_requests_from: u64,
    /// The largest by tokens.
    pub top: Vec<ClientShare>,
}

/// What one of them asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientShare {
    /// What it is called.
    pub name: String,
    /// Requests.
    pub requests: f64,
    /// Prompt tokens.
    pub prompt_tokens: f64,
    /// Output tokens.
    pub output_tokens: f64,
    /// Requests over all requests.
    pub share_of_requests: f64,
    /// Tokens over all tokens.
    pub share_of_tokens: f64,
}

/// Lengths that nothing bounds: whoever may send any context may take everyone's memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// The longest request, prompt and output; of prompts alone where outputs are unknown.
    pub max: f64,
    /// One in a thousand is longer.
    #[serde(rename = "p99.9")]
    pub p99_9: f64,
    /// The first over the second.
    pub max_over_p99_9: Option<f64>,
    /// Requests longer than ten times the 99th percentile.
    pub rows_beyond_10x_p99: f64,
    /// Tokens of requests longer than the 99th percentile, over all tokens.
    pub share_of_tokens_over_p99: f64,
    /// Rows that set no limit to their output.
    pub rows_without_max_tokens: u64,
    /// Rows whose output is as long as its limit.
    pub rows_at_max_tokens: u64,
}

/// The wait before one server that prefills in order of arrival.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrefillQueue {
    /// Prompt tokens over the span: the server of utilisation one; null where the queue was not worked out.
    pub mean_prompt_tokens_per_s: Option<f64>,
    /// By how much the server is loaded on average.
    pub wait_s_by_utilisation: Keyed<QueueWaits>,
    /// The smallest server with a 99th percentile of the wait below so many seconds, over the mean demand.
    pub capacity_over_mean_for_p99_wait_le_s: Keyed<QueueCapacities>,
    /// Why it was not worked out.
    pub reason: Option<String>,
}

/// The wait as logged, and with independent arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueWaits {
    /// As logged; exact.
    pub trace: QueueWait,
    /// Independent arrivals of the logged lengths; simulated.
    pub poisson_same_lengths: QueueWait,
    /// Independent arrivals of the mean length; simulated.
    pub poisson_mean_length: QueueWait,
}

/// A wait in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueWait {
    /// Mean.
    pub mean: f64,
    /// Half wait less.
    pub p50: f64,
    /// One in twenty waits longer.
    pub p95: f64,
    /// One in a hundred waits longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Sizes of a server over the mean demand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueCapacities {
    /// As logged; exact.
    pub trace: f64,
    /// Independent arrivals of the logged lengths; simulated.
    pub poisson_same_lengths: f64,
    /// Independent arrivals of the mean length; simulated.
    pub poisson_mean_length: f64,
}

/// Requests whose lengths lie in the same bins; a bin ends at twice its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JointBin {
    /// The shortest prompt it may hold.
    pub prompt_from: u64,
    /// The longest.
    pub prompt_to: u64,
    /// The shortest output.
    pub output_from: u64,
    /// The longest.
    pub output_to: u64,
    /// Requests.
    pub requests: f64,
    /// Their prompt tokens.
    pub prompt_tokens: f64,
    /// Their output tokens.
    pub output_tokens: f64,
}

/// Shares of rows that say it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Known {
    /// When it came.
    pub at: f64,
    /// Its prompt.
    pub prompt: f64,
    /// What of it was cached.
    pub cached: f64,
    /// Its output.
    pub output: f64,
    /// What of it was reasoning.
    pub reasoning: f64,
    /// Its limit.
    pub max_tokens: f64,
    /// Who asked.
    pub client: f64,
    /// How it ended.
    pub end: f64,
    /// The time to its first token.
    pub ttft: f64,
    /// The time to its end.
    pub e2e: f64,
}
