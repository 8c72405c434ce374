//! A desk that computes nothing much, and what tests ask of an app.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "for tests and the example, each of which uses a part"
)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use plimsoll_web::{
    Asked, Basis, Charts, Config, Desk, Levers, Limits, Outcome, Problem, Refused, ScenarioName,
    Study, Work,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

pub(crate) const PORT: u16 = 7070;
pub(crate) const LAUNCH: &str = include_str!("launch.toml");
pub(crate) const SMALL: &str = include_str!("small.toml");

/// What it does depends on words in the scenario: `wrong` is a mistake, `slow` works until it is stopped, `deaf` works until it is released whatever it is told, `panic` is a bug.
#[derive(Default)]
pub(crate) struct FakeDesk {
    /// Calls that have begun and not returned.
    at_work: watch::Sender<usize>,
    /// Whether a call was stopped.
    stopped: watch::Sender<bool>,
    /// Whether those that are deaf may return.
    released: watch::Sender<bool>,
    /// Where the last log lay, and what was in it.
    pub(crate) log: Mutex<Option<(PathBuf, String)>>,
}

impl FakeDesk {
    fn work(&self, text: &str, work: &Work) -> Result<(), Refused> {
        assert!(!text.contains("panic"), "secret detail");
        self.at_work.send_modify(|count| *count += 1);
        let mut result = Ok(());
        if text.contains("slow") {
            work.at(500);
            while work.go_on() {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.stopped.send_replace(true);
            result = Err(Refused::Stopped);
        } else if text.contains("deaf") {
            let mut released = self.released.subscribe();
            tokio::runtime::Handle::current().block_on(released.wait_for(|is| *is)).unwrap();
        }
        self.at_work.send_modify(|count| *count -= 1);
        result
    }

    /// Waits until so many calls have begun and not returned.
    pub(crate) async fn at_work(&self, count: usize) {
        self.at_work.subscribe().wait_for(|now| *now == count).await.unwrap();
    }

    /// How many calls have begun and not returned.
    pub(crate) fn calls(&self) -> usize {
        *self.at_work.borrow()
    }

    /// Waits until a call was stopped.
    pub(crate) async fn stopped(&self) {
        self.stopped.subscribe().wait_for(|is| *is).await.unwrap();
    }

    pub(crate) fn was_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Lets those return that are deaf.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }
}

impl Desk for FakeDesk {
    fn version(&self) -> &str {
        "0.0.0-fake"
    }

    fn scenarios(&self) -> Vec<ScenarioName> {
        let name = |name: &str, title: &str, example| ScenarioName {
            name: name.to_owned(),
            title: title.to_owned(),
            example,
        };
        vec![
            name("launch-week.toml", "Launch week", true),
            name("support-bot.toml", "Support bot", true),
            name("team/ours.toml", "Ours", false),
        ]
    }

    fn scenario(&self, name: &str) -> Option<String> {
        match name {
            "launch-week.toml" => Some(LAUNCH.to_owned()),
            "support-bot.toml" | "team/ours.toml" => Some(SMALL.to_owned()),
            _ => None,
        }
    }

    fn check(&self, scenario: &Asked) -> Vec<Problem> {
        assert!(!scenario.text.contains("panic"), "secret detail");
        let lines = scenario.text.lines().enumerate();
        lines
            .filter_map(|(i, line)| Some((i, line.find("wrong")?)))
            .map(|(i, column)| Problem {
                code: "unknown-key".to_owned(),
                message: "there is no key `wrong`".to_owned(),
                file: scenario.name.clone(),
                line: Some(i as u64 + 1),
                column: Some(column as u64 + 1),
                help: Some("did you mean `rate`?".to_owned()),
            })
            .collect()
    }

    fn what_if(&self, scenario: &Asked, levers: &Levers, basis: Basis, work: &Work) -> Outcome {
        let problems = self.check(scenario);
        if !problems.is_empty() {
            return Err(Refused::Input(problems));
        }
        self.work(&scenario.text, work)?;
        Ok(what_if(scenario, levers, basis))
    }

    fn study(&self, kind: Study, scenario: &Asked, work: &Work) -> Outcome {
        let problems = self.check(scenario);
        if !problems.is_empty() {
            return Err(Refused::Input(problems));
        }
        self.work(&scenario.text, work)?;
        for step in 1..=20 {
            if !work.go_on() {
                return Err(Refused::Stopped);
            }
            work.at(step * 50);
            std::thread::sleep(Duration::from_millis(if scenario.text.contains("#pause") {
                80
            } else {
                0
            }));
        }
        let word = serde_json::to_value(kind).unwrap();
        let word = word.as_str().unwrap();
        Ok(json!({
            "schema": format!("plimsoll/{word}/v1"),
            "verdict": { "today": "not_ready", "plan": "ready", "says": "Today's twelve replicas do not carry the launch; sixteen do." },
            "notes": ["Prices are of 2026-11-01."],
        }))
    }

    fn review_html(&self, scenario: &Asked, work: &Work) -> Result<String, Refused> {
        self.study(Study::Review, scenario, work)?;
        Ok("<!doctype html><title>Review</title><p>All of it.".to_owned())
    }

    fn profile(&self, log: &Path, name: &str, work: &Work) -> Outcome {
        let text = std::fs::read_to_string(log).unwrap();
        *self.log.lock().unwrap() = Some((log.to_owned(), text.clone()));
        self.work(&text, work)?;
        Ok(profile(name))
    }
}

fn what_if(scenario: &Asked, levers: &Levers, basis: Basis) -> Value {
    let small = scenario.text == SMALL;
    let capacity = if small { 60.0 } else { 400.0 }
        * (levers.replicas - f64::from(levers.lost) / 12.0).max(0.01)
        / (0.6 * levers.prompt * (1.5 - 0.5 * levers.cache_hit) + 0.4 * levers.output);
    let demand = if small { 20.0 } else { 300.0 } * levers.demand;
    let row = |name: &str, unit: &str, demand: f64, line: f64| {
        let headroom = (line - demand) / line * 100.0;
        let verdict = match headroom {
            h if h < 0.0 => "shortfall",
            h if h < 15.0 => "tight",
            _ => "ok",
        };
        json!({ "name": name, "unit": unit, "demand": demand, "load_line": line, "headroom_pct": headroom, "verdict": verdict })
    };
    let load: Vec<f64> = (1..=20).map(|i| f64::from(i) * capacity / 12.0).collect();
    let good: Vec<String> = load
        .iter()
        .enumerate()
        .map(|(i, l)| {
            (i, if *l <= capacity { *l } else { (2.0 * capacity - l).max(0.2 * capacity) })
        })
        .map(|(i, good)| format!("{i} {:.1}", 260.0 - 240.0 * good / capacity))
        .collect();
    let good = good.join("L");
    let holds = demand <= capacity;
    let replicas = (12.0 * levers.replicas).ceil();
    json!({
        "schema": "plimsoll/what-if/v1",
        "basis": basis,
        "levers": levers,
        "says": if holds {
            format!("Today's fleet carries this: the load line is {capacity:.0} requests/s, the demand {demand:.0}.")
        } else {
            format!("SHORTFALL: {demand:.0} requests/s are asked for, and the load line is {capacity:.0}; fresh prompt tokens run out first.")
        },
        "rows": [
            row("requests", "requests/s", demand, capacity),
            row("fresh prompt", "tokens/s", demand * 2400.0 * levers.prompt, capacity * 2200.0),
            row("output", "tokens/s", demand * 65.0 * levers.output, capacity * 73.0),
            row("resident KV", "tokens", demand * 1030.0 * levers.prompt, capacity * 1200.0),
            { "name": "provider limit", "unit": "tokens/min", "demand": 120_000.0 * levers.demand, "load_line": null, "headroom_pct": null, "verdict": null },
        ],
        "line": { "load": capacity / demand, "requests_per_s": capacity, "binds": "prefill time", "of": "chat", "first_signal": "TTFT p90 of `completions`" },
        "pools": [
            { "name": "chat", "replicas": replicas, "needed": (12.0 * demand / capacity * levers.replicas).ceil(), "startup_p90_s": 240.0 * levers.startup, "usd_per_hour": replicas * 12.4 },
            { "name": "spill", "replicas": 2, "needed": null, "startup_p90_s": null, "usd_per_hour": null },
        ],
        "cost": { "usd_per_hour": replicas * 12.4, "nodes_usd_per_month": replicas * 12.4 * 730.0, "usd_per_good_task": if small { Value::Null } else { json!(0.00231) } },
        "chart": {
            "id": "service-curve", "title": "Service curve",
            "alt": format!("Goodput follows the offered load up to {capacity:.0} requests/s and falls beyond."),
            "html": format!("<div class=\"chart\"><svg class=\"plot\" height=\"260\"><svg class=\"stretch\" viewBox=\"0 0 20 260\" preserveAspectRatio=\"none\" width=\"100%\" height=\"260\"><path class=\"line i-today\" d=\"M{good}\"/></svg></svg></div>"),
        },
        "notes": ["Startup times are assumed: no log was given."],
    })
}

fn profile(name: &str) -> Value {
    let lengths = |mean: f64| json!({ "mean": mean, "p50": mean * 0.6, "p95": mean * 3.1 });
    let class = |name: &str, requests: u32, rps: f64| json!({ "name": name, "requests": requests, "mean_rps_rows_over_span": rps, "prompt": lengths(1850.0), "output": lengths(210.0) });
    json!({
        "schema": "plimsoll/profile/v1", "source": name, "from": "2026-11-02 00:00", "to": "2026-11-08 23:59",
        "findings": [
            { "class": "all", "about": "bursts", "sentence": "The busiest 10 s bring 4.1 times the mean; independent users would bring 1.9 times." },
            { "class": "all", "about": "lengths", "sentence": "One request in a hundred holds 31% of all prompt tokens." },
        ],
        "warnings": ["Arrivals are logged in whole seconds."],
        "classes": [class("all", 51_200, 0.0847), class("chat", 40_100, 0.0663), class("agent", 11_100, 0.0184)],
        "charts": [{ "id": "demand", "title": "Requests by hour", "alt": "Two peaks a day.", "html": "<div class=\"chart\"><svg class=\"plot\" height=\"60\"><rect width=\"50%\" height=\"40\"/></svg></div>" }],
    })
}

/// What charts are shown with.
const CHARTS: Charts = Charts { style: ".chart {}", script: "'charts';" };

/// A desk that can be looked at, and its app.
pub(crate) fn desk_and_app(limits: Limits) -> (Arc<FakeDesk>, Router) {
    let desk = Arc::new(FakeDesk::default());
    let config = Config::new(([127, 0, 0, 1], PORT).into(), None, CHARTS).unwrap();
    (Arc::clone(&desk), plimsoll_web::app(desk, config.with_limits(limits)))
}

pub(crate) fn app() -> Router {
    desk_and_app(Limits::default()).1
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts that it is an error document, and returns what it says first.
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        let document = self.json();
        assert_eq!(document["schema"], "plimsoll/error/v1");
        document["diagnostics"][0].clone()
    }
}

/// Sends a request, and asserts that the answer is one that the description of the API promises.
pub(crate) async fn send(app: &Router, request: Request<Body>) -> Reply {
    let (method, path) =
        (request.method().as_str().to_lowercase(), request.uri().path().to_owned());
    let response = app.clone().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let reply = Reply { status: head.status, headers: head.headers, text };
    if let Some(operation) = operation(&method, &path) {
        is_promised(operation, &reply);
    }
    reply
}

static API: LazyLock<Value> = LazyLock::new(plimsoll_web::openapi);

/// How a request is described; none where it is for the page, or asked for in a way that is not there.
pub(crate) fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let is = |pattern: &str| {
        let (parts, patterns) = (path.split('/'), pattern.split('/'));
        parts.clone().count() == patterns.clone().count()
            && parts.zip(patterns).all(|(part, like)| part == like || like.starts_with('{'))
    };
    let (_, item) = API["paths"].as_object().unwrap().iter().find(|(pattern, _)| is(pattern))?;
    item.get(method)
}

fn is_promised(operation: &Value, reply: &Reply) {
    let (status, responses) = (reply.status.as_str(), &operation["responses"]);
    let Some(response) = responses.get(status).or(responses.get("default")) else {
        // Who is not let in has not come to the route.
        assert!(["401", "421"].contains(&status), "{status} is not described: {operation}");
        return;
    };
    let Some(content) = response.get("content") else { return };
    let kind = reply.header("content-type").split(';').next().unwrap();
    let media = content.get(kind).unwrap_or_else(|| panic!("{kind} is not described: {content}"));
    if kind == "application/json" {
        is_valid(&media["schema"], &reply.json());
    }
}

/// Asserts that a document is as a schema of the description says.
pub(crate) fn is_valid(schema: &Value, document: &Value) {
    let mut schema = schema.clone();
    schema["components"] = API["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(document).map(|e| e.to_string()).collect();
    assert_eq!(wrong, [""; 0], "{document}");
}

/// A request as a program on this machine makes it.
pub(crate) fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", format!("127.0.0.1:{PORT}"))
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap()
}

pub(crate) async fn get(app: &Router, path: &str) -> Reply {
    send(app, request("GET", path, Body::empty())).await
}

pub(crate) async fn post(app: &Router, path: &str, body: Value) -> Reply {
    let reply = send(app, request("POST", path, body.to_string())).await;
    if reply.status.is_success() {
        let described = &operation("post", path).unwrap()["requestBody"];
        is_valid(&described["content"]["application/json"]["schema"], &body);
    }
    reply
}

/// Asks until it is so. A minute is longer than any machine needs; a paused clock stands still meanwhile.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    for _ in 0..60_000 {
        if so().await {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    panic!("never {what}");
}

/// Starts a job and waits until it has the state.
pub(crate) async fn job_in_state(app: &Router, study: &str, text: &str, state: &str) -> Value {
    let job = post(app, "/api/v1/jobs", json!({ "study": study, "text": text })).await;
    assert_eq!(job.status, 202, "{}", job.text);
    let place = job.header("location").to_owned();
    until(state, async || get(app, &place).await.json()["state"] == state).await;
    get(app, &place).await.json()
}
