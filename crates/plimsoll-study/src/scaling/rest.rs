//! The hours that are not simulated, as the service curve tells them.

use serde::Serialize;

use super::check::{Basis, PoolCheck, Stretch};

/// What the rest of the horizon takes, by the replicas that the service curve says each hour needs. Nothing of it is simulated: bursts within an hour are not in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RestOfHorizon {
    /// Always the service curve.
    pub from: Basis,
    /// Hours that are not simulated.
    pub hours: f64,
    /// The plan's replicas all the time.
    pub static_plan: RestWay,
    /// The calendar alone.
    pub floors: RestWay,
    /// The calendar, and what signals add, with what starts and slow leaving take.
    pub policy: RestWay,
    /// What is needed, and no more.
    pub oracle: RestWay,
}

/// What one way of having replicas takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RestWay {
    /// Hours of replicas.
    pub replica_hours: f64,
    /// Their price; none where a pool has none.
    pub cost_usd: Option<f64>,
    /// Minutes of hours in which a pool has fewer than it needs.
    pub slo_minutes_missed: f64,
}

/// What the hours beside those that were simulated take; none where there are none.
pub(super) fn rest(pools: &[PoolCheck], stretch: &Stretch) -> Option<RestOfHorizon> {
    let hours = pools.iter().map(|pool| pool.need_by_hour.len()).max().unwrap_or(0);
    // The part of each hour that is left.
    let left: Vec<f64> =
        (0..hours).map(|hour| (1.0 - stretch.seconds_of(hour) / 3600.0).clamp(0.0, 1.0)).collect();
    let all: f64 = left.iter().sum();
    if all <= 0.0 {
        return None;
    }
    let way = |of: &dyn Fn(&PoolCheck, usize) -> u32, extra: &dyn Fn(&PoolCheck) -> f64| {
        let mut way = RestWay { cost_usd: Some(0.0), ..RestWay::default() };
        for pool in pools {
            let own: f64 = (0..hours).map(|hour| f64::from(of(pool, hour)) * left[hour]).sum();
            let own = own + extra(pool);
            way.replica_hours += own;
            let price = pool.price_usd_per_replica_hour;
            way.cost_usd = way.cost_usd.zip(price).map(|(sum, price)| sum + own * price);
        }
        let short = |hour: &usize| {
            let has = |pool: &PoolCheck| of(pool, *hour) < pool.need(*hour);
            pools.iter().any(has)
        };
        way.slo_minutes_missed =
            (0..hours).filter(short).fold(0.0, |sum, hour| sum + 60.0 * left[hour]);
        way
    };
    // What is on its way is paid for, and so is what leaves late.
    let moves = |pool: &PoolCheck| {
        let Some(policy) = &pool.policy else { return 0.0 };
        let seconds = (1..hours).map(|hour| {
            let (before, now) = (pool.by_policy(hour - 1), pool.by_policy(hour));
            let rise = f64::from(now.saturating_sub(before));
            let fall = f64::from(before.saturating_sub(now));
            let leaving = policy.down.period_s * fall * (fall - 1.0).max(0.0) / 2.0;
            let late = fall * policy.down.stabilisation_s + leaving;
            (rise * policy.floors_lead_s + late) * left[hour]
        });
        seconds.sum::<f64>() / 3600.0
    };
    Some(RestOfHorizon {
        from: Basis::ServiceCurve,
        hours: all,
        static_plan: way(&|pool, _| pool.planned_replicas, &|_| 0.0),
        floors: way(&PoolCheck::by_calendar, &|_| 0.0),
        policy: way(&PoolCheck::by_policy, &moves),
        oracle: way(&PoolCheck::need, &|_| 0.0),
    })
}
