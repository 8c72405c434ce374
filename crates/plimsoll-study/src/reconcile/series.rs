//! Series by series, and which classes requests were of.

use plimsoll_forecast::score;
use plimsoll_workload::{Quantiles, Quantity};

use super::result::{ClassMix, LevelCoverage, MixRow, ReconciledSeries, WorstStep};
use super::{Overlap, Paired, Subject, ratio};

pub(super) fn resources(overlap: &Overlap<'_>) -> Vec<ReconciledSeries> {
    let published = overlap.published();
    published.map(|(class, quantity)| resource(overlap, class, quantity)).collect()
}

fn resource(overlap: &Overlap<'_>, class: Option<&str>, quantity: Quantity) -> ReconciledSeries {
    let paired = overlap.paired(class, quantity);
    let n = paired.at.len() as f64;
    let medians: Vec<(f64, f64)> =
        paired.actual.iter().zip(&paired.said).map(|(came, said)| (*came, said.0[0])).collect();
    let bounds: Vec<f64> = paired.said.iter().map(|said| overlap.bound(said)).collect();
    let (actual, forecast) =
        medians.iter().fold((0.0, 0.0), |(a, f), (came, said)| (a + came, f + said));
    let sizing = overlap.input.sizing;
    let loss: f64 = paired
        .actual
        .iter()
        .zip(&bounds)
        .map(|(came, bound)| score::pinball(sizing, *came, *bound))
        .sum();
    let missed = missed(&paired);
    let levels = Quantiles::LEVELS.into_iter().zip(missed);
    let both = paired.actual.iter().zip(&bounds);
    let above = both.filter(|(came, bound)| !score::within(**came, **bound)).count();
    ReconciledSeries {
        class: class.map(str::to_owned),
        resource: quantity.name(),
        unit: quantity.unit(),
        steps: paired.at.len(),
        forecast_mean: ratio(forecast, n),
        actual_mean: ratio(actual, n),
        wape: score::wape(&medians),
        bias: score::bias(&medians),
        pinball: ratio(loss, n),
        coverage: levels.map(|(level, missed)| coverage(level, missed, n)).collect(),
        sized: coverage(sizing, above as f64, n),
        ratio: ratio(actual, forecast),
        worst: worst(overlap, &paired, &bounds),
    }
}

/// How many steps lie above each published quantile.
pub(super) fn missed(paired: &Paired) -> [f64; 6] {
    let both = || paired.actual.iter().zip(&paired.said);
    std::array::from_fn(|level| {
        both().filter(|(came, said)| !score::within(**came, said.0[level])).count() as f64
    })
}

fn coverage(level: f64, missed: f64, n: f64) -> LevelCoverage {
    LevelCoverage {
        level,
        share: ratio(n - missed, n),
        p_value: score::coverage_p_value(missed, n, 1.0 - level),
    }
}

/// The first of those that exceed most.
fn worst(overlap: &Overlap<'_>, paired: &Paired, bounds: &[f64]) -> Option<WorstStep> {
    let mut worst: Option<WorstStep> = None;
    for ((step, actual), bound) in paired.at.iter().zip(&paired.actual).zip(bounds) {
        let excess = actual - bound;
        let above = !score::within(*actual, *bound);
        if above && excess > worst.map_or(0.0, |worst| worst.excess) {
            let at_s = overlap.at_s(*step);
            worst = Some(WorstStep { at_s, actual: *actual, bound: *bound, excess });
        }
    }
    worst
}

pub(super) fn mix(overlap: &Overlap<'_>, subjects: &[Subject<'_>]) -> ClassMix {
    let named: Vec<&str> = subjects.iter().filter_map(|subject| subject.key).collect();
    let of = Quantity::Requests;
    let both = |class: &&str| -> Vec<Option<(f64, f64)>> {
        let thought_of = overlap.input.outlook.series(Some(class), of).is_some();
        let said = overlap.said(Some(class), of).into_iter().map(|said| match said {
            Some(said) => Some(said.0[0]),
            None => (!thought_of).then_some(0.0),
        });
        let came = overlap.came(Some(class), of);
        said.zip(came).map(|(said, came)| said.zip(came)).collect()
    };
    let rows: Vec<Vec<Option<(f64, f64)>>> = named.iter().map(both).collect();
    let whole = |step: &usize| rows.iter().all(|row| row[*step].is_some());
    let steps: Vec<usize> = (0..overlap.steps).filter(whole).collect();
    let sum = |row: &Vec<Option<(f64, f64)>>| {
        let known = steps.iter().filter_map(|step| row[*step]);
        known.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1))
    };
    let sums: Vec<(f64, f64)> = rows.iter().map(sum).collect();
    let (said, came) = sums.iter().fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
    let row = |(class, (own_said, own_came)): (&&str, &(f64, f64))| {
        let (forecast, actual) = (ratio(*own_said, said), ratio(*own_came, came));
        let difference = forecast.zip(actual).map(|(forecast, actual)| actual - forecast);
        MixRow { class: (*class).to_owned(), forecast, actual, difference }
    };
    let classes: Vec<MixRow> = named.iter().zip(&sums).map(row).collect();
    let apart: Option<f64> = classes.iter().map(|row| row.difference.map(f64::abs)).sum();
    let distance = apart.filter(|_| !classes.is_empty()).map(|apart| apart / 2.0);
    ClassMix { classes, distance }
}
