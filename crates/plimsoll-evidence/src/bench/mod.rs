//! Results of benchmark tools, each read by its own module into the same points.
//!
//! A module says how to know its tool's rows and how to read one of them; everything else is here: finding the rows,
//! collecting what is wrong, and the lints that need no hardware.

mod aiperf;
mod consistency;
mod document;
mod engine_run;
mod error;
mod guidellm;
mod inference_perf;
mod lint;
mod mlperf;
mod row;
mod sglang;
mod vllm;

pub use lint::lint_sweep;

use plimsoll_study::{BenchPoint, EngineRun, Flag, Origin};
use serde_json::Value;

pub use error::ResultsError;
use row::Row;

/// What a results file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The tool that wrote it.
    pub tool: &'static str,
    /// Its points, in the order of the file.
    pub points: Vec<BenchPoint>,
    /// Its step logs, in the order of the file.
    pub runs: Vec<EngineRun>,
    /// What should be known of them.
    pub flags: Vec<Flag>,
}

/// A tool whose results are read.
struct Tool {
    name: &'static str,
    /// Whether a row is the tool's.
    knows: fn(&Value) -> bool,
    /// The list that the rows are in, where they are not rows of the file themselves.
    within: Option<&'static str>,
    read: Read,
}

enum Read {
    Point(fn(&mut Row<'_>) -> Option<BenchPoint>),
    Run(fn(&mut Row<'_>) -> Option<EngineRun>),
}

/// In the order in which they are asked: the ones with the plainest marks first.
const TOOLS: [Tool; 8] = [
    engine_run::TOOL,
    guidellm::TOOL,
    inference_perf::TOOL,
    aiperf::AIPERF,
    aiperf::GENAI_PERF,
    mlperf::TOOL,
    vllm::TOOL,
    sglang::TOOL,
];

/// Reads the results of any known tool; the format is detected from the content, not the name.
pub fn results(file: &str, text: &str) -> Result<Results, Vec<ResultsError>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (values, syntax) = values(file, text).map_err(|error| vec![error])?;
    let mut errors: Vec<ResultsError> = syntax.into_iter().collect();
    let Some(first) = values.first() else {
        let nothing = || unknown(file, "an empty list".to_owned());
        return Err(if errors.is_empty() { vec![nothing()] } else { errors });
    };
    let Some(tool) = tool_of(first) else {
        errors.push(known_otherwise(file, first));
        return Err(errors);
    };
    let mut results =
        Results { tool: tool.name, points: Vec::new(), runs: Vec::new(), flags: Vec::new() };
    let origin = |row: usize| Origin { file: file.to_owned(), row, tool: tool.name };
    let mut number = 0;
    for value in &values {
        let rows = match tool.within.and_then(|list| value.get(list)).and_then(Value::as_array) {
            Some(list) => list.as_slice(),
            None => std::slice::from_ref(value),
        };
        if rows.is_empty() {
            let mut row = Row::new(origin(number + 1), value, value);
            row.wrong(tool.within.unwrap_or("row"), "is empty: the sweep measured nothing");
            errors.append(&mut row.errors);
        }
        for part in rows {
            number += 1;
            let mut row = Row::new(origin(number), part, value);
            if tool_of(value).is_none_or(|other| other.name != tool.name) {
                let what = document::looks(value);
                row.wrong("row", format!("is not of {}, as the first is: it is {what}", tool.name));
            } else {
                results.read(tool, &mut row);
            }
            errors.append(&mut row.errors);
            results.flags.append(&mut row.flags);
        }
    }
    if !errors.is_empty() {
        return Err(ResultsError::few(file, errors));
    }
    results.flags.extend(lint::lint(&mut results.points));
    results.flags.sort_by_key(|flag| flag.origin.row);
    Ok(results)
}

impl Results {
    fn read(&mut self, tool: &Tool, row: &mut Row<'_>) {
        let before = self.points.len() + self.runs.len();
        match tool.read {
            Read::Point(read) => {
                if let Some(point) = read(row) {
                    consistency::check(row, &point);
                    self.points.push(point);
                }
            }
            Read::Run(read) => self.runs.extend(read(row)),
        }
        let kept = self.points.len() + self.runs.len() > before;
        assert!(kept || !row.errors.is_empty(), "{:?} was skipped without a word", row.origin);
    }
}

fn tool_of(value: &Value) -> Option<&'static Tool> {
    const { &TOOLS }.iter().find(|tool| (tool.knows)(value))
}

/// The values of a file, and where reading them stopped.
fn values(file: &str, text: &str) -> Result<(Vec<Value>, Option<ResultsError>), ResultsError> {
    let begins = text.trim_start();
    if begins.is_empty() {
        return Err(unknown(file, "empty".to_owned()));
    }
    if document::is_toml(text) {
        let help = format!("`plimsoll review {file}` takes a scenario");
        let looks = "a TOML file, such as a scenario".to_owned();
        return Err(ResultsError::Unknown { file: file.to_owned(), looks, help });
    }
    if begins.starts_with(['{', '[']) {
        return Ok(document::json(file, text));
    }
    if text.contains(mlperf::HEADING) {
        return Ok((vec![document::summary(text)], None));
    }
    if begins.starts_with("Metric,") {
        return Ok((vec![document::csv(text)], None));
    }
    let line = begins.lines().next().unwrap_or_default();
    Err(unknown(file, format!("text that begins with `{}`", row::clip(line.trim()))))
}

fn unknown(file: &str, looks: String) -> ResultsError {
    let mut names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    names.sort_unstable();
    let help = format!("results of these tools are read: {}", names.join(", "));
    ResultsError::Unknown { file: file.to_owned(), looks, help }
}

/// A file of ours that is no benchmark is named, with the command that takes it.
fn known_otherwise(file: &str, value: &Value) -> ResultsError {
    let schema = |at: &Value| at.get("schema").and_then(Value::as_str).map(str::to_owned);
    let schema = schema(value).or_else(|| value.get("meta").and_then(schema)).unwrap_or_default();
    let looks = match schema.as_str() {
        "plimsoll-kv-cases/1" => "a file of logged KV-cache capacities",
        schema if schema.starts_with("plimsoll.perf_cases") => "a file of normalised measurements",
        _ => return unknown(file, document::looks(value)),
    };
    let help = format!("`plimsoll validate {file}` takes it");
    ResultsError::Unknown { file: file.to_owned(), looks: looks.to_owned(), help }
}
