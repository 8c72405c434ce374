//! `curve`, as it is typed.

use crate::common::{Scratch, diagnostic, json, number, run};
use serde_json::Value;

const SWEEP: &str = "crates/plimsoll/tests/fixtures/sweep.jsonl";

/// A class on a pool, with what a test changes.
fn scenario(slo: &str, pool: &str) -> String {
    format!(
        r#"
        [study]
        name = "A small curve"
        as_of = 2026-11-15

        [[class]]
        name = "chat"
        rate = "3 req/s"
        prompt = {{ p50 = 600, p95 = 2400, max = 8000 }}
        output = {{ p50 = 120, p95 = 500, max = 2000 }}
        slo = {{ {slo} }}

        [[pool]]
        name = "small"
        model = "llama-3.1-8b"
        accelerator = "H100-SXM"
        engine = "vllm@0.24"
        max_model_len = 16384
        max_num_seqs = 32
        {pool}
        "#
    )
}

const SLO: &str = r#"ttft = "1s", tpot = "50ms""#;

/// The curve of a scenario, of four runs a point.
fn curve(name: &str, text: &str, options: &[&str]) -> Value {
    let scratch = Scratch::new(name);
    let file = scratch.file("s.toml", text);
    let (code, document) = json(&[&["curve", &file], options].concat());
    assert_eq!(code, 0, "{document}");
    check(&document);
    document
}

/// What must hold of any curve.
fn check(document: &Value) {
    assert_eq!(document["schema"], "plimsoll/curve/v1");
    for key in ["knee", "load_line", "load_lines", "binding", "peak_throughput", "notes"] {
        assert!(document.get(key).is_some(), "{key}");
    }
    let points = document["points"].as_array().expect("points");
    let loads: Vec<f64> = points.iter().map(|p| number(&p["load"])).collect();
    assert!(loads.is_sorted_by(|a, b| a < b), "{loads:?}");
    let at = |load: f64| points.iter().find(|p| number(&p["load"]).to_bits() == load.to_bits());
    for point in points {
        let n = |key: &str| number(&point[key]);
        let good = n("goodput_per_s");
        // What is good came, and is done sooner or later.
        assert!(good <= n("offered_per_s") * 1.001, "{point}");
        for share in ["errors", "busy", "kv", "attainment"] {
            // Without a threshold nothing says what is good.
            assert!(
                point[share].is_null() && share == "attainment" || (0.0..=1.0).contains(&n(share)),
                "{share}: {point}"
            );
        }
        assert!(n("queue_mean").is_sign_positive(), "{point}");
        let interval = &point["attainment_interval"];
        if !interval.is_null() {
            let (low, high) = (number(&interval["low"]), number(&interval["high"]));
            assert!(low <= n("attainment") && n("attainment") <= high, "{point}");
        }
        assert_eq!(point["meets"] == true, point["fails_by"].is_null(), "{point}");
    }
    let peak = &document["peak_throughput"];
    assert_eq!(peak["safe"], false);
    let tokens = number(&peak["output_tokens_per_s"]);
    assert!(points.iter().all(|p| number(&p["output_tokens_per_s"]) <= tokens), "{peak}");
    let line = &document["load_line"];
    if line.is_null() {
        assert!(points.iter().all(|p| p["meets"] == false), "{document}");
        return;
    }
    let load = number(&line["load"]);
    assert!(at(load).is_some_and(|p| p["meets"] == true), "{line}");
    if !document["knee"].is_null() {
        assert!(load <= number(&document["knee"]["load"]), "{line} and {}", document["knee"]);
    }
    if !line["fails_at_load"].is_null() {
        let fails = number(&line["fails_at_load"]);
        assert!(load < fails && at(fails).is_some_and(|p| p["meets"] == false), "{line}");
        assert!(!document["binding"]["cause"].is_null(), "{}", document["binding"]);
        assert!(!document["binding"]["first_signal"].is_null(), "{}", document["binding"]);
    }
}

fn line(document: &Value) -> f64 {
    number(&document["load_line"]["offered_per_s"])
}

/// Points, marks, lines; the same bytes for the same seed on any number of threads, others for another.
#[test]
fn the_contract() {
    let scratch = Scratch::new("curve-contract");
    let file = scratch.file("s.toml", scenario(SLO, ""));
    let with = |seed: &str, threads: &str| {
        let few = ["--points", "3", "--json", "--seed", seed, "--threads", threads];
        run(&[&["curve", &file], &few[..]].concat())
    };
    let one = with("5", "1");
    assert_eq!(one.0, 0);
    assert_eq!(one, with("5", "16"));
    assert_ne!(one, with("6", "16"));
    let (code, document) = json(&["curve", &file, "--seed", "5"]);
    assert_eq!(code, 0);
    check(&document);
    assert_eq!(document["seed"], 5);
    // Nothing is simulated twice.
    assert_eq!(document["simulated"]["repeated"], 0);
    let points = document["points"].as_array().expect("points");
    assert!(points.len() >= 12, "{}", points.len());
    assert!(!document["knee"].is_null() && !document["load_line"].is_null());
    // The next load that was tried is at most two steps of the grid away, and it is good enough there.
    let mark = &document["load_line"];
    assert!(number(&mark["fails_at_load"]) <= number(&mark["load"]) * 1.09, "{mark}");
    let there = points.iter().find(|p| p["load"] == mark["load"]).expect("a point");
    assert!(number(&there["attainment"]) >= 0.99, "{there}");
    assert_eq!(document["binding"]["cause"], "sequences");
    assert_eq!(document["binding"]["first_signal"], "ttft");
    let lines = document["load_lines"].as_array().expect("lines");
    let names: Vec<&str> = lines.iter().filter_map(|l| l["resource"].as_str()).collect();
    let all = ["requests", "fresh_prompt_tokens", "output_tokens", "resident_kv_tokens", "mix"];
    assert_eq!(names, all);
    for own in lines {
        // The demand is far below its lines, and what flows grows with its lever.
        assert!(number(&own["demand"]) < number(&own["load_line"]), "{own}");
        if own["resource"] != "resident_kv_tokens" {
            let grown = number(&own["demand"]) * number(&own["factor"]);
            assert!((grown / number(&own["load_line"]) - 1.0).abs() < 0.1, "{own}");
        }
    }
    // A call is a task here, and its lever is that of the curve.
    assert_eq!(lines[0]["factor"], mark["load"]);
}

/// As many points as are asked for, or more.
#[test]
fn points_that_are_asked_for() {
    let text = scenario(SLO, "");
    for (asked, options) in [(3, ["--points", "3"]), (25, ["--points", "25"])] {
        let document = curve(&format!("points-{asked}"), &text, &options);
        let points = document["points"].as_array().expect("points").len();
        assert!(points >= asked, "{points} of {asked}");
    }
    let scratch = Scratch::new("points-none");
    let file = scratch.file("s.toml", text);
    for wrong in ["0", "100000", "x"] {
        assert_eq!(run(&["curve", &file, "--points", wrong]).0, 2, "{wrong}");
    }
}

/// Twice the replicas carry about twice as much, a tighter promise less, and one that nobody can keep nothing.
#[test]
fn what_moves_the_line() {
    let options = [];
    let one = curve("one", &scenario(SLO, ""), &options);
    let two = curve("two", &scenario(SLO, "replicas = 2"), &options);
    let ratio = line(&two) / line(&one);
    assert!((ratio / 2.0 - 1.0).abs() < 0.15, "{ratio}");
    let tight = curve("tight", &scenario(r#"ttft = "1s", tpot = "12ms""#, ""), &options);
    assert!(line(&tight) < 0.9 * line(&one), "{} and {}", line(&tight), line(&one));
    assert_eq!(tight["binding"]["first_signal"], "tpot");
    let hopeless = curve("hopeless", &scenario(r#"ttft = "1ms""#, ""), &[]);
    assert!(hopeless["load_line"].is_null() && hopeless["knee"].is_null(), "{hopeless}");
    assert_eq!(hopeless["binding"]["first_signal"], "ttft");
    let notes = hopeless["notes"].to_string();
    assert!(notes.contains("ttft of class `chat` is not kept even where"), "{notes}");
    let lines = hopeless["load_lines"].as_array().expect("lines");
    assert!(lines.iter().all(|own| own["load_line"].is_null()), "{hopeless}");
}

/// Providers have a line, too: what their limits let through.
#[test]
fn a_provider_has_a_line() {
    let rented = r#"
        [study]
        name = "rented"
        as_of = 2026-11-15

        [[class]]
        name = "chat"
        rate = "2 req/s"
        prompt = { p50 = 600, p95 = 2400, max = 8000 }
        output = { p50 = 120, p95 = 500, max = 2000 }

        [[provider]]
        name = "hosted"
        provider = "openai"
        model = "gpt-4.1"
        rpm = 600
    "#;
    let document = curve("rented", rented, &[]);
    // Ten a second, one in a hundred turned away, and a minute's worth that was there at the beginning.
    let carried = line(&document);
    assert!((8.0..=11.0).contains(&carried), "{document}");
    assert_eq!(document["binding"]["cause"], "provider");
    assert_eq!(document["binding"]["first_signal"], "errors");
    assert!(document["points"][0]["goodput_per_device"].is_null());
}

/// What is left out is said: incidents, and replicas that would follow.
#[test]
fn what_a_curve_leaves_out() {
    let (code, document) = json(&["curve", "examples/metastable.toml"]);
    assert_eq!(code, 0);
    check(&document);
    assert!(document["notes"].to_string().contains("incidents are left out"), "{document}");
    let scaled = scenario(SLO, "replicas = { now = 1, plan = [1, 4] }")
        + "\n[autoscaling]\nsignal = \"in-flight\"\ntarget = 16\n";
    let scaled = curve("scaled", &scaled, &[]);
    assert!(scaled["notes"].to_string().contains("autoscaling is left out"), "{scaled}");
}

/// A load test beside the curve; what is no load test is said to be none.
#[test]
fn a_load_test_beside_it() {
    let text = scenario(SLO, "");
    let document = curve("tested", &text, &["--load-test", SWEEP]);
    let tested = document["load_test"].as_array().expect("points");
    assert_eq!(tested.len(), 3);
    for point in tested {
        // In a closed loop as much is offered as is answered; far below its end a fleet answers all.
        assert_eq!(point["offered_per_s"], point["achieved_per_s"]);
        let (was, says) = (number(&point["achieved_per_s"]), number(&point["predicted_per_s"]));
        assert!((was / says - 1.0).abs() < 0.05, "{point}");
    }
    // An open one says what was offered; beyond the points there is nothing to hold it against.
    let scratch = Scratch::new("open");
    let row = |rate: f64, done: f64| {
        format!(
            r#"{{"date": "20261103-090000", "endpoint_type": "openai", "backend": "vllm", "model_id": "m", "tokenizer_id": "m", "num_prompts": 64, "request_rate": {rate}, "burstiness": 1.0, "max_concurrency": null, "duration": 60.0, "completed": 64, "failed": 0, "total_input_tokens": 65536, "total_output_tokens": 16384, "request_throughput": {done}, "output_throughput": 190.0, "total_token_throughput": 900.0, "mean_ttft_ms": 50.0, "median_ttft_ms": 46.0, "p99_ttft_ms": 61.0, "mean_tpot_ms": 4.9, "median_tpot_ms": 4.9, "p99_tpot_ms": 5.1, "mean_itl_ms": 4.9, "median_itl_ms": 4.9, "p99_itl_ms": 6.0}}"#
        )
    };
    let rows = format!("{}\n{}\n", row(4.0, 3.9), row(4000.0, 20.0));
    let open = scratch.file("open.jsonl", rows);
    let document = curve("opened", &text, &["--load-test", &open]);
    let tested = document["load_test"].as_array().expect("points");
    assert_eq!(number(&tested[0]["offered_per_s"]), 4.0);
    assert!((number(&tested[0]["predicted_per_s"]) - 4.0).abs() < 0.2, "{tested:?}");
    assert!(tested[1]["predicted_per_s"].is_null(), "{tested:?}");
    let file = scratch.file("s.toml", &text);
    for (what, bytes) in
        [("text", "time,load\n1,2\n"), ("nothing", ""), ("cut", "{\"date\": \"2026")]
    {
        let bad = scratch.file("bad.json", bytes);
        let (code, failure) = json(&["curve", &file, "--load-test", &bad]);
        assert_eq!(code, 2, "{what}");
        diagnostic(&failure);
        assert!(failure["diagnostics"].to_string().contains("bad.json"), "{what}: {failure}");
    }
    let (code, _) = json(&["curve", &file, "--load-test", "/nowhere.json"]);
    assert_eq!(code, 2);
}

/// The load line of a load test is the largest load at which every promise is kept at its 99th percentile, as at every smaller one; the `[[line]]` that is printed plans with it.
#[test]
fn a_load_test_has_a_load_line() {
    let text = scenario(SLO, "");
    let row = |rate: f64, ttft: f64, tpot: f64| {
        format!(
            r#"{{"date": "20261103-090000", "endpoint_type": "openai", "backend": "vllm", "model_id": "m", "tokenizer_id": "m", "num_prompts": 64, "request_rate": {rate}, "burstiness": 1.0, "max_concurrency": null, "duration": 60.0, "completed": 64, "failed": 0, "total_input_tokens": 65536, "total_output_tokens": 16384, "request_throughput": {rate}, "output_throughput": 190.0, "total_token_throughput": 900.0, "mean_ttft_ms": 50.0, "median_ttft_ms": 46.0, "p99_ttft_ms": {ttft}, "mean_tpot_ms": 4.9, "median_tpot_ms": 4.9, "p99_tpot_ms": {tpot}, "mean_itl_ms": 4.9, "median_itl_ms": 4.9, "p99_itl_ms": 6.0}}"#
        )
    };
    let scratch = Scratch::new("measured-line");
    let line = |name: &str, rows: &[String]| {
        let file = scratch.file(&format!("{name}.jsonl"), rows.join("\n"));
        curve(name, &text, &["--load-test", &file])["measured_line"].clone()
    };
    // In any order; a heavier load that is kept by chance is none.
    let rows = [row(8.0, 90.0, 9.0), row(2.0, 60.0, 6.0), row(4.0, 70.0, 7.0)];
    let kept = line("kept", &rows);
    assert_eq!((number(&kept["carries_per_s"]), kept["fails_per_s"].is_null()), (8.0, true));
    let rows = [row(2.0, 60.0, 6.0), row(4.0, 9e5, 7.0), row(8.0, 90.0, 9.0)];
    let broken = line("broken", &rows);
    assert_eq!((number(&broken["carries_per_s"]), number(&broken["fails_per_s"])), (2.0, 4.0));
    assert!(line("none", &[row(2.0, 60.0, 9e5)]).is_null());
    // What is printed can be pasted.
    let paste = broken["paste"].as_str().expect("a line to paste");
    let file = scratch.file("pasted.toml", format!("{text}\n{paste}\n"));
    let (code, checked) = json(&["check", &file]);
    assert_eq!(code, 0, "{checked}");
}

/// What cannot be drawn is said, and nothing hangs.
#[test]
fn bad_questions_get_answers() {
    let file = "examples/support-bot.toml";
    for (options, word) in [
        (&["--hour", "8..10"][..], "one hour"),
        (&["--hour", "all"][..], "one hour"),
        (&["--hour", "9000"][..], "no hour 9000"),
        (&["--hour", "launch"][..], "no event"),
        (&["--pool", "nobody"][..], "no pool `nobody`"),
    ] {
        let (code, failure) = json(&[&["curve", file], options].concat());
        assert_eq!(code, 2, "{options:?}");
        let (message, help) = diagnostic(&failure);
        assert!(message.contains(word) && !help.is_empty(), "{message}: {help}");
    }
    let (code, failure) = json(&["curve", "/nowhere.toml"]);
    assert_eq!((code, &failure["diagnostics"][0]["code"]), (2, &"unreadable-file".into()));
    // Out of time: what was learnt is said.
    let (code, early) = json(&["curve", "examples/launch-week.toml", "--time-limit", "300ms"]);
    assert_eq!(code, 0);
    assert!(early["notes"].to_string().contains("--time-limit"), "{}", early["notes"]);
}

#[test]
fn the_screen() {
    let scratch = Scratch::new("curve-screen");
    let file = scratch.file("s.toml", scenario(SLO, ""));
    let (code, screen) = run(&["curve", &file, "--load-test", SWEEP]);
    assert_eq!(code, 0);
    assert!(screen.contains("UNSAFE"), "{screen}");
    insta::assert_snapshot!("curve", screen);
}

/// Five times the rate for two minutes in half an hour. The load line is right on seeds that the curve has not seen, for hours: no more than the hundredth and a quarter of it
/// that may fail does at the line, and more than that at half as much again.
#[test]
fn bursts_are_seen() {
    let scratch = Scratch::new("curve-bursts");
    let burst =
        "rate = \"3 req/s\"\n        burst = { times = 5, lasts = \"2m\", every = \"30m\" }";
    let text = scenario(SLO, "").replace("rate = \"3 req/s\"", burst);
    let file = scratch.file("s.toml", text);
    let (code, document) = json(&["curve", &file, "--points", "3"]);
    assert_eq!(code, 0);
    let line = number(&document["load_line"]["load"]);
    // A calm hour would carry about four times as much.
    assert!((0.5..2.0).contains(&line), "{line}");
    let missed = |load: f64| {
        let load = load.to_string();
        let long = ["--runs", "10", "--duration", "2h", "--seed", "4242", "--no-failures"];
        let (_, seen) = json(&[&["simulate", &file, "--load", &load][..], &long].concat());
        1.0 - number(&seen["classes"][0]["attainment"])
    };
    assert!(missed(line) <= 0.0125, "{} at {line}", missed(line));
    assert!(missed(1.5 * line) > 0.0125, "{} at {}", missed(1.5 * line), 1.5 * line);
    // Which bursts come is the same at every load, so twice the load is twice the requests.
    let points = document["points"].as_array().expect("points");
    for point in points {
        let rate = number(&point["offered_per_s"]) / number(&point["load"]);
        assert!((rate / 3.0 - 1.0).abs() < 0.3, "{point}");
    }
}
