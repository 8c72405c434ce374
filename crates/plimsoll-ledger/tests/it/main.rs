//! Traces and logs as files have them.

mod corpus;
mod traces;
