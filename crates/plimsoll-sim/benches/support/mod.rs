//! A conversation's worth of requests on an 8B model, the same every time.

use plimsoll_perf::StepModel;
use plimsoll_sim::{
    Arrival, Budget, Kv, Limits, Loop, Outcome, Pace, Queue, Replica, Steps, Wanted, Watch, drive,
};

#[path = "../../tests/it/support.rs"]
mod model;

pub use model::{BUDGET, model};

/// Exponential lengths at Poisson arrivals: their means, and how many come in a second.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    pub rate: f64,
    pub prompt: f64,
    pub output: f64,
}

/// Conversations: 1,155 tokens in and 211 out on average, at 22 a second, near what one replica carries.
pub const CONVERSATION: Demand = Demand { rate: 22.0, prompt: 1155.0, output: 211.0 };

impl Demand {
    /// So many requests, the same every time, drawn as they are asked for.
    pub fn arrivals(self, count: usize) -> impl Iterator<Item = Arrival> + Clone {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = move |mean: f64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // A logarithm that is the same on every machine.
            -libm::log(1.0 - (state >> 11) as f64 / (1u64 << 53) as f64) * mean
        };
        let mut at = 0.0;
        (0..count).map(move |_| {
            at += draw(1.0 / self.rate);
            let (prompt, output) = (draw(self.prompt) as u64 + 1, draw(self.output) as u64 + 1);
            Arrival::new((at * 1e12) as u64, Wanted::new(prompt, output))
        })
    }
}

/// An asynchronous engine with room for 256 conversations, and as much for each of more.
pub fn limits(max_num_seqs: usize) -> Limits {
    let kv = Kv::new(56_000 * (max_num_seqs as u64).div_ceil(256), 16);
    Limits { asynchronous: true, ..Limits::new(max_num_seqs, BUDGET, kv) }
}

/// A number that changes when any event does.
pub struct Hash(pub u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn mix(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01b3);
    }
}

impl Watch for Hash {
    fn gap(&mut self, _: u16, ps: u64, _: Pace, count: u64) {
        self.mix(ps ^ count);
    }

    fn over(&mut self, outcome: &Outcome) {
        self.mix(outcome.first.unwrap_or_default());
        self.mix(outcome.done);
    }
}

/// A day from its first request to its last answer: the steps it took, and when it ended.
pub fn run(
    model: &StepModel,
    limits: Limits,
    clients: Loop,
    arrivals: impl Iterator<Item = Arrival>,
    watch: &mut impl Watch,
) -> (Steps, u64) {
    let mut replica = Replica::new(limits, model);
    let ended =
        drive(&mut replica, clients, arrivals, Queue::default(), Budget::NONE, watch, &mut |_| {
            true
        });
    assert!(ended.complete, "all are served");
    (replica.steps(), ended.now)
}
