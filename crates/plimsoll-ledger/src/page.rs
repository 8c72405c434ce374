//! What a reader of a format leaves behind: rows for the tables of the ledger, and what it could not take.

use std::borrow::Cow;

use crate::reject::Why;
use crate::row::{OutcomeRow, RejectRow, Row, Rows, SeriesRow};

/// What is wrong with a row, and with which field of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Empty where it is the whole row.
    pub(crate) field: Cow<'static, str>,
    pub(crate) why: Why,
}

impl Wrong {
    pub(crate) fn new(field: impl Into<Cow<'static, str>>, why: Why) -> Self {
        Self { field: field.into(), why }
    }

    /// Not a row of this format at all.
    pub(crate) fn shape(problem: impl Into<String>) -> Self {
        Self::new("", Why::Shape(problem.into()))
    }
}

/// Where rows of a page come from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The name of the source: part of every key.
    pub(crate) source: String,
    /// The file as the user named it.
    pub(crate) file: String,
    /// What a relative clock starts at, in nanoseconds from 1970.
    pub(crate) start: i64,
    /// Whether moments of the file have a zone, once one has been read.
    pub(crate) zoned: Option<bool>,
}

impl Origin {
    /// Who said when a log began has given its times a date.
    fn date(&self, clock: &mut Option<String>) {
        if self.start != 0 && clock.as_deref() == Some("relative") {
            *clock = Some("absolute".to_owned());
        }
    }
}

/// A stretch of one file, read.
pub(crate) struct Page {
    pub(crate) origin: Origin,
    /// Rows that were looked at: taken, rejected or passed over.
    pub(crate) read: u64,
    pub(crate) requests: Rows,
    /// What makes each request unique, in the order of `requests`.
    pub(crate) keys: Vec<u128>,
    /// When each request came, in the order of `requests`.
    pub(crate) stamps: Vec<Option<i64>>,
    pub(crate) outcomes: Vec<OutcomeRow>,
    pub(crate) series: Vec<SeriesRow>,
    pub(crate) rejects: Vec<RejectRow>,
    /// Records that are no requests, by what they are: spans of other kinds, observations of tools.
    pub(crate) others: std::collections::BTreeMap<Cow<'static, str>, u64>,
    /// Whether any request counts its time from the start of the log.
    pub(crate) relative: bool,
    /// Whether any counts it from the start of its session, so that no order is to be expected.
    pub(crate) by_session: bool,
    /// Where keys are made.
    scratch: Vec<u8>,
}

impl Page {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin,
            read: 0,
            requests: Rows::new(),
            keys: Vec::new(),
            stamps: Vec::new(),
            outcomes: Vec::new(),
            series: Vec::new(),
            rejects: Vec::new(),
            others: std::collections::BTreeMap::new(),
            relative: false,
            by_session: false,
            scratch: Vec::new(),
        }
    }

    /// Takes a request, or the reason not to. `text` is the record as it stands in the file: it names a request that has
    /// no name of its own, and shows what was rejected.
    pub(crate) fn request(&mut self, line: u64, text: &str, mut row: Result<Row, Wrong>) {
        match &mut row {
            Ok(row) => match check(row) {
                Ok(()) => self.take(line, text, row),
                Err(wrong) => self.reject(line, text, &wrong),
            },
            Err(wrong) => self.reject(line, text, wrong),
        }
    }

    fn take(&mut self, line: u64, text: &str, row: &mut Row) {
        self.read += 1;
        self.origin.date(&mut row.clock);
        self.relative |= row.clock.as_deref() == Some("relative");
        self.by_session |= row.clock.as_deref() == Some("session");
        // Lent to the row for as long as it is written: a copy for every row would cost as much as reading it.
        let own = row.source.is_none();
        if own {
            row.source = Some(std::mem::take(&mut self.origin.source));
        }
        row.file = Some(std::mem::take(&mut self.origin.file));
        row.line = Some(line);
        let mut scratch = std::mem::take(&mut self.scratch);
        let id = row.request_id.get_or_insert_with(|| {
            let key = Key::within(std::mem::take(&mut scratch), "row", "").number(line).text(text);
            let name = hexadecimal(key.hash() as u64);
            scratch = key.0;
            name
        });
        // One that is not numbered is kept so: whether there were others is unknown.
        let attempt = row.attempt.unwrap_or(1);
        let source = row.source.as_deref().unwrap_or_default();
        let key = Key::within(scratch, "requests", source).text(id).number(u64::from(attempt));
        self.keys.push(key.hash());
        self.scratch = key.0;
        self.stamps.push(row.ts_arrival);
        self.requests.push(row);
        self.origin.file = row.file.take().unwrap_or_default();
        if own {
            self.origin.source = row.source.take().unwrap_or_default();
        }
    }

    /// Takes how a task ended.
    pub(crate) fn outcome(&mut self, line: u64, text: &str, outcome: Result<OutcomeRow, Wrong>) {
        match outcome {
            Ok(mut outcome) => {
                self.read += 1;
                outcome.source = Some(self.origin.source.clone());
                outcome.file = Some(self.origin.file.clone());
                outcome.line = Some(line);
                self.outcomes.push(outcome);
            }
            Err(wrong) => self.reject(line, text, &wrong),
        }
    }

    /// Takes what was counted over a window.
    pub(crate) fn series(&mut self, line: u64, text: &str, series: Result<SeriesRow, Wrong>) {
        match series {
            Ok(mut series) => {
                self.read += 1;
                self.origin.date(&mut series.clock);
                series.source = Some(self.origin.source.clone());
                series.file = Some(self.origin.file.clone());
                series.line = Some(line);
                self.series.push(series);
            }
            Err(wrong) => self.reject(line, text, &wrong),
        }
    }

    /// Passes over a record that is well formed, but nothing that the ledger keeps.
    pub(crate) fn other(&mut self, what: impl Into<Cow<'static, str>>) {
        self.read += 1;
        *self.others.entry(what.into()).or_default() += 1;
    }

    /// Keeps a row that could not be taken.
    pub(crate) fn reject(&mut self, line: u64, text: &str, wrong: &Wrong) {
        self.read += 1;
        let field = (!wrong.field.is_empty()).then(|| wrong.field.clone().into_owned());
        self.rejects.push(RejectRow {
            file: Some(self.origin.file.clone()),
            line: Some(line),
            field,
            reason: Some(wrong.why.to_string()),
            text: Some(beginning(text)),
        });
    }
}

/// Enough of a record to find it by.
fn beginning(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A century from 2000, both ways, in nanoseconds from 1970.
const STAMP_MIN: i64 = -2_208_988_800_000_000_000;
const STAMP_MAX: i64 = 4_102_444_800_000_000_000;
/// No row of a sample stands for more requests.
const WEIGHT_MAX: f64 = 1e9;

/// What cannot be true of one request.
pub(crate) fn check(row: &Row) -> Result<(), Wrong> {
    let contradicts = |field, problem: String| Err(Wrong::new(field, Why::Contradicts(problem)));
    if let Some(prompt) = row.prompt_tokens {
        let of = |part: Option<u32>| u64::from(part.unwrap_or(0));
        let cached = of(row.cache_read_tokens) + of(row.cache_write_tokens);
        if cached > u64::from(prompt) {
            let problem = format!("{cached} cached tokens are more than the prompt's {prompt}");
            return contradicts("cache_read_tokens", problem);
        }
    }
    if let (Some(reasoning), Some(output)) = (row.reasoning_tokens, row.output_tokens)
        && reasoning > output
    {
        let problem = format!("{reasoning} tokens are more than the output's {output}");
        return contradicts("reasoning_tokens", problem);
    }
    if let (Some(output), Some(most)) = (row.output_tokens, row.max_tokens)
        && output > most
    {
        let problem = format!("{output} tokens are more than the {most} that were allowed");
        return contradicts("output_tokens", problem);
    }
    for (field, value) in [
        ("queue_s", row.queue_s),
        ("prefill_s", row.prefill_s),
        ("decode_s", row.decode_s),
        ("tool_s", row.tool_s),
        ("ttft_s", row.ttft_s),
        ("e2e_s", row.e2e_s),
        ("cost_usd", row.cost_usd),
        ("sample_weight", row.sample_weight),
    ] {
        if let Some(value) = value
            && !(value >= 0.0 && value.is_finite())
        {
            return Err(Wrong::new(field, Why::Negative(value.to_string())));
        }
    }
    if let Some(at) = row.ts_arrival
        && !(STAMP_MIN..=STAMP_MAX).contains(&at)
    {
        return Err(Wrong::new("ts_arrival", Why::Absurd(at.to_string())));
    }
    if let Some(weight) = row.sample_weight
        && weight > WEIGHT_MAX
    {
        return Err(Wrong::new("sample_weight", Why::Absurd(weight.to_string())));
    }
    if let Some(status) = &row.status
        && !["ok", "limited", "failed", "cancelled"].contains(&status.as_str())
    {
        return Err(Wrong::new("status", Why::Malformed(crate::value::clip(status))));
    }
    // Clocks of two machines may differ by a little.
    const SLACK: f64 = 1e-3;
    if let (Some(ttft), Some(e2e)) = (row.ttft_s, row.e2e_s)
        && ttft > e2e + SLACK
    {
        let problem = format!("the first token came after {ttft} s, the last after {e2e} s");
        return contradicts("ttft_s", problem);
    }
    Ok(())
}

/// Sixteen digits.
fn hexadecimal(number: u64) -> String {
    let digit = |place: u32| char::from_digit((number >> (4 * place)) as u32 & 15, 16);
    (0..16).rev().filter_map(digit).collect()
}

/// Makes a key of 128 bits out of what makes a row unique.
pub(crate) struct Key(Vec<u8>);

impl Key {
    pub(crate) fn new(table: &str, source: &str) -> Self {
        // Room for a name of usual length: growing piece by piece costs more than the hash.
        Self::within(Vec::with_capacity(96), table, source)
    }

    /// The same, in memory that was used before.
    fn within(mut scratch: Vec<u8>, table: &str, source: &str) -> Self {
        scratch.clear();
        Self(scratch).text(table).text(source)
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        // With its length, so that two texts never run into each other.
        self.0.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub(crate) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn finish(self) -> u128 {
        self.hash()
    }

    /// At once: a hasher that is fed piece by piece costs more than all of a row.
    fn hash(&self) -> u128 {
        twox_hash::XxHash3_128::oneshot(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ledgers that were written are read again: a key is the hash of its bytes, however it is put together.
    #[test]
    fn keys_stay_what_they_are() {
        let mut hasher = twox_hash::XxHash3_128::new();
        for piece in
            [&1u64.to_le_bytes()[..], b"t", &3u64.to_le_bytes(), b"log", &7u64.to_le_bytes()]
        {
            hasher.write(piece);
        }
        assert_eq!(Key::new("t", "log").number(7).finish(), hasher.finish_128());
        assert_eq!(
            hexadecimal(0x00ab_0000_0000_0f01),
            format!("{:016x}", 0x00ab_0000_0000_0f01u64)
        );
    }
}
