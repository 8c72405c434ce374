//! How replicas are to follow the demand.

use plimsoll_fleet::Catalog;
use plimsoll_sim::{
    Activation, Behaviour, Change, ScalePolicy, Scaling, ScalingSpec, Select, Signal, TargetKind,
};
use plimsoll_study::SimulatedPool;

use super::{SimulatedSpan, ps, regions_of, routes};
use crate::demand::Demand;
use crate::sections::same_accelerator;
use crate::sections::{self, Autoscaling, Controller, Pool, ScaleSignal, Scenario, SelectPolicy};

/// What decides how many replicas a pool has, and what the reader should know of that.
pub(super) fn of(
    scenario: &Scenario,
    demand: &Demand,
    pool: &Pool,
    simulated: &SimulatedPool,
    quota: Option<&Quota>,
    span: &SimulatedSpan,
) -> (Option<ScalingSpec>, Vec<String>) {
    let Some(own) = &scenario.autoscaling else { return (None, Vec::new()) };
    let name = pool.name.as_str();
    if !own.pools.is_empty() && !own.pools.iter().any(|p| p.as_str() == name) {
        return (None, Vec::new());
    }
    let (fewest, most) = pool.replicas.plan();
    let mut notes = Vec::new();
    let max = quota.map_or(most, |quota| most.min(quota.replicas));
    if max < most && most < 100_000 {
        notes.push(format!("quotas leave pool `{name}` at most {max} replicas"));
    }
    let keda = own.controller == Controller::Keda;
    let min = if keda && fewest == 0 { 0 } else { fewest.max(1) };
    if max <= min && own.pools.is_empty() {
        return (None, notes);
    }
    let Some(target) = own.target else {
        notes.push(format!("the replicas of pool `{name}` stay as they are: `autoscaling.target` is not given, and no plan has set it"));
        return (None, notes);
    };
    let (signal, target) = match own.signal {
        ScaleSignal::QueueDepth => (Signal::QueueDepth, target.get()),
        ScaleSignal::QueueAge => (Signal::QueueAge, target.get()),
        ScaleSignal::InFlight => (Signal::InFlight, target.get()),
        ScaleSignal::FreshTokens => (Signal::FreshTokens, target.get()),
        ScaleSignal::TtftP90 => (Signal::TtftP90, target.get()),
        // What grows when replicas are missing is what is not good.
        ScaleSignal::Goodput => (Signal::NotGood, (1.0 - target.get()).max(1e-3)),
        ScaleSignal::Kv => (Signal::Kv, target.get()),
    };
    let kind = match own.target_kind() {
        sections::TargetKind::AverageValue => TargetKind::AverageValue,
        sections::TargetKind::Value => TargetKind::Value,
    };
    let phases = simulated.life.startup.phases.iter().map(|phase| {
        let when_done = phase.seconds_when_done.as_ref().map_or(0.0, |seconds| seconds.mean());
        phase.done * when_done + (1.0 - phase.done) * phase.seconds.mean()
    });
    let start: f64 = phases.sum();
    if start > span.seconds {
        notes.push(format!(
            "a start of pool `{name}` takes {start:.0} s on average, longer than the {:.0} s that are simulated: no replica that is added helps in time",
            span.seconds
        ));
    }
    let blind = matches!(own.signal, ScaleSignal::TtftP90 | ScaleSignal::Goodput | ScaleSignal::Kv);
    if min == 0 && blind {
        notes.push(format!(
            "a pool without replicas shows no `{}`: once pool `{name}` is empty nothing brings it back",
            own.signal
        ));
    }
    let bound = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let scaling = ScalingSpec {
        scaling: Scaling {
            min: bound(min),
            max: bound(max.max(min).max(1)),
            up: Behaviour {
                tolerance: own.tolerance.get(),
                stabilization: ps(own.up_stabilization),
                policies: policies(
                    own.up_replicas.get_u32(),
                    Some(own.up_percent.get_u32()),
                    ps(own.up_period),
                ),
                select: select(own.up_select),
            },
            down: Behaviour {
                tolerance: own.tolerance.get(),
                stabilization: ps(own.down_stabilization),
                policies: policies(
                    own.down_replicas.get_u32(),
                    own.down_percent.map(|p| p.get_u32()),
                    ps(own.down_period),
                ),
                select: select(own.down_select),
            },
            activation: (keda && min == 0).then(|| Activation {
                polling: ps(own.polling),
                cooldown: ps(own.cooldown),
                cooldown_initial: 0,
            }),
        },
        signal,
        target: target.max(1e-3),
        kind,
        activation: own.activation.map_or(0.0, |a| a.get()),
        period: ps(own.period),
        delay: ps(own.scrape_delay),
        floors: floors(scenario, demand, pool, own, span),
    };
    (Some(scaling), notes)
}

fn policies(replicas: u32, percent: Option<u32>, period: u64) -> Vec<ScalePolicy> {
    let replicas = ScalePolicy { change: Change::Replicas(replicas), period };
    let percent = percent.map(|p| ScalePolicy { change: Change::Percent(p), period });
    std::iter::once(replicas).chain(percent).collect()
}

fn select(policy: SelectPolicy) -> Select {
    match policy {
        SelectPolicy::Max => Select::Max,
        SelectPolicy::Min => Select::Min,
        SelectPolicy::Disabled => Select::Disabled,
    }
}

/// What the quotas of a pool's regions leave it.
pub(super) struct Quota {
    /// Replicas that it may have.
    replicas: u64,
    /// Those of them for which devices are free.
    pub(super) free: u64,
    /// How long devices for the others take to come.
    pub(super) lead: u64,
}

/// What the quotas of a pool's regions leave it, where they have any.
pub(super) fn quota(
    scenario: &Scenario,
    catalog: &Catalog,
    pool: &Pool,
    devices: u64,
) -> Option<Quota> {
    let own = regions_of(scenario, pool).into_iter().filter_map(|at| scenario.region.get(at));
    let kinds = own
        .flat_map(|region| &region.accelerators)
        .filter(|own| same_accelerator(catalog, &own.accelerator, &pool.accelerator));
    kinds.fold(None, |quota: Option<Quota>, own| {
        let (most, lead) = (own.quota.get() / devices.max(1), ps(own.lead_time));
        let free = own.available.map_or(most, |n| n.get() / devices.max(1));
        Some(match quota {
            None => Quota { replicas: most, free, lead },
            Some(before) => Quota {
                replicas: before.replicas + most,
                free: before.free + free,
                lead: before.lead.max(lead),
            },
        })
    })
}

/// What replicas are asked not to go below, from when on: by the calendar, and by what is expected to come.
fn floors(
    scenario: &Scenario,
    demand: &Demand,
    pool: &Pool,
    own: &Autoscaling,
    span: &SimulatedSpan,
) -> Vec<(u64, u32)> {
    if own.schedule.is_empty() && own.forecast.is_none() {
        return Vec::new();
    }
    let name = pool.name.as_str();
    // The share of each class that comes here.
    let shares: Vec<f64> = demand
        .classes
        .iter()
        .map(|class| {
            let own = scenario.class.iter().find(|c| c.name.as_str() == class.name);
            let here = |to: &str| (to == name).then_some(plimsoll_sim::Target::Pool(0));
            let all = |to: &str| here(to).or(Some(plimsoll_sim::Target::Pool(1)));
            own.map_or(0.0, |own| {
                let (routes, _) = routes(scenario, own, &all);
                let here = routes.iter().filter(|r| r.to == plimsoll_sim::Target::Pool(0));
                here.map(|r| r.share).sum()
            })
        })
        .collect();
    let rate = |hour: usize| -> f64 {
        let each = demand.classes.iter().zip(&shares);
        each.map(|(class, share)| {
            class.hours.get(hour).map_or(0.0, |h| h.rate * h.shift.rate) * share
        })
        .sum()
    };
    let mut floors: Vec<(u64, u32)> = Vec::new();
    let mut from = 0.0;
    for spell in &span.spells {
        // A minute is finer than anything that a floor follows.
        let mut at = from;
        while at < spell.until {
            let into = (spell.hour as f64) * 3600.0 + (at - from).min(3599.0);
            let of_day = u64::from(demand.local_hour(spell.hour));
            let schedule = own
                .schedule
                .iter()
                .filter(|s| s.pool.as_str() == name)
                .filter(|s| s.holds(of_day))
                .map(|s| s.replicas.get_u32());
            let forecast = own.forecast.as_ref().map(|f| {
                let hour = ((into + f.lead.get()) / 3600.0) as usize;
                (rate(hour) / f.tasks_per_replica.get()).ceil() as u32
            });
            let floor = schedule.chain(forecast).max().unwrap_or(0);
            if floors.last().is_none_or(|(_, last)| *last != floor) {
                floors.push(((at * 1e12) as u64, floor));
            }
            at += 60.0;
        }
        from = spell.until;
    }
    floors
}
