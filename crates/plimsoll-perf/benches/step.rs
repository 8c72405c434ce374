//! Step times per second, over a fixed sequence of loads. Each run first holds its answers against the ones it always gave.

#[path = "../tests/it/support/mod.rs"]
mod support;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    assert_eq!(support::answers(&support::model()), support::ANSWERS, "the answers changed");
    divan::main();
}

const COUNT: usize = 4096;

/// Steps of decodes alone.
#[divan::bench]
fn decode(bencher: Bencher<'_, '_>) {
    steps(bencher, false);
}

/// Steps that read a part of a prompt, too.
#[divan::bench]
fn mixed(bencher: Bencher<'_, '_>) {
    steps(bencher, true);
}

fn steps(bencher: Bencher<'_, '_>, mixed: bool) {
    let (model, loads) = (support::model(), support::loads(COUNT, mixed));
    bencher
        .counter(ItemsCount::new(COUNT))
        .bench_local(|| support::hash(loads.iter().map(|load| model.step(black_box(load)))));
}

/// The affine piece that a leap over decode steps needs.
#[divan::bench]
fn piece(bencher: Bencher<'_, '_>) {
    let (model, loads) = (support::model(), support::loads(COUNT, false));
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        support::hash(loads.iter().map(|load| {
            let piece = model.decode_piece(black_box(load.decodes), black_box(load.context), 0);
            piece.at(load.context) ^ piece.until
        }))
    });
}

/// Tabulating a pool, once.
#[divan::bench]
fn tabulate() -> plimsoll_perf::StepModel {
    support::model()
}
