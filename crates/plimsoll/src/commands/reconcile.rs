//! What came of a forecast.

use std::io::Write;
use std::path::Path;

use plimsoll_forecast::Actuals;
use plimsoll_ledger::{ClassService, Ledger, ServiceInput};
use plimsoll_report::{
    ForecastFile, LevelsFile, PastReconciliation, ReconcileDocument, accuracy_text, learnt,
    past_reconciliation, reconcile_html, reconcile_json, reconcile_pictures, reconcile_text,
};
use plimsoll_scenario::Diagnostic;
use plimsoll_stats::Seed;
use plimsoll_study::{ReconcileError, ReconcileInput, Service, reconcile};
use serde_json::{Value, json};

use super::forecast::{Asked, Counted, hash, joined, levels, objectives};
use super::ledger::ledger_failure;
use super::source::Source;
use super::{clock, either, paged, scenario, tell};
use crate::args::{Global, ReconcileArgs};
use crate::failure::Failure;
use crate::{files, heading};

/// The level of intervals.
const CONFIDENCE: f64 = 0.95;

/// Holds a forecast against what came.
pub(super) fn answer(
    args: &ReconcileArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    if let Some(directory) = &args.history {
        return over_the_weeks(directory, global);
    }
    let Some(path) = &args.plan else {
        return Err(Failure::one(Diagnostic::about(
            "usage",
            "command line",
            "no forecast is named",
        )));
    };
    let plan_file = path.display().to_string();
    let bad = |problem: String| {
        let help = "`plimsoll forecast LEDGER --out FILE` writes one";
        Failure::one(Diagnostic::about("bad-plan", plan_file.clone(), problem).help(help))
    };
    let plan = ForecastFile::parse(&files::read_text(path)?).map_err(&bad)?;
    let outlook = plan.outlook().map_err(&bad)?;
    let mut notes = Vec::new();
    let unnamed = ForecastFile { id: String::new(), ..plan.clone() };
    if hash(&json!(unnamed).to_string()) != plan.id {
        notes.push(
            "the forecast is not what it was when it was made: its `id` does not fit what it says"
                .to_owned(),
        );
    }
    if plan.version != crate::VERSION {
        notes.push(format!(
            "the forecast was made by version {}, and this is {}: models may have changed since",
            plan.version,
            crate::VERSION
        ));
    }
    let loaded = args.scenario.as_deref().map(|file| scenario(file, global)).transpose()?;
    if let (Some(loaded), Some(then)) = (&loaded, &plan.scenario)
        && hash(loaded.source.text()) != then.hash
    {
        notes.push(format!(
            "the scenario is not what it was when the forecast was made (`{}`): objectives are those of now",
            then.file
        ));
    }
    let source = Source::open(&args.source, Some(&args.log), global)?;
    let ledger = source.ledger();
    let name = joined(args.source.iter().map(|file| file.display().to_string()));
    let steps = outlook.classes.first().and_then(|all| Some(all.series.first()?.1.len()));
    let (from_s, until_s) = (outlook.start_s, outlook.at_s(steps.unwrap_or(0)));
    let asked = Asked {
        classes: &plan.classes,
        step: Some(outlook.step_s),
        from_s: Some(from_s),
        until_s: Some(until_s),
    };
    let counted: Counted = asked.count(ledger, &name, global)?;
    notes.extend(source.warnings());
    notes.extend(counted.notes());
    let history = &counted.scan.history;
    if history.is_empty() {
        return Err(nothing_of_that_time(&asked, ledger, &name, &plan, global));
    }
    let actual = Actuals::of(history, outlook.step_s, Some(&outlook));
    let span = (Some(from_s), Some(until_s));
    let past = (plan.history_from(), Some(from_s));
    let before: Vec<Service> = plan.basis.iter().filter_map(|own| service(own, past)).collect();
    if before.len() < plan.basis.len() {
        notes.push(
            "what the forecast says of service in its history cannot be read: it is left out"
                .to_owned(),
        );
    }
    let after: Vec<Service> = if counted.of_requests {
        let input = ServiceInput {
            scan: asked.scan(global),
            from_s: asked.from_s,
            until_s: asked.until_s,
            slo: loaded.as_ref().map_or_else(Vec::new, |l| objectives(l, &plan.classes)),
        };
        let served = ledger.service(&input).map_err(|error| ledger_failure(&error))?;
        served.iter().filter_map(|own: &ClassService| service(&json!(own), span)).collect()
    } else {
        Vec::new()
    };
    let own = plan.memory().map_err(&bad)?;
    let memory = match args.levels.as_deref().map(levels).transpose()? {
        Some(given) if given != own => {
            notes.push("`--levels` are not those that the forecast was made with".to_owned());
            given
        }
        _ => own,
    };
    let input = ReconcileInput {
        outlook: &outlook,
        actual: &actual,
        sizing: plan.sizing_quantile,
        before: &before,
        after: &after,
        memory: &memory,
        confidence: CONFIDENCE,
        seed: Seed::new(global.seed.unwrap_or(plan.seed)),
    };
    let result = reconcile(&input).map_err(|error| not_reconciled(&error, &name, &plan))?;
    let document = ReconcileDocument {
        version: crate::VERSION,
        as_of: global.as_of.unwrap_or_else(clock).to_string(),
        plan: &plan,
        plan_file,
        source: name,
        result: &result,
        notes: &notes,
    };
    if let Some(out) = &args.out {
        files::write_whole(out, &format!("{:#}\n", reconcile_json(&document)))?;
        tell(global, err, &format!("wrote {}", out.display()));
    }
    if let Some(out) = &args.levels_out {
        let levels = LevelsFile::new(&learnt(&result), &plan.id);
        files::write_whole(out, &format!("{:#}\n", json!(levels)))?;
        let name = out.display();
        tell(global, err, &format!("wrote {name}: `plimsoll forecast --levels {name}` takes it"));
    }
    if let Some(directory) = &args.pictures {
        files::directory(directory)?;
        for (name, picture) in reconcile_pictures(&plan, &actual, &result) {
            files::write_whole(&directory.join(&name), &picture)?;
            tell(global, err, &format!("wrote {}", directory.join(name).display()));
        }
    }
    paged(args.html.as_deref(), || reconcile_html(&document, &actual), global, err)?;
    Ok(either(global, || reconcile_json(&document), || reconcile_text(&document, heading())))
}

/// Why a ledger has nothing of the time that was forecast.
fn nothing_of_that_time(
    asked: &Asked<'_>,
    ledger: &Ledger,
    name: &str,
    plan: &ForecastFile,
    global: &Global,
) -> Failure {
    let all = Asked { classes: asked.classes, step: asked.step, from_s: None, until_s: None };
    let all = match all.count(ledger, name, global) {
        Ok(all) => all.scan.history,
        Err(failure) => return failure,
    };
    let absolute = plan.clock == "utc";
    if !all.is_empty() && all.absolute != absolute {
        let message = "its times and those of the forecast do not count from the same moment";
        let help = "both must know the date, or neither: of logs that count from their own start, `plimsoll ingest --start` can say it";
        return Failure::one(Diagnostic::about("no-clock", name, message).help(help));
    }
    let message = if all.is_empty() {
        "holds no whole step of the forecast".to_owned()
    } else {
        let at = |seconds: i64| plimsoll_report::Moment::at(seconds, absolute);
        format!(
            "is of {} to {}, and the forecast of {} to {}",
            at(all.start_s),
            at(all.end_s()),
            plan.start,
            plan.until
        )
    };
    let help = "ingest the logs of the time that was forecast";
    Failure::one(Diagnostic::about("not-reconciled", name, message).help(help))
}

/// A row of service, as a ledger or a forecast tells it; the first is called `all` and is of all classes.
fn service(row: &Value, (from_s, until_s): (Option<i64>, Option<i64>)) -> Option<Service> {
    let real = |key: &str| row.get(key).and_then(Value::as_f64);
    let count = |key: &str| real(key).unwrap_or(0.0);
    let class = row.get("class")?.as_str()?;
    // What says neither is no such row.
    real("requests").zip(real("attempts"))?;
    // Where rows stand for several, so do their tasks.
    let rows = count("first_rows");
    let weight = if rows > 0.0 { count("requests") / rows } else { 1.0 };
    Some(Service {
        class: (class != "all").then(|| class.to_owned()),
        requests: count("requests"),
        attempts: count("attempts"),
        limited: count("limited"),
        failed: count("failed"),
        answered: count("answered"),
        ttft_p95_s: real("ttft_p95_s"),
        ttft_p99_s: real("ttft_p99_s"),
        itl_p95_s: real("itl_p95_s"),
        itl_p99_s: real("itl_p99_s"),
        good: real("good"),
        judged: count("judged"),
        cost_usd: real("cost_usd"),
        costed: count("costed"),
        tasks: weight * count("tasks"),
        resolved: weight * count("resolved"),
        succeeded: weight * count("succeeded"),
        from_s,
        until_s,
    })
}

fn not_reconciled(error: &ReconcileError, name: &str, plan: &ForecastFile) -> Failure {
    let help = match error {
        ReconcileError::NoOverlap { .. } => format!(
            "the forecast is of {} to {}; ingest the logs of that time",
            plan.start, plan.until
        ),
        ReconcileError::Shifted { .. } => {
            "both must have steps that begin at the same times".to_owned()
        }
        _ => "make the forecast anew".to_owned(),
    };
    Failure::one(Diagnostic::about("not-reconciled", name, error.to_string()).help(help))
}

/// How forecasts did, one document after the other.
fn over_the_weeks(directory: &Path, global: &Global) -> Result<String, Failure> {
    let name = directory.display().to_string();
    let unreadable = |error: std::io::Error| {
        Failure::one(Diagnostic::about(
            "unreadable-file",
            name.clone(),
            format!("cannot be read: {error}"),
        ))
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut all: Vec<PastReconciliation> = Vec::new();
    for path in paths {
        let file = path.display().to_string();
        let found = past_reconciliation(&file, &files::read_text(&path)?).map_err(|problem| {
            Failure::one(Diagnostic::about("bad-reconciliation", file.clone(), problem))
        })?;
        all.extend(found);
    }
    if all.is_empty() {
        let help = "`plimsoll reconcile PLAN LEDGER --out DIR/NAME.json` writes one";
        let message = "holds no document of `plimsoll reconcile`";
        return Err(Failure::one(Diagnostic::about("no-history", name, message).help(help)));
    }
    let when = |own: &PastReconciliation| (own.from.to_string(), own.file.clone());
    all.sort_by_key(when);
    Ok(either(
        global,
        || json!({ "schema": "plimsoll/accuracy/v1", "version": crate::VERSION, "directory": name, "reconciliations": all }),
        || accuracy_text(&all, heading()),
    ))
}
