//! ServeGen: what clients were measured to ask for, instead of requests.
//!
//! A client is two files, `chunk-7-trace.csv` and `chunk-7-dataset.json`; what they have in common is the class.

use serde_json::Value;

use super::{Clock, Heading, Json, RELATIVE, Record, Table, no_object};
use crate::page::{Page, Wrong};
use crate::reject::Why;
use crate::row::SeriesRow;
use crate::value::{SECOND, clip, moment, tokens};

/// A row of rates is ten minutes in every published file. A record does not show it, so that it is the format's.
const WINDOW_S: f64 = 600.0;
/// Lengths are counted over six hours.
const BLOCK_S: f64 = 21_600.0;

const TIME: &str = "timestamp_s";
const RATE: &str = "rate_req_per_s";
const CV: &str = "cv_of_inter_arrivals";
const PARAMETERS: [&str; 2] = ["param1", "param2"];

/// Six fields without a heading: time, rate, variation, the family of gaps and its parameters.
pub(super) fn rates(heading: &Heading<'_>) -> Option<Box<dyn Table>> {
    let [time, rate, cv, family, first, second] = heading.columns else { return None };
    let numbers = [time, rate, cv, first, second].iter().all(|field| field.parse::<f64>().is_ok());
    let families = ["", "Gamma", "Weibull", "Exponential", "Poisson"];
    if !numbers || !families.contains(&family.as_str()) {
        return None;
    }
    Some(Box::new(Rates { class: class(heading.file, "-trace.csv") }))
}

/// One object of objects: the beginning of a block of time, and its histograms as text.
pub(super) fn lengths(file: &str, first: &Value) -> Option<Box<dyn Json>> {
    let blocks = first.as_object().filter(|blocks| !blocks.is_empty())?;
    let is_block = |(start, block): (&String, &Value)| {
        start.parse::<f64>().is_ok() && block.get("input_tokens").is_some_and(Value::is_string)
    };
    if !blocks.iter().all(is_block) {
        return None;
    }
    Some(Box::new(Lengths { class: class(file, "-dataset.json") }))
}

/// The path of a client's file, up to what its files have in common.
pub(super) fn class(file: &str, ending: &str) -> String {
    file.rfind(ending).map_or(file, |end| &file[..end]).to_owned()
}

struct Rates {
    class: String,
}

impl Table for Rates {
    fn headless(&self) -> bool {
        true
    }

    fn record(&self, record: &Record<'_>, page: &mut Page) {
        let row = self.row(record, &Clock::of(&page.origin));
        page.series(record.line, record.text(), row);
    }
}

impl Rates {
    /// An idle window is a row, too: a client asked for nothing then, or nothing was collected.
    fn row(&self, record: &Record<'_>, clock: &Clock) -> Result<SeriesRow, Wrong> {
        let number = |name: &'static str, at: usize| {
            let text = record.get(at).ok_or(Wrong::new(name, Why::Missing))?;
            number(text).map_err(|why| Wrong::new(name, why))
        };
        let start = moment(record.get(0).unwrap_or_default(), SECOND);
        let start = start.map_err(|why| Wrong::new(TIME, why))?;
        let rate = number(RATE, 1)?;
        let (cv, first, second) =
            (number(CV, 2)?, number(PARAMETERS[0], 4)?, number(PARAMETERS[1], 5)?);
        // Of an idle client nothing is known, and zeros are written for it.
        let busy = |value: f64| (rate > 0.0).then_some(value);
        Ok(SeriesRow {
            class: Some(self.class.clone()),
            start: Some(clock.after(start)),
            clock: Some(RELATIVE.to_owned()),
            window_s: Some(WINDOW_S),
            requests: Some(rate * WINDOW_S),
            cv: busy(cv),
            family: record.get(3).map(str::to_owned),
            parameter_1: busy(first),
            parameter_2: busy(second),
            ..SeriesRow::default()
        })
    }
}

struct Lengths {
    class: String,
}

impl Json for Lengths {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        let Value::Object(blocks) = value else {
            return page.reject(line, text, &no_object());
        };
        for (start, block) in blocks {
            let row = self.row(start, block, &Clock::of(&page.origin));
            page.series(line, start, row);
        }
    }
}

impl Lengths {
    fn row(&self, start: &str, block: &Value, clock: &Clock) -> Result<SeriesRow, Wrong> {
        let start = moment(start.trim(), SECOND).map_err(|why| Wrong::new(TIME, why))?;
        let (prompt_lengths, prompt_shares, prompt_mean) = counts("input_tokens", block)?;
        let (output_lengths, output_shares, output_mean) = counts("output_tokens", block)?;
        let reason = histogram("reason_ratio", block)?;
        let reason = reason.iter().map(|(ratio, share)| Ok((number(ratio)?, *share)));
        let reason: Result<Vec<_>, Why> = reason.collect();
        let reason = reason.map_err(|why| Wrong::new("reason_ratio", why))?;
        Ok(SeriesRow {
            class: Some(self.class.clone()),
            start: Some(clock.after(start)),
            clock: Some(RELATIVE.to_owned()),
            window_s: Some(BLOCK_S),
            prompt_mean,
            output_mean,
            reason_share: mean(reason.into_iter()),
            prompt_lengths,
            prompt_shares,
            output_lengths,
            output_shares,
            ..SeriesRow::default()
        })
    }
}

type Counts = (Option<Vec<u64>>, Option<Vec<f64>>, Option<f64>);

/// Lengths, their shares and their mean; none of an empty histogram, whose client asked for nothing.
fn counts(name: &'static str, block: &Value) -> Result<Counts, Wrong> {
    let histogram = histogram(name, block)?;
    if histogram.is_empty() {
        return Ok((None, None, None));
    }
    let lengths: Result<Vec<u64>, Why> = histogram.iter().map(|(count, _)| tokens(count)).collect();
    let lengths = lengths.map_err(|why| Wrong::new(name, why))?;
    let shares: Vec<f64> = histogram.iter().map(|(_, share)| *share).collect();
    let mean = mean(lengths.iter().zip(&shares).map(|(length, share)| (*length as f64, *share)));
    Ok((Some(lengths), Some(shares), mean))
}

/// The mean of values by their shares, which need not sum to one.
fn mean(weighted: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, shares) = weighted
        .fold((0.0, 0.0), |(sum, shares), (value, share)| (sum + value * share, shares + share));
    (shares > 0.0).then(|| sum / shares)
}

/// A histogram, which is a dictionary of Python printed into text: `{138: 0.25, 140: 0.75}`. Absent is empty.
fn histogram<'a>(name: &'static str, block: &'a Value) -> Result<Vec<(&'a str, f64)>, Wrong> {
    let wrong = |text: &str| Wrong::new(name, Why::Malformed(clip(text)));
    let text = match block.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => text.trim(),
        Some(other) => return Err(wrong(&other.to_string())),
    };
    let entries = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let entries = entries.ok_or_else(|| wrong(text))?.trim();
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let entry = |entry: &'a str| {
        let (value, share) = entry.split_once(':').ok_or_else(|| wrong(entry))?;
        Ok((value.trim(), number(share.trim()).map_err(|why| Wrong::new(name, why))?))
    };
    entries.split(',').map(entry).collect()
}

/// A number that is not below zero.
fn number(text: &str) -> Result<f64, Why> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    let number = number.ok_or_else(|| Why::Malformed(clip(text)))?;
    if number < 0.0 {
        return Err(Why::Negative(clip(text)));
    }
    Ok(number)
}
