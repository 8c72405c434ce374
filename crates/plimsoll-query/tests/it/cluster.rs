//! The profile of a ledger by this process, and by a cluster of two executors on loopback.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::num::NonZero;

use crate::local_cluster::{Sight, cluster_that_sees, local_cluster};
use plimsoll_ledger::{
    Classing, IngestInput, Ledger, NamedClass, QueryError, QueryInput, ScanInput, Scanned, ingest,
};
use plimsoll_query::{query, scan_on_cluster};
use plimsoll_stats::Seed;
use plimsoll_study::{ProfileInput, profile};
use serde_json::Value;
use tempfile::TempDir;

/// 2026-03-01T21:00:00Z, in milliseconds: three hours before the next day.
const START_MS: u64 = 20_513 * 86_400_000 + 21 * HOUR_MS;
const HOUR_MS: u64 = 3_600_000;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// A length with a long tail, now and then zero or a power of two.
    fn length(&mut self) -> u64 {
        let bits = self.below(18);
        match self.below(20) {
            0 => 0,
            1 => 1 << bits,
            _ => self.below(1 << bits),
        }
    }
}

/// Requests over seven hours of two days with an hour of nothing at midnight, with unknowns everywhere; some are samples of three, and some were
/// answered from a cache of whole answers.
fn log(rows: u64) -> String {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut text = String::new();
    for i in 0..rows {
        let mut at = random.below(6 * HOUR_MS);
        if at > 3 * HOUR_MS {
            at += HOUR_MS;
        }
        let _ = write!(text, "{{\"request_id\":\"r{i}\"");
        if random.below(100) > 0 {
            let _ = write!(text, ",\"ts_arrival\":{}", START_MS + at);
        }
        let (prompt, output) = (random.length(), random.length());
        if random.below(20) > 0 {
            let _ = write!(text, ",\"prompt_tokens\":{prompt}");
            if random.below(3) > 0 {
                let _ = write!(text, ",\"cache_read_tokens\":{}", random.below(prompt + 1));
            }
        }
        if random.below(20) > 0 {
            let _ = write!(text, ",\"output_tokens\":{output}");
            if random.below(2) > 0 {
                let _ = write!(text, ",\"reasoning_tokens\":{}", random.below(output + 1));
            }
            if random.below(2) > 0 {
                let _ = write!(text, ",\"max_tokens\":{}", output + random.below(2) * 100);
            }
        }
        for (column, values) in [
            ("tenant", ["", "acme", "o'brien", "zeta 100%"]),
            ("user", ["", "u_1", "u_2", "u_3"]),
            ("route", ["", "chat", "chat", "batch"]),
            ("status", ["", "ok", "ok", "failed"]),
            ("sample_weight", ["", "", "", "3"]),
            ("attempt", ["1", "1", "1", "2"]),
        ] {
            let value = values[random.below(4) as usize];
            if !value.is_empty() {
                let quote = if value.parse::<u64>().is_ok() { "" } else { "\"" };
                let _ = write!(text, ",\"{column}\":{quote}{value}{quote}");
            }
        }
        if random.below(50) == 0 {
            let _ = write!(text, ",\"response_cached\":true");
        }
        text.push_str("}\n");
    }
    text
}

/// A ledger of two batches.
fn ledger(folder: &TempDir, rows: u64) -> Ledger {
    let directory = folder.path().join("led [a]");
    let text = log(rows);
    let lines: Vec<&str> = text.lines().collect();
    let (left, right) = lines.split_at(lines.len() / 3);
    for (name, lines) in [("left.jsonl", left), ("right.jsonl", right)] {
        let file = folder.path().join(name);
        std::fs::write(&file, lines.join("\n")).expect("written");
        let input = IngestInput {
            files: vec![file],
            ledger: directory.clone(),
            source: None,
            format: None,
            map: vec![("ts_arrival".to_owned(), "ts_arrival:ms".to_owned())],
            start_ns: 0,
            find: None,
            threads: NonZero::<usize>::MIN,
        };
        assert_eq!(ingest(&input).expect("taken").rejected, 0);
    }
    Ledger::open(&directory).expect("a ledger")
}

fn input(classes: Classing, only: &[(&str, &str)]) -> ScanInput {
    ScanInput {
        classes,
        only: only.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        pace: None,
        cache_blocks: Vec::new(),
        threads: NonZero::<usize>::MIN,
    }
}

fn by(names: &[&str], most: usize) -> Classing {
    Classing::Columns { names: names.iter().map(|name| (*name).to_owned()).collect(), most }
}

fn json(scanned: Scanned) -> Value {
    let Scanned { gathered, classes, clients, clock, no_clock, reuse, notes, .. } = scanned;
    let input = ProfileInput {
        classes,
        clients,
        clients_named: 10,
        clock,
        no_clock,
        reuse,
        series: None,
        seed: Seed::new(7),
        threads: 1,
    };
    let mut found = profile(gathered, &input);
    found.warnings.extend(notes);
    serde_json::to_value(&found).expect("JSON")
}

/// Takes a figure out of both.
fn take(a: &mut Value, b: &mut Value, path: &str) -> (Value, Value) {
    let found = [a, b].map(|value| value.pointer_mut(path).map(Value::take).unwrap_or_default());
    let [a, b] = found;
    (a, b)
}

/// All of a profile is the same, but for gaps between arrivals, which are within the error of the sketch, and for what takes rows, which
/// is null.
fn same_but_for_rows(mut far: Value, mut near: Value) {
    let classes = near["classes"].as_array().expect("a list").len();
    assert_eq!(far["classes"].as_array().expect("a list").len(), classes);
    for i in 0..classes {
        let mut both = |path: &str| take(&mut far, &mut near, &format!("/classes/{i}/{path}"));
        let figures = ["n", "mean"].map(|figure| {
            let (far, near) = both(&format!("inter_arrival/{figure}"));
            assert_eq!(far, near);
            near.as_f64().expect("a number")
        });
        let [n, mean] = figures;
        for figure in ["p50", "p95", "p99"] {
            let (far, near) = both(&format!("inter_arrival/{figure}"));
            let (far, near) = (far.as_f64().expect("a number"), near.as_f64().expect("a number"));
            // The one is near an order statistic, the other between two. Neighbours of n exponential gaps lie mean / n / (1 - p) apart
            // on average.
            let beyond = 1.0 - figure[1..].parse::<f64>().expect("a number") / 100.0;
            let apart = 5.0 * mean / n / beyond;
            assert!((far - near).abs() <= 1e-3 * near + apart, "{i} {figure}: {far} {near}");
        }
        assert_eq!(both("inter_arrival/relative_error").0, 1e-3);
        assert_eq!(both("inter_arrival/exact").0, false);
        let fits = both("inter_arrival_fit");
        let mu = |fit: &Value| fit["lognormal"]["mu"].as_f64().expect("a number");
        assert!((mu(&fits.0) - mu(&fits.1)).abs() < 1e-2, "{fits:?}");
        for figure in ["spearman", "pearson_log", "rows", "exact"] {
            let (far, _) = both(&format!("correlation_prompt_output/{figure}"));
            assert!(far.is_null() || far == 0 || far == false, "{figure}: {far}");
        }
        let pearson = both("correlation_prompt_output/pearson");
        assert_eq!(pearson.0, pearson.1);
        for figure in ["resident_kv_tokens", "prefill_queue"] {
            let (far, _) = both(figure);
            assert_eq!(far["reason"], "a cluster handed back sums, not rows");
        }
        // A class's own tick takes its own stamps.
        let tick = both("tick");
        assert!(i > 0 || tick.0 == tick.1, "{tick:?}");
    }
    let (far_said, near_said) = take(&mut far, &mut near, "/warnings");
    let lines = |said: &Value| said.as_array().expect("a list").len();
    assert_eq!(lines(&far_said), lines(&near_said) + 1, "{far_said} {near_said}");
    let (far_said, near_said) = take(&mut far, &mut near, "/findings");
    let about = |said: &Value| said.as_array().expect("a list").len();
    assert!(about(&far_said) <= about(&near_said), "{far_said} {near_said}");
    differences("", &far, &near);
}

/// Percentiles are within the stated error of the gap at their rank.
fn within_the_sketch(found: &Value, ledger: &Ledger) {
    let sql = "SELECT CAST(ts_arrival AS BIGINT) FROM requests \
               WHERE ts_arrival IS NOT NULL AND response_cached IS NOT TRUE ORDER BY 1";
    let input = QueryInput { sql: sql.to_owned(), rows_max: usize::MAX };
    let rows = query(&ledger, &input).expect("an answer").rows;
    let times: Vec<i64> = rows.iter().map(|row| row[0].as_i64().expect("a whole number")).collect();
    let mut gaps: Vec<f64> =
        times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
    gaps.sort_by(f64::total_cmp);
    assert_eq!(found["n"], gaps.len());
    for (figure, p) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        let (found, rank) = (found[figure].as_f64().expect("a number"), p * gaps.len() as f64);
        let exact = gaps[rank.ceil() as usize - 1];
        assert!((found - exact).abs() <= 1e-3 * exact, "{figure}: {found} {exact}");
    }
}

/// Fails at the first figure that differs, by its name.
fn differences(path: &str, far: &Value, near: &Value) {
    match (far, near) {
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{path}");
            a.iter().for_each(|(key, value)| differences(&format!("{path}/{key}"), value, &b[key]));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{path}");
            let pairs = a.iter().zip(b).enumerate();
            pairs.for_each(|(i, (a, b))| differences(&format!("{path}/{i}"), a, b));
        }
        _ => assert_eq!(far, near, "{path}"),
    }
}

/// The error as the user reads it.
fn line<T>(answer: Result<T, QueryError>) -> String {
    let line = answer.err().expect("an error").to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gives_the_same_profile() {
    let folder = TempDir::new().unwrap();
    let ledger = ledger(&folder, 12_000);
    let cluster = local_cluster(2).await;
    let named = |name: &str, column: &str, value: &str| NamedClass {
        name: name.to_owned(),
        columns: [(column.to_owned(), value.to_owned())].into(),
    };
    for asked in [
        input(by(&["route"], 16), &[]),
        input(by(&["tenant", "user"], 5), &[("route", "ch?t"), ("status", "*")]),
        input(
            Classing::Named(vec![
                named("percent", "tenant", "*100%"),
                named("never", "tenant", "no*"),
                named("other", "user", "u_1"),
            ]),
            &[],
        ),
    ] {
        let near = json(ledger.scan(&asked).unwrap());
        let far = json(scan_on_cluster(&ledger, &cluster.address(), &asked).unwrap());
        assert!(near["classes"][0]["rows"].as_u64().unwrap() > 2_000);
        assert!(near["classes"].as_array().unwrap().len() > 2);
        if asked.only.is_empty() {
            within_the_sketch(&far["classes"][0]["inter_arrival"], &ledger);
        }
        same_but_for_rows(far, near);
    }
    assert!(cluster.tasks().iter().all(|&tasks| tasks > 0), "{:?}", cluster.tasks());
    cluster.shutdown();
}

/// An hour in which three clients fell silent at once is told apart by who was there around it.
#[tokio::test(flavor = "multi_thread")]
async fn silences_are_seen_from_afar() {
    let folder = TempDir::new().unwrap();
    let text: String = (0..7200_u64)
        .filter(|s| !(3000..4000).contains(s))
        .map(|s| {
            let (at, tenant) = (START_MS + s * 1000 + s % 7, s % 3);
            format!("{{\"request_id\":\"r{s}\",\"ts_arrival\":{at},\"prompt_tokens\":10,\"output_tokens\":1,\"tenant\":\"t{tenant}\"}}\n")
        })
        .collect();
    let file = folder.path().join("log.jsonl");
    std::fs::write(&file, text).unwrap();
    let directory = folder.path().join("ledger");
    let logs = IngestInput {
        files: vec![file],
        ledger: directory.clone(),
        source: None,
        format: None,
        map: vec![("ts_arrival".to_owned(), "ts_arrival:ms".to_owned())],
        start_ns: 0,
        find: None,
        threads: NonZero::<usize>::MIN,
    };
    ingest(&logs).unwrap();
    let ledger = Ledger::open(&directory).unwrap();
    let cluster = local_cluster(1).await;
    let asked = input(by(&[], 1), &[]);
    let near = json(ledger.scan(&asked).unwrap());
    assert_eq!(near["classes"][0]["silences"]["collection_gaps"], 1);
    same_but_for_rows(json(scan_on_cluster(&ledger, &cluster.address(), &asked).unwrap()), near);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedulers_that_cannot_help() {
    let folder = TempDir::new().unwrap();
    let ledger = ledger(&folder, 300);
    let asked = input(by(&[], 1), &[]);
    let check = |address: &str, expect: &str| {
        assert_eq!(line(scan_on_cluster(&ledger, address, &asked)), expect);
    };
    check("localhost:50050", "`localhost:50050` is no scheduler: it is written df://host:50050");
    let cluster = local_cluster(0).await;
    let address = cluster.address();
    check(
        &address,
        &format!("the scheduler at {address} has too few executors: 0/1 executors registered"),
    );
    cluster.shutdown();
    // What the system says of a port that is being closed is a race.
    let gone = line(scan_on_cluster(&ledger, &address, &asked));
    assert!(gone.starts_with(&format!("no scheduler answers at {address}: ")), "{gone}");
    // Bound and not listening: no other program gets the port, and connections are refused.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("df://{}", closed.local_addr().unwrap());
    check(
        &address,
        &format!("no scheduler answers at {address}: Connection refused (os error 111)"),
    );
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("df://{}", other.local_addr().unwrap());
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        assert!(stream.read(&mut [0; 512]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\nready\n").unwrap();
    });
    check(&address, &format!("no scheduler answers at {address}: what answers is no Ballista 55"));
    answers.join().unwrap();
}

/// A scheduler that sees nothing answers null without a word; only the count of rows gives it away.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_do_not_see_the_files() {
    let folder = TempDir::new().unwrap();
    let ledger = ledger(&folder, 300);
    let asked = input(by(&[], 1), &[]);
    let same_path = "the scheduler and every executor must see the ledger under the same path";
    let cluster = cluster_that_sees(Sight::Blind, &[Sight::Shared]).await;
    assert_eq!(
        line(scan_on_cluster(&ledger, &cluster.address(), &asked)),
        format!("the cluster cannot read `requests`: {same_path}")
    );
    let cluster = cluster_that_sees(Sight::Shared, &[Sight::Blind, Sight::Blind]).await;
    let blamed = line(scan_on_cluster(&ledger, &cluster.address(), &asked));
    assert!(
        blamed.starts_with("the cluster cannot read /") && blamed.ends_with(same_path),
        "{blamed}"
    );
}
