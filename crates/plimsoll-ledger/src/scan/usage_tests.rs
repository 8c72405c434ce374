//! What was used, of a small day worked by hand, and against rows that are counted one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use plimsoll_cost::{
    Dimension, End, Key, Period, Place, Pricing, Sums, Table, Tasks, TokenTable, Usage, Work,
};
use plimsoll_units::UsdPerToken;
use proptest::prelude::*;

use super::tests::Scratch;
use super::usage::{PlaceRule, UsageInput};
use crate::row::{Row, Rows};
use crate::store::{Batch, Disk, Ledger};

/// Ten o'clock on the first of March 2026.
const TEN: i64 = 1_772_359_200;

const WORK: Work = Work {
    fresh_s: 1e-3,
    fresh_context_s: 1e-6,
    output_s: 1e-2,
    output_context_s: 1e-5,
    usd_per_s: 0.5,
};

/// Dollars for a million: of prompt, of what is read from a cache, of what is written to it, of output.
fn prices(input: u64, cached: u64, write: u64, output: u64) -> TokenTable {
    let price = |cents: u64| UsdPerToken::picos(cents * 10_000);
    TokenTable {
        input: price(input),
        cached_input: price(cached),
        cache_write: price(write),
        output: price(output),
        above: Vec::new(),
        batch: None,
    }
}

/// In cents for a million tokens.
fn table() -> TokenTable {
    TokenTable {
        above: vec![(5000, prices(800, 200, 1000, 4000)), (1000, prices(400, 100, 500, 2000))],
        batch: Some(Box::new(prices(100, 25, 125, 500))),
        ..prices(200, 50, 250, 1000)
    }
}

fn rule(name: &str, pricing: Pricing, matches: &[(&str, &str)]) -> PlaceRule {
    let matches = matches.iter().map(|(c, v)| ((*c).to_owned(), (*v).to_owned())).collect();
    PlaceRule { place: Place { name: name.to_owned(), pricing }, matches }
}

fn asked() -> UsageInput {
    UsageInput {
        places: vec![
            rule("pool", Pricing::Devices(WORK), &[("model", "llama*")]),
            rule("api", Pricing::Tokens(table()), &[("provider", "acme"), ("model", "big")]),
            rule("gift", Pricing::Unpriced, &[("model", "gift")]),
            // Another name for the same pool.
            rule("pool", Pricing::Devices(WORK), &[("model", "lama")]),
        ],
        only: Vec::new(),
        from_s: None,
        until_s: None,
        values_most: 10,
        threads: NonZero::new(2).expect("two"),
    }
}

fn usage(scratch: &Scratch, input: &UsageInput) -> Usage {
    scratch.ledger().usage(input).expect("used")
}

/// A row by when it came, on the first of March; without a time where that is empty.
fn row(name: &str, at: &str, more: &str) -> String {
    let at =
        if at.is_empty() { String::new() } else { format!(",\"ts_arrival\":\"2026-03-01T{at}Z\"") };
    format!("{{\"request_id\":\"{name}\"{at}{more}}}\n")
}

/// Ten rows: a pool of our own, a provider, and something that nobody priced.
fn day() -> Scratch {
    let pool = ",\"tenant\":\"t1\",\"model\":\"llama-8b\"";
    let api = ",\"tenant\":\"t2\",\"provider\":\"acme\",\"model\":\"big\"";
    let text = [
        row(
            "a",
            "10:05:00",
            &format!(
                "{pool},\"task_id\":\"T1\",\"status\":\"ok\",\"prompt_tokens\":100,\"cache_read_tokens\":40,\"output_tokens\":10"
            ),
        ),
        row(
            "b",
            "10:10:00",
            &format!(
                "{pool},\"task_id\":\"T2\",\"attempt\":1,\"status\":\"failed\",\"success\":false,\"prompt_tokens\":100,\"output_tokens\":0"
            ),
        ),
        row(
            "b",
            "10:11:00",
            &format!(
                "{pool},\"task_id\":\"T2\",\"attempt\":2,\"status\":\"ok\",\"prompt_tokens\":100,\"cache_read_tokens\":0,\"output_tokens\":2,\"prefill_s\":0.5,\"decode_s\":0.25"
            ),
        ),
        row(
            "c",
            "10:30:00",
            &format!(
                "{api},\"status\":\"ok\",\"success\":true,\"prompt_tokens\":1000,\"cache_read_tokens\":200,\"cache_write_tokens\":100,\"output_tokens\":50"
            ),
        ),
        row(
            "d",
            "11:00:00",
            &format!(
                "{api},\"task_id\":\"T3\",\"status\":\"ok\",\"prompt_tokens\":1001,\"cache_read_tokens\":0,\"output_tokens\":10"
            ),
        ),
        row(
            "e",
            "11:10:00",
            &format!(
                "{api},\"task_id\":\"T3\",\"status\":\"ok\",\"tier\":\"batch\",\"sample_weight\":3,\"prompt_tokens\":100,\"cache_read_tokens\":0,\"output_tokens\":10"
            ),
        ),
        row(
            "f",
            "11:20:00",
            &format!(
                "{api},\"task_id\":\"T3\",\"status\":\"limited\",\"prompt_tokens\":70,\"cost_usd\":0.5"
            ),
        ),
        row(
            "g",
            "13:59:59",
            ",\"model\":\"small\",\"prompt_tokens\":10,\"cache_read_tokens\":0,\"output_tokens\":1,\"cost_usd\":0.25",
        ),
        row(
            "h",
            "15:00:00",
            ",\"tenant\":\"t3\",\"task_id\":\"T9\",\"response_cached\":true,\"prompt_tokens\":9,\"output_tokens\":9",
        ),
        row(
            "i",
            "",
            &format!("{pool},\"status\":\"cancelled\",\"prompt_tokens\":2,\"output_tokens\":1"),
        ),
    ];
    // T3 failed, and then it did not. T9 is only in an answer that was cached; of T10 there is no row.
    let outcomes = "task_id,success,ts\nT1,true,2026-03-02T00:00:00Z\nT3,true,2026-03-03T00:00:00Z\nT3,false,2026-03-02T00:00:00Z\nT9,true,2026-03-02T00:00:00Z\nT10,true,2026-03-02T00:00:00Z\n";
    Scratch::named(&[("log.jsonl", &text.concat()), ("later.csv", outcomes)])
}

/// Equal but for what additions of fractions leave.
fn near(found: f64, expect: f64, what: &str) {
    assert!(
        (found - expect).abs() <= 1e-12 * expect.abs().max(1.0),
        "{what}: {found}, not {expect}"
    );
}

fn numbers(sums: &Sums) -> [f64; 15] {
    [
        sums.requests,
        sums.fresh,
        sums.fresh_context,
        sums.cached,
        sums.output,
        sums.output_context,
        sums.prefill_s,
        sums.decode_s,
        sums.timed,
        sums.token_usd,
        sums.token_unpriced,
        sums.logged_usd,
        sums.logged,
        sums.blank,
        sums.cached_unknown,
    ]
}

fn alike(found: &Sums, expect: &Sums, what: &str) {
    for (i, (found, expect)) in numbers(found).into_iter().zip(numbers(expect)).enumerate() {
        near(found, expect, &format!("{what}, number {i}"));
    }
}

fn tasks_alike(found: &Tasks, expect: &Tasks, what: &str) {
    let counts = |t: &Tasks| [t.tasks, t.attempts, t.succeeded, t.failed];
    assert_eq!(counts(found), counts(expect), "{what}");
    let usd = |t: &Tasks| [t.usd, t.usd_squared, t.usd_succeeded];
    usd(found).into_iter().zip(usd(expect)).for_each(|(found, expect)| near(found, expect, what));
}

/// Every cell of a table: by value, place, hour, end and whether it is a retry.
type Cell<'a> = (Option<&'a str>, Option<u32>, u32, End, bool, Sums);

fn check_cells(table: &Table, expect: &[Cell<'_>]) {
    assert_eq!(table.cells.len(), expect.len(), "{:?}", table.cells.keys());
    for (value, place, hour, end, retry, sums) in expect {
        let value = table.values.iter().position(|own| own.as_deref() == *value).expect("a value");
        let key = Key { value: value as u32, place: *place, hour: *hour, end: *end, retry: *retry };
        alike(table.cells.get(&key).unwrap_or(&Sums::default()), sums, &format!("{key:?}"));
    }
}

#[test]
fn a_day_worked_by_hand() {
    let found = usage(&day(), &asked());
    let none = Sums::default();
    // 60 tokens after 40 that were there, and 60 * 59 / 2 pairs among themselves; 10 * 100 and 10 * 9 / 2 pairs of the output.
    let a = Sums {
        requests: 1.0,
        fresh: 60.0,
        fresh_context: 4170.0,
        cached: 40.0,
        output: 10.0,
        output_context: 1045.0,
        ..none
    };
    let b =
        Sums { requests: 1.0, fresh: 100.0, fresh_context: 4950.0, cached_unknown: 1.0, ..none };
    let again = Sums {
        requests: 1.0,
        fresh: 100.0,
        fresh_context: 4950.0,
        output: 2.0,
        output_context: 201.0,
        prefill_s: 0.5,
        decode_s: 0.25,
        timed: 1.0,
        ..none
    };
    // 700 at $2, 100 written at $2.50, 200 read at $0.50 and 50 at $10, for a million: a thousand tokens are not above a thousand.
    let c = Sums {
        requests: 1.0,
        fresh: 800.0,
        fresh_context: 479_600.0,
        cached: 200.0,
        output: 50.0,
        output_context: 51_225.0,
        token_usd: 0.00225,
        ..none
    };
    // One token more makes all of them dearer: 1001 at $4 and 10 at $20. And three times 100 at $1 and 10 at $5.
    let d = Sums {
        requests: 1.0,
        fresh: 1001.0,
        fresh_context: 500_500.0,
        output: 10.0,
        output_context: 10_055.0,
        token_usd: 0.004204,
        ..none
    };
    let e = Sums {
        requests: 3.0,
        fresh: 300.0,
        fresh_context: 14_850.0,
        output: 30.0,
        output_context: 3135.0,
        token_usd: 0.00045,
        ..none
    };
    let mut de = d;
    de.add(&e);
    let f = Sums {
        requests: 1.0,
        token_unpriced: 1.0,
        logged_usd: 0.5,
        logged: 1.0,
        blank: 1.0,
        ..none
    };
    let g = Sums {
        requests: 1.0,
        fresh: 10.0,
        fresh_context: 45.0,
        output: 1.0,
        output_context: 10.0,
        logged_usd: 0.25,
        logged: 1.0,
        ..none
    };
    let i = Sums {
        requests: 1.0,
        fresh: 2.0,
        fresh_context: 1.0,
        output: 1.0,
        output_context: 2.0,
        cached_unknown: 1.0,
        ..none
    };
    let (pool, api) = (Some(0), Some(1));
    check_cells(
        &found.by[&Dimension::Tenant],
        &[
            (Some("t1"), pool, 0, End::Ok, false, a),
            (Some("t1"), pool, 0, End::Failed, false, b),
            (Some("t1"), pool, 0, End::Ok, true, again),
            (Some("t1"), pool, 0, End::Cancelled, false, i),
            (Some("t2"), api, 0, End::Ok, false, c),
            (Some("t2"), api, 1, End::Ok, false, de),
            (Some("t2"), api, 1, End::Limited, false, f),
            (None, None, 3, End::Unknown, false, g),
        ],
    );
    let tiers = &found.by[&Dimension::Tier];
    assert_eq!(tiers.values, [Some("batch".to_owned()), None]);
    let batch = tiers.cells.iter().find(|(key, _)| key.value == 0).expect("a batch").1;
    alike(batch, &e, "batch");
    // Of the tenants the last is only in an answer that was cached; nobody says anything of features.
    assert_eq!(
        found.by[&Dimension::Tenant].values,
        [Some("t1".to_owned()), Some("t2".to_owned()), None]
    );
    let by: Vec<Dimension> = found.by.keys().copied().collect();
    assert_eq!(by, [Dimension::Tenant, Dimension::Tier, Dimension::Model]);
    assert_eq!(found.period, Period { start_s: Some(TEN), hours: 4 });
    let names: Vec<&str> = found.places.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["pool", "api", "gift"]);
    assert_eq!((found.response_cached, found.undated, found.outcomes_unknown), (1, 1, 1));
    assert_eq!(found.notes, Vec::<String>::new());
    // What tasks cost: half a dollar for each second of the pool, tokens by their price, else what the log says.
    let usd_a = 0.5 * (0.060 + 0.00417 + 0.10 + 0.01045);
    let usd_b = 0.5 * (0.100 + 0.00495) + 0.5 * (0.100 + 0.00495 + 0.02 + 0.00201);
    let usd_t3 = 0.004204 + 0.00015 + 0.5;
    let (usd_c, usd_g, usd_i) = (0.00225, 0.25, 0.5 * (0.002 + 1e-6 + 0.01 + 2e-5));
    let squares = |all: &[f64]| all.iter().map(|usd| usd * usd).sum::<f64>();
    let all = [usd_a, usd_b, usd_t3, usd_c, usd_g, usd_i];
    let expect = Tasks {
        tasks: 6,
        attempts: 9,
        succeeded: 3,
        failed: 1,
        usd: all.iter().sum(),
        usd_squared: squares(&all),
        usd_succeeded: usd_a + usd_t3 + usd_c,
    };
    tasks_alike(&found.tasks, &expect, "all");
    tasks_alike(&found.all.tasks[0], &expect, "all");
    assert_eq!(found.tasks.unresolved(), 2);
    let t1 = Tasks {
        tasks: 3,
        attempts: 4,
        succeeded: 1,
        failed: 1,
        usd: usd_a + usd_b + usd_i,
        usd_squared: squares(&[usd_a, usd_b, usd_i]),
        usd_succeeded: usd_a,
    };
    tasks_alike(&found.by[&Dimension::Tenant].tasks[0], &t1, "t1");
}

/// A period is what was asked for, with or without rows in it; without a question, what has rows.
#[test]
fn periods() {
    let scratch = day();
    let check = |from: Option<i64>, until: Option<i64>, expect: (i64, u32), requests: f64| {
        let (from_s, until_s) = (from.map(|at| TEN + at), until.map(|at| TEN + at));
        let found = usage(&scratch, &UsageInput { from_s, until_s, ..asked() });
        assert_eq!(found.period, Period { start_s: Some(TEN + expect.0), hours: expect.1 });
        let counted: f64 = found.all.cells.values().map(|sums| sums.requests).sum();
        assert_eq!(counted, requests, "{from:?} {until:?}");
        assert!(found.all.cells.keys().all(|key| key.hour < expect.1));
        let left_out = "1 rows do not say when they came: they are in no period, and left out";
        let ranged = from.is_some() || until.is_some();
        assert_eq!(found.notes.iter().any(|note| note == left_out), ranged, "{:?}", found.notes);
        assert_eq!(found.undated, u64::from(!ranged));
        // Whoever asks for a day is not told that tasks of others are unknown.
        assert_eq!(found.outcomes_unknown, 1);
    };
    check(None, None, (0, 4), 11.0);
    check(Some(0), Some(3600), (0, 1), 4.0);
    check(Some(600), Some(3601), (0, 2), 4.0);
    check(Some(3600), None, (3600, 3), 6.0);
    check(Some(-7200), Some(86_400), (-7200, 26), 10.0);
    check(None, Some(3600), (0, 1), 4.0);
}

/// Times that count from the start of a log have no date; without any, there is one hour.
#[test]
fn without_dates() {
    let text = |at: &str| {
        format!(
            "{{\"request_id\":\"{at}\",\"ts_arrival\":\"1970-01-01T{at}Z\",\"clock\":\"relative\",\"prompt_tokens\":1,\"output_tokens\":1}}\n"
        )
    };
    let hours = |found: &Usage| found.all.cells.keys().map(|key| key.hour).collect::<Vec<_>>();
    let found = usage(
        &Scratch::of(&[&(text("00:30:00") + &text("01:29:59") + &text("02:31:00"))]),
        &asked(),
    );
    // From the first arrival on: the second is within its hour.
    assert_eq!((found.period, hours(&found)), (Period { start_s: None, hours: 3 }, vec![0, 2]));
    assert_eq!(found.undated, 0);
    let found =
        usage(&Scratch::of(&[&row("a", "", ",\"prompt_tokens\":1,\"output_tokens\":1")]), &asked());
    assert_eq!((found.period, hours(&found)), (Period { start_s: None, hours: 1 }, vec![0]));
    assert_eq!(found.undated, 1);
}

/// Centuries between two rows take no more room than an hour.
#[test]
fn hours_that_lie_far_apart() {
    let at = |year: u32| {
        format!(
            "{{\"request_id\":\"{year}\",\"ts_arrival\":\"{year}-01-01T00:00:00Z\",\"prompt_tokens\":1,\"output_tokens\":1}}\n"
        )
    };
    let found = usage(&Scratch::of(&[&(at(1990) + &at(2089))]), &asked());
    assert_eq!((found.all.cells.len(), found.period.hours), (2, 36_160 * 24 + 1));
}

/// What is beyond the room for values is one of them, and not lost.
#[test]
fn values_that_are_folded() {
    let mut text = String::new();
    for (tenant, rows) in [("other", 3), ("a", 2), ("b", 2), ("c", 1)] {
        for n in 0..rows {
            text += &row(
                &format!("{tenant}{n}"),
                "10:00:00",
                &format!(",\"tenant\":\"{tenant}\",\"prompt_tokens\":1,\"output_tokens\":1"),
            );
        }
    }
    text += &row("nobody", "10:00:00", ",\"prompt_tokens\":1,\"output_tokens\":1");
    let scratch = Scratch::of(&[&text]);
    let check = |values_most: usize, expect: &[(Option<&str>, f64)], note: Option<&str>| {
        let found = usage(&scratch, &UsageInput { values_most, ..asked() });
        let table = &found.by[&Dimension::Tenant];
        let mut requests = vec![0.0; table.values.len()];
        table.cells.iter().for_each(|(key, sums)| requests[key.value as usize] += sums.requests);
        let values: Vec<(Option<&str>, f64)> =
            table.values.iter().map(Option::as_deref).zip(requests.iter().copied()).collect();
        assert_eq!(values, expect);
        let tasks: Vec<f64> = table.tasks.iter().map(|tasks| tasks.tasks as f64).collect();
        assert_eq!(tasks, requests, "each is a task");
        assert_eq!(found.notes, note.into_iter().collect::<Vec<_>>());
    };
    check(
        9,
        &[(Some("other"), 3.0), (Some("a"), 2.0), (Some("b"), 2.0), (Some("c"), 1.0), (None, 1.0)],
        None,
    );
    check(
        2,
        &[(Some("other"), 3.0), (Some("a"), 2.0), (None, 1.0), (Some("other (folded)"), 3.0)],
        Some("2 values of `tenant` with the fewest rows are counted together as `other (folded)`"),
    );
    check(
        0,
        &[(None, 1.0), (Some("other"), 8.0)],
        Some("4 values of `tenant` with the fewest rows are counted together as `other`"),
    );
}

/// A request without a task is one with all of its attempts.
#[test]
fn requests_are_tasks_of_their_own() {
    let check = |rows: &[(&str, Option<u16>, Option<bool>)], expect: [u64; 4]| {
        let mut text = String::new();
        for (n, (name, attempt, success)) in rows.iter().enumerate() {
            let attempt = attempt.map_or(String::new(), |n| format!(",\"attempt\":{n}"));
            let success = success.map_or(String::new(), |s| format!(",\"success\":{s}"));
            let more = format!(",\"prompt_tokens\":1,\"output_tokens\":1{attempt}{success}");
            text += &row(name, &format!("10:00:{n:02}"), &more);
        }
        let tasks = usage(&Scratch::of(&[&text]), &asked()).tasks;
        assert_eq!([tasks.tasks, tasks.attempts, tasks.succeeded, tasks.failed], expect);
    };
    check(&[("a", None, Some(true)), ("b", Some(1), None)], [2, 2, 1, 0]);
    check(&[("a", Some(1), Some(false)), ("a", Some(2), Some(true))], [1, 2, 1, 0]);
    check(&[("a", Some(2), Some(true)), ("a", Some(1), Some(false))], [1, 2, 0, 1]);
    check(&[("a", Some(1), Some(false)), ("b", Some(2), Some(true))], [2, 2, 1, 1]);
}

/// What no log can say is not taken, and that is said. Ingest refuses such rows: others may have written the file.
#[test]
fn what_cannot_be_true_is_said() {
    let scratch = Scratch::of(&[&row("a", "10:00:00", ",\"prompt_tokens\":4,\"output_tokens\":1")]);
    let known = Row {
        ts_arrival: Some(TEN * 1_000_000_000),
        prompt_tokens: Some(10),
        output_tokens: Some(0),
        ..Row::default()
    };
    let strange = [
        Row { sample_weight: Some(-2.0), ..known.clone() },
        Row { sample_weight: Some(f64::NAN), ..known.clone() },
        Row { sample_weight: Some(0.0), ..known.clone() },
        Row { cost_usd: Some(-1.0), ..known.clone() },
        Row { cache_read_tokens: Some(12), ..known.clone() },
    ];
    let mut rows = Rows::new();
    strange.iter().for_each(|row| rows.push(row));
    let mut batch = Batch::open(&scratch.path().join("ledger"), Disk::default()).expect("a batch");
    let stamps = vec![known.ts_arrival; strange.len()];
    assert_eq!(batch.requests(&rows.finish(), &[1, 2, 3, 4, 5], &stamps).expect("written"), 5);
    batch.commit().expect("written");
    let found = usage(&scratch, &asked());
    let mut all = Sums::default();
    found.all.cells.values().for_each(|sums| all.add(sums));
    // Of the first row, of the one with a cost, and of the one that was all cached.
    assert_eq!((all.requests, all.fresh, all.cached), (3.0, 14.0, 10.0));
    assert_eq!((all.logged, all.logged_usd), (0.0, 0.0));
    let expect = [
        "1 rows have a sample weight of zero: they stand for no request, and are left out",
        "2 rows have a sample weight below zero: they stand for nothing, and are left out",
        "1 rows have a cost below zero, which is not taken: their cost counts as unknown",
        "1 rows have more cached tokens than their prompt: all of it counts as cached, and no more",
    ];
    assert_eq!(found.notes, expect);
}

/// Whatever a filter leaves over and what it takes are the whole.
#[test]
fn parts_are_the_whole() {
    let scratch = day();
    let whole = usage(&scratch, &asked());
    let (mut sums, mut tasks) = (BTreeMap::<(Option<u32>, End, bool), Sums>::new(), 0);
    for model in ["llama-8b", "big", "small"] {
        let only = vec![("model".to_owned(), model.to_owned())];
        let part = usage(&scratch, &UsageInput { only, ..asked() });
        tasks += part.tasks.tasks;
        for (key, own) in &part.all.cells {
            sums.entry((key.place, key.end, key.retry)).or_default().add(own);
        }
    }
    let mut expect = BTreeMap::<(Option<u32>, End, bool), Sums>::new();
    for (key, own) in &whole.all.cells {
        expect.entry((key.place, key.end, key.retry)).or_default().add(own);
    }
    assert_eq!(sums.keys().collect::<Vec<_>>(), expect.keys().collect::<Vec<_>>());
    for (key, own) in &sums {
        alike(own, &expect[key], &format!("{key:?}"));
    }
    assert_eq!(tasks, whole.tasks.tasks);
}

/// A dimension and its value, the place, the hour, how attempts ended, and whether they were retries.
type PlainKey = (Dimension, Option<String>, Option<u32>, u32, End, bool);

/// The same, row by row, as slowly as it is plain.
#[derive(Default)]
struct Plain {
    cells: BTreeMap<PlainKey, Sums>,
    tasks: BTreeMap<(Dimension, Option<String>), Tasks>,
    all: Tasks,
    response_cached: u64,
    undated: u64,
    outcomes_unknown: u64,
}

fn value(row: &Row, dimension: Dimension) -> Option<String> {
    match dimension {
        Dimension::Tenant => row.tenant.clone(),
        Dimension::Product => row.product.clone(),
        Dimension::Feature => row.feature.clone(),
        Dimension::Tier => row.tier.clone(),
        Dimension::Model => row.model.clone(),
        Dimension::Route => row.route.clone(),
        Dimension::PromptVersion => row.prompt_version.clone(),
        Dimension::Dataset => row.dataset.clone(),
        Dimension::ToolPath => row.tool_path.clone(),
    }
}

fn plain(ledger: &Ledger, input: &UsageInput, start_s: i64) -> Plain {
    let mut rows = Vec::new();
    ledger
        .each_row(Row::COLUMNS.iter().map(|(name, _)| *name), |row| rows.push(row))
        .expect("rows");
    let named: BTreeSet<String> = rows.iter().filter_map(|row| row.task_id.clone()).collect();
    // Stable: rows of the same moment stay in the order of the ledger.
    rows.sort_by_key(|row| row.ts_arrival);
    let mut found = Plain::default();
    let mut groups: BTreeMap<(bool, String), Vec<(Row, f64)>> = BTreeMap::new();
    for row in rows {
        let fits = input.only.iter().all(|(column, value)| {
            let own = if column == "tenant" { &row.tenant } else { &row.model };
            own.as_ref() == Some(value)
        });
        let at = row.ts_arrival.map(|at| at.div_euclid(1_000_000_000));
        let ranged = input.from_s.is_some() || input.until_s.is_some();
        let asked = match at {
            Some(at) => {
                input.from_s.is_none_or(|from| from <= at)
                    && input.until_s.is_none_or(|until| at < until)
            }
            None => !ranged,
        };
        if !fits || !asked {
            continue;
        }
        if row.response_cached == Some(true) {
            found.response_cached += 1;
            continue;
        }
        let weight = row.sample_weight.unwrap_or(1.0);
        if weight == 0.0 {
            continue;
        }
        found.undated += u64::from(at.is_none());
        let hour = at.map_or(0, |at| (at - start_s) / 3600) as u32;
        let model = row.model.as_deref().unwrap_or_default();
        let place = match model {
            _ if model.starts_with("llama") || model == "lama" => Some(0),
            "big" if row.provider.as_deref() == Some("acme") => Some(1),
            "gift" => Some(2),
            _ => None,
        };
        let end = match row.status.as_deref() {
            Some("ok") => End::Ok,
            Some("limited") => End::Limited,
            Some("failed") => End::Failed,
            Some("cancelled") => End::Cancelled,
            _ => End::Unknown,
        };
        let retry = row.attempt.is_some_and(|n| n > 1);
        let mut sums = Sums { requests: weight, ..Sums::default() };
        let mut usd = row.cost_usd.unwrap_or(0.0);
        let (mut work_s, mut token_usd) = (0.0, None);
        match (row.prompt_tokens.map(f64::from), row.output_tokens.map(f64::from)) {
            (Some(prompt), Some(output)) => {
                let cached = row.cache_read_tokens.map_or(0.0, f64::from);
                let write = row.cache_write_tokens.map_or(0.0, f64::from);
                let fresh = prompt - cached;
                // Pair by pair: each token sees those before it.
                let before = (0..fresh as u32).map(|k| cached + f64::from(k)).sum::<f64>();
                let after = (0..output as u32).map(|k| prompt + f64::from(k)).sum::<f64>();
                sums.fresh = weight * fresh;
                sums.fresh_context = weight * before;
                sums.cached = weight * cached;
                sums.output = weight * output;
                sums.output_context = weight * after;
                sums.cached_unknown = if row.cache_read_tokens.is_none() { weight } else { 0.0 };
                work_s = fresh * 1e-3 + before * 1e-6 + output * 1e-2 + after * 1e-5;
                let million = match (row.tier.as_deref(), prompt) {
                    (Some("batch"), _) => [1.0, 0.25, 1.25, 5.0],
                    (_, prompt) if prompt > 5000.0 => [8.0, 2.0, 10.0, 40.0],
                    (_, prompt) if prompt > 1000.0 => [4.0, 1.0, 5.0, 20.0],
                    _ => [2.0, 0.5, 2.5, 10.0],
                };
                let tokens = [fresh - write, cached, write, output];
                token_usd =
                    Some(million.iter().zip(tokens).map(|(price, n)| price * n / 1e6).sum());
            }
            _ => sums.blank = weight,
        }
        if let (Some(prefill_s), Some(decode_s)) = (row.prefill_s, row.decode_s) {
            sums.prefill_s = weight * prefill_s;
            sums.decode_s = weight * decode_s;
            sums.timed = weight;
        }
        if let Some(cost) = row.cost_usd {
            sums.logged_usd = weight * cost;
            sums.logged = weight;
        }
        match (place, token_usd) {
            (Some(0), _) => usd = 0.5 * work_s,
            (Some(1), Some(tokens)) => {
                usd = tokens;
                sums.token_usd = weight * tokens;
            }
            (Some(1), None) => sums.token_unpriced = weight,
            _ => {}
        }
        for dimension in Dimension::ALL {
            let key = (dimension, value(&row, dimension), place, hour, end, retry);
            found.cells.entry(key).or_default().add(&sums);
        }
        let name = match &row.task_id {
            Some(task) => (true, task.clone()),
            None => (false, row.request_id.clone().expect("a name")),
        };
        groups.entry(name).or_default().push((row, usd));
    }
    let mut verdicts: BTreeMap<String, (Option<i64>, bool)> = BTreeMap::new();
    for outcome in ledger.outcomes().expect("outcomes") {
        let (task, success) =
            (outcome.task_id.expect("a task"), outcome.success.expect("a verdict"));
        let known = verdicts.entry(task).or_insert((outcome.ts, success));
        if outcome.ts >= known.0 {
            *known = (outcome.ts, success);
        }
    }
    found.outcomes_unknown = verdicts.keys().filter(|task| !named.contains(*task)).count() as u64;
    for ((is_named, name), rows) in groups {
        let said = rows.iter().rev().find_map(|(row, _)| row.success);
        let later = if is_named { verdicts.get(&name).map(|(_, success)| *success) } else { None };
        let success = later.or(said);
        let usd = rows.iter().map(|(_, usd)| usd).sum::<f64>();
        let first = &rows[0].0;
        for dimension in Dimension::ALL {
            count(
                found.tasks.entry((dimension, value(first, dimension))).or_default(),
                rows.len(),
                success,
                usd,
            );
        }
        count(&mut found.all, rows.len(), success, usd);
    }
    found
}

fn count(tasks: &mut Tasks, attempts: usize, success: Option<bool>, usd: f64) {
    tasks.tasks += 1;
    tasks.attempts += attempts as u64;
    tasks.succeeded += u64::from(success == Some(true));
    tasks.failed += u64::from(success == Some(false));
    tasks.usd += usd;
    tasks.usd_squared += usd * usd;
    if success == Some(true) {
        tasks.usd_succeeded += usd;
    }
}

/// A row of few different values, so that they meet.
fn any_row() -> impl Strategy<Value = String> {
    let one = |name: &'static str, of: &'static [&'static str]| {
        prop::option::of(prop::sample::select(of)).prop_map(move |value| {
            value.map_or(String::new(), |value| format!(",\"{name}\":{value}"))
        })
    };
    let names = (
        one("tenant", &["\"a\"", "\"b\"", "\"other\""]),
        one("model", &["\"llama-1\"", "\"lama\"", "\"big\"", "\"gift\"", "\"x\""]),
        one("provider", &["\"acme\"", "\"other\""]),
        one("feature", &["\"f\"", "\"g\""]),
        one("tier", &["\"batch\"", "\"gold\""]),
        one("route", &["\"r\"", "\"s\""]),
        one("product", &["\"p\"", "\"q\""]),
        one("task_id", &["\"t\"", "\"u\"", "\"v\"", "\"w\""]),
    );
    let ends = (
        one("attempt", &["1", "2", "3"]),
        one("status", &["\"ok\"", "\"limited\"", "\"failed\"", "\"cancelled\""]),
        one("success", &["true", "false"]),
        one("response_cached", &["true", "false"]),
        one("sample_weight", &["0", "1", "2.5"]),
        one("cost_usd", &["0", "0.125", "3"]),
        one("prefill_s", &["0.5"]),
        one("decode_s", &["0.25", "4"]),
    );
    let tokens = (
        prop::option::of(0u32..8000),
        prop::option::of(0.0f64..=0.5),
        prop::option::of(0.0f64..=0.5),
        prop::option::of(0u32..30),
    )
        .prop_map(|(prompt, cached, written, output)| {
            let part = |name: &str, share: Option<f64>| match (prompt, share) {
                (Some(prompt), Some(share)) => {
                    format!(",\"{name}\":{}", (f64::from(prompt) * share).floor())
                }
                _ => String::new(),
            };
            let known = |name: &str, n: Option<u32>| {
                n.map_or(String::new(), |n| format!(",\"{name}\":{n}"))
            };
            known("prompt_tokens", prompt)
                + &part("cache_read_tokens", cached)
                + &part("cache_write_tokens", written)
                + &known("output_tokens", output)
        });
    let at = prop::option::weighted(0.9, 0u32..300);
    (0u32..30, at, names, ends, tokens).prop_map(|(name, at, n, e, tokens)| {
        let at = at.map_or(String::new(), |minute| {
            let (day, minute) = (1 + minute / 100, 480 + 6 * (minute % 100));
            format!(
                ",\"ts_arrival\":\"2026-03-{day:02}T{:02}:{:02}:00Z\"",
                minute / 60,
                minute % 60
            )
        });
        let names = n.0 + &n.1 + &n.2 + &n.3 + &n.4 + &n.5 + &n.6 + &n.7;
        let ends = e.0 + &e.1 + &e.2 + &e.3 + &e.4 + &e.5 + &e.6 + &e.7;
        format!("{{\"request_id\":\"{name}\"{at}{names}{ends}{tokens}}}\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(48)))]

    /// Whatever is counted is what rows say one by one; every dimension counts the same; and threads do not matter.
    #[test]
    fn as_counted_row_by_row(
        files in prop::collection::vec(prop::collection::vec(any_row(), 1..25), 1..4),
        verdicts in prop::collection::vec((0usize..6, any::<bool>(), 1u32..4), 0..6),
        tenant in prop::option::of(prop::sample::select(&["a", "b"][..])),
        (from, until) in (prop::option::of(0i64..60), prop::option::of(0i64..60)),
    ) {
        let mut outcomes = "task_id,success,ts\n".to_owned();
        for (task, success, day) in &verdicts {
            let task = ["t", "u", "v", "w", "x", "y"][*task];
            outcomes += &format!("{task},{success},2026-04-{day:02}T00:00:00Z\n");
        }
        // The first row tells what kind of log it is; and with one of each tenant there is always a clock.
        let first = |n: usize| {
            let of = |tenant: &str| {
                let more = format!(",\"tenant\":\"{tenant}\",\"prompt_tokens\":3,\"output_tokens\":2");
                row(&format!("{tenant}{n}"), "10:00:00", &more)
            };
            of("a") + &of("b")
        };
        let texts: Vec<String> =
            files.iter().enumerate().map(|(n, rows)| first(n) + &rows.concat()).collect();
        let names: Vec<String> = (0..texts.len()).map(|n| format!("{n}.jsonl")).collect();
        let mut all: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        if !verdicts.is_empty() {
            all.push(("later.csv", &outcomes));
        }
        let scratch = Scratch::named(&all);
        let ledger = scratch.ledger();
        let hour = |hour: i64| TEN - 36_000 + hour * 3600;
        let input = UsageInput {
            only: tenant.map(|tenant| ("tenant".to_owned(), tenant.to_owned())).into_iter().collect(),
            from_s: from.map(hour),
            until_s: until.map(hour),
            ..asked()
        };
        let found = ledger.usage(&input).expect("used");
        for threads in [1, 5] {
            let threads = NonZero::new(threads).expect("some");
            let again = ledger.usage(&UsageInput { threads, ..input.clone() }).expect("used");
            prop_assert_eq!(&again, &found);
        }
        let expect = plain(&ledger, &input, found.period.start_s.unwrap_or(0));
        prop_assert_eq!(found.response_cached, expect.response_cached);
        prop_assert_eq!(found.undated, expect.undated);
        prop_assert_eq!(found.outcomes_unknown, expect.outcomes_unknown);
        tasks_alike(&found.tasks, &expect.all, "all");
        for dimension in Dimension::ALL {
            let own: BTreeMap<_, _> =
                expect.cells.iter().filter(|(key, _)| key.0 == dimension).collect();
            let Some(table) = found.by.get(&dimension) else {
                prop_assert!(own.keys().all(|key| key.1.is_none()), "{dimension:?}");
                continue;
            };
            prop_assert_eq!(table.cells.len(), own.len(), "{:?}", dimension);
            for (key, sums) in &table.cells {
                let value = table.values[key.value as usize].clone();
                let plain = (dimension, value, key.place, key.hour, key.end, key.retry);
                prop_assert!(own.contains_key(&plain), "{plain:?}");
                alike(sums, own[&plain], &format!("{plain:?}"));
                prop_assert!(key.hour < found.period.hours);
            }
            for (value, tasks) in table.values.iter().zip(&table.tasks) {
                let plain = expect.tasks.get(&(dimension, value.clone())).copied().unwrap_or_default();
                tasks_alike(tasks, &plain, &format!("{dimension:?} {value:?}"));
            }
        }
    }
}
