//! The figures of a profile against an engine that is not ours, on random ledgers.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_stats::{Seed, Stream};
use plimsoll_testkit::{sized, skipped};
use serde_json::Value;

use crate::common::Scratch;

/// A Python that has DuckDB: the one that `PLIMSOLL_PYTHON` names, or the system's.
fn python() -> Option<String> {
    let named = std::env::var("PLIMSOLL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&named).args(["-c", "import duckdb"]).output();
    has.is_ok_and(|output| output.status.success()).then_some(named)
}

fn plimsoll(arguments: &[&str]) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(arguments).output().expect("runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// A log with bursts, ties, unknown lengths, rows out of order, and a few tenants.
fn random_log(stream: &mut Stream) -> String {
    let rows = 2 + stream.index(3000);
    let (knows_cached, days) = (stream.uniform() < 0.5, stream.uniform() < 0.3);
    let mut text = "ts_arrival,prompt_tokens,cache_read_tokens,output_tokens,tenant\n".to_owned();
    let mut at = 1_700_000_000_000_000_000_i64;
    for _ in 0..rows {
        let mean = if days { 60.0 } else { 1.0 };
        if stream.uniform() < 0.9 {
            at += (stream.exponential() * mean * 1e9) as i64;
        }
        let early = if stream.uniform() < 0.02 { 5_000_000_000 } else { 0 };
        let longest = if stream.uniform() < 0.05 { 200_000 } else { 3000 };
        let prompt = stream.index(longest);
        let cached = if prompt > 0 { stream.index(prompt + 1) } else { 0 };
        let cached = if knows_cached { cached.to_string() } else { String::new() };
        let output = stream.index(900);
        let output = if stream.uniform() < 0.03 { String::new() } else { output.to_string() };
        let tenant = ["a", "b", "c"][stream.index(3)];
        text += &format!("{},{prompt},{cached},{output},{tenant}\n", at - early);
    }
    text
}

#[test]
fn duckdb_agrees() {
    let Some(python) = python() else {
        skipped("no Python with DuckDB: set PLIMSOLL_PYTHON to one to compare with it");
        return;
    };
    let scratch = Scratch::new("same");
    for number in 0..sized(2, 12) {
        let mut stream = Seed::new(number).stream("same answer");
        let own = scratch.0.join(number.to_string());
        std::fs::create_dir_all(&own).expect("a directory");
        let log = own.join("log.csv");
        std::fs::write(&log, random_log(&mut stream)).expect("written");
        let ledger = own.join("ledger");
        let (log, at) = (log.display().to_string(), ledger.display().to_string());
        let done = plimsoll(&["--json", "ingest", &log, "--into", &at]);
        assert_eq!(done["rejected"], 0, "seed {number}: {done:#}");
        let profile = plimsoll(&["--json", "profile", &at, "--by", "tenant"]);
        let classes = profile["classes"].as_array().expect("classes");
        for class in classes {
            let name = class["name"].as_str().expect("a name");
            let tenant = if name == "all" { "*" } else { name };
            let expect = ask(&python, &ledger, tenant);
            let place = format!("seed {number}, class {name}");
            assert_eq!(class["rows"], expect["rows"], "{place}");
            same(&expect["windows"], &class["windows"], &place);
            same(&expect["prompt"], &class["prompt"], &place);
            same(&expect["output"], &class["output"], &place);
            same(&expect["inter_arrival"], &class["inter_arrival"], &place);
            same(&expect["pearson"], &class["correlation_prompt_output"]["pearson"], &place);
        }
    }
}

fn ask(python: &str, ledger: &Path, tenant: &str) -> Value {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/same_answer.py");
    let files = format!("{}/requests/*/*.parquet", ledger.display());
    let output = Command::new(python).arg(script).arg(files).arg(tenant).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What the other engine says, we say, too.
fn same(expect: &Value, got: &Value, place: &str) {
    match (expect, got) {
        (Value::Object(expect), got) => {
            for (key, value) in expect {
                same(value, &got[key], &format!("{place}.{key}"));
            }
        }
        (Value::Number(expect), Value::Number(got)) => {
            let (expect, got) = (expect.as_f64().expect("finite"), got.as_f64().expect("finite"));
            let near = 1e-9 * expect.abs().max(1e-3);
            assert!((expect - got).abs() <= near, "{place}: {got}, and DuckDB says {expect}");
        }
        (expect, got) => assert_eq!(expect, got, "{place}"),
    }
}
