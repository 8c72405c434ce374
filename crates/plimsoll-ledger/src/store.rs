//! The ledger on disk.
//!
//! ```text
//! LEDGER/
//!   manifest.json                        what counts; nothing else does
//!   requests/day=2026-11-15/000007-0.parquet
//!   outcomes/000007.parquet              how tasks ended, found out later
//!   series/000007.parquet                what was counted over windows
//!   keys/000007.keys                     what makes each row unique, 16 bytes a row
//!   rejects.parquet                      every row that could not be taken
//!   lock                                 held while somebody writes
//! ```
//!
//! One `ingest` is one batch with a number of its own. Its files get names that nobody has, are written and synced with
//! their directories, and only then does a new manifest take the old one's place, by a rename. So a reader finds the ledger
//! as it was before or after a batch; what a killed one left is swept up by the next.

mod batch;
mod disk;
mod manifest;

pub(crate) use batch::Batch;
pub(crate) use disk::Disk;
#[cfg(test)]
pub(crate) use disk::Step;
pub(crate) use manifest::{Manifest, Part};

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::schema::types::SchemaDescPtr;

use crate::error::LedgerError;
use crate::row::{OutcomeRow, RejectRow, Row, SeriesRow};

/// A table of a ledger, and the files that it is in.
#[derive(Clone, Debug)]
pub struct LedgerTable {
    /// What it is called.
    pub name: &'static str,
    /// Its columns. One that a file lacks is unknown in all rows of that file.
    pub schema: SchemaDescPtr,
    /// The Parquet files that count. There may be none.
    pub files: Vec<PathBuf>,
    /// How many rows they hold.
    pub rows: u64,
}

/// A ledger that can be read: as the manifest had it when it was opened.
#[derive(Clone, Debug)]
pub struct Ledger {
    directory: PathBuf,
    manifest: Manifest,
}

impl Ledger {
    /// Opens a ledger to read it.
    pub fn open(directory: &Path) -> Result<Self, LedgerError> {
        let manifest = Manifest::read(directory)?
            .ok_or_else(|| LedgerError::NoLedger { path: directory.to_owned() })?;
        Ok(Self { directory: directory.to_owned(), manifest })
    }

    /// Whether a directory is a ledger.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(manifest::NAME).is_file()
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many requests it holds.
    pub fn rows(&self) -> u64 {
        self.manifest.requests.iter().map(|part| part.rows).sum()
    }

    /// Its tables, requests first: only the files that the manifest vouches for.
    pub fn tables(&self) -> [LedgerTable; 4] {
        let table = |name, schema: &SchemaDescPtr, files, rows| {
            let schema = SchemaDescPtr::clone(schema);
            LedgerTable { name, schema, files, rows }
        };
        let parts = |name, schema, parts: &[Part]| {
            let files = parts.iter().map(|part| self.path(&part.file)).collect();
            table(name, schema, files, parts.iter().map(|part| part.rows).sum())
        };
        let requests = self.manifest.requests.iter().map(|part| self.path(&part.file)).collect();
        let rejects = self.manifest.rejects.as_ref().map_or(0, |rejects| rejects.rows);
        [
            table("requests", Row::schema(), requests, self.rows()),
            parts("outcomes", OutcomeRow::schema(), &self.manifest.outcomes),
            parts("series", SeriesRow::schema(), &self.manifest.series),
            table("rejects", RejectRow::schema(), self.rejects().into_iter().collect(), rejects),
        ]
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// Where the rejected rows are, if there are any: the name that the last batch gave them, unless it came so far as to
    /// put them in their place.
    pub fn rejects(&self) -> Option<PathBuf> {
        let rejects = self.manifest.rejects.as_ref()?;
        let staged = self.directory.join(manifest::staged_rejects(rejects.batch));
        Some(if staged.is_file() { staged } else { self.directory.join(manifest::REJECTS) })
    }
}

/// Holds the right to write; a ledger has one writer at a time.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(directory: &Path) -> Result<Self, LedgerError> {
        let path = directory.join("lock");
        let failed = |source| LedgerError::Disk { path: path.clone(), doing: "locked", source };
        let file =
            File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(std::fs::TryLockError::WouldBlock) => {
                Err(LedgerError::Locked { path: directory.to_owned() })
            }
            Err(std::fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}
