//! Requests per second of one core, conversation lengths near saturation. Each run first holds its events against the ones it always gave.

mod support;

use divan::Bencher;
use divan::counter::ItemsCount;
use plimsoll_sim::Loop;
use support::{CONVERSATION, Hash, limits, model, run};

fn main() {
    let mut hash = Hash::default();
    run(&model(), limits(256), Loop::Open, CONVERSATION.arrivals(2_000), &mut hash);
    assert_eq!(hash.0, HASH, "the events changed");
    divan::main();
}

/// Of 2,000 requests at 256 sequences; change it in the commit that says why.
const HASH: u64 = 13_942_311_452_237_823_082;

/// A hundred thousand requests, by the largest running batch: at 64 they come faster than they are served, and most wait.
#[divan::bench(args = [64, 256, 1024], sample_count = 10)]
fn serve(bencher: Bencher<'_, '_>, max_num_seqs: usize) {
    let model = model();
    let arrivals: Vec<_> = CONVERSATION.arrivals(100_000).collect();
    bencher.counter(ItemsCount::new(arrivals.len())).bench_local(|| {
        let mut hash = Hash::default();
        run(&model, limits(max_num_seqs), Loop::Open, arrivals.iter().cloned(), &mut hash);
        hash.0
    });
}
