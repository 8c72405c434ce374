//! The rules: what each looks for, why, and where the mistake was published or the fact is written.

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// `L1` and so on.
    pub number: &'static str,
    /// In words, for settings and searches.
    pub name: &'static str,
    /// What it looks for.
    pub what: &'static str,
    /// What happens where it is not heeded.
    pub why: &'static str,
    /// Where that can be read: a project and a path or an issue.
    pub proof: &'static str,
}

/// All rules, in order of their number.
pub fn rules() -> &'static [Rule] {
    RULES
}

pub(super) fn rule(number: usize) -> &'static Rule {
    RULES.get(number).unwrap_or(&RULES[0])
}

const fn of(
    number: &'static str,
    name: &'static str,
    what: &'static str,
    why: &'static str,
    proof: &'static str,
) -> Rule {
    Rule { number, name, what, why, proof }
}

const RULES: &[Rule] = &[
    of(
        "L0",
        "yaml",
        "a file that is no YAML",
        "nothing in it can be looked at, and no cluster takes it",
        "YAML 1.2.2",
    ),
    of(
        "L1",
        "latency-average",
        "a latency, share or ratio that is compared as AverageValue",
        "it is divided by the replicas once more, so the more there are, the fewer are asked for",
        "ai-dynamo/dynamo: the KEDA example of the autoscaling page; kedacore/keda-docs: metricType of triggers",
    ),
    of(
        "L2",
        "several-series",
        "a query that may give more than one series, or a number that is none",
        "KEDA refuses such an answer, so scaling stops when the second pod is there",
        "kedacore/keda: pkg/scalers/prometheus_scaler.go; vllm-project/production-stack: tutorials/20-keda-autoscaling.md; kserve/website: autoscaling.md",
    ),
    of(
        "L3",
        "nothing-is-zero",
        "a Prometheus trigger without `ignoreNullValues: \"false\"`",
        "an answer that is empty or no number is read as 0, so scrapes that are lost look like no demand",
        "kedacore/keda: pkg/scalers/prometheus_scaler.go and #3065; kedacore/keda-docs #1812",
    ),
    of(
        "L4",
        "cooldown-without-effect",
        "`cooldownPeriod` where there is always a replica",
        "it is only for the way to zero: how fast replicas are removed is `behavior.scaleDown`",
        "kedacore/keda #6844, #737, #7770",
    ),
    of(
        "L5",
        "idle-replicas",
        "`idleReplicaCount` that is not 0",
        "0 is the only number that works",
        "kedacore/keda-docs: scaledobject-spec.md; kserve/website: the LLMInferenceService example",
    ),
    of(
        "L6",
        "never-reached",
        "a target that the metric cannot reach",
        "nothing is ever added, whatever waits",
        "LLMKube #482; kubernetes/website: horizontal-pod-autoscale.md (tolerance)",
    ),
    of(
        "L7",
        "raw-queue",
        "a small target for calls in line, and nothing that bounds the step",
        "a line has no upper end, so one burst asks for every replica there may be",
        "llm-d/llm-d-autoscaling #678; vllm-project/aibrix #2670",
    ),
    of(
        "L8",
        "faster-than-startup",
        "replicas added again before the last ones are ready, or probes that kill them while they load",
        "what was asked for does not count yet, so the same line is answered twice and more",
        "vllm-project/aibrix #2670 (2, 4, 8, 16 while pods load); sie #293; ai-dynamo/dynamo: dynosim-planner-replay.mdx",
    ),
    of(
        "L9",
        "metric-not-there",
        "a metric that this version of the engine does not report",
        "the answer is empty, which is read as nothing to do",
        "vllm-project/vllm: vllm/v1/metrics/loggers.py; vllm-project/aibrix: the samples of autoscaling",
    ),
    of(
        "L10",
        "metric-name",
        "`metricName` in a Prometheus trigger",
        "it is no field any more, and is passed over",
        "kedacore/keda: pkg/scalers/prometheus_scaler.go",
    ),
    of(
        "L11",
        "cron-floor",
        "a cron trigger for 0 replicas, or one that ends when it begins",
        "KEDA refuses both; and a cron trigger is a floor: the largest of all triggers counts",
        "kedacore/keda: pkg/scalers/cron_scaler.go; kedacore/keda-docs: scalers/cron.md",
    ),
    of(
        "L12",
        "one-fails-all",
        "several triggers without `fallback`",
        "as long as one of them gives no answer, no replica is removed",
        "kubernetes/website: horizontal-pod-autoscale.md",
    ),
    of(
        "L13",
        "short-grace",
        "a grace period that is shorter than long generations take",
        "calls that run are cut off when a pod ends, and come again as retries",
        "kserve/kserve #5496; PostHog/posthog #73863",
    ),
    of(
        "L14",
        "target-type-dropped",
        "`target.type` or `averageValue` of a KServe External metric",
        "KServe hands KEDA only `target.value`; AverageValue applies",
        "kserve/kserve: pkg/controller/v1beta1/inferenceservice/reconcilers/keda/keda_reconciler.go",
    ),
    of(
        "L15",
        "requests-per-second",
        "scaling on calls in a second",
        "one call may be a hundred times another: tokens are the work",
        "ray-project/ray-llm #133; Google Cloud: best practices for autoscaling LLM inference on GKE",
    ),
    of(
        "L16",
        "gpu-duty",
        "scaling on how busy a device, its memory or a processor is",
        "an engine keeps its device busy at any load and takes its memory at the start",
        "NVIDIA/dcgm-exporter: etc/default-counters.csv; Google Cloud: best practices for autoscaling LLM inference on GKE",
    ),
    of(
        "L17",
        "limit-above-load-line",
        "a limit or threshold above the plan's",
        "more is let in than the plan shows to be carried",
        "the plan",
    ),
    of(
        "L18",
        "bucket-edge",
        "a latency bound that is no edge of the engine's buckets",
        "a bucket that is not there gives nothing, and between two edges a quantile is a guess",
        "vllm-project/vllm: vllm/v1/metrics/loggers.py",
    ),
    of(
        "L19",
        "ratio-of-nothing",
        "a division by a rate that is nought when nobody calls",
        "the answer is then infinite or no number",
        "llm-d/llm-d-autoscaling #149",
    ),
    of(
        "L20",
        "no-fallback",
        "a ScaledObject without `fallback`",
        "when Prometheus does not answer, nothing is scaled",
        "kedacore/keda-docs: scaledobject-spec.md",
    ),
    of(
        "L21",
        "unknown-field",
        "a field that the kind does not have",
        "it is dropped or refused, so what it was meant for does not happen",
        "kedacore/keda-docs: scaledobject-spec.md, scalers/prometheus.md; kubernetes/api: autoscaling/v2",
    ),
    of(
        "L22",
        "deprecated-api",
        "a version of an API that clusters no longer have",
        "the manifest is refused",
        "kubernetes/website: deprecation-guide.md; kubernetes-sigs/gateway-api-inference-extension: the v1 release",
    ),
    of(
        "L23",
        "broken-query",
        "PromQL that cannot be read",
        "Prometheus refuses it, so there is never an answer",
        "prometheus/prometheus: promql/parser",
    ),
    of(
        "L24",
        "max-below-plan",
        "fewer replicas allowed than the plan needs",
        "the ceiling is reached before the demand that was planned for",
        "llm-d/llm-d-autoscaling #1118: a ceiling of 4 where 5 to 8 were needed",
    ),
    of(
        "L25",
        "shutdown-aborts",
        "a long grace period for vLLM 0.18 or newer without `--shutdown-timeout`",
        "its default of 0 s cuts off what runs as soon as the pod is told to end",
        "vllm-project/vllm: vllm/engine/arg_utils.py",
    ),
];
