//! Seeded random streams, distributions, arrival processes, quantiles and intervals.
//!
//! **Owns** everything random and every estimate from samples. **Refuses** to know what a token is:
//! here are numbers, times and weights.
//!
//! One [`Seed`] rules a study. Each use asks for a stream by name, so that a new consumer never shifts
//! the draws of an old one. The generator is named (xoshiro256++), and what sampling needs of `ln`,
//! `exp` and `pow` comes from `libm`, so a seed means the same draws on every platform.
//!
//! ```
//! use plimsoll_stats::{Dist, Seed};
//!
//! // Prompt lengths as people know them: half under 900, one in twenty over 4,200.
//! let prompt = Dist::by_quantiles(&[(0.50, 900.0), (0.95, 4200.0)])?;
//! assert!((prompt.quantile(0.95) - 4200.0).abs() < 1e-6);
//! assert_eq!(prompt.mean().round(), 1395.0); // the mean is nobody's request
//!
//! let mut arrivals = Seed::new(7).stream("example");
//! assert!(prompt.sample(&mut arrivals) > 0.0);
//! # Ok::<(), plimsoll_stats::DistError>(())
//! ```

mod arrivals;
mod compound;
mod correlation;
mod counts;
mod dist;
mod family;
mod interval;
mod normal;
mod parallel;
mod quantile;
mod seed;
mod series;
mod sketch;
mod stack;

pub use arrivals::{ArrivalError, Arrivals, Burst, Process, RateCurve, Spacing};
pub use compound::{Estimate, compound_poisson_quantile, poisson_quantile, poisson_tails};
pub use correlation::{pearson, pearson_of_logs, spearman};
pub use counts::Counts;
pub use dist::{Dist, DistError, Weighted, three_point_quantile, weibull_cv};
pub use family::{Family, Sample};
pub use interval::{
    Interval, batch_means, block_bootstrap, bootstrap, mean_interval, ratio_interval,
    share_interval, share_interval_of,
};
pub use normal::{normal_cdf, normal_quantile, student_quantile};
pub use parallel::in_order;
pub use quantile::{quantile, quantile_of_sorted};
pub use seed::{Seed, Stream};
pub use series::{Periodicity, autocorrelation, explained_by_place, means_by_place, periodicity};
pub use sketch::Sketch;
pub use stack::stack_distances;
