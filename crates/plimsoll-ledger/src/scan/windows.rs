//! Sums over windows, and nothing else: the shortest question a ledger is asked.

use std::collections::BTreeSet;
use std::num::NonZero;

use super::columns::{Numbers, Stamps};
use super::units::{Unit, in_order, units};
use super::{damaged, survey};
use crate::column::Columns;
use crate::error::LedgerError;
use crate::store::Ledger;

/// What came in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowSum {
    /// Rows.
    pub rows: u64,
    /// Their prompt tokens, as far as they are known.
    pub prompt_tokens: u64,
    /// Their output tokens, as far as they are known.
    pub output_tokens: u64,
}

/// Sums of a stretch: the number of its first window, and the windows from there on.
type Sums = (usize, Vec<WindowSum>);

impl Ledger {
    /// Sums over windows of so many seconds from the first arrival on, empty ones included.
    pub fn window_sums(
        &self,
        window_s: NonZero<u32>,
        threads: NonZero<usize>,
    ) -> Result<Vec<WindowSum>, LedgerError> {
        let clock = self.common_clock();
        let spans = self.manifest().requests.iter().flat_map(|part| &part.clocks);
        let own = spans.filter(|span| Some(&span.clock) == clock.as_ref());
        let Some(first) = own.map(|span| span.first_ns).min() else { return Ok(Vec::new()) };
        let width = i64::from(window_s.get()) * 1_000_000_000;
        // Rows of other clocks are only there where the manifest says so.
        let parts = &self.manifest().requests;
        let mixed =
            parts.iter().flat_map(|part| &part.clocks).any(|s| Some(&s.clock) != clock.as_ref());
        let mut wanted: BTreeSet<&str> = ["ts_arrival", "prompt_tokens", "output_tokens"].into();
        if mixed {
            wanted.insert("clock");
        }
        let mut sums: Vec<WindowSum> = Vec::new();
        let work = |unit: &Unit| -> Result<Sums, LedgerError> {
            let mut own: Sums = (usize::MAX, Vec::new());
            unit.read(self, &wanted, |path, batch| {
                let mask =
                    if mixed { survey::on_clock(batch, &clock) } else { Ok(survey::Mask::All) };
                let mask = mask.map_err(|problem| damaged(path, problem))?;
                add(batch, &mask, first, width, &mut own).map_err(|problem| damaged(path, problem))
            })?;
            Ok(own)
        };
        in_order(&units(self, &clock)?, threads, work, |(from, more)| {
            if more.is_empty() {
                return;
            }
            if sums.len() < from + more.len() {
                sums.resize(from + more.len(), WindowSum::default());
            }
            for (sum, more) in sums[from..].iter_mut().zip(more) {
                sum.rows += more.rows;
                sum.prompt_tokens += more.prompt_tokens;
                sum.output_tokens += more.output_tokens;
            }
        })?;
        Ok(sums)
    }
}

fn add(
    batch: &Columns,
    mask: &survey::Mask,
    first: i64,
    width: i64,
    own: &mut Sums,
) -> Result<(), String> {
    let stamps = Stamps::of(batch, "ts_arrival")?;
    let (prompts, outputs) =
        (Numbers::of(batch, "prompt_tokens")?, Numbers::of(batch, "output_tokens")?);
    let known = |column: &Numbers<'_>, i: usize| column.get(i).map_or(0, u64::from);
    // Rows come in order for the most part: the window of one is that of the last, or the next.
    let (mut window, mut until) = (usize::MAX, i64::MIN);
    for i in 0..batch.rows {
        let at = stamps.get(i).filter(|_| mask.has(i));
        let Some(at) = at.and_then(|at| at.checked_sub(first)) else { continue };
        if at >= until || at < until - width {
            window =
                usize::try_from(at / width).map_err(|_| "has a row before its first".to_owned())?;
            until = (at / width + 1).saturating_mul(width);
            if own.1.is_empty() {
                own.0 = window;
            } else if window < own.0 {
                let more = own.0 - window;
                own.1.splice(0..0, std::iter::repeat_n(WindowSum::default(), more));
                own.0 = window;
            }
            if own.1.len() <= window - own.0 {
                own.1.resize(window - own.0 + 1, WindowSum::default());
            }
        }
        let sum = &mut own.1[window - own.0];
        sum.rows += 1;
        sum.prompt_tokens += known(&prompts, i);
        sum.output_tokens += known(&outputs, i);
    }
    Ok(())
}
