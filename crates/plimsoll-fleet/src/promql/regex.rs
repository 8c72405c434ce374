//! Patterns of labels: whether Go takes one, and whether it matches the empty text.

use std::iter::Peekable;
use std::str::Chars;

/// Groups within each other at most.
const NESTED_MOST: usize = 64;
/// Repetitions at most, as in Go.
const REPEATS_MOST: u32 = 1000;

type Result<T> = std::result::Result<T, &'static str>;

/// Whether a pattern matches the empty text; what is wrong with it where Go refuses it.
pub(super) fn matches_empty(pattern: &str) -> Result<bool> {
    let mut rest = pattern.chars().peekable();
    let matches = alternatives(&mut rest, 0)?;
    match rest.next() {
        Some(_) => Err("`)` closes nothing"),
        None => Ok(matches),
    }
}

/// Up to the end or a `)`.
fn alternatives(rest: &mut Peekable<Chars<'_>>, nested: usize) -> Result<bool> {
    if nested > NESTED_MOST {
        return Err("its groups are nested too deep");
    }
    let mut any = false;
    loop {
        any |= sequence(rest, nested)?;
        if rest.next_if_eq(&'|').is_none() {
            return Ok(any);
        }
    }
}

fn sequence(rest: &mut Peekable<Chars<'_>>, nested: usize) -> Result<bool> {
    let mut all = true;
    while rest.peek().is_some_and(|c| !matches!(c, '|' | ')')) {
        let (matches, repeatable) = atom(rest, nested)?;
        all &= repeated(rest, matches, repeatable)?;
    }
    Ok(all)
}

/// What may stand behind a part: how often it comes, once.
fn repeated(rest: &mut Peekable<Chars<'_>>, matches: bool, repeatable: bool) -> Result<bool> {
    let mut times = None;
    while let Some(least) = repetition(rest)? {
        if !repeatable {
            return Err("nothing is repeated");
        }
        if times.replace(least).is_some() {
            return Err("it repeats a repetition");
        }
        rest.next_if_eq(&'?');
    }
    Ok(matches || times == Some(0))
}

/// The least number of times, where a repetition stands. A brace that is none is taken for itself.
fn repetition(rest: &mut Peekable<Chars<'_>>) -> Result<Option<u32>> {
    let least = match rest.peek() {
        Some('*' | '?') => 0,
        Some('+') => 1,
        Some('{') => {
            let mut ahead = rest.clone();
            ahead.next();
            let Some((least, most)) = bounds(&mut ahead) else { return Ok(None) };
            if least > REPEATS_MOST || most.is_some_and(|most| most > REPEATS_MOST || most < least)
            {
                return Err("it repeats too often, or fewer times than its least");
            }
            *rest = ahead;
            return Ok(Some(least));
        }
        _ => return Ok(None),
    };
    rest.next();
    Ok(Some(least))
}

/// `2}`, `2,}` or `2,5}`.
fn bounds(rest: &mut Peekable<Chars<'_>>) -> Option<(u32, Option<u32>)> {
    let number = |rest: &mut Peekable<Chars<'_>>| {
        let mut digits = String::new();
        while let Some(digit) = rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        // Go takes no number with a zero before it, and a large one is too large in any case.
        let plain = !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
        plain.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let least = number(rest)?;
    let most = match rest.next_if_eq(&',') {
        None => Some(least),
        Some(_) if rest.peek() == Some(&'}') => None,
        Some(_) => Some(number(rest)?),
    };
    rest.next_if_eq(&'}').map(|_| (least, most))
}

/// One part, whether it matches the empty text, and whether it may be repeated.
fn atom(rest: &mut Peekable<Chars<'_>>, nested: usize) -> Result<(bool, bool)> {
    match rest.next() {
        Some('(') => group(rest, nested),
        Some('[') => class(rest).map(|()| (false, true)),
        Some('*' | '+' | '?') => Err("nothing is repeated"),
        Some('^' | '$') => Ok((true, true)),
        Some('\\') => match rest.peek() {
            Some('Q') => {
                rest.next();
                Ok((literal(rest), true))
            }
            _ => escape(rest, false).map(|matches| (matches, true)),
        },
        // A brace that opens a repetition of nothing.
        Some('{') if bounds(&mut rest.clone()).is_some() => Err("nothing is repeated"),
        _ => Ok((false, true)),
    }
}

/// From behind `\Q`; whether nothing is in it.
fn literal(rest: &mut Peekable<Chars<'_>>) -> bool {
    let mut is_empty = true;
    while let Some(c) = rest.next() {
        if c == '\\' && rest.next_if_eq(&'E').is_some() {
            break;
        }
        is_empty = false;
    }
    is_empty
}

/// From behind its `(`.
fn group(rest: &mut Peekable<Chars<'_>>, nested: usize) -> Result<(bool, bool)> {
    if rest.next_if_eq(&'?').is_some() {
        let named = match rest.peek() {
            Some('P') => {
                rest.next();
                true
            }
            Some('<') => true,
            _ => false,
        };
        if named {
            if rest.next() != Some('<') {
                return Err("a group's name stands in `(?P<name>`");
            }
            let mut length = 0;
            while rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {
                length += 1;
            }
            if rest.next() != Some('>') || length == 0 {
                return Err("a group's name is not closed, or none");
            }
        } else {
            let mut negated = false;
            let mut flags = 0;
            loop {
                match rest.next() {
                    Some('i' | 'm' | 's' | 'U') => flags += 1,
                    Some('-') if !negated => {
                        negated = true;
                        flags = 0;
                    }
                    Some(':') if !negated || flags > 0 => break,
                    Some(')') if flags > 0 => return Ok((true, false)),
                    _ => return Err("a group has flags that Go does not know"),
                }
            }
        }
    }
    let matches = alternatives(rest, nested + 1)?;
    match rest.next() {
        Some(_) => Ok((matches, true)),
        None => Err("`(` is not closed"),
    }
}

/// From behind its `[`.
fn class(rest: &mut Peekable<Chars<'_>>) -> Result<()> {
    const OPEN: &str = "`[` is not closed";
    rest.next_if_eq(&'^');
    let mut first = true;
    loop {
        let low = rest.next().ok_or(OPEN)?;
        if low == ']' && !first {
            return Ok(());
        }
        first = false;
        if low == '[' && rest.peek() == Some(&':') {
            let mut ahead = rest.clone();
            ahead.next();
            let mut name: String = String::new();
            while let Some(c) = ahead.next_if(|c| c.is_ascii_lowercase() || *c == '^') {
                name.push(c);
            }
            if ahead.next() == Some(':') && ahead.next() == Some(']') {
                const NAMES: [&str; 14] = [
                    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower",
                    "print", "punct", "space", "upper", "word", "xdigit",
                ];
                if !NAMES.contains(&name.trim_start_matches('^')) {
                    return Err("a class has a name that Go does not know");
                }
                *rest = ahead;
                continue;
            }
        }
        let low = bound(rest, low)?;
        let mut ahead = rest.clone();
        if ahead.next_if_eq(&'-').is_none() || ahead.peek() == Some(&']') {
            continue;
        }
        let Some(low) = low else { continue };
        rest.next();
        let high = rest.next().ok_or(OPEN)?;
        if bound(rest, high)?.is_none_or(|high| high < low) {
            return Err("a range of a class runs backwards");
        }
    }
}

/// A character of a class; none where an escape stands for several, or for one that is not looked at.
fn bound(rest: &mut Peekable<Chars<'_>>, c: char) -> Result<Option<char>> {
    if c != '\\' {
        return Ok(Some(c));
    }
    let escaped = rest.peek().copied();
    escape(rest, true)?;
    Ok(escaped.filter(|c| !c.is_ascii_alphanumeric()))
}

/// From behind its `\`; whether it matches the empty text.
fn escape(rest: &mut Peekable<Chars<'_>>, in_class: bool) -> Result<bool> {
    const UNKNOWN: &str = "Go knows no such escape";
    match rest.next().ok_or("it ends in `\\`")? {
        'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' => Ok(false),
        'A' | 'z' | 'B' if !in_class => Ok(true),
        'b' | 'C' if !in_class => Ok(false),
        'p' | 'P' => match rest.next() {
            Some('{') => {
                let mut length = 0;
                while rest.next_if(|c| c.is_ascii_alphanumeric() || "_^".contains(*c)).is_some() {
                    length += 1;
                }
                rest.next_if_eq(&'}').filter(|_| length > 0).map(|_| false).ok_or(UNKNOWN)
            }
            Some('C' | 'L' | 'M' | 'N' | 'P' | 'S' | 'Z') => Ok(false),
            _ => Err(UNKNOWN),
        },
        'x' => {
            let hex = |c: &char| c.is_ascii_hexdigit();
            if rest.next_if_eq(&'{').is_some() {
                let mut digits = String::new();
                while let Some(digit) = rest.next_if(hex) {
                    digits.push(digit);
                }
                let value =
                    u32::from_str_radix(&digits, 16).ok().filter(|value| *value <= 0x10_FFFF);
                rest.next_if_eq(&'}').and(value).map(|_| false).ok_or(UNKNOWN)
            } else {
                let both = rest.next_if(hex).and_then(|_| rest.next_if(hex));
                both.map(|_| false).ok_or(UNKNOWN)
            }
        }
        digit @ '0'..='7' => {
            let octal = |c: &char| ('0'..='7').contains(c);
            let more = rest.next_if(octal).is_some();
            if digit != '0' && !more {
                return Err("Go knows no references to groups");
            }
            let _ = more && rest.next_if(octal).is_some();
            Ok(false)
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(false),
        _ => Err(UNKNOWN),
    }
}
