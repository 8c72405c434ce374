//! Plans that cannot be had, and input that is none: what is in the way is said, with a way out.

use crate::common::plans::{SMALL, feasible, infeasible, list, planned, with};
use crate::common::{Scratch, count, diagnostic, json, number, run};
use serde_json::Value;

/// A region with devices, at the end of a scenario.
fn region(devices: &str) -> String {
    format!(
        "[[region]]\nname = \"here\"\nprice_region = \"us-east-1\"\naccelerators = [{{ {devices} }}]\n"
    )
}

/// A device that nobody has a price for is planned all the same: what it costs is unknown and never 0, and what to add is said.
#[test]
fn without_a_price_money_is_unknown() {
    let plan = feasible("no-price", &with(SMALL, &[("\"L40S\"", "\"RTX-4090\"")]));
    assert!(count(&plan["pools"][0]["replicas"]["total"]) > 1);
    let budget = &plan["budget"];
    for key in ["peak_usd_per_hour", "usd_per_month", "interval", "static_usd_per_month"] {
        assert!(budget[key].is_null(), "{key}: {}", budget[key]);
    }
    for key in ["usd_per_hour", "bound_usd_per_hour", "gap"] {
        assert!(plan["fleet"][key].is_null(), "{key}");
    }
    for node in list(&plan["fleet"], "nodes") {
        assert!(node["node_usd_per_hour"].is_null() && node["usd_per_hour"].is_null(), "{node}");
    }
    for line in list(&plan["pools"][0], "reserve") {
        assert!(line["usd_per_month"].is_null(), "{line}");
    }
    for hour in list(budget, "by_hour") {
        assert!(hour["usd"].is_null() && hour["usd_median"].is_null(), "{hour}");
    }
    let notes = plan["notes"].to_string();
    assert!(notes.contains("RTX-4090") && notes.contains("[[prices.node]]"), "{notes}");
    // And with what it says to add, it is known.
    let price = "[[prices.node]]\naccelerator = \"RTX-4090\"\non_demand = \"$0.50/h\"\n";
    let priced = with(SMALL, &[("\"L40S\"", "\"RTX-4090\"")]) + price;
    let plan = feasible("a-price", &priced);
    assert!(number(&plan["budget"]["usd_per_month"]) > 0.0, "{:#}", plan["budget"]["notes"]);
}

/// A promise below what one request alone takes is refused, and that is said in milliseconds.
#[test]
fn nobody_is_faster_than_the_device() {
    let (plan, what, relax) = infeasible("floor", &with(SMALL, &[("\"1s\"", "\"20ms\"")]));
    let floor = &plan["floors"][0];
    assert_eq!((&floor["promise"], &floor["promised_ms"]), (&"ttft".into(), &20.0.into()));
    let ms = number(&floor["floor_ms"]);
    assert!((100.0..1000.0).contains(&ms), "{floor}");
    let said = format!("{ms:.0} ms");
    assert!(what.contains("20 ms") && what.contains(&said) && relax.contains(&said), "{what}");
    assert_eq!(plan["infeasible_because"][0]["kind"], "slo");
    // The promise that it says can be kept can.
    let kept = with(SMALL, &[("\"1s\"", &format!("\"{:.0}ms\"", ms * 1.25))]);
    assert!(count(&feasible("above-the-floor", &kept)["pools"][0]["replicas"]["total"]) > 0);
}

#[test]
fn nothing_is_planned_for_nobody() {
    let (code, failure) = planned("nobody", &with(SMALL, &[("12 req/s", "0 req/s")]), &[]);
    let (message, help) = diagnostic(&failure);
    assert_eq!(code, 2, "{failure:#}");
    assert!(message.contains("nobody asks for anything"), "{message}");
    assert!(help.contains("`rate`"), "{help}");
}

/// A quota that does not hold one group is told as that, and not as too few replicas.
#[test]
fn a_quota_below_one_replica() {
    let text = with(
        SMALL,
        &[
            ("\"L40S\"", "\"H100-SXM\"\nreplicas = { now = 0, plan = [0, 8] }"),
            ("max_model_len = 16384", "tensor_parallel = 8"),
        ],
    );
    let short = text.clone() + &region("accelerator = \"H100-SXM\", quota = 4");
    let (plan, what, relax) = infeasible("no-room", &short);
    assert_eq!(plan["infeasible_because"][0]["kind"], "quota");
    assert_eq!(
        what,
        "the quota of 4 H100-SXM in `here` cannot hold the weights of one replica, which takes 8"
    );
    assert_eq!(relax, "`quota = 8` for H100-SXM in region `here`");
    assert!(plan["fleet"].is_null());
    // As it says.
    feasible("room", &(text + &region("accelerator = \"H100-SXM\", quota = 8")));
}

/// Where what is said to make room is done, there is room.
#[test]
fn what_is_said_to_make_room_does() {
    let ceiling = |most: u64| format!("{SMALL}replicas = {{ now = 1, plan = [1, {most}] }}\n");
    let (plan, what, relax) = infeasible("ceiling", &ceiling(2));
    let needs = count(&plan["pools"][0]["replicas"]["total"]);
    assert_eq!(plan["infeasible_because"][0]["kind"], "replicas");
    assert_eq!(what, format!("pool `small` needs {needs} replicas, and its plan allows 2"));
    assert_eq!(relax, format!("`plan = [1, {needs}]` under `replicas` of pool `small`"));
    feasible("no-ceiling", &ceiling(needs));
    infeasible("still-a-ceiling", &ceiling(needs - 1));

    let quota =
        |n: u64| SMALL.to_owned() + &region(&format!("accelerator = \"L40S\", quota = {n}"));
    let (plan, what, relax) = infeasible("quota", &quota(4));
    assert_eq!(plan["infeasible_because"][0]["kind"], "quota");
    assert!(what.contains("the quota of 4 L40S in `here` is too small: 4 more"), "{what}");
    assert!(relax.contains("`quota = 8` for L40S in region `here`"), "{relax}");
    feasible("no-quota", &quota(8));
}

/// Devices that come too late are no devices; those that were ordered in time are.
#[test]
fn a_lead_time_that_has_passed() {
    let text = |as_of: &str| {
        let text = with(
            SMALL,
            &[
                ("12 req/s", "60 req/s"),
                ("as_of = 2026-11-15", &format!("as_of = {as_of}\nstart = 2026-11-16")),
            ],
        );
        text + &region("accelerator = \"L40S\", quota = 64, available = 0, lead_time = \"14d\"")
    };
    let (plan, what, _) = infeasible("late", &text("2026-11-15"));
    assert_eq!(plan["infeasible_because"][0]["kind"], "lead_time");
    let order = &plan["budget"]["orders"][0];
    // One replica runs on a node of four today.
    let devices = count(&plan["pools"][0]["nodes"]) * 4 - 4;
    assert_eq!(count(&order["devices"]), devices, "{order}");
    assert_eq!(order["too_late"], true);
    assert_eq!(order["order_by"], "Mon 2026-11-02 00:00 UTC", "{order}");
    assert!(what.contains("Mon 2026-11-02") && what.contains(&format!("{devices} more")), "{what}");
    let plan = feasible("in-time", &text("2026-11-01"));
    assert_eq!(plan["budget"]["orders"][0]["too_late"], false);
}

/// Weights that fit no device are refused before anything is simulated.
#[test]
fn weights_that_do_not_fit() {
    let text = with(SMALL, &[("llama-3.1-8b", "llama-3.3-70b")]);
    let (code, failure) = planned("weights", &text, &[]);
    let (message, help) = diagnostic(&failure);
    assert_eq!(code, 2, "{failure:#}");
    assert!(message.contains("pool `small` does not fit its devices"), "{message}");
    assert!(help.contains("plimsoll fit"), "{help}");
}

#[test]
fn contradictory_routes() {
    let routes = "[[route]]\nto = \"small\"\nshare = 0.7\n[[route]]\nclass = [\"chat\"]\nto = \"small\"\nshare = 0.6\n";
    let (code, failure) = planned("routes", &(SMALL.to_owned() + routes), &[]);
    let (message, help) = diagnostic(&failure);
    assert_eq!(code, 2, "{failure:#}");
    assert!(message.contains("routes of class `chat` take 1.3"), "{message}");
    assert!(help.contains("add up to 1"), "{help}");
}

/// Whoever has no time is not told that no number of replicas would do.
#[test]
fn a_plan_that_is_stopped_says_so() {
    let (code, plan) = planned("stopped", SMALL, &["--time-limit", "1ms"]);
    assert_eq!(code, 1, "{plan:#}");
    let why = list(&plan, "infeasible_because");
    assert_eq!((why.len(), &why[0]["kind"]), (1, &"time".into()), "{why:?}");
    assert!(
        plan["notes"].to_string().contains("`--time-limit` gives it more"),
        "{}",
        plan["notes"]
    );
    let total = count(&plan["pools"][0]["replicas"]["total"]);
    assert!(total < 100, "{total} replicas were made up");
}

/// Every mistake of a file at once, each where it was written.
#[test]
fn every_mistake_of_a_file() {
    let text = with(SMALL, &[("rate =", "ratee ="), ("\"L40S\"", "\"L40\"")]);
    let (code, failure) = planned("mistakes", &text, &[]);
    assert_eq!(code, 2, "{failure:#}");
    let all = list(&failure, "diagnostics");
    let lines: Vec<u64> = all.iter().filter_map(|own| own["line"].as_u64()).collect();
    assert!(lines.contains(&9) && all.len() >= 2, "{failure:#}");
}

/// What is held against must be a plan, and that is found out before anything is simulated.
#[test]
fn against_what_is_no_plan() {
    let scratch = Scratch::new("plan-against-nothing");
    let file = scratch.file("scenario.toml", SMALL);
    let check = |name: &str, expect: &str| {
        let (code, failure) = json(&["plan", &file, "--against", name]);
        let (message, help) = diagnostic(&failure);
        assert_eq!(code, 2, "{failure:#}");
        assert!(message.contains(expect), "{message}");
        help
    };
    let other = scratch.file("other.json", "{\"schema\": \"plimsoll/curve/v1\"}");
    let help = check(&other, "is a `plimsoll/curve/v1`, and no plan");
    assert!(help.contains("--out plan.json"), "{help}");
    check(&scratch.file("none.json", "{}"), "says no schema");
    check(&scratch.file("text.json", "hello"), "is not JSON");
    check(&scratch.path("nowhere.json"), "cannot be read");
}

/// People are told the same as programs, and the exit code with it.
#[test]
fn people_are_told_what_is_in_the_way() {
    let scratch = Scratch::new("plan-refused-screen");
    let file = scratch.file("scenario.toml", with(SMALL, &[("\"1s\"", "\"20ms\"")]));
    let (code, screen) = run(&["plan", &file]);
    assert_eq!(code, 1);
    let (_, plan): (i32, Value) = json(&["plan", &file]);
    let what = plan["infeasible_because"][0]["what"].as_str().expect("said");
    assert!(screen.contains("NOT FEASIBLE") && screen.contains(what), "{screen}");
}

/// What an infeasible plan would cost is of the fleet that it names: the month is that fleet's, kept every hour where the demand is flat.
#[test]
fn an_infeasible_plan_names_one_fleet() {
    let scratch = Scratch::new("one-fleet");
    let text = with(
        SMALL,
        &[(
            "max_model_len = 16384",
            "max_model_len = 16384\nreplicas = { now = 1, plan = [1, 2] }",
        )],
    );
    let (code, plan) = json(&["plan", &scratch.file("s.toml", text)]);
    assert_eq!((code, &plan["feasible"]), (1, &false.into()));
    let total = count(&plan["pools"][0]["replicas"]["total"]);
    assert!(total > 2, "{total}");
    let budget = &plan["budget"];
    let (hour, month) = (number(&budget["peak_usd_per_hour"]), number(&budget["usd_per_month"]));
    assert!((month / (hour * 730.0) - 1.0).abs() < 1e-6, "{month} for {hour} an hour");
}
