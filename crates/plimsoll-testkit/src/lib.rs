//! For tests only: demand whose truth is known, and how much a test does in which tier.
//!
//! **Owns** generators with a known answer, and the numbers of cases. **Refuses** to be linked into the binary.

mod demand;
mod tier;

pub use demand::{
    Kind, Lengths, Truth, class, fresh_noise, history, hourly, lose, of_classes, refuse,
};
pub use tier::{cases, long_tests, runs_long, sized, skipped};
