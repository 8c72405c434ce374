//! `fit`: what a pool's device memory is spent on.

use std::path::Path;

use plimsoll_evidence::engine_log;
use plimsoll_fleet::{Accelerator, Architecture, Catalog, Engine};
use plimsoll_memory::{Format, MemoryError, Placement};
use plimsoll_report::{compare_text, fit_json, fit_text};
use plimsoll_scenario::{
    Diagnostic, Loaded, fp8_of, lower_demand, model_from_hf_file, no_format, pool_fit, serves,
};
use plimsoll_stats::Seed;
use plimsoll_study::{
    Fit, FitError, FitInput, ObservedLine, Provenance, class_context, fit, published_format,
};
use plimsoll_units::{Bytes, Fraction, Tokens};

use super::{catalog_of, either, scenario, today};
use crate::args::{Compare, FitArgs, Global, KvFormat, WeightFormat};
use crate::failure::Failure;
use crate::heading;

/// The budget, and whether everything fits.
pub(super) fn answer(args: &FitArgs, global: &Global) -> Result<(String, bool), Failure> {
    let fits = match &args.file {
        Some(file) => {
            let loaded = scenario(file, global)?;
            pools(&loaded, global)?
        }
        None => match args.compare {
            None => {
                let mut fit = one(args, &catalog_of(global)?, None, None)?;
                if let Some(path) = &args.engine_log {
                    fit.observed = observed(path, &fit)?;
                    // What the engine itself printed needs no model's word for it.
                    for line in &mut fit.budget {
                        if fit.observed.iter().any(|seen| seen.name == line.name) {
                            line.provenance = Provenance::Observed;
                        }
                    }
                }
                vec![fit]
            }
            Some(compare) => return Ok((compared(args, compare, global)?, true)),
        },
    };
    let text = either(global, || fit_json(&fits), || fit_text(&fits, heading()));
    Ok((text, fits.iter().all(|fit| fit.fits)))
}

/// What an engine's log says, line by line beside the prediction.
fn observed(path: &Path, fit: &Fit) -> Result<Vec<ObservedLine>, Failure> {
    let about = |code, message: String| {
        Failure::one(Diagnostic::about(code, path.display().to_string(), message))
    };
    let bytes = std::fs::read(path)
        .map_err(|e| about("unreadable-file", format!("cannot be read: {e}")))?;
    let log = engine_log(&String::from_utf8_lossy(&bytes));
    if log.is_empty() {
        return Err(about("bad-evidence", "no line of it speaks of an engine's memory".to_owned()));
    }
    let line = |name: &'static str| {
        fit.budget.iter().find(|l| l.name == name).map_or(0, |l| l.bytes.max(0)).cast_unsigned()
    };
    let amounts = [
        ("weights", log.weights, fit.weights_bytes),
        ("activation", log.activation, line("activation")),
        ("libraries", log.libraries, line("libraries") + line("collectives")),
        ("graphs", log.graphs, line("graphs")),
        ("kv cache", log.kv, fit.available_kv_bytes),
    ];
    let mut lines: Vec<ObservedLine> = amounts
        .into_iter()
        .filter_map(|(name, seen, predicted)| {
            Some(ObservedLine::new(name, "bytes", seen?.get(), predicted))
        })
        .collect();
    lines.extend(
        log.kv_tokens
            .map(|t| ObservedLine::new("kv tokens", "tokens", t.get(), fit.printed_kv_tokens)),
    );
    lines.extend(log.refusals.into_iter().map(ObservedLine::refusal));
    Ok(lines)
}

/// Every pool of a scenario, with the contexts of the classes it serves.
pub(super) fn pools(loaded: &Loaded, global: &Global) -> Result<Vec<Fit>, Failure> {
    let demand = lower_demand(&loaded.scenario, today(global, loaded)).map_err(Failure::one)?;
    let seed = Seed::new(global.seed.unwrap_or(loaded.scenario.study.seed.get()));
    let file = loaded.source.name();
    if loaded.scenario.pool.is_empty() {
        let diagnostic =
            Diagnostic::about("missing-key", file, "no `[[pool]]` says what serves the demand")
                .help("add a `[[pool]]` with `model` and `accelerator`");
        return Err(Failure::one(diagnostic));
    }
    let mut fits = Vec::new();
    for pool in &loaded.scenario.pool {
        let failed = |(error, help): (String, String)| {
            let message = format!("pool `{}`: {error}", pool.name.as_str());
            Failure::one(Diagnostic::about("no-budget", file, message).help(help))
        };
        let mut input = pool_fit(loaded, pool).map_err(failed)?;
        let served =
            demand.classes.iter().filter(|class| serves(&loaded.scenario, pool, &class.name));
        input.contexts = served.filter_map(|class| class_context(class, seed)).collect();
        fits.push(fit(&input).map_err(|e| failed((e.to_string(), help(&e, input.model))))?);
    }
    Ok(fits)
}

/// The model and device of the command line, or another device or group size in their place.
fn one(
    args: &FitArgs,
    catalog: &Catalog,
    device: Option<&Accelerator>,
    tensor: Option<u64>,
) -> Result<Fit, Failure> {
    let usage = |message: String, help: String| {
        Failure::one(Diagnostic::about("usage", "command line", message).help(help))
    };
    let unknown = |e: plimsoll_fleet::Unknown| usage(e.to_string(), e.help());
    let own =
        args.hf_config.as_deref().map(model_from_hf_file).transpose().map_err(Failure::one)?;
    let (name, model) = match (&own, &args.model) {
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
    let input = FitInput {
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
    };
    fit(&input).map_err(|e| usage(e.to_string(), help(&e, model)))
}

/// What to write instead.
fn help(error: &FitError, model: &Architecture) -> String {
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

fn compared(args: &FitArgs, compare: Compare, global: &Global) -> Result<String, Failure> {
    let catalog = catalog_of(global)?;
    let mut rows: Vec<(String, Fit)> = Vec::new();
    match compare {
        Compare::Tp => {
            let name = args.accelerator.clone().unwrap_or_default();
            let devices =
                catalog.accelerator(&name).ok().and_then(|a| a.interconnect.devices).unwrap_or(1);
            let sizes = std::iter::successors(Some(1u64), |n| Some(n * 2))
                .take_while(|n| *n <= u64::from(devices).min(64));
            for tensor in sizes {
                // A group that does not divide the heads is no candidate.
                if let Ok(fit) = one(args, &catalog, None, Some(tensor)) {
                    rows.push((format!("tensor_parallel = {tensor}"), fit));
                }
            }
        }
        Compare::Accelerators => {
            for device in &catalog.accelerators {
                if let Ok(fit) = one(args, &catalog, Some(device), None) {
                    rows.push((device.name.clone(), fit));
                }
            }
        }
    }
    if rows.is_empty() {
        // The first candidate's own complaint says why.
        one(args, &catalog, None, None)?;
    }
    Ok(either(
        global,
        || {
            fit_json(
                &rows
                    .iter()
                    .map(|(name, fit)| Fit { name: name.clone(), ..fit.clone() })
                    .collect::<Vec<_>>(),
            )
        },
        || compare_text(&rows),
    ))
}
