//! What a pool reports at this moment, replica by replica.
//!
//! Every signal is asked for by all the names that versions give it, and each replica is taken at the best name that it has: in the middle of an upgrade some have one and some the other, and
//! none is counted twice. A replica that does not answer is missing, and never zero.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_fleet::metrics::{Metric, MetricKind, Reporter, Signal, names};
use plimsoll_study::{PoolSighting, ReplicaSighting};

use crate::answer::Labels;
use crate::query::Selector;

/// Answers a question of this moment.
pub trait Answering {
    /// The series that a query gives now, by their labels; a value that is no number is none.
    fn ask(&self, query: &str) -> Result<Vec<(Labels, Option<f64>)>, Unanswered>;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// In words.
    pub why: String,
    /// Whether nobody answers, so that there is no use in asking on.
    pub gone: bool,
}

/// Where a pool reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSource {
    /// The pool.
    pub pool: String,
    /// Its engine.
    pub engine: Reporter,
    /// The gateway before it, where there is one that counts tokens.
    pub gateway: Option<Reporter>,
    /// The model, by the name that it is served under.
    pub model: Option<String>,
    /// More labels that its series have.
    pub labels: Vec<(String, String)>,
    /// Over how long rates are taken, such as `2m`.
    pub window: String,
}

impl PoolSource {
    /// Whose series are asked for. A gateway stands elsewhere: only the model tells its series.
    pub fn selector(&self, reporter: Reporter) -> Selector {
        Selector {
            reporter,
            version: None,
            model: self.model.clone(),
            labels: if reporter.is_gateway() { Vec::new() } else { self.labels.clone() },
        }
    }
}

/// By replica.
type Each = BTreeMap<String, f64>;

/// Looks at a pool once.
pub fn sight(prometheus: &dyn Answering, source: &PoolSource) -> PoolSighting {
    let mut eye = Eye { prometheus, source, trouble: BTreeSet::new(), gone: false };
    let engine = source.selector(source.engine);
    let running = eye.gauge(&engine, Signal::Running);
    let waiting = eye.gauge(&engine, Signal::Waiting);
    let prompt = eye.counted(&engine, &[Signal::PromptTokens, Signal::PromptLength]);
    let fresh = eye.fresh(&engine, &prompt);
    let output = eye.counted(&engine, &[Signal::OutputTokens, Signal::OutputLength]);
    let requests = eye.counted(&engine, &[Signal::Requests]);
    let kv = eye.gauge(&engine, Signal::KvShare);
    let ttft_p90_s = eye.ttft(&engine);
    let in_flight = match (&running, &waiting) {
        (Some(running), Some(waiting)) => {
            Some(with(running, waiting, |running, waiting| running + waiting))
        }
        _ => None,
    };
    let mut own = PoolSighting {
        pool: source.pool.clone(),
        replicas: running.as_ref().map(|each| each.len() as f64),
        offered: false,
        gateways: None,
        requests: total(requests.as_ref()),
        prompt_tokens: total(prompt.as_ref()),
        fresh_tokens: total(fresh.as_ref()),
        output_tokens: total(output.as_ref()),
        in_flight: total(in_flight.as_ref()),
        waiting: total(waiting.as_ref()),
        kv_share: kv.as_ref().and_then(|each| each.values().copied().reduce(f64::max)),
        ttft_p90_s,
        each: Vec::new(),
        trouble: Vec::new(),
    };
    let at = |each: &Option<Each>, replica: &str| each.as_ref()?.get(replica).copied();
    let replicas: BTreeSet<&String> = running.iter().flat_map(BTreeMap::keys).collect();
    own.each = replicas
        .into_iter()
        .map(|replica| ReplicaSighting {
            replica: replica.clone(),
            fresh_tokens: at(&fresh, replica),
            output_tokens: at(&output, replica),
            in_flight: at(&in_flight, replica),
            kv_share: at(&kv, replica),
        })
        .collect();
    if let Some(gateway) = source.gateway {
        eye.offered(gateway, &mut own);
    }
    own.trouble = eye.trouble.into_iter().collect();
    own
}

struct Eye<'a> {
    prometheus: &'a dyn Answering,
    source: &'a PoolSource,
    trouble: BTreeSet<String>,
    /// Nobody answers: the rest of the look is not waited for.
    gone: bool,
}

impl Eye<'_> {
    /// By replica; none where nobody answers.
    fn each(&mut self, query: &str) -> Option<Each> {
        let each: Each = self
            .series(query)?
            .into_iter()
            .filter_map(|(labels, value)| {
                Some((labels.get("instance").cloned().unwrap_or_default(), value?))
            })
            .collect();
        (!each.is_empty()).then_some(each)
    }

    fn series(&mut self, query: &str) -> Option<Vec<(Labels, Option<f64>)>> {
        if self.gone {
            return None;
        }
        match self.prometheus.ask(query) {
            Ok(series) => Some(series),
            Err(error) => {
                self.gone = error.gone;
                self.trouble.insert(error.why);
                None
            }
        }
    }

    /// A signal by replica, each at the best name that it has.
    fn best(
        &mut self,
        selector: &Selector,
        signal: Signal,
        query: impl Fn(&Metric) -> String,
    ) -> Option<Each> {
        let mut best: Option<Each> = None;
        for metric in names(selector.reporter, signal, None) {
            let Some(each) = self.each(&query(metric)) else { continue };
            let best = best.get_or_insert_default();
            for (replica, value) in each {
                best.entry(replica).or_insert(value);
            }
        }
        best
    }

    fn gauge(&mut self, selector: &Selector, signal: Signal) -> Option<Each> {
        // Engines of one replica share its cache only by name: the fullest counts.
        let together = if signal == Signal::KvShare { "max" } else { "sum" };
        self.best(selector, signal, |own| {
            format!("{together} by (instance) ({})", selector.of(own, ""))
        })
    }

    /// What a counter, or the sum of a histogram, grows by in a second: of each replica, the first of the signals that it has.
    fn counted(&mut self, selector: &Selector, signals: &[Signal]) -> Option<Each> {
        let window = self.source.window.clone();
        let mut all: Option<Each> = None;
        for signal in signals {
            let each = self.best(selector, *signal, |own| {
                let part = if own.kind == MetricKind::Histogram { "_sum" } else { "" };
                format!("sum by (instance) (rate({}[{window}]))", selector.of(own, part))
            });
            for (replica, value) in each.into_iter().flatten() {
                all.get_or_insert_default().entry(replica).or_insert(value);
            }
        }
        all
    }

    /// Fresh tokens: counted by whoever counts them, for the others all less the cached ones. Where nobody says what was cached, all count: too many are asked for then, and not too few.
    fn fresh(&mut self, selector: &Selector, prompt: &Option<Each>) -> Option<Each> {
        let mut fresh = self.counted(selector, &[Signal::FreshTokens]).unwrap_or_default();
        let prompt = prompt.as_ref()?;
        if prompt.keys().all(|replica| fresh.contains_key(replica)) {
            return Some(fresh);
        }
        let cached = self.counted(selector, &[Signal::CachedTokens, Signal::CacheHits]);
        let cached = cached.unwrap_or_default();
        for (replica, prompt) in prompt {
            if !fresh.contains_key(replica) && !cached.contains_key(replica) {
                self.trouble.insert(format!(
                    "{} does not say how many prompt tokens were cached, so all count as fresh",
                    selector.reporter
                ));
            }
            let own = (prompt - cached.get(replica).copied().unwrap_or(0.0)).max(0.0);
            fresh.entry(replica.clone()).or_insert(own);
        }
        Some(fresh)
    }

    fn ttft(&mut self, selector: &Selector) -> Option<f64> {
        let query = selector.quantile(Signal::Ttft, 0.9, &self.source.window)?;
        self.one(&query)
    }

    fn one(&mut self, query: &str) -> Option<f64> {
        self.series(query)?.first().and_then(|(_, value)| *value)
    }

    /// What a gateway counts is what is offered; where it does not answer, what is served stays.
    fn offered(&mut self, gateway: Reporter, own: &mut PoolSighting) {
        let selector = self.source.selector(gateway);
        let prompt = self.counted(&selector, &[Signal::PromptTokens, Signal::PromptLength]);
        let Some(fresh) = self.fresh(&selector, &prompt) else {
            self.trouble.insert(format!(
                "{gateway} does not say how many fresh prompt tokens are offered, so what is served counts"
            ));
            return;
        };
        own.offered = true;
        own.gateways = Some(fresh.len() as f64);
        own.fresh_tokens = total(Some(&fresh));
        own.prompt_tokens = total(prompt.as_ref());
        let output = self.counted(&selector, &[Signal::OutputTokens, Signal::OutputLength]);
        own.output_tokens = total(output.as_ref()).or(own.output_tokens);
        let requests = self.counted(&selector, &[Signal::Requests]);
        own.requests = total(requests.as_ref()).or(own.requests);
        let in_flight = self.gauge(&selector, Signal::InFlight);
        own.in_flight = total(in_flight.as_ref()).or(own.in_flight);
    }
}

fn total(each: Option<&Each>) -> Option<f64> {
    each.map(|each| each.values().sum())
}

/// What both have.
fn with(a: &Each, b: &Each, of: impl Fn(f64, f64) -> f64) -> Each {
    a.iter().filter_map(|(name, own)| Some((name.clone(), of(*own, *b.get(name)?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers by the beginning of a query's metric, as many replicas as are listed.
    struct Fake(Vec<(&'static str, Vec<(&'static str, f64)>)>);

    impl Answering for Fake {
        fn ask(&self, query: &str) -> Result<Vec<(Labels, Option<f64>)>, Unanswered> {
            let found = self.0.iter().filter(|(part, _)| query.contains(part));
            Ok(found
                .flat_map(|(_, each)| each)
                .map(|(replica, value)| {
                    let labels = [("instance".to_owned(), (*replica).to_owned())];
                    (labels.into_iter().collect(), Some(*value))
                })
                .collect())
        }
    }

    fn source(gateway: Option<Reporter>) -> PoolSource {
        PoolSource {
            pool: "chat".to_owned(),
            engine: Reporter::Vllm,
            gateway,
            model: None,
            labels: Vec::new(),
            window: "2m".to_owned(),
        }
    }

    #[test]
    fn an_upgrade_halfway_counts_every_replica_once() {
        let fake = Fake(vec![
            ("vllm:num_requests_running)", vec![("new", 3.0), ("old", 4.0)]),
            ("vllm:num_requests_waiting)", vec![("new", 0.0), ("old", 1.0)]),
            // The old one has both names for a while, the new one only the new.
            ("vllm:kv_cache_usage_perc", vec![("new", 0.5), ("old", 0.7)]),
            ("vllm:gpu_cache_usage_perc", vec![("old", 0.7)]),
            ("vllm:prompt_tokens_total", vec![("new", 1000.0), ("old", 1000.0)]),
            ("vllm:prompt_tokens_by_source_total", vec![("new", 400.0)]),
            ("vllm:prompt_tokens_cached_total", vec![("new", 600.0)]),
            ("vllm:prefix_cache_hits_total", vec![("new", 600.0), ("old", 500.0)]),
        ]);
        let seen = sight(&fake, &source(None));
        assert_eq!((seen.replicas, seen.in_flight), (Some(2.0), Some(8.0)));
        assert_eq!(seen.fresh_tokens, Some(900.0));
        assert_eq!(seen.kv_share, Some(0.7));
        assert_eq!(seen.each[1].fresh_tokens, Some(500.0));
        // Nobody said how many tokens came out, and that is not none.
        assert_eq!((seen.output_tokens, seen.requests, seen.ttft_p90_s), (None, None, None));
    }

    #[test]
    fn a_gateway_that_is_silent_leaves_what_is_served() {
        let engine = ("vllm:prompt_tokens_total", vec![("a", 1000.0)]);
        let hits = ("vllm:prefix_cache_hits_total", vec![("a", 200.0)]);
        let served =
            sight(&Fake(vec![engine.clone(), hits.clone()]), &source(Some(Reporter::LlmD)));
        assert_eq!((served.fresh_tokens, served.offered), (Some(800.0), false));
        assert!(served.trouble[0].contains("llm-d does not say"), "{:?}", served.trouble);
        let fake = Fake(vec![
            engine,
            hits,
            ("llm_d_epp_request_input_tokens_sum", vec![("gw", 3000.0)]),
            ("llm_d_epp_request_cached_tokens_sum", vec![("gw", 600.0)]),
        ]);
        let offered = sight(&fake, &source(Some(Reporter::LlmD)));
        assert_eq!((offered.fresh_tokens, offered.offered), (Some(2400.0), true));
    }

    #[test]
    fn silence_is_not_zero() {
        let seen = sight(&Fake(Vec::new()), &source(None));
        assert_eq!(seen, PoolSighting { pool: "chat".to_owned(), ..PoolSighting::default() });
    }
}
