//! What to watch, first things first: what shows trouble before users do.

use super::Watch;
use crate::plan::Plan;
use crate::scaling::ScalingSignal;

/// What engines call what is watched (`/metrics` of vLLM 0.24, SGLang 0.5.17 and trtllm-serve, read 2026-11-15).
struct Names {
    queue_wait: &'static str,
    preemptions: &'static str,
    fresh: &'static str,
    in_flight: &'static str,
    waiting: &'static str,
    ttft: &'static str,
    kv: &'static str,
}

const VLLM: Names = Names {
    queue_wait: "vllm:request_queue_time_seconds",
    preemptions: "vllm:num_preemptions_total",
    fresh: "vllm:prompt_tokens_total less cached ones",
    in_flight: "vllm:num_requests_running + vllm:num_requests_waiting",
    waiting: "vllm:num_requests_waiting",
    ttft: "vllm:time_to_first_token_seconds",
    kv: "vllm:kv_cache_usage_perc",
};
const SGLANG: Names = Names {
    queue_wait: "sglang:queue_time_seconds",
    preemptions: "sglang:num_retracted_requests_total",
    fresh: "sglang:uncached_prompt_tokens_histogram",
    in_flight: "sglang:num_running_reqs + sglang:num_queue_reqs",
    waiting: "sglang:num_queue_reqs",
    ttft: "sglang:time_to_first_token_seconds",
    kv: "sglang:token_usage",
};
const TENSORRT: Names = Names {
    queue_wait: "trtllm_request_queue_time_seconds",
    // It keeps room for whole outputs, and throws nobody out.
    preemptions: "trtllm_request_error_total",
    fresh: "trtllm_prompt_tokens_total less trtllm_prompt_cached_tokens_total",
    in_flight: "trtllm_num_requests_running + trtllm_num_requests_waiting",
    waiting: "trtllm_num_requests_waiting",
    ttft: "trtllm_time_to_first_token_seconds",
    kv: "trtllm_kv_cache_utilization",
};

/// What the engine of a pool calls things.
fn names(plan: &Plan, pool: &str) -> &'static Names {
    let engine = plan.pools.iter().find(|own| own.name == pool).map(|own| own.engine.as_str());
    match engine {
        Some(name) if name.starts_with("sglang") => &SGLANG,
        Some(name) if name.starts_with("tensorrt") => &TENSORRT,
        _ => &VLLM,
    }
}

/// What to watch, and where to act.
pub(super) fn signals(plan: Option<&Plan>) -> Vec<Watch> {
    let Some(plan) = plan else { return Vec::new() };
    let mut all = Vec::new();
    for limits in &plan.limits {
        all.push(Watch {
            signal: "queue_wait".to_owned(),
            of: Some(limits.pool.clone()),
            threshold: limits.queue_age.value,
            unit: limits.queue_age.unit,
            metric: Some(names(plan, &limits.pool).queue_wait.to_owned()),
            means: "requests wait before an engine begins with them: the first thing to grow as the load line comes near".to_owned(),
            action: "turn away or shift load at the gateway, then add replicas".to_owned(),
        });
    }
    for limits in &plan.limits {
        all.push(Watch {
            signal: "allocation_failures".to_owned(),
            of: Some(limits.pool.clone()),
            threshold: Some(0.0),
            unit: "preemptions/s",
            metric: Some(names(plan, &limits.pool).preemptions.to_owned()),
            means: "an engine found no block for a sequence and threw its work away: more is resident than was planned for".to_owned(),
            action: "let fewer sequences or shorter contexts in; look at the share of caches in use".to_owned(),
        });
    }
    for policy in &plan.scaling.policies {
        let called = names(plan, &policy.pool);
        for own in &policy.thresholds {
            let (signal, metric, means) = match own.signal {
                ScalingSignal::FreshTokens => (
                    "fresh_tokens",
                    called.fresh,
                    "prompt tokens that must be computed: says how many replicas are needed whatever there are",
                ),
                ScalingSignal::InFlight => (
                    "in_flight",
                    called.in_flight,
                    "calls that run or wait: grows with load and with how long each takes",
                ),
                ScalingSignal::QueueDepth => {
                    ("queue_depth", called.waiting, "calls that wait: replicas are too few already")
                }
                ScalingSignal::TtftP90 => (
                    "ttft_p90",
                    called.ttft,
                    "users wait for the first token: late, and after the queue",
                ),
                ScalingSignal::Kv => (
                    "kv_in_use",
                    called.kv,
                    "a guard and no signal of demand: it cannot go beyond one",
                ),
            };
            all.push(Watch {
                signal: signal.to_owned(),
                of: Some(policy.pool.clone()),
                threshold: own.value,
                unit: own.unit,
                metric: Some(metric.to_owned()),
                means: means.to_owned(),
                action: own.why.clone(),
            });
        }
    }
    if !plan.limits.is_empty() {
        all.push(Watch {
            signal: "ttft_up_itl_flat".to_owned(),
            of: None,
            threshold: None,
            unit: "",
            metric: None,
            means: "TTFT rises and ITL stays: requests wait in line or prompts grew, and engines that run are not slower. Look at queue wait, fresh tokens and cache hits".to_owned(),
            action: "more replicas, a bounded queue, or the cache that was lost".to_owned(),
        });
        all.push(Watch {
            signal: "itl_up_ttft_flat".to_owned(),
            of: None,
            threshold: None,
            unit: "",
            metric: None,
            means: "ITL rises and TTFT stays: batches are wide or contexts long, or prompts are read between tokens. Nobody waits in line yet".to_owned(),
            action: "fewer sequences at once, a smaller token budget of a step, or prompts read elsewhere".to_owned(),
        });
    }
    all
}
