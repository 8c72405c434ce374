//! Where a number comes from.

/// The source and date of a catalogue entry, and what to know before trusting it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Where it was read.
    pub source: String,
    /// The day that source speaks for, as `YYYY-MM-DD`.
    pub as_of: String,
    /// Where sources disagree, or what was left out.
    pub note: Option<String>,
}
