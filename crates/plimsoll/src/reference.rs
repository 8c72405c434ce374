//! `docs/reference/cli.md`, written from the declarations.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory as _};

use crate::args::Cli;

/// The reference of every command and option, as Markdown.
pub fn cli_reference() -> String {
    let mut out = String::from(
        "# The command line\n\n\
         Generated from the declarations in `crates/plimsoll/src/args.rs` by `PLIMSOLL_UPDATE=1 cargo test -p plimsoll references`; the test fails when it is\n\
         stale. Results go to stdout, talk and mistakes to stderr. With `--json` stdout holds exactly one JSON\n\
         document whose first field is `schema`; a failure is `plimsoll/error/v1` with `exit_code` and `diagnostics`\n\
         (`code`, `message`, `file`, `line`, `column`, `help`).\n\n\
         | exit code | meaning |\n|---|---|\n\
         | 0 | answered |\n\
         | 1 | the answer is \"no\" |\n\
         | 2 | the input is wrong, or the answer could not be written |\n\
         | 3 | a bug of ours |\n\n\
         `NO_COLOR` takes colour away, never meaning.\n\n## Options of every command\n\n",
    );
    let command = Cli::command();
    options(&mut out, command.get_arguments().filter(|a| a.is_global_set()));
    for sub in command.get_subcommands() {
        let arguments: Vec<&Arg> = sub.get_arguments().filter(|a| !a.is_global_set()).collect();
        let positional: String = arguments
            .iter()
            .filter(|a| a.is_positional())
            .map(|a| {
                let name = a.get_id().as_str().to_uppercase();
                if a.is_required_set() { format!(" {name}") } else { format!(" [{name}]") }
            })
            .collect();
        let _ = write!(out, "\n## `plimsoll {}{positional}`\n\n", sub.get_name());
        let _ =
            writeln!(out, "{}.\n", sub.get_about().map(ToString::to_string).unwrap_or_default());
        if !arguments.is_empty() {
            options(&mut out, arguments.into_iter());
        }
    }
    out
}

fn options<'a>(out: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    out.push_str("| argument | meaning |\n|---|---|\n");
    for argument in arguments {
        let mut name = match argument.get_long() {
            Some(long) => format!("--{long}"),
            None => argument.get_id().as_str().to_uppercase(),
        };
        if argument.get_long().is_some() && argument.get_action().takes_values() {
            let value = argument.get_value_names().and_then(|n| n.first()).map(ToString::to_string);
            let _ = write!(name, " {}", value.unwrap_or_else(|| "VALUE".to_owned()));
        }
        let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let values = argument.get_possible_values();
        if !values.is_empty() && argument.get_action().takes_values() {
            let names: Vec<String> = values.iter().map(|v| format!("`{}`", v.get_name())).collect();
            let _ = write!(help, ": {}", names.join(", "));
        }
        let _ = writeln!(out, "| `{name}` | {} |", help.replace('|', "\\|"));
    }
}
