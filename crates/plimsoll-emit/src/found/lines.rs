//! The lines of a scenario that is being written, each with its origin, and the questions among them.

use plimsoll_scenario::{Source, builtin, parse};

use super::draft::{Place, clip};
use super::{FoundQuestion, FoundValue};

/// A line, or a question that stands for some.
pub(super) enum Line {
    /// As it is.
    Plain(String),
    /// A key with what was found.
    Set { path: String, key: String, value: String, origin: String, refused: Option<String> },
    /// What nobody has said, with lines that would answer it.
    Ask(FoundQuestion),
}

/// A scenario line by line.
#[derive(Default)]
pub(super) struct Lines(Vec<Line>);

impl Lines {
    pub(super) fn plain(&mut self, text: impl Into<String>) {
        self.0.push(Line::Plain(text.into()));
    }

    /// A comment, cut where nobody reads on.
    pub(super) fn comment(&mut self, text: &str) {
        self.plain(format!("# {}", clip(text, 240)));
    }

    pub(super) fn set(&mut self, table: &str, key: &str, value: impl Into<String>, place: &Place) {
        self.set_from(table, key, value, place.to_string());
    }

    pub(super) fn set_from(
        &mut self,
        table: &str,
        key: &str,
        value: impl Into<String>,
        origin: impl Into<String>,
    ) {
        let path = format!("{table}.{key}");
        let (key, value, origin) = (key.to_owned(), value.into(), origin.into());
        self.0.push(Line::Set { path, key, value, origin, refused: None });
    }

    pub(super) fn ask(
        &mut self,
        key: String,
        question: impl Into<String>,
        example: impl Into<String>,
    ) {
        let (question, example) = (clip(&question.into(), 240), example.into());
        self.0.push(Line::Ask(FoundQuestion { key, question, example, needed: false }));
    }

    /// The same, where no scenario is complete without an answer.
    pub(super) fn need(
        &mut self,
        key: String,
        question: impl Into<String>,
        example: impl Into<String>,
    ) {
        self.ask(key, question, example);
        if let Some(Line::Ask(question)) = self.0.last_mut() {
            question.needed = true;
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn values(&self) -> Vec<FoundValue> {
        let value = |line: &Line| match line {
            Line::Set { path, value, origin, refused: None, .. } => {
                Some(FoundValue { key: path.clone(), value: value.clone(), origin: origin.clone() })
            }
            _ => None,
        };
        self.0.iter().filter_map(value).collect()
    }

    pub(super) fn questions(&self) -> Vec<FoundQuestion> {
        let question = |line: &Line| match line {
            Line::Ask(question) => Some(question.clone()),
            _ => None,
        };
        self.0.iter().filter_map(question).collect()
    }

    /// The text; with answers, every question is answered by its example.
    pub(super) fn text(&self, answered: bool) -> String {
        let mut out = String::new();
        for line in &self.0 {
            out.push_str(&shown(line, answered));
        }
        out
    }

    /// What a scenario may not say becomes a comment with the reason, so that a check of the file only meets what is asked.
    pub(super) fn settle(&mut self, warnings: &mut Vec<String>) {
        for _ in 0..20 {
            let text = self.text(true);
            let Err(mistakes) = parse(&Source::new("scenario.toml", text), builtin()) else {
                return;
            };
            let mut changed = false;
            for mistake in &mistakes {
                let help = mistake.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                let said = clip(&format!("{}{help}", mistake.message), 200);
                let at = mistake.position().and_then(|(line, _)| self.at(line));
                if let Some(Line::Set { refused: refused @ None, path, value, origin, .. }) = at {
                    warnings.push(format!("`{path} = {value}` ({origin}) is left out: {said}"));
                    *refused = Some(said);
                    changed = true;
                }
            }
            if !changed {
                warnings.extend(mistakes.iter().map(|mistake| clip(&mistake.message, 160)));
                return;
            }
        }
    }

    /// The line that a line of the answered text belongs to.
    fn at(&mut self, wanted: usize) -> Option<&mut Line> {
        let mut line = 0;
        for own in &mut self.0 {
            line += shown(own, true).lines().count().max(1);
            if line >= wanted {
                return Some(own);
            }
        }
        None
    }
}

fn shown(line: &Line, answered: bool) -> String {
    match line {
        Line::Plain(text) => format!("{text}\n"),
        Line::Set { key, value, origin, refused: None, .. } => {
            format!("{:<37} # {origin}\n", format!("{key} = {value}"))
        }
        Line::Set { key, value, origin, refused: Some(why), .. } => {
            format!("# {:<35} # {origin}; left out: {why}\n", format!("{key} = {value}"))
        }
        Line::Ask(question) => {
            let mut out = format!("# ? {}\n", question.question);
            for line in question.example.lines() {
                let comment = line.starts_with('#');
                out.push_str(if answered || comment { "" } else { "# " });
                out.push_str(line);
                out.push('\n');
            }
            out
        }
    }
}
