//! A forecast as a page.

use plimsoll_forecast::Forecast;

use crate::chart::{Chart, Draw, Ink};
use crate::forecast::{
    ForecastFile, ForecastSeries, Moment, Point, SHOWN_BACK, inflection, level, number, shown,
    span, words,
};
use crate::page::{Block, Section, Table, page};
use crate::simulate::percent;

/// A forecast as one self-contained page.
pub fn forecast_html(file: &ForecastFile, forecast: &Forecast) -> String {
    let mut own = Section::new("ahead", "Demand ahead");
    own.text(format!(
        "{} to {} · steps of {} · sized for p{} · as of {} · seed {} · id {} · plimsoll {}.",
        file.start,
        file.until,
        span(u64::from(file.step_s)),
        level(file.sizing_quantile),
        file.as_of,
        file.seed,
        file.id,
        file.version
    ));
    own.text(format!(
        "History: {} to {}, {} steps, {} of them missing.",
        file.history.from, file.history.to, file.history.steps, file.history.missing
    ));
    own.list(
        file.inflections
            .iter()
            .map(|own| format!("{}.", inflection(own).replace('\n', ";")))
            .collect(),
    );
    fans(file, forecast).for_each(|(_, fan)| own.push(Block::Chart(Box::new(fan))));
    own.table(series_table(file));
    own.text("Bursts within a step are not in it: the burst model of a class adds them when a fleet is sized.");
    let mut sections = vec![own];
    if let Some(test) = backtest(file) {
        sections.push(test);
    }
    if !file.events.is_empty() {
        let mut events = Section::new("events", "Taken from the scenario, not from the past");
        let columns =
            ["event", "from", "to", "classes", ">rate", ">prompts", ">outputs", ">hit rate"];
        let mut table = Table::new("What was known of the future: likely (low to high)", &columns);
        let three = |own: [f64; 3]| format!("x {} ({} to {})", own[1], own[0], own[2]);
        for event in &file.events {
            let of = event.classes.join(", ");
            table.row(vec![
                event.name.as_str().into(),
                event.from.short().into(),
                event.until.short().into(),
                if of.is_empty() { "all".into() } else { of.into() },
                three(event.rate).into(),
                three(event.prompt).into(),
                three(event.output).into(),
                three(event.cache_hit).into(),
            ]);
        }
        events.table(table);
        sections.push(events);
    }
    if !file.warnings.is_empty() {
        let mut notes = Section::new("notes", "To know before trusting a number");
        notes.list(file.warnings.clone());
        sections.push(notes);
    }
    page(&format!("Forecast: {}", file.source), &sections)
}

/// The fan of each resource of all classes, with what came before.
pub(crate) fn fans<'a>(
    file: &'a ForecastFile,
    forecast: &'a Forecast,
) -> impl Iterator<Item = (&'a str, Chart)> {
    let both = file.series.iter().zip(&forecast.series);
    both.filter(|(series, _)| series.class == "all").map(|(series, how)| {
        let back = SHOWN_BACK * series.points.len();
        let history = &how.history[how.history.len().saturating_sub(back)..];
        let first = -i64::try_from(history.len()).unwrap_or(0);
        let came = placed(&file.start, file.step_s, first, history);
        (series.resource.as_str(), fan(file, series, ("what came", &came)))
    })
}

/// Values at their steps from a start on.
pub(super) fn placed(start: &Moment, step_s: u32, first: i64, values: &[f64]) -> Vec<(f64, f64)> {
    let step = i64::from(step_s);
    let steps = (first..).zip(values);
    steps.map(|(i, value)| (after(start, i * step), *value)).collect()
}

/// So many seconds after a moment: in seconds since 1970, or in hours where the log has no dates.
fn after(start: &Moment, seconds: i64) -> f64 {
    match start {
        Moment::World(text) => {
            let first = text.parse().map_or(0, jiff::Timestamp::as_second);
            (first + seconds) as f64
        }
        Moment::Log(first) => (first + seconds) as f64 / 3600.0,
    }
}

/// The fan of a series, with what came.
pub(super) fn fan(
    file: &ForecastFile,
    own: &ForecastSeries,
    (name, came): (&str, &[(f64, f64)]),
) -> Chart {
    let across = match file.start {
        Moment::World(_) => "UTC",
        Moment::Log(_) => "hours from the start of the log",
    };
    let at: Vec<f64> = (0..own.points.len())
        .map(|i| after(&file.start, i64::try_from(i).unwrap_or(0) * i64::from(file.step_s)))
        .collect();
    let dated = matches!(file.start, Moment::World(_));
    let mut draw = Draw::new(across, &own.unit).time_x(dated).legend();
    // From the widest to the narrowest, each over the last.
    type High = fn(&Point) -> f64;
    let shades: [(&str, High); 3] =
        [("up to p99", |p| p.p99), ("up to p95", |p| p.p95), ("up to p80", |p| p.p80)];
    for (name, high) in shades {
        let band = at.iter().zip(&own.points).map(|(at, p)| (*at, p.p50, high(p)));
        draw = draw.band(name, Ink::Demand, &band.collect::<Vec<_>>());
    }
    let middle = at.iter().zip(&own.points).map(|(at, p)| (*at, p.p50));
    draw = draw.line("median", Ink::Demand, &middle.collect::<Vec<_>>());
    draw = draw.line(name, Ink::Other, came);
    for line in file.inflections.iter().filter(|line| line.resource == own.resource) {
        draw = draw.level(line.line, "load line", Ink::Line);
    }
    let peak = own.points.iter().max_by(|a, b| a.p95.total_cmp(&b.p95));
    let alt = peak.map_or(String::new(), |peak| {
        format!(
            "{} peak at {} {} in the median and {} at p95, {}, by {}.",
            words(&own.resource),
            number(peak.p50),
            own.unit,
            number(peak.p95),
            peak.t.short(),
            own.model
        )
    });
    draw.done(
        &format!("fan-{}", own.resource),
        &format!("{} of all classes", words(&own.resource)),
        alt,
    )
}

fn series_table(file: &ForecastFile) -> Table {
    let columns = [
        "class",
        "resource",
        ">peak p50",
        ">peak p80",
        ">peak p95",
        ">peak p99",
        "at",
        "unit",
        "model",
    ];
    let mut table = Table::new("The fullest step ahead, by its p95", &columns);
    for own in shown(file) {
        let Some(peak) = own.points.iter().max_by(|a, b| a.p95.total_cmp(&b.p95)) else { continue };
        table.row(vec![
            own.class.as_str().into(),
            words(&own.resource).into(),
            number(peak.p50).into(),
            number(peak.p80).into(),
            number(peak.p95).into(),
            number(peak.p99).into(),
            peak.t.short().into(),
            own.unit.as_str().into(),
            own.model.as_str().into(),
        ]);
    }
    table
}

fn backtest(file: &ForecastFile) -> Option<Section> {
    file.backtest.as_ref()?;
    let mut own = Section::new("backtest", "Back-test");
    let columns = [
        "class",
        "resource",
        ">WAPE",
        ">bias",
        ">MASE",
        ">loss",
        ">naive",
        ">mean",
        ">at or below p50",
        ">p90",
        ">p95",
        ">p99",
    ];
    let caption =
        format!("How it did on the past; loss is pinball at p{}", level(file.sizing_quantile));
    let mut table = Table::new(&caption, &columns);
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
    let loss = |value: Option<f64>| value.map_or("-".to_owned(), number);
    for series in shown(file) {
        let Some(test) = &series.backtest else { continue };
        let covered =
            |level: &str| test.coverage.get(level).map_or("-".to_owned(), |s| percent(*s));
        table.row(vec![
            series.class.as_str().into(),
            words(&series.resource).into(),
            maybe(test.wape).into(),
            maybe(test.bias).into(),
            maybe(test.mase).into(),
            loss(test.pinball).into(),
            loss(test.pinball_naive).into(),
            loss(test.pinball_mean).into(),
            covered("0.5").into(),
            covered("0.9").into(),
            covered("0.95").into(),
            covered("0.99").into(),
        ]);
    }
    own.table(table);
    Some(own)
}
