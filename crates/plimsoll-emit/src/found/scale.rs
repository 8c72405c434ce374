//! What an autoscaler was told, in the keys of `[autoscaling]`.

use plimsoll_fleet::metrics::{Signal, known};

use super::draft::{Place, Said, Scaler, clip};
use super::flags::quoted;
use super::kube::{File, whole};
use crate::yaml::Node;

/// Reads a `ScaledObject` or a `HorizontalPodAutoscaler`.
pub(super) fn scaler(file: &File<'_>, kind: &str, place: &Place, spec: &Node) -> Scaler {
    let keda = kind == "ScaledObject";
    let text = |path: &str| spec.find(path).and_then(Node::text).map(str::to_owned);
    let mut scaler = Scaler {
        place: place.clone(),
        target: (
            text("scaleTargetRef.kind").unwrap_or_else(|| "Deployment".to_owned()),
            text("scaleTargetRef.name").unwrap_or_default(),
        ),
        ..Scaler::default()
    };
    let (least, most) =
        if keda { ("minReplicaCount", "maxReplicaCount") } else { ("minReplicas", "maxReplicas") };
    let bound = |key: &str, default: Option<u64>| match spec.get(key) {
        Some(node) => whole(Some(node)).map(|count| Said::new(count, &file.said(key, node))),
        None => default.map(|count| Said::new(count, &place.saying(&format!("no {key}: {count}")))),
    };
    scaler.least = bound(least, Some(if keda { 0 } else { 1 }));
    scaler.most = bound(most, keda.then_some(100));
    let controller = if keda { "keda" } else { "hpa" };
    scaler.keys.insert("controller", Said::new(quoted(controller), place));
    let behavior = if keda {
        let from_zero = scaler.least.as_ref().is_some_and(|least| least.value == 0);
        for (key, into) in [("pollingInterval", "polling"), ("cooldownPeriod", "cooldown")] {
            // Both only matter where there may be no replica at all.
            if let Some(node) = spec.get(key).filter(|_| from_zero) {
                seconds(&mut scaler, into, file.said(key, node), node);
            }
        }
        spec.find("advanced.horizontalPodAutoscalerConfig.behavior")
    } else {
        spec.get("behavior")
    };
    for (direction, up) in [("scaleUp", true), ("scaleDown", false)] {
        policies(file, behavior.and_then(|own| own.get(direction)), up, place, &mut scaler);
    }
    if keda {
        for trigger in spec.get("triggers").map(Node::items).unwrap_or_default() {
            keda_trigger(file, trigger, &mut scaler);
        }
    } else {
        for metric in spec.get("metrics").map(Node::items).unwrap_or_default() {
            hpa_metric(file, metric, &mut scaler);
        }
    }
    scaler
}

fn seconds(scaler: &mut Scaler, key: &'static str, place: Place, node: &Node) {
    if let Some(count) = whole(Some(node)) {
        scaler.keys.insert(key, Said::new(quoted(&format!("{count}s")), &place));
    }
}

/// How fast it may move in one direction.
fn policies(file: &File<'_>, rules: Option<&Node>, up: bool, place: &Place, scaler: &mut Scaler) {
    let key = |one: &'static str, other: &'static str| if up { one } else { other };
    if let Some(node) = rules.and_then(|rules| rules.get("stabilizationWindowSeconds")) {
        let place = file.said("stabilizationWindowSeconds", node);
        seconds(scaler, key("up_stabilization", "down_stabilization"), place, node);
    }
    if let Some(node) = rules.and_then(|rules| rules.get("selectPolicy"))
        && let Some(select @ ("Max" | "Min" | "Disabled")) = node.text()
    {
        let said = Said::new(quoted(&select.to_lowercase()), &file.said("selectPolicy", node));
        scaler.keys.insert(key("up_select", "down_select"), said);
    }
    let own = rules.and_then(|rules| rules.get("policies")).map(Node::items).unwrap_or_default();
    let (pods, percent) = (key("up_replicas", "down_replicas"), key("up_percent", "down_percent"));
    for policy in own {
        let into = match policy.get("type").and_then(Node::text) {
            Some("Pods") => pods,
            Some("Percent") => percent,
            _ => continue,
        };
        if let Some(node) = policy.get("value")
            && let Some(count) = whole(Some(node)).filter(|count| *count > 0)
        {
            let words = format!("{} {count}", key("scaleUp", "scaleDown"));
            scaler.keys.insert(into, Said::new(count.to_string(), &file.at(node, &words)));
        }
        if let Some(node) = policy.get("periodSeconds") {
            let place = file.said("periodSeconds", node);
            seconds(scaler, key("up_period", "down_period"), place, node);
        }
    }
    // A limit that is not among the policies does not hold; the defaults of a scenario would add it.
    if own.is_empty() && !up {
        let place = place.saying("no scaleDown policies: 100 percent");
        scaler.keys.insert(percent, Said::new("100".to_owned(), &place));
    } else if up && scaler.keys.contains_key(pods) && !scaler.keys.contains_key(percent) {
        let place = place.saying("no scaleUp policy in percent: as little as can be written");
        scaler.keys.insert(percent, Said::new("1".to_owned(), &place));
    } else if up && scaler.keys.contains_key(percent) && !scaler.keys.contains_key(pods) {
        let place = place.saying("no scaleUp policy in pods: as little as can be written");
        scaler.keys.insert(pods, Said::new("1".to_owned(), &place));
    }
}

fn keda_trigger(file: &File<'_>, trigger: &Node, scaler: &mut Scaler) {
    let kind = trigger.get("type").and_then(Node::text).unwrap_or_default();
    let place = file.at(trigger, &format!("trigger {kind}"));
    let query = trigger.find("metadata.query");
    let (Some(query), "prometheus") = (query, kind) else {
        scaler.unread.push(place.to_string());
        return;
    };
    let per_replica = trigger.get("metricType").and_then(Node::text) != Some("Value");
    let target = trigger.find("metadata.threshold");
    let text = query.text().unwrap_or_default();
    signal(file, text, file.at(query, text), target, per_replica, scaler);
    let above = trigger.find("metadata.activationThreshold");
    if let Some(node) = above
        && let Some(number) = node.number().filter(|number| *number >= 0.0)
        && scaler.least.as_ref().is_some_and(|least| least.value == 0)
    {
        let said = Said::new(number.to_string(), &file.said("activationThreshold", node));
        scaler.keys.entry("activation").or_insert(said);
    }
}

fn hpa_metric(file: &File<'_>, metric: &Node, scaler: &mut Scaler) {
    let kind = metric.get("type").and_then(Node::text).unwrap_or_default();
    let own = match kind {
        "External" => metric.get("external"),
        "Pods" => metric.get("pods"),
        "Object" => metric.get("object"),
        _ => None,
    };
    let name = own.and_then(|own| own.find("metric.name"));
    let (Some(own), Some(name)) = (own, name) else {
        scaler.unread.push(file.at(metric, &format!("metric {kind}")).to_string());
        return;
    };
    let average = own.find("target.averageValue");
    let target = average.or(own.find("target.value"));
    let text = name.text().unwrap_or_default();
    signal(file, text, file.at(name, text), target, average.is_some(), scaler);
}

/// Takes over what is looked at; of several the first that is understood.
fn signal(
    file: &File<'_>,
    query: &str,
    place: Place,
    target: Option<&Node>,
    per_replica: bool,
    scaler: &mut Scaler,
) {
    let Some((signal, adds_up)) = signal_of(query).filter(|_| !scaler.keys.contains_key("signal"))
    else {
        scaler.unread.push(place.to_string());
        return;
    };
    scaler.keys.insert("signal", Said::new(quoted(signal), &place));
    let number = target.and_then(|node| Some((node, node.number().filter(|n| *n > 0.0)?)));
    if let Some((node, number)) = number {
        // A share of the cache lies between zero and one; manifests also write percents.
        let number = if signal == "kv" && number > 1.0 { number / 100.0 } else { number };
        let said = Said::new(number.to_string(), &file.said("target", node));
        scaler.keys.insert("target", said);
    }
    if per_replica && !adds_up {
        scaler.unread.push(format!(
            "{place} is held against the number of replicas (`AverageValue`), and does not add up over them"
        ));
    } else if !per_replica && adds_up {
        scaler.keys.insert("target_kind", Said::new(quoted("value"), &place));
    }
}

/// The signal of a scenario that a query looks at, and whether it adds up over replicas.
fn signal_of(query: &str) -> Option<(&'static str, bool)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let signals: Vec<Signal> =
        query.split(|c: char| !is_word(c)).flat_map(known).map(|metric| metric.signal).collect();
    let has = |wanted: &[Signal]| signals.iter().any(|own| wanted.contains(own));
    let waits = has(&[Signal::Waiting, Signal::WaitingForRoom]);
    Some(
        if has(&[Signal::InFlight]) || waits && has(&[Signal::Running]) || has(&[Signal::Running]) {
            ("in-flight", true)
        } else if waits {
            ("queue-depth", true)
        } else if has(&[Signal::FreshTokens, Signal::PromptTokens, Signal::PromptLength]) {
            ("fresh-tokens", true)
        } else if has(&[Signal::Ttft]) {
            ("ttft-p90", false)
        } else if has(&[Signal::KvShare]) {
            ("kv", false)
        } else {
            return None;
        },
    )
}

/// What was not understood, for a comment.
pub(super) fn unread(scaler: &Scaler) -> Vec<String> {
    scaler.unread.iter().map(|line| clip(line, 160)).collect()
}
