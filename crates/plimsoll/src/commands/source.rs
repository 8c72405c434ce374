//! Where requests are read from: a ledger, or logs that are read in passing.

use std::num::NonZero;
use std::path::PathBuf;

use plimsoll_ledger::{IngestInput, Ledger, NamedClass, Passing, ingest_in_passing};

use super::ledger::{ledger_failure, not_ingested};
use super::optional::FIND_LOGS;
use super::pool::usage;
use super::threads;
use crate::args::{Global, LogArgs};
use crate::failure::Failure;

/// A ledger that was there, or one that is there for this question.
pub(super) enum Source {
    Kept(Ledger),
    Passing(Passing),
}

impl Source {
    /// What a log was read as, where all files were read alike.
    pub(super) fn format(&self) -> Option<&str> {
        let Self::Passing(passing) = self else { return None };
        let mut formats = passing.ingested.files.iter().map(|file| file.format.as_str());
        let first = formats.next()?;
        formats.all(|format| format == first).then_some(first)
    }

    pub(super) fn ledger(&self) -> &Ledger {
        match self {
            Self::Kept(ledger) => ledger,
            Self::Passing(passing) => &passing.ledger,
        }
    }

    /// Whether it is there for this question only.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Passing(_))
    }

    /// What should be known of logs that were only read for this.
    pub(super) fn warnings(&self) -> Vec<String> {
        let Self::Passing(passing) = self else { return Vec::new() };
        let done = &passing.ingested;
        let mut warnings = Vec::new();
        if done.rejected > 0 {
            let first = done.files.iter().find_map(|file| Some((file, file.reasons.first()?)));
            let such = first.map_or(String::new(), |(file, reason)| {
                let field = reason.field.as_ref().map_or(String::new(), |f| format!("`{f}` "));
                format!(", such as {}:{}: {field}{}", file.file, reason.line, reason.reason)
            });
            warnings
                .push(format!("{} of {} rows were rejected{such}", done.rejected, done.rows_in));
        }
        if done.duplicates > 0 {
            warnings.push(format!("{} rows were there twice, and count once", done.duplicates));
        }
        warnings.extend(done.warnings.iter().cloned());
        warnings
    }

    /// A ledger, or logs that are read in passing.
    pub(super) fn open(
        files: &[PathBuf],
        log: Option<&LogArgs>,
        global: &Global,
    ) -> Result<Self, Failure> {
        let format = log.and_then(|log| log.format.as_ref());
        let map = log.map_or(&[][..], |log| &log.map);
        if let [one] = files
            && (Ledger::is_at(one) || one.is_dir() && one.join("requests").is_dir())
        {
            if format.is_some() || !map.is_empty() {
                return Err(usage(
                    "a ledger needs neither `--format` nor `--map`".to_owned(),
                    "they say how a log is read; leave them out".to_owned(),
                ));
            }
            return Ledger::open(one).map(Self::Kept).map_err(|error| ledger_failure(&error));
        }
        let input = IngestInput {
            files: files.to_vec(),
            ledger: PathBuf::new(),
            source: None,
            format: format.cloned(),
            map: map.to_vec(),
            start_ns: 0,
            find: FIND_LOGS,
            threads: threads_of(global),
        };
        ingest_in_passing(&input).map(Self::Passing).map_err(not_ingested)
    }
}

/// A class of a scenario, as rows of a ledger know it.
pub(super) fn named(class: &plimsoll_scenario::sections::Class) -> NamedClass {
    NamedClass { name: class.name.as_str().to_owned(), columns: class.matches.clone() }
}

pub(super) fn threads_of(global: &Global) -> NonZero<usize> {
    NonZero::new(threads(global)).unwrap_or(NonZero::<usize>::MIN)
}
