//! All integration tests of the crate: one binary is linked once.

mod promql;
