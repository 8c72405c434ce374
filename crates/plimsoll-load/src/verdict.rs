//! Whether a load is carried: a sequential test whose unit is the clump of misses, not the task.
//!
//! Misses come in clumps, because a fleet that is full is full for everybody. A run is looked at several times, and each look is paid for. Many misses in few clumps say
//! little; how large clumps are is learned from all loads of a question together, above all from those that fail. `docs/model.md`, "The load line".

use plimsoll_stats::{normal_quantile, poisson_tails, share_interval_of};
use serde::Serialize;

use crate::count::{Count, Episode, LOOKS, Steady, UNITS, units_at};
use crate::demand::Span;
use crate::promise::{Measure, Promise};

/// Whether every promise is kept at a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadVerdict {
    /// Surely.
    Carried,
    /// Surely not.
    Fails,
    /// The budget ended before it was sure.
    TooClose,
}

/// What a look may cost of the error of one side, where 5% are spent in all. Late looks weigh more, as they decide.
const SPENT: [f64; LOOKS] = [0.002, 0.004, 0.006, 0.008, 0.012, 0.008, 0.010];
/// From this look on a load that misses about as much as it may is not looked at further: it takes far more to tell it apart.
const FUTILE_LOOK: usize = 4;
/// Missed / allowed within which that is so.
const FUTILE: (f64, f64) = (0.4, 2.5);
/// A backlog that grows is at least so far from settling: missed / allowed.
const LEAST_GROWTH: f64 = 2.0;
/// Looks at episodes: so many clusters.
pub(crate) const CLUSTERS: [usize; 4] = [4, 10, 20, 40];
/// Standard deviations at each of these looks, where 5% are spent in all: few clusters say less than the normal distribution has it.
const DEVIATIONS: [f64; 4] = [3.5, 2.9, 2.5, 2.3];
/// Clusters of bursts that a verdict of carried rests on at least, and dumps, which are alike.
const CLUSTERS_TO_CARRY: (usize, usize) = (10, 4);
/// Clusters that are looked at where the budget allows it.
const MOST_CLUSTERS: usize = 16;
/// Clumps of eight misses, as if twenty misses had been seen.
const PRIOR: (f64, f64) = (160.0, 20.0);
/// Misses of an episode come in clumps of at least so many.
const EPISODE_CLUMP: f64 = 4.0;
/// Blocks whose misses are compared.
const BLOCKS: usize = 16;
/// Missed / allowed of a load that does not settle.
pub(crate) const UNSETTLED: f64 = 50.0;

/// How large clumps of misses are, by promise: the squares and the misses of all loads of a question.
#[derive(Clone, Debug)]
pub(crate) struct Clumps(Vec<(f64, f64)>);

impl Clumps {
    pub(crate) fn new(promises: usize) -> Self {
        Self(vec![PRIOR; promises])
    }

    /// Of tasks that do not wait for each other: what is judged comes in clumps of a task each, until it is seen otherwise.
    pub(crate) fn alone(sizes: impl Iterator<Item = f64>) -> Self {
        Self(sizes.map(|size| (size * PRIOR.1, PRIOR.1)).collect())
    }

    /// The index of dispersion of misses.
    fn size(&self, promise: usize, squares: f64, count: Count) -> f64 {
        let (known, before) = self.0[promise];
        ((squares + known) / (varying(count) + before)).max(1.0)
    }

    fn learn(&mut self, promise: usize, squares: f64, count: Count) {
        let (known, before) = &mut self.0[promise];
        // One load does not speak for all.
        *known += squares.min(120.0 * varying(count));
        *before += varying(count);
    }
}

/// The variance of misses that do not clump. Where nearly every task misses, misses hardly vary, and say nothing of clumps.
fn varying(count: Count) -> f64 {
    count.missed * (1.0 - count.missed / count.came.max(1.0)).max(0.0)
}

/// What a promise came to at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kept {
    /// What came and what missed: of a steady demand as counted, with episodes for each cycle of quiet time and cluster.
    pub(crate) count: Count,
    /// The index of dispersion of misses.
    pub(crate) clump: f64,
    /// The share that missed lies between these.
    pub(crate) between: (f64, f64),
    pub(crate) verdict: LoadVerdict,
    /// Missed / allowed.
    pub(crate) ratio: f64,
}

/// What a load came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) verdict: LoadVerdict,
    /// Of each promise.
    pub(crate) kept: Vec<Kept>,
    /// Where the backlog grows, its growth over what may be missed: a task in it misses its promise in the end.
    pub(crate) grows: Option<f64>,
    /// Where it grows, the share of what comes that is served.
    pub(crate) served: Option<f64>,
    /// Looks after which it was decided, or all.
    pub(crate) looks: usize,
    /// Whether more could be looked at.
    pub(crate) open: bool,
    /// Whether all is surely kept but what comes so seldom that no budget shows it, and of that as much as was seen.
    pub(crate) as_sure_as_can_be: bool,
}

impl Judgement {
    /// A load at which a run had to be given up.
    pub(crate) fn overrun(promises: &[Promise]) -> Self {
        let lost = Kept {
            count: Count::default(),
            clump: 1.0,
            between: (0.0, 1.0),
            verdict: LoadVerdict::Fails,
            ratio: UNSETTLED,
        };
        Self {
            verdict: LoadVerdict::Fails,
            kept: vec![lost; promises.len()],
            grows: Some(UNSETTLED),
            served: None,
            looks: 0,
            open: false,
            as_sure_as_can_be: false,
        }
    }

    /// The largest missed / allowed of any promise.
    pub(crate) fn ratio(&self) -> f64 {
        let most = self.kept.iter().map(|kept| kept.ratio).fold(0.0, f64::max);
        self.grows.map_or(most, |grows| most.max(grows))
    }

    /// The promise with the largest missed / allowed.
    pub(crate) fn worst(&self) -> Option<usize> {
        let all = self.kept.iter().enumerate();
        all.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio).then(b.0.cmp(&a.0))).map(|(i, _)| i)
    }
}

/// Missed / allowed, as if half of what one miss more would be had been seen as allowed: nothing seen is no failure.
fn ratio(missed: f64, came: f64, allowed: f64) -> f64 {
    (missed + 0.5) / (came * allowed + 0.5)
}

fn all(promises: &[Promise], kept: &[Kept]) -> LoadVerdict {
    let carried = |(promise, kept): (&Promise, &Kept)| {
        kept.verdict == LoadVerdict::Carried || !promise.thresholds && kept.ratio <= 1.0
    };
    if kept.iter().any(|kept| kept.verdict == LoadVerdict::Fails) {
        LoadVerdict::Fails
    } else if promises.iter().zip(kept).all(carried) {
        LoadVerdict::Carried
    } else {
        LoadVerdict::TooClose
    }
}

/// Squares of what blocks missed more or less than their share, and all they counted.
fn squares(units: &[Count]) -> (f64, Count) {
    let each = units.len() / BLOCKS;
    let mut blocks = [Count::default(); BLOCKS];
    for (i, unit) in units.iter().enumerate() {
        blocks[(i / each.max(1)).min(BLOCKS - 1)].add(*unit);
    }
    let mut total = Count::default();
    blocks.iter().for_each(|block| total.add(*block));
    let share = total.missed / total.came.max(1.0);
    let squares: f64 = blocks.iter().map(|block| (block.missed - share * block.came).powi(2)).sum();
    (squares * BLOCKS as f64 / (BLOCKS - 1) as f64, total)
}

/// Means of the first half and of the second.
fn halves(under_way: &[f64]) -> (f64, f64) {
    let (first, second) = under_way.split_at(under_way.len() / 2);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    (mean(first), mean(second))
}

/// The tasks by which those under way grew, where they grew from the first half to the second by more than chance has it.
fn growth((before, after): (f64, f64)) -> Option<f64> {
    // The middles of the halves are half of the time apart.
    (after > 1.3 * before + 2.0 * before.sqrt() + 1.0).then_some(2.0 * (after - before))
}

/// Whether more tasks are under way in the second half than in the first: too little to call it growth, enough to look on.
pub(crate) fn creeps(under_way: &[f64]) -> bool {
    let (before, after) = halves(under_way);
    after > 1.05 * before + 0.5 * before.sqrt()
}

/// What one look at a steady demand says.
pub(crate) fn look(
    promises: &[Promise],
    counts: &[Vec<Count>],
    under_way: &[f64],
    look: usize,
    clumps: &Clumps,
    level: f64,
    slow_units: f64,
) -> Judgement {
    let units = units_at(look);
    let slow_units = slow_units.min(UNITS as f64);
    // A backlog of the beginning that is still being worked off is no part of how the load goes on.
    let (first, second) = halves(&under_way[..units]);
    let from = if growth((second, first)).is_some() { units / 2 } else { 0 };
    let spent = SPENT.map(|spent| spent * (1.0 - level) / 0.05);
    let growth = growth(halves(&under_way[from..units]));
    let mut may_be_carried = true;
    let kept: Vec<Kept> = promises
        .iter()
        .zip(counts)
        .enumerate()
        .map(|(i, (promise, counts))| {
            let (squares, count) = squares(&counts[from..units]);
            let clump = clumps.size(i, squares, count);
            let expected = promise.allowed * count.came / clump;
            let (at_most, at_least) = poisson_tails(count.missed / clump, expected);
            let at_end = expected * UNITS as f64 / (units - from) as f64;
            may_be_carried &= !promise.thresholds
                || poisson_tails(count.missed / clump, at_end).0 < spent[LOOKS - 1];
            let verdict = if at_least < spent[look] {
                LoadVerdict::Fails
            } else if at_most < spent[look] && growth.is_none() && units as f64 >= slow_units {
                LoadVerdict::Carried
            } else {
                LoadVerdict::TooClose
            };
            let share = count.missed / count.came.max(1.0);
            let between = share_interval_of(share.min(1.0), count.came / clump, level);
            Kept {
                count,
                clump,
                between: between.map_or((0.0, 1.0), |own| (own.low, own.high)),
                verdict,
                ratio: ratio(count.missed, count.came, promise.allowed),
            }
        })
        .collect();
    let mut verdict = all(promises, &kept);
    if growth.is_some() && verdict == LoadVerdict::Carried {
        verdict = LoadVerdict::TooClose;
    }
    let last = look + 1 == LOOKS;
    // What still grows when nothing more is looked at does not settle.
    if last && growth.is_some() && verdict == LoadVerdict::TooClose {
        verdict = LoadVerdict::Fails;
    }
    let good = || kept.iter().zip(promises).filter(|(_, own)| own.of == Measure::Good);
    let ended: f64 = good().map(|(kept, _)| kept.count.came).sum();
    let served = growth.map(|tasks| ended / (ended + tasks));
    let allowed = good().map(|(_, own)| own.allowed).fold(1.0, f64::min);
    let grows = served.map(|served| ((1.0 - served) / allowed).clamp(LEAST_GROWTH, UNSETTLED));
    let mut judged = Judgement {
        verdict,
        kept,
        grows,
        served,
        looks: look + 1,
        open: false,
        as_sure_as_can_be: false,
    };
    let near = (FUTILE.0..FUTILE.1).contains(&judged.ratio());
    // Where not even a rest without a miss would show that it is carried, it is looked at for as long as misses take to come, and no longer.
    let in_vain = !may_be_carried && growth.is_none();
    let futile = look >= FUTILE_LOOK
        && units as f64 >= slow_units
        && (near || in_vain)
        && !creeps(&under_way[from..units]);
    judged.open = verdict == LoadVerdict::TooClose && !last && !futile;
    judged
}

/// What a run of a steady demand says, look by look.
pub(crate) fn judge(promises: &[Promise], run: &Steady, clumps: &Clumps, level: f64) -> Judgement {
    let mut last = None;
    for at in 0..run.looks {
        let judged = look(promises, &run.counts, &run.under_way, at, clumps, level, run.slow_units);
        if !judged.open {
            return judged;
        }
        last = Some(judged);
    }
    if run.overrun {
        return Judgement::overrun(promises);
    }
    last.unwrap_or_else(|| Judgement {
        verdict: LoadVerdict::TooClose,
        kept: promises.iter().map(|_| unseen()).collect(),
        grows: None,
        served: None,
        looks: 0,
        open: true,
        as_sure_as_can_be: false,
    })
}

fn unseen() -> Kept {
    Kept {
        count: Count::default(),
        clump: 1.0,
        between: (0.0, 1.0),
        verdict: LoadVerdict::TooClose,
        ratio: 1.0,
    }
}

/// Learns from a load that failed, or was looked at to the end.
pub(crate) fn learn(clumps: &mut Clumps, run: &Steady, judged: &Judgement) {
    if judged.looks == 0 || judged.open || judged.verdict == LoadVerdict::Carried {
        return;
    }
    // Misses that become more and more while a backlog grows are no clumps.
    if judged.grows.is_some() {
        return;
    }
    let units = units_at(judged.looks - 1);
    for (i, counts) in run.counts.iter().enumerate() {
        let (squares, count) = squares(&counts[..units]);
        clumps.learn(i, squares, count);
    }
}

/// What the demand of a component is made of, where it does not come evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Strata {
    /// Seconds of quiet time between two clusters of bursts, on average; none without bursts.
    pub(crate) between_bursts_s: Option<f64>,
    /// The time after which dumps repeat, and the instants at which any comes in it; none without dumps.
    pub(crate) dumps: Option<(f64, f64)>,
}

/// What was seen of each stratum.
pub(crate) struct Seen<'a> {
    pub(crate) quiet: &'a Steady,
    /// What is judged of each promise a second in quiet time, where that is known without counting.
    pub(crate) rates: &'a [Option<f64>],
    pub(crate) bursts: &'a [Episode],
    pub(crate) dumps: &'a [Episode],
}

/// A mean of a stratum, and the variance of what it missed beyond what is allowed.
#[derive(Clone, Copy, Default)]
struct Mean {
    count: Count,
    seconds: f64,
    variance: f64,
}

impl Mean {
    /// Of episodes, each with its weight, for each `per`.
    fn of(
        episodes: &[Episode],
        promise: usize,
        allowed: f64,
        per: impl Fn(&Episode) -> f64,
    ) -> Self {
        let n = episodes.len() as f64;
        let weights: f64 = episodes.iter().map(|own| own.weight * per(own)).sum();
        if weights <= 0.0 {
            return Self::default();
        }
        let mut mean = Self::default();
        for own in episodes {
            let weight = own.weight / weights;
            mean.count.came += weight * own.counts[promise].came;
            mean.count.missed += weight * own.counts[promise].missed;
            mean.seconds += weight * own.seconds;
        }
        let excess = |count: &Count| count.missed - allowed * count.came;
        let middle = excess(&mean.count);
        let squares: f64 = episodes
            .iter()
            .map(|own| {
                let off = excess(&own.counts[promise]) - middle * per(own);
                (own.weight * n / weights * off).powi(2)
            })
            .sum();
        let floor = EPISODE_CLUMP * allowed * mean.count.came / n;
        mean.variance = (squares / (n - 1.0).max(1.0) / n).max(floor);
        mean
    }
}

/// What episodes and the quiet time between them say together, after so many of each.
pub(crate) fn weigh(
    promises: &[Promise],
    seen: &Seen<'_>,
    strata: &Strata,
    last: bool,
    level: f64,
) -> Judgement {
    let clusters = seen.bursts.len().max(seen.dumps.len());
    let lost = seen.bursts.iter().chain(seen.dumps).any(|own| own.lost);
    if lost || seen.quiet.overrun {
        return Judgement::overrun(promises);
    }
    let enough = match strata.between_bursts_s {
        Some(_) => clusters >= CLUSTERS_TO_CARRY.0,
        None => clusters >= CLUSTERS_TO_CARRY.1,
    };
    let at = CLUSTERS.iter().rposition(|n| clusters >= *n).unwrap_or(0);
    let scale = normal_quantile(level) / normal_quantile(0.95);
    let deviations = DEVIATIONS[at] * scale;
    let looks = seen.quiet.looks.clamp(1, LOOKS);
    let units = units_at(looks - 1);
    let quiet_s = units as f64 * seen.quiet.unit_s;
    let no_clumps = Clumps::new(promises.len());
    let mut as_sure_as_can_be = true;
    let kept: Vec<Kept> = promises
        .iter()
        .enumerate()
        .map(|(i, promise)| {
            let allowed = promise.allowed;
            let (squares, quiet) = squares(&seen.quiet.counts[i][..units]);
            let clump = no_clumps.size(i, squares, quiet);
            let rate = seen.rates[i].unwrap_or(quiet.came / quiet_s);
            let share = quiet.missed / quiet.came.max(1.0);
            // Of one second of quiet time.
            let second = Mean {
                count: Count { came: rate, missed: share * rate },
                seconds: 1.0,
                variance: rate * rate * clump * (quiet.missed + clump)
                    / quiet.came.max(1.0).powi(2),
            };
            // Of a cycle of quiet time and a cluster of bursts.
            let cycle = match strata.between_bursts_s {
                None => second,
                Some(q) => {
                    let own = Mean::of(seen.bursts, i, allowed, |_| 1.0);
                    Mean {
                        count: Count {
                            came: own.count.came + q * second.count.came,
                            missed: own.count.missed + q * second.count.missed,
                        },
                        seconds: own.seconds + q,
                        variance: own.variance + q * q * second.variance,
                    }
                }
            };
            // Of the time after which dumps repeat.
            let whole = match strata.dumps {
                None => cycle,
                Some((period, instants)) => {
                    let own = Mean::of(seen.dumps, i, allowed, |own| f64::from(own.dumps.max(1)));
                    let rest = (period - instants * own.seconds).max(0.0) / cycle.seconds;
                    Mean {
                        count: Count {
                            came: instants * own.count.came + rest * cycle.count.came,
                            missed: instants * own.count.missed + rest * cycle.count.missed,
                        },
                        seconds: period,
                        variance: instants * instants * own.variance + rest * rest * cycle.variance,
                    }
                }
            };
            let excess = whole.count.missed - allowed * whole.count.came;
            let deviation = whole.variance.sqrt().max(1e-12);
            let verdict = if excess > deviations * deviation {
                LoadVerdict::Fails
            } else if excess < -deviations * deviation && enough {
                LoadVerdict::Carried
            } else {
                LoadVerdict::TooClose
            };
            let at_end = allowed * whole.count.came * MOST_CLUSTERS as f64 / EPISODE_CLUMP;
            let never = promise.thresholds && at_end.sqrt() < DEVIATIONS[1] * scale;
            as_sure_as_can_be &= verdict == LoadVerdict::Carried || never && excess <= 0.0;
            let came = whole.count.came.max(1e-12);
            let share = whole.count.missed / came;
            let half = normal_quantile(0.5 + level / 2.0) * deviation / came;
            Kept {
                count: whole.count,
                clump: (whole.variance / (allowed * came)).max(1.0),
                between: ((share - half).max(0.0), (share + half).min(1.0)),
                verdict,
                ratio: share / allowed,
            }
        })
        .collect();
    let mut verdict = all(promises, &kept);
    if verdict == LoadVerdict::Carried && !enough {
        verdict = LoadVerdict::TooClose;
    }
    as_sure_as_can_be &= enough;
    let open = verdict == LoadVerdict::TooClose && !last && !as_sure_as_can_be;
    Judgement { verdict, kept, grows: None, served: None, looks: at + 1, open, as_sure_as_can_be }
}

/// Bursts are drawn as if they lasted so many times as long: a long one misses more.
const TILT: f64 = 1.5;

/// The length of the first burst of the `i`th cluster, and how much it stands for. Quantiles are spread evenly (van der Corput), from a random beginning, so that ten clusters
/// reach the 0.99 quantile.
pub(crate) fn burst_length(i: u32, beginning: f64, mean_s: f64) -> (f64, f64) {
    let reversed = f64::from((i + 1).reverse_bits()) / 4_294_967_296.0;
    let quantile = (reversed + beginning).fract();
    let length = -mean_s * TILT * (1.0 - quantile).max(1e-12).ln();
    (length, TILT * (-(length / mean_s) * (1.0 - 1.0 / TILT)).exp())
}

/// The share of what came that kept a promise, and how sure that is.
pub(crate) fn attainment(kept: &Kept, level: f64) -> Option<(f64, Span)> {
    if kept.count.came <= 0.0 {
        return None;
    }
    let share = 1.0 - kept.count.missed / kept.count.came;
    let span = Span {
        low: (1.0 - kept.between.1).min(share),
        high: (1.0 - kept.between.0).max(share),
        level,
        n: (kept.count.came / kept.clump) as usize,
    };
    Some((share, span))
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::{Seed, Stream};

    use super::*;

    fn promise(allowed: f64) -> Promise {
        Promise { class: 0, key: "attainment", allowed, of: Measure::Good, thresholds: true }
    }

    /// A run whose misses come in clumps of geometric size of this dispersion, so many tasks, at so many times the allowed misses. A clump is a stretch of misses.
    fn clumped(
        tasks: f64,
        allowed: f64,
        times: f64,
        dispersion: f64,
        stream: &mut Stream,
    ) -> Steady {
        // A geometric size g of mean m has E[g^2]/E[g] = 2m - 1.
        let mean = f64::midpoint(dispersion, 1.0);
        let clumps_per_unit = tasks * allowed * times / mean / UNITS as f64;
        let mut counts = vec![Count { came: tasks / UNITS as f64, missed: 0.0 }; UNITS];
        let mut at = 0.0;
        loop {
            at += stream.exponential() / clumps_per_unit;
            let unit = at as usize;
            if unit >= UNITS {
                break;
            }
            let mut size = 1.0;
            while stream.uniform() < 1.0 - 1.0 / mean {
                size += 1.0;
            }
            counts[unit].missed += size;
        }
        Steady {
            unit_s: 1.0,
            slow_units: 0.0,
            counts: vec![counts],
            under_way: vec![10.0; UNITS],
            misses: Vec::new(),
            took: Vec::new(),
            looks: LOOKS,
            overrun: false,
            stopped: false,
            calls: tasks as u64,
        }
    }

    fn no_misses() -> crate::count::Misses {
        crate::count::Misses { by_class: Vec::new(), pressure: Default::default() }
    }

    /// How often a load is called carried and failed in 400 trials of 64,000 tasks, having seen two loads above.
    fn rates(allowed: f64, dispersion: f64, times: f64) -> (f64, f64) {
        let mut stream = Seed::new(11).stream(&format!("clumps/{allowed}/{dispersion}/{times}"));
        let promises = [promise(allowed)];
        let (mut carried, mut failed) = (0, 0);
        for _ in 0..400 {
            let mut clumps = Clumps::new(1);
            for heavier in [4.0, 2.0] {
                let run = clumped(64_000.0, allowed, heavier, dispersion, &mut stream);
                let judged = judge(&promises, &run, &clumps, 0.95);
                learn(&mut clumps, &run, &judged);
            }
            let run = clumped(64_000.0, allowed, times, dispersion, &mut stream);
            match judge(&promises, &run, &clumps, 0.95).verdict {
                LoadVerdict::Carried => carried += 1,
                LoadVerdict::Fails => failed += 1,
                LoadVerdict::TooClose => {}
            }
        }
        (f64::from(carried) / 400.0, f64::from(failed) / 400.0)
    }

    /// At the promise itself it is wrong at most 6 times in 100 on either side, whatever the size of clumps: 400 trials of a test that errs 5% of the time show at most 7.3% in 98
    /// of 100 cases, so that is what is allowed here.
    #[test]
    fn errors_at_the_promise() {
        for allowed in [0.01, 0.05] {
            for dispersion in [1.0, 9.0, 39.0, 119.0] {
                let (carried, failed) = rates(allowed, dispersion, 1.0);
                assert!(carried <= 0.073, "carried {carried} at {allowed}, clumps of {dispersion}");
                assert!(failed <= 0.073, "failed {failed} at {allowed}, clumps of {dispersion}");
            }
        }
    }

    /// Far from the promise it decides, and never wrongly where clumps are not larger than what was seen.
    #[test]
    fn it_decides_far_from_the_promise() {
        for (allowed, dispersion) in [(0.01, 1.0), (0.01, 9.0), (0.05, 9.0), (0.05, 39.0)] {
            let (carried, failed) = rates(allowed, dispersion, 0.25);
            assert!(carried >= 0.9 && failed <= 0.01, "{allowed} {dispersion}: {carried} {failed}");
            let (carried, failed) = rates(allowed, dispersion, 4.0);
            assert!(
                failed >= 0.95 && carried <= 0.01,
                "{allowed} {dispersion}: {carried} {failed}"
            );
        }
    }

    /// Episodes of which each misses about as much as its length, exponential, has it: at the promise it is rarely wrong, and it decides at a quarter and at eight times.
    #[test]
    fn errors_of_episodes() {
        let allowed = 0.01;
        let promises = [promise(allowed)];
        let (quiet_s, rate, lasts) = (1800.0, 20.0, 120.0);
        let strata = Strata { between_bursts_s: Some(quiet_s), dumps: None };
        let quiet = Steady {
            counts: vec![vec![Count { came: 20.0, missed: 0.0 }; UNITS]],
            ..clumped(1.0, 0.01, 0.0, 1.0, &mut Seed::new(1).stream("none"))
        };
        let came = rate * quiet_s + 100.0 * lasts;
        let run = |times: f64, trial: u32| {
            let mut stream = Seed::new(5).stream(&format!("episodes/{times}/{trial}"));
            let beginning = stream.uniform();
            let episodes: Vec<Episode> = (0..40)
                .map(|i| {
                    // Only bursts of twice their mean length miss anything.
                    let (length, weight) = burst_length(i, beginning, lasts);
                    let over = (length - 2.0 * lasts).max(0.0);
                    let mean_over = lasts * (-2.0f64).exp();
                    let missed = (times * allowed * came * over / mean_over).round();
                    Episode {
                        counts: vec![Count { came: 100.0 * length, missed }],
                        misses: no_misses(),
                        seconds: length,
                        weight,
                        dumps: 0,
                        lost: false,
                        stopped: false,
                        calls: 0,
                    }
                })
                .collect();
            for n in CLUSTERS {
                let seen = Seen {
                    quiet: &quiet,
                    rates: &[Some(rate)],
                    bursts: &episodes[..n],
                    dumps: &[],
                };
                let judged = weigh(&promises, &seen, &strata, n == 40, 0.95);
                if !judged.open {
                    return judged.verdict;
                }
            }
            LoadVerdict::TooClose
        };
        let share = |times: f64, of: LoadVerdict| {
            (0..400).filter(|trial| run(times, *trial) == of).count() as f64 / 400.0
        };
        let failed = share(1.0, LoadVerdict::Fails);
        assert!(failed <= 0.05, "failed at the promise: {failed}");
        let carried = share(1.0, LoadVerdict::Carried);
        assert!(carried <= 0.06, "carried at the promise: {carried}");
        assert!(share(2.0, LoadVerdict::Carried) <= 0.01 && share(8.0, LoadVerdict::Fails) >= 0.9);
        assert!(share(0.25, LoadVerdict::Carried) >= 0.9);
        assert_eq!(share(0.25, LoadVerdict::Fails), 0.0);
    }
}
