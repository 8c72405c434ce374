//! PromQL of what a pool reports, by its engine and version.
//!
//! Every text that asks for one number gives one series, whatever the replicas: a query that can return several is an error to an autoscaler.

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::{Metric, MetricKind, Reporter, Signal, names};

/// Whose series are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Who reports them.
    pub reporter: Reporter,
    /// Its version, where it is known: names of other versions are not used.
    pub version: Option<Version>,
    /// The model, by the name that it is served under.
    pub model: Option<String>,
    /// More labels that must be equal, such as a namespace.
    pub labels: Vec<(String, String)>,
}

/// The questions that are asked about a pool; one that its reporters cannot answer is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolQueries {
    /// Fresh prompt tokens a second: offered where a gateway counts them, otherwise served.
    pub fresh_tokens: Option<String>,
    /// Whether that, and calls, are what was offered and not only what was served.
    pub offered: bool,
    /// Prompt tokens a second, cached ones included.
    pub prompt_tokens: Option<String>,
    /// Output tokens a second.
    pub output_tokens: Option<String>,
    /// Calls a second.
    pub requests: Option<String>,
    /// Calls that run or wait, where engines and the gateway's line are counted.
    pub in_flight: Option<String>,
    /// Calls that wait.
    pub waiting: Option<String>,
    /// The fullest cache of all replicas.
    pub kv_share: Option<String>,
    /// Seconds to the first token of nine calls in ten.
    pub ttft_p90: Option<String>,
    /// Seconds between tokens of nine tokens in ten.
    pub itl_p90: Option<String>,
    /// Sequences a second that lost their blocks.
    pub preemptions: Option<String>,
    /// Replicas that report.
    pub replicas: Option<String>,
}

impl Selector {
    /// The selector of a metric: `name{model_name="chat"}`. `part` is `_bucket`, `_sum` or `_count` of a histogram.
    pub fn of(&self, metric: &Metric, part: &str) -> String {
        self.with(metric, part, &[])
    }

    /// The same with more labels.
    pub fn with(&self, metric: &Metric, part: &str, more: &[(&str, &str)]) -> String {
        let mut labels: Vec<String> = Vec::new();
        let mut add = |name: &str, value: &str| labels.push(format!("{name}={}", quoted(value)));
        for (name, value) in metric.matches {
            add(name, value);
        }
        // An info has no model: a filter by it would find nothing.
        if metric.kind != MetricKind::Info
            && let (Some(label), Some(model)) = (self.reporter.model_label(), &self.model)
        {
            add(label, model);
        }
        for (name, value) in &self.labels {
            add(name, value);
        }
        for (name, value) in more {
            add(name, value);
        }
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        format!("{}{part}{labels}", metric.name)
    }

    /// What it calls a signal.
    pub fn metric(&self, signal: Signal) -> Option<&'static Metric> {
        names(self.reporter, signal, self.version).next()
    }

    /// A gauge of all replicas together.
    fn sum(&self, signal: Signal) -> Option<String> {
        Some(format!("sum({})", self.of(self.metric(signal)?, "")))
    }

    /// What a counter, or the sum of a histogram, grows by in a second.
    fn rate(&self, signal: Signal, window: &str) -> Option<String> {
        let metric = self.metric(signal)?;
        let part = if metric.kind == MetricKind::Histogram { "_sum" } else { "" };
        Some(format!("sum(rate({}[{window}]))", self.of(metric, part)))
    }

    fn calls(&self, window: &str) -> Option<String> {
        self.rate(Signal::Requests, window)
    }

    /// Prompt tokens, cached ones included, a second.
    fn prompt(&self, window: &str) -> Option<String> {
        self.rate(Signal::PromptTokens, window).or_else(|| self.rate(Signal::PromptLength, window))
    }

    /// Prompt tokens that were computed, a second: counted, or all less the cached ones.
    fn fresh(&self, window: &str) -> Option<String> {
        if let Some(fresh) = self.rate(Signal::FreshTokens, window) {
            return Some(fresh);
        }
        let cached = self
            .rate(Signal::CachedTokens, window)
            .or_else(|| self.rate(Signal::CacheHits, window))?;
        // Whoever has cached nothing yet may not report that, and less nothing is not nothing.
        Some(format!("{} - ({cached} or vector(0))", self.prompt(window)?))
    }

    fn output(&self, window: &str) -> Option<String> {
        self.rate(Signal::OutputTokens, window).or_else(|| self.rate(Signal::OutputLength, window))
    }

    /// Calls that run or wait.
    fn in_flight(&self) -> Option<String> {
        if let Some(all) = self.sum(Signal::InFlight) {
            return Some(all);
        }
        Some(format!("{} + {}", self.sum(Signal::Running)?, self.sum(Signal::Waiting)?))
    }

    /// A quantile of a histogram, over all replicas.
    pub fn quantile(&self, signal: Signal, quantile: f64, window: &str) -> Option<String> {
        let metric = self.metric(signal).filter(|own| own.kind == MetricKind::Histogram)?;
        let buckets = self.of(metric, "_bucket");
        Some(format!("histogram_quantile({quantile}, sum by (le) (rate({buckets}[{window}])))"))
    }

    /// The share of a histogram's observations that were at most at an edge of its buckets.
    pub fn share_within(&self, signal: Signal, edge: f64, window: &str) -> Option<String> {
        let metric = self.metric(signal).filter(|own| own.kind == MetricKind::Histogram)?;
        let edge = if edge.fract() == 0.0 { format!("{edge:.1}") } else { format!("{edge}") };
        let within = self.with(metric, "_bucket", &[("le", &edge)]);
        let all = self.of(metric, "_count");
        Some(format!("sum(rate({within}[{window}])) / sum(rate({all}[{window}]))"))
    }
}

/// The questions about a pool: demand from the gateway, where there is one; the rest from its engines.
pub fn pool_queries(engine: &Selector, gateway: Option<&Selector>, window: &str) -> PoolQueries {
    let at_gateway = |of: &dyn Fn(&Selector) -> Option<String>| gateway.and_then(of);
    let fresh = at_gateway(&|own| own.fresh(window));
    PoolQueries {
        offered: fresh.is_some(),
        fresh_tokens: fresh.or_else(|| engine.fresh(window)),
        prompt_tokens: at_gateway(&|own| own.prompt(window)).or_else(|| engine.prompt(window)),
        output_tokens: at_gateway(&|own| own.output(window)).or_else(|| engine.output(window)),
        requests: at_gateway(&|own| own.calls(window)).or_else(|| engine.calls(window)),
        in_flight: at_gateway(&Selector::in_flight).or_else(|| engine.in_flight()),
        waiting: engine.sum(Signal::Waiting),
        kv_share: engine.metric(Signal::KvShare).map(|own| format!("max({})", engine.of(own, ""))),
        ttft_p90: engine
            .quantile(Signal::Ttft, 0.9, window)
            .or_else(|| gateway.and_then(|own| own.quantile(Signal::Ttft, 0.9, window))),
        itl_p90: engine
            .quantile(Signal::Itl, 0.9, window)
            .or_else(|| engine.quantile(Signal::Tpot, 0.9, window)),
        preemptions: engine.rate(Signal::Preemptions, window),
        replicas: engine
            .metric(Signal::Running)
            .map(|own| format!("count(count by (instance) ({}))", engine.of(own, ""))),
    }
}

/// The labels that the series of a pool have, of labels of all pools (`LABEL`) and of single ones (`POOL:LABEL`).
pub fn labels_of(all: &[(String, String)], pool: &str) -> Vec<(String, String)> {
    let own = all.iter().filter_map(|(label, value)| match label.split_once(':') {
        Some((of, label)) => (of == pool).then(|| (label.to_owned(), value.clone())),
        None => Some((label.clone(), value.clone())),
    });
    own.collect()
}

/// A quantile that is 0 where nobody called: a quiet pool is no lost signal.
pub fn quiet_is_zero(quantile: &str) -> String {
    format!("({quantile} >= 0) or vector(0)")
}

/// A label's value as PromQL has it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(reporter: Reporter, version: &str) -> Selector {
        let version = version.parse().ok();
        Selector { reporter, version, model: Some("chat".to_owned()), labels: Vec::new() }
    }

    #[test]
    fn questions_follow_the_version() {
        let fresh = |version: &str| {
            pool_queries(&selector(Reporter::Vllm, version), None, "2m")
                .fresh_tokens
                .expect("known")
        };
        assert_eq!(
            fresh("0.24"),
            r#"sum(rate(vllm:prompt_tokens_by_source_total{source="local_compute",model_name="chat"}[2m]))"#
        );
        assert_eq!(
            fresh("0.11"),
            r#"sum(rate(vllm:prompt_tokens_total{model_name="chat"}[2m])) - (sum(rate(vllm:prefix_cache_hits_total{model_name="chat"}[2m])) or vector(0))"#
        );
    }

    #[test]
    fn a_gateway_says_what_is_offered() {
        let engine = selector(Reporter::Vllm, "0.24");
        let gateway = selector(Reporter::Dynamo, "1.0");
        let both = pool_queries(&engine, Some(&gateway), "2m");
        assert!(both.offered);
        assert_eq!(
            both.fresh_tokens.expect("known"),
            r#"sum(rate(dynamo_frontend_input_sequence_tokens_sum{model="chat"}[2m])) - (sum(rate(dynamo_frontend_cached_tokens_sum{model="chat"}[2m])) or vector(0))"#
        );
        assert_eq!(
            both.kv_share.expect("known"),
            r#"max(vllm:kv_cache_usage_perc{model_name="chat"})"#
        );
        assert!(!pool_queries(&engine, None, "2m").offered);
    }

    #[test]
    fn what_is_not_counted_is_not_asked_for() {
        let tgi = pool_queries(&selector(Reporter::Tgi, "3.3"), None, "2m");
        assert_eq!((tgi.ttft_p90, tgi.kv_share, tgi.fresh_tokens), (None, None, None));
        assert_eq!(tgi.waiting.as_deref(), Some("sum(tgi_queue_size)"));
    }

    #[test]
    fn names_with_quotes_stay_one_label() {
        let mut own = selector(Reporter::Sglang, "0.5.17");
        own.model = Some("a\"b\\c".to_owned());
        let waiting = pool_queries(&own, None, "2m").waiting.expect("known");
        assert_eq!(waiting, r#"sum(sglang:num_queue_reqs{model_name="a\"b\\c"})"#);
    }
}
