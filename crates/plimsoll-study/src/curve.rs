//! The service curve: what a fleet gives for what is asked of it, and its load line.
//!
//! The load line is [`plimsoll_load::Load::line`]. Loads that were tried to find it are points of the curve; others show its shape, below the line and beyond it. A point is a
//! simulation of the same demand at a multiple of its rate, component by component.

mod result;

use plimsoll_load::{
    ClassResult, Distribution, Load, LoadLine, LoadOutcome, LoadQuestion, Memo, Point, PoolResult,
    Simulation, Span, StudyError,
};
use plimsoll_stats::Process;
use plimsoll_workload::Shift;

pub use self::result::{Curve, CurveBinding, CurveMark, CurvePoint, Peak, ResourceLine};
pub use plimsoll_load::{Percentile, Tail, TailMetric};

/// Calls of each component in a point: enough to show its shape.
const CALLS: f64 = 6_000.0;

/// Draws a service curve. `go_on` is polled while it is simulated; once it returns false, what was found so far is said.
pub fn curve(
    question: &LoadQuestion<'_>,
    points: usize,
    memo: &Memo,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Curve, StudyError> {
    let (tasks_per_s, calls_per_s) = rates(question);
    if calls_per_s <= 0.0 {
        return Err(StudyError::Empty);
    }
    let load = Load::of(question, memo, go_on);
    let line = load.line()?;
    let loads = Load::loads(&line, points);
    let shown = if go_on() { load.points(&loads, CALLS)? } else { Vec::new() };
    let points: Vec<CurvePoint> =
        shown.iter().map(|own| point(own, question, &line, tasks_per_s)).collect();
    let mut notes = Vec::new();
    if line.unfinished {
        notes.push("stopped at the time limit: the load line is not finished".to_owned());
    } else if let (None, Some(class)) = (line.holds, line.tried.first().and_then(broken)) {
        notes.push(format!(
            "{} of class `{class}` is not kept even where no request waits for another: no load line can be drawn",
            line.signal.as_deref().unwrap_or("a promise"),
        ));
    } else if line.beyond {
        notes.push(
            "no load that was tried is too much: nothing of this fleet is near its end".to_owned(),
        );
    }
    let at = |load: f64| points.iter().find(|p| p.load.to_bits() == load.to_bits());
    let mark = |load: f64, interval: Option<Span>| {
        at(load).map(|point| CurveMark {
            load,
            offered_per_s: point.offered_per_s,
            goodput_per_s: point.goodput_per_s,
            fails_at_load: line.fails.filter(|_| interval.is_some() || line.holds == Some(load)),
            sure: line.between.0.is_some_and(|sure| sure >= load * (1.0 - 1e-9)),
            interval,
        })
    };
    let interval = line.between.0.zip(line.between.1).map(|(low, high)| Span {
        low,
        high,
        level: plimsoll_load::Effort::USUAL.level,
        n: line.tried.len(),
    });
    let knee = knee(&points);
    let peak = points.iter().max_by(|a, b| a.output_tokens_per_s.total_cmp(&b.output_tokens_per_s));
    let resident = resident_kv_tokens(&shown);
    let mut counted = shown.iter().flat_map(|own| &own.seen);
    Ok(Curve {
        seed: question.fleet.seed.get(),
        calls: CALLS,
        warm_up_s: counted.by_ref().map(|seen| seen.warm_up_s).fold(0.0, f64::max),
        resident_kv_tokens: resident,
        calls_per_task: calls_per_s / tasks_per_s.max(f64::MIN_POSITIVE),
        knee: knee.and_then(|load| mark(load, None)),
        load_line: line.holds.and_then(|load| mark(load, interval)),
        load_lines: resource_lines(question, &line, resident),
        binding: CurveBinding {
            cause: line.cause,
            of: line.of.clone(),
            component: line.component.clone(),
            first_signal: line.signal.clone(),
            at_load: line.fails,
        },
        peak_throughput: peak.map(|p| Peak {
            load: p.load,
            achieved_per_s: p.achieved_per_s,
            output_tokens_per_s: p.output_tokens_per_s,
            attainment: p.attainment,
            safe: false,
        }),
        points,
        simulated: memo.count(),
        notes,
    })
}

/// The class whose promise is broken.
fn broken(outcome: &LoadOutcome) -> Option<&str> {
    outcome.worst.map(|at| outcome.classes[at].class.as_str())
}

/// What a fleet gives at some loads, from little to much, and the last of them up to which more gives more.
pub(crate) fn shape(
    question: &LoadQuestion<'_>,
    line: &LoadLine,
    loads: &[f64],
    memo: &Memo,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<CurvePoint>, Option<f64>), StudyError> {
    let tasks_per_s = rates(question).0;
    let shown = Load::of(question, memo, go_on).points(loads, CALLS)?;
    let points: Vec<CurvePoint> =
        shown.iter().map(|own| point(own, question, line, tasks_per_s)).collect();
    let knee = knee(&points);
    Ok((points, knee))
}

/// Tasks and calls a second of the demand.
fn rates(question: &LoadQuestion<'_>) -> (f64, f64) {
    let each = question.fleet.classes.iter().map(|class| {
        let rate = class.rate(question.hour, question.events);
        (rate, rate * class.class.task.mean_requests().max(1.0))
    });
    each.fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
}

fn point(
    own: &Point,
    question: &LoadQuestion<'_>,
    line: &LoadLine,
    tasks_per_s: f64,
) -> CurvePoint {
    let (mut offered, mut ended, mut completed) = (0.0, 0.0, 0.0);
    let (mut achieved, mut good, mut tokens, mut queue) = (0.0, 0.0, 0.0, 0.0);
    let (mut attainment, mut shortest) = (None, f64::NEG_INFINITY);
    let complete = own.seen.iter().all(|seen| seen.complete);
    let tried = line.tried.iter().find(|tried| tried.load.to_bits() == own.load.to_bits());
    for seen in &own.seen {
        let seconds = seen.seconds * f64::from(seen.runs);
        for (class, target) in seen.classes.iter().zip(question.targets) {
            let came = class.offered as f64 / seconds;
            offered += came;
            ended += (class.offered - class.left) as f64 / seconds;
            completed += class.completed as f64 / seconds;
            achieved += class.completed_per_s;
            // What decided saw far more of it than what is shown.
            let decided = tried.and_then(|tried| {
                tried.classes.iter().find(|own| own.class == class.name)?.attainment
            });
            good += decided.map_or(class.good as f64 / seconds, |share| share * came);
            if let Some(share) = class.attainment
                && target.attainment - share > shortest
            {
                (shortest, attainment) = (target.attainment - share, Some(share));
            }
        }
        // What was generated while it counted, not what came of those who came then.
        let pools: u64 = seen.pools.iter().map(|p| p.output_tokens).sum();
        let providers: u64 = seen.providers.iter().map(|p| p.output_tokens).sum();
        tokens += (pools + providers) as f64 / seconds;
        let waiting = seen.pools.iter().map(|p| p.utilisation.waiting_mean * p.replicas as f64);
        queue += waiting.fold(0.0, |sum, own| sum + own);
    }
    let decided = tried.and_then(|tried| {
        let shares = tried.classes.iter().filter_map(|c| Some((c, c.target - c.attainment?)));
        shares.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(class, _)| class)
    });
    let bursts = question
        .fleet
        .classes
        .iter()
        .any(|own| matches!(own.class.process, Process::Flow { burst: Some(_), .. }));
    let devices: u64 =
        question.fleet.pools.iter().map(|p| u64::from(p.life.replicas) * p.devices).sum();
    let classes = || own.seen.iter().flat_map(|seen| &seen.classes);
    let worst = |of: fn(&ClassResult) -> Option<Distribution>| {
        classes().filter_map(of).map(|d| d.p95).reduce(f64::max)
    };
    let pools = || own.seen.iter().flat_map(|seen| &seen.pools);
    let most = |of: fn(&PoolResult) -> f64| pools().map(of).fold(0.0, f64::max);
    let meets = line.beyond || line.holds.is_some_and(|holds| own.load <= holds * (1.0 + 1e-9));
    let sure = match meets {
        true => line.between.0.is_some_and(|sure| own.load <= sure * (1.0 + 1e-9)),
        false => line.between.1.is_some_and(|sure| own.load >= sure * (1.0 - 1e-9)),
    };
    CurvePoint {
        load: own.load,
        // A run that was stopped because it was hopeless did not see all who would have come.
        offered_per_s: if complete { offered } else { offered.max(tasks_per_s * own.load) },
        achieved_per_s: achieved,
        goodput_per_s: good,
        goodput_per_device: (devices > 0).then(|| good / devices as f64),
        // A run that is shown may see no burst at all.
        attainment: decided.and_then(|c| c.attainment).or(attainment.filter(|_| !bursts)),
        attainment_interval: decided.and_then(|c| c.interval),
        errors: ((ended - completed) / offered.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0),
        queue_mean: queue,
        busy: most(|p| p.utilisation.busy),
        kv: most(|p| p.utilisation.kv_mean),
        output_tokens_per_s: tokens,
        ttft_p95_ms: worst(|c| c.ttft_ms),
        tpot_p95_ms: worst(|c| c.tpot_ms),
        verdict: own.seen.iter().filter_map(|seen| seen.verdict).max(),
        meets,
        sure,
        fails_by: (!meets).then(|| {
            let by = tried.and_then(|tried| tried.signal.clone()).or(line.signal.clone());
            by.unwrap_or_else(|| "queue".to_owned())
        }),
    }
}

/// Tokens that the demand keeps resident: as many as were seen at its own load, or as the lightest load has for each of it, whichever is more.
fn resident_kv_tokens(shown: &[Point]) -> f64 {
    let at = |own: &Point| own.seen.iter().map(resident).sum::<f64>();
    let light = shown.first().map_or(0.0, |own| at(own) / own.load);
    let own = shown.iter().find(|own| own.load.to_bits() == 1f64.to_bits());
    own.map_or(light, |own| at(own).max(light))
}

/// Tokens that all pools held, on average.
pub(crate) fn resident(result: &Simulation) -> f64 {
    let pools = result.pools.iter().map(|p| {
        let tokens = p.kv_blocks as f64 * p.kv_block_tokens as f64;
        p.utilisation.kv_mean * tokens * p.replicas as f64
    });
    pools.sum::<f64>().max(0.0)
}

/// The load line in the units of resources: the whole mix is scaled.
fn resource_lines(
    question: &LoadQuestion<'_>,
    line: &LoadLine,
    resident: f64,
) -> Vec<ResourceLine> {
    let mut sums = [0.0; 3];
    for own in &question.fleet.classes {
        let Some(hour) = own.class.hours.get(question.hour) else { continue };
        let shift: Shift = hour.changed(question.events);
        let rate = hour.rate * shift.rate;
        let (fresh, output) = own.class.task.expected(&shift);
        for (sum, each) in sums.iter_mut().zip([own.class.task.mean_requests(), fresh, output]) {
            *sum += rate * each;
        }
    }
    let carries = line.holds.filter(|_| !line.beyond);
    let kinds = [
        ("requests", "1/s", sums[0]),
        ("fresh_prompt_tokens", "tokens/s", sums[1]),
        ("output_tokens", "tokens/s", sums[2]),
        ("resident_kv_tokens", "tokens", resident),
        ("mix", "times the demand", 1.0),
    ];
    let row = |(resource, unit, demand): (&'static str, &'static str, f64)| ResourceLine {
        resource,
        unit,
        demand,
        load_line: carries.map(|times| times * demand),
        factor: carries,
        holds_at_demand: line.beyond || carries.is_some_and(|times| times >= 1.0 - 1e-9),
    };
    kinds.map(row).into()
}

/// The last load up to which more of it gives at least half as many more good tasks.
fn knee(points: &[CurvePoint]) -> Option<f64> {
    let mut last = points.first()?;
    for point in &points[1..] {
        let (more, good) =
            (point.offered_per_s - last.offered_per_s, point.goodput_per_s - last.goodput_per_s);
        if good < 0.5 * more {
            // Where nothing is good, more load cannot stop giving more of it.
            return (last.goodput_per_s > 0.0).then_some(last.load);
        }
        last = point;
    }
    None
}
