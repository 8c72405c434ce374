//! Logs as they arrive: into a file, never whole in memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, header};
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;
use crate::failure::{Failure, problem};

/// A log on disk, which is deleted when this is dropped.
pub(crate) struct Upload {
    pub(crate) file: NamedTempFile,
    _place: OwnedSemaphorePermit,
}

/// Receives a log that its sender calls `name`.
pub(crate) async fn receive(
    name: &str,
    headers: &HeaderMap,
    body: Body,
    places: &Arc<Semaphore>,
    limits: &Limits,
) -> Result<Upload, Failure> {
    let said = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if said.is_some_and(|bytes: u64| bytes > limits.upload_bytes) {
        return Err(Failure::too_large(limits.upload_bytes));
    }
    let place = Arc::clone(places).try_acquire_owned().map_err(|_| Failure::shed("uploads", 5))?;
    let file = tempfile::Builder::new()
        .prefix("plimsoll-log-")
        .suffix(&ending(name))
        .tempfile()
        .map_err(|_| no_disk())?;
    let copied = copy(body, &file, limits.upload_bytes);
    tokio::time::timeout(limits.upload_time, copied)
        .await
        .map_err(|_| Failure::too_slow(limits.upload_time))??;
    Ok(Upload { file, _place: place })
}

async fn copy(mut body: Body, file: &NamedTempFile, limit: u64) -> Result<(), Failure> {
    let mut out = tokio::fs::File::from_std(file.reopen().map_err(|_| no_disk())?);
    let mut bytes: u64 = 0;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame =
            frame.map_err(|_| Failure::bad(vec![problem("body", "the upload broke off")]))?;
        let Ok(data) = frame.into_data() else { continue };
        bytes = bytes.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        if bytes > limit {
            return Err(Failure::too_large(limit));
        }
        out.write_all(&data).await.map_err(|_| no_disk())?;
    }
    out.flush().await.map_err(|_| no_disk())?;
    if bytes == 0 {
        return Err(Failure::bad(vec![problem("body", "the log is empty")]));
    }
    Ok(())
}

/// Where temporary files go is nobody's business who asks.
fn no_disk() -> Failure {
    let problem = problem("disk", "the log could not be written to a temporary file");
    Failure::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, problem)
}

/// The endings of a name that say a format, such as `.csv.gz`: at most two, plain and short.
fn ending(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').skip(1).collect();
    let plain = |part: &&&str| {
        (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let mut kept: Vec<&str> = parts.iter().rev().take(2).take_while(plain).copied().collect();
    kept.reverse();
    kept.iter().map(|part| format!(".{part}")).collect()
}

#[cfg(test)]
mod tests {
    use super::ending;

    #[test]
    fn an_ending_says_a_format_and_leads_nowhere() {
        let check = |name, expect| assert_eq!(ending(name), expect, "{name}");
        check("log.csv", ".csv");
        check("log.csv.gz", ".csv.gz");
        check("a.b.c.parquet", ".c.parquet");
        check("log", "");
        check("../../etc/passwd", "");
        check("x.csv/../y", "");
        check("x.thisistoolong", "");
    }
}
