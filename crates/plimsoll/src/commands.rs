//! One function a command: read, call a study, say it.

mod calibrate;
mod cost;
mod curve;
mod doctor;
mod emit;
mod fit;
mod fleet;
mod forecast;
mod init;
mod ledger;
mod lint;
mod live;
mod optional;
mod performance;
mod plan;
mod pool;
mod profile;
mod reconcile;
mod replay;
mod review;
mod series;
mod serve;
mod simulate;
mod source;
mod stress;
mod watch;
mod what_if;

use std::io::Write;
use std::path::Path;

use clap::CommandFactory as _;
use jiff::civil::Date;
use plimsoll_evidence::Cases;
use plimsoll_fleet::Catalog;
use plimsoll_report::{
    Topic, catalog_json, catalog_text, explain_json, explain_text, kernels_json, kernels_text,
    performance_json, performance_text, validation_json, validation_text,
};
use plimsoll_scenario::{
    Diagnostic, Loaded, Origin, builtin, json_schema, load, load_catalog, load_typed, profiles,
};
use plimsoll_stats::Seed;
use plimsoll_study::{
    Assumption, DemandInput, Provenance, demand, validate_memory, validate_performance,
};
use serde_json::{Value, json};

use self::calibrate::StepTimes;
use crate::args::{CatalogTopic, Cli, Command, Global};
use crate::failure::Failure;
use crate::{files, heading};

/// What goes to stdout, and the exit code that belongs to it.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) code: u8,
}

/// Answers a command.
pub(crate) fn answer(cli: &Cli, err: &mut dyn Write) -> Result<Answer, Failure> {
    let global = &cli.global;
    if let Command::Fit(args) = &cli.command {
        let (text, fits) = fit::answer(args, global)?;
        return Ok(Answer { text, code: u8::from(!fits) });
    }
    if let Command::Plan(args) = &cli.command {
        let (text, feasible) = plan::answer(args, global, err)?;
        return Ok(Answer { text, code: u8::from(!feasible) });
    }
    if let Command::Stress(args) = &cli.command {
        let (text, passes) = stress::answer(args, global, err)?;
        return Ok(Answer { text, code: u8::from(args.gate && !passes) });
    }
    if let Command::Review(args) = &cli.command {
        let (text, passes) = review::answer(args, global, err)?;
        return Ok(Answer { text, code: u8::from(!passes) });
    }
    if let Command::Lint(args) = &cli.command {
        let (text, clean) = lint::answer(args, global, err)?;
        return Ok(Answer { text, code: u8::from(!clean) });
    }
    if let Command::Doctor(args) = &cli.command {
        let (text, healthy) = doctor::answer(args, global)?;
        return Ok(Answer { text, code: u8::from(!healthy) });
    }
    Ok(Answer { text: text_of(cli, err)?, code: 0 })
}

fn text_of(cli: &Cli, err: &mut dyn Write) -> Result<String, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Review(args) => Ok(review::answer(args, global, err)?.0),
        Command::Check { file } => check(file, global),
        Command::Explain { file } => {
            let loaded = scenario(file, global)?;
            let name = file.display().to_string();
            Ok(either(
                global,
                || explain_json(&name, &loaded.entries),
                || explain_text(&loaded.entries, heading()),
            ))
        }
        Command::Init { directory, force, from } => {
            init::init(directory, *force, from, global, err)
        }
        Command::Ingest(args) => ledger::ingest(args, global, err),
        Command::Profile(args) => profile::answer(args, global, err),
        Command::Forecast(args) => forecast::answer(args, global, err),
        Command::Reconcile(args) => reconcile::answer(args, global, err),
        Command::Query { ledger, sql, rows } => ledger::query(ledger, sql, *rows, global),
        Command::Trace { ledger, task } => ledger::trace(ledger, task, global),
        Command::Fit(args) => Ok(fit::answer(args, global)?.0),
        Command::Simulate(args) => simulate::answer(args, global, err),
        Command::Curve(args) => curve::answer(args, global, err),
        Command::Plan(args) => Ok(plan::answer(args, global, err)?.0),
        Command::Stress(args) => Ok(stress::answer(args, global, err)?.0),
        Command::Cost(args) => cost::answer(args, global, err),
        Command::Calibrate(args) => calibrate::answer(args, global),
        Command::Validate { file, calibration } => {
            validate(file.as_deref(), calibration.as_deref(), global)
        }
        Command::Catalog { topic, name, hf_config } => {
            catalog(*topic, name.as_deref(), hf_config.as_deref(), global)
        }
        Command::Emit(args) => emit::answer(args, global, err),
        Command::Lint(args) => Ok(lint::answer(args, global, err)?.0),
        Command::Doctor(args) => Ok(doctor::answer(args, global)?.0),
        Command::Watch(args) => watch::answer(args, global, err),
        Command::Serve(args) => serve::answer(args, global, err),
        Command::Schema => Ok(either(
            global,
            || json!({ "schema": "plimsoll/schema/v1", "json_schema": json_schema() }),
            || format!("{:#}\n", json_schema()),
        )),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "plimsoll", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            Ok(either(
                global,
                || json!({ "schema": "plimsoll/completions/v1", "script": script }),
                || script.clone(),
            ))
        }
        Command::Man { directory } => man(directory, global),
    }
}

/// Says what was done, to whoever watches.
pub(crate) fn tell(global: &Global, err: &mut dyn Write, text: &str) {
    if !global.quiet {
        // What cannot be said is no reason to give up what was done.
        let _ = writeln!(err, "{text}");
    }
}

/// Writes a page where one was asked for.
pub(crate) fn paged(
    out: Option<&Path>,
    page: impl FnOnce() -> String,
    global: &Global,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(path) = out else { return Ok(()) };
    files::write_whole(path, &page())?;
    tell(global, err, &format!("wrote {}", path.display()));
    Ok(())
}

/// The JSON document or the text, whichever was asked for.
pub(crate) fn either(
    global: &Global,
    json: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> String {
    if global.json { format!("{:#}\n", json()) } else { text() }
}

pub(crate) fn scenario(file: &Path, global: &Global) -> Result<Loaded, Failure> {
    let extra = global.catalog.as_deref();
    let loaded = match &global.typed {
        Some(own) => load_typed(&own.name, &own.text, &own.workspace, extra),
        None => load(file, extra),
    };
    let mut loaded = loaded.map_err(Failure::input)?;
    // What the command line overrides is no longer what the file says.
    let overrides = [
        ("study.seed", "--seed", global.seed.map(|seed| seed.to_string())),
        ("study.as_of", "--as-of", global.as_of.map(|day| day.to_string())),
    ];
    for (path, option, value) in overrides {
        let entry = loaded.entries.iter_mut().find(|entry| entry.path == path);
        if let (Some(value), Some(entry)) = (value, entry) {
            entry.value = value;
            entry.origin = Origin::CommandLine { option };
        }
    }
    Ok(loaded)
}

/// A scenario with what its ledger lets expect.
pub(crate) fn planned(file: &Path, global: &Global) -> Result<Loaded, Failure> {
    let mut loaded = scenario(file, global)?;
    loaded.outlook = forecast::foresight(&loaded, file, global)?;
    Ok(loaded)
}

/// `--as-of`, else the scenario's, else the clock's.
pub(crate) fn today(global: &Global, loaded: &Loaded) -> Date {
    let written = loaded.scenario.study.as_of.map(|day| day.date());
    global.as_of.or(written).unwrap_or_else(clock)
}

/// Today by the clock.
pub(crate) fn clock() -> Date {
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge is where the clock is read, once, for want of --as-of"
    )]
    let now = jiff::Zoned::now();
    now.date()
}

pub(crate) fn threads(global: &Global) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    global.threads.map_or_else(available, usize::from)
}

/// The demand of the busiest hours, counted.
fn counted(
    loaded: &Loaded,
    lowered: &plimsoll_scenario::Demand,
    pools: Vec<plimsoll_study::PoolRouting>,
    runs: u32,
    global: &Global,
) -> Result<plimsoll_study::Demand, Failure> {
    let study = &loaded.scenario.study;
    let input = DemandInput {
        classes: lowered.classes.clone(),
        pools,
        window_s: study.window.get(),
        runs,
        level: study.confidence.get(),
        seed: Seed::new(global.seed.unwrap_or(study.seed.get())),
        threads: threads(global),
    };
    demand(&input).map_err(|error| {
        let file = loaded.source.name();
        Failure::one(
            Diagnostic::about("no-demand", file, error.to_string()).help("give a class a `rate`"),
        )
    })
}

/// What was not given and has no stand-in is no assumption.
fn assumption(entry: &plimsoll_scenario::Entry, as_of: Date) -> Option<Assumption> {
    let (provenance, source, date) = match &entry.origin {
        Origin::File { file, line } => (Provenance::Supplied, format!("{file}:{line}"), None),
        Origin::CommandLine { option } => (Provenance::Supplied, (*option).to_owned(), None),
        Origin::Default { why } => (Provenance::Modeled, format!("default: {why}"), None),
        Origin::Profile { name, as_of } => {
            (Provenance::Modeled, format!("profile `{name}`"), Some((*as_of).to_owned()))
        }
        Origin::Catalog { entry, as_of } => {
            (Provenance::Modeled, format!("catalogue: {entry}"), Some(as_of.clone()))
        }
        Origin::Absent { .. } => return None,
    };
    let (name, value) = (entry.path.clone(), Some(entry.value.clone()));
    let held = date.as_deref().and_then(|day| day.parse::<Date>().ok());
    let age_days =
        held.and_then(|day| as_of.since(day).ok()).map(|span| i64::from(span.get_days()));
    Some(Assumption { name, value, provenance, source, date, age_days })
}

fn check(file: &Path, global: &Global) -> Result<String, Failure> {
    let loaded = scenario(file, global)?;
    let s = &loaded.scenario;
    let counts = [
        ("classes", s.class.len()),
        ("events", s.event.len()),
        ("pools", s.pool.len()),
        ("providers", s.provider.len()),
        ("regions", s.region.len()),
    ];
    let name = file.display().to_string();
    let json = || {
        let mut document = json!({ "schema": "plimsoll/check/v1", "ok": true, "file": name });
        if let Value::Object(map) = &mut document {
            map.extend(counts.iter().map(|(what, n)| ((*what).to_owned(), json!(n))));
        }
        document
    };
    let text = || {
        let held: Vec<String> = counts
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(what, n)| format!("{n} {}", singular(what, *n)))
            .collect();
        format!("{name} is fine: {}\n", held.join(", "))
    };
    Ok(either(global, json, text))
}

fn singular(noun: &str, n: usize) -> &str {
    match (n, noun) {
        (1, "classes") => "class",
        (1, noun) => noun.trim_end_matches('s'),
        (_, noun) => noun,
    }
}

fn catalog(
    topic: CatalogTopic,
    name: Option<&str>,
    hf_config: Option<&Path>,
    global: &Global,
) -> Result<String, Failure> {
    let mut catalog = catalog_of(global)?;
    let mut name = name.map(str::to_owned);
    if let Some(path) = hf_config {
        if topic != CatalogTopic::Models {
            let diagnostic =
                Diagnostic::about("usage", "command line", "--hf-config describes a model")
                    .help("write `plimsoll catalog models --hf-config FILE`");
            return Err(Failure::one(diagnostic));
        }
        let model = plimsoll_scenario::model_from_hf_file(path).map_err(Failure::one)?;
        name = Some(model.name.clone());
        catalog.models.push(model);
    }
    let topic = match topic {
        CatalogTopic::Kernels => return kernels(name.as_deref(), global),
        CatalogTopic::Models => Topic::Models,
        CatalogTopic::Accelerators => Topic::Accelerators,
        CatalogTopic::Engines => Topic::Engines,
        CatalogTopic::Prices => Topic::Prices,
        CatalogTopic::Profiles => Topic::Profiles,
    };
    let name = name.as_deref();
    let answer = if global.json {
        catalog_json(&catalog, profiles(), topic, name).map(|document| format!("{document:#}\n"))
    } else {
        catalog_text(&catalog, profiles(), topic, name, heading())
    };
    answer.map_err(|near| not_listed(name.unwrap_or_default(), &near))
}

fn not_listed(wanted: &str, near: &[String]) -> Failure {
    let message = format!("nothing in the catalogue is called `{wanted}`");
    let help = match near {
        [] => "leave the name out for the whole list".to_owned(),
        near => format!("did you mean `{}`?", near.join("` or `")),
    };
    Failure::one(Diagnostic::about("unknown-name", "command line", message).help(help))
}

/// The kernel tables that come with the program.
fn kernels(device: Option<&str>, global: &Global) -> Result<String, Failure> {
    let file =
        plimsoll_perf::kernels::built_in().map_err(|error| Failure::bug(&error.to_string()))?;
    let answer = if global.json {
        kernels_json(&file, device).map(|document| format!("{document:#}\n"))
    } else {
        kernels_text(&file, device)
    };
    answer.map_err(|devices| not_listed(device.unwrap_or_default(), &devices))
}

/// Our own step logs; `validation/README.md` says how they were made.
const SHIPPED: [(&str, &[u8]); 4] = [
    ("llama31_8b", include_bytes!("../../../validation/vllm_h200/llama31_8b.jsonl.gz")),
    ("llama31_8b_b8192", include_bytes!("../../../validation/vllm_h200/llama31_8b_b8192.jsonl.gz")),
    ("llama31_8b_kv64k", include_bytes!("../../../validation/vllm_h200/llama31_8b_kv64k.jsonl.gz")),
    ("qwen3_30b_a3b", include_bytes!("../../../validation/vllm_h200/qwen3_30b_a3b.jsonl.gz")),
];

fn validate(
    file: Option<&Path>,
    calibration: Option<&Path>,
    global: &Global,
) -> Result<String, Failure> {
    let built_in = calibration.map_or(StepTimes::BuiltIn, StepTimes::File);
    let Some(file) = file else {
        let unpacked: Result<Vec<(&str, String)>, Failure> = SHIPPED
            .into_iter()
            .map(|(name, packed)| Ok((name, files::unpack(Path::new(name), packed.to_vec())?)))
            .collect();
        let times = calibration.map_or(StepTimes::ClosedLoops, StepTimes::File);
        return calibrate::validate(&unpacked?, &times, global);
    };
    let text = files::read_text(file)?;
    if text.starts_with("{\"schema\"")
        && text.lines().next().is_some_and(|l| l.contains("plimsoll-engine-run/1"))
    {
        return calibrate::validate(&[(&file.display().to_string(), text)], &built_in, global);
    }
    if calibration.is_some() {
        return Err(Failure::one(
            Diagnostic::about(
                "usage",
                "command line",
                "`--calibration` is for step logs; cases are of many pools",
            )
            .help("leave `--calibration` out"),
        ));
    }
    let cases = plimsoll_evidence::cases(&text).map_err(|error| {
        Failure::one(Diagnostic::about(
            "bad-evidence",
            file.display().to_string(),
            error.to_string(),
        ))
    })?;
    let catalog = catalog_of(global)?;
    Ok(match cases {
        Cases::Memory(cases) => {
            let result = validate_memory(&cases, &catalog);
            either(global, || validation_json(&result), || validation_text(&result))
        }
        Cases::Performance(cases) => {
            let result = validate_performance(&cases, &catalog);
            either(global, || performance_json(&result), || performance_text(&result))
        }
    })
}

/// The built-in catalogue with the command line's on top.
pub(crate) fn catalog_of(global: &Global) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::clone(builtin());
    if let Some(path) = &global.catalog {
        catalog.extend(load_catalog(path).map_err(Failure::input)?);
    }
    Ok(catalog)
}

fn man(directory: &Path, global: &Global) -> Result<String, Failure> {
    files::directory(directory)?;
    let mut pages = Vec::new();
    let mut command = Cli::command();
    command.build();
    let root = std::iter::once((None, &command));
    let all = root.chain(
        command
            .get_subcommands()
            .filter(|c| c.get_name() != "help")
            .map(|c| (Some(c.get_name()), c)),
    );
    for (sub, command) in all {
        let name = sub.map_or_else(|| "plimsoll".to_owned(), |sub| format!("plimsoll-{sub}"));
        let mut page = Vec::new();
        let man = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
        if man.render(&mut page).is_ok() {
            let path = directory.join(format!("{name}.1"));
            files::write_whole(&path, &String::from_utf8_lossy(&page))?;
            pages.push(path.display().to_string());
        }
    }
    Ok(either(
        global,
        || json!({ "schema": "plimsoll/man/v1", "files": pages }),
        || pages.iter().map(|page| format!("{page}\n")).collect(),
    ))
}
