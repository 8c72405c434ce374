//! What is told of a fleet while it runs, and when it is over.

use crate::drive::{Pace, Stretch};
use crate::fast::Steps;
use crate::fleet::spec::Target;
use crate::fleet::task::{AttemptEnd, TaskOutcome};
use crate::request::Outcome;

/// Somebody who looks on.
pub trait FleetWatch {
    /// Whether it is worth going on, asked now and then.
    fn goes_on(&mut self) -> bool {
        true
    }
    /// Something begins that will be counted: a task, or a turn where turns are.
    fn offered(&mut self, _class: u16, _at: u64) {}
    /// It is over.
    fn task(&mut self, _outcome: &TaskOutcome) {}
    /// An attempt of a call is over.
    fn attempt(&mut self, _attempt: &Attempt<'_>) {}
    /// A task's call of a tool is over, or nobody waits for it any more.
    fn tool(&mut self, _tool: usize, _used: &ToolUse) {}
    /// Whether gaps are listened to: where they are not, they are not worked out.
    fn hears_gaps(&self) -> bool {
        true
    }
    /// So many sequences of a class got their next tokens from a pool this long after the ones before, and what decided that.
    fn gap(&mut self, _pool: usize, _class: u16, _ps: u64, _pace: Pace, _count: u64) {}
    /// A replica took steps.
    fn stretch(&mut self, _pool: usize, _replica: usize, _stretch: &Stretch) {}
    /// A pool has so many replicas from now on: those that serve, those that are on their way, and those that are being emptied.
    fn replicas(&mut self, _pool: usize, _at: u64, _ready: u32, _starting: u32, _draining: u32) {}
}

/// An attempt of a call that is over.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'o> {
    /// Its class.
    pub class: u16,
    /// Where it was.
    pub target: Target,
    /// Which replica of a pool had it.
    pub replica: Option<usize>,
    /// The region of that.
    pub region: Option<usize>,
    /// When it was sent.
    pub sent: u64,
    /// The way there, and back.
    pub way: u64,
    /// How it ended.
    pub end: AttemptEnd,
    /// What it was told to wait before it comes again.
    pub retry_after: Option<u64>,
    /// What came of it where it was served, in that place's own time.
    pub outcome: Option<&'o Outcome>,
}

/// A call of a tool that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// Whose task it was.
    pub class: u16,
    /// When it was made.
    pub at: u64,
    /// How long it waited to be accepted, or until it was given up.
    pub waited: u64,
    /// How long it takes from then on: one that was accepted keeps its place to the end, whoever still waits for it.
    pub took: u64,
    /// Whether it failed.
    pub failed: bool,
    /// Whether its task gave up on it before it was over.
    pub given_up: bool,
}

/// How a run of a fleet ended.
#[derive(Clone, Debug)]
pub struct FleetEnded {
    /// Whether somebody stopped it, or its moves were spent.
    pub stopped: bool,
    /// The last instant.
    pub now: u64,
    /// Whether all tasks came and were seen to.
    pub complete: bool,
    /// Tasks that are not over.
    pub unfinished: u64,
    /// Attempts that were sent, all along.
    pub attempts: u64,
    /// Attempts that are not over.
    pub attempts_unfinished: u64,
    /// Steps of all engines.
    pub steps: Steps,
    /// Each pool's own account.
    pub pools: Vec<PoolEnded>,
}

/// What became of a pool's replicas while it counted.
#[derive(Clone, Debug, Default)]
pub struct PoolEnded {
    /// Picoseconds of replicas, ready or not: what is paid for.
    pub replica_ps: u128,
    /// Picoseconds of replicas that were ready.
    pub ready_ps: u128,
    /// The fewest and most that were ready, or on their way.
    pub least: u32,
    /// The most.
    pub most: u32,
    /// Starts, and how long each took.
    pub starts: Vec<u64>,
    /// Replicas that failed.
    pub failed: u32,
    /// Replicas whose devices were taken away.
    pub reclaimed: u32,
    /// Replicas that were replaced.
    pub upgraded: u32,
    /// Decisions for more replicas.
    pub ups: u32,
    /// Decisions for fewer.
    pub downs: u32,
    /// Decisions in the other direction than the one before.
    pub flips: u32,
    /// How long each decision for more came after the signal first asked for it.
    pub lags: Vec<u64>,
    /// Picoseconds of replicas that were not ready and asked for by the signal, and the most at once.
    pub short_ps: u128,
    /// The most at once.
    pub short_most: u32,
    /// Picoseconds of replicas that the signal did not ask for.
    pub over_ps: u128,
    /// The most at once.
    pub over_most: u32,
    /// The most calls that waited while replicas were on their way, as far as scrapes saw.
    pub queue_while_starting: u64,
    /// Decisions that ended at the most replicas there may be, though more were asked for.
    pub at_most: u32,
}
