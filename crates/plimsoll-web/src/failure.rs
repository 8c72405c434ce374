//! What is answered where there is no answer.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::api::described;
use crate::{Problem, Refused};

/// A request without an answer: a status, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) problems: Vec<Problem>,
    retry_after_s: Option<u32>,
}

described! {
    /// Why there is no answer, for people and for scripts.
    #[derive(Debug, Serialize)]
    pub(crate) struct ErrorDocument {
        /// `plimsoll/error/v1`.
        schema: &'static str,
        /// Everything that is wrong.
        diagnostics: Vec<Problem>,
    }
}

/// Something wrong with a request and not with a scenario.
pub(crate) fn problem(code: &str, message: impl Into<String>) -> Problem {
    Problem {
        code: code.to_owned(),
        message: message.into(),
        file: "request".to_owned(),
        line: None,
        column: None,
        help: None,
    }
}

impl Failure {
    pub(crate) fn new(status: StatusCode, problem: Problem) -> Self {
        Self { status, problems: vec![problem], retry_after_s: None }
    }

    /// What was sent is no question.
    pub(crate) fn bad(problems: Vec<Problem>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, problems, retry_after_s: None }
    }

    /// There is no such thing.
    pub(crate) fn missing(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, problem("not-found", format!("there is no {what} here")))
    }

    /// There is more to do than can be done soon.
    pub(crate) fn shed(what: &str, retry_after_s: u32) -> Self {
        let message = format!("too many {what} at once; try again in {retry_after_s} s");
        Self::new(StatusCode::TOO_MANY_REQUESTS, problem("busy", message)).after(retry_after_s)
    }

    /// What was sent is larger than we take.
    pub(crate) fn too_large(limit: u64) -> Self {
        let message = format!("what was sent is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, problem("too-large", message))
    }

    /// What was sent did not arrive in time.
    pub(crate) fn too_slow(limit: std::time::Duration) -> Self {
        let message = format!("the request did not arrive within {} s", limit.as_secs_f64());
        Self::new(StatusCode::REQUEST_TIMEOUT, problem("too-slow", message))
    }

    /// The answer took too long.
    pub(crate) fn time_was_up(limit: std::time::Duration) -> Self {
        let mut problem =
            problem("time-was-up", format!("no answer within {} s", limit.as_secs_f64()));
        problem.help = Some("ask about a smaller scenario, or use the command line".to_owned());
        Self::new(StatusCode::SERVICE_UNAVAILABLE, problem)
    }

    /// We are wrong. What went wrong is said where the program runs and not to whoever asked.
    pub(crate) fn bug() -> Self {
        let mut problem = problem("internal-bug", "this is a bug of ours");
        problem.file = "plimsoll".to_owned();
        problem.help =
            Some("please report it with the scenario and what you asked of it".to_owned());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, problem)
    }

    /// The same, to be asked again in a while.
    pub(crate) fn after(self, seconds: u32) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Input(problems) => {
                Self { status: StatusCode::UNPROCESSABLE_ENTITY, problems, retry_after_s: None }
            }
            Refused::Stopped => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                problem("stopped", "the work was stopped before there was an answer"),
            ),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let document = ErrorDocument { schema: "plimsoll/error/v1", diagnostics: self.problems };
        let mut response = (self.status, Json(document)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
