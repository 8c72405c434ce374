//! The ways in which plans fail, each tried.

use plimsoll_sim::Target;

use super::hard::{Field, NOW, PLANNED, Peak, Trial};
use super::result::{FailureShape, Stressed};
use super::{Stress, side_by_side};
use crate::plan::MONTH;
use crate::plan::UnitOfLoss;
use plimsoll_load::{LoadVerdict, Recovery, SURGE, StudyError, SurgeShape};

/// By how much a batch is widened.
const WIDER: usize = 2;
/// Calls that a limit may turn away, of all that go there, before it counts as ignored.
const TURNED_AWAY: f64 = 0.01;

/// What the way is called in which a surge outlasts itself.
pub const NO_RECOVERY: &str = "overload stays after a surge";

pub(super) fn shapes(
    field: &Field<'_>,
    stressed: &[Stressed],
    (base, peaks): (&Trial, &[Peak; 2]),
) -> Result<Vec<FailureShape>, StudyError> {
    let of = |wanted: &dyn Fn(&Stress) -> bool| {
        let at = field.input.stresses.iter().position(wanted);
        at.map(|at| &stressed[at])
    };
    Ok(vec![
        average_lengths(field, base)?,
        in_stress(
            "route mix shifts in an incident",
            of(&|stress| stress.to_strongest > 0.0),
            "when some of all others go to the strongest model",
        ),
        untested_hits(field, of(&|stress| stress.shift.cache_hit <= 0.0)),
        wider_batch(field, base)?,
        limits_ignored(field, base, of(&|stress| stress.limits < 1.0)),
        in_stress(
            "regional failover doubles traffic",
            of(&|stress| matches!(stress.lose, UnitOfLoss::Region)),
            "when another region's users come",
        ),
        budget(field, base),
        recovery(field, peaks)?,
    ])
}

/// Whether a fleet comes back after a surge, with the retries of its clients.
fn recovery(field: &Field<'_>, peaks: &[Peak; 2]) -> Result<FailureShape, StudyError> {
    let SurgeShape { times, lasts_s } = SURGE;
    let found = side_by_side(field.input.plan.fleet.threads, 2, |which| {
        peaks[which].question(field.context).load().recovery()
    })?;
    let passes = |recovery: Recovery| match recovery {
        Recovery::After(_) => Some(true),
        Recovery::NotWithin(_) => Some(false),
        Recovery::NeverSteady | Recovery::Unfinished => None,
    };
    let says = |fleet: &str, recovery: Recovery| match recovery {
        Recovery::After(seconds) => format!("{fleet} is back after {seconds:.0} s"),
        Recovery::NotWithin(seconds) => {
            format!(
                "{fleet} stays overloaded for {:.0} min and more: limit retries (`budget` among `retries`), or shed load",
                seconds / 60.0
            )
        }
        Recovery::NeverSteady => format!("{fleet} breaks a promise without it"),
        Recovery::Unfinished => format!("the time was up for {fleet}"),
    };
    Ok(FailureShape {
        name: NO_RECOVERY,
        pass: passes(found[PLANNED]),
        pass_now: passes(found[NOW]),
        evidence: format!(
            "after {times:.0} times the demand for {lasts_s:.0} s {}; {}",
            says("today's fleet", found[NOW]),
            says("the planned one", found[PLANNED])
        ),
    })
}

/// A shape that a stress tries.
fn in_stress(name: &'static str, own: Option<&Stressed>, when: &str) -> FailureShape {
    let Some(own) = own else {
        let evidence = "no stress tries it".to_owned();
        return FailureShape { name, pass: None, pass_now: None, evidence };
    };
    if let Some(why) = &own.not_applicable {
        return FailureShape { name, pass: None, pass_now: None, evidence: why.clone() };
    }
    // What is too close to call is neither.
    let holds = |verdict: Option<LoadVerdict>| match verdict? {
        LoadVerdict::Carried => Some(true),
        LoadVerdict::Fails => Some(false),
        LoadVerdict::TooClose => None,
    };
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "an unknown share".to_owned(), |a| format!("{:.1}%", a * 100.0))
    };
    let carries = |times: Option<f64>| {
        times.map_or_else(
            || "none".to_owned(),
            |times| format!("about {times:.*} times", if times < 0.995 { 2 } else { 1 }),
        )
    };
    let evidence = format!(
        "{when}, {} of tasks are good today and {} planned; the fleets carry {} and {} that demand",
        percent(own.attainment.now),
        percent(own.attainment.planned),
        carries(own.carries.now),
        carries(own.carries.planned),
    );
    FailureShape {
        name,
        pass: holds(own.attainment.verdict_planned),
        pass_now: holds(own.attainment.verdict_now),
        evidence,
    }
}

/// Whether averages would have said the same.
fn average_lengths(field: &Field<'_>, base: &Trial) -> Result<FailureShape, StudyError> {
    let name = "planned on average prompt length";
    let asked = &field.carried.asked;
    let pools = asked.fleet.pools.len();
    let Some(sides) = base.sides.as_ref().filter(|_| pools > 0) else {
        let evidence = "there are no replicas of one's own to plan".to_owned();
        return Ok(FailureShape { name, pass: None, pass_now: None, evidence });
    };
    let mut real = asked.fleet.clone();
    real.threads = 1;
    let mut mean = real.clone();
    for class in &mut mean.classes {
        class.class.task = class.class.task.clone().at_means();
    }
    // Both are looked at in the same way, so that what a short look overlooks cancels out.
    let found = side_by_side(field.input.plan.fleet.threads, 2 * pools, |i| {
        let (fleet, pool) = (if i % 2 == 0 { &real } else { &mean }, i / 2);
        field.needs(fleet, pool, field.carried.sized[pool].replicas.carry())
    })?;
    let (mut said, mut too_few) = (Vec::new(), 0);
    let mut by_mean = real.clone();
    for pool in 0..pools {
        let (need, with_mean) = (found[2 * pool], found[2 * pool + 1]);
        too_few += need.saturating_sub(with_mean);
        said.push(format!("{with_mean} of {} instead of {need}", asked.fleet.pools[pool].name));
        by_mean.pools[pool].life.replicas = with_mean;
    }
    let (attainment, _) = field.about(&field.at_busiest(by_mean))?;
    let good = attainment.map_or(String::new(), |attainment| {
        format!(", and {:.1}% of tasks would be good", attainment * 100.0)
    });
    let missing = match too_few {
        0 => "none missing".to_owned(),
        n => format!("{n} too few"),
    };
    Ok(FailureShape {
        name,
        pass: Some(sides[PLANNED].at.keeps),
        pass_now: Some(sides[NOW].at.keeps),
        evidence: format!(
            "averages would carry the demand with {} ({missing}){good}; the lengths as they are were planned with",
            said.join(", ")
        ),
    })
}

/// Whether everything rests on hits that nobody has tried to do without.
fn untested_hits(field: &Field<'_>, own: Option<&Stressed>) -> FailureShape {
    let mut shape = in_stress("cache-hit assumption untested", own, "with nothing cached");
    let classes = field.input.plan.fleet.classes.iter().zip(&field.input.hits_from);
    let from: Vec<String> = classes
        .filter_map(|(class, from)| Some(format!("{}: {}", class.class.name, from.as_ref()?)))
        .collect();
    if !from.is_empty() && shape.pass.is_some() {
        shape.evidence = format!("{}; hit rates are {}", shape.evidence, from.join(", "));
    }
    shape
}

/// Whether a wider batch would hide what is missing.
fn wider_batch(field: &Field<'_>, base: &Trial) -> Result<FailureShape, StudyError> {
    let name = "batch window widened to hide missing capacity";
    let mut wide = field.input.plan.today();
    let Some(sides) = base.sides.as_ref().filter(|_| !wide.pools.is_empty()) else {
        let evidence = "there are no replicas of one's own to batch on".to_owned();
        return Ok(FailureShape { name, pass: None, pass_now: None, evidence });
    };
    for pool in &mut wide.pools {
        let limits = &mut pool.life.limits;
        limits.max_num_seqs *= WIDER;
        limits.max_num_batched_tokens *= WIDER as u64;
    }
    wide.threads = 1;
    let (attainment, seen) = field.about(&field.at_busiest(wide))?;
    let per_s = |seen: &plimsoll_load::Simulation| -> f64 {
        let tokens: u64 = seen.pools.iter().map(|pool| pool.output_tokens).sum();
        tokens as f64 / (seen.seconds * f64::from(seen.runs)).max(1e-9)
    };
    let good = |attainment: Option<f64>| attainment.unwrap_or(0.0) * 100.0;
    let now = &sides[NOW];
    let holds = now.at.keeps;
    let hides = if holds { "nothing is missing to hide" } else { "that hides nothing" };
    Ok(FailureShape {
        name,
        pass: Some(sides[PLANNED].at.keeps),
        pass_now: Some(holds),
        evidence: format!(
            "batches twice as wide on today's replicas: {:.0} instead of {:.0} output tok/s, {:.1}% instead of {:.1}% of tasks good: {hides}",
            per_s(&seen),
            per_s(&now.seen),
            good(attainment),
            good(now.attainment()),
        ),
    })
}

/// Whether providers allow what is sent to them, and what would be sent were they needed.
fn limits_ignored(field: &Field<'_>, base: &Trial, halved: Option<&Stressed>) -> FailureShape {
    let name = "rate limits ignored";
    let plan = &field.input.plan;
    let limited = |spec: &plimsoll_sim::ProviderSpec| {
        [spec.calls, spec.tokens, spec.prompt, spec.output].iter().any(Option::is_some)
    };
    let Some(sides) =
        base.sides.as_ref().filter(|_| plan.fleet.providers.iter().any(|(_, p)| limited(p)))
    else {
        let evidence = "no provider has a limit".to_owned();
        return FailureShape { name, pass: None, pass_now: None, evidence };
    };
    let mut said = Vec::new();
    let mut passes = [true, true];
    for (i, (provider, spec)) in plan.fleet.providers.iter().enumerate() {
        for which in [NOW, PLANNED] {
            let own = &sides[which].seen.providers[i].attempts;
            let refused = own.refused as f64 / own.sent.max(1) as f64;
            passes[which] &= refused <= TURNED_AWAY;
            if own.sent > 0 && which == PLANNED {
                said.push(format!("`{provider}` turns away {:.1}% of its calls", refused * 100.0));
            }
        }
        if let Some((asked, limit, unit)) = fallback(field, i, spec) {
            let enough = asked <= limit;
            passes = passes.map(|pass| pass && enough);
            said.push(format!(
                "were `{provider}` needed for all that falls back on it, {asked:.0} {unit} would come, and it allows {limit:.0}"
            ));
        }
    }
    if let Some(own) = halved.filter(|own| own.not_applicable.is_none()) {
        let good = own.attainment.planned.unwrap_or(0.0) * 100.0;
        said.push(format!("with half the limits {good:.1}% of tasks are good"));
    }
    if said.is_empty() {
        said.push("nothing is sent to a provider that has a limit".to_owned());
    }
    FailureShape {
        name,
        pass: Some(passes[PLANNED]),
        pass_now: Some(passes[NOW]),
        evidence: said.join("; "),
    }
}

/// What would come to a provider a minute if all who may fall back on it did, against the limit that allows least of it.
fn fallback(
    field: &Field<'_>,
    provider: usize,
    spec: &plimsoll_sim::ProviderSpec,
) -> Option<(f64, f64, &'static str)> {
    let asked = &field.carried.asked;
    let (mut calls, mut prompt, mut fresh, mut output) = (0.0, 0.0, 0.0, 0.0);
    for class in &asked.fleet.classes {
        let hour = class.class.hours.get(asked.hour)?;
        let shift = hour.changed(asked.events);
        let own = class.sent.routes.iter().filter(|route| {
            route.to != Target::Provider(provider)
                && route.fallback.first() == Some(&Target::Provider(provider))
        });
        let share: f64 = own.map(|route| route.share).sum();
        let rate = hour.rate * shift.rate * share * 60.0;
        let (new, out) = class.class.task.expected(&shift);
        let cold = plimsoll_workload::Shift { cache_hit: 0.0, ..shift };
        calls += rate * class.class.task.mean_requests();
        prompt += rate * class.class.task.expected(&cold).0;
        fresh += rate * new;
        output += rate * out;
    }
    if calls <= 0.0 {
        return None;
    }
    let input = if spec.counts_cached { prompt } else { fresh };
    let all = [
        (calls, spec.calls, "requests a minute"),
        (input + output, spec.tokens, "tokens a minute"),
        (input, spec.prompt, "prompt tokens a minute"),
        (output, spec.output, "output tokens a minute"),
    ];
    let tightest =
        all.into_iter().filter_map(|(asked, limit, unit)| Some((asked, limit? as f64, unit)));
    tightest.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
}

/// Whether money runs out before machines do.
fn budget(field: &Field<'_>, base: &Trial) -> FailureShape {
    let name = "budget cap trips before technical capacity";
    let caps = &field.carried.budget.caps;
    let money: Vec<_> = caps.iter().filter(|cap| cap.name.starts_with("budget.")).collect();
    if money.is_empty() {
        let evidence = "no cap is stated under `[budget]`".to_owned();
        return FailureShape { name, pass: None, pass_now: None, evidence };
    }
    let said: Vec<String> = money
        .iter()
        .map(|cap| {
            let plan = match (cap.peak, &cap.trips_at) {
                (None, _) => "what the plan costs is not known, as a price is missing".to_owned(),
                (Some(usd), Some(at)) => format!("the plan comes to ${usd:.0}, and trips {at}"),
                (Some(usd), None) => format!("the plan comes to ${usd:.0}, and does not trip"),
            };
            format!("{} is ${:.0}: {plan}", cap.name, cap.limit)
        })
        .collect();
    let known = money.iter().all(|cap| cap.peak.is_some());
    // The planned fleet is never too small, so any cap that trips does so before.
    let pass = money.iter().all(|cap| cap.trips_at.is_none());
    let monthly = field.input.plan.caps.monthly_usd;
    let hourly = field.input.plan.caps.hourly_usd;
    let tokens = base.sides.as_ref().and_then(|sides| field.variable_usd(&sides[NOW].seen));
    let today = field.nodes_usd(NOW).zip(tokens).map(|(nodes, tokens)| {
        let month = (nodes + tokens * field.mean_load()) * MONTH;
        monthly.is_none_or(|cap| month <= cap) && hourly.is_none_or(|cap| nodes + tokens <= cap)
    });
    FailureShape { name, pass: known.then_some(pass), pass_now: today, evidence: said.join("; ") }
}
