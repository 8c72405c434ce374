//! How long the requests of a log would take on a pool.

use plimsoll_perf::{Batch, Rates, step};

use super::gather::Pace;
use crate::fit::Fit;
use crate::measured::Load;
use crate::pool::PoolSteps;
use crate::steady::{SteadyInput, steady};

/// What decides how long requests take.
#[derive(Clone, Debug)]
pub struct PaceInput<'a> {
    /// The pool's work.
    pub steps: &'a PoolSteps,
    /// Its constants, built in or calibrated.
    pub rates: Rates,
    /// Its memory budget.
    pub budget: &'a Fit,
    /// Whether the engine keeps room for the whole output of a request it starts.
    pub reserves_output: bool,
    /// Replicas that share the log's requests.
    pub replicas: f64,
    /// The log's mean rate.
    pub requests_per_s: f64,
    /// Its mean prompt, cached tokens included.
    pub prompt: f64,
    /// Its mean cached tokens.
    pub cached: f64,
    /// Its mean output.
    pub output: f64,
}

/// Prompts at which the time of a prefill is worked out: a parabola goes through all three.
const PROMPTS: [f64; 3] = [256.0, 4096.0, 32768.0];

/// A pool's pace at the mean load of a log: the gap between tokens of its steady state, and prefills that are alone.
///
/// Means stand in for what is simulated elsewhere, so it says how many tokens are resident, never how long a tail waits.
pub fn pool_pace(input: &PaceInput<'_>) -> Pace {
    let PaceInput { steps, rates, budget, .. } = input;
    let time = |batch: &Batch| step(&steps.work, rates, batch).total();
    let state = steady(
        &SteadyInput {
            load: Load::Rate(input.requests_per_s / input.replicas.max(1.0)),
            prompt: input.prompt,
            cached: input.cached,
            output: input.output.max(1.0),
            max_num_seqs: budget.max_num_seqs as f64,
            budget: budget.max_num_batched_tokens as f64,
            kv_tokens: budget.kv_tokens as f64,
            reserves_output: input.reserves_output,
            path: 0.0,
            wave: 0.0,
        },
        &time,
    );
    let most = budget.max_num_batched_tokens as f64;
    let alone = |fresh: f64| {
        let parts = (fresh / most).ceil().max(1.0);
        let part = Batch {
            prefill: fresh / parts,
            pairs: fresh * fresh / 2.0 / parts,
            prompts: 1.0,
            ..Batch::default()
        };
        parts * time(&part)
    };
    let prefill_s = parabola(PROMPTS.map(|fresh| (fresh, alone(fresh))));
    let full = if state.saturated { ", which is more than they carry" } else { "" };
    let label = format!(
        "step times of pool `{}`: {} replicas at {:.2} requests/s in all{full}, {:.1} ms a token, {:.0} ms for a prompt of 4,096",
        budget.name,
        input.replicas,
        input.requests_per_s,
        state.tpot * 1e3,
        alone(PROMPTS[1]) * 1e3
    );
    Pace { label, prefill_s, output_token_s: state.tpot }
}

/// The coefficients of the parabola through three points, none below zero.
fn parabola(points: [(f64, f64); 3]) -> [f64; 3] {
    let [(x0, y0), (x1, y1), (x2, y2)] = points;
    let (s01, s12) = ((y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1));
    let square = ((s12 - s01) / (x2 - x0)).max(0.0);
    let linear = (s01 - square * (x0 + x1)).max(0.0);
    let constant = (y0 - linear * x0 - square * x0 * x0).max(0.0);
    [constant, linear, square]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parabola_goes_through_its_points() {
        let at = |x: f64| 0.004 + 2e-5 * x + 3e-10 * x * x;
        let [a, b, c] = parabola(PROMPTS.map(|x| (x, at(x))));
        assert!((a - 0.004).abs() < 1e-9 && (b - 2e-5).abs() < 1e-12 && (c - 3e-10).abs() < 1e-15);
        let flat = parabola(PROMPTS.map(|x| (x, 0.5)));
        assert_eq!(flat, [0.5, 0.0, 0.0]);
    }
}
