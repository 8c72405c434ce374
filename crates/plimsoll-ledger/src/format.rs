//! The formats that requests are logged in, told apart by what they hold.
//!
//! A format is a table (a heading, then records of fields) or JSON (lines, an array, or one document). It says whether a
//! file is its own by the first record, and then turns records into rows: see [`Page`]. Files, packing, threads and limits
//! are not its business.

mod gateway;
pub(crate) mod traces;

use serde_json::Value;

use crate::page::Page;

/// What a user says about a file beyond its content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// `--map prompt_tokens=ctx`: the ledger's column, and the file's.
    pub(crate) map: Vec<(String, String)>,
    /// `--format NAME`, instead of detection.
    pub(crate) format: Option<String>,
}

/// The first record of a table.
pub(crate) struct Heading<'a> {
    /// The file, as the user or its archive names it.
    pub(crate) file: &'a str,
    /// The names of the columns, trimmed; or, in a file without a heading, the first record.
    pub(crate) columns: &'a [String],
}

impl Heading<'_> {
    /// Where a column is.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }
}

/// One record of a table.
pub(crate) struct Record<'a> {
    /// Its line, counted from one.
    pub(crate) line: u64,
    pub(crate) fields: &'a csv::StringRecord,
}

impl Record<'_> {
    /// The field, trimmed; none where it is absent or empty.
    pub(crate) fn get(&self, index: usize) -> Option<&str> {
        self.fields.get(index).map(str::trim).filter(|field| !field.is_empty())
    }

    /// The record as it could stand in the file.
    pub(crate) fn text(&self) -> &str {
        self.fields.as_slice()
    }
}

/// A table, once its heading is known.
pub(crate) trait Table: Send + Sync {
    /// Whether the first record is data, too.
    fn headless(&self) -> bool {
        false
    }

    /// Turns a record into rows. It has as many fields as the heading.
    fn record(&self, record: &Record<'_>, page: &mut Page);
}

/// JSON, once its first record is known.
pub(crate) trait Json: Send + Sync {
    /// Turns a record into rows: a line, an element of an array, or a document.
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page);
}

/// A format of tables.
pub(crate) struct TableFormat {
    /// The name that `--format` takes, and the default source.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) about: &'static str,
    /// A reader, where the heading is this format's.
    pub(crate) open: fn(&Heading<'_>) -> Option<Box<dyn Table>>,
}

/// A format of JSON.
pub(crate) struct JsonFormat {
    /// The name that `--format` takes, and the default source.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) about: &'static str,
    /// A reader, where the first record is this format's.
    pub(crate) open: fn(file: &str, first: &Value) -> Option<Box<dyn Json>>,
}

/// What a file is called that is read as the user says.
const MAPPED: &str = "mapped";

/// Why a file is of no format.
pub(crate) enum NoFormat {
    /// What it looks like.
    Unknown(String),
    /// What is wrong with the mapping.
    Map(String),
}

fn table_formats() -> impl Iterator<Item = &'static TableFormat> {
    traces::TRACE_TABLES.iter().chain(gateway::GATEWAY_TABLES)
}

fn json_formats() -> impl Iterator<Item = &'static JsonFormat> {
    traces::TRACE_JSONS.iter().chain(gateway::GATEWAY_JSONS)
}

/// The formats that are known: the name of each, and what it is.
pub fn formats() -> Vec<(&'static str, &'static str)> {
    let tables = table_formats().map(|format| (format.name, format.about));
    let mut formats: Vec<_> =
        tables.chain(json_formats().map(|format| (format.name, format.about))).collect();
    formats.sort_unstable();
    formats.dedup_by_key(|(name, _)| *name);
    formats
}

/// The format of a table: as told, as mapped, or as its heading shows.
pub(crate) fn table(
    heading: &Heading<'_>,
    told: &Told,
) -> Result<(&'static str, Box<dyn Table>), NoFormat> {
    if !told.map.is_empty() {
        let table = traces::mapped_table(heading, &told.map).map_err(NoFormat::Map)?;
        return Ok((MAPPED, table));
    }
    let named =
        |format: &&TableFormat| told.format.as_deref().is_none_or(|name| format.name == name);
    let found = table_formats().filter(named).find_map(|f| Some((f.name, (f.open)(heading)?)));
    found.ok_or_else(|| {
        let columns = crate::value::clip(&heading.columns.join(","));
        NoFormat::Unknown(format!("a table of `{columns}`"))
    })
}

/// The format of JSON: as told, as mapped, or as its first record shows.
pub(crate) fn json(
    file: &str,
    first: &Value,
    told: &Told,
) -> Result<(&'static str, Box<dyn Json>), NoFormat> {
    if !told.map.is_empty() {
        return Ok((MAPPED, traces::mapped_json(&told.map).map_err(NoFormat::Map)?));
    }
    let named =
        |format: &&JsonFormat| told.format.as_deref().is_none_or(|name| format.name == name);
    let found = json_formats().filter(named).find_map(|f| Some((f.name, (f.open)(file, first)?)));
    found.ok_or_else(|| {
        let keys: Vec<&str> =
            first.as_object().into_iter().flat_map(|o| o.keys()).map(String::as_str).collect();
        NoFormat::Unknown(format!("JSON of `{}`", crate::value::clip(&keys.join("`, `"))))
    })
}
