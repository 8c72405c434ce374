//! `fit`: what a pool's device memory is spent on, and how much context is left.

use plimsoll_fleet::{Accelerator, Architecture, Engine, MemoryRule, PrintedTokens};
use plimsoll_memory::{
    Bookkeeping, Budget, Format, Kind, KvLayout, MemoryError, Placement, Printed, Setup, budget,
};
use plimsoll_sim::Kv;
use plimsoll_stats::{Seed, quantile_of_sorted};
use plimsoll_units::{Bytes, Fraction, Tokens};
use plimsoll_workload::{Class, Shift};
use serde::Serialize;

use crate::review::Provenance;

/// What decides the budget of a pool; what is absent is the engine's default.
#[derive(Clone, Debug)]
pub struct FitInput<'a> {
    /// What tables call it.
    pub name: String,
    /// The model.
    pub model: &'a Architecture,
    /// The device.
    pub accelerator: &'a Accelerator,
    /// The engine at its version.
    pub engine: &'a Engine,
    /// How a replica is spread.
    pub placement: Placement,
    /// How weights are stored.
    pub format: Format,
    /// Bytes of a cached number.
    pub kv_element_bytes: u64,
    /// The device's total, where it is known better than by the catalogue.
    pub device: Option<Bytes>,
    /// The fraction the engine may use.
    pub fraction: Option<Fraction>,
    /// Longest accepted context.
    pub max_model_len: Option<Tokens>,
    /// Largest running batch.
    pub max_num_seqs: Option<u64>,
    /// Token budget of a step.
    pub max_num_batched_tokens: Option<Tokens>,
    /// Tokens in a KV block.
    pub block_tokens: Option<Tokens>,
    /// No graphs are captured.
    pub eager: bool,
    /// Adapters and their rank.
    pub lora: Option<(u64, u64)>,
    /// Memory that nobody may use.
    pub margin: Bytes,
    /// Tokens guessed a step by the model's extra prediction layers.
    pub speculation: Option<u64>,
    /// Whether prefixes are cached; the engine's default where absent.
    pub prefix_caching: Option<bool>,
    /// Contexts of the classes that are served: name, median, 95th percentile and largest drawn.
    pub contexts: Vec<ClassContext>,
}

/// How long the contexts of a class are, prompt and output together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassContext {
    /// The class.
    pub class: String,
    /// Half are shorter.
    pub p50: Tokens,
    /// One in twenty is longer.
    pub p95: Tokens,
    /// The longest drawn.
    pub max: Tokens,
}

/// Contexts of a class's requests, drawn: 4,096 tasks, prompt and output of each request together.
pub fn class_context(class: &Class, seed: Seed) -> Option<ClassContext> {
    let mut stream = seed.stream(&format!("contexts/{}", class.name));
    let mut contexts = Vec::new();
    for _ in 0..4096 {
        class.task.draw(&Shift::NONE, &mut stream, |request| {
            contexts.push((request.prompt + request.output).get() as f64);
        });
    }
    contexts.sort_by(f64::total_cmp);
    let max = *contexts.last()?;
    let at = |p: f64| Tokens::new(quantile_of_sorted(&contexts, p).round() as u64);
    Some(ClassContext {
        class: class.name.clone(),
        p50: at(0.5),
        p95: at(0.95),
        max: Tokens::new(max as u64),
    })
}

/// Why there is no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// The model cannot be spread like this.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The engine's own default is not known.
    #[error(
        "the catalogue does not know the default `{field}` of {engine} {since} on {accelerator}"
    )]
    NoDefault {
        /// Which.
        field: &'static str,
        /// The engine.
        engine: String,
        /// The version its row begins with.
        since: String,
        /// The device.
        accelerator: String,
    },
    /// The engine has no loader for the format.
    #[error("{engine} loads no weights in {format}")]
    Format {
        /// The engine.
        engine: String,
        /// The format.
        format: &'static str,
    },
    /// The model's configuration names no context.
    #[error("the model does not say how long its contexts may be")]
    NoContext,
}

/// The memory budget of one pool. Bytes are per device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// What tables call it.
    pub name: String,
    /// Whether weights and overheads leave room for one sequence of the longest context.
    pub fits: bool,
    /// Devices of one replica.
    pub devices: u64,
    /// The device's total.
    pub device_bytes: u64,
    /// All weights.
    pub weights_bytes: u64,
    /// KV of one token over all layers, padding included.
    pub kv_bytes_per_token: u64,
    /// What is left for KV.
    pub available_kv_bytes: u64,
    /// Context tokens a replica holds, in sequences of the longest context.
    pub kv_tokens: u64,
    /// What the engine's version prints.
    pub printed_kv_tokens: u64,
    /// Sequences of the longest context that fit at once.
    pub max_concurrency_at_max_len: f64,
    /// What is missing, where it does not fit.
    pub missing_bytes: u64,
    /// Recurrent state of one sequence.
    pub state_bytes_per_sequence: u64,
    /// Longest accepted context.
    pub max_model_len_tokens: u64,
    /// Its KV blocks, as an engine hands them out.
    #[serde(skip)]
    pub kv: Kv,
    /// Whether prefixes are cached.
    #[serde(skip)]
    pub prefix_caching: bool,
    /// Largest running batch.
    pub max_num_seqs: u64,
    /// Token budget of a step.
    pub max_num_batched_tokens: u64,
    /// The fraction the engine may use.
    pub memory_fraction: f64,
    /// Context tokens that one more GiB of a device would hold.
    pub tokens_per_gib: u64,
    /// Where the memory goes; sums to the device exactly.
    pub budget: Vec<BudgetLine>,
    /// How many requests of each class fit at once.
    pub contexts: Vec<ContextFit>,
    /// Where it does not fit: single changes that would, smallest first.
    pub would_fit: Vec<Change>,
    /// What an engine's log says, beside what is predicted.
    pub observed: Vec<ObservedLine>,
}

/// One line of an engine's log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObservedLine {
    /// What it speaks of.
    pub name: &'static str,
    /// `bytes`, `tokens`, or none for a refusal.
    pub unit: Option<&'static str>,
    /// As logged.
    pub observed: Option<u64>,
    /// As predicted.
    pub predicted: Option<u64>,
    /// Predicted against observed.
    pub error_pct: Option<f64>,
    /// The line itself, where the engine refuses or runs out.
    pub refusal: Option<String>,
    /// Always observed.
    pub provenance: Provenance,
}

impl ObservedLine {
    /// An amount beside its prediction.
    pub fn new(name: &'static str, unit: &'static str, observed: u64, predicted: u64) -> Self {
        let error = (predicted as f64 / observed as f64 - 1.0) * 100.0;
        Self {
            name,
            unit: Some(unit),
            observed: Some(observed),
            predicted: Some(predicted),
            error_pct: (observed > 0).then_some(error),
            refusal: None,
            provenance: Provenance::Observed,
        }
    }

    /// A line in which the engine refuses or runs out.
    pub fn refusal(line: String) -> Self {
        let (unit, observed, predicted, error_pct) = (None, None, None, None);
        let provenance = Provenance::Observed;
        Self {
            name: "refusal",
            unit,
            observed,
            predicted,
            error_pct,
            refusal: Some(line),
            provenance,
        }
    }
}

/// How many requests of a class fit at once, by the length of their contexts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContextFit {
    /// The class.
    pub class: String,
    /// Median context.
    pub context_p50_tokens: u64,
    /// Requests of that length that fit.
    pub concurrency_p50: u64,
    /// 95th percentile.
    pub context_p95_tokens: u64,
    /// Requests of that length that fit.
    pub concurrency_p95: u64,
    /// The longest drawn.
    pub context_max_tokens: u64,
    /// Requests of that length that fit.
    pub concurrency_max: u64,
}

/// A change that would make it fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What to write instead.
    pub change: String,
    /// Context tokens a replica would then hold.
    pub kv_tokens: u64,
}

/// One line of the budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BudgetLine {
    /// What it is for.
    pub name: &'static str,
    /// How much; below zero only for what is missing.
    pub bytes: i64,
    /// Computed exactly from the shapes the user or catalogue supplied, or modelled.
    pub provenance: Provenance,
}

/// The budget of a pool, with what would make it fit where it does not.
pub fn fit(input: &FitInput<'_>) -> Result<Fit, FitError> {
    let mut result = fit_as_is(input)?;
    if !result.fits {
        result.would_fit = changes(input, &result);
    }
    Ok(result)
}

/// Single changes that make it fit, in the order in which people would rather make them.
fn changes(input: &FitInput<'_>, now: &Fit) -> Vec<Change> {
    let mut tried: Vec<(String, FitInput<'_>)> = Vec::new();
    let mut seqs = now.max_num_seqs / 2;
    while seqs >= 8 {
        tried.push((
            format!("max_num_seqs = {seqs}"),
            FitInput { max_num_seqs: Some(seqs), ..input.clone() },
        ));
        seqs /= 2;
    }
    if input.kv_element_bytes > 1 {
        tried.push((
            "kv_dtype = \"fp8\"".to_owned(),
            FitInput { kv_element_bytes: 1, ..input.clone() },
        ));
    }
    let mut len = now.max_model_len_tokens / 2;
    while len >= 2048 {
        let shorter = FitInput { max_model_len: Some(Tokens::new(len)), ..input.clone() };
        tried.push((format!("max_model_len = {len}"), shorter));
        len /= 2;
    }
    if input.format == Format::Bf16 {
        tried.push((
            "weights = \"fp8\"".to_owned(),
            FitInput { format: Format::Fp8Channel, ..input.clone() },
        ));
        tried.push((
            "weights = \"int4\"".to_owned(),
            FitInput { format: Format::Int4, ..input.clone() },
        ));
    }
    let most = u64::from(input.accelerator.interconnect.devices.unwrap_or(1)).min(64);
    let mut tensor = input.placement.tensor.saturating_mul(2);
    while tensor <= most {
        let placement = Placement { tensor, ..input.placement };
        tried
            .push((format!("tensor_parallel = {tensor}"), FitInput { placement, ..input.clone() }));
        tensor *= 2;
    }
    // Where no single change is enough: more devices and fewer bits, then more nodes.
    let many = Placement { tensor: most.max(input.placement.tensor), ..input.placement };
    let fp8 = if input.format == Format::Bf16 { Format::Fp8Channel } else { input.format };
    let wide = FitInput { placement: many, format: fp8, kv_element_bytes: 1, ..input.clone() };
    let bits = if fp8 == input.format { "" } else { ", weights = \"fp8\"" };
    let mut last_resorts = vec![(
        format!("tensor_parallel = {}{bits}, kv_dtype = \"fp8\"", many.tensor),
        wide.clone(),
    )];
    for pipeline in [2, 4, 8] {
        let placement = Placement { pipeline, ..many };
        let text = format!(
            "pipeline_parallel = {pipeline}, tensor_parallel = {}{bits}, kv_dtype = \"fp8\"",
            many.tensor
        );
        last_resorts.push((text, FitInput { placement, ..wide.clone() }));
    }
    let singles = tried.len();
    tried.extend(last_resorts);
    let mut found: Vec<Change> = Vec::new();
    for (i, (change, input)) in tried.into_iter().enumerate() {
        if i >= singles && !found.is_empty() {
            break;
        }
        // Of one kind of change only the smallest that works is worth saying.
        let kind = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        if found.iter().any(|f| kind(&f.change) == kind(&change)) {
            continue;
        }
        if let Ok(fit) = fit_as_is(&input)
            && fit.fits
        {
            found.push(Change { change, kv_tokens: fit.kv_tokens });
        }
    }
    found
}

fn fit_as_is(input: &FitInput<'_>) -> Result<Fit, FitError> {
    let engine = input.engine;
    // bitsandbytes is a library of the PyTorch engines.
    if input.format == Format::Nf4 && engine.memory_rule == MemoryRule::OfFree {
        return Err(FitError::Format { engine: engine.name.clone(), format: "nf4 (bitsandbytes)" });
    }
    let devices = u32::try_from(input.placement.tensor).unwrap_or(u32::MAX);
    let missing = |field| FitError::NoDefault {
        field,
        engine: engine.name.clone(),
        since: engine.since.to_string(),
        accelerator: input.accelerator.name.clone(),
    };
    let default = |list| Engine::default_for(list, input.accelerator, devices);
    let max_num_seqs = input
        .max_num_seqs
        .or_else(|| default(&engine.max_num_seqs))
        .ok_or_else(|| missing("max_num_seqs"))?;
    let max_model_len =
        input.max_model_len.or(input.model.context_max).ok_or(FitError::NoContext)?;
    let step = input
        .max_num_batched_tokens
        .or_else(|| default(&engine.max_num_batched_tokens).map(Tokens::new));
    let mut step = step.ok_or_else(|| missing("max_num_batched_tokens"))?;
    if input.max_num_batched_tokens.is_none() && engine.batched_tokens_at_least_context {
        let chunked =
            engine.chunked_prefill_above_context.is_some_and(|above| max_model_len > above);
        step = if chunked { step } else { step.max(max_model_len) };
    }
    let device = input.device.unwrap_or_else(|| input.accelerator.memory_total());
    let fraction =
        input.fraction.unwrap_or_else(|| default_fraction(input, device, step, max_num_seqs));
    let block_tokens =
        input.block_tokens.or(engine.block_tokens).ok_or_else(|| missing("block_size"))?;
    let setup = Setup {
        model: input.model,
        placement: input.placement,
        format: input.format,
        kv_element_bytes: input.kv_element_bytes,
        block_tokens,
        device,
        bookkeeping: bookkeeping(engine),
        fraction,
        graphs_in_budget: engine.graphs_in_budget.unwrap_or(false),
        eager: input.eager,
        max_model_len,
        max_num_seqs,
        max_num_batched_tokens: step,
        lora: input.lora,
        margin: input.margin,
        printed: printed(engine),
        speculation: input.speculation,
        sampler_tenths: (engine.sampler_bytes.unwrap_or(0.0) * 10.0).round() as u64,
        prefix_caching: input.prefix_caching.or(engine.prefix_caching).unwrap_or(false),
    };
    let budget = budget(&setup)?;
    Ok(result(input, &setup, &budget))
}

fn result(input: &FitInput<'_>, setup: &Setup<'_>, budget: &Budget) -> Fit {
    let layout = &budget.layout;
    let groups = layout.groups().len() as u64;
    let per_token =
        layout.block_bytes().get().saturating_mul(groups) / layout.block_tokens().get().max(1);
    let placement = setup.placement;
    Fit {
        name: input.name.clone(),
        fits: budget.fits(),
        devices: placement.tensor.saturating_mul(placement.pipeline),
        device_bytes: setup.device.get(),
        weights_bytes: budget.weights.total().get(),
        kv_bytes_per_token: per_token,
        available_kv_bytes: budget.kv.get(),
        kv_tokens: budget.kv_tokens.get(),
        printed_kv_tokens: budget.printed_tokens.get(),
        max_concurrency_at_max_len: budget.concurrency_at_max_len,
        missing_bytes: budget.missing.get(),
        state_bytes_per_sequence: layout.state_bytes().get(),
        max_model_len_tokens: setup.max_model_len.get(),
        kv: kv(layout, budget.kv),
        prefix_caching: setup.prefix_caching,
        max_num_seqs: setup.max_num_seqs,
        max_num_batched_tokens: setup.max_num_batched_tokens.get(),
        memory_fraction: setup.fraction.get(),
        tokens_per_gib: (1u64 << 30).checked_div(per_token_at_len(setup, budget)).unwrap_or(0),
        contexts: input.contexts.iter().map(|c| context_fit(c, setup, budget)).collect(),
        would_fit: Vec::new(),
        observed: Vec::new(),
        budget: budget
            .lines
            .iter()
            .map(|line| BudgetLine {
                name: line.name,
                bytes: line.bytes,
                provenance: if line.exact { Provenance::Supplied } else { Provenance::Modeled },
            })
            .collect(),
    }
}

/// The blocks of a layout that fit. A model without a cache by token never runs out of them.
fn kv(layout: &KvLayout, available: Bytes) -> Kv {
    let mut kv = Kv::new(layout.blocks(available), layout.block_tokens().get());
    if layout.block_bytes() == Bytes::ZERO {
        return Kv { blocks: 1 << 50, full: 0, ..kv };
    }
    (kv.full, kv.sliding) = (0, 0);
    for group in layout.groups() {
        match group.kind {
            Kind::Full => kv.full += 1,
            // Models have one window, or the wider of two is taken for both.
            Kind::Sliding(window) => {
                kv.sliding += 1;
                kv.window = kv.window.max(window.get());
            }
            Kind::State(blocks) => kv.state += blocks,
        }
    }
    kv
}

/// Bytes of a token in sequences of the longest context, state and padding included.
fn per_token_at_len(setup: &Setup<'_>, budget: &Budget) -> u64 {
    let layout = &budget.layout;
    let blocks = layout.blocks_of(setup.max_model_len, setup.max_num_batched_tokens);
    let sequence = blocks
        .saturating_mul(layout.block_bytes().get())
        .saturating_add(layout.state_bytes().get());
    sequence / setup.max_model_len.get().max(1)
}

fn context_fit(context: &ClassContext, setup: &Setup<'_>, budget: &Budget) -> ContextFit {
    let at = |tokens: Tokens| {
        let fit = budget.layout.sequences_that_fit(budget.kv, tokens, setup.max_num_batched_tokens);
        fit.unwrap_or(0).min(setup.max_num_seqs)
    };
    ContextFit {
        class: context.class.clone(),
        context_p50_tokens: context.p50.get(),
        concurrency_p50: at(context.p50),
        context_p95_tokens: context.p95.get(),
        concurrency_p95: at(context.p95),
        context_max_tokens: context.max.get(),
        concurrency_max: at(context.max),
    }
}

/// The storage that a model is published in, where its configuration says so.
pub fn published_format(model: &Architecture) -> Option<Format> {
    match model.quantization.as_deref() {
        None => Some(Format::Bf16),
        // Published fp8 weights come in blocks of 128 x 128.
        Some("fp8") => Some(Format::Fp8Block),
        Some("mxfp4") => Some(Format::Mxfp4),
        Some(_) => None,
    }
}

/// Whose bookkeeping an engine's row describes.
pub(crate) fn bookkeeping(engine: &Engine) -> Bookkeeping {
    match engine.memory_rule {
        MemoryRule::StaticFraction => Bookkeeping::Sglang,
        MemoryRule::OfFree => Bookkeeping::TensorRt,
        // Version 0 profiles a whole context: the rows that say so are its own.
        MemoryRule::OfTotal if engine.batched_tokens_at_least_context => Bookkeeping::VllmV0,
        MemoryRule::OfTotal => Bookkeeping::VllmV1,
    }
}

fn printed(engine: &Engine) -> Printed {
    match engine.printed_tokens {
        Some(PrintedTokens::BlocksOverGroups) => Printed::BlocksOverGroups,
        Some(PrintedTokens::ConcurrencyTimesContext) => Printed::ConcurrencyTimesContext,
        Some(PrintedTokens::Blocks) | None => Printed::Blocks,
    }
}

/// The engine's own fraction: fixed, by group size, or what a reserve leaves (SGLang).
fn default_fraction(input: &FitInput<'_>, device: Bytes, step: Tokens, seqs: u64) -> Fraction {
    let engine = input.engine;
    let devices = u32::try_from(input.placement.tensor.saturating_mul(input.placement.pipeline))
        .unwrap_or(u32::MAX);
    let holds = |when: &plimsoll_fleet::Condition| when.holds(input.accelerator, devices);
    if let Some((_, fraction)) =
        engine.memory_fraction_by_devices.iter().find(|(when, _)| holds(when))
    {
        return *fraction;
    }
    let Some((_, reserve)) = engine.memory_reserve.iter().find(|(when, _)| holds(when)) else {
        return engine.memory_fraction;
    };
    let graph_seqs =
        Engine::default_for(&engine.graph_max_seqs, input.accelerator, devices).unwrap_or(seqs);
    let sum = reserve.base
        + reserve.per_device * u64::from(devices)
        + reserve.per_chunk_token * step.get()
        + reserve.per_graph_seq * graph_seqs;
    let kept = sum.max(reserve.at_least);
    Fraction::new(1.0 - kept.get() as f64 / device.get().max(1) as f64)
        .unwrap_or(engine.memory_fraction)
}
