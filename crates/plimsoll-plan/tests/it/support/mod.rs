//! Programmes by seed, of a size that people have: six accelerators, four regions, three modes, eight pools.
#![allow(dead_code, reason = "each user takes what it needs")]

use plimsoll_plan::{Loss, Mode, Need, Offer, Place, Programme, Way};
use plimsoll_units::UsdPerHour;

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

/// Price of a node on demand, devices of a node, memory and speed of a device against an H100.
const ACCELERATORS: [(f64, u64, f64, f64); 6] = [
    (55.0, 8, 80.0, 1.0),   // H100
    (68.0, 8, 141.0, 1.25), // H200
    (33.0, 8, 80.0, 0.48),  // A100
    (98.0, 8, 180.0, 2.1),  // B200
    (14.5, 8, 48.0, 0.2),   // L40S
    (26.0, 4, 80.0, 1.0),   // H100 in fours
];

/// Gigabytes that a pool's model wants, with room for context.
const MODELS: [f64; 8] = [20.0, 30.0, 60.0, 70.0, 120.0, 160.0, 300.0, 500.0];

pub fn dollars(d: f64) -> UsdPerHour {
    UsdPerHour::picos((d * 1e6).round() as u64 * 1_000_000)
}

/// `scale` of the demand: at 1, some 100 to 200 nodes.
pub fn large(seed: u64, loss: bool, scale: f64) -> Programme {
    let mut dice = Dice::new(seed);
    let regions = 4;
    let modes = vec![
        Mode { name: "on-demand".to_owned(), share_most: None },
        Mode { name: "reserved".to_owned(), share_most: None },
        Mode { name: "spot".to_owned(), share_most: Some(0.3) },
    ];
    let mut places = Vec::new();
    for region in 0..regions {
        let dear = dice.between(0.92, 1.12);
        for (accelerator, &(price, per_node, ..)) in ACCELERATORS.iter().enumerate() {
            let node = price * dear * dice.between(0.95, 1.05);
            let committed = if dice.whole(0, 3) == 0 { dice.whole(1, 3) } else { 0 };
            let quota = dice.whole(4, 16) * 8;
            places.push(Place {
                region,
                accelerator,
                devices_per_node: per_node,
                devices_most: Some(quota),
                offers: vec![
                    Offer { mode: 0, node_hour: dollars(node), nodes_most: None, nodes_least: 0 },
                    Offer {
                        mode: 1,
                        node_hour: dollars(node * dice.between(0.55, 0.7)),
                        nodes_most: Some(committed + dice.whole(0, 3)),
                        nodes_least: committed,
                    },
                    Offer {
                        mode: 2,
                        node_hour: dollars(node * dice.between(0.35, 0.5)),
                        nodes_most: Some(dice.whole(0, 4)),
                        nodes_least: 0,
                    },
                ],
            });
        }
    }
    let mut pools = Vec::new();
    let mut ways = Vec::new();
    for (pool, &memory) in MODELS.iter().enumerate() {
        let unit = dice.between(200.0, 3000.0);
        for (place, p) in places.iter().enumerate() {
            let (_, per_node, size, speed) = ACCELERATORS[p.accelerator];
            let mut devices = 1;
            while devices as f64 * size < memory {
                devices *= 2;
            }
            // The smallest group that holds it, and one of twice the size, which has more room for context.
            for (group, gain) in [(devices, 1.0), (devices * 2, 1.08)] {
                if group <= per_node {
                    let jitter = 0.9 + 0.2 * ((pool * 7 + p.accelerator * 3) % 11) as f64 / 11.0;
                    let capacity = unit * speed * group as f64 * gain * jitter * 20.0 / memory;
                    ways.push(Way { pool, place, devices: group, capacity });
                }
            }
        }
        let reaches: Vec<Vec<bool>> = (0..regions)
            .map(|h| (0..regions).map(|s| h == s || dice.whole(0, 9) < 6).collect())
            .collect();
        // In H100s, of this pool, by region.
        let demand =
            (0..regions).map(|_| scale * dice.between(5.0, 40.0) * unit * 20.0 / memory).collect();
        pools.push(Need {
            demand,
            reaches,
            reserve: dice.whole(1, 3),
            lost: (loss && pool % 2 == 0).then_some(Loss { share: 0.8, with_reserve: true }),
            replicas_least: 2,
            replicas_most: None,
        });
    }
    Programme { regions, modes, places, pools, ways }
}
