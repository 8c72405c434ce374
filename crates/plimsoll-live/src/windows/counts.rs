//! By how much counters grew, window by window and process by process.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_fleet::metrics::{Reporter, Signal};

use super::table::{Column, Grid, Process, Reader};
use crate::error::LiveError;
use crate::source::{Over, Pool};

/// Counters that are read.
const COUNTERS: [Signal; 9] = [
    Signal::Requests,
    Signal::PromptTokens,
    Signal::OutputTokens,
    Signal::CachedTokens,
    Signal::FreshTokens,
    Signal::Errors,
    Signal::Preemptions,
    Signal::CacheQueries,
    Signal::CacheHits,
];

/// Counters that a process has once it has served something.
const OF_SERVICE: [Signal; 3] = [Signal::Requests, Signal::PromptTokens, Signal::OutputTokens];

/// What is known of a process in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It was scraped at both edges.
    Whole,
    /// It came or went: what it did in the window is known from its first scrape, or to its last.
    Turn,
    /// It was not scraped, and is there before and after: what it did is unknown.
    Hole,
    /// It was not there.
    Away,
}

/// What a reporter counted.
pub(super) struct Counts<'a> {
    pub(super) reporter: Reporter,
    pub(super) grid: &'a Grid,
    pub(super) processes: Vec<Process>,
    /// By process and window.
    pub(super) status: Vec<Vec<Status>>,
    /// Windows of a process in which a counter was reset.
    pub(super) resets: BTreeSet<(usize, usize)>,
    /// By signal, process and window; NaN where it is unknown.
    grown: BTreeMap<Signal, Column>,
    /// Calls that wait, at edges.
    pub(super) waiting: Column,
}

impl<'a> Counts<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, LiveError> {
        let grid = reader.grid;
        let look_back_ms = reader.look_back_ms();
        let waiting = reader.column(Signal::Waiting, Over::Last, Pool::Sum, look_back_ms)?;
        let running = reader.column(Signal::Running, Over::Last, Pool::Sum, look_back_ms)?;
        let mut edges: BTreeMap<Signal, Column> = BTreeMap::new();
        for signal in COUNTERS {
            let column = reader.column(signal, Over::Last, Pool::Sum, look_back_ms)?;
            if !column.is_empty() {
                edges.insert(signal, column);
            }
        }
        // A process that reports, but none of what it would have served, has served nothing yet.
        for (id, own) in &running {
            for edge in (0..grid.edges).filter(|edge| own[*edge].is_finite()) {
                if OF_SERVICE.iter().all(|signal| value(edges.get(signal), *id, edge).is_nan()) {
                    for column in edges.values_mut() {
                        let own = column.entry(*id).or_insert_with(|| vec![f64::NAN; grid.edges]);
                        own[edge] = 0.0;
                    }
                }
            }
        }
        let processes = reader.processes.clone();
        let status = (0..processes.len()).map(|id| {
            let columns = || edges.values().chain([&waiting, &running]);
            let is_there =
                |edge: usize| columns().any(|own| value(Some(own), id, edge).is_finite());
            statuses(&(0..grid.edges).map(is_there).collect::<Vec<bool>>(), grid.away)
        });
        let status: Vec<Vec<Status>> = status.collect();
        let resets = resets(reader, &edges)?;
        let mut own = Self {
            reporter: reader.reporting.reporter,
            grid,
            processes,
            status,
            resets,
            grown: BTreeMap::new(),
            waiting,
        };
        own.grow(reader, &edges)?;
        Ok(own)
    }

    /// By how much a counter of a process grew in a window; none where that is not known.
    pub(super) fn grown(&self, signal: Signal, id: usize, window: usize) -> Option<f64> {
        let of = |signal: Signal| {
            let grown = value(self.grown.get(&signal), id, window);
            grown.is_finite().then_some(grown)
        };
        // Before there was a counter of cached tokens, what the prefix cache had, which is counted in tokens, was all that was cached.
        let instead = if signal == Signal::CachedTokens { of(Signal::CacheHits) } else { None };
        of(signal).or(instead)
    }

    fn grow(
        &mut self,
        reader: &mut Reader<'a>,
        edges: &BTreeMap<Signal, Column>,
    ) -> Result<(), LiveError> {
        let grid = self.grid;
        let is_odd = |id: usize, window: usize| {
            self.status[id][window] == Status::Turn || self.resets.contains(&(id, window))
        };
        let odd: Vec<usize> = grid
            .windows()
            .filter(|window| (0..self.processes.len()).any(|id| is_odd(id, *window)))
            .collect();
        for (signal, column) in edges {
            let mut grown = Column::new();
            for (id, values) in column {
                let mut own = vec![f64::NAN; grid.edges];
                for window in grid.windows() {
                    if self.status[*id][window] != Status::Whole || is_odd(*id, window) {
                        continue;
                    }
                    own[window] = match (values[window], values[window + 1]) {
                        // It began to count in a process that was there.
                        (from, to) if from.is_nan() => to,
                        (from, to) => to - from,
                    };
                }
                grown.insert(*id, own);
            }
            for run in odd.chunk_by(|a, b| a + 1 == *b) {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                let scrapes = reader.scrapes(*signal, (*first, last + 1))?;
                for (id, own) in &mut grown {
                    let values = &column[id];
                    for window in run.iter().filter(|window| is_odd(*id, **window)) {
                        let scraped = scrapes.get(id).map_or(&[][..], Vec::as_slice);
                        let scraped = scraped.iter().filter(|(at, _)| at == window);
                        let scraped = scraped.map(|(_, value)| *value);
                        let whole = self.status[*id][*window] == Status::Whole;
                        own[*window] =
                            scrape_by_scrape(values[*window], values[*window + 1], whole, scraped);
                    }
                }
            }
            self.grown.insert(*signal, grown);
        }
        Ok(())
    }
}

/// A value of a column; NaN where there is none.
pub(super) fn value(column: Option<&Column>, id: usize, edge: usize) -> f64 {
    column.and_then(|own| own.get(&id)).map_or(f64::NAN, |own| own[edge])
}

/// Windows of a process that a counter was reset in: it is smaller at the end, or it was smaller once in between.
fn resets(
    reader: &mut Reader<'_>,
    edges: &BTreeMap<Signal, Column>,
) -> Result<BTreeSet<(usize, usize)>, LiveError> {
    let grid = reader.grid;
    let mut found = BTreeSet::new();
    for (id, own) in edges.values().flatten() {
        for window in grid.windows().filter(|window| own[window + 1] < own[*window]) {
            found.insert((*id, window));
        }
    }
    // All counters of a process are reset at once, and these are seldom zero.
    let busiest = OF_SERVICE.into_iter().rev().find(|signal| edges.contains_key(signal));
    if let Some(signal) = busiest {
        let range_ms = grid.window_ms + reader.look_back_ms();
        let seen = reader.column(signal, Over::Resets, Pool::Max, range_ms)?;
        for (id, own) in &seen {
            found.extend(
                grid.windows().filter(|window| own[window + 1] > 0.0).map(|window| (*id, window)),
            );
        }
    }
    Ok(found)
}

/// What a counter grew by, from its value at one edge to that at the next; after a reset it counts from zero.
fn scrape_by_scrape(from: f64, to: f64, whole: bool, scrapes: impl Iterator<Item = f64>) -> f64 {
    // It began to count in a process that was there; in a new one, nobody knows what came before the first scrape.
    let mut before = if from.is_nan() && whole { 0.0 } else { from };
    let mut grown = if before.is_nan() && to.is_nan() { f64::NAN } else { 0.0 };
    for value in scrapes {
        grown = if grown.is_nan() { 0.0 } else { grown };
        if !before.is_nan() {
            grown += if value < before { value } else { value - before };
        }
        before = value;
    }
    grown
}

fn statuses(there: &[bool], away: usize) -> Vec<Status> {
    let mut status: Vec<Status> = there
        .windows(2)
        .map(|edges| match edges {
            [true, true] => Status::Whole,
            [false, false] => Status::Away,
            _ => Status::Turn,
        })
        .collect();
    let mut latest = None;
    for edge in (0..there.len()).filter(|edge| there[*edge]) {
        if let Some(before) = latest
            && edge - before > 1
            && edge - before - 1 < away
        {
            status[before..edge].fill(Status::Hole);
        }
        latest = Some(edge);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_told_from_absence() {
        let check = |there: &str, expect: &str| {
            let there: Vec<bool> = there.chars().map(|own| own == '#').collect();
            let shown: String = statuses(&there, 3)
                .iter()
                .map(|own| match own {
                    Status::Whole => '=',
                    Status::Turn => '/',
                    Status::Hole => '?',
                    Status::Away => ' ',
                })
                .collect();
            assert_eq!(shown, expect);
        };
        check("####", "===");
        check("##..##", "=???=");
        check("##...##", "=/  /=");
        check("..##..", " /=/ ");
    }

    #[test]
    fn counters_count_from_zero_after_a_reset() {
        let check = |from, to, whole, scrapes: &[f64], expect: f64| {
            let grown = scrape_by_scrape(from, to, whole, scrapes.iter().copied());
            assert!(grown == expect || (grown.is_nan() && expect.is_nan()), "{grown}");
        };
        check(100.0, 7.0, true, &[110.0, 130.0, 2.0, 7.0], 37.0);
        // A reset that the edges do not show.
        check(5.0, 9.0, true, &[8.0, 1.0, 9.0], 12.0);
        // A new process that had counted 40 before anybody looked.
        check(f64::NAN, 45.0, false, &[40.0, 45.0], 5.0);
        // A counter that is new in a process that was there.
        check(f64::NAN, 45.0, true, &[40.0, 45.0], 45.0);
        // One that went.
        check(10.0, f64::NAN, false, &[12.0], 2.0);
        check(f64::NAN, f64::NAN, false, &[], f64::NAN);
    }
}
