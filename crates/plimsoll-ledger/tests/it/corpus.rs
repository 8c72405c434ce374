//! The fuzzers' corpus, as a plain test: every input gets an answer.

use std::path::Path;

use plimsoll_ledger::{Format, read_trace};

#[test]
fn traces() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/trace");
    let mut inputs = 0;
    for entry in std::fs::read_dir(&directory).expect("a corpus") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("readable");
        match read_trace(bytes.as_slice(), &path.display().to_string(), Format::Auto) {
            Ok((trace, rejects)) => {
                assert_eq!(trace.len() as u64 + rejects.len() as u64, rejects.read(), "{path:?}");
            }
            Err(error) => assert!(!error.to_string().is_empty(), "{path:?}"),
        }
        inputs += 1;
    }
    assert!(inputs >= 4, "{} has only {inputs} inputs", directory.display());
}
