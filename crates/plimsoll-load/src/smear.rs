//! Gaps between tokens as a client sees them: as simulated, and spread out as measured ones were around their prediction.
//!
//! Real steps jitter, hosts are interrupted, clients read two outputs at once. None of it is in a step's mean, and simulating it step by step
//! would only add noise; so the spread that a calibration saw is folded into the distribution that is reported.

use std::collections::BTreeMap;

use plimsoll_sim::Pace;
use serde::Serialize;

/// How far measured gaps were from their prediction: equally likely differences in seconds, in order, by what decided the gap. Empty where too few were seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Of the device, in steps of decodes alone.
    pub decodes_s: Vec<f64>,
    /// Of the device, in steps that carried prompts.
    pub prompts_s: Vec<f64>,
    /// Of the host that was launching the next step.
    pub launch_s: Vec<f64>,
}

/// Values that a spread keeps of each kind; percentiles up to the 99th can be told from so many.
const KEPT: usize = 200;
/// With fewer differences their spread is not known.
const FEWEST: usize = 8;

/// A gap that was measured and predicted, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differed {
    /// What decided it.
    pub pace: Pace,
    /// Its time, less what the steps explain, in seconds.
    pub difference: f64,
    /// How much it counts.
    pub weight: f64,
}

impl Spread {
    /// The differences of one kind, and whether they shorten a gap: a token that is handed out late leaves a gap after it that is shorter by as much.
    fn of(&self, pace: Pace) -> (&[f64], f64) {
        match pace {
            Pace::Decodes => (&self.decodes_s, 1.0),
            Pace::Prompts => (&self.prompts_s, 1.0),
            Pace::Launch => (&self.launch_s, 1.0),
            Pace::AfterLaunch => (&self.launch_s, -1.0),
        }
    }

    /// The share of gaps of this length that are longer than a bound once they are spread out; in seconds.
    pub fn share_above(&self, pace: Pace, gap: f64, bound: f64) -> f64 {
        let (differences, sign) = self.of(pace);
        if differences.is_empty() {
            return f64::from(u8::from(gap > bound));
        }
        let above = differences.iter().filter(|d| (gap + sign * **d).max(0.0) > bound).count();
        above as f64 / differences.len() as f64
    }

    /// From all that was seen.
    pub fn seen(all: &[Differed]) -> Self {
        let kept = |pace: Pace| {
            let mut own: Vec<&Differed> = all.iter().filter(|d| d.pace == pace).collect();
            if own.len() < FEWEST {
                return Vec::new();
            }
            own.sort_by(|a, b| a.difference.total_cmp(&b.difference));
            let total: f64 = own.iter().map(|d| d.weight).sum();
            let (mut at, mut passed) = (0, own[0].weight);
            let middle = |i: usize| (i as f64 + 0.5) / KEPT as f64 * total;
            let pick = |i: usize| {
                while passed < middle(i) && at + 1 < own.len() {
                    at += 1;
                    passed += own[at].weight;
                }
                own[at].difference
            };
            (0..KEPT).map(pick).collect()
        };
        Self {
            decodes_s: kept(Pace::Decodes),
            prompts_s: kept(Pace::Prompts),
            launch_s: kept(Pace::Launch),
        }
    }
}

/// Simulated gaps: how often each occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// By length in picoseconds and by what decided it.
    counts: BTreeMap<(u64, Pace), u64>,
}

impl Gaps {
    /// So many gaps of this length.
    pub fn add(&mut self, gap: u64, pace: Pace, count: u64) {
        *self.counts.entry((gap, pace)).or_default() += count;
    }

    /// Their mean in seconds; none without gaps. A spread does not move it: the step times it is made of are means already.
    pub fn mean(&self) -> Option<f64> {
        let n: u64 = self.counts.values().sum();
        let sum: f64 = self.counts.iter().map(|((gap, _), n)| *gap as f64 * *n as f64).sum();
        (n > 0).then(|| sum / n as f64 / 1e12)
    }

    /// Their quantiles in seconds, once every gap is replaced by itself and each difference of its kind, in equal parts; none without gaps. Between
    /// two gaps the straight line, as in [`plimsoll_stats::quantile`] of all of them.
    pub fn quantiles<const N: usize>(&self, spread: &Spread, at: [f64; N]) -> Option<[f64; N]> {
        let mut smeared: Vec<(f64, f64)> = Vec::new();
        for ((gap, pace), n) in &self.counts {
            let (gap, n) = (*gap as f64 / 1e12, *n as f64);
            let (differences, sign) = spread.of(*pace);
            match differences.len() {
                0 => smeared.push((gap, n)),
                // A gap is never negative: two outputs read at once.
                parts => smeared.extend(
                    differences.iter().map(|d| ((gap + sign * d).max(0.0), n / parts as f64)),
                ),
            }
        }
        smeared.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = smeared.iter().map(|(_, n)| n).sum();
        let last = smeared.last()?.0;
        // The gap with so many before it.
        let nth = |before: f64| {
            let mut passed = 0.0;
            let found = smeared.iter().find(|(_, n)| {
                passed += n;
                // Parts of gaps do not add up to the last bit.
                passed > before + 1e-6
            });
            found.map_or(last, |(gap, _)| *gap)
        };
        Some(at.map(|p| {
            let place = p * (total - 1.0).max(0.0);
            let (low, high) = (nth(place.floor()), nth(place.floor() + 1.0));
            low + (high - low) * place.fract()
        }))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::quantile;

    use super::*;

    fn spread(decodes: &[f64]) -> Spread {
        Spread { decodes_s: decodes.to_vec(), ..Spread::default() }
    }

    /// Without a spread the quantiles are those of the gaps themselves.
    #[test]
    fn without_a_spread_gaps_stay() {
        let mut gaps = Gaps::default();
        let mut all = Vec::new();
        for i in 0..57u64 {
            let (gap, n) = (1_000_000_000 * (1 + i * 31 % 17), 1 + i % 3);
            gaps.add(gap, Pace::Decodes, n);
            all.extend(std::iter::repeat_n(gap as f64 / 1e12, n as usize));
        }
        for p in [0.0, 0.1, 0.5, 0.95, 0.99, 1.0] {
            let [found] = gaps.quantiles(&Spread::default(), [p]).unwrap();
            assert!((found - quantile(&all, p).unwrap()).abs() < 1e-12, "{p}: {found}");
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((gaps.mean().unwrap() - mean).abs() < 1e-12);
    }

    /// Worked by hand: two gaps of 10 ms and two of 20 ms; decodes are equally likely 1 ms early, right, and 4 ms late. The twelve thirds lie at 9, 9, 10, 10,
    /// 14, 14, 19, 19, 20, 20, 24, 24 ms; the four gaps begin at the first, fourth, seventh and tenth. Prompts, of which no spread is known, stay.
    #[test]
    fn a_spread_by_hand() {
        let mut gaps = Gaps::default();
        gaps.add(10_000_000_000, Pace::Decodes, 2);
        gaps.add(20_000_000_000, Pace::Decodes, 2);
        let spread = spread(&[-1e-3, 0.0, 4e-3]);
        let [least, middle, most] = gaps.quantiles(&spread, [0.0, 0.5, 1.0]).unwrap();
        assert!((least - 9e-3).abs() < 1e-12 && (most - 20e-3).abs() < 1e-12, "{least} {most}");
        // Half way between the second and the third.
        assert!((middle - 14.5e-3).abs() < 1e-12, "{middle}");
        assert_eq!(gaps.mean(), Some(15e-3));
        let mut prompts = Gaps::default();
        prompts.add(50_000_000_000, Pace::Prompts, 3);
        assert_eq!(prompts.quantiles(&spread, [0.9]), Some([50e-3]));
        assert_eq!(Gaps::default().quantiles(&spread, [0.5]), None);
    }

    /// No gap becomes negative, however early the client reads.
    #[test]
    fn never_negative() {
        let mut gaps = Gaps::default();
        gaps.add(1_000_000_000, Pace::Decodes, 10);
        assert_eq!(gaps.quantiles(&spread(&[-5e-3, 0.0]), [0.1]), Some([0.0]));
    }

    /// A spread keeps the weighted quantiles of what it saw, and nothing of what it hardly saw.
    #[test]
    fn a_spread_is_what_was_seen() {
        let mut seen: Vec<Differed> = (0..1000)
            .map(|i| Differed { pace: Pace::Decodes, difference: f64::from(i), weight: 1.0 })
            .collect();
        // As many again at 2000, that count a quarter each: a fifth of the whole.
        let late = Differed { pace: Pace::Decodes, difference: 2000.0, weight: 0.25 };
        seen.extend(std::iter::repeat_n(late, 1000));
        seen.push(Differed { pace: Pace::Launch, difference: 7.0, weight: 1.0 });
        let spread = Spread::seen(&seen);
        assert_eq!(spread.decodes_s.len(), KEPT);
        assert!(spread.decodes_s.is_sorted());
        assert_eq!(spread.decodes_s.iter().filter(|d| **d == 2000.0).count(), KEPT / 5);
        assert!((spread.decodes_s[KEPT * 2 / 5] - 500.0).abs() < 10.0, "{:?}", spread.decodes_s);
        assert!(spread.launch_s.is_empty());
    }
}
