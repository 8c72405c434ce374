//! The values of a scenario that are more than one quantity.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use plimsoll_fleet::nearest;
use plimsoll_stats::{Dist, DistError, three_point_quantile};
use plimsoll_units::{Factor, Seconds, Tokens};
use toml::de::{DeTable, DeValue};
use toml::value::{Datetime, Offset};

use crate::diagnostic::Diagnostic;
use crate::read::{
    KeySpec, Node, Presence, Reader, Shape, TableNode, TableSpec, Value, bad_quantity, clip,
    number_text, table,
};

// ----- names

/// A name that other tables may refer to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Name {
    fn shape() -> Shape {
        Shape::Text { noun: "name" }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(node, reader)?;
        let fine =
            |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '@' | ':' | '+' | '%');
        if !text.is_empty()
            && text.len() <= 64
            && text.chars().all(|c| fine(c) || c == ' ')
            && text.trim() == text
        {
            return Some(Self(text));
        }
        let diagnostic = reader
            .error("bad-name", node, format!("`{}` is not a usable name", clip(&text)))
            .label("letters, digits, spaces and - _ / @ : + %, at most 64")
            .help(format!("write `{} = \"chat\"`", node.key));
        reader.report(diagnostic);
        None
    }
}

macro_rules! reference {
    ($($(#[doc = $doc:literal])* $name:ident to $noun:literal in [$($kind:literal),*];)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The name referred to.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Value for $name {
            fn shape() -> Shape {
                Shape::Text { noun: $noun }
            }

            fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let text = String::read(node, reader)?;
                let known: Vec<String> =
                    [$($kind),*].iter().filter_map(|kind| reader.names.get(kind)).flatten().cloned().collect();
                if known.contains(&text) {
                    return Some(Self(text));
                }
                dangling(reader, node, &text, $noun, &known);
                None
            }
        }
    )* };
}

reference! {
    /// A class of this scenario.
    ClassName to "class" in ["class"];
    /// A pool of this scenario.
    PoolName to "pool" in ["pool"];
    /// A pool or provider of this scenario.
    TargetName to "pool or provider" in ["pool", "provider"];
    /// A tool of this scenario.
    ToolName to "tool" in ["tool"];
    /// A provider or tool of this scenario.
    ServiceName to "provider or tool" in ["provider", "tool"];
    /// A region of this scenario.
    RegionName to "region" in ["region"];
}

fn dangling(reader: &mut Reader<'_>, node: &Node<'_>, text: &str, noun: &str, known: &[String]) {
    let message = format!("no {noun} of this scenario is called `{}`", clip(text));
    let mut diagnostic = reader.error("dangling-name", node, message).label("refers to nothing");
    let near = nearest(text, known.iter().map(String::as_str));
    diagnostic = match (near.first(), known) {
        (Some(near), _) => diagnostic.help(format!("did you mean `\"{near}\"`?")),
        (None, []) => {
            diagnostic.help(format!("this scenario has no {noun}; add one, or take this out"))
        }
        (None, known) => diagnostic.help(format!("there are {}", known.join(", "))),
    };
    reader.report(diagnostic);
}

macro_rules! catalogued {
    ($($(#[doc = $doc:literal])* $name:ident by $lookup:ident, $noun:literal;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// The name as it was written; the catalogue finds it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Value for $name {
            fn shape() -> Shape {
                Shape::Text { noun: $noun }
            }

            fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let text = String::read(node, reader)?;
                match reader.catalog.$lookup(&text) {
                    Ok(_) => Some(Self(text)),
                    Err(unknown) => {
                        let message = format!("no {} is called `{}`", $noun, clip(&unknown.name));
                        let diagnostic = reader
                            .error("unknown-name", node, message)
                            .label("not in the catalogue")
                            .help(unknown.help());
                        reader.report(diagnostic);
                        None
                    }
                }
            }
        }
    )* };
}

catalogued! {
    /// A model of the catalogue.
    ModelName by model, "model";
    /// An accelerator of the catalogue.
    AcceleratorName by accelerator, "accelerator";
    /// An engine of the catalogue, with its version.
    EngineName by engine, "engine";
    /// An instance of the catalogue.
    InstanceName by instance, "instance";
}

// ----- time

/// An instant, written as a TOML date-time; without an offset it is UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Timestamp);

impl Moment {
    /// The instant.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    /// Seconds after another instant; negative before it.
    pub fn seconds_after(self, other: Timestamp) -> f64 {
        self.0.duration_since(other).as_secs_f64()
    }
}

impl Value for Moment {
    fn shape() -> Shape {
        Shape::Moment
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = moment_text(node.value);
        let Some(text) = text else {
            return reader.wrong_type(node, "a date and time", "2026-11-17T09:00:00Z");
        };
        match text.parse::<Timestamp>() {
            Ok(instant) if in_reach(instant.to_zoned(TimeZone::UTC).date()) => Some(Self(instant)),
            _ => {
                let message = format!("`{}` is not a date and time", clip(&text));
                let fix = format!("write `{} = 2026-11-17T09:00:00Z`", node.key);
                let diagnostic = reader
                    .error("bad-date", node, message)
                    .label("not an instant of these centuries")
                    .help(fix);
                reader.report(diagnostic);
                None
            }
        }
    }
}

/// Whether a day is one that a study can be about: horizons on both sides of it exist, too.
pub fn in_reach(day: Date) -> bool {
    (1970..=2200).contains(&day.year())
}

/// A date-time with its missing parts filled in: midnight, UTC.
fn moment_text(value: &DeValue<'_>) -> Option<String> {
    let complete = |d: &Datetime| {
        let date = d.date.as_ref()?;
        let time = d.time.as_ref().map_or_else(|| "00:00:00".to_owned(), ToString::to_string);
        let offset = match &d.offset {
            None | Some(Offset::Z) => "Z".to_owned(),
            Some(offset) => offset.to_string(),
        };
        Some(format!("{date}T{time}{offset}"))
    };
    match value {
        DeValue::Datetime(d) => complete(d),
        DeValue::String(text) => {
            let parsed = text.parse::<Datetime>().ok();
            Some(parsed.as_ref().and_then(complete).unwrap_or_else(|| text.to_string()))
        }
        _ => None,
    }
}

/// A calendar day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Date);

impl Day {
    /// The day.
    pub fn date(self) -> Date {
        self.0
    }
}

impl Value for Day {
    fn shape() -> Shape {
        Shape::Moment
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = match node.value {
            // Of an instant, the day as it was written.
            DeValue::Datetime(Datetime { date: Some(date), .. }) => date.to_string(),
            DeValue::String(text) => text.to_string(),
            _ => return reader.wrong_type(node, "a day", "2026-11-17"),
        };
        match text.parse::<Date>() {
            Ok(day) if in_reach(day) => Some(Self(day)),
            _ => {
                let message = format!("`{}` is not a day", clip(&text));
                let fix = format!("write `{} = 2026-11-17`", node.key);
                let diagnostic = reader
                    .error("bad-date", node, message)
                    .label("not a day of these centuries")
                    .help(fix);
                reader.report(diagnostic);
                None
            }
        }
    }
}

/// Hours ahead of UTC, as `UTC`, `+02:00` or `-05:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcOffset {
    minutes: i32,
}

impl UtcOffset {
    /// Minutes ahead of UTC.
    pub fn minutes(self) -> i32 {
        self.minutes
    }
}

impl Value for UtcOffset {
    fn shape() -> Shape {
        Shape::Text { noun: "+02:00" }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(node, reader)?;
        let minutes = match text.as_str() {
            "UTC" | "Z" => Some(0),
            _ => offset_minutes(&text),
        };
        if minutes.is_none() {
            let diagnostic = reader
                .error("bad-offset", node, format!("`{}` is not an offset from UTC", clip(&text)))
                .label("named time zones change with the season, so an offset is asked for")
                .help(format!("write `{} = \"-05:00\"` or `\"UTC\"`", node.key));
            reader.report(diagnostic);
        }
        minutes.map(|minutes| Self { minutes })
    }
}

fn offset_minutes(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes < 60).then(|| sign * (i32::from(hours) * 60 + i32::from(minutes)))
}

// ----- distributions

/// What a distribution is made of: its unit decides how the numbers are written.
pub(crate) trait Unit: Value + Copy {
    const NOUN: &'static str;
    fn number(self) -> f64;
}

impl Unit for Tokens {
    const NOUN: &'static str = "tokens";
    fn number(self) -> f64 {
        self.get() as f64
    }
}

impl Unit for Seconds {
    const NOUN: &'static str = "durations";
    fn number(self) -> f64 {
        self.get()
    }
}

/// A plain count, such as calls in a task: at most ten thousand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count(f64);

impl Value for Count {
    fn shape() -> Shape {
        Shape::Number
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(text) = number_text(node.value) else {
            return reader.wrong_type(node, "a number", "10");
        };
        match text.parse::<f64>() {
            Ok(x) if (0.0..=10_000.0).contains(&x) => Some(Self(x)),
            _ => {
                let diagnostic = reader
                    .error(
                        "out-of-range",
                        node,
                        format!(
                            "`{}` must be between 0 and 10000; it is {}",
                            node.key,
                            clip(&text)
                        ),
                    )
                    .label("not between 0 and 10000")
                    .help(format!("write `{} = 10`", node.key));
                reader.report(diagnostic);
                None
            }
        }
    }
}

impl Unit for Count {
    const NOUN: &'static str = "counts";
    fn number(self) -> f64 {
        self.0
    }
}

/// A distribution as people write it.
#[derive(Clone, Debug)]
pub struct Spread<U> {
    dist: Dist,
    unit: std::marker::PhantomData<U>,
}

impl<U> Spread<U> {
    /// The distribution, in tokens, seconds or counts.
    pub fn dist(&self) -> &Dist {
        &self.dist
    }
}

/// The quantiles that may be given.
const LEVELS: [(&str, f64); 7] = [
    ("p5", 0.05),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
];

impl<U: Unit> Value for Spread<U> {
    fn shape() -> Shape {
        Shape::Either(vec![U::shape(), Shape::Table(spread_spec::<U>)])
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let dist = if node.value.is_table() {
            spread_of_table::<U>(node, reader)?
        } else {
            let value = U::read(node, reader)?;
            reported(reader, node, Dist::constant(value.number()))?
        };
        Some(Self { dist, unit: std::marker::PhantomData })
    }
}

fn spread_spec<U: Unit>() -> TableSpec {
    let optional = Presence::Optional { absent: "not given" };
    let key = |name, doc, shape| KeySpec { name, doc, shape, presence: optional };
    let mut keys: Vec<KeySpec> = LEVELS
        .iter()
        .map(|(name, _)| key(name, "A quantile; two or more fix the distribution.", U::shape()))
        .collect();
    keys.push(key("mean", "The mean, with `cv`: a lognormal.", U::shape()));
    keys.push(key("cv", "Standard deviation / mean.", Shape::Number));
    keys.push(key("min", "Nothing is below this; with `max` alone: evenly between.", U::shape()));
    keys.push(key("max", "Nothing is above this.", U::shape()));
    keys.push(key("values", "Exactly these values.", Shape::List(Box::new(U::shape()))));
    keys.push(key(
        "weights",
        "How often each value or part occurs.",
        Shape::List(Box::new(Shape::Number)),
    ));
    // Parts are spreads again, but not mixtures of mixtures.
    let part = Shape::Either(vec![
        U::shape(),
        Shape::Table(|| {
            let mut spec = spread_spec::<U>();
            spec.keys.retain(|k| k.name != "mixture");
            spec
        }),
    ]);
    keys.push(key(
        "mixture",
        "Several distributions, chosen by `weights`.",
        Shape::List(Box::new(part)),
    ));
    TableSpec { name: U::NOUN, doc: "A distribution by the parameters people know.", keys }
}

/// The keys of a distribution that were given.
struct SpreadKeys {
    levels: Vec<(f64, f64)>,
    mean: Option<f64>,
    cv: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    values: Option<Vec<f64>>,
    weights: Option<Vec<f64>>,
    mixture: Option<Vec<Dist>>,
}

fn spread_of_table<U: Unit>(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Dist> {
    let table = TableNode::of(U::NOUN, node, reader)?;
    let known: Vec<&'static str> = spread_spec::<U>().keys.iter().map(|k| k.name).collect();
    reader.unknown_keys(&table, &known);
    let before = reader.diagnostics.len();
    let number = |key: &str, reader: &mut Reader<'_>| -> Option<f64> {
        table.get(key).and_then(|node| U::read(&node, reader)).map(Unit::number)
    };
    let mut levels = Vec::new();
    for (name, level) in LEVELS {
        if let Some(value) = number(name, reader) {
            levels.push((level, value));
        }
    }
    let keys = SpreadKeys {
        levels,
        mean: number("mean", reader),
        min: number("min", reader),
        max: number("max", reader),
        cv: table.get("cv").and_then(|node| Plain::read(&node, reader)).map(|p| p.0),
        values: table
            .get("values")
            .and_then(|n| Vec::<U>::read(&n, reader))
            .map(|v| v.into_iter().map(Unit::number).collect()),
        weights: table
            .get("weights")
            .and_then(|n| Vec::<Plain>::read(&n, reader))
            .map(|v| v.into_iter().map(|p| p.0).collect()),
        mixture: table
            .get("mixture")
            .and_then(|n| Vec::<Spread<U>>::read(&n, reader))
            .map(|v| v.into_iter().map(|s| s.dist).collect()),
    };
    if reader.diagnostics.len() > before {
        return None;
    }
    let Some(dist) = keys.distribution() else {
        let diagnostic = reader
            .error("impossible-distribution", node, format!("`{}` does not fix a distribution", node.key))
            .label("neither two quantiles, nor mean and cv, nor min and max, nor values, nor a mixture")
            .help(format!("write `{} = {{ p50 = …, p95 = … }}` or `{{ mean = …, cv = … }}`", node.key));
        reader.report(diagnostic);
        return None;
    };
    reported(reader, node, dist)
}

impl SpreadKeys {
    /// `None` when the keys do not say which distribution is meant.
    fn distribution(self) -> Option<Result<Dist, DistError>> {
        let (min, max) = (self.min.unwrap_or(0.0), self.max);
        let base = match (&self.levels[..], self.mean, self.cv, self.values, self.mixture) {
            (levels, None, None, None, None) if levels.len() >= 2 => Dist::by_quantiles(levels),
            ([], Some(mean), Some(cv), None, None) => Dist::by_mean_cv(mean, cv),
            ([], None, None, Some(values), None) => Dist::empirical(values, self.weights),
            ([], None, None, None, Some(parts)) => {
                let weights = self.weights.unwrap_or_else(|| vec![1.0; parts.len()]);
                Dist::mixture(parts, weights)
            }
            ([], None, None, None, None) if self.min.is_some() && max.is_some() => {
                return Some(Dist::uniform(min, max.unwrap_or(min)));
            }
            _ => return None,
        };
        Some(match (self.min, max) {
            (None, None) => base,
            _ => base.and_then(|d| d.clamped(min, max.unwrap_or(f64::MAX))),
        })
    }
}

fn reported(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    dist: Result<Dist, DistError>,
) -> Option<Dist> {
    match dist {
        Ok(dist) => Some(dist),
        Err(error) => {
            let help = match &error {
                DistError::Order { low, high } => {
                    let name = |level: f64| format!("p{}", (level * 100.0).round());
                    let key = &node.key;
                    format!(
                        "swap them: `{key} = {{ {} = {}, {} = {} }}`",
                        name(low.0),
                        high.1,
                        name(high.0),
                        low.1
                    )
                }
                _ => format!("write `{} = {{ p50 = …, p95 = … }}`", node.key),
            };
            let diagnostic = reader
                .error(
                    "impossible-distribution",
                    node,
                    format!("`{}` is no distribution: {error}", node.key),
                )
                .label(error.to_string())
                .help(help);
            reader.report(diagnostic);
            None
        }
    }
}

/// A finite number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plain(f64);

impl Plain {
    /// As a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Value for Plain {
    fn shape() -> Shape {
        Shape::Number
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(text) = number_text(node.value) else {
            return reader.wrong_type(node, "a number", "1.0");
        };
        match text.parse::<f64>() {
            Ok(x) if x.is_finite() && (0.0..=1e12).contains(&x) => Some(Self(x)),
            _ => {
                let diagnostic = reader
                    .error(
                        "out-of-range",
                        node,
                        format!(
                            "`{}` must be a finite number from 0 to 10^12; it is {}",
                            node.key,
                            clip(&text)
                        ),
                    )
                    .label("not a usable number")
                    .help(format!("write `{} = 1.0`", node.key));
                reader.report(diagnostic);
                None
            }
        }
    }
}

/// A TOML value as it would be written on one line.
pub(crate) fn show_value(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(d) => d.to_string(),
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(x) => x.to_string(),
        DeValue::Array(items) => {
            let shown: Vec<String> =
                items.iter().take(24).map(|i| show_value(i.get_ref())).collect();
            let more = if items.len() > 24 {
                format!(", … {} more", items.len() - 24)
            } else {
                String::new()
            };
            format!("[{}{more}]", shown.join(", "))
        }
        DeValue::Table(table) => show_table(table),
    }
}

fn show_table(table: &DeTable<'_>) -> String {
    if table.is_empty() {
        return "{}".to_owned();
    }
    let pairs: Vec<String> = table
        .iter()
        .map(|(k, v)| format!("{} = {}", k.get_ref(), show_value(v.get_ref())))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

// ----- multipliers with a range

/// A multiplier that is not known exactly: its 5th, 50th and 95th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    low: f64,
    likely: f64,
    high: f64,
}

impl Range {
    /// The multiplier at a quantile.
    pub fn quantile(self, level: f64) -> f64 {
        three_point_quantile(self.low, self.likely, self.high, level)
    }

    /// The most likely value.
    pub fn likely(self) -> f64 {
        self.likely
    }
}

impl Value for Range {
    fn shape() -> Shape {
        Shape::Either(vec![Factor::shape(), Shape::Table(range_spec)])
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        if !node.value.is_table() {
            let x = Factor::read(node, reader)?.get();
            return Some(Self { low: x, likely: x, high: x });
        }
        let table = TableNode::of("range", node, reader)?;
        reader.unknown_keys(&table, &["low", "likely", "high"]);
        let mut get = |key: &'static str| reader.required::<Factor>(&table, key).map(Factor::get);
        let (low, likely, high) = (get("low"), get("likely"), get("high"));
        let range = Self { low: low?, likely: likely?, high: high? };
        if range.low <= range.likely && range.likely <= range.high {
            return Some(range);
        }
        let message = format!(
            "`{}` runs from low {} over likely {} to high {}",
            node.key, range.low, range.likely, range.high
        );
        let mut sorted = [range.low, range.likely, range.high];
        sorted.sort_by(f64::total_cmp);
        let diagnostic = reader
            .error("bad-range", node, message)
            .label("low, likely, high must rise")
            .help(format!(
                "write `{} = {{ low = {}, likely = {}, high = {} }}`",
                node.key, sorted[0], sorted[1], sorted[2]
            ));
        reader.report(diagnostic);
        None
    }
}

fn range_spec() -> TableSpec {
    let key =
        |name, doc| KeySpec { name, doc, shape: Factor::shape(), presence: Presence::Required };
    TableSpec {
        name: "range",
        doc: "A multiplier that is not known exactly.",
        keys: vec![
            key("low", "The 5th percentile."),
            key("likely", "The median."),
            key("high", "The 95th percentile."),
        ],
    }
}

// ----- success

/// A share, or the admission that nobody has measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// The success rate is multiplied by this.
    Known(f64),
    /// Nobody has measured it: no cost per success may be claimed.
    Unknown,
}

impl Value for Effect {
    fn shape() -> Shape {
        Shape::Either(vec![Factor::shape(), Shape::Choice(&["unknown"])])
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        if node.value.as_str() == Some("unknown") {
            return Some(Self::Unknown);
        }
        let text = node.value.as_str().map(str::to_owned).or_else(|| number_text(node.value));
        let Some(text) = text else {
            return reader.wrong_type(node, "a multiplier or \"unknown\"", "\"unknown\"");
        };
        match text.parse::<Factor>() {
            Ok(factor) => Some(Self::Known(factor.get())),
            Err(error) => {
                bad_quantity(reader, node, &error, true);
                None
            }
        }
    }
}

// ----- conditions

/// A condition that a monitor can evaluate, in the language of Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    condition: plimsoll_study::Condition,
}

impl Expression {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What of it can be held against numbers.
    pub fn condition(&self) -> &plimsoll_study::Condition {
        &self.condition
    }
}

impl Value for Expression {
    fn shape() -> Shape {
        Shape::Text { noun: "PromQL condition" }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(node, reader)?;
        match crate::stresses::condition(&text) {
            Ok(condition) => Some(Self { text, condition }),
            Err(problem) => {
                let message = format!("`{}` is no condition that a monitor evaluates", clip(&text));
                let diagnostic =
                    reader.error("bad-condition", node, message).label(problem).help(format!(
                        "compare a metric with a number: `{} = \"edit_success_rate < 0.6\"`",
                        node.key
                    ));
                reader.report(diagnostic);
                None
            }
        }
    }
}

// ----- replicas

table! {
    /// How many replicas a pool has, and may get.
    pub struct Replicas = "replicas", check replicas_make_sense {
        /// Running today.
        now: crate::read::Whole<0, 100_000>, required;
        /// The fewest and the most a plan or an autoscaler may use.
        plan: Span, default("[0, 100000]", "no limit was given, so a plan may use what it needs");
    }
}

fn replicas_make_sense(replicas: &Replicas, reader: &mut Reader<'_>) {
    if replicas.plan.most == 0 {
        let diagnostic: Diagnostic = reader
            .at_key("plan", "out-of-range", "a plan that may use no replica cannot serve anything")
            .label("at most 0 replicas")
            .help("write `plan = [1, 8]`");
        reader.report(diagnostic);
    }
}

/// Replicas as one number or as a table.
#[derive(Clone, Debug)]
pub struct ReplicaCount(Replicas);

impl ReplicaCount {
    /// Running today.
    pub fn now(&self) -> u64 {
        self.0.now.get()
    }

    /// The fewest and the most a plan may use.
    pub fn plan(&self) -> (u64, u64) {
        (self.0.plan.fewest, self.0.plan.most)
    }
}

impl Value for ReplicaCount {
    fn shape() -> Shape {
        Shape::Either(vec![crate::read::Whole::<0, 100_000>::shape(), Replicas::shape()])
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        if node.value.is_table() {
            return Replicas::read(node, reader).map(Self);
        }
        let now = crate::read::Whole::read(node, reader)?;
        Some(Self(Replicas { now, plan: Span { fewest: 0, most: 100_000 } }))
    }
}

/// From the fewest to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    fewest: u64,
    most: u64,
}

impl Value for Span {
    fn shape() -> Shape {
        Shape::List(Box::new(crate::read::Whole::<0, 100_000>::shape()))
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let ends = Vec::<crate::read::Whole<0, 100_000>>::read(node, reader)?;
        match ends.as_slice() {
            [fewest, most] if fewest <= most => {
                Some(Self { fewest: fewest.get(), most: most.get() })
            }
            _ => {
                let key = &node.key;
                let diagnostic = reader
                    .error(
                        "bad-range",
                        node,
                        format!("`{key}` must be the fewest and the most, in this order"),
                    )
                    .label(match ends.len() {
                        2 => format!("{} is more than {}", ends[0].get(), ends[1].get()),
                        n => format!("{n} numbers instead of two"),
                    })
                    .help(format!("write `{key} = [4, 64]`"));
                reader.report(diagnostic);
                None
            }
        }
    }
}

/// Twenty-four multipliers of a day, of mean one once normalised.
#[derive(Clone, Debug, PartialEq)]
pub struct Hours([f64; 24]);

impl Hours {
    /// Multipliers from midnight on, whose mean is one.
    pub fn normalised(&self) -> [f64; 24] {
        let mean = self.0.iter().sum::<f64>() / 24.0;
        self.0.map(|x| x / mean)
    }
}

impl Value for Hours {
    fn shape() -> Shape {
        Shape::List(Box::new(Factor::shape()))
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hours = Vec::<Factor>::read(node, reader)?;
        let numbers: Vec<f64> = hours.iter().map(|f| f.get()).collect();
        let complaint = match <[f64; 24]>::try_from(numbers) {
            Ok(all) if all.iter().sum::<f64>() > 0.0 => return Some(Self(all)),
            Ok(_) => "all twenty-four are zero".to_owned(),
            Err(other) => format!("{} numbers instead of 24", other.len()),
        };
        let diagnostic = reader
            .error(
                "bad-hours",
                node,
                format!("`{}` must hold one multiplier for each hour of the day", node.key),
            )
            .label(complaint)
            .help("give 24 numbers from midnight on; only their proportions count");
        reader.report(diagnostic);
        None
    }
}
