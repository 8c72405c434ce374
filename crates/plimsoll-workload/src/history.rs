//! What was asked, counted over steps of equal length: what a forecast is made of.

/// Counts over steps, class by class.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// When the first step begins, in seconds: from 1970 (UTC), or from the start of the log.
    pub start_s: i64,
    /// How long a step is.
    pub step_s: u32,
    /// Whether `start_s` counts from 1970.
    pub absolute: bool,
    /// The classes; all have as many steps.
    pub classes: Vec<ClassHistory>,
}

/// The counts of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassHistory {
    /// What it is called.
    pub name: String,
    /// Step by step.
    pub steps: Vec<StepCount>,
}

/// What came in a step.
///
/// A request is counted where it first arrived, whatever became of it: one that was refused was asked for, too. Counts are
/// weighted where a log is a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepCount {
    /// First attempts, refused and failed ones included.
    pub requests: f64,
    /// All attempts.
    pub attempts: f64,
    /// Attempts that a limit or a full queue refused.
    pub limited: f64,
    /// Attempts that failed or timed out.
    pub failed: f64,
    /// Prompt tokens of first attempts that know them.
    pub prompt_tokens: Known,
    /// Cached prompt tokens, over the prompt tokens of attempts that know how many were cached.
    pub cached_tokens: Known,
    /// Output tokens of attempts that were answered.
    pub output_tokens: Known,
    /// Tokens held in KV memory times the seconds they were held, of attempts that know their times.
    pub kv_token_s: Known,
}

/// A sum, and over how much it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// The sum.
    pub sum: f64,
    /// What it is a sum over: requests, or tokens.
    pub of: f64,
}

impl Known {
    /// Adds one value of a weight.
    pub fn add(&mut self, value: f64, weight: f64) {
        self.sum += value * weight;
        self.of += weight;
    }

    /// Adds what another knows.
    pub fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.of += other.of;
    }

    /// The mean; none where nothing is known.
    pub fn mean(self) -> Option<f64> {
        (self.of > 0.0).then(|| self.sum / self.of)
    }
}

impl StepCount {
    /// Adds what another step counted.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.attempts += other.attempts;
        self.limited += other.limited;
        self.failed += other.failed;
        self.prompt_tokens.merge(other.prompt_tokens);
        self.cached_tokens.merge(other.cached_tokens);
        self.output_tokens.merge(other.output_tokens);
        self.kv_token_s.merge(other.kv_token_s);
    }
}

impl History {
    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.classes.iter().map(|class| class.steps.len()).max().unwrap_or(0)
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When a step begins.
    pub fn at_s(&self, step: usize) -> i64 {
        let steps = i64::try_from(step).unwrap_or(i64::MAX);
        self.start_s.saturating_add(i64::from(self.step_s).saturating_mul(steps))
    }

    /// When the last step ends.
    pub fn end_s(&self) -> i64 {
        self.at_s(self.len())
    }
}
