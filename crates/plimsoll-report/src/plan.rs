//! The plan: a screen, and a document that other commands read.

mod against;

use std::fmt::Write as _;

use plimsoll_study::{Assumption, Expected, Limit, Plan, PlannedPool, PoolLimits, Proof, Span};
use plimsoll_units::grouped;
use serde_json::{Value, json};

pub use self::against::{Changed, against_text, changes};
use crate::page::{Section, terminal};
use crate::review::{budget_blocks, feasible, plan_section, scaling_section};
use crate::text::Heading;

/// What a plan is of.
pub struct PlanDocument<'a> {
    /// The study's name.
    pub name: &'a str,
    /// The scenario.
    pub file: &'a str,
    /// Names the plan: the same input has the same.
    pub id: &'a str,
    /// What the scenario says, as a fingerprint.
    pub scenario_hash: &'a str,
    /// The day that stands for today.
    pub as_of: &'a str,
    /// Makes it repeatable.
    pub seed: u64,
    /// The share of tasks that must be good.
    pub attainment: f64,
    /// Demand is counted over windows of so many seconds.
    pub window_s: f64,
    /// The plan.
    pub plan: &'a Plan,
    /// The demand that it was made for.
    pub expected: &'a Expected,
    /// What it rests on.
    pub assumptions: &'a [Assumption],
    /// What has changed since another plan.
    pub against: Option<&'a [Changed]>,
    /// Whether every limit and threshold says why.
    pub why: bool,
}

/// The plan as a JSON document.
pub fn plan_json(document: &PlanDocument<'_>, version: &str) -> Value {
    let plan = document.plan;
    let mut value = json!({
        "schema": "plimsoll/plan/v2",
        "version": version,
        "id": document.id,
        "name": document.name,
        "file": document.file,
        "scenario_hash": document.scenario_hash,
        "as_of": document.as_of,
        "seed": document.seed,
        "attainment": document.attainment,
        "feasible": plan.feasible,
        "infeasible_because": plan.infeasible_because,
    });
    if let (Value::Object(value), Ok(Value::Object(body))) =
        (&mut value, serde_json::to_value(plan))
    {
        value.extend(body);
        value.insert("forecast".to_owned(), json!(document.expected));
        value.insert("assumptions".to_owned(), json!(document.assumptions));
        if let Some(changed) = document.against {
            value.insert("against".to_owned(), json!(changed));
        }
    }
    value
}

/// The first screen.
pub fn plan_text(document: &PlanDocument<'_>, heading: Heading) -> String {
    let plan = document.plan;
    let mut out = heading.apply(document.name);
    let quantile = (document.expected.quantile * 1e4).round() / 1e2;
    let _ = writeln!(
        out,
        "\nas of {} · sized for {} · demand at its p{quantile} · {}% good · seed {}",
        document.as_of,
        plan.sized_for,
        (document.attainment * 1e4).round() / 1e2,
        document.seed
    );
    if let [pool] = plan.pools.as_slice()
        && pool.tiny
    {
        out.push_str(&format!("\n{}\n", feasible(plan)));
        tiny(&mut out, plan, pool);
        if !plan.notes.is_empty() {
            out.push('\n');
        }
        for note in &plan.notes {
            let _ = writeln!(out, "{}.", sentence(note));
        }
        closing(&mut out, document);
        return out;
    }
    out.push_str(&terminal(&[plan_section(plan, document.why)], heading));
    launch(&mut out, plan, document.window_s, heading);
    let mut cost = Section::new("cost", "What it costs");
    budget_blocks(&mut cost, &plan.budget);
    out.push_str(&terminal(&[cost, scaling_section(&plan.scaling, document.why)], heading));
    if !document.why {
        out.push_str("\n`--why` says where each limit and threshold comes from.\n");
    }
    closing(&mut out, document);
    out
}

fn closing(out: &mut String, document: &PlanDocument<'_>) {
    if let Some(changed) = document.against {
        out.push('\n');
        out.push_str(&against_text(changed));
    }
    out.push('\n');
    let _ = writeln!(
        out,
        "Plan {}. `--out plan.json` keeps it, `--against plan.json` says later what has changed and why.",
        document.id
    );
}

/// One replica, one limit, no autoscaler, and why.
fn tiny(out: &mut String, plan: &Plan, pool: &PlannedPool) {
    let total = pool.replicas.total;
    let _ = writeln!(
        out,
        "\n{} of `{}` ({}) on {} of {}.",
        count(u64::from(total), "replica", "replicas"),
        pool.name,
        pool.model,
        count(pool.parallelism.devices, "device", "devices"),
        pool.accelerator
    );
    if let Some(one) = pool.one_replica_carries {
        let _ = writeln!(
            out,
            "One carries {one:.1} times the busiest hour, so nothing has to follow the demand."
        );
    }
    if let Some(proof) = &pool.proof {
        let _ = writeln!(
            out,
            "Seen over {}: {} good{}.",
            lasted(proof.seconds),
            share(proof.attainment),
            between(proof.interval)
        );
    }
    if let Some(limits) = plan.limits.first() {
        let limit = &limits.max_num_seqs;
        if let Some(value) = limit.value {
            let flag = limit
                .flags
                .and_then(|flags| flags.vllm)
                .map_or(String::new(), |flag| format!(" (`{flag} {value}`)"));
            let _ = writeln!(
                out,
                "One limit: {} at once{flag}; {}.",
                count(value as u64, "sequence", "sequences"),
                limit.why
            );
        }
    }
    let _ = writeln!(out, "No autoscaler: {}.", plan.scaling.why);
    if total == 1 {
        out.push_str("Nothing is in reserve: `survive = \"replica\"` under `[study.reliability]` asks for a second one.\n");
    }
}

/// What was counted with as many replicas as are planned with, and with fewer.
pub(crate) fn proof_text(proof: &Proof) -> String {
    let fewer = match proof.n {
        1 => String::new(),
        _ => format!(
            "; {} replicas, {}{}",
            proof.n_minus_1,
            share(proof.attainment_minus_1),
            between(proof.interval_minus_1),
        ),
    };
    format!(
        "simulated for {}: {} replicas, {} good{}{fewer}{}",
        lasted(proof.seconds),
        proof.n,
        share(proof.attainment),
        between(proof.interval),
        if proof.proven { "" } else { ": too close to say which, so it is a range" }
    )
}

/// A time in the largest unit that it fills.
fn lasted(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{:.0} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.0} min", s / 60.0),
        s => format!("{s:.0} s"),
    }
}

fn launch(out: &mut String, plan: &Plan, window_s: f64, heading: Heading) {
    let _ = writeln!(out, "\n{}", heading.apply("What is asked for, and what is carried of it"));
    for line in crate::launch::lines(plan, window_s, 80) {
        let _ = writeln!(out, "{}", heading.tinted(&line));
    }
}

/// Limits of a pool with their names.
pub(crate) fn named_limits(limits: &PoolLimits) -> [(&'static str, &Limit); 12] {
    [
        ("max_num_seqs", &limits.max_num_seqs),
        ("max_num_batched_tokens", &limits.max_num_batched_tokens),
        ("max_model_len", &limits.max_model_len),
        ("queue, tokens", &limits.queue_tokens),
        ("queue, requests", &limits.queue_requests),
        ("queue age", &limits.queue_age),
        ("KV ceiling", &limits.kv_ceiling),
        ("burst", &limits.burst),
        ("request TTL", &limits.request_ttl),
        ("TTL without replicas", &limits.no_endpoint_ttl),
        ("deadline", &limits.deadline),
        ("drain", &limits.drain),
    ]
}

pub(crate) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

pub(crate) fn share(share: Option<f64>) -> String {
    share.map_or("unknown".to_owned(), |share| format!("{:.2}%", share * 100.0))
}

pub(crate) fn between(span: Option<Span>) -> String {
    span.map_or(String::new(), |span| {
        format!(" ({:.2}% to {:.2}%)", span.low.max(0.0) * 100.0, span.high.min(1.0) * 100.0)
    })
}

/// Dollars, in no more digits than a plan has earned.
pub(crate) fn dollars(usd: f64) -> String {
    if usd < 1000.0 {
        return format!("${usd:.2}");
    }
    format!("${}", three(usd))
}

/// Three digits, grouped.
fn three(value: f64) -> String {
    let scale = 10f64.powi((value.abs().max(1.0).log10().floor() as i32 - 2).max(0));
    grouped(((value / scale).round() * scale) as u64)
}

/// A limit as it is pasted: every digit of it.
pub(crate) fn exact(value: f64) -> String {
    if value.fract() == 0.0 && value >= 1.0 { format!("{value:.0}") } else { number(value) }
}

pub(crate) fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v.abs() >= 1000.0 => three(v),
        v if v.abs() >= 100.0 => format!("{v:.0}"),
        v if v.fract() == 0.0 => format!("{v:.0}"),
        v if v.abs() >= 1.0 => format!("{v:.1}"),
        v => format!("{v:.3}"),
    }
}
