//! Demand by the hour, made from a season, noise and bursts that are known.

use std::ops::Range;

use plimsoll_stats::{Stream, normal_quantile};
use plimsoll_workload::{ClassHistory, History, Known, StepCount};

/// How noise comes to a season.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sum of daily and weekly waves and normal noise.
    Additive,
    /// A product of waves and noise that lasts for hours, counted as Poisson.
    Multiplicative,
    /// The same, 1.8 times as much in episodes of some four hours, and more noise.
    Bursty,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Additive, Self::Multiplicative, Self::Bursty];
}

/// What a demand is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// The mean of an hour.
    pub mean: f64,
    /// How far the day swings, as a share of the mean.
    pub day: f64,
    /// How far the week does.
    pub week: f64,
    /// Where the day's peak is, in hours.
    pub peak: f64,
    /// The standard deviation of noise, as a share of the mean.
    pub noise: f64,
    /// How much larger it is after a week.
    pub growth: f64,
}

impl Truth {
    /// A demand with a day, a week and little noise: 3600 an hour on average, which is one a second.
    pub const CALM: Self =
        Self { mean: 3600.0, day: 0.4, week: 0.15, peak: 14.0, noise: 0.01, growth: 1.0 };

    /// The same without a season.
    pub const FLAT: Self = Self { day: 0.0, week: 0.0, ..Self::CALM };

    /// A demand at random, as real ones differ.
    pub fn draw(stream: &mut Stream) -> Self {
        let mut between = |low: f64, high: f64| low + (high - low) * stream.uniform();
        Self {
            mean: between(200.0, 5000.0),
            day: between(0.25, 0.6),
            week: between(0.05, 0.25),
            peak: between(0.0, 24.0),
            noise: between(0.05, 0.15),
            growth: 1.0,
        }
    }

    /// What an hour has without noise.
    pub fn at(&self, hour: usize, kind: Kind) -> f64 {
        let turn = |hours: f64, period: f64| (hours / period * std::f64::consts::TAU).cos();
        let hours = hour as f64;
        let (day, week) =
            (self.day * turn(hours - self.peak, 24.0), self.week * turn(hours - 60.0, 168.0));
        let level = self.mean * self.growth.powf(hours / 168.0);
        match kind {
            Kind::Additive => level * (1.0 + day + week),
            Kind::Multiplicative | Kind::Bursty => level * (1.0 + day) * (1.0 + week),
        }
    }
}

fn normal(stream: &mut Stream) -> f64 {
    normal_quantile(stream.uniform_positive().clamp(1e-12, 1.0 - 1e-12))
}

/// A count around a mean: of single events where there are few, nearly normal where there are many.
fn poisson(mean: f64, stream: &mut Stream) -> f64 {
    if mean > 50.0 {
        return (mean + mean.sqrt() * normal(stream)).round().max(0.0);
    }
    let (mut count, mut time) = (0.0, stream.exponential());
    while time < mean {
        count += 1.0;
        time += stream.exponential();
    }
    count
}

/// Requests of so many hours.
pub fn hourly(truth: &Truth, kind: Kind, hours: usize, stream: &mut Stream) -> Vec<f64> {
    let (mut lasting, mut burst) = (0.0, false);
    (0..hours)
        .map(|hour| {
            let mean = truth.at(hour, kind);
            if kind == Kind::Additive {
                return (mean + truth.noise * truth.mean * normal(stream)).max(0.0);
            }
            lasting = 0.7 * lasting + 0.51f64.sqrt() * truth.noise * normal(stream);
            let mut factor = lasting.exp();
            if kind == Kind::Bursty {
                // A twelfth of the time, four hours on average.
                burst = stream.uniform() < if burst { 0.75 } else { 0.25 / 11.0 };
                factor *=
                    if burst { 1.8 } else { 1.0 } * (0.5 * truth.noise * normal(stream)).exp();
            }
            poisson(mean * factor, stream)
        })
        .collect()
}

/// Requests of so many hours whose noise stands for itself hour by hour, as a factor: what is known of an hour says nothing of the next
/// but through its season.
pub fn fresh_noise(truth: &Truth, hours: usize, stream: &mut Stream) -> Vec<f64> {
    let at = |hour| truth.at(hour, Kind::Multiplicative) * (truth.noise * normal(stream)).exp();
    (0..hours).map(at).collect()
}

/// What a request of an hour is like, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Prompt tokens, cached ones included.
    pub prompt: f64,
    /// Output tokens.
    pub output: f64,
    /// The share of prompt tokens that is cached.
    pub cached: f64,
    /// How long its tokens are held, in seconds.
    pub held_s: f64,
}

impl Lengths {
    /// Chat: a thousand in, half of them cached, two hundred out, held for ten seconds.
    pub const CHAT: Self = Self { prompt: 1000.0, output: 200.0, cached: 0.5, held_s: 10.0 };

    /// The same with prompts and outputs around their mean, by a share of it.
    pub fn around(self, noise: f64, stream: &mut Stream) -> Self {
        let prompt = self.prompt * (noise * normal(stream)).exp();
        let output = self.output * (noise * normal(stream)).exp();
        Self { prompt, output, ..self }
    }
}

/// A class with these requests by the hour, all of them answered, and with lengths that are known.
pub fn class(
    name: &str,
    requests: &[f64],
    mut lengths: impl FnMut(usize) -> Lengths,
) -> ClassHistory {
    let steps = requests.iter().enumerate().map(|(hour, n)| {
        let own = lengths(hour);
        let held = (own.prompt + own.output) * own.held_s;
        let known = |each: f64, of: f64| Known { sum: each * of, of };
        StepCount {
            requests: *n,
            attempts: *n,
            limited: 0.0,
            failed: 0.0,
            prompt_tokens: known(own.prompt, *n),
            cached_tokens: known(own.cached, own.prompt * n),
            output_tokens: known(own.output, *n),
            kv_token_s: known(held, *n),
        }
    });
    ClassHistory { name: name.to_owned(), steps: steps.collect() }
}

/// Classes by the hour, from the beginning of 1970 on.
pub fn of_classes(classes: Vec<ClassHistory>) -> History {
    History { start_s: 0, step_s: 3600, absolute: true, classes }
}

/// Refuses a share of what was asked in these steps. It was asked all the same, and its prompts are known; outputs and what
/// is held are known of the rest only.
pub fn refuse(history: &mut History, steps: Range<usize>, share: f64) {
    for step in history.classes.iter_mut().flat_map(|class| &mut class.steps[steps.clone()]) {
        step.limited = share * step.attempts;
        for known in [&mut step.cached_tokens, &mut step.output_tokens, &mut step.kv_token_s] {
            *known = Known { sum: known.sum * (1.0 - share), of: known.of * (1.0 - share) };
        }
    }
}

/// Takes every row of these steps away: nobody was counting.
pub fn lose(history: &mut History, steps: Range<usize>) {
    for class in &mut history.classes {
        class.steps[steps.clone()].fill(StepCount::default());
    }
}

/// A class with these requests by the hour and nothing known of their lengths, from the beginning of 1970 on.
pub fn history(requests: &[f64]) -> History {
    let step = |n: &f64| StepCount {
        requests: *n,
        attempts: *n,
        prompt_tokens: Known::default(),
        ..StepCount::default()
    };
    let steps = requests.iter().map(step).collect();
    of_classes(vec![ClassHistory { name: "chat".to_owned(), steps }])
}
