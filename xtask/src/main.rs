//! Chores of the repository. `cargo xtask check` while working; `cargo xtask ci` is all of CI, runnable at a desk.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to whoever runs it")]

mod heavy;
mod tidy;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask check | ci | heavy | tidy";

/// Set for tests that take long to run, too.
const LONG_TESTS: (&str, &str) = ("PLIMSOLL_LONG_TESTS", "1");

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let done = match chore.as_str() {
        "check" => check(),
        "ci" => ci(),
        "heavy" => heavy::run_and_record(),
        "tidy" => tidy::tidy(&root()),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is quick: format, tidiness, and lints of the crates that differ from the last commit but one, or from upstream where there is one.
fn check() -> Result<(), String> {
    format_and_tidy()?;
    let scope = match changed_crates()? {
        Scope::Crates(names) if names.is_empty() => {
            println!("== lints: no crate changed");
            return Ok(());
        }
        Scope::Crates(names) => {
            names.into_iter().flat_map(|name| ["-p".to_owned(), name]).collect()
        }
        Scope::Everything => vec!["--workspace".to_owned()],
    };
    let mut arguments = vec!["clippy", "--all-targets", "--locked"];
    arguments.extend(scope.iter().map(String::as_str));
    arguments.extend(["--", "-D", "warnings"]);
    step("lints", &arguments)
}

/// Everything that must hold before a change lands, cheap things first, each test once. `PLIMSOLL_CI=full` adds the heavy features, changed or not, and the bars that take minutes.
fn ci() -> Result<(), String> {
    let full = std::env::var("PLIMSOLL_CI").is_ok_and(|value| value == "full");
    format_and_tidy()?;
    step("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    step_with(
        "documentation",
        &["doc", "--workspace", "--no-deps", "--locked"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    // The README's own command, so that what it promises is what is tested; with the long tests.
    step_with("tests", &["test", "--workspace", "--locked"], &[LONG_TESTS])?;
    // How a simulation's cost grows. It looks at the clock, so it runs alone.
    step("bars", &["bench", "--package", "plimsoll-sim", "--bench", "scale", "--locked"])?;
    if full {
        step("bars of serve", &["bench", "--package", "plimsoll", "--bench", "serve", "--locked"])?;
    }
    heavy::run_where_changed(full)?;
    if has("deny") {
        step("licences and advisories", &["deny", "check"])?;
        println!("== all of it passed");
    } else {
        println!("== passed, without cargo-deny, which is not installed");
    }
    Ok(())
}

fn format_and_tidy() -> Result<(), String> {
    step("format", &["fmt", "--all", "--check"])?;
    println!("== tidy");
    tidy::tidy(&root())
}

/// What to lint.
enum Scope {
    Crates(BTreeSet<String>),
    /// Something changed that all of them rest on.
    Everything,
}

fn changed_crates() -> Result<Scope, String> {
    let base = if git(&["rev-parse", "--verify", "--quiet", "@{upstream}"]).is_ok() {
        "@{upstream}"
    } else {
        "HEAD~1"
    };
    let mut files = git(&["diff", "--name-only", base])?;
    files += &git(&["ls-files", "--others", "--exclude-standard"])?;
    let mut crates = BTreeSet::new();
    for file in files.lines() {
        let mut parts = file.split('/');
        match (parts.next(), parts.next()) {
            (Some("crates"), Some(name)) => crates.insert(name.to_owned()),
            (Some(name @ ("xtask" | "tools")), Some(_)) => crates.insert(name.to_owned()),
            (Some("Cargo.toml" | "Cargo.lock" | "clippy.toml"), None) => {
                return Ok(Scope::Everything);
            }
            _ => false,
        };
    }
    crates.retain(|name| {
        let folder = if name.starts_with("plimsoll") { root().join("crates") } else { root() };
        folder.join(name).is_dir()
    });
    Ok(Scope::Crates(crates))
}

/// What a git command prints.
fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("git {}: {error}", arguments.join(" ")))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("git {}: {complaint}", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether `cargo NAME` is there.
fn has(name: &str) -> bool {
    cargo().args([name, "--version"]).output().is_ok_and(|output| output.status.success())
}

fn step(title: &str, arguments: &[&str]) -> Result<(), String> {
    step_with(title, arguments, &[])
}

fn step_with(title: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    println!("== {title}: cargo {}", arguments.join(" "));
    let status = cargo().args(arguments).envs(environment.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{title} failed ({status})")),
        Err(error) => Err(format!("{title} could not be run: {error}")),
    }
}
