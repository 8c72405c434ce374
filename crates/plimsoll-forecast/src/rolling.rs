//! Forecasts as they would have been made, one origin after the other, and what they missed by.

use plimsoll_stats::{normal_quantile, student_quantile};

use crate::models::{MODELS, Season, forecast};

/// Where buckets of lead times end, in seconds.
const BUCKET_ENDS_S: [u64; 11] =
    [300, 900, 1800, 3600, 7200, 21_600, 86_400, 259_200, 604_800, 1_209_600, 2_419_200];
/// Leads of a bucket at least.
const BUCKET_LEADS: usize = 3;
/// Steps of history that are read in all, over origins: enough for every figure, and milliseconds.
const STEPS_READ: usize = 65_000;
const ORIGINS_LEAST: usize = 28;
const ORIGINS_MOST: usize = 256;
/// Fewer residuals than this say nothing of a quantile.
const POOL_LEAST: usize = 5;
const FORTNIGHT_S: f64 = 14.0 * 86_400.0;
/// No interval is widened beyond this for want of history.
const WIDEST: f64 = 3.0;
/// With nothing to go by, the 95th percentile is taken for twice the median, on a normal scale of logarithms.
const PRIOR_P95: f64 = std::f64::consts::LN_2;

/// Origins of a series, and which lead times are judged together.
#[derive(Clone, Debug)]
pub(crate) struct Rolling {
    /// Steps of history.
    pub(crate) steps: usize,
    /// Steps ahead.
    pub(crate) horizon: usize,
    /// How long a step is.
    pub(crate) step_s: u32,
    /// How many steps each origin knows.
    pub(crate) origins: Vec<usize>,
    /// The first origin that is scored; those before only teach.
    pub(crate) scored: usize,
    /// Where each bucket of lead times ends, in steps.
    pub(crate) ends: Vec<usize>,
    /// Origins and leads of each bucket in the order in which they came true.
    came_true: Vec<Vec<Pair>>,
}

/// What came true: an origin's number and a lead, from zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) origin: usize,
    pub(crate) lead: usize,
}

impl Rolling {
    pub(crate) fn new(steps: usize, horizon: usize, step_s: u32, season: Season) -> Self {
        // Before a week has been seen twice, models of weeks are others than they will be, and what they were off by says nothing of them.
        let weeks = [2, 1].into_iter().filter_map(|times| Some(season.week? * times));
        let seen = weeks.into_iter().find(|seen| *seen * 3 <= steps);
        let first = (steps / 6).max(6).max(seen.unwrap_or(0));
        let room = steps.saturating_sub(first);
        let most = (STEPS_READ / steps.max(1)).clamp(ORIGINS_LEAST, ORIGINS_MOST);
        let mut stride = room.div_ceil(most).max(1);
        // So that origins fall on every time of the day.
        while season.day.is_some_and(|day| gcd(stride, day) > 1) {
            stride += 1;
        }
        Self::from(first, steps, horizon, step_s, stride)
    }

    /// Origins so many steps apart.
    pub(crate) fn every(steps: usize, horizon: usize, step_s: u32, stride: usize) -> Self {
        Self::from((steps / 6).max(6), steps, horizon, step_s, stride)
    }

    fn from(first: usize, steps: usize, horizon: usize, step_s: u32, stride: usize) -> Self {
        // Counted back from the end, so that the latest are there.
        let mut origins: Vec<usize> =
            (first..steps).rev().step_by(stride).filter(|origin| *origin >= first).collect();
        origins.reverse();
        // A fifth of them teach before the first is scored.
        let from = (steps / 3).max(first + steps.saturating_sub(first) / 5);
        let scored = origins.iter().position(|origin| *origin >= from).unwrap_or(origins.len());
        let ends = bucket_ends(horizon, step_s);
        let mut came_true = vec![Vec::new(); ends.len()];
        let mut from = 0;
        for (bucket, end) in ends.iter().enumerate() {
            let pairs: &mut Vec<Pair> = &mut came_true[bucket];
            for (i, origin) in origins.iter().enumerate() {
                let leads = (from..*end).filter(|lead| origin + lead < steps);
                pairs.extend(leads.map(|lead| Pair { origin: i, lead }));
            }
            pairs.sort_by_key(|pair| (origins[pair.origin] + pair.lead, pair.origin));
            from = *end;
        }
        Self { steps, horizon, step_s, origins, scored, ends, came_true }
    }

    pub(crate) fn bucket_of(&self, lead: usize) -> usize {
        self.ends.iter().position(|end| lead < *end).unwrap_or(self.ends.len().saturating_sub(1))
    }

    /// The step that a pair was about.
    pub(crate) fn target(&self, pair: Pair) -> usize {
        self.origins[pair.origin] + pair.lead
    }

    /// What of a bucket had come true when `known` steps were known.
    pub(crate) fn pool(&self, bucket: usize, known: usize) -> &[Pair] {
        let pairs = &self.came_true[bucket];
        let n = pairs.partition_point(|pair| self.target(*pair) < known);
        &pairs[..n]
    }

    /// The first origin that still teaches when `known` steps are known: one that had seen less than half of them knew too little to
    /// say how far a forecast of now may be off.
    pub(crate) fn teaches_from(&self, known: usize) -> usize {
        self.origins.partition_point(|origin| *origin < known / 2)
    }

    /// The first origin whose residuals say where the middle is when `known` steps are known: a bias that was, before a level shifted or a
    /// drift began, is none that is.
    pub(crate) fn recent_from(&self, known: usize) -> usize {
        self.origins.partition_point(|origin| *origin < known - known / 3)
    }

    /// How many residuals of a bucket stand for themselves when `known` steps are known.
    ///
    /// Residuals of neighbouring origins share most of their time. Windows that overlap say more than those side by side, and less than as
    /// many on their own: a stretch as long as the bucket's lead counts as one and a half. With less than two weeks, days of the week have not
    /// been seen twice, and what was seen counts for less, down to two thirds.
    pub(crate) fn independent(&self, bucket: usize, known: usize) -> f64 {
        let first = self.origins.get(self.teaches_from(known)).copied().unwrap_or(known);
        let stretches = known.saturating_sub(first) as f64 / self.ends[bucket].max(1) as f64;
        let fortnights = known as f64 * f64::from(self.step_s) / FORTNIGHT_S;
        1.5 * stretches * fortnights.clamp(2.0 / 3.0, 1.0)
    }

    /// Origins and leads that are scored, with the step they were about.
    pub(crate) fn scores(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let own = self.origins.iter().enumerate().skip(self.scored);
        own.flat_map(move |(i, origin)| {
            (0..self.horizon)
                .map(move |lead| (i, lead, origin + lead))
                .take_while(|(_, _, at)| *at < self.steps)
        })
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn bucket_ends(horizon: usize, step_s: u32) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    for end_s in BUCKET_ENDS_S {
        let end = usize::try_from(end_s / u64::from(step_s.max(1))).unwrap_or(usize::MAX);
        let from = ends.last().copied().unwrap_or(0);
        if end >= from + BUCKET_LEADS && end < horizon {
            ends.push(end);
        }
    }
    // What is left over beyond the last end is a bucket of its own, unless it is short.
    match ends.last() {
        Some(last) if horizon < last + BUCKET_LEADS => {
            ends.pop();
        }
        _ => {}
    }
    ends.push(horizon);
    ends
}

/// One model's forecasts on the logarithm: as they would have been, and as they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Track {
    /// For each origin, `horizon` steps.
    pub(crate) past: Vec<f64>,
    /// From the end of the history on.
    pub(crate) ahead: Vec<f64>,
}

/// The tracks of every model.
pub(crate) fn tracks(history: &[f64], season: Season, rolling: &Rolling) -> [Track; MODELS] {
    let horizon = rolling.horizon;
    let room =
        || Track { past: Vec::with_capacity(rolling.origins.len() * horizon), ahead: Vec::new() };
    let mut tracks: [Track; MODELS] = std::array::from_fn(|_| room());
    let mut steps: [Vec<f64>; MODELS] = std::array::from_fn(|_| vec![0.0; horizon]);
    for origin in &rolling.origins {
        forecast(&history[..*origin], season, &mut steps);
        for (track, own) in tracks.iter_mut().zip(&steps) {
            track.past.extend_from_slice(own);
        }
    }
    forecast(history, season, &mut steps);
    for (track, own) in tracks.iter_mut().zip(steps) {
        track.ahead = own;
    }
    tracks
}

impl Track {
    pub(crate) fn at(&self, rolling: &Rolling, origin: usize, lead: usize) -> f64 {
        self.past[origin * rolling.horizon + lead]
    }

    /// What origins from one on were off by in a bucket, on the logarithm and in order.
    pub(crate) fn residuals(
        &self,
        rolling: &Rolling,
        actual: &[f64],
        bucket: usize,
        from: usize,
    ) -> Vec<f64> {
        let pairs = rolling.pool(bucket, rolling.steps).iter().filter(|pair| pair.origin >= from);
        let residuals = pairs.map(|pair| self.residual(rolling, actual, *pair));
        let mut sorted: Vec<f64> = residuals.filter(|residual| !residual.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// What a pair was off by, on the logarithm; not a number where the step is missing.
    pub(crate) fn residual(&self, rolling: &Rolling, actual: &[f64], pair: Pair) -> f64 {
        actual[rolling.target(pair)] - self.at(rolling, pair.origin, pair.lead)
    }
}

/// How far quantiles lie from a model's forecast, on the logarithm: for every scored origin and at the end, by bucket and level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bands {
    levels: usize,
    buckets: usize,
    offsets: Vec<f64>,
}

impl Bands {
    /// The bands of a track around what came, for each of `levels` in rising order.
    pub(crate) fn of(track: &Track, actual: &[f64], rolling: &Rolling, levels: &[f64]) -> Self {
        let buckets = rolling.ends.len();
        let scored = rolling.origins.len() - rolling.scored;
        let mut offsets = vec![0.0; scored * buckets * levels.len()];
        for bucket in 0..buckets {
            let mut sorted: Vec<Residual> = Vec::new();
            let (mut values, mut recent): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
            let mut taken = 0;
            let mut fresh = Vec::new();
            for i in 0..scored {
                let known = rolling.origins[rolling.scored + i];
                let pool = rolling.pool(bucket, known);
                fresh.clear();
                fresh.extend(pool[taken..].iter().filter_map(|pair| {
                    let residual = track.residual(rolling, actual, *pair);
                    (!residual.is_nan()).then_some((residual, pair.origin))
                }));
                taken = pool.len();
                merge(&mut sorted, &mut fresh);
                let from = rolling.teaches_from(known);
                sorted.retain(|(_, origin)| *origin >= from);
                values.clear();
                values.extend(sorted.iter().map(|(residual, _)| residual));
                let of_late = rolling.recent_from(known);
                recent.clear();
                recent.extend(sorted.iter().filter(|(_, o)| *o >= of_late).map(|(r, _)| r));
                let independent = rolling.independent(bucket, known);
                let from = (i * buckets + bucket) * levels.len();
                let own = &mut offsets[from..from + levels.len()];
                quantiles(&values, &recent, independent, levels, own);
            }
        }
        Self { levels: levels.len(), buckets, offsets }
    }

    /// The offsets of a scored origin, counted from the first of them.
    pub(crate) fn past(&self, origin: usize, bucket: usize) -> &[f64] {
        let from = (origin * self.buckets + bucket) * self.levels;
        &self.offsets[from..from + self.levels]
    }
}

/// What an origin was off by.
type Residual = (f64, usize);

/// Puts residuals in any order among those in order.
fn merge(sorted: &mut Vec<Residual>, fresh: &mut [Residual]) {
    fresh.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut old = sorted.len();
    sorted.extend_from_slice(fresh);
    let mut new = fresh.len();
    let mut at = sorted.len();
    // From the back: what is larger goes last.
    while new > 0 && old > 0 {
        at -= 1;
        if sorted[old - 1].0 > fresh[new - 1].0 {
            old -= 1;
            sorted[at] = sorted[old];
        } else {
            new -= 1;
            sorted[at] = fresh[new];
        }
    }
    if old == 0 {
        sorted[..new].copy_from_slice(&fresh[..new]);
    }
}

/// Conformal quantiles of residuals in order: the rank one of `n + 1` would have, widened for how few stand for themselves. Upper quantiles
/// never lie below the forecast: a fleet is not made smaller by a run of luck. The middle is that of the `recent` ones among them, also in order.
pub(crate) fn quantiles(
    sorted: &[f64],
    recent: &[f64],
    independent: f64,
    levels: &[f64],
    out: &mut [f64],
) {
    let n = sorted.len();
    let prior = |level: f64| PRIOR_P95 * normal_quantile(level) / normal_quantile(0.95);
    if n < POOL_LEAST {
        levels.iter().zip(out).for_each(|(level, own)| *own = prior(*level));
        return;
    }
    let middle = at_rank(if recent.len() < POOL_LEAST { sorted } else { recent }, 0.5);
    let mut least = f64::NEG_INFINITY;
    for (level, own) in levels.iter().zip(out) {
        let raw = match *level - 0.5 {
            off if off.abs() < 1e-9 => middle,
            off if off > 0.0 => reach(sorted, *level, middle).max(middle.max(0.0)),
            _ => at_rank(sorted, *level).min(middle),
        };
        *own = (middle + (raw - middle) * widening(*level, independent)).max(least);
        least = *own;
    }
}

/// The residual at a conformal rank.
fn at_rank(sorted: &[f64], level: f64) -> f64 {
    let n = sorted.len();
    let rank = ((n + 1) as f64 * level).ceil() as usize;
    sorted[rank.clamp(1, n) - 1]
}

/// The quantile at a level, continued on a normal scale from the highest that so many residuals reach.
fn reach(sorted: &[f64], level: f64, middle: f64) -> f64 {
    let n = sorted.len() as f64;
    let highest = n / (n + 1.0);
    if level <= highest {
        return at_rank(sorted, level);
    }
    let further = normal_quantile(level) / normal_quantile(highest);
    let last = at_rank(sorted, highest);
    middle + (last - middle).max(0.0) * further
}

/// How much wider an interval is for being estimated from so many observations: Student's t over the normal, times the spread of a new
/// one around an estimated middle.
fn widening(level: f64, independent: f64) -> f64 {
    let n = independent.max(2.0);
    let z = normal_quantile(level);
    if z.abs() < 1e-9 {
        return 1.0;
    }
    let freedom = n - 1.0;
    // Beyond ten the expansion of Student's t around the normal is exact to four digits, and it is asked for often.
    let t = if freedom < 10.0 {
        student_quantile(level, freedom)
    } else {
        let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
        z + (z3 + z) / (4.0 * freedom)
            + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
            + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
    };
    (t / z * (1.0 + 1.0 / n).sqrt()).clamp(1.0, WIDEST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_end_where_leads_do() {
        assert_eq!(bucket_ends(24, 3600), [6, 24]);
        assert_eq!(bucket_ends(168, 3600), [6, 24, 72, 168]);
        assert_eq!(bucket_ends(12, 600), [3, 6, 12]);
        assert_eq!(bucket_ends(30, 60), [5, 15, 30]);
        assert_eq!(bucket_ends(1, 3600), [1]);
        assert_eq!(bucket_ends(7, 3600), [7]);
    }

    /// Of nine residuals the conformal rank of 0.8 is ceil(10 * 0.8) = 8, of 0.5 it is 5.
    #[test]
    fn ranks_by_hand() {
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(at_rank(&nine, 0.8), 8.0);
        assert_eq!(at_rank(&nine, 0.5), 5.0);
        let mut out = [0.0; 2];
        quantiles(&nine, &[], 1e12, &[0.5, 0.8], &mut out);
        assert_eq!(out[0], 5.0);
        assert!((out[1] - 8.0).abs() < 1e-6, "{out:?}");
        // 0.95 is out of reach: nine residuals go to 0.9 and 9, the normal scale on to 5 + 4 * 1.6449 / 1.2816.
        let far = reach(&nine, 0.95, 5.0);
        assert!((far - 10.1339).abs() < 1e-3, "{far}");
    }

    /// Ten observations at 95 %: t(9) = 1.8331 over 1.6449, times the root of 1.1.
    #[test]
    fn widening_by_hand() {
        let expect = 1.833_113 / 1.644_854 * 1.1f64.sqrt();
        assert!((widening(0.95, 10.0) - expect).abs() < 1e-4);
        assert!((widening(0.05, 10.0) - expect).abs() < 1e-4);
        // Where the expansion takes over: t(10) = 2.2281 and t(30) = 2.0423 at 97.5 %.
        for (n, t) in [(11.0, 2.228_139), (31.0, 2.042_272)] {
            let expect = t / 1.959_964 * (1.0f64 + 1.0 / n).sqrt();
            assert!((widening(0.975, n) - expect).abs() < 3e-4, "{n}");
        }
        assert!((widening(0.95, 1e9) - 1.0).abs() < 1e-6);
        assert_eq!(widening(0.99, 0.0), WIDEST);
    }

    #[test]
    fn nothing_is_known_before_it_came_true() {
        let rolling = Rolling::new(252, 24, 3600, Season { day: Some(24), week: None });
        assert!(rolling.origins.len() > 100);
        for bucket in 0..2 {
            for known in [60, 100, 252] {
                let pool = rolling.pool(bucket, known);
                assert!(pool.iter().all(|pair| rolling.target(*pair) < known));
                let all = rolling.pool(bucket, 252);
                assert!(all[pool.len()..].iter().all(|pair| rolling.target(*pair) >= known));
            }
        }
        assert!(rolling.scores().all(|(i, _, at)| rolling.origins[i] >= 84 && at < 252));
    }

    proptest! {
        #[test]
        fn merged_is_sorted(a: Vec<u8>, b: Vec<u8>) {
            let numbers = |bytes: &[u8]| bytes.iter().map(|x| (f64::from(*x), 0)).collect();
            let (mut sorted, mut fresh): (Vec<Residual>, Vec<Residual>) = (numbers(&a), numbers(&b));
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut expect = [sorted.clone(), fresh.clone()].concat();
            expect.sort_by(|a, b| a.0.total_cmp(&b.0));
            merge(&mut sorted, &mut fresh);
            prop_assert_eq!(sorted, expect);
        }

        #[test]
        fn quantiles_rise(mut residuals in prop::collection::vec(-3.0f64..3.0, 0..60), n in 0.0f64..50.0) {
            residuals.sort_by(f64::total_cmp);
            let mut out = [0.0; 6];
            quantiles(&residuals, &[], n, &plimsoll_workload::Quantiles::LEVELS, &mut out);
            prop_assert!(out.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", out);
            prop_assert!(out[1] >= 0.0);
        }
    }
}
