//! The Gateway API inference extension, and the endpoint picker of llm-d that goes with it.

use plimsoll_study::FileLimits;

use super::litellm::sum;
use super::pool::{DIGITS, Emission, Pool, slug, whole};
use crate::manifest::{Item, list, map, map_of, number, quoted, rounded_down, text};

pub(super) fn emit(own: &mut Emission<'_>) {
    for pool in own.pools.clone() {
        let Some(limits) = pool.limits else {
            own.note(format!("`{}`: the plan has no limits for it", pool.pool.name));
            continue;
        };
        let mut documents = vec![inference_pool(own, &pool)];
        let mut names: Vec<String> = Vec::new();
        for class in &limits.classes {
            let name = slug(&format!("{}-{}", pool.name, class.class));
            if names.contains(&name) {
                own.note(format!(
                    "`{}`: class `{}` is left out, because another has its name `{name}`",
                    pool.pool.name, class.class
                ));
                continue;
            }
            documents.push(objective(own, &pool, &name));
            names.push(name);
        }
        own.file(format!("gie-{}.yaml", pool.name), &documents);
        let config = picker(own, &pool, limits);
        own.file(format!("gie-{}-epp-config.yaml", pool.name), &[config]);
    }
    own.note("a plan knows no priorities: each class has 0; give those that may wait, such as batch, a negative one");
    own.note("ports (8000 of engines, 9002 of the picker) and the selector `app` are those of the projects' examples, not the plan's");
}

fn inference_pool(own: &Emission<'_>, pool: &Pool<'_>) -> Item {
    map([
        ("apiVersion", text("inference.networking.k8s.io/v1")),
        ("kind", text("InferencePool")),
        ("metadata", own.metadata(&pool.name, Some(pool))),
        (
            "spec",
            map([
                ("selector", map([("matchLabels", map([("app", text(&pool.name))]))])),
                ("targetPorts", list(vec![map([("number", number(8000))])])),
                (
                    "endpointPickerRef",
                    map([
                        ("name", text(format!("{}-epp", pool.name))),
                        ("port", map([("number", number(9002))])),
                        ("failureMode", text("FailClose")),
                    ]),
                ),
            ]),
        ),
    ])
}

fn objective(own: &Emission<'_>, pool: &Pool<'_>, name: &str) -> Item {
    map([
        ("apiVersion", text("llm-d.ai/v1alpha2")),
        ("kind", text("InferenceObjective")),
        ("metadata", own.metadata(name, Some(pool))),
        ("spec", map([("priority", number(0)), ("poolRef", map([("name", text(&pool.name))]))])),
    ])
}

fn picker(own: &mut Emission<'_>, pool: &Pool<'_>, limits: &FileLimits) -> Item {
    let name = pool.pool.name.clone();
    let mut left_out = |what: &str, why: &str| {
        own.note(format!("`{name}`: {what} is left out, because the plan does not know it: {why}"));
    };
    let mut parameters = Vec::new();
    match whole(&limits.queue_requests) {
        Some((value, why)) => parameters.push((
            "queueDepthThreshold".to_owned(),
            number(value).because(format!("{}: {why}", limits.queue_requests.unit)),
        )),
        None => left_out("queueDepthThreshold", &limits.queue_requests.why),
    }
    match limits.kv_ceiling.value {
        Some(value) => parameters.push((
            "kvCacheUtilThreshold".to_owned(),
            number(rounded_down(value, DIGITS)).because(format!(
                "{}, rounded down: {}",
                limits.kv_ceiling.unit, limits.kv_ceiling.why
            )),
        )),
        None => left_out("kvCacheUtilThreshold", &limits.kv_ceiling.why),
    }
    let mut control =
        map([("saturationDetector", map([("pluginRef", text("utilization-detector"))]))]);
    let most = sum(limits, |class| &class.concurrency, None);
    match &most {
        Ok((value, why)) => control = control.with("maxRequests", quoted(value).because(why)),
        Err(class) => left_out("maxRequests", &format!("class `{class}`")),
    }
    for (field, limit) in [
        ("defaultRequestTTL", &limits.request_ttl),
        ("noEndpointRequestTTL", &limits.no_endpoint_ttl),
    ] {
        match limit.value {
            Some(value) => control = control.with(field, text(duration(value)).because(&limit.why)),
            None => left_out(field, &limit.why),
        }
    }
    if let Ok((value, _)) = &most {
        let band = map([("priority", number(0)), ("maxRequests", quoted(value))])
            .because("all classes have priority 0, so its band is the whole");
        control = control.with("priorityBands", list(vec![band]));
    }
    map([
        ("apiVersion", text("llm-d.ai/v1alpha1")),
        ("kind", text("EndpointPickerConfig")),
        ("featureGates", list(vec![text("flowControl")])),
        (
            "plugins",
            list(vec![map([
                ("type", text("utilization-detector")),
                ("parameters", map_of(parameters)),
            ])]),
        ),
        ("flowControl", control),
    ])
}

/// As Go reads it, rounded down to milliseconds.
fn duration(seconds: f64) -> String {
    if seconds.fract() == 0.0 {
        format!("{seconds:.0}s")
    } else {
        format!("{:.0}ms", (seconds * 1000.0 + 1e-6).floor())
    }
}
