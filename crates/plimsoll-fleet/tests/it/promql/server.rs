//! Trees held against those of a running Prometheus.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_fleet::promql::{
    At, BinaryOp, Expr, Group, Labels, MatchOp, Selector, Sign, Time, ValueType, read,
};
use serde_json::{Value, json};

use super::queries::{TAKEN, TAKEN_BY_3};
use super::version;

struct Server {
    process: Child,
    address: SocketAddr,
    home: std::path::PathBuf,
}

impl Server {
    fn start() -> Self {
        let home = std::env::temp_dir().join(format!("plimsoll-promql-{}", std::process::id()));
        std::fs::create_dir_all(&home).expect("a directory");
        let config = home.join("prometheus.yml");
        std::fs::write(&config, "global: {}\n").expect("a file");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", home.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus runs");
        let server = Self { process, address, home };
        let ready = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            server.ask("query", "1").is_ok_and(|answer| answer.is_some())
        });
        assert!(ready, "prometheus is not ready after 30 s");
        server
    }

    /// The data of an answer; none where the server knows no such question or refuses the query.
    fn ask(&self, path: &str, query: &str) -> std::io::Result<Option<Value>> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(self.address)?;
        write!(
            stream,
            "GET /api/v1/{path}?query={encoded} HTTP/1.0\r\nHost: {}\r\n\r\n",
            self.address
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let Ok(mut body) = serde_json::from_str::<Value>(body) else { return Ok(None) };
        Ok((body["status"] == "success").then(|| body["data"].take()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// A server that gives trees must give ours; an older one gives the query as it prints it, and the value that operators have.
#[test]
fn trees_are_those_of_prometheus() {
    let Some(major) = version("prometheus") else {
        println!("SKIPPED: prometheus is not installed, so trees were not held against its own");
        return;
    };
    let server = Server::start();
    let ask = |path: &str, query: &str| server.ask(path, query).expect("an answer");
    let gives_trees = ask("parse_query", "a").is_some();
    let newer = if major >= 3 { TAKEN_BY_3 } else { &[] };
    for query in TAKEN.iter().chain(newer) {
        let expr = read(query).expect(query);
        if gives_trees {
            let theirs = plain(ask("parse_query", query).expect(query));
            assert_eq!(plain(tree(&expr)), theirs, "{query}");
        } else {
            let theirs = ask("format_query", query).expect(query);
            let theirs = theirs.as_str().expect("a text").to_owned();
            let ours = expr.to_string();
            // It leaves out what says nothing, and sorts labels.
            let odd = ["()", "inf=\"y\"", "99999999999999999999"];
            if !odd.iter().any(|part| query.contains(part)) {
                assert_eq!(without_spaces(&ours), without_spaces(&theirs), "{query}");
            }
        }
    }
    for query in chains() {
        let grouped = parenthesised(&read(&query).expect(&query));
        let values = [&query, &grouped].map(|query| {
            let mut data = ask("query", query).expect(query);
            // The time of an answer differs.
            for series in data["result"].as_array_mut().expect("series") {
                series["value"] = series["value"][1].take();
            }
            data
        });
        assert_eq!(values[0], values[1], "{query} is not {grouped}");
    }
}

/// All pairs of operators, with and without signs.
fn chains() -> Vec<String> {
    let mut all = Vec::new();
    for first in BinaryOp::ALL {
        for second in BinaryOp::ALL {
            for (before, between) in [("", ""), ("-", ""), ("", "-")] {
                all.push(format!(
                    "{before}vector(2) {} {between}vector(3) {} vector(0.5)",
                    first.word(),
                    second.word()
                ));
            }
        }
    }
    all
}

/// With parentheses around every operator and sign.
fn parenthesised(expr: &Expr) -> String {
    match expr {
        Expr::Binary(binary) => {
            let (left, right) = (parenthesised(&binary.left), parenthesised(&binary.right));
            format!("({left} {} {right})", binary.op.word())
        }
        Expr::Unary(Sign::Minus, inner) => format!("(-{})", parenthesised(inner)),
        expr => expr.to_string(),
    }
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A tree as Prometheus gives it.
fn tree(expr: &Expr) -> Value {
    match expr {
        Expr::Number(value) => json!({"type": "numberLiteral", "val": value.to_string()}),
        Expr::Text(text) => json!({"type": "stringLiteral", "val": text}),
        Expr::Selector(selector) => selected(selector, "vectorSelector"),
        Expr::Range(selector, range) => {
            let mut value = selected(selector, "matrixSelector");
            value["range"] = json!(range);
            value
        }
        Expr::Subquery(subquery) => {
            let mut value = json!({
                "type": "subquery",
                "expr": tree(&subquery.expr),
                "range": subquery.range,
                "step": subquery.step.unwrap_or(0),
            });
            at(&subquery.time, &mut value);
            value
        }
        Expr::Aggregate(aggregate) => {
            let (labels, without) = match &aggregate.grouping {
                Some(Labels::Only(labels)) => (labels.clone(), false),
                Some(Labels::Except(labels)) => (labels.clone(), true),
                None => (Vec::new(), false),
            };
            json!({
                "type": "aggregation",
                "op": aggregate.op.word(),
                "expr": tree(&aggregate.expr),
                "param": aggregate.param.as_ref().map(tree),
                "grouping": labels,
                "without": without,
            })
        }
        Expr::Call(call) => json!({
            "type": "call",
            "func": {"name": call.function.name},
            "args": call.args.iter().map(tree).collect::<Vec<_>>(),
        }),
        Expr::Binary(binary) => {
            let sides = [&binary.left, &binary.right];
            let vectors = sides.iter().all(|side| side.value_type() == ValueType::Vector);
            let (labels, on) = match &binary.matching {
                Some(Labels::Only(labels)) => (labels.clone(), true),
                Some(Labels::Except(labels)) => (labels.clone(), false),
                None => (Vec::new(), false),
            };
            let (card, include) = match &binary.group {
                Some(Group::Left(labels)) => ("many-to-one", labels.clone()),
                Some(Group::Right(labels)) => ("one-to-many", labels.clone()),
                None if binary.op.is_for_sets() => ("many-to-many", Vec::new()),
                None => ("one-to-one", Vec::new()),
            };
            let matching = json!({"card": card, "labels": labels, "on": on, "include": include});
            json!({
                "type": "binaryExpr",
                "op": binary.op.word(),
                "lhs": tree(&binary.left),
                "rhs": tree(&binary.right),
                "bool": binary.returns_bool,
                "matching": vectors.then_some(matching),
            })
        }
        Expr::Unary(sign, inner) => {
            let op = if *sign == Sign::Minus { "-" } else { "+" };
            json!({"type": "unaryExpr", "op": op, "expr": tree(inner)})
        }
        Expr::Paren(inner) => json!({"type": "parenExpr", "expr": tree(inner)}),
    }
}

fn selected(selector: &Selector, kind: &str) -> Value {
    let matcher =
        |label: &str, op: &str, value: &str| json!({"name": label, "type": op, "value": value});
    let mut matchers: Vec<Value> = Vec::new();
    for each in &selector.matchers {
        let op = match each.op {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        };
        matchers.push(matcher(&each.label, op, &each.value));
    }
    matchers.extend(selector.name.iter().map(|name| matcher("__name__", "=", name)));
    let name = selector.name.clone().unwrap_or_default();
    let mut value = json!({"type": kind, "matchers": matchers, "name": name});
    at(&selector.time, &mut value);
    value
}

fn at(time: &Time, value: &mut Value) {
    value["offset"] = json!(time.offset);
    value["timestamp"] = Value::Null;
    value["startOrEnd"] = Value::Null;
    match time.at {
        Some(At::Time(milliseconds)) => value["timestamp"] = json!(milliseconds),
        Some(At::Start) => value["startOrEnd"] = json!("start"),
        Some(At::End) => value["startOrEnd"] = json!("end"),
        None => {}
    }
}

/// Without what is said of a function beyond its name, and numbers in one form.
fn plain(mut value: Value) -> Value {
    match &mut value {
        Value::Object(parts) => {
            if let Some(function) = parts.get_mut("func") {
                *function = function["name"].take();
            }
            for (name, part) in parts.iter_mut() {
                let number = part.as_str().and_then(|text| text.parse::<f64>().ok());
                *part = match number.filter(|_| name == "val") {
                    Some(number) => json!(number.to_string()),
                    None => plain(part.take()),
                };
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| *part = plain(part.take())),
        _ => {}
    }
    value
}
