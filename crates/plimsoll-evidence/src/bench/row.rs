//! One row of a results file: fields are read by path, and what is wrong with them is kept.

use std::collections::BTreeMap;

use plimsoll_study::{BenchPoint, Flag, Latency, Length, Load, Origin};
use serde_json::Value;

use super::ResultsError;
use super::document::{INFINITY, MINUS_INFINITY, NOT_A_NUMBER};

/// What a number may be, so that nothing downstream overflows.
pub(super) struct Bound {
    /// Zero is allowed.
    pub zero: bool,
    /// Largest.
    pub most: f64,
}

/// Tokens of one request.
pub(super) const TOKENS: Bound = Bound { zero: false, most: 1e9 };
/// Tokens or requests of a whole run.
pub(super) const COUNT: Bound = Bound { zero: true, most: 1e15 };
/// Per second.
pub(super) const RATE: Bound = Bound { zero: false, most: 1e9 };
/// Clients.
pub(super) const CLIENTS: Bound = Bound { zero: false, most: 1e7 };
/// A share of one.
pub(super) const SHARE: Bound = Bound { zero: true, most: 1.0 };
/// Seconds.
pub(super) const SECONDS: Bound = Bound { zero: false, most: 1e7 };

/// What is nearer to zero is zero: its inverse would outgrow every bound.
const LEAST: f64 = 1e-12;

/// Milliseconds in a second.
pub(super) const MS: f64 = 1e3;

/// What a latency of zero means.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Zero {
    /// It cannot be.
    Wrong,
    /// Nothing was measured.
    Unusable,
}

/// A latency as its file writes it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Its field.
    pub field: String,
    /// As written.
    pub raw: f64,
    /// Units in a second.
    pub per_second: f64,
}

/// A row, and what was found in it.
pub(super) struct Row<'a> {
    /// Where it is.
    pub origin: Origin,
    value: &'a Value,
    /// The document that it is a part of.
    pub root: &'a Value,
    /// The latencies that were read, for messages.
    pub seen: BTreeMap<&'static str, Seen>,
    /// What is wrong.
    pub errors: Vec<ResultsError>,
    /// What should be known.
    pub flags: Vec<Flag>,
}

impl<'a> Row<'a> {
    pub fn new(origin: Origin, value: &'a Value, root: &'a Value) -> Self {
        let (seen, errors, flags) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { origin, value, root, seen, errors, flags }
    }

    /// A point that holds nothing but its load.
    pub fn point(&self, load: Load) -> BenchPoint {
        BenchPoint {
            origin: self.origin.clone(),
            load,
            prompt: None,
            output: None,
            completed: None,
            failed: None,
            duration_s: None,
            ttft: Latency::default(),
            tpot: Latency::default(),
            itl: Latency::default(),
            e2e: Latency::default(),
            output_tokens_per_s: None,
            requests_per_s: None,
            in_flight_mean: None,
            cached_share: None,
            accepted_per_step: None,
            says: Vec::new(),
        }
    }

    pub fn wrong(&mut self, path: &str, problem: impl Into<String>) {
        self.errors.push(ResultsError::Field {
            file: self.origin.file.clone(),
            row: self.origin.row,
            field: path.replace('/', "."),
            problem: problem.into(),
        });
    }

    pub fn flag(&mut self, code: &'static str, rejects: bool, path: &str, message: String) {
        let (origin, field) = (self.origin.clone(), path.replace('/', "."));
        self.flags.push(Flag { code, rejects, origin, field, message });
    }

    /// What is at a path, its parts apart by slashes; `null` is nothing.
    pub fn get(&self, path: &str) -> Option<&'a Value> {
        at(self.value, path)
    }

    /// The first path that leads somewhere.
    pub fn first<'p>(&self, paths: &[&'p str]) -> Option<&'p str> {
        paths.iter().copied().find(|path| self.get(path).is_some())
    }

    pub fn text(&self, path: &str) -> Option<&'a str> {
        self.get(path).and_then(Value::as_str)
    }

    pub fn list(&self, path: &str) -> Option<&'a Vec<Value>> {
        self.get(path).and_then(Value::as_array)
    }

    /// A number, where there is one.
    pub fn number(&mut self, path: &str, bound: &Bound) -> Option<f64> {
        self.get(path).and_then(|value| self.check(path, value, bound))
    }

    /// A number that must be there.
    pub fn need(&mut self, path: &str, bound: &Bound) -> Option<f64> {
        if self.get(path).is_none() {
            self.wrong(path, "is missing");
        }
        self.number(path, bound)
    }

    /// A whole number, where there is one; `96.0` is whole too.
    pub fn whole(&mut self, path: &str, bound: &Bound) -> Option<u64> {
        let number = self.number(path, bound)?;
        if number.fract() != 0.0 {
            self.wrong(path, format!("must be a whole number; it is {number}"));
            return None;
        }
        Some(number as u64)
    }

    /// Whether a value is a number within its bound.
    pub fn check(&mut self, path: &str, value: &Value, bound: &Bound) -> Option<f64> {
        let Some(number) = value.as_f64().filter(|x| x.is_finite()) else {
            self.wrong(path, format!("must be a number; it is {}", show(value)));
            return None;
        };
        let problem = if number < 0.0 || (number < LEAST && !bound.zero) {
            let least = if bound.zero { "at least zero" } else { "above zero" };
            format!("must be {least}; it is {}", show(value))
        } else if number > bound.most {
            format!("must be at most {:e}; it is {}", bound.most, show(value))
        } else {
            return Some(number);
        };
        self.wrong(path, problem);
        None
    }

    /// A number that may be infinite, in any of the ways tools write it.
    pub fn number_or_infinity(&mut self, path: &str, bound: &Bound) -> Option<f64> {
        match self.text(path) {
            Some(INFINITY | "Infinity") => Some(f64::INFINITY),
            _ => self.need(path, bound),
        }
    }

    /// Requests that were answered; none is a mistake, because then nothing was measured.
    pub fn completed(&mut self, path: &str) -> Option<u64> {
        if self.get(path).is_none() {
            self.wrong(path, "is missing");
        }
        let completed = self.whole(path, &COUNT)?;
        if completed == 0 {
            self.wrong(path, "is 0: no request was answered, so nothing was measured");
            return None;
        }
        Some(completed)
    }

    /// The mean length of a request, counted by the tool.
    pub fn length(&mut self, path: &str, requests: f64) -> Option<Length> {
        let total = Bound { zero: false, most: COUNT.most };
        let mean = self.number(path, &total)? / requests;
        if mean > TOKENS.most {
            self.wrong(path, format!("makes {mean} tokens a request; at most {}", TOKENS.most));
            return None;
        }
        Some(Length { mean, counted: true })
    }

    /// A latency's mean, median and 99th percentile.
    pub fn latency(
        &mut self,
        name: &'static str,
        paths: [&str; 3],
        per_second: f64,
        zero: Zero,
    ) -> Latency {
        let bound = Bound { zero: zero == Zero::Unusable, most: SECONDS.most * per_second };
        let raw = paths.map(|path| self.number(path, &bound));
        if raw.contains(&Some(0.0)) {
            let message = format!("{name} of zero: nothing was measured, so it is left out");
            self.flag("unusable-metric", false, paths[0], message);
            return Latency::default();
        }
        if let [_, Some(p50), Some(p99)] = raw
            && p50 > p99 * (1.0 + 1e-9)
        {
            self.wrong(
                paths[1],
                format!("is {p50}, above `{}` ({p99})", paths[2].replace('/', ".")),
            );
        }
        if let Some((field, raw)) = paths.iter().zip(raw).find_map(|(p, x)| Some((p, x?))) {
            self.seen.insert(name, Seen { field: field.replace('/', "."), raw, per_second });
        }
        let [mean, p50, p99] = raw.map(|x| x.map(|x| x / per_second));
        Latency { mean, p50, p99 }
    }

    /// The load of a file that does not state it: requests in flight by Little's law stand for the clients.
    pub fn inferred_load(&mut self, e2e: &Latency, requests_per_s: Option<f64>) -> Option<f64> {
        let in_flight = e2e.mean? * requests_per_s?;
        if in_flight > CLIENTS.most {
            self.wrong(
                "load",
                format!("is not stated, and cannot be {in_flight} requests in flight"),
            );
            return None;
        }
        let message = format!(
            "the file does not state its load; requests/s x mean latency = {in_flight:.1} in flight stand for the \
             clients: give the tool's file that states it to be sure"
        );
        self.flag("load-inferred", false, "load", message);
        Some(in_flight)
    }

    /// The row's own words, numbers and switches, without those that are read elsewhere.
    pub fn says(&self, skip: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let Value::Object(fields) = self.value else { return Vec::new() };
        let fields = fields.iter().filter(|(key, _)| !skip(key));
        fields.filter_map(|(key, value)| Some((clip(key), word(value)?))).take(64).collect()
    }

    /// Adds what a path says, under a name of ours.
    pub fn say(&self, says: &mut Vec<(String, String)>, name: &str, path: &str) {
        let value = self.get(path).or_else(|| at(self.root, path));
        if let Some(word) = value.and_then(word)
            && !says.iter().any(|(key, _)| key == name)
        {
            says.push((name.to_owned(), word));
        }
    }
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('/').try_fold(value, |value, part| match value {
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        _ => value.get(part),
    });
    found.filter(|v| !v.is_null())
}

/// A scalar as text.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(clip(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        _ => None,
    }
}

pub(super) fn clip(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// A value in a message.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => match text.as_str() {
            NOT_A_NUMBER => "NaN".to_owned(),
            INFINITY => "infinite".to_owned(),
            MINUS_INFINITY => "-Infinity".to_owned(),
            text => format!("`{}`", clip(text)),
        },
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}
