//! The floor plan, dead links, orphan files and words that do not belong here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The rooms from the inside out. A room may use rooms of earlier ranks, never one beside it.
const FLOOR_PLAN: [&[&str]; 15] = [
    &["plimsoll-units", "plimsoll-stats"],
    &["plimsoll-fleet", "plimsoll-workload"],
    &["plimsoll-testkit"],
    &["plimsoll-memory"],
    &["plimsoll-perf", "plimsoll-forecast"],
    &["plimsoll-sim"],
    &["plimsoll-cost"],
    &["plimsoll-plan"],
    &["plimsoll-load"],
    &["plimsoll-study"],
    &["plimsoll-scenario", "plimsoll-evidence", "plimsoll-ledger", "plimsoll-live"],
    &["plimsoll-report", "plimsoll-emit", "plimsoll-query"],
    &["plimsoll-web"],
    &["plimsoll"],
    &["tools", "xtask"],
];

/// Rooms that must not know certain crates.
const FENCES: [(&str, &[&str]); 3] = [
    ("plimsoll-units", &["serde", "serde_json"]),
    ("plimsoll-workload", &["serde", "serde_json", "toml"]),
    ("plimsoll-ledger", &["arrow-array", "arrow-cast", "arrow-schema", "datafusion", "tokio"]),
];

pub(crate) fn tidy(root: &Path) -> Result<(), String> {
    let mut complaints = Vec::new();
    let files = tracked(root)?;
    floor_plan(root, &mut complaints);
    links(root, &files, &mut complaints);
    orphans(root, &files, &mut complaints);
    words(root, &files, &mut complaints);
    cases(root, &files, &mut complaints);
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(format!("untidy:\n  {}", complaints.join("\n  ")))
    }
}

/// What git tracks, and what it would track.
pub(crate) fn tracked(root: &Path) -> Result<Vec<PathBuf>, String> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git ls-files: {e}"))?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    // A file that was deleted but not yet committed is still listed.
    Ok(listed.lines().map(PathBuf::from).filter(|p| root.join(p).is_file()).collect())
}

fn floor_plan(root: &Path, complaints: &mut Vec<String>) {
    let rank: BTreeMap<&str, usize> = FLOOR_PLAN
        .iter()
        .enumerate()
        .flat_map(|(i, rooms)| rooms.iter().map(move |r| (*r, i)))
        .collect();
    let Ok(crates) = std::fs::read_dir(root.join("crates")) else {
        complaints.push("there is no crates/ directory".to_owned());
        return;
    };
    let mut manifests: Vec<PathBuf> =
        crates.flatten().map(|e| e.path().join("Cargo.toml")).collect();
    manifests.extend(["tools/Cargo.toml", "xtask/Cargo.toml"].map(|name| root.join(name)));
    manifests.sort();
    for manifest in manifests {
        let Ok(text) = std::fs::read_to_string(&manifest) else {
            complaints.push(format!("{} cannot be read", manifest.display()));
            continue;
        };
        let Ok(table) = text.parse::<toml::Table>() else {
            complaints.push(format!("{} is not TOML", manifest.display()));
            continue;
        };
        let name = table["package"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(own) = rank.get(name.as_str()) else {
            complaints.push(format!("`{name}` is not on the floor plan of xtask/src/tidy.rs"));
            continue;
        };
        let dependencies =
            table.get("dependencies").and_then(|d| d.as_table()).cloned().unwrap_or_default();
        for (dependency, value) in &dependencies {
            if rank.get(dependency.as_str()).is_some_and(|other| other >= own) {
                complaints.push(format!("`{name}` uses `{dependency}`, which is not further in"));
            }
            let shared = value.get("workspace").and_then(|w| w.as_bool()) == Some(true);
            if !shared {
                complaints.push(format!(
                    "`{name}` fixes its own version of `{dependency}`; use the workspace's"
                ));
            }
        }
        for (room, fenced) in FENCES {
            for dependency in
                dependencies.keys().filter(|d| room == name && fenced.contains(&d.as_str()))
            {
                complaints.push(format!("`{name}` must not know `{dependency}`"));
            }
        }
    }
}

/// Links between our own documents lead somewhere.
fn links(root: &Path, files: &[PathBuf], complaints: &mut Vec<String>) {
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "md")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        for part in text.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || target.contains("://") {
                continue;
            }
            let base = root.join(file).parent().map(Path::to_path_buf).unwrap_or_default();
            if !base.join(path).exists() {
                complaints
                    .push(format!("{} links to {target}, which is not there", file.display()));
            }
        }
    }
}

/// Decisions are listed where they are looked for; examples are named where they are run.
fn orphans(root: &Path, files: &[PathBuf], complaints: &mut Vec<String>) {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    let index = read("docs/decisions/README.md");
    let examples = read("examples/README.md");
    for file in files {
        let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if name == "README.md" {
            continue;
        }
        if file.starts_with("docs/decisions") && !index.contains(&name) {
            complaints
                .push(format!("{} is not listed in docs/decisions/README.md", file.display()));
        }
        if file.starts_with("examples") && !examples.contains(&name) {
            complaints.push(format!("{} is not listed in examples/README.md", file.display()));
        }
        if name.ends_with(".snap.new") || name.ends_with(".orig") || name.ends_with(".rej") {
            complaints.push(format!("{} was left behind", file.display()));
        }
    }
}

/// What must not be committed: machine paths, and hosts of package registries.
fn words(root: &Path, files: &[PathBuf], complaints: &mut Vec<String>) {
    // In pieces, so that this list does not find itself.
    let fenced = [
        ["/ro", "ot/"],
        ["/ho", "me/"],
        ["/wo", "rk/"],
        ["crates", ".io"],
        ["pypi", ".org"],
        ["npmjs", ".org"],
        ["deb.debian", ".org"],
    ];
    for file in files {
        let name = file.to_string_lossy();
        // The lock file names its registry by necessity.
        if name == "Cargo.lock" || name.starts_with("fuzz/corpus") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        for word in fenced.map(|parts| parts.concat()) {
            if let Some(line) = text.lines().position(|l| l.contains(&word)) {
                complaints.push(format!("{name}:{}: `{word}` does not belong here", line + 1));
            }
        }
    }
}

/// How often a property is tried is said in one place.
fn cases(root: &Path, files: &[PathBuf], complaints: &mut Vec<String>) {
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let fixed = |start: &str| {
            text.split(start).skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        if fixed("with_cases(") || fixed("ProptestConfig { cases: ") {
            complaints.push(format!("{}: ask `plimsoll_testkit::cases` how many", file.display()));
        }
    }
}
