//! What users type, in a program that was built with SQL, clusters and object stores.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{self, plimsoll};

const LOG: &str =
    "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,900,60\n2.5,40,5\n3.0,1200,12\n";

/// A ledger of three requests, read from a URL.
struct Scratch(common::Scratch);

impl Scratch {
    fn new(name: &str) -> Self {
        let scratch = Self(common::Scratch::new(name));
        let url = format!("file://{}", scratch.0.file("log.csv", LOG));
        let output = plimsoll(&["ingest", &url, "--into", &scratch.ledger()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        scratch
    }

    fn ledger(&self) -> String {
        self.0.path("ledger")
    }
}

fn said(output: &std::process::Output, ledger: &str) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(ledger, "LEDGER");
    let code = output.status.code().expect("a code");
    format!("exit {code}\n{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_table_with_rules() {
    let scratch = Scratch::new("query");
    let ledger = scratch.ledger();
    let sql = "SELECT prompt_tokens AS p, output_tokens * 1.5 AS x, tenant, clock FROM requests ORDER BY p";
    assert_snapshot!(said(&plimsoll(&["query", &ledger, sql]), &ledger), @r"
    exit 0
    +------+------+--------+----------+
    |    p |    x | tenant | clock    |
    +=================================+
    |   40 |  7.5 | NULL   | relative |
    |  900 | 90.0 | NULL   | relative |
    | 1200 | 18.0 | NULL   | relative |
    +------+------+--------+----------+

    3 rows
    ");
    assert_snapshot!(said(&plimsoll(&["query", &ledger, sql, "--rows", "1"]), &ledger), @r"
    exit 0
    +----+-----+--------+----------+
    |  p |   x | tenant | clock    |
    +==============================+
    | 40 | 7.5 | NULL   | relative |
    +----+-----+--------+----------+

    the first row; `--rows N` shows more
    ");
}

#[test]
fn json_for_scripts() {
    let scratch = Scratch::new("query-json");
    let ledger = scratch.ledger();
    let sql = "SELECT count(*) AS n, max(ts_arrival) AS last FROM requests";
    let output = plimsoll(&["--json", "query", &ledger, sql]);
    let mut document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(document["version"].take().is_string());
    assert_eq!(
        document,
        json!({
            "schema": "plimsoll/query/v1",
            "version": null,
            "ledger": ledger,
            "sql": sql,
            "columns": [{ "name": "n", "type": "integer" }, { "name": "last", "type": "time" }],
            "rows": [[3, "1970-01-01T00:00:03Z"]],
            "truncated": false,
        })
    );
}

#[test]
fn mistakes_end_with_two() {
    let scratch = Scratch::new("query-wrong");
    let ledger = scratch.ledger();
    let mut all = String::new();
    for sql in ["SELECT prompt_token FROM requests", "SELECT 1 FROM request", "DROP TABLE requests"]
    {
        all += &said(&plimsoll(&["query", &ledger, sql]), &ledger);
    }
    let nobody = plimsoll(&["profile", &ledger, "--cluster", "df://127.0.0.1:1"]);
    all += &said(&nobody, &ledger);
    let log = scratch.0.path("log.csv");
    all += &said(&plimsoll(&["profile", &log, "--cluster", "df://127.0.0.1:1"]), &ledger);
    // Where a line breaks depends on the length of the path.
    let all = all.replace("\n  │ ", " ");
    assert_snapshot!(all, @r"
    exit 2
    bad-sql

      × LEDGER: the SQL is wrong: No field named prompt_token. Did you mean 'requests.prompt_tokens'?
      help: `DESCRIBE requests` lists the columns of a table

    exit 2
    bad-sql

      × LEDGER: the SQL is wrong: table 'request' not found
      help: the tables are requests, outcomes, series, rejects

    exit 2
    bad-sql

      × LEDGER: a ledger is only read: DROP TABLE is refused
      help: ask with SELECT, EXPLAIN or DESCRIBE

    exit 2
    bad-cluster

      × LEDGER: no scheduler answers at df://127.0.0.1:1: Connection refused (os error 111)
      help: start the scheduler and its executors, or leave `--cluster` out

    exit 2
    bad-cluster

      × profile: `--cluster` is for a ledger that the cluster sees, too
      help: `plimsoll ingest FILES… --into LEDGER` makes one
    ");
}
