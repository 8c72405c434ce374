//! How fast a replica reads prompts, as a simulation shows it.

use plimsoll_sim::Stretch;

use plimsoll_load::Record;

/// A step is full when its tokens are so much of its budget.
const FULL: f64 = 0.9;
/// Full steps that are enough to go by.
const ENOUGH: u64 = 32;

/// Counts the steps of a pool that carry prompts, in the first run: hand it to [`crate::simulate()`] as its record.
///
/// A queue at its bound fills every step, so full steps are what its rate is taken from. Where there are too few of them, all steps that carry prompts are: those are slower by what
/// each costs however little it carries, so the rate is below what a queue would see, and a bound that follows from it too low rather than too high.
#[derive(Clone, Debug, PartialEq)]
pub struct PrefillPace {
    pool: String,
    budget: u64,
    full: Sums,
    all: Sums,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    steps: u64,
    tokens: u64,
    ps: u128,
}

impl Sums {
    fn add(&mut self, stretch: &Stretch) {
        self.steps += stretch.steps;
        self.tokens += stretch.prefill;
        self.ps += u128::from(stretch.took);
    }

    fn rate(&self) -> Option<f64> {
        (self.tokens > 0 && self.ps > 0).then(|| self.tokens as f64 / (self.ps as f64 / 1e12))
    }
}

impl PrefillPace {
    /// For a pool by its name, whose steps have so many tokens at most.
    pub fn new(pool: &str, max_num_batched_tokens: u64) -> Self {
        let (full, all) = (Sums::default(), Sums::default());
        Self { pool: pool.to_owned(), budget: max_num_batched_tokens, full, all }
    }

    /// Prompt tokens a second while prompts are read; none where none were.
    pub fn tokens_per_s(&self) -> Option<f64> {
        let enough = self.full.steps >= ENOUGH;
        self.full.rate().filter(|_| enough).or(self.all.rate())
    }
}

impl Record for PrefillPace {
    fn stretch(&mut self, pool: &str, _replica: usize, stretch: &Stretch) {
        if pool != self.pool || stretch.prefill == 0 {
            return;
        }
        self.all.add(stretch);
        let tokens = (stretch.prefill + stretch.decodes) as f64;
        if tokens >= FULL * self.budget as f64 * stretch.steps.max(1) as f64 {
            self.full.add(stretch);
        }
    }
}
