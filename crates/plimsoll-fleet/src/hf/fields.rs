//! The fields of a configuration, with errors that name them.

use serde_json::{Map, Value};

use super::HfError;

/// No list with an entry for each layer is longer.
const LIST_MAX: u64 = 10_000;

/// The fields of one configuration object, with errors that name them.
pub(super) struct Fields<'a> {
    /// The whole file, for what some families keep only there.
    pub(super) top: &'a Map<String, Value>,
    pub(super) map: &'a Map<String, Value>,
    pub(super) family: String,
    /// The largest number that may stand in a field.
    pub(super) limit: u64,
}

impl Fields<'_> {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    /// A count; `None` when absent or null.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, HfError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64() {
            Some(n) if n <= self.limit => Ok(Some(n)),
            Some(n) => {
                Err(HfError::TooLarge { field: name.to_owned(), limit: self.limit, found: n })
            }
            None => Err(HfError::WrongType {
                field: name.to_owned(),
                expected: "a whole number, not negative",
                found: shortened(value),
            }),
        }
    }

    /// The same fields with another limit.
    pub(super) fn up_to(&self, limit: u64) -> Fields<'_> {
        Fields { top: self.top, map: self.map, family: self.family.clone(), limit }
    }

    /// The first of several spellings that is there.
    pub(super) fn any(&self, names: &[&str]) -> Result<Option<u64>, HfError> {
        for name in names {
            if let Some(n) = self.number(name)? {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// The same, required and above zero.
    pub(super) fn need(&self, names: &[&str], purpose: &'static str) -> Result<u64, HfError> {
        match self.any(names)? {
            Some(0) => Err(HfError::WrongType {
                field: names[0].to_owned(),
                expected: "above zero",
                found: "0".to_owned(),
            }),
            Some(n) => Ok(n),
            None => Err(HfError::Missing {
                field: names.join("` or `"),
                family: self.family.clone(),
                purpose,
            }),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, HfError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(*b)),
            Some(other) => Err(HfError::WrongType {
                field: name.to_owned(),
                expected: "true or false",
                found: shortened(other),
            }),
        }
    }

    pub(super) fn is(&self, name: &str) -> Result<bool, HfError> {
        Ok(self.flag(name)?.unwrap_or(false))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// An array, of no more entries than anything here could need.
    pub(super) fn list(&self, name: &str) -> Result<Option<&[Value]>, HfError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value {
            Value::Array(items) if items.len() as u64 <= LIST_MAX => Ok(Some(items)),
            Value::Array(items) => {
                let (field, found) = (format!("{name} (its length)"), items.len() as u64);
                Err(HfError::TooLarge { field, limit: LIST_MAX, found })
            }
            other => Err(HfError::WrongType {
                field: name.to_owned(),
                expected: "an array",
                found: describe(other).to_owned(),
            }),
        }
    }

    /// Whether a list of layer numbers holds this one.
    pub(super) fn lists(&self, name: &str, number: u64) -> Result<bool, HfError> {
        Ok(self.list(name)?.is_some_and(|items| items.iter().any(|v| v.as_u64() == Some(number))))
    }

    /// An array of words or numbers as texts.
    pub(super) fn words(&self, name: &str) -> Result<Option<Vec<String>>, HfError> {
        let word = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        Ok(self.list(name)?.map(|items| items.iter().map(word).collect()))
    }

    pub(super) fn object(&self, name: &str) -> Result<Fields<'_>, HfError> {
        match self.get(name) {
            Some(Value::Object(map)) => {
                Ok(Fields { top: self.top, map, family: self.family.clone(), limit: self.limit })
            }
            _ => Err(HfError::Missing {
                field: name.to_owned(),
                family: self.family.clone(),
                purpose: "its layers",
            }),
        }
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= 40 { text } else { describe(value).to_owned() }
}

/// What a value is, for a person.
pub(super) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
