//! A reconciliation as it leaves the house.

use serde::Serialize;

/// A forecast and a plan against what came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reconciliation {
    /// Steps that are in both the forecast and what came.
    pub steps: usize,
    /// How long a step is.
    pub step_s: u32,
    /// Steps of which nothing is known.
    pub missing: usize,
    /// When the first begins, on the clock of the forecast.
    pub from_s: i64,
    /// When the last ends.
    pub until_s: i64,
    /// Whether that clock counts from 1970.
    pub absolute: bool,
    /// The quantile that was sized for.
    pub sizing: f64,
    /// The level of intervals.
    pub confidence: f64,
    /// What resampling was started from.
    pub seed: u64,
    /// Series by series, all classes together first.
    pub resources: Vec<ReconciledSeries>,
    /// Which classes requests were of.
    pub mix: ClassMix,
    /// How often and by how much demand exceeded what was sized for. A cached share is no demand and has none.
    pub shortfall: Vec<Shortfall>,
    /// When service before begins, where that is known, as below.
    pub before_from_s: Option<i64>,
    /// When it ends.
    pub before_until_s: Option<i64>,
    /// When service after begins.
    pub after_from_s: Option<i64>,
    /// When it ends.
    pub after_until_s: Option<i64>,
    /// How requests were served before and after: all classes together first.
    pub service: Vec<ServiceChange>,
    /// Why a success costs more or less than before; null where one of the two is not known.
    pub cost_change: Option<CostChange>,
    /// What was assumed against the truth; what moves the answer most comes first.
    pub assumptions: Vec<AssumptionCheck>,
    /// What to assume the next time.
    pub next: NextValues,
    /// The whole of it in a few sentences.
    pub verdict: Vec<String>,
}

/// A series of the forecast against what came. Figures are over the steps that are known, and null where none is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReconciledSeries {
    /// The class; null for all of them together.
    pub class: Option<String>,
    /// What is counted.
    pub resource: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Steps that are known.
    pub steps: usize,
    /// The mean of the medians that were forecast.
    pub forecast_mean: Option<f64>,
    /// The mean of what came.
    pub actual_mean: Option<f64>,
    /// Sum of absolute errors of the median over the sum of what came; null where nothing came, as below.
    pub wape: Option<f64>,
    /// How much too high the median was, over the sum of what came.
    pub bias: Option<f64>,
    /// The mean pinball loss at the sizing quantile, in the unit of the series.
    pub pinball: Option<f64>,
    /// How often what came lay at or below each published quantile.
    pub coverage: Vec<LevelCoverage>,
    /// The same for the quantile that was sized for.
    pub sized: LevelCoverage,
    /// The sum of what came over the sum of the medians.
    pub ratio: Option<f64>,
    /// The step that exceeded the sizing quantile most; null where none did.
    pub worst: Option<WorstStep>,
}

/// How often what came lay at or below a quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelCoverage {
    /// The quantile, which is also the share that was promised.
    pub level: f64,
    /// The share of steps at or below.
    pub share: Option<f64>,
    /// How likely a share as far off is by chance, were steps independent (Kupiec). Misses of neighbouring steps come together, so that a
    /// small one says less than it seems.
    pub p_value: Option<f64>,
}

/// The step that was furthest above what was sized for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorstStep {
    /// When it begins.
    pub at_s: i64,
    /// What came.
    pub actual: f64,
    /// What was sized for.
    pub bound: f64,
    /// The first less the second.
    pub excess: f64,
}

/// Which classes requests were of, over steps in which all are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassMix {
    /// Class by class; empty where the forecast tells none apart.
    pub classes: Vec<MixRow>,
    /// The share of requests that were of another class than forecast: half the sum of absolute differences. Null where a side has no
    /// request.
    pub distance: Option<f64>,
}

/// A class's share of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixRow {
    /// The class.
    pub class: String,
    /// Its share of the medians that were forecast.
    pub forecast: Option<f64>,
    /// Its share of what came.
    pub actual: Option<f64>,
    /// The second less the first.
    pub difference: Option<f64>,
}

/// Demand D against capacity C: the sizing quantile of every step, until a plan says what was provided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shortfall {
    /// The class; null for all of them together.
    pub class: Option<String>,
    /// What is counted.
    pub resource: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Steps that are known.
    pub steps: usize,
    /// The share of steps that was planned to be short: one less the sizing quantile.
    pub planned: f64,
    /// The share of steps with D > C by more than rounding; null where no step is known. Its interval reaches as far as either of two: that
    /// of blocks of steps, drawn again, and Wilson's of that share of as many as there are blocks. With few blocks, or none or all of the
    /// steps short, the first alone is far too sure.
    pub frequency: Option<ShareEstimate>,
    /// Sum of D - C where short, over the sum of D; null where nothing came. Its interval is of blocks of steps, drawn again, which is too
    /// narrow where few were short, and null where none was.
    pub volume: Option<ShareEstimate>,
    /// Steps of a block: a day, or a quarter of the steps where that is less.
    pub block_steps: usize,
    /// Steps that were short in a row, at most; one that is not known ends a row.
    pub longest_steps: usize,
    /// The same in seconds.
    pub longest_s: u64,
    /// The mean of D - C where D > C, in the unit of the series; null where none was short.
    pub tail: Option<f64>,
    /// Sum of C - D where that is above zero, times the length of a step: what was provided and not asked for.
    pub over: f64,
    /// Its unit.
    pub over_unit: &'static str,
    /// Sum of C over sum of D, less one; null where nothing came.
    pub over_share: Option<f64>,
    /// (sum of C / sum of D - 1) times the cost of the period: the cost per attempt times the attempts after that no limit refused. A rough
    /// allocation, which takes cost to follow this one resource, so that those of two resources are views of the same cost and do not add
    /// up; below zero where less was provided than asked for. Only of fresh and output tokens of all classes together; null where the cost
    /// is unknown.
    pub over_usd: Option<f64>,
}

/// A share and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareEstimate {
    /// The share.
    pub value: f64,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// How the requests of a class were served before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceChange {
    /// The class; null for all of them together.
    pub class: Option<String>,
    /// Attempts for each request, with those that a limit refused.
    pub retries: BeforeAfter,
    /// Attempts that a limit refused, over all.
    pub limited_share: BeforeAfter,
    /// Attempts that failed, over all.
    pub failed_share: BeforeAfter,
    /// Seconds to the first token that one in twenty exceeds.
    pub ttft_p95_s: BeforeAfter,
    /// The same, of one in a hundred.
    pub ttft_p99_s: BeforeAfter,
    /// Seconds between tokens that one in twenty exceeds.
    pub itl_p95_s: BeforeAfter,
    /// The same, of one in a hundred.
    pub itl_p99_s: BeforeAfter,
    /// Attempts that got what they were promised, over those that were judged.
    pub goodput_share: BeforeAfter,
    /// Tasks that succeeded, over those whose outcome is known.
    pub success_rate: BeforeAfter,
    /// Processed attempts for each task: those that no limit refused, for a refused one costs nothing.
    pub attempts_per_task: BeforeAfter,
    /// What a processed attempt costs: the cost that is known, over the attempts that know it, or over those that were processed where these
    /// are fewer. Then refused ones are among those that know it, and cost nothing.
    pub cost_per_attempt_usd: BeforeAfter,
    /// What a success costs: cost per attempt times attempts per task over the success rate. Tasks whose outcome is unknown are taken to
    /// succeed as often as the others.
    pub cost_per_success_usd: BeforeAfter,
}

/// A figure before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// When the forecast was made.
    pub before: Option<f64>,
    /// Over the steps that came.
    pub after: Option<f64>,
    /// The second over the first; null where the first is zero.
    pub change: Option<f64>,
}

/// Why a success of all classes together costs more or less than before.
///
/// On the logarithm the three terms add up to the whole: what an attempt costs, how many a task takes, and how many tasks succeed. Attempts
/// are those that were processed: what a limit refused costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostChange {
    /// What a success cost before.
    pub before_usd: f64,
    /// And after.
    pub after_usd: f64,
    /// The second over the first.
    pub change: f64,
    /// Its logarithm: the sum of those of the terms.
    pub log_change: f64,
    /// The same in percent.
    pub percent: f64,
    /// What an attempt costs.
    pub cost_per_attempt: CostTerm,
    /// How many attempts a task takes.
    pub attempts_per_task: CostTerm,
    /// How many tasks succeed: more of them make each cheaper.
    pub success_rate: CostTerm,
}

/// A factor of what a success costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostTerm {
    /// Its value before.
    pub before: f64,
    /// And after.
    pub after: f64,
    /// What it adds to the logarithm of the cost.
    pub log_change: f64,
    /// By how many percent it alone changes the cost.
    pub percent: f64,
}

/// Something that was assumed against the truth.
///
/// The answer is the tokens of the period that are to be processed: the sum over classes of requests x processed attempts per request x
/// (prompt x (1 - cached) + output). Attempts that a limit refused are not processed and do not count. What nobody assumed is taken as it
/// came, and what did not come as it was assumed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssumptionCheck {
    /// What it is, such as "rate of chat".
    pub name: String,
    /// The class; null for what concerns all.
    pub class: Option<String>,
    /// What was assumed. Of the class mix it is zero, the distance from itself.
    pub assumed: f64,
    /// What came. Of the class mix it is the distance from what was assumed.
    pub actual: f64,
    /// Their unit.
    pub unit: &'static str,
    /// The second over the first; null where the first is zero.
    pub ratio: Option<f64>,
    /// By how many percent the answer moves with this one put right and all else as assumed; null where the answer is zero.
    pub moves: Option<f64>,
    /// Seconds from the start of the forecast, where the history that it was made from ends, to the end of the last step that is in both.
    /// All assumptions are as old as that history, so that it is the same for each; it does not say since when one of them is wrong.
    pub age_s: i64,
}

/// What to assume the next time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextValues {
    /// Class by class.
    pub classes: Vec<NextClass>,
    /// The same as keys of a scenario. A rate of one is the average of a week: where the steps are not whole weeks, or more than one in fifty
    /// is missing, it is a comment. So is everything that is known only of all classes together.
    pub toml: String,
    /// At which levels to take published quantiles the next time, series by series; those of earlier reconciliations that this one says
    /// nothing of are kept.
    pub levels: Vec<NextLevels>,
}

/// What came of a class, in the terms of a scenario. Null where it is not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextClass {
    /// The class; null where all together are forecast, and none or several came.
    pub class: Option<String>,
    /// Requests a second, first attempts only, over the steps that are in both. A task is one request, unless it has stages or turns.
    pub rate: Option<f64>,
    /// Tasks a second.
    pub tasks_rate: Option<f64>,
    /// The mean prompt, cached tokens included.
    pub prompt_mean: Option<f64>,
    /// The one that was assumed.
    pub prompt_assumed: Option<f64>,
    /// The mean output.
    pub output_mean: Option<f64>,
    /// The one that was assumed.
    pub output_assumed: Option<f64>,
    /// The share of prompt tokens that were cached.
    pub cache_hit: Option<f64>,
    /// Attempts for each request, with those that a limit refused.
    pub attempts: Option<f64>,
    /// Tasks that succeeded, over those whose outcome is known.
    pub success_rate: Option<f64>,
}

/// The levels at which the published quantiles of a series are taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextLevels {
    /// The class; null for all of them together.
    pub class: Option<String>,
    /// What is counted.
    pub resource: &'static str,
    /// For each published quantile.
    pub levels: [f64; 6],
}
