//! Tasks, put together from the attempts that serve them.

use std::num::NonZero;

use plimsoll_cost::Tasks;

use super::Verdicts;
use super::units::in_order;
use crate::error::LedgerError;

/// The number of the value that a row has in each dimension that is counted.
pub(super) type Combination = [u16; plimsoll_cost::Dimension::ALL.len()];

/// What some attempts of one task come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// The task, hashed.
    pub(super) task: u64,
    /// What they cost, in dollars.
    pub(super) usd: f64,
    /// When the first of them came; the smallest time where it does not say.
    pub(super) first_ns: i64,
    /// The values that the first of them has.
    pub(super) values: Combination,
    pub(super) attempts: u32,
    /// What the log itself says of how the task ended, and when it said so.
    pub(super) said: Option<(i64, bool)>,
}

impl Part {
    /// Puts what came after it in the ledger to it; the ledger's order only counts between rows of the same moment.
    fn add(&mut self, more: &Self) {
        if more.first_ns < self.first_ns {
            (self.first_ns, self.values) = (more.first_ns, more.values);
        }
        self.usd += more.usd;
        self.attempts = self.attempts.saturating_add(more.attempts);
        self.said = match (self.said, more.said) {
            (Some(own), Some(more)) if own.0 > more.0 => Some(own),
            (own, more) => more.or(own),
        };
    }

    /// What the task comes to, once it is known how it ended.
    pub(super) fn ended(&self, success: Option<bool>) -> Tasks {
        Tasks {
            tasks: 1,
            attempts: u64::from(self.attempts),
            succeeded: u64::from(success == Some(true)),
            failed: u64::from(success == Some(false)),
            usd: self.usd,
            usd_squared: self.usd * self.usd,
            usd_succeeded: if success == Some(true) { self.usd } else { 0.0 },
        }
    }
}

/// One entry a task, in the order of their hashes.
pub(super) fn settle(parts: &mut Vec<Part>) {
    // Stable: what came later stays later.
    parts.sort_by_key(|part| part.task);
    parts.dedup_by(|later, first| {
        let same = later.task == first.task;
        if same {
            first.add(later);
        }
        same
    });
}

/// Adds what other tasks come to.
pub(super) fn add(own: &mut Tasks, more: &Tasks) {
    own.tasks += more.tasks;
    own.attempts += more.attempts;
    own.succeeded += more.succeeded;
    own.failed += more.failed;
    own.usd += more.usd;
    own.usd_squared += more.usd_squared;
    own.usd_succeeded += more.usd_succeeded;
}

/// Bits of a hash that say which shelf it is on.
const SHELF_BITS: u32 = 6;

/// Parts of tasks, kept so that shelves can be settled apart.
pub(super) struct Shelves(Vec<Vec<Part>>);

/// What a shelf comes to.
struct Shelf<T> {
    sums: T,
    /// Tasks that somebody judged and that are not here.
    missed: Vec<u64>,
}

impl Shelves {
    pub(super) fn new() -> Self {
        Self(vec![Vec::new(); 1 << SHELF_BITS])
    }

    pub(super) fn put(&mut self, part: Part) {
        self.0[(part.task >> (u64::BITS - SHELF_BITS)) as usize].push(part);
    }

    /// Tells every task how it ended: what was found out later counts, else what the log says. The sums are made shelf by shelf on
    /// several threads, and taken in their order. Returns the tasks that somebody judged and that are not here.
    pub(super) fn tell<T: Clone + Send + Sync>(
        self,
        verdicts: &Verdicts,
        threads: NonZero<usize>,
        empty: &T,
        count: impl Fn(&mut T, &Part, &Tasks) + Sync,
        mut take: impl FnMut(T),
    ) -> Result<Vec<u64>, LedgerError> {
        let shelves: Vec<(u64, Vec<Part>)> = (0u64..).zip(self.0).collect();
        let work = |(number, parts): &(u64, Vec<Part>)| {
            let mut parts = parts.clone();
            settle(&mut parts);
            let first = number << (u64::BITS - SHELF_BITS);
            let last = first | (u64::MAX >> SHELF_BITS);
            let mut judged = verdicts.range(first..=last).peekable();
            let mut shelf = Shelf { sums: empty.clone(), missed: Vec::new() };
            for part in &parts {
                while let Some((task, _)) = judged.next_if(|(task, _)| **task < part.task) {
                    shelf.missed.push(*task);
                }
                let later = judged.next_if(|(task, _)| **task == part.task);
                let success =
                    later.map(|(_, (_, success))| *success).or(part.said.map(|(_, said)| said));
                count(&mut shelf.sums, part, &part.ended(success));
            }
            shelf.missed.extend(judged.map(|(task, _)| *task));
            Ok(shelf)
        };
        let mut missed = Vec::new();
        in_order(&shelves, threads, work, |mut shelf: Shelf<T>| {
            take(shelf.sums);
            missed.append(&mut shelf.missed);
        })?;
        Ok(missed)
    }
}
