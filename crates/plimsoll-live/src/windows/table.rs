//! What a reporter said at the edges of windows, replica by replica.

use std::collections::BTreeMap;

use plimsoll_fleet::metrics::{MetricKind, Signal};

use super::{CollectInput, model_of};
use crate::answer::{Labels, Series};
use crate::error::LiveError;
use crate::resolve::{Reporting, Spelling};
use crate::source::{Ask, Matcher, MetricSource, Over, Pool};

/// The most series, told apart by model and replica, that are read at once.
const REPLICAS_MAX: usize = 2_000;
/// Scrapes are counted over so many windows, and no less than ten minutes: enough of them to be exact, and so few that a replica is there all the while.
const COUNTED_WINDOWS: i64 = 10;
const COUNTED_MS: i64 = 600_000;
/// How far back the last scrape before an edge may be, in scrape intervals: one may have failed.
const LOOK_BACK: f64 = 2.5;

/// Windows of a stretch of time, with some before and after that tell gaps from absence.
pub(super) struct Grid {
    pub(super) window_ms: i64,
    /// The first edge, padding included, in windows since 1970.
    first: i64,
    /// How many edges there are.
    pub(super) edges: usize,
    /// Windows before and after what was asked for.
    pub(super) padding: usize,
    /// Edges without a scrape that are still a gap.
    pub(super) away: usize,
}

impl Grid {
    /// Windows from one to another, both counted since 1970, the latter excluded.
    pub(super) fn new(window_s: i64, from: i64, to: i64, away_s: u32) -> Self {
        let away = i64::from(away_s).div_euclid(window_s) + 1;
        let padding = usize::try_from(away).unwrap_or(0);
        let windows = usize::try_from(to - from).unwrap_or(0);
        Self {
            window_ms: window_s * 1000,
            first: from - away,
            edges: windows + 2 * padding + 1,
            padding,
            away: padding,
        }
    }

    /// When an edge is.
    pub(super) fn at_ms(&self, edge: usize) -> i64 {
        (self.first + i64::try_from(edge).unwrap_or(0)) * self.window_ms
    }

    /// Which edge is then.
    fn edge(&self, at_ms: i64) -> Option<usize> {
        let edge = usize::try_from(at_ms.div_euclid(self.window_ms) - self.first).ok()?;
        (edge < self.edges).then_some(edge)
    }

    /// Windows that were asked for, by their first edges.
    pub(super) fn windows(&self) -> std::ops::Range<usize> {
        self.padding..self.edges - 1 - self.padding
    }
}

/// One process, or what is told apart like one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Process {
    pub(super) model: String,
    pub(super) replica: String,
}

/// Values at edges, NaN where there is none; a process that has no value at all has no list.
pub(super) type Column = BTreeMap<usize, Vec<f64>>;

/// The upper edge of a bucket, and how many observations were in it or below, point by point.
pub(super) type Bucket = (f64, Vec<f64>);

/// Reads a reporter's metrics over a grid.
pub(super) struct Reader<'a> {
    source: &'a dyn MetricSource,
    pub(super) reporting: &'a Reporting,
    input: &'a CollectInput,
    pub(super) grid: &'a Grid,
    pub(super) interval_ms: i64,
    by: Vec<String>,
    expected: usize,
    ids: BTreeMap<Labels, usize>,
    pub(super) processes: Vec<Process>,
}

impl<'a> Reader<'a> {
    /// Finds out who reports and how often it is scraped; none where nobody does in that time.
    pub(super) fn open(
        source: &'a dyn MetricSource,
        reporting: &'a Reporting,
        input: &'a CollectInput,
        grid: &'a Grid,
    ) -> Result<Option<Self>, LiveError> {
        let mut by = vec!["namespace".to_owned()];
        by.extend(reporting.reporter.model_label().map(str::to_owned));
        by.extend(input.replica_labels.iter().cloned());
        let mut own = Self {
            source,
            reporting,
            input,
            grid,
            interval_ms: 0,
            by,
            expected: 1,
            ids: BTreeMap::new(),
            processes: Vec::new(),
        };
        let (start, end) = (grid.at_ms(grid.windows().start), grid.at_ms(grid.windows().end));
        let mut intervals = Vec::new();
        let mut metric = String::new();
        // A gauge is there before the first request is.
        for signal in [
            Signal::Running,
            Signal::Waiting,
            Signal::InFlight,
            Signal::Requests,
            Signal::PromptTokens,
        ] {
            for spelling in own.spelled(signal) {
                let over = (COUNTED_WINDOWS * grid.window_ms).max(COUNTED_MS).min(end - start);
                let name = counter_name(spelling);
                let ask = own.question(&name, spelling, Over::Count, Pool::Max, over);
                let ask = Ask { start_ms: start + over, end_ms: end, step_ms: over, ..ask };
                let counted = source.ask(&ask)?;
                own.expected = own.expected.max(counted.len());
                for series in &counted {
                    let most =
                        series.samples.iter().filter_map(|own| own.value).fold(0.0, f64::max);
                    if most > 0.0 {
                        intervals.push((over as f64 / most).round() as i64);
                        metric.clone_from(&name);
                    }
                }
            }
            if !intervals.is_empty() {
                break;
            }
        }
        if own.expected > REPLICAS_MAX {
            return Err(LiveError::TooManyReplicas {
                name: source.name().to_owned(),
                metric,
                found: own.expected,
                most: REPLICAS_MAX,
            });
        }
        // Half of the replicas are scraped at least as often; one that was there for minutes only says little.
        intervals.sort_unstable();
        let Some(interval) = intervals.get(intervals.len() / 2) else { return Ok(None) };
        own.interval_ms = (*interval).max(1);
        if own.interval_ms > grid.window_ms {
            return Err(LiveError::Coarse {
                name: source.name().to_owned(),
                metric,
                interval_s: own.interval_ms as f64 / 1000.0,
                window_s: input.window_s,
            });
        }
        Ok(Some(own))
    }

    /// How far back a scrape counts as being at an edge; never so far that two edges have the same.
    pub(super) fn look_back_ms(&self) -> i64 {
        ((self.interval_ms as f64 * LOOK_BACK) as i64).min(self.grid.window_ms)
    }

    /// What a signal is called; tokens may be counted as the sum of lengths.
    pub(super) fn spelled(&self, signal: Signal) -> &'a [Spelling] {
        let own = self.reporting.spelled(signal);
        match signal {
            Signal::PromptTokens if own.is_empty() => self.reporting.spelled(Signal::PromptLength),
            Signal::OutputTokens if own.is_empty() => self.reporting.spelled(Signal::OutputLength),
            _ => own,
        }
    }

    fn question(
        &self,
        name: &str,
        spelling: &Spelling,
        over: Over,
        pool: Pool,
        range_ms: i64,
    ) -> Ask {
        let mut matches = self.input.matches.clone();
        let own = |label: &str, value: &str| Matcher::Is(label.to_owned(), value.to_owned());
        matches.extend(spelling.metric.matches.iter().map(|(label, value)| own(label, value)));
        if let (Some(label), false) =
            (self.reporting.reporter.model_label(), self.input.models.is_empty())
        {
            matches.push(Matcher::AnyOf(label.to_owned(), self.input.models.clone()));
        }
        Ask {
            name: name.to_owned(),
            matches,
            over,
            range_ms,
            pool,
            by: self.by.clone(),
            start_ms: self.grid.at_ms(0),
            end_ms: self.grid.at_ms(self.grid.edges - 1),
            step_ms: self.grid.window_ms,
        }
    }

    /// Asks in pieces that a source answers at once, where series are so many times as many as processes.
    fn ask(&self, ask: &Ask, times: usize) -> Result<Vec<Series>, LiveError> {
        let points = self.source.most_samples() / (self.expected * times);
        let stretch = ask.step_ms.saturating_mul(i64::try_from(points.max(16)).unwrap_or(i64::MAX));
        let mut all = Vec::new();
        let mut start_ms = ask.start_ms;
        while start_ms <= ask.end_ms {
            let end_ms = ask.end_ms.min(start_ms.saturating_add(stretch - ask.step_ms));
            all.append(&mut self.source.ask(&Ask { start_ms, end_ms, ..ask.clone() })?);
            start_ms = end_ms.saturating_add(ask.step_ms);
        }
        Ok(all)
    }

    /// The process of a series.
    pub(super) fn process(&mut self, labels: &Labels) -> usize {
        if let Some(id) = self.ids.get(labels) {
            return *id;
        }
        let model = self.reporting.reporter.model_label().and_then(|label| labels.get(label));
        let replica = self.input.replica_labels.iter().find_map(|label| labels.get(label));
        let process = Process {
            model: model_of(self.reporting, self.input, model),
            replica: match (replica, labels.get("namespace")) {
                (Some(replica), Some(namespace)) => format!("{namespace}/{replica}"),
                (Some(replica), None) => replica.clone(),
                (None, _) => "replica".to_owned(),
            },
        };
        let id = self.processes.len();
        self.ids.insert(labels.clone(), id);
        self.processes.push(process);
        id
    }

    /// A signal at every edge. Of several names the best that has a value there is read: they are spellings of one thing, and never added.
    pub(super) fn column(
        &mut self,
        signal: Signal,
        over: Over,
        pool: Pool,
        range_ms: i64,
    ) -> Result<Column, LiveError> {
        let spelled = self.spelled(signal).iter();
        let asks = spelled
            .map(|own| self.question(&counter_name(own), own, over, pool, range_ms))
            .collect();
        self.values(asks)
    }

    /// What several questions say of the same thing; the first that has a value at an edge is believed.
    fn values(&mut self, asks: Vec<Ask>) -> Result<Column, LiveError> {
        let mut column = Column::new();
        for ask in asks {
            for series in self.ask(&ask, 1)? {
                let id = self.process(&series.labels);
                let values = column.entry(id).or_insert_with(|| vec![f64::NAN; self.grid.edges]);
                for sample in &series.samples {
                    if let (Some(edge), Some(value)) = (self.grid.edge(sample.at_ms), sample.value)
                        && values[edge].is_nan()
                    {
                        values[edge] = value;
                    }
                }
            }
        }
        Ok(column)
    }

    /// A counter within windows, scrape by scrape: its values in the order of time, process by process. The windows are those from one edge to another.
    pub(super) fn scrapes(
        &mut self,
        signal: Signal,
        (from, to): (usize, usize),
    ) -> Result<BTreeMap<usize, Vec<(usize, f64)>>, LiveError> {
        let window_ms = self.grid.window_ms;
        // Cells that are shorter than a scrape interval, and end where windows end.
        let least = (4 * window_ms / self.interval_ms).clamp(1, window_ms);
        let cells = (least..=window_ms).find(|cells| window_ms % cells == 0).unwrap_or(window_ms);
        let step_ms = window_ms / cells;
        let start_ms = self.grid.at_ms(from) + step_ms;
        let mut found: BTreeMap<usize, BTreeMap<i64, f64>> = BTreeMap::new();
        for spelling in self.spelled(signal) {
            let ask =
                self.question(&counter_name(spelling), spelling, Over::Last, Pool::Sum, step_ms);
            let ask = Ask { start_ms, end_ms: self.grid.at_ms(to), step_ms, ..ask };
            for series in self.ask(&ask, 1)? {
                let id = self.process(&series.labels);
                let own = found.entry(id).or_default();
                for sample in &series.samples {
                    if let Some(value) = sample.value {
                        own.entry(sample.at_ms).or_insert(value);
                    }
                }
            }
        }
        let in_windows = |(at_ms, value): (i64, f64)| {
            // What is at an edge is of the window that ends there.
            Some((self.grid.edge(at_ms - 1)?, value))
        };
        let found = found.into_iter();
        Ok(found.map(|(id, own)| (id, own.into_iter().filter_map(in_windows).collect())).collect())
    }

    /// The buckets of a histogram at edges that are so many windows apart, by process and upper edge.
    pub(super) fn buckets(
        &mut self,
        spelling: &Spelling,
        stride: usize,
    ) -> Result<BTreeMap<usize, Vec<Bucket>>, LiveError> {
        let windows = self.grid.windows();
        let name = format!("{}_bucket", spelling.name);
        let mut ask = self.question(&name, spelling, Over::Last, Pool::Sum, self.look_back_ms());
        ask.by.push("le".to_owned());
        let step_ms = self.grid.window_ms * i64::try_from(stride).unwrap_or(1);
        let (start_ms, end_ms) = (self.grid.at_ms(windows.start), self.grid.at_ms(windows.end));
        let points = windows.len() / stride + 1;
        let mut found: BTreeMap<usize, Vec<Bucket>> = BTreeMap::new();
        for series in self.ask(&Ask { start_ms, end_ms, step_ms, ..ask }, 24)? {
            let mut labels = series.labels;
            let Some(upto) = labels.remove("le").and_then(|le| le.parse::<f64>().ok()) else {
                continue;
            };
            let id = self.process(&labels);
            let own = found.entry(id).or_default();
            let place = own.iter().position(|(edge, _)| *edge == upto).unwrap_or_else(|| {
                own.push((upto, vec![f64::NAN; points]));
                own.len() - 1
            });
            for sample in &series.samples {
                let point = usize::try_from((sample.at_ms - start_ms) / step_ms).unwrap_or(points);
                if let (Some(value), Some(held)) = (sample.value, own[place].1.get_mut(point)) {
                    *held = value;
                }
            }
        }
        found.values_mut().for_each(|own| own.sort_by(|a, b| a.0.total_cmp(&b.0)));
        Ok(found)
    }

    /// The sum of a histogram at edges.
    pub(super) fn sums(&mut self, spelling: &Spelling) -> Result<Column, LiveError> {
        let name = format!("{}_sum", spelling.name);
        let ask = self.question(&name, spelling, Over::Last, Pool::Sum, self.look_back_ms());
        self.values(vec![ask])
    }
}

/// What grows: a counter itself, or the sum of a histogram.
fn counter_name(spelling: &Spelling) -> String {
    match spelling.metric.kind {
        MetricKind::Histogram => format!("{}_sum", spelling.name),
        _ => spelling.name.clone(),
    }
}
