//! What a fleet does at a load: the demand of an hour, the runs of a simulated fleet, and the load line.
//!
//! A load is a multiple of an hour's demand. This crate says what a fleet does at one ([`simulate`]); it chooses no fleet.

mod arrivals;
mod cause;
mod component;
mod count;
mod demand;
mod line;
mod promise;
mod search;
mod shown;
mod simulate;
mod smear;
mod trial;
mod verdict;

pub use arrivals::{SimulatedClass, Spell, Surge, longest_pauses, mean_pauses, ps};
pub use cause::Cause;
pub use component::{LoadQuestion, UNSIZED_POOL_REPLICAS, isolated, pool_routing, pools_serving};
pub use demand::{
    BusyHour, Demand, DemandInput, DemandRow, Level, PoolDemand, PoolRouting, Resource, Span,
    StudyError, busiest_hours, demand,
};
pub use line::{ClassOutcome, Load, LoadLine, LoadOutcome, PhaseShare, SizedPool, question};
pub use promise::{ClassTarget, Miss, Percentile, Tail, TailMetric};
pub use shown::Point;
pub use simulate::{
    AttemptCounts, Binding, BrokenPromise, CacheHits, ClassResult, Distribution, Ends,
    GoodputWindow, High, Missed, PoolResult, ProviderResult, Record, RegionResult, ReplicaSpread,
    ScalingResult, SimulateInput, SimulatedPool, Simulation, Source, ToolResult, Utilisation,
    Verdict, Window, broken_promises, simulate, simulate_known, too_short,
};
pub use smear::{Differed, Gaps, Spread};
pub use trial::{Effort, Memo, MemoCount, Recovery, SURGE, SurgeShape};
pub use verdict::LoadVerdict;
