//! What engines and gateways call the things they count, which changes from version to version.
//!
//! Read from the sources of the projects, 2026-08-22 (vLLM to 0.28, SGLang to 0.5.17, TensorRT-LLM 1.3, TGI 3.3, Dynamo's frontend, llm-d's endpoint picker).

use std::fmt;

use crate::engine::Version;

/// What reports metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reporter {
    /// vLLM.
    Vllm,
    /// SGLang, where `--enable-metrics` is set.
    Sglang,
    /// TensorRT-LLM's own server.
    TensorRtLlm,
    /// Text Generation Inference.
    Tgi,
    /// Dynamo's frontend: a gateway.
    Dynamo,
    /// llm-d's endpoint picker: a gateway.
    LlmD,
}

impl Reporter {
    /// All of them; gateways first, because they see what is offered.
    pub const ALL: [Self; 6] =
        [Self::Dynamo, Self::LlmD, Self::Vllm, Self::Sglang, Self::TensorRtLlm, Self::Tgi];

    /// As it is named in files and on screens.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TensorRtLlm => "tensorrt-llm",
            Self::Tgi => "tgi",
            Self::Dynamo => "dynamo",
            Self::LlmD => "llm-d",
        }
    }

    /// The one of a name, such as the part of `vllm@0.24` before the `@`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }

    /// Whether it stands before engines, and counts what is offered and not only what is served.
    pub fn is_gateway(self) -> bool {
        matches!(self, Self::Dynamo | Self::LlmD)
    }

    /// What the names of its metrics begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Vllm => "vllm:",
            Self::Sglang => "sglang:",
            Self::TensorRtLlm => "trtllm_",
            Self::Tgi => "tgi_",
            Self::Dynamo => "dynamo_frontend_",
            Self::LlmD => "llm_d_epp_",
        }
    }

    /// The label that names the model; none where it serves one and does not say which.
    pub fn model_label(self) -> Option<&'static str> {
        match self {
            Self::Vllm | Self::Sglang | Self::TensorRtLlm | Self::LlmD => Some("model_name"),
            Self::Dynamo => Some("model"),
            Self::Tgi => None,
        }
    }
}

impl fmt::Display for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// Sequences that run.
    Running,
    /// Calls that wait, for whatever reason.
    Waiting,
    /// Calls that wait because there is no room, and not for an adapter or a transfer.
    WaitingForRoom,
    /// Calls that are under way, whether they run or wait.
    InFlight,
    /// The share of the cache in use, from zero to one.
    KvShare,
    /// Prompt tokens, cached ones included.
    PromptTokens,
    /// Of those, tokens that were cached.
    CachedTokens,
    /// Of those, tokens that were computed.
    FreshTokens,
    /// Output tokens.
    OutputTokens,
    /// Calls that ended, whatever the end, or that were asked for at a gateway.
    Requests,
    /// Calls that failed or were turned away.
    Errors,
    /// Sequences that lost their blocks.
    Preemptions,
    /// Tokens that were looked up in the prefix cache.
    CacheQueries,
    /// Tokens that were found there.
    CacheHits,
    /// Seconds to the first token.
    Ttft,
    /// Seconds between tokens.
    Itl,
    /// Seconds between tokens, the mean of a call.
    Tpot,
    /// Seconds to the last token.
    E2e,
    /// Seconds in line.
    QueueTime,
    /// Prompt tokens of a call.
    PromptLength,
    /// Output tokens of a call.
    OutputLength,
    /// What the cache is made of, in labels.
    CacheConfig,
    /// Tokens that fit into the cache.
    KvTokens,
    /// How full the pool is, as a gateway sees it.
    Saturation,
}

/// How a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, but for restarts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A gauge that cannot exceed one.
    Share,
    /// Observations in buckets: `_bucket`, `_sum` and `_count`.
    Histogram,
    /// Always one; its labels are what it says.
    Info,
}

impl MetricKind {
    /// Whether it has a largest value, so that it cannot show how far beyond it demand is.
    pub fn is_bounded(self) -> bool {
        matches!(self, Self::Share | Self::Info)
    }
}

/// A metric by the name that is scraped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Who reports it.
    pub reporter: Reporter,
    /// What it counts.
    pub signal: Signal,
    /// As scraped; a histogram without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// Labels that select it among others of the name.
    pub matches: &'static [(&'static str, &'static str)],
    /// How it counts.
    pub kind: MetricKind,
    /// The first version that has it; none where all that are known do.
    pub since: Option<&'static str>,
    /// The first version that has it no more.
    pub until: Option<&'static str>,
    /// What has taken its place, where something has.
    pub instead: Option<&'static str>,
}

impl Metric {
    /// Whether a version reports it.
    pub fn is_in(&self, version: Version) -> bool {
        let at = |text: &str| text.parse::<Version>().ok();
        self.since.and_then(at).is_none_or(|since| since <= version)
            && self.until.and_then(at).is_none_or(|until| version < until)
    }
}

/// All metrics that are known, the preferred ones of a signal first.
pub fn metrics() -> &'static [Metric] {
    METRICS
}

/// What a reporter calls a signal, best first; those that its version does not have are left out where the version is known.
pub fn names(
    reporter: Reporter,
    signal: Signal,
    version: Option<Version>,
) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |own| {
        own.reporter == reporter
            && own.signal == signal
            && version.is_none_or(|version| own.is_in(version))
    })
}

/// The metrics of a name as it is scraped or queried: with or without `_bucket`, `_sum`, `_count`, and with the `_` that some pipelines make of `:`.
pub fn known(name: &str) -> Vec<&'static Metric> {
    let same = |own: &Metric, name: &str| {
        own.name == name || (own.name.contains(':') && own.name.replacen(':', "_", 1) == name)
    };
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    METRICS
        .iter()
        .filter(|own| {
            same(own, name)
                || (own.kind == MetricKind::Histogram && base.is_some_and(|base| same(own, base)))
        })
        .collect()
}

/// Who a name looks like, known or not.
pub fn reporter_of(name: &str) -> Option<Reporter> {
    Reporter::ALL.into_iter().find(|own| {
        name.starts_with(own.prefix()) || name.starts_with(&own.prefix().replace(':', "_"))
    })
}

/// The upper edges of the buckets of a latency, in seconds, where they are known: a threshold between two of them cannot be checked.
pub fn buckets(reporter: Reporter, signal: Signal) -> Option<&'static [f64]> {
    match (reporter, signal) {
        (Reporter::Vllm, Signal::Ttft) => Some(&[
            0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
            10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
        ]),
        (Reporter::Vllm, Signal::Itl | Signal::Tpot) => Some(&[
            0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
            10.0, 20.0, 40.0, 80.0,
        ]),
        (Reporter::Vllm, Signal::E2e | Signal::QueueTime) => Some(&[
            0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0,
            120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
        ]),
        _ => None,
    }
}

const fn metric(
    reporter: Reporter,
    signal: Signal,
    name: &'static str,
    kind: MetricKind,
) -> Metric {
    Metric { reporter, signal, name, matches: &[], kind, since: None, until: None, instead: None }
}

const fn since(mut own: Metric, version: &'static str) -> Metric {
    own.since = Some(version);
    own
}

const fn until(mut own: Metric, version: &'static str, instead: &'static str) -> Metric {
    own.until = Some(version);
    own.instead = Some(instead);
    own
}

const fn gone(mut own: Metric, version: &'static str) -> Metric {
    own.until = Some(version);
    own
}

const fn only(mut own: Metric, matches: &'static [(&'static str, &'static str)]) -> Metric {
    own.matches = matches;
    own
}

use MetricKind::{Counter, Gauge, Histogram, Info, Share};
use Reporter::{Dynamo, LlmD, Sglang, TensorRtLlm, Tgi, Vllm};
use Signal as S;

const METRICS: &[Metric] = &[
    metric(Vllm, S::Running, "vllm:num_requests_running", Gauge),
    metric(Vllm, S::Waiting, "vllm:num_requests_waiting", Gauge),
    since(
        only(
            metric(Vllm, S::WaitingForRoom, "vllm:num_requests_waiting_by_reason", Gauge),
            &[("reason", "capacity")],
        ),
        "0.20.0",
    ),
    since(metric(Vllm, S::KvShare, "vllm:kv_cache_usage_perc", Share), "0.9.2"),
    until(
        metric(Vllm, S::KvShare, "vllm:gpu_cache_usage_perc", Share),
        "0.12.0",
        "vllm:kv_cache_usage_perc",
    ),
    metric(Vllm, S::PromptTokens, "vllm:prompt_tokens_total", Counter),
    since(
        only(
            metric(Vllm, S::FreshTokens, "vllm:prompt_tokens_by_source_total", Counter),
            &[("source", "local_compute")],
        ),
        "0.16.0",
    ),
    since(metric(Vllm, S::CachedTokens, "vllm:prompt_tokens_cached_total", Counter), "0.16.0"),
    metric(Vllm, S::OutputTokens, "vllm:generation_tokens_total", Counter),
    metric(Vllm, S::Requests, "vllm:request_success_total", Counter),
    only(
        metric(Vllm, S::Errors, "vllm:request_success_total", Counter),
        &[("finished_reason", "error")],
    ),
    metric(Vllm, S::Preemptions, "vllm:num_preemptions_total", Counter),
    // Tokens, not sequences: only where nothing else tells of them.
    gone(
        since(
            metric(Vllm, S::Preemptions, "vllm:prompt_tokens_recomputed_total", Counter),
            "0.16.0",
        ),
        "0.20.0",
    ),
    since(metric(Vllm, S::CacheQueries, "vllm:prefix_cache_queries_total", Counter), "0.9.2"),
    since(metric(Vllm, S::CacheHits, "vllm:prefix_cache_hits_total", Counter), "0.9.2"),
    until(
        metric(Vllm, S::CacheQueries, "vllm:gpu_prefix_cache_queries_total", Counter),
        "0.12.0",
        "vllm:prefix_cache_queries_total",
    ),
    until(
        metric(Vllm, S::CacheHits, "vllm:gpu_prefix_cache_hits_total", Counter),
        "0.12.0",
        "vllm:prefix_cache_hits_total",
    ),
    metric(Vllm, S::Ttft, "vllm:time_to_first_token_seconds", Histogram),
    since(metric(Vllm, S::Itl, "vllm:inter_token_latency_seconds", Histogram), "0.10.2"),
    until(
        metric(Vllm, S::Itl, "vllm:time_per_output_token_seconds", Histogram),
        "0.15.0",
        "vllm:inter_token_latency_seconds",
    ),
    since(metric(Vllm, S::Tpot, "vllm:request_time_per_output_token_seconds", Histogram), "0.11.0"),
    metric(Vllm, S::E2e, "vllm:e2e_request_latency_seconds", Histogram),
    metric(Vllm, S::QueueTime, "vllm:request_queue_time_seconds", Histogram),
    metric(Vllm, S::PromptLength, "vllm:request_prompt_tokens", Histogram),
    metric(Vllm, S::OutputLength, "vllm:request_generation_tokens", Histogram),
    metric(Vllm, S::CacheConfig, "vllm:cache_config_info", Info),
    metric(Sglang, S::Running, "sglang:num_running_reqs", Gauge),
    metric(Sglang, S::Waiting, "sglang:num_queue_reqs", Gauge),
    metric(Sglang, S::KvShare, "sglang:token_usage", Share),
    metric(Sglang, S::PromptTokens, "sglang:prompt_tokens_total", Counter),
    metric(Sglang, S::CachedTokens, "sglang:cached_tokens_total", Counter),
    metric(Sglang, S::OutputTokens, "sglang:generation_tokens_total", Counter),
    metric(Sglang, S::Requests, "sglang:num_requests_total", Counter),
    metric(Sglang, S::Errors, "sglang:num_aborted_requests_total", Counter),
    metric(Sglang, S::Preemptions, "sglang:num_retracted_requests_total", Counter),
    metric(Sglang, S::Ttft, "sglang:time_to_first_token_seconds", Histogram),
    since(metric(Sglang, S::Itl, "sglang:inter_token_latency_seconds", Histogram), "0.4.4"),
    metric(Sglang, S::E2e, "sglang:e2e_request_latency_seconds", Histogram),
    metric(Sglang, S::QueueTime, "sglang:queue_time_seconds", Histogram),
    metric(Sglang, S::PromptLength, "sglang:prompt_tokens_histogram", Histogram),
    metric(Sglang, S::OutputLength, "sglang:generation_tokens_histogram", Histogram),
    since(metric(Sglang, S::KvTokens, "sglang:max_total_num_tokens", Gauge), "0.5.6"),
    until(
        since(metric(Sglang, S::CacheConfig, "sglang:cache_config_info", Info), "0.5.9"),
        "0.5.11",
        "sglang:page_size",
    ),
    metric(TensorRtLlm, S::Running, "trtllm_num_requests_running", Gauge),
    metric(TensorRtLlm, S::Waiting, "trtllm_num_requests_waiting", Gauge),
    metric(TensorRtLlm, S::KvShare, "trtllm_kv_cache_utilization", Share),
    metric(TensorRtLlm, S::PromptTokens, "trtllm_prompt_tokens_total", Counter),
    metric(TensorRtLlm, S::CachedTokens, "trtllm_prompt_cached_tokens_total", Counter),
    metric(TensorRtLlm, S::OutputTokens, "trtllm_generation_tokens_total", Counter),
    metric(TensorRtLlm, S::Requests, "trtllm_request_success_total", Counter),
    metric(TensorRtLlm, S::Errors, "trtllm_request_error_total", Counter),
    metric(TensorRtLlm, S::Ttft, "trtllm_time_to_first_token_seconds", Histogram),
    metric(TensorRtLlm, S::Tpot, "trtllm_time_per_output_token_seconds", Histogram),
    metric(TensorRtLlm, S::E2e, "trtllm_e2e_request_latency_seconds", Histogram),
    metric(TensorRtLlm, S::QueueTime, "trtllm_request_queue_time_seconds", Histogram),
    metric(TensorRtLlm, S::CacheConfig, "trtllm_kv_cache_config_info", Info),
    metric(Tgi, S::Running, "tgi_batch_current_size", Gauge),
    metric(Tgi, S::Waiting, "tgi_queue_size", Gauge),
    metric(Tgi, S::Requests, "tgi_request_count", Counter),
    metric(Tgi, S::Errors, "tgi_request_failure", Counter),
    metric(Tgi, S::Tpot, "tgi_request_mean_time_per_token_duration", Histogram),
    metric(Tgi, S::E2e, "tgi_request_duration", Histogram),
    metric(Tgi, S::QueueTime, "tgi_request_queue_duration", Histogram),
    metric(Tgi, S::PromptLength, "tgi_request_input_length", Histogram),
    metric(Tgi, S::OutputLength, "tgi_request_generated_tokens", Histogram),
    metric(Dynamo, S::Requests, "dynamo_frontend_requests_total", Counter),
    metric(Dynamo, S::InFlight, "dynamo_frontend_active_requests", Gauge),
    metric(Dynamo, S::InFlight, "dynamo_frontend_inflight_requests", Gauge),
    metric(Dynamo, S::Waiting, "dynamo_frontend_queued_requests", Gauge),
    metric(Dynamo, S::Errors, "dynamo_frontend_model_rejection_total", Counter),
    metric(Dynamo, S::Ttft, "dynamo_frontend_time_to_first_token_seconds", Histogram),
    metric(Dynamo, S::Itl, "dynamo_frontend_inter_token_latency_seconds", Histogram),
    metric(Dynamo, S::E2e, "dynamo_frontend_request_duration_seconds", Histogram),
    metric(Dynamo, S::PromptLength, "dynamo_frontend_input_sequence_tokens", Histogram),
    metric(Dynamo, S::OutputLength, "dynamo_frontend_output_sequence_tokens", Histogram),
    metric(Dynamo, S::CachedTokens, "dynamo_frontend_cached_tokens", Histogram),
    metric(LlmD, S::Requests, "llm_d_epp_request_total", Counter),
    metric(LlmD, S::Errors, "llm_d_epp_request_error_total", Counter),
    metric(LlmD, S::InFlight, "llm_d_epp_request_running", Gauge),
    metric(LlmD, S::Waiting, "llm_d_epp_flow_control_queue_size", Gauge),
    metric(LlmD, S::Ttft, "llm_d_epp_request_ttft_seconds", Histogram),
    metric(LlmD, S::Tpot, "llm_d_epp_request_streaming_tpot_seconds", Histogram),
    metric(LlmD, S::Itl, "llm_d_epp_request_streaming_itl_seconds", Histogram),
    metric(LlmD, S::PromptLength, "llm_d_epp_request_input_tokens", Histogram),
    metric(LlmD, S::OutputLength, "llm_d_epp_request_output_tokens", Histogram),
    metric(LlmD, S::CachedTokens, "llm_d_epp_request_cached_tokens", Histogram),
    metric(LlmD, S::KvShare, "llm_d_epp_average_kv_cache_utilization", Share),
    metric(LlmD, S::Saturation, "llm_d_epp_flow_control_pool_saturation", Gauge),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    #[test]
    fn versions_have_their_own_names() {
        let kv = |at: &str| -> Vec<&str> {
            names(Vllm, S::KvShare, Some(version(at))).map(|own| own.name).collect()
        };
        assert_eq!(kv("0.9.1"), ["vllm:gpu_cache_usage_perc"]);
        assert_eq!(kv("0.11"), ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"]);
        assert_eq!(kv("0.12"), ["vllm:kv_cache_usage_perc"]);
        assert!(names(Vllm, S::FreshTokens, Some(version("0.15"))).next().is_none());
    }

    #[test]
    fn parts_of_histograms_and_rewritten_names_are_known() {
        let first = |name: &str| known(name).first().map(|own| own.name);
        assert_eq!(
            first("vllm:time_to_first_token_seconds_bucket"),
            Some("vllm:time_to_first_token_seconds")
        );
        assert_eq!(first("vllm_num_requests_waiting"), Some("vllm:num_requests_waiting"));
        // A counter that ends like a part of a histogram is none.
        assert_eq!(first("tgi_request_count"), Some("tgi_request_count"));
        assert_eq!(first("vllm:num_requests_running_sum"), None);
        assert_eq!(reporter_of("vllm:nothing_of_the_kind"), Some(Vllm));
    }

    #[test]
    fn what_was_replaced_names_something_newer() {
        for own in METRICS {
            assert!(own.name.starts_with(own.reporter.prefix()), "{}", own.name);
            assert!(own.instead.is_none() || own.until.is_some(), "{}", own.name);
        }
    }
}
