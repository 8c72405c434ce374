//! What the program can do only where it was built for it: SQL, clusters and object stores.

#[cfg(feature = "object-store")]
pub(super) const FIND_LOGS: Option<plimsoll_ledger::FindLogs> = Some(plimsoll_query::find);
#[cfg(not(feature = "object-store"))]
pub(super) const FIND_LOGS: Option<plimsoll_ledger::FindLogs> = None;

#[cfg(feature = "sql")]
pub(super) use plimsoll_query::query;
#[cfg(feature = "cluster")]
pub(super) use plimsoll_query::scan_on_cluster;

#[cfg(not(feature = "sql"))]
pub(super) fn query(
    _: &plimsoll_ledger::Ledger,
    _: &plimsoll_ledger::QueryInput,
) -> Result<plimsoll_ledger::Answer, plimsoll_ledger::QueryError> {
    Err(plimsoll_ledger::QueryError::NotBuilt { what: "SQL", feature: "sql" })
}

#[cfg(not(feature = "cluster"))]
pub(super) fn scan_on_cluster(
    _: &plimsoll_ledger::Ledger,
    _: &str,
    _: &plimsoll_ledger::ScanInput,
) -> Result<plimsoll_ledger::Scanned, plimsoll_ledger::QueryError> {
    Err(plimsoll_ledger::QueryError::NotBuilt { what: "clusters", feature: "cluster" })
}
