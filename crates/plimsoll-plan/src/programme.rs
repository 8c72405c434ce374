//! The fleet programme: which replicas of which pools on which nodes, at the least cost an hour.

mod branch;
mod check;
mod dive;
#[cfg(feature = "highs")]
mod exact;
mod fleet;
mod model;
mod relax;
mod why;

use plimsoll_units::UsdPerHour;

pub use check::{Breach, check};
pub use why::{Relaxation, Stranded, Why, relaxed};

use fleet::Fleet;
use model::Model;

/// What may be rented, what must be carried, and how pools may run.
#[derive(Clone, Debug, PartialEq)]
pub struct Programme {
    /// How many regions there are; they are numbered from zero.
    pub regions: usize,
    /// The ways to pay: on-demand, reserved, spot.
    pub modes: Vec<Mode>,
    /// Accelerators in regions.
    pub places: Vec<Place>,
    /// What each pool must carry.
    pub pools: Vec<Need>,
    /// How pools may run replicas.
    pub ways: Vec<Way>,
}

/// A way to pay for nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// What people call it.
    pub name: String,
    /// The largest share of any pool's capacity, reserve included, that may be on it, over all places. Spot has one.
    pub share_most: Option<f64>,
}

/// An accelerator in a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where it is.
    pub region: usize,
    /// Which accelerator; a number of the caller's.
    pub accelerator: usize,
    /// Devices of a node. Whole nodes are rented.
    pub devices_per_node: u64,
    /// The quota, or what is available, in devices. It is held against whole nodes.
    pub devices_most: Option<u64>,
    /// What is on offer, at most one of each mode.
    pub offers: Vec<Offer>,
}

/// Nodes of a place, paid for in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// How they are paid for: a position in [`Programme::modes`].
    pub mode: usize,
    /// The price of a whole node.
    pub node_hour: UsdPerHour,
    /// How many there are, where that is known.
    pub nodes_most: Option<u64>,
    /// Commitments: these are paid for whether used or not.
    pub nodes_least: u64,
}

/// How one pool may run a replica at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// A position in [`Programme::pools`].
    pub pool: usize,
    /// A position in [`Programme::places`].
    pub place: usize,
    /// Devices of a replica: within a node, or whole nodes.
    pub devices: u64,
    /// The load that one replica carries safely, in the pool's own unit.
    pub capacity: f64,
}

/// What a pool must carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Demand by home region, in the unit of [`Way::capacity`].
    pub demand: Vec<f64>,
    /// From home region to serving region: whether latency and residency allow it.
    pub reaches: Vec<Vec<bool>>,
    /// Replicas on top of those that carry the load, wherever the pool may run.
    pub reserve: u64,
    /// What must still be carried when any one region is lost.
    pub lost: Option<Loss>,
    /// The fewest replicas, reserve included.
    pub replicas_least: u64,
    /// The most replicas, reserve included.
    pub replicas_most: Option<u64>,
}

/// What must still be carried when any one region is lost. Demand that reaches no other region is excepted, and reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The share of demand to carry then.
    pub share: f64,
    /// Whether replicas in reserve help to carry it.
    pub with_reserve: bool,
}

/// When to stop: by counted work, never by time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Linear programmes to solve at most. Ten give the bound; more prove small programmes.
    pub lps: u32,
    /// Tries to improve the fleet at most.
    pub tries: u32,
    /// Good enough: stop at this gap between cost and bound.
    pub gap: f64,
}

/// Work that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Linear programmes that were solved.
    pub lps: u32,
    /// Cuts that strengthened them.
    pub cuts: u32,
    /// Parts of the programme that branching looked at; with HiGHS, the nodes that it was allowed.
    pub branches: u32,
    /// Tries to improve a fleet.
    pub tries: u32,
}

/// What came of a programme.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A fleet that carries it.
    Found(Answer),
    /// No fleet does, or none was found; [`Why::proven`] tells which.
    Infeasible(Why),
}

/// A fleet, and how far from the best it may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Replicas, where there are any, by way and then by mode.
    pub placed: Vec<Placed>,
    /// Nodes, where there are any, by place and then by mode.
    pub rented: Vec<Rented>,
    /// What the nodes cost, exactly.
    pub cost: UsdPerHour,
    /// No fleet costs less than this. Rounded down.
    pub bound: UsdPerHour,
    /// (cost - bound) / bound; zero where the bound is met.
    pub gap: f64,
    /// Ways that were left out because another of the same pool and place is as good in every respect.
    pub dominated: usize,
    /// Demand that nothing can carry when its region is lost.
    pub excepted: Vec<Excepted>,
    /// What it took.
    pub work: Work,
}

/// Replicas of one way on nodes of one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// A position in [`Programme::ways`].
    pub way: usize,
    /// A position in [`Programme::modes`].
    pub mode: usize,
    /// Replicas that carry load.
    pub load: u64,
    /// Replicas in reserve.
    pub reserve: u64,
}

/// Nodes of one place and mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rented {
    /// A position in [`Programme::places`].
    pub place: usize,
    /// A position in [`Programme::modes`].
    pub mode: usize,
    /// Whole nodes.
    pub nodes: u64,
    /// Devices of theirs that replicas use.
    pub devices_used: u64,
}

/// Demand that is bound to a region, and so is not carried when it is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excepted {
    /// Whose demand.
    pub pool: usize,
    /// Where it comes from.
    pub home: usize,
    /// The only region that it reaches.
    pub region: usize,
    /// How much it is.
    pub demand: f64,
}

/// Why a programme makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Mistake {
    /// A number points at nothing.
    #[error("{what} {index} points at {of} {value}, which is not there")]
    Missing {
        /// What points.
        what: &'static str,
        /// Which of them.
        index: usize,
        /// What it points at.
        of: &'static str,
        /// Where it points.
        value: usize,
    },
    /// A quantity is out of its range.
    #[error("{what} {index}: {field} must be {must}")]
    Range {
        /// What has the field.
        what: &'static str,
        /// Which of them.
        index: usize,
        /// The field.
        field: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// A replica would straddle nodes.
    #[error("way {way}: {devices} devices neither fit in a node of {node} nor fill whole ones")]
    Straddles {
        /// Which way.
        way: usize,
        /// Devices of a replica.
        devices: u64,
        /// Devices of a node.
        node: u64,
    },
    /// Commitments and limits contradict each other.
    #[error("place {place}: the commitments are above what may be rented")]
    Committed {
        /// Which place.
        place: usize,
    },
    /// The combinations of regions are too many.
    #[error("pool {pool}: the regions it reaches combine in more than {most} ways")]
    Tangled {
        /// Which pool.
        pool: usize,
        /// The most that are kept.
        most: usize,
    },
}

/// Rounds of cuts.
const ROUNDS: u32 = 6;

/// The cheapest fleet that can be found with this effort, how far from the best it may be, or why there is none.
pub fn solve(programme: &Programme, effort: Effort) -> Result<Outcome, Mistake> {
    let model = Model::new(programme)?;
    if !model.stranded.is_empty() {
        return Ok(Outcome::Infeasible(Why::stranded(model.stranded)));
    }
    let mut work = Work::default();
    let found = find(&model, ROUNDS, effort, &mut work);
    Ok(match found.best {
        Some(fleet) => Outcome::Found(answer(&model, &fleet, found.bound, work)),
        None => Outcome::Infeasible(why::explain(programme, found.empty, effort, work)),
    })
}

/// What a search came to.
struct Found {
    best: Option<Fleet>,
    /// In dollars an hour, valid for every fleet.
    bound: f64,
    /// Whether it is proven that there is no fleet.
    empty: bool,
}

/// Relax, cut, round, improve; and branch while linear programmes are left and the gap is open.
fn find(model: &Model, rounds: u32, effort: Effort, work: &mut Work) -> Found {
    let root = relax::root(model, rounds, effort.lps, work);
    if root.empty {
        return Found { best: None, bound: f64::INFINITY, empty: true };
    }
    let mut starts = fleet::construct(model, &root, work);
    let good = |fleet: &Fleet| good_enough(fleet.cost(), root.bound(model, fleet.cost()), effort);
    if !starts.first().is_some_and(good) {
        starts.extend(dive::dive(model, &root, effort, work));
    }
    let best = fleet::improve(model, &root, starts, effort, work);
    #[cfg(feature = "highs")]
    let best = match exact::branch(model, &root, best, effort, work) {
        Ok(found) => return found,
        Err(best) => best,
    };
    branch::branch(model, &root, best, effort, work)
}

/// Whether the fleet is as good as was asked for.
fn good_enough(cost: f64, bound: f64, effort: Effort) -> bool {
    cost - bound <= (effort.gap * bound).max(3e-6 * cost)
}

fn answer(model: &Model, fleet: &Fleet, bound: f64, work: Work) -> Answer {
    let mut placed: Vec<Placed> = model
        .slots
        .iter()
        .zip(fleet.load.iter().zip(&fleet.spare))
        .filter(|(_, (load, spare))| **load + **spare > 0)
        .map(|(slot, (load, spare))| Placed {
            way: slot.way,
            mode: model.rents[slot.rent].mode,
            load: *load,
            reserve: *spare,
        })
        .collect();
    placed.sort_by_key(|p| (p.way, p.mode));
    let mut rented: Vec<Rented> = model
        .rents
        .iter()
        .zip(fleet.nodes.iter().zip(&fleet.devices))
        .filter(|(_, (nodes, _))| **nodes > 0)
        .map(|(rent, (nodes, devices))| Rented {
            place: rent.place,
            mode: rent.mode,
            nodes: *nodes,
            devices_used: *devices,
        })
        .collect();
    rented.sort_by_key(|r| (r.place, r.mode));
    let picos = model.picos(&fleet.nodes);
    // The bound is a sum of thousands of floats: a billionth less is certainly below.
    let bound = (bound * (1.0 - 1e-9) * 1e12).clamp(0.0, picos as f64);
    // A gap of some millionths is rounding.
    let met = picos as f64 - bound <= 4e-6 * picos as f64;
    let gap = if met { 0.0 } else { (picos as f64 - bound) / bound };
    Answer {
        placed,
        rented,
        cost: UsdPerHour::picos(picos),
        bound: UsdPerHour::picos((bound as u64).min(picos)),
        gap,
        dominated: model.dominated,
        excepted: model.excepted.clone(),
        work,
    }
}
