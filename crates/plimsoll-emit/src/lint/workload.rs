//! What serves: pods, their engine, its flags, and how long they are given to start and to end.

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::Reporter;

use crate::yaml::Node;

/// Seconds that Kubernetes gives a pod to end where nothing is said.
pub(super) const GRACE_S: f64 = 30.0;

/// Something that runs an engine.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    /// `Deployment` and so on.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its namespace, where it says.
    pub namespace: Option<&'a str>,
    /// All of it.
    pub node: &'a Node,
    /// What its pods are.
    pub pod: &'a Node,
    /// The container that runs the engine.
    pub container: &'a Node,
    /// The engine, and its version where the image says.
    pub engine: Option<(Reporter, Option<Version>)>,
    args: Vec<String>,
}

/// A manifest as something that serves; none where it has no containers.
pub fn workload(document: &Node) -> Option<Workload<'_>> {
    let kind = document.get("kind")?.text()?;
    let pods: &[&str] = match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" => &["spec.template.spec"],
        "LeaderWorkerSet" => &[
            "spec.leaderWorkerTemplate.leaderTemplate.spec",
            "spec.leaderWorkerTemplate.workerTemplate.spec",
        ],
        "InferenceService" => &["spec.predictor"],
        "LLMInferenceService" => &["spec.template"],
        _ => return None,
    };
    let pod = pods.iter().find_map(|path| document.find(path))?;
    let model = pod.get("model").into_iter();
    let containers = pod.get("containers").map(Node::items).unwrap_or_default();
    let all: Vec<&Node> = containers.iter().chain(model).collect();
    let container = all.iter().find(|own| engine(own).is_some()).or(all.first()).copied()?;
    Some(Workload {
        kind,
        name: document.find("metadata.name").and_then(Node::text).unwrap_or(""),
        namespace: document.find("metadata.namespace").and_then(Node::text),
        node: document,
        pod,
        container,
        engine: engine(container),
        args: words(container),
    })
}

fn words(container: &Node) -> Vec<String> {
    let lists = ["command", "args"].iter().filter_map(|name| container.get(name));
    let texts = lists.flat_map(Node::items).filter_map(Node::text);
    texts.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// The engine of a container. A version is taken only from images whose tags are the engine's own versions.
fn engine(container: &Node) -> Option<(Reporter, Option<Version>)> {
    let image = container.get("image").and_then(Node::text).unwrap_or("").to_lowercase();
    let image = image.split('@').next().unwrap_or("");
    let (path, tag) = match image.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (image, None),
    };
    let last = path.rsplit('/').next().unwrap_or("");
    let others = ["lmcache", "dynamo", "llm-d", "kserve", "aibrix", "huggingface"];
    let theirs = !others.iter().any(|word| path.contains(word)) || last.contains("inference");
    let version = tag.filter(|_| theirs).and_then(|tag| tag.parse().ok());
    if last.starts_with("vllm") || path.contains("vllm") {
        return Some((Reporter::Vllm, version.filter(|_| last.starts_with("vllm"))));
    }
    if path.contains("sglang") {
        return Some((Reporter::Sglang, version.filter(|_| last.starts_with("sglang"))));
    }
    if last == "text-generation-inference" {
        return Some((Reporter::Tgi, version));
    }
    if path.contains("tensorrt-llm") || path.contains("trtllm") {
        return Some((Reporter::TensorRtLlm, None));
    }
    let words = words(container);
    let runs = |word: &str| words.iter().any(|own| own.contains(word));
    if runs("vllm") {
        Some((Reporter::Vllm, None))
    } else if runs("sglang") {
        Some((Reporter::Sglang, None))
    } else if runs("trtllm-serve") {
        Some((Reporter::TensorRtLlm, None))
    } else {
        None
    }
}

impl Workload<'_> {
    /// What a flag is set to: `--name=value` or `--name value`, with `-` or `_`.
    pub fn flag(&self, name: &str) -> Option<&str> {
        let same = |own: &str| own.trim_start_matches('-').replace('_', "-") == name;
        self.args.iter().enumerate().rev().find_map(|(at, own)| {
            if !own.starts_with("--") {
                return None;
            }
            match own.split_once('=') {
                Some((key, value)) => same(key).then_some(value),
                None => same(own).then(|| self.args.get(at + 1).map_or("", String::as_str)),
            }
        })
    }

    /// Where a flag was written.
    pub fn flag_node(&self, name: &str) -> Option<&Node> {
        let lists = ["args", "command"].iter().filter_map(|list| self.container.get(list));
        let mut all = lists.flat_map(Node::items);
        all.find(|own| {
            own.text().is_some_and(|text| text.replace('_', "-").contains(&format!("--{name}")))
        })
    }

    /// Sequences that run at once at most, where the engine is told.
    pub fn max_num_seqs(&self) -> Option<f64> {
        let names = ["max-num-seqs", "max-running-requests", "max-batch-size"];
        names.iter().find_map(|name| self.flag(name)?.parse().ok())
    }

    /// Seconds that a pod is given to end, and whether that was written.
    pub fn grace_s(&self) -> (f64, Option<&Node>) {
        let node = self.pod.get("terminationGracePeriodSeconds");
        (node.and_then(Node::number).unwrap_or(GRACE_S), node)
    }

    /// Seconds that it sleeps before it is told to end.
    pub fn pre_stop_s(&self) -> f64 {
        let Some(stop) = self.container.find("lifecycle.preStop") else { return 0.0 };
        if let Some(seconds) = stop.find("sleep.seconds").and_then(Node::number) {
            return seconds.max(0.0);
        }
        let command = stop.find("exec.command").map(Node::items).unwrap_or_default();
        let text: Vec<&str> = command.iter().filter_map(Node::text).collect();
        let text = text.join(" ");
        let mut words = text.split(|c: char| c.is_whitespace() || c == ';');
        words.find(|word| *word == "sleep" || word.ends_with("/sleep"));
        words.next().and_then(|word| word.parse().ok()).filter(|s: &f64| *s >= 0.0).unwrap_or(0.0)
    }

    /// Seconds after which a pod that is not ready is killed, and the probe that does it.
    pub fn start_budget_s(&self) -> Option<(f64, &'static str, &Node)> {
        let probe = |name| self.container.get(name).filter(|own| !own.is_null());
        let (name, node) = match (probe("startupProbe"), probe("livenessProbe")) {
            (Some(own), _) => ("startupProbe", own),
            (None, Some(own)) => ("livenessProbe", own),
            (None, None) => return None,
        };
        let part =
            |key: &str, default: f64| node.get(key).and_then(Node::number).unwrap_or(default);
        let seconds = part("initialDelaySeconds", 0.0)
            + part("failureThreshold", 3.0) * part("periodSeconds", 10.0);
        Some((seconds, name, node))
    }

    /// The model that it serves, by the names that it has.
    pub fn models(&self) -> Vec<&str> {
        let flags = ["served-model-name", "model", "model-path", "model-id"];
        let mut all: Vec<&str> = flags.iter().filter_map(|name| self.flag(name)).collect();
        let serve = self.args.iter().position(|own| own == "serve");
        all.extend(serve.and_then(|at| self.args.get(at + 1)).map(String::as_str));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::documents;

    fn pod(container: &str) -> Vec<Node> {
        let text = format!(
            "kind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - {{name: proxy, image: envoy}}\n      - {container}\n"
        );
        documents(&text).expect("YAML")
    }

    #[test]
    fn engines_by_their_images() {
        let check = |image: &str, expect: Option<(Reporter, Option<&str>)>| {
            let all = pod(&format!("{{image: \"{image}\"}}"));
            let found = workload(&all[0]).expect("pods").engine;
            let expect = expect
                .map(|(own, version)| (own, version.map(|text| text.parse().expect("a version"))));
            assert_eq!(found, expect, "{image}");
        };
        check("vllm/vllm-openai:v0.11.0", Some((Reporter::Vllm, Some("0.11"))));
        check("registry:5000/vllm/vllm-openai", Some((Reporter::Vllm, None)));
        check("vllm/vllm-openai:v0.24.0@sha256:ab", Some((Reporter::Vllm, Some("0.24"))));
        check("vllm/vllm-openai:latest", Some((Reporter::Vllm, None)));
        // These tags are versions of something else.
        check("lmcache/vllm-openai:v0.3.9", Some((Reporter::Vllm, None)));
        check("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0", Some((Reporter::Vllm, None)));
        check("lmsysorg/sglang:v0.5.6.post1-cu129", Some((Reporter::Sglang, Some("0.5.6"))));
        check(
            "ghcr.io/huggingface/text-generation-inference:3.3.4",
            Some((Reporter::Tgi, Some("3.3.4"))),
        );
        check("nginx:1.27", None);
    }

    #[test]
    fn flags_probes_and_ends() {
        let all = pod(
            "{image: x, command: [sh, -c, 'exec vllm serve acme/m-8b --max_num_seqs=96 --port 80'], lifecycle: {preStop: {exec: {command: [sh, -c, 'sleep 20; true']}}}, livenessProbe: {initialDelaySeconds: 60}}",
        );
        let own = workload(&all[0]).expect("pods");
        assert_eq!(own.engine, Some((Reporter::Vllm, None)));
        assert_eq!((own.max_num_seqs(), own.flag("port")), (Some(96.0), Some("80")));
        assert_eq!(own.flag("model"), None);
        assert_eq!(own.models(), ["acme/m-8b"]);
        assert_eq!((own.grace_s().0, own.pre_stop_s()), (30.0, 20.0));
        // 3 failures, 10 s apart, are what holds where nothing is said.
        let budget = own.start_budget_s().expect("a probe");
        assert_eq!((budget.0, budget.1), (90.0, "livenessProbe"));
    }
}
