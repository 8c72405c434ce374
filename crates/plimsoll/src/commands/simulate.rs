//! `simulate`: one replica of each pool of a scenario, or the engine of a measured run.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plimsoll_perf::constants;
use plimsoll_report::{OutcomesCsv, SimulationDocument, Trace, simulate_json, simulate_text};
use plimsoll_scenario::sections::Role;
use plimsoll_scenario::{
    Diagnostic, Loaded, SimulatedTimes, lower_demand, simulated_classes, simulated_pool,
};
use plimsoll_sim::{Outcome, Stretch};
use plimsoll_stats::Seed;
use plimsoll_study::{
    Record, SimulateInput, SimulatedPool, Simulation, Verdict, busiest_hours, simulate,
};

use super::performance::times;
use super::pool::usage;
use super::{either, fit, scenario, today};
use crate::args::{Global, SimulateArgs, SimulatedHour};
use crate::failure::Failure;
use crate::files::{self, Growing, unwritable};
use crate::heading;

/// Windows of a timeline at most; longer runs get wider ones.
const WINDOWS_MOST: f64 = 10_000.0;

/// Steps and stretches of one run at most: days of a busy engine.
const MOVES: u64 = 4_000_000_000;

pub(super) fn answer(
    args: &SimulateArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    for (option, zero) in
        [("--duration", args.duration.get() <= 0.0), ("--time-limit", args.time_limit.get() <= 0.0)]
    {
        if zero {
            return Err(usage(
                format!("`{option} 0` leaves no time to simulate"),
                "leave it out for the default".to_owned(),
            ));
        }
    }
    let longest = 86_400.0 * 200.0;
    if args.duration.get() + args.warm_up.get() > longest {
        return Err(usage(
            "the clock of a simulation holds 200 days".to_owned(),
            "give a shorter `--duration` or `--warm-up`".to_owned(),
        ));
    }
    if args.run.is_some() {
        return super::calibrate::simulate(args, global, err);
    }
    let text = files::read_text(&args.file)?;
    if text.lines().next().is_some_and(|l| l.contains("plimsoll-engine-run/1")) {
        let runs = super::calibrate::run_names(&args.file.display().to_string(), &text)?;
        return Err(usage(
            "step logs hold several runs, and none is named".to_owned(),
            format!("add `--run NAME`: {}", runs.join(", ")),
        ));
    }
    let loaded = scenario(&args.file, global)?;
    let demand = lower_demand(&loaded.scenario, today(global, &loaded)).map_err(Failure::one)?;
    let (baseline, launch) = busiest_hours(&demand.classes).map_err(|e| failed(&loaded, &e))?;
    let hours = demand.classes.iter().map(|c| c.hours.len()).max().unwrap_or(0);
    let (hour, events) = match (args.hour, launch) {
        (None | Some(SimulatedHour::Launch), Some(launch)) => (launch, true),
        (None | Some(SimulatedHour::Baseline), _) => (baseline, false),
        (Some(SimulatedHour::Launch), None) => {
            return Err(usage(
                "no event changes the demand within the horizon".to_owned(),
                "leave `--hour launch` out".to_owned(),
            ));
        }
        (Some(SimulatedHour::Number(hour)), _) if hour < hours => (hour, true),
        (Some(SimulatedHour::Number(hour)), _) => {
            return Err(usage(
                format!("the horizon has no hour {hour}"),
                format!("its hours are 0 to {}", hours.saturating_sub(1)),
            ));
        }
    };
    let (pools, notes) = pools(args, &loaded, &demand, global)?;
    let study = &loaded.scenario.study;
    let threads = global.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        usize::from,
    );
    let input = SimulateInput {
        pools,
        hour,
        events,
        seconds: args.duration.get(),
        warm_up: args.warm_up.get(),
        runs: args.runs.unwrap_or(study.runs.get_u32()),
        level: study.confidence.get(),
        seed: Seed::new(global.seed.unwrap_or(study.seed.get())),
        threads,
        moves: MOVES,
        window: args.timeline.then_some(study.window.get().max(args.duration.get() / WINDOWS_MOST)),
    };
    let mut recorder = Recorder::new(args, &input)?;
    let stop = Stop::new(args.time_limit.get(), global);
    let result = match &mut recorder {
        Some(recorder) => simulate(&input, Some(recorder), &|| stop.go_on()),
        None => simulate::<Recorder>(&input, None, &|| stop.go_on()),
    };
    let mut result = result.map_err(|e| failed(&loaded, &e))?;
    if let Some(recorder) = recorder {
        recorder.finish()?;
    }
    let too_long: u64 = result.classes.iter().map(|c| c.too_long).sum();
    if too_long > 0 {
        result.notes.push(format!(
            "{too_long} requests are longer than `max_model_len` or the cache, and were refused"
        ));
    }
    if result.classes.iter().all(|c| c.offered == 0) {
        result.notes.push("no request came, so nothing was learnt".to_owned());
    }
    let learnt = std::mem::take(&mut result.notes);
    result.notes = learnt
        .into_iter()
        .chain(demand.notes.iter().cloned())
        .chain(notes)
        .chain(stop.notes())
        .collect();
    said(&result, &stop, global, err);
    let calibrated = loaded.scenario.pool.iter().any(|p| p.calibration.is_some());
    let name = args.file.display().to_string();
    let document = SimulationDocument {
        name: &study.name,
        file: &name,
        from: Some(demand.hour_label(hour)),
        step_times: if calibrated { "of the pools' calibrations" } else { "built in" },
        result: &result,
    };
    Ok(shown(&document, global))
}

pub(super) fn shown(document: &SimulationDocument<'_>, global: &Global) -> String {
    either(
        global,
        || simulate_json(document, crate::VERSION),
        || simulate_text(document, heading()),
    )
}

fn failed(loaded: &Loaded, error: &dyn std::fmt::Display) -> Failure {
    let file = loaded.source.name();
    Failure::one(Diagnostic::about("cannot-simulate", file, error.to_string()))
}

/// The pools that are simulated, and what the reader should know of them.
fn pools(
    args: &SimulateArgs,
    loaded: &Loaded,
    demand: &plimsoll_scenario::Demand,
    global: &Global,
) -> Result<(Vec<SimulatedPool>, Vec<String>), Failure> {
    let budgets = fit::pools(loaded, global)?;
    let rows = constants(&loaded.catalog);
    let (mut pools, mut notes) = (Vec::new(), Vec::new());
    let about = |code: &'static str, message: String, help: String| {
        Failure::one(Diagnostic::about(code, loaded.source.name(), message).help(help))
    };
    if let Some(name) = &args.pool
        && !loaded.scenario.pool.iter().any(|p| p.name.as_str() == name)
    {
        let known: Vec<&str> = loaded.scenario.pool.iter().map(|p| p.name.as_str()).collect();
        return Err(usage(
            format!("the scenario has no pool `{name}`"),
            format!("its pools are: {}", known.join(", ")),
        ));
    }
    for (pool, budget) in loaded.scenario.pool.iter().zip(&budgets) {
        let name = pool.name.as_str();
        if args.pool.as_deref().is_some_and(|asked| asked != name) {
            continue;
        }
        if pool.role != Role::Both {
            notes.push(format!("pool `{name}` does one phase only and is not simulated"));
            continue;
        }
        // Only vLLM's cache is simulated; of others the hits that classes state are taken.
        let vllm = loaded.catalog.engine(pool.engine.as_str()).is_ok_and(|e| e.name == "vllm");
        let caches = (budget.prefix_caching, vllm);
        let (classes, own_notes) = simulated_classes(&loaded.scenario, pool, demand, caches);
        if budget.prefix_caching && !vllm {
            notes.push(format!(
                "pool `{name}`: the prefix cache of {} is not simulated, only hits that classes state count",
                pool.engine.as_str()
            ));
        }
        if classes.is_empty() {
            notes.push(format!("pool `{name}` serves no class and is not simulated"));
            continue;
        }
        if !budget.fits {
            return Err(about(
                "does-not-fit",
                format!("pool `{name}` does not fit its devices, so nothing can run on it"),
                "`plimsoll fit` says what would make it fit".to_owned(),
            ));
        }
        notes.extend(own_notes);
        let own = times(loaded, &args.file, pool, budget, &rows)?;
        notes.extend(own.notes.iter().map(|note| format!("pool `{name}`: {note}")));
        let engine = own.input.engine;
        let times = SimulatedTimes { steps: own.steps, rates: own.rates, spread: own.spread };
        let (simulated, own_notes) = simulated_pool(pool, engine, budget, times, classes);
        pools.push(simulated);
        notes.extend(own_notes);
    }
    if pools.is_empty() {
        return Err(about(
            "nothing-to-simulate",
            "no pool of the scenario serves a class on both phases".to_owned(),
            match notes.is_empty() {
                true => "add a `[[pool]]`, or a `[[route]]` to one".to_owned(),
                false => notes.join("; "),
            },
        ));
    }
    Ok((pools, notes))
}

/// Says on stderr how long it took.
pub(super) fn said(result: &Simulation, stop: &Stop, global: &Global, err: &mut dyn Write) {
    if global.quiet {
        return;
    }
    let requests: u64 = result.classes.iter().map(|c| c.offered).sum();
    let seconds = stop.started.elapsed().as_secs_f64();
    let worst = match result.verdict {
        None | Some(Verdict::Stable) => "",
        Some(Verdict::Backlogged | Verdict::Overloaded) => ", with waiting",
    };
    // Talk that cannot be written is not missed.
    let _ = writeln!(
        err,
        "simulated {requests} requests{worst} in {seconds:.2} s ({:.0} a second)",
        requests as f64 / seconds.max(1e-9)
    );
}

/// Writes down what happens, where that is asked for.
pub(super) struct Recorder {
    names: BTreeMap<String, Vec<String>>,
    outcomes: Option<(OutcomesCsv<Growing>, std::path::PathBuf)>,
    trace: Option<(Trace<Growing>, std::path::PathBuf)>,
    error: Option<Failure>,
}

impl Recorder {
    pub(super) fn new(args: &SimulateArgs, input: &SimulateInput) -> Result<Option<Self>, Failure> {
        let outcomes = match &args.outcomes {
            Some(path) => {
                let csv = OutcomesCsv::new(Growing::create(path)?);
                Some((csv.map_err(|e| unwritable(path, &e))?, path.clone()))
            }
            None => None,
        };
        let trace = match &args.trace {
            Some(path) => {
                let trace = Trace::new(Growing::create(path)?);
                Some((trace.map_err(|e| unwritable(path, &e))?, path.clone()))
            }
            None => None,
        };
        if outcomes.is_none() && trace.is_none() {
            return Ok(None);
        }
        let names = input
            .pools
            .iter()
            .map(|p| (p.name.clone(), p.classes.iter().map(|c| c.class.name.clone()).collect()))
            .collect();
        Ok(Some(Self { names, outcomes, trace, error: None }))
    }

    fn class(&self, pool: &str, class: u16) -> String {
        self.names.get(pool).and_then(|n| n.get(class as usize)).cloned().unwrap_or_default()
    }

    /// The first failure is told at the end; nothing half-written stays.
    fn keep(&mut self, path: &Path, result: Result<(), String>) {
        if let Err(error) = result
            && self.error.is_none()
        {
            self.error = Some(unwritable(path, &error));
        }
    }

    pub(super) fn finish(self) -> Result<(), Failure> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some((csv, path)) = self.outcomes {
            csv.finish().map_err(|e| unwritable(&path, &e))?.finish()?;
        }
        if let Some((trace, path)) = self.trace {
            trace.finish().map_err(|e| unwritable(&path, &e))?.finish()?;
        }
        Ok(())
    }
}

impl Record for Recorder {
    fn outcome(&mut self, pool: &str, run: u32, o: &Outcome) {
        let class = self.class(pool, o.class);
        if let Some((csv, path)) = &mut self.outcomes {
            let (result, path) = (csv.add(pool, &class, run, o), path.clone());
            self.keep(&path, result.map_err(|e| e.to_string()));
        }
        if run == 0
            && let Some((trace, path)) = &mut self.trace
        {
            let (result, path) = (trace.request(pool, &class, o), path.clone());
            self.keep(&path, result.map_err(|e| e.to_string()));
        }
    }

    fn stretch(&mut self, pool: &str, stretch: &Stretch) {
        if let Some((trace, path)) = &mut self.trace {
            let (result, path) = (trace.stretch(pool, stretch), path.clone());
            self.keep(&path, result.map_err(|e| e.to_string()));
        }
    }
}

/// Whether somebody pressed Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// When to stop although there is more to do.
pub(super) struct Stop {
    started: Instant,
    limit: f64,
    progress: bool,
    out_of_time: AtomicBool,
    last: std::sync::atomic::AtomicU64,
}

impl Stop {
    #[expect(
        clippy::disallowed_methods,
        reason = "a limit on computing, and talk; no result holds it"
    )]
    pub(super) fn new(limit: f64, global: &Global) -> Self {
        static HANDLER: OnceLock<()> = OnceLock::new();
        HANDLER.get_or_init(|| {
            // Without a handler Ctrl-C ends the program, as it always did.
            let _ = ctrlc::set_handler(|| {
                if INTERRUPTED.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            });
        });
        INTERRUPTED.store(false, Ordering::Relaxed);
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        Self {
            started: Instant::now(),
            limit,
            progress: terminal && !global.quiet,
            out_of_time: AtomicBool::new(false),
            last: std::sync::atomic::AtomicU64::new(0),
        }
    }

    pub(super) fn go_on(&self) -> bool {
        let elapsed = self.started.elapsed();
        if elapsed.as_secs_f64() > self.limit {
            self.out_of_time.store(true, Ordering::Relaxed);
            return false;
        }
        let second = elapsed.as_secs();
        if self.progress && self.last.swap(second, Ordering::Relaxed) < second {
            let _ = write!(
                std::io::stderr(),
                "\rsimulating for {second} s; Ctrl-C stops and says what was learnt "
            );
        }
        !INTERRUPTED.load(Ordering::Relaxed)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.out_of_time.load(Ordering::Relaxed) {
            notes.push(format!(
                "stopped after {} s of computing, before its end: `--time-limit` gives it more",
                self.limit
            ));
        }
        if INTERRUPTED.load(Ordering::Relaxed) {
            notes.push("interrupted before its end".to_owned());
        }
        notes
    }
}
