//! From what the file says to what one replica of a pool is sent.

use plimsoll_fleet::Engine;
use plimsoll_perf::{Rates, RequestPath, StepModel};
use plimsoll_sim::{Kv, Limits, Queue, Speculation};
use plimsoll_study::{
    Decides, Fit, PoolSteps, SimulatedClass, SimulatedPool, Spread, Thresholds,
    asks_for_whole_prompts,
};
use plimsoll_workload::Growth;

use crate::demand::Demand;
use crate::fit::serves;
use crate::sections::{self, Pool, Scenario};

/// The classes of a pool as one of its replicas gets them, and what the reader should know of that. Each replica gets an equal share of the tasks. Whether the pool
/// caches prefixes, and whether that can be simulated, decides what becomes of hits.
pub fn simulated_classes(
    scenario: &Scenario,
    pool: &Pool,
    demand: &Demand,
    (caches, simulates): (bool, bool),
) -> (Vec<SimulatedClass>, Vec<String>) {
    let replicas = pool.replicas.now().max(1) as f64;
    let served = scenario.class.iter().filter(|c| serves(scenario, pool, c.name.as_str()));
    let most = served.map(|c| c.priority.get()).max().unwrap_or(0);
    let (mut classes, mut notes) = (Vec::new(), Vec::new());
    for class in &demand.classes {
        let Some(own) = scenario.class.iter().find(|c| c.name.as_str() == class.name) else {
            continue;
        };
        if !serves(scenario, pool, &class.name) {
            continue;
        }
        // A hit rate that is given is believed; otherwise what prompts have in common is looked for.
        let shares = class.task.growth() != Growth::Nothing || own.samples.get() > 1;
        let finds_prefixes = caches && simulates && shares && states_no_hits(own);
        let name = &class.name;
        if finds_prefixes {
            notes.push(format!(
                "the prefix cache is simulated for the growing contexts of `{name}`"
            ));
        } else if !states_no_hits(own) && !caches {
            notes.push(format!(
                "pool `{}` caches no prefixes: the hits that `{name}` states do not happen",
                pool.name.as_str()
            ));
        } else if !states_no_hits(own) {
            notes.push(format!("the cache hits of `{name}` are those its class states"));
        }
        if own.cancellation.is_some() {
            notes.push(format!("users of `{name}` who leave before the end are not simulated"));
        }
        if !class.task.is_one_request() || own.samples.get() > 1 {
            notes.push(format!("`{name}` is counted by request, each sample as one, not by task"));
        }
        if own.retries.is_some() {
            notes.push(format!("clients of `{name}` do not come again here when they fail"));
        }
        classes.push(SimulatedClass {
            class: class.clone(),
            share: share(scenario, pool, name) / replicas,
            rank: u32::try_from(most - own.priority.get()).unwrap_or(u32::MAX),
            deadline: own.deadline.map(|d| d.get()),
            slo: Thresholds {
                ttft: own.slo.ttft.map(|t| t.get()),
                tpot: own.slo.tpot.map(|t| t.get()),
                e2e: own.slo.e2e.map(|t| t.get()),
                gap: own.slo.gap.map(|t| t.get()),
            },
            finds_prefixes,
            hits: caches,
            max_model_len: u64::MAX,
            states_limit: false,
        });
    }
    if classes.iter().any(|c| c.rank != 0) {
        notes.push(format!("pool `{}` serves by priority, which vLLM does only where it is told to (`--scheduling-policy priority`)", pool.name.as_str()));
    }
    if pool.replicas.now() == 0 {
        notes.push(format!(
            "pool `{}` has no replica today; one is simulated with all of its demand",
            pool.name.as_str()
        ));
    }
    (classes, notes)
}

fn states_no_hits(class: &sections::Class) -> bool {
    class.cache_hit.get() == 0.0 && class.stages.iter().all(|s| s.cache_hit.is_none())
}

/// The share of a class that routes send to a pool.
fn share(scenario: &Scenario, pool: &Pool, class: &str) -> f64 {
    if scenario.route.is_empty() {
        return 1.0;
    }
    let takes = |route: &&sections::Route| {
        route.to.as_str() == pool.name.as_str()
            && (route.class.is_empty() || route.class.iter().any(|c| c.as_str() == class))
    };
    scenario.route.iter().filter(takes).map(|route| route.share.get()).sum()
}

/// Step times of a pool, and how gaps spread around them.
pub struct SimulatedTimes {
    /// What its steps make a device do.
    pub steps: PoolSteps,
    /// Its constants.
    pub rates: Rates,
    /// The spread.
    pub spread: Spread,
}

/// One replica of a pool as it is simulated, and what the reader should know of that.
pub fn simulated_pool(
    pool: &Pool,
    engine: &Engine,
    budget: &Fit,
    times: SimulatedTimes,
    mut classes: Vec<SimulatedClass>,
) -> (SimulatedPool, Vec<String>) {
    let (name, mut notes) = (pool.name.as_str(), Vec::new());
    let decides = match engine.name.as_str() {
        "sglang" => Decides::Sglang,
        "tensorrt-llm" => Decides::TensorRt,
        "vllm" => Decides::Vllm,
        other => {
            notes.push(format!(
                "pool `{name}`: how {other} schedules is not known; it is taken to decide as vLLM"
            ));
            Decides::Vllm
        }
    };
    classes.iter_mut().for_each(|class| class.max_model_len = budget.max_model_len_tokens);
    if decides != Decides::Vllm {
        classes.iter_mut().for_each(|class| class.states_limit = true);
        notes.push(format!(
            "pool `{name}`: clients state as `max_tokens` the longest output of 4,096 tasks, which {} reserves room by",
            engine.name
        ));
    }
    let copies = pool.data_parallel.get();
    if copies > 1 {
        notes.push(format!(
            "pool `{name}`: its {copies} copies of the attention are taken as one engine"
        ));
    }
    let vllm = engine.name == "vllm";
    let version = engine.since.to_string();
    // vLLM keeps one block for nobody.
    let blocks = budget.kv.blocks.saturating_mul(copies).saturating_sub(u64::from(vllm));
    let limits = Limits {
        prefix_cache: budget.prefix_caching && classes.iter().any(|c| c.finds_prefixes),
        asynchronous: engine.async_scheduling != Some(false),
        whole_prompts: vllm && asks_for_whole_prompts(&version),
        speculation: pool.speculation.as_ref().map(|s| Speculation {
            drafts: s.tokens.get(),
            accept_thousandths: (s.accept_length.get() * 1000.0).round().clamp(1000.0, 1e6) as u64,
        }),
        max_model_len: budget.max_model_len_tokens,
        ..Limits::new(
            usize::try_from(budget.max_num_seqs.saturating_mul(copies)).unwrap_or(usize::MAX),
            budget.max_num_batched_tokens.saturating_mul(copies),
            Kv { blocks, ..budget.kv },
        )
    };
    if let Some(s) = &pool.speculation {
        notes.push(format!(
            "pool `{name}`: every step yields {} tokens a sequence on average; what guessing itself takes is not counted",
            s.accept_length.get()
        ));
    }
    let SimulatedTimes { steps, rates, spread } = times;
    let simulated = SimulatedPool {
        name: name.to_owned(),
        replicas: pool.replicas.now(),
        classes,
        decides,
        model: StepModel::new(&steps.work, &rates, limits.max_num_batched_tokens),
        limits,
        bandwidth: steps.sheet.bandwidth,
        peak: steps.sheet.peak,
        work: steps.work,
        path: RequestPath::of(&rates, 1.0),
        queue: Queue {
            requests: pool.queue.as_ref().and_then(|q| q.requests.map(|n| n.get())),
            tokens: pool.queue.as_ref().and_then(|q| q.tokens.map(|n| n.get())),
        },
        spread,
    };
    (simulated, notes)
}
