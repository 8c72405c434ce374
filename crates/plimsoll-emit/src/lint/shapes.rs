//! Rules about the shape of manifests: fields that a kind does not have, and versions that are gone.

use plimsoll_fleet::nearest;

use super::Found;
use super::manifest::Scaler;
use crate::yaml::Node;

/// Old versions of APIs, and what took their place.
const GONE: &[(&str, &str, &str)] = &[
    ("autoscaling/v2beta1", "autoscaling/v2", "Kubernetes 1.25 took it out"),
    ("autoscaling/v2beta2", "autoscaling/v2", "Kubernetes 1.26 took it out"),
    (
        "inference.networking.x-k8s.io/v1alpha1",
        "inference.networking.k8s.io/v1",
        "pools moved to another group when they became stable",
    ),
    (
        "inference.networking.x-k8s.io/v1alpha2",
        "inference.networking.k8s.io/v1",
        "pools moved to another group when they became stable",
    ),
];

/// L22.
pub(super) fn check_api(node: &Node, found: &mut Found<'_>) {
    let Some(api) = node.get("apiVersion") else { return };
    let text = api.text().unwrap_or("");
    // Objectives, rewrites and the like stay in the old group or go elsewhere.
    let kind = node.get("kind").and_then(Node::text).unwrap_or("");
    let pools = !text.starts_with("inference.") || kind == "InferencePool";
    if let Some((old, new, when)) = GONE.iter().find(|(old, ..)| *old == text && pools) {
        let message = format!("`{old}` is old: {when}");
        let _ = found.warning(22, api.at, message).fix(format!("apiVersion: {new}"));
    }
}

const SPEC: &[&str] = &[
    "scaleTargetRef",
    "pollingInterval",
    "cooldownPeriod",
    "initialCooldownPeriod",
    "idleReplicaCount",
    "minReplicaCount",
    "maxReplicaCount",
    "advanced",
    "triggers",
    "fallback",
];
const TARGET: &[&str] = &["apiVersion", "kind", "name", "envSourceContainerName"];
const ADVANCED: &[&str] =
    &["horizontalPodAutoscalerConfig", "restoreToOriginalReplicaCount", "scalingModifiers"];
const FALLBACK: &[&str] = &["failureThreshold", "replicas", "behavior"];
const TRIGGER: &[&str] =
    &["type", "name", "metadata", "authenticationRef", "useCachedMetrics", "metricType"];
const PROMETHEUS: &[&str] = &[
    "serverAddress",
    "query",
    "threshold",
    "activationThreshold",
    "queryParameters",
    "namespace",
    "customHeaders",
    "ignoreNullValues",
    "unsafeSsl",
    "timeout",
    "authModes",
    "awsRegion",
    "identityOwner",
    "credentialsFromEnv",
    // Rule L10 is about this one.
    "metricName",
];
const HPA: &[&str] = &["scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"];
const BEHAVIOR: &[&str] = &["scaleUp", "scaleDown"];
const DIRECTION: &[&str] = &["stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"];
const POLICY: &[&str] = &["type", "value", "periodSeconds"];

/// L21.
pub(super) fn check_fields(own: &Scaler<'_>, found: &mut Found<'_>) {
    if own.kind == "ScaledObject" {
        fields(Some(own.spec), SPEC, "the spec of a ScaledObject", found);
        fields(own.spec.get("scaleTargetRef"), TARGET, "`scaleTargetRef`", found);
        fields(own.spec.get("advanced"), ADVANCED, "`advanced`", found);
        fields(own.spec.get("fallback"), FALLBACK, "`fallback`", found);
        for trigger in &own.triggers {
            fields(Some(trigger.node), TRIGGER, "a trigger", found);
            if trigger.kind == "prometheus" {
                fields(trigger.metadata, PROMETHEUS, "a Prometheus trigger", found);
            }
        }
    }
    if own.kind == "HorizontalPodAutoscaler" {
        fields(Some(own.spec), HPA, "the spec of a HorizontalPodAutoscaler", found);
    }
    if matches!(own.kind, "ScaledObject" | "HorizontalPodAutoscaler") {
        fields(own.behavior, BEHAVIOR, "`behavior`", found);
        for name in BEHAVIOR {
            let direction = own.behavior.and_then(|own| own.get(name));
            fields(direction, DIRECTION, &format!("`{name}`"), found);
            let policies = direction.and_then(|own| own.get("policies"));
            for policy in policies.map(Node::items).unwrap_or_default() {
                fields(Some(policy), POLICY, "a policy", found);
            }
        }
    }
}

fn fields(map: Option<&Node>, known: &[&str], what: &str, found: &mut Found<'_>) {
    for (key, _) in map.map(Node::entries).unwrap_or_default() {
        let name = key.text().unwrap_or("");
        if known.contains(&name)
            || name == "<<"
            || name.starts_with("x-")
            || name.ends_with("FromEnv")
        {
            continue;
        }
        // What belongs to the trigger itself is often written a level too deep.
        if known == PROMETHEUS && TRIGGER.contains(&name) {
            let said =
                format!("{what} has no field `{name}` in its `metadata`, where it is ignored");
            let advice = found.warning(21, key.at, said);
            let _ = advice.fix(format!("move `{name}` up, beside `type`"));
            continue;
        }
        let near = nearest(name, known.iter().copied());
        let advice = found.warning(21, key.at, format!("{what} has no field `{name}`"));
        if let Some(near) = near.first() {
            let _ = advice.fix(near.clone());
        }
    }
}
