//! What a cost study says.

use std::collections::BTreeMap;

use plimsoll_cost::{Books, Charge, Usage};
use serde::Serialize;

use super::invoice::BillCheck;
use plimsoll_load::Span;

/// What was paid, who used it, and what one success costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The hours that are counted.
    pub period: CostPeriod,
    /// How device money is split.
    pub method: &'static str,
    /// What was paid, line by line.
    pub lines: Vec<CostLine>,
    /// All that was paid, in whole micro-dollars.
    pub total_microusd: i64,
    /// The same in dollars.
    pub total_usd: f64,
    /// The total less the lines, summed anew.
    pub residual_microusd: i64,
    /// Whether neither the total nor any dimension misses a micro-dollar.
    pub closes: bool,
    /// Lines by whom they belong to.
    pub by_kind: BTreeMap<&'static str, i64>,
    /// What one success costs.
    pub cost_per_success: CostPerSuccess,
    /// Attempts that nothing was charged for: they are in no sum, and what one of anything costs is not known where there are any.
    pub uncharged_attempts: f64,
    /// What one of anything costs.
    pub unit: UnitCost,
    /// What it costs that attempts are made again, fail, are left or refused; retries may be any of these.
    pub wasted: WastedCost,
    /// What each value of each dimension pays.
    pub by: BTreeMap<&'static str, Vec<ValueCost>>,
    /// How far counting requests would be off, dimension by dimension: the share of what is allocated that somebody else would pay.
    pub misplaced_by_request_count: BTreeMap<&'static str, f64>,
    /// What nobody can be charged with, dimension by dimension.
    pub unallocated_microusd: BTreeMap<&'static str, i64>,
    /// A bill against what prices say.
    pub bill: Option<BillCheck>,
    /// The same demand, bought.
    pub build_or_buy: Vec<BuyCost>,
    /// How much to commit to.
    pub commitment: Vec<CommitmentAdvice>,
    /// What may be spent on a success.
    pub budget: Option<SuccessBudget>,
    /// Prices that look wrong.
    pub price_lints: Vec<PriceWarning>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// The books themselves, for exports.
    #[serde(skip)]
    pub books: Books,
    /// What the books are of.
    #[serde(skip)]
    pub charges: Vec<Charge>,
    /// What was used.
    #[serde(skip)]
    pub usage: Usage,
}

/// The hours that are counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostPeriod {
    /// The beginning; none where rows have no date.
    pub start: Option<String>,
    /// The end.
    pub end: Option<String>,
    /// How many.
    pub hours: u32,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostLine {
    /// What tables call it.
    pub name: String,
    /// `allocated`, `idle`, `reserve`, `failed` or `unallocated`.
    pub kind: &'static str,
    /// What was paid for.
    pub line: &'static str,
    /// The pool or provider.
    pub place: Option<String>,
    /// `prefill`, `cached`, `decode` or `kv`.
    pub phase: Option<&'static str>,
    /// How attempts ended that did not succeed.
    pub end: Option<&'static str>,
    /// How much.
    pub usd: f64,
    /// The same in whole micro-dollars.
    pub microusd: i64,
    /// Device-hours of it.
    pub device_hours: Option<f64>,
    /// Whether it was invoiced, or is hours or tokens times a price.
    pub invoiced: bool,
    /// The price behind it.
    pub price: Option<LinePrice>,
    /// What it was split by, or why it belongs to nobody.
    pub why: String,
}

/// A price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinePrice {
    /// What a unit costs.
    pub usd_per_unit: Option<f64>,
    /// Of what.
    pub unit: Option<&'static str>,
    /// Where it was read.
    pub source: String,
    /// When it held.
    pub as_of: Option<String>,
    /// Where it holds.
    pub region: Option<String>,
}

/// What one success costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostPerSuccess {
    /// All that was paid over known successes; none where that cannot be said.
    pub usd: Option<f64>,
    /// How sure it is.
    pub interval: Option<Span>,
    /// Where outcomes are unresolved: were all of them successes, and none.
    pub bounds: Option<CostBounds>,
    /// Its factors: the first times the second over the third.
    pub factors: Option<CostFactors>,
    /// Without idle time, reserve and whatever is paid anyway.
    pub marginal_usd: Option<f64>,
    /// Tasks.
    pub tasks: u64,
    /// Those that are known to have succeeded.
    pub succeeded: u64,
    /// Those that nobody judged.
    pub unresolved: u64,
    /// Whether attempts that nothing was charged for are missing in it.
    pub at_least: bool,
    /// Why there is no number, or what is wrong with it.
    pub why: Option<String>,
}

/// Between what one success costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostBounds {
    /// Were all unresolved tasks successes.
    pub low_usd: f64,
    /// Were none.
    pub high_usd: f64,
}

/// What the cost of a success is the product of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostFactors {
    /// What an attempt costs.
    pub cost_per_attempt_usd: f64,
    /// Attempts of a task.
    pub attempts_per_task: f64,
    /// The share of tasks that are known to have succeeded.
    pub success_rate: f64,
}

/// What one of anything costs; none where there was none. Tokens without idle time and what everybody shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UnitCost {
    /// An attempt, everything included.
    pub request_usd: Option<f64>,
    /// A million prompt tokens that were computed.
    pub fresh_usd_per_mtok: Option<f64>,
    /// A million that were cached.
    pub cached_usd_per_mtok: Option<f64>,
    /// A million of both.
    pub prompt_usd_per_mtok: Option<f64>,
    /// A million output tokens.
    pub output_usd_per_mtok: Option<f64>,
    /// What idle time, reserve and shared lines add to each dollar that was used.
    pub overhead: Option<f64>,
}

/// What comes to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WastedCost {
    /// Attempts that were not the first, whatever became of them.
    pub retries_usd: f64,
    /// Attempts that failed.
    pub failed_usd: f64,
    /// Attempts whose user left.
    pub cancelled_usd: f64,
    /// Attempts that a limit refused.
    pub limited_usd: f64,
}

/// What a value pays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueCost {
    /// The value; none for rows that have none.
    pub value: Option<String>,
    /// Attempts.
    pub requests: f64,
    /// Tasks.
    pub tasks: u64,
    /// Those that are known to have succeeded.
    pub successes: u64,
    /// All that it pays.
    pub usd: f64,
    /// The same in whole micro-dollars.
    pub microusd: i64,
    /// Of this, reading fresh prompts.
    pub prefill_usd: f64,
    /// Cached prompts that are charged.
    pub cached_usd: f64,
    /// Writing.
    pub decode_usd: f64,
    /// Reading context.
    pub kv_usd: f64,
    /// What has no phase.
    pub other_usd: f64,
    /// Attempts that failed.
    pub failed_usd: f64,
    /// Attempts whose user left.
    pub cancelled_usd: f64,
    /// Attempts that a limit refused.
    pub limited_usd: f64,
    /// Idle time and reserve, by how much it causes them.
    pub headroom_usd: f64,
    /// What everybody shares.
    pub shared_usd: f64,
    /// Of all of these, attempts that were not the first.
    pub retries_usd: f64,
    /// What it would pay by the number of its requests.
    pub by_request_count_usd: f64,
    /// That over what it pays.
    pub request_count_factor: Option<f64>,
    /// What it would pay by its tokens, weighted as list prices weigh them.
    pub by_weighted_tokens_usd: f64,
    /// What one of its successes costs.
    pub cost_per_success_usd: Option<f64>,
    /// How sure that is.
    pub cost_per_success_interval: Option<Span>,
}

/// The demand of devices, bought from a provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuyCost {
    /// The provider.
    pub provider: String,
    /// What is bought: the demand of a pool.
    pub pool: String,
    /// What the devices cost in a month of 730 hours.
    pub own_usd_per_month: f64,
    /// What the tokens would.
    pub bought_usd_per_month: f64,
    /// Whichever is less: `build` or `buy`.
    pub cheaper: &'static str,
    /// As many times this demand cost the same either way.
    pub break_even_demand: Option<f64>,
    /// The share of their time at which the devices cost as much as tokens; none where even full ones cost more.
    pub break_even_utilisation: Option<f64>,
    /// The share of their time that the devices work.
    pub utilisation: f64,
    /// Its limits, the fullest first.
    pub limits: Vec<LimitFill>,
    /// In a sentence.
    pub says: String,
}

/// A limit against what is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitFill {
    /// `rpm`, `tpm`, `itpm` or `otpm`.
    pub name: &'static str,
    /// What a minute lets through.
    pub limit: u64,
    /// What a mean minute of the busiest hour asks for.
    pub peak: f64,
    /// That hour, from the start of the period.
    pub hour: usize,
    /// Hours that ask for more.
    pub hours_over: usize,
}

/// How much to commit to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommitmentAdvice {
    /// Devices of what.
    pub pool: String,
    /// Replicas to commit to.
    pub replicas: u32,
    /// Reserved prices against on-demand ones: the share of hours that may ask for more.
    pub exceeded: f64,
    /// What an hour of a replica costs reserved.
    pub reserved_usd_per_hour: f64,
    /// On demand.
    pub on_demand_usd_per_hour: f64,
    /// A month with so many.
    pub usd_per_month: f64,
    /// A month without any.
    pub none_usd_per_month: f64,
    /// A month with as many as are ever asked for.
    pub all_usd_per_month: f64,
    /// In a sentence.
    pub says: String,
}

/// What may be spent on a success.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuccessBudget {
    /// The cap.
    pub per_success_usd: f64,
    /// What one costs.
    pub usd: Option<f64>,
    /// `within`, `near`, `over`, or `unknown`.
    pub verdict: &'static str,
    /// In a sentence.
    pub says: String,
}

/// A price that looks wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriceWarning {
    /// What kind of wrong.
    pub code: &'static str,
    /// Whose price.
    pub name: String,
    /// What is wrong, with its numbers.
    pub message: String,
}
