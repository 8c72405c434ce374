//! Quantities with units, as values of a scenario.

use plimsoll_units::{
    Bytes, BytesPerSecond, Factor, Fraction, OpsPerSecond, ParseError, PerSecond, Seconds, Tokens,
    TokensPerSecond, Usd, UsdPerByte, UsdPerCall, UsdPerHour, UsdPerKwh, UsdPerToken, Watts,
};
use toml::de::DeValue;

use super::{Node, Reader, Shape, Value, example};

/// A number as it was written, without the separators.
pub(crate) fn number_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(n) if n.radix() == 10 => Some(n.as_str().replace('_', "")),
        DeValue::Integer(n) => {
            i128::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string())
        }
        DeValue::Float(x) => Some(x.as_str().replace('_', "")),
        _ => None,
    }
}

/// A quantity that could not be read, as a report with a fix to paste.
pub(crate) fn bad_quantity(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    error: &ParseError,
    bare: bool,
) {
    use plimsoll_units::Problem;
    let message = format!("`{}` must be {}: {error}", node.key, error.expected);
    // The key's own default knows best which unit and size belong there.
    let hint =
        reader.hint.filter(|toml| toml.starts_with('\'')).map(|toml| toml.trim_matches('\''));
    let shape = Shape::Quantity { noun: error.expected, examples: error.examples, bare };
    let fix = match (&error.problem, hint) {
        (Problem::UnitMissing { .. }, Some(hint))
            if hint.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            let number = number_text(node.value).unwrap_or_else(|| error.input.clone());
            let unit = hint.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            format!("write `{} = \"{number}{unit}\"`", node.key)
        }
        (Problem::UnitMissing { suggestion } | Problem::PercentMissing { suggestion }, _) => {
            format!("write `{} = \"{suggestion}\"`", node.key)
        }
        (_, Some(hint)) => format!("write {} such as `{} = \"{hint}\"`", error.expected, node.key),
        (_, None) => {
            format!("write {} such as `{} = {}`", error.expected, node.key, example(&shape))
        }
    };
    let diagnostic = reader
        .error("bad-quantity", node, message)
        .label(format!("not {}", error.expected))
        .help(fix);
    reader.report(diagnostic);
}

macro_rules! quantity {
    ($($type:ty, $noun:literal, $examples:literal, $bare:literal;)*) => { $(
        impl Value for $type {
            fn shape() -> Shape {
                Shape::Quantity { noun: $noun, examples: $examples, bare: $bare }
            }

            fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let text = match node.value.as_str() {
                    Some(text) => text.to_owned(),
                    None => match number_text(node.value) {
                        Some(text) => text,
                        None => return reader.wrong_type(node, $noun, &example(&Self::shape())),
                    },
                };
                match text.parse::<$type>() {
                    Ok(value) => Some(value),
                    Err(error) => {
                        bad_quantity(reader, node, &error, $bare);
                        None
                    }
                }
            }
        }
    )* };
}

quantity! {
    Tokens, "a whole number of tokens", "`900` or `32k`", true;
    Bytes, "an amount of memory", "`80GiB` or `141GB`", false;
    Seconds, "a duration", "`400ms`, `30s` or `15m`", false;
    Usd, "an amount of dollars", "`$50,000`", false;
    UsdPerHour, "a price per time", "`$2.50/h` or `$12,000/month`", false;
    UsdPerToken, "a price per token", "`$0.15/Mtok`", false;
    UsdPerByte, "a price per byte", "`$0.09/GB`", false;
    UsdPerCall, "a price per call", "`$0.005/call`", false;
    UsdPerKwh, "a price of energy", "`$0.12/kWh`", false;
    PerSecond, "a rate", "`40/s` or `600 rpm`", false;
    TokensPerSecond, "a token rate", "`1.2M tok/s` or `200k tpm`", false;
    BytesPerSecond, "a bandwidth", "`50GB/s`", false;
    OpsPerSecond, "an arithmetic rate", "`989TFLOPS`", false;
    Watts, "a power", "`700W`", false;
    Fraction, "a share from 0 to 1", "`0.55` or `55%`", true;
    Factor, "a multiplier", "`1.5` or `150%`", true;
}
