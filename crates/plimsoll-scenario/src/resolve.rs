//! What the catalogue says where the file is silent.

use plimsoll_fleet::{Catalog, Engine, Fact};

use crate::read::{Entry, Origin};
use crate::sections::{Pool, Provider, Scenario};

/// Replaces entries that are absent from the file but known to the catalogue.
pub(crate) fn resolve(scenario: &Scenario, catalog: &Catalog, entries: &mut [Entry]) {
    for pool in &scenario.pool {
        pool_defaults(pool, catalog, entries);
    }
    for provider in &scenario.provider {
        list_prices(provider, catalog, entries);
    }
}

fn pool_defaults(pool: &Pool, catalog: &Catalog, entries: &mut [Entry]) {
    let path = |key: &str| format!("pool.{}.{key}", pool.name.as_str());
    let accelerator = catalog.accelerator(pool.accelerator.as_str()).ok();
    let model = pool.model.as_ref().and_then(|m| catalog.model(m.as_str()).ok());
    if let Some(model) = model {
        let shape = &model.architecture;
        let entry = format!("model `{}`", model.name);
        fill(
            entries,
            &path("max_model_len"),
            shape.context_max.map(|c| c.get().to_string()),
            &entry,
            &model.fact,
        );
        let dtype = shape.quantization.as_deref().or(shape.dtype.as_deref()).and_then(weights_word);
        fill(
            entries,
            &path("weights"),
            dtype.map(|word| format!("\"{word}\"")),
            &entry,
            &model.fact,
        );
    }
    let (Ok(engine), Some(accelerator)) = (catalog.engine(pool.engine.as_str()), accelerator)
    else {
        return;
    };
    let entry = format!("engine `{}` from {} on", engine.name, engine.since);
    let devices = pool.tensor_parallel.get_u32();
    let default = |list| Engine::default_for(list, accelerator, devices).map(|n| n.to_string());
    let mut set =
        |key: &str, value: Option<String>| fill(entries, &path(key), value, &entry, &engine.fact);
    set("max_num_seqs", default(&engine.max_num_seqs));
    // Where the budget follows the context, no number stands in the catalogue.
    let budget =
        default(&engine.max_num_batched_tokens).filter(|_| !engine.batched_tokens_at_least_context);
    set("max_num_batched_tokens", budget);
    // Where the fraction is computed from a reserve, likewise.
    let by_devices =
        engine.memory_fraction_by_devices.iter().find(|(when, _)| when.holds(accelerator, devices));
    let fraction = by_devices.map_or(engine.memory_fraction, |(_, fraction)| *fraction);
    set("memory_utilization", engine.memory_reserve.is_empty().then(|| fraction.get().to_string()));
    set("prefix_caching", engine.prefix_caching.map(|b| b.to_string()));
}

/// A configuration's word for a number format as the key `weights` writes it.
fn weights_word(published: &str) -> Option<&'static str> {
    Some(match published {
        "bfloat16" => "bf16",
        "float16" => "fp16",
        "fp8" => "fp8",
        "mxfp4" => "mxfp4",
        _ => return None,
    })
}

fn list_prices(provider: &Provider, catalog: &Catalog, entries: &mut [Entry]) {
    let path = |key: &str| format!("provider.{}.{key}", provider.name.as_str());
    let known = catalog
        .token_prices
        .iter()
        .find(|p| p.provider.eq_ignore_ascii_case(&provider.provider) && p.model == provider.model);
    let Some(price) = known else { return };
    let entry = format!("list price of `{}` at {}", price.model, price.provider);
    for (key, value) in [
        ("input", Some(price.input)),
        ("cached_input", price.cached_input),
        ("output", Some(price.output)),
    ] {
        fill(entries, &path(key), value.map(|v| format!("\"{v}\"")), &entry, &price.fact);
    }
}

fn fill(entries: &mut [Entry], path: &str, value: Option<String>, entry: &str, fact: &Fact) {
    let Some(value) = value else { return };
    let absent = |e: &&mut Entry| e.path == path && matches!(e.origin, Origin::Absent { .. });
    if let Some(line) = entries.iter_mut().find(absent) {
        line.value = value;
        line.origin = Origin::Catalog { entry: entry.to_owned(), as_of: fact.as_of.clone() };
    }
}
