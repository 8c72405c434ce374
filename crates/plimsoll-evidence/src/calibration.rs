//! Files that `plimsoll calibrate` writes, read back.

use plimsoll_perf::{Rates, Term};
use plimsoll_study::{Band, Provenance, Region};
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
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// The day it was made.
    pub as_of: String,
    /// Constants with their values.
    pub coefficients: Vec<(Term, f64)>,
    /// Where it may be used.
    pub region: Region,
    /// How sure it is.
    pub band: Band,
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
    let list = document.get("coefficients").and_then(Value::as_array);
    let mut coefficients = Vec::new();
    for (i, entry) in list.ok_or_else(|| wrong("/coefficients"))?.iter().enumerate() {
        let path = format!("/coefficients/{i}");
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let term = Term::named(name).ok_or_else(|| wrong(&format!("{path}/name")))?;
        let value = number(entry.get("value"), &format!("{path}/value"))?;
        if term.is_efficiency() && value > 1.0 {
            return Err(EvidenceError::NoCalibration(format!(
                "`{path}/value`: {name} is a share of the datasheet's peak and cannot be {value}"
            )));
        }
        coefficients.push((term, value));
    }
    let range = |name: &str| {
        let pair = document.pointer(&format!("/region/{name}")).and_then(Value::as_array)?;
        Some([pair.first()?.as_f64()?, pair.get(1)?.as_f64()?])
    };
    // What a fit had not seen, where it had anything to leave out; else only what it was fitted to, which flatters.
    let groups = ["/left_out", "/fitted"].into_iter().find_map(|path| {
        document.pointer(path).and_then(Value::as_array).filter(|g| !g.is_empty())
    });
    let worst = |field: &str| {
        let values = groups.into_iter().flatten().filter_map(|g| g.get(field)?.as_f64());
        values.fold(0.0, f64::max)
    };
    let n = groups.into_iter().flatten().filter_map(|g| g.get("n")?.as_u64()).sum();
    Ok(CalibrationFile {
        model: text("/setup/model")?,
        accelerator: text("/setup/accelerator")?,
        engine: text("/setup/engine")?,
        weights: text("/setup/weights")?,
        tensor_parallel: number(
            document.pointer("/setup/tensor_parallel"),
            "/setup/tensor_parallel",
        )? as u64,
        as_of: text("/as_of")?,
        coefficients,
        region: Region {
            decodes: range("decodes"),
            context_tokens: range("context_tokens"),
            prefill_tokens: range("prefill_tokens"),
            prompt_tokens: range("prompt_tokens"),
        },
        band: Band {
            median_abs_pct: worst("median_abs_pct"),
            p90_abs_pct: worst("p90_abs_pct"),
            n,
            measured_on: "the runs and points it was fitted to, each left out in turn".to_owned(),
            provenance: Provenance::Calibrated,
        },
    })
}
