//! Branch and bound on the relaxation, the most promising first: proves small programmes, and sharpens large ones a little.

use super::fleet::{self, Fleet};
use super::model::Model;
use super::relax::{self, Column, Failed, Root};
use super::{Effort, Found, Work, good_enough};

/// Closer to a whole number than this is whole.
const WHOLE: f64 = 1e-6;

/// A part of the programme that is still open.
struct Open {
    low: Vec<f64>,
    high: Vec<f64>,
    /// In dollars an hour.
    bound: f64,
    /// The first is the root, which is solved already.
    id: u32,
}

pub(super) fn branch(
    model: &Model,
    root: &Root,
    mut best: Option<Fleet>,
    effort: Effort,
    work: &mut Work,
) -> Found {
    let mut linear = root.linear.clone();
    linear.cost.clone_from(&root.cost);
    let bound = root.bound(model, best.as_ref().map_or(f64::MAX, Fleet::cost));
    let mut open = vec![Open { low: linear.low.clone(), high: linear.high.clone(), bound, id: 0 }];
    // What was left without being settled still counts.
    let mut floor = f64::INFINITY;
    let mut id = 0;
    // Branching proves small programmes and hardly helps large ones, so it has its own account, and large ones pay more.
    let price = 1 + u32::try_from(root.columns.len() / 50).unwrap_or(u32::MAX - 1);
    let mut spent = 0u32;
    loop {
        let cost = best.as_ref().map_or(f64::INFINITY, Fleet::cost);
        let least = open.iter().map(|o| o.bound).fold(floor, f64::min);
        if open.is_empty() || cost.is_finite() && good_enough(cost, least, effort) {
            break;
        }
        let next = open
            .iter()
            .enumerate()
            .min_by(|(_, a), (_, b)| a.bound.total_cmp(&b.bound).then(b.id.cmp(&a.id)))
            .map_or(0, |(i, _)| i);
        if open[next].id != 0 && spent >= effort.lps {
            break;
        }
        spent = spent.saturating_add(price);
        let part = open.swap_remove(next);
        if part.bound >= cost - 1e-9 * cost.abs() {
            continue;
        }
        work.branches += 1;
        linear.low.clone_from(&part.low);
        linear.high.clone_from(&part.high);
        let high = relax::highs(model, &root.columns, &part.high, cost);
        let solved = match (&root.optimum, part.id) {
            (Some(o), 0) => Ok(relax::Optimum { x: o.x.clone(), y: o.y.clone() }),
            (None, 0) => Err(Failed::Stuck),
            _ => linear.solve(work),
        };
        let optimum = match solved {
            Ok(optimum) => optimum,
            Err(_) if part.id != 0 && linear.empty(&high, work) => continue,
            Err(_) => {
                floor = floor.min(part.bound);
                continue;
            }
        };
        let mut y = optimum.y;
        y.resize(linear.rows.len(), 0.0);
        let bound = part.bound.max(linear.bound(&root.cost, &y, &high));
        for (up, nodes) in [(WHOLE, 0.9), (0.5, 0.5)] {
            let fleet = Fleet::from_columns(model, root, &optimum.x, up);
            best = fleet::better(best, fleet::settle(model, root, fleet, nodes));
        }
        let cost = best.as_ref().map_or(f64::INFINITY, Fleet::cost);
        if bound >= cost - 1e-9 * cost.abs() {
            continue;
        }
        let Some(ranges) = split(model, root, &optimum.x, &part) else {
            // Every replica is settled. What it costs is known where nodes fill without gaps, and is otherwise not proven.
            let fleet = Fleet::from_columns(model, root, &optimum.x, 0.5);
            if !model.places.iter().all(|site| site.even) {
                floor = floor.min(bound);
            }
            if fleet.holds(model) {
                best = fleet::better(best, Some(fleet));
            }
            continue;
        };
        let (column, ranges) = ranges;
        for (low, high) in ranges {
            if low > high {
                continue;
            }
            id += 1;
            let mut part = Open { low: part.low.clone(), high: part.high.clone(), bound, id };
            part.low[column] = low;
            part.high[column] = high;
            open.push(part);
        }
    }
    let least = open.iter().map(|o| o.bound).fold(floor, f64::min);
    let cost = best.as_ref().map_or(f64::INFINITY, Fleet::cost);
    let empty = best.is_none() && open.is_empty() && floor.is_infinite();
    Found { best, bound: least.min(cost), empty }
}

/// The column to branch on, and the ranges it falls into; none where every replica is settled.
fn split(model: &Model, root: &Root, x: &[f64], part: &Open) -> Option<(usize, Vec<(f64, f64)>)> {
    let off = |v: f64| (v - v.round()).abs();
    let price = |column: &Column| match column {
        Column::Nodes(rent) => model.rents[*rent].price,
        Column::Load(s) | Column::Spare(s) => {
            let slot = &model.slots[*s];
            let rent = &model.rents[slot.rent];
            rent.price * slot.devices as f64 / rent.per_node as f64
        }
    };
    let weight = |j: usize| off(x[j]) * (price(&root.columns[j]) + 1e-6);
    let fractional = (0..x.len())
        .filter(|&j| off(x[j]) > WHOLE)
        .max_by(|&a, &b| weight(a).total_cmp(&weight(b)).then(b.cmp(&a)));
    if let Some(j) = fractional {
        let down = x[j].floor();
        return Some((j, vec![(part.low[j], down), (down + 1.0, part.high[j])]));
    }
    // Whole, yet not what it seemed to cost: nodes with gaps. Every other number of some replicas remains.
    let unsettled = (0..x.len())
        .find(|&j| !matches!(root.columns[j], Column::Nodes(_)) && part.low[j] < part.high[j])?;
    let v = x[unsettled].round();
    let ranges = vec![(v, v), (part.low[unsettled], v - 1.0), (v + 1.0, part.high[unsettled])];
    Some((unsettled, ranges))
}
