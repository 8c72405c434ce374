//! Programmes of six accelerators, four regions, three modes and eight pools: what a bound, an answer and an explanation take.

#[path = "../tests/it/support/mod.rs"]
mod support;

use divan::Bencher;
use plimsoll_plan::{Effort, Outcome, solve};

fn main() {
    divan::main();
}

/// Bound and fleet, with the effort that the tests hold to a gap of 5%.
#[divan::bench(args = [1, 2, 3, 4, 5], sample_count = 3, sample_size = 1)]
fn answer(bencher: Bencher<'_, '_>, seed: u64) {
    let programme = support::large(seed, seed.is_multiple_of(2), 1.0);
    bencher.bench_local(|| solve(&programme, Effort { lps: 20, tries: 20_000, gap: 0.0 }));
}

/// The relaxation and what follows from rounding it.
#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn first_answer(bencher: Bencher<'_, '_>, seed: u64) {
    let programme = support::large(seed, seed.is_multiple_of(2), 1.0);
    bencher.bench_local(|| solve(&programme, Effort { lps: 1, tries: 0, gap: 0.0 }));
}

/// Four times the demand: the quotas are too small, and it says which.
#[divan::bench(args = [1, 2], sample_count = 1, sample_size = 1)]
fn explanation(bencher: Bencher<'_, '_>, seed: u64) {
    let programme = support::large(seed, seed.is_multiple_of(2), 4.0);
    bencher.bench_local(|| {
        let outcome = solve(&programme, Effort { lps: 8, tries: 0, gap: 0.0 });
        assert!(matches!(outcome, Ok(Outcome::Infeasible(_))));
    });
}
