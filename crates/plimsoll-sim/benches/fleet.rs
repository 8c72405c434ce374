//! How many requests a second a fleet simulates on one core.

#![expect(clippy::print_stdout, reason = "what was measured is printed")]

mod support;

#[path = "../tests/it/fleets.rs"]
mod fleets;

use std::time::Instant;

use fleets::{class, fleet, pool};
use plimsoll_sim::{
    Budget, FleetWatch, Loop, Pace, Routing, Steps, Task, TaskOutcome, TaskSteps, run_fleet,
};
use plimsoll_stats::Seed;
use support::{CONVERSATION, Demand, Hash, limits, model, run};

#[derive(Default)]
struct Seen(u64, u64);

impl FleetWatch for Seen {
    fn gap(&mut self, _: usize, _: u16, ps: u64, _: Pace, count: u64) {
        self.0 = (self.0 ^ ps ^ count).wrapping_mul(0x0100_0000_01b3);
    }
    fn task(&mut self, outcome: &TaskOutcome) {
        self.0 = (self.0 ^ outcome.ended).wrapping_mul(0x0100_0000_01b3);
        self.1 += u64::from(outcome.good);
    }
}

/// The shortest of a few runs, in seconds, and what the last of them gave.
fn fastest<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut timed = || {
        #[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
        let began = Instant::now();
        let gave = run();
        (began.elapsed().as_secs_f64(), gave)
    };
    let (mut least, mut gave) = timed();
    for _ in 1..5 {
        let (seconds, again) = timed();
        (least, gave) = (least.min(seconds), again);
    }
    (least, gave)
}

fn main() {
    let count = if std::env::args().any(|arg| arg == "--bench") { 400_000 } else { 4_000 };
    let model = model();
    println!("replicas  router             requests/s  leapt");
    let line = |replicas: u32, name: &str, seconds: f64, steps: Steps| {
        let (each, leapt) =
            (count as f64 / seconds, steps.leapt as f64 / steps.total as f64 * 100.0);
        println!("{replicas:>8}  {name:<17}  {each:>10.0}  {leapt:.0}%");
    };
    // What an engine alone costs, to see what a fleet adds.
    let (seconds, (steps, _)) = fastest(|| {
        let arrivals = CONVERSATION.arrivals(count);
        run(&model, limits(256), Loop::Open, arrivals, &mut Hash::default())
    });
    line(1, "none", seconds, steps);
    for (replicas, name, routing) in [
        (1, "least-outstanding", Routing::LeastOutstanding),
        (8, "round-robin", Routing::RoundRobin),
        (8, "least-outstanding", Routing::LeastOutstanding),
        (8, "least-kv", Routing::LeastKv),
        (64, "least-outstanding", Routing::LeastOutstanding),
    ] {
        let spec = fleet(pool(&model, limits(256), replicas, routing), vec![class(0)]);
        let demand = Demand { rate: 22.0 * f64::from(replicas), ..CONVERSATION };
        let (seconds, (ended, seen)) = fastest(|| {
            let tasks = demand.arrivals(count).map(|arrival| Task {
                at: arrival.at,
                class: 0,
                session: 0,
                whole: true,
                steps: TaskSteps::One(arrival.wanted),
            });
            let mut seen = Seen::default();
            let (budget, counted) = (Budget::NONE, (0, u64::MAX));
            let ended =
                run_fleet(&spec, tasks, Seed::new(7), budget, counted, &mut seen, &mut |_| true);
            (ended, seen)
        });
        assert!(ended.complete && seen.1 == count as u64, "all are served");
        line(replicas, name, seconds, ended.steps);
    }
}
