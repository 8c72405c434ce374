//! What a request takes of a replica, as weights that a log can be summed by (docs/cost.md).

use plimsoll_cost::Work;
use plimsoll_perf::{Batch, Rates, step};

use crate::fit::Fit;
use crate::measured::Load;
use crate::pool::PoolSteps;
use crate::pool_performance::{Phase, ServedLengths};
use crate::steady::{SteadyInput, steady};

/// Weights of a pool's work, and what they were read at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolWork {
    /// Seconds of a replica.
    pub work: Work,
    /// Sequences that decode together.
    pub batch: f64,
    /// Requests a second that fill a replica.
    pub requests_per_s: f64,
}

/// A replica is full where its load line lies, short of its peak. How far short differs from pool to pool, and `curve` says it; this share is assumed.
const FULL: f64 = 0.7;

/// The weights of a steady load: seconds of fresh tokens and of the pairs they look at, of decode steps shared by those who decode together, and
/// of the context that each of them reads. Summed over the requests of a steady hour, they are the time that the replica is busy.
pub fn work_of(input: &SteadyInput, step: &dyn Fn(&Batch) -> f64, usd_per_s: f64) -> PoolWork {
    let state = steady(input, step);
    let SteadyInput { prompt, cached, output, .. } = *input;
    let fresh = (prompt - cached).max(1.0);
    let steps = (output - 1.0).max(1e-3);
    let context = prompt + output / 2.0;
    // Below one sequence, a step either has it or does not happen.
    let batch = state.decoding.max(1.0);
    let each = steps / batch;
    // Decode steps, with their context and without.
    let whole = each * state.step_decode;
    let bare = each * step(&Batch::decode(batch, 0.0)).min(state.step_decode);
    // Whatever steps take longer for is reading prompts. What pairs make of that is told by leaving them out.
    let room = (input.budget - batch).max(1.0);
    let chunk = fresh.min(room);
    let alone = Batch::decode(batch, batch * context);
    let part = |pairs: f64| {
        step(&alone.and(Batch {
            prefill: chunk,
            pairs,
            prompts: chunk / fresh,
            ..Batch::default()
        })) - state.step_decode
    };
    let (with, without) = (part(chunk * (prompt - fresh / 2.0)), part(0.0));
    let share = if with > 0.0 { ((with - without) / with).clamp(0.0, 1.0) } else { 0.0 };
    let read = match state.decoding >= 1.0 {
        true => each * (state.tpot - state.step_decode).max(0.0),
        // Whoever is alone is read alone.
        false => fresh / chunk * step(&Batch::chunk(chunk, prompt - fresh)),
    };
    let pairs = fresh * (prompt - fresh / 2.0).max(fresh / 2.0);
    let work = Work {
        fresh_s: read * (1.0 - share) / fresh,
        fresh_context_s: read * share / pairs,
        output_s: bare / output.max(1.0),
        output_context_s: (whole - bare).max(0.0) / (output.max(1.0) * context.max(1.0)),
        usd_per_s,
    };
    PoolWork { work, batch, requests_per_s: state.output_rate / output.max(1e-9) }
}

/// What a pool is, as far as its work goes.
#[derive(Clone, Copy, Debug)]
pub struct PoolWorkInput<'a> {
    /// Its step times.
    pub steps: &'a PoolSteps,
    /// Its constants.
    pub rates: &'a Rates,
    /// Its memory.
    pub budget: &'a Fit,
    /// Which part of a request it does.
    pub phase: Phase,
    /// What it serves.
    pub lengths: ServedLengths,
    /// Whether it keeps room for whole outputs.
    pub reserves_output: bool,
    /// Copies of the attention that share the experts.
    pub attention_replicas: u64,
    /// What a second of a replica costs.
    pub usd_per_s: f64,
}

/// The weights of a pool whose replicas are as full as they may be.
pub fn pool_work(input: &PoolWorkInput<'_>) -> PoolWork {
    let PoolWorkInput { steps, rates, budget, lengths, .. } = *input;
    let time = |batch: &Batch| step(&steps.work, rates, batch).total();
    let most = budget.max_num_batched_tokens as f64;
    let fresh = (lengths.prompt - lengths.cached).max(1.0);
    if input.phase == Phase::Prefill {
        let full = |pairs: f64| {
            time(&Batch { prefill: most, pairs, prompts: most / fresh, ..Batch::default() })
        };
        let seen = lengths.prompt - fresh / 2.0;
        let (with, without) = (full(most * seen), full(0.0));
        let work = Work {
            fresh_s: without / most / FULL,
            fresh_context_s: (with - without).max(0.0) / (most * seen.max(1.0)) / FULL,
            output_s: 0.0,
            output_context_s: 0.0,
            usd_per_s: input.usd_per_s,
        };
        return PoolWork { work, batch: 1.0, requests_per_s: most / with / fresh * FULL };
    }
    let copies = input.attention_replicas.max(1) as f64;
    let offered = |load: Load| SteadyInput {
        load,
        prompt: lengths.prompt,
        cached: if input.phase == Phase::Decode { lengths.prompt } else { lengths.cached },
        output: lengths.output.max(1.0),
        max_num_seqs: budget.max_num_seqs as f64 * copies,
        budget: most * copies,
        kv_tokens: budget.kv_tokens as f64 * copies,
        reserves_output: input.reserves_output,
        path: 0.0,
        wave: 0.0,
    };
    let peak = steady(&offered(Load::AllAtOnce), &time).output_rate / lengths.output.max(1.0);
    let mut own = work_of(&offered(Load::Rate(FULL * peak)), &time, input.usd_per_s);
    if input.phase == Phase::Decode {
        // The token that every prompt leaves to compute came from elsewhere.
        (own.work.fresh_s, own.work.fresh_context_s) = (0.0, 0.0);
    }
    own
}
