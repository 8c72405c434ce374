//! A forecast: a screen with its fan, and a document.

mod file;
mod moment;

use std::fmt::Write as _;

use plimsoll_forecast::Forecast;
use plimsoll_units::grouped;

pub use file::{
    BacktestFile, ClassesBy, ForecastFile, ForecastHead, ForecastSeries, InflectionFile,
    LevelsFile, Point, ScenarioRef,
};
pub use moment::Moment;
pub(crate) use moment::moment;

use crate::chart::Chart;
use crate::plot::Plot;
use crate::profile::item;
use crate::simulate::percent;
use crate::text::{Heading, aligned};

/// Steps of history that a picture shows, for each step ahead.
pub(crate) const SHOWN_BACK: usize = 3;

/// Outliers that a screen names; the document has more.
const OUTLIERS_SHOWN: usize = 5;

/// The first screen.
pub fn forecast_text(file: &ForecastFile, forecast: &Forecast, heading: Heading) -> String {
    let mut out = heading.apply(&file.source);
    let steps = file.series.first().map_or(0, |own| own.points.len());
    let _ = writeln!(
        out,
        "\n{} to {} · {steps} steps of {} · sized for p{} · as of {} · seed {}",
        file.start,
        file.until,
        span(u64::from(file.step_s)),
        level(file.sizing_quantile),
        file.as_of,
        file.seed
    );
    let history = &file.history;
    let missing = match history.missing {
        0 => String::new(),
        n => format!(", {n} of them missing"),
    };
    let _ = writeln!(
        out,
        "history: {} to {}, {} steps{missing} · id {}\n",
        history.from, history.to, history.steps, file.id
    );
    out.push_str(&fan(file, forecast));
    let _ = writeln!(out, "{}", heading.apply("Demand ahead"));
    out.push_str(&series(file));
    for own in &file.inflections {
        let _ = writeln!(out, "\n{}", inflection(own));
    }
    if !file.events.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("Taken from the scenario, not from the past:"));
        for event in &file.events {
            let of = if event.classes.is_empty() {
                "all classes".to_owned()
            } else {
                event.classes.join(", ")
            };
            let mut what = Vec::new();
            for (name, three) in [
                ("rate", event.rate),
                ("prompts", event.prompt),
                ("outputs", event.output),
                ("hit rate", event.cache_hit),
            ] {
                if three.iter().any(|x| (x - 1.0).abs() > 1e-12) {
                    what.push(format!("{name} x {} ({} to {})", three[1], three[0], three[2]));
                }
            }
            if what.is_empty() {
                what.push("nothing".to_owned());
            }
            let text = format!(
                "{} from {} to {}: {} of {of}",
                event.name,
                event.from.short(),
                event.until.short(),
                what.join(", ")
            );
            out.push_str(&item(&text));
        }
    }
    if file.backtest.is_some() {
        let _ = writeln!(out, "\n{}", heading.apply("Back-test"));
        out.push_str(&backtest(file));
    }
    let instead: Vec<String> = shown(file)
        .filter(|own| own.class == "all")
        .filter_map(|own| Some(format!("{}: {}", words(&own.resource), own.instead.as_ref()?)))
        .collect();
    if !instead.is_empty() {
        let _ = writeln!(
            out,
            "\n{}",
            heading.apply("Where another model was better than the one that was meant:")
        );
        instead.iter().for_each(|text| out.push_str(&item(text)));
    }
    if !file.outliers.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("Outliers, kept in the quantiles:"));
        for own in file.outliers.iter().take(OUTLIERS_SHOWN) {
            let text = format!(
                "{} at {}: {} requests/s, {:.1} times what is usual then",
                own.class,
                own.t.short(),
                number(own.requests_per_s),
                own.times
            );
            out.push_str(&item(&text));
        }
    }
    if !file.warnings.is_empty() {
        out.push_str("\nTo know before trusting a number:\n");
        file.warnings.iter().for_each(|warning| out.push_str(&item(warning)));
    }
    out.push_str("\nBursts within a step are not in it: the burst model of a class adds them when a fleet is sized.\n");
    out
}

/// A picture for each resource of all classes: its file and its text.
pub fn forecast_pictures(file: &ForecastFile, forecast: &Forecast) -> Vec<(String, String)> {
    let fans = crate::html::forecast_fans(file, forecast);
    let picture =
        |(resource, fan): (&str, Chart)| (format!("forecast-{resource}.svg"), fan.picture());
    fans.map(picture).collect()
}

fn fan(file: &ForecastFile, forecast: &Forecast) -> String {
    // Tokens bind; where they are not known, requests have to do.
    let wanted = ["output_tokens", "requests"];
    let find = |name: &&str| {
        let both = file.series.iter().zip(&forecast.series);
        both.into_iter().find(|(own, _)| own.class == "all" && own.resource == **name)
    };
    let Some((own, how)) = wanted.iter().find_map(find) else { return String::new() };
    let hours = f64::from(file.step_s) / 3600.0;
    let ahead = own.points.len();
    let back = &how.history[how.history.len().saturating_sub(SHOWN_BACK * ahead)..];
    let from = -(back.len() as f64) * hours;
    let past: Vec<(f64, f64)> = back
        .iter()
        .enumerate()
        .filter(|(_, value)| !value.is_nan())
        .map(|(i, value)| (from + i as f64 * hours, *value))
        .collect();
    let line = |value: fn(&Point) -> f64| -> Vec<(f64, f64)> {
        let steps = own.points.iter().enumerate();
        steps.map(|(i, p)| (i as f64 * hours, value(p))).collect()
    };
    if past.is_empty() || ahead < 2 {
        return String::new();
    }
    let (p95, p99) = (line(|p| p.p95), line(|p| p.p99));
    let all = || past.iter().chain(&p99).map(|point| point.1);
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let plot = Plot::new((75, 11), (from, ahead as f64 * hours), (low, high))
        .line(&past)
        .line(&line(|p| p.p50))
        .line(&p95)
        .dots(&line(|p| p.p80))
        .dots(&p99);
    let mut out = format!(
        "{} ({}) of all classes: what came, then median and p95 as lines, p80 and p99 as dots; hours from {}\n",
        words(&own.resource),
        own.unit,
        file.start
    );
    out.push_str(&plot.text());
    out.push('\n');
    out
}

/// The series that a screen shows: where nobody says what was cached, fresh tokens are prompt tokens, and say the same twice.
pub(crate) fn shown(file: &ForecastFile) -> impl Iterator<Item = &ForecastSeries> {
    file.series.iter().filter(|own| {
        let same = |other: &&ForecastSeries| {
            other.resource == "prompt_tokens"
                && other.class == own.class
                && other.points == own.points
        };
        own.resource != "fresh_tokens" || !file.series.iter().any(|other| same(&other))
    })
}

fn series(file: &ForecastFile) -> String {
    let rows: Vec<Vec<String>> = shown(file)
        .filter_map(|own| {
            let peak = own.points.iter().max_by(|a, b| a.p95.total_cmp(&b.p95))?;
            let n = own.points.len() as f64;
            let mean =
                |value: fn(&Point) -> f64| number(own.points.iter().map(value).sum::<f64>() / n);
            Some(vec![
                own.class.clone(),
                words(&own.resource),
                mean(|p| p.p50),
                mean(|p| p.p80),
                mean(|p| p.p95),
                mean(|p| p.p99),
                number(peak.p50),
                number(peak.p95),
                peak.t.short(),
                own.unit.clone(),
                own.model.clone(),
            ])
        })
        .collect();
    let header = [
        "class", "resource", "p50", "p80", "p95", "p99", "peak p50", "peak p95", "at", "unit",
        "model",
    ];
    aligned(&header, &rows, &[2, 3, 4, 5, 6, 7])
}

fn backtest(file: &ForecastFile) -> String {
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
    let loss = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let tested: Vec<(&ForecastSeries, &BacktestFile)> =
        shown(file).filter_map(|own| Some((own, own.backtest.as_ref()?))).collect();
    let rows: Vec<Vec<String>> = tested
        .iter()
        .map(|(own, test)| {
            let covered =
                |level: &str| test.coverage.get(level).map_or("-".to_owned(), |s| percent(*s));
            let p = test.coverage_p.get("0.95").copied().flatten();
            vec![
                own.class.clone(),
                words(&own.resource),
                maybe(test.wape),
                maybe(test.bias),
                maybe(test.mase),
                test.crps.map_or("-".to_owned(), number),
                loss(test.pinball),
                loss(test.pinball_naive),
                loss(test.pinball_mean),
                loss(test.pinball_chosen_then),
                covered("0.5"),
                covered("0.8"),
                covered("0.9"),
                covered("0.95"),
                p.map_or("-".to_owned(), |p| format!("{p:.2}")),
                covered("0.975"),
                covered("0.99"),
                test.width.zip(test.width_ideal).map_or("-".to_owned(), |(own, ideal)| {
                    if ideal > 0.0 { format!("{:.2}", own / ideal) } else { "-".to_owned() }
                }),
            ]
        })
        .collect();
    let header = [
        "class", "resource", "WAPE", "bias", "MASE", "CRPS", "loss", "naive", "mean", "then",
        "<=p50", "<=p80", "<=p90", "<=p95", "chance", "<=p97.5", "<=p99", "width",
    ];
    let right: Vec<usize> = (2..header.len()).collect();
    let mut out = String::new();
    if let Some((_, first)) = tested.first() {
        let _ = writeln!(
            out,
            "{} origins, {} steps scored, up to {} ahead; forecasts and intervals as they would have been at their origin, models and seasons chosen over all of them",
            first.origins,
            grouped(first.points as u64),
            span(first.leads as u64 * u64::from(file.step_s))
        );
    }
    out.push_str(&aligned(&header, &rows, &right));
    let _ = writeln!(
        out,
        "loss: pinball at p{}, of the seasonal naive and of the mean with intervals of their own beside it, then of the model that had done best by each origin; chance: how likely a share as far off as that of p95 is; width: that of p{} over one chosen with hindsight",
        level(file.sizing_quantile),
        level(file.sizing_quantile)
    );
    let mut leads: Vec<Vec<String>> = Vec::new();
    for (own, test) in tested.iter().filter(|(own, _)| own.class == "all") {
        for lead in &test.by_lead {
            let covered =
                |level: &str| lead.coverage.get(level).map_or("-".to_owned(), |s| percent(*s));
            let p = lead.coverage_p.get("0.95").copied().flatten();
            leads.push(vec![
                words(&own.resource),
                span(lead.until_s),
                covered("0.5"),
                covered("0.8"),
                covered("0.9"),
                covered("0.95"),
                p.map_or("-".to_owned(), |p| format!("{p:.2}")),
                covered("0.975"),
                covered("0.99"),
                lead.steps.to_string(),
            ]);
        }
    }
    if !leads.is_empty() {
        let header = [
            "of all",
            "lead up to",
            "<=p50",
            "<=p80",
            "<=p90",
            "<=p95",
            "chance",
            "<=p97.5",
            "<=p99",
            "steps",
        ];
        out.push('\n');
        out.push_str(&aligned(&header, &leads, &[1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }
    out
}

pub(crate) fn inflection(own: &InflectionFile) -> String {
    let what = words(&own.resource);
    let mut out = match own.crosses_in_s {
        _ if own.now >= own.line => format!(
            "{what} is above its load line of {} {}: {} now",
            number(own.line),
            own.unit,
            number(own.now)
        ),
        Some(at) => format!(
            "WARNING: {what} may cross its load line of {} {} in {}: p{} reaches {} within {}, {} now; a start takes {} nine times in ten",
            number(own.line),
            own.unit,
            span(at),
            level(own.level),
            number(own.most_ahead),
            span(own.ahead_s),
            number(own.now),
            span(own.startup_p90_s.round() as u64)
        ),
        None => format!(
            "{what} stays below its load line of {} {}: p{} reaches {} within {}, {} now",
            number(own.line),
            own.unit,
            level(own.level),
            number(own.most_ahead),
            span(own.ahead_s),
            number(own.now)
        ),
    };
    if own.alarms + own.crossings > 0 {
        let tried = own.tried_at.filter(|at| (at - own.line).abs() > 1e-9);
        let at = tried.map_or(String::new(), |at| {
            format!(" (tried at {}, which the history has crossed)", number(at))
        });
        let _ = write!(
            out,
            "\n  such warnings on the history{at}: {} of {} crossings seen in time{}, {} of {} warnings came to nothing",
            own.caught,
            own.crossings,
            own.warned_ahead_s
                .map_or(String::new(), |s| format!(", {} ahead", span(s.round() as u64))),
            own.false_alarms,
            own.alarms
        );
        if let Some(a_day) = own.false_alarms_per_day {
            let _ = write!(out, ", {a_day:.1} a day");
        }
    }
    out
}

/// A resource as people call it.
pub(crate) fn words(resource: &str) -> String {
    resource.replace("kv", "KV").replace('_', " ")
}

/// A quantile's number, such as 97.5.
pub(crate) fn level(quantile: f64) -> String {
    let percent = (quantile * 1000.0).round() / 10.0;
    percent.to_string()
}

/// A value with as many digits as it deserves.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => grouped(value.round() as u64),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A time as people say it.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        120..7200 => format!("{} min", (seconds as f64 / 60.0).round()),
        7200..172_800 => format!("{} h", trimmed(seconds as f64 / 3600.0)),
        _ => format!("{} days", trimmed(seconds as f64 / 86_400.0)),
    }
}

fn trimmed(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    tenths.to_string()
}
