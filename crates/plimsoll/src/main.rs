//! `plimsoll`: the load line for LLM inference.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A bug is reported once, by the failure document, with the place where it happened.
    std::panic::set_hook(Box::new(plimsoll::remember_panic));
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    ExitCode::from(plimsoll::run(&arguments, &mut std::io::stdout(), &mut std::io::stderr()))
}
