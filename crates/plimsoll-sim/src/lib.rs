//! Engines simulated: requests in, outcomes out.
//!
//! **Owns** queues, batching and memory pressure. **Refuses** files, threads, a seed of its own, and choosing a fleet. So far it has the plain
//! engine ([`PlainEngine`]), which takes one step at a time, and one whose cost does not grow with the batch ([`serve_fast`]), for which the plain one
//! is the oracle.
//!
//! ```
//! use plimsoll_sim::{Ask, Limits, PlainEngine};
//!
//! let limits = Limits { max_num_seqs: 8, max_num_batched_tokens: 100, blocks: 64, block_tokens: 16 };
//! let mut engine = PlainEngine::new(limits);
//! engine.arrive(Ask { id: 0, prompt: 250, output: 2, cached: 0 })?;
//! // A prompt of 250 tokens takes three steps of at most 100.
//! let mut tokens = Vec::new();
//! while let Some(step) = engine.schedule() {
//!     tokens.push(step.load.prefill + step.load.decodes);
//!     engine.finish(&step);
//! }
//! assert_eq!(tokens, [100, 100, 50, 1]);
//! # Ok::<(), plimsoll_sim::TooLong>(())
//! ```

mod fast;
mod plain;
mod serve;

pub use fast::{Steps, serve_fast};
pub use plain::{Ask, Given, Limits, PlainEngine, Step, TooLong};
pub use serve::{Arrivals, Pace, Served, Wanted, serve};
