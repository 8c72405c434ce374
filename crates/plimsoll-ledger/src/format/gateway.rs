//! Logs of gateways and tracers: one row for each call of a model.
//!
//! | format | what it reads |
//! |---|---|
//! | `otel` | spans of OpenTelemetry, three generations of names, those of vLLM and SGLang among them |
//! | `litellm` | LiteLLM's spend logs and the payloads of its callbacks |
//! | `langfuse` | exports of Langfuse: observations and scores |
//! | `helicone` | exports of Helicone: `request_response_rmt`, or what its API answers |
//! | `envoy` | access logs of Envoy AI Gateway |
//! | `usage` | answers of providers, or wrappers around their usage |
//!
//! They count prompts in two ways. Here a prompt includes what was read from a cache and what was written to one; whoever
//! logs them apart is summed, and `convention` says so: see [`Counts`].

mod alias;
mod envoy;
mod helicone;
mod langfuse;
mod litellm;
mod otel;
mod usage;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Heading, JsonFormat, Record, TableFormat};
use crate::page::Wrong;
use crate::reject::Why;
use crate::row::Row;
use crate::value::{clip, instant_of, is_unknown, real_in, tokens_in};

/// What is written as JSON.
pub(crate) const GATEWAY_JSONS: &[JsonFormat] = &[
    JsonFormat {
        name: "otel",
        about: "OpenTelemetry GenAI spans: OTLP JSON, or one span a line",
        open: otel::open,
    },
    JsonFormat {
        name: "litellm",
        about: "LiteLLM spend logs and callback payloads",
        open: litellm::open,
    },
    JsonFormat {
        name: "langfuse",
        about: "Langfuse exports: observations and scores",
        open: langfuse::open,
    },
    JsonFormat { name: "helicone", about: "Helicone exports of requests", open: helicone::open },
    JsonFormat { name: "envoy", about: "Envoy AI Gateway access logs", open: envoy::open },
    JsonFormat {
        name: "usage",
        about: "usage objects: OpenAI chat and Responses, Anthropic, Bedrock Converse",
        open: usage::open,
    },
];

/// What is written as a table.
pub(crate) const GATEWAY_TABLES: &[TableFormat] = &[
    TableFormat { name: "litellm", about: "LiteLLM spend logs, as CSV", open: litellm::open_table },
    TableFormat {
        name: "langfuse",
        about: "Langfuse exports of observations, as CSV",
        open: langfuse::open_table,
    },
    TableFormat {
        name: "helicone",
        about: "Helicone exports of requests, as CSV",
        open: helicone::open_table,
    },
];

/// What a call counted, in the words of its source.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    prompt: Option<u32>,
    cache_read: Option<u32>,
    cache_write: Option<u32>,
    output: Option<u32>,
    reasoning: Option<u32>,
    /// Prompt and output together, where the source adds them up.
    total: Option<u32>,
}

/// Whether a source counts cached tokens among those of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Convention {
    Inclusive,
    Exclusive,
    /// The source does not say: inclusive, unless its own numbers prove otherwise.
    Unsaid,
}

impl Counts {
    /// Writes the counts into a row, in one convention. `field` is the source's name of the prompt.
    ///
    /// Where the source does not say, exclusive is proven by more cached tokens than prompt, or by a total that has room for
    /// both.
    fn settle(&self, convention: Convention, field: &str, row: &mut Row) -> Result<(), Wrong> {
        row.cache_read_tokens = self.cache_read;
        row.cache_write_tokens = self.cache_write;
        row.output_tokens = self.output;
        row.reasoning_tokens = self.reasoning;
        let Some(prompt) = self.prompt else { return Ok(()) };
        let of = |part: Option<u32>| u64::from(part.unwrap_or(0));
        let (prompt, cached) = (u64::from(prompt), of(self.cache_read) + of(self.cache_write));
        let apart = match convention {
            Convention::Inclusive => false,
            Convention::Exclusive => true,
            Convention::Unsaid => {
                let whole = prompt + cached + of(self.output);
                cached > prompt || (cached > 0 && self.total.map(u64::from) == Some(whole))
            }
        };
        let prompt = if apart { prompt + cached } else { prompt };
        let absurd = || Wrong::new(field.to_owned(), Why::Absurd(prompt.to_string()));
        row.prompt_tokens = Some(u32::try_from(prompt).map_err(|_| absurd())?);
        row.convention = Some(if apart { "exclusive" } else { "inclusive" }.to_owned());
        Ok(())
    }
}

static NOTHING: Value = Value::Null;

/// What is written under a path of keys; null where nothing is.
fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().try_fold(value, |value, key| value.get(key)).unwrap_or(&NOTHING)
}

/// Whether a source means nothing by it.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => is_unknown(text),
        _ => false,
    }
}

/// The first of some keys that says something, and what it says.
fn pick<'a>(value: &'a Value, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
    let known = |name: &'static str| value.get(name).map(|value| (name, value));
    names.iter().filter_map(|name| known(name)).find(|(_, value)| !is_nothing(value))
}

/// What the source calls it: the first of some keys that says something, or the first of all.
fn named(value: &Value, names: &[&'static str]) -> &'static str {
    pick(value, names).map_or(names[0], |(name, _)| name)
}

/// A scalar as text.
fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) if !is_unknown(text) => Some(Cow::Borrowed(text.trim())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(flag) => Some(Cow::Borrowed(if *flag { "true" } else { "false" })),
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<String> {
    scalar(value).map(Cow::into_owned)
}

/// The text of the first key that has one.
fn text(value: &Value, names: &[&'static str]) -> Option<String> {
    pick(value, names).and_then(|(_, value)| text_of(value))
}

/// The text of a value that may be a number or text, and nothing else.
fn number<'a>(
    field: Cow<'static, str>,
    value: &'a Value,
) -> Result<(Cow<'static, str>, Option<Cow<'a, str>>), Wrong> {
    match value {
        Value::Null => Ok((field, None)),
        Value::Number(_) | Value::String(_) => Ok((field, scalar(value))),
        other => Err(Wrong::new(field, Why::Malformed(clip(&other.to_string())))),
    }
}

fn count(field: impl Into<Cow<'static, str>>, value: &Value) -> Result<Option<u32>, Wrong> {
    let (field, text) = number(field.into(), value)?;
    tokens_in(field, text.as_deref())
}

/// The tokens of the first key that says something.
fn tokens(value: &Value, names: &[&'static str]) -> Result<Option<u32>, Wrong> {
    pick(value, names).map_or(Ok(None), |(name, value)| count(name, value))
}

fn real_value(field: impl Into<Cow<'static, str>>, value: &Value) -> Result<Option<f64>, Wrong> {
    let (field, text) = number(field.into(), value)?;
    let real = real_in(field.clone(), text.as_deref())?;
    match real {
        Some(real) if real < 0.0 => Err(Wrong::new(field, Why::Negative(real.to_string()))),
        real => Ok(real),
    }
}

/// The number of the first key that says something; none below zero.
fn real(value: &Value, names: &[&'static str]) -> Result<Option<f64>, Wrong> {
    pick(value, names).map_or(Ok(None), |(name, value)| real_value(name, value))
}

/// The moment of the first key that says something.
fn moment(
    value: &Value,
    names: &[&'static str],
    zoned: &mut Option<bool>,
) -> Result<Option<i64>, Wrong> {
    let Some((name, value)) = pick(value, names) else { return Ok(None) };
    instant_of(value, zoned).map(Some).map_err(|why| Wrong::new(name, why))
}

/// The same, where a row is nothing without it.
fn must(found: Option<i64>, name: &'static str) -> Result<i64, Wrong> {
    found.ok_or_else(|| Wrong::new(name, Why::Missing))
}

/// Seconds from one moment to another, which is called `field`.
fn lasted(field: &'static str, from: i64, to: i64) -> Result<f64, Wrong> {
    let nanos = i128::from(to) - i128::from(from);
    if nanos < 0 {
        let problem = format!("is {} s before the beginning", -nanos as f64 / 1e9);
        return Err(Wrong::new(field, Why::Contradicts(problem)));
    }
    Ok(nanos as f64 / 1e9)
}

/// Yes or no, as logs write it.
fn flag_of(value: &Value) -> Option<bool> {
    match scalar(value)?.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "t" => Some(true),
        "false" | "0" | "no" | "f" => Some(false),
        _ => None,
    }
}

fn flag(value: &Value, names: &[&'static str]) -> Option<bool> {
    pick(value, names).and_then(|(_, value)| flag_of(value))
}

/// A value that may be JSON inside text.
fn inside(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str(text).map_or(Cow::Borrowed(value), Cow::Owned)
        }
        _ => Cow::Borrowed(value),
    }
}

/// A status of HTTP; none where it is no such thing.
fn http_of(value: &Value) -> Option<u16> {
    let code = scalar(value)?.parse::<f64>().ok()?;
    let whole = (100.0..600.0).contains(&code) && code.fract() == 0.0;
    whole.then_some(code as u16)
}

/// How a call ended, by its status of HTTP.
fn ending(http: u16) -> &'static str {
    match http {
        429 => "limited",
        // Not a standard, but what proxies write where the client went away.
        499 => "cancelled",
        100..400 => "ok",
        _ => "failed",
    }
}

/// How a call failed, by the name or the class of its error.
fn failure(error: &str) -> &'static str {
    let name: String =
        error.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if name == "429" || says(&["ratelimit", "toomanyrequests", "throttl", "quotaexceeded"]) {
        "limited"
    } else if name == "499" || says(&["cancel", "clientdisconnect"]) {
        "cancelled"
    } else {
        "failed"
    }
}

/// Which limit a message about one speaks of.
fn limit_of(message: &str) -> Option<&'static str> {
    let message = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["tokens per", "tokens_per", "(tpm)", "token limit"]) {
        Some("tokens")
    } else if says(&["requests per", "requests_per", "(rpm)", "request limit"]) {
        Some("requests")
    } else if says(&["concurren", "parallel requests"]) {
        Some("concurrent_requests")
    } else {
        None
    }
}

/// A record of a table as an object: JSON inside a field is read, and an empty field is absent.
fn object_of(columns: &[String], record: &Record<'_>) -> Value {
    let mut object = Map::new();
    for (index, column) in columns.iter().enumerate() {
        if let Some(field) = record.get(index) {
            let field = Value::String(field.to_owned());
            object.insert(column.clone(), inside(&field).into_owned());
        }
    }
    Value::Object(object)
}

/// Whether a heading has all of some columns.
fn has_columns(heading: &Heading<'_>, names: &[&str]) -> bool {
    names.iter().all(|name| heading.find(name).is_some())
}

/// Whether an object has all of some keys.
fn has_keys(value: &Value, names: &[&str]) -> bool {
    names.iter().all(|name| value.get(name).is_some())
}

/// The beginning of a row: what all of them share.
fn row_at(arrival: Option<i64>) -> Row {
    let clock = arrival.map(|_| "absolute".to_owned());
    Row { ts_arrival: arrival, clock, ..Row::default() }
}
