//! Where metrics come from: one small question that a Prometheus and a file in memory answer alike.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_fleet::metrics::{Reporter, reporter_of};

use crate::answer::{Labels, Sample, Series};
use crate::client::Prometheus;
use crate::error::LiveError;
use crate::openmetrics::{Exposition, Stored};

/// Which series are asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matcher {
    /// The label has this value.
    Is(String, String),
    /// The label has another value, or none.
    IsNot(String, String),
    /// The label has one of these values.
    AnyOf(String, Vec<String>),
}

/// What is made of the samples of a series within a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Over {
    /// The last of them.
    Last,
    /// The largest.
    Max,
    /// Their mean.
    Mean,
    /// How many there are.
    Count,
    /// How often one is smaller than the one before.
    Resets,
}

/// What is made of series that are not told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pool {
    /// They are added.
    Sum,
    /// The largest counts.
    Max,
}

/// A question: of every series that matches, what was in `(t - range, t]`, for each `t` from `start` to `end`; both included.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The metric, as scraped.
    pub name: String,
    /// Which of its series.
    pub matches: Vec<Matcher>,
    /// What is made of the samples of a series.
    pub over: Over,
    /// How far back samples are looked for.
    pub range_ms: i64,
    /// What is made of series that differ in other labels than `by`.
    pub pool: Pool,
    /// Labels that are kept.
    pub by: Vec<String>,
    /// The first time, in milliseconds since 1970.
    pub start_ms: i64,
    /// The last.
    pub end_ms: i64,
    /// From one to the next.
    pub step_ms: i64,
}

/// Who can be asked for metrics.
pub trait MetricSource {
    /// As it may be shown.
    fn name(&self) -> &str;

    /// The names of metrics of engines and gateways that have samples in a stretch of time, or near it.
    fn names(
        &self,
        span_ms: (i64, i64),
        matches: &[Matcher],
    ) -> Result<BTreeSet<String>, LiveError>;

    /// What a question gives; times without samples are left out, and so are series without any.
    fn ask(&self, ask: &Ask) -> Result<Vec<Series>, LiveError>;

    /// The most samples of one answer.
    fn most_samples(&self) -> usize;
}

/// What a sample of an answer takes, in bytes, with its share of the labels.
const SAMPLE_BYTES: u64 = 48;

impl MetricSource for Prometheus {
    fn name(&self) -> &str {
        self.name()
    }

    fn names(
        &self,
        (start, end): (i64, i64),
        matches: &[Matcher],
    ) -> Result<BTreeSet<String>, LiveError> {
        let prefixes = Reporter::ALL.map(|own| own.prefix().replace(':', "[:_]"));
        let known = format!("__name__=~\"({}).*\"", prefixes.join("|"));
        let all: Vec<String> = std::iter::once(known).chain(matches.iter().map(promql)).collect();
        let span = (start as f64 / 1000.0, end as f64 / 1000.0);
        self.metric_names(Some(&format!("{{{}}}", all.join(","))), Some(span))
    }

    fn ask(&self, ask: &Ask) -> Result<Vec<Series>, LiveError> {
        let s = |ms: i64| ms as f64 / 1000.0;
        self.range(&ask.promql(), s(ask.start_ms), s(ask.end_ms), s(ask.step_ms))
    }

    fn most_samples(&self) -> usize {
        usize::try_from(self.most_bytes() / SAMPLE_BYTES).unwrap_or(usize::MAX)
    }
}

impl Ask {
    /// As a query. What a range holds at its far end differs between Prometheus 2 and 3, so that it is a millisecond shorter.
    pub fn promql(&self) -> String {
        let over = match self.over {
            Over::Last => "last_over_time",
            Over::Max => "max_over_time",
            Over::Mean => "avg_over_time",
            Over::Count => "count_over_time",
            Over::Resets => "resets",
        };
        let pool = match self.pool {
            Pool::Sum => "sum",
            Pool::Max => "max",
        };
        let matches: Vec<String> = self.matches.iter().map(promql).collect();
        let (name, by) = (&self.name, self.by.join(", "));
        let range = (self.range_ms - 1).max(1);
        format!("{pool} by ({by}) ({over}({name}{{{}}}[{range}ms]))", matches.join(","))
    }
}

impl Matcher {
    fn has(&self, labels: &Labels) -> bool {
        let value = |label: &String| labels.get(label).map_or("", String::as_str);
        match self {
            Self::Is(label, wanted) => value(label) == wanted,
            Self::IsNot(label, other) => value(label) != other,
            Self::AnyOf(label, wanted) => wanted.iter().any(|wanted| value(label) == wanted),
        }
    }
}

fn promql(matcher: &Matcher) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    match matcher {
        Matcher::Is(label, value) => format!("{label}=\"{}\"", quoted(value)),
        Matcher::IsNot(label, value) => format!("{label}!=\"{}\"", quoted(value)),
        Matcher::AnyOf(label, values) => {
            let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
            format!("{label}=~\"{}\"", quoted(&values.join("|")))
        }
    }
}

/// A pattern that only the text itself matches.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for own in text.chars() {
        if own.is_ascii_punctuation() && !matches!(own, '-' | '_' | '/' | ':') {
            pattern.push('\\');
        }
        pattern.push(own);
    }
    pattern
}

impl MetricSource for Exposition {
    fn name(&self) -> &str {
        self.name()
    }

    fn names(
        &self,
        (start, end): (i64, i64),
        matches: &[Matcher],
    ) -> Result<BTreeSet<String>, LiveError> {
        let within = |own: &Stored| {
            matches.iter().all(|matcher| matcher.has(&own.labels))
                && own.samples.iter().any(|(at, _)| (start..=end).contains(at))
        };
        let names = self
            .metrics
            .iter()
            .filter(|(name, series)| reporter_of(name).is_some() && series.iter().any(within));
        Ok(names.map(|(name, _)| name.clone()).collect())
    }

    fn ask(&self, ask: &Ask) -> Result<Vec<Series>, LiveError> {
        let points = usize::try_from((ask.end_ms - ask.start_ms) / ask.step_ms + 1).unwrap_or(0);
        let mut groups: BTreeMap<Labels, Vec<Option<f64>>> = BTreeMap::new();
        for own in self.metrics.get(&ask.name).into_iter().flatten() {
            if !ask.matches.iter().all(|matcher| matcher.has(&own.labels)) {
                continue;
            }
            let by = own.labels.iter().filter(|(label, _)| ask.by.contains(label));
            let by: Labels = by.map(|(label, value)| (label.clone(), value.clone())).collect();
            let group = groups.entry(by).or_insert_with(|| vec![None; points]);
            let mut at = ask.start_ms;
            for pooled in group {
                if let Some(value) = ask.over.of(within(&own.samples, at - ask.range_ms, at)) {
                    *pooled = Some(match (*pooled, ask.pool) {
                        (None, _) => value,
                        (Some(before), Pool::Sum) => before + value,
                        (Some(before), Pool::Max) => before.max(value),
                    });
                }
                at += ask.step_ms;
            }
        }
        let series = groups.into_iter().map(|(labels, values)| {
            let at = |place: usize| ask.start_ms + ask.step_ms * i64::try_from(place).unwrap_or(0);
            let samples = values.into_iter().enumerate().filter_map(|(place, value)| {
                let value = value?;
                Some(Sample { at_ms: at(place), value: value.is_finite().then_some(value) })
            });
            Series { labels, samples: samples.collect() }
        });
        Ok(series.filter(|series| !series.samples.is_empty()).collect())
    }

    fn most_samples(&self) -> usize {
        usize::MAX
    }
}

/// The samples in `(after, until]`.
fn within(samples: &[(i64, f64)], after: i64, until: i64) -> &[(i64, f64)] {
    let first = samples.partition_point(|(at, _)| *at <= after);
    let last = samples.partition_point(|(at, _)| *at <= until);
    &samples[first..last.max(first)]
}

impl Over {
    fn of(self, samples: &[(i64, f64)]) -> Option<f64> {
        let last = samples.last()?.1;
        let values = || samples.iter().map(|(_, value)| *value);
        Some(match self {
            Self::Last => last,
            Self::Max => values().fold(f64::NEG_INFINITY, f64::max),
            Self::Mean => values().sum::<f64>() / samples.len() as f64,
            Self::Count => samples.len() as f64,
            Self::Resets => samples.windows(2).filter(|two| two[1].1 < two[0].1).count() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_queries() {
        let ask = Ask {
            name: "vllm:prompt_tokens_total".to_owned(),
            matches: vec![
                Matcher::Is("namespace".to_owned(), "a\"b".to_owned()),
                Matcher::AnyOf(
                    "model_name".to_owned(),
                    vec!["meta/llama-3.1".to_owned(), "b|c".to_owned()],
                ),
            ],
            over: Over::Last,
            range_ms: 60_000,
            pool: Pool::Sum,
            by: vec!["model_name".to_owned(), "pod".to_owned()],
            start_ms: 0,
            end_ms: 0,
            step_ms: 60_000,
        };
        insta::assert_snapshot!(ask.promql(), @r#"sum by (model_name, pod) (last_over_time(vllm:prompt_tokens_total{namespace="a\"b",model_name=~"meta/llama-3\\.1|b\\|c"}[59999ms]))"#);
    }
}
