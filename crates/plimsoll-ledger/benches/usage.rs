//! What it costs to count usage, over a week of a gateway's log.
//!
//! 500 tenants, 40 features, 6 models of two providers and of a pool, retries, tasks of several requests. `PLIMSOLL_ROWS` asks for
//! another number of rows than two million.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use divan::counter::ItemsCount;
use plimsoll_cost::{Place, Pricing, TokenTable, Work};
use plimsoll_ledger::{IngestInput, Ledger, PlaceRule, UsageInput, ingest};
use plimsoll_stats::Seed;
use plimsoll_units::UsdPerToken;

/// Where ledgers are made.
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

fn main() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    DIRECTORY.get_or_init(|| directory.path().to_owned());
    divan::main();
}

/// Rows of the week. Small with the tests.
fn count() -> usize {
    if !std::env::args().any(|arg| arg == "--bench") {
        return 10_000;
    }
    std::env::var("PLIMSOLL_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(2_000_000)
}

/// How tasks are named.
#[derive(Clone, Copy, Debug)]
enum Named {
    /// Five requests are a task.
    Tasks,
    /// No request names its task; one in a hundred was tried again.
    Requests,
}

/// A ledger of them, made once for each kind.
fn ledger(named: Named) -> &'static Ledger {
    static TASKS: OnceLock<Ledger> = OnceLock::new();
    static REQUESTS: OnceLock<Ledger> = OnceLock::new();
    let once = match named {
        Named::Tasks => &TASKS,
        Named::Requests => &REQUESTS,
    };
    once.get_or_init(|| {
        let directory = DIRECTORY.get().expect("made by main").join(format!("{named:?}"));
        make(&directory, named);
        Ledger::open(&directory.join("ledger")).expect("a ledger")
    })
}

fn make(directory: &Path, named: Named) {
    std::fs::create_dir_all(directory).expect("a directory");
    let mut stream = Seed::new(11).stream("usage");
    // A file a day, so that none is too large to be held.
    let days = 7;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut number = 0u64;
    for day in 0..days {
        let mut text = String::from(
            "request_id,attempt,task_id,ts_arrival,provider,model,route,prompt_version,tenant,feature,tier,prompt_tokens,cache_read_tokens,output_tokens,status,cost_usd\n",
        );
        let rows = count() / days;
        for n in 0..rows {
            let second = 86_400.0 * n as f64 / rows as f64;
            let ms = (second * 1e3) as u64;
            let (hour, minute, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms % 60_000);
            // Large tenants have most of the requests.
            let tenant = (500.0 * stream.uniform().powi(3)) as u32;
            let model = stream.index(6);
            let provider = ["pool", "acme", "brand"][model / 2];
            let prompt = (stream.exponential() * 1500.0) as u32 + 1;
            let output = (stream.exponential() * 250.0) as u32 + 1;
            let retry = stream.index(100) == 0;
            number += u64::from(!retry);
            let task = match named {
                Named::Tasks => format!("task-{:08x}", number / 5),
                Named::Requests => String::new(),
            };
            let _ = writeln!(
                text,
                "req-{number:010x},{},{task},2026-03-{:02}T{hour:02}:{minute:02}:{:02}.{:03}Z,{provider},model-{model},route-{},v{},tenant-{tenant:03},feature-{},{},{prompt},{},{output},{},{}",
                1 + u8::from(retry),
                day + 1,
                ms / 1000,
                ms % 1000,
                stream.index(12),
                stream.index(5),
                stream.index(40),
                ["gold", "batch"][stream.index(2)],
                prompt / 2,
                ["ok", "ok", "ok", "failed"][stream.index(4)],
                f64::from(prompt) * 2e-6,
            );
        }
        let path = directory.join(format!("{day}.csv"));
        std::fs::write(&path, text).expect("written");
        files.push(path);
    }
    let done = ingest(&IngestInput {
        files: files.clone(),
        ledger: directory.join("ledger"),
        source: None,
        format: None,
        map: Vec::new(),
        start_ns: 0,
        find: None,
        threads: NonZero::new(2).expect("two"),
    });
    assert_eq!(done.expect("ingested").rejected, 0);
    files.iter().for_each(|file| std::fs::remove_file(file).expect("removed"));
}

fn asked(threads: usize) -> UsageInput {
    let price = UsdPerToken::picos;
    let table = TokenTable {
        input: price(2_000_000),
        cached_input: price(500_000),
        cache_write: price(2_000_000),
        output: price(8_000_000),
        above: Vec::new(),
        batch: None,
    };
    let work = Work {
        fresh_s: 1e-5,
        fresh_context_s: 1e-10,
        output_s: 1e-4,
        output_context_s: 1e-8,
        usd_per_s: 1e-3,
    };
    let rule = |name: &str, pricing: Pricing| PlaceRule {
        place: Place { name: name.to_owned(), pricing },
        matches: BTreeMap::from([
            ("provider".to_owned(), name.to_owned()),
            ("model".to_owned(), "*".to_owned()),
        ]),
    };
    UsageInput {
        places: vec![
            rule("pool", Pricing::Devices(work)),
            rule("acme", Pricing::Tokens(table.clone())),
            rule("brand", Pricing::Tokens(table)),
        ],
        only: Vec::new(),
        from_s: None,
        until_s: None,
        values_most: 200,
        threads: NonZero::new(threads).expect("threads"),
    }
}

fn bench(bencher: divan::Bencher<'_, '_>, named: Named, threads: usize) {
    let ledger = ledger(named);
    let input = asked(threads);
    bencher.counter(ItemsCount::new(ledger.rows())).bench(|| {
        let usage = ledger.usage(&input).expect("used");
        let rows: f64 = usage.all.cells.values().map(|sums| sums.requests).sum();
        // However fast: every row is there.
        assert_eq!(rows as u64, ledger.rows());
        usage.tasks.usd.to_bits()
    });
}

#[divan::bench(args = [1, 2], sample_count = 2, sample_size = 1)]
fn tasks(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, Named::Tasks, threads);
}

#[divan::bench(args = [1, 2], sample_count = 2, sample_size = 1)]
fn requests(bencher: divan::Bencher<'_, '_>, threads: usize) {
    bench(bencher, Named::Requests, threads);
}
