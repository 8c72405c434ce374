//! The fuzzers' corpus, as a plain test: every input gets an answer.

use std::path::Path;

use plimsoll_fleet::{Part, from_hf};
use plimsoll_scenario::{Source, builtin, parse, parse_catalog};
use plimsoll_units::{Bytes, Fraction, Seconds, Tokens, TokensPerSecond, UsdPerHour, UsdPerToken};

fn each(target: &str, least: usize, check: impl Fn(&str, &str)) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= least, "{} has only {} inputs", directory.display(), files.len());
    for file in files {
        let bytes = std::fs::read(&file).expect("readable");
        check(&file.display().to_string(), &String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn scenarios() {
    each("scenario", 8, |name, text| match parse(&Source::new(name, text), builtin()) {
        Ok(loaded) => {
            let demand = loaded.demand(jiff::civil::date(2026, 11, 15));
            let demand = demand.unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(!demand.hour_label(9599).is_empty(), "{name}");
            for class in &demand.classes {
                let hours = 0..class.hours.len();
                let load: f64 = hours.map(|h| class.expected_tokens(h, true)).sum();
                assert!(load.is_finite() && load >= 0.0, "{name}: {load}");
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "{name}");
            mistakes.iter().for_each(|m| assert!(!m.render(false, 80).is_empty()));
        }
    });
}

#[test]
fn catalogues() {
    each("catalog", 2, |name, text| {
        if let Err(mistakes) = parse_catalog(&Source::new(name, text)) {
            assert!(!mistakes.is_empty(), "{name}");
        }
    });
}

#[test]
fn quantities() {
    each("units", 10, |_, text| {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Tokens>();
        let _ = text.parse::<UsdPerHour>();
        let _ = text.parse::<UsdPerToken>();
        let _ = text.parse::<Fraction>();
        let _ = text.parse::<TokensPerSecond>();
        if let Ok(seconds) = text.parse::<Seconds>() {
            assert!(seconds.to_string().parse::<Seconds>().is_ok(), "{seconds}");
        }
    });
}

#[test]
fn configurations() {
    each("hf_config", 5, |name, text| match from_hf(text) {
        Ok(model) => assert!(model.parameters_active() <= model.parameters(Part::Text), "{name}"),
        Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
    });
}
