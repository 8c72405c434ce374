//! Questions as they arrive.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{Described, described};
use crate::app::House;
use crate::failure::{Failure, problem};
use crate::{Asked, Basis, Levers, Study};

/// What an unnamed scenario is called in messages.
const UNNAMED: &str = "scenario.toml";
/// Names are shown in messages and offered as names of files.
const NAME_MAX: usize = 200;

described! {
    /// A scenario to check.
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(crate) struct CheckAsked {
        /// What messages call it.
        name: Option<String>,
        /// The scenario, as TOML.
        text: String,
    }
}

described! {
    /// A scenario and levers.
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(crate) struct WhatIfAsked {
        /// What messages call it.
        name: Option<String>,
        /// The scenario, as TOML.
        text: String,
        /// What is moved; what is left out stays as the scenario says.
        levers: Option<LeversAsked>,
        /// How closely it is looked at.
        basis: Option<Basis>,
    }
}

/// Levers as they were sent: everything that is wrong with them is said at once.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct LeversAsked(Map<String, Value>);

impl Described for LeversAsked {
    fn schema(named: &mut Map<String, Value>) -> Value {
        let levers = Levers::schema(named);
        crate::levers::bound(&mut named["Levers"]["properties"]);
        levers
    }
}

described! {
    /// A scenario and what to make of it.
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(crate) struct JobAsked {
        /// What to make of it.
        pub(crate) study: JobStudy,
        /// What messages call it.
        name: Option<String>,
        /// The scenario, as TOML.
        text: String,
    }
}

described! {
    /// What a job makes of a scenario.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum JobStudy {
        /// The memory budget.
        Fit,
        /// The service curve.
        Curve,
        /// The plan.
        Plan,
        /// Hard times and what moves the answer.
        Stress,
        /// The cost of a period.
        Cost,
        /// All of it, as JSON.
        Review,
        /// All of it, as a page that stands alone.
        ReviewHtml,
    }
}

impl JobStudy {
    /// As it is asked for.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Curve => "curve",
            Self::Plan => "plan",
            Self::Stress => "stress",
            Self::Cost => "cost",
            Self::Review => "review",
            Self::ReviewHtml => "review_html",
        }
    }

    /// The study whose document is asked for; none for the page.
    pub(crate) fn study(self) -> Option<Study> {
        match self {
            Self::Fit => Some(Study::Fit),
            Self::Curve => Some(Study::Curve),
            Self::Plan => Some(Study::Plan),
            Self::Stress => Some(Study::Stress),
            Self::Cost => Some(Study::Cost),
            Self::Review => Some(Study::Review),
            Self::ReviewHtml => None,
        }
    }
}

impl CheckAsked {
    pub(crate) fn scenario(self) -> Result<Asked, Failure> {
        asked(self.name, self.text)
    }
}

impl JobAsked {
    pub(crate) fn scenario(self) -> Result<Asked, Failure> {
        asked(self.name, self.text)
    }
}

impl WhatIfAsked {
    pub(crate) fn parts(self) -> Result<(Asked, Levers, Basis), Failure> {
        let levers =
            crate::levers::read(&self.levers.unwrap_or_default().0).map_err(Failure::bad)?;
        Ok((asked(self.name, self.text)?, levers, self.basis.unwrap_or(Basis::Approximate)))
    }
}

fn asked(name: Option<String>, text: String) -> Result<Asked, Failure> {
    Ok(Asked { name: file_name(name.as_deref().unwrap_or(UNNAMED))?, text })
}

/// A name that can be shown in a message. It opens nothing: scenarios are opened by their place in the desk's list.
pub(crate) fn file_name(name: &str) -> Result<String, Failure> {
    let wrong = name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control);
    if wrong {
        let message = format!("a name has 1 to {NAME_MAX} bytes and no control characters");
        return Err(Failure::bad(vec![problem("name", message)]));
    }
    Ok(name.to_owned())
}

/// The variable part of a path.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        // What cannot be decoded names nothing.
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| Failure::missing("such page"))
    }
}

/// A JSON body of a bounded size that arrives in time.
pub(crate) struct Sent<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<House>> for Sent<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, house: &Arc<House>) -> Result<Self, Failure> {
        let limits = &house.config.limits;
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let message = "a question is sent as `Content-Type: application/json`";
            return Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                problem("media-type", message),
            ));
        }
        let _reading = house.bodies.try_acquire().map_err(|_| Failure::shed("questions", 1))?;
        let body = tokio::time::timeout(limits.body_time, Bytes::from_request(request, house))
            .await
            .map_err(|_| Failure::too_slow(limits.body_time))?
            .map_err(|rejected| match rejected.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    Failure::too_large(u64::try_from(limits.body_bytes).unwrap_or(u64::MAX))
                }
                _ => Failure::bad(vec![problem("body", "the request broke off")]),
            })?;
        serde_json::from_slice(&body).map(Self).map_err(|e| {
            let mut wrong = problem("json", e.to_string());
            wrong.line = u64::try_from(e.line()).ok().filter(|line| *line > 0);
            wrong.column = u64::try_from(e.column()).ok().filter(|column| *column > 0);
            Failure::bad(vec![wrong])
        })
    }
}
