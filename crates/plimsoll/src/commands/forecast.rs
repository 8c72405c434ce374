//! What will be asked, and what a scenario's ledger lets expect.

use std::io::Write;
use std::num::NonZero;
use std::path::Path;

use jiff::civil::{Date, Weekday};
use plimsoll_forecast::{
    Forecast, ForecastError, ForecastInput, Line, Memory, forecast, inflection,
};
use plimsoll_ledger::{
    Classing, HistoryInput, HistoryScan, Ledger, LedgerError, ScanInput, ServiceInput, ServiceSlo,
};
use plimsoll_report::{
    ClassesBy, ForecastFile, ForecastHead, InflectionFile, LevelsFile, ScenarioRef, forecast_html,
    forecast_pictures, forecast_text,
};
use plimsoll_scenario::{Diagnostic, Foresight, Loaded, Range, horizon, startup_p90};
use plimsoll_stats::Seed;
use plimsoll_units::Seconds;
use plimsoll_workload::{Change, History, Quantity, ThreePoint};
use serde_json::{Value, json};
use wildmatch::WildMatch;

use super::ledger::ledger_failure;
use super::pool::usage;
use super::source::{Source, named, threads_of};
use super::{clock, either, paged, scenario, tell, threads, today};
use crate::args::{ForecastArgs, Global};
use crate::failure::Failure;
use crate::{files, heading};

/// The seed where none is given.
const SEED: u64 = 7;
/// The quantile that is sized for where nobody says another.
const SIZING: f64 = 0.95;
/// Clients of a series that are told apart at most, where a scenario asks.
const CLIENTS: usize = 8;
/// How far is looked by default, in seconds: the furthest of these within an eighth of the history.
const HORIZONS: [u64; 12] =
    [300, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 259_200, 604_800, 1_209_600, 2_419_200];
/// Steps of a history are counted in so many parts, so that a gap within one is seen.
const PARTS: u32 = 6;
/// How long a start takes where nobody says it, nine times in ten, in seconds: what the phases of a pool that says nothing of them come to.
const STARTUP_S: f64 = 1250.0;

/// Forecasts a ledger or logs.
pub(super) fn answer(
    args: &ForecastArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let source = Source::open(&args.source, Some(&args.log), global)?;
    let ledger = source.ledger();
    let loaded = args.scenario.as_deref().map(|file| scenario(file, global)).transpose()?;
    let name = joined(args.source.iter().map(|file| file.display().to_string()));
    let classes = ClassesBy {
        columns: args.by.clone(),
        most: usize::from(args.classes),
        named: loaded.as_ref().map_or_else(Vec::new, matched),
        only: args.only.clone(),
        series: args.series.clone(),
    };
    let seconds = |at: &Option<jiff::Timestamp>| at.as_ref().map(|at| at.as_second());
    let asked = Asked {
        classes: &classes,
        step: args.step.map(|step| whole_step(step, &name)).transpose()?,
        from_s: seconds(&args.from),
        until_s: seconds(&args.until),
    };
    let counted =
        asked.count(ledger, &name, global).map_err(|failure| with(failure, &source, &name))?;
    let history = &counted.scan.history;
    if let (false, Some(_)) = (history.absolute, args.from.or(args.until)) {
        let message = "its times count from the start of the log, and no date cuts them";
        let help = "`plimsoll ingest --start` says when the log began";
        return Err(Failure::one(Diagnostic::about("no-clock", name, message).help(help)));
    }
    let mut notes = source.warnings();
    notes.extend(counted.notes());
    let told = args.by.len() + args.only.len() + classes.named.len();
    if !counted.of_requests && told > 0 {
        notes.push("what is counted over windows knows no columns: its clients are the classes, whatever `--by`, `--where` or the scenario say".to_owned());
    }
    let changes = loaded.as_ref().map_or_else(Vec::new, changes);
    let changes = if history.absolute { changes } else { no_dates(changes, &mut notes) };
    let as_of =
        loaded.as_ref().map_or_else(|| global.as_of.unwrap_or_else(clock), |l| today(global, l));
    let steps = match args.horizon {
        Some(ahead) => whole_steps(ahead, counted.step_s, &name)?,
        None => match &loaded {
            Some(loaded) if history.absolute => to_the_end(loaded, history, &counted, as_of)?,
            _ => an_eighth(history, counted.step_s),
        },
    };
    let sizing = match (&args.quantile, &loaded) {
        (Some(own), _) => own.get(),
        (None, Some(loaded)) => loaded.scenario.study.demand_quantile.get(),
        (None, None) => SIZING,
    };
    if !(0.5..=0.999).contains(&sizing) {
        return Err(usage(
            format!("a demand is not sized for its {sizing} quantile"),
            "write `--quantile 0.95`; from 0.5 to 0.999".to_owned(),
        ));
    }
    let scored = plimsoll_forecast::scored_level(sizing);
    if (scored - sizing).abs() > 1e-9 {
        notes.push(format!(
            "models are chosen and scored at the {scored} quantile, the closest to {sizing} that is"
        ));
    }
    let memory = args.levels.as_deref().map(levels).transpose()?.unwrap_or_default();
    let seed = global.seed.unwrap_or(SEED);
    let input = ForecastInput {
        history,
        step_s: counted.step_s,
        horizon: steps,
        sizing,
        changes: &changes,
        memory: &memory,
        seed: Seed::new(seed),
        threads: threads(global),
    };
    let found =
        forecast(&input).map_err(|error| with(no_forecast(&error, &name), &source, &name))?;
    notes.extend(clock_changes(&found));
    let inflections = watched(args, loaded.as_ref(), ledger, &asked, &name, global, &mut notes)?;
    let slo = loaded.as_ref().map_or_else(Vec::new, |loaded| objectives(loaded, &classes));
    let basis = if counted.of_requests {
        let input = ServiceInput {
            scan: asked.scan(global),
            from_s: Some(found.from_s),
            until_s: Some(found.outlook.start_s),
            slo,
        };
        let service = ledger.service(&input).map_err(|error| ledger_failure(&error))?;
        service.iter().map(|own| json!(own)).collect()
    } else {
        Vec::new()
    };
    let head = ForecastHead {
        version: crate::VERSION.to_owned(),
        as_of: as_of.to_string(),
        source: name,
        scenario: loaded.as_ref().zip(args.scenario.as_ref()).map(|(loaded, file)| ScenarioRef {
            file: file.display().to_string(),
            hash: hash(loaded.source.text()),
        }),
        classes: ClassesBy { series: counted.series.clone(), ..classes.clone() },
        sizing,
        seed,
        backtest: args.backtest,
        basis,
        notes,
        inflections,
        memory: memory.clone(),
    };
    let mut file = ForecastFile::new(&found, &changes, head);
    file.id = hash(&json!(file).to_string());
    if let Some(out) = &args.out {
        files::write_whole(out, &format!("{:#}\n", json!(file)))?;
        tell(
            global,
            err,
            &format!(
                "wrote {}: hold it against what comes with `plimsoll reconcile {} LEDGER`",
                out.display(),
                out.display()
            ),
        );
    }
    if let Some(directory) = &args.pictures {
        files::directory(directory)?;
        for (name, picture) in forecast_pictures(&file, &found) {
            files::write_whole(&directory.join(&name), &picture)?;
            tell(global, err, &format!("wrote {}", directory.join(name).display()));
        }
    }
    paged(args.html.as_deref(), || forecast_html(&file, &found), global, err)?;
    Ok(either(global, || json!(file), || forecast_text(&file, &found, heading())))
}

/// What is wrong, with what was wrong with the rows before.
fn with(failure: Failure, source: &Source, name: &str) -> Failure {
    let rows = source.warnings().into_iter().map(|said| Diagnostic::about("rows", name, said));
    Failure::input(rows.chain(failure.diagnostics()).collect())
}

/// What the ledger of a scenario's study lets expect; none where there is none.
pub(super) fn foresight(
    loaded: &Loaded,
    file: &Path,
    global: &Global,
) -> Result<Option<Foresight>, Failure> {
    let study = &loaded.scenario.study;
    let Some(own) = &study.ledger else { return Ok(None) };
    let path = file.parent().unwrap_or(Path::new("")).join(own);
    let source = Source::open(&[path], None, global)?;
    let as_of = today(global, loaded);
    let (start, hours) = horizon(&loaded.scenario, as_of).map_err(Failure::one)?;
    let classes = ClassesBy { named: matched(loaded), most: CLIENTS, ..ClassesBy::default() };
    if classes.named.is_empty() {
        let message = "no class says by `match` which rows of it are its own";
        let help = format!("write `match = {{ route = \"…\" }}` in the classes that `{own}` knows");
        return Err(Failure::one(
            Diagnostic::about("missing-key", file.display().to_string(), message).help(help),
        ));
    }
    // What came after the horizon begins is not known when it is planned.
    let asked =
        Asked { classes: &classes, step: None, from_s: None, until_s: Some(start.as_second()) };
    let counted = asked.count(source.ledger(), own, global)?;
    let history = &counted.scan.history;
    if !history.absolute {
        let message = "its times count from the start of the log, so nothing says what it lets expect of a date";
        let help = "`plimsoll ingest --start 2026-11-01T00:00:00Z` says when the log began";
        return Err(Failure::one(Diagnostic::about("no-clock", own.as_str(), message).help(help)));
    }
    // What has begun within the history is taken out of it: events are applied to the hours themselves.
    let end = history.end_s();
    let begun: Vec<Change> = changes(loaded)
        .into_iter()
        .filter(|change| change.from_s < end)
        .map(|change| Change {
            until_s: Some(change.until_s.map_or(end, |to| to.min(end))),
            ..change
        })
        .collect();
    let step_s = counted.step_s.min(3600);
    let until = start.as_second() + 3600 * i64::try_from(hours).unwrap_or(0);
    let steps = (until - end).div_euclid(i64::from(step_s)) + 1;
    if history.is_empty() || !(1..=20_000).contains(&steps) {
        let message = if history.is_empty() {
            format!("holds no whole step before {start}, when the study begins")
        } else {
            format!(
                "ends at {}, and the study at {}: too far ahead to be forecast",
                moment(end),
                moment(until)
            )
        };
        let help =
            "let `study.start` and `study.horizon` follow on the ledger, or ingest what came since";
        return Err(Failure::one(
            Diagnostic::about("no-forecast", own.as_str(), message).help(help),
        ));
    }
    let input = ForecastInput {
        history,
        step_s,
        horizon: usize::try_from(steps).unwrap_or(0),
        sizing: study.demand_quantile.get(),
        changes: &begun,
        memory: &Memory::default(),
        seed: Seed::new(global.seed.unwrap_or(study.seed.get())),
        threads: threads(global),
    };
    let found = forecast(&input).map_err(|error| no_forecast(&error, own))?;
    let mut notes = vec![format!(
        "demand of each class is the p{} of a forecast from `{own}`, {} steps of {} s until {}; what all of them ask for at once at that quantile is less than the sum",
        study.demand_quantile.get() * 100.0,
        found.steps,
        input.step_s,
        moment(found.outlook.start_s)
    )];
    let requests = |class: &plimsoll_workload::ClassHistory| -> f64 {
        class.steps.iter().map(|step| step.requests).sum()
    };
    let all: f64 = history.classes.iter().map(requests).sum();
    let known = |name: &str| classes.named.iter().any(|(own, _)| own == name);
    let left: f64 = history.classes.iter().filter(|c| !known(&c.name)).map(requests).sum();
    if left > 0.0 {
        notes.push(format!(
            "{:.1}% of the requests of `{own}` are of no class of the scenario, and are not planned for",
            100.0 * left / all
        ));
    }
    for change in &begun {
        notes.push(format!(
            "event `{}` has begun within the ledger: its likely effect is taken out of the past, and put on the hours ahead as the scenario says",
            change.name
        ));
    }
    notes.extend(counted.notes());
    let of_begun =
        |warning: &&String| begun.iter().any(|c| warning.contains(&format!("`{}`", c.name)));
    notes.extend(found.warnings.iter().filter(|warning| !of_begun(warning)).cloned());
    Ok(Some(Foresight { outlook: found.outlook, notes }))
}

/// What is counted, and how.
pub(super) struct Asked<'a> {
    pub(super) classes: &'a ClassesBy,
    pub(super) step: Option<u32>,
    pub(super) from_s: Option<i64>,
    pub(super) until_s: Option<i64>,
}

/// What was counted.
pub(super) struct Counted {
    pub(super) scan: HistoryScan,
    /// The length of a step of the forecast.
    pub(super) step_s: u32,
    /// Requests were counted, not series of counts.
    pub(super) of_requests: bool,
    /// The series, where it was one.
    series: Option<String>,
    others: Vec<String>,
}

impl Counted {
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.scan.notes.clone();
        if self.scan.dropped > 0 {
            notes.push(format!(
                "{} rows lie in steps that are not whole, at either end, and are left out",
                self.scan.dropped
            ));
        }
        if self.scan.timeless > 0 {
            notes.push(format!(
                "{} rows have no time on the clock that the others share, and are left out",
                self.scan.timeless
            ));
        }
        if self.scan.refused_without_attempt > 0 {
            notes.push(format!(
                "{} refused rows do not say which attempt they are: each counts as a request, so that retries of one count as several",
                self.scan.refused_without_attempt
            ));
        }
        if !self.others.is_empty() {
            notes.push(format!(
                "the ledger holds more series than `{}`; `--series` takes another: {}",
                self.series.as_deref().unwrap_or_default(),
                self.others.join(", ")
            ));
        }
        notes
    }
}

impl Asked<'_> {
    pub(super) fn scan(&self, global: &Global) -> ScanInput {
        let by = self.classes;
        let classes = if by.named.is_empty() {
            Classing::Columns { names: by.columns.clone(), most: by.most }
        } else {
            let class = |(name, columns): &(String, _)| plimsoll_ledger::NamedClass {
                name: name.clone(),
                columns: std::collections::BTreeMap::clone(columns),
            };
            Classing::Named(by.named.iter().map(class).collect())
        };
        ScanInput {
            classes,
            only: by.only.clone(),
            pace: None,
            cache_blocks: Vec::new(),
            threads: threads_of(global),
        }
    }

    pub(super) fn count(
        &self,
        ledger: &Ledger,
        name: &str,
        global: &Global,
    ) -> Result<Counted, Failure> {
        let failed = |error: LedgerError| ledger_failure(&error);
        if ledger.rows() == 0 {
            return self.count_series(ledger, name);
        }
        let input = |step: Option<u32>| HistoryInput {
            scan: self.scan(global),
            step_s: step.and_then(NonZero::new),
            from_s: self.from_s,
            until_s: self.until_s,
        };
        let scan = ledger.history(&input(self.step)).map_err(failed)?;
        let step_s = scan.history.step_s;
        let scan = match finer(step_s) {
            Some(part) => ledger.history(&input(Some(part))).map_err(failed)?,
            None => scan,
        };
        Ok(Counted { scan, step_s, of_requests: true, series: None, others: Vec::new() })
    }

    /// Leaves what lies wholly within the time that is asked for.
    fn cut(&self, history: &mut History) {
        let after = |step: usize| self.from_s.is_none_or(|from| history.at_s(step) >= from);
        let before = |step: usize| self.until_s.is_none_or(|until| history.at_s(step + 1) <= until);
        let first = (0..history.len()).find(|step| after(*step)).unwrap_or(history.len());
        let last = (first..history.len()).take_while(|step| before(*step)).count() + first;
        let start_s = history.at_s(first);
        for class in &mut history.classes {
            class.steps.truncate(last);
            class.steps.drain(..first.min(class.steps.len()));
        }
        history.start_s = start_s;
    }

    fn count_series(&self, ledger: &Ledger, name: &str) -> Result<Counted, Failure> {
        let failed = |error: LedgerError| ledger_failure(&error);
        let keep = self.classes.most.max(1);
        let mut all =
            ledger.series_history(self.step.and_then(NonZero::new), keep).map_err(failed)?;
        let requests = |scan: &HistoryScan| -> f64 {
            let steps = scan.history.classes.iter().flat_map(|class| &class.steps);
            steps.map(|step| step.requests).sum()
        };
        all.sort_by(|a, b| requests(&b.1).total_cmp(&requests(&a.1)));
        let names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
        let wanted = self.classes.series.as_deref();
        let Some(at) = names.iter().position(|own| wanted.is_none_or(|wanted| wanted == own))
        else {
            let message = match wanted {
                Some(wanted) => format!("holds no series called `{wanted}`"),
                None => "holds neither requests nor series".to_owned(),
            };
            let help = if names.is_empty() {
                "`plimsoll ingest` reads logs into it".to_owned()
            } else {
                format!("it holds {}", names.join(", "))
            };
            return Err(Failure::one(Diagnostic::about("no-series", name, message).help(help)));
        };
        let (series, scan) = all.swap_remove(at);
        let step_s = scan.history.step_s;
        let part = finer(step_s).and_then(NonZero::new);
        // A part that is no whole number of windows cannot be had.
        let finer = part.and_then(|part| ledger.series_history(Some(part), keep).ok());
        let finer = finer.and_then(|all| all.into_iter().find(|(name, _)| *name == series));
        let mut scan = finer.map_or(scan, |(_, scan)| scan);
        called_by_model(&mut scan.history, &self.classes.named);
        shorten(&mut scan.history);
        self.cut(&mut scan.history);
        let others = names.into_iter().filter(|own| *own != series).collect();
        Ok(Counted { scan, step_s, of_requests: false, series: Some(series), others })
    }
}

/// Calls it by the class of the scenario that matches the model: of its calls a series knows nothing else. A class that names no column has all there is, where it is the only one.
fn called_by_model(
    history: &mut History,
    named: &[(String, std::collections::BTreeMap<String, String>)],
) {
    let alone = history.classes.len() == 1 && named.len() == 1;
    for class in &mut history.classes {
        let own = |columns: &std::collections::BTreeMap<String, String>| match columns.get("model")
        {
            Some(model) => columns.len() == 1 && WildMatch::new(model).matches(&class.name),
            None => alone && columns.is_empty(),
        };
        let mut matching = named.iter().filter(|(_, columns)| own(columns));
        if let (Some((name, _)), None) = (matching.next(), matching.next()) {
            class.name.clone_from(name);
        }
    }
}

/// Clients are called by the last part of their names, where that tells them apart: what is before it is where they were read.
fn shorten(history: &mut History) {
    let last = |name: &str| name.rsplit(['/', ':']).next().unwrap_or(name).to_owned();
    let short: Vec<String> = history.classes.iter().map(|class| last(&class.name)).collect();
    let apart: std::collections::BTreeSet<&String> = short.iter().collect();
    if apart.len() == short.len() {
        history.classes.iter_mut().zip(short).for_each(|(class, short)| class.name = short);
    }
}

/// The parts that a step is counted in.
fn finer(step_s: u32) -> Option<u32> {
    (step_s >= 600 && step_s.is_multiple_of(PARTS)).then_some(step_s / PARTS)
}

/// Classes of a scenario that rows can be told by. One that says nothing of rows is told where it is the only one.
fn matched(loaded: &Loaded) -> Vec<(String, std::collections::BTreeMap<String, String>)> {
    let classes = &loaded.scenario.class;
    let told = classes.iter().filter(|class| !class.matches.is_empty() || classes.len() == 1);
    told.map(named).map(|class| (class.name, class.columns)).collect()
}

/// What classes of a scenario promise, for each of these by its name.
pub(super) fn objectives(loaded: &Loaded, of: &ClassesBy) -> Vec<Option<ServiceSlo>> {
    let class = |name: &str| loaded.scenario.class.iter().find(|own| own.name.as_str() == name);
    let slo = |(name, _): &(String, _)| {
        let class = class(name)?;
        let seconds = |own: Option<Seconds>| own.map(Seconds::get);
        let slo = ServiceSlo {
            ttft_s: seconds(class.slo.ttft),
            tpot_s: seconds(class.slo.tpot),
            e2e_s: seconds(class.slo.e2e),
        };
        let asked = [slo.ttft_s, slo.tpot_s, slo.e2e_s].iter().any(Option::is_some);
        asked.then_some(slo)
    };
    of.named.iter().map(slo).collect()
}

/// The events of a scenario.
fn changes(loaded: &Loaded) -> Vec<Change> {
    let three = |own: Range| ThreePoint {
        low: own.quantile(0.05),
        likely: own.likely(),
        high: own.quantile(0.95),
    };
    let events = loaded.scenario.event.iter();
    events
        .map(|event| Change {
            name: event.name.as_str().to_owned(),
            from_s: event.from.timestamp().as_second(),
            until_s: event.to.map(|to| to.timestamp().as_second()),
            classes: event.class.iter().map(|class| class.as_str().to_owned()).collect(),
            rate: three(event.rate),
            prompt: three(event.prompt),
            output: three(event.output),
            cache_hit: three(event.cache_hit),
        })
        .collect()
}

fn no_dates(changes: Vec<Change>, notes: &mut Vec<String>) -> Vec<Change> {
    if !changes.is_empty() {
        notes.push(format!(
            "times count from the start of the log, so the events of the scenario have no place in it: {}",
            joined(changes.iter().map(|change| change.name.clone()))
        ));
    }
    Vec::new()
}

pub(super) fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<String>>().join(", ")
}

/// A step in whole seconds.
fn whole_step(step: Seconds, name: &str) -> Result<u32, Failure> {
    let seconds = step.get().round();
    if (10.0..=86_400.0).contains(&seconds) {
        return Ok(seconds as u32);
    }
    let message = format!("a step of {step} is not between 10 s and a day");
    let help = "write `--step 1h`";
    Err(Failure::one(Diagnostic::about("bad-step", name, message).help(help)))
}

fn whole_steps(ahead: Seconds, step_s: u32, name: &str) -> Result<usize, Failure> {
    let steps = (ahead.get() / f64::from(step_s) - 1e-9).ceil();
    if (1.0..=20_000.0).contains(&steps) {
        return Ok(steps as usize);
    }
    let message = format!("a horizon of {ahead} is {steps} steps of {step_s} s");
    let help = "from 1 to 20,000 are forecast; write `--horizon 7d`, or a longer `--step`";
    Err(Failure::one(Diagnostic::about("bad-horizon", name, message).help(help)))
}

/// Steps until the end of a study.
fn to_the_end(
    loaded: &Loaded,
    history: &History,
    counted: &Counted,
    as_of: Date,
) -> Result<usize, Failure> {
    let (start, hours) = horizon(&loaded.scenario, as_of).map_err(Failure::one)?;
    let until = start.as_second() + 3600 * i64::try_from(hours).unwrap_or(0);
    // Whole steps of the world's clock: what is left over of the last is forecast with it.
    let step = i64::from(counted.step_s);
    let from = history.end_s().div_euclid(step) * step;
    let steps = (until - from + step - 1).div_euclid(step);
    match usize::try_from(steps) {
        Ok(steps) if steps > 0 => Ok(steps),
        // A study of the past is no reason not to look ahead.
        _ => Ok(an_eighth(history, counted.step_s)),
    }
}

fn an_eighth(history: &History, step_s: u32) -> usize {
    let span = u64::from(history.step_s) * history.len() as u64;
    let within = HORIZONS.into_iter().rev().find(|ahead| ahead * 8 <= span);
    let ahead = within.unwrap_or(HORIZONS[0]).max(u64::from(step_s));
    usize::try_from(ahead / u64::from(step_s)).unwrap_or(1).max(1)
}

pub(super) fn levels(path: &Path) -> Result<Memory, Failure> {
    LevelsFile::parse(&files::read_text(path)?).map_err(|problem| {
        Failure::one(Diagnostic::about("bad-levels", path.display().to_string(), problem))
    })
}

fn no_forecast(error: &ForecastError, name: &str) -> Failure {
    let help = match error {
        ForecastError::Empty { .. } => {
            "take a shorter `--step`, more history, or another `--from` and `--until`".to_owned()
        }
        ForecastError::Nothing => "`plimsoll profile` says what the ledger holds".to_owned(),
        ForecastError::Step { own_s, .. } => format!("take a `--step` of a multiple of {own_s} s"),
        ForecastError::Horizon { .. } => "write `--horizon 7d`".to_owned(),
        ForecastError::Count { .. } => {
            "`plimsoll trace` and `plimsoll query` show the rows".to_owned()
        }
    };
    Failure::one(Diagnostic::about("no-forecast", name, error.to_string()).help(help))
}

/// Load lines that are watched.
fn watched(
    args: &ForecastArgs,
    loaded: Option<&Loaded>,
    ledger: &Ledger,
    asked: &Asked<'_>,
    name: &str,
    global: &Global,
    notes: &mut Vec<String>,
) -> Result<Vec<InflectionFile>, Failure> {
    let mut lines = args.line.clone();
    if let Some(file) = &args.curve {
        let of_curve = curve_lines(file)?;
        let typed = |quantity: Quantity| args.line.iter().any(|(own, _)| *own == quantity);
        lines.extend(of_curve.into_iter().filter(|(quantity, _)| !typed(*quantity)));
    }
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let slowest = loaded.map(|loaded| loaded.scenario.pool.iter().map(startup_p90));
    let slowest = slowest.and_then(|pools| pools.reduce(f64::max));
    let startup_s = args.startup.map(Seconds::get).or(slowest).unwrap_or_else(|| {
        notes.push(format!(
            "nobody says how long a start takes: {STARTUP_S:.0} s are assumed; `--startup` or a pool of `--scenario` says it"
        ));
        STARTUP_S
    });
    let minutes = if ledger.rows() > 0 {
        let minute = Asked { step: Some(60), ..Asked { classes: asked.classes, ..*asked } };
        let input = HistoryInput {
            scan: minute.scan(global),
            step_s: NonZero::new(60),
            from_s: asked.from_s,
            until_s: asked.until_s,
        };
        ledger.history(&input).map_err(|error| ledger_failure(&error))?.history
    } else {
        asked.count(ledger, name, global)?.scan.history
    };
    let mut watched = Vec::new();
    for (quantity, most) in &lines {
        let line = Line { quantity: *quantity, most: *most, startup_s };
        match inflection(&minutes, line) {
            Some(found) => watched.push(inflection_file(&found)),
            None => notes.push(format!(
                "the load line of {} cannot be watched: {}",
                quantity.name(),
                unwatched(&minutes, *quantity)
            )),
        }
    }
    Ok(watched)
}

/// The load lines of a curve.
fn curve_lines(path: &Path) -> Result<Vec<(Quantity, f64)>, Failure> {
    let name = path.display().to_string();
    let bad = |problem: String| {
        let help = "`plimsoll curve SCENARIO --json > FILE` writes one";
        Failure::one(Diagnostic::about("bad-curve", name.clone(), problem).help(help))
    };
    let text = files::read_text(path)?;
    let document: Value =
        serde_json::from_str(&text).map_err(|e| bad(format!("is no JSON: {e}")))?;
    if document.get("schema").and_then(Value::as_str) != Some("plimsoll/curve/v1") {
        return Err(bad("is not a curve: its `schema` is not `plimsoll/curve/v1`".to_owned()));
    }
    let rows = document.get("load_lines").and_then(Value::as_array);
    let lines: Vec<(Quantity, f64)> = rows
        .into_iter()
        .flatten()
        .filter_map(|row| {
            let quantity = match row.get("resource")?.as_str()? {
                "fresh_prompt_tokens" => Quantity::FreshTokens,
                name => Quantity::of_name(name)?,
            };
            Some((quantity, row.get("load_line")?.as_f64()?))
        })
        .collect();
    if lines.is_empty() {
        return Err(bad("holds no load line of requests, tokens or KV memory".to_owned()));
    }
    Ok(lines)
}

fn unwatched(history: &History, quantity: Quantity) -> String {
    if quantity == Quantity::CachedShare {
        return "a share has no load line".to_owned();
    }
    format!(
        "it takes an hour and a half of history in steps of 10 minutes or less that tells of it, and this is {} steps of {} s",
        history.len(),
        history.step_s
    )
}

fn inflection_file(found: &plimsoll_forecast::Inflection) -> InflectionFile {
    let record = &found.record;
    let share = |n: usize, of: usize| (of > 0).then(|| n as f64 / of as f64);
    let days = record.watched_s as f64 / 86_400.0;
    InflectionFile {
        resource: found.line.quantity.name().to_owned(),
        unit: found.line.quantity.unit().to_owned(),
        line: found.line.most,
        now: found.now,
        level: found.level,
        crosses_in_s: found.crosses_in_s,
        most_ahead: found.most_ahead,
        ahead_s: found.ahead_s,
        startup_p90_s: found.line.startup_s,
        tried_at: found.tried_at,
        crossings: record.crossings,
        caught: record.caught,
        alarms: record.alarms,
        false_alarms: record.false_alarms,
        false_alarm_share: share(record.false_alarms, record.alarms),
        false_alarms_per_day: (days > 0.0).then(|| record.false_alarms as f64 / days),
        warned_ahead_s: record.ahead_median_s,
    }
}

/// Where clocks of many users change within what is looked at: times are UTC, and the day of users is not.
fn clock_changes(found: &Forecast) -> Vec<String> {
    let daily = found.series.first().is_some_and(|series| series.season.day.is_some());
    let outlook = &found.outlook;
    if !daily || !outlook.absolute {
        return Vec::new();
    }
    let steps = outlook.classes.first().and_then(|all| Some(all.series.first()?.1.len()));
    let day = |seconds: i64| {
        let at = jiff::Timestamp::from_second(seconds).ok()?;
        Some(jiff::tz::Offset::UTC.to_datetime(at).date())
    };
    let (Some(from), Some(until)) = (day(found.from_s), day(outlook.at_s(steps.unwrap_or(0))))
    else {
        return Vec::new();
    };
    let mut days = Vec::new();
    for year in from.year()..=until.year() {
        for (month, nth, where_) in [
            (3, 2, "North America"),
            (3, -1, "Europe"),
            (10, -1, "Europe"),
            (11, 1, "North America"),
        ] {
            let first = Date::new(year, month, 1);
            let change = first.and_then(|first| first.nth_weekday_of_month(nth, Weekday::Sunday));
            if let Ok(change) = change
                && (from..=until).contains(&change)
            {
                days.push(format!("{change} ({where_})"));
            }
        }
    }
    if days.is_empty() {
        return days;
    }
    vec![format!(
        "clocks change on {}: steps are in UTC, so the day of users who follow the clock moves by an hour there",
        days.join(", ")
    )]
}

fn moment(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| format!("{seconds} s"), |at| at.to_string())
}

/// A short name for a text.
pub(super) fn hash(text: &str) -> String {
    let full = twox_hash::XxHash3_128::oneshot(text.as_bytes());
    format!("{:016x}", (full >> 64) as u64)
}
