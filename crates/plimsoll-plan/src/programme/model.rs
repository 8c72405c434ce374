//! A programme made ready: demand that may move between regions becomes rows over replicas alone.
//!
//! Demand of home regions may be split over the regions it reaches. By Hall's theorem that works out exactly when, for every union `N` of reaches, the capacity within
//! `N` is at least the demand that reaches nothing outside `N`. So no flow is ever computed here: there is one covering row for each union that matters, and the same
//! again for each region that may be lost.

use std::collections::{BTreeMap, BTreeSet};

use super::{Excepted, Mistake, Programme, Stranded};

/// Unions of reaches that are kept for one pool.
const UNIONS_MOST: usize = 4096;

/// "Without limit" means a million nodes, so that every sum is finite.
const NODES_MOST: u64 = 1_000_000;

/// Capacity that is short by a billionth is enough: floats.
pub(super) const SLACK: f64 = 1e-9;

pub(super) struct Model {
    pub(super) slots: Vec<Slot>,
    pub(super) rents: Vec<Rent>,
    pub(super) places: Vec<Site>,
    pub(super) rows: Vec<Row>,
    /// By slot: the rows that see it, with what a replica adds as load and as reserve.
    pub(super) seen: Vec<Vec<(usize, f64, f64)>>,
    /// By pool: its rows, which are together.
    spans: Vec<std::ops::Range<usize>>,
    /// Slots by pool.
    pub(super) of_pool: Vec<Vec<usize>>,
    /// Slots by rent.
    pub(super) of_rent: Vec<Vec<usize>>,
    /// By pool.
    pub(super) reserve: Vec<u64>,
    /// By pool: the most replicas.
    pub(super) most: Vec<u64>,
    pub(super) stranded: Vec<Stranded>,
    pub(super) excepted: Vec<Excepted>,
    pub(super) dominated: usize,
}

/// Replicas of a way on nodes of one mode.
pub(super) struct Slot {
    pub(super) way: usize,
    pub(super) pool: usize,
    pub(super) rent: usize,
    pub(super) devices: u64,
    pub(super) capacity: f64,
}

/// Nodes of one place and mode.
pub(super) struct Rent {
    pub(super) place: usize,
    pub(super) mode: usize,
    /// In dollars an hour.
    pub(super) price: f64,
    pub(super) picos: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) per_node: u64,
}

pub(super) struct Site {
    pub(super) region: usize,
    /// Whole nodes within the quota.
    pub(super) nodes_most: Option<u64>,
    pub(super) rents: Vec<usize>,
    /// Whether replicas of every size fill nodes without gaps, so that devices alone say how many nodes there must be.
    pub(super) even: bool,
}

/// At least `least`: a row over the replicas of one pool.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) pool: usize,
    pub(super) kind: Kind,
    /// Slot, what a replica adds as load, what it adds as reserve.
    pub(super) terms: Vec<(usize, f64, f64)>,
    pub(super) least: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Demand that reaches nothing outside some regions, with all regions there.
    Cover,
    /// The same with a region lost.
    Lost(usize),
    Reserve,
    Least,
    Most,
    /// Of a mode.
    Share(usize),
    /// Follows from others for whole numbers.
    Cut,
}

impl Model {
    pub(super) fn new(programme: &Programme) -> Result<Self, Mistake> {
        validate(programme)?;
        let mut rents = Vec::new();
        let mut places = Vec::new();
        for (p, place) in programme.places.iter().enumerate() {
            let nodes_most = place.devices_most.map(|d| d / place.devices_per_node);
            let first = rents.len();
            for offer in &place.offers {
                rents.push(Rent {
                    place: p,
                    mode: offer.mode,
                    price: offer.node_hour.get_picos() as f64 * 1e-12,
                    picos: offer.node_hour.get_picos(),
                    least: offer.nodes_least,
                    most: NODES_MOST
                        .min(offer.nodes_most.unwrap_or(NODES_MOST))
                        .min(nodes_most.unwrap_or(NODES_MOST)),
                    per_node: place.devices_per_node,
                });
            }
            let sizes: BTreeSet<u64> = programme
                .ways
                .iter()
                .filter(|w| w.place == p && w.devices < place.devices_per_node)
                .map(|w| w.devices)
                .chain([place.devices_per_node])
                .collect();
            let even =
                sizes.iter().zip(sizes.iter().skip(1)).all(|(small, large)| large % small == 0);
            places.push(Site {
                region: place.region,
                nodes_most,
                rents: (first..rents.len()).collect(),
                even,
            });
        }
        let kept = undominated(programme);
        let mut slots = Vec::new();
        for &way in &kept {
            let w = &programme.ways[way];
            for &rent in &places[w.place].rents {
                slots.push(Slot {
                    way,
                    pool: w.pool,
                    rent,
                    devices: w.devices,
                    capacity: w.capacity,
                });
            }
        }
        let mut model = Self {
            seen: vec![Vec::new(); slots.len()],
            of_pool: vec![Vec::new(); programme.pools.len()],
            of_rent: vec![Vec::new(); rents.len()],
            reserve: programme.pools.iter().map(|p| p.reserve).collect(),
            most: programme.pools.iter().map(|p| p.replicas_most.unwrap_or(u64::MAX)).collect(),
            slots,
            rents,
            places,
            rows: Vec::new(),
            spans: Vec::new(),
            stranded: Vec::new(),
            excepted: Vec::new(),
            dominated: programme.ways.len() - kept.len(),
        };
        for (s, slot) in model.slots.iter().enumerate() {
            model.of_pool[slot.pool].push(s);
            model.of_rent[slot.rent].push(s);
        }
        for pool in 0..programme.pools.len() {
            model.add_pool(programme, pool)?;
        }
        for (r, row) in model.rows.iter().enumerate() {
            for &(slot, load, spare) in &row.terms {
                model.seen[slot].push((r, load, spare));
            }
        }
        Ok(model)
    }

    fn add_pool(&mut self, programme: &Programme, pool: usize) -> Result<(), Mistake> {
        let need = &programme.pools[pool];
        let slots = self.of_pool[pool].clone();
        let region =
            |s: usize| 1u64 << programme.places[self.rents[self.slots[s].rent].place].region;
        let reach = |home: usize, without: u64| -> u64 {
            (0..programme.regions)
                .filter(|s| need.reaches[home][*s])
                .fold(0u64, |mask, s| mask | (1 << s))
                & !without
        };
        let runs = slots.iter().fold(0u64, |mask, &s| mask | region(s));
        let mut stranded = Vec::new();
        let mut excepted = Vec::new();
        for home in (0..programme.regions).filter(|h| need.demand[*h] > 0.0) {
            if reach(home, 0) & runs == 0 {
                stranded.push(Stranded { pool, home: Some(home), lost: None });
            } else if need.lost.is_some_and(|l| l.share > 0.0) {
                for lost in 0..programme.regions {
                    let rest = reach(home, 1 << lost);
                    if reach(home, 0) >> lost & 1 == 1 && rest == 0 {
                        let demand = need.demand[home];
                        excepted.push(Excepted { pool, home, region: lost, demand });
                    } else if rest != 0 && rest & runs == 0 {
                        stranded.push(Stranded { pool, home: Some(home), lost: Some(lost) });
                    }
                }
            }
        }
        if slots.is_empty() && stranded.is_empty() && need.reserve.max(need.replicas_least) > 0 {
            stranded.push(Stranded { pool, home: None, lost: None });
        }
        let mut rows: Vec<Row> = Vec::new();
        let all = |load: f64, spare: f64| -> Vec<(usize, f64, f64)> {
            slots.iter().map(|&s| (s, load, spare)).collect()
        };
        let mut cover = |without: Option<usize>| -> Result<(), Mistake> {
            let gone = without.map_or(0, |r| 1u64 << r);
            let (share, helps) = match (without, need.lost) {
                (Some(_), Some(loss)) => (loss.share, loss.with_reserve),
                _ => (1.0, false),
            };
            let homes: Vec<(u64, f64)> = (0..programme.regions)
                .map(|h| (reach(h, gone) & runs, need.demand[h] * share))
                .filter(|(reach, demand)| *reach != 0 && *demand > 0.0)
                .collect();
            let unions = unions(homes.iter().map(|h| h.0))
                .ok_or(Mistake::Tangled { pool, most: UNIONS_MOST })?;
            // Where two unions hold the same replicas, the larger demand says it all.
            let mut wanted: BTreeMap<u64, f64> = BTreeMap::new();
            for union in unions {
                let demand: f64 = homes.iter().filter(|h| h.0 & !union == 0).map(|h| h.1).sum();
                let at = wanted.entry(union).or_default();
                *at = at.max(demand);
            }
            for (union, demand) in wanted {
                let terms: Vec<(usize, f64, f64)> = slots
                    .iter()
                    .filter(|&&s| region(s) & union != 0)
                    .map(|&s| {
                        let c = self.slots[s].capacity;
                        (s, c, if helps { c } else { 0.0 })
                    })
                    .collect();
                let kind = without.map_or(Kind::Cover, Kind::Lost);
                // What is implied by the same replicas carrying more is left out.
                let implied = rows
                    .iter()
                    .any(|r| r.least >= demand && r.terms.len() == terms.len() && r.terms == terms);
                if !implied {
                    rows.push(Row { pool, kind, terms, least: demand * (1.0 - SLACK) });
                }
            }
            Ok(())
        };
        cover(None)?;
        if need.lost.is_some_and(|l| l.share > 0.0) {
            for lost in (0..programme.regions).filter(|r| runs >> r & 1 == 1) {
                cover(Some(lost))?;
            }
        }
        if need.reserve > 0 {
            let least = need.reserve as f64;
            rows.push(Row { pool, kind: Kind::Reserve, terms: all(0.0, 1.0), least });
        }
        if need.replicas_least > 0 {
            let least = need.replicas_least as f64;
            rows.push(Row { pool, kind: Kind::Least, terms: all(1.0, 1.0), least });
        }
        if let Some(most) = need.replicas_most {
            let least = -(most as f64);
            rows.push(Row { pool, kind: Kind::Most, terms: all(-1.0, -1.0), least });
        }
        for (mode, kept) in programme.modes.iter().enumerate() {
            let Some(share) = kept.share_most.filter(|s| *s < 1.0) else { continue };
            if !slots.iter().any(|&s| self.rents[self.slots[s].rent].mode == mode) {
                continue;
            }
            let terms = slots
                .iter()
                .map(|&s| {
                    let slot = &self.slots[s];
                    let on = if self.rents[slot.rent].mode == mode { 1.0 } else { 0.0 };
                    let c = slot.capacity * (share - on);
                    (s, c, c)
                })
                .collect();
            rows.push(Row { pool, kind: Kind::Share(mode), terms, least: 0.0 });
        }
        self.spans.push(self.rows.len()..self.rows.len() + rows.len());
        self.stranded.extend(stranded);
        self.excepted.extend(excepted);
        self.rows.extend(rows);
        Ok(())
    }

    /// The rows of a pool.
    pub(super) fn rows_of(&self, pool: usize) -> std::ops::Range<usize> {
        self.spans[pool].clone()
    }

    /// What nodes cost, exactly; stops at the largest price.
    pub(super) fn picos(&self, nodes: &[u64]) -> u64 {
        let sum: u128 =
            self.rents.iter().zip(nodes).map(|(r, n)| u128::from(r.picos) * u128::from(*n)).sum();
        u64::try_from(sum).unwrap_or(u64::MAX)
    }

    /// How far a row may be short and still be met.
    pub(super) fn tolerance(row: &Row) -> f64 {
        match row.kind {
            Kind::Cover | Kind::Lost(_) => 1e-12 * row.least,
            _ => 1e-9 * (1.0 + row.least.abs()),
        }
    }

    /// Nodes that replicas of these sizes take: first-fit decreasing, never across nodes.
    pub(super) fn nodes_for(&self, rent: usize, devices: u64, counts: &[u64]) -> u64 {
        let per_node = self.rents[rent].per_node;
        if self.places[self.rents[rent].place].even {
            return devices.div_ceil(per_node);
        }
        let mut sizes: Vec<(u64, u64)> = self.of_rent[rent]
            .iter()
            .map(|&s| (self.slots[s].devices, counts[s]))
            .filter(|(_, count)| *count > 0)
            .collect();
        sizes.sort_by(|a, b| b.cmp(a));
        pack(&sizes, per_node)
    }
}

/// Nodes by first-fit decreasing: `sizes` come largest first, each with a count.
pub(super) fn pack(sizes: &[(u64, u64)], per_node: u64) -> u64 {
    let mut whole = 0;
    let mut free: Vec<u64> = Vec::new();
    for &(size, count) in sizes {
        if size >= per_node {
            whole += count * (size / per_node);
            continue;
        }
        let mut left = count;
        for room in &mut free {
            let fit = left.min(*room / size);
            *room -= fit * size;
            left -= fit;
        }
        while left > 0 {
            let fit = left.min(per_node / size);
            free.push(per_node - fit * size);
            left -= fit;
        }
    }
    whole + free.len() as u64
}

/// Every union of some of these sets, or `None` where there are too many.
fn unions(sets: impl Iterator<Item = u64>) -> Option<BTreeSet<u64>> {
    let mut all: BTreeSet<u64> = BTreeSet::new();
    for set in sets {
        let more: Vec<u64> = all.iter().map(|u| u | set).chain([set]).collect();
        all.extend(more);
        if all.len() > UNIONS_MOST {
            return None;
        }
    }
    Some(all)
}

/// Ways without those that another of the same pool and place replaces one for one: no more devices, no less capacity. Where a mode has a share,
/// more capacity on it may be too much, so only equals are replaced.
fn undominated(programme: &Programme) -> Vec<usize> {
    let ways = &programme.ways;
    let shared = |place: usize| {
        programme.places[place].offers.iter().any(|o| programme.modes[o.mode].share_most.is_some())
    };
    let replaces = |a: usize, b: usize| {
        let (x, y) = (&ways[a], &ways[b]);
        let capacity =
            if shared(x.place) { x.capacity == y.capacity } else { x.capacity >= y.capacity };
        let same = x.devices == y.devices && x.capacity == y.capacity;
        x.pool == y.pool
            && x.place == y.place
            && x.devices <= y.devices
            && capacity
            && (!same || a < b)
    };
    (0..ways.len()).filter(|&b| !(0..ways.len()).any(|a| a != b && replaces(a, b))).collect()
}

fn validate(programme: &Programme) -> Result<(), Mistake> {
    let missing = |what, index, of, value, count| {
        if value < count { Ok(()) } else { Err(Mistake::Missing { what, index, of, value }) }
    };
    let range = |what, index, field, must, holds: bool| {
        if holds { Ok(()) } else { Err(Mistake::Range { what, index, field, must }) }
    };
    range("programme", 0, "regions", "1 to 64", (1..=64).contains(&programme.regions))?;
    for (i, mode) in programme.modes.iter().enumerate() {
        let fine = mode.share_most.is_none_or(|s| (0.0..=1.0).contains(&s));
        range("mode", i, "share_most", "from 0 to 1", fine)?;
    }
    for (i, place) in programme.places.iter().enumerate() {
        missing("place", i, "region", place.region, programme.regions)?;
        let fine = (1..=1_000_000).contains(&place.devices_per_node);
        range("place", i, "devices_per_node", "1 to 1,000,000", fine)?;
        let mut modes = BTreeSet::new();
        let mut committed = 0u64;
        for offer in &place.offers {
            missing("offer of place", i, "mode", offer.mode, programme.modes.len())?;
            range("place", i, "offers", "one of each mode", modes.insert(offer.mode))?;
            let fine = offer.nodes_least <= NODES_MOST;
            range("place", i, "nodes_least", "at most 1,000,000", fine)?;
            if offer.nodes_most.is_some_and(|most| most < offer.nodes_least) {
                return Err(Mistake::Committed { place: i });
            }
            committed += offer.nodes_least;
        }
        if place.devices_most.is_some_and(|d| d / place.devices_per_node < committed) {
            return Err(Mistake::Committed { place: i });
        }
    }
    for (i, need) in programme.pools.iter().enumerate() {
        let fine = need.demand.len() == programme.regions;
        range("pool", i, "demand", "one number for each region", fine)?;
        let fine = need.reaches.len() == programme.regions
            && need.reaches.iter().all(|r| r.len() == programme.regions);
        range("pool", i, "reaches", "one answer for each pair of regions", fine)?;
        let fine = need.demand.iter().all(|d| (0.0..=1e15).contains(d));
        range("pool", i, "demand", "from 0 to 10^15", fine)?;
        let fine = need.lost.is_none_or(|l| (0.0..=1.0).contains(&l.share));
        range("pool", i, "lost.share", "from 0 to 1", fine)?;
        let fine = need.replicas_most.is_none_or(|most| need.replicas_least <= most);
        range("pool", i, "replicas_least", "at most replicas_most", fine)?;
        let fine = need.reserve.max(need.replicas_least) <= NODES_MOST;
        range("pool", i, "reserve and replicas_least", "at most 1,000,000", fine)?;
    }
    for (i, way) in programme.ways.iter().enumerate() {
        missing("way", i, "pool", way.pool, programme.pools.len())?;
        missing("way", i, "place", way.place, programme.places.len())?;
        let fine = way.capacity > 1e-12 && way.capacity <= 1e15;
        range("way", i, "capacity", "above 0, to 10^15", fine)?;
        let fine = (1..=1_000_000_000).contains(&way.devices);
        range("way", i, "devices", "1 to 10^9", fine)?;
        let node = programme.places[way.place].devices_per_node;
        if way.devices > node && !way.devices.is_multiple_of(node) {
            return Err(Mistake::Straddles { way: i, devices: way.devices, node });
        }
    }
    Ok(())
}
