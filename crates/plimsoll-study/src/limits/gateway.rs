//! What a gateway lets through: by class, by tenant, by feature.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Limit, LimitedClass, LimitsInput, known, shown};

/// The window that gateways count calls and tokens over, in seconds.
const MINUTE: f64 = 60.0;

/// What a gateway lets through of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassLimits {
    /// The class.
    pub class: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// What it is for.
    pub feature: Option<String>,
    /// Calls a minute.
    pub rpm: Limit,
    /// Tokens a minute, prompts and outputs.
    pub tpm: Limit,
    /// Calls at once: the hard guard.
    pub concurrency: Limit,
    /// Retries, against first attempts.
    pub retry_budget: Limit,
}

/// What a gateway lets through of a tenant: the limits of its classes together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TenantLimits {
    /// The tenant.
    pub tenant: String,
    /// Calls a minute.
    pub rpm: Limit,
    /// Tokens a minute, prompts and outputs.
    pub tpm: Limit,
    /// Calls at once.
    pub concurrency: Limit,
}

/// Tokens that a feature uses in a day, as forecast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeatureBudget {
    /// The feature; none for classes that have none.
    pub feature: Option<String>,
    /// Calls.
    pub calls_per_day: Option<f64>,
    /// Prompt tokens, cached ones included.
    pub prompt_tokens_per_day: Option<f64>,
    /// Those that are not cached.
    pub fresh_tokens_per_day: Option<f64>,
    /// Output tokens.
    pub output_tokens_per_day: Option<f64>,
    /// Where it comes from, or what is missing.
    pub why: String,
}

/// The part of each class of a sum over all of them; none at all where one of them is not known.
fn parts(classes: &[LimitedClass], of: fn(&LimitedClass) -> Option<f64>) -> Vec<Option<f64>> {
    let each: Option<Vec<f64>> = classes.iter().map(|class| counted(of(class))).collect();
    let all = each.as_ref().and_then(|each| known(Some(each.iter().sum())));
    match (each, all) {
        (Some(each), Some(all)) => each.into_iter().map(|own| Some(own / all)).collect(),
        _ => vec![None; classes.len()],
    }
}

/// A number that may be zero.
fn counted(quantity: Option<f64>) -> Option<f64> {
    quantity.filter(|n| n.is_finite() && *n >= 0.0)
}

/// Limits of each class: its part of the load line of the plan, and of the calls that the pool has room for.
pub(super) fn class_limits(input: &LimitsInput, in_flight_most: Option<f64>) -> Vec<ClassLimits> {
    let replicas = f64::from(input.replicas);
    let line = known(input.line.calls_per_s).and_then(|calls| known(Some(calls * replicas)));
    let line_in_flight =
        known(input.line.in_flight_mean).and_then(|calls| known(Some(calls * replicas)));
    let demand = known(Some(input.classes.iter().filter_map(|c| known(c.calls_per_s)).sum()));
    let rates = parts(&input.classes, |c| c.calls_per_s);
    let in_flight = parts(&input.classes, |c| c.in_flight_mean);
    let each = input.classes.iter().zip(rates.into_iter().zip(in_flight));
    each.map(|(class, (rate, share))| {
        let calls = line.zip(rate).map(|(line, part)| line * part);
        let under_way = line_in_flight.zip(share).map(|(all, part)| all * part);
        ClassLimits {
            class: class.name.clone(),
            tenant: class.tenant.clone(),
            feature: class.feature.clone(),
            rpm: rpm(line, rate, calls),
            tpm: tpm(class, calls, under_way),
            concurrency: concurrency(in_flight_most, share),
            retry_budget: retry_budget(class, line, demand),
        }
    })
    .collect()
}

fn rpm(line: Option<f64>, part: Option<f64>, calls: Option<f64>) -> Limit {
    let unit = "calls/min";
    let (Some(line), Some(part), Some(calls)) = (line, part, calls) else {
        let why = "the load line of the plan, or what the class asks of it, is not known";
        return Limit::unknown(unit, why);
    };
    let value = (MINUTE * calls).floor();
    let why = format!(
        "60 s x {} of the {} calls/s that the plan carries at its load line",
        super::percent(part),
        shown(line)
    );
    if value < 1.0 {
        return Limit::unknown(unit, format!("{why}: less than one call a minute"));
    }
    Limit::of(value, unit, why)
}

/// Tokens are counted when a call is over. When the limit is reached, as many calls as are in flight have been let in whose tokens are still to come; so it is lower by
/// these. A call that takes as long as the window takes all of it.
fn tpm(class: &LimitedClass, calls: Option<f64>, under_way: Option<f64>) -> Limit {
    let unit = "tokens/min";
    let tokens =
        class.prompt_tokens.zip(class.output_tokens).map(|(prompt, output)| prompt + output);
    let Some(tokens) = known(tokens) else {
        return Limit::unknown(unit, "how many tokens a call has is not known");
    };
    let (Some(calls), Some(under_way)) = (calls, under_way) else {
        let why = "the class's part of the load line, or of the calls in flight, is not known";
        return Limit::unknown(unit, why);
    };
    let (all, overshoot) = (MINUTE * calls * tokens, under_way * tokens);
    let why = format!(
        "60 s x {} calls/s x {} tokens, less {} calls in flight x {} tokens that are let in before they are counted",
        shown(calls),
        shown(tokens),
        shown(under_way),
        shown(tokens)
    );
    let value = (all - overshoot).floor();
    if value < 1.0 {
        let why = format!(
            "{why}: nothing is left, since calls take as long as the window; limit calls at once instead"
        );
        return Limit::unknown(unit, why);
    }
    Limit::of(value, unit, why)
}

fn concurrency(most: Option<f64>, part: Option<f64>) -> Limit {
    let unit = "calls at once";
    let (Some(most), Some(part)) = (known(most), part) else {
        let why = "how many calls the pool has room for, or how many of them are the class's, is not known";
        return Limit::unknown(unit, why);
    };
    let value = (most * part).floor();
    let why = format!(
        "{} of the {} calls that replicas run and let wait before they turn anybody away",
        super::percent(part),
        shown(most)
    );
    if value < 1.0 {
        return Limit::unknown(unit, format!("{why}: less than one; calls a minute limit it"));
    }
    Limit::of(value, unit, why)
}

/// When everybody fails and comes again, first attempts and retries together stay at the load line.
fn retry_budget(class: &LimitedClass, line: Option<f64>, demand: Option<f64>) -> Limit {
    let unit = "retries/first attempt";
    let Some(attempts) = class.retry_attempts.filter(|n| *n > 0) else {
        return Limit::unknown(unit, "whether clients come again is not known");
    };
    if attempts == 1 {
        return Limit::unknown(unit, "clients do not come again: there is nothing to limit");
    }
    let (Some(line), Some(demand)) = (line, demand) else {
        return Limit::unknown(unit, "the load line of the plan, or the demand, is not known");
    };
    let room = (line / demand - 1.0).max(0.0);
    let sentence = format!(
        "the plan carries {} calls/s and {} are asked for, which leaves {} of first attempts",
        shown(line),
        shown(demand),
        super::percent(room)
    );
    let (value, why) = match counted(class.retry_budget) {
        Some(own) if own < room => {
            (own, format!("{sentence}; clients allow themselves {}", super::percent(own)))
        }
        _ => (room, sentence),
    };
    let most = f64::from(attempts - 1);
    if value > most {
        let why = format!("{why}; {attempts} attempts are at most {} retries", shown(most));
        return Limit::of(most, unit, why);
    }
    Limit::of(value, unit, why)
}

/// The limits of the classes of each tenant together.
pub(super) fn tenant_limits(classes: &[LimitedClass], limits: &[ClassLimits]) -> Vec<TenantLimits> {
    let mut tenants: BTreeMap<&str, Vec<&ClassLimits>> = BTreeMap::new();
    for (class, limits) in classes.iter().zip(limits) {
        if let Some(tenant) = &class.tenant {
            tenants.entry(tenant).or_default().push(limits);
        }
    }
    let sum = |own: &[&ClassLimits], of: fn(&ClassLimits) -> &Limit, unit: &'static str| {
        let missing = own.iter().find(|limits| of(limits).value.is_none());
        if let Some(missing) = missing {
            let why = format!("class `{}` has none: {}", missing.class, of(missing).why);
            return Limit::unknown(unit, why);
        }
        let each = own.iter().filter_map(|limits| Some((&limits.class, of(limits).value?)));
        let why = each.clone().map(|(class, value)| format!("`{class}` {}", shown(value)));
        let why = format!("its classes together: {}", why.collect::<Vec<_>>().join(" + "));
        Limit::of(each.map(|(_, value)| value).sum(), unit, why)
    };
    let each = tenants.into_iter().map(|(tenant, own)| TenantLimits {
        tenant: tenant.to_owned(),
        rpm: sum(&own, |c| &c.rpm, "calls/min"),
        tpm: sum(&own, |c| &c.tpm, "tokens/min"),
        concurrency: sum(&own, |c| &c.concurrency, "calls at once"),
    });
    each.collect()
}

/// What the classes of each feature use in a day.
pub(super) fn feature_budgets(classes: &[LimitedClass]) -> Vec<FeatureBudget> {
    let mut features: BTreeMap<Option<&str>, Vec<&LimitedClass>> = BTreeMap::new();
    for class in classes {
        features.entry(class.feature.as_deref()).or_default().push(class);
    }
    let each = features.into_iter().map(|(feature, own)| {
        // What is not known of one class is not known of all of them.
        let sum = |of: &dyn Fn(&LimitedClass) -> Option<f64>| {
            let each = own.iter().map(|class| {
                let calls = counted(class.calls_per_day)?;
                Some(calls * counted(of(class))?)
            });
            each.sum::<Option<f64>>()
        };
        let calls = sum(&|_| Some(1.0));
        let missing = own.iter().find(|class| class.calls_per_day.is_none());
        let why = match (missing, calls) {
            (Some(class), _) => {
                format!("how often `{}` calls in a day is not forecast", class.name)
            }
            (None, None) => "the forecast is no number".to_owned(),
            (None, Some(calls)) => {
                format!("{} calls a day as forecast, at their tokens on average", shown(calls))
            }
        };
        FeatureBudget {
            feature: feature.map(str::to_owned),
            calls_per_day: calls,
            prompt_tokens_per_day: sum(&|c| c.prompt_tokens),
            fresh_tokens_per_day: sum(&|c| c.fresh_tokens),
            output_tokens_per_day: sum(&|c| c.output_tokens),
            why,
        }
    });
    each.collect()
}
