#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fleet::{Part, from_hf};

fuzz_target!(|text: &str| {
    match from_hf(text) {
        Ok(model) => {
            let total = model.parameters(Part::Text);
            assert!(model.parameters_active() <= total);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
