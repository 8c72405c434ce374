//! Answers to questions in SQL.

use comfy_table::presets::ASCII_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use plimsoll_ledger::Answer;
use plimsoll_units::grouped;
use serde_json::{Value, json};

/// An answer as a ruled table.
pub fn query_text(answer: &Answer) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_FULL_CONDENSED);
    table.set_header(answer.columns.iter().map(|column| column.name.as_str()));
    for row in &answer.rows {
        table.add_row(row.iter().map(cell));
    }
    for (column, of) in table.column_iter_mut().zip(&answer.columns) {
        if matches!(of.kind, "integer" | "number") {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let rows = answer.rows.len() as u64;
    let count = match (answer.truncated, rows) {
        (true, 1) => "the first row; `--rows N` shows more".to_owned(),
        (true, _) => format!("the first {} rows; `--rows N` shows more", grouped(rows)),
        (false, 1) => "1 row".to_owned(),
        (false, _) => format!("{} rows", grouped(rows)),
    };
    let lines: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("{lines}\n{count}\n")
}

/// The same as JSON: rows are lists of cells, in the order of the columns.
pub fn query_json(answer: &Answer, sql: &str, ledger: &str, version: &str) -> Value {
    let columns = answer.columns.iter().map(|c| json!({ "name": c.name, "type": c.kind }));
    json!({
        "schema": "plimsoll/query/v1",
        "version": version,
        "ledger": ledger,
        "sql": sql,
        "columns": columns.collect::<Vec<_>>(),
        "rows": answer.rows,
        "truncated": answer.truncated,
    })
}

/// A cell on one line.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.replace('\n', "↵").replace(['\r', '\t'], " "),
        other => other.to_string(),
    }
}
