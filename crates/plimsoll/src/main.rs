//! `plimsoll`: the load line for LLM inference.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A bug is reported once, by the failure document, not also by the default hook.
    std::panic::set_hook(Box::new(|_| {}));
    let arguments: Vec<String> =
        std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    ExitCode::from(plimsoll::run(&arguments, &mut std::io::stdout(), &mut std::io::stderr()))
}
