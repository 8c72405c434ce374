//! Components: the parts of a fleet that are nothing to each other.
//!
//! Classes, pools, providers and limited tools that can touch each other are simulated together, all others apart, each for as long as its own demand takes.

use std::sync::Arc;

use plimsoll_sim::{FleetSpec, Good, Incident, Mishap, ProviderSpec, Target};
use plimsoll_stats::{Burst, Dist, Process, Seed, Spacing};
use plimsoll_workload::{Hour, Shift, Task};

use crate::arrivals::{SimulatedClass, ps};
use crate::demand::PoolRouting;
use crate::promise::{ClassTarget, Measure, Promise, counts_turns, promises};
use crate::simulate::SimulateInput;
use crate::smear::Spread;

/// What is asked of a fleet: one hour of its demand.
#[derive(Clone, Copy)]
pub struct LoadQuestion<'a> {
    /// The fleet, with the replicas that it has. Nothing fails by chance, and none come or go.
    pub fleet: &'a SimulateInput,
    /// What each class is promised.
    pub targets: &'a [ClassTarget],
    /// The hour whose demand is asked for.
    pub hour: usize,
    /// Whether events count.
    pub events: bool,
    /// What the fleet has lost, all along.
    pub lost: &'a [Mishap],
}

/// Replicas of each pool that is not being sized: enough that it never queues.
pub const UNSIZED_POOL_REPLICAS: u32 = 64;

/// How long something is lost that is lost all along.
const ALL_ALONG_S: f64 = 1e7;

/// What decides what a component does, but its replicas and its load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// All classes of the fleet, each with one hour; those of other components without demand.
    pub(crate) classes: Vec<SimulatedClass>,
    /// The fleet; how many replicas a pool has is said apart.
    pub(crate) fleet: FleetSpec,
    pub(crate) promises: Vec<Promise>,
    pub(crate) seed: Seed,
    /// How gaps vary around what steps explain, by pool, where a promise is about them.
    pub(crate) spreads: Vec<Spread>,
}

/// A part of a fleet that nothing outside of it touches.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    /// Its pools and providers, by name.
    pub(crate) name: String,
    /// Its classes, by their places in the fleet.
    pub(crate) members: Vec<usize>,
    pub(crate) pools: Vec<usize>,
    pub(crate) part: Arc<Part>,
    /// Replicas of each pool of the fleet.
    pub(crate) replicas: Vec<u32>,
    /// The classes with their bursts taken out: what is left of them between two.
    pub(crate) calm: Vec<SimulatedClass>,
    /// Classes that come in bursts.
    pub(crate) bursts: Vec<(usize, Burst)>,
    /// Classes that are dumped, every so many seconds.
    pub(crate) dumps: Vec<(usize, f64)>,
}

/// The pools that serve a class, prefill and decode pools included; fallbacks excluded.
pub fn pools_serving(class: &SimulatedClass, fleet: &SimulateInput) -> Vec<usize> {
    let routes = class.sent.routes.iter().map(|route| route.to);
    let stages = class.class.task.routes();
    let stages =
        stages.iter().filter_map(|r| class.targets.get(usize::from(*r)).copied().flatten());
    let mut pools: Vec<usize> = Vec::new();
    for target in routes.chain(stages) {
        let Target::Pool(mut pool) = target else { continue };
        while !pools.contains(&pool) {
            pools.push(pool);
            let Some(over) = fleet.pools[pool].life.hands_over else { break };
            pool = over.to;
        }
    }
    pools.sort_unstable();
    pools
}

/// What of each class comes to each pool, prefill and decode pools included; fallbacks and shifts excluded.
pub fn pool_routing(fleet: &SimulateInput) -> Vec<PoolRouting> {
    // The pools that a call passes when it is sent to one.
    let passes = |target: Target| -> Vec<usize> {
        let Target::Pool(mut pool) = target else { return Vec::new() };
        let mut pools = Vec::new();
        while !pools.contains(&pool) {
            pools.push(pool);
            let Some(over) = fleet.pools[pool].life.hands_over else { break };
            pool = over.to;
        }
        pools
    };
    let of_pool = |pool: usize| {
        let shares = fleet.classes.iter().map(|class| {
            let routes = class.sent.routes.iter().filter(|route| passes(route.to).contains(&pool));
            let plain: f64 = routes.map(|route| route.share).sum();
            let mut stages = class.class.task.routes();
            stages.sort_unstable();
            stages.dedup();
            let stages = stages.into_iter().map(|stage| {
                let target = class.targets.get(usize::from(stage)).copied().flatten();
                let share = match target {
                    Some(target) => f64::from(u8::from(passes(target).contains(&pool))),
                    None => plain,
                };
                (Some(stage), share)
            });
            // A stage that goes elsewhere is listed, too: its calls are not those of the class's own way.
            [(None, plain)].into_iter().chain(stages).collect()
        });
        let receives = fleet.pools.iter().any(|p| p.life.hands_over.is_some_and(|o| o.to == pool));
        PoolRouting {
            pool: fleet.pools[pool].name.clone(),
            shares: shares.collect(),
            prompts: !receives,
            outputs: fleet.pools[pool].life.hands_over.is_none(),
        }
    };
    (0..fleet.pools.len()).map(of_pool).collect()
}

/// The part of a demand that comes to one pool, which has to carry it by itself: every other pool and provider and the links serve without limit, fallbacks and shifts are off.
/// Classes that do not come there keep their places, without demand.
pub fn isolated(question: &LoadQuestion<'_>, pool: usize) -> SimulateInput {
    let mut fleet = question.fleet.clone();
    let serves: Vec<Vec<usize>> =
        fleet.classes.iter().map(|class| pools_serving(class, question.fleet)).collect();
    let keep: Vec<bool> = serves.iter().map(|pools| pools.contains(&pool)).collect();
    for (class, keep) in fleet.classes.iter_mut().zip(&keep) {
        if !keep {
            class.class.task = Task::steps(Vec::new());
            class.class.hours = Vec::new();
            class.sent.routes.clear();
        }
    }
    for class in &mut fleet.classes {
        for route in &mut class.sent.routes {
            route.fallback.clear();
            route.shift = None;
        }
        // What goes to a provider is not the pool's to answer for.
        let own: f64 = class
            .sent
            .routes
            .iter()
            .filter(|route| matches!(route.to, Target::Pool(_)))
            .map(|route| route.share)
            .sum();
        if own > 0.0 {
            class.sent.routes.retain(|route| matches!(route.to, Target::Pool(_)));
            class.sent.routes.iter_mut().for_each(|route| route.share /= own);
            class.class.hours.iter_mut().for_each(|hour| hour.rate *= own.min(1.0));
        }
    }
    // Stages that go to a provider are answered at once, and always.
    fleet.providers.iter_mut().for_each(|(_, provider)| *provider = unlimited());
    let met: Vec<usize> =
        serves.iter().zip(&keep).filter(|(_, keep)| **keep).flat_map(|(s, _)| s.clone()).collect();
    for (i, other) in fleet.pools.iter_mut().enumerate() {
        if let Some(over) = &mut other.life.hands_over {
            (over.per_token, over.per_call, over.window) = (0, 0, None);
        }
        if i != pool {
            // Pools without traffic get no replicas.
            let many = UNSIZED_POOL_REPLICAS.max(other.life.replicas.saturating_mul(16));
            other.life.replicas = if met.contains(&i) { many } else { 0 };
        }
    }
    fleet
}

/// A provider that answers at once, and always.
fn unlimited() -> ProviderSpec {
    let at_once = Dist::constant(1e-3).unwrap_or_else(|_| unreachable!("a millisecond is a time"));
    ProviderSpec {
        calls: None,
        tokens: None,
        prompt: None,
        output: None,
        at_once: None,
        counts_cached: false,
        reserves: false,
        ttft: at_once.clone(),
        tpot: at_once,
        failure: 0.0,
    }
}

/// An incident that lasts for as long as is simulated.
pub(crate) fn lost_all_along(what: &Mishap) -> Incident {
    Incident { at: 0, lasts: Some(ps(ALL_ALONG_S)), what: what.clone() }
}

/// A forest whose trees are components.
struct Forest(Vec<usize>);

impl Forest {
    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// The components of a fleet that have demand, in the order of their first classes.
pub(crate) fn components(question: &LoadQuestion<'_>) -> Vec<Component> {
    let fleet = question.fleet;
    let (classes, pools, providers) =
        (fleet.classes.len(), fleet.pools.len(), fleet.providers.len());
    let mut forest = Forest((0..classes + pools + providers + fleet.tools.len()).collect());
    let of_target = |target: Target| match target {
        Target::Pool(pool) => classes + pool,
        Target::Provider(provider) => classes + pools + provider,
    };
    for (i, class) in fleet.classes.iter().enumerate() {
        for route in &class.sent.routes {
            forest.join(i, of_target(route.to));
            route.fallback.iter().for_each(|to| forest.join(i, of_target(*to)));
            route.shift.iter().for_each(|(to, _)| forest.join(i, of_target(*to)));
        }
        for stage in class.class.task.routes() {
            if let Some(to) = class.targets.get(usize::from(stage)).copied().flatten() {
                forest.join(i, of_target(to));
            }
        }
        for tool in class.class.task.tools().into_iter().map(usize::from) {
            let limited = fleet
                .tools
                .get(tool)
                .is_some_and(|(_, spec)| spec.at_once.is_some() || spec.between.is_some());
            if limited {
                forest.join(i, classes + pools + providers + tool);
            }
        }
    }
    for (i, pool) in fleet.pools.iter().enumerate() {
        if let Some(over) = pool.life.hands_over {
            forest.join(classes + i, classes + over.to);
        }
    }
    let mut found = Vec::new();
    let roots: Vec<usize> = (0..classes).map(|i| forest.root(i)).collect();
    let mut seen: Vec<usize> = Vec::new();
    for root in roots.iter().copied() {
        if seen.contains(&root) {
            continue;
        }
        seen.push(root);
        let members: Vec<usize> = (0..classes)
            .filter(|i| {
                roots[*i] == root && fleet.classes[*i].rate(question.hour, question.events) > 0.0
            })
            .collect();
        if members.is_empty() {
            continue;
        }
        let own_pools: Vec<usize> =
            (0..pools).filter(|pool| forest.root(classes + pool) == root).collect();
        let own_providers: Vec<usize> =
            (0..providers).filter(|p| forest.root(classes + pools + p) == root).collect();
        found.push(component(question, members, own_pools, own_providers));
    }
    found
}

fn component(
    question: &LoadQuestion<'_>,
    members: Vec<usize>,
    pools: Vec<usize>,
    providers: Vec<usize>,
) -> Component {
    let fleet = question.fleet;
    let lost = question.lost.iter().filter(|what| match what {
        Mishap::Replicas(pool, _) | Mishap::Nodes(pool, _) | Mishap::Zones(pool, _) => {
            pools.contains(pool)
        }
        _ => true,
    });
    let incidents = lost.map(lost_all_along);
    let mut classes = fleet.classes.clone();
    for (i, class) in classes.iter_mut().enumerate() {
        class.call_seconds = 0.0;
        let hour = class.class.hours.get(question.hour).filter(|_| members.contains(&i));
        let (rate, drift) = match hour {
            Some(hour) => {
                let changed = hour.changed(question.events);
                (hour.rate * changed.rate, Shift { rate: 1.0, ..changed })
            }
            None => {
                // What others do is no part of what this component is.
                class.class.process = Process::Flow { spacing: Spacing::Poisson, burst: None };
                class.class.task = Task::steps(Vec::new());
                class.sent = fleet.classes[members[0]].sent.clone();
                class.targets = Vec::new();
                class.finds_prefixes = false;
                (0.0, Shift::NONE)
            }
        };
        class.class.hours = vec![Hour { rate, drift, shift: Shift::NONE }];
    }
    let promised: Vec<Promise> =
        (members.iter().flat_map(|i| promises(*i, &classes[*i].sent.good, &question.targets[*i])))
            .collect();
    let gaps = promised.iter().any(|promise| matches!(promise.of, Measure::Gap(_)));
    let spec = FleetSpec {
        classes: classes.iter().map(|class| class.sent.clone()).collect(),
        pools: fleet
            .pools
            .iter()
            .enumerate()
            .map(|(i, pool)| {
                // Pools of other components keep their places, and have no replicas.
                let stands_in = pools.first().filter(|_| !pools.contains(&i));
                let mut life = stands_in.map_or(&pool.life, |own| &fleet.pools[*own].life).clone();
                (life.scaling, life.replicas) = (None, 0);
                if stands_in.is_some() {
                    life.hands_over = None;
                }
                life
            })
            .collect(),
        // What others do is no part of what this component is.
        providers: (fleet.providers.iter().enumerate())
            .map(|(i, (_, spec))| if providers.contains(&i) { spec.clone() } else { unlimited() })
            .collect(),
        tools: fleet.tools.iter().map(|(_, spec)| spec.clone()).collect(),
        ways: fleet.ways.clone(),
        incidents: incidents.collect(),
        chance: false,
        spent: false,
    };
    let replicas = |(i, pool): (usize, &crate::simulate::SimulatedPool)| {
        if pools.contains(&i) { pool.life.replicas } else { 0 }
    };
    let mut bursts = Vec::new();
    let mut dumps = Vec::new();
    let mut calm = classes.clone();
    for i in members.iter().copied() {
        let own = &mut calm[i].class;
        match own.process.clone() {
            Process::Flow { spacing, burst: Some(burst) } if burst.times() > burst.calm_times() => {
                own.process = Process::Flow { spacing, burst: None };
                own.hours[0].rate *= burst.calm_times();
                bursts.push((i, burst));
            }
            Process::Flow { .. } => {}
            Process::Dumps { every } => {
                // Dumps are no part of the time between them.
                own.hours[0].rate = 0.0;
                dumps.push((i, every));
            }
        }
    }
    let names = pools.iter().map(|pool| fleet.pools[*pool].name.clone());
    let names = names.chain(providers.iter().map(|p| fleet.providers[*p].0.clone()));
    Component {
        name: names.collect::<Vec<_>>().join(" + "),
        replicas: fleet.pools.iter().enumerate().map(replicas).collect(),
        part: Arc::new(Part {
            promises: promised,
            seed: fleet.seed,
            spreads: if gaps {
                fleet.pools.iter().map(|pool| pool.spread.clone()).collect()
            } else {
                Vec::new()
            },
            fleet: spec,
            classes,
        }),
        members,
        pools,
        calm,
        bursts,
        dumps,
    }
}

impl Component {
    /// The same with other numbers of replicas.
    pub(crate) fn with_replicas(&self, pool: usize, replicas: u32) -> Self {
        let mut other = self.clone();
        other.replicas[pool] = replicas;
        other
    }

    /// The fleet as it runs.
    pub(crate) fn fleet(&self) -> FleetSpec {
        let mut fleet = self.part.fleet.clone();
        for (pool, replicas) in fleet.pools.iter_mut().zip(&self.replicas) {
            pool.replicas = *replicas;
        }
        fleet
    }

    /// Tasks of a class that come a second, on average.
    pub(crate) fn rate(&self, class: usize) -> f64 {
        self.part.classes[class].rate(0, false)
    }

    /// Calls of all classes a second, on average.
    pub(crate) fn calls_per_s(&self) -> f64 {
        self.members.iter().map(|i| self.calls_per_s_of(*i)).sum()
    }

    /// Calls of one class a second, on average.
    pub(crate) fn calls_per_s_of(&self, class: usize) -> f64 {
        self.rate(class) * self.calls(class)
    }

    /// Calls of a task.
    pub(crate) fn calls(&self, class: usize) -> f64 {
        self.part.classes[class].class.task.mean_requests().max(1.0)
    }

    /// What is judged of a class a second, on average: tasks, or turns.
    pub(crate) fn units_per_s(&self, class: usize) -> f64 {
        let turns = if counts_turns(&self.part.classes[class]) { self.calls(class) } else { 1.0 };
        self.rate(class) * turns
    }

    /// Of the classes that have thresholds, what is judged of the one that comes least, a second; of all where none has any.
    pub(crate) fn rarest_per_s(&self) -> f64 {
        let with = |i: &&usize| {
            self.part.classes[**i].sent.good != Good::default()
                || self.part.promises.iter().any(|p| p.class == **i && p.key != "attainment")
        };
        let least = |rates: Vec<f64>| rates.into_iter().reduce(f64::min);
        let promised: Vec<f64> =
            self.members.iter().filter(with).map(|i| self.units_per_s(*i)).collect();
        let all = self.members.iter().map(|i| self.units_per_s(*i)).collect();
        least(promised).or_else(|| least(all)).unwrap_or(0.0)
    }

    /// Sequences that its engines run at once.
    pub(crate) fn seats(&self) -> u64 {
        let of = |pool: &usize| {
            (self.part.fleet.pools[*pool].limits.max_num_seqs as u64)
                .saturating_mul(u64::from(self.replicas[*pool]))
        };
        self.pools.iter().map(of).sum()
    }

    /// Whether any of its classes is sent to a provider in the first place.
    pub(crate) fn uses_provider(&self) -> bool {
        self.members.iter().any(|i| {
            let routes = &self.part.classes[*i].sent.routes;
            routes.iter().any(|route| matches!(route.to, Target::Provider(_)))
        })
    }

    /// Whether anything of it may come to a provider or a tool.
    pub(crate) fn is_hosted(&self) -> bool {
        let hosted = |target: &Target| matches!(target, Target::Provider(_));
        self.members.iter().any(|i| {
            let class = &self.part.classes[*i];
            let routed = class.sent.routes.iter().any(|route| {
                hosted(&route.to)
                    || route.fallback.iter().any(hosted)
                    || route.shift.iter().any(|(to, _)| hosted(to))
            });
            routed
                || class.targets.iter().flatten().any(hosted)
                || !class.class.task.tools().is_empty()
        })
    }

    /// Its classes, each by itself and so seldom that none is in another's way: so many tasks of each a second.
    pub(crate) fn alone(&self, tasks_per_s: f64) -> Vec<SimulatedClass> {
        let mut classes = self.part.classes.clone();
        for i in self.members.iter().copied() {
            let class = &mut classes[i].class;
            class.process = Process::Flow { spacing: Spacing::Poisson, burst: None };
            class.hours[0].rate = tasks_per_s;
        }
        classes
    }
}
