//! A table of list prices that is known to have wrong rows, which are not ours to ship: where it is beside us, they must be found.

use std::io::Write as _;
use std::path::PathBuf;

use plimsoll_cost::{PriceRow, price_lints};
use plimsoll_units::UsdPerToken;
use serde_json::Value;

/// The three rows that its own description calls suspicious are found, and those that nobody doubts are not.
#[test]
fn suspicious_rows_are_found() {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("PLIMSOLL_SHARED").map_or(beside, PathBuf::from);
    let path = path.join("data/pricing/token_prices.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        // Past the test harness, which would hide it: a skipped test must be seen.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no list prices at {} (set PLIMSOLL_SHARED)",
            path.display()
        );
        return;
    };
    let table: Value = serde_json::from_str(&text).expect("the table is JSON");
    let price = |row: &Value, key: &str| {
        row[key].as_f64().map(|usd| UsdPerToken::picos((usd * 1e6).round() as u64))
    };
    let rows: Vec<PriceRow> = table["models"]
        .as_array()
        .expect("the table has models")
        .iter()
        .filter_map(|row| {
            Some(PriceRow {
                name: row["id"].as_str()?.to_owned(),
                input: price(row, "input")?,
                output: price(row, "output")?,
                cached_input: price(row, "cache_read"),
                cache_write: price(row, "cache_write"),
                batch: price(row, "input_batch").zip(price(row, "output_batch")),
                priority_input: price(row, "input_priority"),
                age_days: Some(30),
            })
        })
        .collect();
    assert!(rows.len() > 60, "{}", rows.len());
    let lints = price_lints(&rows, &rows);
    let found = |code: &str, name: &str| lints.iter().any(|l| l.code == code && l.name == name);
    assert!(found("output-ratio", "together_ai/Qwen/Qwen3-235B-A22B-Instruct-2507-tput"));
    assert!(found("priority-ratio", "gpt-5-nano"));
    assert!(found("cache-write-free", "deepseek/deepseek-v4-pro"));
    assert!(!lints.iter().any(|lint| ["gpt-4o", "gpt-5"].contains(&lint.name.as_str())));
    assert!(lints.len() < rows.len() / 5, "too many to be read: {lints:#?}");
}
