//! A `HorizontalPodAutoscaler` on external metrics, and the rules by which a prometheus-adapter serves them.

use plimsoll_fleet::metrics::Signal;

use super::pool::{Emission, Pool, promql_text};
use super::scale::{Trigger, behaviour, target_ref, triggers};
use crate::manifest::{Item, block, file, flag, list, map, number, quoted, text};

pub(super) fn emit(own: &mut Emission<'_>) {
    let mut rules = Vec::new();
    for (pool, policy) in own.scaled() {
        // A series that exists as long as a replica does: the adapter looks for it to know that a metric is there.
        let series = pool
            .engine
            .as_ref()
            .and_then(|engine| Some(engine.of(engine.metric(Signal::Running)?, "")));
        let Some(series) = series else {
            own.note_unknown_engine(&pool);
            continue;
        };
        let mut asked = triggers(own, &pool, policy);
        if !asked.iter().any(|trigger| trigger.average) {
            own.note(format!(
                "`{}`: no signal of demand can be asked for, so no autoscaler is written",
                pool.pool.name
            ));
            continue;
        }
        asked.extend(own.settings.watch.as_ref().map(|_| watched(&pool)));
        let behaviour = behaviour(own, &pool, policy);
        if policy.floors.iter().any(|floor| floor.replicas > policy.min_replicas) {
            own.note(format!(
                "`{}`: a HorizontalPodAutoscaler has no calendar, so its floors are left out and only the fewest replicas, {}, are kept: replicas are not there before demand is; `--target keda` has the floors",
                pool.pool.name, policy.min_replicas
            ));
        }
        let metrics = asked.iter().map(|trigger| external(&pool, trigger)).collect();
        rules.extend(asked.iter().map(|trigger| rule(&pool, trigger, &series)));
        let document = map([
            ("apiVersion", text("autoscaling/v2")),
            ("kind", text("HorizontalPodAutoscaler")),
            ("metadata", own.metadata(&pool.name, Some(&pool))),
            (
                "spec",
                map([
                    ("scaleTargetRef", target_ref(own, &pool)),
                    (
                        "minReplicas",
                        number(policy.min_replicas).because(
                            "replicas: the fewest of any hour of the plan, reserve included",
                        ),
                    ),
                    (
                        "maxReplicas",
                        number(policy.max_replicas).because("replicas: the most that the plan has"),
                    ),
                    ("metrics", list(metrics)),
                    ("behavior", behaviour),
                ]),
            ),
        ]);
        own.file(format!("hpa-{}.yaml", pool.name), &[document]);
    }
    if rules.is_empty() {
        return;
    }
    let config = file(&[], &[map([("externalRules", list(rules))])]);
    let document = map([
        ("apiVersion", text("v1")),
        ("kind", text("ConfigMap")),
        ("metadata", own.metadata("plimsoll-prometheus-adapter", None)),
        ("data", map([("config.yaml", block(config))])),
    ]);
    own.file("hpa-prometheus-adapter.yaml".to_owned(), &[document]);
    own.note("`hpa-prometheus-adapter.yaml` holds the adapter's `externalRules` (`rules.external` of its Helm chart): add them to the adapter's own configuration, which it reads at its start");
}

/// What a running `plimsoll watch` recommends, where this Prometheus scrapes it.
fn watched(pool: &Pool<'_>) -> Trigger {
    Trigger {
        name: "watch".to_owned(),
        query: format!("max(plimsoll_desired_replicas{{pool={}}})", promql_text(&pool.pool.name)),
        threshold: "1".to_owned(),
        average: true,
        why: "a replica for each that is recommended".to_owned(),
    }
}

/// As the adapter serves it.
fn metric_name(pool: &Pool<'_>, trigger: &Trigger) -> String {
    format!("plimsoll_{}_{}", pool.name.replace('-', "_"), trigger.name)
}

fn external(pool: &Pool<'_>, trigger: &Trigger) -> Item {
    let value = quoted(&trigger.threshold).because(&trigger.why);
    let name = if trigger.average { "averageValue" } else { "value" };
    map([
        ("type", text("External")),
        (
            "external",
            map([
                ("metric", map([("name", text(metric_name(pool, trigger)))])),
                ("target", map([("type", text(trigger.metric_type()))]).with(name, value)),
            ]),
        ),
    ])
}

fn rule(pool: &Pool<'_>, trigger: &Trigger, series: &str) -> Item {
    // The adapter reads a query as a template, which `<<` opens.
    let plain = |query: &str| query.replace("<<", "\\x3c\\x3c");
    map([
        ("seriesQuery", text(series)),
        ("resources", map([("namespaced", flag(false))])),
        ("name", map([("as", text(metric_name(pool, trigger)))])),
        ("metricsQuery", text(plain(&trigger.query))),
    ])
}
