//! Variables of Terraform: how many nodes of which kind, where.

use serde_json::{Map, Value, json};

use super::pool::{Emission, whole_up};

pub(super) fn emit(own: &mut Emission<'_>) {
    let Some(fleet) = &own.plan.fleet else {
        own.note("the plan places its pools nowhere: there are no nodes to rent");
        return;
    };
    let mut pools = Map::new();
    for nodes in &fleet.nodes {
        let mut name = format!("{}/{}/{}", nodes.region, nodes.accelerator, nodes.price_mode);
        if pools.contains_key(&name) {
            name.push_str(&format!("/{}", nodes.instance.as_deref().unwrap_or("node")));
        }
        // Devices of the fewest replicas of any hour: those of other hours can be given back.
        let mut fewest = 0.0;
        let mut placed = Vec::new();
        let here = fleet.placements.iter().filter(|own| {
            (&own.region, &own.accelerator, &own.price_mode)
                == (&nodes.region, &nodes.accelerator, &nodes.price_mode)
        });
        for placement in here {
            let pool = own.pools.iter().find(|pool| pool.pool.name == placement.pool);
            let policy = pool.and_then(|pool| pool.policy).filter(|_| own.plan.scaling.advised);
            let share = match (pool, policy) {
                (Some(pool), Some(policy)) => {
                    let total = f64::from(pool.pool.replicas.total.max(1));
                    (f64::from(policy.min_replicas) / total).min(1.0)
                }
                _ => 1.0,
            };
            fewest += share * as_f64(placement.devices);
            placed.push(Value::from(placement.pool.clone()));
        }
        let per_node = as_f64(nodes.devices_per_node.max(1));
        // A committed price is paid for whether or not a node is there.
        let min = match nodes.price_mode.as_str() {
            "on-demand" | "spot" => whole_up(fewest / per_node).min(nodes.nodes),
            _ => nodes.nodes,
        };
        pools.insert(
            name,
            json!({
                "region": nodes.region,
                "instance_type": nodes.instance,
                "accelerator": nodes.accelerator,
                "devices_per_node": nodes.devices_per_node,
                "price_mode": nodes.price_mode,
                "nodes_min": min,
                "nodes_max": nodes.nodes,
                "pools": placed,
            }),
        );
    }
    let said = format!(
        "nodes_max are the plan's nodes; nodes_min carry the fewest replicas of any hour, rounded up, and are all of them where the price is committed. {}",
        own.header().join(" ")
    );
    let body = json!({
        "//": said,
        "plimsoll_plan": own.plan.id,
        "plimsoll_node_pools": pools,
    });
    own.raw_file("plimsoll.auto.tfvars.json".to_owned(), format!("{body:#}\n"));
}

/// Devices are few enough to be exact.
fn as_f64(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
