//! What can be asked. Each handler reads a question, hands it to the desk, and puts the answer into an envelope.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{DELETE, Endpoint, GET, POST, described};
use crate::app::House;
use crate::ask::{CheckAsked, JobAsked, Named, Sent, WhatIfAsked, file_name};
use crate::failure::{ErrorDocument, Failure, problem};
use crate::jobs::{JobAnswer, JobDocument};
use crate::{Problem, Refused, ScenarioName, Work};

type Shared = State<Arc<House>>;

described! {
    /// Scenarios that can be opened.
    #[derive(Debug, Serialize)]
    pub(crate) struct ScenariosDocument {
        /// `plimsoll/scenarios/v1`.
        schema: &'static str,
        /// Of the program.
        version: String,
        /// Examples first, then those of the workspace.
        scenarios: Vec<ScenarioName>,
    }
}

described! {
    /// The text of a scenario.
    #[derive(Debug, Serialize)]
    pub(crate) struct ScenarioDocument {
        /// `plimsoll/scenario-text/v1`.
        schema: &'static str,
        /// By which it was asked for.
        name: String,
        /// TOML.
        text: String,
    }
}

described! {
    /// What is wrong with a scenario.
    #[derive(Debug, Serialize)]
    pub(crate) struct CheckDocument {
        /// `plimsoll/check/v1`.
        schema: &'static str,
        /// Whether nothing is.
        ok: bool,
        /// Everything that is.
        diagnostics: Vec<Problem>,
    }
}

/// Which log is sent.
#[derive(Debug, Deserialize)]
pub(crate) struct ProfileAsked {
    /// What messages call it; its ending may say its format.
    name: Option<String>,
}

/// All that can be asked.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let part = "As it was started";
    vec![
        Endpoint::new(GET, "/healthz", "healthz", "Whether the server runs.", healthz)
            .says("200", "It does", &[]),
        Endpoint::new(GET, "/readyz", "readyz", "Whether a question would be taken now.", readyz)
            .says("200", "It would", &[])
            .answers::<ErrorDocument>("503", "Lines are full"),
        Endpoint::new(
            GET,
            "/metrics",
            "metrics",
            "Counters for a monitor, in the text format of OpenMetrics.",
            metrics,
        )
        .says("200", "Counters", &[("application/openmetrics-text", json!({ "type": "string" }))]),
        Endpoint::new(GET, "/api/v1/openapi.json", "openapi_json", "This description.", openapi_json)
            .answers::<Value>("200", "OpenAPI 3.1"),
        Endpoint::new(GET, "/api/v1/scenarios", "scenarios", "Scenarios that can be opened.", scenarios)
            .answers::<ScenariosDocument>("200", "Their names")
            .or_fails("Why not"),
        Endpoint::new(GET, "/api/v1/scenarios/{name}", "scenario", "The text of a scenario.", scenario)
            .parameter("path", "name", "As listed")
            .answers::<ScenarioDocument>("200", "Its text")
            .or_fails("Why not"),
        Endpoint::new(
            POST,
            "/api/v1/check",
            "check",
            "What is wrong with a scenario. A scenario that is wrong is an answer and no error here.",
            check,
        )
        .asks::<CheckAsked>()
        .answers::<CheckDocument>("200", "Everything that is wrong")
        .or_fails("Why not"),
        Endpoint::new(
            POST,
            "/api/v1/what-if",
            "what_if",
            "What becomes of the answer when levers move.",
            what_if,
        )
        .asks::<WhatIfAsked>()
        .answers::<Value>("200", "`plimsoll/what-if/v1`")
        .or_fails("Why not"),
        Endpoint::new(POST, "/api/v1/jobs", "start_job", "Starts a study.", start_job)
            .asks::<JobAsked>()
            .answers::<JobDocument>("202", "In the line; `Location` says where to look")
            .or_fails("Why not"),
        Endpoint::new(GET, "/api/v1/jobs/{id}", "job", "How a job stands.", job)
            .parameter("path", "id", part)
            .answers::<JobDocument>("200", "How far it is")
            .or_fails("Why not"),
        Endpoint::new(
            DELETE,
            "/api/v1/jobs/{id}",
            "cancel_job",
            "Stops a job; one that has ended stays as it is.",
            cancel_job,
        )
        .parameter("path", "id", part)
        .answers::<JobDocument>("200", "How it stands now")
        .or_fails("Why not"),
        Endpoint::new(
            GET,
            "/api/v1/jobs/{id}/result",
            "job_result",
            "What a job made: a document, or a page to save.",
            job_result,
        )
        .parameter("path", "id", part)
        .says(
            "200",
            "The document of the study; HTML for `review_html`",
            &[("application/json", json!({})), ("text/html", json!({ "type": "string" }))],
        )
        .or_fails("Why not; 409 where it has not ended"),
        Endpoint::new(
            POST,
            "/api/v1/profile",
            "profile",
            "Starts the profile of a log, which is the body as it is.",
            profile,
        )
        .parameter("query", "name", "What messages call it; its ending may say its format.")
        .takes("application/octet-stream", json!({}))
        .answers::<JobDocument>("202", "In the line; `Location` says where to look")
        .or_fails("Why not"),
    ]
}

pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

pub(crate) async fn readyz(State(house): Shared) -> Result<&'static str, Failure> {
    if house.what_ifs.has_room() && house.quick.has_room() {
        return Ok("ready\n");
    }
    Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, problem("busy", "lines are full")).after(1))
}

pub(crate) async fn metrics(State(house): Shared) -> impl IntoResponse {
    let (running, waiting) = house.jobs.counts();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], house.metrics.text(running, waiting))
}

pub(crate) async fn openapi_json(State(house): Shared) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], house.openapi.clone())
}

pub(crate) async fn scenarios(State(house): Shared) -> Result<Json<ScenariosDocument>, Failure> {
    let desk = Arc::clone(&house.desk);
    let scenarios = quick(&house, move |_| desk.scenarios()).await?;
    let version = house.version.clone();
    Ok(Json(ScenariosDocument { schema: "plimsoll/scenarios/v1", version, scenarios }))
}

pub(crate) async fn scenario(
    State(house): Shared,
    Named(name): Named,
) -> Result<Json<ScenarioDocument>, Failure> {
    let (desk, asked) = (Arc::clone(&house.desk), name.clone());
    let text = quick(&house, move |_| desk.scenario(&asked)).await?;
    let text = text.ok_or_else(|| Failure::missing("such scenario"))?;
    Ok(Json(ScenarioDocument { schema: "plimsoll/scenario-text/v1", name, text }))
}

pub(crate) async fn check(
    State(house): Shared,
    Sent(asked): Sent<CheckAsked>,
) -> Result<Json<CheckDocument>, Failure> {
    let (desk, scenario) = (Arc::clone(&house.desk), asked.scenario()?);
    let diagnostics = quick(&house, move |_| desk.check(&scenario)).await?;
    let ok = diagnostics.is_empty();
    Ok(Json(CheckDocument { schema: "plimsoll/check/v1", ok, diagnostics }))
}

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

pub(crate) async fn job(
    State(house): Shared,
    Named(id): Named,
) -> Result<Json<JobDocument>, Failure> {
    house.jobs.look(&id).map(Json)
}

pub(crate) async fn cancel_job(
    State(house): Shared,
    Named(id): Named,
) -> Result<Json<JobDocument>, Failure> {
    house.jobs.cancel(&id).map(Json)
}

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
