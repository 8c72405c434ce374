//! Who may ask: the page that we served and whoever holds the token, but no page of anybody else.

use std::future::poll_fn;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq as _;

use crate::Config;
use crate::app::House;
use crate::failure::{Failure, problem};

const COOKIE: &str = "plimsoll_token";

/// Nothing is loaded from elsewhere, and no script but our files runs. No markup sets a style.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What every answer says to browsers.
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

/// Puts them on; and nothing is stored but what says otherwise.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A mistake of ours costs one answer and not the server.
pub(crate) async fn survive(request: Request, next: Next) -> Response {
    let mut answer = pin!(next.run(request));
    // After a panic the answer is never looked at again, so nothing that it left half done is seen.
    let polled = poll_fn(|context| {
        let poll = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        poll.unwrap_or_else(|_| Poll::Ready(Failure::bug().into_response()))
    });
    polled.await
}

/// Lets a request in, or says why not.
pub(crate) async fn guard(
    State(house): State<Arc<House>>,
    request: Request,
    next: Next,
) -> Response {
    match admit(&house.config, &request) {
        Ok(Admitted::Enters) => next.run(request).await,
        Ok(Admitted::Introduced(token)) => introduced(token),
        Err(failure) => failure.into_response(),
    }
}

enum Admitted<'a> {
    /// As it is.
    Enters,
    /// It showed the token in its address, from where it should go into a cookie.
    Introduced(&'a str),
}

fn admit<'a>(config: &'a Config, request: &Request) -> Result<Admitted<'a>, Failure> {
    let host = host(request);
    if config.address.ip().is_loopback()
        && !host.as_ref().is_some_and(|host| is_here(host, config.address.port()))
    {
        // A name of somebody else that leads to this machine is how a foreign page would reach us.
        let port = config.address.port();
        let message = format!("this server answers to localhost:{port} and 127.0.0.1:{port} only");
        return Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, problem("host", message)));
    }
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    if !reads && !is_own(request.headers(), host.as_ref()) {
        let message = "another site may not ask for this";
        return Err(Failure::new(StatusCode::FORBIDDEN, problem("origin", message)));
    }
    let Some(token) = &config.token else { return Ok(Admitted::Enters) };
    let path = request.uri().path();
    if path == "/healthz" || bearer(request.headers()).is_some_and(|shown| same(shown, token)) {
        return Ok(Admitted::Enters);
    }
    if path == "/" && reads {
        let query = request.uri().query().unwrap_or_default();
        let shown = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        if shown.is_some_and(|shown| same(shown, token)) {
            return Ok(Admitted::Introduced(token));
        }
    }
    if cookies(request.headers()).any(|shown| same(shown, token)) {
        return Ok(Admitted::Enters);
    }
    let mut wrong = problem("token", "this server asks for a token");
    wrong.help =
        Some("send `Authorization: Bearer TOKEN`, or open the page as `/?token=TOKEN`".to_owned());
    Err(Failure::new(StatusCode::UNAUTHORIZED, wrong))
}

/// The token leaves the address at once, so that it stays out of histories and bookmarks.
fn introduced(token: &str) -> Response {
    let cookie = format!("{COOKIE}={token}; Path=/; SameSite=Strict; HttpOnly");
    (StatusCode::SEE_OTHER, [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)])
        .into_response()
}

/// The server that the client believes to talk to; none where it says none, or two.
fn host(request: &Request) -> Option<Authority> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.clone());
    }
    let mut named = request.headers().get_all(header::HOST).iter();
    let host = named.next()?.to_str().ok()?.parse().ok()?;
    named.next().is_none().then_some(host)
}

fn is_here(host: &Authority, port: u16) -> bool {
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let loopback = name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    loopback && !host.as_str().contains('@') && host.port_u16().unwrap_or(80) == port
}

/// Whether our own page asks, or no page at all. Browsers say which page a request comes from; other programs have no reason to.
fn is_own(headers: &HeaderMap, host: Option<&Authority>) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("null"));
    let site = text("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    // Another port of this machine is the same site, but not us: the whole authority counts.
    let origin = text("origin").is_none_or(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|a| host.is_some_and(|h| a.eq_ignore_ascii_case(h.as_str())))
    });
    site && origin
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

/// Takes as long for a token that is nearly right as for one that is all wrong.
fn same(shown: &str, token: &str) -> bool {
    shown.as_bytes().ct_eq(token.as_bytes()).into()
}
