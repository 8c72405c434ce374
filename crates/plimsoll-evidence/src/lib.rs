//! What engines were measured to do: benchmark results, step logs and validation cases, read and linted.
//!
//! **Owns** the formats that measurements come in. **Refuses** to fit or to judge: it hands over cases, each with its
//! inputs apart from what was observed, so that a prediction cannot see its answer.
//!
//! ```
//! let file = r#"{"meta":{"schema":"plimsoll-kv-cases/1"},"cases":[]}"#;
//! assert!(plimsoll_evidence::memory_cases(file)?.is_empty());
//! # Ok::<(), plimsoll_evidence::EvidenceError>(())
//! ```

mod bench;
mod calibration;
mod case;
mod kernels;
mod log;
mod memory;
mod performance;

pub use bench::{Results, ResultsError, lint_sweep, results};
pub use calibration::{CalibrationFile, calibration};
pub use kernels::{KernelReadError, KernelReading, ReadKernels, WantedKernels, read_kernels};
pub use log::{EngineLog, engine_log};
pub use memory::memory_cases;
pub use performance::performance_cases;

/// Validation cases of either kind.
#[derive(Clone, Debug)]
pub enum Cases {
    /// Logged KV-cache capacities.
    Memory(Vec<plimsoll_study::MemoryCase>),
    /// Published latencies and throughputs.
    Performance(Vec<plimsoll_study::PerformanceCase>),
}

/// The cases of a file in either format; its schema says which.
pub fn cases(text: &str) -> Result<Cases, EvidenceError> {
    let document: serde_json::Value = serde_json::from_str(text).map_err(memory::not_json)?;
    let word =
        |value: Option<&serde_json::Value>| value.and_then(|v| v.as_str()).map(str::to_owned);
    let schema = word(document.get("schema"))
        .or_else(|| word(document.get("meta").and_then(|meta| meta.get("schema"))));
    match schema.as_deref() {
        Some("plimsoll-kv-cases/1") => memory::memory_cases_of(&document).map(Cases::Memory),
        Some("plimsoll.perf_cases.v1") => {
            performance::performance_cases_of(&document).map(Cases::Performance)
        }
        _ => Err(EvidenceError::WrongKind(
            "it says neither `plimsoll-kv-cases/1` nor `plimsoll.perf_cases.v1` as its schema",
        )),
    }
}

/// Why a file is no evidence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// Not JSON at all.
    #[error("this is not JSON: {message} (line {line}, column {column})")]
    NotJson {
        /// What the JSON reader says.
        message: String,
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// JSON of another kind.
    #[error("this is no file of validation cases: {0}")]
    WrongKind(&'static str),
    /// Not a calibration.
    #[error("this is no calibration: {0}")]
    NoCalibration(String),
    /// A case lacks what it must have, or holds something else.
    #[error("case {index}{}: `{field}` {problem}", name(id))]
    Field {
        /// Counted from zero.
        index: usize,
        /// Its id, where it has one.
        id: Option<String>,
        /// Which field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

fn name(id: &Option<String>) -> String {
    id.as_ref().map_or(String::new(), |id| format!(" ({id})"))
}
