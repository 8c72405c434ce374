//! How tasks ended, as somebody found out later: `task_id` and `success`, and `value`, `label` and `ts` where they are known.

use std::borrow::Cow;

use serde_json::Value;

use super::own::{flag, text_of};
use super::{Clock, Heading, Json, Record, Table, find, no_object};
use crate::page::{Page, Wrong};
use crate::reject::Why;
use crate::row::OutcomeRow;
use crate::value::{clip, instant, is_unknown, real_in};

const COLUMNS: [&str; 5] = ["task_id", "success", "value", "label", "ts"];
/// What a table of requests has, and one of outcomes has not.
const REQUESTS: [&str; 3] = ["ts_arrival", "prompt_tokens", "output_tokens"];

pub(super) fn table(heading: &Heading<'_>) -> Option<Box<dyn Table>> {
    let columns = COLUMNS.map(|name| find(heading, name));
    let is_outcomes = is_outcomes(|name| find(heading, name).is_some());
    is_outcomes.then(|| Box::new(Outcomes { columns }) as Box<dyn Table>)
}

pub(super) fn json(_: &str, first: &Value) -> Option<Box<dyn Json>> {
    let is_outcomes = is_outcomes(|name| first.get(name).is_some());
    is_outcomes.then(|| Box::new(OutcomeLines) as Box<dyn Json>)
}

fn is_outcomes(has: impl Fn(&str) -> bool) -> bool {
    has("task_id") && has("success") && !REQUESTS.iter().any(|name| has(name))
}

struct Outcomes {
    columns: [Option<usize>; COLUMNS.len()],
}

impl Table for Outcomes {
    fn record(&self, record: &Record<'_>, page: &mut Page) {
        let mut clock = Clock::of(&page.origin);
        let row = outcome(self.columns.map(|at| record.get(at?).map(Cow::Borrowed)), &mut clock);
        page.origin.zoned = clock.zoned;
        page.outcome(record.line, record.text(), row);
    }
}

struct OutcomeLines;

impl Json for OutcomeLines {
    fn record(&self, line: u64, text: &str, value: &Value, page: &mut Page) {
        let Value::Object(object) = value else {
            return page.reject(line, text, &no_object());
        };
        let mut fields = COLUMNS.map(|_| None);
        for (name, field) in COLUMNS.iter().zip(&mut fields) {
            match object.get(*name).map(text_of) {
                None => {}
                Some(Ok(text)) => *field = text,
                Some(Err(why)) => return page.reject(line, text, &Wrong::new(*name, why)),
            }
        }
        let mut clock = Clock::of(&page.origin);
        let row = outcome(fields, &mut clock);
        page.origin.zoned = clock.zoned;
        page.outcome(line, text, row);
    }
}

fn outcome(
    fields: [Option<Cow<'_, str>>; COLUMNS.len()],
    clock: &mut Clock,
) -> Result<OutcomeRow, Wrong> {
    let [task, success, value, label, ts] =
        fields.map(|field| field.filter(|text| !is_unknown(text)));
    let task_id = task.ok_or(Wrong::new("task_id", Why::Missing))?.into_owned();
    let success = success.ok_or(Wrong::new("success", Why::Missing))?;
    let malformed = || Wrong::new("success", Why::Malformed(clip(&success)));
    let success = flag(success.trim()).ok_or_else(malformed)?;
    let ts = ts.map(|ts| instant(&ts, &mut clock.zoned)).transpose();
    Ok(OutcomeRow {
        task_id: Some(task_id),
        success: Some(success),
        value: real_in("value", value.as_deref())?,
        label: label.map(Cow::into_owned),
        ts: ts.map_err(|why| Wrong::new("ts", why))?,
        ..OutcomeRow::default()
    })
}
