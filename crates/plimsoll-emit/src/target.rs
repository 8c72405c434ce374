//! A plan as files that clusters, gateways and engines read, one module a target.
//!
//! No number is decided here: each is the plan's, or follows from it by a change of unit or a rounding that its comment names. The same plan gives the same
//! bytes. A plan that does not hold gives no files, because what is written will be applied.

mod aibrix;
mod calendar;
mod dynamo;
mod engine;
mod envoy;
mod gie;
mod grafana;
mod hpa;
mod keda;
mod litellm;
mod pool;
mod prometheus;
mod scale;
mod terraform;

use std::collections::BTreeMap;

use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::PlanFile;

use self::pool::Emission;

/// What files are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// KEDA's `ScaledObject`.
    Keda,
    /// Kubernetes' `HorizontalPodAutoscaler`, with the rules of a prometheus-adapter.
    Hpa,
    /// A `PrometheusRule` of the operator.
    Prometheus,
    /// The same rules as a file that Prometheus itself reads.
    PrometheusRules,
    /// A dashboard.
    Grafana,
    /// Flags of vLLM.
    Vllm,
    /// Flags of SGLang.
    Sglang,
    /// Options of TensorRT-LLM.
    TensorRtLlm,
    /// LiteLLM's proxy.
    LiteLlm,
    /// Envoy AI Gateway's `QuotaPolicy`.
    EnvoyAiGateway,
    /// The Gateway API inference extension and llm-d's endpoint picker.
    Gie,
    /// The planner of Dynamo.
    Dynamo,
    /// AIBrix' `PodAutoscaler`.
    Aibrix,
    /// Variables of Terraform: pools of nodes.
    Terraform,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Keda,
        Self::Hpa,
        Self::Prometheus,
        Self::PrometheusRules,
        Self::Grafana,
        Self::Vllm,
        Self::Sglang,
        Self::TensorRtLlm,
        Self::LiteLlm,
        Self::EnvoyAiGateway,
        Self::Gie,
        Self::Dynamo,
        Self::Aibrix,
        Self::Terraform,
    ];

    /// As it is named on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keda => "keda",
            Self::Hpa => "hpa",
            Self::Prometheus => "prometheus",
            Self::PrometheusRules => "prometheus-rules",
            Self::Grafana => "grafana",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TensorRtLlm => "tensorrt-llm",
            Self::LiteLlm => "litellm",
            Self::EnvoyAiGateway => "envoy-ai-gateway",
            Self::Gie => "gie",
            Self::Dynamo => "dynamo",
            Self::Aibrix => "aibrix",
            Self::Terraform => "terraform",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }
}

/// What kind of object runs the replicas of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// `apps/v1`.
    Deployment,
    /// `apps/v1`.
    StatefulSet,
    /// Groups of pods, where a replica is larger than a node.
    LeaderWorkerSet,
    /// Dynamo's handle for autoscalers.
    DynamoGraphDeploymentScalingAdapter,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Deployment,
        Self::StatefulSet,
        Self::LeaderWorkerSet,
        Self::DynamoGraphDeploymentScalingAdapter,
    ];

    /// The kind, as manifests have it.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::LeaderWorkerSet => "LeaderWorkerSet",
            Self::DynamoGraphDeploymentScalingAdapter => "DynamoGraphDeploymentScalingAdapter",
        }
    }

    /// The version of the interface that knows it.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::StatefulSet => "apps/v1",
            Self::LeaderWorkerSet => "leaderworkerset.x-k8s.io/v1",
            Self::DynamoGraphDeploymentScalingAdapter => "nvidia.com/v1alpha1",
        }
    }

    /// The one of a kind.
    pub fn named(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.kind() == kind)
    }
}

/// What a plan does not know of the cluster that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitSettings {
    /// The plan's file, as it is named in the command that a file says it was made by.
    pub plan_file: String,
    /// Where objects are put; none leaves it to whoever applies them.
    pub namespace: Option<String>,
    /// Where a Prometheus answers.
    pub prometheus: String,
    /// What stands before the engines and counts what is offered.
    pub gateway: Option<Reporter>,
    /// Names of workloads by pool; a pool's own name otherwise.
    pub names: BTreeMap<String, String>,
    /// Names of models by pool, as they are served; the pool's model otherwise.
    pub served: BTreeMap<String, String>,
    /// Labels that series have, of all pools (`LABEL`) or of one (`POOL:LABEL`).
    pub labels: Vec<(String, String)>,
    /// What runs replicas.
    pub workload: Workload,
    /// Labels that a Prometheus selects its rules by.
    pub rule_labels: BTreeMap<String, String>,
    /// The time zone that calendars are written in.
    pub timezone: String,
    /// Where a `plimsoll watch` answers, which then has a say in how many replicas there are.
    pub watch: Option<String>,
    /// Writes files even of a plan that does not hold.
    pub even_if_infeasible: bool,
}

impl Default for EmitSettings {
    fn default() -> Self {
        Self {
            plan_file: "plan.json".to_owned(),
            namespace: None,
            prometheus: "http://prometheus.monitoring:9090".to_owned(),
            gateway: None,
            names: BTreeMap::new(),
            served: BTreeMap::new(),
            labels: Vec::new(),
            workload: Workload::Deployment,
            rule_labels: BTreeMap::new(),
            timezone: "UTC".to_owned(),
            watch: None,
            even_if_infeasible: false,
        }
    }
}

/// What files are made of.
#[derive(Clone, Copy, Debug)]
pub struct EmitInput<'a> {
    /// The plan.
    pub plan: &'a PlanFile,
    /// What it does not know.
    pub settings: &'a EmitSettings,
}

/// Files, and what was left out of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Emitted {
    /// The files.
    pub files: Vec<EmittedFile>,
    /// What was left out or bent, and why.
    pub notes: Vec<String>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmittedFile {
    /// Its name, such as `keda-chat.yaml`.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Why there are no files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The plan does not hold.
    #[error(
        "the plan `{plan}` does not hold, so nothing is written that could be applied: `plimsoll plan` says what binds; `--even-if-infeasible` writes it all the same"
    )]
    Infeasible {
        /// The plan's name.
        plan: String,
    },
    /// A time zone that is not known.
    #[error("the time zone `{name}` is not known here: `--timezone UTC` always is")]
    Timezone {
        /// As it was given.
        name: String,
    },
    /// A forecast that begins at no time.
    #[error(
        "`forecast.start` of the plan is `{start}`, which is no time such as 2026-11-16T00:00:00Z"
    )]
    Start {
        /// As it was read.
        start: String,
    },
    /// A name that a cluster does not take.
    #[error(
        "`{name}`, the name of pool `{pool}`, is none that Kubernetes takes: lower-case letters, digits and `-`, 63 at most; `{nearest}` would be one"
    )]
    Name {
        /// The pool.
        pool: String,
        /// As it was given.
        name: String,
        /// One that would do.
        nearest: String,
    },
    /// Two pools with one name.
    #[error(
        "pools `{first}` and `{second}` are both named `{name}` in the cluster: give one of them another name"
    )]
    SameName {
        /// A pool.
        first: String,
        /// Another.
        second: String,
        /// The name of both.
        name: String,
    },
    /// A setting that names a pool which the plan does not have.
    #[error("the plan has no pool `{pool}`; it has {known}")]
    Pool {
        /// As it was given.
        pool: String,
        /// Those of the plan.
        known: String,
    },
}

/// A plan as the files of a target.
pub fn emit(target: Target, input: &EmitInput<'_>) -> Result<Emitted, EmitError> {
    let mut own = Emission::new(target, input)?;
    match target {
        Target::Keda => keda::emit(&mut own)?,
        Target::Hpa => hpa::emit(&mut own),
        Target::Prometheus => prometheus::emit(&mut own),
        Target::PrometheusRules => prometheus::emit_plain(&mut own),
        Target::Grafana => grafana::emit(&mut own),
        Target::Vllm => engine::emit(&mut own, Reporter::Vllm),
        Target::Sglang => engine::emit(&mut own, Reporter::Sglang),
        Target::TensorRtLlm => engine::emit(&mut own, Reporter::TensorRtLlm),
        Target::LiteLlm => litellm::emit(&mut own),
        Target::EnvoyAiGateway => envoy::emit(&mut own),
        Target::Gie => gie::emit(&mut own),
        Target::Dynamo => dynamo::emit(&mut own),
        Target::Aibrix => aibrix::emit(&mut own)?,
        Target::Terraform => terraform::emit(&mut own),
    }
    Ok(own.out)
}
