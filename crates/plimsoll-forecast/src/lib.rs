//! History in, an outlook with intervals out.
//!
//! **Owns** the models, their choice, their intervals and their scores. **Refuses** to read files or to know hardware: it takes a
//! [`plimsoll_workload::History`] and gives a [`plimsoll_workload::Outlook`].
//!
//! Requests and lengths are modelled apart, on the logarithm, by small models. Each is tried at origins of the past, as it would have been,
//! and the one that loses least at the quantile that is sized for is published, never one that loses to the plain mean or to
//! repeating the last season. Intervals are conformal: what models were off by, pooled over origins and lead times.

mod actuals;
mod adapt;
mod fan;
mod gaps;
mod inflection;
mod joint;
mod models;
mod rolling;
pub mod score;

pub use actuals::{ActualSeries, Actuals};
pub use adapt::Memory;
pub use fan::{Backtest, Coverage, scored_level};
pub use gaps::Gap;
pub use inflection::{AlarmRecord, Inflection, Line, inflection};
pub use joint::{Forecast, ForecastError, ForecastInput, Outlier, SeriesForecast, forecast};
pub use models::{Model, Season};
