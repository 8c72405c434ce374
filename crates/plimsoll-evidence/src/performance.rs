//! Published measurements, normalised: the format of `cases.json`.

use plimsoll_study::{Latency, Load, PerformanceCase, PerformanceInputs, PerformanceObserved};
use serde_json::Value;

use crate::EvidenceError;
use crate::case::Case;
use crate::memory::not_json;

/// The cases of a file with the schema `plimsoll.perf_cases.v1`.
pub fn performance_cases(text: &str) -> Result<Vec<PerformanceCase>, EvidenceError> {
    performance_cases_of(&serde_json::from_str(text).map_err(not_json)?)
}

pub(crate) fn performance_cases_of(
    document: &Value,
) -> Result<Vec<PerformanceCase>, EvidenceError> {
    if document.get("schema").and_then(Value::as_str) != Some("plimsoll.perf_cases.v1") {
        return Err(EvidenceError::WrongKind("its `schema` is not `plimsoll.perf_cases.v1`"));
    }
    let Some(cases) = document.get("cases").and_then(Value::as_array) else {
        return Err(EvidenceError::WrongKind("it has no list `cases`"));
    };
    cases.iter().enumerate().map(|(index, case)| Case::of(index, case)?.performance()).collect()
}

impl Case<'_> {
    fn words(&self, field: &str) -> Result<Option<String>, EvidenceError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        value.as_str().map(|s| Some(s.to_owned())).ok_or_else(|| self.wrong(field, "must be text"))
    }

    fn needed(&self, field: &str) -> Result<String, EvidenceError> {
        self.words(field)?.ok_or_else(|| self.wrong(field, "is missing"))
    }

    fn positive(&self, field: &str) -> Result<Option<f64>, EvidenceError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        // Nothing that is measured is smaller, and what is can still be divided by.
        let number = value.as_f64().filter(|x| (1e-9..=1e12).contains(x));
        number.map(Some).ok_or_else(|| {
            self.wrong(field, format!("must be a number above zero, up to 10^12; it is {value}"))
        })
    }

    fn degree(&self, field: &str) -> Result<Option<u64>, EvidenceError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = value.as_u64().filter(|n| (1..=4096).contains(n));
        number.map(Some).ok_or_else(|| self.wrong(field, "must be a whole number from 1 to 4096"))
    }

    /// Milliseconds in the file, seconds from here on.
    fn latency(&self, name: &str) -> Result<Latency, EvidenceError> {
        let at = |stat: &str| {
            self.positive(&format!("{name}_ms_{stat}")).map(|ms| ms.map(|ms| ms / 1e3))
        };
        Ok(Latency { mean: at("mean")?, p50: at("p50")?, p99: at("p99")? })
    }

    fn load(&self) -> Result<Load, EvidenceError> {
        let word = self.needed("load")?;
        let number = |field: &str| {
            self.positive(field)?
                .ok_or_else(|| self.wrong(field, format!("is missing, and the load is `{word}`")))
        };
        Ok(match word.as_str() {
            "concurrency" => Load::Concurrency(number("concurrency")?),
            "request_rate" => Load::Rate(number("request_rate")?),
            "max_throughput" => Load::AllAtOnce,
            "static_batch" => Load::StaticBatch(number("concurrency")?),
            // The queue is always full: the measured running batch is the load, the limit of the engine where it is not known.
            "saturated_max_num_seqs" => {
                Load::Concurrency(match self.positive("mean_concurrency")? {
                    Some(running) => running,
                    None => number("concurrency")?,
                })
            }
            other => {
                return Err(self.wrong(
                    "load",
                    format!("`{other}` is not one of concurrency, request_rate, max_throughput, static_batch, saturated_max_num_seqs"),
                ));
            }
        })
    }

    fn performance(self) -> Result<PerformanceCase, EvidenceError> {
        let tags = match self.get("tags") {
            None => Vec::new(),
            Some(Value::Array(tags)) => {
                tags.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(_) => return Err(self.wrong("tags", "must be a list")),
        };
        // What was processed, where it is known; what was asked for otherwise.
        let length = |name: &str| match self.positive(&format!("{name}_mean"))? {
            Some(mean) => Ok(Some(mean)),
            None => self.positive(name),
        };
        let devices = self.degree("n_gpu")?.ok_or_else(|| self.wrong("n_gpu", "is missing"))?;
        Ok(PerformanceCase {
            id: self.needed("id")?,
            source: self.needed("source")?,
            inputs: PerformanceInputs {
                engine: self.needed("engine")?,
                version: self.words("version")?,
                model: self.needed("model")?,
                arch: self.needed("arch")?,
                precision: self.words("precision")?,
                kv_precision: self.words("kv_precision")?,
                accelerator: self.needed("gpu")?,
                devices,
                tensor: self.degree("tp")?,
                pipeline: self.degree("pp")?.unwrap_or(1),
                expert: self.degree("ep")?.unwrap_or(1),
                attention_replicas: self.degree("dp")?.unwrap_or(1),
                prompt: length("isl")?,
                output: length("osl")?,
                load: self.load()?,
                saturated: self.words("load")?.as_deref() == Some("saturated_max_num_seqs"),
                requests: self.positive("num_requests")?,
                workload: self.needed("workload")?,
            },
            observed: PerformanceObserved {
                ttft: self.latency("ttft")?,
                tpot: self.latency("tpot")?,
                itl: self.latency("itl")?,
                output_tokens_per_s: self.positive("output_tok_s")?,
            },
            tags,
        })
    }
}
