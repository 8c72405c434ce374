//! What a simulation keeps is small. How its cost grows is a bar of `benches/scale.rs`.

use plimsoll_sim::Outcome;

/// An outcome is under a hundred bytes, so that a million that are kept are under a hundred megabytes.
#[test]
fn an_outcome_is_small() {
    assert!(size_of::<Outcome>() < 100, "{} bytes", size_of::<Outcome>());
}
