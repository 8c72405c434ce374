#![no_main]

use plimsoll_ledger::{Format, read_trace};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match read_trace(bytes, "fuzz", Format::Auto) {
    Ok((trace, rejects)) => assert_eq!(trace.len() as u64 + rejects.len() as u64, rejects.read()),
    Err(error) => assert!(!error.to_string().is_empty()),
});
