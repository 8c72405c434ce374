//! Other people's manifests, looked through for mistakes that were published before.
//!
//! Files are looked at together, so that what scales finds what it scales. What nobody here knows is passed over and said, never refused.

mod edits;
mod gateways;
mod known;
mod manifest;
mod measure;
mod names;
mod query;
mod rules;
mod sarif;
mod scalers;
mod shapes;
mod signals;
mod spread;
mod workload;
mod workloads;

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::PlanFile;
use serde::Serialize;

pub use edits::fixed;
pub use manifest::{
    ManifestQuery, MetricType, RuleQuery, Scaler, Trigger, manifest_queries, quantity, rules_of,
    scaler, triggers,
};
pub use plimsoll_fleet::promql::QueryError;
pub use query::Query;
pub use rules::{Rule, rules};
pub use sarif::sarif;
pub use spread::Series;
pub use workload::{Workload, workload};

use crate::yaml::{At, Node, documents};
use edits::Source;
use known::Files;

/// What is looked at, and what is known besides.
#[derive(Clone, Copy, Debug)]
pub struct LintInput<'a> {
    /// All files, together.
    pub files: &'a [LintFile],
    /// The plan that they should fit.
    pub plan: Option<&'a PlanFile>,
    /// What was told.
    pub facts: LintFacts,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFile {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What was told on the command line; what was not is read from the manifests or the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LintFacts {
    /// The engine and its version.
    pub engine: Option<(Reporter, Version)>,
    /// Seconds in which nine starts in ten are ready.
    pub startup_p90_s: Option<f64>,
    /// Seconds in which 99 starts in 100 are ready.
    pub startup_p99_s: Option<f64>,
    /// Seconds in which 99 generations in 100 are done.
    pub generation_p99_s: Option<f64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lint {
    /// By file, line and rule.
    pub findings: Vec<LintFinding>,
    /// Documents that were understood.
    pub documents: usize,
    /// Documents and files that were not looked at.
    pub passed_over: Vec<PassedOver>,
}

impl Lint {
    /// How many findings are as bad as this.
    pub fn count(&self, severity: LintSeverity) -> usize {
        self.findings.iter().filter(|own| own.severity == severity).count()
    }
}

/// Something that was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// In which file.
    pub file: String,
    /// On which line it begins.
    pub line: usize,
    /// What it is.
    pub kind: String,
    /// Why.
    pub why: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LintSeverity {
    /// It does not do what it is there for.
    Error,
    /// It does harm at times.
    Warning,
    /// Worth knowing.
    Note,
}

/// A mistake.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LintFinding {
    /// `L1` and so on.
    pub rule: &'static str,
    /// The rule in words.
    pub name: &'static str,
    /// How bad it is.
    pub severity: LintSeverity,
    /// In which file.
    pub file: String,
    /// From one.
    pub line: usize,
    /// In characters, from one.
    pub column: usize,
    /// What is wrong, with its numbers.
    pub message: String,
    /// What happens where it is not heeded.
    pub why: &'static str,
    /// Where that can be read.
    pub proof: &'static str,
    /// What to write instead.
    pub fix: Option<String>,
    /// A change that cannot break the file.
    pub edit: Option<Edit>,
}

/// Changes that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// In order of the file.
    pub changes: Vec<Change>,
}

/// Another text in the place of a stretch of characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The first character, from zero.
    pub start: usize,
    /// The one after the last.
    pub end: usize,
    /// What is there instead.
    pub text: String,
}

/// Where findings about a file go.
struct Found<'a> {
    source: &'a Source,
    findings: Vec<LintFinding>,
}

impl Found<'_> {
    fn add(
        &mut self,
        number: usize,
        severity: LintSeverity,
        at: At,
        message: String,
    ) -> Advice<'_> {
        let rule = rules::rule(number);
        self.findings.push(LintFinding {
            rule: rule.number,
            name: rule.name,
            severity,
            file: self.source.name.clone(),
            line: at.line,
            column: at.column,
            message,
            why: rule.why,
            proof: rule.proof,
            fix: None,
            edit: None,
        });
        Advice(self.findings.last_mut())
    }

    fn error(&mut self, number: usize, at: At, message: String) -> Advice<'_> {
        self.add(number, LintSeverity::Error, at, message)
    }

    fn warning(&mut self, number: usize, at: At, message: String) -> Advice<'_> {
        self.add(number, LintSeverity::Warning, at, message)
    }

    fn note(&mut self, number: usize, at: At, message: String) -> Advice<'_> {
        self.add(number, LintSeverity::Note, at, message)
    }
}

/// What to do about the finding that was added last.
struct Advice<'a>(Option<&'a mut LintFinding>);

impl Advice<'_> {
    fn fix(mut self, text: impl Into<String>) -> Self {
        if let Some(own) = &mut self.0 {
            own.fix = Some(text.into());
        }
        self
    }

    fn edit(mut self, edit: Option<Edit>) {
        if let Some(own) = &mut self.0 {
            own.edit = edit;
        }
    }
}

/// Looks through files.
pub fn lint(input: &LintInput<'_>) -> Lint {
    let mut all = Lint { findings: Vec::new(), documents: 0, passed_over: Vec::new() };
    let mut read: Vec<(Source, Vec<Node>)> = Vec::new();
    for file in input.files {
        if is_template(&file.text) {
            all.passed_over.push(template(file));
            continue;
        }
        match documents(&file.text) {
            Ok(own) => read.push((Source::new(&file.name, &file.text, &own), own)),
            Err(_) if file.text.contains("{{") => all.passed_over.push(template(file)),
            Err(error) => {
                let source = Source::new(&file.name, "", &[]);
                let mut found = Found { source: &source, findings: Vec::new() };
                let at = At { line: error.line, column: error.column, ..At::default() };
                let message = format!("this cannot be read as YAML: {}", error.message);
                found.error(0, at, message);
                all.findings.append(&mut found.findings);
            }
        }
    }
    let parts: Vec<(&Source, &Node)> = read
        .iter()
        .flat_map(|(source, own)| {
            own.iter().flat_map(manifest::parts).map(move |part| (source, part))
        })
        .collect();
    let nodes: Vec<&Node> = parts.iter().map(|(_, node)| *node).collect();
    let files = Files::new(input, &nodes);
    for (source, node) in parts {
        let mut found = Found { source, findings: Vec::new() };
        if look(node, &files, &mut found) {
            all.documents += 1;
        } else {
            let kind = node.get("kind").and_then(Node::text).unwrap_or("no kind");
            all.passed_over.push(PassedOver {
                file: source.name.clone(),
                line: node.at.line,
                kind: kind.to_owned(),
                why: "no rule is about it".to_owned(),
            });
        }
        all.findings.append(&mut found.findings);
    }
    let number = |rule: &str| rule.trim_start_matches('L').parse().unwrap_or(0_u32);
    all.findings.sort_by(|a, b| {
        (&a.file, a.line, number(a.rule), a.column, &a.message).cmp(&(
            &b.file,
            b.line,
            number(b.rule),
            b.column,
            &b.message,
        ))
    });
    // What an anchor stands for is looked at wherever it is used, and said once.
    all.findings.dedup();
    all
}

/// Looks at a document; whether it is one that some rule is about.
fn look(node: &Node, files: &Files<'_>, found: &mut Found<'_>) -> bool {
    let scaler = manifest::scaler(node);
    let workload = workload::workload(node);
    let rules = manifest::rules_of(node);
    let gateway = gateways::is_one(node);
    shapes::check_api(node, found);
    if let Some(own) = &scaler {
        scalers::check(own, files, found);
        signals::check(own, files, found);
        shapes::check_fields(own, found);
    }
    if let Some(own) = &workload {
        workloads::check(own, files, found);
    }
    signals::check_rules(&rules, files, found);
    if gateway {
        gateways::check(node, files, found);
    }
    scaler.is_some() || workload.is_some() || !rules.is_empty() || gateway
}

/// Whether a file is for Helm: its values are not there yet. Prometheus has templates too, but not these names.
fn is_template(text: &str) -> bool {
    text.split("{{").skip(1).any(|after| {
        let after = after.trim_start_matches('-').trim_start();
        [".Values", ".Release", ".Chart", "$.Values", "include ", "toYaml"]
            .iter()
            .any(|word| after.starts_with(word))
    })
}

fn template(file: &LintFile) -> PassedOver {
    PassedOver {
        file: file.name.clone(),
        line: 1,
        kind: "template".to_owned(),
        why: "its values are not filled in: render it first, with `helm template`".to_owned(),
    }
}

/// A number in no more digits than it needs.
fn shown(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{number}");
    }
    let digits = if number.abs() >= 100.0 {
        0
    } else if number.abs() >= 1.0 {
        2
    } else {
        3
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
