//! `lint`: other people's manifests, and ours, checked for mistakes that were made before.

use std::collections::BTreeSet;
use std::io::{Read as _, Write};
use std::path::Path;

use plimsoll_emit::lint::{
    Edit, Lint, LintFacts, LintFile, LintInput, LintSeverity, fixed, lint, rules, sarif,
};
use plimsoll_report::table;
use plimsoll_scenario::Diagnostic;
use serde_json::{Value, json};

use super::live::{engine, plan_file};
use super::{either, tell};
use crate::args::{Global, LintArgs};
use crate::failure::Failure;
use crate::files;

/// A file of manifests is no longer than this.
const BYTES_MOST: u64 = 16 << 20;

/// What was found, and whether there was no error.
pub(super) fn answer(
    args: &LintArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<(String, bool), Failure> {
    if args.rules {
        return Ok((all_rules(global), true));
    }
    let plan = args.plan.as_ref().map(|path| plan_file(path)).transpose()?;
    let mut read = Vec::new();
    for path in &args.files {
        read.extend(opened(path)?);
    }
    // What is named twice is one file.
    let mut seen = BTreeSet::new();
    read.retain(|file| {
        seen.insert(
            Path::new(&file.name).canonicalize().unwrap_or_else(|_| file.name.clone().into()),
        )
    });
    let facts = LintFacts {
        engine: args.engine.as_deref().map(told_engine).transpose()?,
        startup_p90_s: args.startup_p90.map(|own| own.get()),
        startup_p99_s: args.startup_p99.map(|own| own.get()),
        generation_p99_s: args.generation_p99.map(|own| own.get()),
    };
    let look = |files: &[LintFile]| lint(&LintInput { files, plan: plan.as_ref(), facts });
    let mut found = look(&read);
    if args.fix {
        let mended = mend(&mut read, &found)?;
        if mended > 0 {
            tell(global, err, &format!("mended {mended} of {}", found.findings.len()));
            found = look(&read);
        }
    }
    if let Some(path) = &args.sarif {
        files::write_whole(path, &format!("{:#}\n", sarif(&found, crate::VERSION)))?;
        tell(global, err, &format!("wrote {}", path.display()));
    }
    let clean = found.count(LintSeverity::Error) == 0;
    Ok((either(global, || document(&found), || text(&found)), clean))
}

/// Writes what is safe to change back to its file; says how many findings that mends.
fn mend(read: &mut [LintFile], found: &Lint) -> Result<usize, Failure> {
    let mut mended = 0;
    for file in read {
        let own = found.findings.iter().filter(|finding| finding.file == file.name);
        let edits: Vec<&Edit> = own.filter_map(|finding| finding.edit.as_ref()).collect();
        if edits.is_empty() || file.name == STDIN {
            continue;
        }
        file.text = fixed(&file.text, &edits);
        files::write_whole(Path::new(&file.name), &file.text)?;
        mended += edits.len();
    }
    Ok(mended)
}

const STDIN: &str = "(standard input)";

/// A file, what a directory has of YAML, or standard input.
fn opened(path: &Path) -> Result<Vec<LintFile>, Failure> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        let read = std::io::stdin().take(BYTES_MOST).read_to_string(&mut text);
        read.map_err(|error| {
            Failure::one(Diagnostic::about(
                "unreadable-file",
                STDIN,
                format!("cannot be read: {error}"),
            ))
        })?;
        return Ok(vec![LintFile { name: STDIN.to_owned(), text }]);
    }
    if path.is_dir() {
        let mut all = Vec::new();
        let mut below: Vec<_> = std::fs::read_dir(path)
            .map_err(|error| unreadable(path, &error))?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        below.sort();
        for own in below {
            // A link to a directory may lead back to where it lies.
            if own.is_symlink() && own.is_dir() {
                continue;
            }
            let yaml = own.extension().is_some_and(|end| end == "yaml" || end == "yml");
            if own.is_dir() || yaml {
                all.extend(opened(&own)?);
            }
        }
        return Ok(all);
    }
    let size = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    if size > BYTES_MOST {
        let message =
            format!("is {size} bytes long: manifests of more than {BYTES_MOST} are not read");
        return Err(Failure::one(Diagnostic::about(
            "too-large",
            path.display().to_string(),
            message,
        )));
    }
    Ok(vec![LintFile { name: path.display().to_string(), text: files::read_text(path)? }])
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot be opened: {error}");
    Failure::one(Diagnostic::about("unreadable-file", path.display().to_string(), message))
}

fn told_engine(
    text: &str,
) -> Result<(plimsoll_fleet::metrics::Reporter, plimsoll_fleet::Version), Failure> {
    match engine(text) {
        Some((reporter, Some(version))) => Ok((reporter, version)),
        _ => {
            let message = format!("`--engine {text}` is no engine with its version");
            Err(Failure::one(
                Diagnostic::about("usage", "command line", message)
                    .help("write `vllm@0.24`, `sglang@0.5.17`, `tensorrt-llm@1.3` or `tgi@3.3`"),
            ))
        }
    }
}

fn document(found: &Lint) -> Value {
    let mut all = json!({
        "schema": "plimsoll/lint/v1",
        "errors": found.count(LintSeverity::Error),
        "warnings": found.count(LintSeverity::Warning),
    });
    if let (Value::Object(all), Ok(Value::Object(body))) = (&mut all, serde_json::to_value(found)) {
        all.extend(body);
    }
    all
}

fn text(found: &Lint) -> String {
    let mut out = String::new();
    for own in &found.findings {
        let severity = match own.severity {
            LintSeverity::Error => "error",
            LintSeverity::Warning => "warning",
            LintSeverity::Note => "note",
        };
        out.push_str(&format!(
            "{}:{}:{}: {severity}[{} {}]: {}\n  why:   {}\n  proof: {}\n",
            own.file, own.line, own.column, own.rule, own.name, own.message, own.why, own.proof
        ));
        if let Some(fix) = &own.fix {
            let safe = if own.edit.is_some() { " (`--fix` does it)" } else { "" };
            out.push_str(&format!("  fix:   {}{safe}\n", fix.replace('\n', "\n         ")));
        }
        out.push('\n');
    }
    for own in &found.passed_over {
        out.push_str(&format!(
            "{}:{}: passed over: {}: {}\n",
            own.file, own.line, own.kind, own.why
        ));
    }
    let count = |severity| found.count(severity);
    let noun =
        |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    out.push_str(&format!(
        "{}, {}, {} in {}\n",
        noun(count(LintSeverity::Error), "error"),
        noun(count(LintSeverity::Warning), "warning"),
        noun(count(LintSeverity::Note), "note"),
        noun(found.documents, "document")
    ));
    out
}

fn all_rules(global: &Global) -> String {
    let json = || {
        let all: Vec<Value> = rules()
            .iter()
            .map(|own| json!({ "rule": own.number, "name": own.name, "what": own.what, "why": own.why, "proof": own.proof }))
            .collect();
        json!({ "schema": "plimsoll/lint/v1", "rules": all })
    };
    let text = || {
        let rows: Vec<Vec<String>> = rules()
            .iter()
            .map(|own| [own.number, own.name, own.what, own.proof].map(str::to_owned).to_vec())
            .collect();
        table(&["rule", "name", "looks for", "proof"], &rows)
    };
    either(global, json, text)
}
