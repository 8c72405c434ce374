//! What prompts share, where the ledger names their blocks.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_study::{PrefixReuse, ReuseInput, ReuseRequest, prefix_reuse};

use super::columns::{Codes, Lists, Numbers, Stamps};
use super::survey::{Demand, Survey};
use super::units::{self, Unit, in_order};
use super::{ScanInput, damaged, task_hash};
use crate::column::Columns;
use crate::error::LedgerError;
use crate::store::Ledger;

/// Names of blocks that are held at once: 1.6 GB of them.
const BLOCKS_MAX: usize = 200_000_000;

/// Prompts with named blocks, of one stretch.
#[derive(Default)]
struct Prompts {
    prompts: Vec<Prompt>,
    blocks: Vec<u64>,
}

struct Prompt {
    at: Option<i64>,
    prompt: u32,
    output: Option<u32>,
    scope: Option<u64>,
    /// The source, hashed, and the size of its blocks: names of different ones cannot be compared.
    kind: (u64, u32),
    /// Where its blocks are.
    blocks: std::ops::Range<usize>,
}

pub(super) fn reuse(
    ledger: &Ledger,
    survey: &Survey,
    input: &ScanInput,
) -> Result<(Option<PrefixReuse>, Vec<String>), LedgerError> {
    let mut units = units::units(ledger, &survey.clock)?;
    for unit in &mut units {
        let mut with_blocks = Vec::new();
        for (part, group) in &unit.groups {
            let path = ledger.path(&ledger.manifest().requests[*part].file);
            if units::says(units::metadata(&path)?.row_group(*group), "blocks") {
                with_blocks.push((*part, *group));
            }
        }
        unit.groups = with_blocks;
    }
    units.retain(|unit| !unit.groups.is_empty());
    let mut all = Prompts::default();
    let mut left_out = 0;
    let look = |unit: &Unit| look(ledger, unit, survey);
    in_order(&units, input.threads, look, |more: Prompts| {
        if all.blocks.len() + more.blocks.len() > BLOCKS_MAX {
            left_out += more.prompts.len();
        } else {
            all.append(more);
        }
    })?;
    if all.prompts.is_empty() {
        return Ok((None, Vec::new()));
    }
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!(
            "prefix reuse is of the first {} prompts: {left_out} more have too many blocks to be held",
            all.prompts.len()
        ));
    }
    let mut kinds: BTreeMap<(u64, u32), usize> = BTreeMap::new();
    for prompt in &all.prompts {
        *kinds.entry(prompt.kind).or_default() += 1;
    }
    let Some(kind) = kinds.iter().max_by_key(|(_, rows)| **rows).map(|(kind, _)| *kind) else {
        return Ok((None, notes));
    };
    let others = all.prompts.len() - kinds[&kind];
    if others > 0 {
        notes.push(format!(
            "prefix reuse is of the source with the most prompts: blocks of {others} others cannot be compared with its own"
        ));
    }
    let mut own: Vec<&Prompt> = all.prompts.iter().filter(|prompt| prompt.kind == kind).collect();
    // Stable: prompts with one stamp stay in the order of their log.
    own.sort_by_key(|prompt| prompt.at);
    let requests = own
        .iter()
        .map(|prompt| ReuseRequest {
            prompt: prompt.prompt,
            output: prompt.output,
            blocks: &all.blocks[prompt.blocks.clone()],
            scope: prompt.scope,
        })
        .collect();
    let block_tokens = u64::from(kind.1);
    let capacities = input.cache_blocks.clone();
    Ok((Some(prefix_reuse(&ReuseInput { block_tokens, requests, capacities })), notes))
}

fn look(ledger: &Ledger, unit: &Unit, survey: &Survey) -> Result<Prompts, LedgerError> {
    let mut wanted: BTreeSet<&str> = [
        "ts_arrival",
        "prompt_tokens",
        "output_tokens",
        "blocks",
        "block_tokens",
        "block_scope",
        "session_id",
        "source",
        "response_cached",
        "sample_weight",
    ]
    .into();
    wanted.extend(survey.only.iter().map(|(column, _)| column.as_str()));
    let mut prompts = Prompts::default();
    unit.read(ledger, &wanted, |path, batch| {
        prompts.batch(batch, survey).map_err(|problem| damaged(path, problem))
    })?;
    Ok(prompts)
}

impl Prompts {
    fn batch(&mut self, batch: &Columns, survey: &Survey) -> Result<(), String> {
        let blocks = Lists::of(batch, "blocks");
        let (keep, demand) = (survey.kept(batch)?, Demand::of(batch)?);
        let at = Stamps::of(batch, "ts_arrival")?;
        let (prompt, output) =
            (Numbers::of(batch, "prompt_tokens")?, Numbers::of(batch, "output_tokens")?);
        let size = Numbers::of(batch, "block_tokens")?;
        let local = Codes::of(batch, "block_scope", |scope| scope == "session")?;
        let session = Codes::of(batch, "session_id", task_hash)?;
        let source = Codes::of(batch, "source", task_hash)?;
        for i in (0..batch.rows).filter(|i| keep.has(*i) && demand.has(*i)) {
            let Some(names) = blocks.get(i) else { continue };
            let (Some(tokens), Some(size)) = (prompt.get(i), size.get(i)) else { continue };
            let begin = self.blocks.len();
            self.blocks.extend(names);
            self.prompts.push(Prompt {
                at: at.get(i),
                prompt: tokens,
                output: output.get(i),
                scope: if local.get(i) == Some(true) {
                    Some(session.get(i).unwrap_or(0))
                } else {
                    None
                },
                kind: (source.get(i).unwrap_or(0), size),
                blocks: begin..self.blocks.len(),
            });
        }
        Ok(())
    }

    fn append(&mut self, mut more: Self) {
        let base = self.blocks.len();
        self.blocks.append(&mut more.blocks);
        let moved = more.prompts.into_iter().map(|mut prompt| {
            prompt.blocks = prompt.blocks.start + base..prompt.blocks.end + base;
            prompt
        });
        self.prompts.extend(moved);
    }
}
