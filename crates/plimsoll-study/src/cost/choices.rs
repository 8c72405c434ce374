//! What could be paid instead: tokens for devices, commitments for hours.

use plimsoll_cost::{
    Charge, HourDemand, Pricing, ProviderLimits, TokenTable, Uncertain, Usage,
    build_or_buy as compare, buy,
};

use crate::plan::{Placed, ReserveAsked, failure};

use super::result::{BuyCost, CommitmentAdvice, LimitFill};
use super::{CostInput, charges, usd};

/// Hours of a month, as clouds bill them.
const MONTH: f64 = 730.0;

/// A hosted model that could serve what a pool serves.
#[derive(Clone, Debug, PartialEq)]
pub struct HostedOffer {
    /// The provider, as the scenario calls it.
    pub name: String,
    /// Its prices.
    pub table: TokenTable,
    /// Its limits.
    pub limits: ProviderLimits,
    /// What a request asks for at most, against what it writes: providers that reserve count the former.
    pub reserved_per_output: f64,
}

/// Replicas that could be committed to.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitmentAsked {
    /// The pool.
    pub pool: String,
    /// Replicas that hours ask for, or may.
    pub replicas: Vec<f64>,
    /// What an hour of a replica costs with a commitment.
    pub reserved_usd_per_hour: f64,
    /// Without.
    pub on_demand_usd_per_hour: f64,
}

/// Replicas that the work of each hour fills, and those in reserve beside them; where more or less may come, of each of the spreads, hour by hour.
pub fn replicas_needed(usage: &Usage, place: u32, reserve: u32, spreads: &[Vec<f64>]) -> Vec<f64> {
    let mut hours = vec![0.0; usize::try_from(usage.period.hours).unwrap_or(0)];
    if let Some(Pricing::Devices(work)) = charges::place(usage, place).map(|place| &place.pricing) {
        for (key, sums) in usage.all.cells.iter().filter(|(key, _)| key.place == Some(place)) {
            if let Some(hour) = usize::try_from(key.hour).ok().and_then(|h| hours.get_mut(h)) {
                *hour += sums.work_s(work) / 3600.0;
            }
        }
    }
    let whole = |busy: f64| busy.ceil() + f64::from(reserve);
    if spreads.is_empty() {
        return hours.into_iter().map(whole).collect();
    }
    let each = spreads.iter().flat_map(|spread| {
        let times = spread.iter().copied().chain(std::iter::repeat(1.0));
        hours.iter().zip(times).map(|(busy, times)| whole(busy * times))
    });
    each.collect()
}

/// Of so many replicas, those that are there for the reserve that is asked for: the fewest that leave enough when what may be lost is lost. At least
/// one carries, whatever is asked.
pub fn reserve_within(replicas: u32, asked: &ReserveAsked, placed: Placed) -> u32 {
    let beside = asked.rollout + asked.canary + asked.maintenance_nodes * placed.per_node;
    let fits = |carry: &u32| {
        let lost = failure(*carry, asked.lost, placed).unwrap_or(0);
        carry + lost + beside <= replicas
    };
    let carry = (1..=replicas).rev().find(fits).unwrap_or(1);
    replicas.saturating_sub(carry)
}

/// The demand of every pool on every offer.
pub(super) fn build_or_buy(input: &CostInput, paid: &[Charge]) -> Vec<BuyCost> {
    let usage = &input.usage;
    let hours = usize::try_from(usage.period.hours).unwrap_or(0);
    let mut found = Vec::new();
    for (i, place) in (0u32..).zip(&usage.places) {
        let Pricing::Devices(work) = &place.pricing else { continue };
        let own: Vec<&Charge> =
            paid.iter().filter(|c| c.place == Some(i) && c.expense().is_compute()).collect();
        let cost: f64 = own.iter().map(|charge| usd(charge.usd)).sum();
        let seconds: f64 = own
            .iter()
            .filter_map(|charge| charge.devices.as_ref())
            .map(|devices| devices.replicas.iter().sum::<f64>() * 3600.0)
            .sum();
        if cost <= 0.0 || hours == 0 {
            continue;
        }
        let busy = charges::used(usage, Some(i)).work_s(work);
        let utilisation = if seconds > 0.0 { (busy / seconds).min(1.0) } else { 0.0 };
        for offer in &input.offers {
            let mut demand = vec![HourDemand::default(); hours];
            for (key, sums) in usage.all.cells.iter().filter(|(key, _)| key.place == Some(i)) {
                let Some(hour) = usize::try_from(key.hour).ok().and_then(|h| demand.get_mut(h))
                else {
                    continue;
                };
                hour.add(&HourDemand {
                    requests: sums.requests,
                    fresh: sums.fresh,
                    cached: sums.cached,
                    output: sums.output,
                    reserved_output: sums.output * offer.reserved_per_output,
                });
            }
            let bought = buy(&[(false, demand)], &offer.table, &offer.limits);
            let choice = compare(cost, utilisation, &bought);
            let month = MONTH / hours as f64;
            let cheaper = if choice.own_usd <= choice.bought_usd { "build" } else { "buy" };
            let limits: Vec<LimitFill> = bought
                .limits
                .iter()
                .map(|used| LimitFill {
                    name: used.name,
                    limit: used.limit,
                    peak: used.peak,
                    hour: used.hour,
                    hours_over: used.hours_over,
                })
                .collect();
            found.push(BuyCost {
                provider: offer.name.clone(),
                pool: place.name.clone(),
                own_usd_per_month: choice.own_usd * month,
                bought_usd_per_month: choice.bought_usd * month,
                cheaper,
                break_even_demand: choice.break_even_demand,
                break_even_utilisation: choice.break_even_utilisation,
                utilisation,
                says: says(&place.name, &offer.name, &choice, &limits),
                limits,
            });
        }
    }
    found
}

fn says(
    pool: &str,
    provider: &str,
    choice: &plimsoll_cost::BuildOrBuy,
    limits: &[LimitFill],
) -> String {
    let mut says = match choice.break_even_demand {
        None => format!("tokens of `{provider}` are free, the devices of `{pool}` are not"),
        Some(times) if times > 1.0 => format!(
            "`{provider}` is cheaper than `{pool}` as it is, until {times:.1} times as much is asked for"
        ),
        Some(times) => format!(
            "`{pool}` is cheaper than `{provider}` as long as at least {:.0}% of today's demand comes",
            times * 100.0
        ),
    };
    if let Some(full) = limits.iter().find(|limit| limit.hours_over > 0) {
        says += &format!(
            "; its `{}` of {} a minute is too little in {} hours, by {:.1} times at the worst",
            full.name,
            full.limit,
            full.hours_over,
            full.peak / full.limit as f64
        );
    }
    says
}

/// How many replicas to commit to, given those that hours ask for. Whole ones: whichever of the two neighbours is cheaper.
pub(super) fn commitment(asked: &CommitmentAsked) -> Option<CommitmentAdvice> {
    let demand = Uncertain::of_samples(&asked.replicas)?;
    let (reserved, on_demand) = (asked.reserved_usd_per_hour, asked.on_demand_usd_per_hour);
    let best = demand.commitment(reserved, on_demand);
    let cost = |n: f64| demand.cost(n, reserved, on_demand);
    let (low, high) = (best.quantity.floor(), best.quantity.ceil());
    let whole = if cost(high) < cost(low) { high } else { low };
    let usd = cost(whole);
    let saved = (1.0 - usd / best.none_usd.max(f64::MIN_POSITIVE)) * 100.0;
    let says = match whole > 0.0 {
        true => format!(
            "commit to {whole:.0} replicas of `{}`: hours ask for more {:.0}% of the time, and it saves {saved:.0}%",
            asked.pool,
            best.exceeded * 100.0
        ),
        false => format!("commit to none of `{}`: it would not be cheaper", asked.pool),
    };
    Some(CommitmentAdvice {
        pool: asked.pool.clone(),
        replicas: whole as u32,
        exceeded: best.exceeded,
        reserved_usd_per_hour: reserved,
        on_demand_usd_per_hour: on_demand,
        usd_per_month: usd * MONTH,
        none_usd_per_month: best.none_usd * MONTH,
        all_usd_per_month: best.all_usd * MONTH,
        says,
    })
}
