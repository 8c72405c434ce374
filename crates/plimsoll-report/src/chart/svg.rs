//! A chart as SVG: heights are in pixels and widths in percent, so that it fits its place and its letters stay as large as they are.

use maud::{Markup, PreEscaped, html};

use super::draw::{Draw, Look, Mark, Series, Shape};
use super::scale::{Scale, Tick, figure};
use super::{Chart, STYLE};

/// A line of letters.
const LINE: f64 = 16.0;
/// As wide as a picture that stands alone is, and its margins.
const WIDE: f64 = 960.0;
/// More points than this cannot be told apart.
const POINTS: usize = 900;
/// Between two panels.
const GAP: f64 = 38.0;
/// A row of a chart with names: the name, then what is drawn.
const ROW: f64 = 48.0;
const BAR: f64 = 22.0;
/// A row of cells, whose name is beside it.
const CELLS: f64 = 26.0;

/// A panel: where it is and what its y axis spans.
struct Frame<'a> {
    top: f64,
    height: f64,
    y: Scale<'a>,
}

impl Frame<'_> {
    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - self.y.at(value))
    }
}

/// A chart that has been measured.
struct Plan<'a> {
    draw: &'a Draw,
    x: Scale<'a>,
    frames: Vec<Frame<'a>>,
    names: Vec<&'a str>,
    height: f64,
}

/// Tenths of a pixel, without what need not be written.
fn px(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    // Below zero, nothing would be written as `-0`.
    format!("{}", tenths + 0.0)
}

/// A share of the width.
fn pc(share: f64) -> String {
    format!("{}%", (share * 1e4).round() / 100.0 + 0.0)
}

impl Chart {
    /// The legend and the drawing, for a page that has [`super::STYLE`].
    pub(crate) fn html(&self) -> Markup {
        let plan = Plan::new(&self.draw);
        html! {
            div class="chart" id={ "chart-" (self.id) } {
                @if self.draw.legend {
                    ul class="legend" aria-label={ "Series of: " (self.title) } {
                        @for (i, name) in plan.names.iter().enumerate() {
                            li class=(plan.key(i)) { label {
                                input type="checkbox" checked autocomplete="off"; (name)
                            } }
                        }
                    }
                }
                svg class={ "plot" (plan.kind()) } role="img" aria-label=(self.alt) height=(px(plan.height))
                    data-x=(self.draw.x.title) data-log=[self.draw.x.log.then_some("")]
                    data-time=[self.draw.x.time.then_some("")]
                    data-low=(plan.x.low) data-high=(plan.x.high) { (plan.drawn()) }
            }
        }
    }

    /// A picture that stands alone.
    pub fn picture(&self) -> String {
        let plan = Plan::new(&self.draw);
        let top = if self.draw.legend { 62.0 } else { 34.0 };
        let left = if plan.kind() == " rows" { 16.0 } else { 56.0 };
        let mut along = left;
        let keys: Vec<(f64, usize, &str)> = plan
            .names
            .iter()
            .enumerate()
            .map(|(i, name)| {
                let at = along;
                // About as wide as the letters of a screen.
                along += 34.0 + 6.6 * name.chars().count() as f64;
                (at, i, *name)
            })
            .collect();
        let height = px(plan.height + top);
        let markup = html! {
            svg xmlns="http://www.w3.org/2000/svg" role="img" class="picture" width=(WIDE) height=(height)
                viewBox={ "0 0 " (WIDE) " " (height) } {
                title { (self.title) }
                desc { (self.alt) }
                style { (PreEscaped(on_paper())) }
                rect class="paper" width="100%" height="100%" {}
                text class="title" x=(left) y="22" { (self.title) }
                @if self.draw.legend { @for (at, i, name) in keys {
                    g class=(plan.key(i)) {
                        rect class="swatch" x=(px(at)) y="36" width="12" height="12" rx="2" {}
                        text x=(px(at + 17.0)) y="46" { (name) }
                    }
                } }
                svg x=(left) y=(top) width=(WIDE - left - 24.0) height=(px(plan.height)) overflow="visible" {
                    (plan.drawn())
                }
            }
        };
        format!("{}\n", markup.into_string())
    }
}

impl<'a> Plan<'a> {
    fn new(draw: &'a Draw) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for series in &draw.series {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        let bars = !draw.rows.is_empty() && draw.x.names.is_empty();
        let x = Scale::over(&draw.x, across(draw), bars.then_some(8.0));
        // Lines that have a name reach up to it.
        let flags = draw.marks.iter().filter(|mark| is_flag(mark)).count() as f64;
        let titled = draw.panels.iter().any(|axis| !axis.title.is_empty());
        let mut top = 10.0 + if titled { LINE } else { 0.0 } + LINE * flags;
        let height = match (draw.rows.len(), draw.panels.len()) {
            (0, 1) => 260.0,
            (0, _) => 120.0,
            (rows, _) if draw.x.names.is_empty() => ROW * rows as f64,
            (rows, _) => CELLS * rows as f64,
        };
        let mut frames = Vec::new();
        for (i, axis) in draw.panels.iter().enumerate() {
            let about = if draw.panels.len() == 1 { 5.0 } else { 3.0 };
            let y = Scale::over(axis, up(draw, i), Some(about));
            frames.push(Frame { top, height, y });
            top += height + GAP;
        }
        // Ticks, and what they are of.
        let below = if draw.x.title.is_empty() { 8.0 } else { LINE + 12.0 };
        Self { draw, x, frames, names, height: top - GAP + LINE + below }
    }

    fn kind(&self) -> &'static str {
        match (self.draw.rows.is_empty(), self.draw.x.names.is_empty()) {
            (true, _) => "",
            (false, true) => " rows",
            (false, false) => " cells",
        }
    }

    /// What an entry of the legend looks like: as the first of its series does.
    fn key(&self, i: usize) -> String {
        let first =
            self.draw.series.iter().find(|series| Some(&series.name.as_str()) == self.names.get(i));
        let Some(series) = first else { return String::new() };
        let look = match &series.shape {
            Shape::Line { look: Look::Broken, .. } => "broken",
            Shape::Line { look: Look::Dots, .. } => "dots",
            Shape::Line { .. } => "solid",
            Shape::Point { hollow: true, .. } => "ring",
            Shape::Point { .. } => "dots",
            Shape::Band(_) | Shape::Shade(..) | Shape::Bar { .. } => "box",
        };
        format!("{look} {}", series.ink.class())
    }

    /// The class of a series: its colour, and the number that the legend switches it by.
    fn class(&self, look: &str, series: &Series) -> String {
        let i = self.names.iter().position(|name| *name == series.name).unwrap_or(0);
        format!("{look} {} s{i}", series.ink.class())
    }

    fn drawn(&self) -> Markup {
        let of = |panel: usize, back: bool| {
            let behind = move |shape: &Shape| matches!(shape, Shape::Band(_) | Shape::Shade(..));
            self.draw.series.iter().filter(move |series| {
                let shaded = matches!(series.shape, Shape::Shade(..));
                (series.panel == panel || shaded) && behind(&series.shape) == back
            })
        };
        html! {
            @for (i, frame) in self.frames.iter().enumerate() {
                g class="panel" {
                    rect class="ground" y=(px(frame.top)) width="100%" height=(px(frame.height))
                        data-unit=(frame.y.axis.title) {}
                    (self.grid(i, frame))
                    @for series in of(i, true) { (self.behind(frame, series)) }
                    @if !self.draw.rows.is_empty() { (self.names(frame)) }
                    @for series in of(i, false) { (self.front(frame, series)) }
                    @for (at, mark) in self.draw.marks.iter().enumerate() {
                        @if mark.panel == i && mark.y.is_some() { (self.level(frame, at, mark)) }
                    }
                }
            }
            (self.uprights())
        }
    }

    /// Rules with their numbers; those of the x axis are written below the last panel.
    fn grid(&self, i: usize, frame: &Frame<'_>) -> Markup {
        let bottom = frame.top + frame.height;
        let x = if self.draw.x.names.is_empty() { self.x.ticks(9.0) } else { self.columns() };
        let y = if self.draw.rows.is_empty() {
            frame.y.ticks(if frame.height > 200.0 { 5.0 } else { 3.0 })
        } else {
            Vec::new()
        };
        let last = i + 1 == self.frames.len();
        html! {
            @for tick in &y {
                line class="rule" x2="100%" y1=(px(frame.y(tick.at))) y2=(px(frame.y(tick.at))) {}
                text class="tick end" x="-8" y=(px(frame.y(tick.at) + 4.0)) { (tick.label) }
            }
            @if !frame.y.axis.title.is_empty() {
                text class="of" x="-44" y=(px(self.title_of(i))) { (frame.y.axis.title) }
            }
            @for tick in &x {
                @let at = pc(self.x.at(tick.at));
                @if self.draw.x.names.is_empty() { line class="rule" x1=(at) x2=(at) y1=(px(frame.top)) y2=(px(bottom)) {} }
                @if last { text class=(if tick.narrow { "tick mid" } else { "tick mid wide" }) x=(at) y=(px(bottom + LINE)) { (tick.label) } }
            }
            @if last && !self.draw.x.title.is_empty() {
                text class="of mid" x="50%" y=(px(bottom + LINE + 18.0)) { (self.draw.x.title) }
            }
        }
    }

    /// What a y axis is of stands above its panel, and above the names of lines.
    fn title_of(&self, i: usize) -> f64 {
        self.frames.get(i).map_or(0.0, |frame| if i == 0 { 13.0 } else { frame.top - 12.0 })
    }

    fn columns(&self) -> Vec<Tick> {
        let names = self.draw.x.names.iter().enumerate();
        names
            .map(|(i, name)| Tick { at: i as f64 + 0.5, label: name.clone(), narrow: i % 2 == 0 })
            .collect()
    }

    fn names(&self, frame: &Frame<'_>) -> Markup {
        html! { @for (row, name) in self.draw.rows.iter().enumerate() {
            @if self.draw.x.names.is_empty() {
                text class="row" y=(px(frame.top + ROW * row as f64 + 14.0)) { (shortened(name)) }
            } @else {
                text class="tick end" x="-8" y=(px(frame.top + CELLS * (row as f64 + 0.5) + 4.0)) { (name) }
            }
        } }
    }

    /// Bands and stretches, over which the rest is drawn.
    fn behind(&self, frame: &Frame<'_>, series: &Series) -> Markup {
        match &series.shape {
            Shape::Shade(from, to) => {
                let (from, to) = (self.x.at(*from).max(0.0), self.x.at(*to).min(1.0));
                html! { rect class=(self.class("shade", series)) x=(pc(from)) width=(pc((to - from).max(0.0)))
                y=(px(frame.top)) height=(px(frame.height)) {} }
            }
            Shape::Band(points) => {
                let thin = thinned(points, |p| p.2);
                let edge = |p: &(f64, f64, f64), y: f64| {
                    format!("{} {}", self.path_x(p.0), px(frame.y(y)))
                };
                let there = thin.iter().filter(|p| p.1.is_finite() && p.2.is_finite());
                let high: Vec<String> = there.clone().map(|p| edge(p, p.2)).collect();
                let low: Vec<String> = there.rev().map(|p| edge(p, p.1)).collect();
                let axis = frame.y.axis;
                let says: Vec<String> = thin
                    .iter()
                    .map(|p| format!("{} to {}", figure(p.1, axis), figure(p.2, axis)))
                    .collect();
                if high.is_empty() {
                    return html! {};
                }
                let d = format!("M{} {}Z", high.join(" "), low.join(" "));
                self.path("band", series, d, thin.iter().map(|p| p.0), &says)
            }
            Shape::Line { .. } | Shape::Bar { .. } | Shape::Point { .. } => html! {},
        }
    }

    fn front(&self, frame: &Frame<'_>, series: &Series) -> Markup {
        match &series.shape {
            Shape::Line { points, look } => self.line(frame, series, points, *look),
            Shape::Bar { row, from, to, label, inside, says, share } => {
                let (a, b) = (self.x.at(from.min(*to)), self.x.at(from.max(*to)));
                let cells = !self.draw.x.names.is_empty();
                let row = *row as f64;
                let (top, high) =
                    if cells { (CELLS * row + 1.0, CELLS - 2.0) } else { (ROW * row + 20.0, BAR) };
                let top = frame.top + top;
                // A label that its bar has no room for is left to whoever points at it.
                let fits = 6.8 * label.chars().count() as f64 + 8.0 <= (b - a) * (WIDE - 200.0);
                let wide = if b - a < 0.3 { "in wide" } else { "in" };
                let falls = to < from;
                html! { g class=(self.class("block", series)) {
                    title { (says) }
                    rect x=(pc(a)) width=(pc(b - a)) y=(px(top)) height=(px(high)) fill-opacity=((share * 100.0).round() / 100.0) {}
                    @if *inside && fits && !label.is_empty() {
                        text class=(wide) x=(pc((a + b) / 2.0)) y=(px(top + 15.0)) { (label) }
                    }
                    @if !inside && to != from {
                        text class=(if falls { "beyond end" } else { "beyond" }) dx=(if falls { "-5" } else { "5" })
                            x=(pc(self.x.at(*to))) y=(px(top + 15.0)) { (label) }
                    }
                } }
            }
            Shape::Point { row, at, span, hollow, says } => {
                // Series that say the same lie below each other.
                let i = self.names.iter().position(|name| *name == series.name).unwrap_or(0) as f64;
                let y = frame.top + ROW * *row as f64 + 24.0 + 7.0 * i;
                html! { g class=(self.class("point", series)) {
                    title { (says) }
                    @if let Some((low, high)) = span {
                        line x1=(pc(self.x.at(*low))) x2=(pc(self.x.at(*high))) y1=(px(y)) y2=(px(y)) {}
                    }
                    circle class=[hollow.then_some("hollow")] cx=(pc(self.x.at(*at))) cy=(px(y)) r="4.5" {}
                } }
            }
            Shape::Band(_) | Shape::Shade(..) => html! {},
        }
    }

    fn line(
        &self,
        frame: &Frame<'_>,
        series: &Series,
        points: &[(f64, f64)],
        look: Look,
    ) -> Markup {
        let thin = thinned(points, |p| p.1);
        let mut d = String::new();
        let mut before = None;
        for (x, y) in &thin {
            if !y.is_finite() {
                before = None;
                continue;
            }
            let (x, y) = (self.path_x(*x), px(frame.y(*y)));
            match (before.is_some(), look) {
                (false, _) => d.push_str(&format!("M{x} {y}")),
                (true, Look::Steps) => d.push_str(&format!("H{x}V{y}")),
                (true, _) => d.push_str(&format!("L{x} {y}")),
            }
            before = Some(());
        }
        let says: Vec<String> = thin
            .iter()
            .map(|p| if p.1.is_finite() { figure(p.1, frame.y.axis) } else { String::new() })
            .collect();
        let dots = matches!(look, Look::Marked | Look::Dots);
        let class = match look {
            Look::Broken => "broken",
            Look::Dots => "none",
            Look::Solid | Look::Marked | Look::Steps => "line",
        };
        html! {
            (self.path(class, series, d, thin.iter().map(|p| p.0), &says))
            @if dots { g class=(self.class("point", series)) {
                @for (x, y) in thin.iter().filter(|p| p.1.is_finite()) {
                    circle cx=(pc(self.x.at(*x))) cy=(px(frame.y(*y))) r=(if look == Look::Dots { "4" } else { "3" }) {}
                }
            } }
        }
    }

    /// A path in a drawing of its own that is stretched across; with its values, for whoever points at it.
    fn path(
        &self,
        look: &str,
        series: &Series,
        d: String,
        x: impl Iterator<Item = f64>,
        says: &[String],
    ) -> Markup {
        // Moments are minutes from the first.
        let x: Vec<String> = x
            .map(|x| match self.draw.x.time {
                true => format!("{}", ((x - self.x.low) / 60.0).round()),
                false => format!("{}", (x * 1e4).round() / 1e4),
            })
            .collect();
        html! {
            svg class="stretch" viewBox={ "0 0 1000 " (px(self.height)) } height=(px(self.height)) width="100%"
                preserveAspectRatio="none" {
                path class=(self.class(look, series)) d=(d) data-name=(series.name) data-at=(x.join(" ")) data-says=(says.join(";")) {}
            }
        }
    }

    fn path_x(&self, value: f64) -> String {
        px(1000.0 * self.x.at(value))
    }

    /// A level line with its name, or a word at a point.
    fn level(&self, frame: &Frame<'_>, i: usize, mark: &Mark) -> Markup {
        let value = mark.y.unwrap_or(0.0);
        let ink = mark.ink.class();
        if let Some(x) = mark.x {
            let at = self.x.at(x);
            return html! { text class={ "label mid " (ink) } x=(pc(at.clamp(0.03, 0.97))) y=(px(frame.y(value) - 9.0)) { (mark.label) } };
        }
        let beyond = frame.y.at(value) > 1.001;
        let y = frame.y(value).max(frame.top);
        // Of two lines close together, the lower one is named below.
        let close = |(at, other): (usize, &Mark)| {
            let gap = other.y.map_or(f64::NAN, |value| y - frame.y(value).max(frame.top));
            at != i
                && other.panel == mark.panel
                && other.x.is_none()
                && (0.0..LINE).contains(&gap)
                && (gap > 0.0 || at < i)
        };
        let below = beyond || self.draw.marks.iter().enumerate().any(close);
        let label = if beyond {
            format!("{}: {} ↑", mark.label, figure(value, frame.y.axis))
        } else {
            mark.label.clone()
        };
        html! {
            @if !beyond { line class={ "mark " (ink) } x2="100%" y1=(px(y)) y2=(px(y)) {} }
            text class={ "label end " (ink) } x="100%" dx="-4" y=(px(if below { y + 14.0 } else { y - 5.0 })) { (label) }
        }
    }

    /// Upright lines through all panels, each named in a line of its own above them.
    fn uprights(&self) -> Markup {
        let (Some(first), Some(last)) = (self.frames.first(), self.frames.last()) else {
            return html! {};
        };
        let bottom = px(last.top + last.height);
        let uprights = self.draw.marks.iter().filter(|mark| mark.y.is_none());
        let mut flag =
            first.top - LINE * uprights.clone().filter(|mark| is_flag(mark)).count() as f64;
        html! {
            @for mark in uprights {
                @let at = self.x.at(mark.x.unwrap_or(0.0));
                @let from = if is_flag(mark) { flag } else { first.top };
                line class={ "mark " (mark.ink.class()) } x1=(pc(at)) x2=(pc(at)) y1=(px(from)) y2=(bottom) {}
                @if is_flag(mark) {
                    @let class = if at > 0.5 { "label end " } else { "label " };
                    text class={ (class) (mark.ink.class()) } x=(pc(at)) dx=(if at > 0.5 { "-5" } else { "5" }) y=(px(from + 11.0)) { (mark.label) }
                    @let () = flag += LINE;
                }
            }
        }
    }
}

/// The style of a drawing on white, without what not every viewer of pictures knows.
fn on_paper() -> String {
    let mut style = STYLE.split("/* Around").next().unwrap_or("").to_owned();
    for name in ["--paper", "--ink", "--soft", "--rule"] {
        let value =
            STYLE.split_once(&format!("{name}: ")).and_then(|(_, rest)| rest.split(';').next());
        style = style.replace(&format!("var({name})"), value.unwrap_or("black"));
    }
    style
}

/// A name that a phone has room for; all of it is in the table and where its row is pointed at.
fn shortened(name: &str) -> String {
    const LETTERS: usize = 48;
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or(name)),
        None => name.to_owned(),
    }
}

fn is_flag(mark: &Mark) -> bool {
    mark.y.is_none() && !mark.label.is_empty()
}

/// All places across.
fn across(draw: &Draw) -> impl Iterator<Item = f64> {
    let shapes = draw.series.iter().flat_map(|series| -> Vec<f64> {
        match &series.shape {
            Shape::Line { points, .. } => points.iter().map(|p| p.0).collect(),
            Shape::Band(points) => points.iter().map(|p| p.0).collect(),
            // What differs does not make the chart longer.
            Shape::Shade(..) => Vec::new(),
            Shape::Bar { from, to, .. } => vec![*from, *to],
            Shape::Point { at, span, .. } => {
                let (low, high) = span.unwrap_or((*at, *at));
                vec![low.min(*at), high.max(*at)]
            }
        }
    });
    // Room for what is written beyond a bar, on a phone that has some 300 pixels for all of it.
    let beyond = draw.series.iter().filter_map(|series| match &series.shape {
        Shape::Bar { from, to, label, inside: false, .. } => Some((*from, *to, label)),
        _ => None,
    });
    let ends = beyond.clone().flat_map(|(from, to, _)| [from, to]);
    let (low, high) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let room = beyond.map(move |(from, to, label)| {
        let letters = 6.8 * label.chars().count() as f64 + 8.0;
        to + ((high - low) * letters / 300.0).copysign(to - from)
    });
    let columns = (!draw.x.names.is_empty()).then_some(draw.x.names.len() as f64);
    shapes.chain(draw.marks.iter().filter_map(|mark| mark.x)).chain(columns).chain(room)
}

/// All values of a panel, and its level lines where they are not so far off that they would flatten it.
fn up(draw: &Draw, panel: usize) -> impl Iterator<Item = f64> {
    let values = draw.series.iter().filter(move |series| series.panel == panel).flat_map(
        |series| -> Vec<f64> {
            match &series.shape {
                Shape::Line { points, .. } => points.iter().map(|p| p.1).collect(),
                Shape::Band(points) => points.iter().flat_map(|p| [p.1, p.2]).collect(),
                Shape::Shade(..) | Shape::Bar { .. } | Shape::Point { .. } => Vec::new(),
            }
        },
    );
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let levels = draw.marks.iter().filter(move |mark| mark.panel == panel && mark.x.is_none());
    let near: Vec<f64> = levels.filter_map(|mark| mark.y).filter(|y| *y <= 4.0 * most).collect();
    values.into_iter().chain(near)
}

/// No more points than can be told apart: of each stretch the least and the greatest, and every gap.
fn thinned<P: Copy>(points: &[P], value: fn(&P) -> f64) -> Vec<P> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(POINTS / 2);
    let mut thin = Vec::new();
    for part in points.chunks(stretch) {
        let by = |a: &usize, b: &usize| value(&part[*a]).total_cmp(&value(&part[*b]));
        let low = (0..part.len()).min_by(by).unwrap_or(0);
        let high = (0..part.len()).max_by(by).unwrap_or(0);
        thin.extend(part.get(low.min(high)).copied());
        if low != high {
            thin.extend(part.get(low.max(high)).copied());
        }
    }
    thin
}
