//! What autoscalers of any kind are told: signals with their thresholds, and how fast to follow them.

use plimsoll_study::{FileBehaviour, FilePolicy, FileThreshold};

use super::pool::{DIGITS, Emission, Pool, whole_up};
use crate::manifest::{Item, list, map, number, quoted, rounded_down, text};

/// The longest period of a policy that Kubernetes takes, in seconds.
const PERIOD_MOST: u64 = 1800;
/// The longest stabilisation window that it takes, in seconds.
const STABILISATION_MOST: u64 = 3600;

/// A signal that is looked at.
pub(super) struct Trigger {
    pub(super) name: String,
    pub(super) query: String,
    /// As it is written.
    pub(super) threshold: String,
    /// Whether it is shared out over replicas; otherwise it is compared as it is.
    pub(super) average: bool,
    pub(super) why: String,
}

impl Trigger {
    pub(super) fn metric_type(&self) -> &'static str {
        if self.average { "AverageValue" } else { "Value" }
    }
}

/// The signals of a policy that a pool's engine, or its gateway, can answer.
pub(super) fn triggers(
    own: &mut Emission<'_>,
    pool: &Pool<'_>,
    policy: &FilePolicy,
) -> Vec<Trigger> {
    let mut out = Vec::new();
    for threshold in &policy.thresholds {
        match trigger(pool, threshold, policy.tolerance_share) {
            Ok(trigger) => out.push(trigger),
            Err(why) => {
                own.note(format!("`{}`: {} is left out: {why}", pool.pool.name, threshold.signal))
            }
        }
    }
    out
}

fn trigger(pool: &Pool<'_>, threshold: &FileThreshold, tolerance: f64) -> Result<Trigger, String> {
    let value = threshold
        .value
        .filter(|value| value.is_finite() && *value > 0.0)
        .ok_or_else(|| format!("the plan has no threshold for it ({})", threshold.why))?;
    let queries = pool.queries.as_ref();
    let mut more = String::new();
    let query = match threshold.signal.as_str() {
        "fresh_tokens" => {
            if queries.is_some_and(|own| !own.offered) {
                more.push_str("; but without a gateway engines count it, which is what they served and flattens where the pool is full: what is in flight goes on rising");
            }
            queries.and_then(|own| own.fresh_tokens.clone())
        }
        "in_flight" => queries.and_then(|own| own.in_flight.clone()),
        "queue_depth" => queries.and_then(|own| own.waiting.clone()),
        "ttft_p90" => queries.and_then(|own| own.ttft_p90.as_ref()).map(|query| {
            more.push_str("; where nobody calls there is no quantile, and 0 stands for it, so that a quiet pool is not taken for a lost signal");
            plimsoll_live::quiet_is_zero(query)
        }),
        "kv" if value >= 1.0 => {
            return Err(format!("its threshold is {value}, and a share never exceeds one"));
        }
        // An autoscaler does nothing within its tolerance, so a share that ends there asks for nothing.
        "kv" if 1.0 / value <= 1.0 + tolerance => {
            return Err(format!(
                "a full cache is {}% above its threshold of {}, and nothing is done within {}%: it would never ask for a replica",
                rounded_down((1.0 / value - 1.0) * 100.0, 2),
                rounded_down(value, DIGITS),
                rounded_down(tolerance * 100.0, 2)
            ));
        }
        "kv" => queries.and_then(|own| own.kv_share.clone()),
        _ => return Err("it is a signal that is not known here".to_owned()),
    };
    let query = query.ok_or_else(|| format!("`{}` does not report it", pool.pool.engine))?;
    let average = threshold.kind == "average_value";
    Ok(Trigger {
        name: threshold.signal.clone(),
        query,
        threshold: rounded_down(value, DIGITS),
        average,
        why: format!("{}, rounded down: {}{more}", threshold.unit, threshold.why),
    })
}

/// The `behavior` of a horizontal autoscaler.
pub(super) fn behaviour(own: &mut Emission<'_>, pool: &Pool<'_>, policy: &FilePolicy) -> Item {
    let tolerance = rounded_down(policy.tolerance_share, DIGITS);
    let mut one = |behaviour: &FileBehaviour, select: &str, which: &str| {
        let period = clamped(own, pool, which, "period", behaviour.period_s, PERIOD_MOST);
        let window = clamped(
            own,
            pool,
            which,
            "stabilisation window",
            behaviour.stabilisation_s,
            STABILISATION_MOST,
        );
        map([
            ("stabilizationWindowSeconds", number(window)),
            ("selectPolicy", text(select)),
            (
                "tolerance",
                quoted(&tolerance).because(
                    "share of the threshold, rounded down; Kubernetes 1.34, or 1.33 with its feature gate",
                ),
            ),
            (
                "policies",
                list(vec![map([
                    ("type", text("Pods")),
                    ("value", number(behaviour.replicas.max(1))),
                    ("periodSeconds", number(period.max(1))),
                ])]),
            ),
        ])
        .because(match period < whole_up(behaviour.period_s) {
            true => format!(
                "seconds, rounded up; {} in the plan, and {PERIOD_MOST} is the longest period there is: {}",
                whole_up(behaviour.period_s),
                behaviour.why
            ),
            false => format!("seconds, rounded up: {}", behaviour.why),
        })
    };
    map([
        ("scaleUp", one(&policy.up, "Max", "up")),
        ("scaleDown", one(&policy.down, "Min", "down")),
    ])
}

fn clamped(
    own: &mut Emission<'_>,
    pool: &Pool<'_>,
    which: &str,
    what: &str,
    seconds: f64,
    most: u64,
) -> u64 {
    let wanted = whole_up(seconds);
    if wanted > most {
        own.note(format!(
            "`{}`: the {what} on the way {which} is {wanted} s in the plan; Kubernetes takes {most} s at most, and {most} s is written",
            pool.pool.name
        ));
    }
    wanted.min(most)
}

/// Which object is scaled.
pub(super) fn target_ref(own: &Emission<'_>, pool: &Pool<'_>) -> Item {
    map([
        ("apiVersion", text(own.settings.workload.api_version())),
        ("kind", text(own.settings.workload.kind())),
        ("name", text(&pool.name)),
    ])
}
