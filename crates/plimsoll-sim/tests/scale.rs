//! Costs that must not grow, on days small enough for every change; `benches/scale.rs` measures them in earnest.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll_sim::{Loop, Outcome, Watch};
use support::{CONVERSATION, Demand, Hash, limits, model, run};

mod support;

/// One of these tests at a time: each looks at what the whole process takes.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many times as long the second takes as the first, by the shortest of a few runs of each in turn: a busy machine only makes a run longer.
fn ratio(mut first: impl FnMut(), mut second: impl FnMut()) -> f64 {
    let timed = |run: &mut dyn FnMut()| {
        #[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
        let began = Instant::now();
        run();
        began.elapsed().as_secs_f64()
    };
    let mut least = [f64::INFINITY; 2];
    for _ in 0..7 {
        least[0] = least[0].min(timed(&mut first));
        least[1] = least[1].min(timed(&mut second));
    }
    least[1] / least[0]
}

/// An outcome is under a hundred bytes, so that a million that are kept are under a hundred megabytes.
#[test]
fn an_outcome_is_small() {
    assert!(size_of::<Outcome>() < 100, "{} bytes", size_of::<Outcome>());
}

/// Sixteen times as many sequences, all busy, and as many requests a step: a day of as many steps does not take three times as long, where looking at each
/// sequence would take many times as long.
#[test]
fn a_step_costs_the_same_whatever_its_batch() {
    let _alone = alone();
    let model = model();
    let day = |n: usize| {
        let demand = Demand { output: 211.0 * n as f64 / 256.0, ..CONVERSATION };
        run(&model, limits(n), Loop::Closed(n), demand.arrivals(20_000), &mut Hash::default()).0
    };
    let (few, many) = (day(64).total as f64, day(1024).total as f64);
    let longer = ratio(|| _ = day(64), || _ = day(1024)) * few / many;
    assert!(longer < 3.0, "a step of 1024 sequences takes {longer} times that of 64");
}

/// A day of ten times as many requests does not take three times as long as ten days, where it would take ten times as long if each looked at all before it.
#[test]
fn time_is_linear_in_requests() {
    let _alone = alone();
    let model = model();
    let day = |count: usize| {
        run(&model, limits(256), Loop::Open, CONVERSATION.arrivals(count), &mut Hash::default()).0
    };
    let longer = ratio(|| (0..10).for_each(|_| _ = day(2_000)), || _ = day(20_000));
    assert!(longer < 3.0, "{longer} times as long a request");
}

/// Nobody looks on.
struct Nobody;

impl Watch for Nobody {}

/// Where outcomes are not kept, memory does not grow with requests: it has been as large as it gets long before the last of them. Twenty bytes kept of each
/// would be seen.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_constant_in_requests() {
    let _alone = alone();
    let model = model();
    let serve = |count: usize| {
        run(&model, limits(256), Loop::Open, CONVERSATION.arrivals(count), &mut Nobody);
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    };
    let (few, many) = (serve(20_000), serve(400_000));
    assert!(many - few < 8_000_000, "{} bytes more", many - few);
}
