//! The admission limits of a pool: how much it lets in, how long it lets wait, and whom it sends away, so that it stays below its load line.
//!
//! Nothing is simulated here. What a simulation at the load line showed goes in as plain numbers, and each limit comes out with the sentence that explains it. A limit whose
//! numbers are not known has no value and says which number is missing: no limit is better than one that was guessed, and unknown is not zero.

mod gateway;
mod pace;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use self::gateway::{ClassLimits, FeatureBudget, TenantLimits};
use self::gateway::{class_limits, feature_budgets, tenant_limits};
pub use self::pace::PrefillPace;

/// What the limits of a pool are derived from.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsInput {
    /// The pool.
    pub pool: String,
    /// What its engines were simulated with.
    pub engine: EngineLimits,
    /// How long the contexts are that it serves.
    pub contexts: Contexts,
    /// What one replica showed at the load line.
    pub line: ReplicaAtLine,
    /// What was promised, and how long calls take.
    pub promises: Promises,
    /// Seconds that nine starts in ten take at most.
    pub startup_p90_s: Option<f64>,
    /// Replicas of the plan, its reserve included.
    pub replicas: u32,
    /// The fewest that carry the demand.
    pub replicas_fewest: u32,
    /// Who is served.
    pub classes: Vec<LimitedClass>,
    /// What is added where a measured number must not be met exactly.
    pub margins: LimitMargins,
}

/// What engines were simulated with. Zero is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Largest running batch.
    pub max_num_seqs: u64,
    /// Token budget of a step.
    pub max_num_batched_tokens: u64,
    /// Tokens of context that the caches of a replica hold.
    pub kv_tokens: u64,
    /// Tokens of a block.
    pub kv_block_tokens: u64,
    /// The longest context that the model itself takes.
    pub model_context_tokens: Option<u64>,
    /// The longest that the engine was told to take.
    pub max_model_len_tokens: Option<u64>,
}

/// Lengths of contexts, prompt and output together, over the calls of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Contexts {
    /// The median.
    pub p50: Option<ContextPoint>,
    /// 99 in 100.
    pub p99: Option<ContextPoint>,
    /// 999 in 1,000.
    pub p999: Option<ContextPoint>,
    /// As long as the engine was told to take at most.
    pub at_most: Option<ContextPoint>,
    /// The longest.
    pub max: Option<ContextPoint>,
}

/// A length, and who is longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextPoint {
    /// The length.
    pub tokens: u64,
    /// The share of calls that are longer.
    pub share_longer: f64,
}

/// What one replica showed at the load line, on average over replicas where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplicaAtLine {
    /// Calls that came, a second.
    pub calls_per_s: Option<f64>,
    /// Prompt tokens that came and were not cached, a second.
    pub fresh_tokens_per_s: Option<f64>,
    /// Prompt tokens a second that it reads while it reads any: tokens over the time of the steps that carry prompts, best of full steps. [`PrefillPace`] counts it.
    pub prefill_tokens_per_s: Option<f64>,
    /// Sequences that ran.
    pub sequences_mean: Option<f64>,
    /// At most.
    pub sequences_max: Option<f64>,
    /// The share of the cache in use.
    pub kv_share_mean: Option<f64>,
    /// At most.
    pub kv_share_max: Option<f64>,
    /// Calls that ran or waited.
    pub in_flight_mean: Option<f64>,
}

/// What was promised, and how long calls take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promises {
    /// Seconds to the first token, of the class that is promised least.
    pub ttft_budget_s: Option<f64>,
    /// Seconds to the first token where nobody waits.
    pub ttft_floor_s: Option<f64>,
    /// Seconds between tokens, of the class that is promised least.
    pub tpot_budget_s: Option<f64>,
    /// Seconds to the last token that 99 calls in 100 take at most.
    pub e2e_p99_s: Option<f64>,
    /// The same from the first token on.
    pub generation_p99_s: Option<f64>,
    /// Seconds after which nobody has any use for an answer.
    pub deadline_s: Option<f64>,
}

/// A class as limits see it.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitedClass {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// What it is for.
    pub feature: Option<String>,
    /// Prompt tokens of a call, cached ones included, on average.
    pub prompt_tokens: Option<f64>,
    /// Those that are not cached.
    pub fresh_tokens: Option<f64>,
    /// Output tokens, on average.
    pub output_tokens: Option<f64>,
    /// Output tokens that 99 calls in 100 have at most.
    pub output_p99_tokens: Option<f64>,
    /// Calls a second of the demand that is planned for.
    pub calls_per_s: Option<f64>,
    /// Calls a day that the forecast expects.
    pub calls_per_day: Option<f64>,
    /// Calls that ran or waited at the load line, on average, in the whole pool: only its part of all of them counts.
    pub in_flight_mean: Option<f64>,
    /// Attempts that its clients make in all.
    pub retry_attempts: Option<u32>,
    /// Retries that they allow themselves, against first attempts.
    pub retry_budget: Option<f64>,
}

/// What is added where a measured number must not be met exactly: shares of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitMargins {
    /// Of the most sequences seen.
    pub sequences_share: f64,
    /// Of the longest generation.
    pub drain_share: f64,
    /// Of the longest call.
    pub deadline_share: f64,
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The limit; none where it cannot be said.
    pub value: Option<f64>,
    /// Of what it is.
    pub unit: &'static str,
    /// Where it comes from, with the numbers; or what is missing.
    pub why: String,
    /// What engines call it, where it is one of their flags.
    pub flags: Option<EngineFlags>,
}

/// What engines call a limit; none where one has no such flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EngineFlags {
    /// vLLM.
    pub vllm: Option<&'static str>,
    /// The first version of vLLM that has it, where that is recent.
    pub vllm_since: Option<&'static str>,
    /// SGLang.
    pub sglang: Option<&'static str>,
    /// TensorRT-LLM.
    pub tensorrt_llm: Option<&'static str>,
}

/// The admission limits of a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolLimits {
    /// The pool.
    pub pool: String,
    /// Sequences of a replica.
    pub max_num_seqs: Limit,
    /// Tokens of a step.
    pub max_num_batched_tokens: Limit,
    /// Tokens of a context.
    pub max_model_len: Limit,
    /// The share of calls that are longer than that, at most.
    pub refused_share: Option<f64>,
    /// Fresh prompt tokens that wait for a replica.
    pub queue_tokens: Limit,
    /// Calls that wait for a replica.
    pub queue_requests: Limit,
    /// Seconds that the first in line has waited.
    pub queue_age: Limit,
    /// The share of a replica's cache above which nobody new is let in.
    pub kv_ceiling: Limit,
    /// Fresh prompt tokens above the demand that the pool takes until the next replica is ready.
    pub burst: Limit,
    /// Seconds that a gateway keeps a call nobody has begun.
    pub request_ttl: Limit,
    /// Seconds that it keeps one when there is no replica at all.
    pub no_endpoint_ttl: Limit,
    /// Seconds after which a call is given up.
    pub deadline: Limit,
    /// Seconds that a replica has to finish what it has begun.
    pub drain: Limit,
    /// What a gateway lets through, class by class.
    pub classes: Vec<ClassLimits>,
    /// The same by tenant, where classes have one.
    pub tenants: Vec<TenantLimits>,
    /// Tokens a day, feature by feature.
    pub features: Vec<FeatureBudget>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Derives the limits of a pool.
pub fn limits(input: &LimitsInput) -> PoolLimits {
    let max_num_seqs = max_num_seqs(input);
    let (max_model_len, refused_share) = max_model_len(input);
    let queue_tokens = queue_tokens(input);
    let queue_requests = queue_requests(input, queue_tokens.value);
    // What a pool has under way before it turns anybody away.
    let places = max_num_seqs.value.map(|n| n + queue_requests.value.unwrap_or(0.0));
    let in_flight_most = places.map(|places| places * f64::from(input.replicas));
    let classes = class_limits(input, in_flight_most);
    let mut notes = Vec::new();
    if queue_tokens.value.is_some() {
        notes.push(
            "queues are bounded in fresh tokens: where an engine counts whole prompts before it looks for cached ones, it turns away earlier".to_owned(),
        );
    }
    PoolLimits {
        pool: input.pool.clone(),
        max_num_batched_tokens: max_num_batched_tokens(input, max_num_seqs.value),
        max_model_len,
        refused_share,
        queue_age: queue_age(input),
        kv_ceiling: kv_ceiling(input),
        burst: burst(input, queue_tokens.value),
        request_ttl: request_ttl(input),
        no_endpoint_ttl: no_endpoint_ttl(input),
        deadline: deadline(input),
        drain: drain(input),
        tenants: tenant_limits(&input.classes, &classes),
        features: feature_budgets(&input.classes),
        max_num_seqs,
        queue_tokens,
        queue_requests,
        classes,
        notes,
    }
}

const NO_FLAGS: EngineFlags =
    EngineFlags { vllm: None, vllm_since: None, sglang: None, tensorrt_llm: None };

impl Limit {
    fn of(value: f64, unit: &'static str, why: String) -> Self {
        Self { value: Some(value), unit, why, flags: None }
    }

    fn unknown(unit: &'static str, why: impl Into<String>) -> Self {
        Self { value: None, unit, why: why.into(), flags: None }
    }

    fn flags(self, flags: EngineFlags) -> Self {
        Self { flags: Some(flags), ..self }
    }
}

/// A quantity that says something: finite and above zero.
fn known(quantity: Option<f64>) -> Option<f64> {
    quantity.filter(|n| n.is_finite() && *n > 0.0)
}

/// A whole quantity that says something.
fn whole(quantity: u64) -> Option<f64> {
    (quantity > 0).then_some(quantity as f64)
}

/// A share added to a number; one that is none adds nothing.
fn more(share: f64) -> f64 {
    1.0 + known(Some(share)).unwrap_or(0.0)
}

/// A number in a sentence: whole and grouped from a hundred on, in three digits below.
pub(crate) fn shown(n: f64) -> String {
    if !n.is_finite() {
        return "unknown".to_owned();
    }
    if n.abs() >= 99.95 {
        let sign = if n < 0.0 { "-" } else { "" };
        return format!("{sign}{}", plimsoll_units::grouped(n.abs().round() as u64));
    }
    let digits = match n.abs() {
        n if n >= 9.995 => 1,
        n if n >= 0.0995 => 2,
        _ => 4,
    };
    let text = format!("{n:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What the load line needs at its most, with a margin; not more than was simulated, nor than the cache holds of typical contexts.
fn max_num_seqs(input: &LimitsInput) -> Limit {
    let unit = "sequences";
    let flags = EngineFlags {
        vllm: Some("--max-num-seqs"),
        sglang: Some("--max-running-requests"),
        tensorrt_llm: Some("max_batch_size"),
        ..NO_FLAGS
    };
    let Some(seen) = known(input.line.sequences_max) else {
        let why = "how many sequences run at the load line is not known";
        return Limit::unknown(unit, why).flags(flags);
    };
    let needed = (seen * more(input.margins.sequences_share)).ceil();
    let mut value = needed;
    let mut why = format!(
        "{} ran at most at the load line, and {} of that for chance",
        shown(seen),
        percent(input.margins.sequences_share)
    );
    if let Some(simulated) = whole(input.engine.max_num_seqs).filter(|n| *n < value) {
        value = simulated;
        why = format!(
            "{} ran at most at the load line; not more than the {} that were simulated",
            shown(seen),
            shown(simulated)
        );
    }
    let typical = input.contexts.p50.map(|p| p.tokens).filter(|tokens| *tokens > 0);
    if let (Some(kv), Some(typical)) = (whole(input.engine.kv_tokens), typical) {
        let block = input.engine.kv_block_tokens.max(1);
        let each = typical.div_ceil(block).saturating_mul(block);
        let held = (kv / each as f64).floor().max(1.0);
        if held < value {
            value = held;
            why = format!(
                "the cache holds {} tokens, so {} contexts of {} (the median, in whole blocks), fewer than the {} that the load line would like",
                shown(kv),
                shown(held),
                shown(each as f64),
                shown(needed)
            );
        }
    }
    Limit::of(value, unit, why).flags(flags)
}

/// As it was simulated: the load line is that of this budget. What a full step means for those who generate is said.
fn max_num_batched_tokens(input: &LimitsInput, max_num_seqs: Option<f64>) -> Limit {
    let unit = "tokens/step";
    let flags = EngineFlags {
        vllm: Some("--max-num-batched-tokens"),
        sglang: Some("--chunked-prefill-size"),
        tensorrt_llm: Some("max_num_tokens"),
        ..NO_FLAGS
    };
    let Some(simulated) = whole(input.engine.max_num_batched_tokens) else {
        return Limit::unknown(unit, "the token budget of a step is not known").flags(flags);
    };
    // An engine does not start with fewer than a token for each sequence.
    let value = simulated.max(max_num_seqs.unwrap_or(0.0));
    let mut why = format!("{}, as simulated: the load line is that of this budget", shown(value));
    if let Some(rate) = known(input.line.prefill_tokens_per_s) {
        let step = value / rate;
        why += &format!("; a full step takes about {} s", shown(step));
        if let Some(tpot) = known(input.promises.tpot_budget_s) {
            why += &if step <= tpot {
                format!(", within the {} s promised between tokens", shown(tpot))
            } else {
                format!(
                    ", longer than the {} s promised between tokens: while a burst is read, {} would keep the promise and read slower",
                    shown(tpot),
                    shown((rate * tpot / 256.0).floor().max(1.0) * 256.0)
                )
            };
        }
    }
    Limit::of(value, unit, why).flags(flags)
}

/// The next of four steps between a power of two and the next, in whole blocks: 4,096, 5,120, 6,144, 7,168, 8,192, 10,240.
fn step_up(tokens: u64, block: u64) -> u64 {
    let block = block.max(1);
    let octave = 1u64 << (63 - tokens.max(1).leading_zeros());
    let step = (octave / 4).max(1);
    let up = |n: u64, to: u64| n.div_ceil(to).saturating_mul(to);
    up(up(tokens.max(1), step), block)
}

/// What 999 calls in 1,000 need, and not what the model could: a cache is planned for the longest that is accepted.
fn max_model_len(input: &LimitsInput) -> (Limit, Option<f64>) {
    let unit = "tokens";
    let flags = EngineFlags {
        vllm: Some("--max-model-len"),
        sglang: Some("--context-length"),
        tensorrt_llm: Some("max_seq_len"),
        ..NO_FLAGS
    };
    let Some(p999) = input.contexts.p999.filter(|p| p.tokens > 0) else {
        let why = "how long contexts are is not known";
        return (Limit::unknown(unit, why).flags(flags), None);
    };
    let mut value = step_up(p999.tokens, input.engine.kv_block_tokens);
    let mut why = format!(
        "999 calls in 1,000 have {} tokens or fewer; {} is the next step up",
        shown(p999.tokens as f64),
        shown(value as f64)
    );
    let bounds = [
        (input.engine.model_context_tokens, "the model takes"),
        (input.engine.max_model_len_tokens, "the engine was simulated with"),
        (Some(input.engine.kv_tokens), "the cache of a replica holds"),
    ];
    for (bound, whose) in bounds {
        if let Some(bound) = bound.filter(|n| *n > 0 && *n < value) {
            value = bound;
            why = format!(
                "999 calls in 1,000 have {} tokens or fewer; not more than the {} that {whose}",
                shown(p999.tokens as f64),
                shown(bound as f64)
            );
        }
    }
    let Contexts { p50, p99, p999, at_most, max } = input.contexts;
    let refused = if max.is_some_and(|max| max.tokens <= value) {
        Some(0.0)
    } else {
        let below = [p50, p99, p999, at_most].into_iter().flatten().filter(|p| p.tokens <= value);
        let shares = below.map(|p| p.share_longer).filter(|share| share.is_finite());
        shares.reduce(f64::min).map(|share| share.clamp(0.0, 1.0))
    };
    why += &match refused {
        Some(0.0) => "; nobody is longer".to_owned(),
        Some(share) => format!("; it refuses {} of calls at most", percent(share)),
        None => "; more than half of the calls are longer".to_owned(),
    };
    if let Some(model) = input.engine.model_context_tokens.filter(|n| *n > value) {
        why += &format!("; the model itself would take {}", shown(model as f64));
    }
    (Limit::of(value as f64, unit, why).flags(flags), refused)
}

/// Whoever comes last still gets a first token in time if no more is before it than is read by then.
fn queue_tokens(input: &LimitsInput) -> Limit {
    let unit = "fresh prompt tokens/replica";
    let flags =
        EngineFlags { vllm: Some("--max-num-queued-tokens"), vllm_since: Some("0.29"), ..NO_FLAGS };
    let budget = known(input.promises.ttft_budget_s);
    let rate = known(input.line.prefill_tokens_per_s);
    let limit = match (budget, rate) {
        (None, _) => Limit::unknown(unit, "no class was promised a time to its first token"),
        (_, None) => Limit::unknown(unit, "how fast a replica reads prompts is not known"),
        (Some(budget), Some(rate)) => {
            let why = format!(
                "{} s to the first token x {} prompt tokens/s that a replica reads",
                shown(budget),
                shown(rate)
            );
            match (budget * rate).floor() {
                none if none < 1.0 => Limit::unknown(unit, format!("{why}: less than one token")),
                value => Limit::of(value, unit, why),
            }
        }
    };
    limit.flags(flags)
}

/// Fresh tokens of a call, on average.
fn fresh_per_call(input: &LimitsInput) -> Option<f64> {
    let line = known(input.line.fresh_tokens_per_s).zip(known(input.line.calls_per_s));
    if let Some((tokens, calls)) = line {
        return Some(tokens / calls);
    }
    let each = || input.classes.iter().filter_map(|c| known(c.calls_per_s).zip(c.fresh_tokens));
    let calls = known(Some(each().map(|(calls, _)| calls).sum()))?;
    known(Some(each().map(|(calls, fresh)| calls * fresh).sum::<f64>() / calls))
}

/// The same in calls, for engines and gateways that count calls.
fn queue_requests(input: &LimitsInput, tokens: Option<f64>) -> Limit {
    let unit = "calls/replica";
    let flags = EngineFlags {
        vllm: Some("--max-num-queued-reqs"),
        vllm_since: Some("0.29"),
        sglang: Some("--max-queued-requests"),
        ..NO_FLAGS
    };
    let limit = match (tokens, fresh_per_call(input)) {
        (None, _) => Limit::unknown(unit, "the bound in tokens is not known"),
        (_, None) => Limit::unknown(unit, "how many fresh tokens a call has is not known"),
        (Some(tokens), Some(each)) => {
            let why = format!(
                "{} tokens / {} fresh tokens of a call on average",
                shown(tokens),
                shown(each)
            );
            // One call may always wait: a replica that has none to spare takes none.
            Limit::of((tokens / each).floor().max(1.0), unit, why)
        }
    };
    limit.flags(flags)
}

/// Who has waited so long gets a first token too late even if it is begun now.
fn queue_age(input: &LimitsInput) -> Limit {
    let unit = "s";
    let Some(budget) = known(input.promises.ttft_budget_s) else {
        return Limit::unknown(unit, "no class was promised a time to its first token");
    };
    let Some(floor) = known(input.promises.ttft_floor_s) else {
        return Limit::unknown(
            unit,
            "how long a first token takes where nobody waits is not known",
        );
    };
    if floor >= budget {
        let why = format!(
            "a first token takes {} s where nobody waits: nothing is left of the {} s promised",
            shown(floor),
            shown(budget)
        );
        return Limit::unknown(unit, why);
    }
    let why = format!(
        "{} s promised to the first token, less the {} s it takes where nobody waits",
        shown(budget),
        shown(floor)
    );
    Limit::of(budget - floor, unit, why)
}

/// What is in use, and what those who are in still grow by: at the ceiling both are all there is.
///
/// A sequence holds `r` tokens on average, and has as many to come as an output is long: outputs are spread so widely that having come far says little of the end. So
/// at a share `c` of `K` tokens there are `c K / r` sequences, which grow by `c K g / r`, and `c (1 + g / r) = 1`.
fn kv_ceiling(input: &LimitsInput) -> Limit {
    let unit = "share of the cache";
    let line = &input.line;
    let held = (|| {
        let kv = whole(input.engine.kv_tokens)?;
        Some(known(line.kv_share_mean)?.min(1.0) * kv / known(line.sequences_mean)?)
    })();
    let Some(held) = held else {
        return Limit::unknown(unit, "how much of the cache a sequence holds is not known");
    };
    let Some(grows) = output_in_flight(input) else {
        return Limit::unknown(unit, "how long outputs are is not known");
    };
    let ceiling = held / (held + grows);
    let sentence =
        format!("a sequence holds {} tokens and grows by {} more", shown(held), shown(grows));
    let mean = known(line.kv_share_mean).unwrap_or(0.0).min(1.0);
    if mean > ceiling {
        let why = format!(
            "{sentence}, which asks for {}; but the load line itself is served at {} on average, and holding that back would lower it",
            shown(ceiling),
            shown(mean)
        );
        return Limit::of(mean, unit, why);
    }
    let why = format!("{sentence}: {} / ({} + {})", shown(held), shown(held), shown(grows));
    Limit::of(ceiling, unit, why)
}

/// Output tokens of a call that is in flight, on average: classes count as much as they have in flight, or as often as they call.
fn output_in_flight(input: &LimitsInput) -> Option<f64> {
    let by = |of: fn(&LimitedClass) -> Option<f64>| {
        let each = || {
            let own = |c: &LimitedClass| Some((known(of(c))?, known(c.output_tokens)?));
            input.classes.iter().filter_map(own)
        };
        let all = known(Some(each().map(|(weight, _)| weight).sum()))?;
        Some(each().map(|(weight, output)| weight * output).sum::<f64>() / all)
    };
    by(|c| c.in_flight_mean).or_else(|| by(|c| c.calls_per_s))
}

/// What queues take, and what the replicas beyond the fewest read, until the next replica is there.
fn burst(input: &LimitsInput, queue_tokens: Option<f64>) -> Limit {
    let unit = "fresh prompt tokens";
    let Some(startup) = known(input.startup_p90_s) else {
        return Limit::unknown(unit, "how long a start takes is not known");
    };
    let (Some(queue), Some(line)) = (queue_tokens, known(input.line.fresh_tokens_per_s)) else {
        let why = "what queues take, or what a replica carries at its load line, is not known";
        return Limit::unknown(unit, why);
    };
    if input.replicas == 0 {
        return Limit::unknown(unit, "the plan has no replicas");
    }
    let spare = f64::from(input.replicas.saturating_sub(input.replicas_fewest));
    let value = queue * f64::from(input.replicas) + spare * line * startup;
    let why = format!(
        "queues of {} replicas x {} tokens, and {} replicas beyond the fewest x {} tokens/s at the load line x {} s until another is ready (p90): {} tokens/s more than planned for as long",
        input.replicas,
        shown(queue),
        shown(spare),
        shown(line),
        shown(startup),
        shown(value / startup)
    );
    Limit::of(value.floor(), unit, why)
}

/// Nobody has any use for a first token that comes later.
fn request_ttl(input: &LimitsInput) -> Limit {
    match known(input.promises.ttft_budget_s) {
        Some(budget) => {
            let why = format!("the {} s promised to the first token", shown(budget));
            Limit::of(budget, "s", why)
        }
        None => Limit::unknown("s", "no class was promised a time to its first token"),
    }
}

/// A pool without replicas is worth waiting for as long as one takes to come.
fn no_endpoint_ttl(input: &LimitsInput) -> Limit {
    match known(input.startup_p90_s) {
        Some(startup) => {
            let ttft = known(input.promises.ttft_budget_s).unwrap_or(0.0);
            let why = format!("nine starts in ten are ready within {} s", shown(startup));
            Limit::of(startup.max(ttft).ceil(), "s", why)
        }
        None => Limit::unknown("s", "how long a start takes is not known"),
    }
}

/// What somebody asked for, or what nearly all calls take, with a margin.
fn deadline(input: &LimitsInput) -> Limit {
    let takes = known(input.promises.e2e_p99_s);
    match (known(input.promises.deadline_s), takes) {
        (Some(deadline), Some(takes)) if takes > deadline => {
            let why = format!(
                "as asked for; one call in 100 takes longer than {} s at the load line, so some are cut off",
                shown(takes)
            );
            Limit::of(deadline, "s", why)
        }
        (Some(deadline), _) => Limit::of(deadline, "s", "as asked for".to_owned()),
        (None, Some(takes)) => {
            let share = input.margins.deadline_share;
            let why = format!(
                "99 calls in 100 take {} s or less at the load line, and {} on top",
                shown(takes),
                percent(share)
            );
            Limit::of((takes * more(share)).ceil(), "s", why)
        }
        (None, None) => Limit::unknown("s", "how long calls take is not known"),
    }
}

/// What a replica has begun when it is told to leave is generated to its end.
fn drain(input: &LimitsInput) -> Limit {
    let flags =
        EngineFlags { vllm: Some("--shutdown-timeout"), vllm_since: Some("0.18"), ..NO_FLAGS };
    let limit = match known(input.promises.generation_p99_s) {
        Some(takes) => {
            let share = input.margins.drain_share;
            let why = format!(
                "99 generations in 100 take {} s or less, and {} on top; a pod's grace period is longer than this and its preStop together",
                shown(takes),
                percent(share)
            );
            Limit::of((takes * more(share)).ceil(), "s", why)
        }
        None => Limit::unknown("s", "how long generations take is not known"),
    };
    limit.flags(flags)
}

/// A share as a sentence has it.
fn percent(share: f64) -> String {
    format!("{}%", shown(share * 100.0))
}
