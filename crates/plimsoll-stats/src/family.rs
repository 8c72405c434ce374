//! Families of distributions, fitted by maximum likelihood, and how far each is from the values.

use statrs::function::gamma::gamma_lr;

use crate::normal::normal_cdf;

/// A distribution of values above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    /// The logarithm is normal.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Gamma.
    Gamma {
        /// Shape.
        shape: f64,
        /// Scale.
        scale: f64,
    },
    /// Weibull.
    Weibull {
        /// Shape.
        shape: f64,
        /// Scale.
        scale: f64,
    },
    /// Pareto of type I.
    Pareto {
        /// The smallest value.
        xm: f64,
        /// Tail index.
        alpha: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
}

/// Values above zero and their weights, in order of the values.
///
/// Logarithms are taken once for all families.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Value, weight, logarithm.
    values: Vec<(f64, f64, f64)>,
    weight: f64,
    mean: f64,
    mean_log: f64,
}

impl Sample {
    /// What is above zero of values in order; none where nothing is.
    pub fn of(values: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let values: Vec<(f64, f64, f64)> = values
            .into_iter()
            .filter(|(x, w)| *x > 0.0 && *w > 0.0)
            .map(|(x, w)| (x, w, libm::log(x)))
            .collect();
        debug_assert!(values.is_sorted_by(|a, b| a.0 <= b.0), "values come in order");
        let weight: f64 = values.iter().map(|(_, w, _)| w).sum();
        let mean = values.iter().map(|(x, w, _)| w * x).sum::<f64>() / weight;
        let mean_log = values.iter().map(|(_, w, log)| w * log).sum::<f64>() / weight;
        (!values.is_empty()).then_some(Self { values, weight, mean, mean_log })
    }

    /// All weights together.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The lognormal distribution under which the values are likeliest; none where all are equal.
    pub fn lognormal(&self) -> Option<Family> {
        let sigma = self.variance_of_log().sqrt();
        (sigma > 0.0).then_some(Family::Lognormal { mu: self.mean_log, sigma })
    }

    /// The gamma distribution; none where all are equal.
    ///
    /// `ln k - digamma(k) = ln(mean) - mean(ln)` has one root, and Newton's steps in `1/k` from Minka's start (2002, *Estimating a Gamma distribution*) close in on it.
    pub fn gamma(&self) -> Option<Family> {
        // ln(mean) - mean(ln), without the loss of taking nearly equal numbers from each other: the mean of x/m - 1 - ln(x/m) with m the geometric mean ...
        let shift = self.mean_log;
        let spread: f64 = self
            .values
            .iter()
            .map(|(_, w, log)| {
                let d = log - shift;
                w * (libm::expm1(d) - d)
            })
            .sum::<f64>()
            / self.weight;
        // ... is the mean of e^d - 1 since those d sum to nothing, and ln(1 + that) is what is sought.
        let gap = libm::log1p(spread);
        if gap <= 0.0 {
            return None;
        }
        let mut shape =
            (3.0 - gap + ((gap - 3.0) * (gap - 3.0) + 24.0 * gap).sqrt()) / (12.0 * gap);
        for _ in 0..100 {
            let (value, slope) = log_less_digamma(shape);
            let inverse = 1.0 / shape + (value - gap) / (shape * shape * slope);
            if !(inverse > 0.0 && inverse.is_finite()) {
                return None;
            }
            let next = 1.0 / inverse;
            let done = (next / shape - 1.0).abs() < 1e-14;
            shape = next;
            if done {
                break;
            }
        }
        Some(Family::Gamma { shape, scale: self.mean / shape })
    }

    /// The Weibull distribution; none where all are equal.
    ///
    /// `sum(x^k ln x)/sum(x^k) - 1/k = mean(ln x)` rises with `k`, so a bracket and halving are safe, and Newton's steps within it quick.
    pub fn weibull(&self) -> Option<Family> {
        let most = self.values.last()?.2;
        // With logarithms from the largest on, no power overflows.
        let sums = |k: f64| {
            let mut sums = (0.0, 0.0, 0.0);
            for (_, w, log) in &self.values {
                let d = log - most;
                let power = w * libm::exp(k * d);
                sums = (sums.0 + power, sums.1 + power * d, sums.2 + power * d * d);
            }
            sums
        };
        let excess = |k: f64| {
            let (s0, s1, s2) = sums(k);
            let value = s1 / s0 - 1.0 / k - (self.mean_log - most);
            (value, s2 / s0 - (s1 / s0) * (s1 / s0) + 1.0 / (k * k))
        };
        let variance = self.variance_of_log();
        if variance <= 0.0 {
            return None;
        }
        // The logarithm of a Weibull value has the standard deviation pi / (k sqrt 6).
        let mut shape = std::f64::consts::PI / (6.0 * variance).sqrt();
        let (mut low, mut high) = (0.0, f64::INFINITY);
        for _ in 0..200 {
            let (value, slope) = excess(shape);
            if value > 0.0 {
                high = shape
            } else {
                low = shape
            }
            let mut next = shape - value / slope;
            if !(next > low && next < high) {
                next = if high.is_finite() { (low + high) / 2.0 } else { shape * 2.0 };
            }
            let done = (next / shape - 1.0).abs() < 1e-14;
            shape = next;
            if done {
                break;
            }
        }
        let scale = libm::exp(most + libm::log(sums(shape).0 / self.weight) / shape);
        (shape.is_finite() && shape > 0.0).then_some(Family::Weibull { shape, scale })
    }

    /// The Pareto distribution of type I; none where all are equal.
    pub fn pareto(&self) -> Option<Family> {
        let (xm, _, least) = *self.values.first()?;
        let mean = self.values.iter().map(|(_, w, log)| w * (log - least)).sum::<f64>();
        (mean > 0.0).then(|| Family::Pareto { xm, alpha: self.weight / mean })
    }

    /// The exponential distribution.
    pub fn exponential(&self) -> Family {
        Family::Exponential { mean: self.mean }
    }

    /// The largest distance between the distribution function of a family and that of the values, on either side of each step (Kolmogorov and Smirnov).
    pub fn distance(&self, family: &Family) -> f64 {
        let (mut passed, mut distance) = (0.0, 0.0f64);
        let mut steps = self.values.iter().peekable();
        while let Some((x, w, log)) = steps.next() {
            let below = passed;
            passed += w;
            while let Some((_, w, _)) = steps.next_if(|next| next.0 <= *x) {
                passed += w;
            }
            let at = family.below(*x, *log);
            distance = distance.max(at - below / self.weight).max(passed / self.weight - at);
        }
        distance
    }

    fn variance_of_log(&self) -> f64 {
        let squares =
            self.values.iter().map(|(_, w, log)| w * (log - self.mean_log) * (log - self.mean_log));
        squares.sum::<f64>() / self.weight
    }
}

impl Family {
    /// The share below a value.
    pub fn cdf(&self, x: f64) -> f64 {
        if x > 0.0 { self.below(x, libm::log(x)) } else { 0.0 }
    }

    fn below(&self, x: f64, log: f64) -> f64 {
        match *self {
            Self::Lognormal { mu, sigma } => normal_cdf((log - mu) / sigma),
            Self::Gamma { shape, scale } => gamma_below(shape, x / scale),
            Self::Weibull { shape, scale } => {
                -libm::expm1(-libm::exp(shape * (log - libm::log(scale))))
            }
            Self::Pareto { xm, alpha } if x >= xm => -libm::expm1(-alpha * (log - libm::log(xm))),
            Self::Pareto { .. } => 0.0,
            Self::Exponential { mean } => -libm::expm1(-x / mean),
        }
    }
}

/// The regularised lower incomplete gamma function. For large shapes the series takes as many terms as the root of the shape is
/// large; there Temme's uniform expansion is good to 1e-9 (1979; DLMF 8.12).
fn gamma_below(shape: f64, x: f64) -> f64 {
    if shape < 1e5 {
        return gamma_lr(shape, x).clamp(0.0, 1.0);
    }
    // lambda - 1 - ln(lambda), without the loss where lambda is near one.
    let mu = (x - shape) / shape;
    let half_square = mu - libm::log1p(mu);
    let eta = (2.0 * half_square).max(0.0).sqrt().copysign(mu);
    // c0 = 1/mu - 1/eta, by its series where both are large.
    let c0 = if mu.abs() < 1e-3 {
        -1.0 / 3.0 + eta * (1.0 / 12.0 - eta * 2.0 / 135.0)
    } else {
        1.0 / mu - 1.0 / eta
    };
    let correction = libm::exp(-shape * half_square) / (std::f64::consts::TAU * shape).sqrt() * c0;
    (normal_cdf(eta * shape.sqrt()) - correction).clamp(0.0, 1.0)
}

/// `ln x - digamma(x)`, and its slope.
fn log_less_digamma(x: f64) -> (f64, f64) {
    // digamma(x) = digamma(x + n) - sum 1/(x + i): from 16 on the series is good to the last bit.
    let (mut shifted, mut value, mut slope) = (x, 0.0, 0.0);
    while shifted < 16.0 {
        value += 1.0 / shifted;
        slope -= 1.0 / (shifted * shifted);
        shifted += 1.0;
    }
    let (i, i2) = (1.0 / shifted, 1.0 / (shifted * shifted));
    // ln s - digamma(s), and trigamma(s) - 1/s.
    let series = i / 2.0 + i2 * (1.0 / 12.0 - i2 * (1.0 / 120.0 - i2 * (1.0 / 252.0 - i2 / 240.0)));
    let trigamma =
        i2 / 2.0 + i * i2 * (1.0 / 6.0 - i2 * (1.0 / 30.0 - i2 * (1.0 / 42.0 - i2 / 30.0)));
    if shifted <= x {
        (series, -trigamma)
    } else {
        let value = libm::log(x / shifted) + series + value;
        (value, 1.0 / x - (i + trigamma - slope))
    }
}

#[cfg(test)]
mod tests {
    use statrs::function::gamma::ln_gamma;

    use super::*;

    fn sample(values: &[f64]) -> Sample {
        let mut values: Vec<f64> = values.to_vec();
        values.sort_by(f64::total_cmp);
        Sample::of(values.into_iter().map(|x| (x, 1.0))).unwrap()
    }

    fn close(found: f64, expect: f64) {
        assert!((found / expect - 1.0).abs() < 1e-8, "{found} {expect}");
    }

    /// `scipy.stats`: `gamma.fit(x, floc=0)`, `weibull_min.fit(x, floc=0)`, `kstest`, on 1, 2, 2, 3, 5, 8, 13, 40.
    #[test]
    fn equals_scipy() {
        let eight = sample(&[13.0, 1.0, 2.0, 2.0, 40.0, 3.0, 5.0, 8.0]);
        let check = |family: Option<Family>, expect: [f64; 3]| {
            let family = family.expect("a fit");
            let (a, b) = match family {
                Family::Lognormal { mu, sigma } => (mu, sigma),
                Family::Gamma { shape, scale } | Family::Weibull { shape, scale } => (shape, scale),
                Family::Pareto { xm, alpha } => (xm, alpha),
                Family::Exponential { mean } => (mean, 1.0),
            };
            close(a, expect[0]);
            close(b, expect[1]);
            close(eight.distance(&family), expect[2]);
        };
        check(eight.lognormal(), SCIPY[0]);
        check(eight.gamma(), SCIPY[1]);
        check(eight.weibull(), SCIPY[2]);
        check(eight.pareto(), SCIPY[3]);
        check(Some(eight.exponential()), SCIPY[4]);
    }
    const SCIPY: [[f64; 3]; 5] = [
        [1.553451864434676, 1.1159815063596898, 0.15820497230717612],
        [0.8742057696603605, 10.581032888393928, 0.19356003152530943],
        [0.8648084075274978, 8.47233816837605, 0.16534527346958128],
        [1.0, 0.6437277027337533, 0.2349429987864412],
        [9.25, 1.0, 0.22301571276754995],
    ];

    fn log_likelihood(sample: &Sample, family: &Family) -> f64 {
        let density = |x: f64| match *family {
            Family::Gamma { shape, scale } => {
                (shape - 1.0) * x.ln() - x / scale - shape * scale.ln() - ln_gamma(shape)
            }
            Family::Weibull { shape, scale } => {
                (shape / scale).ln() + (shape - 1.0) * (x / scale).ln() - (x / scale).powf(shape)
            }
            _ => 0.0,
        };
        sample.values.iter().map(|(x, w, _)| w * density(*x)).sum()
    }

    /// No neighbour is likelier.
    #[test]
    fn fits_are_the_likeliest() {
        let values = sample(&[0.1, 0.4, 0.4, 2.0, 90.0]);
        for family in [values.gamma().unwrap(), values.weibull().unwrap()] {
            let best = log_likelihood(&values, &family);
            for (a, b) in [(1.001, 1.0), (0.999, 1.0), (1.0, 1.001), (1.0, 0.999), (1.001, 0.999)] {
                let near = match family {
                    Family::Gamma { shape, scale } => {
                        Family::Gamma { shape: shape * a, scale: scale * b }
                    }
                    Family::Weibull { shape, scale } => {
                        Family::Weibull { shape: shape * a, scale: scale * b }
                    }
                    other => other,
                };
                assert!(log_likelihood(&values, &near) < best, "{family:?} {near:?}");
            }
        }
    }

    #[test]
    fn equal_values_fit_only_the_exponential() {
        let equal = sample(&[3.0, 3.0, 3.0]);
        assert_eq!(
            (equal.lognormal(), equal.gamma(), equal.weibull(), equal.pareto()),
            (None, None, None, None)
        );
        assert_eq!(equal.exponential(), Family::Exponential { mean: 3.0 });
        assert!(Sample::of([(0.0, 5.0)]).is_none());
    }

    /// `scipy.special.gammainc`, where the series would be long.
    #[test]
    fn large_shapes() {
        for (shape, x, expect) in GAMMAINC {
            let found = gamma_below(shape, x);
            assert!((found - expect).abs() < 1e-9, "{shape} {x}: {found} {expect}");
        }
    }
    const GAMMAINC: [(f64, f64, f64); 6] = [
        (200000.0, 198881.9660112501, 0.006141150922711095),
        (200000.0, 200044.72135955, 0.5401207336030924),
        (200000.0, 201341.64078649986, 0.9986235539120514),
        (3379000.0, 3374404.4858829505, 0.006192982581209653),
        (3379000.0, 3379183.820564682, 0.5398990984047143),
        (3379000.0, 3384514.6169404592, 0.9986436655198959),
    ];
}
