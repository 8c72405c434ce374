//! `plimsoll serve` on a machine that does nothing else: two hundred what-ifs said at once against what is simulated, and two hundred clients for half a minute. Each has a bar.

use std::time::Duration;

#[path = "../tests/it/common/mod.rs"]
mod common;
#[path = "../tests/it/serve_load.rs"]
mod serve_load;
#[path = "../tests/it/server/mod.rs"]
mod server;
#[path = "../tests/it/what_if.rs"]
mod what_if;

fn main() {
    serve_load::load(Duration::from_secs(30), true);
    what_if::compare(34, 0.9);
}
