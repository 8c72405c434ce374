//! Stretches of time that do not overlap, and threads that read them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::damaged;
use crate::column::Columns;
use crate::column::read::Opened;
use crate::error::LedgerError;
use crate::row::Row;
use crate::store::Ledger;

/// Row groups that are gathered together, as parts of the manifest and groups of those.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) groups: Vec<(usize, usize)>,
}

/// Stretches of the ledger in order of time; first what has none.
pub(super) fn units(ledger: &Ledger, clock: &Option<String>) -> Result<Vec<Unit>, LedgerError> {
    let mut timeless = Unit { groups: Vec::new() };
    // The first and last arrival of groups, and which they are.
    type Span = (i64, i64, Vec<(usize, usize)>);
    let mut spans: Vec<Span> = Vec::new();
    for (i, part) in ledger.manifest().requests.iter().enumerate() {
        let path = ledger.path(&part.file);
        let metadata = metadata(&path)?;
        let groups = metadata.row_groups();
        let all = || (0..groups.len()).map(|g| (i, g)).collect::<Vec<_>>();
        let own = part.clocks.iter().find(|span| Some(&span.clock) == clock.as_ref());
        let Some(own) = own else {
            timeless.groups.extend(all());
            continue;
        };
        let by_group: Option<Vec<(i64, i64)>> = groups.iter().map(stamps).collect();
        match by_group.filter(|_| part.clocks.len() == 1) {
            Some(stamps) => {
                spans.extend(stamps.iter().enumerate().map(|(g, (a, b))| (*a, *b, vec![(i, g)])));
            }
            None => spans.push((own.first_ns, own.last_ns, all())),
        }
    }
    spans.sort();
    let mut units = vec![timeless];
    let mut until = None;
    for (first, last, groups) in spans {
        match (until, units.last_mut()) {
            // Groups that share more than a moment are one stretch.
            (Some(end), Some(unit)) if first < end => unit.groups.extend(groups),
            _ => units.push(Unit { groups }),
        }
        until = Some(until.map_or(last, |end: i64| end.max(last)));
    }
    for unit in &mut units {
        // In the order they were written, which is the order of rows with the same stamp.
        unit.groups.sort_unstable();
    }
    Ok(units)
}

/// What the files' own statistics say, read once.
pub(super) struct Groups {
    /// Every row group by itself, in order of their first arrivals; those with rows without a time go first.
    pub(super) units: Vec<Unit>,
    /// The columns of those that were asked about in which any row says something.
    pub(super) said: BTreeSet<&'static str>,
    /// Whether any row is not the first attempt of its request.
    pub(super) retried: bool,
}

/// Row groups, for whoever does not mind that stretches overlap.
pub(super) fn groups(ledger: &Ledger, columns: &[&'static str]) -> Result<Groups, LedgerError> {
    let (mut said, mut retried) = (BTreeSet::new(), false);
    let mut order: Vec<(Option<i64>, (usize, usize))> = Vec::new();
    for (i, part) in ledger.manifest().requests.iter().enumerate() {
        let metadata = metadata(&ledger.path(&part.file))?;
        for (g, group) in metadata.row_groups().iter().enumerate() {
            order.push((stamps(group).map(|(first, _)| first), (i, g)));
            said.extend(columns.iter().copied().filter(|column| says(group, column)));
            retried |= is_retried(group);
        }
    }
    order.sort_unstable();
    let units = order.into_iter().map(|(_, group)| Unit { groups: vec![group] }).collect();
    Ok(Groups { units, said, retried })
}

/// Whether any row of a group may be another attempt than the first.
fn is_retried(group: &RowGroupMetaData) -> bool {
    let column = group.columns().iter().find(|c| c.column_path().string() == "attempt");
    match column.map(|column| column.statistics()) {
        None => false,
        Some(Some(Statistics::Int32(stats))) => {
            stats.max_opt().map_or(stats.null_count_opt().is_none(), |most| *most > 1)
        }
        Some(_) => true,
    }
}

/// The first and the last arrival of a group; none where some row has no time.
fn stamps(group: &RowGroupMetaData) -> Option<(i64, i64)> {
    let column = group.columns().iter().find(|c| c.column_path().string() == "ts_arrival")?;
    match column.statistics()? {
        Statistics::Int64(stats) if stats.null_count_opt() == Some(0) => {
            Some((*stats.min_opt()?, *stats.max_opt()?))
        }
        _ => None,
    }
}

/// Whether any row of a group says something in a column.
pub(super) fn says(group: &RowGroupMetaData, name: &str) -> bool {
    let columns = group.columns().iter();
    let mut own = columns.filter(|c| c.column_path().parts().first().is_some_and(|p| p == name));
    own.any(|column| {
        let nulls = column.statistics().and_then(Statistics::null_count_opt);
        nulls.is_none_or(|nulls| nulls < column.num_values().unsigned_abs())
    })
}

pub(super) fn metadata(path: &Path) -> Result<ParquetMetaData, LedgerError> {
    Ok(Opened::at(path)?.metadata)
}

impl Unit {
    /// Reads some columns of every row.
    pub(super) fn read(
        &self,
        ledger: &Ledger,
        columns: &BTreeSet<&str>,
        mut each: impl FnMut(&Path, &Columns) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let mut by_part: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (part, group) in &self.groups {
            by_part.entry(*part).or_default().push(*group);
        }
        for (part, groups) in by_part {
            let path = ledger.path(&ledger.manifest().requests[part].file);
            let bad = |error: ParquetError| damaged(&path, error.to_string());
            let opened = Opened::at(&path)?;
            for group in groups {
                let wanted = |name: &str| columns.contains(name);
                let mut group = opened.group(group, Row::schema(), wanted).map_err(bad)?;
                while let Some(batch) = group.next().map_err(bad)? {
                    each(&path, &batch)?;
                }
            }
        }
        Ok(())
    }
}

/// Works on every item on several threads, and takes the results in the order of the items.
pub(super) fn in_order<T: Sync, R: Send>(
    items: &[T],
    threads: NonZero<usize>,
    work: impl Fn(&T) -> Result<R, LedgerError> + Sync,
    mut take: impl FnMut(R),
) -> Result<(), LedgerError> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (done, results) = sync_channel(threads.get());
        for _ in 0..threads.get().min(items.len()) {
            let (done, next, stop, work) = (done.clone(), &next, &stop, &work);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let Some(item) = items.get(i) else { return };
                    if done.send((i, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut early = BTreeMap::new();
        let mut expected = 0;
        let mut failed = None;
        for (i, result) in results {
            match result {
                Ok(result) if failed.is_none() => {
                    early.insert(i, result);
                    while let Some(result) = early.remove(&expected) {
                        expected += 1;
                        take(result);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    })
}
