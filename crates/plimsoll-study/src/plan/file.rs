//! A plan as it was written to a file, read back: what manifests are made of and live signals held against.

use serde::Deserialize;

use super::line::PoolLine;
use super::reserve::Replicas;
use super::result::Parallelism;

/// The parts of `plimsoll/plan/v1` and `v2` that are used after a plan was made. What else is in it is not read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PlanFile {
    /// `plimsoll/plan/v1` or `plimsoll/plan/v2`.
    pub schema: String,
    /// Names the plan.
    pub id: String,
    /// The study's name.
    pub name: String,
    /// The day that stood for today.
    pub as_of: String,
    /// The share of tasks that must be good.
    pub attainment: f64,
    /// Whether the plan can be had, and keeps every promise.
    pub feasible: bool,
    /// Each pool.
    pub pools: Vec<FilePool>,
    /// Where pools are; none where there is no such fleet.
    pub fleet: Option<FileFleet>,
    /// One replica of each pool at its load line.
    pub lines: Vec<PoolLine>,
    /// What each pool lets in.
    pub limits: Vec<FileLimits>,
    /// How pools follow their demand.
    pub scaling: FileScaling,
    /// The demand that it was made for.
    pub forecast: FileForecast,
    /// What the reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FilePool {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Its device.
    pub accelerator: String,
    /// Its engine, such as `vllm@0.24`.
    pub engine: String,
    /// The format of its weights.
    pub weights: String,
    /// How a replica is split over devices.
    pub parallelism: Parallelism,
    /// Replicas, line by line.
    pub replicas: Replicas,
    /// Devices of all replicas.
    pub devices: u64,
    /// What binds it.
    pub binds: Option<String>,
    /// Whether one replica has little to do.
    #[serde(default)]
    pub tiny: bool,
}

/// Where pools are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileFleet {
    /// Replicas of pools in regions.
    pub placements: Vec<FilePlacement>,
    /// Nodes that are rented.
    pub nodes: Vec<FileNodes>,
    /// What they cost.
    pub usd_per_hour: Option<f64>,
}

/// Replicas of a pool in a region.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FilePlacement {
    /// The pool.
    pub pool: String,
    /// Where.
    pub region: String,
    /// On what.
    pub accelerator: String,
    /// How it is paid for.
    pub price_mode: String,
    /// How many.
    pub replicas: u64,
    /// Devices of all of them.
    pub devices: u64,
}

/// Nodes of a kind in a region.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileNodes {
    /// Where.
    pub region: String,
    /// The device.
    pub accelerator: String,
    /// The kind of node; none where it has no name.
    pub instance: Option<String>,
    /// How it is paid for.
    pub price_mode: String,
    /// How many.
    pub nodes: u64,
    /// Devices of each.
    pub devices_per_node: u64,
}

/// A number, and where it comes from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileLimit {
    /// None where nothing is known.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Where it comes from.
    pub why: String,
    /// What engines call it, where it is one of their flags.
    #[serde(default)]
    pub flags: Option<FileFlags>,
}

/// What engines call a limit; none where one has no such flag ([`crate::EngineFlags`]).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FileFlags {
    /// vLLM.
    pub vllm: Option<String>,
    /// The first version of vLLM that has it, where that is recent.
    pub vllm_since: Option<String>,
    /// SGLang.
    pub sglang: Option<String>,
    /// TensorRT-LLM.
    pub tensorrt_llm: Option<String>,
}

/// What a pool lets in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileLimits {
    /// The pool.
    pub pool: String,
    /// Sequences at once.
    pub max_num_seqs: FileLimit,
    /// Tokens of a step.
    pub max_num_batched_tokens: FileLimit,
    /// Longest context.
    pub max_model_len: FileLimit,
    /// Fresh prompt tokens that may wait at a replica.
    pub queue_tokens: FileLimit,
    /// Calls that may wait at a replica.
    pub queue_requests: FileLimit,
    /// Seconds that a call may wait.
    pub queue_age: FileLimit,
    /// The share of the cache above which nobody is let in.
    pub kv_ceiling: FileLimit,
    /// Seconds after which a call that waits is given up at the gateway.
    pub request_ttl: FileLimit,
    /// The same where no replica is ready.
    pub no_endpoint_ttl: FileLimit,
    /// Seconds after which a call is given up.
    pub deadline: FileLimit,
    /// Seconds that a replica is given to finish.
    pub drain: FileLimit,
    /// Each class.
    pub classes: Vec<FileClassLimits>,
    /// Each tenant.
    pub tenants: Vec<FileTenantLimits>,
}

/// What a class may ask of a pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileClassLimits {
    /// The class.
    pub class: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// What for.
    pub feature: Option<String>,
    /// Calls a minute.
    pub rpm: FileLimit,
    /// Tokens a minute.
    pub tpm: FileLimit,
    /// Calls at once.
    pub concurrency: FileLimit,
}

/// What a tenant may ask of a pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileTenantLimits {
    /// The tenant.
    pub tenant: String,
    /// Calls a minute.
    pub rpm: FileLimit,
    /// Tokens a minute.
    pub tpm: FileLimit,
    /// Calls at once.
    pub concurrency: FileLimit,
}

/// How pools follow their demand.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileScaling {
    /// Whether it is worth having an autoscaler.
    pub advised: bool,
    /// Why, or why not.
    pub why: String,
    /// Each pool's.
    pub policies: Vec<FilePolicy>,
}

/// How a pool follows its demand.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FilePolicy {
    /// The pool.
    pub pool: String,
    /// What is looked at, in order.
    pub thresholds: Vec<FileThreshold>,
    /// The signal of demand that asks for the most replicas.
    pub leading: Option<String>,
    /// The share of the load line that replicas are steered to.
    pub demand_share: f64,
    /// Fewest replicas.
    pub min_replicas: u32,
    /// Most replicas.
    pub max_replicas: u32,
    /// Replicas by the calendar: hours of the horizon, from the start of the forecast.
    pub floors: Vec<FileFloor>,
    /// How many seconds before its hours a floor begins.
    pub floors_lead_s: f64,
    /// How replicas are added.
    pub up: FileBehaviour,
    /// How they are removed.
    pub down: FileBehaviour,
    /// How far from its threshold a signal may be for nothing to be done.
    pub tolerance_share: f64,
    /// Seconds between two decisions.
    pub sync_period_s: f64,
}

/// A signal and where more is asked for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileThreshold {
    /// `fresh_tokens`, `in_flight`, `queue_depth`, `ttft_p90` or `kv`.
    pub signal: String,
    /// `demand` or `guard`.
    pub role: String,
    /// `average_value` or `value`.
    pub kind: String,
    /// None where nothing is known.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Where it comes from.
    pub why: String,
}

/// Replicas at least, over some hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct FileFloor {
    /// From.
    pub from_hour: usize,
    /// Until.
    pub until_hour: usize,
    /// As many.
    pub replicas: u32,
}

/// How replicas are added or removed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileBehaviour {
    /// As many at once.
    pub replicas: u32,
    /// In so many seconds.
    pub period_s: f64,
    /// After demand has been so for as many seconds.
    pub stabilisation_s: f64,
    /// Why.
    pub why: String,
}

/// The demand that a plan was made for, hour by hour.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileForecast {
    /// The quantile that was planned for.
    pub quantile: f64,
    /// The beginning of the first hour.
    pub start: String,
    /// Seconds of a step.
    pub step_s: u32,
    /// Each class.
    pub classes: Vec<FileForecastClass>,
}

/// What a class was expected to ask for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileForecastClass {
    /// Its name.
    pub name: String,
    /// Calls a second.
    pub requests_per_s: FileLevels,
    /// Fresh prompt tokens a second.
    pub fresh_tokens_per_s: FileLevels,
    /// Output tokens a second.
    pub output_tokens_per_s: FileLevels,
}

/// Step by step.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileLevels {
    /// The median.
    pub p50: Vec<f64>,
    /// At the quantile that was planned for.
    pub planned: Vec<f64>,
}

/// What a resource of a forecast is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileResource {
    /// Calls a second.
    Requests,
    /// Fresh prompt tokens a second.
    FreshTokens,
    /// Output tokens a second.
    OutputTokens,
}

impl PlanFile {
    /// The load line of a pool.
    pub fn line(&self, pool: &str) -> Option<&PoolLine> {
        self.lines.iter().find(|line| line.pool == pool)
    }

    /// How a pool follows its demand.
    pub fn policy(&self, pool: &str) -> Option<&FilePolicy> {
        self.scaling.policies.iter().find(|policy| policy.pool == pool)
    }

    /// What a pool lets in.
    pub fn limits_of(&self, pool: &str) -> Option<&FileLimits> {
        self.limits.iter().find(|limits| limits.pool == pool)
    }

    /// What is expected of a pool in a step, at the median and at the quantile that was planned for; none where the step lies outside, or where stages of tasks
    /// decide how much of a class comes.
    pub fn expected(&self, pool: &str, resource: FileResource, step: usize) -> Option<(f64, f64)> {
        let line = self.line(pool)?;
        let mut sum = (0.0, 0.0);
        for own in &line.classes {
            let share = own.share?;
            let class = self.forecast.classes.iter().find(|class| class.name == own.class)?;
            let levels = match resource {
                FileResource::Requests => &class.requests_per_s,
                FileResource::FreshTokens => &class.fresh_tokens_per_s,
                FileResource::OutputTokens => &class.output_tokens_per_s,
            };
            sum.0 += share * levels.p50.get(step)?;
            sum.1 += share * levels.planned.get(step)?;
        }
        Some(sum)
    }
}
