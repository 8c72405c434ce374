//! Traces that others publish, tables in the ledger's own columns, and verdicts that come later.
//!
//! A format that gives requests implements [`TableRows`] or [`JsonRows`], which know nothing of pages: the ledger fills its
//! pages from them, and [`read_trace`](crate::read_trace) its trace, so that both read a file alike.

mod agents;
mod blis;
mod mapped;
mod mooncake;
mod outcomes;
mod own;
mod servegen;
mod tables;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::{Heading, Json, JsonFormat, Record, Table, TableFormat};
use crate::page::{Origin, Page, Wrong};
use crate::row::Row;

pub(crate) use agents::SESSIONS;
pub(crate) use blis::blis;
pub(crate) use mapped::{mapped_json, mapped_table};
pub(crate) use mooncake::{BAILIAN, MOONCAKE};
pub(crate) use own::{OWN_JSON, own_table};
pub(crate) use tables::{azure, burst_gpt, splitwise_sim, vidur};

pub(crate) const TRACE_TABLES: &[TableFormat] = &[
    TableFormat {
        name: "azure",
        about: "Azure's traces of 2023 and 2024, and of 2025 with images",
        open: |heading| azure(heading).map(|table| table as Box<dyn Table>),
    },
    TableFormat {
        name: "vidur",
        about: "Vidur's processed traces, with or without arrivals",
        open: |heading| vidur(heading).map(|table| table as Box<dyn Table>),
    },
    TableFormat {
        name: "splitwise-sim",
        about: "traces of SplitwiseSim",
        open: |heading| splitwise_sim(heading).map(|table| table as Box<dyn Table>),
    },
    TableFormat {
        name: "burstgpt",
        about: "BurstGPT, with and without sessions",
        open: |heading| burst_gpt(heading).map(|table| table as Box<dyn Table>),
    },
    TableFormat {
        name: "blis",
        about: "the data of TraceV2 and V3 that BLIS observes or simulates",
        open: |heading| blis(heading).map(|table| table as Box<dyn Table>),
    },
    TableFormat {
        name: "servegen",
        about: "ServeGen's rates of a client, in windows of ten minutes",
        open: servegen::rates,
    },
    TableFormat {
        name: "plimsoll",
        about: "a table in the ledger's own columns",
        open: |heading| own_table(heading).map(|table| table as Box<dyn Table>),
    },
    TableFormat {
        name: "outcomes",
        about: "how tasks ended: `task_id` and `success`",
        open: outcomes::table,
    },
];

pub(crate) const TRACE_JSONS: &[JsonFormat] = &[
    JsonFormat {
        name: "mooncake",
        about: "Mooncake's traces, with the blocks of their prompts",
        open: |_, first| MOONCAKE.open(first).map(|json| json as Box<dyn Json>),
    },
    JsonFormat {
        name: "bailian",
        about: "traces of Qwen-Bailian, with chats and the blocks of their prompts",
        open: |_, first| BAILIAN.open(first).map(|json| json as Box<dyn Json>),
    },
    JsonFormat {
        name: "servegen",
        about: "ServeGen's lengths of a client, in blocks of six hours",
        open: servegen::lengths,
    },
    JsonFormat {
        name: "kv-cache-tester",
        about: "sessions of a coding agent, one a document, with the blocks of their prompts",
        open: |_, first| SESSIONS.open(first).map(|json| json as Box<dyn Json>),
    },
    JsonFormat {
        name: "plimsoll",
        about: "JSON lines in the ledger's own columns",
        open: |_, first| OWN_JSON.open(first).map(|json| json as Box<dyn Json>),
    },
    JsonFormat {
        name: "outcomes",
        about: "how tasks ended: `task_id` and `success`",
        open: outcomes::json,
    },
];

/// What moments of a file are read with.
pub(crate) struct Clock {
    /// What a relative clock starts at, in nanoseconds from 1970.
    start: i64,
    /// Whether moments have a zone, once one has been read.
    zoned: Option<bool>,
}

impl Clock {
    pub(crate) fn new(start: i64) -> Self {
        Self { start, zoned: None }
    }

    fn of(origin: &Origin) -> Self {
        Self { start: origin.start, zoned: origin.zoned }
    }

    /// The moment so many nanoseconds after the start.
    fn after(&self, nanoseconds: i64) -> i64 {
        self.start.saturating_add(nanoseconds)
    }
}

/// A table of requests, one a record.
pub(crate) trait TableRows: Table {
    fn row(&self, record: &Record<'_>, clock: &mut Clock) -> Result<Row, Wrong>;
}

impl<T: TableRows> Table for T {
    fn record(&self, record: &Record<'_>, page: &mut Page) {
        let mut clock = Clock::of(&page.origin);
        let row = self.row(record, &mut clock);
        page.origin.zoned = clock.zoned;
        page.request(record.line, record.text(), row);
    }
}

/// JSON of requests, any number of them a record.
pub(crate) trait JsonRows: Json {
    fn rows(
        &self,
        object: &Map<String, Value>,
        clock: &mut Clock,
        take: &mut dyn FnMut(Result<Row, Wrong>),
    );
}

/// JSON of requests, before its first record is known.
pub(crate) struct JsonKind {
    pub(crate) is: fn(&Value) -> bool,
    pub(crate) reader: fn() -> Box<dyn JsonRows>,
}

impl JsonKind {
    fn open(&self, first: &Value) -> Option<Box<dyn JsonRows>> {
        (self.is)(first).then(self.reader)
    }
}

impl<T: JsonRows> Json for T {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        let Value::Object(object) = value else {
            return page.reject(line, text, &no_object());
        };
        let mut clock = Clock::of(&page.origin);
        self.rows(object, &mut clock, &mut |row| page.request(line, text, row));
        page.origin.zoned = clock.zoned;
    }
}

/// What is wrong with JSON of another shape.
pub(crate) fn no_object() -> Wrong {
    Wrong::shape("is no JSON object")
}

/// Where a column is, in whatever case it is written.
fn find(heading: &Heading<'_>, name: &str) -> Option<usize> {
    heading.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
}

/// A name in a field of a table.
fn name_in(record: &Record<'_>, at: Option<usize>) -> Option<String> {
    record.get(at?).map(str::to_owned)
}

/// A name in JSON, written as text or as a whole number.
fn name_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

const ABSOLUTE: &str = "absolute";
const RELATIVE: &str = "relative";
