//! `simulate`, as it is typed.

use crate::common;
use crate::common::{Scratch, count, diagnostic, json, number, repository, run};
use plimsoll_testkit::sized;
use serde_json::Value;

const SCENARIO: &str = "examples/launch-week.toml";
const LOG: &str = "validation/vllm_h200/llama31_8b_kv64k.jsonl.gz";

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
    of_file(name, &scenario(class, pool), options)
}

/// A scenario of one's own, simulated for five minutes in two runs.
fn of_file(name: &str, text: &str, options: &[&str]) -> (i32, Value) {
    let scratch = Scratch::new(name);
    let file = scratch.file("scenario.toml", text);
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
    for key in ["regions", "providers", "tools", "autoscaling"] {
        assert!(document[key].is_array(), "{key}");
    }
    let mut sent = 0;
    for class in document["classes"].as_array().expect("classes") {
        let n = |key: &str| count(&class[key]);
        let ends = ["completed", "rejected", "timed_out", "lost", "left", "tool_failed"];
        let over: u64 = ends.iter().map(|end| n(end)).sum();
        assert_eq!(n("offered"), over + n("unfinished"), "{class}");
        attempts(class);
        sent += count(&class["attempts"]["sent"]);
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
            // An agent is judged by its first call, and waits in line for each.
            let first = if class["name"] == "edit" { "e2e_ms" } else { "ttft_ms" };
            assert!(number(&class["queue_ms"]["p50"]) <= number(&class[first]["p50"]), "{class}");
            assert!(number(&class["ttft_ms"]["mean"]) <= number(&class["e2e_ms"]["mean"]) * 1.001);
        }
    }
    let targets = ["pools", "providers"].map(|key| document[key].as_array().expect("a list"));
    let there: u64 = targets.iter().copied().flatten().map(attempts).sum();
    // Whoever reads prompts for others to answer does half of an attempt, the others the other half.
    let is_half = |pool: &&Value| pool["name"] == "prefill";
    let pools = document["pools"].as_array().expect("pools").iter().filter(is_half);
    let halves: u64 = pools.map(|pool| count(&pool["attempts"]["answered"])).sum();
    assert_eq!(sent, there - halves, "what classes send is what pools and providers get");
    for provider in document["providers"].as_array().expect("providers") {
        for (limit, used) in provider["limits_used"].as_object().expect("limits") {
            assert!((0.0..1.2).contains(&number(used)), "{limit}: {provider}");
        }
    }
    for tool in document["tools"].as_array().expect("tools") {
        assert!((0.0..=1.0).contains(&number(&tool["waited"])), "{tool}");
        if !tool["utilisation"].is_null() {
            assert!((0.0..=1.0).contains(&number(&tool["utilisation"])), "{tool}");
        }
    }
    for region in document["regions"].as_array().expect("regions") {
        assert!(count(&region["good"]) <= count(&region["offered"]), "{region}");
        assert!(count(&region["answered_for_others"]) <= count(&region["answered"]), "{region}");
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

/// Attempts add up: each ends in one way. How many there were.
fn attempts(of: &Value) -> u64 {
    let all = of["attempts"].as_object().expect("attempts");
    let sent = count(&all["sent"]);
    assert_eq!(sent, all.iter().filter(|(k, _)| *k != "sent").map(|(_, n)| count(n)).sum::<u64>());
    sent
}

#[test]
fn the_contract() {
    let scratch = Scratch::new("contract");
    let text = std::fs::read_to_string(common::repository().join(SCENARIO)).expect("there");
    let (four, one) = ("{ now = 4, plan = [2, 24] }", "{ now = 1, plan = [1, 24] }");
    assert!(text.contains(four));
    let file = scratch.file("one-replica.toml", text.replace(four, one));
    let arguments = [
        "simulate",
        &file,
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
    // The small completions are served well, the edits wait for one replica: both are said, and the worse decides.
    let verdicts: Vec<&str> = document["pools"]
        .as_array()
        .expect("pools")
        .iter()
        .filter_map(|p| p["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["STABLE", "BACKLOGGED"]);
    assert_eq!(document["verdict"], "BACKLOGGED");
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
    assert_eq!(one, with("16", "7"));
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

/// A pool that reads prompts and one that generates: both are there, and what is handed over is no hit of a cache.
#[test]
fn prefill_and_decode_apart() {
    let file = "examples/disaggregated.toml";
    let arguments = ["simulate", file, "--duration", "5m", "--runs", "2"];
    let (code, document) = json(&arguments);
    assert_eq!(code, 0);
    check(&document);
    let pool = |i: usize| &document["pools"][i];
    assert_eq!((&pool(0)["name"], &pool(1)["name"]), (&"prefill".into(), &"decode".into()));
    let read = |i: usize| count(&pool(i)["prefill_tokens"]);
    // The last token of a prompt is computed once more where its output is generated.
    assert!(read(0) > 20 * read(1), "{document}");
    assert!(count(&pool(1)["output_tokens"]) > 5 * count(&pool(0)["output_tokens"]));
    assert!(pool(1)["cache_hits"]["share"].is_null(), "{}", pool(1));
    assert_eq!(document["verdict"], "STABLE");
    // Half of it is nothing.
    let (code, both) = json(&[&arguments[..], &["--pool", "prefill"]].concat());
    assert_eq!((code, both["pools"].as_array().map(Vec::len)), (0, Some(2)));
    let (code, failure) = json(&[&arguments[..], &["--pool", "decode"]].concat());
    assert_eq!(code, 2);
    assert!(diagnostic(&failure).0.contains("only generates"), "{failure}");
}

/// A pool by itself gets what it would get among the others, not all that comes.
#[test]
fn one_pool_gets_its_share() {
    let other = "[[pool]]\nname = \"large\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H100-SXM\"\nengine = \"vllm@0.24\"\n";
    let routes =
        "[[route]]\nto = \"small\"\nshare = 0.25\n[[route]]\nto = \"large\"\nshare = 0.75\n";
    let text = format!("{}\n{other}{routes}", scenario("", ""));
    let (_, all) = of_file("both-pools", &text, &[]);
    let (code, one) = of_file("one-pool", &text, &["--pool", "small"]);
    assert_eq!(code, 0);
    check(&one);
    // Ten minutes of 1.5 a second are 900 tasks, give or take four of their deviations.
    let offered = number(&one["classes"][0]["offered"]);
    assert!((offered - 900.0).abs() < 120.0, "{offered}");
    let there = number(&all["pools"][0]["attempts"]["sent"]);
    assert!((offered / there - 1.0).abs() < 0.2, "{offered} by itself, {there} among others");
    let note = "only 25% of class `chat` goes to what is simulated";
    assert!(one["notes"].to_string().contains(note), "{}", one["notes"]);
    assert!(!all["notes"].to_string().contains("goes to what is simulated"), "{}", all["notes"]);
}

/// Outputs end where the pool that most of a class goes to ends them, not at the shortest of all: there they are refused.
#[test]
fn a_short_pool_does_not_shorten_the_others() {
    let short = "[[pool]]\nname = \"short\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H100-SXM\"\nengine = \"vllm@0.24\"\nmax_model_len = 1024\n";
    let routes = "[[route]]\nto = \"small\"\nshare = 0.9\n[[route]]\nto = \"short\"\nshare = 0.1\n";
    let text = format!("{}\n{short}{routes}", scenario("", ""))
        .replace("prompt = { p50 = 600, p95 = 2400, max = 8000 }", "prompt = 500")
        .replace("output = { p50 = 120, p95 = 500, max = 2000 }", "output = 1000");
    let (code, document) = of_file("short", &text, &[]);
    assert_eq!(code, 0, "{document}");
    check(&document);
    let class = &document["classes"][0];
    let refused = number(&class["too_long"]) / number(&class["offered"]);
    assert!((refused - 0.1).abs() < 0.03, "{class}");
    assert_eq!(count(&class["output_tokens"]), 1000 * count(&class["completed"]), "{class}");
}

/// Nothing of one's own: tokens are rented, and limits are what binds.
#[test]
fn providers_only() {
    let arguments =
        ["simulate", "examples/provider-limits.toml", "--duration", "10m", "--runs", "2"];
    // Bursts of four times the rate are more than they let through: in the calm there is room.
    let (code, document) = json(&[&arguments[..], &["--load", "0.2"]].concat());
    assert_eq!(code, 0);
    check(&document);
    assert_eq!(document["pools"], Value::Array(Vec::new()));
    assert_eq!(document["providers"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["verdict"], "STABLE");
    // Four times as much is more than they let through.
    let (_, more) = json(&[&arguments[..], &["--load", "4"]].concat());
    check(&more);
    assert_eq!(more["verdict"], "OVERLOADED");
    assert_eq!(more["binding"]["resource"], "provider");
    let refused = &more["providers"][0];
    assert!(count(&refused["attempts"]["refused"]) > 0 && !refused["retry_after_ms"].is_null());
    assert!(number(&refused["limits_used"]["tpm"]) > 0.9, "{refused}");
    let class = &more["classes"][0];
    assert!(count(&class["rejected"]) > 0 && count(&class["extra_attempts"]) > 0, "{class}");
}

/// A sandbox with four places, and agents that need ten: it is what binds, and it is not stable.
#[test]
fn a_tool_binds() {
    let agent = r#"agent = { calls = { p50 = 4, p95 = 8 }, tools = ["sandbox"] }"#;
    let tool = "\n[[tool]]\nname = \"sandbox\"\nlatency = { p50 = \"2s\", p95 = \"6s\" }\n";
    let text = scenario(agent, "").replace("6 req/s", "1 task/s") + tool;
    let text = text.replace("name = \"chat\"", "name = \"edit\"");
    let (code, bound) = of_file("tool", &format!("{text}concurrency = 4\n"), &[]);
    assert_eq!(code, 0);
    check(&bound);
    assert_eq!(bound["binding"]["resource"], "tool");
    assert_eq!(bound["binding"]["pool"], "sandbox");
    assert_eq!(bound["verdict"], "OVERLOADED");
    assert_eq!(bound["pools"][0]["verdict"], "STABLE");
    assert!(number(&bound["tools"][0]["utilisation"]) > 0.95, "{}", bound["tools"]);
    // With room for all of them nobody waits.
    let (_, free) = of_file("tool-free", &format!("{text}concurrency = 400\n"), &[]);
    check(&free);
    assert_eq!((&free["verdict"], &free["tools"][0]["waited"]), (&"STABLE".into(), &0.0.into()));
    // One that fails ends its task.
    let (_, fails) = of_file("tool-fails", &format!("{text}failure = \"10%\"\n"), &[]);
    check(&fails);
    assert!(count(&fails["classes"][0]["tool_failed"]) > 0, "{fails}");
    // One that nobody calls is said.
    let (_, idle) = of_file("tool-idle", &(scenario("", "") + tool), &[]);
    assert!(idle["notes"].to_string().contains("no class calls tool `sandbox`"), "{idle}");
}

const WAVE: &str = r#"
[[incident]]
name = "wave"
kind = "surge"
at = "1m"
lasts = "3m"
load = 6.0

[autoscaling]
signal = "in-flight"
target = 16
"#;
const STARTS: &str = r#"max_num_seqs = 32
replicas = { now = 1, plan = [1, 6] }
startup = { node = "20s", image = "5s", process = "5s", weights = "5s", compile = "5s", warm_up = "5s" }"#;

/// In a surge replicas are added, and what that took is said.
#[test]
fn replicas_follow_a_surge() {
    let text = scenario("", STARTS) + WAVE;
    let (code, document) = of_file("wave", &text, &[]);
    assert_eq!(code, 0);
    check(&document);
    let scaling = &document["autoscaling"][0];
    assert_eq!(scaling["pool"], "small");
    assert!(count(&scaling["replicas_max"]) > 2 && count(&scaling["ups"]) > 0, "{scaling}");
    let (lag, ready) = (&scaling["decision_lag_s"], &scaling["time_to_ready_s"]);
    assert!((0.0..=60.0).contains(&number(&lag["p50"])), "{lag}");
    assert!((10.0..=46.0).contains(&number(&ready["p50"])), "{ready}");
    assert!(count(&scaling["queue_while_starting_max"]) > 0 && count(&scaling["short_max"]) > 0);
    // Five minutes with one to six replicas.
    let hours = number(&scaling["replica_hours"]);
    assert!((5.0 / 60.0..=30.0 / 60.0).contains(&hours), "{scaling}");
    assert!(number(&scaling["replicas_mean"]) <= 6.0);
    // It helps: as many come, and more are served well.
    let alone = scenario("", &STARTS.replace("plan = [1, 6]", "plan = [1, 1]")) + WAVE;
    let (_, alone) = of_file("wave-alone", &alone, &[]);
    check(&alone);
    assert_eq!(alone["autoscaling"], Value::Array(Vec::new()));
    assert_eq!(alone["classes"][0]["offered"], document["classes"][0]["offered"]);
    assert!(count(&alone["classes"][0]["good"]) < count(&document["classes"][0]["good"]));
    // Without a target replicas stay, and that is said.
    let (_, none) = of_file("wave-none", &text.replace("target = 16", ""), &[]);
    assert!(none["notes"].to_string().contains("autoscaling.target"), "{}", none["notes"]);
    // A start that takes longer than what is simulated helps nobody.
    let slow = text.replace("node = \"20s\"", "node = \"2h\"");
    let (code, slow) = of_file("wave-slow", &slow, &[]);
    assert_eq!(code, 0);
    check(&slow);
    assert!(slow["notes"].to_string().contains("helps in time"), "{}", slow["notes"]);
    assert!(slow["autoscaling"][0]["time_to_ready_s"].is_null());
}

#[test]
fn the_screen_with_autoscaling() {
    let scratch = Scratch::new("screen");
    let file = scratch.file("s.toml", scenario("", STARTS) + WAVE);
    let (code, screen) =
        run(&["simulate", &file, "--duration", "5m", "--warm-up", "1m", "--runs", "2"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("simulate_autoscaling", screen);
}

/// What goes wrong on purpose, and what does by chance.
#[test]
fn what_goes_wrong() {
    let with = |kind: &str| format!("\n[[incident]]\nname = \"it\"\nat = \"1m\"\n{kind}\n");
    let pool = r#"replicas = 3
        drain = "30s"
        startup = { node = "5s", image = "1s", process = "1s", weights = "5s", compile = "1s", warm_up = "1s" }"#;
    let of = |name: &str, kind: &str, options: &[&str]| {
        let (code, document) = of_file(name, &(scenario("", pool) + &with(kind)), options);
        assert_eq!(code, 0, "{document}");
        check(&document);
        document
    };
    // One replica in each of two runs.
    let lost = of("replica", "kind = \"replica-loss\"\nlasts = \"2m\"", &[]);
    assert_eq!(lost["pools"][0]["failed"], 2);
    assert!(count(&lost["classes"][0]["lost"]) > 0, "{lost}");
    assert!(count(&lost["classes"][0]["wasted_prefill_tokens"]) > 0, "{lost}");
    // What is replaced finishes what it has: nobody is lost.
    let upgraded = of("upgrade", "kind = \"upgrade\"", &[]);
    assert_eq!(upgraded["pools"][0]["upgraded"], 6);
    assert_eq!(upgraded["classes"][0]["completed"], upgraded["classes"][0]["offered"]);
    // After the end nothing goes wrong any more.
    let (_, late) = of_file(
        "late",
        &(scenario("", pool) + &with("kind = \"replica-loss\"").replace("\"1m\"", "\"9m\"")),
        &[],
    );
    assert_eq!(late["pools"][0]["failed"], 0);
    assert!(late["notes"].to_string().contains("when the simulation is over"), "{late}");
    // By chance, and not.
    let frail =
        format!("{pool}\n        time_between_failures = \"5m\"\n        time_to_repair = \"30s\"");
    let (_, failing) = simulated("frail", "", &frail, &[]);
    check(&failing);
    assert!(count(&failing["pools"][0]["failed"]) > 0);
    let (_, spared) = simulated("spared", "", &frail, &["--no-failures"]);
    check(&spared);
    assert_eq!(spared["pools"][0]["failed"], 0);
    assert_eq!(spared["verdict"], "STABLE");
}

/// A node holds as many replicas as its instance has devices for, or the one that a pool would be rented in: four, not eight.
#[test]
fn a_node_is_of_its_instance() {
    let loss = "\n[[incident]]\nname = \"it\"\nkind = \"node-loss\"\nat = \"1m\"\nlasts = \"1h\"\n";
    let failed = |name: &str, instance: &str| {
        let text = scenario("", &format!("replicas = 8\n{instance}")) + loss;
        let text = text.replace("H100-SXM", "L40S");
        let (code, document) = of_file(name, &text, &["--runs", "1", "--no-failures"]);
        assert_eq!(code, 0, "{document}");
        count(&document["pools"][0]["failed"])
    };
    assert_eq!(failed("some-node", ""), 4);
    assert_eq!(failed("own-node", "instance = \"g6e.12xlarge\""), 4);
    assert_eq!(failed("own-two", "instance = \"g6e.12xlarge\"\npipeline_parallel = 2"), 2);
}

/// A quota is of a device, by whichever name; and who has no way to where it would fall back is told so.
#[test]
fn quotas_and_ways() {
    let pool = "replicas = { now = 1, plan = [1, 20] }";
    let region =
        "\n[[region]]\nname = \"east\"\naccelerators = [{ accelerator = \"h100\", quota = 3 }]\n";
    let scaled = "[autoscaling]\nsignal = \"in-flight\"\ntarget = 4\n";
    let (code, document) = of_file("quota", &(scenario("", pool) + region + scaled), &[]);
    assert_eq!(code, 0, "{document}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("quotas leave pool `small` at most 3 replicas"), "{notes}");
    let far = "[[region]]\nname = \"west\"\n[[pool]]\nname = \"far\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H100-SXM\"\nregions = [\"west\"]\n";
    let route = "[[route]]\nto = \"small\"\nfallback = [\"far\"]\n";
    let (code, document) = of_file("no-way", &(scenario("", "") + region + far + route), &[]);
    assert_eq!(code, 0, "{document}");
    let note = "class `chat` cannot fall back on `far`: no `latency_to` leads from east to west";
    assert!(document["notes"].to_string().contains(note), "{}", document["notes"]);
}

/// When a region is lost the other takes its users, at once.
#[test]
fn a_region_takes_over() {
    let example = std::fs::read_to_string(repository().join("examples/two-regions.toml"));
    let loss = "\n[[incident]]\nname = \"gone\"\nkind = \"region-loss\"\nregion = \"eu-central\"\nat = \"1m\"\nlasts = \"2m\"\n";
    let text = example.expect("an example") + loss;
    let (code, document) = of_file("regions", &text, &[]);
    assert_eq!(code, 0);
    check(&document);
    let [europe, america] = [0, 1].map(|i| &document["regions"][i]);
    assert_eq!((&europe["name"], &america["name"]), (&"eu-central".into(), &"us-east".into()));
    assert!(count(&america["answered_for_others"]) > 1000, "{america}");
    assert_eq!(europe["answered_for_others"], 0);
    // What starts again is not waited for while somebody else is there.
    let good = number(&europe["good"]) / number(&europe["offered"]);
    assert!(good > 0.9, "{europe}");
}

/// Hours in a row, and all of them.
#[test]
fn several_hours() {
    let file = "examples/support-bot.toml";
    let (code, two) = json(&["simulate", file, "--hour", "8..10"]);
    assert_eq!(code, 0);
    check(&two);
    assert_eq!((&two["seconds"], &two["runs"]), (&7200.0.into(), &2.into()));
    let text =
        scenario("", "").replace("as_of = 2026-11-15", "as_of = 2026-11-15\nhorizon = \"1d\"");
    let text = text.replace("6 req/s", "0.5 req/s");
    let (code, all) = of_file("all", &text, &["--hour", "all", "--runs", "1"]);
    assert_eq!(code, 0, "{all}");
    check(&all);
    assert_eq!(all["seconds"], 86_400.0);
    // 43,200 of a Poisson process.
    let offered = number(&all["classes"][0]["offered"]);
    assert!((offered - 43_200.0).abs() < 5.0 * 43_200f64.sqrt(), "{offered}");
    for (hour, word) in [("8..4000", "no hour 4000"), ("9000", "no hour 9000")] {
        let (code, failure) = json(&["simulate", file, "--hour", hour]);
        assert_eq!(code, 2);
        assert!(diagnostic(&failure).0.contains(word), "{failure}");
    }
    for hour in ["10..8", "8..8", "8..", "x"] {
        assert_eq!(run(&["simulate", file, "--hour", hour]).0, 2, "{hour}");
    }
}

#[test]
fn twice_the_load() {
    let offered = |load: &str| {
        let (code, document) = simulated(&format!("load-{load}"), "", "", &["--load", load]);
        assert_eq!(code, 0);
        check(&document);
        number(&document["classes"][0]["offered"])
    };
    let (half, one, two) = (offered("0.5"), offered("1"), offered("2"));
    assert!((two / one - 2.0).abs() < 0.1, "{one} and {two}");
    assert!((half / one - 0.5).abs() < 0.05, "{one} and {half}");
    assert_eq!(offered("0"), 0.0);
}

/// Whatever cannot be is said, and nothing hangs.
#[test]
fn scenarios_that_cannot_be() {
    let route = r#"
[[pool]]
name = "other"
model = "llama-3.1-8b"
accelerator = "H100-SXM"

[[route]]
to = "small"
fallback = ["other", "small"]
"#;
    let cases: [(&str, &str, &str, &str, &str); 5] = [
        ("zero", "", "replicas = 0", "", "has nowhere to go"),
        ("loop", "", "", route, "falls back to `small`"),
        ("domains", "", "replicas = 2\n        domains = 5", "", "5 failure domains"),
        ("retries", "retries = { attempts = 1000000 }", "", "", "`attempts` must be between"),
        ("at-once", r#"retries = { attempts = 9, backoff = "0s" }"#, "", "", "comes back at once"),
    ];
    for (name, class, pool, more, word) in cases {
        for command in ["simulate", "curve"] {
            let scratch = Scratch::new(&format!("cannot-{name}"));
            let file = scratch.file("s.toml", scenario(class, pool) + more);
            let (code, failure) = json(&[command, &file]);
            assert_eq!(code, 2, "{command} {name}");
            let (message, help) = diagnostic(&failure);
            assert!(message.contains(word) && !help.is_empty(), "{message}: {help}");
        }
    }
    // As many tries as are allowed, at clients who wait for a millisecond: much is thrown away, and it ends.
    let restless = r#"retries = { attempts = 20, backoff = "1ms", timeout = "1ms" }"#;
    let (code, restless) = simulated("restless", restless, "", &[]);
    assert_eq!(code, 0);
    check(&restless);
    assert_eq!(
        (&restless["classes"][0]["completed"], &restless["verdict"]),
        (&0.into(), &"OVERLOADED".into())
    );
}

/// The share of good tasks among those that began between two times after the surge's end, for each of twenty seeds, and the least of any window of theirs.
fn after_the_surge(name: &str, retries: &str, from: f64, until: f64) -> Vec<(f64, f64)> {
    let example = std::fs::read_to_string(repository().join("examples/metastable.toml"));
    let text = example.expect("an example");
    let told = r#"timeout = "20s" }"#;
    assert!(text.contains(told), "the example's retries");
    let scratch = Scratch::new(name);
    let file = scratch.file("s.toml", text.replace(told, retries));
    let end = 360.0;
    (1..=sized(6, 20))
        .map(|seed: u32| {
            let (code, document) = json(&[
                "simulate",
                &file,
                "--duration",
                "17m",
                "--warm-up",
                "2m",
                "--runs",
                "1",
                "--timeline",
                "--seed",
                &seed.to_string(),
            ]);
            assert_eq!(code, 0);
            check(&document);
            let windows = document["goodput_timeline"].as_array().expect("windows");
            let within = windows
                .iter()
                .filter(|w| (end + from..end + until).contains(&number(&w["from_s"])));
            let (mut good, mut offered, mut least) = (0.0, 0.0, 1.0f64);
            for window in within {
                good += number(&window["goodput_per_s"]);
                offered += number(&window["offered_per_s"]);
                least = least.min(number(&window["good"]));
            }
            (good / offered, least)
        })
        .collect()
}

/// A minute of doubled load, and ten minutes later not half of the tasks are served well: the fleet serves whom nobody waits for any more.
#[test]
fn a_retry_storm_stays() {
    for (seed, (good, _)) in
        (1..).zip(after_the_surge("storm", "timeout = \"20s\" }", 600.0, 660.0))
    {
        assert!(good < 0.5, "seed {seed}: {good}");
    }
}

/// With a budget for retries it is over within two minutes, and stays so.
#[test]
fn a_budget_ends_it() {
    let budget = r#"timeout = "20s", budget = "10%" }"#;
    for (seed, (good, least)) in (1..).zip(after_the_surge("budget", budget, 120.0, 660.0)) {
        assert!(good >= 0.9 && least >= 0.9, "seed {seed}: {good}, at least {least}");
    }
}
