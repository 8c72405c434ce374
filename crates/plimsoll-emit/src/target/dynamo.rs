//! The planner of Dynamo: promises, and between which sizes it may move.

use super::pool::{DIGITS, Emission, Pool};
use crate::manifest::{Item, map, number, rounded_down, text};

pub(super) fn emit(own: &mut Emission<'_>) {
    for pool in own.pools.clone() {
        let planner = planner(own, &pool);
        let document = map([
            (
                "metadata",
                map([(
                    "annotations",
                    map([
                        ("plimsoll.dev/plan", crate::manifest::quoted(&own.plan.id)),
                        ("plimsoll.dev/pool", crate::manifest::quoted(&pool.pool.name)),
                    ]),
                )]),
            ),
            ("spec", map([("features", map([("planner", planner)]))])),
        ]);
        let how = ["A part of the deployment's own manifest: merge it there.".to_owned()];
        own.file_with(format!("dynamo-{}.yaml", pool.name), &how, &[document]);
    }
    own.note("Dynamo's planner steers by means of the last minutes: the plan's floors by the calendar are left out, and min_endpoint holds the fewest of any hour");
}

fn planner(own: &mut Emission<'_>, pool: &Pool<'_>) -> Item {
    let devices = pool.pool.parallelism.devices;
    let replicas = &pool.pool.replicas;
    let (fewest, most) = match pool.policy {
        Some(policy) if own.plan.scaling.advised => (policy.min_replicas, policy.max_replicas),
        _ => (replicas.total, replicas.total),
    };
    let mut out = map([("optimization_target", text("sla"))]);
    let line = pool.line;
    let promises = [
        ("ttft_ms", line.and_then(|line| line.ttft_s), "to the first token"),
        ("itl_ms", line.and_then(|line| line.tpot_s), "between tokens"),
    ];
    for (field, seconds, what) in promises {
        match seconds {
            Some(seconds) => {
                out = out.with(
                    field,
                    number(rounded_down(seconds * 1000.0, DIGITS))
                        .because(format!("ms promised {what}, rounded down")),
                );
            }
            None => own.note(format!(
                "`{}`: {field} is left out, because the plan promises nothing {what}",
                pool.pool.name
            )),
        }
    }
    out.with(
        "max_gpu_budget",
        number(u64::from(most) * devices)
            .because(format!("devices: {most} replicas of {devices}, the most that the plan has")),
    )
    .with(
        "min_endpoint",
        number(fewest).because("replicas: the fewest of any hour of the plan, reserve included"),
    )
}
