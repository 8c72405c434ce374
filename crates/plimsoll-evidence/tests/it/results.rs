//! Results of benchmark tools, as read: files written by us in the tools' shapes, mistakes in them, and real ones.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_evidence::{Results, results};
use plimsoll_study::{BenchPoint, Latency, Length, Load};

fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All that was read, a line a fact; five digits are enough to see a wrong unit.
fn show(results: &Results) -> String {
    let mut out = format!("{}\n", results.tool);
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.5}"));
    let latency = |l: &Latency| format!("{} {} {}", number(l.mean), number(l.p50), number(l.p99));
    let length = |l: Option<Length>| {
        l.map_or("-".to_owned(), |l| {
            format!("{:.2}{}", l.mean, if l.counted { "" } else { " asked" })
        })
    };
    let count = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    for p in &results.points {
        let says: Vec<String> = p.says.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let _ = write!(
            out,
            "row {}: {:?}\n  prompt {} output {} completed {} failed {} duration {}\n  ttft {}\n  tpot {}\n  itl  {}\n  e2e  {}\n  tokens/s {} requests/s {} in flight {} cached {} accepted {}\n  says {}\n",
            p.origin.row,
            p.load,
            length(p.prompt),
            length(p.output),
            count(p.completed),
            count(p.failed),
            number(p.duration_s),
            latency(&p.ttft),
            latency(&p.tpot),
            latency(&p.itl),
            latency(&p.e2e),
            number(p.output_tokens_per_s),
            number(p.requests_per_s),
            number(p.in_flight_mean),
            number(p.cached_share),
            number(p.accepted_per_step),
            says.join(", "),
        );
    }
    for run in &results.runs {
        let _ = writeln!(out, "{run:#?}");
    }
    for flag in &results.flags {
        let word = if flag.rejects { "rejects" } else { "notes" };
        let _ = writeln!(
            out,
            "row {} {word} {} ({}): {}",
            flag.origin.row, flag.code, flag.field, flag.message
        );
    }
    out
}

#[test]
fn every_tool_is_read() {
    for name in [
        "vllm/old_detailed.json",
        "vllm/new_sweep.jsonl",
        "vllm/list.json",
        "sglang/old.jsonl",
        "sglang/new.jsonl",
        "guidellm/v0_2.json",
        "guidellm/v2.json",
        "aiperf/profile.json",
        "aiperf/profile.csv",
        "genai_perf/profile.json",
        "genai_perf/profile.csv",
        "inference_perf/stage_lifecycle.json",
        "inference_perf/summary_lifecycle.json",
        "inference_perf/stage_prometheus.json",
        "mlperf/server.txt",
        "mlperf/offline_invalid.txt",
        "engine_run/two.jsonl",
    ] {
        let read = results(name, &golden(name)).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
        insta::assert_snapshot!(name.replace(['/', '.'], "_"), show(&read));
    }
}

/// A tool's table has a line end of its machine, and a byte order mark of its editor.
#[test]
fn line_ends_do_not_matter() {
    for name in
        ["aiperf/profile.csv", "genai_perf/profile.csv", "mlperf/server.txt", "sglang/old.jsonl"]
    {
        let text = golden(name).replace("\r\n", "\n");
        let unix = results(name, &text).unwrap();
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(results(name, &windows).unwrap(), unix, "{name}");
    }
}

fn messages(file: &str, text: &str) -> String {
    match results(file, text) {
        Ok(read) => format!("read: {} points, {} runs", read.points.len(), read.runs.len()),
        Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

/// Each row: a good file, what is changed in it, and what is said then.
#[test]
fn mistakes_name_file_row_field_and_value() {
    let vllm = "vllm/new_sweep.jsonl";
    let sglang = "sglang/new.jsonl";
    let stage = "inference_perf/stage_lifecycle.json";
    let mut wrong = Vec::new();
    for (name, from, to, expect) in [
        (
            vllm,
            r#""mean_ttft_ms": 45"#,
            r#""mean_ttft_ms": 0"#,
            "f, row 2: `mean_ttft_ms` must be above zero; it is 0",
        ),
        (
            vllm,
            r#""mean_ttft_ms": 45"#,
            r#""mean_ttft_ms": -4"#,
            "f, row 2: `mean_ttft_ms` must be above zero; it is -4",
        ),
        (
            vllm,
            r#""mean_tpot_ms": 12.5"#,
            r#""mean_tpot_ms": "fast""#,
            "f, row 3: `mean_tpot_ms` must be a number; it is `fast`",
        ),
        (
            vllm,
            r#""mean_tpot_ms": 12.5"#,
            r#""mean_tpot_ms": NaN"#,
            "f, row 3: `mean_tpot_ms` must be a number; it is NaN",
        ),
        (
            vllm,
            r#""mean_tpot_ms": 12.5"#,
            r#""mean_tpot_ms": Infinity"#,
            "f, row 3: `mean_tpot_ms` must be a number; it is infinite",
        ),
        (
            vllm,
            r#""mean_tpot_ms": 12.5"#,
            r#""mean_tpot_ms": 1e300"#,
            "f, row 3: `mean_tpot_ms` must be at most 1e10; it is 1e+300",
        ),
        (
            vllm,
            r#""completed": 160"#,
            r#""completed": 0"#,
            "f, row 2: `completed` is 0: no request was answered, so nothing was measured",
        ),
        (
            vllm,
            r#""completed": 160"#,
            r#""completed": 1.5"#,
            "f, row 2: `completed` must be a whole number; it is 1.5",
        ),
        (vllm, r#""completed": 160, "#, "", "f, row 2: `completed` is missing"),
        (
            vllm,
            r#""total_output_tokens": 20640"#,
            r#""total_output_tokens": 0"#,
            "f, row 2: `total_output_tokens` must be above zero; it is 0",
        ),
        (
            vllm,
            r#""request_rate": "inf""#,
            r#""request_rate": "soon""#,
            "f, row 1: `request_rate` must be a number; it is `soon`",
        ),
        (
            vllm,
            r#""max_concurrency": 8"#,
            r#""max_concurrency": 0"#,
            "f, row 2: `max_concurrency` must be above zero; it is 0",
        ),
        (
            vllm,
            r#""median_tpot_ms": 8.73"#,
            r#""median_tpot_ms": 28.73"#,
            "f, row 2: `median_tpot_ms` is 28.73, above `p99_tpot_ms` (11.7)",
        ),
        // Seconds where milliseconds belong.
        (
            vllm,
            r#""mean_e2el_ms": 1197"#,
            r#""mean_e2el_ms": 1.197"#,
            "f, row 2: `mean_e2el_ms` is 1.197, but `mean_ttft_ms` is 45: a request cannot end before its first token; it looks like seconds in a field of milliseconds",
        ),
        (
            vllm,
            r#""mean_tpot_ms": 9"#,
            r#""mean_tpot_ms": 0.009"#,
            "f, row 2: `mean_tpot_ms` is 0.009: no engine makes a token in 9.0 µs; it looks like seconds in a field of milliseconds",
        ),
        (
            vllm,
            r#""mean_ttft_ms": 45"#,
            r#""mean_ttft_ms": 0.045"#,
            "f, row 2: `mean_ttft_ms` is 0.045, but `mean_tpot_ms` is 9: a first token takes a whole step; it looks like seconds in a field of milliseconds",
        ),
        (
            vllm,
            r#""request_throughput": 6.6834"#,
            r#""request_throughput": 0.0066834"#,
            "f, row 2: `mean_e2el_ms` is 1197: by its latencies a request lasts 1.197 s, by 8 in flight at 0.007 requests/s it lasts 1196.996 s: latencies, lengths or load are not what they say; it looks like seconds in a field of milliseconds",
        ),
        (
            vllm,
            "sweep-c8\"",
            "sweep-c8",
            "f: this is not JSON: expected `,` or `}` (line 2, column 98)",
        ),
        (
            sglang,
            "\"request_rate\": 4.0",
            "\"request_rate\": \"trace\"",
            "f, row 1: `request_rate` must be a number; it is `trace`",
        ),
        (
            stage,
            "\"requested_rate\": 20.0",
            "\"requested_rate\": -20.0",
            "f, row 1: `load_summary.requested_rate` must be above zero; it is -20.0",
        ),
        (
            stage,
            "\"count\": 1200",
            "\"count\": 0",
            "f, row 1: `successes.count` is 0: no request was answered, so nothing was measured",
        ),
        (
            "guidellm/v2.json",
            "\"type_\": \"poisson\"",
            "\"type_\": \"waves\"",
            "f, row 2: `config.strategy.type_` is `waves`, a strategy that is not known",
        ),
        (
            "guidellm/v2.json",
            "\"streams\": 4",
            "\"streams\": null",
            "f, row 1: `config.strategy.streams` is missing",
        ),
        (
            "guidellm/v2.json",
            "\"successful\": 95",
            "\"good\": 95",
            "f, row 1: `metrics.request_totals.successful` is missing",
        ),
        (
            "aiperf/profile.json",
            "\"unit\": \"ms\"",
            "\"unit\": \"fortnights\"",
            "f, row 1: `request_latency.unit` is `fortnights`, which is no unit of time that is known",
        ),
        (
            "genai_perf/profile.csv",
            "Request Throughput",
            "Requests",
            "f, row 1: `input_config` is missing or states no load: a file without its load must hold `request_latency` and `request_throughput`",
        ),
        (
            "genai_perf/profile.csv",
            "19.90",
            "n/a",
            "f, row 1: `inter_token_latency.p50` must be a number; it is `n/a`",
        ),
        (
            "mlperf/server.txt",
            "Scenario : Server",
            "Scenario : MultiStream",
            "f, row 1: `scenario` is `MultiStream`, whose load is not known",
        ),
        (
            "mlperf/server.txt",
            "target_qps : 25",
            "target_qps : many",
            "f, row 1: `target_qps` must be a number; it is `many`",
        ),
        (
            "engine_run/two.jsonl",
            "\"cached\": 16",
            "\"cached\": 33",
            "f, row 1: `requests.1.cached` is 33, more than the prompt of 32",
        ),
        (
            "engine_run/two.jsonl",
            "\"kv\": 0.002",
            "\"kv\": 1.5",
            "f, row 2: `steps.0.kv` must be at most 1e0; it is 1.5",
        ),
        (
            "engine_run/two.jsonl",
            "\"kind\": \"open\"",
            "\"kind\": \"ajar\"",
            "f, row 2: `meta.kind` must be `closed` or `open`",
        ),
        (
            "engine_run/two.jsonl",
            "[8.0, 8.5]",
            "[8.0, 8.5, 8.0]",
            "f, row 1: `requests.1.itl_ms` has 3 gaps between 3 tokens",
        ),
        (
            "engine_run/two.jsonl",
            "\"pick\": [3, 3]",
            "\"gaps_ms\": {\"p50\": 5, \"p95\": -1, \"p99\": 9}, \"pick\": [3, 3]",
            "f, row 1: `meta.gaps_ms.p95` must be at least zero; it is -1",
        ),
        (
            "engine_run/two.jsonl",
            "\"pick\": [3, 3]",
            "\"pick\": [3]",
            "f, row 1: `meta.pick` names 1 groups for 2 requests",
        ),
        (
            "engine_run/two.jsonl",
            "\"prefix_len\": 16, ",
            "",
            "f, row 1: `meta.prefix_len` is missing",
        ),
    ] {
        let text = golden(name);
        assert!(text.contains(from), "{name} has no {from}");
        let got = messages("f", &text.replacen(from, to, 1));
        if got != expect {
            wrong.push(format!("{name}: {from} -> {to}\n   got {got}\nexpect {expect}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_result_is_named() {
    let tools = "results of these tools are read: aiperf, genai-perf, guidellm, inference-perf, mlperf loadgen, \
                 plimsoll engine run, sglang bench_serving, vllm bench serve";
    for (text, expect, help) in [
        ("", "f: no results of a benchmark: it is empty", tools),
        (" \n", "f: no results of a benchmark: it is empty", tools),
        ("[]", "f: no results of a benchmark: it is an empty list", tools),
        ("{}", "f: no results of a benchmark: it is an empty JSON object", tools),
        (
            "{\"a\": 1, \"b\": 2}",
            "f: no results of a benchmark: it is a JSON object with the keys a, b",
            tools,
        ),
        ("[1]", "f: no results of a benchmark: it is the JSON value 1", tools),
        (
            "hello\nworld",
            "f: no results of a benchmark: it is text that begins with `hello`",
            tools,
        ),
        (
            "# a day\n[study]\nname = \"x\"",
            "f: no results of a benchmark: it is a TOML file, such as a scenario",
            "`plimsoll review f` takes a scenario",
        ),
        (
            "{\"meta\": {\"schema\": \"plimsoll-kv-cases/1\"}, \"cases\": []}",
            "f: no results of a benchmark: it is a file of logged KV-cache capacities",
            "`plimsoll validate f` takes it",
        ),
        (
            "{\"schema\": \"plimsoll.perf_cases.v1\", \"cases\": []}",
            "f: no results of a benchmark: it is a file of normalised measurements",
            "`plimsoll validate f` takes it",
        ),
    ] {
        let errors = results("f", text).unwrap_err();
        assert_eq!((errors.len(), errors[0].to_string().as_str()), (1, expect), "{text}");
        assert_eq!(errors[0].help().as_deref(), Some(help), "{text}");
    }
    assert_eq!(
        messages("f", "{\"benchmarks\": []}"),
        "f, row 1: `benchmarks` is empty: the sweep measured nothing"
    );
}

/// Nothing of a file is believed while some of it is wrong, and all of it is said at once.
#[test]
fn all_mistakes_at_once() {
    let text = golden("vllm/new_sweep.jsonl")
        .replace("\"mean_ttft_ms\": 30", "\"mean_ttft_ms\": -1")
        .replace("\"median_itl_ms\"", "\"median_itl_ms\": \"?\", \"x\"");
    let errors = results("f", &(text + "{\"a\": 1}\n[")).unwrap_err();
    insta::assert_snapshot!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
}

/// A truncated file of any tool is refused, wherever it was cut.
#[test]
fn cut_files_are_refused() {
    for name in [
        "vllm/list.json",
        "guidellm/v2.json",
        "aiperf/profile.json",
        "inference_perf/stage_lifecycle.json",
    ] {
        let text = golden(name);
        let text = text.trim_end();
        for cut in (1..text.len()).step_by(97) {
            let errors = results("f", &text[..cut]).unwrap_err();
            let message = errors[0].to_string();
            assert!(
                message.starts_with("f: this is not JSON: EOF"),
                "{name} cut at {cut}: {message}"
            );
        }
    }
}

/// A sweep of vLLM's shape: load and TPOT in milliseconds a point.
fn sweep(points: &[(f64, f64)]) -> String {
    let line = |(clients, tpot): &(f64, f64)| {
        format!(
            r#"{{"model_id":"m","request_rate":"inf","max_concurrency":{clients},"completed":100,"duration":1000,"total_input_tokens":10000,"total_output_tokens":10000,"mean_tpot_ms":{tpot}}}"#
        )
    };
    points.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_that_does_not_fit_its_sweep_is_left_out() {
    let check = |points: &[(f64, f64)], code: &str, expect: &[usize]| {
        let read = results("f", &sweep(points)).unwrap();
        let rows: Vec<usize> =
            read.flags.iter().filter(|f| f.code == code).map(|f| f.origin.row).collect();
        assert_eq!(rows, expect, "{points:?}: {:?}", read.flags);
    };
    let falls = "tpot-falls";
    check(&[(1.0, 8.0), (8.0, 9.0), (16.0, 11.0), (32.0, 16.0)], falls, &[]);
    // A failed run inside a sweep.
    check(&[(4.0, 10.0), (8.0, 12.3), (16.0, 64.0), (32.0, 22.5)], falls, &[3]);
    // The same, in another order.
    check(&[(32.0, 22.5), (16.0, 64.0), (8.0, 12.3), (4.0, 10.0)], falls, &[2]);
    // A cold start at the lowest load.
    check(&[(1.0, 64.0), (8.0, 12.0), (16.0, 13.0)], falls, &[1]);
    // The last one alone is low.
    check(&[(1.0, 10.0), (8.0, 20.0), (16.0, 22.0), (32.0, 9.0)], falls, &[4]);
    check(&[(1.0, 20.0), (8.0, 10.0)], falls, &[2]);
    check(&[(1.0, 8.0), (8.0, 9.0), (8.0, 9.5)], "contradictory-repeats", &[]);
    check(&[(1.0, 8.0), (8.0, 9.0), (8.0, 13.0)], "contradictory-repeats", &[2, 3]);
}

/// `../shared`, where measurements lie that are not ours to ship.
fn shared(name: &str) -> Option<String> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("PLIMSOLL_SHARED").map_or(beside, PathBuf::from);
    if !root.is_dir() {
        // Past the test harness, which would hide it: a skipped test must be seen.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no {name} at {} (set PLIMSOLL_SHARED)",
            root.display()
        );
        return None;
    }
    let bytes =
        std::fs::read(root.join("data").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut text = String::new();
    if name.ends_with(".gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
    } else {
        text = String::from_utf8(bytes).expect("text");
    }
    Some(text)
}

fn near(got: Option<f64>, expect: f64) -> bool {
    got.is_some_and(|got| (got / expect - 1.0).abs() < 1e-9)
}

/// Real files of every tool: how many points, and numbers looked up in the files by hand.
#[test]
fn real_files() {
    type Check = fn(&[BenchPoint]) -> bool;
    let rows: [(&str, &str, usize, &[&str], Check); 12] = [
        (
            "vllm_bench_serve/benchmark_serving_2025-04_detailed_trimmed.json",
            "vllm bench serve",
            1,
            &[],
            |p| {
                p[0].load == Load::Rate(1.0)
                && near(p[0].prompt.map(|l| l.mean), 42659.0 / 200.0)
                && near(p[0].tpot.mean, 0.024564414268982127)
                && near(p[0].ttft.p99, 0.14380068917976584)
                // The arrays were cut, so nothing is taken from them.
                && p[0].e2e == Latency::default()
            },
        ),
        (
            "vllm_bench_serve/benchmark_serving_2025-05_append_result.jsonl",
            "vllm bench serve",
            9,
            &["lengths-nominal", "several-replicas"],
            |p| {
                p[2].load == Load::AllAtOnce
                    && p[8].completed == Some(900)
                    && near(p[8].tpot.mean, 0.0450189959701786)
                    && near(p[1].output.map(|l| l.mean), 237_873.0 / 900.0)
                    && p[0].says.contains(&("gpu".into(), "4xNVIDIA_L40S".into()))
            },
        ),
        (
            "sglang_bench_serving/online_2025-01.jsonl",
            "sglang bench_serving",
            7,
            &["lengths-nominal", "too-short"],
            |p| {
                p[4].load == Load::Rate(16.0)
                    && near(p[4].e2e.mean, 149.03725147111146)
                    && near(p[0].itl.p50, 0.013638956006616354)
            },
        ),
        ("sglang_bench_serving/offline_inf_2025-01.jsonl", "sglang bench_serving", 1, &[], |p| {
            p[0].load == Load::AllAtOnce && near(p[0].output.map(|l| l.mean), 512.0)
        }),
        ("sglang_bench_serving/online_newer_fields.jsonl", "sglang bench_serving", 1, &[], |p| {
            p[0].load == Load::Rate(5.0)
                && near(p[0].in_flight_mean, 11.780263008980727)
                && near(p[0].e2e.p99, 9.81389673267491)
        }),
        ("guidellm/benchmarks_v0.2_sweep_stripped.json", "guidellm", 1, &[], |p| {
            p[0].load == Load::Concurrency(1.0)
                && p[0].completed == Some(46)
                && near(p[0].e2e.mean, 0.6444743664368339)
                && near(p[0].tpot.mean, 0.004941609043733832)
        }),
        (
            "guidellm/report_v2_0.8.0dev_mock_server.json",
            "guidellm",
            2,
            &["lengths-nominal", "prefix-cache", "too-short"],
            |p| {
                p[0].load == Load::Rate(2.0)
                    && p[1].load == Load::Rate(4.0)
                    && near(p[1].ttft.mean, 0.00978386402130127)
            },
        ),
        ("aiperf/profile_export_aiperf.json", "aiperf", 1, &[], |p| {
            p[0].load == Load::Concurrency(8.0)
                && near(p[0].tpot.mean, 0.009133624509566419)
                && near(p[0].itl.p99, 0.06895747911627528)
                && p[0].failed == Some(0)
        }),
        ("aiperf/profile_export_aiperf.csv", "aiperf", 1, &["load-inferred"], |p| {
            p[0].completed == Some(96)
                && near(p[0].e2e.mean, 2.23809)
                && near(p[0].in_flight_mean, 3.45 * 2.23809)
        }),
        ("genai_perf/profile_export_genai_perf.csv", "genai-perf", 1, &["load-inferred"], |p| {
            near(p[0].prompt.map(|l| l.mean), 3000.05)
                && near(p[0].ttft.mean, 1.14631)
                && near(p[0].tpot.mean, 0.03035)
        }),
        (
            "inference_perf/stage_1_lifecycle_metrics.json",
            "inference-perf",
            1,
            &["tpot-recomputed"],
            |p| {
                p[0].load == Load::Rate(31.4)
                    && near(
                        p[0].tpot.mean,
                        (0.5467452551630615 - 0.02983692160898013) / (62.36411889596603 - 1.0),
                    )
                    && p[0].itl == Latency::default()
            },
        ),
        (
            "inference_perf/stage_1_prometheus_metrics.json",
            "inference-perf",
            1,
            &["histogram-percentiles", "lengths-from-rates", "load-inferred"],
            |p| near(p[0].tpot.mean, 0.008498) && near(p[0].in_flight_mean, 51.537612 * 0.550536),
        ),
    ];
    for (name, tool, points, codes, check) in rows {
        let Some(text) = shared(&format!("perf/samples/{name}")) else { return };
        let read = results(name, &text).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
        assert_eq!((read.tool, read.points.len()), (tool, points), "{name}");
        assert!(check(&read.points), "{name}: {:#?}", read.points);
        let mut got: Vec<&str> = read.flags.iter().map(|f| f.code).collect();
        got.sort_unstable();
        got.dedup();
        assert_eq!(got, codes, "{name}: {:#?}", read.flags);
    }
    let name = "perf/samples/inference_perf/quantized_stage_3_lifecycle_metrics.json";
    let read = results(name, &shared(name).unwrap_or_default()).expect(name);
    assert_eq!(read.points[0].load, Load::Rate(127.93));
}

/// Runs, requests and steps of each step log, counted apart; and one request as its file has it.
#[test]
fn real_step_logs() {
    for (name, runs, requests, steps) in [
        ("llama31_8b", 18, 3180, 19941),
        ("llama31_8b_b8192", 2, 59, 4614),
        ("llama31_8b_kv64k", 2, 818, 6556),
        ("qwen3_30b_a3b", 5, 764, 4615),
    ] {
        let Some(text) = shared(&format!("vllm_h200/{name}.jsonl.gz")) else { return };
        let read = results(name, &text).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
        let count =
            |f: fn(&plimsoll_study::EngineRun) -> usize| read.runs.iter().map(f).sum::<usize>();
        let got = (read.runs.len(), count(|r| r.requests.len()), count(|r| r.steps.len()));
        assert_eq!(got, (runs, requests, steps), "{name}");
        assert!(read.points.is_empty() && read.flags.is_empty());
        if name == "llama31_8b" {
            let run = &read.runs[3];
            assert_eq!(
                (run.run.as_str(), run.clients, run.setup.kv_tokens),
                ("prefill-1024", Some(1), 903_968)
            );
            assert_eq!(
                (run.requests[0].ttft, run.requests[0].e2e, run.requests[1].at),
                (0.02706, 0.03194, 0.03362)
            );
            assert!(read.runs.iter().any(|run| run.clients.is_none()));
        }
    }
}
