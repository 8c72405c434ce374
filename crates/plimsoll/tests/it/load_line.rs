//! One load line, whatever command prints it, and what must hold of it on any fleet.

use plimsoll_testkit::sized;
use serde_json::Value;

use crate::common::plans::{list, with};
use crate::common::{Scratch, json, number};

/// Every command says the same load line, cause and first signal of an example's fleet of today.
#[test]
fn every_command_says_the_same() {
    let all = ["support-bot", "two-regions", "bursty-ceiling", "metastable", "launch-week"];
    for name in &all[..sized(3, 5)] {
        let file = format!("examples/{name}.toml");
        let of = |arguments: &[&str]| json(arguments).1;
        let curve = of(&["curve", &file, "--points", "3"]);
        let line = number(&curve["load_line"]["load"]);
        let said = |document: &Value, key: &str| document[key].as_str().map(str::to_owned);
        let binding = &curve["binding"];
        let told = (said(binding, "cause"), said(binding, "of"), said(binding, "first_signal"));
        assert_eq!(curve["simulated"]["repeated"], 0, "{name}: {}", curve["simulated"]);

        let same = |what: &str,
                    load: f64,
                    blame: (Option<String>, Option<String>, Option<String>)| {
            assert!((load / line - 1.0).abs() < 1e-9, "{name}: {what} says {load}, curve {line}");
            assert_eq!(blame, told, "{name}: {what}");
        };
        let plan = of(&["plan", &file]);
        let review = of(&["review", &file]);
        for (what, table) in [("plan", &plan["table"]), ("review", &review["plan"]["table"])] {
            let first = &table["runs_out_first"];
            let blame = (said(first, "cause"), said(first, "of"), said(first, "first_signal"));
            same(what, number(&table["fleet"]["today"]["covers"]), blame);
        }

        let moved = of(&["curve", &file, "--what-if", "demand=1"]);
        let own = &moved["line"];
        let blame = (said(own, "binds"), said(own, "of"), said(own, "first_signal"));
        same("what-if", number(&own["load"]), blame);

        let stress = of(&["stress", &file]);
        let peak = list(&stress, "scenarios").iter().find(|own| own["name"] == "launch peak");
        if let Some(peak) = peak.filter(|own| own["not_applicable"].is_null()) {
            let own = &peak["first_to_break"]["now"];
            let blame = (said(own, "resource"), said(own, "of"), said(own, "signal"));
            same("stress", number(&peak["carries"]["now"]), blame);
        }
    }
}

const TWO: &str = r#"
[study]
name = "two pools"
as_of = 2026-11-15
horizon = "1d"
[[class]]
name = "chat"
rate = "10 req/s"
prompt = { p50 = 600, p95 = 2400, max = 8000 }
output = { p50 = 120, p95 = 500, max = 2000 }
slo = { ttft = "1s", tpot = "50ms" }
[[class]]
name = "long"
rate = "2 req/s"
prompt = { p50 = 4000, p95 = 9000, max = 12000 }
output = { p50 = 60, p95 = 200, max = 500 }
slo = { ttft = "2s" }
[[route]]
class = ["chat"]
to = "a"
[[route]]
class = ["long"]
to = "b"
[[pool]]
name = "a"
model = "llama-3.1-8b"
accelerator = "H100-SXM"
max_model_len = 16384
replicas = 1
[[pool]]
name = "b"
model = "llama-3.1-8b"
accelerator = "H100-SXM"
max_model_len = 16384
replicas = 2
"#;

fn curve(name: &str, text: &str, options: &[&str]) -> Value {
    let scratch = Scratch::new(name);
    let file = scratch.file("s.toml", text);
    let (code, document) = json(&[&["curve", &file, "--points", "3"], options].concat());
    assert_eq!(code, 0, "{document}");
    document
}

/// Pools that do not touch each other are components: the fleet carries what the first of them to give way carries by itself, and says which.
#[test]
fn components_apart_and_together() {
    for seed in &["1", "2", "3", "4"][..sized(1, 4)] {
        let line = |name: &str, text: &str| {
            let document = curve(name, text, &["--seed", seed]);
            let component = document["binding"]["component"].as_str().map(str::to_owned);
            (number(&document["load_line"]["load"]), component)
        };
        let both = line("both", TWO);
        // Without demand a class is not there, and keeps its place.
        let one = line("one", &with(TWO, &[("\"2 req/s\"", "\"0 req/s\"")]));
        let other = line("other", &with(TWO, &[("\"10 req/s\"", "\"0 req/s\"")]));
        let least = if one.0 <= other.0 { &one } else { &other };
        assert!(
            (both.0 / least.0 - 1.0).abs() < 1e-9,
            "seed {seed}: {both:?} of {one:?}, {other:?}"
        );
        assert_eq!(both.1, least.1, "seed {seed}");
    }
}

/// More replicas never carry less, and a stricter promise never more, on any seed; both within a step of the grid, as their runs are others.
#[test]
fn more_replicas_never_carry_less() {
    for seed in &["1", "2", "3", "4", "5"][..sized(1, 5)] {
        let line = |replicas: &str, ttft: &str| {
            let own = with(
                TWO,
                &[
                    ("replicas = 1", replicas),
                    ("ttft = \"1s\"", ttft),
                    ("\"2 req/s\"", "\"0 req/s\""),
                ],
            );
            number(&curve("more", &own, &["--seed", seed])["load_line"]["load"])
        };
        let step = 1.04 + 1e-9;
        let plain = "ttft = \"1s\"";
        let by_replicas = ["replicas = 1", "replicas = 2", "replicas = 3"].map(|n| line(n, plain));
        assert!(by_replicas.is_sorted_by(|a, b| *a <= b * step), "seed {seed}: {by_replicas:?}");
        assert!(by_replicas[2] > 2.0 * by_replicas[0], "seed {seed}: {by_replicas:?}");
        let by_promise =
            ["ttft = \"3s\"", plain, "ttft = \"300ms\""].map(|t| line("replicas = 2", t));
        assert!(by_promise.is_sorted_by(|a, b| a * step >= *b), "seed {seed}: {by_promise:?}");
    }
}
