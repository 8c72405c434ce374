//! Serving engines and their defaults, which change from version to version.

use std::fmt;
use std::str::FromStr;

use plimsoll_units::{Bytes, Fraction, Tokens};

use crate::fact::Fact;
use crate::hardware::Accelerator;

/// What an engine does by default from one version on, until the next row of the same engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// `vllm`, `sglang` or `tensorrt-llm`.
    pub name: String,
    /// The first version this describes.
    pub since: Version,
    /// How it budgets device memory.
    pub memory_rule: MemoryRule,
    /// The fraction that rule takes by default; where a reserve is given, the one for an H100.
    pub memory_fraction: Fraction,
    /// Other default fractions by device memory and group size.
    pub memory_fraction_by_devices: Vec<(Condition, Fraction)>,
    /// The absolute reserve the default fraction is computed from, where the engine does so.
    pub memory_reserve: Vec<(Condition, Reserve)>,
    /// Whether CUDA graphs are counted inside the budget.
    pub graphs_in_budget: Option<bool>,
    /// The largest batch for which graphs are captured.
    pub graph_max_seqs: Vec<DeviceDefault>,
    /// Tokens in one KV block.
    pub block_tokens: Option<Tokens>,
    /// Whether prefixes are cached.
    pub prefix_caching: Option<bool>,
    /// Whether long prompts are split over steps.
    pub chunked_prefill: Option<bool>,
    /// Above this context chunked prefill turns itself on.
    pub chunked_prefill_above_context: Option<Tokens>,
    /// Largest running batch.
    pub max_num_seqs: Vec<DeviceDefault>,
    /// Token budget of a step.
    pub max_num_batched_tokens: Vec<DeviceDefault>,
    /// Whether that budget is raised to the context length.
    pub batched_tokens_at_least_context: bool,
    /// Order of the waiting queue.
    pub scheduling: String,
    /// Whether the next step is scheduled while the last one runs.
    pub async_scheduling: Option<bool>,
    /// What the engine's own log line about KV tokens counts.
    pub printed_tokens: Option<PrintedTokens>,
    /// Bytes that the sampler of a profile run takes for each sequence and vocabulary entry, where it runs one.
    pub sampler_bytes: Option<f64>,
    /// Flags by which it refuses work, where it has any.
    pub admission_flags: Vec<String>,
    /// Source and date.
    pub fact: Fact,
}

impl Engine {
    /// The default of a list for this device: the first entry that matches.
    pub fn default_for(
        list: &[DeviceDefault],
        accelerator: &Accelerator,
        tensor_parallel: u32,
    ) -> Option<u64> {
        list.iter().find(|d| d.when.holds(accelerator, tensor_parallel)).map(|d| d.value)
    }
}

/// How an engine decides how much of a device it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryRule {
    /// A fraction of the device's total (vLLM).
    OfTotal,
    /// A static fraction for weights and KV, the rest for everything else (SGLang).
    StaticFraction,
    /// A fraction of what is left after loading (TensorRT-LLM).
    OfFree,
}

/// What the KV token count in an engine's log means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedTokens {
    /// Blocks times block size.
    Blocks,
    /// Blocks over layer groups, times block size.
    BlocksOverGroups,
    /// Largest concurrency at full context, times that context.
    ConcurrencyTimesContext,
}

/// A default that depends on the device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceDefault {
    /// When it applies.
    pub when: Condition,
    /// What it is.
    pub value: u64,
}

/// A condition on the device and its group; everything that is given must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The device has at least this memory.
    pub memory_at_least: Option<Bytes>,
    /// The device has at most this memory.
    pub memory_at_most: Option<Bytes>,
    /// The device has less memory than this.
    pub memory_below: Option<Bytes>,
    /// The group has at least this many devices.
    pub devices_at_least: Option<u64>,
    /// The tensor-parallel group is smaller than this.
    pub tensor_parallel_below: Option<u64>,
    /// The device's name contains one of these.
    pub only: Vec<String>,
    /// The device's name contains none of these.
    pub except: Vec<String>,
}

impl Condition {
    /// Whether it holds for this device in a group of this size.
    pub fn holds(&self, accelerator: &Accelerator, devices: u32) -> bool {
        let memory = accelerator.memory_total();
        let named = |parts: &[String]| {
            parts.iter().any(|part| accelerator.name.to_lowercase().contains(&part.to_lowercase()))
        };
        self.memory_at_least.is_none_or(|limit| memory >= limit)
            && self.memory_at_most.is_none_or(|limit| memory <= limit)
            && self.memory_below.is_none_or(|limit| memory < limit)
            && self.devices_at_least.is_none_or(|limit| u64::from(devices) >= limit)
            && self.tensor_parallel_below.is_none_or(|limit| u64::from(devices) < limit)
            && (self.only.is_empty() || named(&self.only))
            && !named(&self.except)
    }
}

/// Memory kept free: a sum of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserve {
    /// Always.
    pub base: Bytes,
    /// For each device of the group.
    pub per_device: Bytes,
    /// For each token of a prefill chunk.
    pub per_chunk_token: Bytes,
    /// For each sequence that graphs are captured for.
    pub per_graph_seq: Bytes,
    /// Not less than this.
    pub at_least: Bytes,
}

/// `0.24` or `0.20.1`: up to three numbers, missing ones zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

/// Not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version such as `0.24` or `0.20.1`")]
pub struct VersionError(String);

impl FromStr for Version {
    type Err = VersionError;

    /// Accepts a leading `v`, and ignores what follows the numbers (`.post5`, `rc2`).
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let mut numbers = [0; 3];
        let mut read = 0;
        let trimmed = text.strip_prefix('v').unwrap_or(text);
        for part in trimmed.split('.').take(3) {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            let Ok(number) = digits.parse() else { break };
            numbers[read] = number;
            read += 1;
            if digits.len() < part.len() {
                break;
            }
        }
        if read == 0 { Err(VersionError(text.to_owned())) } else { Ok(Self(numbers)) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        f.pad(&if patch == 0 {
            format!("{major}.{minor}")
        } else {
            format!("{major}.{minor}.{patch}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let v = |text: &str| text.parse::<Version>().unwrap();
        assert!(v("0.9") < v("0.10") && v("0.20") < v("0.20.1") && v("1.0") > v("0.99"));
        assert_eq!(v("v0.4.6.post5"), v("0.4.6"));
        assert_eq!(v("0.28.0rc2"), v("0.28"));
        assert_eq!(v("0.24").to_string(), "0.24");
        assert!("newest".parse::<Version>().is_err());
    }
}
