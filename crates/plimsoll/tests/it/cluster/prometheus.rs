//! A real Prometheus on a port of its own.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ended with the test.
pub struct Prometheus {
    child: Option<Child>,
    port: u16,
    directory: PathBuf,
}

/// Whether it is installed. Where it is not, the test says so loudly; in CI it must be.
pub fn is_installed() -> bool {
    let found = ["prometheus", "promtool"].iter().all(|program| {
        let mut asked = Command::new(program);
        asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    });
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI has a Prometheus: apt-get install prometheus"
        );
        // Past the test harness, which would hide it: a skipped test must be seen.
        let said = format_args!("SKIPPED: `prometheus` is not installed, so nothing was scraped\n");
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), said);
    }
    found
}

impl Prometheus {
    /// Scrapes targets every second, and keeps what it has in a directory.
    pub fn start(directory: &Path, targets: &[u16]) -> Self {
        let targets: Vec<String> =
            targets.iter().map(|port| format!("'127.0.0.1:{port}'")).collect();
        let config = format!(
            "global:\n  scrape_interval: 1s\n  scrape_timeout: 900ms\nscrape_configs:\n- job_name: engines\n  static_configs:\n  - targets: [{}]\n",
            targets.join(", ")
        );
        std::fs::create_dir_all(directory.join("data")).expect("a directory");
        std::fs::write(directory.join("prometheus.yml"), config).expect("a configuration");
        let port =
            TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
        let mut own = Self { child: None, port, directory: directory.to_owned() };
        own.restart();
        own
    }

    /// `http://127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills it, without a chance to say good-bye.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it on the same port and what it had kept.
    pub fn restart(&mut self) {
        self.kill();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", self.directory.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", self.directory.join("data").display()))
            .arg("--storage.tsdb.retention.time=10y")
            .arg(format!("--web.listen-address=127.0.0.1:{}", self.port))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus starts");
        self.child = Some(child);
        for _ in 0..600 {
            // It listens before it has read what it kept.
            if self.is_ready() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("prometheus does not become ready");
    }

    fn is_ready(&self) -> bool {
        let ask = || -> std::io::Result<bool> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(b"GET /-/ready HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer.lines().next().is_some_and(|status| status.contains(" 200 ")))
        };
        ask().unwrap_or(false)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.kill();
    }
}
