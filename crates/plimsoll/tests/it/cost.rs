//! `cost`, as it is typed: books of a ledger and of a scenario, a bill, and the FOCUS table.

use crate::common::{Scratch, count, diagnostic, json, number, plimsoll, text};
use serde_json::Value;

/// A pool and a provider; two tenants of which one reads and the other writes.
const SCENARIO: &str = r#"
[study]
name = "books"
as_of = 2026-11-15
start = 2026-11-16T00:00:00Z
horizon = "1d"

[[class]]
name = "reads"
rate = "2 req/s"
prompt = 3000
output = 20
tenant = "reader"
success_rate = 0.5

[[class]]
name = "writes"
rate = "1 req/s"
prompt = 100
output = 400
tenant = "writer"
success_rate = 0.8

[[class]]
name = "asks"
rate = "0.1 req/s"
prompt = 1000
output = 100
tenant = "asker"
success_rate = 1.0

[[route]]
class = ["reads", "writes"]
to = "own"

[[route]]
class = ["asks"]
to = "hosted"

[[pool]]
name = "own"
model = "llama-3.1-8b"
accelerator = "H100-SXM"
max_model_len = 16384
replicas = { now = 2, plan = [1, 8] }

[[provider]]
name = "hosted"
provider = "someone"
model = "a-model"
input = "$3/Mtok"
cached_input = "$0.30/Mtok"
output = "$15/Mtok"

[prices]
[[prices.node]]
accelerator = "H100-SXM"
on_demand = "$2/h"
reserved = "$1/h"
as_of = 2026-11-01

[costs]
storage = "$0.10/h"

[budget]
per_success = "$0.01"
"#;

fn micros(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// Whatever it is of, the document's lines and dimensions sum to its total.
#[track_caller]
fn closes(document: &Value) -> i64 {
    assert_eq!(document["schema"], "plimsoll/cost/v1", "{document:#}");
    let total = micros(&document["total_microusd"]);
    let lines = document["lines"].as_array().expect("lines");
    assert_eq!(lines.iter().map(|line| micros(&line["microusd"])).sum::<i64>(), total);
    assert_eq!((micros(&document["residual_microusd"]), &document["closes"]), (0, &true.into()));
    for (name, values) in document["by"].as_object().expect("dimensions") {
        let values = values.as_array().expect("values");
        let sum: i64 = values.iter().map(|value| micros(&value["microusd"])).sum();
        assert_eq!(sum + micros(&document["unallocated_microusd"][name]), total, "{name}");
    }
    total
}

fn line<'a>(document: &'a Value, name: &str) -> &'a Value {
    let mut lines = document["lines"].as_array().expect("lines").iter();
    lines.find(|line| line["name"] == name).unwrap_or_else(|| panic!("no `{name}`: {document:#}"))
}

/// A day of a scenario: one node of eight devices at $2 and storage, known to the cent; tokens by hand; one success by its factors.
#[test]
fn a_scenario() {
    let scratch = Scratch::new("cost-scenario");
    let file = scratch.file("scenario.toml", SCENARIO);
    let (code, document) = json(&["cost", &file, "--threads", "1"]);
    assert_eq!(code, 0, "{document:#}");
    let total = closes(&document);
    // 8,640 requests of 1,000 tokens in and 100 out: $25.92 and $12.96.
    let tokens = 25_920_000 + 12_960_000;
    assert_eq!(total, 24 * 8 * 2_000_000 + 24 * 100_000 + tokens);
    assert_eq!(micros(&line(&document, "tokens of hosted: prefill")["microusd"]), 25_920_000);
    let idle = line(&document, "pool own: idle");
    // Six of a node's eight devices have no replica.
    assert!(number(&idle["device_hours"]) >= 24.0 * 6.0, "{idle}");
    assert_eq!((&idle["kind"], &idle["line"]), (&"idle".into(), &"compute_on_demand".into()));
    assert_eq!(idle["price"]["as_of"], "2026-11-01");
    let per = &document["cost_per_success"];
    let (f, usd) = (&per["factors"], number(&per["usd"]));
    let product = number(&f["cost_per_attempt_usd"]) * number(&f["attempts_per_task"])
        / number(&f["success_rate"]);
    assert!((product / usd - 1.0).abs() < 1e-9);
    // Half of two a second, four in five of one, and all of a tenth.
    assert_eq!(count(&per["succeeded"]), 86_400 + 69_120 + 8_640);
    assert!(number(&per["marginal_usd"]) < usd);
    assert_eq!(per["interval"], Value::Null);
    assert_eq!(document["budget"]["verdict"], "within");
    // One reads and the other writes: whatever both take, requests do not tell it.
    let tenants = document["by"]["tenant"].as_array().expect("tenants");
    assert_eq!(tenants.len(), 3);
    assert!(number(&document["misplaced_by_request_count"]["tenant"]) > 0.02);
    let advice = &document["commitment"][0];
    assert_eq!((&advice["pool"], number(&advice["exceeded"])), (&"own".into(), 0.5));
    assert_eq!(document["build_or_buy"][0]["provider"], "hosted");
    let again = plimsoll(&["cost", &file, "--json", "--threads", "2"]);
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).expect("JSON"), document);
    let screen = text(&plimsoll(&["cost", &file, "--by", "feature"]).stdout);
    assert!(screen.contains("the books close") && screen.contains("by feature"), "{screen}");
}

/// A log of two tenants: the requests of two hours, one of them cancelled, with outcomes of some tasks.
fn log() -> String {
    let mut rows = "ts_arrival,request_id,tenant,model,prompt_tokens,cache_read_tokens,output_tokens,status,task_id,success\n".to_owned();
    for i in 0..240 {
        let (hour, minute) = (i / 120, i / 2 % 60);
        let tenant = if i % 3 == 0 { "a" } else { "b" };
        let model = if i % 4 == 0 { "a-model" } else { "llama-3.1-8b" };
        let status = if i % 40 == 7 { "cancelled" } else { "ok" };
        let success = ["true", "false", ""][i % 3];
        rows += &format!(
            "2026-11-16T0{hour}:{minute:02}:00Z,r{i},{tenant},{model},{},{},{},{status},t{i},{success}\n",
            500 + i * 10,
            i % 5 * 50,
            20 + i % 50
        );
    }
    rows
}

fn ledger(scratch: &Scratch) -> String {
    let (file, into) = (scratch.file("log.csv", log()), scratch.path("ledger"));
    let (code, done) = json(&["ingest", &file, "--into", &into]);
    assert_eq!(code, 0, "{done:#}");
    into
}

/// Rows go to whom their model says; what the pool idles is most of it; tasks that nobody judged bound what one success costs.
#[test]
fn a_ledger() {
    let scratch = Scratch::new("cost-ledger");
    let (ledger, file) = (ledger(&scratch), scratch.file("scenario.toml", SCENARIO));
    let (code, document) = json(&["cost", &ledger, "--scenario", &file]);
    assert_eq!(code, 0, "{document:#}");
    let total = closes(&document);
    assert_eq!(document["period"]["hours"], 2);
    assert!(total > 2 * 8 * 2_000_000);
    assert!(micros(&document["by_kind"]["idle"]) > 20_000_000, "{:#}", document["by_kind"]);
    assert!(micros(&document["by_kind"]["failed"]) > 0, "{:#}", document["lines"]);
    let per = &document["cost_per_success"];
    assert_eq!((count(&per["tasks"]), count(&per["unresolved"])), (240, 80));
    assert!(number(&per["bounds"]["low_usd"]) < number(&per["usd"]));
    assert!(number(&per["interval"]["low"]) < number(&per["usd"]));
    let tenants = document["by"]["tenant"].as_array().expect("tenants");
    assert_eq!(tenants.iter().map(|t| number(&t["requests"])).sum::<f64>(), 240.0);
    // Only one tenant, one hour.
    let (_, part) = json(&[
        "cost",
        &ledger,
        "--scenario",
        &file,
        "--where",
        "tenant=a",
        "--to",
        "2026-11-16T01:00:00Z",
    ]);
    closes(&part);
    assert_eq!(number(&part["by"]["tenant"][0]["requests"]), 40.0);
}

/// Amounts of the FOCUS table are those of the books, summed in whole micro-dollars; what is idle has no quantity.
#[test]
fn focus() {
    let scratch = Scratch::new("cost-focus");
    let (ledger, file, out) =
        (ledger(&scratch), scratch.file("scenario.toml", SCENARIO), scratch.path("focus.csv"));
    let (code, document) = json(&["cost", &ledger, "--scenario", &file, "--focus", &out]);
    assert_eq!(code, 0, "{document:#}");
    let table = std::fs::read_to_string(&out).expect("written");
    let mut rows = table.lines();
    let header: Vec<&str> = rows.next().expect("a header").split(',').collect();
    let at =
        |name: &str| header.iter().position(|h| *h == name).unwrap_or_else(|| panic!("no {name}"));
    let (mut sum, mut unused) = (0i64, 0);
    for row in rows {
        let cells = cells(row);
        assert_eq!(cells.len(), header.len(), "{row}");
        let cost = &cells[at("BilledCost")];
        for other in ["EffectiveCost", "ListCost", "ContractedCost"] {
            assert_eq!(&cells[at(other)], cost);
        }
        sum += cost.replace('.', "").parse::<i64>().expect("six decimals");
        assert_eq!(cells[at("BillingCurrency")], "USD");
        if cells[at("CapacityReservationStatus")] == "Unused" {
            unused += 1;
            assert_eq!(
                (cells[at("ConsumedQuantity")].as_str(), cells[at("SkuMeter")].as_str()),
                ("", "gpu_hours")
            );
            assert!(!cells[at("x_HeadroomCost")].is_empty());
        }
    }
    assert_eq!(sum, micros(&document["total_microusd"]));
    assert!(unused >= 2, "{table}");
    assert!(table.contains("plimsoll-phase-seconds/1"));
}

/// A row of CSV; quotes are doubled within quotes.
fn cells(row: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut letters = row.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cells.last_mut().expect("one").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().expect("one").push(other),
        }
    }
    cells
}

/// The bill is what was paid: the books are of it, and the gap is told.
#[test]
fn a_bill() {
    let scratch = Scratch::new("cost-bill");
    let (ledger, file) = (ledger(&scratch), scratch.file("scenario.toml", SCENARIO));
    let line = |cost: &str, category: &str, service: &str, what: &str| {
        format!(
            "{cost},{cost},EUR,2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,2026-11-16T00:00:00Z,2026-11-16T02:00:00Z,{category},{service},a service,{what}\n"
        )
    };
    let bill = "BilledCost,EffectiveCost,BillingCurrency,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceCategory,ServiceName,ChargeDescription\n".to_owned()
        + &line("20.00", "Usage", "Compute", "devices")
        + &line("2.50", "Tax", "Other", "tax");
    let bill = scratch.file("bill.csv", bill);
    let with = ["cost", &ledger, "--scenario", &file, "--bill", &bill];
    let (code, refused) = json(&with);
    assert_eq!(code, 2);
    assert!(diagnostic(&refused).1.contains("--usd-per EUR"), "{refused:#}");
    let (code, document) = json(&[&with[..], &["--usd-per", "EUR=2"]].concat());
    assert_eq!(code, 0, "{document:#}");
    let total = closes(&document);
    let bill = &document["bill"];
    assert_eq!(micros(&bill["invoiced_microusd"]), total);
    let gap = bill["gap"].as_array().expect("lines");
    assert_eq!(
        gap.iter().map(|g| micros(&g["microusd"])).sum::<i64>(),
        micros(&bill["gap_microusd"])
    );
    let compute: i64 = document["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .filter(|l| l["line"] == "compute_on_demand")
        .map(|l| micros(&l["microusd"]))
        .sum();
    assert_eq!(compute, 40_000_000);
    assert_eq!(micros(&line_of(&document, "tax")["microusd"]), 5_000_000);
}

fn line_of<'a>(document: &'a Value, line: &str) -> &'a Value {
    let mut lines = document["lines"].as_array().expect("lines").iter();
    lines.find(|own| own["line"] == line).unwrap_or_else(|| panic!("no `{line}`: {document:#}"))
}

#[test]
fn what_is_refused() {
    let scratch = Scratch::new("cost-refused");
    let file = scratch.file("scenario.toml", SCENARIO);
    for (options, expect) in [
        (&["--by", "colour"][..], "not told apart by `colour`"),
        (&["--by", "dataset"][..], "no row says its `dataset`"),
        (&["--where", "tenant=a"][..], "`--where` is for a ledger"),
    ] {
        let (code, failure) = json(&[&["cost", &file], options].concat());
        assert_eq!(code, 2, "{failure:#}");
        let (message, help) = diagnostic(&failure);
        assert!(message.contains(expect) && !help.is_empty(), "{message}");
    }
}

/// What is typed is held against what is listed, and what looks like a slip is said.
#[test]
fn a_typed_price_far_from_the_listed_one() {
    let scratch = Scratch::new("cost-slip");
    let of = |input: &str| {
        let text = format!(
            "[[class]]\nname = \"asks\"\nrate = \"1 req/s\"\nprompt = 1000\noutput = 100\n\n[[provider]]\nname = \"hosted\"\nprovider = \"openai\"\nmodel = \"gpt-4.1\"\ninput = \"{input}\"\n\n[study]\nas_of = 2026-11-15\n"
        );
        let file = scratch.file("scenario.toml", text);
        let (code, document) = json(&["cost", &file]);
        assert_eq!(code, 0, "{document:#}");
        document["price_lints"].as_array().expect("lints").clone()
    };
    let changed = |lints: &[Value]| lints.iter().any(|lint| lint["code"] == "changed");
    // The list price is $2 a million.
    assert!(!changed(&of("$2/Mtok")));
    assert!(changed(&of("$20/Mtok")));
}

/// Wide events make committing to less worth while: the reserved amount follows the quantiles of what may come, not its middle.
#[test]
fn a_commitment_follows_the_forecast() {
    let scratch = Scratch::new("cost-commitment");
    let of = |event: &str| {
        // A demand that fills many replicas, and none of them in reserve.
        let busy = SCENARIO
            .replace("rate = \"2 req/s\"", "rate = \"400 req/s\"")
            .replace("now = 2, plan = [1, 8]", "now = 40, plan = [1, 80]")
            .replace("on_demand = \"$2/h\"", "on_demand = \"$4/h\"")
            .replace("reserved = \"$1/h\"", "reserved = \"$3/h\"");
        let quiet =
            "\n[study.reliability]\nsurvive = \"nothing\"\n\n[study.reserve]\nrollout = 0\n";
        let file = scratch.file("scenario.toml", format!("{busy}{event}{quiet}"));
        let (code, document) = json(&["cost", &file]);
        assert_eq!(code, 0, "{document:#}");
        let advice = &document["commitment"][0];
        (number(&advice["replicas"]), advice["says"].as_str().unwrap_or_default().to_owned())
    };
    let event = |rate: &str| {
        format!("\n[[event]]\nname = \"launch\"\nfrom = 2026-11-16T00:00:00Z\nrate = {rate}\n")
    };
    let (known, said) = of(&event("2.0"));
    let (unknown, _) = of(&event("{ low = 1.0, likely = 2.0, high = 3.0 }"));
    assert!(known > 1.0, "{said}");
    // Three quarters of the price: only what is needed three times in four is worth it.
    assert!(unknown < known, "{unknown} where {known} are enough for certain: {said}");
}

/// Attempts that nobody has a price for are not free: what one success costs is at least what is known.
#[test]
fn what_is_not_charged_is_said() {
    let scratch = Scratch::new("cost-uncharged");
    let into = ledger(&scratch);
    let (code, document) = json(&["cost", &into, "--as-of", "2026-11-17"]);
    assert_eq!(code, 0, "{document:#}");
    closes(&document);
    let per = &document["cost_per_success"];
    assert_eq!((&per["at_least"], &per["interval"]), (&true.into(), &Value::Null), "{per}");
    assert!(per["why"].as_str().is_some_and(|why| why.contains("240 attempts")), "{per}");
    assert_eq!(number(&document["uncharged_attempts"]), 240.0);
    assert_eq!(document["unit"]["request_usd"], Value::Null, "unknown is not free");
}
