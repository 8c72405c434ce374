//! Questions in SQL over a ledger, in this process or on a cluster; logs from object stores.
//!
//! **Owns** DataFusion, Ballista, Arrow and the clients of object stores, each behind a feature: `sql` has `query`, `cluster` has
//! `scan_on_cluster`, and `object-store` has `find`, which an ingest is handed to read URLs. **Refuses** to know what a ledger's files
//! mean: the ledger says which files count and what their columns are, and takes its sums back as it would have made them itself.
//!
//! Without a feature there is nothing here, and the default build of the workspace compiles none of what they need.

#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "object-store")]
mod objects;
#[cfg(feature = "cluster")]
mod scan;
#[cfg(feature = "sql")]
mod sql;

#[cfg(feature = "object-store")]
pub use objects::find;
#[cfg(feature = "cluster")]
pub use scan::scan_on_cluster;
#[cfg(feature = "sql")]
pub use sql::query;
