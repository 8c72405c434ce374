//! A hard time, tried on the fleet of today and on the planned one.

use plimsoll_sim::{Mishap, RouteSpec, Target};
use plimsoll_workload::Shift;

use super::result::{
    Breaks, Moved, OfFleets, Stressed, StressedAttainment, StressedCost, StressedResource,
};
use super::{Stress, StressHour, StressInput, side_by_side};
use crate::context::Context;
use crate::plan::size::{Question, worst};
use crate::plan::sizes::LOOKED_AT;
use crate::plan::table::placed;
use crate::plan::{Carried, PlanInput, UnitOfLoss, nodes};
use plimsoll_load::{
    ClassTarget, Effort, LoadLine, LoadOutcome, LoadVerdict, SimulateInput, Simulation, StudyError,
};

/// Calls of the run that says what each resource is used for, and what is paid for.
const CALLS_SHOWN: f64 = 8_000.0;

/// A resource has moved where it differs by more than this share, and by more than this part of what there is.
const MOVED: f64 = 0.05;
const MOVED_PART: f64 = 0.01;
/// The same of requests that wait, per replica.
const MOVED_QUEUE: f64 = 0.1;

/// The fleet of today and the planned one.
pub(super) const NOW: usize = 0;
pub(super) const PLANNED: usize = 1;

/// Replicas of both fleets, and where they are.
pub(super) struct Fleets {
    both: [SimulateInput; 2],
    /// What each costs an hour, whoever comes.
    usd: [Option<f64>; 2],
}

impl Fleets {
    pub(super) fn of(input: &StressInput<'_>, carried: &Carried) -> Self {
        let now = input.plan.today();
        let planned = placed(&input.plan, &carried.asked, &carried.sized, carried.fleet.as_ref());
        let mut both = [now, planned];
        both.iter_mut().for_each(|fleet| fleet.threads = 1);
        let alone = |fleet: &SimulateInput| {
            let each = fleet.pools.iter().zip(&input.plan.pools).map(|(pool, facts)| {
                Some(nodes(pool.life.replicas, facts) as f64 * facts.node_usd_per_hour?)
            });
            each.sum::<Option<f64>>()
        };
        let planned_usd = carried.fleet.as_ref().and_then(|fleet| fleet.usd_per_hour);
        let usd = [alone(&both[NOW]), planned_usd.or_else(|| alone(&both[PLANNED]))];
        Self { both, usd }
    }

    pub(super) fn replicas(&self, which: usize) -> Vec<u32> {
        self.both[which].pools.iter().map(|pool| pool.life.replicas).collect()
    }

    pub(super) fn named(&self, plan: &PlanInput<'_>) -> Vec<OfFleets<u32>> {
        let both = self.replicas(NOW).into_iter().zip(self.replicas(PLANNED));
        let each = plan.fleet.pools.iter().zip(both);
        each.map(|(pool, (now, planned))| OfFleets { name: pool.name.clone(), now, planned })
            .collect()
    }
}

/// Where hard times are tried.
pub(super) struct Field<'a> {
    pub(super) input: &'a StressInput<'a>,
    pub(super) carried: &'a Carried,
    pub(super) fleets: &'a Fleets,
    pub(super) context: Context<'a>,
}

/// A fleet at an hour, and what its classes are promised.
#[derive(Clone)]
pub(super) struct Peak {
    pub(super) fleet: SimulateInput,
    pub(super) targets: Vec<ClassTarget>,
    pub(super) hour: usize,
    pub(super) events: bool,
}

impl Peak {
    pub(super) fn question<'a>(&'a self, context: Context<'a>) -> Question<'a> {
        let Self { fleet, targets, hour, events } = self;
        let (hour, events, effort) = (*hour, *events, Effort::USUAL);
        Question { fleet, targets, hour, events, context, effort }
    }
}

/// A hard time as both fleets meet it.
pub(super) struct Subject {
    /// Why it cannot happen.
    pub(super) why_not: Option<String>,
    pub(super) peaks: [Peak; 2],
    pub(super) lost: [Vec<Mishap>; 2],
    /// The class that each was, before some became classes of their own.
    pub(super) origin: Vec<usize>,
    /// Whether nothing that is simulated differs from the reference.
    pub(super) same: bool,
}

/// What came of a hard time on one fleet.
pub(super) struct Side {
    /// How much of it is carried.
    pub(super) line: LoadLine,
    /// What it comes to.
    pub(super) at: LoadOutcome,
    /// What it asks of resources.
    pub(super) seen: Simulation,
}

impl Side {
    /// The share of good tasks of the class that is nearest to breaking its promise.
    pub(super) fn attainment(&self) -> Option<f64> {
        worst(&self.at).0
    }

    /// Times this demand that is carried; none where nothing bounds it, or nothing is carried.
    fn carries(&self) -> Option<f64> {
        self.line.holds.filter(|_| !self.line.beyond)
    }
}

/// What came of a hard time on both.
pub(super) struct Trial {
    pub(super) sides: Option<[Side; 2]>,
    /// Whether it is the same as the reference.
    same: bool,
}

impl<'a> Field<'a> {
    /// A hard time, ready to be tried.
    pub(super) fn subject(&self, stress: &Stress) -> Subject {
        let asked = &self.carried.asked;
        let (hour, events) = match stress.hour {
            StressHour::Baseline => (self.input.plan.baseline_hour, false),
            StressHour::Peak | StressHour::Launch => (asked.hour, asked.events),
        };
        let mut why_not = None;
        let mut origin = Vec::new();
        let mut each = |which: usize| {
            let mut fleet = self.fleets.both[which].clone();
            // What nobody can keep is let go of for the planned fleet alone.
            let all = [&self.input.plan.targets, &asked.targets];
            let mut targets = all[which].clone();
            let (problem, lost) = self.apply(stress, &mut fleet, &mut targets);
            why_not = why_not.take().or(problem);
            origin = (0..asked.fleet.classes.len()).collect();
            if stress.share < 1.0 {
                let more = origin.iter().copied().filter(|at| stress.concerns(*at));
                let more: Vec<usize> = more.collect();
                origin.extend(more);
            }
            (Peak { fleet, targets, hour, events }, lost)
        };
        let (now, planned) = (each(NOW), each(PLANNED));
        let none = Stress::none(&stress.name, &stress.about);
        let plain =
            Stress { price: 1.0, owner: None, hour: none.hour, classes: None, ..stress.clone() };
        // Without events the busiest hour is the busiest without them.
        let at_peak = stress.hour != StressHour::Baseline || !asked.events;
        let same = at_peak && plain == none;
        if stress.hour == StressHour::Launch && !asked.events {
            why_not = Some("no event changes the demand".to_owned());
        }
        Subject { why_not, peaks: [now.0, planned.0], lost: [now.1, planned.1], origin, same }
    }

    /// Changes a fleet and what it is promised. Says why it cannot, and what is lost.
    fn apply(
        &self,
        stress: &Stress,
        fleet: &mut SimulateInput,
        targets: &mut Vec<ClassTarget>,
    ) -> (Option<String>, Vec<Mishap>) {
        let mut why_not = None;
        let shift = Shift { rate: stress.shift.rate * (1.0 + stress.failure), ..stress.shift };
        let concerned: Vec<usize> =
            (0..fleet.classes.len()).filter(|at| stress.concerns(*at)).collect();
        if concerned.is_empty() {
            why_not = Some("nobody comes of the classes that it is of".to_owned());
        } else if stress.shift.cache_hit < 1.0 && !concerned.iter().any(|at| self.caches(*at)) {
            why_not = Some("nothing that it would miss is cached".to_owned());
        }
        if stress.share < 1.0 {
            // A cohort is a class of its own; the rest is as before.
            for at in &concerned {
                let mut cohort = fleet.classes[*at].clone();
                cohort.class.name = format!("{} ({})", cohort.class.name, stress.name);
                cohort.finds_prefixes &= stress.shift.cache_hit >= 1.0;
                for hour in &mut cohort.class.hours {
                    hour.rate *= stress.share;
                    hour.drift = hour.drift.and(shift);
                }
                for hour in &mut fleet.classes[*at].class.hours {
                    hour.rate *= 1.0 - stress.share;
                }
                fleet.classes.push(cohort);
                targets.push(targets[*at].clone());
            }
        } else {
            for at in &concerned {
                let class = &mut fleet.classes[*at];
                class.class.hours.iter_mut().for_each(|hour| hour.drift = hour.drift.and(shift));
                // What caches would find is what is stated, and less of it.
                class.finds_prefixes &= stress.shift.cache_hit >= 1.0;
            }
        }
        if (stress.limits - 1.0).abs() > f64::EPSILON {
            let mut limited = false;
            for (_, provider) in &mut fleet.providers {
                let all = [
                    &mut provider.calls,
                    &mut provider.tokens,
                    &mut provider.prompt,
                    &mut provider.output,
                    &mut provider.at_once,
                ];
                for limit in all.into_iter().flatten() {
                    *limit = ((*limit as f64 * stress.limits).floor() as u64).max(1);
                    limited = true;
                }
            }
            if !limited {
                why_not = Some("no provider has a limit".to_owned());
            }
        }
        if stress.to_strongest > 0.0 && !self.to_strongest(stress, fleet) {
            why_not = Some("there is no second model that could be asked instead".to_owned());
        }
        if stress.startup > 1.0 {
            let mut late = 0;
            for (i, (size, facts)) in
                self.carried.sized.iter().zip(&self.input.plan.pools).enumerate()
            {
                if facts.fewest == facts.most {
                    continue;
                }
                let by = |times: f64| size.warm.replicas(facts.startup_p90_s * times);
                let left = &mut fleet.pools[i].life.replicas;
                let missing = by(stress.startup).saturating_sub(by(1.0)).min(*left);
                late += missing;
                *left -= missing;
            }
            if late == 0 {
                why_not = Some(
                    "no replica more is on its way when one is needed: demand grows too slowly, or pools keep their replicas".to_owned(),
                );
            }
        }
        let lost = Self::lost(stress, fleet, &mut why_not);
        (why_not, lost)
    }

    /// Whether anything of a class is cached.
    fn caches(&self, class: usize) -> bool {
        let own = &self.carried.asked.fleet.classes[class];
        let warm = own.class.task.expected(&Shift::NONE).0;
        let cold = own.class.task.expected(&Shift { cache_hit: 0.0, ..Shift::NONE }).0;
        cold > warm * (1.0 + 1e-9) || own.finds_prefixes
    }

    /// The pool whose replicas cost most, or have most devices where prices are not known; a provider where there is one pool.
    pub(super) fn strongest(&self) -> Option<Target> {
        let pools = &self.input.plan.pools;
        let priced = pools.iter().all(|facts| facts.replica_usd_per_hour.is_some());
        let worth = |i: &usize| match priced {
            true => pools[*i].replica_usd_per_hour.unwrap_or(0.0),
            false => pools[*i].parallelism.devices as f64,
        };
        // Only where somebody is sent: a pool that others hand over to takes no calls.
        let sent = |i: &usize| {
            let to = Some(Target::Pool(*i));
            self.carried.asked.fleet.classes.iter().any(|class| {
                class.sent.routes.iter().any(|route| Some(route.to) == to)
                    || class.class.task.routes().iter().any(|stage| {
                        class.targets.get(usize::from(*stage)).copied().flatten() == to
                    })
            })
        };
        let met: Vec<usize> = (0..pools.len()).filter(sent).collect();
        match met[..] {
            [] | [_] if !self.input.plan.fleet.providers.is_empty() => Some(Target::Provider(0)),
            [] | [_] => None,
            _ => met.into_iter().max_by(|a, b| worth(a).total_cmp(&worth(b))).map(Target::Pool),
        }
    }

    /// Sends some of those who go elsewhere to the strongest model; says whether there were any.
    fn to_strongest(&self, stress: &Stress, fleet: &mut SimulateInput) -> bool {
        let Some(strongest) = self.strongest() else { return false };
        let mut moved = false;
        for (at, class) in fleet.classes.iter_mut().enumerate() {
            if !stress.concerns(at) || class.sent.routes.iter().any(|route| route.to == strongest) {
                continue;
            }
            class.sent.routes.iter_mut().for_each(|r| r.share *= 1.0 - stress.to_strongest);
            class.sent.routes.push(RouteSpec {
                to: strongest,
                share: stress.to_strongest,
                fallback: Vec::new(),
                shift: None,
            });
            moved = true;
        }
        moved
    }

    /// What is lost of every pool.
    fn lost(
        stress: &Stress,
        fleet: &mut SimulateInput,
        why_not: &mut Option<String>,
    ) -> Vec<Mishap> {
        let pools = 0..fleet.pools.len();
        if stress.lose != UnitOfLoss::Nothing && pools.is_empty() {
            *why_not = Some("there are no replicas of one's own to lose".to_owned());
        }
        match stress.lose {
            UnitOfLoss::Nothing => Vec::new(),
            UnitOfLoss::Replicas(n) => pools.map(|pool| Mishap::Replicas(pool, n)).collect(),
            UnitOfLoss::Nodes(n) => pools.map(|pool| Mishap::Nodes(pool, n)).collect(),
            UnitOfLoss::Zones(n) => pools.map(|pool| Mishap::Zones(pool, n)).collect(),
            UnitOfLoss::Region => {
                let here = |region: usize, pool: usize| -> u32 {
                    let life = &fleet.pools[pool].life;
                    let turns = life.regions.iter().cycle().take(life.replicas as usize);
                    turns.filter(|own| **own == region).count() as u32
                };
                let total = |region: usize| -> u32 { pools.clone().map(|p| here(region, p)).sum() };
                let used: Vec<usize> =
                    (0..fleet.regions.len()).filter(|region| total(*region) > 0).collect();
                if used.len() < 2 && stress.inherits {
                    // Nothing here is lost: what another region of the same size was asked for comes here, too.
                    for class in &mut fleet.classes {
                        for hour in &mut class.class.hours {
                            hour.drift = hour.drift.and(Shift { rate: 2.0, ..Shift::NONE });
                        }
                    }
                    return Vec::new();
                }
                let gone = used.into_iter().max_by_key(|region| total(*region));
                gone.map(Mishap::Region).into_iter().collect()
            }
        }
    }

    /// Tries all of them: the first is the reference.
    pub(super) fn trials(&self, subjects: &[Subject]) -> Result<Vec<Trial>, StudyError> {
        let same = |i: usize| i > 0 && subjects[i].same;
        let wanted: Vec<usize> =
            (0..subjects.len()).filter(|i| subjects[*i].why_not.is_none() && !same(*i)).collect();
        // The reference as surely as every command asks it; the rest are held against it.
        let threads = self.input.plan.fleet.threads;
        let reference = side_by_side(threads, 2, |which| {
            let (peak, lost) = (&subjects[0].peaks[which], &subjects[0].lost[which]);
            peak.question(self.context).load_without(lost).lines()
        })?;
        let sides = side_by_side(threads, 2 * wanted.len(), |i| {
            let (subject, which) = (&subjects[wanted[i / 2]], i % 2);
            let known = (wanted[i / 2] > 0).then_some(&reference[which]);
            self.side(&subject.peaks[which], &subject.lost[which], known)
        })?;
        let mut sides = sides.into_iter();
        let each = subjects.iter().enumerate().map(|(i, subject)| {
            let pair = wanted.contains(&i).then(|| sides.next().zip(sides.next())).flatten();
            Trial {
                sides: pair.map(|(now, planned)| [now, planned]),
                same: same(i) && subject.why_not.is_none(),
            }
        });
        Ok(each.collect())
    }

    /// A fleet at an hour; what it loses is lost all along.
    fn side(
        &self,
        peak: &Peak,
        lost: &[Mishap],
        known: Option<&Vec<LoadLine>>,
    ) -> Result<Side, StudyError> {
        let load = peak.question(self.context).load_without(lost);
        let (load, line) = match known {
            None => {
                let line = load.line()?;
                (load, line)
            }
            Some(known) => {
                let load = load.with(Effort::SCENARIO);
                let line = load.line_near(known)?;
                (load, line)
            }
        };
        let at = match line.demand.clone() {
            Some(at) => at,
            None => load.at(1.0)?,
        };
        Ok(Side { line, at, seen: load.shown_together(1.0, CALLS_SHOWN)? })
    }

    /// The share of good tasks of the class that is nearest to breaking its promise, and what hosted models and tools are asked for; for an answer that is compared with
    /// others of its kind.
    pub(super) fn hosted(
        &self,
        peak: &Peak,
    ) -> Result<(Option<f64>, Option<Simulation>), StudyError> {
        let load = peak.question(self.context).brief().load();
        Ok((worst(&load.at(1.0)?).0, load.shown_hosted(1.0, CALLS_SHOWN)?))
    }

    /// What a fleet comes to at an hour, and what it asks of resources; for an answer that is compared with others of its kind.
    pub(super) fn about(&self, peak: &Peak) -> Result<(Option<f64>, Simulation), StudyError> {
        let load = peak.question(self.context).brief().load();
        Ok((worst(&load.at(1.0)?).0, load.shown_together(1.0, CALLS_SHOWN)?))
    }

    /// What a hard time came to, beside the reference.
    pub(super) fn stressed(
        &self,
        stress: &Stress,
        subject: &Subject,
        trial: &Trial,
        base: &Trial,
    ) -> Stressed {
        let own = if trial.same { base.sides.as_ref() } else { trial.sides.as_ref() };
        let before = base.sides.as_ref();
        let resources = match (own, before) {
            (Some(own), Some(before)) => self.resources(subject, own, before),
            _ => Vec::new(),
        };
        let (relieved, worsened) = moved(&resources);
        let carries = |which: usize| own.and_then(|own| own[which].line.holds);
        let breaks = |which: usize| own.map(|own| first(&own[which]));
        Stressed {
            name: stress.name.clone(),
            about: stress.about.clone(),
            not_applicable: subject.why_not.clone(),
            attainment: Self::attainment(own),
            carries: OfFleets {
                name: "times this demand".to_owned(),
                now: carries(NOW),
                planned: carries(PLANNED),
            },
            first_to_break: OfFleets {
                name: "first to break".to_owned(),
                now: breaks(NOW),
                planned: breaks(PLANNED),
            },
            cost: self.cost(stress, subject, own),
            resources,
            relieved,
            worsened,
            owner: stress.owner.clone(),
        }
    }

    fn attainment(own: Option<&[Side; 2]>) -> StressedAttainment {
        let of = |which: usize| own.map(|own| &own[which]);
        let class = of(PLANNED).and_then(|side| side.at.classes.get(side.at.worst?));
        let said = |which: usize| of(which).map_or((None, None), |side| worst(&side.at));
        let ((now, now_interval), (planned, planned_interval)) = (said(NOW), said(PLANNED));
        StressedAttainment {
            now,
            planned,
            now_interval,
            planned_interval,
            target: class.map(|class| class.target),
            class: class.map(|class| class.class.clone()),
            verdict_now: of(NOW).map(|side| side.at.verdict),
            verdict_planned: of(PLANNED).map(|side| side.at.verdict),
        }
    }

    /// What is asked of resources, and how much of each is used.
    fn resources(
        &self,
        subject: &Subject,
        own: &[Side; 2],
        before: &[Side; 2],
    ) -> Vec<StressedResource> {
        let mut rows = Vec::new();
        let asked = demand(&subject.peaks[PLANNED]);
        let reference = demand(&self.at_busiest(self.carried.asked.fleet.clone()));
        let used =
            |sides: &[Side; 2], which: usize| sides[which].carries().map(|holds| 1.0 / holds);
        let kinds = [
            ("requests", "1/s", asked.0, reference.0),
            ("fresh_prompt_tokens", "tok/s", asked.1, reference.1),
            ("output_tokens", "tok/s", asked.2, reference.2),
        ];
        for (name, unit, asked, reference) in kinds {
            rows.push(StressedResource {
                name: name.to_owned(),
                of: None,
                unit,
                demand: Some(asked),
                reference: Some(reference),
                used_now: used(own, NOW),
                used_planned: used(own, PLANNED),
                reference_used_now: used(before, NOW),
                reference_used_planned: used(before, PLANNED),
            });
        }
        for (i, pool) in self.input.plan.fleet.pools.iter().enumerate() {
            let seats = pool.life.limits.max_num_seqs as f64;
            let shares = |side: &Side| {
                let own = &side.seen.pools[i].utilisation;
                let seats = own.sequences_mean / seats.max(1.0);
                [own.kv_mean, seats, own.bandwidth, own.compute, own.path]
            };
            let waiting = |side: &Side| side.seen.pools[i].utilisation.waiting_mean;
            let names = ["kv", "sequences", "memory_bandwidth", "compute", "host"];
            for (at, name) in names.into_iter().enumerate() {
                rows.push(StressedResource {
                    name: name.to_owned(),
                    of: Some(pool.name.clone()),
                    unit: "share used",
                    demand: None,
                    reference: None,
                    used_now: Some(shares(&own[NOW])[at]),
                    used_planned: Some(shares(&own[PLANNED])[at]),
                    reference_used_now: Some(shares(&before[NOW])[at]),
                    reference_used_planned: Some(shares(&before[PLANNED])[at]),
                });
            }
            rows.push(StressedResource {
                name: "queue".to_owned(),
                of: Some(pool.name.clone()),
                unit: "waiting, per replica",
                demand: Some(waiting(&own[PLANNED])),
                reference: Some(waiting(&before[PLANNED])),
                used_now: None,
                used_planned: None,
                reference_used_now: None,
                reference_used_planned: None,
            });
        }
        for (i, (name, _)) in self.input.plan.fleet.providers.iter().enumerate() {
            let limits: Vec<&'static str> =
                own[PLANNED].seen.providers[i].limits_used.keys().copied().collect();
            for limit in limits {
                let of = |side: &Side| side.seen.providers[i].limits_used.get(limit).copied();
                rows.push(StressedResource {
                    name: limit.to_owned(),
                    of: Some(name.clone()),
                    unit: "share used",
                    demand: None,
                    reference: None,
                    used_now: of(&own[NOW]),
                    used_planned: of(&own[PLANNED]),
                    reference_used_now: of(&before[NOW]),
                    reference_used_planned: of(&before[PLANNED]),
                });
            }
        }
        rows
    }

    fn cost(&self, stress: &Stress, subject: &Subject, own: Option<&[Side; 2]>) -> StressedCost {
        let price = |usd: f64| usd * stress.price;
        let variable =
            |which: usize| own.and_then(|own| self.variable_usd(&own[which].seen)).map(price);
        let all = |which: usize| {
            let nodes = self.fleets.usd[which].map(price)?;
            Some(nodes + variable(which)?)
        };
        let per_success = |which: usize| {
            let seen = &own?[which].seen;
            let good = self.successes(seen, &subject.origin, &|_| Some(1.0))?;
            all(which).filter(|_| good > 0.0).map(|usd| usd / good)
        };
        let (now, planned) = (per_success(NOW), per_success(PLANNED));
        let why = match own {
            None => None,
            Some(_) if all(NOW).is_none() && all(PLANNED).is_none() => {
                Some("a price is not known".to_owned())
            }
            Some(_) if now.is_none() || planned.is_none() => self.why_no_success(),
            Some(_) => None,
        };
        StressedCost {
            now_usd_per_hour: own.and_then(|_| all(NOW)),
            planned_usd_per_hour: own.and_then(|_| all(PLANNED)),
            variable_usd_per_hour: variable(PLANNED),
            now_usd_per_success: now,
            planned_usd_per_success: planned,
            why,
        }
    }

    /// Why what one success costs is not known.
    pub(super) fn why_no_success(&self) -> Option<String> {
        let classes = self.input.plan.fleet.classes.iter().zip(&self.input.success);
        let unknown: Vec<&str> = classes
            .filter(|(_, success)| success.is_none())
            .map(|(class, _)| class.class.name.as_str())
            .collect();
        Some(match unknown[..] {
            [] => "nothing succeeds, or a price is not known".to_owned(),
            _ => format!("nobody says how many tasks of {} succeed", unknown.join(", ")),
        })
    }

    /// Hosted tokens and tools, in dollars an hour; none where a model that is used has no price.
    pub(super) fn variable_usd(&self, seen: &Simulation) -> Option<f64> {
        let hours = seen.seconds * f64::from(seen.runs) / 3600.0;
        let tokens =
            seen.providers.iter().zip(&self.input.plan.token_prices).map(|(own, price)| {
                if own.prompt_tokens + own.output_tokens == 0 {
                    return Some(0.0);
                }
                let price = price.as_ref()?;
                let fresh = own.prompt_tokens.saturating_sub(own.cached_tokens) as f64;
                let usd = fresh * price.input
                    + own.cached_tokens as f64 * price.cached
                    + own.output_tokens as f64 * price.output;
                Some(usd / hours)
            });
        let tokens = tokens.sum::<Option<f64>>()?;
        let tools = seen.tools.iter().zip(&self.input.tool_usd);
        Some(tokens + tools.map(|(tool, usd)| tool.calls as f64 * usd / hours).sum::<f64>())
    }

    /// Successes an hour, where each class's share of them is known, each times what changes it.
    pub(super) fn successes(
        &self,
        seen: &Simulation,
        origin: &[usize],
        times: &dyn Fn(usize) -> Option<f64>,
    ) -> Option<f64> {
        let each = seen.classes.iter().zip(origin).map(|(class, at)| {
            if class.offered == 0 {
                return Some(0.0);
            }
            let share = (self.input.success[*at]? * times(*at)?).min(1.0);
            Some(class.completed_per_s * 3600.0 * share)
        });
        each.sum()
    }

    /// A fleet at the busiest hour, with what its classes are promised.
    pub(super) fn at_busiest(&self, fleet: SimulateInput) -> Peak {
        let asked = &self.carried.asked;
        let (targets, hour, events) = (asked.targets.clone(), asked.hour, asked.events);
        Peak { fleet, targets, hour, events }
    }

    /// Replicas of a pool that carry what comes to a fleet at the busiest hour, about.
    pub(super) fn needs(
        &self,
        fleet: &SimulateInput,
        pool: usize,
        hint: u32,
    ) -> Result<u32, StudyError> {
        let asked = self.carried.asked.at_quantile(self.context).brief();
        let range = (self.input.plan.pools[pool].fewest.max(1), LOOKED_AT);
        let known = self.carried.sized[pool].replicas.carry();
        let short = |question: Question<'_>, about: u32| -> Result<u32, StudyError> {
            Ok(question.needs(pool, range, Some(about.max(1)))?.unwrap_or(range.1))
        };
        // What a short look overlooks, it overlooks in both.
        let needs = short(Question { fleet, ..asked }, hint)?;
        let planned = short(asked, known)?;
        let times = f64::from(needs) / f64::from(planned.max(1));
        Ok((f64::from(known) * times).round().clamp(f64::from(range.0), f64::from(range.1)) as u32)
    }

    /// What comes in an hour of the horizon, on average, against the busiest.
    pub(super) fn mean_load(&self) -> f64 {
        let asked = &self.carried.asked;
        let classes = &self.input.plan.classes;
        let hours = classes.iter().map(|class| class.hours.len()).max().unwrap_or(0);
        let work = |hour: usize, events: bool| -> f64 {
            classes.iter().map(|class| class.expected_tokens(hour, events)).sum()
        };
        let all: f64 = (0..hours).map(|hour| work(hour, true)).sum();
        let peak = work(asked.hour, asked.events) * hours as f64;
        if peak > 0.0 { (all / peak).min(1.0) } else { 0.0 }
    }

    /// What a fleet costs an hour, whoever comes.
    pub(super) fn nodes_usd(&self, which: usize) -> Option<f64> {
        self.fleets.usd[which]
    }
}

/// Calls, fresh and output tokens a second that are asked for on average.
fn demand(peak: &Peak) -> (f64, f64, f64) {
    let each = peak.fleet.classes.iter().map(|own| {
        let Some(hour) = own.class.hours.get(peak.hour) else { return (0.0, 0.0, 0.0) };
        let shift = hour.changed(peak.events);
        let (fresh, output) = own.class.task.expected(&shift);
        let rate = hour.rate * shift.rate;
        (rate * own.class.task.mean_requests(), rate * fresh, rate * output)
    });
    each.fold((0.0, 0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1, sum.2 + own.2))
}

/// What breaks first, as every command says it, and whether it is broken now.
fn first(side: &Side) -> Breaks {
    let broken = side.at.verdict == LoadVerdict::Fails;
    let line = &side.line;
    Breaks {
        resource: line.cause.map(|cause| cause.word().to_owned()),
        of: line.of.clone(),
        signal: line.signal.clone(),
        broken,
    }
}

/// What has more room than in the reference, and what has less, with the planned fleet.
pub(super) fn moved(rows: &[StressedResource]) -> (Vec<Moved>, Vec<Moved>) {
    let (mut relieved, mut worsened) = (Vec::new(), Vec::new());
    for row in rows {
        let shares = row.used_planned.zip(row.reference_used_planned).filter(|_| row.of.is_some());
        let (from, to, unit, part) = match (shares, row.demand.zip(row.reference)) {
            (Some((to, from)), _) => (from, to, "share used", MOVED_PART),
            (None, Some((to, from))) => {
                (from, to, row.unit, if row.name == "queue" { MOVED_QUEUE } else { 0.0 })
            }
            (None, None) => continue,
        };
        if (to - from).abs() <= part.max(MOVED * from.abs()).max(1e-9) {
            continue;
        }
        let list = if to < from { &mut relieved } else { &mut worsened };
        let unit = unit.to_owned();
        list.push(Moved { resource: row.name.clone(), of: row.of.clone(), unit, from, to });
    }
    (relieved, worsened)
}
