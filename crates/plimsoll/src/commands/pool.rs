//! A pool as the command line describes it.

use plimsoll_fleet::{Accelerator, Architecture, Catalog, Engine, Model};
use plimsoll_memory::{Format, MemoryError, Placement};
use plimsoll_scenario::{Diagnostic, fp8_of, model_from_hf_file, no_format};
use plimsoll_study::{FitError, FitInput, published_format};
use plimsoll_units::{Bytes, Fraction, Tokens};

use crate::args::{KvFormat, PoolArgs, WeightFormat};
use crate::failure::Failure;

/// The model that `--hf-config` describes.
pub(super) fn own_model(args: &PoolArgs) -> Result<Option<Model>, Failure> {
    args.hf_config.as_deref().map(model_from_hf_file).transpose().map_err(Failure::one)
}

pub(super) fn usage(message: String, help: String) -> Failure {
    Failure::one(Diagnostic::about("usage", "command line", message).help(help))
}

/// The model and device of the command line, or another device or group size in their place.
pub(super) fn pool_input<'a>(
    args: &PoolArgs,
    catalog: &'a Catalog,
    own: Option<&'a Model>,
    device: Option<&'a Accelerator>,
    tensor: Option<u64>,
) -> Result<FitInput<'a>, Failure> {
    let unknown = |e: plimsoll_fleet::Unknown| usage(e.to_string(), e.help());
    let (name, model) = match (own, &args.model) {
        (Some(model), _) => (model.name.clone(), &model.architecture),
        (None, Some(name)) => {
            let model = catalog.model(name).map_err(unknown)?;
            (model.name.clone(), &model.architecture)
        }
        (None, None) => {
            return Err(usage(
                "no model is named".to_owned(),
                "add `--model NAME` or `--hf-config FILE`".to_owned(),
            ));
        }
    };
    let accelerator = match (device, &args.accelerator) {
        (Some(device), _) => device,
        (None, Some(name)) => catalog.accelerator(name).map_err(unknown)?,
        (None, None) => {
            return Err(usage(
                "no device is named".to_owned(),
                "add `--accelerator NAME`".to_owned(),
            ));
        }
    };
    let engine: &Engine = catalog.engine(&args.engine).map_err(unknown)?;
    if let (Some(asked), Some(most)) = (args.max_model_len, model.context_max)
        && asked > most
    {
        let message =
            format!("a context of {asked} tokens is longer than the {most} the model was made for");
        return Err(usage(message, format!("write `--max-model-len {}`", most.get())));
    }
    let zero = [
        ("--max-model-len", args.max_model_len == Some(Tokens::ZERO)),
        ("--max-num-batched-tokens", args.max_num_batched_tokens == Some(Tokens::ZERO)),
        ("--block-size", args.block_size == Some(Tokens::ZERO)),
        ("--memory-utilization", args.memory_utilization == Some(Fraction::ZERO)),
        ("--device-memory", args.device_memory == Some(Bytes::ZERO)),
    ];
    if let Some((option, _)) = zero.iter().find(|(_, zero)| *zero) {
        return Err(usage(
            format!("`{option} 0` leaves nothing to serve with"),
            "leave it out for the default".to_owned(),
        ));
    }
    let format = match args.weights {
        Some(WeightFormat::Bf16 | WeightFormat::Fp16) => Format::Bf16,
        Some(WeightFormat::Fp8) => fp8_of(model),
        Some(WeightFormat::Fp8Tensor) => Format::Fp8Tensor,
        Some(WeightFormat::Fp8Block) => Format::Fp8Block,
        Some(WeightFormat::Int8) => Format::Int8,
        Some(WeightFormat::Int4) => Format::Int4,
        Some(WeightFormat::Nf4) => Format::Nf4,
        Some(WeightFormat::Mxfp4) => Format::Mxfp4,
        Some(WeightFormat::Nvfp4) => Format::Nvfp4,
        None => published_format(model).ok_or_else(|| {
            let (message, help) = no_format();
            usage(message, help)
        })?,
    };
    let tensor = tensor.unwrap_or(args.tensor_parallel);
    Ok(FitInput {
        name,
        model,
        accelerator,
        engine,
        placement: Placement {
            tensor,
            pipeline: args.pipeline_parallel,
            expert: args.expert_parallel,
            context: args.context_parallel,
        },
        format,
        kv_element_bytes: match args.kv_dtype {
            KvFormat::Fp8 | KvFormat::Int8 => 1,
            KvFormat::Auto | KvFormat::Bf16 | KvFormat::Fp16 => 2,
        },
        device: args.device_memory.filter(|_| device.is_none()),
        fraction: args.memory_utilization,
        max_model_len: args.max_model_len,
        max_num_seqs: args.max_num_seqs,
        max_num_batched_tokens: args.max_num_batched_tokens,
        block_tokens: args.block_size,
        eager: args.enforce_eager,
        lora: args.lora,
        margin: Bytes::ZERO,
        speculation: args.speculative_tokens,
        prefix_caching: None,
        contexts: Vec::new(),
    })
}

/// Why there is no budget, and what to write instead.
pub(super) fn no_budget(error: &FitError, model: &Architecture) -> Failure {
    usage(error.to_string(), help(error, model))
}

/// What to write instead.
pub(super) fn help(error: &FitError, model: &Architecture) -> String {
    match error {
        FitError::Memory(MemoryError::Heads { heads, tensor }) => {
            let near = (1..=*tensor).rev().find(|n| heads.is_multiple_of(*n)).unwrap_or(1);
            format!("use a tensor-parallel group of {near}")
        }
        FitError::Memory(MemoryError::Stages { layers, .. }) => {
            format!("use at most {layers} pipeline stages")
        }
        FitError::Memory(MemoryError::Experts { experts, expert }) => {
            let near = (1..=*expert).rev().find(|n| experts.is_multiple_of(*n)).unwrap_or(1);
            format!("share the experts among {near} devices")
        }
        FitError::Memory(MemoryError::KvHeads { heads, tensor }) => {
            let near =
                (1..=*tensor).rev().find(|n| heads.is_multiple_of(*n) || n.is_multiple_of(*heads));
            format!("use a tensor-parallel group of {}", near.unwrap_or(1))
        }
        FitError::Memory(MemoryError::Context { tensor, .. }) => {
            format!("share a context among a divisor of {tensor} devices")
        }
        FitError::Memory(MemoryError::ExpertGroup { tensor, .. }) => {
            format!("share experts among {tensor} devices, or a multiple")
        }
        FitError::Memory(MemoryError::NoExperts { .. }) => {
            "leave expert parallelism at 1".to_owned()
        }
        FitError::Memory(_) => format!("look at the shape of `{}`", model.family),
        FitError::NoDefault { field, .. } => format!("give `{field}` yourself"),
        FitError::NoContext => "give `max_model_len`".to_owned(),
        FitError::Format { .. } => "use `int4`, or another engine".to_owned(),
    }
}
