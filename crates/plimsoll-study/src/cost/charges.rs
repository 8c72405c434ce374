//! What is paid, as far as prices say it.

use plimsoll_cost::{Charge, Devices, Expense, Place, PriceTag, Pricing, Sums, Usage};
use plimsoll_units::Usd;

/// A pool, and what its nodes cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PaidPool {
    /// Its place in [`Usage::places`].
    pub place: u32,
    /// How it is paid.
    pub expense: Expense,
    /// The price of a node, in dollars an hour; none where nobody knows.
    pub node_usd_per_hour: Option<f64>,
    /// Devices of a node.
    pub node_devices: u32,
    /// Devices of a replica.
    pub replica_devices: u64,
    /// Replicas in each hour.
    pub replicas: Vec<u32>,
    /// Of these, those that stand in reserve.
    pub reserve: Vec<u32>,
    /// Sequences that a full replica decodes together.
    pub batch: Option<f64>,
    /// Where the price is from.
    pub source: String,
    /// When it held.
    pub as_of: Option<String>,
    /// How many days ago that was.
    pub age_days: Option<i64>,
    /// Where it holds.
    pub region: Option<String>,
}

impl PaidPool {
    /// Whole nodes for so many replicas.
    fn nodes(&self, replicas: u32) -> u64 {
        let (devices, node) = (self.replica_devices.max(1), u64::from(self.node_devices.max(1)));
        match node / devices {
            0 => u64::from(replicas) * devices.div_ceil(node),
            each => u64::from(replicas).div_ceil(each),
        }
    }
}

/// What is paid besides devices and tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherCosts {
    /// What costs the same every hour, in dollars.
    pub hourly: Vec<(Expense, f64)>,
    /// What a byte costs that leaves.
    pub egress_usd_per_byte: Option<f64>,
    /// Tools: their names, calls, and what one costs.
    pub tools: Vec<(String, f64, f64)>,
    /// Where prices of tokens are from, place by place; none where nobody says.
    pub token_sources: Vec<Option<PriceTag>>,
}

/// List prices change a few times a year.
const OLD_DAYS: i64 = 90;

/// Bytes of a stream that an output token leaves in: an event of the usual API with its envelope. An order of magnitude, assumed and said: nobody measured it.
const BYTES_A_TOKEN: f64 = 200.0;

/// What the period costs by its prices, and what the reader should know.
pub fn charges(
    usage: &Usage,
    pools: &[PaidPool],
    other: &OtherCosts,
) -> (Vec<Charge>, Vec<String>) {
    let hours = usage.period.hours;
    let (mut made, mut notes) = (Vec::new(), Vec::new());
    for pool in pools {
        let name = place(usage, pool.place).map_or_else(String::new, |place| place.name.clone());
        let Some(usd) = pool.node_usd_per_hour else {
            notes.push(format!("nobody knows what the nodes of `{name}` cost: they are not in the books; give `[[prices.node]]` for them"));
            continue;
        };
        if let Some(days) = pool.age_days.filter(|days| *days > OLD_DAYS) {
            notes.push(format!(
                "the price of `{name}`'s nodes is {days} days old: more than {OLD_DAYS} is old"
            ));
        }
        let at = |series: &[u32], hour: usize| series.get(hour).copied().unwrap_or(0);
        let count = usize::try_from(hours).unwrap_or(0);
        let nodes: u64 = (0..count).map(|hour| pool.nodes(at(&pool.replicas, hour))).sum();
        let spare = |hour: usize| {
            let devices =
                pool.nodes(at(&pool.replicas, hour)) * u64::from(pool.node_devices.max(1));
            let used = u64::from(at(&pool.replicas, hour)) * pool.replica_devices;
            devices.saturating_sub(used) as f64 / pool.replica_devices.max(1) as f64
        };
        let series = |of: &[u32]| (0..count).map(|hour| f64::from(at(of, hour))).collect();
        let devices = f64::from(pool.node_devices.max(1));
        made.push(Charge {
            name: format!("pool {name}"),
            expense: pool.expense,
            place: Some(pool.place),
            usd: micros(nodes as f64 * usd),
            devices: Some(Devices {
                per_replica: pool.replica_devices as f64,
                replicas: series(&pool.replicas),
                reserve: series(&pool.reserve),
                spare: (0..count).map(spare).collect(),
                batch: pool.batch,
            }),
            price: Some(PriceTag {
                unit: Some((usd / devices, "device-hour")),
                source: pool.source.clone(),
                as_of: pool.as_of.clone(),
                region: pool.region.clone(),
            }),
            invoiced: false,
        });
    }
    let plain = |name: String,
                 expense: Expense,
                 at: Option<u32>,
                 usd: f64,
                 price: Option<PriceTag>| {
        Charge { name, expense, place: at, usd: micros(usd), devices: None, price, invoiced: false }
    };
    for (i, place) in (0u32..).zip(&usage.places) {
        let sums = used(usage, Some(i));
        let of = other.token_sources.get(i as usize).cloned().flatten();
        match place.pricing {
            Pricing::Tokens(_) if sums.requests > 0.0 => {
                let name = format!("tokens of {}", place.name);
                made.push(plain(name, Expense::ProviderTokens, Some(i), sums.token_usd, of));
                if sums.token_unpriced > 0.0 {
                    notes.push(format!("{:.0} attempts of `{}` have no counts of tokens, so no price: they are not in the books", sums.token_unpriced, place.name));
                }
            }
            Pricing::Unpriced if sums.logged > 0.0 => {
                made.push(logged(&sums, Some(i), &place.name));
            }
            _ => {}
        }
    }
    let nobody = used(usage, None);
    if nobody.logged > 0.0 {
        made.push(logged(&nobody, None, "places that no scenario names"));
    }
    for (expense, usd) in &other.hourly {
        let name = expense.name().to_owned();
        made.push(plain(name, *expense, None, usd * f64::from(hours), typed()));
    }
    if let Some(usd) = other.egress_usd_per_byte {
        let output: f64 = usage.all.cells.values().map(|sums| sums.output).sum();
        made.push(plain(
            "egress".to_owned(),
            Expense::Egress,
            None,
            output * BYTES_A_TOKEN * usd,
            typed(),
        ));
        notes.push(format!(
            "egress is counted at {BYTES_A_TOKEN:.0} bytes an output token, which is assumed"
        ));
    }
    for (name, calls, usd) in &other.tools {
        made.push(plain(format!("tool {name}"), Expense::Tools, None, calls * usd, typed()));
    }
    (made, notes)
}

fn typed() -> Option<PriceTag> {
    Some(PriceTag { unit: None, source: "the scenario".to_owned(), as_of: None, region: None })
}

fn logged(sums: &Sums, place: Option<u32>, name: &str) -> Charge {
    Charge {
        name: format!("{name}, as logged"),
        expense: Expense::ProviderTokens,
        place,
        usd: micros(sums.logged_usd),
        devices: None,
        price: Some(PriceTag {
            unit: None,
            source: "the log itself".to_owned(),
            as_of: None,
            region: None,
        }),
        invoiced: false,
    }
}

/// Whole micro-dollars, the nearest.
pub(super) fn micros(usd: f64) -> Usd {
    Usd::micros((usd * 1e6).round() as i64)
}

/// All that a place was used for.
pub(super) fn used(usage: &Usage, place: Option<u32>) -> Sums {
    let mut sums = Sums::default();
    for (_, cell) in usage.all.cells.iter().filter(|(key, _)| key.place == place) {
        sums.add(cell);
    }
    sums
}

pub(super) fn place(usage: &Usage, at: u32) -> Option<&Place> {
    usage.places.get(usize::try_from(at).ok()?)
}
