//! Who is let in, and who has to go.

use crate::limits::Limits;
use crate::request::Seen;

/// What a policy knows of the engine's room.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// Blocks that can be taken.
    pub free: u64,
    /// Prompt tokens of the newcomer that are cached.
    pub cached: u64,
    /// What the engine was started with.
    pub limits: &'a Limits,
}

/// What engines decide differently. It sees what an engine knows of a request, which is not how long its output will be.
pub trait Policy {
    /// Whether prompts have steps of their own, before anybody generates.
    const PROMPTS_ALONE: bool = false;
    /// Whether whoever is thrown out goes to the end of the line, not to where it came from.
    const TO_THE_END: bool = false;
    /// Whether the blocks of a whole prompt are taken with its first part.
    const WHOLE_ROOM: bool = false;
    /// Whether what was generated can be found again by whoever was thrown out.
    const OUTPUT_KEPT: bool = true;

    /// How many tokens of a prompt are read, of those left and those that the step has left.
    fn part(&self, tokens: u64, budget: u64, _limits: &Limits) -> u64 {
        tokens.min(budget)
    }

    /// Whether those that run matter to who is let in; where not, they are not shown.
    fn looks(&self) -> bool {
        true
    }

    /// Whether a newcomer whose first part finds its blocks is let in.
    fn admits(&mut self, newcomer: &Seen, running: &[Seen], room: &Room<'_>) -> bool;

    /// Which of the running is thrown out to make room; there is at least one.
    fn victim(&mut self, running: &[Seen]) -> usize;

    /// Somebody has been thrown out; who runs on.
    fn thrown_out(&mut self, _running: &[Seen]) {}

    /// A step has been decided on; whether anybody generates in it.
    fn stepped(&mut self, _generates: bool) {}

    /// Somebody has left; how many run.
    fn left(&mut self, _running: usize) {}
}

/// As vLLM's V1 scheduler (`v1/core/sched/scheduler.py`, 0.24 and 0.32): whoever finds blocks is let in; the last by rank and arrival goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vllm;

impl Policy for Vllm {
    fn looks(&self) -> bool {
        false
    }

    fn admits(&mut self, _: &Seen, _: &[Seen], _: &Room<'_>) -> bool {
        true
    }

    fn victim(&mut self, running: &[Seen]) -> usize {
        last(running)
    }
}

/// The last by rank and arrival.
fn last(running: &[Seen]) -> usize {
    let last = running.iter().enumerate().max_by_key(|(_, s)| (s.rank, s.serial));
    last.map_or(0, |(at, _)| at)
}

/// As SGLang's scheduler (`srt/managers/scheduler.py`, `schedule_policy.py`, 0.5.23): prompts before decodes; whoever comes must leave room for a share of
/// what the running may still write, and that share falls with every decode step; whoever has written least is thrown out.
#[derive(Clone, Copy, Debug)]
pub struct Sglang {
    first_share: f64,
    share: f64,
    /// Steps that must fit after somebody was thrown out.
    retract_steps: u64,
    /// Nobody is looked at until somebody leaves.
    closed: bool,
}

/// Of what a request may still write, no more than this is reserved (`CLIP_MAX_NEW_TOKENS`).
const CLIP: u64 = 4096;

impl Sglang {
    /// With its `schedule_conservativeness`, one unless changed, and the steps that must fit after a retraction, twenty unless changed.
    pub fn new(conservativeness: f64, retract_steps: u64) -> Self {
        let share = (0.7 * conservativeness).min(1.0);
        Self { first_share: share, share, retract_steps, closed: false }
    }

    /// What a sequence may still write.
    fn left_to_write(seen: &Seen) -> u64 {
        seen.limit.unwrap_or(CLIP).saturating_sub(seen.generated).min(CLIP)
    }
}

impl Default for Sglang {
    fn default() -> Self {
        Self::new(1.0, 20)
    }
}

impl Policy for Sglang {
    const PROMPTS_ALONE: bool = true;
    const TO_THE_END: bool = true;
    const OUTPUT_KEPT: bool = false;

    fn looks(&self) -> bool {
        !self.closed
    }

    fn admits(&mut self, newcomer: &Seen, running: &[Seen], room: &Room<'_>) -> bool {
        if self.closed {
            return false;
        }
        let page = room.limits.kv.block_tokens;
        let reserved: f64 = running
            .iter()
            .map(|own| {
                let left = Self::left_to_write(own) as f64;
                // Whoever reads in this step is to find room for all of it.
                if own.generates() { left * self.share } else { left + page as f64 }
            })
            .sum();
        let fresh = newcomer.prompt + newcomer.generated - room.cached;
        let asked = fresh + Self::left_to_write(newcomer) + page;
        let fits = (asked as f64) < (room.free * page) as f64 - reserved;
        // With nobody running there is nobody to wait for.
        self.closed = !fits && !running.is_empty();
        fits || running.is_empty()
    }

    fn victim(&mut self, running: &[Seen]) -> usize {
        let least = running
            .iter()
            .enumerate()
            .min_by_key(|(_, s)| (s.generated, std::cmp::Reverse(s.prompt)));
        least.map_or(0, |(at, _)| at)
    }

    fn thrown_out(&mut self, running: &[Seen]) {
        let written: u64 = running.iter().map(|s| s.generated).sum();
        let most: u64 = running.iter().map(|s| s.limit.unwrap_or(CLIP)).sum();
        let ahead = self.retract_steps * running.len() as u64;
        self.share = ((written + ahead) as f64 / (most + 1) as f64).min(1.0);
        self.closed = false;
    }

    fn stepped(&mut self, generates: bool) {
        if generates {
            let least = self.first_share * 0.14;
            self.share = (self.share - (self.first_share - least) / 600.0).max(least);
        }
    }

    fn left(&mut self, running: usize) {
        self.closed = false;
        if running == 0 {
            self.share = self.first_share;
        }
    }
}

/// As TensorRT-LLM's capacity scheduler (`batch_manager/capacityScheduler.cpp`, cf6abc45): without eviction, whoever is let in has room for all that it may
/// write; or to the utmost, where the last is paused when blocks run out. Blocks of a whole prompt are taken at once; parts of prompts are whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorRt {
    /// `GUARANTEED_NO_EVICT`, the default.
    #[default]
    NoEvict,
    /// `MAX_UTILIZATION`.
    MaxUtilization,
}

impl Policy for TensorRt {
    const WHOLE_ROOM: bool = true;

    fn part(&self, tokens: u64, budget: u64, limits: &Limits) -> u64 {
        if tokens <= budget { tokens } else { budget - budget % limits.kv.block_tokens }
    }

    fn admits(&mut self, newcomer: &Seen, running: &[Seen], room: &Room<'_>) -> bool {
        if *self == Self::MaxUtilization {
            return true;
        }
        let kv = room.limits.kv;
        // What does not fit at all is cut to what there is.
        let whole = |seen: &Seen| {
            let tokens = seen.prompt.saturating_add(seen.limit.unwrap_or(u64::MAX));
            (tokens.div_ceil(kv.block_tokens).saturating_mul(kv.full)).min(kv.blocks)
        };
        let promised: u64 = running.iter().map(|s| whole(s).saturating_sub(s.blocks)).sum();
        let cached = room.cached / kv.block_tokens * kv.full;
        whole(newcomer) - cached.min(whole(newcomer)) <= room.free.saturating_sub(promised)
    }

    fn victim(&mut self, running: &[Seen]) -> usize {
        last(running)
    }
}
