//! What attributes of GenAI spans are called, and have been called.
//!
//! Three generations of names are in the field at once: instrumentations keep the old ones until they are told otherwise.
//! Names of the conventions: `open-telemetry/semantic-conventions` v1.27 to v1.41.1 and `semantic-conventions-genai` (its
//! `docs/gen-ai/non-normative/migration.md`); names of engines: `SpanAttributes` in vLLM's
//! `vllm/tracing` and in SGLang's `python/sglang/srt/observability/trace.py`, read in November 2026.

use serde_json::Value;

use super::is_nothing;

/// Where a name comes from; a later one is believed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Generation {
    /// What one instrumentation made up.
    Vendor,
    /// Until v1.27, and what vLLM, SGLang and OpenLLMetry still write.
    First,
    /// v1.28 to v1.36.
    Second,
    /// v1.37 to v1.41.1.
    Third,
    /// The conventions since they have a house of their own.
    Next,
}

/// What an attribute says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    Operation,
    Provider,
    Model,
    ModelVersion,
    Prompt,
    CacheRead,
    CacheWrite,
    Output,
    Reasoning,
    Total,
    MaxTokens,
    Stream,
    /// Seconds to the first chunk, as a client saw it.
    FirstChunk,
    /// Seconds to the first token, as an engine saw it; the others of its kind follow.
    FirstToken,
    EndToEnd,
    Queue,
    Prefill,
    Decode,
    Inference,
    RequestId,
    ResponseId,
    Finish,
    Session,
    User,
    Agent,
    Workflow,
    PromptName,
    PromptVersion,
    Tier,
    Tool,
    Error,
    Http,
    Server,
    Region,
    EvaluationName,
    EvaluationScore,
    EvaluationLabel,
}

use Generation::{First, Next, Second, Third, Vendor};

/// The names, what they mean, and since when.
pub(super) const ALIASES: &[(&str, Means, Generation)] = &[
    ("gen_ai.operation.name", Means::Operation, Second),
    ("llm.request.type", Means::Operation, Vendor),
    ("gen_ai.system", Means::Provider, First),
    ("gen_ai.provider.name", Means::Provider, Third),
    ("gen_ai.request.model", Means::Model, First),
    ("gen_ai.response.model", Means::ModelVersion, First),
    ("gen_ai.usage.prompt_tokens", Means::Prompt, First),
    ("gen_ai.usage.input_tokens", Means::Prompt, Second),
    ("gen_ai.usage.completion_tokens", Means::Output, First),
    ("gen_ai.usage.output_tokens", Means::Output, Second),
    // SGLang.
    ("gen_ai.usage.cached_tokens", Means::CacheRead, Vendor),
    ("gen_ai.usage.cached_input_tokens", Means::CacheRead, Vendor),
    ("gen_ai.usage.cache_read_input_tokens", Means::CacheRead, Vendor),
    ("gen_ai.usage.cache_read.input_tokens", Means::CacheRead, Third),
    ("gen_ai.usage.cache_write_input_tokens", Means::CacheWrite, Vendor),
    ("gen_ai.usage.cache_creation_input_tokens", Means::CacheWrite, Vendor),
    ("gen_ai.usage.cache_creation.input_tokens", Means::CacheWrite, Third),
    ("gen_ai.usage.cache_write.input_tokens", Means::CacheWrite, Next),
    // Envoy AI Gateway.
    ("gen_ai.usage.reasoning_tokens", Means::Reasoning, Vendor),
    ("gen_ai.usage.reasoning.output_tokens", Means::Reasoning, Third),
    ("llm.usage.total_tokens", Means::Total, Vendor),
    ("gen_ai.usage.total_tokens", Means::Total, Vendor),
    ("gen_ai.request.max_tokens", Means::MaxTokens, First),
    ("llm.is_streaming", Means::Stream, Vendor),
    ("gen_ai.request.stream", Means::Stream, Third),
    ("gen_ai.response.time_to_first_chunk", Means::FirstChunk, Third),
    ("gen_ai.latency.time_to_first_token", Means::FirstToken, First),
    ("gen_ai.latency.e2e", Means::EndToEnd, First),
    ("gen_ai.latency.time_in_queue", Means::Queue, First),
    ("gen_ai.latency.time_in_model_prefill", Means::Prefill, First),
    ("gen_ai.latency.time_in_model_decode", Means::Decode, First),
    ("gen_ai.latency.time_in_model_inference", Means::Inference, First),
    // SGLang's root span.
    ("rid", Means::RequestId, Vendor),
    ("gen_ai.request.id", Means::RequestId, First),
    ("gen_ai.response.id", Means::ResponseId, First),
    ("gen_ai.response.finish_reasons", Means::Finish, First),
    ("traceloop.association.properties.session_id", Means::Session, Vendor),
    ("session.id", Means::Session, First),
    ("gen_ai.conversation.id", Means::Session, Third),
    ("traceloop.association.properties.user_id", Means::User, Vendor),
    ("enduser.id", Means::User, First),
    ("user.id", Means::User, Second),
    ("gen_ai.agent.name", Means::Agent, Second),
    ("traceloop.workflow.name", Means::Workflow, Vendor),
    ("gen_ai.workflow.name", Means::Workflow, Third),
    ("gen_ai.prompt.name", Means::PromptName, Third),
    ("gen_ai.prompt.version", Means::PromptVersion, Third),
    ("gen_ai.openai.request.service_tier", Means::Tier, First),
    ("gen_ai.openai.response.service_tier", Means::Tier, Second),
    ("openai.request.service_tier", Means::Tier, Second),
    ("openai.response.service_tier", Means::Tier, Third),
    ("gen_ai.tool.name", Means::Tool, Second),
    ("error.type", Means::Error, First),
    ("http.status_code", Means::Http, First),
    ("http.response.status_code", Means::Http, Second),
    ("net.peer.name", Means::Server, Vendor),
    ("server.address", Means::Server, First),
    ("cloud.region", Means::Region, First),
    ("gen_ai.evaluation.name", Means::EvaluationName, Third),
    ("gen_ai.evaluation.score.value", Means::EvaluationScore, Third),
    ("gen_ai.evaluation.score.label", Means::EvaluationLabel, Third),
];

/// The attribute that means this, by its latest name that says something.
pub(super) fn find(attributes: &Value, means: Means) -> Option<(&'static str, &Value)> {
    let named = ALIASES.iter().filter(|(_, meaning, _)| *meaning == means);
    let said = named.filter_map(|&(name, _, generation)| {
        let value = dig(attributes, name).filter(|value| !is_nothing(value))?;
        Some((generation, name, value))
    });
    said.max_by_key(|(generation, ..)| *generation).map(|(_, name, value)| (name, value))
}

/// An attribute by its dotted name, whether its parts are one key or keys within keys.
pub(super) fn dig<'a>(attributes: &'a Value, name: &str) -> Option<&'a Value> {
    if let Some(value) = attributes.get(name) {
        return Some(value);
    }
    name.match_indices('.').find_map(|(dot, _)| {
        let inner = attributes.get(&name[..dot]).filter(|inner| inner.is_object())?;
        dig(inner, &name[dot + 1..])
    })
}
