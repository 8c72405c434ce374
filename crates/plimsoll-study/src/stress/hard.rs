//! A hard time, tried on the fleet of today and on the planned one.

use plimsoll_sim::{Incident, Mishap, RouteSpec, Target};
use plimsoll_workload::Shift;

use super::result::{
    Breaks, Moved, OfFleets, Stressed, StressedAttainment, StressedCost, StressedResource,
};
use super::{Stress, StressHour, StressInput, side_by_side};
use crate::context::Context;
use crate::headroom::at_peak;
use crate::plan::size::Question;
use crate::plan::sizes::LOOKED_AT;
use crate::plan::table::placed;
use crate::plan::{Carried, PlanInput, UnitOfLoss, nodes};
use crate::sweep::{CurveInput, Judged, binds, judge};
use plimsoll_load::{
    ClassTarget, Effort as LoadEffort, SimulateInput, Simulation, Span, StudyError, ps, simulate,
};

/// How long a hard time is looked at.
struct Effort {
    runs: u32,
    /// Of all runs.
    calls: f64,
    /// Seconds before it counts, and the fewest that do.
    seconds: (f64, f64),
}

const CLOSELY: Effort = Effort { runs: 2, calls: 20_000.0, seconds: (60.0, 60.0) };
/// As long as a review can afford.
const BRIEFLY: Effort = Effort { runs: 1, calls: 8_000.0, seconds: (30.0, 30.0) };

fn effort(input: &StressInput<'_>) -> &'static Effort {
    if input.closely { &CLOSELY } else { &BRIEFLY }
}

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
        for fleet in &mut both {
            (fleet.runs, fleet.threads) = (effort(input).runs, 1);
        }
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

/// A hard time as both fleets meet it.
pub(super) struct Subject {
    /// Why it cannot happen.
    pub(super) why_not: Option<String>,
    pub(super) peaks: [CurveInput; 2],
    pub(super) lost: [Vec<Mishap>; 2],
    /// Replicas of each pool that are there while it lasts.
    pub(super) left: [Vec<u32>; 2],
    /// The class that each was, before some became classes of their own.
    pub(super) origin: Vec<usize>,
    /// Whether nothing that is simulated differs from the reference.
    pub(super) same: bool,
    /// Whether nothing of it reaches a pool.
    around: bool,
}

/// What came of a hard time on one fleet.
pub(super) struct Side {
    pub(super) judged: Judged,
    pub(super) seen: Simulation,
    /// Times the demand that each pool carries; none where none that was tried.
    pub(super) lines: Vec<Line>,
}

/// How much of a hard time a pool carries.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) holds: Option<f64>,
    /// Whether nothing that was tried was too much.
    pub(super) beyond: bool,
    pub(super) binds: Option<String>,
    pub(super) signal: Option<String>,
    /// Whether anybody comes to it.
    pub(super) met: bool,
}

/// What came of a hard time on both.
pub(super) struct Trial {
    pub(super) sides: Option<[Side; 2]>,
    /// Which trial it is the same as.
    same_as: Option<usize>,
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
            let mut targets = asked.targets.clone();
            let (problem, lost, left) = self.apply(stress, &mut fleet, &mut targets);
            why_not = why_not.take().or(problem);
            origin = (0..asked.fleet.classes.len()).collect();
            if stress.share < 1.0 {
                let more = origin.iter().copied().filter(|at| stress.concerns(*at));
                let more: Vec<usize> = more.collect();
                origin.extend(more);
            }
            let peak = CurveInput {
                fleet,
                targets,
                hour,
                events,
                points: 0,
                calls: effort(self.input).calls,
                longer: 0,
                by_resource: false,
            };
            (peak, lost, left)
        };
        let (now, planned) = (each(NOW), each(PLANNED));
        let none = Stress::none(&stress.name, &stress.about);
        let plain =
            Stress { price: 1.0, owner: None, hour: none.hour, classes: None, ..stress.clone() };
        // Without events the busiest hour is the busiest without them.
        let at_peak = stress.hour != StressHour::Baseline || !asked.events;
        let same = at_peak && plain == none;
        let around = at_peak && Stress { limits: 1.0, ..plain } == none;
        if stress.hour == StressHour::Launch && !asked.events {
            why_not = Some("no event changes the demand".to_owned());
        }
        Subject {
            why_not,
            peaks: [now.0, planned.0],
            lost: [now.1, planned.1],
            left: [now.2, planned.2],
            origin,
            same,
            around,
        }
    }

    /// Changes a fleet and what it is promised. Says why it cannot, what is lost, and how many replicas of each pool are left.
    fn apply(
        &self,
        stress: &Stress,
        fleet: &mut SimulateInput,
        targets: &mut Vec<ClassTarget>,
    ) -> (Option<String>, Vec<Mishap>, Vec<u32>) {
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
        let mut left: Vec<u32> = fleet.pools.iter().map(|pool| pool.life.replicas).collect();
        if stress.startup > 1.0 {
            let mut late = 0;
            for (i, (size, facts)) in
                self.carried.sized.iter().zip(&self.input.plan.pools).enumerate()
            {
                if facts.fewest == facts.most {
                    continue;
                }
                let by = |times: f64| size.warm.replicas(facts.startup_p90_s * times);
                let missing = by(stress.startup).saturating_sub(by(1.0)).min(left[i]);
                late += missing;
                left[i] -= missing;
                fleet.pools[i].life.replicas = left[i];
            }
            if late == 0 {
                why_not = Some(
                    "no replica more is on its way when one is needed: demand grows too slowly, or pools keep their replicas".to_owned(),
                );
            }
        }
        let lost = self.lost(stress, fleet, &mut left, &mut why_not);
        (why_not, lost, left)
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

    /// What is lost of every pool, and what is left of it.
    fn lost(
        &self,
        stress: &Stress,
        fleet: &mut SimulateInput,
        left: &mut [u32],
        why_not: &mut Option<String>,
    ) -> Vec<Mishap> {
        let pools = 0..fleet.pools.len();
        if stress.lose != UnitOfLoss::Nothing && pools.is_empty() {
            *why_not = Some("there are no replicas of one's own to lose".to_owned());
        }
        let mut take = |each: &dyn Fn(usize) -> u32| {
            left.iter_mut().enumerate().for_each(|(i, n)| *n = n.saturating_sub(each(i)));
        };
        match stress.lose {
            UnitOfLoss::Nothing => Vec::new(),
            UnitOfLoss::Replicas(n) => {
                take(&|_| n);
                pools.map(|pool| Mishap::Replicas(pool, n)).collect()
            }
            UnitOfLoss::Nodes(n) => {
                take(&|i| n * fleet.pools[i].life.per_node);
                pools.map(|pool| Mishap::Nodes(pool, n)).collect()
            }
            UnitOfLoss::Zones(n) => {
                take(&|i| {
                    let life = &fleet.pools[i].life;
                    n * life.replicas.div_ceil(life.zones.max(1))
                });
                pools.map(|pool| Mishap::Zones(pool, n)).collect()
            }
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
                let Some(gone) = used.into_iter().max_by_key(|region| total(*region)) else {
                    return Vec::new();
                };
                let lost: Vec<u32> = pools.map(|pool| here(gone, pool)).collect();
                take(&|i| lost[i]);
                vec![Mishap::Region(gone)]
            }
        }
    }

    /// Tries all of them: the first is the reference.
    pub(super) fn trials(&self, subjects: &[Subject]) -> Result<Vec<Trial>, StudyError> {
        let first = self.try_both(&subjects[..1], None)?;
        let start = first[0].sides.as_ref().map(|s| s.each_ref().map(|side| side.lines.clone()));
        let rest = self.try_both(&subjects[1..], start.as_ref())?;
        let trials = first.into_iter().chain(rest);
        let same = |subject: &Subject| (subject.same && subject.why_not.is_none()).then_some(0);
        Ok(trials
            .zip(subjects)
            .enumerate()
            .map(|(i, (trial, subject))| Trial {
                same_as: same(subject).filter(|_| i > 0),
                ..trial
            })
            .collect())
    }

    fn try_both(
        &self,
        subjects: &[Subject],
        start: Option<&[Vec<Line>; 2]>,
    ) -> Result<Vec<Trial>, StudyError> {
        let first = start.is_none();
        let wanted: Vec<usize> = (0..subjects.len())
            .filter(|i| subjects[*i].why_not.is_none() && (first || !subjects[*i].same))
            .collect();
        // All of a fleet together, and each of its pools by itself.
        let pools = self.input.plan.pools.len();
        let each = 2 * (1 + pools);
        let looks = side_by_side(self.input.plan.fleet.threads, wanted.len() * each, |i| {
            let (subject, which, look) = (&subjects[wanted[i / each]], i % each % 2, i % each / 2);
            Ok(match look.checked_sub(1) {
                None => {
                    let (judged, seen) = self.whole(&subject.peaks[which], &subject.lost[which])?;
                    Looked::Whole(Box::new((judged, seen)))
                }
                Some(pool) => {
                    let before = start.map(|start| &start[which][pool]);
                    Looked::Line(match before.filter(|_| subject.around) {
                        Some(line) => line.clone(),
                        None => self.line(subject, which, pool)?,
                    })
                }
            })
        })?;
        let mut looks = looks.into_iter();
        let mut trials: Vec<Trial> =
            subjects.iter().map(|_| Trial { sides: None, same_as: None }).collect();
        for i in wanted {
            let mut wholes = Vec::new();
            let mut lines: [Vec<Line>; 2] = [Vec::new(), Vec::new()];
            for (at, look) in looks.by_ref().take(each).enumerate() {
                match look {
                    Looked::Whole(whole) => wholes.push(*whole),
                    Looked::Line(line) => lines[at % 2].push(line),
                }
            }
            let mut sides = wholes.into_iter().zip(lines).map(|((judged, seen), lines)| Side {
                judged,
                seen,
                lines,
            });
            if let (Some(now), Some(planned)) = (sides.next(), sides.next()) {
                trials[i].sides = Some([now, planned]);
            }
        }
        Ok(trials)
    }

    /// A fleet at the peak, all of it together; what it loses is lost for as long as it is looked at.
    pub(super) fn whole(
        &self,
        peak: &CurveInput,
        lost: &[Mishap],
    ) -> Result<(Judged, Simulation), StudyError> {
        let mut fleet = at_peak(peak, effort(self.input).calls, effort(self.input).seconds);
        let (at, lasts) = (ps(fleet.warm_up), Some(ps(1e6)));
        fleet.incidents =
            lost.iter().map(|what| Incident { at, lasts, what: what.clone() }).collect();
        let seen = simulate(&fleet, None, self.context.go_on)?;
        Ok((judge(&seen, peak), seen))
    }

    /// How much of a hard time a pool carries, the others being in nobody's way.
    fn line(&self, subject: &Subject, which: usize, pool: usize) -> Result<Line, StudyError> {
        let peak = &subject.peaks[which];
        let mut fleet = peak.fleet.clone();
        fleet.pools[pool].life.replicas = subject.left[which][pool];
        let question = Question {
            fleet: &fleet,
            targets: &peak.targets,
            hour: peak.hour,
            events: peak.events,
            context: self.context,
            effort: LoadEffort::BRIEF,
        };
        let line = question.load().pool_line(pool)?;
        Ok(Line {
            holds: line.holds,
            beyond: line.beyond,
            binds: line.cause.map(|cause| cause.word().to_owned()),
            signal: line.signal.clone(),
            met: !line.tried.is_empty(),
        })
    }

    /// What a hard time came to, beside the reference.
    pub(super) fn stressed(
        &self,
        stress: &Stress,
        subject: &Subject,
        trial: &Trial,
        base: &Trial,
    ) -> Stressed {
        let own = match trial.same_as {
            Some(_) => base.sides.as_ref(),
            None => trial.sides.as_ref(),
        };
        let before = base.sides.as_ref();
        let resources = match (own, before) {
            (Some(own), Some(before)) => self.resources(subject, own, before),
            _ => Vec::new(),
        };
        let (relieved, worsened) = moved(&resources);
        let carries = |which: usize| own.and_then(|own| weakest(&own[which].lines)?.holds);
        let breaks = |which: usize| own.map(|own| first(&own[which]));
        Stressed {
            name: stress.name.clone(),
            about: stress.about.clone(),
            not_applicable: subject.why_not.clone(),
            attainment: self.attainment(subject, own),
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

    fn attainment(&self, subject: &Subject, own: Option<&[Side; 2]>) -> StressedAttainment {
        let of = |which: usize| own.map(|own| &own[which]);
        let span = |which: usize| {
            let side = of(which)?;
            let (low, high) = side.judged.between?;
            Some(Span {
                low: low.clamp(0.0, 1.0),
                high: high.clamp(0.0, 1.0),
                level: self.input.plan.fleet.level,
                n: side.seen.runs as usize,
            })
        };
        let worst = of(PLANNED).and_then(|side| side.judged.worst);
        let peak = &subject.peaks[PLANNED];
        StressedAttainment {
            now: of(NOW).and_then(|side| side.judged.attainment),
            planned: of(PLANNED).and_then(|side| side.judged.attainment),
            now_interval: span(NOW),
            planned_interval: span(PLANNED),
            target: worst.map(|at| peak.targets[at].attainment),
            class: worst.map(|at| peak.fleet.classes[at].class.name.clone()),
            holds_now: of(NOW).map(|side| side.judged.may_meet()),
            holds_planned: of(PLANNED).map(|side| side.judged.may_meet()),
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
        let reference = demand(&CurveInput {
            fleet: self.carried.asked.fleet.clone(),
            hour: self.carried.asked.hour,
            events: self.carried.asked.events,
            ..subject.peaks[PLANNED].clone()
        });
        let used = |sides: &[Side; 2], which: usize| {
            let line = weakest(&sides[which].lines).filter(|line| !line.beyond);
            line.and_then(|line| line.holds).map(|holds| 1.0 / holds)
        };
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
    pub(super) fn at_busiest(&self, fleet: SimulateInput) -> CurveInput {
        let asked = &self.carried.asked;
        CurveInput {
            fleet,
            targets: asked.targets.clone(),
            hour: asked.hour,
            events: asked.events,
            points: 0,
            calls: effort(self.input).calls,
            longer: 0,
            by_resource: false,
        }
    }

    /// Replicas of a pool that carry what comes to a fleet at the busiest hour, about.
    pub(super) fn needs(
        &self,
        fleet: &SimulateInput,
        pool: usize,
        hint: u32,
    ) -> Result<u32, StudyError> {
        let question = Question { fleet, ..self.carried.asked.at_quantile(self.context) };
        let range = (self.input.plan.pools[pool].fewest.max(1), LOOKED_AT);
        Ok(question.needs(pool, range, Some(hint.max(1)))?.unwrap_or(range.1))
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

    /// Whether anybody is sent to a provider in the first place.
    pub(super) fn hosts(&self) -> bool {
        let classes = self.carried.asked.fleet.classes.iter();
        let mut routes = classes.flat_map(|class| &class.sent.routes);
        routes.any(|route| matches!(route.to, Target::Provider(_)))
    }

    /// What a fleet costs an hour, whoever comes.
    pub(super) fn nodes_usd(&self, which: usize) -> Option<f64> {
        self.fleets.usd[which]
    }
}

enum Looked {
    Whole(Box<(Judged, Simulation)>),
    Line(Line),
}

/// Calls, fresh and output tokens a second that are asked for on average.
fn demand(peak: &CurveInput) -> (f64, f64, f64) {
    let each = peak.fleet.classes.iter().map(|own| {
        let Some(hour) = own.class.hours.get(peak.hour) else { return (0.0, 0.0, 0.0) };
        let shift = hour.changed(peak.events);
        let (fresh, output) = own.class.task.expected(&shift);
        let rate = hour.rate * shift.rate;
        (rate * own.class.task.mean_requests(), rate * fresh, rate * output)
    });
    each.fold((0.0, 0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1, sum.2 + own.2))
}

/// The pool that carries least, of those that anybody comes to.
pub(super) fn weakest(lines: &[Line]) -> Option<&Line> {
    let met = lines.iter().filter(|line| line.met);
    met.min_by(|a, b| a.holds.unwrap_or(0.0).total_cmp(&b.holds.unwrap_or(0.0)))
}

/// What breaks first: what binds now where a promise is broken, else what gives way when more comes.
fn first(side: &Side) -> Breaks {
    let broken = !side.judged.may_meet();
    if broken {
        let (resource, of) = binds(&side.seen, side.judged.fails_by.as_deref());
        return Breaks { resource, of, signal: side.judged.fails_by.clone(), broken };
    }
    let line = weakest(&side.lines);
    let pool = side
        .lines
        .iter()
        .position(|own| line.is_some_and(|line| std::ptr::eq(own, line)))
        .map(|at| side.seen.pools[at].name.clone());
    Breaks {
        resource: line.and_then(|line| line.binds.clone()),
        of: pool,
        signal: line.and_then(|line| line.signal.clone()),
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
