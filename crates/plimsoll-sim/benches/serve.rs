//! Requests per second of one core, conversation lengths near saturation. Each run first holds its events against the ones it always gave.

#[path = "../tests/support/mod.rs"]
mod support;

use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    let (_, hash) = support::run(&support::model(), 256, support::conversation(2_000));
    assert_eq!(hash, HASH, "the events changed");
    divan::main();
}

/// Of 2,000 requests at 256 sequences; change it in the commit that says why.
const HASH: u64 = 13_942_311_452_237_823_082;

/// A hundred thousand requests, by the largest running batch: the cost of a step must not grow with it.
#[divan::bench(args = [64, 256, 1024], sample_count = 10)]
fn serve(bencher: Bencher<'_, '_>, max_num_seqs: usize) {
    let model = support::model();
    let arrivals: Vec<_> = support::conversation(100_000).collect();
    bencher
        .counter(ItemsCount::new(arrivals.len()))
        .bench_local(|| support::run(&model, max_num_seqs, arrivals.iter().cloned()));
}
