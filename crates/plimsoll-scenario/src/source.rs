//! A text with a name, and where its lines begin.

use std::ops::Range;
use std::sync::Arc;

/// What was read, and from where; cheap to clone.
#[derive(Clone, Debug)]
pub struct Source {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// A text under the name that messages will show.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Self { inner: Arc::new(Inner { name: name.into(), text, line_starts }) }
    }

    /// As messages show it.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// Line and column of a byte, both from one; the column counts characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text().len());
        let line = self.inner.line_starts.partition_point(|start| *start <= offset);
        let start = self.inner.line_starts[line - 1];
        let column = self.text().get(start..offset).map_or(0, |s| s.chars().count());
        (line, column + 1)
    }

    /// The length of the longest of three lines: the one that holds a byte, and its neighbours.
    pub(crate) fn longest_line_around(&self, offset: usize) -> usize {
        let starts = &self.inner.line_starts;
        let line = starts.partition_point(|start| *start <= offset);
        let end = |i: usize| starts.get(i).copied().unwrap_or(self.text().len());
        let lines = line.saturating_sub(2)..(line + 1).min(starts.len());
        lines.map(|i| end(i + 1) - starts[i]).max().unwrap_or(0)
    }

    /// What stands there.
    pub fn slice(&self, span: &Range<usize>) -> &str {
        self.text().get(span.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_and_by_character() {
        let source = Source::new("x", "ab\nçd\n");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(2), (1, 3));
        assert_eq!(source.position(5), (2, 2));
        assert_eq!(source.position(999), (3, 1));
    }
}
