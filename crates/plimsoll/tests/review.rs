//! What `review` says of the fleet of today.

mod common;

use common::{Scratch, plimsoll, text};
use serde_json::Value;

/// One pool, near its line, for a class with a threshold of each kind.
fn reviewed(replicas: u32, slo: &str) -> Value {
    let scratch = Scratch::new(&format!("review-{replicas}-{}", slo.len()));
    let file = scratch.path("scenario.toml");
    let scenario = format!(
        r#"
        [study]
        name = "a test"
        as_of = 2026-11-15

        [[class]]
        name = "chat"
        rate = "30 req/s"
        prompt = {{ p50 = 600, p95 = 2400, max = 8000 }}
        output = {{ p50 = 120, p95 = 500, max = 2000 }}
        slo = {{ ttft = "1s", tpot = "50ms"{slo} }}

        [[event]]
        name = "launch"
        from = "2026-11-17T10:00:00Z"
        to = "2026-11-17T12:00:00Z"
        rate = 1.5

        [[pool]]
        name = "chat"
        model = "llama-3.1-8b"
        accelerator = "H100-SXM"
        engine = "vllm@0.24"
        max_model_len = 16384
        replicas = {replicas}
        "#
    );
    std::fs::write(&file, scenario).expect("written");
    let output = plimsoll(&["review", &file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a document")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What must hold of every table.
fn check(headroom: &Value) {
    let rows = headroom["rows"].as_array().expect("rows");
    assert_eq!(rows.last().expect("rows")["resource"], "mix");
    let mut least: Option<(f64, &str)> = None;
    for row in rows {
        if row["load_line"].is_null() {
            let verdict = if row["beyond"] == true { "ok" } else { "shortfall" };
            assert_eq!(row["verdict"], verdict, "{row}");
            continue;
        }
        let line = number(&row["load_line"]);
        let asked = row["launch"].as_f64().unwrap_or_else(|| number(&row["baseline"]));
        let room = (line - asked) / line;
        assert!((number(&row["headroom"]) - room).abs() < 1e-9, "{row}");
        let verdict = match room {
            room if room < 0.0 => "shortfall",
            room if room < 0.15 => "tight",
            _ => "ok",
        };
        assert_eq!(row["verdict"], verdict, "{row}");
        let resource = row["resource"].as_str().expect("a name");
        if resource != "mix" && least.is_none_or(|(before, _)| room < before) {
            least = Some((room, resource));
        }
    }
    assert_eq!(headroom["first_to_run_out"].as_str(), least.map(|(_, name)| name));
}

/// Two replicas carry thirty a second and half as much again with little to spare; with one lost they do not. Six can lose one.
#[test]
fn a_fleet_and_its_headroom() {
    let few = reviewed(2, "");
    let many = reviewed(6, "");
    let mix = |review: &Value| {
        let rows = review["headroom"]["rows"].as_array().expect("rows").clone();
        number(&rows.last().expect("a mix")["load_line"])
    };
    for review in [&few, &many] {
        check(&review["headroom"]);
        let loss = &review["headroom"]["losses"][0];
        assert_eq!(loss["name"], "a replica of chat");
    }
    // Three times the replicas carry about three times as much.
    let ratio = mix(&many) / mix(&few);
    assert!((2.5..3.6).contains(&ratio), "{ratio}");
    assert_eq!(few["headroom"]["losses"][0]["meets"], false);
    assert_eq!(many["headroom"]["losses"][0]["meets"], true);
    let after = number(&few["headroom"]["losses"][0]["attainment_after"]);
    let before = number(&few["headroom"]["losses"][0]["attainment_before"]);
    assert!(after < before, "{after} {before}");
}

/// A promise that physics forbids leaves no line, and says which promise that is.
#[test]
fn what_nobody_can_keep() {
    let hopeless = reviewed(2, ", ttft_p50 = \"1ms\"");
    let headroom = &hopeless["headroom"];
    check(headroom);
    let rows = headroom["rows"].as_array().expect("rows");
    let mix = rows.last().expect("a mix");
    assert!(mix["load_line"].is_null() && mix["verdict"] == "shortfall", "{mix}");
    let notes = headroom["notes"].to_string();
    assert!(notes.contains("ttft_p50"), "{notes}");
}
