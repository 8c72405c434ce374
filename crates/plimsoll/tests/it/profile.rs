//! `profile` as users type it: classes, filters, and what it writes for others.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::Scratch;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[&["--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// A directory of its own, with a log of two tenants in it: `a` asks every two seconds, `b` ten times as long and seldom.
fn scratch(name: &str) -> (Scratch, String) {
    let directory = Scratch::new(name);
    let mut log =
        "ts_arrival,tenant,route,prompt_tokens,cache_read_tokens,output_tokens,status\n".to_owned();
    for i in 0..900u64 {
        let at = 1_790_000_000_000 + i * 2000;
        log += &format!("{at},a,east,{},{},{},ok\n", 500 + i % 100, 100, 20 + i % 50);
        if i % 10 == 0 {
            log += &format!(
                "{},b,west,{},0,{},{}\n",
                at + 7,
                5000 + i,
                300,
                if i == 0 { "limited" } else { "ok" }
            );
        }
    }
    let file = directory.file("log.csv", log);
    (directory, file)
}

#[test]
fn classes_and_filters() {
    let (_directory, log) = scratch("classes");
    let found = json(&["profile", &log, "--by", "tenant,route"]);
    assert_eq!(found["schema"], "plimsoll/profile/v1");
    let classes = found["classes"].as_array().expect("classes");
    let names: Vec<&str> = classes.iter().filter_map(|class| class["name"].as_str()).collect();
    assert_eq!(names, ["all", "a, east", "b, west"]);
    let rows: Vec<u64> = classes.iter().filter_map(|class| class["rows"].as_u64()).collect();
    assert_eq!(rows, [990, 900, 90]);
    // Every class is watched as long as the whole log.
    assert!(classes.iter().all(|class| class["span_s"] == classes[0]["span_s"]));
    let ten = &classes[0]["windows"]["10"];
    for resource in ["requests", "prompt_tokens", "fresh_tokens", "output_tokens"] {
        for figure in ["mean", "p50", "p95", "p99", "max", "peak_to_mean", "index_of_dispersion"] {
            assert!(ten[resource][figure].is_number(), "{resource}.{figure}: {ten:#}");
        }
    }
    // Five of `a` and half of one of `b` in ten seconds, less what is cached.
    let fresh = |class: usize| {
        classes[class]["windows"]["10"]["fresh_tokens"]["mean"].as_f64().expect("a mean")
    };
    assert!((fresh(0) - fresh(1) - fresh(2)).abs() < 1e-6);
    assert!((fresh(1) / 5.0 - 449.5).abs() < 5.0, "{}", fresh(1));
    let limited = classes[0]["failures"]["limited_share"].as_f64().expect("a share");
    assert!((limited - 1.0 / 990.0).abs() < 1e-12);
    let only = json(&["profile", &log, "--where", "tenant=b"]);
    assert_eq!(only["classes"][0]["rows"], 90);
    let top = json(&["profile", &log, "--by", "tenant", "--classes", "1"]);
    assert_eq!(top["classes"].as_array().map(Vec::len), Some(1), "one class is all rows");
    let wrong = run(&["profile", &log, "--by", "tenent"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("tenant"));
}

/// What `--to-scenario` writes passes `check`, and `--to-bench` writes what each tool reads.
#[test]
fn what_is_written_for_others() {
    let (directory, log) = scratch("written");
    let scenario = directory.path("demand.toml");
    let output = run(&["profile", &log, "--by", "tenant", "--to-scenario", &scenario]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&scenario).expect("a scenario");
    assert_eq!(text.matches("[[class]]").count(), 2, "{text}");
    let checked = run(&["check", &scenario]);
    assert!(checked.status.success(), "{}\n{text}", String::from_utf8_lossy(&checked.stderr));
    for tool in ["guidellm", "vllm", "aiperf", "mooncake"] {
        let out = directory.0.join(tool);
        let at = out.display().to_string();
        let output = run(&["profile", &log, "--to-bench", tool, "--out", &at]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{tool}: {said}");
        let files: Vec<_> = std::fs::read_dir(&out).expect("a directory").collect();
        assert!(!files.is_empty(), "{tool}");
        assert!(said.contains("run it there with"), "{tool}: {said}");
    }
}

/// A scenario says by `match` which rows are whose, and its pool says how long requests take.
#[test]
fn a_scenario_tells_classes_apart() {
    let (directory, log) = scratch("matched");
    let scenario = directory.0.join("own.toml");
    let text = r#"
[study]
name = "matched"

[[class]]
name = "big"
rate = "1 req/s"
prompt = 5000
output = 300
match = { tenant = "b*" }

[[pool]]
name = "gpus"
model = "llama-3.1-8b"
accelerator = "h100-sxm"
replicas = 1
"#;
    std::fs::write(&scenario, text).expect("written");
    let found = json(&["profile", &log, "--scenario", &scenario.display().to_string()]);
    let names: Vec<&str> = found["classes"]
        .as_array()
        .expect("classes")
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(names, ["all", "big", "other"]);
    let modelled = &found["classes"][0]["resident_kv_tokens"]["modelled"];
    let mean = modelled["mean"].as_f64().unwrap_or_else(|| panic!("no model: {found:#}"));
    assert!(mean > 50.0 && mean < 5000.0, "{modelled:#}");
    assert!(
        modelled["basis"].as_str().is_some_and(|basis| basis.contains("`gpus`")),
        "{modelled:#}"
    );
}
