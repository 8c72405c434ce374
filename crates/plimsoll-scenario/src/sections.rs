//! The tables of a scenario, key by key, each with its documentation and its default.
//!
//! These declarations are the only list of keys there is: reading, `explain`, the JSON Schema and
//! `docs/reference/scenario.md` all come from them.

mod autoscaling;
mod demand;
mod fleet;
mod incident;
mod money;
mod study;
mod supply;

pub(crate) use self::fleet::same_accelerator;
pub use autoscaling::{
    Autoscaling, Controller, ForecastFloor, ScaleSignal, Schedule, SelectPolicy, TargetKind,
};
pub use demand::{
    Agent, Burst, Cancellation, Class, Event, EventKind, Pair, Retries, Sessions, Slo, Spacing,
    Stage, Tier, Tool, Variant,
};
pub use incident::{Incident, IncidentKind};
pub use money::{Budget, Change, Costs, NodeRate, Owned, Prices, Stress, StressLoss};
pub use study::{Reliability, Reserve, Scenario, Study, Survive};
pub use supply::{
    Candidates, Disaggregation, Domain, Dtype, KvDtype, Line, LineResource, Lora, Pool, PriceMode,
    Provider, Queue, Region, RegionAccelerator, Role, Route, Router, Shift, Speculation, Spot,
    Startup,
};
