//! A search for the edge between what is carried and what is not: of loads on a grid, or of numbers of replicas.

use std::collections::BTreeMap;

use crate::demand::StudyError;
use crate::trial::Trial;
use crate::verdict::LoadVerdict;

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
}

/// Places that are tried at most.
const TRIES: usize = 18;
/// So many budgets may be spent until the edge was seen from both sides.
const ONE_SIDED: u64 = 3;
/// Places that are tried at most only to know surely.
const TRIES_TO_BE_SURE: usize = 3;
/// Missed / allowed below which a lighter place shows no fewer misses: what is not sure there is not sure further away.
const NO_FEWER: f64 = 0.1;
/// The slope of log(missed / allowed) over log(load) where none was seen, and within which one is believed.
const SLOPE: f64 = 12.0;
const SLOPES: (f64, f64) = (1.0, 40.0);
/// A step is no longer than this, in logarithms of the load.
const STEP: (f64, f64) = (0.04, 0.7);
/// Logarithms of missed / allowed that are far from the edge: a tenth, and ten times.
const FAR: (f64, f64) = (-2.3, 2.3);

/// The edge, and what was tried to find it.
#[derive(Debug)]
pub(crate) struct Edge {
    /// The heaviest place that keeps every promise, as every lighter one that was tried does.
    pub(crate) holds: Option<i64>,
    /// The lightest heavier one that does not.
    pub(crate) fails: Option<i64>,
    /// The heaviest that surely does.
    pub(crate) carried: Option<i64>,
    /// The lightest that surely does not.
    pub(crate) broken: Option<i64>,
    pub(crate) tried: BTreeMap<i64, Trial>,
    /// Whether the time was up.
    pub(crate) stopped: bool,
}

/// What a search may cost.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// Calls.
    pub(crate) calls: u64,
    /// Whether places are tried only to know surely.
    pub(crate) sure: bool,
}

/// Finds the edge from a guess on. A place that is wanted anyway is tried first.
pub(crate) fn edge(
    axis: &impl Axis,
    wanted: Option<i64>,
    guess: f64,
    Budget { calls: budget, sure }: Budget,
    mut ask: impl FnMut(i64) -> Result<Trial, StudyError>,
) -> Result<Edge, StudyError> {
    let (lightest, heaviest) = axis.ends();
    let mut tried: BTreeMap<i64, Trial> = BTreeMap::new();
    let (mut spent, mut stopped) = (0, false);
    let mut weight = guess;
    if let Some(place) = wanted {
        let trial = ask(place)?;
        spent += trial.calls;
        stopped |= trial.stopped;
        tried.insert(place, trial);
    }
    for _ in 0..TRIES {
        if stopped {
            break;
        }
        let (low, high) = bracket(&tried);
        let (below, above) =
            (low.map_or(lightest, |low| low + 1), high.map_or(heaviest, |h| h - 1));
        if below > above || low.zip(high).is_some_and(|(low, high)| high - low <= axis.apart(high))
        {
            break;
        }
        let place = axis.place(weight).clamp(below, above);
        let trial = ask(place)?;
        spent += trial.calls;
        stopped |= trial.stopped;
        tried.insert(place, trial);
        // An edge that was seen from one side only is no answer: that may cost more.
        let (low, high) = bracket(&tried);
        let most = if low.is_some() && high.is_some() { budget } else { ONE_SIDED * budget };
        if stopped || spent > most {
            break;
        }
        weight = next(axis, &tried, wanted);
    }
    // Where the nearest on either side are not sure, others are, further away.
    let mut step = 2;
    for _ in 0..if sure { TRIES_TO_BE_SURE } else { 0 } {
        let (low, high) = bracket(&tried);
        let any = |verdict| tried.values().any(|own| own.judged.verdict == verdict);
        let no_fewer = || tried.values().next().is_some_and(|own| own.judged.ratio() < NO_FEWER);
        let carried = any(LoadVerdict::Carried) || no_fewer();
        let broken = any(LoadVerdict::Fails);
        let place = match (low, high) {
            _ if stopped || spent > budget => break,
            (_, Some(high)) if !broken => high + step * axis.apart(high),
            (Some(low), _) if !carried => low - step * axis.apart(low),
            (None, Some(high)) if !carried && high > lightest => high - step * axis.apart(high),
            _ => break,
        };
        let place = place.clamp(lightest, heaviest);
        if tried.contains_key(&place) {
            break;
        }
        let trial = ask(place)?;
        spent += trial.calls;
        stopped |= trial.stopped;
        tried.insert(place, trial);
        step *= 2;
    }
    Ok(found(tried, stopped))
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

/// Where to look next: log(missed / allowed) is about straight in log(load).
fn next(axis: &impl Axis, tried: &BTreeMap<i64, Trial>, wanted: Option<i64>) -> f64 {
    let point = |place: i64, trial: &Trial| {
        (axis.weight(place), trial.judged.ratio().clamp(0.02, 50.0).ln())
    };
    let points: Vec<(f64, f64)> = tried.iter().map(|(at, trial)| point(*at, trial)).collect();
    let (low, high) = bracket(tried);
    let at = |place: Option<i64>| place.and_then(|at| Some(point(at, tried.get(&at)?)));
    let inside: Vec<&(f64, f64)> = points.iter().filter(|p| p.1 > -3.5 && p.1 < 3.8).collect();
    let between =
        |a: &(f64, f64), b: &(f64, f64)| ((b.1 - a.1) / (b.0 - a.0)).clamp(SLOPES.0, SLOPES.1);
    // The two that are nearest to where the edge must be.
    let rising = if let [.., a, b] = inside[..] { between(a, b) } else { SLOPE };
    let falling = if let [a, b, ..] = inside[..] { between(a, b) } else { SLOPE };
    let steps = points.len() - usize::from(wanted.is_some_and(|at| tried.contains_key(&at)));
    match (at(low), at(high)) {
        (Some(a), Some(b)) => {
            let share = if b.1 > a.1 { -a.1 / (b.1 - a.1) } else { 0.5 };
            a.0 + (b.0 - a.0) * share.clamp(0.2, 0.8)
        }
        (Some(a), None) => a.0 + further(0.02 - a.1 / rising, steps, a.1 < FAR.0),
        (None, Some(b)) => b.0 - further(0.02 + b.1 / falling, steps, b.1 > FAR.1),
        (None, None) => 0.0,
    }
}

/// A step; from places that are all far off it is twice as long each time.
fn further(step: f64, steps: usize, far: bool) -> f64 {
    let steps = i32::try_from(steps).unwrap_or(i32::MAX).clamp(1, 6);
    let times = if far { 2f64.powi(steps - 1) } else { 1.0 };
    (step * times).clamp(STEP.0, STEP.1 * times.max(1.0))
}

fn found(tried: BTreeMap<i64, Trial>, stopped: bool) -> Edge {
    let (holds, fails) = bracket(&tried);
    let sure = |verdict| {
        let mut of = tried.iter().filter(move |own| own.1.judged.verdict == verdict);
        (of.next().map(|own| *own.0), of.next_back().map(|own| *own.0))
    };
    let carried = sure(LoadVerdict::Carried);
    let broken = sure(LoadVerdict::Fails).0;
    Edge { holds, fails, carried: carried.1.or(carried.0), broken, tried, stopped }
}
