//! What binds at a load: the resource that the misses of a run point to, and the promise that breaks first.

use plimsoll_perf::StepLoad;
use plimsoll_sim::{Attempt, AttemptEnd, FleetSpec, Held, Stretch, Target, TaskEnd, TaskOutcome};
use serde::Serialize;

use crate::promise::Miss;

/// What keeps a fleet from carrying more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Engines are busy with prompts.
    Prefill,
    /// Engines are busy generating.
    Decode,
    /// Requests wait for KV blocks.
    Kv,
    /// Requests wait because the running batch is as large as it may be.
    Sequences,
    /// Hosts launch steps, or hand out tokens, more slowly than devices compute.
    Host,
    /// Requests are refused because a queue is full, or no replica is there.
    Queue,
    /// Keys and values wait for the link between prefill and decode.
    Link,
    /// A provider refuses calls.
    Provider,
    /// Requests are longer than any engine takes.
    TooLong,
    /// A tool keeps tasks waiting, or fails them.
    Tool,
}

impl Cause {
    /// As documents write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Kv => "kv",
            Self::Sequences => "sequences",
            Self::Host => "host",
            Self::Queue => "queue",
            Self::Link => "link",
            Self::Provider => "provider",
            Self::TooLong => "too_long",
            Self::Tool => "tool",
        }
    }
}

/// Busy engine seconds of a pool by phase, and the seconds that requests waited by what held them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PoolPressure {
    pub(crate) prefill_s: f64,
    pub(crate) decode_s: f64,
    host_s: f64,
    /// Request-seconds in queues: held by KV blocks, by sequences, by a step's tokens.
    held_s: [f64; 3],
    prompt_tokens: f64,
    output_tokens: f64,
    /// Attempts that were refused, or found no replica.
    refused: f64,
}

/// What a run did to its pools, providers and tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pressure {
    pub(crate) pools: Vec<PoolPressure>,
    provider_refused: Vec<f64>,
    tool_waited_s: Vec<f64>,
    attempts: f64,
    /// Simulated seconds behind it.
    pub(crate) seconds: f64,
    /// By class, of tasks that missed: seconds in queues, on the link between pools, and until the token that was late.
    waited: Vec<[f64; 3]>,
    /// By class: failed tasks that were too long, and those that a tool failed.
    too_long: Vec<f64>,
    tool_failed: Vec<f64>,
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

impl Pressure {
    pub(crate) fn new(fleet: &FleetSpec) -> Self {
        let classes = fleet.classes.len();
        Self {
            pools: vec![PoolPressure::default(); fleet.pools.len()],
            provider_refused: vec![0.0; fleet.providers.len()],
            tool_waited_s: vec![0.0; fleet.tools.len()],
            attempts: 0.0,
            seconds: 0.0,
            waited: vec![[0.0; 3]; classes],
            too_long: vec![0.0; classes],
            tool_failed: vec![0.0; classes],
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.pools.is_empty() && self.waited.is_empty() {
            *self = other.clone();
            return;
        }
        for (pool, more) in self.pools.iter_mut().zip(&other.pools) {
            pool.prefill_s += more.prefill_s;
            pool.decode_s += more.decode_s;
            pool.host_s += more.host_s;
            pool.prompt_tokens += more.prompt_tokens;
            pool.output_tokens += more.output_tokens;
            pool.refused += more.refused;
            pool.held_s.iter_mut().zip(more.held_s).for_each(|(a, b)| *a += b);
        }
        let sum = |a: &mut Vec<f64>, b: &[f64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        sum(&mut self.provider_refused, &other.provider_refused);
        sum(&mut self.tool_waited_s, &other.tool_waited_s);
        sum(&mut self.too_long, &other.too_long);
        sum(&mut self.tool_failed, &other.tool_failed);
        for (a, b) in self.waited.iter_mut().zip(&other.waited) {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        }
        self.attempts += other.attempts;
        self.seconds += other.seconds;
    }

    /// A replica took steps. Its busy time is split: what its decodes alone would have taken is decode, what the device took beyond that is prefill, and the rest is the host's.
    pub(crate) fn stretch(&mut self, fleet: &FleetSpec, pool: usize, stretch: &Stretch) {
        let pressure = &mut self.pools[pool];
        let model = &fleet.pools[pool].model;
        let steps = stretch.steps.max(1);
        let decodes = StepLoad {
            decodes: stretch.decodes / steps,
            context: stretch.context / steps,
            ..StepLoad::default()
        };
        let all = StepLoad {
            prefill: stretch.prefill / steps,
            pairs_doubled: stretch.pairs_doubled / steps,
            prompts: stretch.prefill.min(1),
            ..decodes
        };
        let took = seconds(stretch.took);
        let device = seconds(model.device(&all).saturating_mul(steps)).min(took);
        let decode = match stretch.prefill {
            0 => device,
            _ => seconds(model.device(&decodes).saturating_mul(steps)).min(device),
        };
        pressure.decode_s += decode;
        pressure.prefill_s += device - decode;
        pressure.host_s += took - device;
        pressure.prompt_tokens += stretch.prefill as f64;
        pressure.output_tokens += stretch.tokens as f64;
        if let Some(held) = stretch.held {
            let by = match held {
                Held::Kv => 0,
                Held::Sequences => 1,
                Held::Budget => 2,
            };
            pressure.held_s[by] += took * stretch.gauges.waiting as f64;
        }
    }

    pub(crate) fn attempt(&mut self, attempt: &Attempt<'_>) {
        self.attempts += 1.0;
        if !matches!(attempt.end, AttemptEnd::Refused | AttemptEnd::NobodyThere) {
            return;
        }
        match attempt.target {
            Target::Pool(pool) => self.pools[pool].refused += 1.0,
            Target::Provider(provider) => self.provider_refused[provider] += 1.0,
        }
    }

    pub(crate) fn tool(&mut self, tool: usize, waited: u64) {
        self.tool_waited_s[tool] += seconds(waited);
    }

    /// A task missed its promise.
    pub(crate) fn missed(&mut self, outcome: &TaskOutcome, miss: Miss) {
        let class = usize::from(outcome.class);
        match outcome.end {
            TaskEnd::TooLong => self.too_long[class] += 1.0,
            TaskEnd::ToolFailed => self.tool_failed[class] += 1.0,
            _ => {}
        }
        let until = match miss {
            Miss::Ttft => outcome.ttft.unwrap_or(outcome.ended - outcome.began),
            _ => outcome.ended - outcome.began,
        };
        let own = [outcome.waited, outcome.handing_over, until];
        self.waited[class].iter_mut().zip(own).for_each(|(sum, ps)| *sum += seconds(ps));
    }

    /// The share of busy engine time that went to prompts, of prompts and decodes together.
    pub(crate) fn prefill_share(&self, pool: usize) -> Option<f64> {
        let PoolPressure { prefill_s, decode_s, .. } = *self.pools.get(pool)?;
        (prefill_s + decode_s > 0.0).then(|| prefill_s / (prefill_s + decode_s))
    }
}

/// What missed, as far as a cause is read from it.
pub(crate) struct Missed<'a> {
    /// The class, by its place in the fleet.
    pub(crate) class: usize,
    /// What its tasks missed first.
    pub(crate) signal: Option<Miss>,
    /// How many of its tasks missed.
    pub(crate) tasks: f64,
    /// Pools that serve it.
    pub(crate) pools: &'a [usize],
    /// Replicas of each pool of the fleet.
    pub(crate) replicas: &'a [u32],
}

/// Tasks that missed waited for so large a part of their time, where queues are to blame.
const WAITED: f64 = 0.3;
/// A resource that is used so much is to blame.
const FULL: f64 = 0.9;
/// One refused attempt in so many blames the provider.
const REFUSED: f64 = 200.0;

/// The cause of misses, and the pool, by its place, where it is of one.
pub(crate) fn cause(
    fleet: &FleetSpec,
    pressure: &Pressure,
    missed: &Missed<'_>,
) -> (Cause, Option<usize>) {
    let errors = missed.signal == Some(Miss::Errors);
    if errors && pressure.too_long[missed.class] * 2.0 > missed.tasks {
        return (Cause::TooLong, None);
    }
    if errors && pressure.tool_failed[missed.class] * 2.0 > missed.tasks {
        return (Cause::Tool, None);
    }
    let by_provider: f64 = pressure.provider_refused.iter().sum();
    let by_pools: f64 = pressure.pools.iter().map(|pool| pool.refused).sum();
    if by_provider > by_pools && by_provider * REFUSED > pressure.attempts {
        return (Cause::Provider, None);
    }
    let in_pools: f64 = missed.pools.iter().flat_map(|pool| pressure.pools[*pool].held_s).sum();
    let for_tools: f64 = pressure.tool_waited_s.iter().sum();
    if for_tools > in_pools && for_tools > pressure.seconds * 0.1 {
        return (Cause::Tool, None);
    }
    let strain = |pool: &usize| {
        let own = &pressure.pools[*pool];
        let replicas = f64::from(missed.replicas[*pool].max(1));
        let held: f64 = own.held_s.iter().sum();
        (held / replicas, (own.prefill_s + own.decode_s + own.host_s) / replicas)
    };
    // First tokens of a prefill and decode pair come from the pool that reads prompts, gaps from the other.
    let reads = |pool: &usize| fleet.pools[*pool].hands_over.is_some();
    let wanted = |pool: &&usize| match missed.signal {
        Some(Miss::Tpot | Miss::Gap) => !reads(pool),
        _ => true,
    };
    let most = |a: &&usize, b: &&usize| {
        let (a, b) = (strain(a), strain(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let Some(pool) = missed.pools.iter().filter(wanted).max_by(most).copied() else {
        return (Cause::Provider, None);
    };
    let (of_pool, spec) = (&pressure.pools[pool], &fleet.pools[pool]);
    if errors && of_pool.refused * 2.0 > missed.tasks {
        return (Cause::Queue, Some(pool));
    }
    let span = (pressure.seconds * f64::from(missed.replicas[pool].max(1))).max(1e-9);
    let path = spec.path.utilisation(of_pool.output_tokens / span);
    if path > FULL {
        return (Cause::Host, Some(pool));
    }
    let [waited, linked, late] = pressure.waited[missed.class];
    let reader = missed.pools.iter().copied().find(reads);
    if let Some(reader) = reader.filter(|_| linked > WAITED * late && linked > waited) {
        return (Cause::Link, Some(reader));
    }
    let held = of_pool.held_s;
    let held_most = (0..3).rev().max_by(|a, b| held[*a].total_cmp(&held[*b])).unwrap_or(2);
    if waited > WAITED * late && held[held_most] > 0.0 && held_most < 2 {
        return ([Cause::Kv, Cause::Sequences][held_most], Some(pool));
    }
    let busiest = match missed.signal {
        // A first token waits for prompts, its own and those before it.
        Some(Miss::Ttft) => [(Cause::Prefill, of_pool.prefill_s), (Cause::Host, of_pool.host_s)]
            .into_iter()
            .reduce(|a, b| if b.1 > a.1 { b } else { a }),
        _ => [
            (Cause::Decode, of_pool.decode_s),
            (Cause::Prefill, of_pool.prefill_s),
            (Cause::Host, of_pool.host_s),
        ]
        .into_iter()
        .reduce(|a, b| if b.1 > a.1 { b } else { a }),
    };
    (busiest.map_or(Cause::Decode, |(cause, _)| cause), Some(pool))
}
