//! What can be asked. Each handler reads a question, hands it to the desk, and puts the answer into an envelope.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::app::House;
use crate::ask::{CheckAsked, JobAsked, Named, Sent, WhatIfAsked, file_name};
use crate::failure::{ErrorDocument, Failure, problem};
use crate::jobs::{JobAnswer, JobDocument};
use crate::{Problem, Refused, ScenarioName, Work};

type Shared = State<Arc<House>>;

/// Scenarios that can be opened.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScenariosDocument {
    /// `plimsoll/scenarios/v1`.
    schema: &'static str,
    /// Of the program.
    version: String,
    /// Examples first, then those of the workspace.
    scenarios: Vec<ScenarioName>,
}

/// The text of a scenario.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScenarioDocument {
    /// `plimsoll/scenario-text/v1`.
    schema: &'static str,
    /// By which it was asked for.
    name: String,
    /// TOML.
    text: String,
}

/// What is wrong with a scenario.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckDocument {
    /// `plimsoll/check/v1`.
    schema: &'static str,
    /// Whether nothing is.
    ok: bool,
    /// Everything that is.
    diagnostics: Vec<Problem>,
}

/// Which log is sent.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProfileAsked {
    /// What messages call it; its ending may say its format.
    name: Option<String>,
}

/// Whether the server runs.
#[utoipa::path(get, path = "/healthz", responses((status = 200, description = "It does")))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether a question would be taken now.
#[utoipa::path(get, path = "/readyz", responses(
    (status = 200, description = "It would"),
    (status = 503, description = "Lines are full", body = ErrorDocument),
))]
pub(crate) async fn readyz(State(house): Shared) -> Result<&'static str, Failure> {
    if house.what_ifs.has_room() && house.quick.has_room() {
        return Ok("ready\n");
    }
    Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, problem("busy", "lines are full")).after(1))
}

/// Counters for a monitor, in the text format of OpenMetrics.
#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "Counters", content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(State(house): Shared) -> impl IntoResponse {
    let (running, waiting) = house.jobs.counts();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], house.metrics.text(running, waiting))
}

/// This description.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, description = "OpenAPI 3.1", body = Value)))]
pub(crate) async fn openapi_json(State(house): Shared) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], house.openapi.clone())
}

/// Scenarios that can be opened.
#[utoipa::path(get, path = "/api/v1/scenarios", responses(
    (status = 200, description = "Their names", body = ScenariosDocument),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn scenarios(State(house): Shared) -> Result<Json<ScenariosDocument>, Failure> {
    let desk = Arc::clone(&house.desk);
    let scenarios = quick(&house, move |_| desk.scenarios()).await?;
    let version = house.version.clone();
    Ok(Json(ScenariosDocument { schema: "plimsoll/scenarios/v1", version, scenarios }))
}

/// The text of a scenario.
#[utoipa::path(get, path = "/api/v1/scenarios/{name}", params(("name" = String, Path, description = "As listed")), responses(
    (status = 200, description = "Its text", body = ScenarioDocument),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn scenario(
    State(house): Shared,
    Named(name): Named,
) -> Result<Json<ScenarioDocument>, Failure> {
    let (desk, asked) = (Arc::clone(&house.desk), name.clone());
    let text = quick(&house, move |_| desk.scenario(&asked)).await?;
    let text = text.ok_or_else(|| Failure::missing("such scenario"))?;
    Ok(Json(ScenarioDocument { schema: "plimsoll/scenario-text/v1", name, text }))
}

/// What is wrong with a scenario. A scenario that is wrong is an answer and no error here.
#[utoipa::path(post, path = "/api/v1/check", request_body = CheckAsked, responses(
    (status = 200, description = "Everything that is wrong", body = CheckDocument),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn check(
    State(house): Shared,
    Sent(asked): Sent<CheckAsked>,
) -> Result<Json<CheckDocument>, Failure> {
    let (desk, scenario) = (Arc::clone(&house.desk), asked.scenario()?);
    let diagnostics = quick(&house, move |_| desk.check(&scenario)).await?;
    let ok = diagnostics.is_empty();
    Ok(Json(CheckDocument { schema: "plimsoll/check/v1", ok, diagnostics }))
}

/// What becomes of the answer when levers move.
#[utoipa::path(post, path = "/api/v1/what-if", request_body = WhatIfAsked, responses(
    (status = 200, description = "`plimsoll/what-if/v1`", body = Value),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn what_if(
    State(house): Shared,
    Sent(asked): Sent<WhatIfAsked>,
) -> Result<Json<Value>, Failure> {
    let (scenario, levers, basis) = asked.parts()?;
    house.metrics.what_if(basis);
    let desk = Arc::clone(&house.desk);
    let call = move |work: &Work| desk.what_if(&scenario, &levers, basis, work);
    let time = house.config.limits.what_if_time;
    Ok(Json(house.what_ifs.call(time, &Work::default(), call).await??))
}

/// Starts a study.
#[utoipa::path(post, path = "/api/v1/jobs", request_body = JobAsked, responses(
    (status = 202, description = "In the line; `Location` says where to look", body = JobDocument),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn start_job(
    State(house): Shared,
    Sent(asked): Sent<JobAsked>,
) -> Result<Response, Failure> {
    let (study, scenario) = (asked.study, asked.scenario()?);
    let (desk, name) = (Arc::clone(&house.desk), scenario.name.clone());
    let job = house.jobs.start(study.word(), name, move |work| match study.study() {
        Some(kind) => desk.study(kind, &scenario, work).and_then(|value| document(&value)),
        None => desk
            .review_html(&scenario, work)
            .map(|html| JobAnswer { body: html.into(), page: Some(page_name(&scenario.name)) }),
    })?;
    Ok(started(job))
}

/// How a job stands.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", params(("id" = String, Path, description = "As it was started")), responses(
    (status = 200, description = "How far it is", body = JobDocument),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn job(
    State(house): Shared,
    Named(id): Named,
) -> Result<Json<JobDocument>, Failure> {
    house.jobs.look(&id).map(Json)
}

/// Stops a job; one that has ended stays as it is.
#[utoipa::path(delete, path = "/api/v1/jobs/{id}", params(("id" = String, Path, description = "As it was started")), responses(
    (status = 200, description = "How it stands now", body = JobDocument),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn cancel_job(
    State(house): Shared,
    Named(id): Named,
) -> Result<Json<JobDocument>, Failure> {
    house.jobs.cancel(&id).map(Json)
}

/// What a job made: a document, or a page to save.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/result", params(("id" = String, Path, description = "As it was started")), responses(
    (status = 200, description = "The document of the study; HTML for `review_html`", content((Value = "application/json"), (String = "text/html"))),
    (status = "default", description = "Why not; 409 where it has not ended", body = ErrorDocument),
))]
pub(crate) async fn job_result(
    State(house): Shared,
    Named(id): Named,
) -> Result<Response, Failure> {
    let answer = house.jobs.result(&id)?;
    let kind = if answer.page.is_some() { "text/html; charset=utf-8" } else { "application/json" };
    let mut response = ([(header::CONTENT_TYPE, kind)], answer.body).into_response();
    if let Some(name) = answer.page {
        let value = format!("attachment; filename=\"{name}\"");
        let value = HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("attachment"));
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// Starts the profile of a log, which is the body as it is.
#[utoipa::path(post, path = "/api/v1/profile", params(ProfileAsked), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses(
    (status = 202, description = "In the line; `Location` says where to look", body = JobDocument),
    (status = "default", description = "Why not", body = ErrorDocument),
))]
pub(crate) async fn profile(
    State(house): Shared,
    query: Result<Query<ProfileAsked>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let Query(asked) = query.map_err(|_| {
        Failure::bad(vec![problem("query", "a log is sent to `/api/v1/profile?name=FILE`")])
    })?;
    let name = file_name(asked.name.as_deref().unwrap_or("log"))?;
    house.jobs.room()?;
    let limits = &house.config.limits;
    let upload = crate::upload::receive(&name, &headers, body, &house.uploads, limits).await?;
    let (desk, called) = (Arc::clone(&house.desk), name.clone());
    let job = house.jobs.start("profile", name, move |work| {
        desk.profile(upload.file.path(), &called, work).and_then(|value| document(&value))
    })?;
    Ok(started(job))
}

async fn quick<T: Send + 'static>(
    house: &House,
    call: impl FnOnce(&Work) -> T + Send + 'static,
) -> Result<T, Failure> {
    house.quick.call(house.config.limits.what_if_time, &Work::default(), call).await
}

fn started(job: JobDocument) -> Response {
    let place = format!("/api/v1/jobs/{}", job.id);
    (StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(job)).into_response()
}

/// Kept as bytes, whose size is known.
fn document(value: &Value) -> Result<JobAnswer, Refused> {
    Ok(JobAnswer { body: Bytes::from(value.to_string()), page: None })
}

/// `examples/launch-week.toml` is saved as `launch-week-review.html`.
fn page_name(scenario: &str) -> String {
    let file = scenario.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    format!("{}-review.html", stem.chars().map(plain).collect::<String>())
}
