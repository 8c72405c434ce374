//! The same programme given to HiGHS, which starts from our fleet and our cuts, and stops by nodes.

use good_lp::solvers::highs::highs;
use good_lp::{Expression, ProblemVariables, SolverModel, variable};

use super::fleet::{self, Fleet};
use super::model::Model;
use super::relax::{self, Root};
use super::{Effort, Found, Work, good_enough};

/// HiGHS calls a value whole, and a row met, at this distance; its bound is told with as much to spare.
const TOLERANCE: f64 = 1e-6;

/// The fleet that HiGHS ends with, or the one it was given where there was nothing to do or HiGHS failed.
pub(super) fn branch(
    model: &Model,
    root: &Root,
    best: Option<Fleet>,
    effort: Effort,
    work: &mut Work,
) -> Result<Found, Option<Fleet>> {
    let cost = best.as_ref().map_or(f64::MAX, Fleet::cost);
    let bound = root.bound(model, cost);
    if best.is_some() && good_enough(cost, bound, effort) || work.lps >= effort.lps {
        return Err(best);
    }
    // What costs more than the fleet we have is of no interest.
    let most = relax::highs(model, &root.columns, &root.linear.high, cost);
    let mut variables = ProblemVariables::new();
    let columns: Vec<_> = (0..root.columns.len())
        .map(|j| variables.add(variable().integer().min(root.linear.low[j]).max(most[j])))
        .collect();
    let mut objective = Expression::with_capacity(columns.len());
    for (column, cost) in columns.iter().zip(&root.cost) {
        objective.add_mul(*cost, column);
    }
    let mut problem = variables.minimise(objective).using(highs);
    for (terms, least) in &root.linear.rows {
        let mut row = Expression::with_capacity(terms.len());
        for (j, a) in terms {
            row.add_mul(*a, columns[*j]);
        }
        problem.add_constraint(row.geq(*least));
    }
    let Ok(mut problem) = problem.try_into_inner() else { return Err(best) };
    problem.make_quiet();
    let nodes = i32::try_from(effort.lps - work.lps).unwrap_or(i32::MAX);
    let set = [
        problem.try_set_option("threads", 1),
        problem.try_set_option("parallel", "off"),
        problem.try_set_option("random_seed", 1),
        problem.try_set_option("mip_max_nodes", nodes),
        // Our start is good already; what is better is found by looking around it.
        problem.try_set_option("mip_heuristic_effort", 0.2),
        problem.try_set_option("mip_rel_gap", effort.gap.clamp(1e-6, 1e6)),
    ];
    if set.iter().any(Result::is_err) {
        return Err(best);
    }
    if let Some(fleet) = &best {
        let start: Vec<f64> = root.columns.iter().map(|c| fleet.column(*c)).collect();
        // Without a start it searches for one itself.
        let _ = problem.try_set_solution(Some(&start), None, None, None);
    }
    let Ok(solved) = problem.try_solve() else { return Err(best) };
    // Two says that there is a solution.
    if solved.int_info_value(c"primal_solution_status").ok() != Some(2) {
        return Err(best);
    }
    work.branches += u32::try_from(nodes).unwrap_or(0);
    let proven = solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NEG_INFINITY);
    let x = solved.get_solution();
    let fleet = Fleet::from_columns(model, root, x.columns(), 0.5);
    let fleet = if fleet.holds(model) {
        Some(fleet)
    } else {
        fleet::settle(model, root, Fleet::from_columns(model, root, x.columns(), TOLERANCE), 0.9)
    };
    let best = fleet::better(best, fleet);
    let cost = best.as_ref().map_or(f64::INFINITY, Fleet::cost);
    let bound = bound.max(proven * (1.0 - TOLERANCE) - TOLERANCE).min(cost);
    Ok(Found { best, bound, empty: false })
}
