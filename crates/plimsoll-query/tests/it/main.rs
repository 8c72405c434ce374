//! Questions to a ledger, in this process and on a cluster; logs from a store. Each needs its feature.

#[cfg(feature = "cluster-test")]
mod cluster;
#[cfg(feature = "cluster-test")]
mod local_cluster;
#[cfg(feature = "object-store")]
mod object_store;
#[cfg(feature = "sql")]
mod sql;
