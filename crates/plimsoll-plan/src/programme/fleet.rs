//! Whole fleets: rounded from the relaxation, repaired, and improved by giving up nodes and filling in again.

use plimsoll_stats::{Seed, Stream};

use super::model::{Model, Row};
use super::relax::{Column, Root};
use super::{Effort, Work, good_enough};

/// A fleet, with what follows from it kept up to date.
#[derive(Clone)]
pub(super) struct Fleet {
    /// Replicas that carry load, by slot.
    pub(super) load: Vec<u64>,
    /// Replicas in reserve, by slot.
    pub(super) spare: Vec<u64>,
    /// Devices in use, by rent.
    pub(super) devices: Vec<u64>,
    /// Nodes, by rent.
    pub(super) nodes: Vec<u64>,
    /// What is left over, by row of the model.
    left: Vec<f64>,
    cost: f64,
}

impl Fleet {
    pub(super) fn none(model: &Model) -> Self {
        let nodes: Vec<u64> = model.rents.iter().map(|r| r.least).collect();
        Self {
            load: vec![0; model.slots.len()],
            spare: vec![0; model.slots.len()],
            devices: vec![0; model.rents.len()],
            left: model.rows.iter().map(|r| -r.least).collect(),
            cost: model.rents.iter().map(|r| r.price * r.least as f64).sum(),
            nodes,
        }
    }

    pub(super) fn cost(&self) -> f64 {
        self.cost
    }

    fn counts(&self, model: &Model, rent: usize) -> Vec<u64> {
        let mut counts = vec![0; model.slots.len()];
        for &s in &model.of_rent[rent] {
            counts[s] = self.load[s] + self.spare[s];
        }
        counts
    }

    /// Nodes of the slot's rent, were there one replica more.
    fn nodes_with(&self, model: &Model, slot: usize) -> u64 {
        let s = &model.slots[slot];
        let devices = self.devices[s.rent] + s.devices;
        let nodes = if model.places[model.rents[s.rent].place].even {
            devices.div_ceil(model.rents[s.rent].per_node)
        } else {
            let mut counts = self.counts(model, s.rent);
            counts[slot] += 1;
            model.nodes_for(s.rent, devices, &counts)
        };
        nodes.max(model.rents[s.rent].least)
    }

    fn recount(&mut self, model: &Model, rent: usize) {
        let r = &model.rents[rent];
        let even = model.places[r.place].even;
        let counts = if even { Vec::new() } else { self.counts(model, rent) };
        let nodes = model.nodes_for(rent, self.devices[rent], &counts).max(r.least);
        self.cost += r.price * (nodes as f64 - self.nodes[rent] as f64);
        self.nodes[rent] = nodes;
    }

    fn add(&mut self, model: &Model, slot: usize, spare: bool, n: u64) {
        let s = &model.slots[slot];
        if spare {
            self.spare[slot] += n
        } else {
            self.load[slot] += n
        };
        self.devices[s.rent] += n * s.devices;
        for &(row, l, p) in &model.seen[slot] {
            self.left[row] += n as f64 * if spare { p } else { l };
        }
        self.recount(model, s.rent);
    }

    fn remove(&mut self, model: &Model, slot: usize, spare: bool, n: u64) {
        let s = &model.slots[slot];
        if spare {
            self.spare[slot] -= n
        } else {
            self.load[slot] -= n
        };
        self.devices[s.rent] -= n * s.devices;
        for &(row, l, p) in &model.seen[slot] {
            self.left[row] -= n as f64 * if spare { p } else { l };
        }
        self.recount(model, s.rent);
    }

    /// Sums anew what many moves have blurred.
    fn refresh(&mut self, model: &Model) {
        for (left, row) in self.left.iter_mut().zip(&model.rows) {
            let add = |sum: f64, &(s, l, p): &(usize, f64, f64)| {
                sum + l * self.load[s] as f64 + p * self.spare[s] as f64
            };
            *left = row.terms.iter().fold(0.0, add) - row.least;
        }
        self.cost = model.rents.iter().zip(&self.nodes).map(|(r, n)| r.price * *n as f64).sum();
    }

    fn short(&self, model: &Model, row: usize) -> f64 {
        let short = -self.left[row];
        if short > Model::tolerance(&model.rows[row]) { short } else { 0.0 }
    }

    /// A small price on devices in use: among fleets that cost the same, one with emptier nodes is closer to doing without one.
    fn fill(&self, model: &Model) -> f64 {
        let devices = |(r, d): (&super::model::Rent, &u64)| r.price * *d as f64 / r.per_node as f64;
        0.1 * model.rents.iter().zip(&self.devices).map(devices).sum::<f64>()
    }

    /// Whether every row and limit holds, counted anew.
    pub(super) fn holds(&self, model: &Model) -> bool {
        let rows = model.rows.iter().all(|row: &Row| {
            let sum: f64 = row
                .terms
                .iter()
                .map(|&(s, l, p)| l * self.load[s] as f64 + p * self.spare[s] as f64)
                .sum();
            sum >= row.least - Model::tolerance(row)
        });
        let rents = model.rents.iter().zip(&self.nodes).all(|(r, n)| *n <= r.most);
        let places = model.places.iter().all(|site| {
            let nodes: u64 = site.rents.iter().map(|&r| self.nodes[r]).sum();
            site.nodes_most.is_none_or(|most| nodes <= most)
        });
        rows && rents && places
    }

    /// Whole replicas from columns, rounded down after `up` is added.
    pub(super) fn from_columns(model: &Model, root: &Root, x: &[f64], up: f64) -> Self {
        let mut fleet = Self::none(model);
        for (column, x) in root.columns.iter().zip(x) {
            let n = (x + up).floor().max(0.0) as u64;
            match column {
                Column::Load(s) if n > 0 => fleet.add(model, *s, false, n),
                Column::Spare(s) if n > 0 => fleet.add(model, *s, true, n),
                _ => {}
            }
        }
        fleet
    }

    /// As an assignment of columns.
    #[cfg(feature = "highs")]
    pub(super) fn column(&self, column: Column) -> f64 {
        match column {
            Column::Load(s) => self.load[s] as f64,
            Column::Spare(s) => self.spare[s] as f64,
            Column::Nodes(r) => self.nodes[r] as f64,
        }
    }
}

/// How greed weighs things, and what it may not touch.
struct Taste<'a> {
    /// What a unit of a row is worth, in dollars an hour.
    worth: &'a [f64],
    /// How much whole nodes count, against the devices' share of a node.
    nodes: f64,
    /// How much chance has a say.
    noise: f64,
    /// The most nodes of each rent, for the time being.
    most: &'a [u64],
    /// By pool: the slots to choose from.
    slots: &'a [Vec<usize>],
}

/// Adds replicas until every row holds; `false` where nothing that fits helps.
fn repair(model: &Model, fleet: &mut Fleet, taste: &Taste<'_>, dice: &mut Stream) -> bool {
    let short = |pool: &usize| model.rows_of(*pool).any(|r| fleet.short(model, r) > 0.0);
    let mut pools: Vec<usize> = (0..model.of_pool.len()).filter(short).collect();
    // Who comes first takes the room that is there, so everybody should now and then. Without noise, whoever needs most devices at once.
    if taste.noise > 0.0 {
        for i in (1..pools.len()).rev() {
            pools.swap(i, dice.index(i + 1));
        }
    } else {
        let size = |pool: usize| {
            model.of_pool[pool].iter().map(|&s| model.slots[s].devices).min().unwrap_or(0)
        };
        pools.sort_by_key(|&p| (std::cmp::Reverse(size(p)), p));
    }
    pools.into_iter().all(|pool| repair_pool(model, fleet, pool, taste, dice))
}

fn repair_pool(
    model: &Model,
    fleet: &mut Fleet,
    pool: usize,
    taste: &Taste<'_>,
    dice: &mut Stream,
) -> bool {
    let rows = model.rows_of(pool);
    while rows.clone().any(|r| fleet.short(model, r) > 0.0) {
        let mut best: Option<(f64, usize, bool, u64)> = None;
        for &slot in &taste.slots[pool] {
            let s = &model.slots[slot];
            let rent = &model.rents[s.rent];
            let nodes = fleet.nodes_with(model, slot);
            let extra = nodes - fleet.nodes[s.rent].min(nodes);
            if extra > 0 {
                let site = &model.places[rent.place];
                let there: u64 = site.rents.iter().map(|&r| fleet.nodes[r]).sum();
                if nodes > taste.most[s.rent]
                    || site.nodes_most.is_some_and(|most| there + extra > most)
                {
                    continue;
                }
            }
            let share = rent.price * s.devices as f64 / rent.per_node as f64;
            let price = taste.nodes * extra as f64 * rent.price + (1.0 - taste.nodes) * share;
            let chance = 1.0 + taste.noise * dice.uniform();
            for spare in [false, true] {
                if spare && model.reserve[pool] == 0 {
                    continue;
                }
                let mut gain = 0.0;
                let mut fits = true;
                let mut steps = u64::MAX;
                for &(row, l, p) in &model.seen[slot] {
                    let a = if spare { p } else { l };
                    let short = fleet.short(model, row);
                    if a > 0.0 && short > 0.0 {
                        gain += taste.worth[row] * a.min(short);
                        steps = steps.min((short / a) as u64);
                    } else if a < 0.0 {
                        let left = fleet.left[row] + a;
                        fits &= left >= -Model::tolerance(&model.rows[row]);
                    }
                }
                if !fits || gain <= 0.0 {
                    continue;
                }
                let score = (price + 1e-9) * chance / gain;
                if best.is_none_or(|(b, ..)| score < b) {
                    // Far from done, several at once: what is left of the node, of the same.
                    let free = nodes * rent.per_node
                        - (fleet.devices[s.rent] + s.devices).min(nodes * rent.per_node);
                    let many = if model.places[rent.place].even && !has_negative(model, slot, spare)
                    {
                        (free / s.devices + 1).min(steps).max(1)
                    } else {
                        1
                    };
                    best = Some((score, slot, spare, many));
                }
            }
        }
        let Some((_, slot, spare, many)) = best else { return false };
        fleet.add(model, slot, spare, many);
    }
    true
}

fn has_negative(model: &Model, slot: usize, spare: bool) -> bool {
    model.seen[slot].iter().any(|&(_, l, p)| if spare { p < 0.0 } else { l < 0.0 })
}

/// Takes away what no row needs, dearest devices first.
fn prune(model: &Model, fleet: &mut Fleet, order: &[usize]) {
    for &slot in order {
        for spare in [false, true] {
            let have = if spare { fleet.spare[slot] } else { fleet.load[slot] };
            if have == 0 {
                continue;
            }
            let mut n = have;
            for &(row, l, p) in &model.seen[slot] {
                let a = if spare { p } else { l };
                if a > 0.0 {
                    let over = fleet.left[row] + Model::tolerance(&model.rows[row]);
                    n = n.min((over / a).floor().max(0.0) as u64);
                }
            }
            if n > 0 {
                fleet.remove(model, slot, spare, n);
            }
        }
    }
}

/// Takes replicas off a rent until it has at most so many nodes, those of least worth first.
fn evict(
    model: &Model,
    fleet: &mut Fleet,
    rent: usize,
    nodes: u64,
    worth: &[f64],
    dice: &mut Stream,
    noise: f64,
) {
    let mut order: Vec<(f64, usize, bool)> = Vec::new();
    for &s in &model.of_rent[rent] {
        for spare in [false, true] {
            let have = if spare { fleet.spare[s] } else { fleet.load[s] };
            if have > 0 {
                let value: f64 = model.seen[s]
                    .iter()
                    .map(|&(row, l, p)| worth[row] * if spare { p } else { l })
                    .sum();
                let chance = 1.0 + noise * dice.uniform();
                order.push((chance * value / model.slots[s].devices as f64, s, spare));
            }
        }
    }
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    for (_, s, spare) in order {
        while fleet.nodes[rent] > nodes && (if spare { fleet.spare[s] } else { fleet.load[s] }) > 0
        {
            fleet.remove(model, s, spare, 1);
        }
    }
}

/// Brings a fleet within limits and back to what is needed.
pub(super) fn settle(model: &Model, root: &Root, mut fleet: Fleet, nodes: f64) -> Option<Fleet> {
    let worth = worths(model, root);
    let mut dice = Seed::new(0).stream("settle");
    fleet.refresh(model);
    for site in &model.places {
        for &r in &site.rents {
            evict(model, &mut fleet, r, model.rents[r].most, &worth, &mut dice, 0.0);
        }
        let Some(most) = site.nodes_most else { continue };
        while site.rents.iter().map(|&r| fleet.nodes[r]).sum::<u64>() > most {
            // The node that is filled least.
            let emptiest = site
                .rents
                .iter()
                .copied()
                .filter(|&r| fleet.nodes[r] > model.rents[r].least)
                .min_by_key(|&r| {
                    let used = fleet.devices[r] % model.rents[r].per_node;
                    (if used == 0 { model.rents[r].per_node } else { used }, r)
                })?;
            let to = fleet.nodes[emptiest] - 1;
            evict(model, &mut fleet, emptiest, to, &worth, &mut dice, 0.0);
        }
    }
    let most: Vec<u64> = model.rents.iter().map(|r| r.most).collect();
    let slots = &model.of_pool;
    let taste = Taste { worth: &worth, nodes, noise: 0.0, most: &most, slots };
    if !repair(model, &mut fleet, &taste, &mut dice) {
        return None;
    }
    prune(model, &mut fleet, &dearest(model));
    fleet.holds(model).then_some(fleet)
}

/// What several ways to round end in, the cheapest first.
pub(super) fn construct(model: &Model, root: &Root, work: &mut Work) -> Vec<Fleet> {
    let zeros = vec![0.0; root.columns.len()];
    let x = root.optimum.as_ref().map_or(&zeros, |o| &o.x);
    let mut fleets = Vec::new();
    for up in [1e-6, 0.2, 0.4, 0.6, 1.0 - 1e-6] {
        for nodes in [0.9, 0.5, 0.1] {
            work.tries += 1;
            let fleet = Fleet::from_columns(model, root, x, up);
            fleets.extend(settle(model, root, fleet, nodes));
        }
    }
    fleets.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    fleets
}

pub(super) fn better(a: Option<Fleet>, b: Option<Fleet>) -> Option<Fleet> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.cost < a.cost - 1e-9 { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// What a unit of each row is worth: its multiplier, and something where that is zero.
fn worths(model: &Model, root: &Root) -> Vec<f64> {
    let mut multipliers = root.prices.clone();
    // What cuts are worth belongs to the rows that replicas must meet: spread over the pool's covering rows.
    if let Some(optimum) = &root.optimum {
        let first = root.linear.rows.len() - root.cuts.len();
        for (cut, y) in root.cuts.iter().zip(optimum.y.iter().skip(first)) {
            let of_pool = || model.rows_of(cut.pool).filter(|&r| model.rows[r].least > 0.0);
            let count = of_pool().count().max(1) as f64;
            for r in of_pool() {
                multipliers[r] += y * cut.least / model.rows[r].least.max(1e-12) / count;
            }
        }
    }
    model
        .rows
        .iter()
        .zip(multipliers)
        .map(|(row, y)| {
            let typical = row
                .terms
                .iter()
                .filter(|t| t.1.max(t.2) > 0.0)
                .map(|&(s, l, p)| {
                    let slot = &model.slots[s];
                    let rent = &model.rents[slot.rent];
                    rent.price * slot.devices as f64 / rent.per_node as f64 / l.max(p)
                })
                .fold(f64::INFINITY, f64::min);
            y + if typical.is_finite() { 0.3 * typical + 1e-12 } else { 1e-12 }
        })
        .collect()
}

fn dearest(model: &Model) -> Vec<usize> {
    let mut order: Vec<usize> = (0..model.slots.len()).collect();
    let price = |s: usize| {
        let slot = &model.slots[s];
        let rent = &model.rents[slot.rent];
        rent.price * slot.devices as f64 / rent.per_node as f64 / slot.capacity
    };
    order.sort_by(|&a, &b| {
        let pools = model.slots[a].pool.cmp(&model.slots[b].pool);
        pools.then(price(b).total_cmp(&price(a))).then(a.cmp(&b))
    });
    order
}

/// By pool: the slots whose replicas cost least beyond what they are worth.
fn likely(model: &Model, root: &Root) -> Vec<Vec<usize>> {
    let mut reduced = root.cost.clone();
    if let Some(optimum) = &root.optimum {
        for ((terms, _), y) in root.linear.rows.iter().zip(&optimum.y) {
            for (j, a) in terms {
                reduced[*j] -= y * a;
            }
        }
    }
    let of_pool = |slots: &Vec<usize>| {
        let mut order = slots.clone();
        let per = |s: usize| reduced[s] / model.slots[s].capacity;
        order.sort_by(|&a, &b| per(a).total_cmp(&per(b)).then(a.cmp(&b)));
        order.truncate(LIKELY);
        order
    };
    model.of_pool.iter().map(of_pool).collect()
}

/// Slots of a pool that most tries choose from.
const LIKELY: usize = 36;

/// Starts that are followed.
const STARTS: usize = 4;

/// Follows several starts for a while, and the best of them for as long again.
pub(super) fn improve(
    model: &Model,
    root: &Root,
    mut starts: Vec<Fleet>,
    effort: Effort,
    work: &mut Work,
) -> Option<Fleet> {
    starts.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    starts.dedup_by(|a, b| a.nodes == b.nodes && a.load == b.load && a.spare == b.spare);
    let mut best = starts.first()?.clone();
    let search = Search {
        model,
        worth: worths(model, root),
        order: dearest(model),
        likely: likely(model, root),
        bound: root.bound(model, best.cost),
        effort,
    };
    let count = starts.len().min(STARTS);
    let each = effort.tries / 2 / u32::try_from(count).unwrap_or(1);
    for (i, start) in starts.into_iter().take(STARTS).enumerate() {
        let end = search.follow(start, each, 1 + i as u64, work);
        if end.cost < best.cost - 1e-9 {
            best = end;
        }
    }
    Some(search.follow(best, effort.tries - effort.tries / 2, 77, work))
}

struct Search<'a> {
    model: &'a Model,
    worth: Vec<f64>,
    order: Vec<usize>,
    likely: Vec<Vec<usize>>,
    bound: f64,
    effort: Effort,
}

impl Search<'_> {
    /// Gives up some nodes, fills in again, and keeps what is cheaper.
    fn follow(&self, start: Fleet, tries: u32, seed: u64, work: &mut Work) -> Fleet {
        let model = self.model;
        let limits: Vec<u64> = model.rents.iter().map(|r| r.most).collect();
        let mut dice = Seed::new(seed).stream("give-up");
        let mut best = start.clone();
        let mut current = start;
        let mut at = current.cost + current.fill(model);
        let mut quiet = 0u32;
        for done in 0..tries {
            if good_enough(best.cost, self.bound, self.effort) {
                break;
            }
            work.tries += 1;
            let mut next = current.clone();
            let mut most = limits.clone();
            if !self.give_up(&mut next, &mut most, &mut dice) {
                break;
            }
            let taste = Taste {
                worth: &self.worth,
                nodes: [0.98, 0.9, 0.7, 0.4][dice.index(4)],
                noise: [0.02, 0.1, 0.5, 1.5][dice.index(4)],
                most: &most,
                slots: if dice.index(6) == 0 { &model.of_pool } else { &self.likely },
            };
            if !repair(model, &mut next, &taste, &mut dice) {
                continue;
            }
            prune(model, &mut next, &self.order);
            // What is a little worse is let pass, less and less of it: ways out of a corner lead uphill.
            let left = 1.0 - f64::from(done) / f64::from(tries);
            let leeway = 0.012 * best.cost * left * left;
            let score = next.cost + next.fill(model);
            if score < at + 1e-9 || next.cost <= best.cost + leeway && score < at + leeway {
                if next.cost < best.cost - 1e-9 && next.holds(model) {
                    best = next.clone();
                    quiet = 0;
                }
                at = score;
                current = next;
            }
            quiet += 1;
            if quiet > 400 {
                current = best.clone();
                at = current.cost + current.fill(model);
                quiet = 0;
            }
        }
        best
    }

    /// Takes replicas off some nodes; `false` where there is nothing to give up.
    fn give_up(&self, next: &mut Fleet, most: &mut [u64], dice: &mut Stream) -> bool {
        let model = self.model;
        let rented: Vec<usize> =
            (0..model.rents.len()).filter(|&r| next.nodes[r] > model.rents[r].least).collect();
        if rented.is_empty() {
            return false;
        }
        // One node is mostly enough; now and then several, or all of a rent, or a pool.
        let kind = dice.index(10);
        if kind < 8 {
            let several = [1, 1, 2, 2, 3, 3, 4, 6][kind];
            let mut region = None;
            for _ in 0..several {
                // Nodes that are hardly used are the ones to do without, and those of one region can stand in for each other.
                let used = |r: usize| match next.devices[r] % model.rents[r].per_node {
                    0 => model.rents[r].per_node,
                    used => used,
                };
                let near: Vec<usize> = rented
                    .iter()
                    .copied()
                    .filter(|&r| {
                        region.is_none_or(|g| model.places[model.rents[r].place].region == g)
                    })
                    .collect();
                let from = if near.is_empty() || dice.index(3) == 0 { &rented } else { &near };
                let (a, b) = (from[dice.index(from.len())], from[dice.index(from.len())]);
                let share = |r: usize| used(r) as f64 / model.rents[r].per_node as f64;
                let rent = if share(b) < share(a) { b } else { a };
                region = region.or(Some(model.places[model.rents[rent].place].region));
                let away = 1 + if dice.index(4) == 0 { dice.index(3) as u64 } else { 0 };
                let to = next.nodes[rent].saturating_sub(away).max(model.rents[rent].least);
                if dice.index(4) != 0 {
                    most[rent] = most[rent].min(to);
                }
                evict(model, next, rent, to, &self.worth, dice, 2.0);
            }
        } else if kind == 8 {
            let rent = rented[dice.index(rented.len())];
            most[rent] = model.rents[rent].least;
            evict(model, next, rent, most[rent], &self.worth, dice, 1.0);
        } else {
            let pool = dice.index(model.of_pool.len());
            for &s in &model.of_pool[pool] {
                for spare in [false, true] {
                    let n = if spare { next.spare[s] } else { next.load[s] };
                    if n > 0 && dice.index(3) != 0 {
                        next.remove(model, s, spare, n);
                    }
                }
            }
        }
        true
    }
}
