//! What the page and the API ask for: the binary answers, with what its commands do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::described;

/// Answers questions about scenarios and logs. Every method may take seconds and is called where that blocks nobody.
///
/// Documents are those that the commands print with `--json`, byte for byte but for the file's name.
pub trait Desk: Send + Sync + 'static {
    /// The version of the program.
    fn version(&self) -> &str;

    /// Scenarios to start from, those of the program first, then those of the workspace.
    fn scenarios(&self) -> Vec<ScenarioName>;

    /// The text of a scenario of that list.
    fn scenario(&self, name: &str) -> Option<String>;

    /// What is wrong with a scenario; nothing where it is fine. Fast enough to be asked at every pause of typing.
    fn check(&self, scenario: &Asked) -> Vec<Problem>;

    /// What becomes of the answer when levers move.
    fn what_if(&self, scenario: &Asked, levers: &Levers, basis: Basis, work: &Work) -> Outcome;

    /// A study of a scenario.
    fn study(&self, kind: Study, scenario: &Asked, work: &Work) -> Outcome;

    /// The review as a page that stands alone.
    fn review_html(&self, scenario: &Asked, work: &Work) -> Result<String, Refused>;

    /// What a request log says of the workload; the file is read where it lies and is called `name`. With `html`, a fragment of charts is in `charts`.
    fn profile(&self, log: &Path, name: &str, work: &Work) -> Outcome;
}

/// A document, or why there is none.
pub type Outcome = Result<Value, Refused>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// The question is wrong: what, and where.
    Input(Vec<Problem>),
    /// It was asked to stop, or its time was up.
    Stopped,
}

/// A scenario as somebody types it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// What messages call it.
    pub name: String,
    /// Its text.
    pub text: String,
}

described! {
    /// A scenario that can be opened.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct ScenarioName {
        /// By which it is asked for.
        pub name: String,
        /// Its study's name.
        pub title: String,
        /// Whether it comes with the program.
        pub example: bool,
    }
}

described! {
    /// Something that is wrong with a question, as the commands say it.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct Problem {
        /// What kind of wrong.
        pub code: String,
        /// What is wrong.
        pub message: String,
        /// In which file.
        pub file: String,
        /// The line, from 1 on; none where it is about all of it.
        pub line: Option<u64>,
        /// The column, from 1 on.
        pub column: Option<u64>,
        /// What to write instead.
        pub help: Option<String>,
    }
}

described! {
    /// What may be moved; 1, or 0 for what is lost, is as the scenario says.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Levers {
        /// Times the rate of every class. From 0.05 to 20.
        pub demand: f64,
        /// Times the length of prompts. From 0.05 to 20.
        pub prompt: f64,
        /// Times the length of outputs. From 0.05 to 20.
        pub output: f64,
        /// The share of what would be found in caches that still is. From 0 to 1.
        pub cache_hit: f64,
        /// Times the replicas of today of every pool, rounded up. From 0.05 to 20.
        pub replicas: f64,
        /// Times the time that replicas take to start. From 0 to 20.
        pub startup: f64,
        /// Replicas of every pool that are lost at the peak. From 0 to 64.
        pub lost: u32,
    }
}

impl Default for Levers {
    fn default() -> Self {
        Self {
            demand: 1.0,
            prompt: 1.0,
            output: 1.0,
            cache_hit: 1.0,
            replicas: 1.0,
            startup: 1.0,
            lost: 0,
        }
    }
}

described! {
    /// How closely a what-if is looked at.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Basis {
        /// At once.
        Approximate,
        /// By a service curve.
        Simulated,
    }
}

/// A study of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Study {
    /// `plimsoll fit`.
    Fit,
    /// `plimsoll curve`.
    Curve,
    /// `plimsoll plan`.
    Plan,
    /// `plimsoll stress`.
    Stress,
    /// `plimsoll cost`.
    Cost,
    /// `plimsoll review`.
    Review,
}

/// Work under way: how far it is, and whether it should go on.
#[derive(Clone, Debug, Default)]
pub struct Work {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU32>,
}

impl Work {
    /// Whether anybody still wants the answer.
    pub fn go_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Nobody wants it any more.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// How much of it is done, in thousandths.
    pub fn at(&self, thousandths: u32) {
        self.done.fetch_max(thousandths.min(1000), Ordering::Relaxed);
    }

    /// How much of it is done, in thousandths.
    pub fn done(&self) -> u32 {
        self.done.load(Ordering::Relaxed)
    }
}
