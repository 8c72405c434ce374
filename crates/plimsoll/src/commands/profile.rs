//! A workload, characterised.

use std::io::Write;
use std::path::Path;

use plimsoll_ledger::{Classing, Ledger, ScanInput, Scanned, TaskOutcomes};
use plimsoll_perf::constants;
use plimsoll_report::{
    Bench, BenchInput, BenchRow, BenchTool, Chart, ProfileHead, SCENARIO_POINTS, ScenarioClass,
    bench_of, profile_charts, profile_html, profile_json, profile_text, scenario_of,
};
use plimsoll_scenario::{Diagnostic, Loaded};
use plimsoll_stats::Seed;
use plimsoll_study::{JointLengths, Pace, PaceInput, Profile, ProfileInput, pool_pace, profile};
use serde_json::json;

use super::ledger::{ledger_failure, query_failure};
use super::source::{Source, named, threads_of};
use super::{either, fit, optional, paged, performance, scenario, tell, threads};
use crate::args::{self, Global, ProfileArgs};
use crate::failure::Failure;
use crate::{files, heading};

/// Sizes of prefix caches that reuse is told for, in blocks.
const CACHE_BLOCKS: [u64; 6] = [1_000, 5_000, 10_000, 30_000, 50_000, 100_000];
/// Clients that are named.
const CLIENTS_NAMED: usize = 10;
/// The seed where none is given: what is drawn are comparisons, and the seed is printed.
const SEED: u64 = 7;

pub(super) fn answer(
    args: &ProfileArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let source = Source::open(&args.source, Some(&args.log), global)?;
    let ledger = source.ledger();
    let loaded = args.scenario.as_deref().map(|file| scenario(file, global)).transpose()?;
    let input = scan_input(args, loaded.as_ref(), global);
    let cluster = args.cluster.as_deref();
    if let (Some(_), true) = (cluster, source.is_passing()) {
        let message = "`--cluster` is for a ledger that the cluster sees, too";
        let diagnostic = Diagnostic::about("bad-cluster", "profile", message);
        return Err(Failure::one(
            diagnostic.help("`plimsoll ingest FILES… --into LEDGER` makes one"),
        ));
    }
    let mut found = characterise(ledger, &input, cluster, global)?;
    // What a model says of tokens in memory takes rows, and a cluster hands back none.
    if let (Some(loaded), Some(file), None) = (&loaded, &args.scenario, cluster) {
        // How long a request takes depends on how many there are: what was found says it.
        if let Some(pace) = pace(loaded, file, &found.profile, global)? {
            let input = ScanInput { pace: Some(pace), ..input.clone() };
            found = characterise(ledger, &input, cluster, global)?;
        }
    }
    found.profile.warnings.extend(source.warnings());
    let names: Vec<String> = args.source.iter().map(|file| file.display().to_string()).collect();
    let (name, by) = (names.join(", "), classes_by(args));
    let head = ProfileHead {
        source: &name,
        format: source.format(),
        classes_by: by.as_deref(),
        from: found.from.as_deref(),
        to: found.to.as_deref(),
        seed: global.seed.unwrap_or(SEED),
    };
    let profile = &found.profile;
    if let Some(file) = &args.to_scenario {
        let tables = tables(ledger, &input, profile, &head)?;
        files::write_whole(file, &tables)?;
        tell(global, err, &format!("wrote {}: check it with `plimsoll check`", file.display()));
    }
    if let (Some(tool), Some(directory)) = (args.to_bench, &args.out) {
        let bench = load_test(tool, ledger, &input, profile, &head)?;
        for (file, text) in &bench.files {
            files::directory(directory)?;
            files::write_whole(&directory.join(file), text)?;
            tell(global, err, &format!("wrote {}", directory.join(file).display()));
        }
        tell(global, err, &format!("run it there with:\n  {}", bench.command));
        bench.notes.iter().for_each(|note| tell(global, err, &format!("note: {note}")));
    }
    paged(args.html.as_deref(), || profile_html(profile, &head, crate::VERSION), global, err)?;
    Ok(either(
        global,
        || {
            let mut document = profile_json(profile, &head, crate::VERSION);
            document["outcomes"] = json!(found.outcomes);
            if args.charts {
                let charts = profile_charts(profile);
                document["charts"] = charts.iter().map(Chart::json).collect();
            }
            document
        },
        || profile_text(profile, &head, heading()),
    ))
}

fn classes_by(args: &ProfileArgs) -> Option<String> {
    match &args.scenario {
        Some(file) => Some(format!("the classes of {}", file.display())),
        None if args.by.is_empty() => None,
        None => Some(args.by.join(", ")),
    }
}

fn scan_input(args: &ProfileArgs, loaded: Option<&Loaded>, global: &Global) -> ScanInput {
    let classes = match loaded {
        None => Classing::Columns { names: args.by.clone(), most: usize::from(args.classes) },
        Some(loaded) => Classing::Named(loaded.scenario.class.iter().map(named).collect()),
    };
    ScanInput {
        classes,
        only: args.only.clone(),
        pace: None,
        cache_blocks: CACHE_BLOCKS.to_vec(),
        threads: threads_of(global),
    }
}

/// A profile, and when its first and last requests came.
struct Found {
    profile: Profile,
    outcomes: Option<TaskOutcomes>,
    from: Option<String>,
    to: Option<String>,
}

fn characterise(
    ledger: &Ledger,
    input: &ScanInput,
    cluster: Option<&str>,
    global: &Global,
) -> Result<Found, Failure> {
    let failed = |error| ledger_failure(&error);
    let name = || ledger.directory().display().to_string();
    let scanned = match cluster {
        None => ledger.scan(input).map_err(failed)?,
        Some(address) => optional::scan_on_cluster(ledger, address, input)
            .map_err(|error| query_failure(&error, &name()))?,
    };
    let input_only = &input.only;
    let seed = Seed::new(global.seed.unwrap_or(SEED));
    let mut series = ledger.series(seed).map_err(failed)?;
    series.sort_by_key(|series| std::cmp::Reverse(series.clients.len()));
    let others: Vec<String> = series.iter().skip(1).map(|series| series.name.clone()).collect();
    let Scanned { gathered, classes, clients, clock, no_clock, reuse, notes, .. } = scanned;
    let input = ProfileInput {
        classes,
        clients,
        clients_named: CLIENTS_NAMED,
        clock,
        no_clock,
        reuse,
        series: series.into_iter().next(),
        seed,
        threads: threads(global),
    };
    let outcomes = scanned.outcomes;
    let mut profile = profile(gathered, &input);
    profile.warnings.extend(notes);
    if profile.classes.is_empty() && !input_only.is_empty() {
        let only: Vec<String> =
            input_only.iter().map(|(column, value)| format!("{column}={value}")).collect();
        profile.warnings.push(format!("no row has {}", only.join(" and ")));
    }
    if !others.is_empty() {
        profile.warnings.push(format!(
            "the ledger holds more series than the largest, which is shown: {}",
            others.join(", ")
        ));
    }
    if let Some(outcomes) = outcomes {
        profile.warnings.push(format!(
            "{} of {} tasks have no outcome yet ({:.1}%); {} of the others succeeded",
            outcomes.tasks - outcomes.resolved,
            outcomes.tasks,
            outcomes.unresolved_share * 100.0,
            outcomes.succeeded
        ));
    }
    let absolute = clock.is_some();
    let moment = |ns: i64| {
        let at = jiff::Timestamp::from_nanosecond(i128::from(ns)).ok()?;
        Some(at.round(jiff::Unit::Second).unwrap_or(at).to_string())
    };
    let first = scanned.first_ns.filter(|_| absolute);
    let span = profile.classes.first().and_then(|all| all.span_s);
    let last = first.zip(span).map(|(first, span)| first + (span * 1e9) as i64);
    let (from, to) = (first.and_then(moment), last.and_then(moment));
    Ok(Found { profile, outcomes, from, to })
}

/// The classes as tables of a scenario.
fn tables(
    ledger: &Ledger,
    input: &ScanInput,
    profile: &Profile,
    head: &ProfileHead<'_>,
) -> Result<String, Failure> {
    let lengths = ledger.joint_lengths(input).map_err(|error| ledger_failure(&error))?;
    let mut all = JointLengths::default();
    lengths.iter().for_each(|(_, own)| all.merge(own));
    let points: Vec<(&str, _)> = std::iter::once(("all", &all))
        .chain(lengths.iter().map(|(name, own)| (name.as_str(), own)))
        .filter_map(|(name, own)| Some((name, own.points(SCENARIO_POINTS)?)))
        .collect();
    let classes: Vec<ScenarioClass<'_>> =
        points.iter().map(|(name, lengths)| ScenarioClass { name, lengths }).collect();
    scenario_of(profile, head, &classes)
        .map_err(|problem| Failure::one(Diagnostic::about("no-scenario", head.source, problem)))
}

/// A load test with the lengths of the log.
fn load_test(
    tool: args::BenchTool,
    ledger: &Ledger,
    input: &ScanInput,
    profile: &Profile,
    head: &ProfileHead<'_>,
) -> Result<Bench, Failure> {
    let asked = ledger.asked(input).map_err(|error| ledger_failure(&error))?;
    let all = profile.classes.first();
    let own = BenchInput {
        source: head.source,
        block_tokens: asked.iter().find_map(|row| Some(u64::from(row.blocks.as_ref()?.1))),
        rate_per_s: all.and_then(|all| all.mean_rps_rows_over_span),
        gap_cv: all.and_then(|all| all.inter_arrival.as_ref()?.cv),
        seed: head.seed,
    };
    #[expect(
        clippy::float_cmp,
        reason = "exactly one is the weight of a row that stands for itself"
    )]
    let several = asked.iter().filter(|row| row.weight != 1.0).count();
    let rows = asked.into_iter().map(|row| BenchRow {
        at_s: row.at_s,
        prompt: row.prompt.map(u64::from),
        output: row.output.map(u64::from),
        cached: row.cached.map(u64::from),
        blocks: row.blocks.map(|(names, _)| names),
    });
    let tool = match tool {
        args::BenchTool::Guidellm => BenchTool::Guidellm,
        args::BenchTool::Vllm => BenchTool::Vllm,
        args::BenchTool::Aiperf => BenchTool::Aiperf,
        args::BenchTool::Mooncake => BenchTool::Mooncake,
    };
    let mut bench = bench_of(tool, rows, &own)
        .map_err(|problem| Failure::one(Diagnostic::about("no-load-test", head.source, problem)))?;
    if several > 0 {
        bench.notes.push(format!(
            "{several} rows of the log stand for several requests each, and are asked for once"
        ));
    }
    Ok(bench)
}

/// How long requests would take on the first pool of a scenario that fits its devices.
fn pace(
    loaded: &Loaded,
    file: &Path,
    found: &Profile,
    global: &Global,
) -> Result<Option<Pace>, Failure> {
    let budgets = fit::pools(loaded, global)?;
    let pools = loaded.scenario.pool.iter().zip(&budgets);
    let Some((pool, budget)) = pools.into_iter().find(|(_, budget)| budget.fits) else {
        return Ok(None);
    };
    let Some(all) = found.classes.first() else { return Ok(None) };
    let (Some(rate), Some(prompt), Some(output)) =
        (all.mean_rps_rows_over_span, &all.prompt, &all.output)
    else {
        return Ok(None);
    };
    let rows = constants(&loaded.catalog);
    let times = performance::times(loaded, file, pool, budget, &rows)?;
    Ok(Some(pool_pace(&PaceInput {
        steps: &times.steps,
        rates: times.rates,
        budget,
        reserves_output: times.input.engine.name == "tensorrt-llm",
        replicas: pool.replicas.now() as f64,
        requests_per_s: rate,
        prompt: prompt.mean,
        cached: 0.0,
        output: output.mean,
    })))
}
