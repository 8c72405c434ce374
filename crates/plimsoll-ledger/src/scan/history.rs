//! What was asked, counted over steps of equal length: what a forecast is made of.
//!
//! Only whole steps are counted. A log begins and ends somewhere within a step, and half of one would look like a fall.

mod measured;

use std::collections::BTreeMap;
use std::num::NonZero;

use plimsoll_study::End;
use plimsoll_workload::{ClassHistory, History, Known, StepCount};

use super::columns::{Codes, Flags, Numbers, Reals, Stamps};
use super::series::{self, block_at};
use super::survey::{self, Survey};
use super::units::{Unit, in_order, units};
use super::{Counts, ScanInput, damaged, end_of, task_hash};
use crate::column::Columns;
use crate::error::LedgerError;
use crate::row::SeriesRow;
use crate::store::Ledger;

/// What is asked of a history.
#[derive(Clone, Debug)]
pub struct HistoryInput {
    /// Classes, filters and threads; nothing else of it is used.
    pub scan: ScanInput,
    /// How long a step is. Where it is none, the longest of 1, 5, 10, 15 and 60 minutes that leaves 96 whole steps; one minute where
    /// none does.
    pub step_s: Option<NonZero<u32>>,
    /// Only what arrived then or later: in seconds from 1970, or from the first arrival where the log has no date.
    pub from_s: Option<i64>,
    /// Only what arrived earlier.
    pub until_s: Option<i64>,
}

/// What came over steps.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryScan {
    /// The counts; without a step where none is whole.
    pub history: History,
    /// Rows that came in a step that is not whole, and are not counted.
    pub dropped: u64,
    /// Rows that were refused and do not say which attempt they are: some of them may be the same request, asked again.
    pub refused_without_attempt: u64,
    /// Rows without a time on the clock that the others have in common, which are not counted.
    pub timeless: u64,
    /// What should be known.
    pub notes: Vec<String>,
}

/// What clients are called together that are too small to be told apart.
const OTHER_CLIENTS: &str = "other clients";
/// The share of the load that clients are told apart for.
const APART_SHARE: f64 = 0.8;

/// The most counts of a history, over all classes: half a gigabyte of them.
const COUNTS_MAX: usize = 5_000_000;
/// Steps to choose from, the longest first.
const STEPS_S: [u32; 5] = [3600, 900, 600, 300, 60];
/// How many whole steps the chosen ones leave: a day of quarters of an hour.
const STEPS_MIN: usize = 96;
const SECOND_NS: i64 = 1_000_000_000;

/// The columns that a history reads, besides those that classes and filters need.
const READ: [&str; 12] = [
    "ts_arrival",
    "clock",
    "prompt_tokens",
    "cache_read_tokens",
    "output_tokens",
    "sample_weight",
    "attempt",
    "status",
    "queue_s",
    "ttft_s",
    "e2e_s",
    "response_cached",
];

impl Ledger {
    /// Counts requests over steps, class by class.
    ///
    /// On a clock with a date steps begin at multiples of their length since 1970, and the first and the last are left out unless
    /// rows reach within a twentieth of a step of its edge, or lie beyond it. On a log's own clock the first begins with the first
    /// arrival. A cut by `from_s` or `until_s` leaves whole what lies on its inner side, as far as there are rows beyond it.
    pub fn history(&self, input: &HistoryInput) -> Result<HistoryScan, LedgerError> {
        let survey = survey::survey(self, &input.scan)?;
        let range = Range::of(&survey, input.from_s, input.until_s);
        let span = survey.span().and_then(|(a, b)| Some((range.since(a)?, range.since(b)?)));
        let grid = Grid::choose(input.step_s, STEPS_S.into_iter(), |step_s| {
            span.map_or(Grid::empty(step_s), |span| Grid::of_arrivals(step_s, span, &range))
        });
        grid.check(survey.classes.len())?;
        let mut classes: Vec<ClassHistory> =
            survey.classes.iter().map(|name| grid.class(name)).collect();
        let mut tally = Tally::default();
        let reading = Reading { survey: &survey, range: &range, grid: &grid };
        let mut wanted = survey.with(&READ);
        if reading.by_file() {
            wanted.insert("file");
        }
        let work = |unit: &Unit| {
            let mut own = Stretch::new(survey.classes.len());
            unit.read(self, &wanted, |path, batch| {
                reading.batch(batch, &mut own).map_err(|problem| damaged(path, problem))
            })?;
            Ok(own)
        };
        in_order(&units(self, &survey.clock)?, input.scan.threads, work, |own: Stretch| {
            for (step, place) in &own.places {
                let counts = &own.counts[place * own.classes..][..own.classes];
                classes.iter_mut().zip(counts).for_each(|(class, more)| {
                    class.steps[*step].merge(more);
                });
            }
            tally.add(own.tally);
        })?;
        let mut notes = tally.counts.notes(&survey);
        if span.is_none() {
            notes.push(format!("there are no steps: {}", survey.why_no_clock()));
        } else if grid.steps == 0 {
            notes.push(grid.too_short());
        }
        Ok(HistoryScan {
            history: grid.history(survey.is_absolute(), classes),
            dropped: tally.dropped,
            refused_without_attempt: tally.refused_without_attempt,
            timeless: tally.timeless,
            notes,
        })
    }

    /// The same of what was counted over windows, series by series.
    ///
    /// Clients are the classes. Those with the most tokens (or requests, where nobody knows lengths) that make 80% of the load are
    /// told apart, and at most `keep` of them; the rest is one class, the last. A client without lengths has those of the others
    /// when loads are compared, and none in the counts. A step is made of whole windows; a window is of the step that it begins in.
    pub fn series_history(
        &self,
        step_s: Option<NonZero<u32>>,
        keep: usize,
    ) -> Result<Vec<(String, HistoryScan)>, LedgerError> {
        let series::Found { rates, lengths, .. } = series::Found::of(self)?;
        let mut histories = Vec::new();
        for ((name, window_s), clients) in &rates {
            if let Some(step_s) = step_s
                && u64::from(step_s.get()) % window_s != 0
            {
                let (series, step_s) = (name.clone(), step_s.get());
                return Err(LedgerError::Windows { series, step_s, window_s: *window_s });
            }
            let clients: Vec<Client<'_>> = clients
                .iter()
                .map(|(name, rows)| {
                    let blocks = lengths.get(name).map_or(&[][..], Vec::as_slice);
                    Client { name, rows, blocks }
                })
                .collect();
            histories.push((name.clone(), over_steps(&clients, *window_s, step_s, keep)?));
        }
        Ok(histories)
    }
}

/// Which rows are asked for, by when they came.
pub(super) struct Range {
    /// What times count from: 1970, or the first arrival.
    origin_ns: i64,
    /// From there.
    from_ns: Option<i64>,
    until_ns: Option<i64>,
}

impl Range {
    pub(super) fn of(survey: &Survey, from_s: Option<i64>, until_s: Option<i64>) -> Self {
        let origin_ns = if survey.is_absolute() { 0 } else { survey.first_ns.unwrap_or(0) };
        let ns = |s: i64| s.saturating_mul(SECOND_NS);
        Self { origin_ns, from_ns: from_s.map(ns), until_ns: until_s.map(ns) }
    }

    /// A time as it is counted here; stamps that are too far apart to be compared are none.
    pub(super) fn since(&self, at_ns: i64) -> Option<i64> {
        at_ns.checked_sub(self.origin_ns)
    }

    fn holds(&self, since_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| from <= since_ns)
            && self.until_ns.is_none_or(|until| since_ns < until)
    }

    /// Whether a row is asked for; one without a time only where all are.
    pub(super) fn has(&self, at_ns: Option<i64>) -> bool {
        match at_ns.and_then(|at| self.since(at)) {
            Some(since) => self.holds(since),
            None => self.from_ns.is_none() && self.until_ns.is_none(),
        }
    }
}

/// Whole steps, one after the other.
struct Grid {
    step_s: NonZero<u32>,
    /// The first, in steps from the origin.
    first: i64,
    steps: usize,
}

impl Grid {
    /// The one that is asked for, else that of the longest step that leaves enough.
    fn choose(
        step_s: Option<NonZero<u32>>,
        choices: impl Iterator<Item = u32>,
        of: impl Fn(NonZero<u32>) -> Self,
    ) -> Self {
        if let Some(step_s) = step_s {
            return of(step_s);
        }
        let mut shortest = None;
        for step_s in choices.filter_map(NonZero::new) {
            let grid = of(step_s);
            if grid.steps >= STEPS_MIN {
                return grid;
            }
            shortest = Some(grid);
        }
        shortest.unwrap_or_else(|| Self::empty(NonZero::<u32>::MIN))
    }

    fn empty(step_s: NonZero<u32>) -> Self {
        Self { step_s, first: 0, steps: 0 }
    }

    fn between(step_s: NonZero<u32>, first: i64, end: i64) -> Self {
        let steps = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
        Self { step_s, first, steps }
    }

    /// Steps that the arrivals of a log fill: it reaches their edges, but for a twentieth of a step, or goes on beyond.
    fn of_arrivals(step_s: NonZero<u32>, (first, last): (i64, i64), range: &Range) -> Self {
        let step = i64::from(step_s.get()) * SECOND_NS;
        let (at, into) = match range.from_ns {
            // There are rows before it.
            Some(from) if from > first => (from, (from.rem_euclid(step) > 0)),
            _ => (first, first.rem_euclid(step) > step / 20),
        };
        let begin = at.div_euclid(step) + i64::from(into);
        let end = match range.until_ns {
            // There are rows beyond it.
            Some(until) if until <= last => until.div_euclid(step),
            _ => last.div_euclid(step) + i64::from(step - last.rem_euclid(step) <= step / 20),
        };
        Self::between(step_s, begin, end)
    }

    /// Steps all of whose windows are between the beginnings of the first and of the last.
    fn of_windows(step_s: NonZero<u32>, (first, last): (i64, i64), window_ns: i64) -> Self {
        let step = i64::from(step_s.get()) * SECOND_NS;
        let begin = first.div_euclid(step) + i64::from(first.rem_euclid(step) >= window_ns);
        let end = last.div_euclid(step) + i64::from(step - last.rem_euclid(step) <= window_ns);
        Self::between(step_s, begin, end)
    }

    /// Which step a time is in, where it is whole.
    fn place(&self, since_ns: i64) -> Option<usize> {
        let step = since_ns.div_euclid(i64::from(self.step_s.get()) * SECOND_NS);
        let place = usize::try_from(step.checked_sub(self.first)?).ok()?;
        (place < self.steps).then_some(place)
    }

    /// Whether so many can be held.
    fn check(&self, classes: usize) -> Result<(), LedgerError> {
        if self.steps.saturating_mul(classes) <= COUNTS_MAX {
            return Ok(());
        }
        let (step_s, steps) = (self.step_s.get(), self.steps);
        Err(LedgerError::Steps { step_s, steps, classes, most: COUNTS_MAX })
    }

    fn class(&self, name: &str) -> ClassHistory {
        ClassHistory { name: name.to_owned(), steps: vec![StepCount::default(); self.steps] }
    }

    fn history(&self, absolute: bool, classes: Vec<ClassHistory>) -> History {
        let step_s = self.step_s.get();
        let start_s = self.first.saturating_mul(i64::from(step_s));
        History { start_s, step_s, absolute, classes }
    }

    fn too_short(&self) -> String {
        format!("there are no steps: no {} s of the log are whole", self.step_s)
    }
}

/// What is counted beside the steps.
#[derive(Default)]
struct Tally {
    counts: Counts,
    dropped: u64,
    refused_without_attempt: u64,
    timeless: u64,
}

impl Tally {
    fn add(&mut self, more: Self) {
        self.counts.add(more.counts);
        self.dropped += more.dropped;
        self.refused_without_attempt += more.refused_without_attempt;
        self.timeless += more.timeless;
    }
}

/// The steps of a stretch of rows that have any.
struct Stretch {
    classes: usize,
    /// Where the counts of a step begin, in steps.
    places: BTreeMap<usize, usize>,
    /// Step by step as they were met, class by class.
    counts: Vec<StepCount>,
    /// The last step that was met, and its place: rows come in order for the most part.
    latest: Option<(usize, usize)>,
    tally: Tally,
}

impl Stretch {
    fn new(classes: usize) -> Self {
        let (places, counts) = (BTreeMap::new(), Vec::new());
        Self { classes, places, counts, latest: None, tally: Tally::default() }
    }

    fn at(&mut self, step: usize, class: usize) -> &mut StepCount {
        let place = match self.latest {
            Some((latest, place)) if latest == step => place,
            _ => {
                let next = self.places.len();
                let place = *self.places.entry(step).or_insert(next);
                if place == next {
                    self.counts.resize((next + 1) * self.classes, StepCount::default());
                }
                self.latest = Some((step, place));
                place
            }
        };
        &mut self.counts[place * self.classes + class]
    }
}

/// Rows of a ledger on their way to steps.
struct Reading<'a> {
    survey: &'a Survey,
    range: &'a Range,
    grid: &'a Grid,
}

impl Reading<'_> {
    /// Whether rows of different files may have clocks that differ.
    fn by_file(&self) -> bool {
        self.survey.clock.as_deref() == Some(survey::OWN_START)
    }

    fn batch(&self, batch: &Columns, own: &mut Stretch) -> Result<(), String> {
        let at = Stamps::of(batch, "ts_arrival")?;
        let on_clock = survey::on_clock(batch, &self.survey.clock)?;
        let (keep, class) = (self.survey.kept(batch)?, self.survey.class_of(batch)?);
        let number = |name: &str| Numbers::of(batch, name);
        let (prompt, cached, output) =
            (number("prompt_tokens")?, number("cache_read_tokens")?, number("output_tokens")?);
        let real = |name: &str| Reals::of(batch, name);
        let (weight, queue) = (real("sample_weight")?, real("queue_s")?);
        let (ttft, e2e) = (real("ttft_s")?, real("e2e_s")?);
        let attempt = Numbers::of(batch, "attempt")?;
        let status = Codes::of(batch, "status", end_of)?;
        let whole_answer = Flags::of(batch, "response_cached")?;
        let file = if self.by_file() { Some(Codes::of(batch, "file", task_hash)?) } else { None };
        let mut latest = None;
        for i in (0..batch.rows).filter(|i| keep.has(*i)) {
            let at = at.get(i).filter(|_| on_clock.has(i)).and_then(|at| self.range.since(at));
            if at.is_some_and(|at| !self.range.holds(at)) {
                continue;
            }
            if whole_answer.get(i) == Some(true) {
                own.tally.counts.response_cached += 1;
                continue;
            }
            let weight = weight.get(i).unwrap_or(1.0);
            if weight == 0.0 {
                own.tally.counts.weightless += 1;
                continue;
            }
            let Some(at) = at else {
                own.tally.timeless += 1;
                continue;
            };
            if let Some(file) = file.as_ref().and_then(|file| file.get(i))
                && latest != Some(file)
            {
                // Rows of a file come in runs.
                own.tally.counts.files.insert(file);
                latest = Some(file);
            }
            let Some(step) = self.grid.place(at) else {
                own.tally.dropped += 1;
                continue;
            };
            let row = Attempt {
                number: attempt.get(i),
                end: status.get(i).unwrap_or(End::Unknown),
                weight,
                prompt: prompt.get(i).map(f64::from),
                cached: cached.get(i).map(f64::from),
                output: output.get(i).map(f64::from),
                queue_s: queue.get(i),
                ttft_s: ttft.get(i),
                e2e_s: e2e.get(i),
            };
            own.tally.refused_without_attempt +=
                u64::from(row.end == End::Limited && row.number.is_none());
            row.count(own.at(step, class.get(i) as usize));
        }
        Ok(())
    }
}

/// What a row says of one attempt.
struct Attempt {
    number: Option<u32>,
    end: End,
    weight: f64,
    prompt: Option<f64>,
    cached: Option<f64>,
    output: Option<f64>,
    queue_s: Option<f64>,
    ttft_s: Option<f64>,
    e2e_s: Option<f64>,
}

impl Attempt {
    fn count(&self, step: &mut StepCount) {
        let weight = self.weight;
        step.attempts += weight;
        match self.end {
            End::Limited => step.limited += weight,
            End::Failed => step.failed += weight,
            End::Ok | End::Cancelled | End::Unknown => {}
        }
        if is_first(self.number) {
            step.requests += weight;
            if let Some(prompt) = self.prompt {
                step.prompt_tokens.add(prompt, weight);
            }
        }
        if let (Some(prompt), Some(cached)) = (self.prompt, self.cached) {
            step.cached_tokens.merge(Known { sum: cached * weight, of: prompt * weight });
        }
        if !is_answered(self.end) {
            return;
        }
        if let Some(output) = self.output {
            step.output_tokens.add(output, weight);
        }
        if let Some(held) = self.kv_token_s() {
            step.kv_token_s.add(held, weight);
        }
    }

    /// Tokens in KV memory times the seconds they were there.
    ///
    /// The prompt is held from the end of the queue to the last token; the output grows evenly from the first token to the last, so
    /// that half of it is held in the mean. A queue that is not known is none, and where the first token is not known, the output
    /// grows from the beginning.
    fn kv_token_s(&self) -> Option<f64> {
        let (prompt, output, e2e_s) = (self.prompt?, self.output?, self.e2e_s?);
        let served_s = (e2e_s - self.queue_s.unwrap_or(0.0)).max(0.0);
        let decode_s = (e2e_s - self.ttft_s.unwrap_or(0.0)).max(0.0);
        Some(prompt * served_s + 0.5 * output * decode_s)
    }
}

/// Whether an attempt is the first of its request; one that is not numbered is taken for it.
pub(super) fn is_first(attempt: Option<u32>) -> bool {
    attempt.is_none_or(|number| number <= 1)
}

/// Whether an attempt was answered; one that does not say how it ended is taken to be.
pub(super) fn is_answered(end: End) -> bool {
    matches!(end, End::Ok | End::Unknown)
}

/// A client of a series.
struct Client<'a> {
    name: &'a str,
    rows: &'a [SeriesRow],
    blocks: &'a [SeriesRow],
}

/// The clock of a row of a series.
fn clock_of(row: &SeriesRow) -> &str {
    row.clock.as_deref().unwrap_or(survey::UTC)
}

/// What clients of a series asked for, over steps.
fn over_steps(
    clients: &[Client<'_>],
    window_s: u64,
    step_s: Option<NonZero<u32>>,
    keep: usize,
) -> Result<HistoryScan, LedgerError> {
    let rows = || clients.iter().flat_map(|client| client.rows);
    let has = |clock: &str| rows().any(|row| clock_of(row) == clock);
    let clock = survey::COMMON.into_iter().find(|clock| has(clock));
    let absolute = clock == Some(survey::UTC);
    let start = |row: &SeriesRow| row.start.filter(|_| Some(clock_of(row)) == clock);
    let (first, last) = (rows().filter_map(start).min(), rows().filter_map(start).max());
    let origin = if absolute { 0 } else { first.unwrap_or(0) };
    let since = |row: &SeriesRow| start(row)?.checked_sub(origin);
    let span = first
        .zip(last)
        .and_then(|(first, last)| Some((first.checked_sub(origin)?, last.checked_sub(origin)?)));
    let window = u32::try_from(window_s).unwrap_or(u32::MAX);
    let whole = || STEPS_S.into_iter().filter(|step_s| step_s % window == 0);
    let own = whole().next().is_none().then_some(window);
    let window_ns = i64::from(window) * SECOND_NS;
    let grid = Grid::choose(step_s, whole().chain(own), |step_s| {
        span.map_or(Grid::empty(step_s), |span| Grid::of_windows(step_s, span, window_ns))
    });
    let place = |row: &SeriesRow| since(row).and_then(|at| grid.place(at));
    let counted = |client: &Client<'_>, each: &mut dyn FnMut(usize, &StepCount)| {
        if client.is_measured() {
            let known = client.known(|row| Some((place(row)?, since(row)?)));
            known.iter().for_each(|(step, own)| each(*step, &own.whole(&grid, window_ns)));
            return;
        }
        for row in client.rows {
            if let Some(step) = place(row) {
                each(step, &asked_in(row, client.blocks));
            }
        }
    };
    let totals: Vec<StepCount> = clients
        .iter()
        .map(|client| {
            let mut total = StepCount::default();
            counted(client, &mut |_, more| total.merge(more));
            total
        })
        .collect();
    let (order, apart) = by_load(&totals, keep);
    let pooled = order.len() - apart;
    grid.check(apart + usize::from(pooled > 0))?;
    let mut classes: Vec<ClassHistory> =
        order[..apart].iter().map(|i| grid.class(clients[*i].name)).collect();
    if pooled > 0 {
        classes.push(grid.class(OTHER_CLIENTS));
    }
    for (place, i) in order.iter().enumerate() {
        let class = &mut classes[place.min(apart)];
        counted(&clients[*i], &mut |step, more| class.steps[step].merge(more));
    }
    let (mut timeless, mut dropped) = (0, 0);
    for row in rows() {
        match since(row) {
            None => timeless += 1,
            Some(at) => dropped += u64::from(grid.place(at).is_none()),
        }
    }
    let mut notes = Vec::new();
    if pooled > 0 {
        notes.push(format!(
            "{pooled} of {} clients are counted together as `{OTHER_CLIENTS}`",
            order.len()
        ));
    }
    for client in clients.iter().filter(|client| client.is_measured()) {
        let known = client.known(|row| Some((place(row)?, since(row)?)));
        let (first, last) = (known.keys().next(), known.keys().next_back());
        let between = first.zip(last).map_or(0, |(first, last)| last - first + 1);
        let gaps = between - known.len();
        if gaps > 0 {
            notes.push(format!(
                "`{}` has no window in {gaps} of {between} steps of {} s: they are gaps, and are zero here; a forecast takes them for missing where all classes are silent",
                client.name, grid.step_s
            ));
        }
    }
    if grid.steps == 0 {
        notes.push(grid.too_short());
    }
    let history = grid.history(absolute, classes);
    Ok(HistoryScan { history, dropped, refused_without_attempt: 0, timeless, notes })
}

/// What was asked in a window: lengths where the window or its block knows their mean.
fn asked_in(row: &SeriesRow, blocks: &[SeriesRow]) -> StepCount {
    let requests = row.requests.unwrap_or(0.0);
    let block = row.start.and_then(|start| block_at(start, blocks));
    let of = |tokens: Option<f64>, mean: fn(&SeriesRow) -> Option<f64>| {
        let of_mean = || Some(requests * mean(row).or_else(|| block.and_then(mean))?);
        let sum = tokens.or_else(of_mean);
        sum.map_or(Known::default(), |sum| Known { sum, of: requests })
    };
    let cached = row.cached_tokens.or_else(|| Some(row.prompt_tokens? - row.fresh_tokens?));
    let cached =
        cached.zip(row.prompt_tokens).map(|(sum, of)| Known { sum: sum.clamp(0.0, of), of });
    StepCount {
        requests,
        attempts: requests,
        failed: row.errors.unwrap_or(0.0),
        prompt_tokens: of(row.prompt_tokens, |row| row.prompt_mean),
        cached_tokens: cached.unwrap_or_default(),
        output_tokens: of(row.output_tokens, |row| row.output_mean),
        ..StepCount::default()
    }
}

/// Clients with the largest load first, and how many of them are told apart.
fn by_load(totals: &[StepCount], keep: usize) -> (Vec<usize>, usize) {
    let mut all = StepCount::default();
    totals.iter().for_each(|total| all.merge(total));
    let load = |total: &StepCount| {
        let lengths =
            [(total.prompt_tokens, all.prompt_tokens), (total.output_tokens, all.output_tokens)];
        let means: Vec<f64> =
            lengths.iter().filter_map(|(own, of_all)| own.mean().or(of_all.mean())).collect();
        // Where nobody knows lengths, requests are all that can be compared.
        total.requests * if means.is_empty() { 1.0 } else { means.iter().sum() }
    };
    let loads: Vec<f64> = totals.iter().map(load).collect();
    let mut order: Vec<usize> = (0..totals.len()).collect();
    // Stable: clients with the same load stay in the order of their names.
    order.sort_by(|a, b| loads[*b].total_cmp(&loads[*a]));
    let enough = APART_SHARE * loads.iter().sum::<f64>();
    let (mut apart, mut so_far) = (0, 0.0);
    while apart < keep.min(order.len()) && so_far < enough {
        so_far += loads[order[apart]];
        apart += 1;
    }
    (order, apart)
}
