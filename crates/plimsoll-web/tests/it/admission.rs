//! Who may ask: hosts, origins and tokens.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{FakeDesk, LAUNCH, PORT, app, send};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use plimsoll_web::{Charts, Config};
use serde_json::json;

const TOKEN: &str = "correct-horse-battery";

fn open_app() -> Router {
    let config =
        Config::new(([0, 0, 0, 0], PORT).into(), Some(TOKEN.to_owned()), Charts::default())
            .unwrap();
    plimsoll_web::app(Arc::new(FakeDesk::default()), config)
}

async fn status(app: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = json!({ "text": LAUNCH }).to_string();
    let body = if method == "POST" { Body::from(body) } else { Body::empty() };
    send(app, request.body(body).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_refused_on_loopback() {
    let app = app();
    let check = async |host: &str, expect: u16| {
        assert_eq!(status(&app, "GET", "/", &[("host", host)]).await, expect, "{host}");
    };
    check("127.0.0.1:7070", 200).await;
    check("localhost:7070", 200).await;
    check("LOCALHOST:7070", 200).await;
    check("[::1]:7070", 200).await;
    check("localhost", 421).await;
    check("localhost:7071", 421).await;
    check("evil.example:7070", 421).await;
    check("localhost.evil.example:7070", 421).await;
    check("evil@localhost:7070", 421).await;
    check("10.0.0.1:7070", 421).await;
    check("", 421).await;
    assert_eq!(status(&app, "GET", "/healthz", &[]).await, 421);
    let two = [("host", "localhost:7070"), ("host", "evil.example")];
    assert_eq!(status(&app, "GET", "/", &two).await, 421);
}

#[tokio::test]
async fn pages_of_others_cannot_ask_for_work() {
    let app = app();
    let check = async |name: &str, value: &str, expect: u16| {
        let headers =
            [("host", "localhost:7070"), ("content-type", "application/json"), (name, value)];
        let got = status(&app, "POST", "/api/v1/check", &headers).await;
        assert_eq!(got, expect, "{name}: {value}");
    };
    check("accept", "*/*", 200).await;
    check("origin", "http://localhost:7070", 200).await;
    check("origin", "http://localhost:9999", 403).await;
    check("origin", "http://127.0.0.1:7070", 403).await;
    check("origin", "https://evil.example", 403).await;
    check("origin", "null", 403).await;
    check("sec-fetch-site", "same-origin", 200).await;
    check("sec-fetch-site", "none", 200).await;
    check("sec-fetch-site", "same-site", 403).await;
    check("sec-fetch-site", "cross-site", 403).await;
    // A link from elsewhere may lead to the page.
    let link = [("host", "localhost:7070"), ("sec-fetch-site", "cross-site")];
    assert_eq!(status(&app, "GET", "/", &link).await, 200);
    assert_eq!(status(&app, "DELETE", "/api/v1/jobs/1", &link).await, 403);
}

#[tokio::test]
async fn beyond_loopback_everything_but_health_asks_for_the_token() {
    let app = open_app();
    for path in ["/", "/assets/app.js", "/api/v1/scenarios", "/metrics", "/readyz", "/nothing"] {
        assert_eq!(status(&app, "GET", path, &[]).await, 401, "{path}");
    }
    assert_eq!(status(&app, "GET", "/healthz", &[]).await, 200);
    let check = async |value: &str, expect: u16| {
        let got = status(&app, "GET", "/metrics", &[("authorization", value)]).await;
        assert_eq!(got, expect, "{value}");
    };
    check("Bearer correct-horse-battery", 200).await;
    check("bearer correct-horse-battery", 200).await;
    check("Bearer correct-horse-batter", 401).await;
    check("Bearer correct-horse-battery-", 401).await;
    check("Bearer ", 401).await;
    check("Basic correct-horse-battery", 401).await;
    // A token in an address is for the page alone.
    assert_eq!(status(&app, "GET", &format!("/metrics?token={TOKEN}"), &[]).await, 401);
}

#[tokio::test]
async fn a_browser_shows_the_token_once_and_keeps_it_in_a_cookie() {
    let app = open_app();
    let request = |path: &str| Request::builder().uri(path).body(Body::empty()).unwrap();
    let refused = send(&app, request("/?token=wrong-horse-battery")).await;
    assert_eq!(refused.header("www-authenticate"), "Bearer");
    let help = refused.problem(401)["help"].as_str().unwrap().to_owned();
    assert!(help.contains("/?token=TOKEN"), "{help}");
    let reply = send(&app, request(&format!("/?token={TOKEN}"))).await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (303, "/"));
    let cookie = reply.header("set-cookie");
    assert!(cookie.contains("; SameSite=Strict") && cookie.contains("; HttpOnly"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let both = format!("other=1; {pair}");
    assert_eq!(status(&app, "GET", "/", &[("cookie", &both)]).await, 200);
    assert_eq!(status(&app, "GET", "/", &[("cookie", "plimsoll_token=no")]).await, 401);
    // The cookie does not let pages of others in.
    let foreign = [("cookie", pair), ("host", "plan.example"), ("origin", "https://evil.example")];
    assert_eq!(status(&app, "POST", "/api/v1/check", &foreign).await, 403);
}
