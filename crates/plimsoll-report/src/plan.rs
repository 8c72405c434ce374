//! The plan: a screen, and a document that other commands read.

mod against;

use std::fmt::Write as _;

use plimsoll_study::{
    Assumption, BudgetPlan, Expected, Limit, Plan, PlannedPool, PoolLimits, Proof, ReserveLine,
    ScalingPlan, Span,
};
use plimsoll_units::grouped;
use serde_json::{Value, json};

pub use self::against::{Changed, against_text, changes};
use crate::text::{Heading, aligned};

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
    out.push('\n');
    verdict(&mut out, plan, heading);
    if let [pool] = plan.pools.as_slice()
        && pool.tiny
    {
        tiny(&mut out, plan, pool);
        closing(&mut out, document);
        return out;
    }
    if !plan.pools.is_empty() {
        pools(&mut out, plan);
        for pool in &plan.pools {
            reserve(&mut out, pool, heading);
        }
        fleet(&mut out, plan, heading);
    }
    launch(&mut out, plan, document.window_s, heading);
    budget(&mut out, (&plan.budget, plan.pools.is_empty()), heading);
    alternatives(&mut out, plan, heading);
    scaling(&mut out, &plan.scaling, (heading, document.why));
    for own in &plan.limits {
        limits(&mut out, own, (heading, document.why));
    }
    if !document.why {
        out.push_str("\n`--why` says where each limit and threshold comes from.\n");
    }
    closing(&mut out, document);
    out
}

fn closing(out: &mut String, document: &PlanDocument<'_>) {
    let plan = document.plan;
    if let Some(changed) = document.against {
        out.push('\n');
        out.push_str(&against_text(changed));
    }
    if !plan.notes.is_empty() {
        out.push('\n');
    }
    for note in &plan.notes {
        let _ = writeln!(out, "Note: {note}.");
    }
    let _ = writeln!(
        out,
        "Plan {}. `--out plan.json` keeps it, `--against plan.json` says later what has changed and why.",
        document.id
    );
}

fn verdict(out: &mut String, plan: &Plan, heading: Heading) {
    let replicas: u32 = plan.pools.iter().map(|pool| pool.replicas.total).sum();
    let devices: u64 = plan.pools.iter().map(|pool| pool.devices).sum();
    let nodes = plan.fleet.as_ref().map(|fleet| fleet.nodes.iter().map(|n| n.nodes).sum::<u64>());
    let nodes = nodes.unwrap_or_else(|| plan.pools.iter().map(|pool| pool.nodes).sum());
    let word = if plan.feasible { "FEASIBLE" } else { "NOT FEASIBLE" };
    let _ = write!(out, "{}: ", heading.apply(word));
    let _ = match plan.pools.is_empty() {
        true => write!(out, "hosted models alone"),
        false => write!(
            out,
            "{}, {}, {}",
            count(u64::from(replicas), "replica", "replicas"),
            count(devices, "device", "devices"),
            count(nodes, "node", "nodes")
        ),
    };
    if let Some(usd) = plan.budget.peak_usd_per_hour {
        let _ = write!(out, ", {}/h at the peak", dollars(usd));
    }
    if let Some(usd) = plan.budget.usd_per_month {
        let span = plan.budget.interval.map_or(String::new(), |span| {
            format!(" ({} to {})", dollars(span.low), dollars(span.high))
        });
        let _ = write!(out, ", {} a month{span}", dollars(usd));
    }
    out.push('\n');
    for obstacle in &plan.infeasible_because {
        let _ = writeln!(out, "  × {}: {}", obstacle.kind.replace('_', " "), obstacle.what);
        let _ = writeln!(out, "    {}", obstacle.relax);
    }
    if !plan.floors.is_empty() {
        out.push_str("  What is shown below keeps promises a quarter above what can be kept.\n");
    }
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

fn pools(out: &mut String, plan: &Plan) {
    let rows: Vec<Vec<String>> = plan
        .pools
        .iter()
        .map(|pool| {
            let carry = pool.replicas.steady + pool.replicas.forecast;
            let range = pool.interval.filter(|span| span.high > span.low);
            let range = range
                .map_or(String::new(), |span| format!(" ({:.0} to {:.0})", span.low, span.high));
            vec![
                pool.name.clone(),
                pool.model.clone(),
                format!("{} x {}", pool.parallelism.devices, pool.accelerator),
                pool.replicas.now.to_string(),
                format!("{carry}{range}"),
                format!("+{}", pool.replicas.total - carry),
                pool.replicas.total.to_string(),
                grouped(pool.devices),
                grouped(pool.nodes),
            ]
        })
        .collect();
    let header =
        ["pool", "model", "replica", "now", "carry", "reserve", "total", "devices", "nodes"];
    out.push('\n');
    out.push_str(&aligned(&header, &rows, &[3, 4, 5, 6, 7, 8]));
}

fn reserve(out: &mut String, pool: &PlannedPool, heading: Heading) {
    let _ = writeln!(
        out,
        "\n{}",
        heading.apply(&format!("{}: {} replicas", pool.name, pool.replicas.total))
    );
    let rows: Vec<Vec<String>> = pool
        .reserve
        .iter()
        .filter(|line| line.replicas > 0 || line.name == "steady")
        .map(|line: &ReserveLine| {
            vec![
                format!("  {}", line.name.replace('_', " ")),
                if line.name == "steady" {
                    line.replicas.to_string()
                } else {
                    format!("+{}", line.replicas)
                },
                line.usd_per_month.map_or("-".to_owned(), dollars),
                line.why.clone(),
            ]
        })
        .collect();
    out.push_str(&aligned(&["  line", "replicas", "kept a month", "because"], &rows, &[1, 2]));
    let none: Vec<String> = pool
        .reserve
        .iter()
        .filter(|line| line.replicas == 0 && line.name != "steady")
        .map(|line| line.name.replace('_', " "))
        .collect();
    if !none.is_empty() {
        let _ = writeln!(out, "  none for: {}", none.join(", "));
    }
    if let Some(proof) = &pool.proof {
        let _ = writeln!(out, "  {}", proof_text(proof));
    }
    if let (Some(binds), Some(signal)) = (&pool.binds, &pool.first_signal) {
        let _ = writeln!(
            out,
            "  with too few {} binds, and {signal} shows it first",
            binds.replace('_', " ")
        );
    }
    if let Some(span) = pool.if_steps_differ.filter(|span| span.high > span.low) {
        let _ = writeln!(
            out,
            "  step times are predictions: were they off by as much as half of such are, {:.0} to {:.0} would carry it",
            span.low, span.high
        );
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

fn fleet(out: &mut String, plan: &Plan, heading: Heading) {
    let Some(fleet) = &plan.fleet else { return };
    let _ = writeln!(out, "\n{}", heading.apply("nodes at the peak"));
    let rows: Vec<Vec<String>> = fleet
        .nodes
        .iter()
        .map(|node| {
            vec![
                node.region.clone(),
                format!("{} x {}", node.devices_per_node, node.accelerator),
                node.instance.clone().unwrap_or_else(|| "-".to_owned()),
                node.price_mode.clone(),
                grouped(node.nodes),
                grouped(node.devices_idle),
                node.usd_per_hour.map_or("unknown".to_owned(), |usd| format!("{}/h", dollars(usd))),
                node.price_as_of.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        })
        .collect();
    let header =
        ["region", "node", "instance", "paid", "nodes", "idle devices", "cost", "price of"];
    out.push_str(&aligned(&header, &rows, &[4, 5, 6]));
    if let (Some(gap), Some(bound)) = (fleet.gap, fleet.bound_usd_per_hour) {
        let _ = writeln!(
            out,
            "No fleet of these can cost less than {}/h: within {:.1}% of the best.",
            dollars(bound),
            gap * 100.0
        );
    }
    for loss in &plan.losses {
        let _ = writeln!(
            out,
            "Losing {} at the peak: good tasks {} -> {}, {}.",
            loss.name,
            share(loss.attainment_before),
            share(loss.attainment_after),
            match (loss.kept_before, loss.meets) {
                (_, true) => "every promise is kept",
                (true, false) => "promises are broken",
                (false, false) => "promises are broken, as they are before",
            }
        );
    }
}

fn launch(out: &mut String, plan: &Plan, window_s: f64, heading: Heading) {
    let _ = writeln!(out, "\n{}", heading.apply("what is asked for, and what is carried of it"));
    for line in crate::launch::lines(plan, window_s, 80) {
        let _ = writeln!(out, "{}", heading.tinted(&line));
    }
}

fn budget(out: &mut String, (budget, none): (&BudgetPlan, bool), heading: Heading) {
    let _ = writeln!(out, "\n{}", heading.apply("money, caps and orders"));
    match (budget.usd_per_month, budget.static_usd_per_month) {
        (Some(usd), Some(fixed)) => {
            let _ = match budget.follows {
                true => writeln!(
                    out,
                    "{} a month with the floors of the calendar, all of the reserve included; {} were the peak's fleet kept all the time.",
                    dollars(usd),
                    dollars(fixed)
                ),
                false if none => writeln!(out, "{} a month of hosted tokens.", dollars(usd)),
                false => writeln!(out, "{} a month: as many replicas all the time.", dollars(usd)),
            };
        }
        _ => out.push_str("What it costs is not known: a price is missing.\n"),
    }
    for cap in &budget.caps {
        let Some(peak) = cap.peak.map(number) else { continue };
        let limit = number(cap.limit);
        let _ = match &cap.trips_at {
            Some(at) => writeln!(
                out,
                "{} of {limit} {} trips {at} (asked for: {peak}), {} the replicas of today are too few.",
                cap.name,
                cap.unit,
                if cap.before_capacity == Some(true) { "before" } else { "after" }
            ),
            None => writeln!(out, "{} of {limit} {} holds: {peak} at most.", cap.name, cap.unit),
        };
    }
    for order in &budget.orders {
        let _ = writeln!(
            out,
            "Order {} {} in {} by {}: needed {}, {:.0} days ahead{}.",
            order.devices,
            order.accelerator,
            order.region,
            order.order_by,
            order.needed_at,
            order.lead_time_s / 86_400.0,
            if order.too_late { ", which has passed" } else { "" }
        );
    }
    for price in &budget.startup {
        let _ = writeln!(out, "{}.", sentence(&price.says));
    }
    for note in &budget.notes {
        let _ = writeln!(out, "{}.", sentence(note));
    }
}

fn scaling(out: &mut String, scaling: &ScalingPlan, (heading, why): (Heading, bool)) {
    let _ = writeln!(out, "\n{}", heading.apply("scaling"));
    let _ = writeln!(out, "{}.", sentence(&scaling.why));
    for policy in &scaling.policies {
        let _ = writeln!(
            out,
            "{}: {} to {} replicas; up {} every {:.0} s, down {} every {:.0} s after {:.0} s of calm",
            policy.pool,
            policy.min_replicas,
            policy.max_replicas,
            policy.up.replicas,
            policy.up.period_s,
            policy.down.replicas,
            policy.down.period_s,
            policy.down.stabilisation_s
        );
        if !why {
            let each = policy.thresholds.iter().filter_map(|own| {
                let name = json!(own.signal).as_str().unwrap_or_default().replace('_', " ");
                Some(format!("{name} {} {}", number(own.value?), own.unit))
            });
            let each: Vec<String> = each.collect();
            let _ = writeln!(out, "  more above: {}", each.join("; "));
            continue;
        }
        let rows: Vec<Vec<String>> = policy
            .thresholds
            .iter()
            .map(|own| {
                vec![
                    format!(
                        "  {}",
                        json!(own.signal).as_str().unwrap_or_default().replace('_', " ")
                    ),
                    own.value.map_or("-".to_owned(), number),
                    own.unit.to_owned(),
                    own.why.clone(),
                ]
            })
            .collect();
        out.push_str(&aligned(&["  signal", "above", "", "because"], &rows, &[1]));
    }
    for own in &scaling.windows {
        let each: Vec<String> = own
            .windows
            .iter()
            .map(|w| {
                format!(
                    "{} for {} h: {}{}",
                    w.from,
                    w.hours,
                    w.floor,
                    w.usd.map_or(String::new(), |usd| format!(" ({})", dollars(usd)))
                )
            })
            .collect();
        let _ = writeln!(out, "{} at least: {}", own.pool, each.join("; "));
    }
    if let Some(check) = &scaling.check {
        let ways = [
            ("all planned, always", &check.static_plan),
            ("this policy", &check.policy),
            ("perfect foresight", &check.oracle),
        ];
        let rows: Vec<Vec<String>> = ways
            .iter()
            .map(|(name, way)| {
                vec![
                    format!("  {name}"),
                    format!("{:.1}", way.replica_hours),
                    way.cost_usd.map_or("-".to_owned(), dollars),
                    share(way.attainment),
                    format!("{:.1} of {:.1}", way.slo_minutes_missed, way.slo_minutes),
                ]
            })
            .collect();
        let often =
            if check.runs == 1 { "once".to_owned() } else { format!("{} times", check.runs) };
        let _ = writeln!(
            out,
            "The steepest rise, {:.0} min, simulated {often} each way:",
            check.seconds / 60.0
        );
        out.push_str(&aligned(
            &["  replicas", "replica hours", "cost", "good", "minutes missed"],
            &rows,
            &[1, 2, 3, 4],
        ));
        for regret in &check.regret {
            let _ = writeln!(
                out,
                "  regret of {} against foresight, {}: {}, {:+.1} minutes missed",
                match json!(regret.of).as_str() {
                    Some("static") => "a fixed fleet",
                    _ => "the policy",
                },
                match json!(regret.from).as_str() {
                    Some("simulation") => "simulated",
                    _ => "rest of the horizon by the service curve",
                },
                regret.cost_usd.map_or(
                    format!("{:+.1} replica hours", regret.replica_hours),
                    |usd| format!("{}{}", if usd < 0.0 { "-" } else { "+" }, dollars(usd.abs()))
                ),
                regret.slo_minutes
            );
        }
    }
    for ceiling in &scaling.ceilings {
        let _ = writeln!(
            out,
            "{}: the ceiling is the failure, not the controller: {}.",
            ceiling.pool, ceiling.why
        );
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

fn limits(out: &mut String, limits: &PoolLimits, (heading, why): (Heading, bool)) {
    let _ = writeln!(out, "\n{}", heading.apply(&format!("limits of {}", limits.pool)));
    let all = named_limits(limits);
    let rows: Vec<Vec<String>> = all
        .iter()
        .filter(|(_, limit)| why || limit.value.is_some())
        .map(|(name, limit)| {
            vec![
                format!("  {name}"),
                limit.value.map_or("-".to_owned(), exact),
                limit.unit.to_owned(),
                if why {
                    limit.why.clone()
                } else {
                    limit.flags.and_then(|flags| flags.vllm).unwrap_or_default().to_owned()
                },
            ]
        })
        .collect();
    let last = if why { "because" } else { "vLLM" };
    out.push_str(&aligned(&["  limit", "value", "", last], &rows, &[1]));
    let rows: Vec<Vec<String>> = limits
        .classes
        .iter()
        .map(|class| {
            let of =
                |limit: &Limit| limit.value.map_or("-".to_owned(), |n| grouped(n.floor() as u64));
            vec![
                format!("  {}", class.class),
                class.tenant.clone().unwrap_or_else(|| "-".to_owned()),
                of(&class.rpm),
                of(&class.tpm),
                of(&class.concurrency),
                class.retry_budget.value.map_or("-".to_owned(), |v| format!("{:.0}%", v * 100.0)),
            ]
        })
        .collect();
    if !rows.is_empty() {
        out.push_str(&aligned(
            &["  class", "tenant", "requests/min", "tokens/min", "at once", "retries"],
            &rows,
            &[2, 3, 4, 5],
        ));
    }
}

fn alternatives(out: &mut String, plan: &Plan, heading: Heading) {
    if plan.alternatives.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", heading.apply("what else would do"));
    let rows: Vec<Vec<String>> = plan
        .alternatives
        .iter()
        .map(|own| {
            vec![
                own.pool.clone(),
                own.what.clone(),
                own.replicas.map_or("-".to_owned(), |n| n.to_string()),
                own.usd_per_hour.map_or("-".to_owned(), |usd| format!("{}/h", dollars(usd))),
                match (&own.rejected, own.chosen) {
                    (_, true) => "chosen".to_owned(),
                    (Some(why), false) => why.clone(),
                    (None, false) => String::new(),
                },
            ]
        })
        .collect();
    out.push_str(&aligned(&["pool", "with", "replicas", "cost", "why not"], &rows, &[2, 3]));
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
