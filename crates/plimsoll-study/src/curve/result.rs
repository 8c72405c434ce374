//! What a service curve says.

use serde::Serialize;

use plimsoll_load::{Cause, MemoCount, Span, Verdict};

/// A service curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Makes it repeatable.
    pub seed: u64,
    /// Calls of each component in a point, about.
    pub calls: f64,
    /// The longest warm-up.
    pub warm_up_s: f64,
    /// Calls of models that a task makes, on average.
    pub calls_per_task: f64,
    /// Tokens that the demand itself keeps resident: as many as were seen at its own load, or as the lightest load has for each of it, whichever is more.
    pub resident_kv_tokens: f64,
    /// Points, from little load to much.
    pub points: Vec<CurvePoint>,
    /// Where more load stops giving more good tasks.
    pub knee: Option<CurveMark>,
    /// The most load at which every class gets what it was promised; none where not even a hundredth of the demand does.
    pub load_line: Option<CurveMark>,
    /// The same in the units of resources.
    pub load_lines: Vec<ResourceLine>,
    /// What stops it from carrying more.
    pub binding: CurveBinding,
    /// The most that it gives at any price: not to be planned with.
    pub peak_throughput: Option<Peak>,
    /// What was simulated.
    pub simulated: MemoCount,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A point of the curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Times the demand.
    pub load: f64,
    /// Tasks that came a second.
    pub offered_per_s: f64,
    /// Tasks that were completed a second.
    pub achieved_per_s: f64,
    /// Good tasks a second.
    pub goodput_per_s: f64,
    /// Good tasks a second of a device.
    pub goodput_per_device: Option<f64>,
    /// Good tasks among those that came, of the class that has least of them against what it was promised.
    pub attainment: Option<f64>,
    /// How sure that is, of loads that were tried to find the load line.
    pub attainment_interval: Option<Span>,
    /// The share of tasks that failed in any way.
    pub errors: f64,
    /// Requests that waited, of all pools.
    pub queue_mean: f64,
    /// The busiest pool's share of the time.
    pub busy: f64,
    /// The fullest pool's share of its blocks.
    pub kv: f64,
    /// Tokens generated a second, of all pools and providers.
    pub output_tokens_per_s: f64,
    /// The worst class's.
    pub ttft_p95_ms: Option<f64>,
    /// The worst class's.
    pub tpot_p95_ms: Option<f64>,
    /// Whether it keeps up.
    pub verdict: Option<Verdict>,
    /// Whether every class gets what it was promised.
    pub meets: bool,
    /// Whether that is as sure as was asked for, however long it was looked at.
    pub sure: bool,
    /// What does not, first of all.
    pub fails_by: Option<String>,
}

/// A place on the curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveMark {
    /// Times the demand.
    pub load: f64,
    /// Tasks a second that come there.
    pub offered_per_s: f64,
    /// Good tasks a second there.
    pub goodput_per_s: f64,
    /// The next load that was tried and does not do.
    pub fails_at_load: Option<f64>,
    /// Whether promises are kept there as surely as was asked for.
    pub sure: bool,
    /// From the heaviest load that surely keeps every promise to the lightest that surely does not, step times taken for right; none where either is not known.
    pub interval: Option<Span>,
}

/// The load line in the unit of a resource: the whole mix is scaled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceLine {
    /// `requests`, `fresh_prompt_tokens`, `output_tokens`, `resident_kv_tokens` or `mix`.
    pub resource: &'static str,
    /// Of what the numbers are.
    pub unit: &'static str,
    /// What the demand itself needs, on average.
    pub demand: f64,
    /// The line; none where it is beyond what was tried, or nothing keeps the promise.
    pub load_line: Option<f64>,
    /// Times the demand.
    pub factor: Option<f64>,
    /// Whether the demand itself keeps every promise.
    pub holds_at_demand: bool,
}

/// What stops a fleet from carrying more.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CurveBinding {
    /// `prefill`, `decode`, `kv`, `sequences`, `host`, `queue`, `link`, `provider`, `tool`, or `too_long`, at the first load that fails.
    pub cause: Option<Cause>,
    /// The pool where it binds.
    pub of: Option<String>,
    /// The component that gives way first: pools and providers that share classes.
    pub component: Option<String>,
    /// The first promise that is not kept: `ttft`, `tpot`, `e2e`, `gap`, `errors`, `queue`, or a tail by its key.
    pub first_signal: Option<String>,
    /// The load at which that was seen.
    pub at_load: Option<f64>,
}

/// The most that a fleet gives at any price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// Times the demand.
    pub load: f64,
    /// Tasks completed a second.
    pub achieved_per_s: f64,
    /// Tokens generated a second.
    pub output_tokens_per_s: f64,
    /// Good ones among the tasks there.
    pub attainment: Option<f64>,
    /// Always: whoever plans with it has planned for nobody being served well.
    pub safe: bool,
}
