//! The service curve: what a fleet gives for what is asked of it, and the line to which it may be loaded.
//!
//! A point is a simulation of the same demand at a multiple of its rate. Points are looked for where they decide: the load is doubled until the fleet cannot carry it,
//! the edge is halved in on from both sides, and what is left of the points is spread over the rest. The method is in `docs/model.md`, "The service curve".

use std::cell::RefCell;

use plimsoll_sim::{Good, RouteSpec, Target};
use plimsoll_stats::{Interval, share_interval};
use plimsoll_workload::Shift;

use crate::episodes::{Episode, Length};
pub use plimsoll_load::ClassTarget;
use plimsoll_load::StudyError;
use plimsoll_load::{
    AttemptCounts, ClassResult, PoolResult, Record, SimulateInput, Simulation, Source, Verdict,
    simulate,
};
use plimsoll_load::{SimulatedClass, Spell, longest_pauses, mean_pauses};

/// What a curve is drawn from.
#[derive(Clone, Debug)]
pub struct CurveInput {
    /// The fleet and its demand; what goes wrong in it is left aside, and its replicas stay as they are.
    pub fleet: SimulateInput,
    /// What each class is held to.
    pub targets: Vec<ClassTarget>,
    /// The hour, and whether events count.
    pub hour: usize,
    /// Whether events count.
    pub events: bool,
    /// Points to draw.
    pub points: usize,
    /// Calls of a point, over all runs.
    pub calls: f64,
    /// How often a load is looked at again, four times as long, where it is not clear whether promises are kept.
    pub longer: u32,
    /// Whether lines are looked for resource by resource, too.
    pub by_resource: bool,
}

/// Whether promises are kept.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) meets: bool,
    /// Whether there is no doubt, as surely as was asked for.
    pub(crate) sure: bool,
    pub(crate) fails_by: Option<String>,
    /// Of the class that has least of it against what it was promised.
    pub(crate) attainment: Option<f64>,
    /// Between what that is.
    pub(crate) between: Option<(f64, f64)>,
    /// That class, by its place.
    pub(crate) worst: Option<usize>,
    /// Whether nothing is broken but attainment, and chance alone may have done that: so few tasks were seen.
    chance: bool,
    /// Tasks that may miss their promise, of the class with the fewest of those that break it.
    may_miss: f64,
}

impl Judged {
    /// Whether promises are kept, as far as so few tasks tell.
    pub(crate) fn may_meet(&self) -> bool {
        self.meets || self.chance
    }

    /// The same where chance is only taken for it when so few tasks were seen that not one of them might miss: in short looks whose line is wanted, and not a proof.
    pub(crate) fn about_meets(&self) -> bool {
        self.meets || self.chance && self.may_miss < 1.0
    }
}

/// Calls of a point, over all runs: enough where promises are clearly kept or broken.
pub const CURVE_CALLS: f64 = 24_000.0;
/// Calls of a load at most where lines are looked for resource by resource.
const CALLS_BY_RESOURCE: f64 = 16_000.0;
/// The edge is known to this share of its load.
const EDGE: f64 = 0.03;
/// Loads that are tried at most on the way to where the fleet cannot carry more.
const STEPS: u32 = 8;
/// Runs of each load where lines are looked for resource by resource.
const RUNS_BY_RESOURCE: u32 = 4;
/// Loads that show the shape of every curve, however few points are asked for: far beyond the line, and far below it.
const BEYOND: usize = 2;

/// Tasks under way at which a fleet has so much more than it can run at once that it will not come back.
pub(crate) fn hopeless(fleet: &SimulateInput) -> u64 {
    let seats = fleet.pools.iter().map(|pool| {
        (pool.life.limits.max_num_seqs as u64).saturating_mul(u64::from(pool.life.replicas))
    });
    seats.sum::<u64>().saturating_mul(8).max(20_000)
}

/// How long tasks take where nobody waits.
#[derive(Clone, Debug)]
pub(crate) struct Alone {
    /// Seconds that a call of each class takes.
    calls_take: Vec<f64>,
    /// Seconds in which what is left at the end is worked off.
    work_off: Option<f64>,
    /// Seconds to the first token, half of the time, of the class that has it first.
    pub(crate) ttft_s: Option<f64>,
}

/// Loads on a fleet, each tried for as long as it takes.
pub(crate) struct Sweep<'a> {
    pub(crate) input: &'a CurveInput,
    go_on: &'a (dyn Fn() -> bool + Sync),
    pub(crate) base: SimulateInput,
    /// Calls a second of the demand, of all classes, and tasks.
    pub(crate) rate: f64,
    tasks: f64,
    /// What was seen where nobody waits.
    pub(crate) light: Option<Simulation>,
    /// Seconds that a call of each class took in the last run, and takes where nobody waits.
    calls_take: RefCell<Vec<f64>>,
    calls_take_alone: Vec<f64>,
    /// How long a fleet is given to settle, in times that a call takes, and at least in seconds.
    pub(crate) settles: (f64, f64),
    /// Bursts or dumps, where load comes in any, and how many of them a load is tried with.
    episode: Option<Episode>,
    pub(crate) episodes: f64,
    /// Whether runs wait for classes that seldom come.
    pub(crate) patient: bool,
}

/// Long enough for whatever was under way at the beginning to be forgotten.
const SETTLES: (f64, f64) = (3.0, 10.0);
/// Calls of a busy fleet take so many times what they take alone.
const BUSY: f64 = 4.0;
/// Of each class that is promised something as many tasks are seen as there are calls for so many, or until so many times the calls were made.
const CALLS_FOR_A_TASK: f64 = 8.0;
const MOST_CALLS_FOR_THE_RAREST: f64 = 40.0;
/// Long enough for most of it.
pub(crate) const SETTLES_SOON: (f64, f64) = (1.5, 5.0);

impl<'a> Sweep<'a> {
    pub(crate) fn new(input: &'a CurveInput, go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
        let mut base = input.fleet.clone();
        base.chance = false;
        base.incidents.clear();
        base.surges.clear();
        base.window = None;
        base.pools.iter_mut().for_each(|pool| pool.life.scaling = None);
        base.hopeless = Some(hopeless(&base));
        let calls = |c: &SimulatedClass| {
            c.rate(input.hour, input.events) * c.class.task.mean_requests().max(1.0)
        };
        let rate: f64 = base.classes.iter().map(calls).sum();
        let tasks = base.classes.iter().map(|c| c.rate(input.hour, input.events)).sum();
        let alone = vec![0.0; base.classes.len()];
        Self {
            input,
            go_on,
            base,
            rate,
            tasks,
            light: None,
            calls_take: RefCell::new(alone.clone()),
            calls_take_alone: alone,
            settles: SETTLES,
            episode: Episode::slowest(&input.fleet.classes, input.hour, input.events),
            episodes: 0.0,
            patient: false,
        }
    }

    /// What a run of a lever takes.
    fn input_of(&self, lever: Shift, calls: f64) -> SimulateInput {
        let mut own = self.base.clone();
        own.lever = lever;
        // Tasks are under way from the beginning, as far as they would be were their calls to take as long as in the last run; and as long does it take to settle.
        let mut longest = 0.0f64;
        for (class, take) in own.classes.iter_mut().zip(self.calls_take.borrow().iter()) {
            class.call_seconds = *take;
            longest = longest.max(*take);
        }
        own.warm_up = (self.settles.0 * longest).clamp(self.settles.1, 600.0);
        // As many calls at every load, but never less time than the warm-up: what takes long has to be seen to its end.
        let each = calls / f64::from(own.runs);
        own.seconds =
            (each / (self.rate * lever.rate).max(1e-9)).clamp(own.warm_up, 7.0 * 86_400.0);
        // A class that seldom comes has a promise, too: it is waited for, though not for ever.
        let promised = |(_, class): &(f64, &SimulatedClass)| class.sent.good != Good::default();
        let rates = own.classes.iter().map(|c| (c.rate(self.input.hour, self.input.events), c));
        let rarest = rates.filter(|(rate, _)| *rate > 0.0).filter(promised).map(|(rate, _)| rate);
        if let Some(rarest) = rarest.reduce(f64::min).filter(|_| self.patient) {
            let tasks = each / CALLS_FOR_A_TASK / (rarest * lever.rate).max(1e-9);
            let most = MOST_CALLS_FOR_THE_RAREST * each / (self.rate * lever.rate).max(1e-9);
            own.seconds = own.seconds.max(tasks.min(most));
        }
        // A provider's limits are of minutes, and a minute's worth is there at the beginning.
        let rented = |route: &RouteSpec| matches!(route.to, Target::Provider(_));
        if own.classes.iter().flat_map(|class| &class.sent.routes).any(rented) {
            own.warm_up = own.warm_up.max(120.0);
            own.seconds = own.seconds.max(600.0);
        }
        self.see_episodes(&mut own, lever.rate);
        let until = own.warm_up + own.seconds;
        let (hour, events) = (self.input.hour, self.input.events);
        own.source = Source::Classes(vec![Spell { until, hour, events }]);
        own
    }

    /// Lengthens runs until they see enough bursts or dumps.
    fn see_episodes(&self, own: &mut SimulateInput, load: f64) {
        let length = Length { warm_up: own.warm_up, seconds: own.seconds };
        let episodes = (self.episode, self.episodes);
        let length = length.with_episodes(episodes, own.runs, self.rate * load);
        (own.warm_up, own.seconds) = (length.warm_up, length.seconds);
    }

    /// Runs so many times the demand, watched by somebody.
    pub(crate) fn watched(
        &self,
        load: f64,
        calls: f64,
        record: &mut dyn Record,
    ) -> Result<Simulation, StudyError> {
        let lever = Shift { rate: load, ..Shift::NONE };
        simulate(&self.input_of(lever, calls), Some(record), self.go_on)
    }

    /// Runs the demand as it is for a long time, a third of which is warm-up.
    pub(crate) fn run_for(&self, calls: f64) -> Result<Simulation, StudyError> {
        let mut own = self.input_of(Shift::NONE, calls);
        let all = (calls / self.rate.max(1e-9)).clamp(60.0, 7.0 * 86_400.0);
        own.warm_up = own.warm_up.max(all / 3.0);
        own.seconds = own.seconds.max(all * 2.0 / 3.0);
        self.see_episodes(&mut own, 1.0);
        let until = own.warm_up + own.seconds;
        let (hour, events) = (self.input.hour, self.input.events);
        own.source = Source::Classes(vec![Spell { until, hour, events }]);
        simulate(&own, None, self.go_on)
    }

    pub(crate) fn run(&self, lever: Shift, calls: f64) -> Result<Simulation, StudyError> {
        let own = self.input_of(lever, calls);
        let result = simulate(&own, None, self.go_on)?;
        let mut take = self.calls_take.borrow_mut();
        for (i, class) in result.classes.iter().enumerate() {
            if let Some(took) = self.call_takes(i, class) {
                // A backlog is no measure of how long it takes to be served.
                take[i] = took.clamp(self.calls_take_alone[i], 4.0 * self.calls_take_alone[i]);
            }
        }
        drop(take);
        Ok(result)
    }

    /// Seconds that a call of a class took, its task's pauses apart.
    fn call_takes(&self, i: usize, class: &ClassResult) -> Option<f64> {
        let pauses = mean_pauses(&self.base.classes[i], self.base.seed);
        let calls = class.calls as f64 / class.completed.max(1) as f64;
        let took = class.e2e_ms?.mean / 1e3;
        Some(((took - pauses) / calls.max(1.0)).max(0.0))
    }

    /// Runs a lever until it is known whether promises are kept, or it has taken long enough: where it is not known then, what was seen decides.
    fn settled(&self, lever: Shift, calls: f64) -> Result<(Simulation, Judged), StudyError> {
        let mut calls = calls;
        for _ in 0..self.input.longer {
            let result = self.run(lever, calls)?;
            let judged = judge(&result, self.input);
            if judged.sure || !(self.go_on)() {
                return Ok((result, judged));
            }
            calls *= 4.0;
        }
        let result = self.run(lever, calls)?;
        let judged = judge(&result, self.input);
        Ok((result, judged))
    }

    /// Whether there is time left.
    pub(crate) fn goes_on(&self) -> bool {
        (self.go_on)()
    }

    /// Whether promises are kept in what was seen. Too few bursts or dumps say nothing of the next, however many requests each of them has.
    pub(crate) fn judged(&self, result: &Simulation) -> Judged {
        let mut judged = judge(result, self.input);
        let seconds = result.seconds * f64::from(result.runs);
        if self.episode.is_some_and(|episode| !episode.enough(seconds)) {
            (judged.sure, judged.between) = (false, None);
        }
        judged
    }

    /// How long tasks take where nobody waits decides how long it takes until a fleet has settled.
    ///
    /// Tasks of several calls are under way from the beginning, so it is the time of a call that counts. Says what fails even then.
    pub(crate) fn settle(&mut self) -> Result<Option<(String, String)>, StudyError> {
        self.calls_take.borrow_mut().fill(10.0);
        self.calls_take_alone.fill(10.0);
        // Half a call a second for each replica is nothing, however much is asked for.
        let replicas: u32 = self.base.pools.iter().map(|pool| pool.life.replicas).sum();
        let least = if replicas == 0 { 0.02 } else { 0.5 * f64::from(replicas) / self.rate };
        let light = self.run(Shift { rate: least.min(0.02), ..Shift::NONE }, 2_000.0)?;
        // Whoever came last is seen to the end, were nobody in the way; more than that is a backlog.
        let tasks = light.classes.iter().filter_map(|c| c.e2e_ms).map(|d| d.p99 / 1e3);
        let pauses = longest_pauses(&self.base.classes, self.base.seed);
        let longest = tasks.fold(pauses, f64::max);
        // What a burst leaves behind may be worked off until the next one begins.
        let next = self.episode.map_or(0.0, |episode| episode.every);
        self.base.work_off = Some((2.0 * longest).max(60.0).max(next));
        for (i, class) in light.classes.iter().enumerate() {
            self.calls_take_alone[i] = self.call_takes(i, class).unwrap_or(0.0);
        }
        self.calls_take.replace(self.calls_take_alone.clone());
        let far = |(class, target): (&ClassResult, &ClassTarget)| {
            let level = self.input.fleet.level;
            let high = |a: f64| bounds(class, a, &light, level).1;
            let short = class.attainment.is_some_and(|a| high(a) < target.attainment);
            let tail = target.tails.iter().find(|t| t.value(class).is_some_and(|v| v > t.most_ms));
            let few = class.offered - class.completed - class.left < 5;
            let fails = !few && failed(class) > 1.0 - target.attainment + 0.005;
            let by = tail.map(|t| t.key.to_owned()).or(short.then(|| first_signal(class)));
            let by = by.or(fails.then(|| "errors".to_owned()))?;
            Some((by, class.name.clone()))
        };
        let fails = light.classes.iter().zip(&self.input.targets).find_map(far);
        self.light = Some(light);
        Ok(fails)
    }

    /// How long tasks take where nobody waits, for others that look at the same classes.
    pub(crate) fn alone(&self) -> Alone {
        let light = self.light.as_ref();
        let ttft = light.into_iter().flat_map(|light| &light.classes).filter_map(|c| c.ttft_ms);
        Alone {
            calls_take: self.calls_take_alone.clone(),
            work_off: self.base.work_off,
            ttft_s: ttft.map(|d| d.p50 / 1e3).reduce(f64::min),
        }
    }

    /// As if it had settled: the classes are those that were looked at before.
    pub(crate) fn settle_as(&mut self, alone: &Alone) {
        self.base.work_off = alone.work_off;
        self.calls_take_alone.clone_from(&alone.calls_take);
        self.calls_take.replace(alone.calls_take.clone());
    }

    /// The next run begins as busy as a fleet near its line is, whatever the last one showed: where tasks make many calls, what is under way at the beginning decides what
    /// comes of them, and a load is looked at in the same way wherever the search comes from.
    pub(crate) fn begin_busy(&self) {
        let take = self.calls_take_alone.iter().map(|own| own * BUSY).collect();
        self.calls_take.replace(take);
    }

    /// Other numbers of replicas, pool by pool.
    pub(crate) fn set_replicas(&mut self, replicas: &[u32]) {
        for (pool, n) in self.base.pools.iter_mut().zip(replicas) {
            pool.life.replicas = *n;
        }
        self.base.hopeless = Some(hopeless(&self.base));
    }

    /// The largest multiple of a lever that keeps all promises, and the next that does not: within a share of each other. It is looked for from a multiple on, in
    /// steps of so many times.
    pub(crate) fn edge(
        &self,
        mut meets: impl FnMut(f64) -> Result<bool, StudyError>,
        (mut load, step): (f64, f64),
        edge: f64,
    ) -> Result<(Option<f64>, Option<f64>), StudyError> {
        let (mut low, mut high) = (None, None);
        for _ in 0..STEPS {
            if !(self.go_on)() {
                return Ok((low, high));
            }
            if meets(load)? {
                low = Some(load);
                load *= step;
            } else {
                high = Some(load);
                load /= step;
            }
            if low.is_some() && high.is_some() {
                break;
            }
        }
        while let (Some(below), Some(above)) = (low, high)
            && above / below > 1.0 + edge
            && (self.go_on)()
        {
            let middle = f64::sqrt(below * above);
            if meets(middle)? { low = Some(middle) } else { high = Some(middle) }
        }
        Ok((low, high))
    }
}

/// Whether every class gets what it was promised, and whether that is as sure as was asked for.
pub(crate) fn judge(result: &Simulation, input: &CurveInput) -> Judged {
    let (mut fails_by, mut doubt) = (None, false);
    let (mut chance, mut may_miss) = (true, f64::INFINITY);
    let mut worst: Option<(f64, f64, (f64, f64), usize)> = None;
    for (i, (class, target)) in result.classes.iter().zip(&input.targets).enumerate() {
        if let Some(attainment) = class.attainment {
            let (low, high) = bounds(class, attainment, result, input.fleet.level);
            let short = target.attainment - attainment;
            if worst.is_none_or(|(before, ..)| short > before) {
                worst = Some((short, attainment, (low, high), i));
            }
            doubt |= low < target.attainment && target.attainment <= high;
            if attainment < target.attainment {
                fails_by = fails_by.or_else(|| Some(first_signal(class)));
                may_miss = f64::min(may_miss, class.offered as f64 * (1.0 - target.attainment));
                chance &=
                    few(class, input.fleet.level).is_some_and(|few| few.high >= target.attainment);
            }
        }
        for tail in &target.tails {
            if tail.value(class).is_some_and(|value| value > tail.most_ms) {
                fails_by = fails_by.or(Some(tail.key.to_owned()));
                chance = false;
            }
        }
        if failed(class) > 1.0 - target.attainment {
            fails_by = fails_by.or(Some("errors".to_owned()));
        }
    }
    // Whoever is turned away is counted above; a line that grows is trouble to come.
    // Nobody stands in the line of a pool that is gone; whether somebody else took over is counted above, too.
    let there = |p: &&PoolResult| p.attempts.answered > 0 || p.attempts.nobody_there == 0;
    let pools = result.pools.iter().filter(there).map(|p| p.verdict);
    let lines = pools.chain(result.tools.iter().map(|t| t.verdict));
    if lines.into_iter().any(|verdict| verdict.is_none_or(|v| v == Verdict::Overloaded)) {
        fails_by = fails_by.or(Some("queue".to_owned()));
        (doubt, chance) = (false, false);
    }
    Judged {
        meets: fails_by.is_none(),
        sure: !doubt,
        fails_by,
        attainment: worst.map(|(_, attainment, ..)| attainment),
        between: worst.map(|(.., between, _)| between),
        worst: worst.map(|(.., i)| i),
        chance,
        may_miss,
    }
}

/// Between what a class's attainment is: runs differ, and few tasks say little, whichever is wider.
fn bounds(class: &ClassResult, attainment: f64, result: &Simulation, level: f64) -> (f64, f64) {
    let few = few(class, level);
    let (low, high) = few.map_or((attainment, attainment), |few| (few.low, few.high));
    let runs = result.intervals.get(&format!("{}.{}.attainment", class.pool, class.name));
    runs.map_or((low, high), |runs| (low.min(runs.low), high.max(runs.high)))
}

/// The same for few tasks alone.
fn few(class: &ClassResult, level: f64) -> Option<Interval> {
    let whole = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let waited = class.offered - (class.left - class.left_overdue);
    share_interval(whole(class.good), whole(waited), level)
}

/// The share of a class's tasks that missed each threshold, in the order in which they are seen.
pub(crate) fn missed_shares(class: &ClassResult) -> [(&'static str, f64); 5] {
    let missed = &class.missed;
    let counts = [
        ("errors", class.offered - class.completed - class.left),
        ("ttft", missed.ttft),
        ("tpot", missed.tpot),
        ("e2e", missed.e2e),
        ("gap", missed.gap),
    ];
    counts.map(|(name, count)| (name, count as f64 / class.offered.max(1) as f64))
}

/// Whether a signal is a threshold that each task is held to, and not a tail or a queue.
pub(crate) fn is_threshold(signal: &str) -> bool {
    matches!(signal, "errors" | "ttft" | "tpot" | "e2e" | "gap")
}

/// The threshold that most tasks of a class missed.
fn first_signal(class: &ClassResult) -> String {
    // Of those that as many missed, the one that is seen first.
    let most = missed_shares(class).into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1));
    most.map_or("errors", |(name, _)| name).to_owned()
}

/// The share of a class's tasks that failed in any way; users who left did not.
fn failed(class: &ClassResult) -> f64 {
    let failed = class.offered - class.completed - class.left;
    failed as f64 / class.offered.max(1) as f64
}

/// What keeps a fleet from doing more, as a simulation shows it.
pub(crate) fn binds(result: &Simulation, signal: Option<&str>) -> (Option<String>, Option<String>) {
    let found = |resource: &str, of: &str| (Some(resource.to_owned()), Some(of.to_owned()));
    // Where errors break the promise, and most that fail are longer than anything takes, nothing else is to blame.
    let long = result.classes.iter().find(|class| {
        failed(class) > 0.002 && class.too_long * 2 > class.offered - class.completed - class.left
    });
    let errors = signal == Some("errors");
    if let Some(class) = long.filter(|_| errors) {
        return found("context_length", &class.pool);
    }
    // Whoever turns most away, where that is what is wrong.
    let turned = |attempts: &AttemptCounts| attempts.refused + attempts.nobody_there;
    let all: u64 = result.classes.iter().map(|class| class.attempts.sent).sum();
    let provider = result.providers.iter().max_by_key(|p| turned(&p.attempts));
    let pools: u64 = result.pools.iter().map(|p| turned(&p.attempts)).sum();
    if let Some(provider) = provider
        && turned(&provider.attempts) > pools
        && turned(&provider.attempts) * 200 > all
    {
        return found("provider", &provider.name);
    }
    let own = &result.binding;
    // Whoever waits waits for something.
    if own.share_of_time > 0.02
        && let (Some(resource), Some(of)) = (own.resource, &own.pool)
        && resource != "provider"
    {
        return found(resource, of);
    }
    let busiest = result.pools.iter().max_by(|a, b| {
        let strain = |p: &PoolResult| (p.verdict, p.utilisation.busy);
        let (a, b) = (strain(a), strain(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let Some(pool) = busiest else {
        return provider.map_or((None, None), |provider| found("provider", &provider.name));
    };
    let u = &pool.utilisation;
    let shares = [("memory_bandwidth", u.bandwidth), ("compute", u.compute), ("host", u.path)];
    let most = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    (most.map(|(name, _)| name.to_owned()), Some(pool.name.clone()))
}

/// What moves one resource, and how that is measured.
pub(crate) struct Lever {
    pub(crate) resource: &'static str,
    name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) shift: fn(f64) -> Shift,
    value: fn(&Simulation) -> f64,
    /// Whether it comes with the load, and not with how long it is kept.
    flows: bool,
}

/// Tokens that all pools held, on average.
pub(crate) fn resident(result: &Simulation) -> f64 {
    let pools = result.pools.iter().map(|p| {
        let tokens = p.kv_blocks as f64 * p.kv_block_tokens as f64;
        p.utilisation.kv_mean * tokens * p.replicas as f64
    });
    pools.sum::<f64>().max(0.0)
}

fn per_second(result: &Simulation, of: fn(&ClassResult) -> u64) -> f64 {
    let seconds = result.seconds * f64::from(result.runs);
    result.classes.iter().map(of).sum::<u64>() as f64 / seconds
}

pub(crate) const LEVERS: [Lever; 3] = [
    Lever {
        resource: "fresh_prompt_tokens",
        name: "prompt",
        unit: "tokens/s",
        shift: |factor| Shift { prompt: factor, ..Shift::NONE },
        value: |result| per_second(result, |c| c.prompt_tokens - c.cached_tokens),
        flows: true,
    },
    Lever {
        resource: "output_tokens",
        name: "output",
        unit: "tokens/s",
        shift: |factor| Shift { output: factor, ..Shift::NONE },
        value: |result| per_second(result, |c| c.output_tokens),
        flows: true,
    },
    Lever {
        resource: "resident_kv_tokens",
        name: "context",
        unit: "tokens",
        // Prompts and outputs grow, and as much less comes: tokens a second stay, attention apart so does the work; what is held at once grows with how long it is held.
        shift: |factor| Shift { prompt: factor, output: factor, rate: 1.0 / factor, ..Shift::NONE },
        value: resident,
        flows: false,
    },
];
