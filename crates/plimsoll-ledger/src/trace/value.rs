//! Tokens and moments as logs write them.

use jiff::Timestamp;
use jiff::civil::{DateTime, date};
use jiff::tz::Offset;

use super::{Why, clip};

/// Moments are within a century of their origin, in nanoseconds.
const STAMP_MAX: i128 = 3_155_760_000 * SECOND;
/// Nanoseconds.
pub(super) const SECOND: i128 = 1_000_000_000;
/// Nanoseconds.
pub(super) const MILLISECOND: i128 = 1_000_000;

/// A count of tokens, whole though it may be written as `12.0`; zero is for the caller to judge.
pub(super) fn tokens(text: &str) -> Result<u64, Why> {
    let thousandths = decimal(text, 1000)?;
    let shown = || clip(text);
    if thousandths > 1000 * i128::from(u32::MAX) {
        return Err(Why::Absurd(shown()));
    }
    if thousandths % 1000 != 0 {
        return Err(Why::Malformed(shown()));
    }
    let tokens = thousandths / 1000;
    u64::try_from(tokens).map_err(|_| Why::Negative(shown()))
}

/// A moment as a number of units, in nanoseconds.
pub(super) fn moment(text: &str, unit: i128) -> Result<i64, Why> {
    let stamp = decimal(text, unit)?;
    if stamp < 0 {
        return Err(Why::Negative(clip(text)));
    }
    bounded(stamp, text)
}

/// A moment as date and time, in nanoseconds from the year 2000. Without an offset it is taken for UTC: distances are what counts.
pub(super) fn date_and_time(text: &str) -> Result<i64, Why> {
    if is_missing(text) {
        return Err(Why::Missing);
    }
    let at = match text.parse::<Timestamp>() {
        Ok(stamp) => Offset::UTC.to_datetime(stamp),
        Err(_) => text.parse::<DateTime>().map_err(|_| Why::Malformed(clip(text)))?,
    };
    bounded(at.duration_since(date(2000, 1, 1).at(0, 0, 0, 0)).as_nanos(), text)
}

fn bounded(stamp: i128, text: &str) -> Result<i64, Why> {
    let within = (-STAMP_MAX..=STAMP_MAX).contains(&stamp);
    i64::try_from(stamp).ok().filter(|_| within).ok_or_else(|| Why::Absurd(clip(text)))
}

/// A decimal number times a unit, exact where it is written in plain digits; what is below one is cut off.
fn decimal(text: &str, unit: i128) -> Result<i128, Why> {
    if is_missing(text) {
        return Err(Why::Missing);
    }
    let malformed = || Why::Malformed(clip(text));
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let magnitude = if !whole.is_empty() && plain(whole) && plain(fraction) {
        let absurd = |_| Why::Absurd(clip(text));
        let whole = i128::from(whole.parse::<u64>().map_err(absurd)?);
        // Eighteen digits after the point are finer than a nanosecond of any unit here.
        let fraction = &fraction[..fraction.len().min(18)];
        let scale = 10i128.pow(u32::try_from(fraction.len()).unwrap_or(0));
        let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(absurd)? };
        whole * unit + part * unit / scale
    } else {
        let number: f64 = digits.parse().map_err(|_| malformed())?;
        if !number.is_finite() || number < 0.0 {
            return Err(malformed());
        }
        (number * unit as f64).round() as i128
    };
    Ok(if negative { -magnitude } else { magnitude })
}

fn is_missing(text: &str) -> bool {
    text.is_empty() || ["nan", "null", "none"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_whole_and_not_absurd() {
        let check = |text: &str, expect: Result<u64, Why>| assert_eq!(tokens(text), expect);
        check("0", Ok(0));
        check("4808", Ok(4808));
        check("12.0", Ok(12));
        check("1e3", Ok(1000));
        check("4294967295", Ok(4_294_967_295));
        check("4294967296", Err(Why::Absurd("4294967296".to_owned())));
        check("1e30", Err(Why::Absurd("1e30".to_owned())));
        check("99999999999999999999", Err(Why::Absurd("99999999999999999999".to_owned())));
        check("12.5", Err(Why::Malformed("12.5".to_owned())));
        check("-3", Err(Why::Negative("-3".to_owned())));
        check("NaN", Err(Why::Missing));
        check("", Err(Why::Missing));
        check("many", Err(Why::Malformed("many".to_owned())));
        check("--3", Err(Why::Malformed("--3".to_owned())));
        check("inf", Err(Why::Malformed("inf".to_owned())));
        check("1e999", Err(Why::Malformed("1e999".to_owned())));
    }

    /// A hundred nanoseconds are kept, far from the origin, too.
    #[test]
    fn moments_are_exact() {
        let seconds = |text: &str| moment(text, SECOND);
        assert_eq!(seconds("19440110.0000001"), Ok(19_440_110_000_000_100));
        assert_eq!(seconds("0.0"), Ok(0));
        assert_eq!(seconds("1.5e1"), Ok(15_000_000_000));
        assert_eq!(moment("3000", MILLISECOND), Ok(3_000_000_000));
        assert_eq!(moment("0.25", MILLISECOND), Ok(250_000));
        assert_eq!(seconds("-1"), Err(Why::Negative("-1".to_owned())));
        assert_eq!(seconds("1e12"), Err(Why::Absurd("1e12".to_owned())));
        let apart = |a: &str, b: &str| Ok::<i64, Why>(date_and_time(b)? - date_and_time(a)?);
        let day = "2024-02-28 23:59:59.9999999";
        assert_eq!(apart(day, "2024-03-01 00:00:00.0000000"), Ok(86_400_000_000_100));
        assert_eq!(
            apart("2024-02-28T10:00:00+02:00", "2024-02-28 08:00:01+00:00"),
            Ok(1_000_000_000)
        );
        assert_eq!(
            date_and_time("2024-02-30 10:00:00"),
            Err(Why::Malformed("2024-02-30 10:00:00".to_owned()))
        );
        assert_eq!(
            date_and_time("0001-01-01 00:00:00"),
            Err(Why::Absurd("0001-01-01 00:00:00".to_owned()))
        );
    }
}
