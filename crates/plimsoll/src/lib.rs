//! The command line: arguments, exit codes, colour and files.
//!
//! **Owns** what a shell sees: which command was asked for, what goes to stdout and stderr, the exit code.
//! **Refuses** logic the other rooms should have: a command reads, calls a study, and hands the result to
//! `plimsoll-report`.
//!
//! Exit codes: 0 answered, 1 the answer is "no", 2 the input is wrong, 3 a bug of ours.

mod args;
mod commands;
mod failure;
mod files;
mod reference;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser as _;
use plimsoll_report::Heading;

pub use args::{Cli, Command};
pub use failure::remember_panic;
pub use reference::cli_reference;

use failure::Failure;

/// The version with the commit it was built from.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("PLIMSOLL_COMMIT"),
    ", ",
    env!("PLIMSOLL_COMMIT_DATE"),
    ")"
);

/// Runs a command line and returns its exit code. Results go to `out`, talk to `err`.
pub fn run(arguments: &[OsString], out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let wants_json = arguments.iter().skip(1).take_while(|a| *a != "--").any(|a| a == "--json");
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            // --help and --version are answers.
            let text = match error.kind() {
                clap::error::ErrorKind::DisplayVersion if wants_json => {
                    format!(
                        "{:#}\n",
                        serde_json::json!({ "schema": "plimsoll/version/v1", "version": VERSION })
                    )
                }
                _ if colour(&std::io::stdout()) => error.render().ansi().to_string(),
                _ => error.render().to_string(),
            };
            return finish(write!(out, "{text}"), err, 0);
        }
        Err(error) => return Failure::usage(&error).tell(wants_json, out, err),
    };
    // A panic is a bug: say so, with what is needed to report it, instead of a bare trace.
    let answered =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commands::answer(&cli, err)));
    match answered {
        Ok(Ok(answer)) => {
            let written = out.write_all(answer.text.as_bytes()).and_then(|()| out.flush());
            finish(written, err, answer.code)
        }
        Ok(Err(failure)) => failure.tell(cli.global.json, out, err),
        Err(panic) => Failure::bug(&*panic).tell(cli.global.json, out, err),
    }
}

/// A reader that went away (`| head`) is no failure. A full disk is one, but not a bug of ours.
fn finish(written: std::io::Result<()>, err: &mut dyn Write, code: u8) -> u8 {
    match written {
        Ok(()) => code,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => code,
        Err(error) => {
            // Nothing is left to be told if even this cannot be written.
            let _ = writeln!(err, "plimsoll: the answer could not be written: {error}");
            2
        }
    }
}

/// Whether a stream shows colour: a terminal, and nobody said `NO_COLOR`.
pub(crate) fn colour(stream: &impl anstream::stream::RawStream) -> bool {
    stream.is_terminal() && anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Columns of the terminal that an answer goes to, or what `COLUMNS` says.
pub(crate) fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size_of(std::io::stdout());
    said.or_else(|| terminal().map(|(width, _)| usize::from(width.0))).unwrap_or(80)
}

pub(crate) fn heading() -> Heading {
    if colour(&std::io::stdout()) { Heading::Bold } else { Heading::Plain }
}
