//! The linear relaxation, cuts that hold for whole replicas, and a bound that does not trust the solver.
//!
//! The solver is an interior-point method in floats. Its primal answer is only a hint. Its multipliers give the bound: for any `y >= 0`, no fleet costs less than
//! `y b + sum over columns of the least of (c - y A) x` within the column's range. That is computed here, so a sloppy answer costs sharpness and never truth.

use good_lp::solvers::clarabel::clarabel;
use good_lp::{
    DualValues, Expression, ProblemVariables, ResolutionError, Solution, SolutionWithDual,
    SolverModel, variable,
};

use super::model::{Kind, Model, Row};
use super::{Work, model};

/// Cuts of one round for one pool.
const CUTS_A_POOL: usize = 12;

/// A column: replicas that carry, replicas in reserve, nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Load(usize),
    Spare(usize),
    Nodes(usize),
}

/// Minimise `cost x` with `rows` and `low <= x <= high`. Where `high` is infinite, the rows hold it.
#[derive(Clone)]
pub(super) struct Linear {
    pub(super) cost: Vec<f64>,
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    pub(super) rows: Vec<(Vec<(usize, f64)>, f64)>,
}

pub(super) struct Optimum {
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
}

pub(super) enum Failed {
    Infeasible,
    Stuck,
}

impl Linear {
    pub(super) fn solve(&self, work: &mut Work) -> Result<Optimum, Failed> {
        work.lps += 1;
        // What cannot move is no variable: an interior point needs an interior.
        let fixed = |j: usize| self.high[j] - self.low[j] < 1e-9;
        let mut variables = ProblemVariables::new();
        let columns: Vec<_> = (0..self.cost.len())
            .map(|j| {
                let column = variable().min(self.low[j]);
                (!fixed(j)).then(|| {
                    variables.add(if self.high[j].is_finite() {
                        column.max(self.high[j])
                    } else {
                        column
                    })
                })
            })
            .collect();
        let mut objective = Expression::with_capacity(columns.len());
        for (column, cost) in columns.iter().zip(&self.cost) {
            if let Some(column) = column {
                objective.add_mul(*cost, column);
            }
        }
        let mut problem = variables.minimise(objective).using(clarabel);
        problem.settings().max_threads(1).tol_gap_rel(1e-8).tol_gap_abs(1e-8).max_iter(100);
        let mut references = Vec::with_capacity(self.rows.len());
        for (terms, least) in &self.rows {
            let mut row = Expression::with_capacity(terms.len());
            let mut least = *least;
            let mut moves = false;
            for (j, a) in terms {
                if let Some(column) = columns[*j] {
                    row.add_mul(*a, column);
                    moves = true;
                } else {
                    least -= a * self.low[*j];
                }
            }
            if !moves && least > 1e-9 * (1.0 + least.abs()) {
                return Err(Failed::Infeasible);
            }
            references.push(moves.then(|| problem.add_constraint(row.geq(least))));
        }
        if columns.iter().all(Option::is_none) {
            return Ok(Optimum { x: self.low.clone(), y: vec![0.0; self.rows.len()] });
        }
        let mut solution = problem.solve().map_err(|e| match e {
            ResolutionError::Infeasible => Failed::Infeasible,
            _ => Failed::Stuck,
        })?;
        let x: Vec<f64> = columns
            .iter()
            .enumerate()
            .map(|(j, c)| {
                c.map_or(self.low[j], |c| solution.value(c)).clamp(self.low[j], self.high[j])
            })
            .collect();
        let dual = solution.compute_dual();
        let y: Vec<f64> =
            references.into_iter().map(|r| r.map_or(0.0, |r| dual.dual(r).max(0.0))).collect();
        if x.iter().chain(&y).all(|v| v.is_finite()) {
            Ok(Optimum { x, y })
        } else {
            Err(Failed::Stuck)
        }
    }

    /// What these multipliers prove: no `x` within `low` and `high` that meets the rows costs less.
    pub(super) fn bound(&self, cost: &[f64], y: &[f64], high: &[f64]) -> f64 {
        let mut reduced = cost.to_vec();
        let mut bound = 0.0;
        for ((terms, least), y) in self.rows.iter().zip(y) {
            bound += y * least;
            for (j, a) in terms {
                reduced[*j] -= y * a;
            }
        }
        for (j, r) in reduced.iter().enumerate() {
            bound += r * if *r >= 0.0 { self.low[j] } else { high[j] };
        }
        bound
    }

    /// Whether no `x` meets the rows, proven: even with all the slack it wants, some of it is needed.
    pub(super) fn empty(&self, high: &[f64], work: &mut Work) -> bool {
        let mut elastic = self.clone();
        elastic.cost = vec![0.0; self.cost.len()];
        let mut far = high.to_vec();
        let mut most = Vec::with_capacity(self.rows.len());
        for (terms, least) in &mut elastic.rows {
            // A unit of slack is the row as a whole.
            let size = terms.iter().fold(least.abs(), |m, t| m.max(t.1.abs())).max(1e-12);
            terms.push((elastic.cost.len(), size));
            elastic.cost.push(1.0);
            elastic.low.push(0.0);
            elastic.high.push(f64::INFINITY);
            far.push(0.0);
            most.push(1.0 / size);
        }
        let Ok(mut optimum) = elastic.solve(work) else { return false };
        // Slack has no end, so no multiplier may be worth more than it costs; then it adds nothing below zero.
        for (y, most) in optimum.y.iter_mut().zip(most) {
            *y = if *y < 1e-8 * most { 0.0 } else { y.min(most) };
        }
        elastic.bound(&elastic.cost, &optimum.y, &far) > 1e-7
    }
}

/// The relaxation of a model at its root, with cuts.
pub(super) struct Root {
    pub(super) columns: Vec<Column>,
    pub(super) linear: Linear,
    /// The true costs; the linear programme's own are nudged, so that ties do not end in mixtures.
    pub(super) cost: Vec<f64>,
    pub(super) optimum: Option<Optimum>,
    /// Pool rows come first, and cuts come last: what a row of `linear` is.
    pub(super) cuts: Vec<Row>,
    /// Multipliers of the model's own rows, and of its rents' devices.
    pub(super) prices: Vec<f64>,
    /// Proven to have no answer.
    pub(super) empty: bool,
    /// Multipliers that gave the best bound so far.
    multipliers: Option<Vec<f64>>,
}

impl Root {
    /// The proven bound, in dollars an hour, for fleets that cost at most `cost`.
    pub(super) fn bound(&self, model: &Model, cost: f64) -> f64 {
        let committed: f64 = model.rents.iter().map(|r| r.price * r.least as f64).sum();
        let Some(y) = &self.multipliers else { return committed };
        let high = highs(model, &self.columns, &self.linear.high, cost);
        let mut y = y.clone();
        y.resize(self.linear.rows.len(), 0.0);
        self.linear.bound(&self.cost, &y, &high).clamp(committed.min(cost), cost)
    }
}

/// The most that a column can be in a fleet that costs at most `cost`.
pub(super) fn highs(model: &Model, columns: &[Column], given: &[f64], cost: f64) -> Vec<f64> {
    let nodes = |rent: usize| {
        let rent = &model.rents[rent];
        let afford = if rent.price > 0.0 { (cost / rent.price + 1e-6).floor() } else { f64::MAX };
        (rent.most as f64).min(afford).max(rent.least as f64)
    };
    columns
        .iter()
        .zip(given)
        .map(|(column, given)| match column {
            Column::Nodes(rent) => nodes(*rent).min(*given),
            Column::Load(slot) | Column::Spare(slot) => {
                let s = &model.slots[*slot];
                let per_node = model.rents[s.rent].per_node;
                let fit = (nodes(s.rent) * per_node as f64 / s.devices as f64).floor();
                fit.min(model.most[s.pool] as f64).min(*given)
            }
        })
        .collect()
}

/// Builds the relaxation, solves it, and cuts it while that helps, for so many rounds.
pub(super) fn root(model: &Model, rounds: u32, lps: u32, work: &mut Work) -> Root {
    let mut root = build(model);
    let mut best = f64::NEG_INFINITY;
    for round in 0..=rounds {
        if work.lps >= lps.max(1) {
            break;
        }
        match root.linear.solve(work) {
            Ok(mut optimum) => {
                lift(model, &root, &mut optimum.y);
                let high = highs(model, &root.columns, &root.linear.high, ceiling(&root, &optimum));
                let bound = root.linear.bound(&root.cost, &optimum.y, &high);
                let gain = bound - best;
                if gain > 0.0 {
                    best = bound;
                    root.multipliers = Some(optimum.y.clone());
                }
                root.prices = optimum.y[..model.rows.len()].to_vec();
                let cuts = separate(model, &root, &optimum.x);
                root.optimum = Some(optimum);
                if round == rounds || cuts.is_empty() || gain < 1e-4 * bound.abs() {
                    break;
                }
                for cut in cuts {
                    root.add(cut);
                    work.cuts += 1;
                }
            }
            Err(Failed::Infeasible) => {
                let high = highs(model, &root.columns, &root.linear.high, f64::INFINITY);
                root.empty = root.linear.empty(&high, work);
                break;
            }
            Err(Failed::Stuck) => break,
        }
    }
    root
}

/// A cost that whole fleets near this optimum stay under, to compare bounds by. Only that: what is reported uses a fleet's own cost.
fn ceiling(root: &Root, optimum: &Optimum) -> f64 {
    2.0 * root.cost.iter().zip(&optimum.x).map(|(c, x)| c * x).sum::<f64>() + 1.0
}

pub(super) fn build(model: &Model) -> Root {
    let mut columns = Vec::new();
    let mut load = Vec::with_capacity(model.slots.len());
    let mut spare = Vec::with_capacity(model.slots.len());
    for s in 0..model.slots.len() {
        load.push(columns.len());
        columns.push(Column::Load(s));
    }
    for (s, slot) in model.slots.iter().enumerate() {
        spare.push((model.reserve[slot.pool] > 0).then_some(columns.len()));
        if model.reserve[slot.pool] > 0 {
            columns.push(Column::Spare(s));
        }
    }
    let nodes = columns.len();
    columns.extend((0..model.rents.len()).map(Column::Nodes));

    let mut cost = vec![0.0; columns.len()];
    let mut nudged = vec![0.0; columns.len()];
    let mut low = vec![0.0; columns.len()];
    let mut high = vec![f64::INFINITY; columns.len()];
    for (r, rent) in model.rents.iter().enumerate() {
        cost[nodes + r] = rent.price;
        nudged[nodes + r] = rent.price;
        low[nodes + r] = rent.least as f64;
        if rent.most < 1_000_000 {
            high[nodes + r] = rent.most as f64;
        }
    }
    for (j, column) in columns.iter().enumerate() {
        if let Column::Load(s) | Column::Spare(s) = column {
            let slot = &model.slots[*s];
            let rent = &model.rents[slot.rent];
            let device = rent.price / rent.per_node as f64;
            // A fixed scatter: which of equals comes first does not matter, only that one does.
            let scatter = (j as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            nudged[j] = 2e-6 * device * slot.devices as f64 * (scatter as f64 / 16_777_216.0);
        }
    }
    let mut rows: Vec<(Vec<(usize, f64)>, f64)> = model
        .rows
        .iter()
        .map(|row| {
            let mut terms = Vec::with_capacity(row.terms.len());
            for &(s, l, p) in &row.terms {
                if l != 0.0 {
                    terms.push((load[s], l));
                }
                if let (Some(j), true) = (spare[s], p != 0.0) {
                    terms.push((j, p));
                }
            }
            (terms, row.least)
        })
        .collect();
    for (r, rent) in model.rents.iter().enumerate() {
        let mut terms = vec![(nodes + r, rent.per_node as f64)];
        for &s in &model.of_rent[r] {
            let devices = model.slots[s].devices as f64;
            terms.push((load[s], -devices));
            if let Some(j) = spare[s] {
                terms.push((j, -devices));
            }
        }
        rows.push((terms, 0.0));
    }
    for site in &model.places {
        // One mode alone is held by its own limit.
        if let (Some(most), true) = (site.nodes_most, site.rents.len() > 1) {
            rows.push((site.rents.iter().map(|r| (nodes + r, -1.0)).collect(), -(most as f64)));
        }
    }
    Root {
        columns,
        linear: Linear { cost: nudged, low, high, rows },
        cost,
        optimum: None,
        cuts: Vec::new(),
        prices: vec![0.0; model.rows.len()],
        empty: false,
        multipliers: None,
    }
}

impl Root {
    fn add(&mut self, cut: Row) {
        let mut terms = Vec::with_capacity(cut.terms.len());
        for &(s, l, p) in &cut.terms {
            if l != 0.0 {
                terms.push((s, l));
            }
            if p != 0.0 {
                let spare = self.columns.iter().position(|c| *c == Column::Spare(s));
                terms.extend(spare.map(|j| (j, p)));
            }
        }
        self.linear.rows.push((terms, cut.least));
        self.cuts.push(cut);
    }
}

/// Raises the price of devices to what the best replica there is worth, so that no replica's reduced cost is below zero by rounding.
fn lift(model: &Model, root: &Root, y: &mut [f64]) {
    let mut worth = vec![0.0; root.columns.len()];
    let first = model.rows.len();
    let devices = first..first + model.rents.len();
    for (i, (terms, _)) in root.linear.rows.iter().enumerate() {
        if !devices.contains(&i) {
            for (j, a) in terms {
                worth[*j] += y[i] * a;
            }
        }
    }
    for (column, worth) in root.columns.iter().zip(worth) {
        if let Column::Load(s) | Column::Spare(s) = column {
            let slot = &model.slots[*s];
            let at = &mut y[first + slot.rent];
            *at = at.max(worth / slot.devices as f64);
        }
    }
}

/// Mixed-integer rounding of covering rows: `sum a x >= b` divided by some `d` gives `sum (floor(a/d) + min(1, frac(a/d) / frac(b/d))) x >= ceil(b/d)` for whole `x`.
fn separate(model: &Model, root: &Root, x: &[f64]) -> Vec<Row> {
    let mut spare_of = vec![None; model.slots.len()];
    for (j, column) in root.columns.iter().enumerate() {
        if let Column::Spare(s) = column {
            spare_of[*s] = Some(j);
        }
    }
    let value = |row: &Row| -> f64 {
        let spare = |s: usize| spare_of[s].map_or(0.0, |j: usize| x[j]);
        row.terms.iter().map(|&(s, l, p)| l * x[s] + p * spare(s)).sum()
    };
    let mut cuts = Vec::new();
    for pool in 0..model.of_pool.len() {
        let mut found: Vec<(f64, Row)> = Vec::new();
        for row in model.rows.iter().filter(|r| r.pool == pool) {
            if !matches!(row.kind, Kind::Cover | Kind::Lost(_)) || row.least <= 0.0 {
                continue;
            }
            let mut divisors: Vec<f64> = row.terms.iter().map(|t| t.1).collect();
            divisors.sort_by(f64::total_cmp);
            divisors.dedup();
            for d in divisors {
                let Some(cut) = rounded(row, d) else { continue };
                let short = 1.0 - value(&cut) / cut.least;
                if short > 1e-4 {
                    found.push((short, cut));
                }
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(CUTS_A_POOL);
        cuts.extend(found.into_iter().map(|f| f.1));
    }
    cuts
}

fn rounded(row: &Row, d: f64) -> Option<Row> {
    let b = row.least / d;
    let f = b - b.floor();
    if !(1e-6..=1e7).contains(&b) || f < 1e-6 {
        return None;
    }
    // Coefficients that are a hair too large only weaken the cut.
    let coefficient = |a: f64| {
        let a = a / d + model::SLACK;
        a.floor() + ((a - a.floor()) / f).min(1.0)
    };
    let terms = row
        .terms
        .iter()
        .map(|&(s, l, p)| (s, coefficient(l), if p > 0.0 { coefficient(p) } else { 0.0 }))
        .collect();
    Some(Row { pool: row.pool, kind: Kind::Cut, terms, least: b.ceil() })
}
