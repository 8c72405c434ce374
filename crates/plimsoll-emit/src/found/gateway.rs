//! Hosted models, routes and limits from the files of gateways: LiteLLM and Envoy AI Gateway.

use std::collections::BTreeMap;

use super::draft::{Draft, Gathered, Place, ProviderDraft, Public, Said, Source};
use super::flags::quoted;
use super::kube::{File, whole};
use crate::yaml::Node;

/// Reads the configuration of a LiteLLM proxy.
pub(super) fn litellm(file: &File<'_>, node: &Node, gathered: &mut Gathered) {
    let entries = node.get("model_list").map(Node::items).unwrap_or_default();
    for entry in entries {
        let params = entry.get("litellm_params");
        let (Some(public), Some(model)) =
            (entry.get("model_name"), params.and_then(|params| params.get("model")))
        else {
            let place = file.at(entry, "model_list");
            gathered.passed_over.push(format!("{place} an entry names no model"));
            continue;
        };
        let (Some(name), Some(text)) = (public.text(), model.text()) else { continue };
        let param = |key: &str| params.and_then(|params| params.get(key));
        let base = param("api_base").and_then(Node::text);
        let place = file.said("model", model);
        let target = target(text, base.map(host).as_deref(), &place, name, gathered);
        let index = gathered.providers.iter().position(|own| own.name == target);
        for (key, into) in
            [("rpm", "rpm"), ("tpm", "tpm"), ("max_parallel_requests", "concurrency")]
        {
            let Some(node) = param(key) else { continue };
            let Some(count) = whole(Some(node)).filter(|count| *count > 0) else { continue };
            let place = file.said(key, node);
            match index {
                Some(index) => {
                    gathered.providers[index].keys.insert(into, Said::new(count.to_string(), &place));
                }
                None => gathered.warnings.push(format!(
                    "{place} limits a pool of one's own, for which a scenario has no key; `plimsoll plan` works such limits out"
                )),
            }
        }
        if let Some(index) = index {
            for (key, into) in
                [("input_cost_per_token", "input"), ("output_cost_per_token", "output")]
            {
                let node = param(key).or(entry.get("model_info").and_then(|info| info.get(key)));
                let Some(node) = node else { continue };
                let Some(price) = node.number().filter(|price| *price >= 0.0) else { continue };
                let price = quoted(&format!("${}/Mtok", round(price * 1e6)));
                gathered.providers[index]
                    .keys
                    .insert(into, Said::new(price, &file.said(key, node)));
            }
        }
        let share = ["weight", "rpm", "tpm"].iter().find_map(|key| param(key)?.number());
        let to = Said::new((target, share.filter(|share| *share > 0.0).unwrap_or(1.0)), &place);
        send(name, file.said("model_name", public), to, gathered);
    }
    for section in ["router_settings", "litellm_settings", "general_settings"] {
        for (key, value) in node.get(section).map(Node::entries).unwrap_or_default() {
            let key = key.text().unwrap_or_default();
            if key != "fallbacks" {
                let place = file.at(value, &format!("{section}.{key}"));
                gathered.passed_over.push(format!("{place} is not taken over"));
            }
        }
    }
    for path in ["router_settings.fallbacks", "litellm_settings.fallbacks"] {
        for rule in node.find(path).map(Node::items).unwrap_or_default() {
            for (from, to) in rule.entries() {
                let Some(from) = from.text() else { continue };
                for item in to.items() {
                    let Some(text) = item.text() else { continue };
                    let said = Said::new(text.to_owned(), &file.at(item, "fallbacks"));
                    if let Some(own) = gathered.publics.iter_mut().find(|own| own.name == from) {
                        own.fallback.push(said);
                    }
                }
            }
        }
    }
}

fn round(price: f64) -> f64 {
    (price * 1e6).round() / 1e6
}

/// Adds a place to go to what clients ask for by name.
fn send(name: &str, place: Place, to: Said<(String, f64)>, gathered: &mut Gathered) {
    match gathered.publics.iter_mut().find(|own| own.name == name) {
        Some(own) => match own.to.iter_mut().find(|other| other.value.0 == to.value.0) {
            Some(other) => other.value.1 += to.value.1,
            None => own.to.push(to),
        },
        None => gathered.publics.push(Public {
            name: name.to_owned(),
            place,
            to: vec![to],
            fallback: Vec::new(),
        }),
    }
}

/// `http://chat.prod.svc:8000/v1` is `chat.prod.svc`.
fn host(base: &str) -> String {
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    rest.split(['/', ':']).next().unwrap_or_default().to_owned()
}

/// The pool or provider that `openai/gpt-4.1` stands for, by name; it is added where it is new.
fn target(
    model: &str,
    host: Option<&str>,
    place: &Place,
    public: &str,
    gathered: &mut Gathered,
) -> String {
    let (prefix, rest) = match model.split_once('/') {
        Some((prefix, rest)) => (prefix.to_lowercase(), rest),
        None if model.starts_with("claude") => ("anthropic".to_owned(), model),
        None if model.starts_with("gemini") => ("gemini".to_owned(), model),
        None => ("openai".to_owned(), model),
    };
    let compatible = ["openai", "text-completion-openai", "custom_openai", "openai_like"];
    let served = ["hosted_vllm", "vllm", "ollama", "ollama_chat", "nvidia_nim", "triton"];
    let elsewhere = host.is_some_and(|host| !host.ends_with("openai.com"));
    let own =
        served.contains(&prefix.as_str()) || compatible.contains(&prefix.as_str()) && elsewhere;
    if own {
        return own_pool(rest, host, place, gathered);
    }
    hosted(&prefix, rest, place, public, gathered)
}

/// A pool that only a gateway speaks of so far.
fn own_pool(model: &str, host: Option<&str>, place: &Place, gathered: &mut Gathered) -> String {
    let same = |own: &&Draft| {
        own.source == Source::Gateway && own.name == model && own.host.as_deref() == host
    };
    if let Some(own) = gathered.pools.iter().find(same) {
        return own.name.clone();
    }
    let taken = |name: &str| is_taken(name, gathered);
    let name = (1..1000)
        .map(|i| if i == 1 { model.to_owned() } else { format!("{model} {i}") })
        .find(|name| !taken(name))
        .unwrap_or_else(|| model.to_owned());
    let mut draft = Draft::new(Source::Gateway, "gateway", &name, place.clone());
    draft.model = Some(Said::new(model.to_owned(), place));
    draft.served = Some(Said::new(model.to_owned(), place));
    draft.host = host.map(str::to_owned);
    gathered.pools.push(draft);
    name
}

fn hosted(
    provider: &str,
    model: &str,
    place: &Place,
    public: &str,
    gathered: &mut Gathered,
) -> String {
    let name = |own: &ProviderDraft| own.provider.value == provider && own.model.value == model;
    if let Some(own) = gathered.providers.iter().find(|own| name(own)) {
        return own.name.clone();
    }
    let names = [public.to_owned(), model.to_owned(), format!("{provider} {model}")];
    let fresh = names.iter().find(|name| !is_taken(name, gathered)).unwrap_or(&names[2]).clone();
    gathered.providers.push(ProviderDraft {
        name: fresh.clone(),
        place: place.clone(),
        provider: Said::new(provider.to_owned(), place),
        model: Said::new(model.to_owned(), place),
        ..ProviderDraft::default()
    });
    fresh
}

/// Whether a gateway's file already calls something so.
fn is_taken(name: &str, gathered: &Gathered) -> bool {
    gathered.pools.iter().any(|own| own.source == Source::Gateway && own.name == name)
        || gathered.providers.iter().any(|own| own.name == name)
}

/// Parts of Envoy AI Gateway's configuration, which name each other across documents.
#[derive(Clone, Debug, Default)]
pub(super) struct Envoy {
    /// The schema and the host object of a backend, by its name.
    backends: BTreeMap<String, (String, String, Place)>,
    /// The host of a host object, by its name.
    hosts: BTreeMap<String, String>,
    rules: Vec<Rule>,
    quotas: Vec<Quota>,
}

#[derive(Clone, Debug)]
struct Rule {
    /// What clients ask for.
    models: Vec<String>,
    place: Place,
    to: Vec<Reference>,
}

#[derive(Clone, Debug)]
struct Reference {
    name: String,
    /// Whether it names pods, and not a backend.
    pods: bool,
    model: Option<String>,
    weight: f64,
    priority: u64,
    place: Place,
}

#[derive(Clone, Debug)]
struct Quota {
    backends: Vec<String>,
    model: String,
    /// Tokens a minute.
    limit: u64,
    place: Place,
}

/// Reads an object of Envoy AI Gateway; whether it is one.
pub(super) fn envoy(
    file: &File<'_>,
    kind: &str,
    name: &str,
    place: &Place,
    spec: &Node,
    gathered: &mut Gathered,
) -> bool {
    let text = |node: Option<&Node>| node.and_then(Node::text).unwrap_or_default().to_owned();
    match kind {
        "AIServiceBackend" => {
            let schema = text(spec.find("schema.name"));
            let backend = text(spec.find("backendRef.name"));
            gathered.envoy.backends.insert(name.to_owned(), (schema, backend, place.clone()));
        }
        "Backend" => {
            let ends = spec.get("endpoints").map(Node::items).unwrap_or_default();
            let host = ends
                .iter()
                .find_map(|end| end.find("fqdn.hostname").or(end.find("ip.address"))?.text());
            gathered.envoy.hosts.insert(name.to_owned(), host.unwrap_or_default().to_owned());
        }
        "AIGatewayRoute" => {
            for rule in spec.get("rules").map(Node::items).unwrap_or_default() {
                let rule = route_rule(file, rule);
                gathered.envoy.rules.push(rule);
            }
        }
        "QuotaPolicy" => {
            let refs = spec.get("targetRefs").map(Node::items).unwrap_or_default();
            let backends: Vec<String> = refs.iter().map(|own| text(own.get("name"))).collect();
            for quota in spec.get("perModelQuotas").map(Node::items).unwrap_or_default() {
                let bucket = quota.find("quota.defaultBucket");
                let limit = bucket.and_then(|bucket| bucket.get("limit"));
                let per = text(bucket.and_then(|bucket| bucket.get("duration")));
                let (Some(count), Some(seconds)) = (whole(limit), duration(&per)) else {
                    let place = file.at(quota, "perModelQuotas");
                    gathered.warnings.push(format!("{place} has no limit that is understood"));
                    continue;
                };
                let place = limit.map_or(place.clone(), |node| {
                    file.at(node, &format!("limit: {count} per {per}"))
                });
                gathered.envoy.quotas.push(Quota {
                    backends: backends.clone(),
                    model: text(quota.get("modelName")),
                    limit: (count as f64 * 60.0 / seconds).round() as u64,
                    place,
                });
            }
        }
        "BackendSecurityPolicy" | "BackendTLSPolicy" | "GatewayConfig" => {
            gathered.passed_over.push(format!("{place} says nothing of capacity"));
        }
        _ => return false,
    }
    true
}

/// `1m`, `30s` or `1h` in seconds.
fn duration(text: &str) -> Option<f64> {
    let unit = match text.chars().last()? {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        _ => return None,
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse::<f64>().ok().map(|count| count * unit).filter(|seconds| *seconds > 0.0)
}

fn route_rule(file: &File<'_>, rule: &Node) -> Rule {
    let mut models = Vec::new();
    for part in rule.get("matches").map(Node::items).unwrap_or_default() {
        for header in part.get("headers").map(Node::items).unwrap_or_default() {
            let name = header.get("name").and_then(Node::text).unwrap_or_default();
            if let Some(value) = header.get("value").and_then(Node::text)
                && name.eq_ignore_ascii_case("x-ai-eg-model")
            {
                models.push(value.to_owned());
            }
        }
    }
    let refs = rule.get("backendRefs").map(Node::items).unwrap_or_default();
    let to = refs.iter().filter_map(|own| {
        let name = own.get("name")?.text()?;
        Some(Reference {
            name: name.to_owned(),
            pods: own.get("kind").and_then(Node::text) == Some("InferencePool"),
            model: own.get("modelNameOverride").and_then(Node::text).map(str::to_owned),
            weight: own.get("weight").and_then(Node::number).unwrap_or(1.0).max(0.0),
            priority: whole(own.get("priority")).unwrap_or(0),
            place: file.at(own, &format!("backendRef {name}")),
        })
    });
    Rule { models, place: file.at(rule, "rules"), to: to.collect() }
}

/// Joins what the documents say of each other.
pub(super) fn join(gathered: &mut Gathered) {
    let envoy = std::mem::take(&mut gathered.envoy);
    let mut used: Vec<&str> = Vec::new();
    for rule in &envoy.rules {
        let models = match rule.models.is_empty() {
            true => vec!["any model".to_owned()],
            false => rule.models.clone(),
        };
        for model in &models {
            let first = rule.to.iter().map(|own| own.priority).min().unwrap_or(0);
            for own in &rule.to {
                used.push(&own.name);
                let asked = own.model.as_deref().unwrap_or(model);
                let target = backend(own, asked, &envoy, gathered);
                if own.priority > first {
                    if let Some(public) = gathered.publics.iter_mut().find(|p| p.name == *model) {
                        public.fallback.push(Said::new(target, &own.place));
                    }
                } else if own.weight > 0.0 {
                    let to = Said::new((target, own.weight), &own.place);
                    send(model, rule.place.saying(model), to, gathered);
                }
            }
        }
    }
    for (name, (_, _, place)) in &envoy.backends {
        if !used.contains(&name.as_str()) {
            gathered.passed_over.push(format!("{place} no rule sends anything there"));
        }
    }
    for quota in &envoy.quotas {
        let mut held = false;
        for own in &mut gathered.providers {
            let backend = own.remarks.iter().any(|remark| {
                quota.backends.iter().any(|name| *remark == format!("backend `{name}`"))
            });
            if backend && own.model.value == quota.model {
                let said = Said::new(quota.limit.to_string(), &quota.place);
                held = own.keys.insert("tpm", said).is_none();
            }
        }
        if !held {
            gathered.warnings.push(format!(
                "{} is for `{}`, which is no hosted model of these files; a scenario has no key for limits of one's own pools",
                quota.place, quota.model
            ));
        }
    }
}

fn backend(own: &Reference, asked: &str, envoy: &Envoy, gathered: &mut Gathered) -> String {
    if own.pods {
        return own_pool(asked, Some(&own.name), &own.place, gathered);
    }
    let known = envoy.backends.get(&own.name);
    let schema = known.map(|(schema, _, _)| schema.as_str()).unwrap_or_default();
    let host = known.and_then(|(_, host, _)| envoy.hosts.get(host)).map(String::as_str);
    let provider = match (schema, host.unwrap_or_default()) {
        ("AWSBedrock" | "AWSAnthropic", _) => Some("bedrock"),
        ("AzureOpenAI", _) => Some("azure"),
        ("Anthropic", _) => Some("anthropic"),
        ("GCPVertexAI" | "GCPAnthropic", _) => Some("vertex_ai"),
        ("Cohere", _) => Some("cohere"),
        (_, host) if host.ends_with("openai.com") => Some("openai"),
        (_, host) if host.ends_with("groq.com") => Some("groq"),
        (_, host) if host.ends_with("together.xyz") => Some("together_ai"),
        (_, host) if host.ends_with("deepseek.com") => Some("deepseek"),
        (_, host) if host.ends_with("googleapis.com") => Some("gemini"),
        _ => None,
    };
    let Some(provider) = provider else {
        let name = known.map(|(_, backend, _)| backend.as_str()).filter(|name| !name.is_empty());
        return own_pool(asked, host.or(name).or(Some(&own.name)), &own.place, gathered);
    };
    let name = hosted(provider, asked, &own.place, asked, gathered);
    let remark = format!("backend `{}`", own.name);
    if let Some(draft) = gathered.providers.iter_mut().find(|draft| draft.name == name)
        && !draft.remarks.contains(&remark)
    {
        draft.remarks.push(remark);
    }
    name
}
