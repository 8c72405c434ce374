//! Pools from what a cluster was asked for.

use super::command::{image, with_image};
use super::draft::{Draft, Gathered, Place, Said, Source};
use super::flags::{quoted, variable};
use super::words::{Variables, Word};
use super::{gateway, operators, scale};
use crate::yaml::Node;

/// Lists of objects lie in each other at most this deep.
const DEPTH_MOST: usize = 4;

/// One file of a cluster.
pub(super) struct File<'a> {
    pub name: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> File<'a> {
    pub(super) fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, lines: text.lines().collect() }
    }

    pub(super) fn at(&self, node: &Node, words: &str) -> Place {
        Place::new(self.name, node.at.line, words)
    }

    /// A key with its value, as a reader finds it in the file.
    pub(super) fn said(&self, key: &str, node: &Node) -> Place {
        self.at(node, &format!("{key}: {}", node.text().unwrap_or("…")))
    }
}

/// Reads one object.
pub(super) fn object(file: &File<'_>, node: &Node, gathered: &mut Gathered, depth: usize) {
    let kind = node.get("kind").and_then(Node::text).unwrap_or_default();
    let name = node.find("metadata.name").and_then(Node::text).unwrap_or_default();
    if kind.ends_with("List") && node.get("items").is_some() && depth < DEPTH_MOST {
        for item in node.get("items").map(Node::items).unwrap_or_default() {
            object(file, item, gathered, depth + 1);
        }
        return;
    }
    let place = file.at(node, &format!("{kind} {name}"));
    let mut draft = Draft::new(Source::Manifest, kind, name, place.clone());
    let spec = node.get("spec");
    let read = match (kind, spec) {
        ("Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet", Some(spec)) => {
            replicas(file, spec, &mut draft);
            template(file, spec.get("template"), &mut draft)
        }
        ("Pod", Some(spec)) => {
            draft.replicas = Some(Said::new(1, &place));
            labels(node, &mut draft);
            pod(file, spec, &mut draft)
        }
        ("LeaderWorkerSet", Some(spec)) => leader_worker_set(file, spec, &mut draft),
        ("InferenceService", Some(spec)) => operators::inference_service(file, spec, &mut draft),
        ("LLMInferenceService", Some(spec)) => {
            operators::llm_inference_service(file, spec, draft, gathered);
            return;
        }
        ("DynamoGraphDeployment", Some(spec)) => {
            operators::dynamo(file, spec, &place, gathered);
            return;
        }
        ("ScaledObject" | "HorizontalPodAutoscaler", Some(spec)) => {
            gathered.scalers.push(scale::scaler(file, kind, &place, spec));
            return;
        }
        ("Service", Some(spec)) => {
            selector(name, spec.get("selector"), gathered);
            return pass(gathered, &place, "says nothing of capacity");
        }
        ("InferencePool", Some(spec)) => {
            let own = spec.get("selector");
            selector(name, own.and_then(|own| own.get("matchLabels")).or(own), gathered);
            return pass(gathered, &place, "only selects pods");
        }
        ("", _) => return pass(gathered, &place, "is no object of a cluster: it has no `kind`"),
        (_, Some(spec)) if gateway::envoy(file, kind, name, &place, spec, gathered) => return,
        (
            "ConfigMap"
            | "Secret"
            | "ServiceAccount"
            | "PersistentVolumeClaim"
            | "Namespace"
            | "Role"
            | "RoleBinding"
            | "ClusterRole"
            | "ClusterRoleBinding"
            | "Ingress"
            | "HTTPRoute"
            | "Gateway"
            | "NetworkPolicy"
            | "PodDisruptionBudget"
            | "PodMonitor"
            | "ServiceMonitor"
            | "PrometheusRule",
            _,
        ) => return pass(gathered, &place, "says nothing of capacity"),
        _ => return pass(gathered, &place, "is of a kind that is not known here"),
    };
    if read {
        gathered.pools.push(draft);
    } else {
        pass(gathered, &place, "starts no engine that is known here (vLLM, SGLang, TensorRT-LLM)");
    }
}

pub(super) fn pass(gathered: &mut Gathered, place: &Place, why: &str) {
    gathered.passed_over.push(format!("{place} {why}"));
}

fn selector(name: &str, labels: Option<&Node>, gathered: &mut Gathered) {
    let pairs = labels.map(Node::entries).unwrap_or_default().iter();
    let pairs =
        pairs.filter_map(|(key, value)| Some((key.text()?.to_owned(), value.text()?.to_owned())));
    gathered.selectors.insert(name.to_owned(), pairs.collect());
}

fn labels(node: &Node, draft: &mut Draft) {
    let labels = node.find("metadata.labels").map(Node::entries).unwrap_or_default();
    for (key, value) in labels {
        if let (Some(key), Some(value)) = (key.text(), value.text()) {
            draft.labels.insert(key.to_owned(), value.to_owned());
        }
    }
}

/// A whole number that is not negative.
pub(super) fn whole(node: Option<&Node>) -> Option<u64> {
    let number = node?.number()?;
    (number.fract() == 0.0 && (0.0..1e9).contains(&number)).then_some(number as u64)
}

pub(super) fn replicas(file: &File<'_>, spec: &Node, draft: &mut Draft) {
    draft.replicas = match spec.get("replicas") {
        Some(node) => whole(Some(node)).map(|count| Said::new(count, &file.said("replicas", node))),
        None => Some(Said::new(1, &draft.place.saying("no replicas: one"))),
    };
}

fn template(file: &File<'_>, template: Option<&Node>, draft: &mut Draft) -> bool {
    let Some(template) = template else { return false };
    labels(template, draft);
    template.get("spec").is_some_and(|spec| pod(file, spec, draft))
}

/// Reads the first container that starts an engine; whether there is one.
pub(super) fn pod(file: &File<'_>, spec: &Node, draft: &mut Draft) -> bool {
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let mut started = false;
    for own in containers {
        let mut tried = draft.clone();
        if container(file, own, &mut tried) {
            *draft = tried;
            started = true;
            break;
        }
    }
    pod_settings(file, spec, draft);
    started
}

/// What a pod says beside its containers.
pub(super) fn pod_settings(file: &File<'_>, spec: &Node, draft: &mut Draft) {
    if let Some(node) = spec.get("terminationGracePeriodSeconds")
        && let Some(seconds) = whole(Some(node))
    {
        let place = file.said("terminationGracePeriodSeconds", node);
        let flag = draft
            .keys
            .get("drain")
            .and_then(|own| own.value.trim_matches(['"', 's']).parse::<f64>().ok());
        // Whichever ends first ends the pod.
        if flag.is_none_or(|flag| flag > seconds as f64) {
            draft.set("drain", quoted(&format!("{seconds}s")), &place);
        }
    }
    let selector = spec.get("nodeSelector").map(Node::entries).unwrap_or_default();
    for (key, value) in selector {
        node_label(file, key.text().unwrap_or_default(), &[value], draft);
    }
    let terms =
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    for term in spec.find(terms).map(Node::items).unwrap_or_default() {
        for rule in term.get("matchExpressions").map(Node::items).unwrap_or_default() {
            let key = rule.get("key").and_then(Node::text).unwrap_or_default();
            if rule.get("operator").and_then(Node::text) == Some("In") {
                let values: Vec<&Node> =
                    rule.get("values").map(Node::items).unwrap_or_default().iter().collect();
                node_label(file, key, &values, draft);
            }
        }
    }
}

fn node_label(file: &File<'_>, key: &str, values: &[&Node], draft: &mut Draft) {
    let Some(value) = values.first() else { return };
    let Some(text) = value.text() else { return };
    let into = match key {
        "cloud.google.com/gke-accelerator"
        | "nvidia.com/gpu.product"
        | "gpu.nvidia.com/class"
        | "gpu.nvidia.com/model"
        | "karpenter.k8s.aws/instance-gpu-name"
        | "amd.com/gpu.product-name" => &mut draft.accelerator,
        "node.kubernetes.io/instance-type" | "beta.kubernetes.io/instance-type" => {
            &mut draft.instance
        }
        "topology.kubernetes.io/region" | "failure-domain.beta.kubernetes.io/region" => {
            &mut draft.region
        }
        _ => return,
    };
    *into = Some(Said::new(text.to_owned(), &file.said(key, value)));
    if values.len() > 1 {
        draft.remarks.push(format!(
            "{} others may be chosen too ({}); the first is written",
            values.len() - 1,
            file.at(value, key)
        ));
    }
}

/// Reads a container; whether it starts an engine.
pub(super) fn container(file: &File<'_>, node: &Node, draft: &mut Draft) -> bool {
    let own = node.get("image").and_then(|node| {
        let text = node.text()?;
        image(text, &file.at(node, text), draft)
    });
    let known = environment(file, node, draft);
    let words: Vec<Word> =
        ["command", "args"].iter().flat_map(|key| arguments(file, node.get(key), &known)).collect();
    let place = node.get("image").map_or_else(
        || draft.place.clone(),
        |image| file.at(image, image.text().unwrap_or_default()),
    );
    let mut variables = known.clone();
    // A command of its own replaces what the image would start.
    let own = own.filter(|_| node.get("command").is_none() || words.is_empty());
    if !with_image(own, &words, &place, file.name, draft, &mut variables, 0) {
        return false;
    }
    resources(file, node.get("resources"), draft);
    if let Some(probe) = node.get("startupProbe") {
        let of = |key: &str, default: u64| whole(probe.get(key)).unwrap_or(default);
        let tries = of("failureThreshold", 3).saturating_mul(of("periodSeconds", 10));
        let most = of("initialDelaySeconds", 0).saturating_add(tries);
        draft.remarks.push(format!(
            "a start that takes longer than {most} s is broken off ({})",
            file.at(probe, "startupProbe")
        ));
    }
    if draft.model.is_none() {
        let names = ["MODEL_ID", "MODEL_NAME", "HF_MODEL_ID", "MODEL"];
        for name in names {
            let said = env_place(file, node, name).zip(known.get(name));
            if let Some((place, value)) = said {
                draft.model =
                    Some(Said::new(value.clone(), &place.saying(&format!("{name}={value}"))));
                break;
            }
        }
    }
    true
}

/// Words of a list, or of one text that a shell would split.
pub(super) fn arguments(file: &File<'_>, node: Option<&Node>, known: &Variables) -> Vec<Word> {
    let Some(node) = node else { return Vec::new() };
    if let Some(text) = node.text() {
        let mut known = known.clone();
        let line = first_line(file, node);
        return super::words::commands(text, line, &mut known).into_iter().flatten().collect();
    }
    let word = |item: &Node| {
        let mut text = item.text()?.to_owned();
        for (name, value) in known {
            text = text.replace(&format!("$({name})"), value);
        }
        let open = text.starts_with("$(") || text.contains("=$(");
        Some(Word { text, line: first_line(file, item), open })
    };
    node.items().iter().filter_map(word).collect()
}

/// The line on which the text of a scalar begins: a block begins below its mark.
fn first_line(file: &File<'_>, node: &Node) -> usize {
    let line = file.lines.get(node.at.line.saturating_sub(1)).copied().unwrap_or_default();
    let line = line.split(" #").next().unwrap_or_default().trim_end();
    let block = ["|", ">", "|-", ">-", "|+", ">+"].iter().any(|mark| line.ends_with(mark));
    node.at.line + usize::from(block)
}

fn env_place(file: &File<'_>, container: &Node, name: &str) -> Option<Place> {
    let items = container.get("env").map(Node::items).unwrap_or_default();
    let own = items.iter().find(|item| item.get("name").and_then(Node::text) == Some(name))?;
    Some(file.at(own.get("value").unwrap_or(own), ""))
}

/// The variables whose values are written down; what comes from elsewhere stays unknown.
pub(super) fn environment(file: &File<'_>, container: &Node, draft: &mut Draft) -> Variables {
    let mut known = Variables::new();
    for item in container.get("env").map(Node::items).unwrap_or_default() {
        let Some(name) = item.get("name").and_then(Node::text) else { continue };
        let value = item.get("value").and_then(Node::text);
        variable(name, value, &file.at(item, ""), draft);
        if let Some(value) = value {
            known.insert(name.to_owned(), value.to_owned());
        }
    }
    known
}

pub(super) fn resources(file: &File<'_>, node: Option<&Node>, draft: &mut Draft) {
    for part in ["limits", "requests"] {
        let part = node.and_then(|node| node.get(part));
        for name in ["nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "google.com/tpu", "gpu"] {
            let Some(own) = part.and_then(|part| part.get(name)) else { continue };
            if let Some(count) = whole(Some(own)).filter(|count| *count > 0) {
                draft.devices = Some(Said::new(count, &file.said(name, own)));
                return;
            }
        }
    }
}

/// A group of pods is one replica.
fn leader_worker_set(file: &File<'_>, spec: &Node, draft: &mut Draft) -> bool {
    replicas(file, spec, draft);
    let Some(group) = spec.get("leaderWorkerTemplate") else { return false };
    if let Some(size) = group.get("size")
        && let Some(count) = whole(Some(size)).filter(|count| *count > 0)
    {
        draft.nodes = Some(Said::new(count, &file.said("size", size)));
    }
    ["leaderTemplate", "workerTemplate"].iter().any(|part| template(file, group.get(part), draft))
}
