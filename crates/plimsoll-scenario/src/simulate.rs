//! From what the file says to what one replica of a pool is sent.

use plimsoll_study::{SimulatedClass, Thresholds};

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
    let most = scenario.class.iter().map(|c| c.priority.get()).max().unwrap_or(0);
    let (mut classes, mut notes) = (Vec::new(), Vec::new());
    for class in &demand.classes {
        let Some(own) = scenario.class.iter().find(|c| c.name.as_str() == class.name) else {
            continue;
        };
        if !serves(scenario, pool, &class.name) {
            continue;
        }
        // A hit rate that is given is believed; otherwise what prompts have in common is looked for.
        let shares =
            class.task.growth() != plimsoll_workload::Growth::Nothing || own.samples.get() > 1;
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
    if pool.queue.as_ref().is_some_and(|q| q.tokens.is_some()) {
        notes.push(format!("`queue.tokens` of pool `{}` is not held against", pool.name.as_str()));
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
