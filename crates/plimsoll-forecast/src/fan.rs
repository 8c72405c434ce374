//! Quantiles as they would have been published, and how they did.

use plimsoll_workload::Quantiles;

use crate::rolling::{Bands, Rolling, Track};
use crate::score;

/// The levels that a fan is drawn at: every twentieth, for scores of the whole distribution, and the ends that are published.
pub(crate) const FAN: [f64; 21] = [
    0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80,
    0.85, 0.90, 0.95, 0.975, 0.99,
];
/// Those of them that are evenly spaced.
const EVEN: usize = 19;

/// The levels that are published.
const LEVELS: [f64; 6] = Quantiles::LEVELS;

/// Where a level stands in [`FAN`], or the closest to it.
pub(crate) fn place(level: f64) -> usize {
    let off = |i: usize| (FAN[i] - level).abs();
    (0..FAN.len()).min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(0)
}

/// The level at which a forecast that is sized for another is scored: the closest that is drawn.
pub fn scored_level(sizing: f64) -> f64 {
    FAN[place(sizing)]
}

/// What came, in its unit and on the logarithm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Actual {
    /// Not a number where it is missing.
    pub(crate) values: Vec<f64>,
    /// Added before the logarithm is taken, so that nothing has one, too.
    pub(crate) offset: f64,
    pub(crate) logs: Vec<f64>,
}

impl Actual {
    pub(crate) fn new(values: Vec<f64>, offset: f64) -> Self {
        let logs = values.iter().map(|value| libm::log(value + offset)).collect();
        Self { values, offset, logs }
    }

    /// The way back from the logarithm; nothing is below zero.
    pub(crate) fn value(&self, log: f64) -> f64 {
        (libm::exp(log) - self.offset).max(0.0)
    }
}

/// Quantiles of every scored origin and lead, as they would have been published.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fan {
    /// [`FAN`] by scored origin and lead.
    pub(crate) past: Vec<[f64; FAN.len()]>,
}

impl Fan {
    /// The fan of a model.
    pub(crate) fn of(track: &Track, actual: &Actual, rolling: &Rolling) -> Self {
        let bands = Bands::of(track, &actual.logs, rolling, &FAN);
        let buckets: Vec<usize> =
            (0..rolling.horizon).map(|lead| rolling.bucket_of(lead)).collect();
        let scored = 0..rolling.origins.len() - rolling.scored;
        let places = scored.flat_map(|i| (0..rolling.horizon).map(move |lead| (i, lead)));
        let fan = |(i, lead): (usize, usize)| -> [f64; FAN.len()] {
            let log = track.at(rolling, rolling.scored + i, lead);
            let offsets = bands.past(i, buckets[lead]);
            std::array::from_fn(|level| actual.value(log + offsets[level]))
        };
        Self { past: places.map(fan).collect() }
    }
}

/// How a model did at one quantile: the mean loss, and the loss of each scored origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    pub(crate) mean: f64,
    /// The same with origins weighing half as much for every quarter of the history that they are older.
    pub(crate) of_late: f64,
    by_origin: Vec<(f64, f64)>,
}

impl Loss {
    /// The pinball loss at a level of a track whose bands are drawn as they would have been.
    pub(crate) fn of(track: &Track, actual: &Actual, rolling: &Rolling, level: f64) -> Self {
        let bands = Bands::of(track, &actual.logs, rolling, &[level]);
        let said = |i: usize, lead: usize| {
            let offset = bands.past(i, rolling.bucket_of(lead))[0];
            actual.value(track.at(rolling, rolling.scored + i, lead) + offset)
        };
        Self::of_said(&said, actual, rolling, level)
    }

    /// The same of a fan.
    pub(crate) fn of_fan(fan: &Fan, actual: &Actual, rolling: &Rolling, level: f64) -> Self {
        let place = place(level);
        let said = |i: usize, lead: usize| fan.past[i * rolling.horizon + lead][place];
        Self::of_said(&said, actual, rolling, level)
    }

    /// The loss of what was said at each scored origin and lead.
    fn of_said(
        said: &dyn Fn(usize, usize) -> f64,
        actual: &Actual,
        rolling: &Rolling,
        level: f64,
    ) -> Self {
        let mut by_origin = vec![(0.0, 0.0); rolling.origins.len() - rolling.scored];
        for (origin, lead, at) in rolling.scores() {
            let came = actual.values[at];
            if came.is_nan() {
                continue;
            }
            let i = origin - rolling.scored;
            by_origin[i].0 += score::pinball(level, came, said(i, lead));
            by_origin[i].1 += 1.0;
        }
        Self::sum(by_origin, rolling)
    }

    fn sum(by_origin: Vec<(f64, f64)>, rolling: &Rolling) -> Self {
        let quarter = (rolling.steps as f64 / 4.0).max(1.0);
        let weight = |i: usize| {
            let age = (rolling.steps - rolling.origins[rolling.scored + i]) as f64;
            libm::pow(0.5, age / quarter)
        };
        let mean = |weight: &dyn Fn(usize) -> f64| {
            let (loss, n) = by_origin.iter().enumerate().fold((0.0, 0.0), |(l, n), (i, own)| {
                let weight = weight(i);
                (l + weight * own.0, n + weight * own.1)
            });
            // Nothing scored is no reason to take or leave a model.
            if n > 0.0 { loss / n } else { 0.0 }
        };
        Self { mean: mean(&|_| 1.0), of_late: mean(&weight), by_origin }
    }
}

/// The mean loss of choosing, at every origin, what had done best by then. `losses` are in the order in which models are trusted before
/// anything is known.
pub(crate) fn chosen_then(losses: &[&Loss], rolling: &Rolling) -> Option<f64> {
    let origins = losses.first()?.by_origin.len();
    let mut sums = vec![(0.0, 0.0); losses.len()];
    let (mut total, mut n) = (0.0, 0.0);
    let mut learnt = 0;
    for i in 0..origins {
        let known = rolling.origins[rolling.scored + i];
        // An origin teaches once all of its leads have come true.
        while rolling.origins[rolling.scored + learnt] + rolling.horizon <= known {
            for (sum, loss) in sums.iter_mut().zip(losses) {
                *sum = (sum.0 + loss.by_origin[learnt].0, sum.1 + loss.by_origin[learnt].1);
            }
            learnt += 1;
        }
        let mean = |(sum, n): &(f64, f64)| if *n > 0.0 { sum / n } else { 0.0 };
        let best = sums.iter().enumerate().min_by(|a, b| mean(a.1).total_cmp(&mean(b.1)));
        let (loss, points) = losses[best?.0].by_origin[i];
        total += loss;
        n += points;
    }
    (n > 0.0).then(|| total / n)
}

/// How forecasts did, over origins of the past.
#[derive(Clone, Debug, PartialEq)]
pub struct Backtest {
    /// Origins that were scored.
    pub origins: usize,
    /// Steps that were scored, over all origins.
    pub points: usize,
    /// Steps ahead of the last lead that was scored.
    pub leads: usize,
    /// Sum of absolute errors of the median over the sum of what came.
    pub wape: Option<f64>,
    /// How much too high the median was, over the sum of what came.
    pub bias: Option<f64>,
    /// The mean absolute error over that of repeating the last season within the history.
    pub mase: Option<f64>,
    /// The score of the whole distribution, in the unit of the series.
    pub crps: Option<f64>,
    /// The loss at the sizing quantile, in the unit of the series; none where nothing was scored, as below.
    pub pinball: Option<f64>,
    /// That of the seasonal naive forecast with its own interval.
    pub pinball_naive: Option<f64>,
    /// That of the plain mean with its own interval.
    pub pinball_mean: Option<f64>,
    /// The loss of choosing at every origin what had done best by then.
    pub pinball_chosen_then: Option<f64>,
    /// Coverage over all leads.
    pub coverage: Vec<Coverage>,
    /// Coverage by lead time: where each bucket ends, in steps, and its coverage.
    pub by_lead: Vec<(usize, Vec<Coverage>)>,
    /// The median distance of the sizing quantile from the median forecast, in the unit of the series.
    pub width: Option<f64>,
    /// The same of a bound that covers exactly the sizing quantile, chosen with hindsight.
    pub width_ideal: Option<f64>,
    /// The quantile that is sized for.
    pub level: f64,
}

/// How often what came lay at or below a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// The quantile.
    pub level: f64,
    /// The share of steps at or below.
    pub share: f64,
    /// How likely a share as far off is by chance; steps that several origins were about count once.
    pub p_value: Option<f64>,
    /// Different steps.
    pub steps: usize,
}

/// Scores a fan. Losses are of the fan itself, the naive forecast and the mean.
pub(crate) fn backtest(
    fan: &Fan,
    actual: &Actual,
    rolling: &Rolling,
    season: usize,
    level: f64,
    losses: [&Loss; 3],
) -> Backtest {
    let middle = place(0.5);
    let sizing = place(level);
    let scored: Vec<(usize, usize, f64, &[f64; FAN.len()])> = rolling
        .scores()
        .map(|(origin, lead, at)| {
            let i = (origin - rolling.scored) * rolling.horizon + lead;
            (lead, at, actual.values[at], &fan.past[i])
        })
        .filter(|(_, _, came, _)| !came.is_nan())
        .collect();
    let pairs: Vec<(f64, f64)> =
        scored.iter().map(|(_, _, came, fan)| (*came, fan[middle])).collect();
    let crps: f64 = scored
        .iter()
        .filter_map(|(_, _, came, fan)| {
            let even: [(f64, f64); EVEN] = std::array::from_fn(|i| (FAN[i], fan[i]));
            score::crps(*came, &even)
        })
        .sum();
    let coverage = |from: usize, end: usize| -> Vec<Coverage> {
        let own = || scored.iter().filter(|(lead, ..)| (from..end).contains(lead));
        let n = own().count();
        if n == 0 {
            return Vec::new();
        }
        let mut steps: Vec<usize> = own().map(|(_, at, ..)| *at).collect();
        steps.sort_unstable();
        steps.dedup();
        let of = |level: f64| {
            let place = place(level);
            let within = own().filter(|(_, _, came, fan)| score::within(*came, fan[place])).count();
            let share = within as f64 / n as f64;
            let different = steps.len() as f64;
            let p_value =
                score::coverage_p_value((1.0 - share) * different, different, 1.0 - level);
            Coverage { level, share, p_value, steps: steps.len() }
        };
        LEVELS.into_iter().map(of).collect()
    };
    let mut from = 0;
    let mut by_lead = Vec::new();
    for end in &rolling.ends {
        let own = coverage(from, *end);
        if !own.is_empty() {
            by_lead.push((*end, own));
        }
        from = *end;
    }
    // With hindsight: one distance on the logarithm that covers exactly the level.
    let log = |value: f64| libm::log(value + actual.offset);
    let mut needed: Vec<f64> =
        scored.iter().map(|(_, _, came, fan)| log(*came) - log(fan[middle])).collect();
    needed.sort_by(f64::total_cmp);
    let hindsight = (!needed.is_empty())
        .then(|| plimsoll_stats::quantile_of_sorted(&needed, level))
        .filter(|offset| offset.is_finite());
    let ideal = |offset: f64| {
        let widths: Vec<f64> = scored
            .iter()
            .map(|(_, _, _, fan)| actual.value(log(fan[middle]) + offset) - fan[middle])
            .collect();
        plimsoll_stats::quantile(&widths, 0.5)
    };
    let widths: Vec<f64> = scored.iter().map(|(_, _, _, fan)| fan[sizing] - fan[middle]).collect();
    let n = scored.len() as f64;
    let [own, naive, mean] = losses.map(|loss| (n > 0.0).then_some(loss.mean));
    Backtest {
        origins: rolling.origins.len() - rolling.scored,
        points: scored.len(),
        leads: scored.iter().map(|(lead, ..)| lead + 1).max().unwrap_or(0),
        wape: score::wape(&pairs),
        bias: score::bias(&pairs),
        mase: score::mase(&pairs, score::naive_scale(&actual.values, season)),
        crps: (n > 0.0).then(|| crps / n),
        pinball: own,
        pinball_naive: naive,
        pinball_mean: mean,
        pinball_chosen_then: None,
        coverage: coverage(0, rolling.horizon),
        by_lead,
        width: plimsoll_stats::quantile(&widths, 0.5),
        width_ideal: hindsight.and_then(ideal),
        level,
    }
}
