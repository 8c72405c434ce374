//! Tokens and moments as logs write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use serde_json::Value;

use crate::page::Wrong;
use crate::reject::Why;

/// A value as a message shows it.
pub(crate) fn clip(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Moments are within a century of their origin, in nanoseconds.
const STAMP_MAX: i128 = 3_155_760_000 * SECOND;
/// The origin of moments that have a date: the year 2000, in nanoseconds from 1970.
const MILLENNIUM: i128 = 946_684_800 * SECOND;
/// Nanoseconds.
pub(crate) const SECOND: i128 = 1_000_000_000;
/// Nanoseconds.
pub(crate) const MILLISECOND: i128 = 1_000_000;

/// A count of tokens, whole though it may be written as `12.0`; zero is for the caller to judge.
pub(crate) fn tokens(text: &str) -> Result<u64, Why> {
    // Nearly every count: a few digits and nothing else.
    if let Some(count) = few_digits(text) {
        return Ok(count);
    }
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
pub(crate) fn moment(text: &str, unit: i128) -> Result<i64, Why> {
    let stamp = decimal(text, unit)?;
    if stamp < 0 {
        return Err(Why::Negative(clip(text)));
    }
    bounded(stamp, text)
}

/// A moment in nanoseconds from 1970, UTC, as logs write it: RFC 3339 and its looser kin, or a number of seconds,
/// milliseconds, microseconds or nanoseconds from 1970, told by its size.
///
/// A moment without a zone is taken for UTC. `zoned` remembers whether the file writes zones: one that does not where others
/// do, or the other way round, cannot be placed.
pub(crate) fn instant(text: &str, zoned: &mut Option<bool>) -> Result<i64, Why> {
    let text = text.trim();
    let (stamp, has_zone) = match dated(text) {
        Some((stamp, has_zone)) => (i128::from(stamp), has_zone),
        None => {
            if is_missing(text) {
                return Err(Why::Missing);
            }
            let looks_dated = text.as_bytes().get(4) == Some(&b'-') || text.contains('/');
            if !looks_dated {
                return epoch(text);
            }
            written(text).ok_or_else(|| Why::Malformed(clip(text)))?
        }
    };
    if *zoned.get_or_insert(has_zone) != has_zone {
        return Err(Why::Zone(clip(text)));
    }
    placed(stamp, text)
}

/// A moment with a date, and whether it has a zone: any way of writing it that is known.
fn written(text: &str) -> Option<(i128, bool)> {
    // What databases write: a blank before the zone, no minutes in it, or its name.
    let tidy = match text.strip_suffix(" UTC").or_else(|| text.strip_suffix(" +0000 UTC")) {
        Some(bare) => format!("{}Z", bare.trim_end().trim_end_matches(" +0000")),
        None => text.to_owned(),
    };
    if let Ok(stamp) = tidy.parse::<Timestamp>() {
        return Some((stamp.as_nanosecond(), true));
    }
    let civil: DateTime = tidy.parse().ok()?;
    Some((Offset::UTC.to_timestamp(civil).ok()?.as_nanosecond(), false))
}

/// The same of the one way that most rows are written in, `2023-11-16 18:15:46[.fffffffff][Z|+02:00]`, at a tenth of the
/// cost; none for whatever needs a closer look.
fn dated(text: &str) -> Option<(i64, bool)> {
    let text = text.as_bytes();
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if text.len() < 19
        || marks.iter().any(|(at, mark)| text[*at] != *mark)
        || !matches!(text[10], b' ' | b'T')
    {
        return None;
    }
    let two = |at: usize| match (text[at].wrapping_sub(b'0'), text[at + 1].wrapping_sub(b'0')) {
        (tens @ 0..=9, ones @ 0..=9) => Some(i64::from(tens) * 10 + i64::from(ones)),
        _ => None,
    };
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let possible = (1900..2100).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !possible {
        return None;
    }
    let (mut at, mut nanoseconds) = (19, 0);
    if text.get(at) == Some(&b'.') {
        let mut place = 1_000_000_000;
        at += 1;
        while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
            place /= 10;
            if place == 0 {
                return None;
            }
            nanoseconds += i64::from(digit - b'0') * place;
            at += 1;
        }
        if at == 20 {
            return None;
        }
    }
    let offset = match &text[at..] {
        [] => None,
        b"Z" => Some(0),
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (two(at + 1)?, two(at + 4)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            Some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => return None,
    };
    // Days from 1970, with years that begin in March: the leap day is their last.
    let shifted = year - i64::from(month <= 2);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719_468;
    let seconds = day * 86_400 + hour * 3600 + minute * 60 + second - offset.unwrap_or(0);
    Some((seconds * 1_000_000_000 + nanoseconds, offset.is_some()))
}

/// A moment in nanoseconds from 1970, where it is within a century of 2000.
fn placed(stamp: i128, text: &str) -> Result<i64, Why> {
    bounded(stamp - MILLENNIUM, text)?;
    i64::try_from(stamp).map_err(|_| Why::Absurd(clip(text)))
}

/// A number from 1970 on: its size says whether it is seconds, milliseconds, microseconds or nanoseconds.
fn epoch(text: &str) -> Result<i64, Why> {
    let seconds = decimal(text, 1)?;
    // From 2001 to 2286 seconds have ten digits, and each unit has three more.
    let unit = match seconds {
        1_000_000_000..10_000_000_000 => SECOND,
        1_000_000_000_000..10_000_000_000_000 => MILLISECOND,
        1_000_000_000_000_000..10_000_000_000_000_000 => MILLISECOND / 1000,
        1_000_000_000_000_000_000..10_000_000_000_000_000_000 => 1,
        _ => return Err(Why::Malformed(clip(text))),
    };
    placed(decimal(text, unit)?, text)
}

/// The same of a JSON value: text or a number.
pub(crate) fn instant_of(value: &Value, zoned: &mut Option<bool>) -> Result<i64, Why> {
    match value {
        Value::String(text) => instant(text, zoned),
        Value::Number(number) => epoch(&number.to_string()),
        Value::Null => Err(Why::Missing),
        other => Err(Why::Malformed(clip(&other.to_string()))),
    }
}

/// Tokens of a JSON value: a number, or text that is one. Absent and null are unknown.
pub(crate) fn tokens_of(field: &'static str, value: Option<&Value>) -> Result<Option<u32>, Wrong> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if is_unknown(text) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => return Err(Wrong::new(field, Why::Malformed(clip(&other.to_string())))),
    };
    count(field, &text).map(Some)
}

/// Tokens of a field of a table; absent is unknown.
pub(crate) fn tokens_in(
    field: impl Into<std::borrow::Cow<'static, str>>,
    text: Option<&str>,
) -> Result<Option<u32>, Wrong> {
    match text {
        None => Ok(None),
        Some(text) if is_unknown(text) => Ok(None),
        Some(text) => count(field, text).map(Some),
    }
}

fn count(field: impl Into<std::borrow::Cow<'static, str>>, text: &str) -> Result<u32, Wrong> {
    let count = tokens(text.trim());
    // No more than 32 bits: `tokens` has seen to it.
    count.map(|count| count as u32).map_err(|why| Wrong::new(field, why))
}

/// A number of a JSON value, such as seconds or dollars; absent and null are unknown.
pub(crate) fn real_of(field: &'static str, value: Option<&Value>) -> Result<Option<f64>, Wrong> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => return Ok(number.as_f64()),
        Some(Value::String(text)) => text,
        Some(other) => return Err(Wrong::new(field, Why::Malformed(clip(&other.to_string())))),
    };
    real_in(field, Some(text))
}

/// A number in a field of a table; absent is unknown.
pub(crate) fn real_in(
    field: impl Into<std::borrow::Cow<'static, str>>,
    text: Option<&str>,
) -> Result<Option<f64>, Wrong> {
    let Some(text) = text.map(str::trim).filter(|text| !is_unknown(text)) else { return Ok(None) };
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(Some).ok_or_else(|| Wrong::new(field, Why::Malformed(clip(text))))
}

/// What gateways and databases write for nothing.
pub(crate) fn is_unknown(text: &str) -> bool {
    let text = text.trim();
    is_missing(text) || text == "-" || text == "\\N"
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
        if let (Some(whole), Some(part)) =
            (few_digits(whole), few_digits(fraction).or(fraction.is_empty().then_some(0)))
        {
            // The same in 64 bits: every stamp in seconds, milliseconds or microseconds.
            let (unit, scale) = (unit as u64, 10u64.pow(fraction.len() as u32));
            let magnitude = i128::from(whole * unit + part * unit / scale);
            return Ok(if negative { -magnitude } else { magnitude });
        }
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

/// A whole number of up to nine digits, written in nothing else.
fn few_digits(text: &str) -> Option<u64> {
    if text.is_empty() || text.len() > 9 {
        return None;
    }
    text.bytes().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0'))
    })
}

fn is_missing(text: &str) -> bool {
    text.is_empty() || ["nan", "null", "none"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn instants_are_placed() {
        let check = |text: &str, expect: Result<i64, Why>| {
            assert_eq!(instant(text, &mut None), expect, "{text}");
        };
        let second = 1_700_158_546_000_000_000;
        check("2023-11-16T18:15:46Z", Ok(second));
        check("2023-11-16 18:15:46", Ok(second));
        check("2023-11-16T20:15:46.5+02:00", Ok(second + 500_000_000));
        check("2023-11-16 18:15:46 UTC", Ok(second));
        check("1700158546", Ok(second));
        check("1700158546.25", Ok(second + 250_000_000));
        check("1700158546000", Ok(second));
        check("1700158546000001", Ok(second + 1000));
        check("1700158546000000001", Ok(second + 1));
        check("12", Err(Why::Malformed("12".to_owned())));
        check("yesterday", Err(Why::Malformed("yesterday".to_owned())));
        check("", Err(Why::Missing));
        let mut zoned = None;
        assert!(instant("2023-11-16T18:15:46Z", &mut zoned).is_ok());
        assert_eq!(
            instant("2023-11-16 18:15:46", &mut zoned),
            Err(Why::Zone("2023-11-16 18:15:46".to_owned()))
        );
    }

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
        assert_eq!(moment("1234567890.1234567891", MILLISECOND), Ok(1_234_567_890_123_456));
        let apart =
            |a: &str, b: &str| Ok::<i64, Why>(instant(b, &mut None)? - instant(a, &mut None)?);
        let day = "2024-02-28 23:59:59.9999999";
        assert_eq!(apart(day, "2024-03-01 00:00:00.0000000"), Ok(86_400_000_000_100));
        assert_eq!(
            apart("2024-02-28T10:00:00+02:00", "2024-02-28 08:00:01+00:00"),
            Ok(1_000_000_000)
        );
        let refused = |text: &str, why: fn(String) -> Why| {
            assert_eq!(instant(text, &mut None), Err(why(text.to_owned())));
        };
        refused("2024-02-30 10:00:00", Why::Malformed);
        refused("2024-02-28 24:00:00", Why::Malformed);
        refused("2024-02-28 10:00:00.", Why::Malformed);
        refused("0001-01-01 00:00:00", Why::Absurd);
        refused("9998-12-31 23:59:59", Why::Absurd);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(4_000)))]

        /// The fast way and the thorough one agree wherever the fast one answers, and it answers whatever is a moment.
        #[test]
        fn stamps_are_read_alike(
            (year, month, day) in (1890i32..2110, 0u32..14, 0u32..33),
            (hour, minute, second) in (0u32..25, 0u32..61, 0u32..61),
            fraction in "(\\.[0-9]{0,10})?",
            between in "[ T]",
            zone in prop_oneof![
                Just(String::new()), Just("Z".to_owned()), Just(" UTC".to_owned()), "[+-][0-2][0-9]:[0-6][0-9]",
            ],
        ) {
            let text = format!(
                "{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{fraction}{zone}"
            );
            let (fast, slow) = (dated(&text), written(&text));
            if let Some((stamp, has_zone)) = fast {
                prop_assert_eq!(slow, Some((i128::from(stamp), has_zone)), "{}", text);
            } else if let Some((_, _)) = slow {
                let rare = second == 60 || zone == " UTC" || !(1900..2100).contains(&year) || zone.len() == 6;
                prop_assert!(rare, "{}", text);
            }
        }
    }
}
