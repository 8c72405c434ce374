#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_scenario::{Source, builtin, parse};

fuzz_target!(|text: &str| {
    match parse(&Source::new("fuzz.toml", text), builtin()) {
        Ok(loaded) => assert!(!loaded.entries.is_empty()),
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "refused without a reason");
            for mistake in mistakes.iter().take(5) {
                assert!(!mistake.render(false, 80).is_empty());
            }
        }
    }
});
