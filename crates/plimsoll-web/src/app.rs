//! The router, and what its handlers share.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use tokio::sync::Semaphore;

use crate::assets::{Asset, assets};
use crate::failure::{Failure, problem};
use crate::jobs::Jobs;
use crate::line::Line;
use crate::metrics::Metrics;
use crate::{Config, Desk, api, guard, metrics, routes};

/// What handlers share.
pub(crate) struct House {
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) config: Config,
    pub(crate) version: String,
    pub(crate) openapi: String,
    pub(crate) assets: Vec<Asset>,
    pub(crate) metrics: Metrics,
    /// For what takes milliseconds, so that it never waits behind a simulation.
    pub(crate) quick: Line,
    pub(crate) what_ifs: Line,
    pub(crate) jobs: Jobs,
    pub(crate) bodies: Semaphore,
    pub(crate) uploads: Arc<Semaphore>,
}

/// The page and the API, without a socket.
pub fn app(desk: Arc<dyn Desk>, config: Config) -> Router {
    let limits = config.limits.clone();
    let endpoints = routes::endpoints();
    let house = Arc::new(House {
        version: desk.version().to_owned(),
        openapi: api::describe(&endpoints).to_string(),
        assets: assets(config.charts),
        metrics: Metrics::new(),
        quick: Line::new("questions", limits.what_ifs, limits.what_ifs_waiting),
        what_ifs: Line::new("what-ifs", limits.what_ifs, limits.what_ifs_waiting),
        jobs: Jobs::new(&limits),
        bodies: Semaphore::new(limits.bodies),
        uploads: Arc::new(Semaphore::new(limits.uploads)),
        desk,
        config,
    });
    api::router(endpoints)
        .route("/", get(crate::assets::page))
        .route("/assets/{name}", get(crate::assets::file))
        .fallback(async || Failure::missing("such page"))
        .method_not_allowed_fallback(async || {
            Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                problem("method", "this is not asked for in that way; see `Allow`"),
            )
        })
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(from_fn_with_state(Arc::clone(&house), guard::guard))
        .layer(from_fn(guard::survive))
        .layer(from_fn_with_state(Arc::clone(&house), metrics::count))
        .layer(from_fn(guard::headers))
        .with_state(house)
}

/// The description of the API.
pub fn openapi() -> serde_json::Value {
    api::describe(&routes::endpoints())
}
