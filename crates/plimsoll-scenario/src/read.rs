//! Reading a TOML document into typed tables, all mistakes at once.
//!
//! A type that can stand in a scenario implements [`Value`]: its [`Shape`] (for the schema and the
//! reference) and how it is read (reporting what is wrong, where). `table!` writes the
//! implementation for a table from one declaration of its keys.

mod quantity;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use plimsoll_fleet::{Catalog, nearest};
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Diagnostic;
use crate::source::Source;
use crate::values::show_value;

pub(crate) use quantity::{bad_quantity, number_text};

/// Something that can stand in a scenario.
pub(crate) trait Value: Sized {
    /// What it looks like, for the schema and the reference.
    fn shape() -> Shape;

    /// Reads it, or reports why not and returns `None`.
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self>;
}

/// What a value looks like.
#[derive(Clone)]
pub(crate) enum Shape {
    /// A quantity with a unit, written as a string; some also as a bare number.
    Quantity {
        noun: &'static str,
        examples: &'static str,
        bare: bool,
    },
    Integer {
        min: u64,
        max: u64,
    },
    Number,
    Boolean,
    Text {
        noun: &'static str,
    },
    Choice(&'static [&'static str]),
    Moment,
    List(Box<Shape>),
    /// Any key, each with a value of this shape.
    Map(Box<Shape>),
    Table(fn() -> TableSpec),
    Either(Vec<Shape>),
    /// Anything: the words are someone else's.
    Any,
}

/// A table's keys.
pub(crate) struct TableSpec {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: Vec<KeySpec>,
}

/// One key.
pub(crate) struct KeySpec {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) shape: Shape,
    pub(crate) presence: Presence,
}

/// Whether a key must be there, and what its absence means.
#[derive(Clone, Copy)]
pub(crate) enum Presence {
    Required,
    Default { toml: &'static str, why: &'static str },
    Optional { absent: &'static str },
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Written in a file.
    File {
        /// Its name.
        file: String,
        /// The line, from one.
        line: usize,
    },
    /// Given with the command, over whatever the file says.
    CommandLine {
        /// The option.
        option: &'static str,
    },
    /// Nobody wrote it.
    Default {
        /// The reason for the value.
        why: &'static str,
    },
    /// From a profile of the catalogue.
    Profile {
        /// Its name.
        name: &'static str,
        /// Its date.
        as_of: &'static str,
    },
    /// Looked up in the catalogue, because the file is silent.
    Catalog {
        /// The entry.
        entry: String,
        /// The day its source speaks for.
        as_of: String,
    },
    /// Not known, and nothing stands in for it.
    Absent {
        /// What follows from that.
        meaning: &'static str,
    },
}

/// One line of `plimsoll explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Such as `class.chat.cache_hit`.
    pub path: String,
    /// As it would be written; empty when absent.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// A value in a document.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a DeValue<'a>,
    /// The value, in its source.
    pub(crate) span: Range<usize>,
    /// The key it stands under, for suggestions.
    pub(crate) key: String,
}

/// A table that a missing key falls back to.
#[derive(Clone, Copy)]
pub(crate) struct Fallback {
    pub(crate) table: &'static DeTable<'static>,
    pub(crate) name: &'static str,
    pub(crate) as_of: &'static str,
}

/// The names that may be referred to, by kind.
pub(crate) type Names = BTreeMap<&'static str, Vec<String>>;

/// Collects what is read and what is wrong.
pub(crate) struct Reader<'a> {
    pub(crate) source: Source,
    pub(crate) catalog: &'a Catalog,
    pub(crate) names: Names,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) entries: Vec<Entry>,
    spans: BTreeMap<String, Range<usize>>,
    path: Vec<String>,
    /// Set while a default or a profile is read, which no one can point at.
    standing: Option<Origin>,
    /// The default of the key being read, as an example of what may stand there.
    pub(super) hint: Option<&'static str>,
    /// Lists of which an element could not be read, so that nothing is concluded from what they lack.
    incomplete: BTreeSet<String>,
    /// Whether origins are kept: nobody explains a catalogue, and keeping them would double its cost.
    explains: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: Source, catalog: &'a Catalog) -> Self {
        Self {
            source,
            catalog,
            names: Names::new(),
            diagnostics: Vec::new(),
            entries: Vec::new(),
            spans: BTreeMap::new(),
            path: Vec::new(),
            standing: None,
            hint: None,
            incomplete: BTreeSet::new(),
            explains: true,
        }
    }

    /// One that reports mistakes but keeps no origins.
    pub(crate) fn without_origins(source: Source, catalog: &'a Catalog) -> Self {
        Self { explains: false, ..Self::new(source, catalog) }
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// A mistake at a node.
    pub(crate) fn error(
        &self,
        code: &'static str,
        node: &Node<'_>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::at(code, &self.source, node.span.clone(), message)
    }

    /// The wrong kind of value.
    pub(crate) fn wrong_type<T>(
        &mut self,
        node: &Node<'_>,
        expected: &str,
        example: &str,
    ) -> Option<T> {
        let found = kind(node.value);
        let diagnostic = self
            .error("wrong-type", node, format!("`{}` must be {expected}; it is {found}", node.key))
            .label(format!("this is {found}"))
            .help(format!("write `{} = {example}`", node.key));
        self.report(diagnostic);
        None
    }

    /// Whether every element of this list of the scenario was read.
    pub(crate) fn is_complete(&self, list: &str) -> bool {
        !self.incomplete.contains(list)
    }

    /// A mistake at a key of the table being checked, or at the table itself.
    pub(crate) fn at_key(
        &self,
        key: &str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Diagnostic {
        let path = format!("{}.{key}", self.path.join("."));
        let here = self.path.join(".");
        let span = self.spans.get(&path).or_else(|| self.spans.get(&here)).cloned().unwrap_or(0..0);
        Diagnostic::at(code, &self.source, span, message)
    }

    /// A mistake about a whole key of the scenario.
    pub(crate) fn at_root(
        &self,
        key: &str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Diagnostic {
        let span = self.spans.get(key).cloned().unwrap_or(0..0);
        Diagnostic::at(code, &self.source, span, message)
    }

    /// Whether the user wrote this key of the table being checked.
    pub(crate) fn wrote(&self, key: &str) -> bool {
        self.spans.contains_key(&format!("{}.{key}", self.path.join(".")))
    }

    pub(crate) fn within<T>(
        &mut self,
        step: impl Into<String>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.path.push(step.into());
        let result = read(self);
        self.path.pop();
        result
    }

    fn standing_on<T>(&mut self, origin: Origin, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.standing.replace(origin);
        let result = read(self);
        self.standing = before;
        result
    }

    /// Remembers where the current path was written.
    fn remember(&mut self, span: &Range<usize>) {
        if self.standing.is_none() {
            self.spans.insert(self.path.join("."), span.clone());
        }
    }

    /// One line of `explain` for a value, as it was written. A table's own keys are its lines; what is written
    /// in short (`{ p50 = 900, p95 = 4200 }`) is one line, whatever was read inside it since `before`.
    fn record(&mut self, shape: &Shape, value: &DeValue<'_>, origin: Origin, before: usize) {
        let is_table = match shape {
            Shape::Table(_) => true,
            Shape::List(inner) => matches!(**inner, Shape::Table(_)),
            _ => false,
        };
        if !is_table && self.explains {
            self.entries.truncate(before);
            self.entries.push(Entry {
                path: self.path.join("."),
                value: show_value(value),
                origin,
            });
        }
    }

    fn origin(&self, span: &Range<usize>) -> Origin {
        self.standing.clone().unwrap_or_else(|| Origin::File {
            file: self.source.name().to_owned(),
            line: self.source.position(span.start).0,
        })
    }

    // ----- keys of a table

    /// Reads a key that the table may hold: from the document, then from the fallback.
    fn written<T: Value>(&mut self, table: &TableNode<'_>, key: &'static str) -> Option<Option<T>> {
        if let Some(node) = table.get(key) {
            return self.within(key, |reader| {
                reader.remember(&node.span);
                let origin = reader.origin(&node.span);
                let before = reader.entries.len();
                let value = T::read(&node, reader);
                reader.record(&T::shape(), node.value, origin, before);
                Some(value)
            });
        }
        let fallback = table.fallback?;
        let value = fallback.table.get(key)?;
        let origin = Origin::Profile { name: fallback.name, as_of: fallback.as_of };
        Some(self.within(key, |reader| reader.stand_in(key, value.get_ref(), origin)))
    }

    /// Reads a value that is not in the user's file.
    fn stand_in<T: Value>(&mut self, key: &str, value: &DeValue<'_>, origin: Origin) -> Option<T> {
        let node = Node { value, span: 0..0, key: key.to_owned() };
        let shown = origin.clone();
        let (before, entries) = (self.diagnostics.len(), self.entries.len());
        let read = self.standing_on(origin, |reader| T::read(&node, reader));
        // A profile may name what this scenario lacks, but a built-in value that cannot be read is a bug.
        assert_eq!(
            before,
            self.diagnostics.len(),
            "the built-in value of `{}` is wrong: {}",
            self.path.join("."),
            self.diagnostics[before..]
                .iter()
                .map(|d| d.message.as_str())
                .collect::<Vec<_>>()
                .join("; ")
        );
        self.record(&T::shape(), value, shown, entries);
        read
    }

    pub(crate) fn required<T: Value>(
        &mut self,
        table: &TableNode<'_>,
        key: &'static str,
    ) -> Option<T> {
        match self.written(table, key) {
            Some(value) => value,
            None => {
                let message = format!("{} needs `{key}`", table.title());
                let diagnostic =
                    Diagnostic::at("missing-key", &self.source, table.span.clone(), message)
                        .label(format!("`{key}` is missing here"))
                        .help(format!("add `{key} = {}`", example(&T::shape())));
                self.report(diagnostic);
                None
            }
        }
    }

    /// `None` also for a value that could not be read: it has been reported, and the rest of the table can still
    /// be checked. A check that misses a key asks `wrote` first.
    pub(crate) fn optional<T: Value>(
        &mut self,
        table: &TableNode<'_>,
        key: &'static str,
        absent: &'static str,
    ) -> Option<Option<T>> {
        if let Some(value) = self.written(table, key) {
            return Some(value);
        }
        if self.explains {
            let path = self.within(key, |reader| reader.path.join("."));
            let origin = Origin::Absent { meaning: absent };
            self.entries.push(Entry { path, value: String::new(), origin });
        }
        Some(None)
    }

    /// The default also for a value that could not be read, for the same reason.
    pub(crate) fn default<T: Value>(
        &mut self,
        table: &TableNode<'_>,
        key: &'static str,
        toml: &'static str,
        why: &'static str,
    ) -> Option<T> {
        let before = self.hint.replace(toml);
        let written = self.written(table, key);
        self.hint = before;
        if let Some(Some(value)) = written {
            return Some(value);
        }
        let value = DeValue::parse(toml).unwrap_or_else(|e| panic!("the default of `{key}`: {e}"));
        let origin = Origin::Default { why };
        self.within(key, |reader| reader.stand_in(key, value.get_ref(), origin))
    }

    /// Those that could be read.
    pub(crate) fn list<T: Value>(
        &mut self,
        table: &TableNode<'_>,
        key: &'static str,
        absent: &'static str,
    ) -> Option<Vec<T>> {
        Some(self.optional::<Vec<T>>(table, key, absent)?.unwrap_or_default())
    }

    /// Reports the keys that the table does not know.
    pub(crate) fn unknown_keys(&mut self, table: &TableNode<'_>, known: &[&'static str]) {
        for (key, _) in table.table.iter() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) || self.standing.is_some() {
                continue;
            }
            let message = format!("{} has no key `{}`", table.title(), clip(name));
            let mut diagnostic = Diagnostic::at("unknown-key", &self.source, key.span(), message);
            diagnostic = diagnostic.label("not a key of this table");
            let near = nearest(name, known.iter().copied());
            let help = match near.first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its keys are {}", known.join(", ")),
            };
            self.report(diagnostic.help(help));
        }
    }
}

/// A table in the document.
pub(crate) struct TableNode<'a> {
    pub(crate) name: &'static str,
    pub(crate) table: &'a DeTable<'a>,
    pub(crate) span: Range<usize>,
    pub(crate) fallback: Option<Fallback>,
}

impl<'a> TableNode<'a> {
    /// The node as a table, or a report that it is none.
    pub(crate) fn of(name: &'static str, node: &Node<'a>, reader: &mut Reader<'_>) -> Option<Self> {
        match node.value.as_table() {
            Some(table) => Some(Self { name, table, span: node.span.clone(), fallback: None }),
            None => reader.wrong_type(node, "a table", "{ … }"),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.table.get(key)?;
        Some(Node { value: value.get_ref(), span: value.span(), key: key.to_owned() })
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.table.get(key)?.get_ref().as_str()
    }

    fn title(&self) -> String {
        match self.text("name") {
            Some(name) => format!("{} `{}`", self.name, clip(name)),
            None => format!("`{}`", self.name),
        }
    }
}

/// Keeps a stranger's text short in a message.
pub(crate) fn clip(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(60).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

/// What a value is, for a person.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Something that could be pasted, by shape.
pub(crate) fn example(shape: &Shape) -> String {
    match shape {
        Shape::Quantity { examples, bare, .. } => {
            let first = examples.split('`').nth(1).unwrap_or_default();
            if *bare { first.to_owned() } else { format!("\"{first}\"") }
        }
        Shape::Integer { min, .. } => min.max(&1).to_string(),
        Shape::Number => "1.0".to_owned(),
        Shape::Boolean => "true".to_owned(),
        Shape::Text { noun: "name" } => "\"chat\"".to_owned(),
        Shape::Text { noun } => format!("\"{noun}\""),
        Shape::Choice(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
        Shape::Moment => "2026-11-17T09:00:00Z".to_owned(),
        Shape::List(inner) => format!("[{}]", example(inner)),
        Shape::Map(_) => "{ }".to_owned(),
        Shape::Table(spec) => {
            let required =
                spec().keys.into_iter().filter(|k| matches!(k.presence, Presence::Required));
            let keys: Vec<String> =
                required.map(|key| format!("{} = {}", key.name, example(&key.shape))).collect();
            format!("{{ {} }}", keys.join(", "))
        }
        Shape::Either(shapes) => shapes.first().map(example).unwrap_or_default(),
        Shape::Any => "{ … }".to_owned(),
    }
}

impl Value for bool {
    fn shape() -> Shape {
        Shape::Boolean
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        match node.value.as_bool() {
            Some(b) => Some(b),
            None => reader.wrong_type(node, "true or false", "true"),
        }
    }
}

/// A whole number within limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// A number that lies within.
    pub fn new(n: u64) -> Option<Self> {
        (MIN..=MAX).contains(&n).then_some(Self(n))
    }

    /// As a number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// As a number of replicas, devices or attempts, all of which have limits far below 2^32.
    pub fn get_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> Value for Whole<MIN, MAX> {
    fn shape() -> Shape {
        Shape::Integer { min: MIN, max: MAX }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(integer) = node.value.as_integer() else {
            return reader.wrong_type(node, "a whole number", &MIN.max(1).to_string());
        };
        let number = i128::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok();
        match number.and_then(|n| u64::try_from(n).ok()) {
            Some(n) if (MIN..=MAX).contains(&n) => Some(Self(n)),
            _ => {
                let key = &node.key;
                let written = reader.source.slice(&node.span).to_owned();
                let diagnostic = reader
                    .error(
                        "out-of-range",
                        node,
                        format!(
                            "`{key}` must be between {MIN} and {MAX}; it is {}",
                            clip(&written)
                        ),
                    )
                    .label(format!("not between {MIN} and {MAX}"))
                    .help(format!("write `{key} = {}`", MIN.max(1)));
                reader.report(diagnostic);
                None
            }
        }
    }
}

impl Value for String {
    fn shape() -> Shape {
        Shape::Text { noun: "text" }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        match node.value.as_str() {
            Some(text) => Some(text.to_owned()),
            None => reader.wrong_type(node, "text", "\"…\""),
        }
    }
}

impl<T: Value> Value for Vec<T> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(items) = node.value.as_array() else {
            // One table where several may stand is a single bracket too few.
            if let (DeValue::Table(_), Shape::Table(_)) = (node.value, T::shape()) {
                let diagnostic = reader
                    .error("wrong-type", node, format!("`{}` is a list of tables", node.key))
                    .label("written as a single table")
                    .help(format!("write `[[{}]]` with two brackets", node.key));
                reader.report(diagnostic);
                return None;
            }
            return reader.wrong_type(node, "an array", &example(&Self::shape()));
        };
        let mut all = Some(Vec::with_capacity(items.len()));
        let table_like = matches!(T::shape(), Shape::Table(_));
        let mut seen: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            let node = Node { value: item.get_ref(), span: item.span(), key: node.key.clone() };
            let name = item.get_ref().as_table().and_then(|t| t.get("name"));
            let name = name.and_then(|n| Some((n.get_ref().as_str()?, n.span())));
            if let Some((name, span)) = name.clone() {
                reader.duplicate(&node.key, name, span, &mut seen);
            }
            let step = name.map_or_else(|| i.to_string(), |(name, _)| name.to_owned());
            let value = if table_like {
                reader.within(step, |reader| {
                    reader.remember(&node.span);
                    T::read(&node, reader)
                })
            } else {
                T::read(&node, reader)
            };
            match (value, &mut all) {
                (Some(value), Some(all)) => all.push(value),
                // What is left of a list of tables can still be checked; half a list of numbers cannot.
                (None, _) if table_like => {
                    reader.incomplete.insert(node.key.clone());
                }
                _ => all = None,
            }
        }
        all
    }
}

impl Reader<'_> {
    fn duplicate<'n>(
        &mut self,
        key: &str,
        name: &'n str,
        span: Range<usize>,
        seen: &mut BTreeMap<&'n str, Range<usize>>,
    ) {
        if let Some(first) = seen.get(name) {
            let line = self.source.position(first.start).0;
            let message = format!("two of `{key}` are called `{}`", clip(name));
            let diagnostic = Diagnostic::at("duplicate-name", &self.source, span, message)
                .label(format!("already used on line {line}"))
                .help(format!("write `name = \"{}-2\"`", clip(name)));
            self.report(diagnostic);
        } else {
            seen.insert(name, span);
        }
    }
}

impl<T: Value> Value for BTreeMap<String, T> {
    fn shape() -> Shape {
        Shape::Map(Box::new(T::shape()))
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(table) = node.value.as_table() else {
            return reader.wrong_type(node, "a table", "{ … }");
        };
        let mut all = Some(Self::new());
        for (key, item) in table.iter() {
            let node =
                Node { value: item.get_ref(), span: item.span(), key: key.get_ref().to_string() };
            match (T::read(&node, reader), &mut all) {
                (Some(value), Some(all)) => {
                    all.insert(key.get_ref().to_string(), value);
                }
                _ => all = None,
            }
        }
        all
    }
}

/// Declares a table: its struct, its keys with their documentation, and how it is read.
///
/// A key is `name: Type, required;`, `name: Type, default("toml", "why");`,
/// `name: Type, optional("what absence means");` (then it is an `Option`) or
/// `name: Type, list("what none means");` (then a `Vec`). After `check`, a function may compare keys
/// with each other; after `fallback`, one may name a table that missing keys are taken from.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident = $title:literal $(, check $check:path)? $(, fallback $fallback:path)? {
            $(
                $(#[doc = $key_doc:literal])*
                $key:ident $(as $written:literal)?: $type:ty, $presence:ident $(($($argument:literal),*))?;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $( $(#[doc = $key_doc])* pub $key: table!(@field $presence $type), )*
        }

        impl $crate::read::Value for $name {
            fn shape() -> $crate::read::Shape {
                $crate::read::Shape::Table(|| $crate::read::TableSpec {
                    name: $title,
                    doc: concat!($($doc, "\n"),*),
                    keys: vec![$(
                        $crate::read::KeySpec {
                            name: table!(@key $key $($written)?),
                            doc: concat!($($key_doc, "\n"),*),
                            shape: <table!(@shape $presence $type) as $crate::read::Value>::shape(),
                            presence: table!(@presence $presence $($($argument),*)?),
                        },
                    )*],
                })
            }

            fn read(
                node: &$crate::read::Node<'_>,
                reader: &mut $crate::read::Reader<'_>,
            ) -> Option<Self> {
                #[allow(unused_mut)]
                let mut table = $crate::read::TableNode::of($title, node, reader)?;
                $( table.fallback = $fallback(&table, reader); )?
                reader.unknown_keys(&table, &[$(table!(@key $key $($written)?)),*]);
                // Every key is read before any failure counts, so that all mistakes are reported.
                $( let $key = reader.$presence(&table, table!(@key $key $($written)?) $(, $($argument),*)?); )*
                let value = Self { $($key: $key?),* };
                $( $check(&value, reader); )?
                Some(value)
            }
        }
    };
    (@field required $type:ty) => { $type };
    (@field default $type:ty) => { $type };
    (@field optional $type:ty) => { Option<$type> };
    (@field list $type:ty) => { Vec<$type> };
    (@shape list $type:ty) => { Vec<$type> };
    (@shape $presence:ident $type:ty) => { $type };
    (@key $key:ident $written:literal) => { $written };
    (@key $key:ident) => { stringify!($key) };
    (@presence required) => { $crate::read::Presence::Required };
    (@presence default $toml:literal, $why:literal) => {
        $crate::read::Presence::Default { toml: $toml, why: $why }
    };
    (@presence optional $absent:literal) => { $crate::read::Presence::Optional { absent: $absent } };
    (@presence list $absent:literal) => { $crate::read::Presence::Optional { absent: $absent } };
}
pub(crate) use table;

/// Declares a word out of a few.
macro_rules! choice {
    ($(#[doc = $doc:literal])* pub enum $name:ident {
        $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $( $(#[doc = $word_doc])* $variant, )* }

        impl $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }

        /// As it is written.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $( Self::$variant => $word, )* })
            }
        }

        impl $crate::read::Value for $name {
            fn shape() -> $crate::read::Shape {
                $crate::read::Shape::Choice(Self::WORDS)
            }

            fn read(
                node: &$crate::read::Node<'_>,
                reader: &mut $crate::read::Reader<'_>,
            ) -> Option<Self> {
                match $crate::read::word(node, reader, Self::WORDS)? {
                    $( $word => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use choice;

/// One of a few words, or a report that names them.
pub(crate) fn word(
    node: &Node<'_>,
    reader: &mut Reader<'_>,
    words: &'static [&'static str],
) -> Option<&'static str> {
    let first = words.first().copied().unwrap_or_default();
    let Some(text) = node.value.as_str() else {
        return reader.wrong_type(
            node,
            &format!("one of {}", words.join(", ")),
            &format!("\"{first}\""),
        );
    };
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Some(word);
    }
    let near = nearest(text, words.iter().copied());
    let diagnostic = reader
        .error("unknown-word", node, format!("`{}` cannot be `{}`", node.key, clip(text)))
        .label(format!("not one of {}", words.join(", ")))
        .help(format!("write `{} = \"{}\"`", node.key, near.first().map_or(first, String::as_str)));
    reader.report(diagnostic);
    None
}
