//! Results of benchmarks and engines, as files have them.

mod corpus;
mod performance_cases;
mod results;
