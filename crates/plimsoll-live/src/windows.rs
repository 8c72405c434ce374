//! What was asked for and how replicas fared, counted over windows.
//!
//! A counter is read at the edges of windows, as the last scrape before each, and a window has the difference: nothing is extrapolated, all windows together have what
//! the counter has grown by, and a window is off by no more than what came between an edge and the scrape before it. Where a counter was reset within a window, or a
//! replica came or went, that window is read scrape by scrape. A window at whose edges a replica was not scraped is a gap: it has no row.

mod counts;
mod demand;
mod latency;
mod table;
#[cfg(test)]
mod tests;

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::{Reporter, Signal};

use crate::error::LiveError;
use crate::resolve::{Reporting, Resolved, resolve};
use crate::source::{Matcher, MetricSource};
use counts::Counts;
use demand::Demand;
use table::{Grid, Reader};

/// What is asked of a collection.
#[derive(Clone, Debug)]
pub struct CollectInput {
    /// From then, in seconds since 1970; windows begin at multiples of their length.
    pub since_s: i64,
    /// Until then.
    pub until_s: i64,
    /// How long a window is.
    pub window_s: u32,
    /// Only these models; all where there is none.
    pub models: Vec<String>,
    /// Only series that match all of these.
    pub matches: Vec<Matcher>,
    /// Labels that tell replicas apart; the first that a series has names its replica.
    pub replica_labels: Vec<String>,
    /// A replica that was not scraped for longer than this, while it is there before and after, is taken to have been away, not unscraped.
    pub away_s: u32,
    /// Versions that somebody has told.
    pub told: Vec<(Reporter, Version)>,
}

impl CollectInput {
    /// What is usual: windows of a minute, replicas by pod, else by instance, and half an hour until one is taken to have been away.
    pub fn usual(since_s: i64, until_s: i64) -> Self {
        Self {
            since_s,
            until_s,
            window_s: 60,
            models: Vec::new(),
            matches: Vec::new(),
            replica_labels: vec!["pod".to_owned(), "instance".to_owned()],
            away_s: 1_800,
            told: Vec::new(),
        }
    }
}

/// How far a collection is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Days (or what is left of one) that are done.
    pub done: u64,
    /// Of so many.
    pub of: u64,
}

/// What was collected. Asked for day by day, the rows are the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Collected {
    /// What was asked for, by model and time.
    pub demand: Vec<DemandWindow>,
    /// How replicas fared, by model, replica and time.
    pub replicas: Vec<ReplicaWindow>,
    /// How long prompts and outputs were, by model and day.
    pub lengths: Vec<LengthShares>,
    /// Who reports, and what they call it.
    pub resolved: Resolved,
    /// Windows of a model that something is known of, but not all of its replicas: they have no row in `demand`.
    pub gaps: u64,
    /// How often it is scraped, in seconds; the largest of all that report.
    pub scrape_s: f64,
    /// What should be known.
    pub notes: Vec<String>,
}

/// What a demand was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// A gateway: what was offered, whether it was served or not.
    Offered,
    /// Engines: what they carried, and by how much their queues grew.
    CarriedAndQueued,
    /// Engines: what they carried; too low while calls wait.
    Carried,
}

impl Basis {
    /// As it is named in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::CarriedAndQueued => "carried_and_queued",
            Self::Carried => "carried",
        }
    }
}

/// What was asked of a model in a window. Unknown is none, never zero.
#[derive(Clone, Debug, PartialEq)]
pub struct DemandWindow {
    /// The model.
    pub model: String,
    /// Who counted it.
    pub reporter: Reporter,
    /// The beginning, in seconds since 1970.
    pub start_s: i64,
    /// How long it is.
    pub window_s: u32,
    /// What it was read from.
    pub basis: Basis,
    /// Requests.
    pub requests: Option<f64>,
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: Option<f64>,
    /// Of those, cached.
    pub cached_tokens: Option<f64>,
    /// Of those, computed.
    pub fresh_tokens: Option<f64>,
    /// Output tokens.
    pub output_tokens: Option<f64>,
    /// Calls that failed, of replicas that count them.
    pub errors: Option<f64>,
    /// By how many calls queues grew; it is part of the numbers above.
    pub queue_growth: Option<f64>,
}

/// How a replica fared in a window. Unknown is none, never zero.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaWindow {
    /// The model.
    pub model: String,
    /// The replica.
    pub replica: String,
    /// What it runs.
    pub reporter: Reporter,
    /// The beginning, in seconds since 1970.
    pub start_s: i64,
    /// How long it is.
    pub window_s: u32,
    /// Requests that ended.
    pub requests: Option<f64>,
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: Option<f64>,
    /// Of those, cached.
    pub cached_tokens: Option<f64>,
    /// Of those, computed.
    pub fresh_tokens: Option<f64>,
    /// Output tokens.
    pub output_tokens: Option<f64>,
    /// Calls that failed.
    pub errors: Option<f64>,
    /// Sequences that lost their blocks.
    pub preemptions: Option<f64>,
    /// Tokens that were looked up in the prefix cache.
    pub cache_queries: Option<f64>,
    /// Tokens that were found there.
    pub cache_hits: Option<f64>,
    /// The largest share of the cache in use.
    pub kv_share_max: Option<f64>,
    /// The most calls that waited.
    pub waiting_max: Option<f64>,
    /// Sequences that ran, in the mean.
    pub running_mean: Option<f64>,
    /// Seconds to the first token.
    pub ttft: Option<Latency>,
    /// Seconds between tokens; the mean of a call where single gaps are not counted.
    pub itl: Option<Latency>,
}

impl ReplicaWindow {
    /// The share of looked up tokens that the prefix cache had.
    pub fn cache_hit_share(&self) -> Option<f64> {
        let queries = self.cache_queries.filter(|queries| *queries > 0.0)?;
        Some((self.cache_hits? / queries).clamp(0.0, 1.0))
    }
}

/// A latency, as far as buckets tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// How many were observed.
    pub count: f64,
    /// Their mean, in seconds.
    pub mean_s: Option<f64>,
    /// Half are below.
    pub p50: Between,
    /// Nine in ten are below.
    pub p90: Between,
    /// 99 in a hundred are below.
    pub p99: Between,
}

/// A quantile is somewhere in a bucket; where, nobody knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// It is larger than this, in seconds; zero in the first bucket.
    pub above_s: f64,
    /// It is this or less: what is reported. None where it is beyond the last edge.
    pub upto_s: Option<f64>,
}

/// How long prompts or outputs of a model were in a stretch of time: only on their own, not which prompt had which output.
#[derive(Clone, Debug, PartialEq)]
pub struct LengthShares {
    /// The model.
    pub model: String,
    /// Who counted them.
    pub reporter: Reporter,
    /// Prompts or outputs.
    pub of: Signal,
    /// The beginning, in seconds since 1970.
    pub start_s: i64,
    /// The end.
    pub end_s: i64,
    /// How many there were.
    pub count: f64,
    /// The upper edges of buckets, in tokens, each with the share that is in its bucket; shares of buckets without an upper edge are left out, so that they may add
    /// up to less than one.
    pub shares: Vec<(f64, f64)>,
}

/// Windows of a piece: a day of minutes.
const DAY_S: i64 = 86_400;

/// Counts what was asked for and how replicas fared.
pub fn collect(
    source: &dyn MetricSource,
    input: &CollectInput,
    progress: &mut dyn FnMut(Progress),
) -> Result<Collected, LiveError> {
    let window = i64::from(input.window_s.max(1));
    // Only windows that are whole.
    let first = input.since_s.div_euclid(window) + i64::from(input.since_s.rem_euclid(window) > 0);
    let last = input.until_s.div_euclid(window);
    if last <= first {
        let CollectInput { since_s, until_s, window_s, .. } = *input;
        return Err(LiveError::NoWindow { since_s, until_s, window_s });
    }
    let span = (first * window * 1000, last * window * 1000);
    let resolved = resolve(&source.names(span, &input.matches)?, &input.told);
    if resolved.reporting.is_empty() {
        return Err(LiveError::NoSignals { name: source.name().to_owned() });
    }
    let mut notes = resolved.notes();
    let mut demand = Demand::default();
    let mut replicas = Vec::new();
    let mut lengths = Vec::new();
    let mut scrape_s = 0.0f64;
    let mut seen_seldom = false;
    let per_day = (DAY_S / window).max(1);
    // Pieces end with days, so that they are the same whatever was asked for.
    let pieces: Vec<(i64, i64)> = std::iter::successors(Some(first), |from| {
        let next = (from.div_euclid(per_day) + 1) * per_day;
        (next < last).then_some(next)
    })
    .map(|from| (from, ((from.div_euclid(per_day) + 1) * per_day).min(last)))
    .collect();
    let of = pieces.len() as u64;
    for (done, (from, to)) in (0..).zip(pieces) {
        progress(Progress { done, of });
        let grid = Grid::new(window, from, to, input.away_s);
        for reporting in &resolved.reporting {
            let Some(mut reader) = Reader::open(source, reporting, input, &grid)? else { continue };
            scrape_s = scrape_s.max(reader.interval_ms as f64 / 1000.0);
            seen_seldom |= 2 * reader.interval_ms > grid.window_ms;
            let counts = Counts::read(&mut reader)?;
            demand.add(&counts);
            if !reporting.reporter.is_gateway() {
                replicas.append(&mut latency::replicas(&mut reader, &counts)?);
            }
            lengths.append(&mut latency::lengths(&mut reader)?);
        }
    }
    progress(Progress { done: of, of });
    if seen_seldom {
        notes.push(format!(
            "{}: scraped every {scrape_s:.0} s, more than half of a window of {window} s: windows are off by up to that; `--window {}s` is better",
            source.name(),
            (2.0 * scrape_s / 60.0).ceil() * 60.0
        ));
    }
    let (demand, gaps) = demand.rows(&resolved);
    if gaps > 0 {
        notes.push(format!(
            "{}: {gaps} windows of {window} s are gaps, where a replica was not scraped: they are unknown, not zero",
            source.name()
        ));
    }
    replicas
        .sort_by(|a, b| (&a.model, &a.replica, a.start_s).cmp(&(&b.model, &b.replica, b.start_s)));
    Ok(Collected { demand, replicas, lengths, resolved, gaps, scrape_s, notes })
}

/// What a model is called whose reporter does not say.
fn model_of(reporting: &Reporting, input: &CollectInput, labelled: Option<&String>) -> String {
    match (labelled, input.models.as_slice()) {
        (Some(model), _) => model.clone(),
        (None, [only]) => only.clone(),
        (None, _) => reporting.reporter.name().to_owned(),
    }
}
