//! Helicone: rows of its table `request_response_rmt`, and what its API answers about requests.
//!
//! **Prompts.** Read from `valhalla/jawn/src/lib/handlers` and `packages/cost/usage`: where Helicone knows a provider's
//! usage, `prompt_tokens` is without cached tokens and `completion_tokens` without reasoning, whoever served it; rows of that
//! age have a column `reasoning_tokens`. Older rows pass on what the provider wrote: Anthropic's and Bedrock's prompts are
//! without cached tokens, those of others include them unless there are more cached tokens than prompt.
//!
//! **Absent is not zero.** The table has no nulls: zero stands for no usage, no first token and no status, and all tokens of
//! an answer from Helicone's own cache are zero. Such zeros are unknown here. A zero of cached tokens beside a prompt is taken
//! at its word.
//!
//! The table keeps milliseconds and billionths of a dollar; the API answers milliseconds and dollars.

use serde_json::Value;

use super::{
    Convention, Counts, at, ending, flag_of, has_columns, has_keys, http_of, inside, is_nothing,
    lasted, moment, must, object_of, real, row_at, scalar, text, tokens,
};
use crate::format::{Heading, Json, Record, Table};
use crate::page::{Page, Wrong};
use crate::row::{OutcomeRow, Row};

pub(super) fn open(_file: &str, first: &Value) -> Option<Box<dyn Json>> {
    is_ours(first).then(|| Box::new(Helicone { columns: Vec::new() }) as Box<dyn Json>)
}

const KEYS: &[&str] = &["request_id", "request_created_at", "prompt_tokens"];

pub(super) fn is_ours(first: &Value) -> bool {
    has_keys(first, KEYS)
}

pub(super) fn open_table(heading: &Heading<'_>) -> Option<Box<dyn Table>> {
    let ours = has_columns(heading, KEYS);
    ours.then(|| Box::new(Helicone { columns: heading.columns.to_vec() }) as Box<dyn Table>)
}

struct Helicone {
    columns: Vec<String>,
}

impl Json for Helicone {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        take(line, text, value, value.get("reasoning_tokens").is_some(), page);
    }
}

impl Table for Helicone {
    fn record(&self, record: &Record<'_>, page: &mut Page) {
        let recent = self.columns.iter().any(|column| column == "reasoning_tokens");
        take(record.line, record.text(), &object_of(&self.columns, record), recent, page);
    }
}

fn take(line: u64, text: &str, value: &Value, recent: bool, page: &mut Page) {
    if !value.is_object() {
        return page.reject(line, text, &Wrong::shape("is not a request of Helicone"));
    }
    let row = row(value, recent, &mut page.origin.zoned);
    let task = row.as_ref().ok().and_then(|row| Some((row.task_id.clone()?, row.ts_arrival)));
    page.request(line, text, row);
    let Some((task, at)) = task else { return };
    let scores = inside(value.get("scores").unwrap_or(&Value::Null)).into_owned();
    for (name, score) in scores.as_object().into_iter().flatten() {
        // The API wraps what the table does not.
        let score = score.get("value").unwrap_or(score);
        if let Some(value) = scalar(score).and_then(|score| score.parse().ok()) {
            let outcome = OutcomeRow {
                task_id: Some(task.clone()),
                value: Some(value),
                label: Some(name.clone()),
                ts: at,
                ..OutcomeRow::default()
            };
            page.outcome(line, text, Ok(outcome));
        } else if let Some(success) = flag_of(score) {
            let outcome = OutcomeRow {
                task_id: Some(task.clone()),
                success: Some(success),
                label: Some(name.clone()),
                ts: at,
                ..OutcomeRow::default()
            };
            page.outcome(line, text, Ok(outcome));
        }
    }
}

fn row(value: &Value, recent: bool, zoned: &mut Option<bool>) -> Result<Row, Wrong> {
    let start = must(moment(value, &["request_created_at"], zoned)?, "request_created_at")?;
    let end = moment(value, &["response_created_at"], zoned)?;
    let properties = inside(at(value, &["properties"]));
    let properties = if properties.is_object() {
        properties
    } else {
        inside(at(value, &["request_properties"]))
    };
    let mut row = row_at(Some(start));
    row.request_id = text(value, &["request_id"]);
    row.session_id = text(&properties, &["Helicone-Session-Id", "Session-Id", "session_id"]);
    row.task_id = row.session_id.clone().or_else(|| row.request_id.clone());
    row.provider = text(value, &["provider"]);
    row.model = text(value, &["request_model", "model"]);
    row.model_version = text(value, &["response_model", "model"]);
    row.route = text(value, &["target_url"]);
    row.tenant = text(value, &["organization_id"]).filter(|id| !is_no_id(id));
    row.user = text(value, &["user_id", "request_user_id", "helicone_user"]);
    row.feature = text(
        &properties,
        &["Feature", "feature", "App", "app", "Helicone-Session-Name", "Session-Name"],
    );
    row.prompt_version = text(value, &["prompt_version"]).or_else(|| text(value, &["prompt_id"]));
    let e2e = match real(value, &["latency", "delay_ms"])? {
        Some(milliseconds) => Some(milliseconds / 1e3),
        None => end.map(|end| lasted("response_created_at", start, end)).transpose()?,
    };
    row.e2e_s = e2e;
    row.ttft_s = real(value, &["time_to_first_token"])?.filter(|ms| *ms > 0.0).map(|ms| ms / 1e3);
    // Dollars where the API has been asked, billionths of them where the table was.
    let asked = value.get("delay_ms").is_some() || value.get("response_status").is_some();
    row.cost_usd = real(value, &["cost"])?.map(|cost| if asked { cost } else { cost / 1e9 });
    row.cost_source = row.cost_usd.map(|_| "helicone".to_owned());
    ended(value, &mut row);
    let hit = text(value, &["cache_reference_id"]).is_some_and(|id| !is_no_id(&id));
    row.response_cached = value.get("cache_reference_id").map(|_| hit);
    counts(value, recent, hit, &mut row)?;
    Ok(row)
}

/// What the table writes for no name.
fn is_no_id(id: &str) -> bool {
    id.bytes().all(|byte| matches!(byte, b'0' | b'-'))
}

fn ended(value: &Value, row: &mut Row) {
    let names = ["status", "response_status"];
    let Some(status) = names.iter().find_map(|name| value.get(name)).filter(|it| !is_nothing(it))
    else {
        return;
    };
    row.http_status = http_of(status);
    let own = scalar(status).and_then(|status| status.parse::<i64>().ok());
    row.status = match (row.http_status, own) {
        (Some(http), _) => Some(ending(http)),
        // Helicone's own: it saw the client leave.
        (None, Some(-3)) => Some("cancelled"),
        (None, Some(0) | None) => None,
        (None, Some(_)) => Some("failed"),
    }
    .map(str::to_owned);
}

fn counts(value: &Value, recent: bool, hit: bool, row: &mut Row) -> Result<(), Wrong> {
    let mut counts = Counts {
        prompt: tokens(value, &["prompt_tokens"])?,
        cache_read: tokens(value, &["prompt_cache_read_tokens"])?,
        cache_write: tokens(value, &["prompt_cache_write_tokens"])?,
        output: tokens(value, &["completion_tokens"])?,
        reasoning: tokens(value, &["reasoning_tokens"])?,
        total: None,
    };
    let zero = |part: Option<u32>| part.unwrap_or(0) == 0;
    let nothing = [counts.prompt, counts.cache_read, counts.cache_write, counts.output];
    if hit || nothing.into_iter().all(zero) {
        return Ok(());
    }
    // A call that was nothing but reasoning is logged with all of its output.
    if let (Some(output), Some(reasoning)) = (counts.output, counts.reasoning)
        && recent
        && output != reasoning
    {
        counts.output = output.checked_add(reasoning);
    }
    let named = |text: &Option<String>, words: &[&str]| {
        let text = text.as_deref().unwrap_or_default().to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    let apart = named(&row.provider, &["anthropic", "aws", "bedrock"])
        || named(&row.model, &["claude", "anthropic"]);
    let convention = if recent || apart { Convention::Exclusive } else { Convention::Unsaid };
    counts.settle(convention, "prompt_tokens", row)
}
