//! Running the program as a shell does.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod plans;
pub mod reviews;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the program in the repository's root, without colour.
pub fn plimsoll(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(args)
        .current_dir(repository())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// What it prints on stdout, and its exit code: whatever it is asked, it ends by itself within two minutes.
pub fn run(arguments: &[&str]) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .current_dir(repository())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let (told, hears) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::Read::read_to_end(&mut stdout, &mut bytes);
        let _ = told.send(read.map(|_| bytes));
    });
    let Ok(read) = hears.recv_timeout(Duration::from_secs(120)) else {
        let _ = child.kill();
        panic!("`plimsoll {}` does not end", arguments.join(" "));
    };
    reader.join().expect("it read");
    let code = child.wait().expect("it ended").code().expect("it ends by itself");
    (code, text(&read.expect("readable")))
}

/// The same, as a document.
pub fn json(arguments: &[&str]) -> (i32, Value) {
    let (code, printed) = run(&[arguments, &["--json"]].concat());
    (code, serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {printed}")))
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// The first thing that is wrong, and what is said to help.
pub fn diagnostic(failure: &Value) -> (String, String) {
    assert_eq!(failure["schema"], "plimsoll/error/v1", "{failure}");
    let of = |key: &str| failure["diagnostics"][0][key].as_str().unwrap_or_default().to_owned();
    (of("message"), of("help"))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Scratch directories of this process so far.
static SCRATCHES: AtomicUsize = AtomicUsize::new(0);

/// A directory of its own, gone when the test ends.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let count = SCRATCHES.fetch_add(1, Ordering::Relaxed);
        let directory = format!("plimsoll-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(directory);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), bytes).expect("writable");
        self.path(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A trace that is not ours to ship; none where the shared data is not there.
pub fn shared(name: &str) -> Option<String> {
    let beside = repository().join("../shared");
    let root = std::env::var_os("PLIMSOLL_SHARED").map_or(beside, PathBuf::from);
    if !root.is_dir() {
        // Past the test harness, which would hide it: a skipped test must be seen.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("SKIPPED: no {name} at {} (set PLIMSOLL_SHARED)\n", root.display()),
        );
        return None;
    }
    let path = root.join("data/traces").join(name);
    assert!(path.is_file(), "no {}", path.display());
    Some(path.display().to_string())
}
