//! `cargo build --release && cargo run --release -p tools --bin ledger-bench [ROWS]`: how fast the ledger is: rows in, a profile out, and the shortest question against another engine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool prints what it finds")]

use std::io::{BufWriter, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use plimsoll_ledger::{Ledger, WindowSum};
use plimsoll_stats::Seed;

/// How often the windows are asked for; the best counts, on both sides.
const REPEATS: usize = 5;
const WINDOW_S: NonZero<u32> = NonZero::new(10).expect("ten");

fn main() -> ExitCode {
    let rows = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    match bench(rows) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("ledger-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Writes a log of so many rows, reads it into a ledger, profiles it, and asks for sums over ten seconds: us, and DuckDB where
/// Python has it.
fn bench(rows: u64) -> Result<(), String> {
    let directory = std::env::temp_dir().join(format!("plimsoll-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
    let done = measure(rows, &directory);
    std::fs::remove_dir_all(&directory).map_err(|e| e.to_string())?;
    done
}

fn measure(rows: u64, directory: &Path) -> Result<(), String> {
    let (log, ledger) = (directory.join("log.csv"), directory.join("ledger"));
    write_log(&log, rows).map_err(|e| format!("{}: {e}", log.display()))?;
    let bytes = std::fs::metadata(&log).map_err(|e| e.to_string())?.len();
    let (seconds, peak) =
        run(&["ingest".as_ref(), log.as_ref(), "--into".as_ref(), ledger.as_ref()])?;
    println!(
        "ingest: {rows} rows, {} MB, in {seconds:.1} s: {:.2} million rows/s, {peak} MiB at most",
        bytes / 1_000_000,
        rows as f64 / seconds / 1e6
    );
    std::fs::remove_file(&log).map_err(|e| e.to_string())?;
    let (seconds, peak) = run(&["--json".as_ref(), "profile".as_ref(), ledger.as_ref()])?;
    println!("profile: {rows} rows in {seconds:.1} s, {peak} MiB at most");
    let opened = Ledger::open(&ledger).map_err(|e| e.to_string())?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let mut best = f64::INFINITY;
    let mut sums = Vec::new();
    for _ in 0..REPEATS {
        let start = now();
        sums = opened.window_sums(WINDOW_S, threads).map_err(|e| e.to_string())?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("sums over 10 s: {best:.3} s, {} windows", sums.len());
    match duckdb(&ledger, &sums)? {
        Some(other) => {
            println!("sums over 10 s, DuckDB: {other:.3} s; ours takes {:.2} of that", best / other)
        }
        None => println!("SKIPPED: no Python with DuckDB to compare with (set PLIMSOLL_PYTHON)"),
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// A log in the shape of Azure's: exponential gaps at 20 requests a second, long-tailed lengths.
fn write_log(path: &Path, rows: u64) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut stream = Seed::new(7).stream("bench");
    let lengths: Vec<(u32, u32)> = (0..65_536)
        .map(|_| {
            let long = |mean: f64, u: f64| (mean * u).round().clamp(1.0, 120_000.0) as u32;
            (long(1500.0, stream.exponential()), long(250.0, stream.exponential()))
        })
        .collect();
    writeln!(out, "TIMESTAMP,ContextTokens,GeneratedTokens")?;
    let mut at = 0.0;
    for i in 0..rows {
        at += stream.exponential() / 20.0;
        let ticks = (at * 1e7) as u64;
        let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
        let (day, second) = (seconds / 86_400, seconds % 86_400);
        let (month, day) = (1 + day / 28 % 12, 1 + day % 28);
        let (prompt, output) = lengths[(i.wrapping_mul(40_503) % 65_536) as usize];
        writeln!(
            out,
            "2025-{month:02}-{day:02} {:02}:{:02}:{:02}.{fraction:07},{prompt},{output}",
            second / 3600,
            second / 60 % 60,
            second % 60
        )?;
    }
    out.flush()
}

/// Runs ourselves, and says how long it took and how much memory.
fn run(arguments: &[&std::ffi::OsStr]) -> Result<(f64, u64), String> {
    let binary = std::env::current_exe().map_err(|e| e.to_string())?;
    let binary: PathBuf = binary.with_file_name("plimsoll");
    if !binary.is_file() {
        return Err(format!("no {}: build it with `cargo build --release`", binary.display()));
    }
    let start = now();
    let mut child = Command::new(&binary)
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut peak = 0;
    let status = loop {
        // What the system has seen at most, in KiB; only Linux says it.
        let said =
            std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = said.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
        let most = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        peak = peak.max(most / 1024);
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    if status.success() {
        Ok((start.elapsed().as_secs_f64(), peak))
    } else {
        Err(format!("{status}"))
    }
}

const QUERY: &str = "
import sys, time, duckdb
db = duckdb.connect()
db.execute('SET threads = %s' % sys.argv[2])
files = sys.argv[1]
best = float('inf')
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    first = db.execute(f\"SELECT min(epoch_ns(ts_arrival)) FROM read_parquet('{files}')\").fetchone()[0]
    rows = db.execute(f\"SELECT (epoch_ns(ts_arrival) - {first}) // 10000000000 AS w, count(*), sum(prompt_tokens), sum(output_tokens) FROM read_parquet('{files}') GROUP BY w ORDER BY w\").fetchall()
    best = min(best, time.perf_counter() - start)
print(best, len(rows), sum(r[1] for r in rows), sum(r[2] for r in rows), sum(r[3] for r in rows))
";

/// The same by DuckDB on the same files, where Python has it: its best time.
fn duckdb(ledger: &Path, ours: &[WindowSum]) -> Result<Option<f64>, String> {
    let python = std::env::var("PLIMSOLL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import duckdb"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).to_string();
    let files = format!("{}/requests/*/*.parquet", ledger.display());
    let output = Command::new(&python)
        .args(["-c", QUERY, &files, &threads, &REPEATS.to_string()])
        .output()
        .map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [best, windows, rows, prompt, out] = numbers[..] else {
        return Err(format!("DuckDB: {}", String::from_utf8_lossy(&output.stderr)));
    };
    let sum = |of: fn(&WindowSum) -> u64| ours.iter().map(of).sum::<u64>() as f64;
    let own = [sum(|w| w.rows), sum(|w| w.prompt_tokens), sum(|w| w.output_tokens)];
    let filled = ours.iter().filter(|w| w.rows > 0).count() as f64;
    if [windows, rows, prompt, out] != [filled, own[0], own[1], own[2]] {
        return Err(format!("DuckDB counts {numbers:?}, we count {filled} and {own:?}"));
    }
    Ok(Some(best))
}
