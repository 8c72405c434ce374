//! Logs into the ledger.
//!
//! One thread reads a file and cuts it into stretches, the others turn stretches into pages of columns, and the caller's
//! writes the pages in the order of the file, so that the ledger is the same on any number of threads.

mod feed;
mod pages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{IngestError, LedgerError};
use crate::fetch::{self, LogFile};
use crate::format::Told;
use crate::page::{Key, Origin, Page};
use crate::row::{OutcomeRow, RejectRow, SeriesRow};
use crate::store::{Batch, Disk};
use crate::unpack;

/// What an ingest is asked to do.
#[derive(Clone, Debug)]
pub struct IngestInput {
    /// Files, directories, patterns, `-` for standard input, or URLs of objects.
    pub files: Vec<PathBuf>,
    /// The ledger; made where it is not there.
    pub ledger: PathBuf,
    /// The name of the source, instead of the format's: part of what makes a row unique.
    pub source: Option<String>,
    /// The format, instead of the detected one.
    pub format: Option<String>,
    /// The ledger's columns, each with the file's that it is read from.
    pub map: Vec<(String, String)>,
    /// When clocks that count from the start of a log started, in nanoseconds from 1970.
    pub start_ns: i64,
    /// What finds logs by URL, where the program was built for it.
    pub find: Option<fetch::FindLogs>,
    /// Threads to use; the ledger does not depend on it.
    pub threads: NonZero<usize>,
}

/// What an ingest has done. Every row that was read is counted once: it was added, rejected, a duplicate, or nothing that the
/// ledger keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ingested {
    /// Rows that were read.
    pub rows_in: u64,
    /// Rows that are new in the ledger: requests, outcomes and windows of series.
    pub rows_added: u64,
    /// Rows that could not be taken; `rejects.parquet` has each with its reason.
    pub rejected: u64,
    /// Rows that the ledger has already, or that were read twice.
    pub duplicates: u64,
    /// Records that are no requests, such as spans of other kinds.
    pub passed_over: u64,
    /// Of the rows added, requests.
    pub requests_added: u64,
    /// Of the rows added, outcomes of tasks.
    pub outcomes_added: u64,
    /// Of the rows added, windows of series.
    pub series_added: u64,
    /// Requests in the ledger now.
    pub requests_in_ledger: u64,
    /// The same for each file, in the order they were read.
    pub files: Vec<IngestedFile>,
    /// What should be known.
    pub warnings: Vec<String>,
}

/// What came of one file, or of one member of an archive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IngestedFile {
    /// As it was named.
    pub file: String,
    /// What it was read as.
    pub format: String,
    /// Rows that were read.
    pub rows_in: u64,
    /// Rows that are new.
    pub rows_added: u64,
    /// Rows that could not be taken.
    pub rejected: u64,
    /// Rows that were there already.
    pub duplicates: u64,
    /// Records that are no requests, by what they are.
    pub passed_over: BTreeMap<String, u64>,
    /// Reasons of rejects: the first row of each, and how many share it.
    pub reasons: Vec<Reason>,
    /// Rows that were stamped before a row above them.
    pub backwards: u64,
}

/// Why rows were rejected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// The field; none where it is the whole row.
    pub field: Option<String>,
    /// What is wrong with the first.
    pub reason: String,
    /// The line of the first.
    pub line: u64,
    /// How many rows have the field wrong.
    pub rows: u64,
}

/// Reads logs into a ledger: all of them, or nothing.
pub fn ingest(input: &IngestInput) -> Result<Ingested, IngestError> {
    ingest_on(input, Disk::default())
}

/// Keeps what was counted over windows: all of it, or nothing. Windows that the ledger has already, of the same source, class, time and replica, are duplicates, so
/// that the same may be recorded again.
pub fn record_series(
    ledger: &Path,
    source: &str,
    rows: Vec<SeriesRow>,
) -> Result<Ingested, IngestError> {
    let mut file = FileTally::new(source);
    "series".clone_into(&mut file.done.format);
    let rows_in = rows.len() as u64;
    let mut batch = Batch::open(ledger, Disk::default())?;
    let keyed = rows.into_iter().map(|mut row| {
        row.source = Some(source.to_owned());
        row.clock.get_or_insert_with(|| "absolute".to_owned());
        (series_key(&row), row)
    });
    file.series = batch.series(keyed.collect());
    batch.commit()?;
    file.done.rows_in = rows_in;
    file.done.rows_added = file.series;
    file.done.duplicates = rows_in - file.series;
    let mut done = Ingested::default();
    done.add(file);
    done.requests_in_ledger = crate::Ledger::open(ledger)?.rows();
    Ok(done)
}

/// Reads bytes as a file of a log, and says what is in them, without keeping any of it.
pub fn inspect(
    name: &str,
    bytes: &[u8],
    threads: NonZero<usize>,
) -> Result<Vec<IngestedFile>, IngestError> {
    let input = IngestInput {
        files: Vec::new(),
        ledger: PathBuf::new(),
        source: None,
        format: None,
        map: Vec::new(),
        start_ns: 0,
        find: None,
        threads,
    };
    let told = Told { map: Vec::new(), format: None };
    let mut files = Vec::new();
    unpack::open_bytes(name, bytes, &mut |name: &str, content| -> Result<(), IngestError> {
        let mut file = FileTally::new(name);
        pages::read(name, content, &told, &input, &mut |format, page| {
            file.count(format, &page);
            Ok(())
        })?;
        files.push(file.done);
        Ok(())
    })?;
    Ok(files)
}

/// A ledger that is there for one question, and gone with this.
#[derive(Debug)]
pub struct Passing {
    /// The ledger.
    pub ledger: crate::Ledger,
    /// What was read into it.
    pub ingested: Ingested,
    directory: PathBuf,
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Whatever cannot be removed is in the system's own place for such things.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Reads logs into a ledger of their own, beside which nothing is kept: so that a log is profiled as a ledger is.
pub fn ingest_in_passing(input: &IngestInput) -> Result<Passing, IngestError> {
    let directory = passing_directory()?;
    let input = IngestInput { ledger: directory.clone(), ..input.clone() };
    let done = ingest_on(&input, Disk::fleeting()).and_then(|ingested| {
        let ledger = crate::Ledger::open(&directory)?;
        Ok(Passing { ledger, ingested, directory: directory.clone() })
    });
    if done.is_err() {
        let _ = std::fs::remove_dir_all(&directory);
    }
    done
}

/// A directory that nobody had before; those of processes that were killed are cleared away.
fn passing_directory() -> Result<PathBuf, LedgerError> {
    const PREFIX: &str = "plimsoll-passing-";
    let (root, own) = (std::env::temp_dir(), std::process::id());
    for entry in std::fs::read_dir(&root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let process = process.and_then(|process| process.parse::<u32>().ok());
        let gone = |process: u32| {
            std::path::Path::new("/proc/self").exists()
                && !PathBuf::from(format!("/proc/{process}")).exists()
        };
        if process.is_some_and(gone) {
            // Somebody else's is theirs to clear away.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    for number in 0.. {
        let path = root.join(format!("{PREFIX}{own}-{number}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(LedgerError::Disk { path, doing: "made", source }),
        }
    }
    unreachable!("some number is free")
}

pub(crate) fn ingest_on(input: &IngestInput, disk: Disk) -> Result<Ingested, IngestError> {
    if let Some(format) = &input.format
        && !crate::formats().iter().any(|(name, _)| name == format)
    {
        return Err(IngestError::Format { name: format.clone() });
    }
    let mut files = Vec::new();
    for argument in &input.files {
        if let Some(url) = fetch::url_of(argument) {
            let find = input.find.ok_or_else(|| IngestError::NotBuilt { name: url.to_owned() })?;
            files.extend(find(url)?.into_iter().map(LogFile::Remote));
            continue;
        }
        let found = unpack::files_of(argument).map_err(|source| IngestError::Unreadable {
            name: argument.display().to_string(),
            line: 0,
            source,
        })?;
        // What a directory holds beside logs is passed over; a file that was named must be one.
        let searched = argument.is_dir();
        files.extend(found.into_iter().map(|path| LogFile::Local { path, searched }));
    }
    let mut batch = Batch::open(&input.ledger, disk)?;
    // Rows of plain text are seldom shorter than this many bytes; packed ones are, and cost a little more.
    let bytes: u64 = files.iter().filter_map(LogFile::bytes).sum();
    batch.expect(bytes / 40);
    let told = Told { map: input.map.clone(), format: input.format.clone() };
    let mut done = Ingested::default();
    for log in &files {
        let (file, searched) = (log.name(), log.searched());
        log.open(&mut |name: &str, content| {
            let in_archive = name != file;
            let mut file = FileTally::new(name);
            let read = pages::read(name, content, &told, input, &mut |format, page| {
                file.take(format, page, &mut batch)
            });
            match read {
                Err(IngestError::Unknown { looks, .. }) if searched || in_archive => {
                    done.warnings.push(format!("{name}: passed over: it is {looks}"));
                    Ok(())
                }
                Err(IngestError::Empty { .. }) if searched || in_archive => {
                    done.warnings.push(format!("{name}: passed over: it is empty"));
                    Ok(())
                }
                Err(error) => Err(error),
                Ok(()) => {
                    done.add(file);
                    Ok(())
                }
            }
        })?;
    }
    if done.files.is_empty() {
        return Err(IngestError::Nothing { files: files.len() });
    }
    batch.commit()?;
    done.requests_in_ledger = crate::Ledger::open(&input.ledger)?.rows();
    Ok(done)
}

impl Ingested {
    fn add(&mut self, file: FileTally) {
        let FileTally { done, outcomes, series, naive, relative, latest: _, seen: _ } = file;
        self.rows_in += done.rows_in;
        self.rows_added += done.rows_added;
        self.rejected += done.rejected;
        self.duplicates += done.duplicates;
        self.passed_over += done.passed_over.values().sum::<u64>();
        self.outcomes_added += outcomes;
        self.series_added += series;
        self.requests_added += done.rows_added - outcomes - series;
        let name = &done.file;
        if naive {
            self.warnings.push(format!("{name}: times have no zone, and were taken for UTC"));
        }
        if relative {
            self.warnings.push(format!(
                "{name}: times count from the start of the log; `--start TIME` says when that was"
            ));
        }
        if done.backwards > 0 {
            let rows = done.backwards;
            self.warnings.push(format!("{name}: {rows} rows are stamped before a row above them"));
        }
        self.files.push(done);
    }
}

/// One file, being counted.
struct FileTally {
    done: IngestedFile,
    outcomes: u64,
    series: u64,
    naive: bool,
    relative: bool,
    latest: Option<i64>,
    /// Which reason each field was rejected for first: an index into the reasons.
    seen: BTreeMap<(Option<String>, String), usize>,
}

impl FileTally {
    fn new(name: &str) -> Self {
        let done = IngestedFile {
            file: name.to_owned(),
            format: String::new(),
            rows_in: 0,
            rows_added: 0,
            rejected: 0,
            duplicates: 0,
            passed_over: BTreeMap::new(),
            reasons: Vec::new(),
            backwards: 0,
        };
        Self {
            done,
            outcomes: 0,
            series: 0,
            naive: false,
            relative: false,
            latest: None,
            seen: BTreeMap::new(),
        }
    }

    /// Counts what a page holds; all of it would be new.
    fn count(&mut self, format: &str, page: &Page) -> u64 {
        let done = &mut self.done;
        format.clone_into(&mut done.format);
        done.rows_in += page.read;
        self.naive |= page.origin.zoned == Some(false);
        self.relative |= page.relative;
        for at in page.stamps.iter().flatten().filter(|_| !page.by_session) {
            done.backwards += u64::from(self.latest.is_some_and(|latest| *at < latest));
            self.latest = self.latest.max(Some(*at));
        }
        for (what, rows) in &page.others {
            *done.passed_over.entry(what.clone().into_owned()).or_default() += rows;
        }
        for reject in &page.rejects {
            done.rejected += 1;
            let reason = reject.reason.clone().unwrap_or_default();
            // What is between backticks is the row's own.
            let kind: String = reason.split('`').step_by(2).collect();
            let at = *self.seen.entry((reject.field.clone(), kind)).or_insert_with(|| {
                let (field, line) = (reject.field.clone(), reject.line.unwrap_or(0));
                done.reasons.push(Reason { field, reason: reason.clone(), line, rows: 0 });
                done.reasons.len() - 1
            });
            done.reasons[at].rows += 1;
        }
        let rows = (page.requests.len() + page.outcomes.len() + page.series.len()) as u64;
        done.rows_added += rows;
        rows
    }

    /// Takes a page into the batch.
    fn take(&mut self, format: &str, page: Page, batch: &mut Batch) -> Result<(), LedgerError> {
        let rows = self.count(format, &page);
        let requests = match page.requests.len() {
            0 => 0,
            _ => batch.requests(&page.requests.finish(), &page.keys, &page.stamps)?,
        };
        let outcomes =
            batch.outcomes(page.outcomes.into_iter().map(|r| (outcome_key(&r), r)).collect());
        let series = batch.series(page.series.into_iter().map(|r| (series_key(&r), r)).collect());
        batch.rejects(page.rejects.into_iter().map(|r| (reject_key(&r), r)).collect())?;
        let known = rows - (requests + outcomes + series);
        self.done.rows_added -= known;
        self.done.duplicates += known;
        self.outcomes += outcomes;
        self.series += series;
        Ok(())
    }
}

fn text(value: Option<&String>) -> &str {
    value.map_or("", String::as_str)
}

fn outcome_key(row: &OutcomeRow) -> u128 {
    Key::new("outcomes", text(row.source.as_ref()))
        .text(text(row.task_id.as_ref()))
        .text(text(row.label.as_ref()))
        .number(row.ts.unwrap_or(i64::MIN) as u64)
        .number(row.success.map_or(2, u64::from))
        .number(row.value.map_or(u64::MAX, f64::to_bits))
        .finish()
}

fn series_key(row: &SeriesRow) -> u128 {
    let mut key = Key::new("series", text(row.source.as_ref()))
        .text(text(row.class.as_ref()))
        .number(row.start.unwrap_or(i64::MIN) as u64)
        .number(row.window_s.map_or(u64::MAX, f64::to_bits));
    // Keys of rows without them are what they were before there were any.
    if let Some(replica) = &row.replica {
        key = key.text(replica);
    }
    if row.marginal == Some(true) {
        key = key.number(1);
    }
    key.finish()
}

fn reject_key(row: &RejectRow) -> u128 {
    Key::new("rejects", text(row.file.as_ref()))
        .number(row.line.unwrap_or(0))
        .text(text(row.field.as_ref()))
        .text(text(row.reason.as_ref()))
        .text(text(row.text.as_ref()))
        .finish()
}

/// Where rows of a file come from.
fn origin(name: &str, format: &str, input: &IngestInput) -> Origin {
    Origin {
        source: input.source.clone().unwrap_or_else(|| format.to_owned()),
        file: name.to_owned(),
        start: input.start_ns,
        zoned: None,
    }
}
