//! The load line: how much of a mix a fleet carries, how sure that is, what binds beyond it, and which promise breaks first.
//!
//! Loads are tried on one grid, each in the same way whatever was tried before, and the search begins at the demand itself: the same question has the same answer, whoever
//! asks it. `curve` asks, and a plan without replicas of its own; other commands look for lines in shorter runs.

use std::collections::BTreeMap;

use plimsoll_plan::{Reply, least};
use plimsoll_workload::Shift;

use crate::episodes::{EPISODES, EPISODES_OF_A_LOOK};
use crate::sweep::{Judged, Sweep, binds, is_threshold, missed_shares};
use plimsoll_load::Simulation;
use plimsoll_load::StudyError;

/// How closely a load is tried.
#[derive(Clone, Copy, Debug)]
struct Effort {
    runs: u32,
    /// Calls, and bursts or dumps, over all runs.
    calls: f64,
    episodes: f64,
}

/// The first looks around, the others decide.
const EFFORTS: [Effort; 3] = [
    Effort { runs: 2, calls: 2_000.0, episodes: EPISODES_OF_A_LOOK },
    Effort { runs: 8, calls: 8_000.0, episodes: EPISODES },
    Effort { runs: 8, calls: 24_000.0, episodes: 3.0 * EPISODES },
];
/// How many efforts there are.
pub(crate) const ALL_EFFORTS: u32 = EFFORTS.len() as u32;
/// The least effort that decides.
pub(crate) const DECIDES: u32 = 1;

/// Loads of the grid are this factor apart. One of them is the demand itself.
const GRID: f64 = 1.04;
/// The lightest and the heaviest, in steps of the grid from the demand: a hundredth of it, and ten times as much.
const LIGHTEST: i32 = -117;
const HEAVIEST: i32 = 59;

/// What a fleet carries of a mix.
#[derive(Debug)]
pub(crate) struct LoadLine {
    /// The heaviest load that keeps every promise, as every lighter one that was tried does; in multiples of the mix. None where none does.
    pub(crate) holds: Option<f64>,
    /// The lightest that does not; none where every load that was tried is carried.
    pub(crate) fails: Option<f64>,
    /// What is surely carried, and what surely is not.
    pub(crate) between: (Option<f64>, Option<f64>),
    /// What binds at the first load that fails, and where.
    pub(crate) binds: Option<String>,
    pub(crate) of: Option<String>,
    /// The promise that is broken there.
    pub(crate) signal: Option<String>,
    /// Every load that was tried closely enough to decide, lightest first.
    pub(crate) tried: Vec<Tried>,
}

/// A load that was tried.
#[derive(Debug)]
pub(crate) struct Tried {
    /// In multiples of the mix.
    pub(crate) load: f64,
    /// What was seen.
    pub(crate) result: Simulation,
    /// What that means.
    pub(crate) judged: Judged,
}

impl Tried {
    /// The promise that is broken first: of the thresholds of the class that is furthest from its promise, the one that more of its tasks miss than at a light load. What
    /// fails at any load is not what more load does.
    fn first_signal(&self, light: Option<&Self>) -> Option<String> {
        let by = self.judged.fails_by.clone()?;
        let Some(worst) = self.judged.worst.filter(|_| is_threshold(&by)) else { return Some(by) };
        let shares = |own: &Self| missed_shares(&own.result.classes[worst]);
        let before = light.map_or([0.0; 5], |light| shares(light).map(|(_, share)| share));
        let more = shares(self).into_iter().zip(before).map(|((name, now), was)| (name, now - was));
        // Of those that as many more miss, the one that is seen first.
        let most = more.rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(most.0.to_owned())
    }
}

/// A load of the grid, as a multiple of the demand.
pub(crate) fn load_at(step: i32) -> f64 {
    GRID.powi(step)
}

impl Sweep<'_> {
    /// Tries a load with so much effort. Fleets begin as busy as they are near their line, so it does not matter what was tried before.
    pub(crate) fn try_with(
        &mut self,
        load: f64,
        effort: u32,
    ) -> Result<(Simulation, Judged), StudyError> {
        let own = EFFORTS[(effort as usize).min(EFFORTS.len() - 1)];
        (self.patient, self.episodes) = (true, own.episodes);
        self.base.runs = match effort {
            0 => own.runs,
            _ => own.runs.max(self.input.fleet.runs),
        };
        self.begin_busy();
        let result = self.run(Shift { rate: load, ..Shift::NONE }, own.calls)?;
        let judged = self.judged(&result);
        Ok((result, judged))
    }

    /// The load line of what a sweep is set to.
    pub(crate) fn load_line(&mut self) -> Result<LoadLine, StudyError> {
        // The search looks for the least number that holds: the fewest steps down from the heaviest load.
        let step_of = |down: u32| HEAVIEST.saturating_sub_unsigned(down);
        let (demand, lightest) = (HEAVIEST.unsigned_abs(), LIGHTEST.abs_diff(HEAVIEST));
        let mut tried: BTreeMap<i32, (u32, Tried)> = BTreeMap::new();
        let bracket = least(0..=lightest, demand, ALL_EFFORTS, |down, effort| {
            // What is not looked at to its end says nothing.
            if !self.goes_on() {
                return Ok(Reply { holds: true, sure: true });
            }
            let step = step_of(down);
            let load = load_at(step);
            let (result, judged) = self.try_with(load, effort)?;
            let reply = judged.reply(effort);
            tried.insert(step, (effort, Tried { load, result, judged }));
            Ok::<Reply, StudyError>(reply)
        })?;
        let load = |down: Option<u32>| down.map(|down| load_at(step_of(down)));
        tried.retain(|_, (effort, _)| *effort >= DECIDES);
        // What was tried, up to the first that fails.
        let broke = tried.values().map(|(_, own)| own).find(|own| !own.judged.meets);
        let kept = tried.values().map(|(_, own)| own).take_while(|own| own.judged.meets).last();
        let light = tried.values().next().map(|(_, own)| own);
        let signal = broke.and_then(|own| own.first_signal(light));
        let binding = broke.map(|own| binds(&own.result, signal.as_deref()));
        let (binds, of) = binding.unwrap_or_default();
        Ok(LoadLine {
            holds: kept.map(|own| own.load),
            fails: broke.map(|own| own.load),
            between: (load(bracket.holds), load(bracket.fails)),
            binds,
            of,
            signal,
            tried: tried.into_values().map(|(_, own)| own).collect(),
        })
    }
}

impl Sweep<'_> {
    /// There is no line where not even a request alone is served as promised. The demand itself is tried all the same.
    pub(crate) fn no_load_line(&mut self) -> Result<LoadLine, StudyError> {
        let (result, judged) = self.try_with(1.0, DECIDES)?;
        let (binds, of) = binds(&result, judged.fails_by.as_deref());
        let signal = judged.fails_by.clone();
        let tried = vec![Tried { load: 1.0, result, judged }];
        Ok(LoadLine {
            holds: None,
            fails: Some(1.0),
            between: (None, Some(1.0)),
            binds,
            of,
            signal,
            tried,
        })
    }
}

impl Judged {
    /// What a search may take from it: a short look says no only where it is sure of it, and is never sure that all is well.
    pub(crate) fn reply(&self, effort: u32) -> Reply {
        let decides = effort >= DECIDES;
        Reply {
            holds: if decides { self.meets } else { self.may_meet() },
            sure: decides && self.sure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The demand itself is a load of the grid, neighbours are at most a twentieth apart, and it reaches from a hundredth to ten times.
    #[test]
    fn the_grid() {
        assert!((load_at(0) - 1.0).abs() < f64::EPSILON);
        assert!(load_at(LIGHTEST) < 0.0105 && load_at(HEAVIEST) > 10.0);
        for step in LIGHTEST..HEAVIEST {
            let ratio = load_at(step + 1) / load_at(step);
            assert!(ratio > 1.0 && ratio <= 1.05);
        }
    }
}
