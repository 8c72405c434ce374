//! Our step times against published measurements.

use plimsoll_fleet::{Architecture, Catalog, Engine, Version};
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Constant, Term, step};
use plimsoll_units::{Bytes, Tokens};

use serde::Serialize;

use crate::fit::{FitInput, fit};
use crate::measured::{Latency, Load};
use crate::pool::{PoolSteps, pool_steps};
use crate::steady::{Steady, SteadyInput, steady};

/// A published measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct PerformanceCase {
    /// Its name.
    pub id: String,
    /// Who published it.
    pub source: String,
    /// What the prediction may see.
    pub inputs: PerformanceInputs,
    /// What it may not.
    pub observed: PerformanceObserved,
    /// What is known about its worth.
    pub tags: Vec<String>,
}

/// What was run.
#[derive(Clone, Debug, PartialEq)]
pub struct PerformanceInputs {
    /// The engine as published.
    pub engine: String,
    /// Its version as published.
    pub version: Option<String>,
    /// The model's name.
    pub model: String,
    /// The key of its shape.
    pub arch: String,
    /// How weights are stored.
    pub precision: Option<String>,
    /// How cached numbers are stored.
    pub kv_precision: Option<String>,
    /// The accelerator's name.
    pub accelerator: String,
    /// Devices in all.
    pub devices: u64,
    /// Tensor parallelism.
    pub tensor: Option<u64>,
    /// Pipeline parallelism.
    pub pipeline: u64,
    /// Expert parallelism.
    pub expert: u64,
    /// Copies of the attention that share the experts.
    pub attention_replicas: u64,
    /// Mean prompt tokens.
    pub prompt: Option<f64>,
    /// Mean output tokens.
    pub output: Option<f64>,
    /// How requests were offered.
    pub load: Load,
    /// Whether the load is the running batch itself, kept full by a queue.
    pub saturated: bool,
    /// Requests in all.
    pub requests: Option<f64>,
    /// Where lengths come from.
    pub workload: String,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct PerformanceObserved {
    /// Time to the first token.
    pub ttft: Latency,
    /// A request's mean gap between tokens.
    pub tpot: Latency,
    /// Gaps between tokens.
    pub itl: Latency,
    /// Generated tokens per second over all devices.
    pub output_tokens_per_s: Option<f64>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The mean gap between tokens, or the median one where only that was published.
    Tpot,
    /// Time to the first token.
    Ttft,
    /// Generated tokens per second.
    OutputRate,
}

/// A measured number that a prediction can be held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Which.
    pub metric: Metric,
    /// Its value: seconds, or tokens per second.
    pub measured: f64,
    /// Whether it is a median of gaps, which steps with prompts do not move.
    pub median_gap: bool,
    /// Whether its source is good enough to be judged by.
    pub scored: bool,
}

impl PerformanceCase {
    /// Whether it carries a tag, with or without a value behind a colon.
    pub fn is_tagged(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t.split(':').next() == Some(tag))
    }

    /// What can be compared. Guessed tokens per step make gaps that are no step times; a load on an unknown number of replicas makes
    /// latencies that belong to no load; a prefix cache makes first tokens that are too good.
    pub fn targets(&self) -> Vec<Target> {
        let spoilt = self.is_tagged("spec_decode")
            || self.is_tagged("mtp")
            || self.is_tagged("replicas_unknown");
        let seen = &self.observed;
        let mut targets = Vec::new();
        let serving = matches!(self.inputs.load, Load::Concurrency(_) | Load::Rate(_));
        let gap = (seen.tpot.centre().or(seen.itl.mean).map(|s| (s, false)))
            .or(seen.itl.p50.map(|s| (s, true)));
        if let (true, Some((measured, median_gap))) = (serving, gap) {
            targets.push(Target { metric: Metric::Tpot, measured, median_gap, scored: !spoilt });
        }
        let batch = matches!(self.inputs.load, Load::AllAtOnce | Load::StaticBatch(_));
        if let (true, Some(measured)) = (batch, seen.output_tokens_per_s) {
            let scored = !spoilt && !self.is_tagged("throughput_basis_uncertain");
            let (metric, median_gap) = (Metric::OutputRate, false);
            targets.push(Target { metric, measured, median_gap, scored });
        }
        if let Some(measured) = seen.ttft.centre() {
            let early = self.is_tagged("ttft_suspect") || self.is_tagged("prefix_cache_on");
            let (metric, median_gap) = (Metric::Ttft, false);
            targets.push(Target { metric, measured, median_gap, scored: !spoilt && !early });
        }
        targets
    }
}

/// A case ready to be predicted with any values of the constants.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its step times.
    pub pool: PoolSteps,
    /// Its load and limits.
    pub steady: SteadyInput,
    /// Replicas behind the load.
    pub replicas: f64,
    /// Whether requests came through a server: one, or zero for a batch handed to the engine.
    pub path: f64,
}

impl Prepared {
    /// The rows of constants that its time depends on: not those of kernels that its model does not have.
    pub fn rows(&self) -> Vec<usize> {
        let work = &self.pool.work;
        let used = Term::ALL.into_iter().filter(|term| match term {
            Term::GemmFlops | Term::GemmBytes => work.quantised.bytes > 0.0,
            Term::PathSeconds => self.path > 0.0,
            // No mean depends on them.
            Term::PathTokenSeconds
            | Term::LaunchSeconds
            | Term::LaunchSequenceSeconds
            | Term::UnevenShare => false,
            term => work.uses(*term),
        });
        let mut rows: Vec<usize> =
            used.map(|term| self.pool.selection.terms[term as usize]).collect();
        rows.extend(self.pool.selection.plain);
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// What a target should be, with these values of the constants.
    pub fn predicted(&self, target: &Target, values: &[f64]) -> f64 {
        let state = self.predict(values);
        match target.metric {
            Metric::Tpot if target.median_gap => state.itl_p50,
            Metric::Tpot => state.tpot,
            Metric::Ttft => state.ttft,
            Metric::OutputRate => state.output_rate * self.replicas,
        }
    }

    /// The steady state with these values of the constants.
    pub fn predict(&self, values: &[f64]) -> Steady {
        let rates = self.pool.rates(values);
        let input = SteadyInput {
            path: rates.get(Term::PathSeconds) * self.path,
            wave: rates.get(Term::WaveShare),
            ..self.steady
        };
        steady(&input, &|batch| step(&self.pool.work, &rates, batch).total())
    }
}

/// Looks up what a case names, or says what is not known.
pub fn prepare(
    inputs: &PerformanceInputs,
    catalog: &Catalog,
    constants: &[Constant],
) -> Result<Prepared, String> {
    let model = catalog
        .model(&inputs.arch)
        .or_else(|_| catalog.model(&inputs.model))
        .map_err(|_| format!("the catalogue does not know the shape `{}`", inputs.arch))?;
    let model: &Architecture = &model.architecture;
    let accelerator = catalog.accelerator(&inputs.accelerator).map_err(|_| {
        format!("the catalogue does not know the accelerator `{}`", inputs.accelerator)
    })?;
    let engine = engine_row(&inputs.engine, inputs.version.as_deref(), catalog)?;
    let tensor = inputs.tensor.ok_or("how devices share the model is not published")?;
    let written = inputs.precision.as_deref().ok_or("the precision is not published")?;
    let format = format(written)?;
    let kv_element_bytes = match inputs.kv_precision.as_deref() {
        Some(text) if text.contains("fp8") => 1,
        Some(_) => 2,
        // TensorRT-LLM takes what the checkpoint says, and the quantised ones it is benchmarked with say fp8.
        None if engine.name == "tensorrt-llm" && matches!(written, "fp8" | "nvfp4") => 1,
        None => 2,
    };
    let copies = inputs.attention_replicas.max(1);
    let inside = (tensor * inputs.pipeline).max(inputs.expert);
    let replicas = (inputs.devices / (inside.max(tensor * copies)).max(1)).max(1);
    let placement =
        Placement { tensor, pipeline: inputs.pipeline, expert: inputs.expert, context: 1 };
    // Only the source with running batches leaves prompts out; its contexts are then its outputs alone, which is too little and said in the
    // documentation rather than guessed at.
    let prompt = inputs.prompt.unwrap_or(1.0);
    let output = inputs.output.ok_or("the output length is not published")?;
    let longest = Tokens::new((2.0 * (prompt + output)).ceil() as u64);
    let asked = FitInput {
        name: inputs.model.clone(),
        model,
        accelerator,
        engine,
        placement,
        format,
        kv_element_bytes,
        device: None,
        fraction: None,
        max_model_len: Some(longest),
        // TensorRT-LLM before 1.0 fixes its limits when an engine is built; these are the defaults of its builder from 1.0 on.
        max_num_seqs: engine.max_num_seqs.is_empty().then_some(2048),
        max_num_batched_tokens: engine
            .max_num_batched_tokens
            .is_empty()
            .then_some(Tokens::new(8192)),
        // Blocks only round; no case says how large they were.
        block_tokens: Some(Tokens::new(16)),
        eager: false,
        lora: None,
        margin: Bytes::ZERO,
        speculation: None,
        prefix_caching: None,
        contexts: Vec::new(),
    };
    let budget = fit(&asked).map_err(|e| e.to_string())?;
    let pool = pool_steps(&asked, &budget, copies, constants)?;
    let load = match inputs.load {
        Load::Concurrency(clients) => Load::Concurrency(clients / replicas as f64),
        Load::Rate(rate) => Load::Rate(rate / replicas as f64),
        // Fewer requests than could run at once: one batch from beginning to end.
        Load::AllAtOnce => match inputs.requests {
            Some(requests) if requests <= budget.max_num_seqs as f64 => Load::StaticBatch(requests),
            _ => Load::AllAtOnce,
        },
        other => other,
    };
    let seqs = if inputs.saturated { f64::INFINITY } else { budget.max_num_seqs as f64 };
    let steady = SteadyInput {
        load,
        prompt,
        cached: 0.0,
        output,
        max_num_seqs: seqs * copies as f64,
        budget: budget.max_num_batched_tokens as f64 * copies as f64,
        kv_tokens: if inputs.saturated {
            f64::INFINITY
        } else {
            budget.kv_tokens as f64 * copies as f64
        },
        reserves_output: engine.name == "tensorrt-llm",
        path: 0.0,
        wave: 0.0,
    };
    // A batch handed to the engine takes no way in.
    let path = f64::from(u8::from(!matches!(inputs.load, Load::StaticBatch(_))));
    Ok(Prepared { pool, steady, replicas: replicas as f64, path })
}

/// The row of the engine and version; forks are taken as the engine they name.
fn engine_row<'a>(
    name: &str,
    version: Option<&str>,
    catalog: &'a Catalog,
) -> Result<&'a Engine, String> {
    let lower = name.to_lowercase();
    let known = [("vllm", "vllm"), ("sglang", "sglang"), ("tensorrt", "tensorrt-llm")];
    let (_, own) = known
        .into_iter()
        .find(|(word, _)| lower.contains(word))
        .ok_or_else(|| format!("`{name}` is no engine known here"))?;
    let digits = version.unwrap_or("").trim_start_matches(|c: char| !c.is_ascii_digit());
    let version: Option<Version> = digits.parse().ok();
    let rows: Vec<&Engine> = catalog.engines.iter().filter(|e| e.name == own).collect();
    let by_version =
        rows.iter().filter(|e| version.is_none_or(|v| e.since <= v)).max_by_key(|e| e.since);
    let oldest = rows.iter().min_by_key(|e| e.since).ok_or("the catalogue has no such engine")?;
    Ok(by_version.unwrap_or(oldest))
}

fn format(written: &str) -> Result<Format, String> {
    Ok(match written {
        "bf16" | "fp16" => Format::Bf16,
        "fp8" => Format::Fp8Channel,
        "nvfp4" => Format::Nvfp4,
        "mxfp4" => Format::Mxfp4,
        "int4" => Format::Int4,
        other => return Err(format!("`{other}` is no storage of weights known here")),
    })
}
