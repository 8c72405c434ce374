//! A search for the edge between what is carried and what is not: of loads on a grid, or of numbers of replicas.

use std::collections::BTreeMap;

use crate::demand::StudyError;
use crate::trial::Trial;
use crate::verdict::{LoadVerdict, UNSETTLED};

/// Places in order, heavier from one to the next, and how heavy each is.
pub(crate) trait Axis {
    /// The lightest and the heaviest place.
    fn ends(&self) -> (i64, i64);
    /// The logarithm of how heavy a place is.
    fn weight(&self, place: i64) -> f64;
    /// The place nearest to a weight.
    fn place(&self, weight: f64) -> i64;
    /// How far apart two places may be to count as neighbours.
    fn apart(&self, place: i64) -> i64;
    /// Whether the place that is surely carried should be next to the edge.
    fn is_tight(&self) -> bool;
}

/// Places that are tried at most.
const TRIES: usize = 18;
/// So many budgets may be spent until the edge was seen from both sides.
const ONE_SIDED: u64 = 3;
/// Places that are tried at most only to know surely.
const TRIES_TO_BE_SURE: usize = 3;
/// Missed / allowed that is next to nothing: a lighter place shows no fewer misses, and what is not sure there is not sure further away.
const NO_FEWER: f64 = 0.1;
/// Three places of which the lightest is lighter by at least so much, and whose logarithms of missed / allowed are that near, say that lighter ones do not help.
const FLAT: (f64, f64) = (0.6, 0.1);
/// Missed / allowed that is at most so many times what is missed where no request waits is no more than that.
const AS_ALONE: f64 = 1.3;
/// The slope of log(missed / allowed) over log(load) where none was seen, and within which one is believed.
const SLOPE: f64 = 12.0;
const SLOPES: (f64, f64) = (1.0, 40.0);
/// A step is no longer than this, in logarithms of the load.
const STEP: (f64, f64) = (0.04, 0.7);
/// Logarithms of missed / allowed beyond which they say nothing of how far the edge is.
const FAR: (f64, f64) = (-3.5, 3.8);
/// A place that is carried and lighter by no more than this than the share that was served of a heavier one is about where that says.
const NEAR: f64 = 0.3;
/// What is served of a demand that is far too much says little of how much is served of less.
const SERVED_LEAST: f64 = 0.02;
/// The share of misses beyond which they say nothing of how far the edge is.
const MOST_MISSED: f64 = 0.6;
/// Missed / allowed that is aimed at where a place is tried only to know surely.
const AIM: (f64, f64) = (0.3, 3.0);

/// The edge, and what was tried to find it.
#[derive(Debug)]
pub(crate) struct Edge {
    /// The heaviest place that keeps every promise, as every lighter one that was tried does.
    pub(crate) holds: Option<i64>,
    /// The lightest heavier one that does not.
    pub(crate) fails: Option<i64>,
    /// The heaviest that surely does.
    pub(crate) carried: Option<i64>,
    /// The heaviest that surely does, or misses next to nothing of what it may.
    pub(crate) safe: Option<i64>,
    /// The lightest that surely does not.
    pub(crate) broken: Option<i64>,
    pub(crate) tried: BTreeMap<i64, Trial>,
    /// Whether the time was up.
    pub(crate) stopped: bool,
    /// Where none keeps every promise, and lighter ones do not help: the heaviest that misses no more than those.
    pub(crate) flat: Option<i64>,
}

/// What a search may cost.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// Calls.
    pub(crate) calls: u64,
    /// Whether places are tried only to know surely.
    pub(crate) sure: bool,
    /// Neighbours on an axis that is not tight are at most so many times as far apart.
    pub(crate) apart: i64,
}

/// Finds the edge. The search begins at the weights `first`, as long as they lie between what is known to be carried and what is not. `floor` is missed / allowed where no request waits for another: no place misses less.
pub(crate) fn edge(
    axis: &impl Axis,
    first: &[f64],
    floor: f64,
    Budget { calls: budget, sure, apart: times }: Budget,
    mut ask: impl FnMut(i64) -> Result<Trial, StudyError>,
) -> Result<Edge, StudyError> {
    let (lightest, heaviest) = axis.ends();
    let mut tried: BTreeMap<i64, Trial> = BTreeMap::new();
    let (mut spent, mut stopped) = (0, false);
    let times = if axis.is_tight() { 1 } else { times };
    let apart = |place: i64| times * axis.apart(place);
    let mut first = first.iter().map(|weight| axis.place(*weight));
    for _ in 0..TRIES {
        let (low, high) = bracket(&tried);
        let (below, above) =
            (low.map_or(lightest, |low| low + 1), high.map_or(heaviest, |h| h - 1));
        if below > above || low.zip(high).is_some_and(|(low, high)| high - low <= apart(high)) {
            break;
        }
        let place = match first.find(|place| tried.is_empty() || (below..=above).contains(place)) {
            Some(place) => place,
            None => axis.place(next(axis, &tried)),
        };
        let place = place.clamp(below, above);
        let trial = ask(place)?;
        spent += trial.calls;
        stopped |= trial.stopped;
        tried.insert(place, trial);
        // An edge that was seen from one side only is no answer: that may cost more.
        let (low, high) = bracket(&tried);
        let most = if low.is_some() && high.is_some() { budget } else { ONE_SIDED * budget };
        if stopped || spent > most || low.is_none() && is_flat(axis, &tried, floor) {
            break;
        }
    }
    // Where the nearest on either side are not sure, others are, further away.
    for _ in 0..if sure { TRIES_TO_BE_SURE } else { 0 } {
        let (low, high) = bracket(&tried);
        let any = |verdict| tried.values().any(|own| own.judged.verdict == verdict);
        // Lighter places would be no surer.
        let lightest_says = tried.values().next().is_some_and(|own| {
            own.judged.ratio() < NO_FEWER.max(AS_ALONE * floor) || own.judged.as_sure_as_can_be
        });
        let carried = any(LoadVerdict::Carried) || low.is_some() && lightest_says;
        let broken = any(LoadVerdict::Fails);
        let gap = low.zip(safe(&tried, low)).map_or(0, |(low, safe)| low - safe);
        let place = match high {
            _ if stopped || spent > budget => break,
            // What is planned with is as sure as may be.
            Some(_) if broken && axis.is_tight() && gap > low.map_or(0, |at| axis.apart(at)) => {
                low.map(|low| low - gap / 2)
            }
            Some(_) if !broken => surely(axis, &tried, LoadVerdict::Fails),
            _ if !carried => surely(axis, &tried, LoadVerdict::Carried),
            _ => break,
        };
        let Some(place) = place.map(|place| place.clamp(lightest, heaviest)) else { break };
        if tried.contains_key(&place) {
            break;
        }
        let trial = ask(place)?;
        spent += trial.calls;
        stopped |= trial.stopped;
        tried.insert(place, trial);
    }
    let is_flat = bracket(&tried).0.is_none() && is_flat(axis, &tried, floor);
    let of = |(at, own): (&i64, &Trial)| (*at, point(axis, *at, own).1);
    let least = tried.iter().next().map(of).filter(|_| is_flat);
    let as_little = |least: f64| tried.iter().map(of).filter(move |at| at.1 - least < FLAT.1);
    let flat = least.and_then(|(_, least)| as_little(least).last()).map(|(at, _)| at);
    Ok(Edge { flat, ..found(tried, stopped) })
}

/// Whether lighter places do not help: much lighter ones miss as much, and no more is missed than where no request waits.
fn is_flat(axis: &impl Axis, tried: &BTreeMap<i64, Trial>, floor: f64) -> bool {
    let points: Vec<(f64, f64)> =
        tried.iter().take(3).map(|(at, own)| point(axis, *at, own)).collect();
    let [a, b, c] = points[..] else { return false };
    let near = |x: f64, y: f64| (x - y).abs() < FLAT.1;
    let as_alone = a.1 < (AS_ALONE * floor).max(f64::MIN_POSITIVE).ln();
    c.0 - a.0 > FLAT.0 && near(a.1, b.1) && near(b.1, c.1) && as_alone
}

/// The heaviest that keeps promises, and the lightest above it that does not.
fn bracket(tried: &BTreeMap<i64, Trial>) -> (Option<i64>, Option<i64>) {
    let keeps = smooth(tried);
    let low = keeps.iter().take_while(|(_, keeps)| *keeps).last().map(|(place, _)| *place);
    let high = keeps.iter().find(|(_, keeps)| !*keeps).map(|(place, _)| *place);
    (low, high)
}

/// Whether promises are kept at each place. More load never misses less: places that say otherwise are read together, each as much as it saw.
fn smooth(tried: &BTreeMap<i64, Trial>) -> Vec<(i64, bool)> {
    // Weighted means of neighbours, as long as a heavier one misses less.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for trial in tried.values() {
        let seen = trial.judged.worst().map_or(1.0, |worst| {
            let kept = &trial.judged.kept[worst];
            (kept.count.came / kept.clump).max(1.0)
        });
        blocks.push((trial.judged.ratio(), seen, 1));
        while let [.., a, b] = blocks[..]
            && a.0 > b.0
        {
            blocks.truncate(blocks.len() - 2);
            let weight = a.1 + b.1;
            blocks.push(((a.0 * a.1 + b.0 * b.1) / weight, weight, a.2 + b.2));
        }
    }
    let ratios = blocks.iter().flat_map(|(ratio, _, n)| std::iter::repeat_n(*ratio, *n));
    let carried = tried.iter().rev().find(|own| own.1.judged.verdict == LoadVerdict::Carried);
    let carried = carried.map(|(place, _)| *place);
    let broken = tried.iter().find(|own| own.1.judged.verdict == LoadVerdict::Fails);
    let broken = broken.map(|(place, _)| *place);
    let each = tried.keys().zip(ratios).map(|(place, ratio)| {
        let surely = carried.is_some_and(|carried| *place <= carried);
        let surely_not = broken.is_some_and(|broken| *place >= broken);
        let keeps = match (surely, surely_not) {
            (true, false) => true,
            (false, true) => false,
            // Neither, or both: what was seen says it.
            _ => ratio <= 1.0,
        };
        (*place, keeps)
    });
    each.collect()
}

/// Beyond the outermost place on one side: where what is missed should be so far from what is allowed that a look as sure as that one decides.
fn surely(axis: &impl Axis, tried: &BTreeMap<i64, Trial>, verdict: LoadVerdict) -> Option<i64> {
    let carried = verdict == LoadVerdict::Carried;
    let (at, trial) = if carried { tried.iter().next()? } else { tried.iter().next_back()? };
    let kept = &trial.judged.kept[trial.judged.worst()?];
    let per_allowed = kept.ratio * kept.count.came / kept.count.missed.max(0.5);
    let error = (kept.between.1 - kept.between.0) / 2.0 * per_allowed;
    let aim = if carried { 1.0 - 1.3 * error } else { 1.0 + 1.3 * error }.clamp(AIM.0, AIM.1);
    let (rising, falling) = slopes(axis, tried);
    let (ratio, slope) = (trial.judged.ratio(), if carried { falling } else { rising });
    let further = ((aim / ratio).ln().abs() / slope).clamp(STEP.0, STEP.1);
    Some(match carried {
        true => axis.place(axis.weight(*at) - further).min(at - axis.apart(*at)),
        false => axis.place(axis.weight(*at) + further).max(at + axis.apart(*at)),
    })
}

/// Where to look next: log(missed / allowed) is about straight in log(load). Where a backlog grows, what is served of it says more.
fn next(axis: &impl Axis, tried: &BTreeMap<i64, Trial>) -> f64 {
    let (low, high) = bracket(tried);
    let at = |place: Option<i64>| place.and_then(|at| Some(point(axis, at, tried.get(&at)?)));
    let (rising, falling) = slopes(axis, tried);
    let served = high.and_then(|high| tried[&high].judged.served);
    let margin = if axis.is_tight() { 0.0 } else { STEP.0 };
    let served = |b: (f64, f64)| served.map(|served| b.0 + served.max(SERVED_LEAST).ln() - margin);
    match (at(low), at(high)) {
        (Some(a), Some(b)) => {
            let share = if b.1 > a.1 { -a.1 / (b.1 - a.1) } else { 0.5 };
            let between = a.0 + (b.0 - a.0) * share.clamp(0.2, 0.8);
            match served(b) {
                Some(at) if (a.0..b.0).contains(&at) => at,
                // It is carried about where the share that was served says: the edge is near.
                Some(at) if a.0 - at < NEAR => a.0 + (b.0 - a.0) * 0.2,
                _ => between,
            }
        }
        (Some(a), None) => a.0 + further(0.02 - a.1 / rising, axis, tried, |at| at < FAR.0),
        (None, Some(b)) => served(b)
            .unwrap_or_else(|| b.0 - further(0.02 + b.1 / falling, axis, tried, |at| at > FAR.1)),
        (None, None) => 0.0,
    }
}

/// A place as a point: the logarithms of how heavy it is, and of missed / allowed.
fn point(axis: &impl Axis, place: i64, trial: &Trial) -> (f64, f64) {
    let worst = trial.judged.worst().map(|worst| trial.judged.kept[worst].count);
    // Where most are missed, more could not be.
    let most = worst.is_some_and(|count| count.missed > MOST_MISSED * count.came);
    let ratio = if most { UNSETTLED } else { trial.judged.ratio() };
    (axis.weight(place), ratio.clamp(1.0 / UNSETTLED, UNSETTLED).ln())
}

/// The slopes of log(missed / allowed) over log(load) between the heaviest two places, and the lightest two, that say anything of it.
fn slopes(axis: &impl Axis, tried: &BTreeMap<i64, Trial>) -> (f64, f64) {
    let points: Vec<(f64, f64)> = tried.iter().map(|(at, own)| point(axis, *at, own)).collect();
    let inside: Vec<&(f64, f64)> = points.iter().filter(|p| p.1 > FAR.0 && p.1 < FAR.1).collect();
    let between =
        |a: &(f64, f64), b: &(f64, f64)| ((b.1 - a.1) / (b.0 - a.0)).clamp(SLOPES.0, SLOPES.1);
    let rising = if let [.., a, b] = inside[..] { between(a, b) } else { SLOPE };
    let falling = if let [a, b, ..] = inside[..] { between(a, b) } else { SLOPE };
    (rising, falling)
}

/// A step; from places that are all far off it is long, and twice as long each time.
fn further(
    step: f64,
    axis: &impl Axis,
    tried: &BTreeMap<i64, Trial>,
    far: impl Fn(f64) -> bool,
) -> f64 {
    let points = tried.iter().map(|(at, trial)| point(axis, *at, trial).1);
    match i32::try_from(points.filter(|at| far(*at)).count()) {
        Ok(n @ 1..) if n as usize == tried.len() => STEP.1 * 2f64.powi(n.min(6) - 1),
        _ => step.clamp(STEP.0, STEP.1),
    }
}

/// The heaviest place that is surely carried, or holds and misses next to nothing of what it may.
fn safe(tried: &BTreeMap<i64, Trial>, holds: Option<i64>) -> Option<i64> {
    let is_safe = |(at, trial): &(&i64, &Trial)| {
        trial.judged.verdict == LoadVerdict::Carried
            || holds.is_some_and(|holds| **at <= holds) && trial.judged.ratio() < NO_FEWER
    };
    tried.iter().rev().find(is_safe).map(|(at, _)| *at)
}

fn found(tried: BTreeMap<i64, Trial>, stopped: bool) -> Edge {
    let (holds, fails) = bracket(&tried);
    let sure = |verdict| {
        let mut of = tried.iter().filter(move |own| own.1.judged.verdict == verdict);
        (of.next().map(|own| *own.0), of.next_back().map(|own| *own.0))
    };
    let carried = sure(LoadVerdict::Carried);
    let carried = carried.1.or(carried.0);
    let broken = sure(LoadVerdict::Fails).0;
    let safe = safe(&tried, holds);
    Edge { holds, fails, carried, safe, broken, tried, stopped, flat: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Pressure;
    use crate::count::{Count, Misses};
    use crate::verdict::{Judgement, Kept};

    /// Loads 4% apart, or numbers of replicas with many first.
    struct Grid {
        numbers: bool,
    }

    impl Axis for Grid {
        fn ends(&self) -> (i64, i64) {
            if self.numbers { (-2048, -1) } else { (-117, 59) }
        }
        fn weight(&self, place: i64) -> f64 {
            if self.numbers { -(-place as f64).ln() } else { place as f64 * 1.04f64.ln() }
        }
        fn place(&self, weight: f64) -> i64 {
            match self.numbers {
                true => -(((-weight).exp() - 1e-9).ceil() as i64),
                false => (weight / 1.04f64.ln()).round() as i64,
            }
        }
        fn apart(&self, place: i64) -> i64 {
            if self.numbers { (-place / 50).max(1) } else { 1 }
        }
        fn is_tight(&self) -> bool {
            self.numbers
        }
    }

    /// A place that misses so many times what it may; sure where that is not near one.
    fn seen(ratio: f64, served: Option<f64>) -> Trial {
        let ratio = ratio.clamp(0.005, UNSETTLED);
        let verdict = match ratio {
            above if above > 1.3 => LoadVerdict::Fails,
            below if below < 0.7 => LoadVerdict::Carried,
            _ => LoadVerdict::TooClose,
        };
        let count = Count { came: 10_000.0, missed: (100.0 * ratio).min(10_000.0) };
        let between = (0.7 * count.missed / count.came, 1.3 * count.missed / count.came);
        let judged = Judgement {
            verdict,
            kept: vec![Kept { count, clump: 1.0, between, verdict, ratio }],
            grows: None,
            served,
            looks: 1,
            open: false,
            as_sure_as_can_be: false,
        };
        let misses = Misses { by_class: Vec::new(), pressure: Pressure::default() };
        Trial {
            judged,
            misses,
            of_quiet: false,
            episodes: 0,
            calls: 1,
            stopped: false,
            seconds: 1.0,
        }
    }

    const BUDGET: Budget = Budget { calls: 500_000, sure: true, apart: 1 };

    fn search(
        grid: &Grid,
        beginning: f64,
        floor: f64,
        miss: impl Fn(f64) -> (f64, Option<f64>),
    ) -> Edge {
        let found = edge(grid, &[beginning], floor, BUDGET, |place| {
            let (ratio, served) = miss(grid.weight(place));
            Ok(seen(ratio, served))
        });
        found.expect("a search")
    }

    /// However steeply misses rise, the two loads around the edge are found from any beginning between 0.3 and 3 times it, in at most a dozen tries.
    #[test]
    fn the_edge_from_any_beginning() {
        let grid = Grid { numbers: false };
        for slope in [1.5, 4.0, 12.0, 40.0] {
            for at in [-60.5, -20.5, -0.5, 30.5] {
                for beginning in [0.3f64, 0.7, 1.0, 1.6, 3.0] {
                    let edge_at = at * 1.04f64.ln();
                    let begun = edge_at + beginning.ln();
                    let found =
                        search(&grid, begun, 0.01, |w| ((slope * (w - edge_at)).exp(), None));
                    let case = format!("slope {slope}, edge {at}, from {beginning}");
                    assert_eq!(found.holds, Some(at.floor() as i64), "{case}");
                    assert_eq!(found.fails, Some(at.ceil() as i64), "{case}");
                    assert!(found.tried.len() <= 12, "{case}: {:?}", found.tried.keys());
                    // Sure ends lie on their sides.
                    assert!(found.carried.is_some_and(|own| own <= at.floor() as i64), "{case}");
                    assert!(found.broken.is_some_and(|own| own >= at.ceil() as i64), "{case}");
                }
            }
        }
    }

    /// A cliff, below which a backlog says how much is served: as many replicas as carry it, from one or from many.
    #[test]
    fn a_cliff_of_replicas() {
        let grid = Grid { numbers: true };
        for enough in [1u32, 2, 5, 9, 13, 40, 300] {
            for from in [1.0f64, 3.0, 12.0, 500.0] {
                let found = search(&grid, -from.ln(), 0.01, |weight| {
                    let share = (-weight).exp() / f64::from(enough);
                    if share > 1.0 - 1e-9 { (0.005, None) } else { (50.0, Some(share)) }
                });
                let case = format!("{enough} from {from}");
                // Neighbours are a fiftieth apart.
                let most = i64::from(enough) + i64::from(enough) / 50;
                let n = found.holds.map_or(0, |at| -at);
                assert!((i64::from(enough)..=most).contains(&n), "{case}: {n}");
                assert!(found.tried.len() <= TRIES, "{case}");
            }
        }
    }

    /// Where more replicas do not help the search ends; where they do, later, it does not: what is missed alone tells the two apart. What misses more than it may is never kept.
    #[test]
    fn what_more_replicas_do_not_help() {
        let grid = Grid { numbers: true };
        let plateau = |most: f64| move |weight: f64| (((weight + 3.0) * 2.0).exp().max(most), None);
        let found = search(&grid, 0.0, 1.35, plateau(1.4));
        assert_eq!(found.holds, None);
        assert!(found.flat.is_some_and(|n| (8..=40).contains(&-n)), "{:?}", found.flat);
        // At the promise by a hair, and alone nearly as much.
        let found = search(&grid, 0.0, 0.95, plateau(1.1));
        assert_eq!(found.holds, None, "{:?}", found.tried.keys());
        // Falls again beyond a plateau.
        let found = search(&grid, 0.0, 0.01, |weight| match (-weight).exp() {
            n if n < 10.0 => (20.0, None),
            n if n < 200.0 => (1.4, None),
            _ => (0.01, None),
        });
        assert_eq!(found.flat, None);
        assert!(
            found.holds.is_some_and(|at| (200..=204).contains(&-at)),
            "{:?}",
            found.tried.keys()
        );
    }
}
