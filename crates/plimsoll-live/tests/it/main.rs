//! A Prometheus, asked and read.

mod client;
mod prometheus;
