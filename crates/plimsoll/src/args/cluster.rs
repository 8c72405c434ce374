//! What is asked of clusters: manifests out, manifests checked, live signals.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_units::Seconds;

/// Which Prometheus, and how it is asked.
#[derive(Args, Clone, Debug)]
pub struct PrometheusArgs {
    /// A Prometheus, or what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics), such as `http://localhost:9090`
    #[arg(long, value_name = "URL")]
    pub(crate) prometheus: Option<String>,
    /// A file with the bearer token that it asks for; `PLIMSOLL_PROMETHEUS_TOKEN` does as well
    #[arg(long, value_name = "FILE")]
    pub(crate) prometheus_token_file: Option<PathBuf>,
    /// How long a question may take
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) query_timeout: Seconds,
    /// Only series with this label, such as `namespace=serving`; of one pool of a plan, `POOL:namespace=serving`; may be given again
    #[arg(long = "match", value_name = "LABEL=VALUE", value_parser = pair)]
    pub(crate) matches: Vec<(String, String)>,
}

/// What `emit` is asked for.
#[derive(Args, Debug)]
pub struct EmitArgs {
    /// The plan, as `plimsoll plan --out` wrote it
    pub(crate) plan: PathBuf,
    /// What for: `keda`, `hpa`, `prometheus`, `prometheus-rules`, `grafana`, `vllm`, `sglang`, `tensorrt-llm`, `litellm`, `envoy-ai-gateway`, `gie`, `dynamo`, `aibrix`,
    /// `terraform`, or `all`; several by commas
    #[arg(long, value_name = "TARGET", value_delimiter = ',', required = true)]
    pub(crate) target: Vec<String>,
    /// Where files are written; to stdout where absent
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// The namespace of the pools
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Where the cluster finds its Prometheus
    #[arg(long, value_name = "URL", default_value = "http://prometheus.monitoring:9090")]
    pub(crate) prometheus: String,
    /// The gateway that counts what is offered; engines only count what is served
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<GatewayArg>,
    /// What runs the pools
    #[arg(long, value_name = "KIND", default_value = "deployment")]
    pub(crate) workload: WorkloadArg,
    /// The name of a pool's workload, where it is not the pool's
    #[arg(long = "name", value_name = "POOL=NAME", value_parser = pair)]
    pub(crate) names: Vec<(String, String)>,
    /// The name that a pool's model is served under, where it is not the model's
    #[arg(long, value_name = "POOL=MODEL", value_parser = pair)]
    pub(crate) served: Vec<(String, String)>,
    /// Only series with this label, such as `namespace=serving`; of one pool, `POOL:namespace=serving`; may be given again
    #[arg(long = "match", value_name = "LABEL=VALUE", value_parser = pair)]
    pub(crate) matches: Vec<(String, String)>,
    /// Labels that the operator selects rules by, such as `release=kube-prometheus-stack`
    #[arg(long = "rule-label", value_name = "LABEL=VALUE", value_parser = pair)]
    pub(crate) rule_labels: Vec<(String, String)>,
    /// The time zone of calendars
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) timezone: String,
    /// Where a `plimsoll watch` listens, to scale on what it advises, too
    #[arg(long, value_name = "URL")]
    pub(crate) watch: Option<String>,
    /// Write manifests of a plan that does not hold
    #[arg(long)]
    pub(crate) even_if_infeasible: bool,
}

/// A gateway that counts tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GatewayArg {
    /// Dynamo's frontend
    Dynamo,
    /// llm-d's endpoint picker
    LlmD,
}

/// What runs a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    /// A Deployment
    Deployment,
    /// A StatefulSet
    StatefulSet,
    /// A LeaderWorkerSet, for replicas of several nodes
    LeaderWorkerSet,
    /// The scaling adapter of a Dynamo graph
    Dynamo,
}

/// What `lint` is asked for.
#[derive(Args, Debug)]
pub struct LintArgs {
    /// Manifests, rules and gateway configurations; `-` for standard input
    #[arg(required_unless_present = "rules")]
    pub(crate) files: Vec<PathBuf>,
    /// A plan: what is set above its load lines is a mistake
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// The engine that runs, such as `vllm@0.24`, where manifests do not say
    #[arg(long, value_name = "NAME@VERSION")]
    pub(crate) engine: Option<String>,
    /// Nine starts of a replica in ten are ready by then
    #[arg(long, value_name = "TIME")]
    pub(crate) startup_p90: Option<Seconds>,
    /// 99 in 100 are
    #[arg(long, value_name = "TIME")]
    pub(crate) startup_p99: Option<Seconds>,
    /// 99 generations in 100 take no longer
    #[arg(long, value_name = "TIME")]
    pub(crate) generation_p99: Option<Seconds>,
    /// Mend what is safe to mend, in the files
    #[arg(long)]
    pub(crate) fix: bool,
    /// Write findings as SARIF 2.1.0, for code review
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// List the rules, each with its proof
    #[arg(long)]
    pub(crate) rules: bool,
}

/// What `doctor` is asked for.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Manifests and rules whose queries are run
    pub(crate) manifests: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) prometheus: PrometheusArgs,
    /// A plan whose signals are looked for
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// The gateway that counts what is offered
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<GatewayArg>,
    /// The name that a pool's model is served under, where it is not the model's
    #[arg(long, value_name = "POOL=MODEL", value_parser = pair)]
    pub(crate) served: Vec<(String, String)>,
    /// How far back a trigger could have fired
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub(crate) since: Seconds,
}

/// What `watch` is asked for.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// The plan, as `plimsoll plan --out` wrote it
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) prometheus: PrometheusArgs,
    /// The gateway that counts what is offered
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<GatewayArg>,
    /// The name that a pool's model is served under, where it is not the model's
    #[arg(long, value_name = "POOL=MODEL", value_parser = pair)]
    pub(crate) served: Vec<(String, String)>,
    /// How often it looks
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) every: Seconds,
    /// Over how long rates are taken
    #[arg(long, value_name = "TIME", default_value = "2m")]
    pub(crate) window: Seconds,
    /// Look once, say it and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Where to listen: `/metrics`, `/v1/replicas` (KEDA's metrics-api), `/v1/advice`, and KEDA's external scaler (gRPC)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
}

/// What `ingest` is asked of a Prometheus.
#[derive(Args, Clone, Debug)]
pub struct IngestLiveArgs {
    #[command(flatten)]
    pub(crate) source: PrometheusArgs,
    /// How far back to read, such as `14d`
    #[arg(long, value_name = "TIME", default_value = "14d")]
    pub(crate) since: Seconds,
    /// Until when, such as `2026-11-15T09:00:00Z`; now where absent
    #[arg(long, value_name = "TIME", value_parser = super::instant)]
    pub(crate) until: Option<jiff::Timestamp>,
    /// Only this model, by the name that it is served under; may be given again
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) models: Vec<String>,
    /// The windows that counters are counted over
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) window: Seconds,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(format!("`{text}` is not `NAME=VALUE`")),
    }
}
