//! SQL on a Ballista cluster that sees the ledger's files under the same paths as this process.
//!
//! This process plans nothing but the statement: the scheduler lists the files and splits the work, executors read them, and
//! the answer comes back over Arrow Flight.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use ballista::extension::{SessionConfigExt, SessionContextExt};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use plimsoll_ledger::QueryError;

use crate::sql::{Found, Table, ask, register};

/// Where a scheduler listens unless told otherwise.
const PORT: u16 = 50050;

/// How long a scheduler may take to pick up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Parts that a stage of work is split into at most.
const PARTS: usize = 8;

/// A scheduler that picked up, and the tables it is asked about.
pub(crate) struct Remote {
    address: String,
    context: SessionContext,
}

impl Remote {
    /// Calls the scheduler at `df://host:port`.
    pub(crate) async fn connect(address: &str) -> Result<Self, QueryError> {
        let (host, port) = host_and_port(address)?;
        knock(address, &host, port).await?;
        let config = SessionConfig::new_with_ballista()
            .with_target_partitions(PARTS)
            .with_information_schema(true);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        let context = SessionContext::remote_with_state(&format!("df://{host}:{port}"), state)
            .await
            .map_err(|_| QueryError::Address { address: address.to_owned() })?;
        Ok(Self { address: address.to_owned(), context })
    }

    /// Makes a table known, and counts its rows on the cluster.
    ///
    /// A scheduler that does not see a file takes it for an empty folder and answers from the others, so the count is compared
    /// with the rows that the manifest lists.
    pub(crate) async fn register(&self, table: &Table) -> Result<(), QueryError> {
        register(&self.context, table)?;
        if table.files.is_empty() {
            return Ok(());
        }
        let count = format!("SELECT count(*) AS rows FROM \"{}\"", table.name);
        let seen = self.ask(&count).await?.integers("rows")?;
        let seen = seen.first().and_then(|&rows| u64::try_from(rows).ok()).unwrap_or_default();
        match seen {
            seen if seen == table.rows => Ok(()),
            0 => Err(QueryError::Unseen { path: format!("`{}`", table.name) }),
            seen => {
                Err(QueryError::Rows { table: table.name.to_owned(), seen, listed: table.rows })
            }
        }
    }

    /// Runs one question.
    pub(crate) async fn ask(&self, sql: &str) -> Result<Found, QueryError> {
        ask(&self.context, sql, None).await.map_err(|error| match error {
            QueryError::Failed { message } => blame(&self.address, message),
            other => other,
        })
    }
}

/// Asks at the door whether there is work to be done here.
///
/// Ballista connects at the first query, says then that a transport failed, and where a scheduler has no
/// executors waits for one to come. A scheduler says at `/readyz`, on the port of its queries, how many it has.
async fn knock(address: &str, host: &str, port: u16) -> Result<(), QueryError> {
    let target = (host.trim_matches(['[', ']']).to_owned(), port);
    let call = tokio::task::spawn_blocking(move || ready(&target)).await;
    let reply =
        call.unwrap_or_else(|panic| Err(std::io::Error::other(panic))).map_err(|error| {
            let slow = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            let message =
                if slow { "it says nothing for 5 s".to_owned() } else { error.to_string() };
            QueryError::Unreachable { address: address.to_owned(), message }
        })?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let ours = head.to_ascii_lowercase().contains("\r\nserver: ballista/");
    match head.split(' ').nth(1) {
        Some("200") if ours => Ok(()),
        Some("503") if ours => Err(QueryError::Idle {
            address: address.to_owned(),
            message: body.trim().trim_start_matches("not ready: ").to_owned(),
        }),
        _ => Err(QueryError::Unreachable {
            address: address.to_owned(),
            message: "what answers is no Ballista 55".to_owned(),
        }),
    }
}

/// What the first of the host's addresses that picks up replies.
fn ready(target: &(String, u16)) -> std::io::Result<String> {
    let mut last = std::io::Error::from(ErrorKind::NotFound);
    for socket in target.to_socket_addrs()? {
        match TcpStream::connect_timeout(&socket, PATIENCE) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                // In one piece: who does not like it may hang up after the first.
                let call =
                    format!("GET /readyz HTTP/1.1\r\nHost: {socket}\r\nConnection: close\r\n\r\n");
                stream.write_all(call.as_bytes())?;
                let mut reply = Vec::new();
                stream.take(4096).read_to_end(&mut reply)?;
                return Ok(String::from_utf8_lossy(&reply).into_owned());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn host_and_port(address: &str) -> Result<(String, u16), QueryError> {
    let wrong = || QueryError::Address { address: address.to_owned() };
    let url = url::Url::parse(address).map_err(|_| wrong())?;
    let plain = url.scheme() == "df" && matches!(url.path(), "" | "/") && url.query().is_none();
    let host = url.host_str().filter(|host| plain && !host.is_empty()).ok_or_else(wrong)?;
    Ok((host.to_owned(), url.port().unwrap_or(PORT)))
}

/// Says in a line whose fault it was. All that a cluster hands back is text, nested as deep as the
/// layers it went through.
fn blame(address: &str, message: String) -> QueryError {
    if let Some((_, rest)) = message.split_once("metadata for file ")
        && let Some((path, _)) = rest.split_once(": Object Store error")
    {
        return QueryError::Unseen { path: format!("/{path}") };
    }
    if message.contains("transport::Error") || message.contains("transport error") {
        let message = "the connection broke while it was asked".to_owned();
        return QueryError::Unreachable { address: address.to_owned(), message };
    }
    const LAYERS: [&str; 3] = ["execution error: ", "stage failed: ", "failed: "];
    let cause = LAYERS.iter().find_map(|layer| message.split_once(layer));
    let mut cause = cause.map_or(message.as_str(), |(_, cause)| cause);
    while let Some((layer, rest)) = cause.split_once('(')
        && layer.chars().all(char::is_alphanumeric)
        && let Some(rest) = rest.strip_suffix(')')
    {
        cause = rest;
    }
    QueryError::Failed { message: cause.trim_matches('"').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_taken_off() {
        let check = |message: &str, expect: &str| {
            assert_eq!(blame("df://h:1", message.to_owned()).to_string(), expect);
        };
        check(
            "Job 038F failed: Job failed due to stage 0 failed: Task failed due to runtime execution \
             error: DataFusionError(Shared(External(ArrowError(DivideByZero))))",
            "the query failed: DivideByZero",
        );
        check(
            "Job 038F failed: Job failed due to stage 0 failed: Task failed due to runtime execution \
             error: DataFusionError(Shared(External(DataFusionError(ParquetError(General(\"Failed to fetch \
             metadata for file led/day=2026-03-01/a.parquet: Object Store error: Object at location \
             /led/day=2026-03-01/a.parquet not found: No such file or directory (os error 2)\"))))))",
            "the cluster cannot read /led/day=2026-03-01/a.parquet: the scheduler and every executor \
             must see the ledger under the same path",
        );
        check(
            "tonic::transport::Error(Transport, ConnectError(..))",
            "no scheduler answers at df://h:1: the connection broke while it was asked",
        );
        check("anything else", "the query failed: anything else");
    }

    #[test]
    fn addresses() {
        assert_eq!(host_and_port("df://h").ok(), Some(("h".to_owned(), PORT)));
        assert_eq!(host_and_port("df://10.0.0.1:7/").ok(), Some(("10.0.0.1".to_owned(), 7)));
        for address in ["h:50050", "http://h:50050", "df://", "df:///x", "df://h/x", "df://h?x"] {
            assert!(host_and_port(address).is_err(), "{address}");
        }
    }
}
