//! Columns of plain text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use plimsoll_study::Level;
use plimsoll_units::grouped;

/// How headings stand out: in bold where the terminal has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// With escape codes.
    Bold,
    /// Without.
    Plain,
}

impl Heading {
    /// The text as a heading.
    pub fn apply(self, text: &str) -> String {
        match self {
            Self::Bold => format!("\x1b[1m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }

    /// A line in which words that say what does not hold are red: they say as much without.
    pub(crate) fn tinted(self, line: &str) -> String {
        const RED: [&str; 9] = [
            "SHORTFALL",
            "MEMORY RISK",
            "OVER CAP",
            "NOT READY",
            "NOT FEASIBLE",
            "BREAKS",
            "FAIL:",
            "TRIPS",
            "WHICH HAS PASSED",
        ];
        let mut out = line.to_owned();
        if self == Self::Bold {
            for word in RED {
                out = out.replace(word, &format!("\x1b[1;31m{word}\x1b[0m"));
            }
        }
        out
    }
}

/// A table without borders: two blanks between columns, none at the ends.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    aligned(header, rows, &[])
}

/// The same, with these columns to the right.
pub(crate) fn aligned(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec());
    for row in rows {
        table.add_row(row.clone());
    }
    let last = header.len().saturating_sub(1);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if i == last { 0 } else { 2 }));
        if right.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if out.is_empty() {
        out.push('\n');
    }
    out
}

/// 0.95 as `95`, 0.999 as `99.9`, without the dust of binary fractions.
pub(crate) fn plain_percent(share: f64) -> String {
    ((share * 1e6).round() / 1e4).to_string()
}

/// A level with its interval, in the digits it has earned: the last one shown is the interval's second.
pub(crate) fn shown_level(level: &Level) -> String {
    let x = level.p95_per_s;
    let Some(interval) = level.p95_interval else { return rounded(x, x / 1000.0) };
    // The lower end is cut off at zero, the upper one never.
    let half = interval.high - x;
    format!("{} ±{}", rounded(x, half), rounded(half, half))
}

/// `x` rounded to the second digit of `scale`.
fn rounded(x: f64, scale: f64) -> String {
    if x >= 1e15 {
        return format!("{x:.3e}");
    }
    if scale <= 0.0 || !scale.is_finite() {
        return if x.fract() == 0.0 { grouped(x as u64) } else { format!("{x:.3}") };
    }
    let digit = 10f64.powi(scale.log10().floor() as i32 - 1);
    if digit >= 1.0 {
        return grouped(((x / digit).round() * digit) as u64);
    }
    let decimals = usize::try_from(-(digit.log10().floor() as i32)).unwrap_or(0).min(6);
    let text = format!("{x:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse::<u64>().map_or_else(|_| whole.to_owned(), grouped);
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_the_digits_they_have_earned() {
        let check = |x: f64, scale: f64, expect: &str| {
            assert_eq!(rounded(x, scale), expect, "{x} ±{scale}")
        };
        check(720_123.0, 4321.0, "720,100");
        check(105.234, 0.48, "105.23");
        check(105.234, 4.8, "105.2");
        check(0.0, 0.0, "0");
        check(12.0, 0.0, "12");
        check(1e14, 1e9, "100,000,000,000,000");
        check(1e25, 1e9, "1.000e25");
    }
}
