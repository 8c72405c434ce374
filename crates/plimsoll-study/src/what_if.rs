//! What becomes of the answer when levers move: at once and about, or a moment later and simulated.
//!
//! At once, each pool is looked at by itself in short runs, close to where its line is expected, on the seeds that the unmoved scenario was looked at with: what a short look
//! overlooks cancels out against the simulated line of that. `docs/model.md`, "What-ifs", has the error that this leaves.

use plimsoll_sim::Target;
use plimsoll_stats::in_order;
use plimsoll_workload::Shift;
use serde::Serialize;

use crate::headroom::RowVerdict;
use crate::plan::size::{AMPLE, Question, comes_to};
use crate::plan::sizes::{Asked, Warm};
use crate::plan::{MONTH, PlanInput, PoolFacts, TokenPrices, nodes};
use crate::sweep::{Alone, ClassTarget, CurveInput, Sweep, binds, judge};
use plimsoll_load::SimulateInput;
use plimsoll_load::SimulatedClass;
use plimsoll_load::{Demand, Level, Resource, StudyError};

/// What may be moved; 1, or 0 for what is lost, is as the scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WhatIfLevers {
    /// Times the rate of every class.
    pub demand: f64,
    /// Times the length of prompts.
    pub prompt: f64,
    /// Times the length of outputs.
    pub output: f64,
    /// The share of what would be found in caches that still is.
    pub cache_hit: f64,
    /// Times the replicas of today of every pool, rounded up.
    pub replicas: f64,
    /// Times the time that replicas take to start.
    pub startup: f64,
    /// Replicas of every pool that are lost at the peak.
    pub lost: u32,
}

impl WhatIfLevers {
    /// Nothing moves.
    pub const NONE: Self = Self {
        demand: 1.0,
        prompt: 1.0,
        output: 1.0,
        cache_hit: 1.0,
        replicas: 1.0,
        startup: 1.0,
        lost: 0,
    };

    fn shift(&self) -> Shift {
        Shift {
            rate: self.demand,
            prompt: self.prompt,
            output: self.output,
            cache_hit: self.cache_hit,
        }
    }

    /// Whether requests take as long as before where nobody waits.
    fn as_long(&self) -> bool {
        let lengths = Shift { rate: 1.0, ..self.shift() };
        lengths == Shift::NONE
    }
}

/// How an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhatIfBasis {
    /// Pools by themselves in short runs.
    Approximate,
    /// The whole fleet, load by load.
    Simulated,
}

/// What becomes of the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    /// How it was found.
    pub basis: WhatIfBasis,
    /// What was moved.
    pub levers: WhatIfLevers,
    /// The hour that it is of.
    pub at: String,
    /// In a sentence.
    pub says: String,
    /// The launch table of the fleet as it was moved.
    pub rows: Vec<WhatIfRow>,
    /// Where it gives way.
    pub line: WhatIfLine,
    /// Each pool.
    pub pools: Vec<WhatIfPool>,
    /// What it costs.
    pub cost: WhatIfCost,
    /// The service curve.
    pub curve: Vec<WhatIfPoint>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIfRow {
    /// `requests`, `fresh_prompt_tokens`, `output_tokens` or `mix`.
    pub name: &'static str,
    /// Of what the numbers are.
    pub unit: &'static str,
    /// The 95th percentile over windows of the busiest hour.
    pub demand: Option<f64>,
    /// To what it may be loaded; none where none was found.
    pub load_line: Option<f64>,
    /// (Load line - demand) / load line, in percent.
    pub headroom_pct: Option<f64>,
    /// What that means; none where it is not known.
    pub verdict: Option<RowVerdict>,
}

/// Where a fleet gives way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WhatIfLine {
    /// Times the moved demand that keeps every promise; none where none that was tried does, or all do.
    pub load: Option<f64>,
    /// Whether no load that was tried is too much.
    pub beyond: bool,
    /// The same in requests a second: as the demand of the table.
    pub requests_per_s: Option<f64>,
    /// What binds.
    pub binds: Option<String>,
    /// Where.
    pub of: Option<String>,
    /// The promise that is broken first.
    pub first_signal: Option<String>,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIfPool {
    /// Its name.
    pub name: String,
    /// Replicas as they were moved, what is lost not among them.
    pub replicas: u32,
    /// About as many as carry the moved demand, those that may be lost and those that stand ready for its growth included.
    pub needed: Option<u32>,
    /// Of these, ready for what the demand grows by while another starts.
    pub needed_warm: u32,
    /// How long a start takes, nine times in ten.
    pub startup_p90_s: f64,
    /// What its nodes cost, what is lost included.
    pub usd_per_hour: Option<f64>,
}

/// What it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WhatIfCost {
    /// Nodes and hosted tokens at the peak; none where a price is not known.
    pub usd_per_hour: Option<f64>,
    /// Nodes kept for a month of 730 hours, hosted tokens apart.
    pub nodes_usd_per_month: Option<f64>,
    /// For a good task at the peak.
    pub usd_per_good_task: Option<f64>,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WhatIfPoint {
    /// Times the moved demand.
    pub load: f64,
    /// Tasks that came a second.
    pub offered_per_s: f64,
    /// Good ones of these.
    pub goodput_per_s: f64,
}

/// What all what-ifs of a scenario have in common.
#[derive(Clone, Debug)]
pub struct WhatIfBase {
    fleet: SimulateInput,
    targets: Vec<ClassTarget>,
    hour: usize,
    events: bool,
    at: String,
    pools: Vec<PoolFacts>,
    token_prices: Vec<Option<TokenPrices>>,
    demand: Demand,
    threads: usize,
    /// What each pool carries by itself with nothing moved, and how long its calls take alone.
    own: Vec<Looked>,
    /// What the simulated line of each is of that; none before it was.
    of_simulated: Option<Vec<f64>>,
    notes: Vec<String>,
}

/// A pool by itself.
#[derive(Clone, Debug, Default)]
struct Looked {
    /// The most that keeps every promise, and the next that does not.
    holds: Option<f64>,
    fails: Option<f64>,
    binds: Option<String>,
    signal: Option<String>,
    alone: Option<Alone>,
    /// Loads, and the tasks that came and were good a second.
    seen: Vec<(f64, f64, f64)>,
    /// Whether anybody comes to it.
    met: bool,
    /// Replicas that it had.
    replicas: f64,
}

impl Looked {
    /// Loads as multiples of another demand.
    fn scale(&mut self, times: f64) {
        let ends = [&mut self.holds, &mut self.fails];
        ends.into_iter().flatten().for_each(|load| *load *= times);
        self.seen.iter_mut().for_each(|own| own.0 *= times);
    }

    /// Between the two.
    fn line(&self) -> Option<f64> {
        match (self.holds, self.fails) {
            (Some(holds), Some(fails)) => Some((holds * fails).sqrt()),
            _ => None,
        }
    }
}

/// How closely a pool is looked at.
struct Effort {
    runs: u32,
    /// Calls of each load, over all runs.
    calls: f64,
    /// How often a load is looked at again, four times as long, where it is not clear whether promises are kept.
    longer: u32,
    /// A line is known to this share of its load.
    edge: f64,
    /// Loads that show the shape, in multiples of the line.
    shown: &'static [f64],
}

const AT_ONCE: Effort = Effort { runs: 1, calls: 3_000.0, longer: 0, edge: 0.05, shown: &[1.6] };
const SIMULATED: Effort =
    Effort { runs: 4, calls: 10_000.0, longer: 1, edge: 0.03, shown: &[0.5, 0.75, 1.25, 1.7] };
/// Calls of tasks that make many cost more to look at, and their tasks take longer than any look at once.
const CALLS_OF_MANY: f64 = 0.6;
/// Loads are tried in steps of so many times, then of its square, and so on, until one is too much and one is not.
const STEP: f64 = 1.12;
const STEPS: u32 = 8;
/// An output token is about as much work as so many prompt tokens: to know where to begin.
const OUTPUT_WORK: f64 = 8.0;

impl WhatIfBase {
    /// Looks at what nothing has moved in.
    pub fn new(
        input: &PlanInput<'_>,
        notes: Vec<String>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, StudyError> {
        let asked = Asked::new(input);
        let mut fleet = asked.fleet.clone();
        for (pool, facts) in fleet.pools.iter_mut().zip(&input.pools) {
            pool.life.replicas = facts.now;
        }
        let mut base = Self {
            fleet,
            targets: asked.targets.clone(),
            hour: asked.hour,
            events: asked.events,
            at: (input.label)(asked.hour),
            pools: input.pools.clone(),
            token_prices: input.token_prices.clone(),
            demand: input.demand.clone(),
            threads: input.fleet.threads,
            own: Vec::new(),
            of_simulated: None,
            notes,
        };
        base.own = base.look(&base.fleet, &WhatIfLevers::NONE, &AT_ONCE, go_on)?;
        Ok(base)
    }

    /// Simulates what nothing has moved in, so that what is said at once is held against it from now on.
    pub fn anchor(&mut self, go_on: &(dyn Fn() -> bool + Sync)) -> Result<WhatIf, StudyError> {
        let looked = self.look(&self.fleet, &WhatIfLevers::NONE, &SIMULATED, go_on)?;
        let simulated = self.concluded(WhatIfBasis::Simulated, &WhatIfLevers::NONE, &looked);
        let of = |(own, found): (&Looked, &Looked)| match (own.line(), found.line()) {
            (Some(own), Some(found)) => found / own,
            _ => 1.0,
        };
        self.of_simulated = go_on().then(|| self.own.iter().zip(&looked).map(of).collect());
        Ok(simulated)
    }

    /// Whether what is said at once is held against a simulation.
    pub fn is_anchored(&self) -> bool {
        self.of_simulated.is_some()
    }

    /// The fleet as levers have it.
    fn moved(&self, levers: &WhatIfLevers) -> SimulateInput {
        let mut fleet = self.fleet.clone();
        for class in &mut fleet.classes {
            let shift = levers.shift();
            class.class.hours.iter_mut().for_each(|hour| hour.drift = hour.drift.and(shift));
            // What caches would find is what is stated, and less of it.
            class.finds_prefixes &= levers.cache_hit >= 1.0;
        }
        for (pool, n) in fleet.pools.iter_mut().zip(self.replicas(levers)) {
            pool.life.replicas = n.saturating_sub(levers.lost);
        }
        fleet
    }

    /// Replicas that are paid for.
    fn replicas(&self, levers: &WhatIfLevers) -> Vec<u32> {
        let times = |facts: &PoolFacts| (f64::from(facts.now) * levers.replicas - 1e-9).ceil();
        self.pools.iter().map(|facts| times(facts).max(0.0) as u32).collect()
    }

    /// Each pool by itself, side by side.
    fn look(
        &self,
        fleet: &SimulateInput,
        levers: &WhatIfLevers,
        effort: &Effort,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Looked>, StudyError> {
        let question =
            Question { fleet, targets: &self.targets, hour: self.hour, events: self.events, go_on };
        // Without pools, all of it is one.
        let count = u32::try_from(fleet.pools.len().max(1)).unwrap_or(u32::MAX);
        let all = in_order(self.threads, count, |i| {
            let before = self.own.get(i as usize);
            look_at(&question, &self.fleet, i as usize, levers, effort, before)
        });
        all.into_iter().collect()
    }

    /// What becomes of the answer, at once.
    pub fn approximate(
        &self,
        levers: &WhatIfLevers,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<WhatIf, StudyError> {
        let mut looked = self.looked(levers, &AT_ONCE, go_on)?;
        if let Some(of_simulated) = &self.of_simulated {
            for (own, times) in looked.iter_mut().zip(of_simulated) {
                own.scale(*times);
            }
        }
        let mut result = self.concluded(WhatIfBasis::Approximate, levers, &looked);
        if self.of_simulated.is_none() {
            let note = "not held against a simulation yet, and further off until it is";
            result.notes.push(note.to_owned());
        }
        Ok(result)
    }

    /// What becomes of the answer, simulated.
    pub fn simulated(
        &self,
        levers: &WhatIfLevers,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<WhatIf, StudyError> {
        let looked = self.looked(levers, &SIMULATED, go_on)?;
        Ok(self.concluded(WhatIfBasis::Simulated, levers, &looked))
    }

    /// Each pool with levers moved. So many times as many is a load like another: the line is where it was, of more.
    fn looked(
        &self,
        levers: &WhatIfLevers,
        effort: &Effort,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Looked>, StudyError> {
        let unscaled = WhatIfLevers { demand: 1.0, ..*levers };
        let mut looked = self.look(&self.moved(&unscaled), &unscaled, effort, go_on)?;
        looked.iter_mut().for_each(|own| own.scale(1.0 / levers.demand));
        Ok(looked)
    }

    /// A fleet carries what the first of its pools to give way carries.
    fn concluded(&self, basis: WhatIfBasis, levers: &WhatIfLevers, looked: &[Looked]) -> WhatIf {
        let fleet = self.moved(levers);
        let weakest = weakest(looked);
        let mut line = WhatIfLine {
            load: weakest.and_then(|(_, own)| own.line()),
            beyond: weakest.is_some_and(|(_, own)| own.fails.is_none() && own.holds.is_some()),
            ..WhatIfLine::default()
        };
        if let Some((i, own)) = weakest {
            line.binds.clone_from(&own.binds);
            line.first_signal.clone_from(&own.signal);
            line.of = fleet.pools.get(i).map(|pool| pool.name.clone());
        }
        let by_pool: Vec<Option<f64>> = looked.iter().map(Looked::line).collect();
        let (curve, notes) = (together(looked), self.notes.clone());
        self.said(basis, levers, &fleet, (line, &by_pool), curve, notes)
    }

    fn said(
        &self,
        basis: WhatIfBasis,
        levers: &WhatIfLevers,
        fleet: &SimulateInput,
        (mut line, by_pool): (WhatIfLine, &[Option<f64>]),
        curve: Vec<WhatIfPoint>,
        notes: Vec<String>,
    ) -> WhatIf {
        let rows = self.rows(fleet, &line);
        line.requests_per_s = rows.first().and_then(|row| row.load_line);
        let pools = self.pools_of(levers, fleet, by_pool);
        let cost = self.cost(fleet, &pools, &curve);
        let says = says(&self.at, &line, &rows);
        WhatIf {
            basis,
            levers: *levers,
            at: self.at.clone(),
            says,
            rows,
            line,
            pools,
            cost,
            curve,
            notes,
        }
    }

    /// The table: what is asked of each resource, and what the mix may be loaded to in each of them.
    fn rows(&self, fleet: &SimulateInput, line: &WhatIfLine) -> Vec<WhatIfRow> {
        let kinds = [
            ("requests", "requests/s", Resource::Requests),
            ("fresh_prompt_tokens", "tokens/s", Resource::FreshPromptTokens),
            ("output_tokens", "tokens/s", Resource::OutputTokens),
        ];
        let before = expected(&self.fleet, self.hour, self.events);
        let after = expected(fleet, self.hour, self.events);
        let rows = kinds.into_iter().enumerate().map(|(i, (name, unit, resource))| {
            let own = self.demand.rows.iter().find(|r| r.class.is_none() && r.resource == resource);
            let level = own.map(|row| row.launch.unwrap_or(row.baseline));
            let p95 = |level: Level| {
                if level.p95_per_s > 0.0 { level.p95_per_s } else { level.mean_per_s }
            };
            let moved = (before[i] > 0.0).then(|| after[i] / before[i]);
            let demand = level.map(p95).zip(moved).map(|(level, moved)| level * moved);
            let load_line =
                line.load.filter(|_| !line.beyond).zip(demand).map(|(load, d)| load * d);
            let room = load_line.zip(demand).map(|(line, demand)| (line - demand) / line);
            // Without a line, whatever is asked for is too much.
            let verdict = match (line.beyond, room) {
                (true, _) => RowVerdict::Ok,
                (false, room) => room.map_or(RowVerdict::Shortfall, RowVerdict::of),
            };
            WhatIfRow {
                name,
                unit,
                demand,
                load_line,
                headroom_pct: room.map(|r| r * 100.0),
                verdict: Some(verdict),
            }
        });
        rows.collect()
    }

    fn pools_of(
        &self,
        levers: &WhatIfLevers,
        fleet: &SimulateInput,
        by_pool: &[Option<f64>],
    ) -> Vec<WhatIfPool> {
        let paid = self.replicas(levers);
        let each = fleet.pools.iter().zip(&self.pools).enumerate().map(|(i, (pool, facts))| {
            let carry =
                by_pool.get(i).copied().flatten().filter(|line| *line > 0.0).map(|line| {
                    (f64::from(pool.life.replicas) / line - 1e-9).ceil().max(1.0) as u32
                });
            let warm = carry.map_or(0, |n| {
                let at = (self.hour, self.events);
                Warm::of(fleet, i, at, n).replicas(facts.startup_p90_s * levers.startup)
            });
            WhatIfPool {
                name: pool.name.clone(),
                replicas: pool.life.replicas,
                needed: carry.map(|n| n + warm + levers.lost),
                needed_warm: warm,
                startup_p90_s: facts.startup_p90_s * levers.startup,
                usd_per_hour: facts.node_usd_per_hour.map(|usd| usd * nodes(paid[i], facts) as f64),
            }
        });
        each.collect()
    }

    fn cost(
        &self,
        fleet: &SimulateInput,
        pools: &[WhatIfPool],
        curve: &[WhatIfPoint],
    ) -> WhatIfCost {
        let nodes: Option<f64> = pools.iter().map(|pool| pool.usd_per_hour).sum();
        let hosted = self.hosted_usd_per_s(fleet).map(|usd| usd * 3600.0);
        let usd = nodes.zip(hosted).map(|(nodes, hosted)| nodes + hosted);
        let good = at_load(curve, 1.0).filter(|good| *good > 0.0);
        WhatIfCost {
            usd_per_hour: usd,
            nodes_usd_per_month: nodes.map(|usd| usd * MONTH),
            usd_per_good_task: usd.zip(good).map(|(usd, good)| usd / 3600.0 / good),
        }
    }

    /// What the tokens cost that are sent to providers in the first place.
    fn hosted_usd_per_s(&self, fleet: &SimulateInput) -> Option<f64> {
        let mut sum = 0.0;
        for class in &fleet.classes {
            let Some(hour) = class.class.hours.get(self.hour) else { continue };
            let shift = hour.changed(self.events);
            let rate = hour.rate * shift.rate;
            let (fresh, output) = class.class.task.expected(&shift);
            let prompt = class.class.task.expected(&Shift { cache_hit: 0.0, ..shift }).0;
            for route in &class.sent.routes {
                let Target::Provider(i) = route.to else { continue };
                let prices = self.token_prices.get(i).copied().flatten()?;
                let task = fresh * prices.input
                    + (prompt - fresh) * prices.cached
                    + output * prices.output;
                sum += rate * route.share * task;
            }
        }
        Some(sum)
    }
}

/// The pool that gives way first, of those that anybody comes to.
fn weakest(all: &[Looked]) -> Option<(usize, &Looked)> {
    let met = all.iter().enumerate().filter(|(_, own)| own.met);
    met.min_by(|a, b| {
        let at = |own: &Looked| own.line().or(own.holds).unwrap_or(0.0);
        at(a.1).total_cmp(&at(b.1))
    })
}

/// Calls, fresh and output tokens a second of an hour.
fn expected(fleet: &SimulateInput, hour: usize, events: bool) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for class in &fleet.classes {
        let Some(own) = class.class.hours.get(hour) else { continue };
        let shift = own.changed(events);
        let rate = own.rate * shift.rate;
        let (fresh, output) = class.class.task.expected(&shift);
        for (sum, each) in sums.iter_mut().zip([class.class.task.mean_requests(), fresh, output]) {
            *sum += rate * each;
        }
    }
    sums
}

/// A pool by itself, in short runs around where its line is expected.
fn look_at(
    question: &Question<'_>,
    unmoved: &SimulateInput,
    pool: usize,
    levers: &WhatIfLevers,
    effort: &Effort,
    before: Option<&Looked>,
) -> Result<Looked, StudyError> {
    let whole = question.fleet.pools.is_empty();
    let mut input = match whole {
        true => CurveInput {
            fleet: question.fleet.clone(),
            targets: question.targets.to_vec(),
            hour: question.hour,
            events: question.events,
            points: 0,
            calls: effort.calls,
            longer: 0,
            by_resource: false,
        },
        false => question.of_pool(pool, &vec![None; question.fleet.pools.len()]),
    };
    input.fleet.threads = 1;
    let mut sweep = Sweep::new(&input, question.go_on);
    let mut looked = Looked::default();
    if sweep.rate <= 0.0 {
        return Ok(looked);
    }
    looked.met = true;
    let n = question.fleet.pools.get(pool).map(|pool| pool.life.replicas);
    looked.replicas = n.map_or(1.0, f64::from);
    if n == Some(0) {
        (looked.fails, looked.signal) = (Some(0.0), Some("errors".to_owned()));
        return Ok(looked);
    }
    sweep.base.runs = effort.runs;
    let alone = before.and_then(|own| own.alone.as_ref()).filter(|_| levers.as_long());
    match alone {
        Some(alone) => sweep.settle_as(alone),
        None => {
            let mut replicas: Vec<u32> = sweep.base.pools.iter().map(|p| p.life.replicas).collect();
            let own = replicas.clone();
            if let Some(n) = replicas.get_mut(pool) {
                *n = AMPLE;
            }
            sweep.set_replicas(&replicas);
            let unkept = sweep.settle()?;
            sweep.set_replicas(&own);
            if let Some((signal, _)) = unkept {
                (looked.fails, looked.signal) = (Some(0.0), Some(signal));
                return Ok(looked);
            }
        }
    }
    looked.alone = Some(sweep.alone());
    let calls = |c: &SimulatedClass| c.class.task.mean_requests();
    let several = input.fleet.classes.iter().any(|class| calls(class) > 2.0);
    let many = if several { CALLS_OF_MANY } else { 1.0 };
    let mut broke: Option<(f64, Option<String>, Option<String>)> = None;
    let mut seen: Vec<(f64, f64, f64)> = Vec::new();
    let mut meets = |load: f64| {
        let (mut calls, mut again) = (effort.calls * many, effort.longer);
        let (result, judged) = loop {
            sweep.begin_busy();
            let result = sweep.run(Shift { rate: load, ..Shift::NONE }, calls)?;
            let judged = judge(&result, &input);
            if judged.sure || again == 0 || !(question.go_on)() {
                break (result, judged);
            }
            (calls, again) = (calls * 4.0, again - 1);
        };
        let meets = judged.meets;
        let seconds = result.seconds * f64::from(result.runs);
        let (came, good) = result
            .classes
            .iter()
            .fold((0, 0), |(came, good), class| (came + class.offered, good + class.good));
        seen.push((load, came as f64 / seconds, good as f64 / seconds));
        if !meets && broke.as_ref().is_none_or(|(at, ..)| load < *at) {
            let (what, _) = binds(&result, judged.fails_by.as_deref());
            broke = Some((load, what, judged.fails_by));
        }
        Ok(meets)
    };
    let from = guess(question, unmoved, pool, before);
    (looked.holds, looked.fails) = edge(&mut meets, from, effort.edge, question.go_on)?;
    if let (Some(around), true) = (looked.line().or(looked.holds), before.is_some()) {
        for share in effort.shown {
            meets(around * share)?;
        }
    }
    if let Some((_, what, signal)) = broke {
        (looked.binds, looked.signal) = (what, signal);
    }
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    looked.seen = seen;
    Ok(looked)
}

/// The largest load that keeps all promises, and the next that does not: looked for from a guess, in steps that grow.
fn edge(
    meets: &mut impl FnMut(f64) -> Result<bool, StudyError>,
    mut load: f64,
    edge: f64,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Option<f64>, Option<f64>), StudyError> {
    let (mut low, mut high, mut step) = (None, None, STEP);
    for _ in 0..STEPS {
        match meets(load)? {
            true => (low, load) = (Some(load), load * step),
            false => (high, load) = (Some(load), load / step),
        }
        if low.is_some() && high.is_some() || !go_on() {
            break;
        }
        step = (step * step).min(4.0);
    }
    while let (Some(below), Some(above)) = (low, high)
        && above / below > 1.0 + edge
        && go_on()
    {
        let middle = f64::sqrt(below * above);
        if meets(middle)? { low = Some(middle) } else { high = Some(middle) }
    }
    Ok((low, high))
}

/// Where a line is expected: where it was before, for as many replicas and as much work.
fn guess(
    question: &Question<'_>,
    unmoved: &SimulateInput,
    pool: usize,
    before: Option<&Looked>,
) -> f64 {
    let Some((own, line)) = before.and_then(|own| Some((own, own.line().or(own.holds)?))) else {
        return 1.0;
    };
    let work = |fleet: &SimulateInput| -> f64 {
        let own = fleet.classes.iter().filter(|class| {
            fleet.pools.is_empty() || comes_to(class, question.fleet).contains(&pool)
        });
        own.map(|class| {
            let Some(hour) = class.class.hours.get(question.hour) else { return 0.0 };
            let shift = hour.changed(question.events);
            let (fresh, output) = class.class.task.expected(&shift);
            hour.rate * shift.rate * (fresh + OUTPUT_WORK * output)
        })
        .sum()
    };
    let (now, then) = (work(question.fleet), work(unmoved));
    let ratio = if now > 0.0 && then > 0.0 { then / now } else { 1.0 };
    let replicas = question.fleet.pools.get(pool).map_or(1.0, |p| f64::from(p.life.replicas));
    (line * ratio * replicas.max(1.0) / own.replicas.max(1.0)).clamp(0.02, 50.0)
}

/// The curve of all pools: what each gives at loads of its own, read where the weakest was looked at.
fn together(all: &[Looked]) -> Vec<WhatIfPoint> {
    let Some((_, weakest)) = weakest(all) else { return Vec::new() };
    let points = weakest.seen.iter().map(|(load, ..)| {
        let (mut offered, mut good) = (0.0, 0.0);
        for own in all.iter().filter(|own| own.met) {
            let (came, kept) = read(&own.seen, *load);
            offered += came;
            good += kept;
        }
        WhatIfPoint { load: *load, offered_per_s: offered, goodput_per_s: good }
    });
    points.collect()
}

/// What came and was good at a load: on a straight line between what was seen, in proportion before and after.
fn read(seen: &[(f64, f64, f64)], load: f64) -> (f64, f64) {
    let after = seen.iter().position(|own| own.0 >= load);
    match after {
        Some(0) => {
            seen.first().map_or((0.0, 0.0), |own| (own.1 * load / own.0, own.2 * load / own.0))
        }
        Some(i) => {
            let (a, b) = (seen[i - 1], seen[i]);
            let share = (load - a.0) / (b.0 - a.0).max(f64::MIN_POSITIVE);
            (a.1 + (b.1 - a.1) * share, a.2 + (b.2 - a.2) * share)
        }
        // Beyond what was seen as much is good as there.
        None => seen.last().map_or((0.0, 0.0), |own| (own.1 * load / own.0, own.2)),
    }
}

fn at_load(curve: &[WhatIfPoint], load: f64) -> Option<f64> {
    if curve.is_empty() {
        return None;
    }
    let seen: Vec<(f64, f64, f64)> =
        curve.iter().map(|p| (p.load, p.offered_per_s, p.goodput_per_s)).collect();
    Some(read(&seen, load).1)
}

fn says(at: &str, line: &WhatIfLine, rows: &[WhatIfRow]) -> String {
    let requests = rows.first();
    let asked = requests.and_then(|row| row.demand);
    match (line.load, line.beyond) {
        (_, true) => format!("Carries {at}; no load that was tried is too much."),
        (None, false) => {
            let by = line
                .first_signal
                .as_ref()
                .map_or(String::new(), |by| format!(": {by} is not kept even where nobody waits"));
            format!("Carries nothing of {at} with every promise kept{by}.")
        }
        (Some(load), false) => {
            let where_ = match (&line.binds, &line.of) {
                (Some(what), Some(of)) => format!("; {} of {of} binds", what.replace('_', " ")),
                _ => String::new(),
            };
            let per_s = asked.map_or(String::new(), |asked| {
                format!(" ({:.1} of {asked:.1} requests/s)", asked * load)
            });
            match load >= 1.0 {
                true => format!("Carries {at} {load:.2} times{per_s}{where_}."),
                false => format!("Carries {:.0}% of {at}{per_s}{where_}.", load * 100.0),
            }
        }
    }
}
