//! Whether an answer keeps every promise, worked out from the programme alone: demand really flows, replicas are really put on nodes.

use super::{Answer, Need, Programme};

/// A promise that an answer breaks.
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    /// It names what is not there, or names it twice.
    Unknown,
    /// Replicas do not fit on the nodes.
    Nodes {
        /// The place.
        place: usize,
        /// The mode.
        mode: usize,
        /// Nodes that its replicas need.
        needed: u64,
        /// Nodes that are rented.
        rented: u64,
    },
    /// More nodes than there are, or fewer than were committed to.
    Limit {
        /// The place.
        place: usize,
        /// The mode.
        mode: usize,
    },
    /// More devices than the quota.
    Quota {
        /// The place.
        place: usize,
    },
    /// A pool's demand is not carried.
    Load {
        /// The pool.
        pool: usize,
        /// The region that is lost, if one is.
        lost: Option<usize>,
        /// Demand that is not carried.
        short: f64,
    },
    /// The reserve is not there.
    Reserve {
        /// The pool.
        pool: usize,
    },
    /// Too few or too many replicas.
    Replicas {
        /// The pool.
        pool: usize,
    },
    /// Too much capacity on a mode.
    Share {
        /// The pool.
        pool: usize,
        /// The mode.
        mode: usize,
    },
    /// The cost is not the sum of the nodes' prices, or the bound is above it.
    Cost,
}

/// Every promise of the programme that the answer breaks. It shares no code with the search.
pub fn check(programme: &Programme, answer: &Answer) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let known = answer.placed.iter().all(|p| {
        programme
            .ways
            .get(p.way)
            .is_some_and(|w| programme.places[w.place].offers.iter().any(|o| o.mode == p.mode))
    }) && answer.rented.iter().all(|r| {
        programme.places.get(r.place).is_some_and(|p| p.offers.iter().any(|o| o.mode == r.mode))
    });
    let mut keys: Vec<_> = answer.placed.iter().map(|p| (p.way, p.mode)).collect();
    let before = keys.len();
    keys.sort_unstable();
    keys.dedup();
    if !known || keys.len() != before {
        return vec![Breach::Unknown];
    }
    let mut picos = 0u128;
    for (place, p) in programme.places.iter().enumerate() {
        let mut devices = 0;
        for offer in &p.offers {
            let rented: u64 = answer
                .rented
                .iter()
                .filter(|r| r.place == place && r.mode == offer.mode)
                .map(|r| r.nodes)
                .sum();
            picos += u128::from(rented) * u128::from(offer.node_hour.get_picos());
            devices += rented * p.devices_per_node;
            let needed = nodes_needed(programme, answer, place, offer.mode);
            if needed > rented {
                breaches.push(Breach::Nodes { place, mode: offer.mode, needed, rented });
            }
            if rented < offer.nodes_least || offer.nodes_most.is_some_and(|most| rented > most) {
                breaches.push(Breach::Limit { place, mode: offer.mode });
            }
        }
        if p.devices_most.is_some_and(|most| devices > most) {
            breaches.push(Breach::Quota { place });
        }
    }
    if picos != u128::from(answer.cost.get_picos()) || answer.bound > answer.cost {
        breaches.push(Breach::Cost);
    }
    for (pool, need) in programme.pools.iter().enumerate() {
        check_pool(programme, answer, pool, need, &mut breaches);
    }
    breaches
}

fn check_pool(
    programme: &Programme,
    answer: &Answer,
    pool: usize,
    need: &Need,
    breaches: &mut Vec<Breach>,
) {
    let mine = || answer.placed.iter().filter(|p| programme.ways[p.way].pool == pool);
    let spare: u64 = mine().map(|p| p.reserve).sum();
    let total: u64 = spare + mine().map(|p| p.load).sum::<u64>();
    if spare < need.reserve {
        breaches.push(Breach::Reserve { pool });
    }
    if total < need.replicas_least || need.replicas_most.is_some_and(|most| total > most) {
        breaches.push(Breach::Replicas { pool });
    }
    let capacity =
        |p: &super::Placed| programme.ways[p.way].capacity * (p.load as f64 + p.reserve as f64);
    let whole: f64 = mine().map(capacity).sum();
    for (mode, kept) in programme.modes.iter().enumerate() {
        let on: f64 = mine().filter(|p| p.mode == mode).map(capacity).sum();
        if kept.share_most.is_some_and(|share| on > share * whole + 1e-7 * whole.max(1.0)) {
            breaches.push(Breach::Share { pool, mode });
        }
    }
    for lost in (0..programme.regions).map(Some).chain([None]) {
        let (share, helps) = match (lost, need.lost) {
            (None, _) => (1.0, false),
            (Some(_), Some(loss)) => (loss.share, loss.with_reserve),
            (Some(_), None) => continue,
        };
        let mut capacity = vec![0.0; programme.regions];
        for p in mine() {
            let way = &programme.ways[p.way];
            let replicas = p.load + if helps { p.reserve } else { 0 };
            capacity[programme.places[way.place].region] += way.capacity * replicas as f64;
        }
        let open = |home: usize, region: usize| need.reaches[home][region] && Some(region) != lost;
        let demand: Vec<f64> = (0..programme.regions)
            .map(|h| {
                let bound = lost.is_some() && !(0..programme.regions).any(|r| open(h, r));
                if bound { 0.0 } else { need.demand[h] * share }
            })
            .collect();
        let wanted: f64 = demand.iter().sum();
        let short = wanted - flow(&demand, &capacity, open);
        if short > 1e-8 * wanted {
            breaches.push(Breach::Load { pool, lost, short });
        }
    }
}

/// Nodes that the replicas of a place and mode need: each replica is put on the first node with room, the largest first.
fn nodes_needed(programme: &Programme, answer: &Answer, place: usize, mode: usize) -> u64 {
    let node = programme.places[place].devices_per_node;
    let mut replicas: Vec<u64> = Vec::new();
    for p in &answer.placed {
        let way = &programme.ways[p.way];
        if way.place == place && p.mode == mode {
            replicas.extend((0..p.load + p.reserve).map(|_| way.devices));
        }
    }
    replicas.sort_unstable_by(|a, b| b.cmp(a));
    let mut whole = 0;
    let mut rooms: Vec<u64> = Vec::new();
    for devices in replicas {
        if devices >= node {
            whole += devices.div_ceil(node);
        } else if let Some(room) = rooms.iter_mut().find(|room| **room >= devices) {
            *room -= devices;
        } else {
            rooms.push(node - devices);
        }
    }
    whole + rooms.len() as u64
}

/// The most demand that finds capacity: augmenting paths, shortest first.
fn flow(demand: &[f64], capacity: &[f64], open: impl Fn(usize, usize) -> bool) -> f64 {
    let n = demand.len();
    let mut left = demand.to_vec();
    let mut room = capacity.to_vec();
    let mut sent = vec![vec![0.0; n]; n];
    let tiny = 1e-12 * demand.iter().sum::<f64>();
    let mut total = 0.0;
    // Each pass saturates a home, a region or an edge; floats could go on for ever, so passes are counted.
    for _ in 0..4 * n * n * n + 16 {
        // By home: the region it was reached from. By region: the home it was reached from.
        let mut from_region: Vec<Option<Option<usize>>> = vec![None; n];
        let mut from_home: Vec<Option<usize>> = vec![None; n];
        let mut queue: Vec<usize> = (0..n).filter(|&h| left[h] > tiny).collect();
        for &h in &queue {
            from_region[h] = Some(None);
        }
        let mut end = None;
        let mut at = 0;
        while at < queue.len() && end.is_none() {
            let home = queue[at];
            at += 1;
            for region in 0..n {
                if from_home[region].is_some() || !open(home, region) {
                    continue;
                }
                from_home[region] = Some(home);
                if room[region] > tiny {
                    end = Some(region);
                    break;
                }
                for other in 0..n {
                    if from_region[other].is_none() && sent[other][region] > tiny {
                        from_region[other] = Some(Some(region));
                        queue.push(other);
                    }
                }
            }
        }
        let Some(end) = end else { break };
        let mut path = Vec::new();
        let mut region = end;
        let start = loop {
            let Some(home) = from_home[region] else { return total };
            path.push((home, region));
            match from_region[home] {
                Some(Some(previous)) => region = previous,
                _ => break home,
            }
        };
        let mut amount = left[start].min(room[end]);
        for pair in path.windows(2) {
            // The later home of the path gives back what it sent to the region before it.
            amount = amount.min(sent[pair[0].0][pair[1].1]);
        }
        for &(home, region) in &path {
            sent[home][region] += amount;
        }
        for pair in path.windows(2) {
            sent[pair[0].0][pair[1].1] -= amount;
        }
        left[start] -= amount;
        room[end] -= amount;
        total += amount;
    }
    total
}
