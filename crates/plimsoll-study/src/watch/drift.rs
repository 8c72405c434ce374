//! What a plan took for granted, and what is.

use super::advice::Drift;
use super::recent::Seen;
use super::{CALLS_LEAST, Watcher};
use crate::plan::PoolLine;

/// Lengths that are further from the plan than this share, and shares by so much, are drift. Below it, the spread of an hour of a mixed load is as wide.
const LENGTH_DRIFT: f64 = 0.2;
const SHARE_DRIFT: f64 = 0.1;

impl Watcher {
    pub(super) fn drift(&self, seen: &Seen, line: &PoolLine) -> Vec<Drift> {
        let own = &seen.own;
        let (mut calls, mut prompt, mut fresh, mut output) = (0.0, 0.0, 0.0, 0.0);
        for class in &line.classes {
            let per_s = class.calls_per_s * class.share.unwrap_or(1.0);
            calls += per_s;
            prompt += per_s * class.prompt_tokens;
            fresh += per_s * class.fresh_tokens;
            output += per_s * class.output_tokens;
        }
        let mut all = Vec::new();
        if calls <= 0.0 || prompt <= 0.0 {
            return all;
        }
        let now = own.requests.filter(|requests| *requests >= CALLS_LEAST);
        let mut length = |assumption, planned: f64, tokens: Option<f64>| {
            if let (Some(tokens), Some(requests)) = (tokens, now) {
                let now = tokens / requests;
                let beyond = (now / planned - 1.0).abs() > LENGTH_DRIFT;
                all.push(Drift { assumption, unit: "tokens/call", planned, now, beyond });
            }
        };
        length("prompt_length", prompt / calls, own.prompt_tokens);
        length("output_length", output / calls, own.output_tokens);
        if let (Some(tokens), Some(computed)) = (own.prompt_tokens, own.fresh_tokens)
            && tokens > 0.0
            && now.is_some()
        {
            let (planned, now) = (1.0 - fresh / prompt, (1.0 - computed / tokens).clamp(0.0, 1.0));
            let beyond = (now - planned).abs() > SHARE_DRIFT;
            all.push(Drift { assumption: "cache_hit", unit: "share", planned, now, beyond });
        }
        all.extend(self.mix(own.pool.as_str(), calls));
        all
    }

    /// The share of all calls that come to a pool, where all pools say how many do.
    fn mix(&self, pool: &str, calls: f64) -> Option<Drift> {
        if self.plan.pools.len() < 2 {
            return None;
        }
        let mut planned_all = 0.0;
        for line in &self.plan.lines {
            planned_all += line
                .classes
                .iter()
                .map(|class| class.calls_per_s * class.share.unwrap_or(1.0))
                .sum::<f64>();
        }
        let mut now_all = 0.0;
        let mut now_own = None;
        for (own, recent) in self.plan.pools.iter().zip(&self.pools) {
            let requests = recent.last.as_ref()?.own.requests?;
            now_all += requests;
            if own.name == pool {
                now_own = Some(requests);
            }
        }
        if now_all < CALLS_LEAST || planned_all <= 0.0 {
            return None;
        }
        let (planned, now) = (calls / planned_all, now_own? / now_all);
        let beyond = (now - planned).abs() > SHARE_DRIFT;
        Some(Drift { assumption: "mix", unit: "share of calls", planned, now, beyond })
    }
}
