//! Logs into the ledger, and answers and single tasks out of it.

use std::io::Write;
use std::num::NonZero;
use std::path::Path;

use plimsoll_ledger::{
    IngestError, IngestInput, Ledger, LedgerError, QueryError, QueryInput, Row, formats,
};
use plimsoll_report::{
    ingest_json, ingest_text, query_json, query_text, table, task_json, task_text,
};
use plimsoll_scenario::Diagnostic;
use serde_json::{Value, json};

use super::optional::{self, FIND_LOGS};
use super::{either, series, threads};
use crate::args::{Global, IngestArgs};
use crate::failure::Failure;
use crate::heading;

/// Reads logs into a ledger.
pub(super) fn ingest(
    args: &IngestArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let (Some(ledger), false) = (&args.into, args.columns) else { return Ok(columns(global)) };
    if args.live.source.prometheus.is_some() {
        return series::of_prometheus(args, ledger, global, err);
    }
    let metrics = args.files.iter().filter(|path| series::is_exposition(path)).count();
    if metrics > 0 && metrics == args.files.len() {
        return series::of_files(args, ledger, global, err);
    }
    let input = IngestInput {
        files: args.files.clone(),
        ledger: ledger.clone(),
        source: args.source.clone(),
        format: args.format.clone(),
        map: args.map.clone(),
        start_ns: args.start.map_or(Ok(0), |at| i64::try_from(at.as_nanosecond())).unwrap_or(0),
        find: FIND_LOGS,
        threads: NonZero::new(threads(global)).unwrap_or(NonZero::<usize>::MIN),
    };
    let done = plimsoll_ledger::ingest(&input).map_err(not_ingested)?;
    let name = ledger.display().to_string();
    Ok(either(
        global,
        || ingest_json(&done, &name, crate::VERSION),
        || ingest_text(&done, &name, heading()),
    ))
}

/// Answers a question in SQL.
pub(super) fn query(
    ledger: &Path,
    sql: &str,
    rows: u32,
    global: &Global,
) -> Result<String, Failure> {
    let input = QueryInput { sql: sql.to_owned(), rows_max: rows as usize };
    let name = ledger.display().to_string();
    let answer = Ledger::open(ledger)
        .map_err(QueryError::from)
        .and_then(|ledger| optional::query(&ledger, &input))
        .map_err(|error| query_failure(&error, &name))?;
    let json = || query_json(&answer, sql, &name, crate::VERSION);
    Ok(either(global, json, || query_text(&answer)))
}

/// Shows one task across its attempts.
pub(super) fn trace(ledger: &Path, id: &str, global: &Global) -> Result<String, Failure> {
    let threads = NonZero::new(threads(global)).unwrap_or(NonZero::<usize>::MIN);
    let found = Ledger::open(ledger).and_then(|opened| opened.task(id, threads));
    let name = ledger.display().to_string();
    let Some(task) = found.map_err(|error| ledger_failure(&error))? else {
        let message = format!("no task, trace, session or request is called `{id}`");
        return Err(Failure::one(
            Diagnostic::about("no-such-task", name, message)
                .help("names are compared whole; a log without names has none to look for"),
        ));
    };
    Ok(either(
        global,
        || task_json(&task, id, &name, crate::VERSION),
        || task_text(&task, id, heading()),
    ))
}

fn columns(global: &Global) -> String {
    let json = || {
        let columns: Vec<Value> = Row::COLUMNS
            .iter()
            .map(|(name, about)| json!({ "name": name, "about": about.trim() }))
            .collect();
        let formats: Vec<Value> =
            formats().iter().map(|(name, about)| json!({ "name": name, "about": about })).collect();
        json!({ "schema": "plimsoll/ingest/v1", "columns": columns, "formats": formats })
    };
    let text = || {
        let rows = |pairs: &[(&str, &str)]| -> Vec<Vec<String>> {
            pairs.iter().map(|(a, b)| vec![(*a).to_owned(), b.trim().to_owned()]).collect()
        };
        let columns = table(&["column", "what it is"], &rows(Row::COLUMNS));
        let formats = table(&["format", "what it is"], &rows(&formats()));
        format!("{columns}\n{formats}")
    };
    either(global, json, text)
}

/// Why logs could not be taken, with the cause that the system gave.
pub(super) fn not_ingested(error: IngestError) -> Failure {
    match error {
        IngestError::Ledger(error) => ledger_failure(&error),
        error => {
            let help = error.help();
            told("bad-log", &error, help)
        }
    }
}

/// Why a ledger could not be read or written.
pub(super) fn ledger_failure(error: &LedgerError) -> Failure {
    told("bad-ledger", error, error.help())
}

/// Why a question over a ledger has no answer.
pub(super) fn query_failure(error: &QueryError, ledger: &str) -> Failure {
    let code = match error {
        QueryError::Ledger(error) => return ledger_failure(error),
        QueryError::NotBuilt { .. } => "not-built",
        QueryError::Wrong { .. } | QueryError::ReadOnly { .. } => "bad-sql",
        QueryError::Unreadable { .. } | QueryError::NotParquet { .. } => "bad-ledger",
        QueryError::Failed { .. } | QueryError::Runtime { .. } | QueryError::Column { .. } => {
            "failed-query"
        }
        _ => "bad-cluster",
    };
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let message = format!("{error}{}", cause.unwrap_or_default());
    let diagnostic = Diagnostic::about(code, ledger, message);
    Failure::one(match error.help() {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    })
}

fn told(code: &'static str, error: &dyn std::error::Error, help: Option<String>) -> Failure {
    let text = error.to_string();
    // The file is told once, where diagnostics tell it.
    let (file, mut message) = match text.split_once(": ") {
        Some((file, message)) => (file.to_owned(), message.to_owned()),
        None => ("ingest".to_owned(), text),
    };
    if let Some(cause) = error.source() {
        message = format!("{message}: {cause}");
    }
    let diagnostic = Diagnostic::about(code, file, message);
    Failure::one(match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    })
}
