//! Numbers as people read them.

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A non-negative number in `digits` significant digits, thousands grouped, no trailing zeros after
/// the point. Whole parts are never rounded away: 123,456 stays 123,456.
pub(crate) fn significant(x: f64, digits: i32) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let magnitude = x.log10().floor() as i32;
    let decimals = usize::try_from((digits - 1 - magnitude).clamp(0, 12)).unwrap_or(0);
    let text = format!("{x:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let whole = whole.parse::<u64>().map_or_else(|_| whole.to_owned(), grouped);
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}
