//! A calibration: the document for people, for scripts, and the file a pool names.

use std::fmt::Write as _;

use plimsoll_study::{Calibration, EngineSummary, Provenance, RunOutcome};
use plimsoll_units::grouped;
use serde_json::{Value, json};

use crate::Heading;
use crate::text::aligned;
use crate::validation::group_table;

/// A calibration and what it is of.
#[derive(Clone, Debug)]
pub struct CalibrationDocument<'a> {
    /// Of the program.
    pub version: &'a str,
    /// The day.
    pub as_of: String,
    /// Where it was written.
    pub into: String,
    /// The model.
    pub model: String,
    /// The accelerator.
    pub accelerator: String,
    /// The engine with its version.
    pub engine: String,
    /// How weights are stored.
    pub weights: &'a str,
    /// Bytes of a cached number.
    pub kv_element_bytes: u64,
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// Groups of devices that share the layers.
    pub pipeline_parallel: u64,
    /// Devices that share the experts whole.
    pub expert_parallel: u64,
    /// What was fitted.
    pub calibration: &'a Calibration,
}

impl CalibrationDocument<'_> {
    fn title(&self) -> String {
        format!(
            "Step times of {} on {} x {}, {}, {} weights",
            self.model,
            self.tensor_parallel * self.pipeline_parallel,
            self.accelerator,
            self.engine,
            self.weights
        )
    }

    fn setup(&self) -> Value {
        json!({
            "model": self.model,
            "accelerator": self.accelerator,
            "engine": self.engine,
            "weights": self.weights,
            "kv_element_bytes": self.kv_element_bytes,
            "tensor_parallel": self.tensor_parallel,
            "pipeline_parallel": self.pipeline_parallel,
            "expert_parallel": self.expert_parallel,
        })
    }

    fn document(&self, schema: &str) -> Value {
        let mut document = json!({
            "schema": schema,
            "plimsoll": self.version,
            "as_of": self.as_of,
            "setup": self.setup(),
        });
        if let (Value::Object(document), Ok(Value::Object(body))) =
            (&mut document, serde_json::to_value(self.calibration))
        {
            document.extend(body);
        }
        document
    }
}

/// What `calibrate --json` prints.
pub fn calibrate_json(document: &CalibrationDocument<'_>) -> Value {
    let mut value = document.document("plimsoll/calibrate/v1");
    value["into"] = json!(document.into);
    value
}

/// The file that a pool's `calibration` names.
pub fn calibration_json(document: &CalibrationDocument<'_>) -> Value {
    document.document("plimsoll/calibration/v1")
}

/// The calibration for a terminal.
pub fn calibrate_text(document: &CalibrationDocument<'_>, heading: Heading) -> String {
    let c = document.calibration;
    let mut out = format!("{}\n\n", heading.apply(&document.title()));
    let rows: Vec<Vec<String>> = c
        .coefficients
        .iter()
        .map(|k| {
            let known = k.provenance == Provenance::Calibrated;
            vec![
                k.name.to_owned(),
                amount(k.value, k.unit),
                format!(
                    "{} to {}",
                    amount(k.interval.low, k.unit),
                    amount(k.interval.high, k.unit)
                ),
                amount(k.prior, k.unit),
                if known { "calibrated" } else { "built in" }.to_owned(),
            ]
        })
        .collect();
    let level = c.coefficients.first().map_or(90.0, |k| k.interval.level * 100.0);
    out += &aligned(
        &["constant", "value", &format!("{level:.0}% interval"), "built in", "from"],
        &rows,
        &[1, 2, 3],
    );
    if !c.left_out.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("Predicted by a fit that had not seen them"));
        out += &group_table(&c.left_out);
    } else {
        let _ = writeln!(
            out,
            "\none run or point only: nothing is left to test the fit on, so its error is not known"
        );
        out += &group_table(&c.fitted);
    }
    if !c.held_out.is_empty() {
        let _ = writeln!(out, "\n{}", heading.apply("Runs that were not chosen, predicted"));
        out += &group_table(&c.held_out);
    }
    let rows: Vec<Vec<String>> = c
        .points
        .iter()
        .map(|p| {
            let percent = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.1}%"));
            vec![
                p.name.clone(),
                p.used.to_string(),
                percent(p.fitted_error_pct),
                percent(p.left_out_error_pct),
                if p.used == 0 { "rejected".to_owned() } else { p.informs.join(", ") },
            ]
        })
        .collect();
    let _ = writeln!(out, "\n{}", heading.apply("What each run or point informs"));
    out += &aligned(&["run or point", "used", "error", "left out", "informs"], &rows, &[1, 2, 3]);
    let r = &c.region;
    let seen = [
        ("decoding sequences a step", r.decodes),
        ("tokens of context a step", r.context_tokens),
        ("prompt tokens a step", r.prefill_tokens),
        ("tokens a prompt", r.prompt_tokens),
    ];
    let seen: Vec<String> = seen
        .into_iter()
        .filter_map(|(what, range)| {
            let [low, high] = range?.map(|x| grouped(x.round() as u64));
            Some(if low == high {
                format!("{low} {what}")
            } else {
                format!("{low} to {high} {what}")
            })
        })
        .collect();
    let _ = writeln!(
        out,
        "\nWhat was seen, and hence where it may be used: {}. Beyond, it extrapolates.",
        seen.join(", ")
    );
    for flag in &c.flags {
        let word = if flag.rejects { "rejected" } else { "note" };
        let _ = writeln!(
            out,
            "{word}: {} row {}, `{}`: {} [{}]",
            flag.origin.file, flag.origin.row, flag.field, flag.message, flag.code
        );
    }
    let _ = writeln!(
        out,
        "\nwritten to {}; name it in a pool: calibration = {:?}",
        document.into, document.into
    );
    out
}

/// Measured runs beside their simulation.
#[derive(Clone, Debug)]
pub struct EngineDocument<'a> {
    /// Where the step times come from.
    pub step_times: String,
    /// Run by run.
    pub runs: Vec<RunOutcome>,
    /// Over the numbers that count.
    pub summary: EngineSummary,
    /// The calibrations behind it, where it made some.
    pub pools: Vec<CalibrationDocument<'a>>,
}

/// Measured runs beside their simulation, for scripts.
pub fn engine_json(document: &EngineDocument<'_>) -> Value {
    let pools = document.pools.iter().map(|d| {
        let c = d.calibration;
        json!({
            "setup": d.setup(),
            "left_out_error_pct": c.left_out_error_pct,
            "left_out": c.left_out,
            "held_out": c.held_out,
            "runs": c.points,
            "flags": c.flags,
        })
    });
    json!({
        "schema": "plimsoll/validate/v1",
        "suite": "engine",
        "step_times": document.step_times,
        "summary": document.summary,
        "runs": document.runs,
        "pools": pools.collect::<Vec<_>>(),
    })
}

/// The same for a terminal.
pub fn engine_text(document: &EngineDocument<'_>, heading: Heading) -> String {
    let shown = ["throughput", "itl_mean", "itl_p50", "itl_p95", "ttft_p50", "ttft_p95", "e2e_p95"];
    let rows: Vec<Vec<String>> = document
        .runs
        .iter()
        .map(|run| {
            let mut row = vec![run.run.clone()];
            row.extend(shown.iter().map(|name| {
                let metric = run.metrics.iter().find(|m| m.name == *name);
                metric
                    .and_then(|m| m.error_pct)
                    .map_or_else(|| "-".to_owned(), |error| format!("{error:+.1}%"))
            }));
            row.push(if run.beyond_knee { "beyond" } else { "" }.to_owned());
            row
        })
        .collect();
    let mut out = format!(
        "{}\n\n",
        heading.apply(&format!("Measured runs, simulated; step times {}", document.step_times))
    );
    let header = [
        "run",
        "throughput",
        "ITL mean",
        "ITL p50",
        "ITL p95",
        "TTFT p50",
        "TTFT p95",
        "E2E p95",
        "knee",
    ];
    out += &aligned(&header, &rows, &[1, 2, 3, 4, 5, 6, 7]);
    let percent = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.1}%"));
    let summary = &document.summary;
    let _ = writeln!(
        out,
        "\n{} numbers (throughput, ITL mean, p50, p95, TTFT p50, p95): median error {}, p90 {}",
        summary.n,
        percent(summary.median_abs_pct),
        percent(summary.p90_abs_pct)
    );
    for run in &document.runs {
        for own in &run.good {
            let _ = writeln!(
                out,
                "{}, good requests of {}: measured {:.1}% ({:.1}% to {:.1}%), predicted {:.1}%{}",
                run.run,
                own.kind,
                own.measured * 100.0,
                own.interval.low * 100.0,
                own.interval.high * 100.0,
                own.predicted * 100.0,
                if own.inside { "" } else { ", OUTSIDE" }
            );
        }
    }
    for run in document.runs.iter().filter(|r| r.skipped.is_some()) {
        let _ = writeln!(
            out,
            "not simulated, {} of {}: {}",
            run.run,
            run.file,
            run.skipped.as_deref().unwrap_or("")
        );
    }
    if document.pools.is_empty() {
        return out;
    }
    out.push('\n');
    for pool in &document.pools {
        let c = pool.calibration;
        let _ = writeln!(out, "{}\n", heading.apply(&pool.title()));
        let _ = writeln!(out, "closed loops, each predicted by a fit to the others");
        out += &group_table(&c.left_out);
        let _ = writeln!(out, "\nopen loops, predicted by a fit to the closed ones");
        out += &group_table(&c.held_out);
        for flag in &c.flags {
            let _ = writeln!(
                out,
                "note: {} row {}: {}",
                flag.origin.file, flag.origin.row, flag.message
            );
        }
        out.push('\n');
    }
    out += "`decode steps as seen`: decode steps that follow another and precede one, each by the client's clock; `decode steps`: the same, an output\n\
            that was seen late joined with the next; `steps with prompts`: those, with the decode step before and after them. Fitted from kernel\n\
            timings, not from the built-in constants, which have seen these logs.\n";
    out
}

/// A constant with the digits it has earned.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "s" if value < 1e-6 => format!("{:.3} ns", value * 1e9),
        "s" if value < 1e-3 => format!("{:.1} us", value * 1e6),
        "s" => format!("{:.2} ms", value * 1e3),
        "tokens" => format!("{value:.0} tokens"),
        _ => format!("{value:.3}"),
    }
}
