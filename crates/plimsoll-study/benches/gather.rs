//! What it costs to gather a row, and to profile what was gathered.
//!
//! Two days of chat-like requests, with lengths, classes and clients as a gateway logs them.

use divan::counter::ItemsCount;
use plimsoll_stats::Seed;
use plimsoll_study::{EXACT_ROWS, End, Gathered, Gathering, ProfileInput, Seen, profile};

fn main() {
    divan::main();
}

/// Rows of two days. Small with the tests.
fn count() -> usize {
    if std::env::args().any(|arg| arg == "--bench") { 2_000_000 } else { 20_000 }
}

fn rows(classes: u32) -> Vec<Seen> {
    let mut stream = Seed::new(1).stream("rows");
    let gap = 2.0 * 86_400e9 / count() as f64;
    let mut at = 0.0;
    (0..count())
        .map(|i| {
            at += gap * stream.exponential();
            let first = i == 0;
            let long = (stream.exponential() * stream.exponential() * 3000.0) as u32;
            Seen {
                at_ns: Some(if first { 0 } else { at as i64 }),
                prompt: Some(long + 20),
                cached: Some(long / 2),
                output: Some((stream.exponential() * 300.0) as u32 + 1),
                reasoning: None,
                max_tokens: Some(4096),
                weight: 1.0,
                class: stream.index(classes as usize) as u32,
                client: Some(stream.index(200) as u32),
                attempt: 1,
                end: End::Ok,
                ttft_s: None,
                e2e_s: None,
            }
        })
        .collect()
}

fn shape() -> Gathering {
    Gathering { rows_expected: Some(count() as u64), exact_rows: EXACT_ROWS, pace: None }
}

fn gather(rows: &[Seen]) -> Gathered {
    let mut gathered = Gathered::new(&shape());
    rows.iter().for_each(|row| gathered.push(row));
    gathered
}

#[divan::bench(args = [1, 10], sample_count = 5, sample_size = 1)]
fn push(bencher: divan::Bencher<'_, '_>, classes: u32) {
    let rows = rows(classes);
    bencher.counter(ItemsCount::new(count())).bench(|| gather(&rows).rows());
}

/// The same with the time each took, from which tokens in memory follow.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn push_with_times(bencher: divan::Bencher<'_, '_>) {
    let mut rows = rows(1);
    for row in &mut rows {
        row.ttft_s = Some(0.3);
        row.e2e_s = row.output.map(|output| 0.3 + 0.02 * f64::from(output));
    }
    bencher.counter(ItemsCount::new(count())).bench(|| gather(&rows).rows());
}

#[divan::bench(args = [1, 10], sample_count = 2, sample_size = 1)]
fn finish(bencher: divan::Bencher<'_, '_>, classes: u32) {
    let rows = rows(classes);
    let input = ProfileInput {
        classes: (0..classes).map(|class| format!("class {class}")).collect(),
        clients: Vec::new(),
        clients_named: 10,
        clock: None,
        no_clock: None,
        reuse: None,
        series: None,
        seed: Seed::new(1),
        threads: 1,
    };
    bencher
        .counter(ItemsCount::new(count()))
        .with_inputs(|| gather(&rows))
        .bench_values(|gathered| profile(gathered, &input).classes.len());
}
