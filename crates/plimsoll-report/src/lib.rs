//! Saying it: results as terminal text, Markdown and self-contained pages with charts, and the JSON views of what is not a study's result.
//!
//! **Owns** words, columns and units of what people read. **Refuses** to compute a number it shows.
//!
//! ```
//! let text = plimsoll_report::table(&["class", "rate"], &[vec!["chat".into(), "40/s".into()]]);
//! assert_eq!(text, "class  rate\nchat   40/s\n");
//! ```

mod bench;
mod calibration;
mod catalog;
mod chart;
mod constants;
mod cost;
mod curve;
mod explain;
mod fit;
mod forecast;
mod html;
mod kernels;
mod launch;
mod ledger;
mod page;
mod plan;
mod plot;
mod profile;
mod query;
mod reconcile;
mod review;
mod scenario;
mod simulate;
mod stress;
mod task;
mod text;
mod validation;
mod watch;
mod what_if;

pub use bench::{Bench, BenchInput, BenchRow, BenchTool, bench_of};
pub use calibration::{
    CalibrationDocument, EngineDocument, calibrate_json, calibrate_text, calibration_json,
    engine_json, engine_text,
};
pub use catalog::{catalog_json, catalog_text};
pub use chart::service::{ServiceCurve, curve_chart, latency_chart};
pub use chart::{Chart, SCRIPT as CHART_SCRIPT, STYLE as CHART_STYLE};
pub use cost::{CostDocument, FOCUS_COLUMNS, FocusHead, cost_json, cost_text, focus_csv};
pub use curve::{CurveDocument, LoadTestPoint, MeasuredLoadLine, curve_json, curve_text};
pub use explain::{explain_json, explain_text};
pub use fit::{compare_text, fit_json, fit_text};
pub use forecast::{
    BacktestFile, ClassesBy, ForecastFile, ForecastHead, ForecastSeries, InflectionFile,
    LevelsFile, Moment, Point, ScenarioRef, forecast_pictures, forecast_text,
};
pub use html::{
    curve_html, forecast_html, profile_charts, profile_html, reconcile_html, stress_html,
};
pub use kernels::{kernels_json, kernels_text};
pub use ledger::{ingest_json, ingest_text};
pub use page::{Block, Cell, Column, Section, Table, Tone, page};
pub use plan::{Changed, PlanDocument, against_text, changes, plan_json, plan_text};
pub use profile::{ProfileHead, profile_json, profile_text};
pub use query::{query_json, query_text};
pub use reconcile::{
    PastReconciliation, PastResource, ReconcileDocument, accuracy_text, learnt,
    past_reconciliation, reconcile_json, reconcile_pictures, reconcile_text,
};
pub use review::{review_html, review_json, review_markdown, review_text};
pub use scenario::{SCENARIO_POINTS, ScenarioClass, scenario_of};
pub use simulate::{OutcomesCsv, SimulationDocument, Trace, simulate_json, simulate_text};
pub use stress::{StressDocument, stress_json, stress_text};
pub use task::{task_json, task_text};
pub use text::{Heading, table};
pub use validation::{
    group_table, performance_json, performance_text, validation_json, validation_text,
};
pub use watch::{watch_line, watch_text};
pub use what_if::{what_if_chart, what_if_json, what_if_text};

/// What the catalogue is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Models.
    Models,
    /// Accelerators.
    Accelerators,
    /// Engines.
    Engines,
    /// Node and token prices.
    Prices,
    /// Workload profiles.
    Profiles,
}
