//! A question in SQL, as the rest of the house sees it: text in, plain cells out. Who answers it is the room next door.

use std::path::PathBuf;

use serde_json::Value;

use crate::error::LedgerError;

/// What is asked of a ledger in SQL.
#[derive(Clone, Debug)]
pub struct QueryInput {
    /// One statement that only reads. Its tables are [`QueryInput::TABLES`].
    pub sql: String,
    /// The most rows that are handed back.
    pub rows_max: usize,
}

impl QueryInput {
    /// The tables that can be asked about, each with what it holds.
    pub const TABLES: [(&str, &str); 4] = [
        ("requests", "one row a request or attempt, with the UTC day of its arrival as `day`"),
        ("outcomes", "how tasks ended, as it was found out later"),
        ("series", "what was counted over windows instead of request by request"),
        ("rejects", "rows that could not be taken, each with its reason"),
    ];
}

/// What a question gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its columns, in the order of the question.
    pub columns: Vec<AnswerColumn>,
    /// Its rows, each with a cell a column; the same in every run.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than were asked for.
    pub truncated: bool,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerColumn {
    /// What the question calls it.
    pub name: String,
    /// What is in it: `integer`, `number`, `boolean`, `text`, `time`, `date`, `list` or `other`.
    pub kind: &'static str,
}

/// Why a question over a ledger got no answer. One line each.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The program was built without what it takes.
    #[error("this plimsoll was built without {what}: build it with --features {feature}")]
    NotBuilt {
        /// What it lacks.
        what: &'static str,
        /// The feature that has it.
        feature: &'static str,
    },
    /// A file the manifest names cannot be opened.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file the manifest names has no bytes, or is no file.
    #[error("{} is not a Parquet file", path.display())]
    NotParquet {
        /// The file.
        path: PathBuf,
    },
    /// The statement would change something.
    #[error("a ledger is only read: {statement} is refused")]
    ReadOnly {
        /// The statement, by name.
        statement: String,
    },
    /// The statement does not parse, or names what is not there.
    #[error("the SQL is wrong: {message}")]
    Wrong {
        /// What is wrong with it, in a line.
        message: String,
    },
    /// The statement is fine and running it failed.
    #[error("the query failed: {message}")]
    Failed {
        /// Why, in a line.
        message: String,
    },
    /// No thread or socket for the runtime.
    #[error("no runtime for the query")]
    Runtime {
        /// What the system says.
        source: std::io::Error,
    },
    /// A column of an answer is not there, or is of another type: a bug of ours.
    #[error("the answer has no column `{column}` of {wanted}")]
    Column {
        /// The column.
        column: String,
        /// What was to be in it.
        wanted: &'static str,
    },
    /// The address is not `df://host:port`.
    #[error("`{address}` is no scheduler: it is written df://host:50050")]
    Address {
        /// The address as the user wrote it.
        address: String,
    },
    /// Nobody answers at the address.
    #[error("no scheduler answers at {address}: {message}")]
    Unreachable {
        /// The address as the user wrote it.
        address: String,
        /// Why not, in a line.
        message: String,
    },
    /// A scheduler without executors, whose queries would wait for one.
    #[error("the scheduler at {address} has too few executors: {message}")]
    Idle {
        /// The address as the user wrote it.
        address: String,
        /// How many it has, in its own words.
        message: String,
    },
    /// A node of the cluster does not see the ledger's files.
    #[error(
        "the cluster cannot read {path}: the scheduler and every executor must see the ledger under the same path"
    )]
    Unseen {
        /// The file, or the table where the file is not known.
        path: String,
    },
    /// The cluster counted other rows than the manifest has.
    #[error("the cluster sees {seen} rows in `{table}`, the manifest has {listed}")]
    Rows {
        /// The table.
        table: String,
        /// Rows that the cluster counted.
        seen: u64,
        /// Rows that the manifest lists.
        listed: u64,
    },
    /// More weights than sums are kept apart for.
    #[error(
        "requests have more than {most} different sample weights, which a cluster does not keep apart"
    )]
    Weights {
        /// The most that are.
        most: usize,
    },
    /// The ledger itself is wrong, or what was asked of it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl QueryError {
    /// What the user could do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::NotBuilt { feature, .. } => {
                format!("`cargo install --path crates/plimsoll --features {feature}`")
            }
            Self::Unreadable { .. } | Self::NotParquet { .. } => {
                "restore it from a copy, or ingest the logs into a new ledger".to_owned()
            }
            Self::ReadOnly { .. } => "ask with SELECT, EXPLAIN or DESCRIBE".to_owned(),
            Self::Wrong { message } if message.contains("not found") => {
                let tables = QueryInput::TABLES.map(|(name, _)| name);
                format!("the tables are {}", tables.join(", "))
            }
            Self::Wrong { message } if message.contains("No field named") => {
                "`DESCRIBE requests` lists the columns of a table".to_owned()
            }
            Self::Unreachable { .. } | Self::Idle { .. } => {
                "start the scheduler and its executors, or leave `--cluster` out".to_owned()
            }
            Self::Unseen { .. } | Self::Rows { .. } | Self::Weights { .. } => {
                "leave `--cluster` out to read the ledger here".to_owned()
            }
            Self::Ledger(error) => return error.help(),
            _ => return None,
        })
    }
}
