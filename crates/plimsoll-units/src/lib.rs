//! Quantities of LLM serving, each with a type and only the operations that mean something.
//!
//! **Owns** [`Tokens`], [`Bytes`], [`Seconds`], [`Usd`], [`Fraction`], [`Factor`] and their rates and
//! prices; reading what people write (`80GiB`, `400ms`, `1.2M tok/s`, `$0.15/Mtok`, `55%`) and
//! printing what people read. **Refuses** domain nouns and statistics.
//!
//! Counts and money are whole numbers, so sums are exact. Everything continuous is finite and
//! non-negative by construction. No operation panics, wraps or yields a NaN: an operator that could
//! pass its type's end stops there instead. Parsers refuse values a thousand times below that end, so a
//! saturated value cannot be typed in, and it errs to the safe side: too large never fits.
//!
//! ```
//! use plimsoll_units::{Bytes, BytesPerToken, Tokens};
//!
//! let free: Bytes = "40 GiB".parse()?;
//! let kv = BytesPerToken::new(131_072); // Llama-3.1-8B in bf16
//! assert_eq!(free.tokens_that_fit(kv), Some(Tokens::new(327_680)));
//! assert_eq!(free.to_string(), "40 GiB");
//! # Ok::<(), plimsoll_units::ParseError>(())
//! ```

mod count;
mod decimal;
mod money;
mod parse;
mod rate;
mod show;
mod time;

pub use count::{Bytes, BytesPerToken, Tokens};
pub use money::{Usd, UsdPerByte, UsdPerCall, UsdPerHour, UsdPerKwh, UsdPerToken};
pub use parse::{ParseError, Problem};
pub use rate::{BytesPerSecond, Factor, Fraction, OpsPerSecond, PerSecond, TokensPerSecond, Watts};
pub use show::grouped;
pub use time::Seconds;

#[cfg(test)]
mod tests;
