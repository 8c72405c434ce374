//! Rows in, sufficient statistics out: what a profile needs to know of a log, in a fraction of its size.
//!
//! A stretch of time is gathered row by row, and later stretches are appended. Lengths are counted exactly, windows are sums of seconds,
//! and where weights are whole numbers every sum is exact, so that neither the order of rows nor the number of threads matters.

mod arrivals;
mod pairs;
mod presence;
mod resident;
mod seconds;
mod sums;

pub use plimsoll_cost::End;
use plimsoll_stats::Counts;

pub(super) use arrivals::{Arrival, Gaps, HEAD, Times};
pub(super) use pairs::{Pair, Pairs};
pub(super) use presence::Presence;
pub(super) use resident::{Resident, WINDOW_S};
pub(super) use seconds::{Of, Seconds};
pub use sums::{ClientSum, GapSums, JointSum, Kin, SecondSum, Sums, TotalSum};

/// Rows up to which each arrival and each pair of lengths is kept.
pub const EXACT_ROWS: u64 = 10_000_000;

/// One request of a log, as far as the log knows it. Unknown is none, never zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Nanoseconds since the first arrival of the whole log; none where the log has no common clock.
    pub at_ns: Option<i64>,
    /// Prompt tokens, cached ones included.
    pub prompt: Option<u32>,
    /// Prompt tokens that were found in a cache.
    pub cached: Option<u32>,
    /// Generated tokens, reasoning included.
    pub output: Option<u32>,
    /// Reasoning tokens among them.
    pub reasoning: Option<u32>,
    /// The most it asked for.
    pub max_tokens: Option<u32>,
    /// Requests it stands for: 1 where all were logged. A row that stands for none is not counted.
    pub weight: f64,
    /// An index into the classes.
    pub class: u32,
    /// Tenant or user, an index into the names.
    pub client: Option<u32>,
    /// 1 for the first, 0 where unknown.
    pub attempt: u16,
    /// How it ended.
    pub end: End,
    /// Seconds to its first token.
    pub ttft_s: Option<f64>,
    /// Seconds to its end.
    pub e2e_s: Option<f64>,
}

/// How to gather. All stretches of a log are gathered alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathering {
    /// Rows of the whole log, as far as it is known beforehand: where they are more than `exact_rows`, a stretch need not
    /// keep what would be thrown away later.
    pub rows_expected: Option<u64>,
    /// Rows up to which each arrival and each pair of lengths is kept, such as [`EXACT_ROWS`].
    pub exact_rows: u64,
    /// How long requests take where the log does not say it.
    pub pace: Option<Pace>,
}

/// A step-time model at its operating point: how long a request takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// Where it is from, for whoever reads the result.
    pub label: String,
    /// Seconds of a prefill: constant, for each fresh token, and for each square of them.
    pub prefill_s: [f64; 3],
    /// Seconds for each output token.
    pub output_token_s: f64,
}

/// Sufficient statistics of a stretch of a log.
#[derive(Clone, Debug)]
pub struct Gathered {
    pub(super) shape: Gathering,
    pub(super) parts: Vec<Part>,
    pub(super) times: Times,
    pub(super) pairs: Pairs,
    pub(super) clients: Vec<ClientSums>,
    pub(super) presence: Presence,
    /// Rows with a stamp before the first arrival; they have no time.
    pub(super) early: u64,
    /// Rows that stand for a number of requests that is not one.
    pub(super) weighted: u64,
    /// Whether only sums are known, and no rows.
    pub(super) summed: bool,
}

/// One class of a stretch.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub rows: u64,
    pub weight: f64,
    pub prompt: Counts,
    pub output: Counts,
    pub total: Counts,
    pub moments: Moments,
    pub joint: Joint,
    pub seconds: Seconds,
    pub known: KnownRows,
    pub ends: [f64; 5],
    /// Requests by number of the attempt, from the first on.
    pub attempts: Vec<f64>,
    pub reasoning: f64,
    /// Output tokens of the rows that say how many are reasoning.
    pub reasoning_of: f64,
    pub at_limit: u64,
    pub measured: Resident,
    pub modelled: Resident,
}

/// Rows that say it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownRows {
    pub at: u64,
    pub prompt: u64,
    pub cached: u64,
    pub output: u64,
    pub reasoning: u64,
    pub max_tokens: u64,
    pub client: u64,
    pub end: u64,
    pub ttft: u64,
    pub e2e: u64,
}

/// What one client asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientSums {
    pub requests: f64,
    pub prompt: f64,
    pub output: f64,
}

/// Sums over rows that say prompt and output: of ones, prompts, outputs, squares and products. Whole weights are summed without error.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    whole: [u128; 6],
    part: [f64; 6],
}

impl Moments {
    fn add(&mut self, prompt: u32, output: u32, weight: f64) {
        let (p, o) = (u128::from(prompt), u128::from(output));
        let terms = [1, p, o, p * p, o * o, p * o];
        if weight.fract() == 0.0 && weight < 1e9 {
            let weight = weight as u128;
            self.whole.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
        } else {
            self.part.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term as f64);
        }
    }

    /// Adds sums of rows of one weight.
    fn put(&mut self, sums: [u128; 6], weight: f64) {
        if weight.fract() == 0.0 && weight < 1e9 {
            let weight = weight as u128;
            self.whole.iter_mut().zip(sums).for_each(|(sum, more)| *sum += weight * more);
        } else {
            self.part.iter_mut().zip(sums).for_each(|(sum, more)| *sum += weight * more as f64);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.whole.iter_mut().zip(other.whole).for_each(|(sum, more)| *sum += more);
        self.part.iter_mut().zip(other.part).for_each(|(sum, more)| *sum += more);
    }

    /// Ones, prompts, outputs, squared prompts, squared outputs, products.
    pub fn sums(&self) -> [f64; 6] {
        std::array::from_fn(|i| self.whole[i] as f64 + self.part[i])
    }
}

/// Bins of a length: zero, then one for each power of two.
const BINS: usize = 33;

/// Requests by bin of prompt and output.
#[derive(Clone, Debug, Default)]
pub(super) struct Joint {
    /// Requests, prompt and output tokens; empty until the first.
    cells: Vec<[f64; 3]>,
}

impl Joint {
    fn add(&mut self, prompt: u32, output: u32, weight: f64) {
        let bin = |length: u32| (u32::BITS - length.leading_zeros()) as usize;
        let tokens = [prompt, output].map(|length| weight * f64::from(length));
        self.put(bin(prompt), bin(output), [weight, tokens[0], tokens[1]]);
    }

    /// Adds requests, prompt and output tokens of two bins.
    #[inline]
    fn put(&mut self, prompt: usize, output: usize, sums: [f64; 3]) {
        if self.cells.is_empty() {
            self.cells = vec![[0.0; 3]; BINS * BINS];
        }
        let cell = &mut self.cells[prompt.min(BINS - 1) * BINS + output.min(BINS - 1)];
        cell.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
    }

    fn merge(&mut self, other: &Self) {
        if self.cells.is_empty() {
            self.cells.clone_from(&other.cells);
            return;
        }
        for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
            cell.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Bins of prompt and output that hold something, and what.
    pub fn cells(&self) -> impl Iterator<Item = (usize, usize, [f64; 3])> + '_ {
        let cells = self.cells.iter().enumerate().filter(|(_, cell)| cell[0] > 0.0);
        cells.map(|(i, cell)| (i / BINS, i % BINS, *cell))
    }
}

impl Gathered {
    /// Nothing yet.
    pub fn new(shape: &Gathering) -> Self {
        Self {
            shape: shape.clone(),
            parts: Vec::new(),
            times: Times::new(shape),
            pairs: Pairs::new(shape),
            clients: Vec::new(),
            presence: Presence::default(),
            early: 0,
            weighted: 0,
            summed: false,
        }
    }

    /// Takes a row. Rows of a stretch may come in any order; those with the same stamp keep the order they have here.
    pub fn push(&mut self, seen: &Seen) {
        // It stands for no request at all.
        if seen.weight == 0.0 {
            return;
        }
        let class = seen.class as usize;
        if self.parts.len() <= class {
            self.parts.resize_with(class + 1, Part::default);
        }
        let at = seen.at_ns.filter(|at| *at >= 0);
        self.early += u64::from(seen.at_ns.is_some() && at.is_none());
        // A weight that is no number of requests counts as one.
        let weight = if seen.weight > 0.0 && seen.weight.is_finite() { seen.weight } else { 1.0 };
        #[expect(clippy::float_cmp, reason = "exactly one is the weight of a log without sampling")]
        let weighs = weight != 1.0;
        self.weighted += u64::from(weighs);
        self.parts[class].push(seen, at, weight, self.shape.pace.as_ref());
        if let Some(at) = at {
            self.times.push(at, seen.prompt.unwrap_or(0), seen.class);
            self.presence.push(at, seen.class, seen.client);
        }
        if let (Some(prompt), Some(output)) = (seen.prompt, seen.output) {
            self.pairs.push(at, prompt, output, seen.class, weight);
        }
        if let Some(client) = seen.client {
            let client = client as usize;
            if self.clients.len() <= client {
                self.clients.resize(client + 1, ClientSums::default());
            }
            let sums = &mut self.clients[client];
            sums.requests += weight;
            sums.prompt += weight * f64::from(seen.prompt.unwrap_or(0));
            sums.output += weight * f64::from(seen.output.unwrap_or(0));
        }
    }

    /// Sorts what was pushed, and drops what a log of this many rows does not keep. Optional: it is work that a stretch's own
    /// thread can do, instead of the one that appends.
    pub fn seal(&mut self) {
        self.times.seal();
    }

    /// Adds a later stretch of the same log: none of its rows may lie before the last of this one. What is appended soon takes
    /// the least memory: lengths of a stretch then are counted with those before.
    ///
    /// # Panics
    /// When they were gathered in different ways.
    pub fn append(&mut self, mut later: Self) {
        assert_eq!(self.shape, later.shape, "stretches of a log are gathered alike");
        if self.parts.len() < later.parts.len() {
            self.parts.resize_with(later.parts.len(), Part::default);
        }
        for (part, more) in self.parts.iter_mut().zip(&mut later.parts) {
            part.merge(more);
        }
        self.times.append(later.times);
        self.pairs.append(later.pairs);
        if self.clients.len() < later.clients.len() {
            self.clients.resize(later.clients.len(), ClientSums::default());
        }
        for (sums, more) in self.clients.iter_mut().zip(&later.clients) {
            sums.requests += more.requests;
            sums.prompt += more.prompt;
            sums.output += more.output;
        }
        self.presence.append(later.presence);
        self.early += later.early;
        self.weighted += later.weighted;
        self.summed |= later.summed;
    }

    /// Rows that were pushed.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// All classes as one.
    pub(super) fn whole(&self) -> Part {
        let mut whole = Part::default();
        self.parts.iter().for_each(|part| whole.add(part));
        whole
    }
}

impl Part {
    fn push(&mut self, seen: &Seen, at: Option<i64>, weight: f64, pace: Option<&Pace>) {
        self.rows += 1;
        self.weight += weight;
        let known = &mut self.known;
        known.at += u64::from(at.is_some());
        known.prompt += u64::from(seen.prompt.is_some());
        known.cached += u64::from(seen.cached.is_some());
        known.output += u64::from(seen.output.is_some());
        known.reasoning += u64::from(seen.reasoning.is_some());
        known.max_tokens += u64::from(seen.max_tokens.is_some());
        known.client += u64::from(seen.client.is_some());
        known.end += u64::from(seen.end != End::Unknown);
        known.ttft += u64::from(seen.ttft_s.is_some());
        known.e2e += u64::from(seen.e2e_s.is_some());
        self.ends[seen.end as usize] += weight;
        self.tried(seen.attempt, weight);
        if let Some(prompt) = seen.prompt {
            self.prompt.add(u64::from(prompt), weight);
        }
        if let Some(output) = seen.output {
            self.output.add(u64::from(output), weight);
            if let Some(reasoning) = seen.reasoning {
                self.reasoning += weight * f64::from(reasoning);
                self.reasoning_of += weight * f64::from(output);
            }
            self.at_limit += u64::from(seen.max_tokens.is_some_and(|most| output >= most));
        }
        if let (Some(prompt), Some(output)) = (seen.prompt, seen.output) {
            self.total.add(u64::from(prompt) + u64::from(output), weight);
            self.moments.add(prompt, output, weight);
            self.joint.add(prompt, output, weight);
        }
        let Some(at) = at else { return };
        let prompt = seen.prompt.unwrap_or(0);
        let output = seen.output.unwrap_or(0);
        let fresh = prompt.saturating_sub(seen.cached.unwrap_or(0));
        self.seconds.add((at / 1_000_000_000) as u64, weight, [prompt, fresh, output]);
        if let (Some(prompt), Some(e2e)) = (seen.prompt, seen.e2e_s) {
            self.measured.add(at, prompt, output, seen.ttft_s.unwrap_or(0.0), e2e, weight);
        }
        if let (Some(pace), Some(prompt), Some(output)) = (pace, seen.prompt, seen.output) {
            let ttft = pace.prefill(f64::from(fresh));
            let e2e = ttft + pace.output_token_s * f64::from(output);
            self.modelled.add(at, prompt, output, ttft, e2e, weight);
        }
    }

    /// Counts an attempt, where its number is known.
    fn tried(&mut self, attempt: u16, requests: f64) {
        if let Some(attempt) = usize::from(attempt).checked_sub(1) {
            if self.attempts.len() <= attempt {
                self.attempts.resize(attempt + 1, 0.0);
            }
            self.attempts[attempt] += requests;
        }
    }

    /// Adds another and takes from it what need not be copied.
    fn merge(&mut self, other: &mut Self) {
        if self.rows == 0 {
            *self = std::mem::take(other);
        } else {
            self.add(other);
        }
    }

    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.prompt.merge(&other.prompt);
        self.output.merge(&other.output);
        self.total.merge(&other.total);
        self.moments.merge(&other.moments);
        self.joint.merge(&other.joint);
        self.seconds.merge(&other.seconds);
        self.known.add(&other.known);
        self.ends.iter_mut().zip(other.ends).for_each(|(sum, more)| *sum += more);
        if self.attempts.len() < other.attempts.len() {
            self.attempts.resize(other.attempts.len(), 0.0);
        }
        self.attempts.iter_mut().zip(&other.attempts).for_each(|(sum, more)| *sum += more);
        self.reasoning += other.reasoning;
        self.reasoning_of += other.reasoning_of;
        self.at_limit += other.at_limit;
        self.measured.merge(&other.measured);
        self.modelled.merge(&other.modelled);
    }
}

impl Pace {
    fn prefill(&self, fresh: f64) -> f64 {
        let [constant, linear, square] = self.prefill_s;
        constant + fresh * (linear + fresh * square)
    }
}

impl KnownRows {
    fn add(&mut self, other: &Self) {
        self.at += other.at;
        self.prompt += other.prompt;
        self.cached += other.cached;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.max_tokens += other.max_tokens;
        self.client += other.client;
        self.end += other.end;
        self.ttft += other.ttft;
        self.e2e += other.e2e;
    }
}
