//! The fuzzers' corpus, as a plain test: every input gets an answer.

use std::path::Path;

use plimsoll_evidence::{performance_cases, results};

#[test]
fn results_of_tools() {
    for (target, least) in [
        ("bench_vllm", 4),
        ("bench_sglang", 2),
        ("bench_guidellm", 2),
        ("bench_aiperf", 5),
        ("bench_inference_perf", 3),
        ("bench_mlperf", 3),
        ("engine_run", 1),
    ] {
        for (name, text) in inputs(target, least) {
            match results(&name, &text) {
                Ok(read) => assert!(!read.points.is_empty() || !read.runs.is_empty(), "{name}"),
                Err(errors) => assert!(!errors.is_empty(), "{name}"),
            }
        }
    }
}

#[test]
fn validation_cases() {
    let mut read = 0;
    for (name, text) in inputs("performance_cases", 4) {
        match performance_cases(&text) {
            Ok(cases) => read += cases.len(),
            Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
        }
    }
    assert_eq!(read, 5);
}

/// A target's inputs, at least so many, by name.
fn inputs(target: &str, least: usize) -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= least, "{} has only {} inputs", directory.display(), files.len());
    let text =
        |file: &Path| String::from_utf8_lossy(&std::fs::read(file).expect("readable")).into_owned();
    files.iter().map(|file| (file.display().to_string(), text(file))).collect()
}
