//! What counts.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::Disk;
use crate::error::LedgerError;
use crate::row::SCHEMA_VERSION;

pub(super) const NAME: &str = "manifest.json";
pub(super) const REJECTS: &str = "rejects.parquet";
const SCHEMA: &str = "plimsoll/ledger/v1";

/// The files of a ledger, and what is in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) schema: String,
    /// The version of the tables' columns.
    pub(crate) columns: u32,
    /// The last batch.
    pub(crate) batch: u64,
    pub(crate) requests: Vec<RequestPart>,
    pub(crate) outcomes: Vec<Part>,
    pub(crate) series: Vec<Part>,
    pub(crate) keys: Vec<Part>,
    pub(crate) rejects: Option<Rejects>,
}

/// A file of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RequestPart {
    /// Relative to the ledger.
    pub(crate) file: String,
    /// Such as `2026-11-15`; `unknown` for requests without a time.
    pub(crate) day: String,
    pub(crate) rows: u64,
    /// The first arrival on each clock, in nanoseconds from 1970, and the last.
    pub(crate) clocks: Vec<ClockSpan>,
}

/// When the requests of a clock came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClockSpan {
    pub(crate) clock: String,
    pub(crate) rows: u64,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

/// A file of another table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) rows: u64,
}

/// The rows that could not be taken: all of them are in one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rejects {
    /// The batch that wrote the file.
    pub(crate) batch: u64,
    pub(crate) rows: u64,
}

impl Manifest {
    pub(crate) fn empty() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            columns: SCHEMA_VERSION,
            batch: 0,
            requests: Vec::new(),
            outcomes: Vec::new(),
            series: Vec::new(),
            keys: Vec::new(),
            rejects: None,
        }
    }

    /// The manifest of a directory, or none where there is none.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>, LedgerError> {
        let path = directory.join(NAME);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LedgerError::Disk { path, doing: "read", source }),
        };
        #[derive(Deserialize)]
        struct Versions {
            schema: String,
            columns: u32,
        }
        let damaged = |source| LedgerError::Manifest { path: path.clone(), source };
        let versions: Versions = serde_json::from_str(&text).map_err(damaged)?;
        if versions.schema != SCHEMA || versions.columns > SCHEMA_VERSION {
            let Versions { schema, columns } = versions;
            return Err(LedgerError::Version { path, schema, columns, known: SCHEMA_VERSION });
        }
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Takes the place of the one before: the moment at which a batch counts.
    pub(crate) fn commit(&self, directory: &Path, disk: &Disk) -> Result<(), LedgerError> {
        let staged = directory.join("manifest.json.next");
        if staged.is_file() {
            disk.remove(&staged)?;
        }
        let mut text = serde_json::to_string_pretty(self).expect("a manifest is plain data");
        text.push('\n');
        disk.write(&staged, text.as_bytes())?;
        disk.rename(&staged, &directory.join(NAME))
    }

    /// Every file that counts, relative to the ledger.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let others = self.outcomes.iter().chain(&self.series).chain(&self.keys);
        self.requests.iter().map(|p| p.file.as_str()).chain(others.map(|p| p.file.as_str()))
    }
}

/// What the rejects of a batch are called until the batch counts.
pub(super) fn staged_rejects(batch: u64) -> String {
    format!("rejects-{batch:06}.parquet")
}
