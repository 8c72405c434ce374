//! What a Prometheus answers, parsed straight into what is kept of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Labels by name; `__name__` is one of them where the query keeps it.
pub type Labels = BTreeMap<String, String>;

/// A value at a time. NaN, the infinities and stale markers are none: they are no quantity that could be added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The value.
    pub value: Option<f64>,
}

/// One series over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What tells it from others.
    pub labels: Labels,
    /// In the order of time.
    pub samples: Vec<Sample>,
}

/// What an instant query gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A number.
    Scalar(Sample),
    /// A number for each series.
    Vector(Vec<(Labels, Sample)>),
    /// Samples as they were scraped, for each series.
    Matrix(Vec<Series>),
    /// A text.
    Text(String),
}

impl Answer {
    /// The one number, where there is exactly one.
    pub fn single(&self) -> Option<f64> {
        match self {
            Self::Scalar(sample) => sample.value,
            Self::Vector(series) => match series.as_slice() {
                [(_, sample)] => sample.value,
                _ => None,
            },
            Self::Matrix(_) | Self::Text(_) => None,
        }
    }
}

/// The envelope of every answer.
#[derive(Deserialize)]
pub(crate) struct Reply<T> {
    pub(crate) status: String,
    pub(crate) data: Option<T>,
    #[serde(rename = "errorType")]
    pub(crate) error_type: Option<String>,
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
}

/// What `query` and `query_range` answer.
#[derive(Deserialize)]
pub(crate) struct Found {
    pub(crate) result: Parts,
}

/// A list of series, or a time and a value.
pub(crate) struct Parts(Vec<Part>);

enum Part {
    Series(Item),
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metric: Labels,
    value: Option<Pair>,
    #[serde(default)]
    values: Vec<Pair>,
}

struct Pair(Sample);

impl Parts {
    /// As an answer; none where it has another shape.
    pub(crate) fn answer(self) -> Option<Answer> {
        let mut parts = self.0;
        match parts.as_slice() {
            [Part::Number(at), Part::Text(text)] => {
                return Some(match number(text) {
                    Some(value) => Answer::Scalar(Sample { at_ms: to_ms(*at), value }),
                    None => Answer::Text(text.clone()),
                });
            }
            [Part::Series(Item { value: None, .. }), ..] => {
                return self_matrix(parts).map(Answer::Matrix);
            }
            _ => {}
        }
        let vector = parts.drain(..).map(|part| match part {
            Part::Series(item) => item.value.map(|Pair(sample)| (item.metric, sample)),
            Part::Number(_) | Part::Text(_) => None,
        });
        vector.collect::<Option<Vec<_>>>().map(Answer::Vector)
    }

    /// As series over time; none where it has another shape.
    pub(crate) fn matrix(self) -> Option<Vec<Series>> {
        self_matrix(self.0)
    }
}

fn self_matrix(parts: Vec<Part>) -> Option<Vec<Series>> {
    let series = parts.into_iter().map(|part| match part {
        Part::Series(item) => {
            let samples = item.values.into_iter().map(|Pair(sample)| sample).collect();
            Some(Series { labels: item.metric, samples })
        }
        Part::Number(_) | Part::Text(_) => None,
    });
    series.collect()
}

/// A sample's value: none where it is no number at all, and none within where it is not finite.
fn number(text: &str) -> Option<Option<f64>> {
    let value: f64 = text.parse().ok()?;
    Some(value.is_finite().then_some(value))
}

/// Whole milliseconds: all that a Prometheus keeps.
pub(crate) fn to_ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Parts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of series")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Parts, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Parts(parts))
            }
        }
        from.deserialize_seq(List)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a series, a time or a value")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Part, A::Error> {
                Item::deserialize(MapAccessDeserializer::new(map)).map(Part::Series)
            }

            fn visit_f64<E>(self, value: f64) -> Result<Part, E> {
                Ok(Part::Number(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Part, E> {
                Ok(Part::Number(value as f64))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Part, E> {
                Ok(Part::Number(value as f64))
            }

            fn visit_str<E>(self, value: &str) -> Result<Part, E> {
                Ok(Part::Text(value.to_owned()))
            }
        }
        from.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Two;
        impl<'de> Visitor<'de> for Two {
            type Value = Pair;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time and a value")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pair, A::Error> {
                let missing = || serde::de::Error::custom("a sample has a time and a value");
                let at: f64 = list.next_element()?.ok_or_else(missing)?;
                let Value(value) = list.next_element()?.ok_or_else(missing)?;
                Ok(Pair(Sample { at_ms: to_ms(at), value }))
            }
        }
        from.deserialize_seq(Two)
    }
}

struct Value(Option<f64>);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Quoted;
        impl Visitor<'_> for Quoted {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number in quotes")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
                number(text).map(Value).ok_or_else(|| E::custom(format!("`{text}` is no number")))
            }
        }
        from.deserialize_str(Quoted)
    }
}
