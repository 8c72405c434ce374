//! Our predictions against what engines logged.

use plimsoll_fleet::{Accelerator, Architecture, Catalog, Engine, Fact, Interconnect, Version};
use plimsoll_memory::{Format, Placement};
use plimsoll_units::{Bytes, BytesPerSecond, Fraction, Tokens};
use serde::Serialize;

use crate::fit::{Fit, FitInput, fit};

/// A logged capacity.
#[derive(Clone, Debug)]
pub struct MemoryCase {
    /// Its name.
    pub id: String,
    /// Whether its inputs are known well enough to be judged by.
    pub scored: bool,
    /// What the prediction may see.
    pub inputs: MemoryInputs,
    /// What it may not.
    pub observed: MemoryObserved,
    /// Whether the logged token count is the engine's newer or grouped one; picks which of our two is compared.
    pub counts_concurrency: bool,
}

/// What an engine was started with.
#[derive(Clone, Debug)]
pub struct MemoryInputs {
    /// Such as `vllm`.
    pub engine: String,
    /// As the log says.
    pub version: String,
    /// `V0` or `V1` for vLLM.
    pub generation: String,
    /// The model's name.
    pub model: String,
    /// The architecture's key.
    pub arch: String,
    /// The architecture as the file describes it, or why it describes none.
    pub architecture: Result<Architecture, String>,
    /// Weights, as the file says it.
    pub weights: String,
    /// KV numbers, as the file says it.
    pub kv_dtype: String,
    /// The device's name.
    pub accelerator: String,
    /// Its total memory.
    pub device: Bytes,
    /// Tensor parallelism.
    pub tensor: u64,
    /// Pipeline parallelism.
    pub pipeline: u64,
    /// Decode context parallelism.
    pub context: u64,
    /// Whether experts are shared whole.
    pub expert_parallel: bool,
    /// The engine's memory fraction.
    pub fraction: Fraction,
    /// Longest context.
    pub max_model_len: Option<Tokens>,
    /// Token budget.
    pub max_num_batched_tokens: Option<Tokens>,
    /// Largest batch.
    pub max_num_seqs: Option<u64>,
    /// No graphs.
    pub eager: bool,
    /// KV block.
    pub block_tokens: Option<Tokens>,
    /// Tokens guessed a step, where draft layers are loaded.
    pub speculation: Option<u64>,
}

/// What the engine logged.
#[derive(Clone, Copy, Debug)]
pub struct MemoryObserved {
    /// KV memory per device.
    pub kv_bytes: Option<Bytes>,
    /// KV tokens.
    pub kv_tokens: Option<Tokens>,
    /// It refused to start.
    pub refused: bool,
}

/// All cases with their errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryValidation {
    /// Always `memory`.
    pub suite: &'static str,
    /// One by one.
    pub cases: Vec<MemoryOutcome>,
    /// Over the scored ones.
    pub summary: MemorySummary,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryOutcome {
    /// Its name.
    pub id: String,
    /// Whether it counts.
    pub scored: bool,
    /// What is compared.
    pub unit: &'static str,
    /// What was logged; none where the engine refused.
    pub measured: Option<f64>,
    /// What we say; none where nothing could be said.
    pub predicted: Option<f64>,
    /// Predicted against measured.
    pub error_pct: Option<f64>,
    /// Whether we say that it starts, and whether it did.
    pub fits: Option<bool>,
    /// Whether the engine started.
    pub started: bool,
    /// Where the shape was taken from.
    pub shape_from: &'static str,
    /// The parts of the prediction.
    pub parts: Option<Fit>,
    /// Why nothing could be said.
    pub skipped: Option<String>,
}

/// The scored cases together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemorySummary {
    /// How many.
    pub scored: usize,
    /// Median of the absolute errors.
    pub median_abs_pct: Option<f64>,
    /// 90th percentile, nearest rank.
    pub p90_abs_pct: Option<f64>,
    /// The worst.
    pub max_abs_pct: Option<f64>,
    /// Scored cases of which nothing could be said; each counts as an error of 100%.
    pub skipped: usize,
    /// Scored cases off by more than 15%.
    pub misses: Vec<String>,
    /// Refused starts that we call so, of all of them.
    pub refusals_right: usize,
    /// Refused starts.
    pub refusals: usize,
}

/// Predicts every case from its inputs alone.
pub fn validate_memory(cases: &[MemoryCase], catalog: &Catalog) -> MemoryValidation {
    let cases: Vec<MemoryOutcome> = cases.iter().map(|case| outcome(case, catalog)).collect();
    // A scored case that nothing could be said of counts as wholly wrong: it must not flatter the rest.
    let scored = cases.iter().filter(|c| c.scored);
    let mut errors: Vec<f64> = scored.map(|c| c.error_pct.map_or(100.0, f64::abs)).collect();
    errors.sort_by(f64::total_cmp);
    let rank = |p: f64| {
        let i = (p * errors.len() as f64).ceil() as usize;
        errors.get(i.saturating_sub(1)).copied()
    };
    let median = (!errors.is_empty()).then(|| plimsoll_stats::quantile_of_sorted(&errors, 0.5));
    let off = |c: &&MemoryOutcome| c.scored && c.error_pct.is_none_or(|e| e.abs() > 15.0);
    let refused: Vec<&MemoryOutcome> = cases.iter().filter(|c| !c.started).collect();
    let summary = MemorySummary {
        scored: cases.iter().filter(|c| c.scored).count(),
        median_abs_pct: median,
        p90_abs_pct: rank(0.9),
        max_abs_pct: errors.last().copied(),
        skipped: cases.iter().filter(|c| c.scored && c.error_pct.is_none()).count(),
        misses: cases.iter().filter(off).map(|c| c.id.clone()).collect(),
        refusals_right: refused.iter().filter(|c| c.fits == Some(false)).count(),
        refusals: refused.len(),
    };
    MemoryValidation { suite: "memory", cases, summary }
}

fn outcome(case: &MemoryCase, catalog: &Catalog) -> MemoryOutcome {
    let (unit, measured) = match (case.observed.kv_tokens, case.observed.kv_bytes) {
        (Some(tokens), _) => ("tokens", Some(tokens.get() as f64)),
        (None, Some(bytes)) => ("bytes", Some(bytes.get() as f64)),
        (None, None) => ("bytes", None),
    };
    let (shape_from, predicted) = match shape(&case.inputs, catalog) {
        Ok((from, model)) => (from, predict(&case.inputs, &model, catalog)),
        Err(error) => ("nowhere", Err(error)),
    };
    let value = predicted.as_ref().ok().map(|fit| match unit {
        "tokens" if case.counts_concurrency => fit.printed_kv_tokens as f64,
        "tokens" => fit.kv_tokens as f64,
        _ => fit.available_kv_bytes as f64,
    });
    let error_pct = match (value, measured) {
        (Some(p), Some(m)) if m > 0.0 => Some((p / m - 1.0) * 100.0),
        _ => None,
    };
    MemoryOutcome {
        id: case.id.clone(),
        scored: case.scored && !case.observed.refused,
        unit,
        measured,
        predicted: value,
        error_pct,
        fits: predicted.as_ref().ok().map(|fit| fit.fits),
        started: !case.observed.refused,
        shape_from,
        skipped: predicted.as_ref().err().cloned(),
        parts: predicted.ok(),
    }
}

/// The catalogue's shape where it knows the model, otherwise the file's own.
fn shape(inputs: &MemoryInputs, catalog: &Catalog) -> Result<(&'static str, Architecture), String> {
    if let Ok(model) = catalog.model(&inputs.model).or_else(|_| catalog.model(&inputs.arch)) {
        return Ok(("catalogue", model.architecture.clone()));
    }
    inputs.architecture.clone().map(|own| ("case", own))
}

fn predict(inputs: &MemoryInputs, model: &Architecture, catalog: &Catalog) -> Result<Fit, String> {
    let engine = engine_row(inputs, catalog)?;
    let accelerator = device(inputs, catalog);
    let experts = if inputs.expert_parallel { inputs.tensor } else { 1 };
    let input = FitInput {
        name: inputs.model.clone(),
        model,
        accelerator: &accelerator,
        engine: &engine,
        placement: Placement {
            tensor: inputs.tensor,
            pipeline: inputs.pipeline,
            expert: experts,
            context: inputs.context,
        },
        format: format(&inputs.weights)?,
        kv_element_bytes: match inputs.kv_dtype.to_lowercase().as_str() {
            text if text.contains("fp8")
                || text.contains("int8")
                || text.contains("e4m3")
                || text.contains("e5m2") =>
            {
                1
            }
            text if text.contains("16") || text == "auto" => 2,
            text => return Err(format!("`{text}` is no storage of KV known here")),
        },
        device: Some(inputs.device),
        fraction: Some(inputs.fraction),
        // A log that names no context, of a model that names none: 32,768 decides nothing but the profile of old versions.
        max_model_len: inputs.max_model_len.or(model.context_max).or(Some(Tokens::new(32_768))),
        max_num_seqs: inputs.max_num_seqs,
        max_num_batched_tokens: inputs.max_num_batched_tokens,
        block_tokens: inputs.block_tokens,
        eager: inputs.eager,
        lora: None,
        margin: Bytes::ZERO,
        speculation: inputs.speculation,
        prefix_caching: None,
        contexts: Vec::new(),
    };
    fit(&input).map_err(|e| e.to_string())
}

/// The row of the engine and version; forks are taken as the engine they name.
fn engine_row(inputs: &MemoryInputs, catalog: &Catalog) -> Result<Engine, String> {
    let name = inputs.engine.to_lowercase();
    let name = ["vllm", "sglang", "tensorrt-llm"].into_iter().find(|known| name.contains(known));
    let name = name.ok_or_else(|| format!("`{}` is no engine known here", inputs.engine))?;
    let digits: &str = inputs.version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let version: Option<Version> = digits.parse().ok();
    let rows: Vec<&Engine> = catalog.engines.iter().filter(|e| e.name == name).collect();
    let oldest = rows.iter().min_by_key(|e| e.since).ok_or("the catalogue has no such engine")?;
    // A year where a version should be, or one older than any row: the generation decides.
    let by_version =
        rows.iter().filter(|e| version.is_some_and(|v| e.since <= v)).max_by_key(|e| e.since);
    let row = by_version.unwrap_or(oldest);
    let old = |e: &Engine| e.batched_tokens_at_least_context;
    let row = match inputs.generation.as_str() {
        // The old scheduler outlived the version that replaced it as the default.
        "V0" if !old(row) => rows.iter().filter(|e| old(e)).max_by_key(|e| e.since).unwrap_or(row),
        "V1" if old(row) => rows.iter().filter(|e| !old(e)).min_by_key(|e| e.since).unwrap_or(row),
        _ => row,
    };
    Ok((*row).clone())
}

/// The catalogue's device, or one of which only name and memory are known.
fn device(inputs: &MemoryInputs, catalog: &Catalog) -> Accelerator {
    if let Ok(known) = catalog.accelerator(&inputs.accelerator) {
        return known.clone();
    }
    Accelerator {
        name: inputs.accelerator.clone(),
        aliases: Vec::new(),
        vendor: String::new(),
        architecture: String::new(),
        memory: inputs.device,
        memory_reported: Some(inputs.device),
        memory_reported_source: None,
        bandwidth: BytesPerSecond::ZERO,
        peaks: Vec::new(),
        interconnect: Interconnect { name: String::new(), bandwidth: None, devices: None },
        pcie: None,
        power: None,
        confidence: "case".to_owned(),
        fact: Fact { source: "the case".to_owned(), as_of: String::new(), note: None },
    }
}

fn format(written: &str) -> Result<Format, String> {
    let text = written.to_lowercase();
    let has = |word: &str| text.contains(word);
    Ok(match () {
        () if has("mxfp4") => Format::Mxfp4,
        () if has("nvfp4") => Format::Nvfp4,
        () if has("nf4") || has("bnb") => Format::Nf4,
        () if has("int4") || has("awq") || has("gptq") => Format::Int4,
        () if has("int8") => Format::Int8,
        () if has("fp8") && has("block") => Format::Fp8Block,
        () if has("fp8") => Format::Fp8Channel,
        () if has("bf16") || has("fp16") || has("float16") => Format::Bf16,
        () => return Err(format!("`{written}` is no storage of weights known here")),
    })
}
