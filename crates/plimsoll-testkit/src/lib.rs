//! For tests only: demand whose truth is known.
//!
//! **Owns** generators with a known answer. **Refuses** to be linked into the binary.

mod demand;

pub use demand::{
    Kind, Lengths, Truth, class, fresh_noise, history, hourly, lose, of_classes, refuse,
};
