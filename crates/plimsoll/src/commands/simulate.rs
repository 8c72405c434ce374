//! `simulate`: the fleet of a scenario, or the engine of a measured run.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plimsoll_report::{OutcomesCsv, SimulationDocument, Trace, simulate_json, simulate_text};
use plimsoll_scenario::{Demand, Diagnostic, Loaded, SimulatedSpan, class_targets};
use plimsoll_sim::{Attempt, Stretch};
use plimsoll_study::{
    Record, Simulation, Source, Spell, Verdict, broken_promises, busiest_hours, simulate, too_short,
};
use plimsoll_workload::Shift;

use super::pool::usage;
use super::{either, fleet, planned, replay, today};
use crate::args::{Global, SimulateArgs, SimulatedHour};
use crate::failure::Failure;
use crate::files::{self, Growing, unwritable};
use crate::heading;

/// Windows of a timeline at most; longer runs get wider ones.
const WINDOWS_MOST: f64 = 10_000.0;

/// What the clock of a simulation holds, with room to work off what is left, in seconds.
const LONGEST: f64 = 86_400.0 * 200.0;

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
    if args.duration.get() + args.warm_up.get() > LONGEST {
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
    let loaded = planned(&args.file, global)?;
    let demand = loaded.demand(today(global, &loaded)).map_err(Failure::one)?;
    let seed = fleet::seed(&loaded, global);
    let trace = args.replay.as_ref().map(|file| replay::trace(args, file, seed)).transpose()?;
    let (span, from) = match &trace {
        Some(trace) => {
            if trace.trace.span() > LONGEST {
                return Err(usage(
                    "the clock of a simulation holds 200 days, and the trace is longer".to_owned(),
                    "cut it with `--from` and `--to`".to_owned(),
                ));
            }
            // The last request counts, too.
            let last = trace.trace.requests().last().map_or(0.0, |request| request.at + 1e-3);
            (fleet::one_hour(0, false, 0.0, trace.trace.span().max(last)), None)
        }
        None => {
            let span = span(args, &loaded, &demand)?;
            let hour = span.spells.first().map_or(0, |spell| spell.hour);
            (span, Some(demand.hour_label(hour)))
        }
    };
    let pools = fleet::pools(&loaded, &args.file, args.pool.as_deref(), global)?;
    let (mut input, notes) =
        fleet::input(&loaded, &demand, pools, args.pool.is_none(), &span, global);
    let study = &loaded.scenario.study;
    let several = span.spells.len() > 1;
    // Every hour of a horizon is much by itself.
    input.runs = args.runs.unwrap_or(match (&trace, several) {
        // Its requests are the same every time.
        (Some(_), _) => 1,
        (None, true) => 2,
        (None, false) => study.runs.get_u32(),
    });
    let seconds = input.seconds;
    input.window = args.timeline.then_some(study.window.get().max(seconds / WINDOWS_MOST));
    input.chance = !args.no_failures;
    input.lever = Shift { rate: args.load.get(), ..Shift::NONE };
    let mut notes = notes;
    if let Some(trace) = trace {
        let classes = trace.classes(&input, &loaded)?;
        notes.retain(|note| !of_classes(note));
        notes.extend(trace.said(input.runs));
        if let Some(pool) = &args.pool {
            notes.push(format!("all of the trace goes to pool `{pool}`, whatever routes say"));
        }
        input.source = Source::Trace(trace.trace, classes);
    }
    if input.classes.is_empty() {
        return Err(failed(&loaded, &"no class goes to what is simulated"));
    }
    let mut recorder = Recorder::new(args)?;
    let stop = Stop::new(args.time_limit.get(), global);
    let result = match &mut recorder {
        Some(recorder) => simulate(&input, Some(recorder), &|| stop.go_on()),
        None => simulate(&input, None, &|| stop.go_on()),
    };
    let mut result = result.map_err(|e| failed(&loaded, &e))?;
    if let Some(recorder) = recorder {
        recorder.finish()?;
    }
    let too_long: u64 = result.classes.iter().map(|c| c.too_long).sum();
    if too_long > 0 {
        result.notes.push(format!(
            "{too_long} tasks have requests longer than `max_model_len`, a cache or a limit, which were refused"
        ));
    }
    if result.classes.iter().all(|c| c.offered == 0) {
        result.notes.push("no task came, so nothing was learnt".to_owned());
    }
    let broken = broken_promises(&result, &class_targets(&loaded.scenario, &input.classes));
    result.notes.extend(too_short(&result, &input));
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
        from,
        step_times: if calibrated { "of the pools' calibrations" } else { "built in" },
        result: &result,
        broken: &broken,
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

/// Whether a note is about what classes ask for, which a trace asks for instead.
fn of_classes(note: &str) -> bool {
    note.starts_with("the cache hits of") || note.starts_with("the prefix cache is simulated for")
}

/// The hour of the horizon that is asked for, and whether events count in it.
pub(super) fn chosen_hour(
    asked: Option<SimulatedHour>,
    loaded: &Loaded,
    demand: &Demand,
) -> Result<(usize, bool), Failure> {
    let (baseline, launch) = busiest_hours(&demand.classes).map_err(|e| failed(loaded, &e))?;
    let hours = hours_of(demand);
    match (asked, launch) {
        (None | Some(SimulatedHour::Launch), Some(launch)) => Ok((launch, true)),
        (None | Some(SimulatedHour::Baseline), _) => Ok((baseline, false)),
        (Some(SimulatedHour::Launch), None) => Err(usage(
            "no event changes the demand within the horizon".to_owned(),
            "leave `--hour launch` out".to_owned(),
        )),
        (Some(SimulatedHour::Number(hour)), _) if hour < hours => Ok((hour, true)),
        (Some(SimulatedHour::Number(hour)), _) => Err(no_hour(hour, hours)),
        (Some(SimulatedHour::From(..) | SimulatedHour::All), _) => Err(usage(
            "a curve is of one hour's mix".to_owned(),
            "name one hour, `launch` or `baseline`".to_owned(),
        )),
    }
}

fn hours_of(demand: &Demand) -> usize {
    demand.classes.iter().map(|c| c.hours.len()).max().unwrap_or(0)
}

fn no_hour(hour: usize, hours: usize) -> Failure {
    usage(
        format!("the horizon has no hour {hour}"),
        format!("its hours are 0 to {}", hours.saturating_sub(1)),
    )
}

/// When it takes place.
fn span(args: &SimulateArgs, loaded: &Loaded, demand: &Demand) -> Result<SimulatedSpan, Failure> {
    let warm_up = args.warm_up.get();
    let hours = hours_of(demand);
    let (first, last) = match args.hour {
        Some(SimulatedHour::All) => (0, hours),
        Some(SimulatedHour::From(first, last)) if last <= hours => (first, last),
        Some(SimulatedHour::From(_, last)) => return Err(no_hour(last, hours)),
        one => {
            let (hour, events) = chosen_hour(one, loaded, demand)?;
            return Ok(fleet::one_hour(hour, events, warm_up, args.duration.get()));
        }
    };
    let until = |hour: usize| warm_up + (hour + 1 - first) as f64 * 3600.0;
    let spell = |hour: usize| Spell { until: until(hour), hour, events: true };
    let seconds = (last - first) as f64 * 3600.0;
    Ok(SimulatedSpan { spells: (first..last).map(spell).collect(), warm_up, seconds })
}

/// Says on stderr how long it took.
pub(super) fn said(result: &Simulation, stop: &Stop, global: &Global, err: &mut dyn Write) {
    if global.quiet {
        return;
    }
    let requests: u64 = result.classes.iter().map(|c| c.offered).sum();
    let calls: u64 = result.classes.iter().map(|c| c.attempts.sent).sum();
    let seconds = stop.seconds();
    let worst = match result.verdict {
        None | Some(Verdict::Stable) => "",
        Some(Verdict::Backlogged | Verdict::Overloaded) => ", with waiting",
    };
    // Talk that cannot be written is not missed.
    let _ = writeln!(
        err,
        "simulated {requests} tasks{worst} in {seconds:.2} s ({:.0} attempts a second)",
        calls as f64 / seconds.max(1e-9)
    );
}

/// Writes down what happens, where that is asked for.
pub(super) struct Recorder {
    outcomes: Option<(OutcomesCsv<Growing>, std::path::PathBuf)>,
    trace: Option<(Trace<Growing>, std::path::PathBuf)>,
    error: Option<Failure>,
}

impl Recorder {
    pub(super) fn new(args: &SimulateArgs) -> Result<Option<Self>, Failure> {
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
        Ok(Some(Self { outcomes, trace, error: None }))
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
    fn attempt(&mut self, target: &str, class: &str, run: u32, attempt: &Attempt<'_>) {
        if let Some((csv, path)) = &mut self.outcomes {
            let (result, path) = (csv.add(target, class, run, attempt), path.clone());
            self.keep(&path, result.map_err(|e| e.to_string()));
        }
        if run == 0
            && let Some((trace, path)) = &mut self.trace
        {
            let (result, path) = (trace.attempt(target, class, attempt), path.clone());
            self.keep(&path, result.map_err(|e| e.to_string()));
        }
    }

    fn stretch(&mut self, pool: &str, replica: usize, stretch: &Stretch) {
        if let Some((trace, path)) = &mut self.trace {
            let (result, path) = (trace.stretch(pool, replica, stretch), path.clone());
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
    /// Whoever waits, where that is not a shell.
    work: Option<plimsoll_web::Work>,
}

impl Stop {
    #[expect(
        clippy::disallowed_methods,
        reason = "a limit on computing, and talk; no result holds it"
    )]
    pub(super) fn new(limit: f64, global: &Global) -> Self {
        static HANDLER: OnceLock<()> = OnceLock::new();
        let work = global.typed.as_ref().map(|typed| typed.work.clone());
        if work.is_none() {
            INTERRUPTED.store(false, Ordering::Relaxed);
        }
        // Ctrl-C is for whoever has the shell.
        let handle = work.is_none();
        HANDLER.get_or_init(|| {
            if !handle {
                return;
            }
            // Without a handler Ctrl-C ends the program, as it always did.
            let _ = ctrlc::set_handler(|| {
                if INTERRUPTED.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            });
        });
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        Self {
            started: Instant::now(),
            limit,
            progress: terminal && !global.quiet,
            out_of_time: AtomicBool::new(false),
            last: std::sync::atomic::AtomicU64::new(0),
            work,
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
        match &self.work {
            Some(work) => work.go_on(),
            None => !INTERRUPTED.load(Ordering::Relaxed),
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
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
