//! What was asked and what happened.
//!
//! **Owns** the formats that requests are logged in: for now traces, read into a [`Trace`]. **Refuses** to judge what was
//! asked, and to open a file by its name: it is handed bytes and says what they hold.
//!
//! A row that cannot be understood becomes a [`Reject`] with its line and its reason, and is counted: nothing is dropped
//! without a word, and unknown is never zero.
//!
//! SQL, clusters and object stores are the room next door, `plimsoll-query`: it is told which files count ([`Ledger::tables`]), hands back
//! what a cluster has counted ([`Survey`]), and finds logs by URL ([`RemoteLog`]).
//!
//! ```
//! use plimsoll_ledger::{Format, read_trace};
//!
//! let log = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,900,60\n2.5,40,-1\n3.0,1200,12\n";
//! let (trace, rejects) = read_trace(log.as_bytes(), "log.csv", Format::Auto)?;
//! assert_eq!((trace.len(), trace.span()), (2, 2.5));
//! assert_eq!(rejects.rows()[0].to_string(), "line 3: `num_decode_tokens` is `-1`, below zero");
//! # Ok::<(), plimsoll_ledger::TraceError>(())
//! ```

mod bill;
mod column;
mod error;
mod fetch;
mod format;
mod ingest;
mod kind;
mod lookup;
mod page;
mod query;
mod reject;
mod row;
mod run;
mod scan;
mod store;
mod trace;
mod unpack;
mod value;

pub use bill::{BillError, BillOptions, read_bill};
pub use error::{IngestError, LedgerError, TraceError};
pub use fetch::{FindLogs, LocalCopy, RemoteLog};
pub use format::formats;
pub use ingest::{
    IngestInput, Ingested, IngestedFile, Passing, Reason, ingest, ingest_in_passing, inspect,
    record_series,
};
pub use lookup::{TaskRows, Total};
pub use query::{Answer, AnswerColumn, QueryError, QueryInput};
pub use reject::{Reject, Rejects, Why};
pub use row::{OutcomeRow, Row, SeriesRow};
pub use run::trace_of_run;
pub use scan::{
    Asked, ClassService, Classing, HistoryInput, HistoryScan, NamedClass, OnClock, PlaceRule,
    ScanInput, Scanned, ServiceInput, ServiceSlo, Survey, TaskOutcomes, UsageInput, WindowSum,
    text_column,
};
pub use store::{Ledger, LedgerTable};
pub use trace::{Format, read_trace, trace_of_ledger};

#[doc(no_inline)]
pub use plimsoll_workload::Trace;
