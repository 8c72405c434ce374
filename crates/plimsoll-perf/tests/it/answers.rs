//! The benchmark's answers: a speed-up changes the time they take, nothing else.

use crate::support;

/// A fixed sequence of steps takes the same picoseconds, on every machine. Change the constant only with the commit that says why steps take another time.
#[test]
fn the_benchmark_gives_the_same_answers() {
    assert_eq!(support::answers(&support::model()), support::ANSWERS);
}
