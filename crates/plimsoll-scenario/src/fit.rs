//! From what the file says of a pool to what a memory study takes.

use plimsoll_fleet::{Architecture, Unknown};
use plimsoll_memory::{Format, Placement};
use plimsoll_study::{FitInput, published_format};

use crate::Loaded;
use crate::sections::{Dtype, KvDtype, Pool, Scenario};

/// Whether routes send a class to a pool; without routes everything goes to the first.
pub fn serves(scenario: &Scenario, pool: &Pool, class: &str) -> bool {
    let name = pool.name.as_str();
    if scenario.route.is_empty() {
        return scenario.pool.first().is_some_and(|first| first.name.as_str() == name);
    }
    // A decode pool serves what its prefill pool is sent.
    let hands_over = |target: &str| {
        let prefill = scenario.pool.iter().find(|p| p.name.as_str() == target);
        prefill.and_then(|p| p.disaggregation.as_ref()).is_some_and(|d| d.decode.as_str() == name)
    };
    scenario.route.iter().any(|route| {
        let target = route.to.as_str();
        (target == name || hands_over(target))
            && (route.class.is_empty() || route.class.iter().any(|c| c.as_str() == class))
    })
}

/// What `fit` needs to know of a pool, the contexts of its classes left out; or what is wrong, and a fix.
pub fn pool_fit<'a>(loaded: &'a Loaded, pool: &Pool) -> Result<FitInput<'a>, (String, String)> {
    let catalog = &loaded.catalog;
    let name = pool.name.as_str();
    let plain = |e: Unknown| (e.to_string(), e.help());
    let model = match (&pool.model, loaded.architectures.get(name)) {
        (_, Some(own)) => own,
        (Some(model), None) => &catalog.model(model.as_str()).map_err(plain)?.architecture,
        (None, None) => return Err(("it has no model".to_owned(), "add `model`".to_owned())),
    };
    let accelerator = catalog.accelerator(pool.accelerator.as_str()).map_err(plain)?;
    let engine = catalog.engine(pool.engine.as_str()).map_err(plain)?;
    let format = match pool.weights {
        Some(Dtype::Bf16 | Dtype::Fp16) => Format::Bf16,
        Some(Dtype::Fp8) => fp8_of(model),
        Some(Dtype::Int8) => Format::Int8,
        Some(Dtype::Int4) => Format::Int4,
        Some(Dtype::Mxfp4) => Format::Mxfp4,
        Some(Dtype::Nvfp4) => Format::Nvfp4,
        None => published_format(model).ok_or_else(no_format)?,
    };
    let kv_element_bytes = match pool.kv_dtype {
        KvDtype::Auto | KvDtype::Bf16 | KvDtype::Fp16 => 2,
        KvDtype::Fp8 | KvDtype::Int8 => 1,
        KvDtype::Nvfp4 => {
            return Err((
                "a KV cache in nvfp4 is not modelled".to_owned(),
                "write `kv_dtype = \"fp8\"`".to_owned(),
            ));
        }
    };
    Ok(FitInput {
        name: name.to_owned(),
        model,
        accelerator,
        engine,
        placement: Placement {
            tensor: pool.tensor_parallel.get(),
            pipeline: pool.pipeline_parallel.get(),
            expert: pool.expert_parallel.get(),
            context: pool.context_parallel.get(),
        },
        format,
        kv_element_bytes,
        device: None,
        fraction: pool.memory_utilization,
        max_model_len: pool.max_model_len,
        max_num_seqs: pool.max_num_seqs.map(|n| n.get()),
        max_num_batched_tokens: pool.max_num_batched_tokens,
        block_tokens: None,
        eager: false,
        lora: pool.lora.as_ref().map(|l| (l.adapters.get(), l.rank.get())),
        margin: pool.memory_margin,
        speculation: pool.speculation.as_ref().map(|s| s.tokens.get()),
        prefix_caching: pool.prefix_caching,
        contexts: Vec::new(),
    })
}

/// Published fp8 weights keep their blocks; made from 16 bits they get a scale an output channel.
pub fn fp8_of(model: &Architecture) -> Format {
    match published_format(model) {
        Some(Format::Fp8Block) => Format::Fp8Block,
        _ => Format::Fp8Channel,
    }
}

/// The complaint about weights whose storage nobody knows.
pub fn no_format() -> (String, String) {
    let message = "the model is published in a storage that is not known here".to_owned();
    (
        message,
        "say how its weights are stored: `weights = \"int4\"`, `\"fp8\"`, `\"bf16\"`".to_owned(),
    )
}
