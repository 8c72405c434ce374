//! What a pool can do at best: the floors of its latencies, and its peak throughput.

use plimsoll_perf::{Batch, Rates, RequestPath, Term, kv_transfer_seconds, step};
use plimsoll_stats::{Seed, quantile};
use plimsoll_workload::{Class, Shift};
use serde::Serialize;

use crate::calibrate::Region;
use crate::fit::Fit;
use crate::measured::Load;
use crate::pool::{Band, PoolSteps};
use crate::steady::{SteadyInput, steady};

/// Tokens of the requests that a pool serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServedLengths {
    /// Mean prompt tokens, cached ones included.
    pub prompt: f64,
    /// Mean prompt tokens that a prefix cache holds.
    pub cached: f64,
    /// Mean output tokens.
    pub output: f64,
    /// Median prompt tokens that are not cached.
    pub fresh_p50: f64,
    /// Median context of a request when it begins to decode.
    pub context_p50: f64,
}

/// The lengths of classes' requests, drawn: 4,096 tasks of each, weighted by their rates.
pub fn served_lengths(classes: &[&Class], seed: Seed) -> Option<ServedLengths> {
    let (mut weight, mut prompt, mut cached, mut output) = (0.0, 0.0, 0.0, 0.0);
    let (mut fresh, mut context) = (Vec::new(), Vec::new());
    for class in classes {
        let mut stream = seed.stream(&format!("lengths/{}", class.name));
        let hours = class.hours.len().max(1) as f64;
        let rate = class.hours.iter().map(|h| h.rate).sum::<f64>() / hours;
        for _ in 0..4096 {
            class.task.draw(&Shift::NONE, &mut stream, |request| {
                weight += rate;
                prompt += rate * request.prompt.get() as f64;
                cached += rate * request.cached.get() as f64;
                output += rate * request.output.get() as f64;
                fresh.push(request.fresh().get() as f64);
                context.push(request.prompt.get() as f64);
            });
        }
    }
    if weight <= 0.0 {
        return None;
    }
    Some(ServedLengths {
        prompt: prompt / weight,
        cached: cached / weight,
        output: output / weight,
        fresh_p50: quantile(&fresh, 0.5)?,
        context_p50: quantile(&context, 0.5)?,
    })
}

/// Which part of a request a pool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// All of it.
    Both,
    /// It reads prompts and hands their KV over.
    Prefill,
    /// It takes KV over and generates.
    Decode,
}

/// What one replica of a pool can do at best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolPerformance {
    /// The pool.
    pub name: String,
    /// Which part of a request it does.
    pub phase: Phase,
    /// The gap between tokens of a sequence that is alone, at the median prompt's context; none where it generates none.
    pub itl_floor_s: Option<f64>,
    /// The first token of a median prompt that is alone, the way in included; none where it reads no prompts.
    pub ttft_floor_s: Option<f64>,
    /// Generated tokens per second of a full replica under the mean lengths; none where it generates none. Not sustainable: requests wait
    /// without end there.
    pub peak_output_tokens_per_s: Option<f64>,
    /// Prompt tokens per second, not cached ones, at that peak; none where it reads none.
    pub peak_fresh_tokens_per_s: Option<f64>,
    /// Requests per second at that peak.
    pub peak_requests_per_s: f64,
    /// Sequences that decode at that peak; none where it generates none.
    pub peak_decoding: Option<f64>,
    /// What keeps it from more: `kv`, `sequences`, `prefill`, or `path`, the API server's process.
    pub peak_bound: &'static str,
    /// Generated tokens per second that one API server process can send.
    pub path_output_tokens_per_s: f64,
    /// Seconds that a median prompt's KV takes to the decode pool, where it is handed over.
    pub kv_transfer_s: Option<f64>,
    /// How sure the gap is.
    pub itl_band: Band,
    /// How sure the first token is.
    pub ttft_band: Band,
    /// How sure the peak is.
    pub peak_band: Band,
    /// Where they may be used, where they were calibrated.
    pub region: Option<Region>,
    /// What the reader should know of them.
    pub notes: Vec<String>,
}

/// How sure a pool's numbers are.
#[derive(Clone, Debug, PartialEq)]
pub struct Bands {
    /// Gaps between tokens.
    pub itl: Band,
    /// First tokens.
    pub ttft: Band,
    /// Peaks.
    pub peak: Band,
}

/// What decides it.
#[derive(Clone, Debug)]
pub struct PoolPerformanceInput<'a> {
    /// The pool's work.
    pub steps: &'a PoolSteps,
    /// Which part of a request it does.
    pub phase: Phase,
    /// Its constants, built in or calibrated.
    pub rates: Rates,
    /// Its memory budget.
    pub budget: &'a Fit,
    /// What it serves.
    pub lengths: ServedLengths,
    /// Whether the engine keeps room for the whole output of a request it starts.
    pub reserves_output: bool,
    /// The link to the decode pool, in bytes per second a device.
    pub handover: Option<f64>,
    /// Copies of the attention that share the experts.
    pub attention_replicas: u64,
    /// How sure its step times are.
    pub bands: Bands,
    /// Where they may be used.
    pub region: Option<Region>,
    /// What the caller has to say.
    pub notes: Vec<String>,
}

/// The best that one replica can do.
pub fn pool_performance(input: &PoolPerformanceInput<'_>) -> PoolPerformance {
    let PoolPerformanceInput { steps, rates, budget, lengths, phase, .. } = input;
    let time = |batch: &Batch| step(&steps.work, rates, batch).total();
    let most = budget.max_num_batched_tokens as f64;
    let fresh = (lengths.prompt - lengths.cached).max(1.0);
    let copies = input.attention_replicas.max(1) as f64;
    let mut notes = input.notes.clone();
    let (mut requests, mut peak_bound, decoding) = match phase {
        Phase::Prefill => {
            // Full steps of prompts, one after the other.
            let pairs = most * (lengths.prompt - fresh / 2.0);
            let full = Batch { prefill: most, pairs, prompts: most / fresh, ..Batch::default() };
            (most / time(&full) / fresh, "prefill", None)
        }
        Phase::Both | Phase::Decode => {
            let offered = SteadyInput {
                load: Load::AllAtOnce,
                prompt: lengths.prompt,
                cached: if *phase == Phase::Decode { lengths.prompt } else { lengths.cached },
                output: lengths.output.max(1.0),
                max_num_seqs: budget.max_num_seqs as f64 * copies,
                budget: most * copies,
                kv_tokens: budget.kv_tokens as f64 * copies,
                reserves_output: input.reserves_output,
                path: 0.0,
                wave: 0.0,
            };
            let full = steady(&offered, &time);
            let bound = match () {
                () if full.mixed_share >= 1.0 && *phase == Phase::Both => "prefill",
                () if full.decoding >= offered.max_num_seqs => "sequences",
                () => "kv",
            };
            (full.output_rate / offered.output, bound, Some(full.decoding))
        }
    };
    let (reads, generates) = (*phase != Phase::Decode, *phase != Phase::Prefill);
    let path = RequestPath::of(rates, 1.0).tokens_per_second();
    let output = lengths.output.max(1.0);
    if generates && requests * output > path {
        notes.push(format!(
            "one API server process sends some {path:.0} tokens/s (modeled); several would let the devices give {:.0}",
            requests * output
        ));
        (requests, peak_bound) = (path / output, "path");
    }
    // A context that cannot be held has no latency.
    let longest = budget.max_model_len_tokens.min(budget.kv_tokens) as f64;
    let holds = lengths.context_p50 <= longest;
    if !holds {
        notes.push(format!(
            "the median prompt has {:.0} tokens, and the pool holds contexts of {longest:.0}: it has no floors",
            lengths.context_p50
        ));
    }
    if let (Some([_, seen]), Some(decoding)) =
        (input.region.as_ref().and_then(|r| r.decodes), decoding)
        && decoding > 1.1 * seen
    {
        notes.push(format!(
            "its peak has {decoding:.0} sequences decoding, and the calibration has seen {seen:.0} at most: an extrapolation"
        ));
    }
    PoolPerformance {
        name: budget.name.clone(),
        phase: *phase,
        itl_floor_s: (generates && holds).then(|| time(&Batch::decode(1.0, lengths.context_p50))),
        ttft_floor_s: (reads && holds)
            .then(|| rates.get(Term::PathSeconds) + alone(lengths, most, &time)),
        peak_output_tokens_per_s: generates.then_some(requests * output),
        peak_fresh_tokens_per_s: reads.then_some(requests * fresh),
        peak_requests_per_s: requests,
        peak_decoding: decoding,
        peak_bound,
        path_output_tokens_per_s: path,
        kv_transfer_s: input
            .handover
            // A millisecond to agree on where to put it.
            .map(|link| kv_transfer_seconds(&steps.work, lengths.context_p50, link, 1e-3)),
        itl_band: input.bands.itl.clone(),
        ttft_band: input.bands.ttft.clone(),
        peak_band: input.bands.peak.clone(),
        region: input.region.clone(),
        notes,
    }
}

/// Reading a median prompt that is alone, in equal parts no larger than the budget of a step. Its pairs do not depend on where it is cut.
fn alone(lengths: &ServedLengths, most: f64, time: &dyn Fn(&Batch) -> f64) -> f64 {
    let fresh = lengths.fresh_p50.max(1.0);
    let parts = (fresh / most).ceil().max(1.0);
    let pairs = fresh * (lengths.context_p50 - fresh / 2.0).max(fresh / 2.0);
    let part =
        Batch { prefill: fresh / parts, pairs: pairs / parts, prompts: 1.0, ..Batch::default() };
    parts * time(&part)
}
