//! Engines that report what the simulator says they did, second by second, under the names that vLLM gives it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A call as it was simulated.
struct Call {
    replica: usize,
    arrived: f64,
    scheduled: f64,
    first: f64,
    done: f64,
    prompt: f64,
    cached: f64,
    output: f64,
}

/// What a replica has done up to a time, and what it is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    pub requests: f64,
    pub prompt: f64,
    pub cached: f64,
    pub output: f64,
    pub running: f64,
    pub waiting: f64,
    pub kv_tokens: f64,
    pub firsts: [f64; EDGES.len()],
    pub ttft_sum: f64,
    pub ttft_count: f64,
}

impl State {
    pub fn fresh(&self) -> f64 {
        self.prompt - self.cached
    }

    fn since(&self, before: &Self) -> Self {
        let mut firsts = self.firsts;
        firsts.iter_mut().zip(before.firsts).for_each(|(own, before)| *own -= before);
        Self {
            requests: self.requests - before.requests,
            prompt: self.prompt - before.prompt,
            cached: self.cached - before.cached,
            output: self.output - before.output,
            firsts,
            ttft_sum: self.ttft_sum - before.ttft_sum,
            ttft_count: self.ttft_count - before.ttft_count,
            ..*self
        }
    }
}

/// Edges of the histogram of first tokens, in seconds, as vLLM has them up to where this fleet ends.
const EDGES: [f64; 8] = [0.02, 0.04, 0.06, 0.1, 0.25, 0.5, 1.0, 2.5];
/// Tokens that fit into a cache; what is reported is a share of it.
const KV_TOKENS: f64 = 429_696.0;

/// How a replica reports.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    New,
    Old,
}

struct Replica {
    version: Version,
    /// When its process began, in seconds of the run: counters begin with it.
    began: f64,
    silent: bool,
}

/// The engines of a pool.
pub struct Engines {
    calls: Vec<Call>,
    replicas: Mutex<Vec<Replica>>,
    began: Instant,
    /// The same in seconds from 1970.
    pub began_unix_s: f64,
    ended: AtomicBool,
    pub ports: Vec<u16>,
}

impl Engines {
    /// Starts to replay what was simulated (`plimsoll simulate --outcomes`), one port a replica.
    pub fn start(outcomes: &Path) -> Arc<Self> {
        let calls = read(outcomes);
        let count = calls.iter().map(|call| call.replica).max().expect("calls") + 1;
        let listeners: Vec<TcpListener> =
            (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports = listeners.iter().map(|own| own.local_addr().expect("bound").port()).collect();
        let replica = || Replica { version: Version::New, began: 0.0, silent: false };
        #[expect(clippy::disallowed_methods, reason = "what is scraped is scraped by the clock")]
        let (began, since) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH));
        let engines = Arc::new(Self {
            calls,
            replicas: Mutex::new((0..count).map(|_| replica()).collect()),
            began,
            began_unix_s: since.expect("a clock").as_secs_f64(),
            ended: AtomicBool::new(false),
            ports,
        });
        for (replica, listener) in listeners.into_iter().enumerate() {
            let engines = Arc::clone(&engines);
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if engines.ended.load(Ordering::Relaxed) {
                        return;
                    }
                    // Whoever hangs up is asked again by the next scrape.
                    let _ = engines.answer(replica, stream);
                }
            });
        }
        engines
    }

    /// Seconds of the run.
    pub fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// A replica's process begins anew: its counters at zero, under the names of another version.
    pub fn downgrade(&self, replica: usize) {
        let now = self.now();
        let mut all = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        all[replica] = Replica { version: Version::Old, began: now, silent: false };
    }

    /// A replica cannot be scraped any more, although it serves; or can again.
    pub fn silence(&self, replica: usize, silent: bool) {
        self.replicas.lock().unwrap_or_else(PoisonError::into_inner)[replica].silent = silent;
    }

    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// What all replicas have done by a second of the run.
    pub fn all(&self, at: f64) -> State {
        let mut sum = State::default();
        for replica in 0..self.ports.len() {
            let own = self.state(replica, at);
            sum.requests += own.requests;
            sum.prompt += own.prompt;
            sum.cached += own.cached;
            sum.output += own.output;
            sum.running += own.running;
            sum.waiting += own.waiting;
        }
        sum
    }

    fn state(&self, replica: usize, at: f64) -> State {
        let mut own = State::default();
        for call in self.calls.iter().filter(|call| call.replica == replica) {
            if call.arrived > at {
                continue;
            }
            if call.scheduled > at {
                own.waiting += 1.0;
                continue;
            }
            if call.done > at {
                own.running += 1.0;
                own.kv_tokens += call.prompt + call.output;
            } else {
                own.requests += 1.0;
            }
            if call.first <= at {
                own.prompt += call.prompt;
                own.cached += call.cached;
                let rest = (call.output - 1.0).max(0.0);
                let into = ((at - call.first) / (call.done - call.first).max(1e-9)).min(1.0);
                own.output += 1.0 + (rest * into).floor();
                let ttft = call.first - call.arrived;
                own.ttft_sum += ttft;
                own.ttft_count += 1.0;
                for (count, edge) in own.firsts.iter_mut().zip(EDGES) {
                    *count += f64::from(u8::from(ttft <= edge));
                }
            }
        }
        own
    }

    fn answer(&self, replica: usize, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 2 {
            line.clear();
        }
        let (status, body) = match self.text(replica) {
            Some(body) => ("200 OK", body),
            None => ("503 Service Unavailable", String::new()),
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// What a scrape reads.
    fn text(&self, replica: usize) -> Option<String> {
        let now = self.now();
        let (version, began) = {
            let all = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
            if all[replica].silent {
                return None;
            }
            (all[replica].version, all[replica].began)
        };
        let own = self.state(replica, now).since(&self.state(replica, began));
        let own_labels = "engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"";
        let mut out = String::new();
        let mut row = |kind: &str, name: &str, more: &str, value: f64| {
            let _ = writeln!(out, "# TYPE {name} {kind}\n{name}{{{own_labels}{more}}} {value}");
        };
        row("gauge", "vllm:num_requests_running", "", own.running);
        row("gauge", "vllm:num_requests_waiting", "", own.waiting);
        row("counter", "vllm:prompt_tokens_total", "", own.prompt);
        row("counter", "vllm:generation_tokens_total", "", own.output);
        row("counter", "vllm:num_preemptions_total", "", 0.0);
        row("counter", "vllm:request_success_total", ",finished_reason=\"stop\"", own.requests);
        let share = (own.kv_tokens / KV_TOKENS).min(1.0);
        match version {
            Version::New => {
                row("gauge", "vllm:kv_cache_usage_perc", "", share);
                let name = "vllm:prompt_tokens_by_source_total";
                row("counter", name, ",source=\"local_compute\"", own.fresh());
                row("counter", name, ",source=\"local_cache_hit\"", own.cached);
                row("counter", "vllm:prompt_tokens_cached_total", "", own.cached);
            }
            Version::Old => row("gauge", "vllm:gpu_cache_usage_perc", "", share),
        }
        let hits = match version {
            Version::New => "vllm:prefix_cache_hits_total",
            Version::Old => "vllm:gpu_prefix_cache_hits_total",
        };
        row("counter", hits, "", own.cached);
        let name = "vllm:time_to_first_token_seconds";
        let _ = writeln!(out, "# TYPE {name} histogram");
        for (edge, count) in EDGES.iter().zip(own.firsts) {
            let _ = writeln!(out, "{name}_bucket{{{own_labels},le=\"{edge:?}\"}} {count}");
        }
        let _ = writeln!(out, "{name}_bucket{{{own_labels},le=\"+Inf\"}} {}", own.ttft_count);
        let _ = writeln!(out, "{name}_sum{{{own_labels}}} {}", own.ttft_sum);
        let _ = writeln!(out, "{name}_count{{{own_labels}}} {}", own.ttft_count);
        Some(out)
    }
}

fn read(outcomes: &Path) -> Vec<Call> {
    let text = std::fs::read_to_string(outcomes).expect("outcomes");
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let column = |name: &str| head.iter().position(|own| *own == name).expect("a column");
    let places = [
        "replica",
        "arrived_s",
        "scheduled_s",
        "first_s",
        "done_s",
        "prompt_tokens",
        "cached_tokens",
        "output_tokens",
    ]
    .map(column);
    let calls = lines.filter_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |place: usize| cells[places[place]].parse::<f64>().ok();
        Some(Call {
            replica: cell(0)? as usize,
            arrived: cell(1)?,
            scheduled: cell(2)?,
            first: cell(3)?,
            done: cell(4)?,
            prompt: cell(5)?,
            cached: cell(6)?,
            output: cell(7)?,
        })
    });
    calls.collect()
}
