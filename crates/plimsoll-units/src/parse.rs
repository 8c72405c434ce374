//! From what people write to a number and a unit.

use crate::decimal::{Decimal, Round};

/// Why a text is not the quantity it should be, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ParseError {
    /// The text as it was given.
    pub input: String,
    /// The quantity that was expected, such as "a duration".
    pub expected: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
    /// Texts that would have been accepted.
    pub examples: &'static str,
}

impl ParseError {
    /// A fix to paste: the input with a unit where only that is missing, otherwise examples.
    pub fn help(&self) -> String {
        match &self.problem {
            Problem::UnitMissing { suggestion } => format!("write `{suggestion}`"),
            Problem::PercentMissing { suggestion } => format!("write `{suggestion}`"),
            _ => format!("write {} such as {}", self.expected, self.examples),
        }
    }
}

/// What can be wrong with a written quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing was written.
    #[error("the value is empty")]
    Empty,
    /// There is no number at the front.
    #[error("`{0}` does not start with a number")]
    NotANumber(String),
    /// `nan` and `inf` measure nothing.
    #[error("`{0}` is not a finite number")]
    NotFinite(String),
    /// Quantities count or measure; none is below zero.
    #[error("`{0}` is negative")]
    Negative(String),
    /// Longer than any quantity.
    #[error("`{0}` is too long to be a quantity")]
    TooLong(String),
    /// More digits than any quantity has earned.
    #[error("`{0}` has too many digits")]
    TooPrecise(String),
    /// Past the largest value the type accepts.
    #[error("`{value}` is over the limit of {limit}")]
    TooLarge {
        /// As written.
        value: String,
        /// The largest accepted value.
        limit: &'static str,
    },
    /// A bare number where the unit decides what it means.
    #[error("the number has no unit")]
    UnitMissing {
        /// The same number with the most likely unit.
        suggestion: String,
    },
    /// A share above one: most likely a percentage.
    #[error("a share is at most 1, which is 100%")]
    PercentMissing {
        /// The same number as a percentage.
        suggestion: String,
    },
    /// A unit of something else.
    #[error("`{0}` is not a unit of this quantity")]
    UnknownUnit(String),
    /// Money without its sign, or a sign on what is not money.
    #[error("{0}")]
    Dollar(&'static str),
}

/// In bytes: far beyond what anybody writes, and short enough to read at once.
const LENGTH_MAX: usize = 100;

/// A number with what stood around it.
pub(crate) struct Written<'a> {
    pub(crate) input: &'a str,
    pub(crate) dollar: bool,
    pub(crate) number: Decimal,
    /// The number's own text, for suggestions.
    pub(crate) digits: &'a str,
    /// What followed the number, trimmed, inner blanks removed.
    pub(crate) unit: String,
}

/// One quantity's grammar: how it is called, what it accepts.
#[derive(Clone, Copy)]
pub(crate) struct Grammar {
    pub(crate) expected: &'static str,
    pub(crate) examples: &'static str,
    /// The unit that a bare number most likely meant.
    pub(crate) likely: &'static str,
    pub(crate) limit: &'static str,
    pub(crate) dollar: bool,
}

impl Grammar {
    pub(crate) fn error(&self, input: &str, problem: Problem) -> ParseError {
        let input = shortened(input);
        ParseError { input, expected: self.expected, problem, examples: self.examples }
    }

    /// Splits `input` into sign, number and unit.
    pub(crate) fn split<'a>(&self, input: &'a str) -> Result<Written<'a>, ParseError> {
        let fail = |problem| Err(self.error(input, problem));
        let text = input.trim();
        if text.is_empty() {
            return fail(Problem::Empty);
        }
        if text.len() > LENGTH_MAX {
            return fail(Problem::TooLong(shortened(text)));
        }
        let (dollar, rest) = match text.strip_prefix('$') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let unsigned = rest.strip_prefix(['-', '+', '−']).unwrap_or(rest);
        let lower = unsigned.to_ascii_lowercase();
        if lower.starts_with("nan") || lower.starts_with("inf") {
            return fail(Problem::NotFinite(shortened(text)));
        }
        if rest.starts_with(['-', '−']) {
            return fail(Problem::Negative(shortened(text)));
        }
        let rest = rest.strip_prefix('+').unwrap_or(rest);
        let Some((digits, number)) = leading_number(rest) else {
            return fail(Problem::NotANumber(shortened(text)));
        };
        let Some(number) = number else {
            return fail(Problem::TooPrecise(shortened(digits)));
        };
        match (self.dollar, dollar) {
            (true, false) => {
                return fail(Problem::Dollar("an amount of money starts with `$`"));
            }
            (false, true) => return fail(Problem::Dollar("`$` marks money, which this is not")),
            _ => {}
        }
        let unit: String = rest[digits.len()..].split_whitespace().collect();
        Ok(Written { input, dollar, number, digits, unit })
    }

    pub(crate) fn unit_missing(&self, w: &Written<'_>) -> ParseError {
        let sign = if w.dollar { "$" } else { "" };
        let suggestion = format!("{sign}{}{}", w.digits, self.likely);
        self.error(w.input, Problem::UnitMissing { suggestion })
    }

    pub(crate) fn unknown_unit(&self, w: &Written<'_>) -> ParseError {
        self.error(w.input, Problem::UnknownUnit(shortened(&w.unit)))
    }

    pub(crate) fn too_large(&self, w: &Written<'_>) -> ParseError {
        let value = shortened(w.input.trim());
        self.error(w.input, Problem::TooLarge { value, limit: self.limit })
    }

    /// The whole number `w * multiplier / divisor`, refused above `max`.
    pub(crate) fn whole(
        &self,
        w: &Written<'_>,
        (multiplier, divisor): (u128, u128),
        max: u128,
        round: Round,
    ) -> Result<u128, ParseError> {
        match w.number.scaled(multiplier, divisor, round) {
            Some(n) if n <= max => Ok(n),
            _ => Err(self.too_large(w)),
        }
    }

    /// The real number `w * multiplier`, refused above `max`.
    pub(crate) fn real(
        &self,
        w: &Written<'_>,
        multiplier: f64,
        max: f64,
    ) -> Result<f64, ParseError> {
        let x = w.number.to_f64() * multiplier;
        if x <= max { Ok(x) } else { Err(self.too_large(w)) }
    }
}

/// A metric prefix of a count: `k`, `M`, `G` or `B` for billion, `T`; `Ki`, `Mi` are binary.
/// Returns what follows it.
pub(crate) fn count_prefix(unit: &str) -> (u128, &str) {
    for (prefix, factor) in [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)] {
        if let Some(rest) = unit.strip_prefix(prefix) {
            return (factor, rest);
        }
    }
    let mut chars = unit.chars();
    let factor = match chars.next() {
        Some('k' | 'K') => 1_000,
        Some('M') => 1_000_000,
        Some('G' | 'B') => 1_000_000_000,
        Some('T') => 1_000_000_000_000,
        _ => return (1, unit),
    };
    (factor, chars.as_str())
}

/// The longest number at the front of `text` with its value; the value is `None` past 30 digits.
/// Groups may be split by `_`, or by `,` before exactly three digits.
fn leading_number(text: &str) -> Option<(&str, Option<Decimal>)> {
    let bytes = text.as_bytes();
    let (mut end, mut digits, mut fraction) = (0, 0u32, 0i32);
    let (mut mantissa, mut seen_point) = (Some(0u128), false);
    while end < bytes.len() {
        match bytes[end] {
            b @ b'0'..=b'9' => {
                digits += 1;
                fraction += i32::from(seen_point);
                mantissa = mantissa
                    .and_then(|m| m.checked_mul(10))
                    .and_then(|m| m.checked_add(u128::from(b - b'0')))
                    .filter(|_| digits <= 30);
            }
            b'.' if !seen_point => seen_point = true,
            b'_' if digits > 0 => {}
            b',' if digits > 0 && !seen_point && group_of_three(&bytes[end + 1..]) => {}
            _ => break,
        }
        end += 1;
    }
    if digits == 0 {
        return None;
    }
    let mut exponent = -fraction;
    if let Some((length, power)) = power_suffix(&bytes[end..]) {
        end += length;
        match power {
            Some(power) => exponent += power,
            None => mantissa = None,
        }
    }
    let number = mantissa.map(|mantissa| Decimal { mantissa, exponent });
    Some((&text[..end], number))
}

fn group_of_three(after: &[u8]) -> bool {
    after.len() >= 3
        && after[..3].iter().all(u8::is_ascii_digit)
        && !after.get(3).is_some_and(u8::is_ascii_digit)
}

/// `e6`, `E-3`: the length of the suffix and its value, `None` when beyond three digits.
fn power_suffix(bytes: &[u8]) -> Option<(usize, Option<i32>)> {
    if !matches!(bytes.first(), Some(b'e' | b'E')) {
        return None;
    }
    let signed = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    let count = bytes[1 + signed..].iter().take_while(|b| b.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let text = std::str::from_utf8(&bytes[1..1 + signed + count]).ok()?;
    let power = if count <= 3 { text.parse().ok() } else { None };
    Some((1 + signed + count, power))
}

/// At most 40 characters, so that a megabyte of rubbish does not become a megabyte of message.
fn shortened(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(40).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}
