//! A small ledger, asked in SQL.

use std::num::NonZero;

use plimsoll_ledger::{Answer, IngestInput, Ledger, QueryError, QueryInput, ingest};
use plimsoll_query::query;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Four requests on two days, the last of them without a time; one row that is wrong; two outcomes.
const REQUESTS: &str = r#"{"request_id":"a","task_id":"t1","ts_arrival":"2026-03-01T23:59:59Z","prompt_tokens":100,"output_tokens":10,"tenant":"acme","sample_weight":2.5}
{"request_id":"b","task_id":"t2","ts_arrival":"2026-03-02T00:00:00.5Z","prompt_tokens":200,"output_tokens":20,"tenant":"o'brien","blocks":[7,8],"block_tokens":16,"block_scope":"global","stream":true}
{"request_id":"c","ts_arrival":"2026-03-02T00:00:02Z","prompt_tokens":300,"cache_read_tokens":50}
{"request_id":"d","prompt_tokens":400,"output_tokens":40}
{"request_id":"e","ts_arrival":"2026-03-02T00:00:03Z","prompt_tokens":-1}
"#;
const OUTCOMES: &str = "task_id,success,value\nt1,true,1.5\nt2,false,\n";

fn small_ledger(folder: &TempDir) -> Ledger {
    // A path with what a pattern would trip over.
    let directory = folder.path().join("led [a]*?");
    for (name, text) in [("requests.jsonl", REQUESTS), ("outcomes.csv", OUTCOMES)] {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        let input = IngestInput {
            files: vec![file],
            ledger: directory.clone(),
            source: None,
            format: None,
            map: Vec::new(),
            start_ns: 0,
            find: None,
            threads: NonZero::<usize>::MIN,
        };
        ingest(&input).expect("taken");
    }
    Ledger::open(&directory).expect("a ledger")
}

fn ask(ledger: &Ledger, sql: &str) -> Result<Answer, QueryError> {
    query(ledger, &QueryInput { sql: sql.to_owned(), rows_max: 100 })
}

/// The error as the user reads it.
fn line(answer: Result<Answer, QueryError>) -> String {
    let line = answer.expect_err("an error").to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn answers_worked_by_hand() {
    let folder = TempDir::new().unwrap();
    let ledger = small_ledger(&folder);
    let check = |sql: &str, expect: Value| {
        let answer = ask(&ledger, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(json!(answer.rows), expect, "{sql}");
    };
    check(
        "SELECT request_id, ts_arrival, day, prompt_tokens, output_tokens, tenant, sample_weight, stream, blocks \
         FROM requests ORDER BY request_id",
        json!([
            ["a", "2026-03-01T23:59:59Z", "2026-03-01", 100, 10, "acme", 2.5, null, null],
            ["b", "2026-03-02T00:00:00.500Z", "2026-03-02", 200, 20, "o'brien", null, true, [7, 8]],
            ["c", "2026-03-02T00:00:02Z", "2026-03-02", 300, null, null, null, null, null],
            ["d", null, null, 400, 40, null, null, null, null],
        ]),
    );
    check(
        "SELECT day, count(*) AS n, sum(prompt_tokens) AS p FROM requests WHERE day >= '2026-03-02' GROUP BY day",
        json!([["2026-03-02", 2, 500]]),
    );
    check(
        "SELECT r.tenant, o.success, o.value FROM requests r JOIN outcomes o USING (task_id) ORDER BY 1",
        json!([["acme", true, 1.5], ["o'brien", false, null]]),
    );
    check(
        "SELECT file LIKE '%requests.jsonl' AS f, line, field FROM rejects",
        json!([[true, 5, "prompt_tokens"]]),
    );
    check("SELECT count(*) FROM series", json!([[0]]));
    check("SELECT avg(prompt_tokens), 0.0 / 0.0, 7 / 2 FROM requests", json!([[250.0, "NaN", 3]]));
    let described = ask(&ledger, "DESCRIBE outcomes").unwrap();
    assert_eq!(described.rows[1][0], "task_id");
    assert!(ask(&ledger, "EXPLAIN SELECT 1").unwrap().rows.len() > 1);
    let kinds =
        ask(&ledger, "SELECT ts_arrival, day, line, cost_usd, blocks, stream, file FROM requests")
            .unwrap();
    let kinds: Vec<&str> = kinds.columns.iter().map(|column| column.kind).collect();
    assert_eq!(kinds, ["time", "date", "integer", "number", "list", "boolean", "text"]);
}

#[test]
fn rows_are_cut_and_that_is_said() {
    let folder = TempDir::new().unwrap();
    let ledger = small_ledger(&folder);
    let input = |rows_max| QueryInput {
        sql: "SELECT request_id FROM requests ORDER BY 1 DESC".to_owned(),
        rows_max,
    };
    let answer = query(&ledger, &input(3)).unwrap();
    assert_eq!((json!(answer.rows), answer.truncated), (json!([["d"], ["c"], ["b"]]), true));
    assert!(!query(&ledger, &input(4)).unwrap().truncated);
}

#[test]
fn a_ledger_is_only_read() {
    let folder = TempDir::new().unwrap();
    let ledger = small_ledger(&folder);
    for (sql, name) in [
        ("CREATE TABLE t AS SELECT 1", "CREATE MEMORY TABLE"),
        ("CREATE VIEW v AS SELECT 1", "CREATE VIEW"),
        ("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/'", "CREATE EXTERNAL TABLE"),
        ("DROP TABLE requests", "DROP TABLE"),
        ("INSERT INTO outcomes SELECT * FROM outcomes", "INSERT INTO"),
        ("DELETE FROM outcomes", "DELETE"),
        ("COPY requests TO '/nowhere/x.parquet'", "COPY"),
        ("EXPLAIN ANALYZE COPY requests TO '/nowhere/x.parquet'", "COPY"),
        ("SET datafusion.execution.batch_size = 1", "SET VARIABLE"),
        ("PREPARE p AS SELECT 1", "PREPARE"),
    ] {
        assert_eq!(line(ask(&ledger, sql)), format!("a ledger is only read: {name} is refused"));
    }
}

#[test]
fn mistakes_have_a_line_and_a_hint() {
    let folder = TempDir::new().unwrap();
    let ledger = small_ledger(&folder);
    for (sql, expect) in [
        ("SELEC 1", "Expected: an SQL statement, found: SELEC at Line: 1, Column: 1"),
        (
            "SELECT prompt_token FROM requests",
            "No field named prompt_token. Did you mean 'requests.prompt_tokens'?",
        ),
        ("SELECT * FROM request", "table 'request' not found"),
        ("SELECT * FROM '/etc/passwd'", "table '/etc/passwd' not found"),
        ("SELECT nosuch(1)", "Invalid function 'nosuch'"),
        ("SELECT sum(tenant) FROM requests", "Function 'sum' failed to match any signature"),
        ("SELECT 1; SELECT 2", "The context currently only supports a single SQL statement"),
        ("", "No SQL statements were provided in the query string"),
    ] {
        assert_eq!(line(ask(&ledger, sql)), format!("the SQL is wrong: {expect}"));
    }
    let error = ask(&ledger, "SELECT * FROM request").unwrap_err();
    assert_eq!(error.help().unwrap(), "the tables are requests, outcomes, series, rejects");
    let divided = ask(&ledger, "SELECT 1 / (prompt_tokens - prompt_tokens) FROM requests");
    assert_eq!(line(divided), "the query failed: Divide by zero error");
}

/// A file that is gone or cut is no empty table.
#[test]
fn files_are_looked_at_first() {
    let folder = TempDir::new().unwrap();
    let ledger = small_ledger(&folder);
    let found = ask(&ledger, "SELECT count(*) FROM outcomes").unwrap();
    assert_eq!(json!(found.rows), json!([[2]]));
    let file = std::fs::read_dir(ledger.directory().join("outcomes")).unwrap().next().unwrap();
    let file = file.unwrap().path();
    for bytes in ["", "PAR1", "PAR1PAR1PAR1", "no, a list of requests"] {
        std::fs::write(&file, bytes).unwrap();
        let expect = format!("{} is not a Parquet file", file.display());
        assert_eq!(line(ask(&ledger, "SELECT 1")), expect);
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(line(ask(&ledger, "SELECT 1")), format!("{} cannot be read", file.display()));
}
