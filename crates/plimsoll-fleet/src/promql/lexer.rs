//! The words of a query.

use super::QueryError;

/// A word and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// As it is written.
    pub(super) text: &'a str,
    /// Bytes before it.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    /// Milliseconds.
    Duration(i64),
    Text(String),
    /// A name or a keyword; which one depends on where it stands.
    Word,
    Symbol,
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 24] = [
    "==", "=~", "!=", "!~", "<=", ">=", "(", ")", "{", "}", "[", "]", ",", "+", "-", "*", "/", "%",
    "^", "=", "<", ">", "@", ":",
];

/// All words of a text, and one that marks its end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, QueryError> {
    let mut tokens = Vec::new();
    let mut in_brackets = false;
    let mut at = 0;
    loop {
        at = after_blanks(text, at);
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push(Token { kind: Kind::End, text: "", at });
            return Ok(tokens);
        };
        let refuse = |message: String| error(text, at, message);
        let (kind, length) = match first {
            '"' | '\'' | '`' => quoted(rest, first)
                .map_err(|(from, message)| error(text, at + from, message.to_owned()))?,
            '0'..='9' => numeric(rest).map_err(refuse)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                numeric(rest).map_err(refuse)?
            }
            ':' if in_brackets => (Kind::Symbol, 1),
            'a'..='z' | 'A'..='Z' | '_' | ':' => {
                let length = rest.find(|c| !is_name(c) && c != ':').unwrap_or(rest.len());
                (Kind::Word, length)
            }
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => {
                    in_brackets = *symbol == "[" || (in_brackets && *symbol != "]");
                    (Kind::Symbol, symbol.len())
                }
                None => return Err(refuse(format!("`{first}` is no part of PromQL"))),
            },
        };
        tokens.push(Token { kind, text: &rest[..length], at });
        at += length;
    }
}

/// An error at a byte.
pub(super) fn error(text: &str, at: usize, message: String) -> QueryError {
    QueryError { message, at: text[..at].chars().count() }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Where spaces and comments end.
fn after_blanks(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let blank = rest.find(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')).unwrap_or(rest.len());
        at += blank;
        if !text[at..].starts_with('#') {
            return at;
        }
        at += text[at..].find('\n').unwrap_or(text.len() - at);
    }
}

/// A number or a duration.
fn numeric(rest: &str) -> Result<(Kind, usize), String> {
    let hex = rest.starts_with("0x") || rest.starts_with("0X");
    let mut before = ' ';
    let length = rest.find(|c| {
        let sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !hex;
        before = c;
        !(is_name(c) || c == '.' || sign)
    });
    let length = length.unwrap_or(rest.len());
    let written = &rest[..length];
    let kind = match (number(written), duration(written)) {
        (Some(value), _) => Kind::Number(value),
        (None, Some(value)) => Kind::Duration(value),
        (None, None) => return Err(format!("`{written}` is neither a number nor a duration")),
    };
    Ok((kind, length))
}

/// Numbers are Go's: hexadecimal with `0x`, octal with `0`, and `_` between digits.
fn number(written: &str) -> Option<f64> {
    let (digits, hex) = match written.get(..2) {
        Some("0x" | "0X") => (&written[2..], true),
        _ => (written, false),
    };
    let is_digit = |c: u8| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
    let bytes = digits.as_bytes();
    let separates = |at: usize| {
        let before = if at == 0 { hex } else { is_digit(bytes[at - 1]) };
        before && bytes.get(at + 1).is_some_and(|c| is_digit(*c))
    };
    if bytes.iter().enumerate().any(|(at, c)| *c == b'_' && !separates(at)) {
        return None;
    }
    let digits = digits.replace('_', "");
    let whole = |radix| i64::from_str_radix(&digits, radix).ok().map(|value| value as f64);
    if hex {
        return whole(16);
    }
    let octal = digits.len() > 1 && digits.starts_with('0');
    if let Some(value) = octal.then(|| whole(8)).flatten() {
        return Some(value);
    }
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Milliseconds of a duration: units from the largest to the smallest, each once.
fn duration(written: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 7] = [
        ("y", 365 * 86_400_000),
        ("w", 7 * 86_400_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    let mut total = 0_i64;
    let mut rest = written;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let value: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let length = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (_, unit) = units.find(|(name, _)| *name == &rest[..length])?;
        total = total.checked_add(value.checked_mul(*unit)?)?;
        rest = &rest[length..];
    }
    // Prometheus counts nanoseconds in 64 bits.
    (total <= i64::MAX / 1_000_000).then_some(total)
}

/// A text in one of three quotes. Escapes are Go's, and there are none between backticks.
fn quoted(rest: &str, quote: char) -> Result<(Kind, usize), (usize, &'static str)> {
    const OPEN: (usize, &str) = (0, "the quote is not closed");
    if quote == '`' {
        let end = rest[1..].find('`').ok_or(OPEN)?;
        return Ok((Kind::Text(rest[1..=end].to_owned()), end + 2));
    }
    let mut bytes = Vec::new();
    let mut chars = rest.char_indices().skip(1);
    loop {
        match chars.next().ok_or(OPEN)? {
            (_, '\n') => return Err(OPEN),
            (at, c) if c == quote => {
                return Ok((Kind::Text(String::from_utf8_lossy(&bytes).into_owned()), at + 1));
            }
            (at, '\\') => {
                let wrong = (at, "Go knows no such escape");
                let (_, escape) = chars.next().ok_or(OPEN)?;
                // How many digits follow in which base, and whether they are a character or a byte.
                let (count, radix, is_char) = match escape {
                    'x' => (2, 16, false),
                    'u' => (4, 16, true),
                    'U' => (8, 16, true),
                    '0'..='7' => (2, 8, false),
                    _ => {
                        let plain = match escape {
                            'a' => 7,
                            'b' => 8,
                            'f' => 12,
                            'n' => b'\n',
                            'r' => b'\r',
                            't' => b'\t',
                            'v' => 11,
                            '\\' => b'\\',
                            '"' | '\'' if escape == quote => escape as u8,
                            _ => return Err(wrong),
                        };
                        bytes.push(plain);
                        continue;
                    }
                };
                let mut value = escape.to_digit(8).filter(|_| radix == 8).unwrap_or(0);
                for _ in 0..count {
                    let digit = chars.next().and_then(|(_, c)| c.to_digit(radix)).ok_or(wrong)?;
                    value = value.wrapping_mul(radix).wrapping_add(digit);
                }
                if is_char {
                    let c = char::from_u32(value).ok_or(wrong)?;
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                } else {
                    bytes.push(u8::try_from(value).map_err(|_| wrong)?);
                }
            }
            (_, c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
