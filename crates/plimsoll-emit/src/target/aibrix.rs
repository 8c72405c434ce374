//! AIBrix' `PodAutoscaler`: one signal, and the calendar as bounds by the day.

use plimsoll_fleet::metrics::Signal;
use plimsoll_study::FilePolicy;

use super::EmitError;
use super::calendar::{DayWindow, day_name, day_windows};
use super::pool::{DIGITS, Emission, Pool, whole_up};
use super::scale::target_ref;
use crate::manifest::{Item, list, map, number, quoted, rounded_down, text};

pub(super) fn emit(own: &mut Emission<'_>) -> Result<(), EmitError> {
    for (pool, policy) in own.scaled() {
        let Some(source) = source(own, &pool, policy) else { continue };
        let windows = day_windows(own, &pool, policy)?;
        let mut spec = map([
            ("scaleTargetRef", target_ref(own, &pool)),
            ("scalingStrategy", text("APA")),
            (
                "minReplicas",
                number(policy.min_replicas)
                    .because("replicas: the fewest of any hour of the plan, reserve included"),
            ),
            (
                "maxReplicas",
                number(policy.max_replicas).because("replicas: the most that the plan has"),
            ),
            ("metricsSources", list(vec![source])),
        ]);
        let schedules = schedules(own, &pool, &windows);
        if !schedules.is_empty() {
            spec = spec.with("schedules", list(schedules));
        }
        let document = map([
            ("apiVersion", text("autoscaling.aibrix.ai/v1alpha1")),
            ("kind", text("PodAutoscaler")),
            ("metadata", own.metadata_with(&pool.name, Some(&pool), pace(policy))),
            ("spec", spec),
        ]);
        own.file(format!("aibrix-{}.yaml", pool.name), &[document]);
    }
    Ok(())
}

/// How fast to follow, which AIBrix reads from annotations.
fn pace(policy: &FilePolicy) -> Vec<(String, Item)> {
    let of = |name: &str, value: String, why: &str| {
        (format!("autoscaling.aibrix.ai/{name}"), quoted(value).because(why))
    };
    let seconds = |value: f64| format!("{}s", whole_up(value));
    let tolerance = rounded_down(policy.tolerance_share, DIGITS);
    let share = "share of the threshold, rounded down";
    vec![
        // AIBrix doubles as long as pods load, and has no period between steps: its window is one.
        of(
            "scale-up-cooldown-window",
            seconds(policy.up.period_s.max(policy.up.stabilisation_s)),
            &format!("the plan's seconds between steps up, rounded up: {}", policy.up.why),
        ),
        of(
            "scale-down-cooldown-window",
            seconds(policy.down.stabilisation_s),
            &format!("seconds, rounded up: {}", policy.down.why),
        ),
        of("scale-up-tolerance", tolerance.clone(), share),
        of("scale-down-tolerance", tolerance, share),
    ]
}

/// AIBrix asks pods one by one and takes a single metric: those that run are the part of what is in flight that every engine counts.
fn source(own: &mut Emission<'_>, pool: &Pool<'_>, policy: &FilePolicy) -> Option<Item> {
    let Some(metric) = pool.engine.as_ref().and_then(|engine| engine.metric(Signal::Running))
    else {
        own.note_unknown_engine(pool);
        return None;
    };
    let name = &pool.pool.name;
    let threshold = policy.thresholds.iter().find(|own| own.signal == "in_flight");
    let Some((threshold, value)) = threshold.and_then(|own| Some((own, own.value?))) else {
        own.note(format!(
            "`{name}`: the plan has no threshold of calls in flight, so no PodAutoscaler is written"
        ));
        return None;
    };
    // What runs cannot exceed what the engine runs at once, so a threshold there would never be reached.
    let most = pool.limits.and_then(|limits| limits.max_num_seqs.value);
    if most.is_some_and(|most| value >= most) {
        own.note(format!(
            "`{name}`: the threshold of {} calls is not below the {} sequences that an engine runs at once, so it would never be reached: no PodAutoscaler is written",
            rounded_down(value, DIGITS),
            rounded_down(most.unwrap_or(0.0), DIGITS)
        ));
        return None;
    }
    own.note(format!(
        "`{name}`: a PodAutoscaler has no period between steps, so a rise waits {} s before it is followed: the calendar must be there before demand is",
        whole_up(policy.up.period_s.max(policy.up.stabilisation_s))
    ));
    own.note(format!(
        "`{name}`: a PodAutoscaler takes one metric of pods: {} stands for calls in flight, so those that wait are not seen; fresh tokens and guards are left out, and so is how many replicas are added at once",
        metric.name
    ));
    Some(map([
        ("metricSourceType", text("pod")),
        ("protocolType", text("http")),
        ("port", quoted("8000").because("the engine's own port: not the plan's")),
        ("path", text("/metrics")),
        ("targetMetric", text(metric.name)),
        (
            "targetValue",
            quoted(rounded_down(value, DIGITS))
                .because(format!("{}, rounded down: {}", threshold.unit, threshold.why)),
        ),
    ]))
}

fn schedules(own: &mut Emission<'_>, pool: &Pool<'_>, windows: &[DayWindow]) -> Vec<Item> {
    let mut out = Vec::new();
    for window in windows {
        // A day ends at 23:59 there, so a window of the last minute alone cannot be said.
        let end = window.end.min(24 * 60 - 1);
        if end < window.end {
            own.note(format!(
                "`{}`: a window of AIBrix ends at 23:59 at the latest, so floors that go on past midnight miss the last minute of a day: the scale-down window must hold replicas over it, which is worth a test on your version",
                pool.pool.name
            ));
        }
        if window.start >= end {
            continue;
        }
        let clock = |minute: usize| quoted(format!("{:02}:{:02}", minute / 60, minute % 60));
        let days = window.days.iter().map(|day| text(day_name(*day))).collect();
        let number_of = out.len() + 1;
        out.push(
            map([
                ("name", text(format!("floor-{number_of}"))),
                ("timezone", text(&own.settings.timezone)),
                ("daysOfWeek", list(days)),
                ("startTime", clock(window.start)),
                ("endTime", clock(end)),
                ("minReplicas", number(window.replicas)),
            ])
            .because(format!(
                "{} replicas as planned, from before the hour so that they are ready in it",
                window.replicas
            )),
        );
    }
    out
}
