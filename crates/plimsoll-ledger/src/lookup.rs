//! One task, found again.

use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use parquet::errors::ParquetError;

use crate::column::read::{Opened, each_batch};
use crate::error::LedgerError;
use crate::row::{OutcomeRow, Row};
use crate::store::Ledger;

/// The columns that a task is looked up by, the closest first.
const IDS: [&str; 4] = ["task_id", "trace_id", "session_id", "request_id"];

/// What the ledger knows of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRows {
    /// The column in which the name was found.
    pub found_by: &'static str,
    /// Its requests and their attempts, in order of time.
    pub rows: Vec<Row>,
    /// What was found out about it later, in order of time.
    pub outcomes: Vec<OutcomeRow>,
}

impl Ledger {
    /// The requests of a task: those whose task has this name, else whose trace, session or request has.
    pub fn task(&self, id: &str, threads: NonZero<usize>) -> Result<Option<TaskRows>, LedgerError> {
        let rows = self.rows_named(id, threads)?;
        let named = |column: &str, row: &Row| {
            let name = match column {
                "task_id" => &row.task_id,
                "trace_id" => &row.trace_id,
                "session_id" => &row.session_id,
                _ => &row.request_id,
            };
            name.as_deref() == Some(id)
        };
        let Some(found_by) = IDS.into_iter().find(|by| rows.iter().any(|row| named(by, row)))
        else {
            return Ok(None);
        };
        let mut rows: Vec<Row> = rows.into_iter().filter(|row| named(found_by, row)).collect();
        rows.sort_by(|a, b| {
            (a.ts_arrival, &a.request_id, a.attempt).cmp(&(b.ts_arrival, &b.request_id, b.attempt))
        });
        let tasks: Vec<&str> = rows.iter().filter_map(|row| row.task_id.as_deref()).collect();
        let mut outcomes = Vec::new();
        for outcome in self.outcomes()? {
            let task = outcome.task_id.as_deref();
            if task.is_some_and(|task| task == id || tasks.contains(&task)) {
                outcomes.push(outcome);
            }
        }
        outcomes.sort_by_key(|outcome| outcome.ts);
        Ok(Some(TaskRows { found_by, rows, outcomes }))
    }

    /// Hands on every request, in the order of the manifest, with the columns that are asked for.
    pub(crate) fn each_row<'a>(
        &self,
        columns: impl Iterator<Item = &'a str> + Clone,
        mut each: impl FnMut(Row),
    ) -> Result<(), LedgerError> {
        let wanted = |name: &str| columns.clone().any(|column| column == name);
        for part in &self.manifest().requests {
            each_batch(&self.path(&part.file), Row::schema(), wanted, |batch| {
                Row::of_columns(&batch).into_iter().for_each(&mut each);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// How tasks ended, as was found out later.
    pub(crate) fn outcomes(&self) -> Result<Vec<OutcomeRow>, LedgerError> {
        let mut outcomes = Vec::new();
        for part in &self.manifest().outcomes {
            each_batch(
                &self.path(&part.file),
                OutcomeRow::schema(),
                |_| true,
                |batch| {
                    outcomes.extend(OutcomeRow::of_columns(&batch));
                    Ok(())
                },
            )?;
        }
        Ok(outcomes)
    }

    /// Every row that has the name in any of its names. Only the names are read of rows that have not.
    fn rows_named(&self, id: &str, threads: NonZero<usize>) -> Result<Vec<Row>, LedgerError> {
        let parts = &self.manifest().requests;
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, Vec<Row>)>, LedgerError> {
            let mut found = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(i) else { return Ok(found) };
                found.push((i, rows_of_part(&self.path(&part.file), id)?));
            }
        };
        let mut found = Vec::new();
        std::thread::scope(|scope| -> Result<(), LedgerError> {
            let workers: Vec<_> = (0..threads.get()).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                let part = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                found.extend(part?);
            }
            Ok(())
        })?;
        found.sort_by_key(|(i, _)| *i);
        Ok(found.into_iter().flat_map(|(_, rows)| rows).collect())
    }
}

fn rows_of_part(path: &Path, id: &str) -> Result<Vec<Row>, LedgerError> {
    let opened = Opened::at(path)?;
    let damaged = |error: ParquetError| LedgerError::damaged(path, error.to_string());
    let mut rows = Vec::new();
    for group in 0..opened.groups() {
        let mut names =
            opened.group(group, Row::schema(), |name| IDS.contains(&name)).map_err(damaged)?;
        let mut places: Vec<usize> = Vec::new();
        let mut read = 0;
        while let Some(batch) = names.next().map_err(damaged)? {
            for column in IDS.iter().filter_map(|name| batch.get(name)?.texts()) {
                places.extend(
                    column.enumerate().filter(|(_, name)| *name == Some(id)).map(|(i, _)| read + i),
                );
            }
            read += batch.rows;
        }
        if places.is_empty() {
            continue;
        }
        places.sort_unstable();
        places.dedup();
        let mut whole = opened.group(group, Row::schema(), |_| true).map_err(damaged)?;
        let mut next = 0;
        for place in places {
            whole.skip(place - next).map_err(damaged)?;
            rows.extend(Row::of_columns(&whole.take(1).map_err(damaged)?));
            next = place + 1;
        }
    }
    Ok(rows)
}

/// A sum over the attempts of a task, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Total {
    /// Over the attempts that know it; none where none does.
    pub sum: Option<f64>,
    /// How many attempts know it.
    pub known: usize,
}

impl TaskRows {
    /// What the attempts add up to, by column.
    pub fn totals(&self) -> Vec<(&'static str, Total)> {
        type Number = fn(&Row) -> Option<f64>;
        let columns: [(&'static str, Number); 11] = [
            ("prompt_tokens", |row| row.prompt_tokens.map(f64::from)),
            ("cache_read_tokens", |row| row.cache_read_tokens.map(f64::from)),
            ("cache_write_tokens", |row| row.cache_write_tokens.map(f64::from)),
            ("output_tokens", |row| row.output_tokens.map(f64::from)),
            ("reasoning_tokens", |row| row.reasoning_tokens.map(f64::from)),
            ("queue_s", |row| row.queue_s),
            ("prefill_s", |row| row.prefill_s),
            ("decode_s", |row| row.decode_s),
            ("tool_s", |row| row.tool_s),
            ("e2e_s", |row| row.e2e_s),
            ("cost_usd", |row| row.cost_usd),
        ];
        let total = |number: Number| {
            let known: Vec<f64> = self.rows.iter().filter_map(number).collect();
            Total { sum: (!known.is_empty()).then(|| known.iter().sum()), known: known.len() }
        };
        columns.into_iter().map(|(name, number)| (name, total(number))).collect()
    }

    /// Whether the task succeeded: what was found out last, else what its last attempt says.
    pub fn success(&self) -> Option<bool> {
        let later = self.outcomes.iter().rev().find_map(|outcome| outcome.success);
        later.or_else(|| self.rows.iter().rev().find_map(|row| row.success))
    }

    /// When it began and how long it took, in nanoseconds from 1970 and in seconds: until the last attempt that says when it
    /// ended, or until the last that began.
    pub fn span(&self) -> Option<(i64, f64)> {
        let stamps = || self.rows.iter().filter_map(|row| Some((row.ts_arrival?, row.e2e_s)));
        let first = stamps().map(|(at, _)| at).min()?;
        let last = stamps().map(|(at, e2e)| (at - first) as f64 / 1e9 + e2e.unwrap_or(0.0));
        Some((first, last.fold(0.0, f64::max)))
    }
}
