//! What a chart is put together from.

use super::{Chart, Ink};

/// What an axis shows, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Axis {
    /// What it is of, with the unit.
    pub(super) title: String,
    pub(super) from_zero: bool,
    /// It grows by factors.
    pub(super) log: bool,
    /// Shares are written in percent.
    pub(super) percent: bool,
    /// Values are seconds since 1970.
    pub(super) time: bool,
    /// Value `i + 0.5` is the middle of a named column.
    pub(super) names: Vec<String>,
}

/// One of several panels above each other, which share the x axis.
pub(crate) struct Panel<'a> {
    /// Its y axis, with the unit.
    pub(crate) y: &'a str,
    /// Whether it begins at nothing.
    pub(crate) from_zero: bool,
}

/// A point beside a name: the name, the place, and between what it lies.
pub(crate) type Beside = (String, f64, Option<(f64, f64)>);

/// A bar of a row: the row's name, both ends, what is written at it, and what it says when pointed at.
pub(crate) type Bar = (String, (f64, f64), String, String);

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Solid,
    Marked,
    Broken,
    /// A value holds until the next one.
    Steps,
    Dots,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Points; not a number is a gap.
    Line { points: Vec<(f64, f64)>, look: Look },
    /// Place, low, high.
    Band(Vec<(f64, f64, f64)>),
    /// From here to there, in every panel.
    Shade(f64, f64),
    /// A bar of a row; `inside` where its label is on it, and how strong its colour is.
    Bar { row: usize, from: f64, to: f64, label: String, inside: bool, says: String, share: f64 },
    /// A point of a row, and between what it lies.
    Point { row: usize, at: f64, span: Option<(f64, f64)>, hollow: bool, says: String },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) ink: Ink,
    pub(super) panel: usize,
    pub(super) shape: Shape,
}

/// A line or a word that is named where it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) x: Option<f64>,
    pub(super) y: Option<f64>,
    pub(super) panel: usize,
    pub(super) label: String,
    pub(super) ink: Ink,
}

/// A chart that is being put together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draw {
    pub(super) x: Axis,
    pub(super) panels: Vec<Axis>,
    /// Names of rows, the first on top; none where a y axis has numbers.
    pub(super) rows: Vec<String>,
    pub(super) series: Vec<Series>,
    pub(super) marks: Vec<Mark>,
    pub(super) legend: bool,
    panel: usize,
}

impl Draw {
    /// An empty chart with what its axes are of.
    pub(crate) fn new(x: &str, y: &str) -> Self {
        Self::panels(x, &[Panel { y, from_zero: true }])
    }

    /// Several panels, from top to bottom.
    pub(crate) fn panels(x: &str, panels: &[Panel<'_>]) -> Self {
        let axis =
            |title: &str, from_zero| Axis { title: title.to_owned(), from_zero, ..Axis::default() };
        Self {
            x: axis(x, false),
            panels: panels.iter().map(|panel| axis(panel.y, panel.from_zero)).collect(),
            rows: Vec::new(),
            series: Vec::new(),
            marks: Vec::new(),
            legend: false,
            panel: 0,
        }
    }

    /// Named rows, in the order in which they come.
    pub(crate) fn rows(x: &str) -> Self {
        Self::new(x, "")
    }

    /// Goes on in another panel.
    pub(crate) fn panel(mut self, i: usize) -> Self {
        self.panel = i;
        self
    }

    /// The names of series are shown above, where they can be switched.
    pub(crate) fn legend(mut self) -> Self {
        self.legend = true;
        self
    }

    /// The x axis grows by factors.
    pub(crate) fn log_x(mut self) -> Self {
        self.x.log = true;
        self
    }

    /// The x axis has moments: seconds since 1970.
    pub(crate) fn time_x(mut self, time: bool) -> Self {
        self.x.time = time;
        self
    }

    /// The x axis begins at nothing.
    pub(crate) fn zero_x(mut self) -> Self {
        self.x.from_zero = true;
        self
    }

    /// The x axis has shares.
    pub(crate) fn percent_x(mut self) -> Self {
        self.x.percent = true;
        self
    }

    /// The x axis has named columns.
    pub(crate) fn names_x(mut self, names: Vec<String>) -> Self {
        self.x.names = names;
        self
    }

    /// The y axis of the panel grows by factors.
    pub(crate) fn log_y(self) -> Self {
        self.y(|axis| (axis.log, axis.from_zero) = (true, false))
    }

    /// The y axis of the panel has shares.
    pub(crate) fn percent_y(self) -> Self {
        self.y(|axis| axis.percent = true)
    }

    fn y(mut self, change: impl Fn(&mut Axis)) -> Self {
        self.panels.get_mut(self.panel).into_iter().for_each(change);
        self
    }

    fn shape(mut self, name: &str, ink: Ink, shape: Shape) -> Self {
        self.series.push(Series { name: name.to_owned(), ink, panel: self.panel, shape });
        self
    }

    fn points(self, name: &str, ink: Ink, points: &[(f64, f64)], look: Look) -> Self {
        self.shape(name, ink, Shape::Line { points: points.to_vec(), look })
    }

    /// A line.
    pub(crate) fn line(self, name: &str, ink: Ink, points: &[(f64, f64)]) -> Self {
        self.points(name, ink, points, Look::Solid)
    }

    /// A line with its points.
    pub(crate) fn points_line(self, name: &str, ink: Ink, points: &[(f64, f64)]) -> Self {
        self.points(name, ink, points, Look::Marked)
    }

    /// A thin broken line: what is compared with.
    pub(crate) fn broken(self, name: &str, ink: Ink, points: &[(f64, f64)]) -> Self {
        self.points(name, ink, points, Look::Broken)
    }

    /// A line that keeps its value until the next one.
    pub(crate) fn steps(self, name: &str, ink: Ink, points: &[(f64, f64)]) -> Self {
        self.points(name, ink, points, Look::Steps)
    }

    /// Single points.
    pub(crate) fn dots(self, name: &str, ink: Ink, points: &[(f64, f64)]) -> Self {
        self.points(name, ink, points, Look::Dots)
    }

    /// Between what something lies: place, low, high.
    pub(crate) fn band(self, name: &str, ink: Ink, points: &[(f64, f64, f64)]) -> Self {
        self.shape(name, ink, Shape::Band(points.to_vec()))
    }

    /// A stretch that is different.
    pub(crate) fn shade(self, name: &str, ink: Ink, (from, to): (f64, f64)) -> Self {
        self.shape(name, ink, Shape::Shade(from, to))
    }

    fn row(&mut self, name: &str) -> usize {
        self.rows.iter().position(|row| row == name).unwrap_or_else(|| {
            self.rows.push(name.to_owned());
            self.rows.len() - 1
        })
    }

    /// Bars that begin where the last one of their row ends: the row, how long, and what is written on it.
    pub(crate) fn stacked(mut self, name: &str, ink: Ink, bars: &[Bar]) -> Self {
        for (row, (_, length), label, says) in bars {
            let row = self.row(row);
            let end = self.series.iter().rev().find_map(|series| match series.shape {
                Shape::Bar { row: other, to, .. } if other == row => Some(to),
                _ => None,
            });
            let from = end.unwrap_or(0.0);
            let (label, says) = (label.clone(), says.clone());
            let (to, inside, share) = (from + length, true, 0.4);
            self = self.shape(name, ink, Shape::Bar { row, from, to, label, inside, says, share });
        }
        self
    }

    /// Bars with both ends, and what is written beyond the second.
    pub(crate) fn bars(mut self, name: &str, ink: Ink, bars: &[Bar]) -> Self {
        for (row, (from, to), label, says) in bars {
            let (from, to, row) = (*from, *to, self.row(row));
            let (label, says) = (label.clone(), says.clone());
            let (inside, share) = (false, 0.4);
            self = self.shape(name, ink, Shape::Bar { row, from, to, label, inside, says, share });
        }
        self
    }

    /// A cell of a row and a column, coloured by a share; what it says when pointed at.
    pub(crate) fn cell(
        mut self,
        ink: Ink,
        (row, column): (&str, usize),
        share: f64,
        says: String,
    ) -> Self {
        let (from, row) = (column as f64, self.row(row));
        let (to, label, inside, share) = (from + 1.0, String::new(), true, 0.08 + 0.92 * share);
        self.shape("", ink, Shape::Bar { row, from, to, label, inside, says, share })
    }

    /// Single points of rows.
    pub(crate) fn beside(
        mut self,
        name: &str,
        (ink, hollow): (Ink, bool),
        points: &[Beside],
    ) -> Self {
        for (beside, at, span) in points {
            let (at, span, row) = (*at, *span, self.row(beside));
            let figure = |value: f64| super::scale::figure(value, &self.x);
            let span_says = span.map_or(String::new(), |(low, high)| {
                format!(" ({} to {})", figure(low), figure(high))
            });
            let says = format!("{beside}, {name}: {}{span_says}", figure(at));
            self = self.shape(name, ink, Shape::Point { row, at, span, hollow, says });
        }
        self
    }

    fn mark(mut self, (x, y): (Option<f64>, Option<f64>), label: &str, ink: Ink) -> Self {
        self.marks.push(Mark { x, y, panel: self.panel, label: label.to_owned(), ink });
        self
    }

    /// An upright line through every panel, named at its top.
    pub(crate) fn upright(self, at: f64, label: &str, ink: Ink) -> Self {
        self.mark((Some(at), None), label, ink)
    }

    /// A level line of the panel, named at its right end.
    pub(crate) fn level(self, at: f64, label: &str, ink: Ink) -> Self {
        self.mark((None, Some(at)), label, ink)
    }

    /// A word beside a point.
    pub(crate) fn word(self, at: f64, y: f64, label: &str, ink: Ink) -> Self {
        self.mark((Some(at), Some(y)), label, ink)
    }

    /// The chart.
    pub(crate) fn done(self, id: &str, title: &str, alt: impl Into<String>) -> Chart {
        Chart { id: id.to_owned(), title: title.to_owned(), alt: alt.into(), draw: self }
    }
}
