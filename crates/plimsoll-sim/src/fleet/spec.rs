//! What a fleet consists of, and what happens to it.

use plimsoll_perf::{RequestPath, StepModel};
use plimsoll_stats::Dist;

use crate::autoscale::{Scaling, TargetKind};
use crate::drive::Queue;
use crate::fleet::kind::EngineKind;
use crate::limits::Limits;

/// A fleet, and who asks what of it. Instants and times are in whole picoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetSpec {
    /// Who asks.
    pub classes: Vec<ClassSpec>,
    /// Engines of one's own.
    pub pools: Vec<PoolSpec>,
    /// Hosted models.
    pub providers: Vec<ProviderSpec>,
    /// What tasks call besides models.
    pub tools: Vec<ToolSpec>,
    /// The way from a region's users to each region's replicas, one way; none where it leads nowhere.
    pub ways: Vec<Vec<Option<u64>>>,
    /// What goes wrong, and when.
    pub incidents: Vec<Incident>,
    /// Whether domains fail and replicas are reclaimed by chance.
    pub chance: bool,
    /// Whether providers begin with nothing left of a minute's worth, as where more is asked for than their limits let in.
    pub spent: bool,
}

/// Where a call can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A pool, by its place.
    Pool(usize),
    /// A provider, by its place.
    Provider(usize),
}

/// How tasks of a class are sent, judged and tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSpec {
    /// Where its users are.
    pub region: usize,
    /// Where its calls go; their shares add up to one.
    pub routes: Vec<RouteSpec>,
    /// What clients do when a call fails.
    pub retries: Option<RetrySpec>,
    /// Whoever is not answered by then has no more use for it.
    pub deadline: Option<u64>,
    /// The share of users who leave before the end, and after how many seconds.
    pub leaves: Option<(f64, Dist)>,
    /// What is counted, and by what it is judged.
    pub judged: Judged,
    /// What makes it good.
    pub good: Good,
}

/// A part of a class's calls.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSpec {
    /// Where they go.
    pub to: Target,
    /// How many of them.
    pub share: f64,
    /// Where they go when that is of no use, in order.
    pub fallback: Vec<Target>,
    /// Where some of them go while something is wrong.
    pub shift: Option<(Target, f64)>,
}

/// What clients do when a call fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetrySpec {
    /// Attempts in all.
    pub attempts: u32,
    /// The pause before the second; it doubles from then on.
    pub backoff: u64,
    /// The longest pause.
    pub backoff_max: u64,
    /// The share of each pause that is random.
    pub jitter: f64,
    /// Retries allowed, against first attempts.
    pub budget: Option<f64>,
    /// An attempt that takes longer is given up.
    pub timeout: Option<u64>,
}

/// What is counted, and which first token it is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Tasks, by the first token of their last call, from when they began: what somebody who waits for an answer sees.
    Answer,
    /// Every step by itself: the turns of a conversation.
    EachTurn,
    /// Tasks, by the first token of their first calls and the mean gap of all of them: what somebody who watches an agent work sees.
    FirstCall,
}

/// Bounds that make a task good, each where it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Good {
    /// Its first token.
    pub ttft: Option<u64>,
    /// Its mean gap between tokens.
    pub tpot: Option<u64>,
    /// Its last token.
    pub e2e: Option<u64>,
    /// Its largest gap between tokens.
    pub gap: Option<u64>,
}

/// How calls are spread over the replicas of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// One after the other.
    RoundRobin,
    /// At random.
    Random,
    /// To the one with the fewest calls.
    LeastOutstanding,
    /// To the one with the smallest part of its cache in use.
    LeastKv,
    /// To the one that has most of the prompt in its cache, unless it has so many calls more than the least.
    PrefixAffinity {
        /// So many.
        slack: u64,
    },
    /// What belongs together stays together.
    Session,
}

/// Replicas of one engine.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSpec {
    /// What its engines were started with.
    pub limits: Limits,
    /// Whose decisions they make.
    pub engine: EngineKind,
    /// Whether they cache prefixes: where they do not, hits that somebody states do not happen.
    pub caches: bool,
    /// How long their steps take.
    pub model: StepModel,
    /// The same while they are new, where that differs.
    pub model_when_new: Option<StepModel>,
    /// How long they are new.
    pub new_for: u64,
    /// The servers in front of each engine.
    pub path: RequestPath,
    /// Bounds of each engine's line.
    pub queue: Queue,
    /// How calls are spread.
    pub routing: Routing,
    /// How old the router's view of its replicas is.
    pub staleness: u64,
    /// Replicas at the beginning.
    pub replicas: u32,
    /// Where replicas are, in turn.
    pub regions: Vec<usize>,
    /// What fails together.
    pub domain: Domain,
    /// Replicas on one node.
    pub per_node: u32,
    /// Zones of each region that they are spread over.
    pub zones: u32,
    /// Seconds between failures of one domain, on average.
    pub between_failures: f64,
    /// Until a replica that has failed can start again.
    pub repair: u64,
    /// How long a start takes.
    pub startup: StartupSpec,
    /// The time that a replica has to finish when it is taken away.
    pub drain: u64,
    /// Whether its devices can be taken away.
    pub spot: Option<Spot>,
    /// What decides how many there are.
    pub scaling: Option<ScalingSpec>,
    /// Where its keys and values go, where others generate.
    pub hands_over: Option<HandOver>,
}

impl PoolSpec {
    /// One replica that never fails, with nothing around it but the way in.
    pub fn one(limits: Limits, model: StepModel, path: RequestPath) -> Self {
        Self {
            limits,
            engine: EngineKind::Vllm,
            caches: true,
            model,
            model_when_new: None,
            new_for: 0,
            path,
            queue: Queue::default(),
            routing: Routing::RoundRobin,
            staleness: 0,
            replicas: 1,
            regions: vec![0],
            domain: Domain::Group(1),
            per_node: 1,
            zones: 1,
            between_failures: f64::INFINITY,
            repair: 0,
            startup: StartupSpec { phases: Vec::new(), beyond: None },
            drain: 0,
            spot: None,
            scaling: None,
            hands_over: None,
        }
    }
}

/// What fails together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// So many replicas of a region, one after the other: a replica, a node, a rack.
    Group(u32),
    /// All that are in the same of so many places of a region: zones.
    Spread(u32),
}

/// How long a start takes: the sum of its phases.
#[derive(Clone, Debug, PartialEq)]
pub struct StartupSpec {
    /// The phases.
    pub phases: Vec<Phase>,
    /// Replicas for which there are devices, and how many picoseconds more the others wait for theirs.
    pub beyond: Option<(u32, u64)>,
}

/// A phase of a start.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// How many seconds it takes.
    pub seconds: Dist,
    /// The share of starts at which it is already done.
    pub done: f64,
    /// How many seconds it takes then.
    pub seconds_when_done: Option<Dist>,
}

/// Devices that can be taken away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Seconds until one is, on average.
    pub reclaimed_every: f64,
    /// How long before it is said.
    pub notice: u64,
}

/// Keys and values that are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The pool that generates.
    pub to: usize,
    /// Picoseconds of the link for each token; one call after the other.
    pub per_token: u64,
    /// For each of the last tokens, so many of them, on top of that: what only they have.
    pub window: Option<(u64, u64)>,
    /// For a call, however long.
    pub per_call: u64,
}

impl HandOver {
    /// The time that a prompt of so many tokens takes of the link.
    pub(crate) fn time(&self, tokens: u64) -> u64 {
        let window = self.window.map_or(0, |(last, each)| each.saturating_mul(tokens.min(last)));
        let all = self.per_token.saturating_mul(tokens).saturating_add(self.per_call);
        all.saturating_add(window)
    }
}

/// What decides how many replicas there are.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingSpec {
    /// The arithmetic.
    pub scaling: Scaling,
    /// What it looks at.
    pub signal: Signal,
    /// The value that it steers to.
    pub target: f64,
    /// Whether that is meant for each replica, or for the pool.
    pub kind: TargetKind,
    /// The value above which a pool without replicas gets one.
    pub activation: f64,
    /// Between two decisions.
    pub period: u64,
    /// How old what it sees is.
    pub delay: u64,
    /// What it is asked not to go below: from an instant on, so many.
    pub floors: Vec<(u64, u32)>,
}

/// What an autoscaler looks at, of a whole pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Calls that wait.
    QueueDepth,
    /// Seconds that the first in any line has waited.
    QueueAge,
    /// Calls that wait or run.
    InFlight,
    /// Prompt tokens that came and were not known to be cached, a second, over the last minute.
    FreshTokens,
    /// The 90th percentile of the first tokens of the last minute, in seconds.
    TtftP90,
    /// The share of tasks of the last minute that were not good.
    NotGood,
    /// The part of the caches that is in use.
    Kv,
}

/// A hosted model, under limits a minute.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderSpec {
    /// Calls.
    pub calls: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Tokens of prompts.
    pub prompt: Option<u64>,
    /// Tokens of outputs.
    pub output: Option<u64>,
    /// Calls at once.
    pub at_once: Option<u64>,
    /// Whether cached tokens count.
    pub counts_cached: bool,
    /// Whether what a client wants at most is taken when a call is let in, and given back when it is over.
    pub reserves: bool,
    /// Seconds to its first token.
    pub ttft: Dist,
    /// Seconds between its tokens.
    pub tpot: Dist,
    /// The share of calls that fail.
    pub failure: f64,
}

/// What tasks call besides models.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Seconds that a call takes.
    pub latency: Dist,
    /// Calls at once.
    pub at_once: Option<u64>,
    /// Between two calls that it accepts.
    pub between: Option<u64>,
    /// The share of calls that fail.
    pub failure: f64,
}

/// Something that goes wrong, or is done on purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// When.
    pub at: u64,
    /// For how long; a pool's own time to repair where it is not said.
    pub lasts: Option<u64>,
    /// What.
    pub what: Mishap,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Mishap {
    /// So many replicas of a pool fail.
    Replicas(usize, u32),
    /// So many nodes of a pool fail.
    Nodes(usize, u32),
    /// So many zones of a pool fail, each of one region.
    Zones(usize, u32),
    /// A region is lost.
    Region(usize),
    /// So many replicas of a pool are taken away.
    Reclaim(usize, u32),
    /// The replicas of a pool are replaced, so many at once.
    Upgrade(usize, u32),
    /// The replicas of a pool forget what they have cached, as far as that is simulated.
    CacheLoss(usize),
    /// A provider answers nobody.
    ProviderOutage(usize),
    /// A tool answers nobody.
    ToolOutage(usize),
    /// Something is wrong elsewhere: only routes take notice.
    Elsewhere,
}
