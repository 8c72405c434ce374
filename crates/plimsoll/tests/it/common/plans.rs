//! Plans of small scenarios, made as a shell makes them.

use serde_json::Value;

use super::{Scratch, count, json};

/// A pool of an 8B on small devices with a few requests a second: its plan takes a fraction of a second.
pub const SMALL: &str = r#"
[study]
name = "a test"
as_of = 2026-11-15
horizon = "1d"

[[class]]
name = "chat"
rate = "12 req/s"
prompt = 2000
output = 12
slo = { ttft = "1s" }

[[pool]]
name = "small"
model = "llama-3.1-8b"
accelerator = "L40S"
max_model_len = 16384
"#;

/// The lines that a pool's total is the sum of.
pub const LINES: [&str; 8] =
    ["steady", "failure", "rollout", "canary", "maintenance", "warm", "forecast", "cold_cache"];

/// A text with some parts replaced; each must be there once.
pub fn with(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "`{from}` in {text}");
        text.replace(from, to)
    })
}

/// A scenario planned: the exit code and the document.
pub fn planned(name: &str, text: &str, options: &[&str]) -> (i32, Value) {
    let scratch = Scratch::new(&format!("plan-{name}"));
    let file = scratch.file("scenario.toml", text);
    json(&[&["plan", &file], options].concat())
}

/// A plan that can be had, and holds together.
pub fn feasible(name: &str, text: &str) -> Value {
    let (code, plan) = planned(name, text, &[]);
    assert_eq!(code, 0, "{name}: {:#}", plan["infeasible_because"]);
    assert_eq!(plan["feasible"], true);
    holds_together(&plan);
    plan
}

/// A plan that cannot be had: the kinds of what stands in its way, and what is said of the first.
pub fn infeasible(name: &str, text: &str) -> (Value, String, String) {
    let (code, plan) = planned(name, text, &[]);
    assert_eq!((code, &plan["feasible"]), (1, &false.into()), "{name}: {plan:#}");
    holds_together(&plan);
    let first = &plan["infeasible_because"][0];
    let of = |key: &str| first[key].as_str().unwrap_or_else(|| panic!("no {key}")).to_owned();
    let (what, relax) = (of("what"), of("relax"));
    (plan, what, relax)
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list `{key}`"))
}

/// The member of a list that has this name.
pub fn named<'a>(plan: &'a Value, key: &str, name: &str) -> &'a Value {
    let own = list(plan, key).iter().find(|own| own["name"] == name || own["pool"] == name);
    own.unwrap_or_else(|| panic!("no `{name}` among {key}: {:#}", plan[key]))
}

/// Replicas of a pool that carry its demand.
pub fn carry(pool: &Value) -> u64 {
    count(&pool["replicas"]["steady"]) + count(&pool["replicas"]["forecast"])
}

/// What must hold of every plan, feasible or not: totals are sums, devices and nodes hold the replicas, every number is one.
pub fn holds_together(plan: &Value) {
    sound(plan);
    assert_eq!(plan["feasible"] == true, list(plan, "infeasible_because").is_empty());
    for obstacle in list(plan, "infeasible_because") {
        for key in ["kind", "what", "relax"] {
            assert!(obstacle[key].as_str().is_some_and(|said| !said.is_empty()), "{obstacle}");
        }
    }
    for pool in list(plan, "pools") {
        let replicas = &pool["replicas"];
        let sum: u64 = LINES.iter().map(|line| count(&replicas[*line])).sum();
        assert_eq!(count(&replicas["total"]), sum, "{replicas}");
        for line in list(pool, "reserve") {
            let name = line["name"].as_str().expect("a name");
            assert_eq!(line["replicas"], replicas[name], "{line}");
            assert!(line["why"].as_str().is_some_and(|why| !why.is_empty()), "{line}");
        }
        let group = count(&pool["parallelism"]["devices"]);
        assert_eq!(count(&pool["devices"]), sum * group, "{pool}");
        let between = &pool["interval"];
        if !between.is_null() {
            let n = count(&pool["proof"]["n"]) as f64;
            let (low, high) = (super::number(&between["low"]), super::number(&between["high"]));
            assert!(low <= n && n <= high, "{between}");
        }
    }
    let fleet = &plan["fleet"];
    if fleet.is_null() {
        assert_eq!(plan["feasible"], false, "a plan without a fleet: {plan:#}");
        return;
    }
    // What is placed is what is planned, device by device.
    for pool in list(plan, "pools") {
        let own = || list(fleet, "placements").iter().filter(|own| own["pool"] == pool["name"]);
        let sum = |key: &str| own().map(|own| count(&own[key])).sum::<u64>();
        assert_eq!(sum("replicas"), count(&pool["replicas"]["total"]), "{fleet:#}");
        assert_eq!(sum("devices"), count(&pool["devices"]), "{fleet:#}");
        assert!(own().all(|own| own["accelerator"] == pool["accelerator"]), "{fleet:#}");
    }
    // Nodes of a place hold what is placed there, and no more than the rest is idle.
    for node in list(fleet, "nodes") {
        let same = |other: &Value| {
            ["region", "accelerator", "price_mode"].iter().all(|key| other[*key] == node[*key])
        };
        let placed = list(fleet, "placements").iter().filter(|own| same(own));
        let devices: u64 = placed.map(|own| count(&own["devices"])).sum();
        let held = count(&node["nodes"]) * count(&node["devices_per_node"]);
        assert_eq!(held - count(&node["devices_idle"]), devices, "{fleet:#}");
    }
}

/// Every number of a document is one.
fn sound(value: &Value) {
    match value {
        Value::Number(n) => assert!(n.as_f64().is_some_and(f64::is_finite), "{n}"),
        Value::Array(all) => all.iter().for_each(sound),
        Value::Object(all) => all.values().for_each(sound),
        _ => {}
    }
}
