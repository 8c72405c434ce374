//! Many people at once: nobody hears anything but an answer or a prompt no.
#![expect(clippy::print_stdout, reason = "what was measured is printed")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::common::Scratch;
use crate::server::{Server, client};
use serde_json::json;
use ureq::http::StatusCode;

const CLIENTS: usize = 200;
/// Runs of 30 s on two cores peaked at 175 MiB. Above that this leaves room for what limits allow and this load does not reach, such as 64 bodies of 1 MiB that are read at
/// once, on a machine with more cores; what grows with the number of requests would go beyond it.
const MOST_BYTES: u64 = 1 << 30;
/// For an answered what-if, 99 times of 100.
const P99: Duration = Duration::from_secs(1);

/// What came of the requests.
#[derive(Default)]
struct Tally {
    statuses: BTreeMap<u16, usize>,
    answered: Vec<Duration>,
    wrong: Vec<String>,
}

/// What is asked.
enum Question {
    WhatIf(String),
    BadJson,
    WrongLever(String),
    NoSuchRoute,
    TooLarge,
}

#[expect(clippy::disallowed_methods, reason = "how long answers take is what is measured")]
fn now() -> Instant {
    Instant::now()
}

/// What the client of this number asks next. Most move sliders, as people do.
fn question(texts: &[(&str, String)], client: usize, turn: usize) -> Question {
    let (name, text) = &texts[(client + turn) % texts.len()];
    match (client + turn) % 20 {
        0 => Question::BadJson,
        1 => Question::WrongLever(json!({ "text": text, "levers": { "tide": 1 } }).to_string()),
        2 => Question::NoSuchRoute,
        3 if client % 5 == 3 => Question::TooLarge,
        step => {
            let demand = 0.5 + 0.25 * step as f64;
            let levers = json!({ "demand": demand, "lost": turn % 2 });
            Question::WhatIf(json!({ "name": name, "text": text, "levers": levers }).to_string())
        }
    }
}

fn asks(address: &str, texts: &[(&str, String)], number: usize, until: Instant) -> Tally {
    let client = client(Duration::from_secs(60));
    let mut tally = Tally::default();
    let mut turn = 0;
    while now() < until {
        let question = question(texts, number, turn);
        turn += 1;
        let (path, body, expected): (_, _, &[u16]) = match &question {
            Question::WhatIf(body) => ("what-if", body.clone(), &[200, 429]),
            Question::BadJson => ("what-if", "{\"text\": ".to_owned(), &[400, 429]),
            Question::WrongLever(body) => ("what-if", body.clone(), &[400, 429]),
            Question::NoSuchRoute => ("tides", "{}".to_owned(), &[404]),
            Question::TooLarge => ("what-if", " ".repeat((1 << 20) + 1), &[413, 429]),
        };
        let url = format!("{address}/api/v1/{path}");
        let mut request = client.post(url).header("content-type", "application/json");
        if matches!(question, Question::TooLarge) {
            // Who is turned away before the body is read gets no answer while still sending it.
            request = request.header("expect", "100-continue");
        }
        let began = now();
        let mut answer = match request.send(body) {
            Ok(answer) => answer,
            Err(error) => {
                tally.wrong.push(format!("{path}: {error:?}"));
                continue;
            }
        };
        let (status, headers) = (answer.status(), answer.headers().clone());
        *tally.statuses.entry(status.as_u16()).or_default() += 1;
        let read = answer.body_mut().read_to_vec();
        if let Err(error) = read {
            tally.wrong.push(format!("{path}, {status}: {error:?}"));
            continue;
        }
        if !expected.contains(&status.as_u16()) {
            tally.wrong.push(format!("{path}: {status}"));
        }
        if status == StatusCode::OK {
            tally.answered.push(began.elapsed());
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            let after = headers.get("retry-after").and_then(|v| v.to_str().ok()?.parse().ok());
            match after {
                // As it was asked to; the end is not slept through.
                Some(seconds) => {
                    let left = until.saturating_duration_since(now());
                    std::thread::sleep(Duration::from_secs(seconds).min(left));
                }
                None => tally.wrong.push("429 without Retry-After".to_owned()),
            }
        }
    }
    tally
}

/// The most memory that a process ever had.
fn peak_bytes(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    let kib: u64 = line.split_whitespace().nth(1).expect("a size").parse().expect("a number");
    kib * 1024
}

/// Other tests run beside it: how long answers take is a bar of `benches/serve.rs`.
#[test]
fn two_hundred_clients_are_answered_or_turned_away() {
    if plimsoll_testkit::runs_long("two hundred clients") {
        load(Duration::from_secs(10), false);
    }
}

/// Two hundred clients for a while. On a machine that does nothing else, how many are answered and how long it takes is held against its bar.
pub fn load(time: Duration, alone: bool) {
    let scratch = Scratch::new("serve-load");
    let server = Server::start(&scratch.0);
    let mut texts = Vec::new();
    for name in ["launch-week.toml", "support-bot.toml"] {
        let text = server.scenario(name);
        // Who moves a slider has opened the scenario before.
        server.what_if(&json!({ "name": name, "text": text }));
        texts.push((name, text));
    }
    let (texts, address) = (texts.as_slice(), server.address.as_str());
    let until = now() + time;
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let start = |number| scope.spawn(move || asks(address, texts, number, until));
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        clients.into_iter().map(|client| client.join().expect("a client ends")).collect()
    });
    let mut all = Tally::default();
    for tally in tallies {
        for (status, count) in tally.statuses {
            *all.statuses.entry(status).or_default() += count;
        }
        all.answered.extend(tally.answered);
        all.wrong.extend(tally.wrong);
    }
    all.answered.sort_unstable();
    let at = |share: f64| {
        let last = all.answered.len().saturating_sub(1);
        all.answered.get((last as f64 * share).ceil() as usize).copied().unwrap_or_default()
    };
    let peak = peak_bytes(server.id());
    println!(
        "{CLIENTS} clients: statuses {:?}; what-ifs answered in p50 {} ms, p99 {} ms, at most {} ms; peak memory {} MiB",
        all.statuses,
        at(0.5).as_millis(),
        at(0.99).as_millis(),
        at(1.0).as_millis(),
        peak >> 20
    );
    let first: Vec<&String> = all.wrong.iter().take(10).collect();
    assert!(all.wrong.is_empty(), "{} went wrong: {first:#?}", all.wrong.len());
    assert!(!all.answered.is_empty(), "nobody was answered");
    assert!(peak < MOST_BYTES, "{peak} bytes");
    if alone {
        assert!(all.answered.len() > CLIENTS / 10, "only {} were answered", all.answered.len());
        assert!(at(0.99) < P99, "p99 {:?}", at(0.99));
    }
    // It lives, and said nothing of a bug.
    assert_eq!(server.text("/healthz"), "ok\n");
    assert!(!server.said().contains("bug"), "{}", server.said());
    assert_eq!(server.end(), Some(0));
}
