//! The router, and what its handlers share.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::assets::{Asset, assets};
use crate::failure::{Failure, problem};
use crate::jobs::Jobs;
use crate::line::Line;
use crate::metrics::Metrics;
use crate::{Config, Desk, guard, metrics, routes as r};

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

#[derive(OpenApi)]
#[openapi(info(
    title = "Plimsoll",
    description = "The load line for LLM inference: the studies of the command line, over HTTP. An answer that is not an error is the document that the command prints with `--json`."
))]
struct Api;

/// The page and the API, without a socket.
pub fn app(desk: Arc<dyn Desk>, config: Config) -> Router {
    let limits = config.limits.clone();
    let (router, openapi) = routes().split_for_parts();
    let house = Arc::new(House {
        version: desk.version().to_owned(),
        openapi: openapi.to_json().unwrap_or_default(),
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
    router
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
        .layer(CatchPanicLayer::custom(|_| -> Response { Failure::bug().into_response() }))
        .layer(from_fn_with_state(Arc::clone(&house), metrics::count))
        .layer(from_fn(guard::headers))
        .with_state(house)
}

/// The description of the API.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes().into_openapi()
}

fn routes() -> OpenApiRouter<Arc<House>> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(r::healthz))
        .routes(routes!(r::readyz))
        .routes(routes!(r::metrics))
        .routes(routes!(r::openapi_json))
        .routes(routes!(r::scenarios))
        .routes(routes!(r::scenario))
        .routes(routes!(r::check))
        .routes(routes!(r::what_if))
        .routes(routes!(r::start_job))
        .routes(routes!(r::job, r::cancel_job))
        .routes(routes!(r::job_result))
        .routes(routes!(r::profile))
}
