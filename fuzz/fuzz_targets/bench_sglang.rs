#![no_main]

mod results;

libfuzzer_sys::fuzz_target!(|text: &str| results::answers(text));
