//! `calibrate`: a pool's step times, fitted to what its users measured.
//!
//! The built-in constants are the prior, so three points do not overfit: a constant that the data say nothing of stays where it was, and says so.
//! Each run or point is also predicted by a fit that has not seen it, which is the error to expect.

use std::collections::BTreeMap;

use plimsoll_perf::{Fitted, Parameter, Rates, StepLoad, Term, bounded_least_squares, floor, step};
use plimsoll_stats::{normal_quantile, quantile};
use serde::Serialize;

use crate::fit::Fit;
use crate::measured::{BenchPoint, EngineRun, Flag, Load, Origin};
use crate::pool::PoolSteps;
use crate::replay::{Stretch, joined, replay};
use crate::review::Provenance;
use crate::steady::{SteadyInput, steady};
use crate::validate_performance::GroupError;
use plimsoll_load::{Differed, Spread};

/// What a calibration takes.
#[derive(Clone, Debug)]
pub struct CalibrateInput<'a> {
    /// What the model may be called in files, in lower case.
    pub known_as: Vec<String>,
    /// The pool's work and the rows of its constants.
    pub pool: &'a PoolSteps,
    /// Its built-in constants: the prior.
    pub prior: Rates,
    /// Its memory budget, for the limits of points.
    pub budget: &'a Fit,
    /// Whether the engine keeps room for the whole output of a request it starts.
    pub reserves_output: bool,
    /// Points of benchmarks.
    pub points: &'a [BenchPoint],
    /// Step logs.
    pub runs: &'a [EngineRun],
    /// Step logs that are predicted, not fitted to.
    pub held_out: &'a [EngineRun],
    /// What importing them has already found.
    pub flags: Vec<Flag>,
    /// Level of the intervals.
    pub level: f64,
}

/// A fitted step-time model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The pool's constants, all of them.
    #[serde(skip)]
    pub rates: Rates,
    /// Every constant of the pool.
    pub coefficients: Vec<Coefficient>,
    /// Median absolute error on what a fit had not seen; none with fewer than two runs or points.
    pub left_out_error_pct: Option<f64>,
    /// The same by kind of measurement.
    pub left_out: Vec<GroupError>,
    /// Errors on what it was fitted to.
    pub fitted: Vec<GroupError>,
    /// Errors on runs that were not chosen: predicted, not fitted to.
    pub held_out: Vec<GroupError>,
    /// How far measured gaps were spread around their prediction.
    pub spread: Spread,
    /// Where it may be used.
    pub region: Region,
    /// Every run and point: what it informs and how far off it is.
    pub points: Vec<PointReport>,
    /// What cannot be true, or should be known.
    pub flags: Vec<Flag>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coefficient {
    /// What it multiplies.
    pub name: &'static str,
    /// Its unit: a share of the datasheet's peak, seconds or tokens.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
    /// What the data and the prior leave open.
    pub interval: CoefficientInterval,
    /// Calibrated where the data decided at least a fifth of it.
    pub provenance: Provenance,
    /// What it is built in.
    pub prior: f64,
    /// How much of it the data decided, 0 to 1.
    pub informed: f64,
}

/// An interval of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CoefficientInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the truth.
    pub level: f64,
    /// Measured stretches and points behind the fit.
    pub n: usize,
}

/// What was seen, and hence where the fit may be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Region {
    /// Decoding sequences of a step.
    pub decodes: Option<[f64; 2]>,
    /// Contexts of a step's sequences together, in tokens.
    pub context_tokens: Option<[f64; 2]>,
    /// Prompt tokens of a step.
    pub prefill_tokens: Option<[f64; 2]>,
    /// Prompt tokens of a request.
    pub prompt_tokens: Option<[f64; 2]>,
}

fn widen(range: &mut Option<[f64; 2]>, value: f64) {
    let [low, high] = range.get_or_insert([value, value]);
    (*low, *high) = (low.min(value), high.max(value));
}

/// A run or a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointReport {
    /// Where it was read.
    pub origin: Origin,
    /// A run's name, or a point's load.
    pub name: String,
    /// Stretches of steps or numbers used of it.
    pub used: usize,
    /// Steps whose contents could not be told; they are not used.
    pub lost_steps: usize,
    /// The constants it says most about, most first.
    pub informs: Vec<&'static str>,
    /// Median absolute error of the fit.
    pub fitted_error_pct: Option<f64>,
    /// Median absolute error of a fit that has not seen it.
    pub left_out_error_pct: Option<f64>,
}

/// Why nothing could be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrateError {
    /// Everything was rejected, or nothing was there.
    #[error("nothing is left to fit: {rejected} of {given} points and runs were rejected")]
    Nothing {
        /// How many were rejected.
        rejected: usize,
        /// How many were given.
        given: usize,
        /// Why.
        flags: Vec<Flag>,
    },
}

/// What is compared, in seconds or tokens per second.
enum Seen {
    /// Steps between two instants: a stretch up to one of its outputs, from its beginning or from one of the outputs before.
    Steps { stretch: Stretch, from: Option<usize>, output: usize, kind: &'static str },
    /// The mean gap of a point.
    Gap(SteadyInput),
    /// The median gap of a point, which steps with prompts hardly move.
    MedianGap(SteadyInput),
    /// The first token of a point.
    First(SteadyInput),
    /// Tokens per second of a point.
    Rate(SteadyInput),
}

/// The first output of a stretch with prompts: it waits for the launch of the second step, among other steps or from idleness.
const BESIDE_A_LAUNCH: &str = "outputs beside a launch";
const FROM_IDLE: &str = "first outputs from idleness";

/// Outputs that say little after several requests ended an idleness at once: with 4 clients one step is late, with 128 it is two.
const HURRIED: usize = 2;

struct Row {
    /// Which run or point it belongs to.
    source: usize,
    seen: Seen,
    measured: f64,
    sd: f64,
    /// Reported, but not fitted to.
    shown_only: bool,
}

impl Row {
    fn kind(&self) -> &'static str {
        match &self.seen {
            Seen::Steps { kind, .. } => kind,
            Seen::Gap(_) | Seen::MedianGap(_) => "gap between tokens",
            Seen::First(_) => "first token",
            Seen::Rate(_) => "throughput",
        }
    }

    fn predicted(&self, pool: &PoolSteps, rates: &Rates) -> f64 {
        let state = |input: &SteadyInput| {
            let path = rates.get(Term::PathSeconds);
            let wave = input.wave * rates.get(Term::WaveShare);
            let input = SteadyInput { path, wave, ..*input };
            steady(&input, &|batch| step(&pool.work, rates, batch).total())
        };
        match &self.seen {
            Seen::Steps { stretch, from, output, .. } => {
                let outputs = stretch.outputs(&pool.work, rates, pool.asynchronous());
                outputs[*output].0 - from.map_or(0.0, |from| outputs[from].0)
            }
            Seen::Gap(input) => state(input).tpot,
            Seen::MedianGap(input) => state(input).itl_p50,
            Seen::First(input) => state(input).ttft,
            Seen::Rate(input) => state(input).output_rate,
        }
    }
}

/// Fits a pool's constants.
pub fn calibrate(input: &CalibrateInput<'_>) -> Result<Calibration, CalibrateError> {
    let mut flags = input.flags.clone();
    let mut sources: Vec<PointReport> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    let mut region = Region::default();
    for run in input.runs {
        take_run(run, input, &mut sources, &mut rows, &mut region, &mut flags);
    }
    for point in input.points {
        other_setup(point, input, &mut flags);
        take_point(point, input, &mut sources, &mut rows, &mut region, &mut flags);
    }
    let given = input.runs.len() + input.points.len();
    if rows.is_empty() {
        let rejected = given - sources.iter().filter(|s| s.used > 0).count();
        return Err(CalibrateError::Nothing { rejected, given, flags });
    }
    let terms = terms(input, &rows);
    let all: Vec<&Row> = rows.iter().filter(|r| !r.shown_only).collect();
    let fitted = fit_rows(input, &terms, &all);
    let rates = rates_of(&input.prior, &terms, &fitted.values);
    for (index, source) in sources.iter_mut().enumerate() {
        source.informs = informs(input, &terms, &rows, index, &rates);
    }
    let errors: Vec<f64> = rows.iter().map(|row| error_pct(row, input.pool, &rates)).collect();
    let left_out = left_out(input, &terms, &rows, sources.len());
    for (index, source) in sources.iter_mut().enumerate() {
        source.fitted_error_pct = median_of(&rows, &errors, |r| r.source == index && !r.shown_only);
        if let Some(left_out) = &left_out {
            source.left_out_error_pct =
                median_of(&rows, left_out, |r| r.source == index && !r.shown_only);
        }
    }
    let held_out = held_out(input, &rates, &mut flags);
    for source in &sources {
        if let Some(error) = source.fitted_error_pct.filter(|e| *e > 30.0) {
            flags.push(Flag {
                code: "does-not-fit",
                rejects: false,
                origin: source.origin.clone(),
                field: source.name.clone(),
                message: format!("the fit is {error:.0}% off here, although it has seen it: the load, the lengths or the setup may not be what was said"),
            });
        }
    }
    let quantile_at = normal_quantile(0.5 + input.level / 2.0);
    let own = Term::ALL.into_iter().filter(|term| input.pool.work.uses(*term));
    let coefficients = own.map(|term| {
        let at = terms.iter().position(|t| *t == term);
        let value = rates.get(term);
        // What was not fitted is as sure as the built-in fit, which publishes its own error.
        let (sd, informed) =
            at.map_or((prior_sd(term), 0.0), |i| (fitted.sd[i], fitted.informed[i]));
        let most = if term.is_efficiency() { 1.0 } else { f64::INFINITY };
        Coefficient {
            name: term.name(),
            unit: term.unit(),
            value,
            interval: CoefficientInterval {
                low: value * (-quantile_at * sd).exp(),
                high: (value * (quantile_at * sd).exp()).min(most),
                level: input.level,
                n: all.len(),
            },
            provenance: if informed >= 0.2 { Provenance::Calibrated } else { Provenance::Modeled },
            prior: input.prior.get(term),
            informed,
        }
    });
    Ok(Calibration {
        rates,
        coefficients: coefficients.collect(),
        left_out_error_pct: left_out
            .as_ref()
            .and_then(|errors| median_of(&rows, errors, |row| !row.shown_only)),
        left_out: left_out.as_ref().map_or_else(Vec::new, |errors| by_kind(&rows, errors)),
        fitted: by_kind(&rows, &errors),
        held_out,
        spread: spread(&rows, input.pool, &rates),
        region,
        points: sources,
        flags,
    })
}

/// How far the gaps of all stretches were from what the fit says of them, each gap as much as any other.
fn spread(rows: &[Row], pool: &PoolSteps, rates: &Rates) -> Spread {
    let mut differed = Vec::new();
    for row in rows {
        let Seen::Steps { stretch, kind, .. } = &row.seen else { continue };
        // A client that is held up is part of what clients see: decode steps count as they were seen, each by itself.
        if !matches!(*kind, "decode steps as seen" | "steps with prompts") {
            continue;
        }
        let mut before = 0.0;
        let outputs = stretch.outputs(&pool.work, rates, pool.asynchronous());
        for (i, ((at, pace), measured)) in outputs.into_iter().zip(&stretch.gaps).enumerate() {
            // A first token from idleness is no gap, and ten times what was predicted is no jitter: a kernel was compiled, or the client stood still.
            let predicted = at - before;
            if !(stretch.from_idle && i == 0) && *measured < 10.0 * predicted {
                let difference = measured - predicted;
                differed.push(Differed { pace, difference, weight: 1.0 });
            }
            before = at;
        }
    }
    Spread::seen(&differed)
}

/// A pool's constants with some of them replaced.
fn rates_of(prior: &Rates, terms: &[Term], values: &[f64]) -> Rates {
    let mut rates = *prior;
    for (term, value) in terms.iter().zip(values) {
        rates.set(*term, *value);
    }
    rates
}

/// How far a built-in constant may be off on a user's own machine.
fn prior_sd(term: Term) -> f64 {
    match term {
        _ if term.is_efficiency() => 0.2,
        Term::AttentionRamp => 0.4,
        _ => 0.9,
    }
}

/// The constants that the rows depend on at all.
fn terms(input: &CalibrateInput<'_>, rows: &[Row]) -> Vec<Term> {
    let moved = |term: Term| {
        let mut rates = input.prior;
        // A host that is slower may matter where this one does not.
        let host = matches!(term, Term::EagerSeconds | Term::PieceSeconds);
        rates.set(term, input.prior.get(term) * if host { 10.0 } else { 0.9 });
        rows.iter().filter(|row| !row.shown_only).any(|row| {
            let (a, b) =
                (row.predicted(input.pool, &input.prior), row.predicted(input.pool, &rates));
            (a / b).ln().abs() > 1e-9
        })
    };
    Term::ALL.into_iter().filter(|t| *t != Term::WaveShare && moved(*t)).collect()
}

fn fit_rows(input: &CalibrateInput<'_>, terms: &[Term], rows: &[&Row]) -> Fitted {
    // The host's time counts only where it is the longer one: a search that begins too low may never notice it, one that begins too high never let go.
    let [low, high] = [1.0, 3.0].map(|times| fit_from(input, terms, rows, times));
    if low.cost <= high.cost { low } else { high }
}

/// Fits from the prior, the host's times taken so many times as long to begin with.
fn fit_from(input: &CalibrateInput<'_>, terms: &[Term], rows: &[&Row], times: f64) -> Fitted {
    let parameters: Vec<Parameter> = terms
        .iter()
        .map(|term| {
            let prior = input.prior.get(*term);
            // Nothing was ever timed above 0.97 of a datasheet.
            let (least, most) =
                if term.is_efficiency() { (0.02, 0.97) } else { (prior / 1e3, prior * 1e3) };
            let host = matches!(term, Term::EagerSeconds | Term::PieceSeconds);
            let start = if host { times * prior } else { prior };
            Parameter { prior, prior_sd: prior_sd(*term), start, least, most }
        })
        .collect();
    let uses = vec![(0..terms.len()).collect::<Vec<usize>>(); rows.len()];
    bounded_least_squares(&parameters, 1.5, 30, &uses, &|row, values| {
        let rates = rates_of(&input.prior, terms, values);
        let row = rows[row];
        let ratio = row.predicted(input.pool, &rates) / row.measured;
        // Launches are rarely short and often long: their mean is what sums are made of, not their median.
        let error = if row.kind() == BESIDE_A_LAUNCH { 1.0 - 1.0 / ratio } else { ratio.ln() };
        error / row.sd
    })
}

fn error_pct(row: &Row, pool: &PoolSteps, rates: &Rates) -> f64 {
    (row.predicted(pool, rates) / row.measured - 1.0) * 100.0
}

/// The error of each row under a fit that has not seen its run or point.
fn left_out(
    input: &CalibrateInput<'_>,
    terms: &[Term],
    rows: &[Row],
    sources: usize,
) -> Option<Vec<f64>> {
    let present = (0..sources).filter(|s| rows.iter().any(|r| r.source == *s)).count();
    if present < 2 {
        return None;
    }
    let mut errors = vec![0.0; rows.len()];
    for source in 0..sources {
        let others: Vec<&Row> =
            rows.iter().filter(|r| r.source != source && !r.shown_only).collect();
        if others.is_empty() {
            continue;
        }
        let fitted = fit_rows(input, terms, &others);
        let rates = rates_of(&input.prior, terms, &fitted.values);
        for (error, row) in errors.iter_mut().zip(rows).filter(|(_, r)| r.source == source) {
            *error = error_pct(row, input.pool, &rates);
        }
    }
    Some(errors)
}

/// The errors on runs that the fit was not given.
fn held_out(input: &CalibrateInput<'_>, rates: &Rates, flags: &mut Vec<Flag>) -> Vec<GroupError> {
    let (mut sources, mut rows, mut region) = (Vec::new(), Vec::new(), Region::default());
    for run in input.held_out {
        take_run(run, input, &mut sources, &mut rows, &mut region, flags);
    }
    let errors: Vec<f64> = rows.iter().map(|row| error_pct(row, input.pool, rates)).collect();
    by_kind(&rows, &errors)
}

/// The constants that a run or point says most about: those whose prior doubt moves it most, in units of its noise.
fn informs(
    input: &CalibrateInput<'_>,
    terms: &[Term],
    rows: &[Row],
    source: usize,
    rates: &Rates,
) -> Vec<&'static str> {
    let mine: Vec<&Row> = rows.iter().filter(|r| r.source == source && !r.shown_only).collect();
    let mut weights: Vec<(f64, &'static str)> = terms
        .iter()
        .map(|term| {
            let mut moved = *rates;
            moved.set(*term, rates.get(*term) * 0.99);
            let push = |row: &&Row| {
                let change = row.predicted(input.pool, &moved) / row.predicted(input.pool, rates);
                (change.ln() / 0.01 * prior_sd(*term) / row.sd).powi(2)
            };
            (mine.iter().map(push).sum(), term.name())
        })
        .collect();
    weights.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most = weights.first().map_or(0.0, |w| w.0);
    // Worth naming: at least a tenth of the strongest, and more than noise.
    weights.into_iter().filter(|w| w.0 > 0.1 * most && w.0 > 1.0).take(3).map(|w| w.1).collect()
}

fn median_of(rows: &[Row], errors: &[f64], mine: impl Fn(&Row) -> bool) -> Option<f64> {
    let own: Vec<f64> =
        rows.iter().zip(errors).filter(|(r, _)| mine(r)).map(|(_, e)| e.abs()).collect();
    quantile(&own, 0.5)
}

fn by_kind(rows: &[Row], errors: &[f64]) -> Vec<GroupError> {
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (row, error) in rows.iter().zip(errors) {
        kinds.entry(row.kind()).or_default().push(*error);
    }
    let group = |(name, errors): (&str, Vec<f64>)| GroupError::of(name.to_owned(), &errors);
    kinds.into_iter().filter_map(group).collect()
}

/// A file that names another model or engine than the pool's.
fn other_setup(point: &BenchPoint, input: &CalibrateInput<'_>, flags: &mut Vec<Flag>) {
    let said = |names: &[&str]| {
        point.says.iter().find(|(key, _)| names.contains(&key.as_str())).map(|(_, value)| value)
    };
    let mut flag = |code, field: &str, message| {
        let (origin, field) = (point.origin.clone(), field.to_owned());
        flags.push(Flag { code, rejects: false, origin, field, message });
    };
    if let Some(model) = said(&["model", "model_id"])
        && !input.known_as.contains(&model.to_lowercase())
    {
        let pool = input.known_as.first().map_or("another", String::as_str);
        flag(
            "another-model",
            "model",
            format!("the file is of `{model}`, the pool of `{pool}`: is that the same shape?"),
        );
    }
    let engine = input.pool.engine.split('-').next().unwrap_or_default();
    if let Some(backend) = said(&["backend"]).map(|b| b.to_lowercase())
        && let Some(other) =
            ["vllm", "sglang", "tensorrt"].into_iter().find(|e| backend.contains(e))
        && other != engine
    {
        flag("another-engine", "backend", format!("the file is of {other}, the pool of {engine}"));
    }
}

/// A run's stretches.
fn take_run(
    run: &EngineRun,
    input: &CalibrateInput<'_>,
    sources: &mut Vec<PointReport>,
    rows: &mut Vec<Row>,
    region: &mut Region,
    flags: &mut Vec<Flag>,
) {
    let source = sources.len();
    let replayed = replay(run);
    if replayed.lost * 10 > replayed.steps {
        flags.push(Flag {
            code: "schedule-lost",
            rejects: false,
            origin: run.origin.clone(),
            field: "steps".to_owned(),
            message: format!(
                "run `{}`: what {} of {} steps carried cannot be told (blocks shared by a prefix cache, or another scheduler); they are left out",
                run.run, replayed.lost, replayed.steps
            ),
        });
    }
    // More than half of the time faster than reading the weights: another model or device, or another unit.
    let paces: Vec<f64> = replayed
        .stretches
        .iter()
        .map(|stretch| {
            let least = |l: &StepLoad| floor(&input.pool.work, &input.prior, &l.batch());
            stretch.seconds / stretch.loads.iter().map(least).sum::<f64>()
        })
        .collect();
    if let Some(pace) = quantile(&paces, 0.5).filter(|pace| *pace < 1.0) {
        flags.push(Flag {
            code: "faster-than-physics",
            rejects: true,
            origin: run.origin.clone(),
            field: "steps".to_owned(),
            message: format!(
                "run `{}`: half of its steps take less than {pace:.2} of what reading the weights takes at the device's bandwidth: times in another unit, or another model or accelerator than was said",
                run.run
            ),
        });
        sources.push(report(run.origin.clone(), run.run.clone(), 0, replayed.lost));
        return;
    }
    let of_kind = |wanted: &dyn Fn(&Stretch) -> bool| -> Vec<Stretch> {
        replayed.stretches.iter().filter(|s| wanted(s)).cloned().collect()
    };
    let seen_steps = of_kind(&|s| s.decode_only);
    let pure = joined(&replayed.stretches);
    let mixed = of_kind(&|s| s.loads.iter().any(|l| l.prefill > 0));
    for load in pure.iter().chain(&mixed).flat_map(|s| &s.loads) {
        if load.decodes > 0 {
            widen(&mut region.decodes, load.decodes as f64);
            widen(&mut region.context_tokens, load.context as f64);
        }
        if load.prefill > 0 {
            widen(&mut region.prefill_tokens, load.prefill as f64);
        }
    }
    let used = pure.len() + mixed.len();
    let mut add = |stretches: Vec<Stretch>, kind: &'static str, spread: f64, shown_only: bool| {
        // A run of a thousand steps is not a thousand times as telling as one: its errors are alike.
        let sd = spread * (stretches.len() as f64 / 30.0).max(1.0).sqrt();
        for stretch in stretches {
            let first = matches!(kind, BESIDE_A_LAUNCH | FROM_IDLE);
            let output = if first { 0 } else { stretch.loads.len() - 1 };
            // Clients that send many requests at once are late with the first outputs, and the next seem early.
            let from = stretch.hurried().then_some(HURRIED - 1);
            let skipped = from.map_or(0, |from| from + 1);
            if output < 2 * skipped {
                continue;
            }
            let measured = stretch.gaps[skipped..=output].iter().sum();
            // The jitter of steps evens out over a long stretch; what the model does not know does not.
            let sd = sd * (1.0 / (output + 1) as f64).sqrt().max(0.3);
            let seen = Seen::Steps { stretch, from, output, kind };
            rows.push(Row { source, seen, measured, sd, shown_only });
        }
    };
    // Where one output follows another, the first says how long the host takes. Among other steps that varies: 15 to 30 ms in eight of ten of our own.
    let (idle, beside): (Vec<Stretch>, Vec<Stretch>) =
        mixed.iter().filter(|s| s.loads.len() > 1).cloned().partition(|s| s.from_idle);
    add(seen_steps, "decode steps as seen", 0.05, true);
    add(pure, "decode steps", 0.05, false);
    add(mixed, "steps with prompts", 0.05, false);
    if input.pool.asynchronous() {
        add(idle, FROM_IDLE, 0.05, false);
        add(beside, BESIDE_A_LAUNCH, 0.3, false);
    }
    for request in &run.requests {
        widen(&mut region.prompt_tokens, request.prompt as f64);
    }
    sources.push(report(run.origin.clone(), run.run.clone(), used, replayed.lost));
}

fn report(origin: Origin, name: String, used: usize, lost_steps: usize) -> PointReport {
    let (fitted_error_pct, left_out_error_pct, informs) = (None, None, Vec::new());
    PointReport { origin, name, used, lost_steps, informs, fitted_error_pct, left_out_error_pct }
}

/// A point's numbers, less those that cannot be true.
fn take_point(
    point: &BenchPoint,
    input: &CalibrateInput<'_>,
    sources: &mut Vec<PointReport>,
    rows: &mut Vec<Row>,
    region: &mut Region,
    flags: &mut Vec<Flag>,
) {
    let source = sources.len();
    let name = match point.load {
        Load::Concurrency(clients) => format!("{clients:.0} clients"),
        Load::Rate(rate) => format!("{rate} requests/s"),
        Load::AllAtOnce => "all at once".to_owned(),
        Load::StaticBatch(size) => format!("a batch of {size:.0}"),
    };
    let mut flag = |code, rejects, field: &str, message: String| {
        let (origin, field) = (point.origin.clone(), field.to_owned());
        flags.push(Flag { code, rejects, origin, field, message });
    };
    let rejected = input.flags.iter().any(|f| f.rejects && f.origin == point.origin);
    let (Some(prompt), Some(output)) = (point.prompt, point.output) else {
        flag(
            "no-lengths",
            true,
            "prompt",
            "without token counts of prompts and outputs a latency says nothing of a step"
                .to_owned(),
        );
        sources.push(report(point.origin.clone(), name, 0, 0));
        return;
    };
    if rejected {
        sources.push(report(point.origin.clone(), name, 0, 0));
        return;
    }
    let before = rows.len();
    // An open loop near its limit is where a small error of the step time makes a large one of the state. By Little's law the
    // measured requests in flight say what state it was.
    let in_flight = point.in_flight_mean.or_else(|| Some(point.requests_per_s? * point.e2e.mean?));
    let load = match (point.load, in_flight) {
        (Load::Rate(_), Some(in_flight)) => Load::Concurrency(in_flight.max(1e-3)),
        (load, _) => load,
    };
    let offered = SteadyInput {
        load,
        prompt: prompt.mean,
        cached: prompt.mean * point.cached_share.unwrap_or(0.0),
        output: output.mean,
        max_num_seqs: input.budget.max_num_seqs as f64,
        budget: input.budget.max_num_batched_tokens as f64,
        kv_tokens: input.budget.kv_tokens as f64,
        reserves_output: input.reserves_output,
        path: 0.0,
        // Clients of a closed loop start together; so do the requests of no other load.
        wave: f64::from(u8::from(matches!(point.load, Load::Concurrency(_)))),
    };
    let work = &input.pool.work;
    let one = plimsoll_perf::Batch::decode(1.0, prompt.mean);
    let least = floor(work, &input.prior, &one);
    let mean_gap = point.tpot.centre().or(point.itl.mean);
    let gap = mean_gap.or(point.itl.p50);
    if let Some(gap) = gap {
        if gap < least {
            flag(
                "below-the-memory-floor",
                true,
                "tpot",
                format!(
                    "a gap of {:.2} ms between tokens cannot be: reading the weights once takes {:.2} ms on {} devices. Speculative decoding, chunks that carry \
                     several tokens, empty chunks counted as tokens, or another model or accelerator than was said",
                    gap * 1e3,
                    least * 1e3,
                    work.tensor * work.pipeline
                ),
            );
            // A file that is wrong about this may be wrong about the rest.
            sources.push(report(point.origin.clone(), name, 0, 0));
            return;
        }
        let seen = match mean_gap {
            Some(_) => Seen::Gap(offered),
            None => Seen::MedianGap(offered),
        };
        rows.push(Row { source, seen, measured: gap, sd: 0.05, shown_only: false });
    }
    let whole = plimsoll_perf::Batch::chunk(prompt.mean, 0.0);
    let prefill = floor(work, &input.prior, &whole);
    if let Some(first) = point.ttft.centre() {
        let uncached = 1.0 - point.cached_share.unwrap_or(0.0);
        if first < prefill * uncached {
            flag(
                "prefix-cache-suspected",
                false,
                "ttft",
                format!(
                    "a first token after {:.1} ms cannot come from a prompt of {:.0} tokens, which takes {:.1} ms at the device's peak: prompts were cached. \
                     The first token is not used",
                    first * 1e3,
                    prompt.mean,
                    prefill * 1e3
                ),
            );
        } else if point.cached_share.is_none_or(|share| share <= 0.0) {
            rows.push(Row {
                source,
                seen: Seen::First(offered),
                measured: first,
                sd: 0.4,
                shown_only: false,
            });
        }
    }
    if let (Some(rate), Load::AllAtOnce | Load::StaticBatch(_)) =
        (point.output_tokens_per_s, point.load)
    {
        rows.push(Row {
            source,
            seen: Seen::Rate(offered),
            measured: rate,
            sd: 0.08,
            shown_only: false,
        });
    }
    if let (Load::Concurrency(clients), Some(first)) = (point.load, point.ttft.centre()) {
        let held = clients * (prompt.mean + output.mean / 2.0);
        if held > 1.5 * offered.kv_tokens && first < 2.0 * gap.unwrap_or(first) * output.mean * 0.1
        {
            flag(
                "several-replicas-suspected",
                false,
                "concurrency",
                format!(
                    "{clients:.0} clients hold some {held:.0} tokens of context; one replica has room for {:.0}, yet nobody waits for a first token: \
                     several replicas behind one load?",
                    offered.kv_tokens
                ),
            );
        }
    }
    let used = rows.len() - before;
    if used > 0 {
        widen(&mut region.prompt_tokens, prompt.mean);
        if let Load::Concurrency(clients) | Load::StaticBatch(clients) = load {
            widen(&mut region.decodes, clients);
            widen(&mut region.context_tokens, clients * (prompt.mean + output.mean / 2.0));
        }
        widen(&mut region.prefill_tokens, prompt.mean.min(offered.budget));
    }
    sources.push(report(point.origin.clone(), name, used, 0));
}
