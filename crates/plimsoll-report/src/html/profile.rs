//! A profile as a page.

use std::collections::BTreeSet;

use plimsoll_study::{ClassProfile, JointBin, Lengths, Profile, SeriesProfile};

use crate::chart::{Chart, Draw, Ink, Panel};
use crate::forecast::number;
use crate::page::{Block, Section, Table, page};
use crate::plan::sentence;
use crate::profile::ProfileHead;
use crate::simulate::percent;

/// A profile as one self-contained page.
pub fn profile_html(profile: &Profile, head: &ProfileHead<'_>, version: &str) -> String {
    let mut first = Section::new("findings", "What averages do not say");
    let when = match (head.from, head.to) {
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => "no dates".to_owned(),
    };
    let mut facts = vec![when];
    facts.extend(head.format.map(str::to_owned));
    facts.extend(head.classes_by.map(|by| format!("classes by {by}")));
    facts.push(format!("seed {}", head.seed));
    facts.push(format!("plimsoll {version}"));
    first.text(format!("{}.", facts.join(" · ")));
    first.list(profile.findings.iter().map(|own| sentence(&own.sentence)).collect());
    first.table(classes_table(&profile.classes));
    let mut sections = vec![first];
    for (i, class) in profile.classes.iter().enumerate() {
        sections.push(class_section(i, class));
    }
    if let Some(own) = &profile.series {
        sections.push(series_section(own));
    }
    if !profile.warnings.is_empty() {
        let mut notes = Section::new("notes", "To know before trusting a number");
        notes.list(profile.warnings.clone());
        sections.push(notes);
    }
    page(&format!("Profile: {}", head.source), &sections)
}

/// The charts of all classes together: over time, by window, and of lengths.
pub fn profile_charts(profile: &Profile) -> Vec<Chart> {
    let Some(all) = profile.classes.first() else { return Vec::new() };
    let charts = [shape_chart(0, all), windows_chart(0, all), lengths_chart(0, all)];
    charts.into_iter().flatten().collect()
}

fn classes_table(classes: &[ClassProfile]) -> Table {
    let columns = [
        "class",
        ">requests",
        ">requests/s",
        ">prompt tok/s",
        ">output tok/s",
        ">prompt p50",
        ">prompt p99",
        ">output p50",
        ">output p99",
        ">failed",
    ];
    let mut table = Table::new("Every class; lengths are in tokens", &columns);
    for own in classes {
        let maybe = |value: Option<f64>| value.map_or("-".to_owned(), number);
        let of = |all: &Option<Lengths>, value: fn(&Lengths) -> f64| maybe(all.as_ref().map(value));
        table.row(vec![
            own.name.as_str().into(),
            number(own.requests).into(),
            maybe(own.mean_rps_rows_over_span).into(),
            maybe(own.prompt_tokens_per_s).into(),
            maybe(own.output_tokens_per_s).into(),
            of(&own.prompt, |own| own.p50).into(),
            of(&own.prompt, |own| own.p99).into(),
            of(&own.output, |own| own.p50).into(),
            of(&own.output, |own| own.p99).into(),
            own.failures.failed_share.map_or("-".to_owned(), percent).into(),
        ]);
    }
    table
}

fn class_section(i: usize, class: &ClassProfile) -> Section {
    let name = if i == 0 { "All requests".to_owned() } else { format!("Class {}", class.name) };
    let mut own = Section::new(&format!("class-{i}"), &name);
    if let Some(chart) = shape_chart(i, class) {
        own.push(Block::Chart(Box::new(chart)));
    }
    let columns = [
        "window, s",
        ">windows",
        ">mean",
        ">p50",
        ">p95",
        ">p99",
        ">max",
        ">peak to mean",
        ">dispersion",
    ];
    let mut table = Table::new("Requests of a window", &columns);
    for (key, windows) in class.windows.iter() {
        let Some(windows) = windows else { continue };
        let levels = &windows.requests;
        let maybe = |value: Option<f64>| value.map_or("-".to_owned(), number);
        table.row(vec![
            key.into(),
            windows.n_windows.to_string().into(),
            number(levels.mean).into(),
            number(levels.p50).into(),
            number(levels.p95).into(),
            number(levels.p99).into(),
            number(levels.max).into(),
            maybe(levels.peak_to_mean).into(),
            maybe(levels.index_of_dispersion).into(),
        ]);
    }
    own.table(table);
    if let Some(chart) = windows_chart(i, class) {
        own.push(Block::Chart(Box::new(chart)));
    }
    if let Some(chart) = lengths_chart(i, class) {
        own.push(Block::Chart(Box::new(chart)));
    }
    own.table(lengths_table(class));
    if !class.joint.is_empty() {
        own.push(Block::Chart(Box::new(joint_chart(i, class))));
    }
    if let Some(gaps) = &class.inter_arrival {
        own.text(format!(
            "Time between arrivals: {} s on average, {} s in the median, {} s at p99; its coefficient of variation is {} (1 where arrivals are independent).",
            number(gaps.mean),
            number(gaps.p50),
            number(gaps.p99),
            gaps.cv.map_or("unknown".to_owned(), number)
        ));
    }
    own
}

fn shape_chart(i: usize, class: &ClassProfile) -> Option<Chart> {
    let shape = class.shape.as_ref()?;
    type Series<'a> = (&'a str, &'a [f64]);
    let mut series: Vec<Series<'_>> = vec![("requests/s", &shape.requests_per_s)];
    series.extend(shape.prompt_tokens_per_s.as_deref().map(|own| ("prompt tokens/s", own)));
    series.extend(shape.output_tokens_per_s.as_deref().map(|own| ("output tokens/s", own)));
    let panels: Vec<Panel<'_>> =
        series.iter().map(|(name, _)| Panel { y: name, from_zero: true }).collect();
    // A short log is read in minutes.
    let short = class.span_s.is_some_and(|span| span < 7200.0);
    let (unit, seconds) = if short { ("minutes", 60.0) } else { ("hours", 3600.0) };
    let mut draw = Draw::panels(&format!("{unit} from the first request"), &panels);
    let mut alt = Vec::new();
    for (panel, (name, values)) in series.iter().enumerate() {
        let at = |i: usize| i as f64 * shape.stretch_s as f64 / seconds;
        let points: Vec<(f64, f64)> =
            values.iter().enumerate().map(|(i, value)| (at(i), *value)).collect();
        draw = draw.panel(panel).steps(name, Ink::Demand, &points);
        let most = values.iter().copied().max_by(f64::total_cmp);
        let least = values.iter().copied().min_by(f64::total_cmp);
        if let (Some(least), Some(most)) = (least, most) {
            alt.push(format!("{name} between {} and {}", number(least), number(most)));
        }
    }
    let alt = format!("In stretches of {} s: {}.", shape.stretch_s, alt.join("; "));
    Some(draw.done(&format!("shape-{i}"), "Demand over time", alt))
}

fn windows_chart(i: usize, class: &ClassProfile) -> Option<Chart> {
    // The longer the window, the nearer its peaks come to the mean.
    type Ratio = fn(&plimsoll_study::WindowLevels) -> Option<f64>;
    let ratios: [(&str, Ink, Ratio); 3] = [
        ("p95 to mean", Ink::Muted, |own| own.p95_to_mean),
        ("p99 to mean", Ink::Demand, |own| own.p99_to_mean),
        ("peak to mean", Ink::Danger, |own| own.peak_to_mean),
    ];
    let mut draw = Draw::new("window, s", "times the mean").log_x().legend();
    let mut alt = Vec::new();
    for (name, ink, ratio) in ratios {
        let points: Vec<(f64, f64)> = class
            .windows
            .iter()
            .filter_map(|(key, windows)| {
                let seconds: f64 = key.parse().ok()?;
                Some((seconds, ratio(&windows.as_ref()?.requests)?))
            })
            .collect();
        if let (Some((from, first)), Some((to, last))) = (points.first(), points.last()) {
            alt.push(format!(
                "{name}: {} in {from} s windows, {} in {to} s",
                number(*first),
                number(*last)
            ));
        }
        draw = draw.points_line(name, ink, &points);
    }
    if alt.is_empty() {
        return None;
    }
    Some(draw.done(
        &format!("windows-{i}"),
        "Bursts: windows of requests against their mean",
        format!("{}.", alt.join("; ")),
    ))
}

fn lengths_chart(i: usize, class: &ClassProfile) -> Option<Chart> {
    let both = [("prompt", Ink::Demand, &class.prompt), ("output", Ink::Other, &class.output)];
    let mut draw =
        Draw::new("tokens", "requests that are at most as long").percent_y().log_x().legend();
    let mut alt = Vec::new();
    for (name, ink, lengths) in both {
        let Some(own) = lengths else { continue };
        let points = [
            (own.p50, 0.5),
            (own.p90, 0.9),
            (own.p95, 0.95),
            (own.p99, 0.99),
            (own.p99_9, 0.999),
            (own.max, 1.0),
        ];
        draw = draw.points_line(name, ink, &points);
        alt.push(format!(
            "{name}: half within {} tokens, 99 in 100 within {}",
            number(own.p50),
            number(own.p99)
        ));
    }
    if alt.is_empty() {
        return None;
    }
    Some(draw.done(
        &format!("lengths-{i}"),
        "How long requests are",
        format!("{}.", alt.join("; ")),
    ))
}

fn lengths_table(class: &ClassProfile) -> Table {
    let columns = [
        "tokens of",
        ">mean",
        ">p50",
        ">p90",
        ">p95",
        ">p99",
        ">p99.9",
        ">max",
        ">longest 1% hold",
    ];
    let mut table = Table::new("Lengths, in tokens", &columns);
    let all = [("prompt", &class.prompt), ("output", &class.output), ("both", &class.total)];
    for (name, lengths) in all {
        let Some(own) = lengths else { continue };
        let mut cells = vec![name.into()];
        let values = [own.mean, own.p50, own.p90, own.p95, own.p99, own.p99_9, own.max];
        cells.extend(values.iter().map(|value| number(*value).into()));
        cells.push(own.top1pct_share_of_tokens.map_or("-".to_owned(), percent).into());
        table.row(cells);
    }
    table
}

fn joint_chart(i: usize, class: &ClassProfile) -> Chart {
    let sorted = |of: fn(&JointBin) -> u64| -> Vec<u64> {
        class.joint.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let (prompts, outputs) = (sorted(|bin| bin.prompt_from), sorted(|bin| bin.output_from));
    let short = |from: &u64| match from {
        10_000.. => format!("{}k", from / 1000),
        from => from.to_string(),
    };
    let lengths = |bin: &JointBin| {
        format!(
            "prompts of {} to {} and outputs of {} to {} tokens",
            bin.prompt_from, bin.prompt_to, bin.output_from, bin.output_to
        )
    };
    let most = class.joint.iter().max_by(|a, b| a.requests.total_cmp(&b.requests));
    let highest = most.map_or(1.0, |bin| bin.requests).max(f64::MIN_POSITIVE);
    let mut draw = Draw::new("prompt tokens, from", "output tokens, from")
        .names_x(prompts.iter().map(short).collect());
    // Long outputs are on top.
    for from in outputs.iter().rev() {
        for bin in class.joint.iter().filter(|bin| bin.output_from == *from) {
            let column = prompts.iter().position(|from| *from == bin.prompt_from).unwrap_or(0);
            let says = format!("{} requests: {}", number(bin.requests), lengths(bin));
            let share = bin.requests / highest;
            draw = draw.cell(Ink::Demand, (&short(from), column), share, says);
        }
    }
    let alt = most.map_or(String::new(), |bin| {
        format!("Most requests, {}, have {}.", number(bin.requests), lengths(bin))
    });
    draw.done(&format!("joint-{i}"), "Prompts and outputs together", alt)
}

fn series_section(own: &SeriesProfile) -> Section {
    let mut section = Section::new("series", &format!("Rates of {}", own.name));
    section.text(format!(
        "{} clients, {} windows of {} s; {} requests/s on average.",
        own.clients,
        own.windows,
        own.window_s,
        number(own.rate_rps.levels.mean)
    ));
    if let Some(hours) = &own.hour_of_day_mean_profile {
        let points: Vec<(f64, f64)> =
            hours.iter().enumerate().map(|(i, rate)| (i as f64, *rate)).collect();
        let most = hours.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0);
        let least = hours.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0);
        let chart = Draw::new("hour of the day", "requests/s")
            .points_line("mean of the hour", Ink::Demand, &points)
            .done(
                "hours",
                "Mean rate of each hour of the day",
                format!("Between {} and {} requests/s.", number(least), number(most)),
            );
        section.push(Block::Chart(Box::new(chart)));
        let mut table = Table::new("Mean rate of each hour of the day", &["hour", ">requests/s"]);
        for (i, rate) in hours.iter().enumerate() {
            table.row(vec![i.to_string().into(), number(*rate).into()]);
        }
        section.push(Block::Fold("Hour by hour".to_owned(), vec![Block::Table(table)]));
    }
    section
}
