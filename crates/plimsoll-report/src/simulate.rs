//! What a simulation gave: a screen, a document, a table of requests, a trace.

use std::fmt::Write as _;
use std::io;

use plimsoll_sim::{Attempt, AttemptEnd, Stretch};
use plimsoll_study::{
    BrokenPromise, ClassResult, Distribution, GoodputWindow, PoolResult, ProviderResult,
    ReplicaSpread, ScalingResult, Simulation, ToolResult, Verdict, Window,
};
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
    /// Promises that it breaks.
    pub broken: &'a [BrokenPromise],
}

/// The simulation as a JSON document.
pub fn simulate_json(document: &SimulationDocument<'_>, version: &str) -> Value {
    let mut value = json!({
        "schema": "plimsoll/simulate/v1", "version": version, "name": document.name, "file": document.file,
        "from": document.from, "step_times": document.step_times, "broken_promises": document.broken,
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
pub(crate) fn percent(share: f64) -> String {
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
    if !result.pools.is_empty() {
        let _ = writeln!(out, "step times: {}", document.step_times);
    }
    let unfinished =
        if result.complete { "" } else { " · its backlog was not worked off, or it was stopped" };
    let good: Vec<String> = result
        .classes
        .iter()
        .filter_map(|class| Some(format!("{} of {}", percent(class.attainment?), class.name)))
        .collect();
    let good =
        if good.is_empty() { String::new() } else { format!(" · good: {}", good.join(", ")) };
    let _ = writeln!(out, "\n{}{good}{unfinished}", verdict(result.verdict));
    for own in document.broken {
        let (seen, promised) = match own.promise {
            "attainment" => (percent(own.seen), percent(own.promised)),
            _ => (format!("{:.0} ms", own.seen), format!("{:.0} ms", own.promised)),
        };
        let what = if own.promise == "attainment" { "good tasks" } else { own.promise };
        let _ = writeln!(out, "PROMISE BROKEN · {}: {what} {seen}, promised {promised}", own.class);
    }
    out.push('\n');
    for pool in &result.pools {
        out.push_str(&pool_text(pool, result));
    }
    result.providers.iter().for_each(|p| out.push_str(&provider_text(p)));
    result.tools.iter().for_each(|t| out.push_str(&tool_text(t)));
    if !(result.providers.is_empty() && result.tools.is_empty()) {
        out.push('\n');
    }
    result.autoscaling.iter().for_each(|a| out.push_str(&scaling_text(a, result.runs)));
    if result.regions.len() > 1 {
        out.push_str(&regions_text(result));
    }
    let several = result.pools.len() + result.providers.len() > 1;
    for class in &result.classes {
        out.push_str(&class_text(class, several));
    }
    if let (Some(resource), Some(of)) = (result.binding.resource, &result.binding.pool) {
        let what = match resource {
            "provider" => format!(
                "the limits of provider {of}: {} of calls were turned away",
                percent(result.binding.share_of_time)
            ),
            "tool" => {
                format!("tool {of}: {} of calls had to wait", percent(result.binding.share_of_time))
            }
            other => format!(
                "{} of pool {of}, {} of the time",
                other.replace('_', " "),
                percent(result.binding.share_of_time)
            ),
        };
        let _ = writeln!(out, "what binds first: {what}");
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
    if result.steps > 0 {
        let share = percent(result.steps_leapt as f64 / result.steps as f64);
        let _ = writeln!(out, "{} steps, {share} of them leapt over", grouped(result.steps));
    }
    if let Some(timeline) = &result.timeline {
        out.push('\n');
        out.push_str(&timeline_text(timeline));
    }
    if let Some(timeline) = &result.goodput_timeline {
        out.push('\n');
        out.push_str(&goodput_text(timeline));
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
    let plural = if pool.replicas == 1 { "" } else { "s" };
    let scales = result.autoscaling.iter().any(|a| a.pool == pool.name);
    let _ = writeln!(
        out,
        "pool {}: {} replica{plural}{}, {}",
        pool.name,
        grouped(pool.replicas),
        if scales { " at first" } else { "" },
        verdict(pool.verdict)
    );
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
        "  of a replica: running {:.1} mean, {} most · waiting {:.1} mean, {} most",
        u.sequences_mean,
        grouped(u.sequences_max),
        u.waiting_mean,
        grouped(u.waiting_max)
    );
    let told = |spread: &&ReplicaSpread| pool.replicas > 1 || scales && spread.queue.max > 0.0;
    if let Some(spread) = pool.replica_spread.as_ref().filter(told) {
        let _ = writeln!(
            out,
            "  over replicas, p90 and most: KV {} and {} · queue {:.0} and {:.0} · TTFT p90 {} and {} ms · busy {} to {}",
            percent(spread.kv.p90),
            percent(spread.kv.max),
            spread.queue.p90,
            spread.queue.max,
            milliseconds(spread.ttft_p90_ms.p90),
            milliseconds(spread.ttft_p90_ms.max),
            percent(spread.busy.low),
            percent(spread.busy.high.min(1.0)),
        );
    }
    for (count, what) in [
        (pool.failed, "failed"),
        (pool.reclaimed, "were reclaimed"),
        (pool.upgraded, "were replaced"),
    ] {
        if count > 0 {
            let _ = writeln!(out, "  {} replicas {what}, over all runs", grouped(count));
        }
    }
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
        "class {}{pool}: {} offered, {} completed",
        class.name,
        grouped(class.offered),
        grouped(class.completed)
    );
    if let Some(attainment) = class.attainment {
        let _ = write!(out, ", {} good ({})", grouped(class.good), percent(attainment));
    }
    for (count, what) in [
        (class.rejected - class.too_long, "rejected"),
        (class.too_long, "longer than is accepted"),
        (class.timed_out, "timed out"),
        (class.lost, "lost"),
        (class.left, "left by their users"),
        (class.tool_failed, "failed by a tool"),
        (class.unfinished, "unfinished"),
    ] {
        if count > 0 {
            let _ = write!(out, ", {} {what}", grouped(count));
        }
    }
    out.push('\n');
    let _ = write!(out, "  goodput {:.2}/s", class.goodput_per_s);
    if class.extra_attempts > 0 {
        let _ = write!(out, " · {} attempts beyond the first", grouped(class.extra_attempts));
    }
    if class.wasted_prefill_tokens + class.wasted_output_tokens > 0 {
        let _ = write!(
            out,
            " · thrown away: {} prompt and {} output tokens",
            grouped(class.wasted_prefill_tokens),
            grouped(class.wasted_output_tokens)
        );
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

fn provider_text(provider: &ProviderResult) -> String {
    let a = &provider.attempts;
    let mut out = format!(
        "provider {}: {} calls, {} answered",
        provider.name,
        grouped(a.sent),
        grouped(a.answered)
    );
    for (count, what) in [
        (a.refused, "turned away by a limit"),
        (a.lost, "failed"),
        (a.nobody_there, "in an outage"),
        (a.too_long, "larger than a limit"),
        (a.given_up, "given up"),
    ] {
        if count > 0 {
            let _ = write!(out, ", {} {what}", grouped(count));
        }
    }
    for (limit, share) in &provider.limits_used {
        let _ = write!(out, " · {limit} {} used", percent(*share));
    }
    if let Some(wait) = &provider.retry_after_ms {
        let _ = write!(out, " · told to wait {} ms at the median", milliseconds(wait.p50));
    }
    out.push('\n');
    out
}

fn tool_text(tool: &ToolResult) -> String {
    let mut out = format!("tool {}: {} calls", tool.name, grouped(tool.calls));
    if tool.failed > 0 {
        let _ = write!(out, ", {} failed", grouped(tool.failed));
    }
    let _ = write!(out, " · {:.1} at once", tool.at_once_mean);
    if let Some(share) = tool.utilisation {
        let _ = write!(out, " ({} of what it handles)", percent(share));
    }
    if let Some(wait) = tool.wait_ms.filter(|_| tool.waited > 0.0) {
        let _ =
            write!(out, " · {} waited, p95 {} ms", percent(tool.waited), milliseconds(wait.p95));
    }
    out.push('\n');
    out
}

fn scaling_text(scaling: &ScalingResult, runs: u32) -> String {
    let plural = if runs == 1 { "" } else { "s" };
    let mut out = format!(
        "autoscaling of {}: {:.1} replicas ready on average, {} to {} ready or on their way · {:.1} replica-hours a run · {} up, {} down over {runs} run{plural}, {:.1} flips a day\n",
        scaling.pool,
        scaling.replicas_mean,
        scaling.replicas_min,
        scaling.replicas_max,
        scaling.replica_hours,
        scaling.ups,
        scaling.downs,
        scaling.flips_per_day
    );
    let seconds = |d: Option<Distribution>| {
        d.map_or("-".to_owned(), |d| format!("{:.0} s (p90 {:.0} s)", d.p50, d.p90))
    };
    let _ = writeln!(
        out,
        "  decision lag {} · time to ready {} · queue meanwhile {} at most",
        seconds(scaling.decision_lag_s),
        seconds(scaling.time_to_ready_s),
        grouped(scaling.queue_while_starting_max)
    );
    let _ = writeln!(
        out,
        "  short of what the signal asked for: {:.2} replica-hours a run, {} at most · beyond it: {:.2}, {}",
        scaling.short_replica_hours,
        scaling.short_max,
        scaling.over_replica_hours,
        scaling.over_max
    );
    if scaling.decisions_at_most > 0 {
        let _ = writeln!(
            out,
            "  {} decisions wanted more replicas than there may be",
            grouped(scaling.decisions_at_most)
        );
    }
    out.push('\n');
    out
}

fn regions_text(result: &Simulation) -> String {
    let rows: Vec<Vec<String>> = result
        .regions
        .iter()
        .map(|r| {
            let good = if r.offered == 0 {
                "-".to_owned()
            } else {
                percent(r.good as f64 / r.offered as f64)
            };
            vec![
                r.name.clone(),
                grouped(r.offered),
                good,
                grouped(r.answered),
                grouped(r.answered_for_others),
            ]
        })
        .collect();
    let header = ["region", "offered", "good", "answered here", "for others"];
    let mut out = aligned(&header, &rows, &[1, 2, 3, 4]);
    out.push('\n');
    out
}

/// As many digits as anybody reads.
pub(crate) fn milliseconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.1}") } else { grouped(ms.round() as u64) }
}

fn goodput_text(timeline: &[GoodputWindow]) -> String {
    let rows: Vec<Vec<String>> = timeline
        .iter()
        .map(|w| {
            vec![
                format!("{:.0}", w.from_s),
                format!("{:.2}", w.offered_per_s),
                format!("{:.2}", w.attempts_per_s),
                format!("{:.2}", w.goodput_per_s),
                w.good.map_or("-".to_owned(), percent),
            ]
        })
        .collect();
    let header = ["tasks from s", "offered/s", "attempts/s", "good/s", "good"];
    aligned(&header, &rows, &[0, 1, 2, 3, 4])
}

fn timeline_text(timeline: &[Window]) -> String {
    let header = [
        "from s",
        "replicas",
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
                format!("{:.1}", w.replicas_mean),
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
    aligned(&header, &rows, &[0, 1, 2, 3, 4, 5, 6, 7])
}

/// How an attempt ended, in one word.
fn word(end: AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Answered => "completed",
        AttemptEnd::Refused => "rejected",
        AttemptEnd::NobodyThere => "nobody_there",
        AttemptEnd::Lost => "lost",
        AttemptEnd::TooLong => "too_long",
        AttemptEnd::GivenUp => "timed_out",
    }
}

/// Attempts, one a line, as they end.
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
            "replica",
            "sent_s",
            "read_tokens",
        ])?;
        Ok(Self(writer))
    }

    /// Adds an attempt; what never got anywhere has only its class, its end and when it was sent.
    pub fn add(&mut self, pool: &str, class: &str, run: u32, a: &Attempt<'_>) -> csv::Result<()> {
        // Whole picoseconds, so that nothing is rounded.
        let seconds =
            |ps: u64| format!("{}.{:012}", ps / 1_000_000_000_000, ps % 1_000_000_000_000);
        let of =
            |text: &dyn Fn(&plimsoll_sim::Outcome) -> String| a.outcome.map_or(String::new(), text);
        let maybe = |ps: Option<u64>| ps.map_or(String::new(), seconds);
        self.0.write_record([
            pool,
            &run.to_string(),
            &of(&|o| o.serial.to_string()),
            class,
            word(a.end),
            &of(&|o| seconds(o.arrived)),
            &of(&|o| maybe(o.scheduled)),
            &of(&|o| maybe(o.first)),
            &of(&|o| seconds(o.done)),
            &of(&|o| o.prompt.to_string()),
            &of(&|o| o.cached.to_string()),
            &of(&|o| o.output.to_string()),
            &of(&|o| o.preemptions.to_string()),
            &of(&|o| seconds(o.largest_gap)),
            &a.replica.map_or(String::new(), |r| r.to_string()),
            &seconds(a.sent),
            &of(&|o| o.read.to_string()),
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
    pub fn stretch(&mut self, pool: &str, replica: usize, s: &Stretch) -> io::Result<()> {
        let pool = format!("{pool} {replica}");
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

    /// An attempt, from its arrival to its end; one that got nowhere leaves no trace.
    pub fn attempt(&mut self, pool: &str, class: &str, a: &Attempt<'_>) -> io::Result<()> {
        let Some(o) = a.outcome else { return Ok(()) };
        let pool = a.replica.map_or(pool.to_owned(), |replica| format!("{pool} {replica}"));
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
                    "args": { "prompt_tokens": o.prompt, "output_tokens": o.output, "end": word(a.end) },
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
