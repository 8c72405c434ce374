//! `ingest --prometheus`, and files of metrics: what was counted goes into the ledger's series.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write};
use std::path::Path;

use plimsoll_fleet::metrics::Signal;
use plimsoll_ledger::{Ingested, SeriesRow, record_series};
use plimsoll_live::{
    Basis, CollectInput, Collected, DemandWindow, Exposition, LengthShares, LiveError, Matcher,
    MetricSource, ReplicaWindow, collect,
};
use plimsoll_report::{ingest_json, ingest_text};
use plimsoll_scenario::Diagnostic;
use serde_json::json;

use super::ledger::not_ingested;
use super::live::{prometheus, unanswered};
use super::watch::now_s;
use super::{either, tell};
use crate::args::{Global, IngestArgs};
use crate::failure::Failure;
use crate::heading;

const SECOND_NS: i64 = 1_000_000_000;

/// Whether a file is a text of metrics, by its first line. What is no file, such as a pipe, can be read only once, and is left to whoever reads it.
pub(super) fn is_exposition(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut head = [0; 7];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && [b"# HELP ", b"# TYPE ", b"# UNIT "].contains(&&head)
}

/// Reads a Prometheus into the ledger.
pub(super) fn of_prometheus(
    args: &IngestArgs,
    ledger: &Path,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    if let Some(file) = args.files.first() {
        let message = format!("`{}` and `--prometheus` are two sources", file.display());
        let diagnostic = Diagnostic::about("usage", "command line", message);
        return Err(Failure::one(
            diagnostic.help("ingest one after the other, into the same ledger"),
        ));
    }
    if let Some((label, _)) = args.live.source.matches.iter().find(|(label, _)| label.contains(':'))
    {
        let message =
            format!("`--match {label}=…` is about a pool of a plan, and a ledger has none");
        let diagnostic = Diagnostic::about("usage", "command line", message);
        return Err(Failure::one(diagnostic.help("write `--match LABEL=VALUE`")));
    }
    let source = prometheus(&args.live.source)?;
    let until = args.live.until.map_or_else(|| now_s() as i64, |at| at.as_second());
    let since = until.saturating_sub(args.live.since.get() as i64);
    let name = args.source.clone().unwrap_or_else(|| "prometheus".to_owned());
    let collected = counted(&source, args, (since, until), global, err)?;
    recorded(&collected, (&name, source.name()), ledger, global)
}

/// Reads files of metrics into the ledger.
pub(super) fn of_files(
    args: &IngestArgs,
    ledger: &Path,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let mut said = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        let unreadable = |error: std::io::Error| {
            Failure::one(Diagnostic::about(
                "unreadable-file",
                name.clone(),
                format!("cannot be opened: {error}"),
            ))
        };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let at_ms = args.start.map(|at| at.as_millisecond());
        let read = Exposition::read(&name, BufReader::new(file), at_ms)
            .map_err(|error| bad(&error, &name))?;
        for line in read.bad().iter().take(5) {
            tell(global, err, &format!("{name}:{}: not taken: {}", line.line, line.reason));
        }
        if read.bad_lines() > 5 {
            tell(global, err, &format!("{name}: {} lines were not taken", read.bad_lines()));
        }
        let Some((first, last)) = read.span_ms() else {
            let message =
                "has no sample with a time: metrics of one moment count nothing over a window";
            let diagnostic = Diagnostic::about("no-samples", name.clone(), message);
            return Err(Failure::one(diagnostic.help("write what was scraped over time, such as `promtool tsdb dump-openmetrics` does, or ask the Prometheus itself with `--prometheus`")));
        };
        let window = args.live.window.get().max(1.0) as i64;
        let span = (first.div_euclid(1000) - window, last.div_euclid(1000) + window);
        let collected = counted(&read, args, span, global, err)?;
        let source = args.source.clone().unwrap_or_else(|| "prometheus".to_owned());
        said.push(recorded(&collected, (&source, &name), ledger, global)?);
    }
    Ok(said.pop().filter(|_| args.files.len() == 1).unwrap_or_else(|| said.concat()))
}

fn bad(error: &LiveError, name: &str) -> Failure {
    Failure::one(Diagnostic::about("bad-metrics", name, error.to_string()).help(error.help()))
}

fn counted(
    source: &dyn MetricSource,
    args: &IngestArgs,
    (since_s, until_s): (i64, i64),
    global: &Global,
    err: &mut dyn Write,
) -> Result<Collected, Failure> {
    let input = CollectInput {
        window_s: args.live.window.get().round().clamp(1.0, 86_400.0) as u32,
        models: args.live.models.clone(),
        matches: args
            .live
            .source
            .matches
            .iter()
            .map(|(label, value)| Matcher::Is(label.clone(), value.clone()))
            .collect(),
        ..CollectInput::usual(since_s, until_s)
    };
    let found = collect(source, &input, &mut |at| {
        if at.of > 1 && at.done > 0 {
            tell(global, err, &format!("read {} of {} days", at.done, at.of));
        }
    });
    found.map_err(|error| unanswered(&error))
}

fn recorded(
    collected: &Collected,
    (source, from): (&str, &str),
    ledger: &Path,
    global: &Global,
) -> Result<String, Failure> {
    let rows = collected.demand.iter().map(|own| demand_row(own, from));
    let rows = rows.chain(collected.replicas.iter().map(|own| replica_row(own, from)));
    let rows = rows.chain(length_rows(&collected.lengths, from));
    let mut done: Ingested = record_series(ledger, source, rows.collect()).map_err(not_ingested)?;
    done.warnings.extend(collected.notes.iter().cloned());
    done.warnings.extend(basis_note(collected));
    let name = ledger.display().to_string();
    Ok(either(
        global,
        || {
            let mut document = ingest_json(&done, &name, crate::VERSION);
            document["series"] = json!({
                "demand_windows": collected.demand.len(),
                "replica_windows": collected.replicas.len(),
                "gaps": collected.gaps,
                "scrape_s": collected.scrape_s,
            });
            document
        },
        || ingest_text(&done, &name, heading()),
    ))
}

/// What kind of demand was read: the reader must know that carried is not offered.
fn basis_note(collected: &Collected) -> Option<String> {
    let of = |basis: Basis| collected.demand.iter().filter(|own| own.basis == basis).count();
    let (queued, carried) = (of(Basis::CarriedAndQueued), of(Basis::Carried));
    (queued + carried > 0).then(|| {
        format!(
            "demand of {} windows is what engines carried{}: no gateway counts what was offered",
            queued + carried,
            if queued > 0 {
                " and what their queues grew by"
            } else {
                ", too low while calls wait"
            }
        )
    })
}

fn at(model: &str, start_s: i64, window_s: f64, from: &str) -> SeriesRow {
    SeriesRow {
        class: Some(model.to_owned()),
        start: Some(start_s.saturating_mul(SECOND_NS)),
        clock: Some("absolute".to_owned()),
        window_s: Some(window_s),
        file: Some(from.to_owned()),
        ..SeriesRow::default()
    }
}

fn demand_row(own: &DemandWindow, from: &str) -> SeriesRow {
    SeriesRow {
        basis: Some(own.basis.name().to_owned()),
        requests: own.requests,
        prompt_tokens: own.prompt_tokens,
        cached_tokens: own.cached_tokens,
        fresh_tokens: own.fresh_tokens,
        output_tokens: own.output_tokens,
        errors: own.errors,
        ..at(&own.model, own.start_s, f64::from(own.window_s), from)
    }
}

fn replica_row(own: &ReplicaWindow, from: &str) -> SeriesRow {
    let (ttft, itl) = (own.ttft.as_ref(), own.itl.as_ref());
    SeriesRow {
        replica: Some(own.replica.clone()),
        requests: own.requests,
        prompt_tokens: own.prompt_tokens,
        cached_tokens: own.cached_tokens,
        fresh_tokens: own.fresh_tokens,
        output_tokens: own.output_tokens,
        errors: own.errors,
        preemptions: own.preemptions,
        kv_share_max: own.kv_share_max,
        running_mean: own.running_mean,
        waiting_max: own.waiting_max,
        ttft_p50_s: ttft.and_then(|own| own.p50.upto_s),
        ttft_p90_s: ttft.and_then(|own| own.p90.upto_s),
        ttft_p99_s: ttft.and_then(|own| own.p99.upto_s),
        itl_p50_s: itl.and_then(|own| own.p50.upto_s),
        itl_p90_s: itl.and_then(|own| own.p90.upto_s),
        itl_p99_s: itl.and_then(|own| own.p99.upto_s),
        cache_hit_share: own.cache_hit_share(),
        ..at(&own.model, own.start_s, f64::from(own.window_s), from)
    }
}

/// Lengths by the upper edges of their buckets, a row for each model and stretch of time: prompts and outputs apart, for histograms do not say which belong together.
fn length_rows(all: &[LengthShares], from: &str) -> Vec<SeriesRow> {
    let mut rows: BTreeMap<(&str, i64, i64), SeriesRow> = BTreeMap::new();
    for own in all {
        let lengths: Vec<u64> = own.shares.iter().map(|(edge, _)| edge.max(0.0) as u64).collect();
        let shares: Vec<f64> = own.shares.iter().map(|(_, share)| *share).collect();
        let seconds = (own.end_s - own.start_s) as f64;
        let row = rows.entry((&own.model, own.start_s, own.end_s)).or_insert_with(|| SeriesRow {
            marginal: Some(true),
            ..at(&own.model, own.start_s, seconds, from)
        });
        if own.of == Signal::PromptLength {
            (row.prompt_lengths, row.prompt_shares) = (Some(lengths), Some(shares));
        } else {
            (row.output_lengths, row.output_shares) = (Some(lengths), Some(shares));
        }
    }
    rows.into_values().collect()
}
