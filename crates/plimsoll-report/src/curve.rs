//! A service curve: a screen with a picture, and a document.

use std::fmt::Write as _;

use plimsoll_study::{Curve, CurveBinding, CurveMark, CurvePoint, ResourceLine, Verdict};
use plimsoll_units::grouped;
use serde::Serialize;
use serde_json::{Value, json};

use crate::plot::Plot;
use crate::simulate::{milliseconds, percent};
use crate::text::{Heading, aligned};

/// What a curve is of.
#[derive(Clone, Debug)]
pub struct CurveDocument<'a> {
    /// The study's name.
    pub name: &'a str,
    /// The file it was read from.
    pub file: &'a str,
    /// When the hour begins.
    pub from: String,
    /// Where its step times come from.
    pub step_times: &'a str,
    /// How it came out.
    pub result: &'a Curve,
    /// What a load test measured, to be held against it.
    pub load_test: &'a [LoadTestPoint],
    /// The load line that the test measured.
    pub measured_line: Option<&'a MeasuredLoadLine>,
}

/// The load line of a load test: provenance `observed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredLoadLine {
    /// The largest tested requests a second that keep every promise, as every smaller tested load does.
    pub carries_per_s: f64,
    /// The smallest tested load that breaks one.
    pub fails_per_s: Option<f64>,
    /// Where the point that carries was read.
    pub source: String,
    /// The `[[line]]` that plans with it, where one pool serves everything.
    pub paste: Option<String>,
}

/// A measured point, beside what the curve says at its load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadTestPoint {
    /// Where it was read.
    pub origin: String,
    /// Requests a second that were offered.
    pub offered_per_s: f64,
    /// Requests a second that were answered.
    pub achieved_per_s: Option<f64>,
    /// What the curve says for the same load; none beyond its points.
    pub predicted_per_s: Option<f64>,
    /// The mean first token, as measured.
    pub ttft_mean_ms: Option<f64>,
    /// Whether it keeps the strictest promises; none where the file has no percentile that says it.
    pub keeps: Option<bool>,
}

/// The curve as a JSON document.
pub fn curve_json(document: &CurveDocument<'_>, version: &str) -> Value {
    let mut value = json!({
        "schema": "plimsoll/curve/v1", "version": version, "name": document.name, "file": document.file,
        "from": document.from, "step_times": document.step_times,
    });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(document.result))
    {
        value.extend(body);
        value.insert("load_test".to_owned(), json!(document.load_test));
        value.insert("measured_line".to_owned(), json!(document.measured_line));
    }
    value
}

/// The first screen.
pub fn curve_text(document: &CurveDocument<'_>, heading: Heading) -> String {
    let curve = document.result;
    let mut out = heading.apply(document.name);
    let _ = writeln!(
        out,
        "\nhour from {} · seed {} · about {} calls a point · {:.0} s of warm-up",
        document.from,
        curve.seed,
        grouped(curve.calls as u64),
        curve.warm_up_s
    );
    let _ = writeln!(out, "step times: {}\n", document.step_times);
    out.push_str(&picture(document));
    out.push_str(&points(&curve.points, curve));
    out.push('\n');
    let _ = match &curve.load_line {
        Some(line) => writeln!(
            out,
            "load line: {} tasks/s, {} times the demand{}",
            rate(line.offered_per_s),
            times(line.load),
            match (line.fails_at_load, line.sure) {
                (None, _) => ", the most that was tried: where it ends is not known".to_owned(),
                (Some(at), true) => format!("; {} times is too much", times(at)),
                (Some(at), false) => format!("; {} times is too much", times(at)),
            }
        ),
        None => writeln!(
            out,
            "load line: none: no load that was tried keeps every promise, not even {} times the demand",
            times(curve.points.first().map_or(0.0, |p| p.load))
        ),
    };
    if let Some(CurveMark { load, offered_per_s, goodput_per_s, .. }) = &curve.knee {
        let _ = writeln!(
            out,
            "knee: {} tasks/s, {} times the demand, of which {} good/s",
            rate(*offered_per_s),
            times(*load),
            rate(*goodput_per_s)
        );
    }
    if let Some(says) = binds(&curve.binding) {
        let _ = writeln!(out, "{says}");
    }
    if let Some(peak) = &curve.peak_throughput {
        let _ = writeln!(
            out,
            "peak throughput: {} tokens/s at {} times the demand, UNSAFE: {} of tasks are good there",
            grouped(peak.output_tokens_per_s.round() as u64),
            times(peak.load),
            peak.attainment.map_or("an unknown share".to_owned(), percent)
        );
    }
    if !curve.load_lines.is_empty() {
        out.push('\n');
        out.push_str(&load_lines_text(&curve.load_lines));
    }
    if !document.load_test.is_empty() {
        out.push('\n');
        out.push_str(&load_test(document.load_test));
        out.push_str(&measured_line(document.measured_line));
    }
    if !curve.notes.is_empty() {
        out.push_str("\nTo know before trusting a number:\n");
        for note in &curve.notes {
            let _ = writeln!(out, "- {note}");
        }
    }
    out
}

/// What binds at the first load that fails, and the promise that is broken first.
pub(crate) fn binds(binding: &CurveBinding) -> Option<String> {
    let cause = binding.cause?;
    let of = binding.of.as_ref().map_or(String::new(), |of| format!(" of {of}"));
    let signal = binding.first_signal.as_ref();
    let signal = signal.map_or(String::new(), |signal| format!(", first seen in {signal}"));
    Some(format!("what binds: {}{of}{signal}", cause.word().replace('_', " ")))
}

/// As many digits as anybody reads.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        none if none <= 0.0 => "0.00".to_owned(),
        few if few < 1.0 => times(few),
        some if some < 100.0 => format!("{some:.2}"),
        many => grouped(many.round() as u64),
    }
}

/// Three digits of a factor, of which a small one has its zeros before them.
pub(crate) fn times(factor: f64) -> String {
    if factor < 1e-6 {
        return format!("{factor:.2}");
    }
    let zeros = (-factor.log10()).ceil().max(0.0) as usize;
    format!("{factor:.*}", zeros + 2)
}

fn picture(document: &CurveDocument<'_>) -> String {
    let points = &document.result.points;
    let Some(most) = points.iter().map(|p| p.offered_per_s).reduce(f64::max) else {
        return String::new();
    };
    let good: Vec<(f64, f64)> = std::iter::once((0.0, 0.0))
        .chain(points.iter().map(|p| (p.offered_per_s, p.goodput_per_s)))
        .collect();
    let measured: Vec<(f64, f64)> = document
        .load_test
        .iter()
        .filter_map(|p| Some((p.offered_per_s, p.achieved_per_s?)))
        .collect();
    let high = good.iter().chain(&measured).map(|p| p.1).fold(0.0, f64::max);
    let mut plot = Plot::new((60, 10), (0.0, most), (0.0, high)).line(&good).dots(&measured);
    if let Some(line) = &document.result.load_line {
        plot = plot.line(&[(line.offered_per_s, 0.0), (line.offered_per_s, high)]);
    }
    let mut out = String::from("good tasks/s (up) against offered tasks/s");
    if document.result.load_line.is_some() {
        out.push_str("; the upright line is the load line");
    }
    if !measured.is_empty() {
        out.push_str("; single dots are the load test's, answered");
    }
    out.push('\n');
    out.push_str(&plot.text());
    out.push('\n');
    out
}

fn points(points: &[CurvePoint], curve: &Curve) -> String {
    let header = [
        "load",
        "offered/s",
        "done/s",
        "good/s",
        "good",
        "errors",
        "queue",
        "busy",
        "KV",
        "good/s/device",
        "TTFT p95",
        "TPOT p95",
        "",
    ];
    let at = |mark: &Option<CurveMark>, point: &CurvePoint| {
        mark.as_ref().is_some_and(|mark| mark.load.to_bits() == point.load.to_bits())
    };
    let rows: Vec<Vec<String>> = points
        .iter()
        .map(|p| {
            let mut what: Vec<String> = Vec::new();
            if at(&curve.load_line, p) {
                what.push("LOAD LINE".to_owned());
            }
            if at(&curve.knee, p) {
                what.push("knee".to_owned());
            }
            if let Some(by) = &p.fails_by {
                what.push(format!("fails by {by}"));
            }
            if p.verdict == Some(Verdict::Overloaded) {
                what.push("overloaded".to_owned());
            }
            let ms = |value: Option<f64>| value.map_or("-".to_owned(), milliseconds);
            vec![
                times(p.load),
                rate(p.offered_per_s),
                rate(p.achieved_per_s),
                rate(p.goodput_per_s),
                attained(p),
                percent(p.errors),
                format!("{:.1}", p.queue_mean),
                percent(p.busy.min(1.0)),
                percent(p.kv),
                p.goodput_per_device.map_or("-".to_owned(), rate),
                ms(p.ttft_p95_ms),
                ms(p.tpot_p95_ms),
                what.join(", "),
            ]
        })
        .collect();
    aligned(&header, &rows, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
}

/// Good tasks of those that came, and how sure that is.
pub(crate) fn attained(point: &CurvePoint) -> String {
    let Some(share) = point.attainment else { return "-".to_owned() };
    match point.attainment_interval {
        Some(span) => {
            format!("{} ({} to {})", percent(share), percent(span.low), percent(span.high))
        }
        None => percent(share),
    }
}

/// Lines of resources.
pub(crate) fn load_lines_text(lines: &[ResourceLine]) -> String {
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let number = |x: f64| {
                if x < 1.0 { times(x) } else { rate(x) }
            };
            vec![
                line.resource.replace('_', " "),
                number(line.demand),
                match (line.load_line, line.holds_at_demand) {
                    (Some(at), _) => number(at),
                    (None, true) => "beyond".to_owned(),
                    (None, false) => "none".to_owned(),
                },
                line.factor.map_or("-".to_owned(), times),
                line.unit.to_owned(),
            ]
        })
        .collect();
    let header = ["whole mix", "demand", "load line", "times", "unit"];
    aligned(&header, &rows, &[1, 2, 3])
}

fn load_test(points: &[LoadTestPoint]) -> String {
    let rows: Vec<Vec<String>> = points
        .iter()
        .map(|p| {
            let maybe = |x: Option<f64>| x.map_or("-".to_owned(), rate);
            vec![
                rate(p.offered_per_s),
                maybe(p.achieved_per_s),
                maybe(p.predicted_per_s),
                p.ttft_mean_ms.map_or("-".to_owned(), milliseconds),
                kept(p.keeps).to_owned(),
                p.origin.clone(),
            ]
        })
        .collect();
    let header = ["offered/s", "measured/s", "curve/s", "TTFT mean ms", "promises", "load test"];
    aligned(&header, &rows, &[0, 1, 2, 3])
}

/// Whether promises were kept, in a word.
pub(crate) fn kept(keeps: Option<bool>) -> &'static str {
    match keeps {
        Some(true) => "kept",
        Some(false) => "broken",
        None => "unknown",
    }
}

/// The load line that a test measured, in a sentence.
pub(crate) fn measured_sentence(line: Option<&MeasuredLoadLine>) -> String {
    let Some(line) = line else {
        return "The load test has no load line: its lightest load is not known to keep every promise at its 99th percentile.".to_owned();
    };
    let fails = line.fails_per_s.map_or(", the most that was offered".to_owned(), |fails| {
        format!("; {} breaks one", rate(fails))
    });
    format!(
        "Load line, observed: {} requests/s keep every promise at its 99th percentile{fails} ({}).",
        rate(line.carries_per_s),
        line.source
    )
}

fn measured_line(line: Option<&MeasuredLoadLine>) -> String {
    let mut out = format!("{}\n", measured_sentence(line));
    if let Some(paste) = line.and_then(|line| line.paste.as_ref()) {
        let _ = writeln!(out, "To plan with it in place of ours:\n\n{paste}");
    }
    out
}
