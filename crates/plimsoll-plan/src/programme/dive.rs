//! Dives: the relaxation without its unlikely columns, with numbers of nodes and then of replicas settled a few at a time.

use super::fleet::{self, Fleet};
use super::model::Model;
use super::relax::{Column, Linear, Root};
use super::{Effort, Work};

/// Columns that a dive keeps, beyond those in use: those that are nearly worth it.
const KEPT: usize = 120;

/// Linear programmes of one dive.
const DEPTH: u32 = 24;

/// The best fleet of each dive.
pub(super) fn dive(model: &Model, root: &Root, effort: Effort, work: &mut Work) -> Vec<Fleet> {
    let mut fleets = Vec::new();
    let Some(optimum) = &root.optimum else { return fleets };
    let likely = likely(root, &optimum.x, &optimum.y);
    // What counts as nearly whole: bolder dives are shorter.
    for bold in [0.5, 0.25, 0.75] {
        let mut best: Option<Fleet> = None;
        let mut linear = likely.clone();
        let mut x = optimum.x.clone();
        for _ in 0..DEPTH {
            for nodes in [0.9, 0.4] {
                let fleet = Fleet::from_columns(model, root, &x, 1e-6);
                best = fleet::better(best, fleet::settle(model, root, fleet, nodes));
            }
            if work.lps >= effort.lps || !settle_some(root, &mut linear, &x, bold) {
                break;
            }
            match linear.solve(work) {
                Ok(next) => x = next.x,
                Err(_) => break,
            }
        }
        fleets.extend(best);
    }
    fleets
}

/// The relaxation with unlikely columns held at their least.
fn likely(root: &Root, x: &[f64], y: &[f64]) -> Linear {
    let mut linear = root.linear.clone();
    let mut reduced = linear.cost.clone();
    for ((terms, _), y) in linear.rows.iter().zip(y) {
        for (j, a) in terms {
            reduced[*j] -= y * a;
        }
    }
    let replicas = |j: &usize| !matches!(root.columns[*j], Column::Nodes(_));
    let mut idle: Vec<usize> = (0..x.len()).filter(replicas).filter(|&j| x[j] < 1e-4).collect();
    idle.sort_by(|&a, &b| reduced[a].total_cmp(&reduced[b]).then(a.cmp(&b)));
    for j in idle.into_iter().skip(KEPT) {
        linear.high[j] = linear.low[j];
    }
    linear
}

/// Settles nodes that are nearly whole, or else replicas; `false` where all are.
fn settle_some(root: &Root, linear: &mut Linear, x: &[f64], bold: f64) -> bool {
    let part = |j: usize| x[j] - x[j].floor();
    let open = |j: &usize| linear.high[*j] - linear.low[*j] > 1e-9;
    let whole = |j: usize| part(j) < 1e-5 || part(j) > 1.0 - 1e-5;
    for nodes in [true, false] {
        let mut parts: Vec<usize> = (0..x.len())
            .filter(|&j| matches!(root.columns[j], Column::Nodes(_)) == nodes)
            .filter(|&j| !whole(j))
            .filter(open)
            .collect();
        if parts.is_empty() {
            continue;
        }
        // Up where most of one is used; the fullest first.
        parts.sort_by(|&a, &b| part(b).total_cmp(&part(a)).then(a.cmp(&b)));
        let some = (parts.len() as f64 * bold / 3.0).ceil() as usize;
        for &j in parts.iter().take(some.max(1)) {
            linear.low[j] = x[j].ceil().min(linear.high[j]);
        }
        if let Some(&j) = parts.last().filter(|&&j| part(j) < 0.3 && parts.len() > 1) {
            linear.high[j] = x[j].floor().max(linear.low[j]);
        }
        return true;
    }
    false
}
