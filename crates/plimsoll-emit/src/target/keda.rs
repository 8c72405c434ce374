//! KEDA's `ScaledObject`: what comes, shared out over replicas; a calendar as its floor; guards.

use plimsoll_study::FilePolicy;

use super::EmitError;
use super::calendar::{Cron, crons};
use super::pool::{Emission, Pool, whole_up};
use super::scale::{Trigger, behaviour, target_ref, triggers};
use crate::manifest::{Item, list, map, number, quoted, text};

/// KEDA asks as often before it takes a signal for lost.
const FAILURES: u32 = 3;

pub(super) fn emit(own: &mut Emission<'_>) -> Result<(), EmitError> {
    for (pool, policy) in own.scaled() {
        if pool.queries.is_none() {
            own.note_unknown_engine(&pool);
            continue;
        }
        let asked = triggers(own, &pool, policy);
        if !asked.iter().any(|trigger| trigger.average) {
            own.note(format!(
                "`{}`: no signal of demand can be asked for, so no ScaledObject is written",
                pool.pool.name
            ));
            continue;
        }
        let calendar = crons(own, &pool, policy)?;
        let document = scaled_object(own, &pool, policy, &asked, &calendar);
        own.file(format!("keda-{}.yaml", pool.name), &[document]);
    }
    Ok(())
}

fn scaled_object(
    own: &mut Emission<'_>,
    pool: &Pool<'_>,
    policy: &FilePolicy,
    asked: &[Trigger],
    calendar: &[Cron],
) -> Item {
    let behaviour = behaviour(own, pool, policy);
    let (fallback, fallback_why) = fallback(pool, policy);
    let mut parts: Vec<Item> =
        asked.iter().map(|trigger| prometheus(&own.settings.prometheus, trigger)).collect();
    if let Some(watch) = &own.settings.watch {
        parts.push(watched(watch, pool));
    }
    for (at, cron) in calendar.iter().enumerate() {
        parts.push(
            map([
                ("type", text("cron")),
                ("name", text(format!("floor_{}", at + 1))),
                (
                    "metadata",
                    map([
                        ("timezone", text(&own.settings.timezone)),
                        ("start", quoted(&cron.start)),
                        ("end", quoted(&cron.end)),
                        ("desiredReplicas", quoted(cron.replicas.to_string())),
                    ]),
                ),
            ])
            .because(&cron.why),
        );
    }
    map([
        ("apiVersion", text("keda.sh/v1alpha1")),
        ("kind", text("ScaledObject")),
        ("metadata", own.metadata(&pool.name, Some(pool))),
        (
            "spec",
            map([
                ("scaleTargetRef", target_ref(own, pool)),
                (
                    "minReplicaCount",
                    number(policy.min_replicas)
                        .because("replicas: the fewest of any hour of the plan, reserve included"),
                ),
                (
                    "maxReplicaCount",
                    number(policy.max_replicas).because("replicas: the most that the plan has"),
                ),
                (
                    "pollingInterval",
                    number(whole_up(policy.sync_period_s).max(1))
                        .because("seconds between two decisions, as the plan was checked with"),
                ),
                (
                    "fallback",
                    map([
                        ("failureThreshold", number(FAILURES)),
                        ("replicas", number(fallback).because(fallback_why)),
                        ("behavior", text("currentReplicasIfHigher")),
                    ]),
                ),
                (
                    "advanced",
                    map([("horizontalPodAutoscalerConfig", map([("behavior", behaviour)]))]),
                ),
                ("triggers", list(parts)),
            ]),
        ),
    ])
}

/// How many replicas there are where nothing can be asked: those that carry the demand that was planned for.
fn fallback(pool: &Pool<'_>, policy: &FilePolicy) -> (u32, String) {
    let own = &pool.pool.replicas;
    let carries = own.steady + own.forecast + own.cold_cache;
    let kept = carries.clamp(policy.min_replicas, policy.max_replicas);
    let mut why = format!(
        "replicas without a signal: steady {} + forecast {} + cold cache {} = {carries}, which carry the planned demand of the busiest hour",
        own.steady, own.forecast, own.cold_cache
    );
    if kept != carries {
        why.push_str(&format!("; {kept} within the fewest and the most"));
    }
    (kept, why)
}

fn prometheus(server: &str, trigger: &Trigger) -> Item {
    map([
        ("type", text("prometheus")),
        ("name", text(&trigger.name)),
        ("metricType", text(trigger.metric_type())),
        (
            "metadata",
            map([
                ("serverAddress", text(server)),
                ("query", text(&trigger.query)),
                ("threshold", quoted(&trigger.threshold).because(&trigger.why)),
                ("ignoreNullValues", quoted("false")),
            ]),
        ),
    ])
}

/// What a running `plimsoll watch` recommends: as many replicas as it says, one each.
fn watched(url: &str, pool: &Pool<'_>) -> Item {
    map([
        ("type", text("metrics-api")),
        ("name", text("plimsoll_watch")),
        ("metricType", text("AverageValue")),
        (
            "metadata",
            map([
                ("url", text(format!("{}/metrics", url.trim_end_matches('/')))),
                ("format", text("prometheus")),
                (
                    "valueLocation",
                    text(format!(
                        "plimsoll_desired_replicas{{pool={}}}",
                        super::pool::promql_text(&pool.pool.name)
                    )),
                ),
                ("targetValue", quoted("1").because("a replica for each that is recommended")),
            ]),
        ),
    ])
}
