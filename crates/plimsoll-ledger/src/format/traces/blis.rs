//! Requests that BLIS observed or simulated: the table of TraceV2 and V3.
//!
//! A trace of BLIS is two files: a heading in YAML (`trace_version`, `time_unit`, `mode`, the server's settings) and this
//! table. The unit is microseconds in both versions, so that the table says all that a ledger keeps.

use super::{Clock, Heading, RELATIVE, Record, Row, TableRows, Wrong, find, name_in};
use crate::reject::Why;
use crate::value::{MILLISECOND, clip, moment, real_in, tokens_in};

/// Columns came and went with its versions: those without which a row means nothing are asked for, the others are looked up.
pub(crate) fn blis(heading: &Heading<'_>) -> Option<Box<dyn TableRows>> {
    let at = |name: &str| find(heading, name);
    Some(Box::new(Blis {
        id: at("x_request_id"),
        arrival: at("arrival_time_us")?,
        send: at("send_time_us")?,
        first: at("first_chunk_time_us")?,
        last: at("last_chunk_time_us")?,
        input: at("input_tokens")?,
        output: at("output_tokens")?,
        server_input: at("server_input_tokens"),
        prefix_group: at("prefix_group"),
        prefix: at("prefix_length"),
        reason: at("reason_ratio"),
        user: at("client_id"),
        tenant: at("tenant_id"),
        tier: at("slo_class"),
        session: at("session_id"),
        model: at("model"),
        adapter: at("adapter"),
        stream: at("streaming"),
        status: at("status"),
        error: at("error_message"),
        finish_reason: at("finish_reason"),
    }))
}

struct Blis {
    id: Option<usize>,
    arrival: usize,
    send: usize,
    first: usize,
    last: usize,
    input: usize,
    output: usize,
    server_input: Option<usize>,
    prefix_group: Option<usize>,
    prefix: Option<usize>,
    reason: Option<usize>,
    user: Option<usize>,
    tenant: Option<usize>,
    tier: Option<usize>,
    session: Option<usize>,
    model: Option<usize>,
    adapter: Option<usize>,
    stream: Option<usize>,
    status: Option<usize>,
    error: Option<usize>,
    finish_reason: Option<usize>,
}

impl TableRows for Blis {
    fn row(&self, record: &Record<'_>, clock: &mut Clock) -> Result<Row, Wrong> {
        let arrival = microseconds(record, "arrival_time_us", self.arrival)?
            .ok_or(Wrong::new("arrival_time_us", Why::Missing))?;
        // Zero is what BLIS writes for a time that it has not seen.
        let seen = |name, at| Ok(microseconds(record, name, at)?.filter(|time| *time > 0));
        // The client of BLIS may hold a request back until one of its own is done. What a server saw begins with the sending,
        // and BLIS replays and scores from there, too.
        let sent = seen("send_time_us", self.send)?.unwrap_or(arrival);
        let since = |name: &'static str, time: Option<i64>| match time {
            Some(time) if time < sent => {
                Err(Wrong::new(name, Why::Contradicts("is before the request was sent".to_owned())))
            }
            time => Ok(time.map(|time| (time - sent) as f64 / 1e9)),
        };
        let ttft_s = since("first_chunk_time_us", seen("first_chunk_time_us", self.first)?)?;
        let e2e_s = since("last_chunk_time_us", seen("last_chunk_time_us", self.last)?)?;

        let output_tokens = tokens_in("output_tokens", record.get(self.output))?;
        let ratio = self.reason.map_or(Ok(None), |at| real_in("reason_ratio", record.get(at)))?;
        let reasoning = match (ratio, output_tokens) {
            (Some(ratio), _) if !(0.0..=1.0).contains(&ratio) => {
                return Err(Wrong::new("reason_ratio", Why::Malformed(ratio.to_string())));
            }
            // Zero is its default, and says nothing.
            (Some(ratio), Some(output)) if ratio > 0.0 => {
                Some((ratio * f64::from(output)).round() as u32)
            }
            _ => None,
        };
        let error = name_in(record, self.error);
        let http_status = error.as_deref().and_then(http_status);
        let status = match self.status.and_then(|at| record.get(at)) {
            Some("ok") => Some("ok"),
            Some("error") if http_status == Some(429) => Some("limited"),
            Some("error") => Some("failed"),
            Some("timeout") => Some("cancelled"),
            // Still under way when the simulation ended: nobody knows.
            Some("incomplete") | None => None,
            Some(other) => return Err(Wrong::new("status", Why::Malformed(clip(other)))),
        };
        let stream = match self.stream.and_then(|at| record.get(at)) {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => return Err(Wrong::new("streaming", Why::Malformed(clip(other)))),
        };
        Ok(Row {
            // `request_id` is a row's number, and the same in every file.
            request_id: name_in(record, self.id),
            session_id: name_in(record, self.session),
            ts_arrival: Some(clock.after(sent)),
            clock: Some(RELATIVE.to_owned()),
            model: name_in(record, self.model),
            model_version: name_in(record, self.adapter),
            tenant: name_in(record, self.tenant),
            user: name_in(record, self.user),
            tier: name_in(record, self.tier),
            prompt_tokens: self.prompt(record)?,
            output_tokens,
            reasoning_tokens: reasoning,
            ttft_s,
            e2e_s,
            stream,
            status: status.map(str::to_owned),
            http_status,
            error,
            finish_reason: name_in(record, self.finish_reason),
            ..Row::default()
        })
    }
}

impl Blis {
    /// What the server counted, where it said so; else what was sent, to which a shared prefix comes on top.
    fn prompt(&self, record: &Record<'_>) -> Result<Option<u32>, Wrong> {
        let count = |name: &'static str, at: Option<usize>| {
            tokens_in(name, at.and_then(|at| record.get(at)))
        };
        let counted = count("server_input_tokens", self.server_input)?.filter(|count| *count > 0);
        if counted.is_some() {
            return Ok(counted);
        }
        let input = count("input_tokens", Some(self.input))?;
        let shares = self.prefix_group.and_then(|at| record.get(at)).is_some();
        let prefix = if shares { count("prefix_length", self.prefix)?.unwrap_or(0) } else { 0 };
        let whole = |input: u32| {
            let absurd = || Wrong::new("prefix_length", Why::Absurd(prefix.to_string()));
            input.checked_add(prefix).ok_or_else(absurd)
        };
        input.map(whole).transpose()
    }
}

fn microseconds(record: &Record<'_>, name: &'static str, at: usize) -> Result<Option<i64>, Wrong> {
    let time = record.get(at).map(|text| moment(text, MILLISECOND / 1000));
    time.transpose().map_err(|why| Wrong::new(name, why))
}

/// `HTTP 503: ...`
fn http_status(error: &str) -> Option<u16> {
    let code = error.strip_prefix("HTTP ")?.get(..3)?.parse().ok()?;
    (100..600).contains(&code).then_some(code)
}
