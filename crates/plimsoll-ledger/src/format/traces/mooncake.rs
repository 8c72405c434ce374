//! JSON lines with the blocks of prompts: Mooncake's, and the kindred ones of Qwen-Bailian.

use serde_json::{Map, Value};

use super::{Clock, JsonKind, JsonRows, RELATIVE, Row, Wrong, name_of};
use crate::page::Key;
use crate::reject::Why;
use crate::value::{MILLISECOND, SECOND, clip, moment, tokens_of};

/// `timestamp` in ms, `input_length`, `output_length` and `hash_ids` of 512 tokens.
pub(crate) const MOONCAKE: JsonKind = JsonKind {
    is: |first| has_lengths(first) && first.get("chat_id").is_none(),
    reader: || Box::new(Blocks { unit: MILLISECOND, block_tokens: 512, chats: false }),
};

/// The same names with `chat_id`: `timestamp` in seconds, `hash_ids` of 16 tokens.
pub(crate) const BAILIAN: JsonKind = JsonKind {
    is: |first| has_lengths(first) && first.get("chat_id").is_some(),
    reader: || Box::new(Blocks { unit: SECOND, block_tokens: 16, chats: true }),
};

fn has_lengths(first: &Value) -> bool {
    ["timestamp", "input_length", "output_length"].iter().all(|key| first.get(key).is_some())
}

struct Blocks {
    /// Nanoseconds.
    unit: i128,
    block_tokens: u32,
    chats: bool,
}

impl Blocks {
    fn row(&self, object: &Map<String, Value>, clock: &Clock) -> Result<Row, Wrong> {
        let stamp = match object.get("timestamp") {
            None | Some(Value::Null) => Err(Why::Missing),
            Some(Value::String(text)) => moment(text.trim(), self.unit),
            Some(Value::Number(number)) => moment(&number.to_string(), self.unit),
            Some(other) => Err(Why::Malformed(clip(&other.to_string()))),
        };
        let stamp = stamp.map_err(|why| Wrong::new("timestamp", why))?;
        let prompt_tokens = tokens_of("input_length", object.get("input_length"))?;
        let output_tokens = tokens_of("output_length", object.get("output_length"))?;
        let blocks = blocks("hash_ids", object.get("hash_ids"), self.block_tokens, prompt_tokens)?;
        let (session_id, trace_id, feature) = if self.chats {
            let chat = name_of(object.get("chat_id"));
            // A chat that answers another is part of its conversation; the first of one answers none.
            let parent = object.get("parent_chat_id").filter(|p| p.as_i64().is_none_or(|p| p >= 0));
            let session = name_of(parent).or_else(|| chat.clone());
            (session, chat, name_of(object.get("type")))
        } else {
            (name_of(object.get("session_id")), None, None)
        };
        Ok(Row {
            trace_id,
            session_id,
            ts_arrival: Some(clock.after(stamp)),
            clock: Some(RELATIVE.to_owned()),
            feature,
            prompt_tokens,
            output_tokens,
            block_tokens: blocks.as_ref().map(|_| self.block_tokens),
            block_scope: blocks.as_ref().map(|_| "global".to_owned()),
            blocks,
            ..Row::default()
        })
    }
}

/// Chats are numbered anew in every file, so that `request_id` is none of them. `trace_id` is the chat and `session_id` the one
/// that it answers, or itself: a record shows no more of its conversation, which is a chain from answer to question.
impl JsonRows for Blocks {
    fn rows(
        &self,
        object: &Map<String, Value>,
        clock: &mut Clock,
        take: &mut dyn FnMut(Result<Row, Wrong>),
    ) {
        take(self.row(object, clock));
    }
}

/// Names of blocks: whole numbers, or text, which is numbered by its hash.
pub(super) fn blocks(
    field: &'static str,
    value: Option<&Value>,
    block_tokens: u32,
    prompt: Option<u32>,
) -> Result<Option<Vec<u64>>, Wrong> {
    let malformed = |value: &Value| Wrong::new(field, Why::Malformed(clip(&value.to_string())));
    let ids = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(ids)) => ids,
        Some(other) => return Err(malformed(other)),
    };
    if let Some(prompt) = prompt
        && ids.len() as u64 > u64::from(prompt.div_ceil(block_tokens.max(1)))
    {
        let problem =
            format!("names {} blocks of {block_tokens} tokens in a prompt of {prompt}", ids.len());
        return Err(Wrong::new(field, Why::Blocks(problem)));
    }
    let name = |id: &Value| match id {
        Value::Number(n) => {
            n.as_u64().or(n.as_i64().map(i64::cast_unsigned)).ok_or_else(|| malformed(id))
        }
        Value::String(text) => Ok(Key::new("block", "").text(text).finish() as u64),
        _ => Err(malformed(id)),
    };
    ids.iter().map(name).collect::<Result<_, _>>().map(Some)
}
