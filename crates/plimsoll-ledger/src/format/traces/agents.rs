//! Sessions of a coding agent, as kv-cache-tester records them: a document a session, sub-agents inside.

use serde_json::{Map, Value};

use super::mooncake::blocks;
use super::{Clock, JsonKind, JsonRows, Row, Wrong, name_of};
use crate::reject::Why;
use crate::value::{SECOND, clip, moment, real_of, tokens_of};

/// `{id, block_size, hash_id_scope, requests: [{t, type, model, in, out, hash_ids, ...}]}`
pub(crate) const SESSIONS: JsonKind = JsonKind {
    is: |first| {
        let keys = ["id", "block_size", "hash_id_scope"];
        keys.iter().all(|key| first.get(key).is_some())
            && first.get("requests").is_some_and(Value::is_array)
    },
    reader: || Box::new(Sessions),
};

/// How deep sub-agents may call sub-agents.
const DEEPEST: usize = 32;

struct Sessions;

impl JsonRows for Sessions {
    fn rows(
        &self,
        object: &Map<String, Value>,
        clock: &mut Clock,
        take: &mut dyn FnMut(Result<Row, Wrong>),
    ) {
        let Some(id) = name_of(object.get("id")) else {
            return take(Err(Wrong::new("id", Why::Missing)));
        };
        let block_tokens = match tokens_of("block_size", object.get("block_size")) {
            Ok(size) => size.filter(|size| *size > 0),
            Err(wrong) => return take(Err(wrong)),
        };
        // Names of blocks are counted from one in every session, unless it says that they are not.
        let scope = match object.get("hash_id_scope").and_then(Value::as_str) {
            Some("global") => "global",
            _ => "session",
        };
        let session = Session { id: &id, block_tokens, scope, start: clock.start };
        session.calls(object, Caller { since: 0, place: &id, tools: None, depth: 0 }, take);
    }
}

/// What requests of a session have in common.
struct Session<'a> {
    id: &'a str,
    block_tokens: Option<u32>,
    scope: &'static str,
    start: i64,
}

/// Who makes requests: the agent, or a sub-agent somewhere below it.
struct Caller<'a> {
    /// When it began, in nanoseconds from the start of the session.
    since: i64,
    /// The session, and the place of every sub-agent on the way.
    place: &'a str,
    /// The kinds of sub-agents on the way.
    tools: Option<&'a str>,
    depth: usize,
}

impl Session<'_> {
    fn calls(
        &self,
        object: &Map<String, Value>,
        caller: Caller<'_>,
        take: &mut dyn FnMut(Result<Row, Wrong>),
    ) {
        let requests = match object.get("requests") {
            Some(Value::Array(requests)) => requests,
            None | Some(Value::Null) => return take(Err(Wrong::new("requests", Why::Missing))),
            Some(other) => {
                return take(Err(Wrong::new("requests", Why::Malformed(clip(&other.to_string())))));
            }
        };
        for (position, request) in requests.iter().enumerate() {
            let place = format!("{}/{position}", caller.place);
            let Value::Object(request) = request else {
                take(Err(Wrong::new("requests", Why::Shape(format!("{place} is no object")))));
                continue;
            };
            let at = match time(request) {
                Ok(t) => caller.since.saturating_add(t),
                Err(wrong) => {
                    take(Err(wrong));
                    continue;
                }
            };
            if request.get("type").and_then(Value::as_str) != Some("subagent") {
                take(self.row(request, at, place, caller.tools));
                continue;
            }
            if caller.depth == DEEPEST {
                let problem = format!("{place} is a sub-agent more than {DEEPEST} deep");
                take(Err(Wrong::new("requests", Why::Shape(problem))));
                continue;
            }
            let kind = name_of(request.get("subagent_type"))
                .or_else(|| name_of(request.get("agent_id")))
                .unwrap_or_else(|| "subagent".to_owned());
            let tools = caller.tools.map_or(kind.clone(), |above| format!("{above}/{kind}"));
            let below =
                Caller { since: at, place: &place, tools: Some(&tools), depth: caller.depth + 1 };
            self.calls(request, below, take);
        }
    }

    fn row(
        &self,
        request: &Map<String, Value>,
        at: i64,
        place: String,
        tools: Option<&str>,
    ) -> Result<Row, Wrong> {
        let prompt_tokens = tokens_of("in", request.get("in"))?;
        let output_tokens = tokens_of("out", request.get("out"))?;
        let blocks = match self.block_tokens {
            Some(size) => blocks("hash_ids", request.get("hash_ids"), size, prompt_tokens)?,
            None => None,
        };
        let seconds = |key: &'static str| {
            let seconds = real_of(key, request.get(key))?;
            match seconds {
                Some(s) if s < 0.0 => Err(Wrong::new(key, Why::Negative(s.to_string()))),
                seconds => Ok(seconds),
            }
        };
        Ok(Row {
            request_id: Some(place),
            session_id: Some(self.id.to_owned()),
            ts_arrival: Some(self.start.saturating_add(at)),
            clock: Some("session".to_owned()),
            model: name_of(request.get("model")),
            tool_path: tools.map(str::to_owned),
            prompt_tokens,
            output_tokens,
            ttft_s: seconds("ttft")?,
            e2e_s: seconds("api_time")?,
            finish_reason: name_of(request.get("stop")),
            block_tokens: self.block_tokens.filter(|_| blocks.is_some()),
            block_scope: blocks.as_ref().map(|_| self.scope.to_owned()),
            blocks,
            ..Row::default()
        })
    }
}

/// Seconds from when the caller began, as nanoseconds.
fn time(request: &Map<String, Value>) -> Result<i64, Wrong> {
    let t = match request.get("t") {
        None | Some(Value::Null) => Err(Why::Missing),
        Some(Value::Number(number)) => moment(&number.to_string(), SECOND),
        Some(Value::String(text)) => moment(text.trim(), SECOND),
        Some(other) => Err(Why::Malformed(clip(&other.to_string()))),
    };
    t.map_err(|why| Wrong::new("t", why))
}
