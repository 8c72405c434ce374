//! What requests got: how long they waited, what was refused, what it cost and how their tasks ended.

use plimsoll_stats::Sketch;
use plimsoll_study::End;
use plimsoll_workload::Known;

use super::columns::{Codes, Flags, Numbers, Reals, Stamps};
use super::history::{Range, is_answered, is_first};
use super::survey::{self, Demand, Survey};
use super::units::{Unit, in_order, units};
use super::{Classing, Counts, ScanInput, Verdicts, damaged, end_of, task_hash, verdicts};
use crate::column::Columns;
use crate::error::LedgerError;
use crate::store::Ledger;

/// What is asked of how requests were served.
#[derive(Clone, Debug)]
pub struct ServiceInput {
    /// Classes, filters and threads; nothing else of it is used.
    pub scan: ScanInput,
    /// Only what arrived then or later: in seconds from 1970, or from the first arrival where the log has no date. With it, or with
    /// `until_s`, rows without a time are left out.
    pub from_s: Option<i64>,
    /// Only what arrived earlier.
    pub until_s: Option<i64>,
    /// What each of the classes of [`Classing::Named`] was promised, in their order; without any, nothing is judged.
    pub slo: Vec<Option<ServiceSlo>>,
}

/// What a class was promised: none of these for what was not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceSlo {
    /// The most seconds to the first token.
    pub ttft_s: Option<f64>,
    /// The most seconds from a token to the next, in the mean over the request.
    pub tpot_s: Option<f64>,
    /// The most seconds to the last token.
    pub e2e_s: Option<f64>,
}

/// What the requests of a class got.
///
/// Counts are weighted where a log is a sample. Quantiles are of attempts that were answered and know the time; each is within
/// [`Sketch::RELATIVE_ERROR`] or a microsecond, and weights are rounded to whole ones for them, and to no less than one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ClassService {
    /// What it is called.
    pub class: String,
    /// First attempts.
    pub requests: f64,
    /// Rows that are first attempts: what `requests` is where each stands for itself, and what `tasks` are counted over.
    pub first_rows: u64,
    /// All attempts.
    pub attempts: f64,
    /// Attempts that a limit refused.
    pub limited: f64,
    /// Attempts that failed.
    pub failed: f64,
    /// Attempts that were answered, or do not say how they ended.
    pub answered: f64,
    /// Seconds to the first token, at the median.
    pub ttft_p50_s: Option<f64>,
    /// Seconds to the first token that one in twenty exceeds.
    pub ttft_p95_s: Option<f64>,
    /// Seconds to the first token that one in a hundred exceeds.
    pub ttft_p99_s: Option<f64>,
    /// Seconds between tokens that one in twenty exceeds: of the mean gap of each request, which is (e2e - ttft) / (output - 1) where
    /// there is more than one token. Single gaps are not logged, and some are longer.
    pub itl_p95_s: Option<f64>,
    /// The same, of one in a hundred.
    pub itl_p99_s: Option<f64>,
    /// Seconds to the last token that one in twenty exceeds.
    pub e2e_p95_s: Option<f64>,
    /// Attempts that were judged and got what they were promised; none where nothing was.
    pub good: Option<f64>,
    /// Attempts that were answered and know whatever was promised.
    pub judged: f64,
    /// What attempts cost, as far as it is known.
    pub cost_usd: Option<f64>,
    /// Attempts whose cost is known.
    pub costed: f64,
    /// Tasks, which may have requests of several classes; a request that names none is one of its own. Never weighted.
    pub tasks: u64,
    /// Those whose outcome is known.
    pub resolved: u64,
    /// Those that succeeded.
    pub succeeded: u64,
}

/// The smallest difference of times that matters.
const RESOLUTION_S: f64 = 1e-6;
/// What all classes together are called.
const ALL: &str = "all";

/// The columns that are read, besides those that classes and filters need.
const READ: [&str; 13] = [
    "ts_arrival",
    "clock",
    "output_tokens",
    "sample_weight",
    "attempt",
    "status",
    "ttft_s",
    "e2e_s",
    "cost_usd",
    "response_cached",
    "task_id",
    "success",
    "source",
];

impl Ledger {
    /// How requests were served: all together, then class by class.
    pub fn service(&self, input: &ServiceInput) -> Result<Vec<ClassService>, LedgerError> {
        let survey = survey::survey(self, &input.scan)?;
        let range = Range::of(&survey, input.from_s, input.until_s);
        let slo = promised(input, &survey);
        let mut wanted = survey.with(&READ);
        // Names of requests cost more than all the rest, and only matter to those that say how they ended.
        if survey::says_any(self, &["success"])? {
            wanted.insert("request_id");
        }
        let mut sums = Sums::new(slo.len());
        let reading = Reading { survey: &survey, range: &range, slo: &slo };
        let work = |unit: &Unit| {
            let mut own = Sums::new(slo.len());
            unit.read(self, &wanted, |path, batch| {
                reading.batch(batch, &mut own).map_err(|problem| damaged(path, problem))
            })?;
            own.class_tasks.iter_mut().chain([&mut own.tasks]).for_each(Tasks::settle);
            Ok(own)
        };
        let units = units(self, &survey.clock)?;
        in_order(&units, input.scan.threads, work, |own: Sums| sums.add(own))?;
        let verdicts = verdicts(self)?;
        let mut all = ClassSums::default();
        sums.classes.iter().for_each(|class| all.add(class));
        let any = slo.iter().any(Option::is_some);
        let mut services = vec![all.service(ALL, any, &mut sums.tasks, &verdicts)];
        let names = survey.classes.iter().zip(&slo);
        for ((class, tasks), (name, slo)) in
            sums.classes.iter().zip(&mut sums.class_tasks).zip(names)
        {
            services.push(class.service(name, slo.is_some(), tasks, &verdicts));
        }
        Ok(services)
    }
}

/// What the classes that have rows were promised; the rest was promised nothing.
fn promised(input: &ServiceInput, survey: &Survey) -> Vec<Option<ServiceSlo>> {
    let named = match &input.scan.classes {
        Classing::Named(named) => named.as_slice(),
        Classing::Columns { .. } => &[],
    };
    let of = |name: &String| {
        let place = named.iter().position(|class| class.name == *name)?;
        input.slo.get(place).copied().flatten()
    };
    survey.classes.iter().map(of).collect()
}

/// Rows of a ledger on their way to sums.
struct Reading<'a> {
    survey: &'a Survey,
    range: &'a Range,
    slo: &'a [Option<ServiceSlo>],
}

impl Reading<'_> {
    fn batch(&self, batch: &Columns, own: &mut Sums) -> Result<(), String> {
        let at = Stamps::of(batch, "ts_arrival")?;
        let on_clock = survey::on_clock(batch, &self.survey.clock)?;
        let (keep, class) = (self.survey.kept(batch)?, self.survey.class_of(batch)?);
        let demand = Demand::of(batch)?;
        let output = Numbers::of(batch, "output_tokens")?;
        let real = |name: &str| Reals::of(batch, name);
        let (weight, cost) = (real("sample_weight")?, real("cost_usd")?);
        let (ttft, e2e) = (real("ttft_s")?, real("e2e_s")?);
        let attempt = Numbers::of(batch, "attempt")?;
        let status = Codes::of(batch, "status", end_of)?;
        let success = Flags::of(batch, "success")?;
        let task = Codes::of(batch, "task_id", task_hash)?;
        let request = Codes::of(batch, "request_id", task_hash)?;
        let source = Codes::of(batch, "source", task_hash)?;
        for i in (0..batch.rows).filter(|i| keep.has(*i) && demand.has(*i)) {
            if !self.range.has(at.get(i).filter(|_| on_clock.has(i))) {
                continue;
            }
            let row = Attempt {
                is_first: is_first(attempt.get(i)),
                end: status.get(i).unwrap_or(End::Unknown),
                weight: weight.get(i).unwrap_or(1.0),
                output: output.get(i),
                ttft_s: ttft.get(i),
                e2e_s: e2e.get(i),
                cost_usd: cost.get(i),
            };
            let class = class.get(i) as usize;
            own.classes[class].count(&row, self.slo[class].as_ref());
            for tasks in [&mut own.tasks, &mut own.class_tasks[class]] {
                match (task.get(i), request.get(i), success.get(i)) {
                    (Some(task), ..) => tasks.named.tasks.push((task, success.get(i))),
                    (None, request, said) => {
                        tasks.nameless += u64::from(row.is_first);
                        if let (Some(request), Some(said)) = (request, said) {
                            // Two sources may give the same name.
                            let key = request ^ source.get(i).unwrap_or(0).rotate_left(1);
                            tasks.requests.tasks.push((key, Some(said)));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// What a row says of one attempt.
struct Attempt {
    is_first: bool,
    end: End,
    weight: f64,
    output: Option<u32>,
    ttft_s: Option<f64>,
    e2e_s: Option<f64>,
    cost_usd: Option<f64>,
}

impl Attempt {
    /// The mean gap between tokens; none where there is none, or it is not known.
    fn itl_s(&self) -> Option<f64> {
        let gaps = self.output?.checked_sub(1).filter(|gaps| *gaps > 0)?;
        Some((self.e2e_s? - self.ttft_s?).max(0.0) / f64::from(gaps))
    }
}

impl ServiceSlo {
    /// Whether an attempt got all that was promised; none where it does not know it.
    fn is_met(&self, row: &Attempt) -> Option<bool> {
        // A single token comes after no gap, and so after none that is too long.
        let tpot_s = if row.output.is_some_and(|n| n <= 1) { Some(0.0) } else { row.itl_s() };
        let mut met = true;
        for (most, own) in
            [(self.ttft_s, row.ttft_s), (self.tpot_s, tpot_s), (self.e2e_s, row.e2e_s)]
        {
            if let Some(most) = most {
                met &= own? <= most;
            }
        }
        Some(met)
    }
}

/// What a stretch of rows comes to.
struct Sums {
    classes: Vec<ClassSums>,
    class_tasks: Vec<Tasks>,
    /// Those of all classes: one may be of several.
    tasks: Tasks,
}

impl Sums {
    fn new(classes: usize) -> Self {
        Self {
            classes: (0..classes).map(|_| ClassSums::default()).collect(),
            class_tasks: (0..classes).map(|_| Tasks::default()).collect(),
            tasks: Tasks::default(),
        }
    }

    fn add(&mut self, more: Self) {
        self.classes.iter_mut().zip(&more.classes).for_each(|(own, more)| own.add(more));
        self.class_tasks.iter_mut().zip(more.class_tasks).for_each(|(own, more)| own.add(more));
        self.tasks.add(more.tasks);
    }
}

/// Tasks, and what rows themselves say of how they ended.
#[derive(Default)]
struct Tasks {
    named: Counts,
    /// First attempts of requests that name no task.
    nameless: u64,
    /// Requests that name no task, as far as they say how they ended.
    requests: Counts,
}

impl Tasks {
    fn settle(&mut self) {
        self.named.settle();
        self.requests.settle();
    }

    fn add(&mut self, more: Self) {
        self.named.add(more.named);
        self.nameless += more.nameless;
        self.requests.add(more.requests);
    }
}

/// What the rows of a class come to.
#[derive(Default)]
struct ClassSums {
    requests: f64,
    first_rows: u64,
    attempts: f64,
    limited: f64,
    failed: f64,
    answered: f64,
    good: f64,
    judged: f64,
    cost_usd: Known,
    ttft_s: Times,
    itl_s: Times,
    e2e_s: Times,
}

impl ClassSums {
    fn count(&mut self, row: &Attempt, slo: Option<&ServiceSlo>) {
        let weight = row.weight;
        self.attempts += weight;
        if row.is_first {
            self.requests += weight;
            self.first_rows += 1;
        }
        if let Some(cost) = row.cost_usd {
            self.cost_usd.add(cost, weight);
        }
        match row.end {
            End::Limited => self.limited += weight,
            End::Failed => self.failed += weight,
            End::Ok | End::Cancelled | End::Unknown => {}
        }
        if !is_answered(row.end) {
            return;
        }
        self.answered += weight;
        self.ttft_s.record(row.ttft_s, weight);
        self.itl_s.record(row.itl_s(), weight);
        self.e2e_s.record(row.e2e_s, weight);
        if let Some(met) = slo.and_then(|slo| slo.is_met(row)) {
            self.judged += weight;
            if met {
                self.good += weight;
            }
        }
    }

    fn add(&mut self, more: &Self) {
        self.requests += more.requests;
        self.first_rows += more.first_rows;
        self.attempts += more.attempts;
        self.limited += more.limited;
        self.failed += more.failed;
        self.answered += more.answered;
        self.good += more.good;
        self.judged += more.judged;
        self.cost_usd.merge(more.cost_usd);
        self.ttft_s.add(&more.ttft_s);
        self.itl_s.add(&more.itl_s);
        self.e2e_s.add(&more.e2e_s);
    }

    fn service(
        &self,
        class: &str,
        is_promised: bool,
        tasks: &mut Tasks,
        verdicts: &Verdicts,
    ) -> ClassService {
        let named = tasks.named.ended(verdicts);
        // What was found out later is of tasks, and these have no name.
        let requests = tasks.requests.ended(&Verdicts::new());
        ClassService {
            class: class.to_owned(),
            requests: self.requests,
            first_rows: self.first_rows,
            attempts: self.attempts,
            limited: self.limited,
            failed: self.failed,
            answered: self.answered,
            ttft_p50_s: self.ttft_s.quantile(0.5),
            ttft_p95_s: self.ttft_s.quantile(0.95),
            ttft_p99_s: self.ttft_s.quantile(0.99),
            itl_p95_s: self.itl_s.quantile(0.95),
            itl_p99_s: self.itl_s.quantile(0.99),
            e2e_p95_s: self.e2e_s.quantile(0.95),
            good: is_promised.then_some(self.good),
            judged: self.judged,
            cost_usd: (self.cost_usd.of > 0.0).then_some(self.cost_usd.sum),
            costed: self.cost_usd.of,
            // A request may have begun before the first row that is asked for, and still say how it ended.
            tasks: named.tasks + tasks.nameless.max(requests.tasks),
            resolved: named.resolved + requests.resolved,
            succeeded: named.succeeded + requests.succeeded,
        }
    }
}

/// Times of a class; it takes no room before the first.
#[derive(Default)]
struct Times(Option<Sketch>);

impl Times {
    fn sketch(&mut self) -> &mut Sketch {
        self.0.get_or_insert_with(|| Sketch::new(RESOLUTION_S))
    }

    fn record(&mut self, seconds: Option<f64>, weight: f64) {
        if let Some(seconds) = seconds {
            self.sketch().record(seconds, weight.round().max(1.0) as u64);
        }
    }

    fn add(&mut self, more: &Self) {
        if let Some(more) = &more.0 {
            self.sketch().merge(more);
        }
    }

    fn quantile(&self, p: f64) -> Option<f64> {
        self.0.as_ref()?.quantile(p)
    }
}
