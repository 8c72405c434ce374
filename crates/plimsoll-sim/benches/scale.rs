//! How the cost of a simulation grows: with the running batch, with the number of requests, and in memory. Each has a bar, far above what is measured and far below what looking at
//! every sequence, at every earlier request, or keeping something of each request would cost.

#![expect(clippy::print_stdout, reason = "what was measured is printed")]

mod support;

use std::time::Instant;

use plimsoll_perf::StepModel;
use plimsoll_sim::{Loop, Outcome, Steps, Watch};
use support::{CONVERSATION, Demand, Hash, limits, model, run};

fn main() {
    // `cargo bench --bench scale -- --long` goes on to ten million requests.
    let long = std::env::args().any(|arg| arg == "--long");
    let most = if long { 10_000_000 } else { 1_000_000 };
    let model = model();
    // First of all, while the process is small.
    memory(&model, most);
    sequences(&model, most.min(200_000));
    requests(&model, most);
}

/// How many times as long a step of sixteen times as many sequences may take, or a request among a hundred times as many: noise of a busy machine is within it.
const LONGER_MOST: f64 = 3.0;
/// By how many bytes the process may grow for ten times as many requests of which nothing is kept.
const GROWTH_MOST: u64 = 8_000_000;

/// The shortest of a few runs, in seconds, and what the last of them gave: a busy machine only makes a run longer.
fn fastest<T>(runs: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let mut timed = || {
        #[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
        let began = Instant::now();
        let gave = run();
        (began.elapsed().as_secs_f64(), gave)
    };
    let (mut least, mut gave) = timed();
    for _ in 1..runs {
        let (seconds, again) = timed();
        (least, gave) = (least.min(seconds), again);
    }
    (least, gave)
}

/// Nanoseconds a step, with as many clients as sequences, so that all are busy. Of conversations, a step with more sequences has as many more to let in and out; where outputs are longer in
/// the same measure it has not, and then what is left is what a step costs for the size of its batch.
fn sequences(model: &StepModel, count: usize) {
    println!("sequences  output  requests/step  ns/step  ns/request  leapt");
    let longer = |n: usize| Demand { output: 211.0 * n as f64 / 256.0, ..CONVERSATION };
    let same: fn(usize) -> Demand = |_| CONVERSATION;
    for (demand, flat) in [(same, false), (longer as fn(usize) -> Demand, true)] {
        let mut costs = Vec::new();
        for n in [64, 256, 1024] {
            let demand = demand(n);
            let arrivals: Vec<_> = demand.arrivals(count).collect();
            let (seconds, (Steps { total, leapt }, _)) = fastest(7, || {
                let arrivals = arrivals.iter().cloned();
                run(model, limits(n), Loop::Closed(n), arrivals, &mut Hash::default())
            });
            let (of_steps, of_requests) = (1e9 / total as f64, 1e9 / count as f64);
            println!(
                "{n:>9}  {:>6.0}  {:>13.2}  {:>7.1}  {:>10.1}  {:>4.0}%",
                demand.output,
                count as f64 / total as f64,
                seconds * of_steps,
                seconds * of_requests,
                leapt as f64 / total as f64 * 100.0,
            );
            costs.push(seconds * of_steps);
        }
        if flat {
            let longer = costs[2] / costs[0];
            println!("1024 sequences to 64, a step: {longer:.2}");
            assert!(longer < LONGER_MOST, "a step takes longer, the more sequences it has");
        }
    }
}

/// Requests a second, from few to many; they are drawn as they are needed, which is timed too.
fn requests(model: &StepModel, most: usize) {
    println!("requests   requests/s  drawn/s");
    let sizes = (3..8).map(|power| 10usize.pow(power)).skip_while(|n| *n < most.min(10_000));
    let mut rates = Vec::new();
    for count in sizes.take_while(|n| *n <= most) {
        let runs = (2_000_000 / count).clamp(1, 20);
        let serve = || {
            run(model, limits(256), Loop::Open, CONVERSATION.arrivals(count), &mut Hash::default())
        };
        let (seconds, _) = fastest(runs, serve);
        let (draws, _) = fastest(runs, || CONVERSATION.arrivals(count).map(|a| a.at).max());
        println!("{count:>8}  {:>11.0}  {:.0}", count as f64 / seconds, count as f64 / draws);
        rates.push(count as f64 / seconds);
    }
    let longer = rates[0] / rates[rates.len() - 1];
    assert!(longer < LONGER_MOST, "a request takes longer, the more there are: {longer:.2} times");
}

/// All outcomes, or none.
struct Kept(Option<Vec<Outcome>>);

impl Watch for Kept {
    fn over(&mut self, outcome: &Outcome) {
        if let Some(all) = &mut self.0 {
            all.push(*outcome);
        }
    }
}

/// By how much the process grows at its largest: for ten times as many requests as before where outcomes are not kept, and for each request where they are.
fn memory(model: &StepModel, most: usize) {
    let serve = |count: usize, kept: Option<Vec<Outcome>>| {
        let mut kept = Kept(kept);
        run(model, limits(256), Loop::Open, CONVERSATION.arrivals(count), &mut kept);
        (peak_bytes(), kept)
    };
    let Some(before) = peak_bytes() else { return };
    println!("before {before} bytes at most");
    let mut peaks = Vec::new();
    for count in [most / 100, most / 10, most] {
        let (peak, _) = serve(count, None);
        let peak = peak.unwrap_or(0);
        println!("{count:>8} requests, none kept: {} bytes more", peak - before);
        peaks.push(peak);
    }
    assert!(peaks[2] - peaks[1] < GROWTH_MOST, "memory grows with requests");
    let count = most.min(1_000_000);
    let before = peak_bytes().unwrap_or(0);
    let (peak, _kept) = serve(count, Some(Vec::with_capacity(count)));
    let more = peak.unwrap_or(0) - before;
    println!("{count:>8} requests, all kept: {:.1} bytes more each", more as f64 / count as f64);
}

/// The most memory the process has had, where the system says so.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}
