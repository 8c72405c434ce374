//! The limits that belong to a plan: what was seen at the load line, handed to [`crate::limits()`].

use plimsoll_stats::{Seed, quantile};
use plimsoll_workload::Shift;

use super::size::Question;
use super::sizes::{Asked, PoolSize};
use super::staffing::Staffing;
use super::{ClassLabels, PlanInput};
use crate::context::Context;
use crate::limits::{
    ContextPoint, Contexts, EngineLimits, LimitMargins, LimitedClass, LimitsInput, PoolLimits,
    PrefillPace, Promises, ReplicaAtLine, limits,
};
use plimsoll_load::{ClassResult, SimulatedClass, Simulation, StudyError, pools_serving};

/// Chance may bring a quarter more sequences than were seen; what is being generated gets a fifth longer to finish.
const MARGINS: LimitMargins =
    LimitMargins { sequences_share: 0.25, drain_share: 0.2, deadline_share: 0.5 };
/// Calls whose contexts are drawn: ten are longer than 999 in 1,000.
const CALLS_DRAWN: usize = 10_000;
/// Calls that are watched to see how fast prompts are read.
const CALLS_WATCHED: f64 = 2_000.0;

/// What a class asks of a pool in the hour that is planned for.
pub(crate) struct Call {
    pub(crate) per_s: f64,
    pub(crate) prompt: f64,
    pub(crate) fresh: f64,
    pub(crate) output: f64,
}

pub(crate) fn call_of(class: &SimulatedClass, hour: usize, events: bool) -> Call {
    let at = class.class.hours.get(hour);
    let shift = at.map_or(Shift::NONE, |hour| hour.changed(events));
    let calls = class.class.task.mean_requests().max(1e-9);
    let (fresh, output) = class.class.task.expected(&shift);
    let prompt = class.class.task.expected(&Shift { cache_hit: 0.0, ..shift }).0;
    Call {
        per_s: class.rate(hour, events) * calls,
        prompt: prompt / calls,
        fresh: fresh / calls,
        output: output / calls,
    }
}

/// Drawn calls: contexts and outputs in tokens, of the hour's mix.
fn drawn(
    classes: &[&SimulatedClass],
    hour: usize,
    events: bool,
    seed: Seed,
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let rates: Vec<f64> = classes.iter().map(|c| call_of(c, hour, events).per_s).collect();
    let all: f64 = rates.iter().sum();
    let (mut contexts, mut outputs) = (Vec::new(), Vec::new());
    for (class, rate) in classes.iter().zip(&rates) {
        let at = class.class.hours.get(hour);
        let shift = at.map_or(Shift::NONE, |hour| hour.changed(events));
        let wanted = (CALLS_DRAWN as f64 * rate / all.max(f64::MIN_POSITIVE)).ceil() as usize;
        let mut stream = seed.stream(&format!("limits.{}", class.class.name));
        let mut own = Vec::new();
        while own.len() < wanted.min(CALLS_DRAWN) {
            let before = own.len();
            class.class.task.draw(&shift, &mut stream, |request| {
                let samples = f64::from(request.samples.max(1));
                let output = request.output.get() as f64 / samples;
                contexts.push(request.prompt.get() as f64 + output);
                own.push(output);
            });
            if own.len() == before {
                break;
            }
        }
        outputs.push(own);
    }
    (contexts, outputs)
}

fn contexts(lengths: &[f64], at_most: u64) -> Contexts {
    let at = |tokens: f64| {
        let longer = lengths.iter().filter(|own| **own > tokens).count();
        let share_longer = longer as f64 / lengths.len().max(1) as f64;
        ContextPoint { tokens: tokens as u64, share_longer }
    };
    let point = |share: f64| Some(at(quantile(lengths, share)?.ceil()));
    Contexts {
        p50: point(0.5),
        p99: point(0.99),
        p999: point(0.999),
        at_most: (!lengths.is_empty()).then(|| at(at_most as f64)),
        max: point(1.0),
    }
}

/// The limits of every pool that was sized, and how fast each reads prompts.
pub(crate) fn admit(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &mut [PoolSize],
    context: Context<'_>,
) -> Result<Vec<PoolLimits>, StudyError> {
    let question = asked.at_quantile(context);
    let mut all = Vec::new();
    for (pool, size) in sizes.iter_mut().enumerate() {
        let (pace, line) = watched(&question, pool, size)?;
        size.line = line;
        let size = &*size;
        let Some(seen) = size.at_line() else { continue };
        // Whoever only generates reads no prompts, and nobody waits for its first token.
        let decodes = asked
            .fleet
            .pools
            .iter()
            .any(|other| other.life.hands_over.is_some_and(|over| over.to == pool));
        let own: Vec<(usize, &SimulatedClass)> = asked
            .fleet
            .classes
            .iter()
            .enumerate()
            .filter(|(_, class)| pools_serving(class, &asked.fleet).contains(&pool))
            .collect();
        let classes: Vec<&SimulatedClass> = own.iter().map(|(_, class)| *class).collect();
        let (lengths, outputs) = drawn(&classes, asked.hour, asked.events, input.fleet.seed);
        let result = &seen.pools[pool];
        let time = seen.seconds * f64::from(seen.runs) * result.replicas.max(1) as f64;
        let used = &result.utilisation;
        let life = &asked.fleet.pools[pool].life.limits;
        let least = |of: &dyn Fn(&SimulatedClass) -> Option<u64>| {
            classes.iter().filter_map(|c| of(c)).min().map(|ps| ps as f64 / 1e12)
        };
        let told = |name: &str| seen.classes.iter().find(|c| c.name == name);
        // From the first token on, what is long and slow takes longest.
        let generation = classes.iter().zip(&outputs).filter_map(|(class, outputs)| {
            let tpot = told(&class.class.name)?.tpot_ms?.p99 / 1e3;
            Some(quantile(outputs, 0.99)? * tpot)
        });
        let generation = generation.reduce(f64::max);
        let first = seen.classes.iter().filter_map(|c| c.ttft_ms).map(|d| d.p99 / 1e3);
        let first = first.reduce(f64::max);
        let floor = size.own.ttft_alone_s;
        all.push(limits(&LimitsInput {
            pool: input.fleet.pools[pool].name.clone(),
            engine: EngineLimits {
                max_num_seqs: life.max_num_seqs as u64,
                max_num_batched_tokens: life.max_num_batched_tokens,
                kv_tokens: result.kv_blocks * result.kv_block_tokens,
                kv_block_tokens: result.kv_block_tokens,
                model_context_tokens: input.pools[pool].model_context_tokens,
                max_model_len_tokens: Some(life.max_model_len),
            },
            contexts: contexts(&lengths, life.max_model_len),
            line: ReplicaAtLine {
                calls_per_s: Some(result.attempts.sent as f64 / time),
                fresh_tokens_per_s: (!decodes).then(|| result.prefill_tokens as f64 / time),
                prefill_tokens_per_s: pace.filter(|_| !decodes),
                sequences_mean: Some(used.sequences_mean),
                sequences_max: Some(used.sequences_max as f64),
                kv_share_mean: Some(used.kv_mean),
                kv_share_max: Some(used.kv_max),
                in_flight_mean: Some(used.sequences_mean + used.waiting_mean),
            },
            promises: Promises {
                ttft_budget_s: least(&|c| c.sent.good.ttft).filter(|_| !decodes),
                ttft_floor_s: floor,
                tpot_budget_s: least(&|c| c.sent.good.tpot),
                e2e_p99_s: first.zip(generation).map(|(first, rest)| first + rest),
                generation_p99_s: generation,
                deadline_s: least(&|c| c.sent.deadline),
            },
            startup_p90_s: Some(input.pools[pool].startup_p90_s),
            // What is there for when something is wrong is not let in for.
            replicas: size.replicas.open(),
            replicas_fewest: size.replicas.carry(),
            classes: own
                .iter()
                .zip(&outputs)
                .map(|((i, class), outputs)| {
                    limited(class, &input.labels[*i], told(&class.class.name), outputs, asked)
                })
                .collect(),
            margins: MARGINS,
        }));
    }
    Ok(all)
}

fn limited(
    class: &SimulatedClass,
    labels: &ClassLabels,
    seen: Option<&ClassResult>,
    outputs: &[f64],
    asked: &Asked,
) -> LimitedClass {
    let call = call_of(class, asked.hour, asked.events);
    let held = seen.and_then(|seen| {
        let gaps = seen.tpot_ms.map_or(0.0, |d| d.mean);
        Some((seen.ttft_ms?.mean + gaps * call.output) / 1e3)
    });
    let median = asked.median.classes.iter().find(|c| c.class.name == class.class.name);
    let hours = median.map_or(0, |c| c.class.hours.len());
    let day = median.map(|c| {
        let calls: f64 = (0..hours).map(|hour| call_of(c, hour, true).per_s).sum();
        calls / hours.max(1) as f64 * 86_400.0
    });
    LimitedClass {
        name: class.class.name.clone(),
        tenant: labels.tenant.clone(),
        feature: labels.feature.clone(),
        prompt_tokens: Some(call.prompt),
        fresh_tokens: Some(call.fresh),
        output_tokens: Some(call.output),
        output_p99_tokens: quantile(outputs, 0.99),
        calls_per_s: Some(call.per_s),
        calls_per_day: day,
        in_flight_mean: held.map(|held| held * call.per_s),
        retry_attempts: class.sent.retries.map(|retries| retries.attempts),
        retry_budget: class.sent.retries.and_then(|retries| retries.budget),
    }
}

/// Prompt tokens a second that a replica reads while it reads any, with as many of them as carry the demand; and what is seen at the load line, where the demand is well
/// below it.
fn watched(
    question: &Question<'_>,
    pool: usize,
    size: &PoolSize,
) -> Result<(Option<f64>, Option<Simulation>), StudyError> {
    if size.own.seen.is_none() {
        return Ok((None, None));
    }
    let carry = size.replicas.carry().max(1);
    let fleet = question.with_replicas(pool, carry);
    let carries = Staffing::new(carry, size.own.one).carries(carry);
    let load = if carries > WELL_BELOW { carries * SHORT_OF } else { 1.0 };
    let budget = fleet.pools[pool].life.limits.max_num_batched_tokens;
    let mut pace = PrefillPace::new(&fleet.pools[pool].name, budget);
    let own = Question { fleet: &fleet, ..*question }.load();
    let seen = own.pool_shown(pool, load, CALLS_WATCHED, Some(&mut pace))?;
    Ok((pace.tokens_per_s(), seen.filter(|_| load > 1.0)))
}

/// So many times the demand is well below what is carried; and what is carried is looked at a little short of where it ends.
const WELL_BELOW: f64 = 1.15;
const SHORT_OF: f64 = 0.95;
