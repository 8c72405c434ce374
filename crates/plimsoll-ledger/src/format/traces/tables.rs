//! Tables of arrivals and lengths: Azure, Vidur, SplitwiseSim, BurstGPT. Columns are found by name, not by place.

use super::{ABSOLUTE, Clock, Heading, RELATIVE, Record, Row, TableRows, Wrong, find, name_in};
use crate::value::{SECOND, instant, moment, tokens_in};

/// `TIMESTAMP,ContextTokens,GeneratedTokens`, and `NumImages` in the trace of 2025, whose context counts images, too.
pub(crate) fn azure(heading: &Heading<'_>) -> Option<Box<dyn TableRows>> {
    open(&AZURE, heading)
}

/// `arrived_at,num_prefill_tokens,num_decode_tokens`, or the lengths without arrivals.
pub(crate) fn vidur(heading: &Heading<'_>) -> Option<Box<dyn TableRows>> {
    open(&VIDUR, heading)
}

/// `request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size`.
///
/// Its requests are numbered from zero in every file, so that their numbers name nothing.
pub(crate) fn splitwise_sim(heading: &Heading<'_>) -> Option<Box<dyn TableRows>> {
    open(&SPLITWISE_SIM, heading)
}

/// `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`; the third file has sessions in between.
pub(crate) fn burst_gpt(heading: &Heading<'_>) -> Option<Box<dyn TableRows>> {
    open(&BURST_GPT, heading)
}

/// What a format calls its columns.
struct Columns {
    at: &'static str,
    /// Seconds from the start of the file, rather than a date.
    relative: bool,
    /// Whether lengths without arrivals are this format's, too.
    lengths: bool,
    prompt: &'static str,
    output: &'static str,
    model: Option<&'static str>,
    feature: Option<&'static str>,
    session: Option<&'static str>,
    images: Option<&'static str>,
    /// Whether a request without output is known to have failed.
    fails: bool,
}

const AZURE: Columns = Columns {
    at: "TIMESTAMP",
    relative: false,
    lengths: false,
    prompt: "ContextTokens",
    output: "GeneratedTokens",
    model: None,
    feature: None,
    session: None,
    images: Some("NumImages"),
    fails: false,
};

const VIDUR: Columns = Columns {
    at: "arrived_at",
    relative: true,
    lengths: true,
    prompt: "num_prefill_tokens",
    output: "num_decode_tokens",
    images: None,
    ..AZURE
};

const SPLITWISE_SIM: Columns = Columns {
    at: "arrival_timestamp",
    lengths: false,
    prompt: "prompt_size",
    output: "token_size",
    feature: Some("application_id"),
    ..VIDUR
};

const BURST_GPT: Columns = Columns {
    at: "Timestamp",
    prompt: "Request tokens",
    output: "Response tokens",
    model: Some("Model"),
    feature: Some("Log Type"),
    session: Some("Session ID"),
    fails: true,
    ..SPLITWISE_SIM
};

/// A table whose heading was understood.
struct Lengths {
    columns: &'static Columns,
    at: Option<usize>,
    prompt: usize,
    output: usize,
    model: Option<usize>,
    feature: Option<usize>,
    session: Option<usize>,
    images: Option<usize>,
}

fn open(columns: &'static Columns, heading: &Heading<'_>) -> Option<Box<dyn TableRows>> {
    let optional = |name: Option<&str>| name.and_then(|name| find(heading, name));
    let at = find(heading, columns.at);
    if at.is_none() && !columns.lengths {
        return None;
    }
    Some(Box::new(Lengths {
        columns,
        at,
        prompt: find(heading, columns.prompt)?,
        output: find(heading, columns.output)?,
        model: optional(columns.model),
        feature: optional(columns.feature),
        session: optional(columns.session),
        images: optional(columns.images),
    }))
}

impl TableRows for Lengths {
    fn row(&self, record: &Record<'_>, clock: &mut Clock) -> Result<Row, Wrong> {
        let columns = self.columns;
        let ts_arrival = match self.at {
            None => None,
            Some(at) => {
                let text = record.get(at).unwrap_or_default();
                let stamp = if columns.relative {
                    moment(text, SECOND).map(|t| clock.after(t))
                } else {
                    instant(text, &mut clock.zoned)
                };
                Some(stamp.map_err(|why| Wrong::new(columns.at, why))?)
            }
        };
        let prompt_tokens = tokens_in(columns.prompt, record.get(self.prompt))?;
        let output_tokens = tokens_in(columns.output, record.get(self.output))?;
        let status = columns.fails.then(|| if output_tokens == Some(0) { "failed" } else { "ok" });
        let feature = match (self.images, columns.images) {
            (Some(at), Some(name)) => {
                // Not how many, but whether: what has images has a shape of its own.
                let images = tokens_in(name, record.get(at))?;
                images.map(|images| if images == 0 { "text" } else { "images" }.to_owned())
            }
            _ => name_in(record, self.feature),
        };
        let reference = if columns.relative { RELATIVE } else { ABSOLUTE };
        Ok(Row {
            session_id: name_in(record, self.session),
            ts_arrival,
            clock: ts_arrival.map(|_| reference.to_owned()),
            model: name_in(record, self.model),
            feature,
            prompt_tokens,
            output_tokens,
            status: status.filter(|_| output_tokens.is_some()).map(str::to_owned),
            ..Row::default()
        })
    }
}
