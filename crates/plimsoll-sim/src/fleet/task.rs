//! What a task asks for, step by step.

use std::collections::VecDeque;

use crate::fleet::spec::Target;
use crate::request::Wanted;

/// A task that begins.
#[derive(Clone, Debug)]
pub struct Task {
    /// When.
    pub at: u64,
    /// Its class.
    pub class: u16,
    /// The same for those that belong together.
    pub session: u64,
    /// Whether all of it is here; the rest of one that began before is served, but not counted, unless turns are.
    pub whole: bool,
    /// What it asks for.
    pub steps: Steps,
}

/// What a task asks for.
#[derive(Clone, Debug)]
pub enum Steps {
    /// One call.
    One(Wanted),
    /// One after the other.
    Many(VecDeque<TaskStep>),
}

/// A step of a task; the next begins when it is over.
#[derive(Clone, Debug)]
pub enum TaskStep {
    /// Calls that are made at once.
    Calls(Vec<Call>),
    /// A tool is called.
    Tool(u16),
    /// Time passes.
    Wait(u64),
}

/// A call of a model.
#[derive(Clone, Debug)]
pub struct Call {
    /// What it wants.
    pub wanted: Wanted,
    /// Where it goes, if not where its class does.
    pub route: Option<Target>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskEnd {
    /// All of it was answered.
    Completed,
    /// A call of it was turned away, the last time it was tried.
    Refused,
    /// A call of it was lost with what served it.
    Lost,
    /// An attempt took too long, the last time it was tried.
    TimedOut,
    /// It was of no more use.
    TooLate,
    /// Its user went away.
    Left,
    /// A call of it can never be served.
    TooLong,
    /// A tool failed.
    ToolFailed,
}

/// What came of a task, or of a turn where turns are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskOutcome {
    /// Its class.
    pub class: u16,
    /// How it ended.
    pub end: TaskEnd,
    /// When its first attempt was sent.
    pub began: u64,
    /// When its client had all of it, or gave up.
    pub ended: u64,
    /// Until its first token, as it is judged.
    pub ttft: Option<u64>,
    /// Its mean gap between tokens.
    pub tpot: Option<u64>,
    /// Its largest gap between tokens.
    pub largest_gap: u64,
    /// How long its calls waited in lines, together.
    pub waited: u64,
    /// How long the keys and values of its calls took from pools that read to those that generate, together.
    pub handing_over: u64,
    /// Calls of models that it made, however often each was tried.
    pub calls: u32,
    /// Attempts of all calls.
    pub attempts: u32,
    /// Prompt tokens of what was answered.
    pub prompt: u64,
    /// Of these, cached ones.
    pub cached: u64,
    /// Tokens that it got.
    pub output: u64,
    /// Whether it met all that makes it good.
    pub good: bool,
    /// Where its user left: whether what was promised by then had not been kept.
    pub overdue: bool,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptEnd {
    /// It was answered.
    Answered,
    /// It was turned away: the line was full, or a limit was reached.
    Refused,
    /// There was nobody to serve it.
    NobodyThere,
    /// It was lost with what served it.
    Lost,
    /// Its client gave up on it, or went away.
    GivenUp,
    /// It can never be served.
    TooLong,
}

impl AttemptEnd {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::Answered,
        Self::Refused,
        Self::NobodyThere,
        Self::Lost,
        Self::GivenUp,
        Self::TooLong,
    ];
}
