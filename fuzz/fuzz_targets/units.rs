#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_units::{
    Bytes, BytesPerSecond, Factor, Fraction, OpsPerSecond, PerSecond, Seconds, Tokens, TokensPerSecond, Usd,
    UsdPerByte, UsdPerCall, UsdPerHour, UsdPerKwh, UsdPerToken, Watts,
};

macro_rules! answers {
    ($text:ident: $($type:ty),*) => { $(
        if let Err(error) = $text.parse::<$type>() {
            assert!(!error.to_string().is_empty() && !error.help().is_empty());
        }
    )* };
}

fuzz_target!(|text: &str| {
    answers!(text: Bytes, Tokens, Usd, UsdPerByte, UsdPerCall, UsdPerHour, UsdPerKwh, UsdPerToken, Watts);
    answers!(text: BytesPerSecond, Factor, Fraction, OpsPerSecond, PerSecond, Seconds, TokensPerSecond);
    if let Ok(seconds) = text.parse::<Seconds>() {
        assert!(seconds.get().is_finite() && seconds.get() >= 0.0);
        // What is printed can be read again.
        assert!(seconds.to_string().parse::<Seconds>().is_ok(), "{seconds}");
    }
    if let Ok(price) = text.parse::<UsdPerHour>() {
        assert!(price.to_string().parse::<UsdPerHour>().is_ok(), "{price}");
    }
});
