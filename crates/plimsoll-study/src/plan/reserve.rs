//! Replicas beside those that the demand needs, each for its own reason.

use serde::{Deserialize, Serialize};

/// What is asked to be kept in reserve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReserveAsked {
    /// What may be lost at the peak.
    pub lost: UnitOfLoss,
    /// Replicas that an upgrade takes out of service at once.
    pub rollout: u32,
    /// Replicas that try a new version.
    pub canary: u32,
    /// Nodes that are taken out of service at once.
    pub maintenance_nodes: u32,
    /// The share of what is cached that is computed again.
    pub cold_cache: f64,
}

/// What is lost at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitOfLoss {
    /// Nothing.
    Nothing,
    /// So many replicas: each is a group of devices that fails as one.
    Replicas(u32),
    /// So many nodes.
    Nodes(u32),
    /// So many of the zones that a pool is spread over.
    Zones(u32),
    /// One of the regions that a pool is in.
    Region,
}

/// Replicas of a pool, line by line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replicas {
    /// Those of today.
    pub now: u32,
    /// What the median of the demand needs in its busiest hour.
    pub steady: u32,
    /// What may be lost then.
    pub failure: u32,
    /// What an upgrade takes out of service.
    pub rollout: u32,
    /// What tries a new version.
    pub canary: u32,
    /// What stands on nodes under maintenance.
    pub maintenance: u32,
    /// What the demand grows by while another one starts.
    pub warm: u32,
    /// What the demand may be above its median.
    pub forecast: u32,
    /// What cold caches cost.
    pub cold_cache: u32,
    /// All of it.
    pub total: u32,
}

impl Replicas {
    /// What carries the planned demand with nothing wrong.
    pub(crate) fn carry(&self) -> u32 {
        self.steady + self.forecast
    }

    /// What is there when whatever may be wrong at once is wrong: what calls are let in for.
    pub(crate) fn open(&self) -> u32 {
        self.total - self.failure - self.rollout - self.canary - self.maintenance
    }

    /// All but those that carry.
    pub(crate) fn reserve(&self) -> u32 {
        self.total - self.carry()
    }

    pub(crate) fn summed(mut self) -> Self {
        self.total = self.steady
            + self.failure
            + self.rollout
            + self.canary
            + self.maintenance
            + self.warm
            + self.forecast
            + self.cold_cache;
        self
    }
}

/// Where a pool's replicas are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Replicas on one node; where a replica takes several nodes, one.
    pub per_node: u32,
    /// Zones of a region.
    pub zones: u32,
    /// Regions.
    pub regions: u32,
}

/// Replicas that are to be there beside so many, so that as many are left when something is lost; none where nothing would be left.
pub(crate) fn failure(carry: u32, lost: UnitOfLoss, spread: Spread) -> Option<u32> {
    let places = |places: u32, lost: u32| {
        if lost >= places {
            return None;
        }
        // As evenly as it goes, and the fullest are lost.
        (0..=carry.saturating_mul(places)).find(|more| {
            let all = carry + more;
            let gone = lost * (all / places) + lost.min(all % places);
            all - gone >= carry
        })
    };
    match lost {
        UnitOfLoss::Nothing => Some(0),
        UnitOfLoss::Replicas(n) => Some(n),
        UnitOfLoss::Nodes(n) => Some(n.saturating_mul(spread.per_node)),
        UnitOfLoss::Zones(n) => places(spread.zones.saturating_mul(spread.regions), n),
        UnitOfLoss::Region => places(spread.regions, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{Spread, UnitOfLoss, failure};

    const SPREAD: Spread = Spread { per_node: 4, zones: 3, regions: 2 };

    #[test]
    fn as_many_are_left_as_carry() {
        let check =
            |carry, lost, expect| assert_eq!(failure(carry, lost, SPREAD), expect, "{lost:?}");
        check(10, UnitOfLoss::Nothing, Some(0));
        check(10, UnitOfLoss::Replicas(2), Some(2));
        check(10, UnitOfLoss::Nodes(1), Some(4));
        // 12 over 6 zones are 2 each.
        check(10, UnitOfLoss::Zones(1), Some(2));
        // 15 over 6: three of 3 and three of 2; losing two of the fullest leaves 9, 16 leave 10.
        check(10, UnitOfLoss::Zones(2), Some(6));
        check(10, UnitOfLoss::Region, Some(10));
        check(10, UnitOfLoss::Zones(6), None);
        let one = Spread { regions: 1, ..SPREAD };
        assert_eq!(failure(10, UnitOfLoss::Region, one), None);
        assert_eq!(failure(0, UnitOfLoss::Zones(1), SPREAD), Some(0));
    }
}
