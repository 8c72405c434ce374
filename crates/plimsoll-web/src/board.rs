//! What is advised for a running fleet, for whoever asks: a monitor, an autoscaler, a person.
//!
//! One port answers all of them: `/metrics` in the text of Prometheus, `/v1/…` in JSON (KEDA's `metrics-api`), and KEDA's external scaler over gRPC. None of them is ever told a zero
//! that means "unknown": what is not known is not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use plimsoll_study::{Advice, Drift, PoolAdvice, ReplicaNow};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::exposition::{CONTENT_TYPE, Exposition};
use crate::scaler;

/// Where advice is posted; whoever asks reads the latest.
#[derive(Clone, Debug)]
pub struct Board {
    posted: Arc<watch::Sender<Option<Advice>>>,
}

impl Default for Board {
    fn default() -> Self {
        Self { posted: Arc::new(watch::Sender::new(None)) }
    }
}

impl Board {
    /// Posts what is advised now, in place of what was.
    pub fn post(&self, advice: Advice) {
        self.posted.send_replace(Some(advice));
    }

    /// What was posted last.
    pub fn latest(&self) -> Option<Advice> {
        self.posted.borrow().clone()
    }

    /// Hears of what is posted from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<Option<Advice>> {
        self.posted.subscribe()
    }
}

/// The routes.
pub fn board_app(board: Board) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/v1/advice", get(advice))
        .route("/v1/replicas", get(replicas))
        .route("/v1/replicas/{pool}", get(replicas_of))
        .route("/healthz", get(|| async { "ok\n" }))
        .route(scaler::PATH, any(scaler::answer))
        .with_state(board)
}

async fn advice(State(board): State<Board>) -> Response {
    match board.latest() {
        Some(advice) => Json(document(&advice)).into_response(),
        None => nothing_yet(),
    }
}

/// The advice as a document.
pub fn document(advice: &Advice) -> Value {
    let mut all = json!({ "schema": "plimsoll/watch/v1" });
    if let (Value::Object(all), Ok(Value::Object(body))) = (&mut all, serde_json::to_value(advice))
    {
        all.extend(body);
    }
    all
}

/// By pool, so that `valueLocation: chat.desired` finds its number.
async fn replicas(State(board): State<Board>) -> Response {
    let Some(advice) = board.latest() else { return nothing_yet() };
    let known = advice.pools.iter().filter_map(|pool| Some((pool.pool.clone(), short(pool)?)));
    let known: Map<String, Value> = known.collect();
    if known.is_empty() { nothing_yet() } else { Json(Value::Object(known)).into_response() }
}

async fn replicas_of(State(board): State<Board>, Path(name): Path<String>) -> Response {
    let Some(advice) = board.latest() else { return nothing_yet() };
    match advice.pools.iter().find(|pool| pool.pool == name) {
        Some(pool) => short(pool).map_or_else(nothing_yet, |own| Json(own).into_response()),
        None => {
            let pools: Vec<&str> = advice.pools.iter().map(|pool| pool.pool.as_str()).collect();
            let said = format!("no pool is called `{name}`; the plan has {}\n", pools.join(", "));
            (StatusCode::NOT_FOUND, said).into_response()
        }
    }
}

fn short(pool: &PoolAdvice) -> Option<Value> {
    Some(json!({
        "desired": pool.desired_replicas?,
        "replicas": pool.replicas,
        "age_s": pool.age_s,
        "stale": pool.stale,
        "why": pool.why,
    }))
}

/// An autoscaler that hears an error keeps what it has; one that hears a zero does not.
fn nothing_yet() -> Response {
    let said = "nothing was seen of the fleet yet, so nothing is advised\n";
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "15")], said).into_response()
}

async fn metrics(State(board): State<Board>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], exposition(board.latest().as_ref()))
}

/// Samples of a pool: labels beside its name, and a number where it is known.
type Samples = Vec<(Vec<(&'static str, String)>, Option<f64>)>;

/// What is known, made anew for each scrape: a series that is not known any more is gone, and not stuck.
fn exposition(advice: Option<&Advice>) -> String {
    let mut out = Exposition::default();
    out.metric("plan", "gauge", "The plan that is watched");
    if let Some(advice) = advice {
        out.sample("plan", &[("plan", &advice.plan)], 1);
    }
    let pools = advice.map_or(&[][..], |advice| &advice.pools);
    let mut gauge = |name: &str, help: &str, samples: fn(&PoolAdvice) -> Samples| {
        out.metric(name, "gauge", help);
        for pool in pools {
            // A series is there once, whatever the advice repeats.
            let known =
                samples(pool).into_iter().filter_map(|(labels, value)| Some((labels, value?)));
            for (labels, value) in known.collect::<BTreeMap<_, _>>() {
                let labels = labels.iter().map(|(label, text)| (*label, text.as_str()));
                let labels: Vec<_> =
                    [("pool", pool.pool.as_str())].into_iter().chain(labels).collect();
                out.sample(name, &labels, value);
            }
        }
    };
    let desired = "Replicas that are advised";
    gauge("desired_replicas", desired, |pool| one(pool.desired_replicas.map(f64::from)));
    gauge("replicas", "Replicas that report", |pool| one(pool.replicas.map(f64::from)));
    let age = "Seconds since what the advice rests on was seen";
    gauge("advice_age_seconds", age, |pool| one(pool.age_s));
    gauge("headroom_ratio", "What is left of the load line, as a share of it", |pool| {
        let rows = pool.resources.iter();
        rows.map(|row| (vec![resource(row.resource)], row.headroom_ratio)).collect()
    });
    let least = "The same of a replica, in what it has least of";
    gauge("replica_headroom_ratio", least, |pool| {
        let labels =
            |row: &ReplicaNow| vec![("replica", row.replica.clone()), resource(row.resource)];
        pool.each.iter().map(|row| (labels(row), Some(row.headroom_ratio))).collect()
    });
    let tokens = "Tokens a second that the plan expects at this hour";
    gauge("forecast_tokens", tokens, |pool| forecast(pool, false));
    let requests = "Calls a second that the plan expects at this hour";
    gauge("forecast_requests", requests, |pool| forecast(pool, true));
    gauge("drift_ratio", "What is, over what the plan took for granted", |pool| {
        let ratio = |row: &Drift| (row.planned > 0.0).then(|| row.now / row.planned);
        let labels = |row: &Drift| vec![("assumption", row.assumption.to_owned())];
        pool.drift.iter().map(|row| (labels(row), ratio(row))).collect()
    });
    let crosses = "Seconds until the load line is reached, where it is about to be";
    gauge("line_crossed_in_seconds", crosses, |pool| {
        let inflection = pool.inflection.as_ref();
        one(inflection.and_then(|inflection| inflection.crosses_in_s).map(|seconds| seconds as f64))
    });
    out.end()
}

/// A number of the pool itself.
fn one(value: Option<f64>) -> Samples {
    vec![(Vec::new(), value)]
}

fn resource(name: &str) -> (&'static str, String) {
    ("resource", name.to_owned())
}

/// What is expected of requests, or of tokens.
fn forecast(pool: &PoolAdvice, of_requests: bool) -> Samples {
    let rows = pool.forecast.iter().filter(|row| (row.resource == "requests") == of_requests);
    rows.flat_map(|row| {
        [(0.5, row.p50), (row.quantile, row.planned)].map(|(quantile, value)| {
            (vec![resource(row.resource), ("quantile", quantile.to_string())], Some(value))
        })
    })
    .collect()
}

/// Answers until the task is dropped; HTTP/1 and, for gRPC, HTTP/2 on one port.
pub async fn serve_board(listener: tokio::net::TcpListener, app: Router) -> std::io::Result<()> {
    axum::serve(listener, app).await
}
