//! Where a device's memory goes, by the rules of the engine.
//!
//! Weights and KV are exact. What an engine finds by running a dummy step (activation), what its libraries take
//! (non-torch) and what its graphs hold are modelled: the formulas below name their evidence. `docs/model.md` has the
//! error of the whole against published engine logs.

use plimsoll_fleet::{Architecture, Mixer, Mlp};
use plimsoll_units::{Bytes, Fraction, Tokens};

use crate::kv::KvLayout;
use crate::placement::{MemoryError, Placement};
use crate::weights::{Format, Weights, weights};

/// Which engine's bookkeeping applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bookkeeping {
    /// vLLM before 0.8: a fraction of the total; the profile runs a whole context.
    VllmV0,
    /// vLLM from 0.8 on: a fraction of the total; the profile runs one step's token budget.
    VllmV1,
    /// SGLang: a static fraction of what is free at start for weights and KV, the rest for everything else.
    Sglang,
    /// TensorRT-LLM: a fraction of what is left after loading.
    TensorRt,
}

/// What an engine prints as its KV token count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// Blocks times block size.
    Blocks,
    /// Blocks over groups, times block size.
    BlocksOverGroups,
    /// Concurrency at full context, times that context.
    ConcurrencyTimesContext,
}

/// Everything that decides the budget of one device.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The model.
    pub model: &'a Architecture,
    /// How a replica is spread.
    pub placement: Placement,
    /// How weights are stored.
    pub format: Format,
    /// Bytes of a cached number.
    pub kv_element_bytes: u64,
    /// Tokens in a KV block.
    pub block_tokens: Tokens,
    /// The device's total memory, as the driver reports it.
    pub device: Bytes,
    /// Whose bookkeeping.
    pub bookkeeping: Bookkeeping,
    /// The fraction its rule takes.
    pub fraction: Fraction,
    /// Whether graphs are inside the budget.
    pub graphs_in_budget: bool,
    /// No graphs are captured.
    pub eager: bool,
    /// Longest accepted context.
    pub max_model_len: Tokens,
    /// Largest running batch.
    pub max_num_seqs: u64,
    /// Token budget of a step.
    pub max_num_batched_tokens: Tokens,
    /// Adapters and their rank.
    pub lora: Option<(u64, u64)>,
    /// Memory that nobody may use.
    pub margin: Bytes,
    /// What the engine's version prints.
    pub printed: Printed,
    /// Tokens guessed a step by the model's extra prediction layers; engines leave those out unless they speculate.
    pub speculation: Option<u64>,
    /// Bytes the profile's sampler takes for each sequence and vocabulary entry, in tenths.
    pub sampler_tenths: u64,
    /// Whether prefixes are cached, which makes vLLM keep one more copy of a recurrent state.
    pub prefix_caching: bool,
}

/// Where the memory of the fullest device goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// In the order of a bar; they sum to the device exactly.
    pub lines: Vec<Line>,
    /// All weights.
    pub weights: Weights,
    /// What is left for KV; nothing when it does not fit.
    pub kv: Bytes,
    /// What is missing before the first block, where it does not fit.
    pub missing: Bytes,
    /// How KV is divided.
    pub layout: KvLayout,
    /// Tokens of context that a replica holds in sequences of the longest context.
    pub kv_tokens: Tokens,
    /// What the engine prints.
    pub printed_tokens: Tokens,
    /// Sequences of the longest context that fit at once.
    pub concurrency_at_max_len: f64,
}

impl Budget {
    /// Whether weights and overheads leave room for one sequence of the longest context, and what the engine does not
    /// count has room beside it.
    pub fn fits(&self) -> bool {
        self.missing == Bytes::ZERO && self.concurrency_at_max_len >= 1.0
    }
}

/// One line of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is for.
    pub name: &'static str,
    /// How much; below zero only for what is missing.
    pub bytes: i64,
    /// Exact, or modelled from published logs.
    pub exact: bool,
}

const MIB: u64 = 1 << 20;

/// The budget of the fullest device.
pub fn budget(setup: &Setup<'_>) -> Result<Budget, MemoryError> {
    let stored = weights(setup.model, &setup.placement, setup.format, setup.speculation.is_some())?;
    let mut model = std::borrow::Cow::Borrowed(setup.model);
    if setup.speculation.is_some() {
        // A draft layer caches like any other.
        let own = model.to_mut();
        own.layers.append(&mut own.draft_layers);
    }
    if setup.bookkeeping == Bookkeeping::TensorRt {
        // It sizes sliding layers as if they kept everything (73,728 bytes a token of gpt-oss-120b, a public log).
        for layer in &mut model.to_mut().layers {
            if let Mixer::Attention(attention) = &mut layer.mixer {
                attention.window = None;
            }
        }
    }
    let state_blocks = match setup.bookkeeping {
        Bookkeeping::VllmV0 | Bookkeeping::VllmV1 => {
            let guessed = setup.speculation.unwrap_or(0);
            Some(
                guessed
                    .checked_add(1 + u64::from(setup.prefix_caching))
                    .ok_or(MemoryError::TooLarge)?,
            )
        }
        Bookkeeping::Sglang | Bookkeeping::TensorRt => None,
    };
    let (element, block) = (setup.kv_element_bytes, setup.block_tokens);
    let layout = KvLayout::of(&model, &setup.placement, element, block, state_blocks)?;
    let activation = activation(setup).ok_or(MemoryError::TooLarge)?;
    let (own, buffers) = (libraries(setup), collectives(setup));
    let graphs = graphs(setup);
    let adapters = lora(setup).ok_or(MemoryError::TooLarge)?;
    let device = i64::try_from(setup.device.get()).map_err(|_| MemoryError::TooLarge)?;
    let signed = |bytes: u64| i64::try_from(bytes).map_err(|_| MemoryError::TooLarge);
    let (weight, act, lib, graph) = (
        signed(stored.total().get())?,
        signed(activation)?,
        signed(own + buffers)?,
        signed(graphs)?,
    );
    let (lora, margin) = (signed(adapters)?, signed(setup.margin.get())?);
    // Fractions of bytes are rounded up, as vLLM does.
    let share = |of: i64| (of as f64 * setup.fraction.get()).ceil() as i64;
    let counted = if setup.graphs_in_budget { graph } else { 0 };
    let kv = match setup.bookkeeping {
        Bookkeeping::VllmV0 | Bookkeeping::VllmV1 => {
            share(device) - weight - act - lib - counted - lora - margin
        }
        Bookkeeping::Sglang => share(device - lib) - weight - lora - margin,
        Bookkeeping::TensorRt => share(device - weight - act - lib - graph - lora - margin),
    };
    let kv_cache = kv.max(0);
    let state = i64::try_from(layout.state_bytes().get()).map_err(|_| MemoryError::TooLarge)?;
    // What does not fill a block stays empty; a state outside the pool has no blocks.
    let whole = layout
        .blocks(Bytes::new(kv_cache.unsigned_abs()))
        .saturating_mul(layout.block_bytes().get());
    let paged = if layout.state_bytes() == Bytes::ZERO { signed(whole)? } else { kv_cache };
    let left = device - weight - act - lib - graph - lora - margin - kv_cache;
    let line = |name, bytes, exact| Line { name, bytes, exact };
    let mut lines = vec![
        line("vocabulary", signed(stored.vocabulary.get())?, true),
        line("layers", signed(stored.layers.get())?, true),
        line("experts", signed(stored.experts.get())?, true),
        line("draft layers", signed(stored.draft.get())?, true),
        line("vision tower", signed(stored.vision.get())?, true),
        line("adapters", lora, false),
        line("activation", act, false),
        line("libraries", signed(own)?, false),
        line("collectives", signed(buffers)?, false),
        line("graphs", graph, false),
        line("margin", margin, true),
        line("kv cache", paged, false),
        line("fragmentation", kv_cache - paged, false),
        line(if left < 0 { "missing" } else { "left to others" }, left, false),
    ];
    lines.retain(|l| l.bytes != 0 || l.name == "kv cache");
    let kv_bytes = Bytes::new(kv_cache.unsigned_abs());
    let blocks = layout.blocks(kv_bytes);
    let need = layout.blocks_of(setup.max_model_len, setup.max_num_batched_tokens);
    // Whole blocks where everything is paged; a state outside the pool is shared by bytes.
    let concurrency = match (need, state) {
        (0, 0) => 0.0,
        (need, 0) => blocks as f64 / need as f64,
        (need, state) => {
            kv_cache as f64 / (need as f64 * layout.block_bytes().get() as f64 + state as f64)
        }
    };
    let groups = layout.groups().len().max(1) as u64;
    let block_tokens = layout.block_tokens().get();
    let uniform = groups == 1 && state == 0;
    let tokens = if uniform {
        blocks.saturating_mul(block_tokens)
    } else {
        (concurrency * setup.max_model_len.get() as f64) as u64
    };
    let printed = match setup.printed {
        _ if uniform => tokens,
        Printed::Blocks => blocks.saturating_mul(block_tokens),
        Printed::BlocksOverGroups => (blocks / groups).saturating_mul(block_tokens),
        Printed::ConcurrencyTimesContext => (concurrency * setup.max_model_len.get() as f64) as u64,
    };
    Ok(Budget {
        lines,
        weights: stored,
        kv: kv_bytes,
        missing: Bytes::new((-kv).max(-left).max(0).unsigned_abs()),
        kv_tokens: Tokens::new(tokens),
        printed_tokens: Tokens::new(printed),
        concurrency_at_max_len: concurrency,
        layout,
    })
}

/// The peak of a dummy step.
///
/// The sampler sorts the logits of every sequence at once: 38.6 bytes a sequence and vocabulary entry in seven published logs of
/// vLLM 0.7 to 0.11 (38.4 to 39.6). The forward pass holds, at its widest, the gated MLP's input and output and three copies
/// of the residual stream in 16 bits: 2 (3 intermediate / TP + 3 hidden) bytes a token, which gives 2.06 and 2.99 GiB where
/// vLLM 0.6.4 printed 2.07 and 2.99 for 20,000 and 29,000 tokens. The larger of the two is the peak.
fn activation(setup: &Setup<'_>) -> Option<u64> {
    let model = setup.model;
    let sampler =
        setup.sampler_tenths.checked_mul(setup.max_num_seqs)?.checked_mul(model.vocab_size)? / 10;
    let widest = model.layers.iter().map(|layer| match layer.mlp {
        Mlp::Dense { intermediate } => intermediate,
        Mlp::Experts { per_token, intermediate, shared, .. } => {
            per_token.saturating_mul(intermediate).saturating_add(shared)
        }
        Mlp::None => 0,
    });
    let inner = widest.max().unwrap_or(0).div_ceil(setup.placement.tensor);
    let per_token =
        inner.checked_mul(3)?.checked_add(model.hidden_size.checked_mul(3)?)?.checked_mul(2)?;
    let tokens = match setup.bookkeeping {
        Bookkeeping::VllmV0 => {
            setup.max_num_batched_tokens.get().max(setup.max_model_len.get().min(32_768))
        }
        _ => setup.max_num_batched_tokens.get(),
    };
    Some(sampler.max(per_token.checked_mul(tokens)?))
}

/// The driver's and framework's own: 0.02 to 0.14 GiB in vLLM V1 logs on one device (0.13 on H100); SGLang finds 0.3 to 0.5 GiB taken at
/// start.
fn libraries(setup: &Setup<'_>) -> u64 {
    if setup.bookkeeping == Bookkeeping::Sglang { 410 * MIB } else { 133 * MIB }
}

/// Buffers of the collectives. With the libraries, 0.55 GiB were logged on two devices (vLLM 0.11, H100) and 2.10 on eight (vLLM 0.7,
/// A100, a public log of February 2025): 430 MiB, and 265 MiB for each device of the group beyond the second, up to the sixteen of the
/// largest group that was logged. Stages of a pipeline talk to one neighbour: 430 MiB.
fn collectives(setup: &Setup<'_>) -> u64 {
    let group = setup.placement.tensor.min(16);
    let within = if group > 1 { 430 * MIB + (group - 2) * 265 * MIB } else { 0 };
    let between = if setup.placement.pipeline > 1 { 430 * MIB } else { 0 };
    within + between
}

/// Captured graphs: 0.41 GiB for 128 sequences and 0.59 for 256 in our own runs of vLLM 0.24 (8B), 0.40 for a mixture of
/// experts; engines capture batches up to 512.
fn graphs(setup: &Setup<'_>) -> u64 {
    if setup.eager {
        return 0;
    }
    let captured = setup.max_num_seqs.saturating_mul(2).min(512);
    235 * MIB + captured * 720 * 1024
}

/// Adapters on every linear of every layer: rank x (inputs + outputs) numbers of two bytes each, shared as the layers are.
fn lora(setup: &Setup<'_>) -> Option<u64> {
    let Some((adapters, rank)) = setup.lora else { return Some(0) };
    use plimsoll_fleet::{Part, Role};
    let linear =
        |role| matches!(role, Role::Query | Role::KeyValue | Role::Output | Role::Up | Role::Down);
    let mut numbers: u64 = 0;
    for tensor in setup.model.tensors.iter().filter(|t| t.part == Part::Text && linear(t.role)) {
        let ends = tensor.rows.checked_add(tensor.columns)?.checked_mul(rank)?;
        numbers = numbers.checked_add(ends)?;
    }
    let bytes = numbers.checked_mul(adapters)?.checked_mul(2)?;
    bytes.checked_div(setup.placement.tensor)?.checked_div(setup.placement.pipeline)
}
