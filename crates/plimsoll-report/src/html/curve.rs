//! A service curve as a page.

use plimsoll_study::{CurveMark, CurvePoint, Verdict};
use plimsoll_units::grouped;

use crate::chart::service::{ServiceCurve, curve_chart, latency_chart, load_test_chart};
use crate::curve::{CurveDocument, attained, binds, kept, measured_sentence, rate, times};
use crate::page::{Block, Section, Table, page};
use crate::simulate::{milliseconds, percent};

/// A service curve as one self-contained page.
pub fn curve_html(document: &CurveDocument<'_>, version: &str) -> String {
    let curve = document.result;
    let load = |mark: &Option<CurveMark>| mark.as_ref().map(|mark| mark.load);
    let (knee, line) = (load(&curve.knee), load(&curve.load_line));
    let mut own = Section::new("curve", "Service curve");
    own.push(Block::Lead(match &curve.load_line {
        Some(line) => format!(
            "The fleet may be loaded to {} tasks/s, {} times the demand.",
            rate(line.offered_per_s),
            times(line.load)
        ),
        None => "No load that was tried keeps every promise.".to_owned(),
    }));
    own.text(format!(
        "{} · hour from {} · seed {} · about {} calls a point · {:.0} s of warm-up · step times: {} · plimsoll {version}.",
        document.file,
        document.from,
        curve.seed,
        grouped(curve.calls as u64),
        curve.warm_up_s,
        document.step_times
    ));
    let fleet = ServiceCurve {
        fleet: "this fleet",
        planned: false,
        points: &curve.points,
        knee_load: knee,
        line_load: line,
    };
    own.push(Block::Chart(Box::new(curve_chart("curve", &[fleet]))));
    own.push(Block::Chart(Box::new(latency_chart("latency", &[fleet]))));
    let mut says = Vec::new();
    if let Some(knee) = &curve.knee {
        says.push(format!(
            "Knee: {} tasks/s, {} times the demand, of which {} good/s.",
            rate(knee.offered_per_s),
            times(knee.load),
            rate(knee.goodput_per_s)
        ));
    }
    if let Some(text) = binds(&curve.binding) {
        says.push(format!("W{}.", text.trim_start_matches('w')));
    }
    if let Some(peak) = &curve.peak_throughput {
        says.push(format!(
            "Peak throughput: {} tokens/s at {} times the demand, UNSAFE: {} of tasks are good there.",
            grouped(peak.output_tokens_per_s.round().max(0.0) as u64),
            times(peak.load),
            peak.attainment.map_or("an unknown share".to_owned(), percent)
        ));
    }
    own.list(says);
    own.table(points_table("Points of the curve", &curve.points, (knee, line)));
    let mut sections = vec![own];
    if let Some(lines) = lines_section(document) {
        sections.push(lines);
    }
    if let Some(measured) = load_test(document) {
        sections.push(measured);
    }
    if !curve.notes.is_empty() {
        let mut notes = Section::new("notes", "To know before trusting a number");
        notes.list(curve.notes.clone());
        sections.push(notes);
    }
    page(&format!("Service curve: {}", document.name), &sections)
}

fn lines_section(document: &CurveDocument<'_>) -> Option<Section> {
    let lines = &document.result.load_lines;
    if lines.is_empty() {
        return None;
    }
    let mut own = Section::new("lines", "The load line in the units of resources");
    let columns = ["whole mix", ">demand", ">load line", ">times", "unit"];
    let mut table = Table::new("The whole mix is scaled", &columns);
    let number = |x: f64| if x < 1.0 { times(x) } else { rate(x) };
    for line in lines {
        let at = match (line.load_line, line.holds_at_demand) {
            (Some(at), _) => number(at),
            (None, true) => "beyond".to_owned(),
            (None, false) => "none".to_owned(),
        };
        table.row(vec![
            line.resource.replace('_', " ").into(),
            number(line.demand).into(),
            at.into(),
            line.factor.map_or("-".to_owned(), times).into(),
            line.unit.into(),
        ]);
    }
    own.table(table);
    Some(own)
}

fn load_test(document: &CurveDocument<'_>) -> Option<Section> {
    if document.load_test.is_empty() {
        return None;
    }
    let mut own = Section::new("load-test", "Against a load test");
    let points = document.load_test.iter();
    let points: Vec<_> =
        points.map(|p| (p.offered_per_s, p.achieved_per_s, p.predicted_per_s)).collect();
    own.push(Block::Chart(Box::new(load_test_chart(&points))));
    own.text(measured_sentence(document.measured_line));
    if let Some(paste) = document.measured_line.and_then(|line| line.paste.as_ref()) {
        own.text("To plan with it in place of ours:");
        own.push(Block::Code(paste.clone()));
    }
    let columns =
        ["load test", ">offered/s", ">measured/s", ">curve/s", ">TTFT mean, ms", "promises"];
    let mut table =
        Table::new("What was measured, and what the curve says for the same load", &columns);
    for point in document.load_test {
        let maybe = |value: Option<f64>| value.map_or("-".to_owned(), rate);
        table.row(vec![
            point.origin.as_str().into(),
            rate(point.offered_per_s).into(),
            maybe(point.achieved_per_s).into(),
            maybe(point.predicted_per_s).into(),
            point.ttft_mean_ms.map_or("-".to_owned(), milliseconds).into(),
            kept(point.keeps).into(),
        ]);
    }
    own.table(table);
    Some(own)
}

/// The points of a curve, with the knee and the load line named.
pub(crate) fn points_table(
    caption: &str,
    points: &[CurvePoint],
    (knee, line): (Option<f64>, Option<f64>),
) -> Table {
    let columns = [
        ">load",
        ">offered/s",
        ">done/s",
        ">good/s",
        ">good",
        ">errors",
        ">queue",
        ">busy",
        ">KV",
        ">TTFT p95, ms",
        ">TPOT p95, ms",
        "",
    ];
    let mut table = Table::new(caption, &columns);
    for p in points {
        let mut what: Vec<String> = Vec::new();
        if line == Some(p.load) {
            what.push("LOAD LINE".to_owned());
        }
        if knee == Some(p.load) {
            what.push("knee".to_owned());
        }
        what.extend(p.fails_by.as_ref().map(|by| format!("fails by {by}")));
        if p.verdict == Some(Verdict::Overloaded) {
            what.push("overloaded".to_owned());
        }
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), milliseconds);
        table.row(vec![
            times(p.load).into(),
            rate(p.offered_per_s).into(),
            rate(p.achieved_per_s).into(),
            rate(p.goodput_per_s).into(),
            attained(p).into(),
            percent(p.errors).into(),
            format!("{:.1}", p.queue_mean).into(),
            percent(p.busy.min(1.0)).into(),
            percent(p.kv).into(),
            ms(p.ttft_p95_ms).into(),
            ms(p.tpot_p95_ms).into(),
            what.join(", ").into(),
        ]);
    }
    table
}
