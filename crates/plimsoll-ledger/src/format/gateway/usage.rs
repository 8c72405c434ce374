//! Usage objects of providers: the answer itself, or a wrapper of one's own around it.
//!
//! ```json
//! {"timestamp": "2026-01-05T09:00:00Z", "model": "m", "usage": {"prompt_tokens": 12, "completion_tokens": 3}}
//! ```
//!
//! Known are OpenAI's chat and Responses (also in lines of its batches), Anthropic's messages and Bedrock's Converse, told by
//! the names in `usage`. A wrapper may say when (`timestamp`, `ts`, `time`, `created_at`, `created`), who (`user`, `tenant`,
//! `feature`, `session_id`, `trace_id`, `task_id`) and how long, with the unit in the name (`latency_ms`, `ttft_s`).
//!
//! **Prompts.** OpenAI's include cached tokens. Anthropic's and Bedrock's do not, and are summed. `input_tokens` alone says
//! nothing about caches and nothing is added to it.

use serde_json::Value;

use super::{
    Convention, Counts, at, count, ending, envoy, failure, flag, has_keys, helicone, http_of,
    inside, is_nothing, langfuse, limit_of, litellm, moment, otel, pick, real, row_at, text,
    text_of, tokens,
};
use crate::format::Json;
use crate::page::{Page, Wrong};
use crate::row::Row;

pub(super) fn open(_file: &str, first: &Value) -> Option<Box<dyn Json>> {
    is_ours(first).then(|| Box::new(Usage) as Box<dyn Json>)
}

fn is_ours(first: &Value) -> bool {
    let others =
        [otel::is_ours, litellm::is_ours, langfuse::is_ours, helicone::is_ours, envoy::is_ours];
    let usage = answer(first).get("usage").or_else(|| first.get("usage"));
    let known = usage.is_some_and(|usage| Dialect::of(usage, first).is_some());
    // A call that failed has none.
    let failed = || has_keys(first, &["model", "error"]) && pick(first, TIMES).is_some();
    (known || failed()) && !others.iter().any(|is_theirs| is_theirs(first))
}

/// The provider's own object within a wrapper.
fn answer(value: &Value) -> &Value {
    let inner = ["response", "body", "completion", "result"];
    let found = inner.iter().filter_map(|name| value.get(name)).find_map(|inner| {
        let body = inner.get("body").unwrap_or(inner);
        body.get("usage").is_some().then_some(body)
    });
    found.unwrap_or(value)
}

/// Whose words a usage object uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Chat,
    Responses,
    Anthropic,
    Converse,
    /// `input_tokens` and `output_tokens`, and no more.
    Plain,
}

impl Dialect {
    fn of(usage: &Value, record: &Value) -> Option<Self> {
        let has = |names: &[&str]| names.iter().any(|name| usage.get(name).is_some());
        if has(&["inputTokens", "outputTokens"]) {
            return Some(Self::Converse);
        }
        if has(&["prompt_tokens", "completion_tokens"]) {
            return Some(Self::Chat);
        }
        if !has(&["input_tokens", "output_tokens"]) {
            return None;
        }
        let caches = ["cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"];
        if has(&caches) {
            return Some(Self::Anthropic);
        }
        if has(&["input_tokens_details", "total_tokens"]) {
            return Some(Self::Responses);
        }
        let answer = answer(record);
        let message = answer.get("type").and_then(Value::as_str) == Some("message");
        let claude = |name: String| name.to_ascii_lowercase().contains("claude");
        let named = text(answer, &["model"]).or_else(|| text(record, &["model"]));
        let theirs = message || named.is_some_and(claude);
        Some(if theirs { Self::Anthropic } else { Self::Plain })
    }
}

struct Usage;

impl Json for Usage {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        if !value.is_object() {
            return page.reject(line, text, &Wrong::shape("is not an answer with `usage`"));
        }
        let row = row(value, &mut page.origin.zoned);
        page.request(line, text, row);
    }
}

const TIMES: &[&str] = &[
    "timestamp",
    "ts",
    "time",
    "start_time",
    "startTime",
    "created_at",
    "createdAt",
    "created",
    "request_time",
];

fn row(value: &Value, zoned: &mut Option<bool>) -> Result<Row, Wrong> {
    let answer = answer(value);
    let arrival = match moment(value, TIMES, zoned)? {
        Some(arrival) => Some(arrival),
        None => moment(answer, &["created_at", "created"], zoned)?,
    };
    let both = |names: &[&'static str]| text(value, names).or_else(|| text(answer, names));
    let metadata = inside(at(value, &["metadata"]));
    let said = |names: &[&'static str]| text(value, names).or_else(|| text(&metadata, names));
    let mut row = row_at(arrival);
    row.request_id = text(value, &["request_id", "requestId"])
        .or_else(|| text(answer, &["id"]))
        .or_else(|| text(value, &["id"]));
    row.trace_id = said(&["trace_id", "traceId"]);
    row.session_id = said(&["session_id", "sessionId", "conversation_id"]);
    row.task_id = said(&["task_id", "taskId"])
        .or_else(|| row.session_id.clone())
        .or_else(|| row.trace_id.clone());
    row.route = said(&["route", "deployment", "endpoint"]);
    row.provider = said(&["provider"]);
    row.model = both(&["model", "modelId", "model_id"]);
    row.model_version = text(answer, &["model"]);
    row.tenant = said(&["tenant", "team", "team_id", "organization", "organization_id"]);
    row.user = said(&["user", "user_id", "userId"]);
    row.feature = said(&["feature", "tag", "agent"]);
    row.region = said(&["region"]);
    row.tier = both(&["service_tier"]).or_else(|| text(at(answer, &["usage"]), &["service_tier"]));
    row.stream = flag(value, &["stream"]);
    let most = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    row.max_tokens = match tokens(value, &most)? {
        Some(most) => Some(most),
        None => tokens(answer, &most)?,
    };
    row.finish_reason = finish(answer);
    row.e2e_s = seconds(
        value,
        &["latency_s", "duration_s", "e2e_s"],
        &["latency_ms", "duration_ms", "e2e_ms"],
    )?;
    if row.e2e_s.is_none() {
        row.e2e_s = real(at(answer, &["metrics"]), &["latencyMs"])?.map(|ms| ms / 1e3);
    }
    row.ttft_s = seconds(
        value,
        &["ttft_s", "time_to_first_token_s"],
        &["ttft_ms", "time_to_first_token_ms"],
    )?;
    row.cost_usd = real(value, &["cost_usd"])?;
    row.cost_source = row.cost_usd.map(|_| "log".to_owned());
    ended(value, answer, &mut row);
    counts(value, answer, &mut row)?;
    Ok(row)
}

fn seconds(
    value: &Value,
    seconds: &[&'static str],
    milliseconds: &[&'static str],
) -> Result<Option<f64>, Wrong> {
    match real(value, seconds)? {
        Some(seconds) => Ok(Some(seconds)),
        None => Ok(real(value, milliseconds)?.map(|milliseconds| milliseconds / 1e3)),
    }
}

fn finish(answer: &Value) -> Option<String> {
    let choice = answer.get("choices").and_then(|choices| choices.get(0));
    choice
        .and_then(|choice| text(choice, &["finish_reason"]))
        .or_else(|| text(answer, &["stop_reason", "stopReason", "finish_reason"]))
        .or_else(|| text(at(answer, &["incomplete_details"]), &["reason"]))
}

fn ended(value: &Value, answer: &Value, row: &mut Row) {
    let codes = ["http_status", "status_code", "status"];
    let code = |value: &Value| codes.iter().find_map(|name| value.get(name).and_then(http_of));
    row.http_status = code(value).or_else(|| code(at(value, &["response"])));
    let error = [value, answer].into_iter().map(|it| at(it, &["error"])).find(|it| !is_nothing(it));
    let error = error.map(|error| {
        text(error, &["code", "type", "message"]).or_else(|| text_of(error)).unwrap_or_default()
    });
    // Of OpenAI's Responses; others say `ok` or `error`.
    let said = text(answer, &["status"]).or_else(|| text(value, &["status"]));
    let status = match (row.http_status.map(ending), said.as_deref(), &error) {
        (Some(ending), ..) if ending != "ok" => ending,
        (_, _, Some(error)) => failure(error),
        (_, Some("cancelled" | "canceled"), _) => "cancelled",
        (_, Some("failed" | "error" | "failure"), _) => "failed",
        _ => "ok",
    };
    row.status = Some(status.to_owned());
    if status != "ok" {
        let message = text(at(value, &["error"]), &["message"]);
        if status == "limited" {
            row.limit_dimension = message.as_deref().and_then(limit_of).map(str::to_owned);
        }
        row.error = error.filter(|error| !error.is_empty()).or(said);
    }
}

fn counts(value: &Value, answer: &Value, row: &mut Row) -> Result<(), Wrong> {
    let usage = at(answer, &["usage"]);
    let Some(dialect) = Dialect::of(usage, value) else {
        // Nothing was counted, which is to be expected only of what failed.
        let failed = row.status.as_deref() != Some("ok");
        return if failed { Ok(()) } else { Err(Wrong::new("usage", crate::reject::Why::Missing)) };
    };
    let inner = |path: &[&str], field: &'static str| count(field, at(usage, path));
    let (counts, convention, field) = match dialect {
        Dialect::Chat => {
            let counts = Counts {
                prompt: tokens(usage, &["prompt_tokens"])?,
                cache_read: inner(
                    &["prompt_tokens_details", "cached_tokens"],
                    "usage.prompt_tokens_details.cached_tokens",
                )?,
                cache_write: inner(
                    &["prompt_tokens_details", "cache_write_tokens"],
                    "usage.prompt_tokens_details.cache_write_tokens",
                )?,
                output: tokens(usage, &["completion_tokens"])?,
                reasoning: inner(
                    &["completion_tokens_details", "reasoning_tokens"],
                    "usage.completion_tokens_details.reasoning_tokens",
                )?,
                total: tokens(usage, &["total_tokens"])?,
            };
            (counts, Convention::Unsaid, "prompt_tokens")
        }
        Dialect::Responses | Dialect::Plain => {
            let counts = Counts {
                prompt: tokens(usage, &["input_tokens"])?,
                cache_read: inner(
                    &["input_tokens_details", "cached_tokens"],
                    "usage.input_tokens_details.cached_tokens",
                )?,
                cache_write: None,
                output: tokens(usage, &["output_tokens"])?,
                reasoning: inner(
                    &["output_tokens_details", "reasoning_tokens"],
                    "usage.output_tokens_details.reasoning_tokens",
                )?,
                total: tokens(usage, &["total_tokens"])?,
            };
            (counts, Convention::Unsaid, "input_tokens")
        }
        Dialect::Anthropic => {
            let reasoning = pick(
                at(usage, &["output_tokens_details"]),
                &["thinking_tokens", "reasoning_tokens"],
            );
            let counts = Counts {
                prompt: tokens(usage, &["input_tokens"])?,
                cache_read: tokens(usage, &["cache_read_input_tokens"])?,
                cache_write: match tokens(usage, &["cache_creation_input_tokens"])? {
                    Some(written) => Some(written),
                    None => by_lifetime(at(usage, &["cache_creation"]))?,
                },
                output: tokens(usage, &["output_tokens"])?,
                reasoning: reasoning.map_or(Ok(None), |(name, value)| count(name, value))?,
                total: None,
            };
            (counts, Convention::Exclusive, "input_tokens")
        }
        Dialect::Converse => {
            let counts = Counts {
                prompt: tokens(usage, &["inputTokens"])?,
                cache_read: tokens(usage, &["cacheReadInputTokens", "cacheReadInputTokenCount"])?,
                cache_write: tokens(
                    usage,
                    &["cacheWriteInputTokens", "cacheWriteInputTokenCount"],
                )?,
                output: tokens(usage, &["outputTokens"])?,
                reasoning: None,
                total: None,
            };
            (counts, Convention::Exclusive, "inputTokens")
        }
    };
    counts.settle(convention, field, row)
}

/// What was written to caches, by how long they keep it.
fn by_lifetime(written: &Value) -> Result<Option<u32>, Wrong> {
    let short = tokens(written, &["ephemeral_5m_input_tokens"])?;
    let long = tokens(written, &["ephemeral_1h_input_tokens"])?;
    Ok(match (short, long) {
        (None, None) => None,
        (short, long) => short.unwrap_or(0).checked_add(long.unwrap_or(0)),
    })
}
