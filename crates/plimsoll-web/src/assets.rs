//! The page and its files, which are in the binary.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::Charts;
use crate::app::House;
use crate::ask::Named;
use crate::failure::Failure;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// A file of the page.
pub(crate) struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
    tag: HeaderValue,
}

/// All of them; the caller has what charts are shown with.
pub(crate) fn assets(charts: Charts) -> Vec<Asset> {
    [
        ("index.html", HTML, include_str!("../assets/index.html")),
        ("app.css", STYLE, include_str!("../assets/app.css")),
        ("app.js", SCRIPT, include_str!("../assets/app.js")),
        ("api.js", SCRIPT, include_str!("../assets/api.js")),
        ("asker.js", SCRIPT, include_str!("../assets/asker.js")),
        ("chart.js", SCRIPT, include_str!("../assets/chart.js")),
        ("compare.js", SCRIPT, include_str!("../assets/compare.js")),
        ("editor.js", SCRIPT, include_str!("../assets/editor.js")),
        ("jobs.js", SCRIPT, include_str!("../assets/jobs.js")),
        ("levers.js", SCRIPT, include_str!("../assets/levers.js")),
        ("view.js", SCRIPT, include_str!("../assets/view.js")),
        ("words.js", SCRIPT, include_str!("../assets/words.js")),
        ("mark.svg", PICTURE, include_str!("../assets/mark.svg")),
        ("charts.css", STYLE, charts.style),
        ("charts.js", SCRIPT, charts.script),
    ]
    .into_iter()
    .map(|(name, kind, text)| Asset { name, kind, text, tag: tag(text) })
    .collect()
}

/// Changes when the file does.
fn tag(text: &str) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish()))
        .unwrap_or(HeaderValue::from_static("\"0\""))
}

pub(crate) async fn page(State(house): State<Arc<House>>, headers: HeaderMap) -> Response {
    answer(&house, "index.html", &headers)
}

pub(crate) async fn file(
    State(house): State<Arc<House>>,
    Named(name): Named,
    headers: HeaderMap,
) -> Response {
    answer(&house, &name, &headers)
}

fn answer(house: &House, name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = house.assets.iter().find(|asset| asset.name == name) else {
        return Failure::missing("such file").into_response();
    };
    // Asked again each time, because a newer program has newer files under the same names; but sent again only then.
    let mut response = if headers.get(header::IF_NONE_MATCH) == Some(&asset.tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, asset.kind)], asset.text).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, asset.tag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
