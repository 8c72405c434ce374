//! Driving a real browser: as much of the WebDriver protocol as the tests of the page need.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::common::Scratch;
use crate::server::{PATIENCE, skipped};

/// How an element is named in answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A chromium of its own with an empty profile, closed with the test.
pub struct Browser {
    driver: Child,
    /// `127.0.0.1:PORT`.
    at: String,
    session: String,
    client: Client,
    scratch: Scratch,
}

impl Browser {
    /// Starts one; where there is none, the test says that it was skipped.
    pub async fn start(name: &str, arguments: &[&str]) -> Option<Self> {
        let (Some(chromium), Some(driver)) = (on_path("chromium"), on_path("chromedriver")) else {
            skipped("no `chromium` and `chromedriver` to look at pages with");
            return None;
        };
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let at = format!("127.0.0.1:{}", port.expect("chromedriver says its port"));
        std::thread::spawn(move || lines.for_each(drop));
        let scratch = Scratch::new(&format!("browser-{name}"));
        let usual = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let profile = format!("--user-data-dir={}", scratch.path("profile"));
        let arguments: Vec<&str> =
            usual.iter().chain(arguments).chain([&profile.as_str()]).copied().collect();
        let downloads = scratch.0.join("downloads");
        std::fs::create_dir_all(&downloads).expect("a directory");
        let mut browser =
            Self { driver, at, session: String::new(), client: Client::new(), scratch };
        let asked = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": {
                "binary": chromium,
                "args": arguments,
                "prefs": { "download.default_directory": downloads },
            },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = browser.ask(Method::POST, "", asked).await;
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let session = if self.session.is_empty() { "" } else { "/" };
        let url = format!("http://{}/session{session}{}{path}", self.at, self.session);
        let mut request = self.client.request(method.clone(), url).timeout(PATIENCE);
        if method == Method::POST {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap_or_else(|e| panic!("{path}: {e}"));
        let failed = !answer.status().is_success();
        let mut answer: Value = answer.json().await.unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(!failed, "{path} {body}: {}", answer["value"]["message"]);
        answer["value"].take()
    }

    pub async fn open(&self, url: &str) {
        self.ask(Method::POST, "/url", json!({ "url": url })).await;
    }

    /// What a script returns.
    pub async fn run(&self, script: &str) -> Value {
        self.run_with(script, json!([])).await
    }

    /// The same with arguments; a promise is waited for.
    pub async fn run_with(&self, script: &str, arguments: Value) -> Value {
        let body = json!({ "script": script, "args": arguments });
        self.ask(Method::POST, "/execute/sync", body).await
    }

    /// Waits until an expression is true of the page, and says how it stands where it never becomes so.
    pub async fn until(&self, expression: &str) {
        let waits = async {
            let script = format!("return (async () => Boolean(await ({expression})))()");
            while self.run(&script).await != true {
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waits).await.is_err() {
            self.screenshot("never").await;
            let text = self.run("return document.body.innerText").await;
            let console = self.console().await;
            panic!("never: {expression}\nin the console: {console:?}\non the page: {text}");
        }
    }

    /// The visible text of an element.
    pub async fn text(&self, css: &str) -> String {
        let script = "return document.querySelector(arguments[0]).innerText";
        let text = self.run_with(script, json!([css])).await;
        text.as_str().unwrap_or_else(|| panic!("no {css}")).to_owned()
    }

    async fn element(&self, css: &str) -> String {
        let body = json!({ "using": "css selector", "value": css });
        let found = self.ask(Method::POST, "/element", body).await;
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("no {css}")).to_owned()
    }

    /// Clicks as a person does: what is hidden or covered cannot be clicked.
    pub async fn click(&self, css: &str) {
        let id = self.element(css).await;
        self.ask(Method::POST, &format!("/element/{id}/click"), json!({})).await;
    }

    /// Types into an element; chooses a file where that is what it is for.
    pub async fn keys(&self, css: &str, text: &str) {
        let id = self.element(css).await;
        self.ask(Method::POST, &format!("/element/{id}/value"), json!({ "text": text })).await;
    }

    pub async fn size(&self, width: u32, height: u64) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.ask(Method::POST, "/goog/cdp/execute", body).await
    }

    /// Everything that is in the console and was not read before.
    pub async fn console(&self) -> Vec<String> {
        let entries = self.ask(Method::POST, "/se/log", json!({ "type": "browser" })).await;
        entries.as_array().expect("entries").iter().map(ToString::to_string).collect()
    }

    /// Keeps a picture of what is in the window: under `PLIMSOLL_ARTIFACTS`, or where Cargo keeps what tests leave.
    pub async fn screenshot(&self, name: &str) {
        let picture = self.ask(Method::GET, "/screenshot", Value::Null).await;
        let picture = bytes(picture.as_str().expect("a picture"));
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
        let kept = std::env::var_os("PLIMSOLL_ARTIFACTS").map_or(own, PathBuf::from);
        std::fs::create_dir_all(&kept).expect("a directory");
        std::fs::write(kept.join(format!("{name}.png")), picture).expect("written");
    }

    /// Keeps a picture of all of the page, however long it is.
    pub async fn screenshot_of_all(&self, name: &str, width: u32) {
        let height = self.run("return document.documentElement.scrollHeight").await;
        self.size(width, height.as_u64().expect("a height").min(16_000)).await;
        self.run("scrollTo({ top: 0, behavior: 'instant' })").await;
        self.screenshot(name).await;
    }

    /// Opens what is folded and counts the charts that are drawn.
    pub async fn all_drawn(&self) -> u64 {
        self.run("document.querySelectorAll('details').forEach((own) => { own.open = true; })")
            .await;
        let drawn = "return [...document.querySelectorAll('.chart .plot')].filter((plot) => plot.clientWidth > 0 && plot.clientHeight > 0).length";
        self.run(drawn).await.as_u64().expect("a count")
    }

    /// Waits for a file to be downloaded.
    pub async fn downloaded(&self, name: &str) -> PathBuf {
        let path = self.scratch.0.join("downloads").join(name);
        let waits = async {
            while !path.is_file() {
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waits).await.expect("it is downloaded");
        path
    }

    /// What axe-core finds that shuts somebody out; none where there is no axe-core.
    pub async fn shuts_out(&self) -> Option<Vec<String>> {
        let axe = std::fs::read_to_string(std::env::var_os("PLIMSOLL_AXE")?).expect("axe-core");
        self.run(&axe).await;
        let script = "return axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)";
        let found = self.run(script).await;
        let grave = |each: &&Value| each["impact"] == "serious" || each["impact"] == "critical";
        let words = |each: &Value| {
            let nodes = each["nodes"]
                .as_array()
                .expect("nodes")
                .iter()
                .map(|node| format!("\n  {} {}", node["target"], node["failureSummary"]));
            format!("{}: {}{}", each["id"], each["help"], nodes.collect::<String>())
        };
        Some(found.as_array().expect("violations").iter().filter(grave).map(words).collect())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The session first: a driver that is killed leaves its browser behind.
        if let Ok(mut stream) = TcpStream::connect(&self.at) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let head = format!("DELETE /session/{} HTTP/1.1", self.session);
            let _ = write!(stream, "{head}\r\nHost: {}\r\nConnection: close\r\n\r\n", self.at);
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Pictures come as base64, which is six bits a letter.
fn bytes(base64: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |letter: &u8| letters.iter().position(|own| own == letter).expect("base64");
    let values: Vec<usize> = base64.trim_end_matches('=').as_bytes().iter().map(value).collect();
    let group = |four: &[usize]| {
        let bits = four.iter().enumerate().fold(0, |all, (i, bits)| all | bits << (18 - 6 * i));
        (0..four.len() * 6 / 8).map(move |i| (bits >> (16 - 8 * i)) as u8)
    };
    values.chunks(4).flat_map(group).collect()
}
