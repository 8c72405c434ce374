//! Arrivals of a log as a process that a scenario can name.

use plimsoll_stats::weibull_cv;
use serde::Serialize;

use super::result::{ClassProfile, Fits, Season, SeasonVerdict};

/// How requests arrive, in the words of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrivalModel {
    /// How gaps vary.
    pub gaps: GapModel,
    /// Episodes of a higher rate.
    pub burst: Option<BurstModel>,
    /// Twenty-four multipliers from midnight on, where hours were shown to differ and the clock is known.
    pub by_hour: Option<Vec<f64>>,
    /// Saturday and Sunday against weekdays, where days were shown to differ and the clock is known.
    pub weekend: Option<f64>,
    /// The distance of the gaps from the family; null where gaps say nothing of the users.
    pub ks: Option<f64>,
    /// Whether that rejects it at 5 %.
    pub rejected: Option<bool>,
    /// Variance over mean of requests by window: as logged, and as this process has it.
    pub dispersion: Vec<ModelDispersion>,
    /// Why this process and no other.
    pub why: String,
}

/// How gaps vary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapModel {
    /// Independent users.
    Poisson,
    /// Gamma gaps of this coefficient of variation.
    Gamma {
        /// Standard deviation of a gap over its mean.
        cv: f64,
    },
    /// Weibull gaps of this coefficient of variation.
    Weibull {
        /// Standard deviation of a gap over its mean.
        cv: f64,
    },
}

/// Two states: exponential episodes at a multiple of the mean rate, and calm between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BurstModel {
    /// The rate in an episode, over the mean.
    pub times: f64,
    /// How long an episode lasts on average.
    pub lasts_s: f64,
    /// From one episode to the next, on average.
    pub every_s: f64,
}

/// Variance over mean of requests in a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelDispersion {
    /// The length of the window.
    pub window_s: u64,
    /// As logged.
    pub logged: f64,
    /// As the process has it; null where gaps are not exponential, whose windows have no short formula.
    pub modelled: Option<f64>,
}

/// Windows of a length that must be there before their variance is believed.
const ENOUGH: u64 = 20;
/// Windows up to which bursts are told; longer ones are the time of day.
const BURSTS_S: u64 = 300;

/// The process that comes nearest to a class's arrivals; none where they have no time.
///
/// Renewal processes have a dispersion that settles at the square of the gaps' CV. Where the logged one goes on growing with the window, the rate itself
/// varies, and two states say so: their share and their speed follow from the dispersion at two or more windows
/// (`1 + 2 V r (1 - (1 - exp(-s t)) / (s t)) / s` of a window of `t` seconds, with `V` the rate's squared CV, `r` its mean and `1/s` how long it
/// stays), and the multiple is the 99th percentile of ten seconds over the mean.
pub fn arrival_model(class: &ClassProfile) -> Option<ArrivalModel> {
    let rate = class.mean_rps_rows_over_span.filter(|rate| *rate > 0.0)?;
    let (by_hour, weekend) = seasons(class);
    let by_season = by_hour.as_deref().map_or(0.0, squared_cv);
    // On a clock that ticks, gaps and short windows say nothing of the users.
    let least_s = class.tick.as_ref().map_or(0.0, |tick| 3.0 * tick.seconds);
    let windows: Vec<(u64, f64)> = class
        .windows
        .iter()
        .filter_map(|(key, windows)| Some((key.parse::<u64>().ok()?, windows.as_ref()?)))
        .filter(|(width, windows)| {
            windows.n_windows >= ENOUGH && *width <= BURSTS_S && *width as f64 >= least_s
        })
        .filter_map(|(width, windows)| {
            let logged = windows.requests.index_of_dispersion?;
            // What the hours of the day do is told by `by_hour`.
            Some((width, (logged - rate * width as f64 * by_season).max(0.0)))
        })
        .collect();
    let fits = class.inter_arrival_fit.as_ref().filter(|_| class.tick.is_none());
    let (gaps, ks, rejected) = fits.map_or((GapModel::Poisson, None, None), gap_model);
    let squared = match gaps {
        GapModel::Poisson => 1.0,
        GapModel::Gamma { cv } | GapModel::Weibull { cv } => cv * cv,
    };
    let largest = windows.iter().map(|(_, logged)| *logged).fold(0.0, f64::max);
    let burst = (largest >= 2.0 && largest > 1.5 * squared)
        .then(|| burst_model(high(class), rate, &windows))
        .flatten();
    // Episodes are of independent users: their own gaps are what the gaps as a whole are not.
    let gaps = if burst.is_some() { GapModel::Poisson } else { gaps };
    let modelled = |width: u64| match burst {
        Some(burst) => Some(burst.dispersion(rate, width as f64)),
        None => matches!(gaps, GapModel::Poisson).then_some(1.0),
    };
    let dispersion: Vec<ModelDispersion> = windows
        .iter()
        .map(|(width, logged)| ModelDispersion {
            window_s: *width,
            logged: *logged,
            modelled: modelled(*width),
        })
        .collect();
    let why = match (&burst, &class.tick) {
        (Some(_), _) => "dispersion grows with the window: the rate itself varies, so two states",
        (None, Some(_)) => {
            "gaps lie on the clock's tick and longer windows show no bursts, so independent users"
        }
        (None, None) if fits.is_none() => "there are too few gaps to fit, so independent users",
        (None, None) => match gaps {
            GapModel::Poisson => "exponential gaps come nearest",
            GapModel::Gamma { .. } => "gamma gaps come nearest",
            GapModel::Weibull { .. } => "Weibull gaps come nearest",
        },
    };
    // The family of gaps is no longer what was chosen.
    let (ks, rejected) = match (&burst, fits) {
        (Some(_), Some(fits)) => {
            let ks = fits.exponential.map(|fit| fit.ks);
            (ks, ks.map(|ks| ks > fits.ks_rejected_above))
        }
        _ => (ks, rejected),
    };
    Some(ArrivalModel {
        gaps,
        burst,
        by_hour,
        weekend,
        ks,
        rejected,
        dispersion,
        why: why.to_owned(),
    })
}

/// The family that comes nearest of those that a scenario has; exponential gaps where they are not rejected.
fn gap_model(fits: &Fits) -> (GapModel, Option<f64>, Option<bool>) {
    let exponential = fits.exponential.map(|fit| (GapModel::Poisson, fit.ks));
    let gamma = fits.gamma.map(|fit| (GapModel::Gamma { cv: 1.0 / fit.shape.sqrt() }, fit.ks));
    let weibull = fits.weibull.map(|fit| (GapModel::Weibull { cv: weibull_cv(fit.shape) }, fit.ks));
    if let Some((gaps, ks)) = exponential.filter(|(_, ks)| *ks <= fits.ks_rejected_above) {
        return (gaps, Some(ks), Some(false));
    }
    let told = |(gaps, _): &(GapModel, f64)| match gaps {
        GapModel::Poisson => true,
        GapModel::Gamma { cv } | GapModel::Weibull { cv } => (0.01..=100.0).contains(cv),
    };
    let all = [exponential, gamma, weibull].into_iter().flatten().filter(told);
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map_or((GapModel::Poisson, None, None), |(gaps, ks)| {
        (gaps, Some(ks), Some(ks > fits.ks_rejected_above))
    })
}

/// Hours and weekends, where they are shown and the clock is known.
fn seasons(class: &ClassProfile) -> (Option<Vec<f64>>, Option<f64>) {
    let Some(seasons) = &class.seasonality else { return (None, None) };
    let (hour, day) = (&seasons.hour_of_day, &seasons.day_of_week);
    let shown = |season: &Season, parts: usize| {
        let means = season.mean_requests.as_ref()?;
        let said = season.verdict == SeasonVerdict::Shown && season.by_the_clock;
        (said && means.len() == parts).then(|| means.clone())
    };
    let by_hour = shown(hour, 24).and_then(|means| {
        let mean = means.iter().sum::<f64>() / 24.0;
        (mean > 0.0).then(|| means.iter().map(|own| own / mean).collect())
    });
    let weekend = shown(day, 7).and_then(|means| {
        let weekdays = means[..5].iter().sum::<f64>() / 5.0;
        (weekdays > 0.0).then(|| means[5..].iter().sum::<f64>() / 2.0 / weekdays)
    });
    (by_hour, weekend)
}

/// The squared CV of multipliers around one.
fn squared_cv(multipliers: &[f64]) -> f64 {
    multipliers.iter().map(|own| (own - 1.0).powi(2)).sum::<f64>() / multipliers.len() as f64
}

impl BurstModel {
    /// The share of time in episodes.
    fn share(&self) -> f64 {
        self.lasts_s / self.every_s
    }

    /// Variance over mean of the requests of a window.
    fn dispersion(&self, rate: f64, window_s: f64) -> f64 {
        let share = self.share();
        let varies = share * (self.times - 1.0).powi(2) / (1.0 - share);
        let speed = 1.0 / self.lasts_s + 1.0 / (self.every_s - self.lasts_s);
        1.0 + varies * rate * growth(speed, window_s)
    }
}

/// How much of a rate's variance a window shows, in seconds.
fn growth(speed: f64, window_s: f64) -> f64 {
    let turns = speed * window_s;
    2.0 / speed * (1.0 - (1.0 - (-turns).exp()) / turns)
}

/// How high the rate gets over ten seconds, over the mean.
fn high(class: &ClassProfile) -> f64 {
    let ten = class.windows.get("10").and_then(Option::as_ref);
    ten.and_then(|windows| windows.requests.p99_to_mean).unwrap_or(2.0)
}

/// Two states with the logged dispersion; none where no window shows more than independent users do.
fn burst_model(high: f64, rate: f64, windows: &[(u64, f64)]) -> Option<BurstModel> {
    let excess: Vec<(f64, f64)> = windows
        .iter()
        .map(|(width, logged)| (*width as f64, logged - 1.0))
        .filter(|(_, excess)| *excess > 0.05)
        .collect();
    if excess.is_empty() {
        return None;
    }
    // The speed by trying, a twentieth apart, from an hour to a second; for each the squared CV that fits the logarithms best.
    let mut best: Option<(f64, f64, f64)> = None;
    for step in 0..=168 {
        let speed = 1.05f64.powi(step) / 3600.0;
        let logs: Vec<f64> = excess
            .iter()
            .map(|(width, excess)| (excess / (rate * growth(speed, *width))).ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let miss: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        if best.is_none_or(|(least, ..)| miss < least - 1e-12) {
            best = Some((miss, speed, mean.exp()));
        }
    }
    let (_, speed, varies) = best?;
    // Calm cannot be less than silence: with this variance the multiple is at least so large.
    let times = high.max(1.02 * (1.0 + varies)).max(1.1);
    let share = varies / (varies + (times - 1.0).powi(2));
    let every_s = 1.0 / (share * (1.0 - share) * speed);
    let lasts_s = share * every_s;
    // Shorter clustering is no episode.
    (lasts_s >= 1.0).then_some(BurstModel { times, lasts_s, every_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::result::{ExponentialFit, ShapeFit};

    /// A process of two states, its dispersion at three windows, and the process again.
    #[test]
    fn two_states_are_found_again() {
        let truth = BurstModel { times: 3.0, lasts_s: 20.0, every_s: 120.0 };
        let rate = 4.0;
        let windows: Vec<(u64, f64)> =
            [1, 10, 60].map(|width| (width, truth.dispersion(rate, width as f64))).to_vec();
        let found = burst_model(3.0, rate, &windows).unwrap();
        for (width, logged) in &windows {
            let modelled = found.dispersion(rate, *width as f64);
            assert!((modelled / logged - 1.0).abs() < 0.02, "{width}: {logged} {modelled}");
        }
        assert!((found.lasts_s / truth.lasts_s - 1.0).abs() < 0.1, "{found:?}");
        assert!((found.every_s / truth.every_s - 1.0).abs() < 0.1, "{found:?}");
    }

    /// A rate that varies as much as its square needs episodes of at least twice the mean, and calm that is nearly silence.
    #[test]
    fn calm_is_not_less_than_silence() {
        let found = burst_model(1.5, 3.0, &[(1, 13.0), (10, 70.0), (60, 158.0)]).unwrap();
        assert!(found.times * found.share() <= 1.0, "{found:?}");
        plimsoll_stats::Burst::new(found.times, found.lasts_s, found.every_s).unwrap();
        assert_eq!(burst_model(3.0, 1.0, &[(1, 1.0), (10, 1.02)]), None);
    }

    fn fits(exponential: f64, gamma: (f64, f64), weibull: (f64, f64)) -> Fits {
        let of = |(shape, ks): (f64, f64)| Some(ShapeFit { shape, scale: 1.0, ks });
        Fits {
            n_positive: 10_000.0,
            lognormal: None,
            gamma: of(gamma),
            weibull: of(weibull),
            pareto: None,
            exponential: Some(ExponentialFit { mean: 1.0, ks: exponential }),
            best_by_ks: String::new(),
            ks_rejected_above: 0.0136,
            best_is_rejected: false,
            relative_error: 0.0,
        }
    }

    #[test]
    fn the_nearest_family_that_a_scenario_has() {
        // Not rejected: independent users, though another family is nearer.
        let (gaps, ks, rejected) = gap_model(&fits(0.012, (0.9, 0.008), (0.95, 0.009)));
        assert_eq!((gaps, ks, rejected), (GapModel::Poisson, Some(0.012), Some(false)));
        let (gaps, _, rejected) = gap_model(&fits(0.2, (0.25, 0.03), (0.5, 0.05)));
        assert_eq!((gaps, rejected), (GapModel::Gamma { cv: 2.0 }, Some(true)));
        let (gaps, ..) = gap_model(&fits(0.2, (0.25, 0.06), (0.5, 0.01)));
        let GapModel::Weibull { cv } = gaps else { panic!("{gaps:?}") };
        assert!((cv - 5.0f64.sqrt()).abs() < 1e-9, "{cv}");
        // A shape that no scenario takes is passed over.
        let (gaps, ..) = gap_model(&fits(0.2, (1e-6, 0.01), (0.5, 0.05)));
        assert!(matches!(gaps, GapModel::Weibull { .. }));
    }
}
