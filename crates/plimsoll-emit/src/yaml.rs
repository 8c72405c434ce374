//! YAML as a tree that remembers where each part was written.
//!
//! Several documents in a file, anchors and merge keys are understood. An alias is a copy, so a file may stand for far more than it
//! holds: what is read is bounded, and a file that goes beyond is refused instead of filling memory.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::Value;

/// Parts of a file at most, each use of an anchor counted again.
const NODES_MOST: usize = 200_000;
/// How deep parts may lie in each other.
const DEPTH_MOST: usize = 100;

/// A part of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it was written.
    pub at: At,
    /// What it is.
    pub kind: NodeKind,
}

/// What a part of a file is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A number, a text, a flag or nothing; plain ones have no quotes.
    Scalar {
        /// As it was written, without quotes.
        text: String,
        /// Whether it was written without quotes.
        plain: bool,
    },
    /// One after the other.
    List(Vec<Node>),
    /// By name, in the order of the file.
    Map(Vec<(Node, Node)>),
}

/// Where something was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// From one.
    pub line: usize,
    /// In characters, from one.
    pub column: usize,
    /// Where it begins in the file, in characters.
    pub start: usize,
    /// Where it ends; what follows a quoted text on its line may be counted in.
    pub end: usize,
    /// Whether it has an anchor, lies in something that has one, or is a use of one: a change there would change more than this.
    pub shared: bool,
}

/// A file that is no YAML, or too much of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// From one.
    pub line: usize,
    /// In characters, from one.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// The documents of a file; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Node>, YamlError> {
    let mut reading = Reading::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| scan(&error))?;
        reading.take(event, span)?;
    }
    Ok(reading.done)
}

fn scan(error: &ScanError) -> YamlError {
    let at = error.marker();
    YamlError { line: at.line(), column: at.col() + 1, message: error.info().to_owned() }
}

#[derive(Default)]
struct Reading {
    done: Vec<Node>,
    /// What is not finished, the outermost first, each with its anchor.
    open: Vec<(Node, usize)>,
    /// By the number that the parser gives an anchor.
    anchors: Vec<Option<(Node, usize)>>,
    nodes: usize,
}

impl Reading {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let at = At {
            line: span.start.line(),
            column: span.start.col() + 1,
            start: span.start.index(),
            end: span.end.index(),
            shared: false,
        };
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let kind = NodeKind::Scalar { text: text.into_owned(), plain };
                self.put(Node { at, kind }, anchor, 1)
            }
            Event::SequenceStart(anchor, _) => self.begin(at, NodeKind::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(at, NodeKind::Map(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some((mut node, anchor)) = self.open.pop() else { return Ok(()) };
                node.at.end = at.end.max(node.at.end);
                self.put(node, anchor, 1)
            }
            Event::Alias(anchor) => match self.anchors.get(anchor).cloned().flatten() {
                Some((mut node, size)) => {
                    share(&mut node, Some(at));
                    self.put(node, 0, size)
                }
                None => Err(wrong(at, "this alias stands for something that is not finished yet")),
            },
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, at: At, kind: NodeKind, anchor: usize) -> Result<(), YamlError> {
        if self.open.len() >= DEPTH_MOST {
            return Err(wrong(at, &format!("more than {DEPTH_MOST} parts lie in each other here")));
        }
        self.open.push((Node { at, kind }, anchor));
        Ok(())
    }

    fn put(&mut self, mut node: Node, anchor: usize, size: usize) -> Result<(), YamlError> {
        self.nodes += size;
        if self.nodes > NODES_MOST {
            let said =
                format!("the file has more than {NODES_MOST} parts, uses of anchors included");
            return Err(wrong(node.at, &said));
        }
        if anchor > 0 {
            let size = size_of(&node);
            share(&mut node, None);
            if self.anchors.len() <= anchor {
                self.anchors.resize(anchor + 1, None);
            }
            self.anchors[anchor] = Some((node.clone(), size));
        }
        match self.open.last_mut() {
            None if node.is_null() => {}
            None => self.done.push(node),
            Some((Node { kind: NodeKind::List(items), .. }, _)) => items.push(node),
            Some((Node { kind: NodeKind::Map(items), .. }, _)) => match items.last_mut() {
                // A name waits for what it names: until then it names itself.
                Some((name, value)) if value.at == PENDING => {
                    let _ = name;
                    *value = node;
                }
                _ => items.push((node, pending())),
            },
            Some((Node { kind: NodeKind::Scalar { .. }, .. }, _)) => {}
        }
        Ok(())
    }
}

/// What a name has until its value is read.
const PENDING: At = At { line: usize::MAX, column: 0, start: 0, end: 0, shared: false };

fn pending() -> Node {
    Node { at: PENDING, kind: NodeKind::List(Vec::new()) }
}

fn wrong(at: At, message: &str) -> YamlError {
    YamlError { line: at.line, column: at.column, message: message.to_owned() }
}

/// Marks all of it as shared; a copy lies where it is used, with everything in it.
fn share(node: &mut Node, used: Option<At>) {
    node.at = At { shared: true, ..used.unwrap_or(node.at) };
    match &mut node.kind {
        NodeKind::Scalar { .. } => {}
        NodeKind::List(items) => items.iter_mut().for_each(|item| share(item, used)),
        NodeKind::Map(items) => {
            for (name, value) in items {
                share(name, used);
                share(value, used);
            }
        }
    }
}

fn size_of(node: &Node) -> usize {
    match &node.kind {
        NodeKind::Scalar { .. } => 1,
        NodeKind::List(items) => 1 + items.iter().map(size_of).sum::<usize>(),
        NodeKind::Map(items) => {
            1 + items.iter().map(|(name, value)| size_of(name) + size_of(value)).sum::<usize>()
        }
    }
}

impl Node {
    /// What a map has under a name; what it merges in (`<<`) counts where it has nothing of its own.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let NodeKind::Map(items) = &self.kind else { return None };
        let own = items.iter().rev().find(|(key, _)| key.text() == Some(name));
        if let Some((_, value)) = own {
            return Some(value);
        }
        let merged = items.iter().filter(|(key, _)| key.text() == Some("<<"));
        merged.flat_map(|(_, value)| value.items_or_self()).find_map(|map| map.get(name))
    }

    /// The same, name after name: `spec.template.spec`.
    pub fn find(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, name| node.get(name))
    }

    /// A scalar as it was written, without quotes.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Scalar { text, .. } => Some(text),
            NodeKind::List(_) | NodeKind::Map(_) => None,
        }
    }

    /// A number, quoted or not: manifests write both.
    pub fn number(&self) -> Option<f64> {
        self.text()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// A flag, quoted or not.
    pub fn flag(&self) -> Option<bool> {
        match self.text()?.trim() {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        }
    }

    /// Whether it is nothing: `~`, `null` or empty.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The parts of a list; none of anything else.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            NodeKind::List(items) => items,
            NodeKind::Scalar { .. } | NodeKind::Map(_) => &[],
        }
    }

    /// The names and parts of a map as they were written; none of anything else.
    pub fn entries(&self) -> &[(Node, Node)] {
        match &self.kind {
            NodeKind::Map(items) => items,
            NodeKind::Scalar { .. } | NodeKind::List(_) => &[],
        }
    }

    fn items_or_self(&self) -> Vec<&Node> {
        match &self.kind {
            NodeKind::List(items) => items.iter().collect(),
            NodeKind::Scalar { .. } | NodeKind::Map(_) => vec![self],
        }
    }

    /// As JSON: plain scalars are what YAML 1.2 takes them for, merged names are written out.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar { text, plain: false } => Value::String(text.clone()),
            NodeKind::Scalar { text, plain: true } => {
                if self.is_null() {
                    Value::Null
                } else if let Some(flag) = self.flag() {
                    Value::Bool(flag)
                } else if let Ok(whole) = text.parse::<i64>() {
                    Value::from(whole)
                } else if let Some(number) = self.number() {
                    Value::from(number)
                } else {
                    Value::String(text.clone())
                }
            }
            NodeKind::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            NodeKind::Map(items) => {
                let mut map = serde_json::Map::new();
                for (name, value) in items {
                    let Some(name) = name.text() else { continue };
                    if name == "<<" {
                        for part in value.items_or_self() {
                            let Value::Object(more) = part.to_json() else { continue };
                            for (name, value) in more {
                                map.entry(name).or_insert(value);
                            }
                        }
                    } else {
                        map.insert(name.to_owned(), value.to_json());
                    }
                }
                Value::Object(map)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Vec<Value> {
        documents(text).expect("YAML").iter().map(Node::to_json).collect()
    }

    #[test]
    fn documents_anchors_and_merges() {
        let text = "a: &x {k: 1, l: two}\nb: {<<: *x, l: \"3\"}\n---\n# nothing\n---\n- true\n- ~\n- 1.5\n- 'no'\n";
        assert_eq!(
            read(text),
            [
                json!({"a": {"k": 1, "l": "two"}, "b": {"k": 1, "l": "3"}}),
                json!([true, null, 1.5, "no"])
            ]
        );
    }

    #[test]
    fn a_value_that_is_a_list_is_not_taken_for_a_missing_one() {
        assert_eq!(read("a: []\nb: {}\nc: [1]\n"), [json!({"a": [], "b": {}, "c": [1]})]);
    }

    #[test]
    fn remembers_lines() {
        let all = documents("spec:\n  replicas: 3\n  triggers:\n  - type: cron\n").expect("YAML");
        let at = all[0].find("spec.replicas").expect("there").at;
        assert_eq!((at.line, at.column), (2, 13));
        let kind = all[0].find("spec.triggers").expect("there").items()[0].get("type");
        assert_eq!(kind.expect("there").at.line, 4);
    }

    #[test]
    fn a_copy_lies_where_it_is_used() {
        let all = documents("a: &x\n  k: 1\nb: *x\nc: 2\n").expect("YAML");
        let at = |path: &str| all[0].find(path).expect("there").at;
        assert_eq!((at("a.k").line, at("a.k").shared), (2, true));
        assert_eq!((at("b.k").line, at("b.k").shared), (3, true));
        assert!(!at("c").shared);
    }

    #[test]
    fn refuses_what_stands_for_too_much() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..9 {
            let before = format!("*a{}", i - 1);
            bomb.push_str(&format!("a{i}: &a{i} [{}]\n", vec![before; 10].join(", ")));
        }
        let error = documents(&bomb).expect_err("too much");
        assert!(error.message.contains("more than 200000 parts"), "{error}");
        assert!(documents(&"[".repeat(5000)).is_err());
        let error = documents("a: [1,\nb: 2\n").expect_err("not closed");
        assert!(error.line >= 2, "{error:?}");
    }
}
