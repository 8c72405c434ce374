//! What a monitor reads.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use crate::Basis;
use crate::app::House;

/// An answer within 200 ms is the promise of the page, so buckets are fine around it.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 1.0, 2.5, 5.0, 10.0];

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    shed: Counter,
    what_ifs: Family<Looked, Counter>,
    running: Gauge,
    waiting: Gauge,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Looked {
    basis: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("plimsoll");
        let requests = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> _);
        let (shed, what_ifs) = (Counter::default(), Family::default());
        let (running, waiting) = (Gauge::default(), Gauge::default());
        registry.register("requests", "Requests answered", requests.clone());
        registry.register_with_unit(
            "request_duration",
            "From the head of a request to the head of its answer",
            Unit::Seconds,
            seconds.clone(),
        );
        registry.register("shed", "Requests turned away because of a full line", shed.clone());
        registry.register("what_ifs", "What-ifs asked of the desk", what_ifs.clone());
        registry.register("jobs_running", "Jobs that are computed", running.clone());
        registry.register("jobs_waiting", "Jobs that wait for a seat", waiting.clone());
        Self { registry, requests, seconds, shed, what_ifs, running, waiting }
    }

    pub(crate) fn what_if(&self, basis: Basis) {
        let basis = match basis {
            Basis::Approximate => "approximate",
            Basis::Simulated => "simulated",
        };
        self.what_ifs.get_or_create(&Looked { basis }).inc();
    }

    /// All of them as text. Jobs are counted when they are asked for, so they are never stale.
    pub(crate) fn text(&self, running: usize, waiting: usize) -> String {
        self.running.set(i64::try_from(running).unwrap_or(i64::MAX));
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Counts and times every request, by the pattern of its route, so that labels stay few whatever is asked.
pub(crate) async fn count(
    State(house): State<Arc<House>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str).to_owned();
    let method = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let began = Instant::now();
    let response = next.run(request).await;
    let metrics = &house.metrics;
    let status = response.status();
    metrics
        .seconds
        .get_or_create(&Route { route: route.clone() })
        .observe(began.elapsed().as_secs_f64());
    metrics.requests.get_or_create(&Answered { method, route, status: status.as_u16() }).inc();
    if status == StatusCode::TOO_MANY_REQUESTS {
        metrics.shed.inc();
    }
    response
}
