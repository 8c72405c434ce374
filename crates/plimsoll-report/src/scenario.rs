//! A profile as a scenario: classes that a study can draw from, with what they were taken from beside them.

use std::fmt::Write as _;

use plimsoll_study::{
    ArrivalModel, ClassProfile, GapModel, JointPoint, JointPoints, Profile, arrival_model,
    class_name,
};
use plimsoll_units::grouped;

use crate::profile::ProfileHead;
use crate::simulate::percent;

/// Points that a class is written with at most.
pub const SCENARIO_POINTS: usize = 512;

/// The lengths of one class.
#[derive(Clone, Debug)]
pub struct ScenarioClass<'a> {
    /// The class's name in the profile; `all` for all rows.
    pub name: &'a str,
    /// Lengths that occur together, at most [`SCENARIO_POINTS`] of them.
    pub lengths: &'a JointPoints,
}

/// The profile's classes as `[[class]]` tables; or why none can be written.
///
/// Where the profile tells classes apart, each is written; else all rows are one. A class of which neither the rate nor the lengths are known is
/// left out with a comment: unknown is not zero.
pub fn scenario_of(
    profile: &Profile,
    head: &ProfileHead<'_>,
    classes: &[ScenarioClass<'_>],
) -> Result<String, String> {
    let own = if profile.classes.len() > 1 { &profile.classes[1..] } else { &profile.classes[..] };
    let mut out = String::new();
    comment(&mut out, &format!("Demand as {} has it, written by `plimsoll profile`.", head.source));
    let span = match (head.from, head.to) {
        (Some(from), Some(to)) => format!("From {from} to {to}. "),
        _ => "The log has no dates. ".to_owned(),
    };
    comment(
        &mut out,
        &format!(
            "{span}Add pools, SLOs and events; `plimsoll check` reads it as it is. Rates are of what was asked, retries included."
        ),
    );
    let _ = writeln!(out, "\n[study]\nname = {}", quoted(&format!("demand of {}", head.source)));
    let mut names: Vec<String> = Vec::new();
    for class in own {
        let lengths = classes.iter().find(|of| of.name == class.name).map(|of| of.lengths);
        out.push('\n');
        match (class.mean_rps_rows_over_span.filter(|rate| *rate > 0.0), lengths) {
            (Some(rate), Some(lengths)) => {
                names.push(class_name(&class.name, &names));
                let name = names.last().map_or("all", String::as_str);
                table(&mut out, class, name, rate, lengths);
            }
            (rate, _) => {
                let what = if rate.is_none() {
                    "its rows have no common clock, so no rate is known"
                } else {
                    "no row says how long its prompts and outputs are"
                };
                comment(&mut out, &format!("Class {} is left out: {what}.", quoted(&class.name)));
            }
        }
    }
    if names.is_empty() {
        return Err(format!(
            "{} gives no class: a scenario needs a rate and lengths, and its rows have {}",
            head.source,
            match own.first() {
                None => "neither: there are none",
                Some(class) if class.mean_rps_rows_over_span.is_none() => "no common clock",
                Some(_) => "no lengths",
            }
        ));
    }
    Ok(out)
}

fn table(out: &mut String, class: &ClassProfile, name: &str, rate: f64, lengths: &JointPoints) {
    let _ = writeln!(out, "[[class]]\nname = {}", quoted(name));
    let span = class.span_s.unwrap_or(0.0);
    let hour = class.windows.get("3600").and_then(Option::as_ref);
    let busiest = hour.map_or_else(
        || "the log is too short for a busiest hour".to_owned(),
        |hour| format!("the busiest hour had {}/s", told(hour.requests.max / 3600.0)),
    );
    comment(
        out,
        &format!(
            "{} over {} s: the mean of the span; {busiest}.",
            crate::profile::many(class.rows, "row"),
            grouped(span.round() as u64)
        ),
    );
    if (class.requests - class.rows as f64).abs() >= 0.5 {
        comment(
            out,
            &format!("Rows are a sample that stands for {} requests.", told(class.requests)),
        );
    }
    let _ = writeln!(out, "rate = \"{}/s\"", digits(rate));
    if let Some(model) = arrival_model(class) {
        arrivals(out, &model);
    }
    shape(out, lengths);
}

fn arrivals(out: &mut String, model: &ArrivalModel) {
    let goodness = match (model.ks, model.rejected) {
        (Some(ks), _) if model.burst.is_some() => {
            format!(" Gaps as a whole are a KS distance of {} from exponential ones.", told(ks))
        }
        (Some(ks), Some(true)) => format!(
            " KS distance of the gaps {}, rejected at 5%: it ranks, it does not describe.",
            told(ks)
        ),
        (Some(ks), _) => format!(" KS distance of the gaps {}, not rejected at 5%.", told(ks)),
        (None, _) => " How well the gaps fit is unknown.".to_owned(),
    };
    comment(out, &format!("Arrivals: {}.{goodness}", model.why));
    let told: Vec<String> = model
        .dispersion
        .iter()
        .map(|of| match of.modelled {
            Some(modelled) => {
                format!("{} over {} s (written: {})", told(of.logged), of.window_s, told(modelled))
            }
            None => format!("{} over {} s", told(of.logged), of.window_s),
        })
        .collect();
    if !told.is_empty() {
        comment(out, &format!("Dispersion of requests in the log: {}.", told.join(", ")));
    }
    let (word, cv) = match model.gaps {
        GapModel::Poisson => ("poisson", None),
        GapModel::Gamma { cv } => ("gamma", Some(cv)),
        GapModel::Weibull { cv } => ("weibull", Some(cv)),
    };
    let _ = writeln!(out, "arrivals = \"{word}\"");
    if let Some(cv) = cv {
        let _ = writeln!(out, "cv = {}", float(cv));
    }
    if let Some(burst) = &model.burst {
        // Digits that are cut off must not make the episodes more than everything.
        let every = format!("{:.1}", burst.every_s);
        let lasts = format!("{:.1}", burst.lasts_s);
        let share = lasts.parse().unwrap_or(burst.lasts_s) / every.parse().unwrap_or(burst.every_s);
        let times = burst.times.min((1.0f64 / share * 1e3).floor() / 1e3);
        let _ = writeln!(
            out,
            "burst = {{ times = {}, lasts = \"{lasts}s\", every = \"{every}s\" }}",
            float((times * 1e3).floor() / 1e3)
        );
    }
    if let Some(hours) = &model.by_hour {
        let hours: Vec<String> = hours.iter().map(|hour| format!("{hour:.3}")).collect();
        comment(
            out,
            "Hours of the day were shown to differ; from midnight on, against their mean.",
        );
        let _ = writeln!(out, "by_hour = [{}]", hours.join(", "));
    }
    if let Some(weekend) = model.weekend.filter(|weekend| *weekend > 0.0) {
        comment(out, "Days of the week were shown to differ.");
        let _ = writeln!(out, "weekend = {}", float(weekend));
    }
}

fn shape(out: &mut String, lengths: &JointPoints) {
    let kept = if lengths.lengths as usize <= lengths.points.len() {
        "every length that occurs".to_owned()
    } else {
        format!(
            "{} points for {} lengths that occur; KS distance {} for prompts, {} for outputs",
            lengths.points.len(),
            grouped(lengths.lengths),
            told(lengths.ks_prompt),
            told(lengths.ks_output)
        )
    };
    let pair = |[full, few]: [f64; 2]| format!("{} ({} written)", told(full), told(few));
    let together = lengths.correlation.map_or_else(
        || "one of them never varies".to_owned(),
        |[full, few]| format!("correlation {full:.3} ({few:.3} written)"),
    );
    comment(
        out,
        &format!(
            "Lengths of {} requests, prompt and output together: {kept}. Mean prompt {}, mean output {}, {together}.",
            told(lengths.requests),
            pair(lengths.prompt_mean),
            pair(lengths.output_mean)
        ),
    );
    match (lengths.cached_mean, lengths.ks_cached) {
        (Some(means), Some(ks)) => comment(
            out,
            &format!("Cached as the log says it: mean {}, KS distance {}.", pair(means), told(ks)),
        ),
        _ => comment(
            out,
            &format!(
                "What of the prompts was cached is unknown ({} it), so `cache_hit` is not written: its default stands, and prefill is an upper bound.",
                if lengths.cached_known > 0.0 {
                    format!("{} of requests say", percent(lengths.cached_known))
                } else {
                    "no request says".to_owned()
                }
            ),
        ),
    }
    if lengths.points.iter().any(|point| point.output == 0 || point.prompt == 0) {
        comment(out, "Lengths of zero are drawn as one token.");
    }
    out.push_str("pairs = [\n");
    for JointPoint { prompt, cached, output, weight } in &lengths.points {
        let cached = cached.map_or_else(String::new, |cached| format!("cached = {cached}, "));
        let weight = if weight.fract() == 0.0 { format!("{weight}") } else { float(*weight) };
        let _ = writeln!(
            out,
            "  {{ prompt = {prompt}, {cached}output = {output}, weight = {weight} }},"
        );
    }
    out.push_str("]\n");
}

/// A comment in lines of at most a hundred columns.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 100 && line.len() > 1 {
            out.push_str(&line);
            out.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        // A comment holds no control characters.
        line.extend(word.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
    }
    out.push_str(&line);
    out.push('\n');
}

/// Six digits, which is more than any log has earned and no less than sums need; no exponent.
fn digits(x: f64) -> String {
    significant(x, 6)
}

/// Four digits or all whole ones, for people.
fn told(x: f64) -> String {
    if x.abs() < 1000.0 { significant(x, 4) } else { grouped(x.abs().round() as u64) }
}

fn significant(x: f64, digits: i32) -> String {
    if x == 0.0 || !x.is_finite() {
        return "0".to_owned();
    }
    let decimals = (digits - 1 - x.abs().log10().floor() as i32).clamp(0, 12);
    let text = format!("{x:.*}", usize::try_from(decimals).unwrap_or(0));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The same, as a number that a scenario takes for no whole one.
fn float(x: f64) -> String {
    let text = digits(x);
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use plimsoll_scenario::{Source, builtin, load, lower_demand, parse};
    use plimsoll_stats::{Dist, Process, Seed};
    use plimsoll_study::{End, Gathered, Gathering, JointLengths, ProfileInput, Seen, profile};
    use plimsoll_workload::Shift;

    use super::*;

    const HEAD: ProfileHead<'_> = ProfileHead {
        source: "log.csv",
        format: None,
        classes_by: Some("route"),
        from: Some("2026-11-02 00:00 UTC"),
        to: Some("2026-11-02 01:00 UTC"),
        seed: 7,
    };

    fn seen(at_s: Option<f64>, prompt: u32, output: u32, class: u32) -> Seen {
        Seen {
            at_ns: at_s.map(|at| (at * 1e9) as i64),
            prompt: Some(prompt),
            cached: None,
            output: Some(output),
            reasoning: None,
            max_tokens: None,
            weight: 1.0,
            class,
            client: None,
            attempt: 0,
            end: End::Unknown,
            ttft_s: None,
            e2e_s: None,
        }
    }

    fn input(classes: &[&str]) -> ProfileInput {
        ProfileInput {
            classes: classes.iter().map(|name| (*name).to_owned()).collect(),
            clients: Vec::new(),
            clients_named: 3,
            clock: None,
            no_clock: None,
            reuse: None,
            series: None,
            seed: Seed::new(7),
            threads: 1,
        }
    }

    /// The profile of rows, and the lengths of its classes, all rows first.
    fn profiled(rows: &[Seen], classes: &[&str]) -> (Profile, Vec<(String, JointPoints)>) {
        let shape = Gathering { rows_expected: None, exact_rows: 1_000_000, pace: None };
        let mut gathered = Gathered::new(&shape);
        let mut lengths = vec![JointLengths::default(); classes.len() + 1];
        for row in rows {
            gathered.push(row);
            for own in [0, row.class as usize + 1] {
                if let (Some(prompt), Some(output)) = (row.prompt, row.output) {
                    lengths[own].push(prompt, row.cached, output, row.weight);
                }
            }
        }
        let names = ["all"].iter().chain(classes);
        let points = names
            .zip(&lengths)
            .filter_map(|(name, own)| Some(((*name).to_owned(), own.points(SCENARIO_POINTS)?)));
        let points = points.collect();
        (profile(gathered, &input(classes)), points)
    }

    fn written(profile: &Profile, points: &[(String, JointPoints)]) -> Result<String, String> {
        let classes: Vec<ScenarioClass<'_>> =
            points.iter().map(|(name, lengths)| ScenarioClass { name, lengths }).collect();
        scenario_of(profile, &HEAD, &classes)
    }

    /// An hour of independent users whose long prompts have long outputs.
    fn hour(rate: f64, class: u32, cached: bool) -> Vec<Seen> {
        let mut stream = Seed::new(11).stream("hour");
        let gap = Dist::exponential(1.0 / rate).unwrap();
        let prompt = Dist::by_mean_cv(1500.0, 1.5).unwrap();
        let noise = Dist::by_mean_cv(1.0, 0.6).unwrap();
        let mut at = 0.0;
        let mut rows = Vec::new();
        while at < 3600.0 {
            let prompt = prompt.sample(&mut stream).clamp(1.0, 60_000.0).round();
            let output = (4.0 * prompt.sqrt() * noise.sample(&mut stream)).round().max(1.0);
            let mut row = seen(Some(at), prompt as u32, output as u32, class);
            row.cached = cached.then_some((prompt * 0.5 * stream.uniform()) as u32);
            rows.push(row);
            at += gap.sample(&mut stream);
        }
        rows
    }

    fn moments(of: &[(f64, f64)]) -> (f64, f64, f64) {
        let n = of.len() as f64;
        let (x, y) = of.iter().fold((0.0, 0.0), |(x, y), row| (x + row.0 / n, y + row.1 / n));
        let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
        for (a, b) in of {
            xx += (a - x).powi(2);
            yy += (b - y).powi(2);
            xy += (a - x) * (b - y);
        }
        (x, y, xy / (xx * yy).sqrt())
    }

    /// What is written passes `check`, and what is drawn from it has the log's means, their dependence and its rate.
    #[test]
    fn a_class_is_drawn_as_it_was_logged() {
        let rows = hour(5.0, 0, true);
        let (profile, points) = profiled(&rows, &["chat"]);
        let text = written(&profile, &points).unwrap();
        let directory =
            std::env::temp_dir().join(format!("plimsoll-scenario-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("demand.toml");
        std::fs::write(&file, &text).unwrap();
        let loaded = load(&file, None).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        std::fs::remove_dir_all(&directory).unwrap();
        let today = "2026-11-15".parse().unwrap();
        let demand = loaded.demand(today).unwrap();
        let [class] = &demand.classes[..] else { panic!("{:?}", demand.classes) };
        assert!((class.hours[0].rate / (rows.len() as f64 / 3600.0) - 1.0).abs() < 1e-3);
        let Process::Flow { spacing: plimsoll_stats::Spacing::Poisson, burst: None } =
            class.process
        else {
            panic!("{:?}", class.process)
        };
        let mut stream = Seed::new(3).stream("drawn");
        let (mut drawn, mut cached) = (Vec::new(), 0.0);
        for _ in 0..400_000 {
            class.task.draw(&Shift::NONE, &mut stream, |r| {
                drawn.push((r.prompt.get() as f64, r.output.get() as f64));
                cached += r.cached.get() as f64 / 400_000.0;
            });
        }
        let logged: Vec<(f64, f64)> = rows
            .iter()
            .map(|row| (f64::from(row.prompt.unwrap()), f64::from(row.output.unwrap())))
            .collect();
        let ((p, o, r), (q, w, s)) = (moments(&logged), moments(&drawn));
        assert!((q / p - 1.0).abs() < 0.01, "prompt {p} {q}");
        assert!((w / o - 1.0).abs() < 0.01, "output {o} {w}");
        assert!((r - s).abs() < 0.02, "correlation {r} {s}");
        let own: f64 = rows.iter().map(|row| f64::from(row.cached.unwrap())).sum();
        assert!((cached / (own / rows.len() as f64) - 1.0).abs() < 0.01, "cached {cached}");
    }

    /// Few lengths, two classes, nothing known of the cache: the whole text.
    #[test]
    fn the_text() {
        let mut rows = Vec::new();
        for i in 0..120u32 {
            let at = f64::from(i) * 1.7 + f64::from(i * i % 13) * 0.1;
            rows.push(seen(Some(at), 100 + 400 * (i % 3), 20, 0));
            if i % 4 == 0 {
                rows.push(seen(Some(at + 0.3), 9000, 0, 1));
            }
        }
        let (profile, points) = profiled(&rows, &["chat", "batch \"nightly\""]);
        let text = written(&profile, &points).unwrap();
        insta::assert_snapshot!(text, @r#"
        # Demand as log.csv has it, written by `plimsoll profile`.
        # From 2026-11-02 00:00 UTC to 2026-11-02 01:00 UTC. Add pools, SLOs and events; `plimsoll check`
        # reads it as it is. Rates are of what was asked, retries included.

        [study]
        name = "demand of log.csv"

        [[class]]
        name = "chat"
        # 120 rows over 203 s: the mean of the span; the log is too short for a busiest hour.
        rate = "0.592008/s"
        # Arrivals: Weibull gaps come nearest. KS distance of the gaps 0.07143, not rejected at 5%.
        # Dispersion of requests in the log: 0.4445 over 1 s, 0.04915 over 10 s.
        arrivals = "weibull"
        cv = 0.284077
        # Lengths of 120 requests, prompt and output together: every length that occurs. Mean prompt 500
        # (500 written), mean output 20 (20 written), one of them never varies.
        # What of the prompts was cached is unknown (no request says it), so `cache_hit` is not written: its
        # default stands, and prefill is an upper bound.
        pairs = [
          { prompt = 100, output = 20, weight = 40 },
          { prompt = 500, output = 20, weight = 40 },
          { prompt = 900, output = 20, weight = 40 },
        ]

        [[class]]
        name = "batch -nightly-"
        # 30 rows over 203 s: the mean of the span; the log is too short for a busiest hour.
        rate = "0.148002/s"
        # Arrivals: gamma gaps come nearest. KS distance of the gaps 0.1138, not rejected at 5%.
        # Dispersion of requests in the log: 0.8515 over 1 s, 0.1667 over 10 s.
        arrivals = "gamma"
        cv = 0.104917
        # Lengths of 30 requests, prompt and output together: every length that occurs. Mean prompt 9,000
        # (9,000 written), mean output 0 (0 written), one of them never varies.
        # What of the prompts was cached is unknown (no request says it), so `cache_hit` is not written: its
        # default stands, and prefill is an upper bound.
        # Lengths of zero are drawn as one token.
        pairs = [
          { prompt = 9000, output = 0, weight = 30 },
        ]
        "#);
        parse(&Source::new("demand.toml", &text), builtin()).unwrap_or_else(|e| panic!("{e:?}"));
    }

    /// Bursts are written with keys that the scenario has, and within what it allows.
    #[test]
    fn bursts_are_written() {
        let mut stream = Seed::new(4).stream("bursts");
        let mut rows = Vec::new();
        let mut at = 0.0;
        while at < 7200.0 {
            // Twenty seconds of every hundred and twenty are five times as busy.
            let rate = if at % 120.0 < 20.0 { 10.0 } else { 1.0 };
            at += Dist::exponential(1.0 / rate).unwrap().sample(&mut stream);
            rows.push(seen(Some(at), 500, 50, 0));
        }
        let (profile, points) = profiled(&rows, &["chat"]);
        let text = written(&profile, &points).unwrap();
        let line = text.lines().find(|line| line.starts_with("burst = ")).unwrap();
        assert!(line.starts_with("burst = { times = "), "{line}");
        let loaded = parse(&Source::new("demand.toml", &text), builtin());
        let scenario = loaded.unwrap_or_else(|e| panic!("{e:?}\n{text}")).scenario;
        let demand = lower_demand(&scenario, None, "2026-11-15".parse().unwrap(), 0.95).unwrap();
        assert!(matches!(demand.classes[0].process, Process::Flow { burst: Some(_), .. }));
    }

    /// Without a clock there is no rate, without lengths no class, and neither is made up.
    #[test]
    fn what_is_unknown_is_not_written() {
        let (profile, points) = profiled(&[seen(None, 5, 5, 0), seen(None, 6, 5, 0)], &["chat"]);
        insta::assert_snapshot!(written(&profile, &points).unwrap_err(), @"log.csv gives no class: a scenario needs a rate and lengths, and its rows have no common clock");
        let mut rows: Vec<Seen> = (0..50).map(|i| seen(Some(f64::from(i)), 5, 5, 0)).collect();
        rows.iter_mut().for_each(|row| row.output = None);
        let (profile, points) = profiled(&rows, &["chat"]);
        insta::assert_snapshot!(written(&profile, &points).unwrap_err(), @"log.csv gives no class: a scenario needs a rate and lengths, and its rows have no lengths");
        let mut both = rows.clone();
        both.extend((0..50).map(|i| seen(Some(f64::from(i)), 5, 5, 1)));
        let (profile, points) = profiled(&both, &["chat", "batch"]);
        let text = written(&profile, &points).unwrap();
        assert!(text.contains("# Class \"chat\" is left out: no row says how long"), "{text}");
        let (none, _) = profiled(&[], &[]);
        insta::assert_snapshot!(written(&none, &[]).unwrap_err(), @"log.csv gives no class: a scenario needs a rate and lengths, and its rows have neither: there are none");
    }

    #[test]
    fn names_and_numbers() {
        assert_eq!(digits(5.886_531), "5.88653");
        assert_eq!(
            (digits(0.0), digits(123_456_789.0), float(2.0)),
            ("0".into(), "123456789".into(), "2.0".into())
        );
        assert_eq!(digits(0.000_012_345_678), "0.0000123457".to_owned());
    }
}
