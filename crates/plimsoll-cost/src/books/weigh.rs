//! What a charge is split by.

use std::collections::BTreeMap;

use super::{Kind, Phase};
use crate::charge::{Charge, Devices, Expense};
use crate::usage::{End, Key, Place, Pricing, Sums, Table, TokenTable, Usage, Work};

const HOUR: f64 = 3600.0;

/// A part of a charge that is a line by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) phase: Option<Phase>,
    /// How attempts ended that did not succeed.
    pub(super) end: Option<End>,
}

impl Slot {
    pub(super) const fn only(kind: Kind) -> Self {
        Self { kind, phase: None, end: None }
    }

    fn of(end: End, phase: Option<Phase>) -> Self {
        match end {
            // Work was done for it, and nobody says in vain.
            End::Ok | End::Unknown => Self { kind: Kind::Allocated, phase, end: None },
            _ => Self { kind: Kind::Failed, phase, end: Some(end) },
        }
    }
}

/// How much of a slot a value has, and how much of that was not a first attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Weight {
    pub(super) all: f64,
    pub(super) retry: f64,
}

/// What decides who pays a charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Basis<'a> {
    /// Seconds of replicas.
    Work(&'a Work),
    /// Prices of tokens.
    Tokens(&'a TokenTable),
    /// What the log says that it cost.
    Logged,
    /// Requests.
    Requests,
    /// Output tokens.
    Output,
    /// What else was paid.
    Cost,
    /// Nothing: nobody knows who uses it.
    Nobody,
}

impl<'a> Basis<'a> {
    pub(super) fn of(charge: &Charge, places: &'a [Place]) -> Self {
        let at = charge.place.and_then(|i| places.get(usize::try_from(i).unwrap_or(usize::MAX)));
        match (charge.expense(), at.map(|place| &place.pricing)) {
            (expense, Some(Pricing::Devices(work))) if expense.is_compute() => Self::Work(work),
            (expense, _) if expense.is_compute() => Self::Nobody,
            (Expense::ProviderTokens, Some(Pricing::Tokens(table))) => Self::Tokens(table),
            (Expense::ProviderTokens, _) => Self::Logged,
            (Expense::Tools, _) => Self::Requests,
            (Expense::Egress, _) => Self::Output,
            _ => Self::Cost,
        }
    }
}

/// The hours of a place: what was there, and what was done with it.
pub(super) struct Hours {
    /// Replicas of all charges; none where no charge says its hours.
    replicas: Option<Vec<f64>>,
    /// Those of them that stand in reserve.
    reserve: Vec<f64>,
    /// Those that would fit on what is paid for.
    spare: Vec<f64>,
    /// What the work of an hour is scaled by, so that it is no more than there was.
    squeeze: Vec<f64>,
    /// Seconds that attempts took whose tokens nobody knows, as far as there was room.
    unknown: Vec<f64>,
    /// What measured times make of the model's prefill and decode.
    prefill: f64,
    decode: f64,
    /// Hours with more work than there was time for.
    pub(super) overfull: usize,
}

impl Hours {
    /// Reads a place from what nobody is told apart in.
    pub(super) fn new(usage: &Usage, charges: &[Charge], place: u32, work: &Work) -> Self {
        let count = usize::try_from(usage.period.hours).unwrap_or(0);
        let own = charges.iter().filter(|c| c.place == Some(place));
        let mut replicas: Option<Vec<f64>> = None;
        let (mut batch, mut reserve, mut spare) = (None, vec![0.0; count], vec![0.0; count]);
        for devices in own.filter_map(|charge| charge.devices.as_ref()) {
            let sum = replicas.get_or_insert_with(|| vec![0.0; count]);
            for (hour, sum) in sum.iter_mut().enumerate() {
                *sum += at(&devices.replicas, hour);
                reserve[hour] += at(&devices.reserve, hour);
                spare[hour] += at(&devices.spare, hour);
            }
            batch = batch.or(devices.batch);
        }
        let mut sums = Sums::default();
        for (_, cell) in cells(&usage.all, place) {
            sums.add(cell);
        }
        let (prefill, decode) = measured(&sums, work, batch);
        let mut hours = Self {
            replicas,
            reserve,
            spare,
            squeeze: vec![1.0; count],
            unknown: vec![0.0; count],
            prefill,
            decode,
            overfull: 0,
        };
        let known = (sums.requests - sums.blank).max(0.0);
        let mean = if known > 0.0 { hours.seconds(&sums, work) / known } else { f64::INFINITY };
        let mut done = vec![0.0; count];
        let mut blank = vec![0.0; count];
        for (key, cell) in cells(&usage.all, place) {
            let Some(hour) = index(key.hour, count) else { continue };
            done[hour] += hours.seconds(cell, work);
            // What a limit refuses never reached a device.
            if key.end != End::Limited && cell.blank > 0.0 {
                blank[hour] += cell.blank * mean;
            }
        }
        for hour in 0..count {
            match &hours.replicas {
                Some(replicas) => {
                    let there = replicas[hour] * HOUR;
                    if done[hour] > there {
                        hours.squeeze[hour] = there / done[hour];
                        // A tenth of a percent is the rounding of prices and rates.
                        hours.overfull += usize::from(done[hour] > there * 1.001);
                    }
                    let room = (there - done[hour]).max(0.0);
                    hours.unknown[hour] = blank[hour].min(room);
                }
                None if blank[hour].is_finite() => hours.unknown[hour] = blank[hour],
                // Nothing is known of anybody: one second stands for all of it.
                None => hours.unknown[hour] = 1.0,
            }
        }
        hours
    }

    /// Seconds of a replica by phase, as the model and what was measured say.
    fn phases(&self, sums: &Sums, work: &Work) -> [(Phase, f64); 3] {
        [
            (Phase::Prefill, self.prefill * sums.prefill_work_s(work)),
            (Phase::Decode, self.decode * sums.output * work.output_s),
            (Phase::Kv, self.decode * sums.output_context * work.output_context_s),
        ]
    }

    fn seconds(&self, sums: &Sums, work: &Work) -> f64 {
        self.phases(sums, work).iter().map(|(_, s)| s).sum()
    }

    /// The share of the hour's replicas that a charge paid for.
    fn share(&self, devices: Option<&Devices>, hour: usize) -> f64 {
        match (&self.replicas, devices) {
            (Some(all), Some(own)) if all[hour] > 0.0 => at(&own.replicas, hour) / all[hour],
            (Some(_), Some(_)) => 0.0,
            // A charge without hours is for all of the place's.
            _ => 1.0,
        }
    }

    /// Seconds of a replica by slot and value, for the part of the place that a charge pays.
    pub(super) fn weights(
        &self,
        charge: &Charge,
        place: u32,
        work: &Work,
        table: &Table,
    ) -> BTreeMap<Slot, Vec<Weight>> {
        let mut slots = Slots::new(table.values.len());
        for (key, cell) in cells(table, place) {
            let Some(hour) = index(key.hour, self.squeeze.len()) else { continue };
            let part = self.squeeze[hour] * self.share(charge.devices.as_ref(), hour);
            for (phase, seconds) in self.phases(cell, work) {
                slots.add(Slot::of(key.end, Some(phase)), key, seconds * part);
            }
        }
        slots.0
    }

    /// Seconds of a charge that were idle, in reserve, or taken by attempts that nobody can weigh.
    pub(super) fn rest(&self, charge: &Charge, usage: &Usage, place: u32, work: &Work) -> Rest {
        let mut rest = Rest::default();
        let mut done = vec![0.0; self.squeeze.len()];
        for (key, cell) in cells(&usage.all, place) {
            if let Some(hour) = index(key.hour, done.len()) {
                done[hour] += self.seconds(cell, work) * self.squeeze[hour];
            }
        }
        for (hour, done) in done.iter().enumerate() {
            let part = self.share(charge.devices.as_ref(), hour);
            let unknown = self.unknown[hour] * part;
            rest.unknown += unknown;
            let Some(all) = &self.replicas else { continue };
            let (replicas, reserve, spare) = match &charge.devices {
                Some(own) => {
                    (at(&own.replicas, hour), at(&own.reserve, hour), at(&own.spare, hour))
                }
                None => (all[hour], self.reserve[hour], self.spare[hour]),
            };
            let free = (replicas * HOUR - done * part - unknown).max(0.0);
            let reserve = free.min(reserve * HOUR);
            rest.reserve += reserve;
            rest.idle += free - reserve + spare * HOUR;
        }
        rest
    }

    /// Who causes headroom: each value's covariance with the place's work, hour by hour, over its variance, which sums to one. A value that is
    /// busy when others are not has a negative share; it pays nothing, and the others pay by theirs. Without any variance, by work.
    pub(super) fn headroom(
        &self,
        usage: &Usage,
        place: u32,
        work: &Work,
        table: &Table,
    ) -> Vec<f64> {
        let count = self.squeeze.len();
        let mut all = vec![0.0; count];
        for (key, cell) in cells(&usage.all, place) {
            if let Some(hour) = index(key.hour, count) {
                all[hour] += self.seconds(cell, work);
            }
        }
        let mean = all.iter().sum::<f64>() / count.max(1) as f64;
        let variance: f64 = all.iter().map(|d| (d - mean) * (d - mean)).sum();
        let (mut shares, mut sums) = (vec![0.0; table.values.len()], vec![0.0; table.values.len()]);
        for (key, cell) in cells(table, place) {
            let (Some(hour), Some(value)) = (index(key.hour, count), index(key.value, sums.len()))
            else {
                continue;
            };
            let own = self.seconds(cell, work);
            sums[value] += own;
            // The mean of the value falls out: deviations of the sum add up to nothing.
            shares[value] += own * (all[hour] - mean);
        }
        // Below the rounding of its sums, a variance is none.
        let flat = variance <= 1e-18 * mean * mean * count as f64;
        if flat || shares.iter().all(|share| *share <= 0.0) { sums } else { shares }
    }
}

/// Seconds of a charge that no attempt is known to have used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rest {
    pub(super) idle: f64,
    pub(super) reserve: f64,
    pub(super) unknown: f64,
}

/// What measured times make of prefill and decode. A second that a request decodes is shared by as many as decode with it, and a second that
/// its prompt is read is not: so many device-seconds of each were measured, and the model's are scaled to their proportion, their sum kept.
/// Only where at least half of the attempts were timed; otherwise who is timed would decide.
fn measured(sums: &Sums, work: &Work, batch: Option<f64>) -> (f64, f64) {
    let (prefill, decode) = (sums.prefill_work_s(work), sums.decode_work_s(work));
    let Some(batch) = batch.filter(|b| *b >= 1.0 && sums.timed * 2.0 >= sums.requests) else {
        return (1.0, 1.0);
    };
    let (read, wrote) = (sums.prefill_s, sums.decode_s / batch);
    if prefill <= 0.0 || decode <= 0.0 || read <= 0.0 || wrote <= 0.0 {
        return (1.0, 1.0);
    }
    let whole = (prefill + decode) / (read + wrote);
    (whole * read / prefill, whole * wrote / decode)
}

/// What tokens cost, by slot and value. Meters share what the table says by its prices of a plain request.
pub(super) fn token_weights(
    charge: &Charge,
    place: Option<u32>,
    table: &TokenTable,
    usage: &Table,
) -> BTreeMap<Slot, Vec<Weight>> {
    let mut slots = Slots::new(usage.values.len());
    for (key, cell) in usage.cells.iter().filter(|(key, _)| key.place == place) {
        let price =
            |tokens: f64, each: plimsoll_units::UsdPerToken| tokens * each.get_picos() as f64;
        let meters = [
            (Phase::Prefill, price(cell.fresh, table.input)),
            (Phase::Cached, price(cell.cached, table.cached_input)),
            (Phase::Decode, price(cell.output, table.output)),
        ];
        let whole: f64 = meters.iter().map(|(_, usd)| usd).sum();
        for (phase, usd) in meters {
            // Prices may say nothing of what a cell cost; then it has no meters, and counts as read.
            let part = match whole > 0.0 {
                true => usd / whole,
                false => f64::from(u8::from(phase == Phase::Prefill)),
            };
            slots.add(Slot::of(key.end, Some(phase)), key, cell.token_usd * part);
        }
    }
    // An invoice has all attempts in it, also those without a count; a sum over rows has only what it could price.
    if charge.invoiced {
        slots.unpriced(usage, place);
    }
    slots.0
}

/// What anything countable says, by slot and value.
pub(super) fn plain_weights(
    place: impl Fn(Option<u32>) -> bool,
    table: &Table,
    of: impl Fn(&Sums) -> f64,
) -> BTreeMap<Slot, Vec<Weight>> {
    let mut slots = Slots::new(table.values.len());
    for (key, cell) in table.cells.iter().filter(|(key, _)| place(key.place)) {
        slots.add(Slot::of(key.end, None), key, of(cell));
    }
    slots.0
}

struct Slots(BTreeMap<Slot, Vec<Weight>>, usize);

impl Slots {
    const fn new(values: usize) -> Self {
        Self(BTreeMap::new(), values)
    }

    fn add(&mut self, slot: Slot, key: &Key, weight: f64) {
        // What nobody measured has no weight; so has what is broken.
        if !(weight.is_finite() && weight > 0.0) {
            return;
        }
        let values = self.1;
        let Some(value) = index(key.value, values) else { return };
        let own = &mut self.0.entry(slot).or_insert_with(|| vec![Weight::default(); values])[value];
        own.all += weight;
        if key.retry {
            own.retry += weight;
        }
    }

    /// Attempts without a count, at what the others cost on average.
    fn unpriced(&mut self, usage: &Table, place: Option<u32>) {
        let (mut usd, mut priced) = (0.0, 0.0);
        let own = || usage.cells.iter().filter(|(key, _)| key.place == place);
        for (_, cell) in own() {
            usd += cell.token_usd;
            priced += cell.requests - cell.token_unpriced;
        }
        let mean = if priced > 0.0 { usd / priced } else { 1.0 };
        for (key, cell) in own().filter(|(key, _)| key.end != End::Limited) {
            self.add(Slot::only(Kind::Unallocated), key, cell.token_unpriced * mean);
        }
    }
}

fn cells(table: &Table, place: u32) -> impl Iterator<Item = (&Key, &Sums)> {
    table.cells.iter().filter(move |(key, _)| key.place == Some(place))
}

fn index(n: u32, len: usize) -> Option<usize> {
    usize::try_from(n).ok().filter(|n| *n < len)
}

/// What an hour has: nothing past the end, nothing where it is no number above zero.
fn at(series: &[f64], hour: usize) -> f64 {
    series.get(hour).copied().filter(|n| n.is_finite() && *n > 0.0).unwrap_or(0.0)
}
