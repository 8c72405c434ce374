//! `calibrate` and `validate` as a shell sees them, with the bars they are held to.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::{Scratch, plimsoll, repository, text};
use serde_json::Value;

fn json(args: &[&str]) -> (i32, Value) {
    let mut all = vec!["--json", "--as-of", "2026-11-15"];
    all.extend(args);
    let output = plimsoll(&all);
    let stdout = text(&output.stdout);
    let document =
        serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{all:?}: {e}\n{stdout}"));
    (output.status.code().expect("an exit code"), document)
}

const LOG: &str = "validation/vllm_h200/llama31_8b.jsonl.gz";

fn group<'a>(document: &'a Value, list: &str, name: &str) -> &'a Value {
    let groups = document[list].as_array().unwrap_or_else(|| panic!("no {list}"));
    groups.iter().find(|g| g["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// What `calibrate` says of the closed loops of the log, and the calibration that it writes: fitted once a process.
fn closed_loops() -> &'static (Value, String) {
    static FITTED: OnceLock<(Value, String)> = OnceLock::new();
    FITTED.get_or_init(|| {
        let scratch = Scratch::new("closed-loops");
        let into = scratch.path("h200.json");
        let (code, document) =
            json(&["calibrate", LOG, "--runs", "prefill-*,closed-*", "--into", &into]);
        assert_eq!(code, 0, "{document}");
        (document, std::fs::read_to_string(&into).expect("written"))
    })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The bars: decode steps within 4% (median) and 10% (p90) of a real engine, by a fit that has not seen the run; prefill of 512 tokens and
/// more within 5%; and what the fit was never given, the open loops, nearly as well.
#[test]
fn a_step_log_calibrates_within_its_bars() {
    let (document, written) = closed_loops();
    assert_eq!(document["schema"], "plimsoll/calibrate/v1");
    for list in ["left_out", "fitted"] {
        for name in ["decode steps", "decode steps as seen"] {
            let steps = group(document, list, name);
            assert!(number(&steps["median_abs_pct"]) <= 4.0, "{list}: {steps}");
            assert!(number(&steps["p90_abs_pct"]) <= 10.0, "{list}: {steps}");
        }
    }
    for run in document["points"].as_array().expect("points") {
        let name = run["name"].as_str().expect("a name");
        if let Some(tokens) = name.strip_prefix("prefill-").and_then(|n| n.parse::<u64>().ok())
            && tokens >= 512
        {
            assert!(number(&run["fitted_error_pct"]) <= 5.0, "{run}");
            assert!(number(&run["left_out_error_pct"]) <= 5.0, "{run}");
        }
        assert_eq!(run["lost_steps"], 0, "the plain engine disagrees with the log: {run}");
    }
    let open = group(document, "held_out", "decode steps");
    assert!(
        number(&open["median_abs_pct"]) <= 4.0 && number(&open["p90_abs_pct"]) <= 10.0,
        "{open}"
    );
    // What the data cannot speak of stays built in, and says so; shares stay shares; intervals hold their values.
    for coefficient in document["coefficients"].as_array().expect("coefficients") {
        let (value, interval) = (number(&coefficient["value"]), &coefficient["interval"]);
        assert!(
            number(&interval["low"]) <= value && value <= number(&interval["high"]),
            "{coefficient}"
        );
        assert!(coefficient["unit"] != "of peak" || value <= 1.0, "{coefficient}");
        let moved = (value / number(&coefficient["prior"])).ln().abs() > 0.5;
        assert!(!moved || coefficient["provenance"] == "calibrated", "{coefficient}");
    }
    let written: Value = serde_json::from_str(written).expect("JSON");
    assert_eq!(written["schema"], "plimsoll/calibration/v1");
    assert_eq!(written["setup"]["model"], "llama-3.1-8b");
    assert_eq!(written["coefficients"], document["coefficients"]);
}

/// The bars of open loops, calibrated on closed ones of one token budget: throughput and mean gap within 3% at every load and at other budgets, gaps at
/// the 50th and 95th percentile within 10%, first tokens within 10% below the knee and 20% beyond it; cached tokens within 10%, preemptions within 30%. Known to miss:
/// first tokens of the run whose cache is too small, where a queue stands and 1.6% of throughput are 30% of waiting, and two tails of gaps.
#[test]
fn closed_loops_predict_open_ones() {
    let scratch = Scratch::new("open");
    let into = scratch.file("h200.json", &closed_loops().1);
    let mut seen = 0;
    for file in ["llama31_8b", "llama31_8b_b8192", "llama31_8b_kv64k"] {
        let log = format!("validation/vllm_h200/{file}.jsonl.gz");
        let (code, document) = json(&["validate", &log, "--calibration", &into]);
        assert_eq!(code, 0, "{document}");
        let runs = document["runs"].as_array().expect("runs");
        let name = |r: &Value| r["run"].as_str().unwrap_or_default().to_owned();
        let open = |r: &&Value| name(r).starts_with("poisson") || name(r).starts_with("prefix");
        for run in runs.iter().filter(open) {
            let error = |metric: &str| {
                let all = run["metrics"].as_array().expect("metrics");
                let found = all.iter().find(|m| m["name"] == metric);
                number(&found.unwrap_or_else(|| panic!("no {metric}"))["error_pct"]).abs()
            };
            assert!(error("throughput") <= 3.0 && error("itl_mean") <= 3.0, "{run}");
            let first = if run["beyond_knee"] == true { 20.0 } else { 10.0 };
            let first = if name(run).starts_with("prefix") { 30.0 } else { first };
            // Known to miss: where hardly any gap lies near the 95th percentile, and where prompts are read beside long contexts.
            let tail = match name(run).as_str() {
                "poisson-chat-r5" | "prefix-g4-p2048-r15" => 20.0,
                _ => 10.0,
            };
            assert!(error("itl_p50") <= 10.0 && error("itl_p95") <= tail, "{run}");
            assert!(error("ttft_p50") <= first && error("ttft_p95") <= first, "{run}");
            assert!(error("cached_tokens") <= 10.0 && error("preemptions") <= 30.0, "{run}");
            seen += 1;
        }
    }
    assert_eq!(seen, 7);
}

/// Three points: few constants are informed, the rest stay built in, and no more is claimed.
#[test]
fn three_points_do_not_overfit() {
    let scratch = Scratch::new("three");
    let (code, document) = json(&[
        "calibrate",
        "crates/plimsoll/tests/fixtures/sweep.jsonl",
        "--model",
        "llama-3.1-8b",
        "--accelerator",
        "h200",
        "--engine",
        "vllm@0.24",
        "--into",
        &scratch.path("three.json"),
    ]);
    assert_eq!(code, 0, "{document}");
    let coefficients = document["coefficients"].as_array().expect("coefficients");
    let calibrated = coefficients.iter().filter(|c| c["provenance"] == "calibrated").count();
    assert!((1..=6).contains(&calibrated), "{calibrated} constants from six numbers");
    let gaps = group(&document, "fitted", "gap between tokens");
    assert!(gaps["n"] == 3 && number(&gaps["median_abs_pct"]) < 10.0, "{gaps}");
    assert!(document["left_out_error_pct"].is_number());
    assert_eq!(document["region"]["decodes"], serde_json::json!([1.0, 64.0]));
}

/// A scenario's pool that names a calibration gets its floors from it, with its error; one made of another pool is refused.
#[test]
fn a_pool_uses_its_calibration() {
    let scratch = Scratch::new("pool");
    scratch.file("own.json", &closed_loops().1);
    let scenario = |model: &str| {
        format!(
            "[study]\nname = \"one\"\nas_of = 2026-11-15\nstart = 2026-11-16T00:00:00Z\n\n[[class]]\nname = \"chat\"\nprofile = \"chat\"\nrate = \"2/s\"\n\n\
             [[pool]]\nname = \"a\"\nmodel = \"{model}\"\naccelerator = \"H200-SXM\"\nengine = \"vllm@0.24\"\nweights = \"bf16\"\nmax_num_seqs = 8\nreplicas = {{ now = 1 }}\ncalibration = \"own.json\"\n"
        )
    };
    let file = scratch.file("one.toml", scenario("llama-3.1-8b"));
    let (code, review) = json(&["review", &file]);
    assert_eq!(code, 0, "{review}");
    let pool = &review["performance"][0];
    assert_eq!(pool["itl_band"]["provenance"], "calibrated");
    assert!((0.0045..0.0055).contains(&number(&pool["itl_floor_s"])), "{pool}");
    let other = scratch.file("other.toml", scenario("qwen3-8b"));
    let (code, error) = json(&["review", &other]);
    assert_eq!(code, 2);
    let message = error["diagnostics"][0]["message"].as_str().expect("a message");
    assert_eq!(
        message,
        "pool `a`: its calibration is of the model `llama-3.1-8b`, the pool has `qwen3-8b`"
    );
}

/// What cannot be fitted is refused with file, row, field and a way out; nothing is skipped in silence.
#[test]
fn bad_results_are_named() {
    let scratch = Scratch::new("bad");
    let into = scratch.path("out.json");
    let sweep =
        std::fs::read_to_string(repository().join("crates/plimsoll/tests/fixtures/sweep.jsonl"))
            .expect("fixture");
    let first = sweep.lines().next().expect("a line");
    let pool = ["--model", "llama-3.1-8b", "--accelerator", "h200", "--engine", "vllm@0.24"];
    let check = |name: &str, text: &str, expect: &[&str]| {
        let file = scratch.file(name, text);
        let mut args = vec!["calibrate", file.as_str(), "--into", into.as_str()];
        args.extend(pool);
        let (code, all) = complaints(&args);
        assert_eq!(code, 2, "{name}: {all}");
        for part in expect {
            assert!(all.contains(part), "{name}: {part:?} is not in\n{all}");
        }
        assert!(!Path::new(&into).exists(), "{name}: a calibration was written");
    };
    check("truncated.json", &first[..first.len() / 2], &["truncated.json", "line 1", "EOF"]);
    check("empty.json", "", &["empty.json"]);
    check("other.json", "{\"a\": 1, \"b\": 2}", &["other.json", "keys a, b", "vllm bench serve"]);
    check(
        "negative.json",
        &first.replace("\"mean_tpot_ms\": 4.9", "\"mean_tpot_ms\": -4.9"),
        &["mean_tpot_ms", "-4.9"],
    );
    check("none.json", &first.replace("\"completed\": 64", "\"completed\": 0"), &["completed"]);
    // Half of what reading the weights takes: refused for what it is, with the numbers.
    let fast = first
        .replace("4.9,", "1.2,")
        .replace("1296.0", "360.0")
        .replace("1295.0", "359.0")
        .replace("1340.0", "400.0");
    check("fast.json", &fast, &["nothing is left to fit", "fast.json", "1.20 ms between"]);
}

/// The exit code, and every complaint with its place and help on one line: terminals would break lines where they please.
fn complaints(args: &[&str]) -> (i32, String) {
    let (code, document) = json(args);
    let list = document["diagnostics"].as_array().cloned().unwrap_or_default();
    let say = |d: &Value| {
        let part = |key: &str| d[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {} help: {}\n", part("code"), part("file"), part("message"), part("help"))
    };
    (code, list.iter().map(say).collect())
}

/// A point that physics forbids is left out of a sweep and flagged; the others are used.
#[test]
fn a_point_below_the_memory_floor_is_flagged() {
    let scratch = Scratch::new("floor");
    let sweep =
        std::fs::read_to_string(repository().join("crates/plimsoll/tests/fixtures/sweep.jsonl"))
            .expect("fixture");
    let mut lines: Vec<String> = sweep.lines().map(str::to_owned).collect();
    lines[0] = lines[0]
        .replace("4.9,", "1.2,")
        .replace("1296.0", "360.0")
        .replace("1295.0", "359.0")
        .replace("1340.0", "400.0");
    let file = scratch.file("sweep.jsonl", lines.join("\n"));
    let (code, document) = json(&[
        "calibrate",
        &file,
        "--model",
        "llama-3.1-8b",
        "--accelerator",
        "h200",
        "--engine",
        "vllm@0.24",
        "--into",
        &scratch.path("out.json"),
    ]);
    assert_eq!(code, 0, "{document}");
    let flags = document["flags"].as_array().expect("flags");
    let floor = flags.iter().find(|f| f["code"] == "below-the-memory-floor").expect("the flag");
    assert_eq!(
        (floor["rejects"].as_bool(), floor["origin"]["row"].as_u64()),
        (Some(true), Some(1))
    );
    let message = floor["message"].as_str().expect("a message");
    assert!(
        message.starts_with(
            "a gap of 1.20 ms between tokens cannot be: reading the weights once takes 3.1"
        ),
        "{message}"
    );
}

/// The contract of `validate` on published measurements, on cases of our own making.
#[test]
fn published_cases_are_validated() {
    let scratch = Scratch::new("cases");
    let case = |id: &str, gpu: &str, tpot: f64| {
        format!(
            r#"{{"id":"{id}","source":"ours","ref":"made up","engine":"vLLM","version":"0.24.0","model":"meta-llama/Llama-3.1-8B","arch":"llama-3-8b","precision":"bf16",
            "gpu":"{gpu}","n_gpu":1,"tp":1,"pp":1,"mode":"agg","workload":"fixed","isl":512,"osl":128,"isl_mean":512,"osl_mean":128,"load":"concurrency","concurrency":4,
            "tpot_ms_mean":{tpot},"ttft_ms_mean":60.0}}"#
        )
    };
    let file = scratch.file(
        "cases.json",
        format!(
            r#"{{"schema":"plimsoll.perf_cases.v1","meta":{{}},"cases":[{},{}]}}"#,
            case("a", "H200-SXM", 5.6),
            case("b", "A100-SXM-80GB", 12.0)
        ),
    );
    let (code, document) = json(&["validate", &file]);
    assert_eq!(code, 0);
    assert_eq!(
        (&document["schema"], &document["suite"]),
        (&"plimsoll/validate/v1".into(), &"performance".into())
    );
    assert!(
        document["constants"].as_u64().is_some_and(|n| (1..=120).contains(&n)),
        "{}",
        document["constants"]
    );
    assert_eq!(document["ranking"], serde_json::json!({ "pairs": 1, "right": 1 }));
    let dense = group(&document, "groups", "dense");
    assert_eq!(dense["n"], 2);
    assert_eq!(document["cases"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["summary"]["scored"], 4);
}

/// Where the published measurements are at hand, the bars they set are held.
#[test]
fn the_bars_on_published_measurements() {
    let shared = std::env::var_os("PLIMSOLL_SHARED")
        .map_or_else(|| repository().join("../shared"), PathBuf::from);
    let cases = shared.join("data/perf/cases.json");
    if !cases.is_file() {
        use std::io::Write as _;
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no published cases at {} (set PLIMSOLL_SHARED)",
            cases.display()
        );
        return;
    }
    let (code, document) = json(&["validate", &cases.display().to_string()]);
    assert_eq!(code, 0);
    let bar = |name: &str, median: f64, p90: f64| {
        let g = group(&document, "groups", name);
        assert!(number(&g["median_abs_pct"]) <= median && number(&g["p90_abs_pct"]) <= p90, "{g}");
    };
    bar("dense", 12.0, 40.0);
    bar("moe", 25.0, 100.0);
    bar("max throughput", 20.0, 100.0);
    let (pairs, right) =
        (number(&document["ranking"]["pairs"]), number(&document["ranking"]["right"]));
    assert!(pairs >= 100.0 && right / pairs >= 0.95, "{}", document["ranking"]);
    assert!(document["constants"].as_u64().is_some_and(|n| n <= 120));
}

/// The measurements that ship with the program.
#[test]
fn our_own_measurements_are_validated() {
    let (code, document) = json(&["validate"]);
    assert_eq!((code, &document["suite"]), (0, &"engine".into()));
    // The 8B's open loops below the knee, simulated from their requests: throughput and mean gap within 3%, first tokens within 15%.
    for run in document["runs"].as_array().expect("runs") {
        let (name, file) =
            (run["run"].as_str().expect("a name"), run["file"].as_str().expect("a file"));
        if !name.starts_with("poisson") || !file.starts_with("llama") || run["beyond_knee"] == true
        {
            continue;
        }
        let error = |metric: &str| {
            let all = run["metrics"].as_array().expect("metrics");
            let found =
                all.iter().find(|m| m["name"] == metric).unwrap_or_else(|| panic!("no {metric}"));
            number(&found["error_pct"]).abs()
        };
        assert!(error("throughput") <= 3.0 && error("itl_mean") <= 3.0, "{run}");
        assert!(error("ttft_p50") <= 15.0 && error("ttft_p95") <= 15.0, "{run}");
    }
    let pools = document["pools"].as_array().expect("pools");
    assert_eq!(pools.len(), 2);
    for pool in pools {
        let open = group(pool, "held_out", "decode steps");
        assert!(number(&open["median_abs_pct"]) <= 7.0, "{open}");
    }
}

/// A calibration replaces no other file, least of all the one it is made from.
#[test]
fn nothing_but_a_calibration_is_overwritten() {
    let scratch = Scratch::new("into");
    let sweep =
        std::fs::read_to_string(repository().join("crates/plimsoll/tests/fixtures/sweep.jsonl"))
            .expect("fixture");
    let own = scratch.file("own.jsonl", &sweep);
    let notes = scratch.file("notes.txt", "mine");
    let pool = ["--model", "llama-3.1-8b", "--accelerator", "h200", "--engine", "vllm@0.24"];
    for into in [&own, &notes] {
        let mut args = vec!["calibrate", own.as_str(), "--into", into.as_str()];
        args.extend(pool);
        assert_eq!(plimsoll(&args).status.code(), Some(2), "{into}");
    }
    assert_eq!(std::fs::read_to_string(&own).expect("still there"), sweep);
    assert_eq!(std::fs::read_to_string(&notes).expect("still there"), "mine");
}

/// The same file twice is one sweep, and a sweep spread over files is linted as one.
#[test]
fn files_are_one_sweep() {
    let scratch = Scratch::new("sweep");
    let sweep =
        std::fs::read_to_string(repository().join("crates/plimsoll/tests/fixtures/sweep.jsonl"))
            .expect("fixture");
    let lines: Vec<&str> = sweep.lines().collect();
    let one = scratch.file("one.json", lines[0]);
    let again = scratch.file("again.json", lines[0]);
    // Sixty-four clients with a quarter of the gap that sixteen have.
    let falling = lines[2]
        .replace("15.1,", "3.9,")
        .replace("15.2,", "3.9,")
        .replace("4230.0", "1375.0")
        .replace("4240.0", "1380.0");
    let (four, many) = (
        scratch.file("four.json", lines[1]),
        scratch.file(
            "many.json",
            falling.replace("\"request_throughput\": 15.05", "\"request_throughput\": 46.5"),
        ),
    );
    let pool = ["--model", "llama-3.1-8b", "--accelerator", "h200", "--engine", "vllm@0.24"];
    let codes = |files: &[&str]| {
        let into = scratch.path("out.json");
        let mut args = vec!["calibrate"];
        args.extend(files);
        args.extend(["--into", into.as_str()]);
        args.extend(pool);
        let (_, document) = json(&args);
        let flags = document["flags"].as_array().cloned().unwrap_or_default();
        flags.iter().filter_map(|f| f["code"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert!(codes(&[&one, &again]).contains(&"same-twice".to_owned()));
    assert!(
        codes(&[&four, &many]).contains(&"tpot-falls".to_owned()),
        "{:?}",
        codes(&[&four, &many])
    );
}

/// A step log that beats the memory bandwidth is refused for it.
#[test]
fn a_log_faster_than_physics_is_refused() {
    let scratch = Scratch::new("fast");
    let packed = std::fs::read(repository().join(LOG)).expect("the log");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut text)
        .expect("gzip");
    let line = text.lines().find(|l| l.contains("\"closed-512-128-c4\"")).expect("the run");
    let mut run: Value = serde_json::from_str(line).expect("JSON");
    for (list, keys) in [("steps", &["t"][..]), ("requests", &["t", "ttft", "e2e"][..])] {
        for item in run[list].as_array_mut().expect("a list") {
            for key in keys {
                item[*key] = (number(&item[*key]) / 10.0).into();
            }
        }
    }
    let file = scratch.file("fast.jsonl", format!("{run}\n"));
    let (code, all) = complaints(&["calibrate", &file, "--into", &scratch.path("out.json")]);
    assert_eq!(code, 2, "{all}");
    assert!(all.contains("faster-than-physics") && all.contains("closed-512-128-c4"), "{all}");
}

/// A calibration file that claims what it cannot is refused, and says what is wrong.
#[test]
fn a_calibration_that_lies_is_refused() {
    let scratch = Scratch::new("lies");
    let honest: Value = serde_json::from_str(&closed_loops().1).expect("JSON");
    let scenario = scratch.file(
        "one.toml",
        "[study]\nname = \"one\"\nas_of = 2026-11-15\nstart = 2026-11-16T00:00:00Z\n\n[[class]]\nname = \"chat\"\nprofile = \"chat\"\nrate = \"2/s\"\n\n\
         [[pool]]\nname = \"a\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H200-SXM\"\nengine = \"vllm@0.24\"\nweights = \"bf16\"\nmax_num_seqs = 8\nreplicas = { now = 1 }\ncalibration = \"lie.json\"\n",
    );
    let check = |change: &dyn Fn(&mut Value), expect: &str| {
        let mut lie = honest.clone();
        change(&mut lie);
        scratch.file("lie.json", lie.to_string());
        let (code, document) = json(&["review", &scenario]);
        let all = document.to_string();
        assert!(all.contains(expect), "{expect:?} is not in\n{all}");
        Some(code)
    };
    assert_eq!(check(&|v| v["coefficients"] = serde_json::json!([]), "/coefficients"), Some(2));
    assert_eq!(check(&|v| v["coefficients"][0]["value"] = 1e308.into(), "cannot be"), Some(2));
    assert_eq!(
        check(&|v| v["coefficients"][0]["value"] = 1.5.into(), "share of the datasheet"),
        Some(2)
    );
    assert_eq!(check(&|v| v["region"]["decodes"] = "many".into(), "/region/decodes"), Some(2));
    assert_eq!(check(&|v| v["setup"]["kv_element_bytes"] = 1.into(), "cached numbers"), Some(2));
    assert_eq!(check(&|v| v["setup"]["engine"] = "vllm@0.8".into(), "schedules"), Some(2));
    assert_eq!(check(&|v| v["spread"]["launch_s"] = "wide".into(), "/spread/launch_s"), Some(2));
    assert_eq!(check(&|v| v["spread"]["decodes_s"][3] = 1e9.into(), "/spread/decodes_s"), Some(2));
    // One that was written before spreads were kept is as good as it was.
    let old = |v: &mut Value| {
        v.as_object_mut().expect("an object").remove("spread");
    };
    assert_eq!(check(&old, "plimsoll/review/v2"), Some(0));
    // One that was never tested says so, and borrows the built-in errors.
    assert_eq!(
        check(&|v| v["left_out"] = serde_json::json!([]), "nothing was left to test it on"),
        Some(0)
    );
}

/// Half chat, half documents, on a real engine near its knee: with step times from twenty seconds of closed loops of the same machine, the shares of good requests of two open runs, from their own arrivals, lie
/// within the measured intervals, and the load line of the mix lies between what the runs carried and what they did not.
#[test]
fn the_load_line_of_a_real_engine() {
    const DUO: &str = "validation/vllm_h200/llama31_8b_duo.jsonl.gz";
    let scratch = Scratch::new("duo");
    let calibration = scratch.path("duo.json");
    let (code, document) = json(&["calibrate", DUO, "--runs", "closed-*", "--into", &calibration]);
    assert_eq!(code, 0, "{document}");
    let (code, document) = json(&["validate", DUO, "--calibration", &calibration]);
    assert_eq!(code, 0, "{document}");
    let runs = document["runs"].as_array().expect("runs");
    let shares: Vec<&Value> =
        runs.iter().flat_map(|run| run["good"].as_array().expect("shares")).collect();
    assert_eq!(shares.len(), 4, "two runs of two kinds");
    assert!(shares.iter().all(|own| own["inside"] == true), "{shares:#?}");
    for run in runs.iter().filter(|run| run["good"][0].is_object()) {
        let itl = run["metrics"].as_array().expect("metrics").iter();
        let itl = itl.clone().find(|own| own["name"] == "itl_mean").expect("mean ITL");
        assert!(number(&itl["error_pct"]).abs() <= 1.5, "{itl}");
    }
    let class = |name: &str, prompt: &str, output: &str| {
        format!(
            "[[class]]\nname = \"{name}\"\nrate = \"5 req/s\"\nprompt = {{ {prompt} }}\noutput = {{ {output} }}\nslo = {{ ttft = \"1s\", tpot = \"40ms\" }}\n"
        )
    };
    let scenario = format!(
        "[study]\nname = \"duo\"\nas_of = 2026-11-18\nhorizon = \"1d\"\nattainment = 0.95\n{}{}[[pool]]\nname = \"h200\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H200-SXM\"\nengine = \"vllm@0.24\"\nmax_num_seqs = 128\nmax_num_batched_tokens = 2048\nmax_model_len = 32768\ncalibration = \"duo.json\"\nreplicas = 1\n",
        // As the runs were drawn: a median, its spread, and a longest.
        class("chat", "p50 = 900, p95 = 3955, max = 8000", "p50 = 130, p95 = 485, max = 1000"),
        class("doc", "p50 = 3000, p95 = 6828, max = 12000", "p50 = 150, p95 = 402, max = 600"),
    );
    let file = scratch.file("duo.toml", scenario);
    let (code, curve) = json(&["curve", &file, "--points", "3"]);
    assert_eq!(code, 0, "{curve}");
    let line = number(&curve["load_line"]["offered_per_s"]);
    assert!((10.0..=11.2).contains(&line), "{}", curve["load_line"]);
}
