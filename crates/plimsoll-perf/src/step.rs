//! The time of one step, in closed form. `docs/model.md` derives it.

use crate::around::Launch;
use crate::rates::{Rates, Term};
use crate::work::{Gemm, LARGE_STEP, Work};

/// What a step carries, over the whole replica.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch {
    /// Prompt tokens.
    pub prefill: f64,
    /// Pairs of a prompt token and a token it sees, summed over prompts.
    pub pairs: f64,
    /// Prompts, whole or in part.
    pub prompts: f64,
    /// Sequences that generate a token.
    pub decodes: f64,
    /// Their contexts together.
    pub context: f64,
    /// Tokens that they lack together to be as long as the longest of them.
    pub uneven: f64,
}

impl Batch {
    /// Sequences that generate a token and nothing else.
    pub fn decode(decodes: f64, context: f64) -> Self {
        Self { decodes, context, ..Self::default() }
    }

    /// One part of a prompt, after `before` tokens of it.
    pub fn chunk(tokens: f64, before: f64) -> Self {
        let pairs = tokens * (before + tokens / 2.0);
        Self { prefill: tokens, pairs, prompts: 1.0, ..Self::default() }
    }

    /// Both in one step.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            prefill: self.prefill + other.prefill,
            pairs: self.pairs + other.pairs,
            prompts: self.prompts + other.prompts,
            decodes: self.decodes + other.decodes,
            context: self.context + other.context,
            // Which is the longer is not known: each as it was.
            uneven: self.uneven + other.uneven,
        }
    }
}

/// Where the time of a step goes, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// Dense matrix products, the head and adapters among them.
    pub gemm: f64,
    /// Routed experts.
    pub experts: f64,
    /// Prefill attention.
    pub prefill_attention: f64,
    /// Reading keys, values and states.
    pub kv: f64,
    /// Sums over the group.
    pub collectives: f64,
    /// Everything that is not proportional to anything.
    pub overhead: f64,
}

impl Parts {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.gemm
            + self.experts
            + self.prefill_attention
            + self.kv
            + self.collectives
            + self.overhead
    }
}

/// Arithmetic and reading overlap, but not wholly where they take as long as each other: the cube root of the sum of cubes, between the sum and
/// the larger of the two. It gives the dip of the published kernel timings at the knee, 2^(-1/3) = 0.79 of the roofline where both are equal.
#[inline]
pub(crate) fn joined(compute: f64, read: f64) -> f64 {
    let (more, less) = if compute > read { (compute, read) } else { (read, compute) };
    if more <= 0.0 {
        return 0.0;
    }
    let ratio = less / more;
    // The machine's own cube root differs in its last bit from one system to the next.
    more * libm::cbrt(1.0 + ratio * ratio * ratio)
}

/// The time of a step where others like it come before and after: the slower of device and host decides. It never is below [`floor`].
pub fn step(work: &Work, rates: &Rates, batch: &Batch) -> Parts {
    let mut parts = device(work, rates, batch);
    let (stages, _) = work.spread(batch.decodes + batch.prompts);
    let tokens = (batch.prefill + batch.decodes) / stages;
    if tokens > 0.0 {
        // The host launches while the device works.
        let host = host_seconds(work, rates, tokens, batch.prefill > 0.0);
        parts.overhead += (host - parts.total()).max(0.0);
    }
    parts
}

/// What the device needs for a step, were the host infinitely fast.
pub fn device(work: &Work, rates: &Rates, batch: &Batch) -> Parts {
    let sheet = &rates.sheet;
    // Each pipeline stage works on its own part of the sequences, each attention copy too.
    let (stages, copies) = work.spread(batch.decodes + batch.prompts);
    let batch = Batch {
        prefill: batch.prefill / stages,
        pairs: batch.pairs / stages,
        prompts: batch.prompts / stages,
        decodes: batch.decodes / stages,
        context: batch.context / stages,
        uneven: batch.uneven / stages,
    };
    let tokens_all = batch.prefill + batch.decodes;
    if tokens_all <= 0.0 {
        return Parts::default();
    }
    let tokens = tokens_all / copies;
    let sampled = (batch.decodes + batch.prompts.min(batch.prefill)) / copies;
    let sequences = (batch.decodes + batch.prompts) / copies;
    let gemm = |g: &Gemm, n: f64, peak: f64, flops: f64, bytes: f64| {
        let n = n - work.large_saves * (n - LARGE_STEP).max(0.0);
        joined(n * g.flops / (peak * flops), g.bytes / (sheet.bandwidth * bytes))
    };
    let [plain_flops, plain_bytes] = rates.plain;
    let dense = gemm(
        &work.quantised,
        tokens,
        sheet.peak,
        rates.get(Term::GemmFlops),
        rates.get(Term::GemmBytes),
    ) + gemm(&work.plain, tokens, sheet.peak_plain, plain_flops, plain_bytes)
        + gemm(&work.head, sampled, sheet.peak_plain, plain_flops, plain_bytes)
        // Every sequence may have its own adapter: sequences share no reading, the tokens of one prompt do.
        + sequences * work.adapter.bytes / (sheet.bandwidth * plain_bytes)
        + tokens * work.adapter.flops / (sheet.peak_plain * plain_flops);
    let (mut experts, mut expert_layers) = (0.0, 0.0);
    if let Some(e) = &work.experts {
        // A device computes its share of all tokens' choices.
        let choices = tokens_all * e.per_token * e.local / e.count;
        let compute = choices * e.flops / (sheet.peak * rates.get(Term::ExpertFlops));
        // A stage that has anything to do has a whole token.
        let read = e.local * e.share_hit(tokens_all.max(1.0)) * e.bytes
            / (sheet.bandwidth * rates.get(Term::ExpertBytes));
        experts = e.layers * joined(compute, read);
        expert_layers = e.layers;
    }
    let (mut kv, mut prefill_attention) = (0.0, 0.0);
    for a in &work.attention {
        let seen = batch.context / copies;
        let seen = a.window.map_or(seen, |w| seen.min(w * batch.decodes / copies));
        // A prompt of which one token is left is a decode to the kernel.
        let mixed = batch.prefill > batch.prompts;
        let seen = if mixed { work.mixed_kv * seen } else { seen };
        // Windows make sequences even, and prompts fill what uneven ones leave idle.
        let even = a.window.is_some() || mixed;
        let lacking = if even { 0.0 } else { batch.uneven / copies };
        let counted = seen + rates.get(Term::UnevenShare) * lacking;
        kv += a.layers * counted * kv_seconds(a.kv_bytes, a.decode_flops, rates);
        let pairs = batch.pairs / copies;
        let prefill = batch.prefill / copies;
        let pairs = a.window.map_or(pairs, |w| pairs.min(w * prefill));
        let ramp = rates.get(Term::AttentionRamp) * prefill;
        let rate = sheet.peak_plain * rates.get(Term::AttentionFlops);
        prefill_attention += a.layers * (pairs + ramp) * a.prefill_flops / rate;
    }
    // A state is read and written.
    kv += 2.0 * sequences * work.state_bytes / (sheet.bandwidth * rates.get(Term::KvBytes));
    let mut collectives = 0.0;
    if work.reductions > 0.0 {
        let group = work.tensor.max(work.experts.map_or(1.0, |e| e.group));
        let hops = libm::log2(group).max(1.0);
        // Copies of the attention bring all their tokens to the experts and take them back.
        let moved = if work.attention_replicas > 1.0 { tokens_all } else { tokens };
        let sent = moved * work.hidden * 2.0 * 2.0 * (group - 1.0) / group;
        let each = rates.get(Term::ReduceSeconds) * (0.7 + 0.3 * hops)
            + sent / (sheet.link * rates.get(Term::ReduceBytes));
        collectives = work.reductions * each;
    }
    let overhead = rates.get(Term::StepSeconds)
        + work.layers * rates.get(Term::LayerSeconds)
        + expert_layers * rates.get(Term::ExpertLayerSeconds)
        + work.recurrent_layers * rates.get(Term::RecurrentLayerSeconds)
        + sequences * rates.get(Term::SequenceSeconds)
        + batch.prefill / copies * work.layers * rates.get(Term::TokenSeconds);
    Parts { gemm: dense, experts, prefill_attention, kv, collectives, overhead }
}

/// What the host of an asynchronous engine needs for a step.
///
/// Its own work is half done when the first kernel starts (by our own H200 logs 1.0 of 2.2 ms; the rest is sampling and bookkeeping). That of a
/// captured decode step never takes longer than the device without any context: the gaps of large batches, to which the device's constants
/// were fitted, hold whatever would show.
pub fn launch(work: &Work, rates: &Rates, batch: &Batch) -> Launch<f64> {
    let sequences = batch.decodes + batch.prompts;
    let own = rates.get(Term::LaunchSeconds) + sequences * rates.get(Term::LaunchSequenceSeconds);
    let (stages, _) = work.spread(sequences);
    let tokens = (batch.prefill + batch.decodes) / stages;
    let kernels = host_seconds(work, rates, tokens, batch.prefill > 0.0);
    let empty = || device(work, rates, &Batch::decode(batch.decodes, 0.0)).total();
    let own = if kernels > 0.0 { own } else { own.min(empty()) };
    Launch { before: own / 2.0, whole: own + kernels }
}

/// What the host needs to launch a step. A step of decodes alone is one graph, launched at once, where one was captured for its size.
pub(crate) fn host_seconds(work: &Work, rates: &Rates, tokens: f64, prefill: bool) -> f64 {
    let each = match work.graph_tokens {
        Some(most) if tokens <= most && !prefill => return 0.0,
        Some(most) if tokens <= most => rates.get(Term::PieceSeconds),
        _ => rates.get(Term::EagerSeconds),
    };
    rates.get(Term::StepSeconds) + work.layers * each
}

/// Seconds that one cached token of one layer takes while decoding: read, or multiplied with every head where that takes longer.
#[inline]
pub(crate) fn kv_seconds(bytes: f64, flops: f64, rates: &Rates) -> f64 {
    let share = rates.get(Term::KvBytes);
    (bytes / (rates.sheet.bandwidth * share)).max(flops / (rates.sheet.peak_plain * share))
}

/// The least time that physics allows: everything read once at full bandwidth, or everything computed at the full peak.
pub fn floor(work: &Work, rates: &Rates, batch: &Batch) -> f64 {
    let sheet = &rates.sheet;
    let (stages, copies) = work.spread(batch.decodes + batch.prompts);
    let copies = copies * stages;
    let tokens_all = (batch.prefill + batch.decodes) / stages;
    let tokens = (batch.prefill + batch.decodes) / copies;
    if tokens <= 0.0 {
        return 0.0;
    }
    let seen: f64 = work
        .attention
        .iter()
        .map(|a| {
            let seen = a.window.map_or(batch.context, |w| batch.context.min(w * batch.decodes));
            a.layers * a.kv_bytes * seen / copies
        })
        .sum();
    // A skewed router hits fewer experts than an even one; at least those of one token.
    let experts = work.experts.map_or(0.0, |e| e.layers * e.local * e.share_hit(1.0) * e.bytes);
    // Only a token that is sampled needs the head.
    let sampled = batch.decodes + batch.prompts.min(batch.prefill);
    let head = if sampled > 0.0 { work.head.bytes } else { 0.0 };
    let weights = work.quantised.bytes + work.plain.bytes + head + experts;
    let read = (weights + seen) / sheet.bandwidth;
    let chosen = work.experts.map_or(0.0, |e| {
        e.layers * tokens_all * e.per_token * e.local / e.count * e.flops / sheet.peak
    });
    let compute =
        tokens * (work.quantised.flops / sheet.peak + work.plain.flops / sheet.peak_plain) + chosen;
    read.max(compute)
}
