//! `calibrate`: step times fitted to what users measured.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use clap::ValueEnum as _;
use plimsoll_evidence::{ResultsError, calibration, lint_sweep, results};
use plimsoll_fleet::Catalog;
use plimsoll_perf::{Rates, RequestPath, constants, dtype};
use plimsoll_report::{
    CalibrationDocument, EngineDocument, SimulationDocument, calibrate_json, calibrate_text,
    calibration_json, engine_json, engine_text,
};
use plimsoll_scenario::Diagnostic;
use plimsoll_sim::{Loop, PoolSpec};
use plimsoll_stats::Seed;
use plimsoll_study::{
    BenchPoint, CalibrateError, CalibrateInput, Calibration, EngineRun, Fit, FitInput, Flag,
    PoolSteps, Record, RunSetup, SimulateInput, SimulatedPool, Spread, calibrate, engine_summary,
    fit, known_run, pool_steps, simulate_known, simulate_run,
};
use plimsoll_units::Tokens;
use wildmatch::WildMatch;

use super::pool::{no_budget, own_model, pool_input, usage};
use super::simulate::{Recorder, Stop, said, shown};
use super::{catalog_of, clock, either};
use crate::args::{CalibrateArgs, Global, KvFormat, PoolArgs, SimulateArgs, WeightFormat};
use crate::failure::Failure;
use crate::{files, heading};

pub(super) fn answer(args: &CalibrateArgs, global: &Global) -> Result<String, Failure> {
    let catalog = catalog_of(global)?;
    may_write(args)?;
    let (points, runs, held_out, flags) = read(args)?;
    let described = describe(&args.pool, &runs, &catalog)?;
    let own = own_model(&described)?;
    let input = pool_input(&described, &catalog, own.as_ref(), None, None)?;
    let given = Given { points: &points, runs: &runs, held_out: &held_out, flags };
    let calibration = fitted(&input, given, &catalog)?;
    let document =
        document(&input, &described, &calibration, &args.into.display().to_string(), global);
    files::write_whole(&args.into, &format!("{:#}\n", calibration_json(&document)))?;
    Ok(either(global, || calibrate_json(&document), || calibrate_text(&document, heading())))
}

/// Where the step times of a validation come from.
pub(super) enum StepTimes<'a> {
    /// Each pool is calibrated on its closed loops, from kernel timings: the built-in constants have seen the logs that ship.
    ClosedLoops,
    /// The built-in constants.
    BuiltIn,
    /// A file that `calibrate` wrote.
    File(&'a Path),
}

/// The names of the runs that step logs hold.
pub(super) fn run_names(name: &str, text: &str) -> Result<Vec<String>, Failure> {
    Ok(read_runs(name, text)?.into_iter().map(|run| run.run).collect())
}

pub(super) fn read_runs(name: &str, text: &str) -> Result<Vec<EngineRun>, Failure> {
    let found = results(name, text)
        .map_err(|errors| Failure::input(errors.iter().map(|e| complaint(name, e)).collect()))?;
    Ok(found.runs)
}

/// The requests of a measured run, served again.
pub(super) fn simulate(
    args: &SimulateArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let catalog = catalog_of(global)?;
    let file = args.file.display().to_string();
    let all = read_runs(&file, &files::read_text(&args.file)?)?;
    let wanted = args.run.as_deref().unwrap_or_default();
    let Some(run) = all.iter().find(|run| run.run == wanted) else {
        let names: Vec<&str> = all.iter().map(|run| run.run.as_str()).collect();
        return Err(usage(
            format!("`{file}` holds no run `{wanted}`"),
            format!("its runs are: {}", names.join(", ")),
        ));
    };
    if run.setup.engine != "vllm" {
        return Err(usage(
            format!(
                "`{wanted}` is of {}; only vLLM's decisions are simulated from logs",
                run.setup.engine
            ),
            "write a scenario with such a pool instead".to_owned(),
        ));
    }
    let described = describe(&PoolArgs::bare(), std::slice::from_ref(run), &catalog)?;
    let input = pool_input(&described, &catalog, None, None, None)?;
    let (steps, mut rates, _) = steps_of(&input, &catalog)?;
    let mut spread = Spread::default();
    if let Some(path) = &args.calibration {
        spread = apply_file(path, &input, &mut rates)?;
    }
    let known = known_run(run, &steps, &rates);
    let last = known.arrivals.iter().map(|a| a.at).max().unwrap_or(0);
    // A closed loop has no last arrival; how long it takes is not known before.
    let seconds = match known.clients {
        Loop::Open => last as f64 / 1e12 + 1e-9,
        Loop::Closed(_) => run.requests.iter().map(|r| r.at + r.e2e).fold(1e-9, f64::max),
    };
    let pool = SimulatedPool {
        name: run.setup.model.clone(),
        devices: 1,
        bandwidth: steps.sheet.bandwidth,
        peak: steps.sheet.peak,
        work: steps.work.clone(),
        spread,
        life: PoolSpec::one(known.limits, known.model, RequestPath::of(&rates, 1.0)),
    };
    let study = SimulateInput {
        window: args.timeline.then_some((seconds / 20.0).max(1e-3)),
        ..SimulateInput::known(&run.run, pool, seconds, Seed::new(global.seed.unwrap_or(0)))
    };
    let mut recorder = Recorder::new(args)?;
    let stop = Stop::new(args.time_limit.get(), global);
    let record = recorder.as_mut().map(|own| own as &mut dyn Record);
    let mut result =
        simulate_known(&study, known.clients, known.arrivals, record, &|| stop.go_on());
    if let Some(recorder) = recorder {
        recorder.finish()?;
    }
    result.notes.extend(stop.notes());
    said(&result, &stop, global, err);
    let document = SimulationDocument {
        broken: &[],
        name: &run.run,
        file: &file,
        from: None,
        step_times: if args.calibration.is_some() { "of the calibration" } else { "built in" },
        result: &result,
    };
    Ok(shown(&document, global))
}

/// Takes the step times of a calibration, where it is of this model and device, and says how gaps spread around them.
fn apply_file(path: &Path, input: &FitInput<'_>, rates: &mut Rates) -> Result<Spread, Failure> {
    let name = path.display().to_string();
    let own = calibration(&files::read_text(path)?).map_err(|error| {
        Failure::one(Diagnostic::about("bad-calibration", name.clone(), error.to_string()))
    })?;
    if own.model != input.name || own.accelerator != input.accelerator.name {
        let message = format!(
            "it is of {} on {}, the runs are of {} on {}",
            own.model, own.accelerator, input.name, input.accelerator.name
        );
        return Err(Failure::one(Diagnostic::about("bad-calibration", name, message)));
    }
    own.apply(rates);
    Ok(own.spread)
}

/// Step logs against our engine: every run is simulated from its setup and its requests.
pub(super) fn validate(
    logs: &[(&str, String)],
    times: &StepTimes<'_>,
    global: &Global,
) -> Result<String, Failure> {
    let catalog = catalog_of(global)?;
    let mut runs = Vec::new();
    for (name, text) in logs {
        runs.extend(read_runs(name, text)?);
    }
    // Limits that differ make another schedule, not another step time.
    let mut pools: BTreeMap<Key, Vec<EngineRun>> = BTreeMap::new();
    for run in runs {
        pools.entry(key(&run.setup)).or_default().push(run);
    }
    let (mut calibrations, mut outcomes) = (Vec::new(), Vec::new());
    for runs in pools.values() {
        let described = describe(&PoolArgs::bare(), runs, &catalog)?;
        let input = pool_input(&described, &catalog, None, None, None)?;
        let (steps, mut rates, _) = steps_of(&input, &catalog)?;
        let mut spread = Spread::default();
        match times {
            StepTimes::BuiltIn => {}
            StepTimes::File(path) => {
                spread = apply_file(path, &input, &mut rates)?;
            }
            StepTimes::ClosedLoops => {
                let (closed, open): (Vec<_>, Vec<_>) =
                    runs.iter().cloned().partition(|r| r.clients.is_some());
                let given =
                    Given { points: &[], runs: &closed, held_out: &open, flags: Vec::new() };
                let calibration = fitted(&input, given, &unfitted(&catalog))?;
                rates = calibration.rates;
                spread = calibration.spread.clone();
                calibrations.push((described, calibration));
            }
        }
        outcomes.extend(runs.iter().map(|run| simulate_run(run, &steps, &rates, &spread)));
    }
    let mut documents = Vec::new();
    for (described, calibration) in &calibrations {
        let input = pool_input(described, &catalog, None, None, None)?;
        documents.push(document(&input, described, calibration, "", global));
    }
    let from = match times {
        StepTimes::ClosedLoops => "fitted to the closed loops, from kernel timings".to_owned(),
        StepTimes::BuiltIn => "built in".to_owned(),
        StepTimes::File(path) => path.display().to_string(),
    };
    let summary = engine_summary(&outcomes);
    let result = EngineDocument { step_times: from, runs: outcomes, summary, pools: documents };
    Ok(either(global, || engine_json(&result), || engine_text(&result, heading())))
}

/// The catalogue with its constants as they were before end-to-end measurements were looked at.
fn unfitted(catalog: &Catalog) -> Catalog {
    let mut catalog = catalog.clone();
    for constant in &mut catalog.step_constants {
        constant.value = constant.prior.unwrap_or(constant.value);
    }
    catalog
}

/// What a calibration is given.
struct Given<'a> {
    points: &'a [BenchPoint],
    runs: &'a [EngineRun],
    held_out: &'a [EngineRun],
    flags: Vec<Flag>,
}

/// The pool's steps, its constants of the catalogue, and its memory budget.
fn steps_of(input: &FitInput<'_>, catalog: &Catalog) -> Result<(PoolSteps, Rates, Fit), Failure> {
    let budget = fit(input).map_err(|e| no_budget(&e, input.model))?;
    let rows = constants(catalog);
    let pool = pool_steps(input, &budget, 1, &rows).map_err(|e| {
        let help = "name an accelerator that `plimsoll catalog accelerators` lists with its peaks";
        usage(e, help.to_owned())
    })?;
    let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    let rates = pool.rates(&values);
    Ok((pool, rates, budget))
}

fn fitted(
    input: &FitInput<'_>,
    given: Given<'_>,
    catalog: &Catalog,
) -> Result<Calibration, Failure> {
    let (pool, prior, budget) = steps_of(input, catalog)?;
    let named = catalog.models.iter().find(|m| m.name == input.name);
    let names = named.into_iter().flat_map(|m| m.aliases.iter().chain([&m.name, &m.title]));
    let mut known_as = vec![input.name.to_lowercase()];
    known_as.extend(names.map(|n| n.to_lowercase()));
    let asked = CalibrateInput {
        known_as,
        pool: &pool,
        prior,
        budget: &budget,
        reserves_output: input.engine.name == "tensorrt-llm",
        points: given.points,
        runs: given.runs,
        held_out: given.held_out,
        flags: given.flags,
        level: 0.9,
    };
    calibrate(&asked).map_err(|error| {
        let mut diagnostics = vec![
            Diagnostic::about("nothing-to-fit", "command line", error.to_string())
                .help("mend what is said of the files, or give others"),
        ];
        let CalibrateError::Nothing { flags, .. } = error;
        diagnostics.extend(flags.iter().map(|flag| {
            let place = format!("{}, {} {}", flag.origin.file, flag.origin.tool, flag.origin.row);
            Diagnostic::about(flag.code, place, format!("`{}`: {}", flag.field, flag.message))
        }));
        Failure::input(diagnostics)
    })
}

fn document<'a>(
    input: &FitInput<'_>,
    described: &PoolArgs,
    calibration: &'a Calibration,
    into: &str,
    global: &Global,
) -> CalibrationDocument<'a> {
    CalibrationDocument {
        version: crate::VERSION,
        as_of: global.as_of.unwrap_or_else(clock).to_string(),
        into: into.to_owned(),
        model: input.name.clone(),
        accelerator: input.accelerator.name.clone(),
        engine: described.engine.clone(),
        weights: dtype(input.format),
        kv_element_bytes: input.kv_element_bytes,
        tensor_parallel: input.placement.tensor,
        pipeline_parallel: input.placement.pipeline,
        expert_parallel: input.placement.expert,
        calibration,
    }
}

/// A calibration replaces a calibration, and nothing else.
fn may_write(args: &CalibrateArgs) -> Result<(), Failure> {
    let whole = |path: &Path| path.canonicalize().ok();
    let into = whole(&args.into);
    if into.is_some() && args.files.iter().any(|file| whole(file) == into) {
        return Err(usage(
            format!("`--into {}` would overwrite what is read", args.into.display()),
            "name another file".to_owned(),
        ));
    }
    let old = std::fs::read_to_string(&args.into);
    if into.is_some() && !old.is_ok_and(|text| text.contains("plimsoll/calibration/v1")) {
        return Err(usage(
            format!("{} is there and is no calibration", args.into.display()),
            "name another file, or remove it".to_owned(),
        ));
    }
    Ok(())
}

/// Points, chosen runs, runs of the same pool that were not chosen, and what was noticed.
type Read = (Vec<BenchPoint>, Vec<EngineRun>, Vec<EngineRun>, Vec<Flag>);

/// Everything the files hold, or everything that is wrong with them.
fn read(args: &CalibrateArgs) -> Result<Read, Failure> {
    let (mut points, mut runs, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    let mut held_out = Vec::new();
    let mut mistakes = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        let text = match files::read_text(path) {
            Ok(text) => text,
            Err(failure) => {
                mistakes.extend(failure.diagnostics());
                continue;
            }
        };
        match results(&name, &text) {
            Ok(found) => {
                points.extend(found.points);
                runs.extend(found.runs);
                flags.extend(found.flags);
            }
            Err(errors) => mistakes.extend(errors.iter().map(|e| complaint(&name, e))),
        }
    }
    if !mistakes.is_empty() {
        return Err(Failure::input(mistakes));
    }
    if args.files.len() > 1 {
        // A tool that writes a file for each load spreads a sweep over files.
        let new = lint_sweep(&points).into_iter().filter(|flag| !flags.contains(flag));
        flags.extend(new.collect::<Vec<_>>());
    }
    if !args.runs.is_empty() {
        let known: Vec<String> = runs.iter().map(|r| r.run.clone()).collect();
        let patterns: Vec<WildMatch> = args.runs.iter().map(|g| WildMatch::new(g.trim())).collect();
        (runs, held_out) =
            runs.into_iter().partition(|run| patterns.iter().any(|p| p.matches(&run.run)));
        for (pattern, text) in patterns.iter().zip(&args.runs) {
            if !known.iter().any(|run| pattern.matches(run)) {
                let held = if known.is_empty() {
                    "none: these are no step logs".to_owned()
                } else {
                    known.join(", ")
                };
                return Err(usage(
                    format!("no run is called `{text}`"),
                    format!("the files hold {held}"),
                ));
            }
        }
    }
    // Another pool's runs are no test of this one.
    held_out
        .retain(|run: &EngineRun| runs.first().is_some_and(|r| key(&r.setup) == key(&run.setup)));
    Ok((points, runs, held_out, flags))
}

type Key = (String, String, String, String, String, u64);

/// What makes two runs of one pool.
fn key(s: &RunSetup) -> Key {
    (
        s.model.clone(),
        s.accelerator.clone(),
        format!("{}@{}", s.engine, s.version),
        s.weights.clone(),
        s.kv_dtype.clone(),
        s.tensor_parallel,
    )
}

pub(super) fn complaint(file: &str, error: &ResultsError) -> Diagnostic {
    // The file is named once, as the place.
    let message = error.to_string();
    let rest = message.strip_prefix(file).map(|m| m.trim_start_matches([':', ',', ' ']));
    let message = rest.unwrap_or(&message).to_owned();
    let diagnostic = Diagnostic::about("bad-evidence", file, message);
    match error.help() {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// The pool: as the step logs say it, or as the command line does.
fn describe(args: &PoolArgs, runs: &[EngineRun], catalog: &Catalog) -> Result<PoolArgs, Failure> {
    let Some(first) = runs.first() else {
        if args.model.is_none() && args.hf_config.is_none() {
            return Err(usage(
                "these files do not say which model was measured".to_owned(),
                "add `--model NAME --accelerator NAME --engine NAME@VERSION`".to_owned(),
            ));
        }
        return Ok(args.clone());
    };
    let own = key(&first.setup);
    if let Some(other) = runs.iter().find(|run| key(&run.setup) != own) {
        let place = format!("{}, line {}", other.origin.file, other.origin.row);
        let words = |(model, device, engine, weights, kv, tensor): &Key| {
            format!("{model} on {tensor} x {device} with {engine}, {weights} weights and {kv} KV")
        };
        let message = format!(
            "run `{}` is of {}, run `{}` of {}: one calibration is of one pool",
            first.run,
            words(&own),
            other.run,
            words(&key(&other.setup))
        );
        return Err(Failure::one(
            Diagnostic::about("setup-differs", place, message)
                .help("calibrate them apart, or choose with `--runs`"),
        ));
    }
    let named =
        |given: &Option<String>, found: &str, canonical: &dyn Fn(&str) -> Option<String>| {
            given.as_ref().is_some_and(|given| canonical(given) != canonical(found))
        };
    let model = |name: &str| catalog.model(name).ok().map(|m| m.name.clone());
    let device = |name: &str| catalog.accelerator(name).ok().map(|a| a.name.clone());
    if named(&args.model, &own.0, &model) || named(&args.accelerator, &own.1, &device) {
        return Err(usage(
            format!("the step logs are of {} on {}", own.0, own.1),
            "leave `--model` and `--accelerator` out: step logs carry their own setup".to_owned(),
        ));
    }
    let word = |text: &str, what: &str| {
        usage(
            format!("run `{}`: `{text}` is no {what} known here", first.run),
            "mend the run's `setup`".to_owned(),
        )
    };
    let setup = &first.setup;
    // What a log names wrongly is wrong in the log, not on the command line.
    let unknown = |error: plimsoll_fleet::Unknown| {
        let place = format!("{}, line {}", first.origin.file, first.origin.row);
        Failure::one(Diagnostic::about("bad-evidence", place, error.to_string()).help(error.help()))
    };
    if args.hf_config.is_none() {
        catalog.model(&setup.model).map_err(unknown)?;
    }
    catalog.accelerator(&setup.accelerator).map_err(unknown)?;
    catalog.engine(&own.2).map_err(unknown)?;
    Ok(PoolArgs {
        model: args.hf_config.is_none().then(|| setup.model.clone()),
        accelerator: Some(setup.accelerator.clone()),
        engine: own.2,
        tensor_parallel: setup.tensor_parallel,
        weights: Some(
            WeightFormat::from_str(&setup.weights, true)
                .map_err(|_| word(&setup.weights, "storage of weights"))?,
        ),
        kv_dtype: KvFormat::from_str(&setup.kv_dtype, true)
            .map_err(|_| word(&setup.kv_dtype, "storage of KV"))?,
        max_num_seqs: Some(setup.max_num_seqs),
        max_num_batched_tokens: Some(Tokens::new(setup.max_num_batched_tokens)),
        block_size: Some(Tokens::new(setup.block_size)),
        ..args.clone()
    })
}
