//! The normal distribution function and its inverse, and Student's.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The share of a standard normal below `z`.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The `z` below which a share `p` of a standard normal lies; infinite at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// The value below which a share `p` of Student's t lies, for what is estimated from `freedom` + 1 observations; as the normal's where
/// that is no number above zero.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or_else(|_| normal_quantile(p), |t| t.inverse_cdf(p))
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

    /// Any table of Student's t.
    #[test]
    fn student_matches_the_tables() {
        for (freedom, p, t) in
            [(1.0, 0.95, 6.313_751_515), (7.0, 0.95, 1.894_578_605), (30.0, 0.975, 2.042_272_456)]
        {
            assert!((student_quantile(p, freedom) - t).abs() < 1e-6, "t({p}, {freedom})");
        }
        assert!((student_quantile(0.95, f64::NAN) - normal_quantile(0.95)).abs() < 1e-12);
    }
}
