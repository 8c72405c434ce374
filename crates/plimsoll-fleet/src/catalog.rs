//! Everything known by name.

use crate::architecture::Architecture;
use crate::engine::{Engine, Version};
use crate::fact::Fact;
use crate::hardware::{Accelerator, Instance};
use crate::price::{NodePrice, TokenPrice};
use crate::step_time::{StepBand, StepConstant};

/// A model by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Lower-case, such as `llama-3.1-8b`.
    pub name: String,
    /// As its makers write it.
    pub title: String,
    /// Hugging Face ids and other names, matched in any case.
    pub aliases: Vec<String>,
    /// Its shape.
    pub architecture: Architecture,
    /// The parameter count its makers published.
    pub parameters_published: Option<u64>,
    /// Where that was published.
    pub parameters_source: Option<String>,
    /// Which parts the published count covers, where it is not the text decoder alone.
    pub parameters_note: Option<String>,
    /// Whether every number of the shape was read in a source.
    pub verified: bool,
    /// Source and date.
    pub fact: Fact,
}

/// What a name was looked up as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A model.
    Model,
    /// An accelerator.
    Accelerator,
    /// An engine.
    Engine,
    /// An instance.
    Instance,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Accelerator => "accelerator",
            Self::Engine => "engine",
            Self::Instance => "instance",
        }
    }

    /// The word that follows `plimsoll catalog`.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Accelerator => "accelerators",
            Self::Engine => "engines",
            Self::Instance => "prices",
        }
    }
}

/// A name nobody knows, with the ones that come nearest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {} is called `{name}`", kind.noun())]
pub struct Unknown {
    /// As what it was looked up.
    pub kind: Kind,
    /// As it was written.
    pub name: String,
    /// The nearest names, best first.
    pub nearest: Vec<String>,
}

impl Unknown {
    /// What to do about it.
    pub fn help(&self) -> String {
        let list = format!("`plimsoll catalog {}` lists them all", self.kind.plural());
        match self.nearest.as_slice() {
            [] => list,
            names => {
                let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
                format!("did you mean {}? {list}", names.join(" or "))
            }
        }
    }
}

/// What is known of models, hardware, engines and prices.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    /// In the order they were read.
    pub models: Vec<Model>,
    /// In the order they were read.
    pub accelerators: Vec<Accelerator>,
    /// In the order they were read.
    pub instances: Vec<Instance>,
    /// Rows of the same engine need not be in order.
    pub engines: Vec<Engine>,
    /// In the order they were read.
    pub node_prices: Vec<NodePrice>,
    /// In the order they were read.
    pub token_prices: Vec<TokenPrice>,
    /// In the order they were read.
    pub step_constants: Vec<StepConstant>,
    /// In the order they were read.
    pub step_bands: Vec<StepBand>,
}

impl Catalog {
    /// One that knows nothing.
    pub const fn empty() -> Self {
        Self {
            models: Vec::new(),
            accelerators: Vec::new(),
            instances: Vec::new(),
            engines: Vec::new(),
            node_prices: Vec::new(),
            token_prices: Vec::new(),
            step_constants: Vec::new(),
            step_bands: Vec::new(),
        }
    }

    /// The model of this name or alias.
    pub fn model(&self, name: &str) -> Result<&Model, Unknown> {
        find(Kind::Model, name, &self.models, |m| (&m.name, &m.aliases))
    }

    /// The accelerator of this name or alias.
    pub fn accelerator(&self, name: &str) -> Result<&Accelerator, Unknown> {
        find(Kind::Accelerator, name, &self.accelerators, |a| (&a.name, &a.aliases))
    }

    /// The instance of this name.
    pub fn instance(&self, name: &str) -> Result<&Instance, Unknown> {
        find(Kind::Instance, name, &self.instances, |i| (&i.name, &[]))
    }

    /// The engine's row for a version, written `vllm@0.24`; the newest row without one.
    pub fn engine(&self, name: &str) -> Result<&Engine, Unknown> {
        let (bare, version) = name.split_once('@').map_or((name, None), |(n, v)| (n, Some(v)));
        let unknown = || {
            let mut known: Vec<&str> = self.engines.iter().map(|e| e.name.as_str()).collect();
            known.dedup();
            Unknown { kind: Kind::Engine, name: name.to_owned(), nearest: nearest(bare, known) }
        };
        let version: Option<Version> = match version {
            Some(text) => Some(text.parse().map_err(|_| unknown())?),
            None => None,
        };
        self.engines
            .iter()
            .filter(|e| e.name.eq_ignore_ascii_case(bare) && version.is_none_or(|v| e.since <= v))
            .max_by_key(|e| e.since)
            .ok_or_else(|| {
                match self.engines.iter().filter(|e| e.name == bare).map(|e| e.since).min() {
                    Some(oldest) => {
                        let nearest = vec![format!("{bare}@{oldest}")];
                        Unknown { kind: Kind::Engine, name: name.to_owned(), nearest }
                    }
                    None => unknown(),
                }
            })
    }

    /// Prices of nodes that hold this accelerator.
    pub fn prices_of<'a>(
        &'a self,
        accelerator: &'a str,
    ) -> impl Iterator<Item = (&'a Instance, &'a NodePrice)> {
        self.node_prices.iter().filter_map(move |price| {
            let instance = self.instances.iter().find(|i| i.name == price.instance)?;
            (instance.accelerator == accelerator).then_some((instance, price))
        })
    }

    /// Takes in another catalogue; its entries replace those of the same name.
    pub fn extend(&mut self, other: Self) {
        merge(&mut self.models, other.models, |a, b| a.name == b.name);
        merge(&mut self.accelerators, other.accelerators, |a, b| a.name == b.name);
        merge(&mut self.instances, other.instances, |a, b| a.name == b.name);
        merge(&mut self.engines, other.engines, |a, b| a.name == b.name && a.since == b.since);
        merge(&mut self.node_prices, other.node_prices, |a, b| {
            a.instance == b.instance && a.region == b.region
        });
        merge(&mut self.token_prices, other.token_prices, |a, b| {
            a.provider == b.provider && a.model == b.model
        });
        merge(&mut self.step_constants, other.step_constants, |a, b| {
            (&a.term, &a.family, &a.engine, &a.dtype) == (&b.term, &b.family, &b.engine, &b.dtype)
        });
        merge(&mut self.step_bands, other.step_bands, |a, b| {
            (&a.kind, &a.family, &a.engine) == (&b.kind, &b.family, &b.engine)
        });
    }
}

fn merge<T>(into: &mut Vec<T>, from: Vec<T>, same: impl Fn(&T, &T) -> bool) {
    for new in from {
        match into.iter_mut().find(|old| same(old, &new)) {
            Some(old) => *old = new,
            None => into.push(new),
        }
    }
}

/// By exact name, then by alias, in any case. Later entries win: the user's catalogue comes last.
fn find<'a, T>(
    kind: Kind,
    name: &str,
    items: &'a [T],
    names: impl Fn(&'a T) -> (&'a String, &'a [String]),
) -> Result<&'a T, Unknown> {
    let same = |known: &str| known.eq_ignore_ascii_case(name.trim());
    let by_name = items.iter().rev().find(|item| same(names(item).0));
    let by_alias = || items.iter().rev().find(|item| names(item).1.iter().any(|alias| same(alias)));
    by_name.or_else(by_alias).ok_or_else(|| {
        let known = items.iter().flat_map(|item| {
            let (name, aliases) = names(item);
            std::iter::once(name).chain(aliases).map(move |known| (known.as_str(), name.as_str()))
        });
        Unknown { kind, name: name.to_owned(), nearest: nearest_of(name, known) }
    })
}

/// At most three of the known names that could be meant, best first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    nearest_of(name, known.into_iter().map(|k| (k, k)))
}

/// The same where each known name stands for another: only those are returned, each once.
fn nearest_of<'a>(name: &str, known: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    // Long rubbish resembles nothing, and comparing it would take quadratic time.
    if name.len() > 80 {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let mut scored: Vec<(usize, usize, &str)> = known
        .map(|(k, meant)| {
            let lower = k.to_lowercase();
            let distance = strsim::damerau_levenshtein(&name, &lower);
            // A part of a name counts as near: `70b` in `llama-3.1-70b`.
            let part = name.len() >= 3 && (lower.contains(&name) || name.contains(&lower));
            (if part { distance.min(2) } else { distance }, k.len(), meant)
        })
        .filter(|(distance, length, _)| *distance <= 1 + name.len().max(*length) / 4)
        .collect();
    scored.sort();
    let mut found: Vec<String> = Vec::new();
    for (_, _, meant) in scored {
        if found.len() < 3 && !found.iter().any(|f| f == meant) {
            found.push(meant.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "H100-SXM"];
        assert_eq!(nearest("lama-3.1-8b", known)[0], "llama-3.1-8b");
        assert_eq!(nearest("llama-3.1-80b", known), ["llama-3.1-8b", "llama-3.1-70b"]);
        assert_eq!(nearest("70b", known), ["llama-3.1-70b"]);
        assert_eq!(nearest("h100", known), ["H100-SXM"]);
        assert!(nearest("completely-else", known).is_empty());
        assert!(nearest(&"x".repeat(1_000_000), known).is_empty());
    }
}
