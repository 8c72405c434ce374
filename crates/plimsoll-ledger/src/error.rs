//! Why a file is no trace.

use std::path::PathBuf;

use plimsoll_workload::TraceFault;

use crate::reject::Reject;
use crate::trace::Format;

/// Why a file gives no trace at all. Single rows that are wrong are [`Rejects`](crate::Rejects) instead.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It could not be read, or not unpacked.
    #[error("{name}: cannot be read after line {line}")]
    Unreadable {
        /// The file as the user named it.
        name: String,
        /// The last line that was read, counted from one; zero before the first.
        line: u64,
        /// What the system or the unpacker says.
        source: std::io::Error,
    },
    /// There is nothing in it.
    #[error("{name}: is empty")]
    Empty {
        /// The file as the user named it.
        name: String,
    },
    /// Nothing that is known.
    #[error("{name}: no trace of requests: it is {looks}")]
    Unknown {
        /// The file as the user named it.
        name: String,
        /// What the file looks like.
        looks: String,
        /// What to do with it instead.
        help: String,
    },
    /// The columns of another format than the one asked for.
    #[error("{name}: a trace of {format} has the column `{missing}`; this file has {has}")]
    Column {
        /// The file as the user named it.
        name: String,
        /// What it was said to be.
        format: Format,
        /// Which column is not there.
        missing: &'static str,
        /// What it has.
        has: String,
    },
    /// Rows, but none that is a request.
    #[error("{name}: none of its {rows} rows is a request{}", for_example(first))]
    NoRequests {
        /// The file as the user named it.
        name: String,
        /// How many rows were read.
        rows: u64,
        /// What is wrong with the first.
        first: Option<Reject>,
    },
    /// A line that no log has, or more of them than can be held.
    #[error("{name}: line {line} {problem}")]
    TooMuch {
        /// The file as the user named it.
        name: String,
        /// Counted from one.
        line: u64,
        /// What is too much.
        problem: &'static str,
    },
    /// A ledger that cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Rows that make no trace together.
    #[error("{name}: its rows make no trace")]
    Fault {
        /// The file as the user named it.
        name: String,
        /// Why not.
        source: TraceFault,
    },
}

impl TraceError {
    /// What the user could do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { help, .. } => Some(help.clone()),
            Self::Unreadable { .. } => {
                Some("if it is packed, it may be cut short: copy it again".to_owned())
            }
            Self::Ledger(error) => error.help(),
            Self::Column { .. } => Some("leave the format out to have it detected".to_owned()),
            _ => None,
        }
    }
}

fn for_example(first: &Option<Reject>) -> String {
    first.as_ref().map_or(String::new(), |reject| format!(", such as {reject}"))
}

/// Why a ledger cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// There is none.
    #[error("{}: is no ledger: it has no manifest.json", path.display())]
    NoLedger {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The directory has other things in it.
    #[error("{}: is no ledger, and `{by}` is in it", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        by: String,
    },
    /// Somebody else writes to it.
    #[error("{}: another ingest is writing to it", path.display())]
    Locked {
        /// The ledger.
        path: PathBuf,
    },
    /// The disk would not.
    #[error("{}: cannot be {doing}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The manifest is not one.
    #[error("{}: is damaged", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What its reader says.
        source: serde_json::Error,
    },
    /// Written by a later version.
    #[error(
        "{}: is a ledger of `{schema}` with columns of version {columns}; this program knows {known}",
        path.display()
    )]
    Version {
        /// The manifest.
        path: PathBuf,
        /// What it says it is.
        schema: String,
        /// The version of its columns.
        columns: u32,
        /// The latest that is known here.
        known: u32,
    },
    /// A column that rows cannot be told apart by.
    #[error("`{name}`: is no column of text in the ledger")]
    Column {
        /// What was asked for.
        name: String,
        /// What could be.
        known: String,
    },
    /// More counts than can be held.
    #[error(
        "{steps} steps of {step_s} s for each of {classes} classes are more than {most} counts"
    )]
    Steps {
        /// How long a step is.
        step_s: u32,
        /// How many there are.
        steps: usize,
        /// How many classes have them.
        classes: usize,
        /// The most counts.
        most: usize,
    },
    /// Steps that windows do not fill.
    #[error(
        "steps of {step_s} s are not made of whole windows: `{series}` was counted over {window_s} s each"
    )]
    Windows {
        /// The series.
        series: String,
        /// How long a step would be.
        step_s: u32,
        /// How long its windows are.
        window_s: u64,
    },
    /// A file of the ledger that cannot be read.
    #[error("{}: is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What its reader says.
        problem: String,
    },
}

impl LedgerError {
    /// What is wrong with a file of the ledger.
    pub(crate) fn damaged(path: &std::path::Path, problem: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), problem: problem.into() }
    }

    /// What the user could do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::NoLedger { path } => {
                format!("`plimsoll ingest FILES… --into {}` makes one", path.display())
            }
            Self::Occupied { .. } => {
                "name a directory that is empty or not there yet, or a ledger".to_owned()
            }
            Self::Locked { .. } => {
                "wait for it to end; one that was killed holds nothing".to_owned()
            }
            Self::Disk { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                "make room and run it again: the ledger is as it was before".to_owned()
            }
            Self::Disk { .. } => return None,
            Self::Damaged { path, .. } if path.ends_with("rejects.parquet") => {
                "remove it: it holds what earlier ingests could not take, and nothing else"
                    .to_owned()
            }
            Self::Manifest { .. } | Self::Damaged { .. } => {
                "restore it from a copy, or ingest the logs into a new ledger".to_owned()
            }
            Self::Column { known, .. } => format!("these are: {known}"),
            Self::Steps { step_s, steps, classes, most } => {
                let times = steps.saturating_mul(*classes).div_ceil(*most);
                let longer = u64::from(*step_s).saturating_mul(times as u64);
                format!("take a longer `--step`, such as {longer} s, or fewer classes")
            }
            Self::Windows { step_s, window_s, .. } => {
                let longer =
                    u64::from(*step_s).div_ceil((*window_s).max(1)).saturating_mul(*window_s);
                format!("take a `--step` that is a multiple of it, such as {longer} s")
            }
            Self::Version { .. } => "use the version of plimsoll that wrote it".to_owned(),
        })
    }
}

/// Why logs could not be taken into a ledger. The ledger is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A file cannot be read, or not unpacked.
    #[error("{name}: cannot be read{}", after(*line))]
    Unreadable {
        /// The file as the user named it.
        name: String,
        /// The last line that was read, counted from one; zero before the first.
        line: u64,
        /// What the system or the unpacker says.
        source: std::io::Error,
    },
    /// An object that the program was not built to fetch.
    #[error("{name}: this plimsoll was built without object stores")]
    NotBuilt {
        /// The URL.
        name: String,
    },
    /// There is nothing in it.
    #[error("{name}: is empty")]
    Empty {
        /// The file as the user named it.
        name: String,
    },
    /// Nothing that is known.
    #[error("{name}: no log of requests: it is {looks}")]
    Unknown {
        /// The file as the user named it.
        name: String,
        /// What it looks like.
        looks: String,
    },
    /// A mapping of columns that cannot be followed.
    #[error("{name}: {problem}")]
    Map {
        /// The file as the user named it.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Parquet that cannot be read.
    #[error("{name}: Parquet that cannot be read: {problem}")]
    Parquet {
        /// The file as the user named it.
        name: String,
        /// What its reader says.
        problem: String,
    },
    /// There is no such format.
    #[error("--format: `{name}` is no format")]
    Format {
        /// What was asked for.
        name: String,
    },
    /// No file holds a log.
    #[error("none of {files} files is a log of requests")]
    Nothing {
        /// How many were looked at.
        files: usize,
    },
    /// The ledger would not take them.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

fn after(line: u64) -> String {
    if line == 0 { String::new() } else { format!(" after line {line}") }
}

impl From<crate::unpack::Unpacking> for IngestError {
    fn from(unpacking: crate::unpack::Unpacking) -> Self {
        let crate::unpack::Unpacking { name, source } = unpacking;
        Self::Unreadable { name, line: 0, source }
    }
}

impl IngestError {
    /// What the user could do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                return None;
            }
            Self::Unreadable { .. } => {
                "if it is packed, it may be cut short: copy it again, or leave it out".to_owned()
            }
            Self::NotBuilt { .. } => {
                "build it with --features object-store, or copy the file here first".to_owned()
            }
            Self::Empty { .. } => "leave it out".to_owned(),
            Self::Unknown { .. } => format!(
                "known are {}; any other table or JSON lines with `--map prompt_tokens=COLUMN,output_tokens=COLUMN,ts_arrival=COLUMN`",
                crate::format::formats()
                    .iter()
                    .map(|(name, _)| *name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            Self::Map { .. } => {
                "`plimsoll ingest --columns` lists the columns of the ledger".to_owned()
            }
            Self::Parquet { .. } => {
                "copy it again, or leave it out: the ledger is as it was".to_owned()
            }
            Self::Format { .. } => format!(
                "known are {}; without `--format` it is detected",
                crate::format::formats()
                    .iter()
                    .map(|(name, _)| *name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            Self::Nothing { .. } => return None,
            Self::Ledger(error) => return error.help(),
        })
    }
}
