//! What becomes of the answer when levers move: at once and about, or a moment later and simulated.
//!
//! The simulated answer is the load line of the fleet as it was moved. At once, the same is asked with few calls, of the fleet as it was moved and of the one that was not: what a
//! short look overlooks cancels out against the load line of that. `docs/model.md`, "What-ifs", has the error that this leaves.

use plimsoll_load::{
    ClassTarget, Demand, Effort, Level, Load, LoadLine, LoadOutcome, LoadQuestion, Memo, Resource,
    SimulateInput, StudyError,
};
use plimsoll_sim::Target;
use plimsoll_workload::Shift;
use serde::Serialize;

use crate::headroom::RowVerdict;
use crate::plan::sizes::Warm;
use crate::plan::{MONTH, PlanInput, PoolFacts, TokenPrices, nodes};

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
}

/// How an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhatIfBasis {
    /// Short runs, held against the load line of what nothing has moved in.
    Approximate,
    /// The load line.
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
    /// What each component carries with nothing moved, in short runs.
    short: Vec<LoadLine>,
    /// Its load line; none before it was asked for.
    simulated: Option<Vec<LoadLine>>,
    notes: Vec<String>,
}

/// What an answer at once may cost.
const AT_ONCE: Effort = Effort {
    calls_per_load: 6_000,
    calls_elsewhere: 6_000,
    calls: 36_000,
    apart: 1,
    ..Effort::BRIEF
};

/// What one component carries.
#[derive(Clone, Debug)]
struct Carries {
    line: LoadLine,
    /// What its line is multiplied by: what a short look overlooks, and levers that move like a load.
    times: f64,
}

impl Carries {
    /// The largest load that keeps every promise; none where none does, or all do.
    fn holds(&self) -> Option<f64> {
        self.line.holds.filter(|_| !self.line.beyond).map(|load| load * self.times)
    }

    fn weight(&self) -> f64 {
        if self.line.beyond { f64::INFINITY } else { self.holds().unwrap_or(0.0) }
    }
}

impl WhatIfBase {
    /// Looks at what nothing has moved in.
    pub fn new(
        input: &PlanInput<'_>,
        notes: Vec<String>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, StudyError> {
        let (hour, events) = input.busiest();
        let mut base = Self {
            fleet: input.today(),
            targets: input.targets.clone(),
            hour,
            events,
            at: (input.label)(hour),
            pools: input.pools.clone(),
            token_prices: input.token_prices.clone(),
            demand: input.demand.clone(),
            short: Vec::new(),
            simulated: None,
            notes,
        };
        base.short = base.lines(&base.fleet, AT_ONCE, go_on)?;
        Ok(base)
    }

    /// Asks for the load line of what nothing has moved in, so that what is said at once is held against it from now on.
    pub fn anchor(&mut self, go_on: &(dyn Fn() -> bool + Sync)) -> Result<WhatIf, StudyError> {
        let lines = self.lines(&self.fleet, Effort::USUAL, go_on)?;
        self.simulated = go_on().then(|| lines.clone());
        let carries = lines.into_iter().map(|line| Carries { line, times: 1.0 }).collect();
        Ok(self.concluded(WhatIfBasis::Simulated, &WhatIfLevers::NONE, carries))
    }

    /// Whether what is said at once is held against a load line.
    pub fn is_anchored(&self) -> bool {
        self.simulated.is_some()
    }

    /// The load line of each component of a fleet.
    fn lines(
        &self,
        fleet: &SimulateInput,
        effort: Effort,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<LoadLine>, StudyError> {
        let (hour, events) = (self.hour, self.events);
        let question = LoadQuestion { fleet, targets: &self.targets, hour, events, lost: &[] };
        Load::of(&question, &Memo::default(), go_on).with(effort).lines()
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

    /// What becomes of the answer, at once.
    pub fn approximate(
        &self,
        levers: &WhatIfLevers,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<WhatIf, StudyError> {
        let mut carries = self.moved_lines(levers, AT_ONCE, &self.short, go_on)?;
        for (own, (short, known)) in
            carries.iter_mut().zip(self.short.iter().zip(self.simulated.iter().flatten()))
        {
            let holds = |line: &LoadLine| line.holds.filter(|_| !line.beyond);
            if let Some((short, known)) = holds(short).zip(holds(known)) {
                own.times *= known / short;
            }
        }
        let mut result = self.concluded(WhatIfBasis::Approximate, levers, carries);
        if self.simulated.is_none() {
            let note = "not held against the load line yet, and further off until it is";
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
        let known = self.simulated.as_deref().unwrap_or_default();
        let carries = self.moved_lines(levers, Effort::USUAL, known, go_on)?;
        Ok(self.concluded(WhatIfBasis::Simulated, levers, carries))
    }

    /// Each component with levers moved. So many times as many is a load like another: the line is where it was, of more.
    fn moved_lines(
        &self,
        levers: &WhatIfLevers,
        effort: Effort,
        unmoved: &[LoadLine],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Carries>, StudyError> {
        let unscaled = WhatIfLevers { demand: 1.0, startup: 1.0, ..*levers };
        let lines = match unscaled == WhatIfLevers::NONE && !unmoved.is_empty() {
            true => unmoved.to_vec(),
            false => self.lines(&self.moved(&unscaled), effort, go_on)?,
        };
        let times = 1.0 / levers.demand;
        Ok(lines.into_iter().map(|line| Carries { line, times }).collect())
    }

    /// A fleet carries what the first of its components to give way carries.
    fn concluded(
        &self,
        basis: WhatIfBasis,
        levers: &WhatIfLevers,
        carries: Vec<Carries>,
    ) -> WhatIf {
        let fleet = self.moved(levers);
        let weakest = carries.iter().min_by(|a, b| a.weight().total_cmp(&b.weight()));
        let line = weakest.map_or_else(
            || WhatIfLine { beyond: true, ..WhatIfLine::default() },
            |own| WhatIfLine {
                load: own.holds(),
                beyond: own.line.beyond,
                requests_per_s: None,
                binds: own.line.cause.map(|cause| cause.word().to_owned()),
                of: own.line.of.clone(),
                first_signal: own.line.signal.clone(),
            },
        );
        // Pools of one component grow in proportion.
        let by_pool: Vec<Option<f64>> = (0..fleet.pools.len())
            .map(|pool| carries.iter().find(|own| own.line.pools.contains(&pool))?.holds())
            .collect();
        let (curve, notes) = (self.curve(&fleet, &carries), self.notes.clone());
        self.said(basis, levers, &fleet, (line, &by_pool), curve, notes)
    }

    /// What comes and is good at the loads that were tried where the fleet gives way first.
    fn curve(&self, fleet: &SimulateInput, carries: &[Carries]) -> Vec<WhatIfPoint> {
        let weakest = carries.iter().min_by(|a, b| a.weight().total_cmp(&b.weight()));
        let Some(weakest) = weakest else { return Vec::new() };
        let per_s = |name: &str| {
            let class = fleet.classes.iter().find(|own| own.class.name == name);
            class.map_or(0.0, |own| own.rate(self.hour, self.events))
        };
        let seen = |own: &Carries| -> Vec<(f64, f64, f64)> {
            let point = |tried: &LoadOutcome| {
                let load = tried.load * own.times;
                let (mut came, mut good) = (0.0, 0.0);
                for class in &tried.classes {
                    let rate = per_s(&class.class) * load;
                    came += rate;
                    good += rate * class.attainment.unwrap_or(0.0);
                }
                (load, came, good)
            };
            own.line.tried.iter().filter(|tried| tried.load > 0.0).map(point).collect()
        };
        let each: Vec<Vec<(f64, f64, f64)>> = carries.iter().map(seen).collect();
        let points = seen(weakest).into_iter().map(|(load, ..)| {
            let (mut offered, mut good) = (0.0, 0.0);
            for own in &each {
                let (came, kept) = read(own, load);
                offered += came;
                good += kept;
            }
            WhatIfPoint { load, offered_per_s: offered, goodput_per_s: good }
        });
        points.collect()
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
    let first = match (&line.binds, &line.of) {
        (Some(cause), Some(of)) => format!(" `{of}` runs out first: {}.", cause.replace('_', " ")),
        _ => String::new(),
    };
    match (line.load, line.beyond) {
        (_, true) => format!("The fleet carries more than ten times {at}."),
        (None, false) => {
            let by = line.first_signal.as_ref().map_or(String::new(), |by| {
                format!(": {by} is broken even where no request waits for another")
            });
            format!("The fleet keeps its promises at no load of {at}{by}.")
        }
        (Some(load), false) => {
            let per_s = asked.map_or(String::new(), |asked| {
                format!(" ({:.1} of {asked:.1} requests/s)", asked * load)
            });
            format!("The fleet carries {:.0}% of {at}{per_s}.{first}", load * 100.0)
        }
    }
}
