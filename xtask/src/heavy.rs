//! The features that the default build leaves out: SQL, clusters, object stores. DataFusion and Ballista take many minutes to build, so they are tested only where something changed
//! since they passed. What they passed with is recorded in the repository: a machine with an empty cache need not build them either.

use std::hash::Hasher as _;

use crate::{root, step, tidy};

const CRATE: &str = "plimsoll-query";
/// What the record is of: their own crate, and every version.
const WATCHED: [&str; 2] = ["crates/plimsoll-query/", "Cargo.lock"];
/// Where it is.
const RECORD: &str = ".ci/heavy-features.passed";

/// Builds and tests them, and records with what they passed.
pub(crate) fn run_and_record() -> Result<(), String> {
    run()?;
    std::fs::write(root().join(RECORD), fingerprint()?).map_err(|e| format!("{RECORD}: {e}"))?;
    println!("wrote {RECORD}");
    Ok(())
}

/// Builds and tests them where they differ from what passed, or in any case.
pub(crate) fn run_where_changed(always: bool) -> Result<(), String> {
    let record = std::fs::read_to_string(root().join(RECORD)).unwrap_or_default();
    let changed = record != fingerprint()?;
    if !changed && !always {
        println!(
            "== heavy features: skipped: {CRATE} and Cargo.lock are as {RECORD} says they passed"
        );
        return Ok(());
    }
    run()?;
    if changed {
        println!("== heavy features passed; `cargo xtask heavy` would record it in {RECORD}");
    }
    Ok(())
}

fn run() -> Result<(), String> {
    let own = ["test", "--locked", "-p", CRATE, "--features"];
    step("heavy features", &[&own[..], &["sql,cluster,object-store,cluster-test"]].concat())?;
    let program = ["test", "--locked", "-p", "plimsoll", "--features"];
    let rest = ["sql,cluster,object-store", "--test", "it", "query::"];
    step("heavy features, in the program", &[&program[..], &rest].concat())
}

/// All that is watched, as one number.
fn fingerprint() -> Result<String, String> {
    let mut files = tidy::tracked(&root())?;
    files.retain(|file| WATCHED.iter().any(|start| file.to_string_lossy().starts_with(start)));
    files.sort();
    let mut hasher = std::hash::DefaultHasher::new();
    for file in files {
        let bytes =
            std::fs::read(root().join(&file)).map_err(|e| format!("{}: {e}", file.display()))?;
        hasher.write(file.to_string_lossy().as_bytes());
        hasher.write_usize(bytes.len());
        hasher.write(&bytes);
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}
