//! Trials: a component at a load, looked at until it is decided or the budget is spent. A memo keeps what was seen, so that nothing is simulated twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_sim::Task;
use plimsoll_stats::Process;
use plimsoll_workload::Shift;
use serde::Serialize;

use crate::arrivals::{Plan, SimulatedClass, Spell, Surge, Tasks, mean_offset, ps};
use crate::component::{Component, Part, UNSIZED_POOL_REPLICAS};
use crate::count::{
    Cluster, Count, Episode, LOOKS, Misses, Run, SoFar, Steady, Took, UNITS, units_at,
};
use crate::demand::StudyError;
use crate::promise::{Measure, Promise, counts_turns};
use crate::search::Budget;
use crate::verdict::{
    CLUSTERS, Clumps, Judgement, LoadVerdict, Seen, Strata, burst_length, creeps, judge, learn,
    look, weigh,
};

/// How much may be looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// How sure a verdict is.
    pub level: f64,
    /// Calls of the demand itself at most; clusters of bursts and dumps may take six times as many.
    pub calls_per_load: u64,
    /// The same of other loads.
    pub calls_elsewhere: u64,
    /// Calls of a question about one component at most.
    pub calls: u64,
    /// Whether loads are tried only to know surely where the line is.
    pub sure: bool,
    /// The largest load that is carried and the smallest that is not are at most so many steps of 4% apart.
    pub apart: i64,
    /// Loads beyond this multiple of the demand are not tried.
    pub most_load: f64,
}

impl Effort {
    /// What commands ask with.
    pub const USUAL: Self = Self {
        level: 0.95,
        calls_per_load: 100_000,
        calls_elsewhere: 100_000,
        calls: 500_000,
        sure: true,
        apart: 1,
        most_load: 10.0,
    };
    /// What stress scenarios are asked with: the demand as surely as ever, and about how much of it is carried.
    pub const SCENARIO: Self =
        Self { calls_elsewhere: 25_000, sure: false, apart: 3, ..Self::USUAL };
    /// What an approximate answer is asked with, that is compared with another of its kind: it is never called the load line.
    pub const BRIEF: Self = Self {
        calls_per_load: 16_000,
        calls_elsewhere: 16_000,
        calls: 64_000,
        sure: false,
        apart: 2,
        ..Self::USUAL
    };
}

/// Looks at the height of bursts before which nothing is carried: what builds up is not seen in a moment.
const HEIGHT_LOOK: usize = 5;
/// One burst in a hundred lasts more than so many times the mean.
const LONG_BURST: f64 = 4.6;
/// Tasks of the class that comes least which a run sees at most.
const TASKS: f64 = 64_000.0;
/// A run lasts at least so long where its calls allow it: what builds up slowly is not seen in seconds.
const LEAST_S: f64 = 600.0;
/// No run is longer: a week.
const MOST_S: f64 = 7.0 * 86_400.0;
/// Tasks under way at which a fleet will not come back: so many times what it runs at once, and at least so many.
const OVERRUN: (u64, u64) = (8, 20_000);
/// Calls a second of a fleet that is asked by so few that none waits for another.
pub(crate) const ALONE_CALLS_PER_S: f64 = 0.3;
/// Calls of such a fleet that are looked at, at most.
const ALONE_CALLS: u64 = 60_000;
/// A provider's limits are of minutes, and a minute's worth is there at the beginning.
const PROVIDER_WARM_UP_S: f64 = 120.0;
/// The longest warm-up.
const WARM_UP_MOST_S: f64 = 3600.0;
/// Calls of a busy fleet take about so many times what they take alone.
pub(crate) const BUSY: f64 = 2.0;
/// Dumps that may come before the fleet is back from the first.
const DUMPS_MOST: u32 = 8;
/// The least time that a dump is counted for.
const DUMP_S: f64 = 5.0;
/// Looks at quiet time between bursts.
const QUIET_LOOKS: usize = 4;
/// Clusters whose calls are more than so many times those of a load are not looked at.
const CLUSTER_CALLS: u64 = 6;
/// A chain of dumps is looked at in quarters of the time from one to the next.
const QUARTERS: usize = 4;
/// Looks at a chain of dumps, at four, eight and sixteen of them.
const DUMP_LOOKS: usize = 3;
/// Missed / allowed after the first dump by which a load fails where that is sure: others are like it.
const FAILS_AT_FIRST_DUMP: f64 = 4.0;
/// Periods of dumps that are simulated at least, however many calls they have.
const DUMP_PERIODS_LEAST: f64 = 1.25;
/// Misses may take so many tasks, one after the other, to come: what builds up is what tasks leave behind.
const SLOW_TASKS: f64 = 40.0;
/// A load that is one step of the grid too much adds a second of waiting in so many seconds.
const OVERLOAD_S_PER_WAIT_S: f64 = 25.0;
/// Agents near their line take half an hour until the first misses come; this is twice that.
const SLOWEST_S: f64 = 3600.0;
/// Missed / allowed of quiet time alone by which a load fails, whatever comes with bursts and dumps.
const FAILS_IN_QUIET: f64 = 1.5;

/// A fleet that has not recovered so long after a surge stays overloaded.
const RECOVERY_S: f64 = 1200.0;
/// Tasks that take long recover later: so many times what one takes.
const RECOVERY_TASKS: f64 = 10.0;
/// What a fleet should come back from.
pub const SURGE: SurgeShape = SurgeShape { times: 2.0, lasts_s: 60.0 };
/// Surges that are tried, each with other tasks.
const SURGES: u32 = 3;

/// A surge: every class comes so many times as often, for so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurgeShape {
    /// Multiplies the demand.
    pub times: f64,
    /// Seconds.
    pub lasts_s: f64,
}

/// How a fleet comes back after a surge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recovery {
    /// So many seconds after the surge no more tasks are under way than before it, in the slowest of a few surges.
    After(f64),
    /// More tasks are under way for all of this time, in seconds, in one of them at least.
    NotWithin(f64),
    /// The fleet breaks a promise without a surge.
    NeverSteady,
    /// The time was up.
    Unfinished,
}

/// How calls and tasks go where none waits for another.
#[derive(Clone, Debug)]
pub(crate) struct Unloaded {
    /// Seconds of a call, by class.
    pub(crate) call_s: Vec<f64>,
    /// Seconds until a fleet has forgotten how it began.
    pub(crate) warm_up_s: f64,
    /// Seconds of the longest task, about.
    pub(crate) task_s: f64,
    pub(crate) judged: Judgement,
    pub(crate) misses: Misses,
    pub(crate) stopped: bool,
}

/// What a load comes to at the height of all bursts, as a steady load.
enum AtHeight {
    /// Promises are kept.
    Carried(Box<Trial>),
    /// They are not surely; where a backlog grows, the share that is served.
    Not { served: Option<f64> },
}

/// What a load came to.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) judged: Judgement,
    pub(crate) misses: Misses,
    /// Whether it is of the time between bursts and dumps alone: more misses its promise than was seen.
    pub(crate) of_quiet: bool,
    /// Clusters of bursts and dumps that were seen.
    pub(crate) episodes: u32,
    /// Calls that it rests on.
    pub(crate) calls: u64,
    /// Whether the time was up.
    pub(crate) stopped: bool,
    /// How long the runs behind it lasted in all.
    pub(crate) seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    part: usize,
    calls_per_load: u64,
    replicas: Vec<u32>,
    /// The bits of the load.
    load: u64,
}

#[derive(Default)]
struct Entry {
    unloaded: Option<Arc<Unloaded>>,
    quiet: Option<Arc<Steady>>,
    peak: Option<Arc<Steady>>,
    bursts: Vec<Arc<Episode>>,
    dumps: Vec<Arc<Episode>>,
    first_dump: Option<Arc<Episode>>,
    chain: Option<Arc<Steady>>,
    recovery: Option<Recovery>,
}

/// A chain of dumps as it stands at a look, dump by dump.
fn dumps_of(part: &Part, counts: &[Vec<Count>], look: usize, apart: f64) -> Vec<Episode> {
    let each = (0..units_at(look) / QUARTERS).map(|i| Episode {
        counts: counts
            .iter()
            .map(|counts| {
                let mut all = Count::default();
                counts[i * QUARTERS..(i + 1) * QUARTERS].iter().for_each(|unit| all.add(*unit));
                all
            })
            .collect(),
        misses: Misses::none(part),
        seconds: apart,
        weight: 1.0,
        dumps: 1,
        lost: false,
        stopped: false,
        calls: 0,
    });
    each.collect()
}

/// What was simulated in a command, by component, replicas and load.
#[derive(Default)]
pub struct Memo {
    parts: Mutex<Vec<Arc<Part>>>,
    entries: Mutex<BTreeMap<Key, Arc<Mutex<Entry>>>>,
    runs: AtomicU64,
    calls: AtomicU64,
    repeated: AtomicU64,
    shown: AtomicU64,
}

/// What a command simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoCount {
    /// Runs that decide.
    pub runs: u64,
    /// Their calls.
    pub calls: u64,
    /// Runs of something that had been simulated before.
    pub repeated: u64,
    /// Calls of runs that are shown.
    pub shown: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memo {
    /// What was simulated so far.
    pub fn count(&self) -> MemoCount {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        MemoCount {
            runs: of(&self.runs),
            calls: of(&self.calls),
            repeated: of(&self.repeated),
            shown: of(&self.shown),
        }
    }

    /// The number of a part; equal parts have the same.
    fn part(&self, part: &Arc<Part>) -> usize {
        let mut parts = lock(&self.parts);
        let same = |own: &Arc<Part>| Arc::ptr_eq(own, part) || **own == **part;
        if let Some(at) = parts.iter().position(same) {
            return at;
        }
        parts.push(part.clone());
        parts.len() - 1
    }

    fn entry(
        &self,
        part: usize,
        calls_per_load: u64,
        replicas: &[u32],
        load: f64,
    ) -> Arc<Mutex<Entry>> {
        let (replicas, load) = (replicas.to_vec(), load.to_bits());
        let key = Key { part, calls_per_load, replicas, load };
        lock(&self.entries).entry(key).or_default().clone()
    }

    fn ran(&self, calls: u64, again: bool) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.repeated.fetch_add(u64::from(again), Ordering::Relaxed);
    }
}

/// Whoever tries loads on a component.
pub(crate) struct Tester<'m> {
    pub(crate) component: Component,
    memo: &'m Memo,
    effort: Effort,
    part: usize,
    pub(crate) should_continue: &'m (dyn Fn() -> bool + Sync),
}

impl<'m> Tester<'m> {
    pub(crate) fn new(
        component: Component,
        memo: &'m Memo,
        effort: Effort,
        should_continue: &'m (dyn Fn() -> bool + Sync),
    ) -> Self {
        let part = memo.part(&component.part);
        Self { component, memo, effort, part, should_continue }
    }

    /// A run was shown that made so many calls.
    pub(crate) fn ran_shown(&self, calls: u64) {
        self.memo.shown.fetch_add(calls, Ordering::Relaxed);
    }

    /// What is known of so many replicas at a load.
    fn entry(&self, replicas: &[u32], load: f64) -> Arc<Mutex<Entry>> {
        self.memo.entry(self.part, self.calls_of(load), replicas, load)
    }

    /// The same with another number of replicas of a pool.
    pub(crate) fn with_replicas(&self, pool: usize, replicas: u32) -> Self {
        Self {
            component: self.component.with_replicas(pool, replicas),
            memo: self.memo,
            effort: self.effort,
            part: self.part,
            should_continue: self.should_continue,
        }
    }

    pub(crate) fn level(&self) -> f64 {
        self.effort.level
    }

    /// Whether verdicts are to be as sure as calls allow.
    pub(crate) fn is_sure(&self) -> bool {
        self.effort.sure
    }

    pub(crate) fn budget(&self) -> Budget {
        // Clusters take several times the calls of steady time.
        let times = if self.is_even() { 1 } else { CLUSTER_CALLS - 1 };
        let Effort { calls, sure, apart, .. } = self.effort;
        Budget { calls: times * calls, sure, apart }
    }

    /// Calls of a load, at most.
    fn calls_of(&self, load: f64) -> u64 {
        match (load - 1.0).abs() < 1e-9 {
            true => self.effort.calls_per_load,
            false => self.effort.calls_elsewhere,
        }
    }

    /// Whether its demand comes without bursts and dumps.
    pub(crate) fn is_even(&self) -> bool {
        self.component.bursts.is_empty() && self.component.dumps.is_empty()
    }

    fn arrivals(&self, error: (String, plimsoll_stats::ArrivalError)) -> StudyError {
        StudyError::Arrivals { class: error.0, source: error.1 }
    }

    fn tasks<'c>(
        &self,
        classes: &'c [SimulatedClass],
        load: f64,
        (end, ring): (f64, f64),
        surges: &[Surge],
        seed: plimsoll_stats::Seed,
    ) -> Result<Tasks<'c>, StudyError> {
        let spells = [Spell { until: end, hour: 0, events: false }];
        let lever = Shift { rate: load, ..Shift::NONE };
        let plan = Plan { spells: &spells, surges, lever, ring: Some(ring) };
        Tasks::new(classes, &plan, seed).map_err(|error| self.arrivals(error))
    }

    /// How calls go where none waits for another, and whether even then a promise is broken. How much is asked for, and what is lost, says nothing of it.
    pub(crate) fn unloaded(&self) -> Result<Arc<Unloaded>, StudyError> {
        let own = &self.component;
        let many = |n: &u32| if *n > 0 { UNSIZED_POOL_REPLICAS } else { 0 };
        let replicas: Vec<u32> = own.replicas.iter().map(many).collect();
        let calls: f64 = own.members.iter().map(|i| own.calls(*i)).sum();
        let tasks_per_s = ALONE_CALLS_PER_S / calls;
        let mut alone = Part::clone(&own.part);
        alone.classes = own.alone(tasks_per_s);
        alone.fleet.incidents.clear();
        let part = self.memo.part(&Arc::new(alone));
        let most = self.effort.calls_per_load.min(ALONE_CALLS);
        let entry = self.memo.entry(part, most, &replicas, 0.0);
        let mut entry = lock(&entry);
        if let Some(known) = &entry.unloaded {
            return Ok(known.clone());
        }
        let most = TASKS.min(most as f64 / calls);
        let seconds = most / tasks_per_s;
        let classes = own.alone(tasks_per_s);
        let mut fleet = Component { replicas, ..own.clone() }.fleet();
        fleet.incidents.clear();
        fleet.pools.iter_mut().for_each(|pool| pool.staleness = 0);
        let warm_up_s = (seconds / 64.0).clamp(60.0, WARM_UP_MOST_S);
        let end = warm_up_s + seconds * 1.01;
        let tasks = self.tasks(&classes, 1.0, (end, warm_up_s), &[], own.part.seed)?;
        let run = Run {
            part: &own.part,
            fleet: &fleet,
            most: u64::MAX,
            warm_up_s,
            slow_s: 0.0,
            should_continue: self.should_continue,
        };
        let judged_of = |promise: &Promise| {
            let turns = counts_turns(&own.part.classes[promise.class]);
            if turns { own.calls(promise.class) } else { 1.0 }
        };
        let clumps = Clumps::alone(own.part.promises.iter().map(judged_of));
        let level = self.level();
        let promises = &own.part.promises;
        // As long as it takes to decide: other loads are held against it.
        let looked = |counts: &[Vec<Count>], under_way: &[f64], at: usize| {
            look(promises, counts, under_way, at, &clumps, level, 0.0)
        };
        let seen = run.steady(tasks, seconds, &mut |so_far| {
            let judged = looked(so_far.counts, &so_far.under_way, so_far.looks - 1);
            judged.verdict != LoadVerdict::TooClose
        });
        self.memo.ran(seen.calls, false);
        let judged = match seen.looks {
            0 => judge(promises, &seen, &clumps, level),
            looks => looked(&seen.counts, &seen.under_way, looks - 1),
        };
        let pauses: Vec<f64> = own
            .part
            .classes
            .iter()
            .map(|class| match class.class.task.is_one_request() {
                true => 0.0,
                false => mean_offset(class, own.part.seed),
            })
            .collect();
        let call_s: Vec<f64> = (0..seen.took.len())
            .map(|i| {
                let Took { tasks, calls, seconds } = seen.took[i];
                let turns = counts_turns(&own.part.classes[i]);
                let paused = if turns { 0.0 } else { pauses[i] * tasks };
                ((seconds - paused) / calls.max(1.0)).max(0.0)
            })
            .collect();
        let task_s = |i: &usize| pauses[*i] + own.calls(*i) * call_s[*i];
        let task_s = own.members.iter().map(task_s).fold(0.0, f64::max);
        let call = own.members.iter().map(|i| call_s[*i]).fold(0.0, f64::max);
        let provider = if own.uses_provider() { PROVIDER_WARM_UP_S } else { 0.0 };
        let several = own.members.iter().any(|i| !own.part.classes[*i].class.task.is_one_request());
        let warm_up_s = (3.0 * call)
            .max(10.0)
            .max(provider)
            .max(if several { task_s } else { 0.0 })
            .min(WARM_UP_MOST_S);
        let misses = seen.misses.last().cloned();
        let unloaded = Arc::new(Unloaded {
            misses: misses.unwrap_or_else(|| Misses::none(&own.part)),
            stopped: seen.stopped,
            call_s,
            warm_up_s,
            task_s,
            judged,
        });
        if !unloaded.stopped {
            entry.unloaded = Some(unloaded.clone());
        }
        Ok(unloaded)
    }

    /// The classes as they begin in a busy fleet.
    fn busy(&self, classes: &[SimulatedClass], unloaded: &Unloaded) -> Vec<SimulatedClass> {
        let mut classes = classes.to_vec();
        for (class, call_s) in classes.iter_mut().zip(&unloaded.call_s) {
            class.call_seconds = BUSY * call_s;
        }
        classes
    }

    pub(crate) fn most(&self) -> u64 {
        self.component.seats().saturating_mul(OVERRUN.0).max(OVERRUN.1)
    }

    /// Seconds that a run of a load lasts at most.
    fn seconds(&self, load: f64) -> f64 {
        let own = &self.component;
        let tasks = TASKS / (own.rarest_per_s() * load).max(1e-9);
        let calls = self.calls_of(load) as f64 / (own.calls_per_s() * load).max(1e-9);
        tasks.max(LEAST_S).min(calls).min(MOST_S)
    }

    /// A steady demand, until it is decided or the budget is spent.
    fn quiet(
        &self,
        load: f64,
        unloaded: &Unloaded,
        enough: &mut dyn FnMut(&SoFar<'_>) -> bool,
        again: bool,
    ) -> Result<Steady, StudyError> {
        let own = &self.component;
        let seconds = self.seconds(load);
        let warm_up_s = unloaded.warm_up_s.max(0.05 * seconds);
        let end = warm_up_s + seconds * 1.01;
        let classes = self.busy(&own.calm, unloaded);
        let ring = (end / 16.0).max(warm_up_s);
        let tasks = self.tasks(&classes, load, (end, ring), &[], own.part.seed)?;
        let mut fleet = own.fleet();
        // A minute's worth that was there at the beginning would hide that more is asked for than a provider lets in.
        fleet.spent = true;
        let seen = self.run(&fleet, warm_up_s, unloaded).steady(tasks, seconds, enough);
        self.memo.ran(seen.calls, again);
        Ok(seen)
    }

    /// How the demand of the component is made up.
    fn strata(&self) -> Strata {
        let own = &self.component;
        let often: f64 = own.bursts.iter().map(|(_, burst)| 1.0 / burst.calm_lasts()).sum();
        let period = own.dumps.iter().map(|(_, every)| *every).fold(0.0, f64::max);
        Strata {
            between_bursts_s: (often > 0.0).then(|| 1.0 / often),
            dumps: (period > 0.0).then(|| (period, self.instants().len() as f64)),
        }
    }

    /// When dumps come in the longest time between two of one class.
    fn instants(&self) -> Vec<f64> {
        let dumps = &self.component.dumps;
        let period = dumps.iter().map(|(_, every)| *every).fold(0.0, f64::max);
        let mut all: Vec<f64> = Vec::new();
        for (_, every) in dumps {
            let count = (period / every + 1e-9).floor() as u32;
            all.extend((1..=count).map(|i| f64::from(i) * every));
        }
        all.sort_by(f64::total_cmp);
        all.dedup_by(|a, b| (*a - *b).abs() < 1e-6);
        all
    }

    /// Tries a load: looks until it is decided, and learns how misses come in clumps.
    pub(crate) fn trial(&self, load: f64, clumps: &mut Clumps) -> Result<Trial, StudyError> {
        let unloaded = self.unloaded()?;
        if unloaded.stopped {
            return Ok(self.unfinished());
        }
        match self.is_even() {
            true => self.steady_trial(load, &unloaded, clumps),
            false => self.episodic_trial(load, &unloaded),
        }
    }

    fn unfinished(&self) -> Trial {
        let own = &self.component;
        let nothing = Steady {
            unit_s: 0.0,
            slow_units: 0.0,
            counts: Vec::new(),
            under_way: Vec::new(),
            misses: Vec::new(),
            took: Vec::new(),
            looks: 0,
            overrun: false,
            stopped: true,
            calls: 0,
        };
        let clumps = Clumps::new(own.part.promises.len());
        Trial {
            judged: judge(&own.part.promises, &nothing, &clumps, self.level()),
            misses: Misses::none(&own.part),
            of_quiet: false,
            episodes: 0,
            calls: 0,
            stopped: true,
            seconds: 0.0,
        }
    }

    fn steady_trial(
        &self,
        load: f64,
        unloaded: &Unloaded,
        clumps: &mut Clumps,
    ) -> Result<Trial, StudyError> {
        let own = &self.component;
        let (promises, level) = (&own.part.promises, self.level());
        let entry = self.entry(&own.replicas, load);
        let mut entry = lock(&entry);
        let known = entry.quiet.clone();
        let enough = |run: &Steady| {
            run.looks == LOOKS || run.overrun || !judge(promises, run, clumps, level).open
        };
        let run = match known.filter(|run| enough(run)) {
            Some(run) => run,
            None => {
                let before = entry.quiet.is_some();
                let mut decided = |so_far: &SoFar<'_>| {
                    let at = so_far.looks - 1;
                    let SoFar { counts, under_way, slow_units, .. } = so_far;
                    !look(promises, counts, under_way, at, clumps, level, *slow_units).open
                };
                let run = Arc::new(self.quiet(load, unloaded, &mut decided, before)?);
                if !run.stopped {
                    entry.quiet = Some(run.clone());
                }
                run
            }
        };
        drop(entry);
        let judged = judge(promises, &run, clumps, level);
        learn(clumps, &run, &judged);
        let at = judged.looks.clamp(1, LOOKS) - 1;
        let nothing = || Misses::none(&own.part);
        let seconds = units_at(at) as f64 * run.unit_s;
        Ok(Trial {
            misses: run.misses.get(at).or(run.misses.last()).cloned().unwrap_or_else(nothing),
            of_quiet: false,
            episodes: 0,
            calls: ((own.calls_per_s() * load * seconds) as u64).min(run.calls.max(1)),
            stopped: run.stopped,
            seconds,
            judged,
        })
    }

    fn episodic_trial(&self, load: f64, unloaded: &Unloaded) -> Result<Trial, StudyError> {
        let own = &self.component;
        let (promises, level) = (&own.part.promises, self.level());
        let strata = self.strata();
        let entry = self.entry(&own.replicas, load);
        let mut entry = lock(&entry);
        let quiet = match &entry.quiet {
            Some(known) => known.clone(),
            None => {
                // A part of what a steady demand takes: what comes between bursts mostly misses little.
                let mut enough = |so_far: &SoFar<'_>| so_far.looks == QUIET_LOOKS;
                let run = Arc::new(self.quiet(load, unloaded, &mut enough, false)?);
                if !run.stopped {
                    entry.quiet = Some(run.clone());
                }
                run
            }
        };
        let units = units_at(quiet.looks.clamp(1, LOOKS) - 1);
        let level_back = level_back(&quiet);
        let rates: Vec<Option<f64>> = promises
            .iter()
            .map(|promise| {
                let counted = matches!(promise.of, Measure::Gap(_))
                    || counts_turns(&own.part.classes[promise.class]);
                (!counted).then(|| own.calm[promise.class].rate(0, false) * load)
            })
            .collect();
        if let Some(judged) = self.fails_in_quiet(&quiet) {
            let misses = quiet.misses.last().cloned();
            return Ok(Trial {
                judged,
                misses: misses.unwrap_or_else(|| Misses::none(&own.part)),
                of_quiet: !quiet.overrun,
                episodes: 0,
                calls: quiet.calls,
                stopped: false,
                seconds: units as f64 * quiet.unit_s,
            });
        }
        let served = match self.at_height(&mut entry, load, unloaded)? {
            AtHeight::Carried(trial) => return Ok(*trial),
            AtHeight::Not { served } => served,
        };
        let instants = self.instants();
        if instants.len() == 1 && own.bursts.is_empty() {
            return self.chained_trial(&mut entry, load, unloaded, level_back, &quiet, &rates);
        }
        let mut calls = quiet.calls;
        let most = self.cluster_calls(load) as u64;
        let mut judged = None;
        let (mut seen_bursts, mut seen_dumps) = (0, 0);
        let mut stopped = quiet.stopped;
        for (at, n) in CLUSTERS.into_iter().enumerate() {
            // Dumps are alike: a few of each kind say as much as many bursts.
            let bursts = if own.bursts.is_empty() { 0 } else { n };
            let dumps = if instants.is_empty() { 0 } else { n.next_multiple_of(instants.len()) };
            if quiet.overrun || stopped {
                break;
            }
            while seen_bursts < bursts && !stopped {
                if entry.bursts.len() <= seen_bursts {
                    let i = entry.bursts.len() as u32;
                    let one = self.burst(load, unloaded, level_back, i)?;
                    self.memo.ran(one.calls, false);
                    if one.stopped {
                        stopped = true;
                        break;
                    }
                    entry.bursts.push(Arc::new(one));
                }
                calls += entry.bursts[seen_bursts].calls;
                let lost = entry.bursts[seen_bursts].lost;
                seen_bursts += 1;
                if lost {
                    break;
                }
            }
            while seen_dumps < dumps && !stopped {
                if entry.dumps.len() <= seen_dumps {
                    let i = entry.dumps.len();
                    let one = self.dump(load, unloaded, level_back, &instants, i)?;
                    self.memo.ran(one.calls, false);
                    if one.stopped {
                        stopped = true;
                        break;
                    }
                    entry.dumps.push(Arc::new(one));
                }
                calls += entry.dumps[seen_dumps].calls;
                let lost = entry.dumps[seen_dumps].lost;
                seen_dumps += 1;
                if lost {
                    break;
                }
            }
            if stopped {
                break;
            }
            let owned = |all: &[Arc<Episode>], n: usize| -> Vec<Episode> {
                all[..n].iter().map(|own| (**own).clone()).collect()
            };
            let (b, d) = (owned(&entry.bursts, seen_bursts), owned(&entry.dumps, seen_dumps));
            let seen = Seen { quiet: &quiet, rates: &rates, bursts: &b, dumps: &d };
            let last = at + 1 == CLUSTERS.len() || calls >= most;
            let own_judged = weigh(promises, &seen, &strata, last, level);
            let open = own_judged.open;
            judged = Some(own_judged);
            if !open {
                break;
            }
        }
        let mut misses: Misses = Misses::none(&own.part);
        let mut seconds = units as f64 * quiet.unit_s;
        for episode in entry.bursts[..seen_bursts].iter().chain(&entry.dumps[..seen_dumps]) {
            misses.add(&episode.misses);
            seconds += episode.seconds;
        }
        quiet.misses.last().iter().for_each(|seen| misses.add(seen));
        let judged = match judged {
            Some(judged) => judged,
            None if quiet.overrun => Judgement::overrun(promises),
            None => return Ok(self.unfinished()),
        };
        Ok(Trial {
            judged: Judgement { served, ..judged },
            misses,
            of_quiet: false,
            episodes: (seen_bursts + seen_dumps) as u32,
            calls,
            stopped,
            seconds,
        })
    }

    /// Where promises are kept at the height of all bursts at once, for however long they last, they are kept whatever comes.
    fn at_height(
        &self,
        entry: &mut Entry,
        load: f64,
        unloaded: &Unloaded,
    ) -> Result<AtHeight, StudyError> {
        let own = &self.component;
        if own.bursts.is_empty() || !own.dumps.is_empty() {
            return Ok(AtHeight::Not { served: None });
        }
        let (promises, level) = (&own.part.promises, self.level());
        let clumps = Clumps::new(promises.len());
        let run = match &entry.peak {
            Some(known) => known.clone(),
            None => {
                let fleet = own.fleet();
                let classes = self.busy(&self.at_peak(), unloaded);
                let per_s = self.calls_per_s(&classes) * load;
                let lasts = own.bursts.iter().map(|(_, burst)| burst.lasts()).fold(0.0, f64::max);
                let calls = self.calls_of(load) as f64 / per_s.max(1e-9);
                // What builds up during a long burst is not seen in a short look.
                let seconds = calls.max(LONG_BURST * lasts);
                let warm_up_s = unloaded.warm_up_s;
                let end = warm_up_s + seconds * 1.01;
                let ring = (end / 16.0).max(warm_up_s);
                let tasks = self.tasks(&classes, load, (end, ring), &[], own.part.seed)?;
                let run = self.run(&fleet, warm_up_s, unloaded);
                let run = run.steady(tasks, seconds, &mut |so_far| {
                    let SoFar { counts, under_way, slow_units, looks } = so_far;
                    let at = looks - 1;
                    let seen = look(promises, counts, under_way, at, &clumps, level, *slow_units);
                    let still = *looks >= HEIGHT_LOOK && !creeps(&under_way[..units_at(at)]);
                    match seen.verdict {
                        LoadVerdict::Fails => true,
                        LoadVerdict::Carried => still,
                        LoadVerdict::TooClose => seen.grows.is_some(),
                    }
                });
                self.memo.ran(run.calls, false);
                let run = Arc::new(run);
                if !run.stopped {
                    entry.peak = Some(run.clone());
                }
                run
            }
        };
        if run.stopped {
            return Ok(AtHeight::Carried(Box::new(self.unfinished())));
        }
        let at = run.looks.clamp(1, LOOKS) - 1;
        let judged = look(promises, &run.counts, &run.under_way, at, &clumps, level, 0.0);
        let still = run.looks >= HEIGHT_LOOK && !creeps(&run.under_way[..units_at(at)]);
        if !still || judged.verdict != LoadVerdict::Carried {
            return Ok(AtHeight::Not { served: judged.served.filter(|_| run.looks > 0) });
        }
        Ok(AtHeight::Carried(Box::new(Trial {
            judged,
            misses: run.misses[at].clone(),
            of_quiet: false,
            episodes: 0,
            calls: run.calls,
            stopped: false,
            seconds: units_at(at) as f64 * run.unit_s,
        })))
    }

    /// The classes with all bursts at once.
    fn at_peak(&self) -> Vec<SimulatedClass> {
        let own = &self.component;
        let mut classes = own.calm.clone();
        for (class, burst) in &own.bursts {
            classes[*class].class.hours[0].rate *= burst.times() / burst.calm_times().max(1e-9);
        }
        classes
    }

    /// Calls a second of all classes.
    fn calls_per_s(&self, classes: &[SimulatedClass]) -> f64 {
        let own = &self.component;
        own.members.iter().map(|i| classes[*i].rate(0, false) * own.calls(*i)).sum()
    }

    /// What quiet time alone says, where it surely misses so much that nothing between could make up for it.
    fn fails_in_quiet(&self, quiet: &Steady) -> Option<Judgement> {
        let own = &self.component;
        let promises = &own.part.promises;
        let judged = judge(promises, quiet, &Clumps::new(promises.len()), self.level());
        if judged.verdict != LoadVerdict::Fails {
            return None;
        }
        let enough = promises.iter().zip(&judged.kept).any(|(promise, kept)| {
            let calm = own.calm[promise.class].rate(0, false);
            let share = calm / own.rate(promise.class).max(1e-12);
            kept.verdict == LoadVerdict::Fails && kept.ratio * share > FAILS_IN_QUIET
        });
        (enough || quiet.overrun).then_some(judged)
    }

    /// Dumps of one class with nothing else that comes in clusters, one after the other, each as soon as the fleet is surely back from the one before: a fleet is warmed up once.
    /// What comes from one to the next is one episode.
    fn chained_trial(
        &self,
        entry: &mut Entry,
        load: f64,
        unloaded: &Unloaded,
        level_back: u64,
        quiet: &Steady,
        rates: &[Option<f64>],
    ) -> Result<Trial, StudyError> {
        let own = &self.component;
        let (promises, level) = (&own.part.promises, self.level());
        let strata = self.strata();
        let (class, period) = own.dumps[0];
        let first = match &entry.first_dump {
            Some(known) => known.clone(),
            None => {
                let one = Arc::new(self.dump(load, unloaded, level_back, &[period], 0)?);
                self.memo.ran(one.calls, false);
                if !one.stopped {
                    entry.first_dump = Some(one.clone());
                }
                one
            }
        };
        if first.stopped {
            return Ok(self.unfinished());
        }
        let trial = |judged: Judgement, misses: Misses, run: Option<&Steady>, dumps: usize| Trial {
            judged,
            misses,
            of_quiet: false,
            episodes: dumps as u32,
            calls: quiet.calls + first.calls + run.map_or(0, |run| run.calls),
            stopped: false,
            seconds: run
                .map_or(first.seconds, |run| units_at(run.looks.max(1) - 1) as f64 * run.unit_s),
        };
        if first.lost {
            return Ok(trial(Judgement::overrun(promises), first.misses.clone(), None, 1));
        }
        let one = std::slice::from_ref(&*first);
        let seen = Seen { quiet, rates, bursts: &[], dumps: one };
        let judged = weigh(promises, &seen, &strata, true, level);
        if judged.verdict == LoadVerdict::Fails && judged.ratio() > FAILS_AT_FIRST_DUMP {
            return Ok(trial(judged, first.misses.clone(), None, 1));
        }
        let call = unloaded.call_s.iter().copied().fold(0.0, f64::max);
        let apart = (2.0 * first.seconds).max(first.seconds + 3.0 * call + 10.0).min(period);
        let seconds = apart * UNITS as f64 / QUARTERS as f64;
        let most = self.cluster_calls(load);
        let rate = own.calls_per_s() * load;
        let weighed = |counts: &[Vec<Count>], looks: usize| {
            let episodes = dumps_of(&own.part, counts, looks, apart);
            let seen = Seen { quiet, rates, bursts: &[], dumps: &episodes };
            let spent = units_at(looks) as f64 * apart / QUARTERS as f64 * rate;
            weigh(promises, &seen, &strata, looks + 1 >= DUMP_LOOKS || spent >= most, level)
        };
        let run = match entry.chain.clone() {
            Some(run) => run,
            None => {
                let mut classes = own.calm.clone();
                let dumped = &mut classes[class].class;
                dumped.process = Process::Dumps { every: apart };
                dumped.hours.clone_from(&own.part.classes[class].class.hours);
                dumped.hours[0].rate *= period / apart;
                let classes = self.busy(&classes, unloaded);
                // It counts from a dump on.
                let warm_up_s = (unloaded.warm_up_s / apart).ceil().max(1.0) * apart;
                let end = warm_up_s + seconds * 1.01;
                let tasks = self.tasks(&classes, load, (end, warm_up_s), &[], own.part.seed)?;
                let fleet = own.fleet();
                let run =
                    self.run(&fleet, warm_up_s, unloaded).steady(tasks, seconds, &mut |so_far| {
                        !weighed(so_far.counts, so_far.looks - 1).open
                    });
                self.memo.ran(run.calls, false);
                let run = Arc::new(run);
                if !run.stopped {
                    entry.chain = Some(run.clone());
                }
                run
            }
        };
        if run.stopped {
            return Ok(self.unfinished());
        }
        let nothing = || Misses::none(&own.part);
        let misses = run.misses.last().cloned().unwrap_or_else(nothing);
        if run.overrun || run.looks == 0 {
            return Ok(trial(Judgement::overrun(promises), misses, Some(&run), 1));
        }
        let dumps = units_at(run.looks - 1) / QUARTERS;
        Ok(trial(weighed(&run.counts, run.looks - 1), misses, Some(&run), dumps))
    }

    /// Calls of the clusters of a load, at most.
    fn cluster_calls(&self, load: f64) -> f64 {
        (CLUSTER_CALLS * self.calls_of(load)) as f64
    }

    fn run<'a>(
        &'a self,
        fleet: &'a plimsoll_sim::FleetSpec,
        warm_up_s: f64,
        unloaded: &Unloaded,
    ) -> Run<'a> {
        Run {
            part: &self.component.part,
            fleet,
            most: self.most(),
            warm_up_s,
            slow_s: (SLOW_TASKS * unloaded.task_s)
                .max(OVERLOAD_S_PER_WAIT_S * self.tolerated_wait_s(unloaded))
                .min(SLOWEST_S),
            should_continue: self.should_continue,
        }
    }

    /// The longest wait of a call that breaks no promise of first or last tokens.
    fn tolerated_wait_s(&self, unloaded: &Unloaded) -> f64 {
        let own = &self.component;
        let good = own.members.iter().map(|class| (*class, own.part.classes[*class].sent.good));
        let bounds =
            good.flat_map(|(class, good)| [(class, good.ttft, None), (class, None, good.e2e)]);
        let tails = own.part.promises.iter().map(|promise| match promise.of {
            Measure::Ttft(bound) => (promise.class, Some(bound), None),
            Measure::E2e(bound) => (promise.class, None, Some(bound)),
            Measure::Good | Measure::Tpot(_) | Measure::Gap(_) => (promise.class, None, None),
        });
        let wait = |(class, ttft, e2e): (usize, Option<u64>, Option<u64>)| {
            let calls = own.calls(class).max(1.0);
            let last =
                e2e.map_or(0.0, |bound| bound as f64 / 1e12 - calls * unloaded.call_s[class]);
            ttft.map_or(0.0, |bound| bound as f64 / 1e12).max(last / calls)
        };
        bounds.chain(tails).map(wait).fold(0.0, f64::max)
    }

    /// The `i`th cluster of bursts.
    fn burst(
        &self,
        load: f64,
        unloaded: &Unloaded,
        level: u64,
        i: u32,
    ) -> Result<Episode, StudyError> {
        let own = &self.component;
        let seed = own.part.seed.run(1000 + u64::from(i));
        let start = unloaded.warm_up_s;
        // Whose burst is first: the more often a class bursts, the likelier.
        let mut stream = seed.stream("load/first burst");
        let often: f64 = own.bursts.iter().map(|(_, burst)| 1.0 / burst.calm_lasts()).sum();
        let mut left = stream.uniform() * often;
        let mut first = own.bursts.len() - 1;
        for (j, (_, burst)) in own.bursts.iter().enumerate() {
            left -= 1.0 / burst.calm_lasts();
            if left < 0.0 {
                first = j;
                break;
            }
        }
        let beginning = own.part.seed.stream("load/burst lengths").uniform();
        let (length, weight) = burst_length(i, beginning, own.bursts[first].1.lasts());
        let lasts = own.bursts.iter().map(|(_, burst)| burst.lasts()).fold(0.0, f64::max);
        let horizon = start + length + 40.0 * (lasts + 60.0) + 2000.0;
        let mut surges = Vec::new();
        let mut bursts = Vec::new();
        for (j, (class, burst)) in own.bursts.iter().enumerate() {
            let name = &own.part.classes[*class].class.name;
            let mut stream = seed.stream(&format!("load/bursts/{name}"));
            let mut at = start;
            let mut add = |from: f64, length: f64| {
                surges.push(Surge {
                    from,
                    until: (from + length).min(horizon),
                    load: burst.times() / burst.calm_times().max(1e-9),
                    classes: vec![*class],
                });
                bursts.push((ps(from), ps(from + length)));
            };
            if j == first {
                add(at, length);
                at += length;
            }
            loop {
                at += burst.calm_lasts() * stream.exponential();
                if at >= horizon {
                    break;
                }
                let length = burst.lasts() * stream.exponential();
                add(at, length);
                at += length;
            }
        }
        let classes = self.busy(&own.calm, unloaded);
        let tasks = self.tasks(&classes, load, (horizon, start), &surges, seed)?;
        let cluster = Cluster {
            earliest: ps(start + length),
            bursts,
            level,
            tail: ps((3.0 * unloaded.task_s).max(600.0)),
        };
        let fleet = own.fleet();
        let mut episode = self.run(&fleet, start, unloaded).episode(tasks, cluster, horizon);
        episode.weight = weight;
        Ok(episode)
    }

    /// How the fleet comes back from its demand after a surge.
    pub(crate) fn recovery(&self) -> Result<Recovery, StudyError> {
        let unloaded = self.unloaded()?;
        let entry = self.entry(&self.component.replicas, 1.0);
        let mut entry = lock(&entry);
        if let Some(known) = entry.recovery {
            return Ok(known);
        }
        let recovery = self.recovers(&mut entry, &unloaded)?;
        if recovery != Recovery::Unfinished {
            entry.recovery = Some(recovery);
        }
        Ok(recovery)
    }

    fn recovers(&self, entry: &mut Entry, unloaded: &Unloaded) -> Result<Recovery, StudyError> {
        let own = &self.component;
        let (times, lasts_s) = (SURGE.times, SURGE.lasts_s);
        let quiet = match &entry.quiet {
            Some(known) => known.clone(),
            None => {
                let mut enough = |so_far: &SoFar<'_>| so_far.looks == QUIET_LOOKS;
                let run = Arc::new(self.quiet(1.0, unloaded, &mut enough, false)?);
                if !run.stopped {
                    entry.quiet = Some(run.clone());
                }
                run
            }
        };
        if unloaded.stopped || quiet.stopped {
            return Ok(Recovery::Unfinished);
        }
        let judged =
            judge(&own.part.promises, &quiet, &Clumps::new(own.part.promises.len()), self.level());
        let fails = judged.verdict == LoadVerdict::Fails;
        if quiet.overrun || quiet.looks == 0 || fails || judged.grows.is_some() {
            return Ok(Recovery::NeverSteady);
        }
        let start = unloaded.warm_up_s;
        let within = RECOVERY_S.max(RECOVERY_TASKS * unloaded.task_s);
        let horizon = start + lasts_s + within;
        let classes = self.busy(&own.calm, unloaded);
        let surge = Surge {
            from: start,
            until: start + lasts_s,
            load: times,
            classes: own.members.clone(),
        };
        let fleet = own.fleet();
        let mut slowest = 0.0f64;
        for i in 0..SURGES {
            let seed = own.part.seed.run(3000 + u64::from(i));
            let surges = std::slice::from_ref(&surge);
            let tasks = self.tasks(&classes, 1.0, (horizon, start), surges, seed)?;
            let cluster = Cluster {
                earliest: ps(start + lasts_s),
                bursts: Vec::new(),
                level: level_back(&quiet),
                tail: 0,
            };
            let run = Run { most: u64::MAX, ..self.run(&fleet, start, unloaded) };
            let episode = run.episode(tasks, cluster, horizon);
            self.memo.ran(episode.calls, false);
            if episode.stopped {
                return Ok(Recovery::Unfinished);
            }
            if episode.lost {
                return Ok(Recovery::NotWithin(within));
            }
            slowest = slowest.max(episode.seconds - lasts_s);
        }
        Ok(Recovery::After(slowest))
    }

    /// The `i`th dump: one of each instant in turn.
    fn dump(
        &self,
        load: f64,
        unloaded: &Unloaded,
        level: u64,
        instants: &[f64],
        i: usize,
    ) -> Result<Episode, StudyError> {
        let own = &self.component;
        let seed = own.part.seed.run(2000 + i as u64);
        let start = unloaded.warm_up_s;
        let period = own.dumps.iter().map(|(_, every)| *every).fold(0.0, f64::max);
        let shortest = own.dumps.iter().map(|(_, every)| *every).fold(f64::INFINITY, f64::min);
        // On the clock of dumps: the second time round, so that all have come before.
        let clock = period + instants[i % instants.len()];
        let lasts = f64::from(DUMPS_MOST) * shortest;
        let affordable = self.cluster_calls(load) / (own.calls_per_s() * load).max(1e-9);
        let lasts = lasts.min(affordable.max(DUMP_PERIODS_LEAST * period));
        let horizon = start + lasts;
        // Other classes burst as they do in the long run.
        let mut flows = own.part.classes.clone();
        let mut dumped = own.part.classes.clone();
        for (class, _) in &own.dumps {
            flows[*class].class.hours[0].rate = 0.0;
        }
        for (at, class) in dumped.iter_mut().enumerate() {
            if !own.dumps.iter().any(|(own, _)| *own == at) {
                class.class.hours[0].rate = 0.0;
            }
        }
        let flows = self.busy(&flows, unloaded);
        let flows = self.tasks(&flows, load, (horizon, start), &[], seed)?;
        // What came up before the dump before the first that counts is gone.
        let hushed: Vec<Surge> = own
            .dumps
            .iter()
            .map(|(class, every)| {
                let before = ((clock / every - 1e-9).ceil() - 1.0).max(0.0) * every;
                Surge { from: 0.0, until: before, load: 0.0, classes: vec![*class] }
            })
            .filter(|surge| surge.until > 0.0)
            .collect();
        let end = clock + lasts;
        let dumps = self.tasks(&dumped, load, (end, 0.0), &hushed, seed)?;
        let shift = ps(clock).saturating_sub(ps(start));
        let dumps = dumps.map(move |task| Task { at: task.at.saturating_sub(shift), ..task });
        let tasks = merged(flows, dumps);
        let cluster = Cluster {
            earliest: ps(start + DUMP_S),
            bursts: Vec::new(),
            level,
            tail: ps((3.0 * unloaded.task_s).max(600.0)),
        };
        let fleet = own.fleet();
        let mut episode = self.run(&fleet, start, unloaded).episode(tasks, cluster, horizon);
        let until = clock + episode.seconds - 1e-3;
        let inside = |t: &f64| (clock - 1e-6..until).contains(t);
        let rounds = (lasts / period).ceil() as u32 + 2;
        let dumps = (0..rounds)
            .flat_map(|round| instants.iter().map(move |own| f64::from(round) * period + own));
        episode.dumps = dumps.filter(inside).count() as u32;
        Ok(episode)
    }
}

/// Tasks under way in calm times, and as many more as chance may add.
fn level_back(quiet: &Steady) -> u64 {
    let units = units_at(quiet.looks.clamp(1, LOOKS) - 1);
    let under_way = quiet.under_way[..units].iter().sum::<f64>() / units as f64;
    (under_way + under_way.sqrt()).ceil() as u64
}

/// Tasks of two sources, in the order they come.
fn merged(
    a: impl Iterator<Item = Task>,
    b: impl Iterator<Item = Task>,
) -> impl Iterator<Item = Task> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(one), Some(other)) if other.at < one.at => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}

impl Trial {
    /// Whether promises are kept, as far as is known.
    pub(crate) fn keeps(&self) -> bool {
        match self.judged.verdict {
            LoadVerdict::Carried => true,
            LoadVerdict::Fails => false,
            LoadVerdict::TooClose => self.judged.ratio() <= 1.0,
        }
    }
}
