//! All integration tests of the crate: one binary is linked once.

mod emit;
mod found;
mod lint;
mod linted;
