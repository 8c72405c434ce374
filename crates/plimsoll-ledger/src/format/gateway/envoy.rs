//! Access logs of Envoy AI Gateway: JSON lines, whose keys the operator chooses.
//!
//! Read are the keys of `envoyproxy/ai-gateway:examples/access-log/basic.yaml`, whose tokens go by names of OpenTelemetry:
//! see [`alias`](super::alias). Nothing is written as `-` or null.
//!
//! **Prompts** are taken to include cached tokens, as the conventions say, unless there are more of these than prompt.

use serde_json::Value;

use super::alias::{Means, find};
use super::{
    at, count, ending, has_keys, http_of, is_nothing, moment, must, otel, pick, real, row_at,
    scalar, text, text_of,
};
use crate::format::Json;
use crate::page::{Page, Wrong};
use crate::reject::Why;
use crate::row::Row;

pub(super) fn open(_file: &str, first: &Value) -> Option<Box<dyn Json>> {
    is_ours(first).then(|| Box::new(Envoy) as Box<dyn Json>)
}

pub(super) fn is_ours(first: &Value) -> bool {
    let genai = |key: &String| key.starts_with("gen_ai.");
    has_keys(first, &["start_time", "response_code"])
        && first.as_object().is_some_and(|first| first.keys().any(genai))
}

struct Envoy;

impl Json for Envoy {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        if !value.is_object() {
            return page.reject(line, text, &Wrong::shape("is not a line of an access log"));
        }
        let says = |means| find(value, means).is_some();
        if !is_nothing(at(value, &["mcp.method.name"])) {
            return page.other("call of an MCP tool");
        }
        if ![Means::Model, Means::ModelVersion, Means::Prompt, Means::Output].into_iter().any(says)
        {
            return page.other("request without a model");
        }
        let row = row(value, &mut page.origin.zoned);
        page.request(line, text, row);
    }
}

fn row(value: &Value, zoned: &mut Option<bool>) -> Result<Row, Wrong> {
    let start = must(moment(value, &["start_time"], zoned)?, "start_time")?;
    let said = |means| find(value, means).and_then(|(_, value)| text_of(value));
    let mut row = row_at(Some(start));
    row.request_id = text(value, &["x-request-id", "x_request_id"]);
    row.trace_id = text(value, &["trace_id"]);
    row.session_id = said(Means::Session);
    row.task_id = row.session_id.clone().or_else(|| row.trace_id.clone());
    row.route = text(value, &["upstream_cluster", "route_name", "upstream_host"]);
    row.provider = said(Means::Provider);
    row.model = said(Means::Model).or_else(|| said(Means::ModelVersion));
    row.model_version = said(Means::ModelVersion);
    row.user = said(Means::User);
    row.feature = said(Means::Agent);
    row.e2e_s = real(value, &["duration", "duration_ms"])?.map(|milliseconds| milliseconds / 1e3);
    if let Some((name, tries)) = pick(value, &["x-envoy-attempt-count"]) {
        row.attempt =
            count(name, tries)?.map(|tries| u16::try_from(tries).unwrap_or(u16::MAX).max(1));
    }
    otel::counts(value, &mut row)?;
    ended(value, &mut row)?;
    Ok(row)
}

/// Zero is no answer: the client left, or nobody served it.
fn ended(value: &Value, row: &mut Row) -> Result<(), Wrong> {
    let code = at(value, &["response_code"]);
    row.http_status = http_of(code);
    // Of the flags of Envoy, `DC`: the connection of the client ended.
    let flags = text(value, &["response_flags"]).unwrap_or_default();
    let left =
        flags.split(',').any(|flag| matches!(flag, "DC" | "DownstreamConnectionTermination"));
    let zero = scalar(code).as_deref() == Some("0");
    let status = match row.http_status {
        _ if left => "cancelled",
        Some(http) => ending(http),
        None if zero => "failed",
        None if is_nothing(code) => return Ok(()),
        None => {
            let shown = crate::value::clip(&code.to_string());
            return Err(Wrong::new("response_code", Why::Malformed(shown)));
        }
    };
    row.status = Some(status.to_owned());
    if status != "ok" {
        let names = ["llm_error_type", "error.type", "response_code_details", "response_flags"];
        row.error = text(value, &names);
    }
    Ok(())
}
