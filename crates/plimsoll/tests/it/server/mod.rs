//! Running `plimsoll serve` and asking it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

/// The longest that anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A server on a port of its own, ended with the test.
pub struct Server {
    child: Child,
    said: Arc<Mutex<String>>,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
    pub client: Client,
}

impl Server {
    /// Starts it for a workspace, in a directory that is not the workspace, so that one is never taken for the other.
    pub fn start(workspace: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["serve", "--listen", "127.0.0.1:0", "--workspace"])
            .arg(workspace)
            .current_dir(std::env::temp_dir())
            .env("NO_COLOR", "1")
            .env_remove("PLIMSOLL_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let said = Arc::new(Mutex::new(String::new()));
        let (told, hears) = mpsc::channel();
        let kept = Arc::clone(&said);
        // It is read to its end: a server whose pipe is full would stand still.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("serving at ") {
                    let _ = told.send(rest.split_whitespace().next().unwrap_or("").to_owned());
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let Ok(address) = hears.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            panic!("the server does not say where it is: {}", said.lock().expect("whole"));
        };
        let address = address.trim_end_matches('/').to_owned();
        Self { child, said, address, client: Client::new() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks it to end, and waits; its exit code.
    pub fn end(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill is there");
        assert!(sent.success(), "{sent}");
        self.child.wait().expect("it ended").code()
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Response {
        let mut request = self.client.request(method, format!("{}{path}", self.address));
        if let Some(body) = body {
            request = request.json(body);
        }
        request.timeout(PATIENCE).send().await.unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        document(self.send(Method::GET, path, None).await).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        document(self.send(Method::POST, path, Some(body)).await).await
    }

    /// The text of a page or of counters.
    pub async fn text(&self, path: &str) -> String {
        let response = self.send(Method::GET, path, None).await;
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.expect("text")
    }

    /// The text of a scenario of its list.
    pub async fn scenario(&self, name: &str) -> String {
        let (status, document) = self.get(&format!("/api/v1/scenarios/{name}")).await;
        assert_eq!(status, 200, "{document}");
        document["text"].as_str().expect("a text").to_owned()
    }

    /// Starts a study; its id.
    pub async fn start_job(&self, study: &str, name: &str, text: &str) -> String {
        let asked = json!({ "study": study, "name": name, "text": text });
        let (status, job) = self.post("/api/v1/jobs", &asked).await;
        assert_eq!(status, 202, "{job}");
        job["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until a job has ended; how it stands then.
    pub async fn ended(&self, id: &str) -> Value {
        let looks = async {
            loop {
                let (status, job) = self.get(&format!("/api/v1/jobs/{id}")).await;
                assert_eq!(status, 200, "{job}");
                if job["state"] != "waiting" && job["state"] != "running" {
                    return job;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looks).await.expect("a job ends")
    }

    /// A study from its start to its result.
    pub async fn job(&self, study: &str, name: &str, text: &str) -> (StatusCode, Value) {
        let id = self.start_job(study, name, text).await;
        self.ended(&id).await;
        self.get(&format!("/api/v1/jobs/{id}/result")).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn document(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let text = response.text().await.expect("text");
    (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{status}: {e}: {text}")))
}

/// Past the test harness, which would hide it: a skipped test must be seen.
pub fn skipped(why: &str) {
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("SKIPPED: {why}\n"));
}
