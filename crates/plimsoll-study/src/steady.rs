//! The steady state of one replica under a constant load: a fixed point, where a simulation would take a million times longer.
//!
//! Lengths are means, so a tail latency cannot come out of this; a mean gap, a throughput and a typical first token can. The step-by-step
//! engine of `plimsoll-sim` is what it is tested against.

use plimsoll_perf::Batch;

use crate::measured::Load;

/// What the replica is offered and limited by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyInput {
    /// How requests come.
    pub load: Load,
    /// Mean prompt tokens, cached ones included.
    pub prompt: f64,
    /// Mean prompt tokens that need not be computed.
    pub cached: f64,
    /// Mean output tokens.
    pub output: f64,
    /// Largest running batch.
    pub max_num_seqs: f64,
    /// Token budget of a step.
    pub budget: f64,
    /// Context tokens that fit.
    pub kv_tokens: f64,
    /// Whether room for the whole output is kept before a request starts.
    pub reserves_output: bool,
    /// What a request takes before it reaches the engine, in seconds.
    pub path: f64,
    /// Share of the other clients' prompts that half of a closed loop's requests wait for.
    pub wave: f64,
}

/// A steady state. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Sequences that decode.
    pub decoding: f64,
    /// A step without prompt tokens.
    pub step_decode: f64,
    /// A step with prompt tokens.
    pub step_mixed: f64,
    /// Share of steps with prompt tokens.
    pub mixed_share: f64,
    /// Mean gap between tokens.
    pub tpot: f64,
    /// Median gap between tokens.
    pub itl_p50: f64,
    /// Mean time to the first token.
    pub ttft: f64,
    /// Generated tokens per second.
    pub output_rate: f64,
    /// Whether the offered load is more than the replica can carry.
    pub saturated: bool,
}

/// The steady state, given the time of a step.
pub fn steady(input: &SteadyInput, step: &dyn Fn(&Batch) -> f64) -> Steady {
    let context = input.prompt + input.output / 2.0;
    let kept = if input.reserves_output { input.prompt + input.output } else { context };
    // At least one sequence runs, whatever is said of memory.
    let cap = (input.kv_tokens / kept.max(1.0)).min(input.max_num_seqs).max(1.0);
    match input.load {
        Load::StaticBatch(size) => static_batch(input, size, step),
        Load::Concurrency(clients) => {
            let cap = cap.min(clients);
            let at_cap = State::at(input, cap, step);
            if at_cap.in_flight() <= clients {
                // More clients than can run: the others wait before they start.
                let waits = (clients - at_cap.in_flight()).max(0.0);
                return at_cap.steady(
                    input,
                    waits / at_cap.requests.max(f64::MIN_POSITIVE),
                    clients > at_cap.in_flight() + 1.0,
                );
            }
            let excess = |s: &State| s.in_flight() / clients - 1.0;
            let state = solve(cap, |d| State::at(input, d, step), excess);
            state.steady(input, 0.0, false)
        }
        Load::Rate(rate) => {
            let at_cap = State::at(input, cap, step);
            if at_cap.requests <= rate {
                return at_cap.steady(input, 0.0, true);
            }
            solve(cap, |d| State::at(input, d, step), |s| s.requests / rate - 1.0)
                .steady(input, 0.0, false)
        }
        Load::AllAtOnce => State::at(input, cap, step).steady(input, 0.0, true),
    }
}

/// The number of decoding sequences at which a rising `excess` is zero, given that it is above zero at `cap`: false position (Illinois), with a
/// bisection every fourth time, for the kinks.
fn solve(cap: f64, at: impl Fn(f64) -> State, excess: impl Fn(&State) -> f64) -> State {
    let (mut low, mut high) = (1e-6, cap);
    let (mut below, mut above) = (excess(&at(low)), excess(&at(high)));
    let mut found = at(low);
    if below >= 0.0 {
        return found;
    }
    for round in 0..60 {
        let middle = match round % 4 {
            3 => 0.5 * (low + high),
            _ => (low * above - high * below) / (above - below),
        };
        found = at(middle);
        let value = excess(&found);
        if value > 0.0 {
            (high, above) = (middle, value);
            below *= 0.5;
        } else {
            (low, below) = (middle, value);
            above *= 0.5;
        }
        if high - low <= 1e-12 * high || value.abs() <= 1e-13 {
            break;
        }
    }
    found
}

/// What happens while `decoding` sequences decode and every one that ends is replaced.
struct State {
    decoding: f64,
    decode: f64,
    mixed: f64,
    share: f64,
    mean: f64,
    first: f64,
    /// What one more prompt adds to the steps that carry it.
    own: f64,
    requests: f64,
}

impl State {
    fn at(input: &SteadyInput, decoding: f64, step: &dyn Fn(&Batch) -> f64) -> Self {
        let SteadyInput { prompt, cached, output, .. } = *input;
        // At least one token of a prompt is always computed.
        let fresh = (prompt - cached).max(1.0);
        // Steps between the first token and the last.
        let steps = (output - 1.0).max(1e-3);
        let room = (input.budget - decoding).max(1.0);
        // Below one sequence, a step either has it or does not happen.
        let sequences = decoding.max(1.0);
        let alone = Batch::decode(sequences, sequences * (prompt + output / 2.0));
        let decode = step(&alone);
        // Parts of a prompt that each need a step, were they alone in it.
        let chunk = fresh.min(room);
        let parts = fresh / chunk.max(1e-9);
        let with = |tokens: f64, prompts: f64| {
            // Pairs of whole prompts do not depend on where they are cut.
            let pairs = tokens * (prompt - fresh / 2.0);
            step(&alone.and(Batch { prefill: tokens, pairs, prompts, ..Batch::default() }))
        };
        let due = decoding / steps;
        let share = due * parts;
        let (mixed, share, mean) = if share <= 1.0 {
            let mixed = with(chunk, 1.0 / parts.max(1.0));
            (mixed, share, decode + share * (mixed - decode))
        } else {
            // Several prompts a step, or as much of them as fits: then decoding waits for prompts.
            let tokens = (due * fresh).min(room);
            let mixed = with(tokens, tokens / fresh);
            let stretched = mixed * (due * fresh / tokens);
            (mixed, 1.0, stretched)
        };
        let requests = due / mean;
        // A request comes in the middle of a step, then its own prompt is read, after those before it.
        // Clients that wait for answers do not bunch up: their prompts share steps, and what queues is tokens for the budget. Requests that come by chance
        // come in bunches, wait for each other, and make each other's steps longer: twice what a queue alone would make them wait.
        let own = parts.max(1.0) * mixed;
        let (busy, bunches) = match input.load {
            Load::Rate(_) => (requests * parts * (mixed - decode), 2.0),
            _ => (due * fresh / room, 1.0),
        };
        let busy = busy.min(0.98);
        let wait = bunches * own * busy / (2.0 * (1.0 - busy));
        let first = own + wait + if decoding > 1.0 { 0.5 * mean } else { 0.0 };
        let more = parts.max(1.0) * (mixed - decode);
        Self { decoding, decode, mixed, share, mean, first, own: more, requests }
    }

    fn in_flight(&self) -> f64 {
        self.decoding + self.requests * self.first
    }

    /// The prompts of those who started at the same time, where clients wait for answers.
    fn wave(&self, input: &SteadyInput) -> f64 {
        match input.load {
            Load::Concurrency(_) => 0.5 * input.wave * (self.decoding - 1.0).max(0.0) * self.own,
            _ => 0.0,
        }
    }

    fn steady(&self, input: &SteadyInput, waits: f64, saturated: bool) -> Steady {
        Steady {
            decoding: self.decoding,
            step_decode: self.decode,
            step_mixed: self.mixed,
            mixed_share: self.share,
            tpot: self.mean,
            itl_p50: if self.share > 0.5 { self.mixed } else { self.decode },
            ttft: input.path + self.first + waits + self.wave(input),
            output_rate: self.requests * input.output,
            saturated,
        }
    }
}

/// One batch from beginning to end.
fn static_batch(input: &SteadyInput, size: f64, step: &dyn Fn(&Batch) -> f64) -> Steady {
    let SteadyInput { prompt, output, .. } = *input;
    let pairs = size * prompt * prompt / 2.0;
    let first = step(&Batch { prefill: size * prompt, pairs, prompts: size, ..Batch::default() });
    let gap = step(&Batch::decode(size, size * (prompt + output / 2.0)));
    let whole = first + (output - 1.0).max(0.0) * gap;
    Steady {
        decoding: size,
        step_decode: gap,
        step_mixed: first,
        mixed_share: 0.0,
        tpot: gap,
        itl_p50: gap,
        ttft: input.path + first,
        output_rate: size * output / whole,
        saturated: false,
    }
}
