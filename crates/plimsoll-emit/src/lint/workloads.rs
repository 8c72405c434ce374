//! Rules about what serves: how it starts, how it ends, and what it is told to take.

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::Reporter;

use super::known::Files;
use super::workload::{GRACE_S, Workload};
use super::{Found, shown};

/// The first version of vLLM with `--shutdown-timeout`.
const SHUTDOWN_SINCE: &str = "0.18";

pub(super) fn check<'a>(own: &Workload<'a>, files: &Files<'a>, found: &mut Found<'_>) {
    let known = files.of_workload(own);
    if own.engine.is_none() && known.pool.is_none() {
        return;
    }
    start(own, known.startup_p99_s, known.startup_p90_s, found);
    end(own, known.generation_p99_s, found);
    if known.engine == Some(Reporter::Vllm) {
        aborts(own, known.version, known.generation_p99_s, found);
    }
    let limits = known.pool.and_then(|pool| pool.limits);
    if let (Some(limits), Some(told)) = (limits, own.max_num_seqs())
        && let Some(most) = limits.max_num_seqs.value
        && told > most
    {
        let node = own.flag_node("max-num-seqs").or(own.flag_node("max-running-requests"));
        let message = format!(
            "{} sequences at once, and the plan's limit for pool `{}` is {}",
            shown(told),
            limits.pool,
            shown(most)
        );
        let at = node.unwrap_or(own.container).at;
        let _ = found.warning(17, at, message).fix(format!("--max-num-seqs={}", shown(most)));
    }
}

/// L8, for probes.
fn start(own: &Workload<'_>, p99_s: Option<f64>, p90_s: Option<f64>, found: &mut Found<'_>) {
    let Some((budget, probe, node)) = own.start_budget_s() else { return };
    let (wanted, share) = match (p99_s, p90_s) {
        (Some(seconds), _) => (seconds, "99 starts in 100"),
        (None, Some(seconds)) => (seconds, "nine starts in ten"),
        (None, None) => return,
    };
    if budget >= wanted {
        return;
    }
    let period = node.get("periodSeconds").and_then(|own| own.number()).unwrap_or(10.0).max(1.0);
    let message = format!(
        "`{probe}` kills a pod after {} s, and {share} take up to {} s",
        shown(budget),
        shown(wanted)
    );
    let failures = (wanted * 1.2 / period).ceil();
    let fix = format!(
        "startupProbe:\n  periodSeconds: {}\n  failureThreshold: {}",
        shown(period),
        shown(failures)
    );
    let _ = found.error(8, node.at, message).fix(fix);
}

/// L13.
fn end(own: &Workload<'_>, generation_p99_s: Option<f64>, found: &mut Found<'_>) {
    let Some(wanted) = generation_p99_s else { return };
    let (grace, node) = own.grace_s();
    let stop = own.pre_stop_s();
    // Calls that run go on while a pod sleeps before its end, so all of the period is theirs; but the engine is told only then.
    if grace >= wanted {
        return;
    }
    let default = if node.is_none() { " (the default)" } else { "" };
    let message = format!(
        "a pod has {} s{default} to end, and 99 generations in 100 take up to {} s",
        shown(grace),
        shown(wanted)
    );
    let at = node.unwrap_or(own.pod).at;
    let _ = found
        .warning(13, at, message)
        .fix(format!("terminationGracePeriodSeconds: {}", shown((wanted + stop + 10.0).ceil())));
}

/// L25.
fn aborts(
    own: &Workload<'_>,
    version: Option<Version>,
    generation_p99_s: Option<f64>,
    found: &mut Found<'_>,
) {
    let new = SHUTDOWN_SINCE.parse().is_ok_and(|since| version.is_some_and(|own| own >= since));
    let (grace, node) = own.grace_s();
    if !new || grace <= GRACE_S || own.flag("shutdown-timeout").is_some() {
        return;
    }
    let stop = own.pre_stop_s();
    // What sleeps long enough has nothing left to cut off.
    if stop >= generation_p99_s.unwrap_or(grace / 2.0) {
        return;
    }
    let message = format!(
        "{} s to end, but vLLM cuts off what runs {} s into them: `--shutdown-timeout` is 0 s where it is not set",
        shown(grace),
        shown(stop)
    );
    let at = node.unwrap_or(own.pod).at;
    let left = (grace - stop - 5.0).max(1.0).floor();
    let _ = found.warning(25, at, message).fix(format!("--shutdown-timeout={}", shown(left)));
}
