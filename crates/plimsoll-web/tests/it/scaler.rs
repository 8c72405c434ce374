//! KEDA's external scaler and a monitor, as they ask the board. Bytes are those that Google's library writes for KEDA's protocol.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::http::Request;
use plimsoll_study::{Advice, Drift, ForecastNow, PoolAdvice};
use plimsoll_web::{Board, board_app};
use tower::ServiceExt as _;

use crate::support::get;

/// `{name: "so", namespace: "serving", scalerMetadata: {pool: "chat"}}`
const CHAT: &[u8] = b"\n\x02so\x12\x07serving\x1a\x0c\n\x04pool\x12\x04chat";
/// `{name: "chat"}`
const CHAT_BY_NAME: &[u8] = b"\n\x04chat";
/// `{name: "other"}`
const OTHER: &[u8] = b"\n\x05other";

fn advice(desired_replicas: Option<u32>) -> Advice {
    let drift = |assumption, planned| Drift {
        assumption,
        unit: "tokens",
        planned,
        now: 3.0,
        beyond: false,
    };
    let forecast = |resource, quantile| ForecastNow { resource, p50: 5.0, quantile, planned: 8.5 };
    let pool = PoolAdvice {
        pool: "chat".to_owned(),
        replicas: Some(2),
        desired_replicas,
        why: String::new(),
        asks: Vec::new(),
        age_s: Some(1.5),
        stale: false,
        resources: Vec::new(),
        each: Vec::new(),
        inflection: None,
        drift: vec![drift("prompt", 2.0), drift("output", 0.0)],
        forecast: vec![forecast("requests", 0.9), forecast("output_tokens", 0.5)],
        trouble: Vec::new(),
    };
    Advice { plan: "a \"plan\"".to_owned(), at_s: 0.0, pools: vec![pool] }
}

/// Calls a method; the body of its answer.
async fn call(app: &Router, method: &str, body: Vec<u8>) -> (Option<String>, String, Body) {
    let request = Request::post(format!("/externalscaler.ExternalScaler/{method}"))
        .header("content-type", "application/grpc")
        .body(Body::from(body))
        .unwrap();
    let (head, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    assert_eq!(
        (head.status.as_u16(), &head.headers["content-type"]),
        (200, &"application/grpc".parse().unwrap())
    );
    let text = |name| head.headers.get(name).map(|text| text.to_str().unwrap().to_owned());
    // gRPC escapes messages as addresses are; these are all that ours hold.
    let message = text("grpc-message").unwrap_or_default();
    let message = message.replace("%20", " ").replace("%60", "`");
    (text("grpc-status"), message, body)
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 0, u8::try_from(message.len()).unwrap()], message].concat()
}

/// The next message of an answer; none where it ends, and then well.
async fn next(body: &mut Body) -> Option<Vec<u8>> {
    let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?.unwrap();
    match frame.into_data() {
        Ok(data) => {
            assert_eq!(data[..5], framed(&data[5..])[..5]);
            Some(data[5..].to_vec())
        }
        Err(frame) => {
            assert_eq!(frame.into_trailers().unwrap()["grpc-status"], "0");
            None
        }
    }
}

async fn check(app: &Router, method: &str, asked: &[u8], expect: Result<&[u8], (&str, &str)>) {
    let (status, message, mut body) = call(app, method, framed(asked)).await;
    match expect {
        Ok(expect) => {
            assert_eq!(status, None, "{message}");
            assert_eq!(next(&mut body).await.unwrap(), expect);
        }
        Err(expect) => {
            assert_eq!((status.as_deref(), message.as_str()), (Some(expect.0), expect.1))
        }
    }
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test]
async fn keda_hears_how_many_replicas_are_advised() {
    let board = Board::default();
    let app = board_app(board.clone());
    let unseen = ("14", "nothing was seen of the fleet yet, so nothing is advised");
    check(&app, "IsActive", CHAT, Err(unseen)).await;
    board.post(advice(None));
    check(&app, "IsActive", CHAT, Err(unseen)).await;
    board.post(advice(Some(300)));
    for who in [CHAT, CHAT_BY_NAME] {
        check(&app, "IsActive", who, Ok(b"\x08\x01")).await;
        let spec =
            b"\n+\n\x1eplimsoll-desired-replicas-chat\x10\x01\x19\x00\x00\x00\x00\x00\x00\xf0?";
        check(&app, "GetMetricSpec", who, Ok(spec)).await;
    }
    let asked = b"\n\x1b\n\x02so\x12\x07serving\x1a\x0c\n\x04pool\x12\x04chat\x12\x04s0-x";
    let values = b"\n\x12\n\x04s0-x\x10\xac\x02\x19\x00\x00\x00\x00\x00\xc0r@";
    check(&app, "GetMetrics", asked, Ok(values)).await;
    board.post(advice(Some(0)));
    check(&app, "IsActive", CHAT, Ok(b"")).await;
}

#[tokio::test]
async fn what_keda_asks_wrongly_is_an_error_and_no_zero() {
    let board = Board::default();
    board.post(advice(Some(3)));
    let app = board_app(board);
    let other = "no pool is called `other`; set `pool` in the trigger's metadata to one of chat";
    check(&app, "IsActive", OTHER, Err(("3", other))).await;
    let scale = "`Scale` is not a method of KEDA's external scaler";
    check(&app, "Scale", CHAT, Err(("12", scale))).await;
    // A message that breaks off, at whichever byte.
    for length in 1..CHAT.len() {
        let (status, message, _) = call(&app, "IsActive", framed(&CHAT[..length])).await;
        assert!(status.is_some(), "{length}: {message}");
    }
    let whole = framed(CHAT);
    for length in 0..whole.len() {
        let (status, ..) = call(&app, "IsActive", whole[..length].to_vec()).await;
        assert_eq!(status.as_deref(), Some("13"), "{length}");
    }
    // Compressed, without a word on how.
    let compressed = [&[1], &whole[1..]].concat();
    assert_eq!(call(&app, "IsActive", compressed).await.0.as_deref(), Some("13"));
    // Umlauts travel escaped.
    let (_, message, _) = call(&app, "IsActive", framed("\n\u{2}ü".as_bytes())).await;
    assert!(message.starts_with("no pool is called `%C3%BC`;"), "{message}");
}

#[tokio::test]
async fn a_stream_says_only_what_changes() {
    let board = Board::default();
    let app = board_app(board.clone());
    let (status, _, mut body) = call(&app, "StreamIsActive", framed(CHAT)).await;
    assert_eq!(status, None);
    board.post(advice(Some(3)));
    assert_eq!(next(&mut body).await.unwrap(), b"\x08\x01");
    // The first of these says nothing new.
    board.post(advice(Some(4)));
    board.post(advice(Some(0)));
    assert_eq!(next(&mut body).await.unwrap(), b"");
    drop((app, board));
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test]
async fn a_monitor_reads_what_is_known_and_nothing_else() {
    let board = Board::default();
    let app = board_app(board.clone());
    let samples = async || {
        let text = get(&app, "/metrics").await.text;
        assert!(text.ends_with("# EOF\n"), "{text}");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        // A monitor does not care for their order.
        samples.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert!(samples().await.is_empty());
    board.post(advice(None));
    let unknown = [
        r#"plimsoll_plan{plan="a \"plan\""} 1"#,
        r#"plimsoll_replicas{pool="chat"} 2"#,
        r#"plimsoll_advice_age_seconds{pool="chat"} 1.5"#,
        // Where the median is what is planned for, there is one series and not two of one name.
        r#"plimsoll_forecast_tokens{pool="chat",resource="output_tokens",quantile="0.5"} 8.5"#,
        r#"plimsoll_forecast_requests{pool="chat",resource="requests",quantile="0.5"} 5.0"#,
        r#"plimsoll_forecast_requests{pool="chat",resource="requests",quantile="0.9"} 8.5"#,
        r#"plimsoll_drift_ratio{pool="chat",assumption="prompt"} 1.5"#,
    ];
    let unknown: BTreeSet<String> = unknown.map(str::to_owned).into();
    assert_eq!(samples().await, unknown);
    board.post(advice(Some(3)));
    let mut known = unknown;
    known.insert(r#"plimsoll_desired_replicas{pool="chat"} 3"#.to_owned());
    assert_eq!(samples().await, known);
}
