//! From what the file says to the fleet that is simulated.

mod scaling;

use plimsoll_fleet::{Catalog, Engine};
use plimsoll_perf::{ContextBytes, Rates, RequestPath, StepModel};
use plimsoll_sim::{
    ClassSpec, Domain, EngineKind, Good, HandOver, Incident, Judged, Kv, Limits, Mishap, Phase,
    PoolSpec, ProviderSpec, Queue, RetrySpec, RouteSpec, Routing, Speculation, Spot, StartupSpec,
    Target, ToolSpec,
};
use plimsoll_study::{
    ClassTarget, Fit, Percentile, PoolSteps, SimulatedClass, SimulatedPool, Spell, Spread, Surge,
    Tail, TailMetric, asks_for_whole_prompts,
};
use plimsoll_units::{PerSecond, Seconds};
use plimsoll_workload::Growth;

use crate::demand::{Demand, route_number};
use crate::sections::{self, IncidentKind, Pool, Role, Router, Scenario};

/// Whole picoseconds.
fn ps(time: Seconds) -> u64 {
    (time.get() * 1e12).round() as u64
}

/// Step times of a pool, and how gaps spread around them.
pub struct SimulatedTimes {
    /// What its steps make a device do.
    pub steps: PoolSteps,
    /// Its constants.
    pub rates: Rates,
    /// The spread.
    pub spread: Spread,
    /// What it keeps of a context.
    pub context: ContextBytes,
}

/// A pool as it is simulated, and what the reader should know of that. Where its replicas follow the demand, and where it hands over, is said by
/// [`simulated_fleet`]. The devices of its nodes are those of its instance, where it has one.
pub fn simulated_pool(
    scenario: &Scenario,
    pool: &Pool,
    engine: &Engine,
    budget: &Fit,
    node_devices: Option<u32>,
    times: SimulatedTimes,
) -> (SimulatedPool, Vec<String>) {
    let (name, mut notes) = (pool.name.as_str(), Vec::new());
    let kind = match engine.name.as_str() {
        "sglang" => EngineKind::Sglang,
        "tensorrt-llm" => EngineKind::TensorRt,
        "vllm" => EngineKind::Vllm,
        other => {
            notes.push(format!(
                "pool `{name}`: how {other} schedules is not known; it is taken to decide as vLLM"
            ));
            EngineKind::Vllm
        }
    };
    if budget.prefix_caching && kind != EngineKind::Vllm {
        notes.push(format!(
            "pool `{name}`: the prefix cache of {} is not simulated, only hits that classes state count",
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
        prefix_cache: budget.prefix_caching && kind == EngineKind::Vllm,
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
    if pool.price_mode == sections::PriceMode::Spot && pool.spot.is_none() {
        notes.push(format!(
            "pool `{name}` is paid as spot, but nobody reclaims its devices: `spot = {{ reclaimed_every = … }}` says how often"
        ));
    }
    let SimulatedTimes { steps, rates, spread, context } = times;
    let model = StepModel::new(&steps.work, &rates, limits.max_num_batched_tokens);
    let startup = &pool.startup;
    let slow = 1.0 / startup.slow_factor.get();
    let new_for = ps(startup.slow_for);
    let per_node = per_node(node_devices, budget.devices);
    let life = PoolSpec {
        limits,
        model_when_new: (slow > 1.0 && new_for > 0).then(|| model.clone().slower(slow)),
        model,
        engine: kind,
        caches: budget.prefix_caching,
        new_for,
        path: RequestPath::of(&rates, 1.0),
        queue: Queue {
            requests: pool.queue.as_ref().and_then(|q| q.requests.map(|n| n.get())),
            tokens: pool.queue.as_ref().and_then(|q| q.tokens.map(|n| n.get())),
        },
        routing: match pool.router {
            Router::RoundRobin => Routing::RoundRobin,
            Router::Random => Routing::Random,
            Router::LeastOutstanding => Routing::LeastOutstanding,
            Router::LeastKv => Routing::LeastKv,
            Router::PrefixAffinity => Routing::PrefixAffinity { slack: pool.affinity_slack.get() },
            Router::Session => Routing::Session,
        },
        staleness: ps(pool.router_staleness),
        replicas: u32::try_from(pool.replicas.now()).unwrap_or(u32::MAX),
        regions: regions_of(scenario, pool),
        domain: domain(scenario, pool, per_node),
        per_node,
        zones: zones(pool),
        between_failures: pool.time_between_failures.get(),
        repair: ps(pool.time_to_repair),
        startup: startup_of(startup),
        drain: ps(pool.drain),
        spot: pool.spot.as_ref().map(|spot| Spot {
            reclaimed_every: spot.reclaimed_every.get(),
            notice: ps(spot.notice),
        }),
        scaling: None,
        hands_over: hands_over(scenario, pool, &context),
    };
    let simulated = SimulatedPool {
        name: name.to_owned(),
        devices: budget.devices,
        bandwidth: steps.sheet.bandwidth,
        peak: steps.sheet.peak,
        work: steps.work,
        spread,
        life,
    };
    (simulated, notes)
}

/// What a pool hands over to which, by its place in the file. A link is shared: every number goes over it once, whichever devices have it.
fn hands_over(scenario: &Scenario, pool: &Pool, context: &ContextBytes) -> Option<HandOver> {
    let over = pool.disaggregation.as_ref().filter(|_| pool.role == Role::Prefill)?;
    let to = scenario.pool.iter().position(|p| p.name.as_str() == over.decode.as_str())?;
    Some(hand_over(to, context, over.link.get()))
}

/// What is handed over to a pool, over a link of so many bytes a second.
pub fn hand_over(to: usize, context: &ContextBytes, link: f64) -> HandOver {
    let time = |bytes: f64| (bytes / link * 1e12).ceil() as u64;
    HandOver {
        to,
        per_token: time(context.token),
        // Of several windows all are taken to be as long as the longest: rather too many bytes than too few.
        window: context
            .windows
            .iter()
            .map(|(last, _)| *last)
            .max()
            .map(|last| (last, time(context.windows.iter().map(|(_, bytes)| bytes).sum()))),
        per_call: time(context.state),
    }
}

/// Where replicas are spread over zones and nobody says over how many, it is as many as large regions have.
const ZONES: u32 = 3;
/// Devices of a node, where nothing else is known: those of most servers.
const NODE_DEVICES: u32 = 8;
/// Nodes that share a rack.
const RACK_NODES: u32 = 4;

/// Replicas of so many devices each on one node: one at least, however many nodes that takes.
fn per_node(node_devices: Option<u32>, devices: u64) -> u32 {
    let devices = u32::try_from(devices).unwrap_or(u32::MAX).max(1);
    (node_devices.unwrap_or(NODE_DEVICES) / devices).max(1)
}

/// Zones of each region.
fn zones(pool: &Pool) -> u32 {
    let own = pool.domains.filter(|_| pool.failure_domain == sections::Domain::Zone);
    own.map_or(ZONES, |n| n.get_u32())
}

fn domain(scenario: &Scenario, pool: &Pool, per_node: u32) -> Domain {
    if let Some(domains) = pool.domains.filter(|_| pool.failure_domain != sections::Domain::Zone) {
        // As many in each of its regions, rounded up: none is in two.
        let regions = regions_of(scenario, pool).len() as u32;
        return Domain::Spread(domains.get_u32().div_ceil(regions));
    }
    match pool.failure_domain {
        sections::Domain::Replica => Domain::Group(1),
        sections::Domain::Node => Domain::Group(per_node),
        sections::Domain::Rack => Domain::Group(per_node * RACK_NODES),
        sections::Domain::Zone => Domain::Spread(zones(pool)),
    }
}

fn regions_of(scenario: &Scenario, pool: &Pool) -> Vec<usize> {
    let at = |name: &str| scenario.region.iter().position(|r| r.name.as_str() == name);
    let own: Vec<usize> = pool.regions.iter().filter_map(|r| at(r.as_str())).collect();
    if own.is_empty() { vec![0] } else { own }
}

fn startup_of(startup: &sections::Startup) -> StartupSpec {
    let phase = |seconds: &crate::Spread<Seconds>, done: f64| Phase {
        seconds: seconds.dist().clone(),
        done,
        seconds_when_done: None,
    };
    StartupSpec {
        phases: vec![
            phase(&startup.node, startup.node_ready.get()),
            phase(&startup.image, startup.image_cached.get()),
            phase(&startup.process, 0.0),
            Phase {
                seconds_when_done: Some(startup.weights_from_cache.dist().clone()),
                ..phase(&startup.weights, startup.weights_cached.get())
            },
            phase(&startup.compile, startup.compile_cached.get()),
            phase(&startup.warm_up, 0.0),
        ],
        beyond: None,
    }
}

/// A fleet as it is simulated, and what the reader should know of that.
#[derive(Clone, Debug, Default)]
pub struct SimulatedFleet {
    /// Who asks.
    pub classes: Vec<SimulatedClass>,
    /// Engines of one's own.
    pub pools: Vec<SimulatedPool>,
    /// Hosted models.
    pub providers: Vec<(String, ProviderSpec)>,
    /// Tools.
    pub tools: Vec<(String, ToolSpec)>,
    /// Regions.
    pub regions: Vec<String>,
    /// The ways between them.
    pub ways: Vec<Vec<Option<u64>>>,
    /// What goes wrong.
    pub incidents: Vec<Incident>,
    /// When more comes.
    pub surges: Vec<Surge>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// When a simulation takes place.
#[derive(Clone, Debug)]
pub struct SimulatedSpan {
    /// The rates that hold, from the beginning of the warm-up on.
    pub spells: Vec<Spell>,
    /// How long the warm-up takes, in seconds.
    pub warm_up: f64,
    /// How long it counts from then on.
    pub seconds: f64,
}

/// The fleet of a scenario: its simulated pools, each with its place in the file, and who asks what of them. Classes that no simulated pool and no provider serves are left out.
pub fn simulated_fleet(
    scenario: &Scenario,
    catalog: &Catalog,
    demand: &Demand,
    pools: Vec<(usize, SimulatedPool)>,
    with_providers: bool,
    span: &SimulatedSpan,
) -> SimulatedFleet {
    let mut fleet = SimulatedFleet::default();
    let names: Vec<&str> = pools.iter().map(|(i, _)| scenario.pool[*i].name.as_str()).collect();
    let at = |name: &str| names.iter().position(|own| *own == name);
    let target = |name: &str| -> Option<Target> {
        at(name).map(Target::Pool).or_else(|| {
            let provider = scenario.provider.iter().position(|p| p.name.as_str() == name)?;
            with_providers.then_some(Target::Provider(provider))
        })
    };
    if with_providers {
        fleet.providers = scenario.provider.iter().map(provider).collect();
    }
    fleet.tools = scenario.tool.iter().map(tool).collect();
    for (name, _) in &fleet.tools {
        if !scenario.class.iter().any(|class| calls_tool(class, name)) {
            fleet.notes.push(format!("no class calls tool `{name}`"));
        }
    }
    places(scenario, &mut fleet);
    // In the order of numbers that calls know them by.
    let all = scenario.pool.iter().map(|p| p.name.as_str());
    let all = all.chain(scenario.provider.iter().map(|p| p.name.as_str()));
    let targets: Vec<Option<Target>> = all.map(target).collect();
    let simulated: Vec<&SimulatedPool> = pools.iter().map(|(_, pool)| pool).collect();
    let most = scenario.class.iter().map(|c| c.priority.get()).max().unwrap_or(0);
    let mut ranked = false;
    for class in &demand.classes {
        let Some(own) = scenario.class.iter().find(|c| c.name.as_str() == class.name) else {
            continue;
        };
        let (mut routes, share) = routes(scenario, own, &target);
        stay_home(scenario, own, &mut routes, &simulated, &mut fleet.notes);
        ways_back(scenario, own, &routes, &simulated, &mut fleet);
        if routes.is_empty() {
            fleet.notes.push(format!("class `{}` goes nowhere that is simulated", class.name));
            continue;
        }
        let served = || {
            let of = |t: Target| match t {
                Target::Pool(pool) => Some(simulated[pool]),
                Target::Provider(_) => None,
            };
            routes.iter().filter_map(move |r| of(r.to))
        };
        let mut class = class.clone();
        if share < 1.0 {
            class.hours.iter_mut().for_each(|hour| hour.rate *= share);
            fleet.notes.push(format!(
                "only {} of class `{}` goes to what is simulated",
                percent(share),
                class.name
            ));
        }
        // A hit rate that is given is believed; otherwise what prompts have in common is looked for.
        let shares = class.task.growth() != Growth::Nothing || own.samples.get() > 1;
        let looks = served().any(|pool| pool.life.limits.prefix_cache);
        let caches = served().any(|pool| pool.life.caches) || served().next().is_none();
        let finds_prefixes = looks && shares && states_no_hits(own);
        note_hits(own, (finds_prefixes, caches), &mut fleet.notes);
        let reserves = routes
            .iter()
            .flat_map(|r| std::iter::once(r.to).chain(r.fallback.iter().copied()))
            .any(|t| match t {
                Target::Provider(p) => fleet.providers[p].1.reserves,
                Target::Pool(p) => simulated[p].life.engine != EngineKind::Vllm,
            });
        if reserves {
            fleet.notes.push(format!(
                "clients of `{}` state as `max_tokens` the longest of 8,192 outputs, which is reserved for them",
                class.name
            ));
        }
        ranked |= own.priority.get() != most;
        // That of where most of it goes: engines refuse what is too long for them anyway.
        let largest = routes.iter().rev().max_by(|a, b| a.share.total_cmp(&b.share));
        let longest = largest.and_then(|route| match route.to {
            Target::Pool(pool) => Some(simulated[pool].life.limits.max_model_len),
            Target::Provider(_) => None,
        });
        fleet.classes.push(SimulatedClass {
            class,
            sent: class_spec(scenario, own, routes),
            targets: targets.clone(),
            call_seconds: 0.0,
            rank: u32::try_from(most - own.priority.get()).unwrap_or(u32::MAX),
            finds_prefixes,
            max_model_len: longest.unwrap_or(u64::MAX),
            states_limit: reserves,
        });
    }
    let mut tiers: Vec<String> = scenario.class.iter().map(|c| c.tier.to_string()).collect();
    tiers.sort_unstable();
    tiers.dedup();
    if !ranked && tiers.len() > 1 {
        fleet.notes.push(format!(
            "classes of tiers {} wait in the same lines: only `priority` lets one go first",
            tiers.join(" and ")
        ));
    }
    if ranked {
        fleet.notes.push("classes are served by priority, which vLLM does only where it is told to (`--scheduling-policy priority`)".to_owned());
    }
    incidents(scenario, &names, span, &mut fleet);
    fleet.pools = pools
        .into_iter()
        .map(|(i, mut simulated)| {
            let pool = &scenario.pool[i];
            // From its place in the file to that among those that are simulated.
            simulated.life.hands_over = simulated.life.hands_over.take().and_then(|over| {
                Some(HandOver { to: at(scenario.pool[over.to].name.as_str())?, ..over })
            });
            let quota = scaling::quota(scenario, catalog, pool, simulated.devices);
            simulated.life.startup.beyond = quota.as_ref().filter(|q| q.lead > 0).map(|q| {
                let held = u64::from(simulated.life.replicas);
                (u32::try_from(held + q.free).unwrap_or(u32::MAX), q.lead)
            });
            let (scaling, notes) =
                scaling::of(scenario, demand, pool, &simulated, quota.as_ref(), span);
            simulated.life.scaling = scaling;
            fleet.notes.extend(notes);
            simulated
        })
        .collect();
    fleet
}

fn calls_tool(class: &sections::Class, tool: &str) -> bool {
    let stages = class.stages.iter().filter_map(|stage| stage.tool.as_ref());
    let agent = class.agent.iter().flat_map(|agent| &agent.tools);
    stages.chain(agent).any(|own| own.as_str() == tool)
}

fn states_no_hits(class: &sections::Class) -> bool {
    class.cache_hit.get() == 0.0
        && class.stages.iter().all(|s| s.cache_hit.is_none())
        && class.pairs.iter().all(|p| p.cached.is_none_or(|cached| cached.get() == 0))
}

fn note_hits(class: &sections::Class, (finds, caches): (bool, bool), notes: &mut Vec<String>) {
    let name = class.name.as_str();
    if finds {
        notes.push(format!("the prefix cache is simulated for the growing contexts of `{name}`"));
    } else if !states_no_hits(class) && !caches {
        notes.push(format!(
            "no pool of `{name}` caches prefixes: the hits that it states do not happen"
        ));
    } else if !states_no_hits(class) {
        notes.push(format!("the cache hits of `{name}` are those its class states"));
    }
    if class.sessions.is_some() {
        notes.push(format!("`{name}` is counted by turn: somebody waits for each"));
    }
    if class.agent.as_ref().is_some_and(|agent| !agent.tools.is_empty()) {
        notes.push(format!("between its calls `{name}` waits for its tools, not for `gap`"));
    }
}

/// A share as it is said: in whole percent, but where that would say none or all.
fn percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    if (1.0..=99.0).contains(&whole) {
        format!("{whole}%")
    } else {
        format!("{:.2}%", share * 100.0)
    }
}

/// Where the calls of a class go, as far as that is simulated, by shares of what is; and how much of the class that is.
fn routes(
    scenario: &Scenario,
    class: &sections::Class,
    target: &impl Fn(&str) -> Option<Target>,
) -> (Vec<RouteSpec>, f64) {
    let plain = |to: Target| RouteSpec { to, share: 1.0, fallback: Vec::new(), shift: None };
    if scenario.route.is_empty() {
        let pool = scenario.pool.first().map(|p| p.name.as_str());
        let first = pool.or_else(|| scenario.provider.first().map(|p| p.name.as_str()));
        return (first.and_then(target).map(plain).into_iter().collect(), 1.0);
    }
    let own = scenario.route.iter().filter(|route| {
        route.class.is_empty() || route.class.iter().any(|c| c.as_str() == class.name.as_str())
    });
    let own: Vec<&sections::Route> = own.filter(|route| route.share.get() > 0.0).collect();
    let all: f64 = own.iter().map(|route| route.share.get()).sum();
    let mut routes: Vec<RouteSpec> = own
        .iter()
        .filter_map(|route| {
            Some(RouteSpec {
                to: target(route.to.as_str())?,
                share: route.share.get(),
                fallback: route.fallback.iter().filter_map(|to| target(to.as_str())).collect(),
                shift: route
                    .shift
                    .as_ref()
                    .and_then(|shift| Some((target(shift.to.as_str())?, shift.share.get()))),
            })
        })
        .collect();
    let whole = routes.len() == own.len();
    let sum: f64 = routes.iter().map(|route| route.share).sum();
    routes.iter_mut().for_each(|route| route.share /= sum.max(f64::MIN_POSITIVE));
    (routes, if whole { 1.0 } else { sum / all.max(f64::MIN_POSITIVE) })
}

/// What must not leave its region goes nowhere else, whatever routes say.
fn stay_home(
    scenario: &Scenario,
    class: &sections::Class,
    routes: &mut Vec<RouteSpec>,
    pools: &[&SimulatedPool],
    notes: &mut Vec<String>,
) {
    let Some(tenant) = &class.tenant else { return };
    let bound = scenario.region.iter().position(|region| region.residency.contains(tenant));
    let Some(home) = bound else { return };
    let mut left = Vec::new();
    let mut may = |target: &Target| {
        let at_home = match target {
            Target::Pool(pool) => pools[*pool].life.regions.iter().all(|region| *region == home),
            // Where a provider computes is not said.
            Target::Provider(_) => false,
        };
        if !at_home {
            left.push(*target);
        }
        at_home
    };
    routes.retain_mut(|route| {
        route.fallback.retain(&mut may);
        route.shift = route.shift.filter(|(to, _)| may(to));
        may(&route.to)
    });
    let sum: f64 = routes.iter().map(|route| route.share).sum();
    routes.iter_mut().for_each(|route| route.share /= sum.max(f64::MIN_POSITIVE));
    for target in left {
        let name = match target {
            Target::Pool(pool) => pools[pool].name.as_str(),
            Target::Provider(provider) => scenario.provider[provider].name.as_str(),
        };
        notes.push(format!(
            "the data of `{}` must stay in {}: nothing of class `{}` goes to `{name}`",
            tenant,
            scenario.region[home].name.as_str(),
            class.name.as_str()
        ));
    }
}

/// Where those who fall back, or are sent elsewhere, cannot get: a class with no way to where it goes first is a mistake, these are none.
fn ways_back(
    scenario: &Scenario,
    class: &sections::Class,
    routes: &[RouteSpec],
    pools: &[&SimulatedPool],
    fleet: &mut SimulatedFleet,
) {
    let from = home(scenario, class);
    let mut told: Vec<usize> = Vec::new();
    for route in routes {
        let others = route.fallback.iter().copied().chain(route.shift.map(|(to, _)| to));
        for pool in others.filter_map(|to| match to {
            Target::Pool(pool) => Some(pool),
            Target::Provider(_) => None,
        }) {
            let there = &pools[pool].life.regions;
            if told.contains(&pool) || there.iter().any(|to| fleet.ways[from][*to].is_some()) {
                continue;
            }
            told.push(pool);
            let there: Vec<&str> = there.iter().map(|to| fleet.regions[*to].as_str()).collect();
            fleet.notes.push(format!(
                "class `{}` cannot fall back on `{}`: no `latency_to` leads from {} to {}",
                class.name.as_str(),
                pools[pool].name,
                fleet.regions[from],
                there.join(" or ")
            ));
        }
    }
}

/// The region of a class's users.
fn home(scenario: &Scenario, class: &sections::Class) -> usize {
    let own = class.region.as_ref();
    own.and_then(|own| scenario.region.iter().position(|r| r.name.as_str() == own.as_str()))
        .unwrap_or(0)
}

fn class_spec(scenario: &Scenario, class: &sections::Class, routes: Vec<RouteSpec>) -> ClassSpec {
    ClassSpec {
        region: home(scenario, class),
        routes,
        retries: class.retries.as_ref().map(|r| RetrySpec {
            attempts: r.attempts.get_u32(),
            backoff: ps(r.backoff),
            backoff_max: ps(r.backoff_max),
            jitter: r.jitter.get(),
            budget: r.budget.map(|b| b.get()),
            timeout: r.timeout.map(ps),
        }),
        deadline: class.deadline.map(ps),
        leaves: class.cancellation.as_ref().map(|c| (c.share.get(), c.after.dist().clone())),
        judged: if class.sessions.is_some() {
            Judged::EachTurn
        } else if class.agent.is_some() {
            Judged::FirstCall
        } else {
            Judged::Answer
        },
        good: Good {
            ttft: class.slo.ttft.map(ps),
            tpot: class.slo.tpot.map(ps),
            e2e: class.slo.e2e.map(ps),
            gap: class.slo.gap.map(ps),
        },
    }
}

fn provider(provider: &sections::Provider) -> (String, ProviderSpec) {
    let spec = ProviderSpec {
        calls: provider.rpm.map(|n| n.get()),
        tokens: provider.tpm.map(|n| n.get()),
        prompt: provider.itpm.map(|n| n.get()),
        output: provider.otpm.map(|n| n.get()),
        at_once: provider.concurrency.map(|n| n.get()),
        counts_cached: provider.counts_cached,
        reserves: provider.reserves_max_tokens,
        ttft: provider.ttft.dist().clone(),
        tpot: provider.tpot.dist().clone(),
        failure: provider.failure.get(),
    };
    (provider.name.as_str().to_owned(), spec)
}

fn tool(tool: &sections::Tool) -> (String, ToolSpec) {
    let between = |rate: PerSecond| (1e12 / rate.get()).round() as u64;
    let spec = ToolSpec {
        latency: tool.latency.dist().clone(),
        at_once: tool.concurrency.map(|n| n.get()),
        between: tool.rate_limit.map(between),
        failure: tool.failure.get(),
    };
    (tool.name.as_str().to_owned(), spec)
}

/// Regions, and the ways between them. A scenario without any has one, in which everybody is.
fn places(scenario: &Scenario, fleet: &mut SimulatedFleet) {
    if scenario.region.is_empty() {
        (fleet.regions, fleet.ways) = (vec!["everywhere".to_owned()], vec![vec![Some(0)]]);
        return;
    }
    fleet.regions = scenario.region.iter().map(|r| r.name.as_str().to_owned()).collect();
    fleet.ways = scenario
        .region
        .iter()
        .map(|from| {
            let to = |to: &sections::Region| {
                if to.name.as_str() == from.name.as_str() {
                    return Some(ps(from.latency));
                }
                let further = from.latency_to.get(to.name.as_str())?;
                Some(ps(from.latency).saturating_add(ps(*further)))
            };
            scenario.region.iter().map(to).collect()
        })
        .collect();
}

fn incidents(
    scenario: &Scenario,
    names: &[&str],
    span: &SimulatedSpan,
    fleet: &mut SimulatedFleet,
) {
    let class_at = |name: &str, fleet: &SimulatedFleet| {
        fleet.classes.iter().position(|c| c.class.name == name)
    };
    for incident in &scenario.incident {
        let (name, seconds) = (incident.name.as_str(), span.warm_up + incident.at.get());
        if incident.at.get() >= span.seconds {
            fleet.notes.push(format!(
                "incident `{name}` would begin after {}, when the simulation is over",
                incident.at
            ));
            continue;
        }
        let at = (seconds * 1e12).round() as u64;
        let lasts = incident.lasts.map(ps);
        let pools: Vec<usize> = match &incident.pool {
            Some(pool) => names.iter().position(|own| *own == pool.as_str()).into_iter().collect(),
            None => (0..names.len()).collect(),
        };
        let count = incident.count.get_u32();
        if incident.region.is_some() && incident.kind != IncidentKind::RegionLoss {
            fleet.notes.push(format!(
                "incident `{name}` hits the first replicas of its pools, in whichever region they are"
            ));
        }
        let each = |what: &dyn Fn(usize) -> Mishap| pools.iter().map(|p| what(*p)).collect();
        let what: Vec<Mishap> = match incident.kind {
            IncidentKind::ReplicaLoss => each(&|p| Mishap::Replicas(p, count)),
            IncidentKind::NodeLoss => each(&|p| Mishap::Nodes(p, count)),
            IncidentKind::ZoneLoss => each(&|p| Mishap::Zones(p, count)),
            IncidentKind::Reclaim => each(&|p| Mishap::Reclaim(p, count)),
            IncidentKind::Upgrade => each(&|p| Mishap::Upgrade(p, incident.batch.get_u32())),
            IncidentKind::CacheLoss => each(&Mishap::CacheLoss),
            IncidentKind::RegionLoss => incident
                .region
                .as_ref()
                .and_then(|own| fleet.regions.iter().position(|r| r == own.as_str()))
                .map(Mishap::Region)
                .into_iter()
                .collect(),
            IncidentKind::Outage => {
                let target = incident.target.as_ref().map_or("", |t| t.as_str());
                let provider = fleet.providers.iter().position(|(own, _)| own == target);
                let tool = fleet.tools.iter().position(|(own, _)| own == target);
                let provider = provider.map(Mishap::ProviderOutage);
                provider.into_iter().chain(tool.map(Mishap::ToolOutage)).collect()
            }
            IncidentKind::Surge => {
                let classes: Vec<usize> = if incident.class.is_empty() {
                    (0..fleet.classes.len()).collect()
                } else {
                    incident.class.iter().filter_map(|c| class_at(c.as_str(), fleet)).collect()
                };
                let lasts = incident.lasts.map_or(0.0, |lasts| lasts.get());
                let (from, until) = (seconds, seconds + lasts);
                fleet.surges.push(Surge { from, until, load: incident.load.get(), classes });
                vec![Mishap::Elsewhere]
            }
        };
        if what.is_empty() {
            fleet.notes.push(format!("incident `{name}` hits nothing that is simulated"));
        }
        fleet.incidents.extend(what.into_iter().map(|what| Incident { at, lasts, what }));
    }
}

/// What each simulated class is held to.
pub fn class_targets(scenario: &Scenario, classes: &[SimulatedClass]) -> Vec<ClassTarget> {
    let of = |simulated: &SimulatedClass| {
        let own = scenario.class.iter().find(|c| c.name.as_str() == simulated.class.name)?;
        let slo = &own.slo;
        let tails = [
            ("ttft_p50", TailMetric::Ttft, Percentile::P50, slo.ttft_p50),
            ("ttft_p95", TailMetric::Ttft, Percentile::P95, slo.ttft_p95),
            ("ttft_p99", TailMetric::Ttft, Percentile::P99, slo.ttft_p99),
            ("itl_p95", TailMetric::Itl, Percentile::P95, slo.itl_p95),
            ("itl_p99", TailMetric::Itl, Percentile::P99, slo.itl_p99),
            ("tpot_p95", TailMetric::Tpot, Percentile::P95, slo.tpot_p95),
            ("e2e_p95", TailMetric::E2e, Percentile::P95, slo.e2e_p95),
            ("e2e_p99", TailMetric::E2e, Percentile::P99, slo.e2e_p99),
        ];
        let tail = |(key, metric, percentile, most): (_, _, _, Option<Seconds>)| {
            Some(Tail { key, metric, percentile, most_ms: most?.get() * 1e3 })
        };
        Some(ClassTarget {
            attainment: slo.attainment.unwrap_or(scenario.study.attainment).get(),
            tails: tails.into_iter().filter_map(tail).collect(),
        })
    };
    let fallback =
        || ClassTarget { attainment: scenario.study.attainment.get(), tails: Vec::new() };
    classes.iter().map(|class| of(class).unwrap_or_else(fallback)).collect()
}

/// Whether a pool is one that classes go to, or a part of one, by any route, stage or variant.
pub fn is_reached(scenario: &Scenario, pool: &Pool) -> bool {
    let name = pool.name.as_str();
    let decodes_for = |target: &str| {
        let prefill = scenario.pool.iter().find(|p| p.name.as_str() == target);
        prefill.and_then(|p| p.disaggregation.as_ref()).is_some_and(|d| d.decode.as_str() == name)
    };
    let is = |target: &str| target == name || decodes_for(target);
    let staged = scenario.class.iter().any(|class| {
        let stages = class.stages.iter().filter_map(|s| s.route.as_ref());
        stages.chain(class.variants.iter().filter_map(|v| v.route.as_ref())).any(|t| is(t.as_str()))
    });
    if scenario.route.is_empty() {
        let first = scenario.pool.first().map_or("", |p| p.name.as_str());
        return staged || is(first);
    }
    staged
        || scenario.route.iter().any(|route| {
            let shift = route.shift.as_ref().map(|shift| &shift.to);
            std::iter::once(&route.to).chain(&route.fallback).chain(shift).any(|t| is(t.as_str()))
        })
        || route_number(scenario, name).is_none()
}

/// How long a start of a pool takes, nine times in ten.
pub fn startup_p90(pool: &Pool) -> f64 {
    start_p90(startup_of(&pool.startup))
}

/// The same where whatever can be kept is kept: the node, the image, the weights, what was compiled.
pub fn startup_kept_p90(pool: &Pool) -> f64 {
    let mut spec = startup_of(&pool.startup);
    // The process and its warm-up are not kept by anything.
    for (i, phase) in spec.phases.iter_mut().enumerate() {
        if !matches!(i, 2 | 5) {
            phase.done = 1.0;
        }
    }
    start_p90(spec)
}

fn start_p90(spec: StartupSpec) -> f64 {
    let mut stream = plimsoll_stats::Seed::new(STARTS).stream("startup");
    let start = |_| -> f64 {
        let phases = spec.phases.iter().map(|phase| {
            let done = stream.uniform() < phase.done;
            match (&phase.seconds_when_done, done) {
                (Some(when_done), true) => when_done.sample(&mut stream),
                (None, true) => 0.0,
                (_, false) => phase.seconds.sample(&mut stream),
            }
        });
        phases.sum()
    };
    let starts: Vec<f64> = (0..STARTS).map(start).collect();
    plimsoll_stats::quantile(&starts, 0.9).unwrap_or(0.0)
}

/// Starts that are drawn.
const STARTS: u64 = 4000;
