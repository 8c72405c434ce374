//! LiteLLM: rows of its table `LiteLLM_SpendLogs`, and `StandardLoggingPayload`, which its callbacks are handed.
//!
//! **Prompts.** LiteLLM translates every provider into OpenAI's usage, so prompts include cached tokens, whoever served
//! them. That has a history, in `litellm/llms/anthropic/chat/transformation.py`: for a while only reads were added for
//! Anthropic, and before that nothing. A row does not say which version wrote it, but may prove it: with more reads than
//! prompt, both are added; with more reads and writes than prompt, the writes are.
//!
//! **Absent is not zero.** Failed calls are logged with zero tokens, which is not known to be true. `cache_hit` is LiteLLM's
//! own cache of whole answers. A first token at the very end is what it writes for calls that were not streamed.

use serde_json::Value;

use super::{
    Convention, Counts, at, count, failure, flag, has_columns, has_keys, http_of, inside, lasted,
    limit_of, moment, must, object_of, real, row_at, scalar, text, text_of, tokens,
};
use crate::format::{Heading, Json, Record, Table};
use crate::page::{Page, Wrong};
use crate::row::Row;

pub(super) fn open(_file: &str, first: &Value) -> Option<Box<dyn Json>> {
    is_ours(first).then(|| Box::new(Lite { columns: Vec::new() }) as Box<dyn Json>)
}

pub(super) fn is_ours(first: &Value) -> bool {
    let first = payload(first);
    let spend = has_keys(first, &["request_id", "spend", "startTime"]);
    let call = has_keys(first, &["call_type", "response_cost", "startTime"]);
    spend || call
}

/// Callbacks may log what they were handed within what they were handed.
fn payload(value: &Value) -> &Value {
    value.get("standard_logging_object").unwrap_or(value)
}

pub(super) fn open_table(heading: &Heading<'_>) -> Option<Box<dyn Table>> {
    let ours = has_columns(heading, &["request_id", "spend", "startTime"]);
    ours.then(|| Box::new(Lite { columns: heading.columns.to_vec() }) as Box<dyn Table>)
}

struct Lite {
    columns: Vec<String>,
}

impl Json for Lite {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        take(line, text, payload(value), page);
    }
}

impl Table for Lite {
    fn record(&self, record: &Record<'_>, page: &mut Page) {
        take(record.line, record.text(), &object_of(&self.columns, record), page);
    }
}

fn take(line: u64, text: &str, value: &Value, page: &mut Page) {
    if !value.is_object() {
        return page.reject(line, text, &Wrong::shape("is not a call of LiteLLM"));
    }
    let kind = value.get("call_type").and_then(Value::as_str).unwrap_or_default();
    if kind.contains("mcp") {
        return page.other("call of an MCP tool");
    }
    let row = row(value, &mut page.origin.zoned);
    page.request(line, text, row);
}

fn row(value: &Value, zoned: &mut Option<bool>) -> Result<Row, Wrong> {
    let start = must(moment(value, &["startTime"], zoned)?, "startTime")?;
    let end = moment(value, &["endTime"], zoned)?;
    let metadata = inside(at(value, &["metadata"]));
    let hidden = inside(at(value, &["hidden_params"]));
    let parameters = inside(at(value, &["model_parameters"]));
    let mut row = row_at(Some(start));
    row.request_id = text(value, &["request_id", "id", "litellm_call_id"]);
    row.trace_id = text(value, &["trace_id"]);
    row.session_id = text(value, &["session_id"]);
    row.task_id = row.session_id.clone().or_else(|| row.trace_id.clone());
    row.route = text(value, &["model_id"])
        .or_else(|| text(&hidden, &["model_id"]))
        .or_else(|| text(value, &["api_base"]));
    row.provider = text(value, &["custom_llm_provider"]);
    row.model = text(value, &["model_group", "model"]);
    row.model_version = text(value, &["model"]);
    row.tenant = text(value, &["team_id", "organization_id"])
        .or_else(|| text(&metadata, &["user_api_key_team_id", "user_api_key_org_id"]));
    row.user = text(value, &["end_user", "user"])
        .or_else(|| text(&metadata, &["user_api_key_end_user_id", "user_api_key_user_id"]));
    row.feature = tags(&inside(at(value, &["request_tags"])));
    row.tier = text(at(&metadata, &["cost_breakdown"]), &["service_tier"])
        .or_else(|| text(at(value, &["cost_breakdown"]), &["service_tier"]));
    row.stream = flag(value, &["stream"]);
    row.max_tokens = tokens(&parameters, &["max_tokens", "max_completion_tokens"])?;
    row.response_cached = flag(value, &["cache_hit"]);
    row.cost_usd = real(value, &["spend", "response_cost"])?;
    row.cost_source = row.cost_usd.map(|_| "litellm".to_owned());
    row.finish_reason = {
        let answer = inside(at(value, &["response"]));
        let choice = answer.get("choices").and_then(|choices| choices.get(0));
        choice.and_then(|choice| text(choice, &["finish_reason"]))
    };
    let retries = metadata.get("attempted_retries").or_else(|| value.get("attempted_retries"));
    if let Some(retries) = retries.map_or(Ok(None), |value| count("attempted_retries", value))? {
        row.attempt = Some(u16::try_from(retries).unwrap_or(u16::MAX).saturating_add(1));
    }
    times(value, start, end, zoned, &mut row)?;
    ended(value, &metadata, &mut row);
    counts(value, &metadata, &hidden, &mut row)?;
    Ok(row)
}

/// Tags that somebody gave; LiteLLM adds the client's name to them.
fn tags(tags: &Value) -> Option<String> {
    let Value::Array(tags) = tags else { return text_of(tags) };
    let given = tags.iter().filter_map(text_of).filter(|tag| !tag.starts_with("User-Agent:"));
    let given: Vec<String> = given.collect();
    (!given.is_empty()).then(|| given.join(","))
}

fn times(
    value: &Value,
    start: i64,
    end: Option<i64>,
    zoned: &mut Option<bool>,
    row: &mut Row,
) -> Result<(), Wrong> {
    let first = moment(value, &["completionStartTime"], zoned)?;
    row.e2e_s = match real(value, &["request_duration_ms"])? {
        Some(milliseconds) => Some(milliseconds / 1e3),
        None => end.map(|end| lasted("endTime", start, end)).transpose()?,
    };
    row.ttft_s = first
        .filter(|first| end != Some(*first))
        .map(|first| lasted("completionStartTime", start, first))
        .transpose()?;
    Ok(())
}

fn ended(value: &Value, metadata: &Value, row: &mut Row) {
    let status = text(value, &["status"]).or_else(|| text(metadata, &["status"]));
    let error = [at(value, &["error_information"]), at(metadata, &["error_information"])]
        .into_iter()
        .find(|error| error.as_object().is_some_and(|error| !error.is_empty()));
    let failed = match status.as_deref() {
        Some("success") => false,
        Some(_) => true,
        None => error.is_some_and(|error| text(error, &["error_code", "error_class"]).is_some()),
    };
    if !failed {
        row.status = Some("ok".to_owned());
        return;
    }
    let nothing = Value::Null;
    let error = error.unwrap_or(&nothing);
    let class = text(error, &["error_class"]);
    let message = text(error, &["error_message"]).or_else(|| text(value, &["error_str"]));
    row.http_status = error.get("error_code").and_then(http_of);
    let by_code = row.http_status.map(super::ending).filter(|ending| *ending == "limited");
    let by_class = || class.as_deref().map_or("failed", failure);
    let ending = by_code.unwrap_or_else(by_class);
    row.status = Some(ending.to_owned());
    if ending == "limited" {
        row.limit_dimension = text(error, &["error_rate_limit_type", "error_rate_limit_category"])
            .or_else(|| message.as_deref().and_then(limit_of).map(str::to_owned));
    }
    row.error = class.or(message);
}

fn counts(value: &Value, metadata: &Value, hidden: &Value, row: &mut Row) -> Result<(), Wrong> {
    let usages = [
        at(metadata, &["additional_usage_values"]),
        at(metadata, &["usage_object"]),
        at(hidden, &["usage_object"]),
    ];
    let find = |path: &[&str]| {
        let found = |usage| at(usage, path);
        usages.into_iter().map(found).find(|found| scalar(found).is_some())
    };
    let read = |paths: &[&[&str]], field: &'static str| {
        let found = paths.iter().find_map(|path| find(path));
        found.map_or(Ok(None), |found| count(field, found))
    };
    let cache_read = read(
        &[&["cache_read_input_tokens"], &["prompt_tokens_details", "cached_tokens"]],
        "cache_read_input_tokens",
    )?;
    let cache_write = read(
        &[
            &["cache_creation_input_tokens"],
            &["prompt_tokens_details", "cache_creation_tokens"],
            &["prompt_tokens_details", "cache_write_tokens"],
        ],
        "cache_creation_input_tokens",
    )?;
    let reasoning =
        read(&[&["completion_tokens_details", "reasoning_tokens"]], "reasoning_tokens")?;
    let mut counts = Counts {
        prompt: tokens(value, &["prompt_tokens"])?,
        cache_read,
        cache_write,
        output: tokens(value, &["completion_tokens"])?,
        reasoning,
        total: None,
    };
    let failed = row.status.as_deref() != Some("ok");
    if failed && counts.prompt.unwrap_or(0) == 0 && counts.output.unwrap_or(0) == 0 {
        counts = Counts::default();
    }
    let of = |part: Option<u32>| u64::from(part.unwrap_or(0));
    let (prompt, reads, writes) = (of(counts.prompt), of(cache_read), of(cache_write));
    if counts.prompt.is_some() && reads <= prompt && reads + writes > prompt {
        // Reads are in it, writes are not.
        counts.cache_read = None;
        counts.settle(Convention::Exclusive, "prompt_tokens", row)?;
        row.cache_read_tokens = cache_read;
        return Ok(());
    }
    counts.settle(Convention::Unsaid, "prompt_tokens", row)
}
