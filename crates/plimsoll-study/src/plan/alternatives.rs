//! What else would do, what it would cost, and why it was not chosen.

use plimsoll_sim::HandOver;
use plimsoll_stats::in_order;
use serde::Serialize;

use super::place::Choice;
use super::result::Parallelism;
use super::size::{Floor, Question};
use super::sizes::{Asked, LOOKED_AT, PoolSize};
use super::{MONTH, PlanInput, PoolFacts, nodes};
use crate::context::Context;
use plimsoll_load::{ClassTarget, SimulateInput, SimulatedPool, StudyError, pools_serving};

/// Another way to run a pool.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The pool, by its place.
    pub pool: usize,
    /// What is different, as it would be written.
    pub what: String,
    /// Its engines; none where it does not fit.
    pub simulated: Option<SimulatedPool>,
    /// What is known of it.
    pub facts: PoolFacts,
    /// Why it cannot run, where it cannot.
    pub impossible: Option<String>,
    /// Whether the plan may choose it.
    pub may_choose: bool,
    /// What nobody here judges: whether answers are as good.
    pub caveat: Option<String>,
}

/// What else would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// The pool.
    pub pool: String,
    /// `accelerator`, `parallelism`, `weights`, `limits`, `aggregated`, `disaggregated`, `dedicated`.
    pub kind: &'static str,
    /// What is different, as it would be written.
    pub what: String,
    /// Its device.
    pub accelerator: String,
    /// How a replica is split.
    pub parallelism: Parallelism,
    /// Replicas that carry the planned demand; none where no number does.
    pub carry: Option<u32>,
    /// With the reserve of the plan.
    pub replicas: Option<u32>,
    /// Devices of them.
    pub devices: Option<u64>,
    /// Nodes of them.
    pub nodes: Option<u64>,
    /// What these cost an hour.
    pub usd_per_hour: Option<f64>,
    /// The same in a month of 730 hours.
    pub usd_per_month: Option<f64>,
    /// Times what the plan costs.
    pub against_plan: Option<f64>,
    /// Whether it was chosen.
    pub chosen: bool,
    /// Why it was not.
    pub rejected: Option<String>,
    /// `simulation`, or `service_curve`: one replica was looked at, and the rest by the square-root rule.
    pub from: &'static str,
}

/// What a candidate needs.
#[derive(Clone)]
pub(crate) struct Tried {
    carry: Option<u32>,
    floor: Option<String>,
    from: &'static str,
}

/// A fleet in which a pool runs another way.
fn with_candidate(fleet: &SimulateInput, pool: usize, own: &SimulatedPool) -> SimulateInput {
    let mut fleet = fleet.clone();
    let hands_over = fleet.pools[pool].life.hands_over;
    fleet.pools[pool] = own.clone();
    fleet.pools[pool].life.hands_over = hands_over;
    fleet.threads = 1;
    fleet
}

/// Looks at every candidate by what one replica of it carries. One that is chosen is sized as closely as what is written.
pub(crate) fn tried(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
    context: Context<'_>,
) -> Result<Vec<(Tried, Option<Choice>)>, StudyError> {
    let candidates = &input.candidates;
    let all = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
    let carries: Vec<(u32, Option<f64>)> =
        sizes.iter().map(|size| (size.replicas.carry(), size.own.one)).collect();
    let question = asked.at_quantile(context);
    let found = in_order(input.fleet.threads, all, |i| -> Result<Tried, StudyError> {
        let candidate = &candidates[i as usize];
        let Some(simulated) = &candidate.simulated else {
            return Ok(Tried { carry: None, floor: None, from: "memory" });
        };
        let fleet = with_candidate(question.fleet, candidate.pool, simulated);
        let question = Question { fleet: &fleet, ..question };
        if let Some(floor) = question.floor(candidate.pool)? {
            let floor = format!(
                "{} of class `{}` is not kept even where nobody else is served{}",
                floor.promise,
                floor.class,
                floor.floor_ms.map_or(String::new(), |ms| format!(": {ms:.0} ms"))
            );
            return Ok(Tried { carry: None, floor: Some(floor), from: "simulation" });
        }
        let (carry, one) = carries[candidate.pool];
        // As many times as many as one of the plan's carries more than one of these.
        let own = question.one(candidate.pool, one)?;
        let carry = own.zip(one).map(|(own, one)| {
            let times = f64::from(carry) * one / own;
            (times - 1e-6).ceil().max(1.0) as u32
        });
        let floor = own.is_none().then(|| "one replica carries none of it".to_owned());
        Ok(Tried { carry, floor, from: "service_curve" })
    });
    let mut alternatives = Vec::new();
    for (i, (candidate, tried)) in candidates.iter().zip(found).enumerate() {
        let tried = tried?;
        let choice = tried.carry.filter(|_| candidate.may_choose).map(|carry| Choice {
            pool: candidate.pool,
            alternative: Some(i),
            accelerator: candidate.facts.accelerator.clone(),
            devices: candidate.facts.parallelism.devices,
            carry,
        });
        alternatives.push((tried, choice));
    }
    Ok(alternatives)
}

/// Every candidate held against what was chosen, and what is written where that is another.
pub(crate) fn weighed(
    input: &PlanInput<'_>,
    sizes: &[PoolSize],
    written: &[(PoolFacts, u32)],
    chosen: &[Option<usize>],
    tried: Vec<Tried>,
) -> Vec<Alternative> {
    let mut all = Vec::new();
    for (pool, (facts, carry)) in written.iter().enumerate() {
        if chosen[pool].is_none() {
            continue;
        }
        let as_written = Candidate {
            pool,
            what: "as written".to_owned(),
            simulated: None,
            facts: facts.clone(),
            impossible: None,
            may_choose: true,
            caveat: None,
        };
        let tried = Tried { carry: Some(*carry), floor: None, from: "simulation" };
        all.push(alternative(input, sizes, &as_written, tried));
    }
    for (i, (candidate, tried)) in input.candidates.iter().zip(tried).enumerate() {
        let size = &sizes[candidate.pool];
        if chosen[candidate.pool] != Some(i) {
            all.push(alternative(input, sizes, candidate, tried));
            continue;
        }
        // What was chosen has been proven since.
        let carry = Some(size.replicas.carry());
        let tried = Tried { carry, floor: None, from: "simulation" };
        let own = alternative(input, sizes, candidate, tried);
        let kind = kind_of(candidate, &written[candidate.pool].0);
        all.push(Alternative { kind, chosen: true, rejected: None, ..own });
    }
    all
}

fn kind_of(candidate: &Candidate, own: &PoolFacts) -> &'static str {
    let facts = &candidate.facts;
    if facts.accelerator != own.accelerator {
        "accelerator"
    } else if facts.parallelism != own.parallelism {
        "parallelism"
    } else if facts.weights != own.weights {
        "weights"
    } else {
        "limits"
    }
}

fn alternative(
    input: &PlanInput<'_>,
    sizes: &[PoolSize],
    candidate: &Candidate,
    tried: Tried,
) -> Alternative {
    let (own, size) = (&input.pools[candidate.pool], &sizes[candidate.pool]);
    let facts = &candidate.facts;
    let replicas = tried.carry.map(|n| n + size.replicas.reserve());
    let usd =
        |facts: &PoolFacts, n: u32| facts.node_usd_per_hour.map(|usd| nodes(n, facts) as f64 * usd);
    let own_usd = usd(own, size.replicas.total);
    let usd_per_hour = replicas.and_then(|n| usd(facts, n));
    let against = usd_per_hour.zip(own_usd).map(|(own, plan)| own / plan);
    let quota = input.places.iter().filter(|place| {
        place.accelerator == facts.accelerator && facts.regions.contains(&place.region)
    });
    let quota: Option<u64> = quota.map(|place| place.quota_devices).sum();
    let devices = replicas.map(|n| nodes(n, facts) * u64::from(facts.node_devices));
    let over = devices.zip(quota).is_some_and(|(devices, quota)| devices > quota);
    let rejected = candidate.impossible.clone().or(tried.floor).or_else(|| {
        if over {
            return Some(format!(
                "needs {} devices, and the quota is {}",
                devices.unwrap_or(0),
                quota.unwrap_or(0)
            ));
        }
        match (against, candidate.may_choose) {
            (Some(times), _) if times > 1.0 + 1e-9 => {
                Some(format!("costs {times:.2} times as much"))
            }
            (Some(times), false) if times < 1.0 - 1e-9 => Some(format!(
                "would cost {:.0}% less; it is not among the `candidates` of the pool{}",
                (1.0 - times) * 100.0,
                candidate.caveat.as_ref().map_or(String::new(), |caveat| format!(", and {caveat}"))
            )),
            (Some(times), true) if times < 1.0 - 1e-9 => Some(format!(
                "would cost {:.0}% less by itself, but no cheaper fleet with it was found",
                (1.0 - times) * 100.0
            )),
            (Some(_), _) => Some("costs as much".to_owned()),
            (None, _) => Some(format!("nobody knows what {} costs there", facts.accelerator)),
        }
    });
    Alternative {
        pool: input.fleet.pools[candidate.pool].name.clone(),
        kind: kind_of(candidate, own),
        what: candidate.what.clone(),
        accelerator: facts.accelerator.clone(),
        parallelism: facts.parallelism,
        carry: tried.carry,
        replicas,
        devices: replicas.map(|n| u64::from(n) * facts.parallelism.devices),
        nodes: replicas.map(|n| nodes(n, facts)),
        usd_per_hour,
        usd_per_month: usd_per_hour.map(|usd| usd * MONTH),
        against_plan: against,
        chosen: false,
        rejected,
        from: tried.from,
    }
}

/// Other shapes of the same fleet: prompts and outputs apart or together, and a pool for each tier.
pub(crate) fn shapes(
    input: &PlanInput<'_>,
    asked: &Asked,
    sizes: &[PoolSize],
    context: Context<'_>,
) -> Result<Vec<Alternative>, StudyError> {
    let mut fleet = asked.fleet.clone();
    fleet.threads = 1;
    let question = Question { fleet: &fleet, ..asked.at_quantile(context) };
    let carries: Vec<(u32, u32, Option<f64>)> = sizes
        .iter()
        .map(|size| (size.replicas.carry(), size.replicas.reserve(), size.own.one))
        .collect();
    let (tiers, apart) = (&input.tiers, &input.apart);
    let pools = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let found = in_order(input.fleet.threads, pools, |pool| {
        let pool = pool as usize;
        let mut found: Vec<Outline> = Vec::new();
        match fleet.pools[pool].life.hands_over {
            Some(over) => found.push(aggregated(&carries, &question, pool, over)?),
            None => {
                let decodes = |other: &SimulatedPool| {
                    other.life.hands_over.is_some_and(|over| over.to == pool)
                };
                if !fleet.pools.iter().any(decodes) {
                    found.extend(disaggregated(&carries, apart, &question, pool)?);
                }
            }
        }
        found.extend(dedicated(&carries, tiers, &question, pool)?);
        Ok::<_, StudyError>(found)
    });
    let mut all = Vec::new();
    for (pool, found) in found.into_iter().enumerate() {
        all.extend(found?.into_iter().map(|outline| shaped(input, sizes, pool, outline)));
    }
    Ok(all)
}

/// Another shape, before it has a price.
struct Outline {
    kind: &'static str,
    what: String,
    carry: Option<u32>,
    /// With its reserve.
    replicas: Option<u32>,
    floor: Option<String>,
    hint: &'static str,
    from: &'static str,
    /// The pool that it takes in, beside its own.
    beside: Option<usize>,
}

/// Replicas that carry the demand of a pool, those of its reserve, and what one carries.
type Carries = (u32, u32, Option<f64>);

fn not_kept(floor: &Floor) -> String {
    format!(
        "{} of class `{}` is not kept even where nobody else is served",
        floor.promise, floor.class
    )
}

fn shaped(input: &PlanInput<'_>, sizes: &[PoolSize], pool: usize, own: Outline) -> Alternative {
    let facts = &input.pools[pool];
    let usd_of =
        |facts: &PoolFacts, n: u32| facts.node_usd_per_hour.map(|usd| nodes(n, facts) as f64 * usd);
    let mine = usd_of(facts, sizes[pool].replicas.total);
    let beside = own
        .beside
        .map_or(Some(0.0), |other| usd_of(&input.pools[other], sizes[other].replicas.total));
    let plan_usd = mine.zip(beside).map(|(mine, beside)| mine + beside);
    let usd = own.replicas.and_then(|n| usd_of(facts, n));
    let against = usd.zip(plan_usd).map(|(own, plan)| own / plan);
    let rejected = own.floor.or_else(|| match against {
        Some(times) if times > 1.0 + 1e-9 => Some(format!("costs {times:.2} times as much")),
        Some(times) if times < 1.0 - 1e-9 => {
            Some(format!("would cost {:.0}% less: {}", (1.0 - times) * 100.0, own.hint))
        }
        Some(_) => Some("costs as much".to_owned()),
        None if own.replicas.is_none() => Some("no number of replicas does".to_owned()),
        None => Some("nobody knows what it costs".to_owned()),
    });
    Alternative {
        pool: input.fleet.pools[pool].name.clone(),
        kind: own.kind,
        what: own.what,
        accelerator: facts.accelerator.clone(),
        parallelism: facts.parallelism,
        carry: own.carry,
        replicas: own.replicas,
        devices: own.replicas.map(|n| u64::from(n) * facts.parallelism.devices),
        nodes: own.replicas.map(|n| nodes(n, facts)),
        usd_per_hour: usd,
        usd_per_month: usd.map(|usd| usd * MONTH),
        against_plan: against,
        chosen: false,
        rejected,
        from: own.from,
    }
}

/// Prompts and outputs on the same devices.
fn aggregated(
    carries: &[Carries],
    question: &Question<'_>,
    pool: usize,
    over: HandOver,
) -> Result<Outline, StudyError> {
    let mut fleet = question.fleet.clone();
    fleet.pools[pool].life.hands_over = None;
    let name = |pool: usize| question.fleet.pools[pool].name.as_str();
    let (mine, reserve, _) = carries[pool];
    let other = carries[over.to].0;
    let what = format!(
        "`{}` and `{}` as one pool (apart they stand {mine} to {other}, {:.2} to 1)",
        name(pool),
        name(over.to),
        f64::from(mine) / f64::from(other.max(1))
    );
    let question = Question { fleet: &fleet, ..*question };
    let floor = question.floor(pool)?.map(|floor| not_kept(&floor));
    let carry = match &floor {
        Some(_) => None,
        None => question.brief().needs(pool, (1, LOOKED_AT), Some(mine + other))?,
    };
    Ok(Outline {
        kind: "aggregated",
        what,
        carry,
        replicas: carry.map(|n| n + reserve),
        floor,
        hint: "take `role` and `disaggregation` out, and switch back",
        from: "simulation",
        beside: Some(over.to),
    })
}

/// Prompts and outputs on devices of their own.
fn disaggregated(
    carries: &[Carries],
    apart: &[Option<HandOver>],
    question: &Question<'_>,
    pool: usize,
) -> Result<Option<Outline>, StudyError> {
    let (mine, reserve, one) = carries[pool];
    let Some(over) = apart.get(pool).copied().flatten() else { return Ok(None) };
    // Few replicas are not split.
    if mine < 4 {
        return Ok(None);
    }
    let mut fleet = question.fleet.clone();
    let mut decode = fleet.pools[pool].clone();
    decode.name = format!("{}-decode", decode.name);
    fleet.pools.push(decode);
    let to = fleet.pools.len() - 1;
    fleet.pools[pool].life.hands_over = Some(HandOver { to, ..over });
    let question = Question { fleet: &fleet, ..*question };
    let mut own = Outline {
        kind: "disaggregated",
        what: "prompts and outputs on devices of their own".to_owned(),
        carry: None,
        replicas: None,
        floor: None,
        hint: "give it a decode pool and `disaggregation`",
        from: "service_curve",
        beside: None,
    };
    own.floor = question.floor(pool)?.map(|floor| not_kept(&floor));
    if own.floor.is_some() {
        return Ok(Some(own));
    }
    // What one reader and one writer carry says how many of each there would be.
    let about = one.map(|one| 2.0 * one);
    let Some((reads, writes)) = question.one(pool, about)?.zip(question.one(to, about)?) else {
        return Ok(None);
    };
    // As much better as the plan's crew is than its parts.
    let crew = one.map_or(1.0, |one| f64::from(mine) * one);
    let need = |one: f64| (crew / one - 1e-6).ceil().max(1.0) as u32;
    let (reads, writes) = (need(reads), need(writes));
    own.what = format!(
        "prompts and outputs on devices of their own, {reads} to {writes} ({:.2} to 1)",
        f64::from(reads) / f64::from(writes)
    );
    // Each half has a reserve of its own.
    (own.carry, own.replicas) = (Some(reads + writes), Some(reads + writes + 2 * reserve));
    Ok(Some(own))
}

/// A pool for each tier instead of priorities, or one line, in one.
fn dedicated(
    carries: &[Carries],
    tiers_of: &[String],
    question: &Question<'_>,
    pool: usize,
) -> Result<Option<Outline>, StudyError> {
    let (mine, reserve, _) = carries[pool];
    let classes = question.fleet.classes.iter().zip(tiers_of);
    let mut tiers: Vec<&str> = classes
        .filter(|(class, _)| pools_serving(class, question.fleet).contains(&pool))
        .map(|(_, tier)| tier.as_str())
        .collect();
    tiers.sort_unstable();
    tiers.dedup();
    if tiers.len() < 2 || question.fleet.pools[pool].life.hands_over.is_some() {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for tier in &tiers {
        let mut fleet = question.fleet.clone();
        let keep: Vec<bool> = tiers_of.iter().map(|own| own == tier).collect();
        let mut kept = keep.iter();
        fleet.classes.retain(|_| *kept.next().unwrap_or(&false));
        let targets = question.targets.iter().zip(&keep).filter(|(_, keep)| **keep);
        let targets: Vec<ClassTarget> = targets.map(|(target, _)| target.clone()).collect();
        let question = Question { fleet: &fleet, targets: &targets, ..*question };
        match question.brief().needs(pool, (1, LOOKED_AT), Some(mine))? {
            Some(part) => parts.push(part),
            None => return Ok(None),
        }
    }
    let carry: u32 = parts.iter().sum();
    let each: Vec<String> =
        tiers.iter().zip(&parts).map(|(tier, n)| format!("{tier} {n}")).collect();
    Ok(Some(Outline {
        kind: "dedicated",
        what: format!("a pool for each tier: {}", each.join(", ")),
        carry: Some(carry),
        replicas: Some(carry + reserve * u32::try_from(parts.len()).unwrap_or(1)),
        floor: None,
        hint: "route each tier to a pool of its own",
        from: "simulation",
        beside: None,
    }))
}
