//! What a token of context occupies, as engines lay it out.
//!
//! A model whose layers are all alike has one group: a block of it holds so many tokens of every layer. Where kinds
//! differ (full and sliding attention, recurrent state), vLLM puts layers of one kind into groups of equal size, padding the
//! last of each kind, and all groups draw equal blocks from one pool (`kv_cache_utils.py`, read at 2026-08-22).

use plimsoll_fleet::{Architecture, Mixer};
use plimsoll_units::{Bytes, Tokens};

use crate::placement::{MemoryError, Placement};

/// How the KV cache of one device is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvLayout {
    groups: Vec<Group>,
    block_tokens: u64,
    /// Bytes of one block of any group.
    block_bytes: u64,
    /// Sequences' recurrent state on one device, where it is not paged.
    state_bytes: u64,
}

/// Layers that are cached alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they keep.
    pub kind: Kind,
    /// Layers of it that hold something; the others pad the group.
    pub layers: u64,
}

/// What a layer keeps of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Every token.
    Full,
    /// The last so many tokens.
    Sliding(Tokens),
    /// A recurrent state in pages of the same pool, so many blocks a sequence.
    State(u64),
}

impl KvLayout {
    /// The layout of a model on the fullest device, with `element_bytes` for a cached number. Where `state_blocks` is given,
    /// recurrent state is kept in pages of the pool, as vLLM does: blocks are made so large that a layer's page of tokens holds
    /// a layer's state, and a sequence has that many in each of its groups. Otherwise the state lies outside the pool.
    pub fn of(
        model: &Architecture,
        placement: &Placement,
        element_bytes: u64,
        block_tokens: Tokens,
        state_blocks: Option<u64>,
    ) -> Result<Self, MemoryError> {
        placement.check(model)?;
        let layers = model.layers.len() as u64;
        let mut stages = vec![
            Stage::default();
            usize::try_from(placement.pipeline).unwrap_or(usize::MAX).min(4096)
        ];
        for (index, layer) in model.layers.iter().enumerate() {
            let stage = usize::try_from(placement.stage_of(index as u64, layers)).unwrap_or(0);
            let Some(stage) = stages.get_mut(stage) else { continue };
            stage.take(&layer.mixer, placement, element_bytes).ok_or(MemoryError::TooLarge)?;
        }
        // The stage with the most to keep decides how much fits.
        let stage = stages.into_iter().max_by_key(Stage::weight).unwrap_or_default();
        stage.layout(block_tokens.get().max(1), state_blocks).ok_or(MemoryError::TooLarge)
    }

    /// The groups that share the pool.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Tokens in a block.
    pub fn block_tokens(&self) -> Tokens {
        Tokens::new(self.block_tokens)
    }

    /// Bytes of one block of any group.
    pub fn block_bytes(&self) -> Bytes {
        Bytes::new(self.block_bytes)
    }

    /// Recurrent state of one sequence, which does not grow with its context.
    pub fn state_bytes(&self) -> Bytes {
        Bytes::new(self.state_bytes)
    }

    /// The blocks that fit, rounded down; none are needed where nothing is cached by token.
    pub fn blocks(&self, available: Bytes) -> u64 {
        available.get().checked_div(self.block_bytes).unwrap_or(0)
    }

    /// Blocks that one sequence of this context needs, over all groups. A sliding layer also holds the tokens of the
    /// step in flight, and one block more because a window need not begin at a block.
    pub fn blocks_of(&self, context: Tokens, step_tokens: Tokens) -> u64 {
        let by_token = |tokens: u64| tokens.div_ceil(self.block_tokens);
        self.groups
            .iter()
            .map(|group| match group.kind {
                Kind::Full => by_token(context.get()),
                Kind::Sliding(window) => {
                    let kept = window.get().saturating_sub(1).saturating_add(step_tokens.get());
                    by_token(kept.min(context.get())).saturating_add(1)
                }
                Kind::State(blocks) => blocks,
            })
            .fold(0, u64::saturating_add)
    }

    /// Sequences of this context that fit at once, state included; rounded down.
    pub fn sequences_that_fit(
        &self,
        available: Bytes,
        context: Tokens,
        step_tokens: Tokens,
    ) -> Option<u64> {
        let paged = self.blocks_of(context, step_tokens).checked_mul(self.block_bytes)?;
        available.get().checked_div(paged.checked_add(self.state_bytes)?)
    }
}

/// What one pipeline stage keeps.
#[derive(Clone, Default)]
struct Stage {
    full: Layers,
    /// By window; models have one or two.
    sliding: Vec<(u64, Layers)>,
    /// Recurrent layers; `token_bytes` is the state of one of them.
    recurrent: Layers,
}

/// Layers of one kind: how many, and bytes of a token in one of them.
#[derive(Clone, Copy, Default)]
struct Layers {
    count: u64,
    token_bytes: u64,
}

impl Layers {
    fn add(&mut self, token_bytes: u64) {
        self.count += 1;
        // Layers of one kind are alike in every model known; the largest is the safe one.
        self.token_bytes = self.token_bytes.max(token_bytes);
    }
}

impl Stage {
    fn take(&mut self, mixer: &Mixer, placement: &Placement, element: u64) -> Option<()> {
        match mixer {
            Mixer::Attention(a) => {
                let heads = a.kv_heads.div_ceil(placement.tensor);
                let bytes = heads
                    .checked_mul(a.head_dim.checked_add(a.v_head_dim)?)?
                    .checked_mul(element)?;
                match a.window {
                    None => self.full.add(bytes),
                    Some(window) => match self.sliding.iter_mut().find(|(w, _)| *w == window.get())
                    {
                        Some((_, layers)) => layers.add(bytes),
                        None => self
                            .sliding
                            .push((window.get(), Layers { count: 1, token_bytes: bytes })),
                    },
                }
            }
            Mixer::Latent(l) => {
                // One latent for all heads: not divided among devices, except along the context.
                let index = l.indexer.as_ref().map_or(0, |i| i.head_dim);
                let width = l.kv_rank.checked_add(l.rope_dim)?.checked_add(index)?;
                self.full.add(width.checked_mul(element)?.div_ceil(placement.context));
            }
            Mixer::Recurrent(r) => {
                // The state proper in 32 bits, the convolution's tail in 16, shared among devices.
                let bytes = r.state.checked_mul(4)?.checked_add(r.convolution.checked_mul(2)?)?;
                self.recurrent.add(bytes.div_ceil(placement.tensor));
            }
            Mixer::Cross(_) | Mixer::None => {}
        }
        Some(())
    }

    /// Bytes of a token over all layers, and of a state: what makes one stage fuller than another.
    fn weight(&self) -> u64 {
        let all =
            self.sliding.iter().map(|(_, layers)| layers).chain([&self.full, &self.recurrent]);
        all.fold(0, |sum, l| sum.saturating_add(l.count.saturating_mul(l.token_bytes)))
    }

    fn layout(self, block_tokens: u64, state_blocks: Option<u64>) -> Option<KvLayout> {
        let mut kinds: Vec<(Kind, u64)> = self
            .sliding
            .iter()
            .map(|(window, layers)| (Kind::Sliding(Tokens::new(*window)), layers.count))
            .collect();
        if self.full.count > 0 {
            kinds.insert(0, (Kind::Full, self.full.count));
        }
        let by_token = self
            .sliding
            .iter()
            .map(|(_, layers)| layers.token_bytes)
            .chain([self.full.token_bytes]);
        let token_bytes = by_token.max().unwrap_or(0);
        let (mut block_tokens, mut state_bytes) = (block_tokens, 0);
        match state_blocks.filter(|_| token_bytes > 0) {
            Some(blocks) if self.recurrent.count > 0 => {
                kinds.push((Kind::State(blocks), self.recurrent.count));
                // In multiples of 16 tokens, until a page of tokens holds a state.
                let least = self
                    .recurrent
                    .token_bytes
                    .div_ceil(token_bytes)
                    .checked_next_multiple_of(16)?;
                block_tokens = block_tokens.max(least);
            }
            _ => state_bytes = self.recurrent.count.checked_mul(self.recurrent.token_bytes)?,
        }
        let counts: Vec<u64> = kinds.iter().map(|(_, count)| *count).collect();
        let size = group_size(&counts);
        let mut groups = Vec::new();
        for (kind, mut left) in kinds {
            while left > 0 {
                groups.push(Group { kind, layers: left.min(size) });
                left = left.saturating_sub(size);
            }
        }
        let block_bytes = size.checked_mul(block_tokens)?.checked_mul(token_bytes)?;
        Some(KvLayout { groups, block_tokens, block_bytes, state_bytes })
    }
}

/// Layers in a group: all of them where there is one kind; otherwise as many as the rarer kind has, or the more
/// frequent one where the two are within half of each other, which wastes less than a second group would.
fn group_size(counts: &[u64]) -> u64 {
    let (least, most) =
        (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    // Integers: most < 1.5 * least.
    if most.saturating_mul(2) < least.saturating_mul(3) { most } else { least }
}
