//! How many replicas of a pool a demand needs: bracketed by short runs, proven by long ones on common seeds.

use std::cell::RefCell;
use std::collections::BTreeMap;

use plimsoll_plan::{Reply, least};
use plimsoll_sim::{ProviderSpec, RouteSpec, Target};
use plimsoll_stats::Dist;
use plimsoll_workload::Shift;
use serde::Serialize;

use crate::sweep::{Alone, ClassTarget, CurveInput, Judged, Sweep, binds, judge};
use plimsoll_load::SimulatedClass;
use plimsoll_load::{ClassResult, SimulateInput, Simulation};
use plimsoll_load::{Span, StudyError};

/// What is tried how closely: runs, and calls over all of them. The first looks around, the others prove.
const EFFORTS: [(u32, f64); 3] = [(2, 2_000.0), (8, 8_000.0), (8, 24_000.0)];
/// Calls of a run that looks for what one replica carries.
const CALLS_OF_ONE: f64 = 1_500.0;
/// What one replica carries is known to this share.
const EDGE_OF_ONE: f64 = 0.1;
/// The number to plan with is looked at for so many seconds in so many runs, or so many calls of each where that is less; and so many times at most.
const LONG_SECONDS: f64 = 900.0;
const LONG_RUNS: u32 = 2;
const LONG_CALLS: f64 = 30_000.0;
const LONGER: u32 = 8;
/// So many times what may miss its promise.
const FAR_OFF: f64 = 3.0;
/// Runs in which nobody waits.
const RUNS_ALONE: u32 = 2;
/// Replicas of a pool that is in nobody's way.
pub(crate) const AMPLE: u32 = 64;

/// A demand, and the fleet that is to carry it.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The fleet; how many replicas a pool has is what is asked.
    pub(crate) fleet: &'a SimulateInput,
    /// What its classes are held to.
    pub(crate) targets: &'a [ClassTarget],
    /// The hour whose mix is asked for, and whether events count.
    pub(crate) hour: usize,
    /// Whether events count.
    pub(crate) events: bool,
    /// Asked now and then.
    pub(crate) go_on: &'a (dyn Fn() -> bool + Sync),
}

/// How a pool was sized.
pub(crate) struct Sized {
    /// Replicas to plan with.
    pub(crate) planned: u32,
    /// Between what they lie: one more than surely fail, and as many as surely hold.
    pub(crate) between: (u32, u32),
    /// Whether not even the most that were looked at are enough.
    pub(crate) too_few: bool,
    /// What was seen with as many replicas as are planned with.
    pub(crate) seen: Option<Simulation>,
    /// What was seen there and with one fewer.
    pub(crate) proof: Option<Proof>,
    /// What share of the demand one replica carries by itself.
    pub(crate) one: Option<f64>,
    /// The promise that nobody can keep, where there is one.
    pub(crate) floor: Option<Floor>,
    /// How long tasks take where nobody waits.
    pub(crate) alone: Option<Alone>,
    /// The first promise that is broken with one replica fewer.
    pub(crate) breaks_by: Option<String>,
    /// What binds then.
    pub(crate) binds: Option<String>,
}

/// What was seen with as many replicas as are planned with, and with one fewer, on the same seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// Replicas.
    pub n: u32,
    /// The share of good tasks of the class that has least of it against what it was promised.
    pub attainment: Option<f64>,
    /// Between what that is.
    pub interval: Option<Span>,
    /// One fewer.
    pub n_minus_1: u32,
    /// The same there.
    pub attainment_minus_1: Option<f64>,
    /// The same there.
    pub interval_minus_1: Option<Span>,
    /// What is broken there.
    pub breaks_by: Option<String>,
    /// Whether the first lies wholly above what was promised, and the second below.
    pub proven: bool,
    /// Runs behind each, on common seeds.
    pub runs: u32,
    /// Seconds of each.
    pub seconds: f64,
}

/// A promise that nobody can keep, however many replicas there are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// The pool.
    pub pool: String,
    /// The class.
    pub class: String,
    /// What is promised: `ttft`, `tpot`, `e2e`, `gap`, `errors`, or a tail by its key.
    pub promise: String,
    /// What is promised, in milliseconds.
    pub promised_ms: Option<f64>,
    /// What is seen where nobody else is served, at the percentile that is promised, in milliseconds.
    pub floor_ms: Option<f64>,
    /// That percentile, between 0 and 1.
    pub percentile: f64,
    /// The share of tasks that fail in any way even then.
    pub failing: Option<f64>,
    /// Why most of these fail.
    pub failing_by: Option<&'static str>,
}

/// The pools that a class comes to without anything going wrong.
pub(crate) fn comes_to(class: &SimulatedClass, fleet: &SimulateInput) -> Vec<usize> {
    let routes = class.sent.routes.iter().map(|route| route.to);
    let stages = class.class.task.routes();
    let stages =
        stages.iter().filter_map(|r| class.targets.get(usize::from(*r)).copied().flatten());
    let mut pools: Vec<usize> = Vec::new();
    for target in routes.chain(stages) {
        let Target::Pool(mut pool) = target else { continue };
        // Whoever reads a prompt may hand it on.
        while !pools.contains(&pool) {
            pools.push(pool);
            let Some(over) = fleet.pools[pool].life.hands_over else { break };
            pool = over.to;
        }
    }
    pools.sort_unstable();
    pools
}

impl<'a> Question<'a> {
    /// The part of the demand that comes to a pool, which is to carry it by itself: nobody else takes over. The other pools have as many replicas as is said.
    pub(crate) fn of_pool(&self, pool: usize, others: &[Option<u32>]) -> CurveInput {
        let mut fleet = self.fleet.clone();
        let keep: Vec<bool> =
            fleet.classes.iter().map(|c| comes_to(c, self.fleet).contains(&pool)).collect();
        let mut kept = keep.iter();
        fleet.classes.retain(|_| *kept.next().unwrap_or(&false));
        let targets = self.targets.iter().zip(&keep).filter(|(_, keep)| **keep);
        let targets: Vec<ClassTarget> = targets.map(|(target, _)| target.clone()).collect();
        for class in &mut fleet.classes {
            for route in &mut class.sent.routes {
                route.fallback.clear();
                route.shift = None;
            }
            // What goes to a provider is not the pool's to answer for.
            let rented = |route: &RouteSpec| matches!(route.to, Target::Provider(_));
            let own: f64 = class.sent.routes.iter().filter(|r| !rented(r)).map(|r| r.share).sum();
            if own > 0.0 {
                class.sent.routes.retain(|route| !rented(route));
                class.sent.routes.iter_mut().for_each(|route| route.share /= own);
                class.class.hours.iter_mut().for_each(|hour| hour.rate *= own.min(1.0));
            }
        }
        // Stages that go there are answered at once, and always.
        let at_once =
            Dist::constant(1e-3).unwrap_or_else(|_| unreachable!("a millisecond is a time"));
        for (_, provider) in &mut fleet.providers {
            *provider = ProviderSpec {
                calls: None,
                tokens: None,
                prompt: None,
                output: None,
                at_once: None,
                counts_cached: provider.counts_cached,
                reserves: false,
                ttft: at_once.clone(),
                tpot: at_once.clone(),
                failure: 0.0,
            };
        }
        // Whoever nobody comes to need not be there.
        let mut met: Vec<usize> =
            fleet.classes.iter().flat_map(|class| comes_to(class, self.fleet)).collect();
        met.sort_unstable();
        for (i, other) in fleet.pools.iter_mut().enumerate().filter(|(i, _)| *i != pool) {
            let ample = if met.binary_search(&i).is_ok() { AMPLE } else { 0 };
            other.life.replicas = others[i].unwrap_or(ample);
        }
        CurveInput {
            fleet,
            targets,
            hour: self.hour,
            events: self.events,
            points: 0,
            calls: EFFORTS[0].1,
            longer: 0,
            by_resource: false,
        }
    }

    /// What nobody can keep of what is promised to those who come to a pool, however many replicas there are.
    pub(crate) fn floor(&self, pool: usize) -> Result<Option<Floor>, StudyError> {
        let input = self.of_pool(pool, &vec![None; self.fleet.pools.len()]);
        let mut sweep = Sweep::new(&input, self.go_on);
        sweep.base.runs = RUNS_ALONE;
        let mut replicas: Vec<u32> = input.fleet.pools.iter().map(|p| p.life.replicas).collect();
        // So many that nobody stands in anybody's way.
        replicas[pool] = AMPLE;
        sweep.set_replicas(&replicas);
        if sweep.rate <= 0.0 {
            return Ok(None);
        }
        let broken = sweep.settle()?;
        Ok(broken.map(|(by, class)| floor(&input, &sweep, pool, &by, &class)))
    }

    /// What share of the demand one replica of a pool carries, the others being in nobody's way.
    pub(crate) fn one(&self, pool: usize, start: f64) -> Result<Option<f64>, StudyError> {
        let input = self.of_pool(pool, &vec![None; self.fleet.pools.len()]);
        let mut sweep = Sweep::new(&input, self.go_on);
        sweep.base.runs = RUNS_ALONE;
        let mut replicas: Vec<u32> = input.fleet.pools.iter().map(|p| p.life.replicas).collect();
        replicas[pool] = AMPLE;
        sweep.set_replicas(&replicas);
        if sweep.rate <= 0.0 || sweep.settle()?.is_some() {
            return Ok(None);
        }
        replicas[pool] = 1;
        sweep.set_replicas(&replicas);
        one_carries(&mut sweep, &input, start)
    }

    /// Sizes a pool, between the fewest and the most, with so many efforts: with one it is only looked around. Whoever knows about how many it is, or how long tasks take
    /// alone, says so.
    pub(crate) fn size(
        &self,
        pool: usize,
        others: &[Option<u32>],
        (fewest, most): (u32, u32),
        (hint, known): (Option<u32>, Option<&Alone>),
        efforts: u32,
    ) -> Result<Sized, StudyError> {
        let input = self.of_pool(pool, others);
        let mut sweep = Sweep::new(&input, self.go_on);
        sweep.base.runs = RUNS_ALONE;
        let mut replicas: Vec<u32> = input.fleet.pools.iter().map(|p| p.life.replicas).collect();
        let nobody = Sized {
            planned: fewest,
            between: (fewest, fewest),
            too_few: false,
            seen: None,
            proof: None,
            one: None,
            floor: None,
            alone: None,
            breaks_by: None,
            binds: None,
        };
        if sweep.rate <= 0.0 {
            return Ok(nobody);
        }
        replicas[pool] = AMPLE;
        sweep.set_replicas(&replicas);
        if let Some(alone) = known {
            sweep.settle_as(alone);
        } else if let Some((by, class)) = sweep.settle()? {
            let floor = floor(&input, &sweep, pool, &by, &class);
            return Ok(Sized { planned: 0, between: (0, 0), floor: Some(floor), ..nobody });
        }
        replicas[pool] = 1;
        sweep.set_replicas(&replicas);
        let start = hint.map_or(0.05, |n| 1.0 / f64::from(n.max(1)));
        let one = match hint {
            // Whoever knows about how many it is need not find out.
            Some(_) if efforts == 1 => None,
            _ => one_carries(&mut sweep, &input, start)?,
        };
        let linear = one.map(|one| (1.0 / one).ceil().clamp(1.0, 1e5) as u32);
        let hint = hint.or(linear).unwrap_or(1).clamp(fewest.max(1), most.max(1));
        let alone = sweep.alone();
        let seen: RefCell<BTreeMap<u32, (u32, Simulation, Judged)>> = RefCell::default();
        let sweep = RefCell::new(sweep);
        let bracket = least(fewest.max(1)..=most.max(1), hint, efforts, |n, effort| {
            // What is not looked at to its end says nothing: whoever has no time keeps what was thought at first.
            if !(self.go_on)() {
                return Ok(Reply { holds: true, sure: true });
            }
            let (runs, calls) = EFFORTS[(effort as usize).min(EFFORTS.len() - 1)];
            let mut sweep = sweep.borrow_mut();
            replicas[pool] = n;
            sweep.set_replicas(&replicas);
            sweep.base.runs = if effort == 0 { runs } else { runs.max(self.fleet.runs) };
            let result = sweep.run(Shift::NONE, calls)?;
            let judged = judge(&result, &input);
            // A short look says no only where it is sure of it.
            let holds = if effort == 0 { judged.may_meet() } else { judged.meets };
            let reply = Reply { holds, sure: efforts == 1 || judged.sure && effort > 0 };
            seen.borrow_mut().insert(n, (effort, result, judged));
            Ok::<Reply, StudyError>(reply)
        })?;
        let mut seen = seen.into_inner();
        let mut n = bracket.planned.unwrap_or(most);
        // What builds up slowly is not seen in short runs: the number to plan with is looked at for long, and gives way where that breaks it.
        let mut longer = false;
        if efforts > 1 && bracket.planned.is_some() {
            let mut sweep = sweep.borrow_mut();
            sweep.base.runs = LONG_RUNS;
            let long = LONG_CALLS.min(sweep.rate * LONG_SECONDS);
            for _ in 0..LONGER {
                replicas[pool] = n;
                sweep.set_replicas(&replicas);
                if !(self.go_on)() {
                    break;
                }
                let result = sweep.run_for(long)?;
                let judged = judge(&result, &input);
                let target = judged.worst.map_or(1.0, |at| input.targets[at].attainment);
                // What the short runs could not tell apart, this one does not either: only what is far off counts.
                let missed = judged.attainment.map_or(0.0, |attainment| 1.0 - attainment);
                let far = missed > FAR_OFF * (1.0 - target) || judged.attainment.is_none();
                if judged.may_meet() || !far || n >= most {
                    break;
                }
                n = (n + (n / 20).max(1)).min(most);
                longer = true;
            }
            if longer {
                let (runs, calls) = EFFORTS[1];
                replicas[pool] = n;
                sweep.set_replicas(&replicas);
                sweep.base.runs = runs.max(self.fleet.runs);
                let result = sweep.run(Shift::NONE, calls)?;
                let judged = judge(&result, &input);
                seen.insert(n, (1, result, judged));
            }
        }
        let fewer = n.checked_sub(1).and_then(|n| seen.remove(&n));
        let (breaks_by, binds) = match &fewer {
            Some((_, result, judged)) => {
                (judged.fails_by.clone(), binds(result, judged.fails_by.as_deref()).0)
            }
            None => (None, None),
        };
        let at = seen.remove(&n);
        let proof = at.as_ref().filter(|(effort, ..)| *effort > 0).map(|(_, result, judged)| {
            let level = self.fleet.level;
            let span = |judged: &Judged| {
                judged.between.map(|(low, high)| Span {
                    low: low.clamp(0.0, 1.0),
                    high: high.clamp(0.0, 1.0),
                    level,
                    n: result.runs as usize,
                })
            };
            Proof {
                n,
                attainment: judged.attainment,
                interval: span(judged),
                n_minus_1: n.saturating_sub(1),
                // With nobody there, nothing is good.
                attainment_minus_1: match n {
                    1 => Some(0.0),
                    _ => fewer.as_ref().and_then(|(.., judged)| judged.attainment),
                },
                interval_minus_1: fewer.as_ref().and_then(|(.., judged)| span(judged)),
                breaks_by: breaks_by.clone(),
                // Where nothing says what is good, nothing was counted that chance could have changed.
                proven: bracket.proven && !longer && judged.attainment.is_some(),
                runs: result.runs,
                seconds: result.seconds,
            }
        });
        let seen = at.map(|(_, result, _)| result);
        Ok(Sized {
            planned: n,
            between: (bracket.unsure.start.min(n), bracket.holds.unwrap_or(n).max(n)),
            too_few: bracket.planned.is_none(),
            seen,
            proof,
            one,
            floor: None,
            alone: Some(alone),
            breaks_by,
            binds,
        })
    }
}

/// What share of the demand the one replica that a sweep is set to carries.
fn one_carries(
    sweep: &mut Sweep<'_>,
    input: &CurveInput,
    start: f64,
) -> Result<Option<f64>, StudyError> {
    sweep.base.runs = EFFORTS[0].0;
    let meets = |load: f64| {
        let result = sweep.run(Shift { rate: load, ..Shift::NONE }, CALLS_OF_ONE)?;
        Ok(judge(&result, input).may_meet())
    };
    Ok(sweep.edge(meets, (start, 2.0), EDGE_OF_ONE)?.0)
}

/// What keeps a promise from being kept where nobody else is served.
fn floor(input: &CurveInput, sweep: &Sweep<'_>, pool: usize, by: &str, class: &str) -> Floor {
    let at = input.fleet.classes.iter().position(|c| c.class.name == class).unwrap_or(0);
    let (own, target) = (&input.fleet.classes[at], &input.targets[at]);
    let good = own.sent.good;
    let ms = |ps: Option<u64>| ps.map(|ps| ps as f64 / 1e9);
    let seen: Option<&ClassResult> = sweep.light.as_ref().map(|light| &light.classes[at]);
    let tail = target.tails.iter().find(|tail| tail.key == by);
    let (promised, percentile) = match tail {
        Some(tail) => (Some(tail.most_ms), tail.percentile.share()),
        None => {
            let promised = match by {
                "ttft" => ms(good.ttft),
                "tpot" => ms(good.tpot),
                "e2e" => ms(good.e2e),
                "gap" => ms(good.gap),
                _ => None,
            };
            (promised, target.attainment)
        }
    };
    let of = seen.and_then(|seen| match by.split('_').next().unwrap_or(by) {
        "ttft" => seen.ttft_ms,
        "tpot" => seen.tpot_ms,
        "e2e" => seen.e2e_ms,
        "itl" => seen.itl_ms,
        _ => None,
    });
    // Of the percentiles that are kept, the nearest that is not above.
    let floor_ms = of.map(|d| match percentile {
        p if p >= 0.99 => d.p99,
        p if p >= 0.95 => d.p95,
        p if p >= 0.9 => d.p90,
        _ => d.p50,
    });
    let failing = seen.map(|seen| {
        let share = (seen.offered - seen.completed - seen.left) as f64 / seen.offered.max(1) as f64;
        let causes = [
            (seen.too_long, "longer than `max_model_len` or a cache"),
            (seen.tool_failed, "failed by a tool"),
            (seen.timed_out, "over their deadline"),
            (seen.rejected - seen.too_long, "turned away"),
        ];
        let most = causes.into_iter().max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0);
        (share, most.map(|(_, by)| by))
    });
    Floor {
        pool: input.fleet.pools[pool].name.clone(),
        class: class.to_owned(),
        promise: by.to_owned(),
        promised_ms: promised,
        floor_ms,
        percentile,
        failing: failing.map(|(share, _)| share),
        failing_by: failing.and_then(|(_, by)| by),
    }
}
