//! What a monitor reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use crate::Basis;
use crate::app::House;
use crate::exposition::Exposition;

/// An answer within 200 ms is the promise of the page, so buckets are fine around it.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 1.0, 2.5, 5.0, 10.0];

/// What was counted so far.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// By method, route and status.
    requests: BTreeMap<(&'static str, String, u16), u64>,
    /// By route.
    seconds: BTreeMap<String, Histogram>,
    shed: u64,
    /// By basis.
    what_ifs: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct Histogram {
    /// How many took at most as long as each of `SECONDS`.
    within: [u64; SECONDS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Counts are never left half changed, so a panic elsewhere does not spoil them.
    fn counts<T>(&self, then: impl FnOnce(&mut Counts) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn what_if(&self, basis: Basis) {
        let basis = match basis {
            Basis::Approximate => "approximate",
            Basis::Simulated => "simulated",
        };
        self.counts(|counts| *counts.what_ifs.entry(basis).or_default() += 1);
    }

    fn answered(&self, method: &'static str, route: String, status: u16, seconds: f64) {
        self.counts(|counts| {
            let histogram = counts.seconds.entry(route.clone()).or_default();
            for (within, limit) in histogram.within.iter_mut().zip(SECONDS) {
                *within += u64::from(seconds <= limit);
            }
            histogram.count += 1;
            histogram.sum += seconds;
            counts.shed += u64::from(status == StatusCode::TOO_MANY_REQUESTS.as_u16());
            *counts.requests.entry((method, route, status)).or_default() += 1;
        });
    }

    /// All of them as text. Jobs are counted when they are asked for, so they are never stale.
    pub(crate) fn text(&self, running: usize, waiting: usize) -> String {
        let mut out = Exposition::default();
        self.counts(|counts| {
            out.metric("requests", "counter", "Requests answered");
            for ((method, route, status), count) in &counts.requests {
                let status = status.to_string();
                let labels = [("method", *method), ("route", route), ("status", &status)];
                out.sample("requests_total", &labels, count);
            }
            let help = "From the head of a request to the head of its answer";
            out.metric("request_duration_seconds", "histogram", help);
            for (route, histogram) in &counts.seconds {
                let of = [("route", route.as_str())];
                out.sample("request_duration_seconds_sum", &of, histogram.sum);
                out.sample("request_duration_seconds_count", &of, histogram.count);
                let limits = SECONDS.map(|limit| limit.to_string());
                let within = limits.iter().map(String::as_str).zip(histogram.within);
                for (limit, count) in within.chain([("+Inf", histogram.count)]) {
                    let labels = [("le", limit), ("route", route)];
                    out.sample("request_duration_seconds_bucket", &labels, count);
                }
            }
            out.metric("shed", "counter", "Requests turned away because of a full line");
            out.sample("shed_total", &[], counts.shed);
            out.metric("what_ifs", "counter", "What-ifs asked of the desk");
            for (basis, count) in &counts.what_ifs {
                out.sample("what_ifs_total", &[("basis", basis)], count);
            }
        });
        out.metric("jobs_running", "gauge", "Jobs that are computed");
        out.sample("jobs_running", &[], running);
        out.metric("jobs_waiting", "gauge", "Jobs that wait for a seat");
        out.sample("jobs_waiting", &[], waiting);
        out.end()
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
    let (status, seconds) = (response.status().as_u16(), began.elapsed().as_secs_f64());
    house.metrics.answered(method, route, status, seconds);
    response
}
