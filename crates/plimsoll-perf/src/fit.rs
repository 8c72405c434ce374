//! Bounded least squares with a prior.

use nalgebra::{DMatrix, DVector};

/// A parameter to be fitted, on a logarithmic scale: all are positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// What is believed before any data.
    pub prior: f64,
    /// Where the search begins.
    pub start: f64,
    /// How far from it a value is still unsurprising: the standard deviation of its logarithm.
    pub prior_sd: f64,
    /// It never falls below this.
    pub least: f64,
    /// It never rises above this.
    pub most: f64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The values.
    pub values: Vec<f64>,
    /// Standard deviations of their logarithms, given data and prior.
    pub sd: Vec<f64>,
    /// How much of each value the data decided, from 0 (all prior) to 1.
    pub informed: Vec<f64>,
    /// The fit's objective, half the sum of squares.
    pub cost: f64,
    /// Rounds taken.
    pub rounds: usize,
}

/// Minimises the sum of squared residuals plus the squared distances from the prior, within bounds.
///
/// Gauss-Newton with Levenberg's damping on the logarithms of the parameters; the Jacobian is by differences. Residuals should be in units of
/// their own standard deviation. Large ones count less (Huber's weights beyond `robust`), so that one broken measurement does not bend
/// everything else.
///
/// `uses` says for each residual which parameters it depends on, so that the Jacobian of a large table of constants stays cheap.
pub fn bounded_least_squares(
    parameters: &[Parameter],
    robust: f64,
    rounds_max: usize,
    uses: &[Vec<usize>],
    residual: &dyn Fn(usize, &[f64]) -> f64,
) -> Fitted {
    let n = parameters.len();
    let residuals =
        |values: &[f64]| -> Vec<f64> { (0..uses.len()).map(|row| residual(row, values)).collect() };
    let clamp = |i: usize, x: f64| x.clamp(parameters[i].least.ln(), parameters[i].most.ln());
    let prior: Vec<f64> = parameters.iter().map(|p| p.prior.ln()).collect();
    let mut at: Vec<f64> = (0..n).map(|i| clamp(i, parameters[i].start.ln())).collect();
    let values = |logs: &[f64]| -> Vec<f64> { logs.iter().map(|x| x.exp()).collect() };
    let huber =
        |r: f64| if r.abs() <= robust { 0.5 * r * r } else { robust * (r.abs() - 0.5 * robust) };
    let cost_of = |rs: &[f64], logs: &[f64]| {
        let data: f64 = rs.iter().map(|r| huber(*r)).sum();
        let belief: f64 =
            (0..n).map(|i| ((logs[i] - prior[i]) / parameters[i].prior_sd).powi(2)).sum();
        data + 0.5 * belief
    };
    let mut now = residuals(&values(&at));
    let mut cost = cost_of(&now, &at);
    let mut damping = 1e-3;
    let mut rounds = 0;
    let mut curvature = DMatrix::<f64>::zeros(n, n);
    while rounds < rounds_max {
        rounds += 1;
        let jacobian = differences(&at, &now, uses, &clamp, residual);
        let weights: Vec<f64> =
            now.iter().map(|r| if r.abs() <= robust { 1.0 } else { robust / r.abs() }).collect();
        let mut normal = DMatrix::<f64>::zeros(n, n);
        let mut gradient = DVector::<f64>::zeros(n);
        for ((line, used), (value, weight)) in
            jacobian.iter().zip(uses).zip(now.iter().zip(&weights))
        {
            for (a, &i) in line.iter().zip(used) {
                gradient[i] += weight * a * value;
                for (b, &j) in line.iter().zip(used) {
                    normal[(i, j)] += weight * a * b;
                }
            }
        }
        curvature.copy_from(&normal);
        for i in 0..n {
            let precision = parameters[i].prior_sd.powi(-2);
            normal[(i, i)] += precision;
            gradient[i] += precision * (at[i] - prior[i]);
        }
        let mut moved = false;
        for _ in 0..12 {
            let mut damped = normal.clone();
            for i in 0..n {
                damped[(i, i)] *= 1.0 + damping;
            }
            let Some(factors) = damped.cholesky() else {
                damping *= 10.0;
                continue;
            };
            let change = factors.solve(&gradient);
            // No step larger than a factor of two and a half at once: the model is not linear that far.
            let next: Vec<f64> =
                (0..n).map(|i| clamp(i, at[i] - change[i].clamp(-0.9, 0.9))).collect();
            let trial = residuals(&values(&next));
            let trial_cost = cost_of(&trial, &next);
            if trial_cost < cost {
                let gain = cost - trial_cost;
                (at, now, cost) = (next, trial, trial_cost);
                damping = (damping * 0.3).max(1e-9);
                moved = gain > 1e-4 * cost.max(1e-12);
                break;
            }
            damping *= 4.0;
        }
        if !moved {
            break;
        }
    }
    // What the data say of each, against what was believed.
    let mut whole = curvature.clone();
    for i in 0..n {
        whole[(i, i)] += parameters[i].prior_sd.powi(-2);
    }
    let inverse = whole.cholesky().map(|c| c.inverse());
    let sd = (0..n)
        .map(|i| inverse.as_ref().map_or(parameters[i].prior_sd, |m| m[(i, i)].max(0.0).sqrt()));
    let sd: Vec<f64> = sd.collect();
    let informed = (0..n).map(|i| (1.0 - (sd[i] / parameters[i].prior_sd).powi(2)).clamp(0.0, 1.0));
    Fitted { informed: informed.collect(), values: values(&at), sd, cost, rounds }
}

/// The Jacobian by one-sided differences, away from a bound: for each residual, one slope for each parameter it uses.
fn differences(
    at: &[f64],
    now: &[f64],
    uses: &[Vec<usize>],
    clamp: &dyn Fn(usize, f64) -> f64,
    residual: &dyn Fn(usize, &[f64]) -> f64,
) -> Vec<Vec<f64>> {
    const STEP: f64 = 1e-4;
    let mut moved: Vec<f64> = at.iter().map(|x| x.exp()).collect();
    let steps: Vec<f64> = (0..at.len())
        .map(|i| {
            let forward = clamp(i, at[i] + STEP) - at[i];
            if forward > 0.0 { forward } else { clamp(i, at[i] - STEP) - at[i] }
        })
        .collect();
    let mut jacobian = Vec::with_capacity(uses.len());
    for (row, used) in uses.iter().enumerate() {
        let line = used.iter().map(|&i| {
            let kept = moved[i];
            moved[i] = (at[i] + steps[i]).exp();
            let slope =
                if steps[i] == 0.0 { 0.0 } else { (residual(row, &moved) - now[row]) / steps[i] };
            moved[i] = kept;
            slope
        });
        jacobian.push(line.collect());
    }
    jacobian
}
