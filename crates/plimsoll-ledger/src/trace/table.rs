//! Tables: comma-separated, with a heading; columns are found by name, not by place.

use std::borrow::Cow;

use super::lines::Lines;
use super::value::{SECOND, date_and_time, moment, tokens};
use super::{Format, Numbers, Row, Rows, Why, Wrong, clip, unknown};
use crate::error::TraceError;

/// The columns of a format.
struct Columns {
    format: Format,
    at: &'static str,
    prompt: &'static str,
    output: &'static str,
    /// What requests are counted by; all of them where the file has them.
    classes: &'static [&'static str],
    session: Option<&'static str>,
    time: fn(&str) -> Result<i64, Why>,
    /// Whether a request without output is known to have failed.
    fails: bool,
}

const FORMATS: [Columns; 4] = [
    Columns {
        format: Format::Azure,
        at: "TIMESTAMP",
        prompt: "ContextTokens",
        output: "GeneratedTokens",
        classes: &[],
        session: None,
        time: date_and_time,
        fails: false,
    },
    Columns {
        format: Format::Vidur,
        at: "arrived_at",
        prompt: "num_prefill_tokens",
        output: "num_decode_tokens",
        classes: &[],
        session: None,
        time: seconds,
        fails: false,
    },
    Columns {
        format: Format::SplitwiseSim,
        at: "arrival_timestamp",
        prompt: "prompt_size",
        output: "token_size",
        classes: &["application_id"],
        session: None,
        time: seconds,
        fails: false,
    },
    Columns {
        format: Format::BurstGpt,
        at: "Timestamp",
        prompt: "Request tokens",
        output: "Response tokens",
        classes: &["Model", "Log Type"],
        session: Some("Session ID"),
        time: seconds,
        fails: true,
    },
];

fn seconds(text: &str) -> Result<i64, Why> {
    moment(text, SECOND)
}

/// A table whose heading was understood.
pub(super) struct Table {
    columns: &'static Columns,
    heading: Vec<String>,
    at: usize,
    prompt: usize,
    output: usize,
    classes: Vec<usize>,
    session: Option<usize>,
}

/// Which format has this heading; a format that was asked for must have it.
pub(super) fn detect(name: &str, heading: &str, format: Format) -> Result<Table, TraceError> {
    let formats = const { &FORMATS };
    let heading: Vec<String> =
        fields(heading).iter().map(|field| field.trim().to_owned()).collect();
    let find = |column: &str| heading.iter().position(|h| h.eq_ignore_ascii_case(column));
    let missing = |columns: &Columns| {
        [columns.at, columns.prompt, columns.output].into_iter().find(|c| find(c).is_none())
    };
    let columns = match formats.iter().find(|columns| columns.format == format) {
        Some(columns) => columns,
        None if format != Format::Auto => {
            return Err(unknown(name, format!("a table, and {format} writes JSON lines")));
        }
        None => match formats.iter().find(|columns| missing(columns).is_none()) {
            Some(columns) => columns,
            None => return Err(no_format(name, &heading, formats, &find)),
        },
    };
    let column = |column: &'static str| {
        let (name, has) = (name.to_owned(), listed(&heading));
        let missing = TraceError::Column { name, format: columns.format, missing: column, has };
        find(column).ok_or(missing)
    };
    Ok(Table {
        columns,
        at: column(columns.at)?,
        prompt: column(columns.prompt)?,
        output: column(columns.output)?,
        classes: columns.classes.iter().filter_map(|c| find(c)).collect(),
        session: columns.session.and_then(find),
        heading,
    })
}

fn no_format(
    name: &str,
    heading: &[String],
    formats: &[Columns],
    find: &dyn Fn(&str) -> Option<usize>,
) -> TraceError {
    let lengths = |c: &&Columns| find(c.prompt).is_some() && find(c.output).is_some();
    if let Some(columns) = formats.iter().find(lengths) {
        let looks = format!("lengths without arrivals: it has no column `{}`", columns.at);
        let help =
            "a trace must say when requests came; lengths alone are for a class's distribution";
        return TraceError::Unknown { name: name.to_owned(), looks, help: help.to_owned() };
    }
    unknown(name, format!("text that begins with {}", listed(heading)))
}

fn listed(heading: &[String]) -> String {
    format!("`{}`", clip(&heading.join(",")))
}

impl Table {
    pub(super) fn format(&self) -> Format {
        self.columns.format
    }

    /// Takes every row; the columns that nobody asked for come back.
    pub(super) fn read(
        &self,
        lines: &mut Lines<'_>,
        rows: &mut Rows,
    ) -> Result<Vec<String>, TraceError> {
        let mut sessions = Numbers::new();
        while let Some(text) = lines.next_text()? {
            let row = text.map_err(|why| ("", why)).and_then(|text| self.row(text, &mut sessions));
            rows.take(lines.number(), row);
        }
        let used = |i: usize| {
            [self.at, self.prompt, self.output].contains(&i)
                || self.classes.contains(&i)
                || self.session == Some(i)
        };
        let unread = self.heading.iter().enumerate().filter(|(i, _)| !used(*i));
        Ok(unread.map(|(_, column)| format!("`{}`", clip(column))).collect())
    }

    fn row(&self, text: &str, sessions: &mut Numbers<String>) -> Result<Row, Wrong> {
        let fields = fields(text);
        if fields.len() != self.heading.len() {
            let problem = format!("has {} fields, not {}", fields.len(), self.heading.len());
            return Err(("", Why::Shape(problem)));
        }
        let field = |i: usize| fields[i].trim();
        let columns = self.columns;
        let count = |i: usize, name| tokens(field(i)).map_err(|why| (name, why));
        let stamp = (columns.time)(field(self.at)).map_err(|why| (columns.at, why))?;
        let (prompt, output) =
            (count(self.prompt, columns.prompt)?, count(self.output, columns.output)?);
        if output == 0 {
            return Err((columns.output, if columns.fails { Why::Failed } else { Why::Zero }));
        }
        if prompt == 0 {
            return Err((columns.prompt, Why::Zero));
        }
        let classes: Vec<&str> = self.classes.iter().map(|i| field(*i)).collect();
        let session = self.session.map(field).filter(|session| !session.is_empty());
        Ok(Row {
            stamp,
            prompt,
            output,
            class: (!classes.is_empty()).then(|| classes.join(", ")),
            session: session.map(|session| sessions.of(session.to_owned())),
            content: Vec::new(),
        })
    }
}

/// The fields of a line. Quotes are rare in such files, and no field of them goes over its line.
fn fields(line: &str) -> Vec<Cow<'_, str>> {
    if !line.contains('"') {
        return line.split(',').map(Cow::Borrowed).collect();
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
    record.iter().map(|field| Cow::Owned(field.to_owned())).collect()
}
