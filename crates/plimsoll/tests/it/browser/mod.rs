//! Driving a real browser: as much of the WebDriver protocol as the tests of the page need.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use crate::common::Scratch;
use crate::server::{PATIENCE, client, until, whole};
use plimsoll_testkit::{runs_long, skipped};

/// How an element is named in answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A driver that has said which port it listens on, and what else it says; none where it ended before.
fn drive(program: &Path) -> Option<(Child, String, Lines<BufReader<ChildStdout>>)> {
    let mut driver = Command::new(program)
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
    let Some(port) = port else {
        driver.wait().expect("it has ended");
        return None;
    };
    Some((driver, port, lines))
}

/// A chromium of its own with an empty profile, closed with the test.
pub struct Browser {
    driver: Child,
    /// `127.0.0.1:PORT`.
    at: String,
    session: String,
    client: Agent,
    scratch: Scratch,
}

impl Browser {
    /// Starts one for the long tests; where there is none, the test says that it was skipped.
    pub fn start(name: &str, arguments: &[&str]) -> Option<Self> {
        if !runs_long(&format!("{name} in a browser")) {
            return None;
        }
        let (Some(chromium), Some(driver)) = (on_path("chromium"), on_path("chromedriver")) else {
            skipped("no `chromium` and `chromedriver` to look at pages with");
            return None;
        };
        // A driver takes a free port of IPv4, and ends where another has taken the same of IPv6.
        let (driver, port, lines) = (0..8)
            .find_map(|_| drive(&driver))
            .expect("chromedriver started eight times and never said its port");
        let at = format!("127.0.0.1:{port}");
        std::thread::spawn(move || lines.for_each(drop));
        let scratch = Scratch::new(&format!("browser-{name}"));
        let usual = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let profile = format!("--user-data-dir={}", scratch.path("profile"));
        let arguments: Vec<&str> =
            usual.iter().chain(arguments).chain([&profile.as_str()]).copied().collect();
        let downloads = scratch.0.join("downloads");
        std::fs::create_dir_all(&downloads).expect("a directory");
        let mut browser =
            Self { driver, at, session: String::new(), client: client(PATIENCE), scratch };
        let asked = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": {
                "binary": chromium,
                "args": arguments,
                "prefs": { "download.default_directory": downloads },
            },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = browser.ask("", asked);
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    /// Sends a command with its parameters, or asks for what needs none.
    fn ask(&self, path: &str, body: Value) -> Value {
        let session = if self.session.is_empty() { "" } else { "/" };
        let url = format!("http://{}/session{session}{}{path}", self.at, self.session);
        let sent = match &body {
            Value::Null => self.client.get(url).call(),
            body => self.client.post(url).send(body.to_string()),
        };
        let answer = sent.unwrap_or_else(|e| panic!("{path}: {e}"));
        let failed = !answer.status().is_success();
        let answer = serde_json::from_str(&whole(answer));
        let mut answer: Value = answer.unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(!failed, "{path} {body}: {}", answer["value"]["message"]);
        answer["value"].take()
    }

    pub fn open(&self, url: &str) {
        self.ask("/url", json!({ "url": url }));
    }

    /// What a script returns.
    pub fn run(&self, script: &str) -> Value {
        self.run_with(script, json!([]))
    }

    /// The same with arguments; a promise is waited for.
    pub fn run_with(&self, script: &str, arguments: Value) -> Value {
        let body = json!({ "script": script, "args": arguments });
        self.ask("/execute/sync", body)
    }

    /// Waits until an expression is true of the page, and says how it stands where it never becomes so.
    pub fn until(&self, expression: &str) {
        let script = format!("return (async () => Boolean(await ({expression})))()");
        if until(|| (self.run(&script) == true).then_some(())).is_none() {
            self.screenshot("never");
            let text = self.run("return document.body.innerText");
            let console = self.console();
            panic!("never: {expression}\nin the console: {console:?}\non the page: {text}");
        }
    }

    /// The visible text of an element.
    pub fn text(&self, css: &str) -> String {
        let script = "return document.querySelector(arguments[0]).innerText";
        let text = self.run_with(script, json!([css]));
        text.as_str().unwrap_or_else(|| panic!("no {css}")).to_owned()
    }

    fn element(&self, css: &str) -> String {
        let body = json!({ "using": "css selector", "value": css });
        let found = self.ask("/element", body);
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("no {css}")).to_owned()
    }

    /// Clicks as a person does: what is hidden or covered cannot be clicked.
    pub fn click(&self, css: &str) {
        let id = self.element(css);
        self.ask(&format!("/element/{id}/click"), json!({}));
    }

    /// Types into an element; chooses a file where that is what it is for.
    pub fn keys(&self, css: &str, text: &str) {
        let id = self.element(css);
        self.ask(&format!("/element/{id}/value"), json!({ "text": text }));
    }

    pub fn size(&self, width: u32, height: u64) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.ask("/goog/cdp/execute", body)
    }

    /// Everything that is in the console and was not read before.
    pub fn console(&self) -> Vec<String> {
        let entries = self.ask("/se/log", json!({ "type": "browser" }));
        entries.as_array().expect("entries").iter().map(ToString::to_string).collect()
    }

    /// Keeps a picture of what is in the window: under `PLIMSOLL_ARTIFACTS`, or where Cargo keeps what tests leave.
    pub fn screenshot(&self, name: &str) {
        let picture = self.ask("/screenshot", Value::Null);
        let picture = bytes(picture.as_str().expect("a picture"));
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
        let kept = std::env::var_os("PLIMSOLL_ARTIFACTS").map_or(own, PathBuf::from);
        std::fs::create_dir_all(&kept).expect("a directory");
        std::fs::write(kept.join(format!("{name}.png")), picture).expect("written");
    }

    /// Keeps a picture of all of the page, however long it is.
    pub fn screenshot_of_all(&self, name: &str, width: u32) {
        let height = self.run("return document.documentElement.scrollHeight");
        self.size(width, height.as_u64().expect("a height").min(16_000));
        self.run("scrollTo({ top: 0, behavior: 'instant' })");
        self.screenshot(name);
    }

    /// Opens what is folded and counts the charts that are drawn.
    pub fn all_drawn(&self) -> u64 {
        self.run("document.querySelectorAll('details').forEach((own) => { own.open = true; })");
        let drawn = "return [...document.querySelectorAll('.chart .plot')].filter((plot) => plot.clientWidth > 0 && plot.clientHeight > 0).length";
        self.run(drawn).as_u64().expect("a count")
    }

    /// Waits for a file to be downloaded.
    pub fn downloaded(&self, name: &str) -> PathBuf {
        let path = self.scratch.0.join("downloads").join(name);
        until(|| path.is_file().then_some(())).expect("it is downloaded");
        path
    }

    /// What axe-core finds that shuts somebody out; none where there is no axe-core.
    pub fn shuts_out(&self) -> Option<Vec<String>> {
        let axe = std::fs::read_to_string(std::env::var_os("PLIMSOLL_AXE")?).expect("axe-core");
        self.run(&axe);
        let script = "return axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)";
        let found = self.run(script);
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
