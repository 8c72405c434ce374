//! A scenario from what already runs: manifests, command lines, logs and gateway configuration, read and merged.
//!
//! Each line says where it comes from. What no configuration knows (rates, lengths, objectives) is left as a question with an example,
//! and `plimsoll check` of the file meets nothing else. What was not understood is said, never dropped.

mod command;
mod draft;
mod flags;
mod gateway;
mod join;
mod kube;
mod lines;
mod log;
mod names;
mod operators;
mod pool;
mod scale;
mod words;
mod write;

use jiff::civil::Date;

use draft::Gathered;

use crate::yaml::{self, YamlError};

/// A file that somebody names.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// As origins show it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// What the files say.
#[derive(Clone, Debug)]
pub struct Found {
    /// The scenario, as TOML with comments. Unanswered questions are comments that begin with `# ?`.
    pub scenario: String,
    /// The same with every question answered by its example: a scenario that loads, and that nobody should believe.
    pub example: String,
    /// Each value with its origin, in the order of the scenario.
    pub values: Vec<FoundValue>,
    /// What no file says.
    pub questions: Vec<FoundQuestion>,
    /// Objects and files that were read and left alone, with the reason.
    pub passed_over: Vec<String>,
    /// Contradictions, and what a reader should look at first.
    pub warnings: Vec<String>,
}

/// A value that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundValue {
    /// Such as `pool.chat.max_num_seqs`.
    pub key: String,
    /// As it is written in the scenario.
    pub value: String,
    /// File, line and words.
    pub origin: String,
}

/// Something that no file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundQuestion {
    /// Such as `class.chat.rate`.
    pub key: String,
    /// What to find out.
    pub question: String,
    /// Lines of TOML that would answer it.
    pub example: String,
    /// Whether the scenario is incomplete without an answer; otherwise a default stands in.
    pub needed: bool,
}

/// Why there is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundError {
    /// A file that is YAML by its looks, but is none.
    #[error("{file}:{line}:{column}: this is not YAML: {message}")]
    NotYaml {
        /// As it was named.
        file: String,
        /// From one.
        line: usize,
        /// From one.
        column: usize,
        /// What the reader of YAML says.
        message: String,
    },
    /// No file describes a pool or a provider.
    #[error(
        "nothing in {} starts an engine or names a hosted model{}; give manifests of vLLM, SGLang or TensorRT-LLM, their command lines or logs, or the configuration of LiteLLM or Envoy AI Gateway",
        count(*.files),
        listed(.passed_over)
    )]
    Nothing {
        /// How many were read.
        files: usize,
        /// What was in them, each with the reason why it is of no use.
        passed_over: Vec<String>,
    },
}

fn count(files: usize) -> String {
    if files == 1 { "this file".to_owned() } else { format!("these {files} files") }
}

fn listed(passed_over: &[String]) -> String {
    match passed_over {
        [] => String::new(),
        [first] => format!(" ({first})"),
        [first, rest @ ..] => format!(" ({first}; {} more)", rest.len()),
    }
}

/// Reads the files and writes down what they say together, `as_of` standing for today.
///
/// ```
/// use plimsoll_emit::found::{FoundFile, found};
///
/// let text = "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --max-num-seqs 256".to_owned();
/// let found = found(&[FoundFile { name: "run.sh".into(), text }], jiff::civil::date(2026, 11, 16))?;
/// let seqs = found.values.iter().find(|value| value.key == "pool.Qwen3-32B.max_num_seqs");
/// assert_eq!(seqs.map(|value| value.origin.as_str()), Some("run.sh:1 `--max-num-seqs 256`"));
/// assert!(found.questions.iter().any(|question| question.key == "class.Qwen3-32B.rate"));
/// # Ok::<(), plimsoll_emit::found::FoundError>(())
/// ```
pub fn found(files: &[FoundFile], as_of: Date) -> Result<Found, FoundError> {
    let mut gathered = Gathered::default();
    for file in files {
        read(file, &mut gathered)?;
    }
    gateway::join(&mut gathered);
    if gathered.pools.is_empty() && gathered.providers.is_empty() {
        let passed_over = gathered.passed_over;
        return Err(FoundError::Nothing { files: files.len(), passed_over });
    }
    Ok(write::write(gathered, files, as_of))
}

/// What a file is, its content tells.
fn read(file: &FoundFile, gathered: &mut Gathered) -> Result<(), FoundError> {
    let (name, text) = (file.name.as_str(), file.text.as_str());
    if looks_like_yaml(text) {
        if let Some((line, words)) = template_line(text) {
            gathered.passed_over.push(format!(
                "{name}:{line} `{}` is a Helm template; render it first: `helm template NAME CHART > rendered.yaml`",
                draft::clip(words, 60)
            ));
            return Ok(());
        }
        let documents = yaml::documents(text).map_err(|error| not_yaml(name, error))?;
        let file = kube::File::new(name, text);
        for document in &documents {
            if document.get("model_list").is_some() {
                gateway::litellm(&file, document, gathered);
            } else {
                kube::object(&file, document, gathered, 0);
            }
        }
    } else if log::is_log(text) {
        log::read(name, text, gathered);
    } else if !command::text(name, text, gathered) {
        gathered.passed_over.push(format!(
            "{name} holds no manifest, no command that starts an engine, and no line of an engine's log"
        ));
    }
    Ok(())
}

fn not_yaml(file: &str, error: YamlError) -> FoundError {
    let YamlError { line, column, message } = error;
    FoundError::NotYaml { file: file.to_owned(), line, column, message }
}

/// Objects of a cluster say their kind; a proxy's configuration lists models.
fn looks_like_yaml(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start_matches("- ");
        ["apiVersion:", "kind:", "model_list:"].iter().any(|key| line.starts_with(key))
            || line.trim_start().starts_with("\"apiVersion\"")
    })
}

/// The first line that only Helm understands.
fn template_line(text: &str) -> Option<(usize, &str)> {
    let marks = [
        ".Values",
        ".Release",
        ".Chart",
        ".Capabilities",
        "include ",
        "if ",
        "range ",
        "with ",
        "end",
        "template ",
        "define ",
        "toYaml",
        "$",
    ];
    text.lines().enumerate().find_map(|(i, line)| {
        let inner = line.split_once("{{")?.1.trim_start_matches('-').trim_start();
        let comment = line.trim_start().starts_with('#');
        (!comment && marks.iter().any(|mark| inner.starts_with(mark))).then(|| (i + 1, line.trim()))
    })
}
