//! What was found of a pool, a provider or a route before it is written down.

use std::collections::BTreeMap;
use std::fmt;

/// Where something was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub file: String,
    /// From one.
    pub line: usize,
    /// The words that said it.
    pub text: String,
}

impl Place {
    pub(super) fn new(file: &str, line: usize, text: &str) -> Self {
        // The words are shown in backticks.
        Self { file: clip(file, 120), line, text: clip(&text.replace('`', " "), 70) }
    }

    /// The same place in other words.
    pub(super) fn saying(&self, text: &str) -> Self {
        Self::new(&self.file, self.line, text)
    }

    /// Without the words.
    pub(super) fn short(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text.as_str() {
            "" => write!(f, "{}:{}", self.file, self.line),
            text => write!(f, "{}:{} `{text}`", self.file, self.line),
        }
    }
}

/// One line, nothing that a comment may not hold, and no longer than a reader follows.
pub(super) fn clip(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.trim_end();
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let front: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{front}…")
}

/// A value with the place that said it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said<T = String> {
    pub value: T,
    pub place: Place,
}

impl<T> Said<T> {
    pub(super) fn new(value: T, place: &Place) -> Self {
        Self { value, place: place.clone() }
    }
}

/// What kind of file said it; a later one is believed before an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A gateway knows what it calls a model, and little else.
    #[default]
    Gateway,
    /// A line that somebody may run.
    Command,
    /// What a cluster was asked for.
    Manifest,
    /// What happened.
    Log,
}

/// The engines whose flags are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Vllm,
    Sglang,
    TensorRtLlm,
}

impl Engine {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TensorRtLlm => "tensorrt-llm",
        }
    }
}

/// A pool as far as it is known. Keys are those of the scenario, values are TOML.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub source: Source,
    /// The kind of object that describes it, such as `Deployment`.
    pub kind: String,
    pub name: String,
    pub place: Place,
    pub model: Option<Said>,
    pub served: Option<Said>,
    pub engine: Option<Said<Engine>>,
    pub version: Option<Said>,
    pub keys: BTreeMap<&'static str, Said>,
    pub dtype: Option<Said>,
    /// Devices of one pod.
    pub devices: Option<Said<u64>>,
    /// Pods of one replica.
    pub nodes: Option<Said<u64>>,
    /// The same, as an engine was told; its pods may be counted as replicas elsewhere.
    pub spread: Option<Said<u64>>,
    pub replicas: Option<Said<u64>>,
    pub range: Option<Said<(u64, u64)>>,
    pub instance: Option<Said>,
    pub accelerator: Option<Said>,
    pub region: Option<Said>,
    pub role: Option<Said>,
    /// Experts are spread over all devices.
    pub experts_everywhere: Option<Place>,
    /// SGLang: copies of the attention share the devices of the group.
    pub attention_copies: Option<Place>,
    pub speculation: Option<Said<Option<u64>>>,
    pub lora: Option<Said<(u64, u64)>>,
    /// Requests and tokens that may wait.
    pub queue: (Option<Said<u64>>, Option<Said<u64>>),
    /// Seconds of a phase of a start, by the key of `startup`.
    pub startup: BTreeMap<&'static str, Said<f64>>,
    /// Flags that do not concern capacity, by name.
    pub harmless: Vec<String>,
    /// What has no key here, or was not understood.
    pub unread: Vec<String>,
    /// What a reader should know.
    pub remarks: Vec<String>,
    pub labels: BTreeMap<String, String>,
    /// The host that a gateway reaches it at.
    pub host: Option<String>,
}

impl Draft {
    pub(super) fn new(source: Source, kind: &str, name: &str, place: Place) -> Self {
        Self { source, kind: kind.to_owned(), name: name.to_owned(), place, ..Self::default() }
    }

    /// What routes and a reader call it.
    pub(super) fn title(&self) -> String {
        let model = || self.model.as_ref().map(|said| last_part(&said.value).to_owned());
        let served = || self.served.as_ref().map(|said| said.value.clone());
        match self.name.as_str() {
            "" => served().or_else(model).unwrap_or_else(|| "pool".to_owned()),
            name => name.to_owned(),
        }
    }

    /// The last one of several holds, as engines have it. A log repeats itself with what came of it.
    pub(super) fn set(&mut self, key: &'static str, value: impl Into<String>, place: &Place) {
        let said = Said::new(value.into(), place);
        if let Some(before) = self.keys.get(key)
            && before.value != said.value
            && self.source != Source::Log
        {
            self.remarks.push(format!("{} is overridden by {place}", before.place));
        }
        self.keys.insert(key, said);
    }

    pub(super) fn count(&self, key: &str) -> Option<u64> {
        self.keys.get(key)?.value.parse().ok()
    }

    /// Takes in what another file says of the same pool. Where both say it, the one that is believed more holds, and the difference is told.
    pub(super) fn merge(&mut self, other: Self, warnings: &mut Vec<String>) {
        let name = self.title();
        let wins = other.source > self.source;
        let mut tell = |key: &str, own: (&str, &Place), new: (&str, &Place)| {
            let why = match self.source.max(other.source) {
                Source::Log => "the log holds, for it is what happened",
                Source::Manifest => "the manifest holds",
                Source::Command | Source::Gateway => "the command holds",
            };
            warnings.push(format!(
                "pool `{name}`: `{key}` is {} at {} and {} at {}; {why}",
                own.0, own.1, new.0, new.1
            ));
        };
        for (key, new) in other.keys {
            match self.keys.get(key) {
                Some(own) if own.value == new.value => continue,
                Some(own) => {
                    tell(key, (&own.value, &own.place), (&new.value, &new.place));
                    if wins {
                        self.keys.insert(key, new);
                    }
                }
                None => {
                    self.keys.insert(key, new);
                }
            }
        }
        if let (Some(own), Some(new)) = (&self.version, &other.version)
            && short_version(&own.value) != short_version(&new.value)
        {
            tell("engine", (&own.value, &own.place), (&new.value, &new.place));
        }
        take(&mut self.version, other.version, wins);
        take(&mut self.engine, other.engine, wins);
        take(&mut self.model, other.model, false);
        take(&mut self.served, other.served, false);
        take(&mut self.dtype, other.dtype, wins);
        take(&mut self.devices, other.devices, false);
        take(&mut self.nodes, other.nodes, false);
        take(&mut self.spread, other.spread, false);
        take(&mut self.replicas, other.replicas, false);
        take(&mut self.range, other.range, false);
        take(&mut self.instance, other.instance, false);
        take(&mut self.accelerator, other.accelerator, false);
        take(&mut self.region, other.region, false);
        take(&mut self.role, other.role, false);
        take(&mut self.speculation, other.speculation, wins);
        take(&mut self.lora, other.lora, wins);
        take(&mut self.queue.0, other.queue.0, wins);
        take(&mut self.queue.1, other.queue.1, wins);
        self.experts_everywhere = self.experts_everywhere.take().or(other.experts_everywhere);
        self.attention_copies = self.attention_copies.take().or(other.attention_copies);
        for (phase, new) in other.startup {
            self.startup.insert(phase, new);
        }
        for (own, new) in [
            (&mut self.harmless, other.harmless),
            (&mut self.unread, other.unread),
            (&mut self.remarks, other.remarks),
        ] {
            for line in new {
                if !own.contains(&line) {
                    own.push(line);
                }
            }
        }
        self.source = self.source.max(other.source);
    }
}

/// `0.24.1` and `v0.24.1-cu128` are one version.
pub(super) fn short_version(text: &str) -> String {
    text.parse::<plimsoll_fleet::Version>().map_or_else(|_| text.to_owned(), |v| v.to_string())
}

fn take<T>(own: &mut Option<T>, new: Option<T>, wins: bool) {
    if new.is_some() && (own.is_none() || wins) {
        *own = new;
    }
}

/// What follows the last `/`, wherever there is something.
pub(super) fn last_part(text: &str) -> &str {
    let text = text.trim_end_matches('/');
    text.rsplit('/').next().filter(|part| !part.is_empty()).unwrap_or(text)
}

/// A hosted model as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct ProviderDraft {
    pub name: String,
    pub place: Place,
    pub provider: Said,
    pub model: Said,
    pub keys: BTreeMap<&'static str, Said>,
    pub remarks: Vec<String>,
}

/// What clients ask for by name, and where a gateway sends it.
#[derive(Clone, Debug, Default)]
pub(super) struct Public {
    pub name: String,
    pub place: Place,
    /// Names of pools or providers, each with its weight.
    pub to: Vec<Said<(String, f64)>>,
    pub fallback: Vec<Said>,
}

/// What an autoscaler was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Scaler {
    pub place: Place,
    /// The kind and name of what it moves.
    pub target: (String, String),
    pub least: Option<Said<u64>>,
    pub most: Option<Said<u64>>,
    pub keys: BTreeMap<&'static str, Said>,
    /// What it looks at that was not understood.
    pub unread: Vec<String>,
}

/// Everything that the files say.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    pub pools: Vec<Draft>,
    pub providers: Vec<ProviderDraft>,
    pub publics: Vec<Public>,
    pub scalers: Vec<Scaler>,
    /// The labels that a service or an inference pool selects, by its name.
    pub selectors: BTreeMap<String, BTreeMap<String, String>>,
    pub envoy: super::gateway::Envoy,
    pub passed_over: Vec<String>,
    pub warnings: Vec<String>,
}
