//! `plimsoll serve`, asked over HTTP as scripts do.

use crate::common;
use std::path::Path;
use std::process::Command;

use crate::common::{Scratch, number, text};
use crate::server::{Server, whole};
use serde_json::{Value, json};
use ureq::http::{Method, StatusCode};

const BOT: &str = "support-bot.toml";

/// What a command prints with `--json` for a file of a directory.
fn printed(directory: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .arg("--json")
        .current_dir(directory)
        .output()
        .expect("the program starts");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{arguments:?}: {e}: {}", text(&output.stderr)))
}

fn code(failure: &Value) -> &str {
    failure["diagnostics"][0]["code"].as_str().unwrap_or("none")
}

/// A log of a request each second.
fn log() -> String {
    let mut log = "ts_arrival,prompt_tokens,output_tokens\n".to_owned();
    for second in 0_u32..120 {
        let at = 1_700_000_000 + second;
        log += &format!("{at}000000000,{},{}\n", 100 + second, 20 + second % 7);
    }
    log
}

#[test]
fn examples_are_listed_and_opened_and_so_are_those_of_the_workspace() {
    let scratch = Scratch::new("serve-list");
    let own = "[study]\nname = \"Our own\"\n\n[[class]]\nname = \"chat\"\n";
    scratch.file("own.toml", own);
    scratch.file("not-a-scenario.toml", "[package]\nname = \"x\"\n");
    let server = Server::start(&scratch.0);
    let (status, list) = server.get("/api/v1/scenarios");
    assert_eq!(status, 200);
    let scenarios = list["scenarios"].as_array().expect("a list");
    let names = |example: bool| -> Vec<&str> {
        let some = scenarios.iter().filter(|each| each["example"] == example);
        some.map(|each| each["name"].as_str().expect("a name")).collect()
    };
    // All that lie in `examples/`, so that none is forgotten.
    let mut found = names(true);
    found.sort_unstable();
    let mut lie: Vec<String> = std::fs::read_dir(common::repository().join("examples"))
        .expect("examples")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".toml"))
        .collect();
    lie.sort_unstable();
    assert_eq!(found, lie);
    assert_eq!(names(false), ["own.toml"]);
    for name in found {
        let lies = common::repository().join("examples").join(name);
        let lies = std::fs::read_to_string(lies).expect("readable");
        assert_eq!(server.scenario(name), lies, "{name}");
    }
    assert_eq!(server.scenario("own.toml"), own);
    for away in ["none.toml", "..%2Fown.toml", "%2Fetc%2Fpasswd"] {
        let (status, failure) = server.get(&format!("/api/v1/scenarios/{away}"));
        assert_eq!((status, code(&failure)), (StatusCode::NOT_FOUND, "not-found"), "{away}");
    }
}

#[test]
fn a_mistake_is_where_check_says_it_is() {
    let scratch = Scratch::new("serve-check");
    let server = Server::start(&scratch.0);
    let fine = server.scenario(BOT);
    let (status, checked) = server.post("/api/v1/check", &json!({ "text": fine }));
    assert_eq!((status, &checked["ok"]), (StatusCode::OK, &json!(true)), "{checked}");

    let wrong = fine.replace("0.4 req/s", "0.4 parsecs").replace("model =", "modle =");
    assert_ne!(wrong, fine);
    scratch.file("wrong.toml", &wrong);
    let asked = json!({ "name": "wrong.toml", "text": wrong });
    let (status, checked) = server.post("/api/v1/check", &asked);
    assert_eq!((status, &checked["ok"]), (StatusCode::OK, &json!(false)), "{checked}");
    let said = printed(&scratch.0, &["check", "wrong.toml"]);
    assert_eq!(checked["diagnostics"], said["diagnostics"]);
    let line = 1 + fine.lines().position(|line| line.contains("0.4 req/s")).expect("a rate");
    let at_rate = |each: &Value| each["line"] == line && each["code"] == "bad-quantity";
    let all = checked["diagnostics"].as_array().expect("diagnostics");
    assert!(all.iter().any(at_rate), "{checked}");

    // The same scenario cannot be studied, for the same reasons.
    let (status, failure) = server.post("/api/v1/what-if", &asked);
    assert_eq!(status, 422, "{failure}");
    assert_eq!(failure["diagnostics"], said["diagnostics"]);
    let (status, failure) = server.job("plan", "wrong.toml", &wrong);
    assert_eq!(status, 422, "{failure}");
    assert_eq!(failure["diagnostics"], said["diagnostics"]);
}

#[test]
fn levers_move_the_load_line() {
    let scratch = Scratch::new("serve-levers");
    let server = Server::start(&scratch.0);
    let text = server.scenario(BOT);
    let ask = |basis: &str, levers: Value| {
        let asked = json!({ "name": BOT, "text": text, "basis": basis, "levers": levers });
        let document = server.what_if(&asked);
        assert_eq!(document["schema"], "plimsoll/what-if/v1");
        assert_eq!(document["basis"], basis);
        document
    };
    for basis in ["approximate", "simulated"] {
        let today = ask(basis, json!({}));
        let twice = ask(basis, json!({ "demand": 2 }));
        let load = |document: &Value| number(&document["line"]["load"]);
        let of = load(&twice) / load(&today);
        // What is simulated is found between points of a grid.
        let near = if basis == "approximate" { 1e-9 } else { 0.05 };
        assert!((of - 0.5).abs() < near, "{basis}: {of}");
        assert_eq!(twice["levers"]["demand"], 2.0);
        for (one, two) in today["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .zip(twice["rows"].as_array().expect("rows"))
        {
            assert_eq!(one["name"], two["name"]);
            let of = number(&two["demand"]) / number(&one["demand"]);
            assert!((of - 2.0).abs() < 1e-9, "{basis}, {}: {of}", one["name"]);
        }
    }
    // Longer answers leave less room, and a fleet is never said to carry what breaks it.
    let load = |document: &Value| number(&document["line"]["load"]);
    let today = load(&ask("approximate", json!({})));
    let longer = ask("approximate", json!({ "output": 2 }));
    assert_eq!(longer["line"]["beyond"], false, "{}", longer["says"]);
    assert!(load(&longer) < 0.9 * today, "{longer}");
    // Nobody knows what a good task costs where none is good.
    let none = ask("approximate", json!({ "lost": 1 }));
    assert_eq!(none["pools"][0]["replicas"], 0, "{none}");
    assert!(none["cost"]["usd_per_good_task"].is_null(), "{none}");

    let wrong = json!({ "text": text, "levers": { "demand": 50, "tide": 1 } });
    let (status, failure) = server.post("/api/v1/what-if", &wrong);
    assert_eq!(status, 400);
    assert_eq!(failure["diagnostics"].as_array().map(Vec::len), Some(2), "{failure}");
}

#[test]
fn studies_answer_as_the_commands_do() {
    let scratch = Scratch::new("serve-studies");
    let server = Server::start(&scratch.0);
    let text = server.scenario(BOT);
    scratch.file(BOT, &text);
    for study in ["fit", "plan", "cost"] {
        let (status, document) = server.job(study, BOT, &text);
        assert_eq!(status, 200, "{document}");
        assert_eq!(document, printed(&scratch.0, &[study, BOT]), "{study}");
    }
}

#[test]
fn a_review_is_worked_out_once_and_then_downloaded() {
    let scratch = Scratch::new("serve-review");
    let server = Server::start(&scratch.0);
    let text = server.scenario(BOT);
    scratch.file(BOT, &text);
    let id = server.start_job("review", BOT, &text);
    let review = server.ended(&id);
    assert_eq!(review["state"], "done", "{review}");
    let (_, document) = server.get(&format!("/api/v1/jobs/{id}/result"));
    assert_eq!(document, printed(&scratch.0, &["review", BOT]));

    let id = server.start_job("review_html", BOT, &text);
    let page = server.ended(&id);
    assert_eq!(page["state"], "done", "{page}");
    let (first, second) = (number(&review["seconds"]), number(&page["seconds"]));
    assert!(second < first / 2.0, "{second} s after {first} s");
    let answer = server.send(Method::GET, &format!("/api/v1/jobs/{id}/result"), None);
    let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("content-disposition"), "attachment; filename=\"support-bot-review.html\"");
    let html = whole(answer);
    let says = document["verdict"]["says"].as_str().expect("a verdict");
    assert!(html.contains(says), "{says}");
}

#[test]
fn a_job_that_nobody_wants_is_stopped() {
    let scratch = Scratch::new("serve-cancel");
    let server = Server::start(&scratch.0);
    let text = server.scenario("launch-week.toml");
    let id = server.start_job("review", "launch-week.toml", &text);
    let path = format!("/api/v1/jobs/{id}");
    let answer = server.send(Method::DELETE, &path, None);
    assert_eq!(answer.status(), 200);
    assert_eq!(server.ended(&id)["state"], "cancelled");
    let (status, failure) = server.get(&format!("{path}/result"));
    assert!(status.is_client_error(), "{status}: {failure}");
    // Its seat is free again: both seats, in fact, or these two would wait for it.
    let bot = server.scenario(BOT);
    for _ in 0..2 {
        let (status, fit) = server.job("fit", BOT, &bot);
        assert_eq!(status, 200, "{fit}");
    }
    // Who asks about what was never started learns nothing.
    let (status, _) = server.get("/api/v1/jobs/4711");
    assert_eq!(status, 404);
}

#[test]
fn a_scenario_names_no_file_outside_the_workspace() {
    let outside = Scratch::new("serve-outside");
    let secret = outside.file("secret.json", "{}");
    let scratch = Scratch::new("serve-inside");
    std::os::unix::fs::symlink(&secret, scratch.0.join("link.json")).expect("a link");
    let server = Server::start(&scratch.0);
    let text = server.scenario(BOT);
    let climbs = format!(
        "../{}/secret.json",
        outside.0.file_name().and_then(|name| name.to_str()).expect("a name")
    );
    for file in [secret.as_str(), climbs.as_str(), "link.json", "a/../../x.json"] {
        let pool = |key: &str| format!("{text}{key} = \"{file}\"\n");
        let study =
            |key: &str| text.replace("[study]\n", &format!("[study]\n{key} = \"{file}\"\n"));
        let all = [pool("hf_config"), pool("calibration"), study("ledger"), study("catalog")];
        for (i, scenario) in all.iter().enumerate() {
            let asked = json!({ "text": scenario });
            let (status, checked) = server.post("/api/v1/check", &asked);
            assert_eq!(
                (status, code(&checked)),
                (StatusCode::OK, "outside-workspace"),
                "{file} {i}"
            );
            let (status, failure) = server.post("/api/v1/what-if", &asked);
            assert_eq!(status, 422, "{file} {i}");
            assert_eq!(code(&failure), "outside-workspace", "{file} {i}");
            let (status, failure) = server.job("plan", BOT, scenario);
            assert_eq!(status, 422, "{file} {i}");
            assert_eq!(code(&failure), "outside-workspace", "{file} {i}");
        }
    }
}

/// The name of a scenario is for messages. It says nothing of where its files lie: that is the workspace, wherever the server was started.
#[test]
fn the_name_of_a_scenario_leads_nowhere() {
    let outside = Scratch::new("serve-name-outside");
    outside.file("calibration.json", "outside");
    let scratch = Scratch::new("serve-name-inside");
    scratch.file("calibration.json", "inside");
    let server = Server::start(&scratch.0);
    let text = server.scenario(BOT) + "calibration = \"calibration.json\"\n";
    let climbs = format!(
        "../{}/x.toml",
        outside.0.file_name().and_then(|name| name.to_str()).expect("a name")
    );
    for name in ["x.toml", &outside.path("x.toml"), &climbs, "deep/x.toml"] {
        let asked = json!({ "name": name, "text": text });
        let (status, failure) = server.post("/api/v1/what-if", &asked);
        assert_eq!((status, code(&failure)), (StatusCode::UNPROCESSABLE_ENTITY, "bad-calibration"));
        let read = failure["diagnostics"][0]["file"].as_str().expect("a file");
        assert!(!read.contains("serve-name-outside"), "{name} leads to {read}");
        let (_, failure) = server.job("cost", name, &text);
        assert_eq!(code(&failure), "bad-calibration", "{name}: {failure}");
        let read = failure["diagnostics"][0]["file"].as_str().expect("a file");
        assert!(!read.contains("serve-name-outside"), "{name} leads to {read}");
    }
}

#[test]
fn a_log_is_profiled_and_forgotten() {
    let scratch = Scratch::new("serve-profile");
    let server = Server::start(&scratch.0);
    let json_lines = log().lines().skip(1).fold(String::new(), |all, line| {
        let fields: Vec<&str> = line.split(',').collect();
        let [at, prompt, output] = fields[..] else { panic!("{line}") };
        all + &format!(
            "{{\"ts_arrival\":{at},\"prompt_tokens\":{prompt},\"output_tokens\":{output}}}\n"
        )
    });
    for (name, log) in [("log.csv", log()), ("log.jsonl", json_lines)] {
        let lies = scratch.file(name, &log);
        let url = format!("{}/api/v1/profile?name={name}", server.address);
        let answer = server.client.post(url).send(log).expect("an answer");
        assert_eq!(answer.status(), 202);
        let job: Value = serde_json::from_str(&whole(answer)).expect("a document");
        let id = job["id"].as_str().expect("an id");
        let job = server.ended(id);
        assert_eq!(job["state"], "done", "{job}");
        let (_, mut profile) = server.get(&format!("/api/v1/jobs/{id}/result"));
        assert_eq!(profile["classes"][0]["rows"], 120);
        // Where it lay for a moment is nobody's business.
        assert_eq!(profile["source"], name);
        let mut own = printed(&scratch.0, &["profile", &lies]);
        for document in [&mut profile, &mut own] {
            document.as_object_mut().expect("a document").remove("source");
        }
        assert_eq!(profile["classes"], own["classes"]);
    }
    let url = format!("{}/api/v1/profile?name=noise.csv", server.address);
    let answer = server.client.post(url).send("no,log\n1,2\n").expect("an answer");
    let job: Value = serde_json::from_str(&whole(answer)).expect("a document");
    let job = server.ended(job["id"].as_str().expect("an id"));
    assert_eq!(job["state"], "failed", "{job}");
    assert!(!job["diagnostics"].to_string().contains("plimsoll-log-"), "{job}");
}

#[test]
fn monitors_and_scripts_find_what_they_look_for() {
    let scratch = Scratch::new("serve-monitor");
    let server = Server::start(&scratch.0);
    assert_eq!(server.text("/healthz"), "ok\n");
    assert_eq!(server.text("/readyz"), "ready\n");
    let text = server.scenario(BOT);
    server.post("/api/v1/check", &json!({ "text": text }));
    let metrics = server.text("/metrics");
    let counted =
        "plimsoll_requests_total{method=\"POST\",route=\"/api/v1/check\",status=\"200\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let (_, api) = server.get("/api/v1/openapi.json");
    for path in ["/api/v1/check", "/api/v1/what-if", "/api/v1/jobs", "/api/v1/profile"] {
        assert!(api["paths"][path]["post"].is_object(), "{path}");
    }
    let page = server.send(Method::GET, "/", None);
    let policy = page.headers()["content-security-policy"].to_str().expect("text").to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let page = whole(page);
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing from elsewhere");
    // Somebody else's name for this machine is not ours.
    let foreign = server.client.get(&server.address).header("host", "evil.example").call();
    assert_eq!(foreign.expect("an answer").status(), 421);
}

#[test]
fn it_ends_when_it_is_told_to_and_leaves_no_work_behind() {
    let scratch = Scratch::new("serve-end");
    let server = Server::start(&scratch.0);
    let text = server.scenario("launch-week.toml");
    server.start_job("review", "launch-week.toml", &text);
    let id = server.id();
    assert_eq!(server.end(), Some(0));
    assert!(!Path::new(&format!("/proc/{id}")).exists());
}

#[test]
fn what_others_reach_needs_a_token() {
    let serve = |token: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["serve", "--listen", "0.0.0.0:0", "--json"]).env_remove("PLIMSOLL_TOKEN");
        if let Some(token) = token {
            command.env("PLIMSOLL_TOKEN", token);
        }
        let output = command.current_dir(common::repository()).output().expect("it starts");
        let failure: Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_ne!(output.status.code(), Some(0));
        common::diagnostic(&failure)
    };
    let (message, help) = serve(None);
    assert!(
        message.ends_with("can be reached from other machines, so a token is needed"),
        "{message}"
    );
    assert!(help.contains("PLIMSOLL_TOKEN"), "{help}");
    let (message, _) = serve(Some("short"));
    assert!(message.contains("has 5 characters, which can be guessed"), "{message}");
}
