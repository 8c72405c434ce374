//! The models: small, on the logarithm, and each beaten by another somewhere.

/// Places of a period that came round in the history, in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Season {
    /// Steps of a day, where the hour of the day matters.
    pub day: Option<usize>,
    /// Steps of a week, where the day of the week does.
    pub week: Option<usize>,
}

impl Season {
    /// The longest that is there and fits so often into so many steps.
    pub(crate) fn longest(self, steps: usize, times: usize) -> Option<usize> {
        [self.week, self.day].into_iter().flatten().find(|length| length * times <= steps)
    }
}

/// A way to forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The plain mean of everything seen.
    Mean,
    /// The same time a season ago; the last value where nothing comes round.
    SeasonalNaive,
    /// The profile of the season, and the level of the last hours, which fades to that of the last third of the history.
    ProfileLevel,
    /// The profile, and the level of the last day.
    DayLevel,
    /// The profile, and the median of the last season.
    RobustLevel,
    /// The profile, and a trend that fades.
    DampedTrend,
    /// The median of all of these.
    Median,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Mean,
        Self::SeasonalNaive,
        Self::ProfileLevel,
        Self::DayLevel,
        Self::RobustLevel,
        Self::DampedTrend,
        Self::Median,
    ];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::SeasonalNaive => "seasonal naive",
            Self::ProfileLevel => "profile with level",
            Self::DayLevel => "profile with day's level",
            Self::RobustLevel => "profile with robust level",
            Self::DampedTrend => "damped trend",
            Self::Median => "median of models",
        }
    }
}

/// How many there are.
pub(crate) const MODELS: usize = Model::ALL.len();

/// Periods that a profile is taken from: what is older says little of now.
const DAYS_MOST: usize = 28;
const WEEKS_MOST: usize = 8;
/// With so many, the highest and the lowest are left out.
const TRIM_LEAST: usize = 4;
/// Observations of hour and day of the week together that stand against those of a single place of the week.
const PLACE_PRIOR: f64 = 2.0;
/// Half-lives of levels, in steps.
const FAST: f64 = 6.0;
const SLOW: f64 = 24.0;
/// What is left of a level's distance from the history's, step by step.
const FADES: f64 = 0.9;
/// Steps on either side that a spike is held against, and how many times the usual step it must stand out by.
const SPIKE_AROUND: usize = 3;
const SPIKE_DEVIATIONS: f64 = 12.0;
/// How fast a trend follows its errors, and what is left of it step by step.
const TREND_GAIN: f64 = 0.05;
const TREND_FADES: f64 = 0.97;

/// Forecasts of every model for the steps after `history`, on the logarithm; what is missing is not a number. Each of `out` is
/// filled with as many steps as it holds.
pub(crate) fn forecast(history: &[f64], season: Season, out: &mut [Vec<f64>; MODELS]) {
    let n = history.len();
    let horizon = out[0].len();
    let known = || history.iter().copied().filter(|z| !z.is_nan());
    let count = known().count();
    if count == 0 {
        out.iter_mut().for_each(|steps| steps.fill(0.0));
        return;
    }
    let history = &calm(history, season)[..];
    // The mean of what was counted, not of its logarithm.
    let most = known().fold(f64::NEG_INFINITY, f64::max);
    let mean = most + libm::log(known().map(|z| libm::exp(z - most)).sum::<f64>() / count as f64);
    let [of_mean, naive, level, day_level, robust, damped, median] = out;
    of_mean.fill(mean);

    let last = history.iter().rev().copied().find(|z| !z.is_nan()).unwrap_or(mean);
    match season.longest(n, 1) {
        // The last time the place was seen, within the seasons before.
        Some(length) => {
            for (h, step) in naive.iter_mut().enumerate() {
                let mut at = n + h % length;
                *step = loop {
                    if at < length {
                        break mean;
                    }
                    at -= length;
                    if !history[at].is_nan() {
                        break history[at];
                    }
                };
            }
        }
        None => naive.fill(last),
    }

    let profile = Profile::of(history, season);
    let rest: Vec<f64> = history.iter().enumerate().map(|(i, z)| z - profile.at(i)).collect();
    let rest_known = || rest.iter().copied().filter(|z| !z.is_nan());
    let average = rest_known().sum::<f64>() / count as f64;
    let gain = |half_life: f64| 1.0 - libm::pow(0.5, 1.0 / half_life);
    let smooth = |gain: f64| rest_known().fold(average, |level, z| level + gain * (z - level));
    let (fast, slow) = (smooth(gain(FAST)), smooth(gain(SLOW)));
    // Where a level goes back to: what was long ago may have been another.
    let (sum, n_late) =
        rest_known().skip(count - count.div_ceil(3)).fold((0.0, 0.0), |(s, n), z| (s + z, n + 1.0));
    let usual = sum / n_late;
    let span = season.longest(n, 1).map_or(n.min(24), |_| season.day.unwrap_or(24)).max(6);
    let mut recent: Vec<f64> = rest_known().skip(count.saturating_sub(span)).collect();
    let middle = median_of(&mut recent);

    let (mut at, mut trend) = (rest_known().next().unwrap_or(average), 0.0);
    let follow = gain(FAST);
    for z in rest_known() {
        let expected = at + TREND_FADES * trend;
        let error = z - expected;
        at = expected + follow * error;
        trend = TREND_FADES * trend + follow * TREND_GAIN * error;
    }
    let (mut left, mut ahead, mut fading) = (1.0, 0.0, 1.0);
    for h in 0..horizon {
        let place = profile.at(n + h);
        left *= FADES;
        fading *= TREND_FADES;
        ahead += fading * trend;
        level[h] = place + usual + (fast - usual) * left;
        day_level[h] = place + slow;
        robust[h] = place + middle;
        damped[h] = place + at + ahead;
        let mut all = [naive[h], level[h], day_level[h], robust[h], damped[h]];
        median[h] = median_of(&mut all);
    }
}

/// A history in which a spike that lasted a step or two is what was usual then. It will be missed by the forecast, and its size is in the
/// residuals: but it is not repeated, nor is it a level.
fn calm(history: &[f64], season: Season) -> std::borrow::Cow<'_, [f64]> {
    let profile = Profile::of(history, season);
    let rest: Vec<f64> = history.iter().enumerate().map(|(i, z)| z - profile.at(i)).collect();
    // Against its neighbours, who know of shifts and drifts.
    let around = |i: usize| {
        let near =
            rest[i.saturating_sub(SPIKE_AROUND)..(i + SPIKE_AROUND + 1).min(rest.len())].iter();
        let mut near: Vec<f64> = near.copied().filter(|z| !z.is_nan()).collect();
        median_of(&mut near)
    };
    let mut sizes: Vec<f64> = rest
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .filter(|size| !size.is_nan())
        .collect();
    let limit = (SPIKE_DEVIATIONS * median_of(&mut sizes)).max(std::f64::consts::LN_2);
    let mut calm = std::borrow::Cow::Borrowed(history);
    for i in 0..rest.len() {
        // Only what stands out from a neighbour can be a spike.
        let stands = |j: usize| rest.get(j).is_some_and(|z| (rest[i] - z).abs() > limit);
        if !(stands(i + 1) || i > 0 && stands(i - 1) || i > 1 && stands(i - 2) || stands(i + 2)) {
            continue;
        }
        let usual = around(i);
        if (rest[i] - usual).abs() > limit {
            calm.to_mut()[i] = profile.at(i) + usual;
        }
    }
    calm
}

/// The median; zero of nothing.
fn median_of(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    let (below, middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let upper = *middle;
    if n % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower, upper)
}

/// What a place of the season adds, on the logarithm.
struct Profile {
    places: Vec<f64>,
}

impl Profile {
    fn at(&self, step: usize) -> f64 {
        self.places[step % self.places.len()]
    }

    /// Means of places; flat with fewer than two periods.
    fn of(history: &[f64], season: Season) -> Self {
        let n = history.len();
        let enough = |length: Option<usize>| length.filter(|length| 2 * length <= n);
        let Some(day) = enough(season.day) else { return Self { places: vec![0.0] } };
        // Levels shift and drift: a place is against the period around it.
        let history = &level(history, enough(season.week).unwrap_or(day))[..];
        let (by_hour, mean) = means(history, |i| i % day, day, DAYS_MOST);
        let Some(week) = enough(season.week) else {
            return Self { places: by_hour.iter().map(|(place, _)| place - mean).collect() };
        };
        // Hour and day of the week apart explain most of a place; what it shows beyond that is worth as much as it was seen.
        let days = week / day;
        let rest: Vec<f64> =
            history.iter().enumerate().map(|(i, z)| z - by_hour[i % day].0).collect();
        let (by_day, _) = means(&rest, |i| (i / day) % days, days, WEEKS_MOST * day);
        let (by_place, _) = means(history, |i| i % week, week, WEEKS_MOST);
        let places = by_place.iter().enumerate().map(|(i, (place, weight))| {
            let apart = by_hour[i % day].0 + by_day[(i / day) % days].0;
            (place * weight + apart * PLACE_PRIOR) / (weight + PLACE_PRIOR) - mean
        });
        Self { places: places.collect() }
    }
}

/// What is left of values once the mean of a period around each is taken off; near the ends, of the period that is there.
pub(crate) fn level(values: &[f64], period: usize) -> Vec<f64> {
    let n = values.len();
    let mut sums = vec![(0.0, 0.0); n + 1];
    for (i, value) in values.iter().enumerate() {
        let (sum, count) = sums[i];
        sums[i + 1] = if value.is_nan() { sums[i] } else { (sum + value, count + 1.0) };
    }
    let around = |i: usize| {
        let from = i.saturating_sub(period / 2).min(n.saturating_sub(period));
        let (a, b) = (sums[from], sums[(from + period).min(n)]);
        (b.0 - a.0) / (b.1 - a.1)
    };
    values.iter().enumerate().map(|(i, value)| value - around(i)).collect()
}

/// The mean of each place over the last periods, without the highest and the lowest of them, and how many it is the mean of; and the mean of
/// all. A place that was never seen has that. One period in which a level shifted, or a spike came, says nothing of a place.
fn means(
    history: &[f64],
    place: impl Fn(usize) -> usize,
    places: usize,
    most: usize,
) -> (Vec<(f64, f64)>, f64) {
    let mut seen: Vec<Vec<f64>> = vec![Vec::with_capacity(most); places];
    for (i, z) in history.iter().enumerate().rev().filter(|(_, z)| !z.is_nan()) {
        let own = &mut seen[place(i)];
        if own.len() < most {
            own.push(*z);
        }
    }
    let trimmed = |own: &mut Vec<f64>| {
        let n = own.len();
        own.sort_by(f64::total_cmp);
        let off = if n < TRIM_LEAST { 0 } else { (n / 8).max(1) };
        let kept = &own[off..n - off];
        (kept.iter().sum::<f64>(), kept.len() as f64)
    };
    let sums: Vec<(f64, f64)> = seen.iter_mut().map(trimmed).collect();
    let (sum, total) = sums.iter().fold((0.0, 0.0), |(s, n), own| (s + own.0, n + own.1));
    let all = if total > 0.0 { sum / total } else { 0.0 };
    let mean = |(sum, n): (f64, f64)| if n > 0.0 { (sum / n, n) } else { (all, 0.0) };
    (sums.into_iter().map(mean).collect(), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(history: &[f64], season: Season, horizon: usize) -> [Vec<f64>; MODELS] {
        let mut out = std::array::from_fn(|_| vec![0.0; horizon]);
        forecast(history, season, &mut out);
        out
    }

    /// A constant is forecast by all of them, with and without gaps.
    #[test]
    fn a_constant_stays() {
        let day = Season { day: Some(4), week: None };
        for season in [Season::default(), day] {
            let mut history = vec![2.0; 20];
            history[7] = f64::NAN;
            history[19] = f64::NAN;
            for (model, steps) in Model::ALL.iter().zip(all(&history, season, 5)) {
                assert!(steps.iter().all(|z| (z - 2.0).abs() < 1e-9), "{model:?}: {steps:?}");
            }
        }
    }

    /// A season without noise comes again, in all but the mean, and a gap in the last one is filled from the one before.
    #[test]
    fn a_season_comes_again() {
        let place = [0.0, 1.0, 3.0, 2.0];
        let mut history: Vec<f64> = (0..16).map(|i| place[i % 4]).collect();
        history[14] = f64::NAN;
        let season = Season { day: Some(4), week: None };
        for (model, steps) in Model::ALL.iter().zip(all(&history, season, 6)).skip(1) {
            for (h, z) in steps.iter().enumerate() {
                assert!((z - place[h % 4]).abs() < 1e-6, "{model:?} {h}: {z}");
            }
        }
        // The mean of 1, e, e^3, e^2, but for the one that is missing.
        let whole = 4.0 * (1.0 + 1f64.exp() + 3f64.exp() + 2f64.exp()) - 3f64.exp();
        let mean = all(&history, season, 1)[0][0];
        assert!((mean - (whole / 15.0).ln()).abs() < 1e-12);
    }

    #[test]
    fn nothing_known_is_nothing_said() {
        assert!(all(&[], Season::default(), 2).iter().flatten().all(|z| *z == 0.0));
        assert!(all(&[f64::NAN; 3], Season::default(), 2).iter().flatten().all(|z| *z == 0.0));
        let one = all(&[1.5], Season { day: Some(24), week: Some(168) }, 3);
        assert!(one.iter().flatten().all(|z| (z - 1.5).abs() < 1e-12));
    }

    #[test]
    fn medians() {
        assert_eq!(median_of(&mut []), 0.0);
        assert_eq!(median_of(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median_of(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
