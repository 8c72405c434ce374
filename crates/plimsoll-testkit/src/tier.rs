//! Two tiers of tests: `cargo test` is quick; `PLIMSOLL_LONG_TESTS=1 cargo test` runs everything. Each test is in both, or says that it was skipped.

/// Cases of a property in the quick tier.
const QUICK_CASES: u32 = 32;

/// Whether the long tests run, too.
pub fn long_tests() -> bool {
    std::env::var_os("PLIMSOLL_LONG_TESTS").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Whether a test that takes long is to run. Where it is not, that is said past the harness, which would hide it.
pub fn runs_long(test: &str) -> bool {
    if !long_tests() {
        skipped(&format!("{test} takes long (set PLIMSOLL_LONG_TESTS=1)"));
    }
    long_tests()
}

/// Says that a test, or a part of one, did not run, and why.
pub fn skipped(why: &str) {
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("SKIPPED: {why}\n"));
}

/// How many cases a property is tried on: `all` in the long tier, and no more than 32 of them in the quick one. `PROPTEST_CASES` sets another number, as it does
/// for properties that leave the number to proptest.
pub fn cases(all: u32) -> u32 {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    wanted.unwrap_or(if long_tests() { all } else { all.min(QUICK_CASES) })
}

/// The size of a test that is no property: so much in the quick tier, so much in the long one.
pub fn sized<T>(quick: T, long: T) -> T {
    if long_tests() { long } else { quick }
}
