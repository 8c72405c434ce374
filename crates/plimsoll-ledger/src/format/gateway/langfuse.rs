//! Langfuse: exports of observations and of scores, in the words of its API (`startTime`) or of its tables (`start_time`).
//!
//! Observations of type `GENERATION` and `EMBEDDING` are requests; others are passed over. Scores are outcomes of the trace
//! that they judge, whether they stand alone, in an observation, or in a trace beside its observations.
//!
//! **Prompts.** Keys of `usageDetails` are free. Langfuse itself adds up keys that begin with `input` (its
//! `reduceUsageOrCostDetails`), and takes cached tokens out of `input` where it understands a provider's usage, so parts are
//! apart unless `total` says that they are not: it is `input` and `output` without the rest. Cached tokens under other names,
//! `cache_read_input_tokens`, are Anthropic's own and apart, or LiteLLM's and a part: again `total` tells, and without it they
//! are apart. The same goes for `output`. **Absent is not zero:** without details, usage of zero is what Langfuse writes for
//! none.

use serde_json::{Map, Value};

use super::{
    Convention, Counts, at, count, failure, has_columns, inside, is_nothing, lasted, limit_of,
    moment, must, named, number, object_of, otel, real, row_at, text, text_of, tokens,
};
use crate::format::{Heading, Json, Record, Table};
use crate::page::{Page, Wrong};
use crate::reject::Why;
use crate::row::{OutcomeRow, Row};
use crate::value::real_in;

pub(super) fn open(_file: &str, first: &Value) -> Option<Box<dyn Json>> {
    is_ours(first).then(|| Box::new(Langfuse { columns: Vec::new() }) as Box<dyn Json>)
}

pub(super) fn is_ours(first: &Value) -> bool {
    let of_pages = |name| children(first, name).next().is_some_and(|inner| kind(inner).is_some());
    kind(first).is_some() || of_pages("data") || of_pages("observations")
}

fn children<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

enum Kind<'a> {
    Observation(&'a str),
    Score,
}

const TRACES: &[&str] = &["traceId", "trace_id"];

fn kind(value: &Value) -> Option<Kind<'_>> {
    if !TRACES.iter().any(|name| value.get(name).is_some()) || value.get("attributes").is_some() {
        return None;
    }
    let upper = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase());
    if let Some(kind) = value.get("type").and_then(Value::as_str).filter(upper) {
        return Some(Kind::Observation(kind));
    }
    let data = value.get("dataType").or_else(|| value.get("data_type")).and_then(Value::as_str);
    let score = matches!(data, Some("NUMERIC" | "CATEGORICAL" | "BOOLEAN"));
    (score && value.get("name").is_some()).then_some(Kind::Score)
}

pub(super) fn open_table(heading: &Heading<'_>) -> Option<Box<dyn Table>> {
    let ours = has_columns(heading, &["id", "type", "startTime"])
        || has_columns(heading, &["id", "type", "start_time", "trace_id"]);
    ours.then(|| Box::new(Langfuse { columns: heading.columns.to_vec() }) as Box<dyn Table>)
}

struct Langfuse {
    columns: Vec<String>,
}

impl Json for Langfuse {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        let mut nested = false;
        for name in ["data", "observations"] {
            for inner in children(value, name) {
                nested = true;
                take(line, &inner.to_string(), inner, page);
            }
        }
        if nested {
            scores(line, text, value, None, page);
        } else {
            take(line, text, value, page);
        }
    }
}

impl Table for Langfuse {
    fn record(&self, record: &Record<'_>, page: &mut Page) {
        take(record.line, record.text(), &object_of(&self.columns, record), page);
    }
}

fn take(line: u64, text: &str, value: &Value, page: &mut Page) {
    match kind(value) {
        Some(Kind::Observation("GENERATION" | "EMBEDDING")) => {
            let row = row(value, &mut page.origin.zoned);
            let task = row.as_ref().ok().and_then(|row| row.task_id.clone());
            page.request(line, text, row);
            scores(line, text, value, task, page);
        }
        Some(Kind::Observation(kind)) => page.other(format!("observation of type {kind}")),
        Some(Kind::Score) => {
            let outcome = score(value, None, &mut page.origin.zoned);
            page.outcome(line, text, outcome);
        }
        None => page.reject(line, text, &Wrong::shape("is neither an observation nor a score")),
    }
}

/// Scores that something carries; those that are but names of scores say nothing.
fn scores(line: u64, text: &str, value: &Value, task: Option<String>, page: &mut Page) {
    for inner in children(value, "scores").filter(|inner| inner.is_object()) {
        let outcome = score(inner, task.clone(), &mut page.origin.zoned);
        page.outcome(line, text, outcome);
    }
}

fn score(
    value: &Value,
    task: Option<String>,
    zoned: &mut Option<bool>,
) -> Result<OutcomeRow, Wrong> {
    // A request of a session serves the session, and only a score of the session judges that.
    let own = text(value, &["sessionId", "session_id"]).or_else(|| text(value, TRACES));
    let task = task.or(own).ok_or_else(|| Wrong::new("traceId", Why::Missing))?;
    let (field, digits) = number("value".into(), at(value, &["value"]))?;
    let kind = text(value, &["dataType", "data_type"]);
    let label = text(value, &["stringValue", "string_value"]);
    // Older versions write a category where others write a number.
    let category = kind.as_deref() == Some("CATEGORICAL");
    let number = if category { None } else { real_in(field, digits.as_deref())? };
    let success = match kind.as_deref() {
        Some("BOOLEAN") => number.map(|number| number != 0.0),
        _ => label.as_deref().and_then(otel::verdict),
    };
    Ok(OutcomeRow {
        task_id: Some(task),
        success,
        value: number,
        label: text(value, &["name"]).or(label),
        ts: moment(value, &["timestamp", "createdAt", "created_at"], zoned)?,
        ..OutcomeRow::default()
    })
}

fn row(value: &Value, zoned: &mut Option<bool>) -> Result<Row, Wrong> {
    let start = must(moment(value, &["startTime", "start_time"], zoned)?, "startTime")?;
    let end = moment(value, &["endTime", "end_time"], zoned)?;
    let firsts = ["completionStartTime", "completion_start_time"];
    let first = moment(value, &firsts, zoned)?;
    let parameters = inside(either(value, "modelParameters", "model_parameters"));
    let mut row = row_at(Some(start));
    row.request_id = text(value, &["id"]);
    row.trace_id = text(value, TRACES);
    row.session_id = text(value, &["sessionId", "session_id"]);
    row.task_id = row.session_id.clone().or_else(|| row.trace_id.clone());
    row.route = text(value, &["environment"]);
    row.route_version = text(value, &["release", "version"]);
    row.model = text(value, &["model", "providedModelName", "provided_model_name"]);
    row.model_version = row.model.clone();
    row.prompt_version = {
        let name = text(value, &["promptName", "prompt_name"]);
        let version = text(value, &["promptVersion", "prompt_version"]);
        match (name, version) {
            (Some(name), Some(version)) => Some(format!("{name}:{version}")),
            (name, version) => name.or(version),
        }
    };
    row.user = text(value, &["userId", "user_id"]);
    row.feature = text(value, &["traceName", "trace_name"]).or_else(|| {
        let tags = inside(at(value, &["tags"]));
        let tags: Vec<String> = tags.as_array().into_iter().flatten().filter_map(text_of).collect();
        if tags.is_empty() { text(value, &["name"]) } else { Some(tags.join(",")) }
    });
    row.tier = text(value, &["usagePricingTierName", "usage_pricing_tier_name"]);
    row.max_tokens = tokens(&parameters, &["max_tokens", "max_completion_tokens", "maxTokens"])?;
    row.e2e_s =
        end.map(|end| lasted(named(value, &["endTime", "end_time"]), start, end)).transpose()?;
    row.ttft_s = match first {
        Some(first) => Some(lasted(named(value, &firsts), start, first)?),
        // It is made of the moments, so it says something only where they were not exported.
        None if firsts.iter().any(|name| value.get(name).is_some()) => None,
        None => real(value, &["timeToFirstToken", "time_to_first_token"])?,
    };
    let costs = inside(either(value, "costDetails", "cost_details"));
    row.cost_usd = match real(value, &["totalCost", "total_cost", "calculatedTotalCost"])? {
        Some(cost) => Some(cost),
        None => real(&costs, &["total"])?,
    };
    row.cost_source = row.cost_usd.map(|_| "langfuse".to_owned());
    ended(value, &mut row);
    counts(value, &mut row)?;
    Ok(row)
}

/// A field under the name of the API, or that of the table.
fn either<'a>(value: &'a Value, one: &str, other: &str) -> &'a Value {
    let first = at(value, &[one]);
    if is_nothing(first) { at(value, &[other]) } else { first }
}

fn ended(value: &Value, row: &mut Row) {
    let message = text(value, &["statusMessage", "status_message"]);
    if text(value, &["level"]).as_deref() != Some("ERROR") {
        row.status = Some("ok".to_owned());
        return;
    }
    let said = message.as_deref().unwrap_or_default();
    let words = said.split(|c: char| !c.is_ascii_alphanumeric());
    let ending = if words.clone().any(|word| word == "429") { "limited" } else { failure(said) };
    if ending == "limited" {
        row.http_status = words.clone().any(|word| word == "429").then_some(429);
        row.limit_dimension = limit_of(said).map(str::to_owned);
    }
    row.status = Some(ending.to_owned());
    row.error = message;
}

fn counts(value: &Value, row: &mut Row) -> Result<(), Wrong> {
    let details = inside(either(value, "usageDetails", "usage_details"));
    if let Some(details) = details.as_object().filter(|details| !details.is_empty()) {
        return detailed(details, row);
    }
    let usage = inside(at(value, &["usage"]));
    let mut counts = Counts {
        prompt: match tokens(value, &["inputUsage", "promptTokens", "prompt_tokens"])? {
            Some(prompt) => Some(prompt),
            None => tokens(&usage, &["input", "promptTokens"])?,
        },
        output: match tokens(value, &["outputUsage", "completionTokens", "completion_tokens"])? {
            Some(output) => Some(output),
            None => tokens(&usage, &["output", "completionTokens"])?,
        },
        ..Counts::default()
    };
    let zero = |part: Option<u32>| part.unwrap_or(0) == 0;
    if zero(counts.prompt) && zero(counts.output) {
        counts = Counts::default();
    }
    counts.settle(Convention::Inclusive, "inputUsage", row)
}

/// What a key of the details counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Input,
    Output,
    /// More of the input: read from a cache, written to one, or neither.
    Read,
    Write,
    MoreInput,
    /// More of the output: reasoning, or not.
    Reasoning,
    MoreOutput,
    Total,
    Other,
}

impl Part {
    fn of(key: &str) -> Self {
        let key = key.to_ascii_lowercase();
        let says = |word: &str| key.contains(word);
        match key.as_str() {
            "input" | "input_tokens" | "prompt_tokens" => Self::Input,
            "output" | "output_tokens" | "completion_tokens" => Self::Output,
            "total" | "total_tokens" => Self::Total,
            _ if says("cache") && (says("creat") || says("write")) => Self::Write,
            _ if says("cache") && !says("output") => Self::Read,
            _ if says("reasoning") || says("thinking") => Self::Reasoning,
            _ if key.starts_with("input") => Self::MoreInput,
            _ if key.starts_with("output") => Self::MoreOutput,
            _ => Self::Other,
        }
    }
}

fn detailed(details: &Map<String, Value>, row: &mut Row) -> Result<(), Wrong> {
    let mut sums: [Option<u64>; 8] = [None; 8];
    for (key, value) in details {
        let part = Part::of(key);
        if part == Part::Other {
            continue;
        }
        if let Some(tokens) = count(format!("usageDetails.{key}"), value)? {
            let sum = &mut sums[part as usize];
            *sum = Some(sum.unwrap_or(0) + u64::from(tokens));
        }
    }
    let sum = |part: Part| sums[part as usize];
    let all = |parts: &[Part]| parts.iter().filter_map(|part| sum(*part)).sum::<u64>();
    let (inputs, outputs) =
        ([Part::Read, Part::Write, Part::MoreInput], [Part::Reasoning, Part::MoreOutput]);
    let (input, output) = (sum(Part::Input), sum(Part::Output));
    let bare = all(&[Part::Input, Part::Output]);
    // Which of the details are parts of `input` and `output`, and which stand beside them.
    let total = sum(Part::Total);
    let (more_input, more_output) = (all(&inputs), all(&outputs));
    let (input_apart, output_apart) = match total {
        Some(total) if total == bare + more_input + more_output => (true, true),
        Some(total) if total == bare => (false, false),
        Some(total) if total == bare + more_input => (true, false),
        Some(total) if total == bare + more_output => (false, true),
        _ => (true, true),
    };
    let whole = |own: Option<u64>, more: u64, apart: bool, parts: &[Part]| {
        let known = own.is_some() || parts.iter().any(|part| sum(*part).is_some());
        known.then(|| own.unwrap_or(0) + if apart || own.is_none() { more } else { 0 })
    };
    let narrow = |field: &'static str, tokens: Option<u64>| {
        let absurd = |tokens: u64| Wrong::new(field, Why::Absurd(tokens.to_string()));
        tokens.map(|tokens| u32::try_from(tokens).map_err(|_| absurd(tokens))).transpose()
    };
    row.prompt_tokens =
        narrow("usageDetails.input", whole(input, more_input, input_apart, &inputs))?;
    row.output_tokens =
        narrow("usageDetails.output", whole(output, more_output, output_apart, &outputs))?;
    row.cache_read_tokens = narrow("usageDetails.input", sum(Part::Read))?;
    row.cache_write_tokens = narrow("usageDetails.input", sum(Part::Write))?;
    row.reasoning_tokens = narrow("usageDetails.output", sum(Part::Reasoning))?;
    let cached = sum(Part::Read).is_some() || sum(Part::Write).is_some();
    let convention = if cached && input_apart { "exclusive" } else { "inclusive" };
    row.convention = row.prompt_tokens.map(|_| convention.to_owned());
    Ok(())
}
