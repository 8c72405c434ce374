//! The step times of a pool: its work, its constants, and what they rest on.

use plimsoll_fleet::{Catalog, Engine, StepBand};
use plimsoll_perf::{
    Constant, Datasheet, Key, Layout, Rates, Selection, Work, band, dtype, family, select,
};
use serde::Serialize;

use crate::fit::{Fit, FitInput};
use crate::review::Provenance;

/// A pool's step times, before and after constants are chosen.
#[derive(Clone, Debug)]
pub struct PoolSteps {
    /// What its steps make a device do.
    pub work: Work,
    /// Its device.
    pub sheet: Datasheet,
    /// Its rows of constants.
    pub selection: Selection,
    /// `dense`, `moe` or `attention-dp`.
    pub kind: &'static str,
    /// The device family, where constants know it.
    pub family: Option<&'static str>,
    /// The engine, as constants are keyed by it.
    pub engine: String,
}

/// How sure a predicted step time is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Band {
    /// Half of the predictions of this kind were closer than this.
    pub median_abs_pct: f64,
    /// Nine in ten were closer than this.
    pub p90_abs_pct: f64,
    /// Measurements it was held against; none where nothing of the kind was measured.
    pub n: u64,
    /// What those measurements are of.
    pub measured_on: String,
    /// A fit to the user's own measurements, or the built-in one.
    pub provenance: Provenance,
}

/// vLLM gives the prompts and the decodes of a step to one kernel, which reads the keys and values of the latter less well than the one for decodes alone. Our
/// own vLLM 0.24 on an H200 (2026-11-15): 1.37, in closed loops (380 steps) and in open ones (807) alike. Engines with a kernel for each do not show it.
const MIXED_KV: f64 = 1.37;

/// What the matrices save on tokens of a step beyond 2,048. By our own vLLM 0.24 on an H200 (2026-11-15) 0.12 where nothing else runs: prompts of 8,192 and 16,384
/// tokens take 7% less in parts of 8,192 than of 2,048. Busy devices show about half of it, and that is what is taken.
const LARGE_SAVES: f64 = 0.05;

/// The step times of a pool whose memory budget is known.
pub fn pool_steps(
    input: &FitInput<'_>,
    budget: &Fit,
    attention_replicas: u64,
    constants: &[Constant],
) -> Result<PoolSteps, String> {
    let FitInput { accelerator, engine, placement, format, kv_element_bytes, .. } = *input;
    let group = u32::try_from(placement.tensor).unwrap_or(u32::MAX);
    let captured = match Engine::default_for(&engine.graph_max_seqs, accelerator, group) {
        Some(most) => most,
        // vLLM captures graphs for twice its largest batch, 512 at most.
        None if engine.name == "vllm" => budget.max_num_seqs.saturating_mul(2).min(512),
        // Nobody wrote down what the others capture: every batch, as far as is known.
        None => u64::from(u32::MAX),
    };
    let layout = Layout {
        placement,
        format,
        kv_element_bytes,
        attention_replicas,
        lora_rank: input.lora.map(|(_, rank)| rank),
        graph_tokens: (!input.eager).then_some(captured),
    };
    let mut work = Work::of(input.model, &layout).map_err(|e| e.to_string())?;
    if engine.name == "vllm" {
        (work.mixed_kv, work.large_saves) = (MIXED_KV, LARGE_SAVES);
    }
    let sheet = Datasheet::of(accelerator, format)
        .ok_or_else(|| format!("the catalogue knows no arithmetic peak of {}", accelerator.name))?;
    let engine = match engine.async_scheduling {
        Some(false) => format!("{}-sync", engine.name),
        _ => engine.name.clone(),
    };
    let key = Key {
        family: family(accelerator),
        engine: &engine,
        dtype: dtype(format),
        kv_dtype: if kv_element_bytes == 1 { "fp8" } else { "bf16" },
    };
    let selection = select(constants, &key).map_err(|e| e.to_string())?;
    let kind = match () {
        () if attention_replicas > 1 => "attention-dp",
        () if work.experts.is_some() => "moe",
        () => "dense",
    };
    Ok(PoolSteps { work, sheet, selection, kind, family: family(accelerator), engine })
}

impl PoolSteps {
    /// Whether its engine schedules a step while another runs.
    pub fn asynchronous(&self) -> bool {
        !self.engine.ends_with("-sync")
    }

    /// Its constants, with these values of all rows.
    pub fn rates(&self, values: &[f64]) -> Rates {
        self.selection.rates(values, self.sheet)
    }

    /// How sure the gaps between tokens are that the built-in constants give.
    pub fn band(&self, catalog: &Catalog) -> Band {
        self.band_of(catalog, self.kind)
    }

    /// How sure first tokens (`prefill`) and peaks (`throughput`) are.
    pub fn band_of(&self, catalog: &Catalog, kind: &str) -> Band {
        let found: Option<&StepBand> = band(&catalog.step_bands, kind, self.family, &self.engine);
        let Some(band) = found.filter(|_| self.family.is_some()) else {
            // Nobody measured this family: a roofline from the datasheet, which may be off by half either way.
            return Band {
                median_abs_pct: 40.0,
                p90_abs_pct: 100.0,
                n: 0,
                measured_on: "nothing of the kind: a roofline from the datasheet".to_owned(),
                provenance: Provenance::Modeled,
            };
        };
        let devices = band.family.as_deref().unwrap_or("all devices");
        let engine = band.engine.as_ref().map_or(String::new(), |e| format!(" with {e}"));
        // Other devices' errors say less of this one.
        let (factor, other) = match &band.family {
            None if kind == self.kind => (1.5, ", and none of this family: half as much again"),
            _ => (1.0, ""),
        };
        Band {
            median_abs_pct: band.median_abs_pct * factor,
            p90_abs_pct: band.p90_abs_pct * factor,
            n: band.cases,
            measured_on: format!(
                "published {kind} measurements on {devices}{engine}, not seen by the fit{other}"
            ),
            provenance: Provenance::Modeled,
        }
    }
}
