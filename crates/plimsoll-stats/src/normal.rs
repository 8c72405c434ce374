//! The normal distribution function and its inverse.

use statrs::distribution::{ContinuousCDF, Normal};

/// The share of a standard normal below `z`.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The `z` below which a share `p` of a standard normal lies; infinite at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any table of the normal distribution.
    #[test]
    fn matches_the_tables() {
        for (z, p) in
            [(0.0, 0.5), (1.0, 0.841_344_746), (1.959_963_985, 0.975), (-2.326_347_874, 0.01)]
        {
            assert!((normal_cdf(z) - p).abs() < 1e-9, "cdf({z})");
            assert!((normal_quantile(p) - z).abs() < 1e-7, "quantile({p})");
        }
    }
}
