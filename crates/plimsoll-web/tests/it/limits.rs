//! What is bounded: sizes, lines, times, and what a mistake of ours may cost.

use std::time::Duration;

use crate::support::{LAUNCH, Reply, desk_and_app, get, job_in_state, post, request, send, until};
use axum::Router;
use axum::body::Body;
use plimsoll_web::Limits;
use serde_json::json;
use tokio::time::advance;

const WHAT_IF: &str = "/api/v1/what-if";
/// What a clock goes on by beyond a limit: the grain of its timers.
const A_MOMENT: Duration = Duration::from_millis(1);

fn one_at_a_time() -> Limits {
    Limits { what_ifs: 1, what_ifs_waiting: 1, jobs: 1, jobs_waiting: 1, ..Limits::default() }
}

fn ask(app: &Router, text: &str) -> tokio::task::JoinHandle<Reply> {
    let (app, body) = (app.clone(), json!({ "text": text }));
    tokio::spawn(async move { post(&app, WHAT_IF, body).await })
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let (_, app) = desk_and_app(Limits { body_bytes: 1000, ..Limits::default() });
    let text = "#".repeat(1001);
    let large = post(&app, WHAT_IF, json!({ "text": text })).await.problem(413);
    assert_eq!(large["message"], "what was sent is larger than 1000 bytes");
    assert_eq!(post(&app, WHAT_IF, json!({ "text": "#".repeat(900) })).await.status, 200);
}

#[tokio::test]
async fn who_comes_to_a_full_line_is_turned_away_at_once() {
    let (desk, app) = desk_and_app(one_at_a_time());
    let served = ask(&app, "slow");
    desk.at_work(1).await;
    let waits = ask(&app, LAUNCH);
    until("full", async || get(&app, "/readyz").await.status == 503).await;
    let shed = post(&app, WHAT_IF, json!({ "text": LAUNCH })).await;
    assert_eq!(shed.problem(429)["code"], "busy");
    assert_eq!(shed.header("retry-after"), "1");
    // Checks have a line of their own: typing goes on while a simulation runs.
    assert_eq!(post(&app, "/api/v1/check", json!({ "text": LAUNCH })).await.status, 200);
    served.abort();
    assert_eq!(waits.await.unwrap().status, 200);
    assert_eq!(get(&app, "/readyz").await.status, 200);
    let metrics = get(&app, "/metrics").await.text;
    assert!(metrics.contains("plimsoll_shed_total 1\n"), "{metrics}");
}

#[tokio::test]
async fn a_client_that_goes_away_stops_its_what_if() {
    let (desk, app) = desk_and_app(one_at_a_time());
    let client = ask(&app, "slow");
    desk.at_work(1).await;
    assert!(!desk.was_stopped());
    client.abort();
    desk.at_work(0).await;
    assert!(desk.was_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_what_if_has_a_time_limit() {
    let (desk, app) = desk_and_app(one_at_a_time());
    let asked = ask(&app, "slow");
    desk.at_work(1).await;
    advance(one_at_a_time().what_if_time - A_MOMENT).await;
    assert!(!asked.is_finished() && !desk.was_stopped());
    advance(2 * A_MOMENT).await;
    let late = asked.await.unwrap().problem(503);
    assert_eq!(late["code"], "time-was-up");
    assert_eq!(late["message"], "no answer within 10 s");
    desk.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_stop_keeps_its_seat() {
    let limits = Limits { what_ifs_waiting: 0, ..one_at_a_time() };
    let (desk, app) = desk_and_app(limits.clone());
    let asked = ask(&app, "deaf");
    desk.at_work(1).await;
    advance(limits.what_if_time + A_MOMENT).await;
    asked.await.unwrap().problem(503);
    assert_eq!(desk.calls(), 1);
    post(&app, WHAT_IF, json!({ "text": LAUNCH })).await.problem(429);
    desk.release();
    until("served", async || post(&app, WHAT_IF, json!({ "text": LAUNCH })).await.status == 200)
        .await;
}

#[tokio::test]
async fn a_panic_is_our_bug_and_the_server_lives() {
    let (_, app) = desk_and_app(one_at_a_time());
    for _ in 0..3 {
        let reply = post(&app, WHAT_IF, json!({ "text": "panic" })).await;
        assert_eq!(reply.problem(500)["message"], "this is a bug of ours");
        assert!(!reply.text.contains("secret"), "{}", reply.text);
        post(&app, "/api/v1/check", json!({ "text": "panic" })).await.problem(500);
    }
    let job = job_in_state(&app, "plan", "panic", "failed").await;
    assert_eq!(job["diagnostics"][0]["code"], "internal-bug");
    assert!(!job.to_string().contains("secret"));
    assert_eq!(post(&app, WHAT_IF, json!({ "text": LAUNCH })).await.status, 200);
    job_in_state(&app, "plan", LAUNCH, "done").await;
}

#[tokio::test]
async fn jobs_wait_in_a_short_line_and_can_be_cancelled() {
    let (desk, app) = desk_and_app(one_at_a_time());
    let running = job_in_state(&app, "review", "slow", "running").await;
    let waiting = job_in_state(&app, "review", LAUNCH, "waiting").await;
    let shed = post(&app, "/api/v1/jobs", json!({ "study": "plan", "text": LAUNCH })).await;
    shed.problem(429);
    assert_eq!(shed.header("retry-after"), "5");
    let metrics = get(&app, "/metrics").await.text;
    assert!(metrics.contains("jobs_running 1\n") && metrics.contains("jobs_waiting 1\n"));

    let place = |job: &serde_json::Value| format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
    let early = get(&app, &format!("{}/result", place(&running))).await;
    early.problem(409);
    assert_eq!(early.header("retry-after"), "1");
    until("on its way", async || {
        let done = get(&app, &place(&running)).await.json()["done"].as_f64().unwrap();
        done > 0.0 && done < 1.0
    })
    .await;
    let cancelled = send(&app, request("DELETE", &place(&running), Body::empty())).await.json();
    assert_eq!(cancelled["state"], "cancelled");
    until("done", async || get(&app, &place(&waiting)).await.json()["state"] == "done").await;
    assert!(desk.was_stopped());
    get(&app, &format!("{}/result", place(&running))).await.problem(409);
    // What has ended stays as it is.
    let still = send(&app, request("DELETE", &place(&waiting), Body::empty())).await.json();
    assert_eq!(still["state"], "done");
}

#[tokio::test(start_paused = true)]
async fn a_job_has_a_time_limit() {
    let (desk, app) = desk_and_app(Limits::default());
    let job = job_in_state(&app, "plan", "slow", "running").await;
    desk.at_work(1).await;
    advance(Limits::default().job_time + A_MOMENT).await;
    desk.stopped().await;
    let place = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
    until("failed", async || get(&app, &place).await.json()["state"] == "failed").await;
    let job = get(&app, &place).await.json();
    assert_eq!(job["diagnostics"][0]["message"], "time was up: a job has 120 s");
    get(&app, &format!("/api/v1/jobs/{}/result", job["id"].as_str().unwrap())).await.problem(503);
}

#[tokio::test(start_paused = true)]
async fn only_the_latest_results_are_kept() {
    let (_, app) = desk_and_app(Limits { kept: 2, ..Limits::default() });
    let mut ids = Vec::new();
    for _ in 0..3 {
        let job = job_in_state(&app, "plan", LAUNCH, "done").await;
        ids.push(job["id"].as_str().unwrap().to_owned());
    }
    get(&app, &format!("/api/v1/jobs/{}", ids[0])).await.problem(404);
    for id in &ids[1..] {
        assert_eq!(get(&app, &format!("/api/v1/jobs/{id}/result")).await.status, 200);
    }
    // For as long as is said.
    advance(Limits::default().kept_time).await;
    assert_eq!(get(&app, &format!("/api/v1/jobs/{}", ids[2])).await.status, 200);
    advance(A_MOMENT).await;
    get(&app, &format!("/api/v1/jobs/{}", ids[2])).await.problem(404);
    let (_, app) = desk_and_app(Limits { kept_bytes: 10, ..Limits::default() });
    let job = job_in_state(&app, "plan", LAUNCH, "failed").await;
    assert_eq!(job["diagnostics"][0]["code"], "too-large");
}

#[tokio::test]
async fn when_the_app_goes_its_jobs_stop() {
    let (desk, app) = desk_and_app(one_at_a_time());
    job_in_state(&app, "plan", "slow", "running").await;
    drop(app);
    desk.stopped().await;
}

#[tokio::test]
async fn a_log_is_profiled_from_a_file_that_is_then_gone() {
    let (desk, app) = desk_and_app(Limits::default());
    let log = "time,prompt,output\n0,10,20\n".repeat(1000);
    let sent = request("POST", "/api/v1/profile?name=day.csv.gz", log.clone());
    let job = send(&app, sent).await;
    assert_eq!(job.status, 202, "{}", job.text);
    assert_eq!(job.json()["study"], "profile");
    let place = job.header("location").to_owned();
    until("done", async || get(&app, &place).await.json()["state"] == "done").await;
    let profile = get(&app, &format!("{place}/result")).await.json();
    assert_eq!(profile["source"], "day.csv.gz");
    let (path, text) = desk.log.lock().unwrap().take().unwrap();
    assert_eq!(text, log);
    assert!(path.to_string_lossy().ends_with(".csv.gz"), "{}", path.display());
    until("deleted", async || !path.exists()).await;
    send(&app, request("POST", "/api/v1/profile?name=day.csv", "")).await.problem(400);
    send(&app, request("POST", "/api/v1/profile?name=%00", "x")).await.problem(400);
}
