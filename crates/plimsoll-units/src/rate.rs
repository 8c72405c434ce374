//! Real-valued quantities: shares, multipliers, rates, power.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul};
use std::str::FromStr;

use crate::count::byte_unit;
use crate::parse::{Grammar, ParseError, Problem, count_prefix};
use crate::show::significant;
use crate::{Seconds, Tokens};

macro_rules! real {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Finite and not negative, by construction.
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            /// None at all.
            pub const ZERO: Self = Self(0.0);

            /// `None` for a negative, infinite or undefined number.
            pub fn new(x: f64) -> Option<Self> {
                (x.is_finite() && x >= 0.0).then_some(Self(x + 0.0))
            }

            /// As a plain number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        /// Stops at the largest finite value.
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self((self.0 + other.0).min(f64::MAX))
            }
        }

        /// Stops at the largest finite value.
        impl Mul<Factor> for $name {
            type Output = Self;
            fn mul(self, factor: Factor) -> Self {
                Self((self.0 * factor.0).min(f64::MAX))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }
    };
}

real! {
    /// A plain multiplier: `1.5` or `150%` or `1.5x`.
    Factor
}

real! {
    /// Events a second: requests, tasks, calls.
    PerSecond
}

real! {
    /// Tokens a second.
    TokensPerSecond
}

real! {
    /// Bytes a second: memory or link bandwidth.
    BytesPerSecond
}

real! {
    /// Arithmetic operations a second, dense.
    OpsPerSecond
}

real! {
    /// Electric power.
    Watts
}

impl Factor {
    /// Leaves everything as it is.
    pub const ONE: Self = Self(1.0);
}

impl PerSecond {
    /// How many are expected in this time.
    pub fn expected_in(self, time: Seconds) -> f64 {
        (self.0 * time.get()).min(f64::MAX)
    }
}

/// The token rate of requests of this length.
impl Mul<Tokens> for PerSecond {
    type Output = TokensPerSecond;
    fn mul(self, tokens: Tokens) -> TokensPerSecond {
        TokensPerSecond((self.0 * tokens.get() as f64).min(f64::MAX))
    }
}

/// A share between nothing and all of it: `0.55` or `55%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// None of it.
    pub const ZERO: Self = Self(0.0);
    /// All of it.
    pub const ONE: Self = Self(1.0);

    /// `None` outside 0 to 1.
    pub fn new(x: f64) -> Option<Self> {
        (0.0..=1.0).contains(&x).then_some(Self(x + 0.0))
    }

    /// As a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// What is not part of it.
    pub fn complement(self) -> Self {
        Self(1.0 - self.0)
    }

    /// This share of whole tokens, rounded to the nearest.
    pub fn of(self, tokens: Tokens) -> Tokens {
        Tokens::new((tokens.get() as f64 * self.0).round() as u64)
    }
}

const FRACTION: Grammar = Grammar {
    expected: "a share from 0 to 1",
    examples: "`0.55` or `55%`",
    likely: "%",
    limit: "100%",
    dollar: false,
};

impl FromStr for Fraction {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = FRACTION.split(input)?;
        let divisor = match w.unit.as_str() {
            "" => 1.0,
            "%" => 100.0,
            _ => return Err(FRACTION.unknown_unit(&w)),
        };
        // Dividing once keeps 55% equal to 0.55.
        let share = w.number.to_f64() / divisor;
        Self::new(share).ok_or_else(|| {
            // 1.5 is more likely a slip than one and a half percent.
            if w.unit.is_empty() && (2.0..=100.0).contains(&share) {
                let suggestion = format!("{}%", w.digits);
                FRACTION.error(input, Problem::PercentMissing { suggestion })
            } else {
                FRACTION.too_large(&w)
            }
        })
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", significant(self.0 * 100.0, 4)))
    }
}

const FACTOR: Grammar = Grammar {
    expected: "a multiplier",
    examples: "`1.5`, `3x` or `150%`",
    likely: "",
    limit: "10^9",
    dollar: false,
};

impl FromStr for Factor {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = FACTOR.split(input)?;
        let scale = match w.unit.as_str() {
            "" | "x" | "×" => 1.0,
            "%" => 0.01,
            _ => return Err(FACTOR.unknown_unit(&w)),
        };
        Ok(Self(FACTOR.real(&w, scale, 1e9)?))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x", significant(self.0, 4)))
    }
}

/// The seconds in a written period: `s`, `min`, `h`, `day`.
fn period(name: &str) -> Option<f64> {
    Some(match name {
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hr" | "hour" => 3600.0,
        "d" | "day" => 86_400.0,
        _ => return None,
    })
}

/// Reads `<number>[prefix][noun]/<period>` or `<number>[prefix]<abbreviation>` into a rate a second.
fn rate(
    grammar: &Grammar,
    input: &str,
    nouns: &[&str],
    per_minute: &[&str],
    max: f64,
) -> Result<f64, ParseError> {
    let w = grammar.split(input)?;
    if w.unit.is_empty() {
        return Err(grammar.unit_missing(&w));
    }
    let (factor, rest) = count_prefix(&w.unit);
    let seconds = match rest.split_once('/') {
        Some((noun, per)) if noun.is_empty() || nouns.contains(&noun) => period(per),
        None if per_minute.contains(&rest.to_ascii_lowercase().as_str()) => Some(60.0),
        None if rest.is_empty() => return Err(grammar.unit_missing(&w)),
        _ => None,
    };
    let seconds = seconds.ok_or_else(|| grammar.unknown_unit(&w))?;
    grammar.real(&w, factor as f64 / seconds, max)
}

const PER_SECOND: Grammar = Grammar {
    expected: "a rate",
    examples: "`40/s`, `40 req/s`, `2.4k/min` or `600 rpm`",
    likely: "/s",
    limit: "10^9/s",
    dollar: false,
};

impl FromStr for PerSecond {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        const NOUNS: [&str; 9] =
            ["req", "reqs", "request", "requests", "task", "tasks", "call", "calls", "session"];
        rate(&PER_SECOND, input, &NOUNS, &["rpm"], 1e9).map(Self)
    }
}

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (x, per) = match self.0 {
            x if x == 0.0 || x >= 0.1 => (x, "s"),
            x if x * 60.0 >= 0.1 => (x * 60.0, "min"),
            x => (x * 86_400.0, "day"),
        };
        f.pad(&format!("{}/{per}", significant(x, 4)))
    }
}

const TOKENS_PER_SECOND: Grammar = Grammar {
    expected: "a token rate",
    examples: "`1.2M tok/s`, `90k tok/min` or `200k tpm`",
    likely: " tok/s",
    limit: "10^15 tok/s",
    dollar: false,
};

impl FromStr for TokensPerSecond {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        const NOUNS: [&str; 4] = ["tok", "toks", "token", "tokens"];
        rate(&TOKENS_PER_SECOND, input, &NOUNS, &["tpm"], 1e15).map(Self)
    }
}

impl fmt::Display for TokensPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} tok/s", significant(self.0, 3)))
    }
}

const BYTES_PER_SECOND: Grammar = Grammar {
    expected: "a bandwidth",
    examples: "`50GB/s` or `400Gbit/s`",
    likely: "GB/s",
    limit: "10^18 B/s",
    dollar: false,
};

impl FromStr for BytesPerSecond {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = BYTES_PER_SECOND.split(input)?;
        if w.unit.is_empty() {
            return Err(BYTES_PER_SECOND.unit_missing(&w));
        }
        let factor = match w.unit.strip_suffix("/s").or_else(|| w.unit.strip_suffix("ps")) {
            // `Gb/s` may mean bits or bytes, eight apart: only a capital B or the word counts.
            Some(unit) if unit.ends_with("bit") || w.unit.ends_with("bps") => {
                let prefix = unit.trim_end_matches("bit").trim_end_matches('b');
                byte_unit(&format!("{prefix}B")).map(|n| n as f64 / 8.0)
            }
            Some(unit) if unit.ends_with('B') => byte_unit(unit).map(|n| n as f64),
            _ => None,
        };
        let factor = factor.ok_or_else(|| BYTES_PER_SECOND.unknown_unit(&w))?;
        Ok(Self(BYTES_PER_SECOND.real(&w, factor, 1e18)?))
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, name) = match self.0 {
            x if x >= 1e12 => (1e12, "TB/s"),
            x if x >= 1e9 => (1e9, "GB/s"),
            x if x >= 1e6 => (1e6, "MB/s"),
            x if x >= 1e3 => (1e3, "kB/s"),
            _ => (1.0, "B/s"),
        };
        f.pad(&format!("{} {name}", significant(self.0 / scale, 4)))
    }
}

const OPS_PER_SECOND: Grammar = Grammar {
    expected: "an arithmetic rate",
    examples: "`989TFLOPS` or `2.5PFLOPS`",
    likely: "TFLOPS",
    limit: "10^21 FLOPS",
    dollar: false,
};

impl FromStr for OpsPerSecond {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = OPS_PER_SECOND.split(input)?;
        if w.unit.is_empty() {
            return Err(OPS_PER_SECOND.unit_missing(&w));
        }
        let unit = w.unit.to_ascii_uppercase();
        let prefix = ["FLOPS", "FLOP/S", "OPS", "OP/S"].iter().find_map(|s| unit.strip_suffix(s));
        let factor = match prefix {
            Some("G") => 1e9,
            Some("T") => 1e12,
            Some("P") => 1e15,
            _ => return Err(OPS_PER_SECOND.unknown_unit(&w)),
        };
        Ok(Self(OPS_PER_SECOND.real(&w, factor, 1e21)?))
    }
}

impl fmt::Display for OpsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} TFLOPS", significant(self.0 / 1e12, 4)))
    }
}

const WATTS: Grammar = Grammar {
    expected: "a power",
    examples: "`700W` or `10.2kW`",
    likely: "W",
    limit: "1 GW",
    dollar: false,
};

impl FromStr for Watts {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = WATTS.split(input)?;
        let factor = match w.unit.as_str() {
            "" => return Err(WATTS.unit_missing(&w)),
            "W" | "w" => 1.0,
            "kW" | "KW" | "kw" => 1e3,
            "MW" => 1e6,
            _ => return Err(WATTS.unknown_unit(&w)),
        };
        Ok(Self(WATTS.real(&w, factor, 1e9)?))
    }
}

impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} W", significant(self.0, 4)))
    }
}
