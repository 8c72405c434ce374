//! Rows that could not be understood, each with its line and its reason.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// What was not taken from a file, and out of how many rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    pub(crate) read: u64,
    pub(crate) rows: Vec<Reject>,
}

impl Rejects {
    /// Rows in the file, taken or not; a heading is none.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The rows that were not taken, in the order of the file.
    pub fn rows(&self) -> &[Reject] {
        &self.rows
    }

    /// How many were not taken.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether all were.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Reasons, the most frequent first: the first row of each, and how many share it.
    pub fn reasons(&self) -> Vec<(&Reject, u64)> {
        let mut reasons: BTreeMap<(&str, &str), (&Reject, u64)> = BTreeMap::new();
        for row in &self.rows {
            reasons.entry((row.field.as_ref(), row.why.kind())).or_insert((row, 0)).1 += 1;
        }
        let mut reasons: Vec<_> = reasons.into_values().collect();
        reasons.sort_by_key(|(first, count)| (std::cmp::Reverse(*count), first.line));
        reasons
    }
}

/// A row that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Counted from one, headings included.
    pub line: u64,
    /// The field that is wrong; empty where it is the whole row.
    pub field: Cow<'static, str>,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Not a row of this format at all.
    Shape(String),
    /// Nothing is written there.
    Missing,
    /// Not a number, or not a time.
    Malformed(String),
    /// A number below zero.
    Negative(String),
    /// More than can be: tokens beyond 32 bits, moments beyond a century.
    Absurd(String),
    /// No prompt to read, or no output to write.
    Zero,
    /// The log says that nothing was answered.
    Failed,
    /// More blocks than the prompt has room for.
    Blocks(String),
    /// More classes than can be told apart.
    Classes,
    /// Fields that cannot all be true: more cached than prompt, a first token after the last.
    Contradicts(String),
    /// A moment without a zone among moments with one, or the other way round.
    Zone(String),
}

impl Why {
    /// What equal reasons have in common.
    fn kind(&self) -> &'static str {
        match self {
            Self::Shape(_) => "shape",
            Self::Missing => "missing",
            Self::Malformed(_) => "malformed",
            Self::Negative(_) => "negative",
            Self::Absurd(_) => "absurd",
            Self::Zero => "zero",
            Self::Failed => "failed",
            Self::Blocks(_) => "blocks",
            Self::Classes => "classes",
            Self::Contradicts(_) => "contradicts",
            Self::Zone(_) => "zone",
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, field, why } = self;
        write!(f, "line {line}: ")?;
        if !field.is_empty() {
            write!(f, "`{field}` ")?;
        }
        write!(f, "{why}")
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(problem) => write!(f, "{problem}"),
            Self::Missing => write!(f, "is missing"),
            Self::Malformed(value) => write!(f, "is `{value}`, which cannot be read"),
            Self::Negative(value) => write!(f, "is `{value}`, below zero"),
            Self::Absurd(value) => write!(f, "is `{value}`, more than can be"),
            Self::Zero => write!(f, "is zero: nothing to serve"),
            Self::Failed => write!(f, "is zero: the request failed"),
            Self::Blocks(problem) => write!(f, "{problem}"),
            Self::Classes => write!(f, "is one class more than can be told apart"),
            Self::Contradicts(problem) => write!(f, "{problem}"),
            Self::Zone(value) => write!(
                f,
                "is `{value}`: the first row of the file says otherwise whether times have a zone"
            ),
        }
    }
}
