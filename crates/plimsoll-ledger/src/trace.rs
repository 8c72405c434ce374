//! Traces of requests as others write them.
//!
//! The readers of the ledger's formats know rows, and a module knows lines; here formats are told apart, and rows become a trace.

mod lines;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use plimsoll_units::Tokens;
use plimsoll_workload::{Trace, TraceRequest};
use serde_json::{Map, Value};

use crate::error::TraceError;
use crate::format::traces::{
    BAILIAN, Clock, JsonKind, MOONCAKE, OWN_JSON, SESSIONS, TableRows, azure, blis, burst_gpt,
    no_object, own_table, splitwise_sim, vidur,
};
use crate::format::{Heading, Record};
use crate::page::{Wrong, check};
use crate::reject::{Reject, Rejects, Why};
use crate::row::Row;
use crate::store::Ledger;
use crate::value::clip;
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
    /// The table of TraceV2 or V3: `arrival_time_us,input_tokens,output_tokens` and many more, in microseconds.
    Blis,
    /// The session of an agent in one line, as kv-cache-tester records it, in seconds from its start.
    Agent,
    /// The ledger's own columns, as a table or as JSON lines.
    Plimsoll,
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
    let first = match lines.next_text()? {
        None => return Err(TraceError::Empty { name: name.to_owned() }),
        Some((_, Err(_))) => return Err(unknown(name, "bytes that are no text".to_owned())),
        Some((line, Ok(text))) => (line, text.to_owned()),
    };
    if first.1.starts_with('{') {
        read_json(lines, first, name, format)
    } else {
        read_table(lines, &first.1, name, format)
    }
}

/// The requests of a ledger that can be served again: those that say when they came and how long they were.
///
/// Rows of another clock than the ledger's own have no place among the others, and are rejected with the rest.
pub fn trace_of_ledger(ledger: &Ledger) -> Result<(Trace, Rejects), TraceError> {
    let name = ledger.directory().display().to_string();
    let mut rows = Rows::of(Format::Plimsoll, OWN);
    let clock = ledger.common_clock();
    let mut line = 0;
    ledger.each_row(OWN.iter().chain(OWN_USES).copied(), |row| {
        line += 1;
        let own = row.clock.is_none() || row.clock == clock;
        let row = if own {
            Ok(row)
        } else {
            Err(Wrong::new("clock", Why::Shape("is not the others' clock".to_owned())))
        };
        rows.take(line, row);
    })?;
    rows.finish(&name, &[])
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
            Self::Blis => "BLIS",
            Self::Agent => "kv-cache-tester",
            Self::Plimsoll => "Plimsoll",
        })
    }
}

fn unknown(name: &str, looks: String) -> TraceError {
    let help = "traces of these are read: Azure, BLIS, BurstGPT, kv-cache-tester, Mooncake, Plimsoll, Qwen-Bailian, SplitwiseSim, Vidur";
    TraceError::Unknown { name: name.to_owned(), looks, help: help.to_owned() }
}

/// A format, and what a trace is made of in it.
struct Kind<R> {
    format: Format,
    /// What it calls arrival, prompt and output.
    names: [&'static str; 3],
    /// What else it has of use, for classes, sessions and blocks.
    uses: &'static [&'static str],
    reader: R,
}

type OpenTable = fn(&Heading<'_>) -> Option<Box<dyn TableRows>>;

const TABLES: [Kind<OpenTable>; 6] = [
    Kind {
        format: Format::Azure,
        names: ["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
        uses: &["NumImages"],
        reader: azure,
    },
    Kind {
        format: Format::Vidur,
        names: ["arrived_at", "num_prefill_tokens", "num_decode_tokens"],
        uses: &[],
        reader: vidur,
    },
    Kind {
        format: Format::SplitwiseSim,
        names: ["arrival_timestamp", "prompt_size", "token_size"],
        uses: &["application_id"],
        reader: splitwise_sim,
    },
    Kind {
        format: Format::BurstGpt,
        names: ["Timestamp", "Request tokens", "Response tokens"],
        uses: &["Model", "Log Type", "Session ID"],
        reader: burst_gpt,
    },
    Kind {
        format: Format::Blis,
        names: ["arrival_time_us", "input_tokens", "output_tokens"],
        uses: &[
            "send_time_us",
            "server_input_tokens",
            "prefix_group",
            "prefix_length",
            "model",
            "slo_class",
            "session_id",
            "status",
        ],
        reader: blis,
    },
    Kind { format: Format::Plimsoll, names: OWN, uses: OWN_USES, reader: own_table },
];

const JSONS: [Kind<JsonKind>; 4] = [
    Kind {
        format: Format::Mooncake,
        names: LENGTHS,
        uses: &["hash_ids", "session_id"],
        reader: MOONCAKE,
    },
    Kind {
        format: Format::Bailian,
        names: LENGTHS,
        uses: &["hash_ids", "chat_id", "parent_chat_id", "type"],
        reader: BAILIAN,
    },
    Kind {
        format: Format::Agent,
        names: ["t", "in", "out"],
        uses: &["id", "block_size", "hash_id_scope", "requests"],
        reader: SESSIONS,
    },
    Kind { format: Format::Plimsoll, names: OWN, uses: OWN_USES, reader: OWN_JSON },
];

const LENGTHS: [&str; 3] = ["timestamp", "input_length", "output_length"];
const OWN: [&str; 3] = ["ts_arrival", "prompt_tokens", "output_tokens"];
const OWN_USES: &[&str] = &[
    "clock",
    "session_id",
    "model",
    "feature",
    "tier",
    "cache_read_tokens",
    "status",
    "response_cached",
    "sample_weight",
    "blocks",
    "block_tokens",
    "block_scope",
];

impl<R> Kind<R> {
    /// Those of the columns that nobody asked for.
    fn unread<'a>(&self, columns: impl Iterator<Item = &'a String>) -> Vec<String> {
        let used = self.names.iter().chain(self.uses);
        let unread = columns.filter(|c| !used.clone().any(|used| used.eq_ignore_ascii_case(c)));
        unread.map(|column| format!("`{}`", clip(column))).collect()
    }
}

fn read_table(
    mut lines: Lines<'_>,
    first: &str,
    name: &str,
    format: Format,
) -> Result<(Trace, Rejects), TraceError> {
    let mut fields = csv::StringRecord::new();
    split(first, &mut fields);
    let columns: Vec<String> = fields.iter().map(|field| field.trim().to_owned()).collect();
    let heading = Heading { file: name, columns: &columns };
    let tables = const { &TABLES };
    let (kind, reader) = open_table(name, &heading, tables, format)?;
    let (mut rows, mut clock) = (Rows::of(kind.format, kind.names), Clock::new(0));
    while let Some((line, text)) = lines.next_text()? {
        let row = text.and_then(|text| {
            split(text, &mut fields);
            if fields.len() != columns.len() {
                let (has, wants) = (fields.len(), columns.len());
                return Err(Wrong::shape(format!("has {has} fields, not {wants}")));
            }
            reader.row(&Record { line, fields: &fields }, &mut clock)
        });
        rows.take(line, row);
    }
    rows.finish(name, &kind.unread(columns.iter()))
}

/// Which format has this heading; a format that was asked for must have it.
fn open_table<'a>(
    name: &str,
    heading: &Heading<'_>,
    tables: &'a [Kind<OpenTable>],
    format: Format,
) -> Result<(&'a Kind<OpenTable>, Box<dyn TableRows>), TraceError> {
    let has = |name: &str| heading.columns.iter().any(|c| c.eq_ignore_ascii_case(name));
    let listed = format!("`{}`", clip(&heading.columns.join(",")));
    let opened = |kind: &'a Kind<OpenTable>| {
        let whole = kind.names.iter().all(|name| has(name));
        whole.then(|| (kind.reader)(heading)).flatten().map(|reader| (kind, reader))
    };
    let begins = || unknown(name, format!("text that begins with {listed}"));
    if format == Format::Auto {
        let lengths = |kind: &&Kind<OpenTable>| has(kind.names[1]) && has(kind.names[2]);
        return match (tables.iter().find_map(opened), tables.iter().find(lengths)) {
            (Some(opened), _) => Ok(opened),
            (None, Some(kind)) => Err(TraceError::Unknown {
                name: name.to_owned(),
                looks: format!("lengths without arrivals: it has no column `{}`", kind.names[0]),
                help: "a trace must say when requests came; lengths alone are for a class's distribution"
                    .to_owned(),
            }),
            (None, None) => Err(begins()),
        };
    }
    let Some(kind) = tables.iter().find(|kind| kind.format == format) else {
        return Err(unknown(name, format!("a table, and {format} writes JSON lines")));
    };
    opened(kind).ok_or_else(|| match kind.names.into_iter().find(|name| !has(name)) {
        Some(missing) => {
            TraceError::Column { name: name.to_owned(), format, missing, has: listed.clone() }
        }
        None => begins(),
    })
}

/// The fields of a line. Quotes are rare in such files, and no field of them goes over its line.
fn split(line: &str, fields: &mut csv::StringRecord) {
    fields.clear();
    if !line.contains('"') {
        line.split(',').for_each(|field| fields.push_field(field));
        return;
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    // Whatever the line is, it is text.
    let _ = reader.read_record(fields);
}

fn read_json(
    mut lines: Lines<'_>,
    (line, first): (u64, String),
    name: &str,
    format: Format,
) -> Result<(Trace, Rejects), TraceError> {
    let parsed = serde_json::from_str(&first);
    let jsons = const { &JSONS };
    let kind = json_kind(name, parsed.as_ref().ok(), jsons, format)?;
    let keys = parsed.ok().and_then(|first: Value| first.as_object().cloned()).unwrap_or_default();
    let (reader, mut clock) = ((kind.reader.reader)(), Clock::new(0));
    let mut rows = Rows::of(kind.format, kind.names);
    let mut read = |line: u64, text: Result<&str, Wrong>| match text.and_then(object) {
        Ok(object) => reader.rows(&object, &mut clock, &mut |row| rows.take(line, row)),
        Err(wrong) => rows.take(line, Err(wrong)),
    };
    read(line, Ok(&first));
    while let Some((line, text)) = lines.next_text()? {
        read(line, text);
    }
    rows.finish(name, &kind.unread(keys.keys()))
}

/// Which format the first line is of; whoever names the format means its rows, even where the first of them is wrong.
fn json_kind<'a>(
    name: &str,
    first: Option<&Value>,
    jsons: &'a [Kind<JsonKind>],
    format: Format,
) -> Result<&'a Kind<JsonKind>, TraceError> {
    if first.is_none() && format == Format::Auto {
        return Err(unknown(name, "JSON that is not one object a line".to_owned()));
    }
    let first = first.unwrap_or(&Value::Null);
    if first.get("schema").and_then(Value::as_str) == Some("plimsoll-engine-run/1") {
        return Err(TraceError::Unknown {
            name: name.to_owned(),
            looks: "step logs of an engine".to_owned(),
            help: format!("`plimsoll simulate {name} --run NAME` serves one of its runs again"),
        });
    }
    if format == Format::Auto {
        return jsons.iter().find(|kind| (kind.reader.is)(first)).ok_or_else(|| {
            let keys: Vec<&str> =
                first.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
            unknown(name, format!("JSON lines of `{}`", clip(&keys.join("`, `"))))
        });
    }
    let wanted = jsons.iter().find(|kind| kind.format == format);
    wanted.ok_or_else(|| unknown(name, format!("JSON lines, and {format} writes tables")))
}

fn object(text: &str) -> Result<Map<String, Value>, Wrong> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(no_object()),
        Err(error) => Err(Wrong::shape(format!("is not JSON: {error}"))),
    }
}

/// Rows on their way to a trace.
struct Rows {
    format: Format,
    /// What the file calls arrival, prompt and output.
    names: [&'static str; 3],
    requests: Vec<(i64, TraceRequest)>,
    classes: BTreeMap<String, u16>,
    sessions: BTreeMap<String, u64>,
    /// By name, and by session where names mean nothing beyond it.
    blocks: BTreeMap<(Option<u64>, u64), u64>,
    block_tokens: Option<u32>,
    rejects: Rejects,
    /// Rows before the latest stamp above them.
    late: u64,
    latest: Option<i64>,
    /// Whether a stamp counts from the start of a session.
    by_session: bool,
    /// Rows that stand for more than themselves, or less.
    weighted: u64,
}

impl Rows {
    fn of(format: Format, names: [&'static str; 3]) -> Self {
        Self {
            format,
            names,
            requests: Vec::new(),
            classes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            blocks: BTreeMap::new(),
            block_tokens: None,
            rejects: Rejects::default(),
            late: 0,
            latest: None,
            by_session: false,
            weighted: 0,
        }
    }

    /// Takes a row, or the reason not to.
    fn take(&mut self, line: u64, row: Result<Row, Wrong>) {
        self.rejects.read += 1;
        if let Err(Wrong { field, why }) = row.and_then(|row| self.push(row)) {
            self.rejects.rows.push(Reject { line, field, why });
        }
    }

    fn push(&mut self, row: Row) -> Result<(), Wrong> {
        let [at, prompt, output] = self.names;
        let known = |name, value: Option<u32>| value.ok_or(Wrong::new(name, Why::Missing));
        check(&row)?;
        let stamp = row.ts_arrival.ok_or(Wrong::new(at, Why::Missing))?;
        let lengths = (known(prompt, row.prompt_tokens)?, known(output, row.output_tokens)?);
        if lengths.1 == 0 {
            let failed = row.status.as_deref().is_some_and(|status| status != "ok");
            return Err(Wrong::new(output, if failed { Why::Failed } else { Why::Zero }));
        }
        if lengths.0 == 0 {
            return Err(Wrong::new(prompt, Why::Zero));
        }
        if row.response_cached == Some(true) {
            let why = Why::Shape("says that a cache answered: nothing to serve".to_owned());
            return Err(Wrong::new("response_cached", why));
        }
        if row.sample_weight == Some(0.0) {
            let why = Why::Shape("is zero: it stands for no request".to_owned());
            return Err(Wrong::new("sample_weight", why));
        }
        let blocks = row.blocks.unwrap_or_default();
        if let Some(size) = row.block_tokens {
            let first = *self.block_tokens.get_or_insert(size);
            if first != size {
                let problem = format!("is {size} here, and {first} in a row above");
                return Err(Wrong::new("block_tokens", Why::Contradicts(problem)));
            }
        }
        let class: Vec<String> = [row.model, row.feature, row.tier].into_iter().flatten().collect();
        let class = if class.is_empty() { "all".to_owned() } else { class.join(", ") };
        let next = self.classes.len();
        let class = match self.classes.get(&class) {
            Some(number) => *number,
            None => {
                let number = u16::try_from(next).map_err(|_| Wrong::new("class", Why::Classes))?;
                self.classes.insert(class, number);
                number
            }
        };
        let session = row.session_id.map(|session| number(&mut self.sessions, session));
        if let (Format::Bailian, Some(session), Some(chat)) = (self.format, session, row.trace_id) {
            // A chat that answers this one is of the same conversation.
            self.sessions.entry(chat).or_insert(session);
        }
        let scope = if row.block_scope.as_deref() == Some("session") { session } else { None };
        self.by_session |= row.clock.as_deref() == Some("session");
        self.late += u64::from(self.latest.is_some_and(|latest| stamp < latest));
        self.latest = self.latest.max(Some(stamp));
        let request = TraceRequest {
            at: 0.0,
            prompt: Tokens::new(lengths.0.into()),
            output: Tokens::new(lengths.1.into()),
            cached: row.cache_read_tokens.map(|cached| Tokens::new(cached.into())),
            class,
            session,
            content: blocks.into_iter().map(|id| number(&mut self.blocks, (scope, id))).collect(),
        };
        #[expect(clippy::float_cmp, reason = "exactly one is the weight of a log without sampling")]
        let weighs = row.sample_weight.is_some_and(|weight| weight != 1.0);
        self.weighted += u64::from(weighs);
        self.requests.push((stamp, request));
        Ok(())
    }

    fn finish(mut self, name: &str, unread: &[String]) -> Result<(Trace, Rejects), TraceError> {
        let (rejects, format) = (self.rejects, self.format);
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
            // Stamps are within a century of zero or of 2000, so that the difference fits.
            TraceRequest { at: (stamp - origin) as f64 / 1e9, ..request }
        });
        let block_tokens = u64::from(self.block_tokens.unwrap_or(0));
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
        if self.by_session {
            let note = "times count from the start of a session: nothing says when sessions came";
            trace = trace.noted(note.to_owned());
        }
        if self.weighted > 0 {
            trace = trace.noted(format!(
                "{} requests stand for several by their sample weight, but come once each: the load is not what it was",
                self.weighted
            ));
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

/// A number for a name, in the order that names appear in.
fn number<K: Ord>(numbers: &mut BTreeMap<K, u64>, name: K) -> u64 {
    let next = numbers.len() as u64;
    *numbers.entry(name).or_insert(next)
}
