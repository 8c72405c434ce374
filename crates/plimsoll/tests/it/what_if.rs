//! What is said at once, held against what is simulated a moment later.
#![expect(clippy::print_stderr, reason = "what was measured is printed")]

use crate::common;
use crate::server::Server;
use plimsoll_stats::{Seed, Stream};
use serde_json::{Value, json};

/// Scenarios of one pool and several, of requests, conversations and agents, with and without events.
const SCENARIOS: [&str; 6] = [
    "support-bot.toml",
    "metastable.toml",
    "bursty-ceiling.toml",
    "two-regions.toml",
    "qwen3-32b-question.toml",
    "launch-week.toml",
];
/// As near as this share of the simulated line.
const NEAR: f64 = 0.1;

/// Levers anywhere that people move them to.
fn levers(stream: &mut Stream) -> Value {
    let mut times = |low: f64, high: f64| {
        let at = stream.uniform();
        let value = low.ln() + (high.ln() - low.ln()) * at;
        (value.exp() * 1000.0).round() / 1000.0
    };
    let (demand, prompt, output) = (times(0.5, 2.0), times(0.6, 1.6), times(0.6, 1.6));
    let cache_hit = (stream.uniform() * 100.0).round() / 100.0;
    let replicas = [0.5, 1.0, 1.5, 2.0][stream.index(4)];
    let lost = u32::from(stream.index(3) == 0);
    json!({ "demand": demand, "prompt": prompt, "output": output, "cache_hit": cache_hit, "replicas": replicas, "lost": lost })
}

/// A few of each, while other tests run; `benches/serve.rs` asks two hundred, and holds them against the bar.
#[test]
fn what_is_said_at_once_is_near_what_is_simulated() {
    if plimsoll_testkit::runs_long("what-ifs of six scenarios") {
        compare(4, 0.75);
    }
}

/// So many what-ifs of each scenario. At least this share of the answers at once is within a tenth of the simulated load line; where there is no line, both say so.
pub fn compare(count: usize, share: f64) {
    let server = Server::start(&common::repository().join("examples"));
    let mut stream = Seed::new(11).stream("what-ifs");
    let (mut near, mut all) = (0, 0);
    for name in SCENARIOS {
        let text = std::fs::read_to_string(common::repository().join("examples").join(name));
        let text = text.expect("an example");
        let ask = |levers: &Value, basis: &str| -> Value {
            let body = json!({ "name": name, "text": text, "levers": levers, "basis": basis });
            loop {
                let (status, answer) = server.post("/api/v1/what-if", &body);
                // A machine that is busy with other tests takes its time.
                if status == 503 || status == 429 {
                    continue;
                }
                assert_eq!(status, 200, "{name} {levers}: {answer}");
                assert_eq!(answer["basis"], basis);
                return answer["line"]["load"].clone();
            }
        };
        // The page asks these when a scenario is opened.
        ask(&json!({}), "approximate");
        ask(&json!({}), "simulated");
        let mut own = 0;
        for _ in 0..count {
            let levers = levers(&mut stream);
            let at_once = ask(&levers, "approximate").as_f64();
            let simulated = ask(&levers, "simulated").as_f64();
            let is_near = match (at_once, simulated) {
                (Some(at_once), Some(simulated)) => (at_once / simulated - 1.0).abs() <= NEAR,
                (None, None) => true,
                _ => false,
            };
            if !is_near {
                eprintln!("{name} {levers}: {at_once:?} at once, {simulated:?} simulated");
            }
            own += usize::from(is_near);
        }
        eprintln!("{name}: {own} of {count} within {NEAR}");
        (near, all) = (near + own, all + count);
    }
    assert!(near as f64 >= share * all as f64, "{near} of {all} are within {NEAR}");
}
