//! The fitted constants of the step-time model, each with its error and source.

use plimsoll_fleet::{Accelerator, Catalog, Engine, StepBand, StepConstant};
use plimsoll_perf::{Term, family};
use serde_json::{Value, json};

use crate::Topic;
use crate::calibration::amount;
use crate::text::aligned;

/// The constants that a view of the catalogue shows: of one family or engine, or of all of them.
pub(crate) enum View<'a> {
    /// A topic as a whole.
    All(Topic),
    /// One device.
    Accelerator(&'a Accelerator),
    /// One engine.
    Engine(&'a Engine),
}

impl View<'_> {
    fn shows(&self, own_family: &Option<String>, own_engine: &Option<String>) -> bool {
        match self {
            Self::All(Topic::Accelerators) => own_family.is_some(),
            Self::All(Topic::Engines) => own_engine.is_some() || own_family.is_none(),
            Self::All(_) => false,
            Self::Accelerator(a) => own_family.is_some() && own_family.as_deref() == family(a),
            Self::Engine(e) => own_engine.as_ref().is_some_and(|own| {
                let sync = e.async_scheduling == Some(false);
                own == &e.name || (sync && own.strip_suffix("-sync") == Some(&e.name))
            }),
        }
    }

    fn constants<'a>(&self, catalog: &'a Catalog) -> Vec<&'a StepConstant> {
        catalog.step_constants.iter().filter(|c| self.shows(&c.family, &c.engine)).collect()
    }

    fn bands<'a>(&self, catalog: &'a Catalog) -> Vec<&'a StepBand> {
        catalog.step_bands.iter().filter(|b| self.shows(&b.family, &b.engine)).collect()
    }

    /// Tables, or nothing where nothing is known.
    pub(crate) fn text(&self, catalog: &Catalog) -> String {
        let any = |key: &Option<String>| key.clone().unwrap_or_else(|| "any".to_owned());
        let rows: Vec<Vec<String>> = self
            .constants(catalog)
            .into_iter()
            .map(|c| {
                let unit = Term::named(&c.term).map_or("", Term::unit);
                let behind = match (c.kernels, c.cases) {
                    (0, 0) => "a guess".to_owned(),
                    (k, 0) => format!("{k} kernels"),
                    (0, n) => format!("{n} cases"),
                    (k, n) => format!("{k} kernels, {n} cases"),
                };
                vec![
                    c.term.clone(),
                    any(&c.family),
                    any(&c.engine),
                    any(&c.dtype),
                    amount(c.value, unit),
                    c.spread_pct.map_or_else(|| "-".to_owned(), |s| format!("±{s:.0}%")),
                    behind,
                    c.fact.as_of.clone(),
                ]
            })
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        let header =
            ["constant", "family", "engine", "dtype", "value", "spread", "rests on", "as of"];
        let mut out =
            String::from("\nStep-time constants (shares are of the datasheet's peak):\n\n");
        out.push_str(&aligned(&header, &rows, &[4, 5]));
        let rows: Vec<Vec<String>> = self
            .bands(catalog)
            .into_iter()
            .map(|b| {
                vec![
                    b.kind.clone(),
                    any(&b.family),
                    any(&b.engine),
                    format!("{:.0}%", b.median_abs_pct),
                    format!("{:.0}%", b.p90_abs_pct),
                    b.cases.to_string(),
                ]
            })
            .collect();
        if !rows.is_empty() {
            out.push_str("\nHow far gaps between tokens were off, each model and device left out of the fit in turn:\n\n");
            let header = ["models", "family", "engine", "median", "p90", "cases"];
            out.push_str(&aligned(&header, &rows, &[3, 4, 5]));
        }
        out
    }

    /// The same for scripts.
    pub(crate) fn json(&self, catalog: &Catalog) -> (Value, Value) {
        let constants = self.constants(catalog).into_iter().map(|c| {
            json!({
                "term": c.term, "family": c.family, "engine": c.engine, "dtype": c.dtype,
                "value": c.value, "unit": Term::named(&c.term).map(Term::unit), "prior": c.prior,
                "spread_pct": c.spread_pct, "kernels": c.kernels, "cases": c.cases,
                "informed": c.informed, "source": c.fact.source, "as_of": c.fact.as_of,
            })
        });
        let bands = self.bands(catalog).into_iter().map(|b| {
            json!({
                "kind": b.kind, "family": b.family, "engine": b.engine,
                "median_abs_pct": b.median_abs_pct, "p90_abs_pct": b.p90_abs_pct, "cases": b.cases,
            })
        });
        (constants.collect(), bands.collect())
    }
}
