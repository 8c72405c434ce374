//! What `review` says: all of what a launch is decided on.

use crate::common::{Scratch, json, number};
use serde_json::Value;

/// One pool, near its line, for a class with a threshold of each kind.
fn scenario(replicas: u32, slo: &str) -> String {
    format!(
        r#"
        [study]
        name = "a test"
        as_of = 2026-11-15
        start = 2026-11-16T00:00:00Z
        horizon = "3d"

        [[class]]
        name = "chat"
        rate = "30 req/s"
        prompt = {{ p50 = 600, p95 = 2400, max = 8000 }}
        output = {{ p50 = 120, p95 = 500, max = 2000 }}
        slo = {{ ttft = "1s", tpot = "50ms"{slo} }}
        success_rate = 0.8

        [[event]]
        name = "launch"
        from = "2026-11-17T10:00:00Z"
        to = "2026-11-17T12:00:00Z"
        rate = {{ low = 1.2, likely = 1.5, high = 1.8 }}

        [[pool]]
        name = "chat"
        model = "llama-3.1-8b"
        accelerator = "H100-SXM"
        instance = "p5.48xlarge"
        engine = "vllm@0.24"
        max_model_len = 16384
        replicas = {{ now = {replicas}, plan = [1, 16] }}
        "#
    )
}

/// The exit code and the document.
fn reviewed(replicas: u32, slo: &str, options: &[&str]) -> (i32, Value) {
    let scratch = Scratch::new(&format!("review-{replicas}-{}-{}", slo.len(), options.concat()));
    let file = scratch.file("scenario.toml", scenario(replicas, slo));
    json(&[&["review", &file], options].concat())
}

fn table(review: &Value) -> &Value {
    &review["plan"]["table"]
}

/// What must hold of every launch table: verdicts follow from what is covered, a feasible plan covers the launch, and no computed row is short while the mix holds.
pub fn check(review: &Value) {
    let table = table(review);
    let verdict = |covers: f64| match 1.0 - 1.0 / covers.max(1e-9) {
        room if room < 0.0 => "shortfall",
        room if room < 0.15 => "tight",
        _ => "ok",
    };
    for block in table["pools"].as_array().expect("pools") {
        let rows = block["rows"].as_array().expect("rows");
        assert_eq!(rows.is_empty(), block["idle"] == true, "{block}");
        // What was measured owes nothing to what is computed.
        let mix = |side: &str| match rows[0]["provenance"] == "observed" {
            true => None,
            false => rows[0][side]["covers"].as_f64(),
        };
        for row in rows {
            let demand = row["launch"].as_f64().or(row["baseline"].as_f64());
            for (side, word) in [("today", "verdict_today"), ("planned", "verdict_planned")] {
                let reach = &row[side];
                let said = row[word].as_str().expect("a verdict");
                let Some(covers) = reach["covers"].as_f64() else {
                    assert!(
                        said == if reach["beyond"] == true { "ok" } else { "unknown" },
                        "{row}"
                    );
                    continue;
                };
                let expected = match (row["resource"].as_str(), covers < 1.0) {
                    (Some("active_kv_tokens"), true) => "memory_risk",
                    _ => verdict(covers),
                };
                assert_eq!(said, expected, "{row}");
                if let (Some(demand), Some(carries)) = (demand, reach["carries"].as_f64()) {
                    assert!((carries - covers * demand).abs() < 1e-6 * carries.max(1.0), "{row}");
                }
                // Time of prompts and of decodes is part of the whole.
                let computed = row["unit"] == "tokens/s";
                if let Some(mix) = mix(side).filter(|_| computed) {
                    assert!(covers >= mix * (1.0 - 1e-9), "{row}");
                }
            }
        }
    }
    if review["plan"]["feasible"] == true {
        let planned = &table["fleet"]["planned"];
        assert!(planned["beyond"] == true || number(&planned["covers"]) >= 1.0, "{planned}");
        for block in table["pools"].as_array().expect("pools") {
            for row in block["rows"].as_array().expect("rows") {
                assert_ne!(row["verdict_planned"], "shortfall", "{row}");
            }
        }
    }
}

/// A fleet whose load line lies beyond what was tried has no line to draw, and no number that it carries.
#[test]
fn what_lies_beyond_is_not_drawn() {
    let (_, review) = reviewed(40, "", &[]);
    check(&review);
    let today = &table(&review)["fleet"]["today"];
    assert_eq!((&today["beyond"], &today["at_least"]), (&true.into(), &10.0.into()), "{today}");
    assert!(today["covers"].is_null() && today["carries"].is_null(), "{today}");
    for resource in review["ahead"]["resources"].as_array().expect("resources") {
        assert!(resource["load_line_now"].is_null(), "{resource}");
    }
    let answers = review["questions"].to_string();
    assert!(!answers.contains("1000%"), "{answers}");
}

/// One replica does not carry thirty a second and more than half as much again; three do. What the verdict says is what the table says.
#[test]
fn the_verdict_is_that_of_the_table() {
    let (code, few) = reviewed(1, "", &[]);
    assert_eq!(code, 0, "no gate was asked for: {}", few["verdict"]);
    let (code, many) = reviewed(3, "", &["--gate"]);
    assert_eq!(code, 0, "today's fleet carries it: {}", many["verdict"]);
    let covers = |review: &Value| number(&table(review)["fleet"]["today"]["covers"]);
    for (review, decision) in [(&few, "not_ready"), (&many, "ready")] {
        check(review);
        assert_eq!(review["verdict"]["today"], decision, "{}", review["verdict"]);
        assert_eq!(covers(review) >= 1.0, decision == "ready", "{}", table(review)["fleet"]);
    }
    // Three times the replicas carry about three times as much.
    let ratio = covers(&many) / covers(&few);
    assert!((2.3..4.0).contains(&ratio), "{ratio}");
    let says = few["verdict"]["says"].as_str().expect("a sentence");
    let start = format!(
        "Today's fleet carries {:.0}% of the launch. `chat` runs out",
        100.0 * covers(&few)
    );
    assert!(says.starts_with(&start), "{says}");
}

/// Lines that were measured take the place of ours: 400 requests, 650,000 prompt tokens, 22,000 output tokens and 240,000 KV tokens for some 300, 720,000,
/// 19,500 and more. The one that decides is named.
#[test]
fn measured_lines_give_the_four_verdicts() {
    let (code, review) = json(&["review", "examples/measured-lines.toml", "--gate"]);
    assert_eq!(code, 1);
    check(&review);
    let block = &table(&review)["pools"][0];
    let rows = block["rows"].as_array().expect("rows");
    let row = |resource: &str| rows.iter().find(|row| row["resource"] == resource).expect("a row");
    let expected = [
        ("requests", 300.0, "ok"),
        ("fresh_prompt_tokens", 720_000.0, "shortfall"),
        ("output_tokens", 19_500.0, "tight"),
        ("active_kv_tokens", 0.0, "memory_risk"),
    ];
    for (resource, demand, verdict) in expected {
        let row = row(resource);
        assert_eq!(
            (&row["verdict_today"], &row["provenance"]),
            (&verdict.into(), &"observed".into())
        );
        assert!(row["source"].as_str().is_some_and(|s| s.ends_with("2026-11-02")), "{row}");
        if demand > 0.0 {
            assert!((number(&row["launch"]) / demand - 1.0).abs() < 0.015, "{row}");
        }
    }
    assert_eq!(row("requests")["today"]["carries"], 400.0);
    // 650 of 720 thousand: that is what the fleet carries, whatever is computed, and the plan has replicas for it.
    let fleet = &table(&review)["fleet"];
    assert_eq!(fleet["today"]["covers"], row("fresh_prompt_tokens")["today"]["covers"]);
    assert!(number(&fleet["planned"]["covers"]) >= 1.0, "{fleet}");
    assert_eq!(table(&review)["runs_out_first"]["cause"], "prefill");
    let says = review["verdict"]["says"].as_str().expect("a sentence");
    assert!(says.contains("`assistant` runs out first: prefill. MEMORY RISK"), "{says}");
}

/// A line of nothing is refused, and one that takes more replicas than any plan has is no plan.
#[test]
fn measured_lines_that_make_no_sense() {
    let example =
        std::fs::read_to_string(crate::common::repository().join("examples/measured-lines.toml"));
    let example = example.expect("the example");
    let scratch = Scratch::new("review-lines");
    let answer = |carries: &str| {
        let text = example.replace("carries = 650000", &format!("carries = {carries}"));
        json(&["plan", &scratch.file("s.toml", text)])
    };
    let (code, refused) = answer("0");
    assert_eq!(
        (code, &refused["diagnostics"][0]["code"]),
        (2, &"out-of-range".into()),
        "{refused}"
    );
    let (code, plan) = answer("1e-6");
    assert_eq!((code, &plan["feasible"]), (1, &false.into()));
    let why = plan["infeasible_because"][0]["what"].as_str().expect("why");
    assert!(why.contains("by its measured line of fresh prompt tokens"), "{why}");
}

/// Behind a gate, only a fleet that is READY is a yes; without one the answer is there to be read.
#[test]
fn a_gate_says_no_where_a_fleet_falls_short() {
    let (code, few) = reviewed(1, "", &["--gate"]);
    assert_eq!(code, 1);
    let because = few["verdict"]["because"].as_array().expect("reasons");
    assert!(because[0].as_str().is_some_and(|why| why.contains("NOT READY")), "{because:?}");
    assert_eq!(reviewed(1, "", &["--gate=plan"]).0, 0, "the planned fleet is ready");
}

/// A hosted model that works on 40 requests at once, and is asked for 87: it turns most of them away, and nothing of that "keeps every promise". With room for 400 it does.
/// What is asked for is 20 requests a second for the time that each of them takes, whatever the limit lets in.
#[test]
fn a_provider_that_turns_requests_away_keeps_no_promise() {
    let scratch = Scratch::new("review-hosted");
    let reviewed = |at_once: u32| {
        let text = format!("{HOSTED}concurrency = {at_once}\n");
        let file = scratch.file("s.toml", text);
        json(&["review", &file, "--gate"])
    };
    let (code, few) = reviewed(40);
    assert_eq!((code, &few["verdict"]["today"]), (1, &"not_ready".into()), "{}", few["verdict"]);
    let (code, many) = reviewed(400);
    assert_eq!((code, &many["verdict"]["today"]), (0, &"ready".into()), "{}", many["verdict"]);
    let row = |review: &Value| {
        let rows = table(review)["shared"].as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["name"] == "provider.hosted.concurrency").expect("a row")
    };
    let (few, many) = (row(&few), row(&many));
    assert_eq!((&few["verdict"], &many["verdict"]), (&"shortfall".into(), &"ok".into()));
    assert_eq!(few["planned"], many["planned"], "what is asked for is not what is let in");
    // 200 tokens at some 20 ms each, and a first one.
    assert!((60.0..110.0).contains(&number(&few["planned"])), "{few}");
}

const HOSTED: &str = r#"
[study]
name = "a test"
as_of = 2026-11-15
horizon = "1d"

[[class]]
name = "chat"
rate = "20 req/s"
prompt = 500
output = 200
slo = { ttft = "5s" }

[[route]]
to = "hosted"

[[provider]]
name = "hosted"
provider = "acme"
model = "some-model"
input = "$3/Mtok"
output = "$15/Mtok"
"#;

/// A budget cap reads `unknown` where a price is missing.
#[test]
fn what_is_not_known_is_not_ok() {
    let scratch = Scratch::new("review-unknown");
    let text = r#"
[study]
name = "a test"
as_of = 2026-11-15
horizon = "1d"

[[class]]
name = "chat"
rate = "2 req/s"
prompt = 500
output = 100
slo = { ttft = "5s" }

[budget]
monthly = "$900,000"

[[region]]
name = "elsewhere"
price_region = "nowhere-1"

[[pool]]
name = "main"
model = "llama-3.1-8b"
accelerator = "H100-SXM"
replicas = 2
regions = ["elsewhere"]
"#;
    let file = scratch.file("s.toml", text);
    let (_, review) = json(&["review", &file]);
    let rows = table(&review)["shared"].as_array().expect("rows");
    let cap = rows.iter().find(|row| row["name"] == "budget.monthly").expect("a row");
    assert_eq!((&cap["planned"], &cap["verdict"]), (&Value::Null, &"unknown".into()), "{cap}");
}

/// All of the artifact is there, each part once, and what is shown of it in one place is what is shown in another.
#[test]
fn everything_a_launch_is_decided_on() {
    let (_, review) = reviewed(3, "", &[]);
    let list = |key: &str| review[key].as_array().unwrap_or_else(|| panic!("{key}")).clone();
    assert_eq!(review["stress"]["failure_shapes"].as_array().expect("shapes").len(), 8);
    assert!(review["stress"]["scenarios"].as_array().expect("hard times").len() >= 12);
    // The reserve is a waterfall that adds up.
    let pool = &review["plan"]["pools"][0];
    let lines = pool["reserve"].as_array().expect("lines");
    let sum: u64 = lines.iter().map(|line| line["replicas"].as_u64().expect("a count")).sum();
    assert_eq!(pool["replicas"]["total"].as_u64(), Some(sum));
    // Curves go from little to much, and have a line.
    for curve in list("curves") {
        let loads: Vec<f64> = curve["points"]
            .as_array()
            .expect("points")
            .iter()
            .map(|p| number(&p["load"]))
            .collect();
        assert!(loads.len() >= 6 && loads.is_sorted(), "{loads:?}");
        assert!(number(&curve["line_load"]) > 0.0);
    }
    // The memory budget sums to the device.
    let budget = review["memory"][0]["budget"].as_array().expect("lines");
    let bytes: i64 = budget.iter().map(|line| line["bytes"].as_i64().expect("bytes")).sum();
    assert_eq!(Some(bytes), review["memory"][0]["device_bytes"].as_i64());
    // The fan has every hour, each level above the last, and the event is where it was written.
    let ahead = &review["ahead"];
    assert_eq!(ahead["events"], serde_json::json!([[34, 36]]));
    for resource in ahead["resources"].as_array().expect("resources") {
        let bands = resource["bands"].as_array().expect("bands");
        let at = |band: &Value, hour: usize| number(&band["per_s"][hour]);
        assert_eq!(bands[0]["per_s"].as_array().expect("hours").len(), 72);
        for pair in bands.windows(2) {
            assert!(at(&pair[0], 34) < at(&pair[1], 34), "{resource}");
            assert!((at(&pair[0], 0) - at(&pair[1], 0)).abs() < 1e-9, "{resource}");
        }
    }
    // Windows of the three ways are of the same demand.
    let check = &review["plan"]["scaling"]["check"];
    if !check.is_null() {
        let came = |way: &str| -> Vec<f64> {
            let series = check[way]["series"].as_array().expect("windows");
            series.iter().map(|window| number(&window["offered_per_s"])).collect()
        };
        assert_eq!(came("static_plan"), came("policy"));
        assert_eq!(came("static_plan"), came("oracle"));
    }
    assert_eq!(review["cost"]["closes"], true);
    let signals = list("signals");
    let first: Vec<&str> =
        signals.iter().take(2).map(|own| own["signal"].as_str().expect("a name")).collect();
    assert_eq!(first, ["queue_wait", "allocation_failures"]);
    let questions = list("questions");
    assert_eq!(questions.len(), 12);
    for own in &questions {
        let answer = own["answer"].as_str().expect("an answer");
        assert!(own["question"].as_str().is_some_and(|text| text.ends_with('?')), "{own}");
        assert!(
            own["known"] == true && answer.chars().any(|c| c.is_ascii_digit())
                || answer.starts_with("Not known"),
            "{own}"
        );
    }
    let last = questions.last().expect("twelve")["answer"].as_str().expect("an answer");
    assert!(last.starts_with("On Thu 2026-11-19"), "{last}");
    let assumptions = list("assumptions");
    let aged = assumptions.iter().filter(|own| own["age_days"].is_i64());
    assert!(aged.count() > 0 && assumptions.iter().all(|own| own["source"].is_string()));
}

/// A promise that physics forbids: no fleet keeps it, and which promise that is is said.
#[test]
fn what_nobody_can_keep() {
    let (code, hopeless) = reviewed(2, ", ttft_p50 = \"1ms\"", &[]);
    assert_eq!(code, 0, "no gate was asked for");
    check(&hopeless);
    assert_eq!(hopeless["verdict"]["plan"], "not_ready");
    let because = hopeless["verdict"]["because"].to_string();
    assert!(because.contains("ttft_p50"), "{because}");
    assert_eq!(reviewed(2, ", ttft_p50 = \"1ms\"", &["--gate=plan"]).0, 1);
}

/// A review that was cut short concludes nothing.
#[test]
fn what_was_not_finished_says_nothing_of_the_fleet() {
    let (code, review) = reviewed(2, "", &["--time-limit", "1ms", "--gate"]);
    assert_eq!(code, 1);
    assert_eq!(review["verdict"]["today"], "unknown", "{}", review["verdict"]);
    let says = review["verdict"]["says"].as_str().expect("a sentence");
    assert!(says.contains("the results are incomplete"), "{says}");
}

/// The same review as a page and as Markdown, written whole.
#[test]
fn pages_say_what_the_document_says() {
    let scratch = Scratch::new("review-pages");
    let file = scratch.file("scenario.toml", scenario(3, ""));
    let (html, markdown) = (scratch.path("review.html"), scratch.path("review.md"));
    let (_, review) = json(&["review", &file, "--html", &html, "--markdown", &markdown]);
    let says = review["verdict"]["says"].as_str().expect("a sentence");
    for path in [&html, &markdown] {
        let page = std::fs::read_to_string(path).expect("a page");
        assert!(page.contains(says), "{path} does not say: {says}");
        let questions = review["questions"].as_array().expect("questions");
        for own in questions {
            let question = own["question"].as_str().expect("a question");
            assert!(page.contains(question), "{path} does not ask: {question}");
        }
    }
}
