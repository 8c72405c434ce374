//! One replica of each pool at its load line: what live signals are held against.

use plimsoll_sim::Target;
use serde::{Deserialize, Serialize};

use super::PlanInput;
use super::admit::call_of;
use super::expected::digits;
use super::sizes::{Asked, PoolSize};
use plimsoll_load::SimulateInput;
use plimsoll_load::SimulatedClass;
use plimsoll_load::pools_serving;

/// One replica of a pool at its load line, and what the plan takes for granted of what comes to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolLine {
    /// The pool.
    pub pool: String,
    /// Calls a second that come to a replica.
    pub calls_per_s: Option<f64>,
    /// Prompt tokens a second that it computes; none where prompts are read elsewhere.
    pub fresh_tokens_per_s: Option<f64>,
    /// Output tokens a second.
    pub output_tokens_per_s: Option<f64>,
    /// Calls that run or wait, on average.
    pub in_flight: Option<f64>,
    /// The share of its cache in use, at most.
    pub kv_share_max: Option<f64>,
    /// Tokens that fit into its cache.
    pub kv_tokens: Option<u64>,
    /// Sequences that its engine runs at once at most.
    pub max_num_seqs: u64,
    /// Seconds to the first token, of the class that is promised least; none where prompts are read elsewhere.
    pub ttft_s: Option<f64>,
    /// Seconds between tokens, of the class that is promised least.
    pub tpot_s: Option<f64>,
    /// Seconds to the last token, of the class that is promised least.
    pub e2e_s: Option<f64>,
    /// Seconds in which nine starts in ten are ready.
    pub startup_p90_s: f64,
    /// What comes to it in the hour that is planned for, class by class.
    pub classes: Vec<LineClass>,
}

/// What a class sends to a pool in the hour that is planned for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineClass {
    /// The class.
    pub class: String,
    /// The share of its calls that go there; none where the stage of a task decides.
    pub share: Option<f64>,
    /// Calls a second of the class, wherever they go.
    pub calls_per_s: f64,
    /// Prompt tokens of a call on average, cached ones included.
    pub prompt_tokens: f64,
    /// Of those, tokens that are not cached.
    pub fresh_tokens: f64,
    /// Output tokens of a call on average.
    pub output_tokens: f64,
}

/// The lines of pools that were sized.
pub(crate) fn pool_lines(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
) -> Vec<PoolLine> {
    let fleet = &asked.fleet;
    let of_pool = |(pool, size): (usize, &PoolSize)| {
        let decodes =
            fleet.pools.iter().any(|o| o.life.hands_over.is_some_and(|over| over.to == pool));
        let own: Vec<&SimulatedClass> =
            fleet.classes.iter().filter(|c| pools_serving(c, fleet).contains(&pool)).collect();
        let least = |of: &dyn Fn(&SimulatedClass) -> Option<u64>| {
            own.iter().filter_map(|c| of(c)).min().map(|ps| ps as f64 / 1e12)
        };
        let seen = size.at_line().map(|seen| {
            let result = &seen.pools[pool];
            (result, seen.seconds * f64::from(seen.runs) * result.replicas.max(1) as f64)
        });
        let per_s = |count: u64, time: f64| digits(count as f64 / time);
        PoolLine {
            pool: input.fleet.pools[pool].name.clone(),
            calls_per_s: seen.map(|(result, time)| per_s(result.attempts.sent, time)),
            fresh_tokens_per_s: seen
                .filter(|_| !decodes)
                .map(|(result, time)| per_s(result.prefill_tokens, time)),
            output_tokens_per_s: seen.map(|(result, time)| per_s(result.output_tokens, time)),
            in_flight: seen.map(|(result, _)| {
                digits(result.utilisation.sequences_mean + result.utilisation.waiting_mean)
            }),
            kv_share_max: seen.map(|(result, _)| digits(result.utilisation.kv_max)),
            kv_tokens: seen.map(|(result, _)| result.kv_blocks * result.kv_block_tokens),
            max_num_seqs: fleet.pools[pool].life.limits.max_num_seqs as u64,
            ttft_s: least(&|c| c.sent.good.ttft).filter(|_| !decodes),
            tpot_s: least(&|c| c.sent.good.tpot),
            e2e_s: least(&|c| c.sent.good.e2e),
            startup_p90_s: digits(input.pools[pool].startup_p90_s),
            classes: own.iter().map(|class| line_class(class, pool, fleet, asked)).collect(),
        }
    };
    sizes.iter().enumerate().map(of_pool).collect()
}

fn line_class(
    class: &SimulatedClass,
    pool: usize,
    fleet: &SimulateInput,
    asked: &Asked,
) -> LineClass {
    let call = call_of(class, asked.hour, asked.events);
    let reaches = |mut at: usize| {
        // Whoever reads a prompt may hand it on, at most once round.
        for _ in 0..=fleet.pools.len() {
            if at == pool {
                return true;
            }
            let Some(over) = fleet.pools[at].life.hands_over else { return false };
            at = over.to;
        }
        false
    };
    let staged = class
        .class
        .task
        .routes()
        .iter()
        .any(|route| class.targets.get(usize::from(*route)).is_some_and(Option::is_some));
    let routes = class.sent.routes.iter();
    let share: f64 = routes
        .filter(|route| matches!(route.to, Target::Pool(to) if reaches(to)))
        .map(|route| route.share)
        .sum();
    LineClass {
        class: class.class.name.clone(),
        share: (!staged).then(|| digits(share)),
        calls_per_s: digits(call.per_s),
        prompt_tokens: digits(call.prompt),
        fresh_tokens: digits(call.fresh),
        output_tokens: digits(call.output),
    }
}
