//! When things arrive.
//!
//! An arrival process here is a rate over time ([`RateCurve`]: the time of day, a launch), a texture
//! (how regular or bursty it is around that rate: [`Spacing`], [`Burst`]), or regular dumps. A texture is
//! defined at rate one and laid onto the curve by its cumulative rate, so the mean rate at any hour is the
//! curve's, whatever the texture.

use crate::dist::{Dist, DistError};
use crate::seed::Stream;

/// What arrivals look like around their mean rate.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// Independent gaps, possibly with bursts on top.
    Flow {
        /// How gaps between arrivals vary.
        spacing: Spacing,
        /// Episodes of a higher rate.
        burst: Option<Burst>,
    },
    /// Everything that came up since the last dump arrives at once, every so many seconds.
    Dumps {
        /// Seconds between dumps.
        every: f64,
    },
}

/// How gaps between arrivals vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spacing {
    /// Independent users: exponential gaps.
    Poisson,
    /// Gamma gaps of this coefficient of variation: above 1 clustered, below 1 regular.
    Gamma {
        /// Standard deviation of a gap / its mean.
        cv: f64,
    },
    /// Weibull gaps of this coefficient of variation.
    Weibull {
        /// Standard deviation of a gap / its mean.
        cv: f64,
    },
}

/// A two-state modulation (MMPP with Poisson spacing): exponential episodes at a multiple of the mean
/// rate, and calm between them at what keeps the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    times: f64,
    calm_times: f64,
    lasts: f64,
    calm_lasts: f64,
}

/// Why numbers describe no arrivals.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArrivalError {
    /// Gaps that cannot be.
    #[error(transparent)]
    Spacing(#[from] DistError),
    /// A rate, duration or multiple is out of range.
    #[error("{name} must be {must}; it is {value}")]
    Parameter {
        /// Which.
        name: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it is.
        value: f64,
    },
    /// The bursts alone carry more than everything that arrives.
    #[error(
        "bursts of {times}x the mean rate during {share:.3} of the time carry {:.2}x all arrivals",
        times * share
    )]
    BurstTooLarge {
        /// The multiple of the mean rate.
        times: f64,
        /// The share of time spent in bursts.
        share: f64,
    },
}

impl Burst {
    /// Episodes at `times` the mean rate that last `lasts` seconds on average and begin every `every`
    /// seconds on average.
    pub fn new(times: f64, lasts: f64, every: f64) -> Result<Self, ArrivalError> {
        let check = |name, value: f64, ok: bool, must| {
            if ok && value.is_finite() {
                Ok(())
            } else {
                Err(ArrivalError::Parameter { name, must, value })
            }
        };
        check("the burst's multiple", times, times >= 1.0, "at least 1")?;
        check("the burst's duration", lasts, lasts > 0.0, "above zero")?;
        check("the time between bursts", every, every > lasts, "longer than a burst")?;
        let share = lasts / every;
        if times * share > 1.0 {
            return Err(ArrivalError::BurstTooLarge { times, share });
        }
        let calm_times = (1.0 - times * share) / (1.0 - share);
        Ok(Self { times, calm_times, lasts, calm_lasts: every - lasts })
    }

    /// The rate in a burst, as a multiple of the mean rate.
    pub fn times(&self) -> f64 {
        self.times
    }

    /// The rate between bursts, as a multiple of the mean rate.
    pub fn calm_times(&self) -> f64 {
        self.calm_times
    }

    /// Mean seconds of a burst.
    pub fn lasts(&self) -> f64 {
        self.lasts
    }

    /// Mean seconds from the end of a burst to the beginning of the next.
    pub fn calm_lasts(&self) -> f64 {
        self.calm_lasts
    }
}

impl Process {
    /// Seconds from the beginning of one burst or dump to the next, on average; none where arrivals come without either.
    pub fn episode_seconds(&self) -> Option<f64> {
        match self {
            Self::Flow { burst: Some(burst), .. } if burst.times > burst.calm_times => {
                Some(burst.lasts + burst.calm_lasts)
            }
            Self::Flow { .. } => None,
            Self::Dumps { every } => Some(*every),
        }
    }
}

/// A rate over time, constant between its steps, from time zero to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct RateCurve {
    /// (end of the piece, rate in it), ends increasing.
    pieces: Vec<(f64, f64)>,
}

impl RateCurve {
    /// One rate until `end`.
    pub fn constant(rate: f64, end: f64) -> Result<Self, ArrivalError> {
        Self::steps(vec![(end, rate)])
    }

    /// `(until, rate)` pieces in order.
    pub fn steps(pieces: Vec<(f64, f64)>) -> Result<Self, ArrivalError> {
        let mut before = 0.0;
        for &(until, rate) in &pieces {
            if !(until.is_finite() && until > before) {
                let must = "later than the one before";
                return Err(ArrivalError::Parameter {
                    name: "the end of a step",
                    must,
                    value: until,
                });
            }
            if !(rate.is_finite() && rate >= 0.0) {
                let must = "finite and not negative";
                return Err(ArrivalError::Parameter { name: "a rate", must, value: rate });
            }
            before = until;
        }
        Ok(Self { pieces })
    }

    /// Where it ends; zero without pieces.
    pub fn end(&self) -> f64 {
        self.pieces.last().map_or(0.0, |piece| piece.0)
    }

    /// Expected arrivals from the start to the end.
    pub fn total(&self) -> f64 {
        let starts = std::iter::once(0.0).chain(self.pieces.iter().map(|piece| piece.0));
        starts.zip(&self.pieces).map(|(from, (until, rate))| (until - from) * rate).sum()
    }
}

/// The arrival times of one process over one rate curve, in order.
#[derive(Clone, Debug)]
pub struct Arrivals {
    curve: RateCurve,
    piece: usize,
    now: f64,
    /// Nothing has arrived yet: the first gap is the rest of one that began before time zero.
    first: bool,
    texture: Texture,
    stream: Stream,
}

#[derive(Clone, Debug)]
enum Texture {
    Flow { gap: Gap, burst: Option<BurstState> },
    Dumps { every: f64, tick: u32, left: u64 },
}

#[derive(Clone, Debug)]
enum Gap {
    Exponential,
    By(Dist),
}

#[derive(Clone, Debug)]
struct BurstState {
    burst: Burst,
    bursting: bool,
    until: f64,
    /// Of its own, so that bursts come at the same times whatever the rate.
    stream: Stream,
}

impl Arrivals {
    /// Arrivals of this process over this rate, drawn from this stream.
    pub fn new(process: &Process, curve: RateCurve, stream: Stream) -> Result<Self, ArrivalError> {
        let texture = match process {
            Process::Flow { spacing, burst } => {
                let gap = match *spacing {
                    Spacing::Poisson => Gap::Exponential,
                    Spacing::Gamma { cv } => Gap::By(Dist::gamma(1.0, cv)?),
                    Spacing::Weibull { cv } => Gap::By(Dist::weibull(1.0, cv)?),
                };
                // Start in the long-run state, not always in the calm.
                let burst = burst.map(|burst| {
                    let mut stream = stream.aside();
                    let share = burst.lasts / (burst.lasts + burst.calm_lasts);
                    let bursting = stream.uniform() < share;
                    let mean = if bursting { burst.lasts } else { burst.calm_lasts };
                    BurstState { burst, bursting, until: mean * stream.exponential(), stream }
                });
                Texture::Flow { gap, burst }
            }
            Process::Dumps { every } => {
                if !(every.is_finite() && *every > 0.0) {
                    let (name, must) = ("the time between dumps", "above zero");
                    return Err(ArrivalError::Parameter { name, must, value: *every });
                }
                Texture::Dumps { every: *every, tick: 0, left: 0 }
            }
        };
        Ok(Self { curve, piece: 0, now: 0.0, first: true, texture, stream })
    }

    /// Moves `now` forward until `work` expected arrivals have gone by; `false` at the end of the curve.
    fn advance(&mut self, mut work: f64) -> bool {
        while let Some(&(until, rate)) = self.curve.pieces.get(self.piece) {
            let (mut until, mut rate) = (until, rate);
            let mut switches = false;
            if let Texture::Flow { burst: Some(state), .. } = &self.texture {
                rate *= if state.bursting { state.burst.times } else { state.burst.calm_times };
                switches = state.until < until;
                until = until.min(state.until);
            }
            let available = (until - self.now) * rate;
            if work < available {
                self.now += work / rate;
                return true;
            }
            work -= available;
            self.now = until;
            if switches {
                self.switch();
            } else {
                self.piece += 1;
            }
        }
        false
    }

    fn switch(&mut self) {
        if let Texture::Flow { burst: Some(state), .. } = &mut self.texture {
            state.bursting = !state.bursting;
            let mean = if state.bursting { state.burst.lasts } else { state.burst.calm_lasts };
            // A zero-length draw would not move time forward.
            state.until += (mean * state.stream.exponential()).max(1e-9);
        }
    }

    /// Expected arrivals between now and `end`, moving `now` there.
    fn accumulate(&mut self, end: f64) -> f64 {
        let mut expected = 0.0;
        while let Some(&(until, rate)) = self.curve.pieces.get(self.piece) {
            let upto = until.min(end);
            expected += (upto - self.now) * rate;
            self.now = upto;
            if until > end {
                break;
            }
            self.piece += 1;
        }
        expected
    }
}

impl Iterator for Arrivals {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        match &mut self.texture {
            Texture::Flow { gap, .. } => {
                let work = match gap {
                    Gap::Exponential => self.stream.exponential(),
                    Gap::By(dist) if std::mem::take(&mut self.first) => {
                        dist.sample_residual(&mut self.stream)
                    }
                    Gap::By(dist) => dist.sample(&mut self.stream),
                };
                self.advance(work).then_some(self.now)
            }
            Texture::Dumps { every, tick, left } => {
                if let Some(n) = left.checked_sub(1) {
                    *left = n;
                    return Some(self.now);
                }
                let (every, mut tick) = (*every, *tick);
                loop {
                    // Counted, not added up: the tick after `now` must lie after it.
                    tick = tick.checked_add(1)?;
                    let end = f64::from(tick) * every;
                    if end > self.curve.end() {
                        return None;
                    }
                    let expected = self.accumulate(end);
                    self.now = end;
                    // The fraction is settled by a draw, so the mean is kept.
                    let count = expected.floor() as u64
                        + u64::from(self.stream.uniform() < expected.fract());
                    if count > 0 {
                        self.texture = Texture::Dumps { every, tick, left: count - 1 };
                        return Some(self.now);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::seed::Seed;

    fn times(process: &Process, curve: RateCurve, seed: u64) -> Vec<f64> {
        Arrivals::new(process, curve, Seed::new(seed).stream("arrivals")).unwrap().collect()
    }

    fn flow(spacing: Spacing) -> Process {
        Process::Flow { spacing, burst: None }
    }

    fn gap_cv(times: &[f64]) -> f64 {
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        (gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / n).sqrt() / mean
    }

    /// Variance / mean of counts in windows.
    fn dispersion(times: &[f64], window: f64, end: f64) -> f64 {
        let mut counts = vec![0.0; (end / window) as usize];
        for t in times {
            if let Some(count) = counts.get_mut((t / window) as usize) {
                *count += 1.0;
            }
        }
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / (n - 1.0) / mean
    }

    #[test]
    fn episodes_are_as_far_apart_as_was_asked_for() {
        let burst = |times| Some(Burst::new(times, 120.0, 1800.0).unwrap());
        let bursty = |burst| Process::Flow { spacing: Spacing::Poisson, burst };
        assert_eq!(bursty(None).episode_seconds(), None);
        // A burst of the mean rate is none.
        assert_eq!(bursty(burst(1.0)).episode_seconds(), None);
        assert_eq!(bursty(burst(5.0)).episode_seconds(), Some(1800.0));
        assert_eq!(Process::Dumps { every: 900.0 }.episode_seconds(), Some(900.0));
    }

    /// A Poisson process has CV 1 and dispersion 1; 20,000 arrivals at 10/s: five standard errors.
    #[test]
    fn poisson_is_poisson() {
        let times = times(&flow(Spacing::Poisson), RateCurve::constant(10.0, 2000.0).unwrap(), 1);
        assert!((times.len() as f64 - 20_000.0).abs() < 5.0 * 20_000f64.sqrt(), "{}", times.len());
        assert!((gap_cv(&times) - 1.0).abs() < 0.04);
        assert!((dispersion(&times, 1.0, 2000.0) - 1.0).abs() < 0.16);
    }

    #[test]
    fn renewals_have_the_variation_asked_for() {
        for cv in [0.5, 2.0, 3.0] {
            for spacing in [Spacing::Gamma { cv }, Spacing::Weibull { cv }] {
                let times = times(&flow(spacing), RateCurve::constant(10.0, 20_000.0).unwrap(), 2);
                assert!((times.len() as f64 / 200_000.0 - 1.0).abs() < 0.04, "{spacing:?}");
                assert!((gap_cv(&times) / cv - 1.0).abs() < 0.05, "{spacing:?} {}", gap_cv(&times));
            }
        }
    }

    /// The dispersion of a two-state MMPP over long windows tends to 1 + 2 r p q (b - c)² T (Fischer and
    /// Meier-Hellstern 1993), with the mean rate r, the burst share p = 1 - q, the relative rates b and c,
    /// and the relaxation time 1/T = 1/lasts + 1/calm. Here r = 10, p = 0.1, b = 5, c = 5/9, T = 9 s:
    /// 1 + 2 * 10 * 0.09 * 19.753 * 9 = 321.
    #[test]
    fn bursts_keep_the_mean_and_cluster_as_the_textbook_says() {
        let burst = Some(Burst::new(5.0, 10.0, 100.0).unwrap());
        let process = Process::Flow { spacing: Spacing::Poisson, burst };
        let end = 400_000.0;
        let times = times(&process, RateCurve::constant(10.0, end).unwrap(), 3);
        assert!((times.len() as f64 / (10.0 * end) - 1.0).abs() < 0.03, "{}", times.len());
        let got = dispersion(&times, 1000.0, end);
        assert!((got / 321.0 - 1.0).abs() < 0.25, "{got}");
    }

    /// Loads are compared on the same bursts: at twice the rate each of them has about twice as many, and begins and ends when it did.
    #[test]
    fn bursts_come_at_the_same_times_at_every_load() {
        let burst = Some(Burst::new(8.0, 300.0, 3600.0).unwrap());
        let process = Process::Flow { spacing: Spacing::Poisson, burst };
        let counts = |rate: f64| {
            let mut counts = vec![0u32; 200];
            for at in times(&process, RateCurve::constant(rate, 36_000.0).unwrap(), 9) {
                counts[(at / 180.0) as usize] += 1;
            }
            counts
        };
        // Windows of three minutes have 40 requests or fewer in the calm, and up to 1,440 in a burst.
        for (once, twice) in counts(1.0).into_iter().zip(counts(2.0)) {
            let (once, twice) = (f64::from(once), f64::from(twice));
            assert!(
                (twice - 2.0 * once).abs() < 6.0 * (2.0 * once + twice).sqrt() + 6.0,
                "{once} {twice}"
            );
        }
    }

    /// Short spans have the mean rate too: a process that began at a renewal would show (cv² - 1) / 2 more, which
    /// is 7.5 arrivals for cv = 4 on top of 36.
    #[test]
    fn renewals_begin_in_the_long_run() {
        for spacing in
            [Spacing::Gamma { cv: 4.0 }, Spacing::Weibull { cv: 4.0 }, Spacing::Gamma { cv: 0.3 }]
        {
            let runs = 4000;
            let total: usize = (0..runs)
                .map(|seed| {
                    times(&flow(spacing), RateCurve::constant(0.01, 3600.0).unwrap(), seed).len()
                })
                .sum();
            let mean = total as f64 / runs as f64;
            // The count's deviation is about cv * sqrt(36) = 24; over 4,000 runs 0.38, and four of those.
            assert!((mean - 36.0).abs() < 1.6, "{spacing:?}: {mean}");
        }
    }

    #[test]
    fn the_rate_follows_the_curve() {
        let curve = RateCurve::steps(vec![(1000.0, 2.0), (2000.0, 0.0), (3000.0, 20.0)]).unwrap();
        assert!((curve.total() - 22_000.0).abs() < 1e-9);
        for process in [flow(Spacing::Poisson), flow(Spacing::Gamma { cv: 2.0 })] {
            let times = times(&process, curve.clone(), 4);
            let within = |from: f64, to: f64| {
                times.iter().filter(|t| (from..to).contains(*t)).count() as f64
            };
            assert!((within(0.0, 1000.0) / 2000.0 - 1.0).abs() < 0.25);
            assert_eq!(within(1000.0, 2000.0), 0.0);
            assert!((within(2000.0, 3000.0) / 20_000.0 - 1.0).abs() < 0.1);
        }
    }

    #[test]
    fn dumps_come_on_the_tick_and_lose_nothing() {
        let curve = RateCurve::steps(vec![(100.0, 1.0), (400.0, 0.5)]).unwrap();
        let times = times(&Process::Dumps { every: 60.0 }, curve, 5);
        assert!(times.iter().all(|t| t % 60.0 == 0.0));
        // By 360 s: 100 + 260 / 2 = 230 expected.
        assert_eq!(times.len(), 230);
        assert_eq!(times.iter().filter(|t| **t == 60.0).count(), 60);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let message = |r: Result<Burst, ArrivalError>| r.expect_err("nonsense").to_string();
        assert_eq!(
            message(Burst::new(20.0, 10.0, 100.0)),
            "bursts of 20x the mean rate during 0.100 of the time carry 2.00x all arrivals"
        );
        assert_eq!(
            message(Burst::new(0.5, 10.0, 100.0)),
            "the burst's multiple must be at least 1; it is 0.5"
        );
        assert_eq!(
            message(Burst::new(2.0, 10.0, 5.0)),
            "the time between bursts must be longer than a burst; it is 5"
        );
        assert!(RateCurve::steps(vec![(1.0, 1.0), (1.0, 1.0)]).is_err());
        assert!(RateCurve::constant(f64::NAN, 1.0).is_err());
        assert!(
            times(&flow(Spacing::Poisson), RateCurve::constant(0.0, 10.0).unwrap(), 1).is_empty()
        );
    }

    proptest! {
        /// Times are in order and inside the curve, whatever the process.
        #[test]
        fn times_are_ordered(seed: u64, rate in 0.0f64..50.0, cv in 0.05f64..5.0, times_mean in 1.0f64..4.0, every in 1.0f64..50.0) {
            let burst = Some(Burst::new(times_mean, 2.0, 20.0).unwrap());
            for process in [
                Process::Flow { spacing: Spacing::Gamma { cv }, burst },
                Process::Flow { spacing: Spacing::Weibull { cv }, burst: None },
                Process::Dumps { every },
            ] {
                let times = times(&process, RateCurve::steps(vec![(30.0, rate), (60.0, rate / 2.0)]).unwrap(), seed);
                prop_assert!(times.windows(2).all(|w| w[0] <= w[1]));
                prop_assert!(times.iter().all(|t| (0.0..=60.0).contains(t)));
            }
        }
    }
}
