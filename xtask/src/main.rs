//! Chores of the repository. `cargo xtask ci` is all of CI, runnable at a desk.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to whoever runs it")]

mod constants;
mod ledger;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let chore = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let done = match chore.as_str() {
        "ci" => ci(),
        "docs" => docs(rest.iter().any(|a| a == "--check")),
        "heavy" => heavy(),
        "constants" => constants::constants(&root(), rest.iter().any(|a| a == "--quick")),
        "ledger-bench" => {
            let rows = rest.first().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
            ledger::bench(rows)
        }
        "tidy" => tidy::tidy(&root()),
        "validation" => validation(rest.iter().any(|a| a == "--check")),
        _ => Err("usage: cargo xtask ci | constants [--quick] | docs [--check] | heavy | ledger-bench [ROWS] | tidy | validation [--check]".to_owned()),
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

/// Everything that must hold before a change lands, cheap things first.
/// What is tested apart, each test in a process of its own. Tests that start servers, browsers and reviews of every example have processes anyway, and take minutes.
const APART: &str = "not (binary(review_pages) or binary(serve_browser) or binary(serve_load) or binary(what_if) or binary(cluster))";

fn ci() -> Result<(), String> {
    let mut missing = Vec::new();
    if has("fmt") {
        step("format", &["fmt", "--all", "--check"])?;
    } else {
        missing.push("rustfmt");
    }
    if has("clippy") {
        step(
            "lints",
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        )?;
    } else {
        missing.push("clippy");
    }
    println!("== tidy");
    tidy::tidy(&root())?;
    println!("== generated references");
    docs(true)?;
    println!("== validation tables");
    validation(true)?;
    heavy_where_changed()?;
    // The README's own command, so that what it promises is what is tested.
    step("tests", &["test", "--workspace", "--locked"])?;
    if has("nextest") {
        // Once more, each test in a process of its own: none may lean on another. They run side by side, so how long answers take says nothing here.
        step_with(
            "tests apart",
            &["nextest", "run", "--workspace", "--locked", "-E", APART],
            &[("PLIMSOLL_LOAD_SECONDS", "")],
        )?;
    } else {
        missing.push("cargo-nextest");
    }
    step_with(
        "documentation",
        &["doc", "--workspace", "--no-deps", "--locked"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    if has("deny") {
        step("licences and advisories", &["deny", "check"])?;
    } else {
        missing.push("cargo-deny");
    }
    if missing.is_empty() {
        println!("== all of it passed");
    } else {
        println!("== passed, without what is not installed: {}", missing.join(", "));
    }
    Ok(())
}

/// The features that are left out of the default build. DataFusion and Ballista are large: they are built unoptimised, and once
/// for all of them.
const HEAVY: &str =
    "plimsoll/sql,plimsoll/cluster,plimsoll/object-store,plimsoll-query/cluster-test";

/// Builds and tests the program with SQL, clusters and object stores.
fn heavy() -> Result<(), String> {
    let packages = ["--profile", "heavy", "-p", "plimsoll-query", "-p", "plimsoll", "--locked"];
    let features = ["--features", HEAVY];
    let tests = ["--test", "sql", "--test", "cluster", "--test", "object_store", "--test", "query"];
    step("heavy features", &[&["test"], &packages[..], &features, &tests].concat())?;
    let own = ["--lib", "--", "cluster::", "scan::"];
    step("heavy features, within", &[&["test"], &packages[..], &features, &own].concat())
}

/// The same where something changed that they depend on. A target directory remembers what it was tested for, so that a fresh one
/// always tests.
fn heavy_where_changed() -> Result<(), String> {
    let about = "the ledger, the study's profile and the lock file";
    let found = fingerprint()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let stamp = target.join("heavy-features.stamp");
    let known = std::fs::read_to_string(&stamp).unwrap_or_default();
    if known == found {
        println!("== heavy features: skipped: {about} are as they were when they passed");
        return Ok(());
    }
    let why = if known.is_empty() { "they were not tested here yet" } else { "something changed" };
    println!("== heavy features: {why} ({about})");
    heavy()?;
    std::fs::write(&stamp, found).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// What the heavy features depend on, as one number.
fn fingerprint() -> Result<String, String> {
    use std::hash::Hasher as _;
    let mut hasher = std::hash::DefaultHasher::new();
    let wanted = [
        "crates/plimsoll-ledger/",
        "crates/plimsoll-query/",
        "crates/plimsoll-study/src/profile",
        "Cargo.lock",
    ];
    let mut files = tidy::tracked(&root())?;
    files.retain(|file| wanted.iter().any(|start| file.to_string_lossy().starts_with(start)));
    files.sort();
    for file in files {
        let bytes =
            std::fs::read(root().join(&file)).map_err(|e| format!("{}: {e}", file.display()))?;
        hasher.write(file.to_string_lossy().as_bytes());
        hasher.write_usize(bytes.len());
        hasher.write(&bytes);
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether `cargo NAME` is there.
fn has(name: &str) -> bool {
    cargo().args([name, "--version"]).output().is_ok_and(|o| o.status.success())
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

/// Writes the generated references, or reports the stale ones.
fn docs(check: bool) -> Result<(), String> {
    let references = [
        ("docs/reference/scenario.md", plimsoll_scenario::scenario_reference()),
        ("docs/reference/cli.md", plimsoll::cli_reference()),
        (
            "docs/reference/scenario.schema.json",
            format!("{:#}\n", plimsoll_scenario::json_schema()),
        ),
    ];
    let mut stale = Vec::new();
    for (name, text) in references {
        let path = root().join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            std::fs::write(&path, text).map_err(|e| format!("{name}: {e}"))?;
            println!("wrote {name}");
        }
    }
    if stale.is_empty() {
        Ok(())
    } else {
        Err(format!("stale: {}; run `cargo xtask docs`", stale.join(", ")))
    }
}

/// Writes the error tables of `docs/validation.md` from the published cases, or reports that they are stale. Those are not
/// ours to ship: without them there is nothing to do, and that is said.
fn validation(check: bool) -> Result<(), String> {
    let shared =
        std::env::var_os("PLIMSOLL_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let cases = shared.join("data/kv_cases.json");
    if !cases.is_file() {
        println!("SKIPPED: no published cases at {} (set PLIMSOLL_SHARED)", cases.display());
        return Ok(());
    }
    let answer = |arguments: &[&std::ffi::OsStr]| -> Result<String, String> {
        let mut all = vec!["plimsoll".into(), "--as-of".into(), "2026-11-15".into()];
        all.extend(arguments.iter().map(|a| (*a).to_owned()));
        let (mut table, mut complaints) = (Vec::new(), Vec::new());
        if plimsoll::run(&all, &mut table, &mut complaints) != 0 {
            return Err(format!("validation failed: {}", String::from_utf8_lossy(&complaints)));
        }
        Ok(String::from_utf8_lossy(&table).into_owned())
    };
    let memory = answer(&["validate".as_ref(), cases.as_os_str()])?;
    let published = shared.join("data/perf/cases.json");
    let performance = answer(&["validate".as_ref(), published.as_os_str()])?;
    let own = answer(&["validate".as_ref()])?;
    let text = format!(
        "# Predictions against measurements\n\nGenerated by `cargo xtask validation`; CI fails when it is stale. What is predicted and why it \
         misses: [model.md](model.md).\n\n## Memory: KV capacity of 33 published engine logs\n\nScored cases have inputs that are \
         known apart from the KV figure itself. Each is predicted from its inputs alone.\n\n```\n{memory}```\n\n\
         ## Step times: 2,759 published measurements\n\nEach number is predicted from its inputs alone, with the catalogue's constants, which were \
         fitted to these cases: what to expect of a model and device that are not among them is in the bands of `plimsoll catalog engines`.\n\n\
         ```\n{performance}```\n\n## Step times: our own vLLM 0.24 on an H200, calibrated\n\n`plimsoll validate`: each pool is fitted to the closed loops of its step logs; each run is \
         predicted by a fit that has not seen it, and the open loops by one that has seen none of them.\n\n```\n{own}```\n"
    );
    let mut stale = Vec::new();
    for (name, text) in [("docs/validation.md", text), ("docs/model.md", summarised(&published)?)] {
        let path = root().join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(name);
            continue;
        }
        std::fs::write(&path, text).map_err(|e| format!("{name}: {e}"))?;
        println!("wrote {name}");
    }
    if !stale.is_empty() {
        return Err(format!("stale: {}; run `cargo xtask validation`", stale.join(", ")));
    }
    Ok(())
}

/// `docs/model.md` with its short table of errors renewed.
fn summarised(published: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(published).map_err(|e| e.to_string())?;
    let cases = plimsoll_evidence::performance_cases(&text).map_err(|e| e.to_string())?;
    let catalog = plimsoll_scenario::builtin();
    let result = plimsoll_study::validate_performance(&cases, catalog);
    let mut table = String::from(
        "| what | n | median error | p90 | bias | not seen: median | p90 |\n|---|---|---|---|---|---|---|\n",
    );
    let shown = [
        ("dense", "gap between tokens, dense"),
        ("moe", "gap between tokens, experts"),
        ("attention-dp", "gap between tokens, attention copies"),
        ("max throughput", "throughput, all requests at once"),
        ("ttft under load, dense", "first token under load, dense"),
        ("ttft under load, moe", "first token under load, experts"),
    ];
    for (name, label) in shown {
        let Some(g) = result.groups.iter().find(|g| g.name == name) else { continue };
        let kind = if name == "max throughput" { "throughput" } else { name };
        let band = catalog.step_bands.iter().find(|b| b.kind == kind && b.family.is_none());
        let unseen = band.map_or_else(
            || "| |".to_owned(),
            |b| format!("{:.1}% | {:.1}% |", b.median_abs_pct, b.p90_abs_pct),
        );
        table += &format!(
            "| {label} | {} | {:.1}% | {:.1}% | {:+.1}% | {unseen}\n",
            g.n, g.median_abs_pct, g.p90_abs_pct, g.bias_pct
        );
    }
    table += &format!(
        "\nOf {} pairs of accelerators measured alike and more than 20% apart, {} come out in the right order. {} constants.\n",
        result.ranking.pairs, result.ranking.right, result.constants
    );
    let (begin, end) = ("<!-- generated by `cargo xtask validation` -->\n", "<!-- end -->");
    let page = std::fs::read_to_string(root().join("docs/model.md")).map_err(|e| e.to_string())?;
    let (before, rest) = page.split_once(begin).ok_or("docs/model.md has lost its mark")?;
    let (_, after) = rest.split_once(end).ok_or("docs/model.md has lost its second mark")?;
    Ok(format!("{before}{begin}\n{table}\n{end}{after}"))
}
