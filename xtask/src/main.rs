//! Chores of the repository; `cargo xtask ci` will run what CI runs.

fn main() {}
