//! When requests come: windows, gaps, bursts and silences.

use std::ops::RangeInclusive;

use plimsoll_stats::{
    Counts, Sketch, autocorrelation, compound_poisson_quantile, poisson_quantile,
    quantile_of_sorted,
};
use plimsoll_workload::Tick;

use super::gather::{Gaps, Of, Part, Presence, Resident, Seconds, WINDOW_S};
use super::lengths;
use super::levels::{quantiles, summed};
use super::result::{
    Autocorrelations, Bursts, ClockTick, DemandShape, Fits, InterArrival, Keyed, PoissonComparison,
    PoissonRequests, PoissonTokens, ResidentLevels, Silence, SilenceKind, Silences, Windows,
};

/// Lengths of windows, in seconds.
pub(super) const WIDTHS: [u64; 5] = [1, 10, 60, 300, 3600];
/// Windows beyond which none are counted: seconds of four months, or hours of a thousand years.
pub(super) const WINDOWS_MAX: u64 = 10_000_000;
/// Windows that autocorrelation is worked out for.
const LAGGED: [u64; 3] = [1, 10, 60];
const LAGS: [usize; 6] = [1, 2, 3, 5, 10, 30];
/// The window of bursts.
const BURST_S: u64 = 10;
/// Gaps beyond which families are fitted to buckets of them.
const FITTED: usize = 1_000_000;

/// The watch that all classes share: from the first arrival of the log to its last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub last_ns: i64,
}

impl Watch {
    pub fn span_s(self) -> f64 {
        self.last_ns as f64 / 1e9
    }

    /// Windows that ended before the last arrival's began; none with fewer than two, or far too many.
    pub fn complete(self, width: u64) -> Option<u64> {
        let windows = (self.last_ns / 1_000_000_000) as u64 / width;
        (2..=WINDOWS_MAX).contains(&windows).then_some(windows)
    }
}

/// Totals of the complete windows of a class.
struct Totals {
    requests: Vec<f64>,
    prompt: Option<Vec<f64>>,
    fresh: Option<Vec<f64>>,
    output: Option<Vec<f64>>,
}

fn totals(part: &Part, width: u64, windows: u64) -> Totals {
    let seconds = |of: Of| part.seconds.windows(width, windows, of);
    Totals {
        requests: seconds(Of::Requests),
        prompt: (part.known.prompt > 0).then(|| seconds(Of::Prompt)),
        fresh: (part.known.cached == part.rows && part.rows > 0).then(|| seconds(Of::Fresh)),
        output: (part.known.output > 0).then(|| seconds(Of::Output)),
    }
}

/// What windows say of a class.
pub(super) struct ByWindow {
    pub windows: Keyed<Option<Windows>>,
    pub autocorrelation: Keyed<Option<Autocorrelations>>,
    pub poisson: Keyed<Option<PoissonComparison>>,
    pub bursts: Option<Bursts>,
}

pub(super) fn by_window(part: &Part, watch: Option<Watch>) -> ByWindow {
    let mut found = ByWindow {
        windows: Keyed(Vec::new()),
        autocorrelation: Keyed(Vec::new()),
        poisson: Keyed(Vec::new()),
        bursts: None,
    };
    for width in WIDTHS {
        let complete = watch.and_then(|watch| watch.complete(width));
        let totals = complete.map(|windows| totals(part, width, windows));
        if LAGGED.contains(&width) {
            let lagged = totals.as_ref().and_then(autocorrelations);
            found.autocorrelation.0.push((width.to_string(), lagged));
        }
        let poisson = totals.as_ref().map(|totals| poisson(part, totals));
        if width == BURST_S
            && let (Some(totals), Some(poisson)) = (&totals, &poisson)
        {
            found.bursts = bursts(totals, poisson);
        }
        found.poisson.0.push((width.to_string(), poisson));
        found.windows.0.push((width.to_string(), totals.map(windows)));
    }
    found
}

/// Stretches of the span that are told.
const STRETCHES: u64 = 60;

/// Demand over the span.
pub(super) fn shape(part: &Part, watch: Option<Watch>) -> Option<DemandShape> {
    let seconds = watch?.complete(1)?;
    let stretch = seconds.div_ceil(STRETCHES);
    let totals = totals(part, stretch, seconds / stretch);
    let rates = |sums: Vec<f64>| sums.into_iter().map(|sum| sum / stretch as f64).collect();
    Some(DemandShape {
        stretch_s: stretch,
        requests_per_s: rates(totals.requests),
        prompt_tokens_per_s: totals.prompt.map(rates),
        output_tokens_per_s: totals.output.map(rates),
    })
}

fn windows(totals: Totals) -> Windows {
    let Totals { requests, prompt, fresh, output } = totals;
    let both = prompt.as_ref().zip(output.as_ref());
    let total =
        both.map(|(prompt, output)| prompt.iter().zip(output).map(|(p, o)| p + o).collect());
    Windows {
        n_windows: requests.len() as u64,
        n_empty: requests.iter().filter(|requests| **requests <= 0.0).count() as u64,
        requests: summed(requests),
        prompt_tokens: prompt.map(summed),
        fresh_tokens: fresh.map(summed),
        output_tokens: output.map(summed),
        total_tokens: total.map(summed),
    }
}

fn autocorrelations(totals: &Totals) -> Option<Autocorrelations> {
    let enough = LAGS.iter().all(|lag| *lag < totals.requests.len());
    let of = |values: &[f64]| {
        Keyed(LAGS.iter().map(|lag| (lag.to_string(), autocorrelation(values, *lag))).collect())
    };
    enough.then(|| Autocorrelations {
        requests: of(&totals.requests),
        prompt_tokens: totals.prompt.as_deref().map(of),
        output_tokens: totals.output.as_deref().map(of),
    })
}

fn poisson(part: &Part, totals: &Totals) -> PoissonComparison {
    let n = totals.requests.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
    let rate = mean(&totals.requests);
    let [actual_p99, actual_max] = quantiles(&mut totals.requests.clone(), [0.99, 1.0]);
    let poisson_p99 = poisson_quantile(rate, 0.99);
    let tokens = |values: &Vec<f64>, lengths: &Counts| {
        let mean = mean(values);
        let fixed = if rate > 0.0 { poisson_p99 * mean / rate } else { 0.0 };
        let sizes: Vec<(f64, f64)> = lengths::values(lengths).collect();
        let compound = compound_poisson_quantile(rate, &sizes, 0.99);
        let [actual_p99, actual_max] = quantiles(&mut values.clone(), [0.99, 1.0]);
        let above = |limit: f64| values.iter().filter(|value| **value > limit).count() as f64 / n;
        let over = |value: f64| (value > 0.0).then(|| actual_p99 / value);
        PoissonTokens {
            mean,
            actual_p99,
            actual_max,
            poisson_fixed_mean_length_p99: fixed,
            compound_poisson_empirical_length_p99: compound.value,
            compound_relative_error: compound.relative_error,
            actual_over_poisson_fixed: over(fixed),
            actual_over_compound: over(compound.value),
            share_of_windows_above_poisson_fixed_p99: above(fixed),
            share_of_windows_above_compound_p99: above(compound.value),
        }
    };
    PoissonComparison {
        requests: PoissonRequests {
            actual_p99,
            poisson_p99,
            actual_max,
            poisson_expected_max_quantile: poisson_quantile(rate, 1.0 - 1.0 / n),
        },
        prompt_tokens: totals.prompt.as_ref().map(|values| tokens(values, &part.prompt)),
        output_tokens: totals.output.as_ref().map(|values| tokens(values, &part.output)),
    }
}

fn bursts(totals: &Totals, poisson: &PoissonComparison) -> Option<Bursts> {
    let prompts = totals.prompt.as_ref()?;
    let above = poisson.prompt_tokens.as_ref()?.compound_poisson_empirical_length_p99;
    let mut runs: Vec<f64> = prompts
        .chunk_by(|a, b| (*a > above) == (*b > above))
        .filter(|run| run[0] > above)
        .map(|run| (run.len() as u64 * BURST_S) as f64)
        .collect();
    let within: f64 = prompts.iter().filter(|tokens| **tokens > above).sum();
    let sum: f64 = prompts.iter().sum();
    let time: f64 = runs.iter().sum();
    let [p50, p95, max] =
        quantiles(&mut runs, [0.5, 0.95, 1.0]).map(|length| (length > 0.0).then_some(length));
    Some(Bursts {
        window_s: BURST_S,
        above_tokens: above,
        count: runs.len() as u64,
        length_s_p50: p50,
        length_s_p95: p95,
        length_s_max: max,
        share_of_time: time / (prompts.len() as u64 * BURST_S) as f64,
        share_of_tokens: if sum > 0.0 { within / sum } else { 0.0 },
    })
}

/// Gaps between arrivals in order of time, exactly; none with fewer than two.
pub(super) fn inter_arrival(times: &[i64]) -> Option<(InterArrival, Option<Fits>)> {
    let mut gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let n = gaps.len() as u64;
    let max = *gaps.last()?;
    let squares = gaps.iter().map(|gap| u128::from(gap.unsigned_abs()).pow(2)).sum();
    let zeros = gaps.partition_point(|gap| *gap <= 0) as u64;
    let seconds: Vec<f64> = gaps.iter().map(|gap| *gap as f64 / 1e9).collect();
    drop(gaps);
    let at = |p: f64| quantile_of_sorted(&seconds, p);
    let total = times.last()? - times.first()?;
    let found = described(n, total, squares, max, zeros, [at(0.5), at(0.95), at(0.99)], true);
    let fitted = if seconds.len() <= FITTED {
        lengths::fits(seconds.into_iter().map(|gap| (gap, 1.0)), 0.0)
    } else {
        let mut buckets = Sketch::new(1e-9);
        seconds.into_iter().for_each(|gap| buckets.record(gap, 1));
        fits_of(&buckets)
    };
    Some((found, fitted))
}

/// The same from buckets.
pub(super) fn inter_arrival_bucketed(gaps: &Gaps) -> Option<(InterArrival, Option<Fits>)> {
    let at = |p: f64| gaps.buckets.quantile(p);
    let quantiles = [at(0.5)?, at(0.95)?, at(0.99)?];
    let total = gaps.last - gaps.first;
    let found = described(gaps.n, total, gaps.squares, gaps.max, gaps.zeros, quantiles, false);
    Some((found, fits_of(&gaps.buckets)))
}

fn fits_of(buckets: &Sketch) -> Option<Fits> {
    let values = buckets.counts().map(|(gap, n)| (gap, n as f64));
    lengths::fits(values, Sketch::RELATIVE_ERROR)
}

fn described(
    n: u64,
    total: i64,
    squares: u128,
    max: i64,
    zeros: u64,
    [p50, p95, p99]: [f64; 3],
    exact: bool,
) -> InterArrival {
    let mean = total as f64 / n as f64;
    let variance = (squares as f64 / n as f64 - mean * mean).max(0.0);
    InterArrival {
        n,
        mean: mean / 1e9,
        std: variance.sqrt() / 1e9,
        cv: (mean > 0.0).then(|| variance.sqrt() / mean),
        p50,
        p95,
        p99,
        max: max as f64 / 1e9,
        zeros,
        exact,
        relative_error: if exact { 0.0 } else { Sketch::RELATIVE_ERROR },
    }
}

/// The tick of the clock.
pub(super) fn tick(times: &[i64]) -> Option<ClockTick> {
    let seconds: Vec<f64> = times.iter().map(|at| *at as f64 / 1e9).collect();
    let tick = Tick::of(&seconds)?;
    Some(ClockTick { seconds: tick.seconds, stamps: tick.stamps as u64, rows: times.len() as u64 })
}

/// Tokens in memory; none without rows or complete windows.
pub(super) fn resident(
    resident: &Resident,
    rows: u64,
    watch: Option<Watch>,
    basis: Option<&str>,
) -> Option<ResidentLevels> {
    if resident.rows == 0 {
        return None;
    }
    let windows = watch?.complete(WINDOW_S)?;
    let mut tokens = resident.windows(windows);
    let mean = tokens.iter().sum::<f64>() / windows as f64;
    let [p95, p99, max] = quantiles(&mut tokens, [0.95, 0.99, 1.0]);
    Some(ResidentLevels {
        window_s: WINDOW_S,
        n_windows: windows,
        mean,
        p95,
        p99,
        max,
        share_of_rows: resident.rows as f64 / rows as f64,
        basis: basis.map(str::to_owned),
    })
}

/// No spell that is shorter counts as a silence.
const SILENCE_S: usize = 10;
/// The rate around a silence is that of so many seconds on each side.
const AROUND_S: usize = 600;
/// Who was there is looked for in so many minutes on each side.
const AROUND_MINUTES: u64 = 5;
/// Silences that are listed.
const LISTED: usize = 20;
/// Fewer silences than this are to be expected by chance in the whole log.
const BY_CHANCE: f64 = 1e-3;

/// Spells without requests that the rate around them makes improbable.
pub(super) fn silences(
    seconds: &Seconds,
    presence: &Presence,
    watch: Watch,
    tick: Option<&ClockTick>,
) -> Option<Silences> {
    let windows = watch.complete(1)?;
    let requests = seconds.windows(1, windows, Of::Requests);
    let shortest = SILENCE_S.max(tick.map_or(0, |tick| (3.0 * tick.seconds).ceil() as usize));
    let mut found = Vec::new();
    for Spell { start, end, expected } in spells(&requests, shortest) {
        let (before, after) = around(start, end);
        let fell_silent = presence.on_both_sides(before, after);
        let kind =
            if fell_silent >= 2 { SilenceKind::CollectionGap } else { SilenceKind::CannotTell };
        found.push(Silence {
            start_s: start as f64,
            length_s: (end - start) as f64,
            expected_requests: expected,
            fell_silent,
            kind,
        });
    }
    let total_s = found.iter().map(|silence| silence.length_s).sum();
    let gaps = found.iter().filter(|silence| silence.kind == SilenceKind::CollectionGap).count();
    let count = found.len() as u64;
    found.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
    found.truncate(LISTED);
    found.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    Some(Silences {
        count,
        total_s,
        share_of_time: total_s / windows as f64,
        collection_gaps: gaps as u64,
        longest: found,
    })
}

/// A spell without requests that the rate around it makes improbable, from second to second.
struct Spell {
    start: usize,
    end: usize,
    expected: f64,
}

fn spells(requests: &[f64], shortest: usize) -> Vec<Spell> {
    let busy = requests.iter().filter(|requests| **requests > 0.0).count() as f64;
    // Requests before each second.
    let mut before = Vec::with_capacity(requests.len() + 1);
    before.push(0.0);
    for requests in requests {
        before.push(before[before.len() - 1] + requests);
    }
    let probable = (busy.max(1.0) / BY_CHANCE).ln();
    let mut found = Vec::new();
    let mut at = 0;
    for run in requests.chunk_by(|a, b| (*a > 0.0) == (*b > 0.0)) {
        let (start, end) = (at, at + run.len());
        at = end;
        if run[0] > 0.0 || run.len() < shortest || end == requests.len() {
            continue;
        }
        let (from, to) = (start.saturating_sub(AROUND_S), (end + AROUND_S).min(requests.len()));
        let around = before[start] - before[from] + before[to] - before[end];
        let expected = around / ((start - from) + (to - end)) as f64 * run.len() as f64;
        if expected > probable {
            found.push(Spell { start, end, expected });
        }
    }
    found
}

/// The minutes before and after a spell in which it is looked for who was there.
fn around(start: usize, end: usize) -> (RangeInclusive<u64>, RangeInclusive<u64>) {
    let (first, last) = (start.saturating_sub(1) as u64 / 60, end as u64 / 60);
    (first.saturating_sub(AROUND_MINUTES)..=first, last..=last + AROUND_MINUTES)
}

/// The minutes around spells of a log whose last arrival was then.
pub(super) fn minutes_in_doubt(
    seconds: &Seconds,
    last_ns: Option<i64>,
) -> Vec<RangeInclusive<u64>> {
    let Some(windows) = last_ns.and_then(|last_ns| Watch { last_ns }.complete(1)) else {
        return Vec::new();
    };
    let requests = seconds.windows(1, windows, Of::Requests);
    let mut minutes: Vec<RangeInclusive<u64>> = Vec::new();
    for spell in spells(&requests, SILENCE_S) {
        let (before, after) = around(spell.start, spell.end);
        for range in [before, after] {
            match minutes.last_mut() {
                Some(last) if *range.start() <= last.end() + 1 => {
                    *last = *last.start()..=*range.end().max(last.end());
                }
                _ => minutes.push(range),
            }
        }
    }
    minutes
}
