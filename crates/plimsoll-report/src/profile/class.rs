//! A class, or all rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_study::{
    Bursts, ClassProfile, Clients, Failures, Fits, Lengths, PrefixReuse, ResidentLevels, Season,
    SeasonVerdict, SilenceKind, Silences, WindowLevels, Windows,
};

use super::words::{
    bar, count, duration, few, labelled, line, many, narrow, percent, sparkline, window,
};
use crate::text::{Heading, aligned};

/// Everything that is known.
pub(super) fn full(class: &ClassProfile, heading: Heading) -> String {
    let mut out = head(class, heading);
    let parts = [
        over_time(class),
        windows(class, &["1", "10", "60", "300", "3600"]) + &fresh(class),
        lengths(class) + OF_A_TOKEN,
        histogram(class),
        arrivals(class),
        poisson(class),
        queue(class),
        memory(class),
        reuse(class.prefix_reuse.as_ref()),
        seasons(class),
        ends(class),
        clients(class.clients.as_ref(), class.known.client),
        budget(class),
    ];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        out.push('\n');
        out.push_str(part);
    }
    out
}

/// What a class has of its own.
pub(super) fn short(class: &ClassProfile, heading: Heading) -> String {
    let mut out = head(class, heading);
    out.push_str(&over_time(class));
    out.push_str(&windows(class, &["10", "60"]));
    out.push_str(&lengths(class));
    out.push_str(&arrivals(class));
    out.push_str(&ends(class));
    out
}

const OF_A_TOKEN: &str = "(of a token: the mean length of what a token is in; top: share of tokens in the longest requests)\n";

fn head(class: &ClassProfile, heading: Heading) -> String {
    let mut out = many(class.rows, "row");
    if (class.requests - class.rows as f64).abs() >= 0.5 {
        let _ = write!(out, " that stand for {} requests", count(class.requests));
    }
    match class.span_s {
        Some(span) => {
            let _ = write!(out, " over {}", duration(span));
        }
        None => out.push_str(" without a common clock"),
    }
    for (rate, what) in [
        (class.mean_rps_rows_over_span, "requests/s"),
        (class.prompt_tokens_per_s, "prompt tok/s"),
        (class.output_tokens_per_s, "output tok/s"),
    ] {
        let _ = match rate {
            Some(rate) => write!(out, " · {} {what}", few(rate)),
            // Without a clock none is known, which is said once.
            None if class.span_s.is_none() => Ok(()),
            None => write!(out, " · {what} unknown"),
        };
    }
    format!("{}\n{}", heading.apply(&class.name), line(&out))
}

fn over_time(class: &ClassProfile) -> String {
    let Some(shape) = &class.shape else { return String::new() };
    let mut out = format!(
        "over time, {} stretches of {}, each bar from zero to the fullest:\n",
        shape.requests_per_s.len(),
        duration(shape.stretch_s as f64)
    );
    for (what, rates) in [
        ("requests/s", Some(&shape.requests_per_s)),
        ("prompt tok/s", shape.prompt_tokens_per_s.as_ref()),
        ("output tok/s", shape.output_tokens_per_s.as_ref()),
    ] {
        let Some(rates) = rates else { continue };
        let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let high = rates.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "  {what:<13}{} {} to {}",
            sparkline(rates),
            few(if low.is_finite() { low } else { 0.0 }),
            few(high)
        );
    }
    out
}

fn windows(class: &ClassProfile, keys: &[&str]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut short, mut long) = (Vec::new(), Vec::new());
    let span = class.span_s.unwrap_or(0.0);
    for key in keys {
        match class.windows.get(key).and_then(Option::as_ref) {
            Some(windows) => rows.extend(window_rows(key, windows)),
            None if key.parse().is_ok_and(|width: f64| span >= 2.0 * width) => {
                long.push(window(key));
            }
            None => short.push(window(key)),
        }
    }
    let mut out = String::new();
    if !rows.is_empty() {
        let header = ["window", "", "mean/s", "p95/s", "p99/s", "max/s", "peak/mean", "dispersion"];
        out.push_str(&aligned(&header, &rows, &[2, 3, 4, 5, 6, 7]));
    }
    if class.span_s.is_none() {
        out.push_str(&labelled("windows", "unknown: rows have no common clock"));
        return out;
    }
    for (missing, why) in [(short, "fewer than two are complete"), (long, "too many to count")] {
        if !missing.is_empty() {
            let why = format!("none of {}: {why}", missing.join(", "));
            out.push_str(&labelled("windows", &why));
        }
    }
    out
}

fn fresh(class: &ClassProfile) -> String {
    if class.known.cached >= 1.0 {
        return String::new();
    }
    let said = if class.known.cached > 0.0 {
        format!("{} of rows say", percent(class.known.cached))
    } else {
        "no row says".to_owned()
    };
    let why = format!("unknown: {said} how much of the prompt was cached");
    labelled("fresh prompt tokens", &why)
}

fn window_rows(key: &str, windows: &Windows) -> Vec<Vec<String>> {
    let width: f64 = key.parse().unwrap_or(1.0);
    let levels = [
        ("requests", Some(&windows.requests)),
        ("prompt tok", windows.prompt_tokens.as_ref()),
        ("fresh tok", windows.fresh_tokens.as_ref()),
        ("output tok", windows.output_tokens.as_ref()),
    ];
    let mut labels = vec![window(key), many(windows.n_windows, "window")];
    if windows.n_empty > 0 {
        labels.push(format!("{} empty", count(windows.n_empty as f64)));
    }
    let known = levels.into_iter().filter_map(|(what, levels)| Some((what, levels?)));
    let mut rows: Vec<Vec<String>> =
        known.map(|(what, levels)| level_row(what, levels, width)).collect();
    while rows.len() < labels.len() {
        rows.push(vec![String::new(); 8]);
    }
    for (row, label) in rows.iter_mut().zip(labels) {
        row[0] = label;
    }
    rows
}

fn level_row(what: &str, levels: &WindowLevels, width: f64) -> Vec<String> {
    let ratio = |value: Option<f64>| value.map_or("-".to_owned(), few);
    let mut row = vec![String::new(), what.to_owned()];
    let totals = [levels.mean, levels.p95, levels.p99, levels.max];
    row.extend(totals.map(|total| few(total / width)));
    row.extend([ratio(levels.peak_to_mean), ratio(levels.index_of_dispersion)]);
    row
}

fn lengths(class: &ClassProfile) -> String {
    let of = [("prompt", &class.prompt), ("output", &class.output), ("both", &class.total)];
    let rows: Vec<Vec<String>> =
        of.iter().filter_map(|(what, lengths)| Some(length_row(what, lengths.as_ref()?))).collect();
    let mut out = String::new();
    if !rows.is_empty() {
        let header =
            ["tokens", "mean", "median", "p95", "p99", "max", "of a token", "top 1%", "top 10%"];
        out.push_str(&aligned(&header, &rows, &[1, 2, 3, 4, 5, 6, 7, 8]));
    }
    for (what, lengths) in &of[..2] {
        if lengths.is_none() {
            out.push_str(&labelled(&format!("{what} lengths"), "unknown: no row says them"));
        }
    }
    if let Some(share) = class.reasoning_share_of_output {
        let _ = writeln!(out, "reasoning: {} of output tokens", percent(share));
    }
    if let Some(correlation) = &class.correlation_prompt_output {
        let of = |value: Option<f64>| value.map_or("unknown".to_owned(), |r| format!("{r:.2}"));
        let sample = if correlation.exact {
            String::new()
        } else {
            format!(
                "; ranks and logarithms are of a sample of {} rows",
                count(correlation.rows as f64)
            )
        };
        let varies = if correlation.pearson.is_none() { "; one of them never varies" } else { "" };
        let text = format!(
            "correlation {} (Pearson), {} (ranks), {} (logarithms){varies}{sample}",
            of(correlation.pearson),
            of(correlation.spearman),
            of(correlation.pearson_log)
        );
        out.push_str(&labelled("prompt and output", &text));
    }
    for (what, fits) in [("prompts", &class.prompt_fit), ("outputs", &class.output_fit)] {
        if let Some(fits) = fits {
            out.push_str(&labelled(what, &nearest(fits)));
        }
    }
    out
}

fn length_row(what: &str, lengths: &Lengths) -> Vec<String> {
    let share = |share: Option<f64>| share.map_or("-".to_owned(), narrow);
    let mut row = vec![what.to_owned()];
    let levels = [lengths.mean, lengths.p50, lengths.p95, lengths.p99, lengths.max];
    row.extend(levels.map(few));
    row.push(lengths.size_biased_mean.map_or("-".to_owned(), few));
    row.extend([share(lengths.top1pct_share_of_tokens), share(lengths.top10pct_share_of_tokens)]);
    row
}

/// The nearest family, and whether it describes or only ranks.
fn nearest(fits: &Fits) -> String {
    let ks = match fits.best_by_ks.as_str() {
        "lognormal" => fits.lognormal.map(|fit| fit.ks),
        "gamma" => fits.gamma.map(|fit| fit.ks),
        "weibull" => fits.weibull.map(|fit| fit.ks),
        "pareto" => fits.pareto.map(|fit| fit.ks),
        "exponential" => fits.exponential.map(|fit| fit.ks),
        _ => None,
    };
    let verdict = if fits.best_is_rejected { "rejected" } else { "not rejected" };
    let above = few(fits.ks_rejected_above);
    let ks = ks.map_or("unknown".to_owned(), few);
    format!("nearest family {}, KS distance {ks}, {verdict} at 5% (above {above})", fits.best_by_ks)
}

const BAR: usize = 20;

/// Lengths in powers of two: how many requests, and how many of the tokens.
fn histogram(class: &ClassProfile) -> String {
    let requests: f64 = class.joint.iter().map(|bin| bin.requests).sum();
    if requests <= 0.0 {
        return String::new();
    }
    let mut prompts: BTreeMap<(u64, u64), (f64, f64)> = BTreeMap::new();
    let mut outputs = prompts.clone();
    for bin in &class.joint {
        let prompt = prompts.entry((bin.prompt_from, bin.prompt_to)).or_default();
        *prompt = (prompt.0 + bin.requests, prompt.1 + bin.prompt_tokens);
        let output = outputs.entry((bin.output_from, bin.output_to)).or_default();
        *output = (output.0 + bin.requests, output.1 + bin.output_tokens);
    }
    let mut out = String::new();
    for (i, (what, bins)) in [("prompt", &prompts), ("output", &outputs)].into_iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let tokens: f64 = bins.values().map(|(_, tokens)| tokens).sum();
        let share = |tokens_in: f64| if tokens > 0.0 { tokens_in / tokens } else { 0.0 };
        let most = |of: &dyn Fn(&(f64, f64)) -> f64| bins.values().map(of).fold(0.0, f64::max);
        let (by_request, by_token) = (most(&|bin| bin.0 / requests), most(&|bin| share(bin.1)));
        let of = |part: f64, most: f64| if most > 0.0 { part / most } else { 0.0 };
        let rows: Vec<Vec<String>> = bins
            .iter()
            .map(|((from, to), (own, held))| {
                let (own, held) = (own / requests, share(*held));
                let range = if from == to {
                    count(*from as f64)
                } else {
                    format!("{} to {}", count(*from as f64), count(*to as f64))
                };
                vec![
                    range,
                    narrow(own),
                    format!("{:<BAR$}", bar(of(own, by_request), BAR)),
                    narrow(held),
                    bar(of(held, by_token), BAR),
                ]
            })
            .collect();
        let header = [format!("{what} tokens"), "requests".into(), String::new(), "tokens".into()];
        let header: Vec<&str> = header.iter().map(String::as_str).chain([""]).collect();
        out.push_str(&aligned(&header, &rows, &[0, 1, 3]));
    }
    out
}

fn arrivals(class: &ClassProfile) -> String {
    let mut out = String::new();
    match &class.inter_arrival {
        Some(gaps) => {
            let cv = gaps.cv.map_or("unknown: all come at once".to_owned(), few);
            let exact = if gaps.exact {
                String::new()
            } else {
                format!(" (percentiles within {})", percent(gaps.relative_error))
            };
            let text = format!(
                "mean {}, CV {cv}, median {}, p95 {}, p99 {}, longest {}, {} of no time{exact}",
                duration(gaps.mean),
                duration(gaps.p50),
                duration(gaps.p95),
                duration(gaps.p99),
                duration(gaps.max),
                count(gaps.zeros as f64)
            );
            out.push_str(&labelled("time between arrivals", &text));
        }
        None => {
            let why =
                if class.span_s.is_none() { "rows have no common clock" } else { "too few rows" };
            out.push_str(&labelled("time between arrivals", &format!("unknown: {why}")));
        }
    }
    if let Some(fits) = &class.inter_arrival_fit {
        out.push_str(&labelled("  gaps above zero", &nearest(fits)));
    }
    if let Some(tick) = &class.tick {
        let text = format!(
            "stamps are {} apart, {} of them for {} rows",
            duration(tick.seconds),
            count(tick.stamps as f64),
            count(tick.rows as f64)
        );
        out.push_str(&labelled("clock", &text));
    }
    if let Some(bursts) = &class.bursts {
        out.push_str(&labelled("bursts", &burst_line(bursts)));
    }
    if let Some(silences) = &class.silences {
        out.push_str(&labelled("silences", &silence_line(silences)));
    }
    out
}

fn burst_line(bursts: &Bursts) -> String {
    let above = format!(
        "windows of {} with more than {} prompt tokens",
        duration(bursts.window_s as f64),
        count(bursts.above_tokens)
    );
    match (bursts.length_s_p50, bursts.length_s_p95, bursts.length_s_max) {
        (Some(p50), Some(p95), Some(max)) => format!(
            "{} of {above}: {} long at the median, p95 {}, at most {}; {} of the time, {} of prompt tokens",
            many(bursts.count, "episode"),
            duration(p50),
            duration(p95),
            duration(max),
            percent(bursts.share_of_time),
            percent(bursts.share_of_tokens)
        ),
        _ => format!("none: no {above}"),
    }
}

fn silence_line(silences: &Silences) -> String {
    if silences.count == 0 {
        return "none that the rate around them makes improbable".to_owned();
    }
    let longest = silences.longest.iter().max_by(|a, b| a.length_s.total_cmp(&b.length_s));
    let longest = longest.map_or_else(String::new, |silence| {
        let kind = match silence.kind {
            SilenceKind::CollectionGap => "a gap in the collection",
            SilenceKind::CannotTell => "idle or not collected, which cannot be told",
        };
        format!(
            "; the longest {} after {}, where {} requests were to be expected: {kind}",
            duration(silence.length_s),
            duration(silence.start_s),
            few(silence.expected_requests)
        )
    });
    format!(
        "{}, {} together, {} of the time, {} of them gaps in the collection{longest}",
        many(silences.count, "spell"),
        duration(silences.total_s),
        percent(silences.share_of_time),
        count(silences.collection_gaps as f64)
    )
}

fn poisson(class: &ClassProfile) -> String {
    let mut rows = Vec::new();
    for (key, comparison) in class.poisson_comparison.iter() {
        let Some(comparison) = comparison else { continue };
        let of = [("prompt", &comparison.prompt_tokens), ("output", &comparison.output_tokens)];
        for (what, tokens) in of {
            let Some(tokens) = tokens else { continue };
            let times = |factor: Option<f64>| factor.map_or("-".to_owned(), few);
            rows.push(vec![
                window(key),
                what.to_owned(),
                count(tokens.actual_p99),
                count(tokens.poisson_fixed_mean_length_p99),
                times(tokens.actual_over_poisson_fixed),
                narrow(tokens.share_of_windows_above_poisson_fixed_p99),
                count(tokens.compound_poisson_empirical_length_p99),
                times(tokens.actual_over_compound),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "tokens, p99",
        "",
        "as logged",
        "Poisson, mean length",
        "times",
        "above",
        "Poisson, same lengths",
        "times",
    ];
    aligned(&header, &rows, &[2, 3, 4, 5, 6, 7])
}

fn queue(class: &ClassProfile) -> String {
    let queue = &class.prefill_queue;
    if let Some(reason) = &queue.reason {
        return labelled("prefill queue", &format!("not worked out: {reason}"));
    }
    let rows: Vec<Vec<String>> = queue
        .wait_s_by_utilisation
        .iter()
        .map(|(load, waits)| {
            let load: f64 = load.parse().unwrap_or(0.0);
            let p99 = |wait: plimsoll_study::QueueWait| few(wait.p99);
            vec![
                format!("loaded to {:.0}%: p99 wait, s", load * 100.0),
                p99(waits.trace),
                p99(waits.poisson_same_lengths),
                p99(waits.poisson_mean_length),
            ]
        })
        .chain(queue.capacity_over_mean_for_p99_wait_le_s.iter().map(|(wait, sizes)| {
            let wait: f64 = wait.parse().unwrap_or(0.0);
            vec![
                format!("size for p99 wait of {}, over mean", duration(wait)),
                few(sizes.trace),
                few(sizes.poisson_same_lengths),
                few(sizes.poisson_mean_length),
            ]
        }))
        .collect();
    if rows.is_empty() {
        return labelled("prefill queue", "not worked out: prompts are unknown");
    }
    let header =
        ["one prefill server", "as logged", "Poisson, same lengths", "Poisson, mean length"];
    aligned(&header, &rows, &[1, 2, 3])
}

fn memory(class: &ClassProfile) -> String {
    let mut out = String::new();
    if let Some(context) = &class.kv_resident_context {
        let weighted = context.output_weighted_mean.map_or("unknown".to_owned(), few);
        let ratio =
            context.ratio.map_or_else(String::new, |ratio| format!(", {} times", few(ratio)));
        let text = format!(
            "{weighted} tokens on average{ratio} the mean prompt and half the mean output ({})",
            few(context.naive_mean_prompt_plus_half_mean_output)
        );
        out.push_str(&labelled("context while decoding", &text));
    }
    let resident = &class.resident_kv_tokens;
    for (label, levels) in [
        ("resident KV tokens, measured", &resident.measured),
        ("resident KV tokens, modelled", &resident.modelled),
    ] {
        if let Some(levels) = levels {
            out.push_str(&labelled(label, &resident_line(levels)));
        }
    }
    if let Some(reason) = &resident.reason {
        let none = resident.measured.is_none() && resident.modelled.is_none();
        // With one of them there, the reason begins with the other.
        let (label, why) = match reason.split_once(": ").filter(|_| !none) {
            Some((which, why)) => (format!("resident KV tokens, {which}"), why),
            None => ("resident KV tokens".to_owned(), reason.as_str()),
        };
        out.push_str(&labelled(&label, &format!("unknown: {why}")));
    }
    out
}

fn resident_line(levels: &ResidentLevels) -> String {
    let basis = levels.basis.as_ref().map_or_else(String::new, |basis| format!(", by {basis}"));
    let share = if levels.share_of_rows < 1.0 {
        format!(", of {} of rows", percent(levels.share_of_rows))
    } else {
        String::new()
    };
    format!(
        "mean {}, p95 {}, p99 {}, most {} over {} windows of {}{share}{basis}",
        count(levels.mean),
        count(levels.p95),
        count(levels.p99),
        count(levels.max),
        count(levels.n_windows as f64),
        duration(levels.window_s as f64)
    )
}

fn reuse(reuse: Option<&PrefixReuse>) -> String {
    let Some(reuse) = reuse else {
        return labelled("prefix reuse", "unknown: the log does not name the blocks of prompts");
    };
    let mut out = format!(
        "prefix reuse: blocks of {} tokens, {} of {} different\n",
        count(reuse.block_tokens as f64),
        count(reuse.unique_blocks as f64),
        count(reuse.total_blocks as f64)
    );
    let sizes = reuse.lru.iter().map(|(blocks, levels)| {
        let blocks: f64 = blocks.parse().unwrap_or(0.0);
        (count(blocks), count(blocks * reuse.block_tokens as f64), levels)
    });
    let all = ("all".to_owned(), "any".to_owned(), &reuse.infinite);
    let rows: Vec<Vec<String>> = sizes
        .chain([all])
        .map(|(blocks, tokens, levels)| {
            vec![
                blocks,
                tokens,
                narrow(levels.prefix_token_hit_rate),
                format!("{:<BAR$}", bar(levels.prefix_token_hit_rate, BAR)),
                narrow(levels.prefix_block_hit_rate),
                count(levels.requests_fully_cached as f64),
            ]
        })
        .collect();
    let header = ["cache blocks", "tokens", "of prompt tokens", "", "of blocks", "whole prompts"];
    out.push_str(&aligned(&header, &rows, &[0, 1, 2, 4, 5]));
    if let Some(sessions) = &reuse.sessions {
        let rates = &sessions.session_token_hit_rate;
        let ratio = |value: Option<f64>| value.map_or("unknown".to_owned(), few);
        let text = format!(
            "{} of them; of a session's prompt tokens {} repeat (mean), {} at the median, {} at p5; prompt to output {} raw, {} without repeats",
            count(sessions.sessions as f64),
            percent(rates.mean),
            percent(rates.p50),
            percent(rates.p5),
            ratio(sessions.prompt_to_output_ratio_raw),
            ratio(sessions.prompt_to_output_ratio_uncached)
        );
        out.push_str(&labelled("within sessions", &text));
    }
    out
}

fn seasons(class: &ClassProfile) -> String {
    let Some(seasons) = &class.seasonality else {
        return labelled("hours and days", "unknown: rows have no common clock");
    };
    season("hour of the day", &seasons.hour_of_day)
        + &season("day of the week", &seasons.day_of_week)
}

/// A period, with its parts where it is shown.
pub(super) fn season(label: &str, season: &Season) -> String {
    let by = || {
        let eta2 = season.eta2.map_or("an unknown share".to_owned(), percent);
        let p = season.p_value.map_or("unknown".to_owned(), few);
        format!(
            "explains {eta2} of how they differ (p = {p} over {} turned periods)",
            count(season.permutations as f64)
        )
    };
    let text = match season.verdict {
        SeasonVerdict::NotEnoughHistory => {
            format!("not enough history: {}", many(season.periods, "whole period"))
        }
        SeasonVerdict::NotShown => format!("not shown: {}", by()),
        SeasonVerdict::Shown => {
            let peak = season.peak_to_trough.map_or_else(String::new, |ratio| {
                format!("; the fullest has {} times the emptiest", few(ratio))
            });
            let parts = season.mean_requests.as_ref().map_or_else(String::new, |means| {
                let from = match (season.by_the_clock, means.len()) {
                    (true, 7) => "from Monday",
                    (true, _) => "from midnight",
                    (false, _) => "from the log's beginning",
                };
                format!("; {from} {}", sparkline(means))
            });
            format!("shown: {}{peak}{parts}", by())
        }
    };
    labelled(label, &text)
}

fn ends(class: &ClassProfile) -> String {
    let Failures {
        share_by_end,
        limited_share,
        failed_share,
        retried_tasks,
        retried_share,
        tasks_by_attempts,
        zero_outputs,
    } = &class.failures;
    let mut out = String::new();
    let text = match failed_share {
        None => "unknown: the log does not say how requests ended".to_owned(),
        Some(failed) => {
            let ends = [
                ("answered", share_by_end.ok),
                ("refused for a limit of rate", share_by_end.limited),
                ("failed", share_by_end.failed),
                ("cancelled", share_by_end.cancelled),
                ("unknown", share_by_end.unknown),
            ];
            let ends: Vec<String> = ends
                .iter()
                .filter(|(_, share)| *share > 0.0)
                .map(|(what, share)| format!("{} {what}", percent(*share)))
                .collect();
            let limited = limited_share.unwrap_or(0.0);
            format!(
                "{}; of those that say it {} did not succeed, {} by a limit",
                ends.join(", "),
                percent(*failed),
                percent(limited)
            )
        }
    };
    out.push_str(&labelled("ends", &text));
    let text = match retried_share {
        None => "unknown: the log does not number attempts".to_owned(),
        Some(share) => {
            let by: Vec<String> = tasks_by_attempts
                .iter()
                .filter(|(_, tasks)| **tasks > 0.0)
                .map(|(attempts, tasks)| format!("{} took {attempts}", count(*tasks)))
                .collect();
            format!(
                "{}, {} of all; by attempts: {}",
                many(retried_tasks.round() as u64, "task"),
                percent(*share),
                if by.is_empty() { "none".to_owned() } else { by.join(", ") }
            )
        }
    };
    out.push_str(&labelled("tried again", &text));
    if *zero_outputs > 0.0 {
        let _ = writeln!(out, "without output: {}", many(zero_outputs.round() as u64, "row"));
    }
    out
}

fn clients(clients: Option<&Clients>, known: f64) -> String {
    let Some(clients) = clients else {
        return labelled("clients", "unknown: no row says who asked");
    };
    let part =
        if known < 1.0 { format!(", told by {} of rows", percent(known)) } else { String::new() };
    let mut out = labelled(
        "clients",
        &format!(
            "{}{part}; half of the tokens are of {}, half of the requests of {}",
            count(clients.count as f64),
            count(clients.half_of_tokens_from as f64),
            count(clients.half_of_requests_from as f64)
        ),
    );
    let rows: Vec<Vec<String>> = clients
        .top
        .iter()
        .map(|client| {
            vec![
                format!("  {}", client.name),
                narrow(client.share_of_tokens),
                narrow(client.share_of_requests),
                count(client.requests),
                count(client.prompt_tokens),
                count(client.output_tokens),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let header =
            ["  largest", "of tokens", "of requests", "requests", "prompt tok", "output tok"];
        out.push_str(&aligned(&header, &rows, &[1, 2, 3, 4, 5]));
    }
    out
}

fn budget(class: &ClassProfile) -> String {
    let Some(budget) = &class.budget else {
        return labelled("longest request", "unknown: no row says how long it is");
    };
    let over = budget
        .max_over_p99_9
        .map_or_else(String::new, |ratio| format!(", {} times the 99.9th percentile", few(ratio)));
    let limits = if class.known.max_tokens > 0.0 {
        format!(
            "{} rows set no limit to their output, {} ran into theirs",
            count(budget.rows_without_max_tokens as f64),
            count(budget.rows_at_max_tokens as f64)
        )
    } else {
        "whether outputs have a limit is unknown".to_owned()
    };
    labelled(
        "longest request",
        &format!(
            "{} tokens{over}; {} rows beyond ten times the 99th; the longest 1% hold {} of tokens; {limits}",
            count(budget.max),
            count(budget.rows_beyond_10x_p99),
            percent(budget.share_of_tokens_over_p99)
        ),
    )
}
