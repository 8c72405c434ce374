//! `simulate --replay`, as it is typed.

use crate::common;
use crate::common::{Scratch, count, diagnostic, json, number, shared};
use serde_json::Value;

/// Thirteen conversations of eight turns in eight minutes, each turn a thousand tokens longer than the last, all with the same beginning. Thirteen, so that round robin over
/// eight replicas brings no conversation back to where it was.
const TALKS: &str = "crates/plimsoll/tests/fixtures/mooncake_talks.jsonl";
const LOG: &str = "validation/vllm_h200/llama31_8b.jsonl.gz";

/// A pool, with what a test changes; its classes' own numbers do not matter.
fn scenario(classes: &[&str], pool: &str) -> String {
    let mut text = "[study]\nname = \"a replay\"\nas_of = 2026-11-15\n".to_owned();
    for class in classes {
        text += &format!(
            "\n[[class]]\nname = \"{class}\"\nrate = \"1 req/s\"\nprompt = {{ p50 = 600, p95 = 2400 }}\noutput = {{ p50 = 120, p95 = 500 }}\nslo = {{ ttft = \"5s\" }}\n"
        );
    }
    text + &format!(
        "\n[[pool]]\nname = \"small\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H200-SXM\"\nmax_model_len = 131072\n{pool}\n"
    )
}

fn replayed(name: &str, pool: &str, trace: &str, options: &[&str]) -> (i32, Value) {
    let scratch = Scratch::new(&format!("replay-{name}"));
    let file = scratch.file("s.toml", scenario(&["chat"], pool));
    json(&[&["simulate", &file, "--replay", trace, "--runs", "1"], options].concat())
}

fn offered(document: &Value) -> u64 {
    let classes = document["classes"].as_array().expect("classes");
    classes.iter().map(|class| count(&class["offered"])).sum()
}

fn hits(document: &Value) -> f64 {
    number(&document["pools"][0]["cache_hits"]["share"])
}

/// Round robin spreads conversations over caches that know nothing of them; affinity does not. Without a cache nothing is found.
fn hits_follow_the_router(name: &str, trace: &str, options: &[&str]) {
    // Eight devices a replica, so that one cache holds everything.
    let pool = |replicas: u32, router: &str| {
        format!("tensor_parallel = 8\nreplicas = {replicas}\nrouter = \"{router}\"")
    };
    let share = |replicas: u32, router: &str| {
        let name = format!("{name}-{replicas}-{router}");
        let (code, document) = replayed(&name, &pool(replicas, router), trace, options);
        assert_eq!(code, 0, "{document}");
        assert!(offered(&document) > 0);
        hits(&document)
    };
    let (one, eight) = (share(1, "round-robin"), share(8, "round-robin"));
    assert!(one > 0.1, "{one}");
    assert!(eight < 0.6 * one, "round robin: {one} with one replica, {eight} with eight");
    let near = share(8, "prefix-affinity");
    assert!(near > 0.9 * one, "affinity: {one} with one replica, {near} with eight");
    let bare = format!("{}\nprefix_caching = false", pool(1, "round-robin"));
    let (_, bare) = replayed(&format!("{name}-bare"), &bare, trace, options);
    assert_eq!(hits(&bare), 0.0);
}

#[test]
fn hits_of_a_fixture() {
    hits_follow_the_router("talks", TALKS, &[]);
}

#[test]
fn hits_of_mooncake() {
    let Some(trace) = shared("mooncake_conversation_trace.first75pct.jsonl.gz") else { return };
    hits_follow_the_router("mooncake", &trace, &["--to", "10m"]);
}

/// All of it, in order; the same bytes on any number of threads.
#[test]
fn every_request_is_replayed() {
    let (code, document) = replayed("all", "", TALKS, &["--timeline"]);
    assert_eq!(code, 0);
    assert_eq!(
        (document["schema"].as_str(), offered(&document)),
        (Some("plimsoll/simulate/v1"), 104)
    );
    assert_eq!(document["classes"][0]["completed"], 104);
    assert_eq!(document["verdict"], "STABLE");
    // Prompts of 1,436 to 8,604 tokens, and sixty tokens each.
    assert_eq!(document["classes"][0]["output_tokens"], 104 * 60);
    assert_eq!(document["classes"][0]["prompt_tokens"], 13 * (8 * 412 + 1024 * 36));
    let scratch = Scratch::new("replay-threads");
    let file = scratch.file("s.toml", scenario(&["chat"], "replicas = 2"));
    let with = |threads: &str| {
        common::run(&[
            "simulate",
            &file,
            "--replay",
            TALKS,
            "--json",
            "--threads",
            threads,
            "--scale",
            "3",
        ])
    };
    assert_eq!(with("1"), with("16"));
}

#[test]
fn azure() {
    let Some(trace) = shared("AzureLLMInferenceTrace_conv.first75pct.csv.gz") else { return };
    let (code, document) = replayed("azure", "", &trace, &["--to", "10m"]);
    assert_eq!(code, 0);
    assert!(offered(&document) > 2000, "{document}");
    assert_eq!(document["seconds"], 600.0);
    assert!(document["notes"].to_string().contains("requests of Azure"), "{}", document["notes"]);
}

/// Twice, half, a part, and squeezed: each says so.
#[test]
fn scaled_cut_and_squeezed() {
    let of = |name: &str, options: &[&str]| {
        let (code, document) = replayed(name, "", TALKS, options);
        assert_eq!(code, 0, "{document}");
        (offered(&document), number(&document["seconds"]), document["notes"].to_string())
    };
    let (all, seconds, _) = of("whole", &[]);
    let (twice, longer, notes) = of("twice", &["--scale", "2"]);
    assert!(
        (twice, longer.round()) == (2 * all, seconds.round()) && notes.contains("2 copies"),
        "{twice}: {notes}"
    );
    let (half, _, notes) = of("half", &["--scale", "0.5"]);
    // Whole sessions or requests are left out by chance.
    assert!((26..=78).contains(&half) && notes.contains("thinned"), "{half}: {notes}");
    // Two minutes of thirteen turns each.
    let (part, two_minutes, notes) = of("part", &["--from", "1m", "--to", "3m"]);
    assert_eq!((part, two_minutes), (26, 120.0));
    assert!(notes.contains("cut from 60 s to 180 s"), "{notes}");
    let (squeezed, quarter, notes) = of("squeezed", &["--squeeze", "4"]);
    assert_eq!(squeezed, all);
    assert!((quarter * 4.0 / seconds - 1.0).abs() < 0.001, "{quarter}");
    assert!(notes.contains("time divided by 4"), "{notes}");
    // Another seed leaves others out.
    let outcome = |seed: &str| {
        replayed(&format!("seed-{seed}"), "", TALKS, &["--scale", "0.5", "--seed", seed]).1
    };
    assert_ne!(outcome("1")["classes"], outcome("2")["classes"]);
    let copies = |options: &[&str]| hits(&replayed("copies", "", TALKS, options).1);
    assert!(copies(&["--scale", "2", "--same-prompts"]) > copies(&["--scale", "2"]));
}

/// A run of an engine's log, as what somebody asked for.
#[test]
fn a_run_of_an_engine() {
    let (code, document) = replayed("run", "", LOG, &["--replay-run", "poisson-chat-r5"]);
    assert_eq!(code, 0, "{document}");
    assert!(offered(&document) > 100, "{document}");
    assert_eq!(document["classes"][0]["completed"], document["classes"][0]["offered"]);
    let (code, failure) = replayed("no-run", "", LOG, &["--replay-run", "nothing"]);
    assert_eq!(code, 2);
    let (message, help) = diagnostic(&failure);
    assert!(message.contains("no run `nothing`") && help.contains("poisson-chat-r5"), "{help}");
    let (code, failure) = replayed("unnamed", "", LOG, &[]);
    assert_eq!(code, 2);
    assert!(diagnostic(&failure).1.contains("--replay-run"), "{failure}");
}

/// Where there are several classes, somebody has to say which one it is.
#[test]
fn classes_are_asked_for() {
    let scratch = Scratch::new("replay-classes");
    let file = scratch.file("s.toml", scenario(&["chat", "batch"], ""));
    let of = |options: &[&str]| {
        json(&[&["simulate", &file, "--replay", TALKS, "--runs", "1"], options].concat())
    };
    let (code, failure) = of(&[]);
    assert_eq!(code, 2);
    let (_, help) = diagnostic(&failure);
    assert!(help.contains("--class chat") && help.contains("--class batch"), "{help}");
    let (code, failure) = of(&["--class", "nobody"]);
    assert_eq!(code, 2);
    assert!(diagnostic(&failure).0.contains("`nobody`"), "{failure}");
    let (code, document) = of(&["--class", "batch"]);
    assert_eq!(code, 0);
    assert_eq!(
        (&document["classes"][0]["offered"], &document["classes"][1]["offered"]),
        (&0.into(), &104.into())
    );
}

/// What cannot be read is said with its place, and what can be is used.
#[test]
fn broken_traces() {
    let scratch = Scratch::new("replay-broken");
    let rows = [
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:48.6,-3,44",
        "2023-11-16 18:15:49.6,x,44",
        "2023-11-16 18:15:50.9951690,396,109",
        "2023-11-16 18:16:50.9951690,396,109",
    ];
    let partly = scratch.file("partly.csv", rows.join("\n"));
    let (code, document) = replayed("partly", "", &partly, &[]);
    assert_eq!(code, 0);
    assert_eq!(offered(&document), 3, "the last counts, too");
    let notes = document["notes"].to_string();
    for word in ["2 of 5 rows were rejected", "line 3", "line 4"] {
        assert!(notes.contains(word), "{word}: {notes}");
    }
    for (name, bytes) in [
        ("text.csv", "not a trace\nat all\n"),
        ("empty.csv", ""),
        ("headings.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"),
        ("cut.jsonl", "{\"timestamp\": 0, \"input_le"),
        ("nothing.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\nx,y,z\nx,y,z\n"),
    ] {
        let file = scratch.file(name, bytes);
        let (code, failure) = replayed("bad", "", &file, &[]);
        assert_eq!(code, 2, "{name}");
        let (message, _) = diagnostic(&failure);
        let said = format!("{message} {}", failure["diagnostics"][0]);
        assert_eq!(message.matches(name).count(), 0, "said once: {message}");
        assert!(said.contains(name), "{said}");
    }
    let (code, failure) = replayed("nowhere", "", "/nowhere.csv", &[]);
    assert_eq!((code, &failure["diagnostics"][0]["code"]), (2, &"bad-trace".into()));
    // What leaves nothing, or more than a clock holds.
    for (options, word) in [
        (&["--from", "5h"][..], "no request of it is left"),
        (&["--from", "10s", "--to", "5s"][..], "must be after its beginning"),
        (&["--scale", "0"][..], "above zero"),
        (&["--scale", "1000000000"][..], "too many"),
        (&["--squeeze", "0.000000001"][..], "200 days"),
    ] {
        let (code, failure) = replayed("odd", "", &partly, options);
        assert_eq!(code, 2, "{options:?}");
        assert!(diagnostic(&failure).0.contains(word), "{options:?}: {failure}");
    }
}

/// Its requests are the same every time, so one run is all there is to learn of them; whoever asks for more is told. Hits are the trace's, whatever its class states.
#[test]
fn what_runs_of_a_trace_say() {
    let scratch = Scratch::new("replay-runs");
    let text = scenario(&["chat"], "").replace("[[class]]", "[[class]]\ncache_hit = 0.5");
    let file = scratch.file("s.toml", text);
    let notes = |runs: &[&str]| {
        let (code, document) = json(&[&["simulate", &file, "--replay", TALKS], runs].concat());
        assert_eq!(code, 0, "{document}");
        (document["runs"].clone(), document["notes"].to_string())
    };
    let (runs, said) = notes(&[]);
    assert_eq!(runs, 1);
    assert!(said.contains("those of the trace's own blocks"), "{said}");
    assert!(!said.contains("the cache hits of") && !said.contains("runs are the same"), "{said}");
    let (runs, said) = notes(&["--runs", "3"]);
    assert_eq!(runs, 3);
    assert!(said.contains("the requests of all 3 runs are the same"), "{said}");
}
