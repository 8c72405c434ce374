//! Rates by client and window: what is left of a log once requests were counted.

use plimsoll_stats::{Seed, autocorrelation, quantile};
use serde::Serialize;

use super::levels::{Levels, levels};
use super::result::{Keyed, Season};
use super::season::{self, Period};

/// Rates by client and window, such as a gateway's counters hold them.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesInput {
    /// What it is called.
    pub name: String,
    /// The length of a window.
    pub window_s: u64,
    /// Who asks.
    pub clients: Vec<SeriesClient>,
    /// Whether second zero is midnight where the users are.
    pub starts_at_midnight: bool,
    /// For the test of seasonality.
    pub seed: Seed,
}

/// One client of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesClient {
    /// What it is called.
    pub name: String,
    /// Its windows; one that is missing has no requests.
    pub windows: Vec<SeriesWindow>,
}

/// A client's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesWindow {
    /// When it begins, in seconds from the series' origin: a multiple of the window's length.
    pub start_s: u64,
    /// Requests a second.
    pub requests_per_s: f64,
    /// The coefficient of variation of the time between requests.
    pub cv: Option<f64>,
    /// Mean prompt tokens.
    pub prompt_mean: Option<f64>,
    /// Mean output tokens.
    pub output_mean: Option<f64>,
    /// Reasoning tokens over output tokens.
    pub reason_ratio: Option<f64>,
}

/// What a series says of a demand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesProfile {
    /// What it is called.
    pub name: String,
    /// How many clients.
    pub clients: u64,
    /// How many windows, from the first to the last.
    pub windows: u64,
    /// The length of a window.
    pub window_s: u64,
    /// When the first begins.
    pub first_ts: u64,
    /// When the last begins.
    pub last_ts: u64,
    /// Windows of clients with a request.
    pub active_client_windows: u64,
    /// Requests a second of all clients, by window.
    pub rate_rps: Levels,
    /// The same by hour; null where an hour is no whole number of windows, or there is no whole hour.
    pub hourly_rate_rps: Option<Levels>,
    /// Windows in which every client is at zero at once: nobody was counting.
    pub gaps: SeriesGaps,
    /// The share of the variance of hours that the hour of the day explains; null with less than two days, as below.
    pub hour_of_day_eta2: Option<f64>,
    /// The same without the gaps.
    pub hour_of_day_eta2_gaps_masked: Option<f64>,
    /// Whether that is more than chance does, by hour of the day and by day of the week, without the gaps.
    pub seasonality: Option<SeriesSeasonality>,
    /// Mean rate of each hour of the day.
    pub hour_of_day_mean_profile: Option<Vec<f64>>,
    /// The fullest hour over the emptiest.
    pub profile_peak_to_trough: Option<f64>,
    /// Mean rate of each day of a week that begins with the series; null with less than a week.
    pub weekday_index_mean: Option<Vec<f64>>,
    /// How windows follow each other; keys are lags in windows.
    pub acf_rate_10min: Keyed<f64>,
    /// A window over the one before, where that has requests.
    pub window_to_window_ratio: Option<RatioLevels>,
    /// Few clients make the load.
    pub client_share_of_requests: Option<ClientConcentration>,
    /// How clients' own requests are spaced.
    pub client_window_cv: Option<ClientCv>,
    /// Clients whose lengths are known in a window at least.
    pub clients_with_length_data: u64,
    /// Requests whose lengths are known.
    pub share_of_requests_with_length_data: f64,
    /// Prompt tokens a second of requests whose lengths are known; null where none are, as below.
    pub input_tokens_per_s: Option<Levels>,
    /// Mean prompt of a request.
    pub mean_input_tokens: Option<f64>,
    /// The same by window.
    pub window_mean_input_tokens: Option<MeanLevels>,
    /// Output tokens a second.
    pub output_tokens_per_s: Option<Levels>,
    /// Mean output of a request.
    pub mean_output_tokens: Option<f64>,
    /// The same by window.
    pub window_mean_output_tokens: Option<MeanLevels>,
    /// Reasoning tokens over output tokens, mean of requests.
    pub mean_reason_ratio: Option<f64>,
}

/// Windows in which every client is at zero at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesGaps {
    /// How many.
    pub windows: u64,
    /// Where they begin: the first hundred.
    pub starts_s: Vec<u64>,
    /// The mean rate without them.
    pub mean_rate_masked: Option<f64>,
}

/// Whether hours and days differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesSeasonality {
    /// By hour of the day.
    pub hour_of_day: Season,
    /// By day of the week.
    pub day_of_week: Season,
}

/// Ratios of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioLevels {
    /// One in a hundred is smaller.
    pub p1: f64,
    /// One in a hundred is larger.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Shares of the largest clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClientConcentration {
    /// Of the largest.
    pub top1: f64,
    /// Of the five largest.
    pub top5: f64,
    /// Of the ten largest.
    pub top10: f64,
    /// How many, from the largest on, make half.
    pub half_of_requests_from_n_clients: u64,
}

/// Coefficients of variation of clients' windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClientCv {
    /// As a request sees it.
    pub request_weighted_mean: f64,
    /// Windows with requests that are burstier than independent ones.
    pub share_of_active_windows_cv_gt_1: f64,
    /// Half are below.
    pub p50: f64,
    /// One in twenty is above.
    pub p95: f64,
}

/// Means of windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanLevels {
    /// The smallest.
    pub min: f64,
    /// One in twenty is smaller.
    pub p5: f64,
    /// Half are smaller.
    pub p50: f64,
    /// One in twenty is larger.
    pub p95: f64,
    /// The largest.
    pub max: f64,
}

/// Lags in windows.
const LAGS: [usize; 6] = [1, 6, 36, 72, 144, 1008];
const HOUR_S: u64 = 3600;
/// Starts of gaps that are listed.
const STARTS: usize = 100;

/// What a series says.
pub fn series_profile(input: &SeriesInput) -> SeriesProfile {
    let width = input.window_s.max(1);
    let all = || input.clients.iter().flat_map(|client| &client.windows);
    let first = all().map(|window| window.start_s / width).min().unwrap_or(0);
    let last = all().map(|window| window.start_s / width).max();
    let count = last.map_or(0, |last| last - first + 1) as usize;
    let place = |window: &SeriesWindow| (window.start_s / width - first) as usize;
    let active = || all().filter(|window| window.requests_per_s > 0.0);
    let mut rate = vec![0.0; count];
    active().for_each(|window| rate[place(window)] += window.requests_per_s);
    let requests: f64 = rate.iter().sum();

    let gap = |window: &usize| rate[*window] <= 0.0;
    let gaps: Vec<usize> = (0..count).filter(gap).collect();
    let gaps = SeriesGaps {
        windows: gaps.len() as u64,
        starts_s: gaps.iter().take(STARTS).map(|i| (first + *i as u64) * width).collect(),
        mean_rate_masked: ratio(requests, (count - gaps.len()) as f64),
    };

    let hourly = (HOUR_S.is_multiple_of(width)).then(|| hours(&rate, (HOUR_S / width) as usize));
    let hourly = hourly.filter(|hours| !hours.is_empty());
    let whole: Option<Vec<Option<f64>>> =
        hourly.as_ref().map(|hours| hours.iter().map(|hour| Some(hour.mean)).collect());
    let masked: Option<Vec<Option<f64>>> =
        hourly.as_ref().map(|hours| hours.iter().map(|hour| hour.masked).collect());
    let two_days = |hours: &&Vec<Option<f64>>| hours.len() >= 48;
    // The hour of the day that the first window is in.
    let phase = ((first * width) / HOUR_S) as usize;
    let by_hour = whole.as_ref().filter(two_days).map(|hours| season::means(hours, 24, phase));
    let eta2 = |hours: Option<&Vec<Option<f64>>>| {
        hours.filter(two_days).and_then(|hours| season::eta2(hours, 24, phase))
    };
    let days: Option<Vec<Option<f64>>> =
        whole.as_ref().filter(|hours| hours.len() >= 7 * 24).map(|hours| {
            // A day that is not over counts with the hours it has: each hour is of its day.
            season::means_of_runs(hours, 24, phase % 24)
        });
    let by_day = whole.as_ref().filter(|hours| hours.len() >= 7 * 24).map(|hours| {
        let day = |hour: usize| ((phase + hour) / 24) % 7;
        let mut sums = [(0.0, 0.0); 7];
        for (hour, mean) in hours.iter().enumerate() {
            let sum = &mut sums[day(hour)];
            *sum = (sum.0 + mean.unwrap_or(0.0), sum.1 + 1.0);
        }
        sums.iter().map(|(sum, n)| sum / n).collect::<Vec<f64>>()
    });
    let seasonality = masked.as_ref().map(|hours| {
        let clock = input.starts_at_midnight.then_some(phase);
        let hour = Period { length: 24, phase: phase % 24, known: clock.is_some() };
        let hour_of_day = season::test(hours, hour, input.seed, "hour of day");
        let days = days.clone().unwrap_or_default();
        let day = Period { length: 7, phase: 0, known: false };
        SeriesSeasonality {
            hour_of_day,
            day_of_week: season::test(&days, day, input.seed, "day of week"),
        }
    });

    let lags = LAGS.into_iter().filter(|lag| *lag < count);
    let acf = lags.filter_map(|lag| Some((lag.to_string(), autocorrelation(&rate, lag)?)));
    let neighbours: Vec<f64> =
        rate.windows(2).filter(|pair| pair[0] > 0.0).map(|pair| pair[1] / pair[0]).collect();
    let profile_peak_to_trough = by_hour.as_ref().and_then(|hours| peak_to_trough(hours));

    let known =
        |window: &&SeriesWindow| window.prompt_mean.is_some() && window.output_mean.is_some();
    let with_lengths = |client: &&SeriesClient| client.windows.iter().any(|w| known(&w));
    let mut known_rate = vec![0.0; count];
    active().filter(known).for_each(|w| known_rate[place(w)] += w.requests_per_s);
    let tokens = |mean: fn(&SeriesWindow) -> Option<f64>| {
        let mut sums = vec![0.0; count];
        for window in active().filter(known) {
            sums[place(window)] += window.requests_per_s * mean(window).unwrap_or(0.0);
        }
        let total: f64 = sums.iter().sum();
        let mean = ratio(total, known_rate.iter().sum());
        let means: Vec<f64> =
            sums.iter().zip(&known_rate).filter_map(|(sum, rate)| ratio(*sum, *rate)).collect();
        (mean.and_then(|_| levels(&sums)), mean, mean_levels(&means))
    };
    let (input_tokens_per_s, mean_input_tokens, window_mean_input_tokens) =
        tokens(|window| window.prompt_mean);
    let (output_tokens_per_s, mean_output_tokens, window_mean_output_tokens) =
        tokens(|window| window.output_mean);
    let (reasoned, reasoners) = active().fold((0.0, 0.0), |(sum, rate), window| {
        window.reason_ratio.map_or((sum, rate), |ratio| {
            (sum + ratio * window.requests_per_s, rate + window.requests_per_s)
        })
    });

    SeriesProfile {
        name: input.name.clone(),
        clients: input.clients.len() as u64,
        windows: count as u64,
        window_s: input.window_s,
        first_ts: first * width,
        last_ts: last.unwrap_or(0) * width,
        active_client_windows: active().count() as u64,
        rate_rps: levels(&rate).unwrap_or_else(Levels::none),
        hourly_rate_rps: whole
            .as_ref()
            .and_then(|hours| levels(&hours.iter().flatten().copied().collect::<Vec<_>>())),
        gaps,
        hour_of_day_eta2: eta2(whole.as_ref()),
        hour_of_day_eta2_gaps_masked: eta2(masked.as_ref()),
        seasonality,
        hour_of_day_mean_profile: by_hour,
        profile_peak_to_trough,
        weekday_index_mean: by_day,
        acf_rate_10min: Keyed(acf.collect()),
        window_to_window_ratio: ratio_levels(&neighbours),
        client_share_of_requests: concentration(input),
        client_window_cv: client_cv(active()),
        clients_with_length_data: input.clients.iter().filter(with_lengths).count() as u64,
        share_of_requests_with_length_data: ratio(known_rate.iter().sum(), requests).unwrap_or(0.0),
        input_tokens_per_s,
        mean_input_tokens,
        window_mean_input_tokens,
        output_tokens_per_s,
        mean_output_tokens,
        window_mean_output_tokens,
        mean_reason_ratio: ratio(reasoned, reasoners),
    }
}

/// An hour of several windows.
struct Hour {
    mean: f64,
    /// Of the windows that are no gaps.
    masked: Option<f64>,
}

/// Whole hours; what does not fill one is left out at the end.
fn hours(rate: &[f64], windows: usize) -> Vec<Hour> {
    rate.chunks_exact(windows)
        .map(|hour| {
            let sum: f64 = hour.iter().sum();
            let counted = hour.iter().filter(|rate| **rate > 0.0).count();
            Hour { mean: sum / windows as f64, masked: ratio(sum, counted as f64) }
        })
        .collect()
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

fn peak_to_trough(parts: &[f64]) -> Option<f64> {
    let most = parts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    ratio(most, parts.iter().copied().fold(f64::INFINITY, f64::min))
}

fn ratio_levels(values: &[f64]) -> Option<RatioLevels> {
    Some(RatioLevels {
        p1: quantile(values, 0.01)?,
        p99: quantile(values, 0.99)?,
        max: quantile(values, 1.0)?,
    })
}

fn mean_levels(values: &[f64]) -> Option<MeanLevels> {
    Some(MeanLevels {
        min: quantile(values, 0.0)?,
        p5: quantile(values, 0.05)?,
        p50: quantile(values, 0.5)?,
        p95: quantile(values, 0.95)?,
        max: quantile(values, 1.0)?,
    })
}

fn concentration(input: &SeriesInput) -> Option<ClientConcentration> {
    let own = |client: &SeriesClient| -> f64 {
        client.windows.iter().map(|window| window.requests_per_s.max(0.0)).sum()
    };
    let mut shares: Vec<f64> = input.clients.iter().map(own).collect();
    shares.sort_by(|a, b| b.total_cmp(a));
    let total: f64 = shares.iter().sum();
    let top = |n: usize| ratio(shares.iter().take(n).sum(), total);
    Some(ClientConcentration {
        top1: top(1)?,
        top5: top(5)?,
        top10: top(10)?,
        half_of_requests_from_n_clients: super::half_from(&shares),
    })
}

fn client_cv<'a>(active: impl Iterator<Item = &'a SeriesWindow>) -> Option<ClientCv> {
    let known: Vec<(f64, f64)> =
        active.filter_map(|window| Some((window.cv?, window.requests_per_s))).collect();
    let cvs: Vec<f64> = known.iter().map(|(cv, _)| *cv).collect();
    let weighted: f64 = known.iter().map(|(cv, rate)| cv * rate).sum();
    Some(ClientCv {
        request_weighted_mean: ratio(weighted, known.iter().map(|(_, rate)| rate).sum())?,
        share_of_active_windows_cv_gt_1: cvs.iter().filter(|cv| **cv > 1.0).count() as f64
            / cvs.len() as f64,
        p50: quantile(&cvs, 0.5)?,
        p95: quantile(&cvs, 0.95)?,
    })
}
