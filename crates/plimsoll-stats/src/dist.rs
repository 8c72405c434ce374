//! Distributions of non-negative numbers, by the parameters people know.

use rand_distr::{Distribution as _, Gamma, StandardNormal};
use statrs::distribution::ContinuousCDF as _;

use crate::normal::{normal_cdf, normal_quantile};
use crate::quantile::quantile_of_sorted;
use crate::seed::Stream;

/// A distribution of finite, non-negative numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Dist(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Constant(f64),
    Uniform { low: f64, high: f64 },
    LogNormal(LogNormal),
    Exponential { mean: f64 },
    Gamma { shape: f64, scale: f64 },
    Weibull { shape: f64, scale: f64 },
    Empirical { values: Vec<f64>, weights: Weighted },
    Mixture { parts: Vec<Dist>, weights: Weighted },
    Clamped { inner: Box<Dist>, min: f64, max: f64 },
}

/// Why parameters describe no distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DistError {
    /// A parameter is negative, infinite or undefined, or zero where it may not be.
    #[error("{name} must be {must}; it is {value}")]
    Parameter {
        /// Which.
        name: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it is.
        value: f64,
    },
    /// Two quantiles contradict each other.
    #[error("p{} = {} is not above p{} = {}", .high.0 * 100.0, .high.1, .low.0 * 100.0, .low.1)]
    Order {
        /// The lower level and its value.
        low: (f64, f64),
        /// The higher level and its value.
        high: (f64, f64),
    },
    /// One quantile does not fix a spread.
    #[error("a distribution by quantiles needs at least two of them")]
    TooFew,
    /// There is nothing to draw.
    #[error("there is nothing to draw from: no values, or all weights are zero")]
    Empty,
    /// There is not one weight for each value.
    #[error("{values} values have {weights} weights")]
    Lengths {
        /// How many values.
        values: usize,
        /// How many weights.
        weights: usize,
    },
    /// The limits exclude everything.
    #[error("min = {min} is above max = {max}")]
    Limits {
        /// Lower limit.
        min: f64,
        /// Upper limit.
        max: f64,
    },
}

impl Dist {
    /// Always this value.
    pub fn constant(value: f64) -> Result<Self, DistError> {
        Ok(Self(Kind::Constant(non_negative("the value", value)?)))
    }

    /// Evenly between two values.
    pub fn uniform(low: f64, high: f64) -> Result<Self, DistError> {
        let (low, high) = (non_negative("min", low)?, non_negative("max", high)?);
        if low > high {
            return Err(DistError::Limits { min: low, max: high });
        }
        Ok(Self(Kind::Uniform { low, high }))
    }

    /// Through these quantiles exactly: with two of them a lognormal, with more a lognormal in pieces,
    /// its outer pieces continued into the tails. Levels are strictly between 0 and 1.
    pub fn by_quantiles(points: &[(f64, f64)]) -> Result<Self, DistError> {
        if points.len() < 2 {
            return Err(DistError::TooFew);
        }
        let mut points = points.to_vec();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        for &(level, value) in &points {
            if !(level > 0.0 && level < 1.0) {
                return Err(DistError::Parameter {
                    name: "a quantile's level",
                    must: "between 0 and 1",
                    value: level,
                });
            }
            positive("a quantile", value)?;
        }
        for pair in points.windows(2) {
            if pair[0].0 == pair[1].0 || pair[0].1 > pair[1].1 {
                return Err(DistError::Order { low: pair[0], high: pair[1] });
            }
        }
        let knots = points.iter().map(|&(p, x)| (normal_quantile(p), libm::log(x))).collect();
        Ok(Self(Kind::LogNormal(LogNormal { knots })))
    }

    /// The lognormal of this mean and coefficient of variation (standard deviation / mean).
    pub fn by_mean_cv(mean: f64, cv: f64) -> Result<Self, DistError> {
        let (mean, cv) = (non_negative("mean", mean)?, non_negative("cv", cv)?);
        if mean == 0.0 || cv == 0.0 {
            return Self::constant(mean);
        }
        let variance = libm::log1p(cv * cv);
        let mu = libm::log(mean) - variance / 2.0;
        let knots = vec![(0.0, mu), (1.0, mu + variance.sqrt())];
        Ok(Self(Kind::LogNormal(LogNormal { knots })))
    }

    /// Exponential.
    pub fn exponential(mean: f64) -> Result<Self, DistError> {
        Ok(Self(Kind::Exponential { mean: positive("mean", mean)? }))
    }

    /// The gamma distribution of this mean and coefficient of variation.
    pub fn gamma(mean: f64, cv: f64) -> Result<Self, DistError> {
        let (mean, cv) = (positive("mean", mean)?, in_cv_range(cv)?);
        Ok(Self(Kind::Gamma { shape: 1.0 / (cv * cv), scale: mean * cv * cv }))
    }

    /// The Weibull distribution of this mean and coefficient of variation.
    pub fn weibull(mean: f64, cv: f64) -> Result<Self, DistError> {
        let (mean, cv) = (positive("mean", mean)?, in_cv_range(cv)?);
        let shape = weibull_shape(cv);
        Ok(Self(Kind::Weibull { shape, scale: mean / libm::tgamma(1.0 + 1.0 / shape) }))
    }

    /// These values, each as often as its weight says; equally without weights.
    pub fn empirical(values: Vec<f64>, weights: Option<Vec<f64>>) -> Result<Self, DistError> {
        for value in &values {
            non_negative("a value", *value)?;
        }
        let weights = Weighted::of(values.len(), weights)?;
        Ok(Self(Kind::Empirical { values, weights }))
    }

    /// One of several distributions, each as often as its weight says.
    pub fn mixture(parts: Vec<Dist>, weights: Vec<f64>) -> Result<Self, DistError> {
        let weights = Weighted::of(parts.len(), Some(weights))?;
        Ok(Self(Kind::Mixture { parts, weights }))
    }

    /// The same with what falls outside moved to the limit, as a service's own limits do.
    pub fn clamped(self, min: f64, max: f64) -> Result<Self, DistError> {
        let (min, max) = (non_negative("min", min)?, non_negative("max", max)?);
        if min > max {
            return Err(DistError::Limits { min, max });
        }
        Ok(match self.0 {
            // A clamp of a mixture is a mixture of clamps, whose means have a closed form.
            Kind::Mixture { parts, weights } => {
                let parts = parts.into_iter().map(|part| part.clamped(min, max));
                Self(Kind::Mixture { parts: parts.collect::<Result<_, _>>()?, weights })
            }
            inner => Self(Kind::Clamped { inner: Box::new(Self(inner)), min, max }),
        })
    }

    /// One draw: finite and not negative.
    pub fn sample(&self, stream: &mut Stream) -> f64 {
        let draw = match &self.0 {
            Kind::Constant(value) => *value,
            Kind::Uniform { low, high } => low + (high - low) * stream.uniform(),
            Kind::LogNormal(shape) => {
                let z: f64 = StandardNormal.sample(stream.generator());
                libm::exp(shape.log_value(z))
            }
            Kind::Exponential { mean } => mean * stream.exponential(),
            Kind::Gamma { shape, scale } => {
                // The constructor has checked the parameters.
                Gamma::new(*shape, *scale).map_or(shape * scale, |g| g.sample(stream.generator()))
            }
            Kind::Weibull { shape, scale } => scale * libm::pow(stream.exponential(), 1.0 / shape),
            Kind::Empirical { values, weights } => values[weights.sample(stream)],
            Kind::Mixture { parts, weights } => parts[weights.sample(stream)].sample(stream),
            Kind::Clamped { inner, min, max } => inner.sample(stream).clamp(*min, *max),
        };
        draw.min(f64::MAX)
    }

    /// The time from an arbitrary instant to the next event of a renewal process with these gaps: a gap
    /// drawn in proportion to its length, of which a uniform part is left. Only gaps of arrival
    /// processes need it; any other distribution gives a plain draw.
    pub(crate) fn sample_residual(&self, stream: &mut Stream) -> f64 {
        let gamma = |shape: f64, stream: &mut Stream| {
            Gamma::new(shape, 1.0).map_or(shape, |g| g.sample(stream.generator()))
        };
        match &self.0 {
            // Weighted by its length, a gamma has one more degree of shape.
            Kind::Gamma { shape, scale } => scale * gamma(shape + 1.0, stream) * stream.uniform(),
            // (x / scale)^shape of a Weibull, weighted by x, is a gamma of shape 1 + 1/shape.
            Kind::Weibull { shape, scale } => {
                let power = gamma(1.0 + 1.0 / shape, stream);
                scale * libm::pow(power, 1.0 / shape) * stream.uniform()
            }
            _ => self.sample(stream),
        }
    }

    /// The mean, in closed form but for a clamped gamma, Weibull, exponential or uniform, whose
    /// quantile function is averaged over 4,096 equal shares.
    pub fn mean(&self) -> f64 {
        match &self.0 {
            Kind::Constant(value) => *value,
            Kind::Uniform { low, high } => low / 2.0 + high / 2.0,
            Kind::LogNormal(shape) => shape.mean(f64::NEG_INFINITY, f64::INFINITY),
            Kind::Exponential { mean } => *mean,
            Kind::Gamma { shape, scale } => shape * scale,
            Kind::Weibull { shape, scale } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Kind::Empirical { values, weights } => weights.average(values.iter().copied()),
            Kind::Mixture { parts, weights } => weights.average(parts.iter().map(Dist::mean)),
            Kind::Clamped { inner, min, max } => match &inner.0 {
                Kind::LogNormal(shape) => shape.mean(libm::log(*min), libm::log(*max)),
                Kind::Empirical { values, weights } => {
                    weights.average(values.iter().map(|x| x.clamp(*min, *max)))
                }
                _ => {
                    const SHARES: u32 = 4096;
                    let level = |i: u32| (f64::from(i) + 0.5) / f64::from(SHARES);
                    (0..SHARES).map(|i| self.quantile(level(i))).sum::<f64>() / f64::from(SHARES)
                }
            },
        }
    }

    /// The share at or below `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        match &self.0 {
            Kind::Constant(value) => f64::from(u8::from(x >= *value)),
            Kind::Uniform { low, high } if low == high => f64::from(u8::from(x >= *low)),
            Kind::Uniform { low, high } => ((x - low) / (high - low)).clamp(0.0, 1.0),
            Kind::LogNormal(shape) if x > 0.0 => normal_cdf(shape.z_of(libm::log(x))),
            _ if x < 0.0 => 0.0,
            Kind::LogNormal(_) => 0.0,
            Kind::Exponential { mean } => -libm::expm1(-x / mean),
            Kind::Gamma { shape, scale } => {
                statrs::distribution::Gamma::new(*shape, 1.0 / scale).map_or(0.0, |g| g.cdf(x))
            }
            Kind::Weibull { shape, scale } => -libm::expm1(-libm::pow(x / scale, *shape)),
            Kind::Empirical { values, weights } => {
                weights.average(values.iter().map(|v| f64::from(u8::from(*v <= x))))
            }
            Kind::Mixture { parts, weights } => weights.average(parts.iter().map(|d| d.cdf(x))),
            Kind::Clamped { min, .. } if x < *min => 0.0,
            Kind::Clamped { max, .. } if x >= *max => 1.0,
            Kind::Clamped { inner, .. } => inner.cdf(x),
        }
    }

    /// The value below which a share `p` lies, `p` strictly between 0 and 1.
    pub fn quantile(&self, p: f64) -> f64 {
        match &self.0 {
            Kind::Constant(value) => *value,
            Kind::Uniform { low, high } => low + (high - low) * p,
            Kind::LogNormal(shape) => libm::exp(shape.log_value(normal_quantile(p))),
            Kind::Exponential { mean } => -mean * libm::log1p(-p),
            Kind::Weibull { shape, scale } => scale * libm::pow(-libm::log1p(-p), 1.0 / shape),
            Kind::Empirical { values, weights } => weights.quantile(values, p),
            Kind::Clamped { inner, min, max } => inner.quantile(p).clamp(*min, *max),
            Kind::Gamma { .. } | Kind::Mixture { .. } => self.quantile_by_bisection(p),
        }
    }

    fn quantile_by_bisection(&self, p: f64) -> f64 {
        let mut high = self.mean().max(f64::MIN_POSITIVE);
        while self.cdf(high) < p && high < f64::MAX / 2.0 {
            high *= 2.0;
        }
        let mut low = 0.0;
        // 80 halvings of a bracket end at the last bit.
        for _ in 0..80 {
            let middle = low + (high - low) / 2.0;
            if self.cdf(middle) < p { low = middle } else { high = middle }
        }
        high
    }
}

fn non_negative(name: &'static str, value: f64) -> Result<f64, DistError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value + 0.0);
    }
    Err(DistError::Parameter { name, must: "finite and not negative", value })
}

fn positive(name: &'static str, value: f64) -> Result<f64, DistError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(DistError::Parameter { name, must: "finite and above zero", value })
}

/// Where gamma and Weibull shapes are numerically sound; real traces lie between 0.5 and 20.
fn in_cv_range(cv: f64) -> Result<f64, DistError> {
    if (0.01..=100.0).contains(&cv) {
        return Ok(cv);
    }
    Err(DistError::Parameter { name: "cv", must: "between 0.01 and 100", value: cv })
}

/// The coefficient of variation of a Weibull distribution of this shape.
pub fn weibull_cv(shape: f64) -> f64 {
    let twice = libm::lgamma(1.0 + 2.0 / shape) - 2.0 * libm::lgamma(1.0 + 1.0 / shape);
    libm::expm1(twice).max(0.0).sqrt()
}

/// The shape whose coefficient of variation is `cv`: cv^2 + 1 = Γ(1+2/k) / Γ(1+1/k)^2, which falls
/// as k grows.
fn weibull_shape(cv: f64) -> f64 {
    let target = libm::log1p(cv * cv);
    let excess = |k: f64| libm::lgamma(1.0 + 2.0 / k) - 2.0 * libm::lgamma(1.0 + 1.0 / k) - target;
    let (mut low, mut high) = (0.05, 200.0);
    for _ in 0..80 {
        let middle = libm::sqrt(low * high);
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    libm::sqrt(low * high)
}

/// ln x as a piecewise linear, non-decreasing function of the normal score, at least two knots.
#[derive(Clone, Debug, PartialEq)]
struct LogNormal {
    knots: Vec<(f64, f64)>,
}

impl LogNormal {
    /// The piece that covers `z`: `ln x = at + slope * z`.
    fn piece(&self, i: usize) -> (f64, f64) {
        let ((z0, y0), (z1, y1)) = (self.knots[i], self.knots[i + 1]);
        let slope = (y1 - y0) / (z1 - z0);
        (y0 - slope * z0, slope)
    }

    fn last_piece(&self) -> usize {
        self.knots.len() - 2
    }

    fn log_value(&self, z: f64) -> f64 {
        let inner = &self.knots[1..self.knots.len() - 1];
        let (at, slope) = self.piece(inner.partition_point(|knot| knot.0 < z));
        at + slope * z
    }

    /// The largest score whose value is at most `y`: flat pieces count as below.
    fn z_of(&self, y: f64) -> f64 {
        let inner = &self.knots[1..self.knots.len() - 1];
        let i = inner.partition_point(|knot| knot.1 <= y).min(self.last_piece());
        let (at, slope) = self.piece(i);
        match slope {
            s if s > 0.0 => (y - at) / s,
            _ if y >= at => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        }
    }

    /// The mean of exp(clamp(ln x, low, high)): over a piece ln x = a + b z between two scores it is
    /// e^(a + b²/2) [Φ(z2 - b) - Φ(z1 - b)].
    fn mean(&self, low: f64, high: f64) -> f64 {
        let (z_low, z_high) = match (low == f64::NEG_INFINITY, high == f64::INFINITY) {
            (true, true) => (f64::NEG_INFINITY, f64::INFINITY),
            _ => (self.z_of_lower(low), self.z_of(high)),
        };
        let mut mean = 0.0;
        if low > f64::NEG_INFINITY {
            mean += libm::exp(low) * normal_cdf(z_low);
        }
        if high < f64::INFINITY {
            mean += libm::exp(high) * normal_cdf(-z_high);
        }
        for i in 0..=self.last_piece() {
            let (at, slope) = self.piece(i);
            let from = if i == 0 { f64::NEG_INFINITY } else { self.knots[i].0 };
            let to = if i == self.last_piece() { f64::INFINITY } else { self.knots[i + 1].0 };
            let (from, to) = (from.max(z_low), to.min(z_high));
            if from < to {
                mean += piece_mean(at, slope, from, to);
            }
        }
        mean.min(f64::MAX)
    }

    fn z_of_lower(&self, low: f64) -> f64 {
        if low == f64::NEG_INFINITY { low } else { self.z_of(low) }
    }
}

/// The part of the mean that lies between two scores of a piece ln x = at + slope * z. A steep piece overflows the
/// closed form where its share vanishes, so it is held to what its ends allow: between the smallest and the
/// largest value, times the probability.
fn piece_mean(at: f64, slope: f64, from: f64, to: f64) -> f64 {
    let probability = normal_cdf(to) - normal_cdf(from);
    if probability <= 0.0 {
        return 0.0;
    }
    let share = normal_cdf(to - slope) - normal_cdf(from - slope);
    let closed =
        if share > 0.0 { libm::exp(at + slope * slope / 2.0 + libm::log(share)) } else { 0.0 };
    let value = |z: f64| if z.is_finite() { libm::exp(at + slope * z) } else { f64::INFINITY };
    let least = if from.is_finite() { value(from) * probability } else { 0.0 };
    closed.clamp(least.min(f64::MAX), (value(to) * probability).min(f64::MAX))
}

/// A quantile of what three percentiles describe, the 5th, 50th and 95th: interpolated and continued on a normal
/// scale, in the logarithm where all three are positive; never negative.
pub fn three_point_quantile(low: f64, likely: f64, high: f64, level: f64) -> f64 {
    let z = normal_quantile(level) / normal_quantile(0.95);
    let outer = if z < 0.0 { low } else { high };
    if low > 0.0 {
        libm::exp(libm::log(likely) + z.abs() * (libm::log(outer) - libm::log(likely)))
    } else {
        (likely + z.abs() * (outer - likely)).max(0.0)
    }
}

/// Indices drawn by weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted {
    /// Running sums, the last one being the total.
    cumulative: Vec<f64>,
}

impl Weighted {
    /// Equal weights, or these: as many as there are items, none negative, not all zero.
    pub fn of(items: usize, weights: Option<Vec<f64>>) -> Result<Self, DistError> {
        let weights = weights.unwrap_or_else(|| vec![1.0; items]);
        if weights.len() != items {
            return Err(DistError::Lengths { values: items, weights: weights.len() });
        }
        let mut total = 0.0;
        let mut cumulative = Vec::with_capacity(items);
        for weight in weights {
            total += non_negative("a weight", weight)?;
            cumulative.push(total);
        }
        if !(total > 0.0 && total.is_finite()) {
            return Err(DistError::Empty);
        }
        Ok(Self { cumulative })
    }

    /// One index.
    pub fn sample(&self, stream: &mut Stream) -> usize {
        self.index_at(stream.uniform())
    }

    fn total(&self) -> f64 {
        self.cumulative[self.cumulative.len() - 1]
    }

    fn index_at(&self, share: f64) -> usize {
        let target = share * self.total();
        self.cumulative.partition_point(|sum| *sum <= target).min(self.cumulative.len() - 1)
    }

    /// The weighted mean of one number for each index.
    pub fn average(&self, numbers: impl Iterator<Item = f64>) -> f64 {
        let mut before = 0.0;
        let mut sum = 0.0;
        for (x, upto) in numbers.zip(&self.cumulative) {
            sum += x * (upto - before);
            before = *upto;
        }
        sum / self.total()
    }

    /// Type 7 where all weights are equal, otherwise the smallest value whose share reaches `p`.
    fn quantile(&self, values: &[f64], p: f64) -> f64 {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let weight =
            |i: usize| self.cumulative[i] - if i == 0 { 0.0 } else { self.cumulative[i - 1] };
        let first = weight(0);
        if order.iter().all(|i| (weight(*i) - first).abs() <= 1e-12 * self.total()) {
            let sorted: Vec<f64> = order.iter().map(|i| values[*i]).collect();
            return quantile_of_sorted(&sorted, p);
        }
        let mut sum = 0.0;
        for i in &order {
            sum += weight(*i);
            if sum >= p * self.total() {
                return values[*i];
            }
        }
        values[order[order.len() - 1]]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::seed::Seed;

    fn check(what: &str, got: f64, expect: f64, tolerance: f64) {
        assert!((got - expect).abs() <= tolerance, "{what}: got {got}, expected {expect}");
    }

    /// Sample mean and CV of many draws.
    fn moments(dist: &Dist) -> (f64, f64) {
        let mut stream = Seed::new(11).stream("moments");
        let draws: Vec<f64> = (0..200_000).map(|_| dist.sample(&mut stream)).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        (mean, variance.sqrt() / mean)
    }

    /// The mean is exp(mu + sigma²/2) with mu = ln 900 and sigma = ln(4200 / 900) / z(0.95).
    #[test]
    fn two_quantiles_are_a_lognormal() {
        let dist = Dist::by_quantiles(&[(0.5, 900.0), (0.95, 4200.0)]).unwrap();
        let sigma = (4200.0f64 / 900.0).ln() / 1.644_853_627;
        check("mean", dist.mean(), 900.0 * (sigma * sigma / 2.0).exp(), 1e-6);
        check("p50", dist.quantile(0.5), 900.0, 1e-9);
        check("p95", dist.quantile(0.95), 4200.0, 1e-6);
        check("cdf", dist.cdf(4200.0), 0.95, 1e-9);
    }

    #[test]
    fn more_quantiles_are_met_exactly() {
        let points = [(0.5, 900.0), (0.9, 2500.0), (0.95, 4200.0), (0.99, 30_000.0)];
        let dist = Dist::by_quantiles(&points).unwrap();
        for (p, x) in points {
            check("quantile", dist.quantile(p), x, 1e-6 * x);
            check("cdf", dist.cdf(x), p, 1e-9);
        }
        let (mean, _) = moments(&dist.clone().clamped(0.0, 100_000.0).unwrap());
        check("clamped mean", dist.clamped(0.0, 100_000.0).unwrap().mean(), mean, 0.02 * mean);
    }

    /// Lognormal(0, 1) clamped to [0.5, 2], by the textbook partial expectation:
    /// 0.5 Φ(-ln2) + 2 Φ(-ln2) + e^0.5 (Φ(ln2 - 1) - Φ(-ln2 - 1)), Φ(-0.693147) = 0.244109,
    /// Φ(-0.306853) = 0.379478, Φ(-1.693147) = 0.045214.
    #[test]
    fn a_clamped_lognormal_has_its_textbook_mean() {
        let dist = Dist::by_quantiles(&[(0.5, 1.0), (0.841_344_746, std::f64::consts::E)]).unwrap();
        let expect = 2.5 * 0.244_109 + 1.648_721 * (0.379_478 - 0.045_214);
        check("mean", dist.clamped(0.5, 2.0).unwrap().mean(), expect, 2e-5);
    }

    /// The sample CV of a heavy-tailed lognormal is itself noisy: 15% over 200,000 draws.
    #[test]
    fn means_and_variations_are_the_ones_asked_for() {
        for cv in [0.5, 1.0, 2.0] {
            for (name, dist) in [
                ("lognormal", Dist::by_mean_cv(3.0, cv).unwrap()),
                ("gamma", Dist::gamma(3.0, cv).unwrap()),
                ("weibull", Dist::weibull(3.0, cv).unwrap()),
            ] {
                let (mean, sampled_cv) = moments(&dist);
                check(name, dist.mean(), 3.0, 1e-9);
                check(name, mean, 3.0, 0.03);
                check(name, sampled_cv, cv, 0.15 * cv);
            }
        }
        let (mean, cv) = moments(&Dist::exponential(2.0).unwrap());
        check("exponential mean", mean, 2.0, 0.02);
        check("exponential cv", cv, 1.0, 0.01);
        let (mean, _) = moments(&Dist::uniform(1.0, 3.0).unwrap());
        check("uniform", mean, 2.0, 0.01);
    }

    /// Weibull with CV 1 is the exponential; shape 2 (Rayleigh) has CV sqrt(4/π - 1) = 0.522723.
    #[test]
    fn weibull_shapes_match_the_textbook() {
        check("cv 1", weibull_shape(1.0), 1.0, 1e-9);
        check("rayleigh", weibull_shape(0.522_723_2), 2.0, 1e-5);
        check("and back", weibull_cv(weibull_shape(2.5)), 2.5, 1e-9);
        check(
            "median",
            Dist::weibull(1.0, 1.0).unwrap().quantile(0.5),
            std::f64::consts::LN_2,
            1e-9,
        );
    }

    /// Gamma with shape 1/cv² = 4 and mean 4 has median 3.672 (tables of the Erlang-4).
    #[test]
    fn gamma_quantiles_match_the_tables() {
        let dist = Dist::gamma(4.0, 0.5).unwrap();
        check("median", dist.quantile(0.5), 3.672_06, 1e-4);
        check("cdf", dist.cdf(3.672_06), 0.5, 1e-5);
    }

    /// Between its points, at them and beyond; a range that reaches zero stays linear.
    #[test]
    fn three_points_are_met() {
        for (level, expect) in [(0.05, 2.0), (0.5, 3.0), (0.95, 6.0)] {
            check("log", three_point_quantile(2.0, 3.0, 6.0, level), expect, 1e-9);
            check(
                "linear",
                three_point_quantile(0.0, 3.0, 6.0, level),
                if level < 0.1 { 0.0 } else { expect },
                1e-9,
            );
        }
        // Half way to the 95th percentile in normal scores: z = 0.822427, p = 0.794588; sqrt(3 * 6).
        check("between", three_point_quantile(2.0, 3.0, 6.0, 0.794_588), 18f64.sqrt(), 1e-4);
        assert!(three_point_quantile(2.0, 3.0, 6.0, 0.99) > 6.0);
        check("exact", three_point_quantile(1.0, 1.0, 1.0, 0.99), 1.0, 1e-12);
    }

    /// A tail so steep that its closed form overflows: the mean stays between the limits.
    #[test]
    fn steep_tails_have_finite_means() {
        let dist =
            Dist::by_quantiles(&[(0.90, 1.0), (0.95, 1e15)]).unwrap().clamped(0.0, 1000.0).unwrap();
        let (sampled, _) = moments(&dist);
        check("steep", dist.mean(), sampled, 0.03 * sampled);
    }

    #[test]
    fn empirical_and_mixture_follow_their_weights() {
        let dist = Dist::empirical(vec![1.0, 10.0], Some(vec![3.0, 1.0])).unwrap();
        check("mean", dist.mean(), 3.25, 1e-12);
        check("p50", dist.quantile(0.5), 1.0, 0.0);
        check("p90", dist.quantile(0.9), 10.0, 0.0);
        check("sampled", moments(&dist).0, 3.25, 0.05);
        let mixture =
            Dist::mixture(vec![dist, Dist::constant(0.0).unwrap()], vec![1.0, 1.0]).unwrap();
        check("mixture", mixture.mean(), 1.625, 1e-12);
        check("mixture cdf", mixture.cdf(1.0), 0.875, 1e-12);
        check("mixture p95", mixture.quantile(0.95), 10.0, 1e-6);
        let even = Dist::empirical((1..=10).map(f64::from).collect(), None).unwrap();
        check("type 7", even.quantile(0.25), 3.25, 1e-12);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let message = |r: Result<Dist, DistError>| r.expect_err("nonsense").to_string();
        assert_eq!(
            message(Dist::by_quantiles(&[(0.5, 900.0), (0.95, 500.0)])),
            "p95 = 500 is not above p50 = 900"
        );
        assert_eq!(
            message(Dist::by_quantiles(&[(0.5, 900.0)])),
            "a distribution by quantiles needs at least two of them"
        );
        assert_eq!(
            message(Dist::constant(f64::NAN)),
            "the value must be finite and not negative; it is NaN"
        );
        assert_eq!(message(Dist::gamma(1.0, 0.0)), "cv must be between 0.01 and 100; it is 0");
        assert_eq!(message(Dist::uniform(2.0, 1.0)), "min = 2 is above max = 1");
        assert_eq!(
            message(Dist::empirical(vec![], None)),
            "there is nothing to draw from: no values, or all weights are zero"
        );
        assert_eq!(
            message(Dist::empirical(vec![1.0], Some(vec![0.0]))),
            "there is nothing to draw from: no values, or all weights are zero"
        );
        assert_eq!(
            message(Dist::empirical(vec![1.0], Some(vec![1.0, 2.0]))),
            "1 values have 2 weights"
        );
    }

    proptest! {
        /// Draws are finite, not negative, and the quantile function inverts the distribution function.
        #[test]
        fn draws_are_finite(p50 in 1e-3f64..1e9, spread in 1.0f64..1e4, cv in 0.0f64..50.0, seed: u64) {
            let mut stream = Seed::new(seed).stream("proptest");
            let by_quantiles = Dist::by_quantiles(&[(0.5, p50), (0.95, p50 * spread)]).unwrap();
            let by_mean = Dist::by_mean_cv(p50, cv).unwrap();
            for dist in [&by_quantiles, &by_mean] {
                for _ in 0..20 {
                    let x = dist.sample(&mut stream);
                    prop_assert!(x.is_finite() && x >= 0.0, "{x}");
                }
                prop_assert!(dist.mean().is_finite());
                let (low, high) = (dist.quantile(0.2), dist.quantile(0.8));
                prop_assert!(low <= high);
            }
            if spread > 1.01 {
                let x = by_quantiles.quantile(0.7);
                prop_assert!((by_quantiles.cdf(x) - 0.7).abs() < 1e-6);
            }
        }

        /// A clamp holds for every draw and for the mean.
        #[test]
        fn clamps_hold(p50 in 1.0f64..1e6, decades in 0.0f64..15.0, a in 0.0f64..1e6, b in 0.0f64..1e6, seed: u64) {
            let (min, max) = (a.min(b), a.max(b));
            let top = p50 * 10f64.powf(decades);
            let dist = Dist::by_quantiles(&[(0.5, p50), (0.95, top)]).unwrap().clamped(min, max).unwrap();
            let mut stream = Seed::new(seed).stream("clamp");
            for _ in 0..20 {
                prop_assert!((min..=max).contains(&dist.sample(&mut stream)));
            }
            let mean = dist.mean();
            prop_assert!(mean >= min - 1e-6 * min - 1e-9 && mean <= max + 1e-6 * max, "{min} {mean} {max}");
        }
    }
}
