//! YAML written so that people can read it: in a fixed order, each number under a comment that says why.
//!
//! A tree is built with [`map`], [`list`], [`text`] and [`number`], and each part may be given its reason ([`Item::because`]). What is written reads
//! back as the same tree, whatever is in its texts.

use std::fmt::Write as _;

/// Comments are broken at this column.
const COLUMNS: usize = 100;

/// A part of a document, and why it is so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    kind: Kind,
    why: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A number or a flag, as it is written.
    Plain(String),
    /// A text, quoted where it must be.
    Text(String),
    /// A text that is always quoted, because its schema wants a text and it looks like a number.
    Quoted(String),
    /// A file in a file.
    Block(String),
    List(Vec<Item>),
    Map(Vec<(String, Item)>),
}

/// Parts by name, in this order.
pub fn map<const N: usize>(parts: [(&str, Item); N]) -> Item {
    Kind::Map(parts.into_iter().map(|(name, item)| (name.to_owned(), item)).collect()).into()
}

/// The same where the names are not known beforehand.
pub fn map_of(parts: Vec<(String, Item)>) -> Item {
    Kind::Map(parts).into()
}

/// One after the other.
pub fn list(parts: Vec<Item>) -> Item {
    Kind::List(parts).into()
}

/// A text.
pub fn text(value: impl Into<String>) -> Item {
    Kind::Text(value.into()).into()
}

/// A text that looks like a number and must not be taken for one.
pub fn quoted(value: impl Into<String>) -> Item {
    Kind::Quoted(value.into()).into()
}

/// A number, as it is to be written.
pub fn number(value: impl ToString) -> Item {
    Kind::Plain(value.to_string()).into()
}

/// A flag.
pub fn flag(value: bool) -> Item {
    Kind::Plain(value.to_string()).into()
}

/// A file in a file: lines as they are.
pub fn block(value: impl Into<String>) -> Item {
    Kind::Block(value.into()).into()
}

impl From<Kind> for Item {
    fn from(kind: Kind) -> Self {
        Self { kind, why: None }
    }
}

impl Item {
    /// With a comment above it.
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// With one more part under a name; something that is no map stays as it is.
    pub fn with(mut self, name: &str, item: Item) -> Self {
        if let Kind::Map(parts) = &mut self.kind {
            parts.push((name.to_owned(), item));
        }
        self
    }

    /// The same where there is such a part.
    pub fn with_some(self, name: &str, item: Option<Item>) -> Self {
        match item {
            Some(item) => self.with(name, item),
            None => self,
        }
    }
}

/// A file: a comment, then documents.
pub fn file(header: &[String], documents: &[Item]) -> String {
    let mut out = String::new();
    for line in header {
        comment(&mut out, line, 0);
    }
    for (at, document) in documents.iter().enumerate() {
        if at > 0 {
            out.push_str("---\n");
        }
        if let Some(why) = &document.why {
            comment(&mut out, why, 0);
        }
        write(&mut out, document, 0);
    }
    out
}

/// Comments, broken into lines; what would end a comment becomes a space.
pub(crate) fn comment(out: &mut String, text: &str, indent: usize) {
    let clean: String = text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
    let pad = " ".repeat(indent);
    let mut line = String::new();
    for word in clean.split_whitespace() {
        if !line.is_empty()
            && indent + 2 + line.chars().count() + 1 + word.chars().count() > COLUMNS
        {
            let _ = writeln!(out, "{pad}# {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(out, "{pad}# {line}");
    }
}

fn write(out: &mut String, item: &Item, indent: usize) {
    let pad = " ".repeat(indent);
    match &item.kind {
        Kind::Map(parts) => {
            for (name, part) in parts {
                if let Some(why) = &part.why {
                    comment(out, why, indent);
                }
                let _ = write!(out, "{pad}{}:", scalar(name));
                value(out, part, indent);
            }
        }
        Kind::List(parts) => {
            for part in parts {
                if let Some(why) = &part.why {
                    comment(out, why, indent);
                }
                match &part.kind {
                    Kind::Map(own) if !own.is_empty() => {
                        let mut inner = String::new();
                        write(&mut inner, part, indent + 2);
                        // A comment of the first part stands before the dash, so that the dash stays on a line with a name.
                        let first =
                            inner.lines().take_while(|line| line.trim_start().starts_with('#'));
                        let comments = first.count();
                        for (at, line) in inner.lines().enumerate() {
                            let dash = at == comments;
                            let line =
                                if dash { line.get(indent + 2..).unwrap_or(line) } else { line };
                            let _ = match (at < comments, dash) {
                                (true, _) => writeln!(out, "{}", line.get(2..).unwrap_or(line)),
                                (false, true) => writeln!(out, "{pad}- {line}"),
                                (false, false) => writeln!(out, "{line}"),
                            };
                        }
                    }
                    _ => {
                        let _ = write!(out, "{pad}-");
                        value(out, part, indent);
                    }
                }
            }
        }
        Kind::Plain(_) | Kind::Text(_) | Kind::Quoted(_) | Kind::Block(_) => {
            let _ = write!(out, "{pad}");
            value(out, item, indent);
        }
    }
}

/// What follows a name or a dash.
fn value(out: &mut String, item: &Item, indent: usize) {
    match &item.kind {
        Kind::Plain(plain) => {
            let _ = writeln!(out, " {plain}");
        }
        Kind::Text(text) => {
            let _ = writeln!(out, " {}", scalar(text));
        }
        Kind::Quoted(text) => {
            let _ = writeln!(out, " {}", in_quotes(text));
        }
        Kind::Block(text) => {
            out.push_str(" |\n");
            for line in text.lines() {
                let pad = if line.is_empty() { 0 } else { indent + 2 };
                let _ = writeln!(out, "{}{line}", " ".repeat(pad));
            }
        }
        Kind::List(parts) if parts.is_empty() => out.push_str(" []\n"),
        Kind::Map(parts) if parts.is_empty() => out.push_str(" {}\n"),
        Kind::List(_) => {
            out.push('\n');
            write(out, item, indent);
        }
        Kind::Map(_) => {
            out.push('\n');
            write(out, item, indent + 2);
        }
    }
}

/// A text, without quotes where no reader of any version of YAML could take it for something else.
fn scalar(text: &str) -> String {
    const TAKEN: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        && !TAKEN.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { in_quotes(text) }
}

/// In the quotes that need the fewest escapes.
fn in_quotes(text: &str) -> String {
    if !text.chars().all(is_printable) {
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                c if is_printable(c) => out.push(c),
                c => {
                    let _ = write!(out, "\\U{:08X}", u32::from(c));
                }
            }
        }
        out.push('"');
        return out;
    }
    if text.contains(['"', '\\']) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        format!("\"{text}\"")
    }
}

/// Whether a character may stand in a file as it is, and never ends a line.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}')
        && u32::from(c) & 0xFFFE != 0xFFFE
        && !matches!(u32::from(c), 0xFDD0..=0xFDEF)
}

/// In no more digits than are given, rounded down: where less is safer.
pub fn rounded_down(value: f64, digits: i32) -> String {
    rounded(value, digits, f64::floor, 1e-12)
}

/// In no more digits than are given, rounded up: where more is safer.
pub fn rounded_up(value: f64, digits: i32) -> String {
    rounded(value, digits, f64::ceil, -1e-12)
}

fn rounded(value: f64, digits: i32, to_whole: fn(f64) -> f64, slack: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return "0".to_owned();
    }
    let places = digits - 1 - magnitude(value);
    let scale = 10_f64.powi(places);
    // The slack is less than any digit that is kept, and more than the error of a product.
    let whole = to_whole(value * scale * (1.0 + slack));
    if places <= 0 {
        return format!("{:.0}", whole / scale);
    }
    let text = format!("{:.*}", usize::try_from(places).unwrap_or(0), whole / scale);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The power of ten of the first digit.
fn magnitude(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.rsplit_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::documents;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn comments_stand_above_what_they_explain() {
        let item = map([
            ("kind", text("Thing")),
            ("max", number(3).because("as many as the plan has")),
            (
                "rules",
                list(vec![
                    map([("a", quoted("1").because("first")), ("b", text("x: y"))]),
                    map([("a", list(vec![number(1), text("no")]))]).because("a second rule"),
                ]),
            ),
            ("file", block("one: 1\n# why\ntwo: 2\n")),
            ("none", list(Vec::new())),
        ]);
        let out = file(&["made by hand".to_owned()], &[item]);
        insta::assert_snapshot!(out, @r##"
        # made by hand
        kind: Thing
        # as many as the plan has
        max: 3
        rules:
        # first
        - a: "1"
          b: "x: y"
        # a second rule
        - a:
          - 1
          - "no"
        file: |
          one: 1
          # why
          two: 2
        none: []
        "##);
        let read = documents(&out).expect("YAML");
        assert_eq!(
            read[0].to_json(),
            json!({"kind": "Thing", "max": 3,
                "rules": [{"a": "1", "b": "x: y"}, {"a": [1, "no"]}],
                "file": "one: 1\n# why\ntwo: 2\n", "none": []})
        );
    }

    #[test]
    fn digits_are_earned_and_rounded_one_way() {
        let down = |value| rounded_down(value, 4);
        let rows = [
            (30309.003, "30300"),
            (3.79951, "3.799"),
            (0.99205, "0.992"),
            (0.4, "0.4"),
            (9.5, "9.5"),
            (5.0, "5"),
            (44_214_128.0, "44210000"),
            (0.000_123_456, "0.0001234"),
            (0.3, "0.3"),
            (1000.0, "1000"),
        ];
        for (value, expected) in rows {
            assert_eq!(down(value), expected, "{value}");
        }
        assert_eq!(rounded_up(30309.003, 4), "30310");
        assert_eq!(rounded_up(0.3, 4), "0.3");
    }

    proptest! {
        #[test]
        fn any_text_reads_back(name in any::<String>(), value in any::<String>(), why in any::<String>()) {
            let inner = map_of(vec![(name.clone(), text(value.clone()).because(why.clone()))]);
            let item = map([("x", list(vec![inner.clone().because(why), quoted(value.clone())])), ("y", inner)]);
            let out = file(std::slice::from_ref(&name), &[item]);
            let read = documents(&out).map_err(|error| TestCaseError::fail(format!("{error}\n{out}")))?;
            prop_assert_eq!(
                read[0].to_json(),
                json!({"x": [{name.clone(): value.clone()}, value.clone()], "y": {name: value}}),
                "{}", out
            );
        }

        #[test]
        fn rounding_has_a_direction(value in 1e-6..1e12_f64) {
            let down: f64 = rounded_down(value, 4).parse().expect("a number");
            let up: f64 = rounded_up(value, 4).parse().expect("a number");
            prop_assert!(down <= value * (1.0 + 1e-9) && down >= value * 0.998, "{down} of {value}");
            prop_assert!(up >= value * (1.0 - 1e-9) && up <= value * 1.002, "{up} of {value}");
        }
    }
}
