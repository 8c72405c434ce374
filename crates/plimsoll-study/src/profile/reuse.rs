//! What prompts share with earlier ones, with a cache of any size.

use plimsoll_stats::{quantile, stack_distances};

use super::result::{Keyed, PrefixReuse, ReuseLevels, SessionRates, SessionReuse};

/// Prompts in order of time, and the blocks they are made of.
#[derive(Clone, Debug)]
pub struct ReuseInput<'a> {
    /// Tokens of a block; a prompt's last block may be shorter.
    pub block_tokens: u64,
    /// In order of time.
    pub requests: Vec<ReuseRequest<'a>>,
    /// Sizes of caches, in blocks.
    pub capacities: Vec<u64>,
}

/// One prompt.
#[derive(Clone, Copy, Debug)]
pub struct ReuseRequest<'a> {
    /// Its tokens.
    pub prompt: u32,
    /// Its output, where known.
    pub output: Option<u32>,
    /// Names of its blocks from the first on.
    pub blocks: &'a [u64],
    /// The session within which names can be compared, and which begins with a cache of its own; none where all can.
    pub scope: Option<u64>,
}

/// Hits by the size of the cache: the last place is of any size.
struct Hits {
    blocks: Vec<u64>,
    leading: Vec<u64>,
    tokens: Vec<u64>,
    whole: Vec<u64>,
}

/// What caches of each size would have found.
pub fn prefix_reuse(input: &ReuseInput<'_>) -> PrefixReuse {
    let mut capacities = input.capacities.clone();
    capacities.sort_unstable();
    capacities.dedup();
    let sizes = capacities.len() + 1;
    let mut hits = Hits {
        blocks: vec![0; sizes],
        leading: vec![0; sizes],
        tokens: vec![0; sizes],
        whole: vec![0; sizes],
    };
    let mut order: Vec<usize> = (0..input.requests.len()).collect();
    // Stable: within a session requests stay in order of time.
    order.sort_by_key(|i| input.requests[*i].scope);
    let (mut unique, mut session_rates) = (0, Vec::new());
    for session in order.chunk_by(|a, b| input.requests[*a].scope == input.requests[*b].scope) {
        let requests: Vec<&ReuseRequest<'_>> =
            session.iter().map(|i| &input.requests[*i]).collect();
        let before = *hits.tokens.iter().last().unwrap_or(&0);
        unique += hits.add(&requests, &capacities, input.block_tokens);
        let found = hits.tokens.iter().last().unwrap_or(&0) - before;
        let asked: u64 = requests.iter().map(|request| u64::from(request.prompt)).sum();
        if asked > 0 {
            session_rates.push(found as f64 / asked as f64);
        }
    }
    let sum = |of: fn(&ReuseRequest<'_>) -> u64| input.requests.iter().map(of).sum::<u64>();
    let blocks = sum(|request| request.blocks.len() as u64);
    let prompts = sum(|request| u64::from(request.prompt));
    let rate = |found: u64, all: u64| if all > 0 { found as f64 / all as f64 } else { 0.0 };
    let level = |i: usize| ReuseLevels {
        stream_block_hit_rate: rate(hits.blocks[i], blocks),
        prefix_block_hit_rate: rate(hits.leading[i], blocks),
        prefix_token_hit_rate: rate(hits.tokens[i], prompts),
        requests_fully_cached: hits.whole[i],
    };
    let scoped = input.requests.iter().any(|request| request.scope.is_some());
    let outputs = input.requests.iter().map(|request| request.output.map(u64::from)).sum();
    let uncached = prompts - hits.tokens[sizes - 1].min(prompts);
    let sessions = scoped.then(|| sessions(&session_rates, prompts, uncached, outputs)).flatten();
    PrefixReuse {
        block_tokens: input.block_tokens,
        total_blocks: blocks,
        unique_blocks: unique,
        total_prompt_tokens: prompts,
        infinite: level(sizes - 1),
        lru: Keyed(capacities.iter().enumerate().map(|(i, c)| (c.to_string(), level(i))).collect()),
        sessions,
    }
}

impl Hits {
    /// Plays one cache through, and says how many different blocks it was asked for.
    fn add(
        &mut self,
        requests: &[&ReuseRequest<'_>],
        capacities: &[u64],
        block_tokens: u64,
    ) -> u64 {
        let accesses: Vec<u64> =
            requests.iter().flat_map(|request| request.blocks.iter().copied()).collect();
        let distances = stack_distances(&accesses);
        let unique = distances.iter().filter(|distance| distance.is_none()).count() as u64;
        // The smallest cache that an access with this distance hits.
        let smallest = |distance: u64| capacities.partition_point(|size| *size <= distance);
        let mut distances = distances.into_iter();
        for request in requests {
            // The leading run in a cache holds as far as no distance reaches its size.
            let mut farthest = Some(0);
            let mut left = u64::from(request.prompt);
            for distance in distances.by_ref().take(request.blocks.len()) {
                let distance = distance.map(u64::from);
                if let Some(distance) = distance {
                    self.blocks[smallest(distance)..].iter_mut().for_each(|hits| *hits += 1);
                }
                farthest = farthest.zip(distance).map(|(farthest, own)| farthest.max(own));
                let tokens = left.min(block_tokens);
                left -= tokens;
                if let Some(farthest) = farthest {
                    let from = smallest(farthest);
                    self.leading[from..].iter_mut().for_each(|hits| *hits += 1);
                    self.tokens[from..].iter_mut().for_each(|hits| *hits += tokens);
                }
            }
            if let Some(farthest) = farthest.filter(|_| !request.blocks.is_empty()) {
                self.whole[smallest(farthest)..].iter_mut().for_each(|hits| *hits += 1);
            }
        }
        unique
    }
}

fn sessions(
    rates: &[f64],
    prompts: u64,
    uncached: u64,
    outputs: Option<u64>,
) -> Option<SessionReuse> {
    let outputs = outputs.filter(|outputs| *outputs > 0).map(|outputs| outputs as f64);
    Some(SessionReuse {
        sessions: rates.len() as u64,
        session_token_hit_rate: SessionRates {
            mean: rates.iter().sum::<f64>() / rates.len() as f64,
            p5: quantile(rates, 0.05)?,
            p50: quantile(rates, 0.5)?,
        },
        uncached_prompt_tokens: uncached,
        prompt_to_output_ratio_raw: outputs.map(|outputs| prompts as f64 / outputs),
        prompt_to_output_ratio_uncached: outputs.map(|outputs| uncached as f64 / outputs),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A cache of single blocks that is played through, access by access.
    fn played(requests: &[Vec<u64>], size: usize, block_tokens: u64) -> (u64, u64, u64, u64) {
        let mut held: Vec<u64> = Vec::new();
        let (mut hits, mut leading, mut tokens, mut whole) = (0, 0, 0, 0);
        for blocks in requests {
            let (mut run, mut unbroken) = (0, true);
            for block in blocks {
                let place = held.iter().position(|own| own == block);
                hits += u64::from(place.is_some());
                unbroken &= place.is_some();
                run += u64::from(unbroken);
                if let Some(place) = place {
                    held.remove(place);
                }
                held.insert(0, *block);
                held.truncate(size);
            }
            leading += run;
            tokens += (run * block_tokens).min(prompt(blocks, block_tokens));
            whole += u64::from(!blocks.is_empty() && run == blocks.len() as u64);
        }
        (hits, leading, tokens, whole)
    }

    /// The last block is one token short.
    fn prompt(blocks: &[u64], block_tokens: u64) -> u64 {
        (blocks.len() as u64 * block_tokens).saturating_sub(1)
    }

    proptest! {
        /// One pass answers for every size what playing through each would.
        #[test]
        fn as_caches_would(requests in prop::collection::vec(prop::collection::vec(0u64..15, 0..8), 1..30)) {
            let capacities = vec![1, 2, 3, 5, 8, 13];
            let input = ReuseInput {
                block_tokens: 4,
                requests: requests
                    .iter()
                    .map(|blocks| ReuseRequest {
                        prompt: prompt(blocks, 4) as u32, output: Some(1), blocks, scope: None,
                    })
                    .collect(),
                capacities: capacities.clone(),
            };
            let found = prefix_reuse(&input);
            let check = |level: &ReuseLevels, size: usize| {
                let (hits, leading, tokens, whole) = played(&requests, size, 4);
                let blocks = found.total_blocks.max(1) as f64;
                let prompts = found.total_prompt_tokens.max(1) as f64;
                prop_assert_eq!(level.stream_block_hit_rate, hits as f64 / blocks);
                prop_assert_eq!(level.prefix_block_hit_rate, leading as f64 / blocks);
                prop_assert_eq!(level.prefix_token_hit_rate, tokens as f64 / prompts);
                prop_assert_eq!(level.requests_fully_cached, whole);
                Ok(())
            };
            for size in capacities {
                check(found.lru.get(&size.to_string()).expect("a size"), size as usize)?;
            }
            check(&found.infinite, 1000)?;
        }
    }

    /// What two sessions call alike is not the same, and each begins cold.
    #[test]
    fn sessions_share_nothing() {
        let blocks = [1, 2, 3];
        let request = |scope| ReuseRequest {
            prompt: 30,
            output: Some(10),
            blocks: &blocks,
            scope: Some(scope),
        };
        let input = ReuseInput {
            block_tokens: 10,
            requests: vec![request(1), request(2), request(1)],
            capacities: vec![2, 3],
        };
        let found = prefix_reuse(&input);
        assert_eq!((found.total_blocks, found.unique_blocks), (9, 6));
        assert_eq!(found.infinite.requests_fully_cached, 1);
        assert_eq!(found.lru.get("3").unwrap().prefix_block_hit_rate, 3.0 / 9.0);
        assert_eq!(found.lru.get("2").unwrap().prefix_block_hit_rate, 0.0);
        let sessions = found.sessions.unwrap();
        assert_eq!((sessions.sessions, sessions.uncached_prompt_tokens), (2, 60));
        assert_eq!(sessions.session_token_hit_rate.mean, 0.25);
        assert_eq!(sessions.prompt_to_output_ratio_raw, Some(3.0));
    }
}
