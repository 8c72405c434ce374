//! What is advised for a running fleet, for whoever asks: a monitor, an autoscaler, a person.
//!
//! One port answers all of them: `/metrics` in the text of Prometheus, `/v1/…` in JSON (KEDA's `metrics-api`), and KEDA's external scaler over gRPC. None of them is ever told a zero
//! that means "unknown": what is not known is not there.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use plimsoll_study::{Advice, PoolAdvice};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPool {
    pool: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfResource {
    pool: String,
    resource: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfReplica {
    pool: String,
    replica: String,
    resource: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfQuantile {
    pool: String,
    resource: &'static str,
    quantile: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAssumption {
    pool: String,
    assumption: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPlan {
    plan: String,
}

type Real = Gauge<f64, std::sync::atomic::AtomicU64>;

async fn metrics(State(board): State<Board>) -> Response {
    let mut text = String::new();
    if encode(&mut text, &registry(board.latest().as_ref())).is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// What is known, made anew for each scrape: a series that is not known any more is gone, and not stuck.
fn registry(advice: Option<&Advice>) -> Registry {
    let mut registry = Registry::with_prefix("plimsoll");
    let plan = Family::<OfPlan, Gauge>::default();
    let desired = Family::<OfPool, Gauge>::default();
    let replicas = Family::<OfPool, Gauge>::default();
    let age = Family::<OfPool, Real>::default();
    let headroom = Family::<OfResource, Real>::default();
    let each = Family::<OfReplica, Real>::default();
    let tokens = Family::<OfQuantile, Real>::default();
    let requests = Family::<OfQuantile, Real>::default();
    let drift = Family::<OfAssumption, Real>::default();
    let crosses = Family::<OfPool, Real>::default();
    registry.register("plan", "The plan that is watched", plan.clone());
    registry.register("desired_replicas", "Replicas that are advised", desired.clone());
    registry.register("replicas", "Replicas that report", replicas.clone());
    registry.register(
        "advice_age_seconds",
        "Seconds since what the advice rests on was seen",
        age.clone(),
    );
    registry.register(
        "headroom_ratio",
        "What is left of the load line, as a share of it",
        headroom.clone(),
    );
    registry.register(
        "replica_headroom_ratio",
        "The same of a replica, in what it has least of",
        each.clone(),
    );
    registry.register(
        "forecast_tokens",
        "Tokens a second that the plan expects at this hour",
        tokens.clone(),
    );
    registry.register(
        "forecast_requests",
        "Calls a second that the plan expects at this hour",
        requests.clone(),
    );
    registry.register("drift_ratio", "What is, over what the plan took for granted", drift.clone());
    registry.register(
        "line_crossed_in_seconds",
        "Seconds until the load line is reached, where it is about to be",
        crosses.clone(),
    );
    let Some(advice) = advice else { return registry };
    plan.get_or_create(&OfPlan { plan: advice.plan.clone() }).set(1);
    for own in &advice.pools {
        let pool = || own.pool.clone();
        if let Some(count) = own.desired_replicas {
            desired.get_or_create(&OfPool { pool: pool() }).set(i64::from(count));
        }
        if let Some(count) = own.replicas {
            replicas.get_or_create(&OfPool { pool: pool() }).set(i64::from(count));
        }
        if let Some(seconds) = own.age_s {
            age.get_or_create(&OfPool { pool: pool() }).set(seconds);
        }
        for row in &own.resources {
            let Some(ratio) = row.headroom_ratio else { continue };
            let labels = OfResource { pool: pool(), resource: row.resource };
            headroom.get_or_create(&labels).set(ratio);
        }
        for row in &own.each {
            let replica = row.replica.clone();
            let labels = OfReplica { pool: pool(), replica, resource: row.resource };
            each.get_or_create(&labels).set(row.headroom_ratio);
        }
        for row in &own.forecast {
            let family = if row.resource == "requests" { &requests } else { &tokens };
            for (quantile, value) in [(0.5, row.p50), (row.quantile, row.planned)] {
                let quantile = quantile.to_string();
                let labels = OfQuantile { pool: pool(), resource: row.resource, quantile };
                family.get_or_create(&labels).set(value);
            }
        }
        for row in &own.drift {
            let labels = OfAssumption { pool: pool(), assumption: row.assumption };
            if row.planned > 0.0 {
                drift.get_or_create(&labels).set(row.now / row.planned);
            }
        }
        if let Some(seconds) = own.inflection.as_ref().and_then(|found| found.crosses_in_s) {
            crosses.get_or_create(&OfPool { pool: pool() }).set(seconds as f64);
        }
    }
    registry
}

/// Answers until the task is dropped; HTTP/1 and, for gRPC, HTTP/2 on one port.
pub async fn serve_board(listener: tokio::net::TcpListener, app: Router) -> std::io::Result<()> {
    axum::serve(listener, app).await
}
