#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_evidence::{engine_log, memory_cases};

fuzz_target!(|text: &str| {
    if let Err(error) = memory_cases(text) {
        assert!(!error.to_string().is_empty());
    }
    let _ = engine_log(text);
});
