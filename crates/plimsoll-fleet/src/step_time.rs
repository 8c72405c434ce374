//! How fast devices and engines were measured to be: constants of the step-time model, and how wrong it was with them.

use crate::fact::Fact;

/// One constant. A key that is absent stands for all.
#[derive(Clone, Debug, PartialEq)]
pub struct StepConstant {
    /// What it multiplies, by the name the step-time model gives it.
    pub term: String,
    /// The device family.
    pub family: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// The number format.
    pub dtype: Option<String>,
    /// Its value.
    pub value: f64,
    /// What it was before the end-to-end measurements were looked at.
    pub prior: Option<f64>,
    /// One standard deviation of it, in percent.
    pub spread_pct: Option<f64>,
    /// Kernel timings behind it.
    pub kernels: u64,
    /// End-to-end measurements behind it.
    pub cases: u64,
    /// How much of it they decided, 0 to 1.
    pub informed: Option<f64>,
    /// Source and date.
    pub fact: Fact,
}

/// How far predicted gaps between tokens were off, over published measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBand {
    /// `dense`, `moe` or `attention-dp`: gaps between tokens; `prefill`: first tokens of prompts alone; `throughput`: all requests at once or in one batch.
    pub kind: String,
    /// The device family; all where absent.
    pub family: Option<String>,
    /// The engine; all where absent.
    pub engine: Option<String>,
    /// Half of the predictions were closer than this.
    pub median_abs_pct: f64,
    /// Nine in ten were closer than this.
    pub p90_abs_pct: f64,
    /// How many there were.
    pub cases: u64,
    /// Pairs of a model and a device among them.
    pub groups: Option<u64>,
}
