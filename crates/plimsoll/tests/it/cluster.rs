//! Into the cluster and back: engines that the simulator drives, scraped by a real Prometheus, read by `ingest`, `doctor` and `watch`.

mod engines;
pub mod prometheus;
mod scaler;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use plimsoll_ledger::Ledger;
use serde_json::Value;

use self::engines::Engines;
use self::prometheus::{Prometheus, is_installed};
use self::scaler::Scaler;
use crate::common::Scratch;
use plimsoll_testkit::runs_long;

/// Seconds over which rates are taken, and seconds of what was simulated.
const WINDOW_S: f64 = 15.0;

fn plimsoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs")
}

/// The document of a command that answers.
fn document(arguments: &[&str]) -> Value {
    let output = plimsoll(arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

fn wait(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

/// `plimsoll watch --listen`, ended with the test.
struct Watching {
    child: Child,
    address: String,
}

impl Watching {
    fn start(plan: &str, prometheus: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["watch", plan, "--prometheus", prometheus, "--listen", "127.0.0.1:0"])
            .args(["--every", "1s", "--window", "15s", "--query-timeout", "5s"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (told, hears) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("listening at ") {
                    let _ = told.send(rest.split_whitespace().next().unwrap_or("").to_owned());
                }
            }
        });
        let address = hears.recv_timeout(Duration::from_secs(60)).expect("says where it is");
        Self { child, address: address.trim_end_matches('/').to_owned() }
    }

    fn get(&self, path: &str) -> (u16, String) {
        let asked = ureq::get(format!("{}{path}", self.address));
        let asked = asked.config().http_status_as_error(false).build().call();
        let mut answer = asked.expect("answers");
        (answer.status().as_u16(), answer.body_mut().read_to_string().expect("a text"))
    }

    /// What is advised for the pool.
    fn pool(&self) -> Value {
        let (status, text) = self.get("/v1/advice");
        assert_eq!(status, 200, "{text}");
        let advice: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(advice["schema"], "plimsoll/watch/v1");
        advice["pools"][0].clone()
    }

    fn metric(&self, begins: &str) -> Option<f64> {
        let text = self.get("/metrics").1;
        let line = text.lines().find(|line| line.starts_with(begins))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resource<'a>(pool: &'a Value, name: &str) -> &'a Value {
    let all = pool["resources"].as_array().expect("resources");
    all.iter().find(|own| own["resource"] == name).unwrap_or_else(|| panic!("no {name}: {pool}"))
}

/// Fresh prompt tokens a second up to a time, and by how much a scrape's length before or after it, and a rate's reach, may differ.
fn truth(engines: &Engines, now: f64) -> (f64, f64) {
    let rate =
        |end: f64| (engines.all(end).fresh() - engines.all(end - WINDOW_S).fresh()) / WINDOW_S;
    let own = rate(now - 0.5);
    // The last scrape is up to a second and a half old, and what a window reaches over is that much shorter.
    let around = (0..=30).map(|tenth| rate(now - f64::from(tenth) / 10.0));
    let off = around.fold(0.0f64, |off, other| off.max((other - own).abs()));
    (own, off + own * 2.0 / WINDOW_S)
}

#[test]
fn a_fleet_is_read_back_as_it_was() {
    if !runs_long("a fleet that a Prometheus scrapes for two minutes") || !is_installed() {
        return;
    }
    let home = Scratch::new("cluster");
    let path = |name: &str| home.path(name);
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cluster.toml");
    let scenario = scenario.display().to_string();
    let (plan, outcomes) = (path("plan.json"), path("outcomes.csv"));
    assert!(plimsoll(&["plan", &scenario, "--out", &plan]).status.success());
    let simulated = plimsoll(&[
        "simulate",
        &scenario,
        "--hour",
        "9",
        "--duration",
        "240s",
        "--warm-up",
        "0s",
        "--runs",
        "1",
        "--no-failures",
        "--outcomes",
        &outcomes,
    ]);
    assert!(simulated.status.success(), "{}", String::from_utf8_lossy(&simulated.stderr));
    let planned: Value =
        serde_json::from_str(&std::fs::read_to_string(&plan).expect("a plan")).expect("JSON");
    let line = planned["lines"][0]["fresh_tokens_per_s"].as_f64().expect("a line");
    let engines = Engines::start(Path::new(&outcomes));
    let replicas = engines.ports.len() as f64;
    let mut prometheus = Prometheus::start(&home.0.join("prometheus"), &engines.ports);
    let url = prometheus.address();
    // A watch that begins before there is anybody to ask says so, and no zero.
    prometheus.kill();
    let watching = Watching::start(&plan, &url);
    assert_eq!(watching.metric("plimsoll_desired_replicas"), None);
    assert_eq!(watching.get("/v1/replicas").0, 503);
    prometheus.restart();
    wait(WINDOW_S + 8.0);

    // Watched: the load and the headroom are the simulator's.
    let (pool, now) = (watching.pool(), engines.now());
    let (fresh, off) = truth(&engines, now);
    let seen = resource(&pool, "fresh_tokens");
    let read = seen["now"].as_f64().expect("a number");
    assert!((read - fresh).abs() <= off, "{read} tokens/s, not {fresh} ± {off}");
    assert_eq!(pool["replicas"].as_f64(), Some(replicas));
    let headroom = seen["headroom_ratio"].as_f64().expect("a line");
    assert!((headroom - (1.0 - read / (line * replicas))).abs() < 1e-9);
    let in_flight = resource(&pool, "in_flight")["now"].as_f64().expect("a number");
    let around = (0..=40).map(|tenth| engines.all(now - f64::from(tenth) / 10.0));
    let around: Vec<f64> = around.map(|own| own.running + own.waiting).collect();
    let (least, most) = around.iter().fold((f64::MAX, 0.0f64), |(l, m), x| (l.min(*x), m.max(*x)));
    // Replicas are scraped at their own moments within a second.
    assert!((0.8 * least..=1.2 * most).contains(&in_flight), "{in_flight} of {least} to {most}");
    let policy = &planned["scaling"]["policies"][0];
    let fewest = policy["min_replicas"].as_u64().expect("a floor");
    let target = policy["thresholds"][0]["value"].as_f64().expect("a threshold");
    let desired = pool["desired_replicas"].as_u64().expect("advice");
    assert!(desired >= fewest.max((read / target) as u64), "{pool}");
    assert_eq!(pool["stale"], false);
    assert_eq!(pool["each"].as_array().map(Vec::len), Some(engines.ports.len()));
    // Prompts are as planned, so nothing drifts.
    for drift in pool["drift"].as_array().expect("drift") {
        assert_eq!(drift["beyond"], false, "{drift}");
    }

    // The same for a monitor, for KEDA's metrics-api and for its external scaler.
    assert_eq!(watching.metric("plimsoll_desired_replicas{pool=\"chat\"}"), Some(desired as f64));
    assert!(
        watching
            .metric("plimsoll_headroom_ratio{pool=\"chat\",resource=\"fresh_tokens\"}")
            .is_some()
    );
    let (status, text) = watching.get("/v1/replicas");
    let replicas_of: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, replicas_of["chat"]["desired"].as_u64()), (200, Some(desired)));
    assert_eq!(watching.get("/v1/replicas/chat").0, 200);
    let (status, text) = watching.get("/v1/replicas/nobody");
    assert_eq!((status, text.as_str()), (404, "no pool is called `nobody`; the plan has chat\n"));
    let scaler = Scaler::new(&watching.address);
    scaler.check("chat", desired);
    scaler.refuses("nobody");

    // Doctor: the plan's own queries are one series each; one that is not aggregated is caught.
    let examined =
        document(&["doctor", "--prometheus", &url, "--plan", &plan, "--since", "60s", "--json"]);
    assert_eq!(examined["healthy"], true, "{examined:#}");
    for query in examined["queries"].as_array().expect("queries") {
        assert_eq!(query["series"], 1, "{query:#}");
    }
    let value = examined["queries"][0]["value"].as_f64().expect("a number");
    // Its rates reach over two minutes, and engines are only half a minute old: what came before the first scrape is not in it.
    let come = |at: f64| engines.all(at).fresh() / 120.0;
    let now = engines.now();
    assert!(value > come(now - 3.0) - come(8.0) && value < 1.05 * come(now), "{value}");
    let broken = path("broken.yaml");
    let manifest = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: chat}\nspec:\n  scaleTargetRef: {name: chat}\n  triggers:\n  - type: prometheus\n    metadata: {serverAddress: http://p, threshold: '5', query: 'vllm:num_requests_running'}\n  - type: prometheus\n    metadata: {serverAddress: http://p, threshold: '5', query: 'sum(vllm:gpu_cache_usage_perc)'}\n";
    std::fs::write(&broken, manifest).expect("written");
    let examined = plimsoll(&["doctor", "--prometheus", &url, "--since", "60s", "--json", &broken]);
    assert_eq!(examined.status.code(), Some(1));
    let examined: Value = serde_json::from_slice(&examined.stdout).expect("JSON");
    assert_eq!(examined["queries"][0]["series"].as_f64(), Some(replicas));
    assert_eq!(examined["queries"][1]["series"], 0);
    assert_eq!(examined["queries"][1]["verdict"], "error");

    // A replica is restarted with an older version in the middle of it: other names, counters at zero. Nothing is lost or counted twice.
    engines.downgrade(0);
    wait(WINDOW_S + 5.0);
    let (pool, now) = (watching.pool(), engines.now());
    let (fresh, off) = truth(&engines, now);
    let read = resource(&pool, "fresh_tokens")["now"].as_f64().expect("a number");
    assert!((read - fresh).abs() <= off, "{read} tokens/s, not {fresh} ± {off}");
    assert_eq!(pool["replicas"].as_f64(), Some(replicas));
    let before = pool["desired_replicas"].as_u64().expect("advice");

    // Half of the replicas cannot be scraped: what is left is not the truth, and lowers nothing.
    engines.silence(0, true);
    engines.silence(1, true);
    wait(WINDOW_S + 5.0);
    let pool = watching.pool();
    assert!(pool["replicas"].as_f64().expect("some") < replicas);
    assert!(pool["desired_replicas"].as_u64() >= Some(before), "{pool:#}");
    engines.silence(0, false);
    engines.silence(1, false);

    // Prometheus is killed: the last good answer stays, grows old, and is no zero.
    let before = watching.pool()["desired_replicas"].as_u64();
    prometheus.kill();
    wait(20.0);
    let pool = watching.pool();
    assert_eq!(pool["desired_replicas"].as_u64(), before, "{pool:#}");
    assert_eq!(pool["stale"], true);
    assert!(pool["age_s"].as_f64().expect("an age") > 15.0);
    assert!(pool["trouble"][0].as_str().expect("said").contains("refused"), "{pool:#}");
    assert_eq!(
        watching.metric("plimsoll_desired_replicas{pool=\"chat\"}"),
        before.map(|n| n as f64)
    );
    assert!(watching.metric("plimsoll_advice_age_seconds{pool=\"chat\"}") > Some(15.0));
    scaler.check("chat", before.expect("advice"));
    prometheus.restart();
    wait(WINDOW_S + 5.0);
    let (pool, now) = (watching.pool(), engines.now());
    assert_eq!(pool["stale"], false, "{pool:#}");
    let (fresh, off) = truth(&engines, now);
    let read = resource(&pool, "fresh_tokens")["now"].as_f64().expect("a number");
    assert!((read - fresh).abs() <= off, "{read} tokens/s, not {fresh} ± {off}");

    // Ingested: all that came between two scrapes is in the ledger, the time without a Prometheus is a gap, and a second time adds nothing.
    let ledger = path("ledger");
    let arguments = [
        "ingest",
        "--prometheus",
        &url,
        "--since",
        "3m",
        "--window",
        "5s",
        "--into",
        &ledger,
        "--json",
    ];
    let ingested = document(&arguments);
    assert!(ingested["series"]["gaps"].as_u64() > Some(2), "{ingested:#}");
    let rows = ingested["series_added"].as_u64().or(ingested["rows_added"].as_u64()).expect("rows");
    assert!(rows > 40, "{ingested:#}");
    let opened = Ledger::open(Path::new(&ledger)).expect("a ledger");
    let histories = opened.series_history(std::num::NonZero::new(5), 8).expect("histories");
    let (name, scan) = &histories[0];
    assert_eq!(name, "prometheus");
    let steps = &scan.history.classes[0].steps;
    let mut known = 0;
    for (step, count) in (0..).zip(steps) {
        if count.prompt_tokens.sum == 0.0 {
            continue;
        }
        known += 1;
        let from = (scan.history.start_s + 5 * step) as f64 - engines.began_unix_s;
        let come = |from: f64, to: f64| engines.all(to).prompt - engines.all(from).prompt;
        // An edge is the last scrape before it, two and a half scrapes old at most; a call that waits is counted before it is served.
        let (least, most) = (0.9 * come(from, from + 2.5), 1.1 * come(from - 2.5, from + 5.0));
        let read = count.prompt_tokens.sum;
        assert!(
            (least..=most).contains(&read),
            "{read} prompt tokens, {least} to {most}, at {from} s"
        );
    }
    assert!(known >= 6, "{known} windows");
    let again = document(&arguments);
    assert!(again["duplicates"].as_u64() > Some(40), "{again:#}");
    engines.end();
}
