//! What was counted over windows, client by client.

use std::collections::BTreeMap;

use plimsoll_stats::Seed;
use plimsoll_study::{SeriesClient, SeriesInput, SeriesWindow};

use crate::column::read::each_batch;
use crate::error::LedgerError;
use crate::row::SeriesRow;
use crate::store::Ledger;

const SECOND_NS: i64 = 1_000_000_000;

/// A series by its name and the length of its windows, client by client.
type Clients = BTreeMap<(String, u64), BTreeMap<String, Vec<SeriesRow>>>;

/// The rows of all series.
pub(super) struct Found {
    /// Windows that say how many requests came.
    pub(super) rates: Clients,
    /// Blocks that say how long those of a client were.
    pub(super) lengths: BTreeMap<String, Vec<SeriesRow>>,
    /// Where the first of them begins.
    first: i64,
}

impl Ledger {
    /// The series of the ledger: clients whose names differ only in the last part, after a `/`, are one.
    pub fn series(&self, seed: Seed) -> Result<Vec<SeriesInput>, LedgerError> {
        let Found { rates, lengths, first } = Found::of(self)?;
        let mut series = Vec::new();
        for ((name, window_s), clients) in rates {
            let clients = clients.into_iter().map(|(class, rows)| {
                let blocks = lengths.get(&class).map_or(&[][..], Vec::as_slice);
                let windows = rows.iter().map(|row| window(row, first, window_s, blocks)).collect();
                SeriesClient { name: class, windows }
            });
            let clients = clients.collect();
            // What counts from the start of its log says nothing of the clock, except where its format does.
            series.push(SeriesInput { name, window_s, clients, starts_at_midnight: true, seed });
        }
        Ok(series)
    }
}

impl Found {
    pub(super) fn of(ledger: &Ledger) -> Result<Self, LedgerError> {
        let mut rates: Clients = BTreeMap::new();
        let mut lengths: BTreeMap<String, Vec<SeriesRow>> = BTreeMap::new();
        let mut first = i64::MAX;
        for part in &ledger.manifest().series {
            let mut rows = Vec::new();
            each_batch(
                &ledger.path(&part.file),
                SeriesRow::schema(),
                |_| true,
                |batch| {
                    rows.extend(SeriesRow::of_columns(&batch));
                    Ok(())
                },
            )?;
            for row in rows {
                let (Some(class), Some(start)) = (row.class.clone(), row.start) else {
                    continue;
                };
                let Some(window) = row.window_s.filter(|window| *window >= 1.0) else {
                    continue;
                };
                // How a replica fared is no demand: its model has it already.
                if row.replica.is_some() {
                    continue;
                }
                first = first.min(start);
                if row.requests.is_some() {
                    let group = (group_of(&row, &class).to_owned(), window as u64);
                    rates.entry(group).or_default().entry(class).or_default().push(row);
                } else if row.basis.is_none() {
                    lengths.entry(class).or_default().push(row);
                }
            }
        }
        Ok(Self { rates, lengths, first })
    }
}

/// The series that a class is part of: models of one source, and clients whose names differ only in the last part.
fn group_of<'a>(row: &'a SeriesRow, class: &'a str) -> &'a str {
    match (&row.basis, &row.source) {
        // A model's name may have a `/` that means nothing here.
        (Some(_), Some(source)) => source,
        _ => class.rsplit_once('/').map_or("series", |(group, _)| group),
    }
}

/// Tokens of a request in the mean, where their sum is known.
pub(super) fn mean(tokens: Option<f64>, requests: Option<f64>) -> Option<f64> {
    Some(tokens? / requests.filter(|requests| *requests > 0.0)?)
}

/// The block of a client that a window of it begins in.
pub(super) fn block_at(start: i64, blocks: &[SeriesRow]) -> Option<&SeriesRow> {
    blocks.iter().find(|block| {
        let begins = block.start.unwrap_or(i64::MAX);
        let lasts = (block.window_s.unwrap_or(0.0) * SECOND_NS as f64) as i64;
        begins <= start && start < begins.saturating_add(lasts)
    })
}

fn window(row: &SeriesRow, first: i64, window_s: u64, blocks: &[SeriesRow]) -> SeriesWindow {
    let start = row.start.unwrap_or(first);
    let block = block_at(start, blocks);
    let of_block =
        |value: fn(&SeriesRow) -> Option<f64>| value(row).or_else(|| block.and_then(value));
    SeriesWindow {
        start_s: (start - first).unsigned_abs() / SECOND_NS.unsigned_abs(),
        requests_per_s: row.requests.unwrap_or(0.0) / window_s as f64,
        cv: row.cv,
        prompt_mean: of_block(|row| row.prompt_mean.or(mean(row.prompt_tokens, row.requests))),
        output_mean: of_block(|row| row.output_mean.or(mean(row.output_tokens, row.requests))),
        reason_ratio: of_block(|row| row.reason_share),
    }
}
