//! Command lines as a shell reads them, each word with its line.

use std::collections::BTreeMap;

/// Variables that are known by value.
pub(super) type Variables = BTreeMap<String, String>;

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    /// From one.
    pub line: usize,
    /// Holds a variable that nobody has set here, as it was written.
    pub open: bool,
}

/// The commands of a text. Assignments are remembered for what follows; comments, pipes and redirections only separate.
pub(super) fn commands(text: &str, first_line: usize, known: &mut Variables) -> Vec<Vec<Word>> {
    let mut reading =
        Reading { line: first_line, known, done: Vec::new(), words: Vec::new(), word: None };
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => {
                reading.end_command();
                reading.line += 1;
            }
            '\\' => match rest.next() {
                Some('\r') => {
                    rest.next_if_eq(&'\n');
                    reading.line += 1;
                    reading.end_word();
                }
                Some('\n') => {
                    reading.line += 1;
                    // A shell joins the two lines; between flags there is always a space, and without one a flag would eat the next.
                    reading.end_word();
                }
                Some(other) => reading.push(other),
                None => {}
            },
            '\'' => {
                reading.begin();
                for c in rest.by_ref() {
                    if c == '\'' {
                        break;
                    }
                    reading.push(c);
                }
            }
            '"' => {
                reading.begin();
                while let Some(c) = rest.next() {
                    match c {
                        '"' => break,
                        '\\' => match rest.next() {
                            Some('\n') => reading.line += 1,
                            Some(c @ ('"' | '\\' | '$' | '`')) => reading.push(c),
                            Some(c) => {
                                reading.push('\\');
                                reading.push(c);
                            }
                            None => {}
                        },
                        '$' => reading.variable(&mut rest, true),
                        c => reading.push(c),
                    }
                }
            }
            '$' => reading.variable(&mut rest, false),
            '#' if reading.word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
            '&' if reading.word.as_ref().is_some_and(|word| word.text.ends_with('>')) => {
                reading.push(c);
            }
            ';' | '|' | '&' | '(' | ')' => reading.end_command(),
            c if c.is_whitespace() => reading.end_word(),
            c => reading.push(c),
        }
    }
    reading.end_command();
    reading.done
}

struct Reading<'a> {
    line: usize,
    known: &'a mut Variables,
    done: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Option<Word>,
}

impl Reading<'_> {
    fn begin(&mut self) -> &mut Word {
        let line = self.line;
        self.word.get_or_insert_with(|| Word { line, ..Word::default() })
    }

    fn push(&mut self, c: char) {
        self.begin().text.push(c);
        if c == '\n' {
            self.line += 1;
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        let mut words = std::mem::take(&mut self.words);
        let mut assigned = 0;
        for word in &words {
            if matches!(word.text.as_str(), "export" | "env" | "exec" | "nohup" | "sudo") {
                assigned += 1;
                continue;
            }
            let Some((name, value)) = word.text.split_once('=') else { break };
            if !is_name(name) {
                break;
            }
            if !word.open {
                self.known.insert(name.to_owned(), value.to_owned());
            }
            assigned += 1;
        }
        words.drain(..assigned);
        if !words.is_empty() {
            self.done.push(words);
        }
    }

    /// What follows a `$`: its value where it is known, otherwise as it was written.
    fn variable(&mut self, rest: &mut std::iter::Peekable<std::str::Chars<'_>>, quoted: bool) {
        let mut written = "$".to_owned();
        let mut name = String::new();
        let mut fallback = None;
        match rest.peek() {
            Some(open @ ('{' | '(')) => {
                let (open, close) = (*open, if *open == '{' { '}' } else { ')' });
                let mut depth = 0usize;
                let mut inner = String::new();
                for c in rest.by_ref() {
                    written.push(c);
                    if c == open {
                        depth += 1;
                        if depth == 1 {
                            continue;
                        }
                    } else if c == close {
                        depth -= 1;
                        if depth == 0 {
                            break;
                        }
                    }
                    inner.push(c);
                }
                self.line += inner.matches('\n').count();
                match inner.split_once(":-").or_else(|| inner.split_once('-')) {
                    Some((front, value)) if open == '{' => {
                        name = front.to_owned();
                        fallback = Some(value.to_owned());
                    }
                    _ => name = inner,
                }
            }
            _ => {
                while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                written.push_str(&name);
            }
        }
        let value = self.known.get(&name).cloned().or(fallback.filter(|_| is_name(&name)));
        match value {
            Some(value) if quoted => self.begin().text.push_str(&value),
            Some(value) => {
                for (i, part) in value.split_whitespace().enumerate() {
                    if i > 0 {
                        self.end_word();
                    }
                    self.begin().text.push_str(part);
                }
            }
            None => {
                let word = self.begin();
                word.text.push_str(&written);
                word.open |= !name.is_empty();
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&[&str]]) {
        let got = commands(text, 1, &mut Variables::new());
        let got: Vec<Vec<&str>> =
            got.iter().map(|words| words.iter().map(|w| w.text.as_str()).collect()).collect();
        assert_eq!(got, expect, "{text}");
    }

    #[test]
    fn words_are_a_shell_s() {
        check("vllm serve \\\n  m --x=1 # no\n# vllm", &[&["vllm", "serve", "m", "--x=1"]]);
        check("a 'b c' \"d \\\"e\\\"\" f\\ g", &[&["a", "b c", "d \"e\"", "f g"]]);
        check(
            "M=q; X=1 vllm $M \"${N:-two words}\" ${N:-p q}",
            &[&["vllm", "q", "two words", "p", "q"]],
        );
        check("a && b | c 2>&1; d", &[&["a"], &["b"], &["c", "2>&1"], &["d"]]);
        check("export A=1\nrun $A $B $(date +%s)", &[&["run", "1", "$B", "$(date +%s)"]]);
        check("j --c '{\"n\": 3}' ${", &[&["j", "--c", "{\"n\": 3}", "${"]]);
    }

    #[test]
    fn words_know_their_lines_and_what_is_open() {
        let got = commands("a \\\n b\nc $X", 10, &mut Variables::new());
        let lines: Vec<(usize, bool)> =
            got.iter().flatten().map(|word| (word.line, word.open)).collect();
        assert_eq!(lines, [(10, false), (11, false), (12, false), (12, true)]);
    }
}
