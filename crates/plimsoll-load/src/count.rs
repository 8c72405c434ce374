//! Runs that decide: they count, class by class, what came and what missed its promise, and keep nothing else.

use std::cell::Cell;
use std::iter::Peekable;
use std::rc::Rc;

use plimsoll_sim::{
    Attempt, Budget, FleetSpec, FleetWatch, Pace, Stretch, Task, TaskOutcome, TaskStep, TaskSteps,
    ToolUse, run_fleet,
};

use crate::arrivals::ps;
use crate::cause::Pressure;
use crate::component::Part;
use crate::promise::{Measure, Miss, Promise};
use crate::smear::Spread;

/// Parts of a run that are counted apart. What is looked at is a power of two of them, so that sixteen blocks of any look are whole parts.
pub(crate) const UNITS: usize = 1024;
/// Looks at a run: at a 64th of it, a 32nd, and so on.
pub(crate) const LOOKS: usize = 7;

/// Units that have passed when a run is looked at.
pub(crate) fn units_at(look: usize) -> usize {
    UNITS >> (LOOKS - 1 - look.min(LOOKS - 1))
}

/// What came and what missed, of one promise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) came: f64,
    pub(crate) missed: f64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self) {
        self.came += other.came;
        self.missed += other.missed;
    }
}

/// What missed, and what the fleet was busy with meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Misses {
    /// Tasks of each class by what they missed first, as in [`Miss::ALL`].
    pub(crate) by_class: Vec<[f64; 5]>,
    pub(crate) pressure: Pressure,
}

impl Misses {
    pub(crate) fn none(part: &Part) -> Self {
        Self { by_class: vec![[0.0; 5]; part.classes.len()], pressure: Pressure::new(&part.fleet) }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (misses, more) in self.by_class.iter_mut().zip(&other.by_class) {
            misses.iter_mut().zip(more).for_each(|(a, b)| *a += b);
        }
        self.pressure.add(&other.pressure);
    }
}

/// How long calls and tasks of a class took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Took {
    pub(crate) tasks: f64,
    pub(crate) calls: f64,
    pub(crate) seconds: f64,
}

/// A run of a steady demand, part by part.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    /// Seconds of each unit.
    pub(crate) unit_s: f64,
    /// Units within which misses may take to come.
    pub(crate) slow_units: f64,
    /// Of each promise, each unit.
    pub(crate) counts: Vec<Vec<Count>>,
    /// Tasks under way in each unit, on average.
    pub(crate) under_way: Vec<f64>,
    /// Misses by class, as they stood at each look.
    pub(crate) misses: Vec<Misses>,
    /// How long tasks took.
    pub(crate) took: Vec<Took>,
    /// Looks that it reached.
    pub(crate) looks: usize,
    /// Whether so many tasks were under way that it cannot come back.
    pub(crate) overrun: bool,
    /// Whether it was stopped because the time was up.
    pub(crate) stopped: bool,
    /// Calls that were made.
    pub(crate) calls: u64,
}

/// One cluster of bursts or dumps, from its beginning until the fleet is back.
#[derive(Clone, Debug)]
pub(crate) struct Episode {
    pub(crate) counts: Vec<Count>,
    pub(crate) misses: Misses,
    /// How long it lasted.
    pub(crate) seconds: f64,
    /// What it stands for.
    pub(crate) weight: f64,
    /// Dumps that are part of it.
    pub(crate) dumps: u32,
    /// Whether the fleet did not come back.
    pub(crate) lost: bool,
    pub(crate) stopped: bool,
    pub(crate) calls: u64,
}

/// What the tasks that come and the one who counts them know of each other.
#[derive(Default)]
struct Shared {
    under_way: Cell<u64>,
    /// Tasks under way that count.
    counted: Cell<u64>,
    /// Until when tasks count.
    until: Cell<u64>,
}

/// What a run is counted by.
enum Span {
    /// By when tasks end, unit by unit.
    Units(u64),
    /// By when they begin.
    Whole,
}

struct Counter<'a> {
    part: &'a Part,
    shared: Rc<Shared>,
    span: Span,
    from: u64,
    slow_s: f64,
    counts: Vec<Vec<Count>>,
    /// Picoseconds of tasks under way, unit by unit.
    under_way: Vec<f64>,
    misses: Misses,
    misses_at: Vec<Misses>,
    took: Vec<Took>,
    /// More tasks under way than this are too many.
    most: u64,
    overrun: bool,
    last: u64,
    looks: usize,
    /// Says after a look whether it is decided.
    decided: Option<&'a mut dyn FnMut(&SoFar<'_>) -> bool>,
    done: bool,
    /// Tasks of each class under way that count by when they began.
    open: Vec<u64>,
    cluster: Option<Cluster>,
}

impl Counter<'_> {
    fn unit(&self, at: u64) -> Option<usize> {
        match self.span {
            Span::Units(unit) => {
                let i = at.checked_sub(self.from)? / unit;
                usize::try_from(i).ok().filter(|i| *i < UNITS)
            }
            Span::Whole => (at >= self.from && at < self.shared.until.get()).then_some(0),
        }
    }

    /// Time passes.
    fn pass(&mut self, now: u64) {
        if now <= self.last {
            return;
        }
        if let (Span::Units(unit), true) = (&self.span, now > self.from) {
            let (unit, under) = (*unit, self.shared.under_way.get() as f64);
            let mut at = self.last.max(self.from);
            while at < now {
                let i = ((at - self.from) / unit) as usize;
                let Some(area) = self.under_way.get_mut(i) else { break };
                let next = (self.from + (i as u64 + 1) * unit).min(now);
                *area += under * (next - at) as f64;
                at = next;
            }
        }
        self.last = now;
    }

    /// Tasks under way, unit by unit, on average.
    fn under_way(&self) -> Vec<f64> {
        let Span::Units(unit) = self.span else { return Vec::new() };
        self.under_way.iter().map(|area| area / unit as f64).collect()
    }

    /// A cluster is over as soon as no class bursts and the fleet is back.
    fn end_cluster(&mut self, now: u64) {
        let Some(cluster) = &self.cluster else { return };
        let back = self.shared.until.get() == u64::MAX
            && now >= cluster.earliest
            && self.shared.under_way.get() <= cluster.level
            && !cluster.bursts.iter().any(|(from, to)| (*from..*to).contains(&now));
        if back {
            self.shared.until.set(now);
        }
    }

    /// Looks that the time allows.
    fn due(&self) -> usize {
        let Span::Units(unit) = self.span else { return 0 };
        let units = (self.last.saturating_sub(self.from) / unit) as usize;
        (0..LOOKS).take_while(|look| units >= units_at(*look)).count()
    }

    fn look(&mut self) {
        while self.looks < self.due() && !self.done {
            self.looks += 1;
            self.misses.pressure.seconds = self.last.saturating_sub(self.from) as f64 / 1e12;
            self.misses_at.push(self.misses.clone());
            let (under_way, looks) = (self.under_way(), self.looks);
            let Span::Units(unit) = self.span else { return };
            let slow_units = self.slow_s * 1e12 / unit as f64;
            if let Some(decided) = &mut self.decided {
                self.done |= decided(&SoFar { counts: &self.counts, under_way, looks, slow_units });
            }
        }
    }
}

impl FleetWatch for Counter<'_> {
    fn goes_on(&mut self) -> bool {
        self.overrun |= self.shared.under_way.get() > self.most;
        self.look();
        !self.overrun && !self.done
    }

    fn offered(&mut self, class: u16, at: u64) {
        self.pass(at);
        self.end_cluster(at);
        self.shared.under_way.set(self.shared.under_way.get() + 1);
        if matches!(self.span, Span::Whole) && self.unit(at).is_some() {
            self.shared.counted.set(self.shared.counted.get() + 1);
            self.open[usize::from(class)] += 1;
        }
    }

    fn task(&mut self, o: &TaskOutcome) {
        self.pass(o.ended);
        self.shared.under_way.set(self.shared.under_way.get().saturating_sub(1));
        self.end_cluster(o.ended);
        let at = match self.span {
            Span::Units(_) => o.ended,
            Span::Whole => o.began,
        };
        let Some(unit) = self.unit(at) else { return };
        if matches!(self.span, Span::Whole) {
            self.shared.counted.set(self.shared.counted.get().saturating_sub(1));
            self.open[usize::from(o.class)] -= 1;
        }
        let class = usize::from(o.class);
        let mut broken = None;
        for (promise, counts) in self.part.promises.iter().zip(&mut self.counts) {
            if promise.class == class
                && let Some(missed) = promise.missed(o)
            {
                counts[unit].add(Count { came: 1.0, missed: f64::from(u8::from(missed)) });
                broken = broken.or(promise.of.miss().filter(|_| missed));
            }
        }
        let took = &mut self.took[class];
        took.tasks += 1.0;
        took.calls += f64::from(o.calls);
        took.seconds += (o.ended - o.began) as f64 / 1e12;
        let left = o.end == plimsoll_sim::TaskEnd::Left && !o.overdue;
        if !o.good && !left {
            let miss = Miss::first(o, &self.part.classes[class].sent.good);
            self.misses.by_class[class][miss as usize] += 1.0;
            broken = Some(miss);
        }
        if let Some(miss) = broken {
            self.misses.pressure.missed(o, miss);
        }
    }

    fn attempt(&mut self, attempt: &Attempt<'_>) {
        if self.unit(attempt.sent).is_some() {
            self.misses.pressure.attempt(attempt);
        }
    }

    fn tool(&mut self, tool: usize, used: &ToolUse) {
        if self.unit(used.at).is_some() {
            self.misses.pressure.tool(tool, used.waited);
        }
    }

    fn stretch(&mut self, pool: usize, _replica: usize, stretch: &Stretch) {
        if self.unit(stretch.from).is_some() {
            self.misses.pressure.stretch(&self.part.fleet, pool, stretch);
        }
    }

    fn hears_gaps(&self) -> bool {
        !self.part.spreads.is_empty()
    }

    fn gap(&mut self, pool: usize, class: u16, gap: u64, pace: Pace, count: u64) {
        if !self.hears_gaps() {
            return;
        }
        let at = match self.span {
            Span::Units(_) => self.last,
            Span::Whole => self.last.min(self.shared.until.get().saturating_sub(1)),
        };
        let Some(unit) = self.unit(at) else { return };
        let mine = |(promise, _): &(&Promise, &mut Vec<Count>)| promise.class == usize::from(class);
        for (promise, counts) in self.part.promises.iter().zip(&mut self.counts).filter(mine) {
            if let Measure::Gap(bound) = promise.of {
                let above = above(&self.part.spreads[pool], pace, gap, bound) * count as f64;
                counts[unit].add(Count { came: count as f64, missed: above });
            }
        }
    }
}

/// The share of gaps of this length above a bound, once they are spread out as measured ones were.
fn above(spread: &Spread, pace: Pace, gap: u64, bound: u64) -> f64 {
    spread.share_above(pace, gap as f64 / 1e12, bound as f64 / 1e12)
}

/// Counts calls, and decides when tasks stop coming.
struct Source<I: Iterator<Item = Task>> {
    tasks: Peekable<I>,
    shared: Rc<Shared>,
    calls: Rc<Cell<u64>>,
    /// How long tasks go on coming after a cluster, for those that still count.
    tail: Option<u64>,
}

/// When a cluster is over.
pub(crate) struct Cluster {
    /// Not before this.
    pub(crate) earliest: u64,
    /// Bursts, from when until when.
    pub(crate) bursts: Vec<(u64, u64)>,
    /// Tasks under way in calm times, and as many more as chance may add.
    pub(crate) level: u64,
    /// How long tasks go on coming for those that still count.
    pub(crate) tail: u64,
}

impl<I: Iterator<Item = Task>> Iterator for Source<I> {
    type Item = Task;

    fn next(&mut self) -> Option<Task> {
        let at = self.tasks.peek()?.at;
        if let Some(tail) = self.tail {
            let until = self.shared.until.get();
            let over = self.shared.counted.get() == 0 || at > until.saturating_add(tail);
            if until < u64::MAX && over {
                return None;
            }
        }
        let task = self.tasks.next()?;
        let calls = match &task.steps {
            TaskSteps::One(_) => 1,
            TaskSteps::Many(steps) => steps
                .iter()
                .map(|step| match step {
                    TaskStep::Calls(calls) => calls.len() as u64,
                    TaskStep::Tool(_) | TaskStep::Wait(_) => 0,
                })
                .sum(),
        };
        self.calls.set(self.calls.get() + calls);
        Some(task)
    }
}

/// What a run needs to know of itself.
pub(crate) struct Run<'a> {
    pub(crate) part: &'a Part,
    pub(crate) fleet: &'a FleetSpec,
    /// More tasks under way than this are too many.
    pub(crate) most: u64,
    /// When it begins to count, in seconds.
    pub(crate) warm_up_s: f64,
    /// Seconds within which misses may take to come.
    pub(crate) slow_s: f64,
    pub(crate) should_continue: &'a (dyn Fn() -> bool + Sync),
}

/// Units and looks of a run so far, as whoever decides sees them.
pub(crate) struct SoFar<'a> {
    pub(crate) counts: &'a [Vec<Count>],
    pub(crate) under_way: Vec<f64>,
    pub(crate) looks: usize,
    /// Units within which misses may take to come.
    pub(crate) slow_units: f64,
}

impl Run<'_> {
    fn counter<'a>(
        &'a self,
        span: Span,
        shared: Rc<Shared>,
        decided: Option<&'a mut dyn FnMut(&SoFar<'_>) -> bool>,
    ) -> Counter<'a> {
        let units = if matches!(span, Span::Whole) { 1 } else { UNITS };
        let classes = self.part.classes.len();
        Counter {
            part: self.part,
            shared,
            span,
            from: ps(self.warm_up_s),
            slow_s: self.slow_s,
            counts: vec![vec![Count::default(); units]; self.part.promises.len()],
            under_way: vec![0.0; units],
            misses: Misses::none(self.part),
            misses_at: Vec::new(),
            took: vec![Took::default(); classes],
            most: self.most,
            overrun: false,
            last: 0,
            looks: 0,
            decided,
            done: false,
            open: vec![0; classes],
            cluster: None,
        }
    }

    /// A steady demand for so many seconds, or until `decided` says after a look that it is enough.
    pub(crate) fn steady(
        &self,
        tasks: impl Iterator<Item = Task>,
        seconds: f64,
        decided: &mut dyn FnMut(&SoFar<'_>) -> bool,
    ) -> Steady {
        let unit = (ps(seconds) / UNITS as u64).max(1);
        let from = ps(self.warm_up_s);
        let until = from + unit * UNITS as u64;
        let shared = Rc::new(Shared { until: Cell::new(until), ..Shared::default() });
        let calls = Rc::new(Cell::new(0));
        let mut counter = self.counter(Span::Units(unit), shared.clone(), Some(decided));
        let mut source =
            Source { tasks: tasks.peekable(), shared, calls: calls.clone(), tail: None };
        let budget = Budget { moves: u64::MAX, until };
        let ended = run_fleet(
            self.fleet,
            &mut source,
            self.part.seed,
            budget,
            (from, until),
            &mut counter,
            &mut |_| (self.should_continue)(),
        );
        let over = counter.overrun || counter.done;
        let stopped = ended.stopped && !over;
        if !stopped && !over {
            counter.pass(until);
            counter.look();
        }
        Steady {
            unit_s: unit as f64 / 1e12,
            slow_units: self.slow_s * 1e12 / unit as f64,
            looks: counter.looks,
            overrun: counter.overrun,
            stopped,
            under_way: counter.under_way(),
            took: counter.took,
            misses: counter.misses_at,
            counts: counter.counts,
            calls: calls.get(),
        }
    }

    /// A cluster that begins when the warm-up is over.
    pub(crate) fn episode(
        &self,
        tasks: impl Iterator<Item = Task>,
        cluster: Cluster,
        horizon_s: f64,
    ) -> Episode {
        let from = ps(self.warm_up_s);
        let shared = Rc::new(Shared { until: Cell::new(u64::MAX), ..Shared::default() });
        let calls = Rc::new(Cell::new(0));
        let mut counter = self.counter(Span::Whole, shared.clone(), None);
        let tail = cluster.tail;
        counter.cluster = Some(cluster);
        let mut source = Source {
            tasks: tasks.peekable(),
            shared: shared.clone(),
            calls: calls.clone(),
            tail: Some(tail),
        };
        let horizon = ps(horizon_s);
        let budget = Budget { moves: u64::MAX, until: horizon.saturating_add(tail) };
        let ended = run_fleet(
            self.fleet,
            &mut source,
            self.part.seed,
            budget,
            (from, horizon),
            &mut counter,
            &mut |_| (self.should_continue)(),
        );
        let lost = counter.overrun || shared.until.get() == u64::MAX;
        let until = if shared.until.get() == u64::MAX { ended.now } else { shared.until.get() };
        let mut counts: Vec<Count> = counter.counts.iter().map(|own| own[0]).collect();
        // Whoever still waits after all that time is not served as promised.
        for (promise, count) in self.part.promises.iter().zip(&mut counts) {
            if promise.of == Measure::Good {
                let open = counter.open[promise.class] as f64;
                count.add(Count { came: open, missed: open });
            }
        }
        let seconds = until.saturating_sub(from) as f64 / 1e12;
        counter.misses.pressure.seconds = seconds;
        Episode {
            stopped: ended.stopped && !counter.overrun,
            lost,
            counts,
            misses: counter.misses,
            seconds,
            weight: 1.0,
            dumps: 0,
            calls: calls.get(),
        }
    }
}
