//! Two days of a small fleet, whose every request is known, told to a real Prometheus and collected from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_live::{
    Access, Basis, CollectInput, Collected, Exposition, Labels, Prometheus, Sample, Series,
    collect, encode,
};

/// 2026-01-05, midnight.
const START: i64 = 1_767_571_200;
const DAYS: i64 = 2;
const END: i64 = START + DAYS * 86_400;
const SCRAPE: i64 = 15;
const HOUR: i64 = 3_600;

/// A replica of the fleet, second by second.
struct Replica {
    pod: &'static str,
    /// Seconds after a multiple of the interval that it is scraped.
    offset: i64,
    /// When its process began anew, after a quiet minute.
    restarts: &'static [i64],
    /// When it was not scraped, although it served.
    unscraped: &'static [(i64, i64)],
}

/// One is scraped exactly at the edges of windows, the other between. The second was restarted on the first morning and could not be scraped in the afternoon; on the
/// second day Prometheus itself was away at three; at noon all were upgraded.
const NOON: i64 = START + 36 * HOUR;
const FLEET: [Replica; 2] = [
    Replica {
        pod: "chat-0",
        offset: 0,
        restarts: &[NOON],
        unscraped: &[(START + 27 * HOUR, START + 27 * HOUR + 1_200)],
    },
    Replica {
        pod: "chat-1",
        offset: 11,
        restarts: &[START + 6 * HOUR + 1_820, NOON],
        unscraped: &[
            (START + 14 * HOUR, START + 14 * HOUR + 1_200),
            (START + 27 * HOUR, START + 27 * HOUR + 1_200),
        ],
    },
];

/// What ends in one second.
#[derive(Clone, Copy, Default)]
struct Second {
    requests: f64,
    prompt: f64,
    cached: f64,
    output: f64,
    preemptions: f64,
    slow: f64,
}

impl Replica {
    /// What it served in the second that begins then.
    fn second(&self, at: i64) -> Second {
        if self.restarts.iter().any(|restart| (restart - 60..*restart).contains(&at)) {
            return Second::default();
        }
        let seed = (at - START) * 7 + self.offset * 13;
        let requests = f64::from(u8::from(seed % 3 == 0)) + f64::from(u8::from(at % HOUR < 600));
        Second {
            requests,
            prompt: requests * (500 + seed % 1_000) as f64,
            cached: requests * (100 + seed % 300) as f64,
            output: requests * (50 + seed % 17) as f64,
            preemptions: f64::from(u8::from(at % 7_200 == 1)),
            slow: if seed % 5 == 0 { requests } else { 0.0 },
        }
    }

    fn is_scraped(&self, at: i64) -> bool {
        (at - self.offset).rem_euclid(SCRAPE) == 0
            && !self.unscraped.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Calls that wait at a time: they come and go over a quarter of an hour.
    fn waiting(&self, at: i64) -> f64 {
        ((at - START) / 30 % 30).min(30 - (at - START) / 30 % 30) as f64
    }

    fn kv(&self, at: i64) -> f64 {
        ((at - START) / 100 % 64) as f64 / 64.0
    }

    /// The last scrape at or before an edge, where one is near enough.
    fn scrape_before(&self, edge: i64) -> Option<i64> {
        // Two and a half intervals, to the second.
        (0..=37)
            .map(|back| edge - back)
            .find(|at| self.is_scraped(*at) && (START..END).contains(at))
    }
}

fn labels(name: &str, pod: &str, more: &[(&str, &str)]) -> Labels {
    let own = [
        ("__name__", name),
        ("model_name", "chat"),
        ("engine", "0"),
        ("namespace", "prod"),
        ("pod", pod),
    ];
    own.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// The fleet as it is scraped.
fn scraped() -> Vec<Series> {
    let mut all: BTreeMap<Labels, Vec<Sample>> = BTreeMap::new();
    for replica in &FLEET {
        let mut total = Second::default();
        for at in START..END {
            if replica.restarts.contains(&at) {
                total = Second::default();
            }
            // What ended before the scrape is in it.
            if replica.is_scraped(at) {
                let new = at >= NOON;
                let mut put = |name: &str, more: &[(&str, &str)], value: f64| {
                    let sample = Sample { at_ms: at * 1000, value: Some(value) };
                    all.entry(labels(name, replica.pod, more)).or_default().push(sample);
                };
                put("vllm:num_requests_running", &[], 3.0);
                put("vllm:num_requests_waiting", &[], replica.waiting(at));
                put("vllm:prompt_tokens_total", &[], total.prompt);
                put("vllm:generation_tokens_total", &[], total.output);
                put("vllm:num_preemptions_total", &[], total.preemptions);
                put(
                    "vllm:request_success_total",
                    &[("finished_reason", "stop")],
                    total.requests - total.slow,
                );
                put("vllm:request_success_total", &[("finished_reason", "length")], total.slow);
                let (kv, queries, hits) = if new {
                    ("kv_cache_usage_perc", "prefix_cache_queries_total", "prefix_cache_hits_total")
                } else {
                    (
                        "gpu_cache_usage_perc",
                        "gpu_prefix_cache_queries_total",
                        "gpu_prefix_cache_hits_total",
                    )
                };
                put(&format!("vllm:{kv}"), &[], replica.kv(at));
                put(&format!("vllm:{queries}"), &[], total.prompt);
                put(&format!("vllm:{hits}"), &[], total.cached);
                if new {
                    put("vllm:prompt_tokens_cached_total", &[], total.cached);
                    let source = [("source", "local_compute")];
                    put("vllm:prompt_tokens_by_source_total", &source, total.prompt - total.cached);
                    let source = [("source", "local_cache_hit")];
                    put("vllm:prompt_tokens_by_source_total", &source, total.cached);
                }
                // Fast ones take 0.2 s, slow ones 3 s.
                let fast = total.requests - total.slow;
                let upto = [
                    ("0.1", 0.0),
                    ("0.25", fast),
                    ("2.5", fast),
                    ("5.0", total.requests),
                    ("+Inf", total.requests),
                ];
                for (le, count) in upto {
                    put("vllm:time_to_first_token_seconds_bucket", &[("le", le)], count);
                }
                put("vllm:time_to_first_token_seconds_sum", &[], fast * 0.25 + total.slow * 3.0);
                put("vllm:time_to_first_token_seconds_count", &[], total.requests);
                for (le, count) in
                    [("1000.0", fast), ("2000.0", total.requests), ("+Inf", total.requests)]
                {
                    put("vllm:request_prompt_tokens_bucket", &[("le", le)], count);
                }
            }
            let more = replica.second(at);
            total.requests += more.requests;
            total.prompt += more.prompt;
            total.cached += more.cached;
            total.output += more.output;
            total.preemptions += more.preemptions;
            total.slow += more.slow;
        }
    }
    // A file of OpenMetrics has the series of a name one after the other.
    let mut all: Vec<Series> =
        all.into_iter().map(|(labels, samples)| Series { labels, samples }).collect();
    all.sort_by_key(|own| (own.labels["__name__"].clone(), own.labels.clone()));
    all
}

/// What a replica served between the scrapes at the edges of a window; none where there are none.
fn truth(replica: &Replica, window: i64) -> Option<Second> {
    let (from, to) = (replica.scrape_before(window)?, replica.scrape_before(window + 60)?);
    let mut total = Second::default();
    for at in from..to {
        let more = replica.second(at);
        total.requests += more.requests;
        total.prompt += more.prompt;
        total.cached += more.cached;
        total.output += more.output;
        total.preemptions += more.preemptions;
        total.slow += more.slow;
    }
    Some(total)
}

#[track_caller]
fn close(found: Option<f64>, expect: f64, what: &str, window: i64) {
    let found = found.unwrap_or_else(|| panic!("{what} of {} is unknown", window - START));
    assert!(
        (found - expect).abs() <= 1e-6 * expect.abs().max(1.0),
        "{what} of window {} s: {found}, not {expect}",
        window - START
    );
}

fn check(collected: &Collected) {
    let mut rows: BTreeMap<i64, _> =
        collected.demand.iter().map(|row| (row.start_s, row)).collect();
    let mut gaps = BTreeSet::new();
    let (mut carried, mut served) = (0.0, 0.0);
    // The first window has no scrape before it of the replica that is scraped later.
    for window in (START..END).step_by(60) {
        let own: Option<Vec<Second>> = FLEET.iter().map(|own| truth(own, window)).collect();
        let Some(own) = own else {
            gaps.insert(window);
            // But for the very first, where one replica was not yet there.
            assert!(window == START || !rows.contains_key(&window), "{}", window - START);
            rows.remove(&window);
            continue;
        };
        let row = rows.remove(&window).unwrap_or_else(|| panic!("no row at {}", window - START));
        assert_eq!((row.model.as_str(), row.window_s), ("chat", 60));
        let sum = |of: fn(&Second) -> f64| own.iter().map(of).sum::<f64>();
        let growth: f64 = FLEET
            .iter()
            .map(|own| {
                let at = |edge| own.waiting(own.scrape_before(edge).expect("a scrape"));
                at(window + 60) - at(window)
            })
            .sum();
        assert_eq!(row.basis, Basis::CarriedAndQueued);
        close(row.queue_growth, growth, "queue growth", window);
        let requests = sum(|own| own.requests);
        let offered = (requests + growth).max(0.0);
        close(row.requests, offered, "requests", window);
        carried += requests;
        served += FLEET
            .iter()
            .flat_map(|own| (window..window + 60).map(|at| own.second(at).requests))
            .sum::<f64>();
        if requests == 0.0 {
            continue;
        }
        let times = offered / requests;
        close(row.prompt_tokens, sum(|own| own.prompt) * times, "prompt tokens", window);
        close(row.output_tokens, sum(|own| own.output) * times, "output tokens", window);
        // The upgraded version counts what was cached; before, it is what the prefix cache had. In the window of the upgrade both have their part.
        if !(NOON - 60..NOON).contains(&window) {
            close(row.cached_tokens, sum(|own| own.cached) * times, "cached tokens", window);
            let fresh = sum(|own| own.prompt - own.cached) * times;
            close(row.fresh_tokens, fresh, "fresh tokens", window);
        }
    }
    assert_eq!(rows.len(), 0, "rows that nobody asked for: {rows:?}");
    // Twice twenty minutes, with a window before each and one after; one replica is scraped within its last window.
    assert!((42..=46).contains(&gaps.len()), "{} gaps", gaps.len());
    // What comes between an edge and the scrape before it moves to the next window, but is not lost.
    assert!((carried - served).abs() <= 4.0 * 2.0 * SCRAPE as f64 * 2.0, "{carried} {served}");

    let mut seen = 0;
    for row in &collected.replicas {
        let replica = FLEET.iter().find(|own| row.replica == format!("prod/{}", own.pod));
        let replica = replica.expect("a replica of the fleet");
        let Some(own) = truth(replica, row.start_s) else { continue };
        seen += 1;
        let window = row.start_s;
        close(row.requests, own.requests, "requests of a replica", window);
        close(row.prompt_tokens, own.prompt, "prompt tokens of a replica", window);
        close(row.preemptions, own.preemptions, "preemptions", window);
        close(row.running_mean, 3.0, "running", window);
        // The gauge's name changes at noon; it is read all the same.
        let scrapes = (window + 1..=window + 60).filter(|at| replica.is_scraped(*at) && *at < END);
        let most = |of: fn(&Replica, i64) -> f64| {
            scrapes.clone().map(|at| of(replica, at)).fold(0.0, f64::max)
        };
        close(row.kv_share_max, most(Replica::kv), "KV share", window);
        close(row.waiting_max, most(Replica::waiting), "waiting", window);
        if own.prompt > 0.0
            && !replica.restarts.iter().any(|at| (window..=window + 60).contains(at))
        {
            close(row.cache_hit_share(), own.cached / own.prompt, "hit share", window);
            let ttft = row.ttft.as_ref().expect("a TTFT");
            close(Some(ttft.count), own.requests, "TTFT count", window);
            let sum = (own.requests - own.slow) * 0.25 + own.slow * 3.0;
            close(ttft.mean_s, sum / own.requests, "mean TTFT", window);
            // Nine in ten were fast, or they were not.
            let fast = own.requests - own.slow >= 0.9 * own.requests;
            let p90 = (ttft.p90.above_s, ttft.p90.upto_s);
            assert_eq!(p90, if fast { (0.1, Some(0.25)) } else { (2.5, Some(5.0)) });
        }
    }
    assert!(seen > 2 * 2 * 1_390, "{seen}");
    let shares: Vec<f64> =
        collected.lengths.iter().flat_map(|own| own.shares.iter().map(|own| own.1)).collect();
    assert_eq!(collected.lengths.len(), 2, "one a day");
    assert!((shares.iter().sum::<f64>() - 2.0).abs() < 1e-9, "{shares:?}");
    assert_eq!(collected.scrape_s, 15.0);
    assert!(collected.resolved.reporting[0].is_mixed());
}

/// A directory and a process that are gone with the test.
struct Home {
    path: PathBuf,
    server: Option<Child>,
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn write(path: &Path) {
    let mut to = BufWriter::new(File::create(path).expect("a file"));
    encode(&mut to, &BTreeMap::new(), &scraped()).expect("written");
}

/// The rows, with means as exact as both sources compute them.
fn rounded(mut collected: Collected) -> Collected {
    for row in &mut collected.replicas {
        row.running_mean = row.running_mean.map(|mean| (mean * 1e9).round() / 1e9);
    }
    collected.notes.clear();
    collected
}

fn have(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    found.is_ok_and(|found| found.status.success())
}

#[test]
fn a_fleet_is_collected_from_prometheus_and_from_a_file_alike() {
    let path = std::env::temp_dir().join(format!("plimsoll-live-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory");
    let mut home = Home { path: path.clone(), server: None };
    let file = path.join("fleet.om");
    write(&file);
    let input = CollectInput::usual(START, END);
    let read =
        Exposition::read("fleet.om", BufReader::new(File::open(&file).expect("a file")), None);
    let read = read.expect("a file of OpenMetrics");
    assert_eq!(read.bad(), &[]);
    let of_file = collect(&read, &input, &mut |_| {}).expect("windows of a file");
    check(&of_file);

    // Day by day it is the same.
    let half =
        |from, to| collect(&read, &CollectInput::usual(from, to), &mut |_| {}).expect("a day");
    let (first, second) = (half(START, START + 86_400), half(START + 86_400, END));
    assert_eq!([first.demand, second.demand].concat(), of_file.demand);
    assert_eq!(first.replicas.len() + second.replicas.len(), of_file.replicas.len());

    if !have("prometheus") || !have("promtool") {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI has `prometheus` and `promtool`; they are not there"
        );
        eprintln!(
            "SKIPPED: `prometheus` and `promtool` are not installed, so that only the file was collected"
        );
        return;
    }
    let data = path.join("data");
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics", "--quiet"])
        .args([&file, &data])
        .output()
        .expect("promtool runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let config = path.join("prometheus.yml");
    std::fs::write(&config, "global: {}\n").expect("a file");
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|own| own.local_addr()).expect("a free port");
    let log = File::create(path.join("log")).expect("a file");
    let server = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", data.display()))
        .args(["--storage.tsdb.retention.time=100y", "--log.level=warn"])
        .arg(format!("--web.listen-address={port}"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("prometheus runs");
    home.server = Some(server);
    let access = Access { bearer: None, timeout: Access::TIMEOUT, most_bytes: Access::MOST_BYTES };
    let asked = Prometheus::new(&format!("http://{port}"), access).expect("an address");
    let ready = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        asked.ready().unwrap_or(false)
    });
    assert!(ready, "{}", std::fs::read_to_string(path.join("log")).unwrap_or_default());
    assert!(asked.build_info().expect("its version").contains('.'));
    let mut steps = Vec::new();
    let of_server = collect(&asked, &input, &mut |own| steps.push((own.done, own.of)));
    let of_server = of_server.expect("windows of a server");
    check(&of_server);
    assert_eq!(steps, [(0, 2), (1, 2), (2, 2)]);
    assert_eq!(rounded(of_server), rounded(of_file));
    let wrong = asked.instant("sum(", None).expect_err("a wrong query");
    assert!(wrong.to_string().contains("bad_data"), "{wrong}");
}
