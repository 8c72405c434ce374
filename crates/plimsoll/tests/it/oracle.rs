//! Plans held against long simulations on seeds that they have not seen: what is said to carry the demand carries it, and fewer do not.

#![allow(dead_code, reason = "the bench uses the rest")]

use serde_json::Value;

use crate::common::plans::{carry, list, named, with};
use crate::common::{Scratch, json, number, repository};

/// A scenario, one of its pools, and how long what is planned for that is simulated.
pub struct Case {
    pub name: String,
    /// The scenario.
    pub text: String,
    pub pool: &'static str,
    /// The line of the scenario that says how many replicas the pool has.
    replicas: &'static str,
    /// `launch` or `baseline`.
    hour: &'static str,
    /// Hours of each run, and runs.
    hours: f64,
    runs: u32,
    /// The share of tasks that may fail.
    allowed: f64,
}

/// What a case came to.
#[derive(Debug)]
pub struct Row {
    /// Replicas that are planned with, and the range that is said.
    pub n: u64,
    pub low: u64,
    pub high: u64,
    /// The largest share of tasks of a class that fail, over what is allowed: with these, and with fewer.
    pub with_n: f64,
    pub fewer: u64,
    pub with_fewer: f64,
}

const CHAT: &str = r#"
[study]
name = "bursts"
as_of = 2026-11-15
horizon = "1d"
[[class]]
name = "chat"
profile = "chat"
rate = "24 req/s"
BURST
[[pool]]
name = "pool"
model = "llama-3.1-8b"
accelerator = "H200-SXM"
replicas = 1
"#;

fn case(name: impl Into<String>, text: String) -> Case {
    Case {
        name: name.into(),
        text,
        pool: "pool",
        replicas: "replicas = 1\n",
        hour: "baseline",
        hours: 2.5,
        runs: 8,
        allowed: 0.01,
    }
}

/// So many times as many, twice for two minutes in an hour or once for five.
pub fn bursts(times: u32, lasts_s: u32, every_s: u32, accelerator: &str, more: &str) -> Case {
    let burst =
        format!("burst = {{ times = {times}, lasts = \"{lasts_s}s\", every = \"{every_s}s\" }}");
    let text = with(CHAT, &[("BURST", &burst), ("H200-SXM", accelerator)]);
    let text = format!("{text}{more}");
    // A hundred bursts.
    let hours = f64::from(every_s) * 100.0 / 3600.0 / 8.0;
    let name = format!("{times}x for {lasts_s} s every {every_s} s, {accelerator} {}", more.trim());
    Case { hours, ..case(name, text) }
}

/// So many million tokens dumped each hour beside the chat.
pub fn dump(million: f64) -> Case {
    let rate = million * 1e6 / 4200.0 / 3600.0;
    let batch = format!(
        "[[class]]\nname = \"batch\"\narrivals = \"dumps\"\nevery = \"1h\"\nrate = \"{rate:.5} req/s\"\nprompt = 4000\noutput = 200\n"
    );
    let text = with(CHAT, &[("BURST\n", &batch)]);
    Case { hours: 3.0, ..case(format!("{million}M tokens dumped each hour"), text) }
}

/// Conversations and agents, each on one pool.
pub fn profile(profile: &str, rate: &str, more: &str) -> Case {
    let text = with(
        CHAT,
        &[
            ("BURST\n", more),
            ("\"chat\"\nrate = \"24 req/s\"", &format!("\"{profile}\"\nrate = \"{rate}\"")),
        ],
    );
    case(format!("{profile}, {rate}"), text)
}

fn example(name: &str, pool: &'static str, replicas: &'static str, hour: &'static str) -> Case {
    let file = repository().join(format!("examples/{name}.toml"));
    let text = std::fs::read_to_string(file).expect("an example");
    Case { pool, replicas, hour, ..case(format!("{name}, {pool}"), text) }
}

/// Without what follows the demand: how many are enough is what is asked.
fn ceiling() -> Case {
    let case =
        example("bursty-ceiling", "qwen", "replicas = { now = 1, plan = [1, 4] }", "baseline");
    let text = case.text.split("[autoscaling]").next().unwrap_or_default().to_owned();
    Case { allowed: 0.05, text, ..case }
}

/// The cases that the bench runs.
pub fn all() -> Vec<Case> {
    let mut all = vec![
        example("launch-week", "edits", "replicas = { now = 4, plan = [2, 24] }", "launch"),
        example("launch-week", "completions", "replicas = { now = 8, plan = [4, 64] }", "launch"),
        example("long-context", "shared", "replicas = { now = 2, plan = [1, 12] }", "launch"),
        example("two-regions", "chat-eu", "replicas = { now = 10, plan = [4, 32] }", "baseline"),
        example("two-regions", "chat-us", "replicas = { now = 12, plan = [4, 48] }", "baseline"),
        ceiling(),
        dump(1.0),
        dump(11.0),
        profile("voice", "4 task/s", "slo = { ttft = \"1.2s\" }\n"),
        profile("coding-agent", "1 task/s", ""),
        profile(
            "chat",
            "60 req/s",
            "[[provider]]\nname = \"hosted\"\nprovider = \"openai\"\nmodel = \"gpt-4.1\"\nrpm = 500\ntpm = 2_000_000\n[[route]]\nto = \"pool\"\nfallback = [\"hosted\"]\n",
        ),
    ];
    for times in [3, 5, 8] {
        for (lasts, every) in [(120, 1800), (300, 3600)] {
            for accelerator in ["H200-SXM", "H100-SXM"] {
                all.push(bursts(times, lasts, every, accelerator, ""));
            }
        }
    }
    all.push(bursts(5, 120, 1800, "H100-SXM", "weights = \"fp8\"\n"));
    all.push(bursts(8, 300, 3600, "H100-SXM", "weights = \"fp8\"\n"));
    all
}

/// The largest share of tasks of a class that fail with so many replicas, over what is allowed.
fn fails(case: &Case, n: u64, seed: &str, hours: f64) -> f64 {
    if n == 0 {
        return f64::INFINITY;
    }
    let text = with(&case.text, &[(case.replicas, &format!("replicas = {n}\n"))]);
    let scratch = Scratch::new("oracle");
    let file = scratch.file("scenario.toml", text);
    let (duration, runs) = (format!("{}s", hours * 3600.0), case.runs.to_string());
    let (code, seen) = json(&[
        "simulate",
        &file,
        "--pool",
        case.pool,
        "--hour",
        case.hour,
        "--seed",
        seed,
        "--no-failures",
        "--duration",
        &duration,
        "--runs",
        &runs,
        "--warm-up",
        "30m",
    ]);
    assert_eq!(code, 0, "{}: {seen:#}", case.name);
    let share = |class: &Value| {
        // A class without thresholds is held to its errors.
        1.0 - class["attainment"].as_f64().unwrap_or_else(|| {
            number(&class["completed"]) / (number(&class["offered"]) - number(&class["left"]))
        })
    };
    list(&seen, "classes").iter().map(share).fold(0.0, f64::max) / case.allowed
}

/// Plans a case, and simulates what is planned and what is said to be too few.
pub fn hold(case: &Case, hours: f64) -> Row {
    let scratch = Scratch::new("oracle-plan");
    let file = scratch.file("scenario.toml", &case.text);
    let (_, plan) = json(&["plan", &file]);
    let pool = named(&plan, "pools", case.pool);
    let n = carry(pool);
    let end = |key: &str| pool["interval"][key].as_f64().map_or(n, |end| end as u64);
    let (low, high) = (end("low"), end("high"));
    // One in twenty more is not generous.
    let fewer = if low < n { low - 1 } else { n.saturating_sub((n / 20).max(1)) };
    Row {
        n,
        low,
        high,
        with_n: fails(case, n, "90125", hours),
        fewer,
        with_fewer: fails(case, fewer, "90125", hours),
    }
}

/// What every case must come to: at most a quarter more fails than is allowed, and fewer replicas fail.
pub fn holds(row: &Row) -> bool {
    row.with_n <= 1.25 && row.with_fewer > 1.0
}

impl Case {
    pub fn hours(&self) -> f64 {
        self.hours
    }
}

/// Bursts and dumps, for a few hours; the bench `plans` has more of them, for longer.
#[test]
fn what_is_planned_carries_the_demand_for_hours() {
    let cases = [bursts(5, 120, 1800, "H200-SXM", ""), dump(1.0)];
    for case in cases {
        let row = hold(&case, 1.0);
        assert!(holds(&row), "{}: {row:?}", case.name);
    }
}
