//! Running `plimsoll serve` and asking it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::{Agent, Body};

/// The longest that anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A server on a port of its own, ended with the test.
pub struct Server {
    child: Child,
    said: Arc<Mutex<String>>,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
    pub client: Agent,
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
        Self { child, said, address, client: client(PATIENCE) }
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

    pub fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Response<Body> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.address));
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.client.run(request.body(body.to_string()).expect("a request"))
            }
            None => self.client.run(request.body(()).expect("a request")),
        };
        sent.unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub fn get(&self, path: &str) -> (StatusCode, Value) {
        document(self.send(Method::GET, path, None))
    }

    pub fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        document(self.send(Method::POST, path, Some(body)))
    }

    /// The text of a page or of counters.
    pub fn text(&self, path: &str) -> String {
        let response = self.send(Method::GET, path, None);
        assert_eq!(response.status(), 200, "{path}");
        whole(response)
    }

    /// The text of a scenario of its list.
    pub fn scenario(&self, name: &str) -> String {
        let (status, document) = self.get(&format!("/api/v1/scenarios/{name}"));
        assert_eq!(status, 200, "{document}");
        document["text"].as_str().expect("a text").to_owned()
    }

    /// The answer to a what-if. On a busy machine its time may be up, and it may be asked again.
    pub fn what_if(&self, asked: &Value) -> Value {
        let answer = until(|| {
            let (status, document) = self.post("/api/v1/what-if", asked);
            (document["diagnostics"][0]["code"] != "time-was-up").then_some((status, document))
        });
        let (status, document) = answer.expect("an answer in time");
        assert_eq!(status, 200, "{document}");
        document
    }

    /// Starts a study; its id.
    pub fn start_job(&self, study: &str, name: &str, text: &str) -> String {
        let asked = json!({ "study": study, "name": name, "text": text });
        let (status, job) = self.post("/api/v1/jobs", &asked);
        assert_eq!(status, 202, "{job}");
        job["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until a job has ended; how it stands then.
    pub fn ended(&self, id: &str) -> Value {
        let job = until(|| {
            let (status, job) = self.get(&format!("/api/v1/jobs/{id}"));
            assert_eq!(status, 200, "{job}");
            (job["state"] != "waiting" && job["state"] != "running").then_some(job)
        });
        job.expect("a job ends")
    }

    /// A study from its start to its result.
    pub fn job(&self, study: &str, name: &str, text: &str) -> (StatusCode, Value) {
        let id = self.start_job(study, name, text);
        self.ended(&id);
        self.get(&format!("/api/v1/jobs/{id}/result"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client to whom an error is an answer, and who is patient for so long. Each question has a connection of its own: one that is kept may be closed by the server just when it is
/// used again, and then nobody knows whether the question was heard.
pub fn client(patience: Duration) -> Agent {
    let config = Agent::config_builder().http_status_as_error(false).max_idle_connections(0);
    config.timeout_global(Some(patience)).build().new_agent()
}

/// All of an answer; a review with its script has several megabytes.
pub fn whole(mut response: Response<Body>) -> String {
    response.body_mut().with_config().limit(64 << 20).read_to_string().expect("text")
}

/// Looks every so often until there is something, as long as patience lasts.
pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let pause = Duration::from_millis(20);
    (0..PATIENCE.as_millis() / pause.as_millis()).find_map(|_| {
        look().or_else(|| {
            std::thread::sleep(pause);
            None
        })
    })
}

fn document(response: Response<Body>) -> (StatusCode, Value) {
    let status = response.status();
    let text = whole(response);
    (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{status}: {e}: {text}")))
}
