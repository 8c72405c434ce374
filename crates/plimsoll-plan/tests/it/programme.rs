//! Programmes worked by hand, and small ones against every fleet there is.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support;
use crate::support::dollars;
use plimsoll_plan::{
    Answer, Breach, Effort, Loss, Mistake, Mode, Need, Offer, Outcome, Place, Placed, Programme,
    Relaxation, Rented, Stranded, Way, Work, check, relaxed, solve,
};
use plimsoll_units::UsdPerHour;
use proptest::prelude::*;

/// Enough to prove what is small.
const EFFORT: Effort = Effort { lps: 600, tries: 200, gap: 0.0 };

fn modes() -> Vec<Mode> {
    vec![
        Mode { name: "on-demand".to_owned(), share_most: None },
        Mode { name: "spot".to_owned(), share_most: Some(0.5) },
    ]
}

fn offer(mode: usize, price: f64) -> Offer {
    Offer { mode, node_hour: dollars(price), nodes_most: None, nodes_least: 0 }
}

fn place(region: usize, price: f64) -> Place {
    Place {
        region,
        accelerator: 0,
        devices_per_node: 8,
        devices_most: None,
        offers: vec![offer(0, price)],
    }
}

fn need(demand: &[f64]) -> Need {
    Need {
        demand: demand.to_vec(),
        reaches: vec![vec![true; demand.len()]; demand.len()],
        reserve: 0,
        lost: None,
        replicas_least: 0,
        replicas_most: None,
    }
}

fn way(pool: usize, place: usize, devices: u64, capacity: f64) -> Way {
    Way { pool, place, devices, capacity }
}

fn programme(places: Vec<Place>, pools: Vec<Need>, ways: Vec<Way>) -> Programme {
    Programme { regions: pools[0].demand.len(), modes: modes(), places, pools, ways }
}

fn found(programme: &Programme) -> Answer {
    match solve(programme, EFFORT).unwrap() {
        Outcome::Found(answer) => {
            assert_eq!(check(programme, &answer), []);
            answer
        }
        Outcome::Infeasible(why) => panic!("{why:?}"),
    }
}

#[track_caller]
fn costs(programme: &Programme, cost: f64) -> Answer {
    let answer = found(programme);
    assert_eq!(answer.cost, dollars(cost), "{answer:?}");
    assert!(answer.gap.abs() < 1e-12, "{answer:?}");
    answer
}

#[test]
fn two_pools_share_a_node() {
    // Three of 2 devices and one of 2: eight devices, one node.
    let mut p = programme(
        vec![place(0, 55.0)],
        vec![need(&[25.0]), need(&[3.0])],
        vec![way(0, 0, 2, 10.0), way(1, 0, 2, 4.0)],
    );
    costs(&p, 55.0);
    // One in reserve takes a second node.
    p.pools[1].reserve = 1;
    let answer = costs(&p, 110.0);
    assert_eq!(
        answer.placed.iter().map(|p| (p.load, p.reserve)).collect::<Vec<_>>(),
        [(3, 0), (1, 1)]
    );
}

#[test]
fn a_replica_of_two_nodes_and_nodes_with_gaps() {
    let p = programme(vec![place(0, 55.0)], vec![need(&[15.0])], vec![way(0, 0, 16, 10.0)]);
    costs(&p, 220.0);
    // Two of 3 devices fit in a node of 8, not two and two thirds.
    let p = programme(vec![place(0, 55.0)], vec![need(&[50.0])], vec![way(0, 0, 3, 10.0)]);
    assert_eq!(found(&p).cost, dollars(165.0));
}

#[test]
fn spot_is_used_up_to_its_share() {
    let mut spot = place(0, 50.0);
    spot.offers.push(offer(1, 20.0));
    let p = programme(vec![spot], vec![need(&[40.0])], vec![way(0, 0, 8, 10.0)]);
    costs(&p, 2.0 * 50.0 + 2.0 * 20.0);
}

#[test]
fn commitments_are_paid_and_used_first() {
    let mut p = programme(
        vec![place(0, 50.0), place(0, 40.0)],
        vec![need(&[15.0])],
        vec![way(0, 0, 8, 10.0), way(0, 1, 8, 10.0)],
    );
    costs(&p, 80.0);
    p.places[0].offers[0].nodes_least = 2;
    costs(&p, 100.0);
    p.pools[0].demand = vec![0.0];
    costs(&p, 100.0);
}

#[test]
fn quotas_are_held_against_whole_nodes() {
    // 20 devices of the cheap kind are two nodes.
    let mut p = programme(
        vec![place(0, 30.0), place(0, 50.0)],
        vec![need(&[30.0])],
        vec![way(0, 0, 8, 10.0), way(0, 1, 8, 10.0)],
    );
    p.places[0].devices_most = Some(20);
    costs(&p, 110.0);
}

#[test]
fn demand_goes_where_it_may() {
    // Home 0 may be served in the cheap region 1, home 1 only at home.
    let mut pool = need(&[20.0, 10.0]);
    pool.reaches = vec![vec![true, true], vec![false, true]];
    let mut p = programme(
        vec![place(0, 50.0), place(1, 40.0)],
        vec![pool],
        vec![way(0, 0, 8, 10.0), way(0, 1, 8, 10.0)],
    );
    costs(&p, 120.0);
    p.pools[0].reaches[0][1] = false;
    costs(&p, 140.0);
}

#[test]
fn a_lost_region_is_carried_by_the_others() {
    let mut pool = need(&[20.0, 10.0]);
    pool.lost = Some(Loss { share: 1.0, with_reserve: false });
    let mut p = programme(
        vec![place(0, 50.0), place(1, 40.0)],
        vec![pool],
        vec![way(0, 0, 8, 10.0), way(0, 1, 8, 10.0)],
    );
    // Each region alone carries all of it: three and three.
    costs(&p, 3.0 * 50.0 + 3.0 * 40.0);
    // Home 1 is bound to region 1: when that is lost, it is excepted; when region 0 is, three are needed.
    p.pools[0].reaches[1] = vec![false, true];
    let answer = costs(&p, 2.0 * 50.0 + 3.0 * 40.0);
    assert_eq!(answer.excepted.len(), 1);
    assert_eq!((answer.excepted[0].home, answer.excepted[0].region), (1, 1));
    // A reserve of two may help then.
    p.pools[0].reaches[1] = vec![true, true];
    p.pools[0].reserve = 2;
    p.pools[0].lost = Some(Loss { share: 1.0, with_reserve: true });
    costs(&p, 3.0 * 50.0 + 3.0 * 40.0);
    p.pools[0].lost = Some(Loss { share: 1.0, with_reserve: false });
    costs(&p, 3.0 * 50.0 + 5.0 * 40.0);
    // Half of it then: two and two; three carry it on other days.
    p.pools[0].reserve = 0;
    p.pools[0].lost = Some(Loss { share: 0.5, with_reserve: false });
    costs(&p, 2.0 * 50.0 + 2.0 * 40.0);
}

#[test]
fn ways_that_others_replace_are_left_out() {
    let p = programme(
        vec![place(0, 50.0)],
        vec![need(&[30.0])],
        vec![way(0, 0, 4, 10.0), way(0, 0, 4, 9.0), way(0, 0, 8, 10.0), way(0, 0, 8, 25.0)],
    );
    let answer = costs(&p, 100.0);
    assert_eq!(answer.dominated, 2);
}

fn why(programme: &Programme) -> plimsoll_plan::Why {
    match solve(programme, EFFORT).unwrap() {
        Outcome::Infeasible(why) => why,
        Outcome::Found(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn what_would_have_to_give() {
    // Five nodes are wanted, three are allowed.
    let mut p = programme(vec![place(0, 50.0)], vec![need(&[50.0])], vec![way(0, 0, 8, 10.0)]);
    p.places[0].accelerator = 1;
    p.places[0].devices_most = Some(28);
    let w = why(&p);
    assert!(w.proven && w.confirmed);
    let devices = Relaxation::Devices { place: 0, accelerator: 1, region: 0, more: 12 };
    assert_eq!(w.together, [devices]);
    assert_eq!(devices.to_string(), "12 more devices of accelerator 1 in region 0");
    assert_eq!(w.alone, [devices, Relaxation::Demand { pool: 0, to: 0.6 }]);

    // Two limits at once: neither alone is enough.
    p.pools[0].replicas_most = Some(4);
    let w = why(&p);
    assert_eq!(w.together, [devices, Relaxation::Replicas { pool: 0, more: 1 }]);
    assert_eq!(w.alone, [Relaxation::Demand { pool: 0, to: 0.6 }]);
    assert!(matches!(solve(&relaxed(&p, &w.together), EFFORT), Ok(Outcome::Found(_))));
}

#[test]
fn reach_loss_and_share_may_give() {
    // Region 0 has room for one, region 1 for plenty, and home 0 does not reach it.
    let mut pool = need(&[20.0, 0.0]);
    pool.reaches[0] = vec![true, false];
    let mut p = programme(
        vec![place(0, 50.0), place(1, 50.0)],
        vec![pool],
        vec![way(0, 0, 8, 10.0), way(0, 1, 8, 10.0)],
    );
    p.places[0].devices_most = Some(8);
    let w = why(&p);
    assert!(w.alone.contains(&Relaxation::Reach { pool: 0, home: 0, serving: 1 }), "{w:?}");
    // Both regions are needed, so none may be lost.
    p.pools[0].reaches[0] = vec![true, true];
    p.places[1].devices_most = Some(8);
    p.pools[0].lost = Some(Loss { share: 1.0, with_reserve: false });
    let w = why(&p);
    assert!(w.alone.contains(&Relaxation::Loss { pool: 0, to: 0.5 }), "{w:?}");
    // Two nodes on demand, plenty on spot, of which only half may be used.
    let mut spot = place(0, 50.0);
    spot.offers.push(offer(1, 20.0));
    spot.offers[0].nodes_most = Some(2);
    let p = programme(vec![spot], vec![need(&[80.0])], vec![way(0, 0, 8, 10.0)]);
    let w = why(&p);
    assert!(w.alone.contains(&Relaxation::Share { mode: 1, to: 0.75 }), "{w:?}");
    let nodes = Relaxation::Nodes { place: 0, accelerator: 0, region: 0, mode: 0, more: 2 };
    assert!(w.alone.contains(&nodes), "{w:?}");
}

#[test]
fn stranded_demand_is_named() {
    let mut pool = need(&[20.0, 5.0]);
    pool.reaches = vec![vec![true, false], vec![false, true]];
    let mut p = programme(vec![place(0, 50.0)], vec![pool], vec![way(0, 0, 8, 10.0)]);
    assert_eq!(why(&p).stranded, [Stranded { pool: 0, home: Some(1), lost: None }]);
    p.pools[0].reaches[1][0] = true;
    p.pools[0].lost = Some(Loss { share: 1.0, with_reserve: false });
    // Home 1 also reaches region 1, where the pool has no way to run.
    assert_eq!(why(&p).stranded, [Stranded { pool: 0, home: Some(1), lost: Some(0) }]);
}

#[test]
fn nonsense_is_refused() {
    let p = programme(vec![place(0, 50.0)], vec![need(&[20.0])], vec![way(0, 0, 8, 10.0)]);
    let refused = |change: &dyn Fn(&mut Programme)| {
        let mut p = p.clone();
        change(&mut p);
        solve(&p, EFFORT).unwrap_err()
    };
    assert_eq!(
        refused(&|p| p.ways[0].devices = 12),
        Mistake::Straddles { way: 0, devices: 12, node: 8 }
    );
    assert_eq!(
        refused(&|p| p.ways[0].pool = 3).to_string(),
        "way 0 points at pool 3, which is not there"
    );
    assert_eq!(
        refused(&|p| p.pools[0].demand[0] = f64::NAN).to_string(),
        "pool 0: demand must be from 0 to 10^15"
    );
    assert_eq!(
        refused(&|p| {
            p.places[0].devices_most = Some(8);
            p.places[0].offers[0].nodes_least = 2;
        }),
        Mistake::Committed { place: 0 }
    );
    for change in [
        &(|p: &mut Programme| p.ways[0].capacity = 0.0) as &dyn Fn(&mut Programme),
        &|p| p.ways[0].capacity = f64::INFINITY,
        &|p| p.places[0].devices_per_node = 0,
        &|p| p.pools[0].reaches.clear(),
        &|p| p.modes[1].share_most = Some(-0.1),
        &|p| p.places[0].offers.push(offer(0, 1.0)),
        &|p| p.regions = 0,
    ] {
        refused(change);
    }
}

#[test]
fn the_check_finds_what_is_broken() {
    let mut p = programme(vec![place(0, 50.0)], vec![need(&[20.0])], vec![way(0, 0, 8, 10.0)]);
    p.pools[0].reserve = 1;
    let good = found(&p);
    let broken = |change: &dyn Fn(&mut Answer)| {
        let mut answer = good.clone();
        change(&mut answer);
        check(&p, &answer)
    };
    assert_eq!(
        broken(&|a| a.placed[0].load = 1),
        [Breach::Load { pool: 0, lost: None, short: 10.0 }]
    );
    assert_eq!(broken(&|a| a.placed[0].reserve = 0), [Breach::Reserve { pool: 0 }]);
    let nodes = Breach::Nodes { place: 0, mode: 0, needed: 3, rented: 2 };
    assert_eq!(broken(&|a| a.rented[0].nodes = 2), [nodes, Breach::Cost]);
    assert_eq!(broken(&|a| a.placed[0].way = 9), [Breach::Unknown]);
}

/// The least cost of any fleet, by trying all; `None` where there is none. Every pool must have a limit on its replicas.
fn brute(programme: &Programme) -> Option<u64> {
    let slots: Vec<(usize, usize)> = (0..programme.ways.len())
        .flat_map(|w| {
            let offers = &programme.places[programme.ways[w].place].offers;
            offers.iter().map(move |o| (w, o.mode)).collect::<Vec<_>>()
        })
        .collect();
    let left: Vec<u64> = programme.pools.iter().map(|p| p.replicas_most.unwrap()).collect();
    let spare: Vec<u64> = programme.pools.iter().map(|p| p.reserve).collect();
    let mut best = None;
    walk(programme, &slots, &left, &spare, &mut Vec::new(), &mut best);
    best
}

fn walk(
    programme: &Programme,
    slots: &[(usize, usize)],
    left: &[u64],
    spare: &[u64],
    placed: &mut Vec<Placed>,
    best: &mut Option<u64>,
) {
    let Some((&(way, mode), rest)) = slots.split_first() else {
        if spare.iter().all(|s| *s == 0)
            && let Some(cost) = judge(programme, placed)
        {
            *best = Some(best.map_or(cost, |b: u64| b.min(cost)));
        }
        return;
    };
    let pool = programme.ways[way].pool;
    for load in 0..=left[pool] {
        for reserve in 0..=spare[pool].min(left[pool] - load) {
            let (mut left, mut spare) = (left.to_vec(), spare.to_vec());
            left[pool] -= load + reserve;
            spare[pool] -= reserve;
            placed.push(Placed { way, mode, load, reserve });
            walk(programme, rest, &left, &spare, placed, best);
            placed.pop();
        }
    }
}

/// What a fleet costs, if it keeps every promise.
fn judge(programme: &Programme, placed: &[Placed]) -> Option<u64> {
    let mut rented = Vec::new();
    let mut picos = 0;
    for (p, place) in programme.places.iter().enumerate() {
        for o in &place.offers {
            let mut sizes: Vec<u64> = Vec::new();
            for x in placed.iter().filter(|x| programme.ways[x.way].place == p && x.mode == o.mode)
            {
                sizes.extend((0..x.load + x.reserve).map(|_| programme.ways[x.way].devices));
            }
            let nodes = fewest_nodes(&mut sizes, place.devices_per_node).max(o.nodes_least);
            picos += nodes * o.node_hour.get_picos();
            rented.push(Rented { place: p, mode: o.mode, nodes, devices_used: sizes.iter().sum() });
        }
    }
    let answer = Answer {
        placed: placed.to_vec(),
        rented,
        cost: UsdPerHour::picos(picos),
        bound: UsdPerHour::ZERO,
        gap: 0.0,
        dominated: 0,
        excepted: Vec::new(),
        work: Work::default(),
    };
    check(programme, &answer).is_empty().then_some(picos)
}

/// The largest first, each on the first node with room. With at most four replicas that is the fewest.
fn fewest_nodes(sizes: &mut [u64], node: u64) -> u64 {
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut rooms: Vec<u64> = Vec::new();
    for &mut size in sizes {
        if size > node {
            rooms.extend((0..size / node).map(|_| 0));
        } else if let Some(room) = rooms.iter_mut().find(|r| **r >= size) {
            *room -= size;
        } else {
            rooms.push(node - size);
        }
    }
    rooms.len() as u64
}

/// Small programmes, even ones where sizes fill nodes without gaps.
fn small(seed: u64, even: bool) -> Programme {
    let mut dice = support::Dice::new(seed);
    let regions = usize::try_from(dice.whole(1, 2)).unwrap();
    let count = dice.whole(1, 2);
    let places: Vec<Place> = (0..count)
        .map(|i| {
            let node =
                if even { [1, 2, 4, 8][dice.whole(0, 3) as usize] } else { dice.whole(3, 7) };
            let quota = (dice.whole(0, 2) > 0).then(|| dice.whole(0, 4 * node));
            let fits = quota.map_or(9, |q| q / node);
            let mut offers = vec![Offer {
                mode: 0,
                node_hour: dollars(dice.whole(1, 12) as f64 * node as f64 / 4.0),
                nodes_most: (dice.whole(0, 4) == 0).then(|| dice.whole(1, 4)),
                nodes_least: if dice.whole(0, 4) == 0 { fits.min(1) } else { 0 },
            }];
            if dice.whole(0, 2) == 0 {
                offers.push(offer(1, dice.whole(1, 6) as f64 * node as f64 / 4.0));
            }
            Place {
                region: usize::try_from(dice.whole(0, regions as u64 - 1)).unwrap(),
                accelerator: i as usize,
                devices_per_node: node,
                devices_most: quota,
                offers,
            }
        })
        .collect();
    let pools: Vec<Need> = (0..dice.whole(1, 2))
        .map(|_| {
            let reserve = dice.whole(0, 1);
            Need {
                demand: (0..regions).map(|_| dice.whole(0, 7) as f64 / 2.0).collect(),
                reaches: (0..regions)
                    .map(|h| (0..regions).map(|s| h == s || dice.whole(0, 1) == 0).collect())
                    .collect(),
                reserve,
                lost: (dice.whole(0, 2) == 0)
                    .then(|| Loss { share: 0.5, with_reserve: dice.whole(0, 1) == 0 }),
                replicas_least: dice.whole(0, 1),
                replicas_most: Some(4),
            }
        })
        .collect();
    let mut ways = Vec::new();
    for pool in 0..pools.len() {
        for _ in 0..dice.whole(1, if pools.len() == 1 { 3 } else { 2 }) {
            let place = usize::try_from(dice.whole(0, count - 1)).unwrap();
            let node = places[place].devices_per_node;
            let devices = match (even, dice.whole(0, 6)) {
                (_, 0) => node * 2,
                (true, _) => (1 << dice.whole(0, 3)).min(node),
                (false, _) => dice.whole(1, node),
            };
            ways.push(way(pool, place, devices, dice.whole(1, 6) as f64 / 2.0));
        }
    }
    Programme { regions, modes: modes(), places, pools, ways }
}

fn against_brute(seed: u64, even: bool) -> Result<(), TestCaseError> {
    let p = small(seed, even);
    let optimum = brute(&p);
    match solve(&p, EFFORT).unwrap() {
        Outcome::Found(answer) => {
            prop_assert_eq!(check(&p, &answer), []);
            let optimum = optimum.unwrap();
            prop_assert!(answer.cost.get_picos() >= optimum, "{answer:?}");
            prop_assert!(answer.bound.get_picos() <= optimum, "{optimum} {answer:?}");
            if even {
                prop_assert_eq!(answer.cost.get_picos(), optimum, "{:?}", answer);
                prop_assert!(answer.gap.abs() < 1e-12, "{:?}", answer);
            }
            prop_assert_eq!(&solve(&p, EFFORT).unwrap(), &Outcome::Found(answer.clone()));
            // Little effort: still true, only less sharp.
            if let Outcome::Found(quick) = solve(&p, Effort { lps: 1, tries: 0, gap: 0.0 }).unwrap()
            {
                prop_assert_eq!(check(&p, &quick), []);
                prop_assert!(quick.bound.get_picos() <= optimum);
            }
            // More demand never costs less.
            let mut more = p.clone();
            for pool in &mut more.pools {
                pool.demand.iter_mut().for_each(|d| *d *= 1.25);
            }
            if let (true, Outcome::Found(dearer)) = (even, solve(&more, EFFORT).unwrap()) {
                prop_assert!(dearer.cost >= answer.cost);
                // Up to the millionths that floats cost.
                let bound = |a: &Answer| a.bound.get_picos() as f64;
                prop_assert!(bound(&dearer) >= bound(&answer) * (1.0 - 1e-5));
            }
        }
        Outcome::Infeasible(why) => {
            prop_assert_eq!(optimum, None, "{:?}", why);
            prop_assert!(!even || why.proven, "{why:?}");
            if why.confirmed {
                let outcome = solve(&relaxed(&p, &why.together), EFFORT).unwrap();
                prop_assert!(matches!(outcome, Outcome::Found(_)), "{why:?}");
            } else {
                prop_assert!(!even || !why.stranded.is_empty(), "{why:?}");
            }
            for &alone in &why.alone {
                let outcome = solve(&relaxed(&p, &[alone]), EFFORT).unwrap();
                prop_assert!(matches!(outcome, Outcome::Found(_)), "{alone:?}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(250)) })]

    /// Every fleet was tried: the answer is the cheapest, the bound is below it, and what is infeasible is.
    #[test]
    fn the_cheapest_of_all(seed in any::<u64>()) {
        against_brute(seed, true)?;
    }

    /// Where sizes leave gaps, answers keep every promise and bounds are true.
    #[test]
    fn nodes_with_gaps(seed in any::<u64>()) {
        against_brute(seed, false)?;
    }
}
