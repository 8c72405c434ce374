//! The ledger, read once for everything that a profile needs.
//!
//! Row groups are put together to stretches of time that do not overlap, which threads gather apart and the caller appends in
//! order: the answer is the same on any number of them.

mod columns;
mod content;
mod history;
#[cfg(test)]
mod history_tests;
mod ids;
mod lengths;
mod series;
mod service;
#[cfg(test)]
mod service_tests;
mod survey;
mod tasks;
#[cfg(test)]
mod tests;
mod units;
mod usage;
#[cfg(test)]
mod usage_tests;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::Path;

use parquet::basic::Type;
use plimsoll_study::{Clock, EXACT_ROWS, End, Gathered, Gathering, Pace, PrefixReuse, Seen};

use crate::column::Columns;
use crate::error::LedgerError;
use crate::row::Row;
use crate::store::Ledger;
use columns::{Codes, Flags, Numbers, Reals, Stamps};
pub use history::{HistoryInput, HistoryScan};
pub use lengths::Asked;
pub use service::{ClassService, ServiceInput, ServiceSlo};
pub use survey::{OnClock, Survey};
use units::{Unit, in_order};
pub use usage::{PlaceRule, UsageInput};
pub use windows::WindowSum;

/// What is asked of a scan.
#[derive(Clone, Debug)]
pub struct ScanInput {
    /// What requests are counted by.
    pub classes: Classing,
    /// Only rows that have all of these values in these columns.
    pub only: Vec<(String, String)>,
    /// How long requests take where the ledger does not say it.
    pub pace: Option<Pace>,
    /// Sizes of prefix caches, in blocks.
    pub cache_blocks: Vec<u64>,
    /// Threads to use; the answer does not depend on it.
    pub threads: NonZero<usize>,
}

/// What requests are counted by.
#[derive(Clone, Debug)]
pub enum Classing {
    /// The values of these columns; beyond `most` the rarest are one class.
    Columns {
        /// Columns of the ledger; none for one class.
        names: Vec<String>,
        /// The most classes.
        most: usize,
    },
    /// The first of these classes all of whose columns match; what matches none is a class of its own.
    Named(Vec<NamedClass>),
}

/// A class as a scenario describes it.
#[derive(Clone, Debug)]
pub struct NamedClass {
    /// What it is called.
    pub name: String,
    /// Columns, and the values that its rows have; `*` stands for any text.
    pub columns: BTreeMap<String, String>,
}

/// What a scan has found.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// What a profile is made of.
    pub gathered: Gathered,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// The first arrival, in nanoseconds from 1970, where rows have a clock in common.
    pub first_ns: Option<i64>,
    /// Where the clock stood then.
    pub clock: Option<Clock>,
    /// Why rows have no time.
    pub no_clock: Option<String>,
    /// What prompts share.
    pub reuse: Option<PrefixReuse>,
    /// What is known of how tasks ended.
    pub outcomes: Option<TaskOutcomes>,
    /// What should be known.
    pub notes: Vec<String>,
}

/// How tasks ended, as far as it is known by now.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct TaskOutcomes {
    /// Tasks that requests name.
    pub tasks: u64,
    /// Those whose outcome is known.
    pub resolved: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Tasks whose outcome nobody has said, over all.
    pub unresolved_share: f64,
}

/// The class of rows that no named class matches, or of the rarest.
const OTHER: &str = "other";

impl Ledger {
    /// Reads every request once.
    pub fn scan(&self, input: &ScanInput) -> Result<Scanned, LedgerError> {
        let survey = survey::survey(self, input)?;
        let clock = survey.clock.clone();
        let mut units = units::units(self, &clock)?;
        units.retain(|unit| !unit.groups.is_empty());
        let shape = Gathering {
            rows_expected: Some(self.rows()),
            exact_rows: EXACT_ROWS,
            pace: input.pace.clone(),
        };
        let mut gathered = Gathered::new(&shape);
        let mut counts = Counts::default();
        let reading = Reading { ledger: self, clock: &clock, survey: &survey, shape: &shape };
        let gather = |unit: &Unit| reading.unit(unit);
        in_order(&units, input.threads, gather, |(stretch, more): (Gathered, Counts)| {
            gathered.append(stretch);
            counts.add(more);
        })?;
        let mut notes = counts.notes(&survey);
        let (reuse, more) = content::reuse(self, &survey, input)?;
        notes.extend(more);
        let outcomes = counts.outcomes(self)?;
        let first_ns = survey.first_ns;
        let clock_then = first_ns.filter(|_| survey.is_absolute()).and_then(clock_at);
        let no_clock = clock.is_none().then(|| survey.why_no_clock());
        Ok(Scanned {
            gathered,
            classes: survey.classes.clone(),
            clients: survey.clients.clone(),
            first_ns,
            clock: clock_then,
            no_clock,
            reuse,
            outcomes,
            notes,
        })
    }

    /// The clock that all rows have in common: UTC where some have it, else the start of their logs.
    pub(crate) fn common_clock(&self) -> Option<String> {
        let spans = || self.manifest().requests.iter().flat_map(|part| &part.clocks);
        let has = |name: &str| spans().any(|span| span.clock == name);
        survey::COMMON.into_iter().find(|name| has(name)).map(str::to_owned)
    }
}

/// What should be known of rows that were left out, and of classes that were put together.
fn notes(response_cached: u64, merged: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if response_cached > 0 {
        notes.push(format!(
            "{response_cached} requests were served by a cache of whole answers: no demand on a model, and left out"
        ));
    }
    if merged > 0 {
        notes.push(format!(
            "{merged} classes with the fewest rows are counted together as `{OTHER}`"
        ));
    }
    notes
}

/// The hour and the day of the week of a moment, UTC.
fn clock_at(ns: i64) -> Option<Clock> {
    let at = jiff::Timestamp::from_nanosecond(i128::from(ns)).ok()?;
    let civil = jiff::tz::Offset::UTC.to_datetime(at);
    let hour = u8::try_from(civil.hour()).ok()?;
    let weekday = u8::try_from(civil.weekday().to_monday_zero_offset()).ok()?;
    Some(Clock { hour, weekday })
}

/// Rows of a ledger on their way to a profile.
struct Reading<'a> {
    ledger: &'a Ledger,
    clock: &'a Option<String>,
    survey: &'a survey::Survey,
    shape: &'a Gathering,
}

/// What is counted beside the profile.
#[derive(Default)]
struct Counts {
    response_cached: u64,
    /// Rows that stand for no request.
    weightless: u64,
    /// Hashes of the files of rows that count from the start of their log.
    files: BTreeSet<u64>,
    /// Hashes of tasks, and whether the log itself says how they ended: a head with one entry a task, and a tail as it came.
    tasks: Vec<(u64, Option<bool>)>,
    /// How long the head is.
    settled: usize,
}

impl Counts {
    fn add(&mut self, mut more: Self) {
        self.response_cached += more.response_cached;
        self.weightless += more.weightless;
        self.files.append(&mut more.files);
        self.tasks.append(&mut more.tasks);
        // Each time at least twice as many as the last: all of the work is that of sorting a few times over, and never more than
        // twice the tasks are held.
        if self.tasks.len() - self.settled > self.settled {
            self.settle();
        }
    }

    /// One entry a task; the log's last word counts.
    fn settle(&mut self) {
        if self.settled == self.tasks.len() {
            return;
        }
        // Stable: what came later stays later.
        self.tasks.sort_by_key(|(task, _)| *task);
        self.tasks.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = later.1.or(first.1);
            }
            same
        });
        self.settled = self.tasks.len();
    }

    /// What should be known of rows that were left out or lie over each other, and of classes that were put together.
    fn notes(&self, survey: &survey::Survey) -> Vec<String> {
        let mut notes = survey.clock_notes();
        if self.files.len() > 1 {
            notes.push(format!(
                "times count from the start of a log, and rows are of {} files: they lie over each other, unless `plimsoll ingest --start` said when each began; `--where file=NAME` takes one",
                self.files.len()
            ));
        }
        notes.extend(self::notes(self.response_cached, survey.merged));
        if self.weightless > 0 {
            notes.push(format!(
                "{} rows have a sample weight of zero: they stand for no request, and are left out",
                self.weightless
            ));
        }
        notes
    }

    fn outcomes(&mut self, ledger: &Ledger) -> Result<Option<TaskOutcomes>, LedgerError> {
        if self.tasks.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.ended(&verdicts(ledger)?)))
    }

    /// How tasks ended: what was found out later counts, else what the log itself says.
    fn ended(&mut self, later: &Verdicts) -> TaskOutcomes {
        self.settle();
        let verdicts =
            self.tasks.iter().map(|(task, own)| later.get(task).map(|(_, s)| *s).or(*own));
        let (mut resolved, mut succeeded) = (0, 0);
        for verdict in verdicts.flatten() {
            resolved += 1;
            succeeded += u64::from(verdict);
        }
        let tasks = self.tasks.len() as u64;
        let unresolved_share = (tasks - resolved) as f64 / tasks.max(1) as f64;
        TaskOutcomes { tasks, resolved, succeeded, unresolved_share }
    }
}

/// What was found out of tasks, by their hashes, and when.
type Verdicts = BTreeMap<u64, (Option<i64>, bool)>;

/// The last word on each task in the table of outcomes.
fn verdicts(ledger: &Ledger) -> Result<Verdicts, LedgerError> {
    let mut verdicts = Verdicts::new();
    for row in ledger.outcomes()? {
        if let (Some(task), Some(success)) = (row.task_id, row.success) {
            let known = verdicts.entry(task_hash(&task)).or_insert((row.ts, success));
            if row.ts >= known.0 {
                *known = (row.ts, success);
            }
        }
    }
    Ok(verdicts)
}

fn task_hash(task: &str) -> u64 {
    crate::page::Key::new("task", "").text(task).finish() as u64
}

/// The columns that a profile reads, besides those that classes and filters need.
const READ: [&str; 17] = [
    "ts_arrival",
    "clock",
    "prompt_tokens",
    "cache_read_tokens",
    "output_tokens",
    "reasoning_tokens",
    "max_tokens",
    "sample_weight",
    "attempt",
    "status",
    "ttft_s",
    "e2e_s",
    "tenant",
    "user",
    "response_cached",
    "task_id",
    "success",
];

impl Reading<'_> {
    /// Whether rows of different files may have clocks that differ.
    fn by_file(&self) -> bool {
        self.clock.as_deref() == Some(survey::OWN_START)
    }

    fn unit(&self, unit: &Unit) -> Result<(Gathered, Counts), LedgerError> {
        let mut gathered = Gathered::new(self.shape);
        let mut counts = Counts::default();
        let mut wanted = self.survey.with(&READ);
        if self.by_file() {
            wanted.insert("file");
        }
        unit.read(self.ledger, &wanted, |path, batch| {
            self.batch(batch, &mut gathered, &mut counts).map_err(|p| damaged(path, p))
        })?;
        gathered.seal();
        counts.settle();
        Ok((gathered, counts))
    }

    fn batch(
        &self,
        batch: &Columns,
        gathered: &mut Gathered,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let survey = self.survey;
        let at = Stamps::of(batch, "ts_arrival")?;
        let on_clock = survey::on_clock(batch, self.clock)?;
        let keep = survey.kept(batch)?;
        let class = survey.class_of(batch)?;
        let client = survey.client_of(batch)?;
        let number = |name: &str| Numbers::of(batch, name);
        let (prompt, cached, output) =
            (number("prompt_tokens")?, number("cache_read_tokens")?, number("output_tokens")?);
        let (reasoning, most) = (number("reasoning_tokens")?, number("max_tokens")?);
        let weight = Reals::of(batch, "sample_weight")?;
        let (ttft, e2e) = (Reals::of(batch, "ttft_s")?, Reals::of(batch, "e2e_s")?);
        let attempt = Numbers::of(batch, "attempt")?;
        let status = Codes::of(batch, "status", end_of)?;
        let task = Codes::of(batch, "task_id", task_hash)?;
        let (whole_answer, success) =
            (Flags::of(batch, "response_cached")?, Flags::of(batch, "success")?);
        // Nobody asks for it where the clock is the same for all.
        let file = if self.by_file() { Some(Codes::of(batch, "file", task_hash)?) } else { None };
        let mut latest = None;
        for i in 0..batch.rows {
            if !keep.has(i) {
                continue;
            }
            if whole_answer.get(i) == Some(true) {
                counts.response_cached += 1;
                continue;
            }
            let weight = weight.get(i).unwrap_or(1.0);
            if weight == 0.0 {
                counts.weightless += 1;
                continue;
            }
            if let Some(task) = task.get(i) {
                counts.tasks.push((task, success.get(i)));
            }
            // Stamps that are too far apart to be compared are no times.
            let since = |at: i64| at.checked_sub(survey.first_ns?);
            let at = at.get(i).filter(|_| on_clock.has(i));
            if let Some(file) = file.as_ref().filter(|_| at.is_some()).and_then(|file| file.get(i))
                && latest != Some(file)
            {
                // Rows of a file come in runs.
                counts.files.insert(file);
                latest = Some(file);
            }
            gathered.push(&Seen {
                at_ns: at.and_then(since),
                prompt: prompt.get(i),
                cached: cached.get(i),
                output: output.get(i),
                reasoning: reasoning.get(i),
                max_tokens: most.get(i),
                weight,
                class: class.get(i),
                client: client.get(i),
                attempt: attempt.get(i).map_or(0, |n| u16::try_from(n).unwrap_or(u16::MAX)),
                end: status.get(i).unwrap_or(End::Unknown),
                ttft_s: ttft.get(i),
                e2e_s: e2e.get(i),
            });
        }
        Ok(())
    }
}

/// How a row ended, by its status.
fn end_of(status: &str) -> End {
    match status {
        "ok" => End::Ok,
        "limited" => End::Limited,
        "failed" => End::Failed,
        "cancelled" => End::Cancelled,
        _ => End::Unknown,
    }
}

fn damaged(path: &Path, problem: String) -> LedgerError {
    LedgerError::damaged(path, problem)
}

/// Whether a column is one of requests that holds text, and so can tell classes apart.
pub fn text_column(name: &str) -> Result<(), LedgerError> {
    let columns = Row::schema().columns().iter();
    let texts = columns.filter(|column| column.physical_type() == Type::BYTE_ARRAY);
    let known: Vec<&str> = texts.map(|column| column.name()).collect();
    if known.contains(&name) {
        return Ok(());
    }
    Err(LedgerError::Column { name: name.to_owned(), known: known.join(", ") })
}
