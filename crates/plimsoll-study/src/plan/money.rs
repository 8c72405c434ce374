//! What a plan costs hour by hour, when a cap trips, and what must be ordered by when.

use std::collections::BTreeMap;

use plimsoll_workload::Class;
use serde::Serialize;

use super::hours::Hours;
use super::place::Fleet;
use super::sizes::PoolSize;
use super::{MONTH, PlanInput, nodes};
use plimsoll_load::Span;

/// What may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Caps {
    /// In a month, in dollars.
    pub monthly_usd: Option<f64>,
    /// In an hour.
    pub hourly_usd: Option<f64>,
    /// A warning comes at this share of a cap.
    pub warn_at: f64,
}

/// What it costs, and when that is too much.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BudgetPlan {
    /// At the busiest hour with all of the reserve; none where a price is not known.
    pub peak_usd_per_hour: Option<f64>,
    /// Whether replicas follow the calendar, as is advised, or stay as they are.
    pub follows: bool,
    /// In a month of 730 hours, with the floors of the calendar and all of the reserve where replicas follow them.
    pub usd_per_month: Option<f64>,
    /// In a month, were today's replicas kept, without hosted tokens; none where a price is not known.
    pub today_usd_per_month: Option<f64>,
    /// From demand at its median to the planned one.
    pub interval: Option<Span>,
    /// In a month, were all planned replicas kept all of the time.
    pub static_usd_per_month: Option<f64>,
    /// Hour by hour of the horizon.
    pub by_hour: Vec<HourCost>,
    /// What may be spent or used, and when that is not enough.
    pub caps: Vec<Cap>,
    /// What must be ordered.
    pub orders: Vec<Order>,
    /// What a faster start is worth.
    pub startup: Vec<StartupPrice>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// An hour of the horizon.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HourCost {
    /// Counted from the start of the horizon.
    pub hour: usize,
    /// Replicas of all pools, reserve included, pool by pool.
    pub replicas: Vec<u32>,
    /// Nodes of them.
    pub nodes: u64,
    /// What they cost.
    pub usd: Option<f64>,
    /// The same were the demand at its median.
    pub usd_median: Option<f64>,
    /// Of these, hosted tokens.
    pub provider_usd: Option<f64>,
}

/// Something that may not be exceeded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cap {
    /// `budget.monthly`, `budget.hourly`, a quota, a provider's limit.
    pub name: String,
    /// How much it is.
    pub limit: f64,
    /// Of what.
    pub unit: &'static str,
    /// The most that the horizon asks for; none where a price is missing.
    pub peak: Option<f64>,
    /// When it trips; none where it does not within a month.
    pub trips_at: Option<String>,
    /// The same, counted in hours from the start of the horizon.
    #[serde(skip)]
    pub trips_hour: Option<usize>,
    /// When its warning comes.
    pub warns_at: Option<String>,
    /// Whether it trips before the replicas of today are too few.
    pub before_capacity: Option<bool>,
    /// What was counted.
    pub why: String,
}

/// Devices that must be ordered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order {
    /// The device.
    pub accelerator: String,
    /// Where.
    pub region: String,
    /// How many more than are on hand.
    pub devices: u64,
    /// From when on they are needed.
    pub needed_at: String,
    /// How long they take to come.
    pub lead_time_s: f64,
    /// By when they must be ordered.
    pub order_by: String,
    /// Whether that has passed, `as_of` being today.
    pub too_late: bool,
}

/// What a faster start is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StartupPrice {
    /// The pool.
    pub pool: String,
    /// How long a start takes, nine times in ten.
    pub startup_p90_s: f64,
    /// How long it would take with everything kept that can be.
    pub startup_kept_p90_s: f64,
    /// Replicas that need not stand ready then.
    pub replicas_saved: u32,
    /// What these cost in a month.
    pub usd_saved_per_month: Option<f64>,
    /// In a sentence.
    pub says: String,
}

/// Hours of a month, whole.
const MONTH_HOURS: usize = 730;
const WEEK: usize = 168;

/// What a hosted model is used for at the peak, a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProviderUse {
    pub(crate) calls: f64,
    pub(crate) prompt: f64,
    pub(crate) cached: f64,
    pub(crate) output: f64,
    /// Calls at once.
    pub(crate) at_once: f64,
}

/// What is asked of hosted models at the peak, and what of that they serve.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hosted {
    /// As if no limit refused any of it: what limits are held against.
    pub(crate) asked: Vec<ProviderUse>,
    /// What is served, and paid for.
    pub(crate) served: Vec<ProviderUse>,
}

/// What the tokens of a hosted model cost, in dollars each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPrices {
    /// A prompt token.
    pub input: f64,
    /// One that was cached.
    pub cached: f64,
    /// An output token.
    pub output: f64,
}

/// What is paid for: the nodes of the programme, or those of pools by themselves where there is none.
struct Bill<'a> {
    input: &'a PlanInput<'a>,
    sizes: &'a [PoolSize],
    fleet: Option<&'a Fleet>,
}

/// Nodes of an hour.
struct Rent {
    nodes: u64,
    usd: Option<f64>,
    /// Devices of whole nodes by region and accelerator.
    devices: BTreeMap<(String, String), u64>,
}

impl Bill<'_> {
    fn hour(&self, replicas: &dyn Fn(usize) -> u32) -> Rent {
        let mut rent = Rent { nodes: 0, usd: Some(0.0), devices: BTreeMap::new() };
        let mut add = |region: &str, accelerator: &str, nodes: u64, each: u64, usd: Option<f64>| {
            rent.nodes += nodes;
            let usd = if nodes == 0 { Some(0.0) } else { usd.map(|usd| usd * nodes as f64) };
            rent.usd = rent.usd.zip(usd).map(|(sum, usd)| sum + usd);
            *rent.devices.entry((region.to_owned(), accelerator.to_owned())).or_default() +=
                nodes * each;
        };
        let Some(fleet) = self.fleet else {
            for (i, facts) in self.input.pools.iter().enumerate() {
                let region = facts.regions.first().map_or("", |at| &self.input.fleet.regions[*at]);
                let n = nodes(replicas(i), facts);
                let each = u64::from(facts.node_devices);
                add(region, &facts.accelerator, n, each, facts.node_usd_per_hour);
            }
            return rent;
        };
        for row in &fleet.nodes {
            let here = fleet.placements.iter().filter(|placed| {
                (&placed.region, &placed.accelerator, &placed.price_mode)
                    == (&row.region, &row.accelerator, &row.price_mode)
            });
            let (mut used, mut all) = (0.0, true);
            for placed in here {
                let pool = self.input.fleet.pools.iter().position(|p| p.name == placed.pool);
                let Some(pool) = pool else { continue };
                let total = self.sizes[pool].replicas.total;
                let n = replicas(pool).min(total);
                all &= n == total;
                // Whole replicas of each placement, as evenly as they were placed.
                let each = placed.devices as f64 / placed.replicas.max(1) as f64;
                let share = f64::from(n) / f64::from(total.max(1)) * placed.replicas as f64;
                used += share.ceil() * each;
            }
            let needed = (used / row.devices_per_node as f64 - 1e-6).ceil().max(0.0) as u64;
            let n = if all { row.nodes } else { needed.min(row.nodes) };
            add(&row.region, &row.accelerator, n, row.devices_per_node, row.node_usd_per_hour);
        }
        rent
    }
}

pub(crate) fn budget(
    input: &PlanInput<'_>,
    sizes: &[PoolSize],
    (horizon, hours): (&[Hours], &[Hours]),
    (fleet, hosted): (Option<&Fleet>, &Hosted),
) -> BudgetPlan {
    let classes = input.month.as_ref().map_or(input.classes, |[planned, _]| planned);
    let count = classes.iter().map(|class| class.hours.len()).max().unwrap_or(0);
    let shown = input.classes.iter().map(|class| class.hours.len()).max().unwrap_or(0);
    let bill = Bill { input, sizes, fleet };
    let rented = Rented::new(input, classes, hosted);
    let follows = advised(sizes, horizon);
    let kept = |pool: usize, hour: usize| match follows && !input.pools[pool].owned {
        true => hours[pool].kept.get(hour).copied().unwrap_or(0),
        false => sizes[pool].replicas.total,
    };
    // Were the demand at its median, as much of what is kept would be needed.
    let median = |pool: usize, hour: usize| {
        let (planned, median) = (hours[pool].planned[hour], hours[pool].median[hour]);
        kept(pool, hour).saturating_sub(planned.saturating_sub(median))
    };
    let mut devices: Vec<BTreeMap<(String, String), u64>> = Vec::new();
    let mut by_hour: Vec<HourCost> = (0..count)
        .map(|hour| {
            let rent = bill.hour(&|pool| kept(pool, hour));
            let low = bill.hour(&|pool| median(pool, hour));
            devices.push(rent.devices);
            let tokens = rented.usd(hour);
            let with = |usd: Option<f64>| usd.zip(tokens).map(|(nodes, tokens)| nodes + tokens);
            HourCost {
                hour,
                nodes: rent.nodes,
                replicas: (0..sizes.len()).map(|pool| kept(pool, hour)).collect(),
                usd: with(rent.usd),
                usd_median: with(low.usd),
                provider_usd: tokens,
            }
        })
        .collect();
    let months = Months { count };
    let usd_per_month = months.dearest(&by_hour, &|hour| hour.usd);
    let median_month = months.dearest(&by_hour, &|hour| hour.usd_median);
    let peak = bill.hour(&|pool| sizes[pool].replicas.total).usd;
    let tokens = (0..shown)
        .map(|hour| rented.usd(hour))
        .try_fold(0.0, |most, usd| Some(f64::max(most, usd?)));
    let peak_usd_per_hour = peak.zip(tokens).map(|(nodes, tokens)| nodes + tokens);
    // That the demand is between its median and what is planned for has this probability.
    let interval = usd_per_month.zip(median_month).map(|(high, low)| Span {
        low: low.min(high),
        high,
        level: (input.demand_quantile - 0.5).max(0.0),
        n: input.fleet.runs as usize,
    });
    let mut notes = Vec::new();
    notes.push(match count < MONTH_HOURS {
        true => format!(
            "a month is the forecast and then its last {} again and again",
            if count >= WEEK { "seven days".to_owned() } else { format!("{count} hours") }
        ),
        false => "a month is the dearest 730 hours, events in force until they end".to_owned(),
    });
    if usd_per_month.is_none() {
        notes.push("a price is missing, so no cap on money can be checked".to_owned());
    }
    let short = (0..shown).find(|hour| {
        (0..sizes.len()).any(|pool| horizon[pool].planned[*hour] > input.pools[pool].now)
    });
    let mut caps = money_caps(input, &by_hour, &months, short);
    caps.extend(rented.caps(shown, short));
    let quota = quota_caps(input, &devices[..shown.min(devices.len())], short);
    by_hour.truncate(shown);
    caps.extend(quota.0);
    BudgetPlan {
        follows,
        peak_usd_per_hour,
        usd_per_month,
        today_usd_per_month: if input.pools.is_empty() { usd_per_month } else { today(input) },
        interval,
        static_usd_per_month: peak_usd_per_hour.map(|usd| usd * MONTH),
        caps,
        orders: quota.1,
        startup: startup(input, sizes),
        by_hour,
        notes,
    }
}

/// A month of today's nodes.
fn today(input: &PlanInput<'_>) -> Option<f64> {
    let each = input.pools.iter().map(|facts| match facts.now {
        0 => Some(0.0),
        now => Some(nodes(now, facts) as f64 * facts.node_usd_per_hour?),
    });
    each.sum::<Option<f64>>().map(|usd| usd * MONTH)
}

/// Whether replicas that follow the calendar save enough to be worth it.
pub(crate) fn advised(sizes: &[PoolSize], hours: &[Hours]) -> bool {
    saves(sizes, hours) > WORTH_FOLLOWING
}

/// The share of the replica hours of a fixed fleet that the calendar saves.
pub(crate) fn saves(sizes: &[PoolSize], hours: &[Hours]) -> f64 {
    let (mut fixed, mut kept) = (0.0, 0.0);
    for (size, own) in sizes.iter().zip(hours).filter(|(size, _)| !size.tiny) {
        fixed += f64::from(size.replicas.total) * own.kept.len() as f64;
        kept += own.kept.iter().map(|n| f64::from(*n)).sum::<f64>();
    }
    if fixed > 0.0 { 1.0 - kept / fixed } else { 0.0 }
}

/// Less than this is not worth an autoscaler.
const WORTH_FOLLOWING: f64 = 0.05;

/// Months of some hours: 730 of them in a row. Where there are fewer, the last week comes again.
struct Months {
    count: usize,
}

impl Months {
    fn at(&self, hour: usize) -> usize {
        let week = WEEK.min(self.count);
        if hour < self.count || week == 0 {
            return hour;
        }
        self.count - week + (hour - self.count) % week
    }

    /// What the 730 hours until the end of each hour cost, from the first hour on.
    fn sums(
        &self,
        by_hour: &[HourCost],
        of: &dyn Fn(&HourCost) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        let usd: Option<Vec<f64>> =
            (0..self.count.max(MONTH_HOURS)).map(|hour| of(by_hour.get(self.at(hour))?)).collect();
        let usd = usd?;
        let mut sum = 0.0;
        let sums = usd.iter().enumerate().map(|(hour, own)| {
            sum += own - if hour >= MONTH_HOURS { usd[hour - MONTH_HOURS] } else { 0.0 };
            sum
        });
        Some(sums.collect())
    }

    /// The dearest month.
    fn dearest(&self, by_hour: &[HourCost], of: &dyn Fn(&HourCost) -> Option<f64>) -> Option<f64> {
        self.sums(by_hour, of).map(|sums| sums.into_iter().fold(0.0, f64::max))
    }
}

fn before(trips: Option<usize>, short: Option<usize>) -> Option<bool> {
    trips.map(|trips| short.is_none_or(|short| trips < short))
}

/// A cap that trips where something is first above it.
fn cap(
    input: &PlanInput<'_>,
    (name, unit, why): (String, &'static str, &str),
    limit: f64,
    peak: Option<f64>,
    over: &dyn Fn(f64) -> Option<usize>,
    short: Option<usize>,
) -> Cap {
    let (trips, warns) = (over(limit), over(limit * input.caps.warn_at));
    Cap {
        name,
        limit,
        unit,
        peak,
        trips_at: trips.map(|hour| (input.label)(hour)),
        trips_hour: trips,
        warns_at: warns.map(|hour| (input.label)(hour)),
        before_capacity: before(trips, short),
        why: why.to_owned(),
    }
}

fn money_caps(
    input: &PlanInput<'_>,
    by_hour: &[HourCost],
    months: &Months,
    short: Option<usize>,
) -> Vec<Cap> {
    let mut caps = Vec::new();
    if let Some(limit) = input.caps.monthly_usd {
        let sums = months.sums(by_hour, &|hour| hour.usd);
        let over = |limit: f64| sums.as_ref()?.iter().position(|sum| *sum > limit);
        let peak = months.dearest(by_hour, &|hour| hour.usd);
        let why = "nodes and hosted tokens of 730 hours, hour by hour, at planned demand, events in force until they end";
        caps.push(cap(
            input,
            ("budget.monthly".to_owned(), "USD a month", why),
            limit,
            peak,
            &over,
            short,
        ));
    }
    if let Some(limit) = input.caps.hourly_usd {
        let over =
            |limit: f64| by_hour.iter().position(|hour| hour.usd.is_some_and(|usd| usd > limit));
        let peak = by_hour
            .iter()
            .map(|hour| hour.usd)
            .try_fold(0.0, |most, usd| Some(f64::max(most, usd?)));
        let why = "nodes and hosted tokens of the hour, reserve included";
        caps.push(cap(
            input,
            ("budget.hourly".to_owned(), "USD an hour", why),
            limit,
            peak,
            &over,
            short,
        ));
    }
    caps
}

/// Hosted models, hour by hour: what was sent to them at the peak, with all stages, retries and fallbacks, and as much less as less comes.
struct Rented<'a> {
    input: &'a PlanInput<'a>,
    hosted: &'a Hosted,
    /// What comes in each hour against the peak.
    load: Vec<f64>,
}

impl<'a> Rented<'a> {
    fn new(input: &'a PlanInput<'a>, classes: &[Class], hosted: &'a Hosted) -> Self {
        let count = classes.iter().map(|class| class.hours.len()).max().unwrap_or(0);
        let work = |hour: usize, events: bool| -> f64 {
            classes.iter().map(|class| class.expected_tokens(hour, events)).sum()
        };
        let peak = match input.launch_hour {
            Some(hour) => work(hour, true),
            None => work(input.baseline_hour, false),
        };
        let load = (0..count).map(|hour| if peak > 0.0 { work(hour, true) / peak } else { 0.0 });
        Self { input, hosted, load: load.collect() }
    }

    /// What the tokens of an hour cost; none where a model that is used has no price.
    fn usd(&self, hour: usize) -> Option<f64> {
        let mut each =
            self.hosted.served.iter().zip(&self.input.token_prices).map(|(own, price)| {
                if own.calls <= 0.0 {
                    return Some(0.0);
                }
                let price = price.as_ref()?;
                let fresh = (own.prompt - own.cached).max(0.0);
                let second =
                    fresh * price.input + own.cached * price.cached + own.output * price.output;
                Some(second * 3600.0 * self.load.get(hour)?)
            });
        // Of no models, nothing, and not less.
        each.try_fold(0.0, |sum, usd| Some(sum + usd?))
    }

    fn caps(&self, count: usize, short: Option<usize>) -> Vec<Cap> {
        let mut caps = Vec::new();
        let why = "requests and tokens of the busiest hour that ask for it, simulated as if no limit refused any, with stages and fallbacks; as much less in other hours as less comes";
        for ((name, spec), own) in self.input.fleet.providers.iter().zip(&self.hosted.asked) {
            let prompt = if spec.counts_cached { own.prompt } else { own.prompt - own.cached };
            let limits = [
                ("rpm", spec.calls, "requests a minute", own.calls),
                ("tpm", spec.tokens, "tokens a minute", prompt + own.output),
                ("itpm", spec.prompt, "prompt tokens a minute", prompt),
                ("otpm", spec.output, "output tokens a minute", own.output),
                ("concurrency", spec.at_once, "requests at once, mean", own.at_once / 60.0),
            ];
            for (key, limit, unit, second) in limits {
                let Some(limit) = limit.map(|limit| limit as f64) else { continue };
                let used =
                    |hour: usize| second * 60.0 * self.load.get(hour).copied().unwrap_or(0.0);
                let peak = (0..count).map(used).fold(0.0, f64::max);
                let over = |limit: f64| (0..count).find(|hour| used(*hour) > limit);
                let named = (format!("provider.{name}.{key}"), unit, why);
                caps.push(cap(self.input, named, limit, Some(peak), &over, short));
            }
        }
        caps
    }
}

/// Quotas against devices hour by hour, and what must be ordered of those that are not free.
fn quota_caps(
    input: &PlanInput<'_>,
    devices: &[BTreeMap<(String, String), u64>],
    short: Option<usize>,
) -> (Vec<Cap>, Vec<Order>) {
    let (mut caps, mut orders): (Vec<Cap>, Vec<Order>) = (Vec::new(), Vec::new());
    for place in &input.places {
        let Some(quota) = place.quota_devices else { continue };
        let key = (input.fleet.regions[place.region].clone(), place.accelerator.clone());
        let name = format!("quota of {} in {}", key.1, key.0);
        let at = |hour: usize| devices[hour].get(&key).copied().unwrap_or(0);
        let peak = (0..devices.len()).map(at).max().unwrap_or(0);
        if peak == 0 || caps.iter().any(|cap| cap.name == name) {
            continue;
        }
        let over = |limit: f64| (0..devices.len()).find(|hour| at(*hour) as f64 > limit);
        let why = "devices of whole nodes, reserve included";
        caps.push(cap(
            input,
            (name, "devices", why),
            quota as f64,
            Some(peak as f64),
            &over,
            short,
        ));
        // What runs today is held already.
        let held: u64 = input
            .pools
            .iter()
            .filter(|facts| {
                facts.accelerator == place.accelerator && facts.regions.contains(&place.region)
            })
            .map(|facts| {
                let here = facts.now.div_ceil(facts.placed.regions.max(1));
                nodes(here, facts) * u64::from(facts.node_devices)
            })
            .sum();
        let on_hand = held.saturating_add(place.free_devices.unwrap_or(quota)).min(quota.max(held));
        let needed = (0..devices.len()).find(|hour| at(*hour) > on_hand);
        let missing = peak.min(quota).saturating_sub(on_hand);
        if let Some(hour) = needed.filter(|_| place.lead_time_s > 0.0 && missing > 0) {
            // Rounded to whole hours, earlier rather than later.
            let lead = (place.lead_time_s / 3600.0).ceil();
            orders.push(Order {
                accelerator: key.1,
                region: key.0,
                devices: missing,
                needed_at: (input.label)(hour),
                lead_time_s: place.lead_time_s,
                order_by: (input.before)(hour, lead),
                too_late: hour as f64 + input.hours_until_start < lead,
            });
        }
    }
    (caps, orders)
}

fn startup(input: &PlanInput<'_>, sizes: &[PoolSize]) -> Vec<StartupPrice> {
    let mut prices = Vec::new();
    for (i, (facts, size)) in input.pools.iter().zip(sizes).enumerate() {
        let (slow, fast) = (facts.startup_p90_s, facts.startup_cached_p90_s);
        let saved = size.replicas.warm.saturating_sub(size.warm.replicas(fast));
        if size.tiny || fast >= slow || size.warm.ramp <= 0.0 {
            continue;
        }
        let usd = facts.replica_usd_per_hour.map(|usd| usd * f64::from(saved) * MONTH);
        let name = &input.fleet.pools[i].name;
        let money = usd.map_or(String::new(), |usd| format!(", ${usd:.0} a month"));
        let says = match saved {
            0 => format!(
                "cutting the start of `{name}` from {slow:.0} s to {fast:.0} s saves no whole replica: demand grows by {:.2} replicas an hour at most",
                size.warm.ramp
            ),
            n => format!(
                "cutting the start of `{name}` from {slow:.0} s to {fast:.0} s saves {n} {}{money}",
                if n == 1 { "replica" } else { "replicas" }
            ),
        };
        prices.push(StartupPrice {
            pool: name.clone(),
            startup_p90_s: slow,
            startup_kept_p90_s: fast,
            replicas_saved: saved,
            usd_saved_per_month: usd,
            says,
        });
    }
    prices
}
