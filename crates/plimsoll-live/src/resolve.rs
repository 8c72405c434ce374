//! Which engines and gateways report, and what they call what is counted.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::{Metric, MetricKind, Reporter, Signal, names};

/// What was found among the names of metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Who reports; gateways first.
    pub reporting: Vec<Reporting>,
}

/// An engine or a gateway that reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// Who it is.
    pub reporter: Reporter,
    /// Its version, where somebody has told it.
    pub told: Option<Version>,
    /// The earliest version that has all the names that are there.
    pub at_least: Option<VersionBound>,
    /// The version that no longer has one of the names that are there.
    pub below: Option<VersionBound>,
    /// What signals are called there, best first.
    pub spellings: BTreeMap<Signal, Vec<Spelling>>,
    /// What is not there, and what that costs.
    pub missing: Vec<Missing>,
}

/// A name that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelling {
    /// As it is scraped; a histogram without `_bucket`, `_sum` and `_count`.
    pub name: String,
    /// What it is.
    pub metric: &'static Metric,
}

/// What a name says about a version.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionBound {
    /// The version.
    pub version: Version,
    /// Why.
    pub because: String,
}

/// A signal that is not reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// Any one of these would do.
    pub signals: &'static [Signal],
    /// What is not known without it.
    pub costs: &'static str,
    /// What it would be called.
    pub names: Vec<&'static str>,
}

/// What is needed of an engine, and what it costs where it is not there.
const OF_ENGINES: &[(&[Signal], &str)] = &[
    (&[Signal::Requests], "no counter of requests: load is known in tokens only"),
    (
        &[Signal::PromptTokens, Signal::PromptLength],
        "no counter of prompt tokens: the work of prefill is unknown",
    ),
    (
        &[Signal::OutputTokens, Signal::OutputLength],
        "no counter of output tokens: the work of decode is unknown",
    ),
    (
        &[Signal::FreshTokens, Signal::CachedTokens, Signal::CacheHits],
        "no cached-token counter: fresh tokens are unknown",
    ),
    (
        &[Signal::Waiting],
        "no queue length: demand is what was carried, and too low while calls wait",
    ),
    (&[Signal::Running], "no count of running sequences: concurrency is unknown"),
    (&[Signal::KvShare], "no use of the cache: how close memory was to full is unknown"),
    (&[Signal::Preemptions], "no counter of preemptions: overcommitted memory is not seen"),
    (&[Signal::Ttft], "no TTFT: whether first tokens were in time is unknown"),
    (&[Signal::Itl, Signal::Tpot], "no ITL: whether tokens came fast enough is unknown"),
    (&[Signal::PromptLength], "no histogram of prompts: their lengths are known as a mean only"),
    (&[Signal::OutputLength], "no histogram of outputs: their lengths are known as a mean only"),
];

const OF_GATEWAYS: &[(&[Signal], &str)] = &[
    (
        &[Signal::Requests],
        "no counter of requests at the gateway: offered load is taken from engines",
    ),
    (
        &[Signal::PromptTokens, Signal::PromptLength],
        "no prompt tokens at the gateway: offered tokens are unknown",
    ),
    (
        &[Signal::OutputTokens, Signal::OutputLength],
        "no output tokens at the gateway: offered tokens are unknown",
    ),
    (
        &[Signal::CachedTokens, Signal::FreshTokens],
        "no cached tokens at the gateway: fresh tokens are unknown",
    ),
];

/// Says who reports, by the names of the metrics that are there.
///
/// Versions that were told are kept, but what is there is there: a name that the version should not have is read all the same.
pub fn resolve(present: &BTreeSet<String>, told: &[(Reporter, Version)]) -> Resolved {
    let reporting = Reporter::ALL.into_iter().filter_map(|reporter| {
        let told = told.iter().find(|(own, _)| *own == reporter).map(|(_, version)| *version);
        Reporting::of(reporter, told, present)
    });
    Resolved { reporting: reporting.collect() }
}

impl Resolved {
    /// What should be known: versions, and what is missing.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for own in &self.reporting {
            notes.push(own.version_note());
            notes.extend(own.missing.iter().map(|missing| {
                let names = missing.names.join("` or `");
                let names = if names.is_empty() {
                    String::new()
                } else {
                    format!(" (it would be `{names}`)")
                };
                format!("{}: {}{names}", own.reporter, missing.costs)
            }));
        }
        notes
    }
}

impl Reporting {
    fn of(reporter: Reporter, told: Option<Version>, present: &BTreeSet<String>) -> Option<Self> {
        let mut spellings: BTreeMap<Signal, Vec<Spelling>> = BTreeMap::new();
        for metric in
            plimsoll_fleet::metrics::metrics().iter().filter(|own| own.reporter == reporter)
        {
            let found =
                spelled(metric).into_iter().filter(|name| is_present(metric, name, present));
            let own = spellings.entry(metric.signal).or_default();
            own.extend(found.map(|name| Spelling { name, metric }));
        }
        spellings.retain(|_, own| !own.is_empty());
        if spellings.is_empty() {
            return None;
        }
        let all = || spellings.values().flatten();
        let bound = |text: Option<&str>, name: &str, verb: &str| {
            let version: Version = text?.parse().ok()?;
            let because = format!("`{name}` is there, which {verb} {version}");
            Some(VersionBound { version, because })
        };
        let at_least = all()
            .filter_map(|own| bound(own.metric.since, &own.name, "came with"))
            .max_by_key(|own| own.version);
        let below = all()
            .filter_map(|own| bound(own.metric.until, &own.name, "went with"))
            .min_by_key(|own| own.version);
        let needs = if reporter.is_gateway() { OF_GATEWAYS } else { OF_ENGINES };
        let missing =
            needs.iter().filter(|(any, _)| any.iter().all(|own| !spellings.contains_key(own)));
        let missing = missing.map(|(signals, costs)| Missing {
            signals,
            costs,
            names: signals
                .iter()
                .flat_map(|signal| names(reporter, *signal, told))
                .filter(|own| own.until.is_none())
                .map(|own| own.name)
                .collect(),
        });
        let missing = missing.collect();
        Some(Self { reporter, told, at_least, below, spellings, missing })
    }

    /// What signals are called, best first.
    pub fn spelled(&self, signal: Signal) -> &[Spelling] {
        self.spellings.get(&signal).map_or(&[], Vec::as_slice)
    }

    /// Whether names of versions are there that no version has together.
    pub fn is_mixed(&self) -> bool {
        let bounds = self.at_least.as_ref().zip(self.below.as_ref());
        bounds.is_some_and(|(at_least, below)| below.version <= at_least.version)
    }

    /// What is known of the version, in one line.
    pub fn version_note(&self) -> String {
        let name = self.reporter;
        if let Some(told) = self.told {
            return format!("{name} {told}, as told");
        }
        match (&self.at_least, &self.below) {
            (Some(from), Some(to)) if self.is_mixed() => format!(
                "{name} of more than one version, at once or one after the other: {}, and {}",
                to.because, from.because
            ),
            (Some(from), Some(to)) => format!(
                "{name} at least {} ({}), below {} ({})",
                from.version, from.because, to.version, to.because
            ),
            (Some(from), None) => format!("{name} at least {} ({})", from.version, from.because),
            (None, Some(to)) => format!("{name} below {} ({})", to.version, to.because),
            (None, None) => format!("{name}; its names do not tell its version"),
        }
    }
}

/// A name as it is scraped, and as pipelines rewrite it that know no colon.
fn spelled(metric: &Metric) -> Vec<String> {
    let own = metric.name.to_owned();
    if own.contains(':') { vec![own.clone(), own.replacen(':', "_", 1)] } else { vec![own] }
}

fn is_present(metric: &Metric, name: &str, present: &BTreeSet<String>) -> bool {
    match metric.kind {
        MetricKind::Histogram => ["_bucket", "_sum", "_count"]
            .iter()
            .any(|end| present.contains(&format!("{name}{end}"))),
        _ => present.contains(name),
    }
}

/// The name that a model is served under: its own, one that differs only in how it is written, or the only one there is, where `alone` says that nothing else can be
/// meant.
pub fn served_as(model: &str, known: &[String], alone: bool) -> Option<String> {
    if known.iter().any(|own| own == model) {
        return Some(model.to_owned());
    }
    let plain = |name: &str| -> String {
        let last = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        last.chars().filter(char::is_ascii_alphanumeric).collect()
    };
    let alike: Vec<&String> =
        known.iter().filter(|own| plain(own).starts_with(&plain(model))).collect();
    match (alike.as_slice(), known) {
        ([one], _) => Some((*one).clone()),
        ([], [one]) if alone => Some(one.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn check(present: &[&str], told: &[(Reporter, Version)]) -> String {
        let present = present.iter().map(|name| (*name).to_owned()).collect();
        resolve(&present, told).notes().join("\n")
    }

    const OLD: &[&str] = &[
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:gpu_cache_usage_perc",
        "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total",
        "vllm:request_success_total",
        "vllm:num_preemptions_total",
        "vllm:time_to_first_token_seconds_bucket",
        "vllm:time_per_output_token_seconds_bucket",
        "vllm:request_prompt_tokens_bucket",
        "vllm:request_generation_tokens_bucket",
        "go_goroutines",
    ];

    #[test]
    fn names_tell_versions_and_what_is_missing() {
        assert_snapshot!(check(OLD, &[]), @"
        vllm below 0.12 (`vllm:gpu_cache_usage_perc` is there, which went with 0.12)
        vllm: no cached-token counter: fresh tokens are unknown (it would be `vllm:prompt_tokens_by_source_total` or `vllm:prompt_tokens_cached_total` or `vllm:prefix_cache_hits_total`)
        ");
        let told = [(Reporter::Vllm, "0.11".parse().expect("a version"))];
        assert_snapshot!(check(OLD, &told), @"
        vllm 0.11, as told
        vllm: no cached-token counter: fresh tokens are unknown (it would be `vllm:prefix_cache_hits_total`)
        ");
        let newer =
            [OLD, &["vllm:kv_cache_usage_perc", "vllm:prompt_tokens_cached_total"]].concat();
        assert_snapshot!(check(&newer, &[]), @"vllm of more than one version, at once or one after the other: `vllm:gpu_cache_usage_perc` is there, which went with 0.12, and `vllm:prompt_tokens_cached_total` is there, which came with 0.16");
        assert_eq!(check(&["go_goroutines"], &[]), "");
    }

    #[test]
    fn rewritten_names_and_gateways_are_found() {
        let present = [
            "vllm_kv_cache_usage_perc",
            "vllm:kv_cache_usage_perc",
            "llm_d_epp_request_total",
            "llm_d_epp_request_input_tokens_sum",
        ];
        let present = present.iter().map(|name| (*name).to_owned()).collect();
        let found = resolve(&present, &[]);
        let who: Vec<_> = found.reporting.iter().map(|own| own.reporter).collect();
        assert_eq!(who, [Reporter::LlmD, Reporter::Vllm]);
        let kv: Vec<_> = found.reporting[1]
            .spelled(Signal::KvShare)
            .iter()
            .map(|own| own.name.as_str())
            .collect();
        assert_eq!(kv, ["vllm:kv_cache_usage_perc", "vllm_kv_cache_usage_perc"]);
        assert_eq!(found.reporting[0].missing.len(), 2);
    }

    #[test]
    fn models_are_known_by_other_spellings() {
        let known = |all: &[&str]| all.iter().map(|own| (*own).to_owned()).collect::<Vec<_>>();
        let both = known(&["Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B-Instruct"]);
        assert_eq!(served_as("qwen3-32b", &both, false), Some("Qwen/Qwen3-32B".to_owned()));
        assert_eq!(served_as("llama-3.1-8b", &both, false), Some(both[1].clone()));
        // Of two that might be meant, none is guessed; a single one is.
        assert_eq!(served_as("gpt-oss-120b", &both, false), None);
        assert_eq!(served_as("chat", &known(&["x"]), true), Some("x".to_owned()));
        assert_eq!(served_as("chat", &known(&["x"]), false), None);
        assert_eq!(served_as("chat", &[], true), None);
    }
}
