//! What moves the answer: each assumption over its own range, the others as they are likely to be.

use plimsoll_workload::Shift;

use super::hard::{Field, PLANNED};
use super::result::{Tornado, TornadoBar, TornadoEnd};
use super::side_by_side;
use crate::plan::MONTH;
use crate::plan::sizes::work;
use plimsoll_load::SimulateInput;
use plimsoll_load::StudyError;
use plimsoll_load::pools_serving;

/// What each end of a range counts for, where the middle counts for the rest: three points that keep the mean and spread of most distributions (Keefer and Bodily 1983,
/// for the 5th, 50th and 95th percentile).
const END_WEIGHT: f64 = 0.185;

/// An assumption that may be otherwise: one time in twenty beyond each end.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertain {
    /// The assumption.
    pub name: String,
    /// Its value at the better end, as people write it.
    pub better: String,
    /// As it is likely.
    pub likely: String,
    /// At the worse end.
    pub worse: String,
    /// Where the range comes from.
    pub source: String,
    /// How to know it better.
    pub measure: String,
    /// What it moves.
    pub lever: Lever,
}

/// What an assumption moves, at its better and at its worse end, against what is likely.
#[derive(Clone, Debug, PartialEq)]
pub enum Lever {
    /// Rate, lengths and hits of classes, by their places.
    Demand(Vec<usize>, Shift, Shift),
    /// How long the steps of a pool take.
    Steps(usize, f64, f64),
    /// How long replicas take to start.
    Startup(f64, f64),
    /// What things cost.
    Price(f64, f64),
}

impl Lever {
    fn end(&self, worse: bool) -> Moved<'_> {
        let of = |better: f64, than: f64| if worse { than } else { better };
        match self {
            Self::Demand(classes, better, than) => {
                Moved::Demand(classes, if worse { *than } else { *better })
            }
            Self::Steps(pool, better, than) => Moved::Steps(*pool, of(*better, *than)),
            Self::Startup(better, than) => Moved::Startup(of(*better, *than)),
            Self::Price(better, than) => Moved::Price(of(*better, *than)),
        }
    }
}

/// One end of a lever.
#[derive(Clone, Copy)]
enum Moved<'a> {
    Demand(&'a [usize], Shift),
    Steps(usize, f64),
    Startup(f64),
    Price(f64),
}

/// A day that is looked at: the likely one with some levers moved.
struct Day<'a> {
    moved: Vec<Moved<'a>>,
}

pub(super) fn tornado(field: &Field<'_>) -> Result<Tornado, StudyError> {
    let all = &field.input.uncertain;
    let mut days = vec![Day { moved: Vec::new() }];
    for worse in [false, true] {
        days.push(Day { moved: all.iter().map(|own| own.lever.end(worse)).collect() });
    }
    for own in all {
        days.extend([false, true].map(|worse| Day { moved: vec![own.lever.end(worse)] }));
    }
    // The likely day first: where a lever leaves a pool alone, it needs as many as on that day.
    let threads = field.input.plan.fleet.threads;
    let carry = needs(field, &days[0], None)?;
    let base = end(field, &days[0], carry.clone(), None)?;
    let ends = side_by_side(threads, days.len() - 1, |i| {
        let day = &days[i + 1];
        end(field, day, needs(field, day, Some(&carry))?, Some(&base))
    })?;
    let mut ends = ends.into_iter();
    let (best, worst) = (ends.next(), ends.next());
    let mut bars = Vec::new();
    for own in all {
        let (Some(at_better), Some(at_worse)) = (ends.next(), ends.next()) else { break };
        bars.push(bar(field, own, (at_better, at_worse), &base));
    }
    let swing = |bar: &TornadoBar| {
        let usd = bar.swing_usd_per_month.unwrap_or(0.0).abs();
        (usd, bar.swing_replicas.abs(), bar.swing_attainment.unwrap_or(0.0).abs())
    };
    bars.sort_by(|a, b| {
        let (a, b) = (swing(a), swing(b));
        b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.total_cmp(&a.2))
    });
    let mut worth: Vec<&TornadoBar> = bars.iter().filter(|bar| bar.changes_decision).collect();
    worth.sort_by(|a, b| {
        let of = |bar: &TornadoBar| bar.worth_usd_per_month.unwrap_or(0.0);
        of(b).total_cmp(&of(a))
    });
    let measure_next = worth.iter().map(|bar| said(bar)).collect();
    Ok(Tornado {
        base: Some(base),
        best,
        worst,
        measure_next,
        bars,
        basis: "ends are exceeded one time in twenty each, and count 0.185 each beside 0.63 for what is likely",
    })
}

fn said(bar: &TornadoBar) -> String {
    let money = bar
        .worth_usd_per_month
        .map_or(String::new(), |usd| format!(" (worth ${usd:.0} a month to know)"));
    format!("{}: {}{money}", bar.name, bar.measure)
}

fn bar(
    field: &Field<'_>,
    own: &Uncertain,
    (at_better, at_worse): (TornadoEnd, TornadoEnd),
    base: &TornadoEnd,
) -> TornadoBar {
    let apart = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a - b);
    let off = |end: &TornadoEnd| -> Option<f64> {
        let pools = field.input.plan.pools.iter().zip(end.by_pool.iter().zip(&base.by_pool));
        let each = pools.map(|(facts, (n, likely))| {
            Some(f64::from(n.abs_diff(*likely)) * facts.replica_usd_per_hour? * MONTH)
        });
        each.sum()
    };
    let worth = off(&at_better).zip(off(&at_worse)).map(|(a, b)| END_WEIGHT * (a + b));
    TornadoBar {
        name: own.name.clone(),
        better: own.better.clone(),
        likely: own.likely.clone(),
        worse: own.worse.clone(),
        source: own.source.clone(),
        swing_replicas: i64::from(at_worse.replicas) - i64::from(at_better.replicas),
        swing_usd_per_month: apart(at_worse.usd_per_month, at_better.usd_per_month),
        swing_attainment: apart(at_worse.attainment, at_better.attainment),
        changes_decision: at_better.by_pool != base.by_pool || at_worse.by_pool != base.by_pool,
        worth_usd_per_month: worth,
        measure: own.measure.clone(),
        at_better,
        at_worse,
    }
}

/// The likely fleet and its demand with some levers moved.
fn moved_fleet(field: &Field<'_>, day: &Day<'_>) -> SimulateInput {
    let mut fleet = field.carried.asked.median.clone();
    fleet.threads = 1;
    for moved in &day.moved {
        match *moved {
            Moved::Demand(classes, shift) => {
                for at in classes {
                    let class = &mut fleet.classes[*at];
                    class.class.hours.iter_mut().for_each(|h| h.drift = h.drift.and(shift));
                    // What caches would find is what is stated, and more or less of it.
                    class.finds_prefixes &= (shift.cache_hit - 1.0).abs() < 1e-9;
                }
            }
            Moved::Steps(pool, times) => {
                let life = &mut fleet.pools[pool].life;
                life.model = life.model.clone().slower(times);
                life.model_when_new = life.model_when_new.take().map(|model| model.slower(times));
            }
            Moved::Startup(_) | Moved::Price(_) => {}
        }
    }
    fleet
}

/// Whether a lever changes what comes to a pool, or how it serves.
fn touches(field: &Field<'_>, day: &Day<'_>, pool: usize) -> bool {
    let fleet = &field.carried.asked.fleet;
    day.moved.iter().any(|moved| match moved {
        Moved::Demand(classes, _) => {
            classes.iter().any(|at| pools_serving(&fleet.classes[*at], fleet).contains(&pool))
        }
        Moved::Steps(own, _) => *own == pool,
        Moved::Startup(_) | Moved::Price(_) => false,
    })
}

/// Replicas that carry the demand of a day, about, pool by pool.
fn needs(field: &Field<'_>, day: &Day<'_>, likely: Option<&[u32]>) -> Result<Vec<u32>, StudyError> {
    let fleet = moved_fleet(field, day);
    let one = |pool: usize| -> Result<u32, StudyError> {
        if let Some(likely) = likely.filter(|_| !touches(field, day, pool)) {
            return Ok(likely[pool]);
        }
        let size = &field.carried.sized[pool];
        // As many as on the likely day, for as much work: to know where to begin.
        let hint = likely.map_or(size.replicas.steady, |likely| {
            let asked = &field.carried.asked;
            let at = (asked.hour, asked.events);
            let more = work(&fleet, pool, at) / work(&asked.median, pool, at);
            let slower = day.moved.iter().fold(1.0, |times, moved| match moved {
                Moved::Steps(own, slower) if *own == pool => times * slower,
                _ => times,
            });
            let times = if more.is_finite() { more * slower } else { 1.0 };
            (f64::from(likely[pool]) * times).round().clamp(1.0, 1e5) as u32
        });
        field.needs(&fleet, pool, hint)
    };
    (0..fleet.pools.len()).map(one).collect()
}

/// What a day would need and cost, and how the planned fleet would do.
fn end(
    field: &Field<'_>,
    day: &Day<'_>,
    carry: Vec<u32>,
    likely: Option<&TornadoEnd>,
) -> Result<TornadoEnd, StudyError> {
    let startup = day.moved.iter().fold(1.0, |times, moved| match moved {
        Moved::Startup(own) => times * own,
        _ => times,
    });
    let price = day.moved.iter().fold(1.0, |times, moved| match moved {
        Moved::Price(own) => times * own,
        _ => times,
    });
    let pools = field.carried.sized.iter().zip(&field.input.plan.pools).zip(&carry);
    let by_pool: Vec<u32> = pools
        .map(|((size, facts), carry)| {
            let own = &size.replicas;
            let warm = match own.warm {
                0 if startup <= 1.0 || facts.fewest == facts.most || size.tiny => 0,
                _ => size.warm.replicas(facts.startup_p90_s * startup),
            };
            carry + (own.reserve() - own.warm) + warm
        })
        .collect();
    let mut fleet = moved_fleet(field, day);
    for (pool, n) in fleet.pools.iter_mut().zip(field.fleets.replicas(PLANNED)) {
        pool.life.replicas = n;
    }
    let peak = field.at_busiest(fleet);
    // Where nothing that is simulated moves, it is the likely day again.
    let simulated = day.moved.iter().any(|m| matches!(m, Moved::Demand(..) | Moved::Steps(..)));
    let (attainment, variable) = match likely {
        Some(likely) if !simulated => (likely.attainment, likely.variable_usd_per_month),
        _ => {
            let (attainment, seen) = field.hosted(&peak)?;
            let tokens = seen.map_or(Some(0.0), |seen| field.variable_usd(&seen));
            (attainment, tokens.map(|usd| usd * field.mean_load() * MONTH))
        }
    };
    let each = field.input.plan.pools.iter().zip(&by_pool);
    let usd = each.map(|(facts, n)| Some(facts.replica_usd_per_hour? * f64::from(*n) * MONTH));
    let nodes = usd.sum::<Option<f64>>();
    Ok(TornadoEnd {
        replicas: by_pool.iter().sum(),
        by_pool,
        usd_per_month: nodes.zip(variable).map(|(nodes, tokens)| (nodes + tokens) * price),
        variable_usd_per_month: variable,
        attainment,
    })
}
