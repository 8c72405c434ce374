//! Numbers, bars and lines.

use plimsoll_units::grouped;

/// Columns of a line.
const COLUMNS: usize = 100;

/// Three digits or all whole ones: 0.0123, 2.99, 14.4, 6,103.
pub(super) fn few(x: f64) -> String {
    let size = x.abs();
    let text = match size {
        none if none <= 0.0 => return "0".to_owned(),
        tiny if tiny < 1e-6 => return format!("{x:.1e}"),
        small if small < 1.0 => {
            let zeros = (-small.log10()).ceil().max(0.0) as usize;
            format!("{size:.*}", zeros + 2)
        }
        some if some < 9.995 => format!("{size:.2}"),
        some if some < 99.95 => format!("{size:.1}"),
        many => count(many),
    };
    if x < 0.0 { format!("-{text}") } else { text }
}

/// A number of requests or tokens: whole.
pub(super) fn count(x: f64) -> String {
    grouped(x.max(0.0).round() as u64)
}

/// A share; what is not all is not rounded to it, nor what is something to nothing.
pub(super) fn percent(share: f64) -> String {
    crate::simulate::percent(from_zero(share))
}

/// A share of a narrow column.
pub(super) fn narrow(share: f64) -> String {
    match format!("{:.1}%", from_zero(share) * 100.0) {
        all if all == "100.0%" && share < 1.0 => ">99.9%".to_owned(),
        none if none == "0.0%" && share > 0.0 => "<0.1%".to_owned(),
        text => text,
    }
}

/// No share lies below zero, but for the last digit of a difference.
fn from_zero(share: f64) -> f64 {
    if share <= 0.0 { 0.0 } else { share }
}

/// A time in the unit that people would say it in.
pub(super) fn duration(seconds: f64) -> String {
    let (amount, unit) = match seconds {
        s if s <= 0.0 => (0.0, "s"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    let text = few(amount);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// `1 row` or `2 rows`.
pub(crate) fn many(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// The length of a window, as its key has it.
pub(super) fn window(key: &str) -> String {
    match key {
        "3600" => "1 h".to_owned(),
        seconds => format!("{seconds} s"),
    }
}

/// One character a value: nothing is a dot, the largest a full block.
pub(super) fn sparkline(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let draw = |value: &f64| match value / most {
        part if part > 0.0 => BLOCKS[((part * 8.0).ceil() as usize).clamp(1, 8) - 1],
        _ => '·',
    };
    values.iter().map(draw).collect()
}

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of at most so many characters, to an eighth of one; something is at least an eighth.
pub(super) fn bar(part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    let mut out: String = std::iter::repeat_n('█', eighths / 8).collect();
    if eighths % 8 > 0 {
        out.push(EIGHTHS[eighths % 8 - 1]);
    }
    out
}

/// An item of a list, with later lines under the first.
pub(crate) fn item(text: &str) -> String {
    folded("- ", text)
}

/// A labelled line, with later lines under the first.
pub(super) fn labelled(label: &str, text: &str) -> String {
    folded(&format!("{label}: "), text)
}

/// A line of its own, with later ones indented.
pub(super) fn line(text: &str) -> String {
    folded("", text)
}

/// Words in lines of at most a hundred columns; later ones are indented by two.
fn folded(label: &str, text: &str) -> String {
    let mut out = String::from(label);
    let mut column = label.chars().count();
    let mut fresh = true;
    for word in glued(text) {
        let length = word.chars().count();
        if !fresh && column + 1 + length > COLUMNS {
            out.push_str("\n  ");
            column = 2;
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += length;
        fresh = false;
    }
    out.push('\n');
    out
}

/// Words, of which a unit stays with its number.
fn glued(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let unit = ["s", "ms", "min", "h", "days", "tokens", "%"];
        let bare = word.trim_end_matches([',', ';', '.', ':', ')']);
        match words.last_mut().filter(|_| unit.contains(&bare)) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_the_digits_they_have_earned() {
        let all = [0.0, 4e-7, 0.012_34, 0.999, 2.994, 9.996, 14.35, 99.96, 6102.6, -0.126];
        let text: Vec<String> = all.into_iter().map(few).collect();
        assert_eq!(
            text,
            ["0", "4.0e-7", "0.0123", "0.999", "2.99", "10.0", "14.3", "100", "6,103", "-0.126"]
        );
        let times = [0.0042, 43.0, 2574.5, 9000.0, 907_200.0].map(duration);
        assert_eq!(times, ["4.2 ms", "43 s", "42.9 min", "2.5 h", "10.5 days"]);
        assert_eq!((many(1, "row"), many(1200, "row")), ("1 row".into(), "1,200 rows".into()));
        assert_eq!(glued("of 10 s, or more"), ["of", "10 s,", "or", "more"]);
    }

    #[test]
    fn bars_and_sparklines() {
        assert_eq!(sparkline(&[0.0, 1.0, 8.0, 4.0, 0.01]), "·▁█▄▁");
        assert_eq!(sparkline(&[0.0, 0.0]), "··");
        assert_eq!(
            (bar(1.0, 3), bar(0.5, 3), bar(1e-9, 3)),
            ("███".into(), "█▌".into(), "▏".into())
        );
        assert_eq!(bar(0.0, 3), "");
    }

    #[test]
    fn lines_are_folded() {
        let text = item(&"word ".repeat(30));
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
    }
}
