//! Published measurements as read: a file written by us in the shape of the real one, and mistakes in it.

use plimsoll_evidence::{Cases, cases, performance_cases};
use plimsoll_study::{Latency, Load, Metric, PerformanceCase};

/// Five cases, one of each load; the fuzzers begin with the same file.
const FIVE: &str = include_str!("../../../../fuzz/corpus/performance_cases/five.json");

fn five() -> Vec<PerformanceCase> {
    performance_cases(FIVE).unwrap_or_else(|e| panic!("{e}"))
}

/// Milliseconds become seconds, a counted length goes before one that was asked for, and what is absent or null is absent.
#[test]
fn a_case_in_full() {
    let one = &five()[0];
    assert_eq!((one.id.as_str(), one.source.as_str()), ("one", "ours"));
    let inputs = &one.inputs;
    assert_eq!((inputs.engine.as_str(), inputs.version.as_deref()), ("vLLM", Some("0.24.0")));
    assert_eq!((inputs.arch.as_str(), inputs.accelerator.as_str()), ("llama-3-8b", "H200-SXM"));
    assert_eq!((inputs.precision.as_deref(), inputs.kv_precision.as_deref()), (Some("bf16"), None));
    assert_eq!((inputs.devices, inputs.tensor), (1, Some(1)));
    // Degrees that nobody wrote down are one; tensor parallelism is not guessed.
    assert_eq!((inputs.pipeline, inputs.expert, inputs.attention_replicas), (1, 1, 1));
    assert_eq!(five()[2].inputs.tensor, None);
    assert_eq!((inputs.prompt, inputs.output), (Some(1000.0), Some(180.5)));
    let seen = &one.observed;
    assert_eq!(seen.ttft, Latency { mean: Some(0.025), p50: None, p99: Some(0.0605) });
    assert_eq!(seen.tpot, Latency { mean: None, p50: Some(0.0075), p99: None });
    assert_eq!((seen.itl, seen.output_tokens_per_s), (Latency::default(), Some(2100.0)));
    assert!(one.is_tagged("prefix_cache_on") && !one.is_tagged("prefix_cache"));
    let two = &five()[1].inputs;
    assert_eq!((two.pipeline, two.expert, two.attention_replicas, two.devices), (2, 8, 4, 16));
    assert_eq!((two.version.as_deref(), two.kv_precision.as_deref()), (None, Some("fp8")));
}

/// Five words for a load. The measured batch of a full queue goes before the limit that was asked for.
#[test]
fn loads() {
    let loads: Vec<(Load, bool)> =
        five().iter().map(|c| (c.inputs.load, c.inputs.saturated)).collect();
    let expected = [
        (Load::Concurrency(16.0), false),
        (Load::Rate(2.5), false),
        (Load::AllAtOnce, false),
        (Load::StaticBatch(32.0), false),
        (Load::Concurrency(201.5), true),
    ];
    assert_eq!(loads, expected);
}

/// What a prediction is held against: the gap of a serving run, the throughput of a batch, the first token, where it is not too good to be true.
#[test]
fn targets() {
    let targets = |i: usize| -> Vec<(Metric, f64, bool, bool)> {
        let of = five()[i].targets();
        of.iter().map(|t| (t.metric, t.measured, t.median_gap, t.scored)).collect()
    };
    // A prefix cache spoils the first token, not the gap.
    assert_eq!(
        targets(0),
        [(Metric::Tpot, 0.0075, false, true), (Metric::Ttft, 0.025, false, false)]
    );
    assert_eq!(targets(1), [(Metric::Tpot, 0.04, true, true)]);
    assert_eq!(targets(2), [(Metric::OutputRate, 20_000.0, false, true)]);
    assert!(targets(3).is_empty() && targets(4).is_empty());
}

/// A file of either kind of cases is known by its schema.
#[test]
fn known_by_its_schema() {
    match cases(FIVE) {
        Ok(Cases::Performance(read)) => assert_eq!(read, five()),
        other => panic!("{other:?}"),
    }
    let other = r#"{"schema":"plimsoll.perf_cases.v2","cases":[]}"#;
    assert_eq!(
        cases(other).unwrap_err().to_string(),
        "this is no file of validation cases: it says neither `plimsoll-kv-cases/1` nor `plimsoll.perf_cases.v1` as its schema"
    );
}

/// The first case with one line changed, and what is said of it.
#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    assert!(FIVE.contains(from), "`{from}` is not in the file");
    let error = performance_cases(&FIVE.replacen(from, to, 1)).expect_err("a mistake");
    assert_eq!(error.to_string(), expected);
}

/// Every mistake says which case, which field and what is wrong with it.
#[test]
fn mistakes() {
    let no_cases = "this is no file of validation cases: ";
    check(
        "\"plimsoll.perf_cases.v1\"",
        "1",
        &format!("{no_cases}its `schema` is not `plimsoll.perf_cases.v1`"),
    );
    check("\"cases\": [", "\"rows\": [", &format!("{no_cases}it has no list `cases`"));
    check("\"cases\": [", "\"cases\": [7,", &format!("{no_cases}a case is not an object"));
    check("\"id\": \"one\", ", "", "case 0: `id` is missing");
    check("\"id\": \"one\"", "\"id\": 1", "case 0: `id` must be text");
    for field in ["source", "engine", "model", "arch", "gpu", "workload", "load"] {
        check(
            &format!("\"{field}\": "),
            &format!("\"{field}\": null, \"not\": "),
            &format!("case 0 (one): `{field}` is missing"),
        );
    }
    check("\"n_gpu\": 1, ", "", "case 0 (one): `n_gpu` is missing");
    for wrong in ["0", "-1", "1.5", "4097", "\"8\""] {
        check(
            "\"tp\": 1",
            &format!("\"tp\": {wrong}"),
            "case 0 (one): `tp` must be a whole number from 1 to 4096",
        );
    }
    for wrong in ["0", "-1000", "1e-320", "1e13", "\"long\"", "[1000]"] {
        check(
            "\"isl\": 1000",
            &format!("\"isl\": {wrong}"),
            &format!(
                "case 0 (one): `isl` must be a number above zero, up to 10^12; it is {}",
                wrong.replace("1e13", "10000000000000.0")
            ),
        );
    }
    check(
        "\"ttft_ms_mean\": 25",
        "\"ttft_ms_mean\": -25",
        "case 0 (one): `ttft_ms_mean` must be a number above zero, up to 10^12; it is -25",
    );
    check(
        "\"tags\": [\"stat_unspecified\", \"prefix_cache_on:0.3\"]",
        "\"tags\": \"none\"",
        "case 0 (one): `tags` must be a list",
    );
    check(
        "\"load\": \"concurrency\"",
        "\"load\": \"steady\"",
        "case 0 (one): `load` `steady` is not one of concurrency, request_rate, max_throughput, static_batch, saturated_max_num_seqs",
    );
    check(
        ", \"concurrency\": 16",
        "",
        "case 0 (one): `concurrency` is missing, and the load is `concurrency`",
    );
    check(
        ", \"request_rate\": 2.5",
        "",
        "case 1 (two): `request_rate` is missing, and the load is `request_rate`",
    );
}

/// A file that was cut says where it ends.
#[test]
fn a_cut_file() {
    let error =
        performance_cases(r#"{"schema":"plimsoll.perf_cases.v1","cases":[{"id":"x""#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this is not JSON: EOF while parsing an object (line 1, column 53)"
    );
    for end in (0..FIVE.trim_end().len()).filter(|end| FIVE.is_char_boundary(*end)) {
        let said = performance_cases(&FIVE[..end]).unwrap_err().to_string();
        assert!(said.starts_with("this is not JSON: EOF while parsing"), "cut at {end}: {said}");
    }
}
