//! Times along an axis, read between samples.

/// Sizes of the samples below which teeth of 256 tokens are sampled on both sides, and how long a tooth is.
const TEETH: (u64, u64) = (4353, 256);

/// Times against tokens, between whose samples straight lines are drawn.
///
/// Samples lie on both sides of each tile edge (16 and 17, 32 and 33, up to 4,352 and 4,353), so a line between neighbours never crosses one.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCurve {
    at: Vec<f64>,
    seconds: Vec<f64>,
    /// How much the tooth at the last sampled edge jumps.
    tooth: f64,
}

impl KernelCurve {
    /// A curve through samples, ascending; none without any.
    pub fn new(at: &[u64], seconds: &[f64]) -> Option<Self> {
        if at.is_empty() || at.len() != seconds.len() {
            return None;
        }
        let sample = |wanted: u64| at.iter().position(|at| *at == wanted).map(|i| seconds[i]);
        let (edge, _) = TEETH;
        let tooth = sample(edge - 1).zip(sample(edge)).map_or(0.0, |(below, above)| above - below);
        Some(Self {
            at: at.iter().map(|at| *at as f64).collect(),
            seconds: seconds.to_vec(),
            tooth: tooth.max(0.0),
        })
    }

    /// A weighted sum of curves, at the samples that all of them have; none where there are none.
    pub fn mixed(parts: &[(&Self, f64)]) -> Option<Self> {
        let (first, _) = parts.first()?;
        let (mut at, mut seconds) = (Vec::new(), Vec::new());
        for sample in &first.at {
            let each = parts.iter().map(|(curve, weight)| {
                let place = curve.at.binary_search_by(|own| own.total_cmp(sample)).ok()?;
                Some(curve.seconds[place] * weight)
            });
            if let Some(sum) = each.sum::<Option<f64>>() {
                at.push(*sample);
                seconds.push(sum);
            }
        }
        let tooth = parts.iter().map(|(curve, weight)| curve.tooth * weight).sum();
        (!at.is_empty()).then_some(Self { at, seconds, tooth })
    }

    /// The time of so many tokens: straight between samples, in proportion beyond the last. Where samples are too far apart to show teeth, the last tooth is laid on the line that
    /// leads from one tooth's end to the next.
    pub fn seconds(&self, tokens: f64) -> f64 {
        let last = self.at.len() - 1;
        if tokens <= self.at[0] {
            return self.seconds[0];
        }
        if tokens > self.at[last] {
            return self.seconds[last] * tokens / self.at[last];
        }
        let above = self.at.partition_point(|at| *at < tokens);
        let (mut below, edge) = (above - 1, TEETH.0 as f64);
        // The foot of a tooth is no end of a line that passes over many.
        let coarse = tokens > edge && self.tooth > 0.0;
        if coarse && self.at[below] <= edge {
            below = self.at.partition_point(|at| *at < edge).saturating_sub(1);
        }
        let (a, b) = ((self.at[below], self.seconds[below]), (self.at[above], self.seconds[above]));
        let line = a.1 + (b.1 - a.1) * (tokens - a.0) / (b.0 - a.0);
        if !coarse {
            return line;
        }
        // One at the foot of a tooth, nothing at its end.
        let length = TEETH.1 as f64;
        let into = ((tokens - 1.0).rem_euclid(length) + 1.0) / length;
        line + self.tooth * (1.0 - into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(samples: &[(u64, f64)]) -> KernelCurve {
        let (at, seconds): (Vec<u64>, Vec<f64>) = samples.iter().copied().unzip();
        KernelCurve::new(&at, &seconds).expect("samples")
    }

    #[test]
    fn samples_are_exact_and_edges_are_not_crossed() {
        let samples = [(1, 1.0), (16, 1.0), (17, 2.0), (32, 2.2), (33, 3.0), (64, 3.0)];
        let own = curve(&samples);
        for (at, seconds) in samples {
            assert!((own.seconds(at as f64) - seconds).abs() < 1e-12, "{at}");
        }
        assert!((own.seconds(8.0) - 1.0).abs() < 1e-12);
        assert!((own.seconds(24.5) - 2.1).abs() < 1e-12);
        // Below the first and beyond the last.
        assert!((own.seconds(0.0) - 1.0).abs() < 1e-12);
        assert!((own.seconds(128.0) - 6.0).abs() < 1e-12);
    }

    #[test]
    fn teeth_go_on_where_they_are_not_sampled() {
        let own = curve(&[(4097, 17.0), (4352, 16.0), (4353, 20.0), (8192, 32.0), (16_384, 64.0)]);
        assert!((own.seconds(4352.0) - 16.0).abs() < 1e-12);
        assert!((own.seconds(8192.0) - 32.0).abs() < 1e-12);
        // From the end of one tooth to the foot of the next time jumps by the last tooth that was sampled, and then falls.
        let (end, foot) = (own.seconds(4608.0), own.seconds(4609.0));
        assert!((foot - end - 4.0).abs() < 0.1, "{end} {foot}");
        assert!(own.seconds(4864.0) < foot);
        // The end of each tooth lies on the line from 4,352 to 8,192.
        let line = |m: f64| 16.0 + 16.0 * (m - 4352.0) / 3840.0;
        assert!((end - line(4608.0)).abs() < 1e-9, "{end}");
    }

    #[test]
    fn curves_between_shapes() {
        let (a, b) = (curve(&[(1, 1.0), (16, 2.0)]), curve(&[(1, 3.0), (16, 4.0)]));
        let own = KernelCurve::mixed(&[(&a, 0.25), (&b, 0.75)]).expect("one axis");
        assert!((own.seconds(1.0) - 2.5).abs() < 1e-12 && (own.seconds(16.0) - 3.5).abs() < 1e-12);
        // Only what both were measured at.
        let other = curve(&[(1, 1.0), (17, 2.0)]);
        let own = KernelCurve::mixed(&[(&a, 0.5), (&other, 0.5)]).expect("one sample");
        assert!((own.seconds(1.0) - 1.0).abs() < 1e-12 && (own.seconds(2.0) - 2.0).abs() < 1e-12);
        let apart = curve(&[(2, 1.0)]);
        assert_eq!(KernelCurve::mixed(&[(&a, 0.5), (&apart, 0.5)]), None);
        assert_eq!(KernelCurve::new(&[], &[]), None);
    }
}
