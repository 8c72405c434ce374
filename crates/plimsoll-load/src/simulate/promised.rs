//! What a simulation says of promises, and whether it lasted long enough to say anything of them.

use serde::Serialize;

use super::{ClassResult, SimulateInput, Simulation};
use crate::promise::ClassTarget;

/// A promise that a simulation breaks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BrokenPromise {
    /// Whose.
    pub class: String,
    /// `attainment`, or the tail's key.
    pub promise: &'static str,
    /// What was promised: a share of good tasks, or milliseconds.
    pub promised: f64,
    /// What was seen.
    pub seen: f64,
}

/// Promises that are broken, as far as was seen.
pub fn broken_promises(result: &Simulation, targets: &[ClassTarget]) -> Vec<BrokenPromise> {
    let of = |(class, target): (&ClassResult, &ClassTarget)| {
        let broken = |promise, promised, seen| {
            let class = class.name.clone();
            BrokenPromise { class, promise, promised, seen }
        };
        let share = class.attainment.filter(|seen| *seen < target.attainment);
        let share = share.map(|seen| broken("attainment", target.attainment, seen));
        let tails = target.tails.iter().filter_map(|tail| {
            let seen = tail.value(class).filter(|seen| *seen > tail.most_ms)?;
            Some(broken(tail.key, tail.most_ms, seen))
        });
        share.into_iter().chain(tails).collect::<Vec<_>>()
    };
    result.classes.iter().zip(targets).flat_map(of).collect()
}

/// Tasks one after the other, and bursts or dumps, that a simulation sees where it says anything of them.
const TASKS: f64 = 10.0;
const EPISODES: f64 = 10.0;

/// What a simulation is too short for.
pub fn too_short(result: &Simulation, input: &SimulateInput) -> Vec<String> {
    let mut notes = Vec::new();
    let whole = result.seconds * f64::from(result.runs);
    for (class, own) in result.classes.iter().zip(&input.classes) {
        let name = &class.name;
        if let Some(apart) = own.class.process.episode_seconds()
            && whole < EPISODES * apart
        {
            notes.push(format!(
                "too short to judge `{name}`: its bursts or dumps are {apart:.0} s apart, and {whole:.0} s see about {:.0} of them; `--duration {:.0}h` sees ten in each run",
                whole / apart,
                (EPISODES * apart / 3600.0).ceil(),
            ));
        }
        if let Some(task_ms) = class.e2e_ms.map(|e2e| e2e.mean)
            && result.seconds * 1e3 < TASKS * task_ms
        {
            notes.push(format!(
                "too short to judge `{name}`: a task takes {:.0} s, and a backlog of such tasks builds up over many of them; `--duration {:.0}h` sees more",
                task_ms / 1e3,
                (2.0 * TASKS * task_ms / 3.6e6).ceil(),
            ));
        }
    }
    notes
}
