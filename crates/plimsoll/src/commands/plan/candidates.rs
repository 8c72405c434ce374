//! Other ways to run a pool: those that its `candidates` allow, and a few that are told and not chosen.

use std::path::Path;

use plimsoll_perf::{Constant, constants, context_bytes};
use plimsoll_scenario::sections::{Dtype, Pool, Role};
use plimsoll_scenario::{Loaded, hand_over, pool_fit};
use plimsoll_sim::HandOver;
use plimsoll_study::{
    Candidate, Parallelism, PlaceFacts, PoolFacts, ProposedPool, SimulatedPool, fit,
};

use super::{facts_of, places_of};
use crate::commands::fleet;
use crate::commands::pool::help;
use crate::failure::Failure;

/// Another way to run a pool.
pub(super) struct Other {
    pool: Pool,
    what: String,
    may_choose: bool,
    caveat: Option<String>,
}

/// Ways that are tried at most, of a pool.
const MOST: usize = 32;
/// Ways that are only told, of a pool.
const TOLD: usize = 4;
/// What is said of weights in another format.
const CAVEAT: &str = "whether answers are as good is not judged here";

/// Other ways to run a pool.
pub(super) fn candidates_of(loaded: &Loaded, pool: &Pool) -> Vec<Other> {
    match &pool.candidates {
        Some(_) => allowed(pool),
        None => told(loaded, pool),
    }
}

/// All combinations of what is allowed, but for the one that is written.
fn allowed(pool: &Pool) -> Vec<Other> {
    let Some(own) = &pool.candidates else { return Vec::new() };
    let mut all = vec![(pool.clone(), Vec::<String>::new())];
    fn each<T: Clone>(
        all: &mut Vec<(Pool, Vec<String>)>,
        values: &[T],
        set: impl Fn(&mut Pool, &T) -> Option<String>,
    ) {
        let before = all.clone();
        for value in values {
            for (pool, said) in &before {
                let (mut pool, mut said) = (pool.clone(), said.clone());
                if let Some(what) = set(&mut pool, value) {
                    said.push(what);
                    all.push((pool, said));
                }
            }
        }
    }
    each(&mut all, &own.accelerators, |pool, value| {
        let differs = pool.accelerator.as_str() != value.as_str();
        (pool.accelerator, pool.instance) = (value.clone(), None);
        differs.then(|| format!("accelerator = \"{}\"", value.as_str()))
    });
    each(&mut all, &own.tensor_parallel, |pool, value| {
        let differs = pool.tensor_parallel.get() != value.get();
        pool.tensor_parallel = *value;
        differs.then(|| format!("tensor_parallel = {}", value.get()))
    });
    each(&mut all, &own.weights, |pool, value| {
        let differs = pool.weights != Some(*value);
        pool.weights = Some(*value);
        differs.then(|| format!("weights = \"{value}\""))
    });
    each(&mut all, &own.max_num_seqs, |pool, value| {
        let differs = pool.max_num_seqs.map(|n| n.get()) != Some(value.get());
        pool.max_num_seqs = Some(*value);
        differs.then(|| format!("max_num_seqs = {}", value.get()))
    });
    each(&mut all, &own.max_num_batched_tokens, |pool, value| {
        let differs = pool.max_num_batched_tokens != Some(*value);
        pool.max_num_batched_tokens = Some(*value);
        differs.then(|| format!("max_num_batched_tokens = {}", value.get()))
    });
    let others = all.into_iter().skip(1).take(MOST).map(|(other, said)| {
        let format = other.weights != pool.weights;
        // What was measured of one pool says nothing of another.
        let other = Pool { calibration: None, ..other };
        Other {
            pool: other,
            what: said.join(", "),
            may_choose: true,
            caveat: format.then(|| CAVEAT.to_owned()),
        }
    });
    others.collect()
}

/// Ways that nobody asked for: half and twice the group, devices that its regions have besides, and smaller weights.
fn told(loaded: &Loaded, pool: &Pool) -> Vec<Other> {
    let mut others: Vec<Other> = Vec::new();
    let scenario = &loaded.scenario;
    let kept = |pool: Pool| Pool { calibration: None, ..pool };
    let mut group = |n: u64| {
        let Some(n) = plimsoll_scenario::Whole::new(n) else { return };
        others.push(Other {
            pool: kept(Pool { tensor_parallel: n, ..pool.clone() }),
            what: format!("tensor_parallel = {}", n.get()),
            may_choose: false,
            caveat: None,
        });
    };
    let own = pool.tensor_parallel.get();
    let device = loaded.catalog.accelerator(pool.accelerator.as_str()).ok();
    let reach = device.and_then(|a| a.interconnect.devices).map_or(8, u64::from).min(8);
    if own > 1 {
        group(own / 2);
    }
    if own * 2 <= reach {
        group(own * 2);
    }
    let there = scenario.region.iter().filter(|region| {
        pool.regions.is_empty()
            || pool.regions.iter().any(|own| own.as_str() == region.name.as_str())
    });
    let name = |name: &str| {
        loaded.catalog.accelerator(name).map_or_else(|_| name.to_owned(), |a| a.name.clone())
    };
    let mut seen = vec![name(pool.accelerator.as_str())];
    for other in there.flat_map(|region| &region.accelerators) {
        let device = name(other.accelerator.as_str());
        if !seen.contains(&device) {
            others.push(Other {
                pool: kept(Pool {
                    accelerator: other.accelerator.clone(),
                    instance: None,
                    ..pool.clone()
                }),
                what: format!("accelerator = \"{device}\""),
                may_choose: false,
                caveat: None,
            });
            seen.push(device);
        }
    }
    if matches!(pool.weights, None | Some(Dtype::Bf16 | Dtype::Fp16)) {
        others.push(Other {
            pool: kept(Pool { weights: Some(Dtype::Fp8), ..pool.clone() }),
            what: "weights = \"fp8\"".to_owned(),
            may_choose: false,
            caveat: Some(CAVEAT.to_owned()),
        });
    }
    others.truncate(TOLD);
    others
}

/// A way to run a pool, ready to be simulated, and where its devices may be had.
pub(super) fn candidate(
    loaded: &Loaded,
    file: &Path,
    at: usize,
    (written, simulated): (&PoolFacts, &SimulatedPool),
    other: Other,
    rows: &[Constant],
) -> Result<(Candidate, Vec<PlaceFacts>), Failure> {
    let pool = &other.pool;
    let places = places_of(loaded, pool, &simulated.life.regions);
    let mut found = Candidate {
        pool: at,
        what: other.what,
        simulated: None,
        facts: PoolFacts {
            accelerator: pool.accelerator.as_str().to_owned(),
            parallelism: Parallelism { tensor: pool.tensor_parallel.get(), ..written.parallelism },
            ..written.clone()
        },
        impossible: None,
        may_choose: other.may_choose,
        caveat: other.caveat,
    };
    found.impossible = out_of_reach(loaded, pool);
    if found.impossible.is_some() {
        return Ok((found, Vec::new()));
    }
    let budget = pool_fit(loaded, pool)
        .and_then(|input| fit(&input).map_err(|e| (e.to_string(), help(&e, input.model))));
    match budget {
        Err((why, _)) => found.impossible = Some(why),
        Ok(budget) => match fleet::simulated(loaded, file, pool, &budget, rows) {
            Ok((own, bands, _)) => {
                found.facts = facts_of(loaded, pool, &own, &budget, &bands, &places);
                match budget.fits {
                    true => found.simulated = Some(own),
                    false => {
                        found.impossible = Some(format!(
                            "does not fit: {:.1} GiB a device are missing",
                            budget.missing_bytes as f64 / f64::from(1u32 << 30)
                        ))
                    }
                }
            }
            // A device that nobody has measured is no candidate.
            Err(_) => found.impossible = Some("its step times are not known".to_owned()),
        },
    }
    Ok((found, if other.may_choose { places } else { Vec::new() }))
}

/// A pool as a change would have it, ready to be simulated; or why it cannot be.
pub(in crate::commands) fn proposed(
    loaded: &Loaded,
    file: &Path,
    at: usize,
    written: (&PoolFacts, &SimulatedPool),
    pool: Pool,
) -> Result<Result<ProposedPool, String>, Failure> {
    let other = Other {
        // What was measured of one pool says nothing of another.
        pool: Pool { calibration: None, ..pool },
        what: String::new(),
        may_choose: false,
        caveat: None,
    };
    let rows = constants(&loaded.catalog);
    let (found, _) = candidate(loaded, file, at, written, other, &rows)?;
    Ok(match (found.simulated, found.impossible) {
        (Some(simulated), None) => Ok(ProposedPool { pool: at, simulated, facts: found.facts }),
        (_, why) => Err(why.unwrap_or_else(|| "it cannot be simulated".to_owned())),
    })
}

/// A group whose devices do not reach each other, which a scenario may not write either.
fn out_of_reach(loaded: &Loaded, pool: &Pool) -> Option<String> {
    let device = loaded.catalog.accelerator(pool.accelerator.as_str()).ok()?;
    let (group, reach) = (pool.tensor_parallel.get(), u64::from(device.interconnect.devices?));
    (group > reach).then(|| {
        format!("a tensor-parallel group of {group} does not fit the {reach} devices that reach each other on {}", device.name)
    })
}

/// How a pool that does both would hand over, over a link of the scenario's default, were its prompts read elsewhere.
pub(super) fn apart_of(loaded: &Loaded, pool: &Pool) -> Option<HandOver> {
    if pool.role != Role::Both {
        return None;
    }
    let input = pool_fit(loaded, pool).ok()?;
    Some(hand_over(0, &context_bytes(input.model, input.kv_element_bytes), LINK))
}

/// One 400 Gbit/s port, in bytes a second.
const LINK: f64 = 50e9;
