//! What to watch, first things first: what shows trouble before users do.

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::{self, Reporter, Signal as Counted};

use super::Watch;
use crate::plan::Plan;
use crate::scaling::ScalingSignal;

/// What the engine of a pool calls things, by its version.
struct Names {
    reporter: Reporter,
    version: Option<Version>,
}

impl Names {
    fn of(plan: &Plan, pool: &str) -> Self {
        let engine = plan.pools.iter().find(|own| own.name == pool).map_or("", |own| &own.engine);
        let (name, version) = engine.split_once('@').map_or((engine, None), |(n, v)| (n, Some(v)));
        Self {
            reporter: Reporter::named(name).unwrap_or(Reporter::Vllm),
            version: version.and_then(|version| version.parse().ok()),
        }
    }

    fn name(&self, signal: Counted) -> Option<String> {
        let own = metrics::names(self.reporter, signal, self.version).next()?;
        let labels: Vec<String> =
            own.matches.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        Some(format!("{}{labels}", own.name))
    }

    /// Prompt tokens that are computed: counted as such, or all less the cached ones.
    fn fresh(&self) -> Option<String> {
        self.name(Counted::FreshTokens).or_else(|| {
            let cached =
                self.name(Counted::CachedTokens).or_else(|| self.name(Counted::CacheHits))?;
            Some(format!("{} less {cached}", self.name(Counted::PromptTokens)?))
        })
    }

    fn in_flight(&self) -> Option<String> {
        Some(format!("{} + {}", self.name(Counted::Running)?, self.name(Counted::Waiting)?))
    }
}

/// What to watch, and where to act.
pub(super) fn signals(plan: Option<&Plan>) -> Vec<Watch> {
    let Some(plan) = plan else { return Vec::new() };
    let mut all = Vec::new();
    for limits in &plan.limits {
        all.push(Watch {
            signal: "queue_wait".to_owned(),
            of: Some(limits.pool.clone()),
            threshold: limits.queue_age.value,
            unit: limits.queue_age.unit,
            metric: Names::of(plan, &limits.pool).name(Counted::QueueTime),
            means: "requests wait before an engine begins with them: the first thing to grow as the load line comes near".to_owned(),
            action: "turn away or shift load at the gateway, then add replicas".to_owned(),
        });
    }
    for limits in &plan.limits {
        all.push(Watch {
            signal: "allocation_failures".to_owned(),
            of: Some(limits.pool.clone()),
            threshold: Some(0.0),
            unit: "preemptions/s",
            metric: Names::of(plan, &limits.pool).name(Counted::Preemptions),
            means: "an engine found no block for a sequence and threw its work away: more is resident than was planned for".to_owned(),
            action: "let fewer sequences or shorter contexts in; look at the share of caches in use".to_owned(),
        });
    }
    for policy in &plan.scaling.policies {
        let called = Names::of(plan, &policy.pool);
        for own in &policy.thresholds {
            let (signal, metric, means) = match own.signal {
                ScalingSignal::FreshTokens => (
                    "fresh_tokens",
                    called.fresh(),
                    "prompt tokens that must be computed: says how many replicas are needed whatever there are",
                ),
                ScalingSignal::InFlight => (
                    "in_flight",
                    called.in_flight(),
                    "calls that run or wait: grows with load and with how long each takes",
                ),
                ScalingSignal::QueueDepth => (
                    "queue_depth",
                    called.name(Counted::Waiting),
                    "calls that wait: replicas are too few already",
                ),
                ScalingSignal::TtftP90 => (
                    "ttft_p90",
                    called.name(Counted::Ttft),
                    "users wait for the first token: late, and after the queue",
                ),
                ScalingSignal::Kv => (
                    "kv_in_use",
                    called.name(Counted::KvShare),
                    "a guard and no signal of demand: it cannot go beyond one",
                ),
            };
            all.push(Watch {
                signal: signal.to_owned(),
                of: Some(policy.pool.clone()),
                threshold: own.value,
                unit: own.unit,
                metric,
                means: means.to_owned(),
                action: own.why.clone(),
            });
        }
    }
    if !plan.limits.is_empty() {
        all.push(Watch {
            signal: "ttft_up_itl_flat".to_owned(),
            of: None,
            threshold: None,
            unit: "",
            metric: None,
            means: "TTFT rises and ITL stays: requests wait in line or prompts grew, and engines that run are not slower. Look at queue wait, fresh tokens and cache hits".to_owned(),
            action: "more replicas, a bounded queue, or the cache that was lost".to_owned(),
        });
        all.push(Watch {
            signal: "itl_up_ttft_flat".to_owned(),
            of: None,
            threshold: None,
            unit: "",
            metric: None,
            means: "ITL rises and TTFT stays: batches are wide or contexts long, or prompts are read between tokens. Nobody waits in line yet".to_owned(),
            action: "fewer sequences at once, a smaller token budget of a step, or prompts read elsewhere".to_owned(),
        });
    }
    all
}
