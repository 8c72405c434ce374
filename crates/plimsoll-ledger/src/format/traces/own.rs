//! The ledger's own columns, in a table or in JSON lines, under their own names or under those that a user gives.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    ABSOLUTE, Clock, Heading, JsonKind, JsonRows, RELATIVE, Record, Row, TableRows, Wrong, find,
};
use crate::page::Key;
use crate::reject::Why;
use crate::value::{clip, instant, is_unknown, moment, real_in, tokens, tokens_in};

/// A table that says when requests came and how long they were, or one of nothing but the ledger's columns.
pub(crate) fn own_table(heading: &Heading<'_>) -> Option<Box<dyn TableRows>> {
    let columns = heading.columns.iter().map(String::as_str);
    if !is_own(|name| find(heading, name).is_some(), columns) {
        return None;
    }
    Some(Box::new(PickedTable(own_columns(heading, &[]))))
}

/// JSON lines of the same keys.
pub(crate) const OWN_JSON: JsonKind = JsonKind {
    is: |first| {
        first.as_object().is_some_and(|object| {
            is_own(|name| object.contains_key(name), object.keys().map(String::as_str))
        })
    },
    reader: || Box::new(PickedJson(own_keys(&[]))),
};

fn is_own<'a>(has: impl Fn(&str) -> bool, mut names: impl Iterator<Item = &'a str>) -> bool {
    let known =
        |name: &str| Row::COLUMNS.iter().any(|(column, _)| column.eq_ignore_ascii_case(name));
    (has("prompt_tokens") || has("output_tokens")) && (has("ts_arrival") || names.all(known))
}

/// Columns of the heading that have a name of the ledger, but those that are already taken.
pub(super) fn own_columns(heading: &Heading<'_>, taken: &[&str]) -> Vec<(usize, Pick)> {
    let picks = own_keys(taken).into_iter();
    picks.filter_map(|pick| Some((find(heading, pick.column)?, pick))).collect()
}

/// The ledger's own names, but those that are already taken.
pub(super) fn own_keys(taken: &[&str]) -> Vec<Pick> {
    let free = SLOTS.iter().filter(|(column, _)| !taken.contains(column));
    free.map(|(column, slot)| Pick { column, slot, from: (*column).to_owned(), unit: None })
        .collect()
}

/// Where in a row a column is, by its kind.
pub(super) enum Slot {
    Text(fn(&mut Row) -> &mut Option<String>),
    Short(fn(&mut Row) -> &mut Option<u16>),
    Number(fn(&mut Row) -> &mut Option<u32>),
    Real(fn(&mut Row) -> &mut Option<f64>),
    Time(fn(&mut Row) -> &mut Option<i64>),
    Flag(fn(&mut Row) -> &mut Option<bool>),
    Names(fn(&mut Row) -> &mut Option<Vec<u64>>),
}

macro_rules! slots {
    ($($kind:ident $column:ident),+ $(,)?) => {
        &[$((stringify!($column), Slot::$kind(|row| &mut row.$column))),+]
    };
}

/// Every column that a file can fill; its source, its name and its lines the ledger knows itself.
pub(super) const SLOTS: &[(&str, Slot)] = slots![
    Text request_id,
    Short attempt,
    Text task_id,
    Text trace_id,
    Text session_id,
    Time ts_arrival,
    Text clock,
    Text route,
    Text route_version,
    Text provider,
    Text model,
    Text model_version,
    Text prompt_version,
    Text tenant,
    Text product,
    Text user,
    Text feature,
    Text tier,
    Text dataset,
    Text tool_path,
    Text region,
    Number prompt_tokens,
    Number cache_read_tokens,
    Number cache_write_tokens,
    Number output_tokens,
    Number reasoning_tokens,
    Number max_tokens,
    Text convention,
    Real queue_s,
    Real prefill_s,
    Real decode_s,
    Real tool_s,
    Real ttft_s,
    Real e2e_s,
    Flag stream,
    Text status,
    Short http_status,
    Text error,
    Text finish_reason,
    Text limit_dimension,
    Flag success,
    Real cost_usd,
    Text cost_source,
    Flag response_cached,
    Names blocks,
    Number block_tokens,
    Text block_scope,
    Real sample_weight,
];

/// One column of the ledger, and where the file has it.
pub(super) struct Pick {
    pub(super) column: &'static str,
    pub(super) slot: &'static Slot,
    /// The column of the table, or the path into the object.
    pub(super) from: String,
    /// Nanoseconds, where a time counts from the start of the file, or a duration is not in seconds.
    pub(super) unit: Option<i128>,
}

impl Pick {
    /// Reads a field that is not empty.
    fn put(&self, row: &mut Row, text: &str, clock: &mut Clock) -> Result<(), Wrong> {
        let text = text.trim();
        if is_unknown(text) {
            return Ok(());
        }
        let wrong = |why| Wrong::new(Cow::Owned(self.from.clone()), why);
        let malformed = || wrong(Why::Malformed(clip(text)));
        match self.slot {
            Slot::Text(of) => {
                let known = match self.column {
                    "status" => Some(status(text).ok_or_else(malformed)?),
                    "clock" => {
                        let clocks = [ABSOLUTE, RELATIVE, "session"];
                        Some(*clocks.iter().find(|known| **known == text).ok_or_else(malformed)?)
                    }
                    _ => None,
                };
                *of(row) = Some(known.unwrap_or(text).to_owned());
            }
            Slot::Short(of) => {
                let number = tokens(text).map_err(wrong)?;
                let absurd = |_| wrong(Why::Absurd(clip(text)));
                *of(row) = Some(u16::try_from(number).map_err(absurd)?);
            }
            Slot::Number(of) => {
                *of(row) = tokens_in(Cow::Borrowed(""), Some(text)).map_err(|w| wrong(w.why))?
            }
            Slot::Real(of) => {
                let number = real_in(Cow::Borrowed(""), Some(text)).map_err(|w| wrong(w.why))?;
                if number.is_some_and(|number| number < 0.0) {
                    return Err(wrong(Why::Negative(clip(text))));
                }
                let seconds = self.unit.map_or(1.0, |unit| unit as f64 / 1e9);
                *of(row) = number.map(|number| number * seconds);
            }
            Slot::Time(of) => {
                let (moment, reference) = match self.unit {
                    // Nobody's log is thirty years long: a number from 1970 on, in the unit that was named.
                    Some(unit) => match moment(text, unit).map_err(wrong)? {
                        since if since >= SINCE_2001 => (since, ABSOLUTE),
                        since => (clock.after(since), RELATIVE),
                    },
                    None => (instant(text, &mut clock.zoned).map_err(wrong)?, ABSOLUTE),
                };
                *of(row) = Some(moment);
                row.clock.get_or_insert_with(|| reference.to_owned());
            }
            Slot::Flag(of) => *of(row) = Some(flag(text).ok_or_else(malformed)?),
            Slot::Names(of) => {
                let ends = |c: char| c == '[' || c == ']' || c.is_whitespace();
                let names = text.trim_matches(ends).split([',', ';', '|', ' ']);
                let names = names.map(|name| name.trim_matches(|c: char| c == '"' || ends(c)));
                let names = names.filter(|name| !name.is_empty());
                *of(row) = Some(names.map(block).collect());
            }
        }
        Ok(())
    }
}

/// Nanoseconds from 1970 to September 2001, when seconds came to have ten digits.
const SINCE_2001: i64 = 1_000_000_000_000_000_000;

/// The number of a block that has one, and a number for the name of one that has not.
fn block(name: &str) -> u64 {
    name.parse().unwrap_or_else(|_| Key::new("block", "").text(name).finish() as u64)
}

/// How a request ended, in the ledger's words.
fn status(text: &str) -> Option<&'static str> {
    Some(match text.to_ascii_lowercase().as_str() {
        "ok" | "success" | "succeeded" | "completed" | "complete" | "done" | "finished" => "ok",
        "limited" | "rate_limited" | "throttled" | "429" => "limited",
        "failed" | "failure" | "error" => "failed",
        "cancelled" | "canceled" | "aborted" | "timeout" => "cancelled",
        code => match code.parse().ok()? {
            200..=299u16 => "ok",
            499 => "cancelled",
            400..=599 => "failed",
            _ => return None,
        },
    })
}

/// Yes or no, in the ways that databases write it.
pub(super) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" | "1.0" => Some(true),
        "false" | "f" | "no" | "n" | "0" | "0.0" => Some(false),
        _ => None,
    }
}

/// What only makes sense together.
fn whole(mut row: Row) -> Result<Row, Wrong> {
    // Who says only what HTTP said has said how it ended.
    if let (None, Some(code)) = (&row.status, row.http_status) {
        row.status = status(&code.to_string()).map(str::to_owned);
    }
    if let Some(blocks) = row.blocks.as_deref().filter(|blocks| !blocks.is_empty()) {
        let Some(size) = row.block_tokens.filter(|size| *size > 0) else {
            return Err(Wrong::new("block_tokens", Why::Missing));
        };
        if let Some(prompt) = row.prompt_tokens
            && blocks.len() as u64 > u64::from(prompt.div_ceil(size))
        {
            let count = blocks.len();
            let problem = format!("names {count} blocks of {size} tokens in a prompt of {prompt}");
            return Err(Wrong::new("blocks", Why::Blocks(problem)));
        }
    }
    Ok(row)
}

/// Columns of a table.
pub(super) struct PickedTable(pub(super) Vec<(usize, Pick)>);

impl TableRows for PickedTable {
    fn row(&self, record: &Record<'_>, clock: &mut Clock) -> Result<Row, Wrong> {
        let mut row = Row::default();
        for (at, pick) in &self.0 {
            if let Some(text) = record.get(*at) {
                pick.put(&mut row, text, clock)?;
            }
        }
        whole(row)
    }
}

/// Keys of JSON, each a path.
pub(super) struct PickedJson(pub(super) Vec<Pick>);

impl JsonRows for PickedJson {
    fn rows(
        &self,
        object: &Map<String, Value>,
        clock: &mut Clock,
        take: &mut dyn FnMut(Result<Row, Wrong>),
    ) {
        let mut row = Row::default();
        for pick in &self.0 {
            let Some(value) = at_path(object, &pick.from) else { continue };
            let put = match text_of(value) {
                Ok(Some(text)) => pick.put(&mut row, &text, clock),
                Ok(None) => Ok(()),
                Err(why) => Err(Wrong::new(Cow::Owned(pick.from.clone()), why)),
            };
            if let Err(wrong) = put {
                return take(Err(wrong));
            }
        }
        take(whole(row));
    }
}

/// What is at `usage.prompt`: a key of that very name, or a key in a key.
fn at_path<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    // Every dot may be part of a key, too: `attributes.gen_ai.usage` is `attributes`, then `gen_ai.usage`.
    path.match_indices('.').find_map(|(dot, _)| {
        let rest = &path[dot + 1..];
        match object.get(&path[..dot])? {
            Value::Object(inner) => at_path(inner, rest),
            Value::Array(items) => {
                let (index, rest) = rest.split_once('.').unwrap_or((rest, ""));
                match items.get(index.parse::<usize>().ok()?)? {
                    item if rest.is_empty() => Some(item),
                    item => at_path(item.as_object()?, rest),
                }
            }
            _ => None,
        }
    })
}

/// A value of JSON as a table would have it; a list with commas between its items.
pub(super) fn text_of(value: &Value) -> Result<Option<Cow<'_, str>>, Why> {
    Ok(match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
        Value::Array(items) => {
            let items: Result<Vec<_>, Why> = items.iter().map(text_of).collect();
            let items: Vec<_> = items?.into_iter().flatten().collect();
            Some(Cow::Owned(items.join(",")))
        }
        Value::Object(_) => return Err(Why::Malformed(clip(&value.to_string()))),
    })
}
