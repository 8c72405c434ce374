//! The table of constants, and which rows a pool uses.

use plimsoll_fleet::{Catalog, StepBand};

use crate::rates::{Datasheet, Rates, Term};

/// One constant and what it is for. A key that is absent stands for all.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// What it multiplies.
    pub term: Term,
    /// The device family.
    pub family: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// The number format: of weights, or of cached numbers for [`Term::KvBytes`].
    pub dtype: Option<String>,
    /// Its value.
    pub value: f64,
}

/// The catalogue's constants.
pub fn constants(catalog: &Catalog) -> Vec<Constant> {
    let rows = catalog.step_constants.iter().filter_map(|row| {
        Some(Constant {
            term: Term::named(&row.term)?,
            family: row.family.clone(),
            engine: row.engine.clone(),
            dtype: row.dtype.clone(),
            value: row.value,
        })
    });
    rows.collect()
}

/// The band that fits best: of the same kind, with the most keys that match.
pub fn band<'a>(
    bands: &'a [StepBand],
    kind: &str,
    family: Option<&str>,
    engine: &str,
) -> Option<&'a StepBand> {
    let score = |band: &StepBand| {
        let family = match &band.family {
            None => 0,
            Some(own) => (Some(own.as_str()) == family).then_some(2)?,
        };
        let engine = match &band.engine {
            None => 0,
            Some(own) => (own == engine).then_some(1)?,
        };
        (band.kind == kind).then_some(family + engine)
    };
    bands.iter().filter_map(|b| Some((score(b)?, b))).max_by_key(|(s, _)| *s).map(|(_, b)| b)
}

/// What a pool is, as far as constants are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The device family, where it is known.
    pub family: Option<&'a str>,
    /// The engine; with `-sync` where it schedules between steps rather than during them.
    pub engine: &'a str,
    /// How weights are stored.
    pub dtype: &'a str,
    /// How cached numbers are stored.
    pub kv_dtype: &'a str,
}

/// The rows that a pool uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// By term.
    pub terms: [usize; Term::ALL.len()],
    /// Of the 16-bit matrices.
    pub plain: [usize; 2],
}

/// No row says how fast this is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no constant says `{}` of {} with {} on {}", .term, .dtype, .engine, .family)]
pub struct NoConstant {
    term: &'static str,
    family: String,
    engine: String,
    dtype: String,
}

/// The rows for a pool: of each term the one with the most keys that match.
pub fn select(rows: &[Constant], key: &Key<'_>) -> Result<Selection, NoConstant> {
    let find = |term: Term, dtype: &str| {
        let matches = |own: &Option<String>, asked: Option<&str>| match own {
            None => Some(0),
            Some(own) => (Some(own.as_str()) == asked).then_some(1),
        };
        let engine = |own: &Option<String>| match own {
            None => Some(0),
            Some(own) if own == key.engine => Some(2),
            // An engine that schedules between steps is otherwise the same engine.
            Some(own) => (Some(own.as_str()) == key.engine.strip_suffix("-sync")).then_some(1),
        };
        let score = |row: &Constant| {
            Some(
                matches(&row.family, key.family)? * 6
                    + matches(&row.dtype, Some(dtype))? * 3
                    + engine(&row.engine)?,
            )
        };
        let of_term = rows.iter().enumerate().filter(|(_, row)| row.term == term);
        let scored = of_term.filter_map(|(i, row)| Some((score(row)?, std::cmp::Reverse(i))));
        scored.max().map(|(_, std::cmp::Reverse(i))| i).ok_or_else(|| NoConstant {
            term: term.name(),
            family: key.family.unwrap_or("an unknown family").to_owned(),
            engine: key.engine.to_owned(),
            dtype: dtype.to_owned(),
        })
    };
    let mut terms = [0; Term::ALL.len()];
    for term in Term::ALL {
        let dtype = if term == Term::KvBytes { key.kv_dtype } else { key.dtype };
        terms[term as usize] = find(term, dtype)?;
    }
    let plain = [find(Term::GemmFlops, "bf16")?, find(Term::GemmBytes, "bf16")?];
    Ok(Selection { terms, plain })
}

impl Selection {
    /// The constants of a pool, given the values of all rows.
    pub fn rates(&self, values: &[f64], sheet: Datasheet) -> Rates {
        let mut terms = [0.0; Term::ALL.len()];
        for (slot, row) in terms.iter_mut().zip(self.terms) {
            *slot = values[row];
        }
        Rates { sheet, terms, plain: self.plain.map(|row| values[row]) }
    }
}
