//! Pictures of a demand: what came, what was expected, and how far it may be off.

use plotters::prelude::*;

/// A step of a band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandStep {
    /// When, in hours.
    pub at: f64,
    /// The median.
    pub p50: f64,
    /// One in five is above.
    pub p80: f64,
    /// One in twenty is above.
    pub p95: f64,
    /// One in a hundred is above.
    pub p99: f64,
}

/// What a picture shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture<'a> {
    /// Above it.
    pub title: &'a str,
    /// Beside it.
    pub unit: &'a str,
    /// Below it.
    pub time: &'a str,
    /// What came: hours and values, not a number where it is missing.
    pub came: &'a [(f64, f64)],
    /// What was expected.
    pub band: &'a [BandStep],
}

const SIZE: (u32, u32) = (960, 360);
const INK: RGBColor = RGBColor(30, 41, 59);
const FAINT: RGBColor = RGBColor(226, 232, 240);
const BAND: RGBColor = RGBColor(37, 99, 235);
const CAME: RGBColor = RGBColor(15, 23, 42);

/// The picture as SVG.
pub fn svg(picture: &Picture<'_>) -> String {
    let mut out = String::new();
    // Drawing into a text cannot fail.
    let drawn = draw(picture, &mut out);
    debug_assert!(drawn.is_ok(), "{drawn:?}");
    out
}

fn draw(picture: &Picture<'_>, out: &mut String) -> Result<(), String> {
    let times = || {
        let band = picture.band.iter().map(|step| step.at);
        picture.came.iter().map(|(at, _)| *at).chain(band)
    };
    let first = times().fold(f64::INFINITY, f64::min);
    let last = times().fold(f64::NEG_INFINITY, f64::max);
    let highs = picture.band.iter().map(|step| step.p99);
    let came = picture.came.iter().map(|(_, value)| *value).filter(|value| !value.is_nan());
    let most = highs.chain(came).fold(0.0, f64::max);
    if !(first < last && most > 0.0 && most.is_finite()) {
        return Ok(());
    }
    let root = SVGBackend::with_string(out, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|e| e.to_string())?;
    let mut chart = ChartBuilder::on(&root)
        .caption(picture.title, ("sans-serif", 18).into_font().color(&INK))
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(72)
        .build_cartesian_2d(first..last, 0.0..most * 1.05)
        .map_err(|e| e.to_string())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .axis_style(INK)
        .x_desc(picture.time)
        .y_desc(picture.unit)
        .y_label_formatter(&|value| short(*value))
        .label_style(("sans-serif", 12).into_font().color(&INK))
        .draw()
        .map_err(|e| e.to_string())?;
    // From the widest to the narrowest, each over the last; what is below the median is left to it.
    type High = fn(&BandStep) -> f64;
    let shades: [(&str, f64, High); 3] =
        [("p99", 0.12, |s| s.p99), ("p95", 0.18, |s| s.p95), ("p80", 0.26, |s| s.p80)];
    for (name, shade, high) in shades {
        let mut outline: Vec<(f64, f64)> =
            picture.band.iter().map(|step| (step.at, high(step))).collect();
        outline.extend(picture.band.iter().rev().map(|step| (step.at, step.p50)));
        chart
            .draw_series(std::iter::once(Polygon::new(outline, BAND.mix(shade))))
            .map_err(|e| e.to_string())?
            .label(format!("up to {name}"))
            .legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 14, y + 5)], BAND.mix(shade * 2.0).filled())
            });
    }
    let middle = picture.band.iter().map(|step| (step.at, step.p50));
    chart
        .draw_series(LineSeries::new(middle, BAND.stroke_width(2)))
        .map_err(|e| e.to_string())?
        .label("median")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 14, y)], BAND.stroke_width(2)));
    // A gap is a gap in the line, too.
    let mut named = false;
    for run in picture.came.split(|(_, value)| value.is_nan()).filter(|run| !run.is_empty()) {
        let line = LineSeries::new(run.iter().copied(), CAME.stroke_width(1));
        let series = chart.draw_series(line).map_err(|e| e.to_string())?;
        if !named {
            series
                .label("what came")
                .legend(|(x, y)| PathElement::new([(x, y), (x + 14, y)], CAME.stroke_width(1)));
            named = true;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(FAINT)
        .label_font(("sans-serif", 12).into_font().color(&INK))
        .draw()
        .map_err(|e| e.to_string())?;
    root.present().map_err(|e| e.to_string())
}

/// A number as an axis shows it.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.1} G", value / 1e9),
        v if v >= 1e6 => format!("{:.1} M", value / 1e6),
        v if v >= 1e4 => format!("{:.0} k", value / 1e3),
        v if v >= 10.0 || v == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}
