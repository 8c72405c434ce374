//! The fuzzers' corpus, as a plain test: every input gets an answer.

use std::path::Path;

use plimsoll_evidence::results;

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
        let directory =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let mut files: Vec<_> = std::fs::read_dir(&directory)
            .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        assert!(files.len() >= least, "{} has only {} inputs", directory.display(), files.len());
        for file in files {
            let bytes = std::fs::read(&file).expect("readable");
            let name = file.display().to_string();
            match results(&name, &String::from_utf8_lossy(&bytes)) {
                Ok(read) => assert!(!read.points.is_empty() || !read.runs.is_empty(), "{name}"),
                Err(errors) => assert!(!errors.is_empty(), "{name}"),
            }
        }
    }
}
