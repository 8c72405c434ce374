//! Closed books: every micro-dollar that was paid is on one line, and every line belongs to somebody or says why it does not.
//!
//! A charge is split once, by largest remainder, into lines; a line is split once into the values of a dimension. So lines sum to what was
//! paid and values to lines whatever the weights are, and a tenant that is told apart as two pays as much as before, to the rounding of a line.

mod shares;
mod weigh;

use std::collections::BTreeMap;

use plimsoll_units::Usd;
use thiserror::Error;

use crate::charge::{Charge, Expense};
use crate::split::split;
use crate::usage::{Dimension, End, Key, Pricing, Sums, Usage};
pub use shares::{Share, Shares};
use weigh::{Basis, Hours, Slot, Weight, plain_weights, token_weights};

/// How device money is split: seconds of prefill, of decode steps shared by the batch, and of KV reads.
pub const METHOD: &str = "plimsoll-phase-seconds/1";

/// Whom a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Who used it.
    Allocated,
    /// Nobody used it.
    Idle,
    /// Nobody should have used it: it stands ready.
    Reserve,
    /// It was used for what failed, was left or was refused.
    Failed,
    /// Nobody can say who used it.
    Unallocated,
}

impl Kind {
    /// As results call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Idle => "idle",
            Self::Reserve => "reserve",
            Self::Failed => "failed",
            Self::Unallocated => "unallocated",
        }
    }
}

/// What a request was doing while it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Its fresh prompt was read.
    Prefill,
    /// Its cached prompt was charged, as hosted models do.
    Cached,
    /// It wrote, whatever its context.
    Decode,
    /// Its context was read while it wrote.
    Kv,
}

impl Phase {
    /// As results call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Cached => "cached",
            Self::Decode => "decode",
            Self::Kv => "kv",
        }
    }
}

/// Something in the books.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What tables call it.
    pub name: String,
    /// Whom it belongs to.
    pub kind: Kind,
    /// The charge that it is of, as a place in what was given; none where nothing was charged for what was used.
    pub charge: Option<usize>,
    /// What was paid for.
    pub expense: Expense,
    /// The pool or provider, as a place in [`Usage::places`].
    pub place: Option<u32>,
    /// What requests were doing; none for what is not used by the request.
    pub phase: Option<Phase>,
    /// How attempts ended that failed.
    pub end: Option<End>,
    /// How much.
    pub usd: Usd,
    /// Device-hours of it.
    pub device_hours: Option<f64>,
    /// What it was split by, or why it belongs to nobody.
    pub why: String,
    /// Whether it follows what else was paid.
    pub shared: bool,
}

/// What was paid, and by whom it was used.
#[derive(Clone, Debug, PartialEq)]
pub struct Books {
    /// All that was paid.
    pub total: Usd,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Lines by the values of each dimension.
    pub by: BTreeMap<Dimension, Shares>,
    /// Lines not told apart.
    pub all: Shares,
    /// Attempts that nothing was charged for: whatever is said of one of anything is at least that.
    pub uncharged: f64,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Why there are no books.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CostError {
    /// Amounts past what whole micro-dollars can hold.
    #[error("charges sum to more than $9 million million, which is past what books can hold")]
    TooMuch,
}

impl Books {
    /// What is missing or too much: the total less the lines, summed anew.
    pub fn residual(&self) -> Usd {
        self.total - self.lines.iter().map(|line| line.usd).sum()
    }

    /// Whether nothing is missing, neither of the total nor of any dimension.
    pub fn closes(&self) -> bool {
        let mut tables = self.by.values().chain([&self.all]);
        self.residual() == Usd::ZERO && tables.all(|shares| shares.sum() == self.total)
    }

    /// What would not have been paid without the requests: no idle time, no reserve, nothing fixed.
    pub fn marginal(&self) -> Usd {
        let used = self.lines.iter().filter(|line| {
            matches!(line.kind, Kind::Allocated | Kind::Failed)
                && !line.shared
                && (line.expense.is_compute() || line.expense.is_variable())
        });
        used.map(|line| line.usd).sum()
    }

    /// The sum of lines of a kind.
    pub fn of(&self, kind: Kind) -> Usd {
        self.lines.iter().filter(|line| line.kind == kind).map(|line| line.usd).sum()
    }
}

/// Splits what was paid into lines, and lines into the values of each dimension.
pub fn books(charges: &[Charge], usage: &Usage) -> Result<Books, CostError> {
    let mut total = Usd::ZERO;
    let mut size: i64 = 0;
    for charge in charges {
        size =
            size.checked_add(charge.usd.get_micros().saturating_abs()).ok_or(CostError::TooMuch)?;
        total = total.checked_add(charge.usd).ok_or(CostError::TooMuch)?;
    }
    let mut keeper = Keeper::new(charges, usage);
    for (i, charge) in charges.iter().enumerate() {
        keeper.enter(i, charge);
    }
    for (i, charge) in charges.iter().enumerate() {
        keeper.enter_shared(i, charge);
    }
    keeper.enter_unserved();
    let (lines, slots, notes) = (keeper.lines, keeper.slots, keeper.notes);
    let uncharged = keeper.uncharged;
    let made =
        shares::Making { charges, usage, hours: &keeper.hours, lines: &lines, slots: &slots };
    let by = usage.by.iter().map(|(dimension, table)| (*dimension, made.shares(table)));
    let by = by.collect();
    let all = made.shares(&usage.all);
    Ok(Books { total, by, all, lines, uncharged, notes })
}

struct Keeper<'a> {
    charges: &'a [Charge],
    usage: &'a Usage,
    hours: BTreeMap<u32, Hours>,
    lines: Vec<Line>,
    /// What each line was weighed as.
    slots: Vec<Slot>,
    /// Attempts that nothing was charged for.
    uncharged: f64,
    notes: Vec<String>,
}

impl<'a> Keeper<'a> {
    fn new(charges: &'a [Charge], usage: &'a Usage) -> Self {
        let mut hours = BTreeMap::new();
        let mut notes = Vec::new();
        for (i, place) in (0u32..).zip(&usage.places) {
            let Pricing::Devices(work) = &place.pricing else { continue };
            let own = Hours::new(usage, charges, i, work);
            if own.overfull > 0 {
                notes.push(format!(
                    "`{}` did more in {} of {} hours than its replicas have time for, as its model says: its work is scaled down to what was there",
                    place.name, own.overfull, usage.period.hours
                ));
            }
            hours.insert(i, own);
        }
        Self { charges, usage, hours, lines: Vec::new(), slots: Vec::new(), uncharged: 0.0, notes }
    }

    /// Lines of a charge that usage says something of.
    fn enter(&mut self, i: usize, charge: &Charge) {
        let table = &self.usage.all;
        let basis = Basis::of(charge, &self.usage.places);
        let (weights, why) = match basis {
            Basis::Cost => return,
            Basis::Nobody => {
                self.whole(i, Kind::Unallocated, "no pool that the usage knows runs on it");
                return;
            }
            Basis::Work(work) => {
                let place = charge.place.unwrap_or(u32::MAX);
                let hours = &self.hours[&place];
                let mut weights = hours.weights(charge, place, work, table);
                let rest = hours.rest(charge, self.usage, place, work);
                let only = |all: f64| vec![Weight { all, retry: 0.0 }];
                weights.insert(Slot::only(Kind::Idle), only(rest.idle));
                weights.insert(Slot::only(Kind::Reserve), only(rest.reserve));
                weights.insert(Slot::only(Kind::Unallocated), only(rest.unknown));
                weights.retain(|_, values| sum(values) > 0.0);
                (weights, "seconds of replicas")
            }
            Basis::Tokens(prices) => {
                (token_weights(charge, charge.place, prices, table), "prices of tokens")
            }
            Basis::Logged => {
                let own = |place: Option<u32>| place == charge.place;
                (plain_weights(own, table, |s| s.logged_usd), "what the log says it cost")
            }
            Basis::Requests => (
                plain_weights(|_| true, table, |s| s.requests),
                "requests: calls of tools are not counted one by one",
            ),
            Basis::Output => (plain_weights(|_| true, table, |s| s.output), "output tokens"),
        };
        let sums: Vec<f64> = weights.values().map(|values| sum(values)).collect();
        let Some(parts) = split(charge.usd, &sums) else {
            self.whole(i, Kind::Unallocated, "nobody in the usage used it");
            return;
        };
        let per_replica = charge.devices.as_ref().map(|devices| devices.per_replica);
        let seconds = matches!(basis, Basis::Work(_));
        for ((slot, usd), weight) in weights.keys().zip(parts).zip(sums) {
            let device_hours = per_replica.filter(|_| seconds).map(|n| weight / 3600.0 * n);
            let why = match slot.kind {
                Kind::Unallocated => {
                    "attempts whose tokens nobody knows, at what others took on average"
                }
                Kind::Idle => "replicas that had nothing to do",
                Kind::Reserve => "replicas that stand ready",
                _ => why,
            };
            self.lines.push(Line {
                name: named(charge, slot),
                kind: slot.kind,
                charge: Some(i),
                expense: charge.expense(),
                place: charge.place,
                phase: slot.phase,
                end: slot.end,
                usd,
                device_hours,
                why: why.to_owned(),
                shared: false,
            });
            self.slots.push(*slot);
        }
    }

    /// A charge that follows what else was paid, which is known by now.
    fn enter_shared(&mut self, i: usize, charge: &Charge) {
        if Basis::of(charge, &self.usage.places) != Basis::Cost {
            return;
        }
        let followed = self.lines.iter().any(|line| {
            let here = charge.place.is_none() || line.place == charge.place;
            here && !line.shared && line.kind != Kind::Unallocated && line.usd > Usd::ZERO
        });
        if followed {
            self.whole(i, Kind::Allocated, "follows what else was paid");
        } else if self.usage.all.cells.values().any(|s| s.requests > 0.0) && charge.place.is_none()
        {
            self.whole(i, Kind::Allocated, "requests: nothing else was paid that it could follow");
        } else {
            self.whole(i, Kind::Unallocated, "nothing that was used can be seen to cause it");
        }
        if let Some(line) = self.lines.last_mut() {
            line.shared = line.kind == Kind::Allocated;
        }
    }

    fn whole(&mut self, i: usize, kind: Kind, why: &str) {
        let charge = &self.charges[i];
        let slot = Slot::only(kind);
        self.lines.push(Line {
            name: named(charge, &slot),
            kind,
            charge: Some(i),
            expense: charge.expense(),
            place: charge.place,
            phase: None,
            end: None,
            usd: charge.usd,
            device_hours: charge.device_hours(),
            why: why.to_owned(),
            shared: false,
        });
        self.slots.push(slot);
    }

    /// What was used and nobody can price is a line, though no money stands on it.
    fn enter_unserved(&mut self) {
        let charged = |key: &Key| {
            let mut own = self.charges.iter().filter(|charge| charge.place == key.place);
            own.any(|charge| match charge.expense() {
                Expense::ProviderTokens => true,
                expense => key.place.is_some() && expense.is_compute(),
            })
        };
        let mut unserved: BTreeMap<Option<u32>, Sums> = BTreeMap::new();
        for (key, cell) in self.usage.all.cells.iter().filter(|(key, _)| !charged(key)) {
            unserved.entry(key.place).or_default().add(cell);
        }
        for (place, sums) in unserved {
            self.uncharged += sums.requests;
            let name = place.and_then(|i| self.usage.places.get(usize::try_from(i).ok()?));
            let by = name.map_or("nobody that is known".to_owned(), |p| format!("`{}`", p.name));
            self.lines.push(Line {
                name: format!("attempts served by {by}"),
                kind: Kind::Unallocated,
                charge: None,
                expense: Expense::Other,
                place,
                phase: None,
                end: None,
                usd: Usd::ZERO,
                device_hours: None,
                why: format!(
                    "nothing was charged for {:.0} attempts: what they cost is not in the books",
                    sums.requests
                ),
                shared: false,
            });
            self.slots.push(Slot::only(Kind::Unallocated));
        }
    }
}

fn sum(values: &[Weight]) -> f64 {
    values.iter().map(|weight| weight.all).sum()
}

fn named(charge: &Charge, slot: &Slot) -> String {
    let what = match (slot.kind, slot.end, slot.phase) {
        (Kind::Failed, end, phase) => {
            let how = match end {
                Some(End::Cancelled) => "cancelled",
                Some(End::Limited) => "limited",
                _ => "failed",
            };
            phase.map_or(how.to_owned(), |phase| format!("{how}, {}", phase.name()))
        }
        (Kind::Allocated, _, Some(phase)) => phase.name().to_owned(),
        (Kind::Allocated, _, None) => return charge.name.clone(),
        (kind, ..) => kind.name().to_owned(),
    };
    format!("{}: {what}", charge.name)
}

#[cfg(test)]
mod tests;
