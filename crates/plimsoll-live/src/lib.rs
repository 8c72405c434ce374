//! What a fleet reports of itself: Prometheus asked, metric names resolved, windows counted.
//!
//! **Owns** questions to a Prometheus and what is read from its answers. **Refuses** to judge them, and to take an answer that did not come for a zero.
//!
//! A [`MetricSource`] is a [`Prometheus`] or a file in its text formats ([`Exposition`]). [`resolve`] says which engines and gateways report there and what they call
//! what is counted; [`collect`] counts it over windows: of each model what was asked for, of each replica how it fared.
//!
//! ```
//! use plimsoll_live::{CollectInput, Exposition, collect};
//!
//! let mut text = String::new();
//! for at in (0..=120).step_by(15) {
//!     text += &format!("vllm:request_success_total{{model_name=\"chat\",pod=\"a\"}} {} {at}\n", 500 + at / 30);
//! }
//! let file = Exposition::read("metrics.txt", (text + "# EOF\n").as_bytes(), None)?;
//! let found = collect(&file, &CollectInput::usual(0, 120), &mut |_| {})?;
//! assert_eq!(found.demand.iter().map(|row| row.requests).collect::<Vec<_>>(), [Some(2.0), Some(2.0)]);
//! # Ok::<(), plimsoll_live::LiveError>(())
//! ```

mod answer;
mod client;
mod error;
mod openmetrics;
mod query;
mod resolve;
mod sight;
mod source;
mod windows;

pub use answer::{Answer, Labels, Sample, Series};
pub use client::{Access, Metadata, Prometheus, without_credentials};
pub use error::LiveError;
pub use openmetrics::{BadLine, Exposition, Family, encode};
pub use query::{PoolQueries, Selector, labels_of, pool_queries, quiet_is_zero};
pub use resolve::{Missing, Reporting, Resolved, Spelling, VersionBound, resolve, served_as};
pub use sight::{Answering, PoolSource, Unanswered, sight};
pub use source::{Ask, Matcher, MetricSource, Over, Pool};
pub use windows::{
    Basis, Between, CollectInput, Collected, DemandWindow, Latency, LengthShares, Progress,
    ReplicaWindow, collect,
};
