//! `plan`, as it is typed: the document, the screen, other ways to run a pool, and what has changed since.

use crate::common;
use crate::common::plans::{
    LINES, SMALL, carry, feasible, holds_together, list, named, planned, with,
};
use crate::common::reviews::review_of;
use crate::common::{Scratch, count, json, number, plimsoll, run, text};
use plimsoll_testkit::sized;
use serde_json::Value;

/// Programs read this document: what it has, and in which order it begins.
#[test]
fn the_document() {
    let scratch = Scratch::new("plan-document");
    let file = scratch.file("scenario.toml", SMALL);
    let kept = scratch.path("plan.json");
    let output = plimsoll(&["plan", &file, "--json", "--out", &kept, "--threads", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.trim_start_matches(['{', ' ', '\n']).starts_with("\"schema\""), "{printed}");
    // The same bytes on two threads, and the same document in the file.
    let again = plimsoll(&["plan", &file, "--json", "--threads", "2"]);
    assert!(again.stdout == output.stdout, "one thread and two disagree");
    let plan: Value = serde_json::from_str(&printed).expect("JSON");
    let written = std::fs::read_to_string(&kept).expect("written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), plan);
    holds_together(&plan);

    assert_eq!(plan["schema"], "plimsoll/plan/v2");
    assert_eq!((&plan["feasible"], &plan["as_of"]), (&true.into(), &"2026-11-15".into()));
    assert_eq!(plan["infeasible_because"], Value::Array(Vec::new()));
    assert!(plan["id"].as_str().is_some_and(|id| id.len() == 16), "{}", plan["id"]);
    let pool = named(&plan, "pools", "small");
    assert_eq!((&pool["model"], &pool["accelerator"]), (&"llama-3.1-8b".into(), &"L40S".into()));
    assert_eq!(
        (&pool["parallelism"]["tensor"], &pool["parallelism"]["devices"]),
        (&1.into(), &1.into())
    );
    assert_eq!(pool["replicas"]["now"], 1);
    for line in LINES {
        assert!(pool["replicas"][line].is_u64(), "{line}");
    }
    for key in ["low", "high", "level", "n"] {
        assert!(pool["interval"][key].is_number(), "{key}");
    }
    let proof = &pool["proof"];
    assert_eq!(count(&proof["n"]), carry(pool), "{proof}");
    assert_eq!(count(&proof["n_minus_1"]), carry(pool) - 1, "{proof}");
    let target = number(&plan["attainment"]);
    assert!(number(&proof["attainment"]) >= target, "{proof}");
    assert!(number(&proof["attainment_minus_1"]) < target, "{proof}");

    let table = &plan["table"];
    let block = &table["pools"][0];
    assert_eq!((&block["pool"], &block["idle"]), (&"small".into(), &false.into()));
    for resource in
        ["requests", "fresh_prompt_tokens", "output_tokens", "active_kv_tokens", "sequences"]
    {
        let rows = list(block, "rows");
        let row = rows.iter().find(|row| row["resource"] == resource).expect(resource);
        for side in ["today", "planned"] {
            let beyond = row[side]["beyond"] == true;
            assert!(beyond || number(&row[side]["covers"]) > 0.0, "{row}");
        }
    }
    // One replica runs today, and three are needed: prompts are what is short, at once, and first tokens show it.
    let first = &table["runs_out_first"];
    assert_eq!((&first["of"], &first["cause"]), (&"small".into(), &"prefill".into()));
    assert_eq!(first["first_signal"], "ttft");
    assert_eq!(list(block, "rows")[0]["verdict_planned"], "ok");

    let limits = named(&plan, "limits", "small");
    for key in [
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_model_len",
        "queue_requests",
        "kv_ceiling",
        "drain",
    ] {
        assert!(number(&limits[key]["value"]) > 0.0, "{key}");
        assert!(limits[key]["why"].as_str().is_some_and(|why| !why.is_empty()), "{key}");
    }
    assert!(plan["scaling"]["advised"].is_boolean() && plan["scaling"]["why"].is_string());
    let forecast = &plan["forecast"];
    assert_eq!((&forecast["quantile"], &forecast["from"]), (&0.95.into(), &"scenario".into()));
    let planned = list(&forecast["classes"][0]["requests_per_s"], "planned");
    assert_eq!(planned.len(), 24);
    assert!(planned.iter().all(|rate| rate == &Value::from(12.0)), "{planned:?}");
    // The peak is every hour, so a month costs as much as the peak's fleet kept for one.
    let budget = &plan["budget"];
    assert_eq!(list(budget, "by_hour").len(), 24);
    let (hour, month) = (number(&budget["peak_usd_per_hour"]), number(&budget["usd_per_month"]));
    assert!((month / (hour * 730.0) - 1.0).abs() < 1e-9, "{hour} {month}");
    assert_eq!(budget["peak_usd_per_hour"], plan["fleet"]["usd_per_hour"]);
    for own in list(&plan, "alternatives") {
        assert!(own["chosen"] == true || own["rejected"].is_string(), "{own}");
    }
    for own in list(&plan, "assumptions") {
        assert!(own["name"].is_string() && own["source"].is_string(), "{own}");
        assert!(
            ["supplied", "modeled", "measured"].iter().any(|v| own["provenance"] == *v),
            "{own}"
        );
        assert!(own.get("value").is_some() && own.get("date").is_some(), "{own}");
    }
    let rate = named(&plan, "assumptions", "class.chat.rate");
    assert_eq!((&rate["value"], &rate["provenance"]), (&"\"12 req/s\"".into(), &"supplied".into()));
    assert!(
        rate["source"].as_str().is_some_and(|source| source.ends_with("scenario.toml:9")),
        "{rate}"
    );
}

/// A month goes on after the horizon with the events that are in force: the same launch costs the same, however the horizon is cut, and less where it ends.
#[test]
fn a_launch_costs_the_same_however_the_horizon_is_cut() {
    let month = |horizon: &str, until: &str| {
        let hours =
            "[1, 1, 1, 1, 1, 1, 2, 4, 8, 10, 10, 10, 10, 10, 10, 9, 8, 6, 4, 3, 2, 1, 1, 1]";
        let event = format!(
            "[[event]]\nname = \"launch\"\nfrom = 2026-11-17T09:00:00Z\n{until}rate = 2\n\n[[pool]]"
        );
        let text = with(
            SMALL,
            &[
                ("\"1d\"", &format!("\"{horizon}\"")),
                ("\"12 req/s\"", &format!("\"6 req/s\"\nby_hour = {hours}\nweekend = 0.4")),
                ("[[pool]]", &event),
            ],
        );
        let plan = planned("month", &text, &[]).1;
        (number(&plan["budget"]["usd_per_month"]), count(&plan["pools"][0]["replicas"]["total"]))
    };
    let (cut, replicas) = month("2d", "");
    for horizon in sized(&["7d"][..], &["3d", "7d", "21d", "45d"][..]) {
        assert_eq!(month(horizon, ""), (cut, replicas), "{horizon}");
    }
    let (ends, same) = month("7d", "to = 2026-11-19T00:00:00Z\n");
    assert_eq!(same, replicas);
    assert!(ends < cut, "{ends} {cut}");
}

/// Another seed is another plan by its name; what is asked for the same way has the same.
#[test]
fn a_plan_is_named_by_what_it_is_made_of() {
    let scratch = Scratch::new("plan-names");
    let file = scratch.file("scenario.toml", SMALL);
    let id = |options: &[&str]| json(&[&["plan", &file], options].concat()).1["id"].clone();
    let own = id(&[]);
    assert_eq!(own, id(&["--threads", "2"]));
    assert_ne!(own, id(&["--seed", "8"]));
    assert_ne!(own, id(&["--as-of", "2026-11-14"]));
}

/// One replica, one limit, no autoscaler, and why.
#[test]
fn a_tiny_workload_gets_a_short_answer() {
    let (code, screen) = run(&["plan", "examples/support-bot.toml"]);
    assert_eq!(code, 0);
    let named: Vec<&str> = screen
        .lines()
        .map(|line| if line.starts_with("Plan ") { "Plan …" } else { line })
        .collect();
    insta::assert_snapshot!(named.join("\n"), @r#"
    Support bot
    as of 2026-11-15 · sized for Mon 2026-11-16 00:00 UTC · demand at its p95 · 99% good · seed 7

    FEASIBLE: 1 replica, 1 device, 1 node, $10.49/h at the peak, $7,660 a month

    1 replica of `small` (llama-3.1-8b) on 1 device of L40S.
    One carries 6.6 times the busiest hour, so nothing has to follow the demand.
    Seen over 6 h: 99.91% good (99.53% to 99.98%).
    One limit: 63 sequences at once (`--max-num-seqs 63`); 50 ran at most at the load line, and 25% of that for chance.
    No autoscaler: one replica has little to do in the busiest hour: a fixed limit is enough, and an autoscaler has nothing to move.
    Nothing is in reserve: `survive = "replica"` under `[study.reliability]` asks for a second one.

    The cache hits of `support` are those its class states.

    Plan …
    "#);
    let (_, plan) = json(&["plan", "examples/support-bot.toml"]);
    holds_together(&plan);
    let pool = &plan["pools"][0];
    assert_eq!((&pool["tiny"], &pool["replicas"]["total"]), (&true.into(), &1.into()));
    assert_eq!(plan["scaling"]["advised"], false);
    // Whoever asks for a reserve gets it, however little there is to do.
    let text = std::fs::read_to_string(common::repository().join("examples/support-bot.toml"))
        .expect("there");
    let asked =
        with(&text, &[("[[class]]", "[study.reliability]\nsurvive = \"replica\"\n[[class]]")]);
    let two = feasible("tiny-reserve", &asked);
    let replicas = &two["pools"][0]["replicas"];
    assert_eq!((&replicas["failure"], &replicas["total"]), (&1.into(), &2.into()), "{replicas}");
}

/// Every replica more or fewer is told, with the assumption that is another.
#[test]
fn what_has_changed_since() {
    let scratch = Scratch::new("plan-against");
    let old = scratch.path("old.json");
    let base = with(SMALL, &[("\"L40S\"", "\"H100-SXM\"\ntensor_parallel = 1")]);
    let file = scratch.file("scenario.toml", &base);
    let (code, before) = json(&["plan", &file, "--out", &old]);
    assert_eq!(code, 0);
    let (_, same) = json(&["plan", &file, "--against", &old]);
    assert_eq!(same["against"], Value::Array(Vec::new()));

    let check = |from: &str, to: &str, because: &str| {
        let file = scratch.file("scenario.toml", with(&base, &[(from, to)]));
        let (_, after) = json(&["plan", &file, "--against", &old]);
        let changed = list(&after, "against");
        let assumed: Vec<&Value> =
            changed.iter().filter(|own| own["kind"] == "assumption").collect();
        assert_eq!(assumed.len(), 1, "{assumed:?}");
        let name = because.split(':').next().expect("a name");
        assert_eq!(assumed[0]["path"], name);
        let mut moved = 0;
        let (was, is) = (&before["pools"][0]["replicas"], &after["pools"][0]["replicas"]);
        for line in LINES.iter().chain(&["total", "now"]) {
            let path = format!("pools.small.replicas.{line}");
            let told = changed.iter().find(|own| own["path"] == path.as_str());
            assert_eq!(
                told.is_some(),
                was[*line] != is[*line],
                "{path}: {} {}",
                was[*line],
                is[*line]
            );
            if let Some(told) = told {
                assert_eq!((&told["was"], &told["is"]), (&was[*line], &is[*line]));
                assert_eq!(told["because"], serde_json::json!([because]), "{told}");
                moved += 1;
            }
        }
        let (_, screen) = run(&["plan", &file, "--against", &old]);
        assert!(screen.contains(&format!("assumed  {because}")), "{screen}");
        (moved, changed.to_vec())
    };
    let (moved, _) = check("12 req/s", "60 req/s", "class.chat.rate: \"12 req/s\" -> \"60 req/s\"");
    assert!(moved >= 2, "steady and total");
    let (_, changed) =
        check("tensor_parallel = 1", "tensor_parallel = 2", "pool.small.tensor_parallel: 1 -> 2");
    let group = changed.iter().find(|own| own["path"] == "pools.small.parallelism.devices");
    assert_eq!(group.map(|own| (&own["was"], &own["is"])), Some((&1.into(), &2.into())));
}

/// What a pool may be run as instead, and what the plan does with it.
#[test]
fn the_cheapest_that_keeps_its_promises_is_chosen() {
    let on = |accelerator: &str, slo: &str, candidates: &str| {
        let device = format!("\"{accelerator}\"\n{candidates}");
        with(SMALL, &[("\"L40S\"", &device), ("\"1s\"", slo)])
    };
    let cost = |plan: &Value| number(&plan["budget"]["peak_usd_per_hour"]);
    let offer = "candidates = { accelerators = [\"L40S\"] }";
    // Each by itself: a node of the large ones costs more than two of the small.
    let large = feasible("large", &on("H100-SXM", "\"1s\"", ""));
    let small = feasible("small", &on("L40S", "\"1s\"", ""));
    assert!(cost(&small) < cost(&large), "{} {}", cost(&small), cost(&large));
    let chosen = feasible("chosen", &on("H100-SXM", "\"1s\"", offer));
    assert_eq!(chosen["pools"][0]["accelerator"], "L40S");
    assert_eq!(chosen["pools"][0]["replicas"], small["pools"][0]["replicas"]);
    assert_eq!(chosen["budget"]["peak_usd_per_hour"], small["budget"]["peak_usd_per_hour"]);
    assert_eq!(chosen["budget"]["usd_per_month"], small["budget"]["usd_per_month"]);
    let own = list(&chosen, "alternatives");
    let picked: Vec<&Value> = own.iter().filter(|own| own["chosen"] == true).collect();
    assert_eq!((picked.len(), &picked[0]["what"]), (1, &"accelerator = \"L40S\"".into()));
    let written = own.iter().find(|own| own["what"] == "as written").expect("what is written");
    let times = cost(&large) / cost(&small);
    assert_eq!(written["rejected"], format!("costs {times:.2} times as much"), "{written}");
    // Where the small ones are too slow, the large ones stay.
    let kept = feasible("kept", &on("H100-SXM", "\"120ms\"", offer));
    assert_eq!(kept["pools"][0]["accelerator"], "H100-SXM");
    let why = kept["alternatives"][0]["rejected"].as_str().expect("why");
    assert!(why.contains("ttft of class `chat` is not kept") && why.contains(" ms"), "{why}");
    // A group of two is no replica of a crew of ones: a plan has one or the other.
    let groups = on("H100-SXM", "\"300ms\"", "candidates = { tensor_parallel = [2, 4, 16] }");
    let groups = feasible("groups", &groups);
    let own = list(&groups, "alternatives");
    assert!(own.iter().filter(|own| own["chosen"] == true).count() <= 1);
    for other in own.iter().filter(|own| own["chosen"] == false) {
        assert!(other["rejected"].as_str().is_some_and(|why| !why.is_empty()), "{other}");
        if let Some(usd) = other["usd_per_hour"].as_f64() {
            assert!(usd >= cost(&groups), "cheaper than what was chosen: {other}");
        }
    }
    let sixteen = own.iter().find(|own| own["what"] == "tensor_parallel = 16").expect("tried");
    assert!(sixteen["replicas"].is_null(), "{sixteen}");
    let why = sixteen["rejected"].as_str().expect("why");
    assert!(why.contains("a tensor-parallel group of 16 does not fit the 8 devices"), "{why}");
}

/// A device without a price is not chosen for being cheap, nor does it take away the price of the others.
#[test]
fn a_candidate_without_a_price() {
    let busy = with(SMALL, &[("12 req/s", "30 req/s")]);
    let alone = feasible("priced", &busy);
    let offer =
        with(&busy, &[("\"L40S\"", "\"L40S\"\ncandidates = { accelerators = [\"RTX-4090\"] }")]);
    let plan = feasible("unpriced-candidate", &offer);
    assert_eq!(plan["pools"], alone["pools"]);
    assert_eq!(plan["fleet"]["usd_per_hour"], alone["fleet"]["usd_per_hour"]);
    let other = &plan["alternatives"][0];
    assert_eq!((&other["accelerator"], &other["usd_per_hour"]), (&"RTX-4090".into(), &Value::Null));
    let why = other["rejected"].as_str().expect("why");
    assert!(why.contains("nobody knows what RTX-4090 costs"), "{why}");
}

/// Tokens that are rented: the limits of the providers are what runs out.
#[test]
fn without_devices_the_providers_limits_are_the_answer() {
    let (code, plan) = json(&["plan", "examples/provider-limits.toml"]);
    assert!([0, 1].contains(&code), "{plan:#}");
    holds_together(&plan);
    assert!(list(&plan, "pools").is_empty() && list(&plan, "limits").is_empty());
    assert_eq!(plan["scaling"]["advised"], false);
    let caps = list(&plan["budget"], "caps");
    let cap = |name: &str| named(&plan["budget"], "caps", name);
    for name in [
        "provider.hosted.rpm",
        "provider.hosted.tpm",
        "provider.second.rpm",
        "provider.second.itpm",
        "provider.second.otpm",
    ] {
        let own = cap(name);
        assert_eq!(
            own["trips_at"].is_null(),
            number(&own["peak"]) <= number(&own["limit"]),
            "{own}"
        );
        assert!(list(&plan["table"], "shared").iter().any(|row| row["name"] == name), "{name}");
    }
    assert!(caps.len() >= 5);
    // Four fifths of 3 summaries and of half an answer with its calls, a minute.
    let calls = number(&cap("provider.hosted.rpm")["peak"]);
    assert!(calls > 60.0 * 0.8 * 3.0, "{calls}");
    assert_eq!(plan["table"]["runs_out_first"]["cause"], "provider");
    let (_, screen) = run(&["plan", "examples/provider-limits.toml"]);
    assert!(screen.contains("hosted, requests a minute"), "{screen}");
    // Nothing is said of replicas that there are none of.
    for absent in ["0 replicas", "No fleet of these", "each pool by itself", "fresh prompt tokens"]
    {
        assert!(!screen.contains(absent), "`{absent}` in {screen}");
    }
}

/// Scenarios that newcomers run are planned, whatever the answer is.
#[test]
fn examples_are_planned() {
    let all = ["metastable", "two-regions", "disaggregated", "long-context"];
    for name in sized(&all[..1], &all) {
        let (code, plan) = json(&["plan", &format!("examples/{name}.toml")]);
        assert_eq!(code, i32::from(plan["feasible"] != true), "{name}: {plan:#}");
        holds_together(&plan);
        for pool in list(&plan, "pools") {
            assert!(count(&pool["replicas"]["total"]) >= carry(pool).max(1), "{name}: {pool}");
        }
    }
}

/// The launch of a coding assistant: two pools, seven times the fresh tokens.
#[test]
fn the_launch_week() {
    let reviewed = review_of("launch-week");
    let plan = &reviewed.document["plan"];
    holds_together(plan);
    let names: Vec<&Value> = list(plan, "pools").iter().map(|pool| &pool["name"]).collect();
    assert_eq!(names, ["completions", "edits"]);
    for pool in list(plan, "pools") {
        let replicas = &pool["replicas"];
        assert!(
            count(&replicas["total"]) >= carry(pool) + count(&replicas["failure"]),
            "{replicas}"
        );
        assert!(
            count(&replicas["failure"]) >= 1 && count(&replicas["forecast"]) >= 1,
            "{replicas}"
        );
    }
    // A replica of the large model is a whole node.
    let edits = named(plan, "pools", "edits");
    assert_eq!(count(&edits["nodes"]), count(&edits["replicas"]["total"]));
    for block in list(&plan["table"], "pools") {
        let rows = list(block, "rows");
        let fresh = rows.iter().find(|row| row["resource"] == "fresh_prompt_tokens").expect("one");
        let times = number(&fresh["launch"]) / number(&fresh["baseline"]);
        assert!((2.0..15.0).contains(&times), "{fresh}");
    }
    let first = &plan["table"]["runs_out_first"];
    assert_eq!((&first["of"], &first["cause"]), (&"edits".into(), &"decode".into()));
    // An order is placed its lead time before it is needed.
    for order in list(&plan["budget"], "orders") {
        assert_eq!(
            number(&order["lead_time_s"]).to_bits(),
            (14.0f64 * 86_400.0).to_bits(),
            "{order}"
        );
    }
}
