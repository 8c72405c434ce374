//! What every plan must keep to: each line of its reserve has one cause, more is never carried by less, and what it says it survives it survives.

use crate::common::plans::{
    LINES, SMALL, carry, feasible, holds_together, list, named, planned, with,
};
use crate::common::{Scratch, count, json, number};
use plimsoll_testkit::sized;
use serde_json::Value;

/// A dozen replicas: a day with a morning, half of each prompt cached, and an event that may be larger than is likely.
const LARGE: &str = r#"
[study]
name = "a test"
as_of = 2026-11-15
horizon = "1d"
demand_quantile = 0.95
[study.reliability]
survive = "replica"
[study.reserve]
rollout = 1
cold_cache = 0.1

[[class]]
name = "chat"
rate = "18 req/s"
prompt = 6000
output = 12
cache_hit = 0.5
by_hour = [2, 2, 2, 2, 2, 2, 2, 2, 2, 8, 10, 10, 10, 10, 10, 10, 9, 8, 6, 5, 4, 3, 2, 2]
slo = { ttft = "1s" }

[[event]]
name = "launch"
from = 2026-11-16T12:00:00Z
rate = { low = 1.0, likely = 1.2, high = 1.5 }

[[pool]]
name = "small"
model = "llama-3.1-8b"
accelerator = "L40S"
instance = "g6e.12xlarge"
max_model_len = 16384
replicas = 6
"#;

/// A start that takes a minute, where otherwise it takes twenty.
const FAST: &str = r#"replicas = 6
startup = { node = "10s", image = "10s", process = "10s", weights = "10s", compile = "10s", warm_up = "10s" }
"#;

/// Each line moves when its own cause does, by what that asks for, and no other line does.
#[test]
fn each_line_of_the_reserve_has_one_cause() {
    let lines = |plan: &Value| -> Vec<(&str, u64)> {
        let own = &plan["pools"][0]["replicas"];
        LINES.iter().map(|line| (*line, count(&own[*line]))).collect()
    };
    let base = feasible("reserve", LARGE);
    let before = lines(&base);
    let at = |name: &str| before.iter().find(|(line, _)| *line == name).expect("a line").1;
    assert!((9..40).contains(&carry(&base["pools"][0])), "{before:?}");
    for name in ["steady", "failure", "rollout", "warm", "forecast", "cold_cache"] {
        assert!(at(name) > 0, "nothing to see of {name}: {before:?}");
    }
    let (more, fewer) = (|was: u64, is: u64| is > was, |was: u64, is: u64| is < was);
    type Moves<'a> = &'a dyn Fn(u64, u64) -> bool;
    let rows: [(&str, &str, &str, &str, Moves<'_>); 9] = [
        // A node of this instance has four devices.
        ("node", "\"replica\"", "\"node\"", "failure", &|was, is| (was, is) == (1, 4)),
        ("two", "\"replica\"", "\"replica\"\ncount = 2", "failure", &|was, is| (was, is) == (1, 2)),
        ("none", "\"replica\"", "\"nothing\"", "failure", &|was, is| (was, is) == (1, 0)),
        ("rollout", "rollout = 1", "rollout = 3", "rollout", &|was, is| (was, is) == (1, 3)),
        ("canary", "rollout = 1", "rollout = 1\ncanary = 2", "canary", &|was, is| is == was + 2),
        ("drain", "rollout = 1", "rollout = 1\nmaintenance = 1", "maintenance", &|was, is| {
            is == was + 4
        }),
        ("cold", "cold_cache = 0.1", "cold_cache = 0.5", "cold_cache", &more),
        ("fast", "replicas = 6\n", FAST, "warm", &fewer),
        ("median", "demand_quantile = 0.95", "demand_quantile = 0.6", "forecast", &fewer),
    ];
    for (name, from, to, moved, moves) in rows {
        let plan = feasible(&format!("reserve-{name}"), &with(LARGE, &[(from, to)]));
        for ((line, was), (_, is)) in before.iter().zip(lines(&plan)) {
            if *line == moved {
                assert!(moves(*was, is), "{name}: {line} goes from {was} to {is}");
            } else {
                assert_eq!(*was, is, "{name}: {line} moves, and only {moved} should");
            }
        }
    }
}

/// More demand never needs fewer replicas, on any seed.
#[test]
fn more_demand_never_needs_fewer() {
    for seed in &["1", "2", "3"][..sized(1, 3)] {
        let mut before = (0, 0.0);
        for rate in ["3 req/s", "13 req/s", "30 req/s"] {
            let text = with(SMALL, &[("12 req/s", rate)]);
            let (code, plan) = planned(&format!("more-{seed}"), &text, &["--seed", seed]);
            assert_eq!(code, 0, "seed {seed}, {rate}: {:#}", plan["infeasible_because"]);
            holds_together(&plan);
            let needs = (carry(&plan["pools"][0]), number(&plan["budget"]["usd_per_month"]));
            assert!(needs.0 >= before.0, "seed {seed}: {rate} needs {needs:?}, less {before:?}");
            before = needs;
        }
        assert!(before.0 > 4, "seed {seed}: {before:?}");
    }
}

/// A stricter promise never needs fewer replicas, and never gets cheaper.
#[test]
fn a_stricter_promise_never_gets_cheaper() {
    let slo = "slo = { ttft = \"1s\" }";
    let longer = with(SMALL, &[("output = 12", "output = 40"), ("prompt = 2000", "prompt = 600")]);
    // A crew of three has the same number for many promises.
    let busier = with(SMALL, &[("12 req/s", "60 req/s")]);
    let rows: [(&str, &str, [&str; 3]); 3] = [
        ("ttft", SMALL, ["ttft = \"4s\"", "ttft = \"900ms\"", "ttft = \"450ms\""]),
        ("tpot", &longer, ["tpot = \"80ms\"", "tpot = \"45ms\"", "tpot = \"30ms\""]),
        (
            "attainment",
            &busier,
            [
                "ttft = \"700ms\", attainment = 0.8",
                "ttft = \"700ms\", attainment = 0.98",
                "ttft = \"700ms\", attainment = 0.999",
            ],
        ),
    ];
    for (name, text, promises) in rows {
        let found = promises.map(|promise| {
            let text = with(text, &[(slo, &format!("slo = {{ {promise} }}"))]);
            let plan = feasible(&format!("stricter-{name}"), &text);
            (carry(&plan["pools"][0]), number(&plan["budget"]["usd_per_month"]))
        });
        assert!(
            found.is_sorted_by(|looser, stricter| looser.0 <= stricter.0 && looser.1 <= stricter.1),
            "{name}: {found:?}"
        );
        assert!(found[0].0 < found[2].0, "{name} does not matter: {found:?}");
    }
}

/// What a plan uses is within the quota of its region, in whole nodes that hold whole groups; where that is too little, it says so.
#[test]
fn no_plan_uses_more_than_there_is() {
    let mut kept = [0, 0];
    for (group, rate) in [("1", "12 req/s"), ("2", "60 req/s"), ("4", "60 req/s")] {
        for quota in [4, 8, 16] {
            let text = with(
                SMALL,
                &[
                    ("12 req/s", rate),
                    ("\"L40S\"", "\"H100-SXM\"\nreplicas = { now = 0, plan = [0, 100] }"),
                    ("max_model_len = 16384", &format!("tensor_parallel = {group}")),
                ],
            );
            let region = format!(
                "[[region]]\nname = \"here\"\nprice_region = \"us-east-1\"\naccelerators = [{{ accelerator = \"H100-SXM\", quota = {quota} }}]\n"
            );
            let name = format!("quota-{group}-{quota}");
            let (code, plan) = planned(&name, &(text + &region), &[]);
            holds_together(&plan);
            kept[usize::from(code == 0)] += 1;
            let pool = &plan["pools"][0];
            if code == 0 {
                let nodes = list(&plan["fleet"], "nodes");
                let devices =
                    |node: &Value| count(&node["nodes"]) * count(&node["devices_per_node"]);
                assert!(nodes.iter().map(devices).sum::<u64>() <= quota, "{name}: {nodes:?}");
                for node in nodes {
                    let whole =
                        count(&node["devices_per_node"]) >= count(&pool["parallelism"]["devices"]);
                    assert!(whole, "{name}: a group straddles nodes: {node}");
                }
                assert!(list(&plan["budget"], "caps").iter().all(|cap| cap["trips_at"].is_null()));
            } else {
                assert_eq!(code, 1, "{plan:#}");
                let first = &plan["infeasible_because"][0];
                assert_eq!(first["kind"], "quota", "{name}: {first}");
                let needs = count(&pool["nodes"]) * 8;
                assert!(needs > quota, "{name}: {needs} devices are refused");
            }
        }
    }
    assert!(kept.iter().all(|n| *n > 1), "refused and kept: {kept:?}");
}

/// What carries the demand and the line for failures together survive the failure, on other seeds than the plan's.
#[test]
fn a_plan_survives_what_it_says_it_survives() {
    let rows = [
        ("replica", "survive = \"replica\"", "replica-loss", 1),
        ("replicas", "survive = \"replica\"\ncount = 2", "replica-loss", 2),
        ("node", "survive = \"node\"", "node-loss", 1),
    ];
    for (name, survive, kind, lost) in rows {
        let asked = format!("horizon = \"1d\"\n[study.reliability]\n{survive}");
        let busy = with(
            SMALL,
            &[
                ("horizon = \"1d\"", &asked),
                ("12 req/s", "40 req/s"),
                ("\"L40S\"", "\"L40S\"\ninstance = \"g6e.12xlarge\""),
            ],
        );
        let plan = feasible(&format!("survives-{name}"), &busy);
        let pool = named(&plan, "pools", "small");
        assert!(
            list(&plan, "losses").iter().any(|loss| loss["meets"] == true),
            "{:#}",
            plan["losses"]
        );
        let n = carry(pool) + count(&pool["replicas"]["failure"]);
        let text = format!(
            "{busy}replicas = {n}\n[[incident]]\nname = \"it\"\nkind = \"{kind}\"\nat = \"2m\"\nlasts = \"1h\"\ncount = {lost}\n"
        );
        let scratch = Scratch::new(&format!("plan-survives-{name}"));
        let file = scratch.file("scenario.toml", &text);
        for seed in &["11", "12", "13"][..sized(1, 3)] {
            let options = ["--no-failures", "--seed", seed, "--runs", "2", "--duration", "10m"];
            let (code, seen) = json(&[&["simulate", &file], &options[..]].concat());
            assert_eq!(code, 0, "{name}: {seen:#}");
            let class = named(&seen, "classes", "chat");
            assert!(count(&class["offered"]) > 20_000, "{class}");
            let good = count(&class["good"]) as f64 / count(&class["offered"]) as f64;
            assert!(
                good >= number(&plan["attainment"]),
                "{name}, seed {seed}: {good} of {n} replicas"
            );
        }
    }
}
