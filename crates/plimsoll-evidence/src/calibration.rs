//! Files that `plimsoll calibrate` writes, read back.

use plimsoll_perf::{Rates, Term};
use plimsoll_study::{Band, Provenance, Region, Spread};
use serde_json::Value;

use crate::EvidenceError;
use crate::memory::not_json;

/// A calibration as a pool uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationFile {
    /// The model it is of.
    pub model: String,
    /// The accelerator it is of.
    pub accelerator: String,
    /// The engine and version it is of.
    pub engine: String,
    /// How weights are stored.
    pub weights: String,
    /// Bytes of a cached number.
    pub kv_element_bytes: u64,
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// Groups of devices that share the layers.
    pub pipeline_parallel: u64,
    /// Devices that share the experts whole.
    pub expert_parallel: u64,
    /// The day it was made.
    pub as_of: String,
    /// Constants with their values.
    pub coefficients: Vec<(Term, f64)>,
    /// Where it may be used.
    pub region: Region,
    /// How far gaps were spread around their prediction; empty where the file does not say.
    pub spread: Spread,
    /// How far gaps between tokens were off on what a fit had not seen; none where nothing was left out.
    pub itl_band: Option<Band>,
    /// The same of first tokens and steps with prompts.
    pub ttft_band: Option<Band>,
}

impl CalibrationFile {
    /// Replaces the built-in constants.
    pub fn apply(&self, rates: &mut Rates) {
        for (term, value) in &self.coefficients {
            rates.set(*term, *value);
        }
    }
}

/// Reads a file with the schema `plimsoll/calibration/v1`.
pub fn calibration(text: &str) -> Result<CalibrationFile, EvidenceError> {
    let document: Value = serde_json::from_str(text).map_err(not_json)?;
    if document.get("schema").and_then(Value::as_str) != Some("plimsoll/calibration/v1") {
        return Err(EvidenceError::NoCalibration(
            "its `schema` is not `plimsoll/calibration/v1`; `plimsoll calibrate … --into FILE` writes one".to_owned(),
        ));
    }
    let wrong = |what: &str| {
        EvidenceError::NoCalibration(format!("`{what}` is missing or is not what it should be"))
    };
    let text = |path: &str| {
        document.pointer(path).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| wrong(path))
    };
    let number = |value: Option<&Value>, path: &str| {
        value
            .and_then(Value::as_f64)
            .filter(|x| x.is_finite() && *x > 0.0)
            .ok_or_else(|| wrong(path))
    };
    let whole = |name: &str| {
        let path = format!("/setup/{name}");
        let found =
            document.pointer(&path).and_then(Value::as_u64).filter(|n| (1..=4096).contains(n));
        found.ok_or_else(|| wrong(&path))
    };
    let list = document.get("coefficients").and_then(Value::as_array);
    let mut coefficients = Vec::new();
    for (i, entry) in list.ok_or_else(|| wrong("/coefficients"))?.iter().enumerate() {
        let path = format!("/coefficients/{i}");
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let term = Term::named(name).ok_or_else(|| wrong(&format!("{path}/name")))?;
        let value = number(entry.get("value"), &format!("{path}/value"))?;
        // An hour a step, a million tokens: no constant of ours is larger.
        let most = if term.unit() == "s" { 3600.0 } else { 1e6 };
        if value > most {
            return Err(EvidenceError::NoCalibration(format!(
                "`{path}/value`: {name} cannot be {value}"
            )));
        }
        if term.is_efficiency() && value > 1.0 {
            return Err(EvidenceError::NoCalibration(format!(
                "`{path}/value`: {name} is a share of the datasheet's peak and cannot be {value}"
            )));
        }
        coefficients.push((term, value));
    }
    if coefficients.is_empty() {
        return Err(wrong("/coefficients"));
    }
    let range = |name: &str| match document.pointer(&format!("/region/{name}")) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let ends = value.as_array().filter(|a| a.len() == 2);
            let ends = ends.and_then(|a| Some([a[0].as_f64()?, a[1].as_f64()?]));
            let ends = ends.filter(|[low, high]| 0.0 <= *low && low <= high && *high < 1e15);
            ends.map(Some).ok_or_else(|| wrong(&format!("/region/{name}")))
        }
    };
    let differences = |name: &str| {
        let path = format!("/spread/{name}");
        let Some(list) = document.pointer(&path).filter(|v| !v.is_null()) else {
            return Ok(Vec::new());
        };
        // Seconds; no gap of ours is off by an hour.
        let number = |v: &Value| v.as_f64().filter(|x| x.abs() <= 3600.0);
        let list = list.as_array().filter(|list| list.len() <= 10_000);
        let list = list.and_then(|list| list.iter().map(number).collect::<Option<Vec<f64>>>());
        list.ok_or_else(|| wrong(&path))
    };
    // Only what a fit had not seen tells its error.
    let groups: Vec<&Value> =
        document.pointer("/left_out").and_then(Value::as_array).into_iter().flatten().collect();
    let band = |kinds: &[&str]| {
        let mine = || {
            groups.iter().filter(|g| {
                g.get("name").and_then(Value::as_str).is_some_and(|n| kinds.contains(&n))
            })
        };
        let worst = |field: &str| {
            mine()
                .filter_map(|g| g.get(field)?.as_f64())
                .fold(None, |a: Option<f64>, b| Some(a.map_or(b, |a| a.max(b))))
        };
        Some(Band {
            median_abs_pct: worst("median_abs_pct").filter(|e| (0.0..1e6).contains(e))?,
            p90_abs_pct: worst("p90_abs_pct").filter(|e| (0.0..1e6).contains(e))?,
            n: mine().filter_map(|g| g.get("n")?.as_u64()).sum(),
            measured_on: "the runs and points it was fitted to, each left out in turn".to_owned(),
            provenance: Provenance::Calibrated,
        })
    };
    let (gaps, firsts) =
        (["decode steps", "gap between tokens"], ["steps with prompts", "first token"]);
    Ok(CalibrationFile {
        model: text("/setup/model")?,
        accelerator: text("/setup/accelerator")?,
        engine: text("/setup/engine")?,
        weights: text("/setup/weights")?,
        kv_element_bytes: whole("kv_element_bytes")?,
        tensor_parallel: whole("tensor_parallel")?,
        pipeline_parallel: whole("pipeline_parallel")?,
        expert_parallel: whole("expert_parallel")?,
        as_of: text("/as_of")?,
        coefficients,
        region: Region {
            decodes: range("decodes")?,
            context_tokens: range("context_tokens")?,
            prefill_tokens: range("prefill_tokens")?,
            prompt_tokens: range("prompt_tokens")?,
        },
        spread: Spread {
            decodes_s: differences("decodes_s")?,
            prompts_s: differences("prompts_s")?,
            launch_s: differences("launch_s")?,
        },
        itl_band: band(&gaps),
        ttft_band: band(&firsts),
    })
}
