//! Bursts and dumps: how long a fleet has to be simulated until a verdict rests on enough of them.
//!
//! A run that is shorter than the time between two bursts mostly sees none of them, and says that the fleet is fine. So all runs of a load together see as many episodes as
//! are asked for. `docs/model.md`, "Episodes".

use plimsoll_stats::Process;

use plimsoll_load::SimulatedClass;

/// Episodes that a verdict rests on at least.
pub(crate) const EPISODES: f64 = 10.0;
/// Episodes of a look that only says where to look closer.
pub(crate) const EPISODES_OF_A_LOOK: f64 = 3.0;
/// Requests of one load at most, over all runs, because of episodes: some seconds of computing.
const REQUESTS_MOST: f64 = 4e6;

/// How far apart bursts and dumps are, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Episode {
    /// Of the class whose are furthest apart.
    pub(crate) every: f64,
    /// The same of dumps alone, which come by the clock.
    dumps: Option<f64>,
}

impl Episode {
    /// Of the classes that come in an hour; none where all of them come evenly.
    pub(crate) fn slowest(classes: &[SimulatedClass], hour: usize, events: bool) -> Option<Self> {
        let there = classes.iter().filter(|class| class.rate(hour, events) > 0.0);
        Self::of(there.map(|class| &class.class.process))
    }

    fn of<'a>(processes: impl Iterator<Item = &'a Process>) -> Option<Self> {
        let each = processes.filter_map(|process| {
            let every = process.episode_seconds()?;
            let dumps = matches!(process, Process::Dumps { .. }).then_some(every);
            Some(Self { every, dumps })
        });
        // Any number is more than none.
        each.reduce(|a, b| Self {
            every: a.every.max(b.every),
            dumps: if a.dumps > b.dumps { a.dumps } else { b.dumps },
        })
    }

    /// Whether a verdict may rest on so many seconds, those of all runs together.
    pub(crate) fn enough(self, seconds: f64) -> bool {
        seconds >= (EPISODES - 1e-6) * self.every
    }
}

/// How long each run lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Length {
    /// Seconds before it counts.
    pub(crate) warm_up: f64,
    /// Seconds that count.
    pub(crate) seconds: f64,
}

impl Length {
    /// Long enough for so many episodes over all runs, where so many requests come a second; or as long as can be afforded.
    ///
    /// Runs begin anywhere between two bursts. Dumps come by the clock, the first of them after the time between two: as many of them as count are seen to their end where a
    /// run begins to count with the first of them, and lasts for whole ones.
    pub(crate) fn with_episodes(
        self,
        (episode, episodes): (Option<Episode>, f64),
        runs: u32,
        requests_per_s: f64,
    ) -> Self {
        let Some(episode) = episode.filter(|_| episodes > 0.0) else { return self };
        let runs = f64::from(runs.max(1));
        let mut length =
            Self { seconds: self.seconds.max(episodes / runs * episode.every), ..self };
        if let Some(every) = episode.dumps {
            length.warm_up = length.warm_up.max(every);
            length.seconds = (length.seconds / every).ceil() * every;
        }
        let most = REQUESTS_MOST / requests_per_s.max(1e-9) / runs;
        if length.warm_up + length.seconds <= most {
            return length;
        }
        Self { seconds: self.seconds.max(length.seconds.min(most)), ..self }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::{Burst, Spacing};

    use super::*;

    fn bursts(every: f64) -> Process {
        let burst = Some(Burst::new(5.0, every / 20.0, every).unwrap());
        Process::Flow { spacing: Spacing::Poisson, burst }
    }

    fn dumps(every: f64) -> Process {
        Process::Dumps { every }
    }

    fn check(of: &[Process], runs: u32, requests_per_s: f64, warm_up: f64, seconds: f64) {
        let short = Length { warm_up: 30.0, seconds: 100.0 };
        let episode = Episode::of(of.iter());
        let got = short.with_episodes((episode, EPISODES), runs, requests_per_s);
        assert_eq!(got, Length { warm_up, seconds }, "{of:?}");
    }

    /// Ten of them over all runs; of dumps whole ones, after one that does not count.
    #[test]
    fn runs_see_enough_of_them() {
        let even = Process::Flow { spacing: Spacing::Poisson, burst: None };
        check(std::slice::from_ref(&even), 8, 10.0, 30.0, 100.0);
        check(&[even, bursts(1800.0)], 8, 10.0, 30.0, 2250.0);
        check(&[dumps(900.0)], 8, 10.0, 900.0, 1800.0);
        check(&[dumps(900.0)], 2, 10.0, 900.0, 4500.0);
        // The slowest decides how long, and dumps where it begins and ends.
        check(&[bursts(1800.0), dumps(900.0)], 8, 10.0, 900.0, 2700.0);
        // Long enough as it is.
        check(&[bursts(7.0)], 1, 10.0, 30.0, 100.0);
    }

    /// Bursts that are a day apart take more than can be afforded: four million requests, in two runs of two million, which at 100 a second are 20,000 s.
    #[test]
    fn what_cannot_be_afforded_is_cut_and_not_enough() {
        check(&[bursts(86_400.0)], 2, 100.0, 30.0, 20_000.0);
        let episode = Episode::of([bursts(86_400.0)].iter()).unwrap();
        assert!(!episode.enough(40_000.0));
        assert!(episode.enough(864_000.0));
    }
}
