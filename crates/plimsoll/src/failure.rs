//! What goes wrong, as text for people or one JSON document for scripts.

use std::any::Any;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::Mutex;

use plimsoll_scenario::Diagnostic;
use serde_json::{Value, json};

/// A command that has no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    diagnostics: Vec<Diagnostic>,
    /// A text that is already laid out, such as a usage message.
    text: Option<String>,
}

/// Where the last panic happened.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// A panic hook that says nothing yet, but remembers the place.
pub fn remember_panic(info: &PanicHookInfo<'_>) {
    if let Ok(mut place) = PLACE.lock() {
        *place = info.location().map(ToString::to_string);
    }
}

/// More than this many at once help nobody.
const SHOWN_MAX: usize = 50;

impl Failure {
    /// The input is wrong.
    pub(crate) fn input(diagnostics: Vec<Diagnostic>) -> Self {
        Self { code: 2, diagnostics, text: None }
    }

    /// One thing is wrong.
    pub(crate) fn one(diagnostic: Diagnostic) -> Self {
        Self::input(vec![diagnostic])
    }

    /// What is wrong, to be said with more of it.
    pub(crate) fn diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// The command line is wrong.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let message =
            text.lines().next().unwrap_or("wrong usage").trim_start_matches("error: ").to_owned();
        let diagnostic =
            Diagnostic::about("usage", "command line", message).help("see `plimsoll --help`");
        Self { code: 2, diagnostics: vec![diagnostic], text: Some(text) }
    }

    /// We are wrong.
    pub(crate) fn bug(panic: &(dyn Any + Send)) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        let place = PLACE.lock().ok().and_then(|mut place| place.take());
        let message = place.map_or(message.clone(), |place| format!("{message} ({place})"));
        let diagnostic = Diagnostic::about(
            "internal-bug",
            "plimsoll",
            format!("this is a bug of ours: {message}"),
        )
        .help(format!(
            "please report it with the command, the scenario and this version: {}",
            crate::VERSION
        ));
        Self { code: 3, diagnostics: vec![diagnostic], text: None }
    }

    /// Says it and returns the exit code.
    pub(crate) fn tell(&self, json: bool, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        let written = if json {
            let diagnostics: Vec<Value> = self.diagnostics.iter().map(as_json).collect();
            let document = json!({ "schema": "plimsoll/error/v1", "exit_code": self.code, "diagnostics": diagnostics });
            writeln!(out, "{document:#}")
        } else if let Some(text) = &self.text {
            write!(err, "{text}")
        } else {
            self.tell_people(err)
        };
        // Nothing is left to be told if even this cannot be written.
        let _ = written;
        self.code
    }

    fn tell_people(&self, err: &mut dyn Write) -> std::io::Result<()> {
        let colour = crate::colour(&std::io::stderr());
        for diagnostic in self.diagnostics.iter().take(SHOWN_MAX) {
            writeln!(err, "{}", diagnostic.render(colour, 100).trim_end())?;
            writeln!(err)?;
        }
        match self.diagnostics.len() {
            0 | 1 => Ok(()),
            n if n > SHOWN_MAX => writeln!(err, "{n} mistakes, of which {SHOWN_MAX} are shown"),
            n => writeln!(err, "{n} mistakes"),
        }
    }
}

fn as_json(diagnostic: &Diagnostic) -> Value {
    let (line, column) = diagnostic.position().unzip();
    json!({
        "code": diagnostic.code,
        "message": diagnostic.message,
        "file": diagnostic.file(),
        "line": line,
        "column": column,
        "help": diagnostic.help,
    })
}
