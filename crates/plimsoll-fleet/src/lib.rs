//! Supply: models, accelerators, instances, engines and prices, each fact with its source and date.
//!
//! **Owns** the nouns of hardware and software that a fleet is made of, the [`Catalog`] that knows them by
//! name, [`from_hf`], which turns any Hugging Face `config.json` into an [`Architecture`], what engines call their
//! [`metrics`], and [`promql`], which reads queries over them.
//! **Refuses** arithmetic on bytes and time: how much memory a shape takes or how long a step lasts is
//! for `plimsoll-memory` and `plimsoll-perf` to say.
//!
//! ```
//! let config = r#"{ "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
//!     "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
//!     "vocab_size": 128256, "max_position_embeddings": 131072 }"#;
//! let llama = plimsoll_fleet::from_hf(config)?;
//! assert_eq!(llama.parameters(plimsoll_fleet::Part::Text), 8_030_261_248);
//! # Ok::<(), plimsoll_fleet::HfError>(())
//! ```

mod architecture;
mod catalog;
mod engine;
mod fact;
mod hardware;
mod hf;
pub mod metrics;
mod price;
pub mod promql;
mod step_time;

pub use architecture::{
    Architecture, Attention, Indexer, Latent, Layer, Mixer, Mlp, Part, Recurrent, Role, Tensor,
};
pub use catalog::{Catalog, Kind, Model, Unknown, nearest};
pub use engine::{
    Condition, DeviceDefault, Engine, MemoryRule, PrintedTokens, Reserve, Version, VersionError,
};
pub use fact::Fact;
pub use hardware::{Accelerator, Instance, Interconnect, Peak};
pub use hf::{HfError, from_hf, from_hf_value};
pub use price::{NodePrice, TokenPrice};
pub use step_time::{StepBand, StepConstant};
