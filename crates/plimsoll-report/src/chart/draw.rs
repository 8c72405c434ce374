//! What a chart is put together from.

use std::collections::BTreeSet;

use plotly::common::{
    Anchor, DashType, ErrorData, ErrorType, Fill, Font, HoverInfo, Label, Line, LineShape, Marker,
    MarkerSymbol, Mode, Orientation, TextAnchor, TextPosition, Title,
};
use plotly::layout::{
    Annotation, Axis, AxisType, BarMode, HoverMode, Legend, Margin, Shape, ShapeLayer, ShapeLine,
    ShapeType,
};
use plotly::{Bar, Layout, Plot, Scatter, Trace};
use serde::Serialize;
use serde_json::Value;

use super::{Chart, Ink, Raw, plain};

/// A place on an axis: a number, a moment or a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum At {
    /// A number.
    Number(f64),
    /// A moment or a name.
    Text(String),
}

impl From<f64> for At {
    fn from(at: f64) -> Self {
        Self::Number(at)
    }
}

impl From<&str> for At {
    fn from(at: &str) -> Self {
        Self::Text(plain(at))
    }
}

/// One of several panels above each other, which share what goes across.
pub(crate) struct Panel<'a> {
    /// Its own axis, with the unit.
    pub(crate) y: &'a str,
    /// Whether it begins at nothing.
    pub(crate) from_zero: bool,
}

/// A point beside a name: the name, the place, and between what it lies.
pub(crate) type Beside = (String, f64, Option<(f64, f64)>);

/// A chart that is being drawn.
pub(crate) struct Draw {
    traces: Vec<Box<dyn Trace>>,
    shapes: Vec<Shape>,
    notes: Vec<Annotation>,
    x: Axis,
    y: Vec<Axis>,
    /// The panel that is drawn in.
    panel: usize,
    height: usize,
    hover: HoverMode,
    legend: bool,
    stacked: bool,
    /// Series that the legend has.
    names: BTreeSet<String>,
    /// Room on the right for what is written there.
    right: usize,
    /// Upright lines.
    uprights: usize,
}

impl Draw {
    /// An empty chart with what its axes are of.
    pub(crate) fn new(x: &str, y: &str) -> Self {
        Self::panels(x, &[Panel { y, from_zero: true }])
    }

    /// Several panels, from top to bottom.
    pub(crate) fn panels(x: &str, panels: &[Panel<'_>]) -> Self {
        let n = panels.len().max(1);
        let axis = |i: usize, panel: &Panel<'_>| {
            // Room between two is a quarter of one.
            let high = 1.0 / (n as f64 + 0.25 * (n as f64 - 1.0));
            let top = 1.0 - i as f64 * 1.25 * high;
            let own = Axis::new()
                .title(named(panel.y))
                .auto_margin(true)
                .zero_line(false)
                .domain(&[(top - high).max(0.0), top]);
            if panel.from_zero { own.range_mode(plotly::layout::RangeMode::ToZero) } else { own }
        };
        // What goes across is written below the last panel.
        let anchor = if n == 1 { "y".to_owned() } else { format!("y{n}") };
        let x = Axis::new().title(named(x)).auto_margin(true).zero_line(false).anchor(&anchor);
        Self {
            traces: Vec::new(),
            shapes: Vec::new(),
            notes: Vec::new(),
            x,
            y: panels.iter().enumerate().map(|(i, panel)| axis(i, panel)).collect(),
            panel: 0,
            height: if n == 1 { 380 } else { 170 * n + 60 },
            hover: HoverMode::XUnified,
            legend: false,
            stacked: false,
            names: BTreeSet::new(),
            right: 24,
            uprights: 0,
        }
    }

    /// Goes on in another panel.
    pub(crate) fn panel(mut self, i: usize) -> Self {
        self.panel = i;
        self
    }

    fn y_name(&self) -> String {
        if self.panel == 0 { "y".to_owned() } else { format!("y{}", self.panel + 1) }
    }

    /// Names of series that can be switched are shown above.
    pub(crate) fn legend(mut self) -> Self {
        self.legend = true;
        self
    }

    /// So many pixels high.
    pub(crate) fn height(mut self, pixels: usize) -> Self {
        self.height = pixels;
        self
    }

    /// What goes across grows by factors.
    pub(crate) fn log_x(mut self) -> Self {
        self.x = self.x.type_(AxisType::Log);
        self
    }

    /// What goes up grows by factors.
    pub(crate) fn log_y(mut self) -> Self {
        if let Some(own) = self.y.get_mut(self.panel) {
            *own = own.clone().type_(AxisType::Log).range_mode(plotly::layout::RangeMode::Normal);
        }
        self
    }

    /// Shares of what goes up are written in percent.
    pub(crate) fn percent_y(mut self) -> Self {
        if let Some(own) = self.y.get_mut(self.panel) {
            *own = own.clone().tick_format(".0%").hover_format(".2%");
        }
        self
    }

    /// Shares of what goes across are written in percent.
    pub(crate) fn percent_x(mut self) -> Self {
        self.x = self.x.tick_format(".0%").hover_format(".2%");
        self
    }

    /// What goes up are names, the first on top.
    pub(crate) fn names_y(mut self) -> Self {
        if let Some(own) = self.y.get_mut(self.panel) {
            let range = plotly::layout::RangeMode::Normal;
            *own = own.clone().type_(AxisType::Category).range_mode(range).show_grid(false);
        }
        self.hover = HoverMode::Closest;
        self
    }

    /// What goes across are names.
    pub(crate) fn names_x(mut self) -> Self {
        self.x = self.x.type_(AxisType::Category).show_grid(false);
        self
    }

    /// Without axes: what is drawn has none.
    pub(crate) fn bare(mut self) -> Self {
        self.x = self.x.visible(false);
        self.y.iter_mut().for_each(|own| *own = own.clone().visible(false));
        self.hover = HoverMode::Closest;
        self
    }

    /// Bars of one name stand behind each other.
    pub(crate) fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    /// A line.
    pub(crate) fn line(self, name: &str, ink: Ink, points: &[(At, f64)]) -> Self {
        self.drawn(name, points, (Mode::Lines, Line::new().color(ink.css()).width(2.5), ink))
    }

    /// A line with its points.
    pub(crate) fn points_line(self, name: &str, ink: Ink, points: &[(At, f64)]) -> Self {
        self.drawn(name, points, (Mode::LinesMarkers, Line::new().color(ink.css()).width(2.5), ink))
    }

    /// A thin broken line: what is compared with.
    pub(crate) fn broken(self, name: &str, ink: Ink, points: &[(At, f64)]) -> Self {
        let line = Line::new().color(ink.css()).width(1.5).dash(DashType::Dash);
        self.drawn(name, points, (Mode::Lines, line, ink))
    }

    /// A line that keeps its value until the next one.
    pub(crate) fn steps(self, name: &str, ink: Ink, points: &[(At, f64)]) -> Self {
        let line = Line::new().color(ink.css()).width(2.5).shape(LineShape::Hv);
        self.drawn(name, points, (Mode::Lines, line, ink))
    }

    /// Single points.
    pub(crate) fn dots(self, name: &str, ink: Ink, points: &[(At, f64)]) -> Self {
        self.drawn(name, points, (Mode::Markers, Line::new(), ink))
    }

    fn drawn(
        mut self,
        name: &str,
        points: &[(At, f64)],
        (mode, line, ink): (Mode, Line, Ink),
    ) -> Self {
        let (x, y): (Vec<At>, Vec<f64>) = points.iter().cloned().unzip();
        // Series of one name are switched together, and named once.
        let first = self.names.insert(name.to_owned());
        let own = Scatter::new(x, y)
            .name(plain(name))
            .legend_group(name)
            .show_legend(first)
            .mode(mode)
            .line(line)
            .marker(Marker::new().color(ink.css()).size(7))
            .y_axis(self.y_name());
        self.traces.push(own);
        self
    }

    /// Between what something lies: place, low, high.
    pub(crate) fn band(mut self, name: &str, ink: Ink, points: &[(At, f64, f64)]) -> Self {
        let x: Vec<At> = points.iter().map(|own| own.0.clone()).collect();
        let low: Vec<f64> = points.iter().map(|own| own.1).collect();
        let high: Vec<f64> = points.iter().map(|own| own.2).collect();
        let first = self.names.insert(name.to_owned());
        let edge = |y: Vec<f64>| {
            Scatter::new(x.clone(), y)
                .name(plain(name))
                .legend_group(name)
                .show_legend(false)
                .mode(Mode::Lines)
                .line(Line::new().width(0.0).color(ink.css()))
                .y_axis(self.y_name())
        };
        let below = edge(low).hover_info(HoverInfo::Skip);
        let above = edge(high).fill(Fill::ToNextY).fill_color(ink.faint(0.16)).show_legend(first);
        self.traces.push(below);
        self.traces.push(above);
        self
    }

    /// Bars that lie: name, length, and what is written on it.
    pub(crate) fn lying(mut self, name: &str, ink: Ink, bars: &[(String, f64, String)]) -> Self {
        let names: Vec<String> = bars.iter().map(|own| plain(&own.0)).collect();
        let lengths: Vec<f64> = bars.iter().map(|own| own.1).collect();
        let texts: Vec<String> = bars.iter().map(|own| plain(&own.2)).collect();
        let own = Bar::new(lengths, names)
            .name(plain(name))
            .orientation(Orientation::Horizontal)
            // What has one colour is still told apart.
            .marker(Marker::new().color(ink.css()).line(Line::new().width(1.0).color("#ffffff")))
            .text_array(texts)
            .text_position(TextPosition::Inside)
            .inside_text_anchor(TextAnchor::Middle)
            .text_angle(0.0);
        self.traces.push(own);
        self
    }

    /// Single points beside names: name, place, and between what it lies.
    pub(crate) fn beside(
        mut self,
        name: &str,
        (ink, hollow): (Ink, bool),
        points: &[Beside],
    ) -> Self {
        let names: Vec<String> = points.iter().map(|own| plain(&own.0)).collect();
        let at: Vec<f64> = points.iter().map(|own| own.1).collect();
        let out = |end: fn((f64, f64), f64) -> f64| -> Vec<f64> {
            points.iter().map(|own| own.2.map_or(0.0, |span| end(span, own.1).max(0.0))).collect()
        };
        let error = ErrorData::new(ErrorType::Data)
            .symmetric(false)
            .array(out(|span, at| span.1 - at))
            .array_minus(out(|span, at| at - span.0));
        let symbol = if hollow { MarkerSymbol::CircleOpen } else { MarkerSymbol::Circle };
        let own = Scatter::new(at, names)
            .name(plain(name))
            .mode(Mode::Markers)
            .marker(Marker::new().color(ink.css()).size(11).symbol(symbol))
            .error_x(error);
        self.traces.push(own);
        self
    }

    /// A kind of trace that has no type of its own.
    pub(crate) fn raw(mut self, trace: Value) -> Self {
        self.traces.push(Box::new(Raw(trace)));
        self
    }

    /// An upright line through every panel, named at its top.
    pub(crate) fn upright(mut self, at: impl Into<At>, label: &str, ink: Ink) -> Self {
        let at = at.into();
        let shape = Shape::new().x_ref("x").y_ref("paper").y0(0.0).y1(1.0);
        let shape = match &at {
            At::Number(x) => shape.x0(*x).x1(*x),
            At::Text(x) => shape.x0(x).x1(x),
        };
        self.shapes.push(ruled(shape, ink));
        if label.is_empty() {
            return self;
        }
        // What stands close together is written below each other.
        let row = self.uprights % 4;
        self.uprights += 1;
        let note = label_of(label, ink)
            .x_ref("x")
            .y_ref("paper")
            .y(1.0 - 0.075 * row as f64)
            .y_anchor(Anchor::Top)
            .x_anchor(Anchor::Left)
            .x_shift(4.0);
        self.notes.push(match &at {
            At::Number(x) => note.x(*x),
            At::Text(x) => note.x(x),
        });
        self
    }

    /// A level line of the panel, named at its right end.
    pub(crate) fn level(mut self, at: f64, label: &str, ink: Ink) -> Self {
        let axis = self.y_name();
        let shape = Shape::new().x_ref("paper").y_ref(&axis).x0(0.0).x1(1.0).y0(at).y1(at);
        self.shapes.push(ruled(shape, ink));
        let note = label_of(label, ink)
            .x_ref("paper")
            .y_ref(&axis)
            .x(1.0)
            .y(at)
            .x_anchor(Anchor::Right)
            .y_anchor(Anchor::Bottom);
        self.notes.push(note);
        self
    }

    /// The same, named beside the panel: for where bars would hide it.
    pub(crate) fn level_beside(mut self, at: f64, label: &str, ink: Ink) -> Self {
        self = self.level(at, label, ink);
        self.right = 72;
        if let Some(note) = self.notes.pop() {
            let beside = note.x_anchor(Anchor::Left).y_anchor(Anchor::Middle).x_shift(4.0);
            self.notes.push(beside);
        }
        self
    }

    /// A stretch that is different.
    pub(crate) fn shade(mut self, (from, to): (At, At), label: &str, ink: Ink) -> Self {
        let shape = Shape::new()
            .shape_type(ShapeType::Rect)
            .x_ref("x")
            .y_ref("paper")
            .y0(0.0)
            .y1(1.0)
            .layer(ShapeLayer::Below)
            .fill_color(ink.faint(0.10))
            .line(ShapeLine::new().width(0.0));
        let note = label_of(label, ink).x_ref("x").y_ref("paper").y(0.02);
        let note = note.x_anchor(Anchor::Left).y_anchor(Anchor::Bottom);
        let (shape, note) = match (&from, &to) {
            (At::Number(a), At::Number(b)) => (shape.x0(*a).x1(*b), note.x(*a)),
            (At::Text(a), At::Text(b)) => (shape.x0(a).x1(b), note.x(a)),
            // A stretch has two ends of one kind.
            (At::Number(_), At::Text(_)) | (At::Text(_), At::Number(_)) => return self,
        };
        self.shapes.push(shape);
        if !label.is_empty() {
            self.notes.push(note);
        }
        self
    }

    /// A word beside a point.
    pub(crate) fn word(mut self, at: &At, y: f64, label: &str, ink: Ink) -> Self {
        let axis = self.y_name();
        let note = label_of(label, ink).x_ref("x").y_ref(&axis).y(y).x_anchor(Anchor::Center);
        let note = note.y_anchor(Anchor::Bottom).y_shift(6.0);
        self.notes.push(match at {
            At::Number(x) => note.x(*x),
            At::Text(x) => note.x(x),
        });
        self
    }

    /// The chart.
    pub(crate) fn done(self, id: &str, title: &str, alt: impl Into<String>) -> Chart {
        let mut layout = Layout::new()
            .auto_size(true)
            .height(self.height)
            .font(Font::new().family("system-ui, sans-serif").size(13))
            .paper_background_color("rgba(0,0,0,0)")
            .plot_background_color("rgba(0,0,0,0)")
            .margin(Margin::new().left(56).right(self.right).top(40).bottom(48))
            .hover_mode(self.hover)
            .hover_label(Label::new().name_length(-1))
            .show_legend(self.legend)
            .legend(
                Legend::new()
                    .orientation(Orientation::Horizontal)
                    .x(0.0)
                    .y(1.02)
                    .y_anchor(Anchor::Bottom),
            )
            .bar_mode(if self.stacked { BarMode::Relative } else { BarMode::Overlay })
            .shapes(self.shapes)
            .annotations(self.notes)
            .x_axis(self.x);
        for (i, own) in self.y.into_iter().enumerate() {
            layout = match i {
                0 => layout.y_axis(own),
                1 => layout.y_axis2(own),
                2 => layout.y_axis3(own),
                // A fifth panel would be too many to read.
                _ => layout.y_axis4(own),
            };
        }
        let mut plot = Plot::new();
        plot.add_traces(self.traces);
        plot.set_layout(layout);
        Chart { id: id.to_owned(), title: title.to_owned(), alt: alt.into(), plot }
    }
}

fn named(title: &str) -> Title {
    Title::with_text(plain(title))
}

fn ruled(shape: Shape, ink: Ink) -> Shape {
    shape
        .shape_type(ShapeType::Line)
        .line(ShapeLine::new().color(ink.css()).width(2.0).dash(DashType::Dash))
}

fn label_of(label: &str, ink: Ink) -> Annotation {
    Annotation::new()
        .text(plain(label))
        .show_arrow(false)
        .font(Font::new().color(ink.css()).size(12))
}
