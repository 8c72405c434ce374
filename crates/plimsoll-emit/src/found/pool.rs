//! The lines of one pool.

use plimsoll_fleet::Catalog;

use super::draft::{Draft, Engine, Place, Said, clip};
use super::flags::quoted;
use super::lines::Lines;
use super::names;

/// Keys that are written as they were found, in this order.
const PARALLEL: &[&str] = &[
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "expert_parallel",
    "context_parallel",
];
const LIMITS: &[&str] = &[
    "kv_dtype",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "memory_utilization",
    "prefix_caching",
];

/// What is written of a pool beside its own draft.
pub(super) struct Around<'a> {
    pub title: &'a str,
    /// Its role, and the pool that decodes for it.
    pub role: Option<(Said, Option<&'a str>)>,
    /// The region that is written for all.
    pub region: bool,
}

/// Writes a pool.
pub(super) fn pool(
    draft: &Draft,
    around: &Around<'_>,
    catalog: &Catalog,
    lines: &mut Lines,
    warnings: &mut Vec<String>,
) {
    let title = around.title;
    let table = format!("pool.{title}");
    lines.plain("");
    lines.plain("[[pool]]");
    lines.set(&table, "name", quoted(title), &draft.place);
    let known = model(draft, &table, catalog, lines);
    device(draft, &table, catalog, lines, warnings);
    engine(draft, &table, catalog, lines);
    let draft = &parallel(draft.clone(), title, warnings);
    for key in PARALLEL {
        if let Some(said) = draft.keys.get(key) {
            lines.set(&table, key, said.value.clone(), &said.place);
        }
    }
    weights(draft, &table, known.as_ref(), lines);
    replicas(draft, &table, lines, warnings);
    for key in LIMITS {
        if let Some(said) = draft.keys.get(key) {
            lines.set(&table, key, said.value.clone(), &said.place);
        }
    }
    if let Some(said) = &draft.lora {
        let (adapters, rank) = said.value;
        let value = format!("{{ adapters = {adapters}, rank = {rank} }}");
        lines.set(&table, "lora", value, &said.place);
    }
    queue(draft, &table, lines);
    if let Some(said) = &draft.speculation {
        let tokens = said.value.unwrap_or(3).clamp(1, 64);
        let held = 1.0 + tokens as f64 * 0.5;
        lines.ask(
            format!("{table}.speculation"),
            format!("It guesses tokens ({}). How many does a step yield on average, the certain one included?", said.place),
            format!("speculation = {{ tokens = {tokens}, accept_length = {held} }}"),
        );
    }
    match &around.role {
        Some((said, Some(decode))) => {
            lines.set(&table, "role", quoted(&said.value), &said.place);
            let value = format!("{{ decode = {} }}", quoted(decode));
            lines.set(&table, "disaggregation", value, &said.place);
        }
        Some((said, None)) => lines.set(&table, "role", quoted(&said.value), &said.place),
        None => {}
    }
    if let Some(said) = draft.keys.get("drain") {
        lines.set(&table, "drain", said.value.clone(), &said.place);
    }
    startup(draft, &table, lines);
    if let Some(said) = draft.region.as_ref().filter(|_| around.region) {
        lines.set(&table, "regions", format!("[{}]", quoted(&said.value)), &said.place);
    }
    for remark in &draft.remarks {
        lines.comment(remark);
    }
    if !draft.unread.is_empty() {
        lines.comment("Not understood here, or without a key; none of it is in this scenario:");
        for line in &draft.unread {
            lines.comment(&format!("  {line}"));
        }
    }
    if !draft.harmless.is_empty() {
        lines.comment(&format!("Without effect on capacity: {}", draft.harmless.join(", ")));
    }
}

fn model(draft: &Draft, table: &str, catalog: &Catalog, lines: &mut Lines) -> Option<names::Known> {
    let key = format!("{table}.model");
    let own = "\n# hf_config = \"config.json\"    # or its own configuration, for a model that the catalogue does not know";
    let Some(said) = &draft.model else {
        lines.need(key, "Which model does it serve?", format!("model = \"llama-3.1-8b\"{own}"));
        return None;
    };
    match names::model(catalog, &said.value) {
        Ok(known) => {
            lines.set(table, "model", quoted(&known.write), &said.place);
            if !known.exact {
                let raw = clip(&said.value, 80);
                lines.comment(&format!("`{raw}` is taken for this model by its name; give `hf_config` where its shape differs."));
            }
            Some(known)
        }
        Err(nearest) => {
            let example = nearest.first().map_or("llama-3.1-8b", String::as_str);
            let near = match nearest.as_slice() {
                [] => String::new(),
                names => format!(" Nearest: {}.", names.join(", ")),
            };
            let question = format!(
                "The catalogue does not know `{}` ({}). Which model is it?{near}",
                clip(&said.value, 80),
                said.place.short()
            );
            lines.need(key, question, format!("model = {}{own}", quoted(example)));
            None
        }
    }
}

fn device(
    draft: &Draft,
    table: &str,
    catalog: &Catalog,
    lines: &mut Lines,
    warnings: &mut Vec<String>,
) {
    let instance = draft.instance.as_ref().and_then(|said| {
        let own = catalog.instance(&said.value).ok()?;
        Some((own, &said.place))
    });
    let label = draft
        .accelerator
        .as_ref()
        .and_then(|said| Some((names::accelerator(catalog, &said.value)?, &said.place)));
    let key = format!("{table}.accelerator");
    match (label, instance) {
        (Some((name, place)), instance) => {
            lines.set(table, "accelerator", quoted(name), place);
            match instance {
                Some((own, place)) if own.accelerator == name => {
                    lines.set(table, "instance", quoted(&own.name), place);
                }
                Some((own, other)) => warnings.push(format!(
                    "{table}: {other} holds {}, and {place} says {name}; the instance is left out",
                    own.accelerator
                )),
                None => {}
            }
        }
        (None, Some((own, place))) => {
            lines.set(table, "accelerator", quoted(&own.accelerator), place);
            lines.set(table, "instance", quoted(&own.name), place);
        }
        (None, None) => {
            let unknown = draft.accelerator.as_ref().or(draft.instance.as_ref());
            let question = match unknown {
                Some(said) => {
                    format!("The catalogue does not know {}. Which device is it?", said.place)
                }
                None => "Which device does it run on? No file says it.".to_owned(),
            };
            lines.need(key, question, "accelerator = \"H100-SXM\"");
        }
    }
    if let Some(said) = draft.instance.as_ref().filter(|_| instance.is_none() && label.is_some()) {
        lines.comment(&format!("The catalogue does not know this instance: {}", said.place));
    }
}

fn engine(draft: &Draft, table: &str, catalog: &Catalog, lines: &mut Lines) {
    let key = format!("{table}.engine");
    let Some(engine) = &draft.engine else {
        lines.ask(key, "Which engine is it, and which version?", "engine = \"vllm\"");
        return;
    };
    let name = engine.value.name();
    if let Some(version) = &draft.version
        && let Some(value) = names::engine(catalog, name, &version.value)
    {
        lines.set(table, "engine", quoted(&value), &version.place);
        return;
    }
    let question = match &draft.version {
        Some(said) => format!(
            "The catalogue knows no {name} this old: {}. Which version comes nearest?",
            said.place
        ),
        None => format!("Which version of {name} is it ({})? The newest is assumed.", engine.place),
    };
    lines.ask(key, question, format!("engine = {}", quoted(name)));
}

/// Experts and copies of the attention follow from the whole; what is asked for must be what is used.
fn parallel(mut draft: Draft, title: &str, warnings: &mut Vec<String>) -> Draft {
    let one = |draft: &Draft, key: &str| draft.count(key).unwrap_or(1);
    let sglang = draft.engine.as_ref().is_some_and(|said| said.value == Engine::Sglang);
    let copies = one(&draft, "data_parallel");
    if sglang && copies > 1 {
        let tensor = one(&draft, "tensor_parallel");
        if let Some(place) = draft.attention_copies.clone() {
            // Its group is the whole; the copies of the attention divide it.
            if tensor.is_multiple_of(copies) {
                draft.set("tensor_parallel", (tensor / copies).to_string(), &place);
            }
            if !draft.keys.contains_key("expert_parallel") {
                draft.set("expert_parallel", tensor.to_string(), &place);
            }
        } else if let Some(said) = draft.keys.remove("data_parallel") {
            warnings.push(format!(
                "pool `{title}`: {} starts {copies} whole copies of the model; they are written as replicas",
                said.place
            ));
            for own in [&mut draft.replicas].into_iter().flatten() {
                own.value = own.value.saturating_mul(copies);
            }
            if let Some(own) = &mut draft.range {
                own.value =
                    (own.value.0.saturating_mul(copies), own.value.1.saturating_mul(copies));
            }
            if draft.replicas.is_none() {
                draft.replicas = Some(Said::new(copies, &said.place));
            }
            if let Some(own) = &mut draft.devices {
                own.value /= copies.max(1);
            }
        }
    }
    if let Some(spread) = draft.spread.clone().filter(|_| draft.nodes.is_none()) {
        if let Some(own) = &mut draft.replicas
            && own.value >= spread.value
            && own.value.is_multiple_of(spread.value)
            && matches!(draft.kind.as_str(), "StatefulSet" | "Deployment")
        {
            warnings.push(format!(
                "pool `{title}`: {} pods, {} to a replica ({}); `replicas = {}` is written",
                own.value,
                spread.value,
                spread.place,
                own.value / spread.value
            ));
            own.value /= spread.value;
        }
        draft.nodes = Some(spread);
    }
    if let Some(place) = draft.experts_everywhere.clone()
        && !draft.keys.contains_key("expert_parallel")
    {
        let all = one(&draft, "tensor_parallel").saturating_mul(one(&draft, "data_parallel"));
        draft.set("expert_parallel", all.to_string(), &place);
    }
    let used = ["tensor_parallel", "pipeline_parallel", "data_parallel"]
        .iter()
        .fold(1u64, |all, key| all.saturating_mul(one(&draft, key)));
    if let Some(devices) = &draft.devices {
        let nodes = draft.nodes.as_ref().map_or(1, |said| said.value);
        let asked = devices.value.saturating_mul(nodes);
        if asked != used {
            let group = match &draft.nodes {
                Some(said) => format!(" in each of {nodes} pods ({})", said.place),
                None => String::new(),
            };
            let flags = draft
                .keys
                .get("tensor_parallel")
                .map_or("no flag says otherwise".to_owned(), |said| said.place.to_string());
            warnings.push(format!(
                "pool `{title}`: a replica asks for {asked} devices ({}{group}) and uses {used} ({flags})",
                devices.place
            ));
        }
    }
    draft
}

fn weights(draft: &Draft, table: &str, known: Option<&names::Known>, lines: &mut Lines) {
    if let Some(said) = draft.keys.get("weights") {
        lines.set(table, "weights", said.value.clone(), &said.place);
        return;
    }
    let by_name = known.and_then(|known| known.weights).zip(draft.model.as_ref());
    if let Some((weights, said)) = by_name {
        lines.set(table, "weights", quoted(weights), &said.place);
        return;
    }
    let Some(said) = &draft.dtype else { return };
    let plain = known.is_some_and(|known| !known.quantized);
    let weights = match said.value.as_str() {
        "half" | "float16" => "fp16",
        "bfloat16" => "bf16",
        _ => return,
    };
    if plain {
        lines.set(table, "weights", quoted(weights), &said.place);
    }
}

fn replicas(draft: &Draft, table: &str, lines: &mut Lines, warnings: &mut Vec<String>) {
    let Some(range) = &draft.range else {
        match &draft.replicas {
            Some(said) => lines.set(table, "replicas", said.value.to_string(), &said.place),
            None => lines.ask(
                format!("{table}.replicas"),
                "How many replicas run? One is assumed.",
                "replicas = 1",
            ),
        }
        return;
    };
    let (least, most) = range.value;
    let now = draft.replicas.as_ref().map_or(least.max(1).min(most), |said| said.value);
    let kept = now.clamp(least, most);
    if let Some(said) = draft.replicas.as_ref().filter(|_| kept != now) {
        warnings.push(format!(
            "{table}: {} lies outside {least} to {most} of its autoscaler ({}); {kept} is written",
            said.place, range.place
        ));
    }
    let origin = match &draft.replicas {
        Some(said) => format!("{}, {}", said.place, range.place),
        None => range.place.to_string(),
    };
    let value = format!("{{ now = {kept}, plan = [{least}, {most}] }}");
    lines.set_from(table, "replicas", value, origin);
}

fn queue(draft: &Draft, table: &str, lines: &mut Lines) {
    let parts = [("requests", &draft.queue.0), ("tokens", &draft.queue.1)];
    let parts: Vec<(String, &Place)> = parts
        .iter()
        .filter_map(|(key, said)| {
            let said = said.as_ref()?;
            Some((format!("{key} = {}", said.value), &said.place))
        })
        .collect();
    if !parts.is_empty() {
        let value: Vec<&str> = parts.iter().map(|(text, _)| text.as_str()).collect();
        let origin: Vec<String> = parts.iter().map(|(_, place)| place.to_string()).collect();
        lines.set_from(table, "queue", format!("{{ {} }}", value.join(", ")), origin.join(", "));
    }
}

/// The phases that a log tells; the others keep their defaults.
fn startup(draft: &Draft, table: &str, lines: &mut Lines) {
    if draft.startup.is_empty() {
        return;
    }
    let compile = draft.startup.get("compile").map_or(0.0, |said| said.value);
    let vllm = draft.engine.as_ref().is_some_and(|said| said.value == Engine::Vllm);
    let mut parts = Vec::new();
    let mut origins = Vec::new();
    for phase in ["weights", "compile", "warm_up"] {
        let Some(said) = draft.startup.get(phase) else { continue };
        // vLLM counts compilation into the start of its engine.
        let own = if phase == "warm_up" && vllm && said.value > compile {
            said.value - compile
        } else {
            said.value
        };
        parts.push(format!("{phase} = \"{}s\"", (own * 10.0).round() / 10.0));
        origins.push(said.place.to_string());
    }
    lines.comment("One start, as its log tells it; the node and the image are not in it, and keep their defaults.");
    let value = format!("{{ {} }}", parts.join(", "));
    lines.set_from(table, "startup", value, origins.join(", "));
}
