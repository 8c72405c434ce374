//! Every pool of a fleet sized, each with what its reserve rests on.

use plimsoll_sim::Target;
use plimsoll_stats::in_order;
use plimsoll_workload::{Class, Shift};

use super::reserve::{Replicas, UnitOfLoss, failure};
use super::result::Obstacle;
use super::size::{Floor, Question, Sized};
use super::{Facts, PlanInput, TINY};
use crate::context::Context;
use plimsoll_load::{
    Cause, ClassTarget, Effort, SimulateInput, SimulatedClass, SimulatedPool, Simulation,
    StudyError, pools_serving,
};

/// No pool is looked at with more replicas.
pub(crate) const LOOKED_AT: u32 = 2048;
/// Where a promise cannot be kept, the fleet that is shown keeps one that is so many times what is seen where nobody else is served.
const KEPT_AT: f64 = 1.25;
/// Promises that are let go of, for the fleet that is shown instead.
const LET_GO: usize = 4;
/// Replicas that are added at most because pools depend on each other.
const ADDED: u32 = 8;

impl PoolSize {
    /// What was seen where its replicas are loaded to their line.
    pub(crate) fn at_line(&self) -> Option<&Simulation> {
        self.line.as_ref().or(self.own.seen.as_ref())
    }
}

/// A pool and what it needs.
pub(crate) struct PoolSize {
    pub(crate) own: Sized,
    pub(crate) replicas: Replicas,
    /// Whether one replica has so little to do that nothing more need be said.
    pub(crate) tiny: bool,
    /// What the busiest hour without events needs, where the plan is for one with them.
    pub(crate) baseline: Option<(u32, Option<f64>)>,
    /// What the demand grows by while a replica starts.
    pub(crate) warm: Warm,
    /// What was seen at the load line, where the planned demand is well below it.
    pub(crate) line: Option<Simulation>,
}

/// A fleet with its demand, as it is asked about: at the quantile, at the median, and the same with colder caches.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) fleet: SimulateInput,
    pub(crate) targets: Vec<ClassTarget>,
    pub(crate) median: SimulateInput,
    cold: SimulateInput,
    pub(crate) hour: usize,
    pub(crate) events: bool,
    /// Whether the median is another demand than the one that is planned for.
    differs: bool,
}

impl Asked {
    pub(crate) fn new(input: &PlanInput<'_>) -> Self {
        let (hour, events) = input.busiest();
        let mut median = input.fleet.clone();
        median.classes.clone_from(&input.median);
        let mut fleet = input.fleet.clone();
        near_users(&mut fleet, (hour, events));
        for (own, near) in median.pools.iter_mut().zip(&fleet.pools) {
            own.life.regions.clone_from(&near.life.regions);
        }
        let mut cold = median.clone();
        let colder = Shift { cache_hit: 1.0 - input.reserve.cold_cache, ..Shift::NONE };
        for class in &mut cold.classes {
            class.class.hours.iter_mut().for_each(|hour| hour.drift = hour.drift.and(colder));
        }
        let targets = input.targets.clone();
        let at = |class: &SimulatedClass| class.class.hours.get(hour).copied();
        let differs = fleet.classes.iter().zip(&median.classes).any(|(a, b)| at(a) != at(b));
        Self { fleet, targets, median, cold, hour, events, differs }
    }

    /// The same over other hours.
    pub(crate) fn over(&self, planned: &[Class], median: &[Class]) -> Self {
        let mut long = self.clone();
        for (fleet, classes) in [(&mut long.fleet, planned), (&mut long.median, median)] {
            for own in &mut fleet.classes {
                if let Some(class) = classes.iter().find(|class| class.name == own.class.name) {
                    own.class.hours.clone_from(&class.hours);
                }
            }
        }
        long
    }

    /// Whether anything that comes to a pool is cached.
    fn caches(&self, pool: usize) -> bool {
        self.median.classes.iter().any(|class| {
            let hour = class.class.hours.get(self.hour);
            let shift = hour.map_or(Shift::NONE, |hour| hour.changed(self.events));
            let warm = class.class.task.expected(&shift).0;
            let cold = class.class.task.expected(&Shift { cache_hit: 0.0, ..shift }).0;
            pools_serving(class, &self.median).contains(&pool) && cold > warm
        })
    }

    /// The same, for whoever looks at several things side by side.
    fn on_one_thread(&self) -> Self {
        let mut own = self.clone();
        for fleet in [&mut own.fleet, &mut own.median, &mut own.cold] {
            fleet.threads = 1;
        }
        own
    }

    /// A pool runs another way from now on.
    pub(crate) fn run_as(&mut self, pool: usize, own: &SimulatedPool) {
        for fleet in [&mut self.fleet, &mut self.median, &mut self.cold] {
            let hands_over = fleet.pools[pool].life.hands_over;
            fleet.pools[pool] = own.clone();
            fleet.pools[pool].life.hands_over = hands_over;
        }
    }

    pub(crate) fn at_quantile<'a>(&'a self, context: Context<'a>) -> Question<'a> {
        let (hour, events, effort) = (self.hour, self.events, Effort::USUAL);
        Question { fleet: &self.fleet, targets: &self.targets, hour, events, context, effort }
    }

    /// Lets go of promises that nobody can keep, one after the other: the fleet that is shown keeps the nearest that can be.
    pub(crate) fn let_go(&mut self, context: Context<'_>) -> Result<Vec<Floor>, StudyError> {
        let mut floors: Vec<Floor> = Vec::new();
        for pool in 0..self.fleet.pools.len() {
            for _ in 0..LET_GO {
                let Some(floor) = self.at_quantile(context).floor(pool)? else { break };
                let known =
                    floors.iter().any(|f| f.class == floor.class && f.promise == floor.promise);
                let kept = floor.floor_ms.map(|ms| ms * KEPT_AT);
                for fleet in [&mut self.fleet, &mut self.median, &mut self.cold] {
                    let own = fleet.classes.iter_mut().find(|c| c.class.name == floor.class);
                    if let (Some(own), Some(ms)) = (own, kept) {
                        let ps = Some((ms * 1e9).ceil() as u64);
                        match floor.promise.as_str() {
                            "ttft" => own.sent.good.ttft = ps,
                            "tpot" => own.sent.good.tpot = ps,
                            "e2e" => own.sent.good.e2e = ps,
                            "gap" => own.sent.good.gap = None,
                            _ => {}
                        }
                    }
                }
                let at = self.fleet.classes.iter().position(|c| c.class.name == floor.class);
                if let Some(target) = at.map(|at| &mut self.targets[at]) {
                    target.tails.retain(|tail| tail.key != floor.promise);
                    if floor.promise == "errors"
                        || floor.promise == "gap" && floor.floor_ms.is_none()
                    {
                        target.attainment =
                            floor.failing.map_or(0.5, |share| (0.98 * (1.0 - share)).max(0.01));
                    }
                }
                floors.push(floor);
                if known {
                    break;
                }
            }
        }
        Ok(floors)
    }
}

/// Slots over which the replicas of a pool in several regions are spread.
const SLOTS: usize = 16;

/// Puts replicas of pools in several regions where their users are, by what these ask for. Where none of them is, they stay as they are written.
fn near_users(fleet: &mut SimulateInput, (hour, events): (usize, bool)) {
    for pool in 0..fleet.pools.len() {
        let own = fleet.pools[pool].life.regions.clone();
        if own.len() < 2 {
            continue;
        }
        let mut asked = vec![0.0; fleet.regions.len()];
        for class in fleet.classes.iter().filter(|c| pools_serving(c, fleet).contains(&pool)) {
            asked[class.sent.region] += class.class.expected_tokens(hour, events);
        }
        let all: f64 = own.iter().map(|region| asked[*region]).sum();
        if all <= 0.0 {
            continue;
        }
        // Whoever is furthest behind its share is next, so that any number of replicas is spread alike.
        let mut given = vec![0usize; own.len()];
        let slots = (1..=SLOTS).map(|slot| {
            let behind = |i: usize| asked[own[i]] / all * slot as f64 - given[i] as f64;
            let next = (0..own.len()).max_by(|a, b| behind(*a).total_cmp(&behind(*b))).unwrap_or(0);
            given[next] += 1;
            own[next]
        });
        fleet.pools[pool].life.regions = slots.collect();
    }
}

/// Sizes every pool. What stands in the way is added to the obstacles.
pub(crate) fn sizes(
    input: &PlanInput<'_>,
    asked: &Asked,
    obstacles: &mut Vec<Obstacle>,
    context: Context<'_>,
) -> Result<Vec<PoolSize>, StudyError> {
    // Pools are looked at side by side.
    let (facts, window_s) = (input.facts(), input.demand.window_s);
    let short = asked.on_one_thread();
    let pools = input.pools.len();
    let all = u32::try_from(pools).unwrap_or(u32::MAX);
    let proven = in_order(input.fleet.threads, all, |pool| {
        let pool = pool as usize;
        let range = (facts.pools[pool].fewest.max(1), LOOKED_AT);
        short.at_quantile(context).size(pool, range, None, window_s)
    });
    let proven: Vec<Sized> = proven.into_iter().collect::<Result<_, _>>()?;
    let looks = u32::try_from(pools * LOOKS.len()).unwrap_or(u32::MAX);
    let about = in_order(input.fleet.threads, looks, |i| {
        let (pool, look) = (i as usize / LOOKS.len(), LOOKS[i as usize % LOOKS.len()]);
        compared(facts, &short, (pool, proven[pool].planned), look, context)
    });
    let about: Vec<Option<u32>> = about.into_iter().collect::<Result<_, _>>()?;
    let found = proven.into_iter().enumerate().map(|(i, own)| {
        size_of(facts, asked, i, own, &about[i * LOOKS.len()..(i + 1) * LOOKS.len()], context)
    });
    let mut sizes = Vec::new();
    for (i, found) in found.enumerate() {
        let (size, survives) = found?;
        let name = &input.fleet.pools[i].name;
        if !survives {
            obstacles.push(Obstacle {
                kind: "loss",
                what: format!("pool `{name}` is in fewer places than are to be lost, and nothing would be left"),
                relax: "spread it over more zones or regions, or lower `count` under `[study.reliability]`".to_owned(),
            });
        }
        if size.own.no_number {
            obstacles.push(Obstacle {
                kind: "slo",
                what: format!(
                    "no number of replicas of pool `{name}` keeps every promise: {} is missed as much with more than {}",
                    size.own.breaks_by.as_deref().unwrap_or("a promise"),
                    size.own.planned
                ),
                relax: "relax that promise, or look at what binds with `plimsoll curve`".to_owned(),
            });
        }
        if size.own.too_few {
            obstacles.push(Obstacle {
                kind: "slo",
                what: format!("{LOOKED_AT} replicas of pool `{name}` are not enough, and with more it was not looked at"),
                relax: "look at what binds with `plimsoll curve`, or split the class".to_owned(),
            });
        }
        sizes.push(size);
    }
    stranded(input, asked, obstacles);
    together(asked, &mut sizes, context)?;
    Ok(sizes)
}

/// Demands that are compared with the one that is planned for.
#[derive(Clone, Copy)]
enum Look {
    /// The median of the demand that is planned for.
    Median,
    /// That with colder caches.
    Cold,
    /// The busiest hour without events.
    Baseline,
}

const LOOKS: [Look; 3] = [Look::Median, Look::Cold, Look::Baseline];

/// Replicas that another demand needs; none where it is the planned one, or the one before it in [`LOOKS`].
fn compared(
    input: Facts<'_>,
    asked: &Asked,
    (pool, planned): (usize, u32),
    look: Look,
    context: Context<'_>,
) -> Result<Option<u32>, StudyError> {
    let nothing_colder = input.reserve.cold_cache == 0.0 || !asked.caches(pool);
    let question = asked.at_quantile(context);
    let question = match look {
        Look::Median if !asked.differs && nothing_colder => return Ok(None),
        Look::Median => Question { fleet: &asked.median, ..question },
        Look::Cold if nothing_colder => return Ok(None),
        Look::Cold => Question { fleet: &asked.cold, ..question },
        Look::Baseline if !asked.events => return Ok(None),
        Look::Baseline => Question { hour: input.baseline_hour, events: false, ..question },
    };
    let range = (input.pools[pool].fewest.max(1), LOOKED_AT);
    // As many for as much work: to know where to begin.
    let whole = work(&asked.fleet, pool, (asked.hour, asked.events));
    let share = work(question.fleet, pool, (question.hour, question.events)) / whole.max(1e-9);
    let about = (f64::from(planned) * share).round().clamp(1.0, 1e5) as u32;
    Ok(Some(question.unsure().needs(pool, range, Some(about))?.unwrap_or(range.1)))
}

/// Tokens a second that come to a pool in an hour.
pub(crate) fn work(fleet: &SimulateInput, pool: usize, (hour, events): (usize, bool)) -> f64 {
    let met = fleet.classes.iter().filter(|class| pools_serving(class, fleet).contains(&pool));
    met.map(|class| class.class.expected_tokens(hour, events)).sum()
}

/// What a pool needs, and whether it survives what it is to survive.
fn size_of(
    input: Facts<'_>,
    asked: &Asked,
    i: usize,
    own: Sized,
    about: &[Option<u32>],
    context: Context<'_>,
) -> Result<(PoolSize, bool), StudyError> {
    let facts = &input.pools[i];
    let range = (facts.fewest.max(1), LOOKED_AT);
    let n = own.planned;
    let [median, cold, baseline] = [about[0], about[1], about[2]];
    // The same demand needs the same number, however it was found.
    let steady = median.filter(|_| asked.differs).unwrap_or(n).clamp(1, n.max(1)).min(n);
    let colder = cold.zip(median).map_or(0, |(cold, median)| cold.saturating_sub(median));
    let baseline = baseline.map(|baseline| (baseline.min(n.max(1)), None));
    let tiny = n == 1 && own.one.is_some_and(|one| one >= TINY);
    let kept = if tiny { input.reserve_if_tiny } else { input.reserve };
    let warm = Warm::of(&asked.median, i, (asked.hour, asked.events), steady);
    let carried = match kept.lost {
        // Whoever has somewhere else to go goes there.
        UnitOfLoss::Region if facts.placed.regions == 1 => {
            Some(inherited(asked, i, range, n, context)?.saturating_sub(n))
        }
        lost => failure(n, lost, facts.placed),
    };
    let replicas = Replicas {
        now: facts.now,
        steady,
        forecast: n - steady,
        cold_cache: colder,
        failure: carried.unwrap_or(0),
        rollout: kept.rollout,
        canary: kept.canary,
        maintenance: kept.maintenance_nodes.saturating_mul(facts.placed.per_node),
        warm: match tiny || facts.fewest == facts.most {
            true => 0,
            false => warm.replicas(facts.startup_p90_s),
        },
        total: 0,
    };
    let size = PoolSize { own, replicas: replicas.summed(), tiny, baseline, warm, line: None };
    Ok((size, carried.is_some()))
}

/// Whether a pool lies in one region and nowhere else.
fn lies_in(fleet: &SimulateInput, pool: usize, region: usize) -> bool {
    fleet.pools[pool].life.regions.iter().all(|own| *own == region)
}

/// Replicas that a pool needs when any one other region is lost, and whoever went there comes to it.
fn inherited(
    asked: &Asked,
    pool: usize,
    range: (u32, u32),
    hint: u32,
    context: Context<'_>,
) -> Result<u32, StudyError> {
    let mut most = hint;
    for region in (0..asked.fleet.regions.len()).filter(|r| !lies_in(&asked.fleet, pool, *r)) {
        let mut fleet = asked.fleet.clone();
        let mut moved = false;
        for class in &mut fleet.classes {
            for route in &mut class.sent.routes {
                let gone = |to: &Target| matches!(to, Target::Pool(p) if lies_in(&asked.fleet, *p, region));
                if gone(&route.to)
                    && let Some(next) = route.fallback.iter().find(|to| !gone(to))
                {
                    moved |= *next == Target::Pool(pool);
                    route.to = *next;
                }
            }
        }
        if moved {
            let question = Question { fleet: &fleet, ..asked.at_quantile(context) };
            most = most.max(question.needs(pool, range, Some(hint * 2))?.unwrap_or(range.1));
        }
    }
    Ok(most)
}

/// Who has nowhere to go when a region is lost.
fn stranded(input: &PlanInput<'_>, asked: &Asked, obstacles: &mut Vec<Obstacle>) {
    if input.reserve.lost != UnitOfLoss::Region {
        return;
    }
    for class in &asked.fleet.classes {
        for route in &class.sent.routes {
            let Target::Pool(pool) = route.to else { continue };
            let life = &asked.fleet.pools[pool].life;
            let home = life.regions[0];
            let alone = lies_in(&asked.fleet, pool, home);
            let elsewhere = route.fallback.iter().any(|to| match to {
                Target::Pool(other) => !lies_in(&asked.fleet, *other, home),
                Target::Provider(_) => true,
            });
            if alone && !elsewhere {
                let (class, pool) = (&class.class.name, &asked.fleet.pools[pool].name);
                obstacles.push(Obstacle {
                    kind: "loss",
                    what: format!(
                        "class `{class}` has nowhere to go when region `{}` is lost: pool `{pool}` is there only",
                        asked.fleet.regions[home]
                    ),
                    relax: format!("give pool `{pool}` another region, or its route a `fallback` elsewhere"),
                });
            }
        }
    }
}

/// Looks at the whole fleet with what carries the demand; where pools stand in each other's way, the one that binds gets more.
fn together(asked: &Asked, sizes: &mut [PoolSize], context: Context<'_>) -> Result<(), StudyError> {
    let shared =
        asked.fleet.classes.iter().any(|class| pools_serving(class, &asked.fleet).len() > 1);
    if !shared {
        return Ok(());
    }
    let mut fleet = asked.fleet.clone();
    for _ in 0..ADDED {
        for (pool, size) in fleet.pools.iter_mut().zip(sizes.iter()) {
            pool.life.replicas = size.replicas.carry();
        }
        let whole = Question { fleet: &fleet, ..asked.at_quantile(context) }.load().at(1.0)?;
        // Not everything is mended by replicas.
        let helps = !matches!(
            whole.cause,
            None | Some(Cause::Link | Cause::Provider | Cause::TooLong | Cause::Tool)
        );
        if whole.keeps || !helps {
            break;
        }
        let named = |pool: &SimulatedPool| whole.of.as_ref() == Some(&pool.name);
        let Some(pool) = fleet.pools.iter().position(named) else { break };
        sizes[pool].replicas.steady += 1;
        sizes[pool].replicas = sizes[pool].replicas.summed();
    }
    Ok(())
}

/// What the demand grows by at its steepest, events apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Warm {
    /// In replicas an hour.
    pub(crate) ramp: f64,
    /// The hour at whose end it does.
    pub(crate) hour: Option<usize>,
}

impl Warm {
    /// What an event changes at once is known beforehand, and has a floor of its own.
    pub(crate) fn of(
        fleet: &SimulateInput,
        pool: usize,
        (peak, events): (usize, bool),
        steady: u32,
    ) -> Self {
        let own: Vec<&SimulatedClass> = fleet
            .classes
            .iter()
            .filter(|class| pools_serving(class, fleet).contains(&pool))
            .collect();
        let work = |hour: usize, events: bool| -> f64 {
            own.iter().map(|c| c.class.expected_tokens(hour, events)).sum()
        };
        let at_peak = work(peak, events);
        let hours = own.iter().map(|c| c.class.hours.len()).max().unwrap_or(0);
        let jumps = |hour: usize| {
            let shift = |c: &SimulatedClass, hour: usize| c.class.hours.get(hour).map(|h| h.shift);
            own.iter().any(|c| shift(c, hour) != shift(c, hour + 1))
        };
        let ramps = (0..hours.saturating_sub(1)).filter(|hour| !jumps(*hour)).map(|hour| {
            let growth = (work(hour + 1, true) - work(hour, true)) / at_peak.max(f64::MIN_POSITIVE);
            (hour, growth * f64::from(steady))
        });
        let steepest = ramps.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ramp)| *ramp > 0.0);
        Self { ramp: steepest.map_or(0.0, |(_, ramp)| ramp), hour: steepest.map(|(hour, _)| hour) }
    }

    /// The same in replicas of which so many times as many are needed.
    pub(crate) fn times(&self, times: f64) -> Self {
        Self { ramp: self.ramp * times, hour: self.hour }
    }

    /// Replicas by which the demand grows while one starts.
    pub(crate) fn replicas(&self, startup_s: f64) -> u32 {
        // A thousandth of a replica is none.
        (self.ramp * startup_s / 3600.0 - 1e-3).ceil().max(0.0) as u32
    }
}
