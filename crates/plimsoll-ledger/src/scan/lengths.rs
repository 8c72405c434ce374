//! Lengths that occur together, class by class; and requests one by one, as a load test asks for them.

use std::collections::BTreeSet;

use plimsoll_study::JointLengths;

use super::columns::{Lists, Numbers, Reals, Stamps};
use super::survey::{self, Demand, Survey};
use super::units::{Unit, in_order, units};
use super::{ScanInput, damaged};
use crate::column::Columns;
use crate::error::LedgerError;
use crate::store::Ledger;

/// A request that a load test could ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Seconds since the first arrival; none where rows have no common clock.
    pub at_s: Option<f64>,
    /// Prompt tokens, cached ones included.
    pub prompt: Option<u32>,
    /// Output tokens.
    pub output: Option<u32>,
    /// Prompt tokens that were found in a cache.
    pub cached: Option<u32>,
    /// Requests it stands for: 1 where all were logged.
    pub weight: f64,
    /// What the prompt is made of, and how many tokens a block has.
    pub blocks: Option<(Vec<u64>, u32)>,
}

impl Ledger {
    /// Prompt, output and cached tokens counted together, for each class by name.
    pub fn joint_lengths(
        &self,
        input: &ScanInput,
    ) -> Result<Vec<(String, JointLengths)>, LedgerError> {
        let survey = survey::survey(self, input)?;
        let mut classes = vec![JointLengths::default(); survey.classes.len()];
        let mut wanted: BTreeSet<&str> = [
            "prompt_tokens",
            "output_tokens",
            "cache_read_tokens",
            "sample_weight",
            "response_cached",
        ]
        .into();
        wanted.extend(survey.columns.iter().map(String::as_str));
        wanted.extend(survey.only.iter().map(|(column, _)| column.as_str()));
        let work = |unit: &Unit| {
            let mut own = vec![JointLengths::default(); survey.classes.len()];
            unit.read(self, &wanted, |path, batch| {
                count(batch, &survey, &mut own).map_err(|problem| damaged(path, problem))
            })?;
            Ok(own)
        };
        in_order(&units(self, &survey.clock)?, input.threads, work, |own: Vec<JointLengths>| {
            classes.iter_mut().zip(&own).for_each(|(class, more)| class.merge(more));
        })?;
        Ok(survey.classes.into_iter().zip(classes).collect())
    }

    /// Every request, in order of time; those of the same moment in the order of their log.
    pub fn asked(&self, input: &ScanInput) -> Result<Vec<Asked>, LedgerError> {
        let survey = survey::survey(self, input)?;
        let mut wanted: BTreeSet<&str> = [
            "ts_arrival",
            "clock",
            "prompt_tokens",
            "output_tokens",
            "cache_read_tokens",
            "response_cached",
            "sample_weight",
            "blocks",
            "block_tokens",
        ]
        .into();
        wanted.extend(survey.only.iter().map(|(column, _)| column.as_str()));
        let mut asked = Vec::new();
        let work = |unit: &Unit| {
            let mut own = Vec::new();
            unit.read(self, &wanted, |path, batch| {
                ask(batch, &survey, &mut own).map_err(|problem| damaged(path, problem))
            })?;
            own.sort_by(|a: &Asked, b| a.at_s.unwrap_or(0.0).total_cmp(&b.at_s.unwrap_or(0.0)));
            Ok(own)
        };
        let units = units(self, &survey.clock)?;
        in_order(&units, input.threads, work, |own: Vec<Asked>| asked.extend(own))?;
        Ok(asked)
    }
}

fn count(batch: &Columns, survey: &Survey, own: &mut [JointLengths]) -> Result<(), String> {
    let (keep, class) = (survey.kept(batch)?, survey.class_of(batch)?);
    let number = |name: &str| Numbers::of(batch, name);
    let (prompt, output, cached) =
        (number("prompt_tokens")?, number("output_tokens")?, number("cache_read_tokens")?);
    let weight = Reals::of(batch, "sample_weight")?;
    let demand = Demand::of(batch)?;
    for i in (0..batch.rows).filter(|i| keep.has(*i) && demand.has(*i)) {
        if let (Some(prompt), Some(output)) = (prompt.get(i), output.get(i)) {
            let weight = weight.get(i).unwrap_or(1.0);
            own[class.get(i) as usize].push(prompt, cached.get(i), output, weight);
        }
    }
    Ok(())
}

fn ask(batch: &Columns, survey: &Survey, own: &mut Vec<Asked>) -> Result<(), String> {
    let (keep, on_clock) = (survey.kept(batch)?, survey::on_clock(batch, &survey.clock)?);
    let at = Stamps::of(batch, "ts_arrival")?;
    let number = |name: &str| Numbers::of(batch, name);
    let (prompt, output, cached) =
        (number("prompt_tokens")?, number("output_tokens")?, number("cache_read_tokens")?);
    let size = number("block_tokens")?;
    let weight = Reals::of(batch, "sample_weight")?;
    let demand = Demand::of(batch)?;
    let blocks = Lists::of(batch, "blocks");
    for i in (0..batch.rows).filter(|i| keep.has(*i) && demand.has(*i)) {
        let since = |at: i64| Some(at.checked_sub(survey.first_ns?)? as f64 / 1e9);
        own.push(Asked {
            at_s: at.get(i).filter(|_| on_clock.has(i)).and_then(since),
            prompt: prompt.get(i),
            output: output.get(i),
            cached: cached.get(i),
            weight: weight.get(i).unwrap_or(1.0),
            blocks: blocks.get(i).cloned().zip(size.get(i)),
        });
    }
    Ok(())
}
