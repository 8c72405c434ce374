//! One case of a file of validation cases.

use serde_json::{Map, Value};

use crate::EvidenceError;

/// A case and where it stands in its file.
pub(crate) struct Case<'a> {
    index: usize,
    map: &'a Map<String, Value>,
}

impl<'a> Case<'a> {
    pub(crate) fn of(index: usize, value: &'a Value) -> Result<Self, EvidenceError> {
        match value {
            Value::Object(map) => Ok(Self { index, map }),
            _ => Err(EvidenceError::WrongKind("a case is not an object")),
        }
    }

    /// A field that is missing or holds something else.
    pub(crate) fn wrong(&self, field: &str, problem: impl Into<String>) -> EvidenceError {
        let id = self.map.get("id").and_then(Value::as_str).map(str::to_owned);
        EvidenceError::Field {
            index: self.index,
            id,
            field: field.to_owned(),
            problem: problem.into(),
        }
    }

    /// A field, or one inside another with a dot between; null counts as absent.
    pub(crate) fn get(&self, field: &str) -> Option<&'a Value> {
        let mut value: Option<&'a Value> = None;
        for (i, part) in field.split('.').enumerate() {
            value = if i == 0 { self.map.get(part) } else { value.and_then(|v| v.get(part)) };
        }
        value.filter(|v| !v.is_null())
    }
}
