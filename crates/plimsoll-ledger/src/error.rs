//! Why a file is no trace.

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
            Self::Column { .. } => Some("leave the format out to have it detected".to_owned()),
            _ => None,
        }
    }
}

fn for_example(first: &Option<Reject>) -> String {
    first.as_ref().map_or(String::new(), |reject| format!(", such as {reject}"))
}
