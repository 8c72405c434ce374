//! An exact decimal, so that `$0.15` is fifteen cents and `79.2GiB` is a whole number of bytes.

/// `mantissa * 10^exponent`, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) mantissa: u128,
    pub(crate) exponent: i32,
}

/// Which way a fraction goes when a whole number is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Round {
    Down,
    Nearest,
}

impl Decimal {
    /// `self * multiplier / divisor` as a whole number, or `None` past `u128`.
    pub(crate) fn scaled(self, multiplier: u128, divisor: u128, round: Round) -> Option<u128> {
        if self.mantissa == 0 {
            return Some(0);
        }
        let mut numerator = self.mantissa.checked_mul(multiplier)?;
        let mut denominator = divisor;
        if self.exponent >= 0 {
            numerator = numerator.checked_mul(power_of_ten(self.exponent)?)?;
        } else {
            match power_of_ten(-self.exponent).and_then(|p| denominator.checked_mul(p)) {
                Some(d) => denominator = d,
                // Divided by more than u128 holds: nothing is left.
                None => return Some(0),
            }
        }
        let numerator = match round {
            Round::Down => numerator,
            Round::Nearest => numerator.checked_add(denominator / 2)?,
        };
        Some(numerator / denominator)
    }

    /// The nearest `f64`; infinite when too large, which callers refuse.
    pub(crate) fn to_f64(self) -> f64 {
        format!("{}e{}", self.mantissa, self.exponent).parse().unwrap_or(f64::INFINITY)
    }
}

fn power_of_ten(exponent: i32) -> Option<u128> {
    10u128.checked_pow(u32::try_from(exponent).ok()?)
}
