//! Scenario files: what is built in, and what is said of mistakes.

mod catalog;
mod corpus;
mod diagnostics;
mod kernels;
