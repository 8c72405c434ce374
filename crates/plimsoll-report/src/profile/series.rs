//! Rates by client and window, where a log holds no requests.

use std::fmt::Write as _;

use plimsoll_study::{Levels, MeanLevels, SeriesProfile};

use super::class::season;
use super::words::{count, duration, few, labelled, many, narrow, percent, sparkline};
use crate::text::{Heading, aligned};

/// A series in words.
pub(super) fn text(series: &SeriesProfile, heading: Heading) -> String {
    let width = duration(series.window_s as f64);
    let mut out = format!(
        "{}\n{} · {} of {width}, {} together · {} requests/s\n\n",
        heading.apply(&series.name),
        many(series.clients, "client"),
        many(series.windows, "window"),
        duration((series.windows * series.window_s) as f64),
        few(series.rate_rps.levels.mean)
    );
    let of = [
        (format!("requests/s, {width}"), Some(&series.rate_rps)),
        ("requests/s, 1 h".to_owned(), series.hourly_rate_rps.as_ref()),
        (format!("prompt tok/s, {width}"), series.input_tokens_per_s.as_ref()),
        (format!("output tok/s, {width}"), series.output_tokens_per_s.as_ref()),
    ];
    let rows: Vec<Vec<String>> =
        of.iter().filter_map(|(what, levels)| Some(level_row(what, (*levels)?))).collect();
    let header = ["", "mean", "median", "p95", "p99", "max", "peak/mean", "windows"];
    out.push_str(&aligned(&header, &rows, &[1, 2, 3, 4, 5, 6, 7]));
    if series.hourly_rate_rps.is_none() {
        out.push_str(&labelled("hours", "unknown: windows do not make whole hours"));
    }
    out.push('\n');
    out.push_str(&labelled("gaps", &gaps(series)));
    match &series.seasonality {
        Some(seasons) => {
            out.push_str(&season("hour of the day", &seasons.hour_of_day));
            out.push_str(&season("day of the week", &seasons.day_of_week));
        }
        None => out.push_str(&labelled("hours and days", "unknown: there is no whole hour")),
    }
    if let Some(hours) = &series.hour_of_day_mean_profile {
        let peak = series.profile_peak_to_trough.map_or("unknown".to_owned(), few);
        let text = format!("{}, the fullest {peak} times the emptiest", sparkline(hours));
        out.push_str(&labelled("mean hours from second zero on", &text));
    }
    if let Some(days) = &series.weekday_index_mean {
        out.push_str(&labelled("mean days from the first on", &sparkline(days)));
    }
    if !series.acf_rate_10min.0.is_empty() {
        let lags: Vec<String> = series
            .acf_rate_10min
            .iter()
            .map(|(lag, acf)| {
                let lag: f64 = lag.parse().unwrap_or(0.0);
                format!("{acf:.2} after {}", duration(lag * series.window_s as f64))
            })
            .collect();
        out.push_str(&labelled("windows go with those before them by", &lags.join(", ")));
    }
    if let Some(ratio) = &series.window_to_window_ratio {
        let _ = writeln!(
            out,
            "a window over the one before: {} at p1, {} at p99, {} at most",
            few(ratio.p1),
            few(ratio.p99),
            few(ratio.max)
        );
    }
    let text = match &series.client_share_of_requests {
        Some(share) => format!(
            "half of the requests are of {} of {}; the largest has {}, the largest ten {}",
            share.half_of_requests_from_n_clients,
            count(series.clients as f64),
            percent(share.top1),
            percent(share.top10)
        ),
        None => "unknown: no client has a request".to_owned(),
    };
    out.push_str(&labelled("clients", &text));
    let text = match &series.client_window_cv {
        Some(cv) => format!(
            "CV {} as a request sees it, {} at the median, {} at p95; above 1 in {} of clients' windows",
            few(cv.request_weighted_mean),
            few(cv.p50),
            few(cv.p95),
            percent(cv.share_of_active_windows_cv_gt_1)
        ),
        None => "unknown: no window says it".to_owned(),
    };
    out.push_str(&labelled("time between a client's requests", &text));
    out.push_str(&lengths(series));
    out
}

fn level_row(what: &str, levels: &Levels) -> Vec<String> {
    let of = &levels.levels;
    let mut row = vec![what.to_owned()];
    row.extend([of.mean, of.p50, of.p95, of.p99, of.max].map(few));
    row.push(of.peak_to_mean.map_or("-".to_owned(), few));
    row.push(count(levels.n_windows as f64));
    row
}

fn gaps(series: &SeriesProfile) -> String {
    if series.gaps.windows == 0 {
        return "none: there is no window in which all clients are at zero".to_owned();
    }
    let first = series.gaps.starts_s.first().map_or_else(String::new, |start| {
        format!(", the first after {}", duration(start.saturating_sub(series.first_ts) as f64))
    });
    let masked = series
        .gaps
        .mean_rate_masked
        .map_or_else(String::new, |mean| format!("; without them {} requests/s", few(mean)));
    format!(
        "{} in which all clients are at zero at once, {} of them{first}{masked}",
        many(series.gaps.windows, "window"),
        narrow(series.gaps.windows as f64 / series.windows.max(1) as f64)
    )
}

fn lengths(series: &SeriesProfile) -> String {
    if series.mean_input_tokens.is_none() && series.mean_output_tokens.is_none() {
        return labelled("lengths", "unknown: no window says them");
    }
    let mut out = labelled(
        "lengths",
        &format!(
            "known of {} of requests, {} of {} clients",
            percent(series.share_of_requests_with_length_data),
            count(series.clients_with_length_data as f64),
            count(series.clients as f64)
        ),
    );
    let of = [
        ("prompt", series.mean_input_tokens, &series.window_mean_input_tokens),
        ("output", series.mean_output_tokens, &series.window_mean_output_tokens),
    ];
    for (what, mean, windows) in of {
        let Some(mean) = mean else { continue };
        let drift = windows.as_ref().map_or_else(String::new, |w: &MeanLevels| {
            format!("; of a window {} (p5) to {} (p95)", few(w.p5), few(w.p95))
        });
        let _ = writeln!(out, "  mean {what} {} tokens{drift}", few(mean));
    }
    if let Some(share) = series.mean_reason_ratio {
        let _ = writeln!(out, "  reasoning {} of outputs", percent(share));
    }
    out
}
