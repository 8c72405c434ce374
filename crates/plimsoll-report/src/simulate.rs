//! What a simulation gave: a screen, a document, a table of requests, a trace.

use std::fmt::Write as _;
use std::io;

use plimsoll_sim::{End, Outcome, Stretch};
use plimsoll_study::{ClassResult, Distribution, PoolResult, Simulation, Verdict, Window};
use plimsoll_units::grouped;
use serde_json::{Value, json};

use crate::text::{Heading, aligned};

/// What a simulation is of.
#[derive(Clone, Debug)]
pub struct SimulationDocument<'a> {
    /// The study's name, or the run's.
    pub name: &'a str,
    /// The file it was read from.
    pub file: &'a str,
    /// When the simulated hour begins, where there is one.
    pub from: Option<String>,
    /// Where its step times come from.
    pub step_times: &'a str,
    /// How it came out.
    pub result: &'a Simulation,
}

/// The simulation as a JSON document.
pub fn simulate_json(document: &SimulationDocument<'_>, version: &str) -> Value {
    let mut value = json!({
        "schema": "plimsoll/simulate/v1", "version": version, "name": document.name, "file": document.file,
        "from": document.from, "step_times": document.step_times,
    });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(document.result))
    {
        value.extend(body);
    }
    value
}

fn verdict(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Stable) => "STABLE",
        Some(Verdict::Backlogged) => "BACKLOGGED",
        Some(Verdict::Overloaded) => "OVERLOADED",
        None => "NO VERDICT",
    }
}

/// What is not all is not rounded to it, nor what is something to nothing.
fn percent(share: f64) -> String {
    match format!("{:.1}%", share * 100.0) {
        all if all == "100.0%" && share < 1.0 => "over 99.9%".to_owned(),
        none if none == "0.0%" && share > 0.0 => "under 0.1%".to_owned(),
        text => text,
    }
}

/// The first screen.
pub fn simulate_text(document: &SimulationDocument<'_>, heading: Heading) -> String {
    let result = document.result;
    let mut out = heading.apply(document.name);
    let from = document.from.as_ref().map_or(String::new(), |from| format!("hour from {from} · "));
    let warm = if result.warm_up_s > 0.0 {
        format!(" after {:.0} s of warm-up", result.warm_up_s)
    } else {
        String::new()
    };
    let plural = if result.runs == 1 { "" } else { "s" };
    let _ = writeln!(
        out,
        "\n{from}{:.0} s{warm} · seed {} · {} run{plural}",
        result.seconds, result.seed, result.runs
    );
    let _ = writeln!(out, "step times: {}", document.step_times);
    let unfinished =
        if result.complete { "" } else { " · its backlog was not worked off, or it was stopped" };
    let _ = writeln!(out, "\n{}{unfinished}", verdict(result.verdict));
    out.push('\n');
    for pool in &result.pools {
        out.push_str(&pool_text(pool, result));
    }
    for class in &result.classes {
        out.push_str(&class_text(class, result.pools.len() > 1));
    }
    for class in &result.classes {
        let key = format!("{}.{}", class.pool, class.name);
        // One run has batches instead of others.
        let (metric, what, of) = match result.runs {
            1 => ("ttft_mean_ms", "mean TTFT", "batches"),
            _ => ("ttft_p95_ms", "TTFT p95", "runs"),
        };
        let Some(span) = result.intervals.get(&format!("{key}.{metric}")) else { continue };
        let _ = writeln!(
            out,
            "{key}: {what} {} to {} ms ({}% interval over {} {of})",
            milliseconds(span.low),
            milliseconds(span.high),
            (span.level * 100.0).round(),
            span.n
        );
    }
    let share =
        if result.steps == 0 { 0.0 } else { result.steps_leapt as f64 / result.steps as f64 };
    let _ = writeln!(out, "{} steps, {} of them leapt over", grouped(result.steps), percent(share));
    if let Some(timeline) = &result.timeline {
        out.push('\n');
        out.push_str(&timeline_text(timeline));
    }
    if !result.notes.is_empty() {
        out.push_str("\nTo know before trusting a number:\n");
        for note in &result.notes {
            let _ = writeln!(out, "- {note}");
        }
    }
    out
}

fn pool_text(pool: &PoolResult, result: &Simulation) -> String {
    let u = &pool.utilisation;
    let mut out = String::new();
    let share = if pool.replicas > 1 {
        format!(" with its share of the demand of {} replicas", grouped(pool.replicas))
    } else {
        String::new()
    };
    let _ = writeln!(out, "pool {}: one replica{share}, {}", pool.name, verdict(pool.verdict));
    if result.runs > 1 {
        let [stable, backlogged, overloaded] = pool.verdicts;
        let _ = writeln!(
            out,
            "  of {} runs {stable} stable, {backlogged} backlogged, {overloaded} overloaded",
            result.runs
        );
    }
    let _ = writeln!(
        out,
        "  busy {} · memory bandwidth {} · arithmetic {} · API servers {}",
        percent(u.busy),
        percent(u.bandwidth),
        percent(u.compute),
        percent(u.path)
    );
    let _ = writeln!(
        out,
        "  KV {} mean, {} most, of {} tokens · preemptions {}",
        percent(u.kv_mean),
        percent(u.kv_max),
        grouped(pool.kv_blocks.saturating_mul(pool.kv_block_tokens)),
        grouped(pool.preemptions)
    );
    let _ = writeln!(
        out,
        "  running {:.1} mean, {} most · waiting {:.1} mean, {} most",
        u.sequences_mean,
        grouped(u.sequences_max),
        u.waiting_mean,
        grouped(u.waiting_max)
    );
    if let Some(share) = pool.cache_hits.share.filter(|share| *share > 0.0) {
        let _ = writeln!(out, "  prefix cache: {} of prompt tokens", percent(share));
    }
    let _ = match (pool.binding.resource, pool.binding.first_at_s) {
        (Some(resource), at) => writeln!(
            out,
            "  binding: {} kept somebody waiting {} of the time, first after {:.1} s",
            resource.replace('_', " "),
            percent(pool.binding.share_of_time),
            at.unwrap_or(0.0)
        ),
        (None, _) => writeln!(out, "  binding: nothing, nobody waited for more than a step"),
    };
    out.push('\n');
    out
}

fn class_text(class: &ClassResult, with_pool: bool) -> String {
    let pool = if with_pool { format!(" at {}", class.pool) } else { String::new() };
    let mut out = format!(
        "class {}{pool}: {} requests offered, {} completed",
        class.name,
        grouped(class.offered),
        grouped(class.completed)
    );
    if let Some(attainment) = class.attainment {
        let _ = write!(out, ", {} good ({})", grouped(class.good), percent(attainment));
    }
    for (count, what) in [
        (class.rejected - class.too_long, "rejected"),
        (class.too_long, "longer than the cache"),
        (class.timed_out, "timed out"),
        (class.unfinished, "unfinished"),
    ] {
        if count > 0 {
            let _ = write!(out, ", {} {what}", grouped(count));
        }
    }
    out.push('\n');
    let rows: Vec<Vec<String>> = [
        ("TTFT", class.ttft_ms),
        ("ITL", class.itl_ms),
        ("TPOT", class.tpot_ms),
        ("E2E", class.e2e_ms),
        ("queue", class.queue_ms),
    ]
    .into_iter()
    .filter_map(|(metric, distribution)| {
        let Distribution { mean, p50, p90, p95, p99 } = distribution?;
        let mut row = vec![format!("  {metric}")];
        row.extend([mean, p50, p90, p95, p99].map(milliseconds));
        Some(row)
    })
    .collect();
    out.push_str(&aligned(&["  ms", "mean", "p50", "p90", "p95", "p99"], &rows, &[1, 2, 3, 4, 5]));
    out.push('\n');
    out
}

/// As many digits as anybody reads.
fn milliseconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.1}") } else { grouped(ms.round() as u64) }
}

fn timeline_text(timeline: &[Window]) -> String {
    let header = [
        "from s",
        "running",
        "waiting",
        "KV",
        "prompt tok/s",
        "output tok/s",
        "preempted",
        "held by",
    ];
    let rows: Vec<Vec<String>> = timeline
        .iter()
        .map(|w| {
            vec![
                format!("{:.0}", w.from_s),
                format!("{:.1}", w.utilisation.sequences_mean),
                format!("{:.1}", w.utilisation.waiting_mean),
                percent(w.utilisation.kv_mean),
                grouped(w.prefill_tokens_per_s.round() as u64),
                grouped(w.output_tokens_per_s.round() as u64),
                grouped(w.preemptions),
                w.held.map_or("-", |h| h).replace('_', " "),
            ]
        })
        .collect();
    aligned(&header, &rows, &[0, 1, 2, 3, 4, 5, 6])
}

/// How a request ended, in one word.
fn word(end: End) -> &'static str {
    match end {
        End::Completed => "completed",
        End::Rejected => "rejected",
        End::TooLong => "too_long",
        End::TimedOut => "timed_out",
    }
}

/// Requests, one a line, as they end.
pub struct OutcomesCsv<W: io::Write>(csv::Writer<W>);

impl<W: io::Write> OutcomesCsv<W> {
    /// Begins with the names of the columns.
    pub fn new(to: W) -> csv::Result<Self> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record([
            "pool",
            "run",
            "request",
            "class",
            "end",
            "arrived_s",
            "scheduled_s",
            "first_s",
            "done_s",
            "prompt_tokens",
            "cached_tokens",
            "output_tokens",
            "preemptions",
            "largest_gap_s",
        ])?;
        Ok(Self(writer))
    }

    /// Adds a request.
    pub fn add(&mut self, pool: &str, class: &str, run: u32, o: &Outcome) -> csv::Result<()> {
        // Whole picoseconds, so that nothing is rounded.
        let seconds =
            |ps: u64| format!("{}.{:012}", ps / 1_000_000_000_000, ps % 1_000_000_000_000);
        let maybe = |ps: Option<u64>| ps.map_or(String::new(), seconds);
        self.0.write_record([
            pool,
            &run.to_string(),
            &o.serial.to_string(),
            class,
            word(o.end),
            &seconds(o.arrived),
            &maybe(o.scheduled),
            &maybe(o.first),
            &seconds(o.done),
            &o.prompt.to_string(),
            &o.cached.to_string(),
            &o.output.to_string(),
            &o.preemptions.to_string(),
            &seconds(o.largest_gap),
        ])
    }

    /// Everything is written.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.flush()?;
        self.0.into_inner().map_err(|error| io::Error::other(error.to_string()))
    }
}

/// A trace that Perfetto and Chrome's own viewer read: steps as slices, gauges as counters, requests as spans.
pub struct Trace<W: io::Write> {
    to: W,
    any: bool,
}

impl<W: io::Write> Trace<W> {
    /// Begins the list of events.
    pub fn new(mut to: W) -> io::Result<Self> {
        to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
        Ok(Self { to, any: false })
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        if std::mem::replace(&mut self.any, true) {
            self.to.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut self.to, event)?;
        Ok(())
    }

    /// Steps of an engine.
    pub fn stretch(&mut self, pool: &str, s: &Stretch) -> io::Result<()> {
        let at = s.from as f64 / 1e6;
        let name = match (s.prefill, s.decodes, s.steps) {
            (0, _, 1) => "decode".to_owned(),
            (0, _, n) => format!("{n} decode steps"),
            (_, 0, _) => "prefill".to_owned(),
            _ => "prefill and decode".to_owned(),
        };
        self.event(&json!({
            "name": name, "ph": "X", "ts": at, "dur": s.took as f64 / 1e6, "pid": pool, "tid": "steps",
            "args": { "prompt_tokens": s.prefill, "decodes": s.decodes, "context_tokens": s.context, "steps": s.steps },
        }))?;
        for (name, value) in [
            ("running", s.gauges.running),
            ("waiting", s.gauges.waiting),
            ("kv_blocks", s.gauges.blocks),
        ] {
            self.event(
                &json!({ "name": name, "ph": "C", "ts": at, "pid": pool, "args": { name: value } }),
            )?;
        }
        Ok(())
    }

    /// A request, from its arrival to its end.
    pub fn request(&mut self, pool: &str, class: &str, o: &Outcome) -> io::Result<()> {
        let spans = [
            ("queue", Some(o.arrived), o.scheduled.or(Some(o.done))),
            ("prefill", o.scheduled, o.first.or(Some(o.done))),
            ("decode", o.first, Some(o.done)),
        ];
        for (name, from, until) in spans {
            let (Some(from), Some(until)) = (from, until) else { continue };
            for (phase, at) in [("b", from), ("e", until)] {
                self.event(&json!({
                    "name": name, "cat": class, "ph": phase, "id": o.serial, "ts": at as f64 / 1e6, "pid": pool, "tid": "requests",
                    "args": { "prompt_tokens": o.prompt, "output_tokens": o.output, "end": word(o.end) },
                }))?;
            }
        }
        Ok(())
    }

    /// Ends the list.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.write_all(b"\n]}\n")?;
        self.to.flush()?;
        Ok(self.to)
    }
}
