//! What scales and what alerts, read out of manifests.

use super::query::Query;
use crate::yaml::{At, Node, YamlError, documents};

/// How a number is compared with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// Divided by the replicas first: replicas wanted are the number by the target.
    AverageValue,
    /// As it is: replicas wanted are those there are, times the number by the target.
    Value,
    /// Of what pods ask for, or averaged over pods before it is compared.
    PerPod,
}

impl MetricType {
    /// As manifests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AverageValue => "AverageValue",
            Self::Value => "Value",
            Self::PerPod => "Utilization",
        }
    }
}

/// What a manifest scales on.
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    /// `prometheus`, `cron`, `cpu`, `External`, `Pods` and so on, as it was written.
    pub kind: &'a str,
    /// Its name, where it has one.
    pub name: Option<&'a str>,
    /// All of it.
    pub node: &'a Node,
    /// What KEDA calls its metadata.
    pub metadata: Option<&'a Node>,
    /// Its PromQL.
    pub query: Option<&'a Node>,
    /// The metric that it names where it has no query.
    pub metric: Option<&'a Node>,
    /// What it is held against.
    pub target: Option<&'a Node>,
    /// How it is compared.
    pub metric_type: MetricType,
    /// Whether nothing is taken for a zero, where that is said.
    pub ignore_null: Option<bool>,
}

impl Trigger<'_> {
    /// What it is held against, as a number.
    pub fn target(&self) -> Option<f64> {
        quantity(self.target?.text()?)
    }
}

/// A manifest that scales something.
#[derive(Clone, Debug)]
pub struct Scaler<'a> {
    /// `ScaledObject`, `HorizontalPodAutoscaler`, `InferenceService`, `LLMInferenceService` or `PodAutoscaler`.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its namespace, where it says.
    pub namespace: Option<&'a str>,
    /// All of it.
    pub node: &'a Node,
    /// What it asks for.
    pub spec: &'a Node,
    /// The name of what it scales.
    pub target: Option<&'a str>,
    /// Fewest replicas, as written.
    pub min: Option<&'a Node>,
    /// Most replicas, as written.
    pub max: Option<&'a Node>,
    /// How replicas are added and removed.
    pub behavior: Option<&'a Node>,
    /// What it scales on.
    pub triggers: Vec<Trigger<'a>>,
}

impl Scaler<'_> {
    /// Fewest replicas, the default of the kind where it does not say.
    pub fn min_replicas(&self) -> f64 {
        let default = if self.kind == "ScaledObject" { 0.0 } else { 1.0 };
        self.min.and_then(Node::number).unwrap_or(default)
    }
}

/// What a manifest scales on; nothing where it scales nothing.
pub fn triggers(document: &Node) -> Vec<Trigger<'_>> {
    scaler(document).map(|own| own.triggers).unwrap_or_default()
}

/// A manifest as something that scales.
pub fn scaler(document: &Node) -> Option<Scaler<'_>> {
    let kind = document.get("kind")?.text()?;
    let spec = document.get("spec")?;
    let name = document.find("metadata.name").and_then(Node::text).unwrap_or("");
    let mut own = Scaler {
        kind,
        name,
        namespace: document.find("metadata.namespace").and_then(Node::text),
        node: document,
        spec,
        target: spec.find("scaleTargetRef.name").and_then(Node::text),
        min: spec.get("minReplicas"),
        max: spec.get("maxReplicas"),
        behavior: spec.get("behavior"),
        triggers: Vec::new(),
    };
    match kind {
        "ScaledObject" => {
            own.min = spec.get("minReplicaCount");
            own.max = spec.get("maxReplicaCount");
            own.behavior = spec.find("advanced.horizontalPodAutoscalerConfig.behavior");
            own.triggers = list(spec.get("triggers")).map(keda).collect();
        }
        "HorizontalPodAutoscaler" => {
            own.triggers = list(spec.get("metrics")).map(|node| hpa(node, false)).collect();
        }
        "InferenceService" => {
            let predictor = spec.get("predictor")?;
            own.target = Some(name);
            own.min = predictor.get("minReplicas");
            own.max = predictor.get("maxReplicas");
            own.behavior = predictor.find("autoScaling.behavior");
            own.triggers =
                list(predictor.find("autoScaling.metrics")).map(|node| hpa(node, true)).collect();
        }
        "LLMInferenceService" => {
            own.target = Some(name);
            let scaling = spec.get("scaling").unwrap_or(spec);
            own.min = scaling.get("minReplicas");
            own.max = scaling.get("maxReplicas");
            let metrics = ["autoScaling.metrics", "metrics"];
            let metrics = metrics.iter().find_map(|path| scaling.find(path));
            own.triggers = list(metrics).map(|node| hpa(node, true)).collect();
        }
        "PodAutoscaler" => {
            own.triggers = list(spec.get("metricsSources")).map(aibrix).collect();
        }
        _ => return None,
    }
    Some(own)
}

fn list(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    node.map(Node::items).unwrap_or_default().iter()
}

fn keda(node: &Node) -> Trigger<'_> {
    let metadata = node.get("metadata");
    let text = |name: &str| metadata.and_then(|own| own.get(name));
    let metric_type = match node.get("metricType").and_then(Node::text) {
        Some("Value") => MetricType::Value,
        Some("Utilization") => MetricType::PerPod,
        _ => MetricType::AverageValue,
    };
    Trigger {
        kind: node.get("type").and_then(Node::text).unwrap_or(""),
        name: node.get("name").and_then(Node::text),
        node,
        metadata,
        query: text("query"),
        metric: None,
        target: ["threshold", "targetValue", "value"].iter().find_map(|name| text(name)),
        metric_type,
        ignore_null: text("ignoreNullValues").and_then(Node::flag),
    }
}

/// A metric of an HPA, or of KServe, which has its shape and gives KEDA only a part of it.
fn hpa(node: &Node, kserve: bool) -> Trigger<'_> {
    let kind = node.get("type").and_then(Node::text).unwrap_or("");
    let inner = match kind {
        "External" => node.get("external"),
        "Object" => node.get("object"),
        "Pods" => node.get("pods"),
        "Resource" => node.get("resource"),
        "ContainerResource" => node.get("containerResource"),
        "PodMetric" => node.get("podmetric"),
        _ => None,
    };
    let at = |path: &str| inner.and_then(|own| own.find(path));
    let values = ["target.averageValue", "target.value", "target.averageUtilization"];
    let stated = at("target.type").and_then(Node::text);
    let metric_type = match (kind, stated) {
        ("External", _) if kserve => MetricType::AverageValue,
        ("Pods" | "Resource" | "ContainerResource", _) => MetricType::PerPod,
        (_, Some("Value")) => MetricType::Value,
        (_, Some("Utilization")) => MetricType::PerPod,
        _ => MetricType::AverageValue,
    };
    let query = at("metric.query");
    let metric = at("metric.name").or(at("name")).filter(|_| query.is_none());
    Trigger {
        kind,
        name: at("metric.name").and_then(Node::text),
        node,
        metadata: None,
        query,
        metric,
        target: values.iter().find_map(|path| at(path)),
        metric_type,
        ignore_null: None,
    }
}

fn aibrix(node: &Node) -> Trigger<'_> {
    let metric = node.get("targetMetric");
    Trigger {
        kind: node.get("metricSourceType").and_then(Node::text).unwrap_or("pod"),
        name: metric.and_then(Node::text),
        node,
        metadata: None,
        query: None,
        metric,
        target: node.get("targetValue"),
        metric_type: MetricType::PerPod,
        ignore_null: None,
    }
}

/// A number as Kubernetes writes it: `500m`, `2k`, `1.5`.
pub fn quantity(text: &str) -> Option<f64> {
    let text = text.trim();
    let scales = [("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("", 1.0)];
    scales.iter().find_map(|(end, scale)| {
        let number: f64 = text.strip_suffix(end)?.parse().ok()?;
        number.is_finite().then_some(number * scale)
    })
}

/// A recording rule or an alert.
#[derive(Clone, Copy, Debug)]
pub struct RuleQuery<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Whether it is an alert.
    pub alert: bool,
    /// How long it must hold.
    pub holds: Option<&'a str>,
    /// Its PromQL.
    pub expr: &'a Node,
}

/// The rules of a `PrometheusRule`, or of a plain rule file.
pub fn rules_of(document: &Node) -> Vec<RuleQuery<'_>> {
    let groups = document.find("spec.groups").or(document.get("groups"));
    let rules = list(groups).flat_map(|group| list(group.get("rules")));
    rules
        .filter_map(|rule| {
            let alert = rule.get("alert").and_then(Node::text);
            let name = alert.or(rule.get("record").and_then(Node::text)).unwrap_or("");
            let holds = rule.get("for").and_then(Node::text);
            let expr = rule.get("expr").filter(|expr| expr.text().is_some())?;
            Some(RuleQuery { name, alert: alert.is_some(), holds, expr })
        })
        .collect()
}

/// The documents of a file, those of a `List` one by one.
pub fn parts(document: &Node) -> Vec<&Node> {
    let kind = document.get("kind").and_then(Node::text).unwrap_or("");
    if kind.ends_with("List") && document.get("items").is_some() {
        return document.get("items").map(Node::items).unwrap_or_default().iter().collect();
    }
    vec![document]
}

/// A query of a manifest, with what is made of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestQuery {
    /// The kind of the manifest.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The trigger's name, or that of a recording rule.
    pub trigger: Option<String>,
    /// PromQL.
    pub query: String,
    /// What the answer is held against.
    pub target: Option<f64>,
    /// How it is held against that; none for rules.
    pub metric_type: Option<MetricType>,
    /// Whether an answer that does not come is a zero, where that is said.
    pub ignore_null: Option<bool>,
    /// Fewest replicas.
    pub min_replicas: Option<f64>,
    /// Most replicas.
    pub max_replicas: Option<f64>,
    /// An alert's name, and how long it must hold.
    pub alert: Option<(String, Option<String>)>,
    /// Where the query was written.
    pub at: At,
}

/// The queries of a file.
pub fn manifest_queries(text: &str) -> Result<Vec<ManifestQuery>, YamlError> {
    let mut all = Vec::new();
    for document in &documents(text)? {
        for part in parts(document) {
            let kind = part.get("kind").and_then(Node::text).unwrap_or("rules");
            let name = part.find("metadata.name").and_then(Node::text).unwrap_or("");
            let query = |node: &Node| ManifestQuery {
                kind: kind.to_owned(),
                name: name.to_owned(),
                trigger: None,
                query: node.text().unwrap_or("").trim().to_owned(),
                target: None,
                metric_type: None,
                ignore_null: None,
                min_replicas: None,
                max_replicas: None,
                alert: None,
                at: node.at,
            };
            if let Some(own) = scaler(part) {
                for trigger in &own.triggers {
                    // A metric of an adapter is asked for under its name, where Prometheus could have it.
                    let named = trigger.metric.filter(|node| {
                        let name = node.text().unwrap_or("");
                        trigger.kind == "External" && Query::read(name).is_ok()
                    });
                    let Some(node) = trigger.query.or(named) else { continue };
                    all.push(ManifestQuery {
                        trigger: trigger.name.map(str::to_owned),
                        target: trigger.target(),
                        metric_type: Some(trigger.metric_type),
                        ignore_null: trigger.ignore_null,
                        min_replicas: Some(own.min_replicas()),
                        max_replicas: own.max.and_then(Node::number),
                        ..query(node)
                    });
                }
            }
            for rule in rules_of(part) {
                let named = rule.name.to_owned();
                all.push(ManifestQuery {
                    trigger: (!rule.alert).then(|| named.clone()),
                    alert: rule.alert.then(|| (named, rule.holds.map(str::to_owned))),
                    ..query(rule.expr)
                });
            }
        }
    }
    Ok(all)
}
