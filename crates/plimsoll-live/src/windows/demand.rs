//! What was asked of models, of what processes counted.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_fleet::metrics::{Reporter, Signal};

use super::counts::{Counts, Status, value};
use super::{Basis, DemandWindow};
use crate::resolve::Resolved;

/// What reporters say of the models, window by window.
#[derive(Default)]
pub(super) struct Demand {
    rows: BTreeMap<(String, i64), BTreeMap<Reporter, DemandWindow>>,
    /// Windows that a reporter knows only in part.
    gaps: BTreeMap<(String, i64), BTreeSet<Reporter>>,
}

impl Demand {
    pub(super) fn add(&mut self, counts: &Counts<'_>) {
        let mut models: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (id, process) in counts.processes.iter().enumerate() {
            models.entry(&process.model).or_default().push(id);
        }
        for (model, ids) in models {
            for window in counts.grid.windows() {
                let start_s = counts.grid.at_ms(window).div_euclid(1000);
                let key = (model.to_owned(), start_s);
                let has = |status| ids.iter().any(|id| counts.status[*id][window] == status);
                if has(Status::Hole) || (has(Status::Turn) && !has(Status::Whole)) {
                    self.gaps.entry(key).or_default().insert(counts.reporter);
                } else if has(Status::Whole) {
                    let row = asked(counts, model, start_s, &ids, window);
                    self.rows.entry(key).or_default().insert(counts.reporter, row);
                }
            }
        }
    }

    /// The rows, and how many windows are gaps. What a gateway knows is believed; else what all engines know together.
    pub(super) fn rows(self, resolved: &Resolved) -> (Vec<DemandWindow>, u64) {
        let order: Vec<Reporter> = resolved.reporting.iter().map(|own| own.reporter).collect();
        let keys: BTreeSet<&(String, i64)> = self.rows.keys().chain(self.gaps.keys()).collect();
        let (mut rows, mut gaps) = (Vec::new(), 0);
        for key in keys {
            let none = BTreeMap::new();
            let own = self.rows.get(key).unwrap_or(&none);
            let offered = order
                .iter()
                .filter(|reporter| reporter.is_gateway())
                .filter_map(|reporter| own.get(reporter))
                .find(|row| row.requests.is_some());
            if let Some(row) = offered {
                rows.push(row.clone());
                continue;
            }
            let in_part =
                self.gaps.get(key).is_some_and(|own| own.iter().any(|own| !own.is_gateway()));
            let carried = own.values().filter(|row| !row.reporter.is_gateway());
            match carried.cloned().reduce(together) {
                Some(row) if !in_part => rows.push(row),
                _ => gaps += 1,
            }
        }
        (rows, gaps)
    }
}

/// What processes of a model counted in a window, and what waits more than before.
fn asked(
    counts: &Counts<'_>,
    model: &str,
    start_s: i64,
    ids: &[usize],
    window: usize,
) -> DemandWindow {
    let there = || ids.iter().copied().filter(|id| counts.status[*id][window] != Status::Away);
    // One that does not know makes the sum unknown.
    let all = |signal| there().map(|id| counts.grown(signal, id, window)).sum::<Option<f64>>();
    let known =
        |signal| there().filter_map(|id| counts.grown(signal, id, window)).reduce(|a, b| a + b);
    let (prompt, output) = (all(Signal::PromptTokens), all(Signal::OutputTokens));
    let (cached, fresh) = (all(Signal::CachedTokens), all(Signal::FreshTokens));
    let (cached, fresh) = cached_and_fresh(prompt, cached, fresh);
    let requests = all(Signal::Requests);
    let mut row = DemandWindow {
        model: model.to_owned(),
        reporter: counts.reporter,
        start_s,
        window_s: u32::try_from(counts.grid.window_ms / 1000).unwrap_or(0),
        basis: if counts.reporter.is_gateway() { Basis::Offered } else { Basis::Carried },
        requests,
        prompt_tokens: prompt,
        cached_tokens: cached,
        fresh_tokens: fresh,
        output_tokens: output,
        errors: known(Signal::Errors),
        queue_growth: None,
    };
    if counts.reporter.is_gateway() {
        return row;
    }
    let waits = |id, edge| {
        let waits = value(Some(&counts.waiting), id, edge);
        let whole = counts.status[id][window] == Status::Whole;
        // Where a process comes or goes, nothing waits before or after.
        if waits.is_nan() && !whole { Some(0.0) } else { waits.is_finite().then_some(waits) }
    };
    let growth: Option<f64> =
        there().map(|id| Some(waits(id, window + 1)? - waits(id, window)?)).sum();
    if let (Some(growth), Some(requests)) = (growth, requests) {
        row.basis = Basis::CarriedAndQueued;
        row.queue_growth = Some(growth);
        let offered = (requests + growth).max(0.0);
        row.requests = Some(offered);
        // Those that wait are as long as those that were served; where none was, nobody knows.
        let times = match (requests > 0.0, growth > 0.0) {
            (true, _) => Some(offered / requests),
            (false, false) => Some(1.0),
            (false, true) => None,
        };
        let scaled = |tokens: Option<f64>| Some(tokens? * times?);
        row.prompt_tokens = scaled(prompt);
        row.cached_tokens = scaled(cached);
        row.fresh_tokens = scaled(fresh);
        row.output_tokens = scaled(output);
    }
    row
}

/// The one that is not counted, of the other two.
pub(super) fn cached_and_fresh(
    prompt: Option<f64>,
    cached: Option<f64>,
    fresh: Option<f64>,
) -> (Option<f64>, Option<f64>) {
    let rest = |own: Option<f64>| Some((prompt? - own?).max(0.0));
    (cached.or_else(|| rest(fresh)), fresh.or_else(|| rest(cached)))
}

/// Two kinds of engines that serve the same model.
fn together(a: DemandWindow, b: DemandWindow) -> DemandWindow {
    let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    DemandWindow {
        basis: a.basis.max(b.basis),
        requests: sum(a.requests, b.requests),
        prompt_tokens: sum(a.prompt_tokens, b.prompt_tokens),
        cached_tokens: sum(a.cached_tokens, b.cached_tokens),
        fresh_tokens: sum(a.fresh_tokens, b.fresh_tokens),
        output_tokens: sum(a.output_tokens, b.output_tokens),
        errors: sum(a.errors, b.errors).or(a.errors).or(b.errors),
        queue_growth: sum(a.queue_growth, b.queue_growth),
        ..a
    }
}
