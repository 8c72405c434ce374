//! Where the replicas are, on which nodes, and what these cost: the fleet programme, fed with what was sized.

use std::collections::BTreeMap;

use plimsoll_plan::{
    Effort, Loss, Mode, Need, Offer, Outcome, Place, Programme, Relaxation, Way, solve,
};
use plimsoll_units::UsdPerHour;
use serde::Serialize;

use super::reserve::UnitOfLoss;
use super::result::Obstacle;
use super::sizes::{Asked, PoolSize};
use super::{PlanInput, PoolFacts};
use plimsoll_load::pools_serving;

/// An accelerator in a region: what may be had of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceFacts {
    /// The region, by its place.
    pub region: usize,
    /// The device.
    pub accelerator: String,
    /// Devices of a node.
    pub node_devices: u64,
    /// The node, as the catalogue calls it.
    pub instance: Option<String>,
    /// As many may be used.
    pub quota_devices: Option<u64>,
    /// As many are free right now; the whole quota where it is not said.
    pub free_devices: Option<u64>,
    /// How long others take to come.
    pub lead_time_s: f64,
    /// What nodes cost, by mode.
    pub prices: Vec<PriceFacts>,
}

/// What a node costs.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceFacts {
    /// `on-demand`, `reserved`, `spot` or `owned`.
    pub mode: String,
    /// All of it, an hour.
    pub node_hour: UsdPerHour,
    /// Where it was read.
    pub source: String,
    /// When it held.
    pub as_of: Option<String>,
}

/// A pool that may run on a device, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The pool.
    pub pool: usize,
    /// Its name among the alternatives; none for the pool as it is written.
    pub alternative: Option<usize>,
    /// Its device.
    pub accelerator: String,
    /// Devices of a replica.
    pub devices: u64,
    /// Replicas that carry the whole demand of the pool.
    pub carry: u32,
}

/// Where replicas are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placement {
    /// The pool.
    pub pool: String,
    /// The region.
    pub region: String,
    /// The device.
    pub accelerator: String,
    /// How it is paid.
    pub price_mode: String,
    /// Replicas there.
    pub replicas: u64,
    /// Those of them that are in reserve.
    pub reserve: u64,
    /// Devices of them.
    pub devices: u64,
}

/// Nodes that are rented.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nodes {
    /// The region.
    pub region: String,
    /// The device.
    pub accelerator: String,
    /// The node, as the catalogue calls it.
    pub instance: Option<String>,
    /// How it is paid.
    pub price_mode: String,
    /// How many.
    pub nodes: u64,
    /// Devices of one.
    pub devices_per_node: u64,
    /// Devices of theirs that nobody uses.
    pub devices_idle: u64,
    /// What one costs, where that is known.
    pub node_usd_per_hour: Option<f64>,
    /// What all cost.
    pub usd_per_hour: Option<f64>,
    /// Where the price was read.
    pub price_source: Option<String>,
    /// When it held.
    pub price_as_of: Option<String>,
}

/// The cheapest fleet that was found for the busiest hour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fleet {
    /// Where replicas are.
    pub placements: Vec<Placement>,
    /// Nodes that are rented.
    pub nodes: Vec<Nodes>,
    /// What they cost; none where a price is not known.
    pub usd_per_hour: Option<f64>,
    /// No fleet that carries this costs less.
    pub bound_usd_per_hour: Option<f64>,
    /// (cost - bound) / bound.
    pub gap: Option<f64>,
    /// Which solver: `rounding` or `highs`.
    pub solver: &'static str,
    /// Linear programmes that it took.
    pub linear_programmes: u32,
    /// Ways that were left out because others are as good in every respect.
    pub dominated: usize,
}

/// Stopped by work, so that the answer never changes between runs. Small programmes are proven; of large ones a linear programme takes long, and the fleets that are
/// tried say more.
fn effort(ways: usize) -> Effort {
    let lps = (8_000 / ways.max(1)).clamp(20, 400);
    Effort { lps: u32::try_from(lps).unwrap_or(400), tries: 20_000, gap: 0.005 }
}

/// What came of it.
pub(crate) struct Found {
    pub(crate) fleet: Option<Fleet>,
    /// The choice that carries each pool, among those that were offered; the first where nothing was found.
    pub(crate) chosen: Vec<usize>,
    /// Replicas of each pool in all.
    pub(crate) totals: Vec<Option<u64>>,
    pub(crate) obstacles: Vec<Obstacle>,
    pub(crate) notes: Vec<String>,
}

/// Solves the programme. Of each pool the first choice is the one that is written.
pub(crate) fn place(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
    choices: &[Choice],
) -> Found {
    let mut modes: Vec<String> = Vec::new();
    for price in input.places.iter().flat_map(|place| &place.prices) {
        if !modes.contains(&price.mode) {
            modes.push(price.mode.clone());
        }
    }
    if modes.is_empty() {
        modes.push("on-demand".to_owned());
    }
    let mut notes = Vec::new();
    let mut priced = true;
    // Where nobody knows a price, devices are counted: one dollar an hour each, which is not shown.
    let names: BTreeMap<&str, usize> = {
        let mut names: Vec<&str> = input.places.iter().map(|p| p.accelerator.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().enumerate().map(|(i, name)| (name, i)).collect()
    };
    let places: Vec<Place> = input
        .places
        .iter()
        .map(|place| {
            let known = place.prices.iter().map(|price| Offer {
                mode: modes.iter().position(|m| *m == price.mode).unwrap_or(0),
                node_hour: price.node_hour,
                nodes_most: None,
                nodes_least: 0,
            });
            let mut offers: Vec<Offer> = known.collect();
            if offers.is_empty() {
                let used = choices.iter().any(|c| c.accelerator == place.accelerator);
                if used {
                    priced = false;
                    notes.push(format!(
                        "nobody knows what {} costs in `{}`: money is not counted. Add `[[prices.node]]` with `accelerator = \"{}\"` and `on_demand`",
                        place.accelerator, input.fleet.regions[place.region], place.accelerator
                    ));
                }
                offers.push(Offer {
                    mode: 0,
                    node_hour: UsdPerHour::picos(1_000_000_000_000 * place.node_devices),
                    nodes_most: None,
                    nodes_least: 0,
                });
            }
            Place {
                region: place.region,
                accelerator: names[place.accelerator.as_str()],
                devices_per_node: place.node_devices,
                devices_most: place.quota_devices,
                offers,
            }
        })
        .collect();
    let regions = input.fleet.regions.len();
    let pools: Vec<Need> =
        sizes.iter().enumerate().map(|(i, size)| need(input, asked, i, size, regions)).collect();
    let mut of_way: Vec<usize> = Vec::new();
    let mut ways: Vec<Way> = Vec::new();
    for (c, choice) in choices.iter().enumerate() {
        let facts: &PoolFacts = &input.pools[choice.pool];
        for (p, place) in input.places.iter().enumerate() {
            let there = facts.regions.contains(&place.region);
            let paid = place.prices.iter().all(|price| facts.price_modes.contains(&price.mode));
            if place.accelerator != choice.accelerator || !there || !paid || choice.carry == 0 {
                continue;
            }
            // A group that fits no node, and fills no whole ones, takes whole ones.
            let node = place.node_devices;
            let devices = if choice.devices > node {
                choice.devices.div_ceil(node) * node
            } else {
                choice.devices
            };
            let capacity = 1.0 / f64::from(choice.carry);
            ways.push(Way { pool: choice.pool, place: p, devices, capacity });
            of_way.push(c);
        }
    }
    let programme = Programme {
        regions,
        modes: modes
            .iter()
            .map(|name| Mode {
                name: name.clone(),
                share_most: (name == "spot").then_some(input.spot_share_most),
            })
            .collect(),
        places,
        pools,
        ways,
    };
    let first: Vec<usize> =
        (0..sizes.len()).map(|i| choices.iter().position(|c| c.pool == i).unwrap_or(0)).collect();
    let nothing = |obstacles: Vec<Obstacle>, notes: Vec<String>| Found {
        fleet: None,
        chosen: first.clone(),
        totals: vec![None; sizes.len()],
        obstacles,
        notes,
    };
    let outcome = match solve(&programme, effort(programme.ways.len())) {
        Ok(outcome) => outcome,
        Err(mistake) => {
            let obstacle = Obstacle {
                kind: "fleet",
                what: mistake.to_string(),
                relax: "look at regions, quotas and nodes of the scenario".to_owned(),
            };
            return nothing(vec![obstacle], notes);
        }
    };
    let answer = match outcome {
        Outcome::Found(answer) => answer,
        Outcome::Infeasible(why) => {
            return nothing(obstacles(input, &programme, &why), notes);
        }
    };
    let usd = |price: UsdPerHour| priced.then_some(price.get_picos() as f64 / 1e12);
    let placements: Vec<Placement> = answer
        .placed
        .iter()
        .map(|placed| {
            let way = &programme.ways[placed.way];
            let place = &input.places[way.place];
            Placement {
                pool: input.fleet.pools[way.pool].name.clone(),
                region: input.fleet.regions[place.region].clone(),
                accelerator: place.accelerator.clone(),
                price_mode: programme.modes[placed.mode].name.clone(),
                replicas: placed.load + placed.reserve,
                reserve: placed.reserve,
                devices: (placed.load + placed.reserve) * way.devices,
            }
        })
        .collect();
    let nodes: Vec<Nodes> = answer
        .rented
        .iter()
        .map(|rented| {
            let place = &input.places[rented.place];
            let mode = &programme.modes[rented.mode].name;
            let price = place.prices.iter().find(|price| price.mode == *mode);
            let each = price.map(|price| price.node_hour.get_picos() as f64 / 1e12);
            Nodes {
                region: input.fleet.regions[place.region].clone(),
                accelerator: place.accelerator.clone(),
                instance: place.instance.clone(),
                price_mode: mode.clone(),
                nodes: rented.nodes,
                devices_per_node: place.node_devices,
                devices_idle: rented.nodes * place.node_devices - rented.devices_used,
                node_usd_per_hour: each,
                usd_per_hour: each.map(|each| each * rented.nodes as f64),
                price_source: price.map(|price| price.source.clone()),
                price_as_of: price.and_then(|price| price.as_of.clone()),
            }
        })
        .collect();
    let mut totals = vec![0u64; sizes.len()];
    // The choice that carries most of a pool.
    let mut most: Vec<BTreeMap<usize, u64>> = vec![BTreeMap::new(); sizes.len()];
    for placed in &answer.placed {
        let pool = programme.ways[placed.way].pool;
        totals[pool] += placed.load + placed.reserve;
        *most[pool].entry(of_way[placed.way]).or_default() += placed.load + placed.reserve;
    }
    let chosen = most.iter().zip(&first).map(|(most, first)| {
        let best = most.iter().rev().max_by_key(|(_, n)| **n);
        best.map_or(*first, |(choice, _)| *choice)
    });
    Found {
        chosen: chosen.collect(),
        totals: totals.into_iter().map(Some).collect(),
        fleet: Some(Fleet {
            placements,
            nodes,
            usd_per_hour: usd(answer.cost),
            bound_usd_per_hour: usd(answer.bound),
            gap: priced.then_some(answer.gap),
            solver: if cfg!(feature = "highs") { "highs" } else { "rounding" },
            linear_programmes: answer.work.lps,
            dominated: answer.dominated,
        }),
        obstacles: Vec::new(),
        notes,
    }
}

/// What a pool must carry, in shares of its own demand, by where its users are.
fn need(
    input: &PlanInput<'_>,
    asked: &Asked,
    pool: usize,
    size: &PoolSize,
    regions: usize,
) -> Need {
    let facts = &input.pools[pool];
    let mut demand = vec![0.0; regions];
    for class in
        asked.fleet.classes.iter().filter(|c| pools_serving(c, &asked.fleet).contains(&pool))
    {
        demand[class.sent.region] += class.class.expected_tokens(asked.hour, asked.events);
    }
    let all: f64 = demand.iter().sum();
    // As many replicas as were sized carry it, to the last digit.
    let carry = f64::from(size.replicas.carry().max(1)) / f64::from(size.own.planned.max(1));
    demand.iter_mut().for_each(|own| *own *= carry * (1.0 - 1e-9) / all.max(f64::MIN_POSITIVE));
    let spread = input.reserve.lost == UnitOfLoss::Region && facts.placed.regions > 1;
    // Gateways send calls to the nearest region that has replicas; only when that is lost do they go further.
    let nearest = |from: usize| {
        let way = |to: &usize| asked.fleet.ways[from][*to];
        facts.regions.iter().copied().filter(|to| way(to).is_some()).min_by_key(way)
    };
    let reaches = (0..regions)
        .map(|from| {
            let near = nearest(from);
            let may =
                |to: usize| asked.fleet.ways[from][to].is_some() && (spread || near == Some(to));
            (0..regions).map(may).collect()
        })
        .collect();
    // Where the programme itself looks after the loss of a region, it is not in the reserve.
    let apart = if spread { size.replicas.failure } else { 0 };
    Need {
        demand,
        reaches,
        reserve: u64::from(size.replicas.reserve() - apart),
        lost: spread.then_some(Loss { share: 1.0, with_reserve: false }),
        replicas_least: u64::from(facts.fewest),
        replicas_most: Some(u64::from(facts.most)),
    }
}

/// What would have to give, in the words of the scenario.
fn obstacles(
    input: &PlanInput<'_>,
    programme: &Programme,
    why: &plimsoll_plan::Why,
) -> Vec<Obstacle> {
    let pool_of = |pool: usize| input.fleet.pools[pool].name.as_str();
    let region_of = |region: usize| input.fleet.regions[region].as_str();
    let stranded = why.stranded.iter().map(|own| {
        let pool = pool_of(own.pool);
        let what = match (own.home, own.lost) {
            (Some(home), Some(lost)) => format!(
                "nothing reaches pool `{pool}` from `{}` when `{}` is lost",
                region_of(home),
                region_of(lost)
            ),
            (Some(home), None) => format!(
                "no region that `{}` reaches has devices for pool `{pool}`",
                region_of(home)
            ),
            (None, _) => format!("no region of pool `{pool}` has devices for it"),
        };
        let relax = format!("list its accelerator under `accelerators` of a region in reach, or give pool `{pool}` another region");
        Obstacle { kind: "nodes", what, relax }
    });
    let several = if why.together.len() > 1 { ", together with the others" } else { "" };
    let said = |relaxation: &Relaxation| -> Obstacle {
        let (kind, what, relax) = match *relaxation {
            Relaxation::Devices { place, more, .. } => {
                let own = &input.places[place];
                let (device, region) = (&own.accelerator, region_of(own.region));
                let quota = own.quota_devices.unwrap_or(0);
                let least = programme
                    .ways
                    .iter()
                    .filter(|way| way.place == place)
                    .map(|way| way.devices)
                    .min()
                    .unwrap_or(1);
                let what = if quota < least {
                    format!(
                        "the quota of {quota} {device} in `{region}` cannot hold the weights of one replica, which takes {least}"
                    )
                } else {
                    format!(
                        "the quota of {quota} {device} in `{region}` is too small: {more} more are needed"
                    )
                };
                (
                    "quota",
                    what,
                    format!(
                        "`quota = {}` for {device} in region `{region}`{several}",
                        quota + more
                    ),
                )
            }
            Relaxation::Nodes { place, mode, more, .. } => {
                let own = &input.places[place];
                let (device, region) = (&own.accelerator, region_of(own.region));
                let mode = &programme.modes[mode].name;
                (
                    "nodes",
                    format!("{more} more nodes of {device} are needed {mode} in `{region}`"),
                    format!("{more} more of them{several}"),
                )
            }
            Relaxation::Replicas { pool, more } => {
                let (name, most) = (pool_of(pool), u64::from(input.pools[pool].most));
                (
                    "replicas",
                    format!(
                        "pool `{name}` needs {} replicas, and its plan allows {most}",
                        most + more
                    ),
                    format!(
                        "`plan = [{}, {}]` under `replicas` of pool `{name}`{several}",
                        input.pools[pool].fewest,
                        most + more
                    ),
                )
            }
            Relaxation::Share { mode, to } => {
                let mode = &programme.modes[mode].name;
                (
                    "nodes",
                    format!("more than is allowed would have to be {mode}"),
                    format!("up to {:.0}% of a pool {mode}{several}", to * 100.0),
                )
            }
            Relaxation::Loss { pool, to } => {
                let name = pool_of(pool);
                (
                    "loss",
                    format!(
                        "pool `{name}` cannot be carried by the other regions when one is lost"
                    ),
                    format!(
                        "`survive = \"zone\"`, or accept that {:.0}% of it is carried then{several}",
                        to * 100.0
                    ),
                )
            }
            Relaxation::Reach { pool, home, serving } => {
                let name = pool_of(pool);
                (
                    "nodes",
                    format!(
                        "users in `{}` do not reach pool `{name}` in `{}`",
                        region_of(home),
                        region_of(serving)
                    ),
                    format!(
                        "a `latency_to` from `{}` to `{}`{several}",
                        region_of(home),
                        region_of(serving)
                    ),
                )
            }
            Relaxation::Demand { pool, to } => {
                let name = pool_of(pool);
                (
                    "demand",
                    format!(
                        "at most {:.0}% of the demand of pool `{name}` can be carried",
                        to * 100.0
                    ),
                    format!("admit at most {:.0}% of the demand of pool `{name}`", to * 100.0),
                )
            }
        };
        Obstacle { kind, what, relax }
    };
    let mut all: Vec<Obstacle> = stranded.collect();
    // One that does alone says most; where none does, all are needed.
    let some = |relaxation: &&Relaxation| !matches!(relaxation, Relaxation::Demand { to, .. } if *to < 0.01);
    let alone: Vec<Obstacle> = why.alone.iter().filter(some).map(said).collect();
    match alone.split_first() {
        None => all.extend(why.together.iter().filter(some).map(said)),
        Some((first, others)) => {
            let mut ways = vec![first.relax.clone()];
            ways.extend(others.iter().map(|other| other.relax.clone()));
            all.push(Obstacle { relax: ways.join("; or "), ..first.clone() });
        }
    }
    all
}
