//! Engines and fleets simulated: requests and tasks in, outcomes out.
//!
//! **Owns** queues, batching, memory pressure; fleets of engines with their routers, clients, providers, tools, regions and mishaps; and how replicas follow
//! signals. **Refuses** files, threads, a seed of its own, and choosing a fleet. It has the plain engine ([`PlainEngine`]), which takes one step at a time, and one
//! whose cost does not grow with the batch ([`Replica`]), for which the plain one is the oracle. [`drive`] brings requests to either. [`run_fleet`] brings tasks to
//! many: events happen in one order, and an engine that only generates is left alone until somebody comes. A [`Controller`] says how many replicas there should be.
//!
//! ```
//! use plimsoll_sim::{Kv, Limits, PlainEngine, Wanted};
//!
//! let mut engine = PlainEngine::new(Limits::new(8, 100, Kv::new(64, 16)));
//! engine.arrive(0, Wanted::new(250, 2))?;
//! // A prompt of 250 tokens takes three steps of at most 100.
//! let mut tokens = Vec::new();
//! while let Some(step) = engine.schedule() {
//!     tokens.push(step.load.prefill + step.load.decodes);
//!     engine.finish(&step);
//! }
//! assert_eq!(tokens, [100, 100, 50, 1]);
//! # Ok::<(), plimsoll_sim::TooLong>(())
//! ```

mod autoscale;
mod blocks;
mod drive;
mod fast;
mod fleet;
mod limits;
mod plain;
mod policy;
mod request;
mod segments;
mod serve;

pub use autoscale::{
    Activation, Behaviour, Change, Controller, Decision, Metric, ScalePolicy, Scaling, Select,
    TargetKind, Why,
};
pub use drive::{
    Arrival, Budget, Ended, Engine, Gauges, Loop, Moved, Pace, Queue, Stretch, Watch, drive,
};
pub use fast::{Replica, Steps};
pub use fleet::{
    AnyEngine, Attempt, AttemptEnd, Call, ClassSpec, Domain, EngineKind, FleetEnded, FleetSpec,
    FleetWatch, Good, HandOver, Incident, Judged, Mishap, Phase, PoolEnded, PoolSpec, ProviderSpec,
    RetrySpec, RouteSpec, Routing, ScalingSpec, Signal, Spot, StartupSpec, Steps as TaskSteps,
    Target, Task, TaskEnd, TaskOutcome, TaskStep, ToolSpec, ToolUse, run_fleet,
};
pub use limits::{Kv, Limits, Speculation, TooLong};
pub use plain::{Given, Held, PlainEngine, Step};
pub use policy::{Policy, Room, Sglang, TensorRt, Vllm};
pub use request::{Content, End, Outcome, Output, Seen, Segment, Wanted};
pub use serve::PlainReplica;
