//! Why there is no fleet: what would have to give, and by how much.
//!
//! Every limit that somebody could lift gets slack, priced in devices; the cheapest slack that lets the relaxation through names the limits to lift together. Each of
//! them, and each limit with a say in that, is then tried on its own. Amounts are rounded up to whole nodes and replicas, and tried on whole fleets before they are told.

use std::collections::BTreeSet;
use std::fmt;

use super::model::{Kind, Model};
use super::relax::{self, Column, Linear};
use super::{Effort, Programme, Work, find};

/// Limits that are tried on their own.
const ALONE_MOST: usize = 16;

/// Limits that are tried together, on top of those that the relaxation wants lifted.
const TOGETHER_MOST: usize = 48;

/// Why no fleet was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// Whether it is proven that there is none; otherwise the effort ran out.
    pub proven: bool,
    /// Demand that no way to run can carry, whatever is rented. Where there is any, nothing else is looked at.
    pub stranded: Vec<Stranded>,
    /// There would be a fleet with these together.
    pub together: Vec<Relaxation>,
    /// Whether a fleet was found with these together.
    pub confirmed: bool,
    /// There would be a fleet with any one of these alone; each was confirmed by finding one. There may be more than the effort allowed to try.
    pub alone: Vec<Relaxation>,
    /// What it took.
    pub work: Work,
}

impl Why {
    pub(super) fn stranded(stranded: Vec<Stranded>) -> Self {
        Self {
            proven: true,
            stranded,
            together: Vec::new(),
            confirmed: false,
            alone: Vec::new(),
            work: Work::default(),
        }
    }
}

/// Demand that no way to run can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stranded {
    /// Whose demand.
    pub pool: usize,
    /// Where it comes from; `None` where the pool has replicas to keep and no way to run them.
    pub home: Option<usize>,
    /// The region whose loss strands it; `None` where it always is.
    pub lost: Option<usize>,
}

/// A limit that gives way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relaxation {
    /// A larger quota.
    Devices {
        /// The place.
        place: usize,
        /// Its accelerator.
        accelerator: usize,
        /// Its region.
        region: usize,
        /// Devices on top, as far as they are of use: the quota then holds whole nodes.
        more: u64,
    },
    /// More nodes of one mode.
    Nodes {
        /// The place.
        place: usize,
        /// Its accelerator.
        accelerator: usize,
        /// Its region.
        region: usize,
        /// The mode.
        mode: usize,
        /// Nodes on top.
        more: u64,
    },
    /// More replicas allowed.
    Replicas {
        /// The pool.
        pool: usize,
        /// Replicas on top.
        more: u64,
    },
    /// A larger share of capacity on a mode.
    Share {
        /// The mode.
        mode: usize,
        /// The share to allow.
        to: f64,
    },
    /// Less to carry when a region is lost.
    Loss {
        /// The pool.
        pool: usize,
        /// The share of demand to carry then.
        to: f64,
    },
    /// One more region within reach.
    Reach {
        /// The pool.
        pool: usize,
        /// From this home region.
        home: usize,
        /// To this serving region.
        serving: usize,
    },
    /// Less demand.
    Demand {
        /// The pool.
        pool: usize,
        /// The share of demand to carry.
        to: f64,
    },
}

impl fmt::Display for Relaxation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Devices { accelerator, region, more, .. } => {
                write!(f, "{more} more devices of accelerator {accelerator} in region {region}")
            }
            Self::Nodes { accelerator, region, mode, more, .. } => write!(
                f,
                "{more} more nodes of accelerator {accelerator} in region {region} in mode {mode}"
            ),
            Self::Replicas { pool, more } => write!(f, "{more} more replicas of pool {pool}"),
            Self::Share { mode, to } => {
                write!(f, "up to {:.0}% of capacity in mode {mode}", to * 100.0)
            }
            Self::Loss { pool, to } => {
                write!(f, "{:.0}% of pool {pool} carried when a region is lost", to * 100.0)
            }
            Self::Reach { pool, home, serving } => {
                write!(f, "region {serving} serving demand of region {home} of pool {pool}")
            }
            Self::Demand { pool, to } => {
                write!(f, "{:.0}% of the demand of pool {pool}", to * 100.0)
            }
        }
    }
}

/// The programme with these limits lifted.
pub fn relaxed(programme: &Programme, relaxations: &[Relaxation]) -> Programme {
    let mut changed = programme.clone();
    for relaxation in relaxations {
        match *relaxation {
            Relaxation::Devices { place, more, .. } => {
                if let Some(p) = changed.places.get_mut(place) {
                    p.devices_most = p.devices_most.map(|d| d.saturating_add(more));
                }
            }
            Relaxation::Nodes { place, mode, more, .. } => {
                let offers = changed.places.get_mut(place).into_iter().flat_map(|p| &mut p.offers);
                for offer in offers.filter(|o| o.mode == mode) {
                    offer.nodes_most = offer.nodes_most.map(|n| n.saturating_add(more));
                }
            }
            Relaxation::Replicas { pool, more } => {
                if let Some(p) = changed.pools.get_mut(pool) {
                    p.replicas_most = p.replicas_most.map(|n| n.saturating_add(more));
                }
            }
            Relaxation::Share { mode, to } => {
                if let Some(m) = changed.modes.get_mut(mode) {
                    m.share_most = m.share_most.map(|s| s.max(to).min(1.0));
                }
            }
            Relaxation::Loss { pool, to } => {
                let loss = changed.pools.get_mut(pool).and_then(|p| p.lost.as_mut());
                if let Some(loss) = loss {
                    loss.share = loss.share.min(to).max(0.0);
                }
            }
            Relaxation::Reach { pool, home, serving } => {
                let row = changed.pools.get_mut(pool).and_then(|p| p.reaches.get_mut(home));
                if let Some(reaches) = row.and_then(|r| r.get_mut(serving)) {
                    *reaches = true;
                }
            }
            Relaxation::Demand { pool, to } => {
                if let Some(p) = changed.pools.get_mut(pool) {
                    for demand in &mut p.demand {
                        *demand *= to.clamp(0.0, 1.0);
                    }
                }
            }
        }
    }
    changed
}

/// A limit with slack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Knob {
    Devices(usize),
    Nodes(usize),
    Replicas(usize),
    Share(usize),
    Loss(usize),
    Demand(usize),
}

struct Elastic {
    model: Model,
    linear: Linear,
    columns: Vec<Column>,
    /// Slack columns.
    knobs: Vec<(Knob, usize)>,
    /// Rows that hold a limit.
    held: Vec<(Knob, usize)>,
}

pub(super) fn explain(programme: &Programme, proven: bool, effort: Effort, mut work: Work) -> Why {
    let mut why = Why { proven, ..Why::stranded(Vec::new()) };
    let Some(elastic) = Elastic::new(programme) else {
        why.work = work;
        return why;
    };
    // Enough to find any fleet, not a cheap one. Small programmes can afford to be sure.
    let quick = Effort { lps: effort.lps.min(60), tries: 0, gap: 1e9 };
    let mut tried: BTreeSet<Knob> = BTreeSet::new();
    if let Some(given) = elastic.solve(programme, None, &mut work) {
        let confirmed = if given.relaxations.is_empty() {
            None
        } else {
            confirm(programme, given.relaxations.clone(), quick, &mut work)
        };
        // A limit without a price has no say: lifting it alone changes nothing. Where nothing has a price, only whole numbers stand in the way, and limits that are
        // nearly reached are the ones to try.
        tried.extend(elastic.held.iter().filter(|h| given.prices[h.1] > 1e-7).map(|h| h.0));
        if given.relaxations.is_empty() || confirmed.is_none() {
            tried.extend(elastic.nearly(&given.x));
        }
        why.confirmed = confirmed.is_some();
        why.together = match confirmed {
            Some(relaxations) => relaxations,
            None => {
                let mut all = given.relaxations;
                let have: BTreeSet<Knob> = given.knobs.into_iter().collect();
                let every: BTreeSet<Knob> = elastic.held.iter().map(|h| h.0).collect();
                // First with the limits that seem to matter, then with all there are.
                for knobs in [&tried, &every] {
                    let more = knobs.difference(&have).filter(|k| !matches!(k, Knob::Demand(_)));
                    let mut wider = all.clone();
                    wider.extend(more.take(TOGETHER_MOST).map(|k| elastic.unit(programme, *k)));
                    if let Some(enough) = confirm(programme, wider, quick, &mut work) {
                        why.confirmed = true;
                        all = fewer(programme, enough, quick, &mut work);
                        break;
                    }
                }
                all
            }
        };
    }
    let pools: BTreeSet<usize> = tried
        .iter()
        .filter_map(|k| if let Knob::Demand(pool) = k { Some(*pool) } else { None })
        .collect();
    // In the order of the knobs, policy comes last: limits that money lifts are the likelier way out.
    let enough = work.lps.saturating_add(3 * effort.lps + 10);
    for knob in tried.into_iter().take(ALONE_MOST) {
        if work.lps >= enough {
            break;
        }
        let Some(given) = elastic.solve(programme, Some(knob), &mut work) else { continue };
        let relaxations = if given.relaxations.is_empty() {
            vec![elastic.unit(programme, knob)]
        } else {
            given.relaxations
        };
        let confirmed = confirm(programme, relaxations, quick, &mut work);
        why.alone.extend(confirmed.into_iter().flatten());
    }
    let mut reaches = 0;
    for pool in pools {
        let need = &programme.pools[pool];
        for home in (0..programme.regions).filter(|h| need.demand[*h] > 0.0) {
            for serving in (0..programme.regions).filter(|s| !need.reaches[home][*s]) {
                let runs = programme
                    .ways
                    .iter()
                    .any(|w| w.pool == pool && programme.places[w.place].region == serving);
                if !runs || reaches == ALONE_MOST || work.lps >= enough {
                    continue;
                }
                reaches += 1;
                let relaxation = Relaxation::Reach { pool, home, serving };
                if holds(&relaxed(programme, &[relaxation]), quick, &mut work) {
                    why.alone.push(relaxation);
                }
            }
        }
    }
    why.work = work;
    why
}

fn holds(programme: &Programme, effort: Effort, work: &mut Work) -> bool {
    let Ok(model) = Model::new(programme) else { return false };
    if !model.stranded.is_empty() {
        return false;
    }
    // Each has the effort to itself.
    let mut own = Work::default();
    let found = find(&model, 0, effort, &mut own);
    work.lps += own.lps;
    work.branches += own.branches;
    work.tries += own.tries;
    found.best.is_some()
}

/// The relaxations, a little larger where whole nodes and replicas need it, once a fleet is found with them.
fn confirm(
    programme: &Programme,
    mut relaxations: Vec<Relaxation>,
    effort: Effort,
    work: &mut Work,
) -> Option<Vec<Relaxation>> {
    for _ in 0..5 {
        if holds(&relaxed(programme, &relaxations), effort, work) {
            return Some(relaxations);
        }
        for relaxation in &mut relaxations {
            match relaxation {
                Relaxation::Devices { place, more, .. } => {
                    *more += programme.places[*place].devices_per_node;
                }
                Relaxation::Nodes { more, .. } | Relaxation::Replicas { more, .. } => *more += 1,
                Relaxation::Share { to, .. } => *to = hundredths(*to + 0.05),
                Relaxation::Loss { to, .. } | Relaxation::Demand { to, .. } => {
                    *to = hundredths(*to - 0.05);
                }
                Relaxation::Reach { .. } => {}
            }
        }
    }
    None
}

fn hundredths(share: f64) -> f64 {
    ((share * 100.0).round() / 100.0).clamp(0.0, 1.0)
}

/// The same with every relaxation left out that is not needed after all.
fn fewer(
    programme: &Programme,
    mut relaxations: Vec<Relaxation>,
    effort: Effort,
    work: &mut Work,
) -> Vec<Relaxation> {
    let mut i = 0;
    while i < relaxations.len() && relaxations.len() > 1 {
        let mut without = relaxations.clone();
        without.remove(i);
        if holds(&relaxed(programme, &without), effort, work) {
            relaxations = without;
        } else {
            i += 1;
        }
    }
    relaxations
}

/// What the relaxation wants lifted.
struct Given {
    relaxations: Vec<Relaxation>,
    knobs: Vec<Knob>,
    /// By row.
    prices: Vec<f64>,
    x: Vec<f64>,
}

impl Elastic {
    fn new(programme: &Programme) -> Option<Self> {
        let mut loose = programme.clone();
        for place in &mut loose.places {
            place.devices_most = None;
            for offer in &mut place.offers {
                offer.nodes_most = None;
            }
        }
        let model = Model::new(&loose).ok()?;
        let root = relax::build(&model);
        let mut linear = root.linear;
        let columns = root.columns;
        let mut knobs = Vec::new();
        let mut held = Vec::new();
        // Cost decides between equals, and only then.
        let dearest = root.cost.iter().fold(1.0, |m: f64, c| m.max(*c));
        linear.cost = root.cost.iter().map(|c| 1e-4 * c / dearest).collect();
        let mut slack = |linear: &mut Linear, knob: Knob, weight: f64, high: f64| -> usize {
            linear.cost.push(weight);
            linear.low.push(0.0);
            linear.high.push(high);
            knobs.push((knob, linear.cost.len() - 1));
            linear.cost.len() - 1
        };
        let nodes = |rent: usize| columns.iter().position(|c| *c == Column::Nodes(rent));
        for (p, place) in programme.places.iter().enumerate() {
            let per_node = place.devices_per_node as f64;
            let rents = &model.places[p].rents;
            for (offer, &rent) in place.offers.iter().zip(rents) {
                let Some(most) = offer.nodes_most else { continue };
                let t = slack(&mut linear, Knob::Nodes(rent), per_node, f64::INFINITY);
                held.push((Knob::Nodes(rent), linear.rows.len()));
                linear.rows.push((vec![(nodes(rent)?, -1.0), (t, 1.0)], -(most as f64)));
            }
            if let Some(most) = place.devices_most {
                let t = slack(&mut linear, Knob::Devices(p), per_node, f64::INFINITY);
                let mut terms = vec![(t, 1.0)];
                for &rent in rents {
                    terms.push((nodes(rent)?, -1.0));
                }
                held.push((Knob::Devices(p), linear.rows.len()));
                linear.rows.push((terms, -((most / place.devices_per_node) as f64)));
            }
        }
        for (pool, need) in programme.pools.iter().enumerate() {
            let mine: Vec<&super::Way> = programme.ways.iter().filter(|w| w.pool == pool).collect();
            if mine.is_empty() {
                continue;
            }
            let many = mine.len() as f64;
            let replica: f64 = mine.iter().map(|w| w.devices as f64).sum::<f64>() / many;
            let unit: f64 = mine.iter().map(|w| w.devices as f64 / w.capacity).sum::<f64>() / many;
            let whole: f64 = need.demand.iter().sum();
            // Service that is not given is dearer than devices.
            let loss = slack(&mut linear, Knob::Loss(pool), 3.0 * unit * whole + 1e-6, 1.0);
            let demand = slack(&mut linear, Knob::Demand(pool), 9.0 * unit * whole + 1e-6, 1.0);
            for r in model.rows_of(pool) {
                let row = &mut linear.rows[r];
                match model.rows[r].kind {
                    Kind::Cover => {
                        row.0.push((demand, row.1));
                        held.push((Knob::Demand(pool), r));
                    }
                    Kind::Lost(_) => {
                        row.0.push((demand, row.1));
                        held.push((Knob::Demand(pool), r));
                        // A unit of slack is all of the demand, not of the share that was asked for.
                        let share = need.lost.map_or(1.0, |l| l.share);
                        row.0.push((loss, row.1 / share));
                        held.push((Knob::Loss(pool), r));
                    }
                    Kind::Most => {
                        let t = slack(&mut linear, Knob::Replicas(pool), replica, f64::INFINITY);
                        linear.rows[r].0.push((t, 1.0));
                        held.push((Knob::Replicas(pool), r));
                    }
                    Kind::Share(mode) => {
                        let t = slack(&mut linear, Knob::Share(mode), unit, f64::INFINITY);
                        linear.rows[r].0.push((t, 1.0));
                        held.push((Knob::Share(mode), r));
                    }
                    _ => {}
                }
            }
        }
        Some(Self { model, linear, columns, knobs, held })
    }

    /// The slack that is wanted, as limits to lift, and the price of every row. With `only`, nothing else gives; without, demand does not.
    fn solve(&self, programme: &Programme, only: Option<Knob>, work: &mut Work) -> Option<Given> {
        let mut linear = self.linear.clone();
        for (knob, column) in &self.knobs {
            let gives = only.map_or(!matches!(knob, Knob::Demand(_)), |only| only == *knob);
            if !gives {
                linear.high[*column] = 0.0;
            }
        }
        let optimum = linear.solve(work).ok()?;
        let mut relaxations = Vec::new();
        let mut knobs = Vec::new();
        for (knob, column) in &self.knobs {
            let t = optimum.x[*column];
            if t < 1e-5 || knobs.contains(knob) {
                continue;
            }
            knobs.push(*knob);
            relaxations.push(self.lifted(programme, *knob, t, &optimum.x));
        }
        Some(Given { relaxations, knobs, prices: optimum.y, x: optimum.x })
    }

    /// Limits that are reached up to less than a node or a replica, or a tenth.
    fn nearly(&self, x: &[f64]) -> Vec<Knob> {
        let near = |knob: &Knob, row: usize| {
            let (terms, least) = &self.linear.rows[row];
            let left = terms.iter().map(|(j, a)| a * x[*j]).sum::<f64>() - least;
            match knob {
                Knob::Devices(_) | Knob::Nodes(_) | Knob::Replicas(_) => left < 1.0,
                Knob::Share(_) | Knob::Loss(_) | Knob::Demand(_) => {
                    let size = terms.iter().fold(least.abs(), |m, t| m.max(t.1.abs()));
                    left < 0.1 * size
                }
            }
        };
        self.held.iter().filter(|(knob, row)| near(knob, *row)).map(|h| h.0).collect()
    }

    /// The least that a limit can be lifted by.
    fn unit(&self, programme: &Programme, knob: Knob) -> Relaxation {
        match knob {
            Knob::Devices(_) | Knob::Nodes(_) | Knob::Replicas(_) => {
                self.lifted(programme, knob, 1.0, &[])
            }
            Knob::Share(mode) => {
                let from = programme.modes[mode].share_most.unwrap_or(1.0);
                Relaxation::Share { mode, to: hundredths(from + 0.05) }
            }
            Knob::Loss(_) | Knob::Demand(_) => self.lifted(programme, knob, 0.05, &[]),
        }
    }

    /// A limit lifted by so much, rounded up to what is whole. Shares are read off `x`.
    fn lifted(&self, programme: &Programme, knob: Knob, by: f64, x: &[f64]) -> Relaxation {
        // What is a hair above a whole number is that number.
        let whole = (by - 1e-4).ceil().max(1.0) as u64;
        let place = |p: usize| (programme.places[p].accelerator, programme.places[p].region);
        let down = |from: f64| (((from - by) * 100.0 + 1e-3).floor() / 100.0).clamp(0.0, 1.0);
        match knob {
            Knob::Devices(p) => {
                let (accelerator, region) = place(p);
                let node = programme.places[p].devices_per_node;
                let most = programme.places[p].devices_most.unwrap_or(0);
                let more = (most / node + whole) * node - most;
                Relaxation::Devices { place: p, accelerator, region, more }
            }
            Knob::Nodes(rent) => {
                let rent = &self.model.rents[rent];
                let (accelerator, region) = place(rent.place);
                let (place, mode) = (rent.place, rent.mode);
                Relaxation::Nodes { place, accelerator, region, mode, more: whole }
            }
            Knob::Replicas(pool) => Relaxation::Replicas { pool, more: whole },
            Knob::Share(mode) => Relaxation::Share { mode, to: self.share(mode, x) },
            Knob::Loss(pool) => {
                let from = programme.pools[pool].lost.map_or(0.0, |l| l.share);
                Relaxation::Loss { pool, to: down(from) }
            }
            Knob::Demand(pool) => Relaxation::Demand { pool, to: down(1.0) },
        }
    }

    /// The largest share of any pool's capacity on a mode, rounded up to a hundredth.
    fn share(&self, mode: usize, x: &[f64]) -> f64 {
        let pools = self.model.of_pool.len();
        let (mut on, mut all) = (vec![0.0; pools], vec![0.0; pools]);
        for (column, x) in self.columns.iter().zip(x) {
            if let Column::Load(s) | Column::Spare(s) = column {
                let slot = &self.model.slots[*s];
                all[slot.pool] += x * slot.capacity;
                if self.model.rents[slot.rent].mode == mode {
                    on[slot.pool] += x * slot.capacity;
                }
            }
        }
        let most = on
            .iter()
            .zip(&all)
            .filter(|(_, all)| **all > 0.0)
            .map(|(on, all)| on / all)
            .fold(0.0, f64::max);
        ((most * 100.0 - 1e-3).ceil() / 100.0).clamp(0.0, 1.0)
    }
}
