//! Rules about what lets calls in: LiteLLM, Envoy AI Gateway and endpoint pickers.

use std::collections::BTreeMap;

use plimsoll_study::{FileClassLimits, FileLimit};

use super::known::Files;
use super::manifest::quantity;
use super::scalers::seconds;
use super::{Found, shown};
use crate::yaml::Node;

/// Whether a document is one of a gateway.
pub(super) fn is_one(node: &Node) -> bool {
    let kind = node.get("kind").and_then(Node::text);
    matches!(kind, Some("QuotaPolicy" | "EndpointPickerConfig"))
        || (kind.is_none() && node.get("model_list").is_some())
}

pub(super) fn check(node: &Node, files: &Files<'_>, found: &mut Found<'_>) {
    match node.get("kind").and_then(Node::text) {
        Some("QuotaPolicy") => quotas(node, files, found),
        Some("EndpointPickerConfig") => picker(node, files, found),
        _ => litellm(node, files, found),
    }
}

/// What all classes of a pool may ask for; none where that of one is not known.
fn sum(classes: &[FileClassLimits], limit: impl Fn(&FileClassLimits) -> &FileLimit) -> Option<f64> {
    if classes.is_empty() {
        return None;
    }
    classes.iter().map(|class| limit(class).value).sum()
}

/// The limits of a model's deployments together, against those of the pool.
fn litellm(node: &Node, files: &Files<'_>, found: &mut Found<'_>) {
    let mut models: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    let list = node.get("model_list").map(Node::items).unwrap_or_default();
    for own in list {
        let Some(params) = own.get("litellm_params") else { continue };
        let name = own.get("model_name").and_then(Node::text).unwrap_or("");
        models.entry(name).or_default().push(params);
    }
    for (name, all) in models {
        let mut names = vec![name];
        names.extend(all.iter().filter_map(|own| own.get("model").and_then(Node::text)));
        let Some(limits) = files.of_name(node, &names).and_then(|pool| pool.limits) else {
            continue;
        };
        let classes = &limits.classes;
        let rows = [
            ("tpm", "tokens/min", sum(classes, |own| &own.tpm)),
            ("rpm", "calls/min", sum(classes, |own| &own.rpm)),
            ("max_parallel_requests", "calls at once", sum(classes, |own| &own.concurrency)),
        ];
        for (key, unit, most) in rows {
            let set: Vec<&Node> = all.iter().filter_map(|own| own.get(key)).collect();
            let total: f64 = set.iter().filter_map(|own| own.number()).sum();
            if let (Some(first), Some(most)) = (set.first(), most)
                && total > most * 1.005
            {
                let message = format!(
                    "`{key}` of `{name}` is {} {unit}, and the plan's limit for pool `{}` is {}",
                    shown(total),
                    limits.pool,
                    shown(most)
                );
                let _ = found.warning(17, first.at, message).fix(format!("{key}: {}", shown(most)));
            }
        }
    }
}

fn quotas(node: &Node, files: &Files<'_>, found: &mut Found<'_>) {
    let list = node.find("spec.perModelQuotas").map(Node::items).unwrap_or_default();
    for own in list {
        let name = own.get("modelName").and_then(Node::text).unwrap_or("");
        // Weighted tokens are not those that the plan counts.
        if own.find("quota.costExpression").is_some() {
            continue;
        }
        let Some(bucket) = own.find("quota.defaultBucket") else { continue };
        let limit = bucket.get("limit").and_then(|own| Some((own, quantity(own.text()?)?)));
        let every = bucket.get("duration").and_then(Node::text).and_then(seconds);
        let limits = files.of_name(node, &[name]).and_then(|pool| pool.limits);
        let (Some((at, limit)), Some(every), Some(limits)) = (limit, every, limits) else {
            continue;
        };
        let Some(most) = sum(&limits.classes, |own| &own.tpm) else { continue };
        let minute = limit * 60.0 / every.max(1.0);
        if minute > most * 1.005 {
            let message = format!(
                "`{name}` may ask for {} tokens/min, and the plan's limit for pool `{}` is {}",
                shown(minute),
                limits.pool,
                shown(most)
            );
            let fix = format!("limit: {}", shown((most * every / 60.0).floor()));
            let _ = found.warning(17, at.at, message).fix(fix);
        }
    }
}

fn picker(node: &Node, files: &Files<'_>, found: &mut Found<'_>) {
    let plugins = node.get("plugins").map(Node::items).unwrap_or_default();
    let name = node.find("metadata.name").and_then(Node::text).unwrap_or("");
    let limits = files.of_name(node, &[name]).and_then(|pool| pool.limits);
    for own in plugins.iter().filter_map(|own| own.get("parameters")) {
        if let Some(share) = own.get("kvCacheUtilThreshold")
            && share.number().is_some_and(|share| share >= 1.0)
        {
            let message = "a share of the cache is 1 at most, so it is never exceeded".to_owned();
            let _ = found.error(6, share.at, message).fix("kvCacheUtilThreshold: 0.8");
        }
        if let Some(depth) = own.get("queueDepthThreshold")
            && let Some(limits) = limits
            && let (Some(told), Some(most)) = (depth.number(), limits.queue_requests.value)
            && told > most
        {
            let message = format!(
                "{} calls may wait at a replica, and the plan's limit for pool `{}` is {}",
                shown(told),
                limits.pool,
                shown(most)
            );
            let fix = format!("queueDepthThreshold: {}", shown(most));
            let _ = found.warning(17, depth.at, message).fix(fix);
        }
    }
}
