//! The review, as a person reads it in 80 columns.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use plimsoll_study::{Band, Level, Provenance, Resource, Review, RowVerdict};
use plimsoll_units::{Bytes, grouped};
use serde_json::{Value, json};

use crate::text::{Heading, aligned};

/// The review as a JSON document.
pub fn review_json(review: &Review, version: &str) -> Value {
    let mut document = json!({ "schema": "plimsoll/review/v1", "version": version });
    if let (Value::Object(document), Ok(Value::Object(body))) =
        (&mut document, serde_json::to_value(review))
    {
        document.extend(body);
    }
    document
}

/// The first screen.
pub fn review_text(review: &Review, heading: Heading) -> String {
    let demand = &review.demand;
    let mut out = heading.apply(&review.name);
    let percent = plain_percent(review.demand_quantile);
    let (as_of, seed, runs, window) = (&review.as_of, review.seed, demand.runs, demand.window_s);
    let _ =
        writeln!(out, "\nas of {as_of} · events at their p{percent} · seed {seed} · {runs} runs");
    let launch = review.launch_from.as_deref();
    let _ = writeln!(out, "p95 over {window} s windows of the busiest hour:");
    let _ = writeln!(out, "  baseline from {}", review.baseline_from);
    let _ = match launch {
        Some(from) => writeln!(out, "  launch from   {from}"),
        None => writeln!(out, "  no event changes the demand within the horizon"),
    };
    out.push('\n');

    let mut header = vec!["demand", "baseline p95"];
    if launch.is_some() {
        header.extend(["launch p95", "change"]);
    }
    let mut rows = Vec::new();
    let mut group = None;
    // The only class is all classes.
    let names: BTreeSet<&str> = demand.rows.iter().filter_map(|row| row.class.as_deref()).collect();
    let single = names.len() == 1;
    for row in demand.rows.iter().filter(|row| row.class.is_some() || !single) {
        let name = row.class.as_deref().unwrap_or("all classes");
        if group != Some(name) {
            if group.is_some() {
                rows.push(vec![String::new()]);
            }
            rows.push(vec![name.to_owned()]);
            group = Some(name);
        }
        let mut cells = vec![format!("  {}", resource_name(row.resource)), show(&row.baseline)];
        if let Some(level) = &row.launch {
            cells.push(show(level));
            cells.push(change(row.baseline.p95_per_s, level.p95_per_s));
        }
        rows.push(cells);
    }
    out.push_str(&aligned(&header, &rows, &[1, 2, 3]));
    let _ = writeln!(
        out,
        "\n± is the {}% interval over {} runs.",
        percent_of_level(review),
        demand.runs
    );

    let thinned = [Some(demand.baseline_hour), demand.launch_hour].into_iter().flatten();
    if let Some(n) = thinned.map(|h| h.tasks_per_draw).max().filter(|n| *n > 1) {
        let _ = writeln!(
            out,
            "Rates are too high to draw every task: one draw stands for {}.",
            grouped(n)
        );
    }
    carries(&mut out, review);
    memory(&mut out, review);
    performance(&mut out, review);
    for (name, column, level) in empty_windows(review) {
        let (peak, mean) = (three_digits(level.peak_per_s), three_digits(level.mean_per_s));
        let _ = writeln!(
            out,
            "Note: `{name}` comes in so few windows that its {column} p95 is 0: {mean} requests/s on average,\n      {peak} requests/s in the fullest window."
        );
    }
    for note in &review.notes {
        let _ = writeln!(out, "Note: {note}.");
    }
    let count = |p: Provenance| review.assumptions.iter().filter(|a| a.provenance == p).count();
    let _ = writeln!(
        out,
        "Rests on {} values from the file and {} defaults: `plimsoll explain FILE` lists them.",
        count(Provenance::Supplied),
        count(Provenance::Modeled)
    );
    out.push_str(
        "This is the demand, what the fleet of today may carry, what fits in memory and the best a replica can do.\n`plimsoll plan FILE` says how many replicas the demand needs, `plimsoll curve FILE` draws the line.\n",
    );
    out
}

fn percent_of_level(review: &Review) -> String {
    let interval = review.demand.rows.first().and_then(|r| r.baseline.p95_interval);
    plain_percent(interval.map_or(0.95, |i| i.level))
}

/// 0.95 as `95`, 0.999 as `99.9`, without the dust of binary fractions.
fn plain_percent(share: f64) -> String {
    ((share * 1e6).round() / 1e4).to_string()
}

/// What the fleet of today may carry, and what is left of that.
fn carries(out: &mut String, review: &Review) {
    let Some(own) = &review.headroom else { return };
    let launch = own.rows.iter().any(|row| row.launch.is_some());
    let mut header = vec!["what today's fleet carries", "baseline p95"];
    if launch {
        header.push("launch p95");
    }
    header.extend(["load line", "headroom", "verdict"]);
    let rows: Vec<Vec<String>> = own
        .rows
        .iter()
        .map(|row| {
            let name = match row.resource {
                "requests" => "requests/s",
                "fresh_prompt_tokens" => "fresh prompt tok/s",
                "output_tokens" => "output tok/s",
                "resident_kv_tokens" => "resident KV tokens",
                _ => "mix, requests/s",
            };
            let number = |x: f64| rounded(x, x / 10.0);
            let mut cells = vec![name.to_owned(), number(row.baseline)];
            if launch {
                cells.push(row.launch.map_or("-".to_owned(), number));
            }
            let line = match (row.load_line, row.beyond) {
                (Some(line), _) => number(line),
                (None, true) => "beyond".to_owned(),
                (None, false) => "none".to_owned(),
            };
            let headroom = row.headroom.map_or("-".to_owned(), |h| format!("{:+.0}%", h * 100.0));
            let mut verdict = match row.verdict {
                RowVerdict::Ok => "ok".to_owned(),
                RowVerdict::Tight => "tight".to_owned(),
                RowVerdict::Shortfall => "SHORTFALL".to_owned(),
            };
            if own.first_to_run_out == Some(row.resource) {
                verdict.push_str("  first to run out");
                if let Some(at) = &row.runs_out_at {
                    let _ = write!(verdict, ", {at}");
                }
            }
            cells.extend([line, headroom, verdict]);
            cells
        })
        .collect();
    let _ = writeln!(out);
    out.push_str(&aligned(&header, &rows, &[1, 2, 3, 4][..if launch { 4 } else { 3 }]));
    let _ = writeln!(
        out,
        "\nA line moves one lever, the rest as in the baseline; `mix` moves all of it and decides. Under 15% is tight. Resident\ntokens are means of a run."
    );
    if let (Some(resource), Some(signal)) = (&own.binding.resource, &own.binding.first_signal) {
        let of = own.binding.of.as_ref().map_or(String::new(), |of| format!(" of {of}"));
        let _ = writeln!(
            out,
            "What binds: {}{of}; first to degrade: {signal}.",
            resource.replace('_', " ")
        );
    }
    for loss in &own.losses {
        let share =
            |a: Option<f64>| a.map_or("unknown".to_owned(), |a| format!("{:.1}%", a * 100.0));
        let kept = match (&loss.fails_by, loss.kept_before) {
            (None, _) => "promises kept".to_owned(),
            (Some(by), true) => format!("PROMISES BROKEN, first {by}"),
            (Some(_), false) => "promises broken, as they are before".to_owned(),
        };
        let _ = writeln!(
            out,
            "Losing {} at the peak: good tasks {} -> {}, {kept}.",
            loss.name,
            share(loss.attainment_before),
            share(loss.attainment_after),
        );
    }
    for note in &own.notes {
        let _ = writeln!(out, "Note: {note}.");
    }
}

/// What fits, pool by pool.
fn memory(out: &mut String, review: &Review) {
    if review.memory.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = review
        .memory
        .iter()
        .zip(&review.resident_kv_tokens_now)
        .map(|(fit, now)| {
            vec![
                fit.name.clone(),
                if fit.fits { "fits" } else { "DOES NOT FIT" }.to_owned(),
                fit.devices.to_string(),
                Bytes::new(fit.weights_bytes).to_string(),
                Bytes::new(fit.available_kv_bytes).to_string(),
                grouped(fit.kv_tokens),
                grouped(*now),
            ]
        })
        .collect();
    let header = ["pool", "memory", "devices", "weights", "KV", "KV tokens", "all now"];
    let _ = writeln!(out);
    out.push_str(&aligned(&header, &rows, &[2, 3, 4, 5, 6]));
    let _ = writeln!(
        out,
        "\nWeights and KV are per device, KV tokens per replica and for the replicas of today."
    );
}

/// The best that one replica of each pool can do.
fn performance(out: &mut String, review: &Review) {
    if review.performance.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = review
        .performance
        .iter()
        .map(|p| {
            let calibrated = p.itl_band.provenance == Provenance::Calibrated;
            let latency = |seconds: Option<f64>, band: &Band| match seconds {
                Some(s) => format!("{} ±{:.0}%", milliseconds(s), band.median_abs_pct),
                None => "-".to_owned(),
            };
            let peak = match (p.peak_output_tokens_per_s, p.peak_fresh_tokens_per_s) {
                (Some(out), _) => format!("{} tok/s", three_digits(out)),
                (None, fresh) => format!("{} prompt tok/s", three_digits(fresh.unwrap_or(0.0))),
            };
            vec![
                p.name.clone(),
                latency(p.ttft_floor_s, &p.ttft_band),
                latency(p.itl_floor_s, &p.itl_band),
                format!("{peak} ±{:.0}%", p.peak_band.median_abs_pct),
                p.peak_bound.to_owned(),
                if calibrated { "calibrated" } else { "modeled" }.to_owned(),
            ]
        })
        .collect();
    let header = ["pool", "TTFT floor", "ITL floor", "peak", "bound by", "from"];
    let _ = writeln!(out);
    out.push_str(&aligned(&header, &rows, &[1, 2, 3]));
    let worst = review
        .performance
        .iter()
        .flat_map(|p| [&p.ttft_band, &p.itl_band, &p.peak_band])
        .map(|band| band.p90_abs_pct)
        .fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "\nFloors: a median request alone on a replica. Peak: a full replica, where requests wait without end: not\na load to plan for. ±: half of such predictions were closer to what was measured; one in ten was off by more,\nup to {worst:.0}% and beyond."
    );
    for p in &review.performance {
        for note in &p.notes {
            let _ = writeln!(out, "Note: pool `{}`: {note}.", p.name);
        }
        if let Some(seconds) = p.kv_transfer_s {
            let _ = writeln!(
                out,
                "`{}` hands a median prompt's KV over in {}.",
                p.name,
                milliseconds(seconds)
            );
        }
    }
}

/// A latency in milliseconds, three digits.
fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms {
        _ if ms < 10.0 => format!("{ms:.2} ms"),
        _ if ms < 100.0 => format!("{ms:.1} ms"),
        _ => format!("{} ms", grouped(ms.round() as u64)),
    }
}

/// Classes whose p95 says nothing because most windows are empty: dumps.
fn empty_windows(review: &Review) -> Vec<(&str, &'static str, Level)> {
    let requests = review.demand.rows.iter().filter(|row| row.resource == Resource::Requests);
    requests
        .filter_map(|row| Some((row.class.as_deref()?, row)))
        .flat_map(|(name, row)| {
            [Some((name, "baseline", row.baseline)), row.launch.map(|l| (name, "launch", l))]
        })
        .flatten()
        .filter(|(_, _, level)| level.p95_per_s == 0.0 && level.mean_per_s > 0.0)
        .collect()
}

fn resource_name(resource: Resource) -> &'static str {
    match resource {
        Resource::Requests => "requests/s",
        Resource::FreshPromptTokens => "fresh prompt tok/s",
        Resource::OutputTokens => "output tok/s",
    }
}

/// A level with its interval, in the digits it has earned: the last one shown is the interval's second.
fn show(level: &Level) -> String {
    let x = level.p95_per_s;
    let Some(interval) = level.p95_interval else { return rounded(x, x / 1000.0) };
    // The lower end is cut off at zero, the upper one never.
    let half = interval.high - x;
    format!("{} ±{}", rounded(x, half), rounded(half, half))
}

/// For a number without an interval.
fn three_digits(x: f64) -> String {
    let text = rounded(x, x / 10.0);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// `x` rounded to the second digit of `scale`.
fn rounded(x: f64, scale: f64) -> String {
    if x >= 1e15 {
        return format!("{x:.3e}");
    }
    if scale <= 0.0 || !scale.is_finite() {
        return if x.fract() == 0.0 { grouped(x as u64) } else { format!("{x:.3}") };
    }
    let digit = 10f64.powi(scale.log10().floor() as i32 - 1);
    if digit >= 1.0 {
        return grouped(((x / digit).round() * digit) as u64);
    }
    let decimals = usize::try_from(-(digit.log10().floor() as i32)).unwrap_or(0).min(6);
    let text = format!("{x:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse::<u64>().map_or_else(|_| whole.to_owned(), grouped);
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

fn change(before: f64, after: f64) -> String {
    if before > 0.0 { format!("x{:.2}", after / before) } else { "new".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_the_digits_they_have_earned() {
        let check = |x: f64, scale: f64, expect: &str| {
            assert_eq!(rounded(x, scale), expect, "{x} ±{scale}")
        };
        check(720_123.0, 4321.0, "720,100");
        check(105.234, 0.48, "105.23");
        check(105.234, 4.8, "105.2");
        check(0.0, 0.0, "0");
        check(12.0, 0.0, "12");
        check(1e14, 1e9, "100,000,000,000,000");
        check(1e25, 1e9, "1.000e25");
    }
}
