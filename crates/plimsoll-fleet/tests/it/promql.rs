//! PromQL is read as Prometheus reads it.

mod queries;
mod server;
mod trees;

use std::process::Command;

use plimsoll_fleet::promql::{QueryError, read};
use queries::{REFUSED, TAKEN, TAKEN_BEFORE_3, TAKEN_BY_3};
use serde_json::json;

#[test]
fn what_prometheus_takes_is_read_and_the_rest_refused() {
    for query in TAKEN.iter().chain(TAKEN_BY_3).chain(TAKEN_BEFORE_3) {
        if let Err(error) = read(query) {
            panic!("{query}\n{error}, at {}", error.at);
        }
    }
    for query in REFUSED {
        let at = read(query).expect_err(query).at;
        assert!(at <= query.chars().count(), "{query}: {at}");
    }
}

/// `promtool` takes the same queries as rules.
#[test]
fn promtool_takes_and_refuses_the_same() {
    let Some(major) = version("promtool") else {
        println!("SKIPPED: promtool is not installed, so queries were not held against it");
        return;
    };
    let newer = if major >= 3 { TAKEN_BY_3 } else { TAKEN_BEFORE_3 };
    let taken: Vec<&&str> = TAKEN.iter().chain(newer).collect();
    let all: Vec<&&str> = taken.iter().copied().chain(REFUSED).collect();
    let rules: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(index, query)| json!({"record": format!("rule:{index}"), "expr": query}))
        .collect();
    // JSON is YAML too.
    let file = json!({"groups": [{"name": "queries", "rules": rules}]}).to_string();
    let path = std::env::temp_dir().join(format!("plimsoll-promql-{}.yaml", std::process::id()));
    std::fs::write(&path, file).expect("a file");
    let checked = Command::new("promtool").args(["check", "rules"]).arg(&path).output();
    std::fs::remove_file(&path).expect("a file");
    let checked = checked.expect("promtool");
    let output = String::from_utf8_lossy(&checked.stdout).into_owned()
        + &String::from_utf8_lossy(&checked.stderr);
    for (index, query) in all.iter().enumerate() {
        let refused = output.contains(&format!("\"rule:{index}\": could not parse"));
        assert_eq!(!refused, index < taken.len(), "{query}\n{output}");
    }
}

/// The major version of a program, or none where it is not installed.
fn version(program: &str) -> Option<u32> {
    let Ok(output) = Command::new(program).arg("--version").output() else {
        assert!(
            std::env::var_os("CI").is_none(),
            "{program} is not installed, and CI must have it"
        );
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let number = text.split("version ").nth(1).and_then(|rest| rest.split('.').next());
    Some(number.and_then(|number| number.parse().ok()).expect("a version"))
}

#[test]
fn mistakes_say_where_and_what() {
    let check = |query: &str, at: usize, message: &str| {
        let expect = QueryError { message: message.to_owned(), at };
        assert_eq!(read(query), Err(expect), "{query}");
    };
    check("", 0, "the query is empty");
    check(" # nothing", 0, "the query is empty");
    check("sum(a) +", 8, "the query ends where an expression should be");
    check("sum(rate(a[5m])", 3, "`(` is not closed");
    check("sum(a))", 6, "`)` closes nothing");
    check("sum(a]", 5, "`]` stands where an operator, `,` or `)` should be");
    check("a{b=\"c\"", 1, "`{` is not closed");
    check("ä + 1", 0, "`ä` is no part of PromQL");
    check("\"ä\" + !", 6, "`!` is no part of PromQL");
    check("a{b=\"c}", 4, "the quote is not closed");
    check("a{b=\"x\\q\"}", 6, "Go knows no such escape");
    check("a{b=c}", 4, "`c` stands where a quoted text should be");
    check("a{b=~\"x(\"}", 5, "the pattern is none: `(` is not closed");
    check(
        "{a=~\".*\"}",
        0,
        "it selects every series: one label at least must not match the empty text",
    );
    check("a b", 2, "`b` stands where an operator or the end of the query should be");
    check("5x", 0, "`5x` is neither a number nor a duration");
    check("rate(a)", 5, "`rate` takes a range vector here, not an instant vector");
    check("round(a, 1, 2)", 0, "`round` takes 1 to 2 arguments, and 3 are given");
    check("topk(a)", 0, "`topk` takes 2 arguments, and 1 are given");
    check("rte(a[5m])", 0, "there is no function `rte`");
    check("1 > 2", 2, "scalars are compared with `> bool`");
    check("a[5m] + 1", 0, "`+` takes scalars and instant vectors, not a range vector");
    check("1 + a[5m]", 4, "`+` takes scalars and instant vectors, not a range vector");
    check("a + bool b", 2, "`bool` is for comparisons, and `+` is none");
    check("sum(a)[5m]", 6, "only a selector has a range; a subquery has a colon, such as `[5m:]`");
    check("a[0s]", 2, "the duration must be greater than 0");
    check("(a) offset 5m", 4, "`offset` follows a selector, a range or a subquery");
    check(&"(".repeat(100_000), 64, "expressions are nested more than 64 deep");
    check(&"-".repeat(100_000), 64, "expressions are nested more than 64 deep");
    check(&["a"; 300].join("+"), 501, "more than 250 operators and calls are not looked at");
    assert!(read(&["a"; 200].join("+")).is_ok());
    assert!(read(&format!("{{a=~\"{}\"}}", "(".repeat(100_000))).is_err());
}
