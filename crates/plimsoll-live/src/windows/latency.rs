//! How replicas fared: gauges, counters, and latencies as far as buckets tell.

use std::collections::BTreeMap;

use plimsoll_fleet::metrics::Signal;

use super::counts::{Counts, Status, value};
use super::demand::cached_and_fresh;
use super::table::{Bucket, Reader};
use super::{Between, Latency, LengthShares, ReplicaWindow};
use crate::error::LiveError;
use crate::source::{Over, Pool};

/// Observations of a window: how many are in each bucket or below, and their sum.
#[derive(Clone, Debug, Default)]
struct Observed {
    /// By upper edge, in their order; the last may be infinite.
    upto: Vec<(f64, f64)>,
    sum: Option<f64>,
}

/// By process and window.
type Observations = BTreeMap<(usize, usize), Observed>;

/// Lengths are counted over an hour at most, so that a restart costs no more.
const LENGTHS_S: i64 = 3_600;

/// How every replica fared in every window that it was there in.
pub(super) fn replicas(
    reader: &mut Reader<'_>,
    counts: &Counts<'_>,
) -> Result<Vec<ReplicaWindow>, LiveError> {
    let grid = reader.grid;
    let over_window = grid.window_ms;
    let kv = reader.column(Signal::KvShare, Over::Max, Pool::Max, over_window)?;
    let waiting = reader.column(Signal::Waiting, Over::Max, Pool::Sum, over_window)?;
    let running = reader.column(Signal::Running, Over::Mean, Pool::Sum, over_window)?;
    let ttft = observations(reader, counts, &[Signal::Ttft])?;
    let itl = observations(reader, counts, &[Signal::Itl, Signal::Tpot])?;
    let mut rows: BTreeMap<(String, String, usize), Own> = BTreeMap::new();
    for (id, process) in counts.processes.iter().enumerate() {
        for window in grid.windows() {
            if !matches!(counts.status[id][window], Status::Whole | Status::Turn) {
                continue;
            }
            let grown = |signal| counts.grown(signal, id, window);
            let gauge = |column| {
                let own = value(Some(column), id, window + 1);
                own.is_finite().then_some(own)
            };
            let prompt = grown(Signal::PromptTokens);
            let (cached, fresh) =
                cached_and_fresh(prompt, grown(Signal::CachedTokens), grown(Signal::FreshTokens));
            let row = ReplicaWindow {
                model: process.model.clone(),
                replica: process.replica.clone(),
                reporter: counts.reporter,
                start_s: grid.at_ms(window).div_euclid(1000),
                window_s: u32::try_from(grid.window_ms / 1000).unwrap_or(0),
                requests: grown(Signal::Requests),
                prompt_tokens: prompt,
                cached_tokens: cached,
                fresh_tokens: fresh,
                output_tokens: grown(Signal::OutputTokens),
                errors: grown(Signal::Errors),
                preemptions: grown(Signal::Preemptions),
                cache_queries: grown(Signal::CacheQueries),
                cache_hits: grown(Signal::CacheHits),
                kv_share_max: gauge(&kv),
                waiting_max: gauge(&waiting),
                running_mean: gauge(&running),
                ttft: None,
                itl: None,
            };
            let own = Own {
                row,
                ttft: ttft.get(&(id, window)).cloned(),
                itl: itl.get(&(id, window)).cloned(),
            };
            let key = (process.model.clone(), process.replica.clone(), window);
            match rows.remove(&key) {
                None => rows.insert(key, own),
                Some(before) => rows.insert(key, before.and(own)),
            };
        }
    }
    Ok(rows.into_values().map(Own::finish).collect())
}

/// A row, while processes of the same replica are added to it.
struct Own {
    row: ReplicaWindow,
    ttft: Option<Observed>,
    itl: Option<Observed>,
}

impl Own {
    fn and(self, other: Self) -> Self {
        let sum = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        let most = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let both = |a: Option<Observed>, b: Option<Observed>| match (a, b) {
            (Some(a), Some(b)) => a.and(&b),
            (a, b) => a.or(b),
        };
        let (a, b) = (self.row, other.row);
        let row = ReplicaWindow {
            requests: sum(a.requests, b.requests),
            prompt_tokens: sum(a.prompt_tokens, b.prompt_tokens),
            cached_tokens: sum(a.cached_tokens, b.cached_tokens),
            fresh_tokens: sum(a.fresh_tokens, b.fresh_tokens),
            output_tokens: sum(a.output_tokens, b.output_tokens),
            errors: sum(a.errors, b.errors),
            preemptions: sum(a.preemptions, b.preemptions),
            cache_queries: sum(a.cache_queries, b.cache_queries),
            cache_hits: sum(a.cache_hits, b.cache_hits),
            kv_share_max: most(a.kv_share_max, b.kv_share_max),
            waiting_max: sum(a.waiting_max, b.waiting_max),
            running_mean: sum(a.running_mean, b.running_mean),
            ..a
        };
        Self { row, ttft: both(self.ttft, other.ttft), itl: both(self.itl, other.itl) }
    }

    fn finish(self) -> ReplicaWindow {
        let latency = |own: Option<Observed>| own.and_then(|own| own.latency());
        ReplicaWindow { ttft: latency(self.ttft), itl: latency(self.itl), ..self.row }
    }
}

/// What was observed in windows that begin and end with a scrape, and have no reset.
fn observations(
    reader: &mut Reader<'_>,
    counts: &Counts<'_>,
    signals: &[Signal],
) -> Result<Observations, LiveError> {
    let windows = reader.grid.windows();
    let mut found = Observations::new();
    let reporting = reader.reporting;
    for spelling in signals.iter().flat_map(|signal| reporting.spelled(*signal)) {
        let buckets = reader.buckets(spelling, 1)?;
        if buckets.is_empty() {
            continue;
        }
        let sums = reader.sums(spelling)?;
        for (id, buckets) in &buckets {
            for (point, window) in windows.clone().enumerate() {
                let known = counts.status.get(*id).is_some_and(|own| own[window] == Status::Whole)
                    && !counts.resets.contains(&(*id, window));
                if !known || found.contains_key(&(*id, window)) {
                    continue;
                }
                if let Some(upto) = between(buckets, point) {
                    let sum = value(Some(&sums), *id, window + 1) - value(Some(&sums), *id, window);
                    let sum = sum.is_finite().then_some(sum);
                    found.insert((*id, window), Observed { upto, sum });
                }
            }
        }
    }
    Ok(found)
}

/// How many observations came between two points, in each bucket or below; none where one of them is not known, or there was a reset.
fn between(buckets: &[Bucket], point: usize) -> Option<Vec<(f64, f64)>> {
    let grown = buckets.iter().map(|(upto, values)| {
        let grown = values[point + 1] - values[point];
        (grown >= 0.0).then_some((*upto, grown))
    });
    grown.collect()
}

impl Observed {
    /// Those of two processes; none where their buckets differ.
    fn and(&self, other: &Self) -> Option<Self> {
        let same = self.upto.len() == other.upto.len()
            && self.upto.iter().zip(&other.upto).all(|(a, b)| a.0 == b.0);
        let upto = self.upto.iter().zip(&other.upto).map(|(a, b)| (a.0, a.1 + b.1));
        let sum = self.sum.zip(other.sum).map(|(a, b)| a + b);
        same.then(|| Self { upto: upto.collect(), sum })
    }

    fn latency(&self) -> Option<Latency> {
        let count = self.upto.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
        let quantile = |share: f64| {
            let at = self.upto.iter().position(|(_, below)| *below >= share * count)?;
            let above_s = if at == 0 { 0.0 } else { self.upto[at - 1].0 };
            let upto_s = Some(self.upto[at].0).filter(|edge| edge.is_finite());
            Some(Between { above_s, upto_s })
        };
        Some(Latency {
            count,
            mean_s: self.sum.map(|sum| sum / count),
            p50: quantile(0.5)?,
            p90: quantile(0.9)?,
            p99: quantile(0.99)?,
        })
    }
}

/// How long prompts and outputs were, of each model, over all of the grid.
pub(super) fn lengths(reader: &mut Reader<'_>) -> Result<Vec<LengthShares>, LiveError> {
    let windows = reader.grid.windows();
    let hour = usize::try_from(LENGTHS_S * 1000 / reader.grid.window_ms).unwrap_or(1).max(1);
    let stride = (1..=hour).rev().find(|stride| windows.len().is_multiple_of(*stride)).unwrap_or(1);
    let mut rows = Vec::new();
    let reporting = reader.reporting;
    for of in [Signal::PromptLength, Signal::OutputLength] {
        let mut models: BTreeMap<String, Observed> = BTreeMap::new();
        for spelling in reporting.spelled(of) {
            // Another spelling is the same once more.
            if !models.is_empty() {
                break;
            }
            let buckets = reader.buckets(spelling, stride)?;
            for (id, buckets) in &buckets {
                let model = reader.processes[*id].model.clone();
                for point in 0..windows.len() / stride {
                    let Some(upto) = between(buckets, point) else { continue };
                    let more = Observed { upto, sum: None };
                    let own = models.entry(model.clone()).or_default();
                    if own.upto.is_empty() {
                        *own = more;
                    } else if let Some(both) = own.and(&more) {
                        *own = both;
                    }
                }
            }
        }
        for (model, observed) in models {
            let count = observed.upto.last().map_or(0.0, |(_, count)| *count);
            if count <= 0.0 {
                continue;
            }
            let mut below = 0.0;
            let mut shares = Vec::new();
            for (edge, upto) in observed.upto.iter().filter(|(edge, _)| edge.is_finite()) {
                if *upto > below {
                    shares.push((*edge, (upto - below) / count));
                }
                below = upto.max(below);
            }
            rows.push(LengthShares {
                model,
                reporter: reporting.reporter,
                of,
                start_s: reader.grid.at_ms(windows.start).div_euclid(1000),
                end_s: reader.grid.at_ms(windows.end).div_euclid(1000),
                count,
                shares,
            });
        }
    }
    Ok(rows)
}
