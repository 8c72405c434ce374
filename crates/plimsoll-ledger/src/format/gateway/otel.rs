//! Spans of OpenTelemetry: OTLP JSON, and exports of one span a line.
//!
//! A span is a request where it calls a model. Spans of agents and workflows carry sums over their calls, and a framework
//! opens a span around the client's: both are passed over where they are known for it, lest tokens are counted twice. A
//! call that gives nothing but a name to the one inside it gives that: the conversation, the agent, the user.
//!
//! **Prompts.** The conventions say that cached tokens are part of `input_tokens`, so they are taken for that; where more were
//! cached than the prompt has, or a total has room for both, the instrumentation has passed on Anthropic's or Bedrock's own
//! numbers, and they are summed.
//!
//! **Attempts.** Retries are siblings: spans of one parent for the same model, one after the other, all but the last with an
//! error. They are numbered where one document has them, and named after the last. **Samples.** `ot=th:` of the trace state is
//! honoured: 1 to 14 hexadecimal digits, the first of 56 bits, below which traces were dropped.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::alias::{Means, dig, find};
use super::{
    Convention, Counts, at, count, ending, failure, flag_of, http_of, is_nothing, lasted, limit_of,
    moment, must, named, number, real_value, row_at, scalar, text, text_of,
};
use crate::format::Json;
use crate::page::{Page, Wrong};
use crate::reject::Why;
use crate::row::{OutcomeRow, Row};
use crate::value::real_in;

pub(super) fn open(_file: &str, first: &Value) -> Option<Box<dyn Json>> {
    is_ours(first).then(|| Box::new(Otel) as Box<dyn Json>)
}

pub(super) fn is_ours(first: &Value) -> bool {
    DOCUMENTS.iter().any(|name| first.get(name).is_some_and(Value::is_array)) || is_span(first)
}

const DOCUMENTS: &[&str] =
    &["resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs"];

fn is_span(value: &Value) -> bool {
    let attributes = value.get("attributes");
    attributes.is_some_and(|a| a.is_object() || a.is_array()) && trace_of(value).is_some()
}

fn trace_of(span: &Value) -> Option<String> {
    text(span, &["traceId", "trace_id", "traceID"])
        .or_else(|| text(at(span, &["context"]), &["trace_id", "traceId"]))
}

struct Otel;

impl Json for Otel {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        if !DOCUMENTS.iter().any(|name| value.get(name).is_some()) {
            if trace_of(value).is_none() {
                let wrong = Wrong::shape("is neither a span nor a document of spans");
                return page.reject(line, text, &wrong);
            }
            let resource = attributes(at(value, &["resource"]));
            let scope = scope_of(value);
            return spans(line, Some(text), vec![Span::of(value, &resource, scope)], page);
        }
        let mut resources = Vec::new();
        for part in children(value, &["resourceSpans", "resource_spans", "batches"]) {
            let resource = attributes(at(part, &["resource"]));
            let names = ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"];
            resources.push((resource, children(part, &names).collect::<Vec<_>>()));
        }
        let mut found = Vec::new();
        for (resource, scopes) in &resources {
            for scope in scopes {
                let name = scope_of(scope);
                let inner = children(scope, &["spans"]);
                found.extend(inner.map(|span| Span::of(span, resource, name.clone())));
            }
        }
        spans(line, None, found, page);
        for part in children(value, &["resourceLogs", "resource_logs"]) {
            for scope in children(part, &["scopeLogs", "scope_logs"]) {
                for record in children(scope, &["logRecords", "log_records"]) {
                    log_record(line, record, page);
                }
            }
        }
    }
}

/// The elements of the first of some arrays.
fn children<'a>(value: &'a Value, names: &[&str]) -> impl Iterator<Item = &'a Value> {
    let array = names.iter().find_map(|name| value.get(name).and_then(Value::as_array));
    array.into_iter().flatten()
}

fn scope_of(value: &Value) -> Option<String> {
    let scopes =
        ["scope", "instrumentationScope", "instrumentation_scope", "instrumentationLibrary"];
    scopes.iter().find_map(|scope| text(at(value, &[scope]), &["name"]))
}

/// The attributes of a span, a resource or an event, by name: OTLP writes them as a list of keys and values.
fn attributes(owner: &Value) -> Cow<'_, Value> {
    match at(owner, &["attributes"]) {
        Value::Array(list) => Cow::Owned(Value::Object(pairs(list, 0))),
        other => Cow::Borrowed(other),
    }
}

fn pairs(list: &[Value], depth: u8) -> Map<String, Value> {
    let pair = |pair: &Value| {
        let key = pair.get("key")?.as_str()?.to_owned();
        Some((key, plain(at(pair, &["value"]), depth)))
    };
    list.iter().filter_map(pair).collect()
}

/// A value as OTLP wraps it. Integers are text in OTLP JSON.
fn plain(value: &Value, depth: u8) -> Value {
    // No attribute that is read here is deeper.
    const DEEPEST: u8 = 8;
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else {
        return value.clone();
    };
    let values = || inner.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match kind.as_str() {
        _ if depth > DEEPEST => Value::Null,
        "arrayValue" | "array_value" => {
            values().iter().map(|value| plain(value, depth + 1)).collect()
        }
        "kvlistValue" | "kvlist_value" => Value::Object(pairs(values(), depth + 1)),
        _ => inner.clone(),
    }
}

/// A span, as far as its neighbours need to know it.
struct Span<'a> {
    value: &'a Value,
    attributes: Cow<'a, Value>,
    resource: &'a Value,
    scope: Option<String>,
    name: &'a str,
    trace: Option<String>,
    id: Option<String>,
    parent: Option<String>,
    kind: Kind,
    failed: bool,
}

#[derive(PartialEq, Eq)]
enum Kind {
    Call,
    Tool,
    Other,
}

impl<'a> Span<'a> {
    fn of(value: &'a Value, resource: &'a Value, scope: Option<String>) -> Self {
        let context = at(value, &["context"]);
        let attributes = attributes(value);
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
        let id = text(value, &["spanId", "span_id", "spanID"]);
        let no_parent = |id: &String| id.bytes().all(|byte| byte == b'0');
        let status = at(value, &["status"]);
        let code = ["code", "status_code", "statusCode"].iter().find_map(|key| status.get(key));
        let code = code.or_else(|| value.get("status_code")).unwrap_or(status);
        let code = scalar(code).unwrap_or_default().to_ascii_uppercase();
        let failed = code == "2" || code.ends_with("ERROR");
        Self {
            kind: Kind::of(name, &attributes),
            failed: failed || find(&attributes, Means::Error).is_some(),
            trace: trace_of(value),
            id: id.or_else(|| text(context, &["span_id", "spanId"])),
            parent: text(value, &["parentSpanId", "parent_span_id", "parent_id", "parentId"])
                .filter(|id| !no_parent(id)),
            value,
            attributes,
            resource,
            scope,
            name,
        }
    }

    fn find(&self, means: Means) -> Option<(&'static str, &Value)> {
        find(&self.attributes, means)
    }

    fn text(&self, means: Means) -> Option<String> {
        self.find(means).and_then(|(_, value)| text_of(value))
    }

    fn tokens(&self, means: Means) -> Result<Option<u32>, Wrong> {
        self.find(means).map_or(Ok(None), |(name, value)| count(name, value))
    }

    fn start(&self, zoned: &mut Option<bool>) -> Result<Option<i64>, Wrong> {
        moment(self.value, STARTS, zoned)
    }

    /// OTLP writes zero where it does not know the end.
    fn end(&self, zoned: &mut Option<bool>) -> Result<Option<i64>, Wrong> {
        let zero =
            |name: &&'static str| self.value.get(name).and_then(scalar).as_deref() == Some("0");
        if ENDS.iter().any(zero) { Ok(None) } else { moment(self.value, ENDS, zoned) }
    }
}

const STARTS: &[&str] =
    &["startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time", "start"];
const ENDS: &[&str] = &["endTimeUnixNano", "end_time_unix_nano", "endTime", "end_time", "end"];

impl Kind {
    fn of(name: &str, attributes: &Value) -> Self {
        // What OpenLLMetry calls the spans around its calls.
        if dig(attributes, "traceloop.span.kind").is_some() {
            return Self::Other;
        }
        let operation = find(attributes, Means::Operation).and_then(|(_, value)| scalar(value));
        match operation.as_deref() {
            Some("execute_tool") => return Self::Tool,
            Some(
                "invoke_agent" | "create_agent" | "invoke_workflow" | "plan" | "retrieval"
                | "rerank",
            ) => return Self::Other,
            Some("chat" | "text_completion" | "generate_content" | "embeddings" | "completion") => {
                return Self::Call;
            }
            _ => {}
        }
        let says = |means| find(attributes, means).is_some();
        let counts = says(Means::Prompt) || says(Means::Output);
        let asks = says(Means::Model) && (says(Means::Provider) || operation.is_some());
        if counts || asks || name == "llm_request" { Self::Call } else { Self::Other }
    }
}

/// Takes the spans of one document, or the one of a line. `text` is the line, where they are the same.
fn spans(line: u64, text: Option<&str>, spans: Vec<Span<'_>>, page: &mut Page) {
    let family = Family::of(&spans);
    let attempts = attempts(&spans, &family, &mut page.origin.zoned);
    for (index, span) in spans.iter().enumerate() {
        let text = text.map_or_else(|| Cow::Owned(span.value.to_string()), Cow::Borrowed);
        match span.kind {
            Kind::Call if family.around[index] => page.other("span around another call"),
            Kind::Call => {
                let mut row = row(span, &spans, &family, index, &mut page.origin.zoned);
                if let (Ok(row), Some((attempt, name))) = (&mut row, attempts.get(&index)) {
                    row.attempt = Some(*attempt);
                    row.request_id = name.clone();
                }
                page.request(line, &text, row);
            }
            Kind::Tool => {
                let tool = span.text(Means::Tool).or_else(|| {
                    span.name.strip_prefix("execute_tool").map(|name| name.trim().to_owned())
                });
                page.other(
                    format!("execute_tool {}", tool.unwrap_or_default()).trim_end().to_owned(),
                );
            }
            Kind::Other => page.other("span of another kind"),
        }
        let task = family.inherited(&spans, index, Means::Session).or_else(|| span.trace.clone());
        for event in children(span.value, &["events"]) {
            if event.get("name").and_then(Value::as_str) == Some(EVALUATION) {
                let attributes = attributes(event);
                let names = ["timeUnixNano", "time_unix_nano", "timestamp", "time"];
                let at = moment(event, &names, &mut page.origin.zoned);
                let outcome = at.and_then(|at| evaluation(&attributes, task.clone(), at));
                page.outcome(line, &text, outcome);
            }
        }
    }
}

/// Who is whose parent.
struct Family {
    parents: Vec<Option<usize>>,
    /// Calls with calls inside.
    around: Vec<bool>,
}

impl Family {
    /// More generations than any trace has; a circle has no end.
    const OLDEST: usize = 64;

    fn of(spans: &[Span<'_>]) -> Self {
        let named = spans.iter().enumerate().filter_map(|(index, span)| {
            Some(((span.trace.as_deref(), span.id.as_deref()?), index))
        });
        let named: BTreeMap<_, usize> = named.collect();
        let parent =
            |span: &Span<'_>| named.get(&(span.trace.as_deref(), span.parent.as_deref()?)).copied();
        let parents = spans.iter().map(parent).collect();
        let mut family = Self { parents, around: vec![false; spans.len()] };
        for (index, span) in spans.iter().enumerate() {
            if span.kind == Kind::Call {
                let ancestors: Vec<usize> =
                    family.ancestors(index).filter(|&elder| elder != index).collect();
                for elder in ancestors {
                    let call = spans[elder].kind == Kind::Call;
                    family.around[elder] |= call && same_model(span, &spans[elder]);
                }
            }
        }
        family
    }

    fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parents[index], |&elder| self.parents[elder]).take(Self::OLDEST)
    }

    /// What a span says, or the nearest of its ancestors that does.
    fn inherited(&self, spans: &[Span<'_>], index: usize, means: Means) -> Option<String> {
        let own = spans[index].text(means);
        own.or_else(|| self.ancestors(index).find_map(|elder| spans[elder].text(means)))
    }
}

/// Whether two spans may speak of one call: a chat that embeds its question on the way is two.
fn same_model(one: &Span<'_>, other: &Span<'_>) -> bool {
    let names = |span: &Span<'_>| [span.text(Means::Model), span.text(Means::ModelVersion)];
    let (ones, others) = (names(one), names(other));
    let known = |names: &[Option<String>; 2]| names.iter().any(Option::is_some);
    let shared = ones.iter().flatten().any(|name| others.iter().flatten().any(|it| it == name));
    shared || !known(&ones) || !known(&others)
}

/// Numbers of retries, and the name that they share.
fn attempts(
    spans: &[Span<'_>],
    family: &Family,
    zoned: &mut Option<bool>,
) -> BTreeMap<usize, (u16, Option<String>)> {
    let mut siblings: BTreeMap<_, Vec<(i64, Option<i64>, usize)>> = BTreeMap::new();
    for (index, span) in spans.iter().enumerate() {
        let call = span.kind == Kind::Call && !family.around[index];
        let Some(parent) = span.parent.as_deref().filter(|_| call) else { continue };
        if let (Ok(Some(start)), Ok(end)) = (span.start(zoned), span.end(zoned)) {
            let key = (span.trace.as_deref(), parent, span.text(Means::Model));
            siblings.entry(key).or_default().push((start, end, index));
        }
    }
    let mut attempts = BTreeMap::new();
    for mut tries in siblings.into_values() {
        tries.sort_unstable();
        let Some((&(.., last), earlier)) = tries.split_last() else { continue };
        let in_turn = tries.windows(2).all(|pair| pair[0].1.unwrap_or(pair[0].0) <= pair[1].0);
        if earlier.is_empty() || !in_turn || !earlier.iter().all(|&(.., index)| spans[index].failed)
        {
            continue;
        }
        let name = name_of(&spans[last]);
        for (attempt, &(.., index)) in (1..=u16::MAX).zip(&tries) {
            attempts.insert(index, (attempt, name.clone()));
        }
    }
    attempts
}

fn name_of(span: &Span<'_>) -> Option<String> {
    let own = span.text(Means::ResponseId).or_else(|| span.text(Means::RequestId));
    own.or_else(|| span.id.clone())
}

fn row(
    span: &Span<'_>,
    spans: &[Span<'_>],
    family: &Family,
    index: usize,
    zoned: &mut Option<bool>,
) -> Result<Row, Wrong> {
    let start = must(span.start(zoned)?, "startTimeUnixNano")?;
    let end = span.end(zoned)?;
    let length = end.map(|end| lasted(named(span.value, ENDS), start, end)).transpose()?;
    let mut row = row_at(Some(start));
    row.request_id = name_of(span);
    row.trace_id = span.trace.clone();
    row.session_id = family.inherited(spans, index, Means::Session);
    row.task_id = row.session_id.clone().or_else(|| span.trace.clone());
    row.user = family.inherited(spans, index, Means::User);
    row.feature = [Means::Agent, Means::Workflow, Means::PromptName]
        .into_iter()
        .find_map(|means| family.inherited(spans, index, means));
    let of_resource = |name| dig(span.resource, name).and_then(text_of);
    let engine = span.scope.as_deref().and_then(|scope| {
        ["vllm", "sglang"].into_iter().find(|engine| scope.starts_with(engine)).map(str::to_owned)
    });
    row.route = span.text(Means::Server).or_else(|| {
        let served = engine.is_some() || span.find(Means::EndToEnd).is_some();
        if served { of_resource("service.name") } else { None }
    });
    row.provider = span.text(Means::Provider).or(engine);
    row.model = span.text(Means::Model).or_else(|| span.text(Means::ModelVersion));
    row.model_version = span.text(Means::ModelVersion);
    row.prompt_version = span.text(Means::PromptVersion).or_else(|| span.text(Means::PromptName));
    row.tier = span.text(Means::Tier);
    row.region = span.text(Means::Region).or_else(|| of_resource("cloud.region"));
    row.stream = span.find(Means::Stream).and_then(|(_, value)| flag_of(value));
    row.finish_reason = span.find(Means::Finish).and_then(|(_, value)| match value {
        Value::Array(reasons) => reasons.first().and_then(text_of),
        // Some write the list as text.
        other => text_of(other)
            .map(|text| text.trim_matches(['[', ']', '"', '\'', '(', ')', ',']).to_owned()),
    });
    row.sample_weight = weight(span.value);
    counts(&span.attributes, &mut row)?;
    row.max_tokens = span.tokens(Means::MaxTokens)?;
    latencies(span, length, &mut row)?;
    ended(span, &mut row);
    Ok(row)
}

/// The tokens among attributes.
pub(super) fn counts(attributes: &Value, row: &mut Row) -> Result<(), Wrong> {
    let tokens =
        |means| find(attributes, means).map_or(Ok(None), |(name, value)| count(name, value));
    let counts = Counts {
        prompt: tokens(Means::Prompt)?,
        cache_read: tokens(Means::CacheRead)?,
        cache_write: tokens(Means::CacheWrite)?,
        output: tokens(Means::Output)?,
        reasoning: tokens(Means::Reasoning)?,
        total: tokens(Means::Total)?,
    };
    let field = find(attributes, Means::Prompt).map_or("", |(name, _)| name);
    counts.settle(Convention::Unsaid, field, row)
}

/// What engines measured. vLLM and SGLang write seconds; another engine writes nanoseconds under the same names. The
/// length of the span tells: nothing inside it lasts longer. Times in the model are of one unit.
fn latencies(span: &Span<'_>, length: Option<f64>, row: &mut Row) -> Result<(), Wrong> {
    let in_model = [Means::Prefill, Means::Decode, Means::Inference];
    let mut model_nanos = false;
    for means in in_model {
        if let Some((name, value)) = span.find(means) {
            model_nanos |= in_nanos(name, value, length)?;
        }
    }
    let read = |means: Means| -> Result<Option<f64>, Wrong> {
        let Some((name, value)) = span.find(means) else { return Ok(None) };
        let nanos = in_nanos(name, value, length)? || (model_nanos && in_model.contains(&means));
        Ok(real_value(name, value)?.map(|number| if nanos { number / 1e9 } else { number }))
    };
    row.queue_s = read(Means::Queue)?;
    row.prefill_s = read(Means::Prefill)?;
    row.decode_s = read(Means::Decode)?;
    row.ttft_s = read(Means::FirstToken)?.or(read(Means::FirstChunk)?);
    row.e2e_s = read(Means::EndToEnd)?.or(length);
    Ok(())
}

/// Whether a time is in nanoseconds: it is not where it fits into the span as seconds.
fn in_nanos(name: &'static str, value: &Value, length: Option<f64>) -> Result<bool, Wrong> {
    let Some(number) = real_value(name, value)? else { return Ok(false) };
    // Clocks differ, and spans may be closed early; without a length, more than a day is none.
    let most = length.map_or(86_400.0, |length| 1.5 * length + 1.0);
    if number <= most {
        Ok(false)
    } else if number / 1e9 <= most {
        Ok(true)
    } else {
        let problem = format!("is {number}: too long for the span, in seconds or in nanoseconds");
        Err(Wrong::new(name, Why::Contradicts(problem)))
    }
}

fn ended(span: &Span<'_>, row: &mut Row) {
    let http = span.find(Means::Http).and_then(|(_, value)| http_of(value));
    let error = span.text(Means::Error);
    let message = text(at(span.value, &["status"]), &["message", "description"]);
    row.http_status = http.or_else(|| error.as_deref().and_then(|code| http_of(&code.into())));
    let aborted = row.finish_reason.as_deref() == Some("abort");
    let by_http = row.http_status.map(ending).filter(|ending| *ending != "ok");
    row.status = Some(match by_http {
        Some(ending) => ending.to_owned(),
        None if span.failed => {
            let of = |text: &Option<String>| text.as_deref().map(failure);
            let known = of(&error).filter(|ending| *ending != "failed");
            known.or_else(|| of(&message)).unwrap_or("failed").to_owned()
        }
        None if aborted => "cancelled".to_owned(),
        None => "ok".to_owned(),
    });
    if row.status.as_deref() != Some("ok") {
        if row.status.as_deref() == Some("limited") {
            row.limit_dimension = message.as_deref().and_then(limit_of).map(str::to_owned);
        }
        row.error = error.or(message);
    }
}

/// How many spans one stands for, by the threshold below which its like were dropped.
fn weight(span: &Value) -> Option<f64> {
    let state = text(span, &["traceState", "trace_state"])
        .or_else(|| text(at(span, &["context"]), &["trace_state", "traceState"]))?;
    let ours = state.split(',').find_map(|member| member.trim().strip_prefix("ot="))?;
    let digits = ours.split(';').find_map(|pair| pair.strip_prefix("th:"))?;
    if digits.is_empty() || digits.len() > 14 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    const WHOLE: u64 = 1 << 56;
    let threshold = u64::from_str_radix(&format!("{digits:0<14}"), 16).ok()?;
    Some(WHOLE as f64 / (WHOLE - threshold) as f64)
}

const EVALUATION: &str = "gen_ai.evaluation.result";

/// A record of a log: of these, only verdicts are kept.
fn log_record(line: u64, record: &Value, page: &mut Page) {
    let attributes = attributes(record);
    let name = text(record, &["eventName", "event_name"])
        .or_else(|| dig(&attributes, "event.name").and_then(text_of));
    if name.as_deref() != Some(EVALUATION) {
        return page.other("log record of another kind");
    }
    let session = find(&attributes, Means::Session).and_then(|(_, value)| text_of(value));
    let task = session.or_else(|| trace_of(record));
    let names = ["timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "timestamp"];
    let at = moment(record, &names, &mut page.origin.zoned);
    let outcome = at.and_then(|at| evaluation(&attributes, task, at));
    page.outcome(line, &record.to_string(), outcome);
}

fn evaluation(
    attributes: &Value,
    task: Option<String>,
    at: Option<i64>,
) -> Result<OutcomeRow, Wrong> {
    let task = task.ok_or_else(|| Wrong::new("traceId", Why::Missing))?;
    let said = |means| find(attributes, means).filter(|(_, value)| !is_nothing(value));
    let label = said(Means::EvaluationLabel).and_then(|(_, value)| text_of(value));
    let name = said(Means::EvaluationName).and_then(|(_, value)| text_of(value));
    let value = match said(Means::EvaluationScore) {
        Some((name, value)) => {
            let (field, text) = number(name.into(), value)?;
            real_in(field, text.as_deref())?
        }
        None => None,
    };
    let success = label.as_deref().and_then(verdict);
    Ok(OutcomeRow {
        task_id: Some(task),
        success,
        value,
        label: name.or(label),
        ts: at,
        ..OutcomeRow::default()
    })
}

/// Whether a label is one of success or of failure.
pub(super) fn verdict(label: &str) -> Option<bool> {
    match label.trim().to_ascii_lowercase().as_str() {
        "pass" | "passed" | "success" | "succeeded" | "true" | "yes" | "correct" => Some(true),
        "fail" | "failed" | "failure" | "false" | "no" | "incorrect" => Some(false),
        _ => None,
    }
}
