//! Money, in whole micro-dollars, and prices, in whole pico-dollars.
//!
//! A price is kept in the unit that makes what people write exact: `$2.50/h` is 2.5 * 10^12
//! pico-dollars an hour. (Per second it would be a repeating decimal.) A product rounds once, to the
//! nearest micro-dollar, where it is formed.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

use crate::decimal::Round;
use crate::parse::{Grammar, ParseError, count_prefix};
use crate::show::grouped;
use crate::{Bytes, Seconds, Tokens};

/// An amount of US dollars in whole micro-dollars, so that sums are exact. May be negative: a
/// credit, a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(i64);

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Whole micro-dollars.
    pub const fn micros(n: i64) -> Self {
        Self(n)
    }

    /// As whole micro-dollars.
    pub const fn get_micros(self) -> i64 {
        self.0
    }

    /// The sum, or `None` past the end of the type.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// From pico-dollars, rounded to the nearest micro-dollar.
    fn from_picos(picos: u128) -> Self {
        Self(i64::try_from((picos + 500_000) / 1_000_000).unwrap_or(i64::MAX))
    }
}

/// Stops at the ends of the type.
impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Stops at the ends of the type.
impl Sub for Usd {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Usd {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

const USD: Grammar = Grammar {
    expected: "an amount of dollars",
    examples: "`$50,000` or `$1.2M`",
    likely: "",
    limit: "$10^12",
    dollar: true,
};

/// Rounds to the nearest micro-dollar.
impl FromStr for Usd {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let w = USD.split(input)?;
        let (factor, rest) = count_prefix(&w.unit);
        if !rest.is_empty() {
            return Err(USD.unknown_unit(&w));
        }
        let max = 1_000_000_000_000_000_000;
        let n = USD.whole(&w, (factor * 1_000_000, 1), max, Round::Nearest)?;
        Ok(Self(i64::try_from(n).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        f.pad(&format!("{sign}${}", dollars(u128::from(self.0.unsigned_abs()) * 1_000_000)))
    }
}

/// Pico-dollars as dollars: cents where that says it all, otherwise up to six decimals.
fn dollars(picos: u128) -> String {
    let micros = (picos + 500_000) / 1_000_000;
    let whole = grouped(u64::try_from(micros / 1_000_000).unwrap_or(u64::MAX));
    let fraction = micros % 1_000_000;
    if fraction.is_multiple_of(10_000) {
        return format!("{whole}.{:02}", fraction / 10_000);
    }
    format!("{whole}.{fraction:06}").trim_end_matches('0').to_owned()
}

macro_rules! price {
    ($(#[$doc:meta])* $name:ident, $base:literal, $grammar:ident, $units:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Free of charge.
            pub const ZERO: Self = Self(0);

            #[doc = concat!("Whole pico-dollars per ", $base, ".")]
            pub const fn picos(n: u64) -> Self {
                Self(n)
            }

            #[doc = concat!("As whole pico-dollars per ", $base, ".")]
            pub const fn get_picos(self) -> u64 {
                self.0
            }
        }

        /// Rounds to the nearest pico-dollar.
        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(input: &str) -> Result<Self, ParseError> {
                let w = $grammar.split(input)?;
                if w.unit.is_empty() {
                    return Err($grammar.unit_missing(&w));
                }
                let (factor, rest) = count_prefix(&w.unit);
                let per = rest.strip_prefix('/').and_then($units);
                let (numerator, denominator) = per.ok_or_else(|| $grammar.unknown_unit(&w))?;
                let scale = (factor * 1_000_000_000_000 * numerator, denominator);
                // A ceiling of 10^18 pico-dollars leaves room for sums.
                let max = 1_000_000_000_000_000_000;
                let n = $grammar.whole(&w, scale, max, Round::Nearest)?;
                Ok(Self(u64::try_from(n).unwrap_or(u64::MAX)))
            }
        }
    };
}

price! {
    /// The price of a device, a node or a service for an hour.
    UsdPerHour, "hour", PER_HOUR, hours
}

const PER_HOUR: Grammar = Grammar {
    expected: "a price per time",
    examples: "`$2.50/h` or `$12,000/month`",
    likely: "/h",
    limit: "$10^6/h",
    dollar: true,
};

/// A month is 730 hours and a year 8,760, as clouds bill them.
fn hours(period: &str) -> Option<(u128, u128)> {
    Some(match period {
        "s" | "sec" | "second" => (3600, 1),
        "min" | "minute" => (60, 1),
        "h" | "hr" | "hour" => (1, 1),
        "d" | "day" => (1, 24),
        "month" | "mo" => (1, 730),
        "y" | "yr" | "year" => (1, 8760),
        _ => return None,
    })
}

impl UsdPerHour {
    /// What this time costs, rounded to the nearest micro-dollar.
    pub fn cost_of(self, time: Seconds) -> Usd {
        let micros = self.0 as f64 / 1e6 * time.as_hours();
        Usd::micros(micros.round().min(i64::MAX as f64) as i64)
    }

    /// The price of `n` of them; stops at the largest value.
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl fmt::Display for UsdPerHour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}/h", dollars(u128::from(self.0))))
    }
}

price! {
    /// The price of a token.
    UsdPerToken, "token", PER_TOKEN, tokens
}

const PER_TOKEN: Grammar = Grammar {
    expected: "a price per token",
    examples: "`$0.15/Mtok`",
    likely: "/Mtok",
    limit: "$10^6/tok",
    dollar: true,
};

fn tokens(unit: &str) -> Option<(u128, u128)> {
    let (factor, rest) = count_prefix(unit);
    matches!(rest, "tok" | "token" | "tokens").then_some((1, factor))
}

impl UsdPerToken {
    /// What the tokens cost, rounded to the nearest micro-dollar.
    pub fn cost_of(self, tokens: Tokens) -> Usd {
        Usd::from_picos(u128::from(self.0) * u128::from(tokens.get()))
    }
}

impl fmt::Display for UsdPerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}/Mtok", dollars(u128::from(self.0) * 1_000_000)))
    }
}

price! {
    /// The price of moving or keeping a byte.
    UsdPerByte, "byte", PER_BYTE, bytes
}

const PER_BYTE: Grammar = Grammar {
    expected: "a price per byte",
    examples: "`$0.09/GB`",
    likely: "/GB",
    limit: "$10^6/B",
    dollar: true,
};

fn bytes(unit: &str) -> Option<(u128, u128)> {
    crate::count::byte_unit(unit).map(|size| (1, size))
}

impl UsdPerByte {
    /// What the bytes cost, rounded to the nearest micro-dollar.
    pub fn cost_of(self, bytes: Bytes) -> Usd {
        Usd::from_picos(u128::from(self.0) * u128::from(bytes.get()))
    }
}

impl fmt::Display for UsdPerByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}/GB", dollars(u128::from(self.0) * 1_000_000_000)))
    }
}

price! {
    /// The price of one call of a tool or service.
    UsdPerCall, "call", PER_CALL, calls
}

const PER_CALL: Grammar = Grammar {
    expected: "a price per call",
    examples: "`$0.005/call` or `$5/kcall`",
    likely: "/call",
    limit: "$10^6/call",
    dollar: true,
};

fn calls(unit: &str) -> Option<(u128, u128)> {
    let (factor, rest) = count_prefix(unit);
    matches!(rest, "call" | "calls" | "req" | "request").then_some((1, factor))
}

impl fmt::Display for UsdPerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}/call", dollars(u128::from(self.0))))
    }
}

price! {
    /// The price of electric energy.
    UsdPerKwh, "kWh", PER_KWH, kwh
}

const PER_KWH: Grammar = Grammar {
    expected: "a price of energy",
    examples: "`$0.12/kWh`",
    likely: "/kWh",
    limit: "$10^6/kWh",
    dollar: true,
};

fn kwh(unit: &str) -> Option<(u128, u128)> {
    match unit.to_ascii_lowercase().as_str() {
        "kwh" => Some((1, 1)),
        "mwh" => Some((1, 1000)),
        _ => None,
    }
}

impl fmt::Display for UsdPerKwh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}/kWh", dollars(u128::from(self.0))))
    }
}
