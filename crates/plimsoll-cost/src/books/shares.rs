//! Lines by the values of a dimension.

use std::collections::BTreeMap;

use plimsoll_units::Usd;

use super::weigh::{Basis, Hours, Slot, Weight, plain_weights, token_weights};
use super::{Kind, Line, Phase};
use crate::charge::Charge;
use crate::split::split;
use crate::usage::{End, Pricing, Sums, Table, Tasks, Usage};

/// What tokens weigh where nothing better is known: medians of 77 hosted models' list prices against their input price (2026-08).
const TOKEN_WEIGHTS: [f64; 3] = [1.0, 0.1, 5.0];

/// What one value pays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// The value; none for rows that have none.
    pub value: Option<String>,
    /// What it used.
    pub used: Sums,
    /// How its tasks went.
    pub tasks: Tasks,
    /// For reading fresh prompts that were answered.
    pub prefill: Usd,
    /// For cached prompts, where they are charged.
    pub cached: Usd,
    /// For writing.
    pub decode: Usd,
    /// For reading context while writing.
    pub kv: Usd,
    /// For what has no phase.
    pub other: Usd,
    /// For attempts that failed.
    pub failed: Usd,
    /// For attempts whose user left.
    pub cancelled: Usd,
    /// For attempts that a limit refused.
    pub limited: Usd,
    /// For idle time and reserve, by how much it makes them necessary.
    pub headroom: Usd,
    /// For what everybody shares; credits are in it, and may make it negative.
    pub shared: Usd,
    /// Of all of these, what attempts took that were not the first, rounded to the nearest micro-dollar.
    pub retries: Usd,
    /// All of it.
    pub total: Usd,
    /// What it would pay by the number of its requests.
    pub by_request_count: Usd,
    /// What it would pay by its tokens, weighted as list prices weigh them.
    pub by_weighted_tokens: Usd,
}

impl Share {
    /// What it used, without idle time and what everybody shares.
    pub fn direct(&self) -> Usd {
        self.total - self.headroom - self.shared
    }
}

/// What each value of a dimension pays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// In the order of [`Table::values`].
    pub values: Vec<Share>,
    /// What nobody can be charged with.
    pub unallocated: Usd,
    /// Each line by value: what [`Shares::values`] sums.
    pub split: Vec<Vec<Usd>>,
}

impl Shares {
    /// All of it, summed anew.
    pub fn sum(&self) -> Usd {
        self.values.iter().map(|share| share.total).sum::<Usd>() + self.unallocated
    }

    /// The share of what is allocated that counting requests would charge to the wrong value.
    pub fn misplaced_by_request_count(&self) -> f64 {
        let (mut wrong, mut all) = (0.0, 0.0);
        for share in &self.values {
            wrong += (share.total - share.by_request_count).get_micros().unsigned_abs() as f64;
            all += share.total.get_micros().unsigned_abs() as f64;
        }
        if all > 0.0 { wrong / 2.0 / all } else { 0.0 }
    }
}

pub(super) struct Making<'a> {
    pub(super) charges: &'a [Charge],
    pub(super) usage: &'a Usage,
    pub(super) hours: &'a BTreeMap<u32, Hours>,
    pub(super) lines: &'a [Line],
    pub(super) slots: &'a [Slot],
}

impl Making<'_> {
    pub(super) fn shares(&self, table: &Table) -> Shares {
        let mut made = Shares { split: vec![Vec::new(); self.lines.len()], ..Shares::default() };
        made.values = (0..table.values.len())
            .map(|i| Share {
                value: table.values[i].clone(),
                tasks: table.tasks.get(i).copied().unwrap_or_default(),
                ..Share::default()
            })
            .collect();
        for (key, cell) in &table.cells {
            let value = usize::try_from(key.value).ok().and_then(|i| made.values.get_mut(i));
            if let Some(share) = value {
                share.used.add(cell);
            }
        }
        let order = Order::new(table);
        let weights: Vec<_> = self.charges.iter().map(|c| self.weights(c, table)).collect();
        // What others follow comes first.
        for shared in [false, true] {
            for (l, line) in self.lines.iter().enumerate().filter(|(_, l)| l.shared == shared) {
                let own = match shared {
                    true => self.followed(line, &made),
                    false => self.own(line, &self.slots[l], &weights, table),
                };
                let all: Vec<f64> = own.iter().map(|weight| weight.all).collect();
                match order.split(line.usd, &all) {
                    Some(parts) => {
                        for ((share, usd), weight) in made.values.iter_mut().zip(&parts).zip(&own) {
                            enter(share, line, *usd, weight);
                        }
                        made.split[l] = parts;
                    }
                    None => made.unallocated = made.unallocated + line.usd,
                }
            }
        }
        self.otherwise(&mut made, &order);
        made
    }

    fn weights(&self, charge: &Charge, table: &Table) -> BTreeMap<Slot, Vec<Weight>> {
        match Basis::of(charge, &self.usage.places) {
            Basis::Work(work) => {
                let place = charge.place.unwrap_or(u32::MAX);
                self.hours[&place].weights(charge, place, work, table)
            }
            Basis::Tokens(prices) => token_weights(charge, charge.place, prices, table),
            Basis::Logged => {
                plain_weights(|place| place == charge.place, table, |sums| sums.logged_usd)
            }
            Basis::Requests => plain_weights(|_| true, table, |sums| sums.requests),
            Basis::Output => plain_weights(|_| true, table, |sums| sums.output),
            Basis::Cost | Basis::Nobody => BTreeMap::new(),
        }
    }

    fn own(
        &self,
        line: &Line,
        slot: &Slot,
        weights: &[BTreeMap<Slot, Vec<Weight>>],
        table: &Table,
    ) -> Vec<Weight> {
        match line.kind {
            Kind::Unallocated => Vec::new(),
            Kind::Allocated | Kind::Failed => {
                let own = line.charge.and_then(|i| weights[i].get(slot));
                own.cloned().unwrap_or_default()
            }
            Kind::Idle | Kind::Reserve => {
                let place = line.place.unwrap_or(u32::MAX);
                let at = usize::try_from(place).ok().and_then(|i| self.usage.places.get(i));
                let Some(Pricing::Devices(work)) = at.map(|place| &place.pricing) else {
                    return Vec::new();
                };
                let shares = self.hours[&place].headroom(self.usage, place, work, table);
                shares.into_iter().map(|all| Weight { all, retry: 0.0 }).collect()
            }
        }
    }

    /// What a shared line follows: all that its place's lines, or all lines, made each value pay.
    fn followed(&self, line: &Line, made: &Shares) -> Vec<Weight> {
        let mut paid = vec![Usd::ZERO; made.values.len()];
        for (l, parts) in made.split.iter().enumerate() {
            let other = &self.lines[l];
            let here = line.place.is_none() || other.place == line.place;
            if here && !other.shared {
                for (sum, usd) in paid.iter_mut().zip(parts) {
                    *sum = *sum + *usd;
                }
            }
        }
        let any = paid.iter().any(|usd| *usd > Usd::ZERO);
        let weigh = |(usd, share): (&Usd, &Share)| {
            let all = if any { usd.get_micros() as f64 } else { share.used.requests };
            Weight { all, retry: 0.0 }
        };
        paid.iter().zip(&made.values).map(weigh).collect()
    }

    /// What simpler methods would have made of it.
    fn otherwise(&self, made: &mut Shares, order: &Order) {
        let charged = made.values.iter().map(|share| share.total).sum();
        let tokens = |used: &Sums| {
            let [fresh, cached, output] = TOKEN_WEIGHTS;
            used.fresh * fresh + used.cached * cached + used.output * output
        };
        let requests: Vec<f64> = made.values.iter().map(|share| share.used.requests).collect();
        let weighted: Vec<f64> = made.values.iter().map(|share| tokens(&share.used)).collect();
        let (by_count, by_tokens) =
            (order.split(charged, &requests), order.split(charged, &weighted));
        for (i, share) in made.values.iter_mut().enumerate() {
            let part =
                |parts: &Option<Vec<Usd>>| parts.as_ref().map_or(share.total, |parts| parts[i]);
            let (count, tokens) = (part(&by_count), part(&by_tokens));
            (share.by_request_count, share.by_weighted_tokens) = (count, tokens);
        }
    }
}

fn enter(share: &mut Share, line: &Line, usd: Usd, weight: &Weight) {
    share.total = share.total + usd;
    if weight.all > 0.0 && weight.retry > 0.0 {
        let part = usd.get_micros() as f64 * weight.retry / weight.all;
        share.retries = share.retries + Usd::micros(part.round() as i64);
    }
    let into = match (line.kind, line.end, line.phase) {
        _ if line.shared => &mut share.shared,
        (Kind::Idle | Kind::Reserve, ..) => &mut share.headroom,
        (Kind::Failed, Some(End::Cancelled), _) => &mut share.cancelled,
        (Kind::Failed, Some(End::Limited), _) => &mut share.limited,
        (Kind::Failed, ..) => &mut share.failed,
        (_, _, Some(Phase::Prefill)) => &mut share.prefill,
        (_, _, Some(Phase::Cached)) => &mut share.cached,
        (_, _, Some(Phase::Decode)) => &mut share.decode,
        (_, _, Some(Phase::Kv)) => &mut share.kv,
        (_, _, None) => &mut share.other,
    };
    *into = *into + usd;
}

/// Values by name, so that who has the odd micro-dollar does not depend on who was seen first.
struct Order(Vec<usize>);

impl Order {
    fn new(table: &Table) -> Self {
        let mut order: Vec<usize> = (0..table.values.len()).collect();
        order.sort_by(|a, b| table.values[*a].cmp(&table.values[*b]));
        Self(order)
    }

    fn split(&self, total: Usd, weights: &[f64]) -> Option<Vec<Usd>> {
        let sorted: Vec<f64> =
            self.0.iter().map(|i| weights.get(*i).copied().unwrap_or(0.0)).collect();
        let parts = split(total, &sorted)?;
        let mut own = vec![Usd::ZERO; parts.len()];
        for (place, usd) in self.0.iter().zip(parts) {
            own[*place] = usd;
        }
        Some(own)
    }
}
