//! `simulate`, as it is typed.

mod common;

use common::{Scratch, plimsoll, text};
use serde_json::Value;

const SCENARIO: &str = "examples/launch-week.toml";
const LOG: &str = "validation/vllm_h200/llama31_8b_kv64k.jsonl.gz";

/// What it prints on stdout, and its exit code.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = plimsoll(arguments);
    (output.status.code().expect("it ends by itself"), text(&output.stdout))
}

fn json(arguments: &[&str]) -> (i32, Value) {
    let (code, printed) = run(&[arguments, &["--json"]].concat());
    (code, serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {printed}")))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// A class and a pool, with whatever a test changes.
fn scenario(class: &str, pool: &str) -> String {
    // A conversation makes several requests.
    let rate = if class.contains("sessions") { "0.4 req/s" } else { "6 req/s" };
    format!(
        r#"
        [study]
        name = "a test"
        as_of = 2026-11-15

        [[class]]
        name = "chat"
        rate = "{rate}"
        prompt = {{ p50 = 600, p95 = 2400, max = 8000 }}
        output = {{ p50 = 120, p95 = 500, max = 2000 }}
        slo = {{ ttft = "1s", tpot = "50ms" }}
        {class}

        [[pool]]
        name = "small"
        model = "llama-3.1-8b"
        accelerator = "H100-SXM"
        engine = "vllm@0.24"
        max_model_len = 16384
        {pool}
        "#
    )
}

/// The scenario, simulated for five minutes in two runs.
fn simulated(name: &str, class: &str, pool: &str, options: &[&str]) -> (i32, Value) {
    let scratch = Scratch::new(name);
    let file = scratch.path("scenario.toml");
    std::fs::write(&file, scenario(class, pool)).expect("written");
    let mut arguments = vec!["simulate", &file];
    for (option, value) in [("--duration", "5m"), ("--warm-up", "1m"), ("--runs", "2")] {
        if !options.contains(&option) {
            arguments.extend([option, value]);
        }
    }
    arguments.extend(options);
    json(&arguments)
}

/// What must hold of any answer.
fn check(document: &Value) {
    assert_eq!(document["schema"], "plimsoll/simulate/v1");
    assert!(["STABLE", "BACKLOGGED", "OVERLOADED"].iter().any(|v| document["verdict"] == *v));
    assert!(count(&document["steps_leapt"]) <= count(&document["steps"]));
    for class in document["classes"].as_array().expect("classes") {
        let n = |key: &str| count(&class[key]);
        assert_eq!(
            n("offered"),
            n("completed") + n("rejected") + n("timed_out") + n("unfinished"),
            "{class}"
        );
        assert_eq!(n("admitted"), n("offered") - n("rejected"));
        assert!(n("good") <= n("completed") && n("too_long") <= n("rejected"));
        assert!(n("cached_tokens") <= n("prompt_tokens"));
        for metric in ["ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "queue_ms"] {
            let d = &class[metric];
            if d.is_null() {
                assert!(n("completed") == 0 || metric != "e2e_ms", "{class}");
                continue;
            }
            let at = |p: &str| number(&d[p]);
            assert!(at("p50") <= at("p90") && at("p90") <= at("p95") && at("p95") <= at("p99"));
            assert!(at("mean") > 0.0 || metric == "queue_ms", "{metric}: {d}");
        }
        if n("completed") > 0 {
            assert!(number(&class["queue_ms"]["p50"]) <= number(&class["ttft_ms"]["p50"]));
            assert!(number(&class["ttft_ms"]["mean"]) <= number(&class["e2e_ms"]["mean"]) * 1.001);
        }
    }
    for pool in document["pools"].as_array().expect("pools") {
        let u = &pool["utilisation"];
        for share in ["busy", "kv_mean", "kv_max", "bandwidth", "compute"] {
            assert!((0.0..=1.0).contains(&number(&u[share])), "{share}: {pool}");
        }
        for key in ["preemptions", "cache_hits", "replica_spread", "binding", "verdict"] {
            assert!(pool.get(key).is_some(), "{key}: {pool}");
        }
    }
    for (name, interval) in document["intervals"].as_object().expect("intervals") {
        assert!(number(&interval["low"]) <= number(&interval["high"]), "{name}: {interval}");
        assert!(count(&interval["n"]) >= 2);
    }
}

#[test]
fn the_contract() {
    let arguments = [
        "simulate",
        SCENARIO,
        "--hour",
        "baseline",
        "--duration",
        "10m",
        "--runs",
        "3",
        "--seed",
        "11",
    ];
    let (code, document) = json(&arguments);
    assert_eq!(code, 0);
    check(&document);
    assert_eq!(document["seed"], 11);
    assert_eq!(document["runs"], 3);
    assert_eq!(document["pools"].as_array().map(Vec::len), Some(2));
    // The small completions are served well, the edits are too many for four replicas: both are said, and the worse decides.
    let verdicts: Vec<&str> = document["pools"]
        .as_array()
        .expect("pools")
        .iter()
        .filter_map(|p| p["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["STABLE", "OVERLOADED"]);
    assert_eq!(document["verdict"], "OVERLOADED");
    assert_eq!(document["binding"]["pool"], "edits");
    // A point lies within the interval of its runs.
    let inline = &document["classes"][0];
    let interval = &document["intervals"]["completions.inline.ttft_mean_ms"];
    let mean = number(&inline["ttft_ms"]["mean"]);
    assert!(number(&interval["low"]) <= mean && mean <= number(&interval["high"]));
}

/// The same bytes on any number of threads, and other ones with another seed.
#[test]
fn threads_do_not_matter() {
    let with = |threads: &str, seed: &str| {
        run(&[
            "simulate",
            SCENARIO,
            "--duration",
            "3m",
            "--warm-up",
            "1m",
            "--runs",
            "4",
            "--json",
            "--timeline",
            "--threads",
            threads,
            "--seed",
            seed,
        ])
    };
    let one = with("1", "7");
    assert_eq!(one.0, 0);
    assert_eq!(one, with("3", "7"));
    assert_ne!(one, with("1", "8"));
}

/// Every request is written down, in order of its own times, and the file is whole or not there.
#[test]
fn outcomes_and_traces() {
    let scratch = Scratch::new("outcomes");
    let (csv, trace) = (scratch.path("requests.csv"), scratch.path("trace.json"));
    let (code, document) =
        simulated("outcomes-of", "", "", &["--outcomes", &csv, "--trace", &trace, "--timeline"]);
    assert_eq!(code, 0);
    check(&document);
    let text = std::fs::read_to_string(&csv).expect("written");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|h| *h == name).expect("a column");
    let (mut counted, mut all) = (0, 0);
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let at = |name: &str| cells[column(name)].parse::<f64>().expect("a time");
        assert_eq!(cells[column("end")], "completed");
        assert!(
            at("arrived_s") <= at("scheduled_s") && at("scheduled_s") <= at("first_s"),
            "{line}"
        );
        assert!(at("first_s") <= at("done_s"), "{line}");
        all += 1;
        counted += u64::from((60.0..360.0).contains(&at("arrived_s")));
    }
    assert_eq!(counted, count(&document["classes"][0]["offered"]));
    assert!(all > counted, "those of the warm-up are there, too");
    let trace: Value =
        serde_json::from_str(&std::fs::read_to_string(&trace).expect("written")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    for phase in ["X", "C", "b", "e"] {
        assert!(events.iter().any(|e| e["ph"] == phase), "no {phase}");
    }
    // Windows cover the five minutes, and their tokens are those of the pool's first run.
    let windows = document["timeline"].as_array().expect("windows");
    assert_eq!(windows.len(), 30);
    let device = simulated("outcomes-device", "", "", &["--outcomes", "/dev/null"]);
    assert_eq!(
        (device.0, &device.1["diagnostics"][0]["code"]),
        (2, &Value::from("unwritable-file"))
    );
    let nowhere = simulated("outcomes-nowhere", "", "", &["--outcomes", "/nowhere/requests.csv"]);
    assert_eq!(nowhere.0, 2);
    assert_eq!(nowhere.1["diagnostics"][0]["code"], "unwritable-file");
}

/// A measured run served again says what `validate` says of it.
#[test]
fn a_measured_run_is_served_again() {
    let (code, document) = json(&["simulate", LOG, "--run", "prefix-g4-p2048-r15"]);
    assert_eq!(code, 0);
    check(&document);
    let class = &document["classes"][0];
    assert_eq!(count(&class["offered"]), 443);
    let (_, validated) = json(&["validate", LOG]);
    let run = &validated["runs"].as_array().expect("runs")[0];
    let said = |metric: &str| {
        let all = run["metrics"].as_array().expect("metrics");
        number(&all.iter().find(|m| m["name"] == metric).expect("it is there")["predicted"])
    };
    assert_eq!(number(&class["cached_tokens"]), said("cached_tokens"));
    for (metric, ours) in [
        ("ttft_p50", &class["ttft_ms"]["p50"]),
        ("ttft_p95", &class["ttft_ms"]["p95"]),
        ("e2e_p50", &class["e2e_ms"]["p50"]),
    ] {
        // A sketch's thousandth, and one rank of 443.
        assert!((number(ours) / said(metric) - 1.0).abs() < 0.02, "{metric}: {ours}");
    }
    // Every request of a closed loop is counted, too.
    let log = "validation/vllm_h200/llama31_8b.jsonl.gz";
    let (_, closed) = json(&["simulate", log, "--run", "prefill-128"]);
    check(&closed);
    assert_eq!(closed["classes"][0]["offered"], closed["classes"][0]["completed"]);
    for (arguments, word) in [
        (vec!["simulate", LOG], "none is named"),
        (vec!["simulate", LOG, "--run", "nothing"], "holds no run"),
    ] {
        let (code, failure) = json(&arguments);
        assert_eq!(code, 2);
        let message = failure["diagnostics"][0]["message"].as_str().expect("a message");
        assert!(message.contains(word), "{message}");
        let help = failure["diagnostics"][0]["help"].as_str().expect("help");
        assert!(help.contains("prefix-g4-p2048-r15"), "{help}");
    }
}

/// Conversations find what they said before; where the cache is off they do not, and first tokens come later.
#[test]
fn conversations_find_their_past() {
    let talk =
        r#"sessions = { turns = { p50 = 6, p95 = 12 }, think = { p50 = "20s", p95 = "60s" } }"#;
    let (code, cached) = simulated("cached", talk, "", &[]);
    assert_eq!(code, 0);
    check(&cached);
    let (_, bare) = simulated("bare", talk, "prefix_caching = false", &[]);
    check(&bare);
    let share = |d: &Value| number(&d["pools"][0]["cache_hits"]["share"]);
    assert!(share(&cached) > 0.5, "{}", cached["pools"][0]);
    assert_eq!(share(&bare), 0.0);
    let first = |d: &Value| number(&d["classes"][0]["ttft_ms"]["mean"]);
    assert!(first(&cached) < first(&bare));
}

/// Whatever a pool is: windows, experts, guesses, samples, ranks, other engines.
#[test]
fn pools_of_many_kinds() {
    let kinds = [
        ("windows", "", r#"model = "gemma-3-27b""#),
        ("experts", "", r#"model = "qwen3-30b-a3b""#),
        ("guesses", "", "speculation = { tokens = 3, accept_length = 2.4 }"),
        ("samples", "samples = 4", ""),
        ("sglang", "", r#"engine = "sglang""#),
        ("trt", "", r#"engine = "tensorrt-llm""#),
        ("eager", "", "data_parallel = 2"),
    ];
    for (name, class, pool) in kinds {
        let scratch = Scratch::new(&format!("kind-{name}"));
        let file = scratch.path("scenario.toml");
        let key = pool.split(' ').next().unwrap_or_default();
        let text: String = scenario(class, pool)
            .lines()
            // The pool's own line takes the place of the usual one.
            .filter(|l| {
                let own = l.trim() == pool;
                own || key.is_empty() || !l.trim_start().starts_with(&format!("{key} "))
            })
            .map(|l| format!("{l}\n"))
            .collect();
        std::fs::write(&file, text).expect("written");
        let (code, document) =
            json(&["simulate", &file, "--duration", "3m", "--warm-up", "30s", "--runs", "2"]);
        assert_eq!(code, 0, "{name}: {document}");
        check(&document);
        assert!(count(&document["classes"][0]["completed"]) > 0, "{name}: {document}");
    }
}

/// Clients that go away, a line that is full, a context longer than the cache, more than can be served: all are counted, none is lost.
#[test]
fn what_is_not_served_is_counted() {
    let crowd = r#"deadline = "3s""#;
    let pool = "max_num_seqs = 4\n        queue = { requests = 2 }";
    let (code, document) = simulated("crowd", crowd, pool, &[]);
    assert_eq!(code, 0);
    check(&document);
    let class = &document["classes"][0];
    assert!(count(&class["rejected"]) > 0 && count(&class["timed_out"]) > 0, "{class}");
    assert_eq!(document["verdict"], "OVERLOADED");
    assert_eq!(document["binding"]["resource"], "sequences");
    // Where nobody may wait, whoever finds a seat is served all the same.
    let (_, none) = simulated("none", "", "queue = { requests = 0 }", &[]);
    check(&none);
    assert_eq!(none["classes"][0]["completed"], none["classes"][0]["offered"]);
    // A context that is not accepted is refused, and nobody calls that stable.
    let (_, long) = simulated("long", "", "max_num_seqs = 64", &["--pool", "small"]);
    assert_eq!(count(&long["classes"][0]["too_long"]), 0);
    let scratch = Scratch::new("short");
    let file = scratch
        .file("s.toml", scenario("", "").replace("max_model_len = 16384", "max_model_len = 1024"));
    let (_, short) = json(&["simulate", &file, "--duration", "5m", "--runs", "2"]);
    check(&short);
    assert!(count(&short["classes"][0]["too_long"]) > 0, "{short}");
    assert_eq!(short["verdict"], "OVERLOADED");
    // One that is stopped has no verdict, and says so.
    let (code, stopped) =
        simulated("stopped", "", "", &["--duration", "100d", "--time-limit", "200ms"]);
    assert_eq!(code, 0);
    assert!(stopped["verdict"].is_null() && stopped["complete"] == false);
    assert!(stopped["notes"].to_string().contains("--time-limit"), "{}", stopped["notes"]);
    assert!(number(&stopped["pools"][0]["utilisation"]["busy"]) > 0.5);
}

#[test]
fn bad_questions_get_answers() {
    let cases: [(&[&str], &str); 6] = [
        (&["--duration", "300d"], "200 days"),
        (&["--pool", "nobody"], "no pool `nobody`"),
        (&["--hour", "4000"], "no hour 4000"),
        (&["--hour", "launch"], "no event"),
        (&["--duration", "0s"], "no time"),
        (&["--time-limit", "0s"], "no time"),
    ];
    for (i, (options, word)) in cases.into_iter().enumerate() {
        let (code, failure) = simulated(&format!("bad-{i}"), "", "", options);
        assert_eq!(code, 2, "{options:?}");
        assert_eq!(failure["schema"], "plimsoll/error/v1");
        let message = failure["diagnostics"][0]["message"].as_str().expect("a message");
        assert!(message.contains(word), "{message}");
    }
    let scratch = Scratch::new("flood");
    let flood = scenario("", "").replace("6 req/s", "100000 req/s");
    let (code, failure) = json(&["simulate", &scratch.file("s.toml", flood)]);
    assert_eq!((code, &failure["diagnostics"][0]["code"]), (2, &Value::from("cannot-simulate")));
    // Priorities matter only among those that share a pool.
    let (_, alone) = simulated("alone", "priority = 3", "", &[]);
    assert!(!alone["notes"].to_string().contains("priority"), "{}", alone["notes"]);
}
