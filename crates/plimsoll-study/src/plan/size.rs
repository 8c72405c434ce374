//! How many replicas of a pool a demand needs, and what was seen with as many.

use plimsoll_load::{
    Cause, ClassTarget, Effort, Load, LoadOutcome, LoadQuestion, LoadVerdict, SimulateInput,
    Simulation, Span, StudyError,
};
use plimsoll_sim::Mishap;
use serde::Serialize;

use crate::context::Context;

/// Calls of the run that is shown with as many replicas as are planned with.
const CALLS_SHOWN: f64 = 8_000.0;
/// Calls of a run in which no request waits for another.
const CALLS_ALONE: f64 = 2_000.0;

/// A demand, and the fleet that is to carry it.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The fleet; how many replicas a pool has is what is asked.
    pub(crate) fleet: &'a SimulateInput,
    /// What its classes are held to.
    pub(crate) targets: &'a [ClassTarget],
    /// The hour whose mix is asked for.
    pub(crate) hour: usize,
    /// Whether events count.
    pub(crate) events: bool,
    pub(crate) context: Context<'a>,
    pub(crate) effort: Effort,
}

/// How a pool was sized.
pub(crate) struct Sized {
    /// Replicas to plan with.
    pub(crate) planned: u32,
    /// Between what they lie: one more than surely fail, and as many as surely hold.
    pub(crate) between: (u32, u32),
    /// Whether not even the most that were looked at are enough.
    pub(crate) too_few: bool,
    /// Whether no number of replicas keeps every promise, and more of them miss as much.
    pub(crate) no_number: bool,
    /// What was seen with as many replicas as are planned with.
    pub(crate) seen: Option<Simulation>,
    /// What was counted there, and with fewer.
    pub(crate) proof: Option<Proof>,
    /// What share of the demand one replica carries by itself.
    pub(crate) one: Option<f64>,
    /// Seconds to the first token where no request waits for another.
    pub(crate) ttft_alone_s: Option<f64>,
    /// The first promise that is broken with too few.
    pub(crate) breaks_by: Option<String>,
    /// What binds then.
    pub(crate) binds: Option<Cause>,
}

/// What was counted with as many replicas as are planned with, and with fewer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// Replicas.
    pub n: u32,
    /// The share of good tasks of the class that has least of it against what it was promised.
    pub attainment: Option<f64>,
    /// Between what that is.
    pub interval: Option<Span>,
    /// The next fewer that were tried; one fewer where the number is small.
    pub n_minus_1: u32,
    /// The same there.
    pub attainment_minus_1: Option<f64>,
    /// The same there.
    pub interval_minus_1: Option<Span>,
    /// What is broken there.
    pub breaks_by: Option<String>,
    /// Whether the first surely keep every promise, and the second surely do not.
    pub proven: bool,
    /// Simulated seconds of the first.
    pub seconds: f64,
}

/// A promise that nobody can keep, however many replicas there are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// The pool.
    pub pool: String,
    /// The class.
    pub class: String,
    /// What is promised: `ttft`, `tpot`, `e2e`, `gap`, `errors`, or a tail by its key.
    pub promise: String,
    /// What is promised, in milliseconds.
    pub promised_ms: Option<f64>,
    /// What is seen where nobody else is served, at the percentile that is promised, in milliseconds.
    pub floor_ms: Option<f64>,
    /// That percentile, between 0 and 1.
    pub percentile: f64,
    /// The share of tasks that fail in any way even then.
    pub failing: Option<f64>,
    /// Why most of these fail.
    pub failing_by: Option<&'static str>,
}

impl<'a> Question<'a> {
    /// The same for an answer that is compared with another of its kind.
    pub(crate) fn brief(self) -> Self {
        Self { effort: Effort::BRIEF, ..self }
    }

    /// The same where only the answer matters, and not how sure it is.
    pub(crate) fn unsure(self) -> Self {
        Self { effort: Effort { sure: false, ..self.effort }, ..self }
    }

    /// How much of it is carried.
    pub(crate) fn load(&self) -> Load<'a> {
        self.load_without(&[])
    }

    /// The same of a fleet that has lost something, all along.
    pub(crate) fn load_without(&self, lost: &'a [Mishap]) -> Load<'a> {
        let question = LoadQuestion {
            fleet: self.fleet,
            targets: self.targets,
            hour: self.hour,
            events: self.events,
            lost,
        };
        Load::of(&question, self.context.memo, self.context.go_on).with(self.effort)
    }

    /// The same with other replicas of a pool.
    pub(crate) fn with_replicas(&self, pool: usize, replicas: u32) -> SimulateInput {
        let mut fleet = self.fleet.clone();
        fleet.pools[pool].life.replicas = replicas;
        fleet
    }

    /// What nobody can keep of what is promised to those who come to a pool, however many replicas there are.
    pub(crate) fn floor(&self, pool: usize) -> Result<Option<Floor>, StudyError> {
        match self.load().pool_unloaded(pool)? {
            Some(alone) if alone.verdict == LoadVerdict::Fails => {
                let seen = self.load().pool_alone(pool, CALLS_ALONE)?;
                Ok(floor(self, pool, &alone, seen.as_ref()))
            }
            _ => Ok(None),
        }
    }

    /// What share of the demand one replica of a pool carries, about; none where that is none of it. The search begins at `about`, or at the demand.
    pub(crate) fn one(&self, pool: usize, about: Option<f64>) -> Result<Option<f64>, StudyError> {
        let fleet = self.with_replicas(pool, 1);
        let line = Question { fleet: &fleet, ..*self }.brief().load().pool_line(pool, about)?;
        Ok(line.holds)
    }

    /// As many replicas of a pool as carry the demand, between the fewest and the most; none where the most are too few.
    pub(crate) fn needs(
        &self,
        pool: usize,
        range: (u32, u32),
        hint: Option<u32>,
    ) -> Result<Option<u32>, StudyError> {
        let found = self.load().least(pool, range, hint)?;
        Ok(found.map_or(Some(range.0), |found| match found.unfinished {
            // Whoever has no time keeps what was thought at first.
            true => found.n.or(hint).or(Some(range.0)),
            false => found.n,
        }))
    }

    /// Sizes a pool, between the fewest and the most. What its engines hold is counted over windows of so many seconds.
    pub(crate) fn size(
        &self,
        pool: usize,
        (fewest, most): (u32, u32),
        hint: Option<u32>,
        window_s: f64,
    ) -> Result<Sized, StudyError> {
        let mut sized = Sized {
            planned: fewest,
            between: (fewest, fewest),
            too_few: false,
            no_number: false,
            seen: None,
            proof: None,
            one: None,
            ttft_alone_s: None,
            breaks_by: None,
            binds: None,
        };
        let Some(found) = self.load().least(pool, (fewest, most), hint)? else {
            return Ok(sized);
        };
        (sized.breaks_by, sized.binds) = (found.signal, found.cause);
        if found.at.is_none() && found.unloaded.verdict == LoadVerdict::Fails {
            return Ok(Sized { planned: 0, between: (0, 0), ..sized });
        }
        sized.no_number = found.no_number;
        sized.too_few = found.n.is_none() && !found.unfinished;
        let n = found.n.unwrap_or(if found.unfinished { hint.unwrap_or(fewest) } else { most });
        sized.planned = n;
        sized.between = (found.between.0.min(n), found.between.1.max(n));
        // A few replicas carry less each than many; one that is enough may carry any multiple.
        sized.one = self.one(pool, (n > 1).then(|| 0.85 / f64::from(n)))?;
        let mut fleet = self.with_replicas(pool, n);
        fleet.window = Some(window_s);
        let shown = Question { fleet: &fleet, ..*self }.load();
        sized.seen = shown.pool_shown(pool, 1.0, CALLS_SHOWN, None)?;
        let alone = self.load().pool_alone(pool, CALLS_ALONE)?;
        let ttft = alone.iter().flat_map(|seen| &seen.classes).filter_map(|class| class.ttft_ms);
        sized.ttft_alone_s = ttft.map(|d| d.p50 / 1e3).reduce(f64::min);
        sized.proof = found.at.filter(|_| found.n.is_some()).map(|at| {
            let fewer = found.fewer.as_ref();
            let (attainment, interval) = worst(&at);
            let before = fewer.map(|(_, outcome)| worst(outcome));
            let fails = fewer.is_some_and(|(_, own)| own.verdict == LoadVerdict::Fails);
            Proof {
                n,
                attainment,
                interval,
                n_minus_1: fewer.map_or(n - 1, |(fewer, _)| *fewer),
                // With nobody there, nothing is good.
                attainment_minus_1: match n {
                    1 => Some(0.0),
                    _ => before.and_then(|before| before.0),
                },
                interval_minus_1: before.and_then(|before| before.1),
                breaks_by: sized.breaks_by.clone(),
                // Where nothing says what is good, nothing was counted that chance could have changed.
                proven: at.verdict == LoadVerdict::Carried
                    && (fails || n == 1)
                    && attainment.is_some(),
                seconds: at.seconds,
            }
        });
        Ok(sized)
    }
}

/// The share of good tasks of the class that is nearest to breaking its promise, and how sure that is.
pub(crate) fn worst(outcome: &LoadOutcome) -> (Option<f64>, Option<Span>) {
    let class = outcome.worst.and_then(|at| outcome.classes.get(at));
    class.map_or((None, None), |class| (class.attainment, class.interval))
}

/// What keeps a promise from being kept where no request waits for another.
fn floor(
    question: &Question<'_>,
    pool: usize,
    alone: &LoadOutcome,
    seen: Option<&Simulation>,
) -> Option<Floor> {
    let counted = alone.worst.and_then(|at| alone.classes.get(at))?;
    let by = alone.signal.as_deref()?;
    let at = question.fleet.classes.iter().position(|c| c.class.name == counted.class)?;
    let (own, target) = (&question.fleet.classes[at], &question.targets[at]);
    let good = own.sent.good;
    let ms = |ps: Option<u64>| ps.map(|ps| ps as f64 / 1e9);
    let seen = seen.and_then(|seen| seen.classes.iter().find(|own| own.name == counted.class));
    let tail = target.tails.iter().find(|tail| tail.key == by);
    let (promised, percentile) = match tail {
        Some(tail) => (Some(tail.most_ms), tail.percentile.share()),
        None => {
            let promised = match by {
                "ttft" => ms(good.ttft),
                "tpot" => ms(good.tpot),
                "e2e" => ms(good.e2e),
                "gap" => ms(good.gap),
                _ => None,
            };
            (promised, target.attainment)
        }
    };
    let of = seen.and_then(|seen| match by.split('_').next().unwrap_or(by) {
        "ttft" => seen.ttft_ms,
        "tpot" => seen.tpot_ms,
        "e2e" => seen.e2e_ms,
        "itl" => seen.itl_ms,
        _ => None,
    });
    // Of the percentiles that are kept, the nearest that is not above.
    let floor_ms = of.map(|d| match percentile {
        p if p >= 0.99 => d.p99,
        p if p >= 0.95 => d.p95,
        p if p >= 0.9 => d.p90,
        _ => d.p50,
    });
    let failing = seen.map(|seen| {
        let share = (seen.offered - seen.completed - seen.left) as f64 / seen.offered.max(1) as f64;
        let causes = [
            (seen.too_long, "longer than `max_model_len` or a cache"),
            (seen.tool_failed, "failed by a tool"),
            (seen.timed_out, "over their deadline"),
            (seen.rejected - seen.too_long, "turned away"),
        ];
        let most = causes.into_iter().max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0);
        (share, most.map(|(_, by)| by))
    });
    Some(Floor {
        pool: question.fleet.pools[pool].name.clone(),
        class: counted.class.clone(),
        promise: by.to_owned(),
        promised_ms: promised,
        floor_ms,
        percentile,
        failing: failing.map(|(share, _)| share),
        failing_by: failing.and_then(|(_, by)| by),
    })
}
