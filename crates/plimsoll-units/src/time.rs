//! Durations.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul};
use std::str::FromStr;

use crate::parse::{Grammar, ParseError, Written};
use crate::show::significant;

/// A duration in seconds: finite and not negative, by construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Seconds(f64);

/// A hundred years.
const PARSE_MAX: f64 = 3.2e9;

impl Seconds {
    /// No time.
    pub const ZERO: Self = Self(0.0);

    /// `None` for a negative, infinite or undefined number.
    pub fn new(seconds: f64) -> Option<Self> {
        // `+ 0.0` turns a negative zero into zero, so that equal durations print alike.
        (seconds.is_finite() && seconds >= 0.0).then_some(Self(seconds + 0.0))
    }

    /// Whole seconds.
    pub const fn whole(seconds: u32) -> Self {
        Self(seconds as f64)
    }

    /// As a number of seconds.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// As a number of hours.
    pub fn as_hours(self) -> f64 {
        self.0 / 3600.0
    }
}

/// Stops at the largest finite value.
impl Add for Seconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self((self.0 + other.0).min(f64::MAX))
    }
}

/// Stops at the largest finite value.
impl Mul<crate::Factor> for Seconds {
    type Output = Self;
    fn mul(self, factor: crate::Factor) -> Self {
        Self((self.0 * factor.get()).min(f64::MAX))
    }
}

impl Sum for Seconds {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

const GRAMMAR: Grammar = Grammar {
    expected: "a duration",
    examples: "`400ms`, `30s`, `15m`, `2h`, `1h30m` or `7d`",
    likely: "s",
    limit: "100 years",
    dollar: false,
};

/// Accepts a sequence of parts, largest first or not: `1h30m`.
impl FromStr for Seconds {
    type Err = ParseError;

    fn from_str(input: &str) -> Result<Self, ParseError> {
        let mut rest = input.trim();
        let mut total = 0.0;
        loop {
            let w = GRAMMAR.split(rest)?;
            let letters: String = w.unit.chars().take_while(|c| !c.is_ascii_digit()).collect();
            if letters.is_empty() {
                return Err(GRAMMAR.unit_missing(&w));
            }
            let Some(factor) = unit(&letters) else {
                return Err(GRAMMAR.unknown_unit(&Written { unit: letters, input, ..w }));
            };
            total += GRAMMAR.real(&w, factor, PARSE_MAX)?;
            if total > PARSE_MAX {
                return Err(GRAMMAR.too_large(&Written { input, ..w }));
            }
            let after_digits = rest.find(w.digits).map_or(0, |i| i + w.digits.len());
            match rest[after_digits..].find(|c: char| c.is_ascii_digit()) {
                Some(next) => rest = &rest[after_digits + next..],
                None => return Ok(Self(total)),
            }
        }
    }
}

fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "ps" => 1e-12,
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" | "msec" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = self.0;
        let (scale, name) = match x {
            0.0 => (1.0, "s"),
            _ if x < 1e-6 => (1e-9, "ns"),
            _ if x < 1e-3 => (1e-6, "µs"),
            _ if x < 1.0 => (1e-3, "ms"),
            _ if x < 120.0 => (1.0, "s"),
            _ if x < 7200.0 => (60.0, "min"),
            _ if x < 172_800.0 => (3600.0, "h"),
            _ => (86_400.0, "d"),
        };
        f.pad(&format!("{} {name}", significant(x / scale, 4)))
    }
}
