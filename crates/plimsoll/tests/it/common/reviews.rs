//! Reviews of the shipped examples: each is made once a process, and looked at from several sides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;

use super::{Scratch, plimsoll, text};

/// A review as all that it can be.
pub struct Reviewed {
    pub code: i32,
    /// What is printed.
    pub screen: String,
    pub stderr: String,
    pub document: Value,
    pub html: String,
    /// Where the page is.
    pub page: String,
    _directory: Scratch,
}

/// The review of an example by its name, without the ending.
pub fn review_of(example: &str) -> Arc<Reviewed> {
    static MADE: Mutex<BTreeMap<String, Arc<OnceLock<Arc<Reviewed>>>>> =
        Mutex::new(BTreeMap::new());
    let cell = {
        let mut made = MADE.lock().expect("no review panics while it is looked up");
        Arc::clone(made.entry(example.to_owned()).or_default())
    };
    // Those who ask for the same one wait for it; others make theirs meanwhile.
    Arc::clone(cell.get_or_init(|| Arc::new(make(example))))
}

fn make(example: &str) -> Reviewed {
    let directory = Scratch::new(&format!("review-{example}"));
    let (page, document) = (directory.path("review.html"), directory.path("review.json"));
    let file = format!("examples/{example}.toml");
    let output = plimsoll(&["review", &file, "--quiet", "--html", &page, "--out", &document]);
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    Reviewed {
        code: output.status.code().expect("an exit code"),
        screen: text(&output.stdout),
        stderr: text(&output.stderr),
        document: serde_json::from_str(&read(&document)).expect("one document"),
        html: read(&page),
        page,
        _directory: directory,
    }
}
