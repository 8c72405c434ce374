//! What was used, counted so that money can be split by it.
//!
//! The values of dimensions are surveyed first and numbered, the most frequent first: what will be folded together is never told apart,
//! and what a row is counted in is found by its numbers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use plimsoll_cost::{
    Dimension, End, Key, Period, Place, Pricing, Sums, Table, Tasks, TokenTable, Usage,
};
use plimsoll_units::UsdPerToken;

use super::columns::{Codes, Flags, Numbers, Reals, Stamps, Translated};
use super::history::{Range, is_first};
use super::ids::Ids;
use super::survey::{self, Mask, Survey};
use super::tasks::{self, Combination, Part, Shelves};
use super::units::{self, Groups, Unit, in_order};
use super::{
    Classing, Counts, NamedClass, OTHER, ScanInput, Verdicts, damaged, end_of, task_hash, verdicts,
};
use crate::column::Columns;
use crate::error::LedgerError;
use crate::store::Ledger;

/// What is asked of usage.
#[derive(Clone, Debug)]
pub struct UsageInput {
    /// What serves requests: the first rule that a row matches says where it was served. What matches none has no place.
    pub places: Vec<PlaceRule>,
    /// Only rows that have all of these values in these columns.
    pub only: Vec<(String, String)>,
    /// Only what arrived then or later: in seconds from 1970, or from the first arrival where the log has no date. With it, or with
    /// `until_s`, rows without a time are left out. The period that is counted begins with its hour, whether or not there are rows.
    pub from_s: Option<i64>,
    /// Only what arrived earlier; the period ends with its hour.
    pub until_s: Option<i64>,
    /// The most values that a dimension keeps apart, and never more than 65,000; beyond it those with the fewest rows are `other`.
    pub values_most: usize,
    /// Threads to use; the answer does not depend on it.
    pub threads: NonZero<usize>,
}

/// Which rows a place serves.
#[derive(Clone, Debug)]
pub struct PlaceRule {
    /// The place. Rules with the same one are one place.
    pub place: Place,
    /// Columns, and the values that its rows have; `*` stands for any text. Without any, every row matches.
    pub matches: BTreeMap<String, String>,
}

/// So many values have numbers of 16 bits, with room for those that are none and `other`.
const VALUES_MAX: usize = 65_000;
const HOUR_S: i64 = 3600;
const HOUR_NS: i64 = HOUR_S * 1_000_000_000;
/// What an unnamed place is as a part of a key; the others follow it.
const NOWHERE: u32 = 0;
/// The tier of what was served from a batch queue.
const BATCH: &str = "batch";

/// The columns that are read, besides dimensions, and those that places and filters need.
const READ: [&str; 17] = [
    "ts_arrival",
    "clock",
    "prompt_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "prefill_s",
    "decode_s",
    "tier",
    "attempt",
    "status",
    "task_id",
    "success",
    "source",
    "cost_usd",
    "response_cached",
    "sample_weight",
];

impl Ledger {
    /// Counts what requests used, by each dimension that rows have.
    ///
    /// A dimension that no row says anything of has no table. Values come with the most rows first, then none, then `other`.
    /// Counts are weighted where a log is a sample; tasks never are. Tokens of rows that do not know both their prompt and their
    /// output are in no sum: such rows are only counted. A row costs its task what its place says: seconds of devices, else the
    /// price of its tokens, and where neither is known what the log says.
    pub fn usage(&self, input: &UsageInput) -> Result<Usage, LedgerError> {
        let (places, classes) = places(&input.places);
        let scan = ScanInput {
            classes: Classing::Named(classes),
            only: input.only.clone(),
            pace: None,
            cache_blocks: Vec::new(),
            threads: input.threads,
        };
        let survey = survey::survey(self, &scan)?;
        let range = Range::of(&survey, input.from_s, input.until_s);
        let groups = units::groups(self, &Dimension::ALL.map(Dimension::name))?;
        let meant = Meant { survey: &survey, range: &range };
        let values = meant.values(self, &groups, input)?;
        let verdicts = verdicts(self)?;
        // A class of the survey is called by the number of its place.
        let place_of =
            survey.classes.iter().map(|name| name.parse().map_or(NOWHERE, |n: u32| n + 1));
        let reading = Reading {
            meant,
            start: start_hour(&survey, &range, input.from_s),
            places: &places,
            place_of: place_of.collect(),
            values: &values,
            by_request: groups.retried,
            verdicts: &verdicts,
        };
        let mut books = Books::new(&values);
        let work = |unit: &Unit| reading.unit(self, unit);
        in_order(&groups.units, input.threads, work, |own: Stretch| books.add(own))?;
        books.conclude(&reading, input)
    }
}

/// Places, and the classes that tell their rows: each is called by the number of its place.
fn places(rules: &[PlaceRule]) -> (Vec<Place>, Vec<NamedClass>) {
    let mut places: Vec<Place> = Vec::new();
    let mut classes = Vec::new();
    for rule in rules {
        let place = places.iter().position(|place| *place == rule.place).unwrap_or_else(|| {
            places.push(rule.place.clone());
            places.len() - 1
        });
        classes.push(NamedClass { name: place.to_string(), columns: rule.matches.clone() });
    }
    (places, classes)
}

/// The first hour of the period, from the origin of times; none where nothing has a time.
fn start_hour(survey: &Survey, range: &Range, from_s: Option<i64>) -> Option<i64> {
    let (first_ns, _) = survey.span()?;
    let first = range.since(first_ns)?.div_euclid(HOUR_NS);
    Some(from_s.map_or(first, |from| from.div_euclid(HOUR_S)))
}

/// Which rows are asked for.
struct Meant<'a> {
    survey: &'a Survey,
    range: &'a Range,
}

/// What becomes of a row.
enum Fate {
    /// It is counted: when it came, and how many it stands for.
    Counted(Option<i64>, f64),
    /// Nobody asked for it.
    Unasked,
    /// A time was asked for, and it has none.
    Timeless,
    /// A cache of whole answers served it.
    WholeAnswer,
    /// It stands for no request.
    Weightless,
    /// Its weight is no weight.
    Broken,
}

/// Which rows of a batch are asked for.
struct MeantRows<'a> {
    keep: Mask,
    at: Stamps<'a>,
    on_clock: Mask,
    whole_answer: Flags<'a>,
    weight: Reals<'a>,
    range: &'a Range,
}

impl MeantRows<'_> {
    fn fate(&self, i: usize) -> Fate {
        if !self.keep.has(i) {
            return Fate::Unasked;
        }
        let at = self.at.get(i).filter(|_| self.on_clock.has(i));
        if !self.range.has(at) {
            return if at.is_some() { Fate::Unasked } else { Fate::Timeless };
        }
        if self.whole_answer.get(i) == Some(true) {
            return Fate::WholeAnswer;
        }
        match self.weight.get(i).unwrap_or(1.0) {
            0.0 => Fate::Weightless,
            weight if weight > 0.0 && weight.is_finite() => Fate::Counted(at, weight),
            _ => Fate::Broken,
        }
    }
}

impl<'a> Meant<'a> {
    fn rows<'b>(&'b self, batch: &'b Columns) -> Result<MeantRows<'b>, String> {
        Ok(MeantRows {
            keep: self.survey.kept(batch)?,
            at: Stamps::of(batch, "ts_arrival")?,
            on_clock: survey::on_clock(batch, &self.survey.clock)?,
            whole_answer: Flags::of(batch, "response_cached")?,
            weight: Reals::of(batch, "sample_weight")?,
            range: self.range,
        })
    }

    /// The values that are kept of each dimension; known before anything is summed, so that no sum is made of what will be folded.
    fn values(
        &self,
        ledger: &Ledger,
        groups: &Groups,
        input: &UsageInput,
    ) -> Result<Vec<Values>, LedgerError> {
        let own = Dimension::ALL.into_iter().filter(|d| groups.said.contains(d.name()));
        let dimensions: Vec<Dimension> = own.collect();
        let mut wanted: BTreeSet<&str> =
            ["ts_arrival", "clock", "response_cached", "sample_weight"].into();
        wanted.extend(self.survey.only.iter().map(|(column, _)| column.as_str()));
        wanted.extend(dimensions.iter().map(|dimension| dimension.name()));
        let mut counts = vec![ValueCounts::new(); dimensions.len()];
        let look = |unit: &Unit| {
            let mut own: Vec<Count> = dimensions.iter().map(|_| Count::default()).collect();
            unit.read(ledger, &wanted, |path, batch| {
                self.count(batch, &dimensions, &mut own).map_err(|problem| damaged(path, problem))
            })?;
            Ok(own.into_iter().map(|own| own.rows).collect())
        };
        in_order(&groups.units, input.threads, look, |own: Vec<Vec<(Option<String>, u64)>>| {
            for (counts, own) in counts.iter_mut().zip(own) {
                for (value, rows) in own.into_iter().filter(|(_, rows)| *rows > 0) {
                    *counts.entry(value).or_default() += rows;
                }
            }
        })?;
        let kept = dimensions.into_iter().zip(counts);
        let kept = kept.map(|(dimension, counts)| Values::of(dimension, counts, input.values_most));
        // What is only said by rows that nobody asked for is not said.
        Ok(kept.filter(|values| values.names.iter().any(Option::is_some)).collect())
    }

    fn count(
        &self,
        batch: &Columns,
        dimensions: &[Dimension],
        own: &mut [Count],
    ) -> Result<(), String> {
        let rows = self.rows(batch)?;
        let counted: Vec<usize> =
            (0..batch.rows).filter(|i| matches!(rows.fate(*i), Fate::Counted(..))).collect();
        for (dimension, own) in dimensions.iter().zip(own) {
            let Count { rows, known } = own;
            let codes = Codes::again(batch, dimension.name(), known, |name| {
                rows.push((Some(name.to_owned()), 0));
                rows.len() - 1
            })?;
            let mut nameless = 0;
            for i in &counted {
                match codes.get(*i) {
                    Some(number) => rows[number].1 += 1,
                    None => nameless += 1,
                }
            }
            rows.push((None, nameless));
        }
        Ok(())
    }
}

/// Values of a dimension in a row group, and how many rows have them: some may be there several times, and some without any.
#[derive(Default)]
struct Count {
    rows: Vec<(Option<String>, u64)>,
    known: Translated<usize>,
}

/// Values of a dimension, and how many rows have them.
type ValueCounts = BTreeMap<Option<String>, u64>;

/// The values of a dimension that are told apart.
struct Values {
    dimension: Dimension,
    names: Vec<Option<String>>,
    numbers: BTreeMap<String, u16>,
    /// The number of rows that have none.
    none: u16,
    /// That of values which are folded together, and how many they are.
    other: u16,
    folded: usize,
}

impl Values {
    fn of(dimension: Dimension, mut counts: ValueCounts, most: usize) -> Self {
        let nameless = counts.remove(&None);
        let mut order: Vec<(String, u64)> =
            counts.into_iter().filter_map(|(name, rows)| Some((name?, rows))).collect();
        // Stable: values with as many rows stay in the order of their names.
        order.sort_by_key(|(_, rows)| Reverse(*rows));
        let most = most.min(VALUES_MAX);
        let folded = order.len().saturating_sub(most);
        order.truncate(most);
        let mut names: Vec<Option<String>> =
            order.into_iter().map(|(name, _)| Some(name)).collect();
        let numbers = names.iter().flatten().cloned().zip(0..).collect();
        let none = names.len() as u16;
        if nameless.is_some() {
            names.push(None);
        }
        let other = names.len() as u16;
        if folded > 0 {
            // A tenant may be called what the rest would be.
            let taken = names.iter().flatten().any(|name| name == OTHER);
            names.push(Some(if taken { format!("{OTHER} (folded)") } else { OTHER.to_owned() }));
        }
        Self { dimension, names, numbers, none, other, folded }
    }

    fn number(&self, name: &str) -> u16 {
        self.numbers.get(name).copied().unwrap_or(self.other)
    }
}

/// Rows of a ledger on their way to sums.
struct Reading<'a> {
    meant: Meant<'a>,
    start: Option<i64>,
    places: &'a [Place],
    /// The place of each class of the survey, as a part of a key.
    place_of: Vec<u32>,
    values: &'a [Values],
    /// Whether attempts of requests that name no task must be put together.
    by_request: bool,
    verdicts: &'a Verdicts,
}

/// What a row says of one attempt.
struct Attempt {
    prompt: Option<u32>,
    cached: Option<u32>,
    written: Option<u32>,
    output: Option<u32>,
    prefill_s: Option<f64>,
    decode_s: Option<f64>,
    logged_usd: Option<f64>,
    is_batch: bool,
}

impl Reading<'_> {
    fn unit(&self, ledger: &Ledger, unit: &Unit) -> Result<Stretch, LedgerError> {
        let mut wanted = self.meant.survey.with(&READ);
        wanted.extend(self.values.iter().map(|values| values.dimension.name()));
        // Names of requests cost more than all the rest, and only matter where some were tried again.
        if self.by_request {
            wanted.insert("request_id");
        }
        if self.by_file() {
            wanted.insert("file");
        }
        let (mut own, mut names) = (Stretch::new(self.values), Names::new(self.values));
        unit.read(ledger, &wanted, |path, batch| {
            self.batch(batch, &mut own, &mut names).map_err(|problem| damaged(path, problem))
        })?;
        tasks::settle(&mut own.named);
        tasks::settle(&mut own.requests);
        Ok(own)
    }

    /// Whether rows of different files may have clocks that differ.
    fn by_file(&self) -> bool {
        self.meant.survey.clock.as_deref() == Some(survey::OWN_START)
    }

    fn batch(&self, batch: &Columns, own: &mut Stretch, names: &mut Names) -> Result<(), String> {
        let rows = self.meant.rows(batch)?;
        let class = self.meant.survey.class_of(batch)?;
        let number = |name: &str| Numbers::of(batch, name);
        let (prompt, output) = (number("prompt_tokens")?, number("output_tokens")?);
        let (cached, written) = (number("cache_read_tokens")?, number("cache_write_tokens")?);
        let real = |name: &str| Reals::of(batch, name);
        let (prefill, decode, cost) = (real("prefill_s")?, real("decode_s")?, real("cost_usd")?);
        let attempt = Numbers::of(batch, "attempt")?;
        let end = Codes::of(batch, "status", end_of)?;
        let is_batch = Codes::of(batch, "tier", |tier| tier == BATCH)?;
        let success = Flags::of(batch, "success")?;
        let task = Codes::again(batch, "task_id", &mut names.task, task_hash)?;
        // Nobody asks for it where no request was tried again.
        let request = Codes::again(batch, "request_id", &mut names.request, task_hash)?;
        let source = Codes::of(batch, "source", task_hash)?;
        let file = if self.by_file() { Some(Codes::of(batch, "file", task_hash)?) } else { None };
        let mut latest = None;
        let mut values = Vec::with_capacity(self.values.len());
        for (own, known) in self.values.iter().zip(&mut names.values) {
            let number = |name: &str| own.number(name);
            values.push((Codes::again(batch, own.dimension.name(), known, number)?, own.none));
        }
        for i in 0..batch.rows {
            let (at, weight) = match rows.fate(i) {
                Fate::Counted(at, weight) => (at, weight),
                other => {
                    own.tally.pass_over(&other);
                    let judged = |task: &u64| self.verdicts.contains_key(task);
                    own.elsewhere.extend(task.get(i).filter(judged));
                    continue;
                }
            };
            if let Some(file) = file.as_ref().filter(|_| at.is_some()).and_then(|file| file.get(i))
                && latest != Some(file)
            {
                // Rows of a file come in runs.
                own.tally.counts.files.insert(file);
                latest = Some(file);
            }
            let row = Attempt {
                prompt: prompt.get(i),
                cached: cached.get(i),
                written: written.get(i),
                output: output.get(i),
                prefill_s: prefill.get(i),
                decode_s: decode.get(i),
                logged_usd: cost.get(i),
                is_batch: is_batch.get(i) == Some(true),
            };
            let mut combination = Combination::default();
            for (own, (codes, none)) in combination.iter_mut().zip(&values) {
                *own = codes.get(i).unwrap_or(*none);
            }
            let place = self.place_of.get(class.get(i) as usize).copied().unwrap_or(NOWHERE);
            let hour = self.hour(at).unwrap_or_else(|| {
                own.tally.undated += 1;
                0
            });
            let retry = !is_first(attempt.get(i));
            let how = 2 * end_number(end.get(i).unwrap_or(End::Unknown)) + u32::from(retry);
            let pricing = place.checked_sub(1).map(|place| &self.places[place as usize].pricing);
            let sums = row.sums(pricing, &mut own.tally);
            let slot = own.slots.of([place, hour, how]);
            let weighted = if weight == 1.0 { sums } else { times(&sums, weight) };
            own.all.at(slot, 0).add(&weighted);
            for (cells, value) in own.by.iter_mut().zip(combination) {
                cells.at(slot, value).add(&weighted);
            }
            let mut part = Part {
                task: 0,
                usd: usd(&sums, pricing),
                first_ns: at.unwrap_or(i64::MIN),
                values: combination,
                attempts: 1,
                said: success.get(i).map(|success| (at.unwrap_or(i64::MIN), success)),
            };
            match (task.get(i), request.get(i)) {
                (Some(task), _) => {
                    part.task = task;
                    own.named.push(part);
                }
                (None, Some(request)) => {
                    // Two sources may give the same name.
                    part.task = request ^ source.get(i).unwrap_or(0).rotate_left(1);
                    own.requests.push(part);
                }
                (None, None) => own.tasks.count(&combination, &part.ended(success.get(i))),
            }
        }
        Ok(())
    }

    /// The hour of a time, from the start of the period.
    fn hour(&self, at_ns: Option<i64>) -> Option<u32> {
        let since = self.meant.range.since(at_ns?)?;
        u32::try_from(since.div_euclid(HOUR_NS).checked_sub(self.start?)?).ok()
    }

    /// Hours from the first that is asked for to the last that is, or that has rows.
    fn period(&self, until_s: Option<i64>, undated: u64) -> Period {
        let last = || {
            let (_, last_ns) = self.meant.survey.span()?;
            Some(self.meant.range.since(last_ns)?.div_euclid(HOUR_NS) + 1)
        };
        let end = until_s.map(|until| until.div_euclid(HOUR_S) + i64::from(until % HOUR_S != 0));
        let end = end.or_else(last);
        let hours = self.start.zip(end).map_or(0, |(start, end)| end.saturating_sub(start));
        // Rows without a time are in the first hour, and so there is one.
        let hours = hours.max(i64::from(undated > 0));
        let start = self.start.filter(|_| self.meant.survey.is_absolute());
        Period {
            start_s: start.map(|start| start.saturating_mul(HOUR_S)),
            hours: u32::try_from(hours).unwrap_or(u32::MAX),
        }
    }
}

impl Attempt {
    /// What one attempt used, as if it stood for itself alone.
    fn sums(&self, pricing: Option<&Pricing>, tally: &mut Tally) -> Sums {
        let mut sums = Sums { requests: 1.0, ..Sums::default() };
        if let (Some(prompt), Some(output)) = (self.prompt, self.output) {
            let cached = self.cached.unwrap_or(0).min(prompt);
            tally.overcached += u64::from(self.cached.is_some_and(|cached| cached > prompt));
            let fresh = prompt - cached;
            let pairs = |n: f64| (n * (n - 1.0) / 2.0).max(0.0);
            let (f, o) = (f64::from(fresh), f64::from(output));
            sums.fresh = f;
            sums.fresh_context = f * f64::from(cached) + pairs(f);
            sums.cached = f64::from(cached);
            sums.output = o;
            sums.output_context = o * f64::from(prompt) + pairs(o);
            if self.cached.is_none() {
                sums.cached_unknown = 1.0;
            }
            if let Some(Pricing::Tokens(table)) = pricing {
                let written = self.written.unwrap_or(0).min(fresh);
                let table = table_for(table, prompt, self.is_batch);
                let usd = |tokens: u32, price: UsdPerToken| {
                    f64::from(tokens) * price.get_picos() as f64 * 1e-12
                };
                sums.token_usd = usd(fresh - written, table.input)
                    + usd(written, table.cache_write)
                    + usd(cached, table.cached_input)
                    + usd(output, table.output);
            }
        } else {
            sums.blank = 1.0;
            if matches!(pricing, Some(Pricing::Tokens(_))) {
                sums.token_unpriced = 1.0;
            }
        }
        if let (Some(prefill_s), Some(decode_s)) = (self.prefill_s, self.decode_s) {
            sums.prefill_s = prefill_s;
            sums.decode_s = decode_s;
            sums.timed = 1.0;
        }
        match self.logged_usd {
            Some(usd) if usd >= 0.0 && usd.is_finite() => {
                sums.logged_usd = usd;
                sums.logged = 1.0;
            }
            Some(_) => tally.miscosted += 1,
            None => {}
        }
        sums
    }
}

/// The prices of a request: those of its queue, and there those of its length.
fn table_for(table: &TokenTable, prompt: u32, is_batch: bool) -> &TokenTable {
    let table = table.batch.as_deref().filter(|_| is_batch).unwrap_or(table);
    let above = table.above.iter().filter(|(tokens, _)| u64::from(prompt) > *tokens);
    above.max_by_key(|(tokens, _)| *tokens).map_or(table, |(_, long)| long)
}

/// What an attempt costs its task.
fn usd(sums: &Sums, pricing: Option<&Pricing>) -> f64 {
    match pricing {
        Some(Pricing::Devices(work)) => sums.work_s(work) * work.usd_per_s,
        Some(Pricing::Tokens(_)) if sums.token_unpriced < 1.0 => sums.token_usd,
        _ => sums.logged_usd,
    }
}

/// What so many attempts used.
fn times(one: &Sums, weight: f64) -> Sums {
    // Written out, so that a new sum is not forgotten here.
    Sums {
        requests: weight * one.requests,
        fresh: weight * one.fresh,
        fresh_context: weight * one.fresh_context,
        cached: weight * one.cached,
        output: weight * one.output,
        output_context: weight * one.output_context,
        prefill_s: weight * one.prefill_s,
        decode_s: weight * one.decode_s,
        timed: weight * one.timed,
        token_usd: weight * one.token_usd,
        token_unpriced: weight * one.token_unpriced,
        logged_usd: weight * one.logged_usd,
        logged: weight * one.logged,
        blank: weight * one.blank,
        cached_unknown: weight * one.cached_unknown,
    }
}

/// How attempts can end, in the order of their numbers.
const ENDS: [End; 5] = [End::Ok, End::Limited, End::Failed, End::Cancelled, End::Unknown];

fn end_number(end: End) -> u32 {
    end as u32
}

/// What names of a row group stand for.
struct Names {
    task: Translated<u64>,
    request: Translated<u64>,
    values: Vec<Translated<u16>>,
}

impl Names {
    fn new(values: &[Values]) -> Self {
        let values = values.iter().map(|_| Translated::default()).collect();
        Self { task: Translated::default(), request: Translated::default(), values }
    }
}

/// Sums of a row group by value, and by a slot: the number of a place, an hour, and how attempts ended.
struct Grid {
    values: usize,
    /// Where the sums of a value in a slot are, counted from one: row by row of values, as far as slots were met.
    places: Vec<u32>,
    sums: Vec<(usize, u16, Sums)>,
}

impl Grid {
    const fn new(values: usize) -> Self {
        Self { values, places: Vec::new(), sums: Vec::new() }
    }

    fn at(&mut self, slot: usize, value: u16) -> &mut Sums {
        let place = slot * self.values + usize::from(value);
        if self.places.len() <= place {
            self.places.resize((slot + 1) * self.values, 0);
        }
        if self.places[place] == 0 {
            self.sums.push((slot, value, Sums::default()));
            self.places[place] = self.sums.len() as u32;
        }
        &mut self.sums[self.places[place] as usize - 1].2
    }
}

/// Sums by value, place, hour, and how attempts ended.
#[derive(Default)]
struct Cells {
    keys: Ids<4>,
    sums: Vec<Sums>,
}

impl Cells {
    fn at(&mut self, key: [u32; 4]) -> &mut Sums {
        let number = self.keys.of(key);
        if number == self.sums.len() {
            self.sums.push(Sums::default());
        }
        &mut self.sums[number]
    }

    fn iter(&self) -> impl Iterator<Item = (&[u32; 4], &Sums)> {
        self.keys.keys().iter().zip(&self.sums)
    }

    fn add(&mut self, more: &Grid, slots: &Ids<3>) {
        for (slot, value, sums) in &more.sums {
            let [place, hour, how] = slots.keys()[*slot];
            self.at([u32::from(*value), place, hour, how]).add(sums);
        }
    }

    fn table(&self, values: Vec<Option<String>>, tasks: Vec<Tasks>) -> Table {
        let cell = |(key, sums): (&[u32; 4], &Sums)| {
            let [value, place, hour, how] = *key;
            let end = ENDS[how as usize / 2];
            let key = Key { value, place: place.checked_sub(1), hour, end, retry: how % 2 == 1 };
            (key, *sums)
        };
        Table { values, cells: self.iter().map(cell).collect(), tasks }
    }
}

/// What is counted beside the sums.
#[derive(Default)]
struct Tally {
    counts: Counts,
    undated: u64,
    /// Rows without a time, where one was asked for.
    timeless: u64,
    /// Rows whose weight is none.
    broken: u64,
    /// Rows whose cost is below zero.
    miscosted: u64,
    /// Rows with more cached tokens than tokens.
    overcached: u64,
}

impl Tally {
    fn pass_over(&mut self, fate: &Fate) {
        match fate {
            Fate::Counted(..) | Fate::Unasked => {}
            Fate::Timeless => self.timeless += 1,
            Fate::WholeAnswer => self.counts.response_cached += 1,
            Fate::Weightless => self.counts.weightless += 1,
            Fate::Broken => self.broken += 1,
        }
    }

    fn add(&mut self, more: Self) {
        self.counts.add(more.counts);
        self.undated += more.undated;
        self.timeless += more.timeless;
        self.broken += more.broken;
        self.miscosted += more.miscosted;
        self.overcached += more.overcached;
    }

    fn notes(&self, survey: &Survey, values: &[Values]) -> Vec<String> {
        let mut notes = self.counts.notes(survey);
        let mut say = |rows: u64, what: &str| {
            if rows > 0 {
                notes.push(format!("{rows} rows {what}"));
            }
        };
        say(self.timeless, "do not say when they came: they are in no period, and left out");
        say(
            self.broken,
            "have a sample weight below zero: they stand for nothing, and are left out",
        );
        say(
            self.miscosted,
            "have a cost below zero, which is not taken: their cost counts as unknown",
        );
        say(
            self.overcached,
            "have more cached tokens than their prompt: all of it counts as cached, and no more",
        );
        for values in values.iter().filter(|values| values.folded > 0) {
            let (folded, name) = (values.folded, values.dimension.name());
            notes.push(format!(
                "{folded} values of `{name}` with the fewest rows are counted together as `{}`",
                values.names.last().and_then(Option::as_deref).unwrap_or(OTHER)
            ));
        }
        notes
    }
}

/// What a row group holds.
struct Stretch {
    /// Places, hours, and how attempts ended.
    slots: Ids<3>,
    all: Grid,
    by: Vec<Grid>,
    /// Tasks of one row.
    tasks: TasksBy,
    named: Vec<Part>,
    /// Requests that name no task.
    requests: Vec<Part>,
    /// Tasks that somebody judged, of rows that are not counted.
    elsewhere: BTreeSet<u64>,
    tally: Tally,
}

impl Stretch {
    fn new(values: &[Values]) -> Self {
        Self {
            slots: Ids::default(),
            all: Grid::new(1),
            by: values.iter().map(|values| Grid::new(values.names.len())).collect(),
            tasks: TasksBy::new(values),
            named: Vec::new(),
            requests: Vec::new(),
            elsewhere: BTreeSet::new(),
            tally: Tally::default(),
        }
    }
}

/// How tasks went: together, and by the values of each dimension.
#[derive(Clone)]
struct TasksBy {
    all: Tasks,
    by: Vec<Vec<Tasks>>,
}

impl TasksBy {
    fn new(values: &[Values]) -> Self {
        let by = values.iter().map(|values| vec![Tasks::default(); values.names.len()]).collect();
        Self { all: Tasks::default(), by }
    }

    fn count(&mut self, combination: &Combination, tasks: &Tasks) {
        tasks::add(&mut self.all, tasks);
        for (own, value) in self.by.iter_mut().zip(combination) {
            tasks::add(&mut own[usize::from(*value)], tasks);
        }
    }

    fn add(&mut self, more: &Self) {
        tasks::add(&mut self.all, &more.all);
        for (own, more) in self.by.iter_mut().flatten().zip(more.by.iter().flatten()) {
            tasks::add(own, more);
        }
    }
}

/// All of it.
struct Books {
    all: Cells,
    by: Vec<Cells>,
    tasks: TasksBy,
    named: Shelves,
    requests: Shelves,
    elsewhere: BTreeSet<u64>,
    tally: Tally,
}

impl Books {
    fn new(values: &[Values]) -> Self {
        Self {
            all: Cells::default(),
            by: values.iter().map(|_| Cells::default()).collect(),
            tasks: TasksBy::new(values),
            named: Shelves::new(),
            requests: Shelves::new(),
            elsewhere: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    fn add(&mut self, more: Stretch) {
        self.all.add(&more.all, &more.slots);
        self.by.iter_mut().zip(&more.by).for_each(|(own, more_of)| own.add(more_of, &more.slots));
        self.tasks.add(&more.tasks);
        more.named.into_iter().for_each(|part| self.named.put(part));
        more.requests.into_iter().for_each(|part| self.requests.put(part));
        self.elsewhere.extend(more.elsewhere);
        self.tally.add(more.tally);
    }

    fn conclude(self, reading: &Reading<'_>, input: &UsageInput) -> Result<Usage, LedgerError> {
        let (values, mut tasks) = (reading.values, self.tasks);
        let empty = TasksBy::new(values);
        let count = |own: &mut TasksBy, part: &Part, ended: &Tasks| own.count(&part.values, ended);
        let add = |own: TasksBy| tasks.add(&own);
        let missed = self.named.tell(reading.verdicts, input.threads, &empty, count, add)?;
        // What was found out later is of tasks, and these have no name.
        let nobody = Verdicts::new();
        let add = |own: TasksBy| tasks.add(&own);
        self.requests.tell(&nobody, input.threads, &empty, count, add)?;
        let unknown = missed.iter().filter(|task| !self.elsewhere.contains(task)).count();
        let mut by = BTreeMap::new();
        for ((values, cells), tasks) in values.iter().zip(&self.by).zip(tasks.by) {
            by.insert(values.dimension, cells.table(values.names.clone(), tasks));
        }
        // What the caller counts by itself is no note.
        let response_cached = self.tally.counts.response_cached;
        let mut tally = self.tally;
        tally.counts.response_cached = 0;
        Ok(Usage {
            period: reading.period(input.until_s, tally.undated),
            places: reading.places.to_vec(),
            by,
            all: self.all.table(vec![None], vec![tasks.all]),
            tasks: tasks.all,
            outcomes_unknown: unknown as u64,
            response_cached,
            undated: tally.undated,
            notes: tally.notes(reading.meant.survey, values),
        })
    }
}
