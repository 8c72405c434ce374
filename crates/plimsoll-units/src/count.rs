//! Whole things: tokens, bytes, bytes per token.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};
use std::str::FromStr;

use crate::decimal::Round;
use crate::parse::{Grammar, ParseError, count_prefix};
use crate::show::{grouped, significant};

/// The largest count a parser accepts, so that a thousand of them still add up.
const PARSE_MAX: u128 = 1_000_000_000_000_000;

macro_rules! whole {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// None at all.
            pub const ZERO: Self = Self(0);

            /// This many.
            pub const fn new(n: u64) -> Self {
                Self(n)
            }

            /// How many.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The sum, or `None` past the end of the type.
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(n) => Some(Self(n)),
                    None => None,
                }
            }

            /// The product, or `None` past the end of the type.
            pub const fn checked_mul(self, n: u64) -> Option<Self> {
                match self.0.checked_mul(n) {
                    Some(n) => Some(Self(n)),
                    None => None,
                }
            }

            /// The difference, or `None` when `other` is the larger.
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(n) => Some(Self(n)),
                    None => None,
                }
            }

            /// What is left of `self` after `other`, at least zero.
            pub const fn less(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        /// Stops at the largest value instead of wrapping.
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        /// Stops at the largest value instead of wrapping.
        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, n: u64) -> Self {
                Self(self.0.saturating_mul(n))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }
    };
}

whole! {
    /// Tokens of text, whole.
    Tokens
}

whole! {
    /// Device memory, exact to the byte.
    Bytes
}

whole! {
    /// What one token of context occupies, such as KV cache per device.
    BytesPerToken
}

impl Bytes {
    /// 2^30 bytes, what a driver reports.
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// 10^9 bytes, what a datasheet prints.
    pub const fn gb(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// In units of 2^30, for printing and plotting.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / (1u64 << 30) as f64
    }

    /// The whole tokens that fit, rounded down; `None` when a token occupies nothing.
    pub fn tokens_that_fit(self, kv: BytesPerToken) -> Option<Tokens> {
        self.0.checked_div(kv.0).map(Tokens)
    }
}

/// What the tokens occupy.
impl Mul<BytesPerToken> for Tokens {
    type Output = Bytes;
    fn mul(self, kv: BytesPerToken) -> Bytes {
        Bytes(self.0.saturating_mul(kv.0))
    }
}

const TOKENS: Grammar = Grammar {
    expected: "a whole number of tokens",
    examples: "`900` or `32k`",
    likely: "",
    limit: "10^15 tokens",
    dollar: false,
};

/// Rounds a fraction of a token down.
impl FromStr for Tokens {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = TOKENS.split(input)?;
        let (factor, rest) = count_prefix(&w.unit);
        if !matches!(rest, "" | "tok" | "toks" | "token" | "tokens") {
            return Err(TOKENS.unknown_unit(&w));
        }
        let n = TOKENS.whole(&w, (factor, 1), PARSE_MAX, Round::Down)?;
        Ok(Self(u64::try_from(n).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&grouped(self.0))
    }
}

const BYTES: Grammar = Grammar {
    expected: "an amount of memory",
    examples: "`80GiB`, `141GB` or `512MiB`",
    likely: "GiB",
    limit: "10^18 bytes",
    dollar: false,
};

/// Rounds a fraction of a byte down.
impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = BYTES.split(input)?;
        if w.unit.is_empty() {
            return Err(BYTES.unit_missing(&w));
        }
        let factor = byte_unit(&w.unit).ok_or_else(|| BYTES.unknown_unit(&w))?;
        let n = BYTES.whole(&w, (factor, 1), 1_000_000_000_000_000_000, Round::Down)?;
        Ok(Self(u64::try_from(n).unwrap_or(u64::MAX)))
    }
}

/// `GiB` is binary, `GB` decimal, in any case.
pub(crate) fn byte_unit(unit: &str) -> Option<u128> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "pb" => 1_000_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        "pib" => 1 << 50,
        _ => return None,
    })
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(u64, &str); 5] = [
            (1 << 50, "PiB"),
            (1 << 40, "TiB"),
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
        ];
        let text = match STEPS.iter().find(|(size, _)| self.0 >= *size) {
            Some((size, name)) => {
                format!("{} {name}", significant(self.0 as f64 / *size as f64, 4))
            }
            None => format!("{} B", self.0),
        };
        f.pad(&text)
    }
}

impl fmt::Display for BytesPerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} B/tok", grouped(self.0)))
    }
}
