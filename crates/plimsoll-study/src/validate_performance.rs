//! The error table of the step-time model.

use std::collections::BTreeMap;

use plimsoll_fleet::{Catalog, Layer, Mlp};
use plimsoll_perf::constants;
use plimsoll_stats::quantile;
use serde::Serialize;

use crate::measured::Load;
use crate::performance::{Metric, PerformanceCase, Prepared, prepare};

/// All cases with their errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PerformanceValidation {
    /// Always `performance`.
    pub suite: &'static str,
    /// Constants in the catalogue, those that stand for the unmeasured among them.
    pub constants: usize,
    /// Whether the constants were fitted to published measurements, these among them: then the errors below flatter.
    pub in_sample: bool,
    /// What to expect of a model and device that the fit has not seen: each was left out in turn when the constants were made.
    pub not_seen: Vec<NotSeen>,
    /// Errors by group, over scored numbers; `dense` and `moe` are gaps between tokens in a closed loop.
    pub groups: Vec<GroupError>,
    /// How often the faster of two accelerators is named.
    pub ranking: Ranking,
    /// All of it.
    pub summary: PerformanceSummary,
    /// One by one.
    pub cases: Vec<PerformanceOutcome>,
}

/// Errors on models and devices that a fit had not seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotSeen {
    /// `dense`, `moe` and `attention-dp`: gaps between tokens; `prefill`: first tokens of prompts alone; `throughput`.
    pub name: String,
    /// How many numbers.
    pub n: u64,
    /// Median of the absolute errors.
    pub median_abs_pct: f64,
    /// 90th percentile of the absolute errors.
    pub p90_abs_pct: f64,
}

/// How far a group of predictions is off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupError {
    /// What is compared, and of what.
    pub name: String,
    /// How many numbers.
    pub n: usize,
    /// Median of the absolute errors.
    pub median_abs_pct: f64,
    /// 90th percentile of the absolute errors.
    pub p90_abs_pct: f64,
    /// Median of the errors: above zero, predictions are too large.
    pub bias_pct: f64,
}

impl GroupError {
    /// Of these errors, in percent; none where there are none.
    pub(crate) fn of(name: String, errors: &[f64]) -> Option<Self> {
        let absolute: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        Some(Self {
            name,
            n: errors.len(),
            median_abs_pct: quantile(&absolute, 0.5)?,
            p90_abs_pct: quantile(&absolute, 0.9)?,
            bias_pct: quantile(errors, 0.5)?,
        })
    }
}

/// Pairs of accelerators that were measured alike and are more than 20% apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ranking {
    /// How many.
    pub pairs: usize,
    /// How many of them come out in the right order.
    pub right: usize,
}

/// Counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PerformanceSummary {
    /// Cases in the file.
    pub cases: usize,
    /// Numbers that count.
    pub scored: usize,
    /// Numbers whose source is not good enough, or that say nothing of a step: shown, not counted.
    pub not_scored: usize,
    /// Numbers that count and of which nothing could be said; each counts as an error of 100%.
    pub skipped: usize,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PerformanceOutcome {
    /// Its name.
    pub id: String,
    /// The model's shape and the accelerator.
    pub group: String,
    /// The engine.
    pub engine: String,
    /// `dense`, `moe` or `attention-dp`; none where the model is not known.
    pub kind: Option<&'static str>,
    /// What is compared.
    pub numbers: Vec<NumberOutcome>,
    /// Why nothing could be said.
    pub skipped: Option<String>,
}

/// One measured number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberOutcome {
    /// Which.
    pub metric: Metric,
    /// `s` or `tokens/s`.
    pub unit: &'static str,
    /// As published.
    pub measured: f64,
    /// As predicted.
    pub predicted: Option<f64>,
    /// Predicted against measured.
    pub error_pct: Option<f64>,
    /// Whether it counts.
    pub scored: bool,
}

/// Predicts every case from its inputs alone, with the catalogue's constants.
pub fn validate_performance(cases: &[PerformanceCase], catalog: &Catalog) -> PerformanceValidation {
    let rows = constants(catalog);
    let values: Vec<f64> = rows.iter().map(|r| r.value).collect();
    let prepared: Vec<Result<Prepared, String>> =
        cases.iter().map(|case| prepare(&case.inputs, catalog, &rows)).collect();
    let outcomes: Vec<PerformanceOutcome> =
        cases.iter().zip(&prepared).map(|(case, p)| outcome(case, p, &values, catalog)).collect();
    let numbers = || outcomes.iter().flat_map(|o| &o.numbers);
    let summary = PerformanceSummary {
        cases: cases.len(),
        scored: numbers().filter(|n| n.scored).count(),
        not_scored: numbers().filter(|n| !n.scored).count(),
        skipped: numbers().filter(|n| n.scored && n.predicted.is_none()).count(),
    };
    PerformanceValidation {
        suite: "performance",
        constants: rows.len(),
        in_sample: catalog.step_constants.iter().any(|c| c.cases > 0),
        not_seen: catalog
            .step_bands
            .iter()
            .filter(|b| b.family.is_none() && b.engine.is_none())
            .map(|b| NotSeen {
                name: b.kind.clone(),
                n: b.cases,
                median_abs_pct: b.median_abs_pct,
                p90_abs_pct: b.p90_abs_pct,
            })
            .collect(),
        groups: groups(cases, &outcomes),
        ranking: ranking(cases, &outcomes),
        summary,
        cases: outcomes,
    }
}

fn outcome(
    case: &PerformanceCase,
    prepared: &Result<Prepared, String>,
    values: &[f64],
    catalog: &Catalog,
) -> PerformanceOutcome {
    let numbers = case.targets().into_iter().map(|target| {
        let predicted = prepared.as_ref().ok().map(|p| p.predicted(&target, values));
        NumberOutcome {
            metric: target.metric,
            unit: if target.metric == Metric::OutputRate { "tokens/s" } else { "s" },
            measured: target.measured,
            predicted,
            error_pct: predicted.map(|p| (p / target.measured - 1.0) * 100.0),
            scored: target.scored,
        }
    });
    PerformanceOutcome {
        id: case.id.clone(),
        group: format!("{}|{}", case.inputs.arch, case.inputs.accelerator),
        engine: case.inputs.engine.clone(),
        kind: kind(case, catalog),
        numbers: numbers.collect(),
        skipped: prepared.as_ref().err().cloned(),
    }
}

fn kind(case: &PerformanceCase, catalog: &Catalog) -> Option<&'static str> {
    let model =
        catalog.model(&case.inputs.arch).or_else(|_| catalog.model(&case.inputs.model)).ok()?;
    let experts = |layer: &Layer| matches!(layer.mlp, Mlp::Experts { .. });
    Some(match () {
        () if case.inputs.attention_replicas > 1 => "attention-dp",
        () if model.architecture.layers.iter().any(experts) => "moe",
        () => "dense",
    })
}

fn groups(cases: &[PerformanceCase], outcomes: &[PerformanceOutcome]) -> Vec<GroupError> {
    let mut by_name: BTreeMap<(usize, String), Vec<f64>> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(outcomes) {
        // Of a model that is not known nobody can say whether it has experts; it counts against the simpler kind.
        let kind = outcome.kind.unwrap_or("dense");
        for number in outcome.numbers.iter().filter(|n| n.scored) {
            let error = number.error_pct.unwrap_or(-100.0);
            let mut add =
                |rank: usize, name: String| by_name.entry((rank, name)).or_default().push(error);
            let engine = engine_word(&case.inputs.engine);
            match (number.metric, case.inputs.load) {
                (Metric::Tpot, Load::Rate(_)) => add(4, format!("{kind}, open loop")),
                (Metric::Tpot, _) => {
                    add(0, kind.to_owned());
                    add(1, format!("{kind}, {engine}"));
                    add(2, format!("{kind}, {}", case.inputs.accelerator));
                }
                (Metric::OutputRate, Load::AllAtOnce) => {
                    add(3, format!("max throughput, {kind}"));
                    if kind != "attention-dp" {
                        add(3, "max throughput".to_owned());
                    }
                }
                (Metric::OutputRate, _) => add(5, format!("static batch, {kind}")),
                (Metric::Ttft, Load::StaticBatch(_)) => add(6, format!("prefill alone, {kind}")),
                (Metric::Ttft, _) => add(7, format!("ttft under load, {kind}")),
            }
        }
    }
    let group = |((_, name), errors): ((usize, String), Vec<f64>)| GroupError::of(name, &errors);
    by_name.into_iter().filter_map(group).collect()
}

fn engine_word(published: &str) -> &str {
    published.split([' ', '+']).next().unwrap_or(published)
}

/// Pairs that differ in the accelerator and in nothing else that is published, version and source aside.
fn ranking(cases: &[PerformanceCase], outcomes: &[PerformanceOutcome]) -> Ranking {
    // The accelerator, what was measured, what is predicted.
    type Measured<'a> = (&'a str, f64, Option<f64>);
    let mut alike: BTreeMap<String, Vec<Measured<'_>>> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(outcomes) {
        let i = &case.inputs;
        for number in outcome.numbers.iter().filter(|n| n.scored && n.metric != Metric::Ttft) {
            let key = format!(
                "{} {:?} {:?} {} {:?} {} {} {} {} {:?} {:?} {:?} {:?}",
                i.arch,
                i.precision,
                i.kv_precision,
                engine_word(&i.engine),
                i.tensor,
                i.pipeline,
                i.expert,
                i.attention_replicas,
                i.devices,
                i.load,
                i.prompt,
                i.output,
                number.metric
            );
            alike.entry(key).or_default().push((&i.accelerator, number.measured, number.predicted));
        }
    }
    let mut ranking = Ranking::default();
    for group in alike.values() {
        for (n, (name, measured, predicted)) in group.iter().enumerate() {
            for (other, also_measured, also_predicted) in &group[n + 1..] {
                let apart = measured.max(*also_measured) / measured.min(*also_measured);
                if name == other || apart <= 1.2 {
                    continue;
                }
                ranking.pairs += 1;
                if let (Some(p), Some(q)) = (predicted, also_predicted)
                    && (p > q) == (measured > also_measured)
                {
                    ranking.right += 1;
                }
            }
        }
    }
    ranking
}
