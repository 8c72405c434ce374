//! How long an engine step takes.
mod around;
mod constants;
mod fit;
mod model;
mod rates;
mod step;
mod work;
pub use around::{RequestPath, kv_transfer_seconds};
pub use constants::{Constant, Key, NoConstant, Selection, band, constants, select};
pub use fit::{Fitted, Parameter, bounded_least_squares};
pub use model::{DecodePiece, StepLoad, StepModel};
pub use rates::{Datasheet, Rates, Term, dtype, family};
pub use step::{Batch, Parts, floor, step};
pub use work::{AttentionWork, Experts, Gemm, Layout, Work, peak_of};
