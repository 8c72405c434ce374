//! A tree as text, in the form that Prometheus gives queries.

use std::fmt::{Display, Formatter, Result};

use super::{Aggregate, At, Binary, Expr, Group, Labels, MatchOp, Matcher, Selector, Sign, Time};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Number(value) => number(*value, f),
            Self::Text(text) => quoted(text, f),
            Self::Selector(selector) => write!(f, "{selector}{}", selector.time),
            Self::Range(selector, range) => {
                write!(f, "{selector}[{}]{}", Duration(*range), selector.time)
            }
            Self::Subquery(subquery) => {
                write!(f, "{}[{}:", subquery.expr, Duration(subquery.range))?;
                if let Some(step) = subquery.step {
                    write!(f, "{}", Duration(step))?;
                }
                write!(f, "]{}", subquery.time)
            }
            Self::Aggregate(aggregate) => aggregate.fmt(f),
            Self::Call(call) => {
                write!(f, "{}(", call.function.name)?;
                listed(&call.args, f)?;
                f.write_str(")")
            }
            Self::Binary(binary) => binary.fmt(f),
            Self::Unary(Sign::Minus, inner) => write!(f, "-{inner}"),
            Self::Unary(Sign::Plus, inner) => write!(f, "+{inner}"),
            Self::Paren(inner) => write!(f, "({inner})"),
        }
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.op.word())?;
        match &self.grouping {
            Some(Labels::Only(labels)) => write!(f, " by {} ", Names(labels))?,
            Some(Labels::Except(labels)) => write!(f, " without {} ", Names(labels))?,
            None => {}
        }
        match &self.param {
            Some(param) => write!(f, "({param}, {})", self.expr),
            None => write!(f, "({})", self.expr),
        }
    }
}

impl Display for Binary {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {}", self.left, self.op.word())?;
        if self.returns_bool {
            f.write_str(" bool")?;
        }
        match &self.matching {
            Some(Labels::Only(labels)) => write!(f, " on {}", Names(labels))?,
            Some(Labels::Except(labels)) => write!(f, " ignoring {}", Names(labels))?,
            None => {}
        }
        match &self.group {
            Some(Group::Left(labels)) => write!(f, " group_left {}", Names(labels))?,
            Some(Group::Right(labels)) => write!(f, " group_right {}", Names(labels))?,
            None => {}
        }
        write!(f, " {}", self.right)
    }
}

/// Without `offset` and `@`, which stand behind a range.
impl Display for Selector {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.name.as_deref().unwrap_or_default())?;
        if self.matchers.is_empty() {
            return Ok(());
        }
        f.write_str("{")?;
        for (index, matcher) in self.matchers.iter().enumerate() {
            write!(f, "{}{matcher}", if index == 0 { "" } else { "," })?;
        }
        f.write_str("}")
    }
}

impl Display for Matcher {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        name(&self.label, f)?;
        f.write_str(match self.op {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        })?;
        quoted(&self.value, f)
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.at {
            Some(At::Time(milliseconds)) => {
                let sign = if milliseconds < 0 { "-" } else { "" };
                let (seconds, rest) =
                    (milliseconds.unsigned_abs() / 1000, milliseconds.unsigned_abs() % 1000);
                write!(f, " @ {sign}{seconds}.{rest:03}")?;
            }
            Some(At::Start) => f.write_str(" @ start()")?,
            Some(At::End) => f.write_str(" @ end()")?,
            None => {}
        }
        match self.offset {
            0 => Ok(()),
            offset if offset < 0 => write!(f, " offset -{}", Duration(-offset)),
            offset => write!(f, " offset {}", Duration(offset)),
        }
    }
}

/// Milliseconds. Years and weeks are written where nothing is left over.
struct Duration(i64);

impl Display for Duration {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        const DAY: i64 = 86_400_000;
        let mut rest = self.0;
        for (unit, length, whole) in [
            ("y", 365 * DAY, true),
            ("w", 7 * DAY, true),
            ("d", DAY, false),
            ("h", 3_600_000, false),
            ("m", 60_000, false),
            ("s", 1000, false),
            ("ms", 1, false),
        ] {
            if rest >= length && (!whole || rest % length == 0) {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

/// Labels in parentheses.
struct Names<'a>(&'a [String]);

impl Display for Names<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("(")?;
        for (index, label) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            name(label, f)?;
        }
        f.write_str(")")
    }
}

fn listed(all: &[Expr], f: &mut Formatter<'_>) -> Result {
    for (index, each) in all.iter().enumerate() {
        write!(f, "{}{each}", if index == 0 { "" } else { ", " })?;
    }
    Ok(())
}

/// A label, in quotes where it needs them.
fn name(label: &str, f: &mut Formatter<'_>) -> Result {
    let first = label.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if first && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        f.write_str(label)
    } else {
        quoted(label, f)
    }
}

fn quoted(text: &str, f: &mut Formatter<'_>) -> Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

fn number(value: f64, f: &mut Formatter<'_>) -> Result {
    let size = value.abs();
    if value.is_infinite() {
        f.write_str(if value < 0.0 { "-Inf" } else { "+Inf" })
    } else if value.is_nan() {
        f.write_str("NaN")
    } else if size != 0.0 && !(1e-4..1e21).contains(&size) {
        write!(f, "{value:e}")
    } else {
        write!(f, "{value}")
    }
}
