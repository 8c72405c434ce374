//! Rules about what scales: how many, how fast, and what else it is told.

use super::Found;
use super::edits::entry;
use super::known::{Files, Known};
use super::manifest::{Scaler, Trigger};
use super::shown;
use crate::yaml::Node;

/// Seconds in which the autoscaler of Kubernetes may double a fleet where nothing is said.
const PERIOD_S: f64 = 15.0;
/// Seconds of a period at most, as Kubernetes takes it.
const PERIOD_MOST_S: f64 = 1800.0;
/// Seconds below which no engine was seen to load a model anew.
const STARTUP_LEAST_S: f64 = 60.0;

pub(super) fn check(own: &Scaler<'_>, files: &Files<'_>, found: &mut Found<'_>) {
    let known = files.of_scaler(own);
    cooldown(own, found);
    idle(own, found);
    pace(own, &known, found);
    bounds(own, &known, found);
    for trigger in &own.triggers {
        if own.kind == "ScaledObject" && trigger.kind == "prometheus" {
            nothing(trigger, found);
        }
        if trigger.kind == "cron" {
            cron(trigger, found);
        }
        if let Some((key, _)) = metric_name(trigger) {
            let edit = trigger.metadata.and_then(|own| found.source.remove(own, "metricName"));
            found
                .warning(10, key.at, "`metricName` is no field of a Prometheus trigger".to_owned())
                .fix("take the line out; `name` beside `type` names a trigger")
                .edit(edit);
        }
    }
    if own.kind == "ScaledObject" {
        fallback(own, found);
    }
    if own.kind == "InferenceService" {
        kserve(own, found);
    }
}

fn metric_name<'a>(trigger: &Trigger<'a>) -> Option<(&'a Node, &'a Node)> {
    (trigger.kind == "prometheus").then(|| entry(trigger.metadata?, "metricName"))?
}

/// L4.
fn cooldown(own: &Scaler<'_>, found: &mut Found<'_>) {
    for map in settings(own) {
        let Some((key, value)) = entry(map, "cooldownPeriod") else { continue };
        let min = own.min_replicas();
        let seconds = value.text().unwrap_or("");
        // From its fewest replicas to none when idle is a way to zero too.
        let to_none = map.get("idleReplicaCount").and_then(Node::number) == Some(0.0);
        if min >= 1.0 && !to_none {
            let edit = found.source.remove(map, "cooldownPeriod");
            found
                .warning(
                    4,
                    key.at,
                    format!(
                        "`cooldownPeriod: {seconds}` does nothing with {} replicas at least: it is only for the way to 0",
                        shown(min)
                    ),
                )
                .fix(format!(
                    "behavior:\n  scaleDown:\n    stabilizationWindowSeconds: {seconds}"
                ))
                .edit(edit);
        } else if own.behavior.and_then(|own| own.get("scaleDown")).is_some() {
            let _ = found.note(
                4,
                key.at,
                format!(
                    "after {seconds} s without demand all replicas go at once, whatever `scaleDown` says"
                ),
            );
        }
    }
}

/// L5.
fn idle(own: &Scaler<'_>, found: &mut Found<'_>) {
    for map in settings(own) {
        let Some((key, value)) = entry(map, "idleReplicaCount") else { continue };
        if value.number() != Some(0.0) {
            let edit = found.source.remove(map, "idleReplicaCount");
            found
                .error(
                    5,
                    key.at,
                    format!(
                        "`idleReplicaCount: {}` does not work: it can only be 0",
                        value.text().unwrap_or("")
                    ),
                )
                .fix("minReplicaCount: 1")
                .edit(edit);
        }
    }
}

/// The maps that KEDA's settings stand in: the spec itself, or what KServe hands on.
fn settings<'a>(own: &Scaler<'a>) -> Vec<&'a Node> {
    match own.kind {
        "ScaledObject" => vec![own.spec],
        "LLMInferenceService" => {
            let mut all = Vec::new();
            let mut open: Vec<(&Node, usize)> =
                own.spec.get("scaling").into_iter().map(|node| (node, 0)).collect();
            while let Some((node, depth)) = open.pop() {
                all.push(node);
                if depth < 4 {
                    open.extend(node.entries().iter().map(|(_, value)| (value, depth + 1)));
                }
            }
            all
        }
        _ => Vec::new(),
    }
}

/// L8, for what scales.
fn pace(own: &Scaler<'_>, known: &Known<'_>, found: &mut Found<'_>) {
    if !known.llm || own.triggers.is_empty() {
        return;
    }
    let least = known.startup_p90_s.unwrap_or(STARTUP_LEAST_S);
    let startup = match known.startup_p90_s {
        Some(seconds) => format!("nine starts in ten take up to {} s", shown(seconds)),
        None => "engines take 100 s and more to load a model; tell how long yours take".to_owned(),
    };
    let (at, period, step) = if own.kind == "PodAutoscaler" {
        let annotations = own.node.find("metadata.annotations");
        let noted = |name: &str| {
            annotations.and_then(|own| own.get(&format!("autoscaling.aibrix.ai/{name}")))
        };
        let window = noted("scale-up-cooldown-window");
        let seconds = window.and_then(Node::text).and_then(seconds).unwrap_or(0.0);
        let rate = noted("max-scale-up-rate").and_then(Node::number).unwrap_or(2.0);
        let at = window.or(noted("max-scale-up-rate")).unwrap_or(own.spec).at;
        let [a, b, c] = [1, 2, 3].map(|power| shown(2.0 * rate.powi(power)));
        (at, seconds, format!("2, {a}, {b}, {c} replicas while the first ones load"))
    } else {
        let up = own.behavior.and_then(|own| own.get("scaleUp"));
        if up.and_then(|up| up.get("selectPolicy")).and_then(Node::text) == Some("Disabled") {
            return;
        }
        let policies = up.and_then(|up| up.get("policies"));
        let periods = policies.map(Node::items).unwrap_or_default().iter();
        let periods = periods.filter_map(|own| own.get("periodSeconds"));
        let shortest = periods
            .filter_map(|node| Some((node, node.number()?)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        // A long window before anything is added has the same effect.
        let window = up.and_then(|up| up.get("stabilizationWindowSeconds")?.number());
        match shortest {
            Some((node, seconds)) => {
                let seconds = seconds.max(window.unwrap_or(0.0));
                (node.at, seconds, "the same step is taken again".to_owned())
            }
            None => {
                let at = up.or(own.behavior).unwrap_or(own.spec).at;
                let seconds = PERIOD_S.max(window.unwrap_or(0.0));
                (at, seconds, "the default doubles the replicas each time".to_owned())
            }
        }
    };
    let aibrix = own.kind == "PodAutoscaler";
    let least = if aibrix { least } else { least.min(PERIOD_MOST_S) };
    if period >= least {
        return;
    }
    let message = format!("replicas are added every {} s, and {startup}: {step}", shown(period));
    let wanted = least.max(period).ceil();
    let fix = if aibrix {
        format!("autoscaling.aibrix.ai/scale-up-cooldown-window: \"{wanted}s\"")
    } else {
        format!(
            "behavior:\n  scaleUp:\n    policies: [{{type: Pods, value: 2, periodSeconds: {wanted}}}]"
        )
    };
    let told = known.startup_p90_s.is_some();
    let advice = if told { found.warning(8, at, message) } else { found.note(8, at, message) };
    if told {
        let _ = advice.fix(fix);
    }
}

/// `30s`, `5m` or `1h`, in seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    units.iter().find_map(|(end, scale)| {
        let number: f64 = text.strip_suffix(end)?.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number * scale)
    })
}

/// L3.
fn nothing(trigger: &Trigger<'_>, found: &mut Found<'_>) {
    if trigger.ignore_null == Some(false) {
        return;
    }
    let Some(metadata) = trigger.metadata else { return };
    let written = entry(metadata, "ignoreNullValues");
    let (at, edit, said) = match written {
        Some((key, value)) => (key.at, found.source.replace(value, "false"), "is not `\"false\"`"),
        None => {
            let before = ["threshold", "query", "serverAddress"];
            let before = before.iter().find_map(|name| entry(metadata, name));
            let edit = before.and_then(|(key, _)| {
                found.source.insert_before(key, "ignoreNullValues: \"false\"")
            });
            (trigger.query.unwrap_or(metadata).at, edit, "is not set")
        }
    };
    found
        .warning(
            3,
            at,
            format!("`ignoreNullValues` {said}: an answer that is empty or no number counts as 0"),
        )
        .fix("ignoreNullValues: \"false\"")
        .edit(edit);
}

/// L11.
fn cron(trigger: &Trigger<'_>, found: &mut Found<'_>) {
    let Some(metadata) = trigger.metadata else { return };
    if let Some((key, value)) = entry(metadata, "desiredReplicas")
        && value.number() == Some(0.0)
    {
        let message = "a cron trigger for 0 replicas is refused: it is a floor, and the largest of all triggers counts";
        let _ = found
            .error(11, key.at, message.to_owned())
            .fix("take the trigger out; `minReplicaCount: 0` lets a fleet go to 0");
    }
    let text = |name: &str| metadata.get(name).and_then(Node::text);
    if let (Some(start), Some(end)) = (text("start"), text("end"))
        && start.split_whitespace().eq(end.split_whitespace())
    {
        let at = metadata.get("end").unwrap_or(metadata).at;
        let message = format!("it begins and ends at the same time (`{start}`): KEDA refuses it");
        let _ = found.error(11, at, message).fix("another time for `end`");
    }
}

/// L12 and L20.
fn fallback(own: &Scaler<'_>, found: &mut Found<'_>) {
    if own.spec.get("fallback").is_some() {
        return;
    }
    let asks = |trigger: &&Trigger<'_>| !matches!(trigger.kind, "cron" | "cpu" | "memory" | "");
    let asking = own.triggers.iter().filter(asks).count();
    if asking == 0 {
        return;
    }
    let at = entry(own.spec, "triggers").map_or(own.spec.at, |(key, _)| key.at);
    let replicas = own.max.and_then(Node::number).unwrap_or(1.0).max(own.min_replicas());
    let fix = format!(
        "fallback: {{failureThreshold: 3, replicas: {}, behavior: currentReplicasIfHigher}}",
        shown(replicas)
    );
    if asking >= 2 {
        let message = format!(
            "{asking} triggers and no `fallback`: one without an answer holds all replicas"
        );
        let _ = found.note(12, at, message).fix(fix.clone());
    }
    let message = "there is no `fallback`: without answers nothing is scaled".to_owned();
    let _ = found.note(20, at, message).fix(fix);
}

/// L14.
fn kserve(own: &Scaler<'_>, found: &mut Found<'_>) {
    for trigger in own.triggers.iter().filter(|trigger| trigger.kind == "External") {
        let Some(target) = trigger.node.find("external.target") else { continue };
        if let Some((key, value)) = entry(target, "type")
            && value.text() == Some("Value")
        {
            let _ = found
                .error(
                    14,
                    key.at,
                    "`target.type: Value` is dropped, and AverageValue applies".to_owned(),
                )
                .fix(
                    "a ScaledObject of your own with `metricType: Value`, or a query that is a sum",
                );
        }
        if target.get("value").is_none()
            && let Some((key, value)) = entry(target, "averageValue")
        {
            let text = value.text().unwrap_or("");
            let _ = found
                .error(14, key.at, "`averageValue` is not read: only `value` is".to_owned())
                .fix(format!("value: \"{text}\""));
        }
    }
}

/// L24.
fn bounds(own: &Scaler<'_>, known: &Known<'_>, found: &mut Found<'_>) {
    let Some(pool) = known.pool else { return };
    let Some(policy) = pool.policy else { return };
    let name = &pool.pool.name;
    let most = f64::from(policy.max_replicas);
    if let Some((node, max)) = own.max.and_then(|node| Some((node, node.number()?)))
        && max < most
    {
        let message = format!(
            "{} replicas at most, and the plan needs {} of pool `{name}`",
            shown(max),
            shown(most)
        );
        let _ = found.error(24, node.at, message).fix(format!("{}", policy.max_replicas));
    }
    let least = f64::from(policy.min_replicas);
    let min = own.min_replicas();
    if min < least {
        let at = own.min.unwrap_or(own.spec).at;
        let message = format!(
            "{} replicas at least, and the plan's floor for pool `{name}` is {}",
            shown(min),
            shown(least)
        );
        let _ = found.warning(24, at, message).fix(format!("{}", policy.min_replicas));
    }
}
