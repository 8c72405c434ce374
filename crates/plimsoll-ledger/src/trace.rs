//! Traces of requests as others write them.
//!
//! A module knows lines, one knows tables and one knows JSON; here formats are told apart, and rows become a trace.

mod json;
mod lines;
mod table;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use plimsoll_units::Tokens;
use plimsoll_workload::{Trace, TraceRequest};

use crate::error::TraceError;
use crate::reject::{Reject, Rejects, Why};
use lines::Lines;

/// What a trace is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Told by its heading, or its first line.
    Auto,
    /// JSON lines of `timestamp` in ms, `input_length`, `output_length` and `hash_ids` of 512 tokens.
    Mooncake,
    /// JSON lines of the same names with `chat_id` and `type`: `timestamp` in seconds, `hash_ids` of 16 tokens.
    Bailian,
    /// `TIMESTAMP,ContextTokens,GeneratedTokens`, stamped with date and time.
    Azure,
    /// `arrived_at,num_prefill_tokens,num_decode_tokens`, in seconds.
    Vidur,
    /// `request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size`, in seconds.
    SplitwiseSim,
    /// `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`, in seconds; later files have sessions, too.
    BurstGpt,
}

/// Reads a trace, packed with gzip or not. The name is the user's, for messages; the content says what it is.
///
/// Rows come out in order of time, and time begins with the first. What should be known of the file is in the notes of the trace.
pub fn read_trace(
    input: impl Read,
    name: &str,
    format: Format,
) -> Result<(Trace, Rejects), TraceError> {
    let mut lines = Lines::of(input, name)?;
    let Some(first) = lines.next_text()? else {
        return Err(TraceError::Empty { name: name.to_owned() });
    };
    let first = match first {
        Ok(text) => text.to_owned(),
        Err(_) => return Err(unknown(name, "bytes that are no text".to_owned())),
    };
    let mut rows = Rows::default();
    let (format, unread, block_tokens) = if first.starts_with('{') {
        let (format, block_tokens) = json::detect(name, &first, format)?;
        let unread = json::read(&mut lines, &first, format, block_tokens, &mut rows)?;
        (format, unread, block_tokens)
    } else {
        let table = table::detect(name, &first, format)?;
        let unread = table.read(&mut lines, &mut rows)?;
        (table.format(), unread, 0)
    };
    rows.finish(name, format, &unread, block_tokens)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "any kind",
            Self::Mooncake => "Mooncake",
            Self::Bailian => "Qwen-Bailian",
            Self::Azure => "Azure",
            Self::Vidur => "Vidur",
            Self::SplitwiseSim => "SplitwiseSim",
            Self::BurstGpt => "BurstGPT",
        })
    }
}

fn unknown(name: &str, looks: String) -> TraceError {
    let help =
        "traces of these are read: Azure, BurstGPT, Mooncake, Qwen-Bailian, SplitwiseSim, Vidur"
            .to_owned();
    TraceError::Unknown { name: name.to_owned(), looks, help }
}

/// A value as a message shows it.
fn clip(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// What is wrong with a row, and with which field of it.
type Wrong = (&'static str, Why);

/// A row as it is written; what it has in common with others is not yet numbered.
struct Row {
    /// Nanoseconds from an origin that all rows share.
    stamp: i64,
    prompt: u64,
    output: u64,
    class: Option<String>,
    session: Option<u64>,
    content: Vec<u64>,
}

/// Rows on their way to a trace.
#[derive(Default)]
struct Rows {
    requests: Vec<(i64, TraceRequest)>,
    classes: BTreeMap<String, u16>,
    rejects: Rejects,
    /// Rows before the latest stamp above them.
    late: u64,
    latest: Option<i64>,
}

impl Rows {
    /// Takes a row, or the reason not to.
    fn take(&mut self, line: u64, row: Result<Row, Wrong>) {
        self.rejects.read += 1;
        let taken = row.and_then(|row| self.push(row));
        if let Err((field, why)) = taken {
            self.rejects.rows.push(Reject { line, field, why });
        }
    }

    fn push(&mut self, row: Row) -> Result<(), Wrong> {
        let class = row.class.unwrap_or_else(|| "all".to_owned());
        let next = self.classes.len();
        let class = match self.classes.get(&class) {
            Some(number) => *number,
            None => {
                let number = u16::try_from(next).map_err(|_| ("class", Why::Classes))?;
                self.classes.insert(class, number);
                number
            }
        };
        self.late += u64::from(self.latest.is_some_and(|latest| row.stamp < latest));
        self.latest = self.latest.max(Some(row.stamp));
        let request = TraceRequest {
            at: 0.0,
            prompt: Tokens::new(row.prompt),
            output: Tokens::new(row.output),
            cached: None,
            class,
            session: row.session,
            content: row.content,
        };
        self.requests.push((row.stamp, request));
        Ok(())
    }

    fn finish(
        mut self,
        name: &str,
        format: Format,
        unread: &[String],
        block_tokens: u64,
    ) -> Result<(Trace, Rejects), TraceError> {
        let rejects = self.rejects;
        // By whole nanoseconds: seconds of a long trace are coarser.
        self.requests.sort_by_key(|(stamp, _)| *stamp);
        let Some((origin, _)) = self.requests.first() else {
            let first = rejects.rows.first().cloned();
            return Err(TraceError::NoRequests {
                name: name.to_owned(),
                rows: rejects.read,
                first,
            });
        };
        let origin = *origin;
        let mut classes = vec![String::new(); self.classes.len()];
        for (class, number) in self.classes {
            classes[usize::from(number)] = class;
        }
        let requests = self.requests.into_iter().map(|(stamp, request)| {
            // Stamps are within a century of zero, so that the difference fits.
            TraceRequest { at: (stamp - origin) as f64 / 1e9, ..request }
        });
        let mut trace = Trace::new(requests.collect(), classes, block_tokens)
            .map_err(|source| TraceError::Fault { name: name.to_owned(), source })?
            .noted(format!("{name}: {} requests of {format}", rejects.read - rejects.len() as u64));
        if !rejects.is_empty() {
            trace =
                trace.noted(format!("{} of {} rows were rejected", rejects.len(), rejects.read));
        }
        if !unread.is_empty() {
            trace = trace.noted(format!("not read: {}", unread.join(", ")));
        }
        if self.late > 0 {
            trace = trace.noted(format!(
                "{} rows were stamped before a row above them; sorted by time",
                self.late
            ));
        }
        if let Some(tick) = trace.tick() {
            let note = format!(
                "stamps lie on a tick of {:.3} s ({} of them for {} requests): bursts within it are the clock's",
                tick.seconds,
                tick.stamps,
                trace.len()
            );
            trace = trace.noted(note);
        }
        Ok((trace, rejects))
    }
}

/// Numbers for names, in the order they appear.
struct Numbers<K>(BTreeMap<K, u64>);

impl<K: Ord> Numbers<K> {
    fn new() -> Self {
        Self(BTreeMap::new())
    }

    fn of(&mut self, name: K) -> u64 {
        let next = self.0.len() as u64;
        *self.0.entry(name).or_insert(next)
    }
}
