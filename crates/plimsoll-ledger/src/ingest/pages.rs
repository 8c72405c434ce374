//! Text and Parquet, cut into stretches.

use std::io::{self, BufRead, Cursor, Read};

use csv::StringRecord;
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use serde::de::{DeserializeSeed, Deserializer as _, SeqAccess, Visitor};
use serde_json::Value;

use super::feed::{Put, feed};
use super::{IngestInput, origin};
use crate::column::read::Opened;
use crate::column::{Columns, foreign};
use crate::error::{IngestError, LedgerError};
use crate::format::{self, Heading, Json, Record, Table, Told};
use crate::page::{Page, Wrong};
use crate::reject::Why;
use crate::row::Row;
use crate::unpack::{Columnar, Content};

/// The longest record: a request with its whole text in it.
const RECORD_MAX: u64 = 64 << 20;
/// Records of a stretch, and their bytes: enough that handing them on costs nothing.
const STRETCH_ROWS: usize = 8192;
const STRETCH_BYTES: usize = 1 << 20;

/// Takes the pages of a file, with the name of its format.
pub(super) type Take<'a> = dyn FnMut(&str, Page) -> Result<(), LedgerError> + Send + 'a;

/// Reads a file into pages.
pub(super) fn read(
    name: &str,
    content: Content<'_>,
    told: &Told,
    input: &IngestInput,
    take: &mut Take<'_>,
) -> Result<(), IngestError> {
    let file = Reading { name, told, input };
    match content {
        Content::Text(text) => file.text(text, take),
        Content::Parquet(Columnar::File(bytes)) => file.parquet(Opened::new(bytes), take),
        Content::Parquet(Columnar::Memory(bytes)) => file.parquet(Opened::new(bytes), take),
    }
}

/// A file that is being read.
#[derive(Clone, Copy)]
struct Reading<'a> {
    name: &'a str,
    told: &'a Told,
    input: &'a IngestInput,
}

impl Reading<'_> {
    fn unreadable(&self, line: u64) -> impl Fn(io::Error) -> IngestError + '_ {
        move |source| IngestError::Unreadable { name: self.name.to_owned(), line, source }
    }

    fn text(
        &self,
        mut text: Box<dyn BufRead + '_>,
        take: &mut Take<'_>,
    ) -> Result<(), IngestError> {
        // An array may be one line of any length: it is told by its first byte, and read as it comes.
        let begins = text.fill_buf().map_err(self.unreadable(0))?;
        let begins = begins.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begins).trim_ascii_start();
        if begins.first() == Some(&b'[') {
            let mut mark = [0; 3];
            let marked = text.fill_buf().is_ok_and(|all| all.starts_with(b"\xef\xbb\xbf"));
            if marked {
                text.read_exact(&mut mark).map_err(self.unreadable(0))?;
            }
            return self.array(text, take);
        }
        let mut lines = Lines { input: &mut text, number: 0 };
        let first = lines.next().map_err(self.unreadable(0))?;
        let Some(first) = first else {
            return Err(IngestError::Empty { name: self.name.to_owned() });
        };
        let number = lines.number;
        let mut head = match first {
            Line::Text(bytes) => bytes,
            Line::TooLong => return Err(self.unknown("one line of more than 64 MiB")),
        };
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
        }
        if std::str::from_utf8(&head).is_err() || head.contains(&0) {
            return Err(self.unknown("bytes that are no text"));
        }
        match head.trim_ascii_start().first() {
            Some(b'{') => self.objects(head, number, text, take),
            _ => self.table(head, number, text, take),
        }
    }

    fn unknown(&self, looks: impl Into<String>) -> IngestError {
        IngestError::Unknown { name: self.name.to_owned(), looks: looks.into() }
    }

    /// A heading, then records.
    fn table(
        &self,
        head: Vec<u8>,
        line: u64,
        mut rest: Box<dyn BufRead + '_>,
        take: &mut Take<'_>,
    ) -> Result<(), IngestError> {
        let delimiter = delimiter(&head);
        let mut records = Records { lines: Lines { input: &mut rest, number: line }, delimiter };
        let mut first = StringRecord::new();
        if !fields(&records.whole(head).map_err(self.unreadable(line))?, delimiter, &mut first) {
            return Err(self.unknown("a heading that cannot be read"));
        }
        let columns: Vec<String> = first.iter().map(|field| field.trim().to_owned()).collect();
        let heading = Heading { file: self.name, columns: &columns };
        let (format, table) =
            format::table(&heading, self.told).map_err(|problem| self.no_format(problem))?;
        let parse = Parse { table: table.as_ref(), columns: columns.len() };
        let read = |put: Put<'_, Stretch>| {
            let mut stretch = Stretch::default();
            if table.headless() {
                parse_again(&first, line, delimiter, &mut stretch);
            }
            loop {
                let last = records.lines.number;
                let more = records.next(&mut stretch).map_err(self.unreadable(last))?;
                let full =
                    stretch.records.len() >= STRETCH_ROWS || stretch.text.len() > STRETCH_BYTES;
                // The last stretch is put, too, full or not.
                let done = if full || !more { !put(std::mem::take(&mut stretch)) } else { false };
                if done || !more {
                    return Ok(());
                }
            }
        };
        let origin = origin(self.name, format, self.input);
        let parse = |stretch: Stretch, page: &mut Page| {
            let mut record = StringRecord::new();
            for (line, text) in stretch.records() {
                match text {
                    Text::TooLong => {
                        let problem = "is longer than the 64 MiB of a record: is there a quote that never closes?";
                        page.reject(line, "", &Wrong::shape(problem));
                    }
                    Text::Whole(text) => parse.text(line, text, delimiter, &mut record, page),
                }
            }
        };
        feed(&origin, self.input.threads, read, parse, &mut |page| take(format, page))
    }

    fn no_format(&self, problem: format::NoFormat) -> IngestError {
        match problem {
            format::NoFormat::Unknown(looks) => self.unknown(looks),
            format::NoFormat::Map(problem) => {
                IngestError::Map { name: self.name.to_owned(), problem }
            }
        }
    }

    /// Objects: one a line, or over several.
    fn objects(
        &self,
        head: Vec<u8>,
        number: u64,
        mut rest: Box<dyn BufRead + '_>,
        take: &mut Take<'_>,
    ) -> Result<(), IngestError> {
        let mut lines = Lines { input: &mut rest, number };
        let mut first: Result<Value, _> = serde_json::from_slice(&head);
        let mut second = None;
        if first.is_err() {
            // A document over several lines, or lines of which the first is broken: the second tells.
            second = lines.next().map_err(self.unreadable(number))?;
            if let Some(Line::Text(text)) = &second {
                first = serde_json::from_slice(text).or(first);
            }
        }
        let number = lines.number;
        let Ok(value) = first else {
            let second = match second {
                Some(Line::Text(text)) => text,
                _ => Vec::new(),
            };
            return self.documents(Cursor::new(head).chain(Cursor::new(second)).chain(rest), take);
        };
        let (format, json) = format::json(self.name, &value, self.told)
            .map_err(|problem| self.no_format(problem))?;
        drop(value);
        let began = [(number - u64::from(second.is_some()), Line::Text(head))];
        let began: Vec<(u64, Line)> =
            began.into_iter().chain(second.map(|line| (number, line))).collect();
        let read = |put: Put<'_, Vec<(u64, Line)>>| {
            let mut lines = Lines { input: &mut rest, number };
            let mut stretch = began;
            let mut bytes = 0;
            loop {
                let line = lines.next().map_err(self.unreadable(lines.number))?;
                let Some(line) = line else { break };
                if let Line::Text(text) = &line {
                    bytes += text.len();
                }
                stretch.push((lines.number, line));
                if stretch.len() >= STRETCH_ROWS || bytes > STRETCH_BYTES {
                    bytes = 0;
                    if !put(std::mem::take(&mut stretch)) {
                        return Ok(());
                    }
                }
            }
            put(stretch);
            Ok(())
        };
        let parse = |stretch: Vec<(u64, Line)>, page: &mut Page| {
            for (number, line) in stretch {
                parse_line(json.as_ref(), number, &line, page);
            }
        };
        let origin = origin(self.name, format, self.input);
        feed(&origin, self.input.threads, read, parse, &mut |page| take(format, page))
    }

    /// Objects one after the other, each over several lines.
    fn documents(&self, text: impl Read, take: &mut Take<'_>) -> Result<(), IngestError> {
        let values = serde_json::Deserializer::from_reader(io::BufReader::new(text)).into_iter();
        let values = values.map(|value: Result<Value, serde_json::Error>| {
            value.map_err(|error| self.unknown(format!("JSON that cannot be read: {error}")))
        });
        self.values(
            |each| {
                for value in values {
                    if !each(value?)? {
                        break;
                    }
                }
                Ok(())
            },
            take,
        )
    }

    /// An array of objects.
    fn array(&self, text: impl Read, take: &mut Take<'_>) -> Result<(), IngestError> {
        let mut text = serde_json::Deserializer::from_reader(io::BufReader::new(text));
        self.values(
            |each| {
                let mut failed = None;
                let walked = text.deserialize_seq(Elements { each, failed: &mut failed });
                match (failed, walked) {
                    (Some(error), _) => Err(error),
                    (None, Err(error)) => {
                        Err(self.unknown(format!("a JSON array that cannot be read: {error}")))
                    }
                    (None, Ok(())) => Ok(()),
                }
            },
            take,
        )
    }

    /// Values, however they come.
    fn values(
        &self,
        walk: impl FnOnce(&mut Each<'_>) -> Result<(), IngestError>,
        take: &mut Take<'_>,
    ) -> Result<(), IngestError> {
        // The first value says what they are, and a format must be known before any page is begun.
        let mut opened: Option<(&'static str, Box<dyn Json>)> = None;
        let mut number = 0;
        let mut page: Option<Page> = None;
        let mut each = |value: Value| -> Result<bool, IngestError> {
            number += 1;
            if opened.is_none() {
                let found = format::json(self.name, &value, self.told);
                opened = Some(found.map_err(|problem| self.no_format(problem))?);
            }
            let Some((format, json)) = &opened else { return Ok(false) };
            let page_now =
                page.get_or_insert_with(|| Page::new(origin(self.name, format, self.input)));
            json.record(number, &value.to_string(), &value, page_now);
            if page_now.read >= STRETCH_ROWS as u64 {
                let next = Page::new(page_now.origin.clone());
                take(format, std::mem::replace(page_now, next)).map_err(IngestError::from)?;
            }
            Ok(true)
        };
        walk(&mut each)?;
        match (opened, page) {
            (Some((format, _)), Some(page)) => Ok(take(format, page)?),
            _ => Err(IngestError::Empty { name: self.name.to_owned() }),
        }
    }

    fn parquet<R: ChunkReader + 'static>(
        &self,
        opened: parquet::errors::Result<Opened<R>>,
        take: &mut Take<'_>,
    ) -> Result<(), IngestError> {
        let damaged = |error: ParquetError| IngestError::Parquet {
            name: self.name.to_owned(),
            problem: error.to_string(),
        };
        let opened = opened.map_err(damaged)?;
        let fields = opened.schema().root_schema().get_fields().iter();
        let columns: Vec<String> = fields.map(|field| field.name().to_owned()).collect();
        let has = |name: &str| columns.iter().any(|column| column == name);
        let lengths = has("prompt_tokens") || has("output_tokens");
        if self.told.map.is_empty() && lengths && opened.is_of(Row::schema()) {
            let name = "plimsoll";
            let origin = origin(self.name, name, self.input);
            let read = |put: Put<'_, (u64, Columns)>| {
                let mut line = 1;
                for group in 0..opened.groups() {
                    let mut group =
                        opened.group(group, Row::schema(), |_| true).map_err(damaged)?;
                    while let Some(batch) = group.next().map_err(damaged)? {
                        let rows = batch.rows as u64;
                        if !put((line, batch)) {
                            return Ok(());
                        }
                        line += rows;
                    }
                }
                Ok(())
            };
            let parse = |(line, batch): (u64, Columns), page: &mut Page| {
                for (line, row) in (line..).zip(Row::of_columns(&batch)) {
                    page.request(line, "", Ok(row));
                }
            };
            return feed(&origin, self.input.threads, read, parse, &mut |page| take(name, page));
        }
        let heading = Heading { file: self.name, columns: &columns };
        let (format, table) =
            format::table(&heading, self.told).map_err(|problem| self.no_format(problem))?;
        let parse_row = Parse { table: table.as_ref(), columns: columns.len() };
        let origin = origin(self.name, format, self.input);
        let read = |put: Put<'_, (u64, foreign::Batch)>| {
            let mut line = 1;
            let each = |batch: foreign::Batch| {
                let first = line;
                line += batch.rows as u64;
                put((first, batch))
            };
            foreign::each_batch(&opened, STRETCH_ROWS, each).map_err(damaged)
        };
        let parse = |(line, batch): (u64, foreign::Batch), page: &mut Page| {
            batch.each_record(|row, record| match record {
                Ok(record) => parse_row.record(line + row, &record, page),
                Err(problem) => page.reject(line + row, "", &Wrong::shape(problem)),
            });
        };
        feed(&origin, self.input.threads, read, parse, &mut |page| take(format, page))
    }
}

/// Takes one value; false once no more are wanted.
type Each<'a> = dyn FnMut(Value) -> Result<bool, IngestError> + 'a;

/// Records of a table.
struct Parse<'a> {
    table: &'a dyn Table,
    columns: usize,
}

impl Parse<'_> {
    /// A record of one line or of several. Where several do not make a record together, a quote was not meant as one, and each
    /// line stands for itself.
    fn text(
        &self,
        line: u64,
        text: &[u8],
        delimiter: u8,
        record: &mut StringRecord,
        page: &mut Page,
    ) {
        let ends = text.iter().filter(|byte| **byte == b'\n').count();
        let whole = fields(text, delimiter, record);
        if ends > 1 && (!whole || record.len() != self.columns) {
            let lines = text.split_inclusive(|byte| *byte == b'\n');
            for (number, own) in (line..).zip(lines).filter(|(_, own)| !own.trim_ascii().is_empty())
            {
                let quoteless = own.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
                match std::str::from_utf8(own) {
                    Ok(text) if quoteless => {
                        split(text.trim_end_matches(['\n', '\r']), delimiter, record);
                        self.record(number, record, page);
                    }
                    Ok(_) if fields(own, delimiter, record) => self.record(number, record, page),
                    _ => page.reject(number, "", &Wrong::shape("is no text")),
                }
            }
        } else if whole {
            self.record(line, record, page);
        } else {
            page.reject(line, "", &Wrong::shape("is no text"));
        }
    }

    fn record(&self, line: u64, fields: &StringRecord, page: &mut Page) {
        let record = Record { line, fields };
        if fields.len() == self.columns {
            self.table.record(&record, page);
        } else if fields.len() > 1 || !fields.get(0).unwrap_or_default().trim().is_empty() {
            let problem = format!("has {} fields, not {}", fields.len(), self.columns);
            page.reject(line, record.text(), &Wrong::shape(problem));
        }
    }
}

fn parse_line(json: &dyn Json, number: u64, line: &Line, page: &mut Page) {
    let bytes = match line {
        Line::Text(bytes) => bytes,
        Line::TooLong => {
            return page.reject(number, "", &Wrong::shape("is longer than the 64 MiB of a record"));
        }
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return page.reject(number, "", &Wrong::shape("is no text"));
    };
    let text = text.trim();
    match serde_json::from_str::<Value>(text) {
        Ok(value) => json.record(number, text, &value, page),
        Err(error) => {
            let why = Why::Shape(format!("is no JSON: {error}"));
            page.reject(number, text, &Wrong::new("", why));
        }
    }
}

/// What a table is separated by: what its heading has most of.
fn delimiter(heading: &[u8]) -> u8 {
    let count = |by: u8| heading.iter().filter(|byte| **byte == by).count();
    // The comma where there is nothing to choose.
    [b';', b'\t', b','].into_iter().max_by_key(|by| count(*by)).unwrap_or(b',')
}

/// Lines that are not blank.
struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
}

/// A line, with its end.
enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// How a line was read.
enum LineRead {
    Whole,
    /// Its beginning is there, the rest was passed over.
    TooLong,
}

impl Lines<'_> {
    fn next(&mut self) -> io::Result<Option<Line>> {
        let mut text = Vec::new();
        Ok(match self.next_into(&mut text)? {
            None => None,
            Some(LineRead::Whole) => Some(Line::Text(text)),
            Some(LineRead::TooLong) => Some(Line::TooLong),
        })
    }

    /// Adds the next line that is not blank.
    fn next_into(&mut self, text: &mut Vec<u8>) -> io::Result<Option<LineRead>> {
        loop {
            let begin = text.len();
            match self.line_into(text)? {
                Some(LineRead::Whole) if text[begin..].trim_ascii().is_empty() => {
                    text.truncate(begin);
                }
                read => return Ok(read),
            }
        }
    }

    /// Adds the next line, whatever it is.
    fn line_into(&mut self, text: &mut Vec<u8>) -> io::Result<Option<LineRead>> {
        let read = (&mut *self.input).take(RECORD_MAX).read_until(b'\n', text)? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read == RECORD_MAX && text.last() != Some(&b'\n') {
            self.skip()?;
            return Ok(Some(LineRead::TooLong));
        }
        Ok(Some(LineRead::Whole))
    }

    /// Passes over the rest of a line.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffer.len(), |end| end + 1);
            let done = buffer.is_empty() || end.is_some();
            self.input.consume(length);
            if done {
                return Ok(());
            }
        }
    }
}

/// Records of a table, one after the other: a line each, or several where a quote is open at the end of one.
struct Records<'a> {
    lines: Lines<'a>,
    delimiter: u8,
}

/// Records that are handed on together.
#[derive(Default)]
struct Stretch {
    text: Vec<u8>,
    /// The line of each record, and where it ends in the text; none where it is too long.
    records: Vec<(u64, Option<usize>)>,
}

/// A record as it stands in the file.
enum Text<'a> {
    Whole(&'a [u8]),
    TooLong,
}

impl Stretch {
    fn records(&self) -> impl Iterator<Item = (u64, Text<'_>)> {
        let mut begin = 0;
        self.records.iter().map(move |(line, end)| match end {
            None => (*line, Text::TooLong),
            Some(end) => {
                let text = &self.text[begin..*end];
                begin = *end;
                (*line, Text::Whole(text))
            }
        })
    }
}

/// Whether a record is within quotes at the end of a line. As in any table, a quote opens only where a field begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// At the beginning of a field.
    Begin,
    /// In a field without quotes, or after one with.
    Bare,
    Quoted,
    /// After a quote within quotes: the end of them, or the first of two.
    Closing,
}

impl Quoting {
    fn after(self, line: &[u8], delimiter: u8) -> Self {
        if self != Self::Quoted && !line.contains(&b'"') {
            return Self::Begin;
        }
        let state = line.iter().fold(self, |state, byte| match (state, *byte) {
            (Self::Quoted, b'"') => Self::Closing,
            (Self::Quoted, _) => Self::Quoted,
            (Self::Closing, b'"') => Self::Quoted,
            (Self::Begin, b'"') => Self::Quoted,
            (_, byte) if byte == delimiter || byte == b'\n' => Self::Begin,
            _ => Self::Bare,
        });
        if state == Self::Quoted { state } else { Self::Begin }
    }
}

impl Records<'_> {
    /// Adds the next record; false once there is none.
    fn next(&mut self, stretch: &mut Stretch) -> io::Result<bool> {
        let begin = stretch.text.len();
        let read = self.lines.next_into(&mut stretch.text)?;
        let line = self.lines.number;
        match read {
            None => Ok(false),
            Some(LineRead::TooLong) => {
                stretch.text.truncate(begin);
                stretch.records.push((line, None));
                Ok(true)
            }
            Some(LineRead::Whole) => {
                let whole = self.complete(&mut stretch.text, begin)?;
                if !whole {
                    stretch.text.truncate(begin);
                }
                stretch.records.push((line, whole.then_some(stretch.text.len())));
                Ok(true)
            }
        }
    }

    /// Adds lines until no quote is open; false where that is too long.
    fn complete(&mut self, text: &mut Vec<u8>, begin: usize) -> io::Result<bool> {
        let mut quoting = Quoting::Begin.after(&text[begin..], self.delimiter);
        while quoting == Quoting::Quoted {
            if (text.len() - begin) as u64 > RECORD_MAX {
                return Ok(false);
            }
            let more = text.len();
            if self.lines.line_into(text)?.is_none() {
                break;
            }
            quoting = quoting.after(&text[more..], self.delimiter);
        }
        Ok(true)
    }

    /// The first record, of which a line has been read.
    fn whole(&mut self, mut text: Vec<u8>) -> io::Result<Vec<u8>> {
        self.complete(&mut text, 0)?;
        Ok(text)
    }
}

/// The fields of a record; false where it is no text, or more than one record.
fn fields(text: &[u8], delimiter: u8, record: &mut StringRecord) -> bool {
    record.clear();
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let text = text.trim_end_matches(['\n', '\r']);
    if !text.as_bytes().contains(&b'"') {
        split(text, delimiter, record);
        return true;
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(text.as_bytes());
    let read = reader.read_record(record).is_ok();
    // What is left over would be lost.
    read && matches!(reader.read_record(&mut StringRecord::new()), Ok(false))
}

fn split(text: &str, delimiter: u8, record: &mut StringRecord) {
    record.clear();
    text.split(char::from(delimiter)).for_each(|field| record.push_field(field));
}

/// A first record that is data, too.
fn parse_again(first: &StringRecord, line: u64, delimiter: u8, stretch: &mut Stretch) {
    for (i, field) in first.iter().enumerate() {
        if i > 0 {
            stretch.text.push(delimiter);
        }
        stretch.text.extend_from_slice(field.as_bytes());
    }
    stretch.records.push((line, Some(stretch.text.len())));
}

/// The elements of an array, one at a time.
struct Elements<'a, 'b> {
    each: &'a mut Each<'b>,
    failed: &'a mut Option<IngestError>,
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(value) = elements.next_element_seed(Whole)? {
            match (self.each)(value) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    *self.failed = Some(error);
                    return Err(serde::de::Error::custom("stopped"));
                }
            }
        }
        Ok(())
    }
}

/// A value, whatever it is.
struct Whole;

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        serde::Deserialize::deserialize(deserializer)
    }
}
