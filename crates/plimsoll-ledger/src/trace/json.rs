//! JSON lines: Mooncake's, and the kindred ones of Qwen-Bailian.

use serde_json::{Map, Value};

use super::lines::Lines;
use super::value::{MILLISECOND, SECOND, moment, tokens};
use super::{Format, Numbers, Row, Rows, Why, Wrong, clip, unknown};
use crate::error::TraceError;

/// Which format the first line is of, and how many tokens its blocks have.
pub(super) fn detect(name: &str, first: &str, format: Format) -> Result<(Format, u64), TraceError> {
    let value: Value = match serde_json::from_str(first) {
        Ok(value) => value,
        // Whoever names the format means its rows, and this is one of them that is wrong.
        Err(_) if format != Format::Auto => Value::Null,
        Err(_) => return Err(unknown(name, "JSON that is not one object a line".to_owned())),
    };
    if value.get("schema").and_then(Value::as_str) == Some("plimsoll-engine-run/1") {
        return Err(TraceError::Unknown {
            name: name.to_owned(),
            looks: "step logs of an engine".to_owned(),
            help: format!("`plimsoll simulate {name} --run NAME` serves one of its runs again"),
        });
    }
    let has = |keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
    let lengths = ["timestamp", "input_length", "output_length"];
    let format = match format {
        Format::Mooncake | Format::Bailian => format,
        Format::Auto if has(&lengths) && has(&["chat_id"]) => Format::Bailian,
        Format::Auto if has(&lengths) => Format::Mooncake,
        Format::Auto => {
            let keys: Vec<&str> =
                value.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
            return Err(unknown(name, format!("JSON lines of `{}`", clip(&keys.join("`, `")))));
        }
        _ => return Err(unknown(name, format!("JSON lines, and {format} writes tables"))),
    };
    Ok((format, if format == Format::Bailian { 16 } else { 512 }))
}

/// Takes every row, the first one included; the keys of the first that nobody asked for come back.
pub(super) fn read(
    lines: &mut Lines<'_>,
    first: &str,
    format: Format,
    block_tokens: u64,
    rows: &mut Rows,
) -> Result<Vec<String>, TraceError> {
    let mut names = Names { sessions: Numbers::new(), blocks: Numbers::new() };
    let mut row = |text: Result<&str, Why>| {
        let object = text.map_err(|why| ("", why)).and_then(object)?;
        names.row(&object, format, block_tokens)
    };
    rows.take(lines.number(), row(Ok(first)));
    while let Some(text) = lines.next_text()? {
        let row = row(text);
        rows.take(lines.number(), row);
    }
    let known: &[&str] = match format {
        Format::Bailian => &["chat_id", "parent_chat_id", "type"],
        _ => &["session_id"],
    };
    let common = ["timestamp", "input_length", "output_length", "hash_ids"];
    let first = object(first).unwrap_or_default();
    let unread =
        first.keys().filter(|k| !common.contains(&k.as_str()) && !known.contains(&k.as_str()));
    Ok(unread.map(|key| format!("`{}`", clip(key))).collect())
}

fn object(text: &str) -> Result<Map<String, Value>, Wrong> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(("", Why::Shape("is no JSON object".to_owned()))),
        Err(error) => Err(("", Why::Shape(format!("is not JSON: {error}")))),
    }
}

/// What a name is written as.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Number(i128),
    Text(String),
}

impl Name {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(n) => {
                n.as_u64().map(i128::from).or(n.as_i64().map(i128::from)).map(Self::Number)
            }
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

struct Names {
    sessions: Numbers<Name>,
    blocks: Numbers<Name>,
}

impl Names {
    fn row(
        &mut self,
        object: &Map<String, Value>,
        format: Format,
        block_tokens: u64,
    ) -> Result<Row, Wrong> {
        let number = |key: &'static str| match object.get(key) {
            None | Some(Value::Null) => Err((key, Why::Missing)),
            Some(Value::String(text)) => Ok(text.trim().to_owned()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(other) => Err((key, Why::Malformed(clip(&other.to_string())))),
        };
        let unit = if format == Format::Bailian { SECOND } else { MILLISECOND };
        let stamp = moment(&number("timestamp")?, unit).map_err(|why| ("timestamp", why))?;
        let count = |key: &'static str| match tokens(&number(key)?) {
            Ok(0) => Err((key, Why::Zero)),
            other => other.map_err(|why| (key, why)),
        };
        let (prompt, output) = (count("input_length")?, count("output_length")?);
        let ids = match object.get("hash_ids") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(ids)) => ids,
            Some(other) => return Err(("hash_ids", Why::Malformed(clip(&other.to_string())))),
        };
        if ids.len() as u64 > prompt.div_ceil(block_tokens) {
            let problem = format!(
                "names {} blocks of {block_tokens} tokens in a prompt of {prompt}",
                ids.len()
            );
            return Err(("hash_ids", Why::Blocks(problem)));
        }
        let content = ids.iter().map(|id| {
            let name =
                Name::of(id).ok_or_else(|| ("hash_ids", Why::Malformed(clip(&id.to_string()))))?;
            Ok(self.blocks.of(name))
        });
        let content = content.collect::<Result<_, Wrong>>()?;
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let (class, session) = match format {
            Format::Bailian => (text("type"), self.conversation(object)),
            _ => (
                None,
                object.get("session_id").and_then(Name::of).map(|name| self.sessions.of(name)),
            ),
        };
        Ok(Row { stamp, prompt, output, class, session, content })
    }

    /// A chat that answers another belongs to its conversation, where that one was seen.
    fn conversation(&mut self, object: &Map<String, Value>) -> Option<u64> {
        let chat = Name::of(object.get("chat_id")?)?;
        let parent = object.get("parent_chat_id").and_then(Name::of);
        let known = parent.and_then(|parent| self.sessions.0.get(&parent).copied());
        let next = self.sessions.0.len() as u64;
        Some(*self.sessions.0.entry(chat).or_insert(known.unwrap_or(next)))
    }
}
