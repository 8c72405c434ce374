//! Studies as pages, from the same chart kit as the review.

mod curve;
mod forecast;
mod profile;
mod reconcile;
mod stress;

pub use self::curve::curve_html;
pub(crate) use self::curve::points_table;
pub(crate) use self::forecast::fans as forecast_fans;
pub use self::forecast::forecast_html;
pub use self::profile::{profile_charts, profile_html};
pub(crate) use self::reconcile::fans as reconcile_fans;
pub use self::reconcile::reconcile_html;
pub use self::stress::stress_html;

#[cfg(test)]
mod tests;
