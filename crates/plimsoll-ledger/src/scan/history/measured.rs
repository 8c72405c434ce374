//! Series that somebody measured: a window without a row is unknown, not empty.

use std::collections::BTreeMap;

use plimsoll_workload::{Known, StepCount};

use super::{Client, Grid, SECOND_NS, asked_in};
use crate::row::SeriesRow;

impl Client<'_> {
    /// Whether somebody measured it, so that windows without a row are unknown.
    pub(super) fn is_measured(&self) -> bool {
        self.rows.iter().any(|row| row.basis.is_some())
    }

    /// What is known of its steps, those without any window left out.
    pub(super) fn known(
        &self,
        place: impl Fn(&SeriesRow) -> Option<(usize, i64)>,
    ) -> BTreeMap<usize, KnownStep> {
        let at = |row: &SeriesRow| place(row).map(|(_, since)| since);
        let first = self.rows.iter().filter_map(at).min().unwrap_or(0);
        let last = self.rows.iter().filter_map(at).max().unwrap_or(0);
        let mut known: BTreeMap<usize, KnownStep> = BTreeMap::new();
        for row in self.rows {
            let Some((step, _)) = place(row) else { continue };
            let own = known.entry(step).or_insert_with(|| KnownStep {
                step,
                windows: 0,
                count: StepCount::default(),
                between: (first, last),
            });
            own.windows += 1;
            own.count.merge(&asked_in(row, self.blocks));
        }
        known
    }
}

/// What is known of a step.
pub(super) struct KnownStep {
    step: usize,
    windows: i64,
    count: StepCount,
    /// Where the first and the last window of the client begin, from the origin.
    between: (i64, i64),
}

impl KnownStep {
    /// The whole step: what is missing of it is taken to be like the rest, but for what is before the first window or after the last.
    pub(super) fn whole(&self, grid: &Grid, window_ns: i64) -> StepCount {
        let step_ns = i64::from(grid.step_s.get()) * SECOND_NS;
        let start = (grid.first + i64::try_from(self.step).unwrap_or(0)).saturating_mul(step_ns);
        let from = start.max(self.between.0);
        let to = start.saturating_add(step_ns).min(self.between.1.saturating_add(window_ns));
        let windows = (to - from).max(window_ns) as f64 / window_ns as f64;
        let times = (windows / self.windows as f64).max(1.0);
        let scaled = |own: Known| Known { sum: own.sum * times, of: own.of * times };
        let own = &self.count;
        StepCount {
            requests: own.requests * times,
            attempts: own.attempts * times,
            limited: own.limited * times,
            failed: own.failed * times,
            prompt_tokens: scaled(own.prompt_tokens),
            cached_tokens: scaled(own.cached_tokens),
            output_tokens: scaled(own.output_tokens),
            kv_token_s: scaled(own.kv_token_s),
        }
    }
}
