#![no_main]

use std::num::NonZero;

// Every record is counted once, whatever it is.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut text = b"{".to_vec();
    text.extend_from_slice(bytes);
    check(&text);
    let mut array = b"[{".to_vec();
    array.extend_from_slice(bytes);
    check(&array);
});

fn check(bytes: &[u8]) {
    match plimsoll_ledger::inspect("fuzz", bytes, NonZero::<usize>::MIN) {
        Ok(files) => {
            for file in files {
                let passed: u64 = file.passed_over.values().sum();
                assert_eq!(file.rows_in, file.rows_added + file.rejected + passed);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
