//! What each hour of the horizon needs, read from the service curves of two that were sized.

use plimsoll_plan::Floors;
use plimsoll_units::UsdPerHour;
use plimsoll_workload::Shift;

use super::PlanInput;
use super::sizes::{Asked, PoolSize};
use super::staffing::Staffing;
use plimsoll_load::SimulateInput;
use plimsoll_load::SimulatedClass;
use plimsoll_load::pools_serving;

/// Replicas that carry the demand of each hour, pool by pool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hours {
    /// At the quantile that is planned for.
    pub(crate) planned: Vec<u32>,
    /// At the median.
    pub(crate) median: Vec<u32>,
    /// Floors of the calendar: few windows that hold all of that, and the reserve.
    pub(crate) floors: Floors,
    /// Replicas of each hour that are paid for: by floors of each week.
    pub(crate) kept: Vec<u32>,
}

/// What comes to a pool in an hour, in fresh and output tokens a second.
fn work(classes: &[&SimulatedClass], hour: usize, events: bool) -> f64 {
    classes.iter().map(|c| c.class.expected_tokens(hour, events)).sum()
}

pub(crate) fn hours(input: &PlanInput<'_>, asked: &Asked, pool: usize, size: &PoolSize) -> Hours {
    let own = |fleet: &SimulateInput| -> Vec<SimulatedClass> {
        let all = fleet.classes.iter().filter(|c| pools_serving(c, fleet).contains(&pool));
        all.cloned().collect()
    };
    let (planned, median) = (own(&asked.fleet), own(&asked.median));
    let (planned, median): (Vec<_>, Vec<_>) = (planned.iter().collect(), median.iter().collect());
    let peak = Staffing::new(size.replicas.carry().max(1), size.own.one);
    let at_peak = work(&planned, asked.hour, asked.events);
    // An hour that no event changes has the mix of the busiest of these.
    let plain = size.baseline.map(|(n, one)| {
        let at = work(&planned, input.baseline_hour, false);
        (Staffing::new(n.max(1), one), at)
    });
    let changed = |hour: usize| {
        planned.iter().any(|c| c.class.hours.get(hour).is_some_and(|h| h.shift != Shift::NONE))
    };
    let count = asked.fleet.classes.iter().map(|c| c.class.hours.len()).max().unwrap_or(0);
    let need = |classes: &[&SimulatedClass], hour: usize| {
        let now = work(classes, hour, true);
        let (crew, at) = match plain {
            Some((crew, at)) if !changed(hour) && at > 0.0 => (crew, at),
            _ => (peak, at_peak),
        };
        let n = if at > 0.0 { crew.need(now / at) } else { 0 };
        n.clamp(input.pools[pool].fewest, size.replicas.carry().max(input.pools[pool].fewest))
    };
    let on: Vec<u32> = (0..count).map(|hour| need(&planned, hour)).collect();
    let (reserve, facts) = (size.replicas.reserve(), &input.pools[pool]);
    // Where more are needed than there may be, the month is of those that are needed, as everything else that is said of them.
    let most = match size.replicas.total > facts.most {
        true => size.replicas.total,
        false => facts.most.min(size.replicas.total.max(facts.now)).max(1),
    };
    let with: Vec<u32> = on.iter().map(|n| (n + reserve).min(most)).collect();
    // Where there is no price, hours of replicas are counted.
    let price = facts.replica_usd_per_hour.unwrap_or(1.0);
    let price = UsdPerHour::picos((price * 1e12).round() as u64);
    let horizon = input.classes.iter().map(|class| class.hours.len()).max().unwrap_or(count);
    let floors = Floors::fewest(&with[..horizon.min(count)], WINDOWS, WORTH, price);
    // Week by week, so that what a week costs does not depend on how many are looked at.
    let kept = with
        .chunks(WEEK)
        .flat_map(|week| {
            let floors = Floors::fewest(week, WINDOWS, WORTH, price);
            (0..week.len()).map(move |hour| floors.floor_at(hour)).collect::<Vec<_>>()
        })
        .collect();
    Hours {
        median: (0..count).map(|hour| need(&median, hour)).collect(),
        planned: on,
        floors,
        kept,
    }
}

/// Hours of a week.
const WEEK: usize = 168;
/// Windows of floors at most, and what another must save to be worth it.
const WINDOWS: usize = 8;
const WORTH: f64 = 0.02;
