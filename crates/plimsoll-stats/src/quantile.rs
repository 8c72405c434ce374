//! Exact quantiles.

/// The quantile of numbers in any order, or `None` without numbers. Linear interpolation between
/// order statistics (type 7 of Hyndman and Fan, the default of R and NumPy).
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(quantile_of_sorted(&sorted, p))
}

/// The same for numbers already in order; at least one.
///
/// # Panics
/// Without numbers.
pub fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    assert!(!sorted.is_empty(), "a quantile needs at least one value");
    let last = sorted.len() - 1;
    let h = p.clamp(0.0, 1.0) * last as f64;
    let below = h.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (h - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `quantile(x, p, type = 7)`.
    #[test]
    fn equals_r() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        for (p, expect) in [(0.0, 1.0), (0.25, 3.25), (0.5, 5.5), (0.9, 9.1), (1.0, 10.0)] {
            assert!((quantile(&ten, p).unwrap() - expect).abs() < 1e-12, "p = {p}");
        }
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
