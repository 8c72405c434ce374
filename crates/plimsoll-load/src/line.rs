//! The load line: the largest load at which every promise is kept, as at every smaller one.

use plimsoll_sim::Mishap;
use plimsoll_stats::in_order;
use serde::Serialize;

use crate::cause::{Cause, Missed, cause};
use crate::component::{LoadQuestion, UNSIZED_POOL_REPLICAS, components, isolated, pools_serving};
use crate::demand::{Span, StudyError};
use crate::promise::{ClassTarget, Miss};
use crate::search::{Axis, Edge, edge};
use crate::simulate::SimulateInput;
use crate::trial::{Effort, Memo, Recovery, Tester, Trial, Unloaded};
use crate::verdict::{Clumps, LoadVerdict, attainment};

/// Loads of the grid are this factor apart. One of them is the demand itself.
const GRID: f64 = 1.04;
/// The lightest and the heaviest, in steps of the grid from the demand: a hundredth of it, and ten times as much.
const LIGHTEST: i64 = -117;
const HEAVIEST: i64 = 59;
/// The demand itself.
const DEMAND: i64 = 0;

/// A load of the grid, as a multiple of the demand.
fn load_at(place: i64) -> f64 {
    GRID.powi(i32::try_from(place).unwrap_or(i32::MAX))
}

struct Loads {
    heaviest: i64,
}

impl Loads {
    /// Loads up to a multiple of the demand.
    fn up_to(times: f64) -> Self {
        let place = (times.max(1.0).ln() / GRID.ln() - 1e-9).ceil() as i64;
        Self { heaviest: place.min(HEAVIEST) }
    }
}

impl Axis for Loads {
    fn ends(&self) -> (i64, i64) {
        (LIGHTEST, self.heaviest)
    }

    fn weight(&self, place: i64) -> f64 {
        place as f64 * GRID.ln()
    }

    fn place(&self, weight: f64) -> i64 {
        (weight / GRID.ln()).round() as i64
    }

    fn apart(&self, _: i64) -> i64 {
        1
    }

    fn is_tight(&self) -> bool {
        false
    }
}

/// Numbers of replicas, many first.
struct Numbers {
    fewest: u32,
    most: u32,
}

impl Axis for Numbers {
    fn ends(&self) -> (i64, i64) {
        (-i64::from(self.most), -i64::from(self.fewest))
    }

    fn weight(&self, place: i64) -> f64 {
        -(-place as f64).max(1.0).ln()
    }

    fn place(&self, weight: f64) -> i64 {
        -(((-weight).exp() - 1e-9).ceil() as i64)
    }

    fn apart(&self, place: i64) -> i64 {
        (-place / 50).max(1)
    }

    fn is_tight(&self) -> bool {
        true
    }
}

/// What a class came to at a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassOutcome {
    /// The class.
    pub class: String,
    /// The share of its tasks, or turns, that were good.
    pub attainment: Option<f64>,
    /// How sure that is.
    pub interval: Option<Span>,
    /// What it was promised.
    pub target: f64,
    /// Tasks or turns that were seen.
    pub seen: f64,
    /// Tasks by what they missed first: errors, TTFT, TPOT, E2E, largest gap.
    pub missed: [f64; 5],
    /// The index of dispersion of misses: how large clumps of them are.
    pub dispersion: f64,
    /// The first of its percentile promises that is broken, by its key.
    pub broken_tail: Option<&'static str>,
}

/// How a pool's busy engine time is split between prompts and decodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseShare {
    /// The pool.
    pub pool: String,
    /// The share of prompts; the rest is of decodes.
    pub prefill: f64,
}

/// What a load came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadOutcome {
    /// In multiples of the demand.
    pub load: f64,
    /// Whether every promise is kept.
    pub verdict: LoadVerdict,
    /// The same as far as is known, where it is too close.
    pub keeps: bool,
    /// Missed / allowed of the promise that is nearest to breaking.
    pub missed_of_allowed: f64,
    /// Each class with demand.
    pub classes: Vec<ClassOutcome>,
    /// The class that is nearest to breaking its promise, by its place in `classes`.
    pub worst: Option<usize>,
    /// The promise that is broken first: `errors`, `ttft`, `tpot`, `e2e`, `gap`, `queue`, or a tail by its key.
    pub signal: Option<String>,
    /// What binds, where a promise is broken.
    pub cause: Option<Cause>,
    /// The pool that binds, where one does.
    pub of: Option<String>,
    /// Busy engine time of each pool of the component that decides, by phase.
    pub phases: Vec<PhaseShare>,
    /// The component that decides.
    pub component: Option<String>,
    /// Clusters of bursts and dumps that it rests on.
    pub episodes: u32,
    /// Simulated seconds that it rests on.
    pub seconds: f64,
    /// Whether the time was up before it was known.
    pub unfinished: bool,
}

/// How much of a demand is carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadLine {
    /// The largest load tried that keeps every promise, as every smaller one that was tried does; in multiples of the demand. None where none does.
    pub holds: Option<f64>,
    /// Whether no load that was tried is too much: the load line lies beyond `holds`, ten times the demand or as much as was asked for.
    pub beyond: bool,
    /// The smallest load that does not.
    pub fails: Option<f64>,
    /// From the largest load that is surely carried to the smallest that surely is not, step times taken for right.
    pub between: (Option<f64>, Option<f64>),
    /// The component that gives way first.
    pub component: Option<String>,
    /// Its pools, by their places in the fleet.
    #[serde(skip)]
    pub pools: Vec<usize>,
    /// The promise that is broken first at the smallest load that fails.
    pub signal: Option<String>,
    /// What binds there.
    pub cause: Option<Cause>,
    /// The pool that binds, where one does.
    pub of: Option<String>,
    /// Every load that was tried on that component, lightest first.
    pub tried: Vec<LoadOutcome>,
    /// What the demand itself comes to, in all components: one of the loads that every search tries.
    #[serde(skip)]
    pub demand: Option<LoadOutcome>,
    /// Whether the time was up before it was found.
    pub unfinished: bool,
}

impl LoadLine {
    /// Of something that no request comes to.
    pub fn idle() -> Self {
        let demand = Some(together(1.0, Vec::new()));
        Self { holds: Some(load_at(HEAVIEST)), beyond: true, demand, ..Self::default() }
    }

    /// Whether the demand itself is carried.
    pub fn verdict(&self) -> LoadVerdict {
        let (carried, broken) = self.between;
        if self.beyond || carried.is_some_and(|at| at >= 1.0 - 1e-9) {
            LoadVerdict::Carried
        } else if broken.is_some_and(|at| at <= 1.0 + 1e-9) {
            LoadVerdict::Fails
        } else {
            LoadVerdict::TooClose
        }
    }
}

/// How many replicas of a pool carry a demand.
#[derive(Clone, Debug, PartialEq)]
pub struct SizedPool {
    /// Replicas to plan with; none where not even the most that may be tried are enough, or a promise is broken where no request waits for another.
    pub n: Option<u32>,
    /// One more than surely are too few, and as many as are surely enough or miss next to nothing, as far as that was found.
    pub between: (u32, u32),
    /// What the demand comes to with so many.
    pub at: Option<LoadOutcome>,
    /// The same with one fewer, or the next fewer that was tried.
    pub fewer: Option<(u32, LoadOutcome)>,
    /// What it comes to where no request waits for another.
    pub unloaded: LoadOutcome,
    /// Whether no number keeps every promise: promises are missed as much with many as with `n`.
    pub no_number: bool,
    /// The promise that is broken first with the most that are too few.
    pub signal: Option<String>,
    /// What binds there.
    pub cause: Option<Cause>,
    /// Whether the time was up, or the budget was spent, before it was found.
    pub unfinished: bool,
}

/// A fleet, its demand and what is promised: whoever asks how much of it is carried asks here.
pub struct Load<'m> {
    pub(crate) question: LoadQuestion<'m>,
    memo: &'m Memo,
    effort: Effort,
    should_continue: &'m (dyn Fn() -> bool + Sync),
}

impl<'m> Load<'m> {
    /// A question. `should_continue` is polled while it is simulated; once it returns false, answers say that they are unfinished.
    pub fn of(
        question: &LoadQuestion<'m>,
        memo: &'m Memo,
        should_continue: &'m (dyn Fn() -> bool + Sync),
    ) -> Self {
        Self { question: *question, memo, effort: Effort::USUAL, should_continue }
    }

    /// The same with another effort.
    #[must_use]
    pub fn with(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    /// Another question, asked in the same way.
    pub(crate) fn about<'q>(&'q self, question: &LoadQuestion<'q>) -> Load<'q> {
        Load {
            question: *question,
            memo: self.memo,
            effort: self.effort,
            should_continue: self.should_continue,
        }
    }

    /// What one load comes to.
    pub fn at(&self, load: f64) -> Result<LoadOutcome, StudyError> {
        let testers = self.testers();
        let count = u32::try_from(testers.len()).unwrap_or(u32::MAX);
        let each = in_order(self.question.fleet.threads, count, |i| {
            let tester = &testers[i as usize];
            let mut clumps = clumps(tester);
            // A heavier load first: where it is carried, so is this one, and where it fails it says how misses clump. Bursts and dumps are clumps by themselves.
            let heavier = match tester.is_even() && tester.is_sure() {
                true => Some(tester.trial(load * load_at(HEAVIER), &mut clumps)?),
                false => None,
            };
            let trial = match heavier.filter(|trial| trial.judged.verdict == LoadVerdict::Carried) {
                Some(carried) => carried,
                None => tester.trial(load, &mut clumps)?,
            };
            Ok(self.outcome(tester, load, &trial))
        });
        let each: Vec<LoadOutcome> = each.into_iter().collect::<Result<_, StudyError>>()?;
        Ok(together(load, each))
    }

    /// How the fleet comes back from its demand after a surge: its component that takes longest.
    pub fn recovery(&self) -> Result<Recovery, StudyError> {
        let testers = self.testers();
        let count = u32::try_from(testers.len()).unwrap_or(u32::MAX);
        let each = in_order(self.question.fleet.threads, count, |i| testers[i as usize].recovery());
        let mut worst = Recovery::After(0.0);
        for recovery in each {
            worst = match (worst, recovery?) {
                (Recovery::Unfinished, _) | (_, Recovery::Unfinished) => Recovery::Unfinished,
                (Recovery::NeverSteady, _) | (_, Recovery::NeverSteady) => Recovery::NeverSteady,
                (Recovery::NotWithin(a), Recovery::NotWithin(b)) => Recovery::NotWithin(a.max(b)),
                (lost @ Recovery::NotWithin(_), _) | (_, lost @ Recovery::NotWithin(_)) => lost,
                (Recovery::After(a), Recovery::After(b)) => Recovery::After(a.max(b)),
            };
        }
        Ok(worst)
    }

    /// The load line: the least of its components, fallbacks and providers as they are.
    pub fn line(&self) -> Result<LoadLine, StudyError> {
        Ok(least(self.lines()?))
    }

    /// The load line of each component that has demand.
    pub fn lines(&self) -> Result<Vec<LoadLine>, StudyError> {
        self.lines_from(|_| vec![1.0])
    }

    /// The same of a fleet that is much like another one, whose lines are known: after the demand, they are tried.
    pub fn line_near(&self, known: &[LoadLine]) -> Result<LoadLine, StudyError> {
        let shares = |own: &LoadLine, tester: &Tester<'_>| {
            own.pools.iter().any(|pool| tester.component.pools.contains(pool))
        };
        let lines = self.lines_from(|tester| {
            let near = known.iter().filter(|own| shares(own, tester)).filter_map(|own| own.holds);
            let least = near.reduce(f64::min);
            [1.0].into_iter().chain(least).collect()
        });
        Ok(least(lines?))
    }

    fn lines_from(
        &self,
        first: impl Fn(&Tester<'_>) -> Vec<f64> + Sync,
    ) -> Result<Vec<LoadLine>, StudyError> {
        let testers = self.testers();
        let count = u32::try_from(testers.len()).unwrap_or(u32::MAX);
        let lines = in_order(self.question.fleet.threads, count, |i| {
            let tester = &testers[i as usize];
            self.line_of(tester, &first(tester))
        });
        lines.into_iter().collect()
    }

    /// The load line of one pool: every other pool, provider and link serves without limit, fallbacks and shifts are off. The search begins at `about`, or at
    /// the demand, which is then tried.
    pub fn pool_line(&self, pool: usize, about: Option<f64>) -> Result<LoadLine, StudyError> {
        let fleet = isolated(&self.question, pool);
        let question = LoadQuestion { fleet: &fleet, ..self.question };
        let own = self.about(&question);
        let testers = own.testers();
        let mine = testers.iter().filter(|tester| tester.component.pools.contains(&pool));
        let lines = mine.map(|tester| own.line_of(tester, &[about.unwrap_or(1.0)]));
        Ok(least(lines.collect::<Result<_, StudyError>>()?))
    }

    /// What one pool comes to where no request waits for another: what fails then, fails with any number of replicas. None where no request comes to it.
    pub fn pool_unloaded(&self, pool: usize) -> Result<Option<LoadOutcome>, StudyError> {
        let mut fleet = isolated(&self.question, pool);
        fleet.pools[pool].life.replicas = UNSIZED_POOL_REPLICAS;
        let question = LoadQuestion { fleet: &fleet, lost: &[], ..self.question };
        let own = self.about(&question);
        let testers = own.testers();
        let tester = testers.iter().find(|tester| tester.component.pools.contains(&pool));
        tester
            .map(|tester| {
                let unloaded = tester.unloaded()?;
                Ok(own.outcome(tester, 0.0, &alone(&unloaded)))
            })
            .transpose()
    }

    /// The fewest replicas of a pool that carry the demand, every other pool, provider and link serving without limit, fallbacks and shifts off. The search begins with `about`,
    /// or with as many as there are.
    pub fn least(
        &self,
        pool: usize,
        (fewest, most): (u32, u32),
        about: Option<u32>,
    ) -> Result<Option<SizedPool>, StudyError> {
        let range = (fewest.max(1), most.max(1));
        let mut fleet = isolated(&self.question, pool);
        let replicas = &mut fleet.pools[pool].life.replicas;
        *replicas = (*replicas).clamp(range.0, range.1);
        let now = *replicas;
        let question = LoadQuestion { fleet: &fleet, lost: &[], ..self.question };
        let own = self.about(&question);
        let testers = own.testers();
        let Some(tester) = testers.iter().find(|own| own.component.pools.contains(&pool)) else {
            return Ok(None);
        };
        own.size(tester, pool, range, about.unwrap_or(now)).map(Some)
    }

    pub(crate) fn testers(&self) -> Vec<Tester<'m>> {
        components(&self.question)
            .into_iter()
            .map(|component| Tester::new(component, self.memo, self.effort, self.should_continue))
            .collect()
    }

    fn line_of(&self, tester: &Tester<'_>, first: &[f64]) -> Result<LoadLine, StudyError> {
        let name = tester.component.name.clone();
        let unloaded = tester.unloaded()?;
        if unloaded.judged.verdict == LoadVerdict::Fails {
            let trial = alone(&unloaded);
            let outcome = self.outcome(tester, 0.0, &trial);
            return Ok(LoadLine {
                fails: Some(load_at(LIGHTEST)),
                between: (None, Some(load_at(LIGHTEST))),
                component: Some(name),
                pools: tester.component.pools.clone(),
                signal: outcome.signal.clone(),
                cause: outcome.cause,
                of: outcome.of.clone(),
                demand: Some(LoadOutcome { load: 1.0, ..outcome.clone() }),
                tried: vec![outcome],
                ..LoadLine::default()
            });
        }
        let mut clumps = clumps(tester);
        let first: Vec<f64> = first.iter().map(|load| load.ln()).collect();
        let loads = Loads::up_to(self.effort.most_load);
        let found = edge(&loads, &first, unloaded.judged.ratio(), tester.budget(), |place| {
            tester.trial(load_at(place), &mut clumps)
        })?;
        Ok(self.line_from(tester, &found, name))
    }

    fn line_from(&self, tester: &Tester<'_>, found: &Edge, name: String) -> LoadLine {
        let tried: Vec<LoadOutcome> = found
            .tried
            .iter()
            .map(|(place, trial)| self.outcome(tester, load_at(*place), trial))
            .collect();
        let heaviest = Loads::up_to(self.effort.most_load).heaviest;
        let beyond = found.fails.is_none() && found.holds == Some(heaviest);
        let broke = found.fails.and_then(|place| found.tried.get(&place));
        let light = found.tried.values().next().filter(|_| found.tried.len() > 1);
        let blame = broke.map(|trial| self.blame(tester, trial, light)).unwrap_or_default();
        LoadLine {
            holds: found.holds.map(load_at),
            beyond,
            fails: found.fails.map(load_at),
            between: (found.carried.map(load_at), found.broken.map(load_at)),
            component: Some(name),
            pools: tester.component.pools.clone(),
            signal: blame.signal,
            cause: blame.cause,
            of: blame.of,
            demand: found.tried.get(&DEMAND).map(|trial| self.outcome(tester, 1.0, trial)),
            tried,
            unfinished: found.stopped,
        }
    }

    fn size(
        &self,
        tester: &Tester<'_>,
        pool: usize,
        (fewest, most): (u32, u32),
        about: u32,
    ) -> Result<SizedPool, StudyError> {
        let unloaded = tester.unloaded()?;
        let alone = alone(&unloaded);
        let unloaded_outcome = self.outcome(tester, 0.0, &alone);
        if unloaded.judged.verdict == LoadVerdict::Fails {
            return Ok(SizedPool {
                n: None,
                between: (fewest, most),
                at: None,
                fewer: None,
                unfinished: unloaded_outcome.unfinished,
                signal: unloaded_outcome.signal.clone(),
                cause: unloaded_outcome.cause,
                unloaded: unloaded_outcome,
                no_number: true,
            });
        }
        let axis = Numbers { fewest, most };
        let mut clumps = clumps(tester);
        let (floor, first) = (unloaded.judged.ratio(), axis.weight(-i64::from(about)));
        let found = edge(&axis, &[first], floor, tester.budget(), |place| {
            let n = u32::try_from(-place).unwrap_or(u32::MAX);
            tester.with_replicas(pool, n).trial(1.0, &mut clumps)
        })?;
        let number = |place: Option<i64>| place.and_then(|place| u32::try_from(-place).ok());
        let (holds, fails) = (number(found.holds), number(found.fails));
        let (safe, broken) = (number(found.safe), number(found.broken));
        // As many as are safe, where that is near: being wrong costs the launch.
        let near = |n: u32| holds.is_some_and(|holds| n <= holds + (holds / 20).max(1));
        let n = safe.filter(|n| near(*n)).or(holds).or(number(found.flat));
        let outcome = |n: u32| {
            let trial = found.tried.get(&-i64::from(n))?;
            Some(self.outcome(tester, 1.0, trial))
        };
        let below = found.tried.keys().rev().map(|place| -place);
        let below = below.filter_map(|n| u32::try_from(n).ok());
        let fewer = n.and_then(|n| below.filter(|own| *own < n).max());
        let broke = found.fails.and_then(|place| found.tried.get(&place));
        let light = found.tried.values().next().filter(|_| found.tried.len() > 1);
        let blame = broke.map(|trial| self.blame(tester, trial, light)).unwrap_or_default();
        Ok(SizedPool {
            n,
            between: (
                broken.map_or(fewest, |broken| broken + 1).min(n.unwrap_or(most)),
                safe.or(n).unwrap_or(most).max(n.unwrap_or(0)),
            ),
            at: n.or(fails).and_then(outcome),
            fewer: fewer.and_then(|n| Some((n, outcome(n)?))),
            unloaded: unloaded_outcome,
            no_number: found.flat.is_some(),
            signal: blame.signal,
            cause: blame.cause,
            // Fewer than the most that fail say nothing of the most.
            unfinished: found.stopped || n.is_none() && fails.is_none_or(|fails| fails < most),
        })
    }

    /// What a trial came to, class by class.
    fn outcome(&self, tester: &Tester<'_>, load: f64, trial: &Trial) -> LoadOutcome {
        let part = &tester.component.part;
        let level = tester.level();
        let mut classes = Vec::new();
        let mut of_class = Vec::new();
        for class in tester.component.members.iter().copied() {
            let promises = part.promises.iter().zip(&trial.judged.kept);
            let mine: Vec<_> = promises.filter(|(promise, _)| promise.class == class).collect();
            let Some((own, kept)) = mine.iter().find(|(p, _)| p.key == "attainment") else {
                continue;
            };
            let seen = attainment(kept, level).filter(|_| !trial.of_quiet);
            let broken = mine.iter().filter(|(promise, kept)| {
                promise.key != "attainment"
                    && kept.verdict != LoadVerdict::Carried
                    && kept.ratio > 1.0
            });
            of_class.push(mine.iter().map(|(_, kept)| kept.ratio).fold(0.0, f64::max));
            classes.push(ClassOutcome {
                class: part.classes[class].class.name.clone(),
                attainment: seen.map(|(share, _)| share),
                interval: seen.map(|(_, span)| span),
                target: self
                    .question
                    .targets
                    .get(class)
                    .map_or(1.0 - own.allowed, |t| t.attainment),
                seen: kept.count.came,
                missed: trial.misses.by_class[class],
                dispersion: kept.clump,
                broken_tail: broken.map(|(promise, _)| promise.key).next(),
            });
        }
        let worst =
            (0..classes.len()).max_by(|a, b| of_class[*a].total_cmp(&of_class[*b]).then(b.cmp(a)));
        let blame = match trial.keeps() {
            true => Blame::default(),
            false => self.blame(tester, trial, None),
        };
        let fleet = self.question.fleet;
        let phases = tester.component.pools.iter().filter_map(|pool| {
            let prefill = trial.misses.pressure.prefill_share(*pool)?;
            Some(PhaseShare { pool: fleet.pools[*pool].name.clone(), prefill })
        });
        LoadOutcome {
            load,
            phases: phases.collect(),
            cause: blame.cause,
            of: blame.of,
            verdict: trial.judged.verdict,
            keeps: trial.keeps(),
            missed_of_allowed: trial.judged.ratio(),
            signal: blame.signal,
            classes,
            worst,
            component: Some(tester.component.name.clone()),
            episodes: trial.episodes,
            seconds: trial.seconds,
            unfinished: trial.stopped,
        }
    }

    /// The promise that is broken first: of the class that is furthest from what it was promised, what more of its tasks missed first than at a light load. What fails at any load
    /// is not what more load does.
    fn signal(
        &self,
        tester: &Tester<'_>,
        trial: &Trial,
        light: Option<&Trial>,
    ) -> Option<(String, Option<Miss>)> {
        let worst = trial.judged.worst()?;
        let promise = &tester.component.part.promises[worst];
        if promise.key != "attainment" {
            return Some((promise.key.to_owned(), promise.of.miss()));
        }
        // With episodes misses are of all clusters, and what came is of one cycle: they say how misses are split.
        let share = |trial: &Trial| {
            let misses = trial.misses.by_class[promise.class];
            let count = trial.judged.kept[worst].count;
            let missed = count.missed / count.came.max(1.0);
            misses.map(|n| missed * n / misses.iter().sum::<f64>().max(1.0))
        };
        let now = share(trial);
        let more = light.map_or(now, |light| {
            let before = share(light);
            std::array::from_fn(|i| now[i] - before[i])
        });
        let most = |of: [f64; 5]| {
            let most = (0..5).rev().max_by(|a, b| of[*a].total_cmp(&of[*b]))?;
            (of[most] > 0.0).then_some(most)
        };
        let Some(most) = most(more).or_else(|| most(now)) else {
            return trial.judged.grows.map(|_| ("queue".to_owned(), None));
        };
        Some((Miss::ALL[most].word().to_owned(), Some(Miss::ALL[most])))
    }

    /// What binds at a load that fails, and the promise that is broken first.
    fn blame(&self, tester: &Tester<'_>, trial: &Trial, light: Option<&Trial>) -> Blame {
        let Some((signal, miss)) = self.signal(tester, trial, light) else {
            return Blame::default();
        };
        let part = &tester.component.part;
        let Some(worst) = trial.judged.worst() else { return Blame::default() };
        let class = part.promises[worst].class;
        let pools = pools_serving(&part.classes[class], self.question.fleet);
        let missed = Missed {
            class,
            signal: miss,
            tasks: trial.misses.by_class[class].iter().sum(),
            pools: &pools,
            replicas: &tester.component.replicas,
        };
        let (cause, pool) = cause(&part.fleet, &trial.misses.pressure, &missed);
        let of = pool.map(|pool| self.question.fleet.pools[pool].name.clone());
        Blame { signal: Some(signal), cause: Some(cause), of }
    }
}

/// What binds, and the promise that shows it first.
#[derive(Default)]
struct Blame {
    signal: Option<String>,
    cause: Option<Cause>,
    of: Option<String>,
}

/// A load that is so many steps of the grid heavier teaches how misses clump.
const HEAVIER: i64 = 5;

fn clumps(tester: &Tester<'_>) -> Clumps {
    Clumps::new(tester.component.part.promises.len())
}

fn alone(unloaded: &Unloaded) -> Trial {
    Trial {
        judged: unloaded.judged.clone(),
        misses: unloaded.misses.clone(),
        of_quiet: false,
        episodes: 0,
        calls: 0,
        stopped: unloaded.stopped,
        seconds: 0.0,
    }
}

/// The least of the lines of components.
fn least(lines: Vec<LoadLine>) -> LoadLine {
    let unfinished = lines.iter().any(|line| line.unfinished);
    let low = |line: &LoadLine| if line.beyond { f64::INFINITY } else { line.holds.unwrap_or(0.0) };
    // A component that is not surely carried as far bounds what is sure, whichever gives way first.
    let carried = lines
        .iter()
        .map(|line| if line.beyond { f64::INFINITY } else { line.between.0.unwrap_or(0.0) })
        .fold(f64::INFINITY, f64::min);
    let broken = lines.iter().filter_map(|line| line.between.1).fold(f64::INFINITY, f64::min);
    let demand: Option<Vec<LoadOutcome>> = lines.iter().map(|line| line.demand.clone()).collect();
    let first = lines.into_iter().min_by(|a, b| low(a).total_cmp(&low(b)));
    let Some(mut line) = first else { return LoadLine::idle() };
    line.demand = demand.map(|each| together(1.0, each));
    let known = |x: f64| (x.is_finite() && x > 0.0).then_some(x);
    line.between = (known(carried), known(broken));
    line.unfinished = unfinished;
    line
}

/// What several components came to at one load.
fn together(load: f64, each: Vec<LoadOutcome>) -> LoadOutcome {
    let order = |verdict: LoadVerdict| match verdict {
        LoadVerdict::Fails => 0,
        LoadVerdict::TooClose => 1,
        LoadVerdict::Carried => 2,
    };
    let worst = each.iter().min_by(|a, b| {
        order(a.verdict)
            .cmp(&order(b.verdict))
            .then(b.missed_of_allowed.total_cmp(&a.missed_of_allowed))
    });
    let Some(worst) = worst else {
        return LoadOutcome {
            load,
            verdict: LoadVerdict::Carried,
            keeps: true,
            missed_of_allowed: 0.0,
            classes: Vec::new(),
            worst: None,
            signal: None,
            cause: None,
            of: None,
            phases: Vec::new(),
            component: None,
            episodes: 0,
            seconds: 0.0,
            unfinished: false,
        };
    };
    let name = worst.worst.map(|at| worst.classes[at].class.clone());
    let mut whole = LoadOutcome { load, ..worst.clone() };
    whole.keeps = each.iter().all(|own| own.keeps);
    whole.unfinished = each.iter().any(|own| own.unfinished);
    whole.phases = each.iter().flat_map(|own| own.phases.clone()).collect();
    whole.classes = each.into_iter().flat_map(|own| own.classes).collect();
    whole.worst = name.and_then(|name| whole.classes.iter().position(|class| class.class == name));
    whole
}

/// A question about a fleet that has everything.
pub fn question<'a>(
    fleet: &'a SimulateInput,
    targets: &'a [ClassTarget],
    (hour, events): (usize, bool),
    lost: &'a [Mishap],
) -> LoadQuestion<'a> {
    LoadQuestion { fleet, targets, hour, events, lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The demand itself is a load of the grid, neighbours are at most a twentieth apart, and it reaches from a hundredth to ten times.
    #[test]
    fn the_grid() {
        assert!((load_at(0) - 1.0).abs() < f64::EPSILON);
        assert!(load_at(LIGHTEST) < 0.0105 && load_at(HEAVIEST) > 10.0);
        for place in LIGHTEST..HEAVIEST {
            let ratio = load_at(place + 1) / load_at(place);
            assert!(ratio > 1.0 && ratio <= 1.05);
        }
    }
}
