//! Records which commit the program was built from.

use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
        String::from_utf8(output.stdout)
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|t| !t.is_empty())
    };
    let hash = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "no git".to_owned());
    let date = git(&["show", "-s", "--format=%cs", "HEAD"]).unwrap_or_else(|| "no date".to_owned());
    println!("cargo::rustc-env=PLIMSOLL_COMMIT={hash}");
    println!("cargo::rustc-env=PLIMSOLL_COMMIT_DATE={date}");
    // The commit changes with HEAD or with the branch that HEAD names.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
