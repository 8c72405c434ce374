//! Charts of what fleets do: the service curve, the reserve, memory, the demand ahead, and windows of a simulation.

use plimsoll_study::{
    Ahead, AheadResource, CurvePoint, Fit, PlannedPool, ScalingCheck, ScalingWay,
};

use super::{Bar, Chart, Draw, Ink, Panel, moment};
use crate::curve::{rate, times};
use crate::forecast::{level, number, words};

/// The service curve of a fleet: loads are multiples of the demand.
#[derive(Clone, Copy, Debug)]
pub struct ServiceCurve<'a> {
    /// What the fleet is called.
    pub fleet: &'a str,
    /// Whether it is the planned one.
    pub planned: bool,
    /// From little load to much.
    pub points: &'a [CurvePoint],
    /// Where more load stops giving more good tasks.
    pub knee_load: Option<f64>,
    /// To what it may be loaded.
    pub line_load: Option<f64>,
}

impl ServiceCurve<'_> {
    fn ink(&self) -> Ink {
        if self.planned { Ink::Planned } else { Ink::Today }
    }

    fn said(&self) -> String {
        let most = self.points.iter().max_by(|a, b| a.goodput_per_s.total_cmp(&b.goodput_per_s));
        let most = most.map_or(String::new(), |own| {
            format!(
                " gives at most {} good tasks/s, at {} times the demand",
                rate(own.goodput_per_s),
                times(own.load)
            )
        });
        let knee = self.knee_load.map_or(String::new(), |at| format!("; knee at {}", times(at)));
        let line = self.line_load.map_or("; no load keeps every promise".to_owned(), |at| {
            format!("; load line at {} times the demand", times(at))
        });
        format!("{}{most}{knee}{line}.", self.fleet)
    }
}

/// Good tasks against what is asked for, with the demand, the knees and the load lines.
pub fn curve_chart(id: &str, curves: &[ServiceCurve<'_>]) -> Chart {
    let mut draw = Draw::new("load, times the demand", "good tasks/s").legend();
    // What is offered is the same for every fleet: the longest curve shows it.
    let longest = curves.iter().max_by_key(|own| own.points.len());
    if let Some(own) = longest {
        let offered: Vec<(f64, f64)> =
            own.points.iter().map(|p| (p.load, p.offered_per_s)).collect();
        draw = draw.broken("all good", Ink::Muted, &offered);
    }
    for own in curves {
        let good: Vec<(f64, f64)> = own.points.iter().map(|p| (p.load, p.goodput_per_s)).collect();
        draw = draw.points_line(own.fleet, own.ink(), &good);
        let knee = own.points.iter().find(|p| own.knee_load == Some(p.load));
        if let Some(p) = knee {
            draw = draw.word(p.load, p.goodput_per_s, "knee", own.ink());
        }
    }
    draw = draw.upright(1.0, "demand", Ink::Demand);
    for own in curves {
        if let Some(at) = own.line_load {
            draw = draw.upright(at, &format!("load line, {}", own.fleet), own.ink());
        }
    }
    let alt: Vec<String> = curves.iter().map(ServiceCurve::said).collect();
    draw.done(id, "Good tasks for what is asked", alt.join(" "))
}

/// What a load test measured beside what the curve says, requests a second: offered, measured, predicted.
pub(crate) fn load_test_chart(points: &[(f64, Option<f64>, Option<f64>)]) -> Chart {
    type Tested = (f64, Option<f64>, Option<f64>);
    let of = |value: fn(&Tested) -> Option<f64>| -> Vec<(f64, f64)> {
        points.iter().filter_map(|own| Some((own.0, value(own)?))).collect()
    };
    let (measured, predicted) = (of(|own| own.1), of(|own| own.2));
    let alt = format!("{} loads measured, {} within the curve.", measured.len(), predicted.len());
    Draw::new("offered, requests/s", "answered, requests/s")
        .legend()
        .broken("curve", Ink::Today, &predicted)
        .dots("measured", Ink::Other, &measured)
        .done("load-test", "Answered, as measured and as the curve says", alt)
}

/// Latencies against what is asked for.
pub fn latency_chart(id: &str, curves: &[ServiceCurve<'_>]) -> Chart {
    let panels = [
        Panel { y: "TTFT p95, ms", from_zero: false },
        Panel { y: "TPOT p95, ms", from_zero: false },
    ];
    let mut draw = Draw::panels("load, times the demand", &panels).legend();
    let mut alt = Vec::new();
    type Of = fn(&CurvePoint) -> Option<f64>;
    let of: [(&str, Of); 2] = [("TTFT", |p| p.ttft_p95_ms), ("TPOT", |p| p.tpot_p95_ms)];
    for (i, (name, value)) in of.into_iter().enumerate() {
        draw = draw.panel(i).log_y();
        for own in curves {
            let line: Vec<(f64, f64)> =
                own.points.iter().filter_map(|p| Some((p.load, value(p)?))).collect();
            if let (Some(first), Some(last)) = (line.first(), line.last()) {
                alt.push(format!(
                    "{name} p95, {}: {} ms at the least load, {} ms at the most.",
                    own.fleet,
                    number(first.1),
                    number(last.1)
                ));
            }
            draw = draw.points_line(own.fleet, own.ink(), &line);
        }
    }
    draw.upright(1.0, "demand", Ink::Demand).done(id, "Latency for what is asked", alt.join(" "))
}

/// Replicas of a pool, line by line.
pub(crate) fn reserve_chart(i: usize, pool: &PlannedPool) -> Chart {
    let lines: Vec<_> =
        pool.reserve.iter().filter(|own| own.replicas > 0 || own.name == "steady").collect();
    let names = lines.iter().map(|own| own.name.replace('_', " "));
    let names: Vec<String> = names.chain(std::iter::once("planned".to_owned())).collect();
    let texts: Vec<String> = lines
        .iter()
        .map(|own| match own.name {
            "steady" => own.replicas.to_string(),
            _ => format!("+{}", own.replicas),
        })
        .chain(std::iter::once(pool.replicas.total.to_string()))
        .collect();
    let mut bars: Vec<Bar> = Vec::new();
    let mut sum = 0.0;
    let counts = lines.iter().map(|line| line.replicas);
    for (replicas, (name, text)) in counts.zip(names.iter().zip(&texts)) {
        let before = sum;
        sum += f64::from(replicas);
        let says = format!("{name}: {replicas} replicas");
        bars.push((name.clone(), (before, sum), text.clone(), says));
    }
    let total = pool.replicas.total;
    let planned = (
        "planned".to_owned(),
        (0.0, f64::from(total)),
        total.to_string(),
        format!("planned: {total} replicas"),
    );
    let said: Vec<String> =
        names.iter().zip(&texts).map(|(name, text)| format!("{name} {text}")).collect();
    let alt = format!("{}: {}; {} today.", pool.name, said.join(", "), pool.replicas.now);
    Draw::rows("replicas")
        .zero_x()
        .bars("reserve", Ink::Good, &bars)
        .bars("planned", Ink::Planned, &[planned])
        .upright(f64::from(pool.replicas.now), "today", Ink::Today)
        .done(&format!("reserve-{i}"), &format!("{}: replicas, line by line", pool.name), alt)
}

/// Where the memory of a device goes, pool by pool.
pub(crate) fn memory_chart(fits: &[Fit]) -> Chart {
    const GIB: f64 = 1_073_741_824.0;
    let mut names: Vec<&str> = Vec::new();
    for line in fits.iter().flat_map(|fit| &fit.budget).filter(|line| line.bytes > 0) {
        if !names.contains(&line.name) {
            names.push(line.name);
        }
    }
    let mut draw = Draw::rows("GiB of a device").zero_x().legend();
    for name in &names {
        let lines = fits.iter().filter_map(|fit| {
            let line = fit.budget.iter().find(|line| line.name == *name && line.bytes > 0)?;
            let gib = line.bytes as f64 / GIB;
            let says = format!("{}, {name}: {gib:.1} GiB", fit.name);
            Some((fit.name.clone(), (0.0, gib), format!("{name} {gib:.1}"), says))
        });
        draw = draw.stacked(name, memory_ink(name), &lines.collect::<Vec<Bar>>());
    }
    let alt: Vec<String> = fits
        .iter()
        .map(|fit| {
            let parts = fit.budget.iter().filter(|line| line.bytes > 0);
            let parts: Vec<String> = parts
                .map(|line| format!("{} {:.1} GiB", line.name, line.bytes as f64 / GIB))
                .collect();
            format!("{}: {}.", fit.name, parts.join(", "))
        })
        .collect();
    draw.done("memory", "Where the memory of a device goes", alt.join(" "))
}

fn memory_ink(name: &str) -> Ink {
    match name {
        "kv cache" => Ink::Good,
        // All of these are weights.
        "layers" | "vocabulary" | "experts" | "draft layers" | "vision tower" | "adapters" => {
            Ink::Other
        }
        "activation" => Ink::Demand,
        "graphs" | "libraries" | "collectives" => Ink::Line,
        "margin" | "fragmentation" => Ink::Danger,
        _ => Ink::Muted,
    }
}

/// The demand hour by hour against the load lines.
pub(crate) fn fan_chart(ahead: &Ahead, own: &AheadResource) -> Option<Chart> {
    let middle = own.bands.first()?;
    let (at, dated) = moments(&ahead.start, ahead.step_s, middle.per_s.len());
    let across = if dated { "" } else { "hours from the start" };
    let mut draw = Draw::new(across, own.unit).time_x(dated).legend();
    // From the widest to the narrowest, each over the last.
    let mut bands: Vec<_> = own.bands.iter().skip(1).collect();
    bands.sort_by(|a, b| b.level.total_cmp(&a.level));
    for band in &bands {
        let points: Vec<(f64, f64, f64)> = at
            .iter()
            .zip(middle.per_s.iter().zip(&band.per_s))
            .map(|(at, (middle, end))| (*at, *middle, *end))
            .collect();
        draw = draw.band(&format!("up to p{}", level(band.level)), Ink::Demand, &points);
    }
    let line: Vec<(f64, f64)> = at.iter().copied().zip(middle.per_s.iter().copied()).collect();
    draw = draw.line(&format!("p{}", level(middle.level)), Ink::Demand, &line);
    for (from, to) in &ahead.events {
        let end = at.get(*to).or(at.last());
        if let (Some(from), Some(to)) = (at.get(*from), end) {
            draw = draw.shade("event", Ink::Other, (*from, *to));
        }
    }
    let lines = [
        (own.load_line_now, "load line, today", Ink::Today),
        (own.load_line_planned, "load line, planned", Ink::Planned),
    ];
    let mut alt = Vec::new();
    for band in &own.bands {
        let most = band.per_s.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        if let Some((i, most)) = most {
            let when = match at.get(i) {
                Some(at) if dated => moment(*at, "%Y-%m-%d %H:%M"),
                Some(hours) => format!("hour {hours}"),
                None => continue,
            };
            alt.push(format!(
                "p{} peaks at {} {}, {when}",
                level(band.level),
                number(*most),
                own.unit
            ));
        }
    }
    for (value, name, ink) in lines {
        if let Some(value) = value {
            draw = draw.level(value, name, ink);
            alt.push(format!("{name}: {} {}", number(value), own.unit));
        }
    }
    let title = format!("{}, means of each hour", words(own.name));
    Some(draw.done(&format!("ahead-{}", own.name), &title, format!("{}.", alt.join("; "))))
}

/// Moments from a start on, in seconds since 1970, and true; hours and false where the start is no date.
pub(crate) fn moments(start: &str, step_s: u32, n: usize) -> (Vec<f64>, bool) {
    let mut words = start.split_whitespace().map(|word| word.trim_end_matches('Z'));
    let first = words.find_map(|word| word.parse::<jiff::civil::DateTime>().ok());
    // A day and a time of the day may be two words.
    let time = words.next().and_then(|word| word.parse::<jiff::civil::Time>().ok());
    let first = first.map(|at| time.map_or(at, |time| at.date().to_datetime(time)));
    let first = first.and_then(|at| at.to_zoned(jiff::tz::TimeZone::UTC).ok());
    let first = first.map(|at| at.timestamp().as_second() as f64);
    let seconds = (0..n).map(|i| i as f64 * f64::from(step_s));
    match first {
        Some(first) => (seconds.map(|s| first + s).collect(), true),
        None => (seconds.map(|s| s / 3600.0).collect(), false),
    }
}

/// The steepest rise, simulated each way.
pub(crate) fn windows_chart(check: &ScalingCheck) -> Chart {
    let panels = [
        Panel { y: "demand, tasks/s", from_zero: true },
        Panel { y: "ready replicas", from_zero: true },
        Panel { y: "waiting calls", from_zero: true },
        Panel { y: "good tasks", from_zero: false },
    ];
    let ways = [
        ("all planned, always", Ink::Muted, &check.static_plan),
        ("this policy", Ink::Planned, &check.policy),
        ("perfect foresight", Ink::Other, &check.oracle),
    ];
    let line = |way: &ScalingWay, value: fn(&plimsoll_study::WayPoint) -> f64| -> Vec<(f64, f64)> {
        way.series.iter().map(|own| (own.from_s / 60.0, value(own))).collect()
    };
    let mut draw = Draw::panels("minutes", &panels).legend();
    draw = draw.line("demand", Ink::Demand, &line(&check.policy, |own| own.offered_per_s));
    for (name, ink, way) in ways {
        draw = draw.panel(1).steps(name, ink, &line(way, |own| own.replicas));
        draw = draw.panel(2).line(name, ink, &line(way, |own| own.waiting));
        draw = draw.panel(3).line(name, ink, &line(way, |own| own.good.unwrap_or(f64::NAN)));
    }
    draw = draw.panel(3).percent_y();
    if let Some(target) = check.policy.attainment_target {
        draw = draw.level(target, "promised", Ink::Line);
    }
    let alt: Vec<String> = ways
        .iter()
        .map(|(name, _, way)| {
            format!(
                "{name}: {:.1} replica hours, {:.1} of {:.1} minutes missed.",
                way.replica_hours, way.slo_minutes_missed, way.slo_minutes
            )
        })
        .collect();
    draw.done("windows", "The steepest rise, simulated each way", alt.join(" "))
}
