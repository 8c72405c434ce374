//! What a node costs, by whom and where: the scenario's own prices, or the catalogue's with its discount.

use plimsoll_fleet::Catalog;
use plimsoll_units::UsdPerHour;

use crate::sections::{NodeRate, Owned, PriceMode, Region, Scenario};

/// What a node is to be had for.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The node, as the catalogue calls it; none where a price is of a device.
    pub instance: Option<String>,
    /// Devices in it.
    pub devices: u32,
    /// How it is paid.
    pub mode: PriceMode,
    /// Its price, all of it.
    pub node_hour: UsdPerHour,
    /// Where the price holds.
    pub region: String,
    /// Where it was read.
    pub source: String,
    /// When it held; unknown where nobody says.
    pub as_of: Option<String>,
    /// Whether it is in the scenario.
    pub own: bool,
}

impl Offer {
    /// The price of one of its devices, in dollars an hour.
    pub fn device_hour(&self) -> f64 {
        self.node_hour.get_picos() as f64 / 1e12 / f64::from(self.devices.max(1))
    }
}

/// Devices of a node where nothing says it: those of most servers.
const NODE_DEVICES: u32 = 8;

/// The cheapest offer of a device in a region, in each of the modes; the region is none where a scenario has none, and then it is the cheapest anywhere.
pub fn offers(
    scenario: &Scenario,
    catalog: &Catalog,
    accelerator: &str,
    instance: Option<&str>,
    region: Option<&Region>,
) -> Vec<Offer> {
    let name = catalog.accelerator(accelerator).map_or(accelerator, |a| a.name.as_str());
    let modes = [PriceMode::OnDemand, PriceMode::Reserved, PriceMode::Spot];
    let mut found: Vec<Offer> = Vec::new();
    for mode in modes {
        // What the scenario says of a price is what its user pays.
        let own = typed(scenario, catalog, name, instance, region, mode);
        let best = cheapest(own)
            .or_else(|| cheapest(listed(scenario, catalog, name, instance, region, mode)));
        found.extend(best);
    }
    let owned = scenario.costs.iter().flat_map(|costs| &costs.owned);
    let owned = owned.filter(|own| same(catalog, own.accelerator.as_str(), name));
    found.extend(owned.map(|own| written_off(catalog, own, name)));
    found
}

fn same(catalog: &Catalog, one: &str, name: &str) -> bool {
    catalog.accelerator(one).map_or(one, |a| a.name.as_str()) == name
}

fn cheapest(offers: Vec<Offer>) -> Option<Offer> {
    offers.into_iter().reduce(
        |best, next| {
            if next.device_hour() < best.device_hour() { next } else { best }
        },
    )
}

fn typed(
    scenario: &Scenario,
    catalog: &Catalog,
    name: &str,
    instance: Option<&str>,
    region: Option<&Region>,
    mode: PriceMode,
) -> Vec<Offer> {
    let rates = scenario.prices.iter().flat_map(|prices| &prices.node);
    let of = |rate: &NodeRate| -> Option<Offer> {
        let price = match mode {
            PriceMode::OnDemand => rate.on_demand,
            PriceMode::Reserved => rate.reserved,
            PriceMode::Spot => rate.spot,
            PriceMode::Owned => None,
        }?;
        let there = match (&rate.region, region) {
            (Some(own), Some(region)) => is_region(region, own),
            _ => true,
        };
        if !there {
            return None;
        }
        let named = rate.instance.as_ref().and_then(|i| catalog.instance(i.as_str()).ok());
        let (own, devices, node_hour) = match (named, &rate.accelerator) {
            (Some(node), _) => {
                let asked = instance.is_none_or(|asked| asked == node.name);
                if node.accelerator != name || !asked {
                    return None;
                }
                (Some(node.name.clone()), node.count, price)
            }
            (None, Some(device)) if same(catalog, device.as_str(), name) => {
                let node = instance.and_then(|asked| catalog.instance(asked).ok());
                let devices = node.map_or(NODE_DEVICES, |node| node.count);
                (node.map(|n| n.name.clone()), devices, price.times(u64::from(devices)))
            }
            _ => return None,
        };
        Some(Offer {
            instance: own,
            devices,
            mode,
            node_hour,
            region: rate.region.clone().unwrap_or_else(|| "everywhere".to_owned()),
            source: rate.source.clone(),
            as_of: rate.as_of.map(|day| day.date().to_string()),
            own: true,
        })
    };
    rates.filter_map(of).collect()
}

fn listed(
    scenario: &Scenario,
    catalog: &Catalog,
    name: &str,
    instance: Option<&str>,
    region: Option<&Region>,
    mode: PriceMode,
) -> Vec<Offer> {
    let kept = 1.0 - scenario.prices.as_ref().map_or(0.0, |prices| prices.discount.get());
    let rows = catalog.node_prices.iter().filter_map(|row| {
        let node = catalog.instance(&row.instance).ok()?;
        let asked = instance.is_none_or(|asked| asked == node.name);
        let there = region.is_none_or(|region| is_region(region, &row.region));
        if node.accelerator != name || !asked || !there {
            return None;
        }
        let price = match mode {
            PriceMode::OnDemand => Some(row.on_demand),
            PriceMode::Reserved => row.reserved,
            PriceMode::Spot => row.spot,
            PriceMode::Owned => None,
        }?;
        // A price is rounded to whole pico-dollars, once.
        let node_hour = UsdPerHour::picos((price.get_picos() as f64 * kept).round() as u64);
        Some(Offer {
            instance: Some(node.name.clone()),
            devices: node.count,
            mode,
            node_hour,
            region: row.region.clone(),
            source: row.fact.source.clone(),
            as_of: Some(row.fact.as_of.clone()),
            own: false,
        })
    });
    rows.collect()
}

fn is_region(region: &Region, name: &str) -> bool {
    region.price_region.as_deref() == Some(name) || region.name.as_str() == name
}

/// A node that was bought: what it cost over its life, its power and its place.
fn written_off(catalog: &Catalog, own: &Owned, name: &str) -> Offer {
    let devices = own.devices.get_u32();
    let hours = (own.lifetime.get() / 3600.0).max(1.0);
    let watts = catalog.accelerator(name).ok().and_then(|a| a.power).map_or(0.0, |w| w.get());
    let kilowatts = watts * f64::from(devices) / 1e3 * own.power_overhead.get();
    let dollars = own.node_price.get_micros() as f64 / 1e6 / hours
        + kilowatts * own.power_price.get_picos() as f64 / 1e12;
    let hosting = own.hosting.get_picos();
    Offer {
        instance: None,
        devices,
        mode: PriceMode::Owned,
        node_hour: UsdPerHour::picos((dollars * 1e12).round() as u64 + hosting),
        region: "everywhere".to_owned(),
        source: "written off over its lifetime, with power and hosting (`costs.owned`)".to_owned(),
        as_of: None,
        own: true,
    }
}
