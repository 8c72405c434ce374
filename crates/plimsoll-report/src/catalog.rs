//! The catalogue, each entry with its source and date.

use std::fmt::Write as _;

use plimsoll_fleet::{
    Accelerator, Architecture, Catalog, Engine, Fact, Instance, MemoryRule, Mixer, Mlp, Model,
    NodePrice, Part, PrintedTokens, TokenPrice, nearest,
};
use plimsoll_scenario::Profile;
use plimsoll_units::grouped;
use serde_json::{Value, json};

use crate::Topic;
use crate::constants::View;
use crate::text::{Heading, aligned};

/// A topic of the catalogue, or one entry of it; `Err` holds the nearest names.
pub fn catalog_text(
    catalog: &Catalog,
    profiles: &[Profile],
    topic: Topic,
    name: Option<&str>,
    heading: Heading,
) -> Result<String, Vec<String>> {
    match name {
        Some(name) => one_text(catalog, profiles, topic, name, heading),
        None => Ok(all_text(catalog, profiles, topic)),
    }
}

fn all_text(catalog: &Catalog, profiles: &[Profile], topic: Topic) -> String {
    match topic {
        Topic::Models => {
            let rows: Vec<Vec<String>> = catalog.models.iter().map(model_row).collect();
            let header = ["model", "parameters", "active", "attention", "context", "as of"];
            aligned(&header, &rows, &[1, 2, 4])
        }
        Topic::Accelerators => {
            let rows: Vec<Vec<String>> = catalog.accelerators.iter().map(accelerator_row).collect();
            let header =
                ["accelerator", "memory", "bandwidth", "bf16", "fp8", "link", "devices", "as of"];
            aligned(&header, &rows, &[1, 2, 3, 4, 6]) + &View::All(topic).text(catalog)
        }
        Topic::Engines => {
            let rows: Vec<Vec<String>> = catalog.engines.iter().map(engine_row).collect();
            aligned(
                &[
                    "engine",
                    "since",
                    "memory rule",
                    "fraction",
                    "graphs",
                    "block",
                    "prefix",
                    "as of",
                ],
                &rows,
                &[3, 5],
            ) + &View::All(topic).text(catalog)
        }
        Topic::Prices => {
            let nodes: Vec<Vec<String>> =
                catalog.node_prices.iter().map(|p| node_row(catalog, p)).collect();
            let tokens: Vec<Vec<String>> = catalog.token_prices.iter().map(token_row).collect();
            let mut out = String::from("Nodes, list prices of their dates, per node and hour:\n\n");
            let header =
                ["instance", "region", "holds", "on demand", "per device", "spot", "as of"];
            out.push_str(&aligned(&header, &nodes, &[3, 4, 5]));
            out.push_str("\nHosted tokens, list prices of their dates:\n\n");
            let header = ["provider", "model", "input", "cached", "output", "as of"];
            out.push_str(&aligned(&header, &tokens, &[2, 3, 4]));
            out
        }
        Topic::Profiles => {
            let rows: Vec<Vec<String>> =
                profiles.iter().map(|p| vec![p.name.to_owned(), p.title.to_owned()]).collect();
            aligned(&["profile", "describes"], &rows, &[])
        }
    }
}

fn one_text(
    catalog: &Catalog,
    profiles: &[Profile],
    topic: Topic,
    name: &str,
    heading: Heading,
) -> Result<String, Vec<String>> {
    let mut out = String::new();
    match topic {
        Topic::Models => model_card(&mut out, catalog.model(name).map_err(|u| u.nearest)?, heading),
        Topic::Accelerators => {
            let accelerator = catalog.accelerator(name).map_err(|u| u.nearest)?;
            accelerator_card(&mut out, accelerator, catalog, heading);
            out.push_str(&View::Accelerator(accelerator).text(catalog));
        }
        Topic::Engines => {
            let engine = catalog.engine(name).map_err(|u| u.nearest)?;
            engine_card(&mut out, engine, heading);
            out.push_str(&View::Engine(engine).text(catalog));
        }
        Topic::Prices => {
            let wanted = catalog
                .accelerator(name)
                .map(|a| a.name.clone())
                .unwrap_or_else(|_| name.to_owned());
            let holds = |i: &Instance| i.accelerator == wanted || i.name.eq_ignore_ascii_case(name);
            let rows: Vec<Vec<String>> = catalog
                .node_prices
                .iter()
                .filter(|p| catalog.instances.iter().any(|i| i.name == p.instance && holds(i)))
                .map(|p| node_row(catalog, p))
                .collect();
            if rows.is_empty() {
                let known = catalog.node_prices.iter().map(|p| p.instance.as_str());
                return Err(nearest(
                    name,
                    known.chain(catalog.accelerators.iter().map(|a| a.name.as_str())),
                ));
            }
            let header =
                ["instance", "region", "holds", "on demand", "per device", "spot", "as of"];
            out.push_str(&aligned(&header, &rows, &[3, 4, 5]));
        }
        Topic::Profiles => {
            let profile = profiles
                .iter()
                .find(|p| p.name == name)
                .ok_or_else(|| nearest(name, profiles.iter().map(|p| p.name)))?;
            let _ = writeln!(out, "{}: {}\n", heading.apply(profile.name), profile.title);
            for (key, value) in &profile.keys {
                let _ = writeln!(out, "  {key} = {value}");
            }
            let _ = writeln!(out, "\n  source: {}, {}", profile.source, profile.as_of);
        }
    }
    Ok(out)
}

// ----- rows

fn model_row(model: &Model) -> Vec<String> {
    let a = &model.architecture;
    vec![
        model.name.clone(),
        billions(a.parameters(Part::Text)),
        billions(a.parameters_active()),
        attention(a),
        a.context_max.map_or_else(|| "?".to_owned(), |c| grouped(c.get())),
        model.fact.as_of.clone(),
    ]
}

fn billions(n: u64) -> String {
    let n = n as f64 / 1e9;
    if n < 10.0 { format!("{n:.2} B") } else { format!("{n:.1} B") }
}

/// The kinds of layers, in a few words.
fn attention(a: &Architecture) -> String {
    let count = |of: fn(&Mixer) -> bool| a.layers.iter().filter(|l| of(&l.mixer)).count();
    let full = count(|m| matches!(m, Mixer::Attention(x) if x.window.is_none()));
    let window = count(|m| matches!(m, Mixer::Attention(x) if x.window.is_some()));
    let latent = count(|m| matches!(m, Mixer::Latent(_)));
    let recurrent = count(|m| matches!(m, Mixer::Recurrent(_)));
    let cross = count(|m| matches!(m, Mixer::Cross(_)));
    let kv = a.layers.iter().find_map(|l| match &l.mixer {
        Mixer::Attention(x) if x.kv_heads == x.heads => Some("MHA"),
        Mixer::Attention(_) => Some("GQA"),
        _ => None,
    });
    let parts = [
        (full, kv.unwrap_or("full")),
        (window, "window"),
        (latent, "MLA"),
        (recurrent, "recurrent"),
        (cross, "cross"),
    ];
    let shown: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
    let experts = a.layers.iter().find_map(|l| match l.mlp {
        Mlp::Experts { count, per_token, .. } => Some(format!(", {per_token} of {count} experts")),
        _ => None,
    });
    format!("{}{}", shown.join(" + "), experts.unwrap_or_default())
}

fn accelerator_row(a: &Accelerator) -> Vec<String> {
    let peak = |format: &str| {
        a.peaks
            .iter()
            .find(|p| p.format == format)
            .map_or_else(|| "-".to_owned(), |p| p.rate.to_string())
    };
    vec![
        a.name.clone(),
        a.memory_total().to_string(),
        a.bandwidth.to_string(),
        peak("bf16"),
        peak("fp8"),
        a.interconnect.bandwidth.map_or_else(|| "-".to_owned(), |b| b.to_string()),
        a.interconnect.devices.map_or_else(|| "-".to_owned(), |n| n.to_string()),
        a.fact.as_of.clone(),
    ]
}

fn yes(flag: Option<bool>) -> String {
    match flag {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => "?".to_owned(),
    }
}

fn rule(rule: MemoryRule) -> &'static str {
    match rule {
        MemoryRule::OfTotal => "of total",
        MemoryRule::StaticFraction => "static fraction",
        MemoryRule::OfFree => "of what is left",
    }
}

fn engine_row(e: &Engine) -> Vec<String> {
    vec![
        e.name.clone(),
        e.since.to_string(),
        rule(e.memory_rule).to_owned(),
        e.memory_fraction.to_string(),
        yes(e.graphs_in_budget),
        e.block_tokens.map_or_else(|| "?".to_owned(), |t| t.to_string()),
        yes(e.prefix_caching),
        e.fact.as_of.clone(),
    ]
}

fn node_row(catalog: &Catalog, p: &NodePrice) -> Vec<String> {
    let instance = catalog.instances.iter().find(|i| i.name == p.instance);
    let holds =
        instance.map_or_else(|| "?".to_owned(), |i| format!("{} x {}", i.count, i.accelerator));
    let each = instance.map_or_else(
        || "?".to_owned(),
        |i| format!("${:.2}/h", p.on_demand.get_picos() as f64 / 1e12 / f64::from(i.count)),
    );
    vec![
        p.instance.clone(),
        p.region.clone(),
        holds,
        p.on_demand.to_string(),
        each,
        p.spot.map_or_else(|| "-".to_owned(), |s| s.to_string()),
        p.fact.as_of.clone(),
    ]
}

fn token_row(p: &TokenPrice) -> Vec<String> {
    vec![
        p.provider.clone(),
        p.model.clone(),
        p.input.to_string(),
        p.cached_input.map_or_else(|| "-".to_owned(), |c| c.to_string()),
        p.output.to_string(),
        p.fact.as_of.clone(),
    ]
}

// ----- cards

fn fact_lines(out: &mut String, fact: &Fact) {
    let _ = writeln!(out, "  source          {}, {}", fact.source, fact.as_of);
    if let Some(note) = &fact.note {
        let _ = writeln!(out, "  note            {note}");
    }
}

fn model_card(out: &mut String, model: &Model, heading: Heading) {
    let a = &model.architecture;
    let _ = writeln!(out, "{} ({})\n", heading.apply(&model.name), model.title);
    let mut line = |label: &str, value: String| {
        let _ = writeln!(out, "  {label:<15} {value}");
    };
    let parameters = a.parameters(Part::Text);
    line(
        "parameters",
        format!(
            "{} in the text decoder, {} active per token",
            grouped(parameters),
            billions(a.parameters_active())
        ),
    );
    for (part, name) in [(Part::Draft, "draft layers"), (Part::Vision, "vision tower")] {
        if a.parameters(part) > 0 {
            line("", format!("{} in the {name}", grouped(a.parameters(part))));
        }
    }
    if let Some(published) = model.parameters_published {
        let source = model.parameters_source.as_deref().unwrap_or("not stated");
        line("published", format!("{} ({source})", grouped(published)));
    }
    if let Some(note) = &model.parameters_note {
        line("", note.clone());
    }
    line("layers", format!("{}: {}", a.layers.len(), attention(a)));
    line(
        "width",
        format!(
            "{}, vocabulary {}{}",
            grouped(a.hidden_size),
            grouped(a.vocab_size),
            if a.tied { ", tied" } else { "" }
        ),
    );
    line(
        "context",
        a.context_max.map_or_else(|| "not stated".to_owned(), |c| format!("{c} tokens")),
    );
    let dtype = a.dtype.as_deref().unwrap_or("not stated");
    line(
        "published in",
        a.quantization
            .as_ref()
            .map_or_else(|| dtype.to_owned(), |q| format!("{q}, computing in {dtype}")),
    );
    line(
        "verified",
        if model.verified {
            "every number was read in the source"
        } else {
            "not every number was read"
        }
        .to_owned(),
    );
    line("also called", model.aliases.join(", "));
    for note in &a.notes {
        line("note", note.clone());
    }
    fact_lines(out, &model.fact);
}

fn accelerator_card(out: &mut String, a: &Accelerator, catalog: &Catalog, heading: Heading) {
    let _ = writeln!(out, "{} ({}, {})\n", heading.apply(&a.name), a.vendor, a.architecture);
    let mut line = |label: &str, value: String| {
        let _ = writeln!(out, "  {label:<15} {value}");
    };
    let marketed = format!("{:.1} GB as marketed", a.memory.get() as f64 / 1e9);
    line(
        "memory",
        match a.memory_reported {
            Some(reported) => {
                let source = a.memory_reported_source.as_deref().unwrap_or("source not stated");
                format!("{reported} reported ({source}); {marketed}")
            }
            None => marketed,
        },
    );
    line("bandwidth", a.bandwidth.to_string());
    let peaks: Vec<String> = a.peaks.iter().map(|p| format!("{} {}", p.format, p.rate)).collect();
    line("dense peaks", peaks.join(", "));
    let link = &a.interconnect;
    line(
        "interconnect",
        format!(
            "{}, {} per device and direction, {} devices",
            link.name,
            link.bandwidth.map_or_else(|| "unknown bandwidth".to_owned(), |b| b.to_string()),
            link.devices.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
        ),
    );
    if let Some(pcie) = &a.pcie {
        line("host link", pcie.clone());
    }
    if let Some(power) = a.power {
        line("power", power.to_string());
    }
    let nodes: Vec<String> = catalog
        .instances
        .iter()
        .filter(|i| i.accelerator == a.name)
        .map(|i| format!("{} ({}, {})", i.name, i.cloud, i.count))
        .collect();
    if !nodes.is_empty() {
        line("nodes", nodes.join(", "));
    }
    line("also called", a.aliases.join(", "));
    line("confidence", a.confidence.clone());
    fact_lines(out, &a.fact);
}

fn engine_card(out: &mut String, e: &Engine, heading: Heading) {
    let _ = writeln!(out, "{} from {} on\n", heading.apply(&e.name), e.since);
    let mut line = |label: &str, value: String| {
        let _ = writeln!(out, "  {label:<23} {value}");
    };
    line("memory", format!("{} {}", e.memory_fraction, rule(e.memory_rule)));
    line("graphs in budget", yes(e.graphs_in_budget));
    line("block", e.block_tokens.map_or_else(|| "unknown".to_owned(), |t| format!("{t} tokens")));
    line("prefix caching", yes(e.prefix_caching));
    line("chunked prefill", yes(e.chunked_prefill));
    line("max_num_seqs", conditional(&e.max_num_seqs));
    line("max_num_batched_tokens", conditional(&e.max_num_batched_tokens));
    line("scheduling", format!("{}, asynchronous: {}", e.scheduling, yes(e.async_scheduling)));
    line(
        "printed KV tokens",
        match e.printed_tokens {
            Some(PrintedTokens::Blocks) => "blocks x block size",
            Some(PrintedTokens::BlocksOverGroups) => "blocks / layer groups x block size",
            Some(PrintedTokens::ConcurrencyTimesContext) => "largest concurrency x max_model_len",
            None => "unknown",
        }
        .to_owned(),
    );
    if !e.admission_flags.is_empty() {
        line("admission flags", e.admission_flags.join(", "));
    }
    let _ = writeln!(out, "  {:<23} {}, {}", "source", e.fact.source, e.fact.as_of);
    if let Some(note) = &e.fact.note {
        let _ = writeln!(out, "  {:<23} {note}", "note");
    }
}

fn conditional(list: &[plimsoll_fleet::DeviceDefault]) -> String {
    if list.is_empty() {
        return "unknown".to_owned();
    }
    let shown: Vec<String> = list
        .iter()
        .map(|d| {
            let mut when = Vec::new();
            if let Some(m) = d.when.memory_at_least {
                when.push(format!("from {m}"));
            }
            if let Some(m) = d.when.memory_below {
                when.push(format!("below {m}"));
            }
            if let Some(n) = d.when.tensor_parallel_below {
                when.push(format!("TP below {n}"));
            }
            if !d.when.only.is_empty() {
                when.push(format!("only {}", d.when.only.join(", ")));
            }
            if !d.when.except.is_empty() {
                when.push(format!("except {}", d.when.except.join(", ")));
            }
            if when.is_empty() {
                grouped(d.value)
            } else {
                format!("{} ({})", grouped(d.value), when.join(", "))
            }
        })
        .collect();
    shown.join(", else ")
}

// ----- JSON

/// The same as a JSON document; `Err` holds the nearest names.
pub fn catalog_json(
    catalog: &Catalog,
    profiles: &[Profile],
    topic: Topic,
    name: Option<&str>,
) -> Result<Value, Vec<String>> {
    let (key, entries) = match (topic, name) {
        (Topic::Models, None) => ("models", catalog.models.iter().map(model_json).collect()),
        (Topic::Models, Some(n)) => {
            ("models", vec![model_json(catalog.model(n).map_err(|u| u.nearest)?)])
        }
        (Topic::Accelerators, None) => {
            ("accelerators", catalog.accelerators.iter().map(accelerator_json).collect())
        }
        (Topic::Accelerators, Some(n)) => {
            ("accelerators", vec![accelerator_json(catalog.accelerator(n).map_err(|u| u.nearest)?)])
        }
        (Topic::Engines, None) => ("engines", catalog.engines.iter().map(engine_json).collect()),
        (Topic::Engines, Some(n)) => {
            ("engines", vec![engine_json(catalog.engine(n).map_err(|u| u.nearest)?)])
        }
        (Topic::Prices, name) => {
            // The text view has already decided whether the name is known.
            catalog_text(catalog, profiles, topic, name, Heading::Plain)?;
            let wanted = name
                .map(|n| catalog.accelerator(n).map_or_else(|_| n.to_owned(), |a| a.name.clone()));
            let nodes: Vec<Value> = catalog
                .node_prices
                .iter()
                .filter_map(|p| {
                    let instance = catalog.instances.iter().find(|i| i.name == p.instance)?;
                    let fits = wanted.as_ref().is_none_or(|w| {
                        instance.accelerator == *w || instance.name.eq_ignore_ascii_case(w)
                    });
                    fits.then(|| node_json(instance, p))
                })
                .collect();
            ("prices", nodes)
        }
        (Topic::Profiles, name) => {
            let chosen: Vec<&Profile> =
                profiles.iter().filter(|p| name.is_none_or(|n| p.name == n)).collect();
            if let (Some(name), true) = (name, chosen.is_empty()) {
                return Err(nearest(name, profiles.iter().map(|p| p.name)));
            }
            ("profiles", chosen.into_iter().map(profile_json).collect())
        }
    };
    let mut document = json!({ "schema": "plimsoll/catalog/v1" });
    if let Value::Object(map) = &mut document {
        map.insert(key.to_owned(), Value::Array(entries));
        let view = match (topic, name) {
            (Topic::Accelerators, Some(n)) => catalog.accelerator(n).ok().map(View::Accelerator),
            (Topic::Engines, Some(n)) => catalog.engine(n).ok().map(View::Engine),
            (Topic::Accelerators | Topic::Engines, None) => Some(View::All(topic)),
            _ => None,
        };
        if let Some(view) = view {
            let (constants, bands) = view.json(catalog);
            map.insert("constants".to_owned(), constants);
            map.insert("bands".to_owned(), bands);
        }
        if topic == Topic::Prices && name.is_none() {
            map.insert(
                "token_prices".to_owned(),
                catalog.token_prices.iter().map(token_json).collect(),
            );
        }
    }
    Ok(document)
}

fn with_fact(mut value: Value, fact: &Fact) -> Value {
    if let Value::Object(map) = &mut value {
        map.insert("source".to_owned(), json!(fact.source));
        map.insert("as_of".to_owned(), json!(fact.as_of));
        map.insert("note".to_owned(), json!(fact.note));
    }
    value
}

fn model_json(m: &Model) -> Value {
    let a = &m.architecture;
    let value = json!({
        "name": m.name, "title": m.title, "aliases": m.aliases, "family": a.family,
        "parameters": a.parameters(Part::Text), "parameters_active": a.parameters_active(),
        "parameters_draft": a.parameters(Part::Draft), "parameters_vision": a.parameters(Part::Vision),
        "parameters_published": m.parameters_published, "parameters_source": m.parameters_source,
        "layers": a.layers.len(), "attention": attention(a), "hidden_size": a.hidden_size,
        "vocab_size": a.vocab_size, "tied": a.tied, "context_max_tokens": a.context_max.map(|c| c.get()),
        "dtype": a.dtype, "quantization": a.quantization, "verified": m.verified, "notes": a.notes,
    });
    with_fact(value, &m.fact)
}

fn accelerator_json(a: &Accelerator) -> Value {
    let peaks: serde_json::Map<String, Value> =
        a.peaks.iter().map(|p| (format!("{}_ops_per_s", p.format), json!(p.rate.get()))).collect();
    let value = json!({
        "name": a.name, "aliases": a.aliases, "vendor": a.vendor, "architecture": a.architecture,
        "memory_bytes": a.memory.get(), "memory_reported_bytes": a.memory_reported.map(|m| m.get()),
        "memory_reported_source": a.memory_reported_source,
        "bandwidth_bytes_per_s": a.bandwidth.get(), "peaks": peaks,
        "interconnect": {
            "name": a.interconnect.name,
            "bandwidth_bytes_per_s": a.interconnect.bandwidth.map(|b| b.get()),
            "devices": a.interconnect.devices,
        },
        "pcie": a.pcie, "power_w": a.power.map(|p| p.get()), "confidence": a.confidence,
    });
    with_fact(value, &a.fact)
}

fn engine_json(e: &Engine) -> Value {
    let value = json!({
        "name": e.name, "since": e.since.to_string(), "memory_rule": rule(e.memory_rule),
        "memory_fraction": e.memory_fraction.get(), "graphs_in_budget": e.graphs_in_budget,
        "block_tokens": e.block_tokens.map(|t| t.get()), "prefix_caching": e.prefix_caching,
        "chunked_prefill": e.chunked_prefill, "max_num_seqs": conditional(&e.max_num_seqs),
        "max_num_batched_tokens": conditional(&e.max_num_batched_tokens), "scheduling": e.scheduling,
        "async_scheduling": e.async_scheduling, "admission_flags": e.admission_flags,
    });
    with_fact(value, &e.fact)
}

fn micros(price: plimsoll_units::UsdPerHour) -> f64 {
    price.get_picos() as f64 / 1e12
}

fn node_json(i: &Instance, p: &NodePrice) -> Value {
    let value = json!({
        "instance": p.instance, "cloud": i.cloud, "region": p.region, "accelerator": i.accelerator,
        "count": i.count, "on_demand_usd_per_hour": micros(p.on_demand),
        "spot_usd_per_hour": p.spot.map(micros), "reserved_usd_per_hour": p.reserved.map(micros),
    });
    with_fact(value, &p.fact)
}

fn token_json(p: &TokenPrice) -> Value {
    let usd = |t: plimsoll_units::UsdPerToken| t.get_picos() as f64 / 1e6;
    let value = json!({
        "provider": p.provider, "model": p.model, "input_usd_per_mtok": usd(p.input),
        "cached_input_usd_per_mtok": p.cached_input.map(usd), "output_usd_per_mtok": usd(p.output),
        "batch_input_usd_per_mtok": p.batch_input.map(usd), "batch_output_usd_per_mtok": p.batch_output.map(usd),
    });
    with_fact(value, &p.fact)
}

fn profile_json(p: &Profile) -> Value {
    let keys: serde_json::Map<String, Value> =
        p.keys.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    json!({ "name": p.name, "title": p.title, "class": keys, "source": p.source, "as_of": p.as_of })
}
