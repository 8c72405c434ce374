//! What fits: weights and KV cache per device, exact to the byte.
//!
//! **Owns** how tensors are stored and shared among devices ([`weights`]) and what a token of context
//! occupies ([`KvLayout`]), as the engines lay it out: heads replicated beyond their number, latents
//! undivided, sliding and recurrent layers in groups that share one pool of blocks; and what an engine
//! leaves for it ([`budget`]). **Refuses** time and money. Weights and KV are exact; what is modelled from
//! published logs says so in its line of the budget.
//!
//! ```
//! use plimsoll_fleet::from_hf;
//! use plimsoll_memory::{Format, KvLayout, Placement, weights};
//! use plimsoll_units::Tokens;
//!
//! let llama = from_hf(r#"{ "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
//!     "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
//!     "vocab_size": 128256, "max_position_embeddings": 131072 }"#)?;
//! let one = Placement::single();
//! // 8,030,261,248 parameters of two bytes each.
//! assert_eq!(weights(&llama, &one, Format::Bf16, false)?.total().get(), 16_060_522_496);
//! // Two times 32 layers, 8 heads of 128, two bytes: 131,072 bytes a token.
//! let kv = KvLayout::of(&llama, &one, 2, Tokens::new(16), None)?;
//! assert_eq!(kv.block_bytes().get(), 16 * 131_072);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod kv;
mod placement;
mod weights;

pub use budget::{Bookkeeping, Budget, Line, Printed, Setup, budget};
pub use kv::{Group, Kind, KvLayout};
pub use placement::{MemoryError, Placement};
pub use weights::{Format, Shard, Weights, shards, weights};

#[cfg(test)]
mod tests;
