//! When requests came: each stamp up to a limit, gaps in buckets beyond it.

use std::collections::BTreeMap;

use plimsoll_stats::Sketch;

use super::Gathering;

/// A row's arrival.
#[derive(Clone, Copy, Debug)]
pub(in crate::profile) struct Arrival {
    pub at: i64,
    pub prompt: u32,
    pub class: u32,
}

/// Arrivals of a stretch.
#[derive(Clone, Debug)]
pub(in crate::profile) struct Times {
    exact_rows: u64,
    /// Whether there will be more rows than are kept.
    many: bool,
    /// In the order they came, until sealed; empty once they are bucketed.
    kept: Vec<Arrival>,
    sorted: bool,
    bucketed: Option<Bucketed>,
    last: Option<i64>,
}

/// Gaps of a log too long to keep.
#[derive(Clone, Debug)]
pub(in crate::profile) struct Bucketed {
    /// Of all rows.
    pub all: Gaps,
    /// By class.
    pub classes: BTreeMap<u32, Gaps>,
    /// The first stamps, from which a tick is seen.
    pub head: Vec<i64>,
}

/// Gaps between consecutive arrivals. All but the buckets is exact.
#[derive(Clone, Debug)]
pub(in crate::profile) struct Gaps {
    pub n: u64,
    pub first: i64,
    pub last: i64,
    pub squares: u128,
    pub max: i64,
    pub zeros: u64,
    pub buckets: Sketch,
}

/// Stamps that a tick is looked for in.
pub(in crate::profile) const HEAD: usize = 200_000;
/// Seconds to the nanosecond.
pub(super) const RESOLUTION: f64 = 1e-9;

impl Times {
    pub fn new(shape: &Gathering) -> Self {
        let many = shape.rows_expected.is_some_and(|rows| rows > shape.exact_rows);
        let exact_rows = shape.exact_rows;
        Self { exact_rows, many, kept: Vec::new(), sorted: true, bucketed: None, last: None }
    }

    #[inline]
    pub fn push(&mut self, at: i64, prompt: u32, class: u32) {
        if let Some(last) = self.kept.last() {
            self.sorted &= last.at <= at;
        }
        self.last = self.last.max(Some(at));
        self.kept.push(Arrival { at, prompt, class });
    }

    /// Takes gaps that were found elsewhere, and the last arrival.
    pub fn set(&mut self, bucketed: Option<Bucketed>, last: Option<i64>) {
        self.bucketed = bucketed;
        self.last = last;
    }

    /// The last arrival, in nanoseconds.
    pub fn last(&self) -> Option<i64> {
        self.last
    }

    /// Sorts; buckets where the log is too long.
    pub fn seal(&mut self) {
        self.sort();
        if self.many || self.kept.len() as u64 > self.exact_rows {
            self.bucket();
        }
    }

    fn sort(&mut self) {
        if !self.sorted {
            // Stable: equals keep their order.
            self.kept.sort_by_key(|arrival| arrival.at);
            self.sorted = true;
        }
    }

    fn bucket(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        let mut fresh: Option<Bucketed> = None;
        for arrival in std::mem::take(&mut self.kept) {
            match &mut fresh {
                None => fresh = Some(Bucketed::new(arrival)),
                Some(fresh) => fresh.push(arrival),
            }
        }
        if let Some(fresh) = fresh {
            match &mut self.bucketed {
                None => self.bucketed = Some(fresh),
                Some(own) => own.append(fresh),
            }
        }
    }

    pub fn append(&mut self, mut later: Self) {
        self.sort();
        later.sort();
        let kept = (self.kept.len() + later.kept.len()) as u64;
        let bucketed = self.bucketed.is_some() || later.bucketed.is_some();
        if self.many || bucketed || kept > self.exact_rows {
            self.bucket();
            later.bucket();
            match (&mut self.bucketed, later.bucketed) {
                (Some(own), Some(more)) => own.append(more),
                (own @ None, more) => *own = more,
                (Some(_), None) => {}
            }
        } else {
            let meet = self.kept.last().zip(later.kept.first());
            self.sorted = meet.is_none_or(|(last, first)| last.at <= first.at);
            self.kept.append(&mut later.kept);
        }
        self.last = self.last.max(later.last);
    }

    /// Every arrival in order of time, where all are kept.
    pub fn exact(&self) -> Option<&[Arrival]> {
        (self.bucketed.is_none() && self.sorted).then_some(&self.kept)
    }

    /// Gaps, where they are too many to keep each.
    pub fn bucketed(&self) -> Option<&Bucketed> {
        self.bucketed.as_ref()
    }
}

impl Bucketed {
    fn new(first: Arrival) -> Self {
        let classes = BTreeMap::from([(first.class, Gaps::new(first.at))]);
        Self { all: Gaps::new(first.at), classes, head: vec![first.at] }
    }

    fn push(&mut self, arrival: Arrival) {
        self.all.push(arrival.at);
        self.classes
            .entry(arrival.class)
            .and_modify(|gaps| gaps.push(arrival.at))
            .or_insert_with(|| Gaps::new(arrival.at));
        if self.head.len() < HEAD {
            self.head.push(arrival.at);
        }
    }

    fn append(&mut self, later: Self) {
        self.all.append(&later.all);
        for (class, gaps) in later.classes {
            match self.classes.get_mut(&class) {
                Some(own) => own.append(&gaps),
                None => {
                    self.classes.insert(class, gaps);
                }
            }
        }
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(later.head.into_iter().take(room));
    }
}

impl Gaps {
    fn new(at: i64) -> Self {
        let buckets = Sketch::new(RESOLUTION);
        Self { n: 0, first: at, last: at, squares: 0, max: 0, zeros: 0, buckets }
    }

    fn push(&mut self, at: i64) {
        // Stretches that overlap have no gap between them.
        let gap = at.saturating_sub(self.last).max(0);
        self.last = self.last.max(at);
        self.count(gap);
    }

    fn count(&mut self, gap: i64) {
        self.n += 1;
        self.squares += u128::from(gap.unsigned_abs()).pow(2);
        self.max = self.max.max(gap);
        self.zeros += u64::from(gap == 0);
        self.buckets.record(gap as f64 * RESOLUTION, 1);
    }

    fn append(&mut self, later: &Self) {
        self.count(later.first.saturating_sub(self.last).max(0));
        self.n += later.n;
        self.squares += later.squares;
        self.max = self.max.max(later.max);
        self.zeros += later.zeros;
        self.buckets.merge(&later.buckets);
        self.last = self.last.max(later.last);
    }
}
