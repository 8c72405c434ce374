//! Changes to the text of a file that cannot break it, or none.

use super::{Change, Edit};
use crate::yaml::{Node, NodeKind};

/// A file as characters, with the stretches that are written in flow style (`{…}`), where no lines are added.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Its name.
    pub(super) name: String,
    chars: Vec<char>,
    flow: Vec<(usize, usize)>,
}

impl Source {
    pub(super) fn new(name: &str, text: &str, documents: &[Node]) -> Self {
        let mut own =
            Self { name: name.to_owned(), chars: text.chars().collect(), flow: Vec::new() };
        for document in documents {
            own.note_flow(document);
        }
        own
    }

    fn note_flow(&mut self, node: &Node) {
        if node.at.shared {
            return;
        }
        let opens = matches!(self.chars.get(node.at.start), Some('{' | '['));
        if opens && !matches!(node.kind, NodeKind::Scalar { .. }) {
            self.flow.push((node.at.start, node.at.end));
            return;
        }
        node.items().iter().for_each(|item| self.note_flow(item));
        for (_, value) in node.entries() {
            self.note_flow(value);
        }
    }

    fn in_flow(&self, at: usize) -> bool {
        self.flow.iter().any(|(start, end)| (*start..*end).contains(&at))
    }

    fn slice(&self, start: usize, end: usize) -> String {
        self.chars.get(start..end).map(|chars| chars.iter().collect()).unwrap_or_default()
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.chars.get(..at).unwrap_or_default();
        before.iter().rposition(|c| *c == '\n').map_or(0, |found| found + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        let after = self.chars.get(at..).unwrap_or_default();
        after.iter().position(|c| *c == '\n').map_or(self.chars.len(), |found| at + found + 1)
    }

    /// Where a scalar's own characters are, without quotes around them.
    fn inner(&self, node: &Node) -> Option<(usize, usize)> {
        if node.at.shared || node.text().is_none() {
            return None;
        }
        let (start, end) = (node.at.start, node.at.end.min(self.chars.len()));
        match self.chars.get(start)? {
            quote @ ('"' | '\'') => {
                let mut at = start + 1;
                while at < end {
                    let c = self.chars[at];
                    if c == '\\' && *quote == '"' {
                        at += 2;
                    } else if c == *quote {
                        // A doubled quote stands for itself.
                        if *quote == '\'' && self.chars.get(at + 1) == Some(quote) {
                            at += 2;
                        } else {
                            return Some((start + 1, at));
                        }
                    } else {
                        at += 1;
                    }
                }
                None
            }
            _ => (start <= end).then_some((start, end)),
        }
    }

    /// Another value in the place of one that stands on a line.
    pub(super) fn replace(&self, node: &Node, new: &str) -> Option<Edit> {
        let (start, end) = self.inner(node)?;
        (Some(self.slice(start, end).as_str()) == node.text())
            .then(|| Edit { changes: vec![Change { start, end, text: new.to_owned() }] })
    }

    /// A line of its own before that of a name.
    pub(super) fn insert_before(&self, key: &Node, line: &str) -> Option<Edit> {
        let start = key.at.start;
        let line_start = self.line_start(start);
        let before = self.slice(line_start, start);
        let plain = before.chars().all(|c| c == ' ' || c == '-');
        let named = self.slice(start, start + key.text()?.chars().count());
        let rest = self.slice(start, self.line_end(start));
        if key.at.shared || self.in_flow(start) || !plain || !rest.contains(':') {
            return None;
        }
        let quoted = named.starts_with(['"', '\'']);
        if Some(named.as_str()) != key.text() && !quoted {
            return None;
        }
        let indent = " ".repeat(start - line_start);
        let text = format!("{line}\n{indent}");
        Some(Edit { changes: vec![Change { start, end: start, text }] })
    }

    /// A name and its value taken away with their line, where they have one to themselves and something else is left.
    pub(super) fn remove(&self, map: &Node, name: &str) -> Option<Edit> {
        let (key, value) = entry(map, name)?;
        if map.entries().len() < 2 || key.at.shared || self.in_flow(key.at.start) {
            return None;
        }
        let twice = map.entries().iter().filter(|(key, _)| key.text() == Some(name)).count() > 1;
        if twice || map.get("<<").is_some() {
            return None;
        }
        let (start, end) = (self.line_start(key.at.start), self.line_end(key.at.start));
        let (_, value_end) = self.inner(value)?;
        let alone = self.slice(start, key.at.start).chars().all(|c| c == ' ');
        let after = self.slice(value_end, end);
        let after = after.trim_start_matches(['"', '\'']).trim();
        let fits = value.at.line == key.at.line && value_end <= end && value.at.start < end;
        (alone && fits && (after.is_empty() || after.starts_with('#')))
            .then(|| Edit { changes: vec![Change { start, end, text: String::new() }] })
    }

    /// Another name for a metric, wherever the query has it.
    pub(super) fn rename(&self, node: &Node, old: &str, new: &str) -> Option<Edit> {
        let (start, end) = self.inner(node)?;
        let found = words(self.chars.get(start..end)?, old);
        let written: Vec<char> = node.text()?.chars().collect();
        if found.is_empty() || words(&written, old).len() != found.len() {
            return None;
        }
        let length = old.chars().count();
        let change = |at: &usize| Change {
            start: start + at,
            end: start + at + length,
            text: new.to_owned(),
        };
        Some(Edit { changes: found.iter().map(change).collect() })
    }

    /// A function around all of a query.
    pub(super) fn wrap(&self, node: &Node, function: &str) -> Option<Edit> {
        let (start, end) = self.inner(node)?;
        let raw = self.slice(start, end);
        let text = node.text()?.trim();
        if raw.trim() != text || text.is_empty() || text.contains('\n') {
            return None;
        }
        let from = start + raw.chars().take_while(|c| c.is_whitespace()).count();
        let to = from + text.chars().count();
        let put = |at, text: &str| Change { start: at, end: at, text: text.to_owned() };
        Some(Edit { changes: vec![put(from, &format!("{function}(")), put(to, ")")] })
    }
}

/// Where a name stands by itself.
fn words(chars: &[char], name: &str) -> Vec<usize> {
    let name: Vec<char> = name.chars().collect();
    let part = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || "_:".contains(*c));
    let last = (chars.len() + 1).saturating_sub(name.len().max(1));
    (0..last)
        .filter(|at| chars[*at..].starts_with(&name))
        .filter(|at| {
            let before = at.checked_sub(1).and_then(|before| chars.get(before));
            !part(before) && !part(chars.get(at + name.len()))
        })
        .collect()
}

/// A name of a map and what it has.
pub(super) fn entry<'a>(map: &'a Node, name: &str) -> Option<(&'a Node, &'a Node)> {
    let found = map.entries().iter().rev().find(|(key, _)| key.text() == Some(name));
    found.map(|(key, value)| (key, value))
}

/// A text with edits applied. One that would change what an earlier one has changed is left out, and comes again when the file is next looked at.
pub fn fixed(text: &str, edits: &[&Edit]) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut taken: Vec<&Change> = Vec::new();
    let mut done: Vec<&Edit> = Vec::new();
    for edit in edits {
        let clash = |change: &Change| {
            change.end > chars.len()
                || change.start > change.end
                || taken.iter().any(|own| own.start < change.end && change.start < own.end)
        };
        if done.contains(edit) || edit.changes.iter().any(clash) {
            continue;
        }
        done.push(edit);
        taken.extend(&edit.changes);
    }
    taken.sort_by_key(|change| (change.start, change.end));
    let mut out = String::new();
    let mut at = 0;
    for change in taken {
        out.extend(&chars[at..change.start]);
        out.push_str(&change.text);
        at = change.end;
    }
    out.extend(&chars[at..]);
    out
}
