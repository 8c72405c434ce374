//! The ledger through the binary: what users type, and what a kill leaves behind.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use plimsoll_ledger::Ledger;
use plimsoll_stats::Seed;
use plimsoll_testkit::sized;
use serde_json::Value;

use crate::common::Scratch;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(arguments).env("NO_COLOR", "1");
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[&["--json"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
    })
}

fn log(rows: usize, day: u32) -> String {
    let mut text = "TIMESTAMP,ContextTokens,GeneratedTokens\n".to_owned();
    for i in 0..rows {
        let (minute, second) = (i / 60 % 60, i % 60);
        text += &format!(
            "2026-11-{day:02} 10:{minute:02}:{second:02}.{:07},{},{}\n",
            i,
            i % 900,
            i % 70
        );
    }
    text
}

/// A hundred kills at random moments, or a few in the quick tier: the ledger is as before or as after, and what was killed can be done again.
#[test]
fn a_kill_leaves_the_ledger_whole() {
    let scratch = Scratch::new("kill");
    let ledger = scratch.path("ledger");
    let first = scratch.file("first.csv", log(2000, 1));
    let done = json(&["ingest", &first, "--into", &ledger]);
    assert_eq!(done["rows_added"], 2000, "{done:#}");
    let rows = |ledger: &str| Ledger::open(Path::new(ledger)).expect("a ledger").rows();
    let mut stream = Seed::new(7).stream("kills");
    let mut expected = rows(&ledger);
    let (mut before, mut after) = (0, 0);
    for kill in 0..sized(20, 100) {
        let day = 2 + (kill % 27);
        let file = scratch.file("next.csv", log(3000 + kill as usize, day));
        let mut ingest =
            command(&["ingest", &file, "--into", &ledger, "--source", &kill.to_string()]);
        let mut child = ingest.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        // A whole ingest takes some tens of milliseconds here; no more than a hundred are waited for.
        std::thread::sleep(Duration::from_micros((stream.uniform() * 60_000.0) as u64));
        child.kill().expect("killed, or done");
        child.wait().expect("ended");
        let found = rows(&ledger);
        let added = 3000 + u64::from(kill);
        assert!(found == expected || found == expected + added, "{found} rows after kill {kill}");
        if found == expected {
            before += 1
        } else {
            after += 1
        }
        expected = found;
        // Every row that the manifest counts can be read.
        if kill % 10 == 9 {
            let profile = json(&["profile", &ledger]);
            assert_eq!(profile["classes"][0]["rows"], expected, "after kill {kill}");
        }
    }
    println!("{before} kills before the batch counted, {after} after");
    assert!(before > 0, "no kill came in time");
    let last = scratch.file("last.csv", log(10, 30));
    let done = json(&["ingest", &last, "--into", &ledger]);
    assert_eq!((&done["rows_added"], &done["duplicates"]), (&Value::from(10), &Value::from(0)));
    assert_eq!(rows(&ledger), expected + 10);
    let again = json(&["ingest", &last, "--into", &ledger]);
    assert_eq!((&again["rows_added"], &again["duplicates"]), (&Value::from(0), &Value::from(10)));
}

/// The numbers of `ingest --json` add up, by file and in all.
#[test]
fn every_row_is_counted_once() {
    let scratch = Scratch::new("counted");
    let ledger = scratch.path("ledger");
    let good = scratch.file("good.csv", log(50, 3));
    let bad = scratch.file("bad.csv", &(log(5, 3) + "2026-11-03 11:00:00,-1,2\nnonsense\n"));
    let done = json(&["ingest", &good, &bad, "--into", &ledger]);
    assert_eq!(done["schema"], "plimsoll/ingest/v1");
    let number = |value: &Value, key: &str| value[key].as_u64().expect("a count");
    let sum = |value: &Value| {
        let passed = match &value["passed_over"] {
            Value::Object(kinds) => kinds.values().filter_map(Value::as_u64).sum(),
            other => other.as_u64().expect("a count"),
        };
        number(value, "rows_added")
            + number(value, "rejected")
            + number(value, "duplicates")
            + passed
    };
    assert_eq!(number(&done, "rows_in"), sum(&done));
    let files = done["files"].as_array().expect("files");
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(number(file, "rows_in"), sum(file), "{file:#}");
    }
    // The first five rows of both files are the same rows of the same source.
    assert_eq!((number(&files[1], "duplicates"), number(&files[1], "rejected")), (5, 2));
    let text = String::from_utf8(run(&["ingest", &bad, "--into", &ledger]).stdout).expect("text");
    assert!(text.contains("`ContextTokens` is `-1`, below zero"), "{text}");
    assert!(text.contains("rejects.parquet"), "{text}");
}

/// One task across its attempts, found by any of its names.
#[test]
fn a_task_is_shown_across_its_attempts() {
    let scratch = Scratch::new("task");
    let ledger = scratch.path("ledger");
    let rows = concat!(
        r#"{"ts_arrival":"2026-11-15T09:00:00Z","request_id":"r1","attempt":1,"task_id":"t1","route":"east","route_version":"v3","model":"m","prompt_tokens":1200,"cache_read_tokens":1000,"output_tokens":0,"status":"limited","http_status":429,"e2e_s":0.1,"limit_dimension":"tokens per minute"}"#,
        "\n",
        r#"{"ts_arrival":"2026-11-15T09:00:02Z","request_id":"r1","attempt":2,"task_id":"t1","route":"west","model":"m","prompt_tokens":1200,"cache_read_tokens":0,"output_tokens":80,"status":"ok","finish_reason":"stop","queue_s":0.5,"prefill_s":0.25,"decode_s":1.25,"ttft_s":0.75,"e2e_s":2.0,"cost_usd":0.0042}"#,
        "\n",
        r#"{"ts_arrival":"2026-11-15T09:00:05Z","request_id":"r9","task_id":"t2","prompt_tokens":5,"output_tokens":5}"#,
        "\n",
    );
    let log = scratch.file("rows.jsonl", rows);
    let outcome = scratch.file(
        "outcomes.jsonl",
        "{\"task_id\":\"t1\",\"success\":true,\"label\":\"thumbs up\",\"ts\":\"2026-11-16T00:00:00Z\"}\n",
    );
    let done = json(&["ingest", &log, &outcome, "--into", &ledger]);
    assert_eq!(
        (&done["requests_added"], &done["outcomes_added"]),
        (&Value::from(3), &Value::from(1)),
        "{done:#}"
    );
    let task = json(&["trace", &ledger, "--task", "t1"]);
    assert_eq!(task["schema"], "plimsoll/trace/v1");
    assert_eq!(
        (&task["found_by"], &task["success"]),
        (&Value::from("task_id"), &Value::from(true))
    );
    assert_eq!(task["attempts"].as_array().map(Vec::len), Some(2));
    assert_eq!(task["totals"]["prompt_tokens"]["sum"], 2400.0);
    assert_eq!(
        (&task["totals"]["cost_usd"]["sum"], &task["totals"]["cost_usd"]["known"]),
        (&Value::from(0.0042), &Value::from(1))
    );
    assert_eq!(task["span_s"], 4.0);
    let text = String::from_utf8(run(&["trace", &ledger, "--task", "r1"]).stdout).expect("text");
    for part in [
        "2 attempts of 1 requests",
        "limited 429",
        "ok, stop",
        "east (v3)",
        "thumbs up",
        "tokens per minute",
        "$0.004200",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let none = run(&["trace", &ledger, "--task", "t3"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("`t3`"));
}

/// What the default build leaves out is named, with the feature that has it.
#[cfg(not(any(feature = "sql", feature = "object-store")))]
#[test]
fn features_that_were_not_built() {
    let scratch = Scratch::new("features");
    let ledger = scratch.path("ledger");
    let file = scratch.file("log.csv", log(20, 1));
    assert!(run(&["ingest", &file, "--into", &ledger]).status.success());
    for (arguments, expect) in [
        (
            vec!["query", &ledger, "SELECT 1"],
            "this plimsoll was built without SQL: build it with --features sql",
        ),
        (
            vec!["profile", &ledger, "--cluster", "df://h"],
            "built without clusters: build it with --features cluster",
        ),
        (vec!["ingest", "s3://bucket/log.csv", "--into", &ledger], "built without object stores"),
    ] {
        let output = run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        // Lines are broken where the terminal ends.
        let said =
            said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(said.contains(expect), "{said}");
    }
}

/// A pipe is read like a file, and a format or a mapping that means nothing is told.
#[cfg(unix)]
#[test]
fn pipes_and_wrong_options() {
    let scratch = Scratch::new("pipes");
    let (file, ledger) = (scratch.file("log.csv", log(50, 3)), scratch.path("ledger"));
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    for source in ["-", "/dev/stdin"] {
        let into = format!("{ledger}{}", source.len());
        let line = format!("cat '{file}' | '{binary}' --json ingest {source} --into '{into}'");
        let output = Command::new("sh").args(["-c", &line]).output().expect("runs");
        let done: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(done["rows_added"], 50, "{source}: {done:#}");
    }
    let wrong = run(&["ingest", &file, "--into", &ledger, "--format", "nope"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(said.contains("`nope` is no format") && said.contains("azure"), "{said}");
    let wrong = run(&["ingest", &file, "--into", &ledger, "--map", "promt_tokens=ContextTokens"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("prompt_tokens"));
}
