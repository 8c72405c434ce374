//! What can be asked, and what comes back, without a socket.

use crate::support::{LAUNCH, app, get, job_in_state, post, request, send};
use axum::body::Body;
use serde_json::json;

#[tokio::test]
async fn the_page_and_its_files_come_from_the_binary_alone() {
    let app = app();
    let page = get(&app, "/").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").starts_with("text/html"));
    let mut files: Vec<&str> = page.text.split("\"/assets/").skip(1).collect();
    files.iter_mut().for_each(|rest| *rest = rest.split('"').next().unwrap());
    assert!(files.contains(&"app.js") && files.contains(&"charts.js"), "{files:?}");
    for file in files {
        let reply = get(&app, &format!("/assets/{file}")).await;
        assert_eq!(reply.status, 200, "{file}");
        assert_ne!(reply.header("content-type"), "", "{file}");
    }
    for forbidden in ["http://", "https://", "<script>", " onclick", " style="] {
        assert!(!page.text.contains(forbidden), "the page has {forbidden}");
    }
    assert_eq!(get(&app, "/assets/charts.js").await.text, "'charts';");
    assert_eq!(get(&app, "/assets/charts.css").await.text, ".chart {}");
    get(&app, "/assets/other.js").await.problem(404);
}

#[tokio::test]
async fn modules_load_only_files_that_are_there() {
    let app = app();
    let mut seen = vec!["app.js".to_owned()];
    let mut next = 0;
    while let Some(file) = seen.get(next).cloned() {
        let script = get(&app, &format!("/assets/{file}")).await;
        assert_eq!(script.status, 200, "{file}");
        assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
        for part in script.text.split("from \"./").skip(1) {
            let name = part.split('"').next().unwrap().to_owned();
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        next += 1;
    }
    assert!(seen.len() > 5, "{seen:?}");
}

#[tokio::test]
async fn a_file_that_has_not_changed_is_not_sent_again() {
    let app = app();
    let first = get(&app, "/assets/app.css").await;
    let tag = first.header("etag").to_owned();
    assert_eq!(first.header("cache-control"), "no-cache");
    let mut again = request("GET", "/assets/app.css", Body::empty());
    again.headers_mut().insert("if-none-match", tag.parse().unwrap());
    let again = send(&app, again).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert_ne!(get(&app, "/assets/app.js").await.header("etag"), tag);
}

#[tokio::test]
async fn every_answer_tells_browsers_to_be_careful() {
    let app = app();
    for path in ["/", "/assets/app.js", "/api/v1/scenarios", "/nothing", "/healthz"] {
        let reply = get(&app, path).await;
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(reply.header("cross-origin-opener-policy"), "same-origin", "{path}");
    }
    assert_eq!(get(&app, "/api/v1/scenarios").await.header("cache-control"), "no-store");
}

#[tokio::test]
async fn scenarios_are_listed_and_opened_by_name() {
    let app = app();
    let list = get(&app, "/api/v1/scenarios").await.json();
    assert_eq!(list["schema"], "plimsoll/scenarios/v1");
    assert_eq!(list["version"], "0.0.0-fake");
    assert_eq!(list["scenarios"][0]["name"], "launch-week.toml");
    assert_eq!(list["scenarios"][2]["example"], false);
    let one = get(&app, "/api/v1/scenarios/launch-week.toml").await.json();
    assert_eq!(one["text"], LAUNCH);
    // A name with a folder is one part of the path.
    let other = get(&app, "/api/v1/scenarios/team%2Fours.toml").await.json();
    assert_eq!(other["name"], "team/ours.toml");
    get(&app, "/api/v1/scenarios/none.toml").await.problem(404);
    get(&app, "/api/v1/scenarios/..%2F..%2Fetc%2Fpasswd").await.problem(404);
    get(&app, "/api/v1/scenarios/%FF").await.problem(404);
}

#[tokio::test]
async fn a_check_finds_mistakes_and_is_an_answer() {
    let app = app();
    let fine = post(&app, "/api/v1/check", json!({ "text": LAUNCH })).await;
    assert_eq!(
        fine.json(),
        json!({ "schema": "plimsoll/check/v1", "ok": true, "diagnostics": [] })
    );
    let body = json!({ "name": "mine.toml", "text": "[study]\n  wrong = 1\n" });
    let wrong = post(&app, "/api/v1/check", body).await;
    assert_eq!(wrong.status, 200);
    let wrong = wrong.json();
    assert_eq!(wrong["ok"], false);
    assert_eq!(wrong["diagnostics"][0]["file"], "mine.toml");
    assert_eq!(wrong["diagnostics"][0]["line"], 2);
    assert_eq!(wrong["diagnostics"][0]["column"], 3);
}

#[tokio::test]
async fn a_what_if_hands_levers_and_basis_to_the_desk() {
    let app = app();
    let plain = post(&app, "/api/v1/what-if", json!({ "text": LAUNCH })).await.json();
    assert_eq!(plain["schema"], "plimsoll/what-if/v1");
    assert_eq!(plain["basis"], "approximate");
    assert_eq!(plain["levers"]["demand"], 1.0);
    let body =
        json!({ "text": LAUNCH, "levers": { "demand": 1.5, "lost": 2 }, "basis": "simulated" });
    let moved = post(&app, "/api/v1/what-if", body).await.json();
    assert_eq!(moved["basis"], "simulated");
    assert_eq!(moved["levers"]["demand"], 1.5);
    assert_eq!(moved["levers"]["lost"], 2);
    assert_eq!(moved["levers"]["prompt"], 1.0);
}

#[tokio::test]
async fn what_is_asked_wrongly_is_said_in_words() {
    let app = app();
    let what_if = "/api/v1/what-if";
    let far = json!({ "text": LAUNCH, "levers": { "demand": 21, "cache_hit": 2 } });
    let far = post(&app, what_if, far).await;
    let first = far.problem(400);
    assert_eq!(first["message"], "`levers.demand` must be a number from 0.05 to 20, and is 21");
    assert_eq!(far.json()["diagnostics"].as_array().unwrap().len(), 2);

    let broken = send(&app, request("POST", what_if, "{\n  \"text\": }")).await.problem(400);
    assert_eq!((broken["code"].as_str(), broken["line"].as_u64()), (Some("json"), Some(2)));
    post(&app, what_if, json!({ "levers": {} })).await.problem(400);
    post(&app, what_if, json!({ "text": "", "colour": 1 })).await.problem(400);
    post(&app, what_if, json!({ "text": "", "name": "a\nb" })).await.problem(400);
    post(&app, "/api/v1/jobs", json!({ "study": "poetry", "text": "" })).await.problem(400);

    let wrong = post(&app, what_if, json!({ "text": "wrong = 1" })).await.problem(422);
    assert_eq!(wrong["message"], "there is no key `wrong`");
    assert_eq!(wrong["line"], 1);

    let mut form = request("POST", what_if, "text=1");
    form.headers_mut().insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
    send(&app, form).await.problem(415);
    let method = send(&app, request("PUT", what_if, "")).await;
    method.problem(405);
    assert_eq!(method.header("allow"), "POST");
    get(&app, "/api/v2/what-if").await.problem(404);
}

#[tokio::test]
async fn a_job_runs_and_its_document_is_fetched() {
    let app = app();
    for study in ["fit", "curve", "plan", "stress", "cost", "review"] {
        let job = job_in_state(&app, study, LAUNCH, "done").await;
        assert_eq!(job["schema"], "plimsoll/job/v1");
        assert_eq!((job["study"].as_str(), job["done"].as_f64()), (Some(study), Some(1.0)));
        assert!(job["seconds"].as_f64().unwrap() >= 0.0);
        let result =
            get(&app, &format!("/api/v1/jobs/{}/result", job["id"].as_str().unwrap())).await;
        assert_eq!(result.json()["schema"], format!("plimsoll/{study}/v1"));
    }
    get(&app, "/api/v1/jobs/999").await.problem(404);
    get(&app, "/api/v1/jobs/x/result").await.problem(404);
}

#[tokio::test]
async fn the_review_is_a_page_to_save() {
    let app = app();
    let asked =
        json!({ "study": "review_html", "name": "examples/launch week.toml", "text": LAUNCH });
    let job = post(&app, "/api/v1/jobs", asked).await;
    let place = job.header("location").to_owned();
    crate::support::until("done", async || get(&app, &place).await.json()["state"] == "done").await;
    let page = get(&app, &format!("{place}/result")).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(
        page.header("content-disposition"),
        "attachment; filename=\"launch-week-review.html\""
    );
    assert!(page.text.starts_with("<!doctype html>"));
}

#[tokio::test]
async fn a_job_of_a_wrong_scenario_fails_with_what_is_wrong() {
    let app = app();
    let job = job_in_state(&app, "plan", "wrong = 1", "failed").await;
    assert_eq!(job["diagnostics"][0]["message"], "there is no key `wrong`");
    get(&app, &format!("/api/v1/jobs/{}/result", job["id"].as_str().unwrap())).await.problem(422);
}

#[tokio::test]
async fn health_readiness_and_metrics() {
    let app = app();
    assert_eq!(get(&app, "/healthz").await.text, "ok\n");
    assert_eq!(get(&app, "/readyz").await.text, "ready\n");
    post(&app, "/api/v1/what-if", json!({ "text": LAUNCH })).await;
    post(&app, "/api/v1/what-if", json!({ "text": "wrong" })).await;
    get(&app, "/api/v1/jobs/7").await;
    get(&app, "/no/such/page").await;
    let metrics = get(&app, "/metrics").await;
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    for line in [
        r#"plimsoll_requests_total{method="POST",route="/api/v1/what-if",status="200"} 1"#,
        r#"plimsoll_requests_total{method="POST",route="/api/v1/what-if",status="422"} 1"#,
        // The pattern and not the path, so that nobody makes labels up.
        r#"plimsoll_requests_total{method="GET",route="/api/v1/jobs/{id}",status="404"} 1"#,
        r#"plimsoll_requests_total{method="GET",route="none",status="404"} 1"#,
        r#"plimsoll_request_duration_seconds_count{route="/api/v1/what-if"} 2"#,
        r#"plimsoll_what_ifs_total{basis="approximate"} 2"#,
        "plimsoll_jobs_running 0",
        "plimsoll_jobs_waiting 0",
        "plimsoll_shed_total 0",
        "# EOF",
    ] {
        assert!(metrics.text.lines().any(|l| l == line), "{line} is missing in\n{}", metrics.text);
    }
}

#[tokio::test]
async fn the_description_lists_every_route() {
    let description = get(&app(), "/api/v1/openapi.json").await.json();
    assert_eq!(description, plimsoll_web::openapi());
    let mut routes: Vec<String> = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            routes.push(format!("{method} {path}"));
        }
    }
    routes.sort_unstable();
    assert_eq!(
        routes,
        [
            "delete /api/v1/jobs/{id}",
            "get /api/v1/jobs/{id}",
            "get /api/v1/jobs/{id}/result",
            "get /api/v1/openapi.json",
            "get /api/v1/scenarios",
            "get /api/v1/scenarios/{name}",
            "get /healthz",
            "get /metrics",
            "get /readyz",
            "post /api/v1/check",
            "post /api/v1/jobs",
            "post /api/v1/profile",
            "post /api/v1/what-if",
        ]
    );
    // What is described is served, and on its paths nothing else is.
    let app = app();
    for (path, item) in description["paths"].as_object().unwrap() {
        let path = path.replace(['{', '}'], "");
        let described: Vec<String> =
            item.as_object().unwrap().keys().map(|m| m.to_uppercase()).collect();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let reply = send(&app, request(method, &path, Body::empty())).await;
            if described.iter().any(|known| known == method) {
                assert_ne!(reply.status, 405, "{method} {path}");
                assert!(!reply.text.contains("no such page"), "{method} {path}: {}", reply.text);
            } else {
                assert_eq!(reply.status, 405, "{method} {path}");
                let mut allowed: Vec<&str> = reply.header("allow").split(',').collect();
                allowed.retain(|method| *method != "HEAD");
                allowed.sort_unstable();
                let mut described = described.clone();
                described.sort_unstable();
                assert_eq!(allowed, described, "{path}");
            }
        }
    }
    let schemas = description["components"]["schemas"].as_object().unwrap();
    for schema in ["Levers", "Basis", "Problem", "JobDocument", "ErrorDocument", "CheckDocument"] {
        assert!(schemas.contains_key(schema), "{schema} is not described");
    }
    // Everything has words, and nothing is referred to that is not there.
    for (name, schema) in schemas {
        assert!(schema["description"].is_string(), "{name}");
        let fields = schema["properties"].as_object().into_iter().flatten();
        for (field, schema) in fields {
            assert!(schema["description"].is_string(), "{name}.{field}");
        }
    }
    for part in description.to_string().split("\"#/components/schemas/").skip(1) {
        assert!(schemas.contains_key(part.split('"').next().unwrap()), "{part}");
    }
    let levers = &description["components"]["schemas"]["Levers"]["properties"];
    assert_eq!(
        (&levers["lost"]["maximum"], &levers["demand"]["default"]),
        (&json!(64.0), &json!(1.0))
    );
}
