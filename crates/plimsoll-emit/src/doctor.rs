//! Every query of a manifest or a plan, asked: how many series, which value, how many replicas that means now, and whether it could have fired.

use plimsoll_live::{Answer, Prometheus, Series};
use serde::Serialize;

use crate::lint::{ManifestQuery, MetricType};

/// Points of the past that are looked at, at most.
const POINTS: f64 = 1000.0;
/// A step of the past is no shorter, in seconds.
const STEP_LEAST_S: f64 = 15.0;

/// A query to examine, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The file and line, or the plan's pool.
    pub origin: String,
    /// What it is, with what is made of its answer.
    pub query: ManifestQuery,
    /// Replicas that run now, where that is known.
    pub replicas: Option<f64>,
}

/// What was found of a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The file and line, or the plan's pool.
    pub origin: String,
    /// The manifest and its trigger.
    pub name: String,
    /// PromQL.
    pub query: String,
    /// Series that it returns now; none where it could not be asked.
    pub series: Option<usize>,
    /// Its value, where there is one series with a number.
    pub value: Option<f64>,
    /// What it is held against.
    pub target: Option<f64>,
    /// Replicas that it asks for now, before bounds.
    pub implied_replicas: Option<f64>,
    /// How it was.
    pub past: Option<Past>,
    /// `ok`, `warning` or `error`.
    pub verdict: Verdict,
    /// What is wrong, or worth knowing.
    pub says: Vec<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does what it is there for.
    Ok,
    /// It may not.
    Warning,
    /// It does not.
    Error,
}

/// How a query was over some days.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Past {
    /// How far back, in seconds.
    pub since_s: f64,
    /// Seconds between two points.
    pub step_s: f64,
    /// Points that were asked for.
    pub points: usize,
    /// Of which so many had an answer.
    pub answered: usize,
    /// Before the first answer there were so many.
    pub unborn: usize,
    /// After it, so many had none.
    pub silent: usize,
    /// Of those that were answered, so many had several series.
    pub several: usize,
    /// The least.
    pub least: Option<f64>,
    /// The most.
    pub most: Option<f64>,
    /// Points at which it was above its target, or an alert's condition held.
    pub above: usize,
    /// Stretches of such points.
    pub episodes: usize,
    /// The longest of them, in seconds.
    pub longest_s: f64,
}

/// Examines one query.
pub fn examine(prometheus: &Prometheus, asked: &Asked, now_s: f64, since_s: f64) -> Diagnosis {
    let query = &asked.query;
    let mut found = Diagnosis {
        origin: asked.origin.clone(),
        name: named(query),
        query: query.query.clone(),
        series: None,
        value: None,
        target: query.target,
        implied_replicas: None,
        past: None,
        verdict: Verdict::Ok,
        says: Vec::new(),
    };
    let answer = match prometheus.instant(&query.query, Some(now_s)) {
        Ok(answer) => answer,
        Err(error) => {
            found.bad(Verdict::Error, error.to_string());
            return found;
        }
    };
    now(&mut found, query, &answer, asked.replicas);
    let step_s = (since_s / POINTS).max(STEP_LEAST_S).ceil();
    match prometheus.range(&query.query, now_s - since_s, now_s, step_s) {
        Ok(series) => {
            let past = past(&series, query, now_s, (since_s, step_s));
            of_past(&mut found, query, &past);
            found.past = Some(past);
        }
        Err(error) => found.bad(Verdict::Warning, format!("its past could not be read: {error}")),
    }
    found
}

impl Diagnosis {
    fn bad(&mut self, verdict: Verdict, says: String) {
        self.verdict = self.verdict.max(verdict);
        self.says.push(says);
    }
}

fn named(query: &ManifestQuery) -> String {
    let part = query.alert.as_ref().map(|(name, _)| name.as_str()).or(query.trigger.as_deref());
    let whole = [Some(query.kind.as_str()), Some(query.name.as_str()), part];
    let parts: Vec<&str> = whole.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// What it gives now.
fn now(found: &mut Diagnosis, query: &ManifestQuery, answer: &Answer, replicas: Option<f64>) {
    let count = match answer {
        Answer::Scalar(_) => 1,
        Answer::Vector(series) => series.len(),
        Answer::Matrix(series) => series.len(),
        Answer::Text(_) => 0,
    };
    found.series = Some(count);
    found.value = answer.single();
    // An alert that is silent is as it should be; so is a rule without targets.
    let Some(kind) = query.metric_type else {
        if let Some((name, _)) = query.alert.as_ref().filter(|_| count > 0) {
            found.bad(Verdict::Warning, format!("the condition of `{name}` holds now"));
        }
        return;
    };
    let zero = query.ignore_null != Some(false);
    match (count, found.value) {
        (0, _) if zero => found.bad(Verdict::Error, "no series, and KEDA takes that for 0: it scales in. Set `ignoreNullValues: \"false\"`, and look for the metric".to_owned()),
        (0, _) => found.bad(Verdict::Error, "no series: the trigger fails, and scaling in is blocked until it answers".to_owned()),
        (1, None) => found.bad(Verdict::Error, "one series without a number (NaN or Inf)".to_owned()),
        (1, Some(value)) => {
            let Some(target) = query.target.filter(|target| *target > 0.0) else {
                found.bad(Verdict::Warning, "it has no target that it could be held against".to_owned());
                return;
            };
            found.implied_replicas = match kind {
                MetricType::AverageValue => Some((value / target).ceil()),
                MetricType::Value => replicas.map(|replicas| (replicas * value / target).ceil()),
                MetricType::PerPod => None,
            };
            if let (Some(implied), Some(most)) = (found.implied_replicas, query.max_replicas)
                && implied > most
            {
                found.bad(
                    Verdict::Warning,
                    format!("asks for {implied} replicas, and at most {most} are allowed"),
                );
            }
        }
        (count, _) => found.bad(
            Verdict::Error,
            format!("{count} series: KEDA takes one and fails on more. Aggregate: `sum({})`", query.query),
        ),
    }
}

/// How it was, point by point.
fn past(
    series: &[Series],
    query: &ManifestQuery,
    now_s: f64,
    (since_s, step_s): (f64, f64),
) -> Past {
    let mut points: std::collections::BTreeMap<i64, (usize, f64)> =
        std::collections::BTreeMap::new();
    for own in series {
        for sample in &own.samples {
            let Some(value) = sample.value else { continue };
            let at = points.entry(sample.at_ms).or_insert((0, f64::NEG_INFINITY));
            *at = (at.0 + 1, at.1.max(value));
        }
    }
    let alert = query.alert.is_some();
    let fires = |value: f64| alert || query.target.is_some_and(|target| value > target);
    let step_ms = (step_s * 1e3) as i64;
    let (mut episodes, mut above, mut longest, mut run) = (0, 0, 0i64, None::<(i64, i64)>);
    for (at, (_, value)) in &points {
        if !fires(*value) {
            run = None;
            continue;
        }
        above += 1;
        run = match run {
            Some((from, last)) if at - last <= step_ms => Some((from, *at)),
            _ => {
                episodes += 1;
                Some((*at, *at))
            }
        };
        if let Some((from, last)) = run {
            longest = longest.max(last - from + step_ms);
        }
    }
    let values = points.values().map(|(_, value)| *value);
    let count = (since_s / step_s).floor() as usize + 1;
    let after = match (points.keys().next(), points.keys().next_back()) {
        (Some(first), Some(_)) => {
            ((now_s * 1e3 - *first as f64) / (step_s * 1e3)).floor() as usize + 1
        }
        _ => 0,
    };
    Past {
        since_s,
        step_s,
        points: count,
        unborn: count.saturating_sub(after),
        silent: after.saturating_sub(points.len()),
        answered: points.len(),
        several: points.values().filter(|(count, _)| *count > 1).count(),
        least: values.clone().reduce(f64::min),
        most: values.reduce(f64::max),
        above,
        episodes,
        longest_s: longest as f64 / 1e3,
    }
}

fn of_past(found: &mut Diagnosis, query: &ManifestQuery, past: &Past) {
    let days = lasting(past.since_s);
    let times = |n: usize| if n == 1 { "once".to_owned() } else { format!("{n} times") };
    if query.alert.is_some() {
        found.says.push(match past.above {
            0 => format!("its condition did not hold in the last {days}"),
            _ => format!(
                "its condition held {} in the last {days}, {} at the longest",
                times(past.episodes),
                lasting(past.longest_s)
            ),
        });
        return;
    }
    if query.metric_type.is_none() {
        return;
    }
    if past.answered == 0 {
        found
            .bad(Verdict::Error, format!("it had no answer in the last {days}: it can never fire"));
        return;
    }
    if past.several > 0 && found.series.is_some_and(|now| now <= 1) {
        found.bad(
            Verdict::Error,
            format!(
                "it had several series at {} of {} points: KEDA failed there",
                past.several, past.answered
            ),
        );
    }
    if let (Some(target), Some(least), Some(most)) =
        (query.target.filter(|t| *t > 0.0), past.least, past.most)
    {
        found.says.push(match query.metric_type {
            // The sum is shared by the replicas that there were, so it is told in replicas.
            Some(MetricType::AverageValue) => {
                let (low, high) = ((least / target).ceil(), (most / target).ceil());
                match query.min_replicas.filter(|fewest| high <= *fewest) {
                    Some(fewest) => format!("it asked for {high} at most in the last {days}, and there are {fewest} at least: it never fired"),
                    None => format!("it asked for {low} to {high} replicas in the last {days}"),
                }
            }
            // Whether that is good or bad depends on whether there was anything to fire for.
            _ if past.above == 0 => format!("it did not fire in the last {days}: {} at most, and its target is {}", short(most), short(target)),
            _ => format!(
                "above its target {} in the last {days} ({:.1}% of the time), {} at most",
                times(past.episodes),
                100.0 * past.above as f64 / past.answered as f64,
                short(most)
            ),
        });
    }
    if past.silent * 50 > past.points {
        found.bad(
            Verdict::Warning,
            format!(
                "no answer at {} of {} points since it first had one",
                past.silent,
                past.silent + past.answered
            ),
        );
    }
    if past.unborn * 50 > past.points {
        let known = lasting((past.points - past.unborn) as f64 * past.step_s);
        found.says.push(format!("it has had answers for {known} only"));
    }
}

fn lasting(seconds: f64) -> String {
    match seconds {
        s if s >= 2.0 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        s if s >= 7200.0 => format!("{:.0} hours", s / 3600.0),
        s if s >= 120.0 => format!("{:.0} min", s / 60.0),
        s => format!("{s:.0} s"),
    }
}

/// Four digits.
fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    ((value * scale).round() / scale).to_string()
}
