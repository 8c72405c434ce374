use std::fmt::{Debug, Display};
use std::str::FromStr;

use proptest::prelude::*;

use super::*;

/// What is written, and what is printed back.
fn check<T: FromStr<Err = ParseError> + Display + Debug>(rows: &[(&str, &str)]) {
    for (input, expect) in rows {
        match input.parse::<T>() {
            Ok(value) => assert_eq!(value.to_string(), *expect, "printing `{input}`"),
            Err(error) => panic!("`{input}`: {error}"),
        }
    }
}

fn check_error<T: FromStr<Err = ParseError> + Debug>(rows: &[(&str, &str, &str)]) {
    for (input, message, help) in rows {
        let error = input.parse::<T>().expect_err(input);
        assert_eq!(
            (error.to_string().as_str(), error.help().as_str()),
            (*message, *help),
            "`{input}`"
        );
    }
}

#[test]
fn what_people_write_is_read_and_printed() {
    check::<Bytes>(&[
        ("80GiB", "80 GiB"),
        ("141GB", "131.3 GiB"),
        ("512 mib", "512 MiB"),
        ("79.2GiB", "79.2 GiB"),
        ("0B", "0 B"),
    ]);
    check::<Seconds>(&[
        ("400ms", "400 ms"),
        ("15m", "15 min"),
        ("90 s", "90 s"),
        ("1h30m", "90 min"),
        ("2h", "2 h"),
        ("7d", "7 d"),
        ("250us", "250 µs"),
        ("0s", "0 s"),
    ]);
    check::<PerSecond>(&[
        ("40/s", "40/s"),
        ("40 req/s", "40/s"),
        ("2.4k/min", "40/s"),
        ("600rpm", "10/s"),
        ("3/min", "3/min"),
        ("2/day", "2/day"),
        ("0/s", "0/s"),
    ]);
    check::<TokensPerSecond>(&[
        ("1.2M tok/s", "1,200,000 tok/s"),
        ("200k tpm", "3,333 tok/s"),
        ("90k tokens/min", "1,500 tok/s"),
    ]);
    check::<Tokens>(&[
        ("900", "900"),
        ("32k", "32,000"),
        ("32Ki", "32,768"),
        ("1_000 tok", "1,000"),
    ]);
    check::<UsdPerHour>(&[
        ("$2.50/h", "$2.50/h"),
        ("$12,000/month", "$16.438356/h"),
        ("$55.04/hour", "$55.04/h"),
    ]);
    check::<UsdPerToken>(&[("$0.15/Mtok", "$0.15/Mtok"), ("$0.002/ktok", "$2.00/Mtok")]);
    check::<UsdPerByte>(&[("$0.09/GB", "$0.09/GB")]);
    check::<UsdPerCall>(&[("$0.005/call", "$0.005/call"), ("$5/kcall", "$0.005/call")]);
    check::<UsdPerKwh>(&[("$0.12/kWh", "$0.12/kWh")]);
    check::<Usd>(&[
        ("$50,000", "$50,000.00"),
        ("$1.2M", "$1,200,000.00"),
        ("$0.000001", "$0.000001"),
    ]);
    check::<Fraction>(&[("55%", "55%"), ("0.55", "55%"), ("1", "100%"), ("99.9%", "99.9%")]);
    check::<Factor>(&[("3x", "3x"), ("1.5", "1.5x"), ("150%", "1.5x")]);
    check::<BytesPerSecond>(&[
        ("3.35TB/s", "3.35 TB/s"),
        ("400Gbit/s", "50 GB/s"),
        ("400Gbps", "50 GB/s"),
        ("8bit/s", "1 B/s"),
    ]);
    check::<OpsPerSecond>(&[("989TFLOPS", "989 TFLOPS"), ("2.5 PFLOPS", "2,500 TFLOPS")]);
    check::<Watts>(&[("700W", "700 W"), ("10.2kW", "10,200 W")]);
}

#[test]
fn mistakes_name_the_fix() {
    check_error::<Bytes>(&[
        ("80", "the number has no unit", "write `80GiB`"),
        (
            "80G",
            "`G` is not a unit of this quantity",
            "write an amount of memory such as `80GiB`, `141GB` or `512MiB`",
        ),
        (
            "-1GB",
            "`-1GB` is negative",
            "write an amount of memory such as `80GiB`, `141GB` or `512MiB`",
        ),
        (
            "1e30GB",
            "`1e30GB` is over the limit of 10^18 bytes",
            "write an amount of memory such as `80GiB`, `141GB` or `512MiB`",
        ),
    ]);
    check_error::<Seconds>(&[
        ("400", "the number has no unit", "write `400s`"),
        (
            "",
            "the value is empty",
            "write a duration such as `400ms`, `30s`, `15m`, `2h`, `1h30m` or `7d`",
        ),
        (
            "soon",
            "`soon` does not start with a number",
            "write a duration such as `400ms`, `30s`, `15m`, `2h`, `1h30m` or `7d`",
        ),
        (
            "nan",
            "`nan` is not a finite number",
            "write a duration such as `400ms`, `30s`, `15m`, `2h`, `1h30m` or `7d`",
        ),
    ]);
    check_error::<Fraction>(&[
        ("55", "a share is at most 1, which is 100%", "write `55%`"),
        (
            "140%",
            "`140%` is over the limit of 100%",
            "write a share from 0 to 1 such as `0.55` or `55%`",
        ),
    ]);
    check_error::<UsdPerHour>(&[
        (
            "2.50/h",
            "an amount of money starts with `$`",
            "write a price per time such as `$2.50/h` or `$12,000/month`",
        ),
        ("$2.50", "the number has no unit", "write `$2.50/h`"),
    ]);
    check_error::<Fraction>(&[(
        "1.5",
        "`1.5` is over the limit of 100%",
        "write a share from 0 to 1 such as `0.55` or `55%`",
    )]);
    // Bits or bytes? Eight apart, so neither is guessed.
    check_error::<BytesPerSecond>(&[(
        "400Gb/s",
        "`Gb/s` is not a unit of this quantity",
        "write a bandwidth such as `50GB/s` or `400Gbit/s`",
    )]);
    let long = "0s".repeat(100_000);
    assert!(matches!(long.parse::<Seconds>().unwrap_err().problem, Problem::TooLong(_)));
    check_error::<PerSecond>(&[("40", "the number has no unit", "write `40/s`")]);
}

#[test]
fn money_is_exact() {
    let price: UsdPerToken = "$0.15/Mtok".parse().unwrap();
    assert_eq!(price.get_picos(), 150_000);
    assert_eq!(price.cost_of(Tokens::new(1_000_000)), Usd::micros(150_000));
    // 7 tokens at 0.15 micro-dollars are 1.05: the nearest whole one is 1.
    assert_eq!(price.cost_of(Tokens::new(7)), Usd::micros(1));
    let hourly: UsdPerHour = "$2.50/h".parse().unwrap();
    assert_eq!(hourly.cost_of("90m".parse().unwrap()), Usd::micros(3_750_000));
    assert_eq!(hourly.times(8).to_string(), "$20.00/h");
}

#[test]
fn arithmetic_stops_at_the_ends() {
    assert_eq!(Tokens::new(u64::MAX) + Tokens::new(1), Tokens::new(u64::MAX));
    assert_eq!(Tokens::new(u64::MAX).checked_add(Tokens::new(1)), None);
    assert_eq!(Bytes::new(3).less(Bytes::new(5)), Bytes::ZERO);
    assert_eq!(Bytes::new(3).checked_sub(Bytes::new(5)), None);
    assert_eq!(Bytes::gib(1).tokens_that_fit(BytesPerToken::ZERO), None);
    let huge = Seconds::new(f64::MAX).unwrap();
    assert!((huge + huge).get().is_finite());
    assert!((PerSecond::new(f64::MAX).unwrap() * Tokens::new(u64::MAX)).get().is_finite());
    assert_eq!(-Usd::micros(i64::MIN), Usd::micros(i64::MAX));
    assert_eq!(Seconds::new(-0.0).unwrap().get().to_bits(), 0);
}

#[test]
fn numbers_that_measure_nothing_are_refused() {
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -f64::MIN_POSITIVE] {
        assert_eq!(Seconds::new(x), None, "{x}");
        assert_eq!(PerSecond::new(x), None, "{x}");
        assert_eq!(Fraction::new(x), None, "{x}");
    }
}

/// A printed value, read again, is the value up to the digits printed.
fn survives<T: FromStr<Err = ParseError> + Display>(value: &T, number: impl Fn(&T) -> f64) {
    let text = value.to_string();
    let again: T = text.parse().unwrap_or_else(|e| panic!("`{text}`: {e}"));
    let (a, b) = (number(value), number(&again));
    assert!((a - b).abs() <= 5e-3 * a.abs(), "{a} printed as `{text}` and read as {b}");
}

proptest! {
    /// Whatever bytes come in, a parser answers: no panic, and every value is finite.
    #[test]
    fn parsers_never_panic(text in "\\PC{0,60}") {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Tokens>();
        let _ = text.parse::<Usd>();
        let _ = text.parse::<UsdPerHour>();
        let _ = text.parse::<UsdPerToken>();
        for x in [
            text.parse::<Seconds>().map(Seconds::get),
            text.parse::<PerSecond>().map(PerSecond::get),
            text.parse::<TokensPerSecond>().map(TokensPerSecond::get),
            text.parse::<Fraction>().map(Fraction::get),
            text.parse::<Factor>().map(Factor::get),
            text.parse::<BytesPerSecond>().map(BytesPerSecond::get),
            text.parse::<OpsPerSecond>().map(OpsPerSecond::get),
        ].into_iter().flatten() {
            prop_assert!(x.is_finite() && x >= 0.0);
        }
    }

    /// The same for texts that almost are quantities, where the bugs live.
    #[test]
    fn near_misses_never_panic(text in "[-+$]?[0-9_,.]{0,40}(e[-+]?[0-9]{0,5})? ?[a-zA-Z/%µ]{0,8}") {
        if let Ok(x) = text.parse::<Seconds>() { prop_assert!(x.get().is_finite()); }
        if let Ok(x) = text.parse::<TokensPerSecond>() { prop_assert!(x.get().is_finite()); }
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<UsdPerToken>();
    }

    #[test]
    fn printing_loses_only_digits(n in 0u64..1_000_000_000_000_000, x in 1e-6f64..3e9) {
        survives(&Tokens::new(n), |t| t.get() as f64);
        survives(&Bytes::new(n), |b| b.get() as f64);
        survives(&Seconds::new(x).unwrap(), |s| s.get());
        survives(&PerSecond::new(x / 10.0).unwrap(), |r| r.get());
        survives(&Usd::micros(n.cast_signed()), |u| u.get_micros() as f64);
        survives(&Fraction::new(x / 3e9).unwrap(), |f| f.get());
        survives(&Factor::new(x / 10.0).unwrap(), |f| f.get());
    }

    /// Counts are exact: text to integer and back loses nothing.
    #[test]
    fn whole_tokens_are_exact(n in 0u64..1_000_000_000_000_000) {
        prop_assert_eq!(grouped(n).parse::<Tokens>().unwrap(), Tokens::new(n));
        prop_assert_eq!(format!("{n}B").parse::<Bytes>().unwrap(), Bytes::new(n));
    }
}
