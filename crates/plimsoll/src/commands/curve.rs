//! `curve`: what a fleet gives for what is asked of it, and its load line.

use std::io::Write;

use plimsoll_evidence::results;
use plimsoll_report::{
    CurveDocument, LoadTestPoint, MeasuredLoadLine, curve_html, curve_json, curve_text,
};
use plimsoll_scenario::sections::{Scenario, Survive};
use plimsoll_scenario::{Diagnostic, Loaded, class_targets};
use plimsoll_sim::{Good, Mishap};
use plimsoll_study::{
    BenchPoint, ClassTarget, Curve, Latency, Load, LoadQuestion, Lost, Memo, SimulateInput,
    SimulatedPool, curve,
};

use super::simulate::{Stop, chosen_hour};
use super::{either, fleet, paged, planned, today};
use crate::args::{CurveArgs, Global};
use crate::failure::Failure;
use crate::{files, heading};

pub(super) fn answer(
    args: &CurveArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    if !args.what_if.is_empty() {
        return super::what_if::answer(args, global, err);
    }
    // What cannot be read is said before minutes are spent.
    let tested = args.load_test.as_ref().map(|path| load_test(path)).transpose()?;
    let loaded = planned(&args.file, global)?;
    let demand = loaded.demand(today(global, &loaded)).map_err(Failure::one)?;
    let (hour, events) = chosen_hour(args.hour, &loaded, &demand)?;
    let span = fleet::one_hour(hour, events, 60.0, 600.0);
    let pools = fleet::pools(&loaded, &args.file, args.pool.as_deref(), global)?;
    let (own, notes) = fleet::input(&loaded, &demand, pools, args.pool.is_none(), &span, global);
    let targets = class_targets(&loaded.scenario, &own.classes);
    let stop = Stop::new(args.time_limit.get(), global);
    let question = LoadQuestion { fleet: &own, targets: &targets, hour, events, lost: &[] };
    let points = usize::try_from(args.points).unwrap_or(12);
    let mut result = curve(&question, points, &Memo::default(), &|| stop.go_on())
        .map_err(|e| failed(&loaded, &e))?;
    result.notes.extend(still(&own));
    result.notes.extend(demand.notes.iter().cloned().chain(notes).chain(stop.notes()));
    let strictest = Strictest::of(&own, &targets);
    let mut tested: Vec<LoadTestPoint> =
        tested.unwrap_or_default().iter().filter_map(|point| strictest.point(point)).collect();
    tested.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    if !tested.is_empty() {
        result
            .notes
            .push("the load test is taken to be of the whole fleet, with this mix".to_owned());
    }
    for point in &mut tested {
        point.predicted_per_s = at_load(&result, point.offered_per_s);
    }
    let measured = args.load_test.as_ref().and_then(|path| measured_line(&tested, path, &own));
    if !global.quiet {
        // Talk that cannot be written is not missed.
        let _ = writeln!(err, "drew {} points in {:.2} s", result.points.len(), stop.seconds());
    }
    let calibrated = loaded.scenario.pool.iter().any(|p| p.calibration.is_some());
    let name = args.file.display().to_string();
    let document = CurveDocument {
        name: &loaded.scenario.study.name,
        file: &name,
        from: demand.hour_label(hour),
        step_times: if calibrated { "of the pools' calibrations" } else { "built in" },
        result: &result,
        load_test: &tested,
        measured_line: measured.as_ref(),
    };
    paged(args.html.as_deref(), || curve_html(&document, crate::VERSION), global, err)?;
    Ok(either(
        global,
        || curve_json(&document, crate::VERSION),
        || curve_text(&document, heading()),
    ))
}

/// What may be lost at the peak: whatever the study asks to survive.
pub(super) fn lost(scenario: &Scenario, peak: &SimulateInput) -> Vec<Lost> {
    let asked = &scenario.study.reliability;
    let count = asked.count.get_u32();
    let pools = || peak.pools.iter().enumerate().filter(|(_, pool)| pool.life.replicas > 0);
    let each = |what: &str, of: &dyn Fn(usize) -> Mishap| -> Vec<Lost> {
        let lost = |(i, pool): (usize, &SimulatedPool)| {
            let name = format!("{what} of {}", pool.name);
            Lost { name, what: vec![of(i)] }
        };
        pools().map(lost).collect()
    };
    let several = |one: &str, many: &str| match count {
        1 => one.to_owned(),
        n => format!("{n} {many}"),
    };
    let mut all = Vec::new();
    if matches!((asked.survive, count), (Survive::Replica, 1)) {
        all.extend(each("a replica", &|pool| Mishap::Replicas(pool, 1)));
    }
    all.extend(match asked.survive {
        _ if count == 0 => Vec::new(),
        Survive::Replica if count > 1 => {
            each(&several("a replica", "replicas"), &|pool| Mishap::Replicas(pool, count))
        }
        Survive::Nothing | Survive::Replica => Vec::new(),
        Survive::Node => each(&several("a node", "nodes"), &|pool| Mishap::Nodes(pool, count)),
        Survive::Zone => each(&several("a zone", "zones"), &|pool| Mishap::Zones(pool, count)),
        Survive::Region => {
            let used = |region: &usize| pools().any(|(_, pool)| pool.life.regions.contains(region));
            let named = |region: usize| Lost {
                name: format!("region {}", peak.regions[region]),
                what: vec![Mishap::Region(region)],
            };
            (0..peak.regions.len()).filter(used).map(named).collect()
        }
    });
    all
}

/// What a curve leaves aside.
fn still(fleet: &SimulateInput) -> Vec<String> {
    let mut notes = Vec::new();
    if !fleet.incidents.is_empty() || !fleet.surges.is_empty() {
        notes.push("incidents are left out: `simulate` has them".to_owned());
    }
    if fleet.pools.iter().any(|pool| pool.life.scaling.is_some()) {
        notes.push("the curve is of the replicas of today: autoscaling is left out".to_owned());
    }
    notes
}

fn failed(loaded: &Loaded, error: &dyn std::fmt::Display) -> Failure {
    Failure::one(Diagnostic::about("no-curve", loaded.source.name(), error.to_string()))
}

/// Points of a load test that say how much was offered.
fn load_test(path: &std::path::Path) -> Result<Vec<BenchPoint>, Failure> {
    let name = path.display().to_string();
    let found = results(&name, &files::read_text(path)?).map_err(|errors| {
        Failure::input(errors.iter().map(|e| super::calibrate::complaint(&name, e)).collect())
    })?;
    let points: Vec<BenchPoint> =
        found.points.into_iter().filter(|point| offered(point).is_some()).collect();
    if points.is_empty() {
        let message = "no point of it says how much was offered or answered".to_owned();
        return Err(Failure::one(
            Diagnostic::about("bad-load-test", name, message)
                .help("give results of `vllm bench serve`, `genai-perf` or GuideLLM".to_owned()),
        ));
    }
    Ok(points)
}

/// Requests a second that were offered; in a closed loop as much as was answered.
fn offered(point: &BenchPoint) -> Option<f64> {
    match point.load {
        Load::Rate(rate) => Some(rate),
        _ => point.requests_per_s,
    }
}

/// The strictest thresholds of any class: a load test does not say which class a request is of.
struct Strictest {
    ttft_s: Option<f64>,
    tpot_s: Option<f64>,
    e2e_s: Option<f64>,
    /// Whether a class is promised something that no load test has.
    gap: bool,
    attainment: f64,
}

impl Strictest {
    fn of(fleet: &SimulateInput, targets: &[ClassTarget]) -> Self {
        let least = |of: &dyn Fn(&Good) -> Option<u64>| {
            let all = fleet.classes.iter().filter_map(|class| of(&class.sent.good));
            all.min().map(|ps| ps as f64 / 1e12)
        };
        Self {
            ttft_s: least(&|good| good.ttft),
            tpot_s: least(&|good| good.tpot),
            e2e_s: least(&|good| good.e2e),
            gap: fleet.classes.iter().any(|class| class.sent.good.gap.is_some()),
            attainment: targets.iter().map(|target| target.attainment).fold(0.0, f64::max),
        }
    }

    fn point(&self, point: &BenchPoint) -> Option<LoadTestPoint> {
        Some(LoadTestPoint {
            origin: format!("{} {}", point.origin.tool, point.origin.row),
            offered_per_s: offered(point)?,
            achieved_per_s: point.requests_per_s,
            predicted_per_s: None,
            ttft_mean_ms: point.ttft.mean.map(|s| s * 1e3),
            keeps: self.keeps(point),
        })
    }

    /// Whether a point keeps every promise: each threshold at its 99th percentile, and as many answered as were promised.
    fn keeps(&self, point: &BenchPoint) -> Option<bool> {
        let bounds =
            [(self.ttft_s, point.ttft), (self.tpot_s, point.tpot), (self.e2e_s, point.e2e)];
        let bounds = bounds.iter().filter_map(|(bound, seen)| Some(((*bound)?, seen)));
        let above = |seen: Option<f64>, bound: f64| seen.is_some_and(|seen| seen > bound);
        let failed = point.failed.zip(point.completed).is_some_and(|(failed, completed)| {
            failed as f64 > (1.0 - self.attainment) * (failed + completed) as f64
        });
        let broken = |(bound, seen): &(f64, &Latency)| {
            above(seen.p50, *bound) || self.attainment >= 0.99 && above(seen.p99, *bound)
        };
        let bounds: Vec<(f64, &Latency)> = bounds.collect();
        if failed || bounds.iter().any(broken) {
            return Some(false);
        }
        let kept = bounds.iter().all(|(bound, seen)| seen.p99.is_some_and(|p99| p99 <= *bound));
        (kept && !bounds.is_empty() && !self.gap).then_some(true)
    }
}

/// The largest tested load that keeps every promise, as every smaller one does.
fn measured_line(
    tested: &[LoadTestPoint],
    path: &std::path::Path,
    fleet: &SimulateInput,
) -> Option<MeasuredLoadLine> {
    let kept = tested.iter().take_while(|point| point.keeps == Some(true)).count();
    let carries = tested[..kept].last()?;
    let fails = tested.iter().find(|point| point.keeps == Some(false));
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let paste = match fleet.pools.as_slice() {
        [pool] if fleet.providers.is_empty() => Some(format!(
            "[[line]]\npool = {:?}\nresource = \"requests\"\ncarries = {}\nreplicas = {}\nsource = {file:?}",
            pool.name, carries.offered_per_s, pool.life.replicas
        )),
        _ => None,
    };
    Some(MeasuredLoadLine {
        carries_per_s: carries.offered_per_s,
        fails_per_s: fails.map(|point| point.offered_per_s),
        source: carries.origin.clone(),
        paste,
    })
}

/// What a curve says is done of so many requests a second, on a straight line between its points.
fn at_load(curve: &Curve, offered: f64) -> Option<f64> {
    let mut before = (0.0, 0.0);
    for point in &curve.points {
        // A load test counts requests, a curve tasks.
        let calls = curve.calls_per_task;
        let after = (point.offered_per_s * calls, point.achieved_per_s * calls);
        if offered <= after.0 {
            let share = (offered - before.0) / (after.0 - before.0).max(f64::MIN_POSITIVE);
            return Some(before.1 + (after.1 - before.1) * share);
        }
        before = after;
    }
    None
}
