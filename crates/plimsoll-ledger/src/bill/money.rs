//! Amounts as bills write them, to the micro-dollar.

use plimsoll_units::Usd;

/// A number as it is written: `mantissa * 10^exponent`, with its sign apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

/// Digits that count: more than any bill prints, and two numbers of so many have a product.
const DIGITS_MAX: usize = 19;

impl Decimal {
    /// Plain digits, with or without a sign, a point and an exponent; none for anything else. Nineteen digits count, and what is behind
    /// them is cut off: it is beyond a millionth of a micro-dollar of any amount that a bill could have.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (digits, power) = match unsigned.split_once(['e', 'E']) {
            Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = || whole.bytes().chain(fraction.bytes());
        if whole.len() + fraction.len() == 0 || !all().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut own = Self { negative, mantissa: 0, exponent: power.checked_sub(len(fraction)?)? };
        let leading = all().take_while(|byte| *byte == b'0').count();
        let counts = whole.len() + fraction.len() - leading;
        for byte in all().skip(leading).take(DIGITS_MAX) {
            own.mantissa = own.mantissa * 10 + u128::from(byte - b'0');
        }
        let cut = counts.saturating_sub(DIGITS_MAX);
        own.exponent = own.exponent.checked_add(i32::try_from(cut).ok()?)?;
        Some(own)
    }

    /// A rate, as it would be written.
    pub(super) fn of_rate(rate: f64) -> Option<Self> {
        Self::parse(&rate.to_string()).filter(|own| own.mantissa > 0 && !own.negative)
    }

    pub(super) const fn is_negative(&self) -> bool {
        self.negative && self.mantissa > 0
    }

    /// So many dollars at a rate: rounded once, to the nearest micro-dollar, a half away from zero. None where it is past the type.
    pub(super) fn usd(self, rate: Self) -> Option<Usd> {
        let product = self.mantissa.checked_mul(rate.mantissa)?;
        let exponent = self.exponent.checked_add(rate.exponent)?.checked_add(6)?;
        let power = || 10u128.checked_pow(exponent.unsigned_abs());
        let micros = if product == 0 {
            0
        } else if exponent >= 0 {
            product.checked_mul(power()?)?
        } else {
            // Divided by more than can be written, nothing is left.
            power().map_or(0, |power| (product + power / 2) / power)
        };
        let micros = i64::try_from(micros).ok()?;
        Some(Usd::micros(if self.negative != rate.negative { -micros } else { micros }))
    }
}

/// One unit is one dollar.
pub(super) const ONE: Decimal = Decimal { negative: false, mantissa: 1, exponent: 0 };

fn len(text: &str) -> Option<i32> {
    i32::try_from(text.len()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_to_the_micro_dollar() {
        let check = |text: &str, expect: Option<i64>| {
            let found = Decimal::parse(text).and_then(|amount| amount.usd(ONE));
            assert_eq!(found.map(Usd::get_micros), expect, "{text}");
        };
        check("12.34", Some(12_340_000));
        check("-0.5", Some(-500_000));
        check("+3", Some(3_000_000));
        check(".25", Some(250_000));
        check("7.", Some(7_000_000));
        check("0.0000005", Some(1));
        check("-0.0000005", Some(-1));
        check("0.00000049999999999999999999999", Some(0));
        check("1E-7", Some(0));
        check("1.5e3", Some(1_500_000_000));
        check("0.1000000000000000055511151231257827", Some(100_000));
        check("00000000000000000000000000001.5", Some(1_500_000));
        check("1e-400", Some(0));
        check("0e400", Some(0));
        check("9223372036854.775807", Some(i64::MAX));
        check("9223372036854.775808", None);
        check("1e400", None);
        check("", None);
        check("-", None);
        check("1,234.56", None);
        check("$5", None);
        check("nan", None);
        check("1.2.3", None);
        check("1e", None);
    }

    #[test]
    fn amounts_at_a_rate() {
        let check = |text: &str, rate: f64, expect: i64| {
            let rate = Decimal::of_rate(rate).expect("a rate");
            let found = Decimal::parse(text).and_then(|amount| amount.usd(rate));
            assert_eq!(found.map(Usd::get_micros), Some(expect), "{text} at {rate:?}");
        };
        check("100", 1.08, 108_000_000);
        // As it is written, not as a fraction of two: 1.1 times 1.1 is 1.21.
        check("1.1", 1.1, 1_210_000);
        check("-10", 0.0067, -67_000);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Decimal::of_rate(rate), None, "{rate}");
        }
    }

    proptest! {
        /// What is written in micro-dollars is read as these.
        #[test]
        fn micro_dollars_are_exact(micros in any::<i64>()) {
            let (sign, size) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
            let text = format!("{sign}{}.{:06}", size / 1_000_000, size % 1_000_000);
            let found = Decimal::parse(&text).and_then(|amount| amount.usd(ONE));
            prop_assert_eq!(found, Some(Usd::micros(micros)).filter(|_| micros != i64::MIN));
        }
    }
}
