//! Runs that are shown: they keep everything that a simulation keeps, and decide nothing.

use plimsoll_stats::in_order;
use plimsoll_workload::Shift;

use crate::arrivals::{SimulatedClass, Spell, longest_pauses};
use crate::component::{LoadQuestion, UNSIZED_POOL_REPLICAS, isolated};
use crate::demand::StudyError;
use crate::line::{Load, LoadLine};
use crate::simulate::{Record, SimulateInput, Simulation, Source, simulate};
use crate::trial::{ALONE_CALLS_PER_S, Tester};

/// No run that is shown is longer: a week.
const MOST_S: f64 = 7.0 * 86_400.0;
/// What is left at the end is worked off for at least so long.
const WORK_OFF_S: f64 = 60.0;

/// A load of a service curve.
#[derive(Clone, Debug)]
pub struct Point {
    /// As a multiple of the demand.
    pub load: f64,
    /// What was seen, component by component.
    pub seen: Vec<Simulation>,
}

impl Load<'_> {
    /// What each component does at a load, in a run of about so many calls each.
    pub fn shown(&self, load: f64, calls: f64) -> Result<Vec<Simulation>, StudyError> {
        self.points(&[load], calls)?.pop().map_or(Ok(Vec::new()), |point| Ok(point.seen))
    }

    /// The same at several loads.
    pub fn points(&self, loads: &[f64], calls: f64) -> Result<Vec<Point>, StudyError> {
        let testers = self.testers();
        let each = testers.len();
        let count = u32::try_from(loads.len() * each).unwrap_or(u32::MAX);
        let seen = in_order(self.question.fleet.threads, count, |i| {
            let (load, tester) = (loads[i as usize / each], &testers[i as usize % each]);
            let (fleet, rate) = run_of(self.question.fleet, tester);
            shown(fleet, rate, &[tester], load, calls, None)
        });
        let mut seen = seen.into_iter();
        loads
            .iter()
            .map(|load| {
                let seen = seen.by_ref().take(each).collect::<Result<_, StudyError>>()?;
                Ok(Point { load: *load, seen })
            })
            .collect()
    }

    /// What all of the fleet does at a load, in runs of the same length that make about so many calls together.
    pub fn shown_together(&self, load: f64, calls: f64) -> Result<Simulation, StudyError> {
        let seen = self.together(self.testers(), load, calls)?;
        match seen {
            Some(seen) => Ok(seen),
            // No request comes to it.
            None => {
                let mut fleet = self.question.fleet.clone();
                fleet.classes.iter_mut().for_each(|class| class.class.hours = Vec::new());
                shown(fleet, 1.0, &[], load, calls, None)
            }
        }
    }

    /// The same of what may come to a provider or a tool; none where nothing does.
    pub fn shown_hosted(&self, load: f64, calls: f64) -> Result<Option<Simulation>, StudyError> {
        let testers = self.testers().into_iter().filter(|own| own.component.is_hosted());
        self.together(testers.collect(), load, calls)
    }

    /// Components run apart, for the same time each. Pools, providers and classes are of one component each; tools without a limit may be of several.
    fn together(
        &self,
        testers: Vec<Tester<'_>>,
        load: f64,
        calls: f64,
    ) -> Result<Option<Simulation>, StudyError> {
        let rate: f64 = testers.iter().map(|own| own.component.calls_per_s()).sum();
        let mut seconds = calls / (rate * load).max(1e-9);
        for tester in &testers {
            seconds = seconds.max(least_seconds(tester)?);
        }
        let count = u32::try_from(testers.len()).unwrap_or(u32::MAX);
        let each = in_order(self.question.fleet.threads, count, |i| {
            let tester = &testers[i as usize];
            let (fleet, rate) = run_of(self.question.fleet, tester);
            shown(fleet, rate, &[tester], load, seconds * rate * load, None)
        });
        let mut whole: Option<Simulation> = None;
        for (seen, tester) in each.into_iter().zip(&testers) {
            let seen = seen?;
            whole = Some(match whole {
                None => seen,
                Some(before) => joined(before, seen, tester),
            });
        }
        Ok(whole)
    }

    /// What one pool does at a load, every other pool, provider and link serving without limit, fallbacks and shifts off; none where no request comes to it.
    pub fn pool_shown(
        &self,
        pool: usize,
        load: f64,
        calls: f64,
        record: Option<&mut dyn Record>,
    ) -> Result<Option<Simulation>, StudyError> {
        let fleet = isolated(&self.question, pool);
        let question = LoadQuestion { fleet: &fleet, ..self.question };
        let own = self.about(&question);
        let testers = own.testers();
        let Some(tester) = testers.iter().find(|own| own.component.pools.contains(&pool)) else {
            return Ok(None);
        };
        let (fleet, rate) = run_of(&fleet, tester);
        shown(fleet, rate, &[tester], load, calls, record).map(Some)
    }

    /// What one pool does where no request waits for another, every other pool, provider and link serving without limit; none where no request comes to it.
    pub fn pool_alone(&self, pool: usize, calls: f64) -> Result<Option<Simulation>, StudyError> {
        let mut fleet = isolated(&self.question, pool);
        fleet.pools[pool].life.replicas = UNSIZED_POOL_REPLICAS;
        let question = LoadQuestion { fleet: &fleet, lost: &[], ..self.question };
        let own = self.about(&question);
        let testers = own.testers();
        let Some(tester) = testers.iter().find(|own| own.component.pools.contains(&pool)) else {
            return Ok(None);
        };
        let component = &tester.component;
        let (mut fleet, _) = run_of(&fleet, tester);
        let each: f64 = component.members.iter().map(|i| component.calls(*i)).sum();
        fleet.classes = component.alone(ALONE_CALLS_PER_S / each);
        shown(fleet, ALONE_CALLS_PER_S, &[tester], 1.0, calls, None).map(Some)
    }

    /// Loads that show the shape of a curve around a load line, besides those that were tried to find it: so many in all, or those that every curve has.
    pub fn loads(line: &LoadLine, points: usize) -> Vec<f64> {
        let mut loads: Vec<f64> =
            line.tried.iter().map(|own| own.load).filter(|load| *load > 0.0).collect();
        let around = line.holds.filter(|_| !line.beyond).or(line.fails).unwrap_or(1.0);
        // However many are asked for, each finer than the last.
        let finer = (2..9u32).flat_map(|n| (0..1u32 << n).map(move |i| (n, i)));
        let finer = finer.map(|(n, i)| 3.0 * f64::from(2 * i + 1) / f64::from(2u32 << n));
        for (i, share) in SHAPE.into_iter().chain(finer).enumerate() {
            if i >= BEYOND && loads.len() >= points {
                break;
            }
            let load = around * share;
            let near = |other: &f64| (other / load).max(load / other) <= 1.0 + NEAR;
            if i >= SHAPE.len() || !loads.iter().any(near) {
                loads.push(load);
            }
        }
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        loads
    }
}

/// Loads that show the shape of a curve, in multiples of the load line: first far beyond it, or the knee and the peak are not seen.
const SHAPE: [f64; 12] = [2.0, 0.5, 1.25, 0.75, 1.5, 0.9, 0.25, 0.6, 1.1, 0.4, 3.0, 0.1];
/// So many of them are shown however few points are asked for.
const BEYOND: usize = 2;
/// Loads that are nearer than this show the same.
const NEAR: f64 = 0.03;

/// A component as a simulation runs it, and its calls a second.
fn run_of(fleet: &SimulateInput, tester: &Tester<'_>) -> (SimulateInput, f64) {
    let own = &tester.component;
    let mut fleet = fleet.clone();
    fleet.classes.clone_from(&own.part.classes);
    fleet.incidents.clone_from(&own.part.fleet.incidents);
    for (pool, replicas) in fleet.pools.iter_mut().zip(&own.replicas) {
        pool.life.replicas = *replicas;
    }
    (fleet, own.calls_per_s())
}

fn shown(
    mut fleet: SimulateInput,
    calls_per_s: f64,
    testers: &[&Tester<'_>],
    load: f64,
    calls: f64,
    record: Option<&mut dyn Record>,
) -> Result<Simulation, StudyError> {
    let (mut warm_up, mut task_s) = (0.0f64, 0.0f64);
    for tester in testers {
        let unloaded = tester.unloaded()?;
        tester.begin_busy(&mut fleet.classes, &unloaded);
        warm_up = warm_up.max(unloaded.warm_up_s);
        task_s = task_s.max(unloaded.task_s);
    }
    fleet.chance = false;
    fleet.surges.clear();
    fleet.pools.iter_mut().for_each(|pool| pool.life.scaling = None);
    fleet.lever = Shift { rate: load, ..Shift::NONE };
    (fleet.runs, fleet.threads) = (1, 1);
    fleet.warm_up = warm_up;
    let mut least = 0.0f64;
    for tester in testers {
        least = least.max(least_seconds(tester)?);
    }
    fleet.seconds = (calls / (calls_per_s * load).max(1e-9)).clamp(least, MOST_S.max(least));
    let pauses = longest_pauses(&fleet.classes, fleet.seed);
    fleet.work_off = Some((2.0 * task_s.max(pauses)).max(WORK_OFF_S));
    fleet.hopeless = Some(testers.iter().map(|own| own.most()).sum());
    let until = fleet.warm_up + fleet.seconds;
    fleet.source = Source::Classes(vec![Spell { until, hour: 0, events: false }]);
    let go_on = testers.first().map(|own| own.should_continue);
    let seen = simulate(&fleet, record, &|| go_on.is_none_or(|go_on| go_on()));
    if let Some(tester) = testers.first() {
        tester.ran_shown((calls_per_s * load * fleet.seconds) as u64);
    }
    seen
}

/// A run that is shown counts for half a task's time at least, and for as long as one dump is from the next: without one it would say nothing of what dumps do.
fn least_seconds(tester: &Tester<'_>) -> Result<f64, StudyError> {
    let dumped = tester.component.dumps.iter().map(|(_, every)| *every);
    Ok(dumped.fold(0.5 * tester.unloaded()?.warm_up_s, f64::max))
}

/// Two components of a fleet as one: what belongs to the second is taken from it.
fn joined(mut whole: Simulation, seen: Simulation, tester: &Tester<'_>) -> Simulation {
    let own = &tester.component;
    for (i, class) in seen.classes.into_iter().enumerate() {
        if own.members.contains(&i) {
            whole.classes[i] = class;
        }
    }
    for (i, pool) in seen.pools.into_iter().enumerate() {
        if own.pools.contains(&i) {
            whole.pools[i] = pool;
        }
    }
    for (before, provider) in whole.providers.iter_mut().zip(seen.providers) {
        if provider.attempts.sent > 0 {
            *before = provider;
        }
    }
    for (before, tool) in whole.tools.iter_mut().zip(seen.tools) {
        before.calls += tool.calls;
        before.failed += tool.failed;
        before.at_once_mean += tool.at_once_mean;
    }
    for (before, region) in whole.regions.iter_mut().zip(seen.regions) {
        before.offered += region.offered;
        before.good += region.good;
        before.answered += region.answered;
        before.answered_for_others += region.answered_for_others;
    }
    whole.verdict = whole.verdict.max(seen.verdict);
    whole.complete &= seen.complete;
    whole.steps += seen.steps;
    whole.steps_leapt += seen.steps_leapt;
    whole.notes.extend(seen.notes);
    whole.notes.dedup();
    whole
}

impl Tester<'_> {
    /// Tasks are under way from the beginning, as in a busy fleet.
    fn begin_busy(&self, classes: &mut [SimulatedClass], unloaded: &crate::trial::Unloaded) {
        for i in self.component.members.iter().copied() {
            classes[i].call_seconds = crate::trial::BUSY * unloaded.call_s[i];
        }
    }
}
