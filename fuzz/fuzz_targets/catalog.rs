#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_scenario::{Source, parse_catalog};

fuzz_target!(|text: &str| {
    if let Err(mistakes) = parse_catalog(&Source::new("fuzz.toml", text)) {
        assert!(!mistakes.is_empty(), "refused without a reason");
    }
});
