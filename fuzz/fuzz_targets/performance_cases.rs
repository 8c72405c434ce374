#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_evidence::{cases, performance_cases};
use plimsoll_study::Load;

fuzz_target!(|text: &str| {
    let read = match performance_cases(text) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = cases(text);
            return;
        }
    };
    for case in &read {
        let load = match case.inputs.load {
            Load::Concurrency(x) | Load::Rate(x) | Load::StaticBatch(x) => Some(x),
            Load::AllAtOnce => None,
        };
        let targets = case.targets();
        let numbers = targets.iter().map(|t| Some(t.measured)).chain([load, case.inputs.prompt, case.inputs.output]);
        for number in numbers.flatten() {
            assert!(number > 0.0 && number <= 1e12 && (1.0 / number).is_finite(), "{number}");
        }
        assert!(case.inputs.devices >= 1 && case.inputs.pipeline >= 1 && case.inputs.attention_replicas >= 1);
    }
});
