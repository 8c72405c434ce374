//! `emit`, `lint`, `init --from`, and what `doctor`, `watch` and `ingest` say to what they cannot read.

use crate::common;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::prometheus::{Prometheus, is_installed};
use crate::common::plans::with;
use crate::common::{Scratch, json, plimsoll, repository, run, text};
use plimsoll_testkit::runs_long;
use serde_json::Value;

/// The kind of the first mistake.
fn code_of(failure: &Value) -> &str {
    failure["diagnostics"][0]["code"].as_str().unwrap_or_default()
}

fn fixture(name: &str) -> String {
    format!("crates/plimsoll-emit/tests/fixtures/{name}")
}

fn plan_in(scratch: &Scratch) -> String {
    let plan = scratch.path("plan.json");
    let (code, _) = run(&["plan", "crates/plimsoll/tests/fixtures/cluster.toml", "--out", &plan]);
    assert_eq!(code, 0);
    plan
}

#[test]
fn a_plan_becomes_manifests_that_pass_our_own_lint() {
    let scratch = Scratch::new("emit-lint");
    let (plan, out) = (plan_in(&scratch), scratch.path("out"));
    let (code, document) =
        json(&["emit", &plan, "--target", "all", "--out", &out, "--served", "chat=chat"]);
    assert_eq!((code, &document["schema"]), (0, &Value::from("plimsoll/emit/v1")));
    let files = document["files"].as_array().expect("files");
    assert!(files.len() >= 12, "{document:#}");
    // Each carries the plan's id, so that what runs can be traced to what was planned.
    let id = document["plan"].as_str().expect("an id");
    for file in files {
        let name = file["name"].as_str().expect("a name");
        let written = std::fs::read_to_string(name).expect("written");
        assert!(written.contains(id), "{name} does not name its plan");
    }
    let (code, linted) = json(&["lint", &out, "--plan", &plan]);
    assert_eq!(code, 0, "{linted:#}");
    assert_eq!(
        (linted["errors"].as_u64(), linted["warnings"].as_u64()),
        (Some(0), Some(0)),
        "{linted:#}"
    );
    // The same plan gives the same bytes.
    let again = scratch.path("again");
    assert_eq!(
        run(&["emit", &plan, "--target", "all", "--out", &again, "--served", "chat=chat"]).0,
        0
    );
    for entry in std::fs::read_dir(&out).expect("a directory").flatten() {
        let other = Path::new(&again).join(entry.file_name());
        let (one, two) = (std::fs::read(entry.path()), std::fs::read(other));
        assert_eq!(one.expect("there"), two.expect("there"), "{:?}", entry.file_name());
    }
}

#[test]
fn what_is_emitted_can_be_piped() {
    let scratch = Scratch::new("emit-pipe");
    let plan = plan_in(&scratch);
    let (code, printed) =
        run(&["emit", &plan, "--target", "keda,prometheus", "--namespace", "serving"]);
    assert_eq!(code, 0);
    assert_eq!(printed.matches("\nkind: ScaledObject\n").count(), 1);
    assert_eq!(printed.matches("\nkind: PrometheusRule\n").count(), 1);
    assert_eq!(printed.matches("  namespace: serving\n").count(), 2);
}

#[test]
fn published_mistakes_are_found_and_mended() {
    let scratch = Scratch::new("lint-fix");
    let broken =
        std::fs::read_to_string(common::repository().join(fixture("lint/p95-average.yaml")));
    let path = scratch.path("scaler.yaml");
    std::fs::write(&path, broken.expect("a fixture")).expect("written");
    let (code, found) = json(&["lint", &path]);
    assert_eq!(code, 1);
    let first = &found["findings"][0];
    assert!(
        first["line"].as_u64() > Some(1) && !first["proof"].as_str().expect("a proof").is_empty()
    );
    let sarif = scratch.path("lint.sarif");
    let (code, mended) = json(&["lint", &path, "--fix", "--sarif", &sarif]);
    let rules = |document: &Value| -> Vec<String> {
        let all = document["findings"].as_array().expect("findings");
        all.iter().map(|own| own["rule"].as_str().unwrap_or("").to_owned()).collect()
    };
    assert!(rules(&found).contains(&"L1".to_owned()), "{found:#}");
    assert!(!rules(&mended).contains(&"L1".to_owned()), "{mended:#}");
    assert_eq!(code, i32::from(mended["errors"].as_u64() > Some(0)));
    let sarif: Value =
        serde_json::from_str(&std::fs::read_to_string(sarif).expect("written")).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["tool"]["driver"]["name"], "plimsoll");
    let (code, rules) = json(&["lint", "--rules"]);
    assert_eq!(code, 0);
    assert!(rules["rules"].as_array().expect("rules").len() >= 25);
}

#[test]
fn a_scenario_from_what_runs() {
    let scratch = Scratch::new("init-from");
    let directory = scratch.path("out");
    let files = ["chat-deploy.yaml", "chat-scaler.yaml", "chat-pod.log"]
        .map(|name| fixture(&format!("found/{name}")));
    let arguments = ["init", &directory, "--from", &files[0], &files[1], &files[2]];
    let (code, found) = json(&arguments);
    assert_eq!(code, 0);
    let value = |key: &str| {
        let all = found["values"].as_array().expect("values");
        all.iter().find(|own| own["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
    };
    assert_eq!(value("pool.chat.tensor_parallel")["value"], "2");
    assert!(
        value("pool.chat.engine")["origin"].as_str().expect("an origin").contains("chat-pod.log:1")
    );
    // What is not known is asked for, and `check` points at it.
    let scenario = scratch.path("out/scenario.toml");
    let (code, checked) = json(&["check", &scenario]);
    assert_eq!(code, 2);
    assert!(
        checked["diagnostics"].to_string().contains("does not say how often its tasks come"),
        "{checked:#}"
    );
    // What is there is not overwritten.
    let (code, refused) = json(&arguments);
    assert_eq!((code, code_of(&refused)), (2, "file-exists"));
}

/// Whatever is wrong is said, with a way out, and within seconds.
#[test]
fn bad_input_is_answered() {
    let scratch = Scratch::new("cluster-bad");
    let plan = plan_in(&scratch);
    let write = |name: &str, text: &str| -> String {
        let path = scratch.path(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let check = |arguments: &[&str], code: &str, says: &str| {
        let (exit, document) = json(arguments);
        assert_eq!(exit, 2, "{arguments:?}: {document:#}");
        assert_eq!(code_of(&document), code, "{arguments:?}: {document:#}");
        let all = document["diagnostics"].to_string();
        assert!(all.contains(says), "{arguments:?}: {all}");
    };
    let old = write("old.json", r#"{"schema": "plimsoll/plan/v1", "id": "x"}"#);
    check(&["emit", &old, "--target", "keda"], "not-a-plan", "plimsoll plan FILE --out");
    let other = write("other.json", r#"{"schema": "plimsoll/forecast/v1"}"#);
    check(
        &["watch", &other, "--prometheus", "http://127.0.0.1:1", "--once"],
        "not-a-plan",
        "plimsoll/forecast/v1",
    );
    let torn = write("torn.json", "{\"schema\": ");
    check(&["emit", &torn, "--target", "keda"], "not-a-plan", "is not JSON");
    check(&["emit", &plan, "--target", "helm"], "usage", "`helm` is no target");
    check(&["emit", &plan, "--target", "keda", "--served", "nobody=x"], "usage", "names no pool");
    check(&["watch", &plan, "--once"], "usage", "--prometheus http://");
    check(&["watch", &plan, "--prometheus", "http://127.0.0.1:1", "--once"], "not-seen", "refused");
    check(
        &["doctor", "--prometheus", "http://127.0.0.1:1", "--plan", &plan],
        "no-prometheus",
        "refused",
    );
    check(&["doctor", "--prometheus", "http://127.0.0.1:1"], "usage", "nothing to examine");
    // Two pools of one model: what they report is not counted as both.
    let two = scratch.path("two.json");
    let example = std::fs::read_to_string(repository().join("examples/two-regions.toml"));
    let fewer = with(
        &example.expect("an example"),
        &[
            ("\"25 req/s\"", "\"2.5 req/s\""),
            ("\"30 req/s\"", "\"3 req/s\""),
            ("now = 10, plan = [4, 32]", "now = 1, plan = [1, 8]"),
            ("now = 12, plan = [4, 48]", "now = 1, plan = [1, 8]"),
        ],
    );
    let fewer = write("two.toml", &fewer);
    assert_eq!(run(&["plan", &fewer, "--out", &two]).0, 0);
    let refused = ["--prometheus", "http://127.0.0.1:1"];
    check(&[&["watch", &two, "--once"], &refused[..]].concat(), "not-seen", "cannot be told apart");
    check(&[&["doctor", "--plan", &two], &refused[..]].concat(), "no-prometheus", "refused");
    let told = ["--match", "chat-eu:region=eu", "--match", "chat-us:region=us"];
    check(&[&["watch", &two, "--once"], &refused[..], &told].concat(), "not-seen", "refused");
    let rules = ["emit", &two, "--target", "prometheus-rules"];
    let (_, alike) = json(&rules);
    assert!(alike["notes"].to_string().contains("cannot be told apart"), "{alike:#}");
    let (code, apart) = json(&[&rules[..], &told].concat());
    assert_eq!(code, 0);
    assert!(!apart["notes"].to_string().contains("cannot be told apart"), "{apart:#}");
    let written = apart["files"][0]["text"].as_str().expect("rules");
    assert!(written.contains("region=\"eu\"") && written.contains("region=\"us\""), "{written}");
    let wrong = ["--match", "chat-xx:region=eu"];
    check(&[&rules[..], &wrong].concat(), "usage", "names no pool");
    check(&[&["watch", &two, "--once"], &refused[..], &wrong].concat(), "usage", "names no pool");
    let ledger = scratch.path("ledger");
    check(
        &["ingest", "--prometheus", "http://127.0.0.1:1", "--into", &ledger],
        "no-prometheus",
        "refused",
    );
    check(&["ingest", "--prometheus", "ftp://x", "--into", &ledger], "no-prometheus", "http://");
    let moment =
        write("now.prom", "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n");
    check(&["ingest", &moment, "--into", &ledger], "no-samples", "no sample with a time");
    let nothing = write("nothing.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n");
    check(
        &["init", &scratch.path("no"), "--from", &nothing],
        "nothing-found",
        "Kubernetes manifests",
    );
    check(&["lint", &write("a.yaml", "a: 1\n"), "--engine", "vllm"], "usage", "vllm@0.24");
    assert!(!Path::new(&ledger).join("manifest.json").exists());
    // A server that listens and never answers is waited for no longer than was said.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("bound"));
    check(
        &["watch", &plan, "--prometheus", &url, "--once", "--query-timeout", "1s"],
        "not-seen",
        "1 s",
    );
    // Broken YAML is a finding with its line, and an anchor that stands for millions of parts is refused at once.
    let (code, found) = json(&["lint", &write("torn.yaml", "a: [1\nb: 2\n")]);
    assert_eq!((code, &found["findings"][0]["rule"]), (1, &Value::from("L0")));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..10 {
        let line = format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", "));
        bomb.push_str(&line);
    }
    let (code, found) = json(&["lint", &write("bomb.yaml", &bomb)]);
    assert_eq!(code, 1);
    assert!(
        found["findings"][0]["message"].as_str().expect("said").contains("200000"),
        "{found:#}"
    );
    // A kind that nobody knows is passed over, with a word.
    let (code, found) = json(&["lint", &nothing]);
    assert_eq!((code, &found["passed_over"][0]["kind"]), (0, &Value::from("ConfigMap")));
}

/// Two weeks of a fleet, told to a real Prometheus: read into a ledger as they were, and a forecast from them.
#[test]
fn two_weeks_of_a_prometheus() {
    if !runs_long("two weeks told to a Prometheus") || !is_installed() {
        return;
    }
    let scratch = Scratch::new("fortnight");
    let home = PathBuf::from(scratch.path("home"));
    std::fs::create_dir_all(home.join("data")).expect("a directory");
    const START: i64 = 1_767_571_200;
    const DAYS: i64 = 14;
    // By the minute: more in the afternoon than at night, a reset on the fifth day, a gap of an hour on the ninth.
    let calls = |minute: i64| -> i64 { 60 + 4 * (720 - (minute % 1440 - 840).abs()).max(0) / 10 };
    let reset = 5 * 1440 + 400;
    let gap = 9 * 1440 + 120..9 * 1440 + 180;
    let mut file = String::new();
    for (name, of) in [
        ("request_success", 1),
        ("prompt_tokens", 900),
        ("prefix_cache_hits", 300),
        ("generation_tokens", 80),
    ] {
        file.push_str(&format!("# TYPE vllm:{name} counter\n"));
        let mut sum = 0;
        for minute in 0..DAYS * 1440 {
            if minute == reset {
                sum = 0;
            }
            if !gap.contains(&minute) {
                let at = START + 60 * minute;
                let more = if name == "request_success" { ",finished_reason=\"stop\"" } else { "" };
                file.push_str(&format!("vllm:{name}_total{{model_name=\"org/chat\",instance=\"a:8000\"{more}}} {sum} {at}\n"));
            }
            sum += calls(minute) * of;
        }
    }
    for name in ["num_requests_running", "num_requests_waiting"] {
        file.push_str(&format!("# TYPE vllm:{name} gauge\n"));
        for minute in (0..DAYS * 1440).filter(|minute| !gap.contains(minute)) {
            file.push_str(&format!(
                "vllm:{name}{{model_name=\"org/chat\",instance=\"a:8000\"}} 0 {}\n",
                START + 60 * minute
            ));
        }
    }
    file.push_str("# EOF\n");
    let metrics = home.join("metrics.txt");
    std::fs::write(&metrics, &file).expect("written");
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&metrics, &home.join("data")])
        .output()
        .expect("promtool runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let mut server = Prometheus::start(&home, &[]);
    let url = server.address();
    let until = jiff::Timestamp::from_second(START + DAYS * 86_400).expect("a time").to_string();
    let ledgers = ["of-prometheus", "of-file"].map(|name| scratch.path(name));
    let ingest = [
        "ingest",
        "--prometheus",
        &url,
        "--since",
        "14d",
        "--until",
        &until,
        "--window",
        "5m",
        "--into",
        &ledgers[0],
    ];
    let (code, document) = json(&ingest);
    server.kill();
    assert_eq!(code, 0, "{document:#}");
    // An hour is missing, which is twelve windows without a row.
    assert_eq!(document["series"]["demand_windows"], DAYS * 288 - 12, "{document:#}");
    let (code, document) =
        json(&["ingest", &metrics.display().to_string(), "--window", "5m", "--into", &ledgers[1]]);
    assert_eq!(code, 0, "{document:#}");
    for ledger in &ledgers {
        let opened = plimsoll_ledger::Ledger::open(Path::new(ledger)).expect("a ledger");
        let all = opened.series_history(std::num::NonZero::new(300), 8).expect("histories");
        let history = &all[0].1.history;
        let mut wrong = 0;
        for (step, count) in (0i64..).zip(&history.classes[0].steps) {
            let minute = (history.start_s - START) / 60 + 5 * step;
            let near = |at: i64| (minute - 10..minute + 10).contains(&at);
            // A reset and the edges of a gap cost a window; the gap itself is not there.
            if near(reset) || (gap.start - 10..gap.end + 10).contains(&minute) {
                continue;
            }
            // At each edge stands what was counted before it.
            let truth: i64 = (minute..minute + 5).map(calls).sum();
            wrong += i32::from((count.requests - truth as f64).abs() > 1e-6 * truth as f64);
        }
        // The last window of the fortnight has no scrape at its end.
        assert!(wrong <= 1, "{wrong} windows of {ledger} are not as they were");
    }
    // The fortnight is enough for a forecast, and a class of a scenario takes it by its model.
    let (code, forecast) = json(&["forecast", &ledgers[0], "--horizon", "24h"]);
    assert_eq!(code, 0, "{forecast:#}");
    let output = plimsoll(&["forecast", &ledgers[0], "--horizon", "24h"]);
    assert!(text(&output.stdout).contains("chat"), "{}", text(&output.stdout));
}
