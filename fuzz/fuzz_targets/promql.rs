#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fleet::promql::read;

fuzz_target!(|text: &str| match read(text) {
    Ok(tree) => {
        // What is printed is read again, and printed the same.
        let printed = tree.to_string();
        assert_eq!(read(&printed).map(|tree| tree.to_string()), Ok(printed));
    }
    Err(error) => assert!(error.at <= text.chars().count() && !error.message.is_empty()),
});
