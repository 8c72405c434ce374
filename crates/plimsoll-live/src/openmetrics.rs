//! Metrics in files: the text format of Prometheus and OpenMetrics.
//!
//! Both are read line by line, and every line that cannot be read is kept with its number and the reason. They differ in their clock: OpenMetrics counts seconds
//! and ends with `# EOF`, the older format counts milliseconds and just ends.

mod line;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

use crate::answer::{Labels, Series, to_ms};
use crate::error::LiveError;
use line::Line;

/// The longest line that is read.
const LINE_MAX: u64 = 1 << 20;
/// Lines that cannot be read and are kept; more are only counted.
const BAD_KEPT: usize = 1_000;
/// Samples that are held: a third of a gigabyte.
const SAMPLES_MAX: usize = 20_000_000;
/// A stamp below is in seconds, unless it is of the first three years after 1970.
const MILLISECONDS_FROM: f64 = 1e11;

/// What a file of metrics holds.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    /// The file as it was named.
    pub(crate) name: String,
    /// Series of a name.
    pub(crate) metrics: BTreeMap<String, Vec<Stored>>,
    families: BTreeMap<String, Family>,
    bad: Vec<BadLine>,
    bad_lines: u64,
    lines: u64,
    notes: Vec<String>,
}

/// A series in memory. A value that is no number is NaN here, and unknown to who asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) labels: Labels,
    pub(crate) samples: Vec<(i64, f64)>,
}

/// What a family of metrics says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    /// `counter`, `gauge`, `histogram` and so on.
    pub kind: String,
    /// What it means.
    pub help: String,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct BadLine {
    /// Counted from one.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
    /// Its beginning.
    pub text: String,
}

impl Exposition {
    /// Reads a file. Samples without a time have the one that is given, in milliseconds since 1970; where none is, they are bad lines.
    pub fn read(name: &str, mut from: impl BufRead, at_ms: Option<i64>) -> Result<Self, LiveError> {
        let mut reading = Reading::new(name, at_ms);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let unreadable = |lines: u64| {
                move |source: io::Error| LiveError::Unreadable {
                    name: name.to_owned(),
                    line: lines,
                    source,
                }
            };
            let taken = from.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes);
            if taken.map_err(unreadable(reading.own.lines))? == 0 {
                break;
            }
            reading.own.lines += 1;
            if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LINE_MAX {
                skip_line(&mut from).map_err(unreadable(reading.own.lines))?;
                reading.bad(format!("is longer than {} MiB", LINE_MAX >> 20), &bytes);
                continue;
            }
            let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            reading.line(text);
        }
        reading.finish()
    }

    /// The file as it was named.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lines that were read, bad ones included.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Lines that could not be read: the first thousand of them.
    pub fn bad(&self) -> &[BadLine] {
        &self.bad
    }

    /// How many lines could not be read.
    pub fn bad_lines(&self) -> u64 {
        self.bad_lines
    }

    /// What families of metrics say of themselves.
    pub fn families(&self) -> &BTreeMap<String, Family> {
        &self.families
    }

    /// What should be known.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The times of the first and of the last sample, in milliseconds since 1970.
    pub fn span_ms(&self) -> Option<(i64, i64)> {
        let all = || self.metrics.values().flatten();
        let first = all().filter_map(|own| own.samples.first()).map(|(at, _)| *at).min()?;
        let last = all().filter_map(|own| own.samples.last()).map(|(at, _)| *at).max()?;
        Some((first, last))
    }

    /// All series, in the order of their names.
    pub fn series(&self) -> Vec<Series> {
        let sample = |(at_ms, value): &(i64, f64)| crate::Sample {
            at_ms: *at_ms,
            value: value.is_finite().then_some(*value),
        };
        let mut all = Vec::new();
        for (name, series) in &self.metrics {
            for own in series {
                let mut labels = own.labels.clone();
                labels.insert("__name__".to_owned(), name.clone());
                all.push(Series { labels, samples: own.samples.iter().map(sample).collect() });
            }
        }
        all
    }
}

/// Skips the rest of a line, without holding it.
fn skip_line(from: &mut impl BufRead) -> io::Result<()> {
    loop {
        let held = from.fill_buf()?;
        let (length, ends) = match held.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (held.len(), held.is_empty()),
        };
        from.consume(length);
        if ends {
            return Ok(());
        }
    }
}

/// A file, while it is read.
struct Reading {
    own: Exposition,
    at_ms: Option<i64>,
    /// Series by their text, so that labels are read once for each.
    seen: BTreeMap<Vec<u8>, usize>,
    /// Series by what their text means, which has more than one spelling.
    known: BTreeMap<(String, Labels), usize>,
    /// Stamps as they are written, until the end tells what they count.
    samples: Vec<Vec<(Option<f64>, f64)>>,
    held: usize,
    largest: f64,
    ended: bool,
}

impl Reading {
    fn new(name: &str, at_ms: Option<i64>) -> Self {
        Self {
            own: Exposition { name: name.to_owned(), ..Exposition::default() },
            at_ms,
            seen: BTreeMap::new(),
            known: BTreeMap::new(),
            samples: Vec::new(),
            held: 0,
            largest: 0.0,
            ended: false,
        }
    }

    fn bad(&mut self, reason: String, text: &[u8]) {
        self.own.bad_lines += 1;
        if self.own.bad.len() < BAD_KEPT {
            let text = String::from_utf8_lossy(&text[..text.len().min(160)]).into_owned();
            self.own.bad.push(BadLine { line: self.own.lines, reason, text });
        }
    }

    fn line(&mut self, text: &[u8]) {
        if text.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if self.ended {
            return self.bad("comes after `# EOF`".to_owned(), text);
        }
        if text.starts_with(b"#") {
            return self.comment(text);
        }
        let taken = self.sample(text);
        if let Err(reason) = taken {
            self.bad(reason, text);
        }
    }

    fn comment(&mut self, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.bad("is not UTF-8".to_owned(), bytes);
        };
        let mut words = text[1..].trim_start().splitn(3, [' ', '\t']);
        match (words.next(), words.next(), words.next()) {
            (Some("EOF"), None, None) => self.ended = true,
            (Some("TYPE"), Some(name), Some(kind)) => {
                kind.trim()
                    .clone_into(&mut self.own.families.entry(name.to_owned()).or_default().kind);
            }
            (Some("HELP"), Some(name), help) => {
                self.own.families.entry(name.to_owned()).or_default().help =
                    line::unescape(help.unwrap_or_default());
            }
            (Some("TYPE"), ..) => self.bad("`# TYPE` has a name and a kind".to_owned(), bytes),
            // Units, and comments of whoever wrote it.
            _ => {}
        }
    }

    fn sample(&mut self, bytes: &[u8]) -> Result<(), String> {
        let length = line::series_length(bytes)?;
        let (series, rest) = bytes.split_at(length);
        let known = self.seen.get(series).copied();
        let rest = std::str::from_utf8(rest).map_err(|_| "is not UTF-8".to_owned())?;
        let (value, stamp) = line::value_and_stamp(rest)?;
        if stamp.is_none() && self.at_ms.is_none() {
            return Err("has no time".to_owned());
        }
        if self.held >= SAMPLES_MAX {
            return Err(format!("is beyond the {SAMPLES_MAX} samples that are held"));
        }
        let place = match known {
            Some(place) => place,
            None => {
                let text = std::str::from_utf8(series).map_err(|_| "is not UTF-8".to_owned())?;
                let Line { name, labels } = Line::of(text)?;
                let next = self.samples.len();
                let place = *self.known.entry((name, labels)).or_insert(next);
                if place == next {
                    self.samples.push(Vec::new());
                }
                self.seen.insert(series.to_owned(), place);
                place
            }
        };
        self.held += 1;
        self.largest = self.largest.max(stamp.unwrap_or(0.0).abs());
        self.samples[place].push((stamp, value));
        Ok(())
    }

    fn finish(mut self) -> Result<Exposition, LiveError> {
        let in_seconds = self.ended || self.largest < MILLISECONDS_FROM;
        if in_seconds && !self.ended && self.largest > 0.0 {
            self.own.notes.push(format!(
                "{}: times are in seconds, but the file does not end with `# EOF`: it may be cut off",
                self.own.name
            ));
        }
        if self.held >= SAMPLES_MAX {
            self.own.notes.push(format!(
                "{}: only the first {SAMPLES_MAX} samples are read; cut the file into days",
                self.own.name
            ));
        }
        for ((name, labels), place) in self.known {
            let samples = self.samples[place].iter().filter_map(|(stamp, value)| {
                let at = match stamp {
                    Some(stamp) if in_seconds => to_ms(*stamp),
                    Some(stamp) => *stamp as i64,
                    None => self.at_ms?,
                };
                Some((at, *value))
            });
            let mut samples: Vec<(i64, f64)> = samples.collect();
            self.samples[place] = Vec::new();
            // Stable, so that of two samples of one time the later one is kept.
            samples.sort_by_key(|(at, _)| *at);
            let mut kept: Vec<(i64, f64)> = Vec::with_capacity(samples.len());
            for (at, value) in samples {
                match kept.last_mut() {
                    Some(last) if last.0 == at => last.1 = value,
                    _ => kept.push((at, value)),
                }
            }
            self.own.metrics.entry(name).or_default().push(Stored { labels, samples: kept });
        }
        Ok(self.own)
    }
}

/// Writes series as OpenMetrics: what [`Exposition::read`] reads back.
pub fn encode(
    to: &mut impl Write,
    families: &BTreeMap<String, Family>,
    series: &[Series],
) -> io::Result<()> {
    for (name, Family { kind, help }) in families {
        writeln!(to, "# TYPE {name} {kind}")?;
        if !help.is_empty() {
            writeln!(to, "# HELP {name} {}", line::escape(help))?;
        }
    }
    for Series { labels, samples } in series {
        let name = labels.get("__name__").map_or("unnamed", String::as_str);
        let own = labels.iter().filter(|(label, _)| *label != "__name__");
        let own: Vec<String> =
            own.map(|(label, value)| format!("{label}=\"{}\"", line::escape(value))).collect();
        let own = if own.is_empty() { String::new() } else { format!("{{{}}}", own.join(",")) };
        for sample in samples {
            let value = sample.value.unwrap_or(f64::NAN);
            let (sign, at) = (if sample.at_ms < 0 { "-" } else { "" }, sample.at_ms.unsigned_abs());
            writeln!(to, "{name}{own} {value} {sign}{}.{:03}", at / 1000, at % 1000)?;
        }
    }
    writeln!(to, "# EOF")
}
