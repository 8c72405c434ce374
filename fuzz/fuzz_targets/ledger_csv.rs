#![no_main]

use std::num::NonZero;

/// Headings of the tables that are known: the first byte picks one.
const HEADINGS: [&str; 6] = [
    "TIMESTAMP,ContextTokens,GeneratedTokens\n",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
    "arrived_at,num_prefill_tokens,num_decode_tokens\n",
    "ts_arrival,prompt_tokens,output_tokens,status,tenant\n",
    "task_id,success,value,label,ts\n",
    "",
];

// Every record is counted once, whatever it is.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((pick, rest)) = bytes.split_first() else { return };
    let mut text = HEADINGS[usize::from(*pick) % HEADINGS.len()].as_bytes().to_vec();
    text.extend_from_slice(rest);
    match plimsoll_ledger::inspect("fuzz", &text, NonZero::<usize>::MIN) {
        Ok(files) => {
            for file in files {
                let passed: u64 = file.passed_over.values().sum();
                assert_eq!(file.rows_in, file.rows_added + file.rejected + passed);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
