//! How long an engine step takes, always with what it rests on.
//!
//! **Owns** the work of a step ([`Work`], from shapes alone), the constants ([`Rates`]), the one formula that joins them ([`step()`]),
//! the same in whole picoseconds for simulators ([`StepModel`]), the least time that physics allows ([`floor`]), and the bounded fit
//! ([`bounded_least_squares`]). **Refuses** queues, clocks and files. `docs/model.md` derives the formula.
//!
//! ```
//! use plimsoll_fleet::from_hf;
//! use plimsoll_memory::{Format, Placement};
//! use plimsoll_perf::{Batch, Datasheet, Layout, Rates, Term, Work, floor, step};
//!
//! let llama = from_hf(r#"{ "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
//!     "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
//!     "vocab_size": 128256, "max_position_embeddings": 131072 }"#)?;
//! let layout = Layout { placement: Placement::single(), format: Format::Bf16, kv_element_bytes: 2,
//!     attention_replicas: 1, lora_rank: None, graph_tokens: Some(512) };
//! let work = Work::of(&llama, &layout)?;
//! // A device of 4.8 TB/s and 989 TFLOPS at its datasheet, with no overhead anywhere.
//! let sheet = Datasheet { bandwidth: 4.8e12, peak: 989e12, peak_plain: 989e12, link: 450e9 };
//! let mut rates = Rates { sheet, terms: [0.0; Term::ALL.len()], plain: [1.0, 1.0] };
//! for term in Term::ALL.into_iter().filter(|t| t.is_efficiency()) {
//!     rates.terms[term as usize] = 1.0;
//! }
//! // One token reads 15 GB of weights, the embedding left out: 3.1 ms, whatever the engine.
//! let one = Batch::decode(1.0, 0.0);
//! let time = step(&work, &rates, &one).total();
//! assert!((0.0031..0.0032).contains(&time) && time >= floor(&work, &rates, &one));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod around;
mod constants;
mod fit;
pub mod kernels;
mod model;
mod rates;
mod step;
mod work;
pub use around::{
    ContextBytes, Host, Launch, RequestPath, Time, context_bytes, kv_transfer_seconds,
};
pub use constants::{Constant, Key, NoConstant, Selection, band, constants, select};
pub use fit::{Fitted, Parameter, bounded_least_squares};
pub use model::{DecodePiece, StepLoad, StepModel};
pub use rates::{Datasheet, Rates, Term, dtype, family};
pub use step::{Batch, Parts, device, floor, launch, step};
pub use work::{AttentionWork, Experts, Gemm, Layout, Traffic, Work, peak_of};
