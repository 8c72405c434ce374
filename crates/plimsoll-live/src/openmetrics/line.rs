//! One line of a file of metrics.

use crate::answer::Labels;

/// What stands before the value.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) labels: Labels,
}

/// How far the name and the labels of a sample reach, in bytes.
pub(super) fn series_length(text: &[u8]) -> Result<usize, String> {
    let name = text.iter().position(|byte| !is_name(*byte)).unwrap_or(text.len());
    let after = text[name..].iter().position(|byte| *byte != b' ').unwrap_or(0);
    if text.get(name + after) != Some(&b'{') {
        return if name == 0 { Err("begins with no name".to_owned()) } else { Ok(name) };
    }
    let (mut quoted, mut escaped) = (false, false);
    for (place, byte) in text.iter().enumerate().skip(name + after) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return Ok(place + 1),
            _ => {}
        }
    }
    Err("has labels without an end".to_owned())
}

/// The value and the time of a sample, the latter as it is written; an exemplar is passed over.
pub(super) fn value_and_stamp(rest: &str) -> Result<(f64, Option<f64>), String> {
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().ok_or("has no value")?;
    let value: f64 = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    let stamp = match words.next() {
        None => None,
        Some(word) => {
            let stamp = word.parse::<f64>().ok().filter(|stamp| stamp.abs() < 1e15);
            Some(stamp.ok_or_else(|| format!("`{word}` is no time"))?)
        }
    };
    match words.next() {
        None => Ok((value, stamp)),
        Some(word) => Err(format!("`{word}` follows its time")),
    }
}

impl Line {
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let (name, labels) = match text.split_once('{') {
            None => (text, ""),
            Some((name, labels)) => {
                (name, labels.strip_suffix('}').ok_or("has labels without an end")?)
            }
        };
        let name = name.trim_end();
        if !is_identifier(name.as_bytes()) {
            return Err(format!("`{name}` is no name of a metric"));
        }
        Ok(Self { name: name.to_owned(), labels: labels_of(labels)? })
    }
}

fn labels_of(mut text: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return Ok(labels);
        }
        let (label, rest) = text.split_once('=').ok_or("has a label without a value")?;
        let label = label.trim();
        if !is_identifier(label.as_bytes()) || label.contains(':') {
            return Err(format!("`{label}` is no name of a label"));
        }
        let rest = rest.trim_start().strip_prefix('"').ok_or("has a label without quotes")?;
        let end = closing(rest).ok_or("has a label without its last quote")?;
        let value = unescape(&rest[..end]);
        if labels.contains_key(label) {
            return Err(format!("has the label `{label}` twice"));
        }
        // An empty label is none.
        if !value.is_empty() {
            labels.insert(label.to_owned(), value);
        }
        text = rest[end + 1..].trim_start();
        match text.strip_prefix(',') {
            Some(rest) => text = rest,
            None if text.is_empty() => {}
            None => return Err("has labels without a comma between them".to_owned()),
        }
    }
}

/// Where the quote is that ends a value.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':')
}

fn is_identifier(text: &[u8]) -> bool {
    text.first().is_some_and(|first| !first.is_ascii_digit()) && text.iter().all(|b| is_name(*b))
}

/// What an escaped text means; what is escaped for no reason stays as it is.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(own) = chars.next() {
        if own != '\\' {
            plain.push(own);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some(escaped @ ('\\' | '"')) => plain.push(escaped),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}

/// The same, the other way round.
pub(super) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
