//! How requests were served before and after, and why a success costs what it does.

use super::result::{BeforeAfter, CostChange, CostTerm, ServiceChange};
use super::{Service, ratio};

/// Those of both; all together first, then classes in the order of the later, and then of the earlier.
pub(super) fn changes(before: &[Service], after: &[Service]) -> Vec<ServiceChange> {
    let mut classes: Vec<Option<&str>> = Vec::new();
    for service in after.iter().chain(before) {
        if !classes.contains(&service.class.as_deref()) {
            classes.push(service.class.as_deref());
        }
    }
    // None is before any name; the sort is stable.
    classes.sort_by_key(|class| class.is_some());
    let of = |class| (find(before, class), find(after, class));
    classes.into_iter().map(|class| change(class, of(class))).collect()
}

pub(super) fn find<'a>(services: &'a [Service], class: Option<&str>) -> Option<&'a Service> {
    services.iter().find(|service| service.class.as_deref() == class)
}

fn change(
    class: Option<&str>,
    (before, after): (Option<&Service>, Option<&Service>),
) -> ServiceChange {
    let both = |of: &dyn Fn(&Service) -> Option<f64>| {
        let fine = |service: Option<&Service>| service.and_then(of).filter(|v| v.is_finite());
        let (before, after) = (fine(before), fine(after));
        let change = before.zip(after).and_then(|(before, after)| ratio(after, before));
        BeforeAfter { before, after, change }
    };
    ServiceChange {
        class: class.map(str::to_owned),
        retries: both(&attempts_per_request),
        limited_share: both(&|service| ratio(service.limited, service.attempts)),
        failed_share: both(&|service| ratio(service.failed, service.attempts)),
        ttft_p95_s: both(&|service| service.ttft_p95_s),
        ttft_p99_s: both(&|service| service.ttft_p99_s),
        itl_p95_s: both(&|service| service.itl_p95_s),
        itl_p99_s: both(&|service| service.itl_p99_s),
        goodput_share: both(&|service| ratio(service.good?, service.judged)),
        success_rate: both(&success_rate),
        attempts_per_task: both(&attempts_per_task),
        cost_per_attempt_usd: both(&cost_per_attempt),
        cost_per_success_usd: both(&cost_per_success),
    }
}

pub(super) fn attempts_per_request(service: &Service) -> Option<f64> {
    ratio(service.attempts, service.requests)
}

pub(super) fn success_rate(service: &Service) -> Option<f64> {
    ratio(service.succeeded, service.resolved)
}

/// Attempts that were processed: those that no limit refused.
fn processed(service: &Service) -> f64 {
    (service.attempts - service.limited).max(0.0)
}

pub(super) fn processed_per_request(service: &Service) -> Option<f64> {
    ratio(processed(service), service.requests)
}

/// What the period cost: processed attempts of unknown cost are taken for like those of known cost, and refused ones cost nothing.
///
/// Some logs know that a refused attempt cost nothing, and others say nothing of it. Where more attempts know their cost than were
/// processed, refused ones are among them, all cost is taken for known, and nothing is added. Where fewer do, they are taken to be
/// processed ones: were refused ones among them, too little would be added.
pub(super) fn period_cost(service: &Service) -> Option<f64> {
    let times = ratio(processed(service).max(service.costed), service.costed)?;
    Some(service.cost_usd? * times)
}

/// Of those that were processed, so that it times their number is what the period cost.
fn cost_per_attempt(service: &Service) -> Option<f64> {
    ratio(period_cost(service)?, processed(service))
}

fn attempts_per_task(service: &Service) -> Option<f64> {
    ratio(processed(service), service.tasks)
}

fn cost_per_success(service: &Service) -> Option<f64> {
    let task = cost_per_attempt(service)? * attempts_per_task(service)?;
    ratio(task, success_rate(service)?)
}

/// The decomposition for all classes together; none where a factor of either side is unknown or zero.
pub(super) fn cost_change(before: &[Service], after: &[Service]) -> Option<CostChange> {
    let (before, after) = (find(before, None)?, find(after, None)?);
    let term = |of: fn(&Service) -> Option<f64>, sign: f64| {
        let positive = |service| of(service).filter(|value| *value > 0.0);
        let (before, after) = (positive(before)?, positive(after)?);
        let log_change = sign * (after / before).ln();
        Some(CostTerm { before, after, log_change, percent: 100.0 * log_change.exp_m1() })
    };
    let cost_per_attempt = term(cost_per_attempt, 1.0)?;
    let attempts_per_task = term(attempts_per_task, 1.0)?;
    let success_rate = term(success_rate, -1.0)?;
    let (before_usd, after_usd) = (cost_per_success(before)?, cost_per_success(after)?);
    let change = ratio(after_usd, before_usd)?;
    Some(CostChange {
        before_usd,
        after_usd,
        change,
        log_change: cost_per_attempt.log_change
            + attempts_per_task.log_change
            + success_rate.log_change,
        percent: 100.0 * (change - 1.0),
        cost_per_attempt,
        attempts_per_task,
        success_rate,
    })
}
