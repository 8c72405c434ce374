//! The bounded fit, on data whose answer is known.

use plimsoll_perf::{Fitted, Parameter, bounded_least_squares};

fn parameter(prior: f64) -> Parameter {
    Parameter { prior, start: prior, prior_sd: 1.0, least: prior / 100.0, most: prior * 100.0 }
}

/// A step of `x` tokens that sees `z`: a base, a time for each token, a time for each seen.
fn time(values: &[f64], x: f64, z: f64) -> f64 {
    values[0] + values[1] * x + values[2] * z
}

/// Loads of a small benchmark: batches and contexts.
fn loads() -> Vec<(f64, f64)> {
    let batches = [1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0];
    batches.into_iter().flat_map(|x| [0.0, 100.0, 1000.0].map(|c| (x, x * c))).collect()
}

/// Fits the three parameters to measured times, each good to one percent.
fn fit(parameters: &[Parameter], measured: &[((f64, f64), f64)]) -> Fitted {
    let uses = vec![vec![0, 1, 2]; measured.len()];
    bounded_least_squares(parameters, 3.0, 100, &uses, &|row, values| {
        let ((x, z), seen) = measured[row];
        (time(values, x, z) / seen).ln() / 0.01
    })
}

const TRUE: [f64; 3] = [5e-3, 2e-5, 3e-8];

fn measured(loads: &[(f64, f64)]) -> Vec<((f64, f64), f64)> {
    loads.iter().map(|&(x, z)| ((x, z), time(&TRUE, x, z))).collect()
}

#[track_caller]
fn near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() < share, "{value:e}, expected {expected:e}");
}

/// Data without noise that decide every parameter give the parameters back, from priors that are off by a factor of three either way.
#[test]
fn known_parameters_come_back() {
    let fitted = fit(&[parameter(15e-3), parameter(7e-6), parameter(9e-8)], &measured(&loads()));
    for (value, expected) in fitted.values.iter().zip(TRUE) {
        near(*value, expected, 2e-3);
    }
    assert!(fitted.informed.iter().all(|i| *i > 0.99), "{:?}", fitted.informed);
    assert!(fitted.sd.iter().all(|sd| *sd < 0.03), "{:?}", fitted.sd);
}

/// A value stays within its bounds, whatever the data say, and the others make the best of it.
#[test]
fn bounds_hold() {
    let mut parameters = [parameter(5e-3), parameter(2e-5), parameter(3e-8)];
    parameters[0].most = 4e-3;
    parameters[0].start = 40e-3;
    parameters[1].least = 3e-5;
    let fitted = fit(&parameters, &measured(&loads()));
    for (value, own) in fitted.values.iter().zip(parameters) {
        let share = 1.0 + 1e-12;
        assert!(*value <= own.most * share && *value >= own.least / share, "{value:e} of {own:?}");
    }
    near(fitted.values[0], 4e-3, 1e-9);
    near(fitted.values[1], 3e-5, 1e-9);
}

/// Where nothing was measured, everything stays as it was believed, and says so.
#[test]
fn without_data_the_prior_stays() {
    let mut parameters = [parameter(5e-3), parameter(2e-5), parameter(3e-8)];
    parameters[1].start = 6e-5;
    let fitted = fit(&parameters, &[]);
    for ((value, own), (informed, sd)) in
        fitted.values.iter().zip(parameters).zip(fitted.informed.iter().zip(&fitted.sd))
    {
        near(*value, own.prior, 1e-3);
        assert!(*informed < 1e-9 && (sd - own.prior_sd).abs() < 1e-9, "{informed} {sd}");
    }
}

/// Data that say nothing of one parameter leave that one alone: without contexts the time of a token of context stays at its prior.
#[test]
fn what_the_data_do_not_touch_stays() {
    let alone: Vec<(f64, f64)> = loads().into_iter().filter(|(_, z)| *z == 0.0).collect();
    let fitted = fit(&[parameter(15e-3), parameter(7e-6), parameter(9e-8)], &measured(&alone));
    near(fitted.values[0], 5e-3, 0.01);
    near(fitted.values[1], 2e-5, 0.02);
    near(fitted.values[2], 9e-8, 1e-9);
    assert!(fitted.informed[2] < 1e-9, "{:?}", fitted.informed);
}

/// One broken measurement, ten times too slow, moves no parameter by more than two percent; counted in full it would move the base by far more.
#[test]
fn one_outlier_bends_nothing() {
    let mut seen = measured(&loads());
    seen[4].1 *= 10.0;
    let parameters = [parameter(15e-3), parameter(7e-6), parameter(9e-8)];
    let fitted = fit(&parameters, &seen);
    for (value, expected) in fitted.values.iter().zip(TRUE) {
        near(*value, expected, 0.02);
    }
    let uses = vec![vec![0, 1, 2]; seen.len()];
    let fooled = bounded_least_squares(&parameters, f64::INFINITY, 100, &uses, &|row, values| {
        let ((x, z), seen) = seen[row];
        (time(values, x, z) / seen).ln() / 0.01
    });
    assert!(fooled.values[0] / TRUE[0] > 1.05, "{:?}", fooled.values);
}

/// Three noisy points do not decide three parameters. With a prior that is right and sure (ten percent) the fit predicts a load eight times as large as any of
/// them within a twentieth, where a straight line through the same noise would be off by a third or more: the last two points say that tokens cost nothing.
#[test]
fn three_points_do_not_overfit() {
    let mut parameters = [parameter(5e-3), parameter(2e-5), parameter(3e-8)];
    for own in &mut parameters {
        own.prior_sd = 0.1;
    }
    let loads = [(8.0, 8000.0), (16.0, 16_000.0), (32.0, 32_000.0)];
    let noise = [0.97, 1.10, 0.98];
    let seen: Vec<_> =
        measured(&loads).into_iter().zip(noise).map(|((l, s), n)| (l, s * n)).collect();
    let uses = vec![vec![0, 1, 2]; 3];
    let fitted = bounded_least_squares(&parameters, 3.0, 100, &uses, &|row, values| {
        let ((x, z), seen) = seen[row];
        (time(values, x, z) / seen).ln() / 0.08
    });
    let far = (256.0, 256_000.0);
    near(time(&fitted.values, far.0, far.1), time(&TRUE, far.0, far.1), 0.05);
    for (value, expected) in fitted.values.iter().zip(TRUE) {
        near(*value, expected, 0.1);
    }
    assert!(fitted.informed.iter().all(|i| *i < 0.8), "{:?}", fitted.informed);
    // The line through the last two points.
    let slope = (seen[2].1 - seen[1].1) / 16.0;
    let line = seen[2].1 + slope * (256.0 - 32.0);
    assert!((line / time(&TRUE, far.0, far.1) - 1.0).abs() > 0.3, "{line}");
}
