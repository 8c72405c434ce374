//! `stress`, as it is typed: hard times worked out by hand, the seven shapes, what moves the answer, and proposed changes.

use std::sync::OnceLock;

use crate::common::plans::{SMALL, list, named, with};
use crate::common::{Scratch, diagnostic, json, number, plimsoll, repository, text};
use serde_json::Value;

fn stressed(name: &str, scenario: &str, options: &[&str]) -> (i32, Value) {
    let scratch = Scratch::new(&format!("stress-{name}"));
    let file = scratch.file("scenario.toml", scenario);
    json(&[&["stress", &file], options].concat())
}

/// What a hard time asks of a resource on average.
fn asked(document: &Value, stress: &str, resource: &str) -> f64 {
    let own = named(document, "scenarios", stress);
    let row = list(own, "resources").iter().find(|row| row["name"] == resource);
    number(&row.unwrap_or_else(|| panic!("no {resource} in {own:#}"))["demand"])
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

/// A hundred requests a second of 60 tokens, and three hundred of 65 at the launch; half of 1,800 prompt tokens are cached.
const LAUNCH: &str = r#"
[study]
name = "from first principles"
as_of = 2026-11-15
horizon = "1d"

[[class]]
name = "chat"
rate = "100 req/s"
prompt = 1800
output = 60
cache_hit = "50%"
slo = { ttft = "2s" }

[[event]]
name = "launch"
from = 2026-11-16T12:00:00Z
rate = 3.0
output = 1.0833333333333333

[[pool]]
name = "big"
model = "llama-3.1-8b"
accelerator = "H100-SXM"
max_model_len = 8192
replicas = { now = 4 }

[[stress]]
name = "twice the users"
rate = 2.0
owner = "growth"
"#;

/// Two classes; one pool reads their prompts, another generates.
const APART: &str = r#"
[study]
name = "apart"
as_of = 2026-11-15

[[class]]
name = "chat"
rate = "3 req/s"
prompt = 1200
output = 60
slo = { ttft = "1s" }

[[class]]
name = "papers"
rate = "0.1 req/s"
prompt = 9000
output = 200

[[route]]
to = "prefill"

[[pool]]
name = "prefill"
role = "prefill"
model = "llama-3.1-8b"
accelerator = "H100-SXM"
max_num_seqs = 16
replicas = { now = 1, plan = [1, 4] }
disaggregation = { decode = "decode", link = "400Gbit/s" }

[[pool]]
name = "decode"
role = "decode"
model = "llama-3.1-8b"
accelerator = "H100-SXM"
max_num_seqs = 16
replicas = { now = 1, plan = [1, 4] }
"#;

/// What two threads say of it, once a process.
fn launch() -> &'static Value {
    static STRESSED: OnceLock<Value> = OnceLock::new();
    STRESSED.get_or_init(|| {
        let (code, document) = stressed("principles", LAUNCH, &["--threads", "2"]);
        assert_eq!(code, 0);
        document
    })
}

/// 100/s x 60 = 6,000 tok/s; 300/s x 65 = 19,500; with 15% repair 22,425; a cache that misses doubles what is computed of prompts.
#[test]
fn hard_times_are_what_first_principles_say() {
    let document = launch();
    close(asked(document, "baseline", "output_tokens"), 6_000.0);
    close(asked(document, "launch peak", "output_tokens"), 19_500.0);
    close(asked(document, "retry spike", "output_tokens"), 22_425.0);
    close(asked(document, "retry spike", "requests"), 345.0);
    close(asked(document, "launch peak", "fresh_prompt_tokens"), 270_000.0);
    close(asked(document, "cache-miss event", "fresh_prompt_tokens"), 540_000.0);
    close(asked(document, "output +50%", "output_tokens"), 1.5 * 19_500.0);
    // One in ten with four times the prompt: 0.9 + 0.4 of the tokens.
    close(asked(document, "long-context cohort", "fresh_prompt_tokens"), 1.3 * 270_000.0);
    // One region: as much comes again.
    close(asked(document, "regional failover", "requests"), 600.0);
    close(asked(document, "twice the users", "requests"), 600.0);
    assert_eq!(named(document, "scenarios", "twice the users")["owner"], "growth");
}

/// Programs read this document: what it has, and that it is the same on any number of threads.
#[test]
fn the_document() {
    let scratch = Scratch::new("stress-document");
    let file = scratch.file("scenario.toml", LAUNCH);
    let output = plimsoll(&["stress", &file, "--json", "--threads", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.trim_start_matches(['{', ' ', '\n']).starts_with("\"schema\""), "{printed}");
    let document: Value = serde_json::from_str(&printed).expect("JSON");
    let mut two = launch().clone();
    two["file"] = document["file"].clone();
    assert!(document == two, "one thread and two disagree");
    assert_eq!(document["schema"], "plimsoll/stress/v1");
    let names: Vec<&str> =
        list(&document, "scenarios").iter().filter_map(|own| own["name"].as_str()).collect();
    let standard = [
        "baseline",
        "launch peak",
        "long-context cohort",
        "retry spike",
        "cache-miss event",
        "route-mix shift",
        "regional failover",
        "replica loss at peak",
        "startup twice as slow",
        "output +50%",
        "provider limit halved",
        "price change",
        "twice the users",
    ];
    assert_eq!(names, standard);
    for own in list(&document, "scenarios") {
        for key in
            ["resources", "attainment", "first_to_break", "cost", "relieved", "worsened", "owner"]
        {
            assert!(own.get(key).is_some(), "{key} of {}", own["name"]);
        }
        // What does not apply says why, and claims nothing.
        if own["not_applicable"].is_string() {
            assert_eq!(own["attainment"]["planned"], Value::Null);
            assert!(list(own, "resources").is_empty(), "{own:#}");
        } else {
            assert!(own["attainment"]["planned"].is_number(), "{own:#}");
            for key in ["low", "high", "level", "n"] {
                assert!(own["attainment"]["planned_interval"][key].is_number(), "{key}");
            }
        }
    }
    // One pool, no provider: these two cannot happen.
    for name in ["route-mix shift", "provider limit halved"] {
        assert!(named(&document, "scenarios", name)["not_applicable"].is_string(), "{name}");
    }
    let shapes: Vec<&str> =
        list(&document, "failure_shapes").iter().filter_map(|own| own["name"].as_str()).collect();
    let eight = [
        "planned on average prompt length",
        "route mix shifts in an incident",
        "cache-hit assumption untested",
        "batch window widened to hide missing capacity",
        "rate limits ignored",
        "regional failover doubles traffic",
        "budget cap trips before technical capacity",
        "overload stays after a surge",
    ];
    assert_eq!(shapes, eight);
    for shape in list(&document, "failure_shapes") {
        assert!(shape["evidence"].as_str().is_some_and(|said| !said.is_empty()), "{shape}");
    }
    // Four replicas do not carry three times the users; the planned ones do, and not twice that.
    let launch = &named(&document, "scenarios", "launch peak")["attainment"];
    assert_eq!(
        (&launch["verdict_now"], &launch["verdict_planned"]),
        (&"fails".into(), &"carried".into())
    );
    let twice = &named(&document, "scenarios", "twice the users")["attainment"];
    assert_eq!(twice["verdict_planned"], "fails", "{twice}");
    // A price changes what is paid and nothing else.
    let (peak, dearer) = (
        named(&document, "scenarios", "launch peak"),
        named(&document, "scenarios", "price change"),
    );
    assert_eq!(peak["attainment"], dearer["attainment"]);
    let usd = |own: &Value| number(&own["cost"]["planned_usd_per_hour"]);
    close(usd(dearer), 1.25 * usd(peak));
    // Nobody says what succeeds.
    assert_eq!(peak["cost"]["planned_usd_per_success"], Value::Null);
    assert!(peak["cost"]["why"].as_str().is_some_and(|why| why.contains("chat")), "{peak:#}");
}

/// Assumptions move the answer by as much as they move the demand, and those that move it most come first.
#[test]
fn what_moves_the_answer() {
    let ranged = with(LAUNCH, &[("rate = 3.0", "rate = { low = 2.0, likely = 3.0, high = 6.0 }")]);
    let (_, document) = stressed("tornado", &ranged, &[]);
    let tornado = &document["tornado"];
    let bars = list(tornado, "bars");
    let first = &bars[0];
    assert_eq!(first["name"], "launch: rate", "{first:#}");
    assert!(first["source"].as_str().is_some_and(|source| source.contains("launch")));
    assert_eq!(first["changes_decision"], true);
    let replicas = |end: &Value| number(&end["replicas"]);
    assert!(replicas(&first["at_better"]) < replicas(&tornado["base"]));
    assert!(replicas(&tornado["base"]) < replicas(&first["at_worse"]));
    // Nothing that moves alone is better than everything at its best, or worse than everything at its worst.
    for bar in bars {
        assert!(replicas(&bar["at_better"]) >= replicas(&tornado["best"]), "{bar:#}");
        assert!(replicas(&bar["at_worse"]) <= replicas(&tornado["worst"]), "{bar:#}");
        assert!(bar["measure"].as_str().is_some_and(|said| !said.is_empty()));
    }
    let swings: Vec<f64> =
        bars.iter().map(|bar| number(&bar["swing_usd_per_month"]).abs()).collect();
    assert!(swings.is_sorted_by(|a, b| a >= b), "{swings:?}");
    let next = list(tornado, "measure_next");
    assert!(next[0].as_str().is_some_and(|said| said.starts_with("launch: rate")), "{next:?}");
}

const CHANGES: &str = r#"
[[change]]
name = "shorter prompts"
class = ["chat"]
prompt = 0.5
success_rate = "unknown"
guardrail = "answers are as good"
rollback = "chat_success_rate < 0.8"

[[change]]
name = "measured"
class = ["chat"]
prompt = 0.5
success_rate = 0.99
guardrail = "chat_ttft_p95_seconds < 1"
rollback = "chat_success_rate < 0.895"

[[change]]
name = "smaller weights"
pool = "small"
weights = "fp8"
"#;

#[test]
fn changes_are_weighed_on_the_same_tasks() {
    let scenario = with(SMALL, &[("slo = {", "success_rate = 0.9\nslo = {")]) + CHANGES;
    let (_, document) = stressed("changes", &scenario, &[]);
    let change = |name: &str| named(&document, "changes", name);
    // Half of each prompt leaves more room, whatever it does to answers.
    let unknown = change("shorter prompts");
    let carried = |own: &Value, side: &str| number(&own[side]["replicas"][0]);
    assert!(carried(unknown, "after") < carried(unknown, "before"), "{unknown:#}");
    let relieved = list(unknown, "relieved");
    let prefill = relieved.iter().find(|own| own["resource"] == "prefill_tokens");
    let prefill = prefill.unwrap_or_else(|| panic!("{unknown:#}"));
    let ratio = number(&prefill["to"]) / number(&prefill["from"]);
    assert!((ratio - 0.5).abs() < 0.02, "the same tasks, each half as long: {ratio}");
    // What nobody measured is not claimed, and cannot be watched here.
    assert_eq!(unknown["saving_per_success_pct"], Value::Null);
    assert!(unknown["why"].as_str().is_some_and(|why| why.contains("no saving")), "{unknown:#}");
    assert_eq!(unknown["guardrail"]["holds"], Value::Null);
    assert_eq!(unknown["rollback"]["holds"], Value::Null);
    // 2 x 0.9 x 0.1 x ((1.645 + 0.842) / 0.01)^2
    assert_eq!(unknown["tasks_to_tell"], 11_134);
    let measured = change("measured");
    assert!(number(&measured["saving_per_success_pct"]) > 0.0, "{measured:#}");
    assert_eq!(measured["guardrail"]["holds"], true, "{measured:#}");
    // 0.9 x 0.99 is less than 0.895: it would be taken back at once.
    assert_eq!(measured["rollback"]["holds"], true, "{measured:#}");
    // Nobody said when to take it back: what was promised is proposed.
    let smaller = change("smaller weights");
    assert_eq!(smaller["rollback"]["stated"], false);
    assert_eq!(smaller["rollback"]["expression"], "chat_attainment < 0.99");
    let bandwidth = list(smaller, "relieved").iter().find(|own| own["resource"] == "busy");
    assert!(bandwidth.is_some(), "{smaller:#}");
}

#[test]
fn one_replica_that_is_lost_is_everything() {
    let tiny = with(
        SMALL,
        &[
            ("12 req/s", "0.2 req/s"),
            ("max_model_len = 16384", "replicas = { now = 1, plan = [1, 1] }"),
        ],
    );
    let (_, document) = stressed("lost", &tiny, &[]);
    let lost = named(&document, "scenarios", "replica loss at peak");
    assert_eq!(lost["attainment"]["verdict_now"], "fails");
    assert!(number(&lost["attainment"]["now"]) < 0.2, "{lost:#}");
    assert_eq!(lost["carries"]["now"], Value::Null);
}

#[test]
fn a_stress_of_the_same_name_takes_the_standard_ones_place() {
    let own =
        SMALL.to_owned() + "[[stress]]\nname = \"output +50%\"\noutput = 3.0\nowner = \"ml\"\n";
    let (_, document) = stressed("own", &own, &[]);
    assert_eq!(list(&document, "scenarios").len(), 12);
    close(asked(&document, "output +50%", "output_tokens"), 3.0 * 12.0 * 12.0);
    assert_eq!(named(&document, "scenarios", "output +50%")["owner"], "ml");
}

/// A fallback that allows less than what falls back on it is a rate limit that was ignored.
#[test]
fn limits_of_a_fallback_are_held_against_what_would_come() {
    let provider = r#"
[[route]]
class = ["chat"]
to = "small"
fallback = ["hosted"]

[[provider]]
name = "hosted"
provider = "somebody"
model = "a-model"
input = "$3/Mtok"
output = "$15/Mtok"
rpm = 100
"#;
    let (code, document) = stressed("fallback", &(SMALL.to_owned() + provider), &["--gate"]);
    let shape = named(&document, "failure_shapes", "rate limits ignored");
    assert_eq!(shape["pass"], false, "{shape}");
    // 12/s are 720 a minute.
    let evidence = shape["evidence"].as_str().unwrap_or_default();
    assert!(
        evidence.contains("720 requests a minute") && evidence.contains("allows 100"),
        "{evidence}"
    );
    assert_eq!(code, 1, "the gate says so");
}

#[test]
fn a_budget_that_trips_first_is_said() {
    let poor = SMALL.to_owned() + "[budget]\nmonthly = \"$100\"\n";
    let (_, document) = stressed("budget", &poor, &[]);
    let shape = named(&document, "failure_shapes", "budget cap trips before technical capacity");
    assert_eq!(shape["pass"], false, "{shape}");
    assert!(shape["evidence"].as_str().is_some_and(|said| said.contains("trips")), "{shape}");
}

#[test]
fn a_rollback_that_nobody_can_evaluate_is_refused() {
    let vague = SMALL.to_owned()
        + "[[change]]\nname = \"shorter\"\nprompt = 0.5\nrollback = \"when users complain\"\n";
    let (code, failure) = stressed("vague", &vague, &[]);
    assert_eq!(code, 2);
    let (message, help) = diagnostic(&failure);
    assert!(message.contains("when users complain"), "{message}");
    assert!(help.contains("edit_success_rate < 0.6"), "{help}");
    assert_eq!(failure["diagnostics"][0]["line"], 22, "{failure:#}");
}

/// A pool that only generates takes no calls, so nothing shifts to it; and without events the baseline is the peak.
#[test]
fn nobody_is_sent_to_a_pool_that_only_generates() {
    let (_, document) = stressed("apart", APART, &[]);
    let shift = named(&document, "scenarios", "route-mix shift");
    assert!(shift["not_applicable"].is_string(), "{shift:#}");
    let (one, other) =
        (named(&document, "scenarios", "baseline"), named(&document, "scenarios", "price change"));
    assert_eq!((&one["attainment"], &one["carries"]), (&other["attainment"], &other["carries"]));
}

/// A minute of doubled load that a fleet never gets over, and the same with a budget of retries: the review says it first.
#[test]
fn overload_that_stays_is_said() {
    let example = std::fs::read_to_string(repository().join("examples/metastable.toml"));
    let text = example.expect("an example");
    let retries = r#"timeout = "20s" }"#;
    assert!(text.contains(retries), "the example's retries");
    let scratch = Scratch::new("overload-stays");
    for (name, more, passes) in [("stays", "", false), ("back", r#", budget = "10%""#, true)] {
        let text = text.replace(retries, &format!(r#"timeout = "20s"{more} }}"#));
        let file = scratch.file(&format!("{name}.toml"), text);
        let (_, document) = json(&["stress", &file]);
        let shape = named(&document, "failure_shapes", "overload stays after a surge");
        assert_eq!(shape["pass_now"], passes, "{shape}");
    }
}
