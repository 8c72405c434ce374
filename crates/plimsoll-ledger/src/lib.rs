//! What was asked and what happened.
//!
//! **Owns** the formats that requests are logged in: for now traces, read into a [`Trace`]. **Refuses** to judge what was
//! asked, and to open a file by its name: it is handed bytes and says what they hold.
//!
//! A row that cannot be understood becomes a [`Reject`] with its line and its reason, and is counted: nothing is dropped
//! without a word, and unknown is never zero.
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

mod error;
mod reject;
mod run;
mod trace;

pub use error::TraceError;
pub use reject::{Reject, Rejects, Why};
pub use run::trace_of_run;
pub use trace::{Format, read_trace};

#[doc(no_inline)]
pub use plimsoll_workload::Trace;
